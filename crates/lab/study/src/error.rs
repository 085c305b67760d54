//! Errors that end a study without its results.

use thiserror::Error;

use crate::text::{count, first_of};

/// Error that ends a study without its results.
#[derive(Debug, Error)]
pub enum Error {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// Results cannot be read or written.
    #[error(transparent)]
    Results(#[from] results::Error),
    /// The request cannot be carried out.
    #[error("{what}{}", helped(help))]
    InvalidRequest {
        /// Description of the problem.
        what: String,
        /// Accepted values, or the next step; may be empty.
        help: String,
    },
    /// Finished runs in the directory would be lost.
    #[error("{what}{}", helped(help))]
    WouldLose {
        /// Runs, and the settings in which they differ.
        what: String,
        /// Ways to keep or to replace them.
        help: String,
    },
    /// The self-check of a run failed.
    #[error(transparent)]
    Broken(#[from] engine::InternalError),
    /// Runs that failed by themselves. The others are finished.
    #[error("{}", failed(runs))]
    Failed {
        /// Names and errors of the runs.
        runs: Vec<(String, String)>,
    },
    /// A set that is merged from others lacks runs.
    #[error("{} missing: {}", count(runs.len(), "run"), first_of(runs, ", "))]
    Missing {
        /// Their names.
        runs: Vec<String>,
    },
    /// Error of the backend.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// Interrupted by the observer.
    #[error("interrupted")]
    Interrupted,
    /// Runs were left unfinished; the others are kept.
    #[error("{cause}; {}", kept(*finished, *of))]
    Stopped {
        /// The error that stopped the study.
        cause: Box<Error>,
        /// Number of finished runs.
        finished: usize,
        /// Number of all runs.
        of: usize,
    },
}

impl Error {
    /// Returns an error for a request that cannot be carried out, with the next step.
    pub fn invalid_request(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::InvalidRequest { what: what.into(), help: help.into() }
    }

    /// Returns an error for an unknown name, with the known names and the one that was probably meant.
    pub fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let help = scenario::nearest(name, known).map_or(String::new(), |near| format!("did you mean `{near}`?"));
        let known_list =
            if known.is_empty() { "there is none".into() } else { format!("there are {}", known.join(", ")) };
        Self::invalid_request(format!("{what}; {known_list}"), help)
    }

    /// Returns an error of the backend.
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Host(error.into())
    }
}

fn failed(runs: &[(String, String)]) -> String {
    let messages: Vec<String> = runs.iter().map(|(run, reason)| format!("`{run}`: {reason}")).collect();
    match &messages[..] {
        [alone] => format!("the run {alone}"),
        all => format!("{} failed\n{}", count(all.len(), "run"), first_of(all, "\n")),
    }
}

/// Returns the message about runs that were finished before the study stopped.
pub fn kept(finished: usize, of: usize) -> String {
    format!("{finished} of {of} runs were finished and are kept; the same command goes on from there")
}

fn helped(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!("\nhelp: {help}") }
}
