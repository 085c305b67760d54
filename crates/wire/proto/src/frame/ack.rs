//! ACK frames: the packets received on a path, with ECN counts and, if requested, receive times.

use alloc::vec::Vec;

use flow::{EcnCounts, MAX_RANGES, MAX_TIMES, Range};
use units::{Span, Time};

use super::fields::{Fields, FrameError};
use crate::narrow::{to_i64, to_usize};
use crate::varint::{self, Reader};

/// The exclusive upper bound of spans and times, in ns: 104 days, which fit in picoseconds.
pub const MAX_NS: u64 = 1 << 53;
pub(super) const ACK: u64 = 0x02;
pub(super) const ACK_TIMES: u64 = 0x03;

/// The packets received on a path. Ranges and times were checked when the frame was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// The path's number.
    pub path: u32,
    /// The newest range of received packets.
    pub newest: Range,
    /// Time between the arrival of the newest packet and this ACK.
    pub delay: Span,
    /// Number of received packets by ECN codepoint.
    pub ecn: EcnCounts,
    ranges: (usize, &'a [u8]),
    times: (usize, &'a [u8]),
}

/// Content of an ACK frame that is written.
#[derive(Clone, Copy, Debug)]
pub struct AckContent<'a> {
    /// The path's number.
    pub path: u32,
    /// Time between the arrival of the newest packet and this ACK.
    pub delay: Span,
    /// Ranges of received packets, newest first.
    pub ranges: &'a [Range],
    /// Number of received packets by ECN codepoint.
    pub ecn: EcnCounts,
    /// Receive times as packet number and time, highest number first.
    pub times: &'a [(u64, Time)],
}

impl<'a> Ack<'a> {
    /// Returns the ranges, newest first; at most [`MAX_RANGES`], with at least one missing number between two.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + 'a {
        let (count, bytes) = self.ranges;
        let (mut reader, mut first) = (Reader::new(bytes), self.newest.first);
        let others = (0..count).map_while(move |_| {
            let range = next_range(&mut reader, first)?;
            first = range.first;
            Some(range)
        });
        core::iter::once(self.newest).chain(others)
    }

    /// Returns receive times by the receiver's clock as packet number and time, highest number first; at most
    /// [`MAX_TIMES`].
    pub fn received(&self) -> impl Iterator<Item = (u64, Time)> + 'a {
        let (count, bytes) = self.times;
        let (mut reader, mut number) = (Reader::new(bytes), self.newest.last);
        (0..count).map_while(move |_| {
            number = number.checked_sub(reader.varint().ok()?)?;
            Some((number, Time::from_ns(reader.varint().ok()?)))
        })
    }

    /// Appends a frame with this content: ranges and times in the order of [`Ack::ranges`] and [`Ack::received`]. A delay or
    /// time that is too long is limited to just under [`MAX_NS`].
    ///
    /// # Panics
    /// In debug builds, if there is no range, or one is not below the one before it.
    pub fn put(out: &mut Vec<u8>, content: &AckContent) {
        let &AckContent { path, delay, ranges, ecn, times } = content;
        let Some((newest, others)) = ranges.split_first() else {
            debug_assert!(false, "an acknowledgement of nothing");
            return;
        };
        debug_assert!(ranges.len() <= MAX_RANGES && times.len() <= MAX_TIMES);
        varint::put(out, if times.is_empty() { ACK } else { ACK_TIMES });
        varint::put(out, path.into());
        varint::put(out, newest.last);
        varint::put(out, delay.ns().max(0).cast_unsigned().min(MAX_NS - 1));
        varint::put(out, others.len() as u64);
        varint::put(out, newest.last - newest.first);
        let mut above = newest.first;
        for range in others {
            debug_assert!(range.first <= range.last && range.last + 1 < above, "{range:?} below {above}");
            varint::put(out, above - range.last - 2);
            varint::put(out, range.last - range.first);
            above = range.first;
        }
        for count in [ecn.ect0, ecn.ect1, ecn.ce] {
            varint::put(out, count);
        }
        if times.is_empty() {
            return;
        }
        varint::put(out, times.len() as u64);
        let mut above = newest.last;
        for &(number, time) in times {
            varint::put(out, above - number);
            varint::put(out, time.ns().min(MAX_NS - 1));
            above = number;
        }
    }

    /// Reads the fields of a frame of type [`ACK`] or [`ACK_TIMES`].
    pub(super) fn read(fields: &mut Fields<'_, 'a>, kind: u64) -> Result<Self, FrameError> {
        let path = fields.path()?;
        let last = fields.varint()?;
        let delay = Span::from_ns(to_i64(fields.within("delay", 0, MAX_NS - 1)?));
        let count = to_usize(fields.within("ranges", 0, MAX_RANGES as u64 - 1)?);
        let newest = Range { first: last - fields.within("first", 0, last)?, last };
        let before = fields.reader.rest();
        let mut above = newest.first;
        for done in 0..count {
            // One number is missing, and one is acknowledged.
            let Some(max_last) = above.checked_sub(2) else {
                return Err(fields.out_of("ranges", count as u64, 0, done as u64));
            };
            let last = max_last - fields.within("gap", 0, max_last)?;
            above = last - fields.within("length", 0, last)?;
        }
        let ranges = (count, &before[..before.len() - fields.reader.rest().len()]);
        let ecn = EcnCounts { ect0: fields.varint()?, ect1: fields.varint()?, ce: fields.varint()? };
        let count = if kind == ACK_TIMES { to_usize(fields.within("times", 0, MAX_TIMES as u64)?) } else { 0 };
        let before = fields.reader.rest();
        let mut above = newest.last;
        for done in 0..count {
            above -= fields.within("back", u64::from(done > 0), above)?;
            fields.within("time", 0, MAX_NS - 1)?;
        }
        let times = (count, &before[..before.len() - fields.reader.rest().len()]);
        Ok(Self { path, newest, delay, ecn, ranges, times })
    }
}

/// Returns the range below one that begins at `above`; none if there cannot be one.
fn next_range(reader: &mut Reader, above: u64) -> Option<Range> {
    let last = above.checked_sub(reader.varint().ok()?.checked_add(2)?)?;
    let first = last.checked_sub(reader.varint().ok()?)?;
    Some(Range { first, last })
}
