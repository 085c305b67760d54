//! A congestion window in bytes: additive increase without lost remainders, multiplicative cut, floor and cap.

use units::{Bytes, Frac};

/// Limit on the payload in flight, in bytes.
///
/// At 400 Gb/s x 100 ms a window is 5 GB, and one acknowledged packet is then worth a ten-thousandth of a byte
/// of additive increase. So the remainder of each division is carried to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Window {
    bytes: u64,
    carry: u64, // numerator of the increase not yet granted, under `bytes`
    floor: u64,
    cap: u64,
}

impl Window {
    /// Upper bound of any cap: 2^40 bytes, the range for which products are stated.
    pub const LIMIT: Bytes = Bytes::new(1 << 40);

    /// Maximum step of additive increase per round trip, and maximum bytes that one acknowledgement counts for: their product
    /// is below 2^63, so that a carry below 2^40 can be added to it.
    const LARGEST_STEP: u64 = (1 << 32) - 1;
    const LARGEST_ACK: u64 = 1 << 31;

    /// A window of `initial`, never under `floor` (at least 1 byte), never over `cap` (at most
    /// [`Window::LIMIT`], at least `floor`).
    pub fn new(initial: Bytes, floor: Bytes, cap: Bytes) -> Self {
        // Not `clamp`, which panics where its bounds are crossed: BPF cannot panic.
        let floor = floor.get().min(Self::LIMIT.get()).max(1);
        let cap = cap.get().min(Self::LIMIT.get()).max(floor);
        Self { bytes: initial.get().min(cap).max(floor), carry: 0, floor, cap }
    }

    /// Its size.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// The smallest it may be.
    pub const fn floor(&self) -> Bytes {
        Bytes::new(self.floor)
    }

    /// The largest it may be.
    pub const fn cap(&self) -> Bytes {
        Bytes::new(self.cap)
    }

    /// A full packet now has `mss` bytes: the floor is one packet, the cap at least that, and the window is kept within these
    /// bounds. Returns whether the size has changed.
    pub fn follow(&mut self, mss: Bytes) -> bool {
        let floor = mss.get().min(Self::LIMIT.get()).max(1);
        let is_new = floor != self.floor;
        self.floor = floor;
        self.cap = self.cap.max(floor);
        self.bytes = self.bytes.max(floor);
        is_new
    }

    /// Additive increase: `cwnd <- cwnd + step * acked / cwnd`, so `step` for each window acknowledged. Returns whether it
    /// grew by at least a byte.
    #[inline]
    pub fn increase(&mut self, step: Bytes, acked: Bytes) -> bool {
        let window = self.bytes();
        let grown = share(&mut self.carry, step, acked, window);
        self.open(grown)
    }

    /// Grows by `by`, up to the cap. Returns whether it grew.
    #[inline]
    pub fn open(&mut self, by: Bytes) -> bool {
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(by.get()).min(self.cap);
        self.bytes > before
    }

    /// Shrinks by `by`, down to the floor. Returns whether it shrank.
    pub fn shrink(&mut self, by: Bytes) -> bool {
        let before = self.bytes;
        self.set(self.bytes().saturating_sub(by));
        self.bytes < before
    }

    /// Multiplicative decrease: `cwnd <- cwnd * (1 - by)`, not under the floor.
    pub fn cut(&mut self, by: Frac) -> bool {
        self.shrink(self.bytes().scaled(by))
    }

    /// Sets the window to `bytes`, within floor and cap.
    pub fn set(&mut self, bytes: Bytes) {
        self.bytes = bytes.get().min(self.cap).max(self.floor);
        self.carry = 0;
    }

    /// Shrinks to the floor.
    pub fn collapse(&mut self) {
        self.set(Bytes::ZERO);
    }
}

/// `step * acked / window` in whole bytes, its remainder kept in `carry` for the next call. A `window` of 0 counts as 1.
pub(crate) fn share(carry: &mut u64, step: Bytes, acked: Bytes, window: Bytes) -> Bytes {
    // Under 2^32 * 2^31 + 2^40.
    let sum = step.get().min(Window::LARGEST_STEP) * acked.get().min(Window::LARGEST_ACK) + *carry;
    let window = window.get().max(1);
    *carry = sum % window;
    Bytes::new(sum / window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: Bytes = Bytes::new(1_000);

    #[test]
    fn a_window_acknowledged_grows_by_one_step() {
        let mut window = Window::new(Bytes::new(10_000), MSS, Window::LIMIT);
        for _ in 0..10 {
            window.increase(MSS, MSS);
        }
        // The denominator grows with the window: 10 terms of 1000 * 1000 / cwnd from 10,000 up are 957.7.
        assert!((10_957..=10_958).contains(&window.bytes().get()), "{window:?}");
    }

    #[test]
    fn slow_growth_at_a_long_haul_window_is_not_lost() {
        let five_gb = 5_000_000_000;
        let mut window = Window::new(Bytes::new(five_gb), MSS, Window::LIMIT);
        // 1,000 B a round trip, a 4,096 B packet at a time: 0.0008 B each.
        let mut acked = 0;
        while acked < five_gb {
            window.increase(MSS, Bytes::new(4_096));
            acked += 4_096;
        }
        let grown = window.bytes().get() - five_gb;
        assert!((999..=1_000).contains(&grown), "{grown}");
    }

    #[test]
    fn a_cut_is_a_product() {
        let mut window = Window::new(Bytes::new(80_000), MSS, Window::LIMIT);
        assert!(window.cut(Frac::HALF.half()));
        assert_eq!(window.bytes(), Bytes::new(60_000));
        window.cut(Frac::ONE);
        assert_eq!(window.bytes(), MSS);
        assert!(!window.cut(Frac::ONE));
    }

    #[test]
    fn a_new_mss_moves_the_floor_only() {
        let mut window = Window::new(MSS.times(10), MSS, MSS.times(20));
        window.increase(MSS, MSS.times(3));
        let before = window;
        assert!(!window.follow(MSS));
        assert_eq!(window, before);
        assert!(window.follow(Bytes::new(500)));
        assert_eq!((window.bytes(), window.floor(), window.cap()), (before.bytes(), Bytes::new(500), MSS.times(20)));
        // A jumbo packet exceeds the window and the cap.
        assert!(window.follow(MSS.times(30)));
        assert_eq!((window.bytes(), window.floor(), window.cap()), (MSS.times(30), MSS.times(30), MSS.times(30)));
        assert!(window.follow(Bytes::ZERO));
        assert_eq!(window.floor(), Bytes::new(1));
    }

    #[test]
    fn invalid_limits_are_clamped() {
        let window = Window::new(Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        assert_eq!(window.bytes(), Bytes::new(1));
    }

    #[derive(Clone, Copy, Debug)]
    enum WindowStep {
        Increase(u64, u64),
        Open(u64),
        Shrink(u64),
        Cut(u64),
        Set(u64),
        Follow(u64),
    }

    fn step() -> impl Strategy<Value = WindowStep> {
        prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(s, a)| WindowStep::Increase(s, a)),
            any::<u64>().prop_map(WindowStep::Open),
            any::<u64>().prop_map(WindowStep::Shrink),
            (0..1u64 << 34).prop_map(WindowStep::Cut),
            any::<u64>().prop_map(WindowStep::Set),
            (0..1u64 << 41).prop_map(WindowStep::Follow),
        ]
    }

    proptest! {
        #[test]
        fn stays_between_floor_and_cap(
            floor in 1..10_000u64, cap in any::<u64>(), steps in proptest::collection::vec(step(), 1..50),
        ) {
            let mut window = Window::new(Bytes::new(floor * 10), Bytes::new(floor), Bytes::new(cap));
            for step in steps {
                let before = window.bytes();
                match step {
                    WindowStep::Increase(step, acked) => {
                        window.increase(Bytes::new(step), Bytes::new(acked));
                        prop_assert!(window.bytes() >= before);
                    }
                    WindowStep::Open(by) => {
                        window.open(Bytes::new(by));
                        prop_assert!(window.bytes() >= before);
                    }
                    WindowStep::Shrink(by) => {
                        window.shrink(Bytes::new(by));
                        prop_assert!(window.bytes() <= before);
                    }
                    WindowStep::Cut(bits) => {
                        window.cut(Frac::from_bits(bits));
                        prop_assert!(window.bytes() <= before);
                    }
                    WindowStep::Set(bytes) => window.set(Bytes::new(bytes)),
                    WindowStep::Follow(mss) => {
                        window.follow(Bytes::new(mss));
                        prop_assert!(window.bytes() == before.max(window.floor()));
                    }
                }
                prop_assert!(window.bytes() >= window.floor() && window.bytes() <= window.cap());
                prop_assert!(window.carry < window.bytes);
            }
        }

        #[test]
        fn shares_add_up(step in 1..1u64 << 32, packets in proptest::collection::vec(1..10_000u64, 1..100)) {
            let whole = Bytes::new(1 << 33);
            let (mut carry, mut sum) = (0, 0);
            for packet in &packets {
                sum += share(&mut carry, Bytes::new(step), Bytes::new(*packet), whole).get();
            }
            let exact = (u128::from(step) * u128::from(packets.iter().sum::<u64>())) >> 33;
            prop_assert_eq!(u128::from(sum), exact);
        }
    }
}
