//! One direction of a stream, at the end that sends: RFC 9000 §3.1.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use rangemap::RangeSet;

use super::error::WriteError;
use super::id::StreamId;
use super::lost::LostRanges;
use super::stream_scheduler::{Need, StreamSlot};
use super::waiting::SendBacklog;
use crate::frame::StreamFrame;
use crate::narrow::{to_u32, to_usize};
use crate::varint;

/// The contents of a STREAM frame that was written: its stream and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamChunk {
    /// The stream.
    pub stream: StreamId,
    /// Offset of its bytes.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
    /// Set if the stream ends after them.
    pub ends: bool,
    /// Set if all of it was sent before.
    pub is_retransmission: bool,
    /// Set if the frame has a length field. If not, it must be the last one of its packet.
    pub counted: bool,
}

impl StreamChunk {
    /// Returns the end offset of its bytes.
    pub const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}

/// End that has reset a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResetBy {
    /// The application of this end.
    Application,
    /// The peer, by `STOP_SENDING`.
    Peer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SendPhase {
    /// The application may write.
    Open,
    /// The end was written and has to be sent, or sent again.
    EndDue,
    /// The end is in flight.
    EndSent,
    EndAcked,
    /// Only a reset is sent, until it is acknowledged.
    Reset {
        code: u64,
        by: ResetBy,
        acked: bool,
    },
}

#[derive(Debug)]
pub(super) struct Sending {
    /// From `acked_to` on.
    bytes: VecDeque<u8>,
    /// All bytes before this offset are acknowledged.
    acked_to: u64,
    /// All bytes from this offset on were never sent. Not below `acked_to`.
    next: u64,
    /// Acknowledged, from `acked_to` on.
    acked: RangeSet<u64>,
    /// Bytes to be retransmitted: between `acked_to` and `next`, and not in `acked`.
    lost: LostRanges,
    phase: SendPhase,
    /// Number of bytes of a message.
    total: Option<u64>,
    /// Limit of the peer, and its window beyond the data that it has read.
    limit: u64,
    window: u64,
    pub(super) slot: StreamSlot,
    /// Its part of the sum over all streams.
    pub(super) summed: SendBacklog,
    /// The application could not write all of its data.
    wants_room: bool,
    /// Limit in the last BLOCKED frame of the stream, sent or due.
    pub(super) blocked_at: Option<u64>,
    /// Events that wait to be taken.
    pub(super) is_writable_queued: bool,
    pub(super) is_stopped_queued: bool,
    pub(super) is_delivered_queued: bool,
}

impl Sending {
    /// Creates a stream. The peer keeps a window of `window` bytes. A message of a known total ends by itself.
    pub(super) fn new(window: u64, total: Option<u64>) -> Self {
        Self {
            bytes: VecDeque::new(),
            acked_to: 0,
            next: 0,
            acked: RangeSet::new(),
            lost: LostRanges::default(),
            phase: if total == Some(0) { SendPhase::EndDue } else { SendPhase::Open },
            total,
            limit: window,
            window,
            slot: StreamSlot::new(),
            summed: SendBacklog::default(),
            wants_room: false,
            blocked_at: None,
            is_writable_queued: false,
            is_stopped_queued: false,
            is_delivered_queued: false,
        }
    }

    /// Takes the bytes that fit into a buffer of `max_bytes` bytes.
    pub(super) fn write(&mut self, data: &[u8], max_bytes: u64) -> Result<usize, WriteError> {
        self.writable()?;
        let written = self.written();
        if let Some(total) = self.total
            && data.len() as u64 > total - written
        {
            return Err(WriteError::TooLong { written: written.saturating_add(data.len() as u64), total });
        }
        let room = max_bytes.saturating_sub(self.bytes.len() as u64).min(varint::MAX - written);
        let count = to_usize(room.min(data.len() as u64));
        self.bytes.extend(&data[..count]);
        if !data.is_empty() {
            self.wants_room = count < data.len();
        }
        if self.total == Some(self.written()) {
            self.phase = SendPhase::EndDue;
        }
        Ok(count)
    }

    /// Bytes that wait for acknowledgement.
    pub(super) fn buffered(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn finish(&mut self) -> Result<(), WriteError> {
        self.writable()?;
        if let Some(total) = self.total {
            return Err(WriteError::TooShort { written: self.written(), total });
        }
        self.phase = SendPhase::EndDue;
        Ok(())
    }

    fn writable(&self) -> Result<(), WriteError> {
        match self.phase {
            SendPhase::Open => Ok(()),
            SendPhase::EndDue | SendPhase::EndSent | SendPhase::EndAcked => Err(WriteError::Finished),
            SendPhase::Reset { code, by: ResetBy::Peer, .. } => Err(WriteError::Stopped { code }),
            SendPhase::Reset { code, by: ResetBy::Application, .. } => Err(WriteError::Reset { code }),
        }
    }

    /// Abandons undelivered data. Returns whether that changed anything.
    pub(super) fn reset(&mut self, code: u64, by: ResetBy) -> bool {
        if self.is_delivered() || matches!(self.phase, SendPhase::Reset { .. }) {
            return false;
        }
        self.phase = SendPhase::Reset { code, by, acked: false };
        self.bytes = VecDeque::new();
        self.acked.clear();
        self.lost = LostRanges::default();
        self.wants_room = false;
        true
    }

    /// Raises the peer's limit. A lower limit than before is outdated.
    pub(super) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Sets the peer's window, when it is first known.
    pub(super) fn set_window(&mut self, window: u64) {
        self.window = window;
        self.raise(window);
    }

    /// Returns the bytes in flight, or at the peer and unread, as far as known from its limits.
    fn unread(&self) -> u64 {
        self.next.saturating_sub(self.limit.saturating_sub(self.window))
    }

    /// Returns the number of new bytes that may be sent however much other streams hold.
    pub(super) fn reserved(&self) -> u64 {
        super::reservation(self.window).saturating_sub(self.unread())
    }

    /// Appends a frame of at most `room` bytes, with at most `credit` new bytes of data. Returns the frame's contents
    /// and the number of new bytes.
    pub(super) fn put(
        &mut self,
        id: StreamId,
        out: &mut Vec<u8>,
        room: usize,
        credit: u64,
    ) -> Option<(StreamChunk, u64)> {
        let written = self.written();
        let (offset, until) = match self.lost.first() {
            Some(lost) => (lost.start, lost.end),
            None => (self.next, self.sendable().min(self.next.saturating_add(credit))),
        };
        let mut frame =
            StreamFrame { stream: id.number(), offset, total: self.total, ends: false, counted: false, data: &[] };
        let head = self.head(id, offset);
        let wanted = usize::try_from(until - offset).unwrap_or(usize::MAX).min(u32::MAX as usize);
        let room = room.checked_sub(head)?;
        // Without a length field the frame must fill the room.
        let len = if wanted >= room {
            room
        } else {
            frame.counted = true;
            wanted.min(room.checked_sub(varint::len(wanted as u64))?)
        };
        let end = offset + len as u64;
        frame.ends = end == written && matches!(self.phase, SendPhase::EndDue | SendPhase::EndSent);
        if len == 0 && !frame.ends {
            return None;
        }
        frame.put_head(len, out);
        self.copy(offset, len, out);
        if offset < self.next {
            self.lost.remove(offset..end);
        }
        let new = end.saturating_sub(self.next);
        self.next += new;
        debug_assert!(new == 0 || new <= credit && self.next <= self.limit, "{new} new bytes, {credit} allowed");
        debug_assert!(self.acked_to <= self.next && self.next <= written, "{} of {written} bytes", self.next);
        if frame.ends {
            self.phase = SendPhase::EndSent;
        }
        let is_retransmission = offset < self.next - new;
        Some((
            StreamChunk {
                stream: id,
                offset,
                len: to_u32(len as u64),
                ends: frame.ends,
                is_retransmission,
                counted: frame.counted,
            },
            new,
        ))
    }

    /// Returns the length of a frame's head in bytes, without the length field that only a frame followed by others
    /// has.
    fn head(&self, id: StreamId, offset: u64) -> usize {
        1 + varint::len(id.number()) + varint::len(offset) + self.total.map_or(0, varint::len)
    }

    /// Returns the maximum length of the heads of the frames that are due.
    pub(super) fn max_head(&self, id: StreamId) -> usize {
        self.head(id, self.written())
    }

    /// Appends the same frame as before. Returns false if not all of its bytes are stored.
    pub(super) fn put_retransmission(&self, chunk: &StreamChunk, out: &mut Vec<u8>) -> bool {
        if matches!(self.phase, SendPhase::Reset { .. }) || chunk.offset < self.acked_to || chunk.end() > self.next {
            return false;
        }
        let (stream, StreamChunk { offset, ends, counted, .. }) = (chunk.stream.number(), *chunk);
        StreamFrame { stream, offset, total: self.total, ends, counted, data: &[] }.put_head(chunk.len as usize, out);
        self.copy(offset, chunk.len as usize, out);
        true
    }

    fn copy(&self, offset: u64, len: usize, out: &mut Vec<u8>) {
        let from = to_usize(offset - self.acked_to);
        let (front, back) = self.bytes.as_slices();
        let part = |slice: &[u8], from: usize, to: usize| from.min(slice.len())..to.min(slice.len());
        out.extend_from_slice(&front[part(front, from, from + len)]);
        let behind = |at: usize| at.saturating_sub(front.len());
        out.extend_from_slice(&back[part(back, behind(from), behind(from + len))]);
    }

    /// Handles the acknowledgement of these bytes.
    pub(super) fn acked(&mut self, chunk: &StreamChunk) {
        let range = self.unacked(chunk);
        if matches!(self.phase, SendPhase::Reset { .. }) {
            return;
        }
        if chunk.ends {
            self.phase = SendPhase::EndAcked;
        }
        if range.is_empty() {
            return;
        }
        self.lost.remove(range.clone());
        if range.start > self.acked_to {
            self.acked.insert(range);
            return;
        }
        let mut end = range.end;
        while let Some(first) = self.acked.first().filter(|first| first.start <= end).cloned() {
            end = end.max(first.end);
            self.acked.remove(first);
        }
        self.bytes.drain(..to_usize(end - self.acked_to));
        self.acked_to = end;
        debug_assert!(self.acked_to <= self.next, "{} of {} bytes are acknowledged", self.acked_to, self.next);
    }

    /// Queues the unacknowledged bytes of a lost frame for retransmission.
    pub(super) fn lost(&mut self, chunk: &StreamChunk) {
        debug_assert!(self.acked_to <= self.next, "{} of {} bytes are acknowledged", self.acked_to, self.next);
        let range = self.unacked(chunk);
        if matches!(self.phase, SendPhase::Reset { .. }) {
            return;
        }
        if chunk.ends && self.phase == SendPhase::EndSent {
            self.phase = SendPhase::EndDue;
        }
        if range.is_empty() {
            return;
        }
        if self.acked.is_empty() {
            self.lost.add(range);
        } else {
            for gap in self.acked.gaps(&range) {
                self.lost.add(gap);
            }
        }
    }

    /// Returns the part of a chunk that is not below `acked_to`. Empty if there is none.
    fn unacked(&self, chunk: &StreamChunk) -> Range<u64> {
        chunk.offset.max(self.acked_to)..chunk.end().min(self.next)
    }

    /// Returns whether to report room to the application: it waits for some, and an eighth of the buffer is free. While a
    /// packet that was lost twice is on its way, most of the buffer may be sent and not acknowledged in order; if half had to
    /// be free, there would be nothing to send meanwhile.
    pub(super) fn take_room(&mut self, max_bytes: u64) -> bool {
        let has_room =
            self.wants_room && self.bytes.len() as u64 <= max_bytes - max_bytes / 8 && self.phase == SendPhase::Open;
        self.wants_room &= !has_room;
        has_room
    }

    pub(super) fn need(&self) -> Need {
        match self.phase {
            SendPhase::Reset { .. } => Need::Nothing,
            _ if self.lost.bytes() > 0 => Need::Free,
            _ if self.sendable() > self.next && self.reserved() > 0 => Need::Reserved,
            _ if self.sendable() > self.next => Need::Shared,
            SendPhase::EndDue if self.next == self.written() => Need::Free,
            SendPhase::Open | SendPhase::EndDue | SendPhase::EndSent | SendPhase::EndAcked => Need::Nothing,
        }
    }

    /// Returns the data that waits to be sent, as far as the stream's limit allows.
    pub(super) fn waiting(&self) -> SendBacklog {
        let buffered = self.buffered();
        let is_host_limited = self.blocked().is_some() || (self.wants_room && self.phase == SendPhase::Open);
        let unread = self.unread();
        let used = unread.min(super::reservation(self.window));
        let waiting =
            SendBacklog { used, unreserved: unread - used, is_host_limited, buffered, ..SendBacklog::default() };
        if self.need() == Need::Nothing {
            return waiting;
        }
        let fresh = self.sendable().saturating_sub(self.next);
        SendBacklog {
            lost: self.lost.bytes(),
            fresh,
            reserved: fresh.min(self.reserved()),
            is_open: self.phase == SendPhase::Open,
            ..waiting
        }
    }

    /// Returns the limit that blocks new bytes.
    pub(super) fn blocked(&self) -> Option<u64> {
        let waits = self.written() > self.next && !matches!(self.phase, SendPhase::Reset { .. });
        (waits && self.next >= self.limit).then_some(self.limit)
    }

    /// Returns the code of a reset that the peer has not acknowledged, and the number of bytes that count as sent.
    pub(super) fn reset_due(&self) -> Option<(u64, u64)> {
        match self.phase {
            SendPhase::Reset { code, acked: false, .. } => Some((code, self.next)),
            _ => None,
        }
    }

    pub(super) fn reset_acked(&mut self) {
        if let SendPhase::Reset { acked, .. } = &mut self.phase {
            *acked = true;
        }
    }

    /// Returns whether the peer has acknowledged everything and the end.
    pub(super) fn is_delivered(&self) -> bool {
        self.phase == SendPhase::EndAcked && self.bytes.is_empty()
    }

    /// Returns whether the stream can be forgotten.
    pub(super) fn is_over(&self) -> bool {
        let done = self.is_delivered() || matches!(self.phase, SendPhase::Reset { acked: true, .. });
        done && !self.is_writable_queued && !self.is_stopped_queued && !self.is_delivered_queued
    }

    /// Returns whether the application may write.
    pub(super) fn is_open(&self) -> bool {
        self.phase == SendPhase::Open
    }

    /// Returns the end offset of the written bytes.
    fn written(&self) -> u64 {
        self.acked_to + self.bytes.len() as u64
    }

    /// Returns the end offset of the written bytes that the peer allows to be sent.
    fn sendable(&self) -> u64 {
        self.written().min(self.limit)
    }

    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> usize {
        self.bytes.len()
    }
}
