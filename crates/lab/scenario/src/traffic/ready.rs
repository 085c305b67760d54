//! Readiness of a rank to send: at a time, or when dependencies are met and the rank has computed since.
//!
//! A rank computes on one thing at a time. If no flow marks the end of a computation, the next one still waits for it. So
//! readiness is a maximum of sums: of each dependency, plus the computing time since the rank handled it.

use std::cmp::Reverse;

use experiment::{Dependencies, Dependency};
use units::Span;

use super::{DraftStart, later};

/// Longer than any run lasts. Computing that adds up to more counts as this.
const MAX: Span = Span::from_s(1_000_000);

/// Readiness of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ready {
    /// The time, if it waits for nothing.
    at: Span,
    /// Causes, each with the value of `computed_here` when the rank took it up.
    waits: Vec<(Dependency, Span)>,
    /// Time computed since this began.
    computed_here: Span,
    /// Time of readiness if flows took no time.
    ideal: Span,
}

impl Ready {
    /// At a time.
    pub(super) fn at(at: Span) -> Self {
        Self { at, waits: Vec::new(), computed_here: Span::ZERO, ideal: at }
    }

    /// After a cause. `ideal` is when that would be if no flow took any time.
    pub(super) fn after(cause: Dependency, ideal: Span) -> Self {
        Self { at: Span::ZERO, waits: vec![(cause, Span::ZERO)], computed_here: Span::ZERO, ideal }
    }

    /// Returns the time of readiness if flows took no time.
    pub(super) fn ideal(&self) -> Span {
        self.ideal
    }

    /// Adds a dependency, which is met at `ideal` if no flow takes any time.
    ///
    /// The fixed time is dropped. Ranks of a job begin together and those of a stage compute for equal times, so no data
    /// that a rank receives was sent before the rank itself was ready.
    pub(super) fn add_dependency(&mut self, cause: Dependency, ideal: Span) {
        self.waits.push((cause, self.computed_here));
        self.ideal = self.ideal.max(ideal);
    }

    /// Only when another is ready, too.
    pub(super) fn join(&mut self, other: &Self) {
        self.at = self.at.max(other.at);
        let processed_at = |since: Span| self.computed_here - (other.computed_here - since);
        self.waits.extend(other.waits.iter().map(|&(cause, since)| (cause, processed_at(since))));
        self.ideal = self.ideal.max(other.ideal);
    }

    /// Adds computing time.
    pub(super) fn compute(&mut self, span: Span) {
        self.at = later(self.at, span).min(MAX);
        self.computed_here = later(self.computed_here, span).min(MAX);
        self.ideal = later(self.ideal, span).min(MAX);
    }

    /// The dependencies, each once, and how long after each it is ready at the earliest.
    pub(super) fn waits(&self) -> Vec<(Dependency, Span)> {
        let lag = |since: Span| (self.computed_here - since).min(MAX);
        let mut waits: Vec<(Dependency, Span)> = self.waits.iter().map(|&(cause, since)| (cause, lag(since))).collect();
        waits.sort_unstable_by_key(|&(cause, lag)| (cause, Reverse(lag)));
        waits.dedup_by_key(|(cause, _)| *cause);
        waits
    }

    /// Returns the start of a flow that leaves now. Computing after every dependency is the flow's own computing time.
    pub(super) fn start(&self, dependencies: &mut Dependencies) -> DraftStart {
        let waits = self.waits();
        let Some(after) = waits.iter().map(|&(_, lag)| lag).min() else { return DraftStart::At(self.at) };
        let dependencies = dependencies.add_each(waits.into_iter().map(|(cause, lag)| (cause, lag - after)));
        DraftStart::Waits { dependencies, after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::FlowId;

    #[test]
    fn compute_time_starts_when_a_dependency_is_processed() {
        let [a, b] = [Dependency::Received(FlowId(0)), Dependency::Received(FlowId(1))];
        let us = Span::from_us;
        let mut ready = Ready::at(us(5));
        ready.compute(us(1));
        let mut dependencies = Dependencies::default();
        assert_eq!((ready.start(&mut dependencies), ready.ideal()), (DraftStart::At(us(6)), us(6)));
        ready.add_dependency(a, us(2));
        ready.compute(us(3));
        ready.add_dependency(b, us(20));
        ready.compute(us(4));
        assert_eq!((ready.waits(), ready.ideal()), (vec![(a, us(7)), (b, us(4))], us(24)));
        // The same cause by another way, which takes longer.
        let mut other = Ready::after(a, us(2));
        other.compute(us(9));
        ready.join(&other);
        assert_eq!(ready.waits(), [(a, us(9)), (b, us(4))]);
        let DraftStart::Waits { dependencies: set, after } = ready.start(&mut dependencies) else { panic!("it waits") };
        assert_eq!((after, dependencies.of(set)), (us(4), &[a, b][..]));
        assert_eq!((dependencies.lag(set, a), dependencies.lag(set, b)), (us(5), Span::ZERO));
    }

    #[test]
    fn long_computing_saturates() {
        let mut ready = Ready::after(Dependency::Complete(FlowId(0)), Span::ZERO);
        for _ in 0..40 {
            ready.compute(MAX);
        }
        assert_eq!(ready.waits(), [(Dependency::Complete(FlowId(0)), MAX)]);
    }
}
