//! Callers: they try a listener's addresses until one answers, and explain failures with a remedy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use proto::closed::{CloseCode, Closed};
use proto::secret::Secret;
use proto::ticket::TicketId;
use transport::{Connection, Endpoint, Error};

use super::access::PeerTarget;
use super::end::EndpointSpec;
use super::patience::wait_for;
use super::quantity::in_words;
use super::session_error::SessionError;
use crate::exit::{CommandFailure, tell};
use crate::interrupt::interrupted;
use study::Stopwatch;

/// The time after which an address that does not answer is given up, where there is another one.
const NEXT_ADDRESS: Duration = Duration::from_secs(3);

/// A call that was answered.
pub(crate) struct Dial {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Connection,
    /// The address that answered.
    pub(crate) address: SocketAddr,
}

/// A failed connection attempt.
pub(crate) enum ConnectError {
    /// Trouble with the connection to this address.
    Connection { trouble: SessionError, address: SocketAddr },
    /// Anything else.
    Other(CommandFailure),
}

impl ConnectError {
    /// Describes the failure for the user. `deed` is the common task of both ends, such as `the test`.
    pub(crate) fn explained(self, way: &PeerTarget, end: &EndpointSpec, deed: &str) -> CommandFailure {
        match self {
            Self::Connection { trouble, address } => failure(&trouble, way, address, end, deed),
            Self::Other(failure) => failure,
        }
    }
}

/// Connects as [`try_connect`] does. `deed` is the common task of both ends, such as `the test`.
///
/// # Errors
/// If no address answers, or a peer other than the expected one does.
pub(crate) fn connect(way: &PeerTarget, end: &EndpointSpec, deed: &str) -> Result<Dial, CommandFailure> {
    try_connect(way, end).map_err(|error| error.explained(way, end, deed))
}

/// Connects to one address after the other until one answers.
///
/// # Errors
/// If no address answers, if a peer other than the expected one does, or if the peer refuses the connection at once.
pub(crate) fn try_connect(way: &PeerTarget, end: &EndpointSpec) -> Result<Dial, ConnectError> {
    let secret: Option<(TicketId, Secret)> = match way {
        PeerTarget::Ticket(ticket) => Some((ticket.id, ticket.secret.clone())),
        PeerTarget::Address { .. } => None,
    };
    let addresses = way.addresses();
    for (at, &address) in addresses.iter().enumerate() {
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::call_from((any, 0).into(), &end.config).map_err(|error| {
            ConnectError::Other(CommandFailure::Run(anyhow::anyhow!("cannot open a UDP socket: {error}")))
        })?;
        let (clock, has_more) = (Stopwatch::start(), at + 1 < addresses.len());
        let look = || {
            if interrupted() {
                return Err(SessionError::Interrupted);
            }
            let is_late = has_more && clock.elapsed() >= NEXT_ADDRESS;
            if is_late { Err(SessionError::Transport(Error::Closed(Closed::Silence))) } else { Ok(()) }
        };
        let connected = wait_for(endpoint.connect(address, way.trust(), secret.clone()), look);
        match connected.and_then(|outcome| outcome.map_err(SessionError::from)) {
            Ok(connection) => return Ok(Dial { endpoint, connection, address }),
            Err(SessionError::Transport(Error::Closed(Closed::Silence))) if has_more => {
                tell(&format!("nothing answers at {address}; trying {}", addresses[at + 1]));
            }
            Err(SessionError::Transport(Error::Closed(Closed::Silence))) => endpoint.end(CloseCode::NONE, ""),
            Err(trouble) => {
                endpoint.end(CloseCode::NONE, &trouble.to_peer());
                return Err(ConnectError::Connection { trouble, address });
            }
        }
    }
    Err(ConnectError::Other(silence(addresses, end)))
}

fn silence(addresses: &[SocketAddr], end: &EndpointSpec) -> CommandFailure {
    let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    CommandFailure::Run(anyhow::anyhow!(
        "nothing answers at {}: see that `{}` runs there, and that firewalls let UDP through",
        tried.join(", "),
        end.pair.listener
    ))
}

/// Returns the message to a caller about trouble with this listener, and a remedy.
pub(crate) fn failure(
    trouble: &SessionError,
    way: &PeerTarget,
    address: SocketAddr,
    end: &EndpointSpec,
    deed: &str,
) -> CommandFailure {
    let text = match trouble {
        SessionError::Interrupted => return CommandFailure::Interrupted(format!("{deed} was not finished")),
        SessionError::Transport(Error::Closed(Closed::There { code: CloseCode::REFUSED, .. })) => match way {
            PeerTarget::Ticket(_) => format!(
                "the listener at {address} does not take this ticket: it was used or has expired, so restart the listener \
                 (--reusable lets a ticket be used again, --ticket-lifetime sets how long)"
            ),
            PeerTarget::Address { .. } => format!(
                "the listener at {address} does not let this caller in: give its ticket, or start it with --allow-key {}",
                end.config.identity.fingerprint()
            ),
        },
        SessionError::Transport(Error::Closed(Closed::Service { here, .. })) => {
            format!("the listener at {address} {}", end.pair.not_here(*here))
        }
        SessionError::Transport(Error::Closed(Closed::Here { code, .. })) if is_tls(*code) => {
            let source = if matches!(way, PeerTarget::Ticket(_)) { "the ticket" } else { "--fingerprint" };
            format!(
                "the listener at {address} does not have the key in {source}: it is another machine, or the listener has \
                 a new key; use its new ticket if you expect this"
            )
        }
        SessionError::Transport(Error::Closed(Closed::Silence)) => format!(
            "the listener at {address} does not answer any more (--idle-timeout {}): its process has ended, or the network is cut",
            in_words(end.idle)
        ),
        other => format!("{deed} with {address} did not end well: {other}"),
    };
    CommandFailure::Run(anyhow::anyhow!(text))
}

/// Returns whether TLS has ended the connection.
fn is_tls(code: CloseCode) -> bool {
    (CloseCode::TLS.0..CloseCode::TLS.0 + 0x100).contains(&code.0)
}
