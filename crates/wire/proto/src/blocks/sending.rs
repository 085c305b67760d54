//! The sender's blocks: what is coded, and what leaves again. `docs/src/transport.md`, "Blocks".
//!
//! A lost packet is not sent again as long as its block can do without it. It leaves again when `BLOCK_NACK` asks for
//! it, or when so many packets of the block are known to be lost that the rest is not enough. If nothing is heard of a
//! block for a timeout, the sender gives it up: what is not acknowledged goes as plain frames.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use units::{Frac, Span, Time};

use super::binomial;
use super::encoding::Encoding;
use super::error::BlockError;
use super::policy::{Coding, Conditions, Pending, Spent};
use super::pool::Pool;
use super::ring::Ring;
use super::timers::{Timed, Timer, Timers};
use super::{BLOCK_BYTES, BlockEvent, LENGTH_BYTES, SYMBOL_BYTES, Tag, bit, first, lowest, packets};
use crate::frame::{Frame, MOST_PARITY, Shape};
use crate::notes::Notes;
use crate::varint;

/// Lists of packets that are kept to be used again.
const MOST_SPARE: usize = 256;

/// What comes before the symbol in a PARITY frame, without the block's number: its type, k, m and place.
const PARITY_HEAD: usize = 4;
/// At most this is the probability that the packets sent again for a block are too few.
const MOST_FAILING_AGAIN: Frac = Frac::millionths(1_000);

/// The place of the next data packet in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// What the packet's SOURCE frame says.
    pub tag: Tag,
    /// The most bytes that the symbol may have.
    pub most: u16,
}

/// What is to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// A data packet with the same SOURCE frame and the same symbol, byte by byte.
    Source {
        /// What its SOURCE frame says.
        tag: Tag,
        /// The symbol's content, as [`Coder::push`] got it.
        content: u64,
    },
    /// A parity packet, which [`Coder::put_again`] writes.
    Parity {
        /// Which.
        tag: Tag,
    },
    /// Frames that no block protects any more.
    Plain {
        /// The symbol's content, as [`Coder::push`] got it. It is not given again.
        content: u64,
    },
}

/// The blocks that one end of a connection sends.
///
/// Data symbols stay with the caller, which knows them by a number of its choice, their content. Each content comes
/// back once: as delivered, or as [`Resend::Plain`]. The coder keeps parity.
///
/// What it keeps counts at most `window` bytes: a block [`BLOCK_BYTES`], a parity symbol its length and
/// [`SYMBOL_BYTES`], a data symbol [`SYMBOL_BYTES`].
#[derive(Debug)]
pub struct Coder {
    coding: Coding,
    window: u64,
    timeout: Span,
    rtt: Span,
    ring: Ring<Block>,
    /// What symbols count in memory.
    kept: u64,
    encoding: Encoding,
    parity: Pool,
    spare: Vec<Vec<Packet>>,
    /// Blocks with parity that has not left yet. The first is live.
    due: VecDeque<u64>,
    /// Packets that leave again, if their blocks still say so. The first one does.
    again: VecDeque<(u64, u8)>,
    plain: VecDeque<u64>,
    delivered: VecDeque<u64>,
    timers: Timers,
    /// The part of the packets that is lost, as it was last seen.
    loss: Frac,
    spent: Spent,
    /// Parity packets that left, those included that did so again.
    parity_sent: u64,
    /// For whoever watches.
    pub(crate) notes: Notes<BlockEvent>,
}

#[derive(Debug)]
struct Block {
    shape: Shape,
    /// The most bytes that a data symbol may have.
    most: u16,
    /// The most bytes that one has.
    longest: u16,
    /// Packets that left, the first ones.
    left: u8,
    acked: u64,
    /// Packets of which no copy is under way and none was acknowledged.
    lost: u64,
    /// Packets that wait to leave again.
    again: u64,
    /// Data packets whose content was not given back.
    held: u64,
    /// Data that left and, once all has, parity.
    packets: Vec<Packet>,
    /// What its symbols count in memory.
    bytes: u64,
    timer: Timer,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    /// The content of data, the number of parity in its pool.
    symbol: u64,
    /// When it left last.
    sent: Time,
    /// Copies of it of which nothing is known.
    under_way: u8,
}

impl Block {
    /// Whether all data left and parity was made.
    fn is_complete(&self) -> bool {
        self.left >= self.shape.data
    }

    /// All of its packets.
    fn all(&self) -> u64 {
        first(packets(self.shape))
    }

    fn tag(&self, block: u64, place: u8) -> Tag {
        Tag { block, shape: self.shape, place }
    }

    fn parity_len(&self) -> usize {
        usize::from(self.longest) + LENGTH_BYTES
    }

    fn leaves(&mut self, place: u8, now: Time) {
        if let Some(packet) = self.packets.get_mut(usize::from(place)) {
            packet.sent = now;
            packet.under_way = packet.under_way.saturating_add(1);
        }
        debug_assert_eq!(self.lost & bit(place), 0, "packets that are asked for count as lost no more");
    }

    /// A copy of a packet is not under way any more. Gives whether there are no others.
    fn lands(&mut self, place: u8) -> bool {
        let Some(packet) = self.packets.get_mut(usize::from(place)) else { return false };
        packet.under_way = packet.under_way.saturating_sub(1);
        packet.under_way == 0
    }

    /// The packets that leave again, of those that a receiver misses, so that it has enough of them at this loss rate.
    fn needed(&self, missing: u64, (now, rtt): (Time, Span), loss: Frac) -> u64 {
        let missing = missing & self.all() & !self.acked;
        let mut coming = self.again | !first(self.left);
        let mut too_soon = 0;
        for (place, packet) in self.packets.iter().enumerate() {
            if packet.sent.saturating_add(rtt) > now {
                let mark = bit(place as u8);
                if packet.under_way > 0 { coming |= mark } else { too_soon |= mark }
            }
        }
        let has = (self.all() & (!missing | coming)).count_ones();
        let lacks = u32::from(self.shape.data).saturating_sub(has);
        lowest(missing & !coming & !too_soon, with_spares(lacks, loss))
    }
}

/// How many packets leave where a block lacks so many, so that it gets them all but with a probability of
/// [`MOST_FAILING_AGAIN`]. What leaves again is little, and each further round trip delays all that waits for the block.
fn with_spares(lacks: u32, loss: Frac) -> u32 {
    let data = lacks.min(u32::from(u8::MAX)) as u8;
    if data == 0 {
        return 0;
    }
    lacks + u32::from(binomial::parity(data, loss, MOST_FAILING_AGAIN).unwrap_or(MOST_PARITY))
}

impl Coder {
    /// No blocks yet. `window` is in bytes: what the peer keeps (`coding_window`, at most 2^30). The round trip is 333
    /// ms at first, and the timeout three of them (RFC 9002 §6.2.2).
    pub fn new(coding: Coding, window: u64) -> Self {
        Self {
            coding,
            window,
            timeout: Span::from_ms(999),
            rtt: Span::from_ms(333),
            ring: Ring::new(),
            kept: 0,
            encoding: Encoding::default(),
            parity: Pool::default(),
            spare: Vec::new(),
            due: VecDeque::new(),
            again: VecDeque::new(),
            plain: VecDeque::new(),
            delivered: VecDeque::new(),
            timers: Timers::default(),
            loss: Frac::ZERO,
            spent: Spent::default(),
            parity_sent: 0,
            notes: Notes::default(),
        }
    }

    /// Parity packets that left, those included that did so again.
    pub fn parity_sent(&self) -> u64 {
        self.parity_sent
    }

    /// How long a block may hear nothing after its last packet left, for packets that leave from now on, and the
    /// round trip, in which no packet is asked for twice. Both are of the slowest path; the timeout covers a round trip
    /// and a quarter and the peer's `ack_delay`, after which a `BLOCK_NACK` comes; less than 1 us
    /// counts as 1 us.
    pub fn set_timing(&mut self, timeout: Span, rtt: Span) {
        self.timeout = timeout.max(Span::from_us(1));
        self.rtt = rtt;
    }

    /// What the buffers of parity could hold, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.parity.bytes()
    }

    /// Which packets are coded, from the next block on.
    pub fn set_coding(&mut self, coding: Coding) {
        self.coding = coding;
    }

    /// What it keeps counts so many bytes in memory.
    pub fn kept(&self) -> u64 {
        self.kept + BLOCK_BYTES * self.ring.span()
    }

    /// Where the next data packet goes; none if it is not coded, or no block fits into memory. An offer holds
    /// until anything else is called.
    ///
    /// `mss` is the most bytes of a symbol: what the smallest packet of the paths in use has room for behind a SOURCE
    /// frame, less 2. A block that has begun takes the next packets even if nothing is pending; an empty symbol fills a
    /// place then. If the block has a symbol for which packets have become too small, it is given up.
    pub fn offer(&mut self, pending: Pending, mss: u16, conditions: Conditions) -> Option<Offer> {
        if let Some((number, block)) = self.open() {
            if block.longest <= mss {
                return Some(Offer { tag: block.tag(number, block.left), most: block.most.min(mss) });
            }
            self.give_up(number);
        }
        self.loss = conditions.loss;
        let shape = self.coding.shape(pending, mss, conditions, &mut self.spent)?;
        let block = self.ring.next();
        let fits = self.kept() + BLOCK_BYTES + symbol_bytes(shape, usize::from(mss) + LENGTH_BYTES) <= self.window;
        (fits && block <= varint::MOST).then_some(Offer { tag: Tag { block, shape, place: 0 }, most: mss })
    }

    /// The block that lacks data.
    fn open(&self) -> Option<(u64, &Block)> {
        let last = self.ring.next().checked_sub(1)?;
        let block = self.ring.get(last).filter(|block| !block.is_complete())?;
        Some((last, block))
    }

    /// A packet leaves as was offered. `symbol` is what follows its SOURCE frame, and not longer than [`Offer::most`];
    /// `content` is a number by which the caller finds the same bytes again.
    pub fn push(&mut self, now: Time, offer: Offer, symbol: &[u8], content: u64) {
        let Offer { tag, most } = offer;
        if tag.place == 0 && tag.block == self.ring.next() {
            self.begin(tag.shape, most);
        }
        let Some((number, _)) = self.open().filter(|&(number, block)| block.tag(number, block.left) == tag) else {
            debug_assert!(false, "{tag:?} was not offered");
            self.plain.push_back(content);
            return;
        };
        if tag.place == 0 {
            self.notes.note(|| BlockEvent::Begun { block: number, shape: tag.shape });
        }
        let Some(block) = self.ring.get_mut(number) else { return };
        block.packets.push(Packet { symbol: content, sent: now, under_way: 1 });
        block.held |= bit(tag.place);
        block.left += 1;
        if symbol.len() > block.most.into() {
            debug_assert!(false, "a symbol of {} bytes, at most {most} were offered", symbol.len());
            self.give_up(number);
            return;
        }
        block.longest = block.longest.max(symbol.len() as u16);
        self.encoding.push(tag.place, symbol);
        self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
        if block.is_complete() {
            self.complete(number);
        }
    }

    fn begin(&mut self, shape: Shape, most: u16) {
        if !self.encoding.begin(shape, most) {
            return;
        }
        let mut list = self.spare.pop().unwrap_or_default();
        list.reserve_exact(packets(shape).into());
        let bytes = symbol_bytes(shape, usize::from(most) + LENGTH_BYTES);
        self.ring.push(Block {
            shape,
            most,
            longest: 0,
            left: 0,
            acked: 0,
            lost: 0,
            again: 0,
            held: 0,
            packets: list,
            bytes,
            timer: Timer::UNSET,
        });
        self.kept += bytes;
        debug_assert!(self.kept() <= self.window, "{} of {} bytes", self.kept(), self.window);
        let ring = &self.ring;
        self.timers.prune(ring.live(), |block| ring.get(block).is_some());
    }

    /// All data of a block left: keeps its parity.
    fn complete(&mut self, number: u64) {
        let Some(block) = self.ring.get_mut(number) else { return };
        let len = block.parity_len();
        for symbol in self.encoding.parity(len) {
            let mut buffer = self.parity.take(symbol.len());
            buffer.copy_from_slice(symbol);
            let symbol = self.parity.store(buffer).into();
            block.packets.push(Packet { symbol, sent: Time::ZERO, under_way: 0 });
        }
        let bytes = symbol_bytes(block.shape, len);
        self.kept -= block.bytes - bytes;
        block.bytes = bytes;
        self.due.push_back(number);
        debug_assert_ne!(block.held, 0, "the last packet has just left");
    }

    /// Whether parity is due.
    pub fn has_parity(&self) -> bool {
        !self.due.is_empty()
    }

    /// The parity packet that leaves next.
    pub fn next_parity(&self) -> Option<Tag> {
        let number = *self.due.front()?;
        self.ring.get(number).map(|block| block.tag(number, block.left))
    }

    /// The bytes of the PARITY frame of a packet; none if it is not kept (any more).
    pub fn parity_len(&self, tag: Tag) -> Option<usize> {
        let block = self.ring.get(tag.block).filter(|block| block.is_complete() && tag.is_parity())?;
        Some(PARITY_HEAD + varint::len(tag.block) + block.parity_len())
    }

    /// Appends the PARITY frame that leaves next, which must be the packet's last, and gives its packet.
    pub fn put_parity(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Tag> {
        let tag = self.next_parity()?;
        if !self.put_again(tag, out) {
            debug_assert!(false, "parity that is due is kept");
            return None;
        }
        let block = self.ring.get_mut(tag.block)?;
        block.leaves(tag.place, now);
        block.left += 1;
        self.timers.set(&mut block.timer, tag.block, now.saturating_add(self.timeout));
        if block.left == packets(block.shape) {
            self.due.pop_front();
            self.tidy();
        }
        Some(tag)
    }

    /// Appends the PARITY frame of a packet, which must be the packet's last. False, and nothing is written, if the
    /// block is over by now.
    pub fn put_again(&mut self, tag: Tag, out: &mut Vec<u8>) -> bool {
        let block = self.ring.get(tag.block).filter(|_| tag.is_parity());
        let Some(packet) = block.and_then(|block| block.packets.get(usize::from(tag.place))) else { return false };
        let Tag { block, shape, place } = tag;
        Frame::Parity { block, shape, place, symbol: self.parity.get(packet.symbol as u32) }.put(out);
        self.parity_sent += 1;
        true
    }

    /// A packet of a block was acknowledged.
    pub fn acked(&mut self, tag: Tag) {
        let Some(block) = self.ring.get_mut(tag.block) else { return };
        block.lands(tag.place);
        let mark = bit(tag.place) & first(block.left);
        block.acked |= mark;
        block.lost &= !mark;
        block.again &= !mark;
        if block.held & mark != 0 {
            block.held &= !mark;
            self.delivered.push_back(block.packets[usize::from(tag.place)].symbol);
        }
        if block.is_complete() && block.held == 0 {
            self.end(tag.block);
        } else {
            self.tidy();
        }
    }

    /// A packet of a block counts as lost: to be told once for each time that it left.
    pub fn lost(&mut self, tag: Tag) {
        let Some(block) = self.ring.get_mut(tag.block) else { return };
        let mark = bit(tag.place) & first(block.left) & !block.acked;
        if block.lands(tag.place) {
            block.lost |= mark & !block.again;
        }
        // What is neither acknowledged nor lost may still come.
        let may_come = u32::from(packets(block.shape)) - block.lost.count_ones();
        let lacks = u32::from(block.shape.data).saturating_sub(may_come);
        let wanted = lowest(block.lost, with_spares(lacks, self.loss));
        self.ask(tag.block, wanted);
    }

    /// The peer misses packets of a block. Bits of places that it does not have mean nothing, nor do blocks that are
    /// over.
    ///
    /// # Errors
    /// [`BlockError::Unsent`] if no packet of the block left.
    pub fn on_nack(&mut self, block: u64, missing: u64, now: Time) -> Result<(), BlockError> {
        let sent = self.ring.next();
        if block >= sent {
            return Err(BlockError::Unsent { block, sent });
        }
        self.notes.note(|| BlockEvent::Requested { block, missing });
        let Some(asked) = self.ring.get_mut(block) else { return Ok(()) };
        let wanted = asked.needed(missing, (now, self.rtt), self.loss);
        self.timers.set(&mut asked.timer, block, now.saturating_add(self.timeout));
        self.ask(block, wanted);
        Ok(())
    }

    /// Packets of a block are to leave again.
    fn ask(&mut self, number: u64, wanted: u64) {
        let Some(block) = self.ring.get_mut(number) else { return };
        debug_assert_eq!(wanted & (block.again | block.acked | !first(block.left)), 0);
        block.again |= wanted;
        block.lost &= !wanted;
        let places = (0..packets(block.shape)).filter(|&place| wanted & bit(place) != 0);
        self.again.extend(places.map(|place| (number, place)));
    }

    /// `count` blocks from `first` on are whole at the peer. Takes as long as there are such blocks, whatever the
    /// count.
    ///
    /// # Errors
    /// [`BlockError::Unsent`] if fewer packets of one of them left than it has data, and then nothing changes.
    pub fn on_whole(&mut self, first: u64, count: u64) -> Result<(), BlockError> {
        let Some(more) = count.checked_sub(1) else { return Ok(()) };
        let last = first.saturating_add(more);
        let sent = self.ring.next() - u64::from(self.open().is_some());
        if last >= sent {
            return Err(BlockError::Unsent { block: first.max(sent), sent });
        }
        let mut from = first;
        while let Some(number) = self.ring.first_from(from).filter(|&number| number <= last) {
            if let Some(block) = self.ring.get_mut(number) {
                self.delivered.extend(block.take_held());
            }
            self.end(number);
            from = number + 1;
        }
        Ok(())
    }

    /// No more of a block is sent; its contents that are not acknowledged come back as [`Resend::Plain`]. For packets
    /// that cannot be sent again as they were: a stream was reset, or its parity fits into no packet any more.
    pub fn give_up(&mut self, block: u64) {
        if let Some(given_up) = self.ring.get_mut(block) {
            self.notes.note(|| BlockEvent::GivenUp { block });
            self.plain.extend(given_up.take_held());
        }
        self.end(block);
    }

    /// Forgets a block whose contents were given back.
    fn end(&mut self, number: u64) {
        let Some(mut block) = self.ring.remove(number) else { return };
        debug_assert_eq!(block.held, 0);
        self.kept -= block.bytes;
        for packet in block.packets.drain(..).skip(block.shape.data.into()) {
            self.parity.free(packet.symbol as u32);
        }
        if self.spare.len() < MOST_SPARE {
            self.spare.push(block.packets);
        }
        self.tidy();
    }

    /// Drops what is first in line and leaves no more.
    fn tidy(&mut self) {
        while self.due.front().is_some_and(|&number| self.ring.get(number).is_none()) {
            self.due.pop_front();
        }
        while self.again.front().is_some_and(|&(number, place)| !self.is_asked(number, place)) {
            self.again.pop_front();
        }
    }

    fn is_asked(&self, number: u64, place: u8) -> bool {
        self.ring.get(number).is_some_and(|block| block.again & bit(place) != 0)
    }

    /// Whether something is to be sent again.
    pub fn has_resend(&self) -> bool {
        !self.plain.is_empty() || !self.again.is_empty()
    }

    /// What leaves again next, and does so now.
    pub fn next_resend(&mut self, now: Time) -> Option<Resend> {
        if let Some(content) = self.plain.pop_front() {
            return Some(Resend::Plain { content });
        }
        let (number, place) = self.again.pop_front()?;
        let block = self.ring.get_mut(number)?;
        block.again &= !bit(place);
        block.leaves(place, now);
        self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
        let tag = block.tag(number, place);
        let content = block.packets.get(usize::from(place))?.symbol;
        self.tidy();
        self.notes.note(|| BlockEvent::Repair(tag));
        Some(if tag.is_parity() { Resend::Parity { tag } } else { Resend::Source { tag, content } })
    }

    /// A content that the peer has, because its packet was acknowledged or its block is whole.
    pub fn next_delivered(&mut self) -> Option<u64> {
        self.delivered.pop_front()
    }

    /// When [`Coder::on_timer`] is to be called; [`Time::NEVER`] if it need not.
    pub fn next_timer(&mut self) -> Time {
        self.timers.first(&mut self.ring).map_or(Time::NEVER, |(due, _)| due)
    }

    /// Gives up blocks of which nothing was heard in time. A block with packets that wait to leave has another timeout.
    pub fn on_timer(&mut self, now: Time) {
        loop {
            let first = self.timers.first(&mut self.ring);
            let Some((_, number)) = first.filter(|&(due, _)| due <= now) else { return };
            let Some(block) = self.ring.get_mut(number) else { return };
            if block.is_complete() && (block.left < packets(block.shape) || block.again != 0) {
                self.timers.set(&mut block.timer, number, now.saturating_add(self.timeout));
            } else {
                self.give_up(number);
            }
        }
    }
}

impl Block {
    /// The contents that were not given back.
    fn take_held(&mut self) -> impl Iterator<Item = u64> {
        let held = core::mem::take(&mut self.held);
        let data = self.packets.iter().take(self.shape.data.into()).enumerate();
        data.filter(move |&(place, _)| held & bit(place as u8) != 0).map(|(_, packet)| packet.symbol)
    }
}

impl Timed for Ring<Block> {
    fn timer(&mut self, block: u64) -> Option<&mut Timer> {
        self.get_mut(block).map(|block| &mut block.timer)
    }
}

/// What the symbols of a block with parity of `len` bytes count in memory.
fn symbol_bytes(shape: Shape, len: usize) -> u64 {
    u64::from(shape.data) * SYMBOL_BYTES + u64::from(shape.parity) * (len as u64 + SYMBOL_BYTES)
}
