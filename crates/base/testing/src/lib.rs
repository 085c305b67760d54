//! Shared by the tests of all crates, and used by nothing else: skips that `make test` counts, and waits with
//! timeouts.
//!
//! A hanging test reports nothing. So each wait of a test has a deadline, and a message that names the awaited event:
//!
//! - [`eventually`] polls a condition, [`block_on`] runs a future, [`join_thread`] joins a thread.
//! - [`Process`] is a child process. Its methods wait within a deadline, and dropped it is killed.
//! - [`Bounded`] adds the same to [`std::process::Command`].

#![forbid(unsafe_code)]

mod process;
mod skips;
mod waits;

pub use process::{Bounded, COMMAND, Process};
pub use skips::{skipped, skipped_here, skipped_without};
pub use waits::{DEFAULT_TIMEOUT, block_on, eventually, join_thread};
