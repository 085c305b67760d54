//! Switches that share their buffers, and the ends of long hauls.

use experiment::SwitchController;
use fabric::{Limit, LinkClass, LinkId, Network, NodeKind};
use scenario::config::Tier;
use scenario::{BuiltRun, Error, Overrides, Scenario, parse};
use units::{Bytes, Frac, Rate, Span};

use crate::location::points_at;

const LOSSLESS: &str = include_str!("../files/lossless.toml");

fn with(text: &str, set: &[(&str, &str)]) -> Result<Scenario, Error> {
    let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    parse(text, "test.toml", &Overrides { set, ..Overrides::default() })
}

fn run(set: &[(&str, &str)], scheme: &str) -> Result<BuiltRun, Error> {
    let scenario = with(LOSSLESS, set)?;
    let run = scenario.runs().into_iter().find(|run| run.scheme == scheme).unwrap();
    run.build()
}

fn built(scheme: &str) -> BuiltRun {
    run(&[], scheme).unwrap_or_else(|error| panic!("{error}"))
}

fn port(network: &Network, class: LinkClass) -> fabric::PortConfig {
    let link = network.links().iter().position(|link| link.class == class).unwrap();
    *network.port(LinkId(link as u32)).config()
}

#[test]
fn every_scheme_builds_and_the_resolved_file_is_the_same_scenario() {
    let scenario = with(LOSSLESS, &[]).unwrap();
    for run in scenario.runs() {
        let built = run.build().unwrap_or_else(|error| panic!("{}: {error}", run.id));
        assert_eq!(built.setup.network.hosts().len(), 32);
        // Where packets are dropped, receivers that ask again after 500 us do so within the round trip of 2 ms.
        let early = "nack_interval, 500.000 us, is below";
        let expected: &[&str] = match run.scheme.as_str() {
            "lossy" => &[early],
            "plain" => &["no switch", "no switch", early, "port.ecn.max is 1600000 B, and port "],
            _ => &[],
        };
        let as_expected = expected.len() == built.warnings.len()
            && expected.iter().zip(&built.warnings).all(|(&part, warning)| warning.contains(part));
        assert!(as_expected, "{}: {:?}", run.id, built.warnings);
    }
    let resolved = scenario.resolved_toml();
    let reparsed = with(&resolved, &[]).unwrap_or_else(|error| panic!("{resolved}\n{error}"));
    assert_eq!(reparsed.config, scenario.config, "{resolved}");
    assert_eq!(reparsed.resolved_toml(), resolved);
}

/// Requests within the round trip of 2 ms are warned of if packets can be missing. If every switch pauses, they can be
/// missing only because a link loses them, a cable fails, or packets of a flow take several paths.
#[test]
fn nack_interval_warning_needs_possible_loss() {
    let warnings_of = |set: &[(&str, &str)]| run(set, "pfc").unwrap_or_else(|error| panic!("{error}")).warnings;
    assert_eq!(warnings_of(&[]), [""; 0]);
    for set in [
        ("port.inter.loss_probability", "1e-6"),
        ("port.inter.loss_bursts", "{ group = 10, rates = [1e-4] }"),
        ("failure", r#"[{ ports = ["dc0.border>dc1.border"] }]"#),
        ("host.load_balancing", "spray"),
    ] {
        let warnings = warnings_of(&[set]);
        let early = warnings.iter().any(|warning| warning.contains("nack_interval, 500.000 us, is below"));
        assert!(early, "{set:?}: {warnings:?}");
    }
}

#[test]
fn switch_buffers_depend_on_tier_and_scheme() {
    let built = built("pfc");
    for node in built.setup.network.nodes() {
        let border = node.name.ends_with("border");
        match (node.kind, node.switch) {
            (NodeKind::Switch, Some(switch)) => {
                assert_eq!(switch.buffer, Bytes::new(if border { 128 << 20 } else { 32 << 20 }), "{}", node.name);
                assert_eq!(switch.pfc, Some(fabric::Pfc { frame: 64, relay: false }));
                assert!(!switch.int && switch.egress_alpha.is_none());
            }
            (NodeKind::Host(_), None) => {}
            other => panic!("{}: {other:?}", node.name),
        }
    }
    let lossy = run(&[], "lossy").unwrap();
    let switch = lossy.setup.network.nodes().iter().find_map(|node| node.switch).unwrap();
    assert_eq!((switch.pfc, switch.egress_alpha), (None, Some(Frac::ONE)));
    assert_eq!(port(&lossy.setup.network, LinkClass::Core).ingress_limit.headroom, Bytes::ZERO, "nothing pauses");
    let plain = run(&[], "plain").unwrap();
    assert!(plain.setup.network.nodes().iter().all(|node| node.switch.is_none()));
    assert_eq!(port(&plain.setup.network, LinkClass::Core).buffer, Bytes::new(1 << 20));
}

#[test]
fn switches_of_a_tier_may_not_mark() {
    let network = run(&[("switch.border.ecn_marking", "false")], "lossy").unwrap().setup.network;
    let mut port_counts = [0; 2];
    for (index, link) in network.links().iter().enumerate() {
        let (from, marks) = (&network.nodes()[link.from.index()], network.port(LinkId(index as u32)).config().ecn);
        if from.kind == NodeKind::Switch {
            let border = from.name.ends_with("border");
            assert_eq!(marks.is_none(), border, "{}", network.link_name(LinkId(index as u32)));
            port_counts[usize::from(border)] += 1;
        }
    }
    assert!(port_counts.into_iter().all(|ports| ports > 4), "{port_counts:?}");
}

#[test]
fn cables_have_ingress_limits() {
    let network = built("pfc").setup.network;
    let core = port(&network, LinkClass::Core);
    assert_eq!(core.buffer, Bytes::MAX, "a shared buffer leaves ports without a limit of their own");
    assert_eq!(
        (core.ingress_limit.xoff, core.ingress_limit.xon_offset),
        (Limit::Alpha(Frac::ratio(1, 8)), Bytes::new(3_072))
    );
    // Twice 1 us, a packet of 1048 B and a frame of 64 B at 100 Gb/s, and two packets.
    let expected = fabric::headroom(core.rate, core.rate, core.delay, 1_048, 64, 2);
    assert_eq!(core.ingress_limit.headroom, expected);
    assert!((25_000..30_000).contains(&expected.get()), "{expected}");
    let inter = port(&network, LinkClass::Inter);
    assert_eq!(
        (inter.ingress_limit.xoff, inter.ingress_limit.xon_offset),
        (Limit::Bytes(Bytes::new(5_000_000)), Bytes::ZERO)
    );
    assert_eq!(inter.ingress_limit.headroom, Bytes::new(50_000_000), "200 Gb/s for 2 ms");
    // 32 us of 40, 100 and 200 Gb/s.
    let min = |class| port(&network, class).ecn.unwrap().min;
    let expected = [160_000, 400_000, 800_000].map(Bytes::new);
    assert_eq!([LinkClass::Host, LinkClass::Core, LinkClass::Inter].map(min), expected);
}

#[test]
fn scheme_overrides_apply_to_hosts() {
    let built = built("on-ramp");
    let host = built.setup.host;
    assert_eq!(host.recovery, flow::Recovery::GoBackN { nack_interval: Span::from_us(500), acks: true });
    assert_eq!(host.cnp, Some(experiment::Cnp { interval: Span::from_us(50), size: 64 }));
    assert_eq!(host.clocks.sigma, Span::from_ns(200));
    assert_eq!((host.clocks.drift_ppb, host.clocks.resync), (1_500, Some(Span::from_s(2))));
    let on_ramp = host.on_ramp.unwrap();
    assert_eq!((on_ramp.params.threshold, on_ramp.params.gain), (Span::from_us(1_100), Frac::ratio(1, 16)));
    assert_eq!((on_ramp.ack_every, on_ramp.ack_size), (1, 78));
    for (flow, &entry) in built.setup.flows.iter().zip(&built.traffic) {
        assert_eq!((flow.class, flow.on_ramp), if entry == 0 { (3, true) } else { (1, false) });
    }
    assert!(run(&[], "pfc").unwrap().setup.flows.iter().all(|flow| !flow.on_ramp));
}

#[test]
fn lscc_controllers_at_both_ends_of_every_long_haul() {
    let built = built("lscc");
    let network = &built.setup.network;
    assert_eq!(built.setup.modules.len(), 4);
    for module in &built.setup.modules {
        let link = &network.links()[module.link.index()];
        assert_eq!(link.class, LinkClass::Inter);
        match module.module {
            SwitchController::RateCalculation(calculation) => {
                assert_eq!((calculation.lag, calculation.highest), (Span::from_ms(2), Rate::from_gbps(200)));
                assert_eq!((calculation.reference, calculation.step), (Bytes::new(5_000_000), Rate::from_gbps(1)));
            }
            SwitchController::RateLimiting(limiting) => {
                // 40 Gb/s for a bit more than 2 ms.
                assert!((10_000_000..10_200_000).contains(&limiting.long_flow.get()), "{}", limiting.long_flow);
                assert_eq!((limiting.reset, limiting.interval), (Span::from_us(200), Span::from_us(50)));
            }
        }
    }
    let error = run(&[("schemes.lscc.switch", "\"off\"")], "lscc").unwrap_err();
    points_at(&error, "test.toml:61:19", &["[switch]"]);
}

#[test]
fn int_reports_cost_bytes_and_need_int_switches() {
    let built = built("hpcc-star");
    let host = built.setup.host;
    assert!(host.int);
    assert_eq!((host.header, host.ack_size), (90, 88));
    assert!(built.setup.network.nodes().iter().filter_map(|node| node.switch).all(|switch| switch.int));
    let limiting = |module: &experiment::SwitchControllerSpec| matches!(module.module, SwitchController::RateLimiting(limiting) if limiting.telemetry);
    assert!(built.setup.modules.iter().any(limiting));
    let error = run(&[("schemes.hpcc-star.switch", "\"off\"")], "hpcc-star").unwrap_err();
    points_at(&error, "test.toml:64:7", &["[switch]", "INT"]);
}

#[test]
fn swings_relays_hold_a_round_trip() {
    let built = built("swing");
    let network = &built.setup.network;
    let relays: Vec<_> = network.nodes().iter().filter(|node| node.name.contains("relay")).collect();
    assert_eq!(relays.len(), 2);
    assert!(relays.iter().all(|node| node.switch.unwrap().pfc.unwrap().relay));
    let inter: Vec<_> = network.links().iter().filter(|link| link.class == LinkClass::Inter).collect();
    assert_eq!(inter.len(), 2);
    assert_eq!(port(network, LinkClass::Inter).ingress_limit.headroom, Bytes::new(50_000_000));
    let line = built.report.shared.iter().find(|line| line.tier == Tier::Relay).unwrap();
    assert_eq!((line.count, line.shared), (2, Bytes::new(50_000_000)));
    let border = built.report.shared.iter().find(|line| line.tier == Tier::Border).unwrap();
    assert!(border.headroom < Bytes::new(1_000_000), "its long haul is 1 us now: {}", border.headroom);
    let error = run(&[("switch.pfc", "false")], "swing").unwrap_err();
    points_at(&error, "test.toml:71:9", &["pfc = true"]);
    let one = "name = \"t\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\nrate = \"10Gbps\"\n[switch]\npfc = true\n\
               [schemes.a]\nlaw = \"dctcp\"\nswing = true\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
    let error = with(one, &[]).unwrap().runs()[0].build().unwrap_err().to_string();
    assert!(error.contains("test.toml:10:9") && error.contains("two datacenters"), "{error}");
}

#[test]
fn buffers_smaller_than_their_headroom_are_errors() {
    let error = run(&[("switch.border.buffer", "32MiB")], "pfc").unwrap_err();
    points_at(&error, "--set:1:22", &["dc0.border", "33554432 B", "100226176 B", "[switch]"]);
    // Two data classes need twice the headroom of one, 50 MB.
    assert!(run(&[("switch.border.buffer", "64MiB")], "pfc").is_err());
    assert!(run(&[("switch.border.buffer", "64MiB"), ("traffic.1.traffic_class", "3")], "pfc").is_ok());
}

#[track_caller]
fn refused(set: &[(&str, &str)], location: &str, names: &[&str]) {
    points_at(&run(set, "pfc").unwrap_err(), location, names);
}

#[test]
fn errors_have_positions() {
    refused(&[("port.inter.xon", "6MB")], "--set:1:16", &[]);
    refused(&[("port.inter.alpha", "0.5")], "test.toml:33:31", &["`xon`", "`xoff`"]);
    refused(&[("port.alpha", "0")], "--set:1:12", &[]);
    refused(&[("port.alpha", "1024.5")], "--set:1:12", &[]);
    refused(&[("switch.egress_alpha", "0")], "--set:1:21", &[]);
    refused(&[("switch.border.egress_alpha", "0.0")], "--set:1:28", &[]);
    refused(&[("switch.pfc", "{ frame = 65536 }")], "--set:1:22", &["65535"]);
    refused(&[("host.cnp_interval", "0us")], "--set:1:19", &[]);
    for (key, location) in [("period", "--set:1:26"), ("notify_interval", "--set:1:35")] {
        let key = format!("schemes.lscc.lscc.{key}");
        for time in ["0s", "1ns", "999ns"] {
            let error = run(&[(&key, time)], "lscc").unwrap_err();
            points_at(&error, location, &["1.000 us"]);
        }
        run(&[(&key, "1us")], "lscc").unwrap();
    }
    refused(&[("host.clock_drift", "5")], "--set:1:18", &[]);
    refused(&[("traffic.0.traffic_class", "8")], "--set:1:25", &[]);
    refused(&[("traffic.0.to", "16..40")], "--set:1:14", &["39"]);
    refused(&[("traffic.0.load_of", "core")], "--set:1:19", &[]);
    let error = run(&[("schemes.lscc.lscc.r_min", "300Gbps")], "lscc").unwrap_err();
    points_at(&error, "--set:1:25", &["200"]);
    refused(&[("schemes.lscc.swing", "true")], "test.toml:61:19", &["`lscc`", "`swing`"]);
    refused(&[("switch.bufer", "1MB")], "--set:1:1", &["`buffer`"]);
    refused(&[("monitor.switches", "[\"tier:edg\"]")], "--set:1:19", &["`edge`"]);
    refused(&[("port.ecn", "{ min = \"10%\", max = \"20%\" }")], "--set:1:18", &[]);
    let error = parse(&LOSSLESS.replace("alpha = 0.125", "alpha = 0.125\nxoff = 5"), "t", &Overrides::default());
    points_at(&error.unwrap_err(), "t:28:8", &[]);
}

#[test]
fn contradictory_settings_are_errors_or_warnings() {
    let error = run(
        &[("schemes.hpcc-star.lscc.telemetry", "false"), ("schemes.hpcc-star.params.hpcc.near_loop", "true")],
        "hpcc-star",
    )
    .map(drop)
    .unwrap_err();
    points_at(&error, "--set:1:41", &["`near_loop`", "telemetry = true"]);
    let without_signals =
        [("schemes.hpcc-star.lscc.telemetry", "true"), ("schemes.hpcc-star.params.hpcc.near_loop", "false")];
    let error = run(&without_signals, "hpcc-star").map(drop).unwrap_err();
    points_at(&error, "test.toml:67:19", &["near_loop = true"]);
    let error = run(&[("clock", "{ tick = \"1ns\" }")], "pfc").map(drop).unwrap_err();
    points_at(&error, "--set:1:16", &["headroom = \"auto\"", "[port]"]);
    // Between datacenters an empty path takes over a millisecond.
    let on_ramp_warnings = |threshold: &str| {
        let on_ramp = format!("{{ threshold = \"{threshold}\" }}");
        let warnings = run(&[("host.on_ramp", &on_ramp)], "pfc").unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.contains("On-Ramp's threshold")).collect::<Vec<_>>()
    };
    assert_eq!(on_ramp_warnings("100ms"), Vec::<String>::new());
    assert_eq!(on_ramp_warnings("auto"), Vec::<String>::new());
    let clocks = [("host.on_ramp", "{ threshold = \"auto\" }"), ("host.clock_sigma", "3us")];
    let on_ramp = run(&clocks, "pfc").unwrap().setup.host.on_ramp.unwrap();
    assert_eq!((on_ramp.params.threshold, on_ramp.on_queueing_delay), (Span::from_us(6), true));
    let messages = on_ramp_warnings("100us");
    assert!(
        messages[0].contains("100.000 us, is below") && messages[0].contains("50 of 50 flows, up to 1.009 ms"),
        "{messages:?}"
    );
}

/// SWING's relays form a row between two border switches; a fat tree of relays is full of loops.
#[test]
fn a_loop_of_relays_is_warned_of() {
    let warned = |set: &[(&str, &str)], scheme: &str| {
        let warnings = run(set, scheme).unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.contains("closes a loop of relays")).count()
    };
    assert_eq!(warned(&[("switch.pfc", "{ relay = true }")], "pfc"), 1);
    assert_eq!(warned(&[], "pfc") + warned(&[], "swing"), 0);
}

/// LSCC's near end signals congestion to DCQCN by notifications and to others by marks; a law that reads neither causes
/// a warning.
#[test]
fn lscc_near_end_without_a_law_signal_is_warned_of() {
    let warned = |law: &str| {
        let law = format!("\"{law}\"");
        let warnings = run(&[("schemes.lscc.law", &law), ("schemes.lscc.params", "{}")], "lscc").unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("neither notifications nor marks"))
    };
    assert!(!warned("dcqcn") && !warned("gemini") && warned("bbr"));
}

#[test]
fn every_accepted_value_is_named() {
    refused(&[("host.cnp_interval", "\"never\"")], "--set:1:19", &["\"off\"", "\"50us\""]);
    refused(&[("host.on_ramp", "true")], "--set:1:14", &["\"off\""]);
    refused(&[("host.on_ramp", "{ threshhold = \"1us\" }")], "--set:1:16", &["`threshold`"]);
    refused(&[("host.tsq_limit", "\"all\"")], "--set:1:16", &["\"off\""]);
}

#[test]
fn load_between_host_sets_counts_crossed_links() {
    let built = built("pfc");
    let inter: Vec<_> = built.setup.flows.iter().zip(&built.traffic).filter(|(_, entry)| **entry == 0).collect();
    assert!(inter.iter().all(|(flow, _)| flow.src.0 < 16 && [16, 20, 24, 28].contains(&flow.dst.0)));
    // Half of 200 Gb/s, all in one direction.
    let offered = built.report.arrivals[0].offered.bps();
    assert!(offered.abs_diff(100_000_000_000) < 1_000_000_000, "{offered}");
}

#[test]
fn the_network_of_hpcc() {
    let text = "name = \"t\"\n[topology]\nkind = \"clos\"\npods = 5\ntors = 4\naggs = 4\ncores = 16\nhosts_per_tor = 16\n\
                rate = \"400Gbps\"\nhost_rate = \"100Gbps\"\n[schemes.a]\nlaw = \"dctcp\"\n\
                [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
    let build = |set: &[(&str, &str)]| {
        let scenario = with(text, set)?;
        scenario.runs()[0].build()
    };
    let built = build(&[]).unwrap();
    assert_eq!((built.report.hosts, built.report.switches, built.report.links), (320, 56, 960));
    points_at(&build(&[("topology.cores", "6")]).unwrap_err(), "--set:1:16", &[]);
    points_at(&build(&[("topology.cores", "0")]).unwrap_err(), "--set:1:16", &[]);
    points_at(&build(&[("topology.hosts_per_tor", "[1, 2]")]).unwrap_err(), "--set:1:24", &["20"]);
    let two = build(&[("topology.datacenters", "2"), ("topology.inter_delay", "2ms")]).unwrap();
    assert_eq!((two.report.hosts, two.report.switches), (640, 114));
}

#[test]
fn racks_may_differ_in_size_and_rate() {
    // On-Ramp §6: two racks and three spines; storage servers at 100 Gb/s, all others at 25.
    let rates = ["\"25Gbps\""; 57].into_iter().chain(["\"100Gbps\""; 6]).collect::<Vec<_>>().join(", ");
    let text = format!(
        "name = \"t\"\n[topology]\nkind = \"clos\"\ntors = 2\naggs = 3\nhosts_per_tor = [27, 36]\n\
         host_rate = [{rates}]\n[schemes.a]\nlaw = \"dctcp\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
    );
    let built = with(&text, &[]).unwrap().runs()[0].build().unwrap();
    let network = &built.setup.network;
    let rate = |host| network.port(network.uplink(fabric::HostId(host))).config().rate;
    assert_eq!((network.hosts().len(), rate(56), rate(57)), (63, Rate::from_gbps(25), Rate::from_gbps(100)));
}

#[test]
fn requests_are_groups_of_flows_from_different_hosts() {
    let text = "name = \"t\"\n[topology]\nkind = \"single-switch\"\nhosts = 50\nrate = \"10Gbps\"\n[schemes.a]\nlaw = \"dctcp\"\n\
                [[traffic]]\nkind = \"requests\"\nfanout = 40\nsize = \"2KB\"\nload = 0.02\nrequests = 2000\n";
    let build = |set: &[(&str, &str)]| {
        let scenario = with(text, set)?;
        scenario.runs()[0].build()
    };
    let built = build(&[]).unwrap();
    assert_eq!((built.requests.len(), built.setup.flows.len()), (2_000, 80_000));
    // 2 % of 50 times 10 Gb/s, in requests of 80 KB.
    let requested = &built.report.requested[0];
    assert_eq!((requested.count, requested.fanout, requested.per_1000_s), (2_000, 40, 15_625_000));
    assert_eq!(requested.offered, Rate::from_gbps(10));
    for request in &built.requests {
        let flows: Vec<_> = request.iter().map(|flow| built.setup.flows[flow.0 as usize]).collect();
        let mut senders: Vec<_> = flows.iter().map(|flow| flow.src).collect();
        senders.sort_unstable();
        senders.dedup();
        assert_eq!(senders.len(), 40);
        let first = flows[0];
        assert!(flows.iter().all(|flow| flow.dst == first.dst && flow.start == first.start && flow.src != flow.dst));
    }
    // On-Ramp §5.2.1: with 2 KB at 2 % of 10 Gb/s each host asks every 3.2 ms.
    let experiment::Start::At(last) = built.setup.flows.last().unwrap().start else { panic!() };
    let mean_us = last.since(units::Time::ZERO).ps() / 1_000_000 / 2_000 * 50;
    assert!((3_000..3_400).contains(&mean_us), "{mean_us} us");
    points_at(&build(&[("traffic.0.fanout", "50")]).unwrap_err(), "--set:1:18", &["49"]);
    points_at(&build(&[("traffic.0.load", "1.5")]).unwrap_err(), "--set:1:16", &[]);
    points_at(&build(&[("traffic.0.duration", "1ns")]).unwrap_err(), "test.toml:8:1", &[]);
    points_at(&build(&[("traffic.0.among", "even")]).unwrap_err(), "test.toml:10:10", &["25"]);
}

#[test]
fn controllers_start_before_the_first_packet() {
    // Without flows LSCC feeds back 2 MB a round trip and a period on average, 7.3 Gb/s, and swings around that.
    let set = [
        ("traffic", "[{ kind = \"long\", flows = [[0, 16]], size = \"1MB\", start = \"100ms\" }]"),
        ("monitor", "{ interval = \"10ms\", ports = [\"class:inter\"] }"),
        ("schemes.lscc.lscc.q_ref", "\"2MB\""),
        ("stop", "\"101ms\""),
    ];
    let built = run(&set, "lscc").unwrap();
    let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
    let late = outcome.port_samples.iter().filter(|sample| sample.time >= units::Time::from_ms(60));
    let rates: Vec<u64> = late.map(|sample| sample.feedback.bps()).collect();
    assert!(rates.len() >= 8 && rates.iter().all(|&bps| bps < 20_000_000_000), "{rates:?}");
}
