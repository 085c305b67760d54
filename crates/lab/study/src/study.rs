//! Execution of a scenario's runs: planned, executed, stored as soon as each is finished, judged and shown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;

use results::averages::{AveragesTable, TableSpec};
use results::claims::possible::MetricNames;
use results::claims::{Claim, Judgement, Runs, name_in_claims};
use results::settings;
use results::store::{
    Earlier, FileHash, Manifest, PlannedDirectory, REPORT, ReplacePlan, ResultsWriter, Reuse, SweepPlan,
};
use results::tables::FlowTable;
use results::{CodeVersions, RunInfo, RunResults, SizeBin, SweepColumns};
use scenario::{BuiltRun, Run, Scenario};

use crate::backend::{Backend, RunSpec, StudySize};
use crate::clock::Stopwatch;
use crate::columns::columns;
use crate::describe::{figure, info, known_schemes, named, possible_tables, size_bins, summaries, tables};
use crate::error::Error;
use crate::observer::{ProgressDisplay, SweepObserver};
use crate::page::{self, Page};
use crate::program::program;
use crate::recorder::{AttemptRecorder, StudyRun};
use crate::tails;
use crate::text::{count, first_of};
use crate::workers::{inner, lock, run_parallel, threads};

/// The runs of a scenario, and the directory of their results.
pub struct Study<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Backend that executes the runs.
    pub backend: &'a dyn Backend,
    /// Observer of the study.
    pub watch: &'a dyn SweepObserver,
    /// Recorder of attempts.
    pub notes: &'a dyn AttemptRecorder,
    /// Schemes to run; empty for all.
    pub schemes: &'a [String],
    /// Part of the runs to execute.
    pub shard: Option<Shard>,
    /// Names of the runs to execute; empty for all.
    pub only: &'a [String],
    /// Other results directories, complete or not. Their runs are reused if they are the same.
    pub from: &'a [PathBuf],
    /// Execute runs that are missing. Otherwise, if some are missing, the set stays unfinished.
    pub runs_missing: bool,
    /// Threads for all runs together; none for one per core.
    pub threads: Option<u16>,
    /// Results directory.
    pub out: PathBuf,
    /// Command line that reproduces these results, for the report and for other users of the directory.
    pub replay: Vec<String>,
    /// Claims to judge by the runs.
    pub claims: &'a [Claim],
    /// Tables that the report shows before those of the scenario.
    pub tables: &'a [report::Averages],
    /// Execute finished runs again.
    pub force: bool,
    /// Treatment of finished runs in the directory that the study lacks or has with other settings.
    pub others: Others,
}

/// Treatment of finished runs in a study's directory that are not the study's: of other settings or inputs, of another
/// scenario, or not chosen. The study's own runs by another version of the program are no such runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// They are kept, and the study is refused.
    Keep,
    /// They are deleted when the study is complete, as the user requested.
    Replace,
}

/// A part of a study's runs: every `of`-th, from the `number`-th on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Returns its number, from 1 to [`Shard::of`].
    pub fn number(self) -> usize {
        self.number
    }

    /// Returns the number of parts.
    pub fn of(self) -> usize {
        self.of
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `3/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("`{text}` is no shard: expected I/N with I from 1 to N, as in 3/8");
        let (number, of) = text.split_once('/').ok_or_else(invalid)?;
        let read = |text: &str| text.trim().parse::<usize>().map_err(|_| invalid());
        let shard = Self { number: read(number)?, of: read(of)? };
        if (1..=shard.of).contains(&shard.number) { Ok(shard) } else { Err(invalid()) }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// Results of a study.
#[derive(Debug)]
pub struct Finished {
    /// Its runs. If there are several, without their flows, which are on disk.
    pub runs: Vec<RunResults>,
    /// Judgements in the order of the claims.
    pub judgements: Vec<Judgement>,
    /// The scenario's tables of averages.
    pub tables: Vec<AveragesTable>,
    /// Results directory.
    pub out: PathBuf,
}

/// A run's name and the hash of its inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunKey {
    /// The run.
    pub run: String,
    /// Hash of everything that its results depend on.
    pub key: String,
    /// Versions of the code included in the hash.
    pub code: CodeVersions,
}

/// Planned runs.
struct PlannedWork {
    runs: Vec<Run>,
    /// Description of each run.
    infos: Vec<PlannedRunInfo>,
    tables: Vec<TableSpec>,
    bins: Vec<SizeBin>,
}

/// Description of a run before it is executed.
struct PlannedRunInfo {
    key: String,
    code: CodeVersions,
    resolved: serde_json::Value,
    inputs: Vec<FileHash>,
    label: String,
    columns: SweepColumns,
    point: results::Ordered<serde_json::Value>,
    seed: u64,
}

/// A finished run, and its data for the report.
struct WrittenRun {
    results: RunResults,
    shown: report::RunData,
}

impl WrittenRun {
    /// Creates the entry of one of `of` runs. If there are several, its flows are on disk by now: they are most of its
    /// memory, and the report needs only the rest.
    fn new(mut results: RunResults, bins: &[SizeBin], of: usize) -> Self {
        let shown = page::run_data(&results, bins, of);
        if of > 1 {
            results.flows = FlowTable::default();
        }
        Self { results, shown }
    }
}

impl PlannedWork {
    fn is_alone(&self) -> bool {
        self.runs.len() == 1
    }

    fn size(&self) -> StudySize {
        if self.is_alone() { StudySize::OneRun } else { StudySize::ManyRuns }
    }

    fn written(&self, results: RunResults) -> WrittenRun {
        WrittenRun::new(results, &self.bins, self.runs.len())
    }
}

impl Study<'_> {
    /// Builds, executes and writes the runs. Errors in the scenario are found before any run.
    ///
    /// # Errors
    /// If a scheme is unknown, a run cannot be built or written, or the observer interrupts. Runs that were finished
    /// before stay on disk.
    pub fn run(&self) -> Result<Finished, Error> {
        let planned = self.plan()?;
        self.watch.listen();
        let writer = self.take(&planned)?;
        let finished = self.run_in(&planned, &writer);
        self.report_failure(self.notes.end());
        finished
    }

    /// Executes the runs in the directory that was acquired for them.
    fn run_in(&self, planned: &PlannedWork, writer: &ResultsWriter) -> Result<Finished, Error> {
        let earlier = self.earlier(planned, writer)?;
        let record = program().record;
        let by_other_version = earlier.iter().flatten().filter(|it| it.results.manifest.record != record).count();
        if by_other_version > 0 {
            self.watch.tell(&format!(
                "{} recorded by another version of the code for tables and summaries; --force does them again",
                count(by_other_version, "kept run")
            ));
        }
        let done = self.execute(planned, writer, earlier)?;
        self.conclude(planned, writer, done)
    }

    /// Returns the names of the runs, in the scenario's order.
    ///
    /// # Errors
    /// If a scheme is unknown, or the shard has no run.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.chosen()?.0.into_iter().map(|run| run.id).collect())
    }

    /// Returns the runs with their keys, in the scenario's order. No run is executed.
    ///
    /// # Errors
    /// If a run cannot be built.
    pub fn keys(&self) -> Result<Vec<RunKey>, Error> {
        let PlannedWork { runs, infos, .. } = self.plan()?;
        let key = |(run, known): (Run, PlannedRunInfo)| RunKey { run: run.id, key: known.key, code: known.code };
        Ok(runs.into_iter().zip(infos).map(key).collect())
    }

    /// Builds everything once before the first run, so that no error appears after minutes.
    fn plan(&self) -> Result<PlannedWork, Error> {
        let (runs, columns) = self.chosen()?;
        let mut tables = tables(self.scenario)?;
        if tables.is_empty() && !self.claims.is_empty() {
            tables.push(TableSpec::of_completion_times());
        }
        let size = if runs.len() > 1 { StudySize::ManyRuns } else { StudySize::OneRun };
        let known = |number: usize| {
            let run = &runs[number];
            let built = run.build()?;
            self.backend.check(run, &built, size)?;
            let columns = columns[number].clone();
            let info = self.info(run, &columns, &built);
            let names = MetricNames::of(&info);
            let RunInfo { key, code, resolved, point, inputs, label, .. } = info;
            let known = PlannedRunInfo {
                key,
                code,
                resolved,
                inputs: inputs.into_iter().map(|(name, sha256)| FileHash { name, sha256 }).collect(),
                label,
                columns,
                point: results::Ordered(point),
                seed: built.setup.seed,
            };
            Ok::<_, Error>((known, names))
        };
        let workers = if self.backend.needs_exclusive_use() { 1 } else { threads(self.threads) };
        let mut infos = Vec::with_capacity(runs.len());
        let mut names = MetricNames::default();
        for found in run_parallel(workers, runs.len(), known) {
            let (known, of_run) = found?;
            infos.push(known);
            names.add(of_run);
        }
        // A selection may lack a job that other runs have.
        if self.shard.is_none() && self.only.is_empty() && self.schemes.is_empty() {
            possible_tables(self.scenario, &tables, &names)?;
        }
        let bins = runs.first().map(size_bins).unwrap_or_default();
        Ok(PlannedWork { runs, infos, tables, bins })
    }

    /// Returns the runs, and the columns that their tables share. The columns are those of all of the scenario's runs,
    /// not only of the selected ones.
    fn chosen(&self) -> Result<(Vec<Run>, Vec<SweepColumns>), Error> {
        known_schemes(self.scenario, self.schemes)?;
        let all = self.scenario.runs();
        let columns = columns(&all);
        let wanted = |run: &Run| {
            (self.schemes.is_empty() || self.schemes.contains(&run.scheme))
                && (self.only.is_empty() || self.only.contains(&run.id))
        };
        let runs: Vec<(Run, SweepColumns)> = all.into_iter().zip(columns).filter(|(run, _)| wanted(run)).collect();
        // Two runs of one name would have one folder.
        let mut known = BTreeSet::new();
        let has = |name: &&String| runs.iter().any(|(run, _)| run.id == **name);
        if let Some(name) = self.only.iter().find(|name| !has(name)) {
            return Err(Error::invalid_request(format!("the scenario has no run `{name}`"), ""));
        }
        match runs.iter().find(|(run, _)| !known.insert(&run.id)) {
            None => Ok(self.sharded(runs)?.into_iter().unzip()),
            Some((duplicate, _)) => Err(Error::invalid_request(
                format!(
                    "scenario `{}`: two runs are called `{}`; expected each value of a key of [grid] once",
                    self.scenario.config.name.as_str(),
                    duplicate.id
                ),
                "",
            )),
        }
    }

    /// Returns the runs of the shard, if there is one.
    fn sharded<T>(&self, runs: Vec<T>) -> Result<Vec<T>, Error> {
        let Some(shard) = self.shard else { return Ok(runs) };
        if shard.number() > runs.len() {
            let what = format!("shard {shard} has none of {}", count(runs.len(), "run"));
            return Err(Error::invalid_request(what, "choose fewer shards than there are runs"));
        }
        let in_shard = |(index, run): (usize, T)| (index % shard.of() == shard.number() - 1).then_some(run);
        Ok(runs.into_iter().enumerate().filter_map(in_shard).collect())
    }

    fn info(&self, run: &Run, columns: &SweepColumns, built: &BuiltRun) -> RunInfo {
        info(self.scenario, &self.backend.options(), columns, run, built)
    }

    /// Makes the checks that [`Study::run`] makes before its first run. Writes nothing.
    ///
    /// # Errors
    /// See [`Study::run`].
    pub fn check(&self) -> Result<(), Error> {
        self.reserve(&self.plan()?).map(drop)
    }

    /// Acquires the directory for the runs, unless finished runs in it would be lost.
    fn reserve(&self, planned: &PlannedWork) -> Result<(PlannedDirectory, ReplacePlan), Error> {
        let command = self.command();
        let keys = planned.runs.iter().zip(&planned.infos).map(|(run, known)| (run.id.clone(), known.key.clone()));
        let taken = ResultsWriter::take(&self.out, SweepPlan::new(&self.scenario.config.name, command, keys), command)?;
        let plan = taken.replace_plan(|number, found| self.difference(&planned.infos[number], found));
        if self.others == Others::Keep && !(plan.left_out.is_empty() && plan.other.is_empty()) {
            return Err(self.refused(&plan));
        }
        Ok((taken, plan))
    }

    fn command(&self) -> &str {
        self.replay.first().map_or("narrows", String::as_str)
    }

    /// Returns the first differences between a run and a finished one of its name, or nothing if only the version of the
    /// program differs. No measurement on real packets can be had again, so one that differs in anything counts as another.
    fn difference(&self, known: &PlannedRunInfo, found: &Manifest) -> Option<String> {
        const NAMED: usize = 2;
        // The source of a law in Python is code, as that of a law in the catalog is.
        let is_source = |it: &settings::Differing| it.key.starts_with("external_laws.") && it.key.ends_with(".sha256");
        let settings = settings::differing(&found.resolved, &known.resolved).into_iter();
        let mut differing: Vec<String> = settings.filter(|it| !is_source(it)).map(|it| it.to_string()).collect();
        if found.label != known.label {
            differing.push(format!("label: {} -> {}", found.label, known.label));
        }
        let other_input = |(one, other): (&FileHash, &FileHash)| (one != other).then(|| format!("input {}", one.name));
        differing.extend(found.inputs.iter().zip(&known.inputs).filter_map(other_input));
        if found.inputs.len() != known.inputs.len() {
            differing.push("number of input files".to_owned());
        }
        let is_simulated = found.backend == results::BackendKind::Simulator;
        if differing.is_empty() && !(is_simulated && self.backend.repeats()) {
            differing.push("options or version of the emulator".to_owned());
        }
        let more = differing.len().saturating_sub(NAMED);
        differing.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!differing.is_empty()).then(|| differing.join("; ") + &more)
    }

    /// Returns the error that names the finished runs that would be lost.
    fn refused(&self, ReplacePlan { left_out, other, .. }: &ReplacePlan) -> Error {
        let description = match (left_out.is_empty(), other.is_empty()) {
            (_, true) => "that this command leaves out",
            (true, false) => "of other settings than this command's",
            (false, false) => "that this command leaves out or has with other settings",
        };
        let other = other.iter().map(|it| format!("{} ({})", it.run, it.difference));
        let names: Vec<String> = left_out.iter().cloned().chain(other).collect();
        let help = if self.runs_missing { ", or replace them with --force" } else { "" };
        Error::WouldLose {
            what: format!(
                "`{}` has finished runs {description}, and replacing the results would lose them: {}",
                self.out.display(),
                first_of(&names, ", ")
            ),
            help: format!("choose another directory with --out{help}"),
        }
    }

    /// Acquires the directory for the runs and reports the treatment of its contents.
    fn take(&self, planned: &PlannedWork) -> Result<ResultsWriter, Error> {
        let (taken, ReplacePlan { outdated, .. }) = self.reserve(planned)?;
        if let Some(lock) = taken.lock() {
            lock.notes(&self.out).iter().for_each(|note| self.watch.tell(note));
        }
        let writer = taken.begin()?;
        if !outdated.is_empty() && !self.force && self.runs_missing {
            self.watch.tell(&format!(
                "`{}` has {} by another version of Narrows: done again",
                self.out.display(),
                count(outdated.len(), "finished run"),
            ));
        }
        for differing in writer.differing() {
            self.watch.tell(&format!("{differing}: it is written again"));
        }
        for left in writer.leftovers() {
            self.watch.tell(&files::leftover_message(&left));
        }
        // Found out now, not after all runs.
        writer.report_may_go()?;
        if !planned.is_alone() {
            let noted: Vec<StudyRun<'_>> =
                planned.runs.iter().zip(&planned.infos).map(|(run, known)| note_of(run, known)).collect();
            self.report_failure(self.notes.planned(&self.out, &noted));
        }
        Ok(writer)
    }

    /// Reports a recording failure to the user.
    fn report_failure(&self, noted: Result<(), String>) {
        if let Err(message) = noted {
            self.watch.tell(&message);
        }
    }

    /// Returns the results of earlier commands, by index of the run.
    fn earlier(&self, planned: &PlannedWork, writer: &ResultsWriter) -> Result<Vec<Option<WrittenRun>>, Error> {
        let mut earlier = Vec::with_capacity(planned.runs.len());
        let reuse = if self.backend.repeats() { Reuse::AllSets } else { Reuse::NextSet };
        for (number, (run, known)) in planned.runs.iter().zip(&planned.infos).enumerate() {
            if self.watch.interrupted() {
                let unread = (number..planned.runs.len())
                    .filter(|&run| !self.force && writer.seems_finished(run, reuse, self.from))
                    .inspect(|&run| self.report_failure(self.notes.reused(&planned.runs[run].id)))
                    .count();
                let finished = earlier.iter().flatten().count() + unread;
                return Err(self.stopped(writer, Error::Interrupted, 0, finished, planned.runs.len()));
            }
            let found = if self.force {
                Earlier::Nothing
            } else {
                writer.earlier(number, reuse, self.from, &known.resolved, &known.columns)?
            };
            earlier.push(match found {
                Earlier::Kept(kept) => {
                    self.report_failure(self.notes.reused(&run.id));
                    Some(planned.written(*kept))
                }
                Earlier::Nothing => {
                    for other in writer.differing_in(number, self.from) {
                        self.watch.tell(&format!(
                            "`{}` has a run `{}` of other settings or of another version of Narrows: not taken",
                            other.display(),
                            run.id
                        ));
                    }
                    None
                }
                Earlier::Damaged(error) => {
                    let then = if self.runs_missing { "is done again" } else { "is not taken" };
                    self.watch.tell(&format!("{error}: the run `{}` {then}", run.id));
                    None
                }
            });
        }
        Ok(earlier)
    }

    /// Executes the missing runs, on all cores.
    fn execute(
        &self,
        planned: &PlannedWork,
        writer: &ResultsWriter,
        earlier: Vec<Option<WrittenRun>>,
    ) -> Result<Vec<WrittenRun>, Error> {
        let runs = &planned.runs;
        let kept = earlier.iter().flatten().count();
        let names: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        let board = self.watch.board(&names, kept);
        let missing: Vec<usize> = (0..runs.len()).filter(|&run| earlier[run].is_none()).collect();
        if !self.runs_missing && !missing.is_empty() {
            if kept == 0 && !writer.has_results() {
                self.notes.clear(&self.out);
            }
            return Err(Error::Missing { runs: missing.into_iter().map(|run| runs[run].id.clone()).collect() });
        }
        let threads = threads(self.threads);
        // Enough runs: one thread each. Few: all threads for one after the other.
        let is_parallel = missing.len() >= threads && !self.backend.needs_exclusive_use();
        let (workers, inside) = if is_parallel { (threads.min(missing.len()), 1) } else { (1, threads) };

        let done: Mutex<Vec<Option<WrittenRun>>> = Mutex::new(earlier);
        // The error that ends the study, and runs that failed by themselves.
        let fatal: Mutex<Option<Error>> = Mutex::new(None);
        let failed: Mutex<Vec<(String, String)>> = Mutex::default();
        run_parallel(workers, missing.len(), |position| {
            // No lock is held during a run.
            if lock(&fatal).is_some() {
                return;
            }
            let index = missing[position];
            let name = &runs[index].id;
            self.report_failure(self.notes.started(name));
            let clock = Stopwatch::start();
            let result = self.one(planned, index, inside, workers, &*board);
            match result.and_then(|result| Ok(writer.keep(&result).map(|()| planned.written(result))?)) {
                Ok(result) => {
                    lock(&done)[index] = Some(result);
                    self.report_failure(self.notes.ended(name, clock.elapsed(), None));
                }
                Err(Error::Failed { runs: why }) => {
                    let why: Vec<String> = why.into_iter().map(|(_, why)| why).collect();
                    self.report_failure(self.notes.ended(name, clock.elapsed(), Some(&why.join("; "))));
                    lock(&failed).push((name.clone(), why.join("; ")));
                }
                Err(error) => {
                    self.report_failure(self.notes.interrupted(name));
                    lock(&fatal).get_or_insert(error);
                }
            }
        });
        drop(board);
        let done = inner(done);
        let mut failed = inner(failed);
        failed.sort_unstable();
        let fatal = inner(fatal);
        if fatal.is_some() {
            for (run, why) in &failed {
                self.watch.tell(&format!("the run `{run}` failed: {why}"));
            }
        }
        let failures = failed.len();
        let cause = fatal.or_else(|| (failures > 0).then_some(Error::Failed { runs: failed }));
        match cause {
            None => Ok(done.into_iter().flatten().collect()),
            Some(cause) => {
                let finished = done.iter().flatten().count();
                Err(self.stopped(writer, cause, failures, finished, runs.len()))
            }
        }
    }

    /// Returns the error of a study that ends before all of its runs. Without any result, its records are deleted.
    fn stopped(&self, writer: &ResultsWriter, cause: Error, failures: usize, finished: usize, of: usize) -> Error {
        // In a directory that was moved the same command finds none of them.
        if writer.lock().is_none_or(|lock| lock.check().is_err()) {
            return cause;
        }
        if finished == 0 && failures == 0 && !writer.has_results() {
            self.notes.clear(&self.out);
        }
        Error::Stopped { cause: cause.into(), finished, of }
    }

    /// Executes a run. One that fails its self-check or panics fails alone: the others continue.
    fn one(
        &self,
        planned: &PlannedWork,
        index: usize,
        threads: usize,
        workers: usize,
        board: &dyn ProgressDisplay,
    ) -> Result<RunResults, Error> {
        let run = &planned.runs[index];
        let built = run.build()?;
        let info = self.info(run, &planned.infos[index].columns, &built);
        let (others, of, watch) = (workers > 1, planned.size(), self.watch);
        let one = RunSpec { run, built, info, threads, others, of, watch, board };
        let failed = |why: String| Error::Failed { runs: vec![(run.id.clone(), why)] };
        match catch_unwind(AssertUnwindSafe(|| self.backend.run(one))) {
            Ok(Err(Error::Broken(broken))) => Err(failed(broken.to_string())),
            Ok(result) => result,
            Err(panic) => {
                let message =
                    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                Err(failed(format!("a bug in Narrows or in a law: {}", message.unwrap_or("a panic"))))
            }
        }
    }

    /// Judges the claims, renders the report, and moves the set to its final place.
    fn conclude(
        &self,
        planned: &PlannedWork,
        writer: &ResultsWriter,
        done: Vec<WrittenRun>,
    ) -> Result<Finished, Error> {
        let (runs, shown): (Vec<RunResults>, Vec<report::RunData>) =
            done.into_iter().map(|it| (it.results, it.shown)).unzip();
        let in_claims: Vec<String> =
            runs.iter().map(|run| name_in_claims(&run.summary.run, run.summary.seed)).collect();
        let seeds = Runs::by_seed(&runs, &in_claims);
        let judgements: Vec<Judgement> = self.claims.iter().map(|claim| claim.judge(&seeds)).collect();
        let tables: Vec<AveragesTable> =
            planned.tables.iter().map(|table| named(self.scenario, table.of(&runs))).collect();
        // A lone run has its flows, and is not on the disk yet: nothing is to keep it from there.
        let with_flows = |run| {
            if planned.is_alone() {
                return Ok(Cow::Borrowed(run));
            }
            if self.watch.interrupted() {
                return Err(Error::Interrupted);
            }
            Ok(Cow::Owned(writer.with_flows(run)?))
        };
        let tails = tails::read(&runs, self.threads, with_flows).map_err(|error| match error {
            Error::Interrupted => self.stopped(writer, error, 0, runs.len(), runs.len()),
            error => error,
        })?;
        let figure = figure(self.scenario).unwrap_or_default();
        let config = &self.scenario.config;
        let page = Page {
            name: config.name.as_str().to_owned(),
            title: config.title.clone(),
            paper: config.paper.as_ref().map(|table| page::paper(&table.to_json())).unwrap_or_default(),
            subtitle: config.description.clone(),
            scale: self.scenario.scale.as_ref().map(|scale| format!("{}: {}", scale.name, scale.note)),
            scenario_toml: self.scenario.resolved_toml(),
            replay: self.replay.clone(),
            claims: judgements.iter().map(|it| page::claim(&figure, it)).collect(),
            tails,
            averages: self.tables.iter().cloned().chain(tables.iter().map(page::averages)).collect(),
            conditions: page::conditions(&runs),
            warnings: self.shard.iter().map(of_shard).collect(),
        };
        let html = page::render(&page, shown);
        writer.finish(&program(), &runs, &summaries(&runs), html).map_err(|error| match &error {
            results::Error::Io { path, .. } if path.ends_with(REPORT) => Error::invalid_request(
                error.to_string(),
                format!(
                    "all else is in place; `narrows report {}` writes the page when there is room",
                    self.out.display()
                ),
            ),
            _ => error.into(),
        })?;
        if planned.is_alone() {
            self.notes.clear(&self.out);
        }
        Ok(Finished { runs, judgements, tables, out: self.out.clone() })
    }
}

/// Returns the report's note about a shard.
fn of_shard(shard: &Shard) -> String {
    format!("This is shard {shard}: a part of the runs. `narrows sweep merge` puts shards together.")
}

/// Returns the record of a planned run.
fn note_of<'a>(run: &'a Run, known: &'a PlannedRunInfo) -> StudyRun<'a> {
    let point = serde_json::to_string(&known.point).unwrap_or_default();
    StudyRun { run: &run.id, key: &known.key, scheme: &run.scheme, point, seed: known.seed }
}
