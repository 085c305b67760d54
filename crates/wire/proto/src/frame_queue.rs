//! Contents of a connection's data packets: queued frames, streams, datagrams. The [`DataSource`] of its channel.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem;

use flow::{DataSource, PacketContent, ReturnReason};
use laws::LossCause;
use units::{Frac, Time};

use crate::black_hole::{BlackHoleDetector, PacketSize};
use crate::blocks::{BlockSender, Conditions, LENGTH_BYTES, Offer, Pending, Resend, Tag};
use crate::datagrams::Datagrams;
use crate::event_buffer::EventBuffer;
use crate::frame::Frame;
use crate::header::SHORTEST_PACKET;
use crate::keys::SEAL_LEN;
use crate::narrow::{to_u16, to_u32};
use crate::observe::LostNote;
use crate::path::IssuedId;
use crate::streams::{Control, MAX_CONTROL, StreamChunk, Streams};
use crate::{ID_LEN, varint};

/// Bytes of a packet number in a short header. Three are enough for 2^22 packets in flight.
pub(crate) const NUMBER_LEN: usize = 3;
/// Bytes before a packet's frames.
pub(crate) const HEAD_LEN: usize = 1 + ID_LEN + NUMBER_LEN;
/// Bytes of a packet in addition to its frames.
pub(crate) const OVERHEAD: usize = HEAD_LEN + SEAL_LEN;
/// Minimum length of a packet's frames, in bytes.
const SHORTEST_FRAMES: usize = SHORTEST_PACKET - OVERHEAD;
/// Bytes before a datagram in a packet of its own.
pub(crate) const DATAGRAM_HEAD: usize = 1;
/// The longest of [`ConnectionFrame`]'s frames: AUTH.
const MAX_CONNECTION_FRAME_LEN: usize = 1 + 8 + 32;
/// The longest SOURCE frame without its symbol.
const SOURCE_LEN: usize = 1 + 8 + 3;
/// Returns the bytes by which the head of a block's SOURCE and PARITY frames is shorter than the longest. It depends on
/// the block number.
fn missing_of_head(block: u64) -> usize {
    SOURCE_LEN - (1 + varint::len(block) + 3)
}

/// Pads a packet with a PARITY frame of `len` bytes to the length of the block's data packets, if there is room up to
/// `limit`.
fn put_parity_padding(packet: &mut Vec<u8>, tag: Tag, len: Option<usize>, limit: usize) {
    let missing = missing_of_head(tag.block);
    if missing > 0 && len.is_some_and(|len| packet.len() + missing + len <= limit) {
        Frame::Padding(missing).put(packet);
    }
}

/// Reports of complete blocks that are repeated with a retransmitted ACK: those of a burst.
const MAX_REPEATED_REPORTS: usize = 8;

/// Earlier reports of complete blocks that are repeated with a new one. Of 20 rebuilt blocks, at a loss rate of 5 %,
/// one remains unreported if each is reported once. If three packets report each block, this happens once in 400 such
/// cases.
const REPEATED_REPORTS: usize = 2;

/// Minimum space for a STREAM frame in a packet, in bytes: its head has up to 33 bytes.
const MIN_ROOM: usize = 40;

/// A frame of the connection itself, while it waits or is in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ConnectionFrame {
    /// [`FrameQueue::auth`].
    Auth,
    /// DONE.
    Done,
    /// `PATH_RETIRE`.
    PathRetire {
        /// The path.
        path: u32,
        /// Error code.
        reason: u64,
    },
    /// `PATH_ID` of this path, as in [`FrameQueue::issued_ids`].
    PathId(u32),
    /// PING.
    Ping,
    /// `BLOCK_WHOLE`.
    Whole {
        /// The first block.
        first: u64,
        /// Number of blocks.
        count: u64,
    },
    /// `BLOCK_NACK`.
    Nack {
        /// The block.
        block: u64,
        /// A bit for each packet that is missing.
        missing: u64,
    },
}

/// One frame of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carried {
    Stream(StreamChunk),
    Control(Control),
    Connection(ConnectionFrame),
}

/// Reference to a packet's contents: an index into a table and a generation. An entry that was released has another generation.
/// Generation 0 stands for no contents.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ContentHandle {
    at: u32,
    generation: u32,
}

impl ContentHandle {
    fn number(self) -> u64 {
        u64::from(self.at) << 32 | u64::from(self.generation)
    }

    fn of(number: u64) -> Self {
        Self { at: to_u32(number >> 32), generation: to_u32(number & u64::from(u32::MAX)) }
    }
}

/// Delivery status of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DeliveryStatus {
    Delivered,
    /// A later packet arrived first.
    Overtaken,
    Unknown,
}

/// Outcome of a frame that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameOutcome {
    /// Arrived.
    Delivered,
    /// Possibly lost: sent again if still needed.
    Resend,
}

/// Contents of a packet, or of one symbol of a block.
#[derive(Default, Debug)]
struct PacketContents {
    generation: u32,
    frames: Vec<Carried>,
    /// The length of all frames, in bytes.
    bytes: u32,
    /// Position among all sent packets, from 1.
    order: u64,
    subflow: u8,
    /// Position in a block, if the packet belongs to one.
    tag: Option<Tag>,
}

/// Contents of each packet in flight, and of the symbols of blocks.
#[derive(Default, Debug)]
struct Contents {
    slots: Vec<PacketContents>,
    free: Vec<u32>,
}

impl Contents {
    /// Returns a free slot for a packet's contents.
    fn claim(&mut self) -> usize {
        // Packets in flight are bounded far below 2^32.
        self.free.pop().map_or_else(
            || {
                self.slots.push(PacketContents::default());
                self.slots.len() - 1
            },
            |at| at as usize,
        )
    }

    fn handle(&mut self, at: usize) -> ContentHandle {
        let slot = &mut self.slots[at];
        slot.generation = slot.generation.wrapping_add(1).max(1);
        ContentHandle { at: to_u32(at as u64), generation: slot.generation }
    }

    /// Returns the contents, unless they were released.
    fn get(&self, handle: ContentHandle) -> Option<&PacketContents> {
        self.slots.get(handle.at as usize).filter(|slot| slot.generation == handle.generation && handle.generation != 0)
    }

    /// Releases a packet's contents. Returns the index of its slot, which is valid until the next claim; none if the
    /// packet was released before.
    fn release(&mut self, handle: ContentHandle) -> Option<usize> {
        let at = handle.at as usize;
        let slot =
            self.slots.get_mut(at).filter(|slot| slot.generation == handle.generation && handle.generation != 0)?;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        debug_assert!(self.free.len() < self.slots.len(), "more slots are free than there are");
        self.free.push(handle.at);
        Some(at)
    }
}

/// Error for a datagram that cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DatagramError {
    /// The datagram is longer than the peer accepts, or than a packet of every path can carry.
    #[error("a datagram of {len} bytes; {max_len} at most can be sent now")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The maximum length in bytes.
        max_len: usize,
    },
    /// Too many datagrams are queued.
    #[error("the datagram queue is full: 1 MiB, with 64 bytes of overhead per datagram")]
    Full,
}

/// Data to be sent, and contents of packets in flight.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    pub(crate) streams: Streams,
    connection_frames: BTreeSet<ConnectionFrame>,
    /// Contents of AUTH: ticket ID and proof.
    pub(crate) auth: ([u8; 8], [u8; 32]),
    /// IDs that the peer may send to, by path.
    pub(crate) issued_ids: BTreeMap<u32, IssuedId>,
    /// Reports of complete blocks since they were last repeated.
    recent_block_wholes: VecDeque<(u64, u64)>,
    datagrams: Datagrams,
    contents: Contents,
    /// Number of packets sent.
    packets_sent: u64,
    /// Black hole detection by subflow.
    black_hole_detectors: Vec<BlackHoleDetector>,
    /// Maximum bytes of frames in a packet of the smallest size.
    base_mss: u32,
    /// Encodes packets, if the peer accepts blocks.
    pub(crate) block_sender: Option<BlockSender>,
    pub(crate) conditions: Conditions,
    /// Maximum bytes of frames that fit into a packet on every path.
    pub(crate) min_mss: u32,
    /// Send time of the present packet.
    pub(crate) now: Time,
    /// The packet being assembled. Its header is written, and possibly an acknowledgement.
    pub(crate) packet: Vec<u8>,
    /// Offset of its frames.
    pub(crate) frames_at: usize,
    /// Packets declared lost, for the observer.
    pub(crate) lost: EventBuffer<LostNote>,
}

impl FrameQueue {
    pub(crate) fn new(streams: Streams, block_sender: Option<BlockSender>, base_mss: u32) -> Self {
        Self {
            streams,
            connection_frames: BTreeSet::new(),
            auth: ([0; 8], [0; 32]),
            issued_ids: BTreeMap::new(),
            recent_block_wholes: VecDeque::new(),
            datagrams: Datagrams::default(),
            contents: Contents::default(),
            packets_sent: 0,
            black_hole_detectors: Vec::new(),
            base_mss,
            block_sender,
            conditions: Conditions { loss: Frac::ZERO, bdp: 0 },
            min_mss: base_mss,
            now: Time::ZERO,
            packet: Vec::new(),
            frames_at: 0,
            lost: EventBuffer::default(),
        }
    }

    /// Queues a frame.
    pub(crate) fn push(&mut self, frame: ConnectionFrame) {
        self.connection_frames.insert(frame);
    }

    /// Queues a report that blocks are complete, and repeats the latest reports: the sender retransmits a block without
    /// a report.
    pub(crate) fn queue_block_whole(&mut self, first: u64, count: u64) {
        let before = self.recent_block_wholes.len().saturating_sub(REPEATED_REPORTS);
        self.connection_frames.extend(
            self.recent_block_wholes.range(before..).map(|&(first, count)| ConnectionFrame::Whole { first, count }),
        );
        if self.recent_block_wholes.len() == MAX_REPEATED_REPORTS {
            self.recent_block_wholes.pop_front();
        }
        self.recent_block_wholes.push_back((first, count));
        self.push(ConnectionFrame::Whole { first, count });
    }

    /// Queues the latest reports of complete blocks once more.
    pub(crate) fn requeue_block_wholes(&mut self) {
        while let Some((first, count)) = self.recent_block_wholes.pop_front() {
            self.push(ConnectionFrame::Whole { first, count });
        }
    }

    /// Returns the number of queued frames of the connection itself.
    pub(crate) fn waiting(&self) -> usize {
        self.connection_frames.len()
    }

    /// Queues a datagram; packets carry at most `max_len` bytes of one.
    pub(crate) fn push_datagram(&mut self, data: &[u8], max_len: usize) -> Result<(), DatagramError> {
        if data.len() > max_len {
            return Err(DatagramError::TooLong { len: data.len(), max_len });
        }
        if self.datagrams.push(data) { Ok(()) } else { Err(DatagramError::Full) }
    }

    /// Returns the black hole detection state of a subflow.
    pub(crate) fn black_hole_detector(&mut self, subflow: u8) -> &mut BlackHoleDetector {
        let at = usize::from(subflow);
        if self.black_hole_detectors.len() <= at {
            self.black_hole_detectors.resize(at + 1, BlackHoleDetector::default());
        }
        &mut self.black_hole_detectors[at]
    }

    fn is_empty(&self) -> bool {
        self.connection_frames.is_empty()
            && !self.streams.has_control()
            && self.datagrams.is_empty()
            && !self.streams.has_pending()
            && !self.needs_whole_packet()
    }

    /// Returns whether a block needs the next packet for itself.
    pub(crate) fn needs_whole_packet(&self) -> bool {
        self.block_sender.as_ref().is_some_and(|block_sender| block_sender.has_resend() || block_sender.has_parity())
    }

    fn put_connection_frame(&mut self, frame: ConnectionFrame) {
        let out = &mut self.packet;
        match frame {
            ConnectionFrame::Auth => Frame::Auth { ticket: self.auth.0, proof: self.auth.1 }.put(out),
            ConnectionFrame::Done => Frame::Done.put(out),
            ConnectionFrame::PathRetire { path, reason } => Frame::PathRetire { path, reason }.put(out),
            ConnectionFrame::PathId(path) => {
                if let Some(&IssuedId { id, token }) = self.issued_ids.get(&path) {
                    Frame::PathId { path, id, token }.put(out);
                }
            }
            ConnectionFrame::Ping => Frame::Ping.put(out),
            ConnectionFrame::Whole { first, count } => Frame::BlockWhole { first, count }.put(out),
            ConnectionFrame::Nack { block, missing } => Frame::BlockNack { block, missing }.put(out),
        }
    }

    /// Writes the next packet that is due for a block: a retransmission, or parity. Returns the packet's position in its
    /// block.
    fn put_of_block(&mut self, limit: usize) -> Option<Tag> {
        while let Some(block_sender) = &mut self.block_sender
            && let Some(resend) = block_sender.next_resend(self.now)
        {
            match resend {
                Resend::Plain { content } => self.finish_symbol(content, FrameOutcome::Resend),
                Resend::Parity { tag } => {
                    let (begun, len) = (self.packet.len(), block_sender.parity_len(tag));
                    put_parity_padding(&mut self.packet, tag, len, limit);
                    let fits = len.is_some_and(|len| self.packet.len() + len <= limit);
                    if fits && block_sender.put_retransmission(tag, &mut self.packet) {
                        return Some(tag);
                    }
                    self.packet.truncate(begun);
                    block_sender.give_up(tag.block);
                }
                Resend::Source { tag, content } => {
                    let begun = self.packet.len();
                    if self.put_source_retransmission(limit, tag, content) {
                        return Some(tag);
                    }
                    self.packet.truncate(begun);
                    if let Some(block_sender) = &mut self.block_sender {
                        block_sender.give_up(tag.block);
                    }
                }
            }
        }
        let block_sender = self.block_sender.as_mut()?;
        loop {
            let tag = block_sender.next_parity()?;
            let len = block_sender.parity_len(tag);
            if len.is_some_and(|len| self.packet.len() + len <= limit) {
                put_parity_padding(&mut self.packet, tag, len, limit);
                return block_sender.put_parity(self.now, &mut self.packet);
            }
            block_sender.give_up(tag.block);
        }
    }

    /// Writes a data packet of a block again, byte by byte. Returns false if that is not possible any more.
    fn put_source_retransmission(&mut self, limit: usize, tag: Tag, content: u64) -> bool {
        let Tag { block, shape, place } = tag;
        Frame::Padding(LENGTH_BYTES + missing_of_head(block)).put(&mut self.packet);
        Frame::Source { block, shape, place }.put(&mut self.packet);
        let Some(symbol) = self.contents.get(ContentHandle::of(content)) else { return false };
        let end = self.packet.len() + symbol.bytes as usize;
        let all = symbol.frames.iter().all(|carried| match carried {
            Carried::Stream(chunk) => self.streams.put_retransmission(chunk, &mut self.packet),
            Carried::Control(_) | Carried::Connection(_) => false,
        });
        if !all || end > limit || self.packet.len() > end {
            return false;
        }
        self.packet.resize(end, 0);
        true
    }

    /// Writes STREAM frames up to a packet length of `limit`. Returns whether all of the data was sent before.
    fn put_streams(&mut self, limit: usize, carried: &mut Vec<Carried>) -> bool {
        let (mut is_retransmission, begun) = (true, carried.len());
        while let left = limit.saturating_sub(self.packet.len())
            && left >= MIN_ROOM
            && let Some(chunk) = self.streams.put_frame(&mut self.packet, left)
        {
            is_retransmission &= chunk.is_retransmission;
            carried.push(Carried::Stream(chunk));
        }
        if self.streams.has_pending() && carried.len() > begun {
            // Packets of a batch have one length.
            self.packet.resize(limit.max(self.packet.len()), 0);
        }
        is_retransmission
    }

    /// Returns the position in a block of the packet that is being sent, if it should be coded and has room for it.
    fn offer(&mut self) -> Option<Offer> {
        let (bytes, ends) = self.streams.pending();
        let min_mss = self.min_mss as usize;
        let block_sender = self.block_sender.as_mut().filter(|_| bytes > 0)?;
        let max_len = to_u16(min_mss.saturating_sub(SOURCE_LEN + LENGTH_BYTES).min(u16::MAX.into()) as u64);
        let bytes = self.streams.pending_in_frames(max_len.into());
        block_sender.offer(Pending { bytes, ends }, max_len, self.conditions)
    }

    /// Writes a data packet of a block.
    fn put_source(&mut self, limit: usize, offer: Offer) -> (Tag, bool) {
        let Tag { block, shape, place } = offer.tag;
        // Parity is longer by this amount, and packets of a batch have one length.
        Frame::Padding(LENGTH_BYTES + missing_of_head(block)).put(&mut self.packet);
        Frame::Source { block, shape, place }.put(&mut self.packet);
        let symbol_at = self.packet.len();
        let at = self.contents.claim();
        let mut frames = mem::take(&mut self.contents.slots[at].frames);
        let is_retransmission = self.put_streams(limit.min(symbol_at + usize::from(offer.max_len)), &mut frames);
        let shortest = self.frames_at + SHORTEST_FRAMES;
        if self.packet.len() < shortest {
            self.packet.resize(shortest, 0);
        }
        let slot = &mut self.contents.slots[at];
        (slot.frames, slot.bytes) = (frames, to_u32((self.packet.len() - symbol_at) as u64));
        let content = self.contents.handle(at).number();
        if let Some(block_sender) = &mut self.block_sender {
            block_sender.push(self.now, offer, &self.packet[symbol_at..], content);
        }
        (offer.tag, is_retransmission)
    }

    /// Writes frames up to a packet length of `limit`. Returns the packet's position in a block, if any, and whether
    /// all of the data was sent before.
    fn put_frames(&mut self, limit: usize, carried: &mut Vec<Carried>) -> (Option<Tag>, bool) {
        if let Some(tag) = self.put_of_block(limit) {
            return (Some(tag), !tag.is_parity());
        }
        let room = |packet: &Vec<u8>| limit.saturating_sub(packet.len());
        while room(&self.packet) >= MAX_CONNECTION_FRAME_LEN
            && let Some(frame) = self.connection_frames.pop_first()
        {
            self.put_connection_frame(frame);
            carried.push(Carried::Connection(frame));
        }
        while room(&self.packet) >= MAX_CONTROL
            && let Some(control) = self.streams.next_control()
        {
            self.streams.put_control(control, &mut self.packet);
            carried.push(Carried::Control(control));
        }
        if let Some(datagram) = self.datagrams.front()
            && datagram.len() < room(&self.packet)
        {
            // The frame extends to the packet's end, so padding precedes it.
            let missing = (self.frames_at + SHORTEST_FRAMES).saturating_sub(self.packet.len() + 1 + datagram.len());
            if missing > 0 {
                Frame::Padding(missing).put(&mut self.packet);
            }
            Frame::Datagram(datagram).put(&mut self.packet);
            self.datagrams.pop();
            return (None, false);
        }
        let only_streams = carried.is_empty();
        if room(&self.packet) >= SOURCE_LEN + LENGTH_BYTES + MIN_ROOM
            && let Some(offer) = self.offer()
        {
            let (tag, is_retransmission) = self.put_source(limit, offer);
            return (Some(tag), is_retransmission && only_streams);
        }
        let is_retransmission = self.put_streams(limit, carried);
        (None, is_retransmission && only_streams)
    }

    fn settle(&mut self, carried: Carried, outcome: FrameOutcome) {
        match (carried, outcome) {
            (Carried::Stream(chunk), FrameOutcome::Delivered) => self.streams.acked(&chunk),
            (Carried::Stream(chunk), FrameOutcome::Resend) => self.streams.lost(&chunk),
            (Carried::Control(control), FrameOutcome::Delivered) => self.streams.control_acked(control),
            (Carried::Control(control), FrameOutcome::Resend) => self.streams.control_lost(control),
            // If a block is still incomplete, a new NACK is sent.
            (Carried::Connection(ConnectionFrame::Ping | ConnectionFrame::Nack { .. }), _)
            | (Carried::Connection(_), FrameOutcome::Delivered) => {}
            (Carried::Connection(frame), FrameOutcome::Resend) => self.push(frame),
        }
    }

    /// Releases a packet that was delivered or lost, and settles its contents.
    fn finish_packet(&mut self, handle: ContentHandle, status: DeliveryStatus) {
        let outcome = if status == DeliveryStatus::Delivered { FrameOutcome::Delivered } else { FrameOutcome::Resend };
        let Some(at) = self.contents.release(handle) else { return };
        let slot = &mut self.contents.slots[at];
        let (mut frames, bytes, order, subflow, tag) =
            (mem::take(&mut slot.frames), slot.bytes, slot.order, slot.subflow, slot.tag.take());
        let size = if bytes <= self.base_mss { PacketSize::Small } else { PacketSize::Full };
        match status {
            DeliveryStatus::Delivered => self.black_hole_detector(subflow).on_arrival(size, order),
            DeliveryStatus::Overtaken if size == PacketSize::Full => self.black_hole_detector(subflow).on_loss(order),
            DeliveryStatus::Overtaken | DeliveryStatus::Unknown => {}
        }
        for carried in frames.drain(..) {
            self.settle(carried, outcome);
        }
        self.contents.slots[at].frames = frames;
        if let (Some(tag), Some(block_sender)) = (tag, &mut self.block_sender) {
            match outcome {
                FrameOutcome::Delivered => block_sender.acked(tag),
                FrameOutcome::Resend => block_sender.lost(tag),
            }
            self.settle_blocks();
        }
    }

    /// Releases a symbol that was delivered, or must be sent without its block.
    fn finish_symbol(&mut self, content: u64, outcome: FrameOutcome) {
        let Some(at) = self.contents.release(ContentHandle::of(content)) else { return };
        let mut frames = mem::take(&mut self.contents.slots[at].frames);
        for carried in frames.drain(..) {
            self.settle(carried, outcome);
        }
        self.contents.slots[at].frames = frames;
    }

    /// Settles the symbols that the coder knows to be delivered.
    pub(crate) fn settle_blocks(&mut self) {
        while let Some(content) = self.block_sender.as_mut().and_then(BlockSender::next_delivered) {
            self.finish_symbol(content, FrameOutcome::Delivered);
        }
    }
}

impl DataSource for FrameQueue {
    type Content = ContentHandle;

    fn next_bytes(&mut self, mss: u32) -> Option<u32> {
        (!self.is_empty()).then_some(mss)
    }

    fn is_host_limited(&self) -> bool {
        self.streams.is_host_limited()
    }

    fn bytes_remaining(&self) -> Option<u64> {
        self.streams.left()
    }

    fn take(&mut self, subflow: u8, mss: u32) -> PacketContent<ContentHandle> {
        let begun = self.packet.len();
        let at = self.contents.claim();
        let mut frames = mem::take(&mut self.contents.slots[at].frames);
        let (tag, is_retransmission) = self.put_frames(self.frames_at + mss as usize, &mut frames);
        if self.packet.len() == begun {
            // The pending frames are no longer needed, or do not fit after the acknowledgement. A packet is sent anyway.
            Frame::Ping.put(&mut self.packet);
        }
        let shortest = self.frames_at + SHORTEST_FRAMES;
        if self.packet.len() < shortest {
            self.packet.resize(shortest, 0);
        }
        let bytes = to_u32((self.packet.len() - begun) as u64);
        self.packets_sent += 1;
        let slot = &mut self.contents.slots[at];
        (slot.frames, slot.bytes, slot.subflow, slot.tag) = (frames, bytes, subflow, tag);
        slot.order = self.packets_sent;
        PacketContent { bytes, content: self.contents.handle(at), is_retransmission }
    }

    fn acked(&mut self, handle: ContentHandle) {
        self.finish_packet(handle, DeliveryStatus::Delivered);
    }

    fn lost(&mut self, handle: ContentHandle, reason: ReturnReason) {
        if let ReturnReason::Lost { subflow, number, cause } = reason {
            self.lost.record(|| LostNote { subflow, number, cause });
        }
        let later_arrived = matches!(reason, ReturnReason::Lost { cause: LossCause::Reordered, .. });
        self.finish_packet(handle, if later_arrived { DeliveryStatus::Overtaken } else { DeliveryStatus::Unknown });
    }

    fn probe(&mut self) {
        self.push(ConnectionFrame::Ping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Side;
    use crate::streams::Limits;

    fn frame_queue() -> FrameQueue {
        let limits = Limits { max_data: 1, max_stream_data: 1, max_streams_bidi: 1, max_streams_uni: 1 };
        FrameQueue::new(Streams::new(Side::Client, limits, 1), None, 1)
    }

    /// Takes the first blocks of the queued reports, as a packet would.
    fn take_reports(frame_queue: &mut FrameQueue) -> Vec<u64> {
        let first = |frame: ConnectionFrame| {
            if let ConnectionFrame::Whole { first, .. } = frame { first } else { unreachable!("nothing else waits") }
        };
        mem::take(&mut frame_queue.connection_frames).into_iter().map(first).collect()
    }

    #[test]
    fn a_complete_block_is_reported_in_three_packets() {
        let mut frame_queue = frame_queue();
        for (block, named) in [(3, &[3][..]), (5, &[3, 5]), (6, &[3, 5, 6]), (9, &[5, 6, 9])] {
            frame_queue.queue_block_whole(block, 1);
            assert_eq!(take_reports(&mut frame_queue), named);
        }
    }

    #[test]
    fn a_retransmitted_ack_repeats_the_latest_reports() {
        let mut frame_queue = frame_queue();
        for block in 0..20 {
            frame_queue.queue_block_whole(block, 1);
        }
        take_reports(&mut frame_queue);
        frame_queue.requeue_block_wholes();
        assert_eq!(take_reports(&mut frame_queue), (20 - MAX_REPEATED_REPORTS as u64..20).collect::<Vec<_>>());
        frame_queue.requeue_block_wholes();
        assert_eq!(take_reports(&mut frame_queue), []);
    }
}
