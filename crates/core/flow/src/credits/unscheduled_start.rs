//! Early start: data at line rate for the first round trip, before any credit can arrive (Aeolus: Hu et al., SIGCOMM 2020;
//! `FlashPass` §III-C). This data is dropped before scheduled data, and a probe after the last packet detects which packets
//! were dropped.

use units::{Bytes, Time};

use super::CreditConfig;

#[derive(Debug)]
pub(super) struct UnscheduledStart {
    until: Time,
    next: Time,
    has_sent: bool,
}

impl UnscheduledStart {
    pub(super) fn new(now: Time, config: &CreditConfig) -> Self {
        Self { until: now + config.base_rtt, next: now, has_sent: false }
    }

    /// Returns the time at which the next packet may be sent without a credit.
    pub(super) fn next(&self) -> Time {
        if self.next < self.until { self.next } else { Time::NEVER }
    }

    /// Records the sending of a packet of `size` bytes on the wire.
    pub(super) fn on_sent(&mut self, now: Time, size: u32, config: &CreditConfig) {
        self.has_sent = true;
        self.next = now + config.tick.tx_time(config.line_rate, Bytes::new(size.into()));
    }

    /// Ends the early start: a credit has arrived.
    pub(super) fn end(&mut self) {
        self.until = Time::ZERO;
    }

    /// Returns the time at which the early start ends: after the first round trip, or `now` if that is
    /// over or no packet waits.
    pub(super) fn end_time(&self, waiting: u32, now: Time) -> Time {
        let end_time = if self.next < self.until { self.until } else { now };
        if waiting > 0 { end_time } else { now }
    }

    pub(super) fn has_sent(&self) -> bool {
        self.has_sent
    }
}
