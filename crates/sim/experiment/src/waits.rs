//! Dependencies between flows.
//!
//! A flow starts when all of its dependencies ([`Dependency`]) are met, its sender is notified of each, and has computed for
//! the configured time after the last. A notice takes as long as the path: a host is notified at once of events at
//! itself, and one one-way delay later of events at another. If the sender computes on one dependency alone
//! ([`crate::Dependencies::lag`]), that one counts later by this time. [`Waits`] returns the flows that depend on an event,
//! and [`Pending`] counts the unmet dependencies of a flow. The simulator's hosts, the emulator and the tables of
//! results use only these definitions, so a dependency has the same meaning for all of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use fabric::HostId;
use units::{Span, Time};

use crate::setup::{FlowSpec, Setup};
use crate::start::{Dependency, FlowId, Start};

/// The flows that wait for each dependency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waits {
    complete: Followers,
    received: Followers,
    begun: Followers,
}

/// (a flow, one that waits for it), sorted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Followers(Vec<(u32, u32)>);

impl Waits {
    /// The waits of a run.
    pub fn new(setup: &Setup) -> Self {
        let [mut complete, mut received, mut begun] = [(); 3].map(|()| Vec::new());
        for (follower, spec) in (0u32..).zip(&setup.flows) {
            for dependency in setup.dependencies_of(spec) {
                let FlowId(flow) = dependency.flow();
                debug_assert!(
                    (flow as usize) < setup.flows.len(),
                    "flow {follower} waits for flow {flow}, which does not exist"
                );
                let list = match dependency {
                    Dependency::Complete(_) => &mut complete,
                    Dependency::Received(_) => &mut received,
                    Dependency::Begun(_) => {
                        debug_assert_eq!(
                            setup.flows[flow as usize].src, spec.src,
                            "only the sender observes this event"
                        );
                        &mut begun
                    }
                };
                list.push((flow, follower));
            }
        }
        let [complete, received, begun] = [complete, received, begun].map(|mut list| {
            list.sort_unstable();
            Followers(list)
        });
        Self { complete, received, begun }
    }

    /// Returns the flows that wait for a dependency, in the order of their numbers; one twice if it names the dependency twice.
    #[inline]
    pub fn followers(&self, dependency: Dependency) -> impl Iterator<Item = FlowId> + '_ {
        let list = match dependency {
            Dependency::Complete(_) => &self.complete,
            Dependency::Received(_) => &self.received,
            Dependency::Begun(_) => &self.begun,
        };
        list.of(dependency.flow())
    }
}

impl Followers {
    #[inline]
    fn of(&self, FlowId(flow): FlowId) -> impl Iterator<Item = FlowId> + '_ {
        let first = self.0.partition_point(|&(other, _)| other < flow);
        self.0[first..].iter().take_while(move |&&(other, _)| other == flow).map(|&(_, follower)| FlowId(follower))
    }
}

impl Setup {
    /// Returns the dependencies of a flow; none if it starts at a time.
    pub fn dependencies_of(&self, flow: &FlowSpec) -> &[Dependency] {
        match flow.start {
            Start::At(_) => &[],
            Start::Waits { dependencies, .. } => self.dependencies.of(dependencies),
        }
    }

    /// The host at which a dependency is met.
    pub fn location_of(&self, dependency: Dependency) -> HostId {
        let flow = &self.flows[dependency.flow().0 as usize];
        match dependency {
            Dependency::Complete(_) | Dependency::Begun(_) => flow.src,
            Dependency::Received(_) => flow.dst,
        }
    }

    /// Returns the time from a dependency's event until a flow's sender is notified and has computed on it alone. The
    /// notice takes no time on the host of the event, otherwise the one-way delay of an acknowledgement from there.
    pub fn notice_delay(&self, dependency: Dependency, flow: &FlowSpec) -> Span {
        let lag = match flow.start {
            Start::At(_) => Span::ZERO,
            Start::Waits { dependencies, .. } => self.dependencies.lag(dependencies, dependency),
        };
        self.one_way(self.location_of(dependency), flow.src) + lag
    }
}

/// Flows with some dependencies met, and others not.
#[derive(Clone, Default, Debug)]
pub struct Pending(BTreeMap<u32, PartlyMet>);

#[derive(Clone, Copy, Debug)]
struct PartlyMet {
    /// Dependencies that are not met, at least 1.
    left: u32,
    /// The time at which the sender was notified of the last one so far.
    notified_at: Time,
}

impl Pending {
    /// Records that one dependency of a flow is met, and that its sender is notified at `notified_at`. Returns the start of the
    /// flow, if that was its last dependency. The order of calls does not matter.
    pub fn mark_met(&mut self, flow: FlowId, notified_at: Time, setup: &Setup) -> Option<Time> {
        let spec = &setup.flows[flow.0 as usize];
        let Start::Waits { dependencies, after } = spec.start else {
            debug_assert!(false, "{flow:?} waits for nothing");
            return None;
        };
        let earliest = setup.dependencies.earliest(dependencies);
        let count = setup.dependencies.of(dependencies).len() as u32;
        if count == 1 {
            return Some((notified_at + after).max(earliest));
        }
        match self.0.entry(flow.0) {
            Entry::Vacant(entry) => {
                entry.insert(PartlyMet { left: count - 1, notified_at });
                None
            }
            Entry::Occupied(mut entry) => {
                let partly_met = entry.get_mut();
                partly_met.left -= 1;
                partly_met.notified_at = partly_met.notified_at.max(notified_at);
                let (left, last) = (partly_met.left, partly_met.notified_at);
                (left == 0).then(|| {
                    entry.remove();
                    (last + after).max(earliest)
                })
            }
        }
    }
}
