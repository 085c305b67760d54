//! The clock that is synchronised: `CLOCK_MONOTONIC_RAW`, which is never slewed or stepped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clocks::{Reading, Skew};

use crate::sys::{KernelClock, clock_ns};

/// The clock of a host.
#[derive(Clone, Debug, Default)]
pub struct HostClock {
    artificial: Option<Arc<ArtificialClock>>,
}

/// A clock with a stated offset and rate relative to `CLOCK_MONOTONIC_RAW`, so that several members of a test on one machine
/// have different clocks.
#[derive(Debug)]
pub struct ArtificialClock {
    /// Reading of `CLOCK_MONOTONIC_RAW` from which on the skew counts.
    start: i64,
    offset: AtomicI64,
    skew: Skew,
}

impl ArtificialClock {
    /// Creates a clock that is `offset_ns` nanoseconds ahead and gains `skew`.
    pub fn new(offset_ns: i64, skew: Skew) -> Arc<Self> {
        Arc::new(Self { start: clock_ns(KernelClock::MonotonicRaw), offset: AtomicI64::new(offset_ns), skew })
    }

    /// Steps the clock.
    pub fn step(&self, ns: i64) {
        self.offset.fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns the reading at a reading of `CLOCK_MONOTONIC_RAW`.
    pub fn at_raw(&self, raw: i64) -> Reading {
        let gained = self.skew.over(raw.wrapping_sub(self.start));
        Reading(raw.wrapping_add(self.offset.load(Ordering::Relaxed)).wrapping_add(gained))
    }
}

impl HostClock {
    /// Creates a clock for tests.
    pub fn artificial(clock: Arc<ArtificialClock>) -> Self {
        Self { artificial: Some(clock) }
    }

    /// Returns the clock's reading at a reading of `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn at_raw(&self, raw: i64) -> Reading {
        self.artificial.as_ref().map_or(Reading(raw), |clock| clock.at_raw(raw))
    }
}

/// Returns the reading of `CLOCK_MONOTONIC_RAW`, in nanoseconds.
#[inline]
pub fn raw_ns() -> i64 {
    clock_ns(KernelClock::MonotonicRaw)
}
