//! A switch that shares its buffer, by simple means: the bytes held by a cable are found by scanning all packets in the
//! switch. It follows the documentation of `fabric::Switch`, `fabric::IngressLimit` and `fabric::SharedSwitch`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::{Body, BodyKind, ForwardingHeader, Packet};
use experiment::{LinkOutcome, Setup, SwitchOutcome};
use fabric::{Arrival, CLASSES, InService, Limit, LinkId, Losses, MarkAt, NodeId, PortConfig, Switch};
use units::{Bytes, PrecomputedRate, Span, Time};

use super::oracle::{PHANTOM, buffer, count, draw, exact, lasts, long, marker, salt};

/// A packet that waits.
struct Lying {
    packet: Packet,
    /// The port of the cable that it is booked on.
    booked: Option<usize>,
    marked: bool,
}

#[derive(Default)]
struct SlowPort {
    queues: [VecDeque<Lying>; CLASSES],
    busy_until: Time,
    /// Transmission time of the packet that was served last, by its bytes.
    serving: Span,
    /// The data class that was served last.
    turn: usize,
    stopped: [bool; CLASSES],
    stopped_since: Time,
    phantom_empty_at: Time,
    losses: Losses,
    counters: LinkOutcome,
}

/// Requests of the switch to the engine.
pub(crate) enum Wish {
    /// A packet's last bit will have left by this link then.
    Leaves(LinkId, Packet, Time),
    /// A port chooses the packet to serve at this time, after all arrivals at that time.
    Decides(LinkId, Time),
}

pub(crate) struct SlowSwitch<'a> {
    setup: &'a Setup,
    node: NodeId,
    config: Switch,
    first_link: u32,
    ports: Vec<SlowPort>,
    /// (port, class) of cables with packets above their limit.
    full: BTreeSet<(usize, usize)>,
    /// Bytes of a cable's packets, by (port, class), that are booked on its headroom.
    headroom: BTreeMap<(usize, usize), u64>,
    most_held: u64,
    headroom_drops: u64,
}

impl<'a> SlowSwitch<'a> {
    pub(crate) fn new(setup: &'a Setup, node: NodeId, config: Switch) -> Self {
        let links = setup.network.links_out(node);
        Self {
            setup,
            node,
            config,
            first_link: links.start,
            ports: links.map(|_| SlowPort::default()).collect(),
            full: BTreeSet::new(),
            headroom: BTreeMap::new(),
            most_held: 0,
            headroom_drops: 0,
        }
    }

    fn link(&self, port: usize) -> LinkId {
        LinkId(self.first_link + port as u32)
    }

    fn port_config(&self, port: usize) -> &'a PortConfig {
        self.setup.network.port(self.link(port)).config()
    }

    /// Returns the service time of a waiting packet.
    fn service(&self, port: usize, packet: &Packet) -> Span {
        exact(PrecomputedRate::new(self.port_config(port).rate), packet.size.into())
    }

    /// A packet's class at a port.
    fn class(&self, port: usize, packet: &Packet) -> usize {
        match packet.kind() {
            BodyKind::Pause | BodyKind::Resume | BodyKind::Feedback => 0,
            _ if self.port_config(port).control_priority && packet.arrival().control => 0,
            _ => usize::from(packet.class()).max(1),
        }
    }

    /// Bytes booked on a cable's class, all ports gone through.
    fn held_by(&self, cable: usize, class: usize) -> u64 {
        let lying = self.ports.iter().flat_map(|port| &port.queues[class]);
        lying.filter(|it| it.booked == Some(cable)).map(|it| u64::from(it.packet.size)).sum()
    }

    fn headroom_of(&self, cable: usize, class: usize) -> u64 {
        self.headroom.get(&(cable, class)).copied().unwrap_or(0)
    }

    /// Returns the bytes of a cable's class in the shared part: neither headroom nor reserve.
    fn shared_by(&self, cable: usize, class: usize) -> u64 {
        (self.held_by(cable, class) - self.headroom_of(cable, class)).saturating_sub(self.config.reserve.get())
    }

    /// Returns the free bytes of the shared part.
    fn free(&self) -> u64 {
        let classes: BTreeSet<u8> = self.setup.flows.iter().map(|flow| flow.class).collect();
        let mut shared = self.config.buffer.get();
        for port in 0..self.ports.len() {
            for _ in 0..classes.len().max(1) {
                shared = shared.saturating_sub(self.config.reserve.get());
                if self.config.pfc.is_some() {
                    shared = shared.saturating_sub(self.port_config(port).gate.headroom.get());
                }
            }
        }
        let used: u64 = (0..self.ports.len())
            .flat_map(|port| (1..CLASSES).map(move |class| (port, class)))
            .map(|(port, class)| self.shared_by(port, class))
            .sum();
        shared - used
    }

    /// Returns the limit of a cable's class in the shared part.
    fn threshold(&self, cable: usize, class: usize) -> u64 {
        match self.port_config(cable).gate.off {
            Limit::Bytes(bytes) => bytes.get().min(self.shared_by(cable, class) + self.free()),
            Limit::Alpha(alpha) => alpha.of(self.free()),
        }
    }

    /// A packet arrives over the cable of port `from` and is to leave by `to`.
    pub(crate) fn arrive(&mut self, from: usize, to: LinkId, packet: Packet, wishes: &mut Vec<Wish>) {
        let (now, to) = (packet.time, (to.0 - self.first_link) as usize);
        if matches!(packet.kind(), BodyKind::Pause | BodyKind::Resume) {
            self.stop_or_go(from, usize::from(packet.class()), packet.kind() == BodyKind::Pause, now, wishes);
            return;
        }
        let class = self.class(to, &packet);
        if class == 0 {
            self.join(to, Lying { packet, booked: None, marked: false }, wishes);
            return;
        }
        let size = u64::from(packet.size);
        let config = self.port_config(to);
        let serializer = PrecomputedRate::new(config.rate);
        let waiting: Span =
            self.ports[to].queues.iter().flatten().map(|it| exact(serializer, it.packet.size.into())).sum();
        let backlog = waiting + self.ports[to].busy_until.saturating_since(now);
        let too_long = backlog + exact(serializer, packet.size.into()) > buffer(config.buffer, serializer);
        let queue: u64 = self.ports[to].queues[class].iter().map(|it| u64::from(it.packet.size)).sum();
        let too_much = self.config.egress_alpha.is_some_and(|alpha| queue + size > alpha.of(self.free()));
        if too_long || too_much {
            self.ports[to].counters.drops += 1;
            packet.count_in(&mut self.ports[to].counters.lost);
            return;
        }
        let held = self.held_by(from, class) - self.headroom_of(from, class);
        let over = |held: u64| held.saturating_sub(self.config.reserve.get());
        let (before, after) = (over(held), over(held + size));
        let fits = after == 0 || after <= self.threshold(from, class) && after - before <= self.free();
        if !fits {
            let headroom = self.headroom_of(from, class) + size;
            let lossless = self.config.pfc.is_some();
            if !lossless || headroom > self.port_config(from).gate.headroom.get() {
                self.ports[to].counters.drops += 1;
                packet.count_in(&mut self.ports[to].counters.lost);
                self.headroom_drops += u64::from(lossless);
                return;
            }
            self.headroom.insert((from, class), headroom);
        }
        // From here on it lies in the switch, though it may be gone at once.
        let asked = self.asks(from, class);
        self.ports[to].queues[class].push_back(Lying { packet, booked: Some(from), marked: false });
        let held: u64 =
            (0..self.ports.len()).map(|port| (1..CLASSES).map(|it| self.held_by(port, it)).sum::<u64>()).sum();
        self.most_held = self.most_held.max(held);
        let full = self.headroom_of(from, class) > 0 || self.shared_by(from, class) >= self.threshold(from, class);
        if self.config.pfc.is_some() && full {
            self.full.insert((from, class));
        }
        let lying = self.ports[to].queues[class].pop_back().unwrap();
        self.tell(from, class, asked, now, wishes);
        self.join(to, lying, wishes);
    }

    /// Returns whether the sender at a cable's other end is to pause.
    fn asks(&self, cable: usize, class: usize) -> bool {
        let relays = self.config.pfc.is_some_and(|pfc| pfc.relay);
        let mut others = (0..self.ports.len()).filter(|&port| port != cable);
        self.full.contains(&(cable, class)) || relays && others.any(|port| self.ports[port].stopped[class])
    }

    /// Sends a frame if the pause state requested of a cable's other end has changed.
    fn tell(&mut self, cable: usize, class: usize, asked: bool, now: Time, wishes: &mut Vec<Wish>) {
        let asks = self.asks(cable, class);
        let Some(pfc) = self.config.pfc.filter(|_| asks != asked) else { return };
        let header =
            ForwardingHeader { time: now, size: pfc.frame as u16, class: class as u8, ..ForwardingHeader::default() };
        let packet = Packet::new(header, if asks { Body::Pause } else { Body::Resume });
        self.join(cable, Lying { packet, booked: None, marked: false }, wishes);
    }

    fn stop_or_go(&mut self, port: usize, class: usize, stops: bool, now: Time, wishes: &mut Vec<Wish>) {
        let asked: Vec<bool> = (0..self.ports.len()).map(|cable| self.asks(cable, class)).collect();
        let target = &mut self.ports[port];
        let was_stopped = target.stopped.contains(&true);
        target.counters.pauses += u64::from(stops && !target.stopped[class]);
        target.stopped[class] = stops;
        match (was_stopped, target.stopped.contains(&true)) {
            (false, true) => target.stopped_since = now,
            (true, false) => target.counters.paused += now.since(target.stopped_since),
            _ => {}
        }
        wishes.push(Wish::Decides(self.link(port), now.max(self.ports[port].busy_until)));
        for (cable, asked) in asked.into_iter().enumerate() {
            self.tell(cable, class, asked, now, wishes);
        }
    }

    /// A packet joins a port's queue, or leaves at once where nothing is before it.
    fn join(&mut self, to: usize, mut lying: Lying, wishes: &mut Vec<Wish>) {
        let config = self.port_config(to);
        let is_frame = |it: &Lying| matches!(it.packet.kind(), BodyKind::Pause | BodyKind::Resume);
        let of_class = |it: &&mut Lying| is_frame(it) && it.packet.class() == lying.packet.class();
        if is_frame(&lying)
            && let Some(waits) = self.ports[to].queues[0].iter_mut().find(of_class)
        {
            // The frame has the present state; nothing more is sent.
            *waits = lying;
            return;
        }
        let serializer = PrecomputedRate::new(config.rate);
        let salt = salt(self.setup, self.link(to));
        let arrival = fabric::QueueItem::arrival(&lying.packet);
        let now = arrival.now;
        let class = self.class(to, &lying.packet);
        let before = self.before(to, class);
        let port = &mut self.ports[to];
        if let Some(phantom) = &config.phantom {
            let drain = PrecomputedRate::new(config.rate.scaled(phantom.drain));
            let backlog = port.phantom_empty_at.saturating_since(now);
            lying.marked = marker(&phantom.ecn, drain).marks(backlog, || draw(salt ^ PHANTOM, &arrival));
            let full = long(drain, phantom.size);
            port.phantom_empty_at = now + (backlog + exact(drain, lying.packet.size.into())).min(full);
        }
        let rest = port.busy_until.saturating_since(now);
        let backlog = before
            + match config.in_service {
                InService::Remainder => rest,
                InService::Whole if rest > Span::ZERO => port.serving,
                InService::Whole | InService::Excluded => Span::ZERO,
            };
        if let Some(ecn) = &config.ecn {
            lying.marked |= marker(ecn, serializer).marks(backlog, || draw(salt, &arrival));
        }
        lying.marked &= arrival.ecn_capable;
        let may_leave = |it: &SlowPort, class: usize| !it.stopped[class] && !it.queues[class].is_empty();
        let at_once =
            port.busy_until < now && !port.stopped[class] && !(0..CLASSES).any(|class| may_leave(port, class));
        if at_once {
            self.serve(to, class, &lying, now, wishes);
            return;
        }
        if is_frame(&lying) {
            let frames = port.queues[0].iter().filter(|it| is_frame(it)).count();
            port.queues[0].insert(frames, lying);
        } else {
            port.queues[class].push_back(lying);
        }
        let queue =
            port.queues.iter().flatten().map(|it| Bytes::new(it.packet.size.into())).fold(Bytes::ZERO, |a, b| a + b);
        port.counters.max_queue = port.counters.max_queue.max(queue);
        wishes.push(Wish::Decides(LinkId(self.first_link + to as u32), now.max(self.ports[to].busy_until)));
    }

    /// Service time of a class's waiting packets and of the control packets that precede them.
    fn before(&self, port: usize, class: usize) -> Span {
        let classes = if class == 0 { vec![0] } else { vec![0, class] };
        let lying = classes.into_iter().flat_map(|class| &self.ports[port].queues[class]);
        lying.map(|it| self.service(port, &it.packet)).sum()
    }

    /// A port takes the next packet, if it is free and has one that may leave: control first, data classes in turn.
    pub(crate) fn decide(&mut self, link: LinkId, now: Time, wishes: &mut Vec<Wish>) {
        let port = (link.0 - self.first_link) as usize;
        let target = &mut self.ports[port];
        if target.busy_until > now {
            return;
        }
        let turns = std::iter::once(0).chain((1..CLASSES).map(|step| (target.turn + step - 1) % (CLASSES - 1) + 1));
        for class in turns {
            if !target.stopped[class]
                && let Some(lying) = target.queues[class].pop_front()
            {
                self.serve(port, class, &lying, now, wishes);
                return;
            }
        }
    }

    fn serve(&mut self, port: usize, class: usize, lying: &Lying, now: Time, wishes: &mut Vec<Wish>) {
        let (config, link) = (self.port_config(port), self.link(port));
        let serializer = PrecomputedRate::new(config.rate);
        let salt = salt(self.setup, link);
        let Lying { mut packet, booked, mut marked } = *lying;
        let came = fabric::QueueItem::arrival(&packet);
        if config.mark_at == MarkAt::Dequeue {
            let at = Arrival { now, ..came };
            marked = config
                .ecn
                .is_some_and(|ecn| marker(&ecn, serializer).marks(self.before(port, class), || draw(salt, &at)));
            if let Some(phantom) = &config.phantom {
                let drain = PrecomputedRate::new(config.rate.scaled(phantom.drain));
                let backlog = self.ports[port].phantom_empty_at.saturating_since(now);
                marked |= marker(&phantom.ecn, drain).marks(backlog, || draw(salt ^ PHANTOM, &at));
            }
            marked &= at.ecn_capable;
        }
        let (serving, service) = (self.service(port, &packet), lasts(config, packet.size.into()));
        let params = self.setup.network.port(link);
        let port = &mut self.ports[port];
        let lost = !packet.is_frame() && port.losses.loses(params, salt, &came);
        if lost {
            packet.count_in(&mut port.counters.lost);
        }
        (port.busy_until, port.serving) = (now + service, serving);
        if class > 0 {
            port.turn = class;
        }
        count(&mut port.counters, &packet, marked);
        let size = u64::from(packet.size);
        if marked {
            packet.mark();
        }
        if !lost {
            wishes.push(Wish::Leaves(link, packet, now + service));
        }
        wishes.push(Wish::Decides(link, now + service));
        // It has left the buffer: its space is free, headroom first.
        let Some(cable) = booked else { return };
        let asked = self.asks(cable, class);
        let headroom = self.headroom_of(cable, class).saturating_sub(size);
        self.headroom.insert((cable, class), headroom);
        let shared = self.shared_by(cable, class);
        let hysteresis = self.port_config(cable).gate.hysteresis.get();
        if headroom == 0 && (shared == 0 || shared + hysteresis <= self.threshold(cable, class)) {
            self.full.remove(&(cable, class));
        }
        self.tell(cable, class, asked, now, wishes);
    }

    pub(crate) fn outcome(&self) -> SwitchOutcome {
        SwitchOutcome {
            node: self.node,
            max_buffer: Bytes::new(self.most_held),
            headroom_drops: self.headroom_drops,
            messages: 0,
            notifications: 0,
        }
    }

    /// The links out, pauses counted until `end`.
    pub(crate) fn links(&self, end: Time) -> Vec<LinkOutcome> {
        let link = |port: &SlowPort| {
            let lasting = if port.stopped.contains(&true) { end.since(port.stopped_since) } else { Span::ZERO };
            let paused = port.counters.paused + lasting;
            LinkOutcome { paused, losses: port.losses.count(), ..port.counters }
        };
        self.ports.iter().map(link).collect()
    }
}
