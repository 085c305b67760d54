//! Epochs: feedback between two evaluations of marks, at the same interval for flows of all round trips. Uno, SC 2025, §4.1.1
//! and Algorithm 1.

use units::{Bytes, Frac, Span, Time};

use crate::Ack;
use crate::round::marked_fraction;

/// Bytes acknowledged and marked since the last epoch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Epoch {
    ends: Time,
    acked: Bytes,
    marked: Bytes,
}

impl Epoch {
    /// Begins an epoch that ends with a packet sent at `ends` or later; never, if that is [`Time::NEVER`].
    pub(crate) const fn begin(ends: Time) -> Self {
        Self { ends, acked: Bytes::ZERO, marked: Bytes::ZERO }
    }

    /// Returns the end of the epoch.
    pub(crate) const fn ends(&self) -> Time {
        self.ends
    }

    /// Moves the end to a packet sent at `ends` or later; the counts stay.
    pub(crate) const fn set_end(&mut self, ends: Time) {
        self.ends = ends;
    }

    /// Counts payload with feedback, and its marked part.
    pub(crate) const fn count(&mut self, acked: Bytes, marked: Bytes) {
        self.acked = self.acked.saturating_add(acked);
        self.marked = self.marked.saturating_add(marked);
    }

    /// Returns whether the acknowledged packet ends the epoch.
    pub(crate) fn is_over(&self, ack: &Ack) -> bool {
        ack.sent_at >= self.ends
    }

    /// Returns whether any payload was marked.
    pub(crate) const fn saw_marks(&self) -> bool {
        !self.marked.is_zero()
    }

    /// Returns the marked fraction of the payload with feedback, 0 to 1.
    pub(crate) fn marked_fraction(&self) -> Frac {
        marked_fraction(self.marked, self.acked)
    }

    /// Returns the epoch with which a sender goes on after a pause with nothing in flight. It is this one if its feedback is of
    /// half of `window` or more: the first packet after the pause then ends it. Less does not show how much the path can
    /// carry (RFC 7661 §4.3 has the same share), as that of a handshake: then an epoch begins with the next acknowledgement.
    pub(crate) fn resume(self, window: Bytes) -> Self {
        if self.acked.saturating_add(self.acked) >= window { self } else { Self::begin(Time::NEVER) }
    }

    /// The epoch after the one that `ack` ends: `period` after its end, but none is shorter than that after the flow was silent.
    pub(crate) fn next(&self, ack: &Ack, period: Span) -> Self {
        let next = self.ends + period;
        Self::begin(if next > ack.sent_at { next } else { ack.sent_at + period })
    }
}
