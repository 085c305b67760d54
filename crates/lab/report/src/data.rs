//! What a report shows, as plain values. Units are the last word of each name, as in the results on disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that one report shows. An empty or absent part makes its section absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportData {
    /// The scenario's name, which heads the page.
    pub name: String,
    /// One-line summary of the scenario, shown behind the name.
    pub title: String,
    /// The paper and the figure that the scenario is of, for instance `Uno (SC 2025), Fig. 8`; may be empty.
    pub paper: String,
    /// One or two sentences under the title: what was run.
    pub subtitle: String,
    /// Program and version, for instance `narrows 0.1.0`.
    pub generated_by: String,
    /// Which size of a paper's experiment this is (`paper`, `quick`), where that applies.
    pub scale: Option<String>,
    /// The resolved scenario, every default spelled out.
    pub scenario_toml: String,
    /// Command lines that give these results again.
    pub replay: Vec<String>,
    /// What the reader must know before believing a number, for the report as a whole.
    pub warnings: Vec<String>,
    /// What runs warn of, by cause.
    pub causes: Vec<Cause>,
    /// Conditions of the comparison, one line each: initial windows, bandwidth-delay products, loads.
    pub conditions: Vec<String>,
    /// A paper's claims and what was measured.
    pub claims: Vec<Claim>,
    /// Averages over seeds that the scenario asks for.
    pub averages: Vec<Averages>,
    /// Slowdowns over all seeds together: a row a scheme, class of flows and point of the grid.
    pub pooled: Vec<Pooled>,
    /// What is counted of the slowest flows.
    pub counted: Vec<Counted>,
    /// The slowest flows: an entry a scheme and point of the grid.
    pub slowest: Vec<Slowest>,
    /// How many points of the grid `pooled` and `slowest` leave out: the last ones.
    pub points_left_out: u64,
    /// The runs, in the order in which they are shown.
    pub runs: Vec<Run>,
}

/// One cause of warnings, and the runs that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// How many runs have it, and which.
    pub runs: String,
    /// The warning of the first of them.
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
    /// One part a point of the grid: its name, which may be empty, and a row a scheme.
    pub parts: Vec<(String, Vec<AverageRow>)>,
}

/// A scheme's averages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AverageRow {
    /// What readers call the scheme.
    pub label: String,
    /// Of each column what to sort by and what to show; none where nothing was measured.
    pub cells: Vec<Option<(f64, String)>>,
    /// Whether it is the best of a column.
    pub best: Vec<bool>,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// What was measured.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A quantile over another scheme's, of the same flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ratio {
    /// The ratio.
    pub of: Interval,
    /// Whether the interval is without 1: the schemes differ in more than chance.
    pub differs: bool,
}

/// Quantiles of the slowdown of a scheme's flows of one class at one point of the grid, all seeds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pooled {
    /// The place in [`ReportData::runs`] of the first of its runs.
    pub run: usize,
    /// `intra` or `inter`.
    pub class: String,
    /// How many seeds.
    pub seeds: u64,
    /// How many flows ended, over all seeds.
    pub flows: u64,
    /// Whether they are so few that the slowest of them decides the 99th percentile.
    pub few: bool,
    /// The median.
    pub p50: Interval,
    /// The 99th percentile.
    pub p99: Interval,
    /// What readers call the scheme that ratios are over.
    pub first: String,
    /// Both quantiles over that scheme's; none of that scheme.
    pub ratios: Option<[Ratio; 2]>,
}

/// What is counted of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// What it is called.
    pub label: String,
    /// What its values are: `number`, `bytes` or `share` (0 to 1).
    pub kind: String,
}

/// The slowest flows of a scheme at one point of the grid, all seeds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slowest {
    /// The place in [`ReportData::runs`] of the first of its runs.
    pub run: usize,
    /// How many seeds.
    pub seeds: u64,
    /// By class of flows; none where no flow ended.
    pub classes: Vec<SlowestOfClass>,
}

/// The slowest flows of a class, beside typical flows of their size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowestOfClass {
    /// `intra` or `inter`.
    pub class: String,
    /// How many are the slowest.
    pub count: u64,
    /// Of how many flows, which ended.
    pub flows: u64,
    /// Flows that started and did not end; they are in none of this.
    pub unfinished: u64,
    /// Whether the flows are so few that the slowest may be slow by chance.
    pub few: bool,
    /// What was counted, where there was any of it.
    pub traits: Vec<Trait>,
    /// The first of them, one by one.
    pub listed: Vec<SlowFlow>,
}

/// What was counted of the slowest flows and of typical ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trait {
    /// The place in [`ReportData::counted`].
    pub counted: usize,
    /// The mean over the slowest.
    pub slowest: f64,
    /// The mean over typical flows; none where no slow flow has one.
    pub typical: Option<f64>,
    /// Whether the slowest have at least twice as much.
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
    /// The host that sends.
    pub src: u64,
    /// The host that receives.
    pub dst: u64,
    /// Payload in bytes.
    pub size_bytes: u64,
    /// When it started, in nanoseconds.
    pub start_ns: f64,
    /// Its completion time in nanoseconds.
    pub fct_ns: f64,
    /// That over the ideal one.
    pub slowdown: f64,
    /// Of the acknowledged payload, the share that was marked, 0 to 1.
    pub marked_share: f64,
    /// Of the packets sent, the share that was sent again, 0 to 1.
    pub resent_share: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that an emergency rule of its law struck.
    pub emergencies: u64,
}

/// One claim of a paper beside what was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The paper's figure, for instance `Fig. 8`.
    pub figure: String,
    /// The claim's name in the paper's file.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// What the paper states, with its unit.
    pub paper: String,
    /// What was measured, with its unit; empty while pending.
    pub measured: String,
    /// The outcome.
    pub verdict: Verdict,
    /// Why, where the outcome needs a reason; may be empty.
    pub note: String,
}

/// The outcome of a claim, as defined in the book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The measured numbers satisfy the claim.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The better scheme is the same, the size of the difference is not.
    #[serde(rename = "direction only")]
    DirectionOnly,
    /// The seeds do not decide.
    #[serde(rename = "undecided")]
    Undecided,
    /// The measured numbers contradict the claim.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// Not measured: something it needs does not exist yet.
    #[default]
    #[serde(rename = "pending")]
    Pending,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Unique within the report, for instance the run's directory name.
    pub id: String,
    /// What the reader calls the run, for instance the scheme's name.
    pub label: String,
    /// Where the run lies in a grid: key and value (a number, or a string with or without a unit, such as `"20ms"`).
    /// Empty outside grids. The key `scheme` (or `law`, `variant`, or one that ends in `.scheme` ...) tells lines
    /// apart; each other key that takes several values is an axis; runs that differ in `seed` only are averaged.
    pub point: Vec<(String, Value)>,
    /// The run's `summary.json`.
    pub summary: Value,
    /// What the reader must know before believing this run's numbers, for instance that a law never acted. They are
    /// shown beside the run's name; the list at the top is made of [`ReportData::causes`].
    pub warnings: Vec<String>,
    /// Distributions of completion times, one for each class of flows.
    pub distributions: Vec<Distribution>,
    /// Sending rates of flows over time.
    pub rates: Option<Rates>,
    /// Queue lengths of ports over time.
    pub queues: Option<Queues>,
    /// Shared buffers of switches over time: a switch takes a port's place.
    pub buffers: Option<Queues>,
    /// What laws told about their own state over time.
    pub traces: Vec<Trace>,
    /// Totals of links or ports.
    pub links: Vec<Link>,
    /// Links that were down, those with the same times together.
    pub failures: Vec<Failure>,
    /// Collective operations, in order of their beginnings; the first of them where there are too many to draw.
    pub collectives: Vec<Collective>,
    /// How many collective operations there are.
    pub collective_count: u64,
}

/// Links that were down at the same times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// Their names, as in [`Link::name`]; may leave some out.
    pub links: Vec<String>,
    /// How many they were.
    pub count: u64,
    /// When they went down and came up again, in nanoseconds; none if not before the run's end.
    pub down_ns: Vec<(u64, Option<u64>)>,
}

/// What the ranks of one collective operation sent, a flow an entry of each list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collective {
    /// The job's name.
    pub job: String,
    /// Which of the job's operations, from 0.
    pub number: u64,
    /// The hosts that sent.
    pub src: Vec<u64>,
    /// The hosts that received.
    pub dst: Vec<u64>,
    /// When each flow started, in nanoseconds.
    pub start_ns: Vec<u64>,
    /// When each was complete, in nanoseconds; none if it was not.
    pub end_ns: Vec<Option<u64>>,
}

/// One point of a cumulative distribution: a value, and the share (0 to 1) of flows at or below it.
pub type Point = (f64, f64);

/// How long the flows of one class took. Points are in increasing order and may be thinned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// `all`, `intra`, `inter`, `requests`, `collectives`, or the name of a size bin or of a job.
    pub class: String,
    /// Completion time in nanoseconds and cumulative share.
    pub fct_ns: Vec<Point>,
    /// Completion time over the ideal one (at least 1) and cumulative share.
    pub slowdown: Vec<Point>,
}

/// Sending rates over time, all flows on one time axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
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
    /// What the reader calls the flow.
    pub label: String,
    /// `intra`, `inter`, or any other word; each class has a family of colours.
    pub class: String,
    /// Bits per second at each of the sample times; `None` before the flow's start and after its end.
    pub rate_bps: Vec<Option<f64>>,
}

/// Queue lengths over time, all ports on one time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queues {
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

/// One value that a flow's law told about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trace {
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
pub struct Link {
    /// The link's name.
    pub name: String,
    /// What sort of link it is, for instance `host`, `fabric`, `inter-dc`.
    pub class: String,
    /// Share of the run in which the link was sending, 0 to 1.
    pub utilisation: f64,
    /// Packets that were put on the link.
    pub packets: u64,
    /// Packets that its queue had no room for.
    pub drops: u64,
    /// Packets that random loss took.
    pub losses: u64,
    /// Data packets among `drops` and `losses`.
    pub lost_data: u64,
    /// Acknowledgements among `drops` and `losses`.
    pub lost_acks: u64,
    /// Credits among `drops` and `losses`.
    pub lost_credits: u64,
    /// Packets that it marked.
    pub marks: u64,
    /// Its longest queue in bytes.
    pub max_queue_bytes: u64,
    /// Times that the other end paused it.
    pub pauses: u64,
    /// For how long.
    pub pause_ns: u64,
}
