//! Small runs for tests.

use std::path::{Path, PathBuf};

use experiment::{FlowId, FlowSpec, HostConfig, Outcome, SeriesConfig, Setup, Start};
use fabric::topology::{Dumbbell, FatTrees, InterLinks, dumbbell};
use fabric::{Ecn, HostId, LinkId, Network, Phantom, PortConfig, Routes};
use laws::Law;
use laws::catalog::{LawKind, ParamValue, build};
use serde_json::json;
use units::{Bytes, Frac, Rate, Span, Time};

use crate::input::{Class, CodeVersions, EngineTimes, Program, RunInfo, SizeBin, SweepColumns};
use crate::store::{ResultsWriter, RunResults, SweepPlan};
use crate::tables::FlowRow;

/// A directory that is removed with it.
pub(crate) struct TestbedDir(PathBuf);

impl TestbedDir {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-results-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the names in one of its folders, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

impl Drop for TestbedDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Puts a run into a directory, as a lone one.
pub(crate) fn write_run(target: &Path, run: &RunResults) {
    let plan = SweepPlan::new("test", "", [(run.manifest.run.clone(), run.manifest.key.clone())]);
    let writer = ResultsWriter::new(target, plan, "a test").unwrap();
    writer.finish(&Program::default(), std::slice::from_ref(run), "", String::new()).unwrap();
}

/// A flow of 1 KB that takes a microsecond.
pub(crate) fn flow_row(flow: u32) -> FlowRow {
    FlowRow {
        flow,
        src: 0,
        dst: 1,
        class: Class::Intra,
        traffic: 0,
        law: 0,
        request: None,
        collective: None,
        ideal_start: Span::ZERO,
        size: Bytes::new(1_000),
        started: Time::ZERO,
        completed: Time::from_us(1),
        ideal: Span::from_us(1),
        base_rtt: Span::from_us(1),
        delivered: Bytes::new(1_000),
        stats: flow::FlowStats::default(),
        actions: laws::LawActions::default(),
    }
}

pub(crate) fn bins() -> Vec<SizeBin> {
    let middle = Bytes::new(1_000_000);
    vec![
        SizeBin { name: "small".into(), high: Some(middle), ..SizeBin::default() },
        SizeBin { name: "large".into(), low: middle, ..SizeBin::default() },
    ]
}

fn spec(src: u32, dst: u32, size: u64, kind: u16) -> FlowSpec {
    FlowSpec {
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::new(size),
        start: Start::At(Time::ZERO),
        kind,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    }
}

fn setup(network: Network, flows: Vec<FlowSpec>) -> Setup {
    let routes = Routes::new(&network).unwrap();
    let series = SeriesConfig::default();
    let (stop, intra_rtt) = (Time::from_ms(500), Span::from_us(14));
    Setup {
        network,
        routes,
        symmetric: false,
        flows,
        host: HostConfig::default(),
        series,
        seed: 1,
        stop,
        intra_rtt,
        dependencies: experiment::Dependencies::default(),
        modules: Vec::new(),
        ties: experiment::TieBreak::default(),
    }
}

fn info(setup: &Setup, laws: &[&str]) -> RunInfo {
    let class = |flow: &FlowSpec| {
        let same = setup.network.datacenter_of(flow.src) == setup.network.datacenter_of(flow.dst);
        if same { Class::Intra } else { Class::Inter }
    };
    RunInfo {
        scenario: "test".into(),
        run: "a".into(),
        label: "A".into(),
        without: Vec::new(),
        columns: SweepColumns::default(),
        point: vec![("load".into(), json!("40%"))],
        classes: setup.flows.iter().map(class).collect(),
        traffic: (0..setup.flows.len()).map(|flow| flow as u16 % 2).collect(),
        traffic_names: vec!["background".into(), "bursts".into()],
        sizes: bins(),
        laws: laws.iter().map(|&law| law.to_owned()).collect(),
        requests: Vec::new(),
        collectives: Vec::new(),
        training: Vec::new(),
        schedules: Vec::new(),
        open_ended: Vec::new(),
        fairness_window: Span::ZERO,
        sets_fairness_window: false,
        resolved: json!({ "name": "test", "seed": 1 }),
        code: CodeVersions::default(),
        key: String::new(),
        inputs: vec![("test.toml".into(), files::sha256(b"test"))],
        warnings: Vec::new(),
        notes: Vec::new(),
        conditions: crate::conditions::Conditions::default(),
        emulator: None,
        virtual_time: None,
    }
}

/// Runs flows of kind 0 under DCTCP, 1 under GEMINI, 2 under a wide constant window.
pub(crate) fn run(setup: &Setup, threads: usize) -> Outcome {
    let law = |spec: &FlowSpec, path: &laws::PathInfo| -> Law {
        match spec.kind {
            0 => build(LawKind::Dctcp, path, &[]).unwrap(),
            1 => build(LawKind::Gemini, path, &[]).unwrap(),
            _ => build(LawKind::Fixed, path, &[("window", ParamValue::Bytes(Bytes::new(1 << 24)))]).unwrap(),
        }
    };
    engine::run_on(setup, engine::Threads::always(threads), law, &mut |_| true)
}

/// Two datacenters, a bottleneck with a phantom queue between them; flows inside and across, everything sampled, a
/// request of two flows.
pub(crate) fn two_datacenters() -> (RunInfo, Setup, Outcome) {
    let ecn = |min, max| Ecn { min: Bytes::new(min), max: Bytes::new(max), max_probability: Frac::ONE };
    let edge = PortConfig {
        buffer: Bytes::new(1 << 20),
        ecn: Some(ecn(100_000, 300_000)),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
    };
    let phantom = Phantom { size: Bytes::new(1 << 20), drain: Frac::millionths(900_000), ecn: ecn(100_000, 300_000) };
    let bottleneck = PortConfig { phantom: Some(phantom), delay: Span::from_us(100), ..edge };
    let side = vec![(edge, edge); 3];
    let network = dumbbell(&Dumbbell { left: side.clone(), right: side, bottleneck, two_datacenters: true }).unwrap();
    let flows = vec![
        spec(0, 3, 4_000_000, 1),
        spec(1, 3, 4_000_000, 1),
        spec(4, 3, 2_000_000, 0),
        spec(5, 3, 2_000_000, 0),
        spec(0, 1, 10_000, 0),
    ];
    let mut setup = setup(network, flows);
    // Law names come in the order of flows: the first flow here runs kind 0.
    setup.flows.rotate_right(1);
    let ports = (0..setup.network.links().len() as u32).map(LinkId).collect();
    setup.series = SeriesConfig {
        interval: Span::from_us(50),
        ports,
        flows: (0..5).map(FlowId).collect(),
        ..SeriesConfig::default()
    };
    let mut info = info(&setup, &["dctcp", "gemini"]);
    info.requests = vec![vec![FlowId(3), FlowId(4)]];
    let outcome = run(&setup, 1);
    (info, setup, outcome)
}

/// Two hosts and a flow, over links that lose packets in bursts.
pub(crate) fn lossy() -> Setup {
    let bursts = Some(fabric::Bursts { group: 10, losses: [Frac::millionths(1_000); fabric::MAX_IN_GROUP] });
    let port = PortConfig { bursts, ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1)) };
    let shape =
        Dumbbell { left: vec![(port, port)], right: vec![(port, port)], bottleneck: port, two_datacenters: false };
    setup(dumbbell(&shape).unwrap(), vec![spec(0, 1, 100_000, 0)])
}

/// Eight datacenters in a full mesh, flows of both classes from each host, everything sampled.
pub(crate) fn mesh() -> (RunInfo, Setup, Outcome) {
    let ecn = Ecn { min: Bytes::new(50_000), max: Bytes::new(150_000), max_probability: Frac::HALF };
    let port = PortConfig {
        buffer: Bytes::new(200_000),
        ecn: Some(ecn),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
    };
    let trees = FatTrees::uno(port, Span::from_us(50));
    let pairs = (0..8).flat_map(|low| (low + 1..8).map(move |high| (low, high)));
    let inter = pairs.map(|between| InterLinks { between, count: 1, ..trees.inter[0].clone() }).collect();
    let shape = FatTrees { datacenters: 8, k: 2, hosts_per_edge: 1, border_links_per_core: 1, inter, ..trees };
    let network = shape.build().unwrap();
    let hosts = network.hosts().len() as u32;
    let flows = (0..hosts).flat_map(|src| [spec(src, src ^ 1, 300_000, 0), spec(src, (src + 5) % hosts, 300_000, 1)]);
    let mut setup = setup(network, flows.collect());
    let ports = (0..setup.network.links().len() as u32).map(LinkId).collect();
    let all = (0..setup.flows.len() as u32).map(FlowId).collect();
    setup.series = SeriesConfig { interval: Span::from_us(50), ports, flows: all, ..SeriesConfig::default() };
    let outcome = run(&setup, 1);
    (info(&setup, &["dctcp", "gemini"]), setup, outcome)
}

/// One flow alone, not held back by its law.
pub(crate) fn one_flow() -> (RunInfo, Setup, Outcome) {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let side = vec![(port, port)];
    let pipe = Dumbbell { left: side.clone(), right: side, bottleneck: port, two_datacenters: false };
    let setup = setup(dumbbell(&pipe).unwrap(), vec![spec(0, 1, 1_000_000, 2)]);
    let outcome = run(&setup, 1);
    (info(&setup, &["dctcp", "gemini", "fixed"]), setup, outcome)
}

/// A network with many links, and one flow.
pub(crate) fn fat_tree() -> (Setup, Outcome) {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = FatTrees { k: 4, ..FatTrees::uno(port, Span::from_us(10)) }.build().unwrap();
    let setup = setup(network, vec![spec(0, 9, 10_000, 2)]);
    let outcome = run(&setup, 1);
    (setup, outcome)
}

pub(crate) fn results_of(info: &RunInfo, setup: &Setup, outcome: &Outcome) -> RunResults {
    let times = EngineTimes { wall_s: 0.125, cpu_s: 0.1, peak_rss_bytes: 1 << 20 };
    let program = Program { version: "0.1.0".into(), commit: "abc".into(), engine: "1".into(), record: "1".into() };
    RunResults::new(info, &program, setup, outcome, times).unwrap()
}

/// All parts of [`two_datacenters`].
pub(crate) fn results() -> RunResults {
    let (info, setup, outcome) = two_datacenters();
    results_of(&info, &setup, &outcome)
}
