//! Used tickets: proofs that make a listener probe its present client, and the replacement by another client. The application
//! is that of `narrows recv`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use flow::Codepoint;
use laws::{Law, NewReno, PathInfo, newreno};
use proto::closed::{CloseCode, Closed};
use proto::connection::{Connection, Event, Liveness};
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::identity::{Identity, Trust};
use proto::secret::Secret;
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use proto::streams::Direction;
use units::{Span, Time};

const LISTENER: FourTuple = FourTuple { socket: 0, remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4_433) };
const TICKET: [u8; 8] = [4; 8];
const SECRET: [u8; 16] = [3; 16];
/// One-way delay.
const DELAY: Span = Span::from_ms(200);
const RTT: Span = Span::from_ms(400);

fn endpoint(seed: u8, side: Side) -> Endpoint {
    let identity = Identity::from_seed(&crate::world::provider::provider(), &[seed; 32]).unwrap();
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    let mut settings = Settings::new(Service::named("test"), Arc::new(law));
    // Clients send only if they must.
    settings.keep_alive = None;
    let provider = crate::world::provider::provider();
    Endpoint::new(Time::ZERO, EndpointConfig { settings, provider, identity }, side).unwrap()
}

/// A client, and its connection at either end.
struct ConnectedClient {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    four_tuple: FourTuple,
    listener_handle: Option<ConnectionHandle>,
    /// Set once its process is killed: it sends nothing any more.
    is_dead: bool,
    /// Datagrams for it are lost in this time.
    deaf: (Time, Time),
    /// Datagrams that the listener sent to it.
    sent_to: u32,
    closed: Option<Closed>,
}

struct Flight {
    at: Time,
    client: usize,
    to_listener: bool,
    bytes: Vec<u8>,
}

/// A listener that serves one client, and other clients that connect meanwhile.
struct Scene {
    now: Time,
    delay: Span,
    listener: Endpoint,
    clients: Vec<ConnectedClient>,
    flights: Vec<Flight>,
    /// Place of the client that is served, and the secret with which it may reconnect.
    served: Option<(usize, Secret)>,
    /// Clients that wait for the result of a probe.
    waiting: Option<usize>,
    /// Start times of probes, and their end times with their results.
    begun: Vec<Time>,
    ended: Vec<(Time, Liveness)>,
}

impl Scene {
    /// Creates a scene in which the first client is served.
    fn new(seed: u64) -> Self {
        Self::with_delay(seed, DELAY)
    }

    fn with_delay(seed: u64, delay: Span) -> Self {
        crate::world::provider::begin(seed, 0);
        let mut scene = Self {
            now: Time::ZERO,
            delay,
            listener: endpoint(1, Side::Listener),
            clients: Vec::new(),
            flights: Vec::new(),
            served: None,
            waiting: None,
            begun: Vec::new(),
            ended: Vec::new(),
        };
        scene.call(Secret::new(SECRET));
        scene.run(Time::from_ms(3_000));
        assert!(scene.served.is_some());
        scene
    }

    /// Adds a client that has this secret.
    fn call(&mut self, secret: Secret) {
        let index = self.clients.len() as u8;
        let mut endpoint = endpoint(10 + index, Side::Client);
        let handle = endpoint.connect(self.now, LISTENER, Trust::Anyone, Some((TICKET, secret))).unwrap();
        let four_tuple = FourTuple { socket: 0, remote: SocketAddr::from(([10, 0, 0, 1 + index], 1)) };
        self.clients.push(ConnectedClient {
            endpoint,
            handle,
            four_tuple,
            listener_handle: None,
            is_dead: false,
            deaf: (Time::NEVER, Time::NEVER),
            sent_to: 0,
            closed: None,
        });
    }

    /// Returns the resumption secret of the first client.
    fn resumption(&mut self) -> Secret {
        let ConnectedClient { endpoint, handle, .. } = &mut self.clients[0];
        endpoint.connection(*handle).unwrap().resumption(&Secret::new(SECRET)).unwrap()
    }

    fn at_listener(&mut self, client: usize) -> &mut Connection {
        let listener_handle = self.clients[client].listener_handle.unwrap();
        self.listener.connection(listener_handle).unwrap()
    }

    fn run(&mut self, until: Time) {
        for _ in 0..10_000 {
            self.act();
            self.transmit();
            let mut next = self.flights.iter().map(|flight| flight.at).min().unwrap_or(Time::NEVER);
            for client in &mut self.clients {
                if !client.is_dead {
                    next = next.min(client.endpoint.connection(client.handle).unwrap().next_timer());
                }
                let listener_handle =
                    client.listener_handle.and_then(|listener_handle| self.listener.connection(listener_handle));
                next = next.min(listener_handle.map_or(Time::NEVER, Connection::next_timer));
            }
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.deliver();
            for client in &mut self.clients {
                if !client.is_dead {
                    client.endpoint.on_timer(self.now, client.handle);
                }
                if let Some(listener_handle) = client.listener_handle {
                    self.listener.on_timer(self.now, listener_handle);
                }
            }
        }
        panic!("time stands still");
    }

    fn transmit(&mut self) {
        let at = self.now + self.delay;
        let mut out = Vec::new();
        for (index, client) in self.clients.iter_mut().enumerate() {
            while !client.is_dead
                && let Some(transmit) = client.endpoint.poll_transmit(self.now, client.handle, 1, &mut out)
            {
                assert_eq!(out.len(), transmit.segment);
                self.flights.push(Flight { at, client: index, to_listener: true, bytes: std::mem::take(&mut out) });
            }
            while let Some(listener_handle) = client.listener_handle
                && self.listener.poll_transmit(self.now, listener_handle, 1, &mut out).is_some()
            {
                client.sent_to += 1;
                self.flights.push(Flight { at, client: index, to_listener: false, bytes: std::mem::take(&mut out) });
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.at <= now);
        self.flights = later;
        let due: Vec<Flight> = due;
        for Flight { client, to_listener, mut bytes, .. } in due {
            let client = &mut self.clients[client];
            if to_listener {
                let received = self.listener.on_datagram(now, client.four_tuple, Codepoint::NotEct, &mut bytes);
                if let Received::New(handle) = received {
                    client.listener_handle = Some(handle);
                }
            } else if !client.is_dead && !(client.deaf.0..client.deaf.1).contains(&now) {
                client.endpoint.on_datagram(now, LISTENER, Codepoint::NotEct, &mut bytes);
            }
        }
    }

    /// Runs the listener's application, as in `narrows recv`, and records how clients end.
    fn act(&mut self) {
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            while let Some(event) = client.endpoint.connection(client.handle).and_then(Connection::poll_event) {
                if let Event::Closed(closed) = event {
                    client.closed = Some(closed);
                }
            }
            let Some(listener_handle) = client.listener_handle else { continue };
            while let Some(event) = self.listener.connection(listener_handle).and_then(Connection::poll_event) {
                match event {
                    Event::Claim(claim) => {
                        assert_eq!(claim.ticket, TICKET);
                        self.decide(index);
                    }
                    Event::Probed(liveness) => self.end_probe(liveness),
                    _ => {}
                }
            }
        }
    }

    fn decide(&mut self, index: usize) {
        let now = self.now;
        let needed = self.served.as_ref().map_or(Secret::new(SECRET), |(_, resumption)| resumption.clone());
        let connection = self.at_listener(index);
        if !connection.proves(&needed) {
            return connection.refuse(now);
        }
        connection.admit(now);
        let resumption = connection.resumption(&Secret::new(SECRET)).unwrap();
        if let Some((first, _)) = self.served {
            self.waiting = Some(index);
            self.begun.push(now);
            self.at_listener(first).probe(now);
        } else {
            self.served = Some((index, resumption));
        }
    }

    fn end_probe(&mut self, liveness: Liveness) {
        let now = self.now;
        self.ended.push((now, liveness));
        let (first, resumption) = self.served.take().unwrap();
        let second = self.waiting.take().unwrap();
        let (loser, served) = if liveness == Liveness::Silent { (first, second) } else { (second, first) };
        self.at_listener(loser).close(now, CloseCode::BUSY, "");
        self.served = Some((served, resumption));
    }

    /// Returns the place of the client that is served.
    fn served(&self) -> usize {
        self.served.as_ref().unwrap().0
    }

    fn closed(&self, client: usize) -> Option<CloseCode> {
        match self.clients[client].closed {
            Some(Closed::ByPeer { code, .. }) => Some(code),
            _ => None,
        }
    }
}

/// The listener declares the first client gone after two probe timeouts, and not before: each is a round trip plus its
/// uncertainty (at least a quarter, and here no more) plus twice the acknowledgement delay. Timeouts of its own packets
/// meanwhile, with backoff, change nothing.
#[test]
fn a_silent_client_is_replaced_after_two_timeouts() {
    let mut scene = Scene::new(1);
    let resumption = scene.resumption();
    scene.clients[0].is_dead = true;
    let now = scene.now;
    let killed = scene.at_listener(0);
    killed.ping();
    let began = now + Span::from_s(9);
    scene.run(began);
    assert!(scene.clients[0].closed.is_none() && scene.ended.is_empty());
    scene.call(resumption.clone());
    scene.run(began + Span::from_s(4));
    let [(ended, Liveness::Silent)] = scene.ended[..] else { panic!("{:?}", scene.ended) };
    let took = ended.since(scene.begun[0]);
    let timeout = RTT + RTT.over(4) + Span::from_ms(1).times(2);
    assert!(took > RTT.times(2) && took <= timeout.times(2), "{took:?} of {timeout:?} each");
    assert_eq!((scene.served(), scene.closed(1)), (1, None));
    // The secret stays the same: after a second kill the client can reconnect, too.
    scene.clients[1].is_dead = true;
    scene.call(resumption);
    scene.run(began + Span::from_s(9));
    assert_eq!((scene.served(), scene.closed(2), scene.ended.len()), (2, None, 2));
}

/// A client that answers stays, regardless of the second one's proof: after one PING if it arrives, after two if the first
/// one is lost.
#[test]
fn a_responsive_client_is_never_replaced() {
    for (loses_first, rounds) in [(false, 1), (true, 2)] {
        let mut scene = Scene::new(2);
        let resumption = scene.resumption();
        scene.call(resumption);
        // The second client's proof arrives after one and a half round trips, and its own handshake sends nothing to
        // the first client.
        let proof_at = scene.now + DELAY.times(3);
        if loses_first {
            scene.clients[0].deaf = (proof_at, proof_at + RTT);
        }
        let before = scene.clients[0].sent_to;
        scene.run(proof_at + Span::from_s(3));
        let [(ended, Liveness::Alive)] = scene.ended[..] else { panic!("{:?}", scene.ended) };
        assert_eq!(scene.begun, [proof_at]);
        let waited = if rounds == 1 { Span::ZERO } else { RTT.times(5).over(4) };
        let answered = proof_at + waited + RTT;
        assert!(ended >= answered && ended <= answered + Span::from_ms(10), "{ended:?}, {answered:?}");
        assert_eq!(scene.clients[0].sent_to - before, rounds);
        assert_eq!((scene.served(), scene.closed(0), scene.closed(1)), (0, None, Some(CloseCode::BUSY)));
    }
}

/// Probes are also sent if an outage has filled the window and the next timer is far off. Otherwise the client would
/// count as silent: its own timers are as late.
#[test]
fn a_full_window_holds_no_probe_back() {
    let mut scene = Scene::new(5);
    let resumption = scene.resumption();
    scene.clients[0].deaf = (scene.now, scene.now + Span::from_s(9));
    let streams = scene.at_listener(0).streams().unwrap();
    let stream = streams.open(Direction::OneWay).unwrap();
    streams.write(stream, &vec![0; 200_000]).unwrap();
    scene.run(scene.now + Span::from_s(9));
    scene.call(resumption);
    scene.run(scene.now + Span::from_s(4));
    let [(ended, Liveness::Alive)] = scene.ended[..] else { panic!("{:?}", scene.ended) };
    assert!(ended.since(scene.begun[0]) < RTT + Span::from_ms(10));
}

/// A packet sent before the probe began does not count as an answer: its sender may have disappeared since.
#[test]
fn packets_sent_before_the_probe_are_no_response() {
    let mut scene = Scene::new(7);
    let resumption = scene.resumption();
    scene.call(resumption);
    let proof_at = scene.now + DELAY.times(3);
    scene.run(proof_at - Span::from_ms(2));
    let ConnectedClient { endpoint, handle, .. } = &mut scene.clients[0];
    endpoint.connection(*handle).unwrap().ping();
    scene.run(proof_at - Span::from_ms(1));
    scene.clients[0].is_dead = true;
    assert!(scene.flights.iter().any(|flight| flight.client == 0 && flight.to_listener && flight.at > proof_at));
    scene.run(proof_at + Span::from_s(4));
    let [(_, Liveness::Silent)] = scene.ended[..] else { panic!("{:?}", scene.ended) };
    assert_eq!((scene.begun[0], scene.served()), (proof_at, 1));
}

/// A host may be late by more than the probe timeout of a short path.
#[test]
fn a_client_on_a_short_path_has_200_ms_per_response() {
    let mut scene = Scene::with_delay(6, Span::from_us(100));
    let resumption = scene.resumption();
    scene.clients[0].is_dead = true;
    scene.call(resumption);
    scene.run(scene.now + Span::from_s(1));
    let [(ended, Liveness::Silent)] = scene.ended[..] else { panic!("{:?}", scene.ended) };
    assert_eq!(ended.since(scene.begun[0]), Span::from_ms(400));
}

/// A used ticket, a secret of another connection and a guess prove nothing. They cause no probe, even if the first
/// client is gone.
#[test]
fn an_invalid_proof_starts_no_probe() {
    let mut scene = Scene::new(3);
    let resumption = scene.resumption();
    let mut other = Scene::new(4);
    let foreign = other.resumption();
    assert!(foreign != resumption && resumption != Secret::new(SECRET));
    scene.clients[0].is_dead = true;
    let before = scene.clients[0].sent_to;
    for secret in [Secret::new(SECRET), foreign, Secret::new([9; 16])] {
        scene.call(secret);
        scene.run(scene.now + Span::from_s(3));
        assert_eq!(scene.closed(scene.clients.len() - 1), Some(CloseCode::REFUSED));
    }
    assert_eq!((scene.served(), scene.begun.len(), scene.clients[0].sent_to), (0, 0, before));
    // Both ends have the same secret, which is of this connection alone.
    let ticket = Secret::new(SECRET);
    assert!(scene.at_listener(0).resumption(&ticket) == Some(resumption.clone()));
    assert!(scene.at_listener(1).resumption(&ticket) != Some(resumption));
}
