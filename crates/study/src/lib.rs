//! Runs of a scenario: planned, done on all cores, kept as they finish, judged and shown.
//!
//! A [`Study`] is a scenario and where its results go. Its runs are done by a [`Host`]: [`Simulator`] is here, the emulator
//! is the command's. Who looks on is a [`Watch`]: a terminal, a notebook, or nobody ([`Silent`]). This crate prints
//! nothing and knows no command line; what a user made wrong comes as an [`Error`].
#![forbid(unsafe_code)]

mod clock;
mod describe;
mod error;
mod host;
pub mod page;
mod program;
mod study;
mod watch;
mod words;

pub use clock::Stopwatch;
pub use describe::{figure, known_schemes, summaries, tables};
pub use error::{Error, kept};
pub use host::{Host, One, Simulator};
pub use program::program;
pub use study::{Finished, Study};
pub use watch::{Board, Line, Silent, Watch};
pub use words::{count, first_of};
