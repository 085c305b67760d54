//! Which nodes are active in which window: a ring of bit sets for the near future, a heap for the far one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Windows in the ring; a power of two, 64 to a summary word.
const RING: u64 = 256;

pub(crate) struct Schedule {
    window_ps: u64,
    /// 2^64 / `window_ps`, rounded down: a division as a multiplication that never rounds up.
    reciprocal: u64,
    /// The window that runs, or the next one to run.
    now: u64,
    words: usize,
    /// `RING` sets of `words` words.
    sets: Vec<u64>,
    /// One bit a window of the ring: its set may not be empty.
    summary: [u64; (RING / 64) as usize],
    far: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Schedule {
    pub(crate) fn new(nodes: usize, window_ps: u64) -> Self {
        let words = nodes.div_ceil(64);
        Self {
            window_ps,
            reciprocal: u64::MAX / window_ps,
            now: 0,
            words,
            sets: vec![0; words * RING as usize],
            summary: [0; (RING / 64) as usize],
            far: BinaryHeap::new(),
        }
    }

    /// The window that holds a time, or one before it: waking early is harmless.
    #[inline]
    fn window_of(&self, time_ps: u64) -> u64 {
        ((u128::from(time_ps) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// Makes a node active in the window that holds a time, and not before the next window.
    #[inline]
    pub(crate) fn activate(&mut self, node: usize, time_ps: u64) {
        if time_ps == u64::MAX {
            return;
        }
        self.activate_in(node, self.window_of(time_ps).max(self.now + 1));
    }

    /// The same before the first window, or between two epochs: the coming window is allowed too.
    pub(crate) fn activate_between(&mut self, node: usize, time_ps: u64) {
        self.activate_in(node, self.window_of(time_ps).max(self.now));
    }

    #[inline]
    fn activate_in(&mut self, node: usize, window: u64) {
        if window - self.now < RING {
            self.set(node, window);
        } else {
            self.far.push(Reverse((window, node as u32)));
        }
    }

    #[inline]
    fn set(&mut self, node: usize, window: u64) {
        let slot = (window % RING) as usize;
        self.sets[slot * self.words + node / 64] |= 1 << (node % 64);
        self.summary[slot / 64] |= 1 << (slot % 64);
    }

    /// Moves to the next window in which a node is active, if it begins before `limit_ps`; else to the window of
    /// `limit_ps`. Returns the window's start.
    pub(crate) fn next_window(&mut self, limit_ps: u64) -> Option<u64> {
        let limit = limit_ps.div_ceil(self.window_ps);
        let next = self.next_active();
        if next >= limit {
            self.now = self.now.max(limit);
            self.pull_far();
            return None;
        }
        self.now = next;
        self.pull_far();
        Some(next * self.window_ps)
    }

    /// When the next active window begins; `u64::MAX` if nothing is scheduled.
    pub(crate) fn next_active_ps(&self) -> u64 {
        self.next_active().saturating_mul(self.window_ps)
    }

    fn next_active(&self) -> u64 {
        let far = self.far.peek().map_or(u64::MAX, |Reverse((window, _))| *window);
        // Scan the ring from `now` on, a word of the summary at a time.
        let mut ahead = 0;
        while ahead < RING {
            let slot = (self.now + ahead) % RING;
            let bits = self.summary[(slot / 64) as usize] >> (slot % 64);
            if bits != 0 {
                return (self.now + ahead + u64::from(bits.trailing_zeros())).min(far);
            }
            ahead += 64 - slot % 64;
        }
        far
    }

    fn pull_far(&mut self) {
        while let Some(&Reverse((window, node))) = self.far.peek() {
            if window >= self.now + RING {
                break;
            }
            self.far.pop();
            self.set(node as usize, window.max(self.now));
        }
    }

    /// Takes the set of the current window's nodes, word by word: `take(word)` for each word in order.
    #[inline]
    pub(crate) fn take_word(&mut self, word: usize) -> u64 {
        std::mem::take(&mut self.sets[(self.now % RING) as usize * self.words + word])
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The current window is done.
    pub(crate) fn finish_window(&mut self) {
        let slot = (self.now % RING) as usize;
        self.summary[slot / 64] &= !(1 << (slot % 64));
        self.now += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every activation is seen, in order of windows, in its window or (by the reciprocal's rounding) the one
        /// before, however far ahead it was set.
        #[test]
        fn every_activation_is_seen_in_time(times in proptest::collection::vec(0..3_000_000_000u64, 1..200)) {
            let mut schedule = Schedule::new(200, 999_983);
            for (node, &time) in times.iter().enumerate() {
                schedule.activate_between(node, time);
            }
            let mut seen = vec![None; times.len()];
            let mut last = None;
            while let Some(start) = schedule.next_window(u64::MAX) {
                prop_assert!(last < Some(start));
                last = Some(start);
                for word in 0..schedule.words() {
                    let bits = schedule.take_word(word);
                    for node in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                        seen[word * 64 + node] = Some(start);
                    }
                }
                schedule.finish_window();
            }
            for (node, &time) in times.iter().enumerate() {
                let start = seen[node].unwrap();
                prop_assert!(start <= time && time < start + 2 * 999_983);
            }
        }
    }
}
