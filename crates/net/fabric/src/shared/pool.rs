//! Accounts of a shared buffer: its use by each cable and class, and admission of packets.
//!
//! A packet in the switch is booked on the cable and class by which it arrived: first on the reserve there, then on the
//! shared part as long as the threshold permits, then on the cable's headroom. A departing packet frees headroom first,
//! then the shared part, then the reserve.

use units::Bytes;

use super::{CLASSES, Switch};
use crate::ingress_limit::{IngressLimit, Limit};

/// Buffer use of one cable and class.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    /// Use of reserve and shared part together.
    used: u64,
    headroom: u64,
    /// The sender at the cable's other end is paused.
    paused: bool,
}

/// Admission of a packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BufferAdmission {
    /// The packet is booked.
    Booked,
    /// No room: the packet is not booked.
    None,
}

#[derive(Debug)]
pub(super) struct BufferPool {
    /// Part of the buffer that is neither reserve nor headroom.
    shared: u64,
    shared_used: u64,
    /// All that is booked.
    held: u64,
    max_held: u64,
    reserve: u64,
    pauses: bool,
    gates: Vec<IngressLimit>,
    /// Minimum free space of the shared part, for each gate. With less, its threshold is zero, and even reserved bytes
    /// trigger a pause.
    min_free: Vec<u64>,
    accounts: Vec<[Account; CLASSES]>,
}

impl BufferPool {
    /// The buffer of a switch with these cables. `classes` is how many data classes have a reserve and headroom.
    pub(super) fn new(switch: &Switch, gates: Vec<IngressLimit>, classes: u64) -> Self {
        let reserved = reserved_bytes(switch, &gates, classes);
        Self {
            shared: switch.buffer.get().saturating_sub(reserved.get()),
            shared_used: 0,
            held: 0,
            max_held: 0,
            reserve: switch.reserve.get(),
            pauses: switch.pfc.is_some(),
            accounts: vec![[Account::default(); CLASSES]; gates.len()],
            min_free: gates.iter().map(|gate| min_free(gate.xoff)).collect(),
            gates,
        }
    }

    /// Returns the free space of the shared part.
    pub(super) fn free(&self) -> u64 {
        self.shared - self.shared_used
    }

    pub(super) fn held(&self) -> Bytes {
        Bytes::new(self.held)
    }

    pub(super) fn max_held(&self) -> Bytes {
        Bytes::new(self.max_held)
    }

    /// Returns the bytes booked on a cable, all classes.
    pub(super) fn held_by(&self, port: usize) -> Bytes {
        Bytes::new(self.accounts[port].iter().map(|it| it.used + it.headroom).sum())
    }

    /// Returns the bytes of the shared part that a class of a cable may hold now.
    fn threshold(&self, port: usize, shared_by: u64) -> u64 {
        match self.gates[port].xoff {
            // A fixed threshold promises no bytes that others hold already.
            Limit::Bytes(bytes) => bytes.get().min(shared_by + self.free()),
            Limit::Alpha(alpha) => alpha.of(self.free()),
        }
    }

    /// Books a packet that arrives.
    #[inline(always)]
    pub(super) fn arrive(&mut self, port: usize, class: usize, size: u64) -> BufferAdmission {
        let account = &mut self.accounts[port][class];
        let after = (account.used + size).saturating_sub(self.reserve);
        if after > 0 {
            return self.arrive_beyond_reserve(port, class, size);
        }
        account.used += size;
        self.hold(size);
        BufferAdmission::Booked
    }

    fn arrive_beyond_reserve(&mut self, port: usize, class: usize, size: u64) -> BufferAdmission {
        let account = self.accounts[port][class];
        let before = account.used.saturating_sub(self.reserve);
        let after = (account.used + size).saturating_sub(self.reserve);
        if after <= self.threshold(port, before) && after - before <= self.free() {
            self.accounts[port][class].used += size;
            self.shared_used += after - before;
        } else if self.pauses && account.headroom + size <= self.gates[port].headroom.get() {
            self.accounts[port][class].headroom += size;
        } else {
            return BufferAdmission::None;
        }
        debug_assert!(self.shared_used <= self.shared, "{} of {} B are shared", self.shared_used, self.shared);
        self.hold(size);
        BufferAdmission::Booked
    }

    #[inline(always)]
    fn hold(&mut self, size: u64) {
        self.held += size;
        self.max_held = self.max_held.max(self.held);
    }

    /// Frees the buffer of a packet.
    #[inline]
    pub(super) fn depart(&mut self, port: usize, class: usize, size: u64) {
        let account = &mut self.accounts[port][class];
        debug_assert!(size <= account.used + account.headroom, "{size} B leave an account of {account:?}");
        let of_headroom = size.min(account.headroom);
        account.headroom -= of_headroom;
        let before = account.used.saturating_sub(self.reserve);
        account.used -= size - of_headroom;
        self.shared_used -= before - account.used.saturating_sub(self.reserve);
        self.held -= size;
        debug_assert!(self.shared_used <= self.held, "{} of {} B are shared", self.shared_used, self.held);
    }

    /// Returns whether the sender at a cable's other end must be paused now. Then it counts as paused.
    #[inline(always)]
    pub(super) fn pauses(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        let is_within_reserve = account.used <= self.reserve && account.headroom == 0;
        if !self.pauses || account.paused || is_within_reserve && self.free() >= self.min_free[port] {
            return false;
        }
        self.crosses(port, class)
    }

    fn crosses(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        let shared = account.used.saturating_sub(self.reserve);
        let pauses = account.headroom > 0 || shared >= self.threshold(port, shared);
        self.accounts[port][class].paused = pauses;
        pauses
    }

    /// Returns whether a paused sender may resume now. Then it counts as running.
    #[inline]
    pub(super) fn resumes(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        if !account.paused || account.headroom > 0 {
            return false;
        }
        let shared = account.used.saturating_sub(self.reserve);
        let resumes = shared == 0 || shared + self.gates[port].xon_offset.get() <= self.threshold(port, shared);
        self.accounts[port][class].paused = !resumes;
        resumes
    }

    /// Checks the accounts, where `booked` is booked on each cable and class.
    pub(super) fn check(&self, booked: &[[u64; CLASSES]]) -> Result<(), String> {
        for (port, (accounts, booked)) in self.accounts.iter().zip(booked).enumerate() {
            for (class, (account, &booked)) in accounts.iter().zip(booked).enumerate() {
                let held = account.used + account.headroom;
                if held != booked {
                    return Err(format!("port {port} holds {booked} B of class {class} and its account has {held} B"));
                }
            }
        }
        let all = || self.accounts.iter().flatten();
        let shared: u64 = all().map(|account| account.used.saturating_sub(self.reserve)).sum();
        let held: u64 = all().map(|account| account.used + account.headroom).sum();
        if (shared, held) != (self.shared_used, self.held) || shared > self.shared {
            return Err(format!(
                "accounts hold {held} B, {shared} B of them shared; the pool counts {} B and {} B, of {} B to share",
                self.held, self.shared_used, self.shared
            ));
        }
        Ok(())
    }

    /// Returns whether the sender at a cable's other end is paused.
    pub(super) fn is_paused(&self, port: usize, class: usize) -> bool {
        self.accounts[port][class].paused
    }
}

/// Returns the minimum free space of the shared part for a threshold over zero.
fn min_free(off: Limit) -> u64 {
    match off {
        Limit::Bytes(Bytes::ZERO) => u64::MAX,
        Limit::Bytes(_) => 1,
        // alpha * free is at least 1 from 1 / alpha on, rounded up.
        Limit::Alpha(alpha) if alpha.bits() > 0 => (1u64 << 32).div_ceil(alpha.bits()),
        Limit::Alpha(_) => u64::MAX,
    }
}

/// Returns the bytes that a switch keeps for reserves and headroom; its buffer must be larger.
pub fn reserved_bytes(switch: &Switch, gates: &[IngressLimit], classes: u64) -> Bytes {
    let headroom: u128 = gates.iter().map(|gate| u128::from(gate.headroom.get())).sum();
    let headroom = if switch.pfc.is_some() { headroom } else { 0 };
    let reserve = u128::from(switch.reserve.get()) * gates.len() as u128;
    Bytes::new(u64::try_from((headroom + reserve) * u128::from(classes)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pfc;
    use proptest::prelude::*;
    use units::Frac;

    fn switch(buffer: u64, pfc: bool) -> Switch {
        Switch {
            buffer: Bytes::new(buffer),
            reserve: Bytes::new(1_000),
            egress_alpha: None,
            pfc: pfc.then_some(Pfc { frame: 64, relay: false }),
            int: false,
        }
    }

    fn gate(off: Limit) -> IngressLimit {
        IngressLimit { xoff: off, xon_offset: Bytes::new(500), headroom: Bytes::new(4_000) }
    }

    #[test]
    fn reserve_then_shared_then_headroom() {
        // 20,000 - 2 x (1,000 + 4,000) leaves 10,000 to share; one class may use as much of it as remains free (alpha 1).
        let mut pool = BufferPool::new(&switch(20_000, true), vec![gate(Limit::Alpha(Frac::ONE)); 2], 1);
        assert_eq!(pool.arrive(0, 1, 1_000), BufferAdmission::Booked);
        assert_eq!((pool.free(), pool.pauses(0, 1)), (10_000, false));
        assert_eq!(pool.arrive(0, 1, 5_000), BufferAdmission::Booked);
        // It has 5,000 and 5,000 are left: at its threshold.
        assert_eq!((pool.free(), pool.pauses(0, 1), pool.pauses(0, 1)), (5_000, true, false));
        assert_eq!(pool.arrive(0, 1, 3_000), BufferAdmission::Booked);
        assert_eq!(pool.arrive(0, 1, 3_000), BufferAdmission::None);
        assert_eq!((pool.free(), pool.held(), pool.held_by(0)), (5_000, Bytes::new(9_000), Bytes::new(9_000)));
        // Headroom goes first.
        pool.depart(0, 1, 3_000);
        assert!((pool.free(), pool.resumes(0, 1)) == (5_000, false));
        pool.depart(0, 1, 250);
        assert!((pool.free(), pool.resumes(0, 1)) == (5_250, true));
        assert!(!pool.resumes(0, 1) && !pool.is_paused(0, 1));
        pool.depart(0, 1, 5_750);
        assert_eq!((pool.free(), pool.held()), (10_000, Bytes::ZERO));
    }

    #[test]
    fn a_fixed_threshold_is_limited_by_the_free_space() {
        let mut pool = BufferPool::new(&switch(12_000, false), vec![gate(Limit::Bytes(Bytes::new(8_000))); 2], 1);
        assert_eq!(pool.arrive(0, 1, 9_000), BufferAdmission::Booked);
        assert_eq!(pool.arrive(0, 1, 1), BufferAdmission::None);
        assert_eq!((pool.arrive(1, 1, 3_000), pool.arrive(1, 1, 1)), (BufferAdmission::Booked, BufferAdmission::None));
    }

    proptest! {
        /// Accounts balance and the buffer is never overbooked, for any sequence of packets.
        #[test]
        fn accounts_balance(moves in proptest::collection::vec((0..3usize, 1..3usize, 1..3_000u64, any::<bool>()), 0..300)) {
            let mut pool = BufferPool::new(&switch(60_000, true), vec![gate(Limit::Alpha(Frac::ratio(1, 2))); 3], 2);
            let mut inside: Vec<(usize, usize, u64)> = Vec::new();
            for (port, class, size, leaves) in moves {
                if leaves && !inside.is_empty() {
                    let (port, class, size) = inside.remove(size as usize % inside.len());
                    pool.depart(port, class, size);
                    pool.resumes(port, class);
                } else if pool.arrive(port, class, size) == BufferAdmission::Booked {
                    inside.push((port, class, size));
                    pool.pauses(port, class);
                }
                let held: u64 = inside.iter().map(|it| it.2).sum();
                prop_assert_eq!(pool.held().get(), held);
                prop_assert_eq!((0..3).map(|port| pool.held_by(port).get()).sum::<u64>(), held);
                prop_assert!(held <= 60_000 && pool.shared_used <= pool.shared);
                let mut booked = [[0; CLASSES]; 3];
                for &(port, class, size) in &inside {
                    booked[port][class] += size;
                }
                prop_assert_eq!(pool.check(&booked), Ok(()));
                booked[1][2] += 1;
                prop_assert!(pool.check(&booked).unwrap_err().contains("port 1 holds"));
                booked[1][2] -= 1;
                pool.held += 1;
                prop_assert!(pool.check(&booked).unwrap_err().contains("the pool counts"));
                pool.held -= 1;
            }
            for (port, class, size) in inside {
                pool.depart(port, class, size);
            }
            prop_assert!(pool.held().is_zero() && pool.shared_used == 0);
        }
    }
}
