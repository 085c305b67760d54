//! State shared by an endpoint's thread and its applications: the protocol's state, and the wakers of pending
//! operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use nix::sys::eventfd::EventFd;
use proto::closed::{CloseCode, Closed};
use proto::connection::{Connection, Event, Liveness, PeerIdentity};
use proto::endpoint::{ConnectionHandle, Endpoint};
use proto::side::Side;
use proto::streams::{StreamEvent, StreamId};
use units::Time;

use crate::accept_queue::{AcceptQueue, AlpnMismatch, IncomingConnection};
use crate::clock::Clock;
use crate::error::Error;
use crate::ports::Ports;
use crate::socket::Socket;

/// Maximum size of all unread datagrams together; further ones are dropped.
const MAX_UNREAD: usize = 1 << 20;
/// Additional size that each of them counts.
const DATAGRAM_COST: usize = 64;

/// A stream event that an application waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StreamInterest {
    Read,
    Write,
    Delivery,
}

/// State of a connection in addition to the protocol's.
#[derive(Default, Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) is_connected: bool,
    pub(crate) is_admitted: bool,
    pub(crate) claim: Option<PeerIdentity>,
    pub(crate) closed: Option<Closed>,
    /// Result of the last liveness probe; none while one is under way.
    pub(crate) liveness: Option<Liveness>,
    datagrams: VecDeque<Vec<u8>>,
    datagram_bytes: usize,
    /// Local streams that the peer stopped, and its codes, until their handles are dropped.
    pub(crate) stopped: BTreeMap<StreamId, u64>,
    /// Its next timer, as in the set of timers.
    timer: Time,
    stream_wakers: BTreeMap<(StreamId, StreamInterest), Waker>,
    connection_wakers: Vec<Waker>,
    /// Set if an application has a handle. Then it is remembered, also when it is over.
    pub(crate) has_handle: bool,
    /// Paths that it should have.
    pub(crate) max_paths: u8,
}

impl ConnectionSlot {
    /// Collects the wakers of the connection.
    fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.connection_wakers);
    }

    /// Collects the waker of this stream event.
    fn wake_for(&mut self, stream: StreamId, interest: StreamInterest, woken: &mut Vec<Waker>) {
        woken.extend(self.stream_wakers.remove(&(stream, interest)));
    }

    fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(core::mem::take(&mut self.stream_wakers).into_values());
        self.wake(woken);
    }

    /// Queues a received datagram. It is dropped if too many wait to be read.
    fn take_datagram(&mut self, datagram: Vec<u8>, woken: &mut Vec<Waker>) {
        let cost = datagram.len() + DATAGRAM_COST;
        if self.datagram_bytes + cost <= MAX_UNREAD {
            self.datagram_bytes += cost;
            self.datagrams.push_back(datagram);
            self.wake(woken);
        }
        debug_assert!(self.datagram_bytes <= MAX_UNREAD, "{} bytes wait to be read", self.datagram_bytes);
    }

    /// Returns the next received datagram.
    pub(crate) fn next_datagram(&mut self) -> Option<Vec<u8>> {
        let datagram = self.datagrams.pop_front()?;
        debug_assert!(self.datagram_bytes >= datagram.len() + DATAGRAM_COST, "{} bytes wait", self.datagram_bytes);
        self.datagram_bytes -= datagram.len() + DATAGRAM_COST;
        Some(datagram)
    }

    /// Registers a waker for a stream event.
    pub(crate) fn register_stream_waker(&mut self, stream: StreamId, interest: StreamInterest, context: &Context) {
        self.stream_wakers.insert((stream, interest), context.waker().clone());
    }

    /// Registers a waker for the connection.
    pub(crate) fn wait(&mut self, context: &Context) {
        if !self.connection_wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            self.connection_wakers.push(context.waker().clone());
        }
    }
}

/// Holder of a new connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// The application has a handle of it.
    Application,
    /// No owner yet: not accepted.
    Unaccepted,
}

pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) entries: BTreeMap<ConnectionHandle, ConnectionSlot>,
    timers: BTreeSet<(Time, ConnectionHandle)>,
    /// Connections with possible packets to send.
    scheduled: VecDeque<ConnectionHandle>,
    /// Wakers of completed waits. They are called once the lock on the state is released: a woken thread takes it at
    /// once.
    woken: Vec<Waker>,
    /// The number of this thread in the endpoint, and the state that it shares with the others.
    pub(crate) thread: usize,
    accept_queue: Arc<AcceptQueue>,
    pub(crate) ports: Ports,
    /// The reason for which it was closed, if it was.
    pub(crate) ended: Option<(CloseCode, String)>,
}

impl State {
    pub(crate) fn new(
        endpoint: Endpoint,
        socket: Socket,
        thread: usize,
        accept_queue: Arc<AcceptQueue>,
    ) -> io::Result<Self> {
        let local = socket.address()?;
        Ok(Self {
            endpoint,
            entries: BTreeMap::new(),
            timers: BTreeSet::new(),
            scheduled: VecDeque::new(),
            woken: Vec::new(),
            thread,
            accept_queue,
            ports: Ports::new(socket, local),
            ended: None,
        })
    }

    /// Marks a connection that may have packets to send.
    pub(crate) fn schedule(&mut self, handle: ConnectionHandle) {
        if !self.scheduled.contains(&handle) {
            self.scheduled.push_back(handle);
        }
    }

    /// Returns the number of connections that may have packets to send.
    pub(crate) fn scheduled(&self) -> usize {
        self.scheduled.len()
    }

    pub(crate) fn next_scheduled(&mut self) -> Option<ConnectionHandle> {
        self.scheduled.pop_front()
    }

    /// Adds a new connection, which an application has, or may get.
    pub(crate) fn add(&mut self, handle: ConnectionHandle, max_paths: u8, holder: Holder) {
        debug_assert!(!self.entries.contains_key(&handle), "a connection is added twice");
        let has_handle = holder == Holder::Application;
        self.entries
            .insert(handle, ConnectionSlot { timer: Time::NEVER, has_handle, max_paths, ..ConnectionSlot::default() });
        self.schedule(handle);
    }

    /// Returns the earliest timer of a connection.
    pub(crate) fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |&(time, _)| time)
    }

    /// Returns the first connection that is due.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<ConnectionHandle> {
        let &(time, handle) = self.timers.first()?;
        debug_assert!(time.is_set(), "a timer that never expires is queued");
        if time > now {
            return None;
        }
        self.timers.pop_first();
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.timer = Time::NEVER;
        }
        Some(handle)
    }

    /// Sets the time of a connection's next call.
    pub(crate) fn set_timer(&mut self, handle: ConnectionHandle) {
        let Some(connection) = self.endpoint.connection(handle) else { return };
        let time = connection.next_timer();
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        if entry.timer != time {
            self.timers.remove(&(entry.timer, handle));
            entry.timer = time;
            if time.is_set() {
                self.timers.insert((time, handle));
            }
        }
    }

    /// Returns the wakers to call, once the state is unlocked.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        core::mem::take(&mut self.woken)
    }

    /// Collects the wakers for events of a connection ([`State::take_woken`]). Returns whether a client wants more
    /// paths.
    pub(crate) fn dispatch_events(&mut self, now: Time, handle: ConnectionHandle) -> bool {
        let mut wants_paths = false;
        while let Some(connection) = self.endpoint.connection(handle)
            && let Some(event) = connection.poll_event()
            && let Some(entry) = self.entries.get_mut(&handle)
        {
            match event {
                Event::Connected => {
                    entry.is_connected = true;
                    entry.wake(&mut self.woken);
                }
                Event::Claim(claim) => {
                    entry.claim = Some(claim);
                    match self.accept_queue.enter(IncomingConnection { thread: self.thread, handle }) {
                        Some(mut acceptors) => self.woken.append(&mut acceptors),
                        None => connection.refuse(now),
                    }
                }
                Event::Admitted => {
                    (entry.is_admitted, wants_paths) = (true, true);
                    entry.wake(&mut self.woken);
                }
                Event::Stream(event) => dispatch_stream_event(entry, event, &mut self.woken),
                Event::Datagram(datagram) => entry.take_datagram(datagram, &mut self.woken),
                Event::Probed(liveness) => {
                    entry.liveness = Some(liveness);
                    entry.wake(&mut self.woken);
                }
                Event::PathOpen(_) => {}
                Event::PathWanted(path) => connection.replace_path(now, path),
                Event::MorePaths | Event::PathGone(_) => wants_paths = true,
                Event::Closed(closed) => {
                    if let Closed::Service { requested, .. } = closed
                        && connection.side() == Side::Listener
                    {
                        self.accept_queue.note(AlpnMismatch { remote: connection.remote(), requested });
                    }
                    entry.closed = Some(closed);
                    entry.wake_all(&mut self.woken);
                }
            }
        }
        wants_paths
    }

    /// Forgets a connection that is over, unless an application has it: it may still read data received before.
    pub(crate) fn forget_if_over(&mut self, handle: ConnectionHandle) {
        let is_over = self.endpoint.connection(handle).is_none_or(|connection| connection.is_over());
        if is_over && self.entries.get(&handle).is_none_or(|entry| !entry.has_handle) {
            self.endpoint.forget(handle);
            self.ports.forget(handle);
            if let Some(entry) = self.entries.remove(&handle) {
                self.timers.remove(&(entry.timer, handle));
            }
        }
    }

    /// Closes all connections and ends all waits: the endpoint ends. Does nothing if it has ended.
    pub(crate) fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        if self.ended.is_some() {
            return;
        }
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            if let Some(connection) = self.endpoint.connection(handle) {
                connection.close(now, code, reason);
            }
            if let Some(entry) = self.entries.get_mut(&handle) {
                entry.has_handle = false;
            }
            self.schedule(handle);
        }
        self.entries.retain(|_, entry| !entry.has_handle);
        self.ended = Some((code, reason.to_owned()));
        self.endpoint.stop_listening();
        self.woken.append(&mut self.accept_queue.close());
        self.entries.values_mut().for_each(|entry| entry.wake_all(&mut self.woken));
    }
}

fn dispatch_stream_event(entry: &mut ConnectionSlot, event: StreamEvent, woken: &mut Vec<Waker>) {
    match event {
        StreamEvent::Opened | StreamEvent::MoreStreams(_) => entry.wake(woken),
        StreamEvent::Readable(stream) | StreamEvent::Reset { id: stream, .. } => {
            entry.wake_for(stream, StreamInterest::Read, woken);
        }
        StreamEvent::Writable(stream) => entry.wake_for(stream, StreamInterest::Write, woken),
        StreamEvent::Delivered(stream) => entry.wake_for(stream, StreamInterest::Delivery, woken),
        StreamEvent::Stopped { id: stream, code } => {
            entry.stopped.insert(stream, code);
            entry.wake_for(stream, StreamInterest::Write, woken);
            entry.wake_for(stream, StreamInterest::Delivery, woken);
        }
    }
}

/// An endpoint as its thread and its applications see it.
pub(crate) struct Core {
    state: Mutex<State>,
    pub(crate) clock: Clock,
    /// Ends the thread's sleep.
    pub(crate) wakeup: EventFd,
    /// Set if the thread sleeps, or is about to. It is set under the lock of the state, so earlier changes of the state
    /// have been seen, and later ones find that the thread must be woken.
    is_asleep: AtomicBool,
}

impl Core {
    pub(crate) fn new(state: State, clock: Clock) -> io::Result<Self> {
        Ok(Self { state: Mutex::new(state), clock, wakeup: EventFd::new()?, is_asleep: AtomicBool::new(false) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state consistent: each call of `proto` ends or panics before it changes anything
        // that others rely on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the endpoint, as [`State::close`].
    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        let mut state = self.lock();
        state.close(self.clock.now(), code, reason);
        let woken = state.take_woken();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.wake_thread();
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake_thread(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // A counter that is full wakes it, too.
            let _ = self.wakeup.write(1);
        }
    }

    /// Marks the thread as about to sleep. The caller holds the state, in which nothing is left to do.
    pub(crate) fn mark_asleep(&self, _: &State) {
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    /// Marks the thread as awake.
    pub(crate) fn mark_awake(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Calls `act` on a connection, then schedules the packets that it has to send.
    pub(crate) fn with<T>(
        &self,
        handle: ConnectionHandle,
        act: impl FnOnce(&mut Connection, &mut ConnectionSlot, Time) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        self.with_and(handle, act, |_| true)
    }

    /// Works as [`Core::with`] for operations that seldom cause a packet, such as reading: the closure returns whether one
    /// did.
    pub(crate) fn with_and<T>(
        &self,
        handle: ConnectionHandle,
        act: impl FnOnce(&mut Connection, &mut ConnectionSlot, Time) -> Poll<Result<T, Error>>,
        needs_send: impl FnOnce(&mut Connection) -> bool,
    ) -> Poll<Result<T, Error>> {
        let mut state = self.lock();
        let state = &mut *state;
        let entry = state.entries.get_mut(&handle);
        if let Some((code, reason)) = &state.ended {
            // Events before the end count, such as the peer's close reason.
            let here = || Closed::Locally { code: *code, reason: reason.clone() };
            let closed = entry.and_then(|entry| entry.closed.clone()).unwrap_or_else(here);
            return Poll::Ready(Err(Error::Closed(closed)));
        }
        let Some(entry) = entry else { return Poll::Ready(Err(Error::Endpoint)) };
        let Some(connection) = state.endpoint.connection(handle) else {
            return Poll::Ready(Err(Error::Closed(entry.closed.clone().unwrap_or(Closed::TimedOut))));
        };
        let outcome = act(connection, entry, self.clock.now());
        if outcome.is_ready() && needs_send(connection) {
            state.endpoint.settle(handle);
            state.schedule(handle);
            self.wake_thread();
        }
        outcome
    }
}
