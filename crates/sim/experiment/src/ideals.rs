//! The least time that a flow can take. Slowdowns are measured against it.
//!
//! The flow is alone in the network, and only the links that its packets may take limit it. No run beats this time, so
//! a slowdown is at least 1: a law, a host, another flow, losses and parity can only make a flow slower. Of all
//! acknowledgements only the last one counts.

use fabric::{Burst, Ways};
use flow::LoadBalancing;
use units::Span;

use crate::setup::{FlowSpec, Setup};
use crate::start::{Dependency, FlowId};

/// The ideal times of a run's flows.
#[derive(Debug)]
pub struct Ideals<'a> {
    setup: &'a Setup,
    ways: Ways<'a>,
    /// Set if a flow's packets may take several paths.
    over_all: bool,
}

impl Setup {
    /// The least completion time of a flow: see [`Ideals::of`]. For many flows, [`Ideals`] is faster.
    pub fn ideal(&self, flow: &FlowSpec) -> Span {
        Ideals::new(self).of(flow)
    }
}

impl<'a> Ideals<'a> {
    /// Creates the ideal times for the flows of a run.
    pub fn new(setup: &'a Setup) -> Self {
        let ways = Ways::new(&setup.network, &setup.routes);
        // A flow that changes its path has packets on the old path and on the new one.
        let over_all = ways.change()
            || match setup.host.path {
                LoadBalancing::PerFlow => false,
                LoadBalancing::AfterTimeout
                | LoadBalancing::PerPacket(_)
                | LoadBalancing::UnoLb(_)
                | LoadBalancing::Plb(_)
                | LoadBalancing::Reps(_) => true,
            };
        Self { setup, ways, over_all }
    }

    /// The least time from a flow's first bit sent to its last bit received. The flow has at least one byte.
    pub fn arrival(&mut self, flow: &FlowSpec) -> Span {
        let host = &self.setup.host;
        let mss = u64::from(host.mss);
        let packets = flow.size.get().div_ceil(mss);
        let last = flow.size.get() - (packets - 1) * mss;
        let burst = Burst { packets: packets as u32, full: host.mss + host.header, last: last as u32 + host.header };
        if self.over_all {
            self.ways.arrival_over_all(flow.src, flow.dst, &burst)
        } else {
            self.ways.arrival(flow.src, flow.dst, &burst)
        }
    }

    /// The least time of an acknowledgement from a flow's receiver to its sender.
    pub fn back(&mut self, flow: &FlowSpec) -> Span {
        let size = self.setup.host.ack_size;
        self.ways.arrival(flow.dst, flow.src, &Burst { packets: 1, full: size, last: size })
    }

    /// Returns the minimum time from the start of a dependency's flow, which ends within `ideal`, until the sender of
    /// `flow`, which waits for it, is notified.
    pub fn until_notified(&mut self, dependency: Dependency, ideal: Span, flow: &FlowSpec) -> Span {
        let setup = self.setup;
        let event_delay = match dependency {
            Dependency::Complete(_) => ideal,
            Dependency::Received(FlowId(of)) => ideal - self.back(&setup.flows[of as usize]),
            Dependency::Begun(_) => Span::ZERO,
        };
        event_delay + setup.notice_delay(dependency, flow)
    }

    /// The least completion time: from the first bit sent to the last acknowledgement received.
    pub fn of(&mut self, flow: &FlowSpec) -> Span {
        self.arrival(flow) + self.back(flow)
    }
}
