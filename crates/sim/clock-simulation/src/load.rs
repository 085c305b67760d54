//! A link with random traffic, simulated only when a packet of interest passes.
//!
//! Bursts arrive as a Poisson process, each of a geometric number of packets of 1,500 bytes: an M/G/1 queue. A packet finds
//! the work that is left of them. Before each packet the traffic of the time since the last one is simulated, or of the time
//! in which the queue forgets its state, whichever is shorter.

use units::{EXPONENTIAL_BITS, Span, Time, exponential};

use crate::random::Random;

/// Random traffic on links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadConfig {
    /// Part of the link's rate, in percent, under 100.
    pub percent: u32,
    /// Mean number of packets in a burst, at least 1.
    pub burst: u32,
    /// Transmission time of a packet.
    pub packet: Span,
}

/// Number of quantiles in [`Exponential`].
const QUANTILES: u32 = 4_096;

/// Exponential numbers of mean 1 by quantiles, for draws that are many.
#[derive(Debug)]
pub(crate) struct Exponential(Vec<u64>);

impl Exponential {
    pub(crate) fn new() -> Self {
        let quantile = |index: u64| exponential((2 * index + 1) << (63 - QUANTILES.ilog2()));
        Self((0..u64::from(QUANTILES)).map(quantile).collect())
    }

    fn draw(&self, random: &mut Random, mean: u64) -> u64 {
        let quantile = self.0[(random.next() >> (64 - QUANTILES.ilog2())) as usize];
        ((u128::from(quantile) * u128::from(mean)) >> EXPONENTIAL_BITS) as u64
    }
}

/// Traffic of a load, with what follows from it.
#[derive(Debug)]
pub(crate) struct Traffic {
    exponential: Exponential,
    /// Mean transmission time of a burst, in picoseconds.
    burst_ps: u64,
    /// Mean time between two bursts; 0 without traffic.
    gap_ps: u64,
    /// Time after which the queue does not depend on its former state.
    memory: Span,
}

impl Traffic {
    pub(crate) fn new(config: LoadConfig) -> Self {
        let burst_ps = config.packet.unsigned_ps() * u64::from(config.burst);
        let percent = u64::from(config.percent.min(99));
        let gap_ps = (burst_ps * 100).checked_div(percent).unwrap_or(0);
        // The relaxation time of an M/M/1 queue is about two services over the square of the idle share; five of them.
        let memory = 10 * burst_ps * 10_000 / (100 - percent).pow(2);
        Self { exponential: Exponential::new(), burst_ps, gap_ps, memory: Span::from_unsigned_ps(memory) }
    }
}

/// A link's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedQueue {
    random: Random,
    /// Time up to which traffic has been simulated.
    now: Time,
    next_burst: Time,
    /// Time at which the link becomes idle.
    idle_at: Time,
}

impl LoadedQueue {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), now: Time::ZERO, next_burst: Time::ZERO, idle_at: Time::ZERO }
    }

    /// Sends a packet that arrives at `now`. Returns the time at which its last bit leaves.
    pub(crate) fn send(&mut self, traffic: &Traffic, now: Time, service: Span) -> Time {
        if traffic.gap_ps > 0 {
            self.simulate(traffic, now);
        }
        self.idle_at = self.idle_at.max(now) + service;
        self.idle_at
    }

    fn simulate(&mut self, traffic: &Traffic, now: Time) {
        if now.saturating_since(self.now) > traffic.memory {
            let start = now.saturating_sub(traffic.memory);
            self.idle_at = self.idle_at.max(start);
            self.next_burst = self.next_burst.max(start);
        }
        while self.next_burst <= now {
            let size = traffic.exponential.draw(&mut self.random, traffic.burst_ps);
            self.idle_at = self.idle_at.max(self.next_burst) + Span::from_unsigned_ps(size);
            let gap = traffic.exponential.draw(&mut self.random, traffic.gap_ps);
            self.next_burst += Span::from_unsigned_ps(gap);
        }
        self.now = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean wait of an M/M/1 queue, seen by rare packets: load / (1 - load) services.
    #[test]
    fn waits_are_those_of_an_mm1_queue() {
        for (percent, expected) in [(40, 667), (80, 4_000)] {
            let traffic = Traffic::new(LoadConfig { percent, burst: 1, packet: Span::from_us(1) });
            let mut queue = LoadedQueue::new(7);
            let (mut sum, count) = (0, 20_000);
            for index in 1..=count {
                let now = Time::from_us(index * 2_000);
                sum += queue.send(&traffic, now, Span::ZERO).saturating_since(now).ns();
            }
            let mean = sum / count as i64;
            assert!((mean - expected).abs() * 20 < expected, "{percent} %: {mean}, not {expected}");
        }
    }

    #[test]
    fn an_unloaded_link_only_takes_time_to_send() {
        let traffic = Traffic::new(LoadConfig { percent: 0, burst: 1, packet: Span::from_us(1) });
        let mut queue = LoadedQueue::new(1);
        let sent = queue.send(&traffic, Time::from_us(5), Span::from_ns(80));
        assert_eq!(sent, Time::from_ns(5_080));
        assert_eq!(queue.send(&traffic, Time::from_us(5), Span::from_ns(80)), Time::from_ns(5_160));
    }
}
