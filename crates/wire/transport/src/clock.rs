//! The time since an endpoint was made.

use std::time::{Duration, Instant};

use units::Time;

/// The end of an endpoint's life, after 100 days: spans are signed picoseconds in 64 bits, which are 106 days, and
/// timers look ahead.
pub(crate) const END: Time = Time::from_ms(100 * 86_400_000);

/// The reason sent to its peers then.
pub(crate) const AGE_REASON: &str = "the endpoint has run for 100 days, which is the most";

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

    /// Creates the clock of an endpoint of this age.
    #[cfg(test)]
    pub(crate) fn of_age(age: Duration) -> Self {
        let start = Self::new().start.checked_sub(age);
        Self { start: start.expect("a clock may have begun before the machine") }
    }

    /// Returns the time, in full nanoseconds. It stops at the maximum.
    pub(crate) fn now(self) -> Time {
        const MAX: u64 = u64::MAX / 1_000 - 1;
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).map_or(MAX, |ns| ns.min(MAX)))
    }

    /// Returns the time until then; none if that is never.
    pub(crate) fn until(self, then: Time) -> Option<Duration> {
        then.is_set().then(|| {
            let wait = then.saturating_since(self.now()).unsigned_ps();
            // A wait that is rounded down would be repeated at once.
            Duration::from_nanos(wait.div_ceil(1_000))
        })
    }
}
