//! Block state of the sender of a coded flow: how many packets of each block are acknowledged and how many are declared
//! lost, which blocks are settled, and which wait for the receiver's request.
//!
//! A block is settled when enough of its packets are acknowledged to recover it, or the receiver reports it as
//! complete. It needs packets again only when more of them are missing than it has parity, and then only the excess:
//! packets that are not yet sent, in flight or acknowledged can still add up to `data` packets otherwise.

use alloc::collections::VecDeque;

use units::{Bytes, Time};

use super::config::SenderCoding;
use crate::blocks::Blocks;
use crate::sent_packets::State;

#[derive(Clone, Copy, Debug)]
struct Count {
    acked: u8,
    /// Packets declared lost and not to be sent again so far.
    missing: u8,
    settled: bool,
    /// The block is among those that wait.
    waits: bool,
    /// The receiver has requested the block: it no longer waits, regardless of further losses.
    requested: bool,
    /// Its data that is not delivered; at most 48 packets of 64 KiB.
    undelivered_bytes: u32,
}

/// The blocks of one flow as its sender knows them.
#[derive(Debug)]
pub(super) struct SenderBlocks {
    blocks: Blocks,
    eager: bool,
    /// First block of `counts`: all packets of earlier blocks are settled.
    first: u32,
    counts: VecDeque<Count>,
    /// First block that the receiver has not reported as complete.
    first_unreported: u32,
    delivered: Bytes,
    /// Blocks that miss too many packets, with the time since when, in order of time; some entries are outdated.
    waiting: VecDeque<(u32, Time)>,
}

impl SenderBlocks {
    pub(super) fn new(blocks: Blocks, coding: SenderCoding) -> Self {
        let (counts, waiting) = (VecDeque::new(), VecDeque::new());
        Self { blocks, eager: coding.eager, first: 0, counts, first_unreported: 0, delivered: Bytes::ZERO, waiting }
    }

    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Returns the data acknowledged, or recovered by its block.
    pub(super) fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Forgets blocks with all packets below `seq`.
    pub(super) fn forget_below(&mut self, seq: u32) {
        while !self.counts.is_empty() && self.blocks.packets(self.first).end <= seq {
            self.counts.pop_front();
            self.first += 1;
        }
        if self.counts.is_empty() {
            self.first = self.first.max(self.blocks.block_of(seq).unwrap_or(0));
        }
        debug_assert!(self.counts.is_empty() || self.blocks.packets(self.first).end > seq, "a settled block is kept");
    }

    /// Returns the next block that ends at `seq` or below and was not returned before.
    pub(super) fn next_complete(&mut self, seq: u32) -> Option<u32> {
        self.first_unreported = self.first_unreported.max(self.first);
        (self.first_unreported < self.blocks.count() && self.blocks.packets(self.first_unreported).end <= seq).then(
            || {
                self.first_unreported += 1;
                self.first_unreported - 1
            },
        )
    }

    fn count(&mut self, block: u32) -> Option<&mut Count> {
        let index = block.checked_sub(self.first)? as usize;
        while self.counts.len() <= index {
            let undelivered_bytes = self.blocks.payload(self.first + self.counts.len() as u32);
            self.counts.push_back(Count {
                acked: 0,
                missing: 0,
                settled: false,
                waits: false,
                requested: false,
                undelivered_bytes,
            });
        }
        self.counts.get_mut(index)
    }

    /// Records the acknowledgement of a packet of `bytes` that was in state `was`. Returns its block if that completes
    /// it.
    pub(super) fn on_acked(&mut self, seq: u32, bytes: u32, was: State) -> Option<u32> {
        let Some(block) = self.blocks.block_of(seq) else {
            self.delivered += Bytes::new(bytes.into());
            return None;
        };
        let (needed, is_parity) = (self.blocks.data(block), self.blocks.is_parity(seq));
        let count = self.count(block)?;
        debug_assert!(was != State::Missing || count.missing > 0 || count.settled, "block {block} misses no packet");
        count.missing -= u8::from(was == State::Missing);
        count.acked += 1;
        if count.settled {
            return None;
        }
        let is_complete = count.acked == needed;
        if !is_parity {
            count.undelivered_bytes -= bytes;
            self.delivered += Bytes::new(bytes.into());
        }
        is_complete.then_some(block)
    }

    /// Settles a block. Returns whether some of its data was missing; none if it was settled before.
    pub(super) fn settle(&mut self, block: u32) -> Option<bool> {
        let count = self.count(block).filter(|it| !it.settled)?;
        let undelivered_bytes = core::mem::take(&mut count.undelivered_bytes);
        (count.settled, count.missing, count.waits) = (true, 0, false);
        self.delivered += Bytes::new(undelivered_bytes.into());
        Some(undelivered_bytes > 0)
    }

    /// Records that a packet in flight is declared lost. Returns whether its block may need it.
    pub(super) fn on_missing(&mut self, now: Time, block: u32) -> bool {
        let (parity, eager) = (self.blocks.parity(), self.eager);
        let Some(count) = self.count(block).filter(|it| !it.settled) else { return false };
        count.missing += 1;
        debug_assert!(count.acked < u8::MAX - count.missing, "block {block} has more packets than any block");
        if count.missing > parity && !eager && !count.requested && !count.waits {
            count.waits = true;
            self.waiting.push_back((block, now));
        }
        true
    }

    /// Records the receiver's request for a block.
    pub(super) fn on_nack(&mut self, block: u32) {
        if let Some(count) = self.count(block) {
            count.requested = true;
        }
    }

    /// Returns whether packets of a block are sent again as soon as it needs them.
    pub(super) fn is_eager(&mut self, block: u32) -> bool {
        self.eager || self.count(block).is_some_and(|it| it.requested)
    }

    /// Returns the number of packets of a block that must be sent again. They no longer count as missing, and the block
    /// no longer waits.
    pub(super) fn take_excess(&mut self, block: u32) -> u8 {
        let parity = self.blocks.parity();
        let Some(count) = self.count(block) else { return 0 };
        let excess = count.missing.saturating_sub(parity);
        count.missing -= excess;
        count.waits = false;
        excess
    }

    /// Returns the time since which the first block waits for the receiver's request; [`Time::NEVER`] if none does.
    pub(super) fn waits_since(&mut self) -> Time {
        while let Some(&(block, since)) = self.waiting.front() {
            let first = self.first;
            if block >= first && self.count(block).is_some_and(|it| it.waits) {
                return since;
            }
            self.waiting.pop_front();
        }
        Time::NEVER
    }

    /// Returns the next block that has waited since `time` or longer, to be sent again.
    pub(super) fn next_waiting(&mut self, time: Time) -> Option<u32> {
        (self.waits_since() <= time && !self.waiting.is_empty()).then(|| self.waiting[0].0)
    }
}
