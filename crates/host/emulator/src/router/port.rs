//! A port of the network with its counters: `fabric`'s, as the simulator has it.

use experiment::{ByKind, LinkOutcome};
use fabric::{Arrival, Item, Losses, Passage, PlainPort, PortParams, QueuedPort};
use units::{Bytes, Span, Time};

/// One packet on the wire, on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// Its packet.
    pub(crate) frame: u32,
    /// Its index among the packet's segments.
    pub(crate) index: u16,
    /// Arrival time at the current node.
    pub(crate) arrived: Time,
    /// Identity, unique among segments.
    pub(crate) identity: u64,
    /// On the wire.
    pub(crate) size: u16,
    pub(crate) ecn_capable: bool,
    pub(crate) control: bool,
    /// True if a port has marked it.
    pub(crate) marked: bool,
}

impl Item for Segment {
    #[inline]
    fn arrival(&self) -> Arrival {
        Arrival {
            now: self.arrived,
            size: self.size.into(),
            ecn_capable: self.ecn_capable,
            control: self.control,
            credit: false,
            expendable: false,
            identity: self.identity,
        }
    }
}

#[derive(Debug)]
enum Queue {
    Plain(PlainPort),
    Lazy(QueuedPort<Segment>),
}

/// An output port and the link behind it.
#[derive(Debug)]
pub(crate) struct Port {
    queue: Queue,
    salt: u64,
    packets: u64,
    bytes: u64,
    drops: u64,
    losses: Losses,
    lost: ByKind,
    /// Lost because the link was down.
    cut: u64,
    marks: u64,
    max_backlog: Span,
}

/// A segment that leaves a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    /// Marked if this port or one before has marked it.
    pub(crate) segment: Segment,
    pub(crate) passage: Passage,
    /// True if the link loses it.
    pub(crate) lost: bool,
}

impl Port {
    pub(crate) fn new(plain: bool, salt: u64) -> Self {
        let queue = if plain { Queue::Plain(PlainPort::default()) } else { Queue::Lazy(QueuedPort::default()) };
        Self {
            queue,
            salt,
            packets: 0,
            bytes: 0,
            drops: 0,
            losses: Losses::default(),
            lost: ByKind::default(),
            cut: 0,
            marks: 0,
            max_backlog: Span::ZERO,
        }
    }

    /// A segment arrives. What leaves goes to `left`, which is empty, this one or others; returns
    /// whether there was room.
    pub(crate) fn enqueue(&mut self, params: &PortParams, segment: Segment, left: &mut Vec<Left>) -> bool {
        let arrival = segment.arrival();
        let held = match &mut self.queue {
            Queue::Plain(port) => port.enqueue(params, self.salt, &arrival).map(|passage| {
                left.push(Left { segment, passage, lost: false });
                port.idle_at().since(arrival.now)
            }),
            Queue::Lazy(port) => {
                let refused = port.enqueue(params, self.salt, &arrival, segment, |segment, passage| {
                    left.push(Left { segment, passage, lost: false });
                });
                refused.is_none().then(|| port.held(arrival.now))
            }
        };
        self.count(params, left);
        let Some(held) = held else {
            self.drops += 1;
            self.lost_one(arrival.control);
            return false;
        };
        self.max_backlog = self.max_backlog.max(held);
        true
    }

    /// Replays the service that begins before `until`. What leaves goes to `left`, which is empty.
    pub(crate) fn advance(&mut self, params: &PortParams, until: Time, left: &mut Vec<Left>) {
        if let Queue::Lazy(port) = &mut self.queue {
            port.advance(params, self.salt, until, |segment, passage| {
                left.push(Left { segment, passage, lost: false });
            });
        }
        self.count(params, left);
    }

    /// The link is down and loses a segment that left.
    pub(crate) fn lose(&mut self, segment: &Segment) {
        self.cut += 1;
        self.lost_one(segment.control);
    }

    /// Counts a segment that was lost: TCP without payload is an acknowledgement.
    fn lost_one(&mut self, control: bool) {
        let kind = if control { &mut self.lost.acks } else { &mut self.lost.data };
        *kind += 1;
    }

    /// Counts what leaves, and lets chance take its part.
    fn count(&mut self, params: &PortParams, all: &mut [Left]) {
        for left in all {
            self.packets += 1;
            self.bytes += u64::from(left.segment.size);
            self.marks += u64::from(left.passage.marked);
            left.segment.marked |= left.passage.marked;
            left.lost = self.losses.loses(params, self.salt, &left.segment.arrival());
            if left.lost {
                self.lost_one(left.segment.control);
            }
        }
    }

    /// Returns the next service time of waiting segments: just after the port falls idle, when all arrivals of that
    /// time are in. None if no segment waits.
    pub(crate) fn serves_at(&self) -> Option<Time> {
        match &self.queue {
            Queue::Plain(_) => None,
            Queue::Lazy(port) => port.has_waiting().then(|| port.idle_at().just_after()),
        }
    }

    /// Returns the time at which the port falls idle, apart from waiting segments.
    pub(crate) fn idle_at(&self) -> Time {
        match &self.queue {
            Queue::Plain(port) => port.idle_at(),
            Queue::Lazy(port) => port.idle_at(),
        }
    }

    /// Bytes in the real and in the phantom queue; service has been replayed to `now`.
    pub(crate) fn queues(&self, params: &PortParams, now: Time) -> (Bytes, Bytes) {
        match &self.queue {
            Queue::Plain(port) => (port.queue(params, now), port.phantom().occupancy(params, now)),
            Queue::Lazy(port) => (port.queue(params, now), port.phantom().occupancy(params, now)),
        }
    }

    pub(crate) fn outcome(&self, params: &PortParams) -> LinkOutcome {
        LinkOutcome {
            packets: self.packets,
            bytes: Bytes::new(self.bytes),
            drops: self.drops,
            losses: self.losses.count() + self.cut,
            lost: self.lost,
            marks: self.marks,
            max_queue: params.bytes_in(self.max_backlog),
            ..LinkOutcome::default()
        }
    }
}
