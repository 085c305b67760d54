//! Acknowledgement history of coded flows: bits for the packets before the acknowledged one. A feature of this project.
//!
//! Packets of blocks have no cumulative acknowledgement of their own: the receiver's cumulative number passes packets that
//! blocks recovered. So a lost acknowledgement looks like a lost packet, and the law cuts for it. With a history each
//! acknowledgement has a bit for each of the [`DEPTH`] packets before its own on the same subflow, which keeps its order. The
//! bits replace the count of packets covered, which is always one in this case.

use alloc::vec;
use alloc::vec::Vec;

/// Number of earlier packets that an acknowledgement covers.
pub(crate) const DEPTH: u32 = 8;

/// Packets received on the subflows of one flow. A packet's subflow is `seq` modulo their number.
#[derive(Debug)]
pub(crate) struct History {
    /// By subflow: the packet after the newest one received, counted within the subflow, and a bit for each of those before
    /// the newest, the nearest lowest.
    subflows: Vec<(u32, u8)>,
}

impl History {
    /// Creates the history of `subflows` subflows, at least 1, on which nothing has arrived.
    pub(crate) fn new(subflows: u32) -> Self {
        Self { subflows: vec![(0, 0); subflows as usize] }
    }

    /// Records an arrival. Returns a bit for each packet before it on its subflow that arrived, the nearest lowest; 0
    /// for a packet that arrives after later ones.
    pub(crate) fn on_packet(&mut self, seq: u32) -> u8 {
        let count = self.subflows.len() as u32;
        let Some((next, bits)) = self.subflows.get_mut((seq % count) as usize) else { return 0 };
        let number = seq / count;
        if number >= *next {
            // The newest so far is now one of those before.
            let shifted = if *next == 0 { 0 } else { u32::from(*bits) << 1 | 1 };
            *bits = shifted.checked_shl(number - *next).map_or(0, |bits| bits as u8);
            *next = number + 1;
            return *bits;
        }
        let distance = *next - 1 - number;
        if (1..=DEPTH).contains(&distance) {
            *bits |= 1 << (distance - 1);
        }
        0
    }
}

/// Returns the packets that the history of an acknowledgement of `seq` reports as received, the newest first.
pub(crate) fn received(seq: u32, bits: u8, subflows: u32) -> impl Iterator<Item = u32> {
    let before = (1..=DEPTH).filter(move |distance| bits >> (distance - 1) & 1 != 0);
    before.filter_map(move |distance| seq.checked_sub(distance * subflows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn each_subflow_has_its_own_history() {
        let mut history = History::new(3);
        let reported = [0, 1, 3, 7, 9, 6].map(|seq| history.on_packet(seq));
        // Before 3: 0. Before 7: not 4, but 1. Before 9: not 6, but 3 and 0. 6 arrives late.
        assert_eq!(reported, [0, 0, 0b1, 0b10, 0b110, 0]);
        assert_eq!(history.on_packet(12), 0b1111);
        assert_eq!(received(12, 0b1111, 3).collect::<Vec<_>>(), [9, 6, 3, 0]);
        assert_eq!((history.on_packet(12 + 27), history.on_packet(12 + 60)), (0, 0));
    }

    proptest! {
        /// An acknowledgement only covers received packets, in any order of arrival, and that of a newest packet covers
        /// all of them.
        #[test]
        fn history_reports_received_packets(subflows in 1..5u32, seqs in proptest::collection::vec(0..60u32, 1..80)) {
            let mut history = History::new(subflows);
            let mut all = BTreeSet::new();
            for seq in seqs {
                let newest = all.iter().all(|&known: &u32| known % subflows != seq % subflows || known < seq);
                let reported: BTreeSet<u32> = received(seq, history.on_packet(seq), subflows).collect();
                prop_assert!(reported.is_subset(&all));
                if newest {
                    let near = |&&known: &&u32| known % subflows == seq % subflows && known + DEPTH * subflows >= seq;
                    prop_assert_eq!(reported, all.iter().filter(near).copied().collect::<BTreeSet<u32>>());
                }
                all.insert(seq);
            }
        }
    }
}
