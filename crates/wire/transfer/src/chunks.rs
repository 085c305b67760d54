//! Sets of a file's chunks.

use serde::{Deserialize, Serialize};

use crate::digest::{CHUNK, chunk_len, chunks_of};

/// Chunks that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ChunkRun {
    /// The first one, from 0.
    pub first: u64,
    /// Their number, at least 1.
    pub count: u64,
}

impl ChunkRun {
    /// The chunk behind the last one.
    fn end(self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// Chunks of a file, as runs in ascending order with gaps between them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ChunkSet(Vec<ChunkRun>);

/// The maximum number of runs in a set: the limit of a message.
pub const MAX_RUNS: usize = 512;

impl ChunkSet {
    /// Creates the set of these runs, as a peer may send it: see `validate`.
    pub fn of_runs(runs: Vec<ChunkRun>) -> Self {
        Self(runs)
    }

    /// Adds a chunk that comes after all others. Returns whether the set has room for it.
    pub(crate) fn push(&mut self, chunk: u64) -> bool {
        let runs = self.0.len();
        debug_assert!(self.0.last().is_none_or(|last| last.end() <= chunk), "chunk {chunk} is before the last run");
        match self.0.last_mut() {
            Some(last) if last.end() == chunk => last.count += 1,
            _ if runs < MAX_RUNS => self.0.push(ChunkRun { first: chunk, count: 1 }),
            _ => return false,
        }
        true
    }

    /// Reason for which this is no set of a file of this size, as the rest of a sentence about the peer.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.0.len() > MAX_RUNS {
            return Err(format!("has {} runs of chunks of a file; it may have {MAX_RUNS}", self.0.len()));
        }
        let mut behind = None;
        for run in &self.0 {
            let is_apart = behind.is_none_or(|end| run.first > end);
            behind = run.first.checked_add(run.count).filter(|_| run.count > 0 && is_apart);
            if behind.is_none() {
                return Err("has runs of chunks that are empty or not in ascending order".to_owned());
            }
        }
        Ok(())
    }

    /// The number of chunks.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|run| run.count).sum()
    }

    /// The chunk behind the last one; 0 if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |run| run.end())
    }

    /// Bytes of the chunks, of a file of this size.
    pub(crate) fn bytes(&self, size: u64) -> u64 {
        let full = self.count() * CHUNK as u64;
        // The file's last chunk may be shorter.
        let has_last = self.end() > 0 && self.end() == chunks_of(size);
        if has_last { full - CHUNK as u64 + chunk_len(size, self.end() - 1) as u64 } else { full }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The chunks in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|run| run.first..run.end())
    }

    /// Returns the first chunk from `from` on that is not in the set, of a file of `total` chunks.
    pub(crate) fn next_missing(&self, from: u64, total: u64) -> Option<u64> {
        let begun = self.0.partition_point(|run| run.first <= from);
        let end = begun.checked_sub(1).and_then(|last| self.0.get(last)).map_or(0, |run| run.end());
        Some(from.max(end)).filter(|&chunk| chunk < total)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn runs(runs: &[(u64, u64)]) -> ChunkSet {
        ChunkSet(runs.iter().map(|&(first, count)| ChunkRun { first, count }).collect())
    }

    #[test]
    fn only_ascending_runs_are_a_set() {
        for good in [&[][..], &[(0, 1)], &[(0, 1), (2, 3)], &[(7, u64::MAX - 7)]] {
            assert_eq!(runs(good).validate(), Ok(()), "{good:?}");
        }
        for bad in [&[(0, 0)][..], &[(0, 1), (1, 1)], &[(2, 1), (0, 1)], &[(0, 3), (2, 1)], &[(7, u64::MAX - 6)]] {
            assert!(runs(bad).validate().is_err(), "{bad:?}");
        }
        assert!(runs(&(0..=MAX_RUNS as u64).map(|at| (2 * at, 1)).collect::<Vec<_>>()).validate().is_err());
    }

    #[test]
    fn a_full_set_takes_no_other_run() {
        let mut set = ChunkSet::default();
        assert!((0..MAX_RUNS as u64).all(|at| set.push(2 * at)));
        let last = 2 * MAX_RUNS as u64 - 2;
        assert!(!set.push(last + 2) && set.push(last + 1));
        assert_eq!((set.validate(), set.count(), set.end()), (Ok(()), MAX_RUNS as u64 + 1, last + 2));
    }

    proptest! {
        #[test]
        fn a_set_agrees_with_a_plainer_one(chunks: BTreeSet<u8>, size in 1u64..250 << 20, from in 0u64..260) {
            let total = chunks_of(size);
            let chunks: BTreeSet<u64> = chunks.into_iter().map(u64::from).filter(|&chunk| chunk < total).collect();
            let mut set = ChunkSet::default();
            prop_assert!(chunks.iter().all(|&chunk| set.push(chunk)));
            prop_assert_eq!(set.validate(), Ok(()));
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), chunks.clone());
            prop_assert_eq!(set.count(), chunks.len() as u64);
            prop_assert_eq!(set.end(), chunks.last().map_or(0, |last| last + 1));
            prop_assert_eq!(set.bytes(size), chunks.iter().map(|&chunk| chunk_len(size, chunk) as u64).sum::<u64>());
            prop_assert_eq!(set.next_missing(from, total), (from..total).find(|chunk| !chunks.contains(chunk)));
        }
    }
}
