//! The receiver: prints a ticket, admits senders that have it, and writes the files that it receives.

use std::thread;

use proto::closed::CloseCode;
use proto::connection::Liveness;
use transfer::{DestDir, Error, Modes, ReceiveOptions};
use transport::{Connection, Endpoint};

use super::display::TransferDisplay;
use super::show::TransferReport;
use crate::args::RecvArgs;
use crate::exit::{CommandFailure, print, print_lock_notes, print_stderr};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::descriptors::open_more_files;
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::service::FILES;
use crate::peer::session_error::SessionError;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};
use crate::peer::wait::{wait_for, with_close_reason};

/// The message for a receiver that was cut off.
const RESUME_HELP: &str = "what came whole is kept: when the sender sends the same again, it goes on there";

pub(crate) fn recv(args: &RecvArgs) -> Result<(), CommandFailure> {
    let listen_config = ListenConfig::new(ListenRequest::new(&args.listen, &args.admission))?;
    let limits = PeerLimits {
        paths: MAX_PATHS,
        packet: MAX_PACKET,
        bidirectional: 1,
        unidirectional: transfer::MAX_LANES.into(),
    };
    let end = EndpointSpec::new(&args.endpoint, FILES, limits)?;
    // First, so that no directory is made if the address cannot be bound.
    let endpoint = listen_config.listen(&end)?;
    let folder = DestDir::take(&args.directory, &format!("narrows recv {}", args.directory.display()))
        .map_err(|error| unusable(&error))?;
    print_lock_notes(folder.path(), folder.lock());
    open_more_files();
    listen_for_interrupts();
    let mut listener = TicketListener::open(&endpoint, listen_config, &end)?;
    let result = serve(&endpoint, &mut listener, &folder, args);
    endpoint.shut_down(CloseCode::NONE, if interrupted() { "the receiver was interrupted" } else { "" });
    result
}

/// A folder that cannot be used is the user's to mend.
fn unusable(error: &Error) -> CommandFailure {
    let help = match error {
        Error::File(files::Error::Locked { .. }) => "\nhelp: one `narrows recv` at a time writes to a directory",
        _ => "",
    };
    CommandFailure::Input(format!("error: {error}{help}"))
}

/// Serves one sender after the other, until the only one is served, or for ever.
fn serve(
    endpoint: &Endpoint,
    listener: &mut TicketListener,
    folder: &DestDir,
    args: &RecvArgs,
) -> Result<(), CommandFailure> {
    let mut next = None;
    loop {
        let connection = match next.take() {
            Some(connection) => connection,
            None => accept_sender(endpoint, listener)?,
        };
        let result = thread::scope(|scope| {
            let task = || receive(&connection, folder, args);
            let receiving = match thread::Builder::new().name("narrows receiver".into()).spawn_scoped(scope, task) {
                Ok(receiving) => receiving,
                Err(error) => return Err(CommandFailure::Run(error.into())),
            };
            next = refuse_other_senders(endpoint, listener, &connection, || receiving.is_finished());
            receiving.join().unwrap_or_else(|_| {
                Err(CommandFailure::Run(anyhow::anyhow!("the transfer failed within this program")))
            })
        });
        let continues = next.is_some() || listener.is_reusable();
        match result {
            Err(failure) if continues && !interrupted() => print_stderr(&failure.to_string()),
            // `accept_sender` and `receive` poll for Ctrl-C.
            Ok(()) if continues => {}
            result => return result,
        }
    }
}

/// Waits for a sender while none is served.
fn accept_sender(endpoint: &Endpoint, listener: &mut TicketListener) -> Result<Connection, CommandFailure> {
    loop {
        let poll = || {
            listener.report_alpn_mismatches(endpoint);
            if interrupted() { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let incoming = match wait_for(endpoint.accept(), poll) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return Err(ticket_listener::ended(endpoint)),
            Err(_) => return Err(CommandFailure::Interrupted("the receiver ended".to_owned())),
        };
        if let Some(connection) = listener.admit(incoming) {
            listener.serve(&connection);
            return Ok(connection);
        }
    }
}

/// Refuses other senders while one is served. Returns the sender that takes its place, if the served one is silent or its transfer ends
/// during the probe.
fn refuse_other_senders(
    endpoint: &Endpoint,
    listener: &mut TicketListener,
    served: &Connection,
    is_over: impl Fn() -> bool,
) -> Option<Connection> {
    loop {
        let poll = || {
            listener.report_alpn_mismatches(endpoint);
            if is_over() { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let Ok(Some(incoming)) = wait_for(endpoint.accept(), poll) else { return None };
        let Some(connection) = listener.admit(incoming) else { continue };
        let poll = || if is_over() { Err(SessionError::Interrupted) } else { Ok(()) };
        match wait_for(served.probe(), poll) {
            Ok(Ok(Liveness::Alive)) => {
                connection.close(CloseCode::BUSY, "another sender is served here: try again later");
                print_stderr("refused a client: another one sends");
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
    let address = connection.paths().first().map(|path| path.four_tuple.remote);
    let label = address.map_or_else(|| "the sender".to_owned(), |it| it.to_string());
    let display = TransferDisplay::new(args.show);
    let modes = if args.exact_modes { Modes::Exact } else { Modes::OfNew };
    let received = transfer::receive(connection, folder, ReceiveOptions { replace: args.overwrite, modes }, &display);
    let (notes, clock) = display.end();
    let summary = match received {
        Ok(summary) => summary,
        Err(error) => {
            connection.close(error.code(), &error.to_peer());
            let error = match error {
                Error::Transport(error) => with_close_reason(connection, SessionError::Transport(error)),
                Error::Peer(message) => SessionError::Peer(message),
                Error::Interrupted => {
                    return Err(CommandFailure::Interrupted(format!("the transfer was not finished; {RESUME_HELP}")));
                }
                other => return Err(CommandFailure::Run(other.into())),
            };
            return Err(CommandFailure::Run(anyhow::anyhow!(
                "the transfer from {label} did not end well: {error}\nhelp: {RESUME_HELP}"
            )));
        }
    };
    let times = clock.times();
    let report = TransferReport {
        verb: "received",
        address,
        summary,
        failed: summary.failed,
        notes: &notes,
        time: clock.elapsed(),
        cpu_s: times.cpu_s,
    };
    if args.show.json {
        print(&format!("{:#}", report.as_json()))?;
    } else if !args.show.quiet {
        print_stderr(&format!("{label}: {}", report.as_text()));
    }
    match summary.failed {
        0 => Ok(()),
        failed => Err(CommandFailure::Run(anyhow::anyhow!(
            "{failed} of the offered entries were not received; the lines above, or the sender's, have the reasons"
        ))),
    }
}
