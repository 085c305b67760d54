//! Schemes with laws that send credits: the law alone sets credit queues and the data wait; invalid combinations are errors.

use fabric::{CreditQueue, LinkClass, LinkId, NodeKind};
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Span};

use crate::location::points_at;

const DUMBBELL: &str = r#"
name = "t"
stop = "10ms"
[topology]
kind = "dumbbell"
left = 2
right = 1
rate = "10Gbps"
delay = "10ms"
[host]
mss = 1460
header = 78
ack_size = 84
[schemes.one]
law = "flashpass"
[[traffic]]
kind = "incast"
receiver = 2
intra = 2
size = "1MB"
"#;

/// Each host of one half sends to two hosts of the other; hashes decide which flows share uplinks.
const TREES: &str = r#"
name = "t"
stop = "50ms"
[topology]
kind = "fat-trees"
k = 4
rate = "10Gbps"
inter_rtt = "200us"
inter_links = 4
border_links_per_core = 2
[port]
buffer = "100KB"
[host]
mss = 1460
header = 78
ack_size = 84
ack_every = 8
[schemes.one]
law = "expresspass"
[[traffic]]
kind = "long"
flows = [
    [0, 8], [1, 9], [2, 10], [3, 11], [4, 12], [5, 13], [6, 14], [7, 15],
    [0, 12], [1, 13], [2, 14], [3, 15], [4, 8], [5, 9], [6, 10], [7, 11],
]
size = "1MB"
"#;

/// The same on four racks and four spines.
const LEAVES: &str = r#"{ kind = "clos", tors = 4, aggs = 4, hosts_per_tor = 4, rate = "10Gbps" }"#;

fn run(text: &str, set: &[(&str, &str)]) -> Result<BuiltRun, Error> {
    let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let scenario = parse(text, "test.toml", &Overrides { set, ..Overrides::default() });
    scenario.and_then(|scenario| scenario.runs()[0].build())
}

fn queues(built: &BuiltRun) -> Vec<Option<CreditQueue>> {
    let network = &built.setup.network;
    (0..network.links().len()).map(|link| network.port(LinkId(link as u32)).config().credits).collect()
}

#[test]
fn credit_law_adds_credit_queues_and_wait_time() {
    let built = run(DUMBBELL, &[]).unwrap();
    assert!(queues(&built).iter().all(|queue| *queue == Some(CreditQueue::flashpass())), "{:?}", queues(&built));
    // 20 ms and 8 us of propagation, the packet and its acknowledgement over three links; then eight credits in each of
    // three queues, each the time of 1622 bytes.
    let sending = 3 * (1_230_400 + 67_200);
    let expected = Span::from_us(20_008) - Span::from_us(4) + Span::from_ps(sending + 3 * 8 * 1_297_600);
    let longest = built.setup.host.max_emulation_rtt.unwrap();
    assert!((longest - expected).ps().abs() < 1_000, "{longest}, not {expected}");
    assert_eq!(built.report.data_wait, Some(longest));
    let waits = |params| run(DUMBBELL, &[("schemes.one.params", params)]).unwrap().report.data_wait;
    assert_eq!(waits("{ flashpass = { wait = \"90ms\" } }"), Some(Span::from_ms(90)));
    assert_eq!(waits("{ flashpass = { timed = false } }"), None);
    // Other laws have neither.
    let built = run(DUMBBELL, &[("schemes.one.law", "cubic")]).unwrap();
    assert!(queues(&built).iter().all(Option::is_none) && built.setup.host.max_emulation_rtt.is_none());
}

#[test]
fn buffers_smaller_than_a_packet_are_warned_of() {
    let warnings = |buffer| run(DUMBBELL, &[("schemes.one.law", "cubic"), ("port.buffer", buffer)]).unwrap().warnings;
    let messages = warnings("1KB");
    assert!(
        messages.iter().any(|it| it.contains("4 others have buffers smaller than a full packet of 1538 B")),
        "{messages:?}"
    );
    assert!(warnings("1538B").is_empty());
}

#[test]
fn credit_queue_settings_apply() {
    let set = [("port.credit_queue", r#"{ limit = 4, threshold = 1, burst = "840B", unscheduled = "off" }"#)];
    let built = run(DUMBBELL, &set).unwrap();
    let expected =
        CreditQueue { limit: 4, threshold: 1, burst: Bytes::new(840), unscheduled: None, ..CreditQueue::flashpass() };
    assert!(queues(&built).iter().all(|queue| *queue == Some(expected)));
    let built = run(DUMBBELL, &[("port.credit_queue", "off")]).unwrap();
    assert!(queues(&built).iter().all(Option::is_none));
    assert!(built.warnings.iter().any(|warning| warning.contains("no queue for them")), "{:?}", built.warnings);
    // The credit rate and the threshold for unscheduled data follow from the packet size.
    let built = run(DUMBBELL, &[("host.mss", "4096")]).unwrap();
    assert_eq!(queues(&built)[0].map(|queue| (queue.data, queue.unscheduled)), Some((4_174, Some(Bytes::new(8_348)))));
}

#[test]
fn unworkable_settings_are_errors() {
    let cases = [
        (DUMBBELL, ("host.load_balancing", "spray"), "test.toml:15:7", "FlashPass"),
        (DUMBBELL, ("switch.buffer", "1MiB"), "test.toml:15:7", ""),
        (DUMBBELL, ("port.credit_queue", r#"{ burst = "83B" }"#), "--set:1:29", "84 B"),
        (DUMBBELL, ("port.credit_queue", "{ limit = 0 }"), "--set:1:29", ""),
        (DUMBBELL, ("port.credit_queue", "on"), "--set:1:19", "\"auto\", \"off\""),
    ];
    for (text, set, location, name) in cases {
        points_at(&run(text, &[set]).expect_err(location), location, &[name]);
    }
    let built = run(DUMBBELL, &[("schemes.one.law", "expresspass")]).unwrap();
    let hosts = built.setup.network.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Host(_))).count();
    let nics = built.setup.network.links().iter().filter(|link| link.class == LinkClass::Nic).count();
    assert_eq!((hosts, nics), (3, 3));
}

/// A retry interval for credit requests below the round trip is an error: a credit cannot arrive in time, and each repeated
/// request waits in its host's queue.
#[test]
fn credit_request_retry_exceeds_the_rtt() {
    let with = |retry: &str| {
        run(DUMBBELL, &[("schemes.one.law", "expresspass"), ("schemes.one.params.expresspass.retry", retry)])
    };
    let rtt = with("100ms").unwrap();
    let flow = &rtt.setup.flows[0];
    let rtt = rtt.setup.paths(flow.src, flow.dst, rtt.setup.host.mss).base_rtt;
    for short in ["1ns", "1us", &format!("{}ps", rtt.unsigned_ps() / 2)] {
        let error = with(short).map(drop).unwrap_err();
        points_at(&error, "--set:1:38", &["`retry`"]);
    }
    with(&format!("{}ps", rtt.unsigned_ps() * 2)).unwrap();
}

/// `receiver_credits` works with any law without credits of its own, and needs no credit queue in ports. It excludes erasure
/// coding and one law per subflow.
#[test]
fn receiver_credits_need_a_law_without_credits() {
    let on = ("host.receiver_credits", "true");
    let error = run(DUMBBELL, &[on]).unwrap_err();
    points_at(&error, "--set:1:23", &[]);
    let dctcp = ("schemes.one.law", "dctcp");
    let built = run(DUMBBELL, &[on, dctcp]).unwrap();
    assert!(built.setup.host.receiver_credits && queues(&built).iter().all(Option::is_none));
    for (set, location) in [
        (("host.coding", "true"), "--set:1:23"),
        (("host.load_balancing", r#"{ kind = "unolb", law_per = "subflow" }"#), "--set:1:49"),
    ] {
        points_at(&run(DUMBBELL, &[on, dctcp, set]).expect_err(location), location, &[]);
    }
}

/// Receivers may send only NACKs if credits control the sending and nothing else needs acknowledgements.
#[test]
fn only_credit_laws_support_nack_only() {
    let nack_only = [("host.acks", "nack-only"), ("host.recovery", "go-back-n"), ("host.nack_interval", "200ms")];
    let with = |set: &[(&'static str, &'static str)]| run(DUMBBELL, &[&nack_only, set].concat());
    for law in ["flashpass", "expresspass"] {
        let built = with(&[("schemes.one.law", law)]).unwrap();
        let expected = flow::Recovery::GoBackN { nack_interval: Span::from_ms(200), acks: false };
        assert_eq!(built.setup.host.recovery, expected);
    }
    // A scheme may set it itself.
    let built = run(DUMBBELL, &[("schemes.one.host", r#"{ acks = "nack-only", recovery = "go-back-n" }"#)]).unwrap();
    assert!(matches!(built.setup.host.recovery, flow::Recovery::GoBackN { acks: false, .. }));
    // The acknowledgement settings of [host] are then for the other schemes.
    let own = ("schemes.one.host", r#"{ acks = "nack-only", recovery = "go-back-n" }"#);
    assert!(run(DUMBBELL, &[("host.ack_every", "8"), own]).is_ok());
    let both = ("schemes.one.host", r#"{ acks = "nack-only", recovery = "go-back-n", ack_every = 8 }"#);
    points_at(&run(DUMBBELL, &[both]).unwrap_err(), "--set:1:27", &["ack_every = 1"]);
    let selective = run(DUMBBELL, &[nack_only[0]]).expect_err("selective");
    points_at(&selective, "--set:1:11", &["recovery = \"go-back-n\""]);
    for (set, location, name) in [
        (("schemes.one.law", "cubic"), "--set:1:11", "Cubic"),
        (("schemes.one.params", "{ flashpass = { send_buffer = \"20MB\" } }"), "--set:1:50", ""),
        (("monitor", "{ interval = \"1ms\", flows = \"all\" }"), "--set:1:37", ""),
        (("host.acks", "nacks"), "--set:1:11", "\"nack-only\""),
        (("host.ack_every", "8"), "--set:1:11", "`ack_every`"),
        (("schemes.one.host", "{ ack_every = 2 }"), "--set:1:11", "ack_every = 1"),
    ] {
        points_at(&with(&[set]).expect_err(location), location, &[name]);
    }
}

/// A receiver that repeats a NACK within a round trip, here of 20 ms, requests packets that are already in flight: `check`
/// warns of it with any acknowledgement settings.
#[test]
fn nack_interval_below_rtt_is_warned_of() {
    let warnings_with = |set: &[(&str, &str)]| {
        let warnings = run(DUMBBELL, &[&[("host.recovery", "go-back-n")], set].concat()).unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.contains("nack_interval")).collect::<Vec<_>>()
    };
    let default = warnings_with(&[]);
    let parts = ["nack_interval, 500.000 us, is below the base round trip of 2 of 2 flows, up to 20."];
    assert!(default.len() == 1 && parts.iter().all(|part| default[0].contains(part)), "{default:?}");
    assert_eq!(warnings_with(&[("host.acks", "nack-only")]), default);
    assert_eq!(warnings_with(&[("schemes.one.law", "dctcp")]), default);
    assert_eq!(warnings_with(&[("host.nack_interval", "19ms")]).len(), 1);
    assert_eq!(warnings_with(&[("host.nack_interval", "21ms")]), [""; 0]);
    assert_eq!(warnings_with(&[("host.recovery", "selective")]), [""; 0]);
}

/// Three datacenters in a ring. The shortest link fails, and after 100 us routes go through the third datacenter.
const RING: &str = r#"
name = "t"
stop = "1s"
[topology]
kind = "custom"
nodes = [
    { name = "a", kind = "switch", datacenter = 0, hosts = 2, host_rate = "1Gbps", host_delay = "10us" },
    { name = "b", kind = "switch", datacenter = 1, hosts = 2, host_rate = "1Gbps", host_delay = "10us" },
    { name = "c", kind = "switch", datacenter = 2, hosts = 2, host_rate = "1Gbps", host_delay = "10us" },
]
links = [
    { between = ["a", "b"], rate = "10Gbps", delay = "2ms" },
    { between = ["b", "c"], rate = "10Gbps", delay = "6ms" },
    { between = ["a", "c"], rate = "10Gbps", delay = "8ms" },
]
[host]
mss = 1460
header = 78
ack_size = 84
[schemes.one]
law = "flashpass"
[[traffic]]
kind = "long"
flows = [[0, 2]]
size = "20MB"
[[failure]]
ports = ["a>b"]
at = "10ms"
reroute = "100us"
"#;

/// The data wait follows from the longest path over all routes, before and after the failure: 14 ms one way, against 8 ms
/// before it. So credits arrive in time over the detour, too. With the wait of the initial routes they do not.
#[test]
fn detoured_credits_are_not_late() {
    let mut built = run(RING, &[]).unwrap();
    let longest = built.setup.host.max_emulation_rtt.unwrap();
    assert!(longest > Span::from_us(28_040), "{longest}");
    let flow = |built: &BuiltRun| {
        engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true).flows[0]
    };
    let timely = flow(&built);
    assert!(timely.completed.is_set() && timely.credits.late == 0, "{timely:?}");
    // 13,699 packets; the early start sends about 300 of them.
    assert!(timely.credits.used > 13_000, "{timely:?}");
    // Without rerouting no round trip exceeds 16 ms plus queueing.
    let without_reroute = run(&RING.replace("reroute = \"100us\"", ""), &[]).unwrap();
    built.setup.host.max_emulation_rtt = without_reroute.setup.host.max_emulation_rtt;
    assert!(built.setup.host.max_emulation_rtt.unwrap() < longest - Span::from_ms(11));
    let late = flow(&built);
    assert!(!late.completed.is_set() && late.credits.late * 2 > late.credits.received, "{late:?}");
}

/// Return packets take the reverse of the forward path if the receivers of a scheme send credits, and in no other case.
#[test]
fn a_receivers_credits_make_the_network_symmetric() {
    let symmetric = |set: &[(&str, &str)]| run(TREES, set).unwrap().setup.symmetric;
    assert!(symmetric(&[]));
    for law in ["flashpass", "dctcp"] {
        assert!(!symmetric(&[("schemes.one.law", law)]), "{law}");
    }
    let mixed = |intra, inter| {
        let scheme = format!(r#"{{ intra = "{intra}", inter = "{inter}" }}"#);
        symmetric(&[("schemes.one", &scheme)])
    };
    assert!(mixed("expresspass", "cubic") && mixed("dctcp", "expresspass") && !mixed("dctcp", "cubic"));
}

/// Over several equal-cost paths ExpressPass loses no data and keeps queues short, at most the data of three full credit
/// queues. If credits are hashed independently of the data (asymmetric paths), the same flows fill the buffers.
#[test]
fn expresspass_runs_over_equal_paths() {
    for topology in [&[][..], &[("topology", LEAVES)]] {
        let outcome = |symmetric: bool| {
            let mut built = run(TREES, topology).unwrap();
            built.setup.symmetric = symmetric;
            let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
            assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
            let ports = built.setup.network.links().iter().zip(&outcome.links);
            let switches = ports.filter(|(link, _)| link.class != LinkClass::Nic);
            let longest = switches.map(|(_, it)| it.max_queue.get()).max().unwrap();
            (outcome.links.iter().map(|link| link.drops).sum::<u64>(), longest)
        };
        let (drops, longest) = outcome(true);
        assert!(drops == 0 && longest <= 3 * 8 * 1_538, "{topology:?}: {drops} drops, {longest} bytes");
        let (drops, longest) = outcome(false);
        assert!(drops > 0 && longest > 98_000, "{topology:?}: {drops} drops, {longest} bytes");
    }
}

/// A flow of unknown size has at most a send buffer of unacknowledged data in flight: 1 MB in a round trip of 20 ms.
/// With known sizes, 20 MB take 16 ms at 10 Gb/s and a few round trips.
#[test]
fn send_buffer_limits_flows_of_unknown_size() {
    let one = [("stop", "10s"), ("traffic.0.intra", "1"), ("traffic.0.size", "20MB"), ("port.ecn", "off")];
    for law in ["flashpass", "expresspass"] {
        let took = |buffer: &str| {
            let key = format!("schemes.one.params.{law}.send_buffer");
            let set = [&one[..], &[("schemes.one.law", law), (&key, buffer)]].concat();
            let built = run(DUMBBELL, &set).unwrap();
            let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
            let flow = &outcome.flows[0];
            assert!(flow.completed.is_set(), "{law}, {buffer}");
            flow.completed.since(flow.started)
        };
        let (known, unknown) = (took("0B"), took("1MB"));
        assert!(known < Span::from_ms(150), "{law}: {known}");
        assert!(unknown > Span::from_ms(400), "{law}: {unknown}");
    }
}

#[test]
fn schemes_with_one_law_are_labelled_by_name() {
    let labels = |more: &str| {
        let text = format!("{DUMBBELL}\n{more}");
        let scenario = parse(&text, "test.toml", &Overrides::default()).unwrap();
        scenario.runs().into_iter().map(|run| run.label).collect::<Vec<_>>()
    };
    assert_eq!(labels("[schemes.two]\nlaw = \"cubic\""), ["FlashPass", "Cubic"]);
    assert_eq!(labels("[schemes.two]\nlaw = \"flashpass\""), ["one", "two"]);
    assert_eq!(labels("[schemes.two]\nlaw = \"flashpass\"\nlabel = \"other\""), ["FlashPass", "other"]);
}
