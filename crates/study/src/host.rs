//! What runs run on.

use laws::{ControlLaw, Path};
use results::{RunInfo, RunResults};
use scenario::{BuiltRun, Run};
use sim::{FlowSpec, Setup};

use crate::clock::Stopwatch;
use crate::error::Error;
use crate::program::program;
use crate::watch::{Board, Watch};

/// What runs run on.
pub trait Host: Sync {
    /// Whether runs would disturb each other.
    fn one_at_a_time(&self) -> bool;

    /// Whether the same run always leaves the same results, so that an earlier run's may be kept.
    fn repeats(&self) -> bool;

    /// What was asked of this host beside the scenario.
    fn asked(&self) -> String;

    /// Refuses a run that it cannot do, before the first one begins. `of_many` says whether the study has other runs.
    ///
    /// # Errors
    /// When it cannot.
    fn check(&self, run: &Run, built: &BuiltRun, of_many: bool) -> Result<(), Error>;

    /// Does a run.
    ///
    /// # Errors
    /// When the run fails or is interrupted.
    fn run(&self, one: One<'_>) -> Result<RunResults, Error>;
}

/// A run to be done.
pub struct One<'a> {
    /// The run.
    pub run: &'a Run,
    /// What it is made of.
    pub built: BuiltRun,
    /// What is known of it beforehand.
    pub info: RunInfo,
    /// Threads for this run.
    pub threads: usize,
    /// Whether others are done at the same time.
    pub others: bool,
    /// Whether the study has other runs.
    pub of_many: bool,
    /// Who looks on.
    pub watch: &'a dyn Watch,
    /// Where it shows how far it is.
    pub board: &'a dyn Board,
}

/// The simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Simulator {
    /// Whether it checks itself while it runs.
    pub checked: bool,
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

    fn check(&self, run: &Run, built: &BuiltRun, _: bool) -> Result<(), Error> {
        match built.laws.brought().next() {
            None => Ok(()),
            Some(law) => Err(Error::asked(
                format!(
                    "the scheme `{}` runs {}, a law in {} that is not brought here",
                    run.scheme, law.name, law.language
                ),
                format!("give it to the run, as in narrows.run(..., laws=[{}]) of the Python package", law.name),
            )),
        }
    }

    fn run(&self, one: One<'_>) -> Result<RunResults, Error> {
        let laws = one.built.laws.clone();
        self.run_with(one, move |_, flow, path| laws.make(flow, path))
    }
}

impl Simulator {
    /// Does a run whose laws `make_law` makes: for hosts that bring laws of their own.
    ///
    /// # Errors
    /// When the run is interrupted, or finds itself wrong.
    ///
    /// # Panics
    /// If a law or `make_law` panics.
    pub fn run_with<L: ControlLaw + Send>(
        &self,
        One { run, built, info, threads, others, watch, board, .. }: One<'_>,
        make_law: impl Fn(&Setup, &FlowSpec, &Path) -> L + Sync,
    ) -> Result<RunResults, Error> {
        let line = board.run(&run.id, built.setup.stop, built.setup.flows.len() as u64);
        let clock = if others { Stopwatch::of_this_thread() } else { Stopwatch::start() };
        let mut progress = |now: sim::Progress| {
            line.update(&now);
            !watch.interrupted()
        };
        let make_law = |flow: &FlowSpec, path: &Path| make_law(&built.setup, flow, path);
        let outcome = if self.checked {
            sim::run_checked(&built.setup, threads, make_law, &mut progress)?
        } else {
            sim::run(&built.setup, threads, make_law, &mut progress)
        };
        let times = clock.times();
        if outcome.interrupted {
            return Err(Error::Interrupted);
        }
        Ok(RunResults::new(&info, &program(), &built.setup, &outcome, times)?)
    }
}
