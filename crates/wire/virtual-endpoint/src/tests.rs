//! Two endpoints and a link between them: one sends a stream, the other checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use laws::{Law, NewReno, PathInfo, newreno};
use proto::closed::CloseCode;
use proto::connection::{Connection, Event};
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig};
use proto::identity::{Identity, Trust};
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use proto::streams::{Direction, StreamEvent, StreamId};
use units::{Bytes, Rate, Span, Time, mix64};
use virtual_time::{Datagram, Delivery, EventLoop, HostCosts, HostIndex, Network, Step};

use crate::provider::{self, PacketProtection};
use crate::{Application, EndpointHost};

const CLIENT: HostIndex = HostIndex(0);
const LISTENER: HostIndex = HostIndex(1);
const LISTEN_PORT: u16 = 5_001;
const FIRST_PORT: u16 = 10_000;
const RATE: Rate = Rate::from_mbps(100);
const DELAY: Span = Span::from_ms(5);
/// Headers of UDP and IPv4.
const HEADERS: u64 = 28;
const STREAM_BYTES: usize = 1_000_000;

fn address(host: HostIndex) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host.0 as u8))
}

/// Returns the byte at an offset of the stream.
fn byte(offset: usize) -> u8 {
    mix64(offset as u64) as u8
}

/// Sends a stream as a client, or checks one as a listener.
#[derive(Default)]
struct TestApplication {
    data: Vec<u8>,
    sending: Option<StreamId>,
    written: usize,
    receiving: Option<StreamId>,
    read: usize,
    has_end: bool,
    next_port: u16,
    /// Times of the admission, and of the acknowledgement of the complete stream.
    admitted: Option<Time>,
    delivered: Option<Time>,
    open_paths: u32,
    closed: Option<Time>,
}

impl TestApplication {
    fn write(&mut self, connection: &mut Connection) {
        let (Some(stream), Some(streams)) = (self.sending, connection.streams()) else { return };
        if self.written < self.data.len() {
            self.written += streams.write(stream, &self.data[self.written..]).unwrap();
            if self.written == self.data.len() {
                streams.finish(stream).unwrap();
            }
        }
    }

    fn read(&mut self, connection: &mut Connection) {
        let Some(streams) = connection.streams() else { return };
        self.receiving = self.receiving.or_else(|| streams.accept());
        let mut buffer = [0; 8_192];
        while let Some(Ok(read)) = self.receiving.map(|stream| streams.read(stream, &mut buffer)) {
            for &got in &buffer[..read.bytes] {
                assert_eq!(got, byte(self.read), "byte {}", self.read);
                self.read += 1;
            }
            self.has_end |= read.ends;
        }
    }
}

impl Application for TestApplication {
    fn on_event(&mut self, now: Time, _: ConnectionHandle, event: Event, connection: &mut Connection) {
        match event {
            Event::Claim(_) => connection.admit(now),
            Event::Admitted => {
                self.admitted = Some(now);
                self.sending = connection.streams().and_then(|streams| streams.open(Direction::OneWay));
                self.write(connection);
            }
            Event::PathOpen(_) => self.open_paths += 1,
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection),
            Event::Stream(StreamEvent::Opened | StreamEvent::Readable(_)) => self.read(connection),
            Event::Stream(StreamEvent::Delivered(_)) => {
                self.delivered = Some(now);
                connection.close(now, CloseCode::NONE, "");
            }
            Event::Closed(_) => self.closed = Some(now),
            _ => {}
        }
    }

    fn port_for_path(&mut self, _: ConnectionHandle, known: &[u16]) -> Option<u16> {
        assert!(!known.contains(&self.next_port));
        self.next_port += 1;
        Some(self.next_port - 1)
    }
}

/// A link each way. It is busy while it sends a datagram, and loses some of them.
struct Link {
    idle_at: [Time; 2],
    on_the_way: BTreeMap<(Time, u64), Datagram>,
    lost_one_in: Option<u64>,
    /// All datagrams and the times at which they were sent, lost ones included.
    sent: Vec<(Time, Datagram)>,
}

impl Network for Link {
    type Packet = Datagram;

    fn accepts_at(&self, host: HostIndex) -> Time {
        self.idle_at[host.index()]
    }

    fn accept(&mut self, now: Time, host: HostIndex, datagram: Datagram) {
        assert!(self.accepts_at(host) <= now, "a host sends although its link is busy");
        let ends = now + RATE.tx_time(Bytes::new(datagram.payload.len() as u64 + HEADERS));
        self.idle_at[host.index()] = ends;
        self.sent.push((now, datagram.clone()));
        let number = self.sent.len() as u64;
        if self.lost_one_in.is_none_or(|many| !mix64(number).is_multiple_of(many)) {
            self.on_the_way.insert((ends + DELAY, number), datagram);
        }
    }

    fn next_event(&self) -> Time {
        self.on_the_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Datagram>>) {
        while self.next_event() <= now
            && let Some((_, packet)) = self.on_the_way.pop_first()
        {
            let host = if packet.destination.ip() == address(CLIENT) { CLIENT } else { LISTENER };
            delivered.push(Delivery { host, packet });
        }
    }
}

/// Configuration of a transfer.
#[derive(Clone, Copy)]
struct Transfer {
    seed: u64,
    protection: PacketProtection,
    paths: u8,
    lost_one_in: Option<u64>,
    costs: HostCosts,
}

impl Default for Transfer {
    fn default() -> Self {
        let (protection, costs) = (PacketProtection::Real, HostCosts::default());
        Self { seed: 1, protection, paths: 1, lost_one_in: None, costs }
    }
}

/// Outcome of a transfer: the client's application, and what was sent.
struct TransferReport {
    client: TestApplication,
    sent: Vec<(Time, Datagram)>,
}

impl Transfer {
    /// Runs it, and checks that all bytes arrived and both ends closed the connection.
    fn run(self) -> TransferReport {
        provider::begin(self.seed);
        let provider = provider::provider(self.protection);
        let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
        let mut settings = Settings::new(Service::named("test"), Arc::new(law));
        settings.paths = self.paths;
        let host = |index: HostIndex, side| {
            let identity = Identity::from_seed(&provider, &[index.0 as u8; 32]).unwrap();
            let fingerprint = identity.fingerprint();
            let config = EndpointConfig { settings: settings.clone(), provider: provider.clone(), identity };
            let endpoint = Endpoint::new(Time::ZERO, config, side).unwrap();
            let data = if side == Side::Client { (0..STREAM_BYTES).map(byte).collect() } else { Vec::new() };
            let application = TestApplication { data, next_port: FIRST_PORT + 1, ..TestApplication::default() };
            (EndpointHost::new(address(index), endpoint, application, 4), fingerprint)
        };
        let ((client, _), (listener, fingerprint)) = (host(CLIENT, Side::Client), host(LISTENER, Side::Listener));
        let link = Link {
            idle_at: [Time::ZERO; 2],
            on_the_way: BTreeMap::new(),
            lost_one_in: self.lost_one_in,
            sent: Vec::new(),
        };
        let mut event_loop = EventLoop::new([client, listener], link, self.costs);
        let (remote, trust) = (SocketAddr::new(address(LISTENER), LISTEN_PORT), Trust::Fingerprint(fingerprint));
        event_loop.host(CLIENT).connect(Time::ZERO, FIRST_PORT, remote, trust, Arc::new(settings)).unwrap();
        while event_loop.step(Time::from_ms(60_000)) != Step::Idle {}
        assert_eq!(event_loop.next_at(), Time::NEVER, "a connection is not forgotten");
        let datagrams: u64 = event_loop.hosts().map(EndpointHost::datagrams_sent).sum();
        let listener = &event_loop.host(LISTENER).application;
        assert!(listener.has_end && listener.closed.is_some(), "{} bytes were read", listener.read);
        assert_eq!(listener.read, STREAM_BYTES);
        let client = std::mem::take(&mut event_loop.host(CLIENT).application);
        let sent = event_loop.into_network().sent;
        assert_eq!(sent.len() as u64, datagrams);
        TransferReport { client, sent }
    }
}

impl TransferReport {
    /// Returns the time from the client's admission until it knew that all was delivered.
    fn took(&self) -> Span {
        self.client.delivered.unwrap().since(self.client.admitted.unwrap())
    }

    /// Returns the sizes of datagrams, with their times and addresses.
    #[cfg(feature = "null-crypto")]
    fn sizes(&self) -> Vec<(Time, SocketAddr, SocketAddr, u8, usize)> {
        let size = |(at, it): &(Time, Datagram)| (*at, it.source, it.destination, it.ecn, it.payload.len());
        self.sent.iter().map(size).collect()
    }
}

/// The client sends after two RTTs: one for TLS and one for its admission. A transfer takes at least the transmission
/// time of its bytes plus one RTT, and at most ten RTTs of slow start more.
#[test]
fn data_crosses_in_the_time_of_its_link() {
    let report = Transfer::default().run();
    let rtt = DELAY.times(2);
    let admitted = report.client.admitted.unwrap();
    assert!(admitted >= Time::ZERO + rtt.times(2) && admitted < Time::ZERO + rtt.times(3), "{admitted:?}");
    let min = RATE.tx_time(Bytes::new(STREAM_BYTES as u64)) + rtt;
    assert!(report.took() > min && report.took() < min + rtt.times(10), "{} of at least {min}", report.took());
}

#[test]
fn a_run_follows_from_its_seed() {
    let run = |seed| Transfer { seed, paths: 2, lost_one_in: Some(20), ..Transfer::default() }.run().sent;
    let first = run(7);
    assert!(run(7) == first, "one seed, two runs");
    let other = run(8);
    assert_eq!(other[0].1.payload.len(), first[0].1.payload.len());
    assert_ne!(other[0].1.payload, first[0].1.payload);
}

/// Each path has a port of its own, and carries a part of the data: at least half of what would be its share.
#[test]
fn all_paths_are_used() {
    for paths in [1, 2, 4, 8] {
        let TransferReport { client, sent } = Transfer { paths, ..Transfer::default() }.run();
        let mut bytes: BTreeMap<u16, usize> = BTreeMap::new();
        for (_, datagram) in sent.iter().filter(|(_, datagram)| datagram.source.ip() == address(CLIENT)) {
            *bytes.entry(datagram.source.port()).or_default() += datagram.payload.len();
        }
        let ports: BTreeSet<u16> = (FIRST_PORT..FIRST_PORT + u16::from(paths)).collect();
        assert_eq!(bytes.keys().copied().collect::<BTreeSet<u16>>(), ports);
        assert_eq!(client.open_paths, u32::from(paths) - 1);
        let share = STREAM_BYTES / usize::from(paths);
        assert!(bytes.values().all(|&bytes| bytes > share / 2), "{bytes:?}");
    }
}

#[test]
fn losses_are_repaired() {
    let whole = Transfer::default().run();
    for seed in 0..20 {
        let report = Transfer { seed, lost_one_in: Some(10), ..Transfer::default() }.run();
        assert!(report.sent.len() > whole.sent.len(), "nothing was sent again");
    }
}

/// Hosts that take 20 us per packet keep up with a link that takes 120 us for a full one. Hosts that take 200 us determine the
/// rate.
#[test]
fn processing_times_limit_the_rate() {
    let run = |packet| Transfer { costs: HostCosts { packet, ..HostCosts::default() }, ..Transfer::default() }.run();
    let (ideal, fast, slow) = (run(Span::ZERO), run(Span::from_us(20)), run(Span::from_us(200)));
    assert!(fast.took() >= ideal.took() && fast.took() < ideal.took().times(11).over(10), "{}", fast.took());
    let sent = slow.sent.iter().filter(|(_, datagram)| datagram.source.ip() == address(CLIENT)).count();
    assert!(slow.took() > Span::from_us(200).times(sent as u32), "{} for {sent} packets", slow.took());
}

/// Without encryption all datagrams are sent at the same times and have the same sizes. The stream can be read in them.
#[cfg(feature = "null-crypto")]
#[test]
fn null_crypto_changes_contents_only() {
    for lost_one_in in [None, Some(20)] {
        let run = |protection| Transfer { protection, paths: 3, lost_one_in, ..Transfer::default() }.run();
        let (real, null) = (run(PacketProtection::Real), run(PacketProtection::Null));
        assert_eq!(real.sizes(), null.sizes());
        assert!(real.sent != null.sent);
        let contains_stream = |report: &TransferReport| {
            let piece: Vec<u8> = (0..100).map(byte).collect();
            report.sent.iter().any(|(_, it)| it.payload.windows(piece.len()).any(|window| window == piece))
        };
        assert_eq!([contains_stream(&real), contains_stream(&null)], [false, true]);
    }
}
