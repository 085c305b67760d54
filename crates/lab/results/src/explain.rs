//! Attributes of the slowest flows, compared with those of typical flows of their size.
//!
//! The flows are those of runs that differ in their seeds alone, all together. The slowest are those with the greatest
//! slowdowns, a share of a class, at least one. A flow's typical flows are the middle tenth by slowdown (at least one, at most
//! [`MAX_TYPICAL`]) of those flows of its class that are at most twice and at least half its size. What differs is not thereby the cause: that takes a
//! run in which it is switched off.

use units::{Span, Time};

use crate::Class;
use crate::averages::by_point;
use crate::claims::name_in_claims;
use crate::store::RunResults;
use crate::tables::FlowRow;

pub use crate::stats::FEW;

/// The maximum number of typical flows of a slow one: more do not improve their mean, and the work would grow with the
/// square of the flows.
pub const MAX_TYPICAL: usize = 100;
/// The share of a class of flows that are the slowest, unless asked otherwise.
pub const SHARE: f64 = 0.01;

/// A scheme at a point of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedScheme {
    /// The name of its run, or for several runs the common part of their names: without the seed.
    pub name: String,
    /// Its runs by their names, which differ in their seeds alone.
    pub runs: Vec<String>,
    /// Its slowest flows, by class; none where no flow ended.
    pub classes: Vec<SlowestFlows>,
}

/// The slowest flows of a class.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowestFlows {
    /// The class.
    pub class: Class,
    /// Its flows that ended.
    pub flows: usize,
    /// Its flows that started and did not end. They have no slowdown, and so are not among the slowest.
    pub unfinished: usize,
    /// The slowest, the slowest first.
    pub slowest: Vec<SlowFlowEntry>,
    /// Means over the slowest flows, and over their typical flows. In the order of [`FlowAttribute::ALL`].
    pub traits: Vec<Trait>,
}

impl SlowestFlows {
    /// Returns the attributes that are not zero.
    pub fn present(&self) -> impl Iterator<Item = &Trait> {
        self.traits.iter().filter(|it| it.slowest != 0.0 || it.typical.is_some_and(|typical| typical != 0.0))
    }

    /// Returns whether so few flows ended that the slowest may be slow by chance.
    pub fn is_of_few(&self) -> bool {
        self.flows < FEW
    }
}

/// A flow among the slowest.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowFlowEntry {
    /// Its run's seed.
    pub seed: u64,
    /// The flow.
    pub row: FlowRow,
    /// Its completion time over the ideal one.
    pub slowdown: f64,
}

/// The means of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Trait {
    /// The attribute.
    pub attribute: FlowAttribute,
    /// The mean over the slowest flows.
    pub slowest: f64,
    /// The mean over their typical flows; none where no slow flow has one.
    pub typical: Option<f64>,
}

impl Trait {
    /// Returns whether the slowest have at least twice as much, or some where typical flows have none.
    pub fn stands_out(&self) -> bool {
        self.typical.is_some_and(|typical| self.slowest > 0.0 && self.slowest >= 2.0 * typical)
    }
}

/// The unit of a [`FlowAttribute`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A number, or a ratio.
    Number,
    /// Bytes.
    Bytes,
    /// A share, from 0 to 1.
    Share,
}

/// An attribute of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowAttribute {
    /// Completion time over the ideal one.
    Slowdown,
    /// Payload in bytes.
    Size,
    /// Completion time in base round trips.
    RoundTrips,
    /// The share of the acknowledged ECN-marked payload.
    Marked,
    /// The share of the packets sent that were retransmissions.
    Retransmitted,
    /// Retransmission timeouts.
    Timeouts,
    /// Retransmission requests of the receiver.
    Nacks,
    /// Congestion notifications.
    Notifications,
    /// Increases of the window or rate by the law.
    Increases,
    /// Cuts by the law on congestion.
    Cuts,
    /// Cuts by the law on a loss or timeout.
    LossCuts,
    /// Quick Adapt invocations of the law.
    QuickAdapts,
    /// `ProbeRTT` periods of the law (BBR).
    ProbeRtts,
    /// The share of the completion time for which the flow was held at the edge.
    Held,
    /// Flows from the same host at the same time, of a class, on average over its time, itself not counted.
    FromHost(Class),
    /// Flows to the same host at the same time, likewise.
    ToHost(Class),
}

impl FlowAttribute {
    /// All, in display order.
    pub const ALL: [Self; 18] = [
        Self::Slowdown,
        Self::Size,
        Self::RoundTrips,
        Self::Marked,
        Self::Retransmitted,
        Self::Timeouts,
        Self::Nacks,
        Self::Notifications,
        Self::Increases,
        Self::Cuts,
        Self::LossCuts,
        Self::QuickAdapts,
        Self::ProbeRtts,
        Self::Held,
        Self::FromHost(Class::Intra),
        Self::FromHost(Class::Inter),
        Self::ToHost(Class::Intra),
        Self::ToHost(Class::Inter),
    ];

    /// Returns its display name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Slowdown => "slowdown",
            Self::Size => "size",
            Self::RoundTrips => "completion time, base round trips",
            Self::Marked => "ECN-marked payload",
            Self::Retransmitted => "retransmitted packets",
            Self::Timeouts => "retransmission timeouts",
            Self::Nacks => "retransmission requests",
            Self::Notifications => "congestion notifications",
            Self::Increases => "increases",
            Self::Cuts => "cuts on congestion",
            Self::LossCuts => "cuts on loss",
            Self::QuickAdapts => "Quick Adapts",
            Self::ProbeRtts => "ProbeRTT periods",
            Self::Held => "On-Ramp hold time",
            Self::FromHost(Class::Intra) => "concurrent intra flows, same sender",
            Self::FromHost(Class::Inter) => "concurrent inter flows, same sender",
            Self::ToHost(Class::Intra) => "concurrent intra flows, same receiver",
            Self::ToHost(Class::Inter) => "concurrent inter flows, same receiver",
        }
    }

    /// Returns its unit.
    pub const fn kind(self) -> ValueKind {
        match self {
            Self::Size => ValueKind::Bytes,
            Self::Marked | Self::Retransmitted | Self::Held => ValueKind::Share,
            _ => ValueKind::Number,
        }
    }

    /// Its name in JSON, with its unit where that is not a number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slowdown => "slowdown",
            Self::Size => "size_bytes",
            Self::RoundTrips => "base_round_trips",
            Self::Marked => "marked_share",
            Self::Retransmitted => "retransmitted_share",
            Self::Timeouts => "timeouts",
            Self::Nacks => "nacks",
            Self::Notifications => "cnps",
            Self::Increases => "increases",
            Self::Cuts => "cuts",
            Self::LossCuts => "loss_cuts",
            Self::QuickAdapts => "quick_adapts",
            Self::ProbeRtts => "probe_rtts",
            Self::Held => "held_share",
            Self::FromHost(Class::Intra) => "from_host_intra",
            Self::FromHost(Class::Inter) => "from_host_inter",
            Self::ToHost(Class::Intra) => "to_host_intra",
            Self::ToHost(Class::Inter) => "to_host_inter",
        }
    }
}

/// The slowest flows of each scheme at each point of the grid, all seeds together; in the order of the runs. `share` is that of
/// a class of flows: over 0, at most 1.
pub fn by_scheme<'a>(runs: impl IntoIterator<Item = &'a RunResults>, share: f64) -> Vec<ExplainedScheme> {
    let explained = |(_, runs): (String, Vec<&RunResults>)| {
        let names: Vec<String> = runs.iter().map(|run| run.summary.run.clone()).collect();
        let name = match &runs[..] {
            [run, _, ..] => name_in_claims(&run.summary.run, run.summary.seed),
            _ => names.concat(),
        };
        ExplainedScheme { name, runs: names, classes: explain(&runs, share) }
    };
    by_point(runs).into_iter().flat_map(|(_, schemes)| schemes).map(explained).collect()
}

/// The slowest flows of each class that has any, of runs that differ in their seeds alone. `share` is that of a class: over 0, at
/// most 1.
pub fn explain(runs: &[&RunResults], share: f64) -> Vec<SlowestFlows> {
    let concurrency: Vec<Crowds> = runs.iter().map(|run| Crowds::new(run)).collect();
    [Class::Intra, Class::Inter].into_iter().filter_map(|class| of_class(class, runs, &concurrency, share)).collect()
}

/// A flow that ended.
struct EndedFlow<'a> {
    /// The index of its run.
    run: usize,
    row: &'a FlowRow,
    slowdown: f64,
}

fn of_class(class: Class, runs: &[&RunResults], concurrency: &[Crowds], share: f64) -> Option<SlowestFlows> {
    let mut unfinished = 0;
    let mut flows: Vec<EndedFlow<'_>> = Vec::new();
    for (run, results) in runs.iter().enumerate() {
        for row in results.flows.rows.iter().filter(|row| row.class == class && row.started.is_set()) {
            match row.slowdown() {
                Some(slowdown) => flows.push(EndedFlow { run, row, slowdown }),
                None => unfinished += 1,
            }
        }
    }
    if flows.is_empty() {
        return None;
    }
    flows
        .sort_unstable_by(|a, b| b.slowdown.total_cmp(&a.slowdown).then((a.run, a.row.flow).cmp(&(b.run, b.row.flow))));
    let count = ((flows.len() as f64 * share).round() as usize).clamp(1, flows.len());
    let sizes: Vec<u64> = flows.iter().map(|flow| flow.row.size.get()).collect();
    // Most flows are no flow's typical flow, and some are the typical flow of many.
    let mut known: Vec<Option<Box<AttributeValues>>> = vec![None; flows.len()];
    let mut add = |sum: &mut AttributeValues, index: usize| {
        let values = known[index].get_or_insert_with(|| Box::new(concurrency[flows[index].run].values(&flows[index])));
        for (sum, value) in sum.iter_mut().zip(values.iter()) {
            *sum += value;
        }
    };
    let (mut slowest, mut typical, mut with_typical) = (NOTHING, NOTHING, 0u64);
    for (index, peers) in (0..count).zip(typical_of(&sizes, count)) {
        add(&mut slowest, index);
        if peers.is_empty() {
            continue;
        }
        let mut sum = NOTHING;
        for &peer in &peers {
            add(&mut sum, peer);
        }
        for (all, sum) in typical.iter_mut().zip(&sum) {
            *all += sum / peers.len() as f64;
        }
        with_typical += 1;
    }
    let one = |(index, attribute): (usize, FlowAttribute)| Trait {
        attribute,
        slowest: slowest[index] / count as f64,
        typical: (with_typical > 0).then(|| typical[index] / with_typical as f64),
    };
    let slow = |flow: &EndedFlow<'_>| SlowFlowEntry {
        seed: runs[flow.run].summary.seed,
        row: *flow.row,
        slowdown: flow.slowdown,
    };
    Some(SlowestFlows {
        class,
        flows: flows.len(),
        unfinished,
        slowest: flows[..count].iter().map(slow).collect(),
        traits: (0..).zip(FlowAttribute::ALL).map(one).collect(),
    })
}

/// The attributes of a flow, in the order of [`FlowAttribute::ALL`].
type AttributeValues = [f64; FlowAttribute::ALL.len()];
const NOTHING: AttributeValues = [0.0; FlowAttribute::ALL.len()];

/// Returns the places of the typical flows of each of the first `count` flows, itself left out. `sizes` are those of
/// all flows in order of slowdown.
fn typical_of(sizes: &[u64], count: usize) -> Vec<Vec<usize>> {
    let mut by_size: Vec<usize> = (0..sizes.len()).collect();
    by_size.sort_unstable_by_key(|&index| (sizes[index], index));
    // From one size to the next, flows enter at the upper end and leave at the lower end.
    let (mut window, mut above, mut below) =
        (OrderStatTree::new(sizes.len()), by_size.iter().peekable(), by_size.iter().peekable());
    let mut typical = vec![Vec::new(); count];
    for &index in by_size.iter().filter(|&&index| index < count) {
        let (least, most) = (sizes[index].div_ceil(2), sizes[index].saturating_mul(2));
        while let Some(&peer) = above.next_if(|&&peer| sizes[peer] <= most) {
            window.insert(peer);
        }
        while let Some(&peer) = below.next_if(|&&peer| sizes[peer] < least) {
            window.remove(peer);
        }
        let (peers, own) = (window.len() - 1, window.before(index));
        let typical_count = (peers / 10).clamp(1, MAX_TYPICAL).min(peers);
        let first = (peers - typical_count) / 2;
        typical[index] =
            (first..first + typical_count).map(|rank| window.at(rank + usize::from(rank >= own))).collect();
    }
    typical
}

/// A subset of the places from 0 to n, in order: a Fenwick tree of counts.
struct OrderStatTree {
    counts: Vec<usize>,
    len: usize,
}

impl OrderStatTree {
    fn new(places: usize) -> Self {
        Self { counts: vec![0; places + 1], len: 0 }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn insert(&mut self, index: usize) {
        self.len += 1;
        let mut node = index + 1;
        while node < self.counts.len() {
            self.counts[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Removes an element, which must be present.
    fn remove(&mut self, index: usize) {
        self.len -= 1;
        let mut node = index + 1;
        while node < self.counts.len() {
            self.counts[node] -= 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the number of elements before an index.
    fn before(&self, index: usize) -> usize {
        let (mut node, mut sum) = (index, 0);
        while node > 0 {
            sum += self.counts[node];
            node &= node - 1;
        }
        sum
    }

    /// Returns the index with `rank` elements before it. There is one.
    fn at(&self, rank: usize) -> usize {
        debug_assert!(rank < self.len, "{rank} of {}", self.len);
        let (mut node, mut left) = (0, rank);
        let mut step = (self.counts.len() - 1).checked_ilog2().map_or(0, |log| 1 << log);
        while step > 0 {
            if let Some(&count) = self.counts.get(node + step)
                && count <= left
            {
                node += step;
                left -= count;
            }
            step /= 2;
        }
        node
    }
}

fn share_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Start and end times of a host's flows: counts the flows at a time.
#[derive(Clone, Default, Debug)]
struct ConcurrentFlows {
    /// Beginnings and ends in order, in picoseconds, each with the sum of all up to it.
    starts: Vec<(u64, u128)>,
    ends: Vec<(u64, u128)>,
}

impl ConcurrentFlows {
    fn new(mut starts: Vec<u64>, mut ends: Vec<u64>) -> Self {
        let summed = |times: &mut Vec<u64>| {
            times.sort_unstable();
            let mut sum = 0;
            let with_sum = |&time: &u64| {
                sum += u128::from(time);
                (time, sum)
            };
            times.iter().map(with_sum).collect()
        };
        Self { starts: summed(&mut starts), ends: summed(&mut ends) }
    }

    /// The number of flows there, integrated from the beginning of the run until `time`, in flows times picoseconds.
    fn until(&self, time: u64) -> u128 {
        let passed = |times: &[(u64, u128)]| {
            let count = times.partition_point(|&(other, _)| other < time);
            let sum = count.checked_sub(1).map_or(0, |last| times[last].1);
            count as u128 * u128::from(time) - sum
        };
        passed(&self.starts) - passed(&self.ends)
    }

    /// Returns the mean number of flows there from `begin` to `end`; `end` is later than `begin`.
    fn mean(&self, begin: u64, end: u64) -> f64 {
        (self.until(end) - self.until(begin)) as f64 / (end - begin) as f64
    }
}

/// Active flows at each host, by class: those it sends and those it receives.
struct Crowds {
    sends: Vec<[ConcurrentFlows; 2]>,
    receives: Vec<[ConcurrentFlows; 2]>,
}

impl Crowds {
    fn new(run: &RunResults) -> Self {
        let rows = || run.flows.rows.iter().filter(|row| row.started.is_set());
        let hosts = rows().map(|row| row.src.max(row.dst) as usize + 1).max().unwrap_or(0);
        let last = rows().map(|row| if row.completed.is_set() { row.completed } else { row.started }).max();
        let end = |row: &FlowRow| if row.completed.is_set() { row.completed } else { last.unwrap_or(Time::ZERO) };
        let of = |host: &dyn Fn(&FlowRow) -> u32| {
            let mut times = vec![[const { (Vec::new(), Vec::new()) }; 2]; hosts];
            for row in rows() {
                let (starts, ends) = &mut times[host(row) as usize][row.class as usize];
                starts.push(row.started.ps());
                ends.push(end(row).ps());
            }
            times.into_iter().map(|classes| classes.map(|(starts, ends)| ConcurrentFlows::new(starts, ends))).collect()
        };
        Self { sends: of(&|row| row.src), receives: of(&|row| row.dst) }
    }

    fn values(&self, flow: &EndedFlow<'_>) -> AttributeValues {
        FlowAttribute::ALL.map(|attribute| self.value(attribute, flow))
    }

    fn value(&self, attribute: FlowAttribute, flow: &EndedFlow<'_>) -> f64 {
        let row = flow.row;
        let fct = row.fct().map_or(0, Span::unsigned_ps);
        let mean_concurrent = |flows: &[[ConcurrentFlows; 2]], host: u32, class: Class| {
            let (begin, end) = (row.started.ps(), row.completed.ps());
            let itself = f64::from(u8::from(class == row.class));
            if end > begin { flows[host as usize][class as usize].mean(begin, end) - itself } else { 0.0 }
        };
        match attribute {
            FlowAttribute::Slowdown => flow.slowdown,
            FlowAttribute::Size => row.size.get() as f64,
            FlowAttribute::RoundTrips => share_of(fct, row.base_rtt.unsigned_ps()),
            FlowAttribute::Marked => row.marked_share(),
            FlowAttribute::Retransmitted => row.retransmitted_share(),
            FlowAttribute::Timeouts => row.stats.timeouts.into(),
            FlowAttribute::Nacks => row.stats.nacks.into(),
            FlowAttribute::Notifications => row.stats.cnps as f64,
            FlowAttribute::Increases => row.actions.increases as f64,
            FlowAttribute::Cuts => row.actions.cuts as f64,
            FlowAttribute::LossCuts => row.actions.loss_cuts as f64,
            FlowAttribute::QuickAdapts => row.actions.quick_adapts as f64,
            FlowAttribute::ProbeRtts => row.actions.probe_rtts as f64,
            FlowAttribute::Held => share_of(row.stats.held.unsigned_ps(), fct),
            FlowAttribute::FromHost(class) => mean_concurrent(&self.sends, row.src, class),
            FlowAttribute::ToHost(class) => mean_concurrent(&self.receives, row.dst, class),
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of few whole numbers are exact")]
mod tests {
    use units::{Bytes, mix64};

    use super::*;
    use crate::testbed;

    /// A flow of 1,000 B from host 0 to `dst`. 1 us of its time is the ideal time.
    fn flow(number: u32, dst: u32, start_us: u64, duration_us: u64) -> FlowRow {
        FlowRow {
            dst,
            src: 0,
            class: Class::Intra,
            size: Bytes::new(1_000),
            started: Time::from_us(start_us),
            completed: Time::from_us(start_us + duration_us),
            ideal: Span::from_us(1),
            ..testbed::flow_row(number)
        }
    }

    fn run_of(rows: Vec<FlowRow>) -> RunResults {
        let mut run = testbed::results();
        run.flows.rows = rows;
        run
    }

    #[test]
    fn concurrency_is_a_time_average() {
        // One from 0 to 10, one from 5 to 15.
        let concurrent = ConcurrentFlows::new(vec![5, 0], vec![10, 15]);
        assert_eq!(
            [concurrent.mean(0, 10), concurrent.mean(5, 15), concurrent.mean(5, 10), concurrent.mean(20, 30)],
            [1.5, 1.5, 2.0, 0.0]
        );
    }

    #[test]
    fn slowest_flows_are_compared_with_flows_of_their_size() {
        // Nineteen similar flows, each alone; one concurrent with all of them that takes ten times as long, and a large one.
        let mut rows: Vec<FlowRow> =
            (0..19).map(|flow_number| flow(flow_number, 1, 10 * u64::from(flow_number), 2)).collect();
        let mut slow = flow(19, 1, 0, 20);
        slow.stats.timeouts = 3;
        rows.push(slow);
        let mut large = flow(20, 2, 0, 3);
        large.size = Bytes::new(1 << 20);
        large.stats.timeouts = 50;
        rows.push(large);
        let mut lost = flow(21, 1, 500, 1);
        lost.completed = Time::NEVER;
        rows.push(lost);
        let [of_class] = &explain(&[&run_of(rows)], 0.01)[..] else { panic!("one class") };
        assert_eq!((of_class.flows, of_class.unfinished), (21, 1));
        assert_eq!(of_class.slowest.iter().map(|slow| slow.row.flow).collect::<Vec<_>>(), [19]);
        let of = |attribute: FlowAttribute| of_class.traits.iter().find(|it| it.attribute == attribute).unwrap();
        let both = |attribute: FlowAttribute| (of(attribute).slowest, of(attribute).typical.unwrap());
        assert_eq!(both(FlowAttribute::Slowdown), (20.0, 2.0));
        // The large flow is no peer.
        assert_eq!(both(FlowAttribute::Timeouts), (3.0, 0.0));
        assert!(of(FlowAttribute::Timeouts).stands_out() && !of(FlowAttribute::Retransmitted).stands_out());
        // During its 20 us two other flows sent to its host for 2 us each; a typical flow is alone or concurrent with the
        // slow one.
        assert!((of(FlowAttribute::ToHost(Class::Intra)).slowest - 0.2).abs() < 1e-12);
        assert_eq!(of(FlowAttribute::ToHost(Class::Inter)).slowest, 0.0);
    }

    #[test]
    fn class_of_one_flow_has_no_typical_flows() {
        let [of_class] = &explain(&[&run_of(vec![flow(0, 1, 0, 5)])], 0.01)[..] else { panic!("one class") };
        assert!(of_class.traits.iter().all(|it| it.typical.is_none() && !it.stands_out()));
        assert!(explain(&[&run_of(Vec::new())], 0.01).is_empty());
    }

    /// Flows of two seeds are one set: the slowest are of either, each compared with the others of its own run alone,
    /// and typical flows are of both, also one that has the slow flow's number.
    #[test]
    fn slowest_flows_pool_all_seeds() {
        let of_seed = |seed: u64, duration_us: u64| {
            let mut rows: Vec<FlowRow> = (0..10).map(|number| flow(number, 1, 10 * u64::from(number), 2)).collect();
            rows[3].completed = Time::from_us(30 + duration_us);
            let mut run = run_of(rows);
            run.summary.seed = seed;
            run.summary.run = format!("dctcp,seed={seed}");
            run.manifest.run.clone_from(&run.summary.run);
            run.manifest.point =
                crate::Ordered(vec![("scheme".into(), "dctcp".into()), ("seed".into(), serde_json::json!(seed))]);
            run
        };
        let runs = [of_seed(1, 15), of_seed(2, 40)];
        let [explained] = &by_scheme(&runs, 0.1)[..] else { panic!("one scheme") };
        assert_eq!(
            (explained.name.as_str(), explained.runs.join(" ")),
            ("dctcp", "dctcp,seed=1 dctcp,seed=2".to_owned())
        );
        let [of_class] = &explained.classes[..] else { panic!("one class") };
        assert_eq!(of_class.flows, 20);
        let slowest: Vec<_> = of_class.slowest.iter().map(|slow| (slow.seed, slow.row.flow, slow.slowdown)).collect();
        assert_eq!(slowest, [(2, 3, 40.0), (1, 3, 15.0)]);
        let of = |attribute: FlowAttribute| of_class.traits.iter().find(|it| it.attribute == attribute).unwrap();
        assert_eq!((of(FlowAttribute::Slowdown).slowest, of(FlowAttribute::Slowdown).typical), (27.5, Some(2.0)));
        // In 40 us, three others of that run for 2 us each and a fourth for none; in 15 us, one.
        let expected = f64::midpoint(6.0 / 40.0, 2.0 / 15.0);
        assert!((of(FlowAttribute::ToHost(Class::Intra)).slowest - expected).abs() < 1e-12);
        // A group of a single run has the name of that run.
        let [single] = &by_scheme(&runs[..1], 0.1)[..] else { panic!("one scheme") };
        assert_eq!((single.name.as_str(), single.classes[0].flows), ("dctcp,seed=1", 10));
    }

    #[test]
    fn typical_flows_are_in_the_middle_of_their_size() {
        // In order of slowdown; of those like the first, six, the third is the middle one.
        let sizes = [100, 50, 49, 200, 201, 100, 120, 80, 90];
        let typical = typical_of(&sizes, 3);
        assert_eq!((&typical[0], &typical[2]), (&vec![5], &vec![7]));
        assert!(typical_of(&[7, 1], 1)[0].is_empty());
        // The middle tenth of 30 others; of 5,000, a hundred.
        assert_eq!(typical_of(&[5; 31], 1)[0], [14, 15, 16]);
        assert_eq!(typical_of(&vec![5; 5_001], 1)[0], (2_451..2_551).collect::<Vec<_>>());
    }

    /// `typical_of` agrees with a search of every flow for every slow one.
    #[test]
    fn typical_flows_are_those_that_a_search_finds() {
        for flows in [1, 2, 7, 64, 500] {
            // Sizes over some decades, some of them alike.
            let size = |index: u64| (1 << (mix64(index ^ flows) % 12)) + mix64(index) % 3;
            let sizes: Vec<u64> = (0..flows).map(size).collect();
            let count = sizes.len().div_ceil(3);
            let searched = |index: usize| {
                let (least, most) = (sizes[index].div_ceil(2), sizes[index] * 2);
                let is_peer = |&other: &usize| other != index && (least..=most).contains(&sizes[other]);
                let peers: Vec<usize> = (0..sizes.len()).filter(is_peer).collect();
                let typical_count = (peers.len() / 10).max(1).min(peers.len());
                peers[(peers.len() - typical_count) / 2..][..typical_count].to_vec()
            };
            assert_eq!(typical_of(&sizes, count), (0..count).map(searched).collect::<Vec<_>>(), "{flows}");
        }
    }
}
