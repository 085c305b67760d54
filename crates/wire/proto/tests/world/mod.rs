//! A deterministic world: two endpoints, a network, and applications that check each byte, in virtual time. The same
//! seed produces the same run, byte for byte.

mod application;
pub mod network;
mod party;
pub mod provider;
pub mod scenes;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use laws::catalog::ParamValue;
use laws::{Law, PathInfo, on_ramp};
use proto::closed::Closed;
use proto::endpoint::{Endpoint, EndpointConfig};
use proto::four_tuple::FourTuple;
use proto::identity::{Identity, Trust};
use proto::observe::ObserverMaker;
use proto::secret::Secret;
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use proto::streams::Limits;
use units::{Bytes, Frac, Rate, Span, Time};
use virtual_time::{EventLoop, HostCosts, Step};

use self::application::Application;
use self::network::{LISTENER, NetworkConditions, NetworkEnd, TestNetwork};
use self::party::Party;

/// Data that an application sends on one stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamJob {
    pub from: NetworkEnd,
    pub bytes: u64,
    /// Set if the receiver knows the total from the beginning.
    pub message: bool,
    /// Set if the other end sends the same amount back.
    pub echo: bool,
}

/// Behaviour of the receiving application on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadBehaviour {
    /// The application reads all data.
    Reads,
    /// The application reads nothing from the first time on until the second one.
    Pauses(Time, Time),
    /// The application stops reading at this time.
    Stops(Time),
}

/// Configuration of a world.
#[derive(Clone, Debug)]
pub struct Scene {
    pub seed: u64,
    pub conditions: NetworkConditions,
    pub jobs: Vec<StreamJob>,
    /// Behaviour of the receiver on each one-way stream of the client, in the order in which they are opened. It reads
    /// others.
    pub readers: Vec<ReadBehaviour>,
    /// Limits of both ends, if not the usual ones.
    pub limits: Option<Limits>,
    /// Number and size in bytes of messages that the caller sends afterwards, each a while after the previous one was
    /// delivered.
    pub series: (u64, u64),
    pub paths: u8,
    /// Datagrams of noise.
    pub noise: u64,
    /// Bytes that a reader takes at a time, and the wait after that.
    pub reader: (usize, Span),
    /// Applications write nothing from the first time on until the second one.
    pub quiet: Option<(Time, Time)>,
    /// Duration of occasional stalls of the client's clock.
    pub stalls: Span,
    /// One packet in `forgery` has forged contents.
    pub forgery: u64,
    /// Either end updates its keys at one call in `updates`; 0 for never.
    pub updates: u64,
    pub coding: &'static str,
    /// Bytes that either end keeps of blocks.
    pub coding_window: u32,
    pub law: &'static str,
    /// Set if one law decides for all paths.
    pub one_law: bool,
    /// Threshold of On-Ramp at either end, if it is used.
    pub on_ramp: Option<Span>,
    /// Flow-control limit of a stream beyond the bytes read, in bytes; `limits` overrides it.
    pub window: u64,
    pub max_packet: u16,
    /// Number of packets after which either end sends an acknowledgement, if not the usual one.
    pub ack_every: Option<u32>,
    /// Processing times of either end.
    pub costs: HostCosts,
}

impl Scene {
    /// Returns a network of this rate and delay without disturbances.
    pub fn ideal(rate: Rate, delay: Span) -> Self {
        Self {
            seed: 1,
            conditions: NetworkConditions::ideal(rate, delay),
            jobs: Vec::new(),
            readers: Vec::new(),
            limits: None,
            series: (0, 0),
            paths: 1,
            noise: 0,
            reader: (1 << 20, Span::ZERO),
            quiet: None,
            stalls: Span::ZERO,
            forgery: 0,
            updates: 0,
            coding: "off",
            coding_window: 1 << 20,
            law: "newreno",
            one_law: false,
            on_ramp: None,
            window: 256 << 10,
            max_packet: 1_472,
            ack_every: None,
            costs: HostCosts::default(),
        }
    }
}

/// Outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorldReport {
    /// Time at which all data was delivered; never if it was not.
    pub done: Time,
    pub connected: Option<Time>,
    pub admitted: Option<Time>,
    pub closed: [Option<Closed>; 2],
    /// Bytes read at either end.
    pub read: [u64; 2],
    pub datagrams: u64,
    pub updates: u64,
    pub open_paths: u32,
    /// Paths that the caller retired.
    pub retired_paths: u32,
    /// Transit times of datagrams, summed up, divided by the number sent.
    pub mean_transit_time: Span,
    /// Time at which the listener read the end of each one-way stream of the client, in the order in which they were
    /// opened.
    pub ends: BTreeMap<u64, Time>,
    /// Duration of each message of a series, from its first write until its sender knew that it was delivered.
    pub took: Vec<Span>,
}

/// Two ends and the network between them.
pub struct World {
    event_loop: EventLoop<Party, TestNetwork>,
    /// Datagrams of noise that are still to come: one at each time at which something happens.
    noise: u64,
    /// Time at which all was delivered.
    done: Time,
}

const SECRET: [u8; 16] = [3; 16];
const TICKET: [u8; 8] = [4; 8];

/// Returns the law of a name, or of `NAME,PARAMETER=VALUE,...` with bytes, switches and fractions with a point as
/// values.
fn law(text: &str) -> Arc<dyn Fn(&PathInfo) -> Law + Send + Sync> {
    let mut words = text.split(',');
    let kind = words.next().and_then(laws::catalog::LawKind::from_name).expect("a law");
    let params: Vec<(String, ParamValue)> = words
        .map(|word| {
            let (name, value) = word.split_once('=').expect("PARAMETER=VALUE");
            let value = match value {
                "true" | "false" => ParamValue::Switch(value == "true"),
                _ if value.contains('.') => {
                    ParamValue::Fraction(Frac::millionths((value.parse::<f64>().expect("a fraction") * 1e6) as u64))
                }
                _ => {
                    ParamValue::Bytes(Bytes::new(value.parse().expect("bytes, true, false or a fraction with a point")))
                }
            };
            (name.into(), value)
        })
        .collect();
    Arc::new(move |path: &PathInfo| {
        let params: Vec<(&str, ParamValue)> = params.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        laws::catalog::build(kind, path, &params).expect("a law")
    })
}

impl World {
    pub fn new(scene: Scene) -> Self {
        Self::watched(scene, None)
    }

    /// Creates a world in which an observer watches both ends.
    pub fn watched(scene: Scene, observe: Option<ObserverMaker>) -> Self {
        provider::begin(scene.seed, scene.forgery);
        let provider = provider::provider();
        let mut settings = Settings::new(Service::named("world"), law(scene.law));
        settings.line_rate = scene.conditions.rate;
        // Under the worst conditions one packet in four is lost each way, and timeouts take seconds.
        settings.idle = Span::from_s(60);
        (settings.paths, settings.one_law) = (scene.paths, scene.one_law);
        settings.on_ramp = scene.on_ramp.map(|threshold| on_ramp::OnRampParams {
            threshold,
            gain: on_ramp::OnRampParams::GAIN,
            strawman: false,
        });
        settings.max_packet = scene.max_packet;
        settings.ack_every = scene.ack_every.unwrap_or(settings.ack_every);
        settings.coding = scene.coding.parse().expect("a coding");
        settings.coding_window = scene.coding_window;
        settings.limits.max_data = 4 * scene.window;
        settings.limits.max_stream_data = scene.window;
        settings.limits = scene.limits.unwrap_or(settings.limits);
        settings.send_buffer = 2 * scene.window;
        settings.observe = observe;
        let scene = Rc::new(scene);
        let party = |end: NetworkEnd, seed: u8| {
            let identity = Identity::from_seed(&provider, &[seed; 32]).expect("an identity");
            let fingerprint = identity.fingerprint();
            let config = EndpointConfig { settings: settings.clone(), provider: provider.clone(), identity };
            let endpoint = Endpoint::new(Time::ZERO, config, side(end)).expect("an endpoint");
            (Party::new(end, scene.clone(), endpoint), fingerprint)
        };
        let (mut client, _) = party(NetworkEnd::Client, 1);
        let (listener, fingerprint) = party(NetworkEnd::Listener, 2);
        let four_tuple = FourTuple { socket: 0, remote: LISTENER };
        let secret = Some((TICKET, Secret::new(SECRET)));
        let handle = client.endpoint.connect(Time::ZERO, four_tuple, Trust::Fingerprint(fingerprint), secret);
        client.handle = Some(handle.expect("a connection"));
        let network = TestNetwork::new(scene.conditions, scene.seed ^ 0x4e45_5457);
        Self {
            event_loop: EventLoop::new([client, listener], network, scene.costs),
            noise: scene.noise,
            done: Time::NEVER,
        }
    }

    fn party(&mut self, end: NetworkEnd) -> &mut Party {
        self.event_loop.host(end.host())
    }

    /// Prints events and datagrams from now on.
    pub fn trace(&mut self) {
        for end in [NetworkEnd::Client, NetworkEnd::Listener] {
            self.party(end).trace = true;
        }
    }

    /// Runs to `until`, or until no event is left. Closes the connection once all data is delivered.
    pub fn run(&mut self, until: Time) -> WorldReport {
        loop {
            let before = self.event_loop.now();
            match self.event_loop.step(until) {
                Step::Idle => return self.report(),
                Step::Host(_) if !self.done.is_set() && self.is_done() => self.close(),
                Step::Host(_) | Step::Network => {}
            }
            let now = self.event_loop.now();
            if self.noise > 0 && now > before {
                self.noise -= 1;
                self.event_loop.network().make_noise(now);
            }
        }
    }

    /// Returns whether both ends have written and read everything, and know it.
    fn is_done(&self) -> bool {
        let applications = || self.event_loop.hosts().map(|party| &party.application);
        let [delivered, ended] = [0, 1].map(|which| applications().map(|it| it.finished()[which]).sum::<u64>());
        let is_admitted = self.event_loop.hosts().all(|party| party.admitted.is_some());
        is_admitted && delivered > 0 && delivered == ended && applications().all(Application::has_written)
    }

    fn close(&mut self) {
        self.done = self.event_loop.now();
        let now = self.done;
        self.party(NetworkEnd::Client).close(now);
        self.event_loop.wake(NetworkEnd::Client.host());
    }

    fn report(&mut self) -> WorldReport {
        let network = self.event_loop.network();
        let (datagrams, total_transit_time) = (network.datagrams, network.total_transit_time);
        let mut parties = self.event_loop.hosts();
        let (Some(client), Some(listener)) = (parties.next(), parties.next()) else { unreachable!("two hosts") };
        WorldReport {
            done: self.done,
            connected: client.connected,
            admitted: client.admitted,
            closed: [client.closed.clone(), listener.closed.clone()],
            read: [client, listener].map(|party| party.application.read_bytes()),
            datagrams,
            updates: client.updates + listener.updates,
            open_paths: client.open_paths,
            retired_paths: client.retired_paths,
            mean_transit_time: total_transit_time.over(datagrams.max(1) as u32),
            ends: listener.application.one_way_ends(),
            took: client.application.took.clone(),
        }
    }

    /// Returns the counters of sent and lost packets at an end, over all paths.
    pub fn stats(&mut self, end: NetworkEnd) -> Option<flow::ChannelStats> {
        self.party(end).connection().map(|connection| connection.stats())
    }

    /// Returns the memory of an end's receive buffers, in bytes.
    pub fn receive_memory(&mut self, end: NetworkEnd) -> usize {
        self.party(end).endpoint.receive_memory()
    }
}

fn side(end: NetworkEnd) -> Side {
    match end {
        NetworkEnd::Client => Side::Client,
        NetworkEnd::Listener => Side::Listener,
    }
}
