//! A plain FIFO port: one number, the time at which it falls idle, is its whole queue. A packet's departure is
//! known when it arrives, so a hop is one event.

use units::{Bytes, Span, Time};

use crate::arrival::{Arrival, draw};
use crate::port::{PhantomQueue, PortParams};

/// Transit of a packet through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortTransit {
    /// Time at which its last bit reaches the far end of the link.
    pub arrives: Time,
    /// The packet is marked here.
    pub marked: bool,
}

/// A drop-tail FIFO with a fluid backlog: the packet in service counts by its remainder.
#[derive(Clone, Copy, Default, Debug)]
pub struct PlainPort {
    idle_at: Time,
    phantom: PhantomQueue,
}

impl PlainPort {
    /// Queues a packet. Returns `None` if the buffer has no room for it.
    #[inline(always)]
    pub fn enqueue(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<PortTransit> {
        self.take(params, salt, packet, params.service(packet.size))
    }

    /// Queues a packet at a port with unrounded service times, as at all plain ports of switches: no check is made.
    #[inline(always)]
    pub fn enqueue_exact(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<PortTransit> {
        debug_assert!(params.config.tick.is_none(), "a service would be rounded");
        self.take(params, salt, packet, params.exact_service(packet.size))
    }

    #[inline(always)]
    fn take(&mut self, params: &PortParams, salt: u64, packet: &Arrival, service: Span) -> Option<PortTransit> {
        let backlog = self.idle_at.saturating_since(packet.now);
        if backlog + service > params.buffer {
            return None;
        }
        self.idle_at = packet.now + backlog + service;
        // Whether a packet may be marked is checked last: that branch is unpredictable, while most queues are short.
        let mut marked = params.ecn.marks(backlog, || draw(salt, packet)) & packet.ecn_capable;
        if let Some(phantom) = &params.phantom {
            marked |= self.phantom.add(phantom, salt, packet) && packet.ecn_capable;
        }
        Some(PortTransit { arrives: self.idle_at + params.delay, marked })
    }

    /// Returns the time at which the port becomes idle if no packet follows.
    #[inline]
    pub fn idle_at(&self) -> Time {
        self.idle_at
    }

    /// Returns the backlog at a time, the remainder of the packet in service included, rounded up to a whole byte.
    pub fn queue(&self, params: &PortParams, now: Time) -> Bytes {
        params.bytes_in(self.idle_at.saturating_since(now))
    }

    /// Returns the phantom queue.
    pub fn phantom(&self) -> &PhantomQueue {
        &self.phantom
    }
}
