//! Processing times of a host.

use units::Span;

/// Processing times of a host with one processor. If all are zero, the host is ideal: it does everything at once.
///
/// A host sleeps until a packet arrives or a timer expires. After `wake_up` it handles the packets in its receive
/// queue, then expired timers, then sends. It repeats these steps until nothing is left to do, then sleeps. Packets
/// that arrive while the processor is busy wait in the receive queue.
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
