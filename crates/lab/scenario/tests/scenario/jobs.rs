//! `[[job]]`: the flows of training, their start, the duration of iterations, and the errors of a wrong job.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use experiment::{Dependency, FlowId, Outcome, Start};
use proptest::prelude::*;
use scenario::{BuiltRun, Error, Overrides, StepKind, parse};
use units::{Bytes, Span, Time};

use crate::location::points_at;

/// Hosts at 10 Gb/s on a switch, 1 us from each: a packet of 4,096 bytes and a header of 64 takes 3,328 ns a link.
fn switch(hosts: u32) -> String {
    format!(
        "name = \"t\"\nstop = \"1000s\"\n[topology]\nkind = \"single-switch\"\nhosts = {hosts}\nrate = \"10Gbps\"\n\
         [port]\nbuffer = \"unlimited\"\necn = \"off\"\n[schemes.a]\nlaw = \"fixed\"\nparams.fixed = {{ window = \"1GB\" }}\n"
    )
}

const PAIR: &str = "name = \"t\"\nstop = \"5s\"\n[topology]\nkind = \"fat-trees\"\nk = 4\ninter_rtt = \"2ms\"\n[schemes.a]\n\
                    law = \"dctcp\"\n";

/// A model with activations of 1 x 128 x 16 x 2 = 4,096 bytes per sequence: one packet.
const MODEL: &str = "params = 80000, layers = 4, hidden = 16, sequence = 128";

fn job(model: &str, parallel: &str, more: &str) -> String {
    format!("[[job]]\nname = \"gpt\"\nmodel = {{ {model} }}\nparallel = {{ {parallel} }}\n{more}\n")
}

fn timed(parallel: &str, more: &str) -> String {
    job(MODEL, parallel, &format!("compute = {{ forward = \"2ms\", backward = \"4ms\" }}\n{more}"))
}

fn build(base: &str, more: &str) -> Result<BuiltRun, Error> {
    parse(&format!("{base}{more}"), "test.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
}

#[track_caller]
fn built(base: &str, more: &str) -> BuiltRun {
    build(base, more).unwrap_or_else(|error| panic!("{error}"))
}

fn run(built: &BuiltRun, threads: usize) -> Outcome {
    engine::run_on(
        &built.setup,
        engine::Threads::always(threads),
        |flow, path| built.laws.make(flow, path),
        &mut |_| true,
    )
}

/// The flows of a job by kind, and their bytes.
fn by_kind(built: &BuiltRun) -> BTreeMap<StepKind, (u64, u64)> {
    let job = &built.jobs[0];
    let mut kinds = BTreeMap::new();
    for (kind, flow) in job.kinds.iter().zip(&built.setup.flows[job.first.0 as usize..]) {
        let (flows, bytes) = kinds.entry(*kind).or_insert((0, 0));
        *flows += 1;
        *bytes += flow.size.get();
    }
    kinds
}

fn ends(built: &BuiltRun, outcome: &Outcome, iteration: usize) -> Time {
    let time_of = |cause: Dependency| {
        let flow = cause.flow().0 as usize;
        let back = built.setup.one_way(built.setup.flows[flow].dst, built.setup.flows[flow].src);
        match cause {
            Dependency::Begun(_) => outcome.flows[flow].started,
            Dependency::Complete(_) => outcome.flows[flow].completed,
            Dependency::Received(_) => outcome.flows[flow].completed - back,
        }
    };
    built.jobs[0].iterations[iteration].ends.iter().map(|&(cause, lag)| time_of(cause) + lag).max().unwrap()
}

/// Two stages, two micro-batches, 2 ms forward and 4 ms backward, and x = 8,656 ns until a packet has come.
///
/// ```text
/// stage 0: F0 0..2, F1 2..4,             B0 8+2x.. 12+2x,  B1 14+2x..18+2x
/// stage 1:      F0 2+x..4+x, B0 4+x..8+x, F1 8+x..10+x, B1 10+x..14+x
/// ```
#[test]
fn a_pipeline_of_two_stages_keeps_its_schedule_to_the_picosecond() {
    let built = built(&switch(2), &timed("pipeline = 2", "placement = \"all\"\nmicro_batches = 2\niterations = 2"));
    let flows = &built.setup.flows;
    assert_eq!(by_kind(&built), BTreeMap::from([(StepKind::Pipeline, (8, 8 * 4_096))]));
    let (ms, x) = (Time::from_ms, Span::from_ns(2 * 3_328 + 2_000));
    let way = |flow: usize| (flows[flow].src.0, flows[flow].dst.0);
    // In the order in which they are made: stage 0 forward twice, then stage 1 backward.
    assert_eq!([0, 1, 2, 3].map(way), [(0, 1), (0, 1), (1, 0), (1, 0)]);
    let outcome = run(&built, 1);
    let starts: Vec<Time> = outcome.flows.iter().map(|flow| flow.started).collect();
    assert_eq!(starts[..4], [ms(2), ms(4), ms(8) + x, ms(14) + x]);
    // Stage 0 has computed on both gradients, one after the other, before it goes on; no flow marks the end of the
    // first.
    let first_end = ms(18) + x + x;
    assert_eq!(ends(&built, &outcome, 0), first_end);
    assert_eq!(starts[4], first_end + Span::from_ms(2));
    assert_eq!(ends(&built, &outcome, 1), ms(36) + x.times(4));
    // (m + p - 1) (f + b), with nothing on the way.
    assert_eq!(built.jobs[0].iterations.iter().map(|it| it.compute).collect::<Vec<_>>(), [Span::from_ms(18); 2]);
}

/// Three stages, four micro-batches: the bubble is that of both schedules, and the order of a stage is the schedule's.
#[test]
fn both_schedules_have_the_same_bubble() {
    let compute = |schedule: &str| {
        let more = format!("placement = \"all\"\nmicro_batches = 4\nschedule = \"{schedule}\"");
        let built = built(&switch(3), &timed("pipeline = 3", &more).replace("layers = 4", "layers = 3"));
        let outcome = run(&built, 1);
        let took = ends(&built, &outcome, 0).since(Time::ZERO);
        let ideal = built.jobs[0].iterations[0].compute;
        assert_eq!(ideal, Span::from_ms((4 + 2) * 6));
        // Each micro-batch crosses four links on the critical path.
        assert!(took > ideal && took - ideal < Span::from_us(100), "{took}");
        // The last stage sends its first gradient when it has seen one micro-batch, or all.
        let first = built.setup.flows.iter().position(|flow| flow.src.0 == 2).unwrap();
        outcome.flows[first].started
    };
    let (one, all) = (compute("1f1b"), compute("gpipe"));
    assert!(all - Span::from_ms(6) >= one, "{one} {all}");
}

/// A stage that computes backward twice with nothing to send after the first waits as long as the sum of both, whichever
/// gradient is late.
#[test]
fn computation_without_a_dependent_flow_takes_time() {
    let more = "placement = [1, 0]\nmicro_batches = 3\nschedule = \"gpipe\"\niterations = 2";
    let built = built(&switch(2), &timed("pipeline = 2", more));
    let next = built.jobs[0].iterations[0].flows as usize;
    let flow = &built.setup.flows[next];
    // The first send of the second iteration waits for three gradients, with two, one and no further computing.
    let Start::Waits { dependencies: causes, after } = flow.start else { panic!("it waits") };
    let waits: Vec<_> =
        built.setup.dependencies_of(flow).iter().map(|&c| (c, built.setup.dependencies.lag(causes, c))).collect();
    let [g0, g1, g2] = [3, 4, 5].map(|flow| Dependency::Received(FlowId(flow)));
    let f2 = Dependency::Begun(FlowId(2));
    let ms = Span::from_ms;
    assert_eq!(waits, [(g0, ms(8)), (g1, ms(4)), (g2, ms(0)), (f2, ms(8))]);
    assert_eq!(after, ms(4 + 2));
    assert_eq!((flow.src.0, built.setup.flows[0].src.0), (1, 1));
}

/// 2 (n - 1) / n of the gradients, by each rank; an iteration takes computing and the steps of the ring.
#[test]
fn copies_sum_up_their_gradients() {
    let built = built(&switch(4), &timed("data = 4", "placement = \"all\"\nmicro_batches = 3\niterations = 2"));
    // 80,000 parameters of 2 bytes, in four parts of 40,000.
    let each = 2 * 3 * 40_000;
    assert_eq!(by_kind(&built), BTreeMap::from([(StepKind::Data, (2 * 24, 2 * 4 * each))]));
    assert_eq!(built.jobs[0].payload, [(StepKind::Data, Bytes::new(4 * each))]);
    assert_eq!(built.setup.flows[0].start, Start::At(Time::from_ms(18)));
    assert_eq!(built.jobs[0].iterations[1].compute, Span::from_ms(18));
    let outcome = run(&built, 1);
    // Nine full packets and one of 3,136 bytes on the first link, the last one on the second. Each rank and each port of the
    // switch also has an acknowledgement for each packet, 64 bytes for 4,160: at most 3.2 % more.
    let packets = Span::from_ns((9 * 4_160 + 3_200) * 8 / 10 + 3_200 * 8 / 10 + 2_000);
    let took = ends(&built, &outcome, 0).since(Time::from_ms(18));
    let steps = packets.times(6);
    assert!(took >= steps && took.ps() < steps.ps() * 1_032 / 1_000, "{took}, not {steps}");
}

#[test]
fn a_layer_has_two_all_reduces_each_way() {
    let keys = "placement = \"all\"\nmicro_batches = 3\nbatch = 2";
    let built = built(&switch(8), &timed("tensor = 4, data = 2", keys));
    let kinds = by_kind(&built);
    // 4 layers x 2 x 2 x 3 micro-batches x 2 copies, each of 24 flows, of a quarter of 8,192 bytes.
    assert_eq!(kinds[&StepKind::Tensor], (4 * 4 * 3 * 2 * 24, 4 * 4 * 3 * 2 * 24 * 2_048));
    // A rank has a quarter of the gradients, and sends half of that twice.
    assert_eq!(kinds[&StepKind::Data], (4 * 4, 4 * 4 * 20_000));
    // The first all-reduce begins after half of the first of four layers.
    assert_eq!(built.setup.flows[0].start, Start::At(Time::from_us(250)));
    assert_eq!(built.jobs[0].iterations[0].compute, Span::from_ms(18));
    let tree = by_kind(&super_built("collectives = { tensor = \"tree\", data = \"halving-doubling\" }\n", keys));
    assert_eq!(tree[&StepKind::Tensor], (4 * 4 * 3 * 2 * 6, 4 * 4 * 3 * 2 * 6 * 8_192));
    // Of a host each, groups make no flows; their all-reduces take 2 x 3/4 of 8,192 bytes at 2.4 Tb/s = 40.96 ns.
    let inside = super_built("ranks_per_host = 4\n", "placement = [3, 5]\nmicro_batches = 3\nbatch = 2");
    assert_eq!(by_kind(&inside), BTreeMap::from([(StepKind::Data, (16, 4 * 4 * 20_000))]));
    let local = Span::from_ps(40_960).times(4 * 4 * 3);
    assert_eq!(inside.jobs[0].iterations[0].compute, Span::from_ms(18) + local);
    assert_eq!(inside.setup.flows[0].start, Start::At(Time::from_ms(18) + local));
    assert!(inside.setup.flows.iter().all(|flow| flow.src.0 + flow.dst.0 == 8));
}

fn super_built(collectives: &str, keys: &str) -> BuiltRun {
    built(&switch(8), &timed("tensor = 4, data = 2", &format!("{collectives}{keys}")))
}

/// Four all-to-alls a layer and micro-batch: dispatch and combine, forward and backward.
#[test]
fn expert_all_to_all_in_both_directions() {
    let model =
        "params = 100000, layers = 2, hidden = 16, sequence = 128, experts = 4, top_k = 2, expert_params = 80000";
    let more = "placement = \"all\"\nmicro_batches = 3\ncompute = { forward = \"2ms\", backward = \"4ms\" }";
    let experts = |expert: u32| by_kind(&built(&switch(4), &job(model, &format!("data = 4, expert = {expert}"), more)));
    // Two groups of two ranks; each rank sends half of 2 x 4,096 bytes to the other one.
    let two = experts(2);
    assert_eq!(two[&StepKind::Expert], (4 * 2 * 3 * 4, 4 * 2 * 3 * 4 * 4_096));
    // All sum up 20,000 parameters of 2 bytes; those with the same experts half of 80,000.
    assert_eq!(two[&StepKind::Data], (24 + 2 * 4, 4 * 6 * 10_000 + 2 * 4 * 40_000));
    let four = experts(4);
    assert_eq!(four[&StepKind::Expert], (4 * 2 * 3 * 12, 4 * 2 * 3 * 12 * 2_048));
    assert_eq!(four[&StepKind::Data], (24, 4 * 6 * 10_000));
    // All experts everywhere: nothing to exchange, all to sum up.
    let one = experts(1);
    assert!(!one.contains_key(&StepKind::Expert));
    assert_eq!(one[&StepKind::Data], (48, 4 * 6 * (10_000 + 40_000)));
}

/// 2 operations a parameter and token forward, twice that backward; the embedding counts where it is multiplied.
#[test]
fn computing_follows_from_operations() {
    let keys = "placement = \"all\"\nmicro_batches = 1\nbatch = 2\nflops = \"1TFLOPS\"";
    let of = |model: &str, keys: &str| built(&switch(4), &job(model, "pipeline = 2, tensor = 2", keys));
    let model = "params = 1000000, layers = 2, hidden = 16, sequence = 100";
    // 2 x 500,000 x 200 / 2 ranks: 100 us a stage forward, twice that backward, of two stages.
    assert_eq!(of(model, keys).jobs[0].iterations[0].compute, Span::from_us(600));
    // 160,000 of them are the embedding: 84 us and 84 + 32 us forward.
    let with_vocabulary = format!("{model}, vocabulary = 10000");
    let built = of(&with_vocabulary, keys);
    assert_eq!(built.jobs[0].iterations[0].compute, Span::from_us(3 * (84 + 116)));
    // Both ends send a half of it to each other, twice: of 2 ranks each, 160,000 / 2 parameters of 2 bytes.
    assert_eq!(by_kind(&built)[&StepKind::Embedding], (8, 8 * 80_000));
}

/// Ranks of a tensor group are neighbours; then come copies, or stages.
#[test]
fn ranks_fill_hosts_in_order() {
    let pairs = |more: &str, kind: StepKind| {
        let parallel = "tensor = 2, pipeline = 2, data = 2";
        let built = built(&switch(8), &timed(parallel, &format!("micro_batches = 2\n{more}")));
        let flows = built.setup.flows.iter().zip(&built.jobs[0].kinds).filter(|(_, known)| **known == kind);
        let mut pairs: Vec<(u32, u32)> = flows.map(|(flow, _)| (flow.src.0, flow.dst.0)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    };
    let both = |pairs: [(u32, u32); 4]| {
        let mut both: Vec<(u32, u32)> = pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        both.sort_unstable();
        both
    };
    let (near, middle, far) =
        ([(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 2), (1, 3), (4, 6), (5, 7)], [(0, 4), (1, 5), (2, 6), (3, 7)]);
    let all = "placement = \"all\"";
    let kinds = [StepKind::Tensor, StepKind::Data, StepKind::Pipeline];
    assert_eq!(kinds.map(|kind| pairs(all, kind)), [near, middle, far].map(both));
    let data = "placement = \"0..8\"\noutermost = \"data\"";
    assert_eq!(kinds.map(|kind| pairs(data, kind)), [near, far, middle].map(both));
    let shuffled = |seed| pairs(&format!("{all}\nshuffle = true\nseed = {seed}"), StepKind::Tensor);
    assert_ne!(shuffled(1), shuffled(2));
    assert_eq!(shuffled(7), shuffled(7));
}

/// Six hosts of one datacenter and two of the other, and another job next to it.
#[test]
fn concurrent_jobs_on_unequal_datacenters() {
    let first =
        timed("data = 2, pipeline = 4", "placement = [\"dc0.0..6\", \"dc1.0..2\"]\nmicro_batches = 4\niterations = 2");
    let second = timed(
        "data = 2",
        "placement = [\"dc0.host6\", \"dc1.host9\"]\nmicro_batches = 1\nstart = \"3ms\"\ntraffic_class = 2",
    )
    .replace("\"gpt\"", "\"small\"");
    let list = "[[traffic]]\nkind = \"list\"\nflows = [{ src = 1, dst = 2, size = 1000 }]\n";
    let built = built(PAIR, &format!("{list}{first}{second}"));
    assert_eq!(
        built.jobs.iter().map(|job| (job.name.as_str(), job.first.0, job.ranks, job.hosts)).collect::<Vec<_>>(),
        [("gpt", 1, 8, 8), ("small", 1 + 2 * (2 * 3 * 2 * 4 + 4 * 4), 2, 2)]
    );
    let small = built.jobs[1].first.0 as usize;
    assert_eq!(built.setup.flows[small].start, Start::At(Time::from_ms(3 + 6)));
    assert_eq!((built.setup.flows[small].class, built.traffic[small], built.traffic[1]), (2, 2, 1));
    assert_eq!(built.collectives.len(), 3);
    let one = run(&built, 1);
    assert!(one.flows.iter().all(|flow| flow.completed.is_set()));
    let mut two = run(&built, 2);
    two.engine.threads = one.engine.threads;
    assert!(one == two, "two threads differ from one");
}

/// A job that is written reads back as the same job.
#[test]
fn a_job_is_written_as_it_is_read() {
    let model = "params = 100000, layers = 2, hidden = 16, sequence = 128, experts = 4, top_k = 2, vocabulary = 100";
    let keys = "placement = [\"dc0.0..2\", 2, \"host3\"]\nmicro_batches = 3\nflops = \"1.5TFLOPS\"\nseed = 3\nshuffle = true\n\
                intra_host_rate = \"1Tbps\"\nschedule = \"gpipe\"\noutermost = \"data\"\nconnections = \"persistent\"";
    let text = format!("{}{}", switch(4), job(model, "data = 4, expert = 2", keys));
    let read = |text: &str| parse(text, "test.toml", &Overrides::default()).unwrap().runs()[0].clone();
    let first = read(&text);
    let reparsed = read(&scenario::toml_of(&first.config.to_json()));
    assert_eq!(first.config.job, reparsed.config.job);
    assert_eq!(first.build().unwrap().setup.flows, reparsed.build().unwrap().setup.flows);
}

#[derive(Clone, Debug)]
struct Any {
    t: u32,
    p: u32,
    d: u32,
    e: u32,
    layers: u32,
    micro_batches: u32,
    keys: String,
    plans: [&'static str; 2],
    inside: bool,
    vocabulary: bool,
    experts: bool,
}

fn any_job() -> impl Strategy<Value = Any> {
    let degrees = (0..3u32, 1..4u32, 0..3u32, 0..3u32);
    let plans = prop_oneof![Just("ring"), Just("tree"), Just("halving-doubling")];
    let words = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (degrees, 1..3u32, 1..5u32, [plans.clone(), plans], words, 1..3u32).prop_filter_map(
        "sends nothing",
        |((t, p, d, e), layers, micro_batches, plans, (inside, vocabulary, experts, gpipe, data), iterations)| {
            let (t, d, e) = (1 << t, 1 << d, 1 << e.min(d));
            let e = if experts { e } else { 1 };
            let (schedule, outermost) = (if gpipe { "gpipe" } else { "1f1b" }, if data { "data" } else { "pipeline" });
            let keys = format!("schedule = \"{schedule}\"\noutermost = \"{outermost}\"\niterations = {iterations}");
            let sends = p * d > 1 || (t > 1 && !inside);
            sends.then_some(Any { t, p, d, e, layers, micro_batches, keys, plans, inside, vocabulary, experts })
        },
    )
}

fn all_reduce(plan: &str, n: u64, size: u64) -> u64 {
    match plan {
        _ if n == 1 => 0,
        "tree" => 2 * (n - 1) * size,
        _ => 2 * n * (n - 1) * size.div_ceil(n),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Flows depend only on earlier ones, all of them have a dependency, and each kind has the bytes of its formula.
    #[test]
    fn jobs_are_acyclic_and_send_the_bytes_of_the_formulas(any in any_job()) {
        let Any { t, p, d, e, layers, micro_batches, ref keys, plans, inside, vocabulary, experts } = any;
        let mut model = format!("params = 1000003, layers = {}, hidden = 32, sequence = 100", layers * p);
        if vocabulary { model += ", vocabulary = 1000"; }
        if experts { model += ", experts = 8, expert_params = 500001"; }
        let per_host = if inside { t } else { 1 };
        let text = job(&model, &format!("tensor = {t}, pipeline = {p}, data = {d}, expert = {e}"), &format!(
            "{keys}\nmicro_batches = {micro_batches}\nplacement = \"all\"\nranks_per_host = {per_host}\nflops = \"1GFLOPS\"\n\
             collectives = {{ tensor = \"{}\", data = \"{}\" }}", plans[0], plans[1]));
        let built = build(&switch(t * p * d / per_host), &text).unwrap();
        let job = &built.jobs[0];
        prop_assert_eq!(job.kinds.len(), built.setup.flows.len());
        prop_assert_eq!(job.iterations.iter().map(|it| it.flows).sum::<u32>() as usize, built.setup.flows.len());
        for (number, flow) in (0u32..).zip(&built.setup.flows) {
            prop_assert!(flow.src != flow.dst && !flow.size.is_zero());
            for &cause in built.setup.dependencies_of(flow) {
                prop_assert!(cause.flow().0 < number, "flow {} waits for {:?}", number, cause);
                prop_assert_eq!(built.setup.location_of(cause), flow.src);
            }
        }
        let [t, p, d, e, layers, m] = [t, p, d, e, layers, micro_batches].map(u64::from);
        let activations = 100 * 32 * 2u64;
        let of_experts: u64 = if experts { 500_001 } else { 0 };
        let embedding: u64 = if vocabulary { 32_000 } else { 0 };
        let stage = (1_000_003 - of_experts - embedding).div_ceil(p);
        let gradients = |ends: bool| 2 * (stage + if ends { embedding } else { 0 }).div_ceil(t);
        let mut expected = BTreeMap::new();
        if !inside {
            expected.insert(StepKind::Tensor, 4 * layers * p * m * d * all_reduce(plans[0], t, activations));
        }
        expected.insert(StepKind::Pipeline, 2 * (p - 1) * m * t * d * activations);
        expected.insert(StepKind::Expert, 4 * layers * p * m * t * (d / e) * e * (e - 1) * activations.div_ceil(e));
        let sum: u64 = (0..p).map(|s| all_reduce(plans[1], d, gradients(s == 0 || s + 1 == p))).sum();
        let experts_of = if experts { 2 * of_experts.div_ceil(p).div_ceil(t * e) } else { 0 };
        expected.insert(StepKind::Data, t * (sum + p * e * all_reduce(plans[1], d / e, experts_of)));
        if vocabulary && p > 1 {
            expected.insert(StepKind::Embedding, t * d * all_reduce("ring", 2, 2 * embedding.div_ceil(t)));
        }
        expected.retain(|_, bytes| *bytes > 0);
        let payload: BTreeMap<StepKind, u64> = job.payload.iter().map(|(kind, bytes)| (*kind, bytes.get())).collect();
        prop_assert_eq!(&payload, &expected);
        let iterations = job.iterations.len() as u64;
        let all: BTreeMap<StepKind, u64> = by_kind(&built).into_iter().map(|(kind, (_, bytes))| (kind, bytes)).collect();
        prop_assert_eq!(all, expected.into_iter().map(|(kind, bytes)| (kind, bytes * iterations)).collect());
        // It ends, and not before its computing.
        let outcome = run(&built, 1);
        let mut begins = Time::ZERO;
        for (number, iteration) in job.iterations.iter().enumerate() {
            let end = ends(&built, &outcome, number);
            prop_assert!(end.is_set() && end.since(begins) >= iteration.compute || number > 0);
            begins = end;
        }
        let compute = job.iterations.iter().fold(Time::ZERO, |sum, iteration| sum + iteration.compute);
        prop_assert!(begins >= compute);
    }
}

#[track_caller]
fn refused(hosts: u32, more: &str, location: &str, names: &[&str]) {
    points_at(&build(&switch(hosts), more).expect_err(more), location, names);
}

#[test]
fn invalid_jobs_are_errors() {
    let keys = "placement = \"all\"\nmicro_batches = 4";
    refused(6, &timed("tensor = 2, pipeline = 2, data = 2", keys), "test.toml:18:13", &["`placement`"]);
    refused(6, &timed("pipeline = 3, data = 2", keys), "test.toml:15:36", &["`layers`", "`pipeline`"]);
    refused(3, &timed("tensor = 3", keys), "test.toml:15:48", &["`hidden`", "16", "`tensor`"]);
    refused(4, &timed("data = 4, expert = 3", keys), "test.toml:16:21", &["`data`", "`expert`"]);
    refused(
        4,
        &timed("data = 4, expert = 2", keys),
        "test.toml:16:33",
        &["expert = 2, and the model has no experts", "`experts`"],
    );
    let compute = format!("{keys}\ncompute = {{ forward = \"2ms\", backward = \"4ms\" }}");
    let of = |model: &str, parallel: &str| job(&format!("{MODEL}, {model}"), parallel, &compute);
    refused(4, &of("experts = 3", "data = 4, expert = 2"), "test.toml:15:78", &["`experts`", "`expert`"]);
    refused(4, &of("experts = 2, top_k = 3", "data = 4"), "test.toml:15:89", &[]);
    refused(4, &of("top_k = 3", "data = 4"), "test.toml:15:76", &["`experts`"]);
    refused(4, &of("vocabulary = 10000", "data = 4"), "test.toml:15:20", &["80000", "160000"]);
    refused(4, &of("experts = 20", "data = 4"), "test.toml:15:20", &["163840"]);
    refused(4, &job(&MODEL.replace("80000", "0"), "data = 4", &compute), "test.toml:15:20", &[]);
    refused(
        2,
        &timed("data = 1", "placement = 0\nmicro_batches = 4"),
        "test.toml:18:13",
        &["`gpt`", "`tensor`", "`pipeline`", "`data`"],
    );
    refused(
        3,
        &timed("data = 3", &format!("{keys}\ncollectives = {{ data = \"halving-doubling\" }}")),
        "test.toml:20:24",
        &["\"ring\"", "\"tree\""],
    );
    refused(
        4,
        &timed("data = 4", &format!("{keys}\ncollectives = {{ expert = \"ring\" }}")),
        "test.toml:20:17",
        &["`expert`"],
    );
    refused(4, &job(MODEL, "data = 4", keys), "test.toml:13:1", &["`compute`", "`flops`", "flops = \"400TFLOPS\""]);
    refused(4, &timed("data = 4", &format!("{keys}\nflops = \"1TFLOPS\"")), "test.toml:20:9", &[]);
    refused(4, &job(MODEL, "data = 4", &format!("{keys}\nflops = \"1Tflops\"")), "test.toml:19:9", &["`TFLOPS`"]);
    refused(4, &job(MODEL, "data = 4", &format!("{keys}\nflops = \"0FLOPS\"")), "test.toml:19:9", &[]);
    refused(
        4,
        &timed("tensor = 2, data = 4", &format!("{keys}\nranks_per_host = 4")),
        "test.toml:20:18",
        &["ranks_per_host = 4, and `tensor` is 2"],
    );
    let with_placement = |placement: &str| timed("data = 2", &format!("placement = {placement}\nmicro_batches = 4"));
    refused(4, &with_placement("[0, \"host0\"]"), "test.toml:18:17", &["`host0`", "`placement`"]);
    refused(4, &with_placement("\"3..5\""), "test.toml:18:13", &["3..5", "0..4"]);
    refused(4, &with_placement("\"dc1.0..2\""), "test.toml:18:13", &[]);
    refused(4, &with_placement("\"dc0.0..9\""), "test.toml:18:13", &["0..9"]);
    refused(4, &with_placement("\"5..5\""), "test.toml:18:13", &["\"0..16\"", "\"5..5\""]);
    refused(4, &with_placement("[0, \"hst1\"]"), "test.toml:18:17", &["`hst1`", "`host1`"]);
    refused(2, &with_placement("[0, 7]"), "test.toml:18:17", &[]);
    let many = |more: &str| timed("tensor = 2, data = 2", &format!("placement = \"all\"\n{more}"));
    // 4 layers x 4 x 2 copies x 10 micro-batches x 4 flows, and 2 x 4.
    refused(4, &many("micro_batches = 10\niterations = 10000"), "test.toml:20:14", &["1288", "7763", "10000000"]);
    refused(4, &many("micro_batches = 200000"), "test.toml:19:17", &["10000000", "`micro_batches`"]);
    // Without flows for each: 2 ranks, forward and backward.
    let alone = timed("data = 2", "placement = \"0..2\"\nmicro_batches = 4000000000");
    refused(4, &alone, "test.toml:19:17", &["4000000000", "25000000"]);
    let layers =
        timed("data = 2", "placement = \"0..2\"\nmicro_batches = 4").replace("layers = 4", "layers = 4000000000");
    assert_eq!(built(&switch(4), &layers).setup.flows.len(), 4);
    refused(4, &many("micro_batches = 0"), "test.toml:19:17", &[]);
    let two = format!("{}{}", with_placement("\"0..2\""), with_placement("\"2..4\""));
    refused(4, &two, "test.toml:21:8", &["`gpt`"]);
    let list = "[[traffic]]\nkind = \"list\"\nname = \"gpt\"\nflows = [{ src = 1, dst = 2, size = 1000 }]\n";
    refused(4, &format!("{list}{}", with_placement("\"0..2\"")), "test.toml:18:8", &["`gpt`"]);
    refused(4, &with_placement("\"0..2\"").replace("\"gpt\"", "\"inter\""), "test.toml:14:8", &[]);
    refused(4, "", "nowhere", &["[[job]]"]);
    let few = built(&switch(4), &timed("pipeline = 4", "placement = \"all\"\nmicro_batches = 3"));
    assert!(few.warnings[0].contains("job `gpt` has 3 micro-batches and 4 stages"), "{:?}", few.warnings);
}

/// The scenario that is shipped, with less data: a failure loses packets, all flows end all the same, and the bits do not depend
/// on threads.
#[test]
fn sixty_four_ranks_survive_a_link_failure() {
    let text = include_str!("../../../../../scenarios/gpt-64.toml");
    let sizes = [
        ("job.0.model.sequence", "32"),
        ("job.0.model.params", "4000000"),
        ("job.0.micro_batches", "4"),
        ("job.0.iterations", "1"),
        ("failure.0.at", "10ms"),
    ];
    let set = sizes.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let scenario = parse(text, "gpt-64.toml", &Overrides { set, ..Overrides::default() }).unwrap();
    for scheme in scenario.runs() {
        let built = scheme.build().unwrap();
        assert!(built.warnings.is_empty(), "{:?}", built.warnings);
        // Two stages in each datacenter: only transfers after the second one cross, from 16 ranks, four times each way.
        let network = &built.setup.network;
        let crosses = |flow: &&experiment::FlowSpec| network.datacenter_of(flow.src) != network.datacenter_of(flow.dst);
        assert_eq!(built.setup.flows.iter().filter(crosses).count(), 2 * 16 * 4);
        let one = run(&built, 1);
        assert!(one.flows.iter().all(|flow| flow.completed.is_set()), "{}", scheme.id);
        assert!(one.links.iter().any(|link| link.lost.data > 0), "{}: nothing met the failure", scheme.id);
        assert!(ends(&built, &one, 0).since(Time::ZERO) > built.jobs[0].iterations[0].compute);
        let mut two = run(&built, 2);
        two.engine.threads = one.engine.threads;
        assert!(one == two, "{}: two threads differ from one", scheme.id);
    }
}

/// The GOAL schedule of a pipeline, written from the definition of the schedule (Narayanan et al., §2.2.1): the sequence of
/// operations of a stage; activations are sent to the next stage and gradients to the previous one. Computing is in
/// nanoseconds.
#[cfg(feature = "import")]
fn goal(stages: u64, micro: u64, one_f_one_b: bool, size: u64, forward: u64, backward: u64) -> String {
    use std::fmt::Write as _;
    let mut text = format!("num_ranks {stages}\n");
    for stage in 0..stages {
        let warm = if one_f_one_b { micro.min(stages - 1 - stage) } else { micro };
        let mut order: Vec<(char, u64)> = (0..warm).map(|batch| ('f', batch)).collect();
        for batch in warm..micro {
            order.extend([('f', batch), ('b', batch - warm)]);
        }
        order.extend((micro - warm..micro).map(|batch| ('b', batch)));
        let _ = writeln!(text, "rank {stage} {{");
        for (index, &(way, batch)) in order.iter().enumerate() {
            let (from, to, time, tag) = match way {
                'f' => (stage.checked_sub(1), Some(stage + 1).filter(|&to| to < stages), forward, 2 * batch),
                _ => (Some(stage + 1).filter(|&to| to < stages), stage.checked_sub(1), backward, 2 * batch + 1),
            };
            let _ = writeln!(text, "c{way}{batch}: calc {time}");
            if let Some((way_before, before)) = index.checked_sub(1).map(|before| order[before]) {
                let _ = writeln!(text, "c{way}{batch} requires c{way_before}{before}");
            }
            if let Some(from) = from {
                let _ = writeln!(text, "r{way}{batch}: recv {size}b from {from} tag {tag}");
                let _ = writeln!(text, "c{way}{batch} requires r{way}{batch}");
            }
            if let Some(to) = to {
                let _ = writeln!(text, "s{way}{batch}: send {size}b to {to} tag {tag}");
                let _ = writeln!(text, "s{way}{batch} requires c{way}{batch}");
            }
        }
        text.push_str("}\n");
    }
    text
}

/// A job and the imported GOAL of the same job are the same flows at the same times.
#[cfg(feature = "import")]
#[test]
fn job_equals_its_imported_goal_schedule() {
    for (stages, micro, schedule) in [(2, 2, "1f1b"), (4, 6, "1f1b"), (3, 5, "gpipe"), (4, 2, "1f1b"), (5, 7, "gpipe")]
    {
        let keys = format!("placement = \"all\"\nmicro_batches = {micro}\nschedule = \"{schedule}\"");
        let model = timed(&format!("pipeline = {stages}"), &keys).replace("layers = 4", &format!("layers = {stages}"));
        let base = switch(stages as u32);
        let built_job = built(&base, &model);
        let size = built_job.setup.flows[0].size.get();
        let text = goal(stages, micro, schedule == "1f1b", size, 2_000_000, 4_000_000);
        let network = format!("{base}[[traffic]]\nkind = \"permutation\"\nsize = 1\n");
        let imported = scenario::import::import_goal(
            text.as_bytes(),
            &scenario::import::GoalOptions { placement: scenario::import::Placement::Packed, eager: "0B" },
            Some(&scenario::import::Base { text: &network, name: "base.toml" }),
            &scenario::import::TrafficNames { scenario: "goal", traffic: "a.goal" },
        );
        let imported = imported.unwrap_or_else(|error| panic!("{error}"));
        let built_goal = built(&imported.toml, "");
        let times = |built: &BuiltRun| {
            let outcome = run(built, 1);
            let flows = built.setup.flows.iter().zip(outcome.flows);
            let mut times: Vec<_> =
                flows.map(|(flow, end)| (end.started, flow.src.0, flow.dst.0, flow.size, end.completed)).collect();
            times.sort_unstable();
            times
        };
        let (job, goal) = (times(&built_job), times(&built_goal));
        assert_eq!(job.len() as u64, 2 * (stages - 1) * micro);
        assert_eq!(job, goal, "{stages} stages, {micro} micro-batches, {schedule}");
    }
}
