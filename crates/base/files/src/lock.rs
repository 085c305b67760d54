//! One writer a directory.
//!
//! The lock is the kernel's (`flock`), on a file in the directory. The kernel releases it when its holder ends, however
//! that happens. The file's text is for people: it names the process that holds the directory, or that held it and died.
//!
//! On a file system without locks (`ENOLCK`, `ENOTSUP`, `ENOSYS`), creating the file takes the directory. Such a file stays
//! when its holder is killed, and no process takes it over: two processes that tried at once could both succeed. It has to
//! be removed by hand. The file's text states this, and a machine on which the same file system has locks respects it, too.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// The name of the file in the directory.
pub const LOCK: &str = ".narrows.lock";

/// Prefix of every lock.
const SAID: &str = "process ";

/// Suffix after the host in the text of a lock that the kernel does not hold.
const FILE_ALONE: &str = " (this file alone)";

/// Number of retries, every 5 ms, for a lock with a holder that has not written its name yet.
const TRIES: u32 = 40;

/// A directory locked for writing by this process; released when dropped.
#[derive(Debug)]
pub struct Lock {
    directory: PathBuf,
    path: PathBuf,
    file: File,
    stale: Option<String>,
    by_kernel: bool,
}

impl Lock {
    /// Takes a directory, which must exist. `command` is the command line that is shown to other processes.
    ///
    /// # Errors
    /// When another process holds the directory, when its lock is not one of ours, or when the file cannot be made.
    pub fn take(directory: &Path, command: &str) -> Result<Self, Error> {
        Self::take_by(directory, command, File::try_lock)
    }

    fn take_by(
        directory: &Path,
        command: &str,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Error> {
        let path = directory.join(LOCK);
        let mut tries = TRIES;
        loop {
            let Some((mut file, made)) = open(&path).map_err(Error::io("lock", directory))? else { continue };
            // A link or another program's file is not ours to write.
            let metadata = file.metadata().map_err(Error::io("lock", directory))?;
            let said_before = said(&mut file);
            if !metadata.is_file() || metadata.nlink() > 1 || !(said_before.is_empty() || said_before.starts_with(SAID))
            {
                return Err(Error::NotOurs { path });
            }
            let (held, by_kernel) = match try_lock(&file) {
                Ok(()) => (is_file_alone(&said(&mut file)), true),
                Err(TryLockError::WouldBlock) => (true, true),
                Err(TryLockError::Error(error)) if has_no_locks(&error) => (!made, false),
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", directory)(error)),
            };
            if held {
                let holder = said(&mut file);
                // The holder has not yet written its name.
                if holder.is_empty() && tries > 0 {
                    tries -= 1;
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                let by_file = !by_kernel || is_file_alone(&holder);
                if by_file && !is_alive_here(&holder) {
                    return Err(Error::Left { path, holder });
                }
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(Error::Held { path: directory.to_path_buf(), holder });
            }
            // The holder may have removed the file between our opening and locking it. Then we hold a file without a
            // name.
            if !is_named(&file, &path) {
                continue;
            }
            let stale = Some(said(&mut file)).filter(|said| !said.is_empty());
            // Given back if it cannot be written.
            let mut lock = Self { directory: directory.to_path_buf(), path, file, stale, by_kernel };
            let alone = if by_kernel { "" } else { FILE_ALONE };
            let me = format!("{SAID}{} on {}{alone}: {command}\n", std::process::id(), host());
            let write = lock.file.rewind().and_then(|()| lock.file.write_all(me.as_bytes()));
            write.and_then(|()| lock.file.set_len(me.len() as u64)).map_err(Error::io("lock", directory))?;
            return Ok(lock);
        }
    }

    /// Makes sure that the directory of that name is still the one that was taken.
    ///
    /// # Errors
    /// When the directory was moved or replaced, or the file in it was removed.
    pub fn check(&self) -> Result<(), Error> {
        if is_named(&self.file, &self.path) { Ok(()) } else { Err(Error::Lost { path: self.directory.clone() }) }
    }

    /// Returns whether the kernel enforces the lock. If not, only the file does, and it stays after a kill.
    pub fn is_by_kernel(&self) -> bool {
        self.by_kernel
    }

    /// Returns notes for the user, one per line: the former holder, and whether the kernel holds the lock. The
    /// directory is called `shown`.
    pub fn notes(&self, shown: &Path) -> Vec<String> {
        let unheld = || {
            format!(
                "`{}` is on a file system without locks: the file `{}` keeps other writers out, and stays if this process is \
                 killed; remove it then",
                shown.display(),
                shown.join(LOCK).display()
            )
        };
        let stale = self.stale.as_deref().map(|dead| taken_over(shown, dead));
        stale.into_iter().chain((!self.by_kernel).then(unheld)).collect()
    }

    /// The process that held the directory and died before it gave it back, if one did.
    pub fn stale(&self) -> Option<&str> {
        self.stale.as_deref()
    }
}

/// The message for a directory that was taken over from a holder that died.
pub fn taken_over(directory: &Path, dead: &str) -> String {
    format!("`{}` was held by {dead}, which has ended: taken over", directory.display())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while the lock is held: a process that opened the file meanwhile finds that the name is gone, and tries
        // again. If the directory was moved, the file of this name belongs to another process.
        if is_named(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// The lock's file, and whether this call made it. Nothing if its holder removed it meanwhile.
fn open(path: &Path) -> io::Result<Option<(File, bool)>> {
    let mut options = File::options();
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    options.read(true).write(true).custom_flags(flags.bits());
    match options.clone().create_new(true).open(path) {
        Ok(file) => return Ok(Some((file, true))),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => Ok(Some((file?, false))),
    }
}

/// Returns whether the error means that the file system has no locks.
fn has_no_locks(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(nix::errno::Errno::ENOLCK as i32)
}

/// Returns whether `file` is the file at `path`.
fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    held.ino() == named.ino() && held.dev() == named.dev()
}

/// The first line of the file, at most 400 bytes; empty if it cannot be read.
fn said(file: &mut File) -> String {
    let mut text = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(400).read_to_end(&mut text));
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}

fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "this machine".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the process and the host in the text of a lock.
fn parts(said: &str) -> Option<(&str, &str)> {
    let (pid, rest) = said.strip_prefix(SAID)?.split_once(" on ")?;
    Some((pid, rest.split_once(": ")?.0))
}

/// Returns whether a lock's text states that the kernel does not hold it.
fn is_file_alone(said: &str) -> bool {
    parts(said).is_some_and(|(_, host)| host.ends_with(FILE_ALONE))
}

/// Returns whether the process named in a lock is alive on this machine.
fn is_alive_here(said: &str) -> bool {
    parts(said).is_some_and(|(pid, on)| {
        on.strip_suffix(FILE_ALONE).unwrap_or(on) == host()
            && pid.bytes().all(|byte| byte.is_ascii_digit())
            && Path::new("/proc").join(pid).exists()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::ScratchDir;

    #[test]
    fn there_is_one_holder_and_the_next_is_told() {
        let scratch = ScratchDir::new("lock");
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
        let scratch = ScratchDir::new("stale");
        fs::write(scratch.path().join(LOCK), "process 1 on elsewhere: narrows demo\nmore").unwrap();
        let lock = Lock::take(scratch.path(), "x").unwrap();
        assert_eq!(lock.stale(), Some("process 1 on elsewhere: narrows demo"));
    }

    #[test]
    fn what_is_not_a_lock_of_ours_is_left_alone() {
        let scratch = ScratchDir::new("lock-theirs");
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
    fn a_directory_that_was_moved_or_replaced_is_noticed() {
        let scratch = ScratchDir::new("moved");
        let (here, there) = (scratch.path().join("here"), scratch.path().join("there"));
        fs::create_dir(&here).unwrap();
        let lock = Lock::take(&here, "x").unwrap();
        lock.check().unwrap();
        fs::rename(&here, &there).unwrap();
        let lost = || lock.check().unwrap_err().to_string();
        assert!(lost().contains("here` was moved or replaced"), "{}", lost());
        // Another process's directory, locked by that process, too.
        fs::create_dir(&here).unwrap();
        let theirs = Lock::take(&here, "y").unwrap();
        lost();
        drop(lock);
        theirs.check().unwrap();
        assert!(there.join(LOCK).exists() && here.join(LOCK).exists());
        fs::remove_file(here.join(LOCK)).unwrap();
        assert!(theirs.check().is_err());
    }

    /// Returns the error of `flock` on file systems without locks.
    fn unsupported(_: &File) -> Result<(), TryLockError> {
        Err(TryLockError::Error(io::Error::from_raw_os_error(nix::errno::Errno::ENOLCK as i32)))
    }

    #[test]
    fn without_locks_of_the_kernel_making_the_file_is_taking_the_directory() {
        let scratch = ScratchDir::new("no-locks");
        let lock = Lock::take_by(scratch.path(), "narrows run", unsupported).unwrap();
        assert!(!lock.is_by_kernel() && lock.stale().is_none());
        // A second one, with locks of the kernel or without, reports the first, which is alive.
        for second in [Lock::take_by(scratch.path(), "x", unsupported), Lock::take(scratch.path(), "x")] {
            let said = second.unwrap_err().to_string();
            assert!(said.contains(&format!("is in use by process {} on ", std::process::id())), "{said}");
        }
        drop(lock);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        // One that is dead, or of another machine, is not taken over.
        for dead in [format!("process 4194305 on {}", host()), "process 1 on elsewhere".to_owned()] {
            fs::write(scratch.path().join(LOCK), format!("{dead}{FILE_ALONE}: narrows demo\n")).unwrap();
            for second in [Lock::take_by(scratch.path(), "x", unsupported), Lock::take(scratch.path(), "x")] {
                let said = second.unwrap_err().to_string();
                assert!(said.contains(&dead) && said.contains("remove that file if it has ended"), "{said}");
            }
        }
        // Any other failure is an error.
        let io_error = |_: &File| Err(TryLockError::Error(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32)));
        fs::remove_file(scratch.path().join(LOCK)).unwrap();
        let said = Lock::take_by(scratch.path(), "x", io_error).unwrap_err().to_string();
        assert!(said.starts_with("cannot lock `"), "{said}");
    }

    #[test]
    fn the_process_of_a_lock_is_looked_for() {
        let (me, host) = (std::process::id(), host());
        assert!(is_alive_here(&format!("process {me} on {host}: x")));
        assert!(is_alive_here(&format!("process {me} on {host}{FILE_ALONE}: x")));
        assert!(!is_alive_here(&format!("process 4194305 on {host}: x")));
        assert!(!is_alive_here("process 1 on elsewhere: x") && !is_alive_here("") && !is_alive_here("half"));
    }
}
