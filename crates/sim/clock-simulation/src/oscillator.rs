//! A host's clock: an oscillator with an offset, a skew, wander, changes of temperature, and steps.

use clocks::{Reading, Skew};
use units::{Span, Time};

use crate::random::Random;

/// Time between two changes of the skew by wander.
const WANDER_STEP: Span = Span::from_ms(100);

/// Properties of oscillators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OscillatorConfig {
    /// Largest initial offset, in nanoseconds, in both directions.
    pub offset_ns: i64,
    /// Largest initial skew in parts per billion, in both directions.
    pub skew_ppb: i64,
    /// Standard deviation of the change of the skew in a second, in parts per billion: a random walk.
    pub wander_ppb: i64,
    /// Largest change of the skew by a change of temperature, in parts per billion. It takes ten seconds.
    pub temperature_ppb: i64,
    /// Mean time between two changes of temperature; none without.
    pub temperature_every: Option<Span>,
}

impl Default for OscillatorConfig {
    /// Offsets of up to 1 s, skews of up to 30 ppm (typical clocks: 5 to 10, at most 30), wander of 2 ppb in a
    /// second, changes of 200 ppb about every minute.
    fn default() -> Self {
        Self {
            offset_ns: 1_000_000_000,
            skew_ppb: 30_000,
            wander_ppb: 2,
            temperature_ppb: 200,
            temperature_every: Some(Span::from_s(60)),
        }
    }
}

/// Steps of wander that a change of temperature takes.
const TEMPERATURE_STEPS: u32 = 100;

/// A clock. It is read at ascending times.
#[derive(Clone, Debug)]
pub(crate) struct Oscillator {
    config: OscillatorConfig,
    random: Random,
    /// Start of the segment of constant skew, and the clock's reading at it in units of 2^-16 ns.
    segment: Time,
    reading: i128,
    skew: Skew,
    /// Change of the skew by temperature a step, and the steps left.
    ramp: Skew,
    ramp_steps: u32,
    next_temperature: Time,
}

/// Fractional bits of nanoseconds within the oscillator.
const FRACTION: u32 = 16;

impl Oscillator {
    pub(crate) fn new(config: OscillatorConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut between = |limit: i64| random.below(2 * limit.unsigned_abs() + 1) as i64 - limit;
        let (offset, skew) = (between(config.offset_ns), between(config.skew_ppb));
        let mut oscillator = Self {
            config,
            random,
            segment: Time::ZERO,
            reading: i128::from(offset) << FRACTION,
            skew: Skew::from_ppb(skew),
            ramp: Skew::ZERO,
            ramp_steps: 0,
            next_temperature: Time::NEVER,
        };
        oscillator.next_temperature = oscillator.draw_temperature(Time::ZERO);
        oscillator
    }

    fn draw_temperature(&mut self, now: Time) -> Time {
        let every = self.config.temperature_every;
        every.map_or(Time::NEVER, |every| now + Span::from_unsigned_ps(self.random.exponential(every.unsigned_ps())))
    }

    /// Returns the reading at a time, which is not before the start of the current segment.
    pub(crate) fn read(&mut self, now: Time) -> Reading {
        while now.saturating_since(self.segment) >= WANDER_STEP {
            self.reading = self.at(self.segment + WANDER_STEP);
            self.segment += WANDER_STEP;
            self.change();
        }
        Reading((self.at(now) >> FRACTION) as i64)
    }

    fn at(&self, now: Time) -> i128 {
        let ps = i128::from(now.saturating_since(self.segment).ps());
        let ideal = (ps << FRACTION) / 1_000;
        self.reading + ideal + ((ideal * i128::from(self.skew.0)) >> 48)
    }

    /// Changes the skew at the end of a segment.
    fn change(&mut self) {
        // Ten steps a second.
        let step = Skew::from_ppb(self.config.wander_ppb * 1_000).0 / 3_162;
        self.skew = self.skew + Skew(self.random.gaussian(step));
        if self.segment >= self.next_temperature {
            let limit = self.config.temperature_ppb;
            let change = self.random.below(2 * limit.unsigned_abs() + 1) as i64 - limit;
            self.ramp = Skew(Skew::from_ppb(change).0 / i64::from(TEMPERATURE_STEPS));
            self.ramp_steps = TEMPERATURE_STEPS;
            self.next_temperature = self.draw_temperature(self.segment);
        }
        if self.ramp_steps > 0 {
            self.ramp_steps -= 1;
            self.skew = self.skew + self.ramp;
        }
    }

    /// Steps the clock by this many nanoseconds.
    pub(crate) fn step(&mut self, ns: i64) {
        self.reading += i128::from(ns) << FRACTION;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skew and its wander have the configured size.
    #[test]
    fn wander_is_a_random_walk() {
        let config = OscillatorConfig {
            offset_ns: 0,
            skew_ppb: 0,
            wander_ppb: 100,
            temperature_ppb: 0,
            temperature_every: None,
        };
        let mut sum = 0;
        for seed in 0..200 {
            let mut oscillator = Oscillator::new(config, seed);
            oscillator.read(Time::from_ms(100_000));
            sum += oscillator.skew.ppb().pow(2);
        }
        // After 100 s: 10 times 100 ppb.
        let sigma = (sum / 200).isqrt();
        assert!((850..1_150).contains(&sigma), "{sigma}");
    }

    #[test]
    fn a_clock_without_skew_is_exact() {
        let config =
            OscillatorConfig { offset_ns: 0, skew_ppb: 0, wander_ppb: 0, temperature_ppb: 0, temperature_every: None };
        let mut oscillator = Oscillator::new(config, 1);
        assert_eq!(oscillator.read(Time::from_ms(1_234)), Reading(1_234_000_000));
        oscillator.step(-5);
        assert_eq!(oscillator.read(Time::from_ms(2_000)), Reading(1_999_999_995));
    }
}
