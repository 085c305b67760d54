//! A flood of a listener in virtual time: hosts that connect and fall silent, and holders of a ticket that connect
//! meanwhile. The listener and the holders are [`EndpointHost`]s.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use flow::Codepoint;
use laws::{Law, NewReno, PathInfo, newreno};
use proto::connection::{Connection, Event};
use proto::endpoint::{Authentication, ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::frame::{Frame, Frames};
use proto::header::{Header, LongKind, ParsedPacket, put_long};
use proto::identity::{Identity, Trust};
use proto::secret::Secret;
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use rustls::crypto::CryptoProvider;
use rustls::quic::{DirectionalKeys, Keys, Suite, Version};
use rustls::{CipherSuite, SupportedCipherSuite};
use units::{Span, Time, mix64};
use virtual_endpoint::{Application, EndpointHost};
use virtual_time::{Datagram, Delivery, EventLoop, Host, HostCosts, HostIndex, Network, Step};

const LISTENER_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0xffff, 0, 0, 0, 1)), 4_433);
/// Port of all other hosts.
const PORT: u16 = 4_000;
const LISTENER: FourTuple = FourTuple { socket: PORT, remote: LISTENER_ADDRESS };
const TICKET: [u8; 8] = [4; 8];
const SECRET: [u8; 16] = [3; 16];
/// The round trip of a flood's hosts.
const FLOOD_RTT: Span = Span::from_ms(20);
/// Time at which the first holder connects: a flood has taken all slots by then.
pub const FIRST_CALL: Time = Time::from_ms(800);

/// The last thing that a host of a flood sends. All follow a Retry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// An Initial packet with a PING.
    Ping,
    /// An Initial packet with a part of a `ClientHello`.
    Fragment,
    /// A complete `ClientHello`.
    ClientHello,
    /// The end of TLS's handshake, without AUTH.
    Finished,
    /// AUTH with a wrong proof.
    Auth,
}

/// A flood.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    pub last: Last,
    /// Number of networks that its hosts are in, of 64 bits each.
    pub networks: u64,
    pub per_second: u64,
}

/// Holders of a ticket that connect one after another, from [`FIRST_CALL`] on.
#[derive(Clone, Copy, Debug)]
pub struct TicketHolders {
    pub holders: u16,
    pub network: HolderNetwork,
    pub rtt: Span,
    /// Time between two calls.
    pub interval: Span,
}

/// The network of a group's holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HolderNetwork {
    /// One of the flood's.
    Flood,
    /// Another one.
    Other,
}

/// Returns the address of a host. The networks of the flood come first.
fn host(network: u64, number: u64) -> SocketAddr {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    address[4..8].copy_from_slice(&(network as u32).to_be_bytes());
    address[8..].copy_from_slice(&(1 + number).to_be_bytes());
    (Ipv6Addr::from(address), PORT).into()
}

fn settings() -> Settings {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    Settings::new(Service::named("test"), Arc::new(law))
}

/// Creates a listener, or an endpoint that only connects.
pub fn endpoint(provider: &Arc<CryptoProvider>, seed: u8, side: Side) -> Endpoint {
    let identity = Identity::from_seed(provider, &[seed; 32]).expect("an identity");
    let config = EndpointConfig { settings: settings(), provider: provider.clone(), identity };
    Endpoint::new(Time::ZERO, config, side).expect("an endpoint")
}

fn initial_keys(side: rustls::Side, first_id: &[u8]) -> Keys {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut suites = provider.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13);
    let suite = suites.find(|suite| suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256).expect("AES-128-GCM");
    Suite { suite, quic: suite.quic.expect("QUIC") }.keys(first_id, side, Version::V1)
}

/// An Initial packet of 1,200 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Initial<'a> {
    pub side: rustls::Side,
    /// The ID that its keys follow from.
    pub first_id: &'a [u8],
    pub to: &'a [u8],
    pub from: proto::ConnectionId,
    pub token: &'a [u8],
    pub frames: &'a [u8],
}

impl Initial<'_> {
    /// Returns the packet, sealed as any host can that knows the ID (RFC 9001 §5.2).
    pub fn seal(&self) -> Vec<u8> {
        let DirectionalKeys { header, packet: key } = initial_keys(self.side, self.first_id).local;
        let mut packet = Vec::new();
        put_long(&mut packet, LongKind::Initial, self.to, self.from, self.token, 2);
        // The length of the number, the frames and the seal in two bytes.
        let length_at = packet.len();
        packet.extend([0; 4]);
        let payload_at = packet.len();
        packet.extend(self.frames);
        packet.resize(1_200 - 16, 0);
        let length = (2 + packet.len() - payload_at + 16) as u16 | 0x4000;
        packet[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        let (head, payload) = packet.split_at_mut(payload_at);
        let tag = key.encrypt_in_place(0, head, payload).expect("a sealed packet");
        packet.extend(tag.as_ref());
        let (head, sample) = packet.split_at_mut(length_at + 2 + 4);
        let (first, number) = head.split_at_mut(length_at + 2);
        header.encrypt_in_place(&sample[..16], &mut first[0], &mut number[..2]).expect("a protected header");
        packet
    }
}

/// A host that calls with packets of its own making.
#[derive(Clone, Copy, Debug)]
pub struct FloodClient {
    address: SocketAddr,
    first_id: proto::ConnectionId,
    own_id: proto::ConnectionId,
}

impl FloodClient {
    pub fn new(network: u64, number: u64) -> Self {
        let [first_id, own_id] = [2 * number, 2 * number + 1].map(|seed| mix64(seed).to_be_bytes());
        Self { address: host(network, number), first_id, own_id }
    }

    /// Its first packet.
    pub fn first(&self, frames: &[u8]) -> Vec<u8> {
        let Self { first_id, own_id: from, .. } = self;
        Initial { side: rustls::Side::Client, first_id, to: first_id, from: *from, token: &[], frames }.seal()
    }

    /// Its packet after a Retry; none if that is something else.
    pub fn second(&self, retry: &[u8], frames: &[u8]) -> Option<Vec<u8>> {
        let Ok(ParsedPacket { header: Header::Retry { from, token, .. }, .. }) = ParsedPacket::read(retry) else {
            return None;
        };
        let initial =
            Initial { side: rustls::Side::Client, first_id: &from, to: &from, from: self.own_id, token, frames };
        Some(initial.seal())
    }

    /// Returns its four-tuple.
    pub fn four_tuple(&self) -> FourTuple {
        FourTuple { socket: 0, remote: self.address }
    }

    /// Passes its first packet to a listener.
    pub fn call(&self, listener: &mut Endpoint, now: Time, frames: &[u8]) -> Received {
        listener.on_datagram(now, self.four_tuple(), Codepoint::NotEct, &mut self.first(frames))
    }

    /// Passes its packet after a Retry to a listener.
    pub fn follow(&self, listener: &mut Endpoint, now: Time, retry: &[u8], frames: &[u8]) -> Received {
        let mut packet = self.second(retry, frames).expect("a Retry");
        listener.on_datagram(now, self.four_tuple(), Codepoint::NotEct, &mut packet)
    }
}

/// Returns the `ClientHello` of a client.
pub fn client_hello(provider: &Arc<CryptoProvider>) -> Vec<u8> {
    let mut client = endpoint(provider, 9, Side::Client);
    let handle = client.connect(Time::ZERO, LISTENER, Trust::Anyone, None).expect("a call");
    let mut datagram = Vec::new();
    client.poll_transmit(Time::ZERO, handle, 1, &mut datagram).expect("a packet");
    let ParsedPacket { header, number_at, .. } = ParsedPacket::read(&datagram).expect("a header");
    let Header::Long { to, .. } = header else { panic!("a long header") };
    let DirectionalKeys { header, packet: key } = initial_keys(rustls::Side::Server, to).remote;
    let (head, sample) = datagram.split_at_mut(number_at + 4);
    let (first, number) = head.split_at_mut(number_at);
    header.decrypt_in_place(&sample[..16], &mut first[0], number).expect("a header");
    let payload_at = number_at + usize::from(datagram[0] & 3) + 1;
    let (head, payload) = datagram.split_at_mut(payload_at);
    let payload = key.decrypt_in_place(0, head, payload).expect("a payload");
    let hello = Frames::new(payload).find_map(|frame| match frame {
        Ok(Frame::Crypto { offset: 0, data }) => Some(data.to_vec()),
        _ => None,
    });
    hello.expect("a ClientHello")
}

/// The listener's application: it admits holders of the ticket.
struct TicketListener;

impl Application for TicketListener {
    fn on_event(&mut self, now: Time, _: ConnectionHandle, event: Event, connection: &mut Connection) {
        match event {
            Event::Claim(claim) if claim.ticket == TICKET && connection.proves(&Secret::new(SECRET)) => {
                connection.admit(now);
            }
            Event::Claim(_) => connection.refuse(now),
            _ => {}
        }
    }

    fn port_for_path(&mut self, _: ConnectionHandle, _: &[u16]) -> Option<u16> {
        None
    }
}

/// A holder's application.
#[derive(Default)]
struct Holder {
    admitted: Option<Time>,
}

impl Application for Holder {
    fn on_event(&mut self, now: Time, _: ConnectionHandle, event: Event, _: &mut Connection) {
        if event == Event::Admitted {
            self.admitted = Some(now);
        }
    }

    fn port_for_path(&mut self, _: ConnectionHandle, _: &[u16]) -> Option<u16> {
        None
    }
}

/// All hosts of a flood.
struct Attackers {
    flood: Flood,
    /// Frames of their Initial packets.
    frames: Vec<u8>,
    /// Hosts that have connected.
    count: u64,
    /// Hosts that fall silent before TLS, and those that take part in it.
    silent: BTreeMap<SocketAddr, FloodClient>,
    clients: Endpoint,
    connections: BTreeMap<SocketAddr, ConnectionHandle>,
    outbox: VecDeque<Datagram>,
}

impl Attackers {
    fn new(provider: &Arc<CryptoProvider>, flood: Flood) -> Self {
        let mut frames = Vec::new();
        let hello = client_hello(provider);
        match flood.last {
            Last::Ping => Frame::Ping.put(&mut frames),
            Last::Fragment => Frame::Crypto { offset: 0, data: &hello[..hello.len() - 1] }.put(&mut frames),
            _ => Frame::Crypto { offset: 0, data: &hello }.put(&mut frames),
        }
        Self {
            flood,
            frames,
            count: 0,
            silent: BTreeMap::new(),
            clients: endpoint(provider, 2, Side::Client),
            connections: BTreeMap::new(),
            outbox: VecDeque::new(),
        }
    }

    fn send(&mut self, source: SocketAddr, payload: Vec<u8>) {
        self.outbox.push_back(Datagram { source, destination: LISTENER_ADDRESS, ecn: 0, payload });
    }

    /// Sends the first packet of the next host.
    fn connect(&mut self, now: Time) {
        let client = FloodClient::new(self.count % self.flood.networks, self.count);
        self.count += 1;
        if matches!(self.flood.last, Last::Finished | Last::Auth) {
            let secret = (TICKET, Secret::new([0; 16]));
            let handle = self.clients.connect(now, LISTENER, Trust::Anyone, Some(secret)).expect("a connection");
            self.connections.insert(client.address, handle);
            return self.transmit(now, client.address, handle);
        }
        self.silent.insert(client.address, client);
        self.send(client.address, client.first(&self.frames));
    }

    /// Sends the pending packets of a client that takes part in TLS, up to its last packet.
    fn transmit(&mut self, now: Time, host: SocketAddr, handle: ConnectionHandle) {
        let mut out = Vec::new();
        while let Some(transmit) = self.clients.poll_transmit(now, handle, 1, &mut out) {
            let payload = std::mem::take(&mut out);
            debug_assert_eq!(payload.len(), transmit.segment);
            let is_long = payload[0] & 0x80 != 0;
            if is_long || self.flood.last == Last::Auth {
                self.send(host, payload);
            }
        }
    }
}

impl Host for Attackers {
    type Packet = Datagram;

    fn receive(&mut self, now: Time, datagram: Datagram) {
        let Datagram { destination: host, mut payload, .. } = datagram;
        if let Some(&handle) = self.connections.get(&host) {
            self.clients.on_datagram(now, LISTENER, Codepoint::NotEct, &mut payload);
            self.transmit(now, host, handle);
        } else if let Some(second) = self.silent[&host].second(&payload, &self.frames) {
            self.send(host, second);
        }
    }

    fn wake(&mut self, now: Time) {
        while self.next_wake() <= now {
            self.connect(now);
        }
    }

    fn poll_send(&mut self, _: Time) -> Option<Datagram> {
        self.outbox.pop_front()
    }

    fn next_wake(&mut self) -> Time {
        let interval = 1_000_000_000_000 * self.count;
        interval.checked_div(self.flood.per_second).map_or(Time::NEVER, Time::from_ps)
    }
}

/// A host of the world.
enum FloodHost {
    Listener(EndpointHost<TicketListener>),
    Attackers(Attackers),
    Holder(EndpointHost<Holder>),
}

impl FloodHost {
    fn inner(&mut self) -> &mut dyn Host<Packet = Datagram> {
        match self {
            Self::Listener(host) => host,
            Self::Attackers(host) => host,
            Self::Holder(host) => host,
        }
    }
}

impl Host for FloodHost {
    type Packet = Datagram;

    fn receive(&mut self, now: Time, datagram: Datagram) {
        self.inner().receive(now, datagram);
    }

    fn wake(&mut self, now: Time) {
        self.inner().wake(now);
    }

    fn poll_send(&mut self, now: Time) -> Option<Datagram> {
        self.inner().poll_send(now)
    }

    fn next_wake(&mut self) -> Time {
        self.inner().next_wake()
    }
}

/// A network without queues: each datagram takes half of the round trip of its host.
#[derive(Default)]
struct DelayNetwork {
    /// Holders and their round trips, by address.
    holders: BTreeMap<SocketAddr, (HostIndex, Span)>,
    on_the_way: BTreeMap<(Time, u64), Delivery<Datagram>>,
    sent: u64,
}

impl Network for DelayNetwork {
    type Packet = Datagram;

    fn accepts_at(&self, _: HostIndex) -> Time {
        Time::ZERO
    }

    fn accept(&mut self, now: Time, _: HostIndex, packet: Datagram) {
        let is_for_listener = packet.destination == LISTENER_ADDRESS;
        let far = if is_for_listener { packet.source } else { packet.destination };
        let (host, rtt) = self.holders.get(&far).copied().unwrap_or((ATTACKERS_HOST, FLOOD_RTT));
        let delivery = Delivery { host: if is_for_listener { LISTENER_HOST } else { host }, packet };
        self.on_the_way.insert((now.saturating_add(rtt.over(2)), self.sent), delivery);
        self.sent += 1;
    }

    fn next_event(&self) -> Time {
        self.on_the_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Datagram>>) {
        while self.next_event() <= now
            && let Some((_, delivery)) = self.on_the_way.pop_first()
        {
            delivered.push(delivery);
        }
    }
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct FloodReport {
    /// Time of each holder of each group from the call to the admission; none for a holder that was not admitted.
    pub took: Vec<Vec<Option<Span>>>,
    /// The most connections that the listener had at a time.
    pub max_connections: usize,
    /// Hosts of the flood that called.
    pub attackers: u64,
}

const LISTENER_HOST: HostIndex = HostIndex(0);
const ATTACKERS_HOST: HostIndex = HostIndex(1);

/// A listener, a flood and holders.
pub struct FloodWorld {
    event_loop: EventLoop<FloodHost, DelayNetwork>,
    /// Holders of each group, and the times at which they connect.
    groups: Vec<Vec<(Time, HostIndex)>>,
    max_connections: usize,
}

impl FloodWorld {
    pub fn new(provider: &Arc<CryptoProvider>, flood: Flood, groups: &[TicketHolders]) -> Self {
        let listener = endpoint(provider, 1, Side::Listener);
        let mut hosts = vec![
            FloodHost::Listener(EndpointHost::new(LISTENER_ADDRESS.ip(), listener, TicketListener, 10)),
            FloodHost::Attackers(Attackers::new(provider, flood)),
        ];
        let mut network = DelayNetwork::default();
        let mut holder = |at: usize, group: &TicketHolders, number: u64| {
            let of_network = match group.network {
                HolderNetwork::Flood => number % flood.networks,
                HolderNetwork::Other => 1_000_000 + at as u64,
            };
            let (address, index) = (host(of_network, u64::MAX / 2 + number), HostIndex(hosts.len() as u32));
            let endpoint = endpoint(provider, 3, Side::Client);
            hosts.push(FloodHost::Holder(EndpointHost::new(address.ip(), endpoint, Holder::default(), 10)));
            network.holders.insert(address, (index, group.rtt));
            (FIRST_CALL.saturating_add(group.interval.times(number as u32)), index)
        };
        let groups = groups
            .iter()
            .enumerate()
            .map(|(at, group)| (0..u64::from(group.holders)).map(|number| holder(at, group, number)).collect())
            .collect();
        Self { event_loop: EventLoop::new(hosts, network, HostCosts::default()), groups, max_connections: 0 }
    }

    /// Runs until all holders are admitted, or the last one has waited for `patience`. The flood lasts.
    pub fn run(mut self, patience: Span) -> FloodReport {
        let mut calls: Vec<(Time, HostIndex)> = self.groups.iter().flatten().copied().collect();
        calls.sort_unstable();
        let settings = Arc::new(settings());
        for &(at, host) in &calls {
            while self.step(at) != Step::Idle {}
            let FloodHost::Holder(holder) = self.event_loop.host(host) else { unreachable!("a holder") };
            let authentication = Authentication { trust: Trust::Anyone, secret: Some((TICKET, Secret::new(SECRET))) };
            holder.connect_with(at, PORT, LISTENER_ADDRESS, authentication, settings.clone()).expect("a connection");
            self.event_loop.wake(host);
        }
        let last = calls.last().map_or(FIRST_CALL, |&(at, _)| at);
        let is_admitted = |host: &FloodHost| match host {
            FloodHost::Holder(holder) => holder.application.admitted.is_some(),
            _ => true,
        };
        while self.step(last.saturating_add(patience)) != Step::Idle && !self.event_loop.hosts().all(is_admitted) {}
        let Self { mut event_loop, groups, max_connections } = self;
        let FloodHost::Attackers(Attackers { count: attackers, .. }) = *event_loop.host(ATTACKERS_HOST) else {
            unreachable!("the flood")
        };
        let mut took = |&(called, host): &(Time, HostIndex)| match event_loop.host(host) {
            FloodHost::Holder(holder) => Some(holder.application.admitted?.since(called)),
            _ => None,
        };
        let took = groups.iter().map(|group| group.iter().map(&mut took).collect()).collect();
        FloodReport { took, max_connections, attackers }
    }

    fn step(&mut self, limit: Time) -> Step {
        let step = self.event_loop.step(limit);
        if step == Step::Host(LISTENER_HOST)
            && let FloodHost::Listener(listener) = self.event_loop.host(LISTENER_HOST)
        {
            self.max_connections = self.max_connections.max(listener.connections());
        }
        step
    }
}
