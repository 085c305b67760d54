//! Why a study ends without its results.

use thiserror::Error;

use crate::words::{count, first_of};

/// Why a study ends without its results.
#[derive(Debug, Error)]
pub enum Error {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// Results cannot be read or written.
    #[error(transparent)]
    Results(#[from] results::Error),
    /// What was asked for cannot be done.
    #[error("{what}{}", helped(help))]
    Asked {
        /// What is wrong.
        what: String,
        /// What would be accepted, or what to do; may be empty.
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
    /// A run found that it is wrong while it checked itself.
    #[error(transparent)]
    Broken(#[from] engine::Broken),
    /// Runs that failed by themselves. The others are finished.
    #[error("{}", failed(runs))]
    Failed {
        /// Their names, and why.
        runs: Vec<(String, String)>,
    },
    /// A set that is put together from others lacks runs.
    #[error("{} missing: {}", count(runs.len(), "run"), first_of(runs, ", "))]
    Missing {
        /// Their names.
        runs: Vec<String>,
    },
    /// What the host says.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// Whoever looks on ended it.
    #[error("interrupted")]
    Interrupted,
    /// Some runs were not finished, the others are kept.
    #[error("{cause}; {}", kept(*finished, *of))]
    Stopped {
        /// Why.
        cause: Box<Error>,
        /// How many runs are finished.
        finished: usize,
        /// How many there are.
        of: usize,
    },
}

impl Error {
    /// Something that cannot be done, and what to do.
    pub fn asked(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Asked { what: what.into(), help: help.into() }
    }

    /// A name that is not among those that there are, with the one that was perhaps meant.
    pub fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let help = scenario::nearest(name, known).map_or(String::new(), |near| format!("did you mean `{near}`?"));
        let there_are =
            if known.is_empty() { "there is none".into() } else { format!("there are {}", known.join(", ")) };
        Self::asked(format!("{what}; {there_are}"), help)
    }

    /// What the host says.
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Host(error.into())
    }
}

fn failed(runs: &[(String, String)]) -> String {
    let said: Vec<String> = runs.iter().map(|(run, why)| format!("`{run}`: {why}")).collect();
    match &said[..] {
        [alone] => format!("the run {alone}"),
        all => format!("{} failed\n{}", count(all.len(), "run"), first_of(all, "\n")),
    }
}

/// What is said of the runs that were finished before the others ended.
pub fn kept(finished: usize, of: usize) -> String {
    format!("{finished} of {of} runs were finished and are kept; the same command goes on from there")
}

fn helped(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!("\nhelp: {help}") }
}
