//! Failures of a test.

use std::fmt;
use std::time::Duration;

use proto::closed::{CloseCode, Closed};
use transport::Error;

use super::quantity::in_words;

/// A failure of a test.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// The connection.
    Transport(Error),
    /// A violation of the protocol by the peer.
    Peer(String),
    /// No progress for this long.
    Stalled {
        /// The step that was waited for.
        phase: &'static str,
        time: Duration,
    },
    /// Not ended within this time.
    TimedOut(Duration),
    /// Ctrl-C.
    Interrupted,
}

impl From<Error> for SessionError {
    fn from(error: Error) -> Self {
        Self::Transport(error)
    }
}

impl SessionError {
    /// The code with which the connection is closed.
    pub(crate) fn code(&self) -> CloseCode {
        if matches!(self, Self::Interrupted) { CloseCode::NONE } else { CloseCode::APPLICATION }
    }

    /// Returns the reason that is sent to the peer.
    pub(crate) fn close_reason(&self) -> String {
        match self {
            // The peer's own mistake is reported to the peer.
            Self::Peer(message) => format!("this peer {message}"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(Error::Closed(Closed::TimedOut)) => {
                f.write_str("the peer does not answer any more: its process has ended, or the network is cut")
            }
            Self::Transport(error) => error.fmt(f),
            Self::Peer(message) => write!(f, "the peer {message}"),
            Self::Stalled { phase, time } => {
                write!(f, "nothing has moved for {}, while this end waited for {phase}", in_words(*time))
            }
            Self::TimedOut(time) => write!(f, "not ended within {}", in_words(*time)),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}
