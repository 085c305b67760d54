//! A deterministic world: two endpoints, a network, and applications that check each byte, in virtual time. The same
//! seed produces the same run, byte for byte.

pub mod network;
pub mod provider;
pub mod scenes;

use std::collections::BTreeMap;
use std::sync::Arc;

use laws::catalog::ParamValue;
use laws::{Law, PathInfo, on_ramp};
use proto::closed::{CloseCode, Closed};
use proto::connection::Event;
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::identity::{Identity, Trust};
use proto::observe::ObserverMaker;
use proto::secret::Secret;
use proto::service::Service;
use proto::settings::Settings;
use proto::streams::{Direction, Limits, ReadError, StreamEvent, StreamId, WriteError};
use units::{Bytes, Frac, Rate, Span, Time};

use self::network::{Dice, LISTENER, NetworkConditions, NetworkEnd, TestNetwork};

/// Returns the byte that belongs at an offset of a stream.
pub fn byte(stream: u64, offset: u64) -> u8 {
    units::mix64((stream << 40) ^ (offset / 8)).to_le_bytes()[(offset % 8) as usize]
}

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
    /// Maximum number of bytes of a stream in flight.
    pub window: u64,
    pub max_packet: u16,
    /// Number of packets after which either end sends an acknowledgement, if not the usual one.
    pub ack_every: Option<u32>,
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
        }
    }
}

/// One end's application.
#[derive(Default, Debug)]
struct Application {
    /// Bytes still to be written, and how many are; by stream.
    writing: BTreeMap<StreamId, (u64, u64)>,
    /// Received bytes, by stream.
    reading: BTreeMap<StreamId, u64>,
    delivered: u64,
    ended: u64,
    /// Time at which the end of each stream was read.
    ends: BTreeMap<StreamId, Time>,
    /// The message of a series in progress, and its start time; the earliest start time of the next one.
    message: Option<(StreamId, Time)>,
    next_message: Time,
    /// Durations of the messages of a series.
    took: Vec<Span>,
}

struct Party {
    end: NetworkEnd,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    application: Application,
    closed: Option<Closed>,
    connected: Option<Time>,
    admitted: Option<Time>,
    read_again: Time,
    events: Vec<String>,
    stalled_until: Time,
    wants_paths: u8,
    /// Set if another path may be available, and it has not tried to open one since.
    may_open: bool,
    next_socket: u16,
    retired_paths: u32,
    open_paths: u32,
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

pub struct World {
    scene: Scene,
    network: TestNetwork,
    parties: [Party; 2],
    dice: Dice,
    now: Time,
    datagrams: u64,
    updates: u64,
    trace: bool,
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
        let party = |end: NetworkEnd, seed: u8| {
            let identity = Identity::from_seed(&provider, &[seed; 32]).expect("an identity");
            let fingerprint = identity.fingerprint();
            let config = EndpointConfig { settings: settings.clone(), provider: provider.clone(), identity };
            let endpoint = Endpoint::new(Time::ZERO, config, side(end)).expect("an endpoint");
            let party = Party {
                end,
                endpoint,
                handle: None,
                application: Application::default(),
                closed: None,
                connected: None,
                admitted: None,
                read_again: Time::NEVER,
                events: Vec::new(),
                stalled_until: Time::ZERO,
                wants_paths: scene.paths - 1,
                may_open: false,
                next_socket: 1,
                retired_paths: 0,
                open_paths: 1,
            };
            (party, fingerprint)
        };
        let (mut client, _) = party(NetworkEnd::Client, 1);
        let (listener, fingerprint) = party(NetworkEnd::Listener, 2);
        let four_tuple = FourTuple { socket: 0, remote: LISTENER.parse().expect("an address") };
        let secret = Some((TICKET, Secret::new(SECRET)));
        let called =
            client.endpoint.connect(Time::ZERO, four_tuple, Trust::Fingerprint(fingerprint), secret).expect("a call");
        client.handle = Some(called);
        Self {
            network: TestNetwork::new(scene.conditions, scene.seed ^ 0x4e45_5457),
            parties: [client, listener],
            dice: Dice(scene.seed ^ 0x574f_524c),
            now: Time::ZERO,
            datagrams: 0,
            updates: 0,
            scene,
            trace: false,
        }
    }

    pub fn trace(&mut self) {
        self.trace = true;
    }

    /// Runs until all is delivered and the connection is closed, or until nothing can happen any more.
    pub fn run(&mut self, until: Time) -> WorldReport {
        let mut done = Time::NEVER;
        let mut noise = self.scene.noise;
        let mut still = 0;
        loop {
            for at in 0..2 {
                self.apply(at);
                self.transmit(at);
            }
            if !done.is_set() && self.is_done() {
                done = self.now;
                let now = self.now;
                let client = &mut self.parties[0];
                if let Some(connection) = client.handle.and_then(|handle| client.endpoint.connection(handle)) {
                    connection.close(now, CloseCode::NONE, "all is done");
                }
                continue;
            }
            let mut next = self.network.next_arrival();
            for party in &mut self.parties {
                let timer = party.handle.and_then(|handle| Some(party.endpoint.connection(handle)?.next_timer()));
                next = next.min(timer.unwrap_or(Time::NEVER).max(party.stalled_until)).min(party.read_again);
                if party.application.next_message > self.now {
                    next = next.min(party.application.next_message);
                }
            }
            if let Some((_, again)) = self.scene.quiet.filter(|&(_, again)| again > self.now) {
                next = next.min(again);
            }
            if !next.is_set() || next > until {
                break;
            }
            still = if next > self.now { 0 } else { still + 1 };
            assert!(still < 10_000, "time stands still");
            self.now = self.now.max(next);
            if noise > 0 {
                noise -= 1;
                self.make_noise();
            }
            self.step();
        }
        // An address that is not validated gets at most three times the bytes received from it.
        let strangers = self.network.traffic.iter().filter(|(address, _)| network::is_stranger(**address));
        for (address, (got, sent)) in strangers {
            assert!(got <= &(3 * sent), "{address} got {got} bytes for {sent}");
        }
        let [client, listener] = &self.parties;
        WorldReport {
            done,
            connected: client.connected,
            admitted: client.admitted,
            closed: [client.closed.clone(), listener.closed.clone()],
            read: [&client.application, &listener.application].map(|it| it.reading.values().sum()),
            datagrams: self.datagrams,
            updates: self.updates,
            open_paths: client.open_paths,
            retired_paths: client.retired_paths,
            mean_transit_time: self.network.total_transit_time.over(self.datagrams.max(1) as u32),
            ends: listener
                .application
                .ends
                .iter()
                .filter(|(id, _)| id.is_one_way())
                .map(|(id, &at)| (id.nth(), at))
                .collect(),
            took: client.application.took.clone(),
        }
    }

    fn step(&mut self) {
        while let Some(mut datagram) = self.network.take(self.now) {
            let at = datagram.to as usize;
            let party = &mut self.parties[at];
            let four_tuple = FourTuple { socket: datagram.socket, remote: datagram.from };
            let codepoint = datagram.codepoint();
            let received = party.endpoint.on_datagram(self.now, four_tuple, codepoint, &mut datagram.bytes);
            if let Received::New(handle) = received
                && party.handle.is_none()
            {
                party.handle = Some(handle);
            }
        }
        for party in &mut self.parties {
            let Some(handle) = party.handle else { continue };
            if self.now < party.stalled_until {
                continue;
            }
            let due = party.endpoint.connection(handle).is_some_and(|connection| connection.next_timer() <= self.now);
            if self.dice.one_in(self.scene.updates)
                && let Some(connection) = party.endpoint.connection(handle)
            {
                self.updates += u64::from(connection.update_keys(self.now));
            }
            if due {
                party.endpoint.on_timer(self.now, handle);
                if self.scene.stalls > Span::ZERO && self.dice.one_in(50) {
                    party.stalled_until = self.now.saturating_add(self.scene.stalls);
                }
            }
        }
    }

    /// Sends a datagram that is no packet, or only looks like one.
    fn make_noise(&mut self) {
        let len = 1 + self.dice.below(1_300) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| self.dice.draw() as u8).collect();
        if len > 5 && self.dice.one_in(2) {
            bytes[0] |= 0xc0;
            bytes[1..5].copy_from_slice(&proto::VERSION.to_be_bytes());
            bytes.resize(1_200, 0);
        }
        let host = [203, 0, 113, self.dice.below(200) as u8];
        let from = std::net::SocketAddr::from((host, 1_000 + self.dice.below(60_000) as u16));
        self.network.traffic.entry(from).or_default().1 += bytes.len() as u64;
        let datagram = network::Datagram { to: NetworkEnd::Listener, socket: 0, from, ce: false, ect: false, bytes };
        self.network.arrive(self.now, datagram);
    }

    fn transmit(&mut self, at: usize) {
        let now = self.now;
        let party = &mut self.parties[at];
        if now < party.stalled_until {
            return;
        }
        let mut buffer = Vec::new();
        for _ in 0..100_000 {
            buffer.clear();
            let transmit = if let Some(transmit) = party.endpoint.poll_reply(&mut buffer) {
                transmit
            } else {
                let Some(handle) = party.handle else { return };
                let max_datagrams = 1 + self.dice.below(20) as usize;
                match party.endpoint.poll_transmit(now, handle, max_datagrams, &mut buffer) {
                    Some(transmit) => transmit,
                    None => return,
                }
            };
            for bytes in buffer.chunks(transmit.segment) {
                self.datagrams += 1;
                if self.trace {
                    println!(
                        "{:>12} ns {:?} sends {} bytes to {}",
                        now.ns(),
                        party.end,
                        bytes.len(),
                        transmit.four_tuple.remote
                    );
                }
                self.network.send(
                    now,
                    party.end,
                    transmit.four_tuple.socket,
                    transmit.four_tuple.remote,
                    transmit.codepoint,
                    bytes,
                );
            }
        }
        panic!("an endpoint sends without end");
    }

    /// Runs the application at an end.
    fn apply(&mut self, at: usize) {
        let now = self.now;
        let party = &mut self.parties[at];
        let Some(handle) = party.handle else { return };
        while let Some(event) = party.endpoint.connection(handle).and_then(proto::connection::Connection::poll_event) {
            if self.trace {
                println!("{:>12} ns {:?} {event:?}", now.ns(), party.end);
            }
            party.events.push(format!("{event:?}"));
            match event {
                Event::Connected => party.connected = Some(now),
                Event::Admitted => (party.admitted, party.may_open) = (Some(now), true),
                Event::MorePaths => party.may_open = true,
                Event::Claim(claim) => {
                    let connection = party.endpoint.connection(handle).expect("a connection");
                    if claim.ticket == TICKET && connection.proves(&Secret::new(SECRET)) {
                        connection.admit(now);
                        party.admitted = Some(now);
                    } else {
                        connection.refuse(now);
                    }
                    party.endpoint.settle(handle);
                }
                Event::Closed(closed) => party.closed = Some(closed),
                Event::PathOpen(_) => party.open_paths += 1,
                Event::PathGone(_) => {
                    (party.retired_paths, party.may_open) = (party.retired_paths + 1, true);
                    party.wants_paths = party.wants_paths.saturating_add(u8::from(party.end == NetworkEnd::Client));
                }
                Event::PathWanted(path) => {
                    if let Some(connection) = party.endpoint.connection(handle) {
                        connection.replace_path(now, path);
                    }
                    party.endpoint.settle(handle);
                }
                Event::Stream(StreamEvent::Readable(_) | StreamEvent::Opened)
                    if !party.read_again.is_set() || self.scene.reader.1 == Span::ZERO =>
                {
                    party.read_again = now;
                }
                Event::Stream(StreamEvent::Delivered(stream)) => {
                    let application = &mut party.application;
                    application.delivered += 1;
                    if let Some((_, began)) = application.message.take_if(|(message, _)| *message == stream) {
                        application.took.push(now.since(began));
                        application.next_message = now + self.scene.conditions.delay.times(4);
                    }
                }
                _ => {}
            }
        }
        let wants_paths = party.admitted.is_some() && party.end == NetworkEnd::Client && party.closed.is_none();
        // Only on an event, like an application.
        if wants_paths && std::mem::take(&mut party.may_open) {
            while party.wants_paths > 0
                && let Some(connection) = party.endpoint.connection(handle)
                && connection.open_path(now, party.next_socket).is_some()
            {
                party.next_socket += 1;
                party.wants_paths -= 1;
            }
            party.endpoint.settle(handle);
        }
        self.open_jobs(at);
        self.go_on(at);
        if self.parties[at].read_again <= now {
            self.read(at);
        }
        if self.scene.quiet.is_none_or(|(from, until)| now < from || now >= until) {
            self.write(at);
        }
    }

    fn open_jobs(&mut self, at: usize) {
        let party = &mut self.parties[at];
        let Some(handle) = party.handle else { return };
        let Some(streams) = party.endpoint.connection(handle).and_then(|connection| connection.streams()) else {
            return;
        };
        let mut left = Vec::new();
        for job in self.scene.jobs.drain(..) {
            if job.from != party.end {
                left.push(job);
                continue;
            }
            let opened = if job.message {
                streams.open_message(job.bytes)
            } else {
                streams.open(if job.echo { Direction::Both } else { Direction::OneWay })
            };
            match opened {
                Some(stream) => {
                    party.application.writing.insert(stream, (job.bytes, 0));
                    if !stream.is_one_way() {
                        party.application.reading.insert(stream, 0);
                    }
                }
                None => left.push(job),
            }
        }
        self.scene.jobs = left;
    }

    /// Begins the next message of the series.
    fn go_on(&mut self, at: usize) {
        let (count, bytes) = self.scene.series;
        let (now, party) = (self.now, &mut self.parties[at]);
        let Some(handle) = party.handle.filter(|_| at == 0 && party.admitted.is_some()) else { return };
        let Some(streams) = party.endpoint.connection(handle).and_then(|connection| connection.streams()) else {
            return;
        };
        let application = &mut party.application;
        let is_due = count > application.took.len() as u64 && application.message.is_none();
        if is_due
            && application.next_message <= now
            && let Some(stream) = streams.open_message(bytes)
        {
            application.message = Some((stream, now));
            application.writing.insert(stream, (bytes, 0));
        }
    }

    fn write(&mut self, at: usize) {
        let party = &mut self.parties[at];
        let Some(handle) = party.handle else { return };
        let Some(streams) = party.endpoint.connection(handle).and_then(|connection| connection.streams()) else {
            return;
        };
        let mut done = Vec::new();
        for (&stream, (total, written)) in &mut party.application.writing {
            let number = stream.number();
            // As much as there is room for.
            loop {
                let left = *total - *written;
                let piece = *written..*written + left.min(4 << 10);
                let data: Vec<u8> = piece.map(|offset| byte(number, offset)).collect();
                match streams.write(stream, &data) {
                    Ok(count) => *written += count as u64,
                    Err(WriteError::Finished) if left == 0 => {}
                    Err(WriteError::Stopped { .. }) => done.push(stream),
                    Err(_) if self.scene.forgery > 0 => done.push(stream),
                    Err(error) => panic!("{error}"),
                }
                if *written == *total || done.last() == Some(&stream) || *total - *written == left {
                    break;
                }
            }
            if done.last() == Some(&stream) {
                continue;
            }
            if *written == *total {
                match streams.finish(stream) {
                    // A message ends by itself.
                    Ok(()) | Err(WriteError::Finished | WriteError::Stopped { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                done.push(stream);
            }
        }
        for stream in &done {
            party.application.writing.remove(stream);
        }
    }

    fn read(&mut self, at: usize) {
        let (now, (max_bytes, wait)) = (self.now, self.scene.reader);
        let party = &mut self.parties[at];
        party.read_again = Time::NEVER;
        let Some(handle) = party.handle else { return };
        let Some(streams) = party.endpoint.connection(handle).and_then(|connection| connection.streams()) else {
            return;
        };
        while let Some(stream) = streams.accept() {
            party.application.reading.insert(stream, 0);
        }
        let known: Vec<StreamId> = party.application.reading.keys().copied().collect();
        let mut budget = max_bytes;
        let mut out = vec![0; max_bytes.min(64 << 10)];
        for stream in known {
            let number = stream.number();
            let reader = self.scene.readers.get(stream.nth() as usize).filter(|_| at == 1 && stream.is_one_way());
            match reader {
                Some(&ReadBehaviour::Pauses(from, until)) if (from..until).contains(&now) => {
                    party.read_again = party.read_again.min(until);
                    continue;
                }
                Some(&ReadBehaviour::Stops(from)) if from <= now => {
                    // It may have ended before.
                    let _ = streams.stop_sending(stream, 1);
                    continue;
                }
                // Possibly no event wakes it in time.
                Some(&(ReadBehaviour::Pauses(from, _) | ReadBehaviour::Stops(from))) if from > now => {
                    party.read_again = party.read_again.min(from);
                }
                _ => {}
            }
            while budget > 0 {
                let room = out.len().min(budget);
                match streams.read(stream, &mut out[..room]) {
                    Ok(read) => {
                        let before = party.application.reading[&stream];
                        let honest = self.scene.forgery == 0;
                        for (offset, &got) in (before..).zip(&out[..read.bytes]).filter(|_| honest) {
                            assert_eq!(got, byte(number, offset), "byte {offset} of stream {number}");
                        }
                        party.application.reading.insert(stream, before + read.bytes as u64);
                        budget -= read.bytes;
                        if read.ends {
                            party.application.ended += 1;
                            party.application.ends.insert(stream, now);
                            let total = before + read.bytes as u64;
                            if !stream.is_one_way() && stream.opened_by() != side(party.end) {
                                party.application.writing.insert(stream, (total, 0));
                            }
                            break;
                        }
                    }
                    Err(ReadError::Blocked | ReadError::Unknown) => break,
                    Err(_) if self.scene.forgery > 0 => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        if budget == 0 {
            party.read_again = party.read_again.min(now.saturating_add(wait));
        }
    }

    fn is_done(&self) -> bool {
        let both = |of: fn(&Party) -> bool| self.parties.iter().all(of);
        self.scene.jobs.is_empty()
            && self.parties[0].application.took.len() as u64 == self.scene.series.0
            && self.parties[0].admitted.is_some()
            && both(|party| party.application.writing.is_empty())
            && self.parties[0].application.delivered + self.parties[1].application.delivered
                == self.parties[0].application.ended + self.parties[1].application.ended
            && self.parties[0].application.delivered + self.parties[1].application.delivered > 0
    }

    /// Returns the counters of sent and lost packets at an end, over all paths.
    pub fn stats(&mut self, end: NetworkEnd) -> Option<flow::ChannelStats> {
        let party = &mut self.parties[end as usize];
        party.endpoint.connection(party.handle?).map(|connection| connection.stats())
    }

    /// Returns the memory of an end's receive buffers, in bytes.
    pub fn receive_memory(&self, end: NetworkEnd) -> usize {
        self.parties[end as usize].endpoint.receive_memory()
    }

    /// Returns the events of an end, as text.
    pub fn events(&self, end: NetworkEnd) -> &[String] {
        &self.parties[end as usize].events
    }
}

fn side(end: NetworkEnd) -> proto::side::Side {
    match end {
        NetworkEnd::Client => proto::side::Side::Client,
        NetworkEnd::Listener => proto::side::Side::Listener,
    }
}
