//! Tickets by which a sender that was killed calls again, while the receiver still waits for it. `docs/src/send.md`, "When it is cut
//! off".
//!
//! A ticket for one client is used with the first connection. Both ends derive another secret from that connection, and
//! the sender keeps it on its disk until it is done, in a ticket for its own use. The secret stays the same each time
//! it is used.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use files::{SizeLimit, hexadecimal};
use proto::ticket::Ticket;
use transport::{Connection, random};

use super::access::PeerTarget;
use super::identity::{make_directory, secret, state};
use crate::exit::{CommandFailure, print_stderr};
use study::seconds_since_1970;

const TICKET: SizeLimit = SizeLimit { kind: "a file with a ticket", mib: 1 };
/// Age at which such a ticket is removed: no receiver lives that long.
const MAX_AGE_S: u64 = 100 * 24 * 3_600;

/// Resumption tickets of senders that call by one ticket: a file for each of their connections, as several may call at once and the
/// receiver takes one.
pub(crate) struct Resumption<'a> {
    ticket: &'a Ticket,
    directory: PathBuf,
}

/// A resumption ticket on disk.
pub(crate) struct StoredTicket {
    ticket: Ticket,
    path: PathBuf,
}

impl<'a> Resumption<'a> {
    /// Returns None for a sender without a ticket, or without a state directory.
    pub(crate) fn new(target: &'a PeerTarget) -> Option<Self> {
        let PeerTarget::Ticket(ticket) = target else { return None };
        let Some(state) = state() else {
            print_stderr(
                "warning: neither XDG_STATE_HOME nor HOME is an absolute path; a sender that is killed needs a new ticket then",
            );
            return None;
        };
        Some(Self { ticket, directory: state.join("resumption") })
    }

    /// Returns the stored tickets. Warns of files that are none, or that others can read.
    pub(crate) fn stored(&self) -> Vec<StoredTicket> {
        let prefix = self.prefix();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
        let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
        paths.sort();
        let read = |path: PathBuf| match self.read(&path) {
            Ok(ticket) => ticket.map(|ticket| StoredTicket { ticket, path }),
            Err(reason) => {
                print_stderr(&format!(
                    "warning: `{}` is of no use: {reason}; a sender that was killed cannot go on by it",
                    path.display()
                ));
                None
            }
        };
        paths.into_iter().filter_map(read).collect()
    }

    fn read(&self, path: &Path) -> Result<Option<Ticket>, String> {
        let failed = |failure: CommandFailure| failure.to_string().replace('\n', "; ");
        let Some(bytes) = secret(path, TICKET, "send in your place").map_err(failed)? else { return Ok(None) };
        let stored: Ticket =
            String::from_utf8_lossy(&bytes).parse().map_err(|error| format!("it has no ticket: {error}"))?;
        // The listener may have other addresses by now.
        Ok(Some(Ticket { secret: stored.secret, ..self.ticket.clone() }))
    }

    /// Stores the ticket for this connection. Warns and returns None if it cannot.
    pub(crate) fn store(&self, connection: &Connection) -> Option<StoredTicket> {
        let secret = connection.resumption(&self.ticket.secret)?;
        let ticket = Ticket { secret, ..self.ticket.clone() };
        remove_expired(&self.directory, seconds_since_1970());
        let path = random::<8>().map(|name| self.directory.join(format!("{}{}", self.prefix(), hexadecimal(&name))));
        let stored = path.and_then(|path| {
            make_directory(&self.directory)?;
            // The file gets its name before it is on disk, which takes a while, so that a process killed in between can
            // resume from it.
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            let written = file.write_all(format!("{ticket}\n").as_bytes());
            let written = written.and_then(|()| file.sync_all()).and_then(|()| files::sync_directory(&self.directory));
            // No part of a ticket stays.
            written.inspect_err(|_| drop(fs::remove_file(&path)))?;
            Ok(path)
        });
        match stored {
            Ok(path) => Some(StoredTicket { ticket, path }),
            Err(error) => {
                let directory = self.directory.display();
                print_stderr(&format!(
                    "warning: cannot write to `{directory}`: {error}; a sender that is killed needs a new ticket then"
                ));
                None
            }
        }
    }

    fn prefix(&self) -> String {
        format!("{}-", hexadecimal(&self.ticket.id))
    }
}

impl StoredTicket {
    /// Returns the way to connect by it.
    pub(crate) fn target(&self) -> PeerTarget {
        PeerTarget::Ticket(self.ticket.clone())
    }

    /// Removes it.
    pub(crate) fn remove(&self) {
        // A ticket that cannot be removed is refused the next time, and removed then or when it expires.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes tickets that killed senders left long ago. Files with another kind of name are not ours, and stay.
fn remove_expired(directory: &Path, now_s: u64) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_old = |metadata: fs::Metadata| metadata.mtime().unsigned_abs() + MAX_AGE_S < now_s;
        let is_ours = entry.file_name().to_str().is_some_and(is_name);
        if is_ours && entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns whether a file's name is a ticket's identifier and a random number, both of 8 bytes, as
/// [`Resumption::store`] makes it.
fn is_name(name: &str) -> bool {
    let is_hexadecimal = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(id, number)| is_hexadecimal(id) && is_hexadecimal(number))
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn old_tickets_are_removed() {
        let directory = std::env::temp_dir().join(format!("narrows-resumption-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let now_s = 1_000_000_000;
        let names = ["0123456789abcdef-0000000000000000", "0123456789abcdef-0000000000000001", "notes"];
        for (name, age_s) in names.into_iter().zip([MAX_AGE_S, MAX_AGE_S + 1, MAX_AGE_S + 1]) {
            let file = fs::File::create(directory.join(name)).unwrap();
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(now_s - age_s))).unwrap();
        }
        remove_expired(&directory, now_s);
        let left = names.map(|name| directory.join(name).exists());
        assert_eq!(left, [true, false, true]);
        fs::remove_dir_all(directory).unwrap();
    }
}
