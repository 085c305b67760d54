//! Merging a node's input links: a tree of losers over the links that have something in this window. Each step costs
//! one comparison a level, without a branch.
//!
//! A key is a time and, below it, a place: keys compare by time, then by input, because places are numbered in the
//! order of inputs.

use units::Span;

/// Bits of the place in a key. The other 44 hold a time since the window's start, which is under 2^40 ps.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
/// The key of an input that has nothing more in this window: after all others.
pub(crate) const DONE: u64 = u64::MAX;

/// A tree of losers.
pub(crate) trait Merge {
    /// The input that a key belongs to.
    fn input(&self, key: u64) -> usize;

    /// Replaces the winner by the next key of its input, or [`DONE`], and returns the next winner.
    fn replace(&mut self, winner: u64, next: u64) -> u64;
}

/// The next key of the input of `winner`, at this time since the window's start.
#[inline(always)]
pub(crate) fn follow(winner: u64, since_start: Span) -> u64 {
    key(since_start, winner & PLACE_MASK)
}

/// The inputs of one node in one window, before they are merged.
#[derive(Default)]
pub(crate) struct Entrants {
    /// (time since the window's start, input), in order of inputs.
    list: Vec<(Span, u32)>,
    large: LargeTree,
}

/// A tree that fits the number of entrants, and its first winner.
pub(crate) enum MergeTree<'a> {
    /// One input: nothing to merge.
    One(Single, u64),
    /// Few, where traffic is sparse.
    Few(SmallTree<4>, u64),
    /// At most 16 inputs, as most switches have: the tree is on the stack.
    Some(SmallTree<16>, u64),
    /// More: a border switch.
    Many(&'a mut LargeTree, u64),
}

impl Entrants {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, since_start: Span, input: usize) {
        self.list.push((since_start, input as u32));
    }

    /// The inputs, in order.
    #[inline(always)]
    pub(crate) fn inputs(&self) -> impl Iterator<Item = usize> {
        self.list.iter().map(|&(_, input)| input as usize)
    }

    /// Plays the first round.
    #[inline(always)]
    pub(crate) fn tree(&mut self) -> MergeTree<'_> {
        match &self.list[..] {
            &[(since_start, input)] => MergeTree::One(Single { input }, key(since_start, 0)),
            list if list.len() <= 4 => {
                let (tree, winner) = SmallTree::new(list);
                MergeTree::Few(tree, winner)
            }
            list if list.len() <= 16 => {
                let (tree, winner) = SmallTree::new(list);
                MergeTree::Some(tree, winner)
            }
            list => {
                let winner = self.large.fill(list);
                MergeTree::Many(&mut self.large, winner)
            }
        }
    }
}

/// A time since the window's start, and a place.
#[inline(always)]
fn key(since_start: Span, place: u64) -> u64 {
    (since_start.ps() as u64) << PLACE_BITS | place
}

fn key_at(list: &[(Span, u32)], place: usize) -> u64 {
    list.get(place).map_or(DONE, |&(since_start, _)| key(since_start, place as u64))
}

/// One input.
pub(crate) struct Single {
    input: u32,
}

impl Merge for Single {
    #[inline(always)]
    fn input(&self, _: u64) -> usize {
        self.input as usize
    }

    #[inline(always)]
    fn replace(&mut self, _: u64, next: u64) -> u64 {
        next
    }
}

/// Up to `N` inputs, a power of two; a place is the number of an entrant.
pub(crate) struct SmallTree<const N: usize> {
    inputs: [u32; N],
    losers: [u64; N],
    width: usize,
}

impl<const N: usize> SmallTree<N> {
    #[inline(always)]
    fn new(list: &[(Span, u32)]) -> (Self, u64) {
        let width = list.len().next_power_of_two();
        let mut tree = Self { inputs: [0; N], losers: [DONE; N], width };
        let mut winners = [DONE; N];
        for (place, (slot, &(since_start, input))) in tree.inputs.iter_mut().zip(list).enumerate() {
            *slot = input;
            winners[place] = key(since_start, place as u64);
        }
        // Rounds from the leaves up: `left` winners of one round meet in pairs in the next.
        let mut left = width;
        while left > 1 {
            left /= 2;
            for pair in 0..left {
                let (a, b) = (winners[(pair * 2) & (N - 1)], winners[(pair * 2 + 1) & (N - 1)]);
                tree.losers[(left + pair) & (N - 1)] = a.max(b);
                winners[pair] = a.min(b);
            }
        }
        (tree, winners[0])
    }
}

impl<const N: usize> Merge for SmallTree<N> {
    #[inline(always)]
    fn input(&self, key: u64) -> usize {
        self.inputs[key as usize & (N - 1)] as usize
    }

    #[inline(always)]
    fn replace(&mut self, winner: u64, next: u64) -> u64 {
        let mut key = next;
        let mut node = (self.width + (winner & PLACE_MASK) as usize) >> 1;
        while node > 0 {
            let loser = &mut self.losers[node & (N - 1)];
            (key, *loser) = (key.min(*loser), key.max(*loser));
            node >>= 1;
        }
        key
    }
}

/// Any number of inputs up to 2^20.
#[derive(Default)]
pub(crate) struct LargeTree {
    inputs: Vec<u32>,
    losers: Vec<u64>,
    winners: Vec<u64>,
    width: usize,
}

impl LargeTree {
    fn fill(&mut self, list: &[(Span, u32)]) -> u64 {
        let width = list.len().next_power_of_two();
        self.width = width;
        self.inputs.clear();
        self.inputs.extend(list.iter().map(|&(_, input)| input));
        self.losers.clear();
        self.losers.resize(width, DONE);
        self.winners.clear();
        self.winners.resize(width, DONE);
        self.winners.extend((0..width).map(|place| key_at(list, place)));
        for node in (1..width).rev() {
            let (a, b) = (self.winners[node * 2], self.winners[node * 2 + 1]);
            self.losers[node] = a.max(b);
            self.winners[node] = a.min(b);
        }
        self.winners[1]
    }
}

impl Merge for LargeTree {
    #[inline(always)]
    fn input(&self, key: u64) -> usize {
        self.inputs[(key & PLACE_MASK) as usize] as usize
    }

    #[inline(always)]
    fn replace(&mut self, winner: u64, next: u64) -> u64 {
        let mut key = next;
        let mut node = (self.width + (winner & PLACE_MASK) as usize) >> 1;
        while node > 0 {
            let loser = &mut self.losers[node];
            (key, *loser) = (key.min(*loser), key.max(*loser));
            node >>= 1;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merged(tree: &mut impl Merge, mut winner: u64, runs: &[Vec<Span>]) -> Vec<(Span, usize)> {
        let mut next = vec![0; runs.len()];
        let mut got = Vec::new();
        while winner != DONE {
            let input = tree.input(winner);
            got.push((Span::from_ps((winner >> PLACE_BITS) as i64), input));
            next[input] += 1;
            winner = tree.replace(winner, runs[input].get(next[input]).map_or(DONE, |&time| follow(winner, time)));
        }
        got
    }

    proptest! {
        #[test]
        fn keys_come_in_order_of_time_then_input(
            runs in proptest::collection::vec(proptest::collection::vec((0..50i64).prop_map(Span::from_ps), 0..6), 0..40)
        ) {
            let mut runs = runs;
            for run in &mut runs {
                run.sort_unstable();
            }
            let mut expected: Vec<(Span, usize)> =
                runs.iter().enumerate().flat_map(|(input, run)| run.iter().map(move |&time| (time, input))).collect();
            expected.sort_unstable();
            let mut entrants = Entrants::default();
            for (input, run) in runs.iter().enumerate().filter(|(_, run)| !run.is_empty()) {
                entrants.add(run[0], input);
            }
            let got = match entrants.tree() {
                MergeTree::One(mut tree, winner) => merged(&mut tree, winner, &runs),
                MergeTree::Few(mut tree, winner) => merged(&mut tree, winner, &runs),
                MergeTree::Some(mut tree, winner) => merged(&mut tree, winner, &runs),
                MergeTree::Many(tree, winner) => merged(tree, winner, &runs),
            };
            prop_assert_eq!(got, expected);
        }
    }
}
