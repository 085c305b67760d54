//! The end of a pair that sends probes: timestamps, and the estimate from them.

use alloc::collections::VecDeque;

use units::{Span, Time};

use crate::limits::{Limits, error_at};
use crate::line::{Reading, Skew};
use crate::mesh::Neighbours;
use crate::network::PairInterval;
use crate::pair::{NoEstimate, PairEstimate, PairSamples, SkewRange, estimate};
use crate::samples::{CodedPair, Sample, SampleWindow};
use crate::wire::{Departures, Probe, Reply};

/// Coded pairs that wait for timestamps. The oldest one is evaluated with the timestamps that it has.
const MAX_OUTSTANDING: usize = 4;

/// Minimum number of samples of each direction for an estimate.
const MIN_SAMPLES: usize = 6;

/// Minimum number of pure samples of each direction; with fewer, impure ones are used as well.
const MIN_PURE: usize = 16;

/// Consecutive coded pairs outside the interval of the last estimate that show a step of a clock.
const PAIRS_OF_STEP: u32 = 2;

/// Time after which the lowest round trip of a path is forgotten, at the earliest.
const FLOOR_LIFETIME: Span = Span::from_s(600);

/// Timestamps of a coded pair.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    nonce: u64,
    /// Departures of the probe, by the local clock.
    sent: [Option<Reading>; 2],
    /// Arrivals of the probe, by the remote clock.
    received: [Option<Reading>; 2],
    /// Departures of the replies, by the remote clock.
    replied: Option<[Reading; 2]>,
    /// Arrivals of the replies, by the local clock.
    returned: [Option<Reading>; 2],
}

/// Samples of both directions.
#[derive(Clone, Copy, Debug)]
struct BothWays<T> {
    forward: T,
    backward: T,
}

impl BothWays<SampleWindow> {
    fn new() -> Self {
        Self { forward: SampleWindow::default(), backward: SampleWindow::default() }
    }

    fn have(&self, count: usize) -> bool {
        self.forward.len() >= count && self.backward.len() >= count
    }

    fn discard_before(&mut self, start: Reading) {
        self.forward.discard_before(start);
        self.backward.discard_before(start);
    }
}

/// Lowest round trip of a path in the last 10 to 20 minutes.
#[derive(Clone, Copy, Debug)]
struct Floor {
    recent: i64,
    before: i64,
    since: Time,
}

impl Floor {
    const UNKNOWN: Self = Self { recent: i64::MAX, before: i64::MAX, since: Time::ZERO };

    fn get(&self) -> i64 {
        self.recent.min(self.before)
    }

    fn update(&mut self, now: Time, round_trip: i64) {
        if now.saturating_since(self.since) >= FLOOR_LIFETIME {
            *self = Self { recent: round_trip, before: self.recent, since: now };
        }
        self.recent = self.recent.min(round_trip);
    }
}

/// Agreement of a coded pair with the last estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agreement {
    /// Within its interval, or nothing to compare.
    Agrees,
    /// Outside, as were the coded pairs before: one of the two clocks has stepped.
    Steps,
}

/// Settings of a prober.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProberConfig {
    pub(crate) pair: Neighbours,
    /// Largest asymmetry of the path, if it is limited.
    pub(crate) asymmetry: Option<i64>,
    pub(crate) limits: Limits,
    /// Length of the window of samples, in nanoseconds.
    pub(crate) window: i64,
}

/// The end of a pair that sends probes.
#[derive(Debug)]
pub(crate) struct Prober {
    pub(crate) config: ProberConfig,
    outstanding: VecDeque<Outstanding>,
    pure: BothWays<SampleWindow>,
    all: BothWays<SampleWindow>,
    floor: Floor,
    /// A round trip below the floor, and the time since when there are such.
    lower: Option<Time>,
    interval: Option<PairInterval>,
    estimate: Option<PairEstimate>,
    disagreements: u32,
    /// Time of the last reply.
    pub(crate) last_reply: Option<Time>,
    pub(crate) next_probe: Time,
}

impl Prober {
    pub(crate) fn new(config: ProberConfig, first_probe: Time) -> Self {
        Self {
            config,
            outstanding: VecDeque::new(),
            pure: BothWays::new(),
            all: BothWays::new(),
            floor: Floor::UNKNOWN,
            lower: None,
            interval: None,
            estimate: None,
            disagreements: 0,
            last_reply: None,
            next_probe: first_probe,
        }
    }

    /// Discards samples and the estimate, after a step of either clock. The lowest round trip of the path stays.
    pub(crate) fn reset(&mut self) {
        self.outstanding.clear();
        (self.pure, self.all) = (BothWays::new(), BothWays::new());
        (self.interval, self.estimate, self.disagreements, self.lower) = (None, None, 0, None);
    }

    /// Returns the interval of the last estimate.
    pub(crate) fn interval(&self) -> Option<&PairInterval> {
        self.interval.as_ref()
    }

    /// Returns the last estimate.
    pub(crate) fn estimate(&self) -> Option<&PairEstimate> {
        self.estimate.as_ref()
    }

    /// Begins a coded pair, and evaluates the oldest one that is outstanding.
    pub(crate) fn begin(&mut self, nonce: u64) -> Agreement {
        let is_full = self.outstanding.len() >= MAX_OUTSTANDING;
        let oldest = self.outstanding.pop_front_if(|_| is_full);
        let none = [None; 2];
        self.outstanding.push_back(Outstanding { nonce, sent: none, received: none, replied: None, returned: none });
        oldest.map_or(Agreement::Agrees, |oldest| self.evaluate(&oldest))
    }

    fn find(&mut self, nonce: u64) -> Option<&mut Outstanding> {
        self.outstanding.iter_mut().find(|it| it.nonce == nonce)
    }

    /// Takes the transmit timestamp of a packet.
    pub(crate) fn on_sent(&mut self, probe: Probe, at: Reading) {
        if let Some(outstanding) = self.find(probe.nonce) {
            outstanding.sent[probe.index.index()].get_or_insert(at);
        }
    }

    /// Takes a reply that arrived at `returned`, unless it answers no outstanding packet.
    pub(crate) fn on_reply(&mut self, now: Time, reply: &Reply, returned: Reading) {
        let Some(outstanding) = self.find(reply.probe.nonce) else { return };
        let index = reply.probe.index.index();
        if outstanding.received[index].is_some() {
            return;
        }
        outstanding.received[index] = Some(reply.received);
        outstanding.returned[index] = Some(returned);
        if let Some(Departures { nonce, sent }) = reply.previous
            && let Some(previous) = self.find(nonce)
        {
            previous.replied.get_or_insert(sent);
        }
        self.last_reply = Some(now);
    }

    /// Adds the samples of a coded pair, and compares them with the last estimate.
    fn evaluate(&mut self, pair: &Outstanding) -> Agreement {
        let replied = pair.replied.map_or([None; 2], |replied| replied.map(Some));
        let forward = samples(pair.sent, pair.received);
        let backward = samples(pair.returned, replied);
        let purity = self.config.limits.purity;
        let is_pure = |samples: &[Option<Sample>; 2]| match *samples {
            [Some(first), Some(second)] => CodedPair { packets: [first, second] }.is_pure(purity),
            _ => false,
        };
        if is_pure(&forward) {
            forward.iter().flatten().for_each(|&sample| self.pure.forward.push(sample));
        }
        if is_pure(&backward) {
            backward.iter().flatten().for_each(|&sample| self.pure.backward.push(sample));
        }
        forward.iter().flatten().for_each(|&sample| self.all.forward.push(sample));
        backward.iter().flatten().for_each(|&sample| self.all.backward.push(sample));
        let Some(interval) = &self.interval else { return Agreement::Agrees };
        // A packet arrives no earlier than it was sent, whatever the offset within the interval.
        let excess = |sample: &Sample| sample.difference.wrapping_sub(interval.line.offset_at(sample.at));
        let error = |sample: &Sample| error_at(interval, sample.at);
        let is_outside = forward.iter().flatten().any(|sample| excess(sample) < -error(sample))
            || backward.iter().flatten().any(|sample| excess(sample) > error(sample));
        self.disagreements = if is_outside { self.disagreements + 1 } else { 0 };
        if self.disagreements >= PAIRS_OF_STEP { Agreement::Steps } else { Agreement::Agrees }
    }

    /// Renews the estimate. If the samples contradict each other, all is discarded.
    pub(crate) fn renew(&mut self, now: Time, clock: Reading) -> Agreement {
        let start = clock.after(-self.config.window);
        self.pure.discard_before(start);
        self.all.discard_before(start);
        let set = if self.pure.have(MIN_PURE) { &mut self.pure } else { &mut self.all };
        if !set.have(MIN_SAMPLES) {
            (self.interval, self.estimate) = (None, None);
            return Agreement::Agrees;
        }
        let limits = &self.config.limits;
        let skews = match &self.interval {
            // Twice the wander: in both windows the estimate is of the mean skew.
            Some(last) => SkewRange::around(last.line.skew, last.skew_error + limits.wander + limits.wander),
            None => SkewRange::around(Skew::ZERO, limits.max_skew),
        };
        let samples = PairSamples { forward: set.forward.samples(), backward: set.backward.samples() };
        match estimate(samples, skews) {
            Ok(estimate) => {
                self.interval = Some(self.bound(now, &estimate));
                self.estimate = Some(estimate);
                Agreement::Agrees
            }
            Err(NoEstimate::NoSamples) => Agreement::Agrees,
            Err(NoEstimate::Contradiction) => {
                self.reset();
                Agreement::Steps
            }
        }
    }

    /// Returns the interval of an estimate.
    ///
    /// Queues that never emptied, and a step within the window, change the round trip by at least twice their effect on the
    /// offset: so half of the difference from the path's lowest round trip bounds it, as far as that is known. While it is
    /// not, twice the spread of the shortest delays bounds the queues.
    fn bound(&mut self, now: Time, estimate: &PairEstimate) -> PairInterval {
        let ProberConfig { pair, asymmetry, limits, window } = self.config;
        let floor = self.floor.get();
        let known = if floor == i64::MAX { estimate.round_trip } else { floor };
        let queues = estimate.spread.map_or(estimate.round_trip, |spread| 2 * spread);
        let change = (estimate.round_trip - known).abs().max(queues);
        // A lower round trip becomes the floor once a step in the middle of the window would have left it.
        if estimate.round_trip >= floor {
            self.lower = None;
        } else if floor != i64::MAX && self.lower.is_none() {
            self.lower = Some(now);
        }
        let is_settled = self.lower.is_none_or(|since| now.saturating_since(since) >= Span::from_ns(window));
        if is_settled {
            self.floor.update(now, estimate.round_trip);
            self.lower = None;
        }
        let noise = change / 2 + limits.timestamp_error;
        let half = estimate.round_trip / 2 + limits.timestamp_error;
        let error = asymmetry.map_or(half, |asymmetry| half.min(noise + asymmetry / 2)) + 1;
        let skew_error = Skew::ratio(2 * noise, estimate.span.max(1)) + limits.wander;
        PairInterval { pair, line: estimate.line, error, skew_error }
    }
}

/// Returns the samples of one direction that have both timestamps.
fn samples(local: [Option<Reading>; 2], remote: [Option<Reading>; 2]) -> [Option<Sample>; 2] {
    let sample = |index: usize| {
        let (at, remote) = (local[index]?, remote[index]?);
        Some(Sample { at, difference: remote.since(at) })
    };
    [sample(0), sample(1)]
}
