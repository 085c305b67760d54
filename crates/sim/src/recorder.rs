//! A log of some flows: their packets at every node, their losses, and what their senders waited for; and the use of some
//! links. [`run_recorded`](crate::run_recorded) asks for it.
//!
//! The recorder looks at the engine from outside. Arrivals at a switch are read off its input links before a window of it is
//! run, and hosts have a loop of their own while a run is recorded. So runs that are not recorded pay nothing, and recorded
//! runs have the same outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::LinkId;
use laws::Acted;
use units::{Bytes, Time};

use crate::body::{Body, Kind};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::setup::Setup;
use crate::start::FlowId;

/// The flows and links to record.
#[derive(Clone, Default, Debug)]
pub struct RecordConfig {
    /// Flows whose packets and senders are logged.
    pub flows: Vec<FlowId>,
    /// Times of links whose use is counted by flow.
    pub spans: Vec<LinkSpan>,
}

/// A time of a link. Spans of one link may overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpan {
    /// The link.
    pub link: LinkId,
    /// Its beginning.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// The sum that its use is added to.
    pub tag: u32,
}

/// The log of a run.
#[derive(Clone, Default, Debug)]
pub struct Recording {
    /// The logs of [`RecordConfig::flows`], in that order.
    pub flows: Vec<FlowLog>,
    /// By tag and flow: picoseconds in spans of the tag in which the link sent packets of the flow, or those that answer them.
    pub uses: BTreeMap<LinkUse, u64>,
}

/// The sum of one flow's packets in the spans of a tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkUse {
    /// [`LinkSpan::tag`].
    pub tag: u32,
    /// The flow.
    pub flow: FlowId,
}

/// The log of a flow. All lists are in order of time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowLog {
    /// The flow's number.
    pub flow: u32,
    /// Arrivals of its packets at nodes.
    pub arrivals: Vec<PacketArrival>,
    /// Packets that its hosts handed to their NICs.
    pub departures: Vec<PacketDeparture>,
    /// Packets that were lost.
    pub losses: Vec<PacketLoss>,
    /// Changes of its sender.
    pub sender: Vec<SenderEvent>,
}

/// A packet of a flow, by what distinguishes it from the flow's others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketId {
    /// Its kind.
    pub kind: PacketKind,
    /// Its number; of an answer, that of the packet that it answers.
    pub seq: u32,
    /// The transmission of that packet; 0 of signals.
    pub attempt: u8,
}

/// Kinds of packets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PacketKind {
    /// Data.
    Data,
    /// Data whose payload a switch cut.
    Trimmed,
    /// An acknowledgement.
    Ack,
    /// A request to send again.
    Nack,
    /// Another packet.
    Signal(u8),
}

/// A packet's last bit reaches the node that a link leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketArrival {
    /// The time.
    pub time: Time,
    /// The link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
    /// Bytes on the wire.
    pub size: u16,
}

/// A host hands a packet to its NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDeparture {
    /// The time.
    pub time: Time,
    /// The host's link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
}

/// A packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketLoss {
    /// The time at which it came to the port, or left it.
    pub time: Time,
    /// The port's link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
    /// The cause of the loss.
    pub cause: DropCause,
}

/// Causes of losses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// The queue or the buffer was full.
    Full,
    /// The link was down.
    Down,
    /// The link lost it by chance.
    Chance,
}

/// A sender has received something, or has acted, or its state has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderEvent {
    /// The time.
    pub time: Time,
    /// The packet that the transport received; none of timers and of sends.
    pub trigger: Option<PacketId>,
    /// The packet that was handed to the NIC.
    pub sent: Option<PacketId>,
    /// The sender afterwards; none once its flow is complete.
    pub view: Option<SenderView>,
}

/// The state of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderView {
    /// Condition that its next packet waits for.
    pub waits: SenderWait,
    /// The window.
    pub window: Bytes,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// Packets that were declared lost and were sent again so far.
    pub retransmits: u64,
    /// Actions of the law so far.
    pub acted: Acted,
}

/// Condition that a sender's next packet waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderWait {
    /// The NIC, or other flows of the host.
    Nic,
    /// Its class is paused at the NIC.
    Pause,
    /// The pacer.
    Pacer {
        /// The time at which it may leave.
        until: Time,
    },
    /// The hold at the edge (On-Ramp).
    Hold {
        /// The time at which it may leave.
        until: Time,
    },
    /// Credits.
    Credit,
    /// The window.
    Window,
    /// All has been sent.
    Acks,
}

impl PacketId {
    /// The identity of a packet of a flow; none of frames and other packets of no flow.
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        let id = |kind, seq, attempt| Some(Self { kind, seq, attempt });
        match packet.body() {
            Body::Data { seq, attempt, .. } => id(PacketKind::Data, seq, attempt),
            Body::Trimmed { seq, attempt } => id(PacketKind::Trimmed, seq, attempt),
            Body::Ack(header) => id(PacketKind::Ack, header.seq, header.attempt),
            Body::Nack(header) => id(PacketKind::Nack, header.seq, header.attempt),
            Body::Pause | Body::Resume | Body::Feedback(_) => None,
            Body::Credit { number } | Body::Emulation { number, .. } => {
                id(PacketKind::Signal(packet.kind() as u8), number, 0)
            }
            _ => id(PacketKind::Signal(packet.kind() as u8), 0, 0),
        }
    }

    /// Returns true if it is a packet of the receiver that answers a data packet.
    pub fn answers_data(&self) -> bool {
        matches!(self.kind, PacketKind::Ack | PacketKind::Nack)
    }

    /// The data packet that an acknowledgement answers.
    #[must_use]
    pub fn answered(&self) -> Self {
        Self { kind: PacketKind::Data, ..*self }
    }

    /// Returns true if it is a credit.
    pub fn is_credit(&self) -> bool {
        self.kind == PacketKind::Signal(Kind::Credit as u8)
    }
}

const NOT_RECORDED: u32 = u32::MAX;

/// Losses of recorded flows.
pub(crate) struct LossLog {
    places: Arc<[u32]>,
    losses: Vec<(u32, PacketLoss)>,
}

impl LossLog {
    /// Notes a loss at a link with this number in the network.
    pub(crate) fn note(&mut self, link: u32, packet: &Packet, cause: DropCause) {
        let Some(&place) = self.places.get(packet.flow as usize).filter(|&&place| place != NOT_RECORDED) else {
            return;
        };
        if let Some(id) = PacketId::of(packet) {
            self.losses.push((place, PacketLoss { time: packet.time, link: LinkId(link), packet: id, cause }));
        }
    }
}

/// The recorder of one partition.
pub(crate) struct Recorder {
    /// By flow: its place among the logs, or [`NOT_RECORDED`].
    places: Arc<[u32]>,
    logs: Vec<FlowLog>,
    /// By FIFO of the partition: its link.
    links: Vec<u32>,
    /// By FIFO: the spans of its link that have not passed.
    meters: BTreeMap<usize, Meter>,
    uses: BTreeMap<LinkUse, u64>,
    /// Packets of recorded flows handed to the NIC since the last [`Recorder::take_sent`].
    sent: Vec<(u32, PacketId)>,
    /// Packets that a host's transport received late since the last [`Recorder::take_heard`].
    heard: Vec<(u32, PacketId)>,
}

/// Spans of a link, in order of their beginnings.
struct Meter {
    spans: Vec<LinkSpan>,
    next: usize,
    active: Vec<LinkSpan>,
}

impl Meter {
    /// Adds a packet's time on the link to the spans that it falls in.
    fn count(&mut self, begin: Time, end: Time, flow: FlowId, uses: &mut BTreeMap<LinkUse, u64>) {
        while let Some(&span) = self.spans.get(self.next).filter(|span| span.start < end) {
            self.active.push(span);
            self.next += 1;
        }
        self.active.retain(|span| span.end > begin);
        for span in &self.active {
            let (from, until) = (span.start.max(begin), span.end.min(end));
            if from < until {
                *uses.entry(LinkUse { tag: span.tag, flow }).or_default() += until.since(from).unsigned_ps();
            }
        }
    }
}

impl Recorder {
    /// The recorder of a partition.
    pub(crate) fn new(index: usize, setup: &Setup, layout: &Layout, config: &RecordConfig) -> Self {
        let mut places = vec![NOT_RECORDED; setup.flows.len()];
        for (place, flow) in (0..).zip(&config.flows) {
            places[flow.0 as usize] = place;
        }
        let (mut links, mut meters) = (Vec::new(), BTreeMap::<usize, Meter>::new());
        let mut fifo_of = BTreeMap::new();
        for (link, details) in (0u32..).zip(setup.network.links()) {
            if layout.partition_of(details.to) == index {
                let fifo = layout.fifo_of[link as usize] as usize;
                links.resize(links.len().max(fifo + 1), 0);
                links[fifo] = link;
                fifo_of.insert(link, fifo);
            }
        }
        let mut spans = config.spans.clone();
        spans.sort_unstable_by_key(|span| (span.link, span.start, span.end, span.tag));
        for span in spans {
            if let Some(&fifo) = fifo_of.get(&span.link.0) {
                let meter = Meter { spans: Vec::new(), next: 0, active: Vec::new() };
                meters.entry(fifo).or_insert(meter).spans.push(span);
            }
        }
        Self {
            places: places.into(),
            logs: config.flows.iter().map(|flow| FlowLog { flow: flow.0, ..FlowLog::default() }).collect(),
            links,
            meters,
            uses: BTreeMap::new(),
            sent: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// An empty log of the losses of the same flows.
    pub(crate) fn loss_log(&self) -> LossLog {
        LossLog { places: Arc::clone(&self.places), losses: Vec::new() }
    }

    /// Returns a flow's place among the logs, if it is recorded.
    fn place(&self, flow: u32) -> Option<u32> {
        self.places.get(flow as usize).copied().filter(|&place| place != NOT_RECORDED)
    }

    /// Returns true if a flow's packets and sender are logged.
    pub(crate) fn has(&self, flow: u32) -> bool {
        self.place(flow).is_some()
    }

    /// A packet arrives over the link with this FIFO.
    pub(crate) fn arrives(&mut self, fifo: usize, packet: &Packet, setup: &Setup) {
        let link = self.links[fifo];
        if let Some(meter) = self.meters.get_mut(&fifo)
            && PacketId::of(packet).is_some()
        {
            let params = setup.network.port(LinkId(link));
            let end = packet.time - params.delay();
            let begin = end - params.service(packet.size.into()).min(end.since(Time::ZERO));
            meter.count(begin, end, FlowId(packet.flow), &mut self.uses);
        }
        let Some(place) = self.place(packet.flow) else { return };
        if let Some(id) = PacketId::of(packet) {
            let arrival = PacketArrival { time: packet.time, link: LinkId(link), packet: id, size: packet.size };
            self.logs[place as usize].arrivals.push(arrival);
        }
    }

    /// A host hands a packet to its NIC.
    pub(crate) fn departs(&mut self, link: u32, packet: &Packet) {
        let Some(place) = self.place(packet.flow) else { return };
        if let Some(id) = PacketId::of(packet) {
            let departure = PacketDeparture { time: packet.time, link: LinkId(link), packet: id };
            self.logs[place as usize].departures.push(departure);
            if id.kind == PacketKind::Data {
                self.sent.push((packet.flow, id));
            }
        }
    }

    /// A host's transport receives a packet that waited in the host.
    pub(crate) fn hears(&mut self, packet: &Packet) {
        if let Some(id) = PacketId::of(packet).filter(|_| self.has(packet.flow)) {
            self.heard.push((packet.flow, id));
        }
    }

    /// Takes the last packet of a flow that was handed to the NIC since the last call.
    pub(crate) fn take_sent(&mut self, flow: u32) -> Option<PacketId> {
        let place = self.sent.iter().rposition(|(of, _)| *of == flow)?;
        Some(self.sent.swap_remove(place).1)
    }

    /// Takes the last packet of a flow that the transport received late since the last call.
    pub(crate) fn take_heard(&mut self, flow: u32) -> Option<PacketId> {
        let place = self.heard.iter().rposition(|(of, _)| *of == flow)?;
        let heard = self.heard[place].1;
        self.heard.retain(|(of, _)| *of != flow);
        Some(heard)
    }

    /// Logs an event of a sender, unless nothing happened.
    pub(crate) fn sender(&mut self, flow: u32, event: SenderEvent) {
        let Some(place) = self.place(flow) else { return };
        let events = &mut self.logs[place as usize].sender;
        // Before its start and after its completion a flow has no sender.
        if event.view.is_none() && events.last().is_none_or(|last| last.view.is_none()) {
            return;
        }
        let is_new = event.trigger.is_some() || event.sent.is_some();
        if is_new || events.last().is_none_or(|last| last.view != event.view) {
            events.push(event);
        }
    }

    /// The log, with the losses.
    pub(crate) fn finish(mut self, losses: Option<LossLog>) -> Recording {
        for (place, loss) in losses.into_iter().flat_map(|log| log.losses) {
            self.logs[place as usize].losses.push(loss);
        }
        Recording { flows: self.logs, uses: self.uses }
    }
}

impl Recording {
    /// Adds the log of another partition.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.flows.is_empty() {
            self.flows = other.flows;
        } else {
            for (all, mut log) in self.flows.iter_mut().zip(other.flows) {
                all.arrivals.append(&mut log.arrivals);
                all.departures.append(&mut log.departures);
                all.losses.append(&mut log.losses);
                all.sender.append(&mut log.sender);
            }
        }
        for (sum, time) in other.uses {
            *self.uses.entry(sum).or_default() += time;
        }
    }

    /// Puts all lists in order of time.
    pub(crate) fn sort(&mut self) {
        for log in &mut self.flows {
            log.arrivals.sort_by_key(|it| it.time);
            log.departures.sort_by_key(|it| it.time);
            log.losses.sort_by_key(|it| it.time);
            log.sender.sort_by_key(|it| it.time);
        }
    }
}
