//! A port of the network, as in the simulator (`fabric`), and the packets that leave it.

use experiment::{ByKind, LinkOutcome};
use std::sync::Arc;

use fabric::{
    Arrival, DropCause, Impairments, Occupancy, Port, PortExtras, PortMode, PortOutlet, PortParams, PortTransit,
    QueueItem,
};
use units::Time;

/// One packet on the wire, on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PortSegment {
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
    pub(crate) credit: bool,
    pub(crate) expendable: bool,
    /// True if a port has marked it.
    pub(crate) marked: bool,
    /// Random bits that select the corrupted bit, if a link has corrupted it.
    pub(crate) corrupted: Option<u32>,
    /// Its connection, by which a port may queue it.
    pub(crate) flow: u32,
}

impl QueueItem for PortSegment {
    #[inline]
    fn arrival(&self) -> Arrival {
        Arrival {
            now: self.arrived,
            size: self.size.into(),
            ecn_capable: self.ecn_capable,
            control: self.control,
            credit: self.credit,
            expendable: self.expendable,
            identity: self.identity,
        }
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn is_corrupted(&self) -> bool {
        self.corrupted.is_some()
    }

    fn corrupted(self, bits: u64) -> Self {
        Self { corrupted: Some((bits >> 32) as u32), ..self }
    }
}

/// An output port and its link's losses.
#[derive(Debug)]
pub(crate) struct OutputPort {
    port: Port,
    extras: PortExtras<PortSegment>,
    salt: u64,
    lost: ByKind,
    /// Lost because the link was down.
    lost_link_down: u64,
}

/// A segment that leaves a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentOutcome {
    /// On the link. Marked if this port or one before has marked it.
    Sent { segment: PortSegment, passage: PortTransit },
    /// Sent, and lost by the link.
    Lost { segment: PortSegment, passage: PortTransit },
    /// Dropped by the port.
    Dropped { segment: PortSegment },
    /// The link adds a copy, which has an outcome of its own.
    Copied { segment: PortSegment },
}

/// Collects the segments that leave a port.
struct DepartureCollector<'a> {
    departures: &'a mut Vec<SegmentOutcome>,
    lost: &'a mut ByKind,
}

impl PortOutlet<PortSegment> for DepartureCollector<'_> {
    fn send(&mut self, mut segment: PortSegment, passage: PortTransit) {
        segment.marked |= passage.marked;
        self.departures.push(SegmentOutcome::Sent { segment, passage });
    }

    fn discard(&mut self, segment: PortSegment, _: DropCause) {
        count_lost(self.lost, &segment);
        self.departures.push(SegmentOutcome::Dropped { segment });
    }

    fn discard_credit(&mut self, segment: PortSegment) {
        self.departures.push(SegmentOutcome::Dropped { segment });
    }

    fn lose(&mut self, mut segment: PortSegment, passage: PortTransit) {
        segment.marked |= passage.marked;
        count_lost(self.lost, &segment);
        self.departures.push(SegmentOutcome::Lost { segment, passage });
    }

    fn corrupt(&mut self, segment: &PortSegment) {
        count_lost(self.lost, segment);
    }

    fn duplicate(&mut self, segment: &PortSegment) {
        self.departures.push(SegmentOutcome::Copied { segment: *segment });
    }
}

/// Counts a segment that was lost: TCP without payload is an acknowledgement.
fn count_lost(lost: &mut ByKind, segment: &PortSegment) {
    let kind = match segment {
        PortSegment { credit: true, .. } => &mut lost.credits,
        PortSegment { control: true, .. } => &mut lost.acks,
        _ => &mut lost.data,
    };
    *kind += 1;
}

impl OutputPort {
    /// Returns an idle port of a switch, with the impairments of its link.
    pub(crate) fn of_switch(params: &PortParams, impairments: Option<&Arc<Impairments>>, salt: u64) -> Self {
        Self::new(PortExtras::of_switch(params.config(), impairments), salt)
    }

    /// Begins the schedule of rates, if the port has one; before, it serves at its constant rate.
    pub(crate) fn begin_schedule(&mut self, start: Time) {
        self.extras.begin_schedule(start);
    }

    /// Returns an idle NIC.
    pub(crate) fn of_nic(salt: u64) -> Self {
        Self::new(PortExtras::of_nic(), salt)
    }

    /// All ports here are served with their extras: sockets cost far more than a branch saves. The router looks settings
    /// up by link.
    fn new(extras: PortExtras<PortSegment>, salt: u64) -> Self {
        Self { port: Port::new(0, PortMode::Extended), extras, salt, lost: ByKind::default(), lost_link_down: 0 }
    }

    /// Queues a segment that arrives. Departing segments are added to `departures`: this one or others.
    pub(crate) fn enqueue(&mut self, params: &PortParams, segment: PortSegment, departures: &mut Vec<SegmentOutcome>) {
        let mut outlet = DepartureCollector { departures, lost: &mut self.lost };
        self.extras.enqueue(&mut self.port, params, self.salt, segment, &mut outlet);
    }

    /// Replays the service that begins before `until`. Departing packets are added to `departures`.
    pub(crate) fn advance(&mut self, params: &PortParams, until: Time, departures: &mut Vec<SegmentOutcome>) {
        let mut outlet = DepartureCollector { departures, lost: &mut self.lost };
        self.extras.advance(&mut self.port, params, self.salt, until, &mut outlet);
    }

    /// Counts a packet that a node with a shared buffer takes into service at this port.
    pub(crate) fn count(&mut self, size: u32, passage: PortTransit) {
        debug_assert!(size > 0, "an empty packet is served");
        self.port.count(size, passage);
    }

    /// Counts a packet for this port that found no room in a shared buffer.
    pub(crate) fn count_drop(&mut self) {
        self.port.count_drop();
    }

    /// Counts a segment that was lost, by kind.
    pub(crate) fn count_lost(&mut self, segment: &PortSegment) {
        count_lost(&mut self.lost, segment);
    }

    /// Returns the seed of the port's random decisions.
    pub(crate) fn salt(&self) -> u64 {
        self.salt
    }

    /// Counts a segment lost because its link is down.
    pub(crate) fn count_link_down(&mut self, segment: &PortSegment) {
        self.lost_link_down += 1;
        count_lost(&mut self.lost, segment);
    }

    /// Returns the next time at which waiting segments are served or held ones are released: just after the port falls
    /// idle, when all arrivals of that time are in. None if no segment waits or is held.
    pub(crate) fn serves_at(&self, params: &PortParams) -> Option<Time> {
        self.extras.has_waiting().then(|| self.extras.next_service(params).just_after())
    }

    /// Returns the time at which the port falls idle, apart from waiting segments.
    pub(crate) fn idle_at(&self) -> Time {
        self.extras.idle_at(&self.port)
    }

    /// Bytes in the real and in the phantom queue; service has been replayed to `now`.
    pub(crate) fn occupancy(&self, params: &PortParams, now: Time) -> Occupancy {
        self.extras.occupancy(&self.port, params, now)
    }

    pub(crate) fn outcome(&self, params: &PortParams) -> LinkOutcome {
        LinkOutcome {
            packets: self.port.packets(),
            bytes: self.port.bytes(),
            drops: self.port.drops(),
            losses: self.extras.losses() + self.extras.impaired_packets().corrupted + self.lost_link_down,
            impaired: self.extras.impaired_packets(),
            lost: self.lost,
            marks: self.port.marks(),
            max_queue: self.port.max_queue(params),
            credit_drops: self.extras.credit_drops,
            unscheduled_drops: self.extras.unscheduled_drops,
            trims: self.extras.trims,
            ..LinkOutcome::default()
        }
    }
}
