//! Byte ranges of a stream that were declared lost and await retransmission.

use core::ops::Range;

use rangemap::RangeSet;

#[derive(Default, Debug)]
pub(super) struct LostRanges {
    ranges: RangeSet<u64>,
    bytes: u64,
}

impl LostRanges {
    /// Returns the number of lost bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the lost range with the lowest offset.
    pub(super) fn first(&self) -> Option<&Range<u64>> {
        self.ranges.first()
    }

    /// Adds a non-empty range. Parts of it may have been added before.
    pub(super) fn add(&mut self, range: Range<u64>) {
        debug_assert!(range.start < range.end, "an empty range is lost: {range:?}");
        self.bytes += range.end - range.start - self.overlap(&range);
        self.ranges.insert(range);
    }

    /// Removes a non-empty range. Parts of it need not be lost.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        debug_assert!(range.start < range.end, "an empty range is removed: {range:?}");
        if self.bytes > 0 {
            self.bytes -= self.overlap(&range);
            self.ranges.remove(range);
        }
    }

    /// Returns the number of lost bytes in a range.
    fn overlap(&self, range: &Range<u64>) -> u64 {
        let overlapping = self.ranges.overlapping(range);
        overlapping.map(|part| part.end.min(range.end) - part.start.max(range.start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares it with a set that holds each lost byte.
        #[test]
        fn it_agrees_with_a_set_of_bytes(ops in proptest::collection::vec((any::<bool>(), 0u64..100, 1u64..40), 1..50)) {
            let (mut lost, mut bytes) = (LostRanges::default(), alloc::collections::BTreeSet::new());
            for (adds, start, len) in ops {
                let range = start..start + len;
                if adds {
                    lost.add(range.clone());
                    bytes.extend(range);
                } else {
                    lost.remove(range.clone());
                    bytes.retain(|byte| !range.contains(byte));
                }
                prop_assert_eq!(lost.bytes(), bytes.len() as u64);
                let first = bytes.first().map(|&first| first..(first..=140).find(|byte| !bytes.contains(byte)).unwrap());
                prop_assert_eq!(lost.first(), first.as_ref());
            }
        }
    }
}
