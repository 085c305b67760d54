//! Black hole detection: a path that begins to lose only its longer packets (RFC 8899 §4.3).

/// Consecutive losses of full packets after which they are considered too long.
const MIN_BLACK_HOLE_LOSSES: u8 = 3;

/// Loss of full packets of a subflow: those that are longer than the smallest packet size. The order of a packet is its
/// position among all sent packets.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BlackHoleDetector {
    /// Consecutive losses, without the arrival of a packet that was sent later.
    consecutive_losses: u8,
    /// The lowest order of these losses.
    first: u64,
    /// The highest order of full packets that arrived. The loss of a packet sent earlier carries no information about sizes.
    newest_full: u64,
    /// The highest order of smaller packets that arrived. If it was sent before the lost packets, it proves nothing:
    /// the peer may only be late.
    newest_small: u64,
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
            PacketSize::Small => self.newest_small = self.newest_small.max(order),
            PacketSize::Full => {
                *self = Self {
                    newest_full: self.newest_full.max(order),
                    newest_small: self.newest_small,
                    ..Self::default()
                }
            }
        }
    }

    /// Counts the loss of a full packet, shown by the ACK of a later one. Expired timers prove nothing.
    pub(crate) fn on_loss(&mut self, order: u64) {
        if order > self.newest_full {
            self.first = if self.consecutive_losses == 0 { order } else { self.first.min(order) };
            self.consecutive_losses = self.consecutive_losses.saturating_add(1);
        }
        debug_assert!(
            self.consecutive_losses == 0 || self.first > self.newest_full,
            "a loss from before the newest arrival counts"
        );
    }

    /// Returns whether only small packets arrive.
    pub(crate) fn is_black_hole(&self) -> bool {
        self.consecutive_losses >= MIN_BLACK_HOLE_LOSSES && self.newest_small > self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks detection when three full packets are lost and a small one sent after the first of them arrives, in any order
    /// of reports. A small packet sent before proves nothing, nor does any packet once a later full one has arrived.
    #[test]
    fn losing_only_full_packets_shows_a_black_hole() {
        let mut full = BlackHoleDetector::default();
        full.on_arrival(PacketSize::Small, 4);
        for order in [5, 6, 7] {
            full.on_loss(order);
        }
        assert!(!full.is_black_hole());
        full.on_arrival(PacketSize::Small, 8);
        assert!(full.is_black_hole());

        let mut full = BlackHoleDetector::default();
        full.on_arrival(PacketSize::Small, 8);
        for order in [5, 6, 7] {
            full.on_loss(order);
        }
        assert!(full.is_black_hole());
        full.on_arrival(PacketSize::Full, 7);
        for order in [3, 4, 6] {
            full.on_loss(order);
        }
        assert!(!full.is_black_hole());
    }
}
