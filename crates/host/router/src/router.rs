//! The router: it moves the packets of hosts through the ports of their path and delivers them. It uses no clock and no
//! device; the caller passes the time, and receives the due deliveries.
//!
//! Events of one time are processed in the order of `Event`, then by link, node or host: arrivals at the far end of
//! links, ports that begin to serve waiting segments, decisions of nodes with a shared buffer, segments held for hosts.
//! Each event is processed for the time at which it is due, so a late call does not change the result.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Arc, OnceLock};

use experiment::{LinkOutcome, PortSample, SeriesConfig, SwitchOutcome};
use fabric::{HostId, LinkId, Network, NodeId, NodeKind, Occupancy, PortParams, Routes, path_hash, switch_salt};
use units::{Bytes, Span, Time, mix64};

use crate::addresses::Addresses;
use crate::alarm::Alarm;
use crate::delivery::{Delivery, Hold};
use crate::packet::{Destination, DropReason, Headers, Mark};
use crate::packet_buffers::PacketBuffers;
use crate::port::{OutputPort, PortSegment, SegmentOutcome};
use crate::samples::PortSampler;
use crate::shared_node::{LinkItem, NodeContext, NodeDeparture, PfcFrame, SharedNode};

/// Buffers that all queues together may hold.
const MEMORY: usize = 2 << 30;

/// Maximum backlog of a host's NIC: it accepts no more packets while its backlog is longer. Large enough that the NIC does
/// not become idle before the router polls it again.
pub const NIC_BACKLOG: Span = Span::from_us(100);

/// Packets that the router did not pass on, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RefusedPackets {
    /// Neither IPv4 nor IPv6, or headers that contradict themselves.
    pub malformed: u64,
    /// Packets shorter than their headers state.
    pub truncated: u64,
    /// Larger on the wire than the MTU.
    pub too_long: u64,
    /// For an address of no host (multicast among them), or for the sender itself.
    pub unroutable: u64,
    /// Found no memory: the queues together held more than the router's limit.
    pub no_memory: u64,
    /// Not taken by the kernel of the host that they were for.
    pub unwritable: u64,
}

/// Real or virtual time, in which the caller drives a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouterTime {
    /// Real time: the caller calls at [`Router::next_at`], not for each event but in time for each delivery, and may be
    /// late.
    Real,
    /// Virtual time: the caller calls at [`Router::next_event`], once for each event, never late.
    Virtual,
}

/// Time zero of the run on the router's clock, once the run has started. Flows have connections before that.
pub type RunStart = Arc<OnceLock<Time>>;

/// Receiver of the network's events.
pub trait Observer {
    /// A packet is due at a host.
    fn deliver(&mut self, delivery: Delivery);

    /// A segment's last bit leaves the port of a watched link.
    fn depart(&mut self, departure: PortDeparture) {
        let _ = departure;
    }
}

/// A segment that leaves a watched port.
#[derive(Debug)]
pub struct PortDeparture<'a> {
    /// The link of the port.
    pub link: LinkId,
    /// Time at which its last bit leaves.
    pub time: Time,
    /// The packet as it was sent, behind its virtio header.
    pub frame: &'a [u8],
    /// The packet's headers.
    pub headers: &'a Headers,
    /// Index of the segment.
    pub segment: u16,
    /// Its mark.
    pub mark: Mark,
}

/// Node at the far end of a link.
#[derive(Clone, Copy, Debug)]
enum NextHop {
    Host(HostId),
    Switch(NodeId),
}

/// Scheduled event. Events of one time are processed in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// The first segment on a link arrives.
    Arrival(u32),
    /// A port begins to serve waiting segments.
    Service(u32),
    /// A node with a shared buffer decides.
    Decision(u32),
    /// Segments held for a host are due.
    Flush(u32),
}

/// Result of a [`Router`].
#[derive(Debug)]
pub struct NetworkOutcome {
    /// By link.
    pub links: Vec<LinkOutcome>,
    /// Samples of ports, in order of time, then link.
    pub port_samples: Vec<PortSample>,
    /// Switches that share their buffer, in order.
    pub switches: Vec<SwitchOutcome>,
    /// Packets that were not passed on.
    pub refused: RefusedPackets,
}

/// Parts of a network, for [`Router::new`].
#[derive(Clone, Copy, Debug)]
pub struct RouterInputs<'a> {
    /// The network with the created hosts.
    pub network: &'a Network,
    /// Its routes.
    pub routes: &'a Routes,
    /// Addresses of its hosts.
    pub addresses: &'a Addresses,
    /// Marks, losses and the choice among equal paths depend on this.
    pub seed: u64,
    /// Time for which segments of one packet are held to be delivered together; zero for no wait.
    pub coalesce: Span,
    /// True if consecutive packets that a host sent one by one are also delivered together.
    pub join: bool,
    /// Ports with queues to sample, in times of the run.
    pub series: &'a SeriesConfig,
    /// Links that report departures.
    pub watched: &'a [LinkId],
    /// The longest packet on the wire, in bytes.
    pub mtu: u16,
    /// Time zero of outages, routes and samples.
    pub run_start: &'a RunStart,
    /// The time in which it is called.
    pub time: RouterTime,
}

/// A network of ports and links, and the packets in it.
#[derive(Debug)]
pub struct Router {
    /// Time zero of outages, routes and samples.
    run_start: RunStart,
    network: Network,
    routes: Routes,
    addresses: Addresses,
    mtu: u16,
    next: Vec<NextHop>,
    watched: Vec<bool>,
    /// By node.
    switch_salt: Vec<u64>,
    ports: Vec<OutputPort>,
    /// By node: its shared buffer, if it has one. Its ports have only counters in `ports`.
    shared: Vec<Option<Box<SharedNode>>>,
    /// Items on each link, in the order of their arrival.
    links: Vec<VecDeque<LinkItem>>,
    /// By link: time of the pending service event of its port; [`Time::NEVER`] if there is none.
    service_at: Vec<Time>,
    /// Ports with a schedule of rates that has not begun, because the run has not.
    unscheduled: Vec<LinkId>,
    holds: Vec<Hold>,
    frames: PacketBuffers,
    /// One arrival a link, that of the first segment on it.
    events: BinaryHeap<Reverse<(Time, Event)>>,
    /// None in virtual time.
    alarm: Option<Alarm>,
    /// All events due by then have been processed.
    done: Time,
    samples: PortSampler,
    refused: RefusedPackets,
    accepted: u64,
    /// By link: counts before the run, of handshakes. None until the run has begun.
    before_run: Option<Vec<LinkOutcome>>,
    /// True if consecutive packets of a flow are kept as one: they may be delivered together.
    joins: bool,
    /// For [`OutputPort::enqueue`], empty between calls.
    departures: Vec<SegmentOutcome>,
    /// For nodes with a shared buffer, empty between calls.
    node_departures: Vec<NodeDeparture>,
}

impl Router {
    /// Creates an empty network.
    pub fn new(parts: &RouterInputs) -> Self {
        let network = parts.network;
        let links = network.links();
        let to = |link: &fabric::Link| match network.nodes()[link.to.index()].kind {
            NodeKind::Host(host) => NextHop::Host(host),
            NodeKind::Switch => NextHop::Switch(link.to),
        };
        // A host hands its NIC few packets at a time, so its port is always a FIFO.
        let port = |link: usize, salt| match network.nodes()[links[link].from.index()].kind {
            NodeKind::Host(_) => OutputPort::of_nic(salt),
            NodeKind::Switch => {
                let link = LinkId(link as u32);
                OutputPort::of_switch(network.port(link), network.impairments(link), salt)
            }
        };
        let seed = mix64(parts.seed);
        let hosts = 0..network.hosts().len() as u32;
        let nodes = (0..network.nodes().len() as u32).map(NodeId);
        let ports: Vec<OutputPort> = (0..links.len()).map(|link| port(link, seed ^ (link as u64) << 20)).collect();
        let params: Arc<[PortParams]> = network.params().into();
        let shared = nodes.clone().map(|node| SharedNode::of(node, &params, &ports, network).map(Box::new));
        Self {
            shared: shared.collect(),
            node_departures: Vec::new(),
            mtu: parts.mtu,
            next: links.iter().map(to).collect(),
            watched: (0..links.len()).map(|link| parts.watched.contains(&LinkId(link as u32))).collect(),
            switch_salt: nodes.map(|node| switch_salt(parts.seed, node)).collect(),
            ports,
            links: vec![VecDeque::new(); links.len()],
            service_at: vec![Time::NEVER; links.len()],
            unscheduled: scheduled_ports(network),
            holds: hosts.map(|host| Hold::new(HostId(host), parts.coalesce)).collect(),
            frames: PacketBuffers::new(MEMORY),
            events: BinaryHeap::new(),
            alarm: (parts.time == RouterTime::Real).then(|| Alarm::new(network, parts.coalesce)),
            done: Time::ZERO,
            samples: PortSampler::new(parts.series, links.len()),
            refused: RefusedPackets::default(),
            accepted: 0,
            before_run: None,
            run_start: Arc::clone(parts.run_start),
            joins: parts.join && !parts.coalesce.is_zero(),
            departures: Vec::new(),
            network: network.clone(),
            routes: parts.routes.clone(),
            addresses: parts.addresses.clone(),
        }
    }

    /// Accepts a packet from a host: the first `length` bytes of `buffer`, in the form of a TUN device with a virtio
    /// header. The router may keep `buffer` and leave another one in its place. The caller has processed all events due
    /// by `now`.
    pub fn accept(
        &mut self,
        host: HostId,
        now: Time,
        buffer: &mut Vec<u8>,
        length: usize,
        observer: &mut impl Observer,
    ) {
        self.note_begin();
        let headers = match Headers::parse(&buffer[..length]) {
            Ok(headers) => headers,
            Err(DropReason::Malformed) => return self.refused.malformed += 1,
            Err(DropReason::Truncated) => return self.refused.truncated += 1,
        };
        if headers.wire_length(0) > self.mtu {
            return self.refused.too_long += 1;
        }
        let to = match headers.destination {
            Destination::V4(address) => self.addresses.host_v4(address),
            Destination::V6(address) => self.addresses.host_v6(address),
        };
        let Some(to) = to.filter(|&to| to != host) else { return self.refused.unroutable += 1 };
        let continued = if self.joins { self.frames.join(&buffer[..length], &headers) } else { None };
        let (frame, first) = if let Some(behind) = continued {
            behind
        } else {
            let Some(frame) = self.frames.keep(buffer, length, headers, to) else { return self.refused.no_memory += 1 };
            if self.joins {
                self.frames.open(frame);
            }
            (frame, 0)
        };
        self.begin_schedules();
        let (node, uplink) = (self.network.hosts()[host.index()], self.network.uplink(host).index());
        for index in 0..headers.segments() {
            self.accepted += 1;
            let segment = PortSegment {
                frame,
                index: first + index,
                arrived: now,
                identity: mix64(headers.flow ^ mix64(self.accepted)),
                size: headers.wire_length(index),
                ecn_capable: headers.is_ecn_capable(),
                control: headers.is_control(),
                credit: headers.is_credit(),
                expendable: headers.is_expendable(),
                marked: false,
                corrupted: None,
                flow: headers.flow as u32,
            };
            self.forward(node, None, uplink, segment, observer);
        }
    }

    /// Does all that is due by `now`.
    pub fn advance(&mut self, now: Time, observer: &mut impl Observer) {
        self.note_begin();
        self.begin_schedules();
        while let Some(&Reverse((due, event))) = self.events.peek()
            && due <= now
        {
            self.sample(due);
            self.events.pop();
            match event {
                Event::Arrival(link) => self.arrive(link, observer),
                Event::Service(link) => self.serve(link as usize, due, observer),
                Event::Decision(node) => self.decide(NodeId(node), due, observer),
                Event::Flush(host) => {
                    self.holds[host as usize].flush(due, &mut self.frames, &mut |it| observer.deliver(it));
                }
            }
        }
        self.sample(now);
        self.done = now;
    }

    /// Returns the time of the next call at which no event is late yet, in [`RouterTime::Real`].
    pub fn next_at(&mut self) -> Option<Time> {
        self.alarm.as_mut()?.next_at(self.done)
    }

    /// Returns the time of the next event; [`Time::NEVER`] if there is none.
    pub fn next_event(&self) -> Time {
        self.events.peek().map_or(Time::NEVER, |&Reverse((time, _))| time)
    }

    /// Returns the time from which a host's NIC has a backlog of at most `slack`; [`Time::NEVER`] while PFC pauses it
    /// with a backlog of at least `slack`.
    pub fn nic_accepts_at(&self, host: HostId, slack: Span) -> Time {
        let uplink = self.network.uplink(host);
        match &self.shared[self.network.hosts()[host.index()].index()] {
            Some(nic) => nic.accepts_at(self.network.port(uplink), slack),
            None => self.ports[uplink.index()].idle_at().saturating_sub(slack),
        }
    }

    /// Returns the number of packets in the network.
    #[cfg(test)]
    pub fn frames_held(&self) -> usize {
        self.frames.count()
    }

    /// Returns the counts of packets not passed on, to which the caller adds its own.
    pub fn refused(&mut self) -> &mut RefusedPackets {
        &mut self.refused
    }

    /// Returns the outcome of each link since the router was created.
    fn link_outcomes(&self) -> Vec<LinkOutcome> {
        let params = |link: usize| self.network.port(LinkId(link as u32));
        let mut links: Vec<_> = self.ports.iter().enumerate().map(|(link, port)| port.outcome(params(link))).collect();
        for node in self.shared.iter().flatten() {
            node.report(&mut links, self.done);
        }
        links
    }

    /// Records the counts before the run once it has begun.
    fn note_begin(&mut self) {
        if self.before_run.is_none() && self.has_begun() {
            self.before_run = Some(self.link_outcomes());
        }
    }

    /// Returns the outcome of the links during the run and of the switches, the samples, and the refused packets.
    pub fn finish(self) -> NetworkOutcome {
        let mut links = self.link_outcomes();
        for (link, before) in links.iter_mut().zip(self.before_run.iter().flatten()) {
            *link = link.since(before);
        }
        let switches = self.shared.iter().flatten().filter_map(|node| node.outcome()).collect();
        NetworkOutcome { links, port_samples: self.samples.samples, switches, refused: self.refused }
    }

    /// The first item on a link is at its far end.
    fn arrive(&mut self, link: u32, observer: &mut impl Observer) {
        let on_link = &mut self.links[link as usize];
        let Some(item) = on_link.pop_front() else { return };
        if let Some(next) = on_link.front() {
            self.events.push(Reverse((next.arrived(), Event::Arrival(link))));
        }
        let segment = match item {
            LinkItem::Segment(segment) => segment,
            LinkItem::Pfc(frame) => {
                let node = self.network.links()[link as usize].to;
                let act = |node: &mut SharedNode, context: NodeContext, departures: &mut Vec<NodeDeparture>| {
                    node.on_frame(LinkId(link), frame, context, departures);
                };
                return self.with_shared_node(node, act, observer);
            }
        };
        match self.next[link as usize] {
            NextHop::Switch(switch) => {
                let port = self.choose(switch, segment.frame, segment.arrived);
                self.forward(switch, Some(LinkId(link)), port.index(), segment, observer);
            }
            NextHop::Host(host) => {
                let hold = &mut self.holds[host.index()];
                if let Some(due) = hold.arrive(&segment, &mut self.frames, &mut |it| observer.deliver(it)) {
                    self.events.push(Reverse((due, Event::Flush(host.0))));
                    if let Some(alarm) = &mut self.alarm {
                        alarm.flush(due);
                    }
                }
            }
        }
    }

    /// A switch's port for a packet: of the equal ones, the same for all packets of a flow.
    fn choose(&self, switch: NodeId, frame: u32, now: Time) -> LinkId {
        let frame = self.frames.get(frame);
        let (flow, entropy) = (frame.headers.flow as u32, (frame.headers.flow >> 32) as u16);
        self.routes
            .at(self.of_run(now).unwrap_or(Time::ZERO))
            .from(switch)
            .port(frame.to, path_hash(self.switch_salt[switch.index()], flow, entropy))
    }

    /// Begins the schedules of rates once the run has started.
    fn begin_schedules(&mut self) {
        if self.unscheduled.is_empty() {
            return;
        }
        let Some(&start) = self.run_start.get() else { return };
        for link in std::mem::take(&mut self.unscheduled) {
            self.ports[link.index()].begin_schedule(start);
        }
    }

    /// Returns whether the run has started.
    pub fn has_begun(&self) -> bool {
        self.run_start.get().is_some()
    }

    /// A time of the run, if it is one: not before the run has started.
    fn of_run(&self, time: Time) -> Option<Time> {
        let &run_start = self.run_start.get()?;
        (time >= run_start).then(|| Time::ZERO + time.since(run_start))
    }

    /// Returns whether a link is down at any time between these, both included.
    fn is_cut(&self, link: LinkId, from: Time, until: Time) -> bool {
        let Some(outages) = self.network.outages(link) else { return false };
        let Some(until) = self.of_run(until) else { return false };
        outages.cut(self.of_run(from).unwrap_or(Time::ZERO), until)
    }

    /// Queues a segment at a node, for a link. `from` is the link by which it arrived, none at its own host.
    fn forward(
        &mut self,
        node: NodeId,
        from: Option<LinkId>,
        link: usize,
        segment: PortSegment,
        observer: &mut impl Observer,
    ) {
        if self.shared[node.index()].is_none() {
            return self.enqueue(link, segment, observer);
        }
        let act = |node: &mut SharedNode, context: NodeContext, departures: &mut Vec<NodeDeparture>| {
            node.arrive(from, link, segment, context, departures);
        };
        self.with_shared_node(node, act, observer);
    }

    /// Replays the decisions of a node with a shared buffer that come before `now`.
    fn decide(&mut self, node: NodeId, now: Time, observer: &mut impl Observer) {
        match &mut self.shared[node.index()] {
            Some(shared) if shared.next_event == Some(now) => shared.next_event = None,
            // Another event has taken its place.
            _ => return,
        }
        let act = |node: &mut SharedNode, context: NodeContext, departures: &mut Vec<NodeDeparture>| {
            node.advance(now, context, departures);
        };
        self.with_shared_node(node, act, observer);
    }

    /// Lets a node with a shared buffer act, schedules its next decision, and sends what leaves it.
    fn with_shared_node(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut SharedNode, NodeContext, &mut Vec<NodeDeparture>),
        observer: &mut impl Observer,
    ) {
        let Some(shared) = &mut self.shared[node.index()] else { return };
        let mut departures = std::mem::take(&mut self.node_departures);
        act(shared, NodeContext { ports: &mut self.ports, network: &self.network }, &mut departures);
        if let Some(at) = shared.decides_at().filter(|&at| shared.next_event.is_none_or(|planned| at < planned)) {
            shared.next_event = Some(at);
            self.events.push(Reverse((at, Event::Decision(node.0))));
            if let Some(alarm) = &mut self.alarm {
                alarm.decision(at, &self.network, self.network.links_out(node));
            }
        }
        for departure in departures.drain(..) {
            match departure {
                NodeDeparture::Segment { link, outcome } => self.depart(link, outcome, observer),
                NodeDeparture::Pfc { link, frame } => self.send_frame(link, frame),
            }
        }
        self.node_departures = departures;
    }

    /// Sends a PFC frame over a link, unless it is down.
    fn send_frame(&mut self, link: usize, frame: PfcFrame) {
        let delay = self.network.port(LinkId(link as u32)).delay();
        if self.is_cut(LinkId(link as u32), frame.arrived - delay, frame.arrived) {
            return;
        }
        if let Some(alarm) = &mut self.alarm {
            alarm.decision(frame.arrived, &self.network, 0..0);
        }
        self.put_on_link(link, LinkItem::Pfc(frame));
    }

    fn put_on_link(&mut self, link: usize, item: LinkItem) {
        let on_link = &mut self.links[link];
        if on_link.is_empty() {
            self.events.push(Reverse((item.arrived(), Event::Arrival(link as u32))));
        }
        on_link.push_back(item);
    }

    fn enqueue(&mut self, link: usize, segment: PortSegment, observer: &mut impl Observer) {
        let params = self.network.port(LinkId(link as u32));
        let mut departures = std::mem::take(&mut self.departures);
        self.ports[link].enqueue(params, segment, &mut departures);
        for outcome in departures.drain(..) {
            self.depart(link, outcome, observer);
        }
        self.departures = departures;
        self.plan_service(link);
    }

    fn serve(&mut self, link: usize, now: Time, observer: &mut impl Observer) {
        if self.service_at[link] != now {
            // An earlier event has taken its place.
            return;
        }
        self.service_at[link] = Time::NEVER;
        let params = self.network.port(LinkId(link as u32));
        let mut departures = std::mem::take(&mut self.departures);
        self.ports[link].advance(params, now, &mut departures);
        for outcome in departures.drain(..) {
            self.depart(link, outcome, observer);
        }
        self.departures = departures;
        self.plan_service(link);
    }

    fn plan_service(&mut self, link: usize) {
        let params = self.network.port(LinkId(link as u32));
        if let Some(at) = self.ports[link].serves_at(params).filter(|&at| at < self.service_at[link]) {
            self.service_at[link] = at;
            self.events.push(Reverse((at, Event::Service(link as u32))));
            if let Some(alarm) = &mut self.alarm {
                alarm.service(link, at, params.delay());
            }
        }
    }

    /// Puts a segment that leaves a port on its link, or releases it.
    fn depart(&mut self, link: usize, outcome: SegmentOutcome, observer: &mut impl Observer) {
        let delay = self.network.port(LinkId(link as u32)).delay();
        let (mut segment, passage) = match outcome {
            SegmentOutcome::Sent { segment, passage } | SegmentOutcome::Lost { segment, passage } => (segment, passage),
            SegmentOutcome::Dropped { segment } => return self.frames.release(segment.frame, 1),
            SegmentOutcome::Copied { segment } => return self.frames.retain(segment.frame),
        };
        if self.watched[link] {
            let frame = self.frames.get(segment.frame);
            observer.depart(PortDeparture {
                link: LinkId(link as u32),
                time: passage.arrives - delay,
                frame: frame.bytes(),
                headers: &frame.headers,
                segment: segment.index,
                mark: if segment.marked { Mark::Ce } else { Mark::None },
            });
        }
        let lost = matches!(outcome, SegmentOutcome::Lost { .. });
        let cut = !lost && self.is_cut(LinkId(link as u32), passage.arrives - delay, passage.arrives);
        if cut {
            self.ports[link].count_link_down(&segment);
        }
        if lost || cut {
            return self.frames.release(segment.frame, 1);
        }
        segment.arrived = passage.arrives;
        if segment.index + 1 == self.frames.get(segment.frame).headers.segments() {
            if let Some(alarm) = &mut self.alarm {
                alarm.last_arrival(link, segment.arrived, segment.size);
            }
        } else if let Some(alarm) = &mut self.alarm {
            alarm.inner_arrival(link, segment.arrived, segment.size);
        }
        self.put_on_link(link, LinkItem::Segment(segment));
    }

    /// Takes the samples that are due before `now`.
    fn sample(&mut self, now: Time) {
        let Some(&run_start) = self.run_start.get() else { return };
        let Some(now) = self.of_run(now) else { return };
        while let Some(due) = self.samples.due(now) {
            let at = run_start + due.since(Time::ZERO);
            for &link in &self.samples.ports {
                let node = &self.shared[self.network.links()[link.index()].from.index()];
                let (occupancy, ingress) = match node {
                    Some(node) => (node.occupancy(link.index(), at), node.ingress_bytes(link.index())),
                    None => (self.ports[link.index()].occupancy(self.network.port(link), at), Bytes::ZERO),
                };
                let Occupancy { queue, phantom } = occupancy;
                self.samples.samples.push(PortSample {
                    time: due,
                    link,
                    queue,
                    phantom,
                    ingress,
                    pseudo: Bytes::ZERO,
                    feedback: units::Rate::MAX,
                });
            }
        }
    }
}

/// Returns the links with a schedule of rates.
fn scheduled_ports(network: &Network) -> Vec<LinkId> {
    let links = (0..network.links().len() as u32).map(LinkId);
    links.filter(|&link| network.impairments(link).is_some_and(|it| it.rate_schedule.is_some())).collect()
}
