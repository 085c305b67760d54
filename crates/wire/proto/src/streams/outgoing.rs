//! Frames sent to the peer, and their acknowledgement or loss.

use alloc::vec::Vec;

use super::control::Control;
use super::event::StreamEvent;
use super::id::{Direction, StreamId};
use super::send::{Sending, StreamChunk};
use super::stream_scheduler::Credit;
use super::{Streams, reserve};
use crate::frame::Frame;

impl Streams {
    /// Returns whether [`Streams::put_frame`] would append a frame if there is room.
    pub fn has_pending(&self) -> bool {
        self.scheduler.first(self.credit()).is_some()
    }

    /// Returns the number of bytes that [`Streams::put_frame`] could send before the application writes more or the
    /// peer allows more, and whether the ends of all streams that they belong to are written. Lost bytes count, too.
    pub fn pending(&self) -> (u64, bool) {
        // Reserved bytes first: in which order streams take their turns does not change the sum.
        let credit = self.max_sent - self.sent;
        let reserved = self.waiting.reserved.min(credit);
        let unreserved = (credit - reserved).saturating_sub(self.spare().saturating_sub(reserved));
        let shared = (self.waiting.fresh - self.waiting.reserved).min(unreserved).min(self.shared_left());
        (self.waiting.lost + reserved + shared, self.waiting.open == 0)
    }

    /// Returns the length of all pending bytes in frames that fill `room` bytes each, with the head of the stream that
    /// is next: an upper bound if one stream is pending, by a few bytes.
    pub fn pending_in_frames(&self, room: u64) -> u64 {
        let (bytes, _) = self.pending();
        let next = self
            .scheduler
            .first(Credit::Shared)
            .and_then(|id| self.sending.get(&id).map(|sending| sending.max_head(id)));
        let head = next.unwrap_or(0) as u64;
        bytes + bytes.div_ceil(room.saturating_sub(head).max(1)).saturating_mul(head)
    }

    /// Appends a STREAM frame of at most `room` bytes. Lost bytes go before new ones, regardless of their streams'
    /// priorities. A frame that fills `room` has no length field, so `room` must be all that is left of the packet. None if
    /// nothing is due, or the next frame has no room for a byte.
    pub fn put_frame(&mut self, out: &mut Vec<u8>, room: usize) -> Option<StreamChunk> {
        let (credit, shared) = (self.max_sent - self.sent, self.shared_credit());
        let id = self.scheduler.first(self.credit())?;
        let sending = self.sending.get_mut(&id)?;
        let credit = shared.max(sending.reserved().min(credit));
        let (chunk, new) = sending.put(id, out, room, credit)?;
        self.sent += new;
        debug_assert!(self.sent <= self.max_sent, "{} B sent of {}", self.sent, self.max_sent);
        let need = sending.need();
        self.scheduler.sent(id, &mut sending.slot, need);
        self.settle(id);
        Some(chunk)
    }

    /// Bytes of the peer's limit that are reserved for streams and not used by them.
    fn spare(&self) -> u64 {
        reserve(&self.theirs, &self.ours).saturating_sub(self.waiting.used)
    }

    /// Returns the credit that all streams share: the peer's limit beyond unused reservations, and at most the shared part of
    /// the window minus the bytes that streams are known to hold of it. The second bound is for `MAX_DATA` that arrives
    /// before `MAX_STREAM_DATA`, the first for streams that this end has forgotten and the peer has not read.
    fn shared_credit(&self) -> u64 {
        let unreserved = (self.max_sent - self.sent).saturating_sub(self.spare());
        unreserved.min(self.shared_left())
    }

    /// Returns the part of the peer's window that streams share and do not hold.
    fn shared_left(&self) -> u64 {
        let shared = self.theirs.max_data - reserve(&self.theirs, &self.ours);
        shared.saturating_sub(self.waiting.unreserved)
    }

    /// Returns the credit for new bytes.
    pub(super) fn credit(&self) -> Credit {
        match self.shared_credit() {
            0 if self.sent < self.max_sent => Credit::Reserved,
            0 => Credit::Exhausted,
            _ => Credit::Shared,
        }
    }

    /// Appends the bytes of an earlier frame once more, for a packet that is rebuilt as it was. Returns false, and
    /// appends nothing, if the stream is reset or forgotten, or part of the bytes is acknowledged and gone.
    pub fn put_retransmission(&self, chunk: &StreamChunk, out: &mut Vec<u8>) -> bool {
        self.sending.get(&chunk.stream).is_some_and(|sending| sending.put_retransmission(chunk, out))
    }

    /// Handles the acknowledgement of a packet with this frame.
    pub fn acked(&mut self, chunk: &StreamChunk) {
        let (id, max_bytes) = (chunk.stream, self.max_buffered());
        let Some(sending) = self.sending.get_mut(&id) else { return };
        let was_delivered = sending.is_delivered();
        sending.acked(chunk);
        if sending.take_room(max_bytes) && !core::mem::replace(&mut sending.is_writable_queued, true) {
            self.events.push_back(StreamEvent::Writable(id));
        }
        if sending.is_delivered() && !was_delivered {
            sending.is_delivered_queued = true;
            self.events.push_back(StreamEvent::Delivered(id));
        }
        self.settle(id);
    }

    /// Handles the loss of a packet with this frame: its unacknowledged bytes are retransmitted.
    pub fn lost(&mut self, chunk: &StreamChunk) {
        if let Some(sending) = self.sending.get_mut(&chunk.stream) {
            sending.lost(chunk);
            self.settle(chunk.stream);
        }
    }

    /// Returns whether [`Streams::next_control`] returns a frame.
    pub fn has_control(&self) -> bool {
        !self.controls.is_empty()
    }

    /// Takes the next frame to be sent other than STREAM.
    pub fn next_control(&mut self) -> Option<Control> {
        self.controls.pop_first()
    }

    /// Appends a frame with the present values, of at most [`MAX_CONTROL`](super::MAX_CONTROL) bytes. Returns
    /// false, and appends nothing, if it is not needed any more; that is never the case right after
    /// [`Streams::next_control`] returned it.
    pub fn put_control(&mut self, control: Control, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let frame = self.control_frame(control);
        if let Some(frame) = frame {
            frame.put(out);
        }
        debug_assert!(out.len() - before <= super::MAX_CONTROL, "{control:?} takes {} B", out.len() - before);
        frame.is_some()
    }

    fn control_frame(&mut self, control: Control) -> Option<Frame<'static>> {
        Some(match control {
            Control::MaxData => {
                self.max_received = self.next_max_received();
                Frame::MaxData(self.max_received)
            }
            Control::MaxStreams(direction) => {
                let count = self.peers[direction.index()].raise();
                Frame::MaxStreams { one_way: direction == Direction::OneWay, count }
            }
            Control::MaxStreamData(id) => {
                Frame::MaxStreamData { stream: id.number(), bytes: self.receiving.get_mut(&id)?.raise()? }
            }
            Control::ResetStream(id) => {
                let (code, total) = self.sending.get(&id)?.reset_due()?;
                Frame::ResetStream { stream: id.number(), code, total }
            }
            Control::StopSending(id) => {
                Frame::StopSending { stream: id.number(), code: self.receiving.get(&id)?.stopped()? }
            }
            Control::Blocked(stream) => {
                Frame::Blocked { stream: stream.map(StreamId::number), at: self.blocked(stream)? }
            }
        })
    }

    fn blocked(&self, stream: Option<StreamId>) -> Option<u64> {
        stream.map_or(self.blocked_at, |id| self.sending.get(&id).and_then(Sending::blocked))
    }

    /// Handles the acknowledgement of a packet with this frame.
    pub fn control_acked(&mut self, control: Control) {
        if let Control::ResetStream(id) = control
            && let Some(sending) = self.sending.get_mut(&id)
        {
            sending.reset_acked();
            self.controls.remove(&control);
            self.remove_done_sending(id);
        }
    }

    /// Handles the loss of a packet with this frame, which is sent again if still needed.
    pub fn control_lost(&mut self, control: Control) {
        let is_needed = match control {
            Control::MaxData => return self.raise_limits(),
            Control::MaxStreams(_) => true,
            Control::MaxStreamData(id) => {
                self.receiving.get(&id).is_some_and(|receiving| receiving.next_limit().is_some())
            }
            Control::ResetStream(id) => self.sending.get(&id).is_some_and(|sending| sending.reset_due().is_some()),
            Control::StopSending(id) => self.receiving.get(&id).is_some_and(|receiving| receiving.stopped().is_some()),
            Control::Blocked(stream) => self.blocked(stream).is_some(),
        };
        if is_needed {
            self.controls.insert(control);
        }
    }
}
