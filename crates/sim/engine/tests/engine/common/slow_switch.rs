//! A switch that shares its buffer, by simple means: the bytes held by a cable are found by scanning all packets in the
//! switch. It follows the documentation of `fabric::Switch`, `fabric::IngressLimit` and `fabric::SharedSwitch`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::{Body, BodyKind, ForwardingHeader, Packet};
use experiment::{LinkOutcome, Setup, SwitchOutcome};
use fabric::{Arrival, CLASSES, InService, Limit, LinkId, Losses, MarkAt, NodeId, PortConfig, Switch};
use units::{Bytes, PrecomputedRate, Span, Time};

use super::oracle::{PHANTOM, buffer, count, draw, exact, long, marker, salt, service_time};

/// A packet that waits.
struct WaitingPacket {
    packet: Packet,
    /// The port of the cable that it is booked on.
    booked: Option<usize>,
    marked: bool,
}

#[derive(Default)]
struct SlowPort {
    queues: [VecDeque<WaitingPacket>; CLASSES],
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
pub(crate) enum SwitchAction {
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
        let packet_in_queue = self.ports.iter().flat_map(|port| &port.queues[class]);
        packet_in_queue.filter(|it| it.booked == Some(cable)).map(|it| u64::from(it.packet.size)).sum()
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
                    shared = shared.saturating_sub(self.port_config(port).ingress_limit.headroom.get());
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
        match self.port_config(cable).ingress_limit.xoff {
            Limit::Bytes(bytes) => bytes.get().min(self.shared_by(cable, class) + self.free()),
            Limit::Alpha(alpha) => alpha.of(self.free()),
        }
    }

    /// A packet arrives over the cable of port `from` and is to leave by `to`.
    pub(crate) fn arrive(&mut self, from: usize, to: LinkId, packet: Packet, actions: &mut Vec<SwitchAction>) {
        let (now, to) = (packet.time, (to.0 - self.first_link) as usize);
        if matches!(packet.kind(), BodyKind::Pause | BodyKind::Resume) {
            self.set_paused(from, usize::from(packet.class()), packet.kind() == BodyKind::Pause, now, actions);
            return;
        }
        let class = self.class(to, &packet);
        if class == 0 {
            self.join(to, WaitingPacket { packet, booked: None, marked: false }, actions);
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
            if !lossless || headroom > self.port_config(from).ingress_limit.headroom.get() {
                self.ports[to].counters.drops += 1;
                packet.count_in(&mut self.ports[to].counters.lost);
                self.headroom_drops += u64::from(lossless);
                return;
            }
            self.headroom.insert((from, class), headroom);
        }
        // From here on it lies in the switch, though it may be gone at once.
        let was_asked = self.should_pause(from, class);
        self.ports[to].queues[class].push_back(WaitingPacket { packet, booked: Some(from), marked: false });
        let held: u64 =
            (0..self.ports.len()).map(|port| (1..CLASSES).map(|it| self.held_by(port, it)).sum::<u64>()).sum();
        self.most_held = self.most_held.max(held);
        let full = self.headroom_of(from, class) > 0 || self.shared_by(from, class) >= self.threshold(from, class);
        if self.config.pfc.is_some() && full {
            self.full.insert((from, class));
        }
        let packet_in_queue = self.ports[to].queues[class].pop_back().unwrap();
        self.send_frame(from, class, was_asked, now, actions);
        self.join(to, packet_in_queue, actions);
    }

    /// Returns whether the sender at a cable's other end is to pause.
    fn should_pause(&self, cable: usize, class: usize) -> bool {
        let relays = self.config.pfc.is_some_and(|pfc| pfc.relay);
        let mut others = (0..self.ports.len()).filter(|&port| port != cable);
        self.full.contains(&(cable, class)) || relays && others.any(|port| self.ports[port].stopped[class])
    }

    /// Sends a frame if the pause state requested of a cable's other end has changed.
    fn send_frame(&mut self, cable: usize, class: usize, was_asked: bool, now: Time, actions: &mut Vec<SwitchAction>) {
        let should_pause = self.should_pause(cable, class);
        let Some(pfc) = self.config.pfc.filter(|_| should_pause != was_asked) else { return };
        let header =
            ForwardingHeader { time: now, size: pfc.frame as u16, class: class as u8, ..ForwardingHeader::default() };
        let packet = Packet::new(header, if should_pause { Body::Pause } else { Body::Resume });
        self.join(cable, WaitingPacket { packet, booked: None, marked: false }, actions);
    }

    fn set_paused(&mut self, port: usize, class: usize, stops: bool, now: Time, actions: &mut Vec<SwitchAction>) {
        let was_asked: Vec<bool> = (0..self.ports.len()).map(|cable| self.should_pause(cable, class)).collect();
        let target = &mut self.ports[port];
        let was_stopped = target.stopped.contains(&true);
        target.counters.pauses += u64::from(stops && !target.stopped[class]);
        target.stopped[class] = stops;
        match (was_stopped, target.stopped.contains(&true)) {
            (false, true) => target.stopped_since = now,
            (true, false) => target.counters.paused += now.since(target.stopped_since),
            _ => {}
        }
        actions.push(SwitchAction::Decides(self.link(port), now.max(self.ports[port].busy_until)));
        for (cable, was_asked) in was_asked.into_iter().enumerate() {
            self.send_frame(cable, class, was_asked, now, actions);
        }
    }

    /// A packet joins a port's queue, or leaves at once where nothing is before it.
    fn join(&mut self, to: usize, mut packet_in_queue: WaitingPacket, actions: &mut Vec<SwitchAction>) {
        let config = self.port_config(to);
        let is_frame = |it: &WaitingPacket| matches!(it.packet.kind(), BodyKind::Pause | BodyKind::Resume);
        let of_class = |it: &&mut WaitingPacket| is_frame(it) && it.packet.class() == packet_in_queue.packet.class();
        if is_frame(&packet_in_queue)
            && let Some(waits) = self.ports[to].queues[0].iter_mut().find(of_class)
        {
            // The frame has the present state; nothing more is sent.
            *waits = packet_in_queue;
            return;
        }
        let serializer = PrecomputedRate::new(config.rate);
        let salt = salt(self.setup, self.link(to));
        let arrival = fabric::QueueItem::arrival(&packet_in_queue.packet);
        let now = arrival.now;
        let class = self.class(to, &packet_in_queue.packet);
        let before = self.before(to, class);
        let port = &mut self.ports[to];
        if let Some(phantom) = &config.phantom {
            let drain = PrecomputedRate::new(config.rate.scaled(phantom.drain));
            let backlog = port.phantom_empty_at.saturating_since(now);
            packet_in_queue.marked = marker(&phantom.ecn, drain).marks(backlog, || draw(salt ^ PHANTOM, &arrival));
            let full = long(drain, phantom.size);
            port.phantom_empty_at = now + (backlog + exact(drain, packet_in_queue.packet.size.into())).min(full);
        }
        let rest = port.busy_until.saturating_since(now);
        let backlog = before
            + match config.in_service {
                InService::Remaining => rest,
                InService::All if rest > Span::ZERO => port.serving,
                InService::All | InService::None => Span::ZERO,
            };
        if let Some(ecn) = &config.ecn {
            packet_in_queue.marked |= marker(ecn, serializer).marks(backlog, || draw(salt, &arrival));
        }
        packet_in_queue.marked &= arrival.ecn_capable;
        let may_leave = |it: &SlowPort, class: usize| !it.stopped[class] && !it.queues[class].is_empty();
        let at_once =
            port.busy_until < now && !port.stopped[class] && !(0..CLASSES).any(|class| may_leave(port, class));
        if at_once {
            self.serve(to, class, &packet_in_queue, now, actions);
            return;
        }
        if is_frame(&packet_in_queue) {
            let frames = port.queues[0].iter().filter(|it| is_frame(it)).count();
            port.queues[0].insert(frames, packet_in_queue);
        } else {
            port.queues[class].push_back(packet_in_queue);
        }
        let queue =
            port.queues.iter().flatten().map(|it| Bytes::new(it.packet.size.into())).fold(Bytes::ZERO, |a, b| a + b);
        port.counters.max_queue = port.counters.max_queue.max(queue);
        actions.push(SwitchAction::Decides(LinkId(self.first_link + to as u32), now.max(self.ports[to].busy_until)));
    }

    /// Service time of a class's waiting packets and of the control packets that precede them.
    fn before(&self, port: usize, class: usize) -> Span {
        let classes = if class == 0 { vec![0] } else { vec![0, class] };
        let packet_in_queue = classes.into_iter().flat_map(|class| &self.ports[port].queues[class]);
        packet_in_queue.map(|it| self.service(port, &it.packet)).sum()
    }

    /// A port takes the next packet, if it is free and has one that may leave: control first, data classes in turn.
    pub(crate) fn decide(&mut self, link: LinkId, now: Time, actions: &mut Vec<SwitchAction>) {
        let port = (link.0 - self.first_link) as usize;
        let target = &mut self.ports[port];
        if target.busy_until > now {
            return;
        }
        let turns = std::iter::once(0).chain((1..CLASSES).map(|step| (target.turn + step - 1) % (CLASSES - 1) + 1));
        for class in turns {
            if !target.stopped[class]
                && let Some(packet_in_queue) = target.queues[class].pop_front()
            {
                self.serve(port, class, &packet_in_queue, now, actions);
                return;
            }
        }
    }

    fn serve(
        &mut self,
        port: usize,
        class: usize,
        packet_in_queue: &WaitingPacket,
        now: Time,
        actions: &mut Vec<SwitchAction>,
    ) {
        let (config, link) = (self.port_config(port), self.link(port));
        let serializer = PrecomputedRate::new(config.rate);
        let salt = salt(self.setup, link);
        let WaitingPacket { mut packet, booked, mut marked } = *packet_in_queue;
        let arrival = fabric::QueueItem::arrival(&packet);
        if config.mark_at == MarkAt::Dequeue {
            let at = Arrival { now, ..arrival };
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
        let (serving, service) = (self.service(port, &packet), service_time(config, packet.size.into()));
        let params = self.setup.network.port(link);
        let port = &mut self.ports[port];
        let lost = !packet.is_frame() && port.losses.loses(params, salt, &arrival);
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
            actions.push(SwitchAction::Leaves(link, packet, now + service));
        }
        actions.push(SwitchAction::Decides(link, now + service));
        // It has left the buffer: its space is free, headroom first.
        let Some(cable) = booked else { return };
        let was_asked = self.should_pause(cable, class);
        let headroom = self.headroom_of(cable, class).saturating_sub(size);
        self.headroom.insert((cable, class), headroom);
        let shared = self.shared_by(cable, class);
        let hysteresis = self.port_config(cable).ingress_limit.xon_offset.get();
        if headroom == 0 && (shared == 0 || shared + hysteresis <= self.threshold(cable, class)) {
            self.full.remove(&(cable, class));
        }
        self.send_frame(cable, class, was_asked, now, actions);
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
