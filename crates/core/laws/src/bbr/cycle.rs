//! BBR's gain cycle: one round trip above the estimate to probe for bandwidth, one below it to drain the queue, and six at
//! the estimate.

use units::{Bytes, Frac, Span, Time, below, mix64};

use crate::Ack;

const PHASES: u8 = 8;
const DRAIN: u8 = 1;

/// Position of a flow in the gain cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Cycle {
    phase: u8,
    lost: bool,
    began: Time,
}

impl Cycle {
    /// Starts in any phase but the draining one, chosen by a hash of `seed` and the time, so that flows that
    /// share a seed differ and each run is the same.
    pub(super) fn begin(seed: u64, now: Time) -> Self {
        let phase = below(mix64(seed ^ mix64(now.ps())), u32::from(PHASES) - 1) as u8;
        Self { phase: if phase >= DRAIN { phase + 1 } else { phase }, began: now, lost: false }
    }

    /// The pacing gain now: 5/4, 3/4, then 1 six times.
    pub(super) const fn gain(&self) -> Frac {
        match self.phase {
            0 => Frac::millionths(1_250_000),
            DRAIN => Frac::millionths(750_000),
            _ => Frac::ONE,
        }
    }

    /// Records that packets were lost in this phase.
    pub(super) fn note_loss(&mut self) {
        self.lost = true;
    }

    /// Returns the next phase once this one is done: after a min RTT; while probing, only once bytes in flight reach the gain
    /// times the BDP or packets are lost; while draining, as soon as only `bdp` is in flight.
    pub(super) fn next(self, ack: &Ack, min_rtt: Span, bdp: Bytes) -> Self {
        let over = ack.now.since(self.began) > min_rtt;
        let done = match self.phase {
            0 => over && (self.lost || ack.in_flight + ack.acked >= bdp.scaled(self.gain())),
            DRAIN => over || ack.in_flight <= bdp,
            _ => over,
        };
        if done { Self { phase: (self.phase + 1) % PHASES, began: ack.now, lost: false } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};

    #[test]
    fn starts_in_any_phase_but_the_drain() {
        let mut seen = [0; PHASES as usize];
        for seed in 0..800 {
            seen[usize::from(Cycle::begin(seed, Time::from_us(seed)).phase)] += 1;
        }
        assert_eq!(seen[usize::from(DRAIN)], 0);
        assert!(seen.iter().filter(|n| **n > 60).count() == 7, "{seen:?}");
    }

    #[test]
    fn probing_ends_with_a_loss() {
        let mut cycle = Cycle { phase: 0, began: ack(&PATH, 0).now, lost: false };
        cycle.note_loss();
        cycle = cycle.next(&ack(&PATH, 20), PATH.base_rtt, Bytes::new(1 << 30));
        assert_eq!(cycle.phase, DRAIN);
    }

    #[test]
    fn probing_waits_for_a_full_pipe_and_draining_for_an_empty_one() {
        let bdp = Bytes::new(100_000);
        let mut cycle = Cycle { phase: 0, began: ack(&PATH, 0).now, lost: false };
        let empty = |us| Ack { in_flight: Bytes::new(50_000), ..ack(&PATH, us) };
        let full = |us| Ack { in_flight: Bytes::new(125_000), ..ack(&PATH, us) };
        cycle = cycle.next(&empty(20), PATH.base_rtt, bdp);
        assert_eq!(cycle.phase, 0);
        cycle = cycle.next(&full(21), PATH.base_rtt, bdp);
        assert_eq!((cycle.phase, cycle.gain()), (DRAIN, Frac::millionths(750_000)));
        cycle = cycle.next(&full(25), PATH.base_rtt, bdp);
        assert_eq!(cycle.phase, DRAIN);
        cycle = cycle.next(&empty(26), PATH.base_rtt, bdp);
        assert_eq!((cycle.phase, cycle.gain()), (2, Frac::ONE));
        cycle = cycle.next(&empty(30), PATH.base_rtt, bdp);
        assert_eq!(cycle.phase, 2);
        cycle = cycle.next(&empty(41), PATH.base_rtt, bdp);
        assert_eq!(cycle.phase, 3);
    }
}
