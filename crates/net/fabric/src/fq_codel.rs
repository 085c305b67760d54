//! FQ-CoDel: a queue per hash of the flow, served by deficit round robin with new flows first, and CoDel in each queue
//! (RFC 8290).
//!
//! A full buffer drops from the head of the queue with the most bytes (§4.1). Two flows with one hash share a queue; the
//! hash depends on the port and the seed, as the RFC's random salt does.

use std::collections::VecDeque;

use units::{Time, mix64};

use crate::arrival::Arrival;
use crate::codel::{CoDel, CoDelPort, CoDelQueue};
use crate::item::{QueueItem, QueuedItem};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FqCoDel {
    /// CoDel of each queue.
    pub codel: CoDel,
    /// Number of queues, 1 to [`MAX_QUEUES`].
    pub queues: u32,
    /// Bytes that a queue may send in a round, at least [`MIN_QUANTUM`]; about the MTU.
    pub quantum: u32,
}

/// Minimum quantum: a smaller one takes many rounds for a packet.
pub const MIN_QUANTUM: u32 = 64;

/// Maximum number of queues, as in Linux.
pub const MAX_QUEUES: u32 = 65_536;

impl FqCoDel {
    /// Parameters of RFC 8290, §5.2: 1,024 queues, a quantum of 1,514 bytes, CoDel's own defaults.
    pub const RFC: Self = Self { codel: CoDel::RFC, queues: 1_024, quantum: 1_514 };

    /// Returns whether all parameters are in range.
    pub(crate) fn is_valid(&self) -> bool {
        self.codel.is_valid() && (1..=MAX_QUEUES).contains(&self.queues) && self.quantum >= MIN_QUANTUM
    }
}

/// The queues of a port under FQ-CoDel.
#[derive(Debug)]
pub(crate) struct FqCoDelQueues<P> {
    /// By number; made when a flow needs it.
    queues: Vec<Option<Box<FlowQueue<P>>>>,
    /// Queues that became active since they were last empty, by number.
    new: VecDeque<u32>,
    /// Queues that have had a quantum.
    old: VecDeque<u32>,
    quantum: u32,
    codel: CoDelPort,
}

#[derive(Debug)]
struct FlowQueue<P> {
    codel: CoDelQueue<P>,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// Set if it is in one of the lists.
    listed: bool,
}

/// The two lists of active queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    New,
    Old,
}

impl<P: QueueItem> FqCoDelQueues<P> {
    pub(crate) fn new(config: FqCoDel) -> Self {
        Self {
            queues: std::iter::repeat_with(|| None).take(config.queues as usize).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: config.quantum,
            codel: CoDelPort { config: config.codel, max_packet: 0 },
        }
    }

    /// Queues a packet (RFC 8290, §4.1).
    pub(crate) fn push(&mut self, waiting: QueuedItem<P>, packet: &Arrival, salt: u64) {
        self.codel.max_packet = self.codel.max_packet.max(packet.size);
        let number = (mix64(mix64(salt) ^ u64::from(waiting.item.flow())) % self.queues.len() as u64) as u32;
        let queue = self.queues[number as usize]
            .get_or_insert_with(|| Box::new(FlowQueue { codel: CoDelQueue::new(), deficit: 0, listed: false }));
        queue.codel.push(waiting, packet);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum.into();
            self.new.push_back(number);
        }
    }

    /// Takes the next packet to serve (RFC 8290, §4.2). Without any, no queue stays active.
    pub(crate) fn pop(&mut self, now: Time, dropped: &mut impl FnMut(QueuedItem<P>)) -> Option<QueuedItem<P>> {
        loop {
            let list = if self.new.is_empty() { List::Old } else { List::New };
            let &number = self.list(list).front()?;
            let Some(queue) = &mut self.queues[number as usize] else {
                debug_assert!(false, "queue {number} is in a list, but does not exist");
                self.list(list).pop_front();
                continue;
            };
            debug_assert!(queue.listed, "queue {number} is in a list, but not marked as listed");
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.quantum);
                self.list(list).pop_front();
                self.old.push_back(number);
                continue;
            }
            let Some(waiting) = queue.codel.pop(&self.codel, now, dropped) else {
                // A new queue that ran empty passes through the old ones, so it cannot starve them.
                let stays = list == List::New && !self.old.is_empty();
                queue.listed = stays;
                self.list(list).pop_front();
                if stays {
                    self.old.push_back(number);
                }
                continue;
            };
            queue.deficit -= i64::from(waiting.item.arrival().size);
            return Some(waiting);
        }
    }

    /// Takes a packet to drop from a full buffer: the head of the queue with the most bytes (RFC 8290, §4.1).
    pub(crate) fn evict(&mut self) -> Option<QueuedItem<P>> {
        let bytes = |number: u32| self.queues[number as usize].as_ref().map_or(0, |queue| queue.codel.bytes());
        let &longest = self.new.iter().chain(&self.old).max_by_key(|&&number| (bytes(number), number))?;
        self.queues[longest as usize].as_mut()?.codel.take_head()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedItem<P>> {
        let listed = self.new.iter().chain(&self.old);
        listed.filter_map(|&number| self.queues[number as usize].as_ref()).flat_map(|queue| queue.codel.iter())
    }

    fn list(&mut self, list: List) -> &mut VecDeque<u32> {
        match list {
            List::New => &mut self.new,
            List::Old => &mut self.old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discipline, Exit, PortConfig, PortParams, QueuedPort};
    use proptest::prelude::*;
    use units::{Bytes, Rate, Span};

    #[derive(Clone, Copy, Debug)]
    struct Packet {
        arrival: Arrival,
        flow: u32,
    }

    impl QueueItem for Packet {
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

    /// Puts `packets` at the port at one time. Returns flow and size of the departing packets, in order, and how many were
    /// dropped of each flow below 10.
    fn run(buffer: Bytes, packets: &[(u32, u32)]) -> (Vec<(u32, u32)>, [u32; 10]) {
        let (params, mut port) = port(buffer);
        let (mut served, mut dropped) = (Vec::new(), [0; 10]);
        let mut out = |it: Packet, exit| match exit {
            Exit::Served(_) => served.push((it.flow, it.arrival.size)),
            Exit::Dropped | Exit::Evicted => dropped[it.flow as usize] += 1,
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

    /// RFC 8290, §4.2: a new queue that ran empty becomes an old one. A flow that puts a small packet into its empty queue
    /// before each decision would otherwise be new, and first, every time, and flow 2 would never be served.
    #[test]
    fn a_new_queue_cannot_starve_old_ones() {
        let (params, mut port) = port(Bytes::MAX);
        let mut served = [0u32; 10];
        let mut out = |it: Packet, exit| served[it.flow as usize] += u32::from(matches!(exit, Exit::Served(_)));
        for _ in 0..100 {
            let packet = packet(2, 1_514, Time::from_ms(1));
            assert!(port.enqueue(&params, 7, &packet.arrival, packet, &mut out).is_none());
        }
        for _ in 0..100 {
            // What comes at the time of a decision is there for it.
            let packet = packet(1, 100, port.idle_at());
            assert!(port.enqueue(&params, 7, &packet.arrival, packet, &mut out).is_none());
        }
        assert!(served[1].abs_diff(served[2]) <= 2, "{served:?}");
    }

    /// RFC 8290, §4.2: a queue that a dequeue finds empty is no longer active, so after an idle time a flow is new again,
    /// however much it had sent over its quantum.
    #[test]
    fn a_flow_is_new_again_after_an_idle_time() {
        let (params, mut port) = port(Bytes::MAX);
        let mut served = Vec::new();
        let mut out = |it: Packet, exit| served.extend(matches!(exit, Exit::Served(_)).then_some(it.flow));
        let mut offer = |flow, size, ms, out: &mut dyn FnMut(Packet, Exit)| {
            let packet = packet(flow, size, Time::from_ms(ms));
            assert!(port.enqueue(&params, 7, &packet.arrival, packet, out).is_none());
        };
        // 9,000 B leave a deficit of five quanta.
        offer(3, 9_000, 1, &mut out);
        (0..20).for_each(|n| offer(n % 2, 1_514, 2_000, &mut out));
        offer(3, 100, 2_000, &mut out);
        port.advance(&params, 7, Time::from_ms(9_000), &mut out);
        assert_eq!(served[1..].iter().position(|&flow| flow == 3), Some(2), "{served:?}");
    }

    proptest! {
        /// Every packet leaves once, and the port's counts match its queues, whatever comes to a small buffer.
        #[test]
        fn packets_are_conserved(packets in proptest::collection::vec((0..200_000_000u64, 64..9_000u32, 0..6u32), 1..300)) {
            let (params, mut port) = port(Bytes::new(8_000));
            let (mut now, mut left, mut refused, mut idle_at) = (Time::ZERO, 0, 0, Time::ZERO);
            let mut out = |_, exit| {
                left += 1;
                if let Exit::Served(passage) = exit {
                    assert!(passage.arrives > idle_at, "service overlaps");
                    idle_at = passage.arrives;
                }
            };
            for &(gap, size, flow) in &packets {
                now += Span::from_unsigned_ps(gap);
                let packet = packet(flow, size, now);
                let waits = port.waiting().count();
                let refusal = port.enqueue(&params, 7, &packet.arrival, packet, &mut out).is_some();
                prop_assert!(port.check().is_ok() && port.held(now) <= params.buffer);
                // A packet that no eviction makes room for costs no other packet.
                prop_assert!(!refusal || port.waiting().count() <= waits);
                refused += usize::from(refusal);
            }
            port.advance(&params, 7, Time::NEVER, &mut out);
            prop_assert_eq!((left + refused, port.has_waiting()), (packets.len(), false));
        }
    }
}
