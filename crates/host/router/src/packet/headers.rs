//! Header fields that the router needs: destination, flow and segmentation of a packet.

use units::mix64;

use super::vnet::{Segmentation, VNET_LEN, Vnet};

/// Reason why a packet is not forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// Neither IPv4 nor IPv6, or headers that contradict themselves.
    Malformed,
    /// Shorter than its headers state.
    Truncated,
}

/// Destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// An IPv4 address.
    V4([u8; 4]),
    /// An IPv6 address.
    V6([u8; 16]),
}

/// Protocol inside an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Anything else, or a fragment.
    Other,
}

/// A packet's complete headers. Offsets count from the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Destination address.
    pub destination: Destination,
    /// A hash of its five-tuple, or of the addresses and the protocol if it has no ports.
    pub flow: u64,
    /// Protocol inside the IP packet.
    pub transport: IpProtocol,
    /// The two bits of ECN: 0 for a packet that may not be marked, 3 for one that is.
    pub ecn: u8,
    /// Differentiated services code point: see [`CREDIT_DSCP`], [`OVER_PROVISIONED_CREDIT_DSCP`] and [`UNSCHEDULED_DSCP`].
    pub dscp: u8,
    /// Offset of TCP or UDP, or of the other payload.
    pub transport_at: u16,
    /// Offset of the payload.
    pub payload_at: u16,
    /// The length of the IP packet.
    pub length: u16,
    /// Offloads that the sender left to the device. No segmentation if the packet is one segment only.
    pub vnet: Vnet,
}

/// DSCP of a credit, for a port's credit queue (local use: RFC 2474 §6, pool 2).
pub const CREDIT_DSCP: u8 = 0b00_0011;
/// DSCP of a credit that a port may drop from its credit queue's threshold on.
pub const OVER_PROVISIONED_CREDIT_DSCP: u8 = 0b00_0111;
/// DSCP of data sent without a credit: a port with a credit queue may drop it first.
pub const UNSCHEDULED_DSCP: u8 = 0b00_1011;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// An IP header, read.
struct Internet {
    destination: Destination,
    addresses: u64,
    protocol: u8,
    fragment: bool,
    ecn: u8,
    dscp: u8,
    transport_at: usize,
    length: usize,
}

impl Headers {
    /// Reads a virtio header and the packet after it. Bytes beyond the length in the IP header are not part of the packet.
    ///
    /// # Errors
    /// If it is not a complete IP packet, or its headers are inconsistent.
    pub fn parse(frame: &[u8]) -> Result<Self, DropReason> {
        let (vnet, packet) = frame.split_first_chunk::<VNET_LEN>().ok_or(DropReason::Truncated)?;
        let vnet = Vnet::parse(*vnet).ok_or(DropReason::Malformed)?;
        let ip = match packet.first().ok_or(DropReason::Truncated)? >> 4 {
            4 => internet_v4(packet)?,
            6 => internet_v6(packet)?,
            _ => return Err(DropReason::Malformed),
        };
        let packet = packet.get(..ip.length).ok_or(DropReason::Truncated)?;
        let carried = packet.get(ip.transport_at..).ok_or(DropReason::Truncated)?;
        let (transport, header) = match ip.protocol {
            _ if ip.fragment => (IpProtocol::Other, 0),
            TCP => (IpProtocol::Tcp, tcp_header(carried)?),
            UDP if carried.len() < UDP_HEADER => return Err(DropReason::Truncated),
            UDP => (IpProtocol::Udp, UDP_HEADER),
            _ => (IpProtocol::Other, 0),
        };
        let ports = match transport {
            IpProtocol::Other => 0,
            IpProtocol::Tcp | IpProtocol::Udp => carried.first_chunk().map_or(0, |&ports| u32::from_be_bytes(ports)),
        };
        let flow = mix64(ip.addresses ^ mix64(u64::from(ports) << 8 | u64::from(ip.protocol)));
        // An IP packet is at most 65,575 bytes long by its fields, and here at most 65,535.
        let length = u16::try_from(ip.length).map_err(|_| DropReason::Malformed)?;
        let mut headers = Self {
            destination: ip.destination,
            flow,
            transport,
            ecn: ip.ecn,
            dscp: ip.dscp,
            transport_at: ip.transport_at as u16,
            payload_at: (ip.transport_at + header) as u16,
            length,
            vnet,
        };
        headers.check_checksum()?;
        headers.check_segmentation()?;
        Ok(headers)
    }

    /// Checks that the checksum to be completed is within the packet.
    fn check_checksum(&self) -> Result<(), DropReason> {
        let Some((start, offset)) = self.vnet.checksum else { return Ok(()) };
        let end = u32::from(start) + u32::from(offset) + 2;
        if start < self.transport_at || end > u32::from(self.length) {
            return Err(DropReason::Malformed);
        }
        Ok(())
    }

    /// Checks that a packet to be segmented is of the declared type, and leaves its checksum to the device.
    fn check_segmentation(&mut self) -> Result<(), DropReason> {
        let Some((kind, size)) = self.vnet.segmentation else { return Ok(()) };
        let fits = match (kind, self.transport, self.destination) {
            (Segmentation::TcpV4, IpProtocol::Tcp, Destination::V4(_))
            | (Segmentation::TcpV6, IpProtocol::Tcp, Destination::V6(_)) => Some(16),
            (Segmentation::Udp, IpProtocol::Udp, _) => Some(6),
            _ => None,
        };
        let checksum = fits.map(|offset| (self.transport_at, offset));
        if size == 0 || checksum.is_none() || self.vnet.checksum != checksum {
            return Err(DropReason::Malformed);
        }
        if self.payload() <= size {
            self.vnet.segmentation = None;
        }
        Ok(())
    }

    /// Bytes of payload.
    pub fn payload(&self) -> u16 {
        self.length - self.payload_at
    }

    /// Returns the number of packets on the wire.
    pub fn segments(&self) -> u16 {
        self.vnet.segmentation.map_or(1, |(_, size)| self.payload().div_ceil(size))
    }

    /// Returns the start and the end of the payloads of segments from `first` to before `end`, as offsets in the
    /// payload.
    pub(super) fn payload_of(&self, first: u16, end: u16) -> (usize, usize) {
        let payload = usize::from(self.payload());
        let Some((_, size)) = self.vnet.segmentation else { return (0, payload) };
        let size = usize::from(size);
        ((usize::from(first) * size).min(payload), (usize::from(end) * size).min(payload))
    }

    /// The length on the wire of a segment, its IP header included.
    pub fn wire_length(&self, segment: u16) -> u16 {
        let (begin, end) = self.payload_of(segment, segment.saturating_add(1));
        self.payload_at + (end - begin) as u16
    }

    /// Returns whether the packet is a credit.
    pub fn is_credit(&self) -> bool {
        matches!(self.dscp, CREDIT_DSCP | OVER_PROVISIONED_CREDIT_DSCP)
    }

    /// Returns whether a port with a credit queue may drop the packet before others of its kind.
    pub fn is_expendable(&self) -> bool {
        matches!(self.dscp, OVER_PROVISIONED_CREDIT_DSCP | UNSCHEDULED_DSCP)
    }

    /// Returns whether the packet may be marked.
    pub fn is_ecn_capable(&self) -> bool {
        self.ecn != 0
    }

    /// Returns whether the packet is of the control class: TCP without payload.
    pub fn is_control(&self) -> bool {
        self.transport == IpProtocol::Tcp && self.payload() == 0
    }
}

fn internet_v4(packet: &[u8]) -> Result<Internet, DropReason> {
    let header = packet.first_chunk::<20>().ok_or(DropReason::Truncated)?;
    let transport_at = usize::from(header[0] & 0xf) * 4;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if transport_at < 20 || length < transport_at {
        return Err(DropReason::Malformed);
    }
    // All but the flag "don't fragment" and the bit next to it.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let [.., a, b, c, d] = *header;
    Ok(Internet {
        destination: Destination::V4([a, b, c, d]),
        addresses: header.last_chunk::<8>().map_or(0, |&both| mix64(u64::from_be_bytes(both))),
        protocol: header[9],
        fragment,
        ecn: header[1] & 3,
        dscp: header[1] >> 2,
        transport_at,
        length,
    })
}

fn internet_v6(packet: &[u8]) -> Result<Internet, DropReason> {
    let header = packet.first_chunk::<40>().ok_or(DropReason::Truncated)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // A jumbogram has 0 there and its length in an option; the devices are not configured to send any.
    if payload == 0 && packet.len() > 40 {
        return Err(DropReason::Malformed);
    }
    let length = 40 + payload;
    let packet = packet.get(..length).ok_or(DropReason::Truncated)?;
    let (protocol, transport_at, fragment) = skip_extensions(packet, header[6])?;
    let (words, _) = header[8..].as_chunks::<8>();
    let (source, destination) = (&words[..2], &words[2..]);
    let addresses = source.iter().chain(destination).fold(0, |hash, &word| mix64(hash ^ u64::from_be_bytes(word)));
    Ok(Internet {
        destination: Destination::V6(header.last_chunk().copied().unwrap_or_default()),
        addresses,
        protocol,
        fragment,
        ecn: header[1] >> 4 & 3,
        dscp: (header[0] & 0xf) << 2 | header[1] >> 6,
        transport_at,
        length,
    })
}

/// Skips IPv6 extension headers (RFC 8200, section 4). Returns the upper-layer protocol, its offset, and whether the packet
/// is a fragment.
fn skip_extensions(packet: &[u8], mut next: u8) -> Result<(u8, usize, bool), DropReason> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const OPTIONS: u8 = 60;
    let mut at = 40;
    let mut fragment = false;
    loop {
        let unit = match next {
            HOP_BY_HOP | ROUTING | OPTIONS => 8,
            AUTHENTICATION => 4,
            FRAGMENT => 0,
            _ => return Ok((next, at, fragment)),
        };
        let header = packet.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(DropReason::Truncated)?;
        // The authentication header counts from 8 bytes on in units of 4, the others in units of 8.
        let length = 8 + usize::from(header[1]) * unit;
        if next == FRAGMENT {
            fragment |= u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0;
        }
        next = header[0];
        at += length;
        if at > packet.len() {
            return Err(DropReason::Truncated);
        }
    }
}

/// The length of a TCP header, options included.
fn tcp_header(carried: &[u8]) -> Result<usize, DropReason> {
    let header = carried.first_chunk::<TCP_HEADER>().ok_or(DropReason::Truncated)?;
    let length = usize::from(header[12] >> 4) * 4;
    if length < TCP_HEADER {
        return Err(DropReason::Malformed);
    }
    if length > carried.len() {
        return Err(DropReason::Truncated);
    }
    Ok(length)
}
