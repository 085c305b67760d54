//! Packet captures, pcap or pcapng, as transfers: one for each direction of a TCP or UDP flow (5-tuple), from its first
//! payload byte on.
//!
//! A pcap's magic number determines its byte order, the unit of fractional seconds, and the length of packet headers
//! (draft-ietf-opsawg-pcap, section 4; the longer headers are Kuznetsov's). A pcapng states the byte order of each
//! section.
//!
//! The bytes of a TCP flow are counted by sequence numbers, so retransmissions count once, and bytes missing in the
//! capture count, too. A SYN after data begins another flow. UDP payloads are added up. Packets may be truncated: their
//! headers contain the original length.

use std::collections::BTreeMap;
use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::{PcapBlockOwned, PcapNGSlice};

use crate::transfers::{Transfer, Transfers};
use crate::{ByteRange, Error, GZIP, counted};

/// A direction of a flow: source, destination, protocol (IANA's number), and the two ports.
type Tuple = (IpAddr, IpAddr, u8, u16, u16);

/// State of a flow while the capture is read.
struct CapturedFlow {
    start_ns: i128,
    bytes: u64,
    /// Sequence number after the last TCP byte.
    next: Option<u32>,
}

#[derive(Default)]
struct CaptureState {
    flows: BTreeMap<Tuple, CapturedFlow>,
    done: Vec<(i128, Transfer)>,
    others: usize,
    groups: usize,
    without_time: usize,
    old: usize,
    links: BTreeMap<i32, usize>,
}

/// The packet block of drafts of pcapng before the enhanced one, in either byte order.
const OLD_PACKET: u32 = 2;
const OLD_PACKET_SWAPPED: u32 = OLD_PACKET.swap_bytes();

/// The largest accepted jump of a sequence number: the maximum TCP window.
const MAX_SEQ_JUMP: u32 = 1 << 30;

/// End of a capture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaptureEnd {
    Complete,
    /// Within a packet, or at one that is broken.
    CutOff,
}

/// Reads a capture.
///
/// # Errors
/// If the file is neither pcap nor pcapng, or is malformed. A truncated last packet is omitted.
pub fn read(file: &[u8]) -> Result<Transfers, Error> {
    let mut state = CaptureState::default();
    let mut end = CaptureEnd::Complete;
    if let Ok(capture) = PcapNGSlice::from_slice(file) {
        // Indexed by interface number, and rebuilt for each section: the link type, ticks per second and the offset in
        // seconds.
        let mut interfaces: Vec<(i32, u64, i64)> = Vec::new();
        let mut big_endian = false;
        for block in capture {
            let Ok(PcapBlockOwned::NG(block)) = block else {
                end = CaptureEnd::CutOff;
                break;
            };
            match block {
                Block::SectionHeader(section) => {
                    interfaces.clear();
                    big_endian = section.big_endian();
                }
                Block::Unknown(block) if matches!(block.block_type, OLD_PACKET | OLD_PACKET_SWAPPED) => {
                    state.old += 1;
                }
                Block::InterfaceDescription(it) => {
                    let Some(ticks) = ticks(it.if_tsresol) else {
                        let problem = format!("interface {} has an if_tsresol of {}", interfaces.len(), it.if_tsresol);
                        let expected = "expected a time of 10^-19 s or 2^-63 s at the finest";
                        return Err(Error::bytes(ByteRange::new(0..file.len()), problem, expected));
                    };
                    // `pcap_parser` reads this option as little-endian, also in a big-endian section.
                    let offset = if big_endian { it.if_tsoffset.swap_bytes() } else { it.if_tsoffset };
                    interfaces.push((it.linktype.0, ticks, offset));
                }
                Block::EnhancedPacket(packet) => {
                    let Some(&(link, ticks, offset)) = interfaces.get(packet.if_id as usize) else {
                        let at = ByteRange::new(0..file.len());
                        let problem =
                            format!("a packet refers to interface {}, which has no description block", packet.if_id);
                        return Err(Error::bytes(at, problem, format!("expected one of {}", interfaces.len())));
                    };
                    let time = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
                    let at = i128::from(offset) * 1_000_000_000 + time * 1_000_000_000 / i128::from(ticks);
                    let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                    state.packet(link, at, data, packet.origlen);
                }
                Block::SimplePacket(_) => state.without_time += 1,
                _ => {}
            }
        }
    } else if let Some(capture) = Pcap::new(file) {
        end = capture.packets(file, &mut state)?;
    } else {
        return Err(if file.starts_with(&GZIP) {
            Error::bytes(ByteRange::new(0..2), "the capture is compressed", "expected the output of `gunzip`")
        } else {
            Error::bytes(ByteRange::new(0..0), "this is no capture", "expected pcap or pcapng")
        });
    }
    Ok(state.finish(end))
}

/// Ticks of an interface of pcapng in a second: `if_tsresol` is a power of 10, or of 2 with the highest bit set.
/// `pcap_parser` does not support powers of 2.
fn ticks(if_tsresol: u8) -> Option<u64> {
    let power = u32::from(if_tsresol & 0x7f);
    if if_tsresol & 0x80 == 0 { 10u64.checked_pow(power) } else { 2u64.checked_pow(power) }
}

/// The header of a pcap.
struct Pcap {
    /// Reads a word in the file's byte order.
    word: fn([u8; 4]) -> u32,
    /// Fractions of a second in a second.
    ticks: u32,
    /// The length of a packet's header.
    header: usize,
    link: i32,
}

impl Pcap {
    /// The length of the file's header.
    const HEADER: usize = 24;

    /// Reads the header of a file that begins like a pcap.
    fn new(file: &[u8]) -> Option<Self> {
        let header = file.first_chunk::<{ Self::HEADER }>()?;
        let magic = *header.first_chunk()?;
        let known = |word: fn([u8; 4]) -> u32| {
            let (ticks, length) = match word(magic) {
                0xa1b2_c3d4 => (1_000_000, 16),
                0xa1b2_3c4d => (1_000_000_000, 16),
                0xa1b2_cd34 => (1_000_000, 24),
                _ => return None,
            };
            Some((word, ticks, length))
        };
        let (word, ticks, length) = known(u32::from_le_bytes).or_else(|| known(u32::from_be_bytes))?;
        // The length of a checksum is stored in the bits above the link type.
        let link = i32::try_from(word(*header.last_chunk()?) & 0xffff).unwrap_or_default();
        Some(Self { word, ticks, header: length, link })
    }

    /// Reads the packets.
    fn packets(&self, file: &[u8], state: &mut CaptureState) -> Result<CaptureEnd, Error> {
        let mut at = Self::HEADER;
        while at < file.len() {
            let word = |index: usize| {
                let from = at + 4 * index;
                Some((self.word)(*file.get(from..)?.first_chunk()?))
            };
            let [Some(seconds), Some(fraction), Some(kept), Some(length)] = [0, 1, 2, 3].map(word) else {
                return Ok(CaptureEnd::CutOff);
            };
            if fraction >= self.ticks {
                let problem = format!("a packet's time has {fraction} of {} parts of a second", self.ticks);
                let expected =
                    "expected less than a second: the magic number sets the resolution of times and the byte order";
                return Err(Error::bytes(ByteRange::new(at + 4..at + 8), problem, expected));
            }
            let begin = at + self.header;
            let Some(data) = begin.checked_add(kept as usize).and_then(|end| file.get(begin..end)) else {
                return Ok(CaptureEnd::CutOff);
            };
            let ns = i128::from(fraction) * i128::from(1_000_000_000 / self.ticks);
            state.packet(self.link, i128::from(seconds) * 1_000_000_000 + ns, data, length);
            at = begin + kept as usize;
        }
        Ok(CaptureEnd::Complete)
    }
}

impl CaptureState {
    /// Counts a packet captured at `time`: `length` bytes long, with `data` as the captured part.
    fn packet(&mut self, link: i32, time: i128, data: &[u8], length: u32) {
        let sliced = match link {
            1 => LaxSlicedPacket::from_ethernet(data).ok(),
            // A word that states which address family follows.
            0 | 108 => data.get(4..).and_then(|data| LaxSlicedPacket::from_ip(data).ok()),
            12 | 14 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(data).ok(),
            // Linux "cooked" captures, of `any` interface.
            113 => data.get(16..).and_then(|data| LaxSlicedPacket::from_ip(data).ok()),
            276 => data.get(20..).and_then(|data| LaxSlicedPacket::from_ip(data).ok()),
            other => {
                *self.links.entry(other).or_default() += 1;
                return;
            }
        };
        if sliced.and_then(|packet| self.sliced(&packet, time, data, length)).is_none() {
            self.others += 1;
        }
    }

    /// Counts a TCP or UDP packet. Returns none if it is neither.
    fn sliced(&mut self, packet: &LaxSlicedPacket<'_>, time: i128, data: &[u8], length: u32) -> Option<()> {
        // Where a part of the packet begins in it.
        let offset = |part: &[u8]| (part.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let (from, to, end): (IpAddr, IpAddr, usize) = match packet.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let end = offset(header.slice())? + usize::from(header.total_len());
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    if header.total_len() == 0 { 0 } else { end },
                )
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let long = usize::from(header.payload_length());
                let end = offset(header.slice())? + header.slice().len() + long;
                (header.source_addr().into(), header.destination_addr().into(), if long == 0 { 0 } else { end })
            }
            LaxNetSlice::Arp(_) => return None,
        };
        // A NIC that segments large packets itself leaves out the length.
        let end = if end == 0 { length as usize } else { end };
        let (protocol, ports, begin, tcp) = match packet.transport.as_ref()? {
            TransportSlice::Tcp(tcp) => {
                let begin = offset(tcp.slice())? + tcp.header_slice().len();
                (6, (tcp.source_port(), tcp.destination_port()), begin, Some((tcp.sequence_number(), tcp.syn())))
            }
            TransportSlice::Udp(udp) => {
                (17, (udp.source_port(), udp.destination_port()), offset(udp.slice())? + 8, None)
            }
            TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_) | TransportSlice::Igmp(_) => return None,
        };
        let broadcast = matches!(to, IpAddr::V4(to) if to.is_broadcast());
        if to.is_multicast() || broadcast || from == to {
            self.groups += 1;
            return Some(());
        }
        let payload = u32::try_from(end.saturating_sub(begin)).unwrap_or(u32::MAX);
        let tuple = (from, to, protocol, ports.0, ports.1);
        if tcp.is_some_and(|(_, syn)| syn)
            && let Some(flow) = self.flows.remove(&tuple)
        {
            self.done.push(transfer(&tuple, &flow));
        }
        if payload == 0 {
            return Some(());
        }
        let flow = self.flows.entry(tuple).or_insert(CapturedFlow { start_ns: time, bytes: 0, next: None });
        flow.start_ns = flow.start_ns.min(time);
        let Some((number, _)) = tcp else {
            flow.bytes += u64::from(payload);
            return Some(());
        };
        let end_seq = number.wrapping_add(payload);
        let new_bytes = flow.next.map_or(payload, |next| end_seq.wrapping_sub(next));
        if new_bytes <= MAX_SEQ_JUMP {
            flow.bytes += u64::from(new_bytes);
            flow.next = Some(end_seq);
        } else if flow.next.is_some_and(|next| next.wrapping_sub(end_seq) > MAX_SEQ_JUMP) {
            // Neither before nor shortly after the known sequence numbers: another connection on the same ports.
            flow.bytes += u64::from(payload);
            flow.next = Some(end_seq);
        }
        Some(())
    }

    fn finish(mut self, end: CaptureEnd) -> Transfers {
        self.done.extend(self.flows.iter().map(|(tuple, flow)| transfer(tuple, flow)));
        let mut left_out = Vec::new();
        for (count, noun) in [
            (self.others, "packet of neither TCP nor UDP"),
            (self.groups, "packet to a group, to all, or to its sender"),
            (self.without_time, "packet without a time"),
            (self.old, "packet in pcapng's obsolete packet block, which is not read"),
        ] {
            if count > 0 {
                left_out.push(counted(count, noun));
            }
        }
        for (link, count) in self.links {
            left_out.push(counted(count, &format!("packet of a link of type {link}, which is not read")));
        }
        if end == CaptureEnd::CutOff {
            left_out.push("what follows a packet that is broken or cut off".into());
        }
        Transfers::since_the_first(self.done, left_out)
    }
}

fn transfer(tuple: &Tuple, flow: &CapturedFlow) -> (i128, Transfer) {
    let (from, to, ..) = tuple;
    let at = ByteRange::default();
    (flow.start_ns, Transfer { start_ns: 0, from: from.to_string(), to: to.to_string(), bytes: flow.bytes, at })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;
    use crate::index::index32;

    /// Kind of a TCP packet.
    #[derive(Clone, Copy, PartialEq)]
    enum TcpSegment {
        Syn,
        Data,
    }

    /// Creates a TCP packet from one address of a network to another, with a payload.
    fn tcp(from: u8, to: u8, number: u32, payload: usize, segment: TcpSegment) -> Vec<u8> {
        let ip = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, from], [10, 0, 0, to], 64);
        let packet = ip.tcp(5_000, 443, number, 1_000);
        let packet = if segment == TcpSegment::Syn { packet.syn() } else { packet };
        let mut bytes = Vec::new();
        packet.write(&mut bytes, &vec![7; payload]).unwrap();
        bytes
    }

    fn udp(payload: usize) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([1; 16], [2; 16], 64).udp(9, 10);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &vec![7; payload]).unwrap();
        bytes
    }

    /// Writes the packets as pcap with a magic number and byte order, truncated to `kept` bytes.
    fn pcap_of(packets: &[(u32, Vec<u8>)], kept: usize, magic: u32, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let fine = if magic == 0xa1b2_3c4d { 1_000 } else { 1 };
        let more = if magic == 0xa1b2_cd34 { 8 } else { 0 };
        let mut file = bytes(magic).to_vec();
        // Major and minor version are two halves of a word.
        let version = if bytes(1)[0] == 1 { 0x0004_0002 } else { 0x0002_0004 };
        // The link's type is 1, below the length of a checksum.
        for word in [version, 0, 0, 65_535, 0x4400_0001] {
            file.extend(bytes(word));
        }
        for (us, packet) in packets {
            let part = &packet[..packet.len().min(kept)];
            for word in [us / 1_000_000, us % 1_000_000 * fine, index32(part.len()), index32(packet.len())] {
                file.extend(bytes(word));
            }
            file.resize(file.len() + more, 0);
            file.extend(part);
        }
        file
    }

    fn pcap(packets: &[(u32, Vec<u8>)], kept: usize) -> Vec<u8> {
        pcap_of(packets, kept, 0xa1b2_c3d4, u32::to_le_bytes)
    }

    /// Byte order of a section of pcapng.
    #[derive(Clone, Copy)]
    struct Section {
        big_endian: bool,
        if_tsresol: u8,
        if_tsoffset: i64,
        /// A time of that resolution, of one in microseconds.
        time: fn(u64) -> u64,
    }

    const NANOSECONDS: Section = Section { big_endian: false, if_tsresol: 9, if_tsoffset: 0, time: |us| us * 1_000 };

    /// Writes the packets as pcapng, with nanoseconds.
    fn pcapng(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        section(packets, NANOSECONDS)
    }

    /// Writes the packets as a section of pcapng.
    fn section(packets: &[(u32, Vec<u8>)], section: Section) -> Vec<u8> {
        let word = |word: u32| if section.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        let words = |all: &[u32]| all.iter().flat_map(|it| word(*it)).collect::<Vec<u8>>();
        // Two numbers of 16 bits, in a word.
        let halves = |first: u32, second: u32| {
            word(if section.big_endian { first << 16 | second } else { second << 16 | first })
        };
        let block = |kind: u32, body: &[u8], file: &mut Vec<u8>| {
            let padded = body.len().next_multiple_of(4);
            let length = index32(padded) + 12;
            file.extend(words(&[kind, length]));
            file.extend(body);
            file.resize(file.len() + padded - body.len(), 0);
            file.extend(word(length));
        };
        let mut file = Vec::new();
        let head = [word(0x1a2b_3c4d), halves(1, 0), word(u32::MAX), word(u32::MAX)];
        block(0x0a0d_0d0a, &head.concat(), &mut file);
        // Ethernet, then options: if_tsresol and if_tsoffset.
        let mut interface =
            [halves(1, 0), word(0), halves(9, 1), [section.if_tsresol, 0, 0, 0], halves(14, 8)].concat();
        let offset = section.if_tsoffset;
        interface.extend(if section.big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() });
        interface.extend(word(0));
        block(1, &interface, &mut file);
        for (us, packet) in packets {
            let time = (section.time)(u64::from(*us));
            let length = index32(packet.len());
            let [high, low] = [time >> 32, time & 0xffff_ffff].map(|half| u32::try_from(half).unwrap());
            let mut body = words(&[0, high, low, length, length]);
            body.extend(packet);
            block(6, &body, &mut file);
        }
        file
    }

    fn packets() -> Vec<(u32, Vec<u8>)> {
        vec![
            (1_000_000, tcp(1, 2, 99, 0, TcpSegment::Syn)),
            (1_000_010, tcp(1, 2, 100, 1_000, TcpSegment::Data)),
            // Answers without payload are no flow.
            (1_000_020, tcp(2, 1, 7, 0, TcpSegment::Data)),
            (1_000_030, tcp(1, 2, 2_100, 500, TcpSegment::Data)),
            // Late and duplicate segments count once.
            (1_000_040, tcp(1, 2, 1_100, 1_000, TcpSegment::Data)),
            (1_000_050, tcp(1, 2, 100, 1_000, TcpSegment::Data)),
            (1_000_060, udp(300)),
            (1_000_070, udp(300)),
            // Another connection on the same ports.
            (1_000_080, tcp(1, 2, 77, 0, TcpSegment::Syn)),
            (1_000_090, tcp(1, 2, 78, 5, TcpSegment::Data)),
            (1_000_099, vec![0; 60]),
        ]
    }

    #[test]
    fn flows_are_counted() {
        for file in [pcap(&packets(), 65_535), pcap(&packets(), 96), pcapng(&packets())] {
            let read = read(&file).unwrap();
            let shown: Vec<_> = read.list.iter().map(|it| (it.start_ns, it.from.as_str(), it.bytes)).collect();
            let v6 = "101:101:101:101:101:101:101:101";
            assert_eq!(shown, [(0, "10.0.0.1", 2_500), (50_000, v6, 600), (80_000, "10.0.0.1", 5)]);
            assert_eq!(read.left_out, ["1 packet of neither TCP nor UDP"]);
        }
    }

    /// The magic number determines the byte order, the unit of fractional seconds and the length of headers.
    #[test]
    fn captures_of_all_magic_numbers_are_the_same() {
        let expected = read(&pcap(&packets(), 65_535)).unwrap();
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
            for bytes in [u32::to_le_bytes, u32::to_be_bytes] {
                assert_eq!(read(&pcap_of(&packets(), 65_535, magic, bytes)).unwrap(), expected, "{magic:x}");
            }
        }
    }

    /// Nanoseconds under the magic number of microseconds are no times.
    #[test]
    fn fractions_over_a_second_are_refused() {
        let late: Vec<(u32, Vec<u8>)> = vec![(1_500_000, udp(3))];
        let mut wrong = pcap_of(&late, 65_535, 0xa1b2_3c4d, u32::to_be_bytes);
        wrong[..4].copy_from_slice(&0xa1b2_c3d4u32.to_be_bytes());
        let error = read(&wrong).unwrap_err();
        assert_eq!(error.byte_range(), 28..32);
    }

    /// `if_tsresol` of pcapng is a power of 10, or of 2 with the highest bit set.
    #[test]
    fn times_of_pcapng_are_of_any_resolution() {
        let late: Vec<(u32, Vec<u8>)> = vec![(0, tcp(1, 2, 9, 5, TcpSegment::Data)), (1_500_000, udp(3))];
        for (resolution, time) in [
            (6, (|us| us) as fn(u64) -> u64),
            (9, |us| us * 1_000),
            (3, |us| us / 1_000),
            (0x80 | 0x14, |us| us * (1 << 20) / 1_000_000),
            (0x80, |us| us / 1_000_000),
        ] {
            let read = read(&section(&late, Section { if_tsresol: resolution, time, ..NANOSECONDS })).unwrap();
            let start = if resolution == 0x80 { 1_000_000_000 } else { 1_500_000_000 };
            assert_eq!((read.list[0].start_ns, read.list[1].start_ns), (0, start), "{resolution}");
        }
        let fine = section(&late, Section { if_tsresol: 30, ..NANOSECONDS });
        assert_eq!(read(&fine).unwrap_err().byte_range(), 0..fine.len());
    }

    /// Two sections of either byte order, with interfaces that count from different times.
    #[test]
    fn sections_of_pcapng_have_a_byte_order_each() {
        let mut file = section(&[(10_000_000, udp(3))], NANOSECONDS);
        let big_endian = Section { big_endian: true, if_tsoffset: 5, ..NANOSECONDS };
        file.extend(section(&[(6_000_000, tcp(1, 2, 9, 5, TcpSegment::Data))], big_endian));
        let read = read(&file).unwrap();
        let shown: Vec<_> = read.list.iter().map(|it| (it.start_ns, it.bytes)).collect();
        assert_eq!(shown, [(0, 3), (1_000_000_000, 5)]);
        // The same packets in either order are the same flows.
        let flows = |big_endian| super::read(&section(&packets(), Section { big_endian, ..NANOSECONDS })).unwrap();
        assert_eq!(flows(true), flows(false));
    }

    #[test]
    fn obsolete_packet_blocks_are_counted() {
        let mut file = pcapng(&packets());
        let body = [0u8; 20];
        for part in [2u32.to_le_bytes(), 32u32.to_le_bytes()] {
            file.extend(part);
        }
        file.extend(body);
        file.extend(32u32.to_le_bytes());
        assert!(read(&file).unwrap().left_out.iter().any(|what| what.contains("obsolete")));
    }

    #[test]
    fn broken_captures() {
        let file = pcap(&packets(), 65_535);
        let read_cut = read(&file[..file.len() - 70]).unwrap();
        assert_eq!((read_cut.list.len(), read_cut.left_out.len()), (3, 1));
        assert_eq!(read(&[0x1f, 0x8b, 8]).unwrap_err().byte_range(), 0..2);
        for other in [b"".as_slice(), b"root:x:0:0"] {
            assert_eq!(read(other).unwrap_err().byte_range(), 0..0);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_capture_or_an_error(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..20)) {
            for mut file in [pcap(&packets(), 65_535), pcapng(&packets())] {
                for (at, byte) in &changes {
                    let at = at % file.len();
                    file[at] = *byte;
                }
                let _ = read(&file);
            }
        }
    }
}
