//! Errors of this crate, with the file and the key.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use units::Span;

/// Reason why results cannot be made, written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The caller's description does not fit the run.
    #[error("the description of the run does not fit it: {reason}")]
    Mismatch {
        /// The mismatch.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The failed operation: `create`, `write`, ...
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
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
    /// The target is inside other results.
    #[error(
        "will not write `{}`: it lies in the results directory `{}`, and would mix with its files; choose a directory \
         outside of it with --out", path.display(), around.display()
    )]
    Inside {
        /// The target.
        path: PathBuf,
        /// The directory that contains it.
        around: PathBuf,
    },
    /// The target holds files that Narrows did not write.
    #[error(
        "`{}` holds {} that Narrows did not write there, and replacing results would lose: {}; move what you want to keep, or \
         choose another directory with --out", path.display(), counted(*count), listed(named, *count)
    )]
    Occupied {
        /// The target.
        path: PathBuf,
        /// The first of them, as displayed.
        named: Vec<String>,
        /// The number of all of them.
        count: usize,
    },
    /// Files with the names of our files, without a manifest or plan that states their owner.
    #[error(
        "`{}` {defect}, so Narrows cannot determine whether {} its own: {}; move these files out of `{}` and give the command that made \
         the results again: finished runs that have their own manifests are kept (--force runs all again)",
        file.display(), are(*count), listed(named, *count), path.display()
    )]
    Unmarked {
        /// The directory.
        path: PathBuf,
        /// The manifest or the plan.
        file: PathBuf,
        /// The defect: `is missing`, ...
        defect: &'static str,
        /// The first of the files, as displayed.
        named: Vec<String>,
        /// The number of all files.
        count: usize,
    },
    /// A report that Narrows did not write, or that was changed since.
    #[error(
        "will not replace `{}`: {reason}\nhelp: move that file out of the results directory, and give the command again",
        path.display()
    )]
    Edited {
        /// The report.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A writer ended while its set was taking another one's place, and this process may not finish that.
    #[error("`{}` is between old and new results: {reason}", path.display())]
    Unsettled {
        /// The directory.
        path: PathBuf,
        /// The reason why it stays so.
        reason: String,
    },
    /// A directory without results.
    #[error("`{}` is not a directory of Narrows results: {reason}", path.display())]
    NotResults {
        /// The directory.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// A file is not JSON.
    #[error("`{}` is not JSON: {reason}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The error and its location.
        reason: String,
    },
    /// A JSON file is wrong.
    #[error("`{}`, key `{key}`: {reason}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The key, with dots; `.` is the whole file.
        key: String,
        /// The error.
        reason: String,
    },
    /// A file differs from the file that Narrows wrote.
    #[error("{0}")]
    Differs(Differing),
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
        /// The error.
        reason: String,
    },
    /// A column of a Parquet file is wrong.
    #[error("`{}`, column `{column}`: {reason}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The error.
        reason: String,
    },
    /// An empty window of time.
    #[error("the window of time from {from} to {to} is empty: the runs `{run}` have {ended} in common")]
    EmptyWindow {
        /// The run.
        run: String,
        /// Its beginning.
        from: Span,
        /// Its end.
        to: Span,
        /// End of the shorter of the two runs.
        ended: Span,
    },
    /// Runs without samples of flows and ports, at least in the given time.
    #[error(
        "of the runs `{run}` no flow and no port was sampled between {from} and {to}; `[monitor]` in the \
         scenario chooses what is"
    )]
    NotSampled {
        /// The run.
        run: String,
        /// The window's beginning.
        from: Span,
        /// Its end.
        to: Span,
    },
}

/// A file of results that differs from the file that Narrows wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Differing {
    /// The file.
    pub path: PathBuf,
    /// The difference.
    pub how: Difference,
}

/// A difference between a file of results and the file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The file is missing.
    Missing,
    /// The file was edited or truncated.
    Changed {
        /// The place of the recorded hash.
        known: &'static str,
    },
    /// The file belongs to another run.
    OtherRun {
        /// The run that it belongs to, as displayed.
        found: String,
        /// The run that belongs there.
        expected: String,
    },
    /// A grid's manifest has an empty list.
    NoRuns,
    /// A manifest has no hash of itself or of the files next to it.
    Unchecked,
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.path.display())?;
        match &self.how {
            Difference::Missing => f.write_str("is missing"),
            Difference::Changed { known } => {
                write!(f, "is not as it was written: its SHA-256 is not the one in {known}")
            }
            Difference::OtherRun { found, expected } => {
                write!(f, "is of the run {found}, and the run `{expected}` belongs there")
            }
            Difference::NoRuns => f.write_str("lists no runs, and a grid has two or more"),
            Difference::Unchecked => f.write_str("lacks hashes, so the run's files cannot be checked"),
        }
    }
}

/// The maximum number of files that an error names.
const NAMED: usize = 5;

fn counted(count: usize) -> String {
    if count == 1 { "a file".to_owned() } else { format!("{count} files or folders") }
}

fn are(count: usize) -> String {
    format!("{} there {}", counted(count), if count == 1 { "is" } else { "are" })
}

fn listed(named: &[String], count: usize) -> String {
    named.join(", ") + if count > named.len() { ", ..." } else { "" }
}

/// The first of a directory's files, as errors show them.
fn shown(directory: &Path, files: &[PathBuf]) -> Vec<String> {
    let shown = |path: &PathBuf| {
        let name = path.strip_prefix(directory).unwrap_or(path).display();
        let left = if files::is_leftover(path) { " (left by a stopped command; you may delete it)" } else { "" };
        format!("`{name}`{left}")
    };
    files.iter().take(NAMED).map(shown).collect()
}

impl Error {
    pub(crate) fn occupied(target: &Path, theirs: &[PathBuf]) -> Self {
        Self::Occupied { path: target.to_path_buf(), named: shown(target, theirs), count: theirs.len() }
    }

    pub(crate) fn unmarked(target: &Path, file: &Path, defect: &'static str, files: &[PathBuf]) -> Self {
        let (path, file) = (target.to_path_buf(), file.to_path_buf());
        Self::Unmarked { path, file, defect, named: shown(target, files), count: files.len() }
    }

    pub(crate) fn differs(path: &Path, how: Difference) -> Self {
        Self::Differs(Differing { path: path.to_path_buf(), how })
    }

    pub(crate) fn not_json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self::NotJson { path, reason: error.to_string() }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
