//! One writer a directory.
//!
//! The lock is the kernel's, on a file in the directory: it goes when its holder does, however that ends. What the file
//! says is for people: who holds it, or who held it when it died.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// The name of the file in the directory.
pub const LOCK: &str = ".narrows.lock";

/// What every lock begins with.
const SAID: &str = "process ";

/// How many times to look again at a lock whose holder has not yet written who it is.
const TRIES: u32 = 40;

/// A directory that is this process's to write; given back when dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
    stale: Option<String>,
}

impl Lock {
    /// Takes a directory, which must be there. `command` says who does, to others that ask.
    ///
    /// # Errors
    /// When another process holds it, or the file cannot be made.
    pub fn take(directory: &Path, command: &str) -> Result<Self, Error> {
        let path = directory.join(LOCK);
        let mut tries = TRIES;
        loop {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits() | nix::fcntl::OFlag::O_NONBLOCK.bits())
                .open(&path)
                .map_err(Error::io("lock", directory))?;
            // What somebody else put there is not ours to write: a link, another program's file.
            let metadata = file.metadata().map_err(Error::io("lock", directory))?;
            let said_before = said(&mut file);
            if !metadata.is_file() || metadata.nlink() > 1 || !(said_before.is_empty() || said_before.starts_with(SAID))
            {
                return Err(Error::NotOurs { path });
            }
            let held = match file.try_lock() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                // A file system without locks: the file itself has to do.
                Err(TryLockError::Error(_)) => is_alive(&said(&mut file)),
            };
            if held {
                let holder = said(&mut file);
                // It has not yet said who it is.
                if holder.is_empty() && tries > 0 {
                    tries -= 1;
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(Error::Held { path: directory.to_path_buf(), holder });
            }
            // Its holder may have removed the file between opening and locking: then the lock is of nothing.
            if !is_named(&file, &path) {
                continue;
            }
            let stale = Some(said(&mut file)).filter(|said| !said.is_empty());
            // Given back if it cannot be written.
            let mut lock = Self { path, file, stale };
            let me = format!("{SAID}{} on {}: {command}\n", std::process::id(), host());
            let write = lock.file.rewind().and_then(|()| lock.file.write_all(me.as_bytes()));
            write.and_then(|()| lock.file.set_len(me.len() as u64)).map_err(Error::io("lock", directory))?;
            return Ok(lock);
        }
    }

    /// The process that held the directory and died before it gave it back, if one did.
    pub fn stale(&self) -> Option<&str> {
        self.stale.as_deref()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: whoever opened the file meanwhile finds that the name is gone, and tries again.
        // The directory may have been moved: what has the name now may be another's.
        if is_named(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Whether this is the file of that name.
fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    held.ino() == named.ino() && held.dev() == named.dev()
}

/// What the file says, in a line of bounded length.
fn said(file: &mut File) -> String {
    let mut text = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(400).read_to_end(&mut text));
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}

fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "this machine".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Whether the process that a lock speaks of is of this machine and alive; one of another machine is taken for alive.
fn is_alive(said: &str) -> bool {
    let Some((pid, rest)) = said.strip_prefix(SAID).and_then(|rest| rest.split_once(" on ")) else {
        return false;
    };
    let here = rest.split_once(": ").is_some_and(|(name, _)| name == host());
    !here || (pid.bytes().all(|byte| byte.is_ascii_digit()) && Path::new("/proc").join(pid).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Scratch;

    #[test]
    fn there_is_one_holder_and_the_next_is_told() {
        let scratch = Scratch::new("lock");
        let lock = Lock::take(scratch.path(), "narrows run a.toml").unwrap();
        assert_eq!(lock.stale(), None);
        let error = Lock::take(scratch.path(), "narrows run b.toml").unwrap_err().to_string();
        let me = format!("is in use by process {} on {}: narrows run a.toml", std::process::id(), host());
        assert!(error.ends_with(&me), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        assert!(Lock::take(scratch.path(), "narrows run b.toml").unwrap().stale().is_none());
    }

    #[test]
    fn a_dead_holder_is_taken_over_and_named() {
        let scratch = Scratch::new("stale");
        fs::write(scratch.path().join(LOCK), "process 1 on elsewhere: narrows demo\nmore").unwrap();
        let lock = Lock::take(scratch.path(), "x").unwrap();
        assert_eq!(lock.stale(), Some("process 1 on elsewhere: narrows demo"));
    }

    #[test]
    fn what_is_not_a_lock_of_ours_is_left_alone() {
        let scratch = Scratch::new("lock-theirs");
        let (lock, notes) = (scratch.path().join(LOCK), scratch.path().join("notes"));
        let refused = || Lock::take(scratch.path(), "x").unwrap_err().to_string();
        fs::write(&lock, "my notes").unwrap();
        assert!(refused().contains("is not a lock that Narrows made"), "{}", refused());
        assert_eq!(fs::read_to_string(&lock).unwrap(), "my notes");
        fs::remove_file(&lock).unwrap();
        fs::write(&notes, "").unwrap();
        fs::hard_link(&notes, &lock).unwrap();
        assert!(refused().contains("is not a lock that Narrows made"));
        fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink("notes", &lock).unwrap();
        assert!(refused().contains("cannot lock"), "{}", refused());
        assert!(lock.is_symlink() && fs::read_to_string(&notes).unwrap().is_empty());
    }

    #[test]
    fn without_locks_the_process_is_looked_for() {
        assert!(is_alive(&format!("process {} on {}: x", std::process::id(), host())));
        assert!(!is_alive(&format!("process 4194305 on {}: x", host())));
        assert!(is_alive("process 1 on elsewhere: x") && !is_alive("") && !is_alive("half"));
    }
}
