//! The contents that a sender offers: the files, directories and links below its paths.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::entry::{Entry, EntryKind, MODES, Mtime};
use crate::message::Amount;
use crate::name::{Name, NameError, shown};

/// The reason why a path cannot be sent at all.
#[derive(Debug, Error)]
pub enum SourceError {
    /// A path cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A path has no last component that could be its name at the receiver.
    #[error("`{}` has no name that it could have at the receiver: {why}", path.display())]
    Unnamed {
        /// The path.
        path: PathBuf,
        /// The error in the name.
        why: NameError,
    },
    /// Two paths have one name.
    #[error("`{}` and another path would both be `{name}` at the receiver", path.display())]
    Twice {
        /// The second path.
        path: PathBuf,
        /// The name.
        name: Name,
    },
}

/// A path to send, and its name at the receiver.
#[derive(Clone, Debug)]
pub struct SourcePath {
    path: PathBuf,
    name: Name,
}

impl SourcePath {
    /// Creates the sources of these paths. Each is known by its last component at the receiver.
    ///
    /// # Errors
    /// If one does not exist, or has no such name, or two have the same.
    pub fn of_all(paths: &[PathBuf]) -> Result<Vec<Self>, SourceError> {
        let mut names = BTreeSet::new();
        let mut sources = Vec::new();
        for path in paths {
            let io = |source| SourceError::Io { path: path.clone(), source };
            fs::symlink_metadata(path).map_err(io)?;
            // The name of `.` or `..` is that of its directory.
            let last = match path.file_name() {
                Some(last) => last.to_owned(),
                None => path.canonicalize().map_err(io)?.file_name().map_or_else(OsString::new, ToOwned::to_owned),
            };
            let name = Name::new(last.into_vec()).map_err(|why| SourceError::Unnamed { path: path.clone(), why })?;
            if !names.insert(name.clone()) {
                return Err(SourceError::Twice { path: path.clone(), name });
            }
            sources.push(Self { path: path.clone(), name });
        }
        Ok(sources)
    }
}

/// Counts the contents, as long as `should_continue` returns true.
pub fn survey(sources: &[SourcePath], should_continue: impl Fn() -> bool) -> Amount {
    let mut amount = Amount::default();
    let count = |found: WalkItem| {
        if let WalkItem::Entry(entry, _) = found {
            amount.entries += 1;
            amount.bytes += entry.size();
        }
        if should_continue() { Ok(()) } else { Err(()) }
    };
    // The count is not used if it was ended.
    let _ = walk(sources, count);
    amount
}

/// An item of a walk.
pub(crate) enum WalkItem {
    Entry(Entry, PathBuf),
    /// An item that is not sent, and the reason.
    Refused(PathBuf, String),
}

/// Walks all contents, each directory before its entries, in the order of their names. Links are not followed.
pub(crate) fn walk<E>(sources: &[SourcePath], mut found: impl FnMut(WalkItem) -> Result<(), E>) -> Result<(), E> {
    for source in sources {
        let mut open: Vec<(PathBuf, Name, std::vec::IntoIter<OsString>)> = Vec::new();
        let mut next = Some((source.path.clone(), Ok(source.name.clone())));
        loop {
            if let Some((path, name)) = next.take() {
                let (entry, inside) =
                    match name.map_err(|error: NameError| error.to_string()).and_then(|name| entry(&path, name)) {
                        Ok(entry) => {
                            let inside =
                                (entry.kind == EntryKind::Directory).then(|| (names(&path), entry.name.clone()));
                            (WalkItem::Entry(entry, path.clone()), inside)
                        }
                        Err(why) => (WalkItem::Refused(path.clone(), why), None),
                    };
                found(entry)?;
                match inside {
                    Some((Ok(names), name)) => open.push((path, name, names.into_iter())),
                    Some((Err(error), _)) => found(WalkItem::Refused(path, error.to_string()))?,
                    None => {}
                }
            }
            let Some((path, name, inside)) = open.last_mut() else { break };
            match inside.next() {
                Some(part) => next = Some((path.join(&part), name.join(part.as_bytes()))),
                None => drop(open.pop()),
            }
        }
    }
    Ok(())
}

/// The names in a directory.
fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn entry(path: &Path, name: Name) -> Result<Entry, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => EntryKind::Directory,
        kind if kind.is_file() => EntryKind::File { size: metadata.len() },
        kind if kind.is_symlink() => {
            let target = fs::read_link(path).map_err(|error| error.to_string())?;
            EntryKind::Link { target: target.into_os_string().into_vec() }
        }
        kind if kind.is_fifo() => return Err("it is a pipe, which is not sent".to_owned()),
        kind if kind.is_socket() => return Err("it is a socket, which is not sent".to_owned()),
        _ => return Err("it is a device, which is not sent".to_owned()),
    };
    let entry = Entry { name, mode: metadata.mode() & MODES, mtime: mtime_of(&metadata), kind };
    entry.check_target().map_err(|why| why.to_string())?;
    Ok(entry)
}

pub(crate) fn mtime_of(metadata: &Metadata) -> Mtime {
    Mtime::of_file(metadata.mtime(), metadata.mtime_nsec())
}

/// A path of this machine for people.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_bytes())
}
