//! Repetition of runs from a results directory, with a log of some flows: for `narrows explain`.
//!
//! A run's manifest has every setting, so the run can be built again. Files that its scenario names are looked up in a
//! directory, and must be unchanged. Repeated results must match, too: a flow that completes at another time than in the
//! stored results is an error. The run is simulated twice: the first log has the flows' packets and determines the links
//! for which the second one counts usage.

use std::path::Path;

use engine::Recorded;
use experiment::{FlowId, FlowOutcome, RecordConfig};
use results::attribution::{Attribution, CriticalPath, CriticalPaths, Logged};
use results::tables::FlowRow;
use results::{BackendKind as RanOn, RunResults, SizeBin};
use scenario::{BuiltRun, Overrides, Run, toml_of};
use units::Time;

use crate::backend::record;
use crate::describe::size_bins;
use crate::error::Error;
use crate::observer::{ProgressDisplay, SweepObserver};
use crate::text::count;

/// Hops of data packets that are logged at most: some 2 GiB.
pub const MAX_HOPS: u64 = 40_000_000;

/// A run of results, built again.
#[derive(Debug)]
pub struct Replay<'a> {
    results: &'a RunResults,
    /// The run.
    pub built: BuiltRun,
}

/// A replayed run.
#[derive(Debug)]
pub struct Replayed {
    /// The causes of each flow's excess, in the order asked for.
    pub flows: Vec<Attribution>,
    /// Their critical paths.
    pub paths: Vec<CriticalPath>,
}

/// Returns the reason why the simulator cannot repeat a run, if any: it ran on real packets, or with laws in Python.
pub fn unrepeatable(results: &RunResults) -> Option<String> {
    let name = &results.summary.run;
    if results.manifest.backend == RanOn::Emulator {
        return Some(format!("`{name}` ran on real packets, which cannot be repeated"));
    }
    if results.manifest.backend == RanOn::Virtual {
        return Some(format!("`{name}` ran over the transport, which the simulator cannot repeat"));
    }
    let laws = results.manifest.resolved.get("external_laws")?.as_object()?;
    let (law, _) = laws.iter().next()?;
    Some(format!("`{name}` runs {law}, a law in Python, which this command does not have"))
}

/// Wraps an error in a manifest's settings: names the run, and drops the place, which is in generated text.
fn not_built(results: &RunResults, error: scenario::Error) -> Error {
    let name = &results.summary.run;
    Error::Scenario(match error {
        scenario::Error::Invalid(mut diagnostic) => {
            diagnostic.message = format!("`{name}` cannot be built again: {}", diagnostic.message);
            (diagnostic.location, diagnostic.label) = (None, String::new());
            scenario::Error::Invalid(diagnostic)
        }
        unreadable @ scenario::Error::Unreadable(_) => unreadable,
    })
}

/// Returns the run of a manifest.
///
/// # Errors
/// If the simulator cannot repeat it.
fn run_of(results: &RunResults, directory: &Path) -> Result<Run, Error> {
    let manifest = &results.manifest;
    let name = &results.summary.run;
    if let Some(reason) = unrepeatable(results) {
        return Err(Error::invalid_request(reason, ""));
    }
    let origin = directory.join(format!("{}.toml", manifest.scenario));
    let scenario = scenario::parse(&toml_of(&manifest.resolved), &origin.display().to_string(), &Overrides::default())
        .map_err(|error| not_built(results, error))?;
    let mut runs = scenario.runs();
    match (runs.pop(), runs.len()) {
        (Some(run), 0) => Ok(run),
        (_, more) => {
            let what = format!("the settings of `{name}` are those of {}", count(more + 1, "run"));
            Err(Error::invalid_request(what, "expected one: give the command that made these results again"))
        }
    }
}

/// Returns the size bins of a run's scenario.
///
/// # Errors
/// If the manifest's settings cannot be read.
pub fn bins_of(results: &RunResults, directory: &Path) -> Result<Vec<SizeBin>, Error> {
    Ok(size_bins(&run_of(results, directory)?))
}

impl<'a> Replay<'a> {
    /// Builds a run again. Files that its scenario names are searched in `directory`.
    ///
    /// # Errors
    /// If it cannot be repeated ([`unrepeatable`]), or a file that its scenario names is missing or has changed.
    pub fn new(results: &'a RunResults, directory: &Path) -> Result<Self, Error> {
        let run = run_of(results, directory)?;
        let name = &results.summary.run;
        let built = run.build().map_err(|error| not_built(results, error))?;
        for input in &built.inputs {
            let file = input.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let hash = files::sha256(input.content.bytes());
            let kept = |of: &&results::FileHash| of.name == file;
            // Files in different directories may have one name.
            let mut kept = results.manifest.inputs.iter().filter(kept).peekable();
            if kept.peek().is_some() && kept.all(|kept| kept.sha256 != hash) {
                let what = format!("`{}` is not the file that `{name}` was made from", input.path.display());
                return Err(Error::invalid_request(what, "give the directory that has it with --inputs"));
            }
        }
        Ok(Self { results, built })
    }

    /// Returns the number of flows, counted from the first, with logs that fit into memory; at least one.
    pub fn affordable(&self, flows: &[FlowId]) -> usize {
        let setup = &self.built.setup;
        let mut hops = 0;
        let fits = |&&flow: &&FlowId| {
            let spec = &setup.flows[flow.0 as usize];
            // Data, acknowledgements, and the same amount again for retransmissions.
            hops +=
                3 * u64::from(setup.packets(spec)) * u64::from(setup.paths(spec.src, spec.dst, setup.host.mss).hops);
            hops <= MAX_HOPS
        };
        flows.iter().take_while(fits).count().max(1)
    }

    /// Simulates the run twice, up to the completion of these flows, and attributes their excess.
    ///
    /// # Errors
    /// If `watch` interrupts, or flows complete at other times than in the stored results.
    pub fn run(
        &self,
        flows: &[FlowId],
        threads: usize,
        watch: &dyn SweepObserver,
        board: &dyn ProgressDisplay,
    ) -> Result<Replayed, Error> {
        let name = &self.results.summary.run;
        let rows: Vec<_> = flows.iter().filter_map(|flow| self.results.flows.row(flow.0)).collect();
        let last = rows.iter().map(|row| row.completed).filter(|time| time.is_set()).max().unwrap_or(Time::ZERO);
        let simulate = |config: &RecordConfig, pass: u8| -> Result<Recorded, Error> {
            let line = board.run(&format!("{name}, replay {pass}/2"), last, 0);
            let mut progress = |now: engine::RunProgress| {
                line.update(&now);
                now.time <= last && !watch.interrupted()
            };
            let recorded = record(&self.built, threads, &mut progress, config)?;
            if watch.interrupted() { Err(Error::Interrupted) } else { Ok(recorded) }
        };
        let flows = rows.iter().map(|row| FlowId(row.flow)).collect();
        let first = simulate(&RecordConfig { flows, spans: Vec::new() }, 1)?;
        for row in &rows {
            let replayed = first.outcome.flows.get(row.flow as usize);
            if replayed.is_none_or(|replayed| {
                (replayed.started, replayed.completed, replayed.stats) != (row.started, row.completed, row.stats)
            }) {
                return Err(self.differs(row, replayed));
            }
        }
        let logged = rows.iter().zip(&first.recording.flows).map(|(row, log)| Logged {
            log,
            started: row.started,
            completed: row.completed,
            ideal: row.ideal,
        });
        let paths = CriticalPaths::new(&self.built.setup, logged.collect());
        let second = simulate(&RecordConfig { flows: Vec::new(), spans: paths.spans().to_vec() }, 2)?;
        Ok(Replayed { flows: paths.attribute(&second.recording), paths: paths.paths().cloned().collect() })
    }

    /// Returns the error for a flow that differs from the stored one.
    fn differs(&self, row: &FlowRow, replayed: Option<&FlowOutcome>) -> Error {
        let shown =
            |time: Time| if time.is_set() { format!("completes at {time}") } else { "does not complete".to_owned() };
        let manifest = &self.results.manifest;
        let by = if manifest.commit.is_empty() { &manifest.version } else { &manifest.commit };
        let completes = replayed.map_or(Time::NEVER, |replayed| replayed.completed);
        let difference = if completes == row.completed {
            "has other counters here than".to_owned()
        } else {
            format!("{} here, and {} in", shown(completes), shown(row.completed))
        };
        let name = &self.results.summary.run;
        let what = format!("flow {} of `{name}` {difference} the results, which are of another build ({by})", row.flow);
        Error::invalid_request(
            what,
            "give the command that made these results again, with --force; --traits needs no replay",
        )
    }
}
