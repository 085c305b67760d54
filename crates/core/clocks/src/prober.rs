//! The end of a pair that sends probes: timestamps, and the estimate from them.

use alloc::collections::VecDeque;

use units::{Span, Time};

use crate::limits::{Limits, error_at};
use crate::line::{Reading, Skew};
use crate::mesh::Neighbours;
use crate::network::PairInterval;
use crate::pair::{NoEstimate, PairEstimate, PairSamples, SkewRange, estimate};
use crate::samples::{CodedPair, Sample, SampleWindow};
use crate::wire::{Agreement, Departures, PairIndex, Reply};

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

/// Updates of a path's lowest round trip after which it is known well enough to notice that the path has become shorter.
const UPDATES_OF_FLOOR: u32 = 30;

/// Lengths of the windows that an estimate is chosen from, as multiples of the shortest one.
const WINDOWS: [i64; 4] = [1, 2, 4, 8];

/// Age of an estimate until it is replaced, from the end of its window, in nanoseconds.
const MAX_AGE: i64 = 4_000_000_000;

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

    fn discard_before(&mut self, start: Reading) {
        self.forward.discard_before(start);
        self.backward.discard_before(start);
    }

    /// Returns the samples from `start` on; none if there are fewer than `min` of a direction.
    fn since(&mut self, start: Reading, min: usize) -> Option<PairSamples<'_>> {
        let (forward, backward) = (self.forward.since(start), self.backward.since(start));
        (forward.len() >= min && backward.len() >= min).then_some(PairSamples { forward, backward })
    }
}

/// Lowest round trip of a path in the last 10 to 20 minutes.
#[derive(Clone, Copy, Debug)]
struct Floor {
    recent: i64,
    before: i64,
    since: Time,
    /// Queues that may be part of it, in nanoseconds.
    queues: i64,
    /// Number of updates.
    updates: u32,
}

impl Floor {
    const UNKNOWN: Self = Self { recent: i64::MAX, before: i64::MAX, since: Time::ZERO, queues: i64::MAX, updates: 0 };

    fn get(&self) -> i64 {
        self.recent.min(self.before)
    }

    fn is_known(&self) -> bool {
        self.get() != i64::MAX
    }

    fn update(&mut self, now: Time, round_trip: i64, queues: i64) {
        if round_trip < self.get() {
            self.queues = queues;
        }
        if now.saturating_since(self.since) >= FLOOR_LIFETIME {
            (self.before, self.recent, self.since) = (self.recent, round_trip, now);
        }
        self.updates = self.updates.saturating_add(1);
        self.recent = self.recent.min(round_trip);
        self.queues = self.queues.min(queues);
    }
}

/// Settings of a prober.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProberConfig {
    pub(crate) pair: Neighbours,
    /// Largest asymmetry of the path, if it is limited.
    pub(crate) asymmetry: Option<i64>,
    pub(crate) limits: Limits,
    /// Length of the shortest window of samples, in nanoseconds.
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
    /// End of the first window with a round trip below the floor.
    lower: Option<Reading>,
    interval: Option<PairInterval>,
    estimate: Option<PairEstimate>,
    disagreements: u32,
    /// Time of the last reply.
    pub(crate) last_reply: Option<Time>,
    pub(crate) next_probe: Time,
    /// Agreement of the coded pair that was evaluated last.
    pub(crate) agreement: Agreement,
    /// Time at which the second packet of the newest coded pair is due; [`Time::NEVER`] once it is sent.
    pub(crate) second_at: Time,
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
            agreement: Agreement::Agrees,
            second_at: Time::NEVER,
        }
    }

    /// Discards samples and the estimate, after a step of either clock. The lowest round trip of the path stays.
    pub(crate) fn reset(&mut self) {
        self.outstanding.clear();
        (self.pure, self.all) = (BothWays::new(), BothWays::new());
        (self.interval, self.estimate, self.disagreements, self.lower) = (None, None, 0, None);
        self.agreement = Agreement::Agrees;
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

    /// Returns the nonce of the newest coded pair, if it was not discarded.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.outstanding.back().map(|it| it.nonce)
    }

    fn find(&mut self, nonce: u64) -> Option<&mut Outstanding> {
        self.outstanding.iter_mut().find(|it| it.nonce == nonce)
    }

    /// Takes the transmit timestamp of a packet.
    pub(crate) fn on_sent(&mut self, nonce: u64, index: PairIndex, at: Reading) {
        if let Some(outstanding) = self.find(nonce) {
            outstanding.sent[index.index()].get_or_insert(at);
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

    /// Renews the estimate, from the window with the smallest error. If the samples contradict each other, all is discarded.
    pub(crate) fn renew(&mut self, now: Time, clock: Reading) -> Agreement {
        let longest = self.config.window * WINDOWS[WINDOWS.len() - 1];
        self.pure.discard_before(clock.after(-longest));
        self.all.discard_before(clock.after(-longest));
        let mut best: Option<(PairEstimate, PairInterval)> = None;
        for window in WINDOWS.map(|multiple| multiple * self.config.window) {
            let limits = &self.config.limits;
            let (short, fastest) = (window == self.config.window, limits.wander.times_s(window + MAX_AGE));
            let skews = match &self.interval {
                Some(last) => SkewRange::around(last.line.skew, last.skew_error + fastest),
                None => SkewRange::around(Skew::ZERO, limits.max_skew),
            };
            let start = clock.after(-window);
            let samples = match self.pure.since(start, MIN_PURE) {
                Some(samples) => Some(samples),
                None => self.all.since(start, MIN_SAMPLES),
            };
            let Some(samples) = samples else { continue };
            match estimate(samples, skews) {
                // Too short for a skew.
                Ok(estimate) if estimate.span < self.config.window / 2 => {}
                Ok(estimate) => {
                    let interval = self.bound(&estimate);
                    let is_better = best.is_none_or(|(_, known)| interval.deviation < known.deviation);
                    if is_better {
                        best = Some((estimate, interval));
                    } else if !short {
                        break;
                    }
                }
                // Longer windows contradict themselves by wander, or by a step that shorter ones have left.
                Err(_) if !short => break,
                Err(NoEstimate::NoSamples) => {}
                Err(NoEstimate::Contradiction) => {
                    self.reset();
                    return Agreement::Steps;
                }
            }
        }
        let Some((estimate, interval)) = best else {
            (self.interval, self.estimate) = (None, None);
            return Agreement::Agrees;
        };
        if self.has_fallen(&estimate) {
            self.reset();
            self.floor = Floor::UNKNOWN;
            return Agreement::Steps;
        }
        self.settle(now, &estimate);
        (self.interval, self.estimate) = (Some(interval), Some(estimate));
        Agreement::Agrees
    }

    /// Returns whether the round trip is lower than queues at the time of the lowest one explain: the path is another one,
    /// or a clock has stepped by less than the path's delay.
    fn has_fallen(&self, estimate: &PairEstimate) -> bool {
        let ProberConfig { asymmetry, limits, .. } = self.config;
        let tolerance = 4 * limits.timestamp_error + asymmetry.unwrap_or(limits.asymmetry);
        let explained = self.floor.queues.saturating_mul(2).saturating_add(tolerance);
        self.floor.updates >= UPDATES_OF_FLOOR && self.floor.get() - estimate.round_trip > explained
    }

    /// Updates the path's lowest round trip. A lower one counts if its window began after the first lower one: a step within
    /// a window lowers the round trip, and such a window does not contain it.
    fn settle(&mut self, now: Time, estimate: &PairEstimate) {
        let is_lower = self.floor.is_known() && estimate.round_trip < self.floor.get();
        let first_lower = if is_lower { *self.lower.get_or_insert(estimate.end()) } else { estimate.start() };
        if estimate.start() >= first_lower {
            self.lower = None;
            self.floor.update(now, estimate.round_trip, queues(estimate));
        }
    }

    /// Returns the interval of an estimate.
    ///
    /// Queues that never emptied, and a step within the window, change the round trip by at least twice their effect on the
    /// offset: so half of the difference from the path's lowest round trip bounds it, as far as that is known. While it is
    /// not, the spread of the shortest delays bounds the queues. Wander bends the line.
    fn bound(&self, estimate: &PairEstimate) -> PairInterval {
        let ProberConfig { pair, asymmetry, limits, .. } = self.config;
        let known = if self.floor.is_known() { self.floor.get() } else { estimate.round_trip };
        let excess = estimate.round_trip - known;
        let change = excess.abs().max(queues(estimate));
        let noise = change / 2 + limits.timestamp_error;
        let half = estimate.round_trip / 2 + limits.timestamp_error;
        let bend = limits.wander.times_s(estimate.span).over(estimate.span) / 8;
        let error = asymmetry.map_or(half, |asymmetry| half.min(noise + asymmetry / 2)) + bend + 1;
        let turned = limits.wander.times_s(estimate.span + 2 * MAX_AGE);
        let skew_error = Skew::ratio(2 * noise, estimate.span.max(1)) + Skew(turned.0 / 2);
        let delays = excess.max(queues(estimate) / 4) / 2;
        let deviation = (delays + limits.timestamp_error + bend / 32).clamp(0, u32::MAX.into()) as u32;
        PairInterval { pair, line: estimate.line, error, skew_error, deviation }
    }
}

/// Returns the queues that may be part of the shortest delays, in nanoseconds.
fn queues(estimate: &PairEstimate) -> i64 {
    estimate.spread.map_or(estimate.round_trip, |spread| 2 * spread)
}

/// Returns the samples of one direction that have both timestamps.
fn samples(local: [Option<Reading>; 2], remote: [Option<Reading>; 2]) -> [Option<Sample>; 2] {
    let sample = |index: usize| {
        let (at, remote) = (local[index]?, remote[index]?);
        Some(Sample { at, difference: remote.since(at) })
    };
    [sample(0), sample(1)]
}
