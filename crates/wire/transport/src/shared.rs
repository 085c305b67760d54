//! What an endpoint's thread and its applications share: the protocol's state, and who waits for what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use nix::sys::eventfd::EventFd;
use proto::closed::{Closed, Code};
use proto::connection::{Claim, Connection, Event, Liveness};
use proto::endpoint::{Endpoint, Handle};
use proto::side::Side;
use proto::streams::{StreamEvent, StreamId};
use units::Time;

use crate::clock::Clock;
use crate::error::Error;
use crate::lobby::{Caller, Lobby, Stray};
use crate::ports::Ports;
use crate::socket::Socket;

/// Datagrams that no application has read count so many bytes together; the next are dropped.
const MOST_UNREAD: usize = 1 << 20;
/// What each of them counts beside its length.
const DATAGRAM_COST: usize = 64;

/// What somebody waits for on a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wish {
    Read,
    Write,
    Delivery,
}

/// What is known of a connection beside the protocol.
#[derive(Default, Debug)]
pub(crate) struct Entry {
    pub(crate) is_connected: bool,
    pub(crate) is_admitted: bool,
    pub(crate) claim: Option<Claim>,
    pub(crate) closed: Option<Closed>,
    /// Result of the last liveness probe; none while one is under way.
    pub(crate) liveness: Option<Liveness>,
    datagrams: VecDeque<Vec<u8>>,
    datagram_bytes: usize,
    /// Streams of this end of which the peer wanted no more, and its words, until their handles are dropped.
    pub(crate) stopped: BTreeMap<StreamId, u64>,
    /// When it wants to be called, as it is in the timers.
    timer: Time,
    wishes: BTreeMap<(StreamId, Wish), Waker>,
    others: Vec<Waker>,
    /// Whether an application has it. Then it is remembered, also when it is over.
    pub(crate) is_held: bool,
    /// Paths that it should have.
    pub(crate) most_paths: u8,
}

impl Entry {
    /// Who waits for the connection is to be woken.
    fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.others);
    }

    /// Who waits for this on a stream is to be woken.
    fn wake_for(&mut self, stream: StreamId, wish: Wish, woken: &mut Vec<Waker>) {
        woken.extend(self.wishes.remove(&(stream, wish)));
    }

    fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(core::mem::take(&mut self.wishes).into_values());
        self.wake(woken);
    }

    /// A datagram came. It is dropped if too many wait to be read.
    fn take_datagram(&mut self, datagram: Vec<u8>, woken: &mut Vec<Waker>) {
        let cost = datagram.len() + DATAGRAM_COST;
        if self.datagram_bytes + cost <= MOST_UNREAD {
            self.datagram_bytes += cost;
            self.datagrams.push_back(datagram);
            self.wake(woken);
        }
    }

    /// The next datagram that came.
    pub(crate) fn next_datagram(&mut self) -> Option<Vec<u8>> {
        let datagram = self.datagrams.pop_front()?;
        self.datagram_bytes -= datagram.len() + DATAGRAM_COST;
        Some(datagram)
    }

    /// Somebody waits for something on a stream.
    pub(crate) fn wish(&mut self, stream: StreamId, wish: Wish, context: &Context) {
        self.wishes.insert((stream, wish), context.waker().clone());
    }

    /// Somebody waits for the connection.
    pub(crate) fn wait(&mut self, context: &Context) {
        if !self.others.iter().any(|waker| waker.will_wake(context.waker())) {
            self.others.push(context.waker().clone());
        }
    }
}

pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) entries: BTreeMap<Handle, Entry>,
    timers: BTreeSet<(Time, Handle)>,
    /// Connections to which something was said that may have to leave now.
    touched: VecDeque<Handle>,
    /// Who has waited for what has happened. They are woken by whoever has the state once it is free again: a thread that wakes
    /// up wants it at once.
    woken: Vec<Waker>,
    /// Which thread of the endpoint this is, and what it shares with the others.
    pub(crate) thread: usize,
    lobby: Arc<Lobby>,
    pub(crate) ports: Ports,
    /// Why it has closed, once it has.
    pub(crate) ended: Option<(Code, String)>,
}

impl State {
    pub(crate) fn new(endpoint: Endpoint, socket: Socket, (thread, lobby): (usize, Arc<Lobby>)) -> io::Result<Self> {
        let local = socket.address()?;
        Ok(Self {
            endpoint,
            entries: BTreeMap::new(),
            timers: BTreeSet::new(),
            touched: VecDeque::new(),
            woken: Vec::new(),
            thread,
            lobby,
            ports: Ports::new(socket, local),
            ended: None,
        })
    }

    /// A connection has something to say, maybe.
    pub(crate) fn touch(&mut self, handle: Handle) {
        if !self.touched.contains(&handle) {
            self.touched.push_back(handle);
        }
    }

    /// How many connections may have something to say.
    pub(crate) fn touched(&self) -> usize {
        self.touched.len()
    }

    pub(crate) fn next_touched(&mut self) -> Option<Handle> {
        self.touched.pop_front()
    }

    /// A new connection, which an application has, or may get.
    pub(crate) fn add(&mut self, handle: Handle, most_paths: u8, is_held: bool) {
        self.entries.insert(handle, Entry { timer: Time::NEVER, is_held, most_paths, ..Entry::default() });
        self.touch(handle);
    }

    /// The first time at which a connection wants to be called.
    pub(crate) fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |&(time, _)| time)
    }

    /// The first connection that is due.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Handle> {
        let &(time, handle) = self.timers.first()?;
        if time > now {
            return None;
        }
        self.timers.pop_first();
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.timer = Time::NEVER;
        }
        Some(handle)
    }

    /// Notes when a connection wants to be called next.
    pub(crate) fn set_timer(&mut self, handle: Handle) {
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

    /// Who is to be woken, once the state is free.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        core::mem::take(&mut self.woken)
    }

    /// Notes who waits for what has happened on a connection ([`State::take_woken`]). Gives whether a caller wants more paths.
    pub(crate) fn tell(&mut self, now: Time, handle: Handle) -> bool {
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
                    match self.lobby.enter(Caller { thread: self.thread, handle }) {
                        Some(mut acceptors) => self.woken.append(&mut acceptors),
                        None => connection.refuse(now),
                    }
                }
                Event::Admitted => {
                    (entry.is_admitted, wants_paths) = (true, true);
                    entry.wake(&mut self.woken);
                }
                Event::Stream(event) => tell_of_stream(entry, event, &mut self.woken),
                Event::Datagram(datagram) => entry.take_datagram(datagram, &mut self.woken),
                Event::Probed(liveness) => {
                    entry.liveness = Some(liveness);
                    entry.wake(&mut self.woken);
                }
                Event::PathOpen(_) => {}
                Event::PathWanted(path) => connection.replace_path(now, path),
                Event::MorePaths | Event::PathGone(_) => wants_paths = true,
                Event::Closed(closed) => {
                    if let Closed::Service { asked, .. } = closed
                        && connection.side() == Side::Listener
                    {
                        self.lobby.note(Stray { remote: connection.remote(), asked });
                    }
                    entry.closed = Some(closed);
                    entry.wake_all(&mut self.woken);
                }
            }
        }
        wants_paths
    }

    /// Forgets a connection that is over, unless an application has it: it may still read what came before.
    pub(crate) fn tidy(&mut self, handle: Handle) {
        let is_over = self.endpoint.connection(handle).is_none_or(|connection| connection.is_over());
        if is_over && self.entries.get(&handle).is_none_or(|entry| !entry.is_held) {
            self.endpoint.forget(handle);
            self.ports.forget(handle);
            if let Some(entry) = self.entries.remove(&handle) {
                self.timers.remove(&(entry.timer, handle));
            }
        }
    }

    /// Closes all connections, and nobody waits any more: the endpoint ends. Nothing happens if it has ended.
    pub(crate) fn end(&mut self, now: Time, code: Code, reason: &str) {
        if self.ended.is_some() {
            return;
        }
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            if let Some(connection) = self.endpoint.connection(handle) {
                connection.close(now, code, reason);
            }
            if let Some(entry) = self.entries.get_mut(&handle) {
                entry.is_held = false;
            }
            self.touch(handle);
        }
        self.entries.retain(|_, entry| !entry.is_held);
        self.ended = Some((code, reason.to_owned()));
        self.endpoint.stop_listening();
        self.woken.append(&mut self.lobby.close());
        self.entries.values_mut().for_each(|entry| entry.wake_all(&mut self.woken));
    }
}

fn tell_of_stream(entry: &mut Entry, event: StreamEvent, woken: &mut Vec<Waker>) {
    match event {
        StreamEvent::Opened | StreamEvent::MoreStreams(_) => entry.wake(woken),
        StreamEvent::Readable(stream) | StreamEvent::Reset { id: stream, .. } => {
            entry.wake_for(stream, Wish::Read, woken);
        }
        StreamEvent::Writable(stream) => entry.wake_for(stream, Wish::Write, woken),
        StreamEvent::Delivered(stream) => entry.wake_for(stream, Wish::Delivery, woken),
        StreamEvent::Stopped { id: stream, code } => {
            entry.stopped.insert(stream, code);
            entry.wake_for(stream, Wish::Write, woken);
            entry.wake_for(stream, Wish::Delivery, woken);
        }
    }
}

/// An endpoint as its thread and its applications see it.
pub(crate) struct Core {
    state: Mutex<State>,
    pub(crate) clock: Clock,
    /// Ends the thread's sleep.
    pub(crate) bell: EventFd,
    /// Whether the thread sleeps, or is about to. It says so while it has the state, so whoever changed the state before has been
    /// seen, and whoever changes it afterwards finds that it must be woken.
    is_asleep: AtomicBool,
}

impl Core {
    pub(crate) fn new(state: State, clock: Clock) -> io::Result<Self> {
        Ok(Self { state: Mutex::new(state), clock, bell: EventFd::new()?, is_asleep: AtomicBool::new(false) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state as whole as it was: each call of `proto` ends or panics before it changes anything
        // that others rely on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`State::end`].
    pub(crate) fn end(&self, code: Code, reason: &str) {
        let mut state = self.lock();
        state.end(self.clock.now(), code, reason);
        let woken = state.take_woken();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.ring();
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn ring(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // A counter that is full wakes it, too.
            let _ = self.bell.write(1);
        }
    }

    /// The thread is about to sleep. The caller has the state, in which nothing is left to do.
    pub(crate) fn falls_asleep(&self, _: &State) {
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    /// The thread has woken up.
    pub(crate) fn wakes_up(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Does something with a connection, then sees to it that what it wants to say leaves.
    pub(crate) fn with<T>(
        &self,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Entry, Time) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        self.with_and(handle, act, |_| true)
    }

    /// As [`Core::with`] for what seldom asks for a packet, as reading does: `says` tells whether it did.
    pub(crate) fn with_and<T>(
        &self,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Entry, Time) -> Poll<Result<T, Error>>,
        says: impl FnOnce(&mut Connection) -> bool,
    ) -> Poll<Result<T, Error>> {
        let mut state = self.lock();
        let state = &mut *state;
        let entry = state.entries.get_mut(&handle);
        if let Some((code, reason)) = &state.ended {
            // What it heard before counts, such as the peer's word.
            let here = || Closed::Here { code: *code, reason: reason.clone() };
            let closed = entry.and_then(|entry| entry.closed.clone()).unwrap_or_else(here);
            return Poll::Ready(Err(Error::Closed(closed)));
        }
        let Some(entry) = entry else { return Poll::Ready(Err(Error::Endpoint)) };
        let Some(connection) = state.endpoint.connection(handle) else {
            return Poll::Ready(Err(Error::Closed(entry.closed.clone().unwrap_or(Closed::Silence))));
        };
        let outcome = act(connection, entry, self.clock.now());
        if outcome.is_ready() && says(connection) {
            state.endpoint.settle(handle);
            state.touch(handle);
            self.ring();
        }
        outcome
    }
}
