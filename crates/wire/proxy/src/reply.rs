//! Reasons why a destination is not reached, in SOCKS's terms (RFC 1928 §6).

use std::io;

/// SOCKS's replies. A stream's answer has the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SocksReply {
    /// The connection is established.
    Succeeded = 0,
    /// A failure other than the following.
    Failure = 1,
    /// The proxy server does not allow this destination.
    NotAllowed = 2,
    /// No route to that network, or none to the proxy server.
    NetworkUnreachable = 3,
    /// The host does not answer, or its name is not known.
    HostUnreachable = 4,
    /// The port refuses connections.
    Refused = 5,
    /// The TTL of packets expired. Never sent here.
    TtlExpired = 6,
    /// A command other than a connection was requested.
    CommandNotSupported = 7,
    /// The type of address does not exist.
    AddressNotSupported = 8,
}

impl SocksReply {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Succeeded,
        Self::Failure,
        Self::NotAllowed,
        Self::NetworkUnreachable,
        Self::HostUnreachable,
        Self::Refused,
        Self::TtlExpired,
        Self::CommandNotSupported,
        Self::AddressNotSupported,
    ];

    /// Returns the reply of a code. An unknown one is a failure.
    pub fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Failure)
    }

    /// Its code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the reply for a failed connection attempt.
    pub fn of_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::NetworkUnreachable => Self::NetworkUnreachable,
            io::ErrorKind::HostUnreachable | io::ErrorKind::TimedOut => Self::HostUnreachable,
            _ => Self::Failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for (code, reply) in SocksReply::ALL.into_iter().enumerate() {
            assert_eq!((usize::from(reply.code()), SocksReply::from_code(code as u8)), (code, reply));
        }
        assert_eq!(SocksReply::from_code(200), SocksReply::Failure);
    }
}
