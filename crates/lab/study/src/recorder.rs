//! Records of a study's runs in addition to their results.

use std::path::Path;
use std::time::Duration;

/// A run of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyRun<'a> {
    /// Its id.
    pub run: &'a str,
    /// [`results::store::Manifest::key`].
    pub key: &'a str,
    /// Its scheme.
    pub scheme: &'a str,
    /// Its grid point as JSON.
    pub point: String,
    /// Its seed.
    pub seed: u64,
}

/// Recorder of attempts and their outcomes. An error is the message for the user: results are kept all the same.
pub trait AttemptRecorder: Sync {
    /// Records that the study owns the directory and has these runs.
    ///
    /// # Errors
    /// If recording fails.
    fn planned(&self, out: &Path, runs: &[StudyRun<'_>]) -> Result<(), String>;

    /// Records that a run's results exist from an earlier command.
    ///
    /// # Errors
    /// If recording fails.
    fn reused(&self, run: &str) -> Result<(), String>;

    /// Records the start of a run.
    ///
    /// # Errors
    /// If recording fails.
    fn started(&self, run: &str) -> Result<(), String>;

    /// Records the end of a run after `wall` of wall time, with or without an error.
    ///
    /// # Errors
    /// If recording fails.
    fn ended(&self, run: &str, wall: Duration, error: Option<&str>) -> Result<(), String>;

    /// Records that a run was interrupted.
    ///
    /// # Errors
    /// If recording fails.
    fn interrupted(&self, run: &str) -> Result<(), String>;

    /// Ends the study. Queued records are written.
    ///
    /// # Errors
    /// If writing fails.
    fn end(&self) -> Result<(), String>;

    /// Deletes the records of other runs: the directory has no results, or those of one run.
    fn clear(&self, out: &Path);
}

/// Recorder that discards all records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NullRecorder;

impl AttemptRecorder for NullRecorder {
    fn planned(&self, _: &Path, _: &[StudyRun<'_>]) -> Result<(), String> {
        Ok(())
    }

    fn reused(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn started(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn ended(&self, _: &str, _: Duration, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn interrupted(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        Ok(())
    }

    fn clear(&self, _: &Path) {}
}
