//! Tickets: one line of text that permits its holder to connect to a listener. `docs/src/transport.md`, "Opening a
//! connection".

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use data_encoding::{BASE32_NOPAD, DecodeKind};
use thiserror::Error;

use crate::identity::Fingerprint;
use crate::narrow::to_u8;
use crate::secret::{SECRET_LEN, Secret, sha256};
use crate::varint::{Reader, Truncated};

/// Prefix of each ticket.
pub const PREFIX: &str = "narrows1";

/// The maximum number of addresses in a ticket.
pub const MAX_ADDRESSES: usize = 8;

/// The longest ticket, in characters: eight addresses of 19 bytes, and 73 other bytes.
pub const MAX: usize = PREFIX.len() + ((MAX_ADDRESSES * 19 + 73) * 8).div_ceil(5);

/// Checksum bytes at the end, which detect typing errors.
const CHECK_LEN: usize = 4;

/// Identifier by which a listener looks up a ticket.
pub type TicketId = [u8; 8];

/// Permission to connect to a listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Addresses of the listener, the best first; 1 to [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
    /// Expiry time, in seconds since 1970; none for never. At least 1.
    pub ends: Option<u64>,
    /// Fingerprint of the listener's key.
    pub fingerprint: Fingerprint,
    /// Ticket ID.
    pub id: TicketId,
    /// Secret with which the client proves that it holds the ticket.
    pub secret: Secret,
}

/// Error for text that is not a ticket.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The text does not begin with [`PREFIX`].
    #[error("a ticket begins with `{PREFIX}`; {}", if found.is_empty() { "this is empty".into() } else { alloc::format!("this begins with `{found}`") })]
    Prefix {
        /// Its first characters.
        found: String,
    },
    /// The text is longer than any ticket.
    #[error("a ticket has at most {MAX} characters; this has {len}")]
    TooLong {
        /// Its length in characters.
        len: usize,
    },
    /// A character is not allowed in tickets.
    #[error("character {place} of the ticket is `{found}`; behind `{PREFIX}` it has a to z and 2 to 7 only")]
    Character {
        /// Position of the character, from 1.
        place: usize,
        /// The character.
        found: char,
    },
    /// The text is truncated, or has extra characters.
    #[error("the ticket is cut short, or has characters too many: copy the whole line")]
    Length,
    /// The checksum does not match: a character was changed.
    #[error("the ticket has a wrong character: its check does not fit; copy the whole line again")]
    Check,
    /// The checksum matches, but the contents are invalid.
    #[error("the ticket has {what}, which is invalid; it may be from a newer version")]
    Contents {
        /// Description of the invalid contents.
        what: &'static str,
    },
}

impl From<Truncated> for TicketError {
    fn from(_: Truncated) -> Self {
        Self::Length
    }
}

impl fmt::Display for Ticket {
    /// Writes the ticket as one line of text. It contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        debug_assert!((1..=MAX_ADDRESSES).contains(&self.addresses.len()), "{} addresses", self.addresses.len());
        bytes.push(to_u8(self.addresses.len().min(MAX_ADDRESSES) as u64));
        for address in self.addresses.iter().take(MAX_ADDRESSES) {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend(ip.octets());
                }
            }
            bytes.extend(address.port().to_be_bytes());
        }
        bytes.extend(self.ends.unwrap_or(0).to_be_bytes());
        bytes.extend(self.fingerprint.bytes());
        bytes.extend(self.id);
        bytes.extend(self.secret.bytes());
        let check = sha256(&[&bytes]);
        bytes.extend(&check[..CHECK_LEN]);
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Reads a ticket. Leading and trailing white space and the case of letters are ignored.
    fn from_str(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        if text.len() > MAX {
            return Err(TicketError::TooLong { len: text.len() });
        }
        let lower = text.to_ascii_lowercase();
        let Some(rest) = lower.strip_prefix(PREFIX) else {
            return Err(TicketError::Prefix { found: text.chars().take(PREFIX.len()).collect() });
        };
        if let Some((place, found)) = rest.chars().enumerate().find(|(_, it)| !matches!(it, 'a'..='z' | '2'..='7')) {
            return Err(TicketError::Character { place: PREFIX.len() + place + 1, found });
        }
        let bytes = BASE32_NOPAD.decode(rest.to_ascii_uppercase().as_bytes()).map_err(|error| match error.kind {
            DecodeKind::Length => TicketError::Length,
            _ => TicketError::Check,
        })?;
        let (bytes, check) = bytes.split_last_chunk::<CHECK_LEN>().ok_or(TicketError::Length)?;
        if sha256(&[bytes])[..CHECK_LEN] != check[..] {
            return Err(TicketError::Check);
        }
        Self::read(&mut Reader::new(bytes))
    }
}

impl Ticket {
    fn read(reader: &mut Reader) -> Result<Self, TicketError> {
        let count = usize::from(reader.byte()?);
        if !(1..=MAX_ADDRESSES).contains(&count) {
            return Err(TicketError::Contents { what: "no address, or more than 8" });
        }
        let mut addresses = Vec::new();
        for _ in 0..count {
            let ip = match reader.byte()? {
                4 => IpAddr::from(reader.array::<4>()?),
                6 => IpAddr::from(reader.array::<16>()?),
                _ => return Err(TicketError::Contents { what: "a kind of address that is neither IPv4 nor IPv6" }),
            };
            addresses.push(SocketAddr::new(ip, u16::from_be_bytes(reader.array()?)));
        }
        let ends = u64::from_be_bytes(reader.array()?);
        let ticket = Self {
            addresses,
            ends: (ends > 0).then_some(ends),
            fingerprint: Fingerprint::new(reader.array()?),
            id: reader.array()?,
            secret: Secret::new(reader.array::<SECRET_LEN>()?),
        };
        if reader.is_empty() { Ok(ticket) } else { Err(TicketError::Contents { what: "more data than fits" }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::{format, vec};
    use proptest::prelude::*;

    fn ticket() -> Ticket {
        Ticket {
            addresses: vec!["192.0.2.1:4711".parse().unwrap(), "[2001:db8::1]:443".parse().unwrap()],
            ends: Some(1_800_000_000),
            fingerprint: Fingerprint::new([3; 32]),
            id: [4; 8],
            secret: Secret::new([5; 16]),
        }
    }

    #[test]
    fn malformed_input_is_reported() {
        let text = ticket().to_string();
        let read = |text: &str| text.parse::<Ticket>().unwrap_err().to_string();
        assert_eq!(read("ssh-ed25519 AAAA"), "a ticket begins with `narrows1`; this begins with `ssh-ed25`");
        assert_eq!(read(""), "a ticket begins with `narrows1`; this is empty");
        let marked = format!("{}!{}", &text[..20], &text[21..]);
        let expected = "character 21 of the ticket is `!`; behind `narrows1` it has a to z and 2 to 7 only";
        assert_eq!(read(&marked), expected);
        assert_eq!(read(&text[..text.len() - 8]), TicketError::Check.to_string());
        assert_eq!(read("narrows1a"), TicketError::Length.to_string());
        assert_eq!(read("narrows1"), TicketError::Length.to_string());
        assert_eq!(read(&"narrows1".repeat(60)), format!("a ticket has at most {MAX} characters; this has 480"));
        // A ticket is a secret, and an error must not repeat much of it.
        assert!(text.len() < MAX && !format!("{:?}", ticket()).contains("5, 5, 5"));
    }

    #[test]
    fn one_wrong_character_is_found() {
        let text = ticket().to_string();
        for place in PREFIX.len()..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[place] = if wrong[place] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert!(wrong.parse::<Ticket>().is_err(), "{place}");
        }
        assert_eq!(format!(" {}\n", text.to_uppercase()).parse(), Ok(ticket()));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            addresses in proptest::collection::vec(any::<SocketAddr>(), 1..=8),
            (ends, fingerprint, id, secret) in any::<(u64, [u8; 32], [u8; 8], [u8; 16])>(),
        ) {
            // Flow labels and scopes are not part of a ticket.
            let addresses = addresses.iter().map(|it| SocketAddr::new(it.ip(), it.port())).collect();
            let (fingerprint, secret) = (Fingerprint::new(fingerprint), Secret::new(secret));
            let ticket = Ticket { addresses, ends: (ends > 0).then_some(ends), fingerprint, id, secret };
            let text = ticket.to_string();
            prop_assert!(text.len() <= MAX);
            prop_assert_eq!(text.parse(), Ok(ticket));
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..90), text: String) {
            let check = sha256(&[&bytes]);
            let whole = [&bytes, &check[..CHECK_LEN]].concat();
            let _ = format!("{PREFIX}{}", BASE32_NOPAD.encode(&whole)).parse::<Ticket>();
            let _ = format!("{PREFIX}{text}").parse::<Ticket>();
            let _ = text.parse::<Ticket>();
        }
    }
}
