//! Messages of a SOCKS 5 client and their replies (RFC 1928), without sockets: no authentication, and only connections.

use thiserror::Error;

use crate::destination::{Destination, DestinationError};
use crate::parse::Parsed;
use crate::reply::SocksReply;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// The request of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocksRequest {
    /// A connection to this destination.
    Connect(Destination),
    /// Another command: a port to be reached at (BIND), or packets (UDP ASSOCIATE).
    Other {
        /// The command's number.
        command: u8,
    },
}

/// An error in a client's message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SocksError {
    /// Another version, or another protocol.
    #[error("byte {version} is where SOCKS's version should be, which is 5")]
    Version {
        /// The byte.
        version: u8,
    },
    /// The reserved byte is not 0.
    #[error("the reserved byte of the request is {byte}, not 0")]
    Reserved {
        /// The byte.
        byte: u8,
    },
    /// The destination is invalid.
    #[error("{0}")]
    Destination(#[from] DestinationError),
}

impl SocksError {
    /// Returns the reply to the client; none if it may not even use SOCKS.
    pub fn reply(&self) -> Option<SocksReply> {
        match self {
            Self::Version { .. } => None,
            Self::Destination(DestinationError::Kind { .. }) => Some(SocksReply::AddressNotSupported),
            Self::Reserved { .. } | Self::Destination(_) => Some(SocksReply::Failure),
        }
    }
}

fn version(bytes: &[u8]) -> Result<(), SocksError> {
    match bytes.first() {
        Some(&version) if version != VERSION => Err(SocksError::Version { version }),
        _ => Ok(()),
    }
}

/// Authentication method of a client (RFC 1928 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The client can do without authentication.
    NoAuthentication,
    /// The client offers no supported method.
    NoneAcceptable,
}

/// Reads a client's first message: its authentication methods. Returns the one to use.
///
/// # Errors
/// If it does not speak SOCKS 5.
pub fn greeting(bytes: &[u8]) -> Result<Parsed<Method>, SocksError> {
    version(bytes)?;
    let Some(&count) = bytes.get(1) else { return Ok(Parsed::Need(2)) };
    let used = 2 + usize::from(count);
    Ok(match bytes.get(2..used) {
        Some(methods) if methods.contains(&NO_AUTHENTICATION) => Parsed::Done(Method::NoAuthentication, used),
        Some(_) => Parsed::Done(Method::NoneAcceptable, used),
        None => Parsed::Need(used),
    })
}

/// Returns the reply to that. The client must close if no method is acceptable.
pub fn method(method: Method) -> [u8; 2] {
    match method {
        Method::NoAuthentication => [VERSION, NO_AUTHENTICATION],
        Method::NoneAcceptable => [VERSION, NO_METHOD],
    }
}

/// Reads a request.
///
/// # Errors
/// If it is none.
pub fn request(bytes: &[u8]) -> Result<Parsed<SocksRequest>, SocksError> {
    version(bytes)?;
    let (Some(&command), Some(&reserved)) = (bytes.get(1), bytes.get(2)) else { return Ok(Parsed::Need(3)) };
    if reserved != 0 {
        return Err(SocksError::Reserved { byte: reserved });
    }
    if command != CONNECT {
        // Its arguments do not matter; the port may be 0.
        return Ok(Parsed::Done(SocksRequest::Other { command }, 3));
    }
    Ok(Destination::read(&bytes[3..])?.behind(3).map(SocksRequest::Connect))
}

/// Returns the reply to a request. Its address is 0.0.0.0:0: the real one is the proxy server's, and means nothing here.
pub fn answer(reply: SocksReply) -> [u8; 10] {
    [VERSION, reply.code(), 0, 1, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_client_is_understood() {
        assert_eq!(greeting(&[5, 2, 2, 0, 5]), Ok(Parsed::Done(Method::NoAuthentication, 4)));
        assert_eq!(greeting(&[5, 1, 2]), Ok(Parsed::Done(Method::NoneAcceptable, 3)));
        assert_eq!(greeting(&[5, 0]), Ok(Parsed::Done(Method::NoneAcceptable, 2)));
        assert_eq!(greeting(&[]), Ok(Parsed::Need(2)));
        assert_eq!(greeting(b"GET / HTTP/1.1"), Err(SocksError::Version { version: b'G' }));
        let there = "192.0.2.1:80".parse().unwrap();
        assert_eq!(request(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]), Ok(Parsed::Done(SocksRequest::Connect(there), 10)));
        assert_eq!(request(&[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]), Ok(Parsed::Done(SocksRequest::Other { command: 2 }, 3)));
        assert_eq!(request(&[5, 1, 0, 9]).unwrap_err().reply(), Some(SocksReply::AddressNotSupported));
        assert_eq!(request(&[5, 1, 1]).unwrap_err().reply(), Some(SocksReply::Failure));
        assert_eq!(request(&[4, 1]).unwrap_err().reply(), None);
        assert_eq!(method(Method::NoAuthentication), [5, 0]);
        assert_eq!(method(Method::NoneAcceptable), [5, 255]);
        assert_eq!(answer(SocksReply::Refused)[..2], [5, 5]);
    }

    proptest! {
        #[test]
        fn needed_lengths_exceed_the_input(bytes in proptest::collection::vec(any::<u8>(), 0..300), speaks in any::<bool>()) {
            let bytes = if speaks { [&[5, 1, 0][..], &bytes].concat() } else { bytes };
            match greeting(&bytes) {
                Ok(Parsed::Need(need)) => prop_assert!(need > bytes.len() && need <= 257),
                Ok(Parsed::Done(_, used)) => prop_assert!(used <= bytes.len()),
                Err(_) => {}
            }
            match request(&bytes) {
                Ok(Parsed::Need(need)) => prop_assert!(need > bytes.len() && need <= 262),
                Ok(Parsed::Done(_, used)) => {
                    prop_assert!(used <= bytes.len());
                    // With one byte less the parser requests more.
                    prop_assert!(matches!(request(&bytes[..used - 1]), Ok(Parsed::Need(_))));
                }
                Err(_) => {}
            }
        }
    }
}
