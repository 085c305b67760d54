//! The network between two endpoints, in virtual time: a port of `fabric` each way, and everything that may happen to a
//! datagram on its way.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fabric::{Arrival, PlainPort, PortConfig, PortParams};
use units::{Bytes, Frac, Rate, Span, Time, mix64};
use virtual_time::{Datagram, Delivery, HostIndex, Network};

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

    /// Draws a time of at most `max`.
    fn up_to(&mut self, max: Span) -> Span {
        Span::from_ps(self.below(max.unsigned_ps() + 1) as i64)
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
    /// Set if the network clears the ECN field of all datagrams, codepoints and marks.
    pub bleaching: bool,
    /// Maximum UDP payload in bytes; longer datagrams are lost.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkEnd {
    Client,
    Listener,
}

impl NetworkEnd {
    /// Returns its host in the event loop.
    pub fn host(self) -> HostIndex {
        HostIndex(self as u32)
    }

    /// Returns its address, which for the client is the one behind its NAT.
    pub fn address(self) -> IpAddr {
        match self {
            Self::Client => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            Self::Listener => LISTENER.ip(),
        }
    }
}

/// The listener's address and port.
pub const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4_433);

/// The client's hosts outside its NAT, before and after a rebinding.
const OUTSIDE: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7))];

/// The ECN field of marked packets (RFC 3168 §5).
const CE: u8 = 3;

/// Bytes between the listener and a host that it has to validate.
#[derive(Clone, Copy, Default, Debug)]
struct AddressTraffic {
    /// Bytes that have arrived at the listener, damaged ones included.
    received: u64,
    /// Bytes that the listener has sent, lost ones included.
    sent: u64,
    /// Set once the host has received something. The listener can validate it by packets that are sent from then on.
    was_reached: bool,
    /// Set once such a packet has arrived at the listener.
    has_answered: bool,
}

impl AddressTraffic {
    /// An address that cannot be validated yet gets at most three times the bytes that arrived from it (RFC 9000 §8.1).
    fn check(&self, address: SocketAddr) {
        let Self { received, sent, has_answered, .. } = *self;
        assert!(has_answered || sent <= 3 * received, "{address} got {sent} bytes for {received}");
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Flight {
    to: NetworkEnd,
    datagram: Datagram,
    /// The address outside: one of the client's, or a stranger's.
    outside: SocketAddr,
    /// Set if the client sent it after it had received something at that address.
    is_answer: bool,
}

pub struct TestNetwork {
    conditions: NetworkConditions,
    params: PortParams,
    ports: [PlainPort; 2],
    dice: Dice,
    on_the_way: BTreeMap<(Time, u64), Flight>,
    sent: u64,
    /// Datagrams that may be replayed.
    old: Vec<Flight>,
    /// The client's addresses outside its NAT, by socket, and the times at which they were assigned.
    outside: BTreeMap<u16, (Time, SocketAddr)>,
    next_port: u16,
    traffic: BTreeMap<SocketAddr, AddressTraffic>,
    /// Datagrams that the ends have sent.
    pub datagrams: u64,
    /// Sum of the transit times of all datagrams.
    pub total_transit_time: Span,
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
            on_the_way: BTreeMap::new(),
            sent: 0,
            old: Vec::new(),
            outside: BTreeMap::new(),
            next_port: 10_000,
            traffic: BTreeMap::new(),
            datagrams: 0,
            total_transit_time: Span::ZERO,
        }
    }

    /// Returns the client's address as the listener sees it.
    fn outside(&mut self, now: Time, socket: u16) -> SocketAddr {
        let moved = now >= self.conditions.rebinding;
        match self.outside.get(&socket) {
            Some(&(since, address)) if !moved || since >= self.conditions.rebinding => address,
            _ => {
                self.next_port += 1;
                let address = SocketAddr::new(OUTSIDE[usize::from(moved)], self.next_port);
                self.outside.insert(socket, (now, address));
                address
            }
        }
    }

    /// Translates a datagram of the client. Returns its socket and the datagram's flight.
    fn translate_out(&mut self, now: Time, mut datagram: Datagram) -> (u16, Flight) {
        let socket = datagram.source.port();
        let outside = self.outside(now, socket);
        datagram.source = outside;
        let is_answer = self.traffic.entry(outside).or_default().was_reached;
        (socket, Flight { to: NetworkEnd::Listener, datagram, outside, is_answer })
    }

    /// Translates a datagram of the listener, like [`TestNetwork::translate_out`]. Datagrams to strangers and to a former
    /// address of the client are lost.
    fn translate_in(&mut self, mut datagram: Datagram) -> Option<(u16, Flight)> {
        let outside = datagram.destination;
        let traffic = self.traffic.entry(outside).or_default();
        traffic.sent += datagram.payload.len() as u64;
        traffic.check(outside);
        let (&socket, _) = self.outside.iter().find(|(_, (_, address))| *address == outside)?;
        datagram.destination = SocketAddr::new(NetworkEnd::Client.address(), socket);
        Some((socket, Flight { to: NetworkEnd::Client, datagram, outside, is_answer: false }))
    }

    /// Returns whether a datagram from or to this socket of the client is lost before the queue.
    fn is_lost(&mut self, now: Time, socket: u16, size: usize) -> bool {
        let NetworkConditions { mtu, mtu_falls, dead, black_hole, loss, .. } = self.conditions;
        let mtu = if now >= mtu_falls.0 { mtu_falls.1 } else { mtu };
        let is_dead = now >= dead.0 && socket == dead.1;
        is_dead || size > mtu || (black_hole.0..black_hole.1).contains(&now) || self.dice.one_in(loss)
    }

    /// Queues a datagram, and schedules its arrival and that of its duplicates.
    fn carry(&mut self, now: Time, from: HostIndex, mut flight: Flight) {
        let NetworkConditions { delay, reordering, duplication, corruption, replay, bleaching, .. } = self.conditions;
        let size = flight.datagram.payload.len();
        let arrival = Arrival {
            now,
            size: size as u32 + 28,
            ecn_capable: flight.datagram.ecn != 0,
            control: false,
            credit: false,
            expendable: false,
            identity: self.datagrams,
        };
        let port = &mut self.ports[from.index()];
        let Some(transit) = port.enqueue(&self.params, u64::from(from.0), &arrival) else { return };
        flight.datagram.ecn = match (bleaching, transit.marked) {
            (true, _) => 0,
            (false, true) => CE,
            (false, false) => flight.datagram.ecn,
        };
        let mut arrives = transit.arrives;
        self.total_transit_time += arrives.since(now);
        if self.dice.one_in(reordering) {
            arrives += self.dice.up_to(delay);
        }
        if self.dice.one_in(duplication) {
            let later = arrives + self.dice.up_to(delay);
            self.arrive(later, flight.clone());
        }
        if self.dice.one_in(replay) {
            if self.old.len() < 64 {
                self.old.push(flight.clone());
            }
            let which = self.dice.below(self.old.len() as u64) as usize;
            let old = self.old[which].clone();
            self.arrive(arrives, old);
        }
        if self.dice.one_in(corruption) {
            let offset = self.dice.below(size as u64) as usize;
            flight.datagram.payload[offset] ^= 1 << self.dice.below(8);
        }
        self.arrive(arrives, flight);
    }

    fn arrive(&mut self, at: Time, flight: Flight) {
        self.sent += 1;
        self.on_the_way.insert((at, self.sent), flight);
    }

    /// Delivers a datagram from an unknown address to the listener, now. Its bytes are random; half of these
    /// datagrams begin like a packet with a long header and have 1,200 bytes.
    pub fn make_noise(&mut self, now: Time) {
        let len = 1 + self.dice.below(1_300) as usize;
        let mut payload: Vec<u8> = (0..len).map(|_| self.dice.draw() as u8).collect();
        if len > 5 && self.dice.one_in(2) {
            payload[0] |= 0xc0;
            payload[1..5].copy_from_slice(&proto::VERSION.to_be_bytes());
            payload.resize(1_200, 0);
        }
        let host = [203, 0, 113, self.dice.below(200) as u8];
        let outside = SocketAddr::from((host, 1_000 + self.dice.below(60_000) as u16));
        let datagram = Datagram { source: outside, destination: LISTENER, ecn: 0, payload };
        self.arrive(now, Flight { to: NetworkEnd::Listener, datagram, outside, is_answer: false });
    }
}

impl Network for TestNetwork {
    type Packet = Datagram;

    /// Returns time zero: the queues are the ports'.
    fn accepts_at(&self, _: HostIndex) -> Time {
        Time::ZERO
    }

    fn accept(&mut self, now: Time, host: HostIndex, datagram: Datagram) {
        self.datagrams += 1;
        let is_client = host == NetworkEnd::Client.host();
        let translated = if is_client { Some(self.translate_out(now, datagram)) } else { self.translate_in(datagram) };
        let Some((socket, flight)) = translated else { return };
        if !self.is_lost(now, socket, flight.datagram.payload.len()) {
            self.carry(now, host, flight);
        }
    }

    fn next_event(&self) -> Time {
        self.on_the_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Datagram>>) {
        while self.next_event() <= now
            && let Some((_, Flight { to, datagram, outside, is_answer })) = self.on_the_way.pop_first()
        {
            let traffic = self.traffic.entry(outside).or_default();
            match to {
                NetworkEnd::Client => traffic.was_reached = true,
                NetworkEnd::Listener => {
                    traffic.received += datagram.payload.len() as u64;
                    traffic.has_answered |= is_answer;
                }
            }
            delivered.push(Delivery { host: to.host(), packet: datagram });
        }
    }
}
