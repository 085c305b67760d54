//! Ownership of a set of namespaces by a process, and detection of its end: a lock on a file that the kernel releases
//! when the process ends, for any reason. A process number alone would not do, because it is reused.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::Error;

const DIRECTORY: &str = "/run/narrows";
const PREFIX: &str = "narrows-";

/// The right to the namespaces named for this process. Given back when dropped.
#[derive(Debug)]
pub(super) struct NamespaceLock {
    path: PathBuf,
    _locked: File,
}

impl NamespaceLock {
    pub(super) fn take() -> Result<Self, Error> {
        let path = path_of(std::process::id());
        let failed = || Error::system(format!("lock {}", path.display()));
        fs::create_dir_all(DIRECTORY).map_err(failed())?;
        // Another process that looks for stale sets may hold the lock for a moment, and may remove the file.
        for _ in 0..50 {
            let file = open_or_create(&path).map_err(failed())?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, _locked: file }),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(2)),
                Err(TryLockError::Error(error)) => return Err(failed()(error)),
            }
        }
        Err(Error::Busy)
    }
}

impl Drop for NamespaceLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Releases this process's claim, if it has one. A failure does no harm, as in [`NamespaceLock::drop`]: the lock ends with the
/// process, and the next search removes the file.
pub(super) fn give_up() {
    let _ = fs::remove_file(path_of(std::process::id()));
}

/// Runs `clean` if the process of that number is no more, holding its claim meanwhile.
/// Returns whether it was run.
pub(super) fn if_dead(process: u32, clean: impl FnOnce() -> Result<(), Error>) -> Result<bool, Error> {
    let path = path_of(process);
    let Ok(file) = open(&path) else {
        // No claim was ever made, or it has been given back: then only a living process of that number matters.
        if Path::new("/proc").join(process.to_string()).exists() {
            return Ok(false);
        }
        return clean().map(|()| true);
    };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    clean()?;
    let _ = fs::remove_file(&path);
    Ok(true)
}

/// The processes that ever claimed and have not given back.
pub(super) fn owners() -> Vec<u32> {
    let Ok(entries) = fs::read_dir(DIRECTORY) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".lock")?.parse().ok()).collect()
}

/// The name of a host's namespace. Characters that a file name cannot have become hyphens.
pub(super) fn namespace_name(process: u32, host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    format!("{PREFIX}{process}-{}", host.chars().map(plain).collect::<String>())
}

/// Returns the owning process in a namespace's name.
pub(super) fn process_of(namespace: &str) -> Option<u32> {
    namespace.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn path_of(process: u32) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{process}.lock"))
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Opens a file, and makes it if there is none.
fn open_or_create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Returns whether a file is still the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(current)) => (held.dev(), held.ino()) == (current.dev(), current.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_names_contain_the_process() {
        let name = namespace_name(4242, "dc0.host/1 a");
        assert_eq!(name, "narrows-4242-dc0.host-1-a");
        assert_eq!(process_of(&name), Some(4242));
    }

    #[test]
    fn other_names_have_no_process() {
        for name in ["", "narrows-", "narrows-x-h", "narrows-12", "blue", "narrows--1-h"] {
            assert_eq!(process_of(name), None, "{name}");
        }
    }
}
