//! Puts the bytes of one sequence in order: a stream's, or the handshake's.
//!
//! Pieces arrive in any order, possibly more than once. Bytes in order wait in one queue to be read. Pieces ahead of a
//! gap are stored separately, without overlap, until the gap closes. A call costs time proportional to its piece and to
//! the bytes that it releases, plus the logarithm of the number of stored pieces. No order of pieces makes a receiver
//! slow.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;
use core::ops::Bound::{Excluded, Included};

use thiserror::Error;

use crate::narrow::to_usize;
use crate::receive_memory::{BufferShare, ReceiveMemory};
use crate::varint;

/// Cost of a piece ahead of a gap in addition to its bytes: its share of a tree and of an allocation.
pub(crate) const PIECE_COST: usize = 64;

/// Capacity for bytes in order that an [`Assembler`] may always keep, in bytes.
pub(crate) const MIN_KEPT_CAPACITY: usize = 1 << 15;

/// Result of inserting a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    /// The piece was stored, or was known already.
    Stored,
    /// The piece is ahead of a gap and does not fit. No part of it was stored, so its packet must not be acknowledged.
    Refused,
}

/// Repeated bytes that differ from the stored ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("data differs from data received earlier at the same offset")]
pub(crate) struct Conflict;

/// Bytes of one sequence, from the first that was not read.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// In order and not read.
    ready: VecDeque<u8>,
    /// The capacity of that queue.
    share: BufferShare,
    /// Set if bytes arrived since the last [`Assembler::release_idle`].
    is_active: bool,
    /// The offset of the first byte in `ready`.
    consumed: u64,
    /// Pieces behind a gap by their offsets: none is empty, none overlaps another, all begin behind `end()`.
    ahead: BTreeMap<u64, Vec<u8>>,
    /// Runs of pieces that touch each other. Before each is a gap.
    gaps: usize,
    /// Cost of the pieces ahead of a gap, in bytes.
    cost: usize,
    max_gaps: usize,
    max_ahead: usize,
}

impl Assembler {
    /// Creates an empty assembler. It stores pieces ahead of a gap as long as there are at most `max_gaps` gaps and
    /// the pieces cost at most `max_ahead` bytes, each its length plus [`PIECE_COST`]. Bytes in order are always
    /// accepted: the owner limits the peer by flow control. The capacity counts in `memory`.
    pub(crate) const fn new(max_gaps: usize, max_ahead: usize, memory: ReceiveMemory) -> Self {
        Self {
            ready: VecDeque::new(),
            share: BufferShare::new(memory),
            is_active: false,
            consumed: 0,
            ahead: BTreeMap::new(),
            gaps: 0,
            cost: 0,
            max_gaps,
            max_ahead,
        }
    }

    /// Inserts a piece. Bytes that were read before are not compared any more.
    ///
    /// # Errors
    /// If the piece differs from stored bytes. The assembler is unchanged then.
    ///
    /// # Panics
    /// In debug builds, if it ends above [`varint::MAX`].
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8]) -> Result<Inserted, Conflict> {
        debug_assert!(offset <= varint::MAX && data.len() as u64 <= varint::MAX - offset);
        let end = self.end();
        let known = to_usize(end.saturating_sub(offset).min(data.len() as u64));
        self.compare_with_ready(offset, &data[..known])?;
        let (offset, data) = (offset + known as u64, &data[known..]);
        if data.is_empty() {
            return Ok(Inserted::Stored);
        }
        if offset > end {
            return self.insert_ahead(offset, data);
        }
        if !self.ahead.is_empty() {
            for (&start, piece) in self.ahead.range(..offset + data.len() as u64) {
                compare(Piece { offset, bytes: data }, Piece { offset: start, bytes: piece })?;
            }
        }
        self.ready.extend(data);
        self.close_gaps();
        self.is_active = true;
        self.share.set(self.ready.capacity());
        Ok(Inserted::Stored)
    }

    /// Moves as many bytes in order as are available and fit to the front of `out`. Returns their number. The memory is
    /// kept for later bytes, because a new allocation for each burst costs page faults, unless the endpoint keeps too
    /// much.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let (front, back) = self.ready.as_slices();
        let from_front = front.len().min(out.len());
        let from_back = back.len().min(out.len() - from_front);
        out[..from_front].copy_from_slice(&front[..from_front]);
        out[from_front..from_front + from_back].copy_from_slice(&back[..from_back]);
        let count = from_front + from_back;
        self.ready.drain(..count);
        self.consumed += count as u64;
        if self.is_large() && self.ready.len() < self.ready.capacity() / 4 && self.share.is_crowded() {
            self.shrink_to(2 * self.ready.len());
        }
        count
    }

    /// Releases unused capacity unless bytes arrived since the last call.
    pub(crate) fn release_idle(&mut self) {
        if !mem::take(&mut self.is_active) && self.is_large() && self.ready.len() <= self.ready.capacity() / 2 {
            self.shrink_to(self.ready.len());
        }
    }

    /// Returns whether it has more memory than it may always keep.
    pub(crate) fn is_large(&self) -> bool {
        self.ready.capacity() > MIN_KEPT_CAPACITY
    }

    fn shrink_to(&mut self, bytes: usize) {
        self.ready.shrink_to(bytes.max(MIN_KEPT_CAPACITY));
        self.share.set(self.ready.capacity());
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Returns the offset up to which bytes were read.
    pub(crate) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the offset up to which bytes arrived in order.
    pub(crate) fn end(&self) -> u64 {
        self.consumed + self.ready.len() as u64
    }

    /// Returns the stored bytes: those that can be read, and the cost of the pieces ahead of a gap.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.ready.len() + self.cost
    }

    /// Compares bytes up to at most `end()` with those that were not read.
    fn compare_with_ready(&self, offset: u64, data: &[u8]) -> Result<(), Conflict> {
        let (front, back) = self.ready.as_slices();
        let new = Piece { offset, bytes: data };
        let front = Piece { offset: self.consumed, bytes: front };
        compare(new, front)?;
        compare(new, Piece { offset: front.end(), bytes: back })?;
        Ok(())
    }

    /// Inserts a piece that begins after a gap.
    fn insert_ahead(&mut self, offset: u64, data: &[u8]) -> Result<Inserted, Conflict> {
        let until = offset + data.len() as u64;
        // The new part: bytes in pieces that overlap an edge stay there, and pieces in between are replaced.
        let (mut from, mut to) = (offset, until);
        let (mut known, mut replaced, mut joined) = (0, 0, 0);
        let mut last_end = None;
        let before = self.ahead.range(..offset).next_back();
        for (&start, piece) in before.into_iter().chain(self.ahead.range(offset..=until)) {
            let end = start + piece.len() as u64;
            if end < offset {
                continue;
            }
            joined += usize::from(last_end != Some(start));
            last_end = Some(end);
            known += compare(Piece { offset, bytes: data }, Piece { offset: start, bytes: piece })?;
            if start < offset {
                from = end.min(until);
            } else if end > until {
                to = start;
            } else {
                replaced += cost(piece);
            }
        }
        if known == data.len() {
            return Ok(Inserted::Stored);
        }
        let gaps = self.gaps + 1 - joined;
        let data = &data[to_usize(from - offset)..to_usize(to - offset)];
        let cost_after = self.cost - replaced + cost(data);
        if gaps > self.max_gaps || cost_after > self.max_ahead {
            return Ok(Inserted::Refused);
        }
        let mut inside = self.ahead.range((Included(from), Excluded(to))).next().map(|(&start, _)| start);
        while let Some(start) = inside {
            self.ahead.remove(&start);
            inside = self.ahead.range((Excluded(start), Excluded(to))).next().map(|(&start, _)| start);
        }
        self.ahead.insert(from, data.to_vec());
        (self.gaps, self.cost) = (gaps, cost_after);
        self.check_ahead();
        Ok(Inserted::Stored)
    }

    /// Checks the counts of the pieces ahead, in debug builds.
    fn check_ahead(&self) {
        debug_assert!(self.gaps <= self.max_gaps && self.cost <= self.max_ahead, "{} {}", self.gaps, self.cost);
        debug_assert_eq!(self.ahead.is_empty(), self.gaps == 0, "{} gaps", self.gaps);
        debug_assert!(self.ahead.first_key_value().is_none_or(|(&start, _)| start > self.end()), "no gap is first");
    }

    /// Appends the pieces that the bytes in order have reached to those bytes.
    fn close_gaps(&mut self) {
        while let Some(first) = self.ahead.first_entry()
            && *first.key() <= self.consumed + self.ready.len() as u64
        {
            let (start, piece) = first.remove_entry();
            self.cost -= cost(&piece);
            if let Some(new) = piece.get(to_usize(self.end() - start)..) {
                self.ready.extend(new);
            }
            let end = start + piece.len() as u64;
            let run_continues = self.ahead.first_key_value().is_some_and(|(&next, _)| next == end);
            self.gaps -= usize::from(!run_continues);
        }
        self.check_ahead();
    }
}

fn cost(piece: &[u8]) -> usize {
    piece.len() + PIECE_COST
}

/// Consecutive bytes of the data.
#[derive(Clone, Copy)]
struct Piece<'a> {
    /// Offset of the first byte.
    offset: u64,
    bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Returns the bytes from `from` to `to`; both lie within the piece.
    fn part(&self, from: u64, to: u64) -> &'a [u8] {
        &self.bytes[to_usize(from - self.offset)..to_usize(to - self.offset)]
    }
}

/// Returns the number of bytes that two pieces share.
fn compare(one: Piece, other: Piece) -> Result<usize, Conflict> {
    let (from, to) = (one.offset.max(other.offset), one.end().min(other.end()));
    if from >= to {
        return Ok(0);
    }
    let shared = one.part(from, to);
    if shared == other.part(from, to) { Ok(shared.len()) } else { Err(Conflict) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// The byte that belongs at an offset.
    fn byte(offset: u64) -> u8 {
        (offset * 7 + offset / 256) as u8
    }

    fn piece(offset: u64, len: u64) -> Vec<u8> {
        (offset..offset + len).map(byte).collect()
    }

    fn read(assembler: &mut Assembler, max_len: usize) -> Vec<u8> {
        let mut out = vec![0; max_len];
        let count = assembler.read(&mut out);
        out.truncate(count);
        out
    }

    /// Checks that gaps are bounded, and that bytes in order are still accepted at the bound.
    #[test]
    fn gaps_are_bounded() {
        let mut assembler = Assembler::new(2, 10_000, ReceiveMemory::default());
        assert_eq!(assembler.insert(10, &piece(10, 5)), Ok(Inserted::Stored));
        assert_eq!(assembler.insert(20, &piece(20, 5)), Ok(Inserted::Stored));
        assert_eq!(assembler.insert(30, &piece(30, 5)), Ok(Inserted::Refused));
        // Touches another: no gap more.
        assert_eq!(assembler.insert(25, &piece(25, 5)), Ok(Inserted::Stored));
        // Closes one between two.
        assert_eq!(assembler.insert(12, &piece(12, 10)), Ok(Inserted::Stored));
        assert_eq!(assembler.insert(40, &piece(40, 5)), Ok(Inserted::Stored));
        assert_eq!(assembler.insert(0, &piece(0, 5)), Ok(Inserted::Stored));
        assert_eq!((assembler.readable(), assembler.end()), (5, 5));
        assert_eq!(assembler.insert(5, &piece(5, 5)), Ok(Inserted::Stored));
        assert_eq!(assembler.end(), 30);
        assert_eq!(assembler.insert(29, &piece(29, 13)), Ok(Inserted::Stored));
        assert_eq!(read(&mut assembler, 100), piece(0, 45));
        assert_eq!((assembler.buffered_bytes(), assembler.gaps, assembler.consumed()), (0, 0, 45));
    }

    /// Checks that single bytes are counted by the memory that they take.
    #[test]
    fn small_pieces_count_more_than_their_bytes() {
        let mut assembler = Assembler::new(1000, 3 * (1 + PIECE_COST), ReceiveMemory::default());
        for offset in [6, 4, 2] {
            assert_eq!(assembler.insert(offset, &piece(offset, 1)), Ok(Inserted::Stored));
        }
        assert_eq!(assembler.insert(8, &piece(8, 1)), Ok(Inserted::Refused));
        // A piece that replaces others.
        assert_eq!(assembler.insert(2, &piece(2, 5)), Ok(Inserted::Stored));
        assert_eq!(assembler.buffered_bytes(), 5 + PIECE_COST);
        assert_eq!(assembler.insert(0, &piece(0, 2)), Ok(Inserted::Stored));
        assert_eq!(assembler.buffered_bytes(), 7);
    }

    #[test]
    fn conflicting_bytes_are_errors() {
        let new = || {
            let mut assembler = Assembler::new(9, 1000, ReceiveMemory::default());
            assembler.insert(0, b"abc").unwrap();
            assembler.insert(6, b"ghi").unwrap();
            assembler
        };
        for (offset, data) in
            [(0, "abX"), (2, "X"), (2, "cdefgX"), (4, "efX"), (5, "fgX"), (8, "X"), (8, "Xj"), (0, "abcX..X")]
        {
            let mut assembler = new();
            assert_eq!(assembler.insert(offset, data.as_bytes()), Err(Conflict), "{offset} {data}");
            assert_eq!((assembler.end(), assembler.buffered_bytes()), (3, 6 + PIECE_COST));
        }
        for (offset, data) in [(0, "abc"), (2, "cX"), (2, "cXXXg"), (4, "XXgh"), (8, "iX"), (5, "XghiX"), (20, "X")] {
            assert_eq!(new().insert(offset, data.as_bytes()), Ok(Inserted::Stored), "{offset} {data}");
        }
        let mut assembler = new();
        // Bytes that were read are no longer known.
        assert_eq!(read(&mut assembler, 2), b"ab");
        assert_eq!(assembler.insert(0, b"XXc"), Ok(Inserted::Stored));
        assert_eq!(assembler.insert(0, b"abX"), Err(Conflict));
    }

    #[derive(Clone, Debug)]
    enum AssemblerOp {
        Insert { offset: u64, len: u64 },
        Wrong { offset: u64, len: u64, at: u64 },
        Read(usize),
    }

    fn op() -> impl Strategy<Value = AssemblerOp> {
        let range = || (0u64..300, prop_oneof![0u64..3, 0u64..60]);
        prop_oneof![
            10 => range().prop_map(|(offset, len)| AssemblerOp::Insert { offset, len }),
            1 => (range(), 0u64..60)
                .prop_map(|((offset, len), at)| AssemblerOp::Wrong { offset, len: len + 1, at: at % (len + 1) }),
            2 => (0usize..50).prop_map(AssemblerOp::Read),
        ]
    }

    /// Reference model that stores every byte separately.
    struct Model {
        stored: BTreeMap<u64, u8>,
        consumed: u64,
    }

    impl Model {
        fn end(&self) -> u64 {
            (self.consumed..1 << 20).find(|offset| !self.stored.contains_key(offset)).unwrap_or(0)
        }

        fn gaps(&self) -> usize {
            let begins = |offset: u64| offset > self.consumed && !self.stored.contains_key(&(offset - 1));
            self.stored.keys().filter(|&&offset| begins(offset)).count()
        }
    }

    proptest! {
        #[test]
        fn every_order_gives_the_same_bytes(
            ops in proptest::collection::vec(op(), 1..120), max_gaps in 0usize..8, max_ahead in prop_oneof![0usize..1500, Just(1 << 20)],
        ) {
            let mut assembler = Assembler::new(max_gaps, max_ahead, ReceiveMemory::default());
            let mut model = Model { stored: BTreeMap::new(), consumed: 0 };
            for op in ops {
                match op {
                    AssemblerOp::Insert { offset, len } => {
                        let before = assembler.buffered_bytes();
                        let mut after = Model { stored: model.stored.clone(), consumed: model.consumed };
                        after.stored.extend((offset.max(model.consumed)..offset + len).map(|offset| (offset, byte(offset))));
                        match assembler.insert(offset, &piece(offset, len)).unwrap() {
                            Inserted::Stored => model = after,
                            Inserted::Refused => {
                                prop_assert!(offset > model.end());
                                prop_assert!(after.gaps() > max_gaps || max_ahead < 1 << 20);
                                prop_assert_eq!(assembler.buffered_bytes(), before);
                            }
                        }
                    }
                    AssemblerOp::Wrong { offset, len, at } => {
                        let mut data = piece(offset, len);
                        data[at as usize] ^= 1;
                        // A conflict requires stored bytes, and the model must not store wrong ones.
                        if model.stored.contains_key(&(offset + at)) {
                            prop_assert_eq!(assembler.insert(offset, &data), Err(Conflict));
                        }
                    }
                    AssemblerOp::Read(max_len) => {
                        let data = read(&mut assembler, max_len);
                        prop_assert_eq!(&data, &piece(model.consumed, data.len() as u64));
                        prop_assert_eq!(data.len() as u64, (model.end() - model.consumed).min(max_len as u64));
                        model.consumed += data.len() as u64;
                        model.stored = model.stored.split_off(&model.consumed);
                    }
                }
                prop_assert_eq!((assembler.consumed(), assembler.end()), (model.consumed, model.end()));
                prop_assert_eq!(assembler.gaps, model.gaps());
                prop_assert!(assembler.gaps <= max_gaps);
                let ahead: usize = assembler.ahead.values().map(Vec::len).sum();
                prop_assert_eq!(assembler.readable() + ahead, model.stored.len());
                prop_assert_eq!(assembler.cost, ahead + PIECE_COST * assembler.ahead.len());
                prop_assert!(assembler.cost <= max_ahead);
            }
        }
    }

    /// Inserts a hundred thousand overlapping pieces in the worst order for a list, which takes a negligible time.
    #[test]
    fn descending_pieces_are_not_slow() {
        let mut assembler = Assembler::new(64, usize::MAX, ReceiveMemory::default());
        for offset in (1..100_000).rev() {
            assert_eq!(assembler.insert(offset, &piece(offset, 3)), Ok(Inserted::Stored));
        }
        assert_eq!(assembler.gaps, 1);
        assembler.insert(0, &piece(0, 1)).unwrap();
        assert_eq!(assembler.end(), 100_002);
    }

    /// Checks that memory is kept between bursts, released once nothing arrives any more, and released with each read while
    /// the endpoint has too much.
    #[test]
    fn memory_is_kept_until_it_is_idle() {
        const BURST: u64 = 1 << 20;
        let memory = ReceiveMemory::default();
        let mut assembler = Assembler::new(9, 1000, memory.clone());
        let burst = |assembler: &mut Assembler, nth: u64| {
            assembler.insert(nth * BURST, &piece(nth * BURST, BURST)).unwrap();
            assert_eq!(read(assembler, BURST as usize - 9).len(), BURST as usize - 9);
            let capacity = assembler.ready.capacity();
            assert_eq!(read(assembler, 10).len(), 9);
            capacity
        };
        let capacity = burst(&mut assembler, 0);
        assert_eq!(memory.bytes(), capacity);
        assert!(capacity >= BURST as usize);
        assembler.release_idle();
        assert_eq!((burst(&mut assembler, 1), assembler.ready.capacity()), (capacity, capacity));
        // Bytes arrived before the first call, and none before the second one.
        assembler.release_idle();
        assert_eq!((assembler.ready.capacity(), assembler.is_large()), (capacity, true));
        assembler.release_idle();
        assert!(!assembler.is_large());
        let small = assembler.ready.capacity();
        let mut other = BufferShare::new(memory.clone());
        other.set(64 << 20);
        assert!(burst(&mut assembler, 2) <= MIN_KEPT_CAPACITY);
        drop(other);
        assert_eq!(memory.bytes(), small);
        assert_eq!(burst(&mut assembler, 3), capacity);
        drop(assembler);
        assert_eq!(memory.bytes(), 0);
    }

    /// Unread bytes keep their memory; that of bytes that were read is released.
    #[test]
    fn idle_buffers_shrink_to_their_bytes() {
        let mut assembler = Assembler::new(9, 1000, ReceiveMemory::default());
        assembler.insert(0, &piece(0, 1 << 20)).unwrap();
        for left in [1 << 20, 1 << 19, 1 << 10] {
            let more = assembler.readable() - left;
            read(&mut assembler, more);
            (0..2).for_each(|_| assembler.release_idle());
            assert!((left..2 * left.max(MIN_KEPT_CAPACITY)).contains(&assembler.ready.capacity()), "{left}");
        }
        assert_eq!(read(&mut assembler, 1 << 20), piece((1 << 20) - (1 << 10), 1 << 10));
    }
}
