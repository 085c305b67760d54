extern crate std;

use super::*;
use alloc::string::{String, ToString};
use alloc::vec;
use flow::{EcnCounts, MAX_PACKETS, MAX_TIMES};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use units::{Span, Time};

fn read(bytes: &[u8]) -> Result<Vec<Frame<'_>>, FrameError> {
    Frames::new(bytes).collect()
}

fn written(frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        frame.put(&mut out);
    }
    out
}

#[test]
fn malformed_input_is_reported() {
    let wrong = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(wrong(&[]), "a packet without a frame");
    assert_eq!(wrong(&[0x01, 0x0a, 1]), "the packet ends within a frame PATH_CHALLENGE");
    assert_eq!(wrong(&[0x07]), "there is no frame of type 0x7");
    assert_eq!(wrong(&[0x40, 0x01]), "the frame type 0x1 is not minimally encoded");
    assert_eq!(wrong(&[0x08, 0, 0, 1, 0xff]), "the reason of a frame CLOSE is not UTF-8");
    assert_eq!(wrong(&[0x08, 0, 0, 0x41, 1]), "`reason` of a frame CLOSE is 257; expected 0 to 256");
    // k, m and place.
    assert_eq!(wrong(&[0x38, 0, 0, 2, 0]), "`k` of a frame SOURCE is 0; expected 1 to 47");
    assert_eq!(wrong(&[0x38, 0, 40, 9, 0]), "`m` of a frame SOURCE is 9; expected 1 to 8");
    assert_eq!(wrong(&[0x38, 0, 8, 2, 8]), "`place` of a frame SOURCE is 8; expected 0 to 7");
    assert_eq!(wrong(&[0x39, 0, 8, 2, 7]), "`place` of a frame PARITY is 7; expected 8 to 9");
    assert_eq!(wrong(&[0x3b, 0, 0]), "`count` of a frame BLOCK_WHOLE is 0; expected 1 to 4611686018427387904");
    // A stream that ends after its total.
    assert_eq!(wrong(&[0x26, 1, 2, 3, 2, 9, 9]), "`total` of a frame STREAM is 3; expected 4 to 4611686018427387903");
}

/// Ranges of length 2^62 and gaps of that length cost nothing and alias nothing.
#[test]
fn acknowledgements_stay_above_zero() {
    let ack = |parts: &[u64]| {
        let mut bytes = vec![0x02];
        for &part in parts {
            varint::put(&mut bytes, part);
        }
        bytes
    };
    let error = |parts: &[u64]| read(&ack(parts)).unwrap_err().to_string();
    // Path, largest, delay, ranges, first.
    assert_eq!(error(&[0, 5, 0, 0, 6, 0, 0, 0]), "`first` of a frame ACK is 6; expected 0 to 5");
    assert_eq!(error(&[0, 5, 0, 1, 1, 3, 0, 0, 0, 0]), "`gap` of a frame ACK is 3; expected 0 to 2");
    assert_eq!(error(&[0, 5, 0, 1, 1, 1, 2, 0, 0, 0]), "`length` of a frame ACK is 2; expected 0 to 1");
    assert_eq!(error(&[0, 5, 0, 2, 1, 1, 1, 0, 0, 0]), "`ranges` of a frame ACK is 2; expected 0 to 1");
    assert_eq!(error(&[0, 5, 0, 64, 1]), "`ranges` of a frame ACK is 64; expected 0 to 63");
    let bytes = ack(&[0, varint::MAX, 0, 0, varint::MAX, 0, 0, 0]);
    let Frame::Ack(whole) = read(&bytes).unwrap()[0] else { panic!("an ACK") };
    assert_eq!(whole.ranges().collect::<Vec<_>>(), [Range { first: 0, last: varint::MAX }]);
}

/// The specification's table has the same types.
#[test]
fn the_documentation_has_the_same_types() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/src/transport.md")).unwrap();
    let frames = page.split("\n## Frames").nth(1).unwrap().split("\n### ").next().unwrap();
    let rows: Vec<Vec<&str>> = frames
        .lines()
        .filter(|line| line.starts_with("| `0x"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let mut types = Vec::new();
    for row in &rows {
        let name = row[2].split([',', ';']).next().unwrap();
        let numbers: Vec<u64> = row[1]
            .split('`')
            .filter_map(|word| word.strip_prefix("0x"))
            .map(|hex| u64::from_str_radix(hex, 16).unwrap())
            .collect();
        let all = if row[1].contains("to") { (numbers[0]..=numbers[1]).collect() } else { numbers };
        types.extend(all.into_iter().map(|number| (number, String::from(name))));
    }
    let ours: Vec<(u64, String)> = (0..0x100).filter_map(|kind| name(kind).map(|name| (kind, name.into()))).collect();
    assert_eq!(types, ours);
    for row in rows {
        let counts = !["PADDING", "ACK", "CLOSE"].contains(&row[2].split([',', ';']).next().unwrap());
        assert_eq!(row[3] == "yes", counts, "{row:?}");
    }
}

/// Values of a frame, from which [`frame`] makes one.
#[derive(Clone, Debug)]
struct FrameValues {
    numbers: [u64; 3],
    bytes: Vec<u8>,
    flags: [bool; 3],
    places: [Index; 3],
    word: String,
}

fn values() -> impl Strategy<Value = FrameValues> {
    let number = (2u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
    let bytes = proptest::collection::vec(any::<u8>(), 0..50);
    ([number.clone(), number.clone(), number], bytes, any::<[bool; 3]>(), any::<[Index; 3]>(), "[a-zé ]{0,20}")
        .prop_map(|(numbers, bytes, flags, places, word)| FrameValues { numbers, bytes, flags, places, word })
}

fn array<const N: usize>(values: &FrameValues) -> [u8; N] {
    core::array::from_fn(|at| values.numbers[at % 3].to_be_bytes()[at % 8])
}

fn frame(kind: usize, values: &FrameValues) -> Frame<'_> {
    let FrameValues { numbers: [a, b, c], bytes, flags, places, word } = values;
    let (a, b, c) = (*a, *b, *c);
    let offset = b.min(varint::MAX - bytes.len() as u64);
    let data = 1 + places[0].index((MAX_PACKETS - 1).into()) as u8;
    let parity = 1 + places[1].index(MAX_PARITY.min(MAX_PACKETS - data).into()) as u8;
    let shape = Shape { data, parity };
    let stream = a.min(varint::MAX - 1);
    match kind {
        0 => Frame::Padding(1 + bytes.len()),
        1 => Frame::Ping,
        2 => Frame::Crypto { offset, data: bytes },
        3 => Frame::Close { code: a, kind: b, reason: word },
        4 => Frame::Done,
        5 => Frame::PathChallenge(array(values)),
        6 => Frame::PathResponse(array(values)),
        7 => Frame::PathId { path: a as u32, id: array(values), token: array(values) },
        8 => Frame::PathRetire { path: a as u32, reason: b },
        9 => Frame::Auth { ticket: array(values), proof: array(values) },
        10 => Frame::MaxData(a),
        11 => Frame::MaxStreamData { stream, bytes: b },
        12 => Frame::MaxStreams { one_way: flags[0], count: a.min(1 << 32) },
        13 => Frame::Blocked { stream: flags[0].then_some(stream), at: b },
        14 => Frame::ResetStream { stream, code: b, total: c },
        15 => Frame::StopSending { stream, code: b },
        16 => Frame::Stream(StreamFrame {
            stream,
            offset,
            total: flags[0].then_some(c.max(offset + bytes.len() as u64)),
            ends: flags[1],
            counted: flags[2],
            data: bytes,
        }),
        17 => Frame::Datagram(bytes),
        18 => Frame::Source { block: a, shape, place: places[2].index(data.into()) as u8 },
        19 => Frame::Parity { block: a, shape, place: data + places[2].index(parity.into()) as u8, symbol: bytes },
        20 => Frame::BlockNack { block: a, missing: b },
        _ => Frame::BlockWhole { first: a, count: 1 + b.min(varint::MAX - a) },
    }
}

proptest! {
    /// All frames except ACK, one after another; a frame that extends to the packet's end is the last.
    #[test]
    fn written_values_are_read_back(
        all in proptest::collection::vec((0usize..22, values()), 1..6), cut: Index, flip: (Index, u8),
    ) {
        let mut frames: Vec<Frame> = all.iter().map(|(kind, values)| frame(*kind, values)).collect();
        // Neighbours would be read as one.
        frames.dedup_by(|next, before| matches!((next, before), (Frame::Padding(_), Frame::Padding(_))));
        let runs_on = |frame: &Frame| match frame {
            Frame::Datagram(_) | Frame::Parity { .. } => true,
            Frame::Stream(stream) => !stream.counted,
            _ => false,
        };
        if let Some(last) = frames.iter().position(runs_on) {
            frames.truncate(last + 1);
        }
        let bytes = written(&frames);
        prop_assert_eq!(read(&bytes), Ok(frames));
        // Truncated or modified: an error or other frames, which are written and read consistently.
        let cut = cut.index(bytes.len());
        let mut changed = bytes.clone();
        changed[flip.0.index(bytes.len())] ^= flip.1;
        for bytes in [&bytes[..cut], &changed] {
            if let Ok(frames) = read(bytes) {
                let again = written(&frames);
                prop_assert_eq!(read(&again), Ok(frames));
            }
        }
    }

    #[test]
    fn written_acknowledgements_are_read_back(
        (path, delay_ns) in (any::<u32>(), 0..MAX_NS as i64),
        ranges in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40), 1..64),
        ecn: [u32; 3],
        times in proptest::collection::vec((1u64..9, 0..MAX_NS), 0..MAX_TIMES + 1),
    ) {
        let mut above = 1u64 << 50;
        let ranges: Vec<Range> = ranges
            .into_iter()
            .map_while(|(gap, len)| {
                let last = above.checked_sub(gap + 2)?;
                above = last.saturating_sub(len);
                Some(Range { first: above, last })
            })
            .collect();
        prop_assume!(!ranges.is_empty());
        let mut number = ranges[0].last + 1;
        let times: Vec<(u64, Time)> = times
            .into_iter()
            .map(|(back, ns)| {
                number -= back;
                (number, Time::from_ns(ns))
            })
            .collect();
        let ecn = EcnCounts { ect0: ecn[0].into(), ect1: ecn[1].into(), ce: ecn[2].into() };
        let mut bytes = Vec::new();
        let delay = Span::from_ns(delay_ns);
        Ack::put(&mut bytes, &AckContent { path, delay, ranges: &ranges, ecn, times: &times });
        let frames = read(&bytes).unwrap();
        let [Frame::Ack(ack)] = frames[..] else { panic!("{frames:?}") };
        prop_assert_eq!((ack.path, ack.delay, ack.ecn), (path, Span::from_ns(delay_ns), ecn));
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);
        prop_assert_eq!(ack.received().collect::<Vec<_>>(), times);
        let mut again = Vec::new();
        Frame::Ack(ack).put(&mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn nothing_panics(kind in 0u8..0x40, bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let bytes = [&[kind][..], &bytes].concat();
        for frame in Frames::new(&bytes).flatten() {
            if let Frame::Ack(ack) = frame {
                prop_assert_eq!(ack.ranges().count(), 1 + ack.ranges().skip(1).count());
                let mut above = None;
                for range in ack.ranges() {
                    prop_assert!(range.first <= range.last && above.is_none_or(|above| range.last + 1 < above));
                    above = Some(range.first);
                }
                prop_assert!(ack.received().all(|(number, _)| number <= ack.newest.last));
            }
        }
    }
}
