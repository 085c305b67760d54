//! Reasons for the end of a connection. `docs/src/transport.md`, "Ending".

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;

use flow::AckError;

use crate::blocks::BlockError;
use crate::frame::{FrameError, MAX_REASON};
use crate::parameters::ParameterError;
use crate::service::{NO_SUCH_SERVICE, Service};
use crate::streams::StreamError;

/// The error code of a CLOSE frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CloseCode(pub u64);

impl CloseCode {
    /// The application is done.
    pub const NONE: Self = Self(0);
    /// Unknown client.
    pub const REFUSED: Self = Self(1);
    /// Too many connections.
    pub const BUSY: Self = Self(2);
    /// A frame that cannot be read, or is not allowed there.
    pub const FRAME: Self = Self(3);
    /// An acknowledgement that cannot be true.
    pub const ACK: Self = Self(4);
    /// A stream that contradicts itself.
    pub const STREAM: Self = Self(5);
    /// More bytes, streams, paths or blocks than were allowed.
    pub const FLOW: Self = Self(6);
    /// A transport parameter that is missing or out of range.
    pub const PARAMETER: Self = Self(7);
    /// Too many packets that do not open.
    pub const KEYS: Self = Self(8);
    /// Failure of this endpoint.
    pub const INTERNAL: Self = Self(9);
    /// Maximum lifetime of this endpoint.
    pub const AGE: Self = Self(10);
    /// TLS alert 0; alert n has this code plus n.
    pub const TLS: Self = Self(0x100);
    /// The TLS alert for a service that is not offered (RFC 7301 §3.2). The reason names the one that is.
    pub const NO_SUCH_SERVICE: Self = Self(Self::TLS.0 + NO_SUCH_SERVICE as u64);
    /// The first of the application's own codes.
    pub const APPLICATION: Self = Self(0x1000);

    fn name(self) -> &'static str {
        match self.0 {
            0 => "none",
            1 => "refused",
            2 => "busy",
            3 => "frame",
            4 => "ack",
            5 => "stream",
            6 => "flow",
            7 => "parameter",
            8 => "keys",
            9 => "internal",
            10 => "age",
            0x100..0x200 => "tls",
            0x1000.. => "application",
            _ => "unknown",
        }
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0x100..0x200 => write!(f, "tls {}", self.0 - 0x100),
            0x1000.. => write!(f, "application {}", self.0 - 0x1000),
            _ => f.write_str(self.name()),
        }
    }
}

/// The reason for which a connection is closed or closing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// Closed by this end.
    Locally {
        /// Error code.
        code: CloseCode,
        /// Reason as text.
        reason: String,
    },
    /// Closed by the peer.
    ByPeer {
        /// Error code.
        code: CloseCode,
        /// Reason as text, from the peer.
        reason: String,
    },
    /// Idle timeout, or handshake timeout. The idle timeout is the one that both ends agreed on. The handshake timeout
    /// is 10 s, or less at a listener that needs the slot for another client.
    TimedOut,
    /// Stateless reset: the peer has restarted, or has discarded the connection.
    Reset,
    /// The peer does not support this version.
    Version,
    /// The client requested one service, and the listener offers another. Neither end is authenticated at this point.
    Service {
        /// Service that the caller requested; none if it does not belong to this protocol.
        requested: Option<Service>,
        /// Service that the listener offers; none if it does not belong to this protocol.
        offered: Option<Service>,
    },
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (label, code, reason) = match self {
            Self::Locally { code, reason } => ("this end", code, reason),
            Self::ByPeer { code, reason } => ("the peer", code, reason),
            Self::TimedOut => return f.write_str("the peer has not answered"),
            Self::Reset => return f.write_str("the peer does not know this connection any more"),
            Self::Version => return f.write_str("the peer does not speak this version of the protocol"),
            Self::Service { requested, offered } => {
                let (requested, offered) = (ServiceName(*requested), ServiceName(*offered));
                return write!(f, "the client requested {requested}, and the listener offers {offered}");
            }
        };
        write!(f, "{label} closed the connection")?;
        match (*code == CloseCode::NONE, reason.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => write!(f, ": {}", reason.escape_default()),
            (false, true) => write!(f, ": {code}"),
            (false, false) => write!(f, ": {code} ({})", reason.escape_default()),
        }
    }
}

/// A service in words.
struct ServiceName(Option<Service>);

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(service) => service.fmt(f),
            None => f.write_str("something else"),
        }
    }
}

/// An error that ends the connection: the code for the peer, and the reason as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CloseReason {
    pub(crate) code: CloseCode,
    pub(crate) reason: String,
}

impl CloseReason {
    pub(crate) fn new(code: CloseCode, reason: &str) -> Self {
        let end = (0..=reason.len().min(MAX_REASON)).rev().find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
        Self { code, reason: reason[..end].to_owned() }
    }
}

impl From<FrameError> for CloseReason {
    fn from(error: FrameError) -> Self {
        Self::new(CloseCode::FRAME, &error.to_string())
    }
}

impl From<AckError> for CloseReason {
    fn from(error: AckError) -> Self {
        Self::new(CloseCode::ACK, &error.to_string())
    }
}

impl From<StreamError> for CloseReason {
    fn from(error: StreamError) -> Self {
        Self::new(CloseCode(error.code()), &error.to_string())
    }
}

impl From<BlockError> for CloseReason {
    fn from(error: BlockError) -> Self {
        Self::new(CloseCode(error.code()), &error.to_string())
    }
}

impl From<ParameterError> for CloseReason {
    fn from(error: ParameterError) -> Self {
        Self::new(CloseCode::PARAMETER, &error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_cut_at_a_character_boundary() {
        let close_reason = CloseReason::new(CloseCode::NONE, &"ä".repeat(200));
        assert_eq!(close_reason.reason, "ä".repeat(128));
        let closed = Closed::ByPeer { code: CloseCode(0x1007), reason: "so\n".to_owned() };
        assert_eq!(closed.to_string(), "the peer closed the connection: application 7 (so\\n)");
    }
}
