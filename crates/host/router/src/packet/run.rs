//! Writing some of a packet's segments as one packet again, and marking them.

use std::ops::Range;

use super::checksum::{fold, replace, replace_in_sum, sum};
use super::headers::{Destination, Headers, IpProtocol};
use super::vnet::VNET_LEN;

pub(super) const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
pub(super) const CWR: u8 = 0x80;

/// Congestion mark of a packet (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mark {
    /// The packet keeps the codepoint that its sender set.
    #[default]
    None,
    /// Congestion experienced.
    Ce,
}

/// Writes the headers of the packet formed by the segments `run` of `frame`, the virtio header first, to `out`, and
/// returns the payload that follows them. The packet carries `mark`.
///
/// The result is as if each had been sent alone, and a NIC had received them in one: lengths, sequence number and IPv4
/// identification are those of the first; FIN and PSH are on the last and CWR on the first only. `frame` is the packet
/// from which `headers` were read, and `run` is not empty.
pub fn render<'a>(frame: &'a [u8], headers: &Headers, run: Range<u16>, mark: Mark, out: &mut Vec<u8>) -> &'a [u8] {
    let packet = &frame[VNET_LEN..][..usize::from(headers.length)];
    let payload_at = usize::from(headers.payload_at);
    let (begin, end) = headers.payload_of(run.start, run.end);
    let mut vnet = headers.vnet;
    if run.len() == 1 {
        vnet.segmentation = None;
    }
    out.clear();
    out.extend_from_slice(&[0; VNET_LEN]);
    out.extend_from_slice(&packet[..payload_at]);
    let header = &mut out[VNET_LEN..];
    if headers.segments() > 1 {
        cut(header, headers, &run, end - begin);
    }
    if mark == Mark::Ce {
        set_ce(header, headers.destination);
    }
    let cwr = headers.transport == IpProtocol::Tcp && header[usize::from(headers.transport_at) + 13] & CWR != 0;
    let bytes = if cwr { vnet.bytes_with_cwr(headers.payload_at) } else { vnet.bytes(headers.payload_at) };
    out[..VNET_LEN].copy_from_slice(&bytes);
    &packet[payload_at + begin..payload_at + end]
}

/// Makes the headers of a complete packet those of some of its segments.
fn cut(header: &mut [u8], headers: &Headers, run: &Range<u16>, payload: usize) {
    let size = headers.vnet.segmentation.map_or(0, |(_, size)| size);
    // At most the length of the complete packet, which fits.
    let length = headers.payload_at + payload as u16;
    match headers.destination {
        Destination::V4(_) => {
            let id = word(header, 4).wrapping_add(run.start);
            replace_v4(header, 2, length);
            replace_v4(header, 4, id);
        }
        Destination::V6(_) => set_word(header, 4, length - 40),
    }
    let at = usize::from(headers.transport_at);
    let (full_length, part_length) = (headers.length - headers.transport_at, length - headers.transport_at);
    let checksum_at = if headers.transport == IpProtocol::Tcp {
        let sequence = u32::from(word(header, at + 4)) << 16 | u32::from(word(header, at + 6));
        let sequence = sequence.wrapping_add(u32::from(run.start) * u32::from(size));
        header[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        if run.start > 0 {
            header[at + 13] &= !CWR;
        }
        if run.end < headers.segments() {
            header[at + 13] &= !(FIN | PSH);
        }
        at + 16
    } else {
        set_word(header, at + 4, part_length);
        at + 6
    };
    // The sum of the pseudo-header, which has the length in it; the rest is still left to be done.
    let sum = replace_in_sum(word(header, checksum_at), full_length, part_length);
    set_word(header, checksum_at, sum);
}

/// Sets the CE mark. Only for a packet that may be marked.
fn set_ce(header: &mut [u8], destination: Destination) {
    match destination {
        Destination::V4(_) => replace_v4(header, 0, word(header, 0) | 3),
        Destination::V6(_) => header[1] |= 0x30,
    }
}

/// Changes a word of an IPv4 header and its checksum with it.
pub(super) fn replace_v4(header: &mut [u8], at: usize, new: u16) {
    let checksum = replace(word(header, 10), word(header, at), new);
    set_word(header, at, new);
    set_word(header, 10, checksum);
}

pub(super) fn word(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

pub(super) fn set_word(header: &mut [u8], at: usize, value: u16) {
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes one segment to `out` as it is on the wire: no virtio header, every checksum done.
pub fn wire_segment(frame: &[u8], headers: &Headers, segment: u16, mark: Mark, out: &mut Vec<u8>) {
    let payload = render(frame, headers, segment..segment + 1, mark, out);
    out.extend_from_slice(payload);
    out.drain(..VNET_LEN);
    if let Some((start, offset)) = headers.vnet.checksum {
        let at = usize::from(start) + usize::from(offset);
        let checksum = match !fold(sum(&out[usize::from(start)..])) {
            // In UDP, 0 means no checksum.
            0 if headers.transport == IpProtocol::Udp => 0xffff,
            checksum => checksum,
        };
        set_word(out, at, checksum);
    }
}

/// Writes one segment to `out` behind an empty virtio header, every checksum done, and then changes one bit of its
/// payload or, if it has none, of its transport header's checksum: the receiver's checksum rejects it. `bits` select the
/// bit.
pub fn render_corrupted(frame: &[u8], headers: &Headers, segment: u16, mark: Mark, bits: u32, out: &mut Vec<u8>) {
    wire_segment(frame, headers, segment, mark, out);
    let payload_at = usize::from(headers.payload_at);
    if payload_at < out.len() {
        flip_bit(&mut out[payload_at..], bits);
    } else {
        let checksum_at = match headers.transport {
            IpProtocol::Tcp => 16,
            _ => 6,
        };
        let at = usize::from(headers.transport_at) + checksum_at;
        if let Some(checksum) = out.get_mut(at..at + 2) {
            let right = [checksum[0], checksum[1]];
            flip_bit(checksum, bits);
            // In UDP, 0 means no checksum: then the next bit is changed instead.
            if *checksum == [0, 0] {
                checksum.copy_from_slice(&right);
                flip_bit(checksum, bits.wrapping_add(1 << 28));
            }
        }
    }
    out.splice(..0, [0; VNET_LEN]);
}

/// Changes one bit of some bytes, selected by random bits; none of no bytes.
pub fn flip_bit(bytes: &mut [u8], bits: u32) {
    let Some(last) = (bytes.len() as u64 * 8).checked_sub(1) else { return };
    let at = (u64::from(bits) * (last + 1)) >> 32;
    bytes[(at / 8) as usize] ^= 1 << (at % 8);
}
