//! Flows that wait for several others, and `kind = "collective"`: the flows, their duration, and the errors of wrong
//! ones.
#![allow(clippy::unwrap_used)]

use experiment::{Dependency, FlowId, Outcome, Setup, Start};
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Span, Time};

use crate::location::points_at;

/// Eight hosts at 10 Gb/s on a switch, 1 us from each: a packet of 4,096 bytes and a header of 64 takes 3,328 ns a link.
const SWITCH: &str = "name = \"t\"\nstop = \"10s\"\n[topology]\nkind = \"single-switch\"\nhosts = 8\nrate = \"10Gbps\"\n\
                      [port]\nbuffer = \"unlimited\"\necn = \"off\"\n[schemes.a]\nlaw = \"fixed\"\nparams.fixed = { window = \"1GB\" }\n";
const PAIR: &str = "name = \"t\"\nstop = \"1s\"\n[topology]\nkind = \"fat-trees\"\nk = 4\ninter_rtt = \"2ms\"\n[schemes.a]\n\
                    law = \"dctcp\"\n";

fn build(base: &str, more: &str) -> Result<BuiltRun, Error> {
    parse(&format!("{base}{more}"), "test.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
}

#[track_caller]
fn built(base: &str, more: &str) -> BuiltRun {
    build(base, more).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(more: &str, location: &str, names: &[&str]) {
    points_at(&build(SWITCH, more).expect_err(more), location, names);
}

fn run(built: &BuiltRun, threads: usize) -> Outcome {
    engine::run_on(
        &built.setup,
        engine::Threads::always(threads),
        |flow, path| built.laws.make(flow, path),
        &mut |_| true,
    )
}

fn collective(keys: &str) -> String {
    format!("[[traffic]]\nkind = \"collective\"\n{keys}\n")
}

/// The same traffic, whatever the numbers of its sets of causes.
fn same(one: &Setup, other: &Setup) -> bool {
    let plain = |setup: &Setup| {
        let flows = setup.flows.iter().map(|flow| {
            let start = match flow.start {
                Start::At(time) => (time, Span::ZERO),
                Start::Waits { after, .. } => (Time::NEVER, after),
            };
            (flow.src, flow.dst, flow.size, start, setup.dependencies_of(flow).to_vec())
        });
        flows.collect::<Vec<_>>()
    };
    plain(one) == plain(other)
}

#[test]
fn listed_flows_have_several_dependencies_and_compute_time() {
    let list = "[[traffic]]\nkind = \"list\"\nstart = \"1us\"\nflows = [\n\
                { src = 0, dst = 1, size = \"1MB\" },\n{ src = 2, dst = 3, size = 1000, start = \"4us\", compute = \"3ms\" },\n\
                { src = 1, dst = 4, size = 1000, after = [0, 1], compute = \"2us\" },\n{ src = 1, dst = 4, size = 1000, after = 2 }]\n";
    let built =
        built(SWITCH, &format!("{}{list}", collective("operation = \"broadcast\"\ngroups = [[0, 1]]\nsize = 10")));
    let flows = &built.setup.flows;
    assert_eq!(flows[2].start, Start::At(Time::from_us(3_005)));
    // The list's flow 0 is the run's flow 1.
    let complete = |flows: &[u32]| flows.iter().map(|&flow| Dependency::Complete(FlowId(flow))).collect::<Vec<_>>();
    assert_eq!(built.setup.dependencies_of(&flows[3]), complete(&[1, 2]));
    assert!(matches!(flows[3].start, Start::Waits { after, .. } if after == Span::from_us(2)));
    assert_eq!(built.setup.dependencies_of(&flows[4]), complete(&[3]));
    let outcome = run(&built, 1);
    let one_way = built.setup.one_way(flows[2].src, flows[3].src);
    assert_eq!(outcome.flows[3].started, outcome.flows[2].completed + one_way + Span::from_us(2));
    assert_eq!(outcome.flows[4].started, outcome.flows[3].completed);
}

/// An all-reduce in rings is the same flows, by either name.
#[test]
fn a_ring_all_reduce_is_an_allreduce() {
    let keys = "count = 2\nranks = 3\nsize = \"1MB\"\niterations = 3\ncompute = \"7us\"\nstart = \"5us\"";
    let old = built(PAIR, &format!("[[traffic]]\nkind = \"allreduce\"\n{keys}\n"));
    let new = built(PAIR, &collective(&format!("operation = \"all-reduce\"\n{keys}")));
    assert!(same(&old.setup, &new.setup) && old.collectives == new.collectives);
    assert_eq!(run(&old, 1).flows, run(&new, 2).flows);
}

/// Returns the times of a flow alone: until its last byte has come, and until its sender knows.
fn times(bytes: u64) -> (Span, Span) {
    let ns = |bytes: u64| bytes * 8 / 10;
    let packets = bytes / 4_096;
    assert_eq!(bytes % 4_096, 0);
    // All packets on the first link, the last one on the second; the acknowledgement on both.
    let received = ns(packets * 4_160) + ns(4_160) + 2_000;
    let back = 2 * ns(64) + 2_000;
    (Span::from_ns(received as i64), Span::from_ns((received + back) as i64))
}

/// Each operation takes its steps, of serialisation and delay each: no less, and at most 2 % more. The 2 % are the
/// acknowledgements, 64 bytes for each 4,160, on the links on which ranks send.
#[test]
fn operations_last_as_long_as_their_steps() {
    let size: u64 = 8 << 20;
    let [full, half, quarter, eighth] = [1, 2, 4, 8].map(|parts| times(size / parts));
    let sum = |spans: &[Span]| spans.iter().fold(Span::ZERO, |sum, &span| sum + span);
    let halving = [half.0, quarter.0, eighth.0];
    let cases = [
        // The last of 14 receipts, and its acknowledgement.
        ("all-reduce", "ring", sum(&[eighth.0; 13]) + eighth.1),
        ("all-gather", "ring", sum(&[eighth.0; 6]) + eighth.1),
        ("reduce-scatter", "ring", sum(&[eighth.0; 6]) + eighth.1),
        ("all-reduce", "halving-doubling", sum(&halving) + eighth.0 + quarter.0 + half.1),
        ("all-gather", "halving-doubling", eighth.0 + quarter.0 + half.1),
        ("reduce-scatter", "halving-doubling", half.0 + quarter.0 + eighth.1),
        // The first rank waits for the end of each of its sends.
        ("broadcast", "tree", sum(&[full.1; 3])),
        ("all-reduce", "tree", sum(&[full.0; 3]) + sum(&[full.1; 3])),
        ("all-to-all", "", sum(&[eighth.1; 7])),
    ];
    for (operation, algorithm, expected) in cases {
        let algorithm = if algorithm.is_empty() { String::new() } else { format!("algorithm = \"{algorithm}\"\n") };
        let keys =
            format!("operation = \"{operation}\"\n{algorithm}groups = [[0, 1, 2, 3, 4, 5, 6, 7]]\nsize = {size}");
        let outcome = run(&built(SWITCH, &collective(&keys)), 1);
        let took = outcome.flows.iter().map(|flow| flow.completed).max().unwrap().since(Time::ZERO);
        let over = took.ps() as f64 / expected.ps() as f64;
        assert!((1.0..1.02).contains(&over), "{operation} {algorithm}{took}, not {expected}: {over}");
    }
}

/// A stage computes longer than it sends: the last micro-batch leaves the last but one stage after all computing of the
/// first, and one of each stage behind it. No less, and at most 0.5 % more, for acknowledgements go before data.
#[test]
fn a_pipeline_fills_and_drains() {
    let (part, microbatches, stages) = (1u64 << 20, 6u32, 5u32);
    let (received, complete) = times(part);
    let compute = Span::from_ms(1);
    assert!(compute > complete);
    let keys = format!(
        "operation = \"pipeline\"\ngroups = [[0, 1, 2, 3, 4]]\nsize = {}\nmicrobatches = {microbatches}\ncompute = \"1ms\"\niterations = 3",
        part * u64::from(microbatches)
    );
    let built = built(SWITCH, &collective(&keys));
    assert_eq!(built.collectives.iter().map(Vec::len).collect::<Vec<_>>(), [24; 3]);
    let outcome = run(&built, 1);
    let last = Span::from_ps(compute.ps() * i64::from(microbatches + stages - 2)) + received.times(stages - 1);
    let ack_delay = built.setup.one_way(built.setup.flows[3].dst, built.setup.flows[0].src);
    for (iteration, flows) in (0u32..).zip(&built.collectives) {
        let ended = outcome.flows[flows.last().unwrap().0 as usize].completed.since(Time::ZERO);
        // The next iteration begins when the first stage learns that all has come.
        let expected = (last + ack_delay).times(iteration) + last + (complete - received);
        let over = ended.ps() as f64 / expected.ps() as f64;
        assert!((1.0..1.005).contains(&over), "iteration {iteration}: {ended}, not {expected}: {over}");
    }
}

/// Over two datacenters, with several causes a flow: the same bits at any number of threads.
#[test]
fn collectives_give_the_same_bits_at_any_number_of_threads() {
    let all: String = [
        "operation = \"all-reduce\"\nalgorithm = \"tree\"",
        "operation = \"all-to-all\"\nname = \"a2a\"",
        "operation = \"broadcast\"\nalgorithm = \"ring\"\nname = \"broadcast\"",
        "operation = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nname = \"halves\"",
        "operation = \"pipeline\"\nmicrobatches = 3\nname = \"pipe\"",
    ]
    .map(|keys| {
        collective(&format!("{keys}\ncount = 1\nranks = 4\nsize = \"2MB\"\niterations = 2\ncompute = \"11us\""))
    })
    .concat();
    let built = built(PAIR, &all);
    let one = run(&built, 1);
    assert!(one.flows.iter().all(|flow| flow.completed.is_set()));
    for threads in [2, 4] {
        let mut other = run(&built, threads);
        other.engine.threads = one.engine.threads;
        assert!(one == other, "{threads} threads differ from one");
    }
}

/// The shipped scenario with less data: a failure during its pipeline and its all-to-all loses packets, all flows still
/// complete, and the first stage, which waits for no other, is not delayed.
#[test]
fn training_survives_a_link_failure() {
    let text = include_str!("../../../../../scenarios/training.toml");
    let sizes = [("traffic.0.size", "8MiB"), ("traffic.1.size", "4MiB"), ("traffic.1.iterations", "12")];
    let set = sizes.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let scenario = parse(text, "training.toml", &Overrides { set, ..Overrides::default() }).unwrap();
    for scheme in scenario.runs() {
        let built = scheme.build().unwrap();
        assert!(built.warnings.is_empty(), "{:?}", built.warnings);
        let outcome = run(&built, 2);
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "{}", scheme.id);
        assert!(outcome.links.iter().any(|link| link.lost.data > 0), "{}: nothing met the failure", scheme.id);
        assert_eq!(built.collectives.len(), 2 + 12);
        // The first stage sends its micro-batches every 2 ms, whatever becomes of them.
        let first: Vec<Time> = (0..16).map(|batch| outcome.flows[7 * batch].started).collect();
        assert!(first.iter().zip(1..).all(|(&started, batch)| started == Time::from_ms(2 * batch)), "{first:?}");
    }
}

#[test]
fn groups_span_two_datacenters() {
    let keys = "operation = \"pipeline\"\nmicrobatches = 2\ncount = 2\nranks = 2\nsize = \"1MB\"";
    let built = built(PAIR, &collective(keys));
    let network = &built.setup.network;
    let across =
        built.setup.flows.iter().filter(|flow| network.datacenter_of(flow.src) != network.datacenter_of(flow.dst));
    // Two groups of four stages: one hop of each crosses, twice.
    assert_eq!((built.setup.flows.len(), across.count()), (12, 4));
    assert!(built.setup.flows.iter().all(|flow| flow.size == Bytes::new(500_000)));
}

#[test]
fn invalid_collectives_are_errors() {
    let entry = |keys: &str| collective(&format!("size = \"1MB\"\n{keys}"));
    let of = |operation: &str, more: &str| entry(&format!("operation = \"{operation}\"\ngroups = [[0, 1, 2]]\n{more}"));
    refused(&entry("groups = [[0, 1]]"), "test.toml:13:1", &["`operation`"]);
    refused(&of("all-gathr", ""), "test.toml:16:13", &["`all-gather`"]);
    refused(
        &of("all-reduce", "algorithm = \"butterfly\""),
        "test.toml:18:13",
        &["\"ring\"", "\"tree\"", "\"halving-doubling\""],
    );
    refused(
        &of("all-gather", "algorithm = \"tree\""),
        "test.toml:18:13",
        &["`tree`", "\"ring\"", "\"halving-doubling\""],
    );
    refused(&of("broadcast", "algorithm = \"halving-doubling\""), "test.toml:18:13", &["\"tree\"", "\"ring\""]);
    refused(&of("all-to-all", "algorithm = \"ring\""), "test.toml:18:13", &["`algorithm`"]);
    refused(&of("pipeline", "algorithm = \"ring\"\nmicrobatches = 2"), "test.toml:18:13", &[]);
    refused(&of("pipeline", ""), "test.toml:16:13", &["`microbatches`", "microbatches = 8"]);
    refused(&of("pipeline", "microbatches = 0"), "test.toml:18:16", &[]);
    refused(&of("all-reduce", "microbatches = 2"), "test.toml:18:16", &["\"pipeline\""]);
    refused(&of("all-reduce", "algorithm = \"halving-doubling\""), "test.toml:17:10", &[]);
    refused(&entry("operation = \"broadcast\"\ngroups = [[0]]"), "test.toml:17:10", &[]);
    refused(&entry("operation = \"broadcast\""), "test.toml:13:1", &["`groups`", "`count`"]);
    refused(&entry("operation = \"broadcast\"\ncount = 1"), "test.toml:17:9", &[]);
    refused(&of("all-to-all", "iterations = 4000000"), "test.toml:18:14", &["4000000", "10000000"]);
    refused(&of("pipeline", "microbatches = 4000000000"), "test.toml:13:1", &["8000000000"]);
    refused(
        &format!("{}\n[sizes]\nsmall = \"0B..1MB\"", of("broadcast", "name = \"small\"")),
        "test.toml:13:1",
        &["`small`"],
    );
}
