//! A peer that sends anything.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum LiarOp {
    Stream {
        stream: u64,
        offset: u64,
        total: Option<u64>,
        ends: bool,
        len: u64,
    },
    Reset {
        stream: u64,
        total: u64,
    },
    Stop(u64),
    MaxData(u64),
    MaxStreamData(u64, u64),
    MaxStreams(bool, u64),
    Blocked(Option<u64>),
    /// Application calls, from this variant on.
    Open(bool),
    Write {
        stream: u64,
        len: usize,
    },
    Finish(u64),
    ResetOwn(u64),
    StopTheirs(u64),
    Read {
        stream: u64,
        len: usize,
    },
    Accept,
    Events,
    Send {
        is_acked: bool,
        is_lost: bool,
    },
}

fn stream() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0u64..24, 1 => varint::MAX - 5..varint::MAX, 1 => (1u64 << 34) - 4..1 << 34]
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => 0u64..420,
        1 => varint::MAX - 500..=varint::MAX,
    ]
}

fn op() -> impl Strategy<Value = LiarOp> {
    let total = || prop_oneof![4 => Just(None), 1 => bytes().prop_map(Some)];
    prop_oneof![
        12 => (stream(), bytes(), total(), 0u8..8, prop_oneof![0u64..3, 0u64..100])
            .prop_map(|(stream, offset, total, ends, len)| LiarOp::Stream { stream, offset, total, ends: ends == 0, len }),
        2 => (stream(), bytes()).prop_map(|(stream, total)| LiarOp::Reset { stream, total }),
        1 => stream().prop_map(LiarOp::Stop),
        1 => bytes().prop_map(LiarOp::MaxData),
        1 => (stream(), bytes()).prop_map(|(stream, bytes)| LiarOp::MaxStreamData(stream, bytes)),
        1 => (any::<bool>(), prop_oneof![0u64..10, 0..=1u64 << 32]).prop_map(|(one_way, count)| LiarOp::MaxStreams(one_way, count)),
        1 => proptest::option::of(stream()).prop_map(LiarOp::Blocked),
        1 => any::<bool>().prop_map(LiarOp::Open),
        2 => (stream(), 0usize..300).prop_map(|(stream, len)| LiarOp::Write { stream, len }),
        1 => stream().prop_map(LiarOp::Finish),
        1 => stream().prop_map(LiarOp::ResetOwn),
        1 => stream().prop_map(LiarOp::StopTheirs),
        3 => (stream(), 0usize..300).prop_map(|(stream, len)| LiarOp::Read { stream, len }),
        1 => Just(LiarOp::Accept),
        1 => Just(LiarOp::Events),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(is_acked, is_lost)| LiarOp::Send { is_acked, is_lost }),
    ]
}

/// Applies a frame to an end. The result may be an error, and mostly is.
fn apply(end: &mut Streams, op: &LiarOp) -> Result<(), StreamError> {
    match *op {
        LiarOp::Stream { stream, offset, total, ends, len } => {
            let data = vec![(stream + offset) as u8; len.min(varint::MAX - offset) as usize];
            let total = total.map(|total| total.max(offset + data.len() as u64));
            let frame = StreamFrame { stream, offset, total, ends, counted: true, data: &data };
            // As the peer's bytes would be read.
            let mut payload = Vec::new();
            Frame::Stream(frame).put(&mut payload);
            take(end, &payload)?;
        }
        LiarOp::Reset { stream, total } => end.on_reset(stream, 3, total)?,
        LiarOp::Stop(stream) => end.on_stop(stream, 4)?,
        LiarOp::MaxData(bytes) => end.on_max_data(bytes),
        LiarOp::MaxStreamData(stream, bytes) => end.on_max_stream_data(stream, bytes)?,
        LiarOp::MaxStreams(one_way, count) => {
            end.on_max_streams(if one_way { Direction::OneWay } else { Direction::Both }, count);
        }
        LiarOp::Blocked(stream) => end.on_blocked(stream)?,
        LiarOp::Open(true) => drop(end.open(Direction::OneWay)),
        LiarOp::Open(false) => drop(end.open(Direction::Both)),
        LiarOp::Write { stream, len } => drop(end.write(stream.into(), &vec![1; len])),
        LiarOp::Finish(stream) => drop(end.finish(stream.into())),
        LiarOp::ResetOwn(stream) => drop(end.reset(stream.into(), 5)),
        LiarOp::StopTheirs(stream) => drop(end.stop_sending(stream.into(), 6)),
        LiarOp::Read { stream, len } => drop(end.read(stream.into(), &mut vec![0; len])),
        LiarOp::Accept => drop(end.accept()),
        LiarOp::Events => drop(events(end)),
        LiarOp::Send { is_acked, is_lost } => {
            if let Some(packet) = StreamPacket::next(end, 100) {
                if is_lost {
                    packet.lost(end);
                }
                if is_acked {
                    packet.acked(end);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    /// Lies cause no panic and no memory beyond the limits, even if the connection is not closed.
    #[test]
    fn malicious_frames_cost_no_memory(ops in proptest::collection::vec(op(), 1..300), is_client: bool, max_data in 1u64..1200) {
        let side = if is_client { Side::Client } else { Side::Listener };
        let mut end = Streams::new(side, Limits { max_data, ..LIMITS }, 200);
        end.set_peer_limits(LIMITS);
        for op in &ops {
            let before = (end.received, end.consumed);
            if apply(&mut end, op).is_err() {
                prop_assert_eq!((end.received, end.consumed), before);
            }
            check(&end);
        }
    }
}

/// The most expensive frames: many streams, single bytes, gaps everywhere, duplicates. Time is in proportion to the frames.
#[test]
fn gaps_on_many_streams_are_not_slow() {
    let limits = Limits { max_data: 1 << 30, max_stream_data: 1 << 20, max_streams_bidi: 0, max_streams_uni: 1000 };
    let (_, mut listener) = pair(limits, 1000);
    let mut taken = 0;
    for round in 0..100 {
        for nth in 0..1000 {
            let id = StreamId::new(Side::Client, Direction::OneWay, nth);
            let frame = piece(id, 1 + 2 * (round * 37 % 100), b"a");
            taken += u32::from(listener.on_stream(&frame) == Ok(FrameResult::Yes));
        }
    }
    assert_eq!(taken, 100_000);
    check(&listener);
    assert_eq!(listener.controls.len(), 0);
    assert_eq!(listener.events.len(), 1);
}
