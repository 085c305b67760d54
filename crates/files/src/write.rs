//! Atomic writes: a reader sees the old file or the new one, whole, whatever ends the writer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::{Error, parent_of};

/// Replaces a file atomically: writes another one and renames it. A link is followed. What is no file, such as a
/// terminal or a pipe, is written to.
///
/// # Errors
/// When the file cannot be written. The old file then stays.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let written = || {
        let mut draft = Draft::new(path)?;
        draft.write_all(text.as_bytes())?;
        draft.put_over(true)
    };
    written().map_err(Error::io("write", path))
}

/// Finds out whether a file could be written, and changes nothing.
///
/// # Errors
/// When it could not.
pub fn writable(path: &Path) -> Result<(), Error> {
    let tried = match path.metadata() {
        // Opening a pipe would end what is read from it.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Ok(()),
        _ => Draft::new(path).map(drop),
    };
    tried.map_err(Error::io("write", path))
}

/// Creates a file, writes it and waits until it is on the disk.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn create_new(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create_new(path)?);
    let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
    // What is left in the buffer after an error would only fail again.
    let _ = out.into_parts();
    written
}

/// Waits until the names in a directory are on the disk.
///
/// # Errors
/// When the system says so.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// A file in the making. It is written under another name, `NAME.partial-NUMBER`, and put in place whole. Dropping it
/// removes it; a kill leaves it beside the file. What is no file, such as a terminal or a pipe, is written to directly.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// The draft's name and the final one; none for what is no file.
    names: Option<(PathBuf, PathBuf)>,
    /// The file of the final name as it was at the beginning, if there was one.
    replaces: Option<Seen>,
}

/// What tells whether a file is still the one that was looked at: device, inode, length, and when it was changed.
type Seen = (u64, u64, u64, i64, i64);

fn seen(file: &fs::Metadata) -> Seen {
    (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())
}

impl Draft {
    /// Begins a file. A link is followed. The new file has the permissions of the file that it replaces.
    ///
    /// # Errors
    /// When it cannot be written there. A pipe that nobody reads is refused at once.
    pub fn new(path: &Path) -> io::Result<Self> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let old = target.metadata().ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let file = File::options().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(target)?;
            // It was to find a reader at once; one that is slow is waited for.
            fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
            return Ok(Self { file, names: None, replaces: None });
        }
        let (file, partial) = beside(&target)?;
        // Dropped from here on, it is removed.
        let draft = Self { file, names: Some((partial, target)), replaces: old.as_ref().map(seen) };
        if let Some(old) = old {
            draft.file.set_permissions(old.permissions())?;
        }
        Ok(draft)
    }

    /// The file that is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in place when it is on the disk. It replaces only the file that was there at the beginning.
    ///
    /// # Errors
    /// When that fails, or somebody made or changed a file of that name meanwhile. The draft then keeps its own name, and
    /// the error says which.
    pub fn put(self) -> io::Result<()> {
        let now = self.names.as_ref().and_then(|names| names.1.metadata().ok());
        let is_the_same = self.replaces.is_some() && now.as_ref().map(seen) == self.replaces;
        self.keep(is_the_same)
    }

    /// Puts a file that is not whole in place where there is none: it replaces nothing.
    ///
    /// # Errors
    /// As [`Draft::put`], and when there is a file of that name.
    pub fn put_if_missing(self) -> io::Result<()> {
        self.keep(false)
    }

    fn keep(mut self, replaces: bool) -> io::Result<()> {
        let put = self.put_over(replaces);
        match self.names.take() {
            Some((partial, _)) => put.map_err(|error| {
                io::Error::new(error.kind(), format!("{error}; what was written is in `{}`", partial.display()))
            }),
            None => put,
        }
    }

    fn put_over(&mut self, replaces: bool) -> io::Result<()> {
        let Some((partial, target)) = &self.names else { return Ok(()) };
        self.file.sync_all()?;
        if replaces {
            fs::rename(partial, target)?;
        } else {
            name_first(partial, target)?;
        }
        let directory = parent_of(target).to_path_buf();
        self.names = None;
        sync_directory(&directory)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.names {
            let _ = fs::remove_file(partial);
        }
    }
}

/// A new file beside another one. It skips numbers that a killed process used: somebody may want what that one wrote.
fn beside(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = std::process::id();
    loop {
        let mut partial = target.to_path_buf().into_os_string();
        partial.push(format!(".partial-{number}"));
        match File::create_new(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => return Ok((file?, partial.into())),
        }
    }
}

/// Renames a file, but never over another one.
fn name_first(from: &Path, to: &Path) -> io::Result<()> {
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
    use crate::testbed::Scratch;

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays() {
        let scratch = Scratch::new("write");
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
    fn a_draft_takes_no_name_that_somebody_took_meanwhile() {
        let scratch = Scratch::new("draft");
        let path = scratch.path().join("file");
        let draft = |text: &str| {
            let mut draft = Draft::new(&path).unwrap();
            draft.write_all(text.as_bytes()).unwrap();
            draft
        };
        let (first, second) = (draft("first"), draft("second"));
        assert!(!path.exists());
        first.put().unwrap();
        let refused = second.put().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        // What was written is not lost.
        let said = refused.to_string();
        let kept = said.split('`').nth(1).expect("a name");
        assert_eq!(fs::read_to_string(kept).unwrap(), "second", "{said}");
        fs::remove_file(kept).unwrap();
        draft("third").put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        // Nor one of a link that leads nowhere, which is somebody's, too.
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let said = Draft::new(&link).unwrap().put().unwrap_err().to_string();
        assert!(link.is_symlink());
        fs::remove_file(said.split('`').nth(1).expect("a name")).unwrap();
        drop(draft("given up"));
        // What a killed process of this number left is not written over.
        let left = scratch.path().join(format!("file.partial-{}", std::process::id()));
        fs::write(&left, "left").unwrap();
        draft("fourth").put().unwrap();
        assert_eq!(fs::read_to_string(&left).unwrap(), "left");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_draft_replaces_only_what_was_there_at_the_beginning() {
        let scratch = Scratch::new("draft-changed");
        let path = scratch.path().join("file");
        let draft = || {
            let mut draft = Draft::new(&path).unwrap();
            draft.write_all(b"new").unwrap();
            draft
        };
        fs::write(&path, "old").unwrap();
        let begun = draft();
        fs::write(&path, "somebody's").unwrap();
        let said = begun.put().unwrap_err().to_string();
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's", "{said}");
        // What is not whole replaces nothing, and is put where there is nothing.
        let said = draft().put_if_missing().unwrap_err().to_string();
        assert_eq!(fs::read_to_string(said.split('`').nth(1).expect("a name")).unwrap(), "new");
        let begun = draft();
        fs::remove_file(&path).unwrap();
        begun.put_if_missing().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_refused_at_once() {
        let scratch = Scratch::new("draft-pipe");
        let pipe = scratch.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Draft::new(&pipe).is_err() && replace(&pipe, "text").is_err());
    }

    #[test]
    fn what_is_there_is_not_created() {
        let scratch = Scratch::new("create");
        let path = scratch.path().join("file");
        create_new(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(create_new(&path, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
}
