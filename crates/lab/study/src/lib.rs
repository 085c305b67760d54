//! Runs of a scenario: planned, executed on all cores, stored as they finish, judged and shown.
//!
//! A [`Study`] is a scenario and the directory of its results. Its runs are executed by a [`Backend`]: [`Simulator`] is
//! here, the emulator belongs to the command. The observer is a [`SweepObserver`]: a terminal, a notebook, or none
//! ([`Silent`]). This crate prints nothing and knows no command line; user errors are returned as an [`Error`].
//! Attempts and failures are recorded by [`AttemptRecorder`]: with the feature `ledger`, in a database next to the results.
#![forbid(unsafe_code)]

mod clock;
mod columns;
mod describe;
mod error;
mod features;
pub mod headroom;
mod host;
mod key;
#[cfg(feature = "ledger")]
pub mod ledger;
mod notes;
pub mod page;
mod program;
mod replay;
pub mod size;
mod study;
mod tails;
pub mod vary;
mod watch;
mod words;
mod workers;

pub use clock::{Stopwatch, seconds_since_1970};
pub use describe::{check_tables, figure, known_schemes, metric_names, summaries, tables, wrong_at};
pub use error::{Error, kept};
pub use host::{Backend, RunSpec, Simulator, StudySize, flow_number, refuse};
#[cfg(feature = "ledger")]
pub use ledger::Ledger;
pub use notes::{AttemptRecorder, NoNotes, StudyRun};
pub use program::program;
pub use replay::{MAX_HOPS, Replay, Replayed, bins_of, unrepeatable};
pub use study::{Finished, Others, RunKey, Shard, Study};
pub use tails::{TailReport, tails};
pub use watch::{Line, ProgressDisplay, Silent, SweepObserver};
pub use words::{count, first_of, warnings};
