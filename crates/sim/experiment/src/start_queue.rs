//! Start times of flows: fixed, or when the dependencies of a flow are met.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Time;

use crate::setup::{FlowSpec, Setup};
use crate::start::{Dependency, Start};
use crate::waits::{Pending, Waits};

/// The flows that have not started yet.
#[derive(Debug)]
pub struct StartQueue<'a> {
    setup: &'a Setup,
    starts: BinaryHeap<Reverse<(Time, usize)>>,
    waits: Waits,
    pending: Pending,
}

impl<'a> StartQueue<'a> {
    /// Returns the queue of all flows of a setup.
    pub fn new(setup: &'a Setup) -> Self {
        let at = |(flow, spec): (usize, &FlowSpec)| match spec.start {
            Start::At(time) => Some(Reverse((time, flow))),
            Start::Waits { .. } => None,
        };
        let starts = setup.flows.iter().enumerate().filter_map(at).collect();
        Self { setup, starts, waits: Waits::new(setup), pending: Pending::default() }
    }

    /// Returns the next known start time of a flow; [`Time::NEVER`] if none starts.
    pub fn next(&self) -> Time {
        self.starts.peek().map_or(Time::NEVER, |&Reverse((time, _))| time)
    }

    /// Returns and removes a flow with a start time that has passed.
    pub fn pop_due(&mut self, now: Time) -> Option<usize> {
        let &Reverse((time, flow)) = self.starts.peek()?;
        if time > now {
            return None;
        }
        self.starts.pop();
        Some(flow)
    }

    /// Records that a dependency was met at `now`. Flows without further unmet dependencies get their start time.
    pub fn dependency_met(&mut self, cause: Dependency, now: Time) {
        for flow in self.waits.followers(cause) {
            let known_at = now + self.setup.notice_delay(cause, &self.setup.flows[flow.0 as usize]);
            let start = self.pending.mark_met(flow, known_at, self.setup);
            self.starts.extend(start.map(|time| Reverse((time, flow.0 as usize))));
        }
    }
}
