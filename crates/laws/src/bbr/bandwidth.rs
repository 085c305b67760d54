//! BBR's estimate of the bottleneck's bandwidth: the largest delivery rate of the last ten round trips.

use units::{Bytes, Rate, Span};

use crate::Ack;

const ROUNDS: usize = 10;

/// The largest sample of each of the last ten rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct MaxBandwidth {
    samples: [Rate; ROUNDS],
    round: u64, // the newest round with a sample
    best: Rate,
}

impl MaxBandwidth {
    pub(super) const fn new() -> Self {
        Self { samples: [Rate::ZERO; ROUNDS], round: 0, best: Rate::ZERO }
    }

    /// The largest; zero before the first sample.
    pub(super) const fn get(&self) -> Rate {
        self.best
    }

    /// Takes a sample of `round`, which never decreases. Old rounds expire only as new samples arrive, so a
    /// flow that has nothing to send keeps its estimate.
    pub(super) fn observe(&mut self, round: u64, sample: Rate) {
        let skipped = round - self.round;
        for age in 0..ROUNDS as u64 {
            if age < skipped {
                self.samples[((round - age) % ROUNDS as u64) as usize] = Rate::ZERO;
            }
        }
        self.round = round;
        let slot = &mut self.samples[(round % ROUNDS as u64) as usize];
        *slot = (*slot).max(sample);
        if skipped > 0 || sample > self.best {
            self.best = self.samples.iter().fold(Rate::ZERO, |best, sample| best.max(*sample));
        }
    }
}

/// The delivery rate that `ack` tells: what was delivered while its packet was under way, over the longer of the
/// time to send it and the time to acknowledge it. `None` if that time is shorter than `min_rtt`, which no path
/// allows (draft-cheng-iccrg-delivery-rate-estimation §3.3).
pub(super) fn sample(ack: &Ack, min_rtt: Span) -> Option<Rate> {
    let interval = ack.now.since(ack.delivered_time_at_send).max(ack.send_elapsed);
    let delivered: Bytes = ack.delivered.saturating_sub(ack.delivered_at_send);
    if interval.unsigned_ps() == 0 || interval < min_rtt {
        return None;
    }
    Some(Rate::of(delivered, interval))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testbed::{PATH, ack};
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_sample_takes_the_longer_of_two_intervals() {
        // 175,000 B over 14 us are 100 Gb/s; if they took 28 us to send, 50.
        let plain = Ack { delivered: Bytes::new(175_000), delivered_at_send: Bytes::ZERO, ..ack(&PATH, 0) };
        assert_eq!(sample(&plain, PATH.base_rtt), Some(Rate::from_gbps(100)));
        let slow = Ack { send_elapsed: Span::from_us(28), ..plain };
        assert_eq!(sample(&slow, PATH.base_rtt), Some(Rate::from_gbps(50)));
        // No path delivers in less than its smallest RTT.
        assert_eq!(sample(&plain, Span::from_us(15)), None);
    }

    proptest! {
        #[test]
        fn is_the_largest_of_ten_rounds(steps in proptest::collection::vec((0..15u64, 1..1_000_000u64), 1..100)) {
            let mut filter = MaxBandwidth::new();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut round = 0;
            for (gap, bps) in steps {
                round += gap / 4;
                filter.observe(round, Rate::from_bps(bps));
                all.push((round, bps));
                let best = all.iter().filter(|(r, _)| r + 10 > round).map(|(_, bps)| *bps).max();
                prop_assert_eq!(Some(filter.get().bps()), best);
            }
        }
    }
}
