//! Report on a run before it is simulated.

use experiment::{Coding, FlowSpec, OnRampConfig, Setup, SwitchController, SwitchControllerSpec};
use fabric::{LinkClass, LinkId, Network, Outages};
use flow::LoadBalancing;
use laws::{PathInfo, SendLimits};
use units::{Bytes, Rate, Span, Time};

use super::offered::LinkLoad;
use super::switches::SwitchLine;
use crate::class::FlowClass;
use crate::law_plan::LawPlan;
use crate::survey::{Reach, RttRange, Survey};
use crate::traffic::{Arrivals, JobFlows, ReadLoop, RequestArrivals, StepKind};

/// A run's size, its round trips and its load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    /// Datacenters.
    pub datacenters: u16,
    /// Hosts.
    pub hosts: usize,
    /// Switches.
    pub switches: usize,
    /// Directed links.
    pub links: usize,
    /// Base round trips inside datacenters; none if no datacenter has two hosts.
    pub intra_rtt: Option<RttRange>,
    /// Base round trips between datacenters.
    pub inter_rtt: Option<RttRange>,
    /// Bandwidth-delay products and initial windows, of classes that have pairs of hosts.
    pub classes: Vec<ClassLine>,
    /// The most loaded links by random arrivals, by class and direction.
    pub most_loaded: Vec<LinkLoad>,
    /// Flows, without those that read until the stop.
    pub flows: usize,
    /// Their payload.
    pub payload: Bytes,
    /// Their load on links, by class, without classes that the network lacks.
    pub loads: Vec<ClassLoad>,
    /// Rates of random arrivals.
    pub arrivals: Vec<Arrivals>,
    /// Rates of requests.
    pub requested: Vec<RequestArrivals>,
    /// Closed loops.
    pub loops: Vec<ReadLoop>,
    /// Training jobs.
    pub jobs: Vec<JobLine>,
    /// Switches that share their buffers, alike ones together.
    pub shared: Vec<SwitchLine>,
    /// On-Ramp, where it may hold some flow's packets.
    pub on_ramp: Option<OnRampConfig>,
    /// Controllers in switches, and of each kind how many there are.
    pub modules: Vec<(SwitchController, usize)>,
    /// Links that are down at times.
    pub failing: usize,
    /// Number of outages of all links before the stop.
    pub outages: usize,
    /// Path selection of flows.
    pub path: LoadBalancing,
    /// Time for which data waits for its exact departure, if credits schedule it so (FlashPass's `T_wait`).
    pub data_wait: Option<Span>,
    /// Coded flows, if there are any.
    pub coding: Option<CodingLine>,
}

/// Bandwidth-delay product and initial window of a class of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassLine {
    /// The class.
    pub class: FlowClass,
    /// Pair of hosts with the smallest bandwidth-delay product.
    pub least: Beginning,
    /// Pair with the largest.
    pub most: Beginning,
}

/// Send limits of a new flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beginning {
    /// Bandwidth-delay product of its path.
    pub bdp: Bytes,
    /// Payload and rate that its law permits before the first acknowledgement; none where credits schedule packets, and of
    /// external laws.
    pub send_limits: Option<SendLimits>,
}

impl ClassLine {
    pub(super) fn new(class: FlowClass, survey: &Survey, laws: &LawPlan, intra_rtt: Span, mss: u32) -> Option<Self> {
        let beginning = |reach: Reach| {
            let Reach { base_rtt, line_rate } = reach;
            let path = PathInfo { base_rtt, intra_rtt, line_rate, mss: Bytes::new(mss.into()) };
            Beginning { bdp: reach.bdp(), send_limits: laws.first_send_limits(class, &path) }
        };
        let [least, most] = survey.extremes(class)?.map(beginning);
        Some(Self { class, least, most })
    }
}

/// Summary of the coded flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodingLine {
    /// Their erasure coding.
    pub coding: Coding,
    /// Number of coded flows.
    pub flows: usize,
    /// Number of parity packets that they send if nothing is lost.
    pub parity: u64,
    /// Time for which the receiver of the first of them waits for a block.
    pub block_timer: Span,
}

impl CodingLine {
    /// Returns the summary of a setup's coded flows, if it has any.
    pub(super) fn new(setup: &Setup) -> Option<Self> {
        let coded = || setup.flows.iter().filter(|flow| flow.coded);
        let parity = |flow| setup.blocks(flow).map_or(0, |it| u64::from(it.count()) * u64::from(it.parity()));
        Some(Self {
            coding: setup.host.coding?,
            flows: coded().count(),
            parity: coded().map(parity).sum(),
            block_timer: setup.block_timer(coded().next()?)?,
        })
    }
}

/// Summary of a training job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobLine {
    /// Its name.
    pub name: String,
    /// Its ranks.
    pub ranks: u32,
    /// Their hosts.
    pub hosts: usize,
    /// Its iterations.
    pub iterations: usize,
    /// Flows of an iteration.
    pub flows: u32,
    /// Payload of an iteration by purpose.
    pub payload: Vec<(StepKind, Bytes)>,
    /// Duration of the first iteration if flows took no time.
    pub compute: Span,
}

impl JobLine {
    pub(super) fn new(job: &JobFlows) -> Self {
        let first = job.iterations.first();
        Self {
            name: job.name.clone(),
            ranks: job.ranks,
            hosts: job.hosts,
            iterations: job.iterations.len(),
            flows: first.map_or(0, |iteration| iteration.flows),
            payload: job.payload.clone(),
            compute: first.map_or(Span::ZERO, |iteration| iteration.compute),
        }
    }
}

/// The links of one class and the traffic that crosses them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassLoad {
    /// The class.
    pub class: LinkClass,
    /// Directed links.
    pub links: usize,
    /// Their summed rate, both directions.
    pub capacity: Rate,
    /// Payload of these flows over these links, each link counted.
    pub payload: Bytes,
    /// Mean utilisation by random arrivals while they last, in parts per million.
    pub arrivals_ppm: u64,
}

/// Traffic with drawn flows, or flows that follow others.
pub(crate) struct OfferedTraffic {
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) requested: Vec<RequestArrivals>,
    pub(crate) loops: Vec<ReadLoop>,
}

impl RunReport {
    pub(crate) fn new(
        network: &Network,
        survey: &Survey,
        flows: &[&FlowSpec],
        offered: OfferedTraffic,
        shared: Vec<SwitchLine>,
        stop: Time,
    ) -> Self {
        let OfferedTraffic { arrivals, requested, loops } = offered;
        let outages = |(_, it): (LinkId, &Outages)| it.spans().filter(|(from, _)| *from < stop).count();
        let mut loads = Vec::new();
        for class in LinkClass::ALL {
            let links = network.links().iter().filter(|link| link.class == class).count();
            if links == 0 {
                continue;
            }
            let crossing = |flow: &&FlowSpec| flow.size.times(u64::from(survey.links(flow.src, flow.dst, class)));
            let ppm = arrivals.iter().flat_map(|part| &part.load_ppm).filter(|load| load.0 == class).map(|load| load.1);
            loads.push(ClassLoad {
                class,
                links,
                capacity: Rate::from_bps((0..network.datacenters()).map(|dc| network.capacity(class, dc).bps()).sum()),
                payload: flows.iter().map(crossing).fold(Bytes::ZERO, Bytes::saturating_add),
                arrivals_ppm: ppm.sum(),
            });
        }
        Self {
            datacenters: network.datacenters(),
            hosts: network.hosts().len(),
            switches: network.nodes().len() - network.hosts().len(),
            links: network.links().len(),
            intra_rtt: survey.base_rtt(FlowClass::Intra),
            inter_rtt: survey.base_rtt(FlowClass::Inter),
            classes: Vec::new(),
            most_loaded: Vec::new(),
            flows: flows.len(),
            payload: flows.iter().map(|flow| flow.size).fold(Bytes::ZERO, Bytes::saturating_add),
            loads,
            arrivals,
            requested,
            loops,
            jobs: Vec::new(),
            shared,
            on_ramp: None,
            modules: Vec::new(),
            failing: network.failing().filter(|it| outages(*it) > 0).count(),
            outages: network.failing().map(outages).sum(),
            path: LoadBalancing::PerFlow,
            data_wait: None,
            coding: None,
        }
    }
}

/// Controllers, alike ones once.
pub(super) fn counted(modules: &[SwitchControllerSpec]) -> Vec<(SwitchController, usize)> {
    let mut kinds: Vec<(SwitchController, usize)> = Vec::new();
    for spec in modules {
        match kinds.iter_mut().find(|(module, _)| *module == spec.module) {
            Some((_, count)) => *count += 1,
            None => kinds.push((spec.module, 1)),
        }
    }
    kinds
}
