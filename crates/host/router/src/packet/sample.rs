//! Packets for tests, and a simple model of how a NIC would segment them. It shares no code with the code under test.

use super::vnet::VNET_LEN;

/// Fields of a TCP or UDP packet before segmentation, as a kernel hands it to a NIC.
#[derive(Clone)]
pub(crate) struct PacketSample {
    pub(crate) v6: bool,
    pub(crate) tcp: bool,
    /// Number of 32-bit words of IPv4 options, or of IPv6 extension headers of 8 bytes.
    pub(crate) ip_extra: usize,
    /// Number of 32-bit words of TCP options.
    pub(crate) tcp_options: usize,
    pub(crate) ecn: u8,
    pub(crate) dscp: u8,
    pub(crate) id: u16,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    pub(crate) gso_size: u16,
    pub(crate) source: u8,
    /// Datacenter and host.
    pub(crate) destination: (u8, u8),
    pub(crate) ports: (u16, u16),
    pub(crate) payload: Vec<u8>,
}

/// Without the payload's bytes.
impl std::fmt::Debug for PacketSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            v6,
            tcp,
            ip_extra,
            tcp_options,
            ecn,
            dscp,
            id,
            sequence,
            flags,
            gso_size,
            source,
            destination,
            ports,
            payload,
        } = self;
        let headers = (v6, tcp, ip_extra, tcp_options, (ecn, dscp), id, sequence, flags);
        write!(f, "{headers:?} {source} to {destination:?} {ports:?}, {} bytes in {gso_size}", payload.len())
    }
}

impl Default for PacketSample {
    fn default() -> Self {
        Self {
            v6: false,
            tcp: true,
            ip_extra: 0,
            tcp_options: 3,
            ecn: 2,
            dscp: 0,
            id: 7,
            sequence: 1000,
            flags: 0x10,
            gso_size: 1448,
            source: 1,
            destination: (1, 1),
            ports: (40_000, 5201),
            payload: Vec::new(),
        }
    }
}

impl PacketSample {
    pub(crate) fn transport_at(&self) -> usize {
        if self.v6 { 40 + self.ip_extra * 8 } else { 20 + self.ip_extra * 4 }
    }

    pub(crate) fn payload_at(&self) -> usize {
        self.transport_at() + if self.tcp { 20 + self.tcp_options * 4 } else { 8 }
    }

    /// Builds the frame: virtio header and packet with a partial checksum; GSO if the payload exceeds one segment.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut packet = self.headers(self.payload.len(), 0);
        packet.extend_from_slice(&self.payload);
        let at = self.checksum_at();
        let pseudo_header = self.pseudo_header(packet.len() - self.transport_at());
        packet[at..at + 2].copy_from_slice(&(naive_sum(&pseudo_header)).to_be_bytes());
        let mut frame = vec![0; VNET_LEN];
        frame[0] = 1;
        if self.payload.len() > usize::from(self.gso_size) {
            frame[1] = match (self.tcp, self.v6) {
                (true, false) => 1,
                (true, true) => 4,
                (false, _) => 5,
            };
            frame[4..6].copy_from_slice(&self.gso_size.to_le_bytes());
        }
        frame[6..8].copy_from_slice(&(self.transport_at() as u16).to_le_bytes());
        frame[8..10].copy_from_slice(&(if self.tcp { 16u16 } else { 6 }).to_le_bytes());
        frame.extend_from_slice(&packet);
        frame
    }

    /// Builds the packets that the NIC sends after segmentation, with their checksums. Those of `marked` are CE.
    pub(crate) fn wire_packets(&self, marked: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
        let empty: &[u8] = &[];
        let mut payloads: Vec<&[u8]> = self.payload.chunks(usize::from(self.gso_size)).collect();
        if payloads.is_empty() {
            payloads.push(empty);
        }
        let count = payloads.len();
        let segment = |(index, payload): (usize, &[u8])| {
            let mut single = self.clone();
            single.id = self.id.wrapping_add(index as u16);
            single.sequence = self.sequence.wrapping_add((index * usize::from(self.gso_size)) as u32);
            if index > 0 {
                single.flags &= !0x80;
            }
            if index + 1 < count {
                single.flags &= !0x09;
            }
            if marked(index) {
                single.ecn = 3;
            }
            let mut packet = single.headers(payload.len(), 0);
            packet.extend_from_slice(payload);
            let at = self.transport_at();
            let mut summed = self.pseudo_header(packet.len() - at);
            summed.extend_from_slice(&packet[at..]);
            let mut checksum = !naive_sum(&summed);
            if !self.tcp && checksum == 0 {
                checksum = 0xffff;
            }
            let at = self.checksum_at();
            packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            packet
        };
        payloads.into_iter().enumerate().map(segment).collect()
    }

    fn addresses(&self) -> (Vec<u8>, Vec<u8>) {
        let (datacenter, host) = self.destination;
        if self.v6 {
            let address = |dc: u8, host: u8| [0xfd, 0x6e, 0x61, 0x72, 0, 0, 0, 0, 0, 0, 0, 0, 0, dc, 0, host].to_vec();
            (address(0, self.source), address(datacenter, host))
        } else {
            (vec![10, 198, 0, self.source], vec![10, 198, datacenter, host])
        }
    }

    pub(crate) fn checksum_at(&self) -> usize {
        self.transport_at() + if self.tcp { 16 } else { 6 }
    }

    pub(crate) fn pseudo_header(&self, length: usize) -> Vec<u8> {
        let (mut pseudo_header, destination) = self.addresses();
        pseudo_header.extend(destination);
        pseudo_header.extend([0, if self.tcp { 6 } else { 17 }]);
        pseudo_header.extend((length as u16).to_be_bytes());
        pseudo_header
    }

    fn headers(&self, payload: usize, checksum: u16) -> Vec<u8> {
        let length = self.payload_at() + payload;
        let protocol = if self.tcp { 6 } else { 17 };
        let (source, destination) = self.addresses();
        let mut out = Vec::new();
        if self.v6 {
            let first = if self.ip_extra > 0 { 60 } else { protocol };
            out.extend([0x60 | self.dscp >> 2, self.dscp << 6 | self.ecn << 4, 0, 0]);
            out.extend(((length - 40) as u16).to_be_bytes());
            out.extend([first, 64]);
            out.extend(source);
            out.extend(destination);
            for extra in 0..self.ip_extra {
                // Destination options: one pad of six bytes.
                out.extend([if extra + 1 < self.ip_extra { 60 } else { protocol }, 0, 1, 4, 0, 0, 0, 0]);
            }
        } else {
            out.extend([0x45 + self.ip_extra as u8, self.dscp << 2 | self.ecn]);
            out.extend((length as u16).to_be_bytes());
            out.extend(self.id.to_be_bytes());
            out.extend([0x40, 0, 64, protocol, 0, 0]);
            out.extend(source);
            out.extend(destination);
            out.resize(20 + self.ip_extra * 4, 1);
            let checksum = !naive_sum(&out);
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        out.extend(self.ports.0.to_be_bytes());
        out.extend(self.ports.1.to_be_bytes());
        if self.tcp {
            out.extend(self.sequence.to_be_bytes());
            out.extend([0, 0, 0, 9, (5 + self.tcp_options as u8) << 4, self.flags, 1, 0]);
            out.extend(checksum.to_be_bytes());
            out.extend([0, 0]);
            out.resize(self.payload_at(), 1);
        } else {
            out.extend(((length - self.transport_at()) as u16).to_be_bytes());
            out.extend(checksum.to_be_bytes());
        }
        out
    }
}

/// Returns the ones' complement sum (RFC 1071), with the carry added back after each word.
pub(crate) fn naive_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u16;
    for pair in bytes.chunks(2) {
        let word = u16::from(pair[0]) * 256 + pair.get(1).map_or(0, |&low| u16::from(low));
        let (next, carry) = sum.overflowing_add(word);
        sum = next + u16::from(carry);
    }
    sum
}
