//! Files that other processes map into their memory: created atomically, or taken over from a former daemon.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::sys::{Mapping, MappingAccess};

/// Error of a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The system reports an error.
    #[error("cannot {action} the page `{}`: {source}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is another one.
    #[error("`{}` is not a clock page that this version reads", path.display())]
    NotPage {
        /// The file.
        path: PathBuf,
    },
    /// Another daemon writes the page.
    #[error("another daemon writes the page `{}`; stop it, or use another path", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

impl PageError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Format of a file.
pub(crate) struct Layout {
    /// Length of a new file, in bytes.
    pub(crate) length: u64,
    /// Number of words of 64 bits that are mapped.
    pub(crate) words: usize,
    /// Returns whether a file has this format.
    pub(crate) is_valid: fn(&Mapping) -> bool,
    /// Writes the constant part into a file of zeros.
    pub(crate) initialise: fn(&Mapping),
}

/// A file that is mapped to write, and locked against other writers.
#[derive(Debug)]
pub(crate) struct SharedFile {
    pub(crate) file: File,
    pub(crate) mapping: Mapping,
}

impl SharedFile {
    /// Opens the file of this format at `path`; another file, or none, is replaced atomically. Links are not followed.
    /// Everybody may read the file.
    pub(crate) fn open(path: &Path, layout: &Layout) -> Result<Self, PageError> {
        match Self::existing(path, layout)? {
            Some(existing) => Ok(existing),
            None => Self::create(path, layout),
        }
    }

    fn existing(path: &Path, layout: &Layout) -> Result<Option<Self>, PageError> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(PageError::io("write", path))?,
        };
        let metadata = file.metadata().map_err(PageError::io("write", path))?;
        if !metadata.is_file() {
            return Err(PageError::NotPage { path: path.to_path_buf() });
        }
        lock(&file, path)?;
        let mapping = Mapping::new(&file, layout.words, MappingAccess::Write).ok();
        Ok(mapping.filter(layout.is_valid).map(|mapping| Self { file, mapping }))
    }

    /// Creates a file under another name and moves it into place.
    fn create(path: &Path, layout: &Layout) -> Result<Self, PageError> {
        let draft = draft_of(path);
        let _ = fs::remove_file(&draft);
        let made = new_file(&draft, layout.length).and_then(|file| {
            let mapping = Mapping::new(&file, layout.words, MappingAccess::Write)?;
            (layout.initialise)(&mapping);
            Ok(Self { file, mapping })
        });
        let made = made.map_err(PageError::io("create", path))?;
        lock(&made.file, path)?;
        fs::rename(&draft, path).map_err(|error| {
            let _ = fs::remove_file(&draft);
            PageError::io("create", path)(error)
        })?;
        Ok(made)
    }
}

fn lock(file: &File, path: &Path) -> Result<(), PageError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => Err(PageError::Locked { path: path.to_path_buf() }),
        Err(fs::TryLockError::Error(source)) => Err(PageError::io("lock", path)(source)),
    }
}

/// Returns the name of the file that replaces another one.
fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".partial-{}", std::process::id()));
    path.with_file_name(name)
}

/// Creates a file of zeros that everybody may read.
fn new_file(path: &Path, length: u64) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path)?;
    // The mode of creation is subject to the umask.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    file.set_len(length)?;
    Ok(file)
}
