//! Atomic writes: a reader sees the complete old file or the complete new one, even if the writer is killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::output::Output;
use crate::{Error, parent_of};

/// Replaces a file atomically: writes another one and renames it. Symbolic links are followed. A pipe, a terminal and a
/// device that stores no data, such as `/dev/null`, are written to directly.
///
/// # Errors
/// If the file cannot be written, or is no output, such as a disk. The previous contents then stay.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let written = || {
        let mut draft = AtomicFile::new(path)?;
        draft.write_all(text.as_bytes())?;
        draft.move_into_place(Placement::Replace)
    };
    written().map_err(Error::io("write", path))
}

/// Finds out whether a file could be written, and changes nothing.
///
/// # Errors
/// When it could not.
pub fn writable(path: &Path) -> Result<(), Error> {
    let result = match path.metadata().map(|metadata| Output::new(&metadata)) {
        // Opening a pipe would end the reader's input.
        Ok(Ok(Output::Stream)) => Ok(()),
        Ok(Err(error)) => Err(error),
        Ok(Ok(Output::File)) | Err(_) => AtomicFile::new(path).map(drop),
    };
    result.map_err(Error::io("write", path))
}

/// Creates a file, writes it and waits until it is on the disk.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn create_new(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create_new(path)?);
    let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
    // After an error, writing the rest of the buffer would only fail again.
    let _ = out.into_parts();
    written
}

/// Creates a file that only its owner may read. The file appears atomically and replaces nothing.
///
/// # Errors
/// When a file of that name exists, or it cannot be written.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, partial) = create_partial_with_mode(path, 0o600)?;
    let put = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| rename_no_replace(&partial, path));
    if put.is_err() {
        let _ = fs::remove_file(&partial);
        return put;
    }
    sync_directory(parent_of(path))
}

/// Waits until the names in a directory are on the disk.
///
/// # Errors
/// When the system reports an error.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Identity of a file at a given moment, to detect later changes: device, inode, length, and time of change; none if no
/// file existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity(Option<(u64, u64, u64, i64, i64)>);

impl FileIdentity {
    /// The file of that name now. A link is followed.
    pub fn of(path: &Path) -> Self {
        Self::of_metadata(path.metadata().ok().as_ref())
    }

    fn of_metadata(file: Option<&fs::Metadata>) -> Self {
        Self(file.map(|file| (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())))
    }
}

/// A file under construction. It is written under another name, `NAME.partial-NUMBER`, and moved into place when complete.
/// Dropping it removes it; a kill leaves it next to the file, and [`leftovers`] finds it. A pipe, a terminal and a device
/// that stores no data, such as `/dev/null`, are written to directly.
#[derive(Debug)]
pub struct AtomicFile {
    /// Locked as long as it is written.
    file: File,
    /// The draft's name and the final one; none if the output is not a regular file.
    names: Option<(PathBuf, PathBuf)>,
    /// The file that it may replace.
    replaces: FileIdentity,
}

impl AtomicFile {
    /// Begins a file, which may replace the current file. Symbolic links are followed. The new file has the permissions of
    /// the file that it replaces.
    ///
    /// # Errors
    /// If it cannot be written there. A pipe without a reader is refused at once, and so are a dangling link, a directory,
    /// a socket and a device that stores data.
    pub fn new(path: &Path) -> io::Result<Self> {
        Self::replacing(path, FileIdentity::of(path))
    }

    /// Begins a file, which may replace the file that was seen.
    ///
    /// # Errors
    /// As [`AtomicFile::new`].
    pub fn replacing(path: &Path, replaces: FileIdentity) -> io::Result<Self> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            // A link in `/proc` to a pipe resolves to no path, but can be opened.
            Err(_) if !path.is_symlink() || path.exists() => path.to_path_buf(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::new(error.kind(), "it is a link to a file that is not there"));
            }
            Err(error) => return Err(error),
        };
        let old = target.metadata().ok();
        if let Some(old) = &old
            && Output::new(old)? == Output::Stream
        {
            let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
            let file = File::options().write(true).custom_flags(flags.bits()).open(target)?;
            // The path may have been replaced meanwhile.
            Output::new(&file.metadata()?)?;
            // Non-blocking only for the open, which fails without a reader; writes may block.
            fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
            return Ok(Self { file, names: None, replaces });
        }
        let (file, partial) = create_partial(&target)?;
        // The lock marks the draft as no leftover. Where the file system has no locks, no draft counts as one.
        let _ = file.try_lock();
        // Dropped from here on, it is removed.
        let draft = Self { file, names: Some((partial, target)), replaces };
        if let Some(old) = old {
            draft.file.set_permissions(old.permissions())?;
        }
        Ok(draft)
    }

    /// The file that is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the identity that the file will have once it is in place, if no more data is written.
    ///
    /// # Errors
    /// When it cannot be put on the disk.
    pub fn seen(&self) -> io::Result<FileIdentity> {
        self.file.sync_all()?;
        Ok(FileIdentity::of_metadata(Some(&self.file.metadata()?)))
    }

    /// Puts the file in place when it is on the disk. It replaces only the file that it may replace.
    ///
    /// # Errors
    /// When that fails, or another process made or changed a file of that name meanwhile. The draft then keeps its own
    /// name, and the error states it.
    pub fn put(self) -> io::Result<()> {
        let now = self.names.as_ref().map_or(FileIdentity(None), |names| FileIdentity::of(&names.1));
        let is_the_same = now.0.is_some() && now == self.replaces;
        let placement = if is_the_same { Placement::Replace } else { Placement::IfAbsent };
        self.finish(placement, "it was created or changed meanwhile")
    }

    /// Moves an incomplete file into place if there is none: it never replaces a file.
    ///
    /// # Errors
    /// As [`AtomicFile::put`], and if there is a file of that name.
    pub fn put_if_absent(self) -> io::Result<()> {
        self.finish(Placement::IfAbsent, "there is a file of that name")
    }

    fn finish(mut self, placement: Placement, conflict: &str) -> io::Result<()> {
        let put = self.move_into_place(placement);
        let Some((partial, _)) = self.names.take() else { return put };
        put.map_err(|error| {
            let kind = error.kind();
            let why = match kind {
                io::ErrorKind::AlreadyExists => conflict.to_owned(),
                _ => error.to_string(),
            };
            let partial = if partial.exists() {
                format!("what was written is in `{}`", partial.display())
            } else {
                format!("what was written was in `{}`, which was removed", partial.display())
            };
            io::Error::new(kind, format!("{why}; {partial}"))
        })
    }

    fn move_into_place(&mut self, placement: Placement) -> io::Result<()> {
        let Some((partial, target)) = &self.names else { return Ok(()) };
        self.file.sync_all()?;
        match placement {
            Placement::Replace => fs::rename(partial, target)?,
            Placement::IfAbsent => rename_no_replace(partial, target)?,
        }
        let directory = parent_of(target).to_path_buf();
        self.names = None;
        sync_directory(&directory)
    }
}

/// Treatment of an existing file at the final path.
#[derive(Clone, Copy)]
enum Placement {
    /// Over the file of that name.
    Replace,
    /// Only if no file has that name.
    IfAbsent,
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.names {
            let _ = fs::remove_file(partial);
        }
    }
}

/// Infix in the name of a draft, before a number.
const PARTIAL: &str = ".partial-";

/// Returns the message about a partial file that an interrupted command left.
pub fn leftover_message(path: &Path) -> String {
    format!(
        "`{}` was left by a command that was stopped, or that could not put it in place; you may delete it",
        path.display()
    )
}

/// Returns the drafts next to a file that no process writes any more: their process was killed, or they could not be moved
/// into place. Sorted by name.
pub fn leftovers(path: &Path) -> Vec<PathBuf> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let Some(name) = target.file_name().map(|name| name.to_string_lossy().into_owned() + PARTIAL) else {
        return Vec::new();
    };
    // As the caller names the file, if its name is not a link.
    let shown = if path.is_symlink() { &target } else { path };
    let entries = fs::read_dir(parent_of(shown)).into_iter().flatten().flatten();
    let drafts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name));
    let mut found: Vec<PathBuf> = drafts.map(|draft| shown.with_file_name(draft.file_name())).collect();
    found.retain(|draft| is_leftover(draft));
    found.sort_unstable();
    found
}

/// Returns whether this is a draft that no process writes any more, by its name, `NAME.partial-NUMBER`, and its lock.
/// On a file system without locks no draft is recognised.
pub fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.rsplit_once(PARTIAL).map_or("", |(_, number)| number);
    let is_draft = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    // A pipe of that name would be waited for.
    let is_file = || path.symlink_metadata().is_ok_and(|draft| draft.is_file());
    is_draft && is_file() && File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// Creates a new file next to another one. It skips numbers that a killed process used: a user may want the file of
/// that process.
fn create_partial(target: &Path) -> io::Result<(File, PathBuf)> {
    create_partial_with_mode(target, 0o666)
}

/// The same with these permissions, reduced by the umask.
fn create_partial_with_mode(target: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let mut number = std::process::id();
    loop {
        let mut partial = target.to_path_buf().into_os_string();
        partial.push(format!("{PARTIAL}{number}"));
        match File::options().write(true).read(true).create_new(true).mode(mode).open(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => return Ok((file?, partial.into())),
        }
    }
}

/// Renames a file, but never over another one.
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The file system has no hard links.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::ScratchDir;

    #[test]
    fn replace_is_atomic_and_follows_links() {
        let scratch = ScratchDir::new("write");
        let (file, link) = (scratch.path().join("file"), scratch.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        fs::write(&file, "old").unwrap();
        writable(&link).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&file, mode(0o600)).unwrap();
        replace(&file, "secret").unwrap();
        let now = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(now & 0o777, 0o600);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
        assert!(writable(scratch.path()).is_err() && replace(&file.join("x"), "").is_err());
    }

    #[test]
    fn commit_does_not_overwrite_a_concurrent_file() {
        let scratch = ScratchDir::new("draft");
        let path = scratch.path().join("file");
        let draft = |text: &str| {
            let mut draft = AtomicFile::new(&path).unwrap();
            draft.write_all(text.as_bytes()).unwrap();
            draft
        };
        let (first, second) = (draft("first"), draft("second"));
        assert!(!path.exists());
        first.put().unwrap();
        let refused = second.put().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        // The written data is not lost.
        let message = refused.to_string();
        let kept = message.split('`').nth(1).expect("a name");
        assert_eq!(fs::read_to_string(kept).unwrap(), "second", "{message}");
        fs::remove_file(kept).unwrap();
        draft("third").put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        drop(draft("given up"));
        // The leftover of a killed process of this number is not overwritten.
        let left = scratch.path().join(format!("file.partial-{}", std::process::id()));
        fs::write(&left, "left").unwrap();
        draft("fourth").put().unwrap();
        assert_eq!(fs::read_to_string(&left).unwrap(), "left");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_to_nothing_is_refused_and_leaves_nothing() {
        let scratch = ScratchDir::new("draft-link");
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let message = AtomicFile::new(&link).unwrap_err().to_string();
        assert_eq!(message, "it is a link to a file that is not there");
        assert!(writable(&link).is_err() && replace(&link, "text").is_err());
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn commit_into_removed_directory_is_an_error() {
        let scratch = ScratchDir::new("draft-gone");
        let directory = scratch.path().join("inside");
        fs::create_dir(&directory).unwrap();
        let draft = AtomicFile::new(&directory.join("file")).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        let message = draft.put().unwrap_err().to_string();
        assert!(message.contains("No such file") && message.ends_with("which was removed"), "{message}");
    }

    #[test]
    fn leftovers_are_unlocked_partial_files() {
        let scratch = ScratchDir::new("leftovers");
        let path = scratch.path().join("file");
        let names = |found: Vec<PathBuf>| -> Vec<String> {
            found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        let draft = AtomicFile::new(&path).unwrap();
        assert_eq!(leftovers(&path), [""; 0].map(PathBuf::from));
        for name in ["file.partial-7", "file.partial-x", "file.partial-", "file", "other.partial-7"] {
            fs::write(scratch.path().join(name), "left").unwrap();
        }
        fs::create_dir(scratch.path().join("file.partial-8")).unwrap();
        assert_eq!(names(leftovers(&path)), ["file.partial-7"]);
        // A draft that could not be moved into place is a leftover, too.
        let message = draft.put().unwrap_err().to_string();
        assert!(message.starts_with("it was created or changed meanwhile; what was written is in `"), "{message}");
        assert_eq!(leftovers(&path).len(), 2);
        std::os::unix::fs::symlink("file", scratch.path().join("link")).unwrap();
        assert_eq!(leftovers(&scratch.path().join("link")).len(), 2);
    }

    #[test]
    fn commit_replaces_only_the_initial_file() {
        let scratch = ScratchDir::new("draft-changed");
        let path = scratch.path().join("file");
        let draft = || {
            let mut draft = AtomicFile::new(&path).unwrap();
            draft.write_all(b"new").unwrap();
            draft
        };
        fs::write(&path, "old").unwrap();
        let begun = draft();
        fs::write(&path, "another's").unwrap();
        let message = begun.put().unwrap_err().to_string();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's", "{message}");
        // Two drafts in a row, each begun with the state that the previous one left.
        let seen = FileIdentity::of(&path);
        let second = |seen: FileIdentity| {
            let mut draft = AtomicFile::replacing(&path, seen).unwrap();
            draft.write_all(b"newer").unwrap();
            let now = draft.seen().unwrap();
            draft.put().map(|()| now)
        };
        let seen = second(second(seen).unwrap()).unwrap();
        assert_eq!(seen, FileIdentity::of(&path));
        fs::write(&path, "mine").unwrap();
        assert!(second(seen).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // An incomplete draft does not replace a file, but is put in place if there is no file.
        let message = draft().put_if_absent().unwrap_err().to_string();
        assert!(message.starts_with("there is a file of that name; what was written is in `"), "{message}");
        assert_eq!(fs::read_to_string(message.split('`').nth(1).expect("a name")).unwrap(), "new");
        let begun = draft();
        fs::remove_file(&path).unwrap();
        begun.put_if_absent().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn pipe_without_reader_is_an_immediate_error() {
        let scratch = ScratchDir::new("draft-pipe");
        let pipe = scratch.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(AtomicFile::new(&pipe).is_err() && replace(&pipe, "text").is_err());
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let scratch = ScratchDir::new("create");
        let path = scratch.path().join("file");
        create_new(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(create_new(&path, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }

    #[test]
    fn private_file_has_mode_0600_and_replaces_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = ScratchDir::new("write-private");
        let path = scratch.path().join("secret");
        create_private(&path, b"one").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(create_private(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        // Nothing is left next to it.
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}
