//! Backends that execute runs.

use engine::Recorded;
use experiment::{FlowSpec, RecordConfig, Recording, Setup};
use laws::{ControlLaw, Law, PathInfo};
use results::{RunInfo, RunResults};
use scenario::{BuiltRun, ExternalLawPlan, LawPlan, Run};

use crate::clock::Stopwatch;
use crate::error::Error;
use crate::observer::{ProgressDisplay, SweepObserver};
use crate::program::program;

/// Backend that executes runs.
pub trait Backend: Sync {
    /// Returns whether concurrent runs would disturb each other.
    fn needs_exclusive_use(&self) -> bool;

    /// Returns whether the same run always produces the same results, so that those of an earlier run may be reused.
    fn repeats(&self) -> bool;

    /// Returns the request to this backend in addition to the scenario.
    fn options(&self) -> String;

    /// Refuses a run that it cannot execute, before the first one begins.
    ///
    /// # Errors
    /// If it cannot execute the run.
    fn check(&self, run: &Run, built: &BuiltRun, of: StudySize) -> Result<(), Error>;

    /// Executes a run.
    ///
    /// # Errors
    /// If the run fails or is interrupted.
    fn run(&self, one: RunSpec<'_>) -> Result<RunResults, Error>;
}

/// Number of a study's runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StudySize {
    /// The run is alone.
    OneRun,
    /// One of several runs.
    ManyRuns,
}

/// A run to execute.
pub struct RunSpec<'a> {
    /// The run.
    pub run: &'a Run,
    /// Simulation inputs built from it.
    pub built: BuiltRun,
    /// Description of the run before execution.
    pub info: RunInfo,
    /// Threads for this run.
    pub threads: usize,
    /// Set if other runs are executed at the same time.
    pub others: bool,
    /// Number of the study's runs.
    pub of: StudySize,
    /// Observer of the study.
    pub watch: &'a dyn SweepObserver,
    /// Progress display.
    pub board: &'a dyn ProgressDisplay,
}

/// Returns the error for a run with an external law that the backend does not have.
pub fn refuse(run: &Run, law: &ExternalLawPlan) -> Error {
    let ExternalLawPlan { name, language, .. } = law;
    let what = format!(
        "the scheme `{}` runs {name}, a law in {language}; only narrows.run(..., laws=[{name}]) can run it",
        run.scheme
    );
    Error::invalid_request(what, "")
}

/// Returns a flow's index among the run's flows; none if it is not one of them. Takes constant time.
pub fn flow_number(setup: &Setup, flow: &FlowSpec) -> Option<usize> {
    setup.flows.element_offset(flow)
}

/// The simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Simulator {
    /// Set to check invariants during the run.
    pub checked: bool,
}

impl Backend for Simulator {
    fn needs_exclusive_use(&self) -> bool {
        false
    }

    fn repeats(&self) -> bool {
        true
    }

    fn options(&self) -> String {
        String::new()
    }

    fn check(&self, run: &Run, built: &BuiltRun, _: StudySize) -> Result<(), Error> {
        built.laws.external_laws().next().map_or(Ok(()), |law| Err(refuse(run, law)))
    }

    fn run(&self, one: RunSpec<'_>) -> Result<RunResults, Error> {
        let laws = one.built.laws.clone();
        self.run_with(one, catalog(laws))
    }
}

/// Returns a function that creates laws of the catalog.
fn catalog(laws: LawPlan) -> impl Fn(&Setup, &FlowSpec, &PathInfo) -> Law + Sync {
    move |_, flow, path| laws.make(flow, path)
}

/// Checks and recording of a simulation.
enum SimulationMode<'a> {
    Plain,
    /// With invariant checks.
    Checked,
    /// With a log of some flows and links.
    Recorded(&'a RecordConfig),
}

/// Simulates a run. One function for all modes, so that the engine is compiled once.
fn simulate<L: ControlLaw + Send>(
    setup: &Setup,
    threads: usize,
    make_law: impl Fn(&Setup, &FlowSpec, &PathInfo) -> L + Sync,
    progress: &mut dyn FnMut(engine::RunProgress) -> bool,
    mode: &SimulationMode<'_>,
) -> Result<Recorded, Error> {
    let make_law = |flow: &FlowSpec, path: &PathInfo| make_law(setup, flow, path);
    let outcome = match mode {
        SimulationMode::Recorded(record) => {
            return Ok(engine::run_recorded(setup, threads, make_law, progress, record));
        }
        SimulationMode::Checked => engine::run_checked(setup, threads, make_law, progress)?,
        SimulationMode::Plain => engine::run(setup, threads, make_law, progress),
    };
    Ok(Recorded { outcome, recording: Recording::default() })
}

/// Simulates a run of laws of the catalog again, with a log, until `progress` ends it.
pub(crate) fn record(
    built: &BuiltRun,
    threads: usize,
    progress: &mut dyn FnMut(engine::RunProgress) -> bool,
    record: &RecordConfig,
) -> Result<Recorded, Error> {
    simulate(&built.setup, threads, catalog(built.laws.clone()), progress, &SimulationMode::Recorded(record))
}

impl Simulator {
    /// Executes a run with laws that `make_law` creates: for backends with external laws.
    ///
    /// # Errors
    /// If the run is interrupted, or fails its self-check.
    ///
    /// # Panics
    /// If a law or `make_law` panics.
    pub fn run_with<L: ControlLaw + Send>(
        &self,
        RunSpec { run, built, info, threads, others, watch, board, .. }: RunSpec<'_>,
        make_law: impl Fn(&Setup, &FlowSpec, &PathInfo) -> L + Sync,
    ) -> Result<RunResults, Error> {
        let line = board.run(&run.id, built.setup.stop, built.setup.flows.len() as u64);
        let clock = if others { Stopwatch::of_this_thread() } else { Stopwatch::start() };
        let mut progress = |now: engine::RunProgress| {
            line.update(&now);
            !watch.interrupted()
        };
        let mode = if self.checked { SimulationMode::Checked } else { SimulationMode::Plain };
        let outcome = simulate(&built.setup, threads, make_law, &mut progress, &mode)?.outcome;
        let times = clock.times();
        if outcome.interrupted {
            return Err(Error::Interrupted);
        }
        Ok(RunResults::new(&info, &program(), &built.setup, &outcome, times)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Overrides;

    const TEXT: &str = r#"
name = "two"
topology = { kind = "dumbbell", left = 2, right = 2, rate = "10Gbps", delay = "20us" }
traffic = [{ kind = "long", flows = [[0, 2], [1, 3], [0, 3]], size = "1MB" }]
schemes = { mixed = { intra = "Halve", inter = "Third" } }
"#;

    fn built() -> (Run, BuiltRun) {
        let hash = "0".repeat(64);
        let law = |name: &str| format!("[external_laws.{name}]\nlanguage = \"Python\"\nsha256 = \"{hash}\"\n");
        let text = format!("{TEXT}{}{}", law("Halve"), law("Third"));
        let run = scenario::parse(&text, "two.toml", &Overrides::default()).unwrap().runs().remove(0);
        let built = run.build().unwrap();
        (run, built)
    }

    #[test]
    fn flow_numbers_are_indices() {
        let (_, built) = built();
        let setup = &built.setup;
        let numbers: Vec<_> = setup.flows.iter().map(|flow| flow_number(setup, flow)).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
        // Equal, and not one of them.
        assert_eq!(flow_number(setup, &setup.flows[1].clone()), None);
    }

    #[test]
    fn error_names_the_missing_law() {
        let (run, built) = built();
        let said = |law| refuse(&run, law).to_string();
        let all: Vec<String> = built.laws.external_laws().map(said).collect();
        assert_eq!(
            all,
            ["Halve", "Third"].map(|name| format!(
                "the scheme `mixed` runs {name}, a law in Python; only narrows.run(..., laws=[{name}]) can run it"
            ))
        );
        assert_eq!(Simulator::default().check(&run, &built, StudySize::OneRun).unwrap_err().to_string(), all[0]);
    }
}
