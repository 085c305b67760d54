//! Event order at equal timestamps, as in a simulator with one event queue that runs events of the same time in the
//! order in which they were scheduled ([`TieBreak::Scheduled`](experiment::TieBreak)).
//!
//! Such a simulator schedules a packet's arrival when its transmission by the previous node begins. If two transmissions
//! begin at the same time, the one that follows from the event scheduled first is scheduled first. That event is the end of
//! the previous packet on the link, scheduled when that packet began; the arrival of a packet; or a host's timer for a
//! paced packet, scheduled when the host last found nothing to send. Each packet carries the time at which the event that
//! it follows from was scheduled, and the time at which the event that scheduled it was scheduled itself ([`ScheduleKey`]). If
//! these are the same, too, the order is that of the last packets on the same links.
//!
//! The order looks back only two steps, and only at links' packets and hosts' alarms: a packet that was held back by a
//! pause, or released by a law's timer, counts as following from the event that comes next at its switch, or from the
//! beginning.

use std::collections::BTreeMap;

use experiment::Setup;
use fabric::{LinkId, PortParams};
use units::Time;

use crate::packet::{Packet, TelemetrySlot};

/// The time at which an event was scheduled, and the time at which the scheduling event was itself scheduled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct ScheduleKey {
    pub(crate) at: Time,
    pub(crate) before: Time,
}

impl ScheduleKey {
    /// Before all else.
    pub(crate) const BEGINNING: Self = Self { at: Time::ZERO, before: Time::ZERO };

    /// Returns the origin of an event that is scheduled at `at`, by an event with this origin.
    fn then(self, at: Time) -> Self {
        Self { at, before: self.at }
    }
}

/// The last packet on a link: the start of its transmission, the origin of the event that it follows from, and the end
/// of its transmission.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LinkOccupancy {
    at: Time,
    since: ScheduleKey,
    ends: Time,
    any: bool,
}

impl LinkOccupancy {
    /// Begins a packet's transmission because of an `event`, or because the one before it has left. Returns the origin
    /// of the event that it follows from.
    fn next(&mut self, at: Time, ends: Time, event: ScheduleKey) -> ScheduleKey {
        let since = self.end(at).unwrap_or(event);
        *self = Self { at, since, ends, any: true };
        since
    }

    /// Returns the origin of the end of the last packet, if that is at `now`.
    fn end(&self, now: Time) -> Option<ScheduleKey> {
        (self.any && self.ends == now).then(|| self.since.then(self.at))
    }
}

/// A link as its far end sees it.
struct Input {
    params: PortParams,
    /// Packets that have arrived, as of the last arrival.
    last: u64,
}

impl Input {
    fn of(link: LinkId, setup: &Setup) -> Self {
        Self { params: setup.network.port(link).clone(), last: 0 }
    }

    /// Returns the time at which an arriving packet began to leave the other end.
    fn began(&self, packet: &Packet) -> Time {
        packet.time.saturating_sub(self.params.delay() + self.params.service(packet.size.into()))
    }
}

/// A packet among those that arrive at a switch at one time.
pub(crate) struct Arriving {
    pub(crate) input: usize,
    pub(crate) packet: Packet,
    pub(crate) report: TelemetrySlot,
    /// The start of its transmission, the origin of its event, and the arrival order of the packet before it.
    pub(crate) order: (Time, ScheduleKey, u64),
}

/// State of a switch that orders simultaneous arrivals.
pub(crate) struct SwitchTies {
    inputs: Vec<Input>,
    arrived: u64,
    /// By port.
    began: Vec<LinkOccupancy>,
    /// The origin of the current event.
    event: ScheduleKey,
    /// For those that arrive at one time; empty between.
    pub(crate) tied: Vec<Arriving>,
}

impl SwitchTies {
    /// Creates the state of a switch with these input links, and `ports` output ports.
    pub(crate) fn new(inputs: impl Iterator<Item = LinkId>, ports: usize, setup: &Setup) -> Self {
        Self {
            inputs: inputs.map(|link| Input::of(link, setup)).collect(),
            arrived: 0,
            began: vec![LinkOccupancy::default(); ports],
            event: ScheduleKey::BEGINNING,
            tied: Vec::new(),
        }
    }

    /// A packet that arrives by the input of this number, and its sort key.
    pub(crate) fn arriving(&self, input: usize, packet: Packet, report: TelemetrySlot, since: ScheduleKey) -> Arriving {
        let link = &self.inputs[input];
        let order = (link.began(&packet), since, link.last);
        Arriving { input, packet, report, order }
    }

    /// Records that a packet is handled now.
    pub(crate) fn take(&mut self, arriving: &Arriving) {
        self.arrived += 1;
        self.inputs[arriving.input].last = self.arrived;
        self.event = arriving.order.1.then(arriving.order.0);
    }

    /// Records a packet that leaves by a port. Returns the origin of its event.
    pub(crate) fn leaves(&mut self, port: usize, begins: Time, ends: Time) -> ScheduleKey {
        self.began[port].next(begins, ends, self.event)
    }
}

/// State of a host that orders simultaneous events.
pub(crate) struct HostTies {
    input: Input,
    /// The last packet of its NIC.
    began: LinkOccupancy,
    /// Set if the NIC has looked for a packet since the last one left.
    has_looked: bool,
    /// The alarm: the time at which it fires.
    alarm: Option<(Time, ScheduleKey)>,
    /// The time at which each flow with data left to send may send next by its pace.
    paced: BTreeMap<u32, Time>,
    /// The arrival that was handled last, and its time.
    arrival: (Time, ScheduleKey),
    /// The flow that sent last, until that is recorded.
    pub(crate) sent: Option<u32>,
    /// The origin of the current event.
    event: ScheduleKey,
}

impl HostTies {
    /// Creates the state of a host with this input link.
    pub(crate) fn new(input: LinkId, setup: &Setup) -> Self {
        Self {
            input: Input::of(input, setup),
            began: LinkOccupancy::default(),
            has_looked: true,
            alarm: None,
            paced: BTreeMap::new(),
            arrival: (Time::NEVER, ScheduleKey::BEGINNING),
            sent: None,
            event: ScheduleKey::BEGINNING,
        }
    }

    /// Records that the idle NIC found nothing to send at `at`, in an event with this origin.
    fn look(&mut self, at: Time, event: ScheduleKey) {
        let next = self.paced.values().copied().min();
        if self.alarm.is_none()
            && let Some(next) = next.filter(|&next| next > at)
        {
            self.alarm = Some((next, event.then(at)));
        }
    }

    /// Marks the time before `now` as past, if no packet was sent in it.
    pub(crate) fn advance(&mut self, now: Time) {
        loop {
            let idle = if self.has_looked { Time::NEVER } else { self.began.ends };
            let rings = self.alarm.map_or(Time::NEVER, |(rings, _)| rings);
            if idle.min(rings) >= now {
                return;
            }
            if idle <= rings {
                self.has_looked = true;
                self.look(idle, self.began.since.then(self.began.at));
            } else if let Some((rings, since)) = self.alarm.take()
                && self.has_looked
            {
                self.look(rings, since);
            }
        }
    }

    /// Returns whether the host's own event at the time of an arrival comes first. The start of a flow and the end of a
    /// law's timer always do, and are not considered here.
    pub(crate) fn goes_first(&self, packet: &Packet, since: ScheduleKey) -> bool {
        self.own(packet.time).is_some_and(|own| own < since.then(self.input.began(packet)))
    }

    /// Returns the origin of the host's own event at `now`.
    fn own(&self, now: Time) -> Option<ScheduleKey> {
        let alarm = || self.alarm.filter(|&(rings, _)| rings == now).map(|(_, since)| since);
        self.began.end(now).or_else(alarm)
    }

    /// Records the arrival of a packet.
    pub(crate) fn arrives(&mut self, packet: &Packet, since: ScheduleKey) {
        self.event = since.then(self.input.began(packet));
        self.arrival = (packet.time, self.event);
    }

    /// Records the host's own event.
    pub(crate) fn acts(&mut self, now: Time) {
        // An arrival at this time that came first has released the packets that may leave, unless the NIC was still
        // busy.
        let arrival = (self.arrival.0 == now).then_some(self.arrival.1);
        let known = self.began.end(now).or(arrival).or_else(|| self.own(now));
        self.event = known.unwrap_or(ScheduleKey::BEGINNING);
        self.alarm = self.alarm.filter(|&(rings, _)| rings != now);
    }

    /// Records a packet that is handed to the NIC, to leave from `begins` to `ends`. Returns the origin of its event.
    pub(crate) fn leaves(&mut self, begins: Time, ends: Time) -> ScheduleKey {
        self.has_looked = false;
        self.began.next(begins, ends, self.event)
    }

    /// Sets the time at which a flow may send next by its pace; none if it has nothing left.
    pub(crate) fn pace(&mut self, flow: u32, next: Option<Time>) {
        match next {
            Some(next) => self.paced.insert(flow, next),
            None => self.paced.remove(&flow),
        };
    }

    /// Sets the time after an acknowledgement, which may have changed the flow's rate: that brings the alarm forward,
    /// and never delays it.
    pub(crate) fn repace(&mut self, flow: u32, next: Option<Time>, now: Time) {
        let before = self.paced.get(&flow).copied();
        self.pace(flow, next);
        if let (Some(next), Some((rings, _))) = (next, self.alarm)
            && before != Some(next)
            && next < rings
        {
            self.alarm = Some((next.max(now), self.event.then(now)));
        }
    }

    /// Ends an event after which the NIC is idle and finds nothing to send.
    pub(crate) fn falls_idle(&mut self, now: Time) {
        if self.has_looked || self.began.ends <= now {
            self.has_looked = true;
            self.look(now, self.began.end(now).unwrap_or(self.event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::packet::ForwardingHeader;
    use fabric::PortConfig;
    use fabric::topology::{SingleSwitch, single_switch};
    use fabric::{NodeKind, Routes};
    use units::{Rate, Span};

    /// Three hosts at 8 Gb/s, a byte a nanosecond, and 1 us.
    fn setup() -> Setup {
        let port = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
        let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 3] }).unwrap();
        Setup {
            routes: Routes::new(&network).unwrap(),
            network,
            symmetric: false,
            flows: Vec::new(),
            host: experiment::HostConfig::default(),
            dependencies: experiment::Dependencies::default(),
            modules: Vec::new(),
            series: experiment::SeriesConfig::default(),
            seed: 1,
            stop: Time::from_ms(1),
            intra_rtt: Span::from_us(5),
            ties: experiment::TieBreak::Scheduled,
        }
    }

    fn ns(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    fn packet(time_ns: u64, size: u16) -> Packet {
        let header = ForwardingHeader { time: ns(time_ns), size, ..ForwardingHeader::default() };
        Packet::new(header, Body::Data { seq: 0, attempt: 1, credit: None })
    }

    fn since(at_ns: u64, before_ns: u64) -> ScheduleKey {
        ScheduleKey { at: ns(at_ns), before: ns(before_ns) }
    }

    #[test]
    fn ties_go_by_transmission_start_then_event_then_previous_order() {
        let setup = setup();
        let switch = setup.network.nodes().iter().position(|node| node.kind == NodeKind::Switch).unwrap();
        let to_switch = |link: &LinkId| setup.network.links()[link.index()].to.index() == switch;
        let inputs = (0..setup.network.links().len() as u32).map(LinkId).filter(to_switch);
        let mut ties = SwitchTies::new(inputs, 3, &setup);
        let mut order = |packets: [(u16, ScheduleKey); 3]| {
            let mut tied: Vec<Arriving> = (0..3)
                .map(|input| {
                    ties.arriving(input, packet(9_000, packets[input].0), TelemetrySlot::NONE, packets[input].1)
                })
                .collect();
            tied.sort_by_key(|it| it.order);
            for arriving in &tied {
                ties.take(arriving);
            }
            tied.iter().map(|it| it.input).collect::<Vec<_>>()
        };
        // The longest one began first.
        assert_eq!(order([(1_000, since(1, 0)), (1_000, since(1, 0)), (1_500, since(9, 9))]), [2, 0, 1]);
        assert_eq!(order([(1_000, since(5, 1)), (1_000, since(4, 2)), (1_000, since(4, 1))]), [2, 1, 0]);
        // All the same: as the last time.
        assert_eq!(order([(1_000, since(5, 1)); 3]), [2, 1, 0]);
    }

    #[test]
    fn host_packets_inherit_their_schedule_keys() {
        let setup = setup();
        let mut host =
            HostTies::new(setup.network.links()[setup.network.uplink(fabric::HostId(0)).index()].reverse, &setup);
        // A flow starts, and its first packet leaves: from the beginning. It is gone at 1000 ns, the next may leave at 3000.
        host.advance(Time::ZERO);
        host.acts(Time::ZERO);
        assert_eq!(host.leaves(Time::ZERO, ns(1_000)), since(0, 0));
        host.pace(7, Some(ns(3_000)));
        // The alarm was set when the NIC became idle, in an event scheduled at 0.
        host.advance(ns(3_000));
        assert_eq!(host.own(ns(3_000)), Some(since(1_000, 0)));
        // An acknowledgement of 64 B that comes at the same time left the switch at 1936 ns: the alarm is first.
        assert!(host.goes_first(&packet(3_000, 64), since(0, 0)));
        host.acts(ns(3_000));
        assert_eq!(host.leaves(ns(3_000), ns(4_000)), since(1_000, 0));
        // The next packet follows without a gap: from the end of this one.
        host.acts(ns(4_000));
        assert_eq!(host.leaves(ns(4_000), ns(5_000)), since(3_000, 1_000));
        host.pace(7, Some(ns(9_000)));
        // At 6000 ns an acknowledgement brings the alarm forward: it was set then, in an event scheduled at 4936.
        host.advance(ns(6_000));
        host.arrives(&packet(6_000, 64), since(4_000, 0));
        host.repace(7, Some(ns(8_000)), ns(6_000));
        host.falls_idle(ns(6_000));
        host.advance(ns(8_000));
        assert_eq!(host.own(ns(8_000)), Some(since(6_000, 4_936)));
        // A later time does not put it off: it rings for nothing, and is set again.
        host.arrives(&packet(8_000, 64), since(6_000, 0));
        host.repace(7, Some(ns(8_500)), ns(8_000));
        host.falls_idle(ns(8_000));
        host.advance(ns(8_500));
        assert_eq!(host.own(ns(8_500)), Some(since(8_000, 6_000)));
    }
}
