//! Timer expirations of a subflow since its last acknowledgement (RFC 9002 §6.2). With
//! [`LossTimer::Probe`](crate::LossTimer::Probe) probes are sent first, and at the third consecutive expiration the
//! content in flight is returned to the work. An acknowledgement shows whether that was lost or only late (RFC 9002
//! §7.6.2).

use units::{Bytes, Time};

use crate::ranges::Range;

/// Maximum number of consecutive timer expirations that only send probes. At the next one, content in flight is
/// returned to the work (RFC 9002 §7.6: three).
const PROBES: u8 = 2;

/// Packets of a subflow that timeouts declared lost, until an acknowledgement shows whether they arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOutRange {
    /// Numbers from its first packet to its last one.
    pub(super) numbers: Range,
    /// Payload.
    lost: Bytes,
    /// Payload of these packets that has arrived after all.
    pub(super) came: Bytes,
    /// No packet from the first one on is acknowledged. Until then only probes are sent.
    lasts: bool,
}

impl TimedOutRange {
    /// Returns the payload of unknown state: it may still be in flight, and counts against the window.
    pub(super) fn open(&self) -> Bytes {
        self.lost - self.came.min(self.lost)
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
    silence: Option<TimedOutRange>,
}

/// Effect of an acknowledgement on the timer state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// The acknowledgement ends the peer's silence.
    pub(super) ends_silence: bool,
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
    pub(super) fn allow_a_probe(&self) -> bool {
        self.probes > 0
    }

    /// Returns whether only probes may be sent.
    pub(super) fn hold_all_back(&self) -> bool {
        self.silence.is_some_and(|silence| silence.lasts)
    }

    /// Returns the payload that counts against the window in addition to what is in flight; `None` if nothing is
    /// unresolved.
    pub(super) fn open(&self) -> Option<Bytes> {
        self.silence.map(|silence| silence.open())
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
        debug_assert!(self.silence.is_none_or(|old| old.numbers.last < numbers.first), "a packet times out twice");
        let new = TimedOutRange { numbers, lost, came: Bytes::ZERO, lasts: true };
        match self.silence.replace(new) {
            Some(before) if before.lasts => {
                let numbers = Range { first: before.numbers.first, last: numbers.last };
                self.silence = Some(TimedOutRange { numbers, lost: before.lost + lost, ..before });
                None
            }
            before => before,
        }
    }

    /// Records the arrival of a packet that was declared lost. Returns whether a timeout had declared it lost.
    pub(super) fn came(&mut self, number: u64, bytes: Bytes) -> bool {
        let taken = self.silence.as_mut().filter(|it| it.numbers.contains(number));
        match taken {
            Some(silence) => silence.came += bytes,
            None => return false,
        }
        true
    }

    /// Processes the number of the newest packet that an acknowledgement newly acknowledges.
    pub(super) fn heard(&mut self, number: u64) -> Answered {
        // An acknowledgement of packets sent before a silence does not end it.
        let ends_silence = self.silence.is_none_or(|silence| silence.numbers.first <= number);
        if ends_silence {
            (self.count, self.first_at, self.probes) = (0, None, 0);
        }
        if let Some(silence) = &mut self.silence {
            silence.lasts &= !ends_silence;
        }
        Answered { ends_silence, over: self.silence.take_if(|silence| silence.numbers.last <= number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Bytes = Bytes::new(1_000);

    fn range(first: u64, last: u64) -> Range {
        Range { first, last }
    }

    fn struck() -> TimeoutState {
        let mut strikes = TimeoutState::default();
        let probes = [1, 2, 3].map(|ms| strikes.expire(Time::from_ms(ms)));
        assert_eq!((probes, strikes.first_at()), ([true, true, false], Some(Time::from_ms(1))));
        assert!(strikes.take(range(10, 19), KB).is_none());
        strikes
    }

    #[test]
    fn what_left_before_a_silence_does_not_end_it() {
        let mut strikes = struck();
        strikes.probe();
        assert!(strikes.allow_a_probe() && strikes.hold_all_back());
        let heard = strikes.heard(9);
        assert!(!heard.ends_silence && heard.over.is_none());
        assert_eq!((strikes.count(), strikes.hold_all_back(), strikes.open()), (3, true, Some(KB)));
        strikes.sent();
        assert!(!strikes.allow_a_probe());
    }

    #[test]
    fn an_answer_to_part_of_it_opens_the_window_for_that_part() {
        let mut strikes = struck();
        assert!(strikes.came(12, Bytes::new(100)) && !strikes.came(9, Bytes::new(100)));
        let heard = strikes.heard(12);
        assert!(heard.ends_silence && heard.over.is_none() && !strikes.hold_all_back());
        assert_eq!((strikes.count(), strikes.first_at(), strikes.open()), (0, None, Some(Bytes::new(900))));
        // A packet newer than all of them resolves the rest.
        let over = strikes.heard(20).over.unwrap();
        assert_eq!((over.numbers, over.open(), strikes.open()), (range(10, 19), Bytes::new(900), None));
    }

    #[test]
    fn two_timeouts_are_one_silence_unless_something_was_heard_between() {
        let mut strikes = struck();
        assert!(strikes.take(range(20, 24), KB).is_none());
        assert_eq!(strikes.open(), Some(Bytes::new(2_000)));
        assert_eq!(strikes.heard(24).over.unwrap().numbers, range(10, 24));
        let mut strikes = struck();
        strikes.heard(15);
        let before = strikes.take(range(20, 24), KB).unwrap();
        assert_eq!((before.numbers, strikes.open()), (range(10, 19), Some(KB)));
    }
}
