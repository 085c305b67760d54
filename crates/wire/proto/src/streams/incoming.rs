//! Frames received from the peer.

use super::control::Control;
use super::error::StreamError;
use super::event::StreamEvent;
use super::id::StreamId;
use super::opened::Admitted;
use super::recv::{self, FrameResult, ReceiveDelta};
use super::send::ResetBy;
use super::{Credited, Direction, Streams};
use crate::frame::StreamFrame;

impl Streams {
    /// Takes a STREAM frame. Frames of streams that are forgotten are ignored.
    ///
    /// # Errors
    /// If the peer may not send it. The connection has to be closed then.
    pub fn on_stream(&mut self, frame: &StreamFrame) -> Result<FrameResult, StreamError> {
        let id = StreamId::from(frame.stream);
        self.ensure_receiving(id)?;
        let credit = self.max_received - self.received;
        let Some(receiving) = self.receiving.get_mut(&id) else { return Ok(FrameResult::Yes) };
        let ahead_of_others = self.ahead - receiving.ahead();
        let max_ahead = recv::max_ahead(self.ours.max_data).saturating_sub(ahead_of_others);
        let (taken, change) = receiving.on_frame(frame, credit, max_ahead)?;
        self.ahead = ahead_of_others + receiving.ahead();
        self.is_large |= receiving.is_large();
        if change.readable && !receiving.is_readable_queued {
            receiving.is_readable_queued = true;
            self.events.push_back(StreamEvent::Readable(id));
        }
        self.account(id, change, Credited::InTime);
        debug_assert!(self.received <= self.max_received, "{} B received of {}", self.received, self.max_received);
        Ok(taken)
    }

    /// Takes a `RESET_STREAM` frame.
    ///
    /// # Errors
    /// If the peer may not send it.
    pub fn on_reset(&mut self, stream: u64, code: u64, total: u64) -> Result<(), StreamError> {
        let id = StreamId::from(stream);
        self.ensure_receiving(id)?;
        let credit = self.max_received - self.received;
        let Some(receiving) = self.receiving.get_mut(&id) else { return Ok(()) };
        let ahead = receiving.ahead();
        let change = receiving.on_reset(id, code, total, credit)?;
        self.ahead = self.ahead - ahead + receiving.ahead();
        if change.reset {
            receiving.is_reset_queued = true;
            self.events.push_back(StreamEvent::Reset { id, code });
        }
        self.account(id, change, Credited::AtOnce);
        debug_assert!(self.received <= self.max_received, "{} B received of {}", self.received, self.max_received);
        Ok(())
    }

    /// Takes a `STOP_SENDING` frame: the stream is reset with the same code, unless it is delivered (RFC 9000 §3.5).
    ///
    /// # Errors
    /// If the peer may not send it.
    pub fn on_stop(&mut self, stream: u64, code: u64) -> Result<(), StreamError> {
        let id = StreamId::from(stream);
        self.ensure_sending(id)?;
        let Some(sending) = self.sending.get_mut(&id) else { return Ok(()) };
        if sending.reset(code, ResetBy::Peer) {
            sending.is_stopped_queued = true;
            self.events.push_back(StreamEvent::Stopped { id, code });
            self.controls.insert(Control::ResetStream(id));
            self.settle(id);
        }
        Ok(())
    }

    /// Takes a `MAX_DATA` frame: the bytes that may be sent on all streams together. A lower limit than before is outdated.
    pub fn on_max_data(&mut self, bytes: u64) {
        self.max_sent = self.max_sent.max(bytes);
        self.settle_connection();
    }

    /// Takes a `MAX_STREAM_DATA` frame. A lower limit than before is outdated.
    ///
    /// # Errors
    /// If the peer may not send it.
    pub fn on_max_stream_data(&mut self, stream: u64, bytes: u64) -> Result<(), StreamError> {
        let id = StreamId::from(stream);
        self.ensure_sending(id)?;
        if let Some(sending) = self.sending.get_mut(&id) {
            sending.raise(bytes);
            self.settle(id);
        }
        Ok(())
    }

    /// Takes a `MAX_STREAMS` frame: the number of streams that may be opened, at most 2^32. A lower limit than before is
    /// outdated.
    pub fn on_max_streams(&mut self, direction: Direction, count: u64) {
        let own = &mut self.own[direction.index()];
        own.limit = own.limit.max(count);
        if own.wanted && own.opened < own.limit {
            own.wanted = false;
            if !core::mem::replace(&mut own.is_event_queued, true) {
                self.events.push_back(StreamEvent::MoreStreams(direction));
            }
        }
    }

    /// Takes a BLOCKED frame. It changes nothing: limits are raised when bytes are read.
    ///
    /// # Errors
    /// If the peer may not send it.
    pub fn on_blocked(&mut self, stream: Option<u64>) -> Result<(), StreamError> {
        stream.map_or(Ok(()), |stream| self.ensure_receiving(StreamId::from(stream)))
    }

    /// Handles the peer's sending on a stream: opens the stream if it is new.
    fn ensure_receiving(&mut self, id: StreamId) -> Result<(), StreamError> {
        if self.receiving.contains_key(&id) {
            return Ok(());
        }
        if !id.is_sent_by(self.side.other()) {
            return Err(StreamError::NotTheirs { stream: id.number() });
        }
        self.ensure_open(id)
    }

    /// Handles a frame of the peer about this end's sending on a stream: opens the stream if it is new.
    fn ensure_sending(&mut self, id: StreamId) -> Result<(), StreamError> {
        if self.sending.contains_key(&id) {
            return Ok(());
        }
        if !id.is_sent_by(self.side) {
            return Err(StreamError::NotOurs { stream: id.number() });
        }
        self.ensure_open(id)
    }

    /// Opens the stream if the peer just does. Afterwards it has its state, or is forgotten.
    fn ensure_open(&mut self, id: StreamId) -> Result<(), StreamError> {
        let (stream, at) = (id.number(), id.direction().index());
        if id.opened_by() == self.side {
            let is_open = id.nth() < self.own[at].opened;
            return if is_open { Ok(()) } else { Err(StreamError::NotOpened { stream }) };
        }
        let peers = &mut self.peers[at];
        let admitted = peers.admit(id.nth()).map_err(|allowed| StreamError::TooManyStreams { stream, allowed })?;
        let was_pending = peers.can_accept();
        if peers.wants_raise() {
            self.controls.insert(Control::MaxStreams(id.direction()));
        }
        if admitted == Admitted::First {
            self.create(id, None);
            if was_pending && !core::mem::replace(&mut self.is_opened_queued, true) {
                self.events.push_back(StreamEvent::Opened);
            }
        }
        Ok(())
    }

    /// Accounts for the changes by a frame.
    fn account(&mut self, id: StreamId, change: ReceiveDelta, credited: Credited) {
        self.received += change.new;
        self.consume(change.wasted, credited);
        self.remove_done_receiving(id);
    }
}
