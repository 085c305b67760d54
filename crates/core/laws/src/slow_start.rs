//! Slow start: the window doubles every round trip until it reaches a threshold. RFC 5681 §3.1, counting bytes (RFC 3465 with
//! no limit, because a host may pace the granted bytes).

use units::{Bytes, Frac};

use crate::{Notification, Window};

/// The threshold under which a window doubles every round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct SlowStart {
    threshold: Bytes, // ssthresh
}

impl SlowStart {
    /// Slow start that lasts until something ends it.
    pub const fn new() -> Self {
        Self { threshold: Bytes::MAX }
    }

    /// Returns whether the first slow start has not ended yet.
    pub const fn is_first(&self) -> bool {
        self.threshold.get() == Bytes::MAX.get()
    }

    /// Returns whether `window` is still below the threshold, so that it doubles.
    pub fn is_on(&self, window: &Window) -> bool {
        window.bytes() < self.threshold
    }

    /// The threshold (ssthresh).
    pub const fn threshold(&self) -> Bytes {
        self.threshold
    }

    /// The threshold, once something has ended the first slow start.
    pub fn ended_at(&self) -> Option<Bytes> {
        (!self.is_first()).then_some(self.threshold)
    }

    /// Grows `window` by `acked` up to the threshold. Returns the rest, for congestion avoidance.
    pub fn grow(&self, window: &mut Window, acked: Bytes) -> Bytes {
        let remaining = self.threshold.saturating_sub(window.bytes());
        let used = if acked < remaining { acked } else { remaining };
        window.open(used);
        acked - used
    }

    /// Ends slow start where `window` is now.
    pub fn leave(&mut self, window: &Window) {
        self.threshold = self.threshold.min(window.bytes());
    }

    /// Lowers the threshold for congestion: it becomes `kept` of the window, at least twice its floor (RFC 5681 eq. 4).
    pub fn lower(&mut self, window: &Window, kept: Frac) {
        self.threshold = window.bytes().scaled(kept).max(window.floor().times(2));
    }

    /// Handles another signal for slow start and its window: slow start restarts after idleness, an underused window is
    /// lowered, a new flow starts with a threshold that the host remembers, and the window's floor follows the size of
    /// a full packet. `initial` is the initial window.
    pub fn on_notification(&mut self, notification: &Notification, window: &mut Window, initial: Bytes) {
        match *notification {
            Notification::Idle { timeouts, .. } => self.restart(window, initial, timeouts),
            Notification::Unused { window: most, ssthresh } => {
                self.threshold = self.threshold.max(ssthresh);
                if most < window.bytes() {
                    window.set(most);
                }
            }
            Notification::Remembered { ssthresh } => self.threshold = ssthresh,
            Notification::Mss(mss) => drop(window.follow(mss)),
            _ => {}
        }
    }

    /// Restarts after the sender was idle for `timeouts` retransmission timeouts. Each halves the window, down to `initial`
    /// bytes. Slow start then restores three quarters of its previous size (RFC 2861 §3.1, Linux's `tcp_cwnd_restart`). RFC
    /// 5681 §4.1 goes down to the initial window at once.
    pub fn restart(&mut self, window: &mut Window, initial: Bytes, timeouts: u32) {
        let cwnd = window.bytes();
        let halved = Bytes::new(cwnd.get() >> timeouts.min(63));
        self.threshold = self.threshold.max(cwnd.ratio(3, 4));
        window.set(halved.max(initial.min(cwnd)));
    }
}

impl Default for SlowStart {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1_000);

    #[test]
    fn doubles_then_stops_at_the_threshold() {
        let mut window = Window::new(MSS.times(8), MSS, Window::LIMIT);
        let mut slow_start = SlowStart::new();
        assert_eq!(slow_start.grow(&mut window, MSS.times(8)), Bytes::ZERO);
        assert_eq!(window.bytes(), MSS.times(16));
        slow_start.lower(&window, Frac::HALF);
        window.collapse();
        assert!(slow_start.is_on(&window));
        // From 1 MSS to the threshold of 8 takes 7; 3 of 10 are left over.
        assert_eq!(slow_start.grow(&mut window, MSS.times(10)), MSS.times(3));
        assert_eq!(window.bytes(), MSS.times(8));
        assert!(!slow_start.is_on(&window));
    }

    #[test]
    fn the_threshold_is_at_least_two_packets() {
        let window = Window::new(MSS, MSS, Window::LIMIT);
        let mut slow_start = SlowStart::new();
        slow_start.lower(&window, Frac::HALF);
        assert_eq!(slow_start.threshold(), MSS.times(2));
    }

    #[test]
    fn idleness_halves_down_to_the_initial_window() {
        for (timeouts, packets) in [(1, 32), (2, 16), (3, 10), (200, 10)] {
            let mut window = Window::new(MSS.times(64), MSS, Window::LIMIT);
            let mut slow_start = SlowStart { threshold: MSS.times(20) };
            slow_start.restart(&mut window, MSS.times(10), timeouts);
            assert_eq!((window.bytes(), slow_start.threshold()), (MSS.times(packets), MSS.times(48)));
        }
        // A window under the initial one stays, and so does the first slow start.
        let mut window = Window::new(MSS.times(3), MSS, Window::LIMIT);
        let mut slow_start = SlowStart::new();
        slow_start.restart(&mut window, MSS.times(10), 5);
        assert_eq!(window.bytes(), MSS.times(3));
        assert!(slow_start.is_first());
    }

    #[test]
    fn leaving_never_raises_the_threshold() {
        let mut window = Window::new(MSS.times(4), MSS, Window::LIMIT);
        let mut slow_start = SlowStart::new();
        slow_start.leave(&window);
        window.open(MSS.times(4));
        slow_start.leave(&window);
        assert_eq!(slow_start.threshold(), MSS.times(4));
    }
}
