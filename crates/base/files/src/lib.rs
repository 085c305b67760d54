//! Bounded reads of users' files, atomic writes, and one writer a directory.
//!
//! [`read()`] takes regular files of bounded size and nothing else. [`replace`] and [`AtomicFile`] write a file that readers see
//! complete or not at all, and refuse devices that store data. An [`IntegrityTrailer`] distinguishes unedited text from other text.
//! [`Lock`] restricts a directory to one writer. [`process`] runs helper programs within a deadline. This crate does not
//! depend on file formats.
#![forbid(unsafe_code)]

mod integrity_trailer;
mod lock;
mod output;
pub mod process;
mod read;
mod text;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use integrity_trailer::{IntegrityTrailer, hexadecimal, sha256};
pub use lock::{LOCK, Lock, taken_over};
pub use output::check_output;
pub use read::{SizeLimit, head, read, text};
pub use text::{BYTE_ORDER_MARK, utf8};
pub use write::{
    AtomicFile, FileIdentity, create_new, create_private, is_leftover, leftover_message, leftovers, replace,
    sync_directory, writable,
};

/// Reason why a file cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// An I/O operation failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The attempted action: `read`, `write`, ...
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A directory, a pipe or a device, which cannot be read to an end.
    #[error("cannot read `{}`: it is {kind}; expected a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// Its type, with its article.
        kind: &'static str,
    },
    /// Larger than its kind may be.
    #[error("cannot read `{}`: it has {size} bytes; {kind} has at most {limit}", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// Its kind, with its article.
        kind: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
    /// Not UTF-8.
    #[error("cannot read `{}`: {reason}", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
        /// Position of the error, and the probable format of the file.
        reason: String,
    },
    /// A file at the path of the lock.
    #[error("`{}` is not a lock that Narrows made; move it away", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes there.
    #[error("`{}` is in use by {holder}", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process: its number, host and command line.
        holder: String,
    },
    /// A lock that is only a file, of a process that has ended or is on another machine: the kernel cannot determine which.
    #[error("`{}` names {holder} as the writer, and the file system cannot determine whether it still runs; remove that \
             file if it has ended", path.display())]
    StaleFile {
        /// The lock.
        path: PathBuf,
        /// The process: its number, host and command line.
        holder: String,
    },
    /// The locked directory was moved or replaced, or its lock file was removed.
    #[error("`{}` was moved or replaced, or its lock was removed, while this command was at work: nothing more is \
             written there; finished files stay where they are", path.display())]
    DirectoryLost {
        /// The directory.
        path: PathBuf,
    },
}

impl Error {
    /// Returns whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Returns the parent directory of a path; `.` for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod testbed {
    use std::path::{Path, PathBuf};

    /// A directory of a test's own, removed when the test passes.
    pub(crate) struct ScratchDir(PathBuf);

    impl ScratchDir {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("narrows-files-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for ScratchDir {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                let _ = std::fs::remove_dir_all(&self.0);
            }
        }
    }
}
