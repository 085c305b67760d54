//! The network between two endpoints, in virtual time: a port of `fabric` each way, and everything that may happen to a
//! datagram on its way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};

use fabric::{Arrival, PlainPort, PortConfig, PortParams};
use flow::Codepoint;
use units::{Bytes, Frac, Rate, Span, Time, mix64};

/// Random choices that follow from a seed.
#[derive(Clone, Copy, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// Draws a number below `n`, which is over 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
}

/// Rate, delay and impairments of the network. A probability is one in the given number; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct NetworkConditions {
    pub rate: Rate,
    pub delay: Span,
    /// Bytes that may wait in each port.
    pub buffer: Bytes,
    pub loss: u64,
    pub reordering: u64,
    pub duplication: u64,
    pub corruption: u64,
    pub replay: u64,
    /// Marks that queues set are erased.
    pub bleaching: bool,
    /// Longer datagrams are lost.
    pub mtu: usize,
    /// Outage: datagrams are lost from the first time to the second.
    pub black_hole: (Time, Time),
    /// Dead path: datagrams to and from this socket of the client are lost from this time on.
    pub dead: (Time, u16),
    /// The MTU changes to this value at this time.
    pub mtu_falls: (Time, usize),
    /// Time at which the client's address changes, if ever.
    pub rebinding: Time,
}

impl NetworkConditions {
    /// Returns a network without disturbances.
    pub fn ideal(rate: Rate, delay: Span) -> Self {
        Self {
            rate,
            delay,
            buffer: rate.bytes_in(delay.times(2)).max(Bytes::new(30_000)),
            loss: 0,
            reordering: 0,
            duplication: 0,
            corruption: 0,
            replay: 0,
            bleaching: false,
            mtu: 1_472,
            black_hole: (Time::NEVER, Time::NEVER),
            dead: (Time::NEVER, 0),
            mtu_falls: (Time::NEVER, 1_200),
            rebinding: Time::NEVER,
        }
    }
}

/// An end of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NetworkEnd {
    Client,
    Listener,
}

/// A datagram on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Datagram {
    pub to: NetworkEnd,
    pub socket: u16,
    pub from: SocketAddr,
    pub ce: bool,
    pub ect: bool,
    pub bytes: Vec<u8>,
}

impl Datagram {
    pub fn codepoint(&self) -> Codepoint {
        match (self.ce, self.ect) {
            (true, _) => Codepoint::Ce,
            (false, true) => Codepoint::Ect0,
            (false, false) => Codepoint::NotEct,
        }
    }
}

/// The listener's address; the client's addresses have other hosts.
pub const LISTENER: &str = "192.0.2.2:4433";

/// Returns whether an address is neither the client's nor the listener's.
pub fn is_stranger(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[0] == 203)
}

pub struct TestNetwork {
    pub conditions: NetworkConditions,
    params: PortParams,
    ports: [PlainPort; 2],
    dice: Dice,
    on_the_way: BinaryHeap<Reverse<(Time, u64, Datagram)>>,
    sent: u64,
    /// Datagrams that may be replayed.
    old: Vec<Datagram>,
    /// The client's addresses outside its NAT, by socket, and the times at which they were assigned.
    outside: BTreeMap<u16, (Time, SocketAddr)>,
    next_port: u16,
    /// Sum of the transit times of all datagrams.
    pub total_transit_time: Span,
    /// Bytes that each address has got from the listener and sent to it.
    pub traffic: BTreeMap<SocketAddr, (u64, u64)>,
}

impl TestNetwork {
    pub fn new(conditions: NetworkConditions, seed: u64) -> Self {
        let mut config = PortConfig::new(conditions.rate, conditions.delay);
        config.buffer = conditions.buffer;
        let quarter = Bytes::new(conditions.buffer.get() / 4);
        config.ecn = Some(fabric::Ecn { min: quarter, max: quarter, max_probability: Frac::ONE });
        Self {
            conditions,
            params: PortParams::new(&config).expect("a port"),
            ports: [PlainPort::default(); 2],
            dice: Dice(seed),
            on_the_way: BinaryHeap::new(),
            sent: 0,
            old: Vec::new(),
            outside: BTreeMap::new(),
            next_port: 10_000,
            total_transit_time: Span::ZERO,
            traffic: BTreeMap::new(),
        }
    }

    /// Returns the client's address as the listener sees it.
    fn outside(&mut self, now: Time, socket: u16) -> SocketAddr {
        let moved = now >= self.conditions.rebinding;
        match self.outside.get(&socket) {
            Some(&(since, address)) if !moved || since >= self.conditions.rebinding => address,
            _ => {
                self.next_port += 1;
                let host = if moved { [198, 51, 100, 7] } else { [198, 51, 100, 1] };
                let address = SocketAddr::new(IpAddr::from(host), self.next_port);
                self.outside.insert(socket, (now, address));
                address
            }
        }
    }

    /// Sends a datagram from an end.
    pub fn send(
        &mut self,
        now: Time,
        from: NetworkEnd,
        socket: u16,
        remote: SocketAddr,
        codepoint: Codepoint,
        bytes: &[u8],
    ) {
        let (to, source, at) = match from {
            NetworkEnd::Client => {
                let outside = self.outside(now, socket);
                self.traffic.entry(outside).or_default().1 += bytes.len() as u64;
                (NetworkEnd::Listener, outside, socket)
            }
            NetworkEnd::Listener => {
                self.traffic.entry(remote).or_default().0 += bytes.len() as u64;
                // Datagrams to a former address of the client are lost.
                let Some(at) = self.outside.iter().find(|(_, host)| host.1 == remote).map(|(&at, _)| at) else {
                    return;
                };
                (NetworkEnd::Client, LISTENER.parse().expect("an address"), at)
            }
        };
        let ect = codepoint != Codepoint::NotEct;
        let mtu = if now >= self.conditions.mtu_falls.0 { self.conditions.mtu_falls.1 } else { self.conditions.mtu };
        self.sent += 1;
        let (begins, ends) = self.conditions.black_hole;
        let is_dead = now >= self.conditions.dead.0 && at == self.conditions.dead.1;
        if is_dead || bytes.len() > mtu || (begins <= now && now < ends) || self.dice.one_in(self.conditions.loss) {
            return;
        }
        let arrival = Arrival {
            now,
            size: bytes.len() as u32 + 28,
            ecn_capable: ect,
            control: false,
            credit: false,
            expendable: false,
            identity: self.sent,
        };
        let Some(passage) = self.ports[from as usize].enqueue(&self.params, from as u64, &arrival) else { return };
        let ce = passage.marked && !self.conditions.bleaching;
        let ect = ect && !self.conditions.bleaching;
        let socket = if to == NetworkEnd::Client { at } else { 0 };
        let mut datagram = Datagram { to, socket, from: source, ce, ect, bytes: bytes.to_vec() };
        let mut arrives = passage.arrives;
        self.total_transit_time += arrives.since(now);
        if self.dice.one_in(self.conditions.reordering) {
            arrives += Span::from_ps(self.dice.below(self.conditions.delay.unsigned_ps() + 1) as i64);
        }
        if self.dice.one_in(self.conditions.duplication) {
            let later = arrives + Span::from_ps(self.dice.below(self.conditions.delay.unsigned_ps() + 1) as i64);
            self.arrive(later, datagram.clone());
        }
        if self.dice.one_in(self.conditions.replay) {
            if self.old.len() < 64 {
                self.old.push(datagram.clone());
            }
            let which = self.dice.below(self.old.len() as u64) as usize;
            let old = self.old[which].clone();
            self.arrive(arrives, old);
        }
        if self.dice.one_in(self.conditions.corruption) {
            let offset = self.dice.below(bytes.len() as u64) as usize;
            datagram.bytes[offset] ^= 1 << self.dice.below(8);
        }
        self.arrive(arrives, datagram);
    }

    /// Schedules the arrival of a datagram, whether or not an end has sent it.
    pub fn arrive(&mut self, at: Time, datagram: Datagram) {
        self.sent += 1;
        self.on_the_way.push(Reverse((at, self.sent, datagram)));
    }

    pub fn next_arrival(&self) -> Time {
        self.on_the_way.peek().map_or(Time::NEVER, |Reverse((at, _, _))| *at)
    }

    pub fn take(&mut self, now: Time) -> Option<Datagram> {
        if self.next_arrival() > now {
            return None;
        }
        self.on_the_way.pop().map(|Reverse((_, _, datagram))| datagram)
    }
}
