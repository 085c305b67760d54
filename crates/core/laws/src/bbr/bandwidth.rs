//! BBR's estimate of the bottleneck's bandwidth: the largest delivery rate of the last ten round trips.

use units::{Bytes, Rate, Span};

use crate::Ack;

const ROUNDS: u8 = 10;

/// The largest sample of each of the last ten rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct MaxBandwidth {
    samples: [Rate; ROUNDS as usize],
    current: u8,   // the slot of this round
    unsampled: u8, // rounds begun since the newest sample, ten for more
    best: u8,      // the slot of the largest
}

impl MaxBandwidth {
    pub(super) const fn new() -> Self {
        Self { samples: [Rate::ZERO; ROUNDS as usize], current: 0, unsampled: 0, best: 0 }
    }

    /// The largest; zero before the first sample.
    pub(super) const fn get(&self) -> Rate {
        self.samples[(self.best % ROUNDS) as usize]
    }

    /// Ends a round. Returns whether it is every fifth one.
    pub(super) fn end_round(&mut self) -> bool {
        self.current = (self.current + 1) % ROUNDS;
        self.unsampled = (self.unsampled + 1).min(ROUNDS);
        self.current.is_multiple_of(5)
    }

    /// Takes a sample of this round. Old rounds expire only as new samples arrive, so a flow that has nothing to send
    /// keeps its estimate.
    pub(super) fn observe(&mut self, sample: Rate) {
        let best = self.get();
        for age in 0..ROUNDS {
            if age < self.unsampled {
                self.samples[usize::from((self.current + ROUNDS - age) % ROUNDS)] = Rate::ZERO;
            }
        }
        let slot = usize::from(self.current % ROUNDS);
        self.samples[slot] = self.samples[slot].max(sample);
        if self.unsampled > 0 || sample > best {
            for slot in 0..ROUNDS {
                if self.samples[usize::from(slot)] > self.get() {
                    self.best = slot;
                }
            }
        }
        self.unsampled = 0;
    }
}

/// Returns the delivery rate sampled by `ack`: the bytes delivered while its packet was in flight, over the longer of
/// the time to send it and the time to acknowledge it. `None` if that time is shorter than `min_rtt`, which no path
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
        fn bandwidth_is_the_maximum_of_ten_rounds(steps in proptest::collection::vec((0..60u64, 1..1_000_000u64), 1..100)) {
            let mut filter = MaxBandwidth::new();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut round = 0;
            for (gap, bps) in steps {
                for _ in 0..gap / 4 {
                    round += 1;
                    prop_assert_eq!(filter.end_round(), round % 5 == 0);
                }
                filter.observe(Rate::from_bps(bps));
                all.push((round, bps));
                let best = all.iter().filter(|(r, _)| r + 10 > round).map(|(_, bps)| *bps).max();
                prop_assert_eq!(Some(filter.get().bps()), best);
            }
        }
    }
}
