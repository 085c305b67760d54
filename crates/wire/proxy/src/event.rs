//! Events that an end of the proxy reports to its caller.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::destination::Destination;
use crate::reply::SocksReply;

/// An event.
#[derive(Clone, Debug)]
pub enum Event {
    /// The proxy client has a connection to the proxy server.
    Connected,
    /// The proxy client has lost its connection, or failed to connect, and retries after a pause.
    Disconnected {
        /// The reason.
        why: String,
        /// The pause until it retries.
        again: Duration,
    },
    /// A TCP connection reached its destination, as far as this end knows.
    Opened {
        /// The client.
        from: Arc<str>,
        /// Its destination.
        to: Destination,
        /// The destination's address; only the proxy server knows it.
        at: Option<SocketAddr>,
    },
    /// A TCP connection was refused.
    Refused {
        /// The client.
        from: Arc<str>,
        /// Its destination, if that was named.
        to: Option<Destination>,
        /// The reason, as a SOCKS reply.
        reply: SocksReply,
        /// The reason, in words.
        message: String,
    },
    /// A TCP connection that was opened has ended.
    Ended {
        /// The client.
        from: Arc<str>,
        /// Its destination.
        to: Destination,
        /// Bytes from the TCP connection at this end.
        taken: u64,
        /// Bytes to it.
        given: u64,
        /// The reason for a reset; none if both directions ended in order.
        error: Option<String>,
    },
    /// The system accepts no connections of programs; this is retried.
    NotAccepted {
        /// The listener's address.
        at: SocketAddr,
        /// The system's error.
        why: String,
    },
}

/// Event callback.
pub type EventCallback = Arc<dyn Fn(Event) + Send + Sync>;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected to the proxy server"),
            Self::Disconnected { why, again } => {
                write!(f, "no connection to the proxy server: {why}; the next attempt is in {} ms", again.as_millis())
            }
            Self::Opened { from, to, at: Some(at) } => write!(f, "{from}: opened {to} at {at}"),
            Self::Opened { from, to, at: None } => write!(f, "{from}: opened {to}"),
            Self::Refused { from, to: Some(to), message, .. } => write!(f, "{from}: {to} refused: {message}"),
            Self::Refused { from, to: None, message, .. } => write!(f, "{from}: refused: {message}"),
            Self::Ended { from, to, taken, given, error } => {
                write!(f, "{from}: ended {to}, {taken} B taken, {given} B given")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ", reset: {error}"))
            }
            Self::NotAccepted { at, why } => write!(f, "{at}: no connection could be accepted: {why}"),
        }
    }
}
