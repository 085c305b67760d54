//! Sample times of series.

use units::{Span, Time};

/// Sample times at equal distances: each is due once something happens after it.
pub(crate) struct Ticks {
    interval: Span,
    next_at: Time,
}

impl Ticks {
    pub(crate) fn new(interval: Span, from: Time) -> Self {
        let first = |step: u64| Time::from_ps(from.ps().div_ceil(step) * step);
        let next_at = if interval > Span::ZERO { first(interval.unsigned_ps()) } else { Time::NEVER };
        Self { interval, next_at }
    }

    /// The next sample time.
    #[inline(always)]
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    /// Returns whether a sample time before `now` has passed.
    #[inline(always)]
    pub(crate) fn are_due(&self, now: Time) -> bool {
        self.next_at < now
    }

    /// The next sample time before `now`, if one has passed.
    #[inline]
    pub(crate) fn due(&mut self, now: Time) -> Option<Time> {
        if self.next_at >= now {
            return None;
        }
        let due = self.next_at;
        self.next_at += self.interval;
        Some(due)
    }
}
