//! The application of a virtual host: it sends and receives flows, one at a time on a connection.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use experiment::{FlowEventKind, HostConfig};
use flow::ChannelStats;
use laws::LawActions;
use proto::connection::{Connection, Event};
use proto::endpoint::ConnectionHandle;
use proto::streams::{Direction, ReadError, StreamEvent, StreamId};
use units::Time;
use virtual_endpoint::Application;

/// Bytes that are written at a time; all zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// First port of paths beyond a connection's first.
const FIRST_PATH_PORT: u16 = 32_768;

/// A flow that is being sent.
#[derive(Debug)]
struct Sending {
    flow: usize,
    stream: StreamId,
    size: u64,
    written: u64,
}

/// A flow that is being received.
#[derive(Debug)]
struct Receiving {
    flow: usize,
    stream: StreamId,
    left: u64,
}

/// An event of a flow at this host.
#[derive(Debug)]
pub(super) struct ApplicationEvent {
    pub(super) time: Time,
    pub(super) flow: usize,
    pub(super) event: FlowEventKind,
}

/// A flow that a connection will bring.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedFlow {
    pub(super) flow: usize,
    pub(super) size: u64,
}

/// State of a connection when it closed, kept for the flow that it carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastState {
    pub(super) stats: ChannelStats,
    pub(super) actions: LawActions,
    pub(super) parity: u64,
    /// Payload of the flow that was acknowledged.
    pub(super) delivered: u64,
}

/// Sends and receives flows.
#[derive(Debug)]
pub(super) struct FlowApplication {
    sending: BTreeMap<ConnectionHandle, Sending>,
    receiving: BTreeMap<ConnectionHandle, Receiving>,
    /// By incoming connection: the flows that it will bring, in order.
    expected: BTreeMap<ConnectionHandle, VecDeque<ExpectedFlow>>,
    /// Connections that were admitted, with the address of the peer at a listener.
    pub(super) admitted: Vec<(ConnectionHandle, Option<SocketAddr>)>,
    /// Connections that are over, with the reason.
    pub(super) closed: Vec<(ConnectionHandle, String)>,
    /// By connection that broke while it sent a flow.
    pub(super) last_states: BTreeMap<ConnectionHandle, LastState>,
    pub(super) events: Vec<ApplicationEvent>,
    /// Set if laws receive the number of bytes left.
    announces_size: bool,
    next_port: u16,
    buffer: Vec<u8>,
}

impl FlowApplication {
    /// Returns an application without flows, as these hosts need it.
    pub(super) fn new(host: &HostConfig) -> Self {
        Self {
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            expected: BTreeMap::new(),
            admitted: Vec::new(),
            closed: Vec::new(),
            last_states: BTreeMap::new(),
            events: Vec::new(),
            announces_size: host.size_aware,
            next_port: FIRST_PATH_PORT,
            buffer: vec![0; ZEROS.len()],
        }
    }

    /// Returns whether there are events to read.
    pub(super) fn has_events(&self) -> bool {
        !(self.events.is_empty() && self.admitted.is_empty() && self.closed.is_empty())
    }

    /// Starts a flow on an idle connection. Returns its stream; none if the connection is over or has too many streams.
    pub(super) fn start(
        &mut self,
        handle: ConnectionHandle,
        ExpectedFlow { flow, size }: ExpectedFlow,
        connection: &mut Connection,
    ) -> Option<StreamId> {
        debug_assert!(!self.sending.contains_key(&handle), "a connection sends two flows");
        let streams = connection.streams()?;
        streams.announce(self.announces_size.then_some(size));
        let stream = streams.open(Direction::OneWay)?;
        self.sending.insert(handle, Sending { flow, stream, size, written: 0 });
        self.write(handle, connection);
        Some(stream)
    }

    /// Returns the bytes of a connection's present flow that have been written; none if it sends none.
    pub(super) fn written(&self, handle: ConnectionHandle) -> Option<u64> {
        self.sending.get(&handle).map(|sending| sending.written)
    }

    /// Expects a flow on a connection.
    pub(super) fn expect(&mut self, handle: ConnectionHandle, expected: ExpectedFlow) {
        self.expected.entry(handle).or_default().push_back(expected);
    }

    /// Writes as much as the connection takes.
    fn write(&mut self, handle: ConnectionHandle, connection: &mut Connection) {
        let Some(sending) = self.sending.get_mut(&handle) else { return };
        let Some(streams) = connection.streams() else { return };
        while sending.written < sending.size {
            let left = (sending.size - sending.written).min(ZEROS.len() as u64) as usize;
            match streams.write(sending.stream, &ZEROS[..left]) {
                Ok(0) | Err(_) => return,
                Ok(count) => sending.written += count as u64,
            }
            if sending.written == sending.size {
                // A connection that fails here closes, which is an event of its own.
                let _ = streams.finish(sending.stream);
            }
        }
    }

    /// Reads the data that has arrived.
    fn read(&mut self, now: Time, handle: ConnectionHandle, connection: &mut Connection) {
        let Some(streams) = connection.streams() else { return };
        loop {
            if !self.receiving.contains_key(&handle) {
                let Some(expected) = self.expected.get_mut(&handle) else { return };
                if expected.is_empty() {
                    return;
                }
                let Some(stream) = streams.accept() else { return };
                let Some(ExpectedFlow { flow, size }) = expected.pop_front() else { return };
                self.receiving.insert(handle, Receiving { flow, stream, left: size });
            }
            let Some(receiving) = self.receiving.get_mut(&handle) else { return };
            match streams.read(receiving.stream, &mut self.buffer) {
                Ok(read) => {
                    let had_left = receiving.left > 0;
                    receiving.left = receiving.left.saturating_sub(read.bytes as u64);
                    if had_left && receiving.left == 0 {
                        self.events.push(ApplicationEvent {
                            time: now,
                            flow: receiving.flow,
                            event: FlowEventKind::Received,
                        });
                    }
                    if read.ends {
                        self.receiving.remove(&handle);
                    }
                }
                Err(ReadError::Blocked) => return,
                // The peer's connection has failed, which its sender reports.
                Err(_) => {
                    self.receiving.remove(&handle);
                    return;
                }
            }
        }
    }
}

impl Application for FlowApplication {
    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: Event, connection: &mut Connection) {
        match event {
            Event::Claim(_) => {
                connection.admit(now);
                self.admitted.push((handle, Some(connection.remote())));
            }
            Event::Admitted => self.admitted.push((handle, None)),
            Event::Stream(StreamEvent::Writable(_)) => self.write(handle, connection),
            Event::Stream(StreamEvent::Opened | StreamEvent::Readable(_)) => self.read(now, handle, connection),
            Event::Stream(StreamEvent::Delivered(stream)) => {
                if let Some(Sending { flow, .. }) = self.sending.get(&handle).filter(|it| it.stream == stream) {
                    self.events.push(ApplicationEvent { time: now, flow: *flow, event: FlowEventKind::Delivered });
                    self.sending.remove(&handle);
                }
            }
            Event::Closed(closed) => {
                self.closed.push((handle, closed.to_string()));
                if let Some(Sending { flow, stream, written, .. }) = self.sending.remove(&handle) {
                    let unacked = connection.streams().map_or(0, |streams| streams.unacked(stream));
                    let last = LastState {
                        stats: connection.stats(),
                        actions: connection.laws().actions,
                        parity: connection.coding().parity,
                        delivered: written.saturating_sub(unacked),
                    };
                    self.last_states.insert(handle, last);
                    let event = FlowEventKind::Broken(closed.to_string());
                    self.events.push(ApplicationEvent { time: now, flow, event });
                }
            }
            _ => {}
        }
    }

    fn port_for_path(&mut self, _: ConnectionHandle, known: &[u16]) -> Option<u16> {
        let port = self.next_port;
        debug_assert!(!known.contains(&port), "a port is assigned twice");
        self.next_port = port.checked_add(1)?;
        Some(port)
    }
}
