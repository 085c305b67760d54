//! The sender: calls, sends, and prints the outcome.

use proto::closed::{CloseCode, Closed};
use transfer::{Error, SendOptions, SourcePath, survey};

use super::board::TransferDisplay;
use super::show::TransferReport;
use crate::args::SendArgs;
use crate::exit::{CommandFailure, print, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::access::PeerTarget;
use crate::peer::dial::{ConnectError, Dial, connect, failure, try_connect};
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::patience::{explained, wait_for};
use crate::peer::resumption::{Resumption, StoredTicket};
use crate::peer::service::FILES;
use crate::peer::session_error::SessionError;

const DEED: &str = "the transfer";
/// Files at a time: enough to keep a disk and a connection busy.
const LANES: u8 = 4;
/// The message for a sender that was cut off.
const GOES_ON: &str =
    "what came whole is kept: give the same command again, with a new ticket if need be, and it goes on there";

pub(crate) fn send(args: &SendArgs) -> Result<(), CommandFailure> {
    // One list, so that options may be placed between its arguments.
    let Some((peer, paths @ [_, ..])) = args.words.split_last() else {
        return Err(CommandFailure::Input(
            "error: expected paths, then a ticket or an address: narrows send PATH... TICKET|ADDR".to_owned(),
        ));
    };
    let sources = SourcePath::of_all(paths).map_err(|error| CommandFailure::Input(format!("error: {error}")))?;
    let way = PeerTarget::new(&peer.to_string_lossy(), &args.call)?;
    let room = PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, both_ways: 0, one_way: 0 };
    let end = EndpointSpec::new(&args.end, FILES, room)?;
    listen_for_interrupts();
    let amount = survey(&sources, || !interrupted());
    if interrupted() {
        return Err(CommandFailure::Interrupted("nothing was sent".to_owned()));
    }
    let resumption = Resumption::new(&way);
    let Begun { call: Dial { endpoint, connection, address }, own } = call(&way, resumption.as_ref(), &end)?;
    let board = TransferDisplay::new(args.show);
    let options = SendOptions { lanes: LANES, checksum: args.checksum };
    let sent = transfer::send(&connection, &sources, options, amount, &board);
    let (notes, clock) = board.end();
    let outcome = match sent {
        Ok(outcome) => outcome,
        Err(error) => {
            let (code, words) = (error.code(), error.to_peer());
            let trouble = match error {
                Error::Transport(error) => explained(&connection, SessionError::Transport(error)),
                Error::Peer(what) => SessionError::Peer(what),
                Error::Interrupted => SessionError::Interrupted,
                other => return Err(CommandFailure::Run(other.into())),
            };
            if let Some(own) = own.filter(|_| is_refused(&trouble)) {
                own.remove();
            }
            endpoint.end(code, &words);
            return Err(match failure(&trouble, &way, address, &end, DEED) {
                CommandFailure::Run(error) => CommandFailure::Run(anyhow::anyhow!("{error}\nhelp: {GOES_ON}")),
                CommandFailure::Interrupted(text) => CommandFailure::Interrupted(format!("{text}; {GOES_ON}")),
                other => other,
            });
        }
    };
    endpoint.end(CloseCode::NONE, "");
    if let Some(own) = own {
        own.remove();
    }
    let times = clock.times();
    let shown = TransferReport {
        verb: "sent",
        address: Some(address),
        summary: outcome.summary,
        failed: outcome.failed,
        notes: &notes,
        time: clock.elapsed(),
        cpu_s: times.cpu_s,
    };
    if args.show.json {
        print(&format!("{:#}", shown.as_json()))?;
    } else if !args.show.quiet {
        tell(&shown.as_text());
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
struct Begun {
    call: Dial,
    /// The resumption ticket of this connection.
    own: Option<StoredTicket>,
}

/// Calls by the tickets that killed senders have stored; where there is none, or the receiver refuses them, by the sender's own.
fn call(way: &PeerTarget, resumption: Option<&Resumption>, end: &EndpointSpec) -> Result<Begun, CommandFailure> {
    let admitted = |call: &Dial| {
        let look = || if interrupted() { Err(SessionError::Interrupted) } else { Ok(()) };
        wait_for(call.connection.admitted(), look).and_then(|outcome| outcome.map_err(SessionError::from))
    };
    let mut refused = Vec::new();
    for stored in resumption.map_or_else(Vec::new, Resumption::stored) {
        match try_connect(&stored.way(), end) {
            Ok(call) => {
                if !admitted(&call).is_err_and(|trouble| is_refused(&trouble)) {
                    return Ok(Begun { call, own: Some(stored) });
                }
                call.endpoint.end(CloseCode::NONE, "");
            }
            Err(ConnectError::Connection { trouble, .. }) if is_refused(&trouble) => {}
            Err(error) => return Err(error.explained(way, end, DEED)),
        }
        refused.push(stored);
    }
    let call = connect(way, end, DEED)?;
    // Before the receiver's reply: a sender that is killed just after it was admitted would otherwise find the ticket used.
    let own = resumption.and_then(|resumption| resumption.store(&call.connection));
    // A receiver that is too busy to decide refuses callers, too: these go once the sender's own ticket was taken.
    if !refused.is_empty() && admitted(&call).is_ok() {
        refused.iter().for_each(StoredTicket::remove);
    }
    Ok(Begun { call, own })
}

/// Returns whether the receiver refused the caller.
fn is_refused(trouble: &SessionError) -> bool {
    matches!(trouble, SessionError::Transport(transport::Error::Closed(Closed::There { code: CloseCode::REFUSED, .. })))
}
