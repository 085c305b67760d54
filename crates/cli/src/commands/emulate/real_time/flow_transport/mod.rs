//! The scenario's flows over the transport: one endpoint a host, bound in its namespace, and for each flow a connection from a
//! port of its own, by which switches and captures know it.

mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use emulator::traffic::{HostNetwork, flow_of, port};
use emulator::{Clock, Emulated, Error, HostTransport, RunOptions};
use experiment::{FlowEvent, FlowEventKind, FlowTransport, SenderState, Setup, TrafficProgress};
use fabric::HostId;
use proto::closed::CloseCode;
use proto::identity::Trust;
use proto::settings::{LawMaker, Settings};
use proto::streams::StreamId;
use router::IpVersion;
use scenario::{BuiltRun, Run};
use transport::{Config, Connection, Endpoint, ReservedPort};
use units::{Bytes, Span, Time};

use self::tasks::{Spawner, Tasks};
use crate::args::EmulateArgs;
use crate::commands::emulate::transport_plan;
pub(super) use crate::commands::emulate::transport_plan::warnings;
use crate::exit::CommandFailure;
use crate::peer::wait::pause;
use study::Stopwatch;

/// The port on which endpoints listen.
const LISTEN_PORT: u16 = 5_001;
/// Maximum number of flows, each with a connection and a port of its own: one thread has to read all ports of a host in time.
const MAX_FLOWS: usize = 1_000;
/// Handshakes at a time: fewer than a listener accepts without address validation.
const MAX_CONCURRENT_HANDSHAKES: usize = 12;
/// The maximum time to make all connections.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval at which connections are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes that are written or read at a time; all zeros.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Counts of packets that left before a flow began: handshakes and searches for the packet size are not its own.
#[derive(Clone, Copy, Default)]
struct StatsBaseline {
    packets: u64,
    bytes: Bytes,
}

/// A flow and its two ends.
#[derive(Default)]
struct CarriedFlow {
    size: u64,
    /// Set if its law receives the number of bytes left.
    announces_size: bool,
    sender: RefCell<Option<Connection>>,
    receiver: RefCell<Option<Connection>>,
    stream: Cell<Option<StreamId>>,
    written: Cell<u64>,
    baseline: Cell<StatsBaseline>,
}

impl CarriedFlow {
    fn is_connected(&self) -> bool {
        self.sender.borrow().is_some() && self.receiver.borrow().is_some()
    }

    /// Returns whether it is connected by `paths` paths that all carry packets of this size.
    fn is_ready(&self, paths: usize, packet: u16) -> bool {
        let opened = self.sender.borrow().as_ref().map_or_else(Vec::new, Connection::paths);
        self.is_connected()
            && opened.len() == paths
            && opened.iter().all(|path| path.is_open && path.packet_size == packet)
    }
}

/// Events, by flow.
type Events = Rc<RefCell<Vec<(usize, FlowEventKind)>>>;

/// Refuses settings that the transport does not support.
pub(super) fn refuse(run: &Run, built: &BuiltRun, args: &EmulateArgs) -> Result<(), CommandFailure> {
    transport_plan::refuse(run, built, MAX_FLOWS, args)
}

/// Runs a scenario's flows that [`refuse`] does not refuse.
pub(super) fn run(
    built: &BuiltRun,
    options: RunOptions,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> Result<Emulated, CommandFailure> {
    let mut transport = NarrowsTransport::new(built, options.ip_version, options.burst);
    Ok(emulator::run_over_transport(&built.setup, options, &mut transport, on_progress)?)
}

/// The transport as the emulator's flow transport.
struct NarrowsTransport<'a> {
    built: &'a BuiltRun,
    ip_version: IpVersion,
    burst: Option<u32>,
    endpoints: BTreeMap<HostId, Rc<Endpoint>>,
    flows: Vec<Rc<CarriedFlow>>,
    tasks: Tasks,
    events: Events,
    /// The clock of the run, once it has begun.
    clock: Clock,
}

impl<'a> NarrowsTransport<'a> {
    /// Returns a transport. It must be used by the thread that makes it.
    fn new(built: &'a BuiltRun, ip_version: IpVersion, burst: Option<u32>) -> Self {
        let announces_size = built.setup.host.size_aware;
        let flow = |spec: &experiment::FlowSpec| {
            Rc::new(CarriedFlow { size: spec.size.get(), announces_size, ..CarriedFlow::default() })
        };
        let flows = built.setup.flows.iter().map(flow).collect();
        let (endpoints, tasks, events) = (BTreeMap::new(), Tasks::new(), Events::default());
        Self { built, ip_version, burst, endpoints, flows, tasks, events, clock: Clock::start() }
    }

    /// An endpoint in each host that sends or receives, and a port for each flow.
    fn bind(&mut self, host_network: &dyn HostNetwork, config: &Config) -> Result<Vec<Option<ReservedPort>>, Error> {
        let specs = &self.built.setup.flows;
        let mut ports: Vec<Option<ReservedPort>> = specs.iter().map(|_| None).collect();
        let mut hosts: Vec<HostId> = specs.iter().flat_map(|spec| [spec.src, spec.dst]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let address = host_network.address(host, self.ip_version);
            let mut bound = None;
            host_network.within(host, &mut || {
                let endpoint = Endpoint::listen(SocketAddr::new(address, LISTEN_PORT), config).map_err(failed)?;
                for (flow, _) in specs.iter().enumerate().filter(|(_, spec)| spec.src == host) {
                    ports[flow] = Some(endpoint.reserve(SocketAddr::new(address, port(flow))).map_err(failed)?);
                }
                bound = Some(endpoint);
                Ok(())
            })?;
            self.endpoints.extend(bound.map(|endpoint| (host, Rc::new(endpoint))));
        }
        Ok(ports)
    }

    /// Runs the tasks until `is_done`.
    fn until(
        &mut self,
        clock: &Stopwatch,
        keep_running: &mut dyn FnMut() -> bool,
        is_done: impl Fn(&Self) -> bool,
    ) -> Result<bool, Error> {
        while !is_done(self) {
            if !keep_running() {
                return Err(Error::Interrupted);
            }
            if let Some((flow, FlowEventKind::Broken(reason))) = self.events.borrow_mut().pop() {
                return Err(Error::Transport(format!("flow {flow} is not connected: {reason}")));
            }
            if clock.elapsed() > CONNECT_TIMEOUT {
                return Ok(false);
            }
            self.tasks.run(POLL_INTERVAL, || ());
        }
        Ok(true)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn failed(error: io::Error) -> Error {
    Error::Transport(format!("cannot open a UDP socket in a host: {error}"))
}

impl HostTransport for NarrowsTransport<'_> {
    fn connect(
        &mut self,
        setup: &Setup,
        host_network: &dyn HostNetwork,
        keep_running: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        let built = self.built;
        let Some(&spec) = setup.flows.first() else { return Ok(()) };
        let plan = built.laws.clone();
        let law: LawMaker = Arc::new(move |path| plan.make(&spec, path));
        let host = transport_plan::host_settings(built, self.ip_version, law);
        let config = Config::new(host.clone())
            .map_err(|error| Error::Transport(format!("cannot make a key for the hosts' transport: {error}")))?;
        let ports = self.bind(host_network, &config)?;
        let trust = Trust::Fingerprint(config.identity.fingerprint());
        for endpoint in self.endpoints.values() {
            let (flows, events, spawner) = (self.flows.clone(), self.events.clone(), self.tasks.spawner());
            self.tasks.spawner().spawn(accept(endpoint.clone(), flows, events, spawner));
        }
        let clock = Stopwatch::start();
        let total = ports.len();
        for (number, port) in ports.into_iter().enumerate() {
            let spec = setup.flows[number];
            let (Some(endpoint), Some(port)) = (self.endpoints.get(&spec.src), port) else { continue };
            let settings = transport_plan::flow_settings(built, number, self.burst, &host);
            let to = SocketAddr::new(host_network.address(spec.dst, self.ip_version), LISTEN_PORT);
            let dial = DialPlan { endpoint: endpoint.clone(), port, settings, to, trust };
            self.tasks.spawner().spawn(connect(dial, number, self.flows[number].clone(), self.events.clone()));
            let min_connected = (number + 1).saturating_sub(MAX_CONCURRENT_HANDSHAKES);
            let connected = |this: &Self| this.flows.iter().filter(|flow| flow.is_connected()).count();
            self.until(&clock, keep_running, |this| connected(this) >= min_connected)?;
        }
        let packet = transport_plan::packet(built, self.ip_version);
        let paths = usize::from(host.paths);
        if self.until(&clock, keep_running, |this| this.flows.iter().all(|flow| flow.is_ready(paths, packet)))? {
            return Ok(());
        }
        let open = self.flows.iter().filter(|flow| !flow.is_ready(paths, packet)).count();
        Err(Error::Transport(format!(
            "{open} of {total} connections were not made within {} s, with {paths} paths each and packets of {packet} bytes",
            CONNECT_TIMEOUT.as_secs()
        )))
    }

    fn begin(&mut self, clock: Clock) {
        self.clock = clock;
    }
}

impl FlowTransport for NarrowsTransport<'_> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn start(&mut self, number: usize) {
        let (flow, events) = (self.flows[number].clone(), self.events.clone());
        let Some(connection) = flow.sender.borrow().clone() else { return };
        let stats = connection.stats();
        flow.baseline.set(StatsBaseline { packets: stats.packets_sent, bytes: stats.bytes_sent });
        self.tasks.spawner().spawn(async move {
            let event = match send(&connection, &flow).await {
                Ok(()) => FlowEventKind::Delivered,
                Err(error) => FlowEventKind::Broken(error.to_string()),
            };
            events.borrow_mut().push((number, event));
        });
    }

    fn run_until(&mut self, until: Time, events: &mut Vec<FlowEvent>) {
        let (clock, new) = (self.clock, self.events.clone());
        let max_wait = Duration::from_nanos(until.saturating_since(clock.now()).unsigned_ps() / 1_000);
        let mut drain_events = || {
            let flow_event = |(flow, event)| FlowEvent { time: clock.now(), flow, event };
            events.extend(new.borrow_mut().drain(..).map(flow_event));
        };
        self.tasks.run(max_wait, &mut drain_events);
        drain_events();
    }

    fn sender_state(&mut self, flow: usize) -> SenderState {
        let flow = &self.flows[flow];
        let sender = flow.sender.borrow();
        let Some(connection) = sender.as_ref() else { return SenderState::default() };
        let (stats, baseline, laws, paths) =
            (connection.stats(), flow.baseline.get(), connection.laws(), connection.paths());
        let unacked = flow.stream.get().map_or(0, |stream| connection.unacked(stream));
        let open: Vec<Span> = paths.iter().filter(|path| path.is_open).map(|path| path.rtt).collect();
        let rtt = open.iter().copied().sum::<Span>().over(open.len().max(1) as u32);
        let mut state = SenderState {
            sent: stats.bytes_sent.saturating_sub(baseline.bytes),
            delivered: Bytes::new(flow.written.get().saturating_sub(unacked)),
            window: laws.window,
            rtt,
            actions: laws.actions,
            trace: laws.trace,
            ..SenderState::default()
        };
        state.stats.packets_sent = stats.packets_sent.saturating_sub(baseline.packets);
        state.stats.retransmits = stats.retransmits;
        state.stats.timeouts = stats.timeouts.try_into().unwrap_or(u32::MAX);
        state.stats.spurious = stats.spurious;
        state.stats.marked = stats.marked;
        state.stats.parity = connection.coding().parity;
        state.stats.recovered = flow.receiver.borrow().as_ref().map_or(0, |receiver| receiver.coding().recovered);
        state
    }

    fn close(&mut self) {
        self.tasks.clear();
        for flow in &self.flows {
            flow.sender.take();
            flow.receiver.take();
        }
        for endpoint in std::mem::take(&mut self.endpoints).into_values() {
            // Tasks, which had the others, are gone.
            if let Ok(endpoint) = Rc::try_unwrap(endpoint) {
                endpoint.shut_down(CloseCode::NONE, "");
            }
        }
    }
}

/// Endpoints and settings of a flow's connection.
struct DialPlan {
    endpoint: Rc<Endpoint>,
    port: ReservedPort,
    settings: Settings,
    to: SocketAddr,
    trust: Trust,
}

/// Connects a flow.
async fn connect(dial: DialPlan, number: usize, flow: Rc<CarriedFlow>, events: Events) {
    let connected = async {
        let connection = dial.endpoint.connect_from(dial.port, dial.settings, dial.to, dial.trust).await?;
        connection.admitted().await?;
        Ok::<_, transport::Error>(connection)
    };
    match connected.await {
        Ok(connection) => drop(flow.sender.replace(Some(connection))),
        Err(error) => events.borrow_mut().push((number, FlowEventKind::Broken(error.to_string()))),
    }
}

/// Accepts connections from a flow's port, and reads them.
async fn accept(endpoint: Rc<Endpoint>, flows: Vec<Rc<CarriedFlow>>, events: Events, spawner: Spawner) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.admit() else { continue };
        let from = connection.paths().first().map(|path| path.four_tuple.remote.port());
        let Some(number) = from.and_then(flow_of).filter(|&flow| flow < flows.len()) else { continue };
        let (flow, events) = (flows[number].clone(), events.clone());
        drop(flow.receiver.replace(Some(connection.clone())));
        spawner.spawn(async move {
            // A failure here also fails the sender, which reports it.
            if let Ok(()) = receive(&connection, flow.size).await {
                events.borrow_mut().push((number, FlowEventKind::Received));
            }
        });
    }
}

async fn send(connection: &Connection, flow: &CarriedFlow) -> Result<(), transport::Error> {
    connection.announce(flow.announces_size.then_some(flow.size));
    let mut stream = connection.open_one_way().await?;
    flow.stream.set(Some(stream.id()));
    while flow.written.get() < flow.size {
        let left = (flow.size - flow.written.get()).min(ZEROS.len() as u64) as usize;
        let count = stream.write(&ZEROS[..left]).await?;
        flow.written.set(flow.written.get() + count as u64);
        pause().await;
    }
    stream.finish()?;
    stream.delivered().await
}

async fn receive(connection: &Connection, size: u64) -> Result<(), transport::Error> {
    let mut stream = connection.accept_stream().await?.receive;
    let (mut chunk, mut total) = (vec![0; ZEROS.len()], 0);
    while total < size {
        match stream.read(&mut chunk).await? {
            0 => return Err(transport::Error::Endpoint),
            count => total += count as u64,
        }
        pause().await;
    }
    // The end of the stream is read, too: otherwise the stream would be reset as unwanted.
    let _ = stream.read(&mut chunk).await;
    Ok(())
}
