//! The run: partitions, epochs and threads.

use laws::{ControlLaw, Path};
use units::Time;

use crate::outcome::Outcome;
use crate::setup::{FlowSpec, Setup};

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Simulated time.
    pub time: Time,
    /// Packets over links so far.
    pub packet_hops: u64,
    /// Flows complete so far.
    pub completed: u64,
}

/// Runs a simulation on up to `threads` threads. `make_law` gives each flow its law when it starts; `progress`
/// is called now and then and ends the run by answering `false`.
pub fn run<L, F>(setup: &Setup, threads: usize, make_law: F, progress: &mut dyn FnMut(Progress) -> bool) -> Outcome
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &Path) -> L + Sync,
{
    let _ = (setup, threads, &make_law, progress);
    unreachable!("written next")
}
