//! When the router has to wake: not at every event, but early enough for what hosts are to get next. Most events are
//! segments passing from one link to the next, and can be done late, all at once, as long as they are done before
//! what comes of them is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fabric::{LinkId, Network, NodeKind};

#[derive(Debug)]
pub(crate) struct Alarm {
    /// Times at which to wake, some of them past.
    times: BinaryHeap<Reverse<u64>>,
    /// Of each link: how long after its far end nothing can reach a host, by delays alone.
    ahead_ps: Vec<u64>,
    /// Of each link: the last time set for what is on it.
    set_ps: Vec<u64>,
    coalesce_ps: u64,
}

impl Alarm {
    pub(crate) fn new(network: &Network, coalesce_ps: u64) -> Self {
        let links = network.links().len();
        Self { times: BinaryHeap::new(), ahead_ps: lookahead(network), set_ps: vec![0; links], coalesce_ps }
    }

    /// A segment arrives at the far end of a link. Only the last one of a packet is handed over as soon as it
    /// arrives at its host; the others are held there for a while.
    pub(crate) fn arrival(&mut self, link: usize, at_ps: u64, last: bool) {
        if last || self.coalesce_ps == 0 {
            self.set(link, at_ps + self.ahead_ps[link]);
        } else if self.set_ps[link] < at_ps {
            self.set(link, at_ps + self.coalesce_ps);
        }
    }

    /// A port takes the next of what waits into service.
    pub(crate) fn service(&mut self, link: usize, at_ps: u64, delay_ps: u64) {
        self.set(link, at_ps + delay_ps + self.ahead_ps[link]);
    }

    /// What a host holds is due.
    pub(crate) fn flush(&mut self, at_ps: u64) {
        self.times.push(Reverse(at_ps));
    }

    /// The next time after `now_ps`, by which everything is done.
    pub(crate) fn next_ps(&mut self, now_ps: u64) -> Option<u64> {
        while self.times.peek().is_some_and(|time| time.0 <= now_ps) {
            self.times.pop();
        }
        self.times.peek().map(|time| time.0)
    }

    fn set(&mut self, link: usize, at_ps: u64) {
        if self.set_ps[link] != at_ps {
            self.set_ps[link] = self.set_ps[link].max(at_ps);
            self.times.push(Reverse(at_ps));
        }
    }
}

/// Of each link, the least sum of delays from its far end to a host.
fn lookahead(network: &Network) -> Vec<u64> {
    let mut of_node: Vec<u64> =
        network.nodes().iter().map(|node| if matches!(node.kind, NodeKind::Host(_)) { 0 } else { u64::MAX }).collect();
    loop {
        let mut settled = true;
        for (link, it) in network.links().iter().enumerate() {
            let over_link = of_node[it.to.index()].saturating_add(network.port(LinkId(link as u32)).delay_ps());
            if over_link < of_node[it.from.index()] {
                of_node[it.from.index()] = over_link;
                settled = false;
            }
        }
        if settled {
            break;
        }
    }
    network.links().iter().map(|link| of_node[link.to.index()]).collect()
}
