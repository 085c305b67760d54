//! Block layout of an erasure-coded flow: pure arithmetic. Bonato et al., "Uno" (SC 2025), §4.2, "Erasure Coding".
//!
//! Data and parity share one sequence space. A flow may begin with packets that are in no block (`head`); then block
//! `b` is the `data + parity` packets from `head + b * (data + parity)` on, its data first. Any `data` of them recover
//! it.
//!
//! The last block is short: it has the remaining data, and as many parity packets as the others. A loss in it is the
//! costliest of a flow, because no later packet could reveal it, so its protection is not reduced.
//!
//! A parity packet is as long as the longest data packet of its block: a full one, unless the block has only the flow's
//! last packet.

use core::ops::Range;

use units::Bytes;

/// Maximum number of packets of a block: a request for its packets has this many bits.
pub const MAX_PACKETS: u8 = 48;

/// Code parameters, and the coded part of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowCoding {
    /// Data packets of a full block (k), at least 1.
    pub data: u8,
    /// Parity packets of a block (m), at least 1; with `data` at most [`MAX_PACKETS`].
    pub parity: u8,
    /// Payload at the flow's end that is coded, at least 1 byte, in whole packets; none: all of it.
    pub tail: Option<Bytes>,
}

/// The blocks of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blocks {
    data: u8,
    parity: u8,
    /// Packets before the first block.
    head: u32,
    /// Data packets in blocks, at least 1.
    coded: u32,
    mss: u32,
    /// Payload of the flow's last data packet.
    last: u32,
    /// Packets of the flow.
    total: u32,
}

impl Blocks {
    /// The blocks of a flow of `size`, at least 1 byte, in packets of `mss` bytes.
    ///
    /// # Panics
    /// If the flow has more than 2^32 - 1 packets.
    pub fn new(size: Bytes, mss: u32, code: &FlowCoding) -> Self {
        Self::checked(size, mss, code).expect("a flow has under 2^32 packets")
    }

    /// The same; none if the flow has more than 2^32 - 1 packets.
    pub fn checked(size: Bytes, mss: u32, code: &FlowCoding) -> Option<Self> {
        debug_assert!(code.data > 0 && code.parity > 0 && code.data + code.parity <= MAX_PACKETS, "{code:?}");
        let packets = size.get().div_ceil(mss.into());
        let coded = code.tail.map_or(packets, |tail| tail.get().div_ceil(mss.into()).clamp(1, packets));
        let parity = coded.div_ceil(code.data.into()).checked_mul(code.parity.into())?;
        let total = u32::try_from(packets.checked_add(parity)?).ok()?;
        Some(Self {
            data: code.data,
            parity: code.parity,
            head: (packets - coded) as u32,
            coded: coded as u32,
            mss,
            last: (size.get() - (packets - 1) * u64::from(mss)) as u32,
            total,
        })
    }

    /// Packets of the flow, data and parity.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Packets before the first block.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> u32 {
        self.coded.div_ceil(self.data.into())
    }

    /// Parity packets of a block (m).
    pub fn parity(&self) -> u8 {
        self.parity
    }

    /// The block that a packet is in, if it is in one.
    pub fn block_of(&self, seq: u32) -> Option<u32> {
        seq.checked_sub(self.head).map(|place| place / self.full())
    }

    /// Packets of a full block.
    fn full(&self) -> u32 {
        u32::from(self.data) + u32::from(self.parity)
    }

    /// The packets of a block.
    pub fn packets(&self, block: u32) -> Range<u32> {
        let first = self.head + block * self.full();
        first..(first + self.full()).min(self.total)
    }

    /// Returns the number of data packets of a block: any set of this size recovers it.
    pub fn data(&self, block: u32) -> u8 {
        u32::from(self.data).min(self.coded - block * u32::from(self.data)) as u8
    }

    /// Returns whether a packet is parity.
    pub fn is_parity(&self, seq: u32) -> bool {
        self.block_of(seq).is_some_and(|block| seq - self.packets(block).start >= self.data(block).into())
    }

    /// The data of a block.
    pub fn payload(&self, block: u32) -> u32 {
        let full = u32::from(self.data(block)) * self.mss;
        if block + 1 == self.count() { full - self.mss + self.last } else { full }
    }

    /// Packets that are shorter than a full one, or as long as the flow's last data packet: that packet, and the parity of a
    /// block without other data.
    pub fn short(&self) -> Range<u32> {
        let last_data = self.total - u32::from(self.parity) - 1;
        if self.data(self.count() - 1) == 1 { last_data..self.total } else { last_data..last_data + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_block_is_short_and_has_all_its_parity() {
        let code = FlowCoding { data: 8, parity: 2, tail: None };
        // 17 packets: 8 + 2, 8 + 2, 1 + 2.
        let blocks = Blocks::new(Bytes::new(16_100), 1_000, &code);
        assert_eq!((blocks.count(), blocks.total(), blocks.head()), (3, 23, 0));
        assert_eq!((blocks.packets(1), blocks.packets(2)), (10..20, 20..23));
        assert_eq!((blocks.data(1), blocks.data(2)), (8, 1));
        assert_eq!((blocks.payload(1), blocks.payload(2)), (8_000, 100));
        assert_eq!(blocks.short(), 20..23);
        let parity: Vec<u32> = (0..23).filter(|&seq| blocks.is_parity(seq)).collect();
        assert_eq!(parity, [8, 9, 18, 19, 21, 22]);
        // One packet more, and the last block's parity is full.
        assert_eq!(Blocks::new(Bytes::new(17_100), 1_000, &code).short(), 21..22);
    }

    #[test]
    fn coding_can_begin_late() {
        let code = FlowCoding { data: 8, parity: 2, tail: Some(Bytes::new(8_500)) };
        let blocks = Blocks::new(Bytes::new(100_000), 1_000, &code);
        assert_eq!((blocks.head(), blocks.count(), blocks.total()), (91, 2, 104));
        assert_eq!((blocks.block_of(90), blocks.block_of(91), blocks.block_of(101)), (None, Some(0), Some(1)));
        assert_eq!(blocks.packets(1), 101..104);
        let all = FlowCoding { tail: Some(Bytes::MAX), ..code };
        assert_eq!(Blocks::new(Bytes::new(1), 1_000, &all).total(), 3);
    }

    use alloc::vec::Vec;

    proptest! {
        /// Every packet is in the head or in exactly one block; data and parity add up to the flow.
        #[test]
        fn blocks_cover_the_flow(
            size in 1..5_000_000u64, mss in 1..9_000u32, data in 1..40u8, parity in 1..=8u8,
            tail in proptest::option::of(1..5_000_000u64),
        ) {
            let code = FlowCoding { data, parity, tail: tail.map(Bytes::new) };
            let size = Bytes::new(size.min(u64::from(mss) * 2_000));
            let blocks = Blocks::new(size, mss, &code);
            let short = blocks.short();
            let bytes = |seq: u32| u64::from(if short.contains(&seq) { blocks.last } else { mss });
            let mut next = blocks.head();
            let mut payload = u64::from(blocks.head()) * u64::from(mss);
            for block in 0..blocks.count() {
                let packets = blocks.packets(block);
                prop_assert_eq!(packets.start, next);
                next = packets.end;
                prop_assert_eq!(packets.len(), usize::from(blocks.data(block) + parity));
                prop_assert!(packets.clone().all(|seq| blocks.block_of(seq) == Some(block)));
                let of_data: Vec<u64> = packets.clone().filter(|&seq| !blocks.is_parity(seq)).map(bytes).collect();
                prop_assert_eq!(of_data.len(), usize::from(blocks.data(block)));
                prop_assert_eq!(of_data.iter().sum::<u64>(), u64::from(blocks.payload(block)));
                let longest = of_data.iter().max().copied();
                for seq in packets.filter(|&seq| blocks.is_parity(seq)) {
                    prop_assert_eq!(Some(bytes(seq)), longest);
                }
                payload += of_data.iter().sum::<u64>();
            }
            prop_assert_eq!((next, payload), (blocks.total(), size.get()));
            prop_assert!((0..blocks.head()).all(|seq| blocks.block_of(seq).is_none() && !blocks.is_parity(seq)));
        }
    }
}
