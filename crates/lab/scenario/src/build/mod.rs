//! Conversion of a run's settings to the simulator's input.

mod credits;
mod failures;
mod impairments;
mod law_columns;
mod laws;
mod network;
mod offered;
mod report;
mod series;
mod switches;
mod thresholds;

use std::ops::Range;

use ::laws::catalog::{EcnSupport, ParamValue as LawValue};
use experiment::{
    Dependencies, FlowId, FlowSpec, HostConfig, InitialQuantum, Setup, Start, SwitchController, SwitchControllerSpec,
    TieBreak,
};
use fabric::{
    Discipline, EcnResponse, FqCoDel, HostId, LinkClass, LinkId, Network, NodeKind, PortConfig, PortParams, Routes,
};
use flow::LoadBalancing;
use flow::{Blocks, Recovery};
use units::{Bytes, Span, Time};

pub use law_columns::LawColumns;
pub use offered::LinkLoad;
pub use report::{Beginning, ClassLine, ClassLoad, CodingLine, JobLine, RunReport};
pub use switches::{CableLine, SwitchLine};

use crate::Error;
use crate::class::FlowClass;
use crate::config::{CodingTable, Config, CreditLaw, FlowOptions, Host, OffOr, Scheme, SwitchBuffers};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;
use crate::law_plan::LawPlan;
use crate::run::Run;
use crate::survey::Survey;
use crate::traffic::{
    Arrivals, Demand, DraftStart, JobFlows, ReadLoop, RequestArrivals, TrafficContext, TrafficFlows, make, make_job,
};
use impairments::ImpairmentList;
use network::NetworkInputs;
use switches::Sharing;

/// A run, ready for the simulator.
#[derive(Clone, Debug)]
pub struct BuiltRun {
    /// The network, the flows, the behaviour of hosts, and the sampling.
    pub setup: Setup,
    /// Makes each flow's law.
    pub laws: LawPlan,
    /// By flow: the index of its entry in `[[traffic]]` or, counted after those, in `[[job]]`.
    pub classes: Vec<FlowClass>,
    /// By flow: the entry that it came from, of `[[traffic]]` or, counted behind those, of `[[job]]`.
    pub traffic: Vec<u16>,
    /// Flows of one request, which is complete when all of them are.
    pub requests: Vec<Vec<FlowId>>,
    /// Flows of one collective operation, or of one iteration of a job.
    pub collectives: Vec<Vec<FlowId>>,
    /// Training jobs.
    pub jobs: Vec<JobFlows>,
    /// Imported schedules.
    pub schedules: Vec<ScheduleFlows>,
    /// Flows of traffic that lists more flows than can start, as ranges from one number up to, but without, another.
    /// Flows of these ranges that never start are not losses.
    pub open_ended: Vec<Range<u32>>,
    /// The files that this run was made from, by their names. Those of the scenario's other runs are not among them.
    pub inputs: Vec<crate::Input>,
    /// Warnings: odd settings that are not errors.
    pub warnings: Vec<String>,
    /// Notes that are no warnings: how other programs' files were read.
    pub notes: Vec<String>,
    /// Report on the run before it is simulated.
    pub report: RunReport,
}

/// The flows of an imported schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleFlows {
    /// Its traffic entry, from 0.
    pub traffic: usize,
    /// Time at which its ranks begin.
    pub start: Time,
    /// From one number up to, but without, another.
    pub flows: Range<u32>,
}

impl Run {
    /// Builds the network, the flows and the laws.
    ///
    /// # Errors
    /// When parts of the scenario do not fit each other: a host that is not there, a load that links cannot carry.
    pub fn build(&self) -> Result<BuiltRun, Error> {
        self.built().map_err(|error| self.inputs.explain(error))
    }

    fn built(&self) -> Result<BuiltRun, SpannedError> {
        let config = &*self.config;
        let inputs = self.inputs.of_a_run();
        let unknown_scheme = || SpannedError::new(config.schemes.origin, format!("no scheme `{}`", self.scheme));
        let scheme: &Scheme = config.schemes.get(&self.scheme).ok_or_else(unknown_scheme)?;
        let reports = scheme.reports();
        let host: Host = config.host.with(scheme.host.as_ref());
        host.check(reports)?;
        let coding = host.coding.clone();
        let coding_scope = coding.as_ref().map_or("", |it| it.scope.name());
        let sharing = Sharing::new(config, scheme)?;
        let buffers = if sharing.is_some() { SwitchBuffers::Shared } else { SwitchBuffers::PerPort };
        let ties = config.clock.tie_break(buffers)?;
        if ties == TieBreak::Scheduled && host.jitter.as_ref().is_some() {
            return Err(SpannedError::new(
                host.jitter.origin,
                "the order of what was scheduled knows no delays in hosts",
            )
            .label("not with tie_break = \"scheduled\" of [clock]"));
        }
        credits::check(scheme, &host, buffers)?;
        credits::check_acks(config, scheme, &host)?;
        let mut host = HostConfig { tick: config.clock.tick(), ..host.config(reports) };
        let sends_credits = scheme.credit_law().is_some();
        let credit_law = if sends_credits { CreditLaw::Present } else { CreditLaw::Absent };
        let queue = config.port.credit_queue(scheme.port.as_ref()).config(host.mss + host.header, credit_law)?;
        let topology = |error: fabric::NetworkError| SpannedError::new(config.topology.origin, error.to_string());
        let network = |rtt| {
            NetworkInputs {
                config,
                scheme,
                sharing: sharing.as_ref(),
                inputs: &inputs,
                impairments: ImpairmentList::default(),
                packet: host.mss + host.header,
                rtt,
                credits: queue,
            }
            .network()
        };
        // Round trips do not depend on buffers, but buffers may depend on round trips.
        let bare = network(Span::ZERO)?;
        ticks_fit(config, &bare, host.mss + host.header)?;
        let routes = Routes::new(&bare).map_err(topology)?;
        let survey = Survey::new(&bare, &routes, &host);
        let longest = [FlowClass::Intra, FlowClass::Inter]
            .into_iter()
            .filter_map(|class| survey.base_rtt(class))
            .map(|range| range.max)
            .max();
        let network = match longest {
            Some(rtt) if config.port.asks_for_bdp(scheme.port.as_ref()) => network(rtt)?,
            _ => bare,
        };
        let network = match &sharing {
            Some(sharing) => sharing.apply(network).map_err(topology)?,
            None => network,
        };
        if scheme.swing.as_ref().is_some() && network.links().iter().all(|link| link.class != LinkClass::Inter) {
            return Err(SpannedError::new(
                scheme.swing.origin,
                "SWING's relays stand in links between datacenters, and there is none",
            )
            .label("needs a topology with two datacenters"));
        }
        trims_alone(config, scheme, &network, buffers)?;
        let (network, routes) = failures::failing(&config.failure, network, routes, *config.stop, config.seed)?;
        host.max_emulation_rtt =
            sends_credits.then(|| credits::max_emulation_rtt(&network, &routes, &host, queue)).flatten();
        let longest_inter = survey.base_rtt(FlowClass::Inter).map(|range| range.max);
        let modules = match &scheme.lscc {
            Some(lscc) => switches::modules(lscc, &network, longest_inter)?,
            None => Vec::new(),
        };
        let (intra_law, inter_law) = scheme.laws()?;
        let [intra, inter] = [intra_law, inter_law]
            .map(|law| law.info().is_none_or(|info| !info.credits))
            .map(|keeps| keeps && !host.receiver_credits);
        let keeps = KeptConnections { intra, inter };
        let context = TrafficContext {
            network: &network,
            routes: &routes,
            survey: &survey,
            host: &host,
            inputs: &inputs,
            stop: *config.stop,
            seed: config.seed,
        };

        let Drafted {
            flows,
            dependencies,
            classes,
            traffic,
            requests,
            collectives,
            jobs,
            schedules,
            open_ended,
            receivers,
            arrivals,
            demands,
            requested,
            loops,
            mut warnings,
            notes,
            late: _,
        } = self.flows(&context, &coding, keeps)?;
        let series =
            series::series(&config.monitor, &network, &receivers, &host, flows.len(), *config.stop, &mut warnings)?;
        let plan = laws::plan(config, scheme, &network)?;
        credits::check_retries(scheme, &flows, &classes, &survey)?;
        let lines = switches::lines(config, scheme, &network, host.mss + host.header)?;
        warnings.extend(laws::warnings(&plan));
        warnings.extend(unmet_law_signals(&network, &host, &plan, &modules));
        warnings.extend(always_held(&flows, &host, &survey));
        warnings.extend(asked_early(&network, &flows, &host, &survey));
        warnings.extend(unused_sizes(&host, &plan));
        warnings.extend(too_shallow(&network, &host));
        warnings.extend(trims_in_vain(&network, &host));
        warnings.extend(mtu_too_small(&network, &host));
        warnings.extend(thresholds::marks(
            config,
            self,
            scheme,
            &network,
            Bytes::new(u64::from(host.mss + host.header)),
        ));
        warnings.extend(thresholds::targets(&self.scheme, scheme, &plan, &survey));
        if let Some(rto_min) = host.rto_min.filter(|rto_min| *rto_min > host.rto_max) {
            warnings.push(format!(
                "host.rto_min ({rto_min}) is over host.rto_max ({}): timeouts grow to the former",
                host.rto_max
            ));
        }
        warnings.extend(switches::looped_relays(&network));
        warnings.extend(failures::too_late(&config.failure, *config.stop));
        if sends_credits && queue.is_none() {
            warnings.push("a law sends credits, but ports have no queue for them: [port] credit_queue is off".into());
        }
        if sharing.is_none() && config.switch.is_none() && config.port.says_gate() {
            warnings.push(
                "[port] sets how cables share the buffer of a switch, but no switch has a shared buffer: there is no [switch]"
                    .into(),
            );
        }
        let link_loads = offered::offered(&network, &routes, &demands);
        warnings.extend(link_loads.warning);
        let listed = (0..).zip(&flows).filter(|(flow, _)| open_ended.iter().all(|range| !range.contains(flow)));
        let listed: Vec<&FlowSpec> = listed.map(|(_, flow)| flow).collect();
        let offered = report::OfferedTraffic { arrivals, requested, loops };
        let mut report = RunReport::new(&network, &survey, &listed, offered, lines, Time::ZERO + *config.stop);
        let intra_rtt = [report.intra_rtt.map(|range| range.max), report.inter_rtt.map(|range| range.min)];
        let intra_rtt = intra_rtt.into_iter().flatten().next().unwrap_or(Span::ZERO);
        let setup = Setup {
            network,
            routes,
            symmetric: credits::need_symmetry(&plan),
            flows,
            dependencies,
            host,
            modules,
            series,
            seed: config.seed,
            stop: Time::from_ps(config.stop.unsigned_ps()),
            intra_rtt,
            ties,
        };
        (report.path, report.coding) = (setup.host.path, CodingLine::new(&setup));
        report.most_loaded = link_loads.most_loaded;
        let class_line = |class| ClassLine::new(class, &survey, &plan, intra_rtt, setup.host.mss);
        report.classes = [FlowClass::Intra, FlowClass::Inter].into_iter().filter_map(class_line).collect();
        report.jobs = jobs.iter().map(JobLine::new).collect();
        report.data_wait = credits::data_wait(&plan, &setup.host);
        report.on_ramp = setup.host.on_ramp.filter(|_| setup.flows.iter().any(|flow| flow.on_ramp));
        report.modules = report::counted(&setup.modules);
        if setup.host.coding.is_some() && report.coding.is_none() {
            warnings.push(format!("[host] coding is for {coding_scope} flows, and there are none"));
        }
        let inputs = inputs.named();
        Ok(BuiltRun {
            setup,
            laws: plan,
            classes,
            traffic,
            requests,
            collectives,
            jobs,
            schedules,
            open_ended,
            inputs,
            warnings,
            notes,
            report,
        })
    }

    /// Returns the flows of all entries of traffic.
    fn flows(
        &self,
        context: &TrafficContext,
        coding: &Located<OffOr<CodingTable>>,
        keeps: KeptConnections,
    ) -> Result<Drafted, SpannedError> {
        let mut all = Drafted::default();
        let traffic = self.config.traffic.len();
        let limit = |index: usize, origin| {
            u16::try_from(index).map_err(|_| SpannedError::new(origin, "over 65,536 entries of traffic and jobs"))
        };
        for (index, entry) in self.config.traffic.iter().enumerate() {
            let output = make(entry, index, context)?;
            all.add(output, limit(index, entry.origin)?, entry.treatment(), context, coding, keeps)?;
        }
        for (index, job) in (traffic..).zip(&self.config.job) {
            let output = make_job(job, index, context).map_err(|error| error.at_least(job.origin))?;
            all.add(output, limit(index, job.origin)?, job.treatment(), context, coding, keeps)?;
        }
        if all.flows.is_empty() {
            return Err(SpannedError::new(self.config.traffic.origin, "no traffic: zero flows").label("zero flows"));
        }
        if all.late > 0 {
            let (late, stop, count) = (all.late, context.stop, all.flows.len());
            all.warnings.push(format!("{late} of {count} flows would start only at the stop, {stop}, or later"));
        }
        Ok(all)
    }
}

/// Classes of flows that can keep connections.
#[derive(Clone, Copy)]
struct KeptConnections {
    intra: bool,
    inter: bool,
}

impl KeptConnections {
    fn of(self, class: FlowClass) -> bool {
        match class {
            FlowClass::Intra => self.intra,
            FlowClass::Inter => self.inter,
        }
    }
}

/// Flows that the entries of traffic produce.
#[derive(Default)]
struct Drafted {
    flows: Vec<FlowSpec>,
    dependencies: Dependencies,
    classes: Vec<FlowClass>,
    traffic: Vec<u16>,
    requests: Vec<Vec<FlowId>>,
    collectives: Vec<Vec<FlowId>>,
    jobs: Vec<JobFlows>,
    schedules: Vec<ScheduleFlows>,
    open_ended: Vec<Range<u32>>,
    receivers: Vec<HostId>,
    arrivals: Vec<Arrivals>,
    demands: Vec<Demand>,
    requested: Vec<RequestArrivals>,
    loops: Vec<ReadLoop>,
    warnings: Vec<String>,
    notes: Vec<String>,
    /// Flows that would start only at the stop, or later.
    late: u64,
}

impl Drafted {
    /// Adds the flows of the traffic entry with that number.
    fn add(
        &mut self,
        output: TrafficFlows,
        entry: u16,
        treatment: FlowOptions,
        context: &TrafficContext,
        coding: &Located<OffOr<CodingTable>>,
        keeps: KeptConnections,
    ) -> Result<(), SpannedError> {
        let (network, host) = (context.network, context.host);
        let first = index32(self.flows.len());
        let renumber = self.dependencies.join(&output.dependencies, FlowId(first));
        for draft in output.flows {
            let same = network.datacenter_of(draft.src) == network.datacenter_of(draft.dst);
            let class = if same { FlowClass::Intra } else { FlowClass::Inter };
            let start = match draft.start {
                DraftStart::At(span) => {
                    self.late += u64::from(span >= context.stop);
                    Start::At(Time::from_ps(span.unsigned_ps()))
                }
                DraftStart::Waits { dependencies, after } => {
                    Start::Waits { dependencies: renumber(dependencies), after }
                }
            };
            let coded = coding.as_ref().is_some_and(|coding| coding.scope.has(class));
            if let Some(chosen) = host.coding.filter(|_| coded)
                && Blocks::checked(draft.size, host.mss, &chosen.code).is_none()
            {
                let message = format!("a flow of {} has over 4294967295 packets with its parity", draft.size);
                return Err(SpannedError::new(coding.origin, message).label("expected less parity, or larger packets"));
            }
            self.flows.push(FlowSpec {
                src: draft.src,
                dst: draft.dst,
                size: draft.size,
                start,
                kind: class as u16,
                class: treatment.traffic_class,
                on_ramp: treatment.on_ramp && host.on_ramp.is_some(),
                coded,
                kept: treatment.kept && keeps.of(class),
            });
            self.classes.push(class);
            self.traffic.push(entry);
        }
        let flow_ids = |(low, high): (u32, u32)| (first + low..first + high).map(FlowId).collect();
        self.requests.extend(output.requests.into_iter().map(flow_ids));
        self.collectives.extend(output.collectives.into_iter().map(flow_ids));
        self.jobs.extend(output.job.map(|job| job.numbered_from(FlowId(first))));
        let flows = first..index32(self.flows.len());
        let schedule = |start: Span| {
            let start = Time::from_ps(start.unsigned_ps());
            ScheduleFlows { traffic: usize::from(entry), start, flows: flows.clone() }
        };
        self.schedules.extend(output.schedule.map(schedule));
        self.receivers.extend(output.receivers);
        if output.open_ended {
            self.open_ended.push(flows);
        }
        self.arrivals.extend(output.arrivals);
        self.demands.extend(output.demands);
        self.requested.extend(output.requested);
        self.loops.extend(output.closed_loop);
        self.warnings.extend(output.warnings);
        self.notes.extend(output.notes);
        Ok(())
    }
}

/// Refuses trimming where ports decide together: switches that share a buffer, report their queues or have controllers.
fn trims_alone(
    config: &Config,
    scheme: &Scheme,
    network: &Network,
    buffers: SwitchBuffers,
) -> Result<(), SpannedError> {
    let trims = network.params().iter().any(|port| port.config().trim.is_some());
    if !trims || !network::ports_decide_together(config, scheme, buffers) {
        return Ok(());
    }
    let of_scheme = scheme.port.as_ref().and_then(|port| port.trim.as_ref());
    let at = of_scheme.filter(|trim| trim.as_ref().is_some()).unwrap_or(&config.port.trim).origin;
    Err(SpannedError::new(at, "a port trims by its own queue, and here the ports of a switch decide together")
        .label("trims")
        .help(format!("{}; or port.trim = false", network::INDEPENDENT_PORTS_HELP)))
}

/// Refuses a clock with ticks longer than a packet: a port could then send an unlimited number of packets at one time.
fn ticks_fit(config: &Config, network: &Network, packet: u32) -> Result<(), SpannedError> {
    let rates = network.params().iter().map(|port| port.config().rate);
    let Some(fastest) = rates.max() else { return Ok(()) };
    let service = fastest.tx_time(Bytes::new(packet.into()));
    let tick = config.clock.tick();
    if tick.is_none() || !tick.tx_time(fastest, Bytes::new(packet.into())).is_zero() {
        return Ok(());
    }
    let message = format!("a packet of {packet} B lasts {service} at {fastest}, not over a tick of {}", tick.span());
    Err(SpannedError::new(config.clock.tick.origin, message).label(format!("expected under {service}")))
}

/// On-Ramp's threshold under the delay of an empty path.
fn always_held(flows: &[FlowSpec], host: &HostConfig, survey: &Survey) -> Option<String> {
    let on_ramp = host.on_ramp.filter(|on_ramp| !on_ramp.on_queueing_delay)?;
    let threshold = on_ramp.params.threshold;
    let on_ramp_flows: Vec<&FlowSpec> = flows.iter().filter(|flow| flow.on_ramp).collect();
    let over = |flow: &&FlowSpec| survey.one_way(flow.src, flow.dst).filter(|&delay| delay > threshold);
    let delays: Vec<Span> = on_ramp_flows.iter().filter_map(over).collect();
    let longest = delays.iter().max()?;
    Some(format!(
        "On-Ramp's threshold, {threshold}, is below the base one-way delay of {} of {} flows, up to {longest}: each of their \
         packets holds them, with empty queues, too",
        delays.len(),
        on_ramp_flows.len()
    ))
}

/// Returns a warning about receivers that request a retransmission before the packet can have arrived.
fn asked_early(network: &Network, flows: &[FlowSpec], host: &HostConfig, survey: &Survey) -> Option<String> {
    let Recovery::GoBackN { nack_interval, .. } = host.recovery else { return None };
    if !may_miss(network, host.path) {
        return None;
    }
    let longer = |flow: &FlowSpec| survey.round_trip(flow.src, flow.dst).filter(|&rtt| rtt > nack_interval);
    let round_trips: Vec<Span> = flows.iter().filter_map(longer).collect();
    let longest = round_trips.iter().max()?;
    Some(format!(
        "[host] nack_interval, {nack_interval}, is below the base round trip of {} of {} flows, up to {longest}: a receiver asks \
         again for a packet that is on its way, and everything from it on is sent again each time",
        round_trips.len(),
        flows.len()
    ))
}

/// Returns whether a receiver may find a packet missing: not if every switch pauses, no link loses packets, and flows
/// keep their path.
fn may_miss(network: &Network, path: LoadBalancing) -> bool {
    let mut switches = network.nodes().iter().filter(|node| node.kind == NodeKind::Switch);
    let mut ports = network.params().iter().map(PortParams::config);
    switches.any(|node| node.switch.is_none_or(|switch| switch.pfc.is_none()))
        || ports.any(|port| !port.loss.is_zero() || port.bursts.is_some() || port.impairments.is_some())
        || network.failing().next().is_some()
        || path != LoadBalancing::PerFlow
}

/// Returns a warning about switch ports with buffers smaller than a full packet.
fn too_shallow(network: &Network, host: &HostConfig) -> Option<String> {
    let packet = Bytes::new(u64::from(host.mss + host.header));
    let small = |&link: &LinkId| {
        let from = network.links()[link.index()].from;
        let is_switch = network.nodes()[from.index()].kind == NodeKind::Switch;
        is_switch && network.port(link).config().buffer < packet
    };
    let mut ports = (0..index32(network.links().len())).map(LinkId).filter(small);
    let first = ports.next()?;
    let (buffer, name) = (network.port(first).config().buffer, network.link_name(first));
    Some(format!(
        "port {name} and {} others have buffers smaller than a full packet of {packet}, which they drop: {buffer}",
        ports.count()
    ))
}

/// Returns a warning about links with an MTU below a full packet.
fn mtu_too_small(network: &Network, host: &HostConfig) -> Option<String> {
    let packet = host.mss + host.header;
    let mtu = |link: LinkId| network.impairments(link).and_then(|it| it.mtu).filter(|&mtu| mtu < packet);
    let mut found = (0..index32(network.links().len())).map(LinkId).filter_map(|link| Some((link, mtu(link)?)));
    let (first, mtu) = found.next()?;
    Some(format!(
        "link {} and {} others have an MTU of {mtu} B or less, and drop all full packets, which have {packet} B \
         (port.impair.mtu)",
        network.link_name(first),
        found.count()
    ))
}

/// Returns a warning about ports that cannot trim: packets are no larger than the trimmed size, or their buffer has no room
/// for it.
fn trims_in_vain(network: &Network, host: &HostConfig) -> Option<String> {
    let packet = host.mss + host.header;
    let of_port = |config: &PortConfig| {
        let trim = config.trim?;
        let longest = host.ack_size.max(trim.header.into());
        if u32::from(trim.header) >= packet {
            Some(format!("trims packets of {packet} B to {} B, which is no less", trim.header))
        } else if trim.control < Bytes::new(longest.into()) {
            Some(format!("has {} for control packets, and drops all of {longest} B", trim.control))
        } else {
            None
        }
    };
    let mut found = (0..index32(network.links().len()))
        .map(LinkId)
        .filter_map(|link| of_port(network.port(link).config()).map(|effect| (link, effect)));
    let (first, effect) = found.next()?;
    Some(format!("port {} {effect} (port.trim; so with {} others)", network.link_name(first), found.count()))
}

/// Returns a warning if sizes are known and neither the hosts nor the laws use them. The inputs of an external law are
/// not known.
fn unused_sizes(host: &HostConfig, laws: &LawPlan) -> Option<String> {
    if !host.size_aware || host.initial_quantum != InitialQuantum::NONE {
        return None;
    }
    let mut names = Vec::new();
    for class in [FlowClass::Intra, FlowClass::Inter] {
        let info = laws.law(class)?.0.info();
        if info.reads_bytes_remaining {
            return None;
        }
        names.push(info.name);
    }
    names.dedup();
    let do_not = match &names[..] {
        [one] => format!("law {one} does not"),
        both => format!("laws {} do not", both.join(" and ")),
    };
    Some(format!(
        "hosts know how long flows are (host.size_aware), and nothing uses it: the {do_not} (strait does), and \
         host.initial_quantum is 0"
    ))
}

/// Returns warnings about laws that expect notifications or marks that nothing sends, and about laws that ignore the
/// notifications that are sent.
fn unmet_law_signals(
    network: &Network,
    host: &HostConfig,
    laws: &LawPlan,
    modules: &[SwitchControllerSpec],
) -> Vec<String> {
    let notified = modules
        .iter()
        .any(|spec| matches!(spec.module, SwitchController::RateLimiting(limiting) if !limiting.telemetry));
    let codel_marks = |port: &PortConfig| match port.discipline {
        Discipline::Fifo => false,
        Discipline::CoDel(codel) | Discipline::FqCoDel(FqCoDel { codel, .. }) => codel.response == EcnResponse::Mark,
    };
    let configs = || network.params().iter().map(PortParams::config);
    let marks = configs().any(|port| port.ecn.is_some() || port.phantom.is_some() || codel_marks(port));
    let by_codel = configs().any(codel_marks);
    let mut effect = Vec::new();
    for class in [FlowClass::Intra, FlowClass::Inter] {
        // The input signals of an external law are unknown.
        let Some((law, params)) = laws.law(class) else { continue };
        let info = law.info();
        let name = info.name;
        let reads_marks = match info.marks {
            EcnSupport::Ignored => false,
            EcnSupport::Used => true,
            EcnSupport::If(switch) => params.contains(&(switch, LawValue::Switch(true))),
        };
        let notified = notified && class == FlowClass::Inter;
        if notified && !info.notified && !reads_marks {
            effect.push(format!(
                "LSCC's near end notifies sources of congestion, and the law {name} uses neither notifications nor marks: \
                 DCQCN and laws that read ECN do, and hpcc with near_loop and lscc.telemetry = true"
            ));
        }
        // Where a switch notifies a source, receivers need not.
        let needs_cnps = info.notified && !notified && !reads_marks;
        if needs_cnps && host.cnp.is_none() {
            effect.push(format!(
                "the law {name} listens to notifications of congestion, but receivers send none: give [host] \
                 cnp_interval = \"50us\""
            ));
        }
        let needs_marks = reads_marks || needs_cnps;
        if by_codel && !reads_marks {
            effect.push(format!(
                "CoDel marks ECN-capable packets instead of dropping them, all data is ECN-capable here, and the law {name} \
                 ignores marks: give codel or fq_codel of [port] ecn = false"
            ));
        }
        if needs_marks && !marks {
            effect.push(format!("the law {name} listens to marks, but no port marks: give [port] ecn"));
        }
    }
    effect.sort();
    effect.dedup();
    effect
}
