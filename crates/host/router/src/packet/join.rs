//! Joining a packet to the one that it continues, as if the sender had handed over both as one.

use super::checksum::replace_in_sum;
use super::headers::{Destination, Headers, IpProtocol};
use super::run::{CWR, FIN, PSH, replace_v4, set_word, word};
use super::vnet::{Segmentation, VNET_LEN};

const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// Returns whether packets may be joined to this one. It must be TCP with payload, of complete segments, with its
/// checksum left to the device, and without flags that only the last of several segments may have.
pub fn is_open(frame: &[u8], headers: &Headers) -> bool {
    let at = usize::from(headers.transport_at);
    headers.transport == IpProtocol::Tcp
        && headers.payload() > 0
        && headers.payload().is_multiple_of(size_of(headers))
        && headers.vnet.checksum == Some((headers.transport_at, 16))
        && frame[VNET_LEN + at + 13] & !(ECE | CWR) == ACK
}

/// Returns the headers of both packets as one, if `next` continues `frame`: segmenting that one packet yields the same
/// segments again. None if it does not. `frame` is open ([`is_open`]), and `following` was read from `next`.
pub fn joined(frame: &[u8], headers: &Headers, next: &[u8], following: &Headers) -> Option<Headers> {
    let alike = (headers.flow, headers.destination, headers.transport_at, headers.payload_at)
        == (following.flow, following.destination, following.transport_at, following.payload_at);
    let fits = following.segments() == 1 && (1..=size_of(headers)).contains(&following.payload());
    let length = headers.length.checked_add(following.payload())?;
    if !alike || !fits || following.vnet.checksum != headers.vnet.checksum {
        return None;
    }
    let payload_at = usize::from(headers.payload_at);
    let (one, two) = (frame.get(VNET_LEN..)?.get(..payload_at)?, next.get(VNET_LEN..)?.get(..payload_at)?);
    // The headers that the second would have if a NIC had segmented both from one packet.
    let mut expected = one.to_vec();
    match headers.destination {
        Destination::V4(_) => {
            let id = word(one, 4).wrapping_add(headers.segments());
            replace_v4(&mut expected, 2, following.length);
            replace_v4(&mut expected, 4, id);
        }
        Destination::V6(_) => set_word(&mut expected, 4, following.length - 40),
    }
    let at = usize::from(headers.transport_at);
    let sequence = u32::from(word(one, at + 4)) << 16 | u32::from(word(one, at + 6));
    let sequence = sequence.wrapping_add(headers.payload().into());
    expected[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
    expected[at + 13] = one[at + 13] & !CWR | two[at + 13] & (FIN | PSH);
    let sum = replace_in_sum(word(one, at + 16), headers.length - headers.transport_at, {
        following.length - following.transport_at
    });
    set_word(&mut expected, at + 16, sum);
    if expected != two {
        return None;
    }
    let kind = match headers.destination {
        Destination::V4(_) => Segmentation::TcpV4,
        Destination::V6(_) => Segmentation::TcpV6,
    };
    let mut both = *headers;
    both.vnet.segmentation = Some((kind, size_of(headers)));
    both.length = length;
    Some(both)
}

/// Changes the headers at the beginning of `frame` to those of both packets. The caller appends the payload of `next`.
pub fn join(frame: &mut [u8], headers: &Headers, next: &[u8], both: &Headers) {
    let header = &mut frame[VNET_LEN..];
    match headers.destination {
        Destination::V4(_) => replace_v4(header, 2, both.length),
        Destination::V6(_) => set_word(header, 4, both.length - 40),
    }
    let at = usize::from(headers.transport_at);
    header[at + 13] |= next[VNET_LEN + at + 13] & (FIN | PSH);
    let sum =
        replace_in_sum(word(header, at + 16), headers.length - headers.transport_at, both.length - both.transport_at);
    set_word(header, at + 16, sum);
}

/// The payload bytes of a whole segment.
fn size_of(headers: &Headers) -> u16 {
    headers.vnet.segmentation.map_or(headers.payload(), |(_, size)| size)
}
