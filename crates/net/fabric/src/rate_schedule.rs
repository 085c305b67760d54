//! Link rate that changes with time: steps, once or repeated.
//!
//! A packet is served by the integral of the rate over time, so its service may last over several steps and over times
//! without any rate. Progress is counted in bits times 10^12, which is bits a second times picoseconds: no division
//! rounds it, and packets that follow each other lose nothing between them.

use std::sync::Arc;

use thiserror::Error;
use units::{Bytes, Rate, Span, Time};

use crate::service::SLOWEST;

/// Maximum length of a schedule, and of its period.
pub const MAX_SCHEDULE: Span = Span::from_s(24 * 3_600);

/// Minimum capacity of a period: it bounds the service time of the largest packet to 44 periods.
pub const MIN_PERIOD_CAPACITY: Bytes = Bytes::new(1_500);

/// Progress of one bit.
const PER_BIT: u128 = 1_000_000_000_000;

/// A rate from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RateStep {
    /// Time since the start of the schedule, or of its period.
    pub at: Span,
    /// Rate from then on: zero, or at least [`SLOWEST`].
    pub rate: Rate,
}

/// Reasons to reject a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum ScheduleError {
    #[error("a schedule of rates needs a first step, at time 0")]
    NoFirstStep,
    #[error("step {index} of the rates, at {at}, is not later than the step before it")]
    NotInOrder { index: usize, at: Span },
    #[error("step {index} of the rates, at {at}, is not before the end of the period, {period}")]
    AfterPeriod { index: usize, at: Span, period: Span },
    #[error("step {index} of the rates has {rate}, neither 0 nor at least {SLOWEST}")]
    RateTooLow { index: usize, rate: Rate },
    #[error("a schedule of rates of {span}, over {MAX_SCHEDULE}")]
    TooLong { span: Span },
    #[error("the last rate is 0 for ever, and the schedule is not repeated")]
    EndsWithout,
    #[error("a period of the schedule of rates carries {bytes}, under {MIN_PERIOD_CAPACITY}")]
    CarriesTooLittle { bytes: Bytes },
}

/// Rate of a link by time. The last rate lasts for ever, or until the period ends and the schedule begins again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RateSchedule {
    steps: Vec<RateStep>,
    /// By step: progress from the start of the schedule, or of its period, to the step.
    before: Vec<u128>,
    /// Period, and progress in it.
    cycle: Option<Cycle>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Cycle {
    period: Span,
    progress: u128,
}

impl RateSchedule {
    /// Creates a schedule from its steps, in order of time. With `period` it is repeated.
    ///
    /// # Errors
    /// If there is no step at time zero, steps are not in order or not within the period, a rate is neither zero nor at
    /// least [`SLOWEST`], the schedule is longer than [`MAX_SCHEDULE`], or packets could wait for ever.
    pub fn new(steps: Vec<RateStep>, period: Option<Span>) -> Result<Self, ScheduleError> {
        if steps.first().is_none_or(|step| step.at != Span::ZERO) {
            return Err(ScheduleError::NoFirstStep);
        }
        for (index, step) in steps.iter().enumerate() {
            if index > 0 && step.at <= steps[index - 1].at {
                return Err(ScheduleError::NotInOrder { index, at: step.at });
            }
            if let Some(period) = period.filter(|&period| step.at >= period) {
                return Err(ScheduleError::AfterPeriod { index, at: step.at, period });
            }
            if !step.rate.is_zero() && step.rate < SLOWEST {
                return Err(ScheduleError::RateTooLow { index, rate: step.rate });
            }
        }
        let last = steps[steps.len() - 1];
        let span = period.unwrap_or(last.at);
        if span > MAX_SCHEDULE {
            return Err(ScheduleError::TooLong { span });
        }
        let mut before = vec![0];
        for pair in steps.windows(2) {
            before.push(before[before.len() - 1] + progress(pair[0].rate, pair[1].at - pair[0].at));
        }
        let cycle = period.map(|period| {
            let progress = before[before.len() - 1] + progress(last.rate, period - last.at);
            Cycle { period, progress }
        });
        match cycle {
            None if last.rate.is_zero() => return Err(ScheduleError::EndsWithout),
            Some(Cycle { progress, .. }) if progress < u128::from(MIN_PERIOD_CAPACITY.get()) * 8 * PER_BIT => {
                let bytes = Bytes::new(u64::try_from(progress / (8 * PER_BIT)).unwrap_or(u64::MAX));
                return Err(ScheduleError::CarriesTooLittle { bytes });
            }
            _ => {}
        }
        Ok(Self { steps, before, cycle })
    }

    /// Returns the highest rate.
    pub fn max_rate(&self) -> Rate {
        self.steps.iter().map(|step| step.rate).max().unwrap_or(Rate::ZERO)
    }

    /// Returns the steps, in order of time.
    pub fn steps(&self) -> &[RateStep] {
        &self.steps
    }

    /// Returns the period, if the schedule is repeated.
    pub fn period(&self) -> Option<Span> {
        self.cycle.map(|cycle| cycle.period)
    }

    /// Returns the progress from the start of the schedule to a time after it.
    fn progress_at(&self, at: Span) -> u128 {
        let (cycles, phase) = match self.cycle {
            None => (0, at),
            Some(Cycle { period, progress }) => {
                let (ps, period) = (at.unsigned_ps(), period.unsigned_ps());
                (u128::from(ps / period) * progress, Span::from_unsigned_ps(ps % period))
            }
        };
        let index = self.steps.partition_point(|step| step.at <= phase) - 1;
        let step = self.steps[index];
        cycles + self.before[index] + progress(step.rate, phase - step.at)
    }

    /// Returns the first time at which a progress over zero is reached, rounded up to a picosecond.
    fn time_of(&self, wanted: u128) -> Span {
        debug_assert!(wanted > 0, "no progress is reached at no certain time");
        let (base_ps, rest) = match self.cycle {
            None => (0, wanted),
            Some(Cycle { period, progress }) => {
                let cycles = (wanted - 1) / progress;
                (cycles * u128::from(period.unsigned_ps()), wanted - cycles * progress)
            }
        };
        // The rate of this step is over zero: progress passes `rest` in it.
        let index = self.before.partition_point(|&before| before < rest) - 1;
        let step = self.steps[index];
        let within = (rest - self.before[index]).div_ceil(u128::from(step.rate.bps()));
        let ps = base_ps + u128::from(step.at.unsigned_ps()) + within;
        Span::from_ps(i64::try_from(ps).unwrap_or(i64::MAX))
    }
}

fn progress(rate: Rate, span: Span) -> u128 {
    u128::from(rate.bps()) * u128::from(span.unsigned_ps())
}

/// Service of a port by a schedule.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledService {
    schedule: Arc<RateSchedule>,
    /// Time at which the schedule begins; none while that is not known.
    start: Option<Time>,
    /// End of the last service, and the exact progress then: packets that follow at once begin with it.
    idle_at: Time,
    progress: u128,
}

impl ScheduledService {
    /// Returns the service of an idle port. The schedule begins at a time to be set.
    pub(crate) fn new(schedule: Arc<RateSchedule>) -> Self {
        Self { schedule, start: None, idle_at: Time::ZERO, progress: 0 }
    }

    /// Begins the schedule.
    pub(crate) fn begin(&mut self, start: Time) {
        self.start = Some(start);
        (self.idle_at, self.progress) = (start, 0);
    }

    /// Serves a packet from `begins` on. Returns the end of its service; none if the schedule has not begun.
    pub(crate) fn serve(&mut self, begins: Time, size: u32) -> Option<Time> {
        let start = self.start?;
        if begins != self.idle_at {
            self.progress = self.schedule.progress_at(begins.saturating_since(start));
        }
        self.progress += u128::from(size.max(1)) * 8 * PER_BIT;
        self.idle_at = start.saturating_add(self.schedule.time_of(self.progress)).max(begins.just_after());
        Some(self.idle_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(at_us: i64, mbps: u64) -> RateStep {
        RateStep { at: Span::from_us(at_us), rate: Rate::from_mbps(mbps) }
    }

    fn service(steps: &[RateStep], period_us: Option<i64>) -> ScheduledService {
        let schedule = RateSchedule::new(steps.to_vec(), period_us.map(Span::from_us)).unwrap();
        let mut service = ScheduledService::new(Arc::new(schedule));
        assert_eq!(service.serve(Time::from_us(1), 1), None);
        service.begin(Time::ZERO);
        service
    }

    /// 1,500 bytes are 12,000 bits: 12 us at 1 Gb/s, 120 us at 100 Mb/s.
    #[test]
    fn services_span_steps_and_pauses() {
        let mut link = service(&[step(0, 1_000), step(30, 0), step(100, 100)], None);
        let ends = [0, 12, 24, 160].map(|us| link.serve(Time::from_us(us), 1_500).unwrap());
        // The third packet is half sent when the rate is 0, and the rest of it takes ten times as long.
        assert_eq!(ends, [12, 24, 160, 280].map(Time::from_us));
        // 36 Mb/s for 1 ms, then none for 9 ms: three packets in each period, to the picosecond.
        let mut link = service(&[step(0, 36), step(1_000, 0)], Some(10_000));
        let mut now = Time::ZERO;
        for nth in 1..=3_000u64 {
            now = link.serve(now, 1_500).unwrap();
            let (periods, within) = ((nth - 1) / 3, (nth - 1) % 3 + 1);
            let expected = periods * 10_000_000_000 + (within * 1_000_000_000).div_ceil(3);
            assert_eq!(now.ps(), expected, "packet {nth}");
        }
    }

    #[test]
    fn schedules_that_never_serve_are_rejected() {
        let of = |steps: &[RateStep], period: Option<i64>| RateSchedule::new(steps.to_vec(), period.map(Span::from_us));
        assert_eq!(of(&[], None).unwrap_err(), ScheduleError::NoFirstStep);
        assert_eq!(of(&[step(1, 1)], None).unwrap_err(), ScheduleError::NoFirstStep);
        let twice = ScheduleError::NotInOrder { index: 2, at: Span::from_us(5) };
        assert_eq!(of(&[step(0, 1), step(5, 2), step(5, 3)], None).unwrap_err(), twice);
        let late = ScheduleError::AfterPeriod { index: 1, at: Span::from_us(5), period: Span::from_us(5) };
        assert_eq!(of(&[step(0, 1), step(5, 2)], Some(5)).unwrap_err(), late);
        assert_eq!(of(&[step(0, 1), step(5, 0)], None).unwrap_err(), ScheduleError::EndsWithout);
        let low = RateStep { at: Span::ZERO, rate: Rate::from_bps(999_999) };
        assert_eq!(of(&[low], None).unwrap_err(), ScheduleError::RateTooLow { index: 0, rate: low.rate });
        // 1 Mb/s for 11,999 us are 1,499 bytes.
        let little = ScheduleError::CarriesTooLittle { bytes: Bytes::new(1_499) };
        assert_eq!(of(&[step(0, 1), step(11_999, 0)], Some(20_000)).unwrap_err(), little);
        let day = MAX_SCHEDULE.ps() / 1_000_000;
        assert!(of(&[step(0, 1)], Some(day)).is_ok());
        let span = MAX_SCHEDULE + Span::from_us(1);
        assert_eq!(of(&[step(0, 1)], Some(day + 1)).unwrap_err(), ScheduleError::TooLong { span });
        assert_eq!(of(&[step(0, 1), step(day + 1, 2)], None).unwrap_err(), ScheduleError::TooLong { span });
        // The worst that is accepted stays in range: the largest packet, 1,500 bytes a day.
        let mut slowest = service(&[step(0, 1), step(12_000, 0)], Some(day));
        let end = slowest.serve(Time::ZERO, 65_535).unwrap();
        assert!(end.is_set() && end > Time::ZERO + MAX_SCHEDULE.times(43), "{end}");
    }

    proptest! {
        /// Progress and time are inverse to each other, and bytes never exceed the integral of the rate.
        #[test]
        fn services_follow_the_integral(
            rates in proptest::collection::vec(0..3u64, 1..6),
            sizes in proptest::collection::vec(1..9_000u32, 1..60),
            gaps in proptest::collection::vec(0..400u64, 1..60),
        ) {
            let steps: Vec<RateStep> =
                (0..).zip(rates.iter().chain([&2])).map(|(index, &rate)| step(index * 50, rate * 300)).collect();
            let period = 50 * steps.len() as i64;
            let mut link = service(&steps, Some(period));
            let schedule = Arc::clone(&link.schedule);
            let (mut now, mut busy_from, mut bits) = (Time::ZERO, Time::ZERO, 0u128);
            for (&size, &gap) in sizes.iter().zip(gaps.iter().cycle()) {
                if gap > 200 {
                    now += Span::from_ps(gap as i64 * 100_003);
                    (busy_from, bits) = (now, 0);
                }
                now = link.serve(now, size).unwrap();
                bits += u128::from(size) * 8;
                let integral = |at: Time| schedule.progress_at(at.since(Time::ZERO));
                let carried = integral(now) - integral(busy_from);
                prop_assert!(carried >= bits * PER_BIT);
                // One picosecond before, the last bit was not sent.
                prop_assert!(integral(now.saturating_sub(Span::from_ps(1))) - integral(busy_from) < bits * PER_BIT);
            }
        }
    }
}
