//! The receiver: prints a ticket, admits senders that have it, and writes the files that it receives.

use std::thread;

use proto::closed::CloseCode;
use proto::connection::Liveness;
use transfer::{DestDir, Error, Modes, ReceiveOptions};
use transport::{Connection, Endpoint};

use super::board::TransferDisplay;
use super::show::TransferReport;
use crate::args::RecvArgs;
use crate::exit::{CommandFailure, print, tell, tell_of_lock};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::descriptors::open_more_files;
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::patience::{explained, wait_for};
use crate::peer::service::FILES;
use crate::peer::session_error::SessionError;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};

/// The message for a receiver that was cut off.
const GOES_ON: &str = "what came whole is kept: when the sender sends the same again, it goes on there";

pub(crate) fn recv(args: &RecvArgs) -> Result<(), CommandFailure> {
    let terms = ListenConfig::new(ListenRequest::new(&args.listen, &args.desk))?;
    let room = PeerLimits { paths: MAX_PATHS, packet: MAX_PACKET, both_ways: 1, one_way: transfer::MAX_LANES.into() };
    let end = EndpointSpec::new(&args.end, FILES, room)?;
    // First, so that no directory is made if the address cannot be bound.
    let endpoint = terms.listen(&end)?;
    let folder = DestDir::take(&args.directory, &format!("narrows recv {}", args.directory.display()))
        .map_err(|error| unusable(&error))?;
    tell_of_lock(folder.path(), folder.lock());
    open_more_files();
    listen_for_interrupts();
    let mut desk = TicketListener::open(&endpoint, terms, &end)?;
    let done = serve(&endpoint, &mut desk, &folder, args);
    endpoint.end(CloseCode::NONE, if interrupted() { "the receiver was interrupted" } else { "" });
    done
}

/// A folder that cannot be used is the user's to mend.
fn unusable(error: &Error) -> CommandFailure {
    let help = match error {
        Error::File(files::Error::Held { .. }) => "\nhelp: one `narrows recv` at a time writes to a directory",
        _ => "",
    };
    CommandFailure::Input(format!("error: {error}{help}"))
}

/// Serves one sender after the other, until the only one is served, or for ever.
fn serve(
    endpoint: &Endpoint,
    desk: &mut TicketListener,
    folder: &DestDir,
    args: &RecvArgs,
) -> Result<(), CommandFailure> {
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
                Err(error) => return Err(CommandFailure::Run(error.into())),
            };
            next = turn_away(endpoint, desk, &connection, || receiving.is_finished());
            receiving.join().unwrap_or_else(|_| {
                Err(CommandFailure::Run(anyhow::anyhow!("the transfer failed within this program")))
            })
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
fn first(endpoint: &Endpoint, desk: &mut TicketListener) -> Result<Connection, CommandFailure> {
    loop {
        let look = || {
            desk.tell_of_strays(endpoint);
            if interrupted() { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let incoming = match wait_for(endpoint.accept(), look) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return Err(ticket_listener::ended(endpoint)),
            Err(_) => return Err(CommandFailure::Interrupted("the receiver ended".to_owned())),
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
    desk: &mut TicketListener,
    served: &Connection,
    is_over: impl Fn() -> bool,
) -> Option<Connection> {
    loop {
        let look = || {
            desk.tell_of_strays(endpoint);
            if is_over() { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let Ok(Some(incoming)) = wait_for(endpoint.accept(), look) else { return None };
        let Some(connection) = desk.admit(incoming) else { continue };
        let look = || if is_over() { Err(SessionError::Interrupted) } else { Ok(()) };
        match wait_for(served.probe(), look) {
            Ok(Ok(Liveness::Alive)) => {
                connection.close(CloseCode::BUSY, "another sender is served here: try again later");
                tell("refused a caller: another one sends");
            }
            Ok(Ok(Liveness::Silent)) => {
                served.close(CloseCode::BUSY, "it does not answer, and another call takes its place");
                return Some(connection);
            }
            // The transfer has ended, or its connection.
            Ok(Err(_)) | Err(_) => return Some(connection),
        }
    }
}

fn receive(connection: &Connection, folder: &DestDir, args: &RecvArgs) -> Result<(), CommandFailure> {
    let address = connection.paths().first().map(|path| path.via.remote);
    let label = address.map_or_else(|| "the sender".to_owned(), |it| it.to_string());
    let board = TransferDisplay::new(args.show);
    let modes = if args.exact_modes { Modes::Exact } else { Modes::OfNew };
    let received = transfer::receive(connection, folder, ReceiveOptions { replace: args.overwrite, modes }, &board);
    let (notes, clock) = board.end();
    let summary = match received {
        Ok(summary) => summary,
        Err(error) => {
            connection.close(error.code(), &error.to_peer());
            let trouble = match error {
                Error::Transport(error) => explained(connection, SessionError::Transport(error)),
                Error::Peer(what) => SessionError::Peer(what),
                Error::Interrupted => {
                    return Err(CommandFailure::Interrupted(format!("the transfer was not finished; {GOES_ON}")));
                }
                other => return Err(CommandFailure::Run(other.into())),
            };
            return Err(CommandFailure::Run(anyhow::anyhow!(
                "the transfer from {label} did not end well: {trouble}\nhelp: {GOES_ON}"
            )));
        }
    };
    let times = clock.times();
    let shown = TransferReport {
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
        tell(&format!("{label}: {}", shown.as_text()));
    }
    match summary.failed {
        0 => Ok(()),
        failed => Err(CommandFailure::Run(anyhow::anyhow!(
            "{failed} of the offered entries were not received; the lines above, or the sender's, have the reasons"
        ))),
    }
}
