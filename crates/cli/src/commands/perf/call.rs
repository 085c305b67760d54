//! The caller: connects, asks for a test, and shows what came of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use proto::closed::{Closed, Code};
use proto::secret::Secret;
use proto::ticket::TicketId;
use transport::{Connection, Endpoint, Error};

use super::access::{End, Way};
use super::control::{Amount, LONGEST_TIME, MOST_BYTES, Request};
use super::meter::{Meter, Watch};
use super::patience::wait_for;
use super::quantity::{bytes, duration, in_words};
use super::show::Shown;
use super::test::{explained, of_caller};
use super::trouble::Trouble;
use crate::args::PerfArgs;
use crate::clock::Stopwatch;
use crate::exit::{Failure, print, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};

/// The longest UDP payload that fits an Ethernet packet of 1,500 bytes.
const PACKET: u16 = 1_472;
/// An address that does not answer is given up after so long, where there is another one.
const NEXT_ADDRESS: Duration = Duration::from_secs(3);
/// How long a test sends if nothing is said.
const USUAL_TIME: &str = "10";

pub(super) fn call(peer: &str, args: &PerfArgs) -> Result<(), Failure> {
    let way = Way::new(peer, args)?;
    let amount = if let Some(text) = &args.bytes {
        Amount::Bytes(bytes("--bytes", text, (1, MOST_BYTES))?)
    } else {
        let text = args.time.as_deref().unwrap_or(USUAL_TIME);
        Amount::TimeMs(duration("--time", text, (Duration::from_millis(1), LONGEST_TIME))?.as_millis() as u64)
    };
    let every = duration("--interval", &args.interval, (Duration::from_millis(10), Duration::from_hours(1)))?;
    let end = End::new(args, (args.paths, PACKET, 0))?;
    listen_for_interrupts();
    let (endpoint, connection, address) = connect(&way, &end)?;
    let request = Request::new(args.reverse, args.streams, amount, end.window);
    let meter = Meter::new(&connection);
    let mut watch = Watch::new(&meter, end.idle).every(every, !args.json);
    if !args.json {
        let (local, ways) = (endpoint.address().port(), if args.paths == 1 { "path" } else { "paths" });
        tell(&format!("connected to {address} from port {local}: {} {ways}, {}", args.paths, end.law.name()));
    }
    // Closed before its streams are, so that the peer learns why.
    let close = |trouble: &Trouble| connection.close(code_of(trouble), &trouble.to_peer());
    let tested = wait_for(of_caller(&request, &meter), || watch.look().inspect_err(close)).and_then(|outcome| outcome);
    let (answer, outcome) = match tested {
        Ok(tested) => tested,
        Err(trouble) => {
            let trouble = explained(&connection, trouble);
            endpoint.end(code_of(&trouble), &trouble.to_peer());
            return Err(failure(&trouble, &way, address, &end));
        }
    };
    watch.finish();
    let paths = connection.paths();
    let shown =
        Shown { request: &request, answer: &answer, end: &end, args, address, outcome: &outcome, paths: &paths };
    let text = if args.json { format!("{:#}", shown.as_json(&watch.intervals)) } else { shown.as_text() };
    endpoint.end(Code::NONE, "");
    print(&text)
}

/// The code with which a connection is closed.
fn code_of(trouble: &Trouble) -> Code {
    if matches!(trouble, Trouble::Interrupted) { Code::NONE } else { Code::APPLICATION }
}

/// Calls one address after the other until one answers.
fn connect(way: &Way, end: &End) -> Result<(Endpoint, Connection, SocketAddr), Failure> {
    let secret: Option<(TicketId, Secret)> = match way {
        Way::Ticket(ticket) => Some((ticket.id, ticket.secret.clone())),
        Way::Address { .. } => None,
    };
    let addresses = way.addresses();
    for (at, &address) in addresses.iter().enumerate() {
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::call_from((any, 0).into(), &end.config)
            .map_err(|error| Failure::Run(anyhow::anyhow!("cannot open a UDP socket: {error}")))?;
        let (clock, has_more) = (Stopwatch::start(), at + 1 < addresses.len());
        let look = || {
            if interrupted() {
                return Err(Trouble::Interrupted);
            }
            let is_late = has_more && clock.elapsed() >= NEXT_ADDRESS;
            if is_late { Err(Trouble::Transport(Error::Closed(Closed::Silence))) } else { Ok(()) }
        };
        let connected = wait_for(endpoint.connect(address, way.trust(), secret.clone()), look);
        match connected.and_then(|outcome| outcome.map_err(Trouble::from)) {
            Ok(connection) => return Ok((endpoint, connection, address)),
            Err(Trouble::Transport(Error::Closed(Closed::Silence))) if has_more => {
                tell(&format!("nothing answers at {address}; trying {}", addresses[at + 1]));
            }
            Err(Trouble::Transport(Error::Closed(Closed::Silence))) => {
                endpoint.end(Code::NONE, "");
                return Err(silence(addresses));
            }
            Err(trouble) => {
                endpoint.end(Code::NONE, &trouble.to_peer());
                return Err(failure(&trouble, way, address, end));
            }
        }
    }
    Err(silence(addresses))
}

fn silence(addresses: &[SocketAddr]) -> Failure {
    let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    Failure::Run(anyhow::anyhow!(
        "nothing answers at {}: see that `narrows perf --listen` runs there, and that firewalls let UDP through",
        tried.join(", ")
    ))
}

/// What a caller is told of trouble with this listener, and what it can do.
fn failure(trouble: &Trouble, way: &Way, address: SocketAddr, end: &End) -> Failure {
    let text = match trouble {
        Trouble::Interrupted => return Failure::Interrupted("the test was not finished".to_owned()),
        Trouble::Transport(Error::Closed(Closed::There { code: Code::REFUSED, .. })) => match way {
            Way::Ticket(_) => format!(
                "the listener at {address} does not take this ticket: it was used or has ended, so start the listener anew \
                 (--keep lets a ticket be used again, --valid sets how long)"
            ),
            Way::Address { .. } => format!(
                "the listener at {address} does not let this caller in: give its ticket, or start it with --allow {}",
                end.config.identity.fingerprint()
            ),
        },
        Trouble::Transport(Error::Closed(Closed::Here { code, .. })) if is_tls(*code) => {
            let source = if matches!(way, Way::Ticket(_)) { "the ticket" } else { "--fingerprint" };
            format!(
                "who listens at {address} does not have the key that {source} names: it is another machine, or the listener has \
                 a new key; take its new ticket if you know why"
            )
        }
        Trouble::Transport(Error::Closed(Closed::Silence)) => format!(
            "the listener at {address} does not answer any more (--idle {}): its process has ended, or the network is cut",
            in_words(end.idle)
        ),
        other => format!("the test with {address} did not end well: {other}"),
    };
    Failure::Run(anyhow::anyhow!(text))
}

/// Whether TLS has ended the connection.
fn is_tls(code: Code) -> bool {
    (Code::TLS.0..Code::TLS.0 + 0x100).contains(&code.0)
}
