//! Callers: they try a listener's addresses until one answers, and explain failures with a remedy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use proto::closed::{CloseCode, Closed};
use proto::secret::Secret;
use proto::ticket::TicketId;
use transport::{Connection, Endpoint, Error};

use super::access::PeerTarget;
use super::end::EndpointSpec;
use super::quantity::in_words;
use super::session_error::SessionError;
use super::wait::wait_for;
use crate::exit::{CommandFailure, print_stderr};
use crate::interrupt::interrupted;
use study::Stopwatch;

/// The time after which an address that does not answer is given up, where there is another one.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that a listener has accepted.
pub(crate) struct OutgoingConnection {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Connection,
    /// The address that answered.
    pub(crate) address: SocketAddr,
}

/// A failed connection attempt.
pub(crate) enum ConnectError {
    /// Trouble with the connection to this address.
    Connection { error: SessionError, address: SocketAddr },
    /// Anything else.
    Other(CommandFailure),
}

impl ConnectError {
    /// Describes the failure for the user. `purpose` is the common task of both ends, such as `the test`.
    pub(crate) fn explained(self, target: &PeerTarget, end: &EndpointSpec, purpose: &str) -> CommandFailure {
        match self {
            Self::Connection { error, address } => failure(&error, target, address, end, purpose),
            Self::Other(failure) => failure,
        }
    }
}

/// Connects as [`try_connect`] does. `purpose` is the common task of both ends, such as `the test`.
///
/// # Errors
/// If no address answers, or a peer other than the expected one does.
pub(crate) fn connect(
    target: &PeerTarget,
    end: &EndpointSpec,
    purpose: &str,
) -> Result<OutgoingConnection, CommandFailure> {
    try_connect(target, end).map_err(|error| error.explained(target, end, purpose))
}

/// Connects to one address after the other until one answers.
///
/// # Errors
/// If no address answers, if a peer other than the expected one does, or if the peer refuses the connection at once.
pub(crate) fn try_connect(target: &PeerTarget, end: &EndpointSpec) -> Result<OutgoingConnection, ConnectError> {
    let secret: Option<(TicketId, Secret)> = match target {
        PeerTarget::Ticket(ticket) => Some((ticket.id, ticket.secret.clone())),
        PeerTarget::Address { .. } => None,
    };
    let addresses = target.addresses();
    for (index, &address) in addresses.iter().enumerate() {
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::client((any, 0).into(), &end.config).map_err(|error| {
            ConnectError::Other(CommandFailure::Run(anyhow::anyhow!("cannot open a UDP socket: {error}")))
        })?;
        let (clock, has_more) = (Stopwatch::start(), index + 1 < addresses.len());
        let poll = || {
            if interrupted() {
                return Err(SessionError::Interrupted);
            }
            let is_late = has_more && clock.elapsed() >= ADDRESS_TIMEOUT;
            if is_late { Err(SessionError::Transport(Error::Closed(Closed::TimedOut))) } else { Ok(()) }
        };
        let connected = wait_for(endpoint.connect(address, target.trust(), secret.clone()), poll);
        match connected.and_then(|outcome| outcome.map_err(SessionError::from)) {
            Ok(connection) => return Ok(OutgoingConnection { endpoint, connection, address }),
            Err(SessionError::Transport(Error::Closed(Closed::TimedOut))) if has_more => {
                print_stderr(&format!("nothing answers at {address}; trying {}", addresses[index + 1]));
            }
            Err(SessionError::Transport(Error::Closed(Closed::TimedOut))) => endpoint.shut_down(CloseCode::NONE, ""),
            Err(error) => {
                endpoint.shut_down(CloseCode::NONE, &error.close_reason());
                return Err(ConnectError::Connection { error, address });
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

/// Returns the message to a client about trouble with this listener, and a remedy.
pub(crate) fn failure(
    error: &SessionError,
    target: &PeerTarget,
    address: SocketAddr,
    end: &EndpointSpec,
    purpose: &str,
) -> CommandFailure {
    let text = match error {
        SessionError::Interrupted => return CommandFailure::Interrupted(format!("{purpose} was not finished")),
        SessionError::Transport(Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. })) => match target {
            PeerTarget::Ticket(_) => format!(
                "the listener at {address} does not take this ticket: it was used or has expired, so restart the listener \
                 (--reusable lets a ticket be used again, --ticket-lifetime sets how long)"
            ),
            PeerTarget::Address { .. } => format!(
                "the listener at {address} does not admit this client: give its ticket, or start it with --allow-key {}",
                end.config.identity.fingerprint()
            ),
        },
        SessionError::Transport(Error::Closed(Closed::Service { offered: here, .. })) => {
            format!("the listener at {address} {}", end.pair.wrong_service(*here))
        }
        SessionError::Transport(Error::Closed(Closed::Locally { code, .. })) if is_tls(*code) => {
            let source = if matches!(target, PeerTarget::Ticket(_)) { "the ticket" } else { "--fingerprint" };
            format!(
                "the listener at {address} does not have the key in {source}: it is another machine, or the listener has \
                 a new key; use its new ticket if you expect this"
            )
        }
        SessionError::Transport(Error::Closed(Closed::TimedOut)) => format!(
            "the listener at {address} does not answer any more (--idle-timeout {}): its process has ended, or the network is cut",
            in_words(end.idle)
        ),
        other => format!("{purpose} with {address} did not end well: {other}"),
    };
    CommandFailure::Run(anyhow::anyhow!(text))
}

/// Returns whether TLS has ended the connection.
fn is_tls(code: CloseCode) -> bool {
    (CloseCode::TLS.0..CloseCode::TLS.0 + 0x100).contains(&code.0)
}
