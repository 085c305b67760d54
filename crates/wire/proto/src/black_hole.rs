//! Black hole detection: a path that begins to lose only its longer packets (RFC 8899 §4.3).

/// Consecutive losses of full packets after which they are considered too long.
const MAX_LOST_FULL: u8 = 3;

/// Loss of full packets of a subflow: those that are longer than the smallest packet size. The order of a packet is its
/// position among all sent packets.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BlackHoleDetector {
    /// Consecutive losses, without the arrival of a packet that was sent later.
    in_a_row: u8,
    /// The lowest order of these losses.
    first: u64,
    /// The highest order of full packets that arrived. The loss of a packet sent earlier carries no information about sizes.
    came: u64,
    /// The highest order of smaller packets that arrived. If it was sent before the lost packets, it proves nothing:
    /// the peer may only be late.
    small: u64,
}

/// Size of a packet relative to the smallest packet size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketSize {
    /// At most the smallest packet size.
    Small,
    /// Longer than that.
    Full,
}

impl BlackHoleDetector {
    /// Records the arrival of a packet.
    pub(crate) fn on_arrival(&mut self, size: PacketSize, order: u64) {
        match size {
            PacketSize::Small => self.small = self.small.max(order),
            PacketSize::Full => *self = Self { came: self.came.max(order), small: self.small, ..Self::default() },
        }
    }

    /// Counts the loss of a full packet, shown by the ACK of a later one. Expired timers prove nothing.
    pub(crate) fn lose(&mut self, order: u64) {
        if order > self.came {
            self.first = if self.in_a_row == 0 { order } else { self.first.min(order) };
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
        debug_assert!(self.in_a_row == 0 || self.first > self.came, "a loss from before the newest arrival counts");
    }

    /// Returns whether only small packets arrive.
    pub(crate) fn is_black_hole(&self) -> bool {
        self.in_a_row >= MAX_LOST_FULL && self.small > self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks detection when three full packets are lost and a small one sent after the first of them arrives, in any order
    /// of reports. A small packet sent before proves nothing, nor does any packet once a later full one has arrived.
    #[test]
    fn small_packets_alone_prove_a_black_hole() {
        let mut full = BlackHoleDetector::default();
        full.on_arrival(PacketSize::Small, 4);
        for order in [5, 6, 7] {
            full.lose(order);
        }
        assert!(!full.is_black_hole());
        full.on_arrival(PacketSize::Small, 8);
        assert!(full.is_black_hole());

        let mut full = BlackHoleDetector::default();
        full.on_arrival(PacketSize::Small, 8);
        for order in [5, 6, 7] {
            full.lose(order);
        }
        assert!(full.is_black_hole());
        full.on_arrival(PacketSize::Full, 7);
        for order in [3, 4, 6] {
            full.lose(order);
        }
        assert!(!full.is_black_hole());
    }
}
