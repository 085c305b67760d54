//! ACK aggregation: the excess of acknowledged bytes over BBR's bandwidth estimate. A receiver, a NIC or a wireless
//! link may delay acknowledgements and send many at once. Between two bursts a window of two BDPs can run dry, so it is
//! raised by the excess of a burst.
//!
//! Linux's `tcp_bbr.c` has it (`bbr_update_ack_aggregation`, `bbr_ack_aggregation_cwnd`), the draft of version 1 does
//! not. Constants are Linux's.

use units::{Bytes, Rate, Span, Time};

use super::packets;
use crate::Ack;

/// Cap on the increase of the window, as time at the estimated bandwidth.
const MAX: Span = Span::from_ms(100);
/// Number of packets after which an epoch ends: it may be old, and count by an outdated bandwidth.
const MAX_PACKETS: u64 = 1 << 20;

/// Bytes acknowledged in excess of the bandwidth estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Aggregation {
    began: Time,    // of an epoch, in which more was acknowledged than was expected
    acked: Bytes,   // in it
    max_extra: u32, // packets beyond those expected, maximum of these five rounds
    before: u32,    // the same in the five rounds before
}

impl Aggregation {
    pub(super) const fn new() -> Self {
        Self { began: Time::ZERO, acked: Bytes::ZERO, max_extra: 0, before: 0 }
    }

    /// Ends five rounds. The maximum then covers the last five to ten rounds.
    pub(super) fn end_rounds(&mut self) {
        (self.before, self.max_extra) = (self.max_extra, 0);
    }

    /// Begins a new epoch.
    pub(super) fn restart(&mut self, now: Time) {
        (self.began, self.acked) = (now, Bytes::ZERO);
    }

    /// Counts the bytes acknowledged by `ack`, under a window of `window` bytes.
    pub(super) fn observe(&mut self, ack: &Ack, bandwidth: Rate, window: Bytes, mss: Bytes) {
        let mut expected = bandwidth.bytes_in(ack.now.since(self.began));
        let acked = self.acked.saturating_add(ack.acked);
        if self.acked <= expected || acked >= mss.times(MAX_PACKETS) {
            (self.began, self.acked, expected) = (ack.now, Bytes::ZERO, Bytes::ZERO);
        }
        self.acked = self.acked.saturating_add(ack.acked);
        let extra = self.acked.saturating_sub(expected).min(window);
        self.max_extra = self.max_extra.max(packets(extra, mss));
    }

    /// Converts the counts after a change of the packet size.
    pub(super) fn count_in(&mut self, before: Bytes, mss: Bytes) {
        for count in [&mut self.max_extra, &mut self.before] {
            *count = packets(before.times(u64::from(*count)), mss);
        }
    }

    /// Returns the amount by which the window is raised.
    pub(super) fn extra(&self, bandwidth: Rate, mss: Bytes) -> Bytes {
        mss.times(self.max_extra.max(self.before).into()).min(bandwidth.bytes_in(MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};

    const MSS: Bytes = PATH.mss;
    /// A packet of 4,096 B a microsecond.
    const RATE: Rate = Rate::from_bps(4_096 * 8_000_000);
    const WIDE: Bytes = MSS.times(1_000);

    fn ack_packets(aggregation: &mut Aggregation, us: u64, packets: u64) {
        aggregation.observe(&Ack { acked: MSS.times(packets), ..ack(&PATH, us) }, RATE, WIDE, MSS);
    }

    #[test]
    fn a_burst_counts_in_excess_of_the_expected_bytes() {
        let mut aggregation = Aggregation::new();
        ack_packets(&mut aggregation, 0, 8);
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(8));
        // 8 packets are expected in 8 us: the epoch is over, and the next one begins with this burst.
        ack_packets(&mut aggregation, 8, 8);
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(8));
        // 16 were acknowledged after 5 us, with 5 expected.
        ack_packets(&mut aggregation, 13, 8);
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(11));
        // After 16 us another begins.
        ack_packets(&mut aggregation, 24, 1);
        assert_eq!(aggregation, Aggregation { began: ack(&PATH, 24).now, acked: MSS, max_extra: 11, before: 0 });
    }

    #[test]
    fn the_maximum_covers_five_to_ten_rounds() {
        let mut aggregation = Aggregation::new();
        ack_packets(&mut aggregation, 0, 8);
        aggregation.end_rounds();
        ack_packets(&mut aggregation, 100, 3);
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(8));
        aggregation.end_rounds();
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(3));
        aggregation.end_rounds();
        assert_eq!(aggregation.extra(RATE, MSS), Bytes::ZERO);
    }

    #[test]
    fn neither_the_window_nor_100_ms_are_exceeded() {
        let mut aggregation = Aggregation::new();
        let bunch = Ack { acked: MSS.times(50), ..ack(&PATH, 0) };
        aggregation.observe(&bunch, RATE, MSS.times(20), MSS);
        assert_eq!(aggregation.extra(RATE, MSS), MSS.times(20));
        // 1 Mb/s is 12,500 B in 100 ms.
        assert_eq!(aggregation.extra(Rate::from_mbps(1), MSS), Bytes::new(12_500));
    }

    #[test]
    fn the_excess_stays_in_packets_of_the_new_size() {
        let mut aggregation = Aggregation::new();
        ack_packets(&mut aggregation, 0, 8);
        aggregation.count_in(MSS, Bytes::new(1_000));
        // 32,768 B.
        assert_eq!(aggregation.extra(RATE, Bytes::new(1_000)), Bytes::new(33_000));
    }

    #[test]
    fn an_old_epoch_ends() {
        let mut aggregation = Aggregation::new();
        ack_packets(&mut aggregation, 0, MAX_PACKETS - 2);
        ack_packets(&mut aggregation, 1, 1);
        assert_eq!(aggregation.began, ack(&PATH, 0).now);
        ack_packets(&mut aggregation, 2, 1);
        assert_eq!((aggregation.began, aggregation.acked), (ack(&PATH, 2).now, MSS));
    }
}
