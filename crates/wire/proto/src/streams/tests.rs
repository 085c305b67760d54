use super::*;
use crate::frame::{Frame, Frames, StreamFrame};
use alloc::vec;

mod credit;
mod examples;
mod liar;
mod link;

const LIMITS: Limits = Limits { max_data: 1000, max_stream_data: 400, max_streams_bidi: 4, max_streams_uni: 4 };

/// Creates two ends that have exchanged their limits.
fn pair(limits: Limits, send_buffer: u64) -> (Streams, Streams) {
    let mut ends = [Side::Client, Side::Listener].map(|side| Streams::new(side, limits, send_buffer));
    for end in &mut ends {
        end.set_peer_limits(limits);
    }
    let [client, listener] = ends;
    (client, listener)
}

/// Passes a packet's frames to an end, as far as it takes them.
fn take(end: &mut Streams, payload: &[u8]) -> Result<FrameResult, StreamError> {
    for frame in Frames::new(payload) {
        match frame.unwrap() {
            Frame::Stream(frame) => {
                if end.on_stream(&frame)? == FrameResult::Dropped {
                    return Ok(FrameResult::Dropped);
                }
            }
            Frame::ResetStream { stream, code, total } => end.on_reset(stream, code, total)?,
            Frame::StopSending { stream, code } => end.on_stop(stream, code)?,
            Frame::MaxData(bytes) => end.on_max_data(bytes),
            Frame::MaxStreamData { stream, bytes } => end.on_max_stream_data(stream, bytes)?,
            Frame::MaxStreams { one_way, count } => {
                end.on_max_streams(if one_way { Direction::OneWay } else { Direction::Both }, count);
            }
            Frame::Blocked { stream, at: _ } => end.on_blocked(stream)?,
            Frame::Padding(_) => {}
            other => panic!("{other:?} is not of a stream"),
        }
    }
    Ok(FrameResult::Yes)
}

/// A packet and its contents.
#[derive(Clone, Debug, Default)]
struct StreamPacket {
    payload: Vec<u8>,
    chunks: Vec<StreamChunk>,
    controls: Vec<Control>,
}

impl StreamPacket {
    /// Returns the next packet of at most `size` bytes. None if nothing is due.
    fn next(from: &mut Streams, size: usize) -> Option<Self> {
        let mut packet = Self::default();
        while size - packet.payload.len() >= MAX_CONTROL
            && let Some(control) = from.next_control()
        {
            let before = packet.payload.len();
            assert!(from.put_control(control, &mut packet.payload), "{control:?} is not needed");
            assert!(packet.payload.len() - before <= MAX_CONTROL);
            packet.controls.push(control);
        }
        while packet.chunks.last().is_none_or(|chunk| chunk.counted) {
            let room = size - packet.payload.len();
            let Some(chunk) = from.put_frame(&mut packet.payload, room) else { break };
            assert!(packet.payload.len() <= size && (chunk.counted || packet.payload.len() == size));
            packet.chunks.push(chunk);
        }
        (!packet.payload.is_empty()).then_some(packet)
    }

    fn acked(&self, sender: &mut Streams) {
        self.chunks.iter().for_each(|chunk| sender.acked(chunk));
        self.controls.iter().for_each(|&control| sender.control_acked(control));
    }

    fn lost(&self, sender: &mut Streams) {
        self.chunks.iter().for_each(|chunk| sender.lost(chunk));
        self.controls.iter().for_each(|&control| sender.control_lost(control));
    }
}

/// Sends everything in both directions until there is nothing to send.
fn settle(a: &mut Streams, b: &mut Streams) {
    for turn in 0.. {
        assert!(turn < 1000, "the ends do not come to rest");
        let mut is_quiet = true;
        for forth in [true, false] {
            let (from, to) = if forth { (&mut *a, &mut *b) } else { (&mut *b, &mut *a) };
            while let Some(packet) = StreamPacket::next(from, 1200) {
                is_quiet = false;
                assert_eq!(take(to, &packet.payload), Ok(FrameResult::Yes));
                packet.acked(from);
            }
        }
        if is_quiet {
            return;
        }
    }
}

fn events(end: &mut Streams) -> Vec<StreamEvent> {
    core::iter::from_fn(|| end.next_event()).collect()
}

/// Reads until nothing is left. Returns the bytes, and the reason why no more can be read.
fn read_all(end: &mut Streams, id: StreamId) -> (Vec<u8>, Result<(), ReadError>) {
    let (mut all, mut part) = (Vec::new(), [0; 7]);
    loop {
        match end.read(id, &mut part) {
            Ok(read) => {
                all.extend(&part[..read.bytes]);
                if read.ends {
                    return (all, Ok(()));
                }
            }
            Err(error) => return (all, Err(error)),
        }
    }
}

/// Returns a part of a stream as the peer sends it.
fn piece(stream: StreamId, offset: u64, data: &[u8]) -> StreamFrame<'_> {
    StreamFrame { stream: stream.number(), offset, total: None, ends: false, counted: true, data }
}

/// Returns the last part of a stream.
fn last(stream: StreamId, offset: u64, data: &[u8]) -> StreamFrame<'_> {
    StreamFrame { ends: true, ..piece(stream, offset, data) }
}

/// Returns a part of a message.
fn of_message(stream: StreamId, total: u64, offset: u64, data: &[u8]) -> StreamFrame<'_> {
    StreamFrame { total: Some(total), ..piece(stream, offset, data) }
}

/// Checks the invariants of an end, which hold at any time, for any frames of its peer.
fn check(end: &Streams) {
    let window = |bytes: u64| bytes as usize;
    let (mut buffered, mut ahead) = (0, 0);
    for receiving in end.receiving.values() {
        assert!(receiving.buffered_bytes() <= 3 * window(end.ours.max_stream_data));
        buffered += receiving.buffered_bytes();
        ahead += receiving.ahead();
    }
    assert_eq!(ahead, end.ahead);
    assert!(ahead <= recv::max_ahead(end.ours.max_data));
    assert!(buffered <= 3 * window(end.ours.max_data), "{buffered}");
    assert!(end.received - end.consumed <= end.ours.max_data && end.received <= end.max_received);
    assert!(end.sent <= end.max_sent || end.max_sent == 0);
    for sending in end.sending.values() {
        assert!(sending.buffered_bytes() as u64 <= end.send_buffer);
    }

    let own: u64 = end.own.iter().map(|own| own.opened).sum();
    let peers: u64 = end.ours.max_streams().iter().sum();
    let streams = (own + peers) as usize;
    assert!(end.receiving.len() <= streams && end.sending.len() <= streams);
    assert!(end.events.len() <= 2 * end.receiving.len() + 3 * end.sending.len() + 3);
    assert!(end.controls.len() <= 2 * end.receiving.len() + 2 * end.sending.len() + 4);
    for (opened, limit) in end.peers.iter().zip(end.ours.max_streams()) {
        assert!(opened.tracked_count() as u64 <= limit);
    }

    let mut sum = waiting::Sum::default();
    for sending in end.sending.values() {
        sum.replace(SendBacklog::default(), sending.waiting());
    }
    let (credit, (pending, is_whole)) = (end.max_sent - end.sent, end.pending());
    assert_eq!((end.waiting.buffered, sum.buffered), (sum.buffered, end.sending.values().map(Sending::buffered).sum()));
    assert_eq!((end.waiting.used, end.waiting.reserved), (sum.used, sum.reserved));
    assert!((sum.lost..=sum.lost + sum.fresh.min(credit)).contains(&pending) && is_whole == (sum.open == 0));
    assert!(end.has_pending() || end.pending().0 == 0);
}

/// Checks that no state of any stream is left.
fn check_forgotten(end: &Streams) {
    check(end);
    assert!(end.sending.is_empty(), "{:?}", end.sending);
    assert!(end.receiving.is_empty(), "{:?}", end.receiving);
    assert!(end.events.is_empty() && !end.has_control() && !end.has_pending());
    assert_eq!((end.ahead, end.pending()), (0, (0, true)));
    assert_eq!(end.received, end.consumed);
}
