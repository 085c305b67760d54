//! Collective operations as steps of sends.
//!
//! Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005, has the algorithms;
//! Huang et al. (`GPipe`, 2019) have the pipeline. Of n ranks and `size` bytes, with c = ⌈size / n⌉:
//!
//! | operation | steps | bytes that a rank sends |
//! |---|---|---|
//! | all-reduce, ring: reduce-scatter, then all-gather | 2 (n - 1) | 2 (n - 1) c |
//! | all-reduce, halving-doubling: by halves, then by doubles | 2 log₂ n | 2 (n - 1) c |
//! | all-reduce, tree: to the first rank, then from there | 2 ⌈log₂ n⌉ | all together 2 (n - 1) size |
//! | all-gather, reduce-scatter, ring | n - 1 | (n - 1) c |
//! | all-gather, reduce-scatter, halving-doubling | log₂ n | (n - 1) c |
//! | all-to-all, by rotation: in step d to the d-th rank after it | n - 1 | (n - 1) c |
//! | broadcast, tree | ⌈log₂ n⌉ | all together (n - 1) size |
//! | broadcast, ring: scatter down a tree, then all-gather | ⌈log₂ n⌉ + n - 1 | the first rank 2 (n - 1) c |
//! | pipeline of m micro-batches | m + n - 2 | m ⌈size / m⌉, the last one nothing |
//!
//! A rank's send in a ring, or by halving and doubling, waits until the last step has come and has begun here. In trees
//! and rotations a rank's sends need nothing in between, so each waits until the one before is complete. A rank begins
//! an iteration `compute` after its part of the last one is done, if it needs nothing of the new one first. The first
//! stage of a pipeline begins an iteration when it learns that the last stage has all of the one before.
//!
//! Left out: the gradients that go back through a pipeline, and reductions' computing time.

use units::Bytes;

use super::groups::{check_count, groups, invalid_group_size};
use super::steps::{RankGroup, Send, SendCondition};
use super::{TrafficContext, TrafficFlows};
use crate::config::{Algorithm, Collective, Operation};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;

/// Operation and algorithm of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CollectivePlan {
    RingAllReduce,
    RingHalf,
    HalvingAllReduce,
    Halving,
    Doubling,
    TreeAllReduce,
    Rotation,
    TreeBroadcast,
    RingBroadcast,
    Pipeline { microbatches: u32 },
}

pub(crate) fn make(collective: &Collective, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let Collective { count, ranks, iterations, start, compute, .. } = *collective;
    let plan = plan(collective)?;
    let (groups, origin) = groups("collective", collective.groups.as_ref(), count, ranks, context)?;
    let odd_group = groups.iter().enumerate().find(|(_, ranks)| plan.by_halves() && !ranks.len().is_power_of_two());
    if let Some((index, ranks)) = odd_group {
        return Err(invalid_group_size(index, ranks, "a power of two, for halving-doubling", origin));
    }
    let size = context.size(collective.size)?;
    check_count(iterations, groups.iter().map(|ranks| plan.flows(ranks.len() as u64)).sum())?;
    let mut output = TrafficFlows::default();
    for ranks in &groups {
        let mut group = RankGroup::new(ranks, start, compute);
        for iteration in 0..iterations.get() {
            let first = index32(output.flows.len());
            group.begin(&output);
            if let (CollectivePlan::Pipeline { .. }, 1..) = (plan, iteration) {
                group.add_received(0, &output);
            }
            plan.iterate(&mut group, size, &mut output);
            output.collectives.push((first, index32(output.flows.len())));
        }
    }
    Ok(output)
}

/// Returns the plan of a table.
fn plan(collective: &Collective) -> Result<CollectivePlan, SpannedError> {
    let operation = collective.operation;
    let algorithm = |known: &[Algorithm]| choose(operation, collective.algorithm, known);
    if let Some(microbatches) = collective.microbatches
        && *operation != Operation::Pipeline
    {
        let message = format!("{} has no micro-batches", named(*operation));
        return Err(SpannedError::new(microbatches.origin, message).label("only with operation = \"pipeline\""));
    }
    Ok(match *operation {
        Operation::AllReduce => {
            CollectivePlan::all_reduce(algorithm(&[Algorithm::Ring, Algorithm::Tree, Algorithm::HalvingDoubling])?)
        }
        Operation::AllGather => match algorithm(&[Algorithm::Ring, Algorithm::HalvingDoubling])? {
            Algorithm::HalvingDoubling => CollectivePlan::Doubling,
            Algorithm::Ring | Algorithm::Tree => CollectivePlan::RingHalf,
        },
        Operation::ReduceScatter => match algorithm(&[Algorithm::Ring, Algorithm::HalvingDoubling])? {
            Algorithm::HalvingDoubling => CollectivePlan::Halving,
            Algorithm::Ring | Algorithm::Tree => CollectivePlan::RingHalf,
        },
        Operation::Broadcast => match algorithm(&[Algorithm::Tree, Algorithm::Ring])? {
            Algorithm::Ring => CollectivePlan::RingBroadcast,
            Algorithm::Tree | Algorithm::HalvingDoubling => CollectivePlan::TreeBroadcast,
        },
        Operation::AllToAll => {
            none(operation, collective.algorithm)?;
            CollectivePlan::Rotation
        }
        Operation::Pipeline => {
            none(operation, collective.algorithm)?;
            let Some(microbatches) = collective.microbatches else {
                return Err(SpannedError::new(operation.origin, "a pipeline has micro-batches")
                    .label("needs `microbatches`")
                    .help("give microbatches = 8"));
            };
            CollectivePlan::Pipeline { microbatches: microbatches.get() }
        }
    })
}

fn named(operation: Operation) -> String {
    let article = if operation.name().starts_with('a') { "an" } else { "a" };
    format!("{article} {}", operation.name())
}

/// The algorithm that was asked for, one of those that the operation has; its first if none was.
fn choose(
    operation: Located<Operation>,
    requested: Option<Located<Algorithm>>,
    known: &[Algorithm],
) -> Result<Algorithm, SpannedError> {
    let Some(requested) = requested else { return Ok(known[0]) };
    if known.contains(&requested) {
        return Ok(*requested);
    }
    let names: Vec<String> = known.iter().map(|known| format!("\"{}\"", known.name())).collect();
    Err(SpannedError::new(requested.origin, format!("{} is not done by `{}`", named(*operation), requested.name()))
        .label(format!("expected {}", names.join(" or "))))
}

/// Refuses an algorithm for an operation that has one way.
fn none(operation: Located<Operation>, requested: Option<Located<Algorithm>>) -> Result<(), SpannedError> {
    requested.map_or(Ok(()), |requested| {
        Err(SpannedError::new(requested.origin, format!("{} is done in one way", named(*operation)))
            .label("remove `algorithm`"))
    })
}

impl CollectivePlan {
    /// An all-reduce.
    pub(super) fn all_reduce(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Ring => Self::RingAllReduce,
            Algorithm::Tree => Self::TreeAllReduce,
            Algorithm::HalvingDoubling => Self::HalvingAllReduce,
        }
    }

    /// Returns whether the plan works by halves, among a power of two of ranks.
    pub(super) fn by_halves(self) -> bool {
        matches!(self, Self::HalvingAllReduce | Self::Halving | Self::Doubling)
    }

    /// Returns the condition of a rank's send on its send before.
    pub(super) fn turn(self) -> SendCondition {
        match self {
            Self::TreeAllReduce | Self::Rotation | Self::TreeBroadcast => SendCondition::Complete,
            Self::RingAllReduce
            | Self::RingHalf
            | Self::HalvingAllReduce
            | Self::Halving
            | Self::Doubling
            | Self::RingBroadcast
            | Self::Pipeline { .. } => SendCondition::Begun,
        }
    }

    /// Returns the number of flows of an iteration of `ranks` ranks.
    pub(super) fn flows(self, ranks: u64) -> u64 {
        let steps = u64::from(ranks.ilog2());
        match self {
            Self::RingAllReduce => 2 * ranks * (ranks - 1),
            Self::RingHalf | Self::Rotation => ranks * (ranks - 1),
            Self::HalvingAllReduce => 2 * ranks * steps,
            Self::Halving | Self::Doubling => ranks * steps,
            Self::TreeAllReduce => 2 * (ranks - 1),
            Self::TreeBroadcast => ranks - 1,
            Self::RingBroadcast => (ranks - 1) + ranks * (ranks - 1),
            Self::Pipeline { microbatches } => (ranks - 1) * u64::from(microbatches),
        }
    }

    /// Makes the flows of an iteration.
    pub(super) fn iterate(self, group: &mut RankGroup<'_>, size: Bytes, output: &mut TrafficFlows) {
        let ranks = group.len();
        let chunk = Bytes::new(size.get().div_ceil(ranks.into()));
        match self {
            Self::RingAllReduce => ring(group, chunk, 2 * (ranks - 1), output),
            Self::RingHalf => ring(group, chunk, ranks - 1, output),
            Self::HalvingAllReduce => {
                halving(group, chunk, output);
                doubling(group, chunk, output);
            }
            Self::Halving => halving(group, chunk, output),
            Self::Doubling => doubling(group, chunk, output),
            Self::TreeAllReduce => {
                up_tree(group, size, output);
                down_tree(group, |_| size, output);
            }
            Self::Rotation => rotation(group, chunk, output),
            Self::TreeBroadcast => down_tree(group, |_| size, output),
            Self::RingBroadcast => {
                down_tree(group, |below| Bytes::new(chunk.get() * u64::from(below)), output);
                ring(group, chunk, ranks - 1, output);
            }
            Self::Pipeline { microbatches } => {
                let part = Bytes::new(size.get().div_ceil(microbatches.into()));
                pipeline(group, part, microbatches, output);
            }
        }
    }
}

/// In each step every rank sends the next one the part that it received in the previous step.
pub(super) fn ring(group: &mut RankGroup<'_>, chunk: Bytes, steps: u32, output: &mut TrafficFlows) {
    let ranks = group.len();
    for _ in 0..steps {
        let sends = (0..ranks).map(|from| Send { from, to: (from + 1) % ranks, size: chunk });
        group.step(sends, SendCondition::Begun, output);
    }
}

/// Ranks exchange halves over half of the group, then quarters over a quarter of it, and so on.
fn halving(group: &mut RankGroup<'_>, chunk: Bytes, output: &mut TrafficFlows) {
    for step in (0..group.len().ilog2()).rev() {
        exchange(group, chunk, 1 << step, output);
    }
}

/// Ranks exchange a part with their neighbour, then two parts over two ranks, and so on.
fn doubling(group: &mut RankGroup<'_>, chunk: Bytes, output: &mut TrafficFlows) {
    for step in 0..group.len().ilog2() {
        exchange(group, chunk, 1 << step, output);
    }
}

/// A step in which ranks so far apart exchange as many parts.
fn exchange(group: &mut RankGroup<'_>, chunk: Bytes, distance: u32, output: &mut TrafficFlows) {
    let size = Bytes::new(chunk.get() * u64::from(distance));
    let sends = (0..group.len()).map(|from| Send { from, to: from ^ distance, size });
    group.step(sends, SendCondition::Begun, output);
}

/// Up a binomial tree: in each step half of the ranks that are left send to the other half, and are done.
fn up_tree(group: &mut RankGroup<'_>, size: Bytes, output: &mut TrafficFlows) {
    let ranks = group.len();
    for distance in powers(ranks) {
        let senders = (distance..ranks).step_by(2 * distance as usize);
        group.step(senders.map(|from| Send { from, to: from - distance, size }), SendCondition::Complete, output);
    }
}

/// Down a binomial tree: in each step every rank that has something sends to another one. `size` is for how many ranks a
/// send is, those behind the receiver included.
fn down_tree(group: &mut RankGroup<'_>, size: impl Fn(u32) -> Bytes, output: &mut TrafficFlows) {
    let ranks = group.len();
    for distance in powers(ranks).rev() {
        let receivers = (distance..ranks).step_by(2 * distance as usize);
        let sends = receivers.map(|to| Send { from: to - distance, to, size: size(distance.min(ranks - to)) });
        group.step(sends, SendCondition::Complete, output);
    }
}

/// 1, 2, 4, ..., all under `ranks`.
fn powers(ranks: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..ranks.next_power_of_two().ilog2()).map(|power| 1 << power)
}

/// In step d every rank sends to the d-th rank after it.
fn rotation(group: &mut RankGroup<'_>, chunk: Bytes, output: &mut TrafficFlows) {
    let ranks = group.len();
    for distance in 1..ranks {
        let sends = (0..ranks).map(|from| Send { from, to: (from + distance) % ranks, size: chunk });
        group.step(sends, SendCondition::Complete, output);
    }
}

/// Each stage processes micro-batches in order: it computes on a received one, and sends it on.
fn pipeline(group: &mut RankGroup<'_>, part: Bytes, microbatches: u32, output: &mut TrafficFlows) {
    for _ in 0..microbatches {
        for from in 0..group.len() - 1 {
            group.stage(Send { from, to: from + 1, size: part }, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::DraftStart;
    use experiment::{Dependency, FlowId};
    use fabric::HostId;
    use units::Span;

    const ALL: [CollectivePlan; 9] = [
        CollectivePlan::RingAllReduce,
        CollectivePlan::RingHalf,
        CollectivePlan::HalvingAllReduce,
        CollectivePlan::Halving,
        CollectivePlan::Doubling,
        CollectivePlan::TreeAllReduce,
        CollectivePlan::Rotation,
        CollectivePlan::TreeBroadcast,
        CollectivePlan::RingBroadcast,
    ];

    fn hosts(ranks: u32) -> Vec<HostId> {
        (0..ranks).map(HostId).collect()
    }

    fn once(plan: CollectivePlan, ranks: u32, size: u64) -> TrafficFlows {
        let (hosts, mut output) = (hosts(ranks), TrafficFlows::default());
        let mut group = RankGroup::new(&hosts, Span::ZERO, Span::ZERO);
        group.begin(&output);
        plan.iterate(&mut group, Bytes::new(size), &mut output);
        assert_eq!(output.flows.len() as u64, plan.flows(ranks.into()), "{plan:?} of {ranks}");
        output
    }

    fn sent(output: &TrafficFlows, rank: u32) -> u64 {
        output.flows.iter().filter(|flow| flow.src == HostId(rank)).map(|flow| flow.size.get()).sum()
    }

    #[test]
    fn each_rank_sends_what_the_formula_says() {
        for ranks in [2u32, 3, 4, 5, 7, 8, 16] {
            for size in [1, 1_000, 1 << 20] {
                let (n, chunk) = (u64::from(ranks), u64::div_ceil(size, ranks.into()));
                for plan in ALL {
                    let power = ranks.is_power_of_two();
                    if !power
                        && matches!(
                            plan,
                            CollectivePlan::HalvingAllReduce | CollectivePlan::Halving | CollectivePlan::Doubling
                        )
                    {
                        continue;
                    }
                    let output = once(plan, ranks, size);
                    let all: u64 = (0..ranks).map(|rank| sent(&output, rank)).sum();
                    let each = match plan {
                        CollectivePlan::RingAllReduce | CollectivePlan::HalvingAllReduce => 2 * (n - 1) * chunk,
                        CollectivePlan::RingHalf
                        | CollectivePlan::Halving
                        | CollectivePlan::Doubling
                        | CollectivePlan::Rotation => (n - 1) * chunk,
                        CollectivePlan::TreeAllReduce => {
                            assert_eq!(all, 2 * (n - 1) * size);
                            continue;
                        }
                        CollectivePlan::TreeBroadcast => {
                            assert_eq!(all, (n - 1) * size);
                            continue;
                        }
                        CollectivePlan::RingBroadcast => {
                            assert_eq!(sent(&output, 0), 2 * (n - 1) * chunk);
                            continue;
                        }
                        CollectivePlan::Pipeline { .. } => unreachable!(),
                    };
                    assert!((0..ranks).all(|rank| sent(&output, rank) == each), "{plan:?} of {ranks}");
                }
                let output = once(CollectivePlan::Pipeline { microbatches: 6 }, ranks, size);
                let each = 6 * size.div_ceil(6);
                assert!((0..ranks).all(|rank| sent(&output, rank) == if rank < ranks - 1 { each } else { 0 }));
            }
        }
    }

    /// Checks that each rank ends with the parts that the operation promises, after all receipts.
    #[test]
    fn every_rank_receives_the_result_of_the_operation() {
        for ranks in [2u32, 3, 6, 8] {
            for plan in [
                CollectivePlan::TreeAllReduce,
                CollectivePlan::RingAllReduce,
                CollectivePlan::RingBroadcast,
                CollectivePlan::TreeBroadcast,
            ] {
                let output = once(plan, ranks, 1 << 10);
                // By rank: the sources of its data, at first or second hand, in the order of the flows.
                let mut knows: Vec<u32> = (0..ranks).map(|rank| 1 << rank).collect();
                for flow in &output.flows {
                    knows[flow.dst.index()] |= knows[flow.src.index()];
                }
                let wanted = if matches!(plan, CollectivePlan::TreeBroadcast) { 1 } else { (1 << ranks) - 1 };
                assert!(knows.iter().all(|knows| knows & wanted == wanted), "{plan:?} of {ranks}");
            }
            let output = once(CollectivePlan::Rotation, ranks, 1 << 10);
            let mut pairs: Vec<_> = output.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(index32(pairs.len()), ranks * (ranks - 1));
        }
    }

    fn dependencies(output: &TrafficFlows, flow: usize) -> Vec<Dependency> {
        match output.flows[flow].start {
            DraftStart::At(_) => Vec::new(),
            DraftStart::Waits { dependencies, .. } => output.dependencies.of(dependencies).to_vec(),
        }
    }

    #[test]
    fn sends_wait_for_what_they_need() {
        use Dependency::{Begun, Complete, Received};
        let [f0, f1, f2, f3] = [0, 1, 2, 3].map(FlowId);
        let tree = once(CollectivePlan::TreeAllReduce, 4, 1_000);
        // 1 to 0 and 3 to 2, then 2 to 0; 0 to 2, then 0 to 1 and 2 to 3.
        let pairs: Vec<_> = tree.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
        assert_eq!(pairs, [(1, 0), (3, 2), (2, 0), (0, 2), (0, 1), (2, 3)]);
        let waits: Vec<_> = (0..6).map(|flow| dependencies(&tree, flow)).collect();
        let second = vec![Received(f3), Complete(f2)];
        assert_eq!(
            waits,
            [vec![], vec![], vec![Received(f1)], vec![Received(f0), Received(f2)], vec![Complete(f3)], second]
        );
        let pipe = once(CollectivePlan::Pipeline { microbatches: 2 }, 3, 1_000);
        let waits: Vec<_> = (0..4).map(|flow| dependencies(&pipe, flow)).collect();
        assert_eq!(waits, [vec![], vec![Received(f0)], vec![Begun(f0)], vec![Received(f2), Begun(f1)]]);
    }

    #[test]
    fn iterations_follow_each_other() {
        let (hosts, mut output) = (hosts(3), TrafficFlows::default());
        let compute = Span::from_us(9);
        let mut group = RankGroup::new(&hosts, Span::from_us(4), compute);
        for iteration in 0..2 {
            group.begin(&output);
            if iteration > 0 {
                group.add_received(0, &output);
            }
            pipeline(&mut group, Bytes::new(10), 1, &mut output);
        }
        assert_eq!(output.flows[0].start, DraftStart::At(Span::from_us(13)));
        assert_eq!(dependencies(&output, 2), [Dependency::Received(FlowId(1)), Dependency::Begun(FlowId(0))]);
        assert!(matches!(output.flows[2].start, DraftStart::Waits { after, .. } if after == compute));
    }
}
