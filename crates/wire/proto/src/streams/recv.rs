//! One direction of a stream, at the end that receives: RFC 9000 §3.2.

use core::mem;

use super::error::{ReadError, StreamError};
use super::id::StreamId;
use crate::assembler::{Assembler, Conflict, Inserted, PIECE_COST};
use crate::frame::StreamFrame;
use crate::receive_memory::ReceiveMemory;
use crate::varint;

/// Maximum number of gaps in a stream: one packet in 20 lost of 80,000, which are 1 Gb/s over a second. Data behind
/// them counts against [`max_ahead`], so they cost no memory of their own, and no order of pieces costs more than a
/// search.
const MAX_GAPS: usize = 4_096;

/// Result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadResult {
    /// Number of bytes.
    pub bytes: usize,
    /// Set if the stream ends after them. It is then forgotten.
    pub ends: bool,
}

/// Result of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameResult {
    /// Its packet can be acknowledged.
    Yes,
    /// The frame would leave too many gaps, or too much data ahead of them. Its packet must be dropped and not
    /// acknowledged.
    Dropped,
}

/// Changes by a frame.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct ReceiveDelta {
    /// Number of bytes by which the stream has grown, as flow control counts.
    pub(super) new: u64,
    /// Number of the stream's bytes that will not be read.
    pub(super) wasted: u64,
    /// Set if there is more to read.
    pub(super) readable: bool,
    /// Set if the stream has just been reset.
    pub(super) reset: bool,
}

#[derive(Debug)]
enum State {
    Open(Assembler),
    /// The application has stopped reading. The end is not known yet.
    Stopped {
        code: u64,
    },
    /// The peer has reset it; the reset was not reported to the application.
    Reset {
        code: u64,
    },
    /// The application knows all.
    Done,
}

#[derive(Debug)]
pub(super) struct Receiving {
    state: State,
    /// End offset of the data that the peer has sent.
    highest: u64,
    /// Total of a message, as stated in its frames.
    total: Option<u64>,
    /// End offset of the stream, from its last frame or a reset. Then it equals `highest`.
    end: Option<u64>,
    /// The end is a reset's: a message may have been meant to be longer.
    is_cut: bool,
    /// Limit of the peer's sending, as last reported to it.
    limit: u64,
    window: u64,
    /// Events that wait to be taken.
    pub(super) is_readable_queued: bool,
    pub(super) is_reset_queued: bool,
}

impl Receiving {
    /// Creates a stream without data. Counts its capacity in `memory`.
    pub(super) fn new(window: u64, memory: ReceiveMemory) -> Self {
        Self {
            state: State::Open(Assembler::new(MAX_GAPS, max_ahead(window), memory)),
            highest: 0,
            total: None,
            end: None,
            is_cut: false,
            limit: window,
            window,
            is_readable_queued: false,
            is_reset_queued: false,
        }
    }

    /// Takes a frame, while all streams may grow by `credit` bytes and this one may keep data that counts `max_ahead`
    /// bytes ahead of gaps. After an error, or if it is dropped, nothing has changed.
    pub(super) fn on_frame(
        &mut self,
        frame: &StreamFrame,
        credit: u64,
        max_ahead: usize,
    ) -> Result<(FrameResult, ReceiveDelta), StreamError> {
        let stream = frame.stream;
        let reaches = frame.offset + frame.data.len() as u64;
        let changed = |before, now| Err(StreamError::EndChanged { stream, before, now });
        if let (Some(before), Some(now)) = (self.total, frame.total)
            && before != now
        {
            return changed(before, now);
        }
        let total = self.total.or(frame.total);
        if let Some(total) = total {
            match self.end {
                Some(end) if total < end || total > end && !self.is_cut => return changed(end, total),
                _ if frame.ends && reaches != total => return changed(total, reaches),
                _ => {}
            }
        }
        if let Some(end) = self.end
            && frame.ends
            && reaches != end
        {
            return changed(end, reaches);
        }
        let end = self.end.or(frame.ends.then_some(reaches));
        if let Some(end) = end.or(total)
            && end < self.highest.max(reaches)
        {
            return Err(StreamError::BeyondEnd { stream, reaches: self.highest.max(reaches), end });
        }
        let new = self.grown(stream, reaches, credit)?;
        let mut change = ReceiveDelta { new, ..ReceiveDelta::default() };
        match &mut self.state {
            State::Open(bytes) => {
                let before = bytes.end();
                let is_ahead = frame.offset > before && !frame.data.is_empty();
                if is_ahead && ahead(bytes) + frame.data.len() + PIECE_COST > max_ahead {
                    return Ok((FrameResult::Dropped, ReceiveDelta::default()));
                }
                match bytes.insert(frame.offset, frame.data) {
                    Ok(Inserted::Stored) => {}
                    Ok(Inserted::Refused) => return Ok((FrameResult::Dropped, ReceiveDelta::default())),
                    Err(Conflict) => return Err(StreamError::Conflict { stream, offset: frame.offset }),
                }
                let at_end = Some(bytes.end()) == end.or(total);
                let knew = self.end.or(self.total).is_some();
                change.readable = bytes.end() > before || at_end && !knew;
            }
            State::Stopped { .. } => change.wasted = new,
            State::Reset { .. } | State::Done => {}
        }
        (self.total, self.end, self.highest) = (total, end, self.highest + new);
        debug_assert!(self.highest <= self.limit, "{} of {} bytes", self.highest, self.limit);
        debug_assert!(self.size().is_none_or(|size| self.highest <= size), "bytes beyond the end");
        self.settle();
        Ok((FrameResult::Yes, change))
    }

    /// Takes a reset (RFC 9000 §4.5). A stream that was received completely is read as if there were none.
    pub(super) fn on_reset(
        &mut self,
        id: StreamId,
        code: u64,
        at: u64,
        credit: u64,
    ) -> Result<ReceiveDelta, StreamError> {
        let stream = id.number();
        if let Some(end) = self.end
            && end != at
        {
            return Err(StreamError::EndChanged { stream, before: end, now: at });
        }
        if at < self.highest {
            return Err(StreamError::BeyondEnd { stream, reaches: self.highest, end: at });
        }
        if let Some(total) = self.total
            && total < at
        {
            return Err(StreamError::BeyondEnd { stream, reaches: at, end: total });
        }
        let new = self.grown(stream, at, credit)?;
        let mut change = ReceiveDelta { new, ..ReceiveDelta::default() };
        match &self.state {
            State::Open(bytes) if bytes.end() == at && (self.end.is_some() || self.total == Some(at)) => {}
            State::Open(bytes) => {
                change.wasted = at - bytes.consumed();
                change.reset = true;
                self.state = State::Reset { code };
            }
            State::Stopped { .. } => change.wasted = new,
            State::Reset { .. } | State::Done => {}
        }
        self.is_cut |= self.end.is_none();
        (self.end, self.highest) = (Some(at), at);
        debug_assert!(self.highest <= self.limit, "{} of {} bytes", self.highest, self.limit);
        self.settle();
        Ok(change)
    }

    /// Returns the number of bytes by which the stream grows when it reaches `reaches`.
    fn grown(&self, stream: u64, reaches: u64, credit: u64) -> Result<u64, StreamError> {
        if reaches > self.limit {
            return Err(StreamError::TooManyStreamBytes { stream, end: reaches, allowed: self.limit });
        }
        let new = reaches.saturating_sub(self.highest);
        if new > credit {
            return Err(StreamError::TooManyBytes { stream, new, allowed: credit });
        }
        Ok(new)
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<ReadResult, ReadError> {
        match &mut self.state {
            State::Open(bytes) => {
                let read = bytes.read(out);
                let ends = Some(bytes.consumed()) == self.end.or(self.total);
                if read == 0 && !ends && bytes.readable() == 0 {
                    return Err(ReadError::Blocked);
                }
                if ends {
                    self.state = State::Done;
                }
                Ok(ReadResult { bytes: read, ends })
            }
            State::Reset { code } => {
                let code = *code;
                self.state = State::Done;
                Err(ReadError::Reset { code })
            }
            State::Stopped { .. } | State::Done => Err(ReadError::Unknown),
        }
    }

    /// Stops reading. Returns the number of bytes that will not be read; none if the application already knew the end.
    pub(super) fn stop(&mut self, code: u64) -> Option<u64> {
        match mem::replace(&mut self.state, State::Stopped { code }) {
            State::Open(bytes) => {
                debug_assert!(bytes.consumed() <= self.highest, "more bytes were read than received");
                let wasted = self.highest - bytes.consumed();
                self.settle();
                Some(wasted)
            }
            State::Reset { .. } => {
                self.state = State::Done;
                Some(0)
            }
            State::Stopped { code } => {
                self.state = State::Stopped { code };
                None
            }
            State::Done => {
                self.state = State::Done;
                None
            }
        }
    }

    /// Marks a stopped stream as done once the number of its bytes is known.
    fn settle(&mut self) {
        if matches!(self.state, State::Stopped { .. }) && self.size() == Some(self.highest) {
            self.state = State::Done;
        }
    }

    /// Returns the length of the stream in bytes, if known.
    pub(super) fn size(&self) -> Option<u64> {
        self.end.or(self.total)
    }

    /// Returns the accounted memory of data ahead of gaps, in bytes.
    pub(super) fn ahead(&self) -> usize {
        match &self.state {
            State::Open(bytes) => ahead(bytes),
            State::Stopped { .. } | State::Reset { .. } | State::Done => 0,
        }
    }

    /// Releases unused capacity unless bytes arrived since the last call.
    pub(super) fn release_idle(&mut self) {
        if let State::Open(bytes) = &mut self.state {
            bytes.release_idle();
        }
    }

    /// Returns whether [`Receiving::release_idle`] may release memory, now or later.
    pub(super) fn is_large(&self) -> bool {
        matches!(&self.state, State::Open(bytes) if bytes.is_large())
    }

    /// Returns whether the application can read, now or later.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns whether a reset is still to be reported to the application.
    pub(super) fn is_reset(&self) -> bool {
        matches!(self.state, State::Reset { .. })
    }

    /// Returns whether the stream is done.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Returns whether the stream can be forgotten.
    pub(super) fn is_over(&self) -> bool {
        self.is_done() && !self.is_readable_queued && !self.is_reset_queued
    }

    /// Returns the code of a stream that the application stopped and the peer has not ended.
    pub(super) fn stopped(&self) -> Option<u64> {
        match self.state {
            State::Stopped { code } => Some(code),
            State::Open(_) | State::Reset { .. } | State::Done => None,
        }
    }

    /// Returns whether `MAX_STREAM_DATA` is due: half of the window was read, and the stream continues beyond the old
    /// limit.
    pub(super) fn wants_raise(&self) -> bool {
        let continues = self.total.is_none_or(|total| total > self.limit);
        continues && self.next_limit().is_some_and(|limit| limit - self.limit >= (self.window / 2).max(1))
    }

    /// Returns whether bytes were read since the last `MAX_STREAM_DATA`.
    pub(super) fn is_unreported(&self) -> bool {
        self.next_limit().is_some_and(|limit| limit > self.limit)
    }

    /// Raises the limit as far as possible. None if the peer needs no more: all data that counts has arrived.
    pub(super) fn raise(&mut self) -> Option<u64> {
        self.limit = self.next_limit()?;
        Some(self.limit)
    }

    /// Returns the limit that can be reported, or that was reported and lost.
    pub(super) fn next_limit(&self) -> Option<u64> {
        let State::Open(bytes) = &self.state else { return None };
        let more = self.end.is_none() && self.total.is_none_or(|total| total > self.highest);
        more.then_some((bytes.consumed() + self.window).min(varint::MAX))
    }

    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> usize {
        match &self.state {
            State::Open(bytes) => bytes.buffered_bytes(),
            State::Stopped { .. } | State::Reset { .. } | State::Done => 0,
        }
    }
}

/// Returns the maximum accounted memory ahead of gaps under a window of `window` bytes. It exceeds the window, because
/// a piece counts more than its bytes.
pub(super) fn max_ahead(window: u64) -> usize {
    usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX)
}

fn ahead(bytes: &Assembler) -> usize {
    bytes.buffered_bytes() - bytes.readable()
}
