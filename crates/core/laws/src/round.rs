//! A round trip from a sender's view, with the payload acknowledged and marked in it.

use units::{Bytes, Frac};

use crate::Ack;

/// A round trip. It ends when a packet sent after the round began is acknowledged, so it does not depend on the order of
/// acknowledgements. The first acknowledgement of a flow ends its first round.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Round {
    began: Bytes, // delivered count at its start
    acked: Bytes,
    marked: Bytes,
}

impl Round {
    /// The round that a flow starts in.
    pub const fn new() -> Self {
        Self { began: Bytes::ZERO, acked: Bytes::ZERO, marked: Bytes::ZERO }
    }

    /// Counts the payload and the marks of `ack`.
    #[inline]
    pub fn count(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(ack.marked);
    }

    /// Returns whether the packet that `ack` acknowledges was sent after this round began.
    #[inline]
    pub fn is_over(&self, ack: &Ack) -> bool {
        ack.delivered_at_send >= self.began
    }

    /// Begins the next round.
    #[inline]
    pub fn restart(&mut self, ack: &Ack) {
        *self = Self { began: ack.delivered, ..Self::new() };
    }

    /// The payload acknowledged so far in this round.
    pub const fn acked(&self) -> Bytes {
        self.acked
    }

    /// Returns whether any payload of the round was marked.
    pub const fn saw_marks(&self) -> bool {
        !self.marked.is_zero()
    }

    /// Returns the marked fraction of the round: 0 to 1, also if marks arrived late.
    pub fn marked_fraction(&self) -> Frac {
        marked_fraction(self.marked, self.acked)
    }
}

/// `marked / acked`, 0 to 1: marks in excess of the bytes arrived late, and count as 1.
pub(crate) fn marked_fraction(marked: Bytes, acked: Bytes) -> Frac {
    if marked.is_zero() {
        Frac::ZERO
    } else if marked >= acked {
        Frac::ONE
    } else {
        marked.fraction_of(acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};
    use proptest::prelude::*;

    fn acked(delivered_at_send: u64, delivered: u64, marked: u64) -> Ack<'static> {
        let (delivered_at_send, delivered) = (Bytes::new(delivered_at_send), Bytes::new(delivered));
        Ack { delivered, delivered_at_send, marked: Bytes::new(marked), ..ack(&PATH, 0) }
    }

    #[test]
    fn ends_with_the_first_packet_sent_after_it_began() {
        let mut round = Round::new();
        assert!(round.is_over(&acked(0, 4_096, 0)));
        round.restart(&acked(0, 4_096, 0));
        // Sent before the round began, although acknowledged late.
        assert!(!round.is_over(&acked(0, 40_960, 0)));
        assert!(round.is_over(&acked(4_096, 45_056, 0)));
    }

    #[test]
    fn counts_marks() {
        let mut round = Round::new();
        round.count(&acked(0, 4_096, 0));
        assert!(!round.saw_marks());
        round.count(&acked(0, 8_192, 4_096));
        assert_eq!(round.marked_fraction(), Frac::HALF);
        assert_eq!(round.acked(), Bytes::new(8_192));
        round.restart(&acked(0, 8_192, 0));
        assert!(!round.saw_marks());
    }

    proptest! {
        #[test]
        fn a_fraction_is_at_most_one(marked: u64, acked: u64) {
            prop_assert!(marked_fraction(Bytes::new(marked), Bytes::new(acked)) <= Frac::ONE);
        }
    }
}
