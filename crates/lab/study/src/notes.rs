//! What is noted of a study's runs beside their results.

use std::path::Path;
use std::time::Duration;

/// A run of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned<'a> {
    /// Its id.
    pub run: &'a str,
    /// [`results::store::Manifest::key`].
    pub key: &'a str,
    /// Its scheme.
    pub scheme: &'a str,
    /// Its point as JSON.
    pub point: String,
    /// Its seed.
    pub seed: u64,
}

/// Where it is noted what was tried and what came of it. An error is what the user is told: results are kept all the same.
pub trait Notes: Sync {
    /// The study has taken the directory and has these runs.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn planned(&self, out: &Path, runs: &[Planned<'_>]) -> Result<(), String>;

    /// A run is there since an earlier command.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn kept(&self, run: &str) -> Result<(), String>;

    /// A run begins.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn begun(&self, run: &str) -> Result<(), String>;

    /// A run ended after so long, with an error or without.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn ended(&self, run: &str, wall: Duration, error: Option<&str>) -> Result<(), String>;

    /// A run was cut off.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn cut(&self, run: &str) -> Result<(), String>;

    /// The study ends. Notes that wait are written.
    ///
    /// # Errors
    /// When they cannot be.
    fn end(&self) -> Result<(), String>;

    /// The directory has no results, or those of one run: what was noted of others goes.
    fn forget(&self, out: &Path);
}

/// Nothing is noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoNotes;

impl Notes for NoNotes {
    fn planned(&self, _: &Path, _: &[Planned<'_>]) -> Result<(), String> {
        Ok(())
    }

    fn kept(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn begun(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn ended(&self, _: &str, _: Duration, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn cut(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        Ok(())
    }

    fn forget(&self, _: &Path) {}
}
