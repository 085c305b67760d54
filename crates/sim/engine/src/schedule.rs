//! The active nodes of each window: a ring of bit sets for the near future, a heap for the far one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{Span, Time};

/// Windows in the ring; a power of two, 64 to a summary word.
const RING: u64 = 256;

/// A window of simulated time: a node handles the packets that arrive in it together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeWindow {
    pub(crate) start: Time,
    pub(crate) end: Time,
}

pub(crate) struct Schedule {
    /// The length of a window.
    length: Span,
    /// 2^64 / `length`, rounded down: a division as a multiplication that never rounds up.
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

/// The window in which each node next runs; `u64::MAX` if none is scheduled.
pub(crate) struct NextRuns<'a> {
    schedule: &'a Schedule,
    windows: Vec<u64>,
}

impl NextRuns<'_> {
    /// Returns whether a node runs in the window that holds a time, or before it.
    pub(crate) fn runs_by(&self, node: usize, time: Time) -> bool {
        let by = (time.ps() / self.schedule.length.unsigned_ps()).max(self.schedule.now);
        self.windows[node] <= by
    }

    /// Returns how many entries the schedule has looked at.
    pub(crate) fn examined(&self) -> usize {
        self.windows.len() + self.schedule.far.len() + RING as usize
    }
}

impl Schedule {
    pub(crate) fn new(nodes: usize, window: Span) -> Self {
        let words = nodes.div_ceil(64);
        Self {
            length: window,
            reciprocal: u64::MAX / window.unsigned_ps(),
            now: 0,
            words,
            sets: vec![0; words * RING as usize],
            summary: [0; (RING / 64) as usize],
            far: BinaryHeap::new(),
        }
    }

    /// The window that holds a time, or one before it: waking early is harmless.
    #[inline]
    fn window_of(&self, time: Time) -> u64 {
        ((u128::from(time.ps()) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// Makes a node active in the window that holds a time, and not before the next window.
    #[inline(always)]
    pub(crate) fn activate(&mut self, node: usize, time: Time) {
        if !time.is_set() {
            return;
        }
        self.activate_in(node, self.window_of(time).max(self.now + 1));
    }

    /// Activates a node before the first window, or between two epochs: the coming window is allowed too.
    pub(crate) fn activate_between(&mut self, node: usize, time: Time) {
        self.activate_in(node, self.window_of(time).max(self.now));
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

    /// Moves to the next window in which a node is active, if it begins before `limit`; else to the window of
    /// `limit`. Returns the window's start.
    pub(crate) fn next_window(&mut self, limit: Time) -> Option<Time> {
        let limit = limit.ps().div_ceil(self.length.unsigned_ps());
        let next = self.next_active();
        if next >= limit {
            self.now = self.now.max(limit);
            self.pull_far();
            return None;
        }
        self.now = next;
        self.pull_far();
        Some(Time::from_ps(next * self.length.unsigned_ps()))
    }

    /// Returns the start of the next active window; [`Time::NEVER`] if nothing is scheduled.
    pub(crate) fn next_active_at(&self) -> Time {
        Time::from_ps(self.next_active().saturating_mul(self.length.unsigned_ps()))
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

    /// Returns when each node next runs; between windows.
    pub(crate) fn next_runs(&self) -> NextRuns<'_> {
        let mut windows = vec![u64::MAX; self.words * 64];
        for &Reverse((window, node)) in &self.far {
            windows[node as usize] = windows[node as usize].min(window);
        }
        for window in (self.now..self.now + RING).rev() {
            let slot = (window % RING) as usize;
            if self.summary[slot / 64] >> (slot % 64) & 1 == 0 {
                continue;
            }
            for (word, &set) in self.sets[slot * self.words..(slot + 1) * self.words].iter().enumerate() {
                let mut bits = set;
                while bits != 0 {
                    let first = &mut windows[word * 64 + bits.trailing_zeros() as usize];
                    *first = (*first).min(window);
                    bits &= bits - 1;
                }
            }
        }
        NextRuns { schedule: self, windows }
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

    /// Ends the current window.
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

    const WINDOW: Span = Span::from_ps(999_983);

    #[test]
    fn next_runs_finds_unscheduled_nodes() {
        let mut schedule = Schedule::new(3, WINDOW);
        let far = Time::from_ps(999_983 * 1_000);
        schedule.activate_between(1, far);
        schedule.activate_between(2, Time::from_us(5));
        let next = schedule.next_runs();
        assert!(next.runs_by(1, far) && !next.runs_by(1, Time::from_us(900)) && !next.runs_by(0, far));
        assert!(next.runs_by(2, Time::from_us(5)) && !next.runs_by(2, Time::from_us(3)));
        // The first of several runs counts, in the ring and beyond it.
        schedule.activate_between(1, far + Span::from_us(9));
        schedule.activate_between(2, Time::from_us(2));
        let next = schedule.next_runs();
        assert!(next.runs_by(1, far) && next.runs_by(2, Time::from_us(3)) && !next.runs_by(2, Time::from_us(1)));
    }

    proptest! {
        /// Every activation is seen, in order of windows, in its window or (by the reciprocal's rounding) the one
        /// before, however far ahead it was set.
        #[test]
        fn every_activation_is_seen_in_time(times in proptest::collection::vec(0..3_000_000_000u64, 1..200)) {
            let mut schedule = Schedule::new(200, WINDOW);
            for (node, &time) in times.iter().enumerate() {
                schedule.activate_between(node, Time::from_ps(time));
            }
            let mut seen = vec![None; times.len()];
            let mut last = None;
            while let Some(start) = schedule.next_window(Time::NEVER) {
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
                let (start, time) = (seen[node].unwrap(), Time::from_ps(time));
                prop_assert!(start <= time && time < start + WINDOW.times(2));
            }
        }
    }
}
