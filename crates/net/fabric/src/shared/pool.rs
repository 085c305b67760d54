//! Accounts of a shared buffer: its use by each ingress port and class, and admission of packets.
//!
//! A packet in the switch is charged to the ingress port and class by which it arrived: first to the reserve there, then
//! to the shared part as long as the threshold permits, then to the port's headroom. A departing packet frees headroom
//! first, then the shared part, then the reserve.

use units::Bytes;

use super::{CLASSES, Switch};
use crate::ingress_limit::{IngressLimit, Limit};

/// Buffer use of one ingress port and class, in bytes.
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
    /// The packet is charged to its account.
    Admitted,
    /// No room: the packet must be dropped.
    Rejected,
}

#[derive(Debug)]
pub(super) struct BufferPool {
    /// Part of the buffer that is neither reserve nor headroom.
    shared: u64,
    shared_used: u64,
    /// Bytes charged to all accounts: reserve, shared part and headroom.
    held: u64,
    max_held: u64,
    reserve: u64,
    pfc_enabled: bool,
    ingress_limits: Vec<IngressLimit>,
    /// Minimum free space of the shared part, for each port. With less, the port's threshold is zero, and even bytes
    /// within the reserve trigger a pause.
    min_free: Vec<u64>,
    accounts: Vec<[Account; CLASSES]>,
}

impl BufferPool {
    /// Creates the accounts of a switch, one for each ingress limit and class. `classes` is the number of data classes
    /// with a reserve and headroom.
    pub(super) fn new(switch: &Switch, ingress_limits: Vec<IngressLimit>, classes: u64) -> Self {
        let reserved = reserved_bytes(switch, &ingress_limits, classes);
        Self {
            shared: switch.buffer.get().saturating_sub(reserved.get()),
            shared_used: 0,
            held: 0,
            max_held: 0,
            reserve: switch.reserve.get(),
            pfc_enabled: switch.pfc.is_some(),
            accounts: vec![[Account::default(); CLASSES]; ingress_limits.len()],
            min_free: ingress_limits.iter().map(|limit| min_free(limit.xoff)).collect(),
            ingress_limits,
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

    /// Returns the bytes charged to an ingress port, all classes.
    pub(super) fn held_by(&self, port: usize) -> Bytes {
        Bytes::new(self.accounts[port].iter().map(|it| it.used + it.headroom).sum())
    }

    /// Returns the bytes of the shared part that a class of an ingress port may hold now. `shared_by` is what it holds.
    fn threshold(&self, port: usize, shared_by: u64) -> u64 {
        match self.ingress_limits[port].xoff {
            // What others hold is not available: the limit is what this class holds plus the free space.
            Limit::Bytes(bytes) => bytes.get().min(shared_by + self.free()),
            Limit::Alpha(alpha) => alpha.of(self.free()),
        }
    }

    /// Charges an arriving packet to its account, if there is room.
    #[inline(always)]
    pub(super) fn arrive(&mut self, port: usize, class: usize, size: u64) -> BufferAdmission {
        let account = &mut self.accounts[port][class];
        let after = (account.used + size).saturating_sub(self.reserve);
        if after > 0 {
            return self.arrive_beyond_reserve(port, class, size);
        }
        account.used += size;
        self.hold(size);
        BufferAdmission::Admitted
    }

    fn arrive_beyond_reserve(&mut self, port: usize, class: usize, size: u64) -> BufferAdmission {
        let account = self.accounts[port][class];
        let before = account.used.saturating_sub(self.reserve);
        let after = (account.used + size).saturating_sub(self.reserve);
        if after <= self.threshold(port, before) && after - before <= self.free() {
            self.accounts[port][class].used += size;
            self.shared_used += after - before;
        } else if self.pfc_enabled && account.headroom + size <= self.ingress_limits[port].headroom.get() {
            self.accounts[port][class].headroom += size;
        } else {
            return BufferAdmission::Rejected;
        }
        debug_assert!(self.shared_used <= self.shared, "{} of {} B are shared", self.shared_used, self.shared);
        self.hold(size);
        BufferAdmission::Admitted
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
        let from_headroom = size.min(account.headroom);
        account.headroom -= from_headroom;
        let before = account.used.saturating_sub(self.reserve);
        account.used -= size - from_headroom;
        self.shared_used -= before - account.used.saturating_sub(self.reserve);
        self.held -= size;
        debug_assert!(self.shared_used <= self.held, "{} of {} B are shared", self.shared_used, self.held);
    }

    /// Pauses the sender at the other end of a port's cable if its class has reached the threshold. Returns whether a
    /// pause frame must be sent.
    #[inline(always)]
    pub(super) fn try_pause(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        let is_within_reserve = account.used <= self.reserve && account.headroom == 0;
        if !self.pfc_enabled || account.paused || is_within_reserve && self.free() >= self.min_free[port] {
            return false;
        }
        self.pause_at_threshold(port, class)
    }

    fn pause_at_threshold(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        let shared = account.used.saturating_sub(self.reserve);
        let must_pause = account.headroom > 0 || shared >= self.threshold(port, shared);
        self.accounts[port][class].paused = must_pause;
        must_pause
    }

    /// Resumes a paused sender if its class is far enough below the threshold. Returns whether a resume frame must be
    /// sent.
    #[inline]
    pub(super) fn try_resume(&mut self, port: usize, class: usize) -> bool {
        let account = self.accounts[port][class];
        if !account.paused || account.headroom > 0 {
            return false;
        }
        let shared = account.used.saturating_sub(self.reserve);
        let may_resume =
            shared == 0 || shared + self.ingress_limits[port].xon_offset.get() <= self.threshold(port, shared);
        self.accounts[port][class].paused = !may_resume;
        may_resume
    }

    /// Checks the accounts against the bytes actually queued, by ingress port and class.
    pub(super) fn check(&self, charged: &[[u64; CLASSES]]) -> Result<(), String> {
        for (port, (accounts, charged)) in self.accounts.iter().zip(charged).enumerate() {
            for (class, (account, &charged)) in accounts.iter().zip(charged).enumerate() {
                let held = account.used + account.headroom;
                if held != charged {
                    return Err(format!("port {port} holds {charged} B of class {class} and its account has {held} B"));
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
fn min_free(xoff: Limit) -> u64 {
    match xoff {
        Limit::Bytes(Bytes::ZERO) => u64::MAX,
        Limit::Bytes(_) => 1,
        // alpha * free is at least 1 if free is at least 1 / alpha, rounded up.
        Limit::Alpha(alpha) if alpha.bits() > 0 => (1u64 << 32).div_ceil(alpha.bits()),
        Limit::Alpha(_) => u64::MAX,
    }
}

/// Returns the bytes that a switch keeps for reserves and headroom; its buffer must be larger.
pub fn reserved_bytes(switch: &Switch, ingress_limits: &[IngressLimit], classes: u64) -> Bytes {
    let headroom: u128 = ingress_limits.iter().map(|limit| u128::from(limit.headroom.get())).sum();
    let headroom = if switch.pfc.is_some() { headroom } else { 0 };
    let reserve = u128::from(switch.reserve.get()) * ingress_limits.len() as u128;
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

    fn limit(xoff: Limit) -> IngressLimit {
        IngressLimit { xoff, xon_offset: Bytes::new(500), headroom: Bytes::new(4_000) }
    }

    #[test]
    fn reserve_then_shared_then_headroom() {
        // 20,000 - 2 x (1,000 + 4,000) leaves 10,000 to share; one class may use as much of it as remains free (alpha 1).
        let mut pool = BufferPool::new(&switch(20_000, true), vec![limit(Limit::Alpha(Frac::ONE)); 2], 1);
        assert_eq!(pool.arrive(0, 1, 1_000), BufferAdmission::Admitted);
        assert_eq!((pool.free(), pool.try_pause(0, 1)), (10_000, false));
        assert_eq!(pool.arrive(0, 1, 5_000), BufferAdmission::Admitted);
        // The class holds 5,000 of the shared part and 5,000 are free: it is at its threshold.
        assert_eq!((pool.free(), pool.try_pause(0, 1), pool.try_pause(0, 1)), (5_000, true, false));
        assert_eq!(pool.arrive(0, 1, 3_000), BufferAdmission::Admitted);
        assert_eq!(pool.arrive(0, 1, 3_000), BufferAdmission::Rejected);
        assert_eq!((pool.free(), pool.held(), pool.held_by(0)), (5_000, Bytes::new(9_000), Bytes::new(9_000)));
        // Headroom is freed first.
        pool.depart(0, 1, 3_000);
        assert!((pool.free(), pool.try_resume(0, 1)) == (5_000, false));
        pool.depart(0, 1, 250);
        assert!((pool.free(), pool.try_resume(0, 1)) == (5_250, true));
        assert!(!pool.try_resume(0, 1) && !pool.is_paused(0, 1));
        pool.depart(0, 1, 5_750);
        assert_eq!((pool.free(), pool.held()), (10_000, Bytes::ZERO));
    }

    #[test]
    fn a_fixed_threshold_is_limited_by_the_free_space() {
        let mut pool = BufferPool::new(&switch(12_000, false), vec![limit(Limit::Bytes(Bytes::new(8_000))); 2], 1);
        assert_eq!(pool.arrive(0, 1, 9_000), BufferAdmission::Admitted);
        assert_eq!(pool.arrive(0, 1, 1), BufferAdmission::Rejected);
        assert_eq!(
            (pool.arrive(1, 1, 3_000), pool.arrive(1, 1, 1)),
            (BufferAdmission::Admitted, BufferAdmission::Rejected)
        );
    }

    proptest! {
        /// Accounts balance and the buffer is never overbooked, for any sequence of packets.
        #[test]
        fn accounts_balance(moves in proptest::collection::vec((0..3usize, 1..3usize, 1..3_000u64, any::<bool>()), 0..300)) {
            let mut pool = BufferPool::new(&switch(60_000, true), vec![limit(Limit::Alpha(Frac::ratio(1, 2))); 3], 2);
            let mut inside: Vec<(usize, usize, u64)> = Vec::new();
            for (port, class, size, leaves) in moves {
                if leaves && !inside.is_empty() {
                    let (port, class, size) = inside.remove(size as usize % inside.len());
                    pool.depart(port, class, size);
                    pool.try_resume(port, class);
                } else if pool.arrive(port, class, size) == BufferAdmission::Admitted {
                    inside.push((port, class, size));
                    pool.try_pause(port, class);
                }
                let held: u64 = inside.iter().map(|it| it.2).sum();
                prop_assert_eq!(pool.held().get(), held);
                prop_assert_eq!((0..3).map(|port| pool.held_by(port).get()).sum::<u64>(), held);
                prop_assert!(held <= 60_000 && pool.shared_used <= pool.shared);
                let mut charged = [[0; CLASSES]; 3];
                for &(port, class, size) in &inside {
                    charged[port][class] += size;
                }
                prop_assert_eq!(pool.check(&charged), Ok(()));
                charged[1][2] += 1;
                prop_assert!(pool.check(&charged).unwrap_err().contains("port 1 holds"));
                charged[1][2] -= 1;
                pool.held += 1;
                prop_assert!(pool.check(&charged).unwrap_err().contains("the pool counts"));
                pool.held -= 1;
            }
            for (port, class, size) in inside {
                pool.depart(port, class, size);
            }
            prop_assert!(pool.held().is_zero() && pool.shared_used == 0);
        }
    }
}
