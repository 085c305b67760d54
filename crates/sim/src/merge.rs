//! Merging a node's input links: a tree of losers over the links that have something in this window.

/// Input number in the low bits of a key, time since the window's start above.
const INPUT_BITS: u32 = 20;
const INPUT_MASK: u64 = (1 << INPUT_BITS) - 1;
/// The key of an input that has nothing more in this window: after all others.
pub(crate) const DONE: u64 = u64::MAX;

/// Gives keys of up to 2^20 inputs in order. Each step costs one comparison a level, without a branch.
#[derive(Default)]
pub(crate) struct Merge {
    /// The loser of each match at `1..width`, the winner at 0.
    losers: Vec<u64>,
    /// Where each active input enters the tree.
    leaf_of: Vec<u32>,
    keys: Vec<u64>,
    width: usize,
}

/// A place in time, and the input that it belongs to: compares by time, then input.
#[inline]
pub(crate) fn key(since_start_ps: u64, input: usize) -> u64 {
    since_start_ps << INPUT_BITS | input as u64
}

/// The input of a key.
#[inline]
pub(crate) fn input_of(key: u64) -> usize {
    (key & INPUT_MASK) as usize
}

impl Merge {
    /// Starts with no input; `inputs` is how many the node has.
    pub(crate) fn clear(&mut self, inputs: usize) {
        self.keys.clear();
        if self.leaf_of.len() < inputs {
            self.leaf_of.resize(inputs, 0);
        }
    }

    /// Adds an input by its first key.
    #[inline]
    pub(crate) fn add(&mut self, key: u64) {
        self.leaf_of[input_of(key)] = self.keys.len() as u32;
        self.keys.push(key);
    }

    /// Plays the first round. Returns the first key; `None` if there is no input.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<u64> {
        match self.keys.len() {
            0 => return None,
            1 => {
                self.width = 1;
                self.losers.clear();
                self.losers.push(DONE);
                return Some(self.keys[0]);
            }
            _ => {}
        }
        self.width = self.keys.len().next_power_of_two();
        self.losers.clear();
        self.losers.resize(self.width, DONE);
        self.keys.resize(self.width * 2, DONE);
        // Winners move up through the upper half of `keys`, used as scratch from the leaves down to the root.
        let width = self.width;
        self.keys.copy_within(0..width, width);
        for node in (1..width).rev() {
            let (a, b) = (self.keys[node * 2], self.keys[node * 2 + 1]);
            self.losers[node] = a.max(b);
            self.keys[node] = a.min(b);
        }
        Some(self.keys[1])
    }

    /// Replaces the winner by the next key of its input ([`DONE`] if it has none) and gives the next winner.
    #[inline(always)]
    pub(crate) fn replace(&mut self, input: usize, next: u64) -> Option<u64> {
        let mut key = next;
        let mut node = (self.width + self.leaf_of[input] as usize) >> 1;
        let losers = &mut self.losers[..self.width];
        while node > 0 {
            let loser = losers[node];
            losers[node] = loser.max(key);
            key = loser.min(key);
            node /= 2;
        }
        (key != DONE).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_in_order_of_time_then_input(
            runs in proptest::collection::vec(proptest::collection::vec(0..50u64, 0..6), 1..20)
        ) {
            let mut runs = runs;
            for run in &mut runs {
                run.sort_unstable();
            }
            let mut expected: Vec<(u64, usize)> =
                runs.iter().enumerate().flat_map(|(input, run)| run.iter().map(move |&time| (time, input))).collect();
            expected.sort_unstable();
            let mut merge = Merge::default();
            merge.clear(runs.len());
            let mut next = vec![0; runs.len()];
            for (input, run) in runs.iter().enumerate().filter(|(_, run)| !run.is_empty()) {
                merge.add(key(run[0], input));
            }
            let mut got = Vec::new();
            let mut first = merge.begin();
            while let Some(winner) = first {
                let input = input_of(winner);
                got.push((winner >> INPUT_BITS, input));
                next[input] += 1;
                first = merge.replace(input, runs[input].get(next[input]).map_or(DONE, |&time| key(time, input)));
            }
            prop_assert_eq!(got, expected);
        }
    }
}
