//! The receiver: prints a ticket, admits senders that have it, and writes the files that it receives.

use std::thread;

use proto::closed::Code;
use proto::connection::Liveness;
use transfer::{Error, Folder, Modes, ReceiveOptions};
use transport::{Connection, Endpoint};

use super::board::Board;
use super::show::Shown;
use crate::args::RecvArgs;
use crate::exit::{Failure, print, tell, tell_of_lock};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::descriptors::open_more_files;
use crate::peer::desk::{self, Asked, Desk, Terms};
use crate::peer::end::{End, LONGEST_PACKET, MOST_PATHS, Room};
use crate::peer::patience::{explained, wait_for};
use crate::peer::service::FILES;
use crate::peer::trouble::Trouble;

/// The message for a receiver that was cut off.
const GOES_ON: &str = "what came whole is kept: when the sender sends the same again, it goes on there";

pub(crate) fn recv(args: &RecvArgs) -> Result<(), Failure> {
    let terms = Terms::new(Asked::new(&args.listen, &args.desk))?;
    let room = Room { paths: MOST_PATHS, packet: LONGEST_PACKET, both_ways: 1, one_way: transfer::MOST_LANES.into() };
    let end = End::new(&args.end, FILES, room)?;
    // First, so that no directory is made if the address cannot be bound.
    let endpoint = terms.listen(&end)?;
    let folder = Folder::take(&args.directory, &format!("narrows recv {}", args.directory.display()))
        .map_err(|error| unusable(&error))?;
    tell_of_lock(folder.path(), folder.lock());
    open_more_files();
    listen_for_interrupts();
    let mut desk = Desk::open(&endpoint, terms, &end)?;
    let done = serve(&endpoint, &mut desk, &folder, args);
    endpoint.end(Code::NONE, if interrupted() { "the receiver was interrupted" } else { "" });
    done
}

/// A folder that cannot be used is the user's to mend.
fn unusable(error: &Error) -> Failure {
    let help = match error {
        Error::File(files::Error::Held { .. }) => "\nhelp: one `narrows recv` at a time writes to a directory",
        _ => "",
    };
    Failure::Input(format!("error: {error}{help}"))
}

/// Serves one sender after the other, until the only one is served, or for ever.
fn serve(endpoint: &Endpoint, desk: &mut Desk, folder: &Folder, args: &RecvArgs) -> Result<(), Failure> {
    let mut next = None;
    loop {
        let connection = match next.take() {
            Some(connection) => connection,
            None => first(endpoint, desk)?,
        };
        let done = thread::scope(|scope| {
            let part = || receive(&connection, folder, args);
            let receiving = match thread::Builder::new().name("narrows receiver".into()).spawn_scoped(scope, part) {
                Ok(receiving) => receiving,
                Err(error) => return Err(Failure::Run(error.into())),
            };
            next = turn_away(endpoint, desk, &connection, || receiving.is_finished());
            receiving
                .join()
                .unwrap_or_else(|_| Err(Failure::Run(anyhow::anyhow!("the transfer failed within this program"))))
        });
        let goes_on = next.is_some() || desk.keeps();
        match done {
            Err(failure) if goes_on && !interrupted() => tell(&failure.to_string()),
            // `first` and `receive` look for Ctrl-C.
            Ok(()) if goes_on => {}
            done => return done,
        }
    }
}

/// Waits for a sender while none is served.
fn first(endpoint: &Endpoint, desk: &mut Desk) -> Result<Connection, Failure> {
    loop {
        let look = || {
            desk.tell_of_strays(endpoint);
            if interrupted() { Err(Trouble::Interrupted) } else { Ok(()) }
        };
        let incoming = match wait_for(endpoint.accept(), look) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return Err(desk::ended(endpoint)),
            Err(_) => return Err(Failure::Interrupted("the receiver ended".to_owned())),
        };
        if let Some(connection) = desk.admit(incoming) {
            desk.serve(&connection);
            return Ok(connection);
        }
    }
}

/// Refuses other senders while one is served. Returns the sender that takes its place, if the served one is silent or its transfer ends
/// during the probe.
fn turn_away(
    endpoint: &Endpoint,
    desk: &mut Desk,
    served: &Connection,
    is_over: impl Fn() -> bool,
) -> Option<Connection> {
    loop {
        let look = || {
            desk.tell_of_strays(endpoint);
            if is_over() { Err(Trouble::Interrupted) } else { Ok(()) }
        };
        let Ok(Some(incoming)) = wait_for(endpoint.accept(), look) else { return None };
        let Some(connection) = desk.admit(incoming) else { continue };
        let look = || if is_over() { Err(Trouble::Interrupted) } else { Ok(()) };
        match wait_for(served.probe(), look) {
            Ok(Ok(Liveness::Alive)) => {
                connection.close(Code::BUSY, "another sender is served here: try again later");
                tell("refused a caller: another one sends");
            }
            Ok(Ok(Liveness::Silent)) => {
                served.close(Code::BUSY, "it does not answer, and another call takes its place");
                return Some(connection);
            }
            // The transfer has ended, or its connection.
            Ok(Err(_)) | Err(_) => return Some(connection),
        }
    }
}

fn receive(connection: &Connection, folder: &Folder, args: &RecvArgs) -> Result<(), Failure> {
    let address = connection.paths().first().map(|path| path.via.remote);
    let who = address.map_or_else(|| "the sender".to_owned(), |it| it.to_string());
    let board = Board::new(args.show);
    let modes = if args.exact_modes { Modes::Exact } else { Modes::OfNew };
    let received = transfer::receive(connection, folder, ReceiveOptions { replace: args.replace, modes }, &board);
    let (notes, clock) = board.end();
    let summary = match received {
        Ok(summary) => summary,
        Err(error) => {
            connection.close(error.code(), &error.to_peer());
            let trouble = match error {
                Error::Transport(error) => explained(connection, Trouble::Transport(error)),
                Error::Peer(what) => Trouble::Peer(what),
                Error::Interrupted => {
                    return Err(Failure::Interrupted(format!("the transfer was not finished; {GOES_ON}")));
                }
                other => return Err(Failure::Run(other.into())),
            };
            return Err(Failure::Run(anyhow::anyhow!(
                "the transfer from {who} did not end well: {trouble}\nhelp: {GOES_ON}"
            )));
        }
    };
    let times = clock.times();
    let shown = Shown {
        verb: "received",
        address,
        summary,
        failed: summary.failed,
        notes: &notes,
        time: clock.elapsed(),
        cpu_s: times.cpu_s,
    };
    if args.show.json {
        print(&format!("{:#}", shown.as_json()))?;
    } else if !args.show.quiet {
        tell(&format!("{who}: {}", shown.as_text()));
    }
    match summary.failed {
        0 => Ok(()),
        failed => Err(Failure::Run(anyhow::anyhow!(
            "{failed} of what was offered is not here; the lines above, or the sender's, say why"
        ))),
    }
}
