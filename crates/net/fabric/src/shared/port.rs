//! A port of a shared-buffer switch: its waiting packets by class, and the state for its decisions.

use units::{Bytes, Span, Time};

use super::CLASSES;
use crate::arrival::{Arrival, draw};
use crate::pauses::Pauses;
use crate::port::{InService, MarkAt, PhantomQueue, PortParams};
use crate::ring::PacketRing;
use crate::{PortTransit, QueueItem};

/// A packet that enters service.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Port by which it leaves.
    pub port: usize,
    /// Port by which it arrived, unless the switch made it.
    pub from: Option<usize>,
    /// Start of service.
    pub begins: Time,
    /// Arrival at the link's end, and whether it was marked here.
    pub passage: PortTransit,
    /// Bytes that the port had sent before it.
    pub sent: Bytes,
    /// Bytes that wait in the port, without this packet.
    pub queue: Bytes,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingPacket<P> {
    pub(super) item: P,
    pub(super) meta: PacketMeta,
}

/// Metadata of a packet in a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketMeta {
    pub(super) size: u32,
    /// Port by which it arrived; [`NOWHERE`] if the switch made it or nothing is charged for it.
    pub(super) from: u16,
    pub(super) charged: bool,
    pub(super) marked: bool,
}

/// Port, class and time at which a packet is taken into service.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceStart {
    pub(super) port: usize,
    pub(super) class: usize,
    pub(super) now: Time,
}

pub(super) const NOWHERE: u16 = u16::MAX;

/// Packets of one class that wait in a port.
#[derive(Debug)]
pub(super) struct ClassQueue<P> {
    pub(super) ring: PacketRing<WaitingPacket<P>>,
    pub(super) service: Span,
    pub(super) bytes: u64,
}

/// State of a port that every decision needs.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ServiceState {
    pub(super) idle_at: Time,
    /// Service time of the packet in service.
    pub(super) serving: Span,
    pub(super) sent_bytes: u64,
    pub(super) waiting_bytes: u64,
    pub(super) max_waiting: u64,
    /// Seed of the random decisions at this port, in addition to the packet.
    pub(super) salt: u64,
    /// Place of the port's settings.
    pub(super) params: u32,
    /// Classes with something that waits, and classes that the other end pauses: a bit each.
    pub(super) filled: u8,
    pub(super) paused: u8,
    /// The data class that was served last.
    pub(super) last: u8,
    /// Number of [`SharedPort::frames`] that wait.
    pub(super) frames: u8,
}

#[derive(Debug)]
pub(super) struct SharedPort<P> {
    pub(super) service: ServiceState,
    pub(super) queues: [ClassQueue<P>; CLASSES],
    pub(super) phantom: PhantomQueue,
    /// The classes that the waiting frames are of, each once: they are first among control.
    pub(super) frames: [u8; CLASSES],
    pub(super) pauses: Pauses,
}

impl<P: QueueItem + Copy> SharedPort<P> {
    pub(super) fn new(params: u32, salt: u64) -> Self {
        Self {
            service: ServiceState {
                idle_at: Time::ZERO,
                serving: Span::ZERO,
                sent_bytes: 0,
                waiting_bytes: 0,
                max_waiting: 0,
                salt,
                params,
                filled: 0,
                paused: 0,
                last: 0,
                frames: 0,
            },
            queues: std::array::from_fn(|_| ClassQueue { ring: PacketRing::default(), service: Span::ZERO, bytes: 0 }),
            phantom: PhantomQueue::default(),
            frames: [0; CLASSES],
            pauses: Pauses::default(),
        }
    }

    /// Returns whether the port's own buffer has no room for a packet.
    #[inline]
    pub(super) fn is_full(&self, params: &PortParams, packet: &Arrival) -> bool {
        if params.config.buffer == Bytes::MAX {
            return false;
        }
        let waiting: Span = self.queues.iter().map(|queue| queue.service).sum();
        let backlog = waiting + self.service.idle_at.saturating_since(packet.now);
        backlog + params.exact_service(packet.size) > params.buffer
    }

    #[inline(always)]
    pub(super) fn push(&mut self, params: &PortParams, class: usize, item: &P, meta: PacketMeta) {
        debug_assert!(class < CLASSES && meta.size > 0, "{meta:?} in class {class}");
        let service = &mut self.service;
        service.filled |= 1 << class;
        service.waiting_bytes += u64::from(meta.size);
        service.max_waiting = service.max_waiting.max(service.waiting_bytes);
        let queue = &mut self.queues[class];
        queue.service += params.exact_service(meta.size);
        queue.bytes += u64::from(meta.size);
        let slot = queue.ring.append(|| WaitingPacket { item: *item, meta });
        slot.item = *item;
        slot.meta = meta;
    }

    /// The frame of a class, if it waits.
    pub(super) fn waiting_frame(&mut self, class: usize) -> Option<&mut WaitingPacket<P>> {
        let frames = &self.frames[..usize::from(self.service.frames)];
        let index = frames.iter().position(|&waits| usize::from(waits) == class)?;
        self.queues[0].ring.get_mut(index)
    }

    /// Puts a frame of a class first in a control queue that had `waited` packets: if it waits, it precedes all packets
    /// that are not frames.
    pub(super) fn put_first(&mut self, waited: usize, class: usize) {
        if self.queues[0].ring.len() > waited {
            debug_assert!(usize::from(self.service.frames) <= waited, "a frame waits once per class");
            let frames = usize::from(self.service.frames);
            self.queues[0].ring.move_last_to(frames);
            self.frames[frames] = class as u8;
            self.service.frames += 1;
        }
    }

    /// Removes the first packet of the next class from the accounts: control, else the data classes in turn. The packet
    /// keeps its place until it has left.
    #[inline(always)]
    pub(super) fn dequeue(&mut self, params: &PortParams) -> Option<(usize, PacketMeta)> {
        let service = &mut self.service;
        let eligible = service.eligible();
        if eligible == 0 {
            return None;
        }
        let class = if eligible & 1 == 1 {
            0
        } else {
            // The first class after the last one served, around.
            let later = eligible & u8::MAX.checked_shl(u32::from(service.last) + 1).unwrap_or(0);
            (if later == 0 { eligible } else { later }).trailing_zeros() as usize % CLASSES
        };
        if class == 0 && service.frames > 0 {
            self.frames.copy_within(1.., 0);
            service.frames -= 1;
        }
        let queue = &mut self.queues[class];
        let meta = queue.ring.front()?.meta;
        if queue.ring.len() == 1 {
            service.filled &= !(1 << class);
        }
        queue.service -= params.exact_service(meta.size);
        queue.bytes -= u64::from(meta.size);
        service.waiting_bytes -= u64::from(meta.size);
        Some((class, meta))
    }

    /// Checks that the accounts of its queues match their content.
    pub(super) fn check(&self, params: &PortParams) -> Result<(), String> {
        let mut waiting = 0;
        for (class, queue) in self.queues.iter().enumerate() {
            let bytes: u64 = queue.ring.iter().map(|waits| u64::from(waits.meta.size)).sum();
            let service: Span = queue.ring.iter().map(|waits| params.exact_service(waits.meta.size)).sum();
            let filled = self.service.filled >> class & 1 == 1;
            if (bytes, service, !queue.ring.is_empty()) != (queue.bytes, queue.service, filled) {
                return Err(format!(
                    "class {class} has {bytes} B that last {service:?}; the counters have {} B, {:?}, and {}",
                    queue.bytes,
                    queue.service,
                    if filled { "something" } else { "nothing" }
                ));
            }
            waiting += bytes;
        }
        if waiting != self.service.waiting_bytes {
            return Err(format!("{waiting} B wait, and the counter has {} B", self.service.waiting_bytes));
        }
        Ok(())
    }

    /// Service time of a class's waiting packets, and of the control packets that precede them: the queue that causes marks.
    #[inline]
    pub(super) fn before(&self, class: usize) -> Span {
        self.queues[class].service + if class == 0 { Span::ZERO } else { self.queues[0].service }
    }
}

impl ServiceState {
    /// Classes that have something and may send it.
    #[inline]
    pub(super) fn eligible(&self) -> u8 {
        self.filled & !self.paused
    }

    /// Returns the time of the port's next decision.
    #[inline]
    pub(super) fn next_at(&self) -> Time {
        if self.eligible() == 0 { Time::NEVER } else { self.idle_at }
    }

    /// Takes a packet into service at `now`, when the port is idle; `before` is the backlog that may mark it.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        params: &PortParams,
        phantom: PhantomQueue,
        before: Span,
        item: &impl QueueItem,
        meta: PacketMeta,
        start: ServiceStart,
    ) -> Departure {
        let ServiceStart { port, class, now } = start;
        self.serving = params.exact_service(meta.size);
        self.idle_at = now + params.service(meta.size);
        let mut marked = meta.marked;
        if params.config.mark_at == MarkAt::Dequeue {
            let at = || Arrival { now, ..item.arrival() };
            let mut requires_mark = params.ecn.marks(before, || draw(self.salt, &at()));
            requires_mark |= params.phantom.as_ref().is_some_and(|it| phantom.requires_mark(it, self.salt, &at()));
            marked = requires_mark && item.arrival().ecn_capable;
        }
        let departure = Departure {
            port,
            from: (meta.from != NOWHERE).then_some(usize::from(meta.from)),
            begins: now,
            passage: PortTransit { arrives: self.idle_at + params.delay, marked },
            sent: Bytes::new(self.sent_bytes),
            queue: Bytes::new(self.waiting_bytes),
        };
        self.sent_bytes += u64::from(meta.size);
        if class != 0 {
            self.last = class as u8;
        }
        departure
    }

    /// Returns the contribution of the packet in service to the backlog.
    #[inline]
    pub(super) fn in_service(&self, params: &PortParams, now: Time) -> Span {
        let remainder = self.idle_at.saturating_since(now);
        match params.config.in_service {
            InService::Remaining => remainder,
            InService::All if remainder > Span::ZERO => self.serving,
            InService::All | InService::None => Span::ZERO,
        }
    }
}
