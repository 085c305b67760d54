//! Racks of hosts under spines, with traffic on every link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{Span, Time, mix64};
use virtual_time::{Delivery, HostIndex, Network};

use crate::load::{LoadConfig, LoadedQueue, Traffic};

/// A network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkConfig {
    /// Hosts in a rack.
    pub rack: u32,
    /// Number of spines, each with a link from and to each rack.
    pub spines: u32,
    /// Propagation delay of a link.
    pub delay: Span,
    /// Transmission time of a byte.
    pub byte: Span,
    /// Traffic on each link.
    pub load: LoadConfig,
    /// Largest additional delay of a path between racks in one direction, drawn for each path: asymmetry.
    pub asymmetry: Span,
}

impl NetworkConfig {
    /// Returns links of 10 Gb/s and 1 us, racks of 10 under four spines, with bursts of 4 packets on average.
    pub fn new(load_percent: u32) -> Self {
        let packet = Span::from_ns(1_200);
        Self {
            rack: 10,
            spines: 4,
            delay: Span::from_us(1),
            byte: Span::from_ps(800),
            load: LoadConfig { percent: load_percent, burst: 4, packet },
            asymmetry: Span::ZERO,
        }
    }
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Packet {
    pub(crate) from: HostIndex,
    pub(crate) to: HostIndex,
    pub(crate) message: Vec<u8>,
}

/// Bytes of Ethernet, IP and UDP headers, and of the seal.
const OVERHEAD: u64 = 14 + 20 + 8 + 4 + 16;

/// Links of a path: up to the rack, to a spine, to the other rack, down to the host.
const MAX_HOPS: usize = 4;

/// A packet at a link.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct AtLink {
    at: Time,
    order: u64,
    hop: usize,
    packet: Packet,
}

/// The network's state.
#[derive(Debug)]
pub(crate) struct LoadedNetwork {
    config: NetworkConfig,
    seed: u64,
    traffic: Traffic,
    hosts: u32,
    queues: Vec<LoadedQueue>,
    events: BinaryHeap<Reverse<AtLink>>,
    order: u64,
    /// Packets accepted.
    pub(crate) packets: u64,
}

impl LoadedNetwork {
    pub(crate) fn new(config: NetworkConfig, hosts: u32, seed: u64) -> Self {
        let racks = hosts.div_ceil(config.rack);
        let links = 2 * hosts + 2 * racks * config.spines;
        let queue = |link: u32| LoadedQueue::new(seed ^ mix64(u64::from(link)));
        Self {
            config,
            seed,
            traffic: Traffic::new(config.load),
            hosts,
            queues: (0..links).map(queue).collect(),
            events: BinaryHeap::new(),
            order: 0,
            packets: 0,
        }
    }

    /// Returns the path's links; packets of one pair take one path in each direction, as with ECMP by addresses.
    fn path(&self, from: HostIndex, to: HostIndex) -> ([u32; MAX_HOPS], usize) {
        let racks = self.hosts.div_ceil(self.config.rack);
        let (down, up_spine) = (self.hosts, 2 * self.hosts);
        let down_spine = up_spine + racks * self.config.spines;
        let [from_rack, to_rack] = [from, to].map(|host| host.0 / self.config.rack);
        if from_rack == to_rack {
            return ([from.0, down + to.0, 0, 0], 2);
        }
        let spine = (self.salt(from, to) % u64::from(self.config.spines)) as u32;
        let up = up_spine + from_rack * self.config.spines + spine;
        let across = down_spine + to_rack * self.config.spines + spine;
        ([from.0, up, across, down + to.0], MAX_HOPS)
    }

    fn salt(&self, from: HostIndex, to: HostIndex) -> u64 {
        mix64(self.seed ^ mix64(u64::from(from.0) << 32 | u64::from(to.0)))
    }

    /// Returns the additional delay of a path.
    fn extra(&self, from: HostIndex, to: HostIndex) -> Span {
        let limit = self.config.asymmetry.unsigned_ps();
        if limit == 0 { Span::ZERO } else { Span::from_unsigned_ps(mix64(!self.salt(from, to)) % limit) }
    }

    fn push(&mut self, at: Time, hop: usize, packet: Packet) {
        self.order += 1;
        self.events.push(Reverse(AtLink { at, order: self.order, hop, packet }));
    }
}

impl Network for LoadedNetwork {
    type Packet = Packet;

    fn accepts_at(&self, _: HostIndex) -> Time {
        Time::ZERO
    }

    fn accept(&mut self, now: Time, _: HostIndex, packet: Packet) {
        self.packets += 1;
        self.push(now, 0, packet);
    }

    fn next_event(&self) -> Time {
        self.events.peek().map_or(Time::NEVER, |Reverse(event)| event.at)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Packet>>) {
        while self.next_event() <= now
            && let Some(Reverse(AtLink { hop, packet, .. })) = self.events.pop()
        {
            let (path, hops) = self.path(packet.from, packet.to);
            if hop == hops {
                delivered.push(Delivery { host: packet.to, packet });
                continue;
            }
            let bytes = packet.message.len() as u64 + OVERHEAD;
            let service = Span::from_unsigned_ps(bytes * self.config.byte.unsigned_ps());
            let sent = self.queues[path[hop] as usize].send(&self.traffic, now, service);
            let extra = if hop == 0 { self.extra(packet.from, packet.to) } else { Span::ZERO };
            self.push(sent + self.config.delay + extra, hop + 1, packet);
        }
    }
}
