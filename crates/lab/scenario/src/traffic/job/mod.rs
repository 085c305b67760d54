//! `[[job]]`: the flows of training, iteration after iteration.
//!
//! Parallelism as in Megatron-LM (Narayanan et al., SC 2021, §2 and §3). A layer has two all-reduces of its activations among
//! the ranks that share it forward, and two backward (§2.3). A stage sends its activations to the next one, and the gradients
//! of its input back (§2.2), each rank to the rank at its place. After the last micro-batch the copies of the model sum up
//! their gradients (§2.1); then the first and the last stage those of the embedding, if they share one. With experts, ranks
//! exchange tokens before the second half of a layer and after it, forward and backward (`GShard`, Lepikhin et al., ICLR 2021,
//! §3.2).
//!
//! A rank begins an all-reduce when it has computed its input, and continues to compute when its part of it is complete.
//! Sends of the pipeline go while ranks compute. A rank begins the next iteration when its own part of this one is over.
//!
//! Left out: all-reduces that overlap with computing, reductions' and the optimizer's computing, interleaved stages, sharded
//! optimizers, the scatter and gather of activations between stages (§4.1: here each rank of a tensor group sends them whole).

mod schedule;
mod shape;

use std::collections::BTreeMap;

use experiment::{Dependency, FlowId};
use fabric::HostId;
use schedule::{PassDirection, StageStep, order};
use shape::{RankCoord, Shape};
use units::{Bytes, Span};

use super::collective::CollectivePlan;
use super::ready::Ready;
use super::steps::RankGroup;
use super::{DraftFlow, TrafficContext, TrafficFlows};
use crate::config::Job;
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

/// Purpose of a flow of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StepKind {
    /// Ranks that share a layer sum up activations.
    Tensor,
    /// A stage hands on a micro-batch.
    Pipeline,
    /// Copies of the model sum up gradients.
    Data,
    /// Tokens are sent to experts and returned.
    Expert,
    /// The first and the last stage sum up gradients of the embedding.
    Embedding,
}

impl StepKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tensor, Self::Pipeline, Self::Data, Self::Expert, Self::Embedding];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Pipeline => "pipeline",
            Self::Data => "data",
            Self::Expert => "expert",
            Self::Embedding => "embedding",
        }
    }
}

/// The flows of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFlows {
    /// Its name.
    pub name: String,
    /// Time at which it begins to compute.
    pub start: Span,
    /// Its ranks.
    pub ranks: u32,
    /// Its hosts.
    pub hosts: usize,
    /// Purpose of each flow, from the first on.
    pub kinds: Vec<StepKind>,
    /// Its first flow.
    pub first: FlowId,
    /// Its iterations, in order: their flows follow each other.
    pub iterations: Vec<JobIteration>,
    /// Payload of an iteration by purpose.
    pub payload: Vec<(StepKind, Bytes)>,
}

/// An iteration of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobIteration {
    /// Number of its flows.
    pub flows: u32,
    /// The iteration is over when all of these causes have happened, and for each the time has passed since.
    pub ends: Vec<(Dependency, Span)>,
    /// Its duration if flows took no time.
    pub compute: Span,
}

impl JobFlows {
    /// The same, with a first flow of that number.
    pub(crate) fn numbered_from(mut self, first: FlowId) -> Self {
        let number = |flow: FlowId| FlowId(first.0 + flow.0);
        for (cause, _) in self.iterations.iter_mut().flat_map(|iteration| &mut iteration.ends) {
            *cause = match *cause {
                Dependency::Complete(flow) => Dependency::Complete(number(flow)),
                Dependency::Received(flow) => Dependency::Received(number(flow)),
                Dependency::Begun(flow) => Dependency::Begun(number(flow)),
            };
        }
        self.first = number(self.first);
        self
    }
}

/// Makes the flows of the job numbered `index`, counted behind all traffic.
pub(crate) fn make(job: &Job, index: usize, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let draws = Draws::new(job.seed.unwrap_or(context.seed), if job.seed.is_some() { 0 } else { index as u64 });
    let shape = Shape::new(job, draws, context)?;
    let orders = (0..shape.stages).map(|stage| order(job.schedule, stage, shape.stages, shape.micro_batches));
    let orders: Vec<Vec<StageStep>> = orders.collect();
    let mut builder = JobBuilder::new(&shape, job.start);
    let mut iterations = Vec::new();
    let (mut first, mut begins) = (0, job.start);
    for _ in 0..job.iterations.get() {
        builder.iterate(&orders);
        let ended = index32(builder.output.flows.len());
        let ends = builder.ranks.iter().map(Ready::ideal).max().unwrap_or(begins);
        iterations.push(JobIteration { flows: ended - first, ends: builder.ends(), compute: ends - begins });
        builder.output.collectives.push((first, ended));
        (first, begins) = (ended, ends);
    }
    let JobBuilder { mut output, kinds, .. } = builder;
    if shape.micro_batches < shape.stages {
        output.warnings.push(format!(
            "job `{}` has {} micro-batches and {} stages: at no time do all stages compute",
            *job.name, shape.micro_batches, shape.stages
        ));
    }
    let of_first = output.collectives.first().map_or(0, |&(_, end)| end as usize);
    let payload = |kind: StepKind| {
        let flows = output.flows.iter().zip(&kinds).take(of_first).filter(|&(_, known)| *known == kind);
        (kind, flows.map(|(flow, _)| flow.size).fold(Bytes::ZERO, Bytes::saturating_add))
    };
    output.job = Some(JobFlows {
        name: job.name.value.clone(),
        start: job.start,
        ranks: shape.ranks(),
        hosts: shape.hosts.len(),
        payload: StepKind::ALL.map(payload).into_iter().filter(|(_, bytes)| !bytes.is_zero()).collect(),
        kinds,
        first: FlowId(0),
        iterations,
    });
    Ok(output)
}

/// Makes flows.
struct JobBuilder<'a> {
    shape: &'a Shape,
    output: TrafficFlows,
    kinds: Vec<StepKind>,
    /// By rank: when it is ready for its next operation.
    ranks: Vec<Ready>,
    /// Inputs on their way to a stage: times of their receipt, by the ranks of the stage in the order of
    /// [`JobBuilder::members`].
    coming: BTreeMap<(u32, StageStep), Vec<Ready>>,
}

impl<'a> JobBuilder<'a> {
    fn new(shape: &'a Shape, start: Span) -> Self {
        let ranks = vec![Ready::at(start); shape.ranks() as usize];
        Self { shape, output: TrafficFlows::default(), kinds: Vec::new(), ranks, coming: BTreeMap::new() }
    }

    /// Returns the end of the last iteration: its causes, and the time after each.
    fn ends(&self) -> Vec<(Dependency, Span)> {
        let mut all = Ready::at(Span::ZERO);
        self.ranks.iter().for_each(|ready| all.join(ready));
        all.waits()
    }

    /// Runs the micro-batches of all stages, each in its order, as soon as their inputs are ready.
    fn iterate(&mut self, orders: &[Vec<StageStep>]) {
        let mut done = vec![0; orders.len()];
        loop {
            let before = done.clone();
            for (stage, order) in (0u32..).zip(orders) {
                let done = &mut done[stage as usize];
                while let Some(&turn) = order.get(*done).filter(|&&turn| self.may(stage, turn)) {
                    self.take(stage, turn);
                    *done += 1;
                }
            }
            if done == before {
                break;
            }
        }
        debug_assert!(done.iter().zip(orders).all(|(&done, order)| done == order.len()), "stages wait for each other");
        debug_assert!(self.coming.is_empty(), "what comes is taken");
        self.sum_up_gradients();
    }

    /// Returns whether the flows that a stage needs for `turn` are made.
    fn may(&self, stage: u32, turn: StageStep) -> bool {
        let is_first = match turn.direction {
            PassDirection::Forward => stage == 0,
            PassDirection::Backward => stage + 1 == self.shape.stages,
        };
        is_first || self.coming.contains_key(&(stage, turn))
    }

    /// A stage computes on a micro-batch, and hands it on.
    fn take(&mut self, stage: u32, turn: StageStep) {
        let members = self.members(stage);
        for (&rank, received) in members.iter().zip(self.coming.remove(&(stage, turn)).unwrap_or_default()) {
            self.ranks[rank].join(&received);
        }
        self.compute(stage, &members, turn.direction);
        let next = match turn.direction {
            PassDirection::Forward => Some(stage + 1).filter(|&next| next < self.shape.stages),
            PassDirection::Backward => stage.checked_sub(1),
        };
        if let Some(next) = next {
            let receivers = self.members(next);
            let sends = members.iter().zip(&receivers).map(|(&from, &to)| self.send(from, to)).collect();
            self.coming.insert((next, turn), sends);
        }
    }

    /// The ranks of a stage compute on a micro-batch, with all that they exchange for it.
    fn compute(&mut self, stage: u32, members: &[usize], direction: PassDirection) {
        let shape = self.shape;
        let (all, halves) = (shape.compute(stage, direction), shape.layers.saturating_mul(2));
        if !shape.sums_over_network() && !shape.exchanges {
            let local = Span::from_ps(shape.local.ps().saturating_mul(halves.into()));
            for &rank in members {
                self.ranks[rank].compute(all);
                self.ranks[rank].compute(local);
            }
            return;
        }
        let until = |half: u32| {
            let ps = i128::from(all.ps()) * i128::from(half) / i128::from(halves);
            Span::from_ps(i64::try_from(ps).unwrap_or(i64::MAX))
        };
        for half in 0..halves {
            // Experts are the second half of a layer, so the first one on the way back.
            let is_of_experts = shape.exchanges && (half % 2 == 1) == (direction == PassDirection::Forward);
            if is_of_experts {
                self.exchange(stage);
            }
            for &rank in members {
                self.ranks[rank].compute(until(half + 1) - until(half));
                self.ranks[rank].compute(shape.local);
            }
            if shape.sums_over_network() {
                self.sum_up_activations(stage);
            }
            if is_of_experts {
                self.exchange(stage);
            }
        }
    }

    /// The ranks that share layers sum up activations.
    fn sum_up_activations(&mut self, stage: u32) {
        for copy in 0..self.shape.copies {
            let group = self.group(0..self.shape.tensor, |tensor| RankCoord { tensor, copy, stage });
            self.run_collective(&group, self.shape.tensor_plan, self.shape.activations, StepKind::Tensor);
        }
    }

    /// The ranks that share experts exchange tokens.
    fn exchange(&mut self, stage: u32) {
        let expert = self.shape.expert;
        for first in (0..self.shape.copies).step_by(expert as usize) {
            for tensor in 0..self.shape.tensor {
                let group = self.group(first..first + expert, |copy| RankCoord { tensor, copy, stage });
                self.run_collective(&group, CollectivePlan::Rotation, self.shape.tokens, StepKind::Expert);
            }
        }
    }

    /// Sums up the gradients over the copies of the model: those of all ranks, of experts that some ranks have, and of the
    /// embedding at both ends.
    fn sum_up_gradients(&mut self) {
        let shape = self.shape;
        for stage in 0..shape.stages {
            for tensor in 0..shape.tensor {
                let at = |copy| RankCoord { tensor, copy, stage };
                let group = self.group(0..shape.copies, at);
                self.run_collective(&group, shape.data_plan, shape.gradients(stage), StepKind::Data);
                for first in (0..shape.expert).filter(|_| shape.expert_gradients.is_some()) {
                    let group = self.group((first..shape.copies).step_by(shape.expert as usize), at);
                    self.run_collective(
                        &group,
                        shape.data_plan,
                        shape.expert_gradients.unwrap_or(Bytes::ZERO),
                        StepKind::Data,
                    );
                }
            }
        }
        let Some(embedding) = shape.embedding else { return };
        for copy in 0..shape.copies {
            for tensor in 0..shape.tensor {
                let ends = [0, shape.stages - 1];
                let group = self.group(ends, |stage| RankCoord { tensor, copy, stage });
                self.run_collective(&group, CollectivePlan::RingAllReduce, embedding, StepKind::Embedding);
            }
        }
    }

    /// The ranks of a stage: copy by copy, those that share layers next to each other.
    fn members(&self, stage: u32) -> Vec<usize> {
        let copies = 0..self.shape.copies;
        let of = |copy| (0..self.shape.tensor).map(move |tensor| RankCoord { tensor, copy, stage });
        copies.flat_map(of).map(|coord| self.shape.rank(coord)).collect()
    }

    fn group(&self, of: impl IntoIterator<Item = u32>, coord: impl Fn(u32) -> RankCoord) -> Vec<usize> {
        of.into_iter().map(|nth| self.shape.rank(coord(nth))).collect()
    }

    /// Ranks do a collective operation; one alone has nothing to do.
    fn run_collective(&mut self, ranks: &[usize], plan: CollectivePlan, size: Bytes, kind: StepKind) {
        if ranks.len() < 2 {
            return;
        }
        let hosts: Vec<HostId> = ranks.iter().map(|&rank| self.shape.host(rank)).collect();
        let mut group = RankGroup::joined(&hosts, ranks.iter().map(|&rank| self.ranks[rank].clone()));
        plan.iterate(&mut group, size, &mut self.output);
        for (&rank, ready) in ranks.iter().zip(group.leave(plan.turn())) {
            self.ranks[rank] = ready;
        }
        self.kinds.resize(self.output.flows.len(), kind);
    }

    /// Sends the activations of a rank to another one; the rank continues to compute. Returns the time of their receipt.
    fn send(&mut self, from: usize, to: usize) -> Ready {
        let flow = FlowId(index32(self.output.flows.len()));
        let ready = &self.ranks[from];
        let (start, ideal) = (ready.start(&mut self.output.dependencies), ready.ideal());
        let [src, dst] = [from, to].map(|rank| self.shape.host(rank));
        self.output.flows.push(DraftFlow { src, dst, size: self.shape.activations, start });
        self.kinds.push(StepKind::Pipeline);
        self.ranks[from] = Ready::after(Dependency::Begun(flow), ideal);
        Ready::after(Dependency::Received(flow), ideal)
    }
}
