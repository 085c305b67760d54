//! All streams of one connection, in both directions, under flow control: RFC 9000 §2 to §4, restricted and extended as
//! in `docs/src/transport-data.md`, "Streams, messages, datagrams".
//!
//! The application opens, accepts, writes and reads. The peer's frames are passed to the methods `on_...`. Frames to be
//! sent are taken from [`Streams::put_frame`] and [`Streams::next_control`], and the sender of packets reports each as
//! acknowledged or lost.
//!
//! A stream is kept until three conditions are met: the peer has acknowledged all data of this end; the application has read
//! the peer's data, was notified of a reset, or has stopped the stream; and it has taken the stream's events. Then no state
//! is left, and the peer may open another one. So an application must take events until there are none.
//!
//! An end keeps, for any frames of a peer, at most [`Limits::max_data`] bytes in order and, ahead of gaps, pieces that count
//! at most twice that, each its length and 64 bytes. A receive buffer keeps capacity that was read until its stream is idle:
//! at most 64 MiB over all streams of an endpoint, beyond 32 KiB of each stream. The state of a stream takes less than 1 KiB.
//!
//! ```
//! use proto::frame::{Frame, Frames};
//! use proto::side::Side;
//! use proto::streams::{Direction, Limits, ReadResult, Streams};
//!
//! let limits = Limits { max_data: 1000, max_stream_data: 1000, max_streams_bidi: 1, max_streams_uni: 1 };
//! let mut client = Streams::new(Side::Client, limits, 1000);
//! let mut listener = Streams::new(Side::Listener, limits, 1000);
//! client.set_peer_limits(limits);
//!
//! let id = client.open(Direction::OneWay).unwrap();
//! assert_eq!(client.write(id, b"hello"), Ok(5));
//! client.finish(id).unwrap();
//! let mut payload = Vec::new();
//! let chunk = client.put_frame(&mut payload, 1200).unwrap();
//! for frame in Frames::new(&payload) {
//!     let Ok(Frame::Stream(frame)) = frame else { panic!("a stream") };
//!     listener.on_stream(&frame).unwrap();
//! }
//! client.acked(&chunk);
//! assert!(client.is_delivered(id));
//!
//! assert_eq!(listener.accept(), Some(id));
//! let mut hello = [0; 10];
//! assert_eq!(listener.read(id, &mut hello), Ok(ReadResult { bytes: 5, ends: true }));
//! assert_eq!(&hello[..5], b"hello");
//! ```

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use self::opened::{Admitted, StreamCountLimit};
use self::recv::Receiving;
use self::send::{ResetBy, Sending};
use self::stream_scheduler::StreamScheduler;
use self::waiting::SendBacklog;
use crate::receive_memory::ReceiveMemory;
use crate::side::Side;
use crate::varint;

mod control;
mod error;
mod event;
mod id;
mod incoming;
mod lost;
mod opened;
mod outgoing;
mod recv;
mod send;
mod stream_scheduler;
mod waiting;

pub use control::{Control, MAX_CONTROL};
pub use error::{FLOW, ReadError, STREAM, StreamError, WriteError};
pub use event::StreamEvent;
pub use id::{Direction, StreamId};
pub use recv::{FrameResult, ReadResult};
pub use send::StreamChunk;

/// Minimum buffer of a stream, in bytes, regardless of other streams: the amount that a program writes at a time.
const MIN_BUFFERED: u64 = 64 << 10;
/// Bytes of a connection's window that are reserved for each stream that a peer may have open: this much may be in
/// flight or unread, however much other streams hold. With small windows it is less
/// (`docs/src/transport-data.md`, "Streams, messages, datagrams").
pub const RESERVED: u64 = 64 << 10;

/// Initial limits of an endpoint's sending, as in its peer's transport parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes on all streams together; below 2^62.
    pub max_data: u64,
    /// Bytes on each stream; below 2^62.
    pub max_stream_data: u64,
    /// Streams of both directions that it may open; at most 2^32.
    pub max_streams_bidi: u64,
    /// One-way streams that it may open; at most 2^32.
    pub max_streams_uni: u64,
}

impl Limits {
    /// No limits have been received from the peer yet.
    const NONE: Self = Self { max_data: 0, max_stream_data: 0, max_streams_bidi: 0, max_streams_uni: 0 };

    /// Streams, by direction.
    fn max_streams(&self) -> [u64; 2] {
        [self.max_streams_bidi, self.max_streams_uni]
    }
}

/// Returns the reservation of a stream with a window of `window` bytes.
fn reservation(window: u64) -> u64 {
    RESERVED.min(window)
}

/// Returns the bytes of `receiver`'s limits that are reserved for the streams on which `sender` may send. A stream can
/// always have its whole window if no other holds anything.
fn reserve(receiver: &Limits, sender: &Limits) -> u64 {
    let streams = receiver.max_streams_bidi + receiver.max_streams_uni + sender.max_streams_bidi;
    let wanted = reservation(receiver.max_stream_data).saturating_mul(streams);
    wanted.min(receiver.max_data.saturating_sub(receiver.max_stream_data))
}

/// Time at which the peer gets more credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Credited {
    /// Before it runs out.
    InTime,
    /// At once: a stream has been given up, and much may have been freed.
    AtOnce,
}

/// Streams of one direction that this end opens.
#[derive(Clone, Copy, Default, Debug)]
struct LocalStreams {
    opened: u64,
    /// Limit of the number of streams that may be opened.
    limit: u64,
    /// The application was refused one.
    wanted: bool,
    is_event_queued: bool,
}

/// All streams of one connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    /// Initial limits of the peer's sending: afterwards, the windows.
    ours: Limits,
    /// Initial limits of this end's sending.
    theirs: Limits,
    send_buffer: u64,
    /// Approximate limit of the bytes that all streams hold together, if there is one.
    send_pool: Option<u64>,
    sending: BTreeMap<StreamId, Sending>,
    receiving: BTreeMap<StreamId, Receiving>,
    /// By direction.
    own: [LocalStreams; 2],
    /// By direction.
    peers: [StreamCountLimit; 2],
    scheduler: StreamScheduler,
    waiting: waiting::Sum,
    /// Bytes that the application has announced and not yet written.
    expected: Option<u64>,
    /// Bytes that were sent for the first time, and may be.
    sent: u64,
    max_sent: u64,
    /// Limit in the last BLOCKED frame of the connection, sent or due.
    blocked_at: Option<u64>,
    /// Bytes that were received, as flow control counts them; that may be received, by the last limit sent; and that
    /// were read or will not be read.
    received: u64,
    max_received: u64,
    consumed: u64,
    /// Streams that were read since their last `MAX_STREAM_DATA`.
    unreported: BTreeSet<StreamId>,
    /// Accounted memory of the bytes that all streams keep ahead of gaps.
    ahead: usize,
    /// Counter of receive buffer memory.
    memory: ReceiveMemory,
    /// Set if [`Streams::release_idle`] may release memory.
    is_large: bool,
    controls: BTreeSet<Control>,
    events: VecDeque<StreamEvent>,
    is_opened_queued: bool,
}

impl Streams {
    /// Creates the state of a connection without streams. The peer may send within `ours`. A stream holds at most
    /// `send_buffer` unacknowledged bytes.
    ///
    /// # Panics
    /// In debug builds, if a limit is out of its range.
    pub fn new(side: Side, ours: Limits, send_buffer: u64) -> Self {
        debug_assert!(ours.max_data <= varint::MAX && ours.max_stream_data <= varint::MAX);
        debug_assert!(ours.max_streams().iter().all(|&count| count <= 1 << 32));
        Self {
            side,
            ours,
            theirs: Limits::NONE,
            send_buffer,
            send_pool: None,
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            own: [LocalStreams::default(); 2],
            peers: ours.max_streams().map(StreamCountLimit::new),
            scheduler: StreamScheduler::default(),
            waiting: waiting::Sum::default(),
            expected: None,
            sent: 0,
            max_sent: 0,
            blocked_at: None,
            received: 0,
            max_received: ours.max_data,
            consumed: 0,
            unreported: BTreeSet::new(),
            ahead: 0,
            memory: ReceiveMemory::default(),
            is_large: false,
            controls: BTreeSet::new(),
            events: VecDeque::new(),
            is_opened_queued: false,
        }
    }

    /// Limits a stream to `bytes` unacknowledged bytes from now on; bytes that it already holds stay.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.send_buffer = bytes;
    }

    /// Limits all streams together to about `bytes` unacknowledged bytes: above that, a stream is allowed up to 64 KiB.
    pub fn set_send_pool(&mut self, bytes: u64) {
        self.send_pool = Some(bytes);
    }

    /// Sets the counter of receive buffer memory, which all connections of an endpoint share. Applies to streams opened
    /// from now on.
    pub(crate) fn set_receive_memory(&mut self, memory: ReceiveMemory) {
        self.memory = memory;
    }

    /// Returns whether [`Streams::release_idle`] may release memory, now or later.
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }

    /// Releases unused receive memory of streams on which nothing arrived since the last call.
    pub(crate) fn release_idle(&mut self) {
        self.is_large = false;
        for receiving in self.receiving.values_mut() {
            receiving.release_idle();
            self.is_large |= receiving.is_large();
        }
    }

    /// Returns whether an application has more to send, and a full buffer or the peer's limit blocks it.
    pub fn is_host_limited(&self) -> bool {
        self.waiting.host_limited > 0 || self.blocked_at.is_some()
    }

    /// Announces about `bytes` more bytes that the application will write, on all streams together; none if it does not
    /// know. Each write is subtracted.
    pub fn announce(&mut self, bytes: Option<u64>) {
        self.expected = bytes;
    }

    /// Withdraws `bytes` of the announced bytes, which will not be written.
    pub fn withdraw(&mut self, bytes: u64) {
        self.expected = self.expected.map(|expected| expected.saturating_sub(bytes));
    }

    /// Returns the number of unacknowledged bytes, including those not yet written; none unless the application has
    /// announced these. Bytes acknowledged behind a gap count until the gap is closed.
    pub fn left(&self) -> Option<u64> {
        self.expected.map(|expected| expected.saturating_add(self.waiting.buffered))
    }

    /// Returns the maximum number of bytes that a stream may hold now.
    fn max_buffered(&self) -> u64 {
        let has_room = self.send_pool.is_none_or(|pool| self.waiting.buffered < pool);
        if has_room { self.send_buffer } else { self.send_buffer.min(MIN_BUFFERED) }
    }

    /// Sets the limits of this end's sending, from the peer's transport parameters. Before, no stream can be opened.
    pub fn set_peer_limits(&mut self, limits: Limits) {
        debug_assert!(limits.max_data <= varint::MAX && limits.max_stream_data <= varint::MAX, "{limits:?}");
        self.theirs = limits;
        let open: Vec<StreamId> = self.sending.keys().copied().collect();
        for id in open {
            if let Some(sending) = self.sending.get_mut(&id) {
                sending.set_window(limits.max_stream_data);
            }
            self.settle(id);
        }
        self.on_max_data(limits.max_data);
        for (direction, count) in [Direction::Both, Direction::OneWay].into_iter().zip(limits.max_streams()) {
            self.on_max_streams(direction, count);
        }
    }

    /// Opens a stream. None while the peer allows no more; a [`StreamEvent::MoreStreams`] follows when it does. The
    /// first bytes announce the stream to the peer.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.open_with(direction, None)
    }

    /// Opens a one-way stream of exactly `total` bytes, below 2^62. It ends by itself when they are written, and the
    /// peer knows the total from its first frame. None as for [`Streams::open`], or if `total` is too large.
    pub fn open_message(&mut self, total: u64) -> Option<StreamId> {
        if total > varint::MAX { None } else { self.open_with(Direction::OneWay, Some(total)) }
    }

    fn open_with(&mut self, direction: Direction, total: Option<u64>) -> Option<StreamId> {
        let own = &mut self.own[direction.index()];
        if own.opened >= own.limit {
            own.wanted = true;
            return None;
        }
        let id = StreamId::new(self.side, direction, own.opened);
        own.opened += 1;
        debug_assert!(own.opened <= own.limit, "{} of {} streams", own.opened, own.limit);
        self.create(id, total);
        Some(id)
    }

    /// Returns the next stream that the peer opened; in the order of their numbers, those of both directions first.
    pub fn accept(&mut self) -> Option<StreamId> {
        [Direction::Both, Direction::OneWay].into_iter().find_map(|direction| {
            let nth = self.peers[direction.index()].accept()?;
            Some(StreamId::new(self.side.other(), direction, nth))
        })
    }

    /// Takes bytes to be sent. Returns their number: as many as the stream's buffer has room for.
    ///
    /// # Errors
    /// If the stream takes no more bytes, or they are too many for a message.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let max_bytes = self.max_buffered();
        let written = self.change_sending(id, |sending| sending.write(data, max_bytes))?;
        self.withdraw(written as u64);
        Ok(written)
    }

    /// Ends a stream after the written bytes. A message ends by itself.
    ///
    /// # Errors
    /// If the stream was ended or reset, or a message is not completely written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.change_sending(id, Sending::finish)
    }

    /// Resets a stream: undelivered data may never be delivered. The peer receives `code`, below 2^62. A stream that is
    /// delivered, or was reset, stays as it is.
    ///
    /// # Errors
    /// If the stream is unknown.
    ///
    /// # Panics
    /// In debug builds, if `code` is over [`varint::MAX`].
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        debug_assert!(code <= varint::MAX);
        if self.change_sending(id, |sending| Ok(sending.reset(code, ResetBy::Application)))? {
            self.controls.insert(Control::ResetStream(id));
        }
        Ok(())
    }

    /// Sets the priority of a stream, initially 0. Streams of higher priority send first, and those of one priority in
    /// round-robin order.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), WriteError> {
        self.ensure_created(id);
        let sending = self.sending.get_mut(&id).ok_or(WriteError::Unknown)?;
        self.scheduler.set_priority(id, &mut sending.slot, priority);
        Ok(())
    }

    /// Returns the number of bytes that were written to a stream and wait for acknowledgement. A byte that was
    /// acknowledged before an earlier one waits with that one.
    pub fn unacked(&self, id: StreamId) -> u64 {
        self.sending.get(&id).map_or(0, Sending::buffered)
    }

    /// Returns whether the peer has acknowledged everything that was written to a stream and its end. Also true of a
    /// stream that was reset, once it is forgotten; false of one that was never open.
    pub fn is_delivered(&self, id: StreamId) -> bool {
        match self.sending.get(&id) {
            Some(sending) => sending.is_delivered(),
            None if id.opened_by() == self.side => id.nth() < self.own[id.direction().index()].opened,
            None => !id.is_one_way() && self.peers[id.direction().index()].was_used(id.nth()),
        }
    }

    /// Reads received data in order. The last bytes come with the end of the stream; the end may also come without
    /// bytes.
    ///
    /// # Errors
    /// If no data is available.
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<ReadResult, ReadError> {
        self.ensure_created(id);
        let receiving = self.receiving.get_mut(&id).ok_or(ReadError::Unknown)?;
        let read = receiving.read(out);
        if receiving.wants_raise() || receiving.is_unreported() && self.controls.contains(&Control::MaxData) {
            self.controls.insert(Control::MaxStreamData(id));
            self.unreported.remove(&id);
        } else if receiving.is_unreported() {
            self.unreported.insert(id);
        }
        self.consume(read.map_or(0, |read| read.bytes as u64), Credited::InTime);
        self.remove_done_receiving(id);
        read
    }

    /// Stops reading a stream: received data is dropped, and so is later data. The peer receives `code`, below 2^62,
    /// unless the end was known.
    ///
    /// # Errors
    /// [`ReadError::Unknown`] if nothing can be read from it any more.
    ///
    /// # Panics
    /// In debug builds, if `code` is over [`varint::MAX`].
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        debug_assert!(code <= varint::MAX);
        self.ensure_created(id);
        let receiving = self.receiving.get_mut(&id).ok_or(ReadError::Unknown)?;
        let ahead = receiving.ahead();
        let wasted = receiving.stop(code).ok_or(ReadError::Unknown)?;
        self.ahead -= ahead;
        if receiving.stopped().is_some() {
            self.controls.insert(Control::StopSending(id));
        }
        self.consume(wasted, Credited::AtOnce);
        self.remove_done_receiving(id);
        Ok(())
    }

    /// Returns the total number of bytes that the peer will have sent on a stream, if known: for a message from its
    /// first frame on.
    pub fn total(&self, id: StreamId) -> Option<u64> {
        self.receiving.get(&id)?.size()
    }

    /// Returns the next event, in order of occurrence.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            let event = self.events.pop_front()?;
            if self.take_event(event) {
                return Some(event);
            }
        }
    }

    /// Records that an event is no longer pending. Returns whether it is still relevant.
    fn take_event(&mut self, event: StreamEvent) -> bool {
        match event {
            StreamEvent::Opened => {
                self.is_opened_queued = false;
                self.peers.iter().any(StreamCountLimit::can_accept)
            }
            StreamEvent::MoreStreams(direction) => {
                self.own[direction.index()].is_event_queued = false;
                true
            }
            StreamEvent::Readable(id) | StreamEvent::Reset { id, .. } => {
                let Some(receiving) = self.receiving.get_mut(&id) else { return false };
                let is_relevant = if matches!(event, StreamEvent::Reset { .. }) {
                    receiving.is_reset_queued = false;
                    receiving.is_reset()
                } else {
                    receiving.is_readable_queued = false;
                    receiving.is_open()
                };
                self.remove_done_receiving(id);
                is_relevant
            }
            StreamEvent::Writable(id) | StreamEvent::Delivered(id) | StreamEvent::Stopped { id, .. } => {
                let Some(sending) = self.sending.get_mut(&id) else { return false };
                let mut is_relevant = true;
                match event {
                    StreamEvent::Delivered(_) => sending.is_delivered_queued = false,
                    StreamEvent::Stopped { .. } => sending.is_stopped_queued = false,
                    _ => {
                        sending.is_writable_queued = false;
                        is_relevant = sending.is_open();
                    }
                }
                self.remove_done_sending(id);
                is_relevant
            }
        }
    }

    /// Makes the state of a stream that has just been opened or used for the first time.
    fn create(&mut self, id: StreamId, total: Option<u64>) {
        debug_assert!(!self.sending.contains_key(&id) && !self.receiving.contains_key(&id), "a stream is opened twice");
        if id.is_sent_by(self.side) {
            self.sending.insert(id, Sending::new(self.theirs.max_stream_data, total));
            self.settle(id);
        }
        if id.is_sent_by(self.side.other()) {
            self.receiving.insert(id, Receiving::new(self.ours.max_stream_data, self.memory.clone()));
        }
    }

    /// Handles the application's use of a stream, which the peer may have opened without using it.
    fn ensure_created(&mut self, id: StreamId) {
        if id.opened_by() != self.side
            && self.peers[id.direction().index()].mark_used(id.nth()) == Some(Admitted::First)
        {
            self.create(id, None);
        }
    }

    fn change_sending<T>(
        &mut self,
        id: StreamId,
        change: impl FnOnce(&mut Sending) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        self.ensure_created(id);
        let changed = change(self.sending.get_mut(&id).ok_or(WriteError::Unknown)?)?;
        self.settle(id);
        Ok(changed)
    }

    /// Updates the state that depends on a stream that this end sends: its place among waiting streams, and BLOCKED.
    fn settle(&mut self, id: StreamId) {
        let Some(sending) = self.sending.get_mut(&id) else { return };
        let need = sending.need();
        self.scheduler.set(id, &mut sending.slot, need);
        let waiting = sending.waiting();
        self.waiting.replace(core::mem::replace(&mut sending.summed, waiting), waiting);
        let blocked = sending.blocked();
        if blocked != sending.blocked_at {
            sending.blocked_at = blocked;
            let control = Control::Blocked(Some(id));
            if blocked.is_some() {
                self.controls.insert(control)
            } else {
                self.controls.remove(&control)
            };
        }
        self.settle_connection();
    }

    /// Updates the connection's BLOCKED frame.
    fn settle_connection(&mut self) {
        debug_assert!(self.sent <= self.max_sent, "{} of {} bytes were sent", self.sent, self.max_sent);
        let blocked = self.scheduler.is_credit_blocked(self.credit()).then_some(self.max_sent);
        if blocked != self.blocked_at {
            self.blocked_at = blocked;
            let control = Control::Blocked(None);
            if blocked.is_some() {
                self.controls.insert(control)
            } else {
                self.controls.remove(&control)
            };
        }
    }

    /// Counts `bytes` as consumed: they will not be read any more, so the peer may send others. Also called when more
    /// bytes have arrived.
    ///
    /// The peer gets new limits before it runs out: when its credit beyond the reserved bytes is no more than the credit that
    /// it could be granted. So unread data of some streams slows the others down, and never blocks them.
    fn consume(&mut self, bytes: u64, credited: Credited) {
        self.consumed += bytes;
        debug_assert!(self.consumed <= self.received, "{} of {} bytes were read", self.consumed, self.received);
        debug_assert!(self.received <= self.max_received, "{} of {} bytes", self.received, self.max_received);
        let reserve = reserve(&self.ours, &self.theirs);
        let step = reservation(self.ours.max_stream_data).min(self.ours.max_data) / 2;
        let (credit_left, gained) = (self.max_received - self.received, self.next_max_received() - self.max_received);
        let min_gain = match credited {
            Credited::AtOnce if bytes > 0 => 1,
            Credited::AtOnce | Credited::InTime => credit_left.saturating_sub(reserve).max(step).max(1),
        };
        if gained >= min_gain {
            self.raise_limits();
        }
    }

    /// Queues `MAX_STREAM_DATA` for all streams read since their last one, then `MAX_DATA`. A peer that received only
    /// the connection's limit would take their bytes for unread, and use the credit for other streams.
    fn raise_limits(&mut self) {
        self.controls.extend(core::mem::take(&mut self.unreported).into_iter().map(Control::MaxStreamData));
        self.controls.insert(Control::MaxData);
    }

    fn next_max_received(&self) -> u64 {
        (self.consumed + self.ours.max_data).min(varint::MAX)
    }

    fn remove_done_receiving(&mut self, id: StreamId) {
        let Some(receiving) = self.receiving.get(&id) else { return };
        if receiving.next_limit().is_none() {
            self.controls.remove(&Control::MaxStreamData(id));
            self.unreported.remove(&id);
        }
        if receiving.is_done() {
            self.controls.remove(&Control::StopSending(id));
        }
        if receiving.is_over() {
            self.receiving.remove(&id);
            self.remove_done(id);
        }
    }

    fn remove_done_sending(&mut self, id: StreamId) {
        if self.sending.get(&id).is_some_and(Sending::is_over) {
            if let Some(gone) = self.sending.remove(&id) {
                let SendBacklog { used, unreserved, .. } = gone.summed;
                debug_assert_eq!(gone.summed, SendBacklog { used, unreserved, ..SendBacklog::default() });
                self.waiting.replace(gone.summed, SendBacklog::default());
                self.settle_connection();
            }
            self.remove_done(id);
        }
    }

    /// Forgets a direction of a stream, and the stream with the second one.
    fn remove_done(&mut self, id: StreamId) {
        if id.opened_by() == self.side || self.sending.contains_key(&id) || self.receiving.contains_key(&id) {
            return;
        }
        let direction = id.direction();
        let peers = &mut self.peers[direction.index()];
        peers.closed();
        if peers.wants_raise() {
            self.controls.insert(Control::MaxStreams(direction));
        }
    }
}

#[cfg(test)]
mod tests;
