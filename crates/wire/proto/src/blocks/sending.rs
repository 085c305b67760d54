//! The sender's blocks: coding and retransmission. `docs/src/transport-data.md`, "Blocks".
//!
//! A lost packet is not retransmitted as long as its block can be rebuilt without it. It is retransmitted when a `BLOCK_NACK`
//! requests it, or when too many packets of the block are known to be lost for the rest to suffice. If a block gets no
//! feedback for a timeout, the sender abandons it: unacknowledged data is sent as plain frames.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use units::{Frac, Span, Time};

use super::binomial;
use super::encoding::Encoding;
use super::error::BlockError;
use super::policy::{CodingPolicy, Conditions, Pending, Spent};
use super::pool::SymbolPool;
use super::ring::BlockRing;
use super::timers::{Timed, Timer, Timers};
use super::{BLOCK_BYTES, BlockEvent, LENGTH_BYTES, SYMBOL_BYTES, Tag, bit, first, lowest, packets};
use crate::event_buffer::EventBuffer;
use crate::frame::{Frame, MAX_PARITY, Shape};
use crate::narrow::{to_u8, to_u16, to_u32};
use crate::varint;

/// Maximum number of packet lists kept for reuse.
const MAX_SPARE: usize = 256;

/// Length of a PARITY frame before its symbol, without the block's number: its type, k, m and place.
const PARITY_HEAD: usize = 4;
/// Maximum probability that the packets retransmitted for a block are too few.
const MAX_RETRANSMISSION_FAILURE: Frac = Frac::millionths(1_000);

/// The place of the next data packet in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Contents of the packet's SOURCE frame.
    pub tag: Tag,
    /// Maximum length of the symbol, in bytes.
    pub max_len: u16,
}

/// A retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// A data packet with the same SOURCE frame and the same symbol, byte by byte.
    Source {
        /// Contents of its SOURCE frame.
        tag: Tag,
        /// The symbol's content, as passed to [`BlockSender::push`].
        content: u64,
    },
    /// A parity packet, which [`BlockSender::put_retransmission`] writes.
    Parity {
        /// The packet.
        tag: Tag,
    },
    /// Frames that no block protects any more.
    Plain {
        /// The symbol's content, as passed to [`BlockSender::push`]. It is not returned again.
        content: u64,
    },
}

/// The blocks that one end of a connection sends.
///
/// Data symbols stay with the user of the coder, which identifies them by a number of its choice, their content. Each
/// content is returned once: as delivered, or as [`Resend::Plain`]. The coder keeps parity.
///
/// Its accounted memory is at most `window` bytes: a block counts [`BLOCK_BYTES`], a parity symbol its length and
/// [`SYMBOL_BYTES`], a data symbol [`SYMBOL_BYTES`].
#[derive(Debug)]
pub struct BlockSender {
    policy: CodingPolicy,
    window: u64,
    timeout: Span,
    rtt: Span,
    ring: BlockRing<SendingBlock>,
    /// Accounted memory of the symbols, in bytes.
    symbol_memory: u64,
    encoding: Encoding,
    parity: SymbolPool,
    spare: Vec<Vec<SymbolPacket>>,
    /// Blocks with parity that was not sent yet. The first is live.
    due: VecDeque<u64>,
    /// Packets to retransmit, if their blocks still request it. The first one does.
    retransmissions: VecDeque<(u64, u8)>,
    plain: VecDeque<u64>,
    delivered: VecDeque<u64>,
    timers: Timers,
    /// Loss rate last seen, as a fraction of the packets.
    loss: Frac,
    spent: Spent,
    /// Parity packets sent, including retransmissions.
    parity_sent: u64,
    /// Events for observers.
    pub(crate) events: EventBuffer<BlockEvent>,
}

#[derive(Debug)]
struct SendingBlock {
    shape: Shape,
    /// Maximum length of a data symbol, in bytes.
    max_len: u16,
    /// Length of the longest data symbol, in bytes.
    longest: u16,
    /// Number of packets sent at least once, the first ones.
    sent_count: u8,
    acked: u64,
    /// Packets with no copy in flight and none acknowledged.
    lost: u64,
    /// Packets that wait for retransmission.
    retransmissions: u64,
    /// Data packets with content that was not returned.
    undelivered: u64,
    /// Sent data and, once all data was sent, parity.
    packets: Vec<SymbolPacket>,
    /// Accounted memory of its symbols, in bytes.
    bytes: u64,
    timer: Timer,
}

#[derive(Clone, Copy, Debug)]
struct SymbolPacket {
    /// Content of data, or number of parity in its pool.
    symbol: u64,
    /// Time of its last transmission.
    sent: Time,
    /// Copies that are neither acknowledged nor declared lost.
    in_flight: u8,
}

impl SendingBlock {
    /// Returns whether all data was sent and parity was made.
    fn is_complete(&self) -> bool {
        self.sent_count >= self.shape.data
    }

    /// Returns the bits of all of its packets.
    fn all(&self) -> u64 {
        first(packets(self.shape))
    }

    fn tag(&self, block: u64, place: u8) -> Tag {
        Tag { block, shape: self.shape, place }
    }

    fn parity_len(&self) -> usize {
        usize::from(self.longest) + LENGTH_BYTES
    }

    fn on_sent(&mut self, place: u8, now: Time) {
        if let Some(packet) = self.packets.get_mut(usize::from(place)) {
            packet.sent = now;
            packet.in_flight = packet.in_flight.saturating_add(1);
        }
        debug_assert_eq!(self.lost & bit(place), 0, "requested packets still count as lost");
    }

    /// Removes one copy of a packet from those in flight. Returns whether there are no others.
    fn remove_copy(&mut self, place: u8) -> bool {
        let Some(packet) = self.packets.get_mut(usize::from(place)) else { return false };
        packet.in_flight = packet.in_flight.saturating_sub(1);
        packet.in_flight == 0
    }

    /// Returns the packets to retransmit, out of those that a receiver misses, so that it has enough at this loss rate.
    fn needed(&self, missing: u64, network: &NetworkState) -> u64 {
        let &NetworkState { now, rtt, loss } = network;
        let missing = missing & self.all() & !self.acked;
        let mut arriving = self.retransmissions | !first(self.sent_count);
        let mut too_soon = 0;
        for (place, packet) in self.packets.iter().enumerate() {
            if packet.sent.saturating_add(rtt) > now {
                let mask = bit(to_u8(place as u64));
                if packet.in_flight > 0 { arriving |= mask } else { too_soon |= mask }
            }
        }
        let has = (self.all() & (!missing | arriving)).count_ones();
        let lacks = u32::from(self.shape.data).saturating_sub(has);
        lowest(missing & !arriving & !too_soon, with_spares(lacks, loss))
    }
}

/// Returns the number of packets to send for a block that lacks `lacks` packets, so that it gets them all except with a
/// probability of [`MAX_RETRANSMISSION_FAILURE`]. Retransmissions are few, and each further round trip delays all data that
/// waits for the block.
fn with_spares(lacks: u32, loss: Frac) -> u32 {
    let data = to_u8(u64::from(lacks).min(u8::MAX.into()));
    if data == 0 {
        return 0;
    }
    lacks + u32::from(binomial::parity(data, loss, MAX_RETRANSMISSION_FAILURE).unwrap_or(MAX_PARITY))
}

/// State of the network when a receiver requests packets.
#[derive(Clone, Copy, Debug)]
struct NetworkState {
    now: Time,
    rtt: Span,
    /// Fraction of packets that are lost.
    loss: Frac,
}

impl BlockSender {
    /// Creates a coder without blocks. `window` is in bytes: the memory that the peer keeps (`coding_window`, at most
    /// 2^30). The first RTT is 333 ms, and the timeout three of them (RFC 9002 §6.2.2).
    pub fn new(policy: CodingPolicy, window: u64) -> Self {
        Self {
            policy,
            window,
            timeout: Span::from_ms(999),
            rtt: Span::from_ms(333),
            ring: BlockRing::new(),
            symbol_memory: 0,
            encoding: Encoding::default(),
            parity: SymbolPool::default(),
            spare: Vec::new(),
            due: VecDeque::new(),
            retransmissions: VecDeque::new(),
            plain: VecDeque::new(),
            delivered: VecDeque::new(),
            timers: Timers::default(),
            loss: Frac::ZERO,
            spent: Spent::default(),
            parity_sent: 0,
            events: EventBuffer::default(),
        }
    }

    /// Returns the number of parity packets sent, including retransmissions.
    pub fn parity_sent(&self) -> u64 {
        self.parity_sent
    }

    /// Sets the timeout and the RTT. A block without feedback for `timeout` after its last packet is given up, for
    /// packets sent from now on. No packet is retransmitted twice on request within `rtt`. Both are of the slowest
    /// path; the timeout covers a round trip and a quarter and the peer's `ack_delay`, after which a `BLOCK_NACK`
    /// arrives; less than 1 us counts as 1 us.
    pub fn set_timing(&mut self, timeout: Span, rtt: Span) {
        self.timeout = timeout.max(Span::from_us(1));
        self.rtt = rtt;
    }

    /// Returns the capacity of the parity buffers, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.parity.bytes()
    }

    /// Sets the packets that are coded, from the next block on.
    pub fn set_coding(&mut self, policy: CodingPolicy) {
        self.policy = policy;
    }

    /// Returns the accounted memory, in bytes.
    pub fn accounted_bytes(&self) -> u64 {
        self.symbol_memory + BLOCK_BYTES * self.ring.span()
    }

    /// Returns the place of the next data packet. None if it is not coded, or no block fits into memory. An offer holds
    /// until another method is called.
    ///
    /// `mss` is the maximum length of a symbol, in bytes: the room after a SOURCE frame in the smallest packet of the
    /// paths in use, less 2. A block that has begun takes the next packets even if nothing is pending; an empty symbol
    /// then fills a place. If packets have become too small for a symbol of the block, the block is given up.
    pub fn offer(&mut self, pending: Pending, mss: u16, conditions: Conditions) -> Option<Offer> {
        if let Some((number, block)) = self.open() {
            if block.longest <= mss {
                return Some(Offer { tag: block.tag(number, block.sent_count), max_len: block.max_len.min(mss) });
            }
            self.give_up(number);
        }
        self.loss = conditions.loss;
        let shape = self.policy.shape(pending, mss, conditions, &mut self.spent)?;
        let block = self.ring.next();
        let fits =
            self.accounted_bytes() + BLOCK_BYTES + symbol_bytes(shape, usize::from(mss) + LENGTH_BYTES) <= self.window;
        (fits && block <= varint::MAX).then_some(Offer { tag: Tag { block, shape, place: 0 }, max_len: mss })
    }

    /// Returns the block that lacks data.
    fn open(&self) -> Option<(u64, &SendingBlock)> {
        let last = self.ring.next().checked_sub(1)?;
        let block = self.ring.get(last).filter(|block| !block.is_complete())?;
        Some((last, block))
    }

    /// Records the transmission of an offered packet. `symbol` is the rest of the packet after its SOURCE frame, of at
    /// most [`Offer::max_len`] bytes; `content` is a number by which the user of the coder finds the same bytes again.
    pub fn push(&mut self, now: Time, offer: Offer, symbol: &[u8], content: u64) {
        let Offer { tag, max_len } = offer;
        if tag.place == 0 && tag.block == self.ring.next() {
            self.begin(tag.shape, max_len);
        }
        let Some((number, _)) = self.open().filter(|&(number, block)| block.tag(number, block.sent_count) == tag)
        else {
            debug_assert!(false, "{tag:?} was not offered");
            self.plain.push_back(content);
            return;
        };
        if tag.place == 0 {
            self.events.record(|| BlockEvent::Begun { block: number, shape: tag.shape });
        }
        let Some(block) = self.ring.get_mut(number) else { return };
        block.packets.push(SymbolPacket { symbol: content, sent: now, in_flight: 1 });
        block.undelivered |= bit(tag.place);
        block.sent_count += 1;
        if symbol.len() > block.max_len.into() {
            debug_assert!(false, "a symbol of {} bytes, at most {max_len} were offered", symbol.len());
            self.give_up(number);
            return;
        }
        block.longest = block.longest.max(to_u16(symbol.len() as u64));
        self.encoding.push(tag.place, symbol);
        self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
        if block.is_complete() {
            self.complete(number);
        }
    }

    fn begin(&mut self, shape: Shape, max_len: u16) {
        if !self.encoding.begin(shape, max_len) {
            return;
        }
        let mut list = self.spare.pop().unwrap_or_default();
        list.reserve_exact(packets(shape).into());
        let bytes = symbol_bytes(shape, usize::from(max_len) + LENGTH_BYTES);
        self.ring.push(SendingBlock {
            shape,
            max_len,
            longest: 0,
            sent_count: 0,
            acked: 0,
            lost: 0,
            retransmissions: 0,
            undelivered: 0,
            packets: list,
            bytes,
            timer: Timer::UNSET,
        });
        self.symbol_memory += bytes;
        debug_assert!(self.accounted_bytes() <= self.window, "{} of {} bytes", self.accounted_bytes(), self.window);
        let ring = &self.ring;
        self.timers.prune(ring.live(), |block| ring.get(block).is_some());
    }

    /// Stores the parity of a block after all of its data was sent.
    fn complete(&mut self, number: u64) {
        let Some(block) = self.ring.get_mut(number) else { return };
        let len = block.parity_len();
        for symbol in self.encoding.parity(len) {
            let mut buffer = self.parity.take(symbol.len());
            buffer.copy_from_slice(symbol);
            let symbol = self.parity.store(buffer).into();
            block.packets.push(SymbolPacket { symbol, sent: Time::ZERO, in_flight: 0 });
        }
        let bytes = symbol_bytes(block.shape, len);
        self.symbol_memory -= block.bytes - bytes;
        block.bytes = bytes;
        self.due.push_back(number);
        debug_assert_ne!(block.undelivered, 0, "the last packet has just left");
    }

    /// Returns whether parity is due.
    pub fn has_parity(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the next parity packet.
    pub fn next_parity(&self) -> Option<Tag> {
        let number = *self.due.front()?;
        self.ring.get(number).map(|block| block.tag(number, block.sent_count))
    }

    /// Returns the length of a packet's PARITY frame, in bytes. None if the packet is not stored, or no longer.
    pub fn parity_len(&self, tag: Tag) -> Option<usize> {
        let block = self.ring.get(tag.block).filter(|block| block.is_complete() && tag.is_parity())?;
        Some(PARITY_HEAD + varint::len(tag.block) + block.parity_len())
    }

    /// Appends the next PARITY frame, which must be the packet's last frame. Returns its tag.
    pub fn put_parity(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Tag> {
        let tag = self.next_parity()?;
        if !self.put_retransmission(tag, out) {
            debug_assert!(false, "parity that is due is kept");
            return None;
        }
        let block = self.ring.get_mut(tag.block)?;
        block.on_sent(tag.place, now);
        block.sent_count += 1;
        self.timers.set(&mut block.timer, tag.block, now.saturating_add(self.timeout));
        if block.sent_count == packets(block.shape) {
            self.due.pop_front();
            self.prune_queues();
        }
        Some(tag)
    }

    /// Appends the PARITY frame of a packet, which must be the packet's last frame. Returns false, and writes nothing,
    /// if the block is over.
    pub fn put_retransmission(&mut self, tag: Tag, out: &mut Vec<u8>) -> bool {
        let block = self.ring.get(tag.block).filter(|_| tag.is_parity());
        let Some(packet) = block.and_then(|block| block.packets.get(usize::from(tag.place))) else { return false };
        let Tag { block, shape, place } = tag;
        Frame::Parity { block, shape, place, symbol: self.parity.get(to_u32(packet.symbol)) }.put(out);
        self.parity_sent += 1;
        true
    }

    /// Handles the acknowledgement of a packet of a block.
    pub fn acked(&mut self, tag: Tag) {
        let Some(block) = self.ring.get_mut(tag.block) else { return };
        block.remove_copy(tag.place);
        let mask = bit(tag.place) & first(block.sent_count);
        block.acked |= mask;
        block.lost &= !mask;
        block.retransmissions &= !mask;
        if block.undelivered & mask != 0 {
            block.undelivered &= !mask;
            self.delivered.push_back(block.packets[usize::from(tag.place)].symbol);
        }
        if block.is_complete() && block.undelivered == 0 {
            self.end(tag.block);
        } else {
            self.prune_queues();
        }
    }

    /// Declares a packet of a block lost. Called once for each lost transmission.
    pub fn lost(&mut self, tag: Tag) {
        let Some(block) = self.ring.get_mut(tag.block) else { return };
        let mask = bit(tag.place) & first(block.sent_count) & !block.acked;
        if block.remove_copy(tag.place) {
            block.lost |= mask & !block.retransmissions;
        }
        // Packets that are neither acknowledged nor lost may still arrive.
        let may_arrive = u32::from(packets(block.shape)) - block.lost.count_ones();
        let lacks = u32::from(block.shape.data).saturating_sub(may_arrive);
        let wanted = lowest(block.lost, with_spares(lacks, self.loss));
        self.queue_retransmissions(tag.block, wanted);
    }

    /// Handles a `BLOCK_NACK`: the peer lacks packets of a block. Ignores bits of places that the block does not have,
    /// and blocks that are over.
    ///
    /// # Errors
    /// [`BlockError::Unsent`] if no packet of the block was sent.
    pub fn on_nack(&mut self, block: u64, missing: u64, now: Time) -> Result<(), BlockError> {
        let sent = self.ring.next();
        if block >= sent {
            return Err(BlockError::Unsent { block, sent });
        }
        self.events.record(|| BlockEvent::Requested { block, missing });
        let Some(requested) = self.ring.get_mut(block) else { return Ok(()) };
        let wanted = requested.needed(missing, &NetworkState { now, rtt: self.rtt, loss: self.loss });
        self.timers.set(&mut requested.timer, block, now.saturating_add(self.timeout));
        self.queue_retransmissions(block, wanted);
        Ok(())
    }

    /// Queues packets of a block for retransmission.
    fn queue_retransmissions(&mut self, number: u64, wanted: u64) {
        let Some(block) = self.ring.get_mut(number) else { return };
        debug_assert_eq!(wanted & (block.retransmissions | block.acked | !first(block.sent_count)), 0);
        block.retransmissions |= wanted;
        block.lost &= !wanted;
        let places = (0..packets(block.shape)).filter(|&place| wanted & bit(place) != 0);
        self.retransmissions.extend(places.map(|place| (number, place)));
    }

    /// Handles a `BLOCK_WHOLE`: `count` blocks from `first` on are complete at the peer. Takes time proportional to the
    /// number of live blocks among them, regardless of `count`.
    ///
    /// # Errors
    /// [`BlockError::Unsent`] if one of them has data that was not sent; then nothing changes.
    pub fn on_block_whole(&mut self, first: u64, count: u64) -> Result<(), BlockError> {
        let Some(more) = count.checked_sub(1) else { return Ok(()) };
        let last = first.saturating_add(more);
        let sent = self.ring.next() - u64::from(self.open().is_some());
        if last >= sent {
            return Err(BlockError::Unsent { block: first.max(sent), sent });
        }
        let mut from = first;
        while let Some(number) = self.ring.first_from(from).filter(|&number| number <= last) {
            if let Some(block) = self.ring.get_mut(number) {
                self.delivered.extend(block.take_undelivered());
            }
            self.end(number);
            from = number + 1;
        }
        Ok(())
    }

    /// Abandons a block: its unacknowledged contents are returned as [`Resend::Plain`]. For packets that cannot be
    /// retransmitted as they were: a stream was reset, or the parity no longer fits into a packet.
    pub fn give_up(&mut self, block: u64) {
        if let Some(given_up) = self.ring.get_mut(block) {
            self.events.record(|| BlockEvent::GivenUp { block });
            self.plain.extend(given_up.take_undelivered());
        }
        self.end(block);
    }

    /// Forgets a block after its contents were returned.
    fn end(&mut self, number: u64) {
        let Some(mut block) = self.ring.remove(number) else { return };
        debug_assert_eq!(block.undelivered, 0);
        self.symbol_memory -= block.bytes;
        for packet in block.packets.drain(..).skip(block.shape.data.into()) {
            self.parity.free(to_u32(packet.symbol));
        }
        if self.spare.len() < MAX_SPARE {
            self.spare.push(block.packets);
        }
        self.prune_queues();
    }

    /// Drops entries at the front of the queues that are no longer due.
    fn prune_queues(&mut self) {
        while self.due.front().is_some_and(|&number| self.ring.get(number).is_none()) {
            self.due.pop_front();
        }
        while self.retransmissions.front().is_some_and(|&(number, place)| !self.is_retransmission_due(number, place)) {
            self.retransmissions.pop_front();
        }
    }

    fn is_retransmission_due(&self, number: u64, place: u8) -> bool {
        self.ring.get(number).is_some_and(|block| block.retransmissions & bit(place) != 0)
    }

    /// Returns whether a retransmission is due.
    pub fn has_resend(&self) -> bool {
        !self.plain.is_empty() || !self.retransmissions.is_empty()
    }

    /// Returns the next retransmission and records it as sent now.
    pub fn next_resend(&mut self, now: Time) -> Option<Resend> {
        if let Some(content) = self.plain.pop_front() {
            return Some(Resend::Plain { content });
        }
        let (number, place) = self.retransmissions.pop_front()?;
        let block = self.ring.get_mut(number)?;
        block.retransmissions &= !bit(place);
        block.on_sent(place, now);
        self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
        let tag = block.tag(number, place);
        let content = block.packets.get(usize::from(place))?.symbol;
        self.prune_queues();
        self.events.record(|| BlockEvent::Repair(tag));
        Some(if tag.is_parity() { Resend::Parity { tag } } else { Resend::Source { tag, content } })
    }

    /// Returns a content that the peer has, because its packet was acknowledged or its block is complete.
    pub fn next_delivered(&mut self) -> Option<u64> {
        self.delivered.pop_front()
    }

    /// Returns the time of the next [`BlockSender::on_timer`] call; [`Time::NEVER`] if none is needed.
    pub fn next_timer(&mut self) -> Time {
        self.timers.first(&mut self.ring).map_or(Time::NEVER, |(due, _)| due)
    }

    /// Abandons blocks without feedback in time. A block with packets that wait to be sent gets another timeout.
    pub fn on_timer(&mut self, now: Time) {
        loop {
            let first = self.timers.first(&mut self.ring);
            let Some((_, number)) = first.filter(|&(due, _)| due <= now) else { return };
            let Some(block) = self.ring.get_mut(number) else { return };
            if block.is_complete() && (block.sent_count < packets(block.shape) || block.retransmissions != 0) {
                self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
            } else {
                self.give_up(number);
            }
        }
    }
}

impl SendingBlock {
    /// Takes the contents that were not returned.
    fn take_undelivered(&mut self) -> impl Iterator<Item = u64> {
        let undelivered = core::mem::take(&mut self.undelivered);
        let data = self.packets.iter().take(self.shape.data.into()).enumerate();
        data.filter(move |&(place, _)| undelivered & bit(to_u8(place as u64)) != 0).map(|(_, packet)| packet.symbol)
    }
}

impl Timed for BlockRing<SendingBlock> {
    fn timer(&mut self, block: u64) -> Option<&mut Timer> {
        self.get_mut(block).map(|block| &mut block.timer)
    }
}

/// Returns the accounted memory of a block's symbols with parity of `len` bytes.
fn symbol_bytes(shape: Shape, len: usize) -> u64 {
    u64::from(shape.data) * SYMBOL_BYTES + u64::from(shape.parity) * (len as u64 + SYMBOL_BYTES)
}
