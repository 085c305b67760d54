//! The proxy client: opens entrances for programs, and keeps a connection to the proxy server.

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
use super::{reserve_stream_windows, run};
use crate::args::ProxyClientArgs;
use crate::exit::{CommandFailure, print_stderr};
use crate::peer::access::PeerTarget;
use crate::peer::dial::failure;
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::service::PROXY;
use crate::peer::session_error::SessionError;

const PURPOSE: &str = "the connection";
/// The time after which an address that does not answer is given up: some round trips of the longest links, and
/// retransmissions.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An entrance as the command line asks for it.
struct EntranceSpec {
    option: &'static str,
    kind: EntranceKind,
    at: SocketAddr,
}

pub(super) fn client(args: &ProxyClientArgs) -> Result<(), CommandFailure> {
    let specs = entrances(args)?;
    let target = PeerTarget::new(&args.peer, &args.connect)?;
    let limits = PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, bidirectional: 0, unidirectional: 0 };
    let mut end = EndpointSpec::new(&args.endpoint, PROXY, limits)?;
    reserve_stream_windows(&mut end.config.settings);
    let (proxy_log, dialer) = (Arc::new(ProxyLog::default()), Dialer { target, end, endpoint: RefCell::new(None) });
    let ended = run(async {
        let entrances = specs.iter().map(open).collect::<Result<Vec<ProxyListener>, CommandFailure>>()?;
        let log = if args.verbose { proxy_log.log_verbosely() } else { proxy_log.log() };
        Ok(carry(entrances, || dialer.connect(), log).await)
    })?;
    if let Some(endpoint) = dialer.endpoint.take() {
        endpoint.shut_down(CloseCode::NONE, if ended.is_none() { "the proxy client was interrupted" } else { "" });
    }
    match ended {
        None => Err(CommandFailure::Interrupted(format!("the proxy client ended: {}", proxy_log.summary()))),
        Some(Err(failure)) => Err(failure),
        Some(Ok(reason)) => Err(CommandFailure::Run(anyhow::anyhow!(reason))),
    }
}

/// The entrances that the options ask for.
fn entrances(args: &ProxyClientArgs) -> Result<Vec<EntranceSpec>, CommandFailure> {
    let mut entrances = Vec::new();
    for text in &args.socks {
        entrances.push(EntranceSpec { option: "--socks", kind: EntranceKind::Socks, at: entrance("--socks", text)? });
    }
    for text in &args.forward {
        let Some((at, to)) = text.split_once('=') else {
            return Err(CommandFailure::Input(format!(
                "error: --forward {text}: expected ADDR=HOST:PORT, such as 127.0.0.1:5201=server.example:5201"
            )));
        };
        let to: Destination =
            to.parse().map_err(|error| CommandFailure::Input(format!("error: --forward {text}: {error}")))?;
        entrances.push(EntranceSpec {
            option: "--forward",
            kind: EntranceKind::Forward(to),
            at: entrance("--forward", at)?,
        });
    }
    for text in &args.transparent {
        entrances.push(EntranceSpec {
            option: "--transparent",
            kind: EntranceKind::Transparent,
            at: entrance("--transparent", text)?,
        });
    }
    Ok(entrances)
}

/// An address to listen at; a port alone is one of 127.0.0.1.
fn entrance(option: &str, text: &str) -> Result<SocketAddr, CommandFailure> {
    let at = text.parse().or_else(|_| text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()));
    at.map_err(|_| {
        CommandFailure::Input(format!(
            "error: {option} {text}: expected an address and a port, such as 127.0.0.1:1080 or [::1]:1080, or a port alone"
        ))
    })
}

fn open(spec: &EntranceSpec) -> Result<ProxyListener, CommandFailure> {
    let EntranceSpec { option, kind, at } = spec;
    let entrance = ProxyListener::open(kind.clone(), *at)
        .map_err(|error| CommandFailure::Input(format!("error: {option} {at}: cannot listen there: {error}")))?;
    let at = entrance.address();
    print_stderr(&match kind {
        EntranceKind::Socks => format!("SOCKS 5 at {at}"),
        EntranceKind::Forward(to) => format!("{at} is {to} at the proxy server"),
        EntranceKind::Transparent => format!("redirected connections at {at}"),
    });
    if !at.ip().to_canonical().is_loopback() && *kind != EntranceKind::Transparent {
        print_stderr(&format!(
            "warning: {option} {at} is open to any client that reaches that address, without authentication; use a \
             loopback address to prevent this"
        ));
    }
    Ok(entrance)
}

/// Calls the proxy server, again and again.
struct Dialer {
    target: PeerTarget,
    end: EndpointSpec,
    /// The endpoint of the last connection.
    endpoint: RefCell<Option<Endpoint>>,
}

impl Dialer {
    /// Calls one address after the other until one lets this end in.
    async fn connect(&self) -> Result<Connection, ConnectFailure> {
        let addresses = self.target.addresses();
        for &address in addresses {
            match timeout(CONNECT_TIMEOUT, self.connect_to(address)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Err(_) | Ok(Err(Error::Closed(Closed::TimedOut))) => {}
                Ok(Err(error)) => return Err(self.refusal(error, address)),
            }
        }
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Err(ConnectFailure::Temporary(format!("nothing answers at {}", tried.join(", "))))
    }

    async fn connect_to(&self, address: SocketAddr) -> Result<Connection, Error> {
        let secret: Option<(TicketId, Secret)> = match &self.target {
            PeerTarget::Ticket(ticket) => Some((ticket.id, ticket.secret.clone())),
            PeerTarget::Address { .. } => None,
        };
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::client((any, 0).into(), &self.end.config)?;
        let connection = endpoint.connect(address, self.target.trust(), secret).await?;
        connection.admitted().await?;
        self.endpoint.replace(Some(endpoint));
        Ok(connection)
    }

    /// Classifies a failed call: whether waiting can resolve it.
    fn refusal(&self, error: Error, address: SocketAddr) -> ConnectFailure {
        match (&error, &self.target) {
            (Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. }), PeerTarget::Ticket(_)) => {
                ConnectFailure::Permanent(format!(
                    "the proxy server at {address} does not take this ticket: it has expired, or the proxy server was restarted; with \
                 --ticket FILE it keeps its ticket"
                ))
            }
            (Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. }), PeerTarget::Address { .. }) => {
                let own = self.end.config.identity.fingerprint();
                ConnectFailure::Permanent(format!(
                    "the proxy server at {address} does not admit this client: give its ticket, or start it with --allow-key {own}"
                ))
            }
            // Another key, or another program, at that address.
            (Error::Closed(Closed::Locally { .. } | Closed::Service { .. }), _) => {
                let text = failure(&SessionError::from(error), &self.target, address, &self.end, PURPOSE).to_string();
                ConnectFailure::Permanent(text.trim_start_matches("error: ").to_owned())
            }
            (error, _) => ConnectFailure::Temporary(format!("{address}: {error}")),
        }
    }
}
