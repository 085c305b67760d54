//! The runs of a scenario: planned, done, written as soon as each is finished, judged and shown.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use results::averages::{Table, TableSpec};
use results::claims::{Claim, Judgement, Runs, name_in_claims};
use results::store::{Earlier, Plan, REPORT, Writer};
use results::tables::FlowTable;
use results::{RunInfo, RunResults, SizeBin};
use scenario::{BuiltRun, Run, Scenario};

use crate::describe::{figure, info, known_schemes, named, size_bins, summaries, tables};
use crate::error::Error;
use crate::host::{Host, One};
use crate::page::{self, Page};
use crate::program::program;
use crate::watch::{Board, Watch};
use crate::words::first_of;

/// The runs of a scenario, and where their results go.
pub struct Study<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// What they run on.
    pub host: &'a dyn Host,
    /// Who looks on.
    pub watch: &'a dyn Watch,
    /// Only these schemes; empty for all.
    pub schemes: &'a [String],
    /// Threads for all runs together; none for as many as there are cores.
    pub threads: Option<u16>,
    /// Where results go.
    pub out: PathBuf,
    /// What gives these results again, for the report and for whoever finds the directory in use.
    pub replay: Vec<String>,
    /// What to judge by the runs.
    pub claims: &'a [Claim],
    /// Whether runs that were finished before are done again.
    pub anew: bool,
}

/// What a study left.
#[derive(Debug)]
pub struct Finished {
    /// Its runs. Of several, without their flows: those are on disk.
    pub runs: Vec<RunResults>,
    /// In the order of the claims.
    pub judgements: Vec<Judgement>,
    /// The scenario's tables of averages.
    pub tables: Vec<Table>,
    /// Where all of it lies.
    pub out: PathBuf,
}

/// What will be done.
struct Planned {
    runs: Vec<Run>,
    /// What is known of each.
    infos: Vec<Known>,
    tables: Vec<TableSpec>,
    bins: Vec<SizeBin>,
}

/// What is known of a run before it is done.
struct Known {
    key: String,
    resolved: serde_json::Value,
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

impl Planned {
    fn is_alone(&self) -> bool {
        self.runs.len() == 1
    }

    fn written(&self, results: RunResults) -> Written {
        Written::new(results, &self.bins, self.runs.len())
    }
}

impl Study<'_> {
    /// Builds, runs, writes. What is wrong with the scenario is found before anything runs.
    ///
    /// # Errors
    /// When a scheme is unknown, a run cannot be built or written, or whoever looks on interrupts. Runs that were finished
    /// before stay on disk.
    pub fn run(&self) -> Result<Finished, Error> {
        let planned = self.plan()?;
        self.watch.listen();
        let writer = self.take(&planned)?;
        let earlier = self.earlier(&planned, &writer)?;
        let done = self.execute(&planned, &writer, earlier)?;
        self.conclude(&planned, &writer, done)
    }

    /// Everything is built once before the first run, so that no mistake shows up after minutes.
    fn plan(&self) -> Result<Planned, Error> {
        let runs = self.chosen()?;
        let mut tables = tables(self.scenario)?;
        if tables.is_empty() && !self.claims.is_empty() {
            tables.push(TableSpec::of_completion_times());
        }
        let known = |run: &Run| {
            let built = run.build()?;
            self.host.check(run, &built, runs.len() > 1)?;
            let RunInfo { key, resolved, .. } = self.info(run, &built);
            Ok(Known { key, resolved })
        };
        let infos = runs.iter().map(known).collect::<Result<_, Error>>()?;
        let bins = runs.first().map(size_bins).unwrap_or_default();
        Ok(Planned { runs, infos, tables, bins })
    }

    fn chosen(&self) -> Result<Vec<Run>, Error> {
        known_schemes(self.scenario, self.schemes)?;
        let runs = self.scenario.runs().into_iter();
        let runs: Vec<Run> = runs.filter(|run| self.schemes.is_empty() || self.schemes.contains(&run.scheme)).collect();
        // Two runs of one name would have one folder.
        let mut known = BTreeSet::new();
        match runs.iter().find(|run| !known.insert(&run.id)) {
            None => Ok(runs),
            Some(twice) => Err(Error::asked(
                format!(
                    "scenario `{}`: two runs are called `{}`; expected each value of a key of [grid] once",
                    self.scenario.config.name.as_str(),
                    twice.id
                ),
                "",
            )),
        }
    }

    fn info(&self, run: &Run, built: &BuiltRun) -> RunInfo {
        info(self.scenario, &self.host.asked(), run, built)
    }

    /// Takes the directory for the runs, unless results in it would be lost.
    fn take(&self, planned: &Planned) -> Result<Writer, Error> {
        let command = self.replay.first().map_or("narrows", String::as_str);
        let keys = planned.runs.iter().zip(&planned.infos).map(|(run, known)| (run.id.clone(), known.key.clone()));
        let writer = Writer::new(&self.out, Plan::new(&self.scenario.config.name, command, keys), command)?;
        if let Some(lock) = writer.lock() {
            lock.notes(&self.out).iter().for_each(|note| self.watch.tell(note));
        }
        let others = writer.replaced();
        if !self.schemes.is_empty() && !self.anew && !others.is_empty() {
            return Err(Error::asked(
                format!(
                    "`{}` has finished runs of this scenario that --scheme leaves out, and replacing the results would lose \
                     them: {}",
                    self.out.display(),
                    first_of(&others, ", ")
                ),
                "choose another directory with --out, or replace them with --anew",
            ));
        }
        for differing in writer.differing() {
            self.watch.tell(&format!("{differing}: it is written again"));
        }
        for left in writer.leftovers() {
            self.watch.tell(&files::left_by_a_stopped_command(&left));
        }
        // Found out now, not after all runs.
        writer.report_may_go()?;
        Ok(writer)
    }

    /// What earlier commands finished, by the number of the run.
    fn earlier(&self, planned: &Planned, writer: &Writer) -> Result<Vec<Option<Written>>, Error> {
        let mut earlier = Vec::with_capacity(planned.runs.len());
        for (number, (run, known)) in planned.runs.iter().zip(&planned.infos).enumerate() {
            let found = if self.anew {
                Earlier::Nothing
            } else {
                writer.earlier(number, self.host.repeats(), &known.resolved)?
            };
            earlier.push(match found {
                Earlier::Kept(run) => Some(planned.written(*run)),
                Earlier::Nothing => None,
                Earlier::Damaged(error) => {
                    self.watch.tell(&format!("{error}: the run `{}` is done again", run.id));
                    None
                }
            });
        }
        Ok(earlier)
    }

    /// Does the runs that are not there yet, on all cores.
    fn execute(
        &self,
        planned: &Planned,
        writer: &Writer,
        earlier: Vec<Option<Written>>,
    ) -> Result<Vec<Written>, Error> {
        let runs = &planned.runs;
        let kept = earlier.iter().flatten().count();
        let names: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        let board = self.watch.board(&names, kept);
        let threads = threads(self.threads);
        // Enough runs: one thread each. Few: all threads for one after the other.
        let together = runs.len() >= threads && !self.host.one_at_a_time();
        let (workers, inside) = if together { (threads.min(runs.len()), 1) } else { (1, threads) };

        let todo: Mutex<VecDeque<usize>> = Mutex::new((0..runs.len()).filter(|&run| earlier[run].is_none()).collect());
        let done: Mutex<Vec<Option<Written>>> = Mutex::new(earlier);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let work = || {
            loop {
                // Nothing stays locked while a run goes on.
                if lock(&failed).is_some() {
                    return;
                }
                let Some(index) = lock(&todo).pop_front() else { return };
                let result = self.one(planned, index, inside, workers > 1, &*board);
                match result.and_then(|result| Ok(writer.keep(&result).map(|()| planned.written(result))?)) {
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
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(done.into_iter().flatten().collect()),
            Some(cause) => {
                // In a directory that was moved the same command finds none of them.
                let is_kept = writer.lock().is_some_and(|lock| lock.check().is_ok());
                let (finished, of) = (done.iter().flatten().count(), runs.len());
                Err(if is_kept { Error::Stopped { cause: cause.into(), finished, of } } else { cause })
            }
        }
    }

    /// Does a run.
    fn one(
        &self,
        planned: &Planned,
        index: usize,
        threads: usize,
        others: bool,
        board: &dyn Board,
    ) -> Result<RunResults, Error> {
        let run = &planned.runs[index];
        let built = run.build()?;
        let info = self.info(run, &built);
        let (of_many, watch) = (!planned.is_alone(), self.watch);
        self.host.run(One { run, built, info, threads, others, of_many, watch, board })
    }

    /// Judges, draws, and puts the set in its place.
    fn conclude(&self, planned: &Planned, writer: &Writer, done: Vec<Written>) -> Result<Finished, Error> {
        let (runs, shown): (Vec<RunResults>, Vec<report::Run>) =
            done.into_iter().map(|it| (it.results, it.shown)).unzip();
        let in_claims: Vec<String> =
            runs.iter().map(|run| name_in_claims(&run.summary.run, run.summary.seed)).collect();
        let seeds = Runs::by_seed(&runs, &in_claims);
        let judgements: Vec<Judgement> = self.claims.iter().map(|claim| claim.judge(&seeds)).collect();
        let tables: Vec<Table> = planned.tables.iter().map(|table| named(self.scenario, table.of(&runs))).collect();
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
        let html = page::render(&page, shown);
        writer.finish(&program(), &runs, &summaries(&runs), html).map_err(|error| match &error {
            results::Error::Io { path, .. } if path.ends_with(REPORT) => Error::asked(
                error.to_string(),
                format!(
                    "all else is in place; `narrows report {}` writes the page when there is room",
                    self.out.display()
                ),
            ),
            _ => error.into(),
        })?;
        Ok(Finished { runs, judgements, tables, out: self.out.clone() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As many as there are cores, unless asked.
fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from)
}
