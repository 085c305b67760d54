//! Processing times of a host.

use units::Span;

/// Processing times of a host, one processor each. Zero for all is an ideal host, which does everything at once.
///
/// A host sleeps until a packet arrives or a timer expires. It then takes `wake_up`, handles the packets that have arrived,
/// lets timers expire, sends, and repeats that until nothing is left. Packets that arrive meanwhile wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostCosts {
    /// Time from an event to the first work of a sleeping host.
    pub wake_up: Span,
    /// Time for each packet that is received or sent.
    pub packet: Span,
    /// Time for each batch: the packets that are received, or sent, without other work in between.
    pub batch: Span,
    /// Maximum number of packets in a batch; 0 for no limit.
    pub batch_packets: u32,
    /// Lateness of timers, as of Linux (`PR_SET_TIMERSLACK`).
    pub timer_slack: Span,
}

impl HostCosts {
    /// Returns whether the host takes no time for anything.
    pub fn are_zero(&self) -> bool {
        [self.wake_up, self.packet, self.batch, self.timer_slack].iter().all(|cost| cost.is_zero())
    }
}
