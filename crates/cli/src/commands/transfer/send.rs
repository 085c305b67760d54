//! The sender: calls, sends, and prints the outcome.

use proto::closed::{CloseCode, Closed};
use transfer::{Error, SendOptions, SourcePath, survey};

use super::display::TransferDisplay;
use super::show::TransferReport;
use crate::args::SendArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::access::PeerTarget;
use crate::peer::dial::{ConnectError, OutgoingConnection, connect, failure, try_connect};
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::resumption::{Resumption, StoredTicket};
use crate::peer::service::FILES;
use crate::peer::session_error::SessionError;
use crate::peer::wait::{wait_for, with_close_reason};

const PURPOSE: &str = "the transfer";
/// Files at a time: enough to keep a disk and a connection busy.
const LANES: u8 = 4;
/// The message for a sender that was cut off.
const RESUME_HELP: &str =
    "what came whole is kept: give the same command again, with a new ticket if need be, and it goes on there";

pub(crate) fn send(args: &SendArgs) -> Result<(), CommandFailure> {
    // One list, so that options may be placed between its arguments.
    let Some((peer, paths @ [_, ..])) = args.words.split_last() else {
        return Err(CommandFailure::Input(
            "error: expected paths, then a ticket or an address: narrows send PATH... TICKET|ADDR".to_owned(),
        ));
    };
    let sources = SourcePath::of_all(paths).map_err(|error| CommandFailure::Input(format!("error: {error}")))?;
    let target = PeerTarget::new(&peer.to_string_lossy(), &args.connect)?;
    let limits = PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, bidirectional: 0, unidirectional: 0 };
    let end = EndpointSpec::new(&args.endpoint, FILES, limits)?;
    listen_for_interrupts();
    let amount = survey(&sources, || !interrupted());
    if interrupted() {
        return Err(CommandFailure::Interrupted("nothing was sent".to_owned()));
    }
    let resumption = Resumption::new(&target);
    let SenderConnection { dial: OutgoingConnection { endpoint, connection, address }, ticket } =
        connect_resuming(&target, resumption.as_ref(), &end)?;
    let display = TransferDisplay::new(args.show);
    let options = SendOptions { lanes: LANES, checksum: args.checksum };
    let sent = transfer::send(&connection, &sources, options, amount, &display);
    let (notes, clock) = display.end();
    let outcome = match sent {
        Ok(outcome) => outcome,
        Err(error) => {
            let (code, reason) = (error.code(), error.to_peer());
            let error = match error {
                Error::Transport(error) => with_close_reason(&connection, SessionError::Transport(error)),
                Error::Peer(message) => SessionError::Peer(message),
                Error::Interrupted => SessionError::Interrupted,
                other => return Err(CommandFailure::Run(other.into())),
            };
            if let Some(ticket) = ticket.filter(|_| is_refused(&error)) {
                ticket.remove();
            }
            endpoint.shut_down(code, &reason);
            return Err(match failure(&error, &target, address, &end, PURPOSE) {
                CommandFailure::Run(error) => CommandFailure::Run(anyhow::anyhow!("{error}\nhelp: {RESUME_HELP}")),
                CommandFailure::Interrupted(text) => CommandFailure::Interrupted(format!("{text}; {RESUME_HELP}")),
                other => other,
            });
        }
    };
    endpoint.shut_down(CloseCode::NONE, "");
    if let Some(ticket) = ticket {
        ticket.remove();
    }
    let times = clock.times();
    let report = TransferReport {
        verb: "sent",
        address: Some(address),
        summary: outcome.summary,
        failed: outcome.failed,
        notes: &notes,
        time: clock.elapsed(),
        cpu_s: times.cpu_s,
    };
    if args.show.json {
        print(&format!("{:#}", report.as_json()))?;
    } else if !args.show.quiet {
        print_stderr(&report.as_text());
    }
    if outcome.failed > 0 {
        return Err(CommandFailure::Run(anyhow::anyhow!(
            "{} of what was to be sent is not there; the lines above name the first 100",
            outcome.failed
        )));
    }
    Ok(())
}

/// A sender's connection.
struct SenderConnection {
    dial: OutgoingConnection,
    /// The resumption ticket of this connection.
    ticket: Option<StoredTicket>,
}

/// Calls by the tickets that killed senders have stored; where there is none, or the receiver refuses them, by the sender's own.
fn connect_resuming(
    target: &PeerTarget,
    resumption: Option<&Resumption>,
    end: &EndpointSpec,
) -> Result<SenderConnection, CommandFailure> {
    let admitted = |dial: &OutgoingConnection| {
        let poll = || if interrupted() { Err(SessionError::Interrupted) } else { Ok(()) };
        wait_for(dial.connection.admitted(), poll).and_then(|outcome| outcome.map_err(SessionError::from))
    };
    let mut refused = Vec::new();
    for stored in resumption.map_or_else(Vec::new, Resumption::stored) {
        match try_connect(&stored.target(), end) {
            Ok(dial) => {
                if !admitted(&dial).is_err_and(|error| is_refused(&error)) {
                    return Ok(SenderConnection { dial, ticket: Some(stored) });
                }
                dial.endpoint.shut_down(CloseCode::NONE, "");
            }
            Err(ConnectError::Connection { error, .. }) if is_refused(&error) => {}
            Err(error) => return Err(error.explained(target, end, PURPOSE)),
        }
        refused.push(stored);
    }
    let dial = connect(target, end, PURPOSE)?;
    // Before the receiver's reply: a sender that is killed just after it was admitted would otherwise find the ticket used.
    let ticket = resumption.and_then(|resumption| resumption.store(&dial.connection));
    // A receiver that is too busy to decide refuses clients, too: these go once the sender's own ticket was taken.
    if !refused.is_empty() && admitted(&dial).is_ok() {
        refused.iter().for_each(StoredTicket::remove);
    }
    Ok(SenderConnection { dial, ticket })
}

/// Returns whether the receiver refused the client.
fn is_refused(error: &SessionError) -> bool {
    matches!(error, SessionError::Transport(transport::Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. })))
}
