//! The service that a listener offers and a client requests. It is named in TLS's ALPN extension (RFC 7301), so the
//! wrong one is refused before keys are available. `docs/src/transport.md`, "The service".

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::narrow::to_u8;
use crate::varint::{Reader, Truncated};

/// Prefix of a service's name: the protocol and its version.
const PREFIX: &str = "narrows-1/";

/// The longest name of a service, in bytes.
pub const MAX: usize = 32;

/// The TLS alert for a client that requests a service that is not offered, `no_application_protocol` (RFC 7301 §3.2).
pub(crate) const NO_SUCH_SERVICE: u8 = 120;

/// A service: both ends of a connection must name the same one. An application chooses its own name, such as `backup`,
/// which is `narrows-1/backup` in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    alpn: [u8; PREFIX.len() + MAX],
    len: u8,
}

/// Error for an invalid service name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a service's name is 1 to {MAX} of the characters a to z, 0 to 9, `-`, `.` and `_`")]
pub struct ServiceError;

impl Service {
    /// Returns the service of a name: 1 to [`MAX`] of the characters `a` to `z`, `0` to `9`, `-`, `.` and `_`.
    ///
    /// ```
    /// const BACKUP: proto::service::Service = proto::service::Service::named("backup");
    /// assert_eq!(BACKUP.to_string(), "narrows-1/backup");
    /// ```
    ///
    /// # Panics
    /// If the name is invalid. Use [`str::parse`] for names that are not known at compile time.
    pub const fn named(name: &str) -> Self {
        match Self::of(name.as_bytes()) {
            Ok(service) => service,
            Err(ServiceError) => panic!("a service's name is 1 to 32 of a to z, 0 to 9, `-`, `.` and `_`"),
        }
    }

    const fn of(name: &[u8]) -> Result<Self, ServiceError> {
        if name.is_empty() || name.len() > MAX {
            return Err(ServiceError);
        }
        let (mut alpn, mut at) = ([0; PREFIX.len() + MAX], 0);
        while at < PREFIX.len() {
            alpn[at] = PREFIX.as_bytes()[at];
            at += 1;
        }
        while at < PREFIX.len() + name.len() {
            let byte = name[at - PREFIX.len()];
            if !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_') {
                return Err(ServiceError);
            }
            alpn[at] = byte;
            at += 1;
        }
        Ok(Self { alpn, len: to_u8(at as u64) })
    }

    /// Returns its name, without the protocol's prefix.
    pub fn name(&self) -> &str {
        // All of it is ASCII.
        str::from_utf8(&self.alpn()[PREFIX.len()..]).unwrap_or_default()
    }

    /// Returns the value of TLS's ALPN extension.
    pub fn alpn(&self) -> &[u8] {
        &self.alpn[..usize::from(self.len)]
    }

    /// Returns the service of an ALPN value; none if it does not belong to this protocol.
    pub(crate) fn of_alpn(alpn: &[u8]) -> Option<Self> {
        Self::of(alpn.strip_prefix(PREFIX.as_bytes())?).ok()
    }
}

impl FromStr for Service {
    type Err = ServiceError;

    fn from_str(name: &str) -> Result<Self, ServiceError> {
        Self::of(name.as_bytes())
    }
}

impl fmt::Display for Service {
    /// Writes the name as in the handshake. None of its characters needs escaping.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(self.name())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the service that a client requests in this `ClientHello` (RFC 8446 §4.1.2): the first ALPN name; none if
/// that does not belong to this protocol.
pub(crate) fn requested_service(client_hello: &[u8]) -> Option<Service> {
    alpn_of(client_hello).ok().flatten().and_then(Service::of_alpn)
}

/// Returns the first name in the ALPN extension.
fn alpn_of(client_hello: &[u8]) -> Result<Option<&[u8]>, Truncated> {
    const VERSION_AND_RANDOM: usize = 2 + 32;
    const ALPN: u16 = 16;
    let mut reader = Reader::new(client_hello);
    let [kind, len @ ..] = reader.array::<4>()?;
    if kind != 1 {
        return Ok(None);
    }
    let len = len.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    let mut hello = Reader::new(reader.bytes(len)?);
    hello.bytes(VERSION_AND_RANDOM)?;
    let session = hello.byte()?;
    hello.bytes(session.into())?;
    long(&mut hello)?;
    let compressions = hello.byte()?;
    hello.bytes(compressions.into())?;
    let mut extensions = Reader::new(long(&mut hello)?);
    while !extensions.is_empty() {
        let kind = u16::from_be_bytes(extensions.array()?);
        let body = long(&mut extensions)?;
        if kind == ALPN {
            let mut names = Reader::new(long(&mut Reader::new(body))?);
            let len = names.byte()?;
            return names.bytes(len.into()).map(Some);
        }
    }
    Ok(None)
}

/// Reads bytes after their length, which has two bytes.
fn long<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let len = u16::from_be_bytes(reader.array()?);
    reader.bytes(len.into())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::identity::{Trust, client_config};
    use crate::tls::{Tls, TlsOutput};

    /// A `ClientHello` that requests a service.
    fn client_hello(service: Service) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = client_config(&provider, Trust::Anyone, None, service, None).unwrap();
        let Some(TlsOutput::Bytes(bytes)) = Tls::connect(config, Vec::new()).unwrap().next().pop() else {
            panic!("no bytes")
        };
        bytes
    }

    #[test]
    fn names_are_short_and_need_no_escape() {
        let longest = "a".repeat(MAX);
        for name in ["perf", "a", "0", "com.example-2_x", &longest] {
            let service: Service = name.parse().unwrap();
            assert_eq!((service.name(), Service::of_alpn(service.alpn())), (name, Some(service)));
            assert_eq!(service.to_string().as_bytes(), service.alpn());
        }
        let too_long = "a".repeat(MAX + 1);
        for name in ["", "Perf", "a b", "a/b", "\u{1b}[31m", "\u{202e}perf", "pérf", "a\0", &too_long] {
            assert_eq!(name.parse::<Service>(), Err(ServiceError), "{name:?}");
        }
        for alpn in
            [&b""[..], b"h3", b"narrows/1", b"narrows-1/", b"narrows-1/A", b"narrows-2/perf", b"narrows-1/\x1b[2J"]
        {
            assert_eq!(Service::of_alpn(alpn), None, "{alpn:?}");
        }
    }

    #[test]
    fn the_requested_service_is_read_from_the_client_hello() {
        let service = Service::named("of.a_test");
        let hello = client_hello(service);
        assert_eq!(requested_service(&hello), Some(service));
        for end in 0..hello.len() {
            assert_eq!(requested_service(&hello[..end]), None);
        }
    }

    proptest! {
        /// Any input is parsed or rejected without a panic.
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index, byte: u8) {
            let _ = requested_service(&bytes);
            let mut hello = client_hello(Service::named("x"));
            let at = at.index(hello.len());
            hello[at] = byte;
            let _ = requested_service(&hello);
        }
    }
}
