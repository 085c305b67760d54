//! The run's clock: picoseconds since its beginning, by the machine's monotonic clock.

use nix::time::{ClockId, clock_gettime};
use units::Time;

/// Nanoseconds of the machine's monotonic clock. 0 where it cannot be read, which Linux never says of it.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of the machine's time of day: only to translate the kernel's time stamps into the monotonic clock's.
pub(crate) fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

/// Time since a run began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// What the monotonic clock said then, in nanoseconds.
    pub zero_ns: u64,
}

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        Self { zero_ns: monotonic_ns() }
    }

    /// The time now.
    pub fn now(self) -> Time {
        self.at(monotonic_ns())
    }

    /// The run's time when the monotonic clock says `ns`; zero before it began.
    pub fn at(self, ns: u64) -> Time {
        Time::from_ns(ns.saturating_sub(self.zero_ns))
    }
}
