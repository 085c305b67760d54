//! Studies without a command line: their results, their reuse of results, and their messages to observers.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Scratch;
use scenario::{Overrides, Scenario, parse};
use study::{Error, Line, NullRecorder, Others, ProgressDisplay, Silent, Simulator, Study, SweepObserver};
use units::Time;

const SMALL: &str = r#"
schema = 1
name = "small"
stop = "100ms"
topology = { kind = "dumbbell", left = 2, right = 2, rate = "10Gbps", delay = "1us", host_rate = "10Gbps", host_delay = "1us" }
port = { buffer = "100kB", ecn = { step = "30kB" } }
schemes.dctcp = { law = "dctcp" }
schemes.cubic = { law = "cubic" }
traffic = [{ kind = "permutation", size = "64KiB" }]
grid.seed = [1, 2, 3]
"#;

fn scenario() -> Scenario {
    parse(SMALL, "small.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn study<'a>(scenario: &'a Scenario, watch: &'a dyn SweepObserver, out: &Path) -> Study<'a> {
    Study {
        scenario,
        backend: &Simulator { checked: true },
        watch,
        notes: &NullRecorder,
        schemes: &[],
        shard: None,
        only: &[],
        from: &[],
        runs_missing: true,
        threads: Some(2),
        out: out.to_path_buf(),
        replay: vec!["narrows run small.toml".into()],
        claims: &[],
        tables: &[],
        force: false,
        others: Others::Keep,
    }
}

/// Ends the work when a given number of runs have begun.
struct Impatient {
    most: usize,
    begun: AtomicUsize,
    said: Mutex<Vec<String>>,
    kept: AtomicUsize,
}

impl Impatient {
    fn new(most: usize) -> Self {
        Self { most, begun: AtomicUsize::new(0), said: Mutex::default(), kept: AtomicUsize::new(0) }
    }
}

impl SweepObserver for Impatient {
    fn tell(&self, text: &str) {
        self.said.lock().unwrap().push(text.to_owned());
    }

    fn interrupted(&self) -> bool {
        self.begun.load(Ordering::Relaxed) >= self.most
    }

    fn board<'a>(&'a self, _: &[String], kept: usize) -> Box<dyn ProgressDisplay + 'a> {
        self.kept.store(kept, Ordering::Relaxed);
        Box::new(Counting(self))
    }
}

struct Counting<'a>(&'a Impatient);

impl ProgressDisplay for Counting<'_> {
    fn run<'a>(&'a self, _: &str, _: Time, _: u64) -> Box<dyn Line + 'a> {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Box::new(Silent)
    }
}

/// The page's data include failed links and the steps of collectives.
#[test]
fn the_page_has_failures_and_collectives() {
    let scratch = Scratch::new("page");
    let text = r#"
        schema = 1
        name = "failing"
        stop = "50ms"
        topology = { kind = "dumbbell", left = 2, right = 2, rate = "10Gbps", delay = "1us", host_rate = "10Gbps", host_delay = "1us" }
        schemes.dctcp = { law = "dctcp" }
        traffic = [{ kind = "collective", operation = "all-reduce", algorithm = "ring", groups = [["left.host0", "right.host0"]], iterations = 2, size = "64KiB" }]
        failure = [{ ports = ["left>right"], at = "20us", until = "90us" }]
    "#;
    let scenario = parse(text, "failing.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    study(&scenario, &Silent, &scratch.0).run().unwrap_or_else(|error| panic!("{error}"));
    let page = fs::read_to_string(scratch.0.join("report.html")).unwrap();
    for part in [
        r#""failures":[{"links":["left>right","right>left"],"count":2,"down_ns":[[20000,90000]]}]"#,
        r#""collective_count":2"#,
        r#""number":1,"src":["#,
        r#"data-testid="section-collectives""#,
        r#"data-testid="section-network""#,
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// The page's data over all seeds and of the slowest flows agree with the results on disk, although a study of several
/// runs has no flows in memory any more.
#[test]
fn page_tails_match_stored_results() {
    let scratch = Scratch::new("tails");
    let scenario = scenario();
    let finished = study(&scenario, &Silent, &scratch.0).run().unwrap_or_else(|error| panic!("{error}"));
    assert!(finished.runs.iter().all(|run| run.flows.rows.is_empty()));
    let tails = study::tails(&results::store::load_set(&scratch.0).unwrap().runs);
    // Two schemes over three seeds; the first runs of these are the set's first two. Few flows, all inside the datacenter.
    let rows: Vec<_> = tails.pooled.iter().map(|row| (row.run, row.seeds, row.flows, row.few)).collect();
    assert_eq!(rows, [(0, 3, 12, true), (1, 3, 12, true)]);
    assert!(tails.pooled[0].ratios.is_none() && tails.pooled[1].ratios.is_some());
    assert_eq!(
        tails.slowest.iter().map(|it| (it.run, it.seeds, it.classes[0].flows)).collect::<Vec<_>>(),
        [(0, 3, 12), (1, 3, 12)]
    );
    let page = fs::read_to_string(scratch.0.join("report.html")).unwrap();
    for (name, json) in
        [("pooled", serde_json::to_string(&tails.pooled)), ("slowest", serde_json::to_string(&tails.slowest))]
    {
        assert!(page.contains(&format!("\"{name}\":{}", json.unwrap())), "{name}");
    }
    // No seeds are pooled if there is only one.
    let only = ["cubic,seed=2".to_owned()];
    let alone = Scratch::new("tails-alone");
    Study { only: &only, ..study(&scenario, &Silent, &alone.0) }.run().unwrap_or_else(|error| panic!("{error}"));
    let page = fs::read_to_string(alone.0.join("report.html")).unwrap();
    assert!(page.contains("\"pooled\":[]") && page.contains("data-testid=\"section-slowest\""));
}

#[test]
fn resumed_sweep_keeps_finished_runs_and_is_byte_identical() {
    let (whole, stopped) = (Scratch::new("whole"), Scratch::new("stopped"));
    let scenario = scenario();
    let finished = study(&scenario, &Silent, &whole.0).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((finished.runs.len(), finished.out.as_path()), (6, whole.0.as_path()));
    let impatient = Impatient::new(4);
    let error = study(&scenario, &impatient, &stopped.0).run().unwrap_err();
    let Error::Stopped { cause, finished, of: 6 } = error else { panic!("{error}") };
    assert!(matches!(*cause, Error::Interrupted) && (1..6).contains(&finished), "{finished}");
    // A command that is stopped while it looks for these reports the same about them.
    let error = study(&scenario, &Impatient::new(0), &stopped.0).run().unwrap_err();
    assert!(matches!(error, Error::Stopped { finished: again, of: 6, .. } if again == finished), "{error}");
    let patient = Impatient::new(usize::MAX);
    study(&scenario, &patient, &stopped.0).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(patient.kept.load(Ordering::Relaxed), finished);
    assert_eq!(patient.begun.load(Ordering::Relaxed), 6 - finished);
    assert_eq!(*patient.said.lock().unwrap(), [""; 0]);
    for run in scenario.runs() {
        for name in ["flows.parquet", "port_samples.parquet", "flow_samples.parquet", "manifest.json"] {
            let file = PathBuf::from(results::store::run_folder(&run.id)).join(name);
            assert_eq!(fs::read(whole.0.join(&file)).unwrap(), fs::read(stopped.0.join(&file)).unwrap(), "{}", run.id);
        }
    }
}

/// Ends the work when a given number of runs have ended.
struct Done {
    most: usize,
    ended: AtomicUsize,
}

impl SweepObserver for Done {
    fn tell(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        self.ended.load(Ordering::Relaxed) >= self.most
    }

    fn board<'a>(&'a self, _: &[String], _: usize) -> Box<dyn ProgressDisplay + 'a> {
        Box::new(DoneGuard(self))
    }
}

struct DoneGuard<'a>(&'a Done);

impl ProgressDisplay for DoneGuard<'_> {
    fn run<'a>(&'a self, _: &str, _: Time, _: u64) -> Box<dyn Line + 'a> {
        Box::new(DoneGuard(self.0))
    }
}

impl Line for DoneGuard<'_> {
    fn update(&self, _: &engine::RunProgress) {}

    fn update_real(&self, _: Time, _: usize) {}
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// An interruption during processing of all runs keeps all runs; a lone run, which is not on disk by then, is written.
#[test]
fn tail_computation_can_be_interrupted() {
    let (all, one) = (Scratch::new("told"), Scratch::new("told-alone"));
    let scenario = scenario();
    let done = || Done { most: 6, ended: AtomicUsize::new(0) };
    let error = study(&scenario, &done(), &all.0).run().unwrap_err();
    assert!(matches!(error, Error::Stopped { finished: 6, of: 6, .. }), "{error}");
    let idle = Impatient::new(usize::MAX);
    study(&scenario, &idle, &all.0).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((idle.kept.load(Ordering::Relaxed), idle.begun.load(Ordering::Relaxed)), (6, 0));
    let only = ["cubic,seed=2".to_owned()];
    let at_once = Done { most: 1, ended: AtomicUsize::new(0) };
    Study { only: &only, ..study(&scenario, &at_once, &one.0) }.run().unwrap_or_else(|error| panic!("{error}"));
    assert!(one.0.join("flows.parquet").exists());
}

#[test]
fn invalid_requests_fail_before_any_write() {
    let scratch = Scratch::new("unknown");
    let scenario = scenario();
    let schemes = ["dctpc".to_owned()];
    let error = Study { schemes: &schemes, ..study(&scenario, &Silent, &scratch.0) }.run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the scenario has no scheme `dctpc`; there are cubic, dctcp\nhelp: did you mean `dctcp`?"
    );
    assert!(!scratch.0.exists());
}

#[test]
fn runs_are_chosen_by_name() {
    let (some, wrong) = (Scratch::new("only"), Scratch::new("only-wrong"));
    let scenario = scenario();
    let only = ["cubic,seed=2".to_owned(), "dctcp,seed=3".to_owned()];
    let finished = Study { only: &only, ..study(&scenario, &Silent, &some.0) }.run().unwrap();
    let names: Vec<&str> = finished.runs.iter().map(|run| run.summary.run.as_str()).collect();
    assert_eq!(names, only);
    let only = ["cubic,seed=4".to_owned()];
    let error = Study { only: &only, ..study(&scenario, &Silent, &wrong.0) }.run().unwrap_err();
    assert_eq!(error.to_string(), "the scenario has no run `cubic,seed=4`");
    assert!(!wrong.0.exists());
}

/// The files that other runs name, and their order, are not part of a run.
#[test]
fn run_is_recognised_by_its_own_file_list() {
    let (both, one) = (Scratch::new("files-both"), Scratch::new("files-one"));
    let beside = Scratch::new("files");
    fs::create_dir_all(&beside.0).unwrap();
    for (name, bytes) in [("a.csv", 1_000), ("b.csv", 2_000)] {
        fs::write(beside.0.join(name), format!("start,src,dst,bytes\n0s,0,2,{bytes}\n")).unwrap();
    }
    let text = SMALL.replace(r#"{ kind = "permutation", size = "64KiB" }"#, r#"{ kind = "list", file = "a.csv" }"#);
    let text = text.replace("grid.seed = [1, 2, 3]", r#"grid."traffic.0.file" = ["a.csv", "b.csv"]"#);
    let origin = beside.0.join("small.toml").display().to_string();
    let scenario = || parse(&text, &origin, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    let (first, second) = (scenario(), scenario());
    let whole = study(&first, &Silent, &both.0).run().unwrap_or_else(|error| panic!("{error}"));
    let only = ["cubic,traffic.0.file=b.csv".to_owned()];
    let alone =
        Study { only: &only, ..study(&second, &Silent, &one.0) }.run().unwrap_or_else(|error| panic!("{error}"));
    let found = whole.runs.iter().find(|run| run.summary.run == only[0]).unwrap();
    assert_eq!(found.manifest.key, alone.runs[0].manifest.key);
    assert_eq!(found.manifest.inputs.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["b.csv"]);
}
