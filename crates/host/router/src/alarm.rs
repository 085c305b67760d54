//! Wake-up times of the router: not at every event, but early enough for the next delivery to a host. Most events are
//! segments that pass from one link to the next. They can be handled late, all at once, as long as they are handled
//! before their consequences are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fabric::{LinkId, Network, NodeKind};
use units::{Bytes, Span, Time};

#[derive(Debug)]
pub(crate) struct Alarm {
    /// Times at which to wake, some of them past.
    times: BinaryHeap<Reverse<Time>>,
    /// By link: time of a packet from the link's far end to the nearest host.
    lookahead: Vec<LinkLookahead>,
    /// By link: the last time set for its segments.
    set_at: Vec<Time>,
    coalesce: Span,
}

impl Alarm {
    pub(crate) fn new(network: &Network, coalesce: Span) -> Self {
        let links = network.links().len();
        Self { times: BinaryHeap::new(), lookahead: lookahead(network), set_at: vec![Time::ZERO; links], coalesce }
    }

    /// The last segment of a packet arrives at the far end of a link. It is delivered as soon as it arrives at its host.
    pub(crate) fn last_arrival(&mut self, link: usize, at: Time, size: u16) {
        self.set(link, at + self.lookahead[link].for_size(size));
    }

    /// Another segment of a packet arrives at the far end of a link. Its host holds it for a while.
    pub(crate) fn inner_arrival(&mut self, link: usize, at: Time, size: u16) {
        if self.set_at[link] < at || self.coalesce.is_zero() {
            self.set(link, at + self.lookahead[link].for_size(size) + self.coalesce);
        }
    }

    /// Sets a wake-up for the segment that a port takes into service next.
    pub(crate) fn service(&mut self, link: usize, at: Time, delay: Span) {
        self.set(link, at + delay + self.lookahead[link].delay);
    }

    /// Sets a wake-up for the segments that a host holds.
    pub(crate) fn flush(&mut self, at: Time) {
        debug_assert!(at.is_set(), "a flush at no time");
        self.times.push(Reverse(at));
    }

    /// Sets a wake-up for the next decision of a node with a shared buffer, or for a PFC frame. `links` are those that may
    /// carry its consequences to a host; none if these are due at once.
    pub(crate) fn decision(&mut self, at: Time, network: &Network, links: std::ops::Range<u32>) {
        let lead = |link: u32| network.port(LinkId(link)).delay() + self.lookahead[link as usize].delay;
        self.times.push(Reverse(at + links.map(lead).min().unwrap_or(Span::ZERO)));
    }

    /// The next time after `now`, by which everything is done.
    pub(crate) fn next_at(&mut self, now: Time) -> Option<Time> {
        while self.times.peek().is_some_and(|time| time.0 <= now) {
            self.times.pop();
        }
        self.times.peek().map(|time| time.0)
    }

    fn set(&mut self, link: usize, at: Time) {
        debug_assert!(at.is_set(), "a wake-up of link {link} at no time");
        if self.set_at[link] != at {
            self.set_at[link] = self.set_at[link].max(at);
            self.times.push(Reverse(at));
        }
    }
}

/// Time of a packet over some links, with empty queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LinkLookahead {
    delay: Span,
    /// Rounded up: to wake a nanosecond after something is due is better than one before.
    per_byte: Span,
}

impl LinkLookahead {
    const NONE: Self = Self { delay: Span::ZERO, per_byte: Span::ZERO };

    fn for_size(self, size: u16) -> Span {
        self.delay + self.per_byte.times(size.into())
    }

    /// Over one more link.
    fn over(self, network: &Network, link: usize) -> Self {
        let params = network.port(LinkId(link as u32));
        // Not that of a port that counts in ticks: it only ever is earlier.
        let rate = params.config().rate;
        Self {
            delay: self.delay + params.delay(),
            per_byte: self.per_byte
                + Span::from_unsigned_ps(rate.tx_time(Bytes::new(1 << 10)).unsigned_ps().div_ceil(1 << 10)),
        }
    }
}

/// Returns, by link, the time of a packet from the link's far end to the host that a packet of usual size reaches
/// first.
fn lookahead(network: &Network) -> Vec<LinkLookahead> {
    let is_host = |node: &fabric::Node| matches!(node.kind, NodeKind::Host(_));
    let mut of_node: Vec<_> = network.nodes().iter().map(|it| is_host(it).then_some(LinkLookahead::NONE)).collect();
    let usual = |it: Option<LinkLookahead>| it.map_or(Span::MAX, |it| it.for_size(1500));
    loop {
        let mut settled = true;
        for (link, ends) in network.links().iter().enumerate() {
            let over_link = of_node[ends.to.index()].map(|lookahead| lookahead.over(network, link));
            if usual(over_link) < usual(of_node[ends.from.index()]) {
                of_node[ends.from.index()] = over_link;
                settled = false;
            }
        }
        if settled {
            break;
        }
    }
    network.links().iter().map(|link| of_node[link.to.index()].unwrap_or(LinkLookahead::NONE)).collect()
}
