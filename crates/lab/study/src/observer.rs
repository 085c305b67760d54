//! Progress observers.

use engine::RunProgress;
use units::Time;

/// Observer of a study: a terminal, a notebook, a log.
pub trait SweepObserver: Sync {
    /// Shows a message to the user, without an end of line.
    fn tell(&self, text: &str);

    /// Returns whether the work should end. Finished runs are kept.
    fn interrupted(&self) -> bool;

    /// Begins to handle interruptions: from now on one ends the work in order, while before it may end the program.
    fn listen(&self) {}

    /// Begins runs with these names; `kept` of them were finished before.
    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn ProgressDisplay + 'a>;
}

/// Progress display of the runs.
pub trait ProgressDisplay: Sync {
    /// Begins a run with `flows` flows that ends at `stop` at the latest. It ends when its line is dropped.
    fn run<'a>(&'a self, name: &str, stop: Time, flows: u64) -> Box<dyn Line + 'a>;
}

/// Progress display of one run.
pub trait Line {
    /// Shows the progress of a simulated run.
    fn update(&self, progress: &RunProgress);

    /// Shows the progress of a run on real packets, in real time: its time and the number of completed flows.
    fn update_real(&self, time: Time, completed: usize);
}

/// Observer that shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Silent;

impl SweepObserver for Silent {
    fn tell(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        false
    }

    fn board<'a>(&'a self, _: &[String], _: usize) -> Box<dyn ProgressDisplay + 'a> {
        Box::new(Self)
    }
}

impl ProgressDisplay for Silent {
    fn run<'a>(&'a self, _: &str, _: Time, _: u64) -> Box<dyn Line + 'a> {
        Box::new(Self)
    }
}

impl Line for Silent {
    fn update(&self, _: &RunProgress) {}

    fn update_real(&self, _: Time, _: usize) {}
}
