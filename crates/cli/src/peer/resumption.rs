//! Tickets by which a sender that was killed calls again, while the receiver still waits for it. `docs/src/send.md`, "When it is cut
//! off".
//!
//! A ticket that lets in one caller is used with the first connection. That connection gives both ends another secret, and the sender
//! keeps it on its disk until it is done, in a ticket for its own use. The secret stays the same each time it is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use files::{Limit, hexadecimal};
use proto::ticket::Ticket;
use transport::Connection;

use super::access::Way;
use super::identity::{make_directory, secret, state};
use crate::exit::{Failure, tell};
use study::seconds_since_1970;

const TICKET: Limit = Limit { what: "a file with a ticket", mib: 1 };
/// Age at which such a ticket is removed: no receiver lives that long.
const MAX_AGE_S: u64 = 100 * 24 * 3_600;

/// A sender's resumption ticket, on disk until its transfer is done.
pub(crate) struct ResumptionTicket<'a> {
    ticket: &'a Ticket,
    path: PathBuf,
}

impl<'a> ResumptionTicket<'a> {
    /// Returns None for a sender without a ticket, or without a state directory.
    pub(crate) fn new(way: &'a Way) -> Option<Self> {
        let Way::Ticket(ticket) = way else { return None };
        let path = state()?.join("resumption").join(hexadecimal(&ticket.id));
        Some(Self { ticket, path })
    }

    /// Returns the way to connect by the stored ticket, if there is one.
    ///
    /// # Errors
    /// If others could read it, or it is no ticket.
    pub(crate) fn way(&self) -> Result<Option<Way>, Failure> {
        let Some(bytes) = secret(&self.path, TICKET, "send in your place")? else { return Ok(None) };
        let stored: Ticket = String::from_utf8_lossy(&bytes).parse().map_err(|error| {
            let path = self.path.display();
            Failure::Input(format!("error: `{path}` has no ticket: {error}\nhelp: remove it, and send by a new ticket"))
        })?;
        // The listener may have other addresses by now.
        Ok(Some(Way::Ticket(Ticket { secret: stored.secret, ..self.ticket.clone() })))
    }

    /// Stores the ticket for this connection, and returns whether it did. Keeps the file of another process that sends by the same
    /// ticket.
    pub(crate) fn store(&self, connection: &Connection) -> bool {
        let Some(secret) = connection.resumption(&self.ticket.secret) else { return false };
        let text = format!("{}\n", Ticket { secret, ..self.ticket.clone() });
        let directory = files::parent_of(&self.path);
        sweep(directory, seconds_since_1970());
        let stored = make_directory(directory).and_then(|()| files::create_private(&self.path, text.as_bytes()));
        let is_stored = stored.is_ok();
        if let Err(error) = stored
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            let path = self.path.display();
            tell(&format!("warning: cannot make `{path}`: {error}; a sender that is killed needs a new ticket then"));
        }
        is_stored
    }

    /// Removes the stored ticket.
    pub(crate) fn remove(&self) {
        // One that stays is refused the next time, and removed by then or when it is old.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what killed senders left long ago.
fn sweep(directory: &Path, now_s: u64) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_old = |metadata: fs::Metadata| metadata.mtime().unsigned_abs() + MAX_AGE_S < now_s;
        if entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }
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
        let made_s = 1_000_000_000;
        for (name, age_s) in [("new", MAX_AGE_S), ("old", MAX_AGE_S + 1)] {
            let file = fs::File::create(directory.join(name)).unwrap();
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(made_s - age_s))).unwrap();
        }
        sweep(&directory, made_s);
        assert!(directory.join("new").exists() && !directory.join("old").exists());
        fs::remove_dir_all(directory).unwrap();
    }
}
