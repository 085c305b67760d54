//! A log of some flows: their packets at every node, their losses, and the waits of their senders; and the use of some
//! links. [`run_recorded`](crate::run_recorded) asks for it.
//!
//! The recorder looks at the engine from outside. Arrivals at a switch are read off its input links before a window of it is
//! run, and hosts have a loop of their own while a run is recorded. So runs that are not recorded pay nothing, and recorded
//! runs have the same outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use experiment::{
    DropCause, FlowId, FlowLog, LinkSpan, LinkUse, PacketArrival, PacketDeparture, PacketId, PacketKind, PacketLoss,
    RecordConfig, Recording, SenderEvent, Setup,
};
use fabric::LinkId;
use units::Time;

use crate::body::Body;
use crate::layout::Layout;
use crate::optional_index::OptionalIndex;
use crate::packet::Packet;

/// The identity of a packet of a flow; none of frames and other packets of no flow.
pub(crate) fn identify(packet: &Packet) -> Option<PacketId> {
    let id = |kind, seq, attempt| Some(PacketId { kind, seq, attempt });
    match packet.body() {
        Body::Data { seq, attempt, .. } => id(PacketKind::Data, seq, attempt),
        Body::Trimmed { seq, attempt } => id(PacketKind::Trimmed, seq, attempt),
        Body::Ack(header) => id(PacketKind::Ack, header.seq, header.attempt),
        Body::Nack(header) => id(PacketKind::Nack, header.seq, header.attempt),
        Body::Pause | Body::Resume | Body::Feedback(_) => None,
        Body::Credit { number } => id(PacketKind::Credit, number, 0),
        Body::Emulation { number, .. } => id(PacketKind::Signal(packet.kind() as u8), number, 0),
        _ => id(PacketKind::Signal(packet.kind() as u8), 0, 0),
    }
}

/// Losses of recorded flows.
pub(crate) struct LossLog {
    log_indices: Arc<[OptionalIndex]>,
    losses: Vec<(u32, PacketLoss)>,
}

impl LossLog {
    /// Notes a loss at a link with this number in the network.
    pub(crate) fn note(&mut self, link: u32, packet: &Packet, cause: DropCause) {
        let Some(index) = self.log_indices.get(packet.flow as usize).and_then(|index| index.get()) else { return };
        if let Some(id) = identify(packet) {
            self.losses.push((index, PacketLoss { time: packet.time, link: LinkId(link), packet: id, cause }));
        }
    }
}

/// The recorder of one partition.
pub(crate) struct Recorder {
    /// By flow: its index among the logs; none if it is not recorded.
    log_indices: Arc<[OptionalIndex]>,
    logs: Vec<FlowLog>,
    /// By FIFO of the partition: its link.
    links: Vec<u32>,
    /// By FIFO: the spans of its link that have not passed.
    meters: BTreeMap<usize, LinkUseMeter>,
    uses: BTreeMap<LinkUse, u64>,
    /// Packets of recorded flows handed to the NIC since the last [`Recorder::take_sent`].
    sent: Vec<(u32, PacketId)>,
    /// Packets that a host's transport received late since the last [`Recorder::take_received_late`].
    received_late: Vec<(u32, PacketId)>,
}

/// Spans of a link, in order of their beginnings.
struct LinkUseMeter {
    spans: Vec<LinkSpan>,
    next: usize,
    active: Vec<LinkSpan>,
}

impl LinkUseMeter {
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
        let mut log_indices = vec![OptionalIndex::NONE; setup.flows.len()];
        for (index, flow) in (0..).zip(&config.flows) {
            log_indices[flow.0 as usize] = OptionalIndex::some(index);
        }
        let (mut links, mut meters) = (Vec::new(), BTreeMap::<usize, LinkUseMeter>::new());
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
                let meter = LinkUseMeter { spans: Vec::new(), next: 0, active: Vec::new() };
                meters.entry(fifo).or_insert(meter).spans.push(span);
            }
        }
        Self {
            log_indices: log_indices.into(),
            logs: config.flows.iter().map(|flow| FlowLog { flow: flow.0, ..FlowLog::default() }).collect(),
            links,
            meters,
            uses: BTreeMap::new(),
            sent: Vec::new(),
            received_late: Vec::new(),
        }
    }

    /// An empty log of the losses of the same flows.
    pub(crate) fn loss_log(&self) -> LossLog {
        LossLog { log_indices: Arc::clone(&self.log_indices), losses: Vec::new() }
    }

    /// Returns a flow's index among the logs, if it is recorded.
    fn log_index(&self, flow: u32) -> Option<u32> {
        self.log_indices.get(flow as usize).and_then(|index| index.get())
    }

    /// Returns true if a flow's packets and sender are logged.
    pub(crate) fn has(&self, flow: u32) -> bool {
        self.log_index(flow).is_some()
    }

    /// Records a packet that arrives over the link with this FIFO.
    pub(crate) fn arrives(&mut self, fifo: usize, packet: &Packet, setup: &Setup) {
        let link = self.links[fifo];
        if let Some(meter) = self.meters.get_mut(&fifo)
            && identify(packet).is_some()
        {
            let params = setup.network.port(LinkId(link));
            let end = packet.time - params.delay();
            let begin = end - params.service(packet.size.into()).min(end.since(Time::ZERO));
            meter.count(begin, end, FlowId(packet.flow), &mut self.uses);
        }
        let Some(index) = self.log_index(packet.flow) else { return };
        if let Some(id) = identify(packet) {
            let arrival = PacketArrival { time: packet.time, link: LinkId(link), packet: id, size: packet.size };
            self.logs[index as usize].arrivals.push(arrival);
        }
    }

    /// Records a packet that a host passes to its NIC.
    pub(crate) fn departs(&mut self, link: u32, packet: &Packet) {
        let Some(index) = self.log_index(packet.flow) else { return };
        if let Some(id) = identify(packet) {
            let departure = PacketDeparture { time: packet.time, link: LinkId(link), packet: id };
            self.logs[index as usize].departures.push(departure);
            if id.kind == PacketKind::Data {
                self.sent.push((packet.flow, id));
            }
        }
    }

    /// Records that a host's transport receives a packet that waited in the host.
    pub(crate) fn receives_late(&mut self, packet: &Packet) {
        if let Some(id) = identify(packet).filter(|_| self.has(packet.flow)) {
            self.received_late.push((packet.flow, id));
        }
    }

    /// Takes the last packet of a flow that was handed to the NIC since the last call.
    pub(crate) fn take_sent(&mut self, flow: u32) -> Option<PacketId> {
        let index = self.sent.iter().rposition(|(of, _)| *of == flow)?;
        Some(self.sent.swap_remove(index).1)
    }

    /// Takes the last packet of a flow that the transport received late since the last call.
    pub(crate) fn take_received_late(&mut self, flow: u32) -> Option<PacketId> {
        let index = self.received_late.iter().rposition(|(of, _)| *of == flow)?;
        let received_late = self.received_late[index].1;
        self.received_late.retain(|(of, _)| *of != flow);
        Some(received_late)
    }

    /// Logs an event of a sender, unless nothing happened.
    pub(crate) fn sender(&mut self, flow: u32, event: SenderEvent) {
        let Some(index) = self.log_index(flow) else { return };
        let events = &mut self.logs[index as usize].sender;
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
        for (index, loss) in losses.into_iter().flat_map(|log| log.losses) {
            self.logs[index as usize].losses.push(loss);
        }
        Recording { flows: self.logs, uses: self.uses }
    }
}
