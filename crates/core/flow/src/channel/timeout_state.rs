//! Timer expirations of a subflow since its last acknowledgement (RFC 9002 §6.2). With
//! [`LossTimer::Probe`](crate::LossTimer::Probe) probes are sent first, and at the third consecutive expiration the
//! content in flight is returned to the work. An acknowledgement shows whether that was lost or only late (RFC 9002
//! §7.6.2).

use units::{Bytes, Time};

use crate::ranges::Range;

/// Maximum number of consecutive timer expirations that only send probes. At the next one, content in flight is
/// returned to the work (RFC 9002 §7.6: three).
pub(crate) const PROBES: u8 = 2;

/// Packets of a subflow that timeouts declared lost, kept until an acknowledgement shows whether they arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOutRange {
    /// Numbers from its first packet to its last one.
    pub(super) numbers: Range,
    /// Payload.
    lost: Bytes,
    /// Payload of these packets that has arrived after all.
    pub(super) acked: Bytes,
    /// No packet from the first one on is acknowledged. Until then only probes are sent.
    is_unanswered: bool,
}

impl TimedOutRange {
    /// Returns the payload of unknown state: it may still be in flight, and counts against the window.
    pub(super) fn unresolved_bytes(&self) -> Bytes {
        self.lost - self.acked.min(self.lost)
    }
}

/// Timer expirations since the last newly acknowledged packet.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct TimeoutState {
    /// Number of consecutive expirations.
    count: u8,
    /// Time of the first of these expirations.
    first_at: Option<Time>,
    /// Number of packets that may be sent regardless of the window.
    probes: u8,
    /// Packets that timeouts declared lost and that no acknowledgement has resolved yet.
    timed_out: Option<TimedOutRange>,
}

/// Effect of an acknowledgement on the timer state.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckEffect {
    /// The acknowledgement is of a packet sent since the timeout.
    pub(super) ends_timeout: bool,
    /// Packets that timeouts declared lost, once it is known which of them arrived.
    pub(super) over: Option<TimedOutRange>,
}

impl TimeoutState {
    pub(super) fn count(&self) -> u8 {
        self.count
    }

    pub(super) fn first_at(&self) -> Option<Time> {
        self.first_at
    }

    /// Returns whether a packet may be sent regardless of the window.
    pub(super) fn may_probe(&self) -> bool {
        self.probes > 0
    }

    /// Returns whether only probes may be sent.
    pub(super) fn is_probe_only(&self) -> bool {
        self.timed_out.is_some_and(|range| range.is_unanswered)
    }

    /// Returns the payload that counts against the window in addition to what is in flight; `None` if nothing is
    /// unresolved.
    pub(super) fn unresolved_bytes(&self) -> Option<Bytes> {
        self.timed_out.map(|range| range.unresolved_bytes())
    }

    /// Records that a packet is sent.
    pub(super) fn sent(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// Permits one packet regardless of the window.
    pub(super) fn probe(&mut self) {
        self.probes = 1;
    }

    /// Records a timer expiration. Returns whether it is one of the first consecutive ones, which declare nothing lost
    /// if there are probes.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        self.count = self.count.saturating_add(1);
        self.first_at = self.first_at.or(Some(now));
        self.count <= PROBES
    }

    /// Records a timeout of packets with these numbers and this payload. If something was acknowledged since the last
    /// timeout, returns the packets of that one: no acknowledgement of them is awaited any more.
    pub(super) fn take(&mut self, numbers: Range, lost: Bytes) -> Option<TimedOutRange> {
        debug_assert!(numbers.first <= numbers.last, "{numbers:?}");
        debug_assert!(self.timed_out.is_none_or(|old| old.numbers.last < numbers.first), "a packet times out twice");
        let new = TimedOutRange { numbers, lost, acked: Bytes::ZERO, is_unanswered: true };
        match self.timed_out.replace(new) {
            Some(before) if before.is_unanswered => {
                let numbers = Range { first: before.numbers.first, last: numbers.last };
                self.timed_out = Some(TimedOutRange { numbers, lost: before.lost + lost, ..before });
                None
            }
            before => before,
        }
    }

    /// Records the arrival of a packet that was declared lost. Returns whether a timeout had declared it lost.
    pub(super) fn on_late_ack(&mut self, number: u64, bytes: Bytes) -> bool {
        let taken = self.timed_out.as_mut().filter(|it| it.numbers.contains(number));
        match taken {
            Some(range) => range.acked += bytes,
            None => return false,
        }
        true
    }

    /// Processes the number of the newest packet that an acknowledgement newly acknowledges.
    pub(super) fn on_ack(&mut self, number: u64) -> AckEffect {
        // An acknowledgement of packets sent before a timeout does not end it.
        let ends_timeout = self.timed_out.is_none_or(|range| range.numbers.first <= number);
        if ends_timeout {
            (self.count, self.first_at, self.probes) = (0, None, 0);
        }
        if let Some(range) = &mut self.timed_out {
            range.is_unanswered &= !ends_timeout;
        }
        AckEffect { ends_timeout, over: self.timed_out.take_if(|range| range.numbers.last <= number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Bytes = Bytes::new(1_000);

    fn range(first: u64, last: u64) -> Range {
        Range { first, last }
    }

    fn three_timeouts() -> TimeoutState {
        let mut timeouts = TimeoutState::default();
        let probes = [1, 2, 3].map(|ms| timeouts.expire(Time::from_ms(ms)));
        assert_eq!((probes, timeouts.first_at()), ([true, true, false], Some(Time::from_ms(1))));
        assert!(timeouts.take(range(10, 19), KB).is_none());
        timeouts
    }

    #[test]
    fn an_ack_of_earlier_packets_does_not_end_a_timeout() {
        let mut timeouts = three_timeouts();
        timeouts.probe();
        assert!(timeouts.may_probe() && timeouts.is_probe_only());
        let effect = timeouts.on_ack(9);
        assert!(!effect.ends_timeout && effect.over.is_none());
        assert_eq!((timeouts.count(), timeouts.is_probe_only(), timeouts.unresolved_bytes()), (3, true, Some(KB)));
        timeouts.sent();
        assert!(!timeouts.may_probe());
    }

    #[test]
    fn a_partial_ack_opens_the_window_by_that_part() {
        let mut timeouts = three_timeouts();
        assert!(timeouts.on_late_ack(12, Bytes::new(100)) && !timeouts.on_late_ack(9, Bytes::new(100)));
        let effect = timeouts.on_ack(12);
        assert!(effect.ends_timeout && effect.over.is_none() && !timeouts.is_probe_only());
        assert_eq!(
            (timeouts.count(), timeouts.first_at(), timeouts.unresolved_bytes()),
            (0, None, Some(Bytes::new(900)))
        );
        // A packet newer than all of them resolves the rest.
        let over = timeouts.on_ack(20).over.unwrap();
        assert_eq!(
            (over.numbers, over.unresolved_bytes(), timeouts.unresolved_bytes()),
            (range(10, 19), Bytes::new(900), None)
        );
    }

    #[test]
    fn two_timeouts_are_one_range_unless_an_ack_came_between() {
        let mut timeouts = three_timeouts();
        assert!(timeouts.take(range(20, 24), KB).is_none());
        assert_eq!(timeouts.unresolved_bytes(), Some(Bytes::new(2_000)));
        assert_eq!(timeouts.on_ack(24).over.unwrap().numbers, range(10, 24));
        let mut timeouts = three_timeouts();
        timeouts.on_ack(15);
        let before = timeouts.take(range(20, 24), KB).unwrap();
        assert_eq!((before.numbers, timeouts.unresolved_bytes()), (range(10, 19), Some(KB)));
    }
}
