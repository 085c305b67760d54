//! A complete run: hosts, router, sampler, and traffic.

use std::net::IpAddr;
use std::path::PathBuf;

use experiment::{DriverConfig, FlowTransport, Outcome, Setup, TRUNCATED, TrafficProgress, broken_connections, drive};
use fabric::{HostId, LinkId};
use units::{Bytes, Span, Time};

use crate::clock::Clock;
use crate::diag::{Sampler, SocketSamples};
use crate::error::Error;
use crate::law_state::LawStateReader;
use crate::namespace::{HostNamespaces, HostSelection, NamespaceOptions};
use crate::outcome::{ObservedTraffic, program_outcome, traffic_outcome};
use crate::pressure::{Pressure, PressureMonitor};
use crate::router::{COALESCE, RouterConfig, RouterOutcome, Running, start};
use crate::sys::Urgent;
use crate::traffic::{Connected, HostNetwork, MIN_INTERVAL, PROGRESS_INTERVAL, Traffic, flow_of};
use router::IpVersion;

/// Options of a run.
pub struct RunOptions {
    /// The kernel's names of congestion controls: for a scenario's flows by their kind; of programs, the first one is
    /// the default of their sockets.
    pub congestion: Vec<String>,
    /// True if TCP requests ECN even if its congestion control does not need it.
    pub ecn: bool,
    /// The IP version of a scenario's flows.
    pub ip_version: IpVersion,
    /// The largest burst that TCP hands a device at a time; none keeps the kernel's own limit, 64 KiB.
    pub burst: Option<u32>,
    /// True if the router requests real-time scheduling.
    pub real_time: bool,
    /// Ports to capture: their packets are written to files.
    pub pcap: Vec<(LinkId, PathBuf)>,
    /// Decoder of the laws' state, if the laws are ours.
    pub law_state: Option<Box<dyn LawStateReader>>,
}

/// Transport in user space that the emulator runs.
pub trait HostTransport: FlowTransport {
    /// Makes an end in every host that needs one, and connects all flows; none sends. `keep_running` is called now and then
    /// and returns whether to go on.
    ///
    /// # Errors
    /// When an end or a connection cannot be made, or `keep_running` returns false.
    fn connect(
        &mut self,
        setup: &Setup,
        host_network: &dyn HostNetwork,
        keep_running: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error>;

    /// Sets the clock of the run.
    fn begin(&mut self, clock: Clock);
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Emulated {
    /// The setup of the run; for programs, with the flows that were observed.
    pub setup: Setup,
    /// The outcome.
    pub outcome: Outcome,
    /// The router's own report, without links and samples, which are in the outcome.
    pub router: RouterOutcome,
    /// By kind of flow: the kernel's name of its congestion control.
    pub congestion: Vec<String>,
    /// Waits of the run's threads.
    pub pressure: Pressure,
    /// Notes to read before the numbers are used.
    pub notes: Vec<String>,
}

/// Minimum size to which socket buffers can grow.
const MIN_BUFFER: Bytes = Bytes::new(64 << 20);

/// Minimum MTU of hosts (RFC 8200 §5). The transport's packets with data may be shorter; those of its handshake are not.
const MIN_MTU: u32 = 1_280;

/// The real-time priority of host threads: below the router's, so that their work never delays the router.
const HOSTS_PRIORITY: i32 = 1;

/// Default interval between samples of programs' connections.
const PROGRAM_INTERVAL: Span = Span::from_ms(10);

impl HostNetwork for HostNamespaces {
    fn address(&self, host: HostId, version: IpVersion) -> IpAddr {
        let plan = &self.plan()[host.index()];
        match version {
            IpVersion::V4 => plan.v4.into(),
            IpVersion::V6 => plan.v6.into(),
        }
    }

    fn within(&self, host: HostId, work: &mut (dyn FnMut() -> Result<(), Error> + Send)) -> Result<(), Error> {
        self.enter(host, work)?
    }
}

/// Checks that hosts can be made here, by making two, and removes leftovers of dead processes. Returns the names of the
/// namespaces removed.
///
/// # Errors
/// If they cannot be made: without root, `ip` or `/dev/net/tun`.
pub fn preflight() -> Result<Vec<String>, Error> {
    let removed = HostNamespaces::clean_stale()?;
    let port = fabric::PortConfig::new(units::Rate::from_gbps(1), Span::from_us(1));
    let two = fabric::topology::SingleSwitch { hosts: vec![(port, port); 2] };
    // Two hosts on a switch are a network.
    if let Ok(network) = fabric::topology::single_switch(&two) {
        let options = NamespaceOptions {
            hosts: HostSelection::All,
            mtu: 1_500,
            gso_max_size: None,
            quick_ack: false,
            socket_buffer: MIN_BUFFER,
            congestion: None,
            ecn: false,
        };
        HostNamespaces::create(&network, &options)?;
    }
    Ok(removed)
}

/// Runs a scenario's flows as real TCP, until all have ended, the stop, or `on_progress` returns false.
///
/// # Errors
/// When hosts, router or connections cannot be made. Nothing is left behind.
pub fn run_traffic(
    setup: &Setup,
    mut options: RunOptions,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> Result<Emulated, Error> {
    let hosts = HostNamespaces::create(&setup.network, &namespaces(setup, &options, None, hosts_of(setup))?)?;
    let router = start(&hosts, &router_config(setup, &options))?;
    let traffic = Traffic { setup, congestion: &options.congestion, ip_version: options.ip_version };
    let no_progress = TrafficProgress { now: Time::ZERO, completed: 0 };
    let connections = Connected::new(traffic, &hosts, &mut || on_progress(no_progress))?;
    let clock = router.begin();
    let sampled = !setup.series.interval.is_zero() && !setup.series.flows.is_empty();
    let sampler = sampled.then(|| {
        let is_flow = |socket: &inet_diag::DiagSocket| flow_of(socket.local.port()).is_some();
        Sampler::start(&hosts, clock, setup.series.interval, is_flow, options.law_state.take())
    });
    let sampler = sampler.transpose()?;
    let pressure = PressureMonitor::start();
    let end = connections.run(clock, on_progress);
    let pressure = pressure.end();
    let samples = sampler.map(Sampler::stop).unwrap_or_default();
    let router = router.stop()?;
    let pressure = Pressure { stalled: router.stalled, ..pressure };
    let outcome = traffic_outcome(setup, &end, &samples, &router);
    let mut notes = broken_connections(end.flows.iter().map(|ended| &ended.failure));
    add_sample_notes(&samples, &mut notes);
    let (setup, congestion) = (setup.clone(), options.congestion);
    Ok(Emulated { setup, outcome, router: without_series(router), congestion, pressure, notes })
}

/// Runs a scenario's flows over a transport in user space, until all have ended, the stop, or `on_progress` returns false.
/// The TCP-only parts of `options` have no effect; `congestion` names the laws for the results.
///
/// # Errors
/// When hosts, router or connections cannot be made. Nothing is left behind.
pub fn run_over_transport(
    setup: &Setup,
    options: RunOptions,
    transport: &mut dyn HostTransport,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> Result<Emulated, Error> {
    let hosts = HostNamespaces::create(&setup.network, &namespaces(setup, &options, None, hosts_of(setup))?)?;
    let router = start(&hosts, &router_config(setup, &options))?;
    // Their threads are the hosts, and begin here.
    let urgent = options.real_time.then(|| Urgent::request(HOSTS_PRIORITY));
    let no_progress = TrafficProgress { now: Time::ZERO, completed: 0 };
    let connected = transport.connect(setup, &hosts, &mut || on_progress(no_progress));
    if let Err(error) = connected {
        transport.close();
        return Err(error);
    }
    transport.begin(router.begin());
    let pressure = PressureMonitor::start();
    let intervals = DriverConfig { min_sample_interval: MIN_INTERVAL, progress_interval: PROGRESS_INTERVAL };
    let end = drive(setup, transport, intervals, on_progress);
    drop(urgent);
    let pressure = pressure.end();
    let router = router.stop()?;
    let pressure = Pressure { stalled: router.stalled, ..pressure };
    let notes = end.notes();
    let outcome = end.into_outcome(router.links.clone(), router.port_samples.clone(), router.switches.clone());
    let (setup, congestion) = (setup.clone(), options.congestion);
    Ok(Emulated { setup, outcome, router: without_series(router), congestion, pressure, notes })
}

/// Programs in the hosts' namespaces.
pub trait Programs {
    /// An error of theirs, or of the emulator.
    type Error: From<Error>;
    /// Programs in the background. They are ended when this is dropped.
    type Background;

    /// Starts the programs that must be running before the run.
    ///
    /// # Errors
    /// If a program cannot be started.
    fn prepare(&self, hosts: &HostNamespaces) -> Result<Self::Background, Self::Error>;

    /// Does the measured work. Time zero of the run is its start.
    ///
    /// # Errors
    /// If it fails.
    fn work(&self, hosts: &HostNamespaces) -> Result<(), Self::Error>;
}

/// Runs programs in the hosts' namespaces and measures their traffic.
///
/// # Errors
/// If hosts or router cannot be made, or the programs fail. All of them are removed then, too.
pub fn run_programs<P: Programs>(setup: &Setup, mut options: RunOptions, programs: &P) -> Result<Emulated, P::Error> {
    let default = options.congestion.first().cloned();
    let hosts = HostNamespaces::create(&setup.network, &namespaces(setup, &options, default, HostSelection::All)?)?;
    let router: Running = start(&hosts, &router_config(setup, &options))?;
    let background = programs.prepare(&hosts)?;
    let clock = router.begin();
    let interval = if setup.series.interval.is_zero() { PROGRAM_INTERVAL } else { setup.series.interval };
    let sampler = Sampler::start(&hosts, clock, interval, |_| true, options.law_state.take())?;
    let pressure = PressureMonitor::start();
    let worked = programs.work(&hosts);
    drop(background);
    // Connections that the programs have closed end when the last of their packets has been answered.
    if worked.is_ok() {
        std::thread::sleep(std::time::Duration::from_nanos(closing_time(setup).unsigned_ps() / 1_000));
    }
    let ended = clock.now();
    let pressure = pressure.end();
    let samples = sampler.stop();
    let router = router.stop()?;
    let pressure = Pressure { stalled: router.stalled, ..pressure };
    worked?;
    let observed = program_outcome(setup, hosts.plan(), &samples, &router, ended);
    let mut notes = Vec::new();
    if observed.small > 0 {
        notes.push(format!(
            "{} of TCP connections sent no more than an initial window (10 packets) and are not listed as flows",
            match observed.small {
                1 => "1 direction".to_owned(),
                many => format!("{many} directions"),
            }
        ));
    }
    if observed.setup.flows.is_empty() {
        notes.push("no TCP connection between hosts sent more than an initial window".to_owned());
    }
    add_sample_notes(&samples, &mut notes);
    let ObservedTraffic { setup, outcome, congestion, .. } = observed;
    Ok(Emulated { setup, outcome, router: without_series(router), congestion, pressure, notes })
}

fn add_sample_notes(samples: &SocketSamples, notes: &mut Vec<String>) {
    notes.extend(samples.truncated.then(|| TRUNCATED.to_owned()));
    if let Some(reason) = &samples.law_state_refused {
        notes.push(format!("the laws' own state and their counts of actions are missing: {reason}"));
    }
}

fn without_series(router: RouterOutcome) -> RouterOutcome {
    RouterOutcome { links: Vec::new(), port_samples: Vec::new(), ..router }
}

fn router_config<'a>(setup: &'a Setup, options: &RunOptions) -> RouterConfig<'a> {
    let mut series = setup.series.clone();
    series.flows.clear();
    RouterConfig {
        network: &setup.network,
        routes: &setup.routes,
        seed: setup.seed,
        coalesce: COALESCE,
        // Packets that arrived together are acknowledged together.
        join: setup.host.ack_every != 1,
        series,
        pcap: options.pcap.clone(),
        real_time: options.real_time,
    }
}

/// Returns the hosts that send or receive.
fn hosts_of(setup: &Setup) -> HostSelection {
    HostSelection::Only(setup.flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect())
}

fn namespaces(
    setup: &Setup,
    options: &RunOptions,
    congestion: Option<String>,
    hosts: HostSelection,
) -> Result<NamespaceOptions, Error> {
    let wire = setup.host.mss.saturating_add(setup.host.header).max(MIN_MTU);
    let mtu = u16::try_from(wire).map_err(|_| Error::Mtu { mtu: u16::MAX })?;
    Ok(NamespaceOptions {
        hosts,
        mtu,
        gso_max_size: options.burst,
        quick_ack: setup.host.ack_every == 1,
        socket_buffer: socket_buffer(setup),
        congestion,
        ecn: options.ecn,
    })
}

/// Returns the time that connections have to end: two round trips through full queues, 0.1 to 2 s.
fn closing_time(setup: &Setup) -> Span {
    let round_trips = setup.flows.iter().map(|flow| {
        let path = setup.paths(flow.src, flow.dst, setup.host.mss);
        path.base_rtt + path.longest_wait.unwrap_or(Span::ZERO)
    });
    let longest = round_trips.max().unwrap_or(Span::ZERO);
    (longest + longest).clamp(Span::from_ms(100), Span::from_s(2))
}

/// Returns four times the capacity of the path with the largest one: the kernel counts a packet's memory at up to twice
/// its payload, and assigns half of a receiver's buffer to the window.
fn socket_buffer(setup: &Setup) -> Bytes {
    let path_capacities = setup.flows.iter().map(|flow| {
        let path = setup.paths(flow.src, flow.dst, setup.host.mss);
        path.line_rate.bytes_in(path.base_rtt + path.longest_wait.unwrap_or(Span::ZERO))
    });
    path_capacities.max().unwrap_or(Bytes::ZERO).times(4).max(MIN_BUFFER)
}
