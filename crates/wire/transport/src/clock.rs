//! The time since an endpoint was made.

use std::time::{Duration, Instant};

use units::Time;

/// When an endpoint ends, after 100 days: spans are picoseconds in 64 bits with a sign, which are 106 days, and timers look ahead.
pub(crate) const END: Time = Time::from_ms(100 * 86_400_000);

/// What it says to its peers then.
pub(crate) const LAST_WORD: &str = "the endpoint has run for 100 days, which is the most";

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real packets leave by the real time")]
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Of an endpoint that was made so long ago.
    #[cfg(test)]
    pub(crate) fn of_age(age: Duration) -> Self {
        let start = Self::new().start.checked_sub(age);
        Self { start: start.expect("a clock may have begun before the machine") }
    }

    /// The time, in whole nanoseconds. It stands still at the last that there is.
    pub(crate) fn now(self) -> Time {
        const MOST: u64 = u64::MAX / 1_000 - 1;
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).map_or(MOST, |ns| ns.min(MOST)))
    }

    /// How long it is until then; none if that is never.
    pub(crate) fn until(self, then: Time) -> Option<Duration> {
        then.is_set().then(|| {
            let wait = then.saturating_since(self.now()).unsigned_ps();
            // A wait that is cut short would be waited for again at once.
            Duration::from_nanos(wait.div_ceil(1_000))
        })
    }
}
