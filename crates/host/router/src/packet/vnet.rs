//! The virtio header (`struct virtio_net_hdr`): the work that the sender left to the NIC.

/// Its length.
pub const VNET_LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Segmentation type of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segmentation {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP, each segment a datagram of its own.
    Udp,
}

/// A virtio header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Vnet {
    /// Checksum offload: the offset at which the sum starts, and the position of the checksum relative to it. The field
    /// holds the sum of the pseudo-header.
    pub checksum: Option<(u16, u16)>,
    /// Segmentation of the packet: its type, and the payload bytes of a segment.
    pub segmentation: Option<(Segmentation, u16)>,
}

impl Vnet {
    /// Reads a header; none if it requests an offload that was never offered.
    pub fn parse(bytes: [u8; VNET_LEN]) -> Option<Self> {
        let [flags, gso_type, _, _, size_low, size_high, start_low, start_high, offset_low, offset_high] = bytes;
        let start = u16::from_le_bytes([start_low, start_high]);
        let offset = u16::from_le_bytes([offset_low, offset_high]);
        let segmentation = match gso_type & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCP_V4 => Some(Segmentation::TcpV4),
            GSO_TCP_V6 => Some(Segmentation::TcpV6),
            GSO_UDP_L4 => Some(Segmentation::Udp),
            _ => return None,
        };
        let size = u16::from_le_bytes([size_low, size_high]);
        Some(Self {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some((start, offset)),
            segmentation: segmentation.map(|kind| (kind, size)),
        })
    }

    /// Returns the header's bytes of a packet whose first segment of several, and no other, has the CWR flag: the sender
    /// has reduced its window. `header_length` is the offset of the payload.
    pub fn bytes_with_cwr(&self, header_length: u16) -> [u8; VNET_LEN] {
        let mut bytes = self.bytes(header_length);
        if self.segmentation.is_some() {
            bytes[1] |= GSO_ECN;
        }
        bytes
    }

    /// Returns the header's bytes. `header_length` is the offset of the payload.
    pub fn bytes(&self, header_length: u16) -> [u8; VNET_LEN] {
        let mut bytes = [0; VNET_LEN];
        if let Some((start, offset)) = self.checksum {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&start.to_le_bytes());
            bytes[8..10].copy_from_slice(&offset.to_le_bytes());
        }
        if let Some((kind, size)) = self.segmentation {
            bytes[1] = match kind {
                Segmentation::TcpV4 => GSO_TCP_V4,
                Segmentation::TcpV6 => GSO_TCP_V6,
                Segmentation::Udp => GSO_UDP_L4,
            };
            bytes[2..4].copy_from_slice(&header_length.to_le_bytes());
            bytes[4..6].copy_from_slice(&size.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        for checksum in [None, Some((20, 16)), Some((40, 6))] {
            for segmentation in [
                None,
                Some((Segmentation::TcpV4, 1448)),
                Some((Segmentation::TcpV6, 1)),
                Some((Segmentation::Udp, 9000)),
            ] {
                let header = Vnet { checksum, segmentation };
                assert_eq!(Vnet::parse(header.bytes(54)), Some(header));
                assert_eq!(Vnet::parse(header.bytes_with_cwr(54)), Some(header));
            }
        }
    }

    #[test]
    fn unknown_segmentation_is_refused() {
        for kind in [2, 3, 6, 0x40, 0x7f, 0x83] {
            let mut bytes = [0; VNET_LEN];
            bytes[1] = kind;
            assert_eq!(Vnet::parse(bytes), None, "{kind}");
        }
    }
}
