//! The sender: calls, sends, and says what came of it.

use proto::closed::Code;
use transfer::{Error, SendOptions, Source, survey};

use super::board::Board;
use super::show::Shown;
use crate::args::SendArgs;
use crate::exit::{Failure, print, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::access::Way;
use crate::peer::call::{Call, connect, failure};
use crate::peer::end::{ETHERNET_PACKET, End, Room};
use crate::peer::patience::explained;
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
    let Call { endpoint, connection, address } = connect(&way, &end, DEED)?;
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
            endpoint.end(code, &words);
            return Err(match failure(&trouble, (&way, address), &end, DEED) {
                Failure::Run(error) => Failure::Run(anyhow::anyhow!("{error}\nhelp: {GOES_ON}")),
                Failure::Interrupted(text) => Failure::Interrupted(format!("{text}; {GOES_ON}")),
                other => other,
            });
        }
    };
    endpoint.end(Code::NONE, "");
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
