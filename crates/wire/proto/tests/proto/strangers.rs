//! Strangers: a listener's answers to hosts without a connection, and admission of clients.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use flow::Codepoint;
use laws::{Law, NewReno, PathInfo, newreno};
use proto::VERSION;
use proto::closed::{CloseCode, Closed};
use proto::connection::Event;
use proto::endpoint::{Authentication, ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::frame::Frame;
use proto::header::{Header, ParsedPacket};
use proto::identity::{Identity, Trust};
use proto::observe::{ConnectionStart, Observer, ObserverMaker};
use proto::secret::Secret;
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use units::{Span, Time};

use crate::flood::{Flood, FloodClient, FloodWorld, HolderNetwork, Initial, Last, TicketHolders};

/// The longest that a holder of a ticket waits for its admission during a flood.
const LIMIT: Span = Span::from_s(3);

const LISTENER: FourTuple =
    FourTuple { socket: 0, remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4_433) };

fn endpoint(seed: u8, listens: bool) -> Endpoint {
    endpoint_with_paths(seed, listens, 1)
}

const ANYONE: Authentication = Authentication { trust: Trust::Anyone, secret: None };

fn endpoint_with_paths(seed: u8, listens: bool, paths: u8) -> Endpoint {
    endpoint_of("test", seed, listens, paths)
}

fn endpoint_of(service: &str, seed: u8, listens: bool, paths: u8) -> Endpoint {
    let identity = Identity::from_seed(&crate::world::provider::provider(), &[seed; 32]).unwrap();
    let settings = Settings { paths, ..settings_of(service) };
    let provider = crate::world::provider::provider();
    let side = if listens { Side::Listener } else { Side::Client };
    Endpoint::new(Time::ZERO, EndpointConfig { settings, provider, identity }, side).unwrap()
}

fn settings_of(service: &str) -> Settings {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    Settings::new(Service::named(service), Arc::new(law))
}

fn client(host: u8, port: u16) -> FourTuple {
    FourTuple { socket: 0, remote: SocketAddr::from(([10, 0, 0, host], port)) }
}

fn call(endpoint: &mut Endpoint, secret: Option<([u8; 8], Secret)>) -> ConnectionHandle {
    endpoint.connect(Time::ZERO, LISTENER, Trust::Anyone, secret).unwrap()
}

/// Takes the pending datagrams of a connection.
fn sent(endpoint: &mut Endpoint, handle: ConnectionHandle, now: Time) -> Vec<Vec<u8>> {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    while let Some(transmit) = endpoint.poll_transmit(now, handle, 10, &mut out) {
        all.extend(out.chunks(transmit.segment).map(<[u8]>::to_vec));
        out.clear();
    }
    all
}

/// Takes the pending answers of an endpoint to strangers.
fn replies(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    while endpoint.poll_reply(&mut out).is_some() {
        all.push(std::mem::take(&mut out));
    }
    all
}

fn receive(endpoint: &mut Endpoint, now: Time, four_tuple: FourTuple, datagrams: Vec<Vec<u8>>) -> Vec<Received> {
    let mut receive = |mut datagram: Vec<u8>| endpoint.on_datagram(now, four_tuple, Codepoint::NotEct, &mut datagram);
    datagrams.into_iter().map(&mut receive).collect()
}

fn events(endpoint: &mut Endpoint, handle: ConnectionHandle) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.connection(handle)?.poll_event()).collect()
}

/// Connects two endpoints, as far as the claim. Returns the listener's handle.
fn meet(
    ours: (&mut Endpoint, ConnectionHandle),
    listener: &mut Endpoint,
    four_tuple: FourTuple,
    now: Time,
) -> ConnectionHandle {
    let (endpoint, handle) = ours;
    let mut accepted = None;
    for _ in 0..4 {
        for received in receive(listener, now, four_tuple, sent(endpoint, handle, now)) {
            if let Received::New(handle) = received {
                accepted = Some(handle);
            }
        }
        if let Some(accepted) = accepted {
            let datagrams = sent(listener, accepted, now);
            receive(endpoint, now, LISTENER, datagrams);
        }
    }
    accepted.unwrap()
}

#[test]
fn unknown_versions_get_version_negotiation() {
    crate::world::provider::begin(1, 0);
    let mut listener = endpoint(1, true);
    let mut datagram = vec![0xc0, 0, 0, 0, 9, 3, 1, 2, 3, 2, 7, 8];
    datagram.resize(1_199, 0);
    receive(&mut listener, Time::ZERO, client(1, 1), vec![datagram.clone()]);
    assert!(replies(&mut listener).is_empty(), "a short datagram is answered");
    datagram.push(0);
    receive(&mut listener, Time::ZERO, client(1, 1), vec![datagram]);
    let reply = &replies(&mut listener)[0];
    let packet = ParsedPacket::read(reply).unwrap();
    assert_eq!(packet.header, Header::OtherVersion { version: 0, to: &[7, 8], from: &[1, 2, 3] });
    assert!(reply.ends_with(&VERSION.to_be_bytes()));
}

#[test]
fn version_negotiation_closes_the_connection() {
    crate::world::provider::begin(2, 0);
    let mut endpoint = endpoint(2, false);
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, Time::ZERO).remove(0);
    let Header::Long { to, from, .. } = ParsedPacket::read(&first).unwrap().header else { panic!("a long header") };
    let mut reply = Vec::new();
    proto::header::put_versions(&mut reply, &from, to);
    // A list that contains the version in use is invalid.
    receive(&mut endpoint, Time::ZERO, LISTENER, vec![reply.clone()]);
    assert_eq!(events(&mut endpoint, handle), []);
    *reply.last_mut().unwrap() ^= 1;
    assert_eq!(receive(&mut endpoint, Time::ZERO, LISTENER, vec![reply]), [Received::Connection(handle)]);
    assert_eq!(events(&mut endpoint, handle), [Event::Closed(Closed::Version)]);
}

#[test]
fn an_unknown_connection_is_reset_by_its_token_alone() {
    crate::world::provider::begin(3, 0);
    let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
    let handle = call(&mut endpoint, None);
    let four_tuple = client(1, 1);
    let accepted = meet((&mut endpoint, handle), &mut listener, four_tuple, Time::ZERO);
    listener.connection(accepted).unwrap().admit(Time::ZERO);
    listener.settle(accepted);
    let _ = (events(&mut endpoint, handle), sent(&mut listener, accepted, Time::ZERO));
    // The listener forgets the connection.
    listener.connection(accepted).unwrap().close(Time::ZERO, CloseCode::NONE, "");
    listener.on_timer(Time::from_ms(600_000), accepted);
    assert!(listener.forget(accepted));
    // Each packet of the client gets a shorter response.
    endpoint.connection(handle).unwrap().ping();
    // Time passes for pacing.
    let ping = sent(&mut endpoint, handle, Time::from_ms(500));
    let len = ping[0].len();
    receive(&mut listener, Time::ZERO, four_tuple, ping);
    let reset = replies(&mut listener).remove(0);
    assert!(reset.len() < len && reset[0] & 0xc0 == 0x40);
    // Another address, or another token, ends nothing.
    let mut forged = reset.clone();
    *forged.last_mut().unwrap() ^= 1;
    receive(&mut endpoint, Time::ZERO, LISTENER, vec![forged]);
    receive(&mut endpoint, Time::ZERO, client(9, 9), vec![reset.clone()]);
    assert_eq!(events(&mut endpoint, handle), []);
    assert_eq!(receive(&mut endpoint, Time::ZERO, LISTENER, vec![reset]), [Received::Connection(handle)]);
    assert_eq!(events(&mut endpoint, handle), [Event::Closed(Closed::Reset)]);
}

fn group(seed: u8, of: u8) -> Vec<Endpoint> {
    let identity = Identity::from_seed(&crate::world::provider::provider(), &[seed; 32]).unwrap();
    let settings = Settings { paths: 4, ..settings_of("test") };
    let provider = crate::world::provider::provider();
    Endpoint::listener_group(Time::ZERO, EndpointConfig { settings, provider, identity }, of).unwrap()
}

/// A reset has no ID, so it may arrive at any endpoint of a team. That endpoint passes it to the one that has the
/// connection.
#[test]
fn a_reset_finds_the_connection_in_a_group() {
    crate::world::provider::begin(11, 0);
    let (mut group, mut endpoint) = (group(1, 3), endpoint(2, false));
    let handle = call(&mut endpoint, None);
    let four_tuple = client(1, 1);
    let accepted = meet((&mut endpoint, handle), &mut group[1], four_tuple, Time::ZERO);
    group[1].connection(accepted).unwrap().admit(Time::ZERO);
    let datagrams = sent(&mut group[1], accepted, Time::ZERO);
    receive(&mut endpoint, Time::ZERO, LISTENER, datagrams);
    // The client forgets the connection, and its CLOSE is lost.
    endpoint.connection(handle).unwrap().close(Time::ZERO, CloseCode::NONE, "");
    endpoint.on_timer(Time::from_ms(600_000), handle);
    let _ = events(&mut endpoint, handle);
    assert!(endpoint.forget(handle));
    group[1].connection(accepted).unwrap().ping();
    let ping = sent(&mut group[1], accepted, Time::from_ms(500));
    receive(&mut endpoint, Time::ZERO, LISTENER, ping);
    let reset = replies(&mut endpoint).remove(0);
    let _ = events(&mut group[1], accepted);
    let received = receive(&mut group[2], Time::ZERO, four_tuple, vec![reset]);
    let Received::MaybeReset(token) = received[0] else { panic!("{received:?}") };
    assert_eq!(group[0].on_reset(Time::ZERO, four_tuple, &token), None);
    assert_eq!(group[1].on_reset(Time::ZERO, client(9, 9), &token), None);
    assert_eq!(group[1].on_reset(Time::ZERO, four_tuple, &token), Some(accepted));
    assert_eq!(events(&mut group[1], accepted), [Event::Closed(Closed::Reset)]);
    // All endpoints together forward as many possible resets as they may send responses.
    let shown = (0..300).filter(|at| {
        let received = receive(&mut group[at % 3], Time::ZERO, client(1, 2), vec![vec![0x40; 41]]);
        matches!(received[..], [Received::MaybeReset(_)])
    });
    assert_eq!(shown.count(), 99);
}

/// A Retry's token returns to the endpoint that made it, because that is selected by the address; all IDs that an endpoint
/// issues later identify the endpoint.
#[test]
fn an_id_names_its_endpoint() {
    crate::world::provider::begin(12, 0);
    let mut group = group(1, 3);
    for port in 1..=16 {
        let mut endpoint = endpoint(2, false);
        let handle = call(&mut endpoint, None);
        let first = sent(&mut endpoint, handle, Time::ZERO);
        receive(&mut group[usize::from(port) % 3], Time::ZERO, client(1, port), first);
    }
    // This address has its maximum number of handshakes, over all endpoints.
    let (mut endpoint, four_tuple, now) = (endpoint_with_paths(2, false, 4), client(1, 99), Time::ZERO);
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, now);
    assert_eq!(receive(&mut group[1], now, four_tuple, first), [Received::Nothing]);
    let reply = replies(&mut group[1]);
    receive(&mut endpoint, now, LISTENER, reply);
    let accepted = meet((&mut endpoint, handle), &mut group[1], four_tuple, now);
    group[1].connection(accepted).unwrap().admit(now);
    let datagrams = sent(&mut group[1], accepted, now);
    receive(&mut endpoint, now, LISTENER, datagrams);
    let connection = endpoint.connection(handle).unwrap();
    for socket in 1..4 {
        connection.open_path(now, socket).unwrap();
    }
    connection.ping();
    let datagrams = sent(&mut endpoint, handle, now);
    let ids: BTreeSet<[u8; 8]> = datagrams.iter().map(|it| it[1..9].try_into().unwrap()).collect();
    assert!(ids.len() == 4 && ids.iter().all(|id| id[0] % 3 == 1), "{ids:?}");
    // Another endpoint that gets such a packet ends nothing by a reset.
    let answered = group.iter_mut().map(|endpoint| {
        receive(endpoint, now, four_tuple, vec![[&[0x40, 1][..], &[0; 60]].concat()]);
        replies(endpoint).len()
    });
    assert_eq!(answered.collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn resets_are_few() {
    crate::world::provider::begin(4, 0);
    let mut listener = endpoint(1, true);
    for second in 0..3 {
        let now = Time::from_ms(1_000 * second);
        let mut count = 0;
        for _ in 0..300 {
            receive(&mut listener, now, client(1, 1), vec![vec![0x40; 100]]);
            count += replies(&mut listener).len();
        }
        assert_eq!(count, 100);
    }
    receive(&mut listener, Time::from_ms(9_000), client(1, 1), vec![vec![0x40; 41]]);
    assert!(replies(&mut listener).is_empty(), "a short packet is answered");
}

/// A client must validate its address under load, before any state is kept. Each token is redeemed once, from its
/// address.
#[test]
fn a_retry_proves_an_address() {
    crate::world::provider::begin(5, 0);
    let mut listener = endpoint(1, true);
    // Sixteen clients at each of four addresses need not validate their addresses.
    for port in 0..64 {
        let mut endpoint = endpoint(2, false);
        let handle = call(&mut endpoint, None);
        let first = sent(&mut endpoint, handle, Time::ZERO);
        let received = receive(&mut listener, Time::ZERO, client(1 + port / 16, port.into()), first);
        assert!(matches!(received[..], [Received::New(_)]), "{port}");
    }
    let mut endpoint = endpoint(2, false);
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, Time::ZERO);
    let four_tuple = client(9, 1);
    assert_eq!(receive(&mut listener, Time::ZERO, four_tuple, first), [Received::Nothing]);
    let retry = replies(&mut listener).remove(0);
    // A modified Retry is invalid.
    let mut forged = retry.clone();
    forged[30] ^= 1;
    receive(&mut endpoint, Time::ZERO, LISTENER, vec![forged]);
    assert!(sent(&mut endpoint, handle, Time::ZERO).is_empty());
    receive(&mut endpoint, Time::ZERO, LISTENER, vec![retry.clone()]);
    let second = sent(&mut endpoint, handle, Time::ZERO);
    assert_eq!(second.len(), 1);
    // The token is bound to this address and time.
    assert_eq!(receive(&mut listener, Time::ZERO, client(8, 1), second.clone()), [Received::Nothing]);
    assert_eq!(receive(&mut listener, Time::from_ms(10_000), four_tuple, second.clone()), [Received::Nothing]);
    let received = receive(&mut listener, Time::from_ms(9_999), four_tuple, second.clone());
    assert!(matches!(received[..], [Received::New(_)]));
    // A duplicate packet belongs to the same connection; a duplicate Retry does nothing.
    let Received::New(accepted) = received[0] else { panic!("a connection") };
    assert_eq!(receive(&mut listener, Time::from_ms(9_999), four_tuple, second), [Received::Connection(accepted)]);
    receive(&mut endpoint, Time::ZERO, LISTENER, vec![retry]);
    let now = Time::from_ms(9_999);
    let datagrams = sent(&mut listener, accepted, now);
    receive(&mut endpoint, now, LISTENER, datagrams);
    assert_eq!(events(&mut endpoint, handle), [Event::Connected]);
}

/// Every cause of a refusal looks the same.
#[test]
fn a_client_without_a_ticket_is_refused() {
    crate::world::provider::begin(6, 0);
    let known = Secret::new([5; 16]);
    for (ticket, secret, is_known) in [([1; 8], [5; 16], true), ([1; 8], [6; 16], false), ([0; 8], [5; 16], true)] {
        let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
        let handle = call(&mut endpoint, Some((ticket, Secret::new(secret))));
        let accepted = meet((&mut endpoint, handle), &mut listener, client(1, 1), Time::ZERO);
        let claim = events(&mut listener, accepted).into_iter().find_map(|event| match event {
            Event::Claim(claim) => Some(claim),
            _ => None,
        });
        assert_eq!(claim.unwrap().ticket, ticket);
        let connection = listener.connection(accepted).unwrap();
        assert_eq!(connection.proves(&known), is_known);
        assert!(connection.streams().is_none());
        if is_known && ticket == [1; 8] {
            connection.admit(Time::ZERO);
            assert!(connection.streams().is_some());
            continue;
        }
        connection.refuse(Time::ZERO);
        let datagrams = sent(&mut listener, accepted, Time::ZERO);
        receive(&mut endpoint, Time::ZERO, LISTENER, datagrams);
        let closed = Event::Closed(Closed::ByPeer { code: CloseCode::REFUSED, reason: String::new() });
        assert!(events(&mut endpoint, handle).contains(&closed));
    }
}

/// The longest RTT reported on a connection.
#[derive(Default)]
struct LongestRtt(Mutex<Span>);

impl Observer for LongestRtt {
    fn on_event(&self, _: Time, event: &proto::observe::Event) {
        if let proto::observe::Event::Metrics { metrics, .. } = event {
            let mut longest = self.0.lock().unwrap();
            *longest = metrics.latest_rtt.map_or(*longest, |rtt| rtt.max(*longest));
        }
    }
}

/// A listener that admits a client late acknowledges nothing that was sent after the waiting packets: the client's law
/// receives no loss. And its ACKs state how long the acknowledged packets have waited.
#[test]
fn data_sent_before_admission_is_kept() {
    crate::world::provider::begin(12, 0);
    for writes_early in [false, true] {
        let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
        let longest = Arc::new(LongestRtt::default());
        let observed_max = longest.clone();
        let observe: ObserverMaker = Arc::new(move |_| Some(observed_max.clone()));
        let settings = Arc::new(Settings { observe: Some(observe), ..settings_of("test") });
        let handle = endpoint.connect_with(Time::ZERO, LISTENER, ANYONE, settings).unwrap();
        let four_tuple = client(1, 1);
        let accepted = meet((&mut endpoint, handle), &mut listener, four_tuple, Time::ZERO);
        let window = endpoint.connection(handle).unwrap().laws().window;
        let (mut back, mut stream, mut admitted) = (Vec::new(), None, None);
        for step in 0..200 {
            let now = Time::from_ms(10 * step);
            receive(&mut endpoint, now, LISTENER, std::mem::take(&mut back));
            let connection = endpoint.connection(handle).unwrap();
            if stream.is_none() && (writes_early && step == 3 || admitted.is_some()) {
                let streams = connection.streams().unwrap();
                let opened = streams.open(proto::streams::Direction::OneWay).unwrap();
                streams.write(opened, b"hello").unwrap();
                streams.finish(opened).unwrap();
                stream = Some(opened);
            }
            // With nothing else to send, it checks whether the listener is alive.
            if step % 10 == 9 {
                connection.ping();
            }
            endpoint.on_timer(now, handle);
            receive(&mut listener, now, four_tuple, sent(&mut endpoint, handle, now));
            if admitted.is_none() && step == 40 {
                listener.connection(accepted).unwrap().admit(now);
                admitted = Some(now);
            }
            listener.on_timer(now, accepted);
            back = sent(&mut listener, accepted, now);
        }
        let connection = endpoint.connection(handle).unwrap();
        assert!(connection.is_delivered(stream.unwrap()));
        let (stats, laws) = (connection.stats(), connection.laws());
        assert_eq!((stats.lost, laws.actions.loss_cuts), (stats.spurious, 0), "{stats:?}");
        assert!(laws.window >= window, "{} of {window}", laws.window);
        // The newest waiting packet had waited for 50 ms; a packet and its acknowledgement take 10.
        let longest = *longest.0.lock().unwrap();
        assert!((Span::from_ms(1)..Span::from_ms(25)).contains(&longest), "{longest}");
    }
}

/// A client that does not identify itself is refused after 10 s, and costs nothing then.
#[test]
fn silent_clients_time_out() {
    crate::world::provider::begin(7, 0);
    let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, Time::ZERO);
    let received = receive(&mut listener, Time::ZERO, client(1, 1), first);
    let Received::New(accepted) = received[0] else { panic!("a connection") };
    let mut now = Time::ZERO;
    let mut left = sent(&mut listener, accepted, now).iter().map(Vec::len).sum::<usize>();
    while !listener.connection(accepted).unwrap().is_over() {
        now = listener.connection(accepted).unwrap().next_timer();
        listener.on_timer(now, accepted);
        left += sent(&mut listener, accepted, now).iter().map(Vec::len).sum::<usize>();
    }
    assert_eq!(now, Time::ZERO + Span::from_s(10));
    assert!(left <= 3 * 1_200, "{left} bytes to an address that is not proved");
    assert_eq!(events(&mut listener, accepted), [Event::Closed(Closed::TimedOut)]);
    assert!(listener.forget(accepted) && listener.handles().next().is_none());
}

/// The listener has another key than expected.
#[test]
fn another_key_is_noticed() {
    crate::world::provider::begin(8, 0);
    let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
    let expected = Identity::from_seed(&crate::world::provider::provider(), &[3; 32]).unwrap().fingerprint();
    let handle = endpoint.connect(Time::ZERO, LISTENER, Trust::Fingerprint(expected), None).unwrap();
    let accepted = meet((&mut endpoint, handle), &mut listener, client(1, 1), Time::ZERO);
    let reported = events(&mut endpoint, handle);
    assert!(
        matches!(reported[..], [Event::Closed(Closed::Locally { code: CloseCode(0x100..0x200), .. })]),
        "{reported:?}"
    );
    let listener_events = events(&mut listener, accepted);
    assert!(matches!(listener_events[..], [Event::Closed(Closed::ByPeer { .. })]), "{listener_events:?}");
}

/// A forged address does not shut out its owner: the real host validates it, and is admitted.
#[test]
fn an_address_cannot_be_shut_out() {
    crate::world::provider::begin(9, 0);
    let mut listener = endpoint(1, true);
    for port in 0..16 {
        let mut endpoint = endpoint(2, false);
        let handle = call(&mut endpoint, None);
        let first = sent(&mut endpoint, handle, Time::ZERO);
        receive(&mut listener, Time::ZERO, client(1, port), first);
    }
    let mut endpoint = endpoint(2, false);
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, Time::ZERO);
    assert_eq!(receive(&mut listener, Time::ZERO, client(1, 99), first), [Received::Nothing]);
    let reply = replies(&mut listener);
    receive(&mut endpoint, Time::ZERO, LISTENER, reply);
    let second = sent(&mut endpoint, handle, Time::ZERO);
    assert!(matches!(receive(&mut listener, Time::ZERO, client(1, 99), second)[..], [Received::New(_)]));
    // Clients at other addresses do not wait.
    let mut endpoint = self::endpoint(2, false);
    let handle = call(&mut endpoint, None);
    let first = sent(&mut endpoint, handle, Time::ZERO);
    assert!(matches!(receive(&mut listener, Time::ZERO, client(2, 1), first)[..], [Received::New(_)]));
}

/// A known client retires many paths without opening any: it does not get new ones forever.
#[test]
fn path_ids_are_limited() {
    crate::world::provider::begin(10, 0);
    let (mut listener, mut endpoint) = (endpoint_with_paths(1, true, 4), endpoint_with_paths(2, false, 4));
    let handle = call(&mut endpoint, None);
    let accepted = meet((&mut endpoint, handle), &mut listener, client(1, 1), Time::ZERO);
    listener.connection(accepted).unwrap().admit(Time::ZERO);
    listener.settle(accepted);
    let _ = events(&mut listener, accepted);
    let mut path = 0;
    for packet in 1..20 {
        let mut frames = Vec::new();
        while frames.len() < 900 {
            path += 1;
            Frame::PathRetire { path, reason: 0 }.put(&mut frames);
        }
        let now = Time::from_ms(500 * packet);
        let streams = endpoint.connection(handle).unwrap().streams().unwrap();
        let stream = streams.open(proto::streams::Direction::OneWay).unwrap();
        streams.write(stream, &[0; 1_000]).unwrap();
        crate::world::provider::inject_frames(&frames);
        let datagrams = sent(&mut endpoint, handle, now);
        receive(&mut listener, now, client(1, 1), datagrams);
    }
    let reported = events(&mut listener, accepted);
    assert!(
        reported.iter().any(|event| matches!(event, Event::Closed(Closed::Locally { code: CloseCode::FLOW, .. }))),
        "{reported:?}"
    );
}

/// A listener closes the connection of a client that has just appeared at another address. Until it has validated that
/// address, it sends at most three times the bytes received from it, the CLOSE included (RFC 9000 §8.1).
#[test]
fn a_close_respects_the_limit_of_a_new_address() {
    let lengths = [0, 20, 256];
    for (packets, reason) in (1..6).flat_map(|packets| lengths.map(|len| (packets, "x".repeat(len)))) {
        crate::world::provider::begin(18, 0);
        let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
        let handle = call(&mut endpoint, None);
        let accepted = meet((&mut endpoint, handle), &mut listener, client(1, 1), Time::ZERO);
        listener.connection(accepted).unwrap().admit(Time::ZERO);
        listener.settle(accepted);
        for round in 1..4 {
            let now = Time::from_ms(100 * round);
            let answers = sent(&mut listener, accepted, now);
            receive(&mut endpoint, now, LISTENER, answers);
            let packets = sent(&mut endpoint, handle, now);
            receive(&mut listener, now, client(1, 1), packets);
        }
        let (mut received, mut replied, now, moved) = (0, 0, Time::from_ms(400), client(2, 1));
        let mut reply = |listener: &mut Endpoint, received: usize| {
            let (mut out, mut count) = (Vec::new(), 0);
            while let Some(transmit) = listener.poll_transmit(now, accepted, 1, &mut out) {
                replied += if transmit.four_tuple == moved { out.len() } else { 0 };
                count += 1;
                out.clear();
            }
            assert!(replied <= 3 * received, "{replied} bytes for {received}");
            count
        };
        for _ in 0..packets {
            endpoint.connection(handle).unwrap().ping();
            let pings = sent(&mut endpoint, handle, now);
            assert!(!pings.is_empty());
            received += pings.iter().map(Vec::len).sum::<usize>();
            receive(&mut listener, now, moved, pings);
            reply(&mut listener, received);
        }
        listener.connection(accepted).unwrap().close(now, CloseCode::NONE, &reason);
        listener.settle(accepted);
        // The challenge of the address takes all that the first packet permits.
        assert_eq!(reply(&mut listener, received), i32::from(packets > 1), "{packets} packets, {} bytes", reason.len());
    }
}

/// A client of another service: both ends know at once the requested and the offered service, and the listener keeps no
/// state.
#[test]
fn another_service_is_refused_at_both_ends() {
    crate::world::provider::begin(1, 0);
    let (mut listener, mut client_endpoint) = (endpoint_of("perf", 1, true, 1), endpoint_of("files", 2, false, 1));
    let (perf, files) = (Some(Service::named("perf")), Some(Service::named("files")));
    let expected = vec![Event::Closed(Closed::Service { requested: files, offered: perf })];
    let (four_tuple, now) = (client(1, 1), Time::ZERO);
    let connecting = call(&mut client_endpoint, None);
    let received = receive(&mut listener, now, four_tuple, sent(&mut client_endpoint, connecting, now));
    let Received::New(accepted) = received[0] else { panic!("{received:?}") };
    assert_eq!(events(&mut listener, accepted), expected);
    assert!(listener.connection(accepted).unwrap().streams().is_none());
    let answer = sent(&mut listener, accepted, now);
    assert_eq!(answer.len(), 1);
    receive(&mut client_endpoint, now, LISTENER, answer);
    assert_eq!(events(&mut client_endpoint, connecting), expected);
    // A repeated request gets the same answer: no state is kept.
    assert_eq!(listener.connection(accepted).unwrap().next_timer(), now);
    listener.on_timer(now, accepted);
    assert!(listener.forget(accepted));
    assert_eq!(listener.handles().count(), 0);
}

/// A connection that has settings of its own is watched by their observer, and not by the endpoint's.
#[test]
fn own_settings_bring_their_own_observer() {
    crate::world::provider::begin(1, 0);
    let observed = Arc::new(Mutex::new(Vec::new()));
    let starts = observed.clone();
    let observe: ObserverMaker = Arc::new(move |start: &ConnectionStart| {
        starts.lock().unwrap().push(start.service);
        None
    });
    let settings = Settings { observe: Some(observe), ..settings_of("own") };
    let mut endpoint = endpoint(2, false);
    endpoint.connect_with(Time::ZERO, LISTENER, ANYONE, Arc::new(settings)).unwrap();
    call(&mut endpoint, None);
    assert_eq!(*observed.lock().unwrap(), [Service::named("own")]);
}

/// Returns an Initial packet with a CLOSE, as any host that saw the client's first packet can make it (RFC 9001 §5.2).
fn initial_close(first_id: &[u8], to: proto::ConnectionId, code: u64, reason: &str) -> Vec<u8> {
    let mut frames = Vec::new();
    Frame::Close { code, kind: 0, reason }.put(&mut frames);
    Initial { side: rustls::Side::Server, first_id, to: &to, from: [9; 8], token: &[], frames: &frames }.seal()
}

/// The name of another service, as sent by a listener, may be anything: it is shown as another service, not verbatim.
#[test]
fn an_odd_name_of_a_service_is_not_shown() {
    for (reason, offered) in
        [("narrows-1/x", Some(Service::named("x"))), ("narrows-1/\u{202e}x", None), ("\u{1b}[2J", None)]
    {
        crate::world::provider::begin(1, 0);
        let mut client_endpoint = endpoint(2, false);
        let connecting = call(&mut client_endpoint, None);
        let first = sent(&mut client_endpoint, connecting, Time::ZERO);
        let Header::Long { to, from, .. } = ParsedPacket::read(&first[0]).unwrap().header else {
            panic!("no Initial packet")
        };
        let answer = initial_close(to, from, CloseCode::NO_SUCH_SERVICE.0, reason);
        receive(&mut client_endpoint, Time::ZERO, LISTENER, vec![answer]);
        let closed = Closed::Service { requested: Some(Service::named("test")), offered };
        assert_eq!(events(&mut client_endpoint, connecting), [Event::Closed(closed.clone())]);
        assert!(!closed.to_string().contains(['\u{202e}', '\u{1b}']), "{closed}");
    }
}

/// Clients of other services get that answer at most a hundred times in a second, and leave no state behind.
#[test]
fn clients_of_other_services_cost_little() {
    crate::world::provider::begin(1, 0);
    let (mut listener, mut client_endpoint) = (endpoint_of("perf", 1, true, 1), endpoint_of("files", 2, false, 1));
    let mut count = 0;
    for round in 0..300u16 {
        let now = if round < 200 { Time::ZERO } else { Time::from_ms(1_500) };
        let connecting = call(&mut client_endpoint, None);
        let first = sent(&mut client_endpoint, connecting, Time::ZERO);
        match receive(&mut listener, now, client((round % 250) as u8, 1 + round), first)[0] {
            Received::New(accepted) => {
                count += 1;
                assert_eq!(sent(&mut listener, accepted, now).len(), 1);
                listener.on_timer(now, accepted);
                assert!(listener.forget(accepted));
            }
            Received::Nothing => {}
            received => panic!("{received:?}"),
        }
        assert_eq!(listener.handles().count(), 0);
    }
    assert_eq!(count, 200);
}

/// Hosts that fall silent, or show no ticket, take nothing from holders of a ticket: neither from those elsewhere, far
/// away, nor from those in a network of their own, nearby. Each flood has taken all slots before the first holder
/// connects, and lasts.
#[track_caller]
fn holders_get_in(last: Last, networks: u64) {
    crate::world::provider::begin(1, 0);
    let group = |network, rtt| TicketHolders { holders: 20, network, rtt, interval: Span::from_ms(50) };
    let groups = [group(HolderNetwork::Other, Span::from_ms(200)), group(HolderNetwork::Flood, Span::from_ms(20))];
    let report =
        FloodWorld::new(&crate::world::provider::provider(), Flood { last, networks, per_second: 2_500 }, &groups)
            .run(LIMIT);
    for (group, took) in groups.iter().zip(&report.took) {
        let late = took.iter().filter(|took| took.is_none_or(|took| took > LIMIT)).count();
        assert_eq!(late, 0, "{last:?} from {networks} networks: {group:?}: {took:?}");
    }
    assert!(report.max_connections <= 1_024 + 40, "{} connections", report.max_connections);
}

#[test]
fn silent_clients_block_no_one() {
    for last in [Last::Ping, Last::ClientHello] {
        for networks in [1, 64] {
            holders_get_in(last, networks);
        }
    }
}

/// Nor do those that send a part of a `ClientHello`, that finish TLS and show no ticket, or that show a wrong one.
#[test]
fn no_flood_blocks_genuine_clients() {
    for last in [Last::Fragment, Last::Finished, Last::Auth] {
        for networks in [1, 64] {
            holders_get_in(last, networks);
        }
    }
}

/// Twenty holders of one network have handshakes open at a time, more than each network of the flood could have.
#[test]
fn holders_of_one_network_outlast_a_flood() {
    crate::world::provider::begin(1, 0);
    let (network, rtt, interval) = (HolderNetwork::Other, Span::from_ms(200), Span::from_ms(10));
    let flood = Flood { last: Last::ClientHello, networks: 64, per_second: 2_500 };
    let group = TicketHolders { holders: 100, network, rtt, interval };
    let report = FloodWorld::new(&crate::world::provider::provider(), flood, &[group]).run(LIMIT);
    assert!(report.took[0].iter().all(|took| took.is_some_and(|took| took <= LIMIT)), "{:?}", report.took);
}

/// Frames of a packet: a complete `ClientHello`, or as much of it as this.
fn crypto(len: usize) -> Vec<u8> {
    let hello = crate::flood::client_hello(&crate::world::provider::provider());
    let mut frames = Vec::new();
    Frame::Crypto { offset: 0, data: &hello[..len.min(hello.len())] }.put(&mut frames);
    frames
}

/// Fills a listener with as many handshakes as need no token. Returns the frames of a client's packet.
fn crowded(listener: &mut Endpoint) -> Vec<u8> {
    let frames = crypto(usize::MAX);
    let mut number = 0;
    while let Received::New(_) = FloodClient::new(1_000 + number, number).call(listener, Time::ZERO, &frames) {
        number += 1;
    }
    // The last one got a Retry.
    assert_eq!((listener.handles().count(), replies(listener).len()), (64, 1));
    frames
}

/// A first datagram without a complete `ClientHello` leaves no state behind, and the next one may have its token.
#[test]
fn a_token_is_valid_until_a_client_hello_arrives() {
    crate::world::provider::begin(13, 0);
    let mut listener = endpoint(1, true);
    let hello = crowded(&mut listener);
    let (client, now) = (FloodClient::new(1, 1), Time::ZERO);
    assert_eq!(client.call(&mut listener, now, &hello), Received::Nothing);
    let retry = replies(&mut listener).remove(0);
    let mut not_tls = Vec::new();
    Frame::Crypto { offset: 0, data: &[1, 0, 0, 1, 9] }.put(&mut not_tls);
    let mut ping = Vec::new();
    Frame::Ping.put(&mut ping);
    for frames in [ping, crypto(100), not_tls] {
        assert_eq!(client.follow(&mut listener, now, &retry, &frames), Received::Nothing);
        assert_eq!(listener.handles().count(), 64);
    }
    let Received::New(accepted) = client.follow(&mut listener, now, &retry, &hello) else { panic!("a connection") };
    assert_eq!(client.follow(&mut listener, now, &retry, &hello), Received::Connection(accepted));
    // It is good once.
    listener.connection(accepted).unwrap().close(now, CloseCode::NONE, "");
    listener.settle(accepted);
    assert_eq!(client.follow(&mut listener, now, &retry, &hello), Received::Nothing);
}

/// Clients follow a Retry until no slot is free, and as many more as this. Returns the connections that were evicted.
fn fill(listener: &mut Endpoint, slots: u64, more: u64) -> Vec<ConnectionHandle> {
    let hello = crowded(listener);
    for number in 64..slots + more {
        let (client, now) = (FloodClient::new(1_000, number), Time::from_us(number));
        assert_eq!(client.call(listener, now, &hello), Received::Nothing);
        let retry = replies(listener).remove(0);
        assert!(matches!(client.follow(listener, now, &retry, &hello), Received::New(_)));
    }
    std::iter::from_fn(|| listener.poll_evicted()).collect()
}

/// A listener's driver learns which connections made room.
#[test]
fn an_evicted_connection_is_over() {
    crate::world::provider::begin(14, 0);
    let mut listener = endpoint(1, true);
    let evicted = fill(&mut listener, 1_024, 3);
    assert_eq!(evicted.len(), 3);
    for handle in evicted {
        assert_eq!(events(&mut listener, handle), [Event::Closed(Closed::TimedOut)]);
        assert!(sent(&mut listener, handle, Time::from_ms(5_000)).is_empty());
        assert!(listener.forget(handle));
    }
    assert_eq!(listener.handles().count(), 1_024);
}

/// A client that waits for the application keeps its slot, while younger ones of its network are evicted.
#[test]
fn a_client_that_sent_auth_is_not_evicted() {
    crate::world::provider::begin(16, 0);
    let (mut listener, mut endpoint) = (endpoint(1, true), endpoint(2, false));
    let handle = call(&mut endpoint, None);
    let accepted =
        meet((&mut endpoint, handle), &mut listener, FloodClient::new(1_000, 9_999).four_tuple(), Time::ZERO);
    let evicted = fill(&mut listener, 1_024, 1_100);
    assert!(evicted.len() == 1_100 && !evicted.contains(&accepted));
    assert!(matches!(events(&mut listener, accepted)[..], [Event::Connected, Event::Claim(_)]));
}

/// Clients that have validated their address in the handshake do not block others at that address.
#[test]
fn validated_clients_are_evicted_for_others() {
    crate::world::provider::begin(17, 0);
    let mut listener = endpoint(1, true);
    for port in 0..40 {
        let mut endpoint = endpoint(2, false);
        let handle = call(&mut endpoint, None);
        meet((&mut endpoint, handle), &mut listener, client(1, port), Time::ZERO);
    }
}

/// Clients that the kernel directs to one endpoint of a team take slots of that one only.
#[test]
fn endpoints_of_a_group_have_their_own_slots() {
    crate::world::provider::begin(15, 0);
    let mut group = group(1, 2);
    assert_eq!(fill(&mut group[0], 512, 600).len(), 600);
    let (client, now, hello) = (FloodClient::new(1, 1), Time::from_ms(2), crypto(usize::MAX));
    assert_eq!(client.call(&mut group[1], now, &hello), Received::Nothing);
    let retry = replies(&mut group[1]).remove(0);
    assert!(matches!(client.follow(&mut group[1], now, &retry, &hello), Received::New(_)));
    assert_eq!(group[1].poll_evicted(), None);
}
