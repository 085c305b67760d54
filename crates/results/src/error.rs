//! What can go wrong, with the file and the key.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why results cannot be made, written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The caller's description does not fit the run.
    #[error("the description of the run does not fit it: {what}")]
    Mismatch {
        /// What does not fit.
        what: String,
    },
    /// The system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried: `create`, `write`, ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that cannot be used, or a directory that another process holds.
    #[error(transparent)]
    File(#[from] files::Error),
    /// The target is no directory.
    #[error("will not replace `{}`: it is not a directory; choose another name with --out", path.display())]
    NoDirectory {
        /// The target.
        path: PathBuf,
    },
    /// The target holds files that Narrows did not write.
    #[error(
        "`{}` holds {} that Narrows did not write, and replacing results would lose: {}; move what you want to keep, or \
         choose another directory with --out", path.display(), counted(*count), listed(named, *count)
    )]
    Occupied {
        /// The target.
        path: PathBuf,
        /// The first of them.
        named: Vec<PathBuf>,
        /// How many there are.
        count: usize,
    },
    /// A writer ended while its set was taking another one's place, and this process may not finish that.
    #[error("`{}` is between old and new results: {reason}", path.display())]
    Unsettled {
        /// The directory.
        path: PathBuf,
        /// Why it stays so.
        reason: String,
    },
    /// A directory without results.
    #[error("`{}` is not a directory of Narrows results: {reason}", path.display())]
    NotResults {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A JSON file is wrong.
    #[error("`{}`, key `{key}`: {reason}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The key, with dots; `.` is the whole file.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A file was edited or cut off after it was written.
    #[error("`{}` is not as it was written: its SHA-256 is not the one in {known}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// Where the hash is that the file had.
        known: &'static str,
    },
    /// A file is of another version.
    #[error("`{}` has schema {found}; this version reads schema {known}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that can be read.
        known: u64,
    },
    /// A Parquet file cannot be written or read.
    #[error("`{}`: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A column of a Parquet file is wrong.
    #[error("`{}`, column `{column}`: {reason}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// A window of time in which there is nothing to see.
    #[error(
        "the window of time from {from_ms} ms to {to_ms} ms is empty: the runs `{run}` have {ended_ms} ms in common"
    )]
    EmptyWindow {
        /// The run.
        run: String,
        /// Its beginning in milliseconds.
        from_ms: f64,
        /// Its end in milliseconds.
        to_ms: f64,
        /// When the first of the two runs ended, in milliseconds.
        ended_ms: f64,
    },
    /// Runs whose flows and ports were not sampled, at least not in that time.
    #[error(
        "of the runs `{run}` no flow and no port was sampled between {from_ms} ms and {to_ms} ms; `[series]` in the \
         scenario chooses what is"
    )]
    NotSampled {
        /// The run.
        run: String,
        /// The window's beginning in milliseconds.
        from_ms: f64,
        /// Its end in milliseconds.
        to_ms: f64,
    },
}

/// How many files [`Error::Occupied`] names at most.
const NAMED: usize = 5;

fn counted(count: usize) -> String {
    if count == 1 { "a file".to_owned() } else { format!("{count} files or folders") }
}

fn listed(paths: &[PathBuf], count: usize) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    names.join(", ") + if count > paths.len() { ", ..." } else { "" }
}

impl Error {
    pub(crate) fn occupied(target: &Path, theirs: Vec<PathBuf>) -> Self {
        let count = theirs.len();
        let inside = |path: PathBuf| path.strip_prefix(target).map(Path::to_path_buf).unwrap_or(path);
        Self::Occupied {
            path: target.to_path_buf(),
            named: theirs.into_iter().take(NAMED).map(inside).collect(),
            count,
        }
    }

    pub(crate) fn not_json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self::Json { path, key: ".".into(), reason: format!("not JSON: {error}") }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
