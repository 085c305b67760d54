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

/// The flows that wait for each cause.
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
            for cause in setup.causes_of(spec) {
                let FlowId(flow) = cause.flow();
                debug_assert!(
                    (flow as usize) < setup.flows.len(),
                    "flow {follower} waits for {flow}, which is not there"
                );
                let list = match cause {
                    Dependency::Complete(_) => &mut complete,
                    Dependency::Received(_) => &mut received,
                    Dependency::Begun(_) => {
                        debug_assert_eq!(setup.flows[flow as usize].src, spec.src, "only its sender knows");
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

    /// Returns the flows that depend on a cause, in the order of their numbers; one twice if it names the cause twice.
    #[inline]
    pub fn followers(&self, cause: Dependency) -> impl Iterator<Item = FlowId> + '_ {
        let list = match cause {
            Dependency::Complete(_) => &self.complete,
            Dependency::Received(_) => &self.received,
            Dependency::Begun(_) => &self.begun,
        };
        list.of(cause.flow())
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
    pub fn causes_of(&self, flow: &FlowSpec) -> &[Dependency] {
        match flow.start {
            Start::At(_) => &[],
            Start::Waits { causes, .. } => self.causes.of(causes),
        }
    }

    /// The host at which a cause happens.
    pub fn happens_at(&self, cause: Dependency) -> HostId {
        let flow = &self.flows[cause.flow().0 as usize];
        match cause {
            Dependency::Complete(_) | Dependency::Begun(_) => flow.src,
            Dependency::Received(_) => flow.dst,
        }
    }

    /// Returns the time from a dependency's event until a flow's sender is notified and has computed on it alone. The
    /// notice takes no time on the host of the event, otherwise the one-way delay of an acknowledgement from there.
    pub fn news_takes(&self, cause: Dependency, flow: &FlowSpec) -> Span {
        let lag = match flow.start {
            Start::At(_) => Span::ZERO,
            Start::Waits { causes, .. } => self.causes.lag(causes, cause),
        };
        self.one_way(self.happens_at(cause), flow.src) + lag
    }
}

/// Flows with some dependencies met, and others not.
#[derive(Clone, Default, Debug)]
pub struct Pending(BTreeMap<u32, Partly>);

#[derive(Clone, Copy, Debug)]
struct Partly {
    /// Dependencies that are not met, at least 1.
    left: u32,
    /// The time at which the sender was notified of the last one so far.
    heard: Time,
}

impl Pending {
    /// Records that one dependency of a flow is met, and that its sender is notified at `heard`. Returns the start of the
    /// flow, if that was its last dependency. The order of calls does not matter.
    pub fn happened(&mut self, flow: FlowId, heard: Time, setup: &Setup) -> Option<Time> {
        let spec = &setup.flows[flow.0 as usize];
        let Start::Waits { causes, after } = spec.start else {
            debug_assert!(false, "{flow:?} waits for nothing");
            return None;
        };
        let earliest = setup.causes.earliest(causes);
        let causes = setup.causes.of(causes).len() as u32;
        if causes == 1 {
            return Some((heard + after).max(earliest));
        }
        match self.0.entry(flow.0) {
            Entry::Vacant(entry) => {
                entry.insert(Partly { left: causes - 1, heard });
                None
            }
            Entry::Occupied(mut entry) => {
                let partly = entry.get_mut();
                partly.left -= 1;
                partly.heard = partly.heard.max(heard);
                let (left, last) = (partly.left, partly.heard);
                (left == 0).then(|| {
                    entry.remove();
                    (last + after).max(earliest)
                })
            }
        }
    }
}
