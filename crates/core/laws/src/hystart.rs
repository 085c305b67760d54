//! `HyStart++` (RFC 9406): the first slow start ends when round trips grow, before the queue is full.
//!
//! Its limit of 8 packets an acknowledgement without pacing (L) is left out: an acknowledgement covers few packets here.

use units::{Bytes, Span};

use crate::{Ack, Round};

// §4.3.
const MIN_RTT_THRESH: Span = Span::from_ms(4);
const MAX_RTT_THRESH: Span = Span::from_ms(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// RTT samples of `HyStart++`. [`Span::MAX`] stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct HyStart {
    round: Round,
    last: Span,     // lastRoundMinRTT
    current: Span,  // currentRoundMinRTT
    samples: u32,   // rttSampleCount
    rounds: u32,    // that ended in conservative slow start
    baseline: Span, // cssBaselineMinRtt; set in conservative slow start
}

impl HyStart {
    pub(crate) const fn new() -> Self {
        let (round, none) = (Round::new(), Span::MAX);
        Self { round, last: none, current: none, samples: 0, rounds: 0, baseline: none }
    }

    const fn is_conservative(&self) -> bool {
        self.baseline.ps() != Span::MAX.ps()
    }

    /// Handles an acknowledgement in the first slow start (§4.2). Returns the growth of the window; none when slow
    /// start is over.
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Option<Bytes> {
        if self.round.is_over(ack) {
            self.round.restart(ack);
            if self.is_conservative() {
                // The round in which it began counts, too.
                self.rounds += 1;
                if self.rounds >= CSS_ROUNDS {
                    return None;
                }
            }
            (self.last, self.current, self.samples) = (self.current, Span::MAX, 0);
        }
        self.current = self.current.min(ack.rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= N_RTT_SAMPLE {
            self.evaluate_round();
        }
        Some(if self.is_conservative() { ack.acked.ratio(1, CSS_GROWTH_DIVISOR) } else { ack.acked })
    }

    /// Evaluates a round that has enough RTT samples.
    fn evaluate_round(&mut self) {
        if self.is_conservative() {
            if self.current < self.baseline {
                // The increase was only jitter.
                (self.baseline, self.rounds) = (Span::MAX, 0);
            }
        } else if self.last != Span::MAX {
            let threshold = self.last.over(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.current >= self.last + threshold {
                self.baseline = self.current;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{LONG_PATH, ack};

    const MSS: Bytes = LONG_PATH.mss;

    /// Runs a round of `acks` acknowledgements, each with this round trip. Returns the total growth of the window; none
    /// as soon as slow start is over.
    fn round(hystart: &mut HyStart, number: u64, acks: u64, rtt: Span) -> Option<Bytes> {
        let mut grown = Bytes::ZERO;
        for nth in 0..acks {
            let delivered = Bytes::new(number * 1_000_000 + nth);
            // The first packet of a round was sent after the previous round began, the others just before that.
            let delivered_at_send = Bytes::new(((number - 1) * 1_000_000).saturating_sub(u64::from(nth > 0)));
            grown += hystart.on_ack(&Ack { rtt, delivered, delivered_at_send, ..ack(&LONG_PATH, 0) })?;
        }
        Some(grown)
    }

    /// Returns whether a second round with minimum RTT `then` ends slow start's doubling.
    fn slows(base: Span, then: Span) -> bool {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 8, base);
        round(&mut hystart, 2, 8, then);
        hystart.is_conservative()
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        for (base_us, more_us) in [(14, 4_000), (20_000, 4_000), (80_000, 10_000), (300_000, 16_000)] {
            let base = Span::from_us(base_us);
            assert!(!slows(base, base + Span::from_us(more_us - 1)), "{base}");
            assert!(slows(base, base + Span::from_us(more_us)), "{base}");
        }
    }

    #[test]
    fn detection_needs_eight_samples() {
        let mut hystart = HyStart::new();
        let (base, long) = (Span::from_ms(10), Span::from_ms(20));
        assert_eq!(round(&mut hystart, 1, 8, base), Some(MSS.times(8)));
        assert_eq!(round(&mut hystart, 2, 7, long), Some(MSS.times(7)));
        assert!(!hystart.is_conservative());
        // The third round is compared with a previous round that was long itself.
        round(&mut hystart, 3, 8, long);
        assert!(!hystart.is_conservative());
    }

    #[test]
    fn css_grows_by_a_quarter_for_five_rounds() {
        let mut hystart = HyStart::new();
        let long = Span::from_ms(20);
        round(&mut hystart, 1, 8, Span::from_ms(10));
        // From the eighth on; this round is the first of five.
        assert_eq!(round(&mut hystart, 2, 12, long), Some(MSS.times(7) + MSS.ratio(5, 4)));
        for number in 3..7 {
            assert_eq!(round(&mut hystart, number, 12, long), Some(MSS.times(3)), "round {number}");
        }
        assert_eq!(round(&mut hystart, 7, 1, long), None);
    }

    #[test]
    fn jitter_is_forgotten() {
        let mut hystart = HyStart::new();
        let (base, long) = (Span::from_ms(10), Span::from_ms(20));
        round(&mut hystart, 1, 8, base);
        round(&mut hystart, 2, 8, long);
        assert!(hystart.is_conservative());
        assert_eq!(round(&mut hystart, 3, 8, base), Some(MSS.ratio(7, 4) + MSS));
        assert!(!hystart.is_conservative() && hystart.rounds == 0);
        assert_eq!(round(&mut hystart, 4, 8, base), Some(MSS.times(8)));
    }
}
