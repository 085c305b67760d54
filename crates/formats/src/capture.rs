//! Captures of packets, pcap or pcapng, as transfers: one for each direction of a TCP or UDP flow (5-tuple), from its first
//! payload byte on.
//!
//! A TCP flow's bytes are counted by its sequence numbers, so what was sent twice counts once, and what the capture missed
//! counts, too. A SYN after data begins another flow. UDP payloads are added up. Packets may be cut off: their headers say how
//! long they were.

use std::collections::BTreeMap;
use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::{LegacyPcapSlice, PcapBlockOwned, PcapNGSlice};

use crate::transfers::{Transfer, Transfers};
use crate::{Error, GZIP, Place, counted};

/// A direction of a flow: source, destination, protocol (IANA's number), and the two ports.
type Tuple = (IpAddr, IpAddr, u8, u16, u16);

/// What is known of it so far.
struct Flow {
    start_ns: i128,
    bytes: u64,
    /// Behind the last byte of TCP.
    next: Option<u32>,
}

#[derive(Default)]
struct Reading {
    flows: BTreeMap<Tuple, Flow>,
    done: Vec<(i128, Transfer)>,
    others: usize,
    groups: usize,
    undated: usize,
    links: BTreeMap<i32, usize>,
}

/// How far a sequence number may jump: the largest window of TCP.
const JUMP: u32 = 1 << 30;

/// Reads a capture.
///
/// # Errors
/// When the file is neither pcap nor pcapng, or is broken. A last packet that is cut off is left out.
pub fn read(file: &[u8]) -> Result<Transfers, Error> {
    let mut reading = Reading::default();
    let mut cut = false;
    if let Ok(capture) = PcapNGSlice::from_slice(file) {
        // By number, for each section anew: the link's type, ticks a second and their offset in seconds.
        let mut interfaces: Vec<(i32, u64, i64)> = Vec::new();
        for block in capture {
            let Ok(PcapBlockOwned::NG(block)) = block else {
                cut = true;
                break;
            };
            match block {
                Block::SectionHeader(_) => interfaces.clear(),
                Block::InterfaceDescription(it) => {
                    interfaces.push((it.linktype.0, it.ts_resolution().unwrap_or(1_000_000).max(1), it.ts_offset()));
                }
                Block::EnhancedPacket(packet) => {
                    let Some(&(link, ticks, offset)) = interfaces.get(packet.if_id as usize) else {
                        let at = Place::new(0..file.len());
                        let what = format!("a packet came by interface {}, which is not described", packet.if_id);
                        return Err(Error::bytes(at, what, format!("expected one of {}", interfaces.len())));
                    };
                    let time = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
                    let at = i128::from(offset) * 1_000_000_000 + time * 1_000_000_000 / i128::from(ticks);
                    let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                    reading.packet(link, at, data, packet.origlen);
                }
                Block::SimplePacket(_) => reading.undated += 1,
                _ => {}
            }
        }
    } else if let Ok(capture) = LegacyPcapSlice::from_slice(file) {
        let (link, fine) = (capture.header.network.0, capture.header.is_nanosecond_precision());
        for block in capture {
            let Ok(PcapBlockOwned::Legacy(packet)) = block else {
                cut = true;
                break;
            };
            let at =
                i128::from(packet.ts_sec) * 1_000_000_000 + i128::from(packet.ts_usec) * if fine { 1 } else { 1_000 };
            let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            reading.packet(link, at, data, packet.origlen);
        }
    } else {
        return Err(if file.starts_with(&GZIP) {
            Error::bytes(Place::new(0..2), "the capture is compressed", "expected what `gunzip` makes of it")
        } else {
            Error::bytes(Place::new(0..0), "this is no capture", "expected pcap or pcapng")
        });
    }
    Ok(reading.finish(cut))
}

impl Reading {
    /// A packet that came at a time, of which `data` was kept of `length` bytes.
    fn packet(&mut self, link: i32, time: i128, data: &[u8], length: u32) {
        let sliced = match link {
            1 => LaxSlicedPacket::from_ethernet(data).ok(),
            // A word that says which address family follows.
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

    /// Counts a packet of TCP or UDP; none if it is of neither.
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
        // A card that cuts large packets itself leaves the length out.
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
        let flow = self.flows.entry(tuple).or_insert(Flow { start_ns: time, bytes: 0, next: None });
        flow.start_ns = flow.start_ns.min(time);
        let Some((number, _)) = tcp else {
            flow.bytes += u64::from(payload);
            return Some(());
        };
        let behind = number.wrapping_add(payload);
        let new = flow.next.map_or(payload, |next| behind.wrapping_sub(next));
        if new <= JUMP {
            flow.bytes += u64::from(new);
            flow.next = Some(behind);
        } else if flow.next.is_some_and(|next| next.wrapping_sub(behind) > JUMP) {
            // Neither before nor shortly behind what was seen: another connection on the same ports.
            flow.bytes += u64::from(payload);
            flow.next = Some(behind);
        }
        Some(())
    }

    fn finish(mut self, cut: bool) -> Transfers {
        self.done.extend(self.flows.iter().map(|(tuple, flow)| transfer(tuple, flow)));
        let mut left_out = Vec::new();
        for (count, what) in [
            (self.others, "packet of neither TCP nor UDP"),
            (self.groups, "packet to a group, to all, or to its sender"),
            (self.undated, "packet without a time"),
        ] {
            if count > 0 {
                left_out.push(counted(count, what));
            }
        }
        for (link, count) in self.links {
            left_out.push(counted(count, &format!("packet of a link of type {link}, which is not read")));
        }
        if cut {
            left_out.push("what follows a packet that is broken or cut off".into());
        }
        Transfers::since_the_first(self.done, left_out)
    }
}

fn transfer(tuple: &Tuple, flow: &Flow) -> (i128, Transfer) {
    let (from, to, ..) = tuple;
    let at = Place::default();
    (flow.start_ns, Transfer { start_ns: 0, from: from.to_string(), to: to.to_string(), bytes: flow.bytes, at })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    /// A packet of TCP from one address of a network to another, its payload, and whether it is a SYN.
    fn tcp(from: u8, to: u8, number: u32, payload: usize, syn: bool) -> Vec<u8> {
        let ip = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, from], [10, 0, 0, to], 64);
        let packet = ip.tcp(5_000, 443, number, 1_000);
        let packet = if syn { packet.syn() } else { packet };
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

    /// The packets as pcap, of which `kept` bytes are kept.
    fn pcap(packets: &[(u32, Vec<u8>)], kept: usize) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
            file.extend(word.to_le_bytes());
        }
        for (us, packet) in packets {
            let part = &packet[..packet.len().min(kept)];
            for word in [us / 1_000_000, us % 1_000_000, part.len() as u32, packet.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(part);
        }
        file
    }

    /// The packets as pcapng, with nanoseconds.
    fn pcapng(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        fn block(kind: u32, body: &[u8], file: &mut Vec<u8>) {
            let padded = body.len().next_multiple_of(4);
            let length = padded as u32 + 12;
            file.extend(kind.to_le_bytes());
            file.extend(length.to_le_bytes());
            file.extend(body);
            file.resize(file.len() + padded - body.len(), 0);
            file.extend(length.to_le_bytes());
        }
        let mut file = Vec::new();
        let head = [0x1a2b_3c4du32.to_le_bytes(), 1u32.to_le_bytes(), u32::MAX.to_le_bytes(), u32::MAX.to_le_bytes()];
        block(0x0a0d_0d0a, &head.concat(), &mut file);
        // Ethernet; if_tsresol is 9.
        let mut interface = [1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
        interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        block(1, &interface, &mut file);
        for (us, packet) in packets {
            let ns = u64::from(*us) * 1_000;
            let words = [0, (ns >> 32) as u32, ns as u32, packet.len() as u32, packet.len() as u32];
            let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            body.extend(packet);
            block(6, &body, &mut file);
        }
        file
    }

    fn packets() -> Vec<(u32, Vec<u8>)> {
        vec![
            (1_000_000, tcp(1, 2, 99, 0, true)),
            (1_000_010, tcp(1, 2, 100, 1_000, false)),
            // Answers without payload are no flow.
            (1_000_020, tcp(2, 1, 7, 0, false)),
            (1_000_030, tcp(1, 2, 2_100, 500, false)),
            // What came late or twice counts once.
            (1_000_040, tcp(1, 2, 1_100, 1_000, false)),
            (1_000_050, tcp(1, 2, 100, 1_000, false)),
            (1_000_060, udp(300)),
            (1_000_070, udp(300)),
            // Another connection on the same ports.
            (1_000_080, tcp(1, 2, 77, 0, true)),
            (1_000_090, tcp(1, 2, 78, 5, false)),
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

    #[test]
    fn broken_captures() {
        let file = pcap(&packets(), 65_535);
        let read_cut = read(&file[..file.len() - 70]).unwrap();
        assert_eq!((read_cut.list.len(), read_cut.left_out.len()), (3, 1));
        assert!(read(&[0x1f, 0x8b, 8]).unwrap_err().to_string().contains("gunzip"));
        assert!(read(b"").is_err() && read(b"root:x:0:0").unwrap_err().to_string().contains("no capture"));
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
