//! A thread of an endpoint: sleeps until a datagram arrives, a timer is due or an application makes a request. Each of
//! a listener's threads has a socket of its own at one address, and the kernel delivers to each the datagrams of its
//! connections.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use proto::TOKEN_LEN;
use proto::closed::CloseCode;
use proto::connection::Transmit;
use proto::endpoint::{ConnectionHandle, Received};
use proto::four_tuple::FourTuple;
use units::Time;

use crate::clock::{AGE_REASON, END};
use crate::endpoint_core::{Core, Holder, State};
use crate::socket::{Inbox, Socket};

/// Batches that a connection sends before the next one sends.
const SEND_BATCHES: usize = 4;
/// Batches that are read from a socket before anything else is done.
const READ_BATCHES: usize = 4;

/// Sockets of a connection: 64 paths may be open, and as many may have been retired a moment ago.
const MAX_SOCKETS: usize = 128;

/// Wait for a timer that is due but cannot be handled yet.
const RETRY_WAIT: Duration = Duration::from_millis(1);

/// Datagrams that a socket has not taken.
struct Stuck {
    transmit: Transmit,
    contents: Vec<u8>,
}

pub(crate) struct Driver {
    /// The cores of all threads of the endpoint, and of this thread.
    cores: Arc<[Arc<Core>]>,
    core: Arc<Core>,
    inbox: Inbox,
    /// Tokens that may be resets of other threads' connections, and their sources.
    resets: Vec<(FourTuple, [u8; TOKEN_LEN])>,
    /// Buffer of the datagrams to send.
    buffer: Vec<u8>,
    stuck: Option<Stuck>,
    /// Number of paths that a connection should have.
    paths: u8,
}

/// Ends an endpoint when it is dropped with its thread, unless it has ended.
struct EndpointGuard {
    cores: Arc<[Arc<Core>]>,
    own: Arc<Core>,
}

impl Drop for EndpointGuard {
    fn drop(&mut self) {
        // An endpoint is closed one thread after the other, and the first may be finished before the last is notified.
        let ended = self.own.lock().ended.clone();
        let (code, reason) = ended.unwrap_or((CloseCode::INTERNAL, "a thread of the endpoint has failed".to_owned()));
        for core in self.cores.iter() {
            core.close(code, &reason);
        }
    }
}

impl Driver {
    /// Creates the driver of one of an endpoint's threads.
    pub(crate) fn new(cores: Arc<[Arc<Core>]>, own: usize, paths: u8) -> Self {
        let (core, inbox) = (cores[own].clone(), Inbox::new());
        Self { cores, core, inbox, resets: Vec::new(), buffer: Vec::new(), stuck: None, paths }
    }

    /// Runs until the endpoint is closed and all of its connections are over.
    pub(crate) fn run(mut self) {
        // In any case, no task waits for this thread any more after its end, nor for the others.
        let _end = EndpointGuard { cores: self.cores.clone(), own: self.core.clone() };
        loop {
            let (sockets, wait, ends, woken) = {
                let core = self.core.clone();
                let mut state = core.lock();
                let now = self.core.clock.now();
                if now >= END && state.ended.is_none() {
                    drop(state);
                    // The other threads, too: their clocks are this one.
                    self.cores.iter().for_each(|core| core.close(CloseCode::AGE, AGE_REASON));
                    continue;
                }
                let is_done = self.act(now, &mut state);
                let next = if state.ended.is_some() { state.next_timer() } else { state.next_timer().min(END) };
                let wait = match next {
                    _ if !is_done => Some(Duration::ZERO),
                    // The timer was due and could not be handled: something else must change first.
                    stuck if stuck <= now => Some(RETRY_WAIT),
                    next => self.core.clock.until(next),
                };
                if is_done {
                    self.core.mark_asleep(&state);
                }
                (state.ports.all(), wait, state.ended.is_some() && state.entries.is_empty(), state.take_woken())
            };
            woken.into_iter().for_each(Waker::wake);
            if ends {
                return;
            }
            let woken = self.sleep(&sockets, wait);
            self.core.mark_awake();
            match woken {
                Ok(ready) => {
                    for ((at, socket), is_ready) in sockets.iter().zip(ready) {
                        if is_ready {
                            self.receive(*at, socket);
                        }
                    }
                }
                // Waiting is impossible: the endpoint ends.
                Err(_) => return,
            }
        }
    }

    /// Waits. Returns the sockets that are ready.
    fn sleep(&mut self, sockets: &[(u16, Arc<Socket>)], wait: Option<Duration>) -> io::Result<Vec<bool>> {
        let stuck = self.stuck.as_ref().map(|stuck| stuck.transmit.four_tuple.socket);
        let interest = |at| if stuck == Some(at) { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut fds: Vec<PollFd> =
            sockets.iter().map(|(at, socket)| PollFd::new(socket.as_fd(), interest(*at))).collect();
        fds.push(PollFd::new(self.core.wakeup.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut fds, wait.map(TimeSpec::from), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        if ready.last() == Some(&true) {
            let _ = self.core.wakeup.read();
        }
        Ok(ready)
    }

    /// Reads the datagrams that have arrived at a socket.
    fn receive(&mut self, at: u16, socket: &Arc<Socket>) {
        let core = self.core.clone();
        let mut state = core.lock();
        // The socket may have been closed since, and another one may have its number.
        if !state.ports.get(at).is_some_and(|open| Arc::ptr_eq(open, socket)) {
            return;
        }
        for _ in 0..READ_BATCHES {
            let paths = self.paths;
            // The time after reading: datagrams may have arrived while this thread waited for a processor.
            let mut read_at = None;
            let received = self.inbox.receive(socket, |remote, codepoint, datagram| {
                let four_tuple = FourTuple { socket: at, remote };
                let now = *read_at.get_or_insert_with(|| core.clock.now());
                match state.endpoint.on_datagram(now, four_tuple, codepoint, datagram) {
                    Received::Nothing => {}
                    Received::Connection(handle) => state.schedule(handle),
                    Received::New(handle) => state.add(handle, paths, Holder::Unaccepted),
                    Received::MaybeReset(token) => self.resets.push((four_tuple, token)),
                }
                // Their state is freed when they are served.
                while let Some(handle) = state.endpoint.poll_evicted() {
                    state.schedule(handle);
                }
            });
            // A socket that fails is as silent as a network that loses everything: connections end by their timers.
            if received.unwrap_or(0) == 0 {
                break;
            }
        }
        drop(state);
        for (four_tuple, token) in self.resets.drain(..) {
            // One lock at a time: two could deadlock.
            for core in self.cores.iter() {
                let mut state = core.lock();
                let now = core.clock.now();
                if let Some(handle) = state.endpoint.on_reset(now, four_tuple, &token) {
                    state.schedule(handle);
                    core.wake_thread();
                }
            }
        }
    }

    /// Handles due timers, and the packets of connections that have data to send, a turn for each. Returns whether
    /// nothing is left to do until an event occurs.
    fn act(&mut self, now: Time, state: &mut State) -> bool {
        while let Some(handle) = state.next_due(now) {
            state.endpoint.on_timer(now, handle);
            state.schedule(handle);
        }
        if !self.send_stuck(state) {
            return true;
        }
        while self.answer(state) {}
        for _ in 0..state.scheduled() {
            if self.stuck.is_none()
                && let Some(handle) = state.next_scheduled()
            {
                self.serve(state, handle);
            }
        }
        self.stuck.is_some() || state.scheduled() == 0
    }

    /// Sends responses to unknown senders. Returns whether there may be more.
    fn answer(&mut self, state: &mut State) -> bool {
        self.buffer.clear();
        let Some(transmit) = state.endpoint.poll_reply(&mut self.buffer) else { return false };
        self.send(state, transmit)
    }

    /// Reports a connection's events to its applications, and sends its pending packets.
    fn serve(&mut self, state: &mut State, handle: ConnectionHandle) {
        let now = self.core.clock.now();
        if state.dispatch_events(now, handle) {
            self.open_paths(state, handle);
        }
        let max_datagrams = state.ports.get(0).map_or(1, |first| first.max_segments());
        for turn in 0.. {
            if turn == SEND_BATCHES {
                state.schedule(handle);
                break;
            }
            self.buffer.clear();
            let Some(transmit) = state.endpoint.poll_transmit(now, handle, max_datagrams, &mut self.buffer) else {
                break;
            };
            if !self.send(state, transmit) {
                state.schedule(handle);
                break;
            }
        }
        if state.dispatch_events(now, handle) {
            // Repeats this with the requests of these events.
            self.open_paths(state, handle);
            state.schedule(handle);
        }
        state.set_timer(handle);
        state.forget_if_over(handle);
    }

    /// Opens the missing paths of a client's connection, each from a port of its own.
    fn open_paths(&mut self, state: &mut State, handle: ConnectionHandle) {
        let now = self.core.clock.now();
        let Some(max_paths) = state.entries.get(&handle).map(|entry| usize::from(entry.max_paths)) else { return };
        loop {
            let Some(connection) = state.endpoint.connection(handle) else { return };
            if connection.paths().count() >= max_paths || connection.side() == proto::side::Side::Listener {
                return;
            }
            // A path may have been retired because nothing arrives any more from that port.
            let known: Vec<u16> = connection.sockets().collect();
            if known.len() >= MAX_SOCKETS {
                return;
            }
            let Some(socket) = state.ports.port_for_path(handle, &known) else { return };
            let opened = state.endpoint.connection(handle).and_then(|connection| connection.open_path(now, socket));
            state.endpoint.settle(handle);
            if opened.is_none() {
                return;
            }
        }
    }

    /// Sends the contents of the buffer. Returns whether the socket took them; otherwise they are kept and sent later.
    fn send(&mut self, state: &State, transmit: Transmit) -> bool {
        let Some(socket) = state.ports.get(transmit.four_tuple.socket) else { return true };
        if socket.send(&transmit, &self.buffer).is_ok() {
            return true;
        }
        self.stuck = Some(Stuck { transmit, contents: std::mem::take(&mut self.buffer) });
        false
    }

    /// Sends datagrams that a socket did not take before. Returns whether none is left.
    fn send_stuck(&mut self, state: &State) -> bool {
        if let Some(Stuck { transmit, contents }) = self.stuck.take() {
            self.buffer = contents;
            return self.send(state, transmit);
        }
        true
    }
}
