//! The credit queue of a port: a short FIFO that a token bucket lets out at the rate at which full data packets could
//! follow. Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters" (SIGCOMM 2017), §3; Zeng et
//! al., "FlashPass" (ICNP 2021), §II-C, §III-B, §III-C.
//!
//! A credit of 84 bytes permits a packet of 1538 bytes, so credits get 84/(84+1538) of the link: one credit in the time of
//! 1622 bytes. Credits that may be spared are dropped from a threshold on, the others when the queue is full. Queued
//! credits are never pushed out.

use std::collections::VecDeque;

use thiserror::Error;
use units::{Bytes, PrecomputedRate, Span, Time};

use crate::arrival::Arrival;
use crate::service::{MAX, long_service, service};

/// Credit queue of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CreditQueue {
    /// Maximum number of credits that may wait, at least 1.
    pub limit: u32,
    /// Expendable credits are dropped where this many wait, or more.
    pub threshold: u32,
    /// Bytes of a credit on the wire, at least 1.
    pub credit: u32,
    /// Bytes on the wire of the packet that a credit permits.
    pub data: u32,
    /// Size of the token bucket: bytes of credits that may be sent at once after a silence, at least one credit.
    pub burst: Bytes,
    /// Expendable data (sent without a credit) is dropped where the queue holds this much, or more; none treats it like
    /// other data.
    pub unscheduled: Option<Bytes>,
}

impl CreditQueue {
    /// FlashPass's queue (§IV-A: 8 packets, threshold 2) for credits of 84 bytes and packets of 1538, with a bucket of two
    /// credits. The bucket of the `ExpressPass` simulator holds ten: two flows that start together can then send 20 packets
    /// at twice the rate, and 9.5 of these wait, while `FlashPass` reports at most 6 (§II-C).
    pub const fn flashpass() -> Self {
        Self {
            limit: 8,
            threshold: 2,
            credit: 84,
            data: 1_538,
            burst: Bytes::new(168),
            unscheduled: Some(Bytes::new(3_076)),
        }
    }
}

/// Reasons to reject a credit queue.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CreditError {
    /// No room for a credit, or a credit of no bytes.
    #[error("a credit queue has room for at least one credit of at least one byte")]
    Empty,
    /// The bucket is smaller than a credit.
    #[error("a bucket of {burst} never lets a credit of {credit} B out: give it at least as many bytes")]
    Bucket {
        /// Size of the bucket.
        burst: Bytes,
        /// Bytes of a credit.
        credit: u32,
    },
    /// Filling the bucket takes over 2^40 ps, 1.1 s, of credits at the link's rate.
    #[error("a bucket of {burst} lasts over a second at the rate of the link: expected less")]
    TooLong {
        /// Size of the bucket.
        burst: Bytes,
    },
    /// A credit permits over a mebibyte.
    #[error("a credit stands for a packet of {data} B: expected at most {MAX_DATA}")]
    Data {
        /// Bytes of the packet on the wire.
        data: u32,
    },
}

/// A packet of more bytes is a mistake.
const MAX_DATA: u32 = 1 << 20;

/// A [`CreditQueue`] in time of the link.
#[derive(Clone, Copy, Hash, Debug)]
pub struct CreditParams {
    serializer: PrecomputedRate,
    limit: usize,
    threshold: usize,
    /// A byte of a credit corresponds to `link_bytes / credit_bytes` bytes of the link.
    link_bytes: u64,
    credit_bytes: u64,
    burst: Span,
    /// [`Span::MAX`] where data that may be spared is treated like other data.
    pub(crate) unscheduled: Span,
}

impl CreditParams {
    /// Prepares a configuration for a link.
    ///
    /// # Errors
    /// When a value is out of its range; see [`CreditError`].
    pub fn new(config: &CreditQueue, serializer: PrecomputedRate) -> Result<Self, CreditError> {
        let (limit, credit) = (config.limit, config.credit);
        if limit == 0 || credit == 0 {
            return Err(CreditError::Empty);
        }
        if config.burst < Bytes::new(credit.into()) {
            return Err(CreditError::Bucket { burst: config.burst, credit });
        }
        if config.data > MAX_DATA {
            return Err(CreditError::Data { data: config.data });
        }
        let mut params = Self {
            serializer,
            limit: limit as usize,
            threshold: config.threshold as usize,
            link_bytes: u64::from(credit) + u64::from(config.data),
            credit_bytes: credit.into(),
            burst: Span::ZERO,
            unscheduled: config.unscheduled.map_or(Span::MAX, |bytes| long_service(serializer, bytes)),
        };
        let burst = long_service(serializer, config.burst);
        // A bucket of a second or more is a mistake.
        if burst > MAX {
            return Err(CreditError::TooLong { burst: config.burst });
        }
        params.burst = params.of_link(burst);
        Ok(params)
    }

    /// Time of credits as time of the link, rounded up: under 2^40 times 2^21, so the product fits.
    fn of_link(&self, credits: Span) -> Span {
        Span::from_ps((credits.ps() as u64 * self.link_bytes).div_ceil(self.credit_bytes) as i64)
    }

    /// Returns the cost of a credit of `size` bytes: the time in which its tokens are refilled.
    fn cost(&self, size: u32) -> Span {
        self.of_link(service(self.serializer, size)).min(self.burst)
    }
}

/// The credit queue's state: the waiting credits, and one number for the bucket, the time at which it will be full again.
#[derive(Debug)]
pub struct CreditShaper<P> {
    /// With sizes on the wire.
    waiting: VecDeque<(P, u32)>,
    full_at: Time,
}

impl<P> Default for CreditShaper<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), full_at: Time::ZERO }
    }
}

impl<P> CreditShaper<P> {
    /// Returns whether no credit waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of credits that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the time from which the bucket admits the first credit that waits; none if none waits.
    #[inline]
    pub fn eligible_at(&self, params: &CreditParams) -> Option<Time> {
        self.waiting.front().map(|&(_, size)| self.token_time(params, size))
    }

    /// Returns the time from which the bucket admits a credit of `size` bytes.
    fn token_time(&self, params: &CreditParams, size: u32) -> Time {
        self.full_at.saturating_sub(params.burst - params.cost(size))
    }

    /// Returns whether a credit that arrives at `now` and finds none waiting may be sent at once.
    #[inline]
    pub(crate) fn passes(&self, params: &CreditParams, size: u32, now: Time) -> bool {
        self.is_empty() && self.token_time(params, size) <= now
    }

    /// Queues a credit. Returns it if there is no room for it: for an expendable one only below the threshold.
    #[inline]
    pub fn push(&mut self, params: &CreditParams, item: P, credit: &Arrival) -> Option<P> {
        let limit = if credit.expendable { params.threshold.min(params.limit) } else { params.limit };
        if self.waiting.len() >= limit {
            return Some(item);
        }
        self.waiting.push_back((item, credit.size));
        None
    }

    /// Takes the first credit that waits, which leaves at `now`: not before it is eligible.
    #[inline]
    pub fn pop(&mut self, params: &CreditParams, now: Time) -> Option<(P, u32)> {
        let (item, size) = self.waiting.pop_front()?;
        self.spend(params, size, now);
        Some((item, size))
    }

    /// A credit of `size` bytes leaves at `now`.
    #[inline]
    pub(crate) fn spend(&mut self, params: &CreditParams, size: u32, now: Time) {
        debug_assert!(self.token_time(params, size) <= now, "a credit leaves without tokens");
        self.full_at = self.full_at.max(now) + params.cost(size);
    }

    /// Offers an arriving credit to a queue that only the bucket limits. The credit leaves at once, or waits, or is returned because
    /// there is no room.
    pub fn offer(&mut self, params: &CreditParams, item: P, credit: &Arrival) -> Offered<P> {
        let &Arrival { now, size, .. } = credit;
        if self.passes(params, size, now) {
            self.spend(params, size, now);
            return Offered::Leaves(item);
        }
        self.push(params, item, credit).map_or(Offered::Waits, Offered::Refused)
    }
}

/// Outcome of offering a credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered<P> {
    /// The credit is sent now.
    Leaves(P),
    /// The credit waits for tokens.
    Waits,
    /// The queue has no room.
    Refused(P),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Rate;

    fn params(config: &CreditQueue) -> CreditParams {
        CreditParams::new(config, PrecomputedRate::new(Rate::from_gbps(10))).unwrap()
    }

    fn arrival(now: Time, size: u32, expendable: bool) -> Arrival {
        Arrival { now, size, ecn_capable: false, control: true, credit: true, expendable, identity: 0 }
    }

    /// Plays credits, (gap in ps, expendable), and returns when each was sent, and how many were refused.
    fn play(config: &CreditQueue, credits: &[(u64, bool)]) -> (Vec<Time>, usize) {
        let (params, mut shaper) = (params(config), CreditShaper::default());
        let (mut now, mut left, mut refused) = (Time::ZERO, Vec::new(), 0);
        let release = |shaper: &mut CreditShaper<usize>, until: Time, left: &mut Vec<Time>| {
            while let Some(at) = shaper.eligible_at(&params).filter(|&at| at <= until) {
                let at = at.max(left.last().copied().unwrap_or(Time::ZERO));
                shaper.pop(&params, at);
                left.push(at);
            }
        };
        for (index, &(gap, expendable)) in credits.iter().enumerate() {
            now += Span::from_unsigned_ps(gap);
            release(&mut shaper, now, &mut left);
            match shaper.offer(&params, index, &arrival(now, config.credit, expendable)) {
                Offered::Leaves(_) => left.push(now),
                Offered::Waits => {}
                Offered::Refused(_) => refused += 1,
            }
        }
        release(&mut shaper, Time::NEVER, &mut left);
        assert!(shaper.is_empty());
        (left, refused)
    }

    /// 1622 bytes at 10 Gb/s last 1297.6 ns: ten credits at once from a full bucket, then one in that time; eight wait.
    #[test]
    fn a_credit_passes_in_the_time_of_its_packet_and_itself() {
        let ten = CreditQueue { burst: Bytes::new(840), ..CreditQueue::flashpass() };
        let (left, refused) = play(&ten, &[(1_000, false); 30][..]);
        // Thirty within 30 ns: the tokens that flow back meanwhile let none out.
        assert_eq!((left.len(), refused), (18, 12));
        assert_eq!(left[..10], std::array::from_fn::<Time, 10, _>(|index| Time::from_ns(index as u64 + 1)));
        for (index, pair) in left[10..].windows(2).enumerate() {
            assert_eq!(pair[1].since(pair[0]), Span::from_ps(1_297_600), "{index}");
        }
        // The first of them leaves when ten costs less the bucket have flowed back since the first credit.
        assert_eq!(left[10], Time::from_ns(1) + Span::from_ps(1_297_600));
    }

    #[test]
    fn expendable_credits_wait_only_below_the_threshold() {
        let config = CreditQueue { burst: Bytes::new(84), ..CreditQueue::flashpass() };
        // One leaves, two wait; then expendable ones are refused and ordinary ones still find room for six.
        let credits: Vec<_> = [true; 6].into_iter().chain([false; 10]).map(|expendable| (0, expendable)).collect();
        let (left, refused) = play(&config, &credits);
        assert_eq!((left.len(), refused), (1 + 2 + 6, 3 + 4));
    }

    #[test]
    fn out_of_range_values_are_rejected() {
        let valid = CreditQueue::flashpass();
        let refusal = |config| CreditParams::new(&config, PrecomputedRate::new(Rate::from_mbps(1))).err();
        assert_eq!(refusal(valid), None);
        assert_eq!(refusal(CreditQueue { limit: 0, ..valid }), Some(CreditError::Empty));
        assert_eq!(refusal(CreditQueue { credit: 0, ..valid }), Some(CreditError::Empty));
        let burst = Bytes::new(83);
        assert_eq!(refusal(CreditQueue { burst, ..valid }), Some(CreditError::Bucket { burst, credit: 84 }));
        let burst = Bytes::new(1 << 20);
        assert_eq!(refusal(CreditQueue { burst, ..valid }), Some(CreditError::TooLong { burst }));
        let data = (1 << 20) + 1;
        assert_eq!(refusal(CreditQueue { data, ..valid }), Some(CreditError::Data { data }));
    }

    proptest! {
        /// Over any interval no more leaves than the bucket and the rate give; all that is not refused leaves, in order.
        #[test]
        fn the_rate_holds_over_any_interval(
            credits in proptest::collection::vec((0..4_000_000u64, any::<bool>()), 1..300),
            burst in 84..2_000u64, limit in 1..12u32, threshold in 0..12u32,
        ) {
            let config = CreditQueue { limit, threshold, burst: Bytes::new(burst), ..CreditQueue::flashpass() };
            let (left, refused) = play(&config, &credits);
            prop_assert_eq!(left.len() + refused, credits.len());
            for (first, &from) in left.iter().enumerate() {
                for (last, &to) in left.iter().enumerate().skip(first) {
                    // Bytes of credits in [from, to], against the bucket and 84/1622 of 1.25 bytes a nanosecond; costs
                    // are rounded up, so no picosecond is given away.
                    let bytes = (last - first + 1) as u128 * 84;
                    let apart = to.since(from).unsigned_ps();
                    let room = u128::from(burst) * 800 * 1_622 / 84 + 2 + u128::from(apart);
                    prop_assert!(bytes * 800 * 1_622 / 84 <= room, "{} bytes in {} ps", bytes, apart);
                }
            }
            prop_assert!(left.is_sorted());
        }
    }
}
