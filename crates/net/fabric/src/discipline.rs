//! Queue disciplines of lazily served ports: which packet is served next, and which are dropped or marked before.
//!
//! A port admits packets, times their service and counts them; its discipline keeps those that wait. A discipline is one
//! file like `codel.rs`, with an arm in [`Discipline`] and in [`Queues`]. Its contract:
//!
//! - It sees all packets, control packets included; credits have a queue of their own.
//! - It drops and marks only in `pop`, when a service begins. Only a discipline that evicts drops on arrival, from a full
//!   buffer; other packets that find no room are refused by the port.
//! - `pop` is also called without waiting packets, once after each busy period; it then returns none.
//! - It may drop all packets; the port is then idle from the time of the call on.
//! - It does not go with trimming: the port counts dropped packets as data.

use std::collections::VecDeque;

use units::Time;

use crate::arrival::Arrival;
use crate::codel::{CoDel, CoDelPort, CoDelQueue};
use crate::fq_codel::{FqCoDel, FqCoDelQueues};
use crate::item::{QueueItem, QueuedItem};

/// Queue discipline of a switch's port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Discipline {
    /// First in, first out; with `control_priority` control packets go first.
    #[default]
    Fifo,
    /// One queue that CoDel drops from or marks (RFC 8289).
    CoDel(CoDel),
    /// Flow queueing with CoDel in each queue (RFC 8290).
    FqCoDel(FqCoDel),
}

/// The packet to serve next.
pub(crate) struct Next<P> {
    pub(crate) waiting: QueuedItem<P>,
    /// Set if it was taken from the queue of control packets.
    pub(crate) from_control: bool,
}

/// Packets that wait at a port, in the structure of its discipline.
#[derive(Debug)]
pub(crate) enum Queues<P> {
    Priority(PriorityQueues<P>),
    CoDel(CoDelQueue<P>, CoDelPort),
    FqCoDel(Box<FqCoDelQueues<P>>),
}

/// Two FIFOs, the first with strict priority.
#[derive(Debug)]
pub(crate) struct PriorityQueues<P> {
    control: VecDeque<QueuedItem<P>>,
    data: VecDeque<QueuedItem<P>>,
    order: Order,
}

/// Order of service of a FIFO port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Order of arrival.
    Arrival,
    /// Control packets first.
    ControlFirst,
}

impl<P: QueueItem> Queues<P> {
    /// Returns empty queues. `order` is for the FIFO.
    pub(crate) fn new(discipline: Discipline, order: Order) -> Self {
        match discipline {
            Discipline::Fifo => {
                Self::Priority(PriorityQueues { control: VecDeque::new(), data: VecDeque::new(), order })
            }
            Discipline::CoDel(config) => Self::CoDel(CoDelQueue::new(), CoDelPort { config, max_packet: 0 }),
            Discipline::FqCoDel(config) => Self::FqCoDel(Box::new(FqCoDelQueues::new(config))),
        }
    }

    /// Returns whether a packet that finds the port idle may be served without passing the queues.
    #[inline(always)]
    pub(crate) fn may_bypass(&self) -> bool {
        matches!(self, Self::Priority(_))
    }

    /// Queues a packet that the port has admitted.
    #[inline(always)]
    pub(crate) fn push(&mut self, waiting: QueuedItem<P>, packet: &Arrival, salt: u64) {
        match self {
            Self::Priority(queues) if queues.order == Order::ControlFirst && packet.control => {
                queues.control.push_back(waiting);
            }
            Self::Priority(queues) => queues.data.push_back(waiting),
            Self::CoDel(queue, port) => {
                port.max_packet = port.max_packet.max(packet.size);
                queue.push(waiting, packet);
            }
            Self::FqCoDel(queues) => queues.push(waiting, packet, salt),
        }
    }

    /// Takes the packet to serve from `now` on; those that the discipline drops go to `dropped`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Time, dropped: &mut impl FnMut(QueuedItem<P>)) -> Option<Next<P>> {
        match self {
            Self::Priority(queues) => {
                let control = queues.control.pop_front();
                let from_control = control.is_some();
                let waiting = control.or_else(|| queues.data.pop_front())?;
                Some(Next { waiting, from_control })
            }
            Self::CoDel(queue, port) => {
                queue.pop(port, now, dropped).map(|waiting| Next { waiting, from_control: false })
            }
            Self::FqCoDel(queues) => queues.pop(now, dropped).map(|waiting| Next { waiting, from_control: false }),
        }
    }

    /// Returns whether a full buffer drops a waiting packet, chosen once the arriving packet is among them.
    pub(crate) fn evicts(&self) -> bool {
        matches!(self, Self::FqCoDel(_))
    }

    /// Takes a waiting packet to drop from a full buffer; none where the arriving packet is dropped.
    pub(crate) fn evict(&mut self) -> Option<QueuedItem<P>> {
        match self {
            Self::Priority(_) | Self::CoDel(..) => None,
            Self::FqCoDel(queues) => queues.evict(),
        }
    }

    /// Returns the packets that wait: control packets, and all others.
    pub(crate) fn waiting(&self) -> [Box<dyn Iterator<Item = &QueuedItem<P>> + '_>; 2] {
        match self {
            Self::Priority(queues) => [Box::new(queues.control.iter()), Box::new(queues.data.iter())],
            Self::CoDel(queue, _) => [Box::new(std::iter::empty()), Box::new(queue.iter())],
            Self::FqCoDel(queues) => [Box::new(std::iter::empty()), Box::new(queues.iter())],
        }
    }
}
