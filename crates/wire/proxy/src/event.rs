//! What an end of the proxy tells whoever runs it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::destination::Destination;
use crate::reply::Reply;

/// Something that has happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The near end has a connection to the far end.
    Linked,
    /// It has none any more, or got none, and tries again after so long.
    Unlinked {
        /// Why.
        why: String,
        /// After how long it tries again.
        again: Duration,
    },
    /// A TCP connection goes where it was to go, as far as this end knows.
    Opened {
        /// Who asked for it.
        from: Arc<str>,
        /// Where it goes.
        to: Destination,
        /// The address there; the far end alone knows it.
        at: Option<SocketAddr>,
    },
    /// It does not.
    Refused {
        /// Who asked for it.
        from: Arc<str>,
        /// Where it was to go, if that was said.
        to: Option<Destination>,
        /// Why, in SOCKS's terms.
        reply: Reply,
        /// Why, in words.
        words: String,
    },
    /// A TCP connection that was opened has ended.
    Ended {
        /// Who asked for it.
        from: Arc<str>,
        /// Where it went.
        to: Destination,
        /// Bytes from the TCP connection at this end.
        taken: u64,
        /// Bytes to it.
        given: u64,
        /// Why it was reset; none if both directions ended in order.
        trouble: Option<String>,
    },
    /// The system gives no connections where programs come in; this is tried again.
    NotAccepted {
        /// Where.
        at: SocketAddr,
        /// What the system says.
        why: String,
    },
}

/// Who is told.
pub type Log = Arc<dyn Fn(Event) + Send + Sync>;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linked => f.write_str("connected to the far end"),
            Self::Unlinked { why, again } => {
                write!(f, "no connection to the far end: {why}; the next attempt is in {} ms", again.as_millis())
            }
            Self::Opened { from, to, at: Some(at) } => write!(f, "{from}: opened {to} at {at}"),
            Self::Opened { from, to, at: None } => write!(f, "{from}: opened {to}"),
            Self::Refused { from, to: Some(to), words, .. } => write!(f, "{from}: {to} refused: {words}"),
            Self::Refused { from, to: None, words, .. } => write!(f, "{from}: refused: {words}"),
            Self::Ended { from, to, taken, given, trouble } => {
                write!(f, "{from}: ended {to}, {taken} B taken, {given} B given")?;
                trouble.as_ref().map_or(Ok(()), |trouble| write!(f, ", reset: {trouble}"))
            }
            Self::NotAccepted { at, why } => write!(f, "{at}: no connection could be accepted: {why}"),
        }
    }
}
