//! Pacing: the earliest send time of the next packet at a law's rate.

use units::{Bytes, Rate, Span, Tick, Time};

/// Pacing parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Bytes that each packet counts for in addition to its payload: its header, or none.
    pub header: u32,
    /// Packets sent late, held back by window or NIC, are made up for: time counts from when they could have been sent.
    /// If not, it counts from when they were sent.
    pub catches_up: bool,
    /// Maximum backlog to make up for at once, where packets catch up, in addition to one packet. A host with coarse timers
    /// keeps its rate if this is the amount sent between two timer expirations.
    pub burst: Bytes,
    /// A lower layer paces by the law's rate ([`crate::Sender::gap_after`]). If so, packets are sent here as soon as
    /// the window permits them.
    pub below: bool,
    /// The time between two paced packets is a whole multiple of this.
    pub tick: Tick,
}

impl Pacing {
    /// Counts payload alone and makes up for one late packet at a time; no lower layer paces, and there are no ticks.
    pub const PLAIN: Self = Self { header: 0, catches_up: true, burst: Bytes::ZERO, below: false, tick: Tick::NONE };

    /// Returns the time from a packet of `bytes` payload to the next one; zero if the rate is none.
    #[inline(always)]
    pub(crate) fn gap(&self, rate: Rate, bytes: u32) -> Span {
        if rate == Rate::MAX {
            return Span::ZERO;
        }
        self.tick.tx_time(rate, Bytes::new(u64::from(bytes + self.header)))
    }

    /// Returns the earliest time from which unused rate still counts.
    #[inline(always)]
    fn earliest(&self, now: Time, rate: Rate) -> Time {
        if self.burst.is_zero() || !self.catches_up { now } else { now.saturating_sub(rate.tx_time(self.burst)) }
    }
}

/// Send time of a law's next packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    next: Time,
    /// Payload of the packet sent last.
    last: u32,
}

impl Pacer {
    /// Creates a pacer that permits the first packet at `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self { next: now, last: 0 }
    }

    /// Returns the earliest send time of the next packet.
    #[inline(always)]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Records a packet with `bytes` of payload, sent while the law permits `rate`.
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, now: Time, rate: Rate, bytes: u32, pacing: &Pacing) {
        self.last = bytes;
        if rate != Rate::MAX && !pacing.below {
            let gap = pacing.gap(rate, bytes);
            // A packet that the NIC held back does not slow the ones behind it.
            let from = if pacing.catches_up { self.next } else { now };
            self.next = (from + gap).max(pacing.earliest(now, rate));
        }
    }

    /// Updates the schedule after a change of rate: the next packet is sent as if the last one had been sent at the new rate.
    #[inline(never)]
    pub(crate) fn retime(&mut self, before: Rate, rate: Rate, pacing: &Pacing) {
        let more = pacing.gap(rate, self.last) - pacing.gap(before, self.last);
        self.next = self.next.saturating_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,000 bytes at 8 Gb/s, one a microsecond, from a host that wakes up every 50 us: returns the number of
    /// packets sent in 10 ms.
    fn sent_by_a_coarse_host(burst: Bytes) -> u32 {
        let pacing = Pacing { burst, ..Pacing::PLAIN };
        let mut pacer = Pacer::new(Time::ZERO);
        let mut sent = 0;
        for wakes in 0..200 {
            let now = Time::from_us(50 * wakes);
            while pacer.next() <= now {
                pacer.on_sent(now, Rate::from_gbps(8), 1_000, &pacing);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_burst_keeps_the_rate_of_a_host_with_coarse_timers() {
        // One packet is made up for without a burst.
        assert_eq!(sent_by_a_coarse_host(Bytes::ZERO), 1 + 2 * 199);
        assert_eq!(sent_by_a_coarse_host(Bytes::new(10_000)), 1 + 12 * 199);
        // 49 more than one, and the one that is due.
        assert_eq!(sent_by_a_coarse_host(Bytes::new(49_000)), 1 + 50 * 199);
        assert_eq!(sent_by_a_coarse_host(Bytes::new(1_000_000)), 1 + 50 * 199);
    }

    #[test]
    fn saved_rate_is_limited_to_one_burst() {
        let pacing = Pacing { burst: Bytes::new(5_000), ..Pacing::PLAIN };
        let mut pacer = Pacer::new(Time::ZERO);
        let now = Time::from_ms(1);
        let mut sent = 0;
        while pacer.next() <= now {
            pacer.on_sent(now, Rate::from_gbps(8), 1_000, &pacing);
            sent += 1;
        }
        // The packet that was due, five that were stored, and the one that is always made up for.
        assert_eq!(sent, 7);
    }
}
