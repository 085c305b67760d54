//! Impairments of a link: the conditions of real networks that a queue does not show.
//!
//! Names follow Linux' netem and tc-police where these have the same thing; RFC 2697 and RFC 4737 define buckets and
//! reordering. A packet passes: the MTU and the policer, then the port's queue, with service by the schedule of rates,
//! then ACK aggregation, duplication, corruption, jitter and reordering, then the link's propagation delay.

use std::sync::Arc;

use thiserror::Error;
use units::{Bytes, Frac, Rate, Span, mul_div};

use crate::rate_schedule::RateSchedule;
use crate::service::SLOWEST;

/// Maximum time for which an impairment holds a packet.
pub const MAX_HOLD: Span = Span::from_s(100);

/// Maximum burst of a policer.
pub const MAX_BURST: Bytes = Bytes::new(1 << 30);

/// Index of a port's impairments among the network's: see [`crate::Network::with_impairments`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ImpairmentId(pub u16);

/// Impairments of a link and of the port in front of it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Impairments {
    /// Token bucket in front of the queue.
    pub policer: Option<Policer>,
    /// Largest packet in bytes on the wire; larger ones are dropped without notice.
    pub mtu: Option<u32>,
    /// Random delay of each packet.
    pub jitter: Option<LinkJitter>,
    /// Delay of some packets, so that others overtake them.
    pub reordering: Option<Reordering>,
    /// Probability that a packet arrives twice.
    pub duplication: Frac,
    /// Probability that a packet is corrupted.
    pub corruption: Frac,
    /// Collection of small packets into bursts.
    pub ack_aggregation: Option<AckAggregation>,
    /// Rate by time, in place of the port's constant one, never above it.
    pub rate_schedule: Option<Arc<RateSchedule>>,
}

/// A single-rate policer: drops packets that find too few tokens (tc-police; RFC 2697 without the excess burst).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policer {
    /// Token rate.
    pub rate: Rate,
    /// Size of the bucket in bytes on the wire; at most [`MAX_BURST`].
    pub burst: Bytes,
}

/// Random delay of each packet, between zero and `max`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkJitter {
    /// Longest delay; its mean is half of that.
    pub max: Span,
    /// Distribution of the delay.
    pub distribution: JitterDistribution,
    /// Order of packets with different delays.
    pub order: JitterOrder,
}

/// Distribution of a bounded delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum JitterDistribution {
    /// All delays alike: standard deviation `max / sqrt(12)`.
    #[default]
    Uniform,
    /// The mean of four uniform delays, a bounded bell: standard deviation `max / sqrt(48)`.
    Normal,
}

/// Order of packets with different delays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum JitterOrder {
    /// A packet is never delivered before one that left earlier: it waits for that one.
    #[default]
    Kept,
    /// Packets overtake each other.
    Free,
}

impl LinkJitter {
    /// Returns the delay for 64 random bits.
    pub(crate) fn delay(&self, bits: u64) -> Span {
        let max_ps = self.max.unsigned_ps();
        let ps = match self.distribution {
            JitterDistribution::Uniform => mul_div(bits, max_ps, u64::MAX),
            JitterDistribution::Normal => {
                let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
                mul_div(sum, max_ps, 4 * 0xffff)
            }
        };
        Span::from_unsigned_ps(ps)
    }
}

/// Delay of some packets in addition to their jitter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reordering {
    /// Probability that a packet is held back.
    pub probability: Frac,
    /// Time for which it is held back; packets that leave in this time overtake it.
    pub delay: Span,
}

/// Collection of small packets, which ACKs are: held, then released at one time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckAggregation {
    /// Longest time from the first packet of a group to its release.
    pub period: Span,
    /// Packets that complete a group before that.
    pub packets: u32,
    /// Largest packet that is held, in bytes on the wire.
    pub max_size: u32,
}

/// Reasons to reject impairments.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum ImpairmentError {
    #[error("a policer of {rate}, under {SLOWEST}")]
    PolicerTooSlow { rate: Rate },
    #[error("a policer's burst of {burst}, not from 1 byte to {MAX_BURST}")]
    Burst { burst: Bytes },
    #[error("an MTU of no bytes")]
    NoMtu,
    #[error("packets held for {span}, not over 0 and at most {MAX_HOLD}")]
    Hold { span: Span },
    #[error("a probability of {probability}, not under 1")]
    Always { probability: Frac },
    #[error("ACK aggregation of {packets} packets, under 2, or of packets of no size")]
    Aggregation { packets: u32 },
    #[error("rates of up to {max}, over the link's {rate}")]
    OverRate { max: Rate, rate: Rate },
}

impl Impairments {
    /// Returns whether it impairs nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the values for a link at this rate.
    ///
    /// # Errors
    /// If a value is out of its range; see [`ImpairmentError`].
    pub fn check(&self, rate: Rate) -> Result<(), ImpairmentError> {
        if let Some(Policer { rate, burst }) = self.policer {
            if rate < SLOWEST {
                return Err(ImpairmentError::PolicerTooSlow { rate });
            }
            if burst.is_zero() || burst > MAX_BURST {
                return Err(ImpairmentError::Burst { burst });
            }
        }
        if self.mtu == Some(0) {
            return Err(ImpairmentError::NoMtu);
        }
        let holds = [
            self.jitter.map(|jitter| jitter.max),
            self.reordering.map(|reordering| reordering.delay),
            self.ack_aggregation.map(|aggregation| aggregation.period),
        ];
        if let Some(span) = holds.into_iter().flatten().find(|&span| span <= Span::ZERO || span > MAX_HOLD) {
            return Err(ImpairmentError::Hold { span });
        }
        let held_back = self.reordering.map_or(Frac::ZERO, |reordering| reordering.probability);
        let probabilities = [held_back, self.duplication, self.corruption];
        if let Some(probability) = probabilities.into_iter().find(|&probability| probability >= Frac::ONE) {
            return Err(ImpairmentError::Always { probability });
        }
        if let Some(AckAggregation { packets, max_size, .. }) = self.ack_aggregation
            && (packets < 2 || max_size == 0)
        {
            return Err(ImpairmentError::Aggregation { packets });
        }
        match &self.rate_schedule {
            Some(schedule) if schedule.max_rate() > rate => {
                Err(ImpairmentError::OverRate { max: schedule.max_rate(), rate })
            }
            _ => Ok(()),
        }
    }
}

/// Packets that impairments affected at one port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ImpairmentCounters {
    /// Dropped by the policer.
    pub policed: u64,
    /// Dropped because they were larger than the MTU.
    pub oversized: u64,
    /// Corrupted: they go on and are discarded at their destination.
    pub corrupted: u64,
    /// Copies that were added.
    pub duplicates: u64,
    /// Released after a packet that left the port later (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Groups of small packets that were released.
    pub groups: u64,
}

impl ImpairmentCounters {
    /// Returns the counts since earlier ones of the same port.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            policed: self.policed - earlier.policed,
            oversized: self.oversized - earlier.oversized,
            corrupted: self.corrupted - earlier.corrupted,
            duplicates: self.duplicates - earlier.duplicates,
            reordered: self.reordered - earlier.reordered,
            groups: self.groups - earlier.groups,
        }
    }

    /// Adds those of another port.
    pub fn add(&mut self, other: &Self) {
        self.policed += other.policed;
        self.oversized += other.oversized;
        self.corrupted += other.corrupted;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.groups += other.groups;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_schedule::RateStep;

    #[test]
    fn values_out_of_range_are_rejected() {
        let rate = Rate::from_gbps(1);
        let refusal = |impairments: Impairments| impairments.check(rate).err();
        let none = Impairments::default();
        assert_eq!((refusal(none.clone()), none.is_none()), (None, true));
        let policed = |rate, bytes| {
            refusal(Impairments { policer: Some(Policer { rate, burst: Bytes::new(bytes) }), ..Impairments::default() })
        };
        let slow = Rate::from_bps(999_999);
        assert_eq!(policed(slow, 1), Some(ImpairmentError::PolicerTooSlow { rate: slow }));
        assert_eq!(policed(SLOWEST, 0), Some(ImpairmentError::Burst { burst: Bytes::ZERO }));
        assert_eq!(policed(SLOWEST, MAX_BURST.get()), None);
        assert_eq!(refusal(Impairments { mtu: Some(0), ..none.clone() }), Some(ImpairmentError::NoMtu));
        let late = MAX_HOLD + Span::from_ps(1);
        for span in [Span::ZERO, late] {
            let (distribution, order) = (JitterDistribution::Uniform, JitterOrder::Kept);
            let jitter = Some(LinkJitter { max: span, distribution, order });
            assert_eq!(refusal(Impairments { jitter, ..none.clone() }), Some(ImpairmentError::Hold { span }));
            let reordering = Some(Reordering { probability: Frac::HALF, delay: span });
            assert_eq!(refusal(Impairments { reordering, ..none.clone() }), Some(ImpairmentError::Hold { span }));
            let ack_aggregation = Some(AckAggregation { period: span, packets: 2, max_size: 1 });
            assert_eq!(refusal(Impairments { ack_aggregation, ..none.clone() }), Some(ImpairmentError::Hold { span }));
        }
        let always = Some(ImpairmentError::Always { probability: Frac::ONE });
        assert_eq!(refusal(Impairments { duplication: Frac::ONE, ..none.clone() }), always);
        assert_eq!(refusal(Impairments { corruption: Frac::ONE, ..none.clone() }), always);
        let one = Some(AckAggregation { period: Span::from_us(1), packets: 1, max_size: 1 });
        let error = refusal(Impairments { ack_aggregation: one, ..none.clone() });
        assert_eq!(error, Some(ImpairmentError::Aggregation { packets: 1 }));
        let steps = vec![RateStep { at: Span::ZERO, rate: Rate::from_gbps(2) }];
        let rate_schedule = Some(Arc::new(RateSchedule::new(steps, None).unwrap()));
        let error = refusal(Impairments { rate_schedule, ..none });
        assert_eq!(error, Some(ImpairmentError::OverRate { max: Rate::from_gbps(2), rate }));
    }

    /// Ends of the range, and the standard deviations: 1/12 and 1/48 of the square of the range.
    #[test]
    fn delays_have_their_distribution() {
        let max = Span::from_us(100);
        let jitter = |distribution| LinkJitter { max, distribution, order: JitterOrder::Kept };
        for (distribution, part) in [(JitterDistribution::Uniform, 12.0), (JitterDistribution::Normal, 48.0)] {
            let jitter = jitter(distribution);
            assert_eq!((jitter.delay(0), jitter.delay(u64::MAX)), (Span::ZERO, max));
            let count = 100_000u32;
            let delays = (0..u64::from(count)).map(|nth| jitter.delay(units::mix64(nth)).ps() as f64 / max.ps() as f64);
            let (sum, squares) = delays.fold((0.0, 0.0), |(sum, squares), it| (sum + it, squares + it * it));
            let mean = sum / f64::from(count);
            let variance = squares / f64::from(count) - mean * mean;
            // Four standard errors of the mean; the variance of a variance is under that of the fourth power, 1/80.
            let error = 4.0 * (1.0 / part / f64::from(count)).sqrt();
            assert!((mean - 0.5).abs() < error, "{distribution:?}: mean {mean}");
            assert!((variance - 1.0 / part).abs() < 4.0 * (1.0 / 80.0 / f64::from(count)).sqrt(), "{variance}");
        }
    }
}
