//! UDP datagrams as frames: virtio header, IP header, UDP header, payload.

use std::net::{IpAddr, SocketAddr};

use super::checksum::{fold, sum};
use super::run::set_word;
use super::vnet::{VNET_LEN, Vnet};
use super::{Destination, Headers, IpProtocol};

const UDP: u8 = 17;
/// Offset of the checksum in a UDP header.
const CHECKSUM_AT: u16 = 6;
const HOP_LIMIT: u8 = 64;
/// The flag "don't fragment" (RFC 791).
const DONT_FRAGMENT: u8 = 0x40;

/// The longest UDP payload over IPv4 without options, in bytes.
pub const MAX_PAYLOAD: usize = 65_535 - 28;

/// Addresses and marking of a UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpHeader {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port; of the same IP version as the source.
    pub destination: SocketAddr,
    /// The two bits of ECN.
    pub ecn: u8,
}

/// Replaces the contents of `out` by the frame of a datagram. The UDP checksum is left to the device (checksum
/// offload), as by a kernel.
///
/// # Panics
/// If the payload is longer than [`MAX_PAYLOAD`], or the addresses are of different IP versions.
pub fn write_udp(header: &UdpHeader, payload: &[u8], out: &mut Vec<u8>) {
    assert!(payload.len() <= MAX_PAYLOAD, "a UDP payload of {} bytes", payload.len());
    let length = payload.len() as u16 + 8;
    out.clear();
    out.extend_from_slice(&[0; VNET_LEN]);
    let addresses = match (header.source.ip(), header.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (length + 20).to_be_bytes();
            out.extend([0x45, header.ecn & 3, total[0], total[1], 0, 0, DONT_FRAGMENT, 0, HOP_LIMIT, UDP, 0, 0]);
            out.extend(source.octets());
            out.extend(destination.octets());
            let checksum = !fold(sum(&out[VNET_LEN..]));
            set_word(&mut out[VNET_LEN..], 10, checksum);
            sum(&source.octets()) + sum(&destination.octets())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let payload = length.to_be_bytes();
            out.extend([0x60, (header.ecn & 3) << 4, 0, 0, payload[0], payload[1], UDP, HOP_LIMIT]);
            out.extend(source.octets());
            out.extend(destination.octets());
            sum(&source.octets()) + sum(&destination.octets())
        }
        (source, destination) => panic!("source {source} and destination {destination} differ in IP version"),
    };
    // The checksum field starts as the sum of the pseudo-header (RFC 768; RFC 8200 §8.1). The device adds the rest.
    let pseudo_header = fold(addresses + u32::from(UDP) + u32::from(length));
    let transport_at = (out.len() - VNET_LEN) as u16;
    out.extend(header.source.port().to_be_bytes());
    out.extend(header.destination.port().to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend(pseudo_header.to_be_bytes());
    let vnet = Vnet { checksum: Some((transport_at, CHECKSUM_AT)), segmentation: None };
    out[..VNET_LEN].copy_from_slice(&vnet.bytes(transport_at + 8));
    out.extend_from_slice(payload);
}

/// Returns the header and the payload of the datagram in a frame; none if it is another packet, or several.
pub fn read_udp<'a>(frame: &'a [u8], headers: &Headers) -> Option<(UdpHeader, &'a [u8])> {
    if headers.transport != IpProtocol::Udp || headers.segments() != 1 {
        return None;
    }
    let packet = frame.get(VNET_LEN..)?.get(..usize::from(headers.length))?;
    let at = usize::from(headers.transport_at);
    let port = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let (source, destination): (IpAddr, IpAddr) = match headers.destination {
        Destination::V4(to) => (packet.get(12..)?.first_chunk::<4>().copied()?.into(), to.into()),
        Destination::V6(to) => (packet.get(8..)?.first_chunk::<16>().copied()?.into(), to.into()),
    };
    let header = UdpHeader {
        source: SocketAddr::new(source, port(at)?),
        destination: SocketAddr::new(destination, port(at + 2)?),
        ecn: headers.ecn,
    };
    Some((header, packet.get(usize::from(headers.payload_at)..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample::naive_sum;
    use super::super::{Mark, wire_segment};
    use super::*;

    proptest! {
        #[test]
        fn datagrams_round_trip_with_valid_checksums(
            v6: bool, ports: (u16, u16), ecn in 0u8..4, payload in prop::collection::vec(any::<u8>(), 0..3_000)
        ) {
            let address = |host: u16| if v6 { IpAddr::from([0xfd6e, 0, 0, 0, 0, 0, 1, host]) } else { [10, 198, 1, host as u8].into() };
            let header = UdpHeader {
                source: SocketAddr::new(address(1), ports.0),
                destination: SocketAddr::new(address(2), ports.1),
                ecn,
            };
            let mut frame = Vec::new();
            write_udp(&header, &payload, &mut frame);
            let headers = Headers::parse(&frame).unwrap();
            prop_assert_eq!(read_udp(&frame, &headers), Some((header, &payload[..])));
            let mut wire = Vec::new();
            wire_segment(&frame, &headers, 0, Mark::None, &mut wire);
            let at = usize::from(headers.transport_at);
            let mut summed: Vec<u8> = if v6 { wire[8..40].to_vec() } else { wire[12..20].to_vec() };
            summed.extend([0, 17]);
            summed.extend((payload.len() as u16 + 8).to_be_bytes());
            summed.extend(&wire[at..]);
            prop_assert_eq!(naive_sum(&summed), 0xffff);
            if !v6 {
                prop_assert_eq!(naive_sum(&wire[..20]), 0xffff);
            }
        }
    }
}
