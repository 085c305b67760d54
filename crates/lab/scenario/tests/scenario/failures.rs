//! `[[failure]]`, `loss_bursts` and `kind = "allreduce"`: the outages, losses and flows, and the errors of wrong ones.
#![allow(clippy::unwrap_used)]

use experiment::{Dependency, FlowId, Start};
use fabric::{HostId, LinkClass};
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Frac, Span, Time};

use crate::location::points_at;

const PAIR: &str = "name = \"t\"\nstop = \"10ms\"\n[topology]\nkind = \"fat-trees\"\nk = 4\ninter_rtt = \"2ms\"\n[schemes.a]\n\
                    law = \"dctcp\"\n";
const SENT: &str = "[[traffic]]\nkind = \"long\"\nflows = [[0, 20]]\nsize = \"1MB\"\n";

fn build(more: &str) -> Result<BuiltRun, Error> {
    parse(&format!("{PAIR}{more}"), "test.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
}

#[track_caller]
fn built(more: &str) -> BuiltRun {
    build(more).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(more: &str, location: &str, names: &[&str]) {
    points_at(&build(more).expect_err(more), location, names);
}

#[test]
fn cables_fail_both_ways_and_routes_avoid_them() {
    let failure =
        "[[failure]]\nports = [\"class:inter\"]\ncount = 1\nat = \"1ms\"\nuntil = \"3ms\"\nreroute = \"500us\"\n";
    let built = built(&format!("{SENT}{failure}"));
    let network = &built.setup.network;
    let failing: Vec<_> = network.failing().collect();
    assert_eq!(failing.len(), 2);
    assert_eq!(network.links()[failing[0].0.index()].reverse, failing[1].0);
    assert_eq!(failing[0].1.spans().collect::<Vec<_>>(), [(Time::from_ms(1), Time::from_ms(3))]);
    // Routes at the border change at 1.5 ms, and back at 3.5 ms.
    let border = network.links()[failing[0].0.index()].from;
    let towards = (0..network.hosts().len() as u32).map(HostId);
    let other = network.links()[failing[0].0.index()].to;
    let far = towards.clone().find(|&host| network.datacenter_of(host) == network.nodes()[other.index()].datacenter);
    let port_count = |us: u64| built.setup.routes.at(Time::from_us(us)).from(border).ports(far.unwrap()).len();
    let all = network.links().iter().filter(|link| link.class == LinkClass::Inter).count() / 2;
    assert_eq!([1_400, 1_500, 3_499, 3_500].map(port_count), [all, all - 1, all - 1, all]);
}

#[test]
fn links_flap_until_the_stop() {
    let failure =
        "[[failure]]\nports = [\"class:inter\"]\nboth = false\nat = \"1ms\"\nuntil = \"2ms\"\nevery = \"4ms\"\n";
    let built = built(&format!("{SENT}{failure}"));
    for (_, outages) in built.setup.network.failing() {
        let down: Vec<_> = outages.spans().map(|(from, _)| from).collect();
        assert_eq!(down, [Time::from_ms(1), Time::from_ms(5), Time::from_ms(9)]);
    }
}

#[test]
fn invalid_failures_are_errors() {
    let failure = |keys: &str| format!("{SENT}[[failure]]\n{keys}\n");
    refused(&failure("ports = [\"class:intre\"]"), "test.toml:14:10", &["`intre`"]);
    refused(&failure("ports = [\"class:other\"]"), "test.toml:14:10", &["\"class:other\""]);
    for name in ["receiver", "dc0.nothing>dc0.nowhere"] {
        let message = build(&failure(&format!("ports = [\"{name}\"]"))).expect_err(name).to_string();
        assert!(message.contains(&format!("unknown port `{name}`")), "{message}");
        assert!(message.contains("`from>to` or `class:inter`") && !message.contains("or `receiver`"), "{message}");
    }
    refused(&failure("ports = []"), "test.toml:14:9", &[]);
    refused(&failure("ports = [\"class:inter\"]\ncount = 99"), "test.toml:15:9", &["99"]);
    refused(&failure("ports = [\"class:inter\"]\nat = \"2ms\"\nuntil = \"1ms\""), "test.toml:16:9", &["`at`"]);
    refused(&failure("ports = [\"class:inter\"]\nevery = \"1ms\""), "test.toml:15:9", &["`until`"]);
    refused(
        &failure("ports = [\"class:inter\"]\nuntil = \"2ms\"\nevery = \"1ms\""),
        "test.toml:16:9",
        &["2.000 ms", "1.000 ms"],
    );
    refused(&failure("ports = [\"class:inter\"]\nreroute = \"1ms\""), "test.toml:15:11", &[]);
}

#[test]
fn a_failure_after_the_stop_is_warned_of() {
    let failing = |at: &str| built(&format!("{SENT}[[failure]]\nports = [\"class:inter\"]\nat = \"{at}\"\n"));
    let warned = |at: &str| failing(at).warnings;
    assert_eq!((failing("10ms").report.failing, failing("10ms").report.outages), (0, 0));
    assert!(failing("9ms").report.failing > 0);
    assert!(warned("10ms").iter().any(|it| it.contains("failure.0 begins at 10.000 ms")), "{:?}", warned("10ms"));
    assert_eq!(warned("9ms"), [""; 0]);
}

#[test]
fn losses_come_in_bursts() {
    let port = "[port]\nloss_bursts = { rates = [0.0003, 0.000075] }\n[port.inter]\nloss_bursts = \"off\"\n";
    let built = built(&format!("{port}{SENT}"));
    for link in built.setup.network.links() {
        let bursts = built.setup.network.params()[usize::from(link.params)].config().bursts;
        if link.class == LinkClass::Edge {
            let bursts = bursts.unwrap();
            assert_eq!((bursts.group, bursts.losses[1]), (10, Frac::millionths(75)));
        } else if link.class == LinkClass::Inter {
            assert_eq!(bursts, None);
        }
    }
    let wrong = |table: &str| format!("[port]\nloss_bursts = {table}\n{SENT}");
    refused(&wrong("{ group = 65, rates = [0.1] }"), "test.toml:10:25", &["65", "64"]);
    refused(&wrong("{ group = 1, rates = [0.1, 0.1] }"), "test.toml:10:36", &[]);
    refused(&wrong("{ rates = [0.6, 0.6] }"), "test.toml:10:25", &["1.200000"]);
    refused(&wrong("true"), "test.toml:10:15", &["\"off\""]);
}

/// Two ranks: a half each way, then a half each way; the next iteration begins a while after the last has come.
#[test]
fn an_allreduce_of_two_is_two_exchanges() {
    let job =
        "[[traffic]]\nkind = \"allreduce\"\ngroups = [[0, 20]]\nsize = \"1MB\"\niterations = 2\ncompute = \"5us\"\n";
    let built = built(job);
    let flows = &built.setup.flows;
    assert_eq!(built.collectives.len(), 2);
    assert_eq!(built.collectives[1], [4, 5, 6, 7].map(FlowId));
    assert!(flows.iter().all(|flow| flow.size == Bytes::new(500_000)));
    let at = |flow: usize| flows[flow].start;
    assert_eq!((at(0), at(1)), (Start::At(Time::ZERO), Start::At(Time::ZERO)));
    let in_turn = |flow: usize| {
        let Start::Waits { after, .. } = at(flow) else { panic!("flow {flow} waits") };
        (built.setup.dependencies_of(&flows[flow]).to_vec(), after)
    };
    let waits = |received, begun, after_us| {
        (vec![Dependency::Received(FlowId(received)), Dependency::Begun(FlowId(begun))], Span::from_us(after_us))
    };
    assert_eq!((in_turn(2), in_turn(3)), (waits(1, 0, 0), waits(0, 1, 0)));
    assert_eq!((in_turn(4), in_turn(5)), (waits(3, 2, 5), waits(2, 3, 5)));
    // Both dependencies of a flow are met at the host that sends it.
    for flow in flows {
        assert!(built.setup.dependencies_of(flow).iter().all(|&cause| built.setup.location_of(cause) == flow.src));
    }
}

/// One direction loses packets, so one rank's data is repeatedly late. No iteration begins before all data of the iteration
/// before the last has arrived: ranks that only reacted to their neighbours' steps would drift apart.
#[test]
fn ranks_stay_together_where_one_direction_is_slow() {
    let lossy = "[port]\nloss_bursts = { group = 1, rates = [0.02] }\n[port.inter]\nloss_bursts = \"off\"\n";
    let job = "[[traffic]]\nkind = \"allreduce\"\ngroups = [[0, 20]]\nsize = \"400KB\"\niterations = 30\n";
    let longer = |text: &str| text.replace("stop = \"10ms\"", "stop = \"20s\"");
    let scenario = parse(&longer(&format!("{PAIR}{lossy}{job}")), "test.toml", &Overrides::default()).unwrap();
    let built = scenario.runs()[0].build().unwrap();
    let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
    let flow = |id: &FlowId| &outcome.flows[id.0 as usize];
    let mut ends = Vec::new();
    for (number, flows) in built.collectives.iter().enumerate() {
        let begins = flows.iter().map(|id| flow(id).started).min().unwrap();
        // An acknowledgement takes a millisecond.
        let late = number.checked_sub(2).map(|before: usize| ends[before] - Span::from_ms(1));
        assert!(late.is_none_or(|end| begins >= end), "iteration {number} begins at {begins}");
        ends.push(flows.iter().map(|id| flow(id).completed).max().unwrap());
    }
    assert!(outcome.flows.iter().any(|flow| flow.stats.retransmits > 0) && ends[29].is_set());
}

/// Two jobs, each with its own ranks, size and start: their iterations follow one another within a job alone.
#[test]
fn concurrent_jobs() {
    let job = |groups: &str, more: &str| {
        format!("[[traffic]]\nkind = \"allreduce\"\ngroups = {groups}\niterations = 3\n{more}\n")
    };
    let first = job("[[0, 20]]", "size = \"1MB\"");
    let second = job("[[1, 21]]", "size = \"2MB\"\nstart = \"3ms\"\ncompute = \"5us\"");
    let built = built(&format!("{first}\n{second}"));
    assert_eq!(built.collectives.len(), 6);
    let hosts = built.setup.network.hosts();
    for (number, collective) in built.collectives.iter().enumerate() {
        let (ranks, half, begins) = if number < 3 { ([0, 20], 500_000, 0) } else { ([1, 21], 1_000_000, 3) };
        for id in collective {
            let flow = &built.setup.flows[id.0 as usize];
            assert_eq!(flow.size, Bytes::new(half));
            assert!(ranks.iter().any(|&rank| hosts[rank] == hosts[flow.src.index()]));
            match flow.start {
                Start::At(time) => assert_eq!((time, number % 3), (Time::from_ms(begins), 0)),
                Start::Waits { .. } => {
                    let own = if number < 3 { 0..3 } else { 3..6 };
                    for cause in built.setup.dependencies_of(flow) {
                        let before = cause.flow();
                        assert!(
                            own.clone().any(|it| built.collectives[it].contains(&before)),
                            "{before:?} is the other's"
                        );
                    }
                }
            }
        }
    }
}

/// Results call iterations by the job's name.
#[test]
fn job_names_must_differ_from_flow_names() {
    let job = |name: &str| {
        format!(
            "[[traffic]]\nkind = \"allreduce\"\ngroups = [[0, 20]]\nsize = \"1MB\"\nname = \"{name}\"\n[sizes]\nsmall = \"0B..1MB\""
        )
    };
    assert_eq!(built(&job("llama")).collectives.len(), 1);
    for name in ["small", "collectives", "inter"] {
        refused(&job(name), "test.toml:9:1", &[&format!("`{name}`")]);
    }
    refused(&job(""), "test.toml:9:1", &[]);
    refused(&job("llama").replace("small =", "intra ="), "test.toml:15:1", &["`intra`"]);
}

#[test]
fn rings_and_pairs_span_the_datacenters() {
    let job = |more: &str| format!("[[traffic]]\nkind = \"allreduce\"\ncount = 2\nranks = 2\nsize = \"1MB\"\n{more}");
    let ring = built(&job("pattern = \"ring\""));
    // Four ranks: six steps of four quarters, two groups.
    assert_eq!(ring.setup.flows.len(), 48);
    assert!(ring.setup.flows.iter().all(|flow| flow.size == Bytes::new(250_000)));
    let pairs = built(&job("pattern = \"pairs\"\nsize_to = \"3MB\"\niterations = 8"));
    assert_eq!(pairs.setup.flows.len(), 8 * 16);
    let network = &pairs.setup.network;
    assert!(pairs.setup.flows.iter().all(|flow| network.datacenter_of(flow.src) != network.datacenter_of(flow.dst)));
    let sizes: std::collections::BTreeSet<Bytes> = pairs.setup.flows.iter().map(|flow| flow.size).collect();
    assert!(sizes.len() == 8 && sizes.iter().all(|size| (500_000..=1_500_000).contains(&size.get())), "{sizes:?}");
}

#[test]
fn invalid_jobs_are_errors() {
    let job = |keys: &str| format!("[[traffic]]\nkind = \"allreduce\"\nsize = \"1MB\"\n{keys}\n");
    refused(&job(""), "test.toml:9:1", &["`groups`", "`count`"]);
    refused(&job("count = 1\ngroups = [[0, 1]]"), "test.toml:12:9", &[]);
    refused(&job("groups = [[0]]"), "test.toml:12:10", &[]);
    refused(&job("groups = [[0, 1, 0]]"), "test.toml:12:10", &[]);
    refused(&job("groups = [[0, 1, 2]]\npattern = \"pairs\""), "test.toml:12:10", &[]);
    refused(&job("count = 99"), "test.toml:12:9", &["99", "16"]);
    refused(&job("groups = [[0, 1]]\nsize_to = \"1KB\""), "test.toml:13:11", &["`size`"]);
}
