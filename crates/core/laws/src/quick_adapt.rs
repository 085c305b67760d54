//! Byte count of Quick Adapt: the bytes acknowledged in a period, and the pause after Quick Adapt acts. Uno, SC 2025, §4.1
//! and Algorithm 1, `onQA`.

use units::{Bytes, Span, Time};

use crate::Ack;

/// Bytes acknowledged and congestion seen in the current period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct QuickAdapt {
    from: Time, // start of the period; in a pause by packet, the time of the last Quick Adapt; in a pause by the clock, its end
    acked: Bytes,
    congested: bool, // something was marked or lost
    app_limited: bool,
    awaits_packet: bool, // a pause by packet: no packet sent at `from` or later is acknowledged yet
}

/// A period that has ended, in which no window was left unused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EndedPeriod {
    /// Bytes acknowledged in it.
    pub(crate) acked: Bytes,
    /// True if a packet was marked or lost in it.
    pub(crate) congested: bool,
}

impl QuickAdapt {
    /// Begins a period at `from`, with a pause before it.
    pub(crate) const fn begin(from: Time) -> Self {
        Self { from, acked: Bytes::ZERO, congested: false, app_limited: false, awaits_packet: false }
    }

    /// Begins a pause after Quick Adapt acted, until a packet sent since is acknowledged.
    pub(crate) const fn pause(acted_at: Time) -> Self {
        Self { awaits_packet: true, ..Self::begin(acted_at) }
    }

    /// Returns whether the first period has begun, by [`QuickAdapt::start`] or with a time.
    pub(crate) const fn has_started(&self) -> bool {
        self.from.is_set()
    }

    /// Begins the first period; earlier losses still count.
    pub(crate) const fn start(&mut self, from: Time) {
        self.from = from;
    }

    /// Returns whether it is a pause.
    pub(crate) fn pauses(&self, now: Time) -> bool {
        self.awaits_packet || now < self.from
    }

    /// Returns the bytes acknowledged so far.
    pub(crate) const fn acked(&self) -> Bytes {
        self.acked
    }

    /// Records a loss.
    pub(crate) const fn lost(&mut self) {
        self.congested = true;
    }

    /// Begins a period, if `ack` ends a pause. Returns whether it did.
    pub(crate) fn end_pause(&mut self, ack: &Ack) -> bool {
        let ends = self.awaits_packet && ack.sent_at >= self.from;
        if ends {
            *self = Self::begin(ack.now);
        }
        ends
    }

    /// Counts `ack`, unless in a pause. If `period` ended before it, the next one begins with it, and the ended period is
    /// returned if it can be evaluated: not for a flow near its end or with little to send.
    pub(crate) fn count(&mut self, ack: &Ack, period: Span) -> Option<EndedPeriod> {
        if self.pauses(ack.now) {
            return None;
        }
        let mut ended = None;
        if ack.now > self.from + period {
            if !self.app_limited && !ack.app_limited {
                ended = Some(EndedPeriod { acked: self.acked, congested: self.congested });
            }
            *self = Self::begin(ack.now);
        }
        self.acked = self.acked.saturating_add(ack.acked);
        self.congested |= !ack.marked.is_zero();
        self.app_limited |= ack.app_limited;
        ended
    }
}
