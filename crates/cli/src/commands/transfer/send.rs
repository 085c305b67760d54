//! The sender: calls, sends, and says what came of it.

use proto::closed::{Closed, Code};
use transfer::{Error, SendOptions, Source, survey};

use super::board::Board;
use super::show::Shown;
use crate::args::SendArgs;
use crate::exit::{Failure, print, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::access::Way;
use crate::peer::call::{Call, Failed, connect, failure, try_connect};
use crate::peer::end::{ETHERNET_PACKET, End, Room};
use crate::peer::patience::{explained, wait_for};
use crate::peer::resumption::Kept;
use crate::peer::service::FILES;
use crate::peer::trouble::Trouble;

const DEED: &str = "the transfer";
/// Files at a time: enough to keep a disk and a connection busy.
const LANES: u8 = 4;
/// What a sender that was cut off is told.
const GOES_ON: &str =
    "what came whole is kept: give the same command again, with a new ticket if need be, and it goes on there";

pub(crate) fn send(args: &SendArgs) -> Result<(), Failure> {
    // One list, so that options may stand between its words.
    let Some((peer, paths @ [_, ..])) = args.words.split_last() else {
        return Err(Failure::Input(
            "error: expected what to send and then to whom: narrows send PATH... TICKET|ADDR".to_owned(),
        ));
    };
    let sources = Source::of_all(paths).map_err(|error| Failure::Input(format!("error: {error}")))?;
    let way = Way::new(&peer.to_string_lossy(), &args.call)?;
    let room = Room { paths: args.paths, packet: ETHERNET_PACKET, both_ways: 0, one_way: 0 };
    let end = End::new(&args.end, FILES, room)?;
    listen_for_interrupts();
    let amount = survey(&sources, || !interrupted());
    if interrupted() {
        return Err(Failure::Interrupted("nothing was sent".to_owned()));
    }
    let kept = Kept::new(&way);
    let remove = || {
        if let Some(kept) = &kept {
            kept.remove();
        }
    };
    let Call { endpoint, connection, address } = call(&way, kept.as_ref(), &end)?;
    let board = Board::new(args.show);
    let options = SendOptions { lanes: LANES, checksum: args.checksum };
    let sent = transfer::send(&connection, &sources, (options, amount), &board);
    let (notes, clock) = board.end();
    let outcome = match sent {
        Ok(outcome) => outcome,
        Err(error) => {
            let (code, words) = (error.code(), error.to_peer());
            let trouble = match error {
                Error::Transport(error) => explained(&connection, Trouble::Transport(error)),
                Error::Peer(what) => Trouble::Peer(what),
                Error::Interrupted => Trouble::Interrupted,
                other => return Err(Failure::Run(other.into())),
            };
            if is_refused(&trouble) {
                remove();
            }
            endpoint.end(code, &words);
            return Err(match failure(&trouble, (&way, address), &end, DEED) {
                Failure::Run(error) => Failure::Run(anyhow::anyhow!("{error}\nhelp: {GOES_ON}")),
                Failure::Interrupted(text) => Failure::Interrupted(format!("{text}; {GOES_ON}")),
                other => other,
            });
        }
    };
    endpoint.end(Code::NONE, "");
    remove();
    let times = clock.times();
    let shown = Shown {
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
        return Err(Failure::Run(anyhow::anyhow!(
            "{} of what was to be sent is not there; the lines above name the first 100",
            outcome.failed
        )));
    }
    Ok(())
}

/// Calls by the ticket that a killed sender has left; where there is none, or the receiver does not take it, by the sender's own.
fn call(way: &Way, kept: Option<&Kept>, end: &End) -> Result<Call, Failure> {
    if let Some(kept) = kept
        && let Some(again) = kept.way()?
    {
        match try_connect(&again, end) {
            Ok(call) => {
                let look = || if interrupted() { Err(Trouble::Interrupted) } else { Ok(()) };
                let admitted = wait_for(call.connection.admitted(), look);
                if !admitted.and_then(|outcome| outcome.map_err(Trouble::from)).is_err_and(|it| is_refused(&it)) {
                    return Ok(call);
                }
                call.endpoint.end(Code::NONE, "");
            }
            Err(Failed::Connection { trouble, .. }) if is_refused(&trouble) => {}
            Err(failed) => return Err(failed.explained(way, end, DEED)),
        }
        kept.remove();
    }
    let call = connect(way, end, DEED)?;
    // Before the receiver's word: whoever is killed when it has just let it in would find the ticket used.
    if let Some(kept) = kept {
        kept.keep(&call.connection);
    }
    Ok(call)
}

/// Whether the receiver has said that it does not take this ticket.
fn is_refused(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Transport(transport::Error::Closed(Closed::There { code: Code::REFUSED, .. })))
}
