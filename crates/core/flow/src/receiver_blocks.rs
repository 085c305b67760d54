//! Block state of the receiver of a coded flow: the packets received of each block, complete blocks, and requests.
//! Bonato et al., "Uno" (SC 2025), §4.2.
//!
//! A block's timer runs from its first packet. If it expires before enough packets have arrived, the block is requested, with
//! the packets that are missing; the next packet of it that arrives sets the timer again (the paper does not specify the time
//! after a request; its published simulator does this).
//!
//! In addition to timers, gaps can trigger requests (a feature of this project): each subflow keeps its order, so a packet is
//! missing once a later one has arrived on the same subflow, and a block that misses more packets than it has parity is
//! requested at once. A packet's subflow is `seq` modulo their number ([`crate::paths`]). One that was sent again may arrive
//! on another, which is still correct: all packets before it were sent long ago.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use units::{Span, Time};

use crate::Blocks;

/// A receiver's request for packets of a block that it cannot recover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockNack {
    /// The block's number.
    pub block: u32,
    /// The packets that are missing, one bit each from the block's first on.
    pub missing: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct OpenBlock {
    /// One bit a packet.
    received: u64,
    /// Packets that gaps show as missing.
    missing_by_gap: u64,
    /// Those of `missing_by_gap` that were requested.
    requested: u64,
    has_timer: bool,
    is_complete: bool,
}

/// The blocks of one flow as its receiver knows them.
#[derive(Debug)]
pub(crate) struct ReceiverBlocks {
    blocks: Blocks,
    timer: Span,
    /// The first block of `open`: all before it are complete.
    first: u32,
    open: VecDeque<OpenBlock>,
    /// Timers in order of expiry: all have the same duration.
    timers: VecDeque<(Time, u32)>,
    /// By subflow: the packet after the last one that arrived. Empty if gaps trigger no requests.
    after_last: Vec<u32>,
    /// Requests triggered by gaps.
    requests: VecDeque<BlockNack>,
}

impl ReceiverBlocks {
    /// Creates the state of blocks before any packet arrives; `subflows` is the number of subflows with gap detection, or 0.
    pub(crate) fn new(blocks: Blocks, timer: Span, subflows: u8) -> Self {
        let after_last = (0..u32::from(subflows)).collect();
        Self {
            blocks,
            timer,
            first: 0,
            open: VecDeque::new(),
            timers: VecDeque::new(),
            after_last,
            requests: VecDeque::new(),
        }
    }

    fn open(&mut self, block: u32) -> Option<&mut OpenBlock> {
        let index = block.checked_sub(self.first)? as usize;
        if index >= self.open.len() {
            self.open.resize(index + 1, OpenBlock::default());
        }
        self.open.get_mut(index)
    }

    /// Records the first arrival of a packet. Returns the packets that its block no longer needs, one bit each from the
    /// block's first on, if this one completes it.
    pub(crate) fn on_new(&mut self, now: Time, seq: u32) -> Option<(u32, u64)> {
        let block = self.blocks.block_of(seq)?;
        let needed = u32::from(self.blocks.data(block));
        let packets = self.blocks.packets(block);
        let end = now.saturating_add(self.timer);
        let open = self.open(block)?;
        open.received |= 1 << (seq - packets.start);
        if open.received.count_ones() == needed {
            open.is_complete = true;
            let unneeded = !open.received & mask(packets.len());
            while self.open.front().is_some_and(|it| it.is_complete) {
                self.open.pop_front();
                self.first += 1;
            }
            return Some((packets.start, unneeded));
        }
        if !open.has_timer {
            open.has_timer = true;
            self.timers.push_back((end, block));
        }
        None
    }

    /// Records gaps: a packet, new or not, shows which ones before it on its subflow are missing.
    pub(crate) fn find_gaps(&mut self, seq: u32) {
        let Some(subflows) = u32::try_from(self.after_last.len()).ok().filter(|&subflows| subflows > 0) else { return };
        let index = (seq % subflows) as usize;
        let mut gap = self.after_last[index];
        while gap < seq {
            self.miss(gap);
            gap += subflows;
        }
        self.after_last[index] = self.after_last[index].max(seq + subflows);
    }

    /// Records a gap at packet `seq`: a later packet of its subflow arrived, which was not known before.
    fn miss(&mut self, seq: u32) {
        let Some(block) = self.blocks.block_of(seq) else { return };
        let (first, parity) = (self.blocks.packets(block).start, u32::from(self.blocks.parity()));
        let Some(open) = self.open(block).filter(|it| !it.is_complete) else { return };
        open.missing_by_gap |= 1 << (seq - first);
        let missing = open.missing_by_gap & !open.received;
        if missing.count_ones() > parity && missing & !open.requested != 0 {
            open.requested |= missing;
            self.requests.push_back(BlockNack { block, missing });
        }
    }

    /// Returns the next request that is due at `now`.
    pub(crate) fn next_nack(&mut self, now: Time) -> Option<BlockNack> {
        while let Some(request) = self.requests.pop_front() {
            let missing =
                self.open(request.block).filter(|it| !it.is_complete).map(|it| request.missing & !it.received);
            if let Some(missing) = missing {
                return Some(BlockNack { missing, ..request });
            }
        }
        if self.next_timer() > now {
            return None;
        }
        let (_, block) = self.timers.pop_front()?;
        let all = mask(self.blocks.packets(block).len());
        let open = self.open(block)?;
        open.has_timer = false;
        Some(BlockNack { block, missing: !open.received & all })
    }

    /// Returns the expiry of the first timer.
    pub(crate) fn next_timer(&mut self) -> Time {
        while let Some(&(end, block)) = self.timers.front() {
            if self.open(block).is_some_and(|it| !it.is_complete) {
                return end;
            }
            self.timers.pop_front();
        }
        Time::NEVER
    }
}

fn mask(packets: usize) -> u64 {
    (1 << packets) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowCoding;
    use units::Bytes;

    fn receiver_blocks(subflows: u8) -> ReceiverBlocks {
        let code = FlowCoding { data: 4, parity: 2, tail: None };
        ReceiverBlocks::new(Blocks::new(Bytes::new(12), 1, &code), Span::from_us(10), subflows)
    }

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    #[test]
    fn a_block_is_requested_at_each_timer_expiry() {
        let mut receiver_blocks = receiver_blocks(0);
        assert_eq!(
            (receiver_blocks.on_new(us(1), 1), receiver_blocks.on_new(us(4), 7), receiver_blocks.next_timer()),
            (None, None, us(11))
        );
        assert_eq!(receiver_blocks.next_nack(us(10)), None);
        assert_eq!(receiver_blocks.next_nack(us(11)), Some(BlockNack { block: 0, missing: 0b11_1101 }));
        assert_eq!((receiver_blocks.next_nack(us(11)), receiver_blocks.next_timer()), (None, us(14)));
        assert_eq!(receiver_blocks.on_new(us(12), 0), None);
        assert_eq!(receiver_blocks.next_nack(us(14)), Some(BlockNack { block: 1, missing: 0b11_1101 }));
        assert_eq!(receiver_blocks.next_timer(), us(22));
        // Complete before its timer expires: 2 and 5 are not needed.
        assert_eq!(receiver_blocks.on_new(us(13), 3), None);
        assert_eq!(receiver_blocks.on_new(us(13), 4), Some((0, 0b10_0100)));
        assert_eq!((receiver_blocks.next_timer(), receiver_blocks.next_nack(us(90))), (Time::NEVER, None));
    }

    #[test]
    fn gaps_request_an_unrecoverable_block_at_once() {
        let mut receiver_blocks = receiver_blocks(3);
        for seq in [0, 1, 7] {
            receiver_blocks.on_new(us(0), seq);
            receiver_blocks.find_gaps(seq);
        }
        // 4 is missing: 7 has arrived on its subflow.
        assert_eq!(receiver_blocks.next_nack(us(0)), None);
        for seq in [8, 9] {
            receiver_blocks.on_new(us(0), seq);
            receiver_blocks.find_gaps(seq);
        }
        // So are 2 and 5, and 3 and 6 of the next block.
        assert_eq!(receiver_blocks.next_nack(us(0)), Some(BlockNack { block: 0, missing: 0b11_0100 }));
        // 3 was found after that, and has not been requested.
        assert_eq!(receiver_blocks.next_nack(us(0)), Some(BlockNack { block: 0, missing: 0b11_1100 }));
        assert_eq!(receiver_blocks.next_nack(us(0)), None);
        // A duplicate arrives, which shows nothing new; then the block is complete.
        receiver_blocks.on_new(us(1), 2);
        receiver_blocks.find_gaps(2);
        assert_eq!(receiver_blocks.next_nack(us(1)), None);
        assert_eq!(receiver_blocks.on_new(us(1), 4), Some((0, 0b10_1000)));
    }
}
