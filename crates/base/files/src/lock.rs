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
const HOLDER_PREFIX: &str = "process ";

/// Suffix after the host in the text of a lock that the kernel does not hold.
const FILE_ONLY_SUFFIX: &str = " (this file alone)";

/// Number of retries, every 5 ms, for a lock with a holder that has not written its name yet.
const MAX_RETRIES: u32 = 40;

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
        Self::take_with(directory, command, File::try_lock)
    }

    fn take_with(
        directory: &Path,
        command: &str,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Error> {
        let path = directory.join(LOCK);
        let mut retries = MAX_RETRIES;
        loop {
            let Some((mut file, created)) = open(&path).map_err(Error::io("lock", directory))? else { continue };
            // A link or another program's file is not ours to write.
            let metadata = file.metadata().map_err(Error::io("lock", directory))?;
            let previous_text = read_holder(&mut file);
            if !metadata.is_file()
                || metadata.nlink() > 1
                || !(previous_text.is_empty() || previous_text.starts_with(HOLDER_PREFIX))
            {
                return Err(Error::NotOurs { path });
            }
            let (held, by_kernel) = match try_lock(&file) {
                Ok(()) => (is_file_only(&read_holder(&mut file)), true),
                Err(TryLockError::WouldBlock) => (true, true),
                Err(TryLockError::Error(error)) if has_no_locks(&error) => (!created, false),
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", directory)(error)),
            };
            if held {
                let holder = read_holder(&mut file);
                // The holder has not yet written its name.
                if holder.is_empty() && retries > 0 {
                    retries -= 1;
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                let is_file_lock = !by_kernel || is_file_only(&holder);
                if is_file_lock && !is_running_locally(&holder) {
                    return Err(Error::StaleFile { path, holder });
                }
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(Error::Locked { path: directory.to_path_buf(), holder });
            }
            // The holder may have removed the file between our opening and locking it. Then we hold a file without a
            // name.
            if !is_named(&file, &path) {
                continue;
            }
            let stale = Some(read_holder(&mut file)).filter(|holder| !holder.is_empty());
            // Dropped, and so released, if the text cannot be written.
            let mut lock = Self { directory: directory.to_path_buf(), path, file, stale, by_kernel };
            let suffix = if by_kernel { "" } else { FILE_ONLY_SUFFIX };
            let own_text = format!("{HOLDER_PREFIX}{} on {}{suffix}: {command}\n", std::process::id(), host());
            let write = lock.file.rewind().and_then(|()| lock.file.write_all(own_text.as_bytes()));
            write.and_then(|()| lock.file.set_len(own_text.len() as u64)).map_err(Error::io("lock", directory))?;
            return Ok(lock);
        }
    }

    /// Makes sure that the directory of that name is still the one that was taken.
    ///
    /// # Errors
    /// When the directory was moved or replaced, or the file in it was removed.
    pub fn check(&self) -> Result<(), Error> {
        if is_named(&self.file, &self.path) {
            Ok(())
        } else {
            Err(Error::DirectoryLost { path: self.directory.clone() })
        }
    }

    /// Returns whether the kernel enforces the lock. If not, only the file does, and it stays after a kill.
    pub fn is_kernel_lock(&self) -> bool {
        self.by_kernel
    }

    /// Returns notes for the user, one per line: the former holder, and whether the kernel holds the lock. The
    /// directory is called `shown`.
    pub fn notes(&self, shown: &Path) -> Vec<String> {
        let file_only_note = || {
            format!(
                "`{}` is on a file system without locks: the file `{}` keeps other writers out, and stays if this process is \
                 killed; remove it then",
                shown.display(),
                shown.join(LOCK).display()
            )
        };
        let stale = self.stale.as_deref().map(|holder| taken_over(shown, holder));
        stale.into_iter().chain((!self.by_kernel).then(file_only_note)).collect()
    }

    /// The former holder, if it died without releasing the lock.
    pub fn stale(&self) -> Option<&str> {
        self.stale.as_deref()
    }
}

/// Returns the message for a directory left by a holder that died.
pub fn taken_over(directory: &Path, holder: &str) -> String {
    format!("`{}` was held by {holder}, which has ended: taken over", directory.display())
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

/// Opens the lock file. Returns it and whether this call created it; none if its holder has just removed it.
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
fn read_holder(file: &mut File) -> String {
    let mut text = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(400).read_to_end(&mut text));
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}

fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "this machine".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the process and the host in the text of a lock.
fn parse_holder(holder: &str) -> Option<(&str, &str)> {
    let (pid, rest) = holder.strip_prefix(HOLDER_PREFIX)?.split_once(" on ")?;
    Some((pid, rest.split_once(": ")?.0))
}

/// Returns whether a lock's text states that the kernel does not hold it.
fn is_file_only(holder: &str) -> bool {
    parse_holder(holder).is_some_and(|(_, host)| host.ends_with(FILE_ONLY_SUFFIX))
}

/// Returns whether the process named in a lock is alive on this machine.
fn is_running_locally(holder: &str) -> bool {
    parse_holder(holder).is_some_and(|(pid, holder_host)| {
        holder_host.strip_suffix(FILE_ONLY_SUFFIX).unwrap_or(holder_host) == host()
            && pid.bytes().all(|byte| byte.is_ascii_digit())
            && Path::new("/proc").join(pid).exists()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::ScratchDir;

    #[test]
    fn second_lock_names_the_holder() {
        let scratch = ScratchDir::new("lock");
        let lock = Lock::take(scratch.path(), "narrows run a.toml").unwrap();
        assert_eq!(lock.stale(), None);
        let error = Lock::take(scratch.path(), "narrows run b.toml").unwrap_err().to_string();
        let in_use = format!("is in use by process {} on {}: narrows run a.toml", std::process::id(), host());
        assert!(error.ends_with(&in_use), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        assert!(Lock::take(scratch.path(), "narrows run b.toml").unwrap().stale().is_none());
    }

    #[test]
    fn stale_lock_is_taken_over_and_reported() {
        let scratch = ScratchDir::new("stale");
        fs::write(scratch.path().join(LOCK), "process 1 on elsewhere: narrows demo\nmore").unwrap();
        let lock = Lock::take(scratch.path(), "x").unwrap();
        assert_eq!(lock.stale(), Some("process 1 on elsewhere: narrows demo"));
    }

    #[test]
    fn foreign_lock_files_are_not_changed() {
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
    fn moved_or_replaced_directory_is_detected() {
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
    fn without_kernel_locks_file_creation_is_the_lock() {
        let scratch = ScratchDir::new("no-locks");
        let lock = Lock::take_with(scratch.path(), "narrows run", unsupported).unwrap();
        assert!(!lock.is_kernel_lock() && lock.stale().is_none());
        // A second one, with locks of the kernel or without, reports the first, which is alive.
        for second in [Lock::take_with(scratch.path(), "x", unsupported), Lock::take(scratch.path(), "x")] {
            let message = second.unwrap_err().to_string();
            assert!(message.contains(&format!("is in use by process {} on ", std::process::id())), "{message}");
        }
        drop(lock);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        // One that is dead, or of another machine, is not taken over.
        for dead in [format!("process 4194305 on {}", host()), "process 1 on elsewhere".to_owned()] {
            fs::write(scratch.path().join(LOCK), format!("{dead}{FILE_ONLY_SUFFIX}: narrows demo\n")).unwrap();
            for second in [Lock::take_with(scratch.path(), "x", unsupported), Lock::take(scratch.path(), "x")] {
                let message = second.unwrap_err().to_string();
                assert!(message.contains(&dead) && message.contains("remove that file if it has ended"), "{message}");
            }
        }
        // Any other failure is an error.
        let io_error = |_: &File| Err(TryLockError::Error(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32)));
        fs::remove_file(scratch.path().join(LOCK)).unwrap();
        let message = Lock::take_with(scratch.path(), "x", io_error).unwrap_err().to_string();
        assert!(message.starts_with("cannot lock `"), "{message}");
    }

    #[test]
    fn lock_holder_is_looked_up_by_pid() {
        let (me, host) = (std::process::id(), host());
        assert!(is_running_locally(&format!("process {me} on {host}: x")));
        assert!(is_running_locally(&format!("process {me} on {host}{FILE_ONLY_SUFFIX}: x")));
        assert!(!is_running_locally(&format!("process 4194305 on {host}: x")));
        assert!(
            !is_running_locally("process 1 on elsewhere: x") && !is_running_locally("") && !is_running_locally("half")
        );
    }
}
