//! The time since an endpoint was made.

use std::time::{Duration, Instant};

use units::Time;

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

    /// The time, in whole nanoseconds, which are enough for 213 days in picoseconds.
    pub(crate) fn now(self) -> Time {
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX / 1_000))
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
