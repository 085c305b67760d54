//! A plain FIFO port: one number, the time at which it falls idle, is its whole queue. A packet's departure is
//! known when it arrives, so a hop is one event.

use units::Bytes;

use crate::port::{Arrival, PhantomQueue, PortParams, draw};

/// A packet's way through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When its last bit reaches the far end of the link, in picoseconds.
    pub arrives_ps: u64,
    /// Whether it is marked here.
    pub marked: bool,
}

/// A drop-tail FIFO whose backlog is fluid: the packet in service counts by its remainder.
#[derive(Clone, Copy, Default, Debug)]
pub struct PlainPort {
    idle_at_ps: u64,
    phantom: PhantomQueue,
}

impl PlainPort {
    /// A packet arrives. `None` if the buffer has no room for it.
    #[inline(always)]
    pub fn enqueue(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<Passage> {
        self.take(params, salt, packet, params.service_ps(packet.size))
    }

    /// The same at a port whose services are not rounded, as all plain ports of switches are: it does not ask.
    #[inline(always)]
    pub fn enqueue_exact(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<Passage> {
        debug_assert!(params.config.tick.is_none(), "a service would be rounded");
        self.take(params, salt, packet, params.serializer.time_for(packet.size))
    }

    #[inline(always)]
    fn take(&mut self, params: &PortParams, salt: u64, packet: &Arrival, service: u64) -> Option<Passage> {
        let backlog = self.idle_at_ps.saturating_sub(packet.now_ps);
        if backlog + service > params.buffer_ps {
            return None;
        }
        self.idle_at_ps = packet.now_ps + backlog + service;
        // Whether a packet may be marked is asked last: nothing predicts it, while most queues are short.
        let mut marked = params.ecn.marks(backlog, || draw(salt, packet)) & packet.ecn_capable;
        if let Some(phantom) = &params.phantom {
            marked |= self.phantom.add(phantom, salt, packet) && packet.ecn_capable;
        }
        Some(Passage { arrives_ps: self.idle_at_ps + params.delay_ps, marked })
    }

    /// When the port falls idle if nothing more comes, in picoseconds.
    #[inline]
    pub fn idle_at_ps(&self) -> u64 {
        self.idle_at_ps
    }

    /// What waits at a time, the remainder of the packet in service included, rounded up to a whole byte.
    pub fn queue(&self, params: &PortParams, now_ps: u64) -> Bytes {
        params.bytes_in(self.idle_at_ps.saturating_sub(now_ps))
    }

    /// The phantom queue.
    pub fn phantom(&self) -> &PhantomQueue {
        &self.phantom
    }
}
