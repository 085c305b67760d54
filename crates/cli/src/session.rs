//! Running a scenario: every run simulated or emulated, measured, written as soon as it is finished, and shown.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use results::averages::{Table, TableSpec};
use results::claims::{Claim, Judgement, Runs, name_in_claims};
use results::store::{self, Earlier, Manifest, Plan, Writer};
use results::tables::FlowTable;
use results::{Class, Program, RunInfo, RunResults, SizeBin};
use scenario::{BuiltRun, FlowClass, Run, Scenario};
use serde_json::Value;

use crate::clock::Stopwatch;
use crate::exit::{Failure, tell, tell_of_lock};
use crate::interrupt::{interrupted, listen};
use crate::named_file::{Kind, may_replace_report, tell_of_leftover};
use crate::page::{self, Page};
use crate::progress::Board;

/// What a run runs on.
pub(crate) trait Host: Sync {
    /// Whether runs would disturb each other.
    fn one_at_a_time(&self) -> bool;

    /// Whether the same run always leaves the same results, so that an earlier run's may be kept.
    fn repeats(&self) -> bool;

    /// What the command line asked of this host beside the scenario.
    fn asked(&self) -> String;

    /// Refuses a run that it cannot do, before the first one begins.
    /// `of_many` says whether the session has other runs.
    fn check(&self, run: &Run, built: &BuiltRun, of_many: bool) -> Result<(), Failure>;

    /// Does a run.
    fn run(&self, one: One<'_>) -> Result<RunResults, Failure>;
}

/// A run to be done.
pub(crate) struct One<'a> {
    pub(crate) run: &'a Run,
    pub(crate) built: BuiltRun,
    pub(crate) info: RunInfo,
    /// Threads for this run.
    pub(crate) threads: usize,
    /// Whether others are done at the same time.
    pub(crate) others: bool,
    /// Whether the session has other runs.
    pub(crate) of_many: bool,
    pub(crate) board: &'a Board,
}

/// The simulator.
pub(crate) struct Simulator {
    /// Whether it checks itself while it runs.
    pub(crate) checked: bool,
}

impl Host for Simulator {
    fn one_at_a_time(&self) -> bool {
        false
    }

    fn repeats(&self) -> bool {
        true
    }

    fn asked(&self) -> String {
        String::new()
    }

    fn check(&self, _: &Run, _: &BuiltRun, _: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn run(&self, One { run, built, info, threads, others, board, .. }: One<'_>) -> Result<RunResults, Failure> {
        let line = board.run(&run.id, built.setup.stop, built.setup.flows.len() as u64);
        let clock = if others { Stopwatch::of_this_thread() } else { Stopwatch::start() };
        let mut progress = |now: sim::Progress| {
            line.update(&now);
            !interrupted()
        };
        let make_law = |flow: &sim::FlowSpec, path: &laws::Path| built.laws.make(flow, path);
        let outcome = if self.checked {
            sim::run_checked(&built.setup, threads, make_law, &mut progress)
                .map_err(|broken| Failure::Run(broken.into()))?
        } else {
            sim::run(&built.setup, threads, make_law, &mut progress)
        };
        let times = clock.times();
        if outcome.interrupted {
            return Err(Failure::Interrupted(String::new()));
        }
        Ok(RunResults::new(&info, &program(), &built.setup, &outcome, times)?)
    }
}

/// What the user asked of the runs.
pub(crate) struct Session<'a> {
    pub(crate) scenario: &'a Scenario,
    /// What they run on.
    pub(crate) host: &'a dyn Host,
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
    /// Whether runs that were finished before are done again.
    pub(crate) anew: bool,
}

/// A finished run, and what the report shows of it.
struct Written {
    results: RunResults,
    shown: report::Run,
}

impl Written {
    /// One of so many runs. Of several, its flows are on disk by now: they are most of what it holds, and all else is made
    /// of the rest.
    fn new(mut results: RunResults, bins: &[SizeBin], of: usize) -> Self {
        let shown = page::one(&results, bins, of);
        if of > 1 {
            results.flows = FlowTable::default();
        }
        Self { results, shown }
    }
}

/// Finished runs and where they lie.
pub(crate) struct Finished {
    /// Of several, without their flows: those are on disk.
    pub(crate) runs: Vec<RunResults>,
    /// In the order of the session's claims.
    pub(crate) judgements: Vec<Judgement>,
    /// The scenario's tables of averages.
    pub(crate) tables: Vec<Table>,
    pub(crate) out: PathBuf,
}

/// What a scenario's `[paper]` says under a key.
fn paper_key(scenario: &Scenario, key: &str) -> Option<String> {
    scenario.config.paper.as_ref()?.get(key)?.as_str().map(str::to_owned)
}

/// What a scenario shows of its paper: `Fig. 8`, `Table II`.
pub(crate) fn figure(scenario: &Scenario) -> Option<String> {
    let figure = paper_key(scenario, "figure")?;
    Some(if figure.starts_with("Table") { figure } else { format!("Fig. {figure}") })
}

/// What a scenario's `[[table]]` entries ask for.
pub(crate) fn tables(scenario: &Scenario) -> Result<Vec<TableSpec>, Failure> {
    let who = format!("scenario `{}`", scenario.config.name.as_str());
    let read = |node: &scenario::Node| {
        let table =
            TableSpec::from_json(&node.to_json()).map_err(|error| Failure::Input(format!("error: {who}: {error}")))?;
        let variants = &scenario.config.variants;
        match table.only.iter().flatten().chain(&table.without).find(|name| variants.get(name).is_none()) {
            None => Ok(table),
            Some(name) => {
                let known: Vec<&str> = variants.iter().map(|(name, _)| name).collect();
                let what = format!("{who}: table `{}`: there is no variant `{name}`", table.title);
                Err(Failure::unknown(&what, name, &known))
            }
        }
    };
    scenario.config.table.iter().map(read).collect()
}

/// This program, for manifests.
pub(crate) fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("NARROWS_COMMIT").to_owned(),
        engine: env!("NARROWS_ENGINE").to_owned(),
    }
}

impl Session<'_> {
    /// Builds, runs, writes. What is wrong with the scenario is found before anything runs.
    ///
    /// # Errors
    /// When a scheme is unknown, a run cannot be built or written, or the user interrupts. Runs that were finished
    /// before stay on disk.
    pub(crate) fn run(&self) -> Result<Finished, Failure> {
        let runs = self.chosen()?;
        let mut tables = tables(self.scenario)?;
        if tables.is_empty() && !self.claims.is_empty() {
            tables.push(TableSpec::of_completion_times());
        }
        let alone = runs.len() == 1;
        let (mut keys, mut resolved) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
        // Everything is built once before the first run, so that no mistake shows up after minutes.
        for run in &runs {
            let built = run.build()?;
            self.host.check(run, &built, !alone)?;
            let info = self.info(run, &built);
            keys.push((run.id.clone(), info.key));
            resolved.push(info.resolved);
        }
        listen();
        let command = self.replay.first().map_or("narrows", String::as_str);
        let writer = Writer::new(&self.out, Plan::new(&self.scenario.config.name, command, keys), command)?;
        if let Some(lock) = writer.lock() {
            tell_of_lock(&self.out, lock);
        }
        let others = writer.replaced();
        if !self.schemes.is_empty() && !self.anew && !others.is_empty() {
            return Err(Failure::Input(format!(
                "error: `{}` has finished runs of this scenario that --scheme leaves out, and replacing the results would lose \
                 them: {}\nhelp: choose another directory with --out, or replace them with --anew",
                self.out.display(),
                crate::table::first_of(&others, ", ")
            )));
        }
        for differing in writer.differing() {
            tell(&format!("{differing}: it is written again"));
        }
        for left in writer.leftovers() {
            tell_of_leftover(&left);
        }
        // Found out now, not after all runs.
        self.report_may_go()?;
        let bins = runs.first().map(size_bins).unwrap_or_default();
        let written = |result: RunResults| Written::new(result, &bins, runs.len());
        let mut earlier: Vec<Option<Written>> = Vec::with_capacity(runs.len());
        for (number, resolved) in resolved.iter().enumerate() {
            let nothing = || Ok(Earlier::Nothing);
            let found = if self.anew { nothing() } else { writer.earlier(number, self.host.repeats(), resolved) };
            earlier.push(match found? {
                Earlier::Kept(run) => Some(written(*run)),
                Earlier::Nothing => None,
                Earlier::Damaged(error) => {
                    tell(&format!("{error}: the run `{}` is done again", runs[number].id));
                    None
                }
            });
        }
        let kept = earlier.iter().flatten().count();
        if kept > 0 && !self.quiet {
            let all = crate::table::count(runs.len(), "run");
            tell(&format!("{kept} of {all} finished before: kept; --anew runs them again"));
        }
        let names: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        let board = Board::new(self.quiet, &names, kept);
        let threads = threads(self.threads);
        let workers = threads.min(runs.len());
        // Enough runs: one thread each. Few: all threads for one after the other.
        let together = runs.len() >= threads && !self.host.one_at_a_time();
        let (workers, inside) = if together { (workers, 1) } else { (1, threads) };

        let todo: Mutex<VecDeque<usize>> = Mutex::new((0..runs.len()).filter(|&run| earlier[run].is_none()).collect());
        let done: Mutex<Vec<Option<Written>>> = Mutex::new(earlier);
        let failed: Mutex<Option<Failure>> = Mutex::new(None);
        let work = || {
            loop {
                // Nothing stays locked while a run goes on.
                if lock(&failed).is_some() {
                    return;
                }
                let Some(index) = lock(&todo).pop_front() else { return };
                let result = runs[index].build().map_err(Failure::from).and_then(|built| {
                    let run = &runs[index];
                    let (info, others, of_many) = (self.info(run, &built), workers > 1, !alone);
                    self.host.run(One { run, built, info, threads: inside, others, of_many, board: &board })
                });
                match result.and_then(|result| Ok(writer.keep(&result).map(|()| written(result))?)) {
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
            let finished = lock(&done).iter().flatten().count();
            // In a directory that was moved the same command finds none of them.
            let kept = writer.lock().is_some_and(|lock| lock.check().is_ok());
            return Err(if kept { stopped(failure, finished, runs.len()) } else { failure });
        }
        let (finished, shown): (Vec<RunResults>, Vec<report::Run>) =
            lock(&done).drain(..).flatten().map(|it| (it.results, it.shown)).unzip();
        let in_claims = |run: &RunResults| name_in_claims(&run.summary.run, run.summary.seed);
        let in_claims: Vec<String> = finished.iter().map(in_claims).collect();
        let seeds = Runs::by_seed(&finished, &in_claims);
        let judgements: Vec<Judgement> = self.claims.iter().map(|claim| claim.judge(&seeds)).collect();
        let tables: Vec<Table> = tables.iter().map(|table| self.named(table.of(&finished))).collect();
        let figure = figure(self.scenario).unwrap_or_default();
        let page = Page {
            title: self.scenario.config.title.clone(),
            subtitle: self.scenario.config.description.clone(),
            scale: self.scenario.scale.as_ref().map(|scale| format!("{}: {}", scale.name, scale.note)),
            scenario_toml: self.scenario.resolved_toml(),
            replay: self.replay.clone(),
            claims: judgements.iter().map(|it| page::claim(&figure, it)).collect(),
            averages: tables.iter().map(page::averages).collect(),
            warnings: Vec::new(),
        };
        let html = Kind::Report.sealed(page::render(&page, shown));
        self.report_may_go()?;
        writer.finish(&program(), &finished, &grid_json(&finished), &html).map_err(|error| match &error {
            results::Error::Io { path, .. } if path.ends_with(page::REPORT) => Failure::Input(format!(
                "error: {error}\nhelp: all else is in place; `narrows report {}` writes the page when there is room",
                self.out.display()
            )),
            _ => error.into(),
        })?;
        Ok(Finished { runs: finished, judgements, tables, out: self.out.clone() })
    }

    /// Refuses to replace a report that somebody edited: of the whole set, or of the unfinished one.
    fn report_may_go(&self) -> Result<(), Failure> {
        let reports = [self.out.join(page::REPORT), self.out.join(store::NEXT).join(page::REPORT)];
        reports.iter().try_for_each(|report| may_replace_report(report))
    }

    /// The table with variants called by their labels.
    fn named(&self, mut table: Table) -> Table {
        for (name, variant) in self.scenario.config.variants.iter().filter(|(_, it)| !it.label.is_empty()) {
            for part in &mut table.parts {
                part.point = part.point.replace(&format!("variant = {name}"), &variant.label);
            }
        }
        table
    }

    fn chosen(&self) -> Result<Vec<Run>, Failure> {
        known_schemes(self.scenario, self.schemes)?;
        let runs = self.scenario.runs().into_iter();
        let runs: Vec<Run> = runs.filter(|run| self.schemes.is_empty() || self.schemes.contains(&run.scheme)).collect();
        // Two runs of one name would have one folder.
        let mut known = BTreeSet::new();
        match runs.iter().find(|run| !known.insert(&run.id)) {
            None => Ok(runs),
            Some(twice) => Err(Failure::Input(format!(
                "error: scenario `{}`: two runs are called `{}`; expected each value of a key of [grid] once",
                self.scenario.config.name.as_str(),
                twice.id
            ))),
        }
    }

    fn info(&self, run: &Run, built: &BuiltRun) -> RunInfo {
        let hash = |input: scenario::Input| {
            let name = input.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            (name, store::sha256(input.text.as_bytes()))
        };
        let mut resolved = run.config.to_json();
        keep_only_scheme(&mut resolved, &run.scheme);
        let mut info = RunInfo {
            scenario: self.scenario.config.name.value.clone(),
            run: run.id.clone(),
            label: run.label.clone(),
            point: point(run),
            classes: built.classes.iter().copied().map(class_of).collect(),
            traffic: built.traffic.clone(),
            traffic_names: run.config.traffic.iter().map(|entry| entry.name().to_owned()).collect(),
            sizes: size_bins(run),
            laws: [FlowClass::Intra, FlowClass::Inter]
                .map(|class| built.laws.law(class).0.info().name.to_owned())
                .into(),
            requests: built.requests.clone(),
            collectives: built.collectives.clone(),
            open_ended: built.open_ended.clone(),
            fairness_window: run.config.series.fairness_window.unwrap_or_else(|| {
                built.report.inter_rtt.or(built.report.intra_rtt).map_or(units::Span::ZERO, |rtt| rtt.max)
            }),
            sets_fairness_window: run.config.series.fairness_window.is_some(),
            resolved,
            key: String::new(),
            inputs: self.scenario.inputs().into_iter().map(hash).collect(),
            warnings: built.warnings.clone(),
            emulator: None,
        };
        info.key = Manifest::key_of(&info, &program(), built.setup.seed, &self.host.asked());
        info
    }
}

/// The failure of a session whose runs were not all finished: says how many are kept.
fn stopped(failure: Failure, finished: usize, all: usize) -> Failure {
    let kept = || format!("{finished} of {all} runs were finished and are kept; the same command goes on from there");
    match failure {
        Failure::Interrupted(_) if finished == 0 => Failure::Interrupted("no run was finished".to_owned()),
        Failure::Interrupted(_) => Failure::Interrupted(kept()),
        Failure::Input(what) if finished > 0 => Failure::Input(format!("{what}\nhelp: {}", kept())),
        failure => failure,
    }
}

/// Refuses schemes that the scenario does not have.
pub(crate) fn known_schemes(scenario: &Scenario, wanted: &[String]) -> Result<(), Failure> {
    // Points of a grid and variants may add some.
    let known: BTreeSet<String> = scenario.runs().into_iter().map(|run| run.scheme).collect();
    match wanted.iter().find(|&name| !known.contains(name)) {
        Some(name) => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(Failure::unknown(&format!("the scenario has no scheme `{name}`"), name, &known))
        }
        None => Ok(()),
    }
}

/// A manifest holds the scheme that ran, not those beside it, nor what a paper claims of all.
fn keep_only_scheme(resolved: &mut Value, scheme: &str) {
    if let Some(schemes) = resolved.get_mut("schemes").and_then(Value::as_object_mut) {
        schemes.retain(|name, _| name == scheme);
    }
    if let Some(root) = resolved.as_object_mut() {
        for key in ["grid", "variants", "scale", "claim", "paper", "table"] {
            root.remove(key);
        }
    }
}

fn point(run: &Run) -> Vec<(String, Value)> {
    // A variant's name is a name, also where it looks like a number.
    let value = |key: &String, text: &String| match text.parse::<f64>() {
        Ok(number) if key != "variant" && number.is_finite() => Value::from(number),
        Ok(_) | Err(_) => Value::from(text.as_str()),
    };
    let scheme = ("scheme".to_owned(), Value::from(run.scheme.as_str()));
    if run.point.is_empty() {
        return Vec::new();
    }
    std::iter::once(scheme).chain(run.point.iter().map(|(key, text)| (key.clone(), value(key, text)))).collect()
}

const fn class_of(class: FlowClass) -> Class {
    match class {
        FlowClass::Intra => Class::Intra,
        FlowClass::Inter => Class::Inter,
    }
}

fn size_bins(run: &Run) -> Vec<SizeBin> {
    let bin = |(name, range): &(scenario::At<String>, scenario::config::SizeRange)| SizeBin {
        name: name.value.clone(),
        traffic: range.traffic.clone(),
        class: range.class.map(class_of),
        low: range.low,
        high: range.high,
    };
    run.config.sizes.0.iter().map(bin).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The summary of several runs.
pub(crate) fn grid_json(runs: &[RunResults]) -> String {
    let summaries: Vec<Value> = runs.iter().map(|run| serde_json::to_value(&run.summary).unwrap_or_default()).collect();
    format!("{:#}\n", serde_json::json!({ "schema": 1, "runs": summaries }))
}

/// As many as there are cores, unless asked.
fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from)
}
