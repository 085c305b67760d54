//! A flood of a listener in virtual time: hosts that connect and fall silent, and holders of a ticket that connect
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use flow::Codepoint;
use laws::{Law, NewReno, PathInfo, newreno};
use proto::connection::Event;
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Received};
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

const LISTENER: FourTuple =
    FourTuple { socket: 0, remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4_433) };
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
    (Ipv6Addr::from(address), 4_000).into()
}

/// Creates a listener, or an endpoint that only connects.
pub fn endpoint(provider: &Arc<CryptoProvider>, seed: u8, side: Side) -> Endpoint {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    let settings = Settings::new(Service::named("test"), Arc::new(law));
    let identity = Identity::from_seed(provider, &[seed; 32]).expect("an identity");
    let config = EndpointConfig { settings, provider: provider.clone(), identity };
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
    pub from: proto::Id,
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
    first_id: proto::Id,
    own_id: proto::Id,
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

/// A datagram on its way between the listener and a host.
struct Datagram {
    to: FloodEnd,
    host: SocketAddr,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FloodEnd {
    Listener,
    Host,
}

struct Holder {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    rtt: Span,
    called: Time,
    due: Time,
    admitted: Option<Time>,
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

/// A listener, a flood and holders.
pub struct FloodWorld {
    now: Time,
    flood: Flood,
    /// Frames of the flood's Initial packets.
    frames: Vec<u8>,
    listener: Endpoint,
    timers: BTreeSet<(Time, ConnectionHandle)>,
    due: BTreeMap<ConnectionHandle, Time>,
    datagrams: BTreeMap<(Time, u64), Datagram>,
    sent: u64,
    groups: Vec<Vec<SocketAddr>>,
    holders: BTreeMap<SocketAddr, Holder>,
    /// Hosts of the flood that fall silent before TLS, and those that take part in it.
    silent: BTreeMap<SocketAddr, FloodClient>,
    clients: Endpoint,
    calls: BTreeMap<SocketAddr, ConnectionHandle>,
    max_connections: usize,
}

impl FloodWorld {
    pub fn new(provider: &Arc<CryptoProvider>, flood: Flood, groups: &[TicketHolders]) -> Self {
        let mut frames = Vec::new();
        let hello = client_hello(provider);
        match flood.last {
            Last::Ping => Frame::Ping.put(&mut frames),
            Last::Fragment => Frame::Crypto { offset: 0, data: &hello[..hello.len() - 1] }.put(&mut frames),
            _ => Frame::Crypto { offset: 0, data: &hello }.put(&mut frames),
        }
        let mut world = Self {
            now: Time::ZERO,
            flood,
            frames,
            listener: endpoint(provider, 1, Side::Listener),
            timers: BTreeSet::new(),
            due: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            sent: 0,
            groups: Vec::new(),
            holders: BTreeMap::new(),
            silent: BTreeMap::new(),
            clients: endpoint(provider, 2, Side::Client),
            calls: BTreeMap::new(),
            max_connections: 0,
        };
        for (at, group) in groups.iter().enumerate() {
            let network = |number| match group.network {
                HolderNetwork::Flood => number % flood.networks,
                HolderNetwork::Other => 1_000_000 + at as u64,
            };
            let mut addresses = Vec::new();
            for number in 0..u64::from(group.holders) {
                let called = FIRST_CALL.saturating_add(group.interval.times(number as u32));
                let address = host(network(number), u64::MAX / 2 + number);
                let mut endpoint = endpoint(provider, 3, Side::Client);
                let secret = Some((TICKET, Secret::new(SECRET)));
                let handle = endpoint.connect(called, LISTENER, Trust::Anyone, secret).expect("a call");
                let (due, rtt) = (called, group.rtt);
                world.holders.insert(address, Holder { endpoint, handle, rtt, called, due, admitted: None });
                addresses.push(address);
            }
            world.groups.push(addresses);
        }
        world
    }

    /// Runs until all holders are admitted, or the last one has waited for `patience`. The flood lasts.
    pub fn run(mut self, patience: Span) -> FloodReport {
        let last = self.holders.values().map(|holder| holder.called).max().unwrap_or(FIRST_CALL);
        let (end, mut attackers) = (last.saturating_add(patience), 0);
        while self.holders.values().any(|holder| holder.admitted.is_none()) {
            let attack = Time::from_ps(1_000_000_000_000 * attackers / self.flood.per_second.max(1));
            let attack = if self.flood.per_second == 0 { Time::NEVER } else { attack };
            let arrival = self.datagrams.first_key_value().map_or(Time::NEVER, |(&(time, _), _)| time);
            let timer = self.timers.first().map_or(Time::NEVER, |&(time, _)| time);
            let (holder, address) =
                self.holders.iter().map(|(&host, holder)| (holder.due, host)).min().expect("a holder");
            let next = attack.min(arrival).min(timer).min(holder);
            if next > end {
                break;
            }
            self.now = next;
            if next == arrival {
                self.deliver();
            } else if next == timer {
                let (_, handle) = self.timers.pop_first().expect("a timer");
                self.due.remove(&handle);
                self.listener.on_timer(next, handle);
                self.serve(handle);
            } else if next == holder {
                self.serve_holder(address, None);
            } else {
                self.attack(FloodClient::new(attackers % self.flood.networks, attackers));
                attackers += 1;
            }
            self.max_connections = self.max_connections.max(self.due.len());
        }
        let took = |host| {
            let holder: &Holder = &self.holders[host];
            Some(holder.admitted?.since(holder.called))
        };
        let took = self.groups.iter().map(|group| group.iter().map(took).collect()).collect();
        FloodReport { took, max_connections: self.max_connections, attackers }
    }

    fn send(&mut self, after: Span, datagram: Datagram) {
        self.datagrams.insert((self.now.saturating_add(after), self.sent), datagram);
        self.sent += 1;
    }

    /// Returns half of a host's round trip.
    fn way(&self, host: SocketAddr) -> Span {
        self.holders.get(&host).map_or(FLOOD_RTT, |holder| holder.rtt).over(2)
    }

    fn deliver(&mut self) {
        let (_, Datagram { to, host, mut bytes }) = self.datagrams.pop_first().expect("a datagram");
        if to == FloodEnd::Host {
            if self.holders.contains_key(&host) {
                self.serve_holder(host, Some(bytes));
            } else {
                self.answer(host, &mut bytes);
            }
            return;
        }
        let four_tuple = FourTuple { socket: 0, remote: host };
        let received = self.listener.on_datagram(self.now, four_tuple, Codepoint::NotEct, &mut bytes);
        while let Some(handle) = self.listener.poll_evicted() {
            self.serve(handle);
        }
        let (mut out, after) = (Vec::new(), self.way(host));
        while self.listener.poll_reply(&mut out).is_some() {
            self.send(after, Datagram { to: FloodEnd::Host, host, bytes: std::mem::take(&mut out) });
        }
        if let Received::Connection(handle) | Received::New(handle) = received {
            self.serve(handle);
        }
    }

    /// Handles the requests of a connection at the listener.
    fn serve(&mut self, handle: ConnectionHandle) {
        while let Some(event) = self.listener.connection(handle).and_then(proto::connection::Connection::poll_event) {
            if let (Event::Claim(claim), Some(connection)) = (event, self.listener.connection(handle)) {
                if claim.ticket == TICKET && connection.proves(&Secret::new(SECRET)) {
                    connection.admit(self.now);
                } else {
                    connection.refuse(self.now);
                }
                self.listener.settle(handle);
            }
        }
        let mut out = Vec::new();
        while let Some(transmit) = self.listener.poll_transmit(self.now, handle, 10, &mut out) {
            let host = transmit.four_tuple.remote;
            for bytes in std::mem::take(&mut out).chunks(transmit.segment) {
                self.send(self.way(host), Datagram { to: FloodEnd::Host, host, bytes: bytes.to_vec() });
            }
        }
        if let Some(before) = self.due.remove(&handle) {
            self.timers.remove(&(before, handle));
        }
        if !self.listener.forget(handle)
            && let Some(connection) = self.listener.connection(handle)
        {
            let due = connection.next_timer();
            self.timers.insert((due, handle));
            self.due.insert(handle, due);
        }
    }

    /// Passes a datagram to a holder, or lets it act because its timer is due.
    fn serve_holder(&mut self, host: SocketAddr, datagram: Option<Vec<u8>>) {
        let now = self.now;
        let holder = self.holders.get_mut(&host).expect("a holder");
        match datagram {
            Some(mut bytes) => drop(holder.endpoint.on_datagram(now, LISTENER, Codepoint::NotEct, &mut bytes)),
            None => holder.endpoint.on_timer(now, holder.handle),
        }
        let connection = holder.endpoint.connection(holder.handle).expect("a connection");
        while let Some(event) = connection.poll_event() {
            if event == Event::Admitted {
                holder.admitted = Some(now);
            }
        }
        let (mut datagrams, mut out) = (Vec::new(), Vec::new());
        while let Some(transmit) = holder.endpoint.poll_transmit(now, holder.handle, 10, &mut out) {
            datagrams.extend(out.chunks(transmit.segment).map(<[u8]>::to_vec));
            out.clear();
        }
        let connection = holder.endpoint.connection(holder.handle).expect("a connection");
        holder.due = connection.next_timer();
        for bytes in datagrams {
            self.send(self.way(host), Datagram { to: FloodEnd::Listener, host, bytes });
        }
    }

    /// Starts the connection of a host of the flood.
    fn attack(&mut self, client: FloodClient) {
        let host = client.address;
        if matches!(self.flood.last, Last::Finished | Last::Auth) {
            let secret = (TICKET, Secret::new([0; 16]));
            let handle = self.clients.connect(self.now, LISTENER, Trust::Anyone, Some(secret)).expect("a call");
            self.calls.insert(host, handle);
            return self.transmit(host, handle);
        }
        self.silent.insert(host, client);
        let bytes = client.first(&self.frames);
        self.send(FLOOD_RTT.over(2), Datagram { to: FloodEnd::Listener, host, bytes });
    }

    /// Handles a datagram at a host of the flood.
    fn answer(&mut self, host: SocketAddr, bytes: &mut [u8]) {
        if let Some(&handle) = self.calls.get(&host) {
            self.clients.on_datagram(self.now, LISTENER, Codepoint::NotEct, bytes);
            return self.transmit(host, handle);
        }
        if let Some(bytes) = self.silent[&host].second(bytes, &self.frames) {
            self.send(FLOOD_RTT.over(2), Datagram { to: FloodEnd::Listener, host, bytes });
        }
    }

    /// Sends the pending packets of a client of the flood, up to its last packet.
    fn transmit(&mut self, host: SocketAddr, handle: ConnectionHandle) {
        let mut out = Vec::new();
        while let Some(transmit) = self.clients.poll_transmit(self.now, handle, 1, &mut out) {
            let bytes = std::mem::take(&mut out);
            debug_assert_eq!(bytes.len(), transmit.segment);
            let is_long = bytes[0] & 0x80 != 0;
            if is_long || self.flood.last == Last::Auth {
                self.send(FLOOD_RTT.over(2), Datagram { to: FloodEnd::Listener, host, bytes });
            }
        }
    }
}
