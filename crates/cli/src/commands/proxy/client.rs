//! The proxy client: opens doors for programs, and keeps a connection to the proxy server.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proto::closed::{CloseCode, Closed};
use proto::secret::Secret;
use proto::ticket::TicketId;
use proxy::{ConnectFailure, Destination, EntranceKind, ProxyListener, client as carry};
use tokio::time::timeout;
use transport::{Connection, Endpoint, Error};

use super::proxy_log::ProxyLog;
use super::{run, with_room};
use crate::args::ProxyClientArgs;
use crate::exit::{CommandFailure, tell};
use crate::peer::access::PeerTarget;
use crate::peer::dial::failure;
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::service::PROXY;
use crate::peer::session_error::SessionError;

const DEED: &str = "the connection";
/// The time after which an address that does not answer is given up: some round trips of the longest links, and
/// retransmissions.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A door as the command line asks for it.
struct EntranceSpec {
    option: &'static str,
    kind: EntranceKind,
    at: SocketAddr,
}

pub(super) fn client(args: &ProxyClientArgs) -> Result<(), CommandFailure> {
    let asked = doors(args)?;
    let way = PeerTarget::new(&args.peer, &args.call)?;
    let room = PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, both_ways: 0, one_way: 0 };
    let mut end = EndpointSpec::new(&args.end, PROXY, room)?;
    with_room(&mut end.config.settings);
    let (told, caller) = (Arc::new(ProxyLog::default()), Dialer { way, end, endpoint: RefCell::new(None) });
    let ended = run(async {
        let doors = asked.iter().map(open).collect::<Result<Vec<ProxyListener>, CommandFailure>>()?;
        let log = if args.verbose { told.log_verbosely() } else { told.log() };
        Ok(carry(doors, || caller.call(), log).await)
    })?;
    if let Some(endpoint) = caller.endpoint.take() {
        endpoint.end(CloseCode::NONE, if ended.is_none() { "the proxy client was interrupted" } else { "" });
    }
    match ended {
        None => Err(CommandFailure::Interrupted(format!("the proxy client ended: {}", told.summary()))),
        Some(Err(failure)) => Err(failure),
        Some(Ok(why)) => Err(CommandFailure::Run(anyhow::anyhow!(why))),
    }
}

/// The doors that the options ask for.
fn doors(args: &ProxyClientArgs) -> Result<Vec<EntranceSpec>, CommandFailure> {
    let mut doors = Vec::new();
    for text in &args.socks {
        doors.push(EntranceSpec { option: "--socks", kind: EntranceKind::Socks, at: door("--socks", text)? });
    }
    for text in &args.forward {
        let Some((at, to)) = text.split_once('=') else {
            return Err(CommandFailure::Input(format!(
                "error: --forward {text}: expected ADDR=HOST:PORT, such as 127.0.0.1:5201=server.example:5201"
            )));
        };
        let to: Destination =
            to.parse().map_err(|error| CommandFailure::Input(format!("error: --forward {text}: {error}")))?;
        doors.push(EntranceSpec { option: "--forward", kind: EntranceKind::Forward(to), at: door("--forward", at)? });
    }
    for text in &args.transparent {
        doors.push(EntranceSpec {
            option: "--transparent",
            kind: EntranceKind::Transparent,
            at: door("--transparent", text)?,
        });
    }
    Ok(doors)
}

/// An address to listen at; a port alone is one of 127.0.0.1.
fn door(option: &str, text: &str) -> Result<SocketAddr, CommandFailure> {
    let at = text.parse().or_else(|_| text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()));
    at.map_err(|_| {
        CommandFailure::Input(format!(
            "error: {option} {text}: expected an address and a port, such as 127.0.0.1:1080 or [::1]:1080, or a port alone"
        ))
    })
}

fn open(asked: &EntranceSpec) -> Result<ProxyListener, CommandFailure> {
    let EntranceSpec { option, kind, at } = asked;
    let door = ProxyListener::open(kind.clone(), *at)
        .map_err(|error| CommandFailure::Input(format!("error: {option} {at}: cannot listen there: {error}")))?;
    let at = door.address();
    tell(&match kind {
        EntranceKind::Socks => format!("SOCKS 5 at {at}"),
        EntranceKind::Forward(to) => format!("{at} is {to} at the proxy server"),
        EntranceKind::Transparent => format!("redirected connections at {at}"),
    });
    if !at.ip().to_canonical().is_loopback() && *kind != EntranceKind::Transparent {
        tell(&format!(
            "warning: {option} {at} is open to any client that reaches that address, without authentication; use a \
             loopback address to prevent this"
        ));
    }
    Ok(door)
}

/// Calls the proxy server, again and again.
struct Dialer {
    way: PeerTarget,
    end: EndpointSpec,
    /// The endpoint of the last connection.
    endpoint: RefCell<Option<Endpoint>>,
}

impl Dialer {
    /// Calls one address after the other until one lets this end in.
    async fn call(&self) -> Result<Connection, ConnectFailure> {
        let addresses = self.way.addresses();
        for &address in addresses {
            match timeout(ANSWER_WAIT, self.call_at(address)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Err(_) | Ok(Err(Error::Closed(Closed::Silence))) => {}
                Ok(Err(error)) => return Err(self.refusal(error, address)),
            }
        }
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Err(ConnectFailure::ForNow(format!("nothing answers at {}", tried.join(", "))))
    }

    async fn call_at(&self, address: SocketAddr) -> Result<Connection, Error> {
        let secret: Option<(TicketId, Secret)> = match &self.way {
            PeerTarget::Ticket(ticket) => Some((ticket.id, ticket.secret.clone())),
            PeerTarget::Address { .. } => None,
        };
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::call_from((any, 0).into(), &self.end.config)?;
        let connection = endpoint.connect(address, self.way.trust(), secret).await?;
        connection.admitted().await?;
        self.endpoint.replace(Some(endpoint));
        Ok(connection)
    }

    /// Classifies a failed call: whether waiting can resolve it.
    fn refusal(&self, error: Error, address: SocketAddr) -> ConnectFailure {
        match (&error, &self.way) {
            (Error::Closed(Closed::There { code: CloseCode::REFUSED, .. }), PeerTarget::Ticket(_)) => {
                ConnectFailure::ForGood(format!(
                    "the proxy server at {address} does not take this ticket: it has expired, or the proxy server was restarted; with \
                 --ticket FILE it keeps its ticket"
                ))
            }
            (Error::Closed(Closed::There { code: CloseCode::REFUSED, .. }), PeerTarget::Address { .. }) => {
                let own = self.end.config.identity.fingerprint();
                ConnectFailure::ForGood(format!(
                    "the proxy server at {address} does not let this caller in: give its ticket, or start it with --allow-key {own}"
                ))
            }
            // Another key, or another program, at that address.
            (Error::Closed(Closed::Here { .. } | Closed::Service { .. }), _) => {
                let text = failure(&SessionError::from(error), &self.way, address, &self.end, DEED).to_string();
                ConnectFailure::ForGood(text.trim_start_matches("error: ").to_owned())
            }
            (error, _) => ConnectFailure::ForNow(format!("{address}: {error}")),
        }
    }
}
