//! The oracle: one global queue of events, two events a hop (service ends, packet arrives), ports that really hold
//! packets. Slow, simple, and written without the engine; it shares with it only the hosts. Switches that share their
//! buffer are in `slow_switch`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use engine::Packet;
use engine::host::{Context, Nic, PartitionHosts};
use experiment::{ByKind, FlowOutcome, FlowSpec, LinkOutcome, Setup, SwitchOutcome};
use fabric::{Arrival, CreditQueue, InService, LinkId, Losses, MarkAt, Marker, NodeId, NodeKind, PortConfig};
use laws::{ControlLaw, PathInfo};
use units::{Bytes, PrecomputedRate, Span, Time, mix64};

use super::slow_switch::{SlowSwitch, SwitchAction};

/// Salt of a phantom queue's random decisions, in addition to the port's.
pub(crate) const PHANTOM: u64 = 0x5048_414e_544f_4d00;

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum OracleEvent {
    /// Input link first: it breaks ties.
    Arrive(u32),
    ServiceEnds(u32),
    /// The port's bucket may let its first credit out.
    Tokens(u32),
    HostWakes(u32),
}

/// A packet, whether it is marked, and whether the link loses it, where that is decided.
type OraclePacket = (Packet, bool, Option<bool>);

#[derive(Default)]
struct OraclePort {
    control: VecDeque<OraclePacket>,
    data: VecDeque<OraclePacket>,
    credits: VecDeque<Packet>,
    bucket: Bucket,
    in_service: Option<Packet>,
    service_ends: Time,
    phantom_empty_at: Time,
    counters: LinkOutcome,
    losses: Losses,
    max_backlog: Span,
}

/// Tokens, in the time of the link that a credit stands for, as they were at a time.
#[derive(Default)]
struct Bucket {
    at: Time,
    missing: Span,
}

impl Bucket {
    /// Returns the missing tokens of a full bucket at a time.
    fn missing(&self, now: Time) -> Span {
        (self.missing - now.since(self.at)).max(Span::ZERO)
    }
}

/// Time of credits as time of the link, rounded up.
fn of_link(queue: &CreditQueue, credits: Span) -> Span {
    let ps = credits.unsigned_ps() * u64::from(queue.credit + queue.data);
    Span::from_unsigned_ps(ps.div_ceil(queue.credit.into()))
}

pub(crate) struct Oracle<'a, L, F> {
    setup: &'a Setup,
    context: Context<'a, F>,
    hosts: PartitionHosts<L>,
    ports: Vec<OraclePort>,
    /// By node.
    switches: Vec<Option<SlowSwitch<'a>>>,
    /// (time, event, order of scheduling), with packets stored separately.
    events: BinaryHeap<Reverse<(Time, OracleEvent, u64)>>,
    packets: std::collections::BTreeMap<u64, Packet>,
    serial: u64,
}

struct OracleNic<'b> {
    idle_at: Time,
    config: &'b PortConfig,
    sent: &'b mut Vec<Packet>,
}

impl Nic for OracleNic<'_> {
    fn idle_at(&self) -> Time {
        self.idle_at
    }
    fn transmit(&mut self, packet: Packet) {
        self.idle_at = self.idle_at.max(packet.time) + service_time(self.config, packet.size.into());
        self.sent.push(packet);
    }
}

impl<'a, L: ControlLaw, F: Fn(&FlowSpec, &PathInfo) -> L> Oracle<'a, L, F> {
    pub(crate) fn new(setup: &'a Setup, make_law: &'a F) -> Self {
        let ids: Vec<_> = (0..setup.network.hosts().len() as u32).map(fabric::HostId).collect();
        let ports = setup.network.links().iter().map(|_| OraclePort::default()).collect();
        let shares = |(index, node): (usize, &fabric::Node)| {
            node.switch.map(|config| SlowSwitch::new(setup, NodeId(index as u32), config))
        };
        let mut oracle = Self {
            setup,
            switches: setup.network.nodes().iter().enumerate().map(shares).collect(),
            context: Context::new(setup, make_law),
            hosts: PartitionHosts::new(&ids, setup),
            ports,
            events: BinaryHeap::new(),
            packets: std::collections::BTreeMap::new(),
            serial: 0,
        };
        for host in 0..ids.len() as u32 {
            oracle.wake(host);
        }
        oracle
    }

    /// Runs to the stop; returns flows, links, and switches that share their buffer.
    pub(crate) fn run(mut self) -> (Vec<Option<FlowOutcome>>, Vec<LinkOutcome>, Vec<SwitchOutcome>) {
        let stop = self.setup.stop;
        while let Some(Reverse((now, what, serial))) = self.events.pop() {
            if now >= stop {
                break;
            }
            match what {
                OracleEvent::Arrive(link) => {
                    let packet = self.packets.remove(&serial).unwrap();
                    self.arrive(LinkId(link), packet);
                }
                OracleEvent::ServiceEnds(link) => {
                    let node = self.setup.network.links()[link as usize].from;
                    if self.switches[node.index()].is_some() {
                        self.switch(node, |it, actions| it.decide(LinkId(link), now, actions));
                    } else {
                        self.service_ends(LinkId(link), now);
                    }
                }
                OracleEvent::Tokens(link) => {
                    if self.ports[link as usize].in_service.is_none() {
                        self.serve(LinkId(link), now);
                    }
                }
                OracleEvent::HostWakes(host) => self.host_wakes(host, now),
            }
        }
        self.hosts.finish(stop, self.setup);
        let mut flows = vec![None; self.setup.flows.len()];
        for &(flow, outcome) in &self.hosts.outcomes {
            flows[flow as usize] = Some(outcome);
        }
        for (&flow, counts) in &self.hosts.receiver_counters {
            if let Some(flow) = &mut flows[flow as usize] {
                counts.add_to(flow);
            }
        }
        let links = (0u32..).zip(&self.ports).map(|(link, port)| {
            let params = self.setup.network.port(LinkId(link));
            let cut = self.cut_later(LinkId(link));
            let losses = port.counters.losses + port.losses.count() + cut.total();
            let mut lost = port.counters.lost;
            lost.add(&cut);
            LinkOutcome { max_queue: params.bytes_in(port.max_backlog), losses, lost, ..port.counters }
        });
        let mut links: Vec<LinkOutcome> = links.collect();
        for switch in self.switches.iter().flatten() {
            let first = self.setup.network.links_out(switch.outcome().node).start as usize;
            for (port, outcome) in switch.links(stop).into_iter().enumerate() {
                let cut = links[first + port];
                let mut lost = outcome.lost;
                lost.add(&cut.lost);
                links[first + port] = LinkOutcome { losses: outcome.losses + cut.losses, lost, ..outcome };
            }
        }
        for host in 0..self.setup.network.hosts().len() {
            let link = self.setup.network.uplink(fabric::HostId(host as u32));
            let link = &mut links[link.index()];
            (link.pauses, link.paused) = self.hosts.pauses(host, stop);
            link.credit_drops = self.hosts.credit_drops(host);
        }
        (flows, links, self.switches.iter().flatten().map(SlowSwitch::outcome).collect())
    }

    /// Lets a shared-buffer switch act, and performs the actions that it requests.
    fn switch(&mut self, node: NodeId, acts: impl FnOnce(&mut SlowSwitch<'a>, &mut Vec<SwitchAction>)) {
        let mut actions = Vec::new();
        acts(self.switches[node.index()].as_mut().unwrap(), &mut actions);
        for action in actions {
            match action {
                SwitchAction::Decides(link, time) => {
                    self.at(time, OracleEvent::ServiceEnds(link.0));
                }
                SwitchAction::Leaves(link, mut packet, ends) => {
                    packet.time = ends + self.setup.network.port(link).config().delay;
                    if cut(self.setup, link, &packet, ends) {
                        self.ports[link.index()].counters.losses += 1;
                        count_if(true, &mut self.ports[link.index()].counters, &packet);
                        continue;
                    }
                    let serial = self.at(packet.time, OracleEvent::Arrive(link.0));
                    self.packets.insert(serial, packet);
                }
            }
        }
    }

    fn at(&mut self, time: Time, what: OracleEvent) -> u64 {
        self.serial += 1;
        self.events.push(Reverse((time, what, self.serial)));
        self.serial
    }

    fn wake(&mut self, host: u32) {
        let up = self.setup.network.uplink(fabric::HostId(host));
        let next = self.hosts.next_at(host as usize, self.idle_at(up));
        if next.is_set() {
            self.at(next, OracleEvent::HostWakes(host));
        }
    }

    /// Returns the time at which all packets of a host's NIC will have left.
    fn idle_at(&self, up: LinkId) -> Time {
        let port = &self.ports[up.index()];
        let config = self.setup.network.port(up).config();
        let waiting: Span = port.data.iter().map(|(packet, ..)| service_time(config, packet.size.into())).sum();
        port.service_ends + waiting
    }

    fn host_wakes(&mut self, host: u32, now: Time) {
        let up = self.setup.network.uplink(fabric::HostId(host));
        let idle_at = self.idle_at(up);
        if self.hosts.next_at(host as usize, idle_at) != now {
            return;
        }
        let config = self.setup.network.port(up).config();
        let mut sent = Vec::new();
        self.hosts.on_local(host as usize, now, &self.context, &mut OracleNic { idle_at, config, sent: &mut sent });
        self.after_host(host, up, sent);
    }

    fn after_host(&mut self, host: u32, up: LinkId, sent: Vec<Packet>) {
        for packet in sent {
            self.enqueue(up, packet);
        }
        for notice in std::mem::take(&mut self.hosts.notices) {
            let src = self.setup.flows[notice.flow.0 as usize].src;
            if self.hosts.on_dependency_met(src.index(), notice, self.setup).is_some() {
                self.wake(src.0);
            }
        }
        self.wake(host);
    }

    fn arrive(&mut self, link: LinkId, packet: Packet) {
        let to = self.setup.network.links()[link.index()].to;
        if let NodeKind::Host(host) = self.setup.network.nodes()[to.index()].kind {
            let up = self.setup.network.uplink(host);
            let idle_at = self.idle_at(up);
            let config = self.setup.network.port(up).config();
            let mut sent = Vec::new();
            self.hosts.on_packet(
                host.index(),
                &packet,
                engine::TelemetrySlot::NONE,
                &self.context,
                &mut OracleNic { idle_at, config, sent: &mut sent },
            );
            self.after_host(host.0, up, sent);
            return;
        }
        let salt = mix64(self.setup.seed ^ mix64(u64::from(to.0)));
        let from = self.setup.routes.at(packet.time).from(NodeId(to.0));
        let ports = from.ports(fabric::HostId(packet.dst));
        let hash = packet.path_hash(salt);
        let by_hash = || ports[units::below(hash, ports.len() as u32) as usize];
        let out = self.reversed(to, &packet).filter(|link| ports.contains(link)).unwrap_or_else(by_hash);
        if self.switches[to.index()].is_some() {
            let reverse = self.setup.network.links()[link.index()].reverse;
            let from = (reverse.0 - self.setup.network.links_out(to).start) as usize;
            self.switch(to, |it, actions| it.arrive(from, out, packet, actions));
        } else if !matches!(packet.kind(), engine::BodyKind::Pause | engine::BodyKind::Resume) {
            self.enqueue(out, packet);
        }
    }

    /// Returns the reverse link for a packet on its way back, if the network is symmetric: computes the flow's whole
    /// path, finds the link that leads to this switch, and reverses it.
    fn reversed(&self, switch: NodeId, packet: &Packet) -> Option<LinkId> {
        let flow = &self.setup.flows[packet.flow as usize];
        if !self.setup.symmetric || packet.dst != flow.src.0 {
            return None;
        }
        let pick = |node: NodeId, ports| {
            let salt = mix64(self.setup.seed ^ mix64(u64::from(node.0)));
            units::below(packet.path_hash(salt), ports)
        };
        let path = self.setup.routes.at(packet.time).path(&self.setup.network, flow.src, flow.dst, pick);
        let links = path.iter().map(|link| &self.setup.network.links()[link.index()]);
        links.into_iter().find(|link| link.to == switch).map(|link| link.reverse)
    }

    fn enqueue(&mut self, link: LinkId, packet: Packet) {
        let arrival = packet.arrival();
        let config = self.setup.network.port(link).config();
        let is_nic = matches!(
            self.setup.network.nodes()[self.setup.network.links()[link.index()].from.index()].kind,
            NodeKind::Host(_)
        );
        let serializer = PrecomputedRate::new(config.rate);
        // Bytes that wait at a NIC count as their service time, bytes that wait at a switch by number.
        let service = |packet: &Packet| {
            let size = packet.size.into();
            if is_nic { service_time(config, size) } else { exact(serializer, size) }
        };
        let salt = salt(self.setup, link);
        let port = &mut self.ports[link.index()];
        let now = arrival.now;
        let remainder = if port.in_service.is_some() { port.service_ends.since(now) } else { Span::ZERO };
        let [control, data] =
            [&port.control, &port.data].map(|queue| queue.iter().map(|(packet, ..)| service(packet)).sum::<Span>());
        let waiting = control + data;
        if let Some(queue) = config.credits.filter(|_| !is_nic) {
            if arrival.credit {
                // One that finds everything idle and its tokens there never waits.
                let idle = port.in_service.is_none() && port.credits.is_empty();
                let full = bucket(&queue, serializer);
                let cost = of_link(&queue, service(&packet)).min(full);
                let at_once = idle && port.bucket.missing(now) + cost <= full;
                let room = if arrival.expendable { queue.threshold.min(queue.limit) } else { queue.limit };
                if !at_once && port.credits.len() >= room as usize {
                    port.counters.credit_drops += 1;
                    return;
                }
                port.credits.push_back(packet);
                // Where others wait, the bucket's event is under way; a decision at this very time comes after all arrivals.
                if idle {
                    self.serve(link, now);
                }
                return;
            }
            let limit = queue.unscheduled.map_or(Span::MAX, |bytes| long(serializer, bytes));
            if arrival.expendable && waiting + remainder >= limit {
                port.counters.drops += 1;
                packet.count_in(&mut port.counters.lost);
                port.counters.unscheduled_drops += 1;
                return;
            }
        }
        // Where a port trims, control and data have rooms of their own, and only data counts for marks.
        let trim = config.trim.filter(|_| !is_nic);
        let serving = port.in_service.map(|packet| packet.arrival()).filter(|_| remainder > Span::ZERO);
        let of_class = |control| serving.is_some_and(|it| !it.credit && it.control == control);
        let (waits, room) = match trim {
            None => (waiting + remainder, config.buffer),
            Some(trim) => {
                let (waits, room) = if arrival.control { (control, trim.control) } else { (data, config.buffer) };
                (waits + if of_class(arrival.control) { remainder } else { Span::ZERO }, room)
            }
        };
        let is_full = waits + service(&packet) > buffer(room, serializer);
        if let (true, Some(trim), true) = (is_full, trim, packet.is_data() && !arrival.expendable) {
            port.counters.trims += 1;
            return self.enqueue(link, packet.trimmed(trim.header));
        }
        if is_full {
            port.counters.drops += 1;
            packet.count_in(&mut port.counters.lost);
            let credits = config.credits.is_some() && !is_nic;
            port.counters.unscheduled_drops += u64::from(credits && arrival.expendable);
            return;
        }
        let mut marked = false;
        if let Some(phantom) = &config.phantom {
            let drain = PrecomputedRate::new(config.rate.scaled(phantom.drain));
            let backlog = port.phantom_empty_at.saturating_since(now);
            marked = marker(&phantom.ecn, drain).marks(backlog, || draw(salt ^ PHANTOM, &arrival));
            let full = long(drain, phantom.size);
            port.phantom_empty_at = now + (backlog + exact(drain, packet.size.into())).min(full);
        }
        let counted = if is_nic { InService::Remaining } else { config.in_service };
        let counts = trim.is_none() || of_class(false);
        let backlog = if trim.is_some() { data } else { waiting }
            + match (counted, port.in_service.as_ref().filter(|_| counts)) {
                (InService::Remaining, None) if trim.is_some() => Span::ZERO,
                (InService::Remaining, _) => remainder,
                (InService::All, Some(serving)) if remainder > Span::ZERO => service(serving),
                _ => Span::ZERO,
            };
        if let Some(ecn) = &config.ecn {
            marked |= marker(ecn, serializer).marks(backlog, || draw(salt, &arrival));
        }
        if config.mark_at == MarkAt::Dequeue && !is_nic {
            marked = false;
        }
        marked &= arrival.ecn_capable;
        // Counted once its way through the port is known.
        let mut lost = None;
        if is_nic || config.is_plain() || config.is_plain_but_for_order() {
            count(&mut port.counters, &packet, marked);
            let loses = port.losses.loses(self.setup.network.port(link), salt, &arrival);
            count_if(loses, &mut port.counters, &packet);
            lost = Some(loses);
        }
        let entry = (packet, marked, lost);
        if config.control_priority && !is_nic && arrival.control {
            port.control.push_back(entry);
        } else {
            port.data.push_back(entry);
        }
        // A packet that is served at once counts by the remainder of its service.
        let own = if port.in_service.is_some() { service(&packet) } else { service_time(config, packet.size.into()) };
        port.max_backlog = port.max_backlog.max(waiting + remainder + own);
        // A credit with tokens that become available at this very time comes after the arrivals at that time.
        if port.in_service.is_none() {
            self.serve_other(link, now);
        }
    }

    /// A free port takes the next packet: a credit with tokens before all else.
    fn serve(&mut self, link: LinkId, now: Time) {
        let is_nic = self.setup.network.links()[link.index()].class == fabric::LinkClass::Nic;
        let queue = self.setup.network.port(link).config().credits.filter(|_| !is_nic);
        if queue.is_none_or(|queue| !self.serve_credit(link, now, &queue)) {
            self.serve_other(link, now);
        }
    }

    fn serve_other(&mut self, link: LinkId, now: Time) {
        let config = *self.setup.network.port(link).config();
        let is_nic = self.setup.network.links()[link.index()].class == fabric::LinkClass::Nic;
        let serializer = PrecomputedRate::new(config.rate);
        let salt = salt(self.setup, link);
        let port = &mut self.ports[link.index()];
        let Some((mut packet, mut marked, lost)) = port.control.pop_front().or_else(|| port.data.pop_front()) else {
            return;
        };
        let arrival = Arrival { now, ..packet.arrival() };
        if config.mark_at == MarkAt::Dequeue && !is_nic && arrival.ecn_capable {
            let control = if config.trim.is_some() { None } else { Some(&port.control) };
            let waiting = control.into_iter().flatten().chain(&port.data);
            let waiting: Span = waiting.map(|(packet, ..)| exact(serializer, packet.size.into())).sum();
            marked = config.ecn.is_some_and(|ecn| marker(&ecn, serializer).marks(waiting, || draw(salt, &arrival)));
            if let Some(phantom) = &config.phantom {
                let drain = PrecomputedRate::new(config.rate.scaled(phantom.drain));
                let backlog = port.phantom_empty_at.saturating_since(now);
                marked |= marker(&phantom.ecn, drain).marks(backlog, || draw(salt ^ PHANTOM, &arrival));
            }
        }
        // The link's loss is drawn with the time at which the packet came to the port.
        let lost = lost.unwrap_or_else(|| {
            count(&mut port.counters, &packet, marked);
            let loses = port.losses.loses(self.setup.network.port(link), salt, &packet.arrival());
            count_if(loses, &mut port.counters, &packet);
            loses
        });
        port.service_ends = now + service_time(&config, packet.size.into());
        if marked {
            packet.mark();
        }
        port.in_service = Some(packet);
        let ends = port.service_ends;
        self.leave(link, packet, ends, lost);
    }

    /// Packets that wait in a port behind those that came before them alone, and will leave it while the link is down. The
    /// engine knows when they leave as soon as they come, and counts them then.
    fn cut_later(&self, link: LinkId) -> ByKind {
        let (params, port) = (self.setup.network.port(link), &self.ports[link.index()]);
        let mut ends = port.service_ends;
        let mut cut_off = ByKind::default();
        let in_order = match params.config() {
            config if config.is_plain() => Some(&port.data),
            config if config.is_plain_but_for_order() => Some(&port.control),
            _ => None,
        };
        for (packet, _, lost) in in_order.into_iter().flatten() {
            ends += service_time(params.config(), packet.size.into());
            let mut leaves = *packet;
            leaves.time = ends + params.config().delay;
            if *lost == Some(false) && cut(self.setup, link, &leaves, ends) {
                packet.count_in(&mut cut_off);
            }
        }
        cut_off
    }

    /// A packet's last bit leaves a port, to arrive, to be lost, or to be cut off.
    fn leave(&mut self, link: LinkId, mut packet: Packet, ends: Time, lost: bool) {
        packet.time = ends + self.setup.network.port(link).config().delay;
        let cut = cut(self.setup, link, &packet, ends);
        self.ports[link.index()].counters.losses += u64::from(cut && !lost);
        count_if(cut && !lost, &mut self.ports[link.index()].counters, &packet);
        if !lost && !cut {
            let serial = self.at(packet.time, OracleEvent::Arrive(link.0));
            self.packets.insert(serial, packet);
        }
        self.at(ends, OracleEvent::ServiceEnds(link.0));
    }

    /// Releases the first credit, if its tokens are available; otherwise schedules a call for then, if nothing else
    /// waits.
    fn serve_credit(&mut self, link: LinkId, now: Time, queue: &CreditQueue) -> bool {
        let params = self.setup.network.port(link);
        let serializer = PrecomputedRate::new(params.config().rate);
        let salt = salt(self.setup, link);
        let port = &mut self.ports[link.index()];
        let Some(&first) = port.credits.front() else { return false };
        let service = exact(serializer, first.size.into());
        let full = bucket(queue, serializer);
        let cost = of_link(queue, service).min(full);
        let over = port.bucket.missing(now) + cost - full;
        if over > Span::ZERO {
            if port.control.is_empty() && port.data.is_empty() {
                self.at(now + over, OracleEvent::Tokens(link.0));
            }
            return false;
        }
        port.bucket = Bucket { at: now, missing: port.bucket.missing(now) + cost };
        port.credits.pop_front();
        let lost = port.losses.loses(params, salt, &first.arrival());
        count_if(lost, &mut port.counters, &first);
        count(&mut port.counters, &first, false);
        let ends = now + service_time(params.config(), first.size.into());
        port.service_ends = ends;
        port.in_service = Some(first);
        self.leave(link, first, ends, lost);
        true
    }

    fn service_ends(&mut self, link: LinkId, now: Time) {
        self.ports[link.index()].in_service = None;
        self.serve(link, now);
    }
}

/// Returns whether a link is down while the last bit of a packet that it has sent by `ends` is on it.
fn cut(setup: &Setup, link: LinkId, packet: &Packet, ends: Time) -> bool {
    let down = |outages: &fabric::Outages| outages.spans().any(|(from, until)| from <= packet.time && ends < until);
    !packet.is_frame() && setup.network.outages(link).is_some_and(down)
}

fn count_if(lost: bool, link: &mut LinkOutcome, packet: &Packet) {
    if lost {
        packet.count_in(&mut link.lost);
    }
}

pub(crate) fn count(link: &mut LinkOutcome, packet: &Packet, marked: bool) {
    link.packets += 1;
    link.bytes += Bytes::new(packet.size.into());
    link.marks += u64::from(marked);
}

pub(crate) fn salt(setup: &Setup, link: LinkId) -> u64 {
    mix64(setup.seed) ^ u64::from(link.0) << 20
}

pub(crate) fn draw(salt: u64, arrival: &Arrival) -> u64 {
    mix64(arrival.identity ^ mix64(salt ^ arrival.now.ps()))
}

fn bucket(queue: &CreditQueue, serializer: PrecomputedRate) -> Span {
    of_link(queue, long(serializer, queue.burst))
}

/// Returns the service time of a packet: the transmission time of its bytes, in whole ticks, if there are any.
pub(crate) fn service_time(config: &PortConfig, size: u32) -> Span {
    if config.tick.is_none() {
        return exact(PrecomputedRate::new(config.rate), size);
    }
    let tick = config.tick.span().ps() as u128;
    // A time that is a whole number of short ticks counts as less.
    let all = u128::from(size) * 8_000_000_000_000 - u128::from(config.tick.is_short());
    Span::from_ps((all / (u128::from(config.rate.bps()) * tick) * tick) as i64)
}

/// Returns the transmission time of a packet's bytes.
pub(crate) fn exact(serializer: PrecomputedRate, size: u32) -> Span {
    Span::from_unsigned_ps(serializer.tx_time(size))
}

/// Returns the transmission time of many bytes.
pub(crate) fn long(serializer: PrecomputedRate, bytes: Bytes) -> Span {
    Span::from_unsigned_ps(serializer.long_tx_time(bytes))
}

pub(crate) fn buffer(buffer: Bytes, serializer: PrecomputedRate) -> Span {
    if buffer == Bytes::MAX { Span::MAX } else { long(serializer, buffer) }
}

pub(crate) fn marker(ecn: &fabric::Ecn, serializer: PrecomputedRate) -> Marker {
    Marker::new(long(serializer, ecn.min), long(serializer, ecn.max), ecn.max_probability)
}
