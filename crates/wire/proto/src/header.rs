//! Packet headers, as far as they can be read before header protection is removed: RFC 8999, RFC 9000 §17, and
//! `docs/src/transport.md`.

use alloc::vec::Vec;
use thiserror::Error;

use crate::narrow::to_u8;
use crate::varint::{self, Reader, Truncated};
use crate::{ConnectionId, ID_LEN, VERSION};

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
/// The longest ID in a long header (RFC 9000 §17.2).
pub const MAX_ID: usize = 20;
/// Bytes of a Retry's integrity tag.
pub const TAG_LEN: usize = 16;
/// The header protection sample, in bytes after the start of the packet number (RFC 9001 §5.4.2): the number is assumed
/// to be 4 bytes long.
pub const SAMPLE: core::ops::Range<usize> = 4..20;
/// The minimum length of a packet with a short header, in bytes. A stateless reset that responds to it is at least one
/// byte shorter, so two endpoints without state for each other's connection stop (RFC 9000 §10.3.3).
pub const SHORTEST_PACKET: usize = 42;
/// The minimum length of a stateless reset, in bytes. The last [`TOKEN_LEN`](crate::TOKEN_LEN) bytes are the token.
pub const SHORTEST_RESET: usize = SHORTEST_PACKET - 1;

/// Error for a packet without a readable header. Such packets are dropped without a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HeaderError {
    /// The packet ends within its header, or before the length in its header.
    #[error("the packet ends within its header, or before the length in its header")]
    Truncated,
    /// The fixed bit is 0.
    #[error("the fixed bit of the header is 0")]
    NotFixed,
    /// A type of long header that is not used.
    #[error("type 1 of long headers, 0-RTT, is not used")]
    ZeroRtt,
    /// An ID of an impossible length.
    #[error("a connection ID of {len} bytes; expected {ID_LEN} to {max}")]
    IdLen {
        /// Its length.
        len: usize,
        /// The maximum length.
        max: usize,
    },
    /// Too short to be protected.
    #[error("{len} bytes behind the header; {} are needed to take its protection off", SAMPLE.end)]
    TooShort {
        /// Bytes from the packet number on.
        len: usize,
    },
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// The type of a protected long header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LongKind {
    /// The first packets in either direction.
    Initial,
    /// The rest of the handshake.
    Handshake,
}

/// A packet's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header<'a> {
    /// A packet of the handshake.
    Long {
        /// Packet type.
        kind: LongKind,
        /// Destination connection ID: 8 to 20 bytes.
        to: &'a [u8],
        /// Source connection ID.
        from: ConnectionId,
        /// Token from a Retry; empty if none, and in Handshake packets.
        token: &'a [u8],
    },
    /// A listener requires the client to retry with a token.
    Retry {
        /// Destination connection ID.
        to: &'a [u8],
        /// Source connection ID. The client sends to it from now on.
        from: ConnectionId,
        /// The token; not empty.
        token: &'a [u8],
        /// Integrity tag: proves that the sender of the Retry saw the client's packet.
        tag: [u8; TAG_LEN],
    },
    /// A packet of another version, or a Version Negotiation packet (RFC 9000 §17.2.1) if that version is 0.
    OtherVersion {
        /// Version of the packet.
        version: u32,
        /// Destination connection ID.
        to: &'a [u8],
        /// Source connection ID.
        from: &'a [u8],
    },
    /// Any other packet.
    Short {
        /// Destination connection ID.
        to: ConnectionId,
    },
}

/// The first packet of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedPacket<'a> {
    /// Its header.
    pub header: Header<'a>,
    /// Offset of the packet number. At least `SAMPLE.end` bytes of the packet follow it ([`SAMPLE`]). For packets
    /// without a number, their length.
    pub number_at: usize,
    /// Its length in bytes. The next packet of the datagram follows.
    pub len: usize,
}

impl<'a> ParsedPacket<'a> {
    /// Reads the header of the first packet of a datagram, or of the rest of one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(datagram: &'a [u8]) -> Result<Self, HeaderError> {
        let mut reader = Reader::new(datagram);
        let first = reader.byte()?;
        if first & LONG == 0 {
            if first & FIXED == 0 {
                return Err(HeaderError::NotFixed);
            }
            let to = reader.array()?;
            return Self::protected(Header::Short { to }, datagram.len() - reader.rest().len(), datagram.len());
        }
        let version = u32::from_be_bytes(reader.array()?);
        let (to, from) = (read_connection_id(&mut reader)?, read_connection_id(&mut reader)?);
        if version != VERSION {
            let header = Header::OtherVersion { version, to, from };
            return Ok(Self { header, number_at: datagram.len(), len: datagram.len() });
        }
        if first & FIXED == 0 {
            return Err(HeaderError::NotFixed);
        }
        if !(ID_LEN..=MAX_ID).contains(&to.len()) {
            return Err(HeaderError::IdLen { len: to.len(), max: MAX_ID });
        }
        let from: ConnectionId = from.try_into().map_err(|_| HeaderError::IdLen { len: from.len(), max: ID_LEN })?;
        let kind = match first >> 4 & 3 {
            0 => LongKind::Initial,
            1 => return Err(HeaderError::ZeroRtt),
            2 => LongKind::Handshake,
            _ => {
                let rest = reader.take_rest();
                let (token, &tag) = rest.split_last_chunk().ok_or(Truncated)?;
                if token.is_empty() {
                    return Err(HeaderError::Truncated);
                }
                let header = Header::Retry { to, from, token, tag };
                return Ok(Self { header, number_at: datagram.len(), len: datagram.len() });
            }
        };
        let token = if kind == LongKind::Initial { reader.length_prefixed()? } else { &[] };
        let len = usize::try_from(reader.varint()?).map_err(|_| Truncated)?;
        let number_at = datagram.len() - reader.rest().len();
        reader.bytes(len)?;
        Self::protected(Header::Long { kind, to, from, token }, number_at, number_at + len)
    }

    fn protected(header: Header<'a>, number_at: usize, len: usize) -> Result<Self, HeaderError> {
        let behind = len - number_at;
        if behind < SAMPLE.end {
            Err(HeaderError::TooShort { len: behind })
        } else {
            Ok(Self { header, number_at, len })
        }
    }
}

/// Reads a connection ID after its length byte. IDs of other versions may have any length.
fn read_connection_id<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let len = reader.byte()?;
    reader.bytes(len.into())
}

/// Appends a long header up to its length field. The caller appends the length as a varint, then the packet number.
/// `number_len` is 1 to 4.
pub fn put_long(out: &mut Vec<u8>, kind: LongKind, to: &[u8], from: ConnectionId, token: &[u8], number_len: usize) {
    debug_assert!((1..=4).contains(&number_len) && (ID_LEN..=MAX_ID).contains(&to.len()));
    let kind_bits = match kind {
        LongKind::Initial => 0,
        LongKind::Handshake => 2,
    };
    put_invariant(out, kind_bits, to_u8(number_len as u64) - 1, to, from);
    if kind == LongKind::Initial {
        varint::put(out, token.len() as u64);
        out.extend(token);
    }
}

/// Appends a Retry packet up to its tag.
pub fn put_retry(out: &mut Vec<u8>, to: &[u8], from: ConnectionId, token: &[u8]) {
    debug_assert!(!token.is_empty() && (ID_LEN..=MAX_ID).contains(&to.len()));
    put_invariant(out, 3, 0, to, from);
    out.extend(token);
}

/// Appends a Version Negotiation packet with the supported version (RFC 9000 §17.2.1). The IDs are those of the packet
/// that it responds to, so `to` is that packet's source ID. Both have at most 255 bytes.
pub fn put_versions(out: &mut Vec<u8>, to: &[u8], from: &[u8]) {
    debug_assert!(to.len() < 256 && from.len() < 256);
    out.push(LONG | FIXED);
    out.extend(0u32.to_be_bytes());
    for id in [to, from] {
        out.push(to_u8(id.len() as u64));
        out.extend(id);
    }
    out.extend(VERSION.to_be_bytes());
}

fn put_invariant(out: &mut Vec<u8>, kind: u8, low: u8, to: &[u8], from: ConnectionId) {
    out.push(LONG | FIXED | kind << 4 | low);
    out.extend(VERSION.to_be_bytes());
    out.push(to_u8(to.len() as u64));
    out.extend(to);
    out.push(to_u8(ID_LEN as u64));
    out.extend(from);
}

/// Key phase bit of a short header, by its value in the first byte (RFC 9001 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum KeyPhase {
    /// The bit is 0.
    Zero = 0,
    /// The bit is 1.
    One = 1 << 2,
}

impl KeyPhase {
    /// Returns the key phase after `updates` key updates.
    pub const fn after(updates: u64) -> Self {
        if updates & 1 == 0 { Self::Zero } else { Self::One }
    }

    /// Returns the key phase of a short header without header protection.
    pub const fn of(first_byte: u8) -> Self {
        if first_byte & Self::One as u8 == 0 { Self::Zero } else { Self::One }
    }
}

/// Appends a short header up to its packet number. `number_len` is 1 to 4.
pub fn put_short(out: &mut Vec<u8>, to: ConnectionId, key_phase: KeyPhase, number_len: usize) {
    debug_assert!((1..=4).contains(&number_len));
    out.push(FIXED | key_phase as u8 | (to_u8(number_len as u64) - 1));
    out.extend(to);
}

/// Returns the number of bytes needed to encode a packet number so that a peer that has acknowledged nothing newer than
/// `acked` can decode it: RFC 9000 §A.2. None if 4 are not enough: too much is in flight.
pub fn number_len(number: u64, acked: Option<u64>) -> Option<usize> {
    let unacked = acked.map_or(number + 1, |acked| number.saturating_sub(acked));
    // One bit more than needed to count the unacknowledged packets.
    let bits = (u64::BITS - unacked.leading_zeros()) as usize + 1;
    let len = bits.div_ceil(8).max(1);
    (len <= 4).then_some(len)
}

/// Appends the lowest `len` bytes of a packet number.
pub fn put_number(out: &mut Vec<u8>, number: u64, len: usize) {
    debug_assert!((1..=4).contains(&len));
    out.extend(&number.to_be_bytes()[8 - len..]);
}

/// Decodes a packet number from its lowest `len` bytes, 1 to 4: the candidate closest to the number after `newest`, the
/// highest received (RFC 9000 §A.3). At most [`varint::MAX`].
pub fn whole_number(lowest: u32, len: usize, newest: Option<u64>) -> u64 {
    debug_assert!((1..=4).contains(&len));
    let expected = newest.map_or(0, |newest| newest + 1);
    let window = 1u64 << (8 * len);
    let candidate = expected & !(window - 1) | u64::from(lowest) & (window - 1);
    if candidate + window / 2 <= expected && candidate + window <= varint::MAX {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate.min(varint::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// RFC 9000 §A.2 and §A.3.
    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(number_len(0xac_5c02, Some(0xab_e8b3)), Some(2));
        assert_eq!(number_len(0xac_e8fe, Some(0xab_e8b3)), Some(3));
        assert_eq!(number_len(1 << 40, None), None);
        assert_eq!(whole_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
    }

    #[test]
    fn malformed_input_is_reported() {
        let read = |bytes: &[u8]| ParsedPacket::read(bytes).unwrap_err();
        assert_eq!(read(&[]), HeaderError::Truncated);
        assert_eq!(read(&[0x00; 40]), HeaderError::NotFixed);
        assert_eq!(read(&[0x40; 9]), HeaderError::TooShort { len: 0 });
        let mut long = Vec::new();
        put_long(&mut long, LongKind::Initial, &[7; 8], [8; 8], &[], 2);
        varint::put(&mut long, 30);
        assert_eq!(read(&long), HeaderError::Truncated);
        long.extend([0; 30]);
        assert_eq!(ParsedPacket::read(&long).map(|packet| packet.len), Ok(long.len()));
        let zero_rtt = [&[long[0] | 0x10][..], &long[1..]].concat();
        assert_eq!(read(&zero_rtt), HeaderError::ZeroRtt);
        // An ID of seven bytes.
        let mut short_id = vec![0xc0];
        short_id.extend(VERSION.to_be_bytes());
        short_id.extend([7; 8]);
        short_id.extend([8; 9]);
        assert_eq!(read(&short_id), HeaderError::IdLen { len: 7, max: 20 });
    }

    #[test]
    fn other_versions_show_their_ids() {
        let bytes = [0x80, 0, 0, 0, 1, 2, 0xa, 0xb, 0, 9, 9];
        let header = Header::OtherVersion { version: 1, to: &[0xa, 0xb], from: &[] };
        assert_eq!(ParsedPacket::read(&bytes), Ok(ParsedPacket { header, number_at: 11, len: 11 }));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            to in proptest::collection::vec(any::<u8>(), 8..21), from: ConnectionId, kind in 0..4,
            token in proptest::collection::vec(any::<u8>(), 1..40),
            (number, acked, phase) in (0u64..1 << 30, any::<u64>(), any::<u64>()),
            body in proptest::collection::vec(any::<u8>(), 20..60),
        ) {
            let acked = acked.checked_rem(number + 1).filter(|acked| *acked < number);
            let len = number_len(number, acked).unwrap();
            let mut out = Vec::new();
            let header = match kind {
                0 => {
                    put_short(&mut out, from, KeyPhase::after(phase), len);
                    Header::Short { to: from }
                }
                1 => {
                    put_retry(&mut out, &to, from, &token);
                    out.extend([5; TAG_LEN]);
                    Header::Retry { to: &to, from, token: &token, tag: [5; TAG_LEN] }
                }
                _ => {
                    let (kind, token) =
                        if kind == 2 { (LongKind::Initial, &token[..]) } else { (LongKind::Handshake, &[][..]) };
                    put_long(&mut out, kind, &to, from, token, len);
                    varint::put(&mut out, (len + body.len()) as u64);
                    Header::Long { kind, to: &to, from, token }
                }
            };
            let number_at = out.len();
            if kind != 1 {
                put_number(&mut out, number, len);
                out.extend(&body);
            }
            let whole = out.len();
            if kind > 1 {
                // The next packet of the datagram.
                out.extend([0x40; 30]);
            }
            prop_assert_eq!(ParsedPacket::read(&out), Ok(ParsedPacket { header, number_at, len: whole }));
            if kind != 1 {
                let lowest = out[number_at..number_at + len].iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
                // For any arrivals between the acknowledged packet and this one.
                for newest in [acked, number.checked_sub(1)] {
                    prop_assert_eq!(whole_number(lowest, len, newest), number);
                }
            }
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80), ours: bool, lowest: u32, newest in 0..=varint::MAX) {
            let mut bytes = bytes;
            if ours && bytes.len() > 5 {
                bytes[0] |= LONG | FIXED;
                bytes[1..5].copy_from_slice(&VERSION.to_be_bytes());
            }
            if let Ok(packet) = ParsedPacket::read(&bytes) {
                prop_assert!(packet.number_at <= packet.len && packet.len <= bytes.len());
                let protected = matches!(packet.header, Header::Long { .. } | Header::Short { .. });
                prop_assert!(!protected || packet.len - packet.number_at >= SAMPLE.end);
            }
            for len in 1..=4 {
                prop_assert!(whole_number(lowest, len, Some(newest)) <= varint::MAX);
            }
        }
    }
}
