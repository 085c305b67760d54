//! Congestion window validation: a host's reports to a law on a window that the sender has not used.
//!
//! RFC 7661, which obsoletes RFC 2861, and the slow part of RFC 2861 as Linux has it (`tcp_cwnd_application_limited` in
//! `net/ipv4/tcp_output.c`). This module does the arithmetic; the host decides when to report, and measures pipeACK,
//! the maximum acknowledged in a recent round trip (§4.2). Both rules also require that an unused window does not grow:
//! a host states this with each acknowledgement ([`Ack::app_limited`](crate::Ack::app_limited)).
//!
//! Each function returns the [`Notification::Unused`] for a law with the present window `window`, or none if nothing changes.
//! The initial window is the one permitted by the law when the flow began.

use units::Bytes;

use crate::Notification;

/// Returns whether the sender uses enough of its window for the window to grow (RFC 7661 §4.3): `pipeACK >= cwnd / 2`.
/// Before the first sample of pipeACK a window is valid.
pub const fn is_valid(window: Bytes, pipe_ack: Option<Bytes>) -> bool {
    match pipe_ack {
        Some(pipe_ack) => pipe_ack.get() >= window.get() / 2,
        None => true,
    }
}

/// Prepares for the first loss of an episode (or the first mark, for a law that cuts on marks) in the non-validated phase:
/// the law cuts the used window, `max(pipeACK, LossFlightSize)` (RFC 7661 §4.4.1, which then halves it). `flight` is the
/// number of bytes in flight, including the lost. Not called before a timeout, which collapses any window.
pub fn before_loss(window: Bytes, pipe_ack: Bytes, flight: Bytes) -> Option<Notification<'static>> {
    smaller(window, pipe_ack.max(flight), Bytes::ZERO)
}

/// After the recovery from that loss: `cwnd = (max(pipeACK, LossFlightSize) - R) / 2` (RFC 7661 §4.4.1), with both as they
/// were before it. `resent` (R) is the number of bytes sent again.
pub fn after_recovery(window: Bytes, pipe_ack: Bytes, flight: Bytes, resent: Bytes) -> Option<Notification<'static>> {
    smaller(window, pipe_ack.max(flight).saturating_sub(resent).ratio(1, 2), Bytes::ZERO)
}

/// After each non-validated period, of five minutes, in the non-validated phase (RFC 7661 §4.4.3):
/// `ssthresh = max(ssthresh, 3 cwnd / 4)`, `cwnd = max(cwnd / 2, IW)`.
pub fn after_period(window: Bytes, initial: Bytes) -> Option<Notification<'static>> {
    smaller(window, window.ratio(1, 2).max(initial), window.ratio(3, 4))
}

/// Reduces an underused window after a retransmission timeout as Linux does, if the window was never full, `used` was
/// the maximum in flight, and no recovery is in progress: `ssthresh = max(ssthresh, 3 cwnd / 4)`,
/// `cwnd = (cwnd + max(used, IW)) / 2`.
pub fn after_timeout(window: Bytes, used: Bytes, initial: Bytes) -> Option<Notification<'static>> {
    smaller(window, window.saturating_add(used.max(initial)).ratio(1, 2), window.ratio(3, 4))
}

fn smaller(before: Bytes, window: Bytes, ssthresh: Bytes) -> Option<Notification<'static>> {
    (window < before).then_some(Notification::Unused { window, ssthresh })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, loss};
    use crate::{ControlLaw, Cubic, LossCause, NewReno, cubic, newreno};

    const MSS: Bytes = PATH.mss;
    const INITIAL: Bytes = MSS.times(10);

    fn law(packets: u64) -> NewReno {
        NewReno::new(&PATH, newreno::Params { initial_window: MSS.times(packets), ..newreno::Params::for_path(&PATH) })
    }

    /// The law's window and threshold after that, in packets.
    fn notify(law: &mut impl ControlLaw, notification: Option<Notification>) -> (u64, u64) {
        if let Some(notification) = notification {
            law.on_notification(&notification);
        }
        let packets = |bytes: Bytes| bytes.get() / MSS.get();
        (packets(law.send_limits().window), law.ssthresh().map_or(0, packets))
    }

    #[test]
    fn a_window_is_valid_if_half_of_it_is_used() {
        let window = MSS.times(40);
        assert!(is_valid(window, None) && is_valid(window, Some(MSS.times(20))));
        assert!(!is_valid(window, Some(MSS.times(20) - Bytes::new(1))));
    }

    /// A window of 80 packets is cut to 40, with a threshold of 40. Of these, 12 are used.
    #[test]
    fn every_period_halves_an_unused_window() {
        let mut law = law(80);
        law.on_loss(&loss(0, 1, LossCause::Reordered));
        let mut period = || {
            let window = law.send_limits().window;
            notify(&mut law, after_period(window, INITIAL))
        };
        // The threshold is over three quarters of 40 already.
        assert_eq!([period(), period(), period()], [(20, 40), (10, 40), (10, 40)]);
        let mut law = self::law(40);
        law.on_notification(&Notification::Remembered { ssthresh: MSS.times(8) });
        assert_eq!(notify(&mut law, after_period(MSS.times(40), INITIAL)), (20, 30));
        assert!(after_period(INITIAL, INITIAL).is_none());
    }

    #[test]
    fn a_timeout_without_a_full_window_halves_the_unused_part() {
        let mut law = law(40);
        law.on_notification(&Notification::Remembered { ssthresh: MSS.times(20) });
        // (40 + 16) / 2, and three quarters of 40; then (28 + 10) / 2, because 10 is the initial window.
        assert_eq!(notify(&mut law, after_timeout(MSS.times(40), MSS.times(16), INITIAL)), (28, 30));
        assert_eq!(notify(&mut law, after_timeout(MSS.times(28), MSS.times(2), INITIAL)), (19, 30));
        assert!(after_timeout(INITIAL, MSS, INITIAL).is_none());
        // The first slow start continues.
        let mut first = self::law(40);
        assert_eq!(notify(&mut first, after_timeout(MSS.times(40), MSS.times(16), INITIAL)), (28, 0));
    }

    /// A loss with 12 of 40 packets used and 14 in flight.
    #[test]
    fn a_loss_in_an_unused_window_cuts_the_used_amount() {
        let (pipe_ack, flight) = (MSS.times(12), MSS.times(14));
        let mut law = law(40);
        assert_eq!(notify(&mut law, before_loss(MSS.times(40), pipe_ack, flight)), (14, 0));
        law.on_loss(&loss(0, 1, LossCause::Reordered));
        assert_eq!(notify(&mut law, None), (7, 7));
        // Two packets were sent again.
        assert_eq!(notify(&mut law, after_recovery(MSS.times(7), pipe_ack, flight, MSS.times(2))), (6, 7));
        assert!(before_loss(MSS.times(12), pipe_ack, Bytes::ZERO).is_none());
    }

    /// Cubic's next maximum is also the used window.
    #[test]
    fn cubic_takes_the_used_amount_as_w_max() {
        let params = cubic::Params { initial_window: MSS.times(40), ..cubic::Params::for_path(&PATH) };
        let mut law = Cubic::new(&PATH, params);
        notify(&mut law, before_loss(MSS.times(40), MSS.times(20), Bytes::ZERO));
        law.on_loss(&loss(0, 1, LossCause::Reordered));
        let mut w_max = 0;
        law.trace(&mut |name, value| {
            if name == "w_max_bytes" {
                w_max = value;
            }
        });
        assert_eq!((notify(&mut law, None).0, w_max as u64), (13, MSS.times(20).get()));
    }
}
