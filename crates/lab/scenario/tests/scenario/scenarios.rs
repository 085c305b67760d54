//! Runs that scenario files produce.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use scenario::{BuiltRun, FlowClass, Overrides, Scenario, parse};
use units::{Bytes, Rate, Span, Time};

use crate::location::points_at;

const MIXED: &str = include_str!("../files/mixed.toml");

fn read(text: &str) -> Scenario {
    parse(text, "test.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn with(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    parse(text, "test.toml", &Overrides { set, ..Overrides::default() }).unwrap_or_else(|error| panic!("{error}"))
}

fn built(scenario: &Scenario) -> BuiltRun {
    scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}"))
}

fn small(topology: &str, traffic: &str) -> String {
    format!("name = \"t\"\nstop = \"10ms\"\n{topology}\n[schemes.a]\nlaw = \"dctcp\"\n{traffic}\n")
}

const PAIR: &str = "[topology]\nkind = \"fat-trees\"\nk = 4\nintra_rtt = \"14us\"\ninter_rtt = \"2ms\"\n";

/// Returns the scenario files below a folder of the repository, sorted.
fn shipped(folder: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            // `values` has measured values next to the figures.
            if path.is_dir() && !path.ends_with("values") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn loaded(file: &Path, overrides: &Overrides) -> Scenario {
    scenario::load(file, overrides).unwrap_or_else(|error| panic!("{}, {overrides:?}: {error}", file.display()))
}

/// Every file in `scenarios/` is read, and every run of it builds.
#[test]
fn shipped_scenarios_build() {
    let files = shipped("scenarios");
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        for run in loaded(&file, &Overrides::default()).runs() {
            run.build().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// Reads every file in `papers/` at each of its scales, and at the quick one with each of its suspected causes, and builds
/// its first run.
#[test]
fn paper_scenarios_load_at_every_scale_and_cause() {
    let files = shipped("papers");
    assert!(files.len() >= 60, "{files:?}");
    let mut causes = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let scales = text.lines().filter_map(|line| line.strip_prefix("[scale.")?.strip_suffix(']'));
        for scale in scales.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric())) {
            loaded(&file, &Overrides { scale: Some(scale.to_owned()), ..Overrides::default() });
        }
        let quick = Overrides { scale: Some("quick".to_owned()), ..Overrides::default() };
        for cause in &loaded(&file, &Overrides::default()).config.cause {
            causes += 1;
            if cause.set.0.is_empty() {
                continue;
            }
            let changed = loaded(&file, &Overrides { cause: Some(cause.id.clone()), ..quick.clone() });
            changed.runs()[0].build().unwrap_or_else(|error| panic!("{}: {error}", cause.id));
        }
    }
    assert!(causes >= 100, "{causes} causes");
}

#[test]
fn the_grid_and_the_schemes_make_runs() {
    let scenario = read(MIXED);
    let ids: Vec<String> = scenario.runs().into_iter().map(|run| run.id).collect();
    assert_eq!(
        ids,
        [
            "uno,traffic.1.load=0.4",
            "gemini,traffic.1.load=0.4",
            "mix,traffic.1.load=0.4",
            "uno,traffic.1.load=0.6",
            "gemini,traffic.1.load=0.6",
            "mix,traffic.1.load=0.6"
        ]
    );
    assert_eq!(scenario.runs()[2].label, "MPRDMA + BBR");
}

/// Every combination of the grid, the list and the sample is a point, named by all of its keys.
#[test]
fn points_and_samples_override_the_grid() {
    let text = small(PAIR, "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"").replace("stop = \"10ms\"\n", "")
        + r#"
        [grid]
        seed = [1, 2]
        [[points]]
        stop = "1ms"
        "port.loss_probability" = 0.1
        [[points]]
        stop = "2ms"
        "port.loss_probability" = 0.2
        [random_points]
        points = 4
        keys."port.buffer" = { from = "100kB", to = "200kB" }
        "#;
    let scenario = read(&text);
    let runs = scenario.runs();
    assert_eq!(runs.len(), 2 * 2 * 4);
    let keys: Vec<&str> = runs[0].point.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["seed", "stop", "port.loss_probability", "port.buffer"]);
    assert!(runs[0].id.starts_with("a,seed=1,stop=1ms,port.loss_probability=0.1,port.buffer=1"), "{}", runs[0].id);
    // The same file results in the same points, and so does its resolved form.
    let ids = |scenario: &Scenario| scenario.runs().into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(&read(&text)), ids(&scenario));
    assert_eq!(ids(&read(&scenario.resolved_toml())), ids(&scenario));
}

/// A value that is a list of tables is written in one line, as JSON.
#[test]
fn lists_of_tables_are_values_of_a_grid() {
    let text = r#"
        name = "t"
        topology = { kind = "single-switch", hosts = 4 }
        schemes.a = { law = "dctcp" }
        [[traffic]]
        kind = "incast"
        intra = 3
        size = "16KiB"
        [grid]
        traffic = [[{ kind = "incast", intra = 2, size = "1KiB" }], [{ kind = "incast", intra = 3, size = "1KiB" }]]
        "#;
    let runs = read(text).runs();
    let values: Vec<&str> = runs.iter().map(|run| run.point[0].1.as_str()).collect();
    let first: serde_json::Value = serde_json::from_str(values[0]).unwrap();
    assert_eq!(first[0]["intra"], 2, "{first}");
    assert!(runs[0].id != runs[1].id && !runs[0].id.contains(['[', '\n']), "{}", runs[0].id);
}

/// A variant's runs come after the grid's: its keys set, and of each of the grid's keys the first value or its own.
#[test]
fn variants_are_more_runs() {
    let text = format!(
        "{MIXED}\n[variants.shallow]\nlabel = \"a tenth of the buffers\"\nset = {{ \"port.buffer\" = \"100KiB\" }}\n\
         [variants.far]\nset = {{ \"topology.inter_rtt\" = \"8ms\", \"schemes.gemini.label\" = \"other\" }}\n\
         grid = {{ \"traffic.1.load\" = [0.6, 0.5] }}\nschemes = [\"gemini\"]\n[variants.other]\nschemes = [\"uno\"]\n\
         set = {{ traffic = [{{ kind = \"incast\", intra = 1, size = 1 }}] }}\ngrid = {{ \"traffic.1.load\" = [] }}\n"
    );
    let scenario = read(&text);
    let runs = scenario.runs();
    let ids: Vec<&str> = runs.iter().skip(6).map(|run| run.id.as_str()).collect();
    let shallow = ["uno", "gemini", "mix"].map(|name| format!("{name},traffic.1.load=0.4,variant=shallow"));
    let far = ["0.6", "0.5"].map(|load| format!("gemini,traffic.1.load={load},variant=far"));
    let other = ["uno,variant=other".to_owned()];
    assert_eq!(ids, shallow.iter().chain(&far).chain(&other).map(String::as_str).collect::<Vec<_>>());
    let buffers = |run: &scenario::Run| run.config.to_toml().contains("buffer = \"100KiB\"");
    assert_eq!(runs.iter().map(buffers).collect::<Vec<_>>(), [vec![false; 6], vec![true; 3], vec![false; 3]].concat());
    assert_eq!((runs[9].label.as_str(), runs[7].label.as_str()), ("other", runs[1].label.as_str()));
    let rtt = runs[10].build().unwrap().report.inter_rtt.unwrap().max;
    assert_eq!((rtt - Span::from_ms(8)).ps().abs() / 1_000, 0, "{rtt}");
}

#[test]
fn sizes_may_be_of_one_class_or_traffic() {
    let bins = "[sizes]\nfar = \"inter 1MB..\"\nnear = \"intra ..1MB\"\nsome = \"poisson: inter 1MB..\"";
    let text = MIXED.replace("[sizes]", bins);
    let sizes = |text: &str| {
        let scenario = read(text);
        let sizes: Vec<_> =
            ["far", "near", "small", "some"].map(|name| scenario.config.sizes.get(name).unwrap().clone()).into();
        (sizes, scenario.resolved_toml())
    };
    let (found, resolved) = sizes(&text);
    let classes: Vec<_> = found.iter().map(|range| range.class).collect();
    assert_eq!(classes, [Some(FlowClass::Inter), Some(FlowClass::Intra), None, Some(FlowClass::Inter)]);
    assert_eq!((found[0].traffic.as_deref(), found[3].traffic.as_deref()), (None, Some("poisson")));
    assert_eq!((found[0].low, found[1].low, found[1].high), (Bytes::new(1_000_000), Bytes::ZERO, Some(found[0].low)));
    assert_eq!(sizes(&resolved).0, found);
}

#[test]
fn a_buffer_may_be_a_multiple_of_the_bandwidth_delay_product() {
    let text = small(
        "[topology]\nkind = \"fat-trees\"\nk = 2\nrate = \"1Gbps\"\ninter_rtt = \"20ms\"\ninter_rate = \"100Mbps\"\n\
         [port]\nbuffer = \"0.5bdp\"\n[port.inter]\nbuffer = \"bdp\"\n[port.host]\nbuffer = \"1MB\"",
        "[[traffic]]\nkind = \"incast\"\ninter = 1\nsize = \"1MB\"",
    );
    let scenario = read(&text);
    let run = built(&scenario);
    let rtt = run.report.inter_rtt.unwrap().max;
    assert_eq!((rtt - Span::from_ms(20)).ps().abs() / 1_000, 0, "{rtt}");
    let buffer = |class| {
        let network = &run.setup.network;
        let link = network.links().iter().position(|link| link.class == class).unwrap();
        network.port(fabric::LinkId(link as u32)).config().buffer
    };
    let close = |found: Bytes, bytes: u64| assert!(found.get().abs_diff(bytes) <= bytes / 1_000_000 + 1, "{found}");
    close(buffer(fabric::LinkClass::Inter), 250_000);
    close(buffer(fabric::LinkClass::Edge), 1_250_000);
    assert_eq!(buffer(fabric::LinkClass::Host), Bytes::new(1_000_000));
    assert!(scenario.resolved_toml().contains("buffer = \"0.5bdp\""));
    assert_eq!(built(&read(&scenario.resolved_toml())).setup.network.params().len(), run.setup.network.params().len());
}

#[test]
fn every_run_of_the_mixed_scenario_builds() {
    let scenario = read(MIXED);
    for run in scenario.runs() {
        let built = run.build().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(built.setup.network.hosts().len(), 32);
        assert_eq!(built.classes[..8].iter().filter(|&&class| class == FlowClass::Inter).count(), 4);
        assert!(built.setup.flows.len() > 40, "{}", built.setup.flows.len());
        assert_eq!((built.traffic[0], *built.traffic.last().unwrap()), (0, 1));
        assert_eq!(built.setup.series.ports.len(), 1 + 8);
        assert_eq!(built.setup.series.flows.len(), 8);
        for flow in &built.setup.flows {
            let paths = built.setup.paths(flow.src, flow.dst, built.setup.host.mss);
            let path = laws::PathInfo {
                base_rtt: paths.base_rtt,
                intra_rtt: built.setup.intra_rtt,
                line_rate: paths.line_rate,
                mss: Bytes::new(4096),
            };
            let _ = built.laws.make(flow, &path);
        }
    }
}

#[test]
fn round_trips_come_out_as_asked() {
    let built = built(&read(MIXED));
    let (intra, inter) = (built.report.intra_rtt.unwrap(), built.report.inter_rtt.unwrap());
    assert!((Span::from_us(14).ps() - intra.max.ps()).unsigned_abs() < 12, "{}", intra.max.ps());
    assert!((Span::from_ms(2).ps() - inter.max.ps()).unsigned_abs() < 2, "{}", inter.max.ps());
    assert_eq!(built.setup.intra_rtt, intra.max);
    let flow = &built.setup.flows[7];
    assert_eq!(built.setup.paths(flow.src, flow.dst, 4096).base_rtt, inter.max);
}

#[test]
fn the_resolved_file_is_the_same_scenario() {
    for text in [MIXED, &small(PAIR, "[[traffic]]\nkind=\"permutation\"\nsize=\"1MB\"")] {
        let scenario = read(text);
        let resolved = scenario.resolved_toml();
        let reparsed = read(&resolved);
        assert_eq!(reparsed.config, scenario.config, "{resolved}");
        assert_eq!(reparsed.resolved_toml(), resolved);
        assert_eq!(reparsed.runs().len(), scenario.runs().len());
        for (a, b) in reparsed.runs().iter().zip(scenario.runs()) {
            assert_eq!((&a.id, &a.config), (&b.id, &b.config));
        }
        assert!(
            resolved.contains("rto_max = \"4s\"") && resolved.contains("in_service_bytes = \"remaining\""),
            "{resolved}"
        );
        assert_eq!(scenario.to_json()["host"]["mss"], 4096);
    }
}

#[test]
fn a_scale_and_arguments_replace_values() {
    let overrides = Overrides {
        set: vec![("topology.link_delay".into(), "2us".into()), ("traffic.1.duration".into(), "5ms".into())],
        seed: Some(99),
        scale: Some("quick".into()),
        ..Overrides::default()
    };
    let scenario = parse(MIXED, "test.toml", &overrides).unwrap();
    assert_eq!(scenario.scale.as_ref().unwrap().note, "flows of 64 KiB instead of 1 MiB");
    assert_eq!(scenario.config.seed, 99);
    let built = built(&scenario);
    assert_eq!(built.setup.flows[0].size, Bytes::new(65_536));
    // 12 links of 2 us, 6 times a packet of 4160 B and an acknowledgement of 64 B at 100 Gb/s.
    assert_eq!(built.report.intra_rtt.unwrap().max, Span::from_ps(24_000_000 + 6 * (332_800 + 5_120)));
}

#[test]
fn unscaled_experiment_is_scale_paper() {
    let overrides = Overrides { scale: Some("paper".into()), ..Overrides::default() };
    let scenario = parse(MIXED, "test.toml", &overrides).unwrap();
    assert_eq!((&scenario.scale, &scenario.config), (&None, &read(MIXED).config));
    let (text, _) = MIXED.split_once("[paper]").unwrap();
    points_at(&parse(text, "test.toml", &overrides).unwrap_err(), "--scale:1:1", &["`paper`", "`quick`"]);
    let text = format!("{MIXED}\n[scale.paper]\nset = {{ seed = 2 }}\n");
    points_at(&parse(&text, "test.toml", &Overrides::default()).unwrap_err(), "test.toml:78:8", &["`paper`"]);
}

#[test]
fn gemini_threshold_follows_the_port() {
    let run = &read(MIXED).runs()[1];
    let built = run.build().unwrap();
    let (_, settings) = built.laws.law(FlowClass::Intra).unwrap();
    assert!(settings.contains(&("k", laws::catalog::ParamValue::Bytes(Bytes::new(1 << 18)))), "{settings:?}");
}

#[test]
fn schemes_and_classes_change_ports() {
    let scenario = read(MIXED);
    let built = scenario.runs()[0].build().unwrap();
    let port = |name: &str| {
        let network = &built.setup.network;
        let link = (0..network.links().len() as u32).map(fabric::LinkId).find(|&link| network.link_name(link) == name);
        *network.port(link.unwrap()).config()
    };
    let inter = port("dc0.border>dc1.border#1");
    assert_eq!((inter.buffer, inter.ecn), (Bytes::new(16_000_000), None));
    assert_eq!(inter.phantom.unwrap().ecn.min, Bytes::new(448_000));
    assert_eq!(port("dc0.pod0.edge0>dc0.host0").buffer, Bytes::new(1 << 20));
    assert_eq!(port("dc0.host0>dc0.pod0.edge0").buffer, Bytes::MAX);
    let gemini = scenario.runs()[1].build().unwrap();
    let red = gemini.setup.network.params().iter().find_map(|port| port.config().ecn).unwrap();
    assert!(red.min.get() * 3 == red.max.get());
}

#[test]
fn incast_senders_are_spread_and_never_the_receiver() {
    for (intra, inter) in [(4, 4), (1, 0), (7, 16), (15, 3)] {
        let traffic = format!(
            "[[traffic]]\nkind=\"incast\"\nreceiver=5\nintra={intra}\ninter={inter}\nsize=1000\nstagger=\"1us\""
        );
        let built = built(&read(&small(PAIR, &traffic)));
        let mut senders: Vec<u32> = built.setup.flows.iter().map(|flow| flow.src.0).collect();
        let request = (0..(intra + inter) as u32).map(experiment::FlowId).collect::<Vec<_>>();
        assert_eq!(built.requests, [request], "all of them are one request");
        assert!(built.setup.flows.iter().all(|flow| flow.dst.0 == 5 && flow.src.0 != 5));
        assert_eq!(senders.iter().filter(|&&host| host < 16).count(), intra);
        assert_eq!(
            built.setup.flows[1 % senders.len()].start,
            experiment::Start::At(Time::from_us((1 % senders.len()) as u64))
        );
        if intra == 4 {
            // 16 hosts in 4 pods: a pod each but the receiver's edge switch.
            let mut switches: Vec<u32> = senders.iter().map(|host| host / 2).collect();
            switches.dedup();
            assert_eq!(switches.len(), 8, "{senders:?}");
        }
        senders.sort_unstable();
        senders.dedup();
        assert_eq!(senders.len(), intra + inter);
    }
}

#[test]
fn permutations_are_derangements_in_their_scope() {
    for (scope, seed) in ["intra", "inter", "any"].into_iter().flat_map(|scope| (0..5).map(move |seed| (scope, seed))) {
        let traffic = format!("[[traffic]]\nkind=\"permutation\"\nscope=\"{scope}\"\nsize=1000");
        let built = built(&with(&small(PAIR, &traffic), &[("seed", &seed.to_string())]));
        let flows = &built.setup.flows;
        let mut receivers: Vec<u32> = flows.iter().map(|flow| flow.dst.0).collect();
        receivers.sort_unstable();
        assert_eq!(receivers, (0..32).collect::<Vec<u32>>());
        for (flow, class) in flows.iter().zip(&built.classes) {
            assert_ne!(flow.src, flow.dst);
            assert!(scope == "any" || class.name() == scope);
        }
    }
}

#[test]
fn poisson_meets_its_load_and_its_ratio() {
    let traffic = "[[traffic]]\nkind=\"poisson\"\nintra=\"websearch\"\ninter=\"websearch\"\nload=0.25\nratio=\"4:1\"\nduration=\"2s\"";
    let built = built(&with(&small(PAIR, traffic), &[("stop", "3s")]));
    let inter: Vec<&experiment::FlowSpec> = built.setup.flows.iter().filter(|flow| flow.kind == 1).collect();
    let bytes: u64 = inter.iter().map(|flow| flow.size.get()).sum();
    // 8 links of 100 Gb/s each way, a quarter loaded, for 2 s: 100 GB in 58,000 flows; sizes have a coefficient of
    // variation near 2.3, so the standard error is 1 %.
    let expected = 2 * 8 * 100_000_000_000 / 8 / 4 * 2;
    assert!(bytes.abs_diff(expected) * 100 < expected * 4, "{bytes} of {expected}");
    let share = built.setup.flows.len() as f64 / inter.len() as f64;
    assert!((4.9..5.1).contains(&share), "{share}");
    let load = &built.report.loads.iter().find(|load| load.class == fabric::LinkClass::Inter).unwrap();
    assert!(load.arrivals_ppm.abs_diff(250_000) < 5, "{}", load.arrivals_ppm);
    let starts = built.setup.flows.iter().map(|flow| match flow.start {
        experiment::Start::At(at) => at,
        experiment::Start::Waits { .. } => Time::NEVER,
    });
    assert!(starts.clone().is_sorted() && starts.max() < Some(Time::from_ms(2_000)));
    // Each flow between datacenters brings four inside, and each crosses one link towards a host: 5 times the payload
    // of the inter links, over twice their capacity.
    let hosts = built.report.loads.iter().find(|load| load.class == fabric::LinkClass::Host).unwrap();
    assert!(hosts.arrivals_ppm.abs_diff(625_000) < 20, "{}", hosts.arrivals_ppm);
    assert!(built.warnings.is_empty(), "{:?}", built.warnings);
    let rate: Rate = built.report.arrivals[1].offered;
    assert!(rate.bps().abs_diff(400_000_000_000) < 100_000_000, "{rate}");
}

#[test]
fn a_ratio_of_bytes_counts_bytes() {
    let traffic = "[[traffic]]\nkind=\"poisson\"\nintra=\"google-rpc\"\ninter=\"alibaba-wan\"\nload=0.5\nratio=\"1:1\"\nratio_of=\"bytes\"\nflows=10";
    let built = built(&read(&small(PAIR, traffic)));
    let [intra, inter] = &built.report.arrivals[..] else { panic!("two classes") };
    assert!(intra.offered.bps().abs_diff(inter.offered.bps()) * 1_000 < inter.offered.bps(), "{intra:?} {inter:?}");
    assert_eq!(built.setup.flows.len(), 10);
}

#[test]
fn an_overloaded_class_is_a_warning() {
    let traffic = "[[traffic]]\nkind=\"poisson\"\nintra=\"websearch\"\ninter=\"alibaba-wan\"\nload=1\nratio=\"4:1\"\nratio_of=\"bytes\"\nduration=\"1ms\"";
    let built = built(&read(&small(PAIR, traffic)));
    let said = built.warnings.iter().find(|warning| warning.contains("250.0 % of its rate"));
    assert!(said.is_some_and(|said| said.contains("traffic.0.load")), "{:?}", built.warnings);
}

/// Three sites of 4, 2 and 1 hosts behind one switch each, on a triangle of 10 Gb/s links.
fn triangle(load: &str) -> BuiltRun {
    let site = |name: &str, datacenter: u32, hosts: u32| {
        format!(
            "{{ name = \"{name}\", kind = \"switch\", datacenter = {datacenter}, hosts = {hosts}, host_rate = \"100Gbps\", host_delay = \"1us\" }}"
        )
    };
    let link = |a: &str, b: &str| format!("{{ between = [\"{a}\", \"{b}\"], rate = \"10Gbps\", delay = \"1ms\" }}");
    let topology = format!(
        "[topology]\nkind = \"custom\"\nnodes = [{}, {}, {}]\nlinks = [{}, {}, {}]",
        site("a", 0, 4),
        site("b", 1, 2),
        site("c", 2, 1),
        link("a", "b"),
        link("b", "c"),
        link("a", "c")
    );
    let traffic = format!(
        "[[traffic]]\nkind=\"poisson\"\ninter=\"websearch\"\nload_of=\"inter\"\nload=\"{load}\"\nduration=\"1s\""
    );
    built(&with(&small(&topology, &traffic), &[("stop", "2s")]))
}

/// By hand: of 7 senders each has 3, 5 or 6 receivers elsewhere. From a to b goes 4/7 * 2/3 of all, from b to a 2/7 * 4/5, from
/// a to c 4/7 * 1/3, from c to a 1/7 * 4/6, from b to c 2/7 * 1/5, and from c to b 1/7 * 2/6. Each link should carry a sixth.
#[test]
fn the_most_loaded_link_of_each_direction_is_named() {
    let built = triangle("50%");
    let inter = built.report.most_loaded.iter().filter(|load| load.class == fabric::LinkClass::Inter);
    let found: Vec<(&str, u64)> = inter.map(|load| (load.link.as_str(), load.ppm / 1_000)).collect();
    let share = |part: f64| (500.0 * 6.0 * part) as u64;
    let expected = [
        ("a>b", share(4.0 / 7.0 * 2.0 / 3.0)),
        ("a>c", share(4.0 / 7.0 / 3.0)),
        ("b>a", share(2.0 / 7.0 * 4.0 / 5.0)),
        ("b>c", share(2.0 / 7.0 / 5.0)),
        ("c>a", share(1.0 / 7.0 * 4.0 / 6.0)),
        ("c>b", share(1.0 / 7.0 * 2.0 / 6.0)),
    ];
    for ((link, ppm), (expected_link, expected_ppm)) in found.iter().zip(expected) {
        assert!(*link == expected_link && ppm.abs_diff(expected_ppm) <= 1, "{found:?}");
    }
    assert_eq!(found.len(), 6);
    let said = built.warnings.join("; ");
    assert!(said.contains("arrivals offer a>b 114.3 % of its rate:") && said.contains("traffic.0.load"), "{said}");
    assert!(triangle("40%").warnings.is_empty(), "{:?}", triangle("40%").warnings);
    assert!(triangle("41.9%").warnings.join("").contains("95.8 %"), "{:?}", triangle("41.9%").warnings);
}

/// Entries load links together only while both last, and only those that use the link are named.
#[test]
fn loads_at_different_times_do_not_add_up() {
    let entry = |start: &str, to: &str| {
        format!(
            "[[traffic]]\nkind=\"poisson\"\nintra=\"websearch\"\nload=0.6\nload_of=\"host\"\nto=\"{to}\"\nstart=\"{start}\"\nduration=\"5ms\"\n"
        )
    };
    let star = "[topology]\nkind = \"single-switch\"\nhosts = 8\nrate = \"10Gbps\"";
    let said = |entries: &[String]| built(&read(&small(star, &entries.concat()))).warnings.join("; ");
    assert_eq!(said(&[entry("0ms", "all"), entry("5ms", "all")]), "");
    let both = said(&[entry("0ms", "all"), entry("4ms", "all")]);
    assert!(both.contains("120.0 % of its rate") && both.contains("(traffic.0.load, traffic.1.load)"), "{both}");
    let apart = said(&[entry("0ms", "0..4"), entry("0ms", "0..4"), entry("0ms", "4..8")]);
    assert!(apart.contains("(traffic.0.load, traffic.1.load)"), "{apart}");
}

/// The loads of single links add up to those of their classes.
#[test]
fn loads_of_links_add_up_to_those_of_classes() {
    let oversubscribed =
        "[topology]\nkind = \"fat-trees\"\nk = 4\ndatacenters = 3\noversubscription = 4\ninter_rtt = \"2ms\"";
    for topology in [PAIR, oversubscribed] {
        for from in ["all", "even", "0..5"] {
            let traffic = format!(
                "[[traffic]]\nkind=\"poisson\"\nintra=\"websearch\"\ninter=\"websearch\"\nload=0.1\nload_of=\"nic\"\nfrom=\"{from}\"\n\
                 ratio=\"4:1\"\nflows=10"
            );
            let built = built(&read(&small(topology, &traffic)));
            for load in &built.report.loads {
                let most = built.report.most_loaded.iter().filter(|it| it.class == load.class).map(|it| it.ppm).max();
                let most = most.unwrap_or(0);
                assert!(most + 5 >= load.arrivals_ppm, "{} {most}: {load:?}", load.class.name());
                // Identical senders load every NIC equally, with the load that the entry states.
                if load.class == fabric::LinkClass::Nic {
                    assert!(most.abs_diff(100_000) < 200, "{from}: {most}");
                }
            }
        }
    }
}

#[test]
fn ineffective_thresholds_are_warned_of_by_key() {
    let flow = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\nscope = \"inter\"";
    let said = |more: &str| built(&read(&small(PAIR, &format!("{flow}\n{more}")))).warnings.join("\n");
    assert_eq!(said(""), "");
    let above = said("[port]\nbuffer = \"100KB\"\necn = { min = \"200KB\", max = \"300KB\" }");
    assert!(above.contains("port.ecn.min is 200000") && above.contains("its buffer): nothing is marked"), "{above}");
    let most = said("[port]\nbuffer = \"100KB\"\necn = { min = \"50KB\", max = \"300KB\" }");
    assert!(most.contains("port.ecn.max is 300000") && !most.contains("port.ecn.min"), "{most}");
    let inter =
        said("[port]\nbuffer = \"1MB\"\n[port.inter]\nbuffer = \"100KB\"\necn = { min = \"200KB\", max = \"200KB\" }");
    assert!(inter.contains("port.inter.ecn.min is 200000") && inter.contains("the same at 16 ports"), "{inter}");
    let step = said("[port]\nbuffer = \"100KB\"\necn = { step = \"200KB\" }");
    assert!(step.contains("port.ecn.step is 200000") && !step.contains("port.ecn.min"), "{step}");
    let phantom =
        said("[port]\necn = \"off\"\n[schemes.a.port]\nphantom = { size = \"1MB\", min = \"2MB\", max = \"3MB\" }");
    assert!(
        phantom.contains("schemes.a.port.phantom.min is 2000000") && phantom.contains("marks nothing"),
        "{phantom}"
    );
    // A packet that is accepted finds a queue that is shorter by itself.
    let equal = said("[port]\nbuffer = \"100KB\"\necn = { step = \"98KB\" }");
    assert!(equal.contains("port.ecn.step is 98000"), "{equal}");
    assert_eq!(said("[port]\nbuffer = \"100KB\"\necn = { step = \"90KB\" }"), "");
    let scheme = said("[schemes.a.port]\nbuffer = \"100KB\"\necn = { min = \"200KB\", max = \"300KB\" }");
    assert!(scheme.contains("schemes.a.port.ecn.min is 200000"), "{scheme}");
    // The maximum of one port in a shared buffer: each cable takes an eighth of the remaining buffer.
    let shared = said("[port]\necn = { min = \"2MB\", max = \"2MB\" }\n[switch]\nbuffer = \"4MB\"");
    assert!(shared.contains("port.ecn.min is 2000000") && shared.contains("alpha or xoff"), "{shared}");
    assert_eq!(said("[port]\necn = { min = \"200KB\", max = \"400KB\" }\n[switch]\nbuffer = \"64MB\""), "");
}

#[test]
fn targets_below_base_rtt_are_warned_of() {
    let flow = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\nscope = \"inter\"";
    let said = |law: &str, set: &[(&str, &str)]| {
        let text = small(PAIR, flow).replace("dctcp", law);
        built(&with(&text, set)).warnings.join("\n")
    };
    let timely = said("timely", &[]);
    for target in ["schemes.a.params.timely.t_low, 50", "schemes.a.params.timely.t_high, 500"] {
        assert!(timely.contains(target) && timely.contains("is below the base round trip of inter flows"), "{timely}");
    }
    let set = [("schemes.a.inter_params.t_low", "50us"), ("schemes.a.inter_params.t_high", "3ms")];
    let own = said("timely", &set);
    assert!(own.contains("schemes.a.inter_params.t_low, 50.000 us") && !own.contains("t_high"), "{own}");
    let set = [("schemes.a.params.timely.t_low", "3ms"), ("schemes.a.params.timely.t_high", "4ms")];
    assert!(!said("timely", &set).contains("is below the base round trip"), "{}", said("timely", &set));
}

/// DCTCP begins with ten packets on any path, Uno with a bandwidth-delay product, ExpressPass by credits.
#[test]
fn initial_windows_are_reported() {
    let flow = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\nscope = \"any\"";
    let of = |law: &str| built(&read(&small(PAIR, flow).replace("dctcp", law))).report.classes;
    let dctcp = of("dctcp");
    assert_eq!(dctcp.iter().map(|it| it.class).collect::<Vec<_>>(), [FlowClass::Intra, FlowClass::Inter]);
    for class in &dctcp {
        let [least, most] = [class.least, class.most].map(|it| it.send_limits.unwrap().window);
        assert!(least == most && least.get() < 50_000 && class.least.bdp <= class.most.bdp, "{class:?}");
    }
    // 100 Gb/s and 2 ms: 25 MB.
    assert!(dctcp[1].most.bdp.get().abs_diff(25_000_000) < 300_000, "{dctcp:?}");
    let uno = of("unocc");
    assert!(uno[1].most.send_limits.unwrap().window.get() * 10 > dctcp[1].most.bdp.get(), "{uno:?}");
}

#[test]
fn long_flows_outlast_the_run() {
    let text = small(
        "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nrate = \"10Gbps\"\nhost_delay = [\"1us\", \"2us\", \"3us\", \"4us\"]",
        "[[traffic]]\nkind = \"long\"\nflows = [[0, 2], [\"left.host1\", 3]]",
    );
    let built = built(&read(&text));
    assert!(built.setup.flows.iter().all(|flow| flow.size.get() > 12_500_000));
    // host0 to host1: 1 + 2 us each way over 10 Gb/s host links.
    let same_side = built.report.intra_rtt.unwrap().min;
    assert_eq!(same_side, Span::from_ps(6_000_000 + 2 * (3_328_000 + 51_200)));
}

#[test]
fn host_pair_has_a_control_loop() {
    let text = small(
        "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\ntwo_datacenters = true\ndelay = \"1ms\"",
        "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = \"1MB\"",
    );
    let built = built(&read(&text));
    assert_eq!(built.report.intra_rtt, None);
    assert_eq!(built.setup.intra_rtt, built.report.inter_rtt.unwrap().min);
    assert_eq!(built.classes, [FlowClass::Inter]);
}

#[test]
fn custom_networks_and_lists_build() {
    let text = small(
        "[topology]\nkind = \"custom\"\nnodes = [{ name = \"a\", kind = \"host\" }, { name = \"s\", kind = \"switch\" }, \
         { name = \"t\", kind = \"switch\", datacenter = 1 }, { name = \"b\", kind = \"host\", datacenter = 1 }]\n\
         links = [{ between = [\"a\", \"s\"], rate = \"10Gbps\", delay = \"1us\" }, \
         { between = [\"s\", \"t\"], rate = \"10Gbps\", delay = \"1ms\", parallel = 2 }, \
         { between = [\"t\", \"b\"], rate = \"10Gbps\", delay = \"1us\" }]",
        "[[traffic]]\nkind = \"list\"\nflows = [{ src = \"a\", dst = \"b\", size = \"1MB\" }, { src = 1, dst = 0, size = 10, after = 0 }]",
    );
    let built = built(&read(&text));
    assert_eq!(
        built.setup.dependencies_of(&built.setup.flows[1]),
        [experiment::Dependency::Complete(experiment::FlowId(0))]
    );
    assert_eq!(built.report.loads.iter().find(|load| load.class == fabric::LinkClass::Inter).unwrap().links, 4);
}

/// Hosts that are attached to a switch by their number equal those of explicit nodes and links.
#[test]
fn node_hosts_are_attached_to_their_switch() {
    let traffic = "[[traffic]]\nkind = \"list\"\nflows = [{ src = \"s.h1\", dst = \"t.h0\", size = \"1MB\" }]";
    let long = "links = [{ between = [\"s\", \"t\"], rate = \"10Gbps\", delay = \"1ms\" }]";
    let attached = "[topology]\nkind = \"custom\"\nnodes = [\
         { name = \"s\", kind = \"switch\", hosts = 2, host_rate = \"1Gbps\", host_delay = \"5us\" }, \
         { name = \"t\", kind = \"switch\", datacenter = 1, hosts = 1, host_rate = \"2Gbps\", host_delay = \"6us\" }]\n";
    let cable = |ends: &str, rate: &str, delay: &str| {
        format!("[[topology.links]]\nbetween = {ends}\nrate = \"{rate}\"\ndelay = \"{delay}\"\n")
    };
    let one_by_one = "[topology]\nkind = \"custom\"\nnodes = [{ name = \"s\", kind = \"switch\" }, \
         { name = \"s.h0\", kind = \"host\" }, { name = \"s.h1\", kind = \"host\" }, \
         { name = \"t\", kind = \"switch\", datacenter = 1 }, { name = \"t.h0\", kind = \"host\", datacenter = 1 }]\n"
        .to_owned()
        + &cable("[\"s.h0\", \"s\"]", "1Gbps", "5us")
        + &cable("[\"s.h1\", \"s\"]", "1Gbps", "5us")
        + &cable("[\"t.h0\", \"t\"]", "2Gbps", "6us")
        + &cable("[\"s\", \"t\"]", "10Gbps", "1ms");
    let [short, listed] =
        [format!("{attached}{long}"), one_by_one].map(|topology| built(&read(&small(&topology, traffic))).setup);
    let nodes = |setup: &experiment::Setup| format!("{:?} {:?}", setup.network.nodes(), setup.network.links());
    assert_eq!(nodes(&short), nodes(&listed));
    let ports = |setup: &experiment::Setup| -> Vec<_> {
        let links = 0..setup.network.links().len() as u32;
        links.map(|link| *setup.network.port(fabric::LinkId(link)).config()).collect()
    };
    assert_eq!(ports(&short), ports(&listed));
    assert_eq!(short.network.hosts().len(), 3);
    assert_eq!((short.flows[0].src, short.flows[0].dst), (fabric::HostId(1), fabric::HostId(2)));
}

#[test]
fn unequal_pairs_and_oversubscription_shape_the_links() {
    let topology = "[topology]\nkind = \"fat-trees\"\nk = 4\ndatacenters = 3\noversubscription = 4\ninter_rtt = \"2ms\"\n\
                    [[topology.inter]]\nbetween = [2, 0]\nlinks = 1\nrate = \"400Gbps\"\nrtt = \"40ms\"";
    let built = built(&read(&small(topology, "[[traffic]]\nkind=\"permutation\"\nsize=10")));
    let inter = built.report.inter_rtt.unwrap();
    assert!(
        (inter.max.ps() - Span::from_ms(40).ps()).abs() <= 2
            && (inter.min.ps() - Span::from_ms(2).ps()).abs() < 700_000,
        "{inter:?}"
    );
    let edge = built.setup.network.links().iter().position(|link| link.class == fabric::LinkClass::Edge).unwrap();
    assert_eq!(built.setup.network.port(fabric::LinkId(edge as u32)).config().rate, Rate::from_gbps(25));
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_seed_others() {
    let flows = |seed: &str| built(&with(MIXED, &[("seed", seed)])).setup.flows;
    assert_eq!(flows("3"), flows("3"));
    assert_ne!(flows("3"), flows("4"));
}

#[test]
fn a_check_builds_every_run() {
    let report = scenario::check(&read(MIXED)).unwrap();
    assert_eq!(report.runs.len(), 6);
    assert_eq!(report.runs[0].report.hosts, 32);
}

const KEYS: &[&str] = &[
    "schema",
    "name",
    "seed",
    "stop",
    "topology",
    "topology.kind",
    "topology.k",
    "topology.datacenters",
    "topology.hosts_per_edge",
    "topology.rate",
    "topology.host_rate",
    "topology.edge_rate",
    "topology.core_rate",
    "topology.border_rate",
    "topology.inter_rate",
    "topology.oversubscription",
    "topology.link_delay",
    "topology.intra_rtt",
    "topology.inter_delay",
    "topology.inter_rtt",
    "topology.border_links_per_core",
    "topology.inter_links",
    "port.buffer",
    "port.ecn",
    "port.ecn.min",
    "port.ecn.max",
    "port.ecn.step",
    "port.ecn.probability",
    "port.phantom",
    "port.phantom.size",
    "port.phantom.drain",
    "port.loss_probability",
    "port.inter.loss_probability",
    "port.mark_at",
    "host.mss",
    "host.header",
    "host.ack_size",
    "host.ack_every",
    "host.ack_delay",
    "host.load_balancing",
    "host.entropies",
    "host.rto_min",
    "schemes.uno.law",
    "schemes.uno.intra",
    "schemes.uno.host",
    "schemes.uno.host.mss",
    "schemes.uno.params.unocc.k",
    "schemes.uno.params.unocc.alpha",
    "schemes.uno.params.unocc.epoch_period",
    "schemes.uno.port.buffer",
    "traffic.0.receiver",
    "traffic.0.intra",
    "traffic.0.inter",
    "traffic.0.size",
    "traffic.0.start",
    "traffic.0.stagger",
    "traffic.0.kind",
    "traffic.1.intra",
    "traffic.1.load",
    "traffic.1.load_of",
    "traffic.1.ratio",
    "traffic.1.ratio_of",
    "traffic.1.duration",
    "traffic.1.flows",
    "traffic.1.start",
    "monitor.interval",
    "monitor.ports",
    "monitor.flows",
    "sizes.small",
    "grid",
];

const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "65535",
    "-1",
    "9223372036854775807",
    "0.0",
    "0.5",
    "1e-18",
    "1e18",
    "inf",
    "nan",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"auto\"",
    "\"off\"",
    "\"port\"",
    "\"unlimited\"",
    "bdp",
    "0.001bdp",
    "0ps",
    "1ps",
    "1ms",
    "1000000s",
    "1B",
    "16TiB",
    "1Mbps",
    "8Tbps",
    "0%",
    "100%",
    "1:1",
    "1000000:1",
    "host",
    "inter",
    "flows",
    "bytes",
    "spray",
    "dumbbell",
    "permutation",
    "any",
    "..",
    "[0, 1]",
    "[[0, 1]]",
    "{ min = 0, max = 0 }",
    "{ size = 1 }",
    "2026-01-01",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text, "x", &Overrides::default());
    }

    #[test]
    fn no_mutation_panics(at in 0..MIXED.len(), cut in 0..40usize, insert in "[\\PC\n]{0,8}") {
        let mut bytes = MIXED.as_bytes().to_vec();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, insert.bytes());
        if let Ok(scenario) = parse(&String::from_utf8_lossy(&bytes), "x", &Overrides::default()) {
            let _ = scenario.resolved_toml();
            let fat_trees = matches!(&scenario.config.topology.value, scenario::config::Topology::FatTrees(trees) if trees.k.get() <= 8 && trees.datacenters.get() <= 3);
            if fat_trees {
                let _ = scenario.runs()[0].build();
            }
        }
    }

    /// Odd values of real keys pass every check or are refused, alone and in pairs.
    #[test]
    fn no_value_panics(
        first in (prop::sample::select(KEYS), prop::sample::select(VALUES)),
        second in (prop::sample::select(KEYS), prop::sample::select(VALUES)),
    ) {
        let set = [first, second].map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        match parse(MIXED, "x", &Overrides { set, ..Overrides::default() }) {
            Err(error) => prop_assert!(error.to_string().starts_with("error: ")),
            Ok(scenario) => {
                prop_assert_eq!(&read(&scenario.resolved_toml()).config, &scenario.config);
                if let Err(error) = scenario.runs()[0].build() {
                    prop_assert!(error.to_string().starts_with("error: "));
                }
            }
        }
    }

    #[test]
    fn no_argument_panics(key in "[a-z.0-9\"]{0,20}", value in "\\PC{0,20}") {
        let overrides = Overrides { set: vec![(key, value)], ..Overrides::default() };
        if let Err(error) = parse(MIXED, "x", &overrides) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn a_lone_flow_takes_its_ideal_time() {
    let text = small(PAIR, "[[traffic]]\nkind = \"long\"\nflows = [[0, 31]]\nsize = \"1MiB\"");
    let set = [("schemes.a.law", "fixed"), ("schemes.a.params.fixed.window", "64MB"), ("stop", "1s")];
    let built = built(&with(&text, &set));
    let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
    let flow = &outcome.flows[0];
    assert_eq!(flow.delivered, Bytes::new(1 << 20));
    assert_eq!(flow.completed.since(flow.started), built.setup.ideal(&built.setup.flows[0]));
}

/// Hosts that know sizes notify laws that use them, and their NICs use them if there is a quantum.
#[test]
fn unused_size_aware_is_warned_of() {
    let traffic = "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = \"1MB\"\n";
    let said = |law, quantum| {
        let set = [("host.size_aware", "true"), ("schemes.a.law", law), ("host.initial_quantum", quantum)];
        let built = built(&with(&small(PAIR, traffic), &set));
        assert!(built.setup.host.size_aware);
        built.warnings.iter().any(|said| said.contains(&format!("nothing uses it: the law {law} does not")))
    };
    assert!(said("cubic", "0B"));
    assert!(!said("strait", "0B") && !said("cubic", "window"));
    // Of two laws one is enough.
    let two = |intra, inter| {
        let laws = format!("intra = \"{intra}\"\ninter = \"{inter}\"");
        let text = small(PAIR, traffic).replace("law = \"dctcp\"", &laws);
        built(&with(&text, &[("host.size_aware", "true")])).warnings.iter().any(|said| said.contains("nothing uses it"))
    };
    assert!(two("cubic", "dctcp") && !two("cubic", "strait") && !two("strait", "cubic"));
}

/// The rest of a trimmed packet must be smaller than the packet, and have room.
#[test]
fn ineffective_trimming_is_warned_of() {
    let traffic = "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = \"1MB\"\n";
    let said = |set: &[(&str, &str)], words: &str| {
        let built = built(&with(&small(PAIR, traffic), set));
        built.warnings.iter().any(|said| said.contains(words))
    };
    let valid = [("port.trim.header", "64")];
    assert!(said(&[("port.trim.header", "9000")], "to 9000 B, which is no less"));
    assert!(said(&[("port.trim.control_buffer", "63B")], "63 B for control packets, and drops all of 64 B"));
    assert!(!said(&valid, "which is no less") && !said(&valid, "for control packets"));
    assert!(said(&[("host.rto_min", "5s")], "host.rto_min (5.000 s) is over host.rto_max (4.000 s)"));
}
