//! Checksums of files and of their chunks.
//!
//! BLAKE3 is a tree over blocks of 1 KiB. A chunk of 1 MiB is a complete subtree, so the file's hash is computed from
//! the chunks' chaining values. It is the same as that of `b3sum`, and no byte is hashed twice.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Length of a chunk in bytes; the last one of a file may be shorter. Chunks are the unit of sending, checking and
/// resuming. A power of two of at least 1,024.
pub const CHUNK: usize = 1 << 20;

/// The BLAKE3 hash of a file, or the chaining value of a chunk.
pub type Digest = [u8; 32];

/// The BLAKE3 hash of some bytes.
pub fn of_bytes(bytes: &[u8]) -> Digest {
    blake3::hash(bytes).into()
}

/// Returns the number of chunks of a file of this size.
pub(crate) fn chunks_of(size: u64) -> u64 {
    size.div_ceil(CHUNK as u64)
}

/// Returns the length of chunk number `chunk` of a file of this size, in bytes.
pub(crate) fn chunk_len(size: u64, chunk: u64) -> usize {
    usize::try_from(size.saturating_sub(chunk.saturating_mul(CHUNK as u64))).unwrap_or(CHUNK).min(CHUNK)
}

/// The value of a chunk of a file of this size: the chaining value of its subtree, or the file's hash if it is the only one.
pub(crate) fn of_chunk(data: &[u8], size: u64, chunk: u64) -> Digest {
    if chunks_of(size) == 1 {
        return of_bytes(data);
    }
    let mut hasher = Hasher::new();
    hasher.set_input_offset(chunk * CHUNK as u64);
    hasher.update(data);
    hasher.finalize_non_root()
}

/// Reads a chunk of a file of this size into `data`. Returns its value.
pub(crate) fn read_chunk(file: &File, data: &mut Vec<u8>, size: u64, chunk: u64) -> io::Result<Digest> {
    data.resize(chunk_len(size, chunk), 0);
    file.read_exact_at(data, chunk * CHUNK as u64)?;
    Ok(of_chunk(data, size, chunk))
}

/// Incremental computation of a file's hash from the chaining values of its chunks.
#[derive(Clone, Default, Debug)]
pub(crate) struct HashTree {
    /// Complete subtrees to the left, the largest first.
    complete_subtrees: Vec<ChainingValue>,
    /// The latest chunk. It is merged when the next one arrives, because the last chunk of a file is merged differently.
    last: Option<ChainingValue>,
    chunks: u64,
}

impl HashTree {
    /// Adds the next chunk's value.
    pub(crate) fn push(&mut self, value: Digest) {
        if let Some(mut left) = self.last.replace(value) {
            // The chunk completes as many larger subtrees as its number, from 1, has trailing zeros.
            for _ in 0..self.chunks.trailing_zeros() {
                if let Some(before) = self.complete_subtrees.pop() {
                    left = merge_subtrees_non_root(&before, &left, Mode::Hash);
                }
            }
            self.complete_subtrees.push(left);
        }
        debug_assert_eq!(
            self.complete_subtrees.len(),
            self.chunks.count_ones() as usize,
            "after {} chunks",
            self.chunks
        );
        self.chunks += 1;
    }

    /// The file's hash.
    pub(crate) fn root(mut self) -> Digest {
        let Some(mut right) = self.last else { return of_bytes(&[]) };
        while let Some(left) = self.complete_subtrees.pop() {
            if self.complete_subtrees.is_empty() {
                return merge_subtrees_root(&left, &right, Mode::Hash).into();
            }
            right = merge_subtrees_non_root(&left, &right, Mode::Hash);
        }
        // The only chunk: its value is the hash.
        right
    }
}

/// Hash of a sequence of chunks' values. Sender and receiver compare it before they skip these chunks.
#[derive(Clone, Default, Debug)]
pub(crate) struct ValuesHash(Hasher);

impl ValuesHash {
    pub(crate) fn push(&mut self, value: &Digest) {
        self.0.update(value);
    }

    pub(crate) fn digest(&self) -> Digest {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_give_the_hash_of_the_file() {
        let data: Vec<u8> = (0..9 * CHUNK + 5_000).map(|at| (at / 7 + at * 13) as u8).collect();
        let sizes = (0..=9).flat_map(|chunks| [0, 1, 1_023, 1_024, 1_025, 5_000].map(|more| chunks * CHUNK + more));
        for size in sizes {
            let file = &data[..size];
            let mut tree = HashTree::default();
            for (at, chunk) in file.chunks(CHUNK).enumerate() {
                tree.push(of_chunk(chunk, size as u64, at as u64));
            }
            assert_eq!(tree.root(), of_bytes(file), "{size}");
        }
    }
}
