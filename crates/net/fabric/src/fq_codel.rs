//! FQ-CoDel: a queue per hash of the flow, served by deficit round robin with new flows first, and CoDel in each queue
//! (RFC 8290).
//!
//! A full buffer drops from the head of the queue with the most bytes (§4.1). Two flows with one hash share a queue
//! (§4.1.3 and §5.3).

use std::collections::VecDeque;

use units::{Time, mix64};

use crate::arrival::Arrival;
use crate::codel::{CoDel, CoDelQueue};
use crate::item::{Item, Waiting};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FqCoDel {
    /// CoDel of each queue.
    pub codel: CoDel,
    /// Number of queues, 1 to [`MAX_QUEUES`].
    pub queues: u32,
    /// Bytes that a queue may send in a round, at least 1; about the MTU.
    pub quantum: u32,
}

/// Maximum number of queues, as in Linux.
pub const MAX_QUEUES: u32 = 65_536;

impl FqCoDel {
    /// Parameters of RFC 8290, §5.2: 1,024 queues, a quantum of 1,514 bytes, CoDel's own defaults.
    pub const RFC: Self = Self { codel: CoDel::RFC, queues: 1_024, quantum: 1_514 };

    /// Returns whether all parameters are in range.
    pub(crate) fn is_valid(&self) -> bool {
        self.codel.is_valid() && (1..=MAX_QUEUES).contains(&self.queues) && self.quantum > 0
    }
}

/// The queues of a port under FQ-CoDel.
#[derive(Debug)]
pub(crate) struct FqCoDelQueues<P> {
    queues: Vec<FlowQueue<P>>,
    /// Queues that became active since they were last empty, by number.
    new: VecDeque<u32>,
    /// Queues that have had a quantum.
    old: VecDeque<u32>,
    config: FqCoDel,
}

#[derive(Debug)]
struct FlowQueue<P> {
    codel: CoDelQueue<P>,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// Set if it is in one of the lists.
    listed: bool,
}

impl<P: Item> FqCoDelQueues<P> {
    pub(crate) fn new(config: FqCoDel) -> Self {
        let queue = || FlowQueue { codel: CoDelQueue::new(config.codel), deficit: 0, listed: false };
        let queues = std::iter::repeat_with(queue).take(config.queues as usize).collect();
        Self { queues, new: VecDeque::new(), old: VecDeque::new(), config }
    }

    /// Queues a packet (RFC 8290, §4.1).
    pub(crate) fn push(&mut self, waiting: Waiting<P>, packet: &Arrival) {
        let number = (mix64(waiting.item.flow().into()) % u64::from(self.config.queues)) as u32;
        let queue = &mut self.queues[number as usize];
        queue.codel.push(waiting, packet);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.config.quantum.into();
            self.new.push_back(number);
        }
    }

    /// Takes the next packet to serve (RFC 8290, §4.2).
    pub(crate) fn pop(&mut self, now: Time, dropped: &mut impl FnMut(Waiting<P>)) -> Option<Waiting<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let &number = if is_new { self.new.front() } else { self.old.front() }?;
            let queue = &mut self.queues[number as usize];
            debug_assert!(queue.listed, "queue {number} is in a list and not marked so");
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum);
                self.unlist_first(is_new);
                self.old.push_back(number);
                continue;
            }
            let Some(waiting) = queue.codel.pop(now, dropped) else {
                // A new queue that ran empty passes through the old ones, so it cannot starve them.
                if is_new && self.old.front().is_some() {
                    self.unlist_first(is_new);
                    self.old.push_back(number);
                } else {
                    queue.listed = false;
                    self.unlist_first(is_new);
                }
                continue;
            };
            queue.deficit -= i64::from(waiting.item.arrival().size);
            return Some(waiting);
        }
    }

    /// Takes a packet to drop from a full buffer: the head of the queue with the most bytes (RFC 8290, §4.1).
    pub(crate) fn evict(&mut self) -> Option<Waiting<P>> {
        let listed = self.new.iter().chain(&self.old);
        let &fattest = listed.max_by_key(|&&number| (self.queues[number as usize].codel.bytes(), number))?;
        self.queues[fattest as usize].codel.take_head()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting<P>> {
        let listed = self.new.iter().chain(&self.old);
        listed.flat_map(|&number| self.queues[number as usize].codel.iter())
    }

    fn unlist_first(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discipline, Exit, PortConfig, PortParams, QueuedPort};
    use units::{Bytes, Rate, Span};

    #[derive(Clone, Copy, Debug)]
    struct Packet {
        arrival: Arrival,
        flow: u32,
    }

    impl Item for Packet {
        fn arrival(&self) -> Arrival {
            self.arrival
        }

        fn flow(&self) -> u32 {
            self.flow
        }
    }

    fn packet(flow: u32, size: u32, now: Time) -> Packet {
        let arrival = Arrival {
            now,
            size,
            ecn_capable: false,
            control: false,
            credit: false,
            expendable: false,
            identity: now.ps(),
        };
        Packet { arrival, flow }
    }

    fn port(buffer: Bytes) -> (PortParams, QueuedPort<Packet>) {
        let config = PortConfig {
            discipline: Discipline::FqCoDel(FqCoDel::RFC),
            buffer,
            ..PortConfig::new(Rate::from_mbps(100), Span::from_us(1))
        };
        (PortParams::new(&config).unwrap(), QueuedPort::new(&config))
    }

    /// Puts `packets` at the port at one time. Returns the flow and size of what leaves, in order, and how many were
    /// dropped of each flow below 10.
    fn run(buffer: Bytes, packets: &[(u32, u32)]) -> (Vec<(u32, u32)>, [u32; 10]) {
        let (params, mut port) = port(buffer);
        let (mut served, mut dropped) = (Vec::new(), [0; 10]);
        let mut out = |it: Packet, exit| match exit {
            Exit::Served(_) => served.push((it.flow, it.arrival.size)),
            Exit::Dropped => dropped[it.flow as usize] += 1,
        };
        for &(flow, size) in packets {
            let packet = packet(flow, size, Time::from_ms(1));
            assert!(port.enqueue(&params, 7, &packet.arrival, packet, &mut out).is_none());
            port.check().unwrap();
        }
        port.advance(&params, 7, Time::from_ms(1) + Span::from_s(10), &mut out);
        assert!(!port.has_waiting());
        (served, dropped)
    }

    /// RFC 8290, §4.2: deficit round robin. A flow of packets of 1,514 bytes and one of 757 bytes get the same bytes.
    #[test]
    fn flows_share_bytes_not_packets() {
        let packets: Vec<(u32, u32)> = (0..20).map(|_| (1, 1_514)).chain((0..40).map(|_| (2, 757))).collect();
        let (served, _) = run(Bytes::MAX, &packets);
        let bytes = |flow| served[..30].iter().filter(|it| it.0 == flow).map(|it| it.1).sum::<u32>();
        assert!(bytes(1).abs_diff(bytes(2)) <= 1_514, "{} and {}", bytes(1), bytes(2));
    }

    /// RFC 8290, §3.3: the packet of a flow that has just become active goes before those of backlogged flows.
    #[test]
    fn a_sparse_flow_goes_first() {
        let packets: Vec<(u32, u32)> = (0..20).map(|n| (n % 2, 1_514)).chain([(3, 100)]).collect();
        let (served, _) = run(Bytes::MAX, &packets);
        // After the packet in service, and after flow 1, which is new as well and has a quantum of one packet.
        assert_eq!(served.iter().position(|it| it.0 == 3), Some(2), "{served:?}");
    }

    /// RFC 8290, §4.1: a full buffer drops from the queue with the most bytes, so the small flow loses nothing.
    #[test]
    fn a_full_buffer_drops_from_the_longest_queue() {
        let packets: Vec<(u32, u32)> = (0..20).map(|_| (1, 1_514)).chain((0..4).map(|_| (2, 1_514))).collect();
        let (served, dropped) = run(Bytes::new(10 * 1_514), &packets);
        assert_eq!((dropped[1], dropped[2]), (14, 0), "{served:?}");
    }

    /// RFC 8290, §4.2: the second rule of the lists: a flow that always finds its queue empty does not starve
    /// the others.
    #[test]
    fn a_new_queue_cannot_starve_old_ones() {
        let (params, mut port) = port(Bytes::MAX);
        let mut served = [0u32; 10];
        let mut out = |it: Packet, exit| served[it.flow as usize] += u32::from(matches!(exit, Exit::Served(_)));
        let mut now = Time::from_ms(1);
        let lasts = params.service(1_514);
        for _ in 0..200 {
            for flow in [1, 2] {
                let packet = packet(flow, 1_514, now);
                port.enqueue(&params, 7, &packet.arrival, packet, &mut out);
            }
            now += lasts;
            port.advance(&params, 7, now, &mut out);
        }
        assert!(served[1].abs_diff(served[2]) <= 2, "{served:?}");
    }
}
