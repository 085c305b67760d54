//! Data of a report, as plain values. Units are the last word of each name, as in the results on disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All data of one report. An empty or absent part makes its section absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportData {
    /// The scenario's name, which heads the page.
    pub name: String,
    /// One-line summary of the scenario, shown after the name.
    pub title: String,
    /// Paper and figure that the scenario reproduces, for instance `Uno (SC 2025), Fig. 8`; may be empty.
    pub paper: String,
    /// Description of the runs below the title, one or two sentences.
    pub subtitle: String,
    /// Program and version, for instance `narrows 0.1.0`.
    pub generated_by: String,
    /// Size of a paper's experiment (`paper`, `quick`), if applicable.
    pub scale: Option<String>,
    /// The resolved scenario, every default spelled out.
    pub scenario_toml: String,
    /// Command lines that reproduce these results.
    pub replay: Vec<String>,
    /// Warnings about the report as a whole, to be read before using the numbers.
    pub warnings: Vec<String>,
    /// Warnings of runs, grouped by cause.
    pub causes: Vec<WarningGroupData>,
    /// Conditions of the comparison, one line each: initial windows, bandwidth-delay products, loads.
    pub conditions: Vec<String>,
    /// Claims of a paper and the measured results.
    pub claims: Vec<ClaimData>,
    /// Averages over seeds, as the scenario specifies them.
    pub averages: Vec<Averages>,
    /// Slowdowns over all seeds together: one row per scheme, class of flows and point of the grid.
    pub pooled: Vec<Pooled>,
    /// Attributes counted for the slowest flows.
    pub counted: Vec<Counted>,
    /// The slowest flows: one entry per scheme and point of the grid.
    pub slowest: Vec<Slowest>,
    /// Number of points of the grid that `pooled` and `slowest` omit: the last ones.
    pub points_left_out: u64,
    /// The runs, in display order.
    pub runs: Vec<RunData>,
}

/// A group of warnings with one cause, and its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WarningGroupData {
    /// Number and names of the runs.
    pub runs: String,
    /// Warning of the first run.
    pub text: String,
}

/// A table of averages over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Averages {
    /// Its heading.
    pub title: String,
    /// The columns' labels, without the first one's.
    pub columns: Vec<String>,
    /// One part per point of the grid: its name, which may be empty, and one row per scheme.
    pub parts: Vec<(String, Vec<AverageRow>)>,
}

/// A scheme's averages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AverageRow {
    /// Display name of the scheme.
    pub label: String,
    /// Sort key and displayed text of each column; none if nothing was measured.
    pub cells: Vec<Option<(f64, String)>>,
    /// By column: set if the scheme is the best.
    pub best: Vec<bool>,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalData {
    /// Measured value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Ratio of a quantile to that of another scheme, for the same flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RatioData {
    /// The ratio.
    pub of: IntervalData,
    /// Set if the interval excludes 1: the schemes differ by more than chance.
    pub differs: bool,
}

/// Slowdown quantiles of a scheme's flows of one class at one point of the grid, all seeds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pooled {
    /// Index of the first of its runs in [`ReportData::runs`].
    pub run: usize,
    /// `intra` or `inter`.
    pub class: String,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of completed flows, over all seeds.
    pub flows: u64,
    /// Set if there are so few flows that the slowest one determines the 99th percentile.
    pub few: bool,
    /// The median.
    pub p50: IntervalData,
    /// The 99th percentile.
    pub p99: IntervalData,
    /// Display name of the scheme in the denominator of ratios.
    pub first: String,
    /// Ratios of both quantiles to those of that scheme; none for that scheme itself.
    pub ratios: Option<[RatioData; 2]>,
}

/// Attribute counted for flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Display name.
    pub label: String,
    /// Type of its values: `number`, `bytes` or `share` (0 to 1).
    pub kind: String,
}

/// The slowest flows of a scheme at one point of the grid, all seeds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slowest {
    /// Index of the first of its runs in [`ReportData::runs`].
    pub run: usize,
    /// Number of seeds.
    pub seeds: u64,
    /// Data by class of flows; empty if no flow completed.
    pub classes: Vec<SlowestOfClass>,
}

/// The slowest flows of a class, compared with typical flows of their size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowestOfClass {
    /// `intra` or `inter`.
    pub class: String,
    /// Number of slowest flows.
    pub count: u64,
    /// Number of all completed flows.
    pub flows: u64,
    /// Flows that started and did not complete; they are not included elsewhere.
    pub unfinished: u64,
    /// Set if there are so few flows that the slowest ones may be slow by chance.
    pub few: bool,
    /// Attributes with nonzero counts.
    pub traits: Vec<Trait>,
    /// The slowest of them, listed individually.
    pub listed: Vec<SlowFlow>,
}

/// Values of an attribute for the slowest flows and for typical ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trait {
    /// Index of the attribute in [`ReportData::counted`].
    pub counted: usize,
    /// Mean over the slowest flows.
    pub slowest: f64,
    /// Mean over typical flows; none if no slow flow has typical ones.
    pub typical: Option<f64>,
    /// Set if the slowest flows have at least twice as much.
    pub stands_out: bool,
}

/// One of the slowest flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowFlow {
    /// Its run's seed.
    pub seed: u64,
    /// Its number, as in `flows.parquet`.
    pub flow: u64,
    /// Sending host.
    pub src: u64,
    /// Receiving host.
    pub dst: u64,
    /// Payload in bytes.
    pub size_bytes: u64,
    /// Start time in nanoseconds.
    pub start_ns: f64,
    /// Its completion time in nanoseconds.
    pub fct_ns: f64,
    /// Completion time divided by the ideal one.
    pub slowdown: f64,
    /// Fraction of the acknowledged payload that was ECN-marked, 0 to 1.
    pub marked_share: f64,
    /// Fraction of the packets sent that were retransmissions, 0 to 1.
    pub retransmitted_share: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Quick Adapt invocations.
    pub quick_adapts: u64,
}

/// A claim of a paper and the measured result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimData {
    /// The paper's figure, for instance `Fig. 8`.
    pub figure: String,
    /// The claim's name in the paper's file.
    pub id: String,
    /// The claim as text.
    pub text: String,
    /// Value in the paper, with its unit.
    pub paper: String,
    /// Measured value, with its unit; empty while pending.
    pub measured: String,
    /// The outcome.
    pub verdict: VerdictData,
    /// Reason for the outcome, if one is needed; may be empty.
    pub note: String,
}

/// The outcome of a claim, as defined in the book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerdictData {
    /// The measured numbers satisfy the claim.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The better scheme is the same, but the size of the difference is not.
    #[serde(rename = "direction only")]
    DirectionOnly,
    /// The seeds do not decide.
    #[serde(rename = "undecided")]
    Undecided,
    /// The measured numbers contradict the claim.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// Not measured: a prerequisite does not exist yet.
    #[default]
    #[serde(rename = "pending")]
    Pending,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunData {
    /// Unique within the report, for instance the run's directory name.
    pub id: String,
    /// Display name of the run, for instance the scheme's name.
    pub label: String,
    /// Coordinates of the run in a grid: key and value (a number, or a string with or without a unit, such as
    /// `"20ms"`). Empty outside grids. The key `scheme` (or `law`, `variant`, or one that ends in `.scheme` ...)
    /// distinguishes lines; each other key that takes several values is an axis; runs that differ in `seed` only are
    /// averaged.
    pub point: Vec<(String, Value)>,
    /// The run's `summary.json`.
    pub summary: Value,
    /// Warnings about this run, to be read before using its numbers, for instance that a law never acted. They are
    /// shown next to the run's name; the list at the top is made from [`ReportData::causes`].
    pub warnings: Vec<String>,
    /// Distributions of completion times, one for each class of flows.
    pub distributions: Vec<DistributionData>,
    /// Sending rates of flows over time.
    pub rates: Option<RatesData>,
    /// Queue lengths of ports over time.
    pub queues: Option<QueuesData>,
    /// Shared buffers of switches over time: each entry is a switch instead of a port.
    pub buffers: Option<QueuesData>,
    /// Traced state of laws over time.
    pub traces: Vec<TraceData>,
    /// Totals of links or ports.
    pub links: Vec<LinkData>,
    /// Links that failed, grouped by their times.
    pub failures: Vec<FailureData>,
    /// Collective operations, in order of their start; only the first of them if there are too many to draw.
    pub collectives: Vec<Collective>,
    /// Number of collective operations.
    pub collective_count: u64,
}

/// Links that were down at the same times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureData {
    /// Their names, as in [`LinkData::name`]; some may be omitted.
    pub links: Vec<String>,
    /// Number of links.
    pub count: u64,
    /// Start and end of each outage, in nanoseconds; the end is none if it is after the run's end.
    pub down_ns: Vec<(u64, Option<u64>)>,
}

/// Flows of one collective operation, one per entry of each list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collective {
    /// The job's name.
    pub job: String,
    /// Index among the job's operations, from 0.
    pub number: u64,
    /// Sending hosts.
    pub src: Vec<u64>,
    /// Receiving hosts.
    pub dst: Vec<u64>,
    /// Start time of each flow, in nanoseconds.
    pub start_ns: Vec<u64>,
    /// Completion time of each flow, in nanoseconds; none if it did not complete.
    pub end_ns: Vec<Option<u64>>,
}

/// One point of a cumulative distribution: a value, and the share (0 to 1) of flows at or below it.
pub type CdfPointData = (f64, f64);

/// Completion times of the flows of one class. Points are in increasing order and may be thinned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DistributionData {
    /// `all`, `intra`, `inter`, `requests`, `collectives`, or the name of a size bin or of a job.
    pub class: String,
    /// Completion time in nanoseconds and cumulative share.
    pub fct_ns: Vec<CdfPointData>,
    /// Completion time over the ideal one (at least 1) and cumulative share.
    pub slowdown: Vec<CdfPointData>,
}

/// Sending rates over time, all flows on one time axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RatesData {
    /// Sample times in nanoseconds, increasing.
    pub time_ns: Vec<u64>,
    /// The flows, each with one value for each sample time.
    pub flows: Vec<FlowRate>,
    /// Jain's index (0 to 1) of the flows that were active at each sample time; `None` where it is not defined.
    pub jain: Vec<Option<f64>>,
}

/// One flow's sending rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowRate {
    /// The flow's number, as in `flows.parquet`.
    pub id: u64,
    /// Display name of the flow.
    pub label: String,
    /// `intra`, `inter`, or any other word; each class has a family of colours.
    pub class: String,
    /// Bits per second at each of the sample times; `None` before the flow's start and after its end.
    pub rate_bps: Vec<Option<f64>>,
}

/// Queue lengths over time, all ports on one time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuesData {
    /// Sample times in nanoseconds, increasing.
    pub time_ns: Vec<u64>,
    /// The ports, each with one value for each sample time.
    pub ports: Vec<PortQueue>,
}

/// One port's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortQueue {
    /// The port's name.
    pub name: String,
    /// Bytes in the queue at each of the sample times.
    pub queue_bytes: Vec<u64>,
    /// Bytes in its phantom queue at each of the sample times; empty if the port has none.
    pub phantom_bytes: Vec<u64>,
}

/// Trace of one value from the state of a flow's law.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceData {
    /// The flow's number, as in `flows.parquet`.
    pub flow: u64,
    /// The value's name, its unit last: `cwnd_bytes`, `alpha_ppm`, `srtt_ns`, `pacing_bps`.
    pub name: String,
    /// Times in nanoseconds, increasing.
    pub time_ns: Vec<u64>,
    /// The value at each of these times.
    pub values: Vec<f64>,
}

/// Totals of one link in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkData {
    /// The link's name.
    pub name: String,
    /// Type of the link, for instance `host`, `fabric`, `inter-dc`.
    pub class: String,
    /// Fraction of the run in which the link was transmitting, 0 to 1.
    pub utilisation: f64,
    /// Packets transmitted on the link.
    pub packets: u64,
    /// Packets dropped because its queue was full.
    pub drops: u64,
    /// Packets lost at random.
    pub losses: u64,
    /// Data packets among `drops` and `losses`.
    pub lost_data: u64,
    /// Acknowledgements among `drops` and `losses`.
    pub lost_acks: u64,
    /// Credits among `drops` and `losses`.
    pub lost_credits: u64,
    /// Packets that it marked.
    pub marks: u64,
    /// Maximum queue length in bytes.
    pub max_queue_bytes: u64,
    /// Number of times that the other end paused it.
    pub pauses: u64,
    /// Total time paused, in nanoseconds.
    pub pause_ns: u64,
}
