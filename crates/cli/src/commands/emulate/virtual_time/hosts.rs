//! A scenario's flows over endpoints in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use experiment::{
    DriverConfig, FlowEvent, FlowEventKind, FlowTransport, Outcome, SenderState, Setup, TrafficProgress, drive,
};
use fabric::HostId;
use flow::ChannelStats;
use laws::LawActions;
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig};
use proto::identity::{Identity, Trust};
use proto::settings::{LawMaker, Settings};
use proto::side::Side;
use proto::streams::StreamId;
use router::{Addresses, HostPlan, IpVersion, NIC_BACKLOG, Router, RouterInputs, RouterTime, RunStart, UdpNetwork};
use scenario::BuiltRun;
use units::{Bytes, Span, Time};
use virtual_endpoint::EndpointHost;
use virtual_endpoint::provider::{self, PacketProtection};
use virtual_time::{EventLoop, HostCosts, HostIndex, Step};

use super::super::transport_plan;
use super::application::{ApplicationEvent, ExpectedFlow, FlowApplication};
use crate::exit::CommandFailure;

/// The port on which endpoints listen.
const LISTEN_PORT: u16 = 5_001;
/// The source port of flow 0; flow `n` has the n-th after it.
const FIRST_PORT: u16 = 10_000;
/// Handshakes at a time: fewer than a listener accepts without address validation.
const MAX_CONCURRENT_HANDSHAKES: usize = 12;
/// The maximum time for one more connection.
const CONNECT_TIMEOUT: Span = Span::from_s(60);
/// Advice for a connection that failed before the run.
const REMEDY: &str = "a handshake fails where most packets are lost, no buffer holds a packet of 1.2 kB, or a round trip lasts over \
                      10 s: check `port.loss_probability`, `port.loss_bursts`, `port.buffer` and the topology's delays";
/// Maximum number of steps of the event loop between two progress reports: some milliseconds of real time.
const STEPS_PER_REPORT: u32 = 10_000;
/// Datagrams in a turn of a connection: one, as a simulated host sends.
const DATAGRAMS_PER_TURN: usize = 1;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualOptions {
    pub(super) ip_version: IpVersion,
    /// Bytes that may leave at once to catch up with pacing; none for one packet.
    pub(super) burst: Option<u32>,
    /// Processing times of hosts.
    pub(super) costs: HostCosts,
    pub(super) protection: PacketProtection,
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct VirtualRun {
    pub(super) outcome: Outcome,
    /// Notes to read before the numbers are used.
    pub(super) notes: Vec<String>,
    /// Time that the connections took, before time zero.
    pub(super) connect_time: Span,
    /// Datagrams sent, by all hosts.
    pub(super) datagrams: u64,
    /// Steps of the event loop.
    pub(super) steps: u64,
}

/// Returns the hosts that send or receive.
pub(super) fn used(setup: &Setup) -> Vec<HostId> {
    let hosts: BTreeSet<HostId> = setup.flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    hosts.into_iter().collect()
}

/// Runs a scenario's flows that [`transport_plan::refuse`] does not refuse.
pub(super) fn run(
    built: &BuiltRun,
    options: VirtualOptions,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> Result<VirtualRun, CommandFailure> {
    let setup = &built.setup;
    let mut transport = VirtualTransport::new(built, options)?;
    transport.connect(built, options, on_progress)?;
    let connect_time = transport.begin();
    let intervals = DriverConfig { min_sample_interval: Span::ZERO, progress_interval: Span::ZERO };
    let driven = drive(setup, &mut transport, intervals, on_progress);
    let VirtualTransport { event_loop, .. } = transport;
    let (now, steps) = (event_loop.now(), event_loop.steps());
    let datagrams = event_loop.hosts().map(EndpointHost::datagrams_sent).sum();
    let (network, ()) = event_loop.into_network().finish(now);
    let notes = driven.notes();
    let outcome = driven.into_outcome(network.links, network.port_samples, network.switches);
    Ok(VirtualRun { outcome, notes, connect_time, datagrams, steps })
}

/// Counters of a connection. Those at a flow's start are subtracted from later ones.
#[derive(Clone, Copy, Default)]
struct StatsBaseline {
    stats: ChannelStats,
    actions: LawActions,
    parity: u64,
    recovered: u64,
}

impl StatsBaseline {
    /// Sets the counters of a flow that began with the counters `before`.
    fn count_since(&self, before: &Self, state: &mut SenderState) {
        let (now, then) = (&self.stats, &before.stats);
        state.sent = now.bytes_sent.saturating_sub(then.bytes_sent);
        state.actions = self.actions.since(&before.actions);
        state.stats.packets_sent = now.packets_sent.saturating_sub(then.packets_sent);
        state.stats.retransmits = now.retransmits.saturating_sub(then.retransmits);
        state.stats.timeouts = u32::try_from(now.timeouts.saturating_sub(then.timeouts)).unwrap_or(u32::MAX);
        state.stats.spurious = now.spurious.saturating_sub(then.spurious);
        state.stats.marked = now.marked.saturating_sub(then.marked);
        state.stats.parity = self.parity.saturating_sub(before.parity);
        state.stats.recovered = self.recovered.saturating_sub(before.recovered);
    }
}

/// A connection, at both of its ends.
struct VirtualConnection {
    src: HostIndex,
    dst: HostIndex,
    sender: ConnectionHandle,
    /// Set once the listener has admitted it.
    receiver: Option<ConnectionHandle>,
    is_admitted: bool,
}

/// State of a flow. `connection` is its own one until the flow starts, and may then be a kept idle one.
#[derive(Clone, Copy)]
struct VirtualFlow {
    connection: usize,
    stream: Option<StreamId>,
    baseline: StatsBaseline,
    is_delivered: bool,
}

/// Connections that a flow of the same hosts, class and kind may use again.
type IdleConnections = BTreeMap<(HostId, HostId, u8, u16), BTreeSet<usize>>;

/// Hosts and network as the transport of a setup's flows.
struct VirtualTransport<'a> {
    setup: &'a Setup,
    event_loop: EventLoop<EndpointHost<FlowApplication>, UdpNetwork<()>>,
    /// By [`HostId`]; none for hosts without flows.
    indices: BTreeMap<HostId, HostIndex>,
    plan: Vec<HostPlan>,
    trust: Trust,
    host_settings: Settings,
    /// Connection `n` was made for flow `n`.
    connections: Vec<VirtualConnection>,
    /// Number of connections that are ready, the first ones.
    ready: usize,
    flows: Vec<VirtualFlow>,
    idle: IdleConnections,
    run_start: RunStart,
}

fn failed(error: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::Run(anyhow::anyhow!("the virtual hosts failed: {error}"))
}

impl<'a> VirtualTransport<'a> {
    /// Creates the hosts and the network.
    fn new(built: &'a BuiltRun, options: VirtualOptions) -> Result<Self, CommandFailure> {
        let setup = &built.setup;
        provider::begin(setup.seed);
        let provider = provider::provider(options.protection);
        let plan = router::plan(&setup.network).map_err(failed)?;
        let hosts = used(setup);
        let law: LawMaker = {
            let (laws, spec) = (built.laws.clone(), setup.flows.first().copied());
            let Some(spec) = spec else { return Err(failed("there are no flows")) };
            Arc::new(move |path| laws.make(&spec, path))
        };
        let host_settings = transport_plan::host_settings(built, options.ip_version, law);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&setup.seed.to_le_bytes());
        let identity = Identity::from_seed(&provider, &seed).map_err(failed)?;
        let trust = Trust::Fingerprint(identity.fingerprint());
        let endpoint_host = |host: &HostId| {
            let config = EndpointConfig {
                settings: host_settings.clone(),
                provider: provider.clone(),
                identity: identity.clone(),
            };
            let endpoint = Endpoint::new(Time::ZERO, config, Side::Listener).map_err(failed)?;
            let address = plan[host.index()].address(options.ip_version);
            Ok(EndpointHost::new(address, endpoint, FlowApplication::new(&setup.host), DATAGRAMS_PER_TURN))
        };
        let endpoints = hosts.iter().map(endpoint_host).collect::<Result<Vec<_>, CommandFailure>>()?;
        let run_start: RunStart = Arc::new(OnceLock::new());
        let mut series = setup.series.clone();
        series.flows.clear();
        let router = Router::new(&RouterInputs {
            network: &setup.network,
            routes: &setup.routes,
            addresses: &Addresses::new(&plan),
            seed: setup.seed,
            coalesce: Span::ZERO,
            join: false,
            series: &series,
            watched: &[],
            mtu: transport_plan::mtu(built, options.ip_version),
            run_start: &run_start,
            time: RouterTime::Virtual,
        });
        let indices = (0..).zip(&hosts).map(|(index, &host)| (host, HostIndex(index))).collect();
        // An ideal host sends when its NIC is idle; one that takes time keeps it busy.
        let nic_backlog = if options.costs.are_zero() { Span::ZERO } else { NIC_BACKLOG };
        let network = UdpNetwork::new(router, hosts, nic_backlog, ());
        Ok(Self {
            setup,
            event_loop: EventLoop::new(endpoints, network, options.costs),
            indices,
            plan,
            trust,
            host_settings,
            connections: Vec::new(),
            ready: 0,
            flows: Vec::new(),
            idle: BTreeMap::new(),
            run_start,
        })
    }

    /// Connects all flows, a few at a time.
    fn connect(
        &mut self,
        built: &BuiltRun,
        options: VirtualOptions,
        on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
    ) -> Result<(), CommandFailure> {
        let mut by_address = BTreeMap::new();
        let packet = transport_plan::packet(built, options.ip_version);
        for (number, spec) in self.setup.flows.iter().enumerate() {
            let (src, dst) = (self.indices[&spec.src], self.indices[&spec.dst]);
            let mut settings = transport_plan::flow_settings(built, number, options.burst, &self.host_settings);
            if options.burst.is_none() {
                settings.burst = Bytes::ZERO;
            }
            let port = FIRST_PORT + number as u16;
            let remote = SocketAddr::new(self.plan[spec.dst.index()].address(options.ip_version), LISTEN_PORT);
            let now = self.event_loop.now();
            let host = self.event_loop.host(src);
            let sender = host.connect(now, port, remote, self.trust, Arc::new(settings)).map_err(failed)?;
            by_address.insert(SocketAddr::new(host.address(), port), number);
            self.event_loop.wake(src);
            self.connections.push(VirtualConnection { src, dst, sender, receiver: None, is_admitted: false });
            self.flows.push(VirtualFlow {
                connection: number,
                stream: None,
                baseline: StatsBaseline::default(),
                is_delivered: false,
            });
            let done = (number + 1).saturating_sub(MAX_CONCURRENT_HANDSHAKES);
            self.run_until_ready(done, packet, &by_address, on_progress)?;
        }
        self.run_until_ready(self.connections.len(), packet, &by_address, on_progress)
    }

    /// Runs until the first `count` connections are ready.
    fn run_until_ready(
        &mut self,
        count: usize,
        packet: u16,
        by_address: &BTreeMap<SocketAddr, usize>,
        on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
    ) -> Result<(), CommandFailure> {
        let limit = self.event_loop.now() + CONNECT_TIMEOUT;
        let (mut steps, mut has_worked) = (0, true);
        while self.ready < count {
            if std::mem::take(&mut has_worked) && self.is_ready(self.ready, packet) {
                (self.ready, has_worked) = (self.ready + 1, true);
                continue;
            }
            steps += 1;
            if steps % STEPS_PER_REPORT == 0 && !on_progress(TrafficProgress { now: Time::ZERO, completed: 0 }) {
                return Err(CommandFailure::Interrupted(String::new()));
            }
            match self.event_loop.step(limit) {
                Step::Idle => {
                    let (ready, paths) = (self.ready, self.host_settings.paths);
                    let seconds = CONNECT_TIMEOUT.ps() / 1_000_000_000_000;
                    return Err(failed(format!(
                        "the connection of {} is not ready after {seconds} s of virtual time: it needs {paths} open paths \
                         with UDP payloads of {packet} bytes; {REMEDY}",
                        self.describe(ready)
                    )));
                }
                Step::Host(host) => {
                    has_worked = true;
                    if self.event_loop.host(host).application.has_events() {
                        self.note_connections(host, by_address)?;
                    }
                }
                Step::Network => {}
            }
        }
        Ok(())
    }

    /// Returns whether a connection's paths are open and carry packets of this size.
    fn is_ready(&mut self, number: usize, packet: u16) -> bool {
        let VirtualConnection { src, sender, receiver, is_admitted, .. } = self.connections[number];
        if receiver.is_none() || !is_admitted {
            return false;
        }
        let paths = usize::from(self.host_settings.paths);
        let Some(connection) = self.event_loop.host(src).connection(sender) else { return false };
        connection.paths().count() == paths && connection.paths().all(|path| path.is_open && path.packet_size == packet)
    }

    /// Records new admissions at a host: connections that it has admitted as a listener, and its own that were
    /// admitted.
    fn note_connections(
        &mut self,
        host: HostIndex,
        by_address: &BTreeMap<SocketAddr, usize>,
    ) -> Result<(), CommandFailure> {
        let application = &mut self.event_loop.host(host).application;
        let (admitted, closed) = (std::mem::take(&mut application.admitted), std::mem::take(&mut application.closed));
        if let Some((handle, reason)) = closed.first() {
            let of_flow = |it: &VirtualConnection| {
                (it.src == host && it.sender == *handle) || (it.dst == host && it.receiver == Some(*handle))
            };
            let name = self.connections.iter().position(of_flow).map(|flow| format!(" of {}", self.describe(flow)));
            let name = name.unwrap_or_default();
            return Err(failed(format!("the connection{name} closed before the run began: {reason}; {REMEDY}")));
        }
        for (handle, remote) in admitted {
            if let Some(remote) = remote {
                if let Some(&number) = by_address.get(&remote) {
                    self.connections[number].receiver = Some(handle);
                }
                continue;
            }
            let mut newest = self.connections.iter_mut().rev();
            if let Some(own) = newest.find(|it| it.src == host && it.sender == handle) {
                own.is_admitted = true;
            }
        }
        Ok(())
    }

    /// Returns a flow's number and hosts, for messages.
    fn describe(&self, flow: usize) -> String {
        let (spec, network) = (&self.setup.flows[flow], &self.setup.network);
        let name = |host: HostId| &network.nodes()[network.hosts()[host.index()].index()].name;
        format!("flow {flow} from `{}` to `{}`", name(spec.src), name(spec.dst))
    }

    /// Begins the run: time zero is now. Returns the time until then.
    fn begin(&mut self) -> Span {
        let now = self.event_loop.now();
        let start = *self.run_start.get_or_init(|| now);
        start.since(Time::ZERO)
    }

    fn run_start(&self) -> Time {
        self.run_start.get().copied().unwrap_or(Time::ZERO)
    }

    /// Returns the connection for a flow that starts now: a kept one that is idle, or its own.
    fn connection_for(&mut self, flow: usize) -> usize {
        let spec = &self.setup.flows[flow];
        let key = (spec.src, spec.dst, spec.class, spec.kind);
        let idle = self.idle.get_mut(&key).filter(|_| spec.kept);
        idle.and_then(BTreeSet::pop_first).unwrap_or(flow)
    }

    /// Returns the present counters of a flow's connection.
    fn counters(&mut self, flow: usize) -> StatsBaseline {
        let VirtualConnection { src, dst, sender, receiver, .. } = self.connections[self.flows[flow].connection];
        let recovered = receiver.and_then(|receiver| self.event_loop.host(dst).connection(receiver));
        let recovered = recovered.map_or(0, |receiver| receiver.coding().recovered);
        let host = self.event_loop.host(src);
        if let Some(last) = host.application.last_states.get(&sender) {
            return StatsBaseline { stats: last.stats, actions: last.actions, parity: last.parity, recovered };
        }
        let Some(connection) = host.connection(sender) else { return StatsBaseline::default() };
        StatsBaseline {
            stats: connection.stats(),
            actions: connection.laws().actions,
            parity: connection.coding().parity,
            recovered,
        }
    }

    /// Takes the events of a host's flows.
    fn take_events(&mut self, host: HostIndex, events: &mut Vec<FlowEvent>) {
        let start = self.run_start();
        let application = &mut self.event_loop.host(host).application;
        application.admitted.clear();
        application.closed.clear();
        for ApplicationEvent { time, flow, event } in std::mem::take(&mut application.events) {
            if event == FlowEventKind::Delivered {
                self.flows[flow].is_delivered = true;
                let spec = &self.setup.flows[flow];
                if spec.kept {
                    let key = (spec.src, spec.dst, spec.class, spec.kind);
                    self.idle.entry(key).or_default().insert(self.flows[flow].connection);
                }
            }
            events.push(FlowEvent { time: Time::ZERO + time.since(start), flow, event });
        }
    }
}

impl FlowTransport for VirtualTransport<'_> {
    fn now(&self) -> Time {
        Time::ZERO + self.event_loop.now().since(self.run_start())
    }

    fn start(&mut self, flow: usize) {
        let number = self.connection_for(flow);
        self.flows[flow].connection = number;
        self.flows[flow].baseline = self.counters(flow);
        let VirtualConnection { src, dst, sender, receiver, .. } = self.connections[number];
        let expected = ExpectedFlow { flow, size: self.setup.flows[flow].size.get() };
        if let Some(receiver) = receiver {
            self.event_loop.host(dst).application.expect(receiver, expected);
        }
        let started = self
            .event_loop
            .host(src)
            .with(sender, |connection, application| application.start(sender, expected, connection));
        self.flows[flow].stream = started.flatten();
        self.event_loop.wake(src);
    }

    fn run_until(&mut self, until: Time, events: &mut Vec<FlowEvent>) {
        let limit = if until.is_set() { self.run_start() + until.since(Time::ZERO) } else { Time::NEVER };
        for _ in 0..STEPS_PER_REPORT {
            match self.event_loop.step(limit) {
                Step::Idle => return,
                Step::Host(host) if self.event_loop.host(host).application.has_events() => {
                    return self.take_events(host, events);
                }
                Step::Host(_) | Step::Network => {}
            }
        }
    }

    fn sender_state(&mut self, flow: usize) -> SenderState {
        let VirtualFlow { connection, stream, baseline, is_delivered } = self.flows[flow];
        let Some(stream) = stream else { return SenderState::default() };
        let now = self.counters(flow);
        let VirtualConnection { src, sender, .. } = self.connections[connection];
        let size = self.setup.flows[flow].size.get();
        let host = self.event_loop.host(src);
        let written = if is_delivered { size } else { host.application.written(sender).unwrap_or(0) };
        if let Some(last) = host.application.last_states.get(&sender) {
            let mut state = SenderState { delivered: Bytes::new(last.delivered), ..SenderState::default() };
            now.count_since(&baseline, &mut state);
            return state;
        }
        let Some(connection) = host.connection(sender) else { return SenderState::default() };
        let unacked = if is_delivered { 0 } else { connection.streams().map_or(0, |streams| streams.unacked(stream)) };
        let open: Vec<Span> = connection.paths().filter(|path| path.is_open).map(|path| path.rtt).collect();
        let laws = connection.laws();
        let mut state = SenderState {
            delivered: Bytes::new(written.saturating_sub(unacked)),
            window: laws.window,
            rtt: open.iter().copied().sum::<Span>().over(open.len().max(1) as u32),
            trace: laws.trace,
            ..SenderState::default()
        };
        now.count_since(&baseline, &mut state);
        state
    }

    fn close(&mut self) {}
}
