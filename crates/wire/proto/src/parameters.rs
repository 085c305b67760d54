//! Transport parameters, which each endpoint declares during the handshake. The encoding is
//! that of RFC 9000 §18; the parameter IDs are this protocol's.

use alloc::vec::Vec;
use thiserror::Error;

use crate::header::MAX_ID;
use crate::narrow::to_u8;
use crate::varint::{self, Reader, Truncated};
use crate::{ConnectionId, ID_LEN, TOKEN_LEN};

/// Error of a peer's transport parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ParameterError {
    /// The last parameter is incomplete.
    #[error("the transport parameters are truncated")]
    Truncated,
    /// A parameter appears twice.
    #[error("transport parameter `{name}` appears twice")]
    Duplicate {
        /// Its name.
        name: &'static str,
    },
    /// The value of an integer parameter is not exactly one varint.
    #[error("transport parameter `{name}` is not one integer")]
    NotAnInteger {
        /// Its name.
        name: &'static str,
    },
    /// A value has an invalid length.
    #[error("transport parameter `{name}` has {len} bytes; expected {min} to {max}")]
    Len {
        /// Its name.
        name: &'static str,
        /// The value's length in bytes.
        len: usize,
        /// The minimum length in bytes.
        min: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// A value is out of range.
    #[error("transport parameter `{name}` is {value}; expected {min} to {max}")]
    Range {
        /// Its name.
        name: &'static str,
        /// The value.
        value: u64,
        /// The smallest valid value.
        min: u64,
        /// The largest valid value.
        max: u64,
    },
}

impl From<Truncated> for ParameterError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Original destination connection ID (RFC 9000 §7.3): destination of a client's first packet, chosen by the client, 8 to
/// 20 bytes. Later destinations of its handshake packets, which a listener issues, are of the same type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OriginalDestinationId {
    len: u8,
    bytes: [u8; MAX_ID],
}

impl OriginalDestinationId {
    /// Creates an ID from these bytes; none if there are too few or too many.
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_ID];
        bytes.get_mut(..id.len()).filter(|bytes| bytes.len() >= ID_LEN)?.copy_from_slice(id);
        Some(Self { len: to_u8(id.len() as u64), bytes })
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }
}

impl From<ConnectionId> for OriginalDestinationId {
    fn from(id: ConnectionId) -> Self {
        let mut bytes = [0; MAX_ID];
        bytes[..ID_LEN].copy_from_slice(&id);
        Self { len: to_u8(ID_LEN as u64), bytes }
    }
}

/// A parameter with a byte string as its value.
trait ByteStringValue: Sized {
    /// The minimum and maximum length in bytes.
    const LEN: (usize, usize);

    fn of(bytes: &[u8]) -> Option<Self>;
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> ByteStringValue for [u8; N] {
    const LEN: (usize, usize) = (N, N);

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl ByteStringValue for OriginalDestinationId {
    const LEN: (usize, usize) = (ID_LEN, MAX_ID);

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::new(bytes)
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

macro_rules! parameters {
    (
        $($number:literal $name:ident $min:literal to $max:expr, else $absent:literal: $doc:literal;)*
        bytes: $($id:literal $field:ident $kind:ty: $field_doc:literal;)*
    ) => {
        /// Transport parameters of an endpoint: its limits and requests.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Parameters {
            $(
                #[doc = $doc]
                pub $name: u64,
            )*
            $(
                #[doc = $field_doc]
                pub $field: Option<$kind>,
            )*
        }

        impl Default for Parameters {
            /// Returns the values that apply to parameters that are not sent.
            fn default() -> Self {
                Self { $($name: $absent,)* $($field: None,)* }
            }
        }

        impl Parameters {
            /// Reads the parameters of a peer.
            ///
            /// # Errors
            /// If a parameter cannot be read, appears twice, or is out of range. Unknown parameters are ignored.
            pub fn read(bytes: &[u8]) -> Result<Self, ParameterError> {
                let (mut reader, mut read, mut seen) = (Reader::new(bytes), Self::default(), 0u64);
                while !reader.is_empty() {
                    let number = reader.varint()?;
                    let value = reader.length_prefixed()?;
                    match number {
                        $($number => {
                            let name = stringify!($name);
                            if seen >> $number & 1 != 0 {
                                return Err(ParameterError::Duplicate { name });
                            }
                            seen |= 1 << $number;
                            read.$name = integer(value, name, $min, $max)?;
                        })*
                        $($id => {
                            let name = stringify!($field);
                            if read.$field.is_some() {
                                return Err(ParameterError::Duplicate { name });
                            }
                            let (min, max) = <$kind as ByteStringValue>::LEN;
                            let found = <$kind as ByteStringValue>::of(value);
                            let len = value.len();
                            read.$field = Some(found.ok_or(ParameterError::Len { name, len, min, max })?);
                        })*
                        _ => {}
                    }
                }
                Ok(read)
            }

            /// Appends all parameters that differ from their defaults.
            ///
            /// # Panics
            /// In debug builds, if a value is out of range.
            pub fn put(&self, out: &mut Vec<u8>) {
                $(
                    debug_assert!(($min..=$max).contains(&self.$name), "{} is {}", stringify!($name), self.$name);
                    if self.$name != $absent {
                        varint::put(out, $number);
                        varint::put(out, varint::len(self.$name) as u64);
                        varint::put(out, self.$name);
                    }
                )*
                $(
                    if let Some(value) = &self.$field {
                        let bytes = ByteStringValue::bytes(value);
                        varint::put(out, $id);
                        varint::put(out, bytes.len() as u64);
                        out.extend(bytes);
                    }
                )*
            }

            /// Number, name, minimum, maximum and value if absent of each integer parameter.
            #[cfg(test)]
            const ALL: &[(u64, &str, u64, u64, u64)] = &[$(($number, stringify!($name), $min, $max, $absent),)*];

            /// Number, name, minimum and maximum length of each byte string parameter.
            #[cfg(test)]
            const ALL_BYTES: &[(u64, &str, (usize, usize))] = &[$(($id, stringify!($field), <$kind as ByteStringValue>::LEN),)*];

            #[cfg(test)]
            fn field(&mut self, name: &str) -> &mut u64 {
                match name {
                    $(stringify!($name) => &mut self.$name,)*
                    _ => unreachable!(),
                }
            }
        }
    };
}

parameters! {
    1 idle 1_000 to 600_000, else 30_000: "Idle timeout in ms, 1,000 to 600,000; the smaller value of both endpoints applies.";
    2 max_data 0 to varint::MAX, else 0: "Bytes that the peer may send on all streams; below 2^62.";
    3 max_stream_data 0 to varint::MAX, else 0: "Bytes that it may send on each stream; below 2^62.";
    4 max_streams_bidi 0 to 1 << 32, else 0: "Bidirectional streams that it may open; at most 2^32.";
    5 max_streams_uni 0 to 1 << 32, else 0: "One-way streams that it may open; at most 2^32.";
    6 max_datagram 0 to 65_535, else 0: "The largest DATAGRAM accepted, in bytes; 0 if none is accepted.";
    7 max_packet 1_200 to 65_527, else 65_527: "The largest UDP payload accepted, 1,200 to 65,527 bytes.";
    8 ack_delay 0 to 25_000, else 1_000: "Maximum delay of acknowledgements in us; at most 25,000.";
    9 paths 1 to 64, else 1: "Maximum number of simultaneous paths, 1 to 64.";
    10 coding_window 0 to 1 << 30, else 0: "Memory for received coding symbols in bytes, at most 2^30; 0 if no coded blocks are accepted.";
    11 times 0 to 1, else 0: "1 if acknowledgements are to carry receive times.";
    bytes:
    12 own_id ConnectionId: "The source ID of the endpoint's first packet.";
    13 original_destination_id OriginalDestinationId: "The ID to which the client sent its first packet, as the listener saw it.";
    14 retry_id ConnectionId: "The source ID of the listener's Retry, if it sent one.";
    15 reset [u8; TOKEN_LEN]: "The reset token of the endpoint's ID on path 0.";
}

fn integer(value: &[u8], name: &'static str, min: u64, max: u64) -> Result<u64, ParameterError> {
    let mut reader = Reader::new(value);
    match reader.varint() {
        Ok(_) if !reader.is_empty() => Err(ParameterError::NotAnInteger { name }),
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        Ok(value) => Err(ParameterError::Range { name, value, min, max }),
        Err(Truncated) => Err(ParameterError::NotAnInteger { name }),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;
    use std::{format, fs};

    #[test]
    fn malformed_input_is_reported() {
        let read = |bytes: &[u8]| Parameters::read(bytes).unwrap_err().to_string();
        assert_eq!(read(&[9, 1]), "the transport parameters are truncated");
        assert_eq!(read(&[9, 1, 0]), "transport parameter `paths` is 0; expected 1 to 64");
        assert_eq!(read(&[9, 1, 2, 9, 1, 2]), "transport parameter `paths` appears twice");
        assert_eq!(read(&[9, 2, 2, 2]), "transport parameter `paths` is not one integer");
        assert_eq!(read(&[9, 1, 0x42]), "transport parameter `paths` is not one integer");
        assert_eq!(read(&[12, 1, 0]), "transport parameter `own_id` has 1 bytes; expected 8 to 8");
        let twice = [&[12, 8][..], &[1; 8], &[12, 8], &[1; 8]].concat();
        assert_eq!(read(&twice), "transport parameter `own_id` appears twice");
        // An unknown parameter is ignored.
        assert_eq!(Parameters::read(&[0x3f, 2, 1, 1]), Ok(Parameters::default()));
    }

    /// The specification's table agrees with the code.
    #[test]
    fn the_documentation_has_the_same_table() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/src/transport.md")).unwrap();
        let commas = |value: u64| {
            let digits = value.to_string();
            let groups = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap());
            groups.collect::<Vec<_>>().join(",")
        };
        let bound = |value: u64| match value {
            varint::MAX => "2^62".to_string(),
            value if value >= 1 << 30 => format!("2^{}", value.ilog2()),
            value => commas(value),
        };
        for &(number, name, min, max, absent) in Parameters::ALL {
            let begins = format!("| {number} | `{name}` |");
            let row = page.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("no row {begins}"));
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let range = match (min, max) {
                (0, 1) => "0, 1".to_string(),
                (0, varint::MAX) => format!("below {}", bound(max)),
                (0, max) => format!("at most {}", bound(max)),
                _ => format!("{} to {}", bound(min), bound(max)),
            };
            assert_eq!((cells[4], cells[5]), (&*range, &*commas(absent)), "{name}");
        }
        let rows = page.split("## Transport parameters").nth(1).unwrap().split("\n## ").next().unwrap();
        for &(number, name, (min, max)) in Parameters::ALL_BYTES {
            let begins = format!("| {number} | `{name}` |");
            let row = rows.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("no row {begins}"));
            let range = if min == max { min.to_string() } else { format!("{min} to {max}") };
            assert_eq!(row.split('|').nth(4).map(str::trim), Some(&*range), "{name}");
        }
        let all = Parameters::ALL.len() + Parameters::ALL_BYTES.len();
        assert_eq!(rows.lines().filter(|line| line.starts_with("| ")).count(), all + 2);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            shares in proptest::collection::vec(any::<u64>(), 11),
            (own_id, retry_id, reset) in any::<(Option<ConnectionId>, Option<ConnectionId>, Option<[u8; TOKEN_LEN]>)>(),
            first in proptest::collection::vec(any::<u8>(), 0..24),
        ) {
            let original_destination_id = OriginalDestinationId::new(&first);
            prop_assert_eq!(original_destination_id.is_some(), (8..=20).contains(&first.len()));
            let mut parameters = Parameters { own_id, original_destination_id, retry_id, reset, ..Parameters::default() };
            for (&(_, name, min, max, _), share) in Parameters::ALL.iter().zip(shares) {
                *parameters.field(name) = min + share % (max - min + 1);
            }
            let mut out = Vec::new();
            parameters.put(&mut out);
            prop_assert_eq!(Parameters::read(&out), Ok(parameters));
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(0u8..16, 0..40)) {
            if let Ok(read) = Parameters::read(&bytes) {
                let mut out = Vec::new();
                read.put(&mut out);
                prop_assert_eq!(Parameters::read(&out), Ok(read));
            }
        }
    }
}
