//! Packets in the queues of a port.

use units::Span;

use crate::arrival::Arrival;

/// Item carried by a port with real queues.
pub trait QueueItem: Sized {
    /// Returns the packet as a port sees it, with its arrival time.
    fn arrival(&self) -> Arrival;

    /// Returns the packet's flow, by which a discipline may queue packets apart; by default all are of one.
    fn flow(&self) -> u32 {
        0
    }

    /// Returns the packet without its payload, as a port that trims sends it on with `header` bytes; none if it has no
    /// payload.
    fn trimmed(&self, header: u16) -> Option<Self> {
        let _ = header;
        None
    }

    /// Returns whether a link has corrupted the packet.
    fn is_corrupted(&self) -> bool {
        false
    }

    /// Returns the packet with bits that a link has changed, selected by `bits`.
    #[must_use]
    fn corrupted(self, bits: u64) -> Self {
        let _ = bits;
        self
    }
}

/// A packet that waits for service.
#[derive(Debug)]
pub(crate) struct QueuedItem<P> {
    pub(crate) item: P,
    /// Its service time.
    pub(crate) service: Span,
    /// Set if the port marks it.
    pub(crate) marked: bool,
}
