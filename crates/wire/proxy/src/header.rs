//! The beginning of a stream: the destination from the proxy client, and the answer of the proxy server. The bytes after that
//! are the connection's own.

use thiserror::Error;

use crate::destination::{Destination, DestinationError};
use crate::parse::Parsed;
use crate::reply::SocksReply;

/// The version of both.
pub const VERSION: u8 = 1;
/// Maximum length of the message of an answer, in bytes.
pub const MAX_MESSAGE: usize = 255;

/// An error in the beginning of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HeaderError {
    /// Another version.
    #[error("the peer's proxy speaks version {version}, this one speaks version {VERSION}")]
    Version {
        /// The peer's.
        version: u8,
    },
    /// The destination is invalid.
    #[error("{0}")]
    Destination(#[from] DestinationError),
}

/// The answer to a stream's destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DestinationReply {
    /// The SOCKS reply.
    pub reply: SocksReply,
    /// The reason for a refusal, for people: at most [`MAX_MESSAGE`] bytes, no control characters.
    pub message: String,
}

fn version(bytes: &[u8]) -> Result<(), HeaderError> {
    match bytes.first() {
        Some(&version) if version != VERSION => Err(HeaderError::Version { version }),
        _ => Ok(()),
    }
}

/// Reads a stream's destination.
///
/// # Errors
/// If that cannot be understood.
pub fn destination(bytes: &[u8]) -> Result<Parsed<Destination>, HeaderError> {
    version(bytes)?;
    Ok(Destination::read(bytes.get(1..).unwrap_or_default())?.behind(1))
}

/// Writes a stream's destination.
pub fn put_destination(destination: &Destination) -> Vec<u8> {
    let mut out = vec![VERSION];
    destination.put(&mut out);
    out
}

impl DestinationReply {
    /// Creates an answer with this message, cut to the maximum length.
    pub fn new(reply: SocksReply, message: &str) -> Self {
        let mut clean = String::new();
        for letter in message.chars().filter(|letter| !letter.is_control()) {
            if clean.len() + letter.len_utf8() > MAX_MESSAGE {
                break;
            }
            clean.push(letter);
        }
        Self { reply, message: clean }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// If the version is another one.
    pub fn read(bytes: &[u8]) -> Result<Parsed<Self>, HeaderError> {
        version(bytes)?;
        let (Some(&code), Some(&len)) = (bytes.get(1), bytes.get(2)) else { return Ok(Parsed::Need(3)) };
        let used = 3 + usize::from(len);
        let Some(message) = bytes.get(3..used) else { return Ok(Parsed::Need(used)) };
        Ok(Parsed::Done(Self::new(SocksReply::from_code(code), &String::from_utf8_lossy(message)), used))
    }

    /// Writes it.
    pub fn put(&self) -> Vec<u8> {
        // A replacement character may be longer than the invalid bytes that it replaces.
        let message = &self.message.as_bytes()[..self.message.len().min(MAX_MESSAGE)];
        [&[VERSION, self.reply.code(), message.len() as u8], message].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn destinations_are_read_as_written(bytes in proptest::collection::vec(any::<u8>(), 0..300), known in any::<bool>()) {
            let bytes = if known { [&[VERSION], &bytes[..]].concat() } else { bytes };
            match destination(&bytes) {
                Ok(Parsed::Need(need)) => prop_assert!(need > bytes.len() && need <= 260),
                Ok(Parsed::Done(read, used)) => {
                    let put = put_destination(&read);
                    prop_assert!(used <= bytes.len());
                    prop_assert_eq!(destination(&put), Ok(Parsed::Done(read, put.len())));
                }
                Err(_) => {}
            }
        }

        #[test]
        fn answers_are_read_as_written(code in 0u8..9, message in ".{0,300}") {
            let answer = DestinationReply::new(SocksReply::from_code(code), &message);
            let put = answer.put();
            for cut in 0..put.len() {
                prop_assert!(matches!(DestinationReply::read(&put[..cut]), Ok(Parsed::Need(need)) if need > cut && need <= put.len()));
            }
            prop_assert_eq!(DestinationReply::read(&put), Ok(Parsed::Done(answer, put.len())));
        }

        #[test]
        fn any_answer_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), known in any::<bool>()) {
            let bytes = if known { [&[VERSION], &bytes[..]].concat() } else { bytes };
            if let Ok(Parsed::Done(answer, used)) = DestinationReply::read(&bytes) {
                prop_assert!(used <= bytes.len() && answer.message.len() <= MAX_MESSAGE);
                prop_assert!(!answer.message.chars().any(char::is_control));
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let said = destination(&[2]).unwrap_err().to_string();
        assert_eq!(said, "the peer's proxy speaks version 2, this one speaks version 1");
    }
}
