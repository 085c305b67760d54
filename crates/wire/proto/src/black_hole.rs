//! A path that has begun to lose its longer packets alone (RFC 8899 §4.3).

/// So many full packets lost in a row show that they are too long.
const MOST_LOST_FULL: u8 = 3;

/// How full packets of a subflow fare, those that are longer than the smallest packet size. Orders are packets' places among all that
/// left.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LostFull {
    /// So many were lost, and none has come that left later.
    in_a_row: u8,
    /// The order of the first of them.
    first: u64,
    /// The highest order of those that have come: what left before it and is lost says nothing of sizes.
    came: u64,
    /// The highest order of smaller ones that have come. If it left before those that are lost it proves nothing: the peer may
    /// only be late.
    small: u64,
}

impl LostFull {
    pub(crate) fn come(&mut self, is_small: bool, order: u64) {
        if is_small {
            self.small = self.small.max(order);
        } else {
            *self = Self { came: self.came.max(order), small: self.small, ..Self::default() };
        }
    }

    /// A full packet is lost, by an answer to a later one: timers prove nothing.
    pub(crate) fn lose(&mut self, order: u64) {
        if order > self.came {
            self.first = if self.in_a_row == 0 { order } else { self.first.min(order) };
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
    }

    /// Whether small packets alone come.
    pub(crate) fn is_black_hole(&self) -> bool {
        self.in_a_row >= MOST_LOST_FULL && self.small > self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three full packets are lost, and a small one comes that left after the first of them, whichever is known first. One that
    /// left before proves nothing, nor does anything once a later full one has come.
    #[test]
    fn small_packets_alone_prove_a_black_hole() {
        let mut full = LostFull::default();
        full.come(true, 4);
        for order in [5, 6, 7] {
            full.lose(order);
        }
        assert!(!full.is_black_hole());
        full.come(true, 8);
        assert!(full.is_black_hole());

        let mut full = LostFull::default();
        full.come(true, 8);
        for order in [5, 6, 7] {
            full.lose(order);
        }
        assert!(full.is_black_hole());
        full.come(false, 7);
        for order in [3, 4, 6] {
            full.lose(order);
        }
        assert!(!full.is_black_hole());
    }
}
