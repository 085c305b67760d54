//! The critical path of a flow: walked backwards from its completion, from each event to the event that it waited for.

use std::collections::BTreeMap;

use experiment::{
    DropCause, FlowLog, PacketArrival, PacketDeparture, PacketId, PacketKind, PacketLoss, SenderEvent, SenderView,
    SenderWait, Setup,
};
use fabric::LinkId;
use units::{Span, Time};

/// A stretch of a flow's critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// Its beginning.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// Activity in that time.
    pub kind: StepKind,
}

/// Activity during a stretch of a critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// A packet is on a link: its own serialization and the link's delay.
    Flight {
        /// The link.
        link: LinkId,
    },
    /// A packet waits at a port.
    Queue {
        /// The port's link.
        link: LinkId,
    },
    /// The sender may send, and waits for its NIC or its turn.
    Nic,
    /// Its class is paused at its NIC.
    NicPause,
    /// The sender waits for the pacer.
    Pacer,
    /// The sender waits for the hold at the edge.
    Hold,
    /// The sender waits for credits.
    Credit,
    /// From the departure of a packet that was lost until the sender knew.
    Loss {
        /// Means of detection.
        found: LossFound,
        /// The loss; none where nothing was lost, or not on a link.
        loss: Option<PacketLoss>,
    },
    /// The receiver has the data and holds the acknowledgement back.
    Receiver,
    /// A packet waits in the host before the transport receives it.
    HostDelay,
    /// Not explained by the log.
    Unknown,
}

/// Means by which a sender detects a loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LossFound {
    /// By the retransmission timeout.
    Timeout,
    /// By an acknowledgement of a later packet, or the receiver's request.
    Fast,
    /// Not detected: credits or credit requests were lost, and the sender sends again at the next credit.
    Credit,
}

/// A round trip of a critical path: a packet departs and its ACK arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathRound {
    /// Departure of the packet.
    pub start: Time,
    /// Arrival of the acknowledgement.
    pub end: Time,
    /// The links of the packet's path.
    pub links: Vec<LinkId>,
    /// Time of it on links, without queues.
    pub base: Span,
}

/// A flow's critical path.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CriticalPath {
    /// From the flow's start to its completion, without gaps, in order of time.
    pub steps: Vec<PathStep>,
    /// Its rounds, in order of time.
    pub rounds: Vec<PathRound>,
    /// Links of the packet sent in a step at the sender, by the step's index.
    pub sent_over: BTreeMap<usize, Vec<LinkId>>,
}

/// Walks the critical path of a flow that started and completed at these times.
pub fn critical_path(setup: &Setup, log: &FlowLog, started: Time, completed: Time) -> CriticalPath {
    let mut walk = PathWalk {
        setup,
        log,
        packets: Packets::new(log),
        started,
        at: completed,
        steps: Vec::new(),
        rounds: Vec::new(),
        links: Vec::new(),
        sent_over: Vec::new(),
    };
    walk.run();
    walk.finish()
}

/// Arrivals and departures of a flow's packets, by packet and in order of time. A packet is the same with its payload cut.
struct Packets<'a> {
    arrivals: BTreeMap<PacketId, Vec<&'a PacketArrival>>,
    departures: BTreeMap<PacketId, Vec<&'a PacketDeparture>>,
}

fn untrimmed(packet: PacketId) -> PacketId {
    if packet.kind == PacketKind::Trimmed { packet.acked_packet() } else { packet }
}

impl<'a> Packets<'a> {
    fn new(log: &'a FlowLog) -> Self {
        let (mut arrivals, mut departures) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for arrival in &log.arrivals {
            arrivals.entry(untrimmed(arrival.packet)).or_default().push(arrival);
        }
        for departure in &log.departures {
            departures.entry(untrimmed(departure.packet)).or_default().push(departure);
        }
        Self { arrivals, departures }
    }

    /// The last arrival of a packet up to a time, of those that `is_match` accepts.
    fn arrival(
        &self,
        packet: PacketId,
        by: Time,
        is_match: impl Fn(&PacketArrival) -> bool,
    ) -> Option<&'a PacketArrival> {
        let all = self.arrivals.get(&packet)?;
        let end = all.partition_point(|it| it.time <= by);
        all[..end].iter().rev().copied().find(|it| is_match(it))
    }

    /// The last departure of a packet up to a time from the host of a link.
    fn departure(&self, packet: PacketId, by: Time, link: LinkId) -> Option<&'a PacketDeparture> {
        let all = self.departures.get(&packet)?;
        let end = all.partition_point(|it| it.time <= by);
        all[..end].iter().rev().copied().find(|it| it.link == link)
    }

    /// The last departure of an earlier transmission of a packet of the flow before a time.
    fn earlier(&self, seq: u32, before: Time) -> Option<&'a PacketDeparture> {
        let of = |attempt| PacketId { kind: PacketKind::Data, seq, attempt };
        let all = self.departures.range(of(0)..=of(u8::MAX)).flat_map(|(_, departures)| departures).copied();
        all.filter(|it| it.time < before).max_by_key(|it| it.time)
    }
}

struct PathWalk<'a> {
    setup: &'a Setup,
    log: &'a FlowLog,
    packets: Packets<'a>,
    started: Time,
    /// All after this time is explained.
    at: Time,
    /// Backwards.
    steps: Vec<PathStep>,
    rounds: Vec<PathRound>,
    /// Links of the data packet that was walked last.
    links: Vec<LinkId>,
    sent_over: Vec<(usize, Vec<LinkId>)>,
}

/// Returns true if the sender cannot act before a packet arrives.
fn is_blocked(view: &SenderView) -> bool {
    matches!(view.waits, SenderWait::Window | SenderWait::Acks)
}

fn kind_of(wait: SenderWait) -> StepKind {
    match wait {
        SenderWait::Nic => StepKind::Nic,
        SenderWait::Pause => StepKind::NicPause,
        SenderWait::Pacer { .. } => StepKind::Pacer,
        SenderWait::Hold { .. } => StepKind::Hold,
        SenderWait::Credit => StepKind::Credit,
        SenderWait::Window | SenderWait::Acks => StepKind::Unknown,
    }
}

/// Continuation of the walk.
enum Next {
    /// The packet that this event of the sender received.
    Trigger(usize),
    /// The reason why the packet of this event left then and not earlier.
    Departure(usize),
    /// End of the walk: no earlier cause is known.
    Nothing,
}

impl PathWalk<'_> {
    fn run(&mut self) {
        let events = &self.log.sender;
        let last = events.iter().rposition(|event| event.time <= self.at && event.view.is_none());
        let mut next = last.map_or(Next::Nothing, Next::Trigger);
        // Each turn goes back in time, or to an earlier event of the same time.
        for _ in 0..=2 * events.len() {
            next = match next {
                Next::Trigger(event) => self.trigger(event),
                Next::Departure(event) => self.departure(event),
                Next::Nothing => break,
            };
            if self.at <= self.started {
                break;
            }
        }
        self.explain(self.started, StepKind::Unknown);
    }

    /// Explains a wait for credits. From the first lost credit or credit request on, the wait is counted as that loss. Credits
    /// dropped by a full queue are not: dropping them is how the law shares a link.
    fn explain_signal(&mut self, from: Time, kind: StepKind) {
        let losses = &self.log.losses;
        let later_losses = &losses[losses.partition_point(|loss| loss.time < from)..];
        let is_lost = |loss: &&PacketLoss| loss.cause != DropCause::Full && loss.packet.kind.is_signal();
        let lost = later_losses.iter().find(is_lost).filter(|loss| loss.time < self.at);
        if let Some(&loss) = lost {
            self.explain(loss.time, StepKind::Loss { found: LossFound::Credit, loss: Some(loss) });
        }
        self.explain(from, kind);
    }

    /// Explains all from `from` on that is not explained yet.
    fn explain(&mut self, from: Time, kind: StepKind) {
        let from = from.max(self.started);
        if from < self.at {
            self.steps.push(PathStep { start: from, end: self.at, kind });
            self.at = from;
        }
    }

    /// Walks a packet's way back to the host that sent it. Returns when it was handed to the NIC; none where the log lacks it.
    fn flight(&mut self, packet: PacketId, by: Time, to: fabric::HostId) -> Option<Time> {
        let node = self.setup.network.hosts()[to.index()];
        let ends_at = |link: LinkId, node| self.setup.network.links()[link.index()].to == node;
        let mut arrival = self.packets.arrival(packet, by, |it| ends_at(it.link, node))?;
        self.explain(arrival.time, StepKind::HostDelay);
        self.links.clear();
        loop {
            let from = self.setup.network.links()[arrival.link.index()].from;
            let before =
                self.packets.arrival(packet, arrival.time, |it| ends_at(it.link, from) && it.time < arrival.time);
            let departure = self.packets.departure(packet, arrival.time, arrival.link);
            let left = before.map(|it| it.time).or(departure.map(|it| it.time))?;
            let port = self.setup.network.port(arrival.link);
            let base = port.service(arrival.size.into()) + port.delay();
            let all = arrival.time.since(left);
            self.explain(arrival.time - base.min(all), StepKind::Flight { link: arrival.link });
            self.explain(left, StepKind::Queue { link: arrival.link });
            self.links.push(arrival.link);
            match before {
                Some(before) => arrival = before,
                None => return Some(left),
            }
        }
    }

    /// Explains the packet that the sender received.
    fn trigger(&mut self, index: usize) -> Next {
        let event = &self.log.sender[index];
        let (Some(packet), spec) = (event.trigger, &self.setup.flows[self.log.flow as usize]) else {
            return self.departure_before(index, StepKind::Unknown);
        };
        let end = self.at;
        let steps = self.steps.len();
        let left = self.flight(packet, event.time, spec.src);
        if !packet.is_reply_to_data() {
            // The signal does not refer to a packet of the flow: the time since the last departure was spent waiting for
            // the signal.
            let kind = if packet.is_credit() { StepKind::Credit } else { StepKind::Unknown };
            return self.departure_before(index, kind);
        }
        let Some(left) = left else { return self.departure_before(index, StepKind::Unknown) };
        let data = packet.acked_packet();
        let node = self.setup.network.hosts()[spec.dst.index()];
        let links = &self.setup.network.links();
        let data_arrival = self.packets.arrival(data, left, |it| links[it.link.index()].to == node);
        let Some(data_arrival) = data_arrival else { return self.departure_before(index, StepKind::Unknown) };
        self.explain(data_arrival.time, StepKind::Receiver);
        let Some(sent) = self.flight(data, data_arrival.time, spec.dst) else {
            return self.departure_before(index, StepKind::Unknown);
        };
        let base = self.steps[steps..].iter().filter(|step| matches!(step.kind, StepKind::Flight { .. }));
        let base = base.map(|step| step.end.since(step.start)).sum();
        self.rounds.push(PathRound { start: sent, end, links: self.links.clone(), base });
        self.event_of(data, sent).map_or_else(|| self.departure_before(index, StepKind::Unknown), Next::Departure)
    }

    /// The event in which a packet left.
    fn event_of(&self, packet: PacketId, at: Time) -> Option<usize> {
        let events = &self.log.sender;
        let end = events.partition_point(|event| event.time <= at);
        let here = events[..end].iter().enumerate().rev().take_while(|(_, event)| event.time == at);
        here.filter(|(_, event)| event.sent == Some(packet)).map(|(index, _)| index).next()
    }

    /// Goes on with the last departure before an event where the log has no more information.
    fn departure_before(&mut self, index: usize, kind: StepKind) -> Next {
        let events = &self.log.sender;
        let sent = events[..index].iter().rposition(|event| event.sent.is_some() && event.time <= self.at);
        let from = sent.map_or(self.started, |before| events[before].time);
        match kind {
            StepKind::Credit => self.explain_signal(from, kind),
            _ => self.explain(from, kind),
        }
        sent.map_or(Next::Nothing, Next::Departure)
    }

    /// Explains why a packet left when it did.
    fn departure(&mut self, index: usize) -> Next {
        let events = &self.log.sender;
        let event = &events[index];
        let Some(before) = index.checked_sub(1).and_then(|before| events[before].view.map(|view| (before, view)))
        else {
            // The flow's first event: it had started, and waited for the NIC at most.
            self.explain(self.started, StepKind::Nic);
            return Next::Nothing;
        };
        let (mut last, mut view) = before;
        if is_blocked(&view) {
            return self.released(event, index);
        }
        // One wait after the other, back to the event that ended a lack of window, or to the flow's last departure.
        loop {
            let first = self.since(last);
            let waited = self.steps.len();
            if let SenderWait::Pacer { until } | SenderWait::Hold { until } = view.waits {
                self.explain(until.max(events[first].time), StepKind::Nic);
            }
            match view.waits {
                SenderWait::Credit => self.explain_signal(events[first].time, StepKind::Credit),
                waits => self.explain(events[first].time, kind_of(waits)),
            }
            let links = self.links.clone();
            self.sent_over.extend((waited..self.steps.len()).map(|step| (step, links.clone())));
            if events[first].sent.is_some() {
                return Next::Departure(first);
            }
            match first.checked_sub(1).and_then(|earlier| Some((earlier, events[earlier].view?))) {
                Some(earlier) if !is_blocked(&earlier.1) => (last, view) = earlier,
                _ => return self.released(event, first),
            }
        }
    }

    /// Returns the first of the consecutive events up to this one in which the same kind of wait held the sender. Goes back
    /// to the flow's last departure at most.
    fn since(&self, index: usize) -> usize {
        let kind = |event: &SenderEvent| event.view.map(|view| std::mem::discriminant(&view.waits));
        let events = &self.log.sender;
        let mut first = index;
        while first > 0 && events[first].sent.is_none() && kind(&events[first - 1]) == kind(&events[index]) {
            first -= 1;
        }
        first
    }

    /// Explains the release of a packet that the window, or a lack of data, had delayed: the event `by`.
    fn released(&mut self, event: &SenderEvent, by: usize) -> Next {
        let events = &self.log.sender;
        let cause = &events[by];
        self.explain(cause.time, StepKind::Unknown);
        let before = by.checked_sub(1).and_then(|before| events[before].view);
        let timed_out = cause.view.zip(before).is_some_and(|(after, before)| after.timeouts > before.timeouts);
        let resent = event.sent.filter(|packet| packet.attempt > 1);
        let by_ack = cause.trigger.is_some_and(|packet| packet.kind == PacketKind::Ack);
        let was_ack_clocked = before.is_some_and(|view| view.waits == SenderWait::Acks);
        if let Some(resent) = resent.filter(|_| !by_ack || timed_out || was_ack_clocked)
            && let Some(lost) = self.packets.earlier(resent.seq, cause.time)
        {
            let found = if timed_out { LossFound::Timeout } else { LossFound::Fast };
            let loss = self.loss_of(lost.packet);
            self.explain(lost.time, StepKind::Loss { found, loss });
            return match self.event_of(lost.packet, lost.time) {
                Some(lost) => Next::Departure(lost),
                None => self.departure_before(by, StepKind::Unknown),
            };
        }
        match cause.trigger {
            Some(_) => Next::Trigger(by),
            // The flow starts, or a timer of the law fires.
            None => self.departure_before(by, StepKind::Unknown),
        }
    }

    /// The loss of a data packet, or else of its acknowledgement.
    fn loss_of(&self, data: PacketId) -> Option<PacketLoss> {
        let of = |kind| self.log.losses.iter().find(|loss| loss.packet == PacketId { kind, ..data });
        let kinds = [PacketKind::Data, PacketKind::Trimmed, PacketKind::Ack, PacketKind::Nack];
        kinds.into_iter().find_map(of).copied()
    }

    fn finish(mut self) -> CriticalPath {
        self.steps.reverse();
        self.rounds.reverse();
        let count = self.steps.len();
        let sent_over = self.sent_over.into_iter().map(|(step, links)| (count - 1 - step, links)).collect();
        CriticalPath { steps: self.steps, rounds: self.rounds, sent_over }
    }
}
