//! `summary.json`: a run in numbers. Its shape is a contract; `docs/src/reference/summary.md` documents each key.

mod cells;
mod fairness;
mod identities;
mod make;
mod network;
mod training;
mod warnings;

use fabric::ImpairmentCounters;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use cells::{Task, collectives, jobs, requests};
pub use cells::{bin_cells, cell};
pub(crate) use fairness::jain_points;
pub use fairness::{CONVERGED, fairness};
pub use make::summarise;
pub use training::{Training, Waited};

use crate::conditions::Conditions;
use crate::input::{BackendKind, Emulator, VirtualTime};
use crate::ordered::Ordered;

/// The version of this shape.
pub const SCHEMA: u64 = 1;
/// Most links that a summary lists.
pub const LINKS_LISTED: usize = 64;
/// Most switches that a summary lists.
pub const SWITCHES_LISTED: usize = 64;
/// Most times that a failure lists.
pub const FAILURES_LISTED: usize = 256;

/// A run in numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: u64,
    /// The scenario's name.
    pub scenario: String,
    /// The run's identifier within the scenario.
    pub run: String,
    /// The display name.
    pub label: String,
    /// The point in a grid: the scheme, and keys and values of its point. Empty outside of one, and in results of
    /// earlier versions.
    #[serde(default)]
    pub point: Ordered<Value>,
    /// The backend that ran it; absent in results of versions with one backend.
    #[serde(default)]
    pub backend: BackendKind,
    /// The seed, on which everything random depended.
    pub seed: u64,
    /// The run's own time at the end: the last completion, or the stop.
    pub end_ns: f64,
    /// Conditions that the scenario and the scheme set; empty in results of earlier versions.
    #[serde(default)]
    pub conditions: Conditions,
    /// Flows by class and size.
    pub flows: Flows,
    /// Groups of flows: incast requests.
    pub requests: FlowGroupStats,
    /// Iterations of collective operations.
    pub collectives: FlowGroupStats,
    /// The same by the name of their traffic. No bin and no class of flows has a job's name.
    #[serde(default)]
    pub jobs: Ordered<JobCell>,
    /// Schedules that were imported from other programs, by the name of their traffic.
    #[serde(default)]
    pub schedules: Ordered<Schedule>,
    /// Links and packets.
    pub network: NetworkTotals,
    /// Credits of credit-based laws.
    pub credits: Credits,
    /// The fairness of the sampled flows.
    pub fairness: Fairness,
    /// Correlations between one-way delays and the sender's information, where the scenario requests them.
    #[serde(default)]
    pub predicts: Predicts,
    /// The actions of laws.
    pub law: LawTotals,
    /// The cost of the run: the one part of a simulated run that differs between machines, threads and repetitions.
    pub engine: Engine,
    /// An emulator's measurements of itself; null if the run was simulated.
    #[serde(default)]
    pub emulator: Option<Emulator>,
    /// Hosts in virtual time; null for other runs.
    #[serde(rename = "virtual", default)]
    pub virtual_time: Option<VirtualTime>,
    /// Warnings to read before using the numbers.
    pub warnings: Vec<String>,
    /// Facts worth noting that are no reason to doubt the numbers.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Flows by class and by size.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Flows {
    /// All of them.
    pub all: FlowGroupStats,
    /// Inside a datacenter.
    pub intra: FlowGroupStats,
    /// Between datacenters.
    pub inter: FlowGroupStats,
    /// By the scenario's size bins.
    pub sizes: Ordered<FlowGroupStats>,
}

/// Flows of one class.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct FlowGroupStats {
    /// Flows, those that never started included.
    pub count: u64,
    /// Flows that ended.
    pub completed: u64,
    /// Completion times in nanoseconds, of those that ended.
    pub fct_ns: DistributionStats,
    /// Completion time over the ideal one, of those that ended.
    pub slowdown: DistributionStats,
    /// Their total goodput, in bits per second.
    pub goodput_bps: u64,
}

/// Iterations of one job.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct JobCell {
    /// The same numbers as of any flows.
    #[serde(flatten)]
    pub cell: FlowGroupStats,
    /// The iterations of a training job, and the steps on their critical paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

/// An imported schedule: flows that wait for each other, as another program lists them.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Its flows.
    pub flows: u64,
    /// Flows that ended.
    pub completed: u64,
    /// From the schedule's start to its last completion, in nanoseconds; null if a flow did not end. Computing after the last
    /// flow is not in it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub end_to_end_ns: Option<f64>,
}

/// Mean, percentiles by nearest rank and maximum; null where nothing was measured.
//
// Read by `deserialize_with`, because else a missing key would pass for null.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DistributionStats {
    #[serde(deserialize_with = "Option::deserialize")]
    pub mean: Option<f64>,
    #[serde(deserialize_with = "Option::deserialize")]
    pub p50: Option<f64>,
    #[serde(deserialize_with = "Option::deserialize")]
    pub p90: Option<f64>,
    #[serde(deserialize_with = "Option::deserialize")]
    pub p95: Option<f64>,
    #[serde(deserialize_with = "Option::deserialize")]
    pub p99: Option<f64>,
    #[serde(deserialize_with = "Option::deserialize")]
    pub max: Option<f64>,
}

/// Links and packets.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct NetworkTotals {
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Packets over links, each link counted, acknowledgements included.
    pub packet_hops: u64,
    /// Packets that were lost: no room in a queue, or chance. The sum of `drops_by_tier`.
    pub drops: u64,
    /// Packets that found no room, by class of link, and, as `random`, those lost by chance.
    pub drops_by_tier: Ordered<u64>,
    /// The same packets by kind: `data`, `acks`, `credits` and `other`.
    #[serde(default)]
    pub drops_by_kind: Ordered<u64>,
    /// The data packets among them, by the class of the link that lost them, for lack of room or by chance.
    #[serde(default)]
    pub data_drops_by_tier: Ordered<u64>,
    /// Data packets that ports trimmed: the buffer had no room for them, and their headers were forwarded. Not among
    /// `drops`; absent if none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trims: u64,
    /// Packets that impairments of links affected; absent if no link is impaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Box<ImpairedPackets>>,
    /// Packets marked; one packet may be marked at several ports.
    pub ecn_marks: u64,
    /// OR-ACKs that receivers sent (On-Ramp).
    #[serde(default)]
    pub or_acks: u64,
    /// The OR-ACKs' bytes on the wire.
    #[serde(default)]
    pub or_ack_bytes: u64,
    /// Packets sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Pauses by priority flow control.
    pub pfc_pauses: u64,
    /// Their length together.
    pub pfc_pause_ns: u64,
    /// Pauses by class of link.
    #[serde(default)]
    pub pfc_pauses_by_tier: Ordered<u64>,
    /// Their length by class of link.
    #[serde(default)]
    pub pfc_pause_ns_by_tier: Ordered<u64>,
    /// For how long hosts were paused, on average over all hosts.
    #[serde(default)]
    pub host_pause_ns: f64,
    /// Number of retransmission requests by receivers.
    #[serde(default)]
    pub nacks: u64,
    /// Congestion notifications received by sources, from receivers or from switches.
    #[serde(default)]
    pub cnps: u64,
    /// Parity packets of erasure-coded flows, retransmissions included.
    #[serde(default)]
    pub parity_packets: u64,
    /// Blocks that were complete by their parity before all of their data was acknowledged.
    #[serde(default)]
    pub recovered_blocks: u64,
    /// For how long flows were held at the edge, all together.
    #[serde(default)]
    pub on_ramp_hold_ns: u64,
    /// The longest queue of any port.
    pub max_queue_bytes: u64,
    /// The most that a shared buffer held.
    #[serde(default)]
    pub max_buffer_bytes: u64,
    /// Packets dropped that pauses should have saved.
    #[serde(default)]
    pub headroom_drops: u64,
    /// Messages of controllers in switches.
    #[serde(default)]
    pub messages: u64,
    /// Ports that waited for each other in a cycle at the end; empty if none did.
    #[serde(default)]
    pub deadlock: Vec<String>,
    /// Links that were down; absent if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LinkFailure>,
    /// The lossiest, the longest paused and the busiest links, the busiest first.
    pub links: Vec<LinkTotals>,
    /// Switches that share their buffers, the fullest first.
    #[serde(default)]
    pub switches: Vec<SwitchTotals>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A switch that shares its buffer.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SwitchTotals {
    /// Its name.
    pub name: String,
    /// The most that its buffer held.
    pub max_buffer_bytes: u64,
    /// Packets dropped that pauses should have saved.
    pub headroom_drops: u64,
    /// Messages of its controllers.
    pub messages: u64,
}

/// Packets that impairments of links affected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ImpairedPackets {
    /// Dropped by a policer; among `drops`.
    pub policed: u64,
    /// Dropped because they were larger than an MTU; among `drops`.
    pub oversized: u64,
    /// Corrupted; among `drops` of the network, and among `losses` of a link.
    pub corrupted: u64,
    /// Copies that links added.
    pub duplicates: u64,
    /// Released after a packet that left the port later.
    pub reordered: u64,
    /// Groups of acknowledgements that were released.
    pub ack_groups: u64,
}

impl NetworkTotals {
    /// Returns the packets that impairments of links affected: zeros if no link is impaired.
    pub fn impaired_packets(&self) -> ImpairedPackets {
        self.impaired.as_deref().copied().unwrap_or_default()
    }
}

impl From<ImpairmentCounters> for ImpairedPackets {
    fn from(counters: ImpairmentCounters) -> Self {
        let ImpairmentCounters { policed, oversized, corrupted, duplicates, reordered, groups } = counters;
        Self { policed, oversized, corrupted, duplicates, reordered, ack_groups: groups }
    }
}

/// One link in one direction.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LinkTotals {
    /// Its name.
    pub name: String,
    /// The class of links that it belongs to.
    pub class: String,
    /// The share of the run in which it was sending, 0 to 1.
    pub utilisation: f64,
    /// Packets, acknowledgements included.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets that found no room.
    pub drops: u64,
    /// Data packets that it trimmed; absent if none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trims: u64,
    /// Packets lost by chance or corrupted.
    pub losses: u64,
    /// Packets that its impairments affected; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedPackets>,
    /// Data packets among `drops` and `losses`.
    #[serde(default)]
    pub lost_data: u64,
    /// Acknowledgements among `drops` and `losses`.
    #[serde(default)]
    pub lost_acks: u64,
    /// Credits among `drops` and `losses`. Credits that found no room in a queue of their own are not among them.
    #[serde(default)]
    pub lost_credits: u64,
    /// Packets marked.
    pub marks: u64,
    /// The longest queue.
    pub max_queue_bytes: u64,
    /// Times that the other end paused it.
    #[serde(default)]
    pub pauses: u64,
    /// For how long.
    #[serde(default)]
    pub pause_ns: u64,
}

/// Links that were down at the same times, each direction for itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkFailure {
    /// Their names: up to [`LINKS_LISTED`] of them.
    pub links: Vec<String>,
    /// The number of links.
    pub count: u64,
    /// Times at which they failed and recovered, null if not before the run's end: up to [`FAILURES_LISTED`] times.
    pub down_ns: Vec<(u64, Option<u64>)>,
}

/// Credits of credit-based laws; zeros where there are none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Credits {
    /// Credits, or emulation packets, that their sources offered to their own credit queues.
    pub sent: u64,
    /// Credits that senders received and used for a packet.
    pub used: u64,
    /// Credits that found no room in a credit queue, hosts' own included.
    pub dropped: u64,
    /// Credits that senders received and did not use, because there was no data to send.
    pub wasted: u64,
    /// Credits that senders received: those used, those wasted, and those still unused at the end.
    #[serde(default)]
    pub received: u64,
    /// Emulation packets among `sent` that might be spared.
    #[serde(default)]
    pub over_provisioned: u64,
    /// Credits among `received` that arrived after the time for which they were meant.
    #[serde(default)]
    pub late: u64,
    /// Data packets sent without a credit.
    #[serde(default)]
    pub unscheduled: u64,
    /// Packets among `unscheduled` that ports dropped to keep room for others, or for lack of room; among the network's
    /// drops.
    #[serde(default)]
    pub unscheduled_drops: u64,
}

/// The fairness of sampled flows; see [`fairness()`].
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Fairness {
    /// The mean of Jain's index over all intervals in which at least two flows were active.
    #[serde(deserialize_with = "Option::deserialize")]
    pub jain_mean: Option<f64>,
    /// Jain's index in the last interval in which all sampled flows were active.
    #[serde(deserialize_with = "Option::deserialize")]
    pub jain_final: Option<f64>,
    /// From when on it was at least [`CONVERGED`] as long as all sampled flows were active.
    #[serde(deserialize_with = "Option::deserialize")]
    pub converged_at_ns: Option<u64>,
    /// Time at which Jain's index first was at least [`CONVERGED`] with all sampled flows active. A later dip does not
    /// move it.
    #[serde(default)]
    pub reached_at_ns: Option<u64>,
    /// The mean of Jain's index from `reached_at_ns` on, over the intervals in which all sampled flows were active.
    #[serde(default)]
    pub jain_since: Option<f64>,
}

/// Correlations of the one-way delays of packets with the latest delays that their senders had received when they left.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Predicts {
    /// With the one-way delay that the last OR-ACK brought, by the hosts' clocks.
    pub owd: Correlation,
    /// With the last round trip that was measured.
    pub rtt: Correlation,
}

/// Pearson's correlation.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Correlation {
    /// Packets compared.
    pub packets: u64,
    /// Its coefficient, -1 to 1; null where nothing varies, or nothing was compared.
    #[serde(deserialize_with = "Option::deserialize")]
    pub r: Option<f64>,
}

impl Correlation {
    fn of(pairs: &experiment::Pairs) -> Self {
        let [xx, xy, yy] = pairs.about_means().map(|sum| sum as f64);
        let r = (xx > 0.0 && yy > 0.0).then(|| xy / (xx.sqrt() * yy.sqrt()));
        Self { packets: pairs.count, r }
    }
}

/// The actions of laws.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LawTotals {
    /// The laws' names, joined by `+`.
    pub name: String,
    /// The sum over all laws.
    pub actions: Actions,
    /// The actions of each law.
    pub by_law: Ordered<Actions>,
}

/// The numbers of a law's actions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Actions {
    /// Windows or rates grew.
    pub increases: u64,
    /// They were cut on congestion.
    pub cuts: u64,
    /// They were cut on loss or timeout.
    pub loss_cuts: u64,
    /// Quick Adapt was invoked.
    pub quick_adapts: u64,
    /// `ProbeRTT` began (BBR).
    pub probe_rtts: u64,
    /// Packets were held back.
    pub holds: u64,
    /// Credits were used.
    pub credits: u64,
}

impl Actions {
    /// Returns whether no action was taken.
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: &laws::LawActions) {
        let laws::LawActions { increases, cuts, loss_cuts, quick_adapts, probe_rtts } = other;
        self.increases += increases;
        self.cuts += cuts;
        self.loss_cuts += loss_cuts;
        self.quick_adapts += quick_adapts;
        self.probe_rtts += probe_rtts;
    }
}

/// The cost of the run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Engine {
    /// Arrivals, starts, sends and timers.
    pub events: u64,
    /// Seconds by the clock on the wall.
    pub wall_s: f64,
    /// Seconds of all processors together.
    pub cpu_s: f64,
    /// Threads that ran it.
    pub threads: u32,
    /// Packet-hops by second on the wall.
    pub packet_hops_per_s: f64,
    /// Most memory held.
    pub peak_rss_bytes: u64,
}

/// Returns whether seeds change nothing of a run: it has several, and all left the same numbers. One seed decides nothing.
pub fn is_deterministic<'a>(seeds: impl IntoIterator<Item = &'a Summary>) -> bool {
    let mut seeds = seeds.into_iter();
    let Some(first) = seeds.next() else { return false };
    let mut others = 0;
    let all_same = seeds.all(|other| {
        others += usize::from(other.seed != first.seed);
        first.has_numbers_of(other)
    });
    all_same && others > 0
}

impl Summary {
    /// Returns whether another run has the same numbers, apart from its execution times.
    fn has_numbers_of(&self, other: &Self) -> bool {
        let numbers = |summary: &Self| Self {
            run: String::new(),
            point: Ordered::default(),
            seed: 0,
            engine: Engine::default(),
            ..summary.clone()
        };
        numbers(self) == numbers(other)
    }

    /// The flows of a class: `all`, `intra`, `inter`, `requests`, `collectives`, a size bin, or a job.
    pub fn class(&self, name: &str) -> Option<&FlowGroupStats> {
        match name {
            "all" => Some(&self.flows.all),
            "intra" => Some(&self.flows.intra),
            "inter" => Some(&self.flows.inter),
            "requests" => Some(&self.requests),
            "collectives" => Some(&self.collectives),
            _ => self.flows.sizes.get(name).or_else(|| self.jobs.get(name).map(|job| &job.cell)),
        }
    }

    /// All classes by name; a job alone is all that `collectives` has, and is left out.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &FlowGroupStats)> {
        let fixed = [("all", &self.flows.all), ("intra", &self.flows.intra), ("inter", &self.flows.inter)];
        let last = [("requests", &self.requests), ("collectives", &self.collectives)];
        fixed.into_iter().chain(self.flows.sizes.iter()).chain(last).chain(self.several_jobs())
    }

    /// The jobs, where there are several.
    pub fn several_jobs(&self) -> impl Iterator<Item = (&str, &FlowGroupStats)> {
        self.jobs.iter().filter(|_| self.jobs.0.len() > 1).map(|(name, job)| (name, &job.cell))
    }

    /// The training jobs.
    pub fn training(&self) -> impl Iterator<Item = (&str, &Training)> {
        self.jobs.iter().filter_map(|(name, job)| Some((name, job.training.as_ref()?)))
    }

    /// The warnings of identities that the run breaks. The run's numbers are wrong then. They are the first of all
    /// warnings.
    pub fn broken_identities(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().filter(|warning| identities::is_broken(warning))
    }

    /// Returns the summary as JSON with a final newline, as on disk and on standard output.
    pub fn to_json(&self) -> String {
        crate::json::text(self)
    }
}
