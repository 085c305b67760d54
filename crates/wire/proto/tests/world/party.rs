//! One end of a connection as a host of the event loop: an endpoint and its application.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use proto::closed::{CloseCode, Closed};
use proto::connection::{Connection, Event};
use proto::endpoint::{ConnectionHandle, Endpoint, Received};
use proto::four_tuple::FourTuple;
use proto::secret::Secret;
use units::{Span, Time};
use virtual_endpoint::ecn;
use virtual_time::{Datagram, Host};

use super::Scene;
use super::application::Application;
use super::network::{Dice, NetworkEnd};
use super::{SECRET, TICKET};

/// Number of wake-ups at one time from which on time stands still.
const MAX_WAKE_UPS_AT_ONE_TIME: u32 = 10_000;

/// One end. It differs from a driver of sockets in that its turns have random lengths, its clock may stall, and its keys
/// may change at any time.
pub struct Party {
    end: NetworkEnd,
    scene: Rc<Scene>,
    pub endpoint: Endpoint,
    pub handle: Option<ConnectionHandle>,
    pub application: Application,
    dice: Dice,
    /// Time of the last wake-up, and the number of wake-ups at that time.
    now: Time,
    wake_ups: u32,
    /// End of the stall of its clock.
    stalled_until: Time,
    /// Datagrams of the present turn that are not sent yet.
    outbox: VecDeque<Datagram>,
    buffer: Vec<u8>,
    /// Paths that it should have in addition to those opened.
    wants_paths: u8,
    /// Set if another path may be available, and it has not tried to open one since.
    may_open: bool,
    next_socket: u16,
    pub connected: Option<Time>,
    pub admitted: Option<Time>,
    pub closed: Option<Closed>,
    pub retired_paths: u32,
    pub open_paths: u32,
    /// Key updates that it has initiated.
    pub updates: u64,
    pub trace: bool,
}

impl Party {
    pub fn new(end: NetworkEnd, scene: Rc<Scene>, endpoint: Endpoint) -> Self {
        Self {
            end,
            endpoint,
            handle: None,
            application: Application::new(end, scene.clone()),
            dice: Dice(scene.seed ^ [0x434c_4954, 0x4c49_5354][end as usize]),
            now: Time::ZERO,
            wake_ups: 0,
            stalled_until: Time::ZERO,
            outbox: VecDeque::new(),
            buffer: Vec::new(),
            wants_paths: if end == NetworkEnd::Client { scene.paths - 1 } else { 0 },
            may_open: false,
            next_socket: 1,
            connected: None,
            admitted: None,
            closed: None,
            retired_paths: 0,
            open_paths: 1,
            updates: 0,
            trace: false,
            scene,
        }
    }

    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// Closes the connection because all work is done.
    pub fn close(&mut self, now: Time) {
        if let Some(connection) = self.connection() {
            connection.close(now, CloseCode::NONE, "all is done");
        }
    }

    fn is_stalled(&self, now: Time) -> bool {
        now < self.stalled_until
    }

    /// Counts a wake-up.
    fn count(&mut self, now: Time) {
        self.wake_ups = if now > self.now { 0 } else { self.wake_ups + 1 };
        assert!(self.wake_ups < MAX_WAKE_UPS_AT_ONE_TIME, "time stands still for {:?}", self.end);
        self.now = now;
    }

    /// Updates the keys, by chance, and lets an expired timer act.
    fn run_timers(&mut self, now: Time, handle: ConnectionHandle) {
        let updates = self.dice.one_in(self.scene.updates);
        let Some(connection) = self.endpoint.connection(handle) else { return };
        let is_due = connection.next_timer() <= now;
        if updates {
            self.updates += u64::from(connection.update_keys(now));
        }
        if is_due {
            self.endpoint.on_timer(now, handle);
            if self.scene.stalls > Span::ZERO && self.dice.one_in(50) {
                self.stalled_until = now.saturating_add(self.scene.stalls);
            }
        }
    }

    fn handle_events(&mut self, now: Time, handle: ConnectionHandle) {
        while let Some(connection) = self.endpoint.connection(handle)
            && let Some(event) = connection.poll_event()
        {
            if self.trace {
                println!("{:>12} ns {:?} {event:?}", now.ns(), self.end);
            }
            match event {
                Event::Connected => self.connected = Some(now),
                Event::Admitted => {
                    (self.admitted, self.may_open) = (Some(now), true);
                    self.application.on_admitted(now);
                }
                Event::MorePaths => self.may_open = true,
                Event::Claim(claim) => {
                    if claim.ticket == TICKET && connection.proves(&Secret::new(SECRET)) {
                        connection.admit(now);
                        self.admitted = Some(now);
                    } else {
                        connection.refuse(now);
                    }
                }
                Event::Closed(closed) => self.closed = Some(closed),
                Event::PathOpen(_) => self.open_paths += 1,
                Event::PathGone(_) => {
                    (self.retired_paths, self.may_open) = (self.retired_paths + 1, true);
                    self.wants_paths = self.wants_paths.saturating_add(u8::from(self.end == NetworkEnd::Client));
                }
                Event::PathWanted(path) => connection.replace_path(now, path),
                Event::Stream(event) => self.application.on_event(now, event),
                Event::Datagram(_) | Event::Probed(_) => {}
            }
        }
    }

    /// Opens the missing paths of the client. Only after an event, like an application.
    fn open_paths(&mut self, now: Time, handle: ConnectionHandle) {
        let may_open = self.admitted.is_some() && self.closed.is_none() && std::mem::take(&mut self.may_open);
        while may_open
            && self.wants_paths > 0
            && let Some(connection) = self.endpoint.connection(handle)
            && connection.open_path(now, self.next_socket).is_some()
        {
            self.next_socket += 1;
            self.wants_paths -= 1;
        }
    }

    /// Fills the outbox with the datagrams of the next turn. Returns whether there are any.
    fn fill_outbox(&mut self, now: Time) -> bool {
        self.buffer.clear();
        let mut transmit = self.endpoint.poll_reply(&mut self.buffer);
        if transmit.is_none()
            && let Some(handle) = self.handle
        {
            let max_datagrams = 1 + self.dice.below(20) as usize;
            transmit = self.endpoint.poll_transmit(now, handle, max_datagrams, &mut self.buffer);
        }
        let Some(transmit) = transmit else { return false };
        let port = transmit.four_tuple.socket;
        let (source, destination) = (SocketAddr::new(self.end.address(), port), transmit.four_tuple.remote);
        let ecn = ecn::field(transmit.codepoint);
        for payload in self.buffer.chunks(transmit.segment) {
            if self.trace {
                println!("{:>12} ns {:?} sends {} bytes to {destination}", now.ns(), self.end, payload.len());
            }
            self.outbox.push_back(Datagram { source, destination, ecn, payload: payload.to_vec() });
        }
        true
    }
}

impl Host for Party {
    type Packet = Datagram;

    fn receive(&mut self, now: Time, mut datagram: Datagram) {
        let four_tuple = FourTuple { socket: datagram.destination.port(), remote: datagram.source };
        let codepoint = ecn::codepoint(datagram.ecn);
        let received = self.endpoint.on_datagram(now, four_tuple, codepoint, &mut datagram.payload);
        // Further clients are damaged or duplicated packets of the first one. They get no answer.
        if let Received::New(handle) = received {
            self.handle.get_or_insert(handle);
        }
    }

    fn wake(&mut self, now: Time) {
        self.count(now);
        let Some(handle) = self.handle else { return };
        if !self.is_stalled(now) {
            self.run_timers(now, handle);
        }
        self.handle_events(now, handle);
        self.open_paths(now, handle);
        if let Some(streams) = self.endpoint.connection(handle).and_then(Connection::streams) {
            self.application.act(now, streams);
        }
        self.endpoint.settle(handle);
    }

    fn poll_send(&mut self, now: Time) -> Option<Datagram> {
        if self.is_stalled(now) || (self.outbox.is_empty() && !self.fill_outbox(now)) {
            return None;
        }
        self.outbox.pop_front()
    }

    fn next_wake(&mut self) -> Time {
        let timer = if self.is_stalled(self.now) {
            self.stalled_until
        } else {
            self.connection().map_or(Time::NEVER, Connection::next_timer)
        };
        timer.min(self.application.next_wake(self.now))
    }
}
