//! Episodes of loss: one response to all losses that one congestion event caused.

use units::{Frac, Time};

use crate::{Loss, LossCause, SlowStart, Window};

/// Tracks the losses to which a law has already responded. A packet sent before the last response carries no information
/// about the state after it (RFC 6582 §3.2 keeps a sequence number for this; a send time also holds under reordering).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct RecoveryPeriod {
    responded_at: Time,
    collapsed_at: Time,
}

/// Response of a law to a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossResponse {
    /// No response: this loss belongs to an episode that already had one.
    Ignore,
    /// A cut: the first loss of an episode.
    Cut,
    /// A collapse: a timeout that begins an episode.
    Collapse,
    /// A collapse of a window that was already cut for the same episode: its threshold stays.
    CollapseAgain,
}

impl RecoveryPeriod {
    /// No loss yet.
    pub const fn new() -> Self {
        Self { responded_at: Time::ZERO, collapsed_at: Time::ZERO }
    }

    /// Returns the response to `loss`, and records it as done.
    pub fn respond(&mut self, loss: &Loss) -> LossResponse {
        let first = self.begins(loss.sent_at, loss.now);
        if loss.cause != LossCause::Timeout {
            return if first { LossResponse::Cut } else { LossResponse::Ignore };
        }
        if loss.sent_at < self.collapsed_at {
            return LossResponse::Ignore;
        }
        self.collapsed_at = loss.now;
        if first { LossResponse::Collapse } else { LossResponse::CollapseAgain }
    }

    /// Returns whether a packet sent at `sent_at` met congestion after the last response; if so, records a response at `now`.
    pub fn begins(&mut self, sent_at: Time, now: Time) -> bool {
        let first = sent_at >= self.responded_at;
        if first {
            self.responded_at = now;
        }
        first
    }
}

impl LossResponse {
    /// Applies TCP's response (RFC 5681 §3.1 and §3.2): a cut leaves `kept` of the window and ends slow start; a collapse
    /// stores `kept` of the window as the threshold of the following slow start. Returns whether it acted.
    pub fn apply(self, window: &mut Window, slow_start: &mut SlowStart, kept: Frac) -> bool {
        match self {
            Self::Ignore => return false,
            Self::Cut => {
                slow_start.lower(window, kept);
                window.set(slow_start.threshold().min(window.bytes()));
            }
            Self::Collapse => {
                slow_start.lower(window, kept);
                window.collapse();
            }
            Self::CollapseAgain => window.collapse(),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::loss;
    use units::Bytes;

    #[test]
    fn a_cut_keeps_its_share_and_a_collapse_sets_ssthresh() {
        let mss = Bytes::new(1_000);
        let mut window = Window::new(mss.times(20), mss, Window::LIMIT);
        let mut slow_start = SlowStart::new();
        assert!(LossResponse::Cut.apply(&mut window, &mut slow_start, Frac::HALF));
        assert_eq!((window.bytes(), slow_start.threshold()), (mss.times(10), mss.times(10)));
        assert!(LossResponse::Collapse.apply(&mut window, &mut slow_start, Frac::HALF));
        assert_eq!((window.bytes(), slow_start.threshold()), (mss, mss.times(5)));
        assert!(LossResponse::CollapseAgain.apply(&mut window, &mut slow_start, Frac::HALF));
        assert_eq!((window.bytes(), slow_start.threshold()), (mss, mss.times(5)));
        assert!(!LossResponse::Ignore.apply(&mut window, &mut slow_start, Frac::HALF));
    }

    #[test]
    fn losses_of_one_flight_are_one_episode() {
        let mut episode = RecoveryPeriod::new();
        assert_eq!(episode.respond(&loss(10, 20, LossCause::Reordered)), LossResponse::Cut);
        assert_eq!(episode.respond(&loss(15, 25, LossCause::Nack)), LossResponse::Ignore);
        assert_eq!(episode.respond(&loss(20, 30, LossCause::Reordered)), LossResponse::Cut);
    }

    #[test]
    fn timeouts_of_one_flight_collapse_once() {
        let mut episode = RecoveryPeriod::new();
        assert_eq!(episode.respond(&loss(10, 100, LossCause::Timeout)), LossResponse::Collapse);
        assert_eq!(episode.respond(&loss(11, 101, LossCause::Timeout)), LossResponse::Ignore);
        assert_eq!(episode.respond(&loss(101, 200, LossCause::Timeout)), LossResponse::Collapse);
    }

    #[test]
    fn a_timeout_after_a_cut_still_collapses() {
        let mut episode = RecoveryPeriod::new();
        assert_eq!(episode.respond(&loss(10, 20, LossCause::Reordered)), LossResponse::Cut);
        assert_eq!(episode.respond(&loss(12, 100, LossCause::Timeout)), LossResponse::CollapseAgain);
        assert_eq!(episode.respond(&loss(13, 101, LossCause::Timeout)), LossResponse::Ignore);
    }
}
