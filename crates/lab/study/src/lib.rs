//! Runs of a scenario: planned, executed on all cores, stored as they finish, judged and shown.
//!
//! A [`Study`] is a scenario and the directory of its results. Its runs are executed by a [`Backend`]: [`Simulator`] is
//! here, the emulator belongs to the command. The observer is a [`SweepObserver`]: a terminal, a notebook, or none
//! ([`Silent`]). This crate prints nothing and knows no command line; user errors are returned as an [`Error`].
//! Attempts and failures are recorded by [`AttemptRecorder`]: with the feature `ledger`, in a database next to the results.
#![forbid(unsafe_code)]

mod backend;
mod clock;
mod columns;
mod describe;
mod error;
mod features;
pub mod headroom;
mod key;
#[cfg(feature = "ledger")]
pub mod ledger;
mod observer;
pub mod page;
mod program;
mod recorder;
mod replay;
pub mod size;
mod study;
mod tails;
mod text;
pub mod vary;
mod workers;

pub use backend::{Backend, RunSpec, Simulator, StudySize, flow_number, refuse};
pub use clock::{Stopwatch, seconds_since_1970};
pub use describe::{check_tables, error_at, figure, known_schemes, metric_names, summaries, tables};
pub use error::{Error, kept};
#[cfg(feature = "ledger")]
pub use ledger::Ledger;
pub use observer::{Line, ProgressDisplay, Silent, SweepObserver};
pub use program::program;
pub use recorder::{AttemptRecorder, NullRecorder, StudyRun};
pub use replay::{MAX_HOPS, Replay, Replayed, bins_of, unrepeatable};
pub use study::{Finished, Others, RunKey, Shard, Study};
pub use tails::{TailReport, tails};
pub use text::{count, first_of, warnings};
