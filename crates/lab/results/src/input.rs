//! The caller's description of a run, which the simulator does not know.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use experiment::{Dependency, FlowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::{Bytes, Span, Time};

use crate::conditions::Conditions;

/// A flow's class: inside a datacenter or between two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Both ends in one datacenter.
    Intra,
    /// Between datacenters.
    Inter,
}

impl Class {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intra => "intra",
            Self::Inter => "inter",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Intra, Self::Inter].into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Flows of a range of sizes, of all traffic and classes or of one, reported together.
#[derive(Clone, PartialEq, Eq, Default, Hash, Debug)]
pub struct SizeBin {
    /// Its name in the summary.
    pub name: String,
    /// Only flows of the traffic of this name.
    pub traffic: Option<String>,
    /// Only flows of this class.
    pub class: Option<Class>,
    /// The smallest size in it.
    pub low: Bytes,
    /// The smallest size above it, if it has an end.
    pub high: Option<Bytes>,
}

impl SizeBin {
    /// Returns whether a flow of this traffic, size and class is in the bin.
    pub fn contains(&self, traffic: &str, size: Bytes, class: Class) -> bool {
        self.low <= size
            && self.high.is_none_or(|high| size < high)
            && self.class.is_none_or(|only| only == class)
            && self.traffic.as_ref().is_none_or(|only| only == traffic)
    }
}

/// The backend that ran the flows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// The simulator.
    #[default]
    Simulator,
    /// Real packets through an emulated network.
    Emulator,
    /// Real packets of the transport in virtual time.
    Virtual,
}

impl BackendKind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Emulator => "emulator",
            Self::Virtual => "virtual",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The stack that carries flows as real packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// The kernel's TCP.
    #[default]
    Kernel,
    /// The transport in user space.
    Narrows,
}

/// Hosts in virtual time.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct VirtualTime {
    /// Protection of packets: AES-128-GCM, or none.
    pub crypto: String,
    /// Processing times of hosts, as given; null if they take none.
    pub costs: Option<String>,
    /// Virtual time that the connections took before the run, in nanoseconds.
    pub connect_ns: u64,
    /// Datagrams that the hosts sent, acknowledgements and handshakes included.
    pub datagrams: u64,
    /// Steps of the event loop.
    pub steps: u64,
}

/// An emulator's measurements of itself.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Emulator {
    /// The median delay of packet departures after their due times.
    pub lateness_p50_ns: u64,
    /// 99 % of them no later.
    pub lateness_p99_ns: u64,
    /// The latest.
    pub lateness_max_ns: u64,
    /// The share of the run in which the router's thread used a processor.
    pub cpu_share: f64,
    /// Set if it had real-time scheduling.
    pub sched_realtime: bool,
    /// The stack that carried the flows.
    #[serde(default)]
    pub stack: Stack,
    /// The kernel's congestion controls, in the order in which they were met; of the transport, its laws.
    pub congestion: Vec<String>,
    /// The command that ran instead of the scenario's traffic, if any.
    pub command: Option<String>,
    /// Verdict on the validity of the run.
    #[serde(default)]
    pub validity: Validity,
    /// The reason why the emulator, and not the network, was the bottleneck, if it was.
    pub bottleneck: Option<String>,
    /// Reasons to question the run, one line each, such as hosts that waited for processors; empty if there are none.
    #[serde(default)]
    pub caveats: Vec<String>,
    /// The share of the run, 0 to 1, in which any task on the machine waited for a processor; null where the kernel
    /// does not report it.
    #[serde(default)]
    pub cpu_pressure: Option<f64>,
    /// The same for the run's own control group.
    #[serde(default)]
    pub cgroup_cpu_pressure: Option<f64>,
    /// The share of the run, 0 to 1, that one thread of the hosts waited for a processor: of the thread that waited
    /// longest.
    #[serde(default)]
    pub thread_wait: f64,
    /// The mean of that thread's waits, in nanoseconds.
    #[serde(default)]
    pub thread_wait_mean_ns: u64,
    /// The same for the router's thread.
    #[serde(default)]
    pub router_wait: f64,
    /// The share of the run, 0 to 1, that a hypervisor took from a processor on average.
    #[serde(default)]
    pub cpu_steal: f64,
    /// The share of the run, 0 to 1, during which the router was stalled, in stretches of over 1 ms.
    #[serde(default)]
    pub stalled: f64,
}

/// The validity of a run on real packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// Without caveats.
    #[default]
    Sound,
    /// With caveats, such as hosts that waited for processors.
    Questionable,
    /// The emulator was slower than the network.
    Bottleneck,
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sound => "sound",
            Self::Questionable => "questionable",
            Self::Bottleneck => "bottleneck",
        })
    }
}

impl Validity {
    /// The worse verdict of two runs, unless that is `sound`. A simulated run has no verdict.
    pub fn worse(one: Option<&Emulator>, other: Option<&Emulator>) -> Option<Self> {
        one.into_iter().chain(other).map(|run| run.validity).max().filter(|worst| *worst != Self::Sound)
    }
}

impl Emulator {
    /// The same figures with the verdict that follows from them.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.validity = match (&self.bottleneck, self.caveats.is_empty()) {
            (Some(_), _) => Validity::Bottleneck,
            (None, false) => Validity::Questionable,
            (None, true) => Validity::Sound,
        };
        self
    }
}

/// A first column of all tables of a run: the scheme, a key of the point, or the seed. It has one value a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointColumn {
    /// Its name. The unit is its last word.
    pub name: String,
    /// The run's value.
    #[serde(flatten)]
    pub value: PointValue,
}

/// Columns that the tables of all of a sweep's runs have in common, whichever runs a command does. So all files of a table have
/// one schema.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct SweepColumns {
    /// First columns of tables. Values are the run's own.
    pub points: Vec<PointColumn>,
    /// Names of state that laws of any of its schemes trace, in order.
    pub traces: Vec<String>,
    /// Names of laws of any of its schemes, in order.
    pub laws: Vec<String>,
}

/// A run's value in a [`PointColumn`]. All runs of a grid have the same type in a column.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
pub enum PointValue {
    /// Text; empty if the run's point lacks the key.
    Text(String),
    /// A whole number, if the point has the key.
    Whole(Option<i64>),
    /// A number in the column's unit, if the point has the key.
    Real(Option<f64>),
}

/// A training job: its flows are consecutive, iteration after iteration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TrainingJob {
    /// Its name, which is that of its traffic.
    pub name: String,
    /// Time at which it begins to compute.
    pub start: Time,
    /// Its first flow.
    pub first: FlowId,
    /// The kinds of its flows.
    pub kinds: Vec<String>,
    /// By flow, from the first on: its kind, an index into `kinds`.
    pub kind_of: Vec<u8>,
    /// Its iterations.
    pub iterations: Vec<TrainingIteration>,
}

/// An iteration of a training job.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TrainingIteration {
    /// The iteration is over when all of these have happened, each with the given delay after it.
    pub ends: Vec<(Dependency, Span)>,
    /// Duration if no flow took any time.
    pub compute: Span,
}

/// A schedule that was imported from another program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ImportedSchedule {
    /// Its name, which is that of its traffic.
    pub name: String,
    /// Time at which its ranks begin.
    pub start: Time,
    /// Its flows, from one number up to, but without, another.
    pub flows: Range<u32>,
}

/// The caller's description of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunInfo {
    /// The scenario's name.
    pub scenario: String,
    /// Identifier of the run within its scenario: `uno`, or `uno,traffic.0.load=0.4`.
    pub run: String,
    /// The display name.
    pub label: String,
    /// Keys of its scheme that it did without.
    pub without: Vec<String>,
    /// The point in a grid: keys and values.
    pub point: Vec<(String, Value)>,
    /// Columns of its tables that are the same in all runs of a sweep.
    pub columns: SweepColumns,
    /// By [`FlowId`].
    pub classes: Vec<Class>,
    /// By [`FlowId`]: its traffic, an index into `traffic_names`.
    pub traffic: Vec<u16>,
    /// The scenario's names of its traffic. Several may have one name.
    pub traffic_names: Vec<String>,
    /// Size bins, in the order in which they are shown. They may overlap.
    pub sizes: Vec<SizeBin>,
    /// The names of laws by [`experiment::FlowSpec::kind`].
    pub laws: Vec<String>,
    /// Groups of flows that are complete when their last one is: incast requests.
    pub requests: Vec<Vec<FlowId>>,
    /// Groups of flows that are one collective operation each: iterations.
    pub collectives: Vec<Vec<FlowId>>,
    /// Training jobs. Their iterations are among `collectives`, too.
    pub training: Vec<TrainingJob>,
    /// Schedules that were imported.
    pub schedules: Vec<ImportedSchedule>,
    /// Ranges of flows, from one number up to, but without, another, that list more flows than can start. Those of them
    /// that never start are no part of results.
    pub open_ended: Vec<Range<u32>>,
    /// Length of the spans in which Jain's index compares the flows' shares, rounded up to whole sampling intervals; zero
    /// is one interval.
    pub fairness_window: Span,
    /// Set if the scenario sets `fairness_window`; if not, it is the longest base round trip.
    pub sets_fairness_window: bool,
    /// Every setting, defaults included.
    pub resolved: Value,
    /// Versions of the code that decides its results.
    pub code: CodeVersions,
    /// A hash of all that its results depend on, by which a finished run is recognised.
    pub key: String,
    /// Files that the run was made from: name and SHA-256 in hexadecimal (see [`files::sha256`]).
    pub inputs: Vec<(String, String)>,
    /// Warnings of the caller.
    pub warnings: Vec<String>,
    /// Facts about the scenario that are no warnings.
    pub notes: Vec<String>,
    /// Conditions that the scenario and the scheme set.
    pub conditions: Conditions,
    /// An emulator's measurements of itself; none if the run was simulated.
    pub emulator: Option<Emulator>,
    /// Hosts in virtual time; none for other runs.
    pub virtual_time: Option<VirtualTime>,
}

impl RunInfo {
    /// Hashes the results' inputs that are not in the run's set-up: classes, groups and bins of flows, and warnings.
    pub fn hash_content(&self, state: &mut impl Hasher) {
        self.classes.hash(state);
        self.traffic.hash(state);
        self.traffic_names.hash(state);
        self.sizes.hash(state);
        self.laws.hash(state);
        self.requests.hash(state);
        self.collectives.hash(state);
        self.training.hash(state);
        self.open_ended.hash(state);
        self.fairness_window.hash(state);
        self.sets_fairness_window.hash(state);
        self.warnings.hash(state);
        // Runs without schedules keep the keys that they had before there were any.
        if !self.schedules.is_empty() {
            self.schedules.hash(state);
        }
    }

    /// Returns the backend that ran the flows.
    pub fn backend(&self) -> BackendKind {
        match (&self.emulator, &self.virtual_time) {
            (_, Some(_)) => BackendKind::Virtual,
            (Some(_), None) => BackendKind::Emulator,
            (None, None) => BackendKind::Simulator,
        }
    }
}

/// The program that ran it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit that it was built from; empty if that is unknown.
    pub commit: String,
    /// Version of the simulator's engine: see [`CodeVersions::engine`].
    pub engine: String,
    /// Version of the code that turns a finished run into files. No part of a run's key.
    pub record: String,
}

/// Versions of the code that decides a run's results: hashes of its token streams, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CodeVersions {
    /// Code that every run uses.
    pub engine: String,
    /// Laws that the run uses, by name.
    pub laws: BTreeMap<String, String>,
    /// Optional features that the run uses, by name.
    pub features: BTreeMap<String, String>,
}

/// The cost of the run, measured by the caller.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct EngineTimes {
    /// Seconds by the clock on the wall.
    pub wall_s: f64,
    /// Seconds of all processors together.
    pub cpu_s: f64,
    /// Most memory that the process held.
    pub peak_rss_bytes: u64,
}
