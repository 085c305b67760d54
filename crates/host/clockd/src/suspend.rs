//! Detection of suspends: `CLOCK_BOOTTIME` advances in them, `CLOCK_MONOTONIC` and the synchronised clock do not.
//!
//! A migration of a virtual machine looks like one only if the hypervisor reports it as such. Otherwise the clock steps, which
//! [`clocks::Node`] notices by its neighbours.

use crate::sys::{KernelClock, clock_ns};

/// Longest time between two readings that are compared, in nanoseconds: the thread may be interrupted between them.
const MAX_WIDTH: i64 = 100_000;

/// Difference of the clocks that is a suspend, in nanoseconds. They are slewed alike.
const MIN_SUSPEND: i64 = 1_000_000;

/// The difference of the two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SuspendWatch {
    difference: Option<i64>,
}

impl SuspendWatch {
    /// Returns the nanoseconds of a suspend since the last call, if there was one.
    pub(crate) fn check(&mut self) -> Option<i64> {
        let before = clock_ns(KernelClock::Monotonic);
        let boot = clock_ns(KernelClock::BootTime);
        let width = clock_ns(KernelClock::Monotonic) - before;
        self.compare(boot - before - width / 2, width)
    }

    fn compare(&mut self, difference: i64, width: i64) -> Option<i64> {
        if width > MAX_WIDTH {
            return None;
        }
        let former = self.difference.replace(difference)?;
        Some(difference - former).filter(|change| change.abs() >= MIN_SUSPEND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspends_are_noticed_once() {
        let mut watch = SuspendWatch::default();
        assert_eq!(watch.compare(7_000_000_000, 50), None);
        assert_eq!(watch.compare(7_000_000_100, 50), None);
        assert_eq!(watch.compare(9_000_000_100, MAX_WIDTH + 1), None, "interrupted");
        assert_eq!(watch.compare(9_000_000_100, 50), Some(2_000_000_000));
        assert_eq!(watch.compare(9_000_000_200, 50), None);
    }

    #[test]
    fn a_running_host_is_not_suspended() {
        let mut watch = SuspendWatch::default();
        assert!((0..10_000).all(|_| watch.check().is_none()));
    }
}
