//! Running a scenario: every run simulated, measured, written as soon as it is finished, and shown.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use results::claims::{Claim, Judgement, Runs};
use results::store::{self, GridManifest, MANIFEST, Staging, run_folder, write_run};
use results::{Class, Program, RunInfo, RunResults, SizeBin};
use scenario::{BuiltRun, FlowClass, Run, Scenario};
use serde_json::Value;

use crate::clock::Stopwatch;
use crate::commands::{input_error, threads};
use crate::exit::Failure;
use crate::interrupt::interrupted;
use crate::page::{self, Page};
use crate::progress::Board;

/// What the user asked of the runs.
pub(crate) struct Session<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Only these schemes; empty for all.
    pub(crate) schemes: &'a [String],
    pub(crate) threads: Option<u16>,
    /// Where results go.
    pub(crate) out: PathBuf,
    pub(crate) quiet: bool,
    /// What gives these results again.
    pub(crate) replay: Vec<String>,
    /// What to judge by the runs, for the report.
    pub(crate) claims: &'a [Claim],
}

/// Finished runs and where they lie.
pub(crate) struct Finished {
    pub(crate) runs: Vec<RunResults>,
    /// In the order of the session's claims.
    pub(crate) judgements: Vec<Judgement>,
    pub(crate) out: PathBuf,
}

/// What a scenario's `[paper]` says under a key.
pub(crate) fn paper_key(scenario: &Scenario, key: &str) -> Option<String> {
    scenario.config.paper.as_ref()?.get(key)?.as_str().map(str::to_owned)
}

/// This program, for manifests.
pub(crate) fn program() -> Program {
    Program { version: env!("CARGO_PKG_VERSION").to_owned(), commit: env!("NARROWS_COMMIT").to_owned() }
}

impl Session<'_> {
    /// Builds, simulates, writes. What is wrong with the scenario is found before anything runs.
    ///
    /// # Errors
    /// When a scheme is unknown, a run cannot be built or written, or the user interrupts. Runs that were finished
    /// before stay on disk.
    pub(crate) fn run(&self) -> Result<Finished, Failure> {
        let runs = self.chosen()?;
        // Everything is built once before the first run, so that no mistake shows up after minutes.
        for run in &runs {
            run.build().map_err(input_error)?;
        }
        let alone = runs.len() == 1;
        let place = Place::new(&self.out, alone)?;
        let names: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        let board = Board::new(self.quiet, &names);
        let threads = threads(self.threads);
        let workers = threads.min(runs.len());
        // Enough runs: one thread each. Few: all threads for one after the other.
        let (workers, inside) = if runs.len() >= threads { (workers, 1) } else { (1, threads) };

        let todo: Mutex<VecDeque<usize>> = Mutex::new((0..runs.len()).collect());
        let done: Mutex<Vec<Option<RunResults>>> = Mutex::new(runs.iter().map(|_| None).collect());
        let failed: Mutex<Option<Failure>> = Mutex::new(None);
        let work = || {
            loop {
                let next = lock(&todo).pop_front();
                let (Some(index), None) = (next, &*lock(&failed)) else { return };
                let result = self.one(&runs[index], inside, workers > 1, &board);
                match result.and_then(|result| place.keep(&result).map(|()| result)) {
                    Ok(result) => lock(&done)[index] = Some(result),
                    Err(failure) => {
                        lock(&failed).get_or_insert(failure);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(work);
            }
            work();
        });
        drop(board);
        if let Some(failure) = lock(&failed).take() {
            return Err(failure);
        }
        let finished: Vec<RunResults> = lock(&done).drain(..).flatten().collect();
        let bins = runs.first().map(size_bins).unwrap_or_default();
        let runs = Runs::of_results(&finished);
        let judgements: Vec<Judgement> = self.claims.iter().map(|claim| claim.judge(&runs)).collect();
        let figure = paper_key(self.scenario, "figure").map_or_else(String::new, |figure| format!("Fig. {figure}"));
        let page = Page {
            title: self.scenario.config.title.clone(),
            subtitle: self.scenario.config.description.clone(),
            scale: self.scenario.scale.as_ref().map(|scale| format!("{}: {}", scale.name, scale.note)),
            scenario_toml: self.scenario.resolved_toml(),
            replay: self.replay.clone(),
            claims: judgements.iter().map(|it| page::claim(&figure, it)).collect(),
            bins,
        };
        place.finish(&self.scenario.config.name, &finished, &page)?;
        Ok(Finished { runs: finished, judgements, out: self.out.clone() })
    }

    fn chosen(&self) -> Result<Vec<Run>, Failure> {
        let runs = self.scenario.runs();
        for name in self.schemes {
            if !runs.iter().any(|run| run.scheme == *name) {
                let known: Vec<&str> = self.scenario.config.schemes.iter().map(|(name, _)| name).collect();
                return Err(Failure::Input(format!(
                    "error: the scenario has no scheme `{name}`; it has {}",
                    known.join(", ")
                )));
            }
        }
        Ok(runs.into_iter().filter(|run| self.schemes.is_empty() || self.schemes.contains(&run.scheme)).collect())
    }

    fn one(&self, run: &Run, threads: usize, others: bool, board: &Board) -> Result<RunResults, Failure> {
        let built = run.build().map_err(input_error)?;
        let line = board.run(&run.id, built.setup.stop.ps(), built.setup.flows.len() as u64);
        let clock = if others { Stopwatch::of_this_thread() } else { Stopwatch::start() };
        let mut progress = |now: sim::Progress| {
            line.update(&now);
            !interrupted()
        };
        let outcome = sim::run(&built.setup, threads, |flow, path| built.laws.make(flow, path), &mut progress);
        let times = clock.times();
        if outcome.interrupted {
            return Err(Failure::Interrupted);
        }
        let info = self.info(run, &built);
        Ok(RunResults::new(&info, &program(), &built.setup, &outcome, times)?)
    }

    fn info(&self, run: &Run, built: &BuiltRun) -> RunInfo {
        let class = |class: &FlowClass| match class {
            FlowClass::Intra => Class::Intra,
            FlowClass::Inter => Class::Inter,
        };
        let hash = |input: scenario::Input| {
            let name = input.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            (name, store::sha256(input.text.as_bytes()))
        };
        let mut resolved = run.config.to_json();
        keep_only_scheme(&mut resolved, &run.scheme);
        RunInfo {
            scenario: self.scenario.config.name.value.clone(),
            run: run.id.clone(),
            label: run.label.clone(),
            point: point(run),
            classes: built.classes.iter().map(class).collect(),
            sizes: size_bins(run),
            laws: [FlowClass::Intra, FlowClass::Inter]
                .map(|class| built.laws.law(class).0.info().name.to_owned())
                .into(),
            requests: Vec::new(),
            fairness_window: built.report.inter_rtt.or(built.report.intra_rtt).map_or(units::Span::ZERO, |rtt| rtt.max),
            resolved,
            inputs: self.scenario.inputs().into_iter().map(hash).collect(),
            warnings: built.warnings.clone(),
        }
    }
}

/// A manifest holds the scheme that ran, not those beside it, nor what a paper claims of all.
fn keep_only_scheme(resolved: &mut Value, scheme: &str) {
    if let Some(schemes) = resolved.get_mut("schemes").and_then(Value::as_object_mut) {
        schemes.retain(|name, _| name == scheme);
    }
    if let Some(root) = resolved.as_object_mut() {
        for key in ["grid", "scale", "claim", "paper"] {
            root.remove(key);
        }
    }
}

fn point(run: &Run) -> Vec<(String, Value)> {
    let value = |text: &String| text.parse::<f64>().map_or_else(|_| Value::from(text.as_str()), Value::from);
    let scheme = ("scheme".to_owned(), Value::from(run.scheme.as_str()));
    if run.point.is_empty() {
        return Vec::new();
    }
    std::iter::once(scheme).chain(run.point.iter().map(|(key, text)| (key.clone(), value(text)))).collect()
}

fn size_bins(run: &Run) -> Vec<SizeBin> {
    let bin = |(name, range): &(scenario::At<String>, scenario::config::SizeRange)| SizeBin {
        name: name.value.clone(),
        low: range.low,
        high: range.high,
    };
    run.config.sizes.0.iter().map(bin).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The directory that results go to. A lone run is written at its end as a whole; of several, each is written when
/// it is finished, and the grid's own files last.
struct Place<'a> {
    out: &'a Path,
    alone: bool,
}

impl<'a> Place<'a> {
    fn new(out: &'a Path, alone: bool) -> Result<Self, Failure> {
        if alone {
            // Found out now, not after the run.
            drop(Staging::new(out)?);
            return Ok(Self { out, alone });
        }
        let made = |what: &'static str, path: &Path| {
            let path = path.to_path_buf();
            move |source: std::io::Error| results::Error::Io { action: what, path, source }
        };
        if out.exists() && !is_ours(out) {
            let reason = "it exists and is not a directory of results".to_owned();
            return Err(results::Error::Occupied { path: out.to_path_buf(), reason }.into());
        }
        // Earlier results go as a whole, the manifest first: from then on the directory is not whole until it is
        // written again.
        if out.join(MANIFEST).exists() {
            std::fs::remove_file(out.join(MANIFEST)).map_err(made("remove", &out.join(MANIFEST)))?;
        }
        if out.exists() {
            std::fs::remove_dir_all(out).map_err(made("remove", out))?;
        }
        let runs = out.join("runs");
        std::fs::create_dir_all(&runs).map_err(made("create", &runs))?;
        Ok(Self { out, alone })
    }

    /// A run is finished.
    fn keep(&self, run: &RunResults) -> Result<(), Failure> {
        if self.alone {
            return Ok(());
        }
        Ok(write_run(&self.out.join(run_folder(&run.manifest.run)), run)?)
    }

    /// All runs are finished.
    fn finish(&self, scenario: &str, runs: &[RunResults], page: &Page) -> Result<(), Failure> {
        let html = page::render(page, runs);
        if let (true, [run]) = (self.alone, runs) {
            let mut staging = Staging::new(self.out)?;
            run.write(&mut staging, "")?;
            staging.text(page::REPORT, &html)?;
            return Ok(staging.commit()?);
        }
        let manifest = GridManifest::new(&program(), scenario, runs.iter().map(|run| run.manifest.run.as_str()));
        replace(&self.out.join(page::REPORT), &html)?;
        replace(&self.out.join("summary.json"), &grid_json(runs))?;
        replace(&self.out.join(MANIFEST), &manifest.to_json())
    }
}

/// Whether a path may be replaced: an empty directory, results of any version, or a grid that was cut short.
fn is_ours(out: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(out) else { return false };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    if names.is_empty() || names == ["runs"] {
        return true;
    }
    let manifest = std::fs::read(out.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    manifest.is_some_and(|manifest| manifest["program"] == "narrows")
}

/// The summary of several runs.
pub(crate) fn grid_json(runs: &[RunResults]) -> String {
    let summaries: Vec<Value> = runs.iter().map(|run| serde_json::to_value(&run.summary).unwrap_or_default()).collect();
    format!("{:#}\n", serde_json::json!({ "schema": 1, "runs": summaries }))
}

/// Writes a file under another name and renames it, so that a reader sees the old one or the new one, whole.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        Failure::file("write", path, &error)
    })
}
