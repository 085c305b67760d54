//! Ports and the links behind them: the handling of a packet once its port is chosen, and the hot loop that chooses ports
//! and moves packets as long as no special case occurs.

use std::collections::BTreeMap;

use experiment::{ByKind, DropCause, Setup};
use fabric::{
    HostId, LinkId, NodeId, Outages, Port, PortMode, PortOutlet, PortParams, PortTransit, RoutesFrom, switch_salt,
};
use units::{Span, Time};

use crate::fifo::Fifos;
use crate::merge::{DONE, Merge, follow};
use crate::optional_index::OptionalIndex;
use crate::packet::{Packet, TelemetrySlot};
use crate::recorder::LossLog;
use crate::reports::{Reports, TelemetryRecord};
use crate::schedule::{Schedule, TimeWindow};
use crate::tie_break::ScheduleKey;

/// A port and the destination of its link: one cache line.
#[repr(align(64))]
pub(crate) struct Egress {
    pub(crate) port: Port,
    pub(crate) way: LinkDestination,
}

const _: () = assert!(size_of::<Egress>() == 64);

/// Destination of a link's packets.
#[derive(Clone, Copy)]
pub(crate) struct LinkDestination {
    /// The receiving node's FIFO here, or [`ELSEWHERE`] and an outbox.
    target: u32,
    /// The receiving node here; none if it is in another partition.
    node: u32,
}

/// The bit of a target in another partition.
const ELSEWHERE: u32 = 1 << 31;

impl LinkDestination {
    /// The way to a node of this partition.
    pub(crate) fn to_node(node: u32, fifo: u32) -> Self {
        debug_assert!(fifo < ELSEWHERE, "more links than numbers");
        Self { target: fifo, node }
    }

    /// The way to another partition.
    pub(crate) fn to_outbox(outbox: u32) -> Self {
        debug_assert!(outbox < ELSEWHERE, "more links than numbers");
        Self { target: outbox | ELSEWHERE, node: 0 }
    }

    /// Returns the FIFO, on a way to a node of this partition, or the outbox.
    #[inline(always)]
    fn place(self) -> usize {
        (self.target & !ELSEWHERE) as usize
    }

    /// Returns whether the link leaves the partition.
    #[inline(always)]
    fn is_away(self) -> bool {
        self.target >= ELSEWHERE
    }
}

/// Data that waits at a port with control before data: a FIFO in addition to those of the links. The port itself counts all
/// that it has taken, so marks and drops need no replay.
#[derive(Clone, Copy)]
pub(crate) struct PriorityBacklog {
    /// The time at which the port has served all packets that do not wait.
    pub(crate) served_at: Time,
    pub(crate) fifo: OptionalIndex,
    /// Set if the node has it among its backlogged ports.
    pub(crate) listed: bool,
}

/// Packets on the way to another partition over one link.
pub(crate) struct Mail {
    pub(crate) to: usize,
    /// The receiving partition's FIFO and node.
    pub(crate) fifo: u32,
    pub(crate) node: u32,
    pub(crate) packets: Vec<Packet>,
    /// The report of each, if packets carry reports.
    pub(crate) records: Vec<Option<Box<TelemetryRecord>>>,
    /// The origin of each packet's event, if that matters.
    pub(crate) since: Vec<ScheduleKey>,
}

/// Ports and links, separate from the forwarding decision.
pub(crate) struct Links {
    pub(crate) egress: Vec<Egress>,
    /// By link; without a FIFO if the port is not of that kind.
    pub(crate) overtaken: Vec<PriorityBacklog>,
    pub(crate) fifos: Fifos,
    pub(crate) outboxes: Vec<Mail>,
    pub(crate) schedule: Schedule,
    /// Reports, if packets carry them.
    pub(crate) reports: Option<Reports>,
    /// The origin of the event of the packet that leaves now, if that matters.
    pub(crate) since: Option<ScheduleKey>,
    pub(crate) loss_counters: LossCounters,
    /// Links that are down at times. Their ports are of [`PortMode::Extended`], but for those of switches that share a buffer.
    pub(crate) failing: BTreeMap<u32, Failing>,
}

/// Loss counters, separate from the ports: ports stay within their cache line, and the hot loop pays nothing.
pub(crate) struct LossCounters {
    /// By link.
    pub(crate) links: Vec<ByKind>,
    /// By flow: data packets, including those with a trimmed payload.
    pub(crate) flows: Vec<u32>,
    /// By flow: copies of data packets that links added; empty until there is one.
    pub(crate) copies: Vec<u32>,
    /// The number in the network of the first link.
    first_link: u32,
    /// Losses of recorded flows, where a run is recorded.
    pub(crate) log: Option<Box<LossLog>>,
}

impl LossCounters {
    pub(crate) fn new(links: std::ops::Range<u32>, flows: usize, log: Option<Box<LossLog>>) -> Self {
        Self {
            links: vec![ByKind::default(); links.len()],
            flows: vec![0; flows],
            copies: Vec::new(),
            first_link: links.start,
            log,
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn count(&mut self, link: usize, packet: &Packet, cause: DropCause) {
        packet.count_in(&mut self.links[link]);
        if let Some(log) = &mut self.log {
            log.note(self.first_link + link as u32, packet, cause);
        }
        if packet.is_data() {
            self.count_data(packet);
        }
    }

    /// Counts the copy of a packet that a link adds.
    #[cold]
    fn count_copy(&mut self, packet: &Packet) {
        if !packet.is_data() {
            return;
        }
        if self.copies.is_empty() {
            self.copies = vec![0; self.flows.len()];
        }
        let flow = &mut self.copies[packet.flow as usize];
        *flow = flow.saturating_add(1);
    }

    /// Counts a data packet that is lost to its flow.
    pub(crate) fn count_data(&mut self, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        *flow = flow.saturating_add(1);
    }
}

/// A link that is down at times.
pub(crate) struct Failing {
    pub(crate) outages: Outages,
    pub(crate) delay: Span,
    /// Packets that were on the way then, or sent.
    pub(crate) lost: u64,
}

impl PriorityBacklog {
    /// Records that data begins to wait at a port that will have served the rest at `served_at`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, link: usize, served_at: Time, backlogged: &mut Vec<u32>) {
        self.served_at = served_at;
        if !self.listed {
            self.listed = true;
            backlogged.push(link as u32);
        }
    }
}

/// The inputs of random decisions at a port, apart from the packet.
#[derive(Clone, Copy)]
pub(crate) struct Salts {
    pub(crate) seed: u64,
    pub(crate) first_link: u32,
}

impl Salts {
    #[inline(always)]
    pub(crate) fn of(self, link: usize) -> u64 {
        self.seed ^ (u64::from(self.first_link) + link as u64) << 20
    }
}

/// Chooses a switch's port for a packet.
#[derive(Clone, Copy)]
pub(crate) struct Chooser<'a> {
    pub(crate) routes: RoutesFrom<'a>,
    pub(crate) switch_salt: u64,
    pub(crate) first_link: u32,
    pub(crate) switch: NodeId,
}

impl Chooser<'_> {
    /// Selects a link by a hash or, for a packet on its way back under [`Setup::symmetric`], as the reverse of the
    /// forward path.
    #[inline(always)]
    pub(crate) fn link(&self, packet: &Packet, setup: &Setup) -> usize {
        if setup.symmetric
            && let Some(port) = way_back(self.switch, packet, setup)
        {
            return (port.0 - self.first_link) as usize;
        }
        self.by_hash(packet)
    }

    #[inline(always)]
    pub(crate) fn by_hash(&self, packet: &Packet) -> usize {
        let hash = packet.path_hash(self.switch_salt);
        (self.routes.port(HostId(packet.dst), hash).0 - self.first_link) as usize
    }
}

/// Returns the port on the reverse of a flow's path, for a packet that arrives at a switch now and goes to the flow's
/// source; none if there is no such port. Computed for each packet: no state is kept, so routes and entropies may
/// change.
#[inline(never)]
fn way_back(switch: NodeId, packet: &Packet, setup: &Setup) -> Option<LinkId> {
    let flow = &setup.flows[packet.flow as usize];
    if packet.dst != flow.src.0 {
        return None;
    }
    let hash = |switch| packet.path_hash(switch_salt(setup.seed, switch));
    setup.routes.at(packet.time).back(&setup.network, flow.src, flow.dst, switch, hash)
}

/// The reason why the hot loop ended.
pub(crate) enum Stopped {
    /// No further packet arrives in the window.
    Done,
    /// The FIFO that a packet is to go to must grow; the packet is still first in line.
    Full { turn: u64, fifo: usize },
    /// The first packet in line goes to a port that needs its extras, or has waiting packets to serve first.
    Extended { turn: u64, link: usize },
}

impl Links {
    /// Runs the hot loop: forwards packets while their ports are plain, each by its hash. Also returns the number of
    /// forwarded packets.
    #[expect(clippy::too_many_arguments, reason = "the parts of a split borrow of the plane")]
    #[inline(always)]
    pub(crate) fn forward_while_plain(
        &mut self,
        tree: &mut impl Merge,
        mut turn: u64,
        window: TimeWindow,
        chooser: Chooser,
        salts: Salts,
        params: &[PortParams],
        backlogged: &mut Vec<u32>,
    ) -> (Stopped, u64) {
        let Self { egress, overtaken, fifos, outboxes, schedule, loss_counters, .. } = self;
        let egress = &mut egress[..];
        let mut fifos = fifos.parts();
        let mut forwarded = 0;
        while turn != DONE {
            let input = tree.input(turn);
            let (place, packet) = fifos.first(input);
            let link = chooser.by_hash(packet);
            let Egress { port, way } = &mut egress[link];
            let arrival = packet.arrival();
            if port.mode != PortMode::Fifo {
                let goes = match port.mode {
                    PortMode::Fifo => true,
                    PortMode::Priority => arrival.control || port.idle_at() < arrival.now,
                    PortMode::PriorityBacklogged if !arrival.control => false,
                    PortMode::PriorityBacklogged | PortMode::Extended => {
                        return (Stopped::Extended { turn, link }, forwarded);
                    }
                };
                if !goes {
                    let waits = &mut overtaken[link];
                    let target = waits.fifo.position();
                    if fifos.is_full(target) {
                        return (Stopped::Full { turn, fifo: target }, forwarded);
                    }
                    let head = fifos.drop_first(input);
                    turn = tree
                        .replace(turn, if head < window.end { follow(turn, head.since(window.start)) } else { DONE });
                    forwarded += 1;
                    let idle_at = port.idle_at();
                    let passage = port.enqueue_exact(&params[port.params as usize], salts.of(link), &arrival);
                    let Some(passage) = passage else {
                        loss_counters.count(link, &fifos.at(place), DropCause::Full);
                        continue;
                    };
                    if port.mode == PortMode::Priority {
                        port.mode = PortMode::PriorityBacklogged;
                        waits.begin(link, idle_at, backlogged);
                    }
                    fifos.pass_on(place, target, PortTransit { arrives: arrival.now, ..passage });
                    continue;
                }
            }
            // Indexes a FIFO only where it is one.
            let target = way.target as usize;
            if !way.is_away() && fifos.is_full(target) {
                return (Stopped::Full { turn, fifo: target }, forwarded);
            }
            // The next turn does not depend on the fate of this packet: computing it first makes it available earlier.
            let head = fifos.drop_first(input);
            turn = tree.replace(turn, if head < window.end { follow(turn, head.since(window.start)) } else { DONE });
            forwarded += 1;
            let Some(passage) = port.enqueue_exact(&params[port.params as usize], salts.of(link), &arrival) else {
                loss_counters.count(link, &fifos.at(place), DropCause::Full);
                continue;
            };
            if way.is_away() {
                outboxes[way.place()].packets.push(fifos.at(place).passed(passage));
            } else if fifos.pass_on(place, target, passage) {
                schedule.activate(way.node as usize, passage.arrives);
            }
        }
        (Stopped::Done, forwarded)
    }

    /// Queues a packet at a port where control goes before data.
    pub(crate) fn enqueue_by_priority(
        &mut self,
        link: usize,
        mut packet: Packet,
        params: &PortParams,
        salt: u64,
        backlogged: &mut Vec<u32>,
    ) {
        let arrival = packet.arrival();
        let port = &mut self.egress[link].port;
        let idle_at = port.idle_at();
        let Some(passage) = port.enqueue_exact(params, salt, &arrival) else {
            return self.loss_counters.count(link, &packet, DropCause::Full);
        };
        let fifo = self.overtaken[link].fifo.position();
        let waits = !self.fifos.is_empty(fifo) && {
            self.replay(link, params, arrival.now);
            !self.fifos.is_empty(fifo)
        };
        let mut arrives = passage.arrives;
        if waits && arrival.control {
            let served_at = &mut self.overtaken[link].served_at;
            *served_at += params.service(arrival.size);
            arrives = *served_at + params.delay();
        } else if waits || !arrival.control && idle_at >= arrival.now {
            if !waits {
                self.egress[link].port.mode = PortMode::PriorityBacklogged;
                self.overtaken[link].begin(link, idle_at, backlogged);
            }
            packet.label = packet.label_behind(passage);
            self.fifos.push(fifo, packet);
            return;
        }
        self.depart(link, &packet, PortTransit { arrives, ..passage });
    }

    /// Sends waiting packets that enter service before `until`.
    #[inline(always)]
    pub(crate) fn replay(&mut self, link: usize, params: &PortParams, until: Time) {
        let PriorityBacklog { fifo, mut served_at, .. } = self.overtaken[link];
        let fifo = fifo.position();
        while served_at < until && !self.fifos.is_empty(fifo) {
            let packet = self.fifos.pop(fifo);
            served_at = served_at.max(packet.time) + params.service(packet.size.into());
            self.depart(link, &packet, PortTransit { arrives: served_at + params.delay(), marked: false });
        }
        self.overtaken[link].served_at = served_at;
        if self.fifos.is_empty(fifo) {
            self.egress[link].port.mode = PortMode::Priority;
        }
    }

    /// Replays a port's service to the end of a window. Returns whether data still waits.
    pub(crate) fn serve_by_priority(&mut self, link: usize, params: &PortParams, end: Time) -> bool {
        self.replay(link, params, end);
        let overtaken = &mut self.overtaken[link];
        overtaken.listed = !self.fifos.is_empty(overtaken.fifo.position());
        overtaken.listed
    }

    /// Sends a packet on its way after its passage through a port.
    #[inline(always)]
    pub(crate) fn depart(&mut self, link: usize, packet: &Packet, passage: PortTransit) {
        self.depart_with(link, packet, passage, TelemetrySlot::NONE);
    }

    /// Sends a packet on its way, with its report.
    #[inline(always)]
    pub(crate) fn depart_with(&mut self, link: usize, packet: &Packet, passage: PortTransit, report: TelemetrySlot) {
        if !self.failing.is_empty() && self.is_cut(link, packet, passage) {
            self.forget(report);
            return;
        }
        self.depart_by(self.egress[link].way, packet, passage, report);
    }

    /// Works as [`Links::depart_with`], for a link that is never down: see [`Links::failing`].
    #[inline(always)]
    pub(crate) fn depart_by(
        &mut self,
        way: LinkDestination,
        packet: &Packet,
        passage: PortTransit,
        report: TelemetrySlot,
    ) {
        if way.is_away() {
            let mail = &mut self.outboxes[way.place()];
            mail.packets.push(packet.passed(passage));
            if let Some(reports) = &mut self.reports {
                mail.records.push(reports.take(report));
            }
            mail.since.extend(self.since);
            return;
        }
        let since = self.since.unwrap_or_default();
        if self.fifos.push_passed(way.place(), packet, passage, report, since) {
            self.schedule.activate(way.node as usize, passage.arrives);
        }
    }

    /// Returns whether the link is down while a packet's last bit is on it. A pause frame is repeated until it is
    /// delivered, so none is lost; see [`crate::shared_buffer`].
    #[cold]
    fn is_cut(&mut self, link: usize, packet: &Packet, passage: PortTransit) -> bool {
        let Some(failing) = self.failing.get_mut(&(link as u32)) else { return false };
        let arrives = passage.arrives;
        let cut = !packet.is_frame() && failing.outages.cut(arrives - failing.delay, arrives);
        failing.lost += u64::from(cut);
        if cut {
            self.loss_counters.count(link, packet, DropCause::Down);
        }
        cut
    }

    /// Releases the report of a lost packet.
    #[inline]
    pub(crate) fn forget(&mut self, report: TelemetrySlot) {
        if let Some(reports) = &mut self.reports {
            reports.forget(report);
        }
    }
}

/// The link after a port: receives the packets that leave the port.
pub(crate) struct LinkOutlet<'a> {
    pub(crate) links: &'a mut Links,
    pub(crate) link: usize,
    /// Report of the packet that is queued. Only hosts' NICs have one to pass on, and these keep no packet back.
    pub(crate) report: TelemetrySlot,
}

impl PortOutlet<Packet> for LinkOutlet<'_> {
    #[inline(always)]
    fn send(&mut self, packet: Packet, passage: PortTransit) {
        self.links.depart_with(self.link, &packet, passage, self.report);
    }

    fn discard(&mut self, packet: Packet, cause: DropCause) {
        self.links.loss_counters.count(self.link, &packet, cause);
        self.links.forget(self.report);
    }

    fn lose(&mut self, packet: Packet, _: PortTransit) {
        self.discard(packet, DropCause::Chance);
    }

    fn trim(&mut self, packet: &Packet) {
        self.links.loss_counters.count_data(packet);
    }

    fn corrupt(&mut self, packet: &Packet) {
        self.links.loss_counters.count(self.link, packet, DropCause::Corrupted);
    }

    fn duplicate(&mut self, packet: &Packet) {
        self.links.loss_counters.count_copy(packet);
    }
}
