//! An endpoint as a host of the event loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use flow::Codepoint;
use proto::connection::{Connection, Event};
use proto::endpoint::{Authentication, ConnectionHandle, Endpoint, EndpointError, Received};
use proto::four_tuple::FourTuple;
use proto::identity::Trust;
use proto::settings::Settings;
use proto::side::Side;
use units::Time;
use virtual_time::{Datagram, Host};

use crate::ecn;

/// Maximum number of sockets of a connection, those of retired paths included.
const MAX_SOCKETS: usize = 128;

/// An application of an endpoint.
pub trait Application {
    /// Handles an event of a connection. Paths are opened and replaced without it.
    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: Event, connection: &mut Connection);

    /// Returns a local port for another path of a connection that has these; none if there is none.
    fn port_for_path(&mut self, handle: ConnectionHandle, known: &[u16]) -> Option<u16>;
}

/// Scheduling state of a connection.
#[derive(Debug)]
pub struct Slot {
    /// Time of its entry in `EndpointHost::timers`; [`Time::NEVER`] if it has none.
    timer: Time,
    /// Set while it is in `EndpointHost::ready`.
    is_ready: bool,
    /// Number of paths that a client keeps open.
    max_paths: u8,
}

/// An endpoint with an address, and its application.
pub struct EndpointHost<A> {
    address: IpAddr,
    endpoint: Endpoint,
    /// Its application.
    pub application: A,
    slots: BTreeMap<ConnectionHandle, Slot>,
    timers: BTreeSet<(Time, ConnectionHandle)>,
    /// Connections with possible packets to send, in the order of their turns.
    ready: VecDeque<ConnectionHandle>,
    /// Datagrams of the present turn that are not sent yet.
    outbox: VecDeque<Datagram>,
    buffer: Vec<u8>,
    max_datagrams: usize,
    datagrams_sent: u64,
}

impl<A: Application> EndpointHost<A> {
    /// Creates the host of an endpoint. A connection's turn is over after `max_datagrams` datagrams, at least 1.
    pub fn new(address: IpAddr, endpoint: Endpoint, application: A, max_datagrams: usize) -> Self {
        Self {
            address,
            endpoint,
            application,
            slots: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            outbox: VecDeque::new(),
            buffer: Vec::new(),
            max_datagrams: max_datagrams.max(1),
            datagrams_sent: 0,
        }
    }

    /// Returns its address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of datagrams sent.
    pub fn datagrams_sent(&self) -> u64 {
        self.datagrams_sent
    }

    /// Returns the number of connections that are not forgotten.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// Opens a connection from a local port, with up to `settings.paths` paths.
    ///
    /// # Errors
    /// If TLS cannot begin.
    pub fn connect(
        &mut self,
        now: Time,
        port: u16,
        remote: SocketAddr,
        trust: Trust,
        settings: Arc<Settings>,
    ) -> Result<ConnectionHandle, EndpointError> {
        self.connect_with(now, port, remote, Authentication { trust, secret: None }, settings)
    }

    /// Opens a connection like [`EndpointHost::connect`], with a ticket if there is one.
    ///
    /// # Errors
    /// If TLS cannot begin.
    pub fn connect_with(
        &mut self,
        now: Time,
        port: u16,
        remote: SocketAddr,
        authentication: Authentication,
        settings: Arc<Settings>,
    ) -> Result<ConnectionHandle, EndpointError> {
        let max_paths = settings.paths;
        let handle = self.endpoint.connect_with(now, FourTuple { socket: port, remote }, authentication, settings)?;
        self.add(handle, max_paths);
        Ok(handle)
    }

    /// Calls `act` with a connection and the application. Returns none if the connection does not exist. The caller
    /// must then call [`EventLoop::wake`], so that the host sends.
    ///
    /// [`EventLoop::wake`]: virtual_time::EventLoop::wake
    pub fn with<T>(&mut self, handle: ConnectionHandle, act: impl FnOnce(&mut Connection, &mut A) -> T) -> Option<T> {
        let connection = self.endpoint.connection(handle)?;
        let result = act(connection, &mut self.application);
        self.endpoint.settle(handle);
        self.schedule(handle);
        Some(result)
    }

    /// Returns a connection, to read its counters.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.endpoint.connection(handle)
    }

    fn add(&mut self, handle: ConnectionHandle, max_paths: u8) {
        debug_assert!(!self.slots.contains_key(&handle), "a connection is added twice");
        self.slots.insert(handle, Slot { timer: Time::NEVER, is_ready: false, max_paths });
        self.schedule(handle);
    }

    fn schedule(&mut self, handle: ConnectionHandle) {
        if let Some(slot) = self.slots.get_mut(&handle)
            && !std::mem::replace(&mut slot.is_ready, true)
        {
            self.ready.push_back(handle);
        }
    }

    /// Passes the events of a connection to the application. Returns whether there was any.
    fn dispatch(&mut self, now: Time, handle: ConnectionHandle) -> bool {
        let (mut any, mut wants_paths) = (false, false);
        while let Some(connection) = self.endpoint.connection(handle)
            && let Some(event) = connection.poll_event()
        {
            any = true;
            match event {
                Event::PathWanted(path) => connection.replace_path(now, path),
                Event::MorePaths | Event::PathGone(_) => wants_paths = true,
                event => {
                    wants_paths |= event == Event::Admitted;
                    self.application.on_event(now, handle, event, connection);
                }
            }
        }
        if any {
            self.endpoint.settle(handle);
        }
        if wants_paths {
            self.open_paths(now, handle);
        }
        any
    }

    /// Opens the missing paths of a client's connection, each from a port of its own.
    fn open_paths(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(max_paths) = self.slots.get(&handle).map(|slot| usize::from(slot.max_paths)) else { return };
        while let Some(connection) = self.endpoint.connection(handle) {
            if connection.side() == Side::Listener || connection.paths().count() >= max_paths {
                return;
            }
            // A path may have been retired because nothing arrives any more from that port.
            let known: Vec<u16> = connection.sockets().collect();
            if known.len() >= MAX_SOCKETS {
                return;
            }
            let Some(port) = self.application.port_for_path(handle, &known) else { return };
            let opened = connection.open_path(now, port);
            self.endpoint.settle(handle);
            if opened.is_none() {
                return;
            }
        }
    }

    /// Sets the time of a connection's next call.
    fn set_timer(&mut self, handle: ConnectionHandle) {
        let time = self.endpoint.connection(handle).map_or(Time::NEVER, Connection::next_timer);
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        if slot.timer != time {
            self.timers.remove(&(slot.timer, handle));
            slot.timer = time;
            if time.is_set() {
                self.timers.insert((time, handle));
            }
        }
    }

    fn forget_if_over(&mut self, handle: ConnectionHandle) {
        if self.endpoint.connection(handle).is_none_or(|connection| connection.is_over())
            && let Some(slot) = self.slots.remove(&handle)
        {
            self.timers.remove(&(slot.timer, handle));
            self.endpoint.forget(handle);
        }
    }

    /// Appends the datagrams in the buffer to the outbox.
    fn post(&mut self, four_tuple: FourTuple, codepoint: Codepoint, segment: usize) {
        let source = SocketAddr::new(self.address, four_tuple.socket);
        for payload in self.buffer.chunks(segment) {
            self.outbox.push_back(Datagram {
                source,
                destination: four_tuple.remote,
                ecn: ecn::field(codepoint),
                payload: payload.to_vec(),
            });
        }
    }

    /// Fills the outbox with the packets of the next turn. Returns whether there are any.
    fn fill_outbox(&mut self, now: Time) -> bool {
        self.buffer.clear();
        if let Some(transmit) = self.endpoint.poll_reply(&mut self.buffer) {
            self.post(transmit.four_tuple, transmit.codepoint, transmit.segment);
            return true;
        }
        while let Some(handle) = self.ready.pop_front() {
            self.buffer.clear();
            let transmit = self.endpoint.poll_transmit(now, handle, self.max_datagrams, &mut self.buffer);
            if let Some(transmit) = transmit {
                self.ready.push_back(handle);
                self.post(transmit.four_tuple, transmit.codepoint, transmit.segment);
                return true;
            }
            if let Some(slot) = self.slots.get_mut(&handle) {
                slot.is_ready = false;
            }
            if self.dispatch(now, handle) {
                self.schedule(handle);
                continue;
            }
            self.set_timer(handle);
            self.forget_if_over(handle);
        }
        false
    }
}

impl<A: Application> Host for EndpointHost<A> {
    type Packet = Datagram;

    fn receive(&mut self, now: Time, mut datagram: Datagram) {
        debug_assert_eq!(datagram.destination.ip(), self.address, "a datagram for another host");
        let four_tuple = FourTuple { socket: datagram.destination.port(), remote: datagram.source };
        let codepoint = ecn::codepoint(datagram.ecn);
        match self.endpoint.on_datagram(now, four_tuple, codepoint, &mut datagram.payload) {
            Received::Nothing | Received::MaybeReset(_) => {}
            Received::Connection(handle) => self.schedule(handle),
            Received::New(handle) => self.add(handle, 1),
        }
        while let Some(handle) = self.endpoint.poll_evicted() {
            self.schedule(handle);
        }
    }

    fn wake(&mut self, now: Time) {
        while let Some(&(time, handle)) = self.timers.first()
            && time <= now
        {
            self.timers.pop_first();
            if let Some(slot) = self.slots.get_mut(&handle) {
                slot.timer = Time::NEVER;
            }
            self.endpoint.on_timer(now, handle);
            self.schedule(handle);
        }
        for turn in 0..self.ready.len() {
            let handle = self.ready[turn];
            self.dispatch(now, handle);
        }
    }

    fn poll_send(&mut self, now: Time) -> Option<Datagram> {
        if self.outbox.is_empty() && !self.fill_outbox(now) {
            return None;
        }
        self.datagrams_sent += 1;
        self.outbox.pop_front()
    }

    fn next_wake(&mut self) -> Time {
        self.timers.first().map_or(Time::NEVER, |&(time, _)| time)
    }
}
