//! Entries that a sender offers: one for each file, directory and link.

use serde::{Deserialize, Serialize};

use crate::name::{Name, NameError, check_target};

/// Permissions that are sent: read, write and execute. The setuid, setgid and sticky bits are not.
pub(crate) const MODES: u32 = 0o777;
/// The largest file: offsets are signed numbers of 64 bits.
const MAX_FILE_SIZE: u64 = i64::MAX.cast_unsigned();
/// Nanoseconds of a second.
const SECOND_NS: u32 = 1_000_000_000;

/// Modification time of a file: seconds since 1970, and nanoseconds below 10^9 after that.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Mtime {
    /// Seconds, negative before 1970.
    pub s: i64,
    /// Nanoseconds.
    pub ns: u32,
}

impl Mtime {
    /// Creates a stamp from a file's seconds and nanoseconds. The kernel returns nanoseconds below 10^9.
    pub(crate) fn of_file(s: i64, ns: i64) -> Self {
        Self { s, ns: u32::try_from(ns).unwrap_or(0) }
    }
}

/// The kind of an entry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum EntryKind {
    /// A directory. It comes before its contents.
    Directory,
    /// A regular file.
    File {
        /// In bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: Vec<u8>,
    },
}

/// A file, a directory or a link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Entry {
    /// Its name at the receiver.
    pub name: Name,
    /// Its permissions, at most 0o777.
    pub mode: u32,
    /// Its modification time.
    pub mtime: Mtime,
    /// Its kind.
    pub kind: EntryKind,
}

impl Entry {
    /// Checks it. Returns a description of the error, as the rest of a sentence about the peer. A link's target is
    /// checked separately: an honest sender may have such links.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let name = &self.name;
        if self.mode & !MODES != 0 {
            return Err(format!("sent `{name}` with the mode {:o}; at most 777 is accepted", self.mode));
        }
        if self.mtime.ns >= SECOND_NS {
            return Err(format!("sent `{name}` with a time of {} ns in a second", self.mtime.ns));
        }
        match &self.kind {
            EntryKind::File { size } if *size > MAX_FILE_SIZE => {
                Err(format!("sent `{name}` with a size of {size} bytes"))
            }
            EntryKind::Link { target } if target.len() > crate::name::MAX_PATH => {
                Err(format!("sent `{name}` as a link to a path of {} bytes", target.len()))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if it is a link with a target that is not allowed.
    pub(crate) fn check_target(&self) -> Result<(), NameError> {
        if let EntryKind::Link { target } = &self.kind { check_target(&self.name, target) } else { Ok(()) }
    }

    /// Its bytes; none unless it is a file.
    pub(crate) fn size(&self) -> u64 {
        if let EntryKind::File { size } = self.kind { size } else { 0 }
    }
}
