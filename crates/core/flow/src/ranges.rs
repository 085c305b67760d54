//! Sets of packet numbers in bounded memory.

use alloc::vec::Vec;

/// Consecutive packet numbers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The lowest number.
    pub first: u64,
    /// The highest number; not below `first`.
    pub last: u64,
}

impl Range {
    /// One number.
    pub const fn of(number: u64) -> Self {
        Self { first: number, last: number }
    }

    /// Returns whether the range contains this number.
    pub const fn contains(&self, number: u64) -> bool {
        self.first <= number && number <= self.last
    }
}

/// A set of numbers as ranges that do not touch, the newest first. It keeps the newest ones up to a bound. All numbers below
/// the kept ranges count as members: a new number there cannot be distinguished from a duplicate.
#[derive(Debug)]
pub(crate) struct Ranges {
    kept: Vec<Range>,
    max_len: usize,
    /// Every number below is a member.
    floor: u64,
}

impl Ranges {
    /// No numbers, and room for `max_len` ranges, at least 1.
    pub(crate) fn new(max_len: usize) -> Self {
        Self { kept: Vec::new(), max_len: max_len.max(1), floor: 0 }
    }

    /// The ranges at or above the floor, the newest first.
    pub(crate) fn newest_first(&self) -> &[Range] {
        &self.kept
    }

    /// The highest member that was inserted and is kept.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.kept.first().map(|range| range.last)
    }

    /// Returns whether a number is a member. Looks at as many ranges as are newer.
    pub(crate) fn contains(&self, number: u64) -> bool {
        number < self.floor
            || self.kept.iter().find(|range| range.first <= number).is_some_and(|range| range.contains(number))
    }

    /// Inserts a number. Returns whether it was no member. Looks at as many ranges as are newer than the number.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        if number < self.floor {
            return false;
        }
        // The first range that ends below the number, and the one before it, which may reach up to it or hold it.
        let below = self.kept.iter().position(|range| range.last < number).unwrap_or(self.kept.len());
        let above = below.checked_sub(1);
        if above.is_some_and(|at| self.kept[at].contains(number)) {
            return false;
        }
        let joins_above = above.filter(|&at| self.kept[at].first == number + 1);
        let joins_below = self.kept.get(below).is_some_and(|range| range.last + 1 == number);
        match (joins_above, joins_below) {
            (Some(at), true) => {
                self.kept[at].first = self.kept[below].first;
                self.kept.remove(below);
            }
            (Some(at), false) => self.kept[at].first = number,
            (None, true) => self.kept[below].last = number,
            (None, false) => {
                if self.kept.len() == self.max_len {
                    self.forget_oldest(below);
                    if number < self.floor {
                        return true;
                    }
                }
                self.kept.insert(below, Range::of(number));
            }
        }
        debug_assert!(self.kept.len() <= self.max_len, "{} ranges, {} at most", self.kept.len(), self.max_len);
        true
    }

    /// Makes room for a range at this index: forgets the oldest one, unless the new one is older still.
    fn forget_oldest(&mut self, index: usize) {
        let Some(&oldest) = self.kept.last() else { return };
        if index == self.kept.len() {
            // The new range would be forgotten first. So it counts as a member from now on, and all below it.
            self.floor = oldest.first;
        } else {
            self.kept.pop();
            self.floor = oldest.last + 1;
        }
    }

    /// All numbers below this one count as members.
    pub(crate) fn forget_below(&mut self, number: u64) {
        self.floor = self.floor.max(number);
        while let Some(oldest) = self.kept.last_mut() {
            if oldest.last >= self.floor {
                oldest.first = oldest.first.max(self.floor);
                break;
            }
            self.kept.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn ranges(numbers: &[(u64, u64)]) -> Vec<Range> {
        numbers.iter().map(|&(first, last)| Range { first, last }).collect()
    }

    #[test]
    fn adjacent_numbers_merge_into_ranges() {
        let mut set = Ranges::new(8);
        for number in [5, 7, 9, 6, 1, 0, 3] {
            assert!(set.insert(number), "{number}");
        }
        assert_eq!(set.newest_first(), ranges(&[(9, 9), (5, 7), (3, 3), (0, 1)]));
        assert!(!set.insert(6) && !set.insert(0) && set.insert(2));
        assert_eq!(set.newest_first(), ranges(&[(9, 9), (5, 7), (0, 3)]));
        assert_eq!(set.highest(), Some(9));
    }

    #[test]
    fn newest_ranges_are_kept() {
        let mut set = Ranges::new(3);
        for number in [10, 20, 30, 40] {
            assert!(set.insert(number));
        }
        assert_eq!(set.newest_first(), ranges(&[(40, 40), (30, 30), (20, 20)]));
        // Numbers below the kept ranges count as members.
        assert!(!set.insert(5) && !set.insert(10) && set.insert(11));
        assert_eq!(set.newest_first(), ranges(&[(40, 40), (30, 30), (20, 20)]));
        assert!(!set.insert(11) && !set.insert(15));
        set.forget_below(30);
        assert_eq!(set.newest_first(), ranges(&[(40, 40), (30, 30)]));
        assert!(!set.insert(29) && set.insert(31));
    }

    proptest! {
        /// Equivalence with a set of numbers, while there is room; with less room, every number reported as new is new,
        /// and the ranges are in order and do not touch.
        #[test]
        fn ranges_match_a_set(numbers in proptest::collection::vec(0..200u64, 0..300), max_len in 1..40usize) {
            let (mut all, mut roomy, mut bounded) = (BTreeSet::new(), Ranges::new(1_000), Ranges::new(max_len));
            for number in numbers {
                let is_new = all.insert(number);
                prop_assert_eq!((!roomy.contains(number), roomy.insert(number)), (is_new, is_new));
                let is_news = !bounded.contains(number);
                prop_assert_eq!(bounded.insert(number), is_news);
                prop_assert!(is_new || !is_news);
                prop_assert!(!bounded.insert(number), "a number is new once");
                let kept: BTreeSet<u64> = roomy.newest_first().iter().flat_map(|it| it.first..=it.last).collect();
                prop_assert_eq!(&kept, &all);
                let few = bounded.newest_first();
                prop_assert!(few.len() <= max_len && few.iter().all(|it| it.first <= it.last));
                prop_assert!(few.windows(2).all(|pair| pair[1].last + 1 < pair[0].first));
                prop_assert!(few.iter().all(|it| (it.first..=it.last).all(|member| all.contains(&member))));
            }
        }
    }
}
