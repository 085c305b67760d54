//! Destination of a connection: a host and a port, as text and in the form of SOCKS (RFC 1928 §5), which also begins a
//! stream.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::parse::Parsed;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The longest name: DNS allows no longer one (RFC 1035 §2.3.4).
pub const MAX_NAME: usize = 253;

/// A host: its address, or its name, which the proxy server looks up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Host {
    /// An address. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) counts as IPv4.
    Address(IpAddr),
    /// A name in lower case, without a dot at its end: letters, digits, `.`, `-` and `_`.
    Name(String),
}

/// A host and a TCP port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port; never 0.
    pub port: u16,
}

/// Reason why a destination is invalid.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DestinationError {
    /// The address type does not exist in SOCKS.
    #[error("{kind} is no type of address; there are 1 (IPv4), 3 (a name) and 4 (IPv6)")]
    Kind {
        /// The type that was received.
        kind: u8,
    },
    /// The name is not a valid host name.
    #[error("`{text}` is no name of a host: letters, digits, `.`, `-` and `_`, up to {MAX_NAME}")]
    Name {
        /// The name, shortened, and without control characters of a terminal.
        text: String,
    },
    /// The port is 0 or no number.
    #[error("`{text}` has no port from 1 to 65535")]
    Port {
        /// The text without a port.
        text: String,
    },
}

/// Returns a character in the form that messages show: control characters and invisible characters are escaped.
pub(crate) fn printable(it: char) -> impl Iterator<Item = char> {
    let is_plain = matches!(it, '\'' | '"' | '\\');
    is_plain.then_some(it).into_iter().chain(it.escape_debug().filter(move |_| !is_plain))
}

/// A peer's text, for a message: its first 60 characters.
fn escaped(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let rest = if text.chars().count() > 60 { "..." } else { "" };
    text.chars().take(60).flat_map(printable).chain(rest.chars()).collect()
}

impl Host {
    /// Creates a destination host from a name, or an address in text.
    ///
    /// # Errors
    /// If it is neither.
    pub fn new(text: &[u8]) -> Result<Self, DestinationError> {
        let error = || DestinationError::Name { text: escaped(text) };
        let text = std::str::from_utf8(text).map_err(|_| error())?;
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.to_ascii_lowercase();
        let is_known = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
        let is_name = name.bytes().all(is_known) && (1..=MAX_NAME).contains(&name.len());
        // A text with a leading dot or two consecutive dots is not a name, and a resolver might interpret it differently.
        if is_name && !name.split('.').any(str::is_empty) { Ok(Self::Name(name)) } else { Err(error()) }
    }
}

impl Destination {
    /// Reads SOCKS's form: a type, an address or a name with its length, a port.
    ///
    /// # Errors
    /// If there is no such type of address, no such name, or the port is 0.
    pub fn read(bytes: &[u8]) -> Result<Parsed<Self>, DestinationError> {
        let Some((&kind, rest)) = bytes.split_first() else { return Ok(Parsed::Need(1)) };
        let (before, len) = match kind {
            IPV4 => (1, 4),
            IPV6 => (1, 16),
            NAME => match rest.first() {
                Some(&len) => (2, usize::from(len)),
                None => return Ok(Parsed::Need(2)),
            },
            kind => return Err(DestinationError::Kind { kind }),
        };
        let used = before + len + 2;
        let Some([high, low]) = bytes.get(used - 2..used).and_then(|port| <[u8; 2]>::try_from(port).ok()) else {
            return Ok(Parsed::Need(used));
        };
        let host = &bytes[before..used - 2];
        let host = match (<[u8; 4]>::try_from(host), <[u8; 16]>::try_from(host)) {
            (Ok(v4), _) if kind == IPV4 => Host::Address(Ipv4Addr::from(v4).into()),
            (_, Ok(v6)) if kind == IPV6 => Host::Address(IpAddr::from(Ipv6Addr::from(v6)).to_canonical()),
            _ => Host::new(host)?,
        };
        match u16::from_be_bytes([high, low]) {
            0 => Err(DestinationError::Port { text: host.to_string() }),
            port => Ok(Parsed::Done(Self { host, port }, used)),
        }
    }

    /// Writes it in that form.
    pub fn put(&self, out: &mut Vec<u8>) {
        match &self.host {
            Host::Address(IpAddr::V4(address)) => {
                out.push(IPV4);
                out.extend(address.octets());
            }
            Host::Address(IpAddr::V6(address)) => {
                out.push(IPV6);
                out.extend(address.octets());
            }
            Host::Name(name) => {
                // Names are created by `Host::new` only, which limits their length; a truncated name would not resolve.
                let name = &name.as_bytes()[..name.len().min(MAX_NAME)];
                out.extend([NAME, name.len() as u8]);
                out.extend(name);
            }
        }
        out.extend(self.port.to_be_bytes());
    }
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Address(address.ip().to_canonical()), port: address.port() }
    }
}

/// `HOST:PORT`, with an IPv6 address in brackets.
impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let no_port = || DestinationError::Port { text: escaped(text.as_bytes()) };
        let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
        let port = port.parse().ok().filter(|&port| port != 0).ok_or_else(no_port)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(bare) => Host::Address(
                bare.parse::<Ipv6Addr>()
                    .map(|address| IpAddr::from(address).to_canonical())
                    .map_err(|_| DestinationError::Name { text: escaped(host.as_bytes()) })?,
            ),
            None if host.contains(':') => return Err(DestinationError::Name { text: escaped(host.as_bytes()) }),
            None => Host::new(host.as_bytes())?,
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_and_bytes_are_equivalent() {
        for (text, bytes) in [
            ("192.0.2.1:80", &[1, 192, 0, 2, 1, 0, 80][..]),
            ("[::1]:443", &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 187]),
            ("host-1.example:873", b"\x03\x0ehost-1.example\x03\x69"),
        ] {
            let destination: Destination = text.parse().unwrap();
            let mut put = Vec::new();
            destination.put(&mut put);
            assert_eq!(put, bytes);
            assert_eq!(destination.to_string(), text);
            for cut in 0..bytes.len() {
                let Ok(Parsed::Need(need)) = Destination::read(&bytes[..cut]) else { panic!("{text} {cut}") };
                assert!(need > cut && need <= bytes.len());
            }
            assert_eq!(Destination::read(&[bytes, b"more"].concat()), Ok(Parsed::Done(destination, bytes.len())));
        }
    }

    #[test]
    fn one_address_has_one_form() {
        let mapped: Destination = "[::ffff:127.0.0.1]:1".parse().unwrap();
        assert_eq!(mapped, "127.0.0.1:1".parse().unwrap());
        let in_name = b"\x03\x10::ffff:127.0.0.1\x00\x01";
        assert_eq!(Destination::read(in_name), Ok(Parsed::Done(mapped, in_name.len())));
        assert_eq!("127.0.0.1.:1".parse(), "127.0.0.1:1".parse::<Destination>());
        assert_eq!("Example.ORG.:1".parse::<Destination>().unwrap().to_string(), "example.org:1");
    }

    #[test]
    fn invalid_destinations_are_refused() {
        for text in
            ["", "a", "a:", "a:0", "a:65536", ":1", "::1:1", "a..b:1", ".a:1", "a b:1", "[1.2.3.4]:1", "ü:1", "[a]:1"]
        {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
        assert_eq!(Destination::read(&[2]), Err(DestinationError::Kind { kind: 2 }));
        assert!(matches!(Destination::read(&[1, 1, 2, 3, 4, 0, 0]), Err(DestinationError::Port { .. })));
        for (name, shown) in [("a\x1b[m", "`a\\u{1b}[m`"), ("\u{202e}moc", "`\\u{202e}moc`"), ("ü", "`ü`")] {
            let bytes = [&[3, name.len() as u8], name.as_bytes(), &[0, 1]].concat();
            let message = Destination::read(&bytes).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{shown} is no name of a host")), "{message}");
        }
        assert!(matches!(Destination::read(b"\x03\x00\x00\x01"), Err(DestinationError::Name { .. })));
    }

    proptest! {
        #[test]
        fn read_destinations_are_written_alike(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            match Destination::read(&bytes) {
                Ok(Parsed::Need(need)) => prop_assert!(need > bytes.len() && need <= 2 + 255 + 2),
                Ok(Parsed::Done(destination, used)) => {
                    prop_assert!(used <= bytes.len() && destination.port > 0);
                    let mut put = Vec::new();
                    destination.put(&mut put);
                    prop_assert_eq!(Destination::read(&put), Ok(Parsed::Done(destination.clone(), put.len())));
                    prop_assert_eq!(destination.to_string().parse(), Ok(destination));
                }
                Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control)),
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            if let Ok(destination) = text.parse::<Destination>() {
                prop_assert_eq!(destination.to_string().parse(), Ok(destination));
            }
        }
    }
}
