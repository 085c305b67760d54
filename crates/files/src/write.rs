//! Writing so that a reader sees the old file or the new one, whole, whatever ends the writer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Error, parent_of};

/// Writes a file under another name and renames it. A link is followed; what is no file, such as a terminal or a pipe,
/// is written to.
///
/// # Errors
/// When it cannot be written; the old file is in its place then.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let written = match Beside::new(path) {
        Some(beside) => beside.write(text).and_then(|()| beside.put()),
        None => fs::write(path, text),
    };
    written.map_err(Error::io("write", path))
}

/// Finds out whether a file could be written, and changes nothing.
///
/// # Errors
/// When it could not.
pub fn writable(path: &Path) -> Result<(), Error> {
    let tried = match Beside::new(path) {
        Some(beside) => beside.write(""),
        None if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        None => Ok(()),
    };
    tried.map_err(Error::io("write", path))
}

/// Creates a file that is not there, writes it and waits until it is on the disk.
///
/// # Errors
/// When it is there, or cannot be written.
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

/// A file in the making, removed when dropped unless it was put in place.
struct Beside {
    target: PathBuf,
    partial: PathBuf,
}

impl Beside {
    /// Nothing for what is there and is no file.
    fn new(path: &Path) -> Option<Self> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if target.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return None;
        }
        let mut partial = target.clone().into_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        Some(Self { target, partial: partial.into() })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        // Left by a process of this number that was killed.
        let _ = fs::remove_file(&self.partial);
        let mut file = File::create_new(&self.partial)?;
        // Who may read the old file may read the new one, and nobody else.
        if let Ok(old) = fs::metadata(&self.target) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn put(&self) -> io::Result<()> {
        fs::rename(&self.partial, &self.target)?;
        sync_directory(parent_of(&self.target))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
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
    fn what_is_there_is_not_created() {
        let scratch = Scratch::new("create");
        let path = scratch.path().join("file");
        create_new(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(create_new(&path, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
}
