//! `HyStart` as Linux has it: slow start ends when an ACK train is as long as the round trip, or when round trips grow.
//!
//! Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011, as in `hystart_update` and
//! `hystart_ack_delay` of `net/ipv4/tcp_cubic.c`, Linux 5.5 and later. Before 5.5 the clock counted milliseconds, and
//! there was no allowance for segments. Left out: Linux ignores round trips in the first second of a curve, which
//! matters only where slow start follows idle time. RFC 9406's `HyStart++` is another algorithm, in `hystart`.

use units::{Bytes, Rate, Span, Time};

use crate::{Ack, Window};

/// Window in packets below which nothing ends slow start (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// Maximum gap between the acknowledgements of one train (`hystart_ack_delta_us`).
const ACK_DELTA: Span = Span::from_us(2_000);
/// RTT samples of a round before it is evaluated (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the growth that ends slow start, which is an eighth of the least round trip (`HYSTART_DELAY_MIN`, `_MAX`).
const DELAY_MIN: Span = Span::from_ms(4);
const DELAY_MAX: Span = Span::from_ms(16);
/// Allowance by which a train may exceed the path, because senders and receivers batch packets: four segments of the
/// largest size (`sk_gso_max_size`) at the pace of slow start, at most a millisecond.
const LARGEST_SEGMENTS: Bytes = Bytes::new(4 * 65_536);
const MAX_ALLOWED: Span = Span::from_ms(1);

/// Enabled detectors (`hystart_detect`), and whether the flow is paced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detect {
    pub(crate) train: bool,
    pub(crate) delay: bool,
    pub(crate) paced: bool,
}

/// Detector state: RTT samples and the ACK train. [`Span::MAX`] stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct LinuxHyStart {
    round: Bytes,      // delivered when the round began: a packet sent after that ends it (end_seq)
    round_began: Time, // round_start
    last_ack: Time,    // the train's
    delay_min: Span,
    current: Span, // curr_rtt
    samples: u32,  // sample_cnt
}

impl LinuxHyStart {
    pub(crate) const fn new() -> Self {
        let (began, none) = (Time::ZERO, Span::MAX);
        Self { round: Bytes::ZERO, round_began: began, last_ack: began, delay_min: none, current: none, samples: 0 }
    }

    /// Processes any acknowledgement.
    pub(crate) fn observe(&mut self, ack: &Ack) {
        self.delay_min = self.delay_min.min(ack.rtt);
    }

    /// Processes an acknowledgement in slow start. `window` is the window before it, and `pace` is the rate at which Linux
    /// would pace. Returns whether slow start is over.
    pub(crate) fn ends(&mut self, ack: &Ack, window: &Window, pace: Rate, detect: Detect) -> bool {
        if ack.delivered_at_send >= self.round {
            self.round = ack.delivered;
            (self.round_began, self.last_ack) = (ack.now, ack.now);
            (self.current, self.samples) = (Span::MAX, 0);
        }
        if window.bytes() < window.floor().times(LOW_WINDOW) {
            return false;
        }
        let train = detect.train && self.train_is_long(ack.now, pace, detect);
        let delay = detect.delay && self.delay_grew(ack.rtt);
        train || delay
    }

    /// Returns whether a train has lasted longer than half the smallest RTT plus the allowance. A paced sender spreads
    /// its packets over half a round trip itself, so then the whole round trip counts.
    fn train_is_long(&mut self, now: Time, pace: Rate, detect: Detect) -> bool {
        if now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        let allowed = self.delay_min + pace.tx_time(LARGEST_SEGMENTS).min(MAX_ALLOWED);
        now.since(self.round_began) > if detect.paced { allowed } else { allowed.over(2) }
    }

    /// Returns whether the smallest RTT of more than eight samples exceeds the smallest of all by an eighth, at least 4
    /// and at most 16 ms.
    fn delay_grew(&mut self, rtt: Span) -> bool {
        self.current = self.current.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.current > self.delay_min + self.delay_min.over(8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{LONG_PATH, ack};

    const MSS: Bytes = LONG_PATH.mss;
    const BOTH: Detect = Detect { train: true, delay: true, paced: false };
    /// The pace at which the allowance is 50 us: 2 Mbit in 50 us.
    const FAST: Rate = Rate::from_bps(4 * 65_536 * 8 * 20_000);

    struct HyStartFlow {
        hystart: LinuxHyStart,
        window: Window,
        detect: Detect,
        pace: Rate,
    }

    impl HyStartFlow {
        fn new(packets: u64, detect: Detect) -> Self {
            let window = Window::new(MSS.times(packets), MSS, Window::LIMIT);
            Self { hystart: LinuxHyStart::new(), window, detect, pace: FAST }
        }

        /// Returns the `nth` acknowledgement of a round, at this time. Only the first one is of a packet sent after the
        /// previous round.
        fn ack(&mut self, round: u64, nth: u64, us: u64, rtt: Span) -> bool {
            let delivered = Bytes::new(round * 1_000_000 + nth);
            let delivered_at_send = Bytes::new(((round - 1) * 1_000_000).saturating_sub(u64::from(nth > 0)));
            let ack = Ack { rtt, delivered, delivered_at_send, ..ack(&LONG_PATH, us) };
            self.hystart.observe(&ack);
            self.hystart.ends(&ack, &self.window, self.pace, self.detect)
        }

        /// Returns the time in microseconds, from the start of the round, at which a train of acknowledgements every
        /// `gap_us` ends slow start, if it does within 100 ms.
        fn train(&mut self, gap_us: u64, rtt: Span) -> Option<u64> {
            (0..=100_000 / gap_us)
                .map(|nth| (nth, nth * gap_us))
                .find(|&(nth, us)| self.ack(1, nth, us, rtt))
                .map(|it| it.1)
        }
    }

    /// (10 ms + 50 us) / 2 = 5,025 us. The first acknowledgement over that, of one every 100 us, ends slow start.
    #[test]
    fn a_train_as_long_as_half_the_path_ends_slow_start() {
        let ten = Span::from_ms(10);
        assert_eq!(HyStartFlow::new(16, BOTH).train(100, ten), Some(5_100));
        // With pacing the whole of it counts: over 10,050 us.
        assert_eq!(HyStartFlow::new(16, Detect { paced: true, ..BOTH }).train(100, ten), Some(10_100));
        assert_eq!(HyStartFlow::new(16, Detect { train: false, ..BOTH }).train(100, ten), None);
        assert_eq!(HyStartFlow::new(15, BOTH).train(100, ten), None);
    }

    /// A slow pace allows a millisecond: (10 ms + 1 ms) / 2.
    #[test]
    fn the_allowance_for_segments_is_a_millisecond_at_most() {
        let mut flow = HyStartFlow::new(16, BOTH);
        flow.pace = Rate::from_bps(1_000_000);
        assert_eq!(flow.train(100, Span::from_ms(10)), Some(5_600));
    }

    /// Checks that gaps of 2 ms continue a train, and longer ones end it.
    #[test]
    fn a_gap_breaks_a_train() {
        assert_eq!(HyStartFlow::new(16, BOTH).train(2_000, Span::from_ms(10)), Some(6_000));
        assert_eq!(HyStartFlow::new(16, BOTH).train(2_001, Span::from_ms(10)), None);
    }

    /// Returns whether a second round with the round trip `then` ends slow start at its `count`-th acknowledgement. The
    /// acknowledgements arrive all at once.
    fn grew(base: Span, then: Span, count: u64) -> bool {
        let mut flow = HyStartFlow::new(16, BOTH);
        assert!(!flow.ack(1, 0, 0, base));
        (1..count).for_each(|nth| assert!(!flow.ack(2, nth - 1, 500_000, then), "{nth}"));
        flow.ack(2, count - 1, 500_000, then)
    }

    #[test]
    fn the_threshold_of_growth_is_an_eighth_between_4_and_16_ms() {
        for (base_us, more_us) in [(14, 4_000), (20_000, 4_000), (80_000, 10_000), (300_000, 16_000)] {
            let base = Span::from_us(base_us);
            assert!(!grew(base, base + Span::from_us(more_us), 20), "{base}");
            assert!(grew(base, base + Span::from_us(more_us + 1), 9), "{base}");
        }
    }

    #[test]
    fn detection_needs_more_than_eight_samples() {
        assert!(!grew(Span::from_ms(10), Span::from_ms(20), 8));
        assert!(grew(Span::from_ms(10), Span::from_ms(20), 9));
    }
}
