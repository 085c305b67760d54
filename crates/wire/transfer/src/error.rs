//! Errors that end a transfer.

use std::io;
use std::path::PathBuf;

use proto::closed::{CloseCode, Closed};
use thiserror::Error;

/// The reason why a transfer was aborted. Verified data are kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection.
    #[error("{0}")]
    Transport(#[from] transport::Error),
    /// The peer violates the protocol: the rest of a sentence about it.
    #[error("the peer {0}")]
    Peer(String),
    /// The watch ended the transfer.
    #[error("interrupted")]
    Interrupted,
    /// The folder, or something of this machine.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Local {
        /// The action.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder is in use.
    #[error("{0}")]
    File(#[from] files::Error),
}

impl Error {
    pub(crate) fn local(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Local { action, path, source }
    }

    /// Converts an error of reading or writing a stream.
    pub(crate) fn stream(error: io::Error) -> Self {
        match error.downcast::<transport::Error>() {
            Ok(error) => Self::Transport(error),
            Err(error) => Self::Transport(transport::Error::Socket(error)),
        }
    }

    /// Returns whether the peer has closed the connection because all is complete. A peer that was interrupted sends a
    /// reason.
    pub(crate) fn is_clean_close(&self) -> bool {
        let Self::Transport(transport::Error::Closed(Closed::ByPeer { code, reason })) = self else { return false };
        *code == CloseCode::NONE && reason.is_empty()
    }

    /// The code with which the connection is closed.
    pub fn code(&self) -> CloseCode {
        if matches!(self, Self::Interrupted) { CloseCode::NONE } else { CloseCode::APPLICATION }
    }

    /// Returns the reason for the peer. It does not contain local paths.
    pub fn to_peer(&self) -> String {
        match self {
            // A description of the peer's error is sent to the peer.
            Self::Peer(violation) => format!("this peer {violation}"),
            Self::Local { action, source, .. } => format!("the other end cannot {action} a file: {source}"),
            Self::File(_) => "the other end cannot use its folder".to_owned(),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_without_a_reason_is_clean() {
        let closed =
            |code, reason: &str| Error::from(transport::Error::Closed(Closed::ByPeer { code, reason: reason.into() }));
        assert!(closed(CloseCode::NONE, "").is_clean_close());
        assert!(!closed(CloseCode::NONE, "interrupted").is_clean_close());
        assert!(!closed(CloseCode::APPLICATION, "").is_clean_close());
        assert!(!Error::from(transport::Error::Closed(Closed::TimedOut)).is_clean_close());
        assert!(!Error::Interrupted.is_clean_close());
    }
}
