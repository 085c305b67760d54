//! A work for tests: one stream of bytes; its writer determines the end.

use std::collections::{BTreeMap, VecDeque};

use flow::{DataSource, PacketContent, ReturnReason};

/// A part of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct StreamRange {
    pub(crate) from: u64,
    pub(crate) len: u32,
}

/// Bytes by ranges that do not touch: from and to.
#[derive(Default, Debug)]
pub(crate) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Covers a part. Returns the number of its bytes that were not covered before.
    pub(crate) fn add(&mut self, part: StreamRange) -> u64 {
        let (mut from, mut to) = (part.from, part.from + u64::from(part.len));
        let mut new = to - from;
        while let Some((&start, &end)) = self.0.range(..=to).next_back().filter(|&(_, &end)| end >= from) {
            new -= end.min(part.from + u64::from(part.len)).saturating_sub(start.max(part.from));
            (from, to) = (from.min(start), to.max(end));
            self.0.remove(&start);
        }
        self.0.insert(from, to);
        new
    }

    /// Everything below this is covered.
    pub(crate) fn below(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    pub(crate) fn has(&self, part: StreamRange) -> bool {
        let before = self.0.range(..=part.from).next_back();
        before.is_some_and(|(_, &end)| end >= part.from + u64::from(part.len))
    }
}

/// The sending end of the stream.
#[derive(Default, Debug)]
pub(crate) struct Stream {
    /// Bytes that were written so far.
    pub(crate) written: u64,
    /// Its writer has more data than there is room for.
    pub(crate) holds_back: bool,
    /// Total number of bytes, where its writer has announced it.
    pub(crate) known: Option<u64>,
    next: u64,
    lost: VecDeque<StreamRange>,
    acked: Covered,
}

impl Stream {
    /// Creates a stream with `written` bytes written.
    pub(crate) fn of(written: u64) -> Self {
        Self { written, ..Self::default() }
    }

    /// Returns whether everything that was written is acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.acked.below() == self.written
    }

    fn forget_acked(&mut self) {
        while self.lost.front().is_some_and(|&part| self.acked.has(part)) {
            self.lost.pop_front();
        }
    }
}

impl DataSource for Stream {
    type Content = StreamRange;

    fn next_bytes(&mut self, mss: u32) -> Option<u32> {
        self.forget_acked();
        let new = u32::try_from(self.written - self.next).unwrap_or(u32::MAX);
        let len = self.lost.front().map_or(new, |part| part.len);
        (len > 0).then(|| len.min(mss))
    }

    fn is_host_limited(&self) -> bool {
        self.holds_back
    }

    fn bytes_remaining(&self) -> Option<u64> {
        self.known.map(|known| known - self.acked.below())
    }

    fn take(&mut self, _: u8, mss: u32) -> PacketContent<StreamRange> {
        let bytes = self.next_bytes(mss).expect("something is to be sent");
        if let Some(part) = self.lost.front_mut() {
            let content = StreamRange { len: bytes, ..*part };
            (part.from, part.len) = (part.from + u64::from(bytes), part.len - bytes);
            if part.len == 0 {
                self.lost.pop_front();
            }
            return PacketContent { bytes, content, is_retransmission: true };
        }
        let content = StreamRange { from: self.next, len: bytes };
        self.next += u64::from(bytes);
        PacketContent { bytes, content, is_retransmission: false }
    }

    fn acked(&mut self, content: StreamRange) {
        self.acked.add(content);
    }

    fn lost(&mut self, content: StreamRange, _: ReturnReason) {
        if content.len > 0 && !self.acked.has(content) {
            self.lost.push_back(content);
        }
    }
}
