//! The packet code, compared with a NIC model that segments, checksums and marks packet by packet.

use proptest::prelude::*;

use super::sample::{PacketSample, naive_sum};
use super::*;

fn samples() -> impl Strategy<Value = PacketSample> {
    let bits = (any::<bool>(), any::<bool>(), 0usize..4, 0usize..11, 0u8..4, 0u8..64);
    let fields = (any::<u16>(), any::<u32>(), any::<u8>(), 1u16..3000, any::<(u16, u16)>());
    (bits, fields, prop::collection::vec(any::<u8>(), 0..20_000)).prop_map(
        |((v6, tcp, ip_extra, tcp_options, ecn, dscp), (id, sequence, flags, gso_size, ports), payload)| PacketSample {
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
            ports,
            payload,
            ..PacketSample::default()
        },
    )
}

/// Returns the packets that the NIC of the receiving host's kernel makes of a frame: from its virtio header and the
/// position of its headers only, with every length and checksum recomputed.
fn receive(frame: &[u8], sample: &PacketSample) -> Vec<Vec<u8>> {
    let (vnet, packet) = frame.split_at(VNET_LEN);
    let le = |at: usize| usize::from(u16::from_le_bytes([vnet[at], vnet[at + 1]]));
    let be = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let (at, payload_at) = (sample.transport_at(), sample.payload_at());
    assert_eq!((vnet[0], le(6), le(8)), (1, at, if sample.tcp { 16 } else { 6 }));
    // Lengths and the pseudo-header's sum are those of the unsegmented packet.
    if sample.v6 {
        assert_eq!(usize::from(be(4)), packet.len() - 40);
    } else {
        assert_eq!(usize::from(be(2)), packet.len());
        assert_eq!(naive_sum(&packet[..20 + sample.ip_extra * 4]), 0xffff);
    }
    if !sample.tcp {
        assert_eq!(usize::from(be(at + 4)), packet.len() - at);
    }
    let gso_size = if vnet[1] == 0 { usize::from(u16::MAX) } else { le(4) };
    assert!(vnet[1] == 0 || gso_size < packet.len() - payload_at, "cut into one");
    if sample.tcp && vnet[1] != 0 {
        assert_eq!(vnet[1] & 0x80 != 0, packet[at + 13] & 0x80 != 0, "CWR is reported");
    }
    // Cut by the plain code of `PacketSample::wire_packets`, from the fields that are in the packet.
    let mut as_read = sample.clone();
    as_read.ecn = if sample.v6 { packet[1] >> 4 & 3 } else { packet[1] & 3 };
    as_read.id = if sample.v6 { 0 } else { be(4) };
    if sample.tcp {
        as_read.sequence = u32::from_be_bytes([packet[at + 4], packet[at + 5], packet[at + 6], packet[at + 7]]);
        as_read.flags = packet[at + 13];
    }
    as_read.gso_size = gso_size as u16;
    as_read.payload = packet[payload_at..].to_vec();
    assert_eq!(frame[VNET_LEN..], as_read.frame()[VNET_LEN..], "pseudo-header's sum and all headers");
    as_read.wire_packets(|_| false)
}

proptest! {
    /// Cut anywhere into runs, each marked or not, each written as one packet and segmented by the receiver's NIC: equal to
    /// the segments cut, marked and checksummed one by one.
    #[test]
    fn runs_are_their_segments(sample in samples(), cuts in prop::collection::vec((1u16..6, any::<bool>()), 1..40)) {
        let frame = sample.frame();
        let headers = Headers::parse(&frame).unwrap();
        let count = headers.segments();
        prop_assert_eq!(usize::from(headers.payload_at), sample.payload_at());
        prop_assert_eq!((headers.is_ecn_capable(), headers.dscp), (sample.ecn != 0, sample.dscp));
        let mut marks = vec![false; usize::from(count)];
        let (mut received, mut out) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (length, marked) in cuts.iter().copied().chain([(u16::MAX, false)]) {
            if first == count {
                break;
            }
            let end = first.saturating_add(length).min(count);
            let marked = marked && headers.is_ecn_capable();
            marks[usize::from(first)..usize::from(end)].fill(marked);
            let mark = if marked { Mark::Ce } else { Mark::None };
            let payload = render(&frame, &headers, first..end, mark, &mut out);
            out.extend_from_slice(payload);
            received.extend(receive(&out, &sample));
            first = end;
        }
        prop_assert_eq!(received, sample.wire_packets(|index| marks[index]));
    }

    /// A capture of each segment equals the packet on the wire.
    #[test]
    fn captured_segments_are_complete(sample in samples(), marked in any::<bool>()) {
        let frame = sample.frame();
        let headers = Headers::parse(&frame).unwrap();
        let marked = marked && headers.is_ecn_capable();
        let mark = if marked { Mark::Ce } else { Mark::None };
        let mut out = Vec::new();
        for (index, expected) in sample.wire_packets(|_| marked).into_iter().enumerate() {
            prop_assert_eq!(usize::from(headers.wire_length(index as u16)), expected.len());
            wire_segment(&frame, &headers, index as u16, mark, &mut out);
            prop_assert_eq!(&out, &expected);
        }
    }

    /// A wrong IPv4 checksum stays wrong: nothing is mended.
    #[test]
    fn wrong_checksums_stay_wrong(sample in samples(), wrong in 1u16..0xffff) {
        let sample = PacketSample { v6: false, ecn: 1, ..sample };
        let mut frame = sample.frame();
        let at = VNET_LEN + 10;
        let broken = u16::from_be_bytes([frame[at], frame[at + 1]]) ^ wrong;
        frame[at..at + 2].copy_from_slice(&broken.to_be_bytes());
        prop_assume!(naive_sum(&frame[VNET_LEN..][..20 + sample.ip_extra * 4]) != 0xffff);
        let mut out = Vec::new();
        let headers = Headers::parse(&frame).unwrap();
        render(&frame, &headers, 0..1, Mark::Ce, &mut out);
        prop_assert!(naive_sum(&out[VNET_LEN..][..20 + sample.ip_extra * 4]) != 0xffff);
    }

    /// A corrupted segment differs from the right one in one bit, behind the IP header, and its checksum is wrong.
    #[test]
    fn corrupted_segments_are_rejected(sample in samples(), bits in any::<u32>(), segment in any::<u16>()) {
        let frame = sample.frame();
        let headers = Headers::parse(&frame).unwrap();
        let segment = segment % headers.segments();
        let (mut right, mut corrupted) = (Vec::new(), Vec::new());
        wire_segment(&frame, &headers, segment, Mark::None, &mut right);
        render_corrupted(&frame, &headers, segment, Mark::None, bits, &mut corrupted);
        let (vnet, packet) = corrupted.split_at(VNET_LEN);
        prop_assert_eq!(vnet, [0; VNET_LEN], "no offload, so the receiver checks the sum");
        let changed = right.iter().zip(packet).map(|(a, b)| (a ^ b).count_ones());
        prop_assert_eq!((right.len(), changed.clone().sum::<u32>()), (packet.len(), 1));
        let at = sample.transport_at();
        prop_assert_eq!(changed.take(at).sum::<u32>(), 0);
        let summed = |packet: &[u8]| naive_sum(&[&sample.pseudo_header(packet.len() - at)[..], &packet[at..]].concat());
        prop_assert_eq!(summed(&right), 0xffff);
        prop_assert!(summed(packet) != 0xffff);
        // In UDP, 0 means no checksum.
        prop_assert!(sample.tcp || packet[sample.checksum_at()..][..2] != [0, 0]);
    }

    /// Any bytes at all, and any change of a good packet, are a packet or a fault, and a packet can be written.
    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_and_write(&bytes);
    }

    #[test]
    fn damaged_packets_are_packets_or_errors(
        sample in samples(),
        damage in prop::collection::vec((0usize..130, any::<u8>()), 0..8),
        length in prop::option::of(0usize..21_000),
    ) {
        let mut frame = sample.frame();
        for (at, byte) in damage {
            if let Some(target) = frame.get_mut(at) {
                *target = byte;
            }
        }
        frame.truncate(length.unwrap_or(usize::MAX));
        read_and_write(&frame);
    }
}

/// Reads a frame and writes it, all segments alone and all together, as the router does.
fn read_and_write(frame: &[u8]) {
    let Ok(headers) = Headers::parse(frame) else { return };
    let count = headers.segments();
    assert!(count >= 1 && usize::from(headers.length) + VNET_LEN <= frame.len());
    let mut out = Vec::new();
    let mut written = 0;
    for index in 0..count {
        written += render(frame, &headers, index..index + 1, Mark::Ce, &mut out).len();
        assert!(headers.wire_length(index) <= headers.length);
        wire_segment(frame, &headers, index, Mark::Ce, &mut out);
    }
    assert_eq!(written, usize::from(headers.payload()));
    assert_eq!(render(frame, &headers, 0..count, Mark::Ce, &mut out).len(), written);
}

#[test]
fn frames_without_anything_are_truncated() {
    for length in 0..=VNET_LEN {
        assert_eq!(Headers::parse(&vec![0; length]), Err(DropReason::Truncated));
    }
}

#[test]
fn giant_frames_are_errors() {
    for first in [0x00, 0x45, 0x60, 0xff] {
        let mut frame = vec![0xff; 200_000];
        frame[..VNET_LEN].fill(0);
        frame[VNET_LEN] = first;
        // Only the length field counts; here it is 65,535 and its headers are no transport's.
        read_and_write(&frame);
    }
}

#[test]
fn a_jumbogram_is_malformed() {
    let mut frame = PacketSample { v6: true, payload: vec![0; 100], ..PacketSample::default() }.frame();
    frame[VNET_LEN + 4..VNET_LEN + 6].fill(0);
    assert_eq!(Headers::parse(&frame), Err(DropReason::Malformed));
}

#[test]
fn segmentation_that_does_not_fit_is_malformed() {
    let sample = PacketSample { payload: vec![0; 5000], ..PacketSample::default() };
    let change = |at: usize, to: u8| {
        let mut frame = sample.frame();
        frame[at] = to;
        Headers::parse(&frame)
    };
    assert!(change(1, 1).is_ok());
    // IPv6's, UDP's, an unknown one; no checksum; checksums elsewhere; segments of nothing.
    for (at, to) in [(1, 4), (1, 5), (1, 2), (0, 0), (6, 24), (8, 6)] {
        assert_eq!(change(at, to), Err(DropReason::Malformed), "{at} {to}");
    }
    let mut frame = sample.frame();
    frame[4..6].fill(0);
    assert_eq!(Headers::parse(&frame), Err(DropReason::Malformed));
}

#[test]
fn fragments_have_no_ports() {
    let flow = |ports, fragment: u8| {
        let mut frame = PacketSample { ports, payload: vec![0; 100], ..PacketSample::default() }.frame();
        frame[VNET_LEN + 6] = fragment;
        frame[0] = 0;
        Headers::parse(&frame).unwrap()
    };
    assert_eq!(flow((1, 2), 0x20).flow, flow((3, 4), 0x20).flow);
    assert_ne!(flow((1, 2), 0x40).flow, flow((3, 4), 0x40).flow);
    assert_eq!(flow((1, 2), 0x20).transport, IpProtocol::Other);
}

#[test]
fn acknowledgements_alone_are_control() {
    let control = |sample: PacketSample| Headers::parse(&sample.frame()).unwrap().is_control();
    assert!(control(PacketSample::default()));
    assert!(control(PacketSample { v6: true, ..PacketSample::default() }));
    assert!(!control(PacketSample { payload: vec![1], ..PacketSample::default() }));
    assert!(!control(PacketSample { tcp: false, ..PacketSample::default() }));
}
