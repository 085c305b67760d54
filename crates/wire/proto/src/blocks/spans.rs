//! Sets of block numbers as a few ranges.

use alloc::vec::Vec;

use flow::Range;

/// Maximum number of ranges in a set. Ranges are numerous only if consecutive blocks alternate between complete and
/// incomplete.
pub(super) const MAX_SPANS: usize = 256;

/// Numbers as ranges that do not touch, the lowest first.
#[derive(Default, Debug)]
pub(super) struct Spans {
    ranges: Vec<Range>,
}

impl Spans {
    /// Adds numbers. If there are then too many ranges, the lowest is removed and returned.
    pub(super) fn insert(&mut self, range: Range) -> Option<Range> {
        // The ranges that it overlaps or touches become one with it.
        let from = self.ranges.partition_point(|kept| kept.last.saturating_add(1) < range.first);
        let to = self.ranges.partition_point(|kept| kept.first <= range.last.saturating_add(1));
        let joined = self.ranges.get(from..to).unwrap_or_default();
        let first = joined.first().map_or(range.first, |kept| kept.first.min(range.first));
        let last = joined.last().map_or(range.last, |kept| kept.last.max(range.last));
        self.ranges.splice(from..to.max(from), [Range { first, last }]);
        if self.ranges.len() > MAX_SPANS { self.take_lowest() } else { None }
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, number: u64) {
        let at = self.ranges.partition_point(|kept| kept.last < number);
        let Some(&Range { first, last }) = self.ranges.get(at).filter(|kept| kept.contains(number)) else { return };
        let below = (first < number).then(|| Range { first, last: number - 1 });
        let above = (number < last).then(|| Range { first: number + 1, last });
        self.ranges.splice(at..=at, below.into_iter().chain(above));
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|kept| kept.last < number);
        self.ranges.get(at).is_some_and(|kept| kept.contains(number))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn take_lowest(&mut self) -> Option<Range> {
        (!self.ranges.is_empty()).then(|| self.ranges.remove(0))
    }
}

/// Blocks that are over at a receiver: complete or forgotten. Older ranges are forgotten, too: all blocks below a floor
/// count as over.
#[derive(Default, Debug)]
pub(super) struct FinishedBlocks {
    floor: u64,
    /// Those that are not below the floor.
    above: Spans,
}

impl FinishedBlocks {
    pub(super) fn contains(&self, block: u64) -> bool {
        block < self.floor || self.above.contains(block)
    }

    /// Returns the lowest block that may be open.
    #[cfg(test)]
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn insert(&mut self, block: u64) {
        let dropped = if block < self.floor { None } else { self.above.insert(Range::of(block)) };
        if let Some(lowest) = dropped {
            self.raise(lowest.last.saturating_add(1));
        } else {
            self.raise(self.floor);
        }
    }

    /// Declares all blocks below `floor` over.
    pub(super) fn raise(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        while let Some(lowest) = self.above.ranges.first().filter(|lowest| lowest.first <= self.floor) {
            self.floor = self.floor.max(lowest.last.saturating_add(1));
            self.above.ranges.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        /// The sets agree with sets of numbers.
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((0..120u64, 0..6u64, 0..20u8), 0..100)) {
            let (mut spans, mut set) = (Spans::default(), BTreeSet::new());
            let (mut finished, mut all) = (FinishedBlocks::default(), BTreeSet::new());
            for (first, more, action) in steps {
                if action == 0 {
                    finished.raise(first);
                    all.extend(0..first);
                } else if action == 1 {
                    spans.remove(first);
                    set.remove(&first);
                } else {
                    prop_assert_eq!(spans.insert(Range { first, last: first + more }), None);
                    set.extend(first..=first + more);
                    finished.insert(first);
                    all.insert(first);
                }
                prop_assert!(spans.ranges.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
                prop_assert!((0..140).all(|number| spans.contains(number) == set.contains(&number)));
                prop_assert!((0..140).all(|number| finished.contains(number) == all.contains(&number)));
                prop_assert!(!all.contains(&finished.floor()));
            }
            let mut taken = BTreeSet::new();
            while let Some(range) = spans.take_lowest() {
                taken.extend(range.first..=range.last);
            }
            prop_assert_eq!(taken, set);
        }
    }

    #[test]
    fn ranges_are_few() {
        let mut finished = FinishedBlocks::default();
        for block in 0..10_000 {
            finished.insert(2 * block + 1);
            assert!(finished.above.ranges.len() <= MAX_SPANS && finished.contains(2 * block + 1));
        }
        assert!(finished.contains(0) && finished.contains(19_999 - 2 * 256) && !finished.contains(19_998));
        finished.insert(u64::MAX);
        finished.raise(u64::MAX);
        assert!(finished.contains(u64::MAX - 1));
    }
}
