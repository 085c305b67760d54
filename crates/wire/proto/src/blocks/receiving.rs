//! The receiver's blocks: storage, rebuilding and requests. `docs/src/transport-data.md`, "Blocks".

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use flow::{MAX_PACKETS, Range};
use units::{Span, Time};

use super::error::BlockError;
use super::policy::is_possible;
use super::pool::SymbolPool;
use super::repair::Repairs;
use super::spans::{FinishedBlocks, Spans};
use super::timers::{Timed, Timer, Timers};
use super::{BLOCK_BYTES, BlockEvent, LENGTH_BYTES, SYMBOL_BYTES, Tag, bit, first, packets};
use crate::event_buffer::EventBuffer;
use crate::frame::{MAX_PARITY, Shape};
use crate::narrow::{to_u8, to_u16};

/// Maximum number of requests without an answer. Then a block is forgotten: the sender has given it up.
const MAX_REQUESTS: u8 = 8;

/// Maximum length of parity, in bytes: that of a symbol with the highest length that 2 bytes can state.
const MAX_PARITY_LEN: usize = u16::MAX as usize + LENGTH_BYTES;

/// The blocks that one end of a connection receives.
///
/// It copies the symbols of incomplete blocks. Its accounted memory is at most `window` bytes, for any packets: a block
/// counts [`BLOCK_BYTES`], a symbol its length and [`SYMBOL_BYTES`], including rebuilt symbols until they are taken. If that
/// is not enough, the oldest block is forgotten, and so are all earlier blocks that have not begun.
///
/// Packets of blocks that are over, complete or forgotten, change nothing. In addition to the symbols there are the
/// plans of the last 16 repairs, of up to 25 KB each, and buffers for the next symbols, up to 512 KiB.
#[derive(Debug)]
pub struct BlockReceiver {
    window: u64,
    /// Time from a block's newest symbol to its first request.
    request_delay: Span,
    rtt: Span,
    /// A map, not a ring: the peer chooses the numbers, and the gap between two distant ones must cost nothing.
    open: BTreeMap<u64, ReceivingBlock>,
    finished: FinishedBlocks,
    /// Accounted memory, in bytes.
    accounted_bytes: u64,
    pool: SymbolPool,
    repairs: Repairs,
    /// Rebuilt symbols after their lengths, padded with zeros.
    rebuilt: VecDeque<Vec<u8>>,
    /// The rebuilt symbol that was taken last.
    taken: Vec<u8>,
    /// Complete blocks to report to the sender.
    complete: Spans,
    /// Blocks to request, if a request is still due.
    requests: VecDeque<u64>,
    timers: Timers,
    /// Blocks that parity completed.
    recovered: u64,
    /// Events for observers.
    pub(crate) events: EventBuffer<BlockEvent>,
}

#[derive(Debug)]
struct ReceivingBlock {
    shape: Shape,
    /// Bits of the received packets.
    present: u64,
    /// Length of its longest data symbol, in bytes.
    longest: usize,
    /// Length of its parity in bytes, once some arrived.
    parity: Option<usize>,
    /// Numbers of the received symbols: data after its length, and parity.
    symbols: [u32; MAX_PACKETS as usize],
    /// Accounted memory, in bytes.
    bytes: u64,
    /// Requests since the newest symbol.
    requests: u8,
    /// Set while a request is due.
    is_request_due: bool,
    /// Set if a request was sent.
    was_requested: bool,
    timer: Timer,
}

impl ReceivingBlock {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            present: 0,
            longest: 0,
            parity: None,
            symbols: [0; MAX_PACKETS as usize],
            bytes: BLOCK_BYTES,
            requests: 0,
            is_request_due: false,
            was_requested: false,
            timer: Timer::UNSET,
        }
    }

    /// Checks a further symbol against the block. Returns whether it is new.
    fn is_new(&self, tag: Tag, symbol: &[u8], pool: &SymbolPool) -> Result<bool, BlockError> {
        let (block, len) = (tag.block, symbol.len());
        if self.shape != tag.shape {
            return Err(BlockError::Shape { block, before: self.shape, now: tag.shape });
        }
        if self.present & bit(tag.place) != 0 {
            let stored = pool.get(self.symbols[usize::from(tag.place)]);
            let stored = if tag.is_parity() { stored } else { stored.get(LENGTH_BYTES..).unwrap_or_default() };
            return if stored == symbol { Ok(false) } else { Err(BlockError::Twice { block, place: tag.place }) };
        }
        match self.parity {
            Some(before) if tag.is_parity() && len != before => Err(BlockError::Parity { block, before, now: len }),
            Some(parity) if !tag.is_parity() && len + LENGTH_BYTES > parity => {
                Err(BlockError::Long { block, len, parity })
            }
            None if tag.is_parity() && self.longest + LENGTH_BYTES > len => {
                Err(BlockError::Long { block, len: self.longest, parity: len })
            }
            _ => Ok(true),
        }
    }
}

impl BlockReceiver {
    /// Creates a receiver without blocks. `window` is in bytes: the `coding_window` of this end's transport parameters.
    /// The first RTT is 333 ms (RFC 9002 §6.2.2), and `ack_delay` 1 ms.
    pub fn new(window: u64) -> Self {
        let mut new = Self {
            window,
            request_delay: Span::ZERO,
            rtt: Span::ZERO,
            open: BTreeMap::new(),
            finished: FinishedBlocks::default(),
            accounted_bytes: 0,
            pool: SymbolPool::default(),
            repairs: Repairs::default(),
            rebuilt: VecDeque::new(),
            taken: Vec::new(),
            complete: Spans::default(),
            requests: VecDeque::new(),
            timers: Timers::default(),
            recovered: 0,
            events: EventBuffer::default(),
        };
        new.set_timing(Span::from_ms(1), Span::from_ms(333));
        new
    }

    /// Sets the request times, for timers set from now on. An incomplete block is requested one `ack_delay` and a
    /// quarter of `rtt` after its newest symbol, and again after each further `rtt`. An `rtt` counts as at least 1 us.
    pub fn set_timing(&mut self, ack_delay: Span, rtt: Span) {
        self.rtt = Span::from_unsigned_ps(rtt.unsigned_ps()).max(Span::from_us(1));
        self.request_delay =
            Span::from_unsigned_ps(ack_delay.unsigned_ps().saturating_add(self.rtt.over(4).unsigned_ps()));
    }

    /// Returns the accounted memory, in bytes.
    pub fn accounted_bytes(&self) -> u64 {
        self.accounted_bytes
    }

    /// Returns the capacity of the symbol buffers, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.pool.bytes() + self.rebuilt.iter().map(Vec::capacity).sum::<usize>() + self.taken.capacity()
    }

    /// Handles an opened data packet; its frames are read separately. `symbol` is the rest of the packet after its SOURCE
    /// frame.
    ///
    /// # Errors
    /// If it contradicts other packets of its block, or no block has such a packet; and if a rebuilt symbol has an
    /// impossible length or does not end in zeros.
    pub fn on_source(
        &mut self,
        now: Time,
        block: u64,
        shape: Shape,
        place: u8,
        symbol: &[u8],
    ) -> Result<(), BlockError> {
        if !is_possible(shape) || place >= shape.data {
            return Err(BlockError::Place { shape, place });
        }
        let len = symbol.len();
        if len + LENGTH_BYTES > MAX_PARITY_LEN {
            return Err(BlockError::Long { block, len, parity: MAX_PARITY_LEN });
        }
        self.on_symbol(now, Tag { block, shape, place }, symbol)
    }

    /// Handles a parity packet.
    ///
    /// # Errors
    /// As [`BlockReceiver::on_source`].
    pub fn on_parity(
        &mut self,
        now: Time,
        block: u64,
        shape: Shape,
        place: u8,
        symbol: &[u8],
    ) -> Result<(), BlockError> {
        if !is_possible(shape) || place < shape.data || place >= packets(shape) {
            return Err(BlockError::Place { shape, place });
        }
        if !(LENGTH_BYTES..=MAX_PARITY_LEN).contains(&symbol.len()) {
            return Err(BlockError::Long { block, len: 0, parity: symbol.len() });
        }
        self.on_symbol(now, Tag { block, shape, place }, symbol)
    }

    fn on_symbol(&mut self, now: Time, tag: Tag, symbol: &[u8]) -> Result<(), BlockError> {
        let Tag { block: number, shape, place } = tag;
        let known = self.open.get(&number);
        let is_new = match known {
            Some(block) => block.is_new(tag, symbol, &self.pool)?,
            None => !self.finished.contains(number),
        };
        if !is_new {
            return Ok(());
        }
        let present = known.map_or(0, |block| block.present) | bit(place);
        let data = first(shape.data);
        if present & data == data {
            // All data arrived in packets, which are acknowledged. Only a sender that received a request needs a
            // further report.
            if known.is_some_and(|block| block.was_requested) {
                self.complete.insert(Range::of(number));
            }
            self.close(number);
            self.finished.insert(number);
            return Ok(());
        }
        let is_first = known.is_none();
        let cost = symbol.len() as u64 + SYMBOL_BYTES + if is_first { BLOCK_BYTES } else { 0 };
        if !self.make_room(number, cost) {
            return Ok(());
        }
        if is_first {
            let open = &self.open;
            self.timers.prune(open.len(), |number| open.contains_key(&number));
            self.events.record(|| BlockEvent::Opened { block: number, shape });
        }
        let block = self.open.entry(number).or_insert_with(|| ReceivingBlock::new(shape));
        block.bytes += cost - if is_first { BLOCK_BYTES } else { 0 };
        self.accounted_bytes += cost;
        let buffer = if tag.is_parity() {
            block.parity = Some(symbol.len());
            let mut buffer = self.pool.take(symbol.len());
            buffer.copy_from_slice(symbol);
            buffer
        } else {
            block.longest = block.longest.max(symbol.len());
            let mut buffer = self.pool.take(symbol.len() + LENGTH_BYTES);
            let (head, body) = buffer.split_at_mut(LENGTH_BYTES);
            head.copy_from_slice(&to_u16(symbol.len() as u64).to_be_bytes());
            body.copy_from_slice(symbol);
            buffer
        };
        block.symbols[usize::from(place)] = self.pool.store(buffer);
        block.present = present;
        if present.count_ones() >= shape.data.into() {
            return self.rebuild(number);
        }
        block.requests = 0;
        block.is_request_due = false;
        self.timers.set(&mut block.timer, number, now.saturating_add(self.request_delay));
        Ok(())
    }

    /// Forgets the oldest blocks until `bytes` more fit. Returns false if block `number` is forgotten.
    fn make_room(&mut self, number: u64, bytes: u64) -> bool {
        while self.accounted_bytes + bytes > self.window {
            match self.open.first_key_value() {
                Some((&oldest, _)) if oldest <= number => {
                    self.events.record(|| BlockEvent::Forgotten { block: oldest });
                    self.close(oldest);
                    self.finished.raise(oldest.saturating_add(1));
                    if oldest == number {
                        return false;
                    }
                }
                // The new block would be the oldest itself.
                _ => {
                    self.finished.insert(number);
                    return false;
                }
            }
        }
        true
    }

    /// Removes an open block and frees its symbols.
    fn close(&mut self, number: u64) {
        let Some(block) = self.open.remove(&number) else { return };
        self.accounted_bytes -= block.bytes;
        for (place, &symbol) in block.symbols.iter().enumerate() {
            if block.present & bit(to_u8(place as u64)) != 0 {
                self.pool.free(symbol);
            }
        }
    }

    /// Rebuilds a block that has enough packets, but not all of its data.
    fn rebuild(&mut self, number: u64) -> Result<(), BlockError> {
        let Some(block) = self.open.get(&number) else { return Ok(()) };
        let (shape, present) = (block.shape, block.present);
        // With k packets that do not include all data, there is parity.
        let Some(len) = block.parity else { return Ok(()) };
        let places = |bits: u64| (0..packets(shape)).filter(move |&place| bits & bit(place) != 0).map(usize::from);
        let arrived = present & first(shape.data);
        let lost = usize::from(shape.data) - arrived.count_ones() as usize;
        let padding: usize =
            places(arrived).map(|place| len - self.pool.get(block.symbols[place]).len().min(len)).sum();
        let bytes = (padding + lost * len) as u64 + lost as u64 * SYMBOL_BYTES;
        if !self.make_room(number, bytes) {
            return Ok(());
        }
        let mut rebuilt = [const { Vec::new() }; MAX_PARITY as usize];
        rebuilt.iter_mut().take(lost).for_each(|buffer| *buffer = self.pool.take(len));
        let (Some(block), Some(plan)) = (self.open.get_mut(&number), self.repairs.plan(shape, present)) else {
            debug_assert!(false, "k packets of an open block are enough");
            return Ok(());
        };
        places(arrived).for_each(|place| self.pool.pad(block.symbols[place], len));
        block.bytes += padding as u64;
        self.accounted_bytes += bytes;

        let mut symbols = [None; MAX_PACKETS as usize];
        places(present).for_each(|place| symbols[place] = Some(self.pool.get(block.symbols[place])));
        let mut outputs = rebuilt.each_mut().map(Vec::as_mut_slice);
        let repaired = plan.repair(&symbols[..packets(shape).into()], &mut outputs[..lost]);
        debug_assert_eq!(repaired, Ok(()));

        let missing = places(first(shape.data) & !arrived);
        let error = missing.zip(&rebuilt).find_map(|(place, symbol)| check(number, to_u8(place as u64), symbol).err());
        self.close(number);
        self.finished.insert(number);
        let rebuilt = rebuilt.into_iter().take(lost);
        if let Some(error) = error {
            self.accounted_bytes -= lost as u64 * (len as u64 + SYMBOL_BYTES);
            rebuilt.for_each(|buffer| self.pool.recycle(buffer));
            return Err(error);
        }
        self.recovered += 1;
        self.events.record(|| BlockEvent::Recovered { block: number, packets: to_u8(lost as u64) });
        self.rebuilt.extend(rebuilt);
        // If there are more ranges than are kept, the oldest is not reported. The sender's timeout covers such blocks,
        // too.
        self.complete.insert(Range::of(number));
        Ok(())
    }

    /// Returns the number of blocks that parity completed: with enough packets, including parity.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Returns a rebuilt symbol, each once: frames, to be read as if their packet had arrived.
    pub fn next_rebuilt(&mut self) -> Option<&[u8]> {
        let before = mem::take(&mut self.taken);
        if !before.is_empty() {
            self.accounted_bytes -= before.len() as u64 + SYMBOL_BYTES;
            self.pool.recycle(before);
        }
        self.taken = self.rebuilt.pop_front()?;
        let (head, rest) = self.taken.split_first_chunk()?;
        rest.get(..u16::from_be_bytes(*head).into())
    }

    /// Withholds the report that a block is complete, because a rebuilt symbol could not be read for lack of space. The
    /// sender retransmits unacknowledged packets.
    pub fn withhold_complete(&mut self, block: u64) {
        self.complete.remove(block);
    }

    /// Returns the next `BLOCK_WHOLE`: its first block and the number of blocks. It reports blocks that ACKs alone may
    /// not show as complete: those with rebuilt symbols, and those that were requested.
    pub fn next_block_whole(&mut self) -> Option<(u64, u64)> {
        self.complete.take_lowest().map(|range| (range.first, range.last - range.first + 1))
    }

    /// Returns whether a `BLOCK_WHOLE` is due.
    pub fn has_block_whole(&self) -> bool {
        !self.complete.is_empty()
    }

    /// Handles the loss of a packet with a `BLOCK_WHOLE`: [`BlockReceiver::next_block_whole`] returns its blocks again.
    pub fn on_block_whole_lost(&mut self, first: u64, count: u64) {
        if let Some(more) = count.checked_sub(1) {
            self.complete.insert(Range { first, last: first.saturating_add(more) });
        }
    }

    /// Returns the next `BLOCK_NACK`: its block and one bit per missing packet. A lost one is not retransmitted as
    /// such; another follows a round trip later.
    pub fn next_nack(&mut self) -> Option<(u64, u64)> {
        while let Some(number) = self.requests.pop_front() {
            if let Some(block) = self.open.get_mut(&number).filter(|block| block.is_request_due) {
                block.is_request_due = false;
                block.was_requested = true;
                let missing = first(packets(block.shape)) & !block.present;
                self.events.record(|| BlockEvent::Missing { block: number, missing });
                return Some((number, missing));
            }
        }
        None
    }

    /// Returns the time of the next [`BlockReceiver::on_timer`] call; [`Time::NEVER`] if none is needed.
    pub fn next_timer(&mut self) -> Time {
        self.timers.first(&mut self.open).map_or(Time::NEVER, |(due, _)| due)
    }

    /// Queues requests for blocks with expired timers; [`BlockReceiver::next_nack`] returns them. A block that was requested
    /// eight times without an answer is forgotten.
    pub fn on_timer(&mut self, now: Time) {
        loop {
            let first = self.timers.first(&mut self.open);
            let Some((_, number)) = first.filter(|&(due, _)| due <= now) else { return };
            let Some(block) = self.open.get_mut(&number) else { return };
            if block.requests == MAX_REQUESTS {
                self.events.record(|| BlockEvent::Forgotten { block: number });
                self.close(number);
                self.finished.insert(number);
                continue;
            }
            block.requests += 1;
            self.timers.set(&mut block.timer, number, now.saturating_add(self.rtt));
            if !mem::replace(&mut block.is_request_due, true) {
                self.requests.push_back(number);
            }
        }
    }
}

impl Timed for BTreeMap<u64, ReceivingBlock> {
    fn timer(&mut self, block: u64) -> Option<&mut Timer> {
        self.get_mut(&block).map(|block| &mut block.timer)
    }
}

/// Checks the layout of a rebuilt symbol: its length, its bytes, and zeros.
fn check(block: u64, place: u8, symbol: &[u8]) -> Result<(), BlockError> {
    let Some((head, rest)) = symbol.split_first_chunk() else { return Ok(()) };
    let (len, max_len) = (usize::from(u16::from_be_bytes(*head)), rest.len());
    match rest.get(len..) {
        None => Err(BlockError::RebuiltLength { block, place, len, max_len }),
        Some(zeros) if zeros.iter().any(|&byte| byte != 0) => Err(BlockError::RebuiltEnd { block, place }),
        Some(_) => Ok(()),
    }
}
