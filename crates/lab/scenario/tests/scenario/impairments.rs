//! `impair` of `[port]`: impairments of links by class and cable, traces of rates, and the errors of wrong ones.
#![allow(clippy::unwrap_used)]

use fabric::{Impairments, JitterDistribution, JitterOrder, LinkClass, LinkId};
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Frac, Rate, Span};

use crate::location::points_at;

const PAIR: &str = "name = \"t\"\nstop = \"10ms\"\n[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nrate = \"1Gbps\"\n\
                    delay = \"1ms\"\n[schemes.a]\nlaw = \"dctcp\"\n";
const SENT: &str = "[[traffic]]\nkind = \"long\"\nflows = [[0, 2]]\nsize = \"1MB\"\n";

fn build(more: &str) -> Result<BuiltRun, Error> {
    parse(&format!("{PAIR}{more}"), "test.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
}

/// Builds a network with these impairments of the link between its switches.
fn built(impair: &str) -> BuiltRun {
    build(&format!("[port.other]\nimpair = {impair}\n{SENT}")).unwrap_or_else(|error| panic!("{error}"))
}

fn other(built: &BuiltRun) -> Impairments {
    let network = &built.setup.network;
    let links = || (0..network.links().len() as u32).map(LinkId);
    let impaired = links().filter(|&link| network.impairments(link).is_some());
    let of_class = links().filter(|link| network.links()[link.index()].class == LinkClass::Other);
    assert_eq!(impaired.collect::<Vec<_>>(), of_class.clone().collect::<Vec<_>>());
    let [there, back] =
        [of_class.clone().next(), of_class.clone().next_back()].map(|link| network.impairments(link.unwrap()).unwrap());
    assert_eq!(there, back);
    (**there).clone()
}

#[track_caller]
fn refused(impair: &str, location: &str, names: &[&str]) {
    let text = format!("[port]\nimpair = {impair}\n{SENT}");
    points_at(&build(&text).expect_err(impair), location, names);
}

#[test]
fn every_key_has_its_effect() {
    let all = other(&built(
        "{ jitter = { max = \"2ms\", distribution = \"normal\", keep_order = false }, reorder = { probability = 0.01, \
         delay = \"1ms\" }, duplicate = 0.5, corrupt = 0.25, mtu = 1500, police = { rate = \"500Mbps\", burst = \
         \"100KB\" }, ack_aggregation = { period = \"3ms\", packets = 8 }, rate_steps = [{ at = \"0s\", rate = \"1Gbps\" \
         }, { at = \"2ms\", rate = \"off\" }], rate_period = \"5ms\" }",
    ));
    let jitter = all.jitter.unwrap();
    assert_eq!(
        (jitter.max, jitter.distribution, jitter.order),
        (Span::from_ms(2), JitterDistribution::Normal, JitterOrder::Free)
    );
    let reordering = all.reordering.unwrap();
    assert_eq!((reordering.probability, reordering.delay), (Frac::ratio(1, 100), Span::from_ms(1)));
    assert_eq!((all.duplication, all.corruption, all.mtu), (Frac::HALF, Frac::HALF.half(), Some(1_500)));
    let policer = all.policer.unwrap();
    assert_eq!((policer.rate, policer.burst), (Rate::from_mbps(500), Bytes::new(100_000)));
    let aggregation = all.ack_aggregation.unwrap();
    assert_eq!((aggregation.period, aggregation.packets, aggregation.max_size), (Span::from_ms(3), 8, 128));
    let schedule = all.rate_schedule.unwrap();
    assert_eq!((schedule.steps().len(), schedule.period()), (2, Some(Span::from_ms(5))));
    assert_eq!((schedule.max_rate(), schedule.steps()[1].rate), (Rate::from_gbps(1), Rate::ZERO));
}

#[test]
fn a_table_without_effect_is_none() {
    let built = built("{ duplicate = 0 }");
    let network = &built.setup.network;
    assert!((0..network.links().len() as u32).all(|link| network.impairments(LinkId(link)).is_none()));
}

#[test]
fn cables_have_their_own() {
    let custom = "name = \"t\"\nstop = \"10ms\"\n[topology]\nkind = \"custom\"\nnodes = [{ name = \"s\", kind = \"switch\", hosts = 1, host_rate = \"1Gbps\", host_delay = \"1us\" }, { name = \"t\", \
                  kind = \"switch\", hosts = 1, host_rate = \"1Gbps\", host_delay = \"1us\" }]\nlinks = [{ between = [\"s\", \"t\"], rate = \"1Gbps\", delay = \"1ms\", parallel = 2, port = { \
                  impair = { mtu = 9000 } } }]\n[schemes.a]\nlaw = \"dctcp\"\n[port]\nimpair = { mtu = 5000 }\n[[traffic]]\nkind = \
                  \"long\"\nflows = [[0, 1]]\nsize = \"1MB\"\n";
    let scenario = parse(custom, "test.toml", &Overrides::default()).unwrap();
    let built = scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}"));
    for (link, details) in (0..).zip(built.setup.network.links()) {
        let mtu = built.setup.network.impairments(LinkId(link)).and_then(|it| it.mtu);
        let expected = match details.class {
            LinkClass::Nic => None,
            LinkClass::Host => Some(5_000),
            _ => Some(9_000),
        };
        assert_eq!(mtu, expected, "{:?}", details.class);
    }
}

#[test]
fn an_mtu_below_full_packets_is_a_warning() {
    let warned = |mtu: u32| built(&format!("{{ mtu = {mtu} }}")).warnings;
    assert_eq!(warned(4_160), [""; 0]);
    assert!(
        warned(4_159).iter().any(|it| it.contains("MTU of 4159 B") && it.contains("4160 B")),
        "{:?}",
        warned(4_159)
    );
}

#[test]
fn errors_name_the_value() {
    refused("{ jitter = { max = \"0s\" } }", "test.toml:12:29", &["over 0"]);
    refused("{ jitter = { max = \"101s\" } }", "test.toml:12:29", &["100"]);
    refused("{ reorder = { probability = 1, delay = \"1ms\" } }", "test.toml:12:38", &["under 1"]);
    refused("{ reorder = { probability = 0.1 } }", "test.toml:12:22", &["delay"]);
    refused("{ duplicate = 1.0 }", "test.toml:12:24", &["under 1"]);
    refused("{ corrupt = 2 }", "test.toml:12:22", &["0 to 1"]);
    refused("{ mtu = 0 }", "test.toml:12:18", &[]);
    refused("{ police = { rate = \"1Gbps\", burst = \"2GiB\" } }", "test.toml:12:47", &["1073741824"]);
    refused("{ ack_aggregation = { period = \"1ms\", packets = 1 } }", "test.toml:12:58", &["at least 2"]);
    refused("{ latency = \"1ms\" }", "test.toml:12:12", &["unknown key `latency`"]);
    refused("true", "test.toml:12:10", &["\"off\""]);
}

#[test]
fn errors_of_schedules_name_the_step() {
    let steps = |steps: &str| format!("{{ rate_steps = [{steps}] }}");
    refused(&steps(""), "test.toml:12:25", &["first step"]);
    refused(&steps("{ at = \"1s\", rate = \"off\" }"), "test.toml:12:33", &["\"0s\""]);
    let twice = "{ at = \"0s\", rate = \"1Gbps\" }, { at = \"0s\", rate = \"1Gbps\" }";
    refused(&steps(twice), "test.toml:12:64", &["step 1"]);
    refused(&steps("{ at = \"0s\", rate = \"off\" }"), "test.toml:12:46", &["for ever"]);
    refused(&steps("{ at = \"0s\", rate = \"2Gbps\" }"), "test.toml:12:25", &["2 Gbps", "at most 1 Gbps"]);
    refused("{ rate_period = \"1s\" }", "test.toml:12:26", &["rate_steps"]);
    refused("{ rate_steps = [], rate_trace = \"x\" }", "test.toml:12:42", &["one of them"]);
    refused("{ rate_trace = \"x\", rate_period = \"1s\" }", "test.toml:12:44", &["its own period"]);
}

/// Ports that decide together, and ports that credits pass, cannot be impaired.
#[test]
fn shared_buffers_credits_and_ticks_are_refused() {
    let text = |more: &str| format!("[port]\nimpair = {{ duplicate = 0.1 }}\n{SENT}{more}");
    points_at(&build(&text("[switch]\nbuffer = \"1MB\"\n")).unwrap_err(), "test.toml:12:10", &["alone"]);
    let credits = text("").replace("[port]\n", "[port]\ncredit_queue = { limit = 8 }\n");
    points_at(&build(&credits).unwrap_err(), "test.toml:13:10", &["credits"]);
    let law = format!("{PAIR}{}", text("")).replace("\"dctcp\"", "\"expresspass\"");
    let error = parse(&law, "test.toml", &Overrides::default()).and_then(|it| it.runs()[0].build()).unwrap_err();
    points_at(&error, "test.toml:12:10", &["credits"]);
    let ticks = text("[clock]\ntick = \"1ns\"\n")
        .replace("duplicate = 0.1", "rate_steps = [{ at = \"0s\", rate = \"1Gbps\" }]");
    points_at(&build(&ticks).unwrap_err(), "test.toml:12:10", &["tick"]);
}

#[cfg(feature = "import")]
mod traces {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use scenario::load;

    fn with_trace(trace: &str) -> Result<BuiltRun, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("narrows-traces-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let port = "[port.other]\nimpair = { rate_trace = \"link.trace\" }\n";
        std::fs::write(directory.join("link.trace"), trace).unwrap();
        let path = directory.join("test.toml");
        std::fs::write(&path, format!("{PAIR}{port}{SENT}")).unwrap();
        let built = load(&path, &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
        std::fs::remove_dir_all(directory).unwrap();
        built
    }

    /// Four opportunities in the third millisecond, two in the fourth and one in each of the last two.
    #[test]
    fn traces_are_schedules() {
        let built = with_trace("3\n3\n3\n3\n4\n4\n9\n10\n").unwrap_or_else(|error| panic!("{error}"));
        let schedule = other(&built).rate_schedule.unwrap();
        let steps: Vec<(i64, u64)> =
            schedule.steps().iter().map(|step| (step.at.ns() / 1_000_000, step.rate.bps() / 1_000_000)).collect();
        assert_eq!(steps, [(0, 0), (2, 48), (3, 24), (4, 0), (8, 12)]);
        assert_eq!(schedule.period(), Some(Span::from_ms(10)));
        assert_eq!(built.inputs.len(), 1, "the trace decides results, so it is kept with them");
    }

    #[test]
    fn errors_name_the_line_of_the_trace() {
        let message = |trace: &str| with_trace(trace).unwrap_err().to_string();
        assert!(message("1\n2\nx\n").contains("link.trace:3:1"), "{}", message("1\n2\nx\n"));
        assert!(message("2\n1\n").contains("link.trace:2:1"));
        let many = "1\n".repeat(100);
        assert!(message(&many).contains("1.200 Gbps") && message(&many).contains("test.toml"), "{}", message(&many));
        let secret = message("root:x:0\n");
        assert!(!secret.contains("root"), "{secret}");
    }
}
