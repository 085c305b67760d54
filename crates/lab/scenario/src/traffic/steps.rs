//! Steps of the ranks of a group: sends that wait for receipts, for earlier sends, and for computing.
//!
//! The next send of a rank waits for the receipts of a step, so a collective operation is only a list of sends in each
//! step: sender, receiver and size.

use experiment::{Dependency, FlowId};
use fabric::HostId;
use units::{Bytes, Span};

use super::ready::Ready;
use super::{DraftFlow, DraftStart, TrafficFlows, later};
use crate::index::index32;

/// Condition of a rank's send on the send before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendCondition {
    /// The send before has begun: for sends that need received data, which paces them.
    Begun,
    /// The send before is complete: for sends of a rank that follow each other without data in between.
    Complete,
}

/// One send of a step, by the ranks' places in their group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Send {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) size: Bytes,
}

/// A group of ranks on its way through the steps.
pub(super) struct RankGroup<'a> {
    ranks: &'a [HostId],
    /// Time at which ranks begin that wait for nothing.
    start: Span,
    /// Time for which ranks compute: between two iterations, or before each send of a stage.
    compute: Span,
    parties: Vec<Party>,
    /// The first flow of this iteration.
    first: u32,
    /// (rank, flow) of the sends of the step that is being made.
    in_progress: Vec<(u32, u32)>,
    /// Time at which all ranks would be ready if flows took no time; zero for ranks without a readiness of their own.
    ideal: Span,
}

/// State of a rank.
#[derive(Clone, Default)]
struct Party {
    /// Readiness for its first send, if it is known from elsewhere.
    ready: Option<Ready>,
    /// Flows that it received since its last send.
    received: Vec<u32>,
    /// The flow that it sent last.
    sent: Option<u32>,
}

impl<'a> RankGroup<'a> {
    pub(super) fn new(ranks: &'a [HostId], start: Span, compute: Span) -> Self {
        let parties = vec![Party::default(); ranks.len()];
        Self { ranks, start, compute, parties, first: 0, in_progress: Vec::new(), ideal: Span::ZERO }
    }

    /// Ranks that join from other work, each when it is ready, and continue with other work: see [`RankGroup::leave`].
    pub(super) fn joined(ranks: &'a [HostId], ready: impl IntoIterator<Item = Ready>) -> Self {
        let ready: Vec<Ready> = ready.into_iter().collect();
        debug_assert_eq!(ready.len(), ranks.len(), "one ready time for each rank");
        let ideal = ready.iter().map(Ready::ideal).max().unwrap_or(Span::ZERO);
        let parties = ready.into_iter().map(|ready| Party { ready: Some(ready), ..Party::default() }).collect();
        Self { parties, ideal, ..Self::new(ranks, Span::ZERO, Span::ZERO) }
    }

    /// Returns the readiness of each rank for other work: after all receipts, and after its sends as far as `turn`
    /// requires.
    pub(super) fn leave(mut self, turn: SendCondition) -> Vec<Ready> {
        let mut left = Vec::with_capacity(self.parties.len());
        for rank in 0..self.len() {
            let kept = self.parties[rank as usize].ready.take();
            let dependencies = self.dependencies(rank, turn);
            debug_assert!(kept.is_some() || !dependencies.is_empty(), "a rank that has sent waits for that");
            let mut ready = kept.unwrap_or(Ready::at(Span::ZERO));
            for cause in dependencies {
                ready.add_dependency(cause, self.ideal);
            }
            left.push(ready);
        }
        left
    }

    /// Returns the number of ranks.
    pub(super) fn len(&self) -> u32 {
        index32(self.ranks.len())
    }

    /// Begins a new iteration.
    pub(super) fn begin(&mut self, output: &TrafficFlows) {
        self.first = index32(output.flows.len());
    }

    /// The sends of one step. A rank that needs nothing of this iteration first has computed since the last one.
    pub(super) fn step(
        &mut self,
        sends: impl IntoIterator<Item = Send>,
        turn: SendCondition,
        output: &mut TrafficFlows,
    ) {
        for send in sends {
            let dependencies = self.dependencies(send.from, turn);
            let start = if let Some(mut ready) = self.parties[send.from as usize].ready.take() {
                for cause in dependencies {
                    ready.add_dependency(cause, self.ideal);
                }
                ready.start(&mut output.dependencies)
            } else {
                let needs_none = dependencies.iter().all(|cause| cause.flow().0 < self.first);
                let after = if needs_none { self.compute } else { Span::ZERO };
                if dependencies.is_empty() { DraftStart::At(self.start) } else { waits(dependencies, after, output) }
            };
            self.send(send, start, output);
        }
        self.arrive();
    }

    /// Adds a send of a stage that has computed on the received data.
    pub(super) fn stage(&mut self, send: Send, output: &mut TrafficFlows) {
        let dependencies = self.dependencies(send.from, SendCondition::Begun);
        let start = if dependencies.is_empty() {
            DraftStart::At(later(self.start, self.compute))
        } else {
            waits(dependencies, self.compute, output)
        };
        self.send(send, start, output);
        self.arrive();
    }

    /// Makes the next send of a rank wait, too, until the last flow so far is received.
    pub(super) fn add_received(&mut self, rank: u32, output: &TrafficFlows) {
        let last = index32(output.flows.len()) - 1;
        self.parties[rank as usize].received.push(last);
    }

    /// Takes the dependencies for which the next send of a rank waits.
    fn dependencies(&mut self, rank: u32, turn: SendCondition) -> Vec<Dependency> {
        let party = &mut self.parties[rank as usize];
        let sent = party.sent.map(|flow| match turn {
            SendCondition::Begun => Dependency::Begun(FlowId(flow)),
            SendCondition::Complete => Dependency::Complete(FlowId(flow)),
        });
        party.received.drain(..).map(|flow| Dependency::Received(FlowId(flow))).chain(sent).collect()
    }

    fn send(&mut self, send: Send, start: DraftStart, output: &mut TrafficFlows) {
        let flow = index32(output.flows.len());
        let [src, dst] = [send.from, send.to].map(|rank| self.ranks[rank as usize]);
        output.flows.push(DraftFlow { src, dst, size: send.size, start });
        self.parties[send.from as usize].sent = Some(flow);
        self.in_progress.push((send.to, flow));
    }

    /// Marks the flows of the step as received, for the next step.
    fn arrive(&mut self) {
        for (rank, flow) in self.in_progress.drain(..) {
            self.parties[rank as usize].received.push(flow);
        }
    }
}

fn waits(dependencies: Vec<Dependency>, after: Span, output: &mut TrafficFlows) -> DraftStart {
    DraftStart::Waits { dependencies: output.dependencies.add(dependencies), after }
}
