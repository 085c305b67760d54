//! Files of HPCC's simulator as scenarios.

use std::fmt::Write;

use experiment::{Start, TieBreak};
use fabric::{Limit, LinkClass, LinkId, MarkAt, Network};
use laws::catalog::{LawKind, ParamValue};
use scenario::import::{HpccNames, Imported, import_hpcc};
use scenario::{BuiltRun, FlowClass, Overrides, parse};
use units::{Bytes, Frac, Rate, Span, Tick, Time};

use crate::location::points_at;

const NAMES: HpccNames<'_> =
    HpccNames { scenario: "made", topology: "fat.txt", flows: "flow.txt", config: "config.txt" };

/// The network of the simulator's own `fat.txt`.
fn fat() -> String {
    let mut text = String::from("376 56 480\n");
    for switch in 320..376 {
        write!(text, "{switch} ").unwrap();
    }
    text.push('\n');
    for host in 0..320 {
        writeln!(text, "{host} {} 100Gbps 1000ns 0.000000", 320 + host / 16).unwrap();
    }
    for tor in 0..20 {
        for agg in 0..4 {
            writeln!(text, "{} {} 400Gbps 1000ns 0.000000", 320 + tor, 340 + tor / 4 * 4 + agg).unwrap();
        }
    }
    for agg in 0..20 {
        for core in 0..4 {
            writeln!(text, "{} {} 400Gbps 1000ns 0.000000", 340 + agg, 360 + agg % 4 * 4 + core).unwrap();
        }
    }
    text
}

const FLOWS: &str =
    "3\n2 1 3 100 200000000 2\n3 1 3 100 150000 2.000000001\n4 319 3 101 5000000 2.5\n\nFirst line: # of flows\n";

const CONFIG: &str = "ENABLE_QCN 1 {0: disable, 1: enable}\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE mix/topology.txt {input}\n\
CC_MODE 3 {1: DCQCN, 3: HPCC}\nSIMULATOR_STOP_TIME 4.00\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\n\
CLAMP_TARGET_RATE 0\nRP_TIMER 900\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\n\
MIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\nHAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 0\n\
INT_MULTI 4\nMULTI_RATE 0\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\nACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\n\
KMAX_MAP 2 100000000000 1600 400000000000 6400\nKMIN_MAP 2 100000000000 400 400000000000 1600\n\
PMAX_MAP 2 100000000000 0.2 400000000000 0.2\nBUFFER_SIZE 32\n";

fn import(topology: &str, flows: &str, config: Option<&str>) -> Result<Imported, scenario::Error> {
    import_hpcc(topology, flows, config, &NAMES)
}

fn built(imported: &Imported) -> BuiltRun {
    let scenario = parse(&imported.toml, "made.toml", &Overrides::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{}\n{error}", imported.toml));
    scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}"))
}

fn port(network: &Network, class: LinkClass) -> fabric::PortConfig {
    let link = network.links().iter().position(|link| link.class == class).unwrap();
    *network.port(LinkId(link as u32)).config()
}

#[test]
fn hpcc_network_is_imported_exactly() {
    let imported = import(&fat(), FLOWS, Some(CONFIG)).unwrap();
    let run = built(&imported);
    let setup = &run.setup;
    assert_eq!((run.report.hosts, run.report.switches, run.report.links), (320, 56, 960));
    let (host, fabric) = (port(&setup.network, LinkClass::Host), port(&setup.network, LinkClass::Other));
    assert_eq!(
        (host.ingress_limit.xoff, host.ingress_limit.headroom),
        (Limit::Alpha(Frac::ratio(1, 8)), Bytes::new(37_500))
    );
    assert_eq!(
        (fabric.ingress_limit.xoff, fabric.ingress_limit.headroom),
        (Limit::Alpha(Frac::HALF), Bytes::new(150_000))
    );
    assert_eq!(fabric.ingress_limit.xon_offset, Bytes::new(3_072));
    let ecn = fabric.ecn.unwrap();
    assert_eq!((ecn.min, ecn.max), (Bytes::new(1_600_000), Bytes::new(6_400_000)));
    assert_eq!((host.mark_at, host.in_service), (MarkAt::Dequeue, fabric::InService::None));
    let switch = setup.network.nodes().iter().find_map(|node| node.switch).unwrap();
    assert_eq!((switch.buffer, switch.reserve), (Bytes::new(32 << 20), Bytes::new(4_096)));
    assert_eq!(switch.pfc, Some(fabric::Pfc { frame: 43, relay: false }));
    assert!(switch.int);
    // 48 B and 42 B of reports; an acknowledgement of 88 B.
    assert_eq!((setup.host.mss, setup.host.header, setup.host.ack_size), (1_000, 90, 88));
    assert_eq!(setup.stop, Time::from_ms(4_000));

    let flow = setup.flows[1];
    assert_eq!((flow.src.0, flow.dst.0, flow.size, flow.class), (3, 1, Bytes::new(150_000), 3));
    assert_eq!(flow.start, Start::At(Time::from_ps(2_000_000_001_000)));
    let (law, params) = run.laws.law(FlowClass::Intra).unwrap();
    assert_eq!(law, LawKind::Hpcc);
    let param = |name: &str| params.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(param("max_stage"), ParamValue::Count(0));
    assert_eq!(param("additive"), ParamValue::Rate(Rate::from_mbps(50)));
    // Six links of 1 us, there and back, and a payload of 1000 B on two links at 100 Gb/s and four at 400.
    let rtt = 12_000 + 2 * 80 + 4 * 20;
    assert_eq!(param("base_rtt"), ParamValue::Span(Span::from_ns(rtt)));
    assert_eq!(param("window"), ParamValue::Bytes(Bytes::new(rtt as u64 * 100 / 8)));
    let host = &setup.host;
    assert!(host.pace_header == host.header && host.overshoots && !host.catches_up && host.int_multi > 1, "{host:?}");
    assert!(
        imported
            .toml
            .contains("[clock]\ntick = \"1ns\"\nexact_ticks = \"round-down-one\"\ntie_break = \"scheduled\"\n"),
        "{}",
        imported.toml
    );
    let tick = Tick::short(Span::from_ns(1));
    let ports = setup.network.params().iter().map(|port| port.config().tick);
    assert!(ports.chain([host.tick]).all(|it| it == tick) && setup.ties == TieBreak::Scheduled);
    let notes = imported.notes.join("\n");
    for part in ["GLOBAL_T", "TOPOLOGY_FILE", "ACK_HIGH_PRIO", "retransmission timer"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn each_mode_has_its_law() {
    for (mode, law, header, ack) in
        [(0, "line-rate", 48, 60), (1, "dcqcn", 48, 60), (7, "timely", 56, 60), (8, "dctcp-rate", 48, 60)]
    {
        let config = CONFIG.replace("CC_MODE 3", &format!("CC_MODE {mode}")).replace("HAS_WIN 1", "HAS_WIN 0");
        let run = built(&import(&fat(), FLOWS, Some(&config)).unwrap());
        let (kind, params) = run.laws.law(FlowClass::Intra).unwrap();
        assert_eq!(kind.info().name, law);
        assert_eq!((run.setup.host.header, run.setup.host.ack_size), (header, ack));
        assert!(params.contains(&("windowed", ParamValue::Switch(false))), "{params:?}");
        if mode == 1 {
            assert!(params.contains(&("increase_timer", ParamValue::Span(Span::from_us(900)))), "{params:?}");
            assert!(params.contains(&("alpha_gain", ParamValue::Fraction(Frac::ratio(1, 256)))), "{params:?}");
        }
    }
    let bare = import(&fat(), FLOWS, None).unwrap();
    let run = built(&bare);
    let (kind, params) = run.laws.law(FlowClass::Intra).unwrap();
    assert_eq!(kind, LawKind::Dcqcn);
    assert!(params.contains(&("cnp_from_acks", ParamValue::Switch(true))), "{params:?}");
    assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    // 100 KB for each 25 Gb/s.
    assert_eq!(port(&run.setup.network, LinkClass::Other).ecn.unwrap().min, Bytes::new(1_600_000));
}

#[test]
fn long_links_separate_datacenters_and_cables_may_differ() {
    // Two switches a side; one host at 40 Gb/s among hosts at 100.
    let topology = "8 4 7\n0 1 6 7\n2 0 100Gbps 1us 0\n3 0 40Gbps 1us 0\n4 7 100Gbps 1us 0\n5 7 100Gbps 1us 0.01\n\
                    0 1 100Gbps 1us 0\n6 7 100Gbps 1us 0\n1 6 100Gbps 500us 0\n";
    let config =
        CONFIG.replace("KMAX_MAP 2", "KMAX_MAP 3 40000000000 640").replace("KMIN_MAP 2", "KMIN_MAP 3 40000000000 160");
    let config = config.replace("PMAX_MAP 2", "PMAX_MAP 3 40000000000 0.2").replace("BUFFER_SIZE 32", "BUFFER_SIZE 64");
    let imported = import(topology, "2\n2 4 3 100 1000 0.1\n3 2 5 100 1000 0.1\n", Some(&config)).unwrap();
    let run = built(&imported);
    let network = &run.setup.network;
    assert_eq!((network.datacenters(), run.report.hosts), (2, 4));
    assert_eq!(run.classes, [FlowClass::Inter, FlowClass::Intra]);
    assert_eq!(run.setup.flows.iter().map(|flow| flow.class).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(port(network, LinkClass::Inter).ingress_limit.headroom, Bytes::new(18_750_000));
    let toward = |name: &str| {
        let link = (0..network.links().len() as u32).map(LinkId).find(|&link| network.link_name(link).ends_with(name));
        *network.port(link.unwrap()).config()
    };
    assert_eq!(toward(">host3").ecn.unwrap().min, Bytes::new(160_000));
    assert_eq!(toward(">host2").ecn.unwrap().min, Bytes::new(400_000));
    assert_eq!((toward(">host5").loss, toward(">host4").loss), (Frac::ratio(1, 100), Frac::ZERO));
    // The headroom of the long haul alone exceeds the buffer of such a switch: the simulator's arithmetic wraps, the import
    // reports it.
    let import_with = |config: Option<&str>| import(topology, "1\n2 4 3 100 1000 0.1\n", config).map(|_| ());
    let error = import_with(Some(&config.replace("SIZE 64", "SIZE 16"))).unwrap_err();
    // 18.75 MB and 37.5 kB, and 4 kB for each of two ports.
    points_at(&error, "config.txt:31:13", &["node 6", "18795692 B", "18 (MiB)"]);
    assert_eq!(import_with(Some(&config.replace("SIZE 64", "SIZE 18"))), Ok(()));
    points_at(&import_with(Some(&config.replace("SIZE 64", "SIZE 0"))).unwrap_err(), "config.txt:31:13", &["0 B"]);
    let error = import(&topology.replace("500us", "5ms"), "1\n2 4 3 100 1000 0.1\n", None).unwrap_err();
    points_at(&error, "nowhere", &["BUFFER_SIZE"]);
}

#[test]
fn the_older_form_of_flows_counts_packets() {
    let imported = import(&fat(), "2\n2 1 3 200000 2.5 9\n4 319 3 10 3 9\n", None).unwrap();
    let run = built(&imported);
    let sizes: Vec<u64> = run.setup.flows.iter().map(|flow| flow.size.get()).collect();
    assert_eq!(sizes, [200_000_000, 10_000]);
    assert_eq!(run.setup.flows[0].start, Start::At(Time::from_ms(2_500)));
    assert!(imported.notes.iter().any(|note| note.contains("older form")));
}

#[test]
fn many_flows_are_written_to_a_separate_file() {
    let mut flows = String::from("1001\n");
    for flow in 0..1_001 {
        writeln!(flows, "{} {} 3 100 {} 2.{flow:06}", flow % 320, (flow + 1) % 320, 1_000 + flow).unwrap();
    }
    let imported = import(&fat(), &flows, Some(CONFIG)).unwrap();
    let (name, text) = imported.flows.clone().unwrap();
    assert_eq!((name.as_str(), text.lines().count()), ("made.flows.csv", 1_002));
    assert!(text.lines().nth(1_001).unwrap().ends_with("host40,host41,2000"), "{text}");
    assert!(imported.toml.contains("traffic_class = 3") && imported.toml.contains("file = \"made.flows.csv\""));
}

#[track_caller]
fn refused(topology: &str, flows: &str, config: Option<&str>, location: &str, names: &[&str]) {
    points_at(&import(topology, flows, config).unwrap_err(), location, names);
}

#[test]
fn mistakes_name_file_line_and_value() {
    let fat = fat();
    let with = |key: &str, value: &str| {
        let keep = |line: &&str| !line.starts_with(key);
        let rest: Vec<&str> = CONFIG.lines().filter(keep).collect();
        format!("{}\n{key} {value}\n", rest.join("\n"))
    };
    refused(&fat, FLOWS, Some(&with("U_TARGET", "1.5")), "config.txt:31:10", &["U_TARGET"]);
    refused(&fat, FLOWS, Some(&with("PACKET_PAYLOAD_SIZE", "70000")), "config.txt:31:21", &["65445"]);
    refused(&fat, FLOWS, Some(&with("PACKET_PAYLOAD_SIZE", "0")), "config.txt:31:21", &["PACKET_PAYLOAD_SIZE"]);
    refused(&fat.replace("0 320 100Gbps", "0 320 100Gbs"), FLOWS, None, "fat.txt:3:7", &["100Gbs"]);
    refused(&fat.replace("0 320 100Gbps", "0 999 100Gbps"), FLOWS, None, "fat.txt:3:3", &["999", "375"]);
    refused(&fat.replace("0 320 100Gbps 1000ns", "0 320 100Gbps 0ns"), FLOWS, None, "fat.txt:3:15", &[]);
    refused(&fat.replace("1 320 100Gbps", "0 321 100Gbps"), FLOWS, None, "fat.txt:4:1", &[]);
    refused("376 56 480\n1 2", FLOWS, None, "fat.txt:2:3", &[]);
    refused("x 56 480\n", FLOWS, None, "fat.txt:1:1", &["`x`"]);
    refused("2 3 1\n", FLOWS, None, "fat.txt:1:2", &[]);
    refused("3 1 2\n2\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", FLOWS, None, "fat.txt:3:3", &[]);
    refused("3 1 1\n2\n0 2 1Gbps 1us 0\n", FLOWS, None, "fat.txt:1:1", &[]);
    refused(&fat, "1\n2 320 3 100 5 2\n", None, "flow.txt:2:3", &["320"]);
    refused(&fat, "1\n2 2 3 100 5 2\n", None, "flow.txt:2:3", &[]);
    refused(&fat, "1\n2 1 3 100 0 2\n", None, "flow.txt:2:11", &["0 B"]);
    refused(&fat, "1\n2 1 3 100 -5 2\n", None, "flow.txt:2:11", &["`-5`"]);
    refused(&fat, "2\n2 1 3 100 5 2\n", None, "flow.txt:2:13", &[]);
    refused(&fat, "0\n", None, "flow.txt:1:1", &[]);
    refused(&fat, FLOWS, Some(&CONFIG.replace("CC_MODE 3", "CC_MODE 10")), "config.txt:4:9", &["CC_MODE", "10"]);
    refused(&fat, FLOWS, Some(&CONFIG.replace("RATE_AI 50Mb/s", "RATE_AI fast")), "config.txt:12:9", &[]);
    refused(
        &fat,
        FLOWS,
        Some(&CONFIG.replace("U_TARGET 0.95", "U_TARGET x")),
        "config.txt:20:10",
        &["U_TARGET", "`x`"],
    );
    refused(&fat, FLOWS, Some(&CONFIG.replace("LINK_DOWN 0 0 0", "LINK_DOWN 5 1 2")), "config.txt:27:1", &[]);
    refused(
        &fat,
        FLOWS,
        Some(&CONFIG.replace("400000000000 1600", "40000000000 1600")),
        "config.txt:29:1",
        &["KMIN_MAP"],
    );
    refused(
        &fat,
        FLOWS,
        Some(&CONFIG.replace("400000000000 6400", "40000000000 6400")),
        "config.txt:28:1",
        &["KMAX_MAP"],
    );
    refused(&fat, FLOWS, Some(&CONFIG.replace("400000000000 0.2", "400000000000 1.2")), "config.txt:30:42", &[]);
    refused(
        &fat,
        FLOWS,
        Some(&CONFIG.replace("400000000000 1600", "400000000000 16000")),
        "config.txt:29:42",
        &["6400"],
    );
    refused(&fat, FLOWS, Some(&CONFIG.replace("400000000000 1600", "400000000000 x")), "config.txt:29:42", &["`x`"]);
    refused(&fat, FLOWS, Some("CC_MODE 3\n"), "nowhere", &["KMIN_MAP"]);
    refused(&fat, FLOWS, Some("cc_mode 3\n"), "config.txt:1:1", &["`CC_MODE`"]);
    refused(&fat, FLOWS, Some(&format!("{CONFIG}MY_KEY 3\n")), "config.txt:32:1", &["`MY_KEY`"]);
    refused(&fat, FLOWS, Some(&CONFIG.replace("KMAX_MAP", "KMAX_MAPS")), "config.txt:28:1", &["`KMAX_MAP`"]);
    let silent = import(&fat, FLOWS, Some(&CONFIG.replace("CC_MODE 3 ", ""))).unwrap();
    assert!(silent.notes.iter().any(|note| note.contains("no CC_MODE: DCQCN")), "{:?}", silent.notes);
}

#[test]
fn no_text_panics() {
    let fat = fat();
    for cut in (0..fat.len()).step_by(97).chain(0..60) {
        let _ = import(&fat[..cut], FLOWS, Some(CONFIG));
    }
    for cut in 0..FLOWS.len() {
        let _ = import(&fat, &FLOWS[..cut], None);
    }
    for cut in 0..CONFIG.len() {
        let _ = import(&fat, FLOWS, Some(&CONFIG[..cut]));
    }
    let _ = import("0 0 0", "1\n0 0 0 0 0 0", Some("{{{ KMIN_MAP 9 } é"));
}

/// Configuration that `run.py` of the simulator writes at 100 Gb/s.
const RUN_PY: &str = "PACKET_PAYLOAD_SIZE 1000\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\n\
RP_TIMER 300\nFAST_RECOVERY_TIMES 1\nMIN_RATE 1000Mb/s\nDCTCP_RATE_AI 615Mb/s\nGLOBAL_T 1\nFAST_REACT 1\nU_TARGET 0.95\n\
MI_THRESH 0\nINT_MULTI 4\nL2_ACK_INTERVAL 1\nBUFFER_SIZE 32\n";

/// Returns the completion times in nanoseconds of flows of 10 MB from `senders` hosts to one more host, over a switch
/// with links of 100 Gb/s and 1 us, that all start at time zero.
fn incast(senders: u32, law: &str) -> Vec<i64> {
    let mut topology = format!("{} 1 {}\n{}\n", senders + 2, senders + 1, senders + 1);
    let mut flows = format!("{senders}\n");
    for host in 0..=senders {
        writeln!(topology, "{host} {} 100Gbps 1000ns 0", senders + 1).unwrap();
    }
    for host in 0..senders {
        writeln!(flows, "{host} {senders} 3 {} 10000000 0", 100 + host).unwrap();
    }
    let built = built(&import(&topology, &flows, Some(&format!("{RUN_PY}{law}"))).unwrap());
    let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
    outcome.flows.iter().map(|flow| flow.completed.since(flow.started)).map(exact_ns).collect()
}

/// Whole nanoseconds.
fn exact_ns(span: Span) -> i64 {
    assert_eq!(span.ps() % 1_000, 0, "{span}");
    span.ns()
}

const DCTCP: &str = "CC_MODE 8\nRATE_AI 615Mb/s\nRATE_HAI 615Mb/s\nEWMA_GAIN 0.0625\nHAS_WIN 1\nVAR_WIN 1\n\
KMAX_MAP 1 100000000000 300\nKMIN_MAP 1 100000000000 300\nPMAX_MAP 1 100000000000 1.0\n";
const HPCC: &str = "CC_MODE 3\nRATE_AI 40Mb/s\nRATE_HAI 200Mb/s\nEWMA_GAIN 0.00390625\nHAS_WIN 1\nVAR_WIN 1\n\
KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n";
const TIMELY: &str = "CC_MODE 7\nRATE_AI 100Mb/s\nRATE_HAI 500Mb/s\nEWMA_GAIN 0.00390625\nHAS_WIN 0\nVAR_WIN 0\n\
KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n";
/// With a step, so that no chance is in it.
const DCQCN: &str = "CC_MODE 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nEWMA_GAIN 0.00390625\nHAS_WIN 0\nVAR_WIN 0\n\
KMAX_MAP 1 100000000000 400\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 1.0\n";

/// By hand: 10,000 packets of 1048 B at 83 ns each leave the host without a gap; the last one takes 83 ns more at the
/// switch, its acknowledgement of 60 B 4 ns at the receiver and 4 ns at the switch; four links of 1 us.
#[test]
fn single_sender_fct_matches_ns_rounding() {
    let line = |service: i64, ack: i64| 10_000 * service + service + 2 * ack + 4_000;
    assert_eq!(incast(1, DCTCP), [line(83, 4)]);
    assert_eq!(incast(1, DCQCN), [line(83, 4)]);
    // A timestamp of 8 B, 1056 B: 84 ns.
    assert_eq!(incast(1, TIMELY), [line(84, 4)]);
}

/// Completion times of a model of the simulator that was written from a description of it, without this project's code.
/// One nanosecond or two packets the other way round anywhere, and these times are other ones by several percent.
#[test]
fn senders_in_step_take_as_long_as_in_the_simulator() {
    assert_eq!(incast(4, HPCC), [3_353_458, 3_667_390, 2_544_144, 3_684_916]);
    assert_eq!(incast(4, TIMELY), [3_866_065, 3_775_998, 3_771_462, 3_925_677]);
    assert_eq!(incast(4, DCQCN), [4_313_537, 4_313_205, 4_311_130, 4_313_620]);
    assert_eq!(
        incast(12, DCTCP),
        [
            6_871_594, 7_857_800, 8_062_810, 8_558_320, 9_808_964, 9_964_091, 9_941_930, 9_936_701, 9_834_113,
            9_539_795, 9_451_732, 8_733_284
        ]
    );
}
