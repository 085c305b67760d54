//! Bounds common to all laws that set a rate: the line rate, the least rate, and an optional window.

use units::{Bytes, Rate};

use crate::{PathInfo, SendLimits, Window};

/// Window of a law that sets a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RateWindow {
    /// The window limits the bytes in flight.
    pub(crate) windowed: bool,
    /// Its size at line rate.
    pub(crate) at_line_rate: Bytes,
    /// The window scales with the rate, instead of being constant.
    pub(crate) scales: bool,
}

/// The bounds of a rate, and how it is permitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Limits {
    line: Rate,
    floor: Rate,
    window: Bytes, // at line rate
    mss: u32,
    windowed: bool,
    scales: bool,
}

impl Limits {
    /// Rates from `floor` to `line`, and no window.
    pub(crate) fn new(path: &PathInfo, line: Rate, floor: Rate) -> Self {
        let line = line.max(Rate::from_bps(1));
        let floor = floor.min(line).max(Rate::from_bps(1));
        let mut limits = Self { line, floor, window: Window::LIMIT, mss: 1, windowed: false, scales: false };
        limits.follow(path.mss);
        limits
    }

    /// Sets the size of a full packet to `mss` bytes, limited to 1 to 2^32 - 1.
    pub(crate) fn follow(&mut self, mss: Bytes) {
        self.mss = mss.get().min(u64::from(u32::MAX)).max(1) as u32;
    }

    /// The same with `window`.
    pub(crate) fn with_window(self, window: RateWindow) -> Self {
        Self { window: window.at_line_rate, windowed: window.windowed, scales: window.scales, ..self }
    }

    /// Returns the rate at which a flow starts and which it never exceeds.
    pub(crate) fn line(&self) -> Rate {
        self.line
    }

    /// Payload of a full packet, at least 1 byte.
    pub(crate) fn mss(&self) -> Bytes {
        Bytes::new(self.mss.into())
    }

    /// The nearest rate within bounds.
    #[inline]
    pub(crate) fn clamp(&self, rate: Rate) -> Rate {
        rate.min(self.line).max(self.floor)
    }

    /// `rate + by`, within bounds.
    #[inline]
    pub(crate) fn raised(&self, rate: Rate, by: Rate) -> Rate {
        self.clamp(Rate::from_bps(rate.bps().saturating_add(by.bps())))
    }

    /// A window W = BDP * R / line, or BDP, or none (HPCC's simulator: `HAS_WIN`, `VAR_WIN`); never under a packet.
    #[inline]
    pub(crate) fn send_limits(&self, rate: Rate) -> SendLimits {
        let window = if !self.windowed {
            Window::LIMIT
        } else if self.scales {
            self.window.ratio(rate.bps(), self.line.bps())
        } else {
            self.window
        };
        SendLimits { window: window.max(self.mss()).min(Window::LIMIT), pacing: rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::PATH;
    use proptest::prelude::*;

    #[test]
    fn a_window_scales_with_the_rate_or_is_constant() {
        let limits = Limits::new(&PATH, PATH.line_rate, Rate::from_mbps(10));
        let rate = Rate::from_gbps(25);
        assert_eq!(limits.send_limits(rate), SendLimits { window: Window::LIMIT, pacing: rate });
        let window = RateWindow { windowed: true, at_line_rate: PATH.bdp(), scales: true };
        let scaled = limits.with_window(window);
        assert_eq!(scaled.send_limits(rate), SendLimits { window: Bytes::new(43_750), pacing: rate });
        assert_eq!(scaled.send_limits(Rate::from_mbps(10)).window, PATH.mss);
        let fixed = limits.with_window(RateWindow { scales: false, ..window });
        assert_eq!(fixed.send_limits(rate), SendLimits { window: PATH.bdp(), pacing: rate });
    }

    proptest! {
        #[test]
        fn rates_and_windows_stay_within_bounds(line: u64, floor: u64, rate: u64, by: u64, window: u64, scales: bool) {
            let limits = Limits::new(&PATH, Rate::from_bps(line), Rate::from_bps(floor))
                .with_window(RateWindow { windowed: true, at_line_rate: Bytes::new(window), scales });
            for rate in [limits.clamp(Rate::from_bps(rate)), limits.raised(Rate::from_bps(rate), Rate::from_bps(by))] {
                prop_assert!(rate <= limits.line() && rate >= limits.floor && !rate.is_zero());
                let send_limits = limits.send_limits(rate);
                prop_assert!(send_limits.window >= PATH.mss && send_limits.window <= Window::LIMIT);
            }
        }
    }
}
