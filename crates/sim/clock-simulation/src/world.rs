//! A mesh in virtual time, and its errors.

use clocks::{Event, Member, MemberConfig, MeshConfig, Node, Session};
use units::{Span, Time, mix64};
use virtual_time::{EventLoop, HostCosts, HostIndex, Step};

use crate::host::{Absence, ClockHost, HostParts, TimestampNoise};
use crate::network::{LoadedNetwork, NetworkConfig};
use crate::oscillator::{Oscillator, OscillatorConfig};
use crate::random::Random;

/// Steps of clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepConfig {
    /// Mean time between two steps in the mesh.
    pub every: Span,
    /// Smallest step, in nanoseconds.
    pub min_ns: i64,
    /// Largest step, in nanoseconds; sizes are uniform in their logarithm, in both directions.
    pub max_ns: i64,
}

/// A simulation of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// Number of members.
    pub hosts: u32,
    /// The mesh; its members are made from `hosts`.
    pub mesh: MeshConfig,
    /// The network.
    pub network: NetworkConfig,
    /// Clocks.
    pub oscillator: OscillatorConfig,
    /// Noise of timestamps.
    pub noise: TimestampNoise,
    /// Number of liars, the last members: timestamps are wrong by another amount for each neighbour.
    pub liars: u32,
    /// Largest error of a liar's timestamps, in nanoseconds.
    pub lie_ns: i64,
    /// Steps of clocks, if any.
    pub steps: Option<StepConfig>,
    /// A member that is cut off for some time.
    pub absence: Option<Absence>,
    /// Time before errors count.
    pub warm_up: Span,
    /// Time in which errors count.
    pub duration: Span,
    /// Time between two readings of each member.
    pub read_every: Span,
    /// Seed of everything random.
    pub seed: u64,
}

impl Simulation {
    /// Returns a simulation of 30 s after 60 s, with a reading a millisecond, without liars and steps.
    pub fn new(hosts: u32, load_percent: u32, seed: u64) -> Self {
        let member = |index: u32| MemberConfig { id: u64::from(index), site: 0 };
        Self {
            hosts,
            mesh: MeshConfig::new((0..hosts).map(member).collect()),
            network: NetworkConfig::new(load_percent),
            oscillator: OscillatorConfig::default(),
            noise: TimestampNoise::default(),
            liars: 0,
            lie_ns: 1_000_000,
            steps: None,
            absence: None,
            warm_up: Span::from_s(60),
            duration: Span::from_s(30),
            read_every: Span::from_ms(1),
            seed,
        }
    }
}

/// Percentiles of absolute values, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Distribution {
    /// Median.
    pub p50: i64,
    /// 99th percentile.
    pub p99: i64,
    /// Maximum.
    pub max: i64,
}

/// Result of a simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Readings of members that knew mesh time.
    pub readings: u64,
    /// Readings of members that did not.
    pub void: u64,
    /// Mesh time of members less that of the reference.
    pub error: Distribution,
    /// Bounds of members' errors.
    pub bound: Distribution,
    /// Readings with a bound that does not contain the time that most bounds contain.
    pub outside: u64,
    /// Steps of clocks.
    pub steps: u64,
    /// Steps after which the member's map was void within two seconds, or its bound contained the time.
    pub steps_noticed: u64,
    /// Messages a host and second.
    pub messages_per_host_s: u64,
    /// Changes of the reference, steps of mesh time and suspects, in order: time in seconds, member, event.
    pub events: Vec<(u64, Member, Event)>,
}

/// Counts of values in buckets of about 1.5 %.
#[derive(Debug)]
struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: i64,
}

const SUB_BITS: u32 = 6;

impl Histogram {
    fn new() -> Self {
        Self { buckets: vec![0; 64 << SUB_BITS], count: 0, max: 0 }
    }

    fn add(&mut self, value: i64) {
        let value = value.unsigned_abs();
        let bucket = if value < 1 << SUB_BITS {
            value as usize
        } else {
            let shift = value.ilog2() - SUB_BITS;
            ((shift as usize + 1) << SUB_BITS) + ((value >> shift) as usize - (1 << SUB_BITS))
        };
        self.buckets[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(value as i64);
    }

    fn quantile(&self, per_cent: u64) -> i64 {
        let rank = (self.count * per_cent).div_ceil(100);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && count > 0 {
                let (group, rest) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
                let value = if group == 0 { rest } else { (rest + (1 << SUB_BITS) + 1) << (group - 1) };
                return (value as i64).min(self.max);
            }
        }
        0
    }

    fn distribution(&self) -> Distribution {
        Distribution { p50: self.quantile(50), p99: self.quantile(99), max: self.max }
    }
}

/// A bound of mesh time.
#[derive(Clone, Copy, Debug)]
struct Bound {
    host: usize,
    low: i64,
    high: i64,
}

/// Time that a member has to notice a step of its clock.
const NOTICE: Span = Span::from_s(2);

struct World<'a> {
    simulation: &'a Simulation,
    event_loop: EventLoop<ClockHost, LoadedNetwork>,
    random: Random,
    /// By host: the time until which it may be wrong.
    excused_until: Vec<Time>,
    /// Hosts with a step that has not been judged.
    stepped: Vec<usize>,
    next_step: Time,
    errors: Histogram,
    bounds: Histogram,
    outcome: Outcome,
}

impl Simulation {
    /// Runs the simulation. `progress` receives the simulated time at each second. Returns `None` if it returns false, which
    /// ends the simulation.
    pub fn run(&self, mut progress: impl FnMut(Time) -> bool) -> Option<Outcome> {
        let mut world = World::new(self);
        let end = Time::ZERO + self.warm_up + self.duration;
        let (mut next_read, mut next_second) = (Time::ZERO + self.warm_up, Time::ZERO);
        while next_read < end {
            if next_second <= next_read {
                world.run_to(next_second);
                if !progress(next_second) {
                    return None;
                }
                next_second += Span::from_s(1);
                continue;
            }
            world.run_to(next_read);
            world.step_if_due(next_read);
            world.read(next_read);
            next_read += self.read_every;
        }
        Some(world.finish())
    }
}

impl<'a> World<'a> {
    fn new(simulation: &'a Simulation) -> Self {
        let seed = mix64(simulation.seed);
        let host = |index: u32| {
            let salt = mix64(seed ^ mix64(u64::from(index)));
            // Larger than those of former runs, as the time would be.
            let session = Session(1_000 + u64::from(index));
            let own = Member(index as u16);
            let is_liar = index >= simulation.hosts - simulation.liars.min(simulation.hosts);
            ClockHost::new(HostParts {
                index: HostIndex(index),
                node: Node::new(simulation.mesh.clone(), own, session, salt, Time::ZERO),
                clock: Oscillator::new(simulation.oscillator, mix64(salt ^ 1)),
                noise: simulation.noise,
                seed: mix64(salt ^ 2),
                lie_ns: if is_liar { simulation.lie_ns } else { 0 },
                absence: simulation.absence.filter(|absence| absence.member == index),
            })
        };
        let network = LoadedNetwork::new(simulation.network, simulation.hosts, mix64(seed ^ 3));
        let hosts: Vec<ClockHost> = (0..simulation.hosts).map(host).collect();
        let mut random = Random::new(seed ^ 4);
        let first_step = simulation.steps.map_or(Time::NEVER, |steps| {
            Time::ZERO + simulation.warm_up + Span::from_unsigned_ps(random.exponential(steps.every.unsigned_ps()))
        });
        Self {
            simulation,
            event_loop: EventLoop::new(hosts, network, HostCosts::default()),
            random,
            excused_until: vec![Time::ZERO; simulation.hosts as usize],
            stepped: Vec::new(),
            next_step: first_step,
            errors: Histogram::new(),
            bounds: Histogram::new(),
            outcome: Outcome {
                readings: 0,
                void: 0,
                error: Distribution::default(),
                bound: Distribution::default(),
                outside: 0,
                steps: 0,
                steps_noticed: 0,
                messages_per_host_s: 0,
                events: Vec::new(),
            },
        }
    }

    fn run_to(&mut self, time: Time) {
        while self.event_loop.step(time) != Step::Idle {}
    }

    /// Steps a random honest host's clock.
    fn step_if_due(&mut self, now: Time) {
        let Some(steps) = self.simulation.steps.filter(|_| now >= self.next_step) else { return };
        self.next_step = now + Span::from_unsigned_ps(self.random.exponential(steps.every.unsigned_ps()));
        let honest = self.simulation.hosts - self.simulation.liars.min(self.simulation.hosts);
        let host = self.random.below(honest.into()) as usize;
        if self.excused_until[host] > now {
            return;
        }
        let octaves = (steps.max_ns / steps.min_ns.max(1)).max(1).ilog2() + 1;
        let size = (steps.min_ns << self.random.below(octaves.into())).min(steps.max_ns);
        let size = size + self.random.below(size.unsigned_abs()) as i64;
        let sign = if self.random.below(2) == 0 { 1 } else { -1 };
        self.event_loop.host(HostIndex(host as u32)).clock.step(sign * size.min(steps.max_ns));
        self.excused_until[host] = now + NOTICE;
        self.stepped.push(host);
        self.outcome.steps += 1;
    }

    /// Reads all clocks at `now`.
    fn read(&mut self, now: Time) {
        let honest = (self.simulation.hosts - self.simulation.liars.min(self.simulation.hosts)) as usize;
        let (mut bounds, mut times) = (Vec::with_capacity(honest), vec![None; honest]);
        let mut reference = None;
        for (index, time) in times.iter_mut().enumerate() {
            let host = self.event_loop.host(HostIndex(index as u32));
            let reading = host.clock.read(now);
            let Some(map) = host.node.map().filter(|map| map.valid_until >= now) else {
                self.outcome.void += 1;
                continue;
            };
            let (mesh, error) = (map.time(reading).0, map.error(reading));
            if self.excused_until[index] > now {
                continue;
            }
            reference.get_or_insert(map.reference.index());
            *time = Some(mesh);
            bounds.push(Bound { host: index, low: mesh - error, high: mesh + error });
            self.bounds.add(error);
            self.outcome.readings += 1;
        }
        if let Some(truth) = reference.and_then(|reference: usize| *times.get(reference)?) {
            times.iter().flatten().for_each(|time| self.errors.add(time - truth));
        }
        let wrong = outside(&bounds);
        self.outcome.outside += wrong.len() as u64;
        let excused = &self.excused_until;
        let (judged, rest): (Vec<usize>, Vec<usize>) = self.stepped.iter().partition(|&&host| excused[host] <= now);
        self.stepped = rest;
        self.outcome.steps_noticed += judged.iter().filter(|host| !wrong.contains(host)).count() as u64;
    }

    fn finish(mut self) -> Outcome {
        self.outcome.error = self.errors.distribution();
        self.outcome.bound = self.bounds.distribution();
        let simulation = self.simulation;
        let seconds = (simulation.warm_up + simulation.duration).unsigned_ps() / Span::from_s(1).unsigned_ps();
        let packets = self.event_loop.network().packets;
        self.outcome.messages_per_host_s = packets / u64::from(simulation.hosts.max(1)) / seconds.max(1);
        let mut events: Vec<(Time, Member, Event)> = Vec::new();
        for host in self.event_loop.hosts() {
            let own = Member(host.index.0 as u16);
            events.extend(host.events.iter().map(|&(time, event)| (time, own, event)));
        }
        events.sort_by_key(|&(time, member, _)| (time, member));
        self.outcome.events =
            events.into_iter().map(|(time, member, event)| (time.ns() / 1_000_000_000, member, event)).collect();
        self.outcome.steps -= self.stepped.len() as u64;
        self.outcome
    }
}

/// Returns the hosts with bounds that do not contain the time that most bounds contain.
fn outside(bounds: &[Bound]) -> Vec<usize> {
    let low = bounds.iter().map(|bound| bound.low).max().unwrap_or(0);
    let high = bounds.iter().map(|bound| bound.high).min().unwrap_or(0);
    if low <= high {
        return Vec::new();
    }
    let contain = |time: i64| bounds.iter().filter(|bound| (bound.low..=bound.high).contains(&time)).count();
    let truth = bounds.iter().map(|bound| bound.low).max_by_key(|&time| contain(time)).unwrap_or(0);
    bounds.iter().filter(|bound| !(bound.low..=bound.high).contains(&truth)).map(|bound| bound.host).collect()
}
