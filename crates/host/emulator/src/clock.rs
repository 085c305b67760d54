//! The router's time: the monotonic clock since the router's start.

use units::Time;

use crate::sys;

/// A clock.
pub(crate) trait Now {
    /// Returns the current time.
    fn now(&self) -> Time;
}

impl Now for Clock {
    fn now(&self) -> Time {
        self.now()
    }
}

/// A clock with [`Time::ZERO`] at its start. Copies agree; any thread may read one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The system's monotonic clock at time zero, in nanoseconds.
    pub monotonic_ns: u64,
    /// Nanoseconds between 1970 and time zero.
    pub realtime_ns: u64,
}

impl Clock {
    /// Starts one now.
    pub fn start() -> Self {
        Self { monotonic_ns: sys::monotonic_ns(), realtime_ns: sys::realtime_ns() }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        Time::from_ns(sys::monotonic_ns().saturating_sub(self.monotonic_ns))
    }

    /// Returns a clock with time zero at `time` of this one.
    #[must_use]
    pub(crate) fn starting_at(self, time: Time) -> Self {
        Self { monotonic_ns: self.monotonic_ns + time.ns(), realtime_ns: self.realtime_ns + time.ns() }
    }

    /// Converts a kernel time stamp: `ns` nanoseconds since 1970 by the system's time of day.
    pub(crate) fn at_realtime(&self, ns: u64) -> Time {
        // By the present difference of the clocks, because the time of day may have been set since the start.
        let ago = sys::realtime_ns().saturating_sub(ns);
        Time::from_ns(sys::monotonic_ns().saturating_sub(self.monotonic_ns).saturating_sub(ago))
    }
}

/// Nanoseconds from `due` to `now`; 0 if it is not due yet.
pub(crate) fn late_ns(now: Time, due: Time) -> u64 {
    now.saturating_since(due).ns() as u64
}
