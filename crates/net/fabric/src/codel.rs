//! CoDel: drops, or marks, when packets have waited longer than a target for a whole interval (RFC 8289).
//!
//! The decision is made when a packet leaves the queue, on its sojourn time. While it drops, the time between drops
//! shrinks with the square root of their number (§5.3). As in Linux (`net/sched/sch_codel.c`), ECN-capable packets can be
//! marked instead (§5.4 permits it). The largest packet that the port has queued stands for the MTU.

use std::collections::VecDeque;

use units::{Span, Time};

use crate::arrival::Arrival;
use crate::item::{QueueItem, QueuedItem};

/// Parameters of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CoDel {
    /// Acceptable sojourn time, over zero.
    pub target: Span,
    /// Time for which the sojourn time must exceed the target before the first drop, at least the target; about the
    /// longest RTT of the flows.
    pub interval: Span,
    /// Response to a packet that it would drop, if the packet is ECN-capable.
    pub response: EcnResponse,
}

/// Response of CoDel to an ECN-capable packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EcnResponse {
    /// Marks it.
    Mark,
    /// Drops it, as it does others.
    Drop,
}

impl CoDel {
    /// Parameters of RFC 8289, §4.2 and §4.3: a target of 5 ms and an interval of 100 ms.
    pub const RFC: Self = Self { target: Span::from_ms(5), interval: Span::from_ms(100), response: EcnResponse::Mark };

    /// Returns whether both times are in range.
    pub(crate) fn is_valid(&self) -> bool {
        Span::ZERO < self.target && self.target <= self.interval && self.interval <= MAX_INTERVAL
    }
}

/// Maximum interval: its square in picoseconds fits in 128 bits with room to spare.
pub const MAX_INTERVAL: Span = Span::from_s(100);

/// A queue under CoDel.
#[derive(Debug)]
pub(crate) struct CoDelQueue<P> {
    packets: VecDeque<QueuedItem<P>>,
    bytes: u64,
    state: State,
}

/// Decision parameters of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoDelPort {
    pub(crate) config: CoDel,
    /// The largest packet that the port has queued, in bytes.
    pub(crate) max_packet: u32,
}

/// State variables of RFC 8289, §5.2.
#[derive(Clone, Copy, Default, Debug)]
struct State {
    /// Time at which the sojourn time will have exceeded the target for an interval.
    first_above: Option<Time>,
    /// Time of the next drop.
    drop_next: Time,
    /// Drops since the dropping state was entered.
    count: u64,
    /// `count` when it was entered last.
    last_count: u64,
    dropping: bool,
}

/// The head of the queue, and whether CoDel may drop it.
struct Head<P> {
    waiting: Option<QueuedItem<P>>,
    may_drop: bool,
}

impl<P: QueueItem> CoDelQueue<P> {
    pub(crate) fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0, state: State::default() }
    }

    pub(crate) fn push(&mut self, waiting: QueuedItem<P>, packet: &Arrival) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(waiting);
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedItem<P>> {
        self.packets.iter()
    }

    /// Takes the oldest packet, without CoDel's decision.
    pub(crate) fn take_head(&mut self) -> Option<QueuedItem<P>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.item.arrival().size);
        debug_assert!(!self.packets.is_empty() || self.bytes == 0, "an empty queue of {} bytes", self.bytes);
        Some(waiting)
    }

    /// Takes the next packet to serve (`deque` of RFC 8289, §5.3).
    pub(crate) fn pop(
        &mut self,
        port: &CoDelPort,
        now: Time,
        dropped: &mut impl FnMut(QueuedItem<P>),
    ) -> Option<QueuedItem<P>> {
        let config = &port.config;
        let mut head = self.next(port, now);
        if self.state.dropping {
            self.state.dropping = head.may_drop;
            while self.state.dropping && now >= self.state.drop_next {
                self.state.count += 1;
                let next_drop = self.after(config, self.state.drop_next);
                if marks(config, &mut head) {
                    self.state.drop_next = next_drop;
                    break;
                }
                head.waiting.take().into_iter().for_each(&mut *dropped);
                head = self.next(port, now);
                self.state.dropping = head.may_drop;
                if head.may_drop {
                    self.state.drop_next = next_drop;
                }
            }
        } else if head.may_drop {
            if !marks(config, &mut head) {
                head.waiting.take().into_iter().for_each(&mut *dropped);
                head = self.next(port, now);
            }
            self.state.dropping = true;
            // A state that was left a short time ago is resumed near its drop rate.
            let delta = self.state.count - self.state.last_count;
            let recent = now.saturating_since(self.state.drop_next) < config.interval.times(16);
            self.state.count = if delta > 1 && recent { delta } else { 1 };
            self.state.drop_next = self.after(config, now);
            self.state.last_count = self.state.count;
        }
        head.waiting
    }

    /// Takes the head of the queue (`dodeque` of RFC 8289, §5.3).
    fn next(&mut self, port: &CoDelPort, now: Time) -> Head<P> {
        let Some(waiting) = self.take_head() else {
            self.state.first_above = None;
            return Head { waiting: None, may_drop: false };
        };
        let sojourn = now.saturating_since(waiting.item.arrival().now);
        if sojourn < port.config.target || self.bytes <= u64::from(port.max_packet) {
            self.state.first_above = None;
            return Head { waiting: Some(waiting), may_drop: false };
        }
        let first_above = *self.state.first_above.get_or_insert(now + port.config.interval);
        Head { waiting: Some(waiting), may_drop: now >= first_above }
    }

    /// Time of the drop after one at `time`: `interval / sqrt(count)` later (`control_law` of RFC 8289, §5.3).
    fn after(&self, config: &CoDel, time: Time) -> Time {
        let interval = u128::from(config.interval.unsigned_ps());
        let gap = (interval * interval / u128::from(self.state.count.max(1))).isqrt();
        time + Span::from_unsigned_ps(gap as u64)
    }
}

/// Marks the head if it is ECN-capable and CoDel is to mark. Returns whether it did.
fn marks<P: QueueItem>(config: &CoDel, head: &mut Head<P>) -> bool {
    let Some(waiting) = &mut head.waiting else { return false };
    let marks = config.response == EcnResponse::Mark && waiting.item.arrival().ecn_capable;
    waiting.marked |= marks;
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{PortConfig, PortError, PortParams};
    use crate::{Discipline, Ecn, Exit, QueuedPort};
    use proptest::prelude::*;
    use units::{Bytes, Frac, Rate};

    #[derive(Clone, Copy, Debug)]
    struct Packet(Arrival);

    impl QueueItem for Packet {
        fn arrival(&self) -> Arrival {
            self.0
        }
    }

    /// ECN-capable transport, or not (RFC 3168).
    #[derive(Clone, Copy, PartialEq)]
    enum Transport {
        Ect,
        NotEct,
    }

    fn packet(now: Time, size: u32, transport: Transport) -> Packet {
        let ecn_capable = transport == Transport::Ect;
        Packet(Arrival { now, size, ecn_capable, control: false, credit: false, expendable: false, identity: now.ps() })
    }

    fn port(config: CoDel) -> CoDelPort {
        CoDelPort { config, max_packet: 1_500 }
    }

    fn push(queue: &mut CoDelQueue<Packet>, item: Packet) {
        queue.push(QueuedItem { item, service: Span::from_us(1), marked: false }, &item.0);
    }

    /// A queue: all packets have waited for `sojourn` when they leave, one per millisecond from 0 on. Returns the
    /// times of drops and of marks, in milliseconds.
    fn steady(config: CoDel, sojourn: Span, transport: Transport, ms: u64) -> [Vec<u64>; 2] {
        let mut queue = CoDelQueue::new();
        let (mut drops, mut marks) = (Vec::new(), Vec::new());
        let start = Time::from_ms(1_000);
        for n in 0..ms {
            let now = start + Span::from_ms(n as i64);
            while queue.packets.len() < 20 {
                let leaves = now + Span::from_ms(queue.packets.len() as i64);
                push(&mut queue, packet(leaves.saturating_sub(sojourn), 1_500, transport));
            }
            let next = queue.pop(&port(config), now, &mut |_| drops.push(n)).unwrap();
            marks.extend(next.marked.then_some(n));
        }
        [drops, marks]
    }

    /// RFC 8289, §5.3: the first drop one interval after the sojourn time first exceeds the target, the next one interval
    /// later, and from then on the n-th `interval / sqrt(n)` after the one before.
    #[test]
    fn drops_follow_the_control_law() {
        let dropping = CoDel { response: EcnResponse::Drop, ..CoDel::RFC };
        let [drops, marks] = steady(dropping, Span::from_ms(6), Transport::Ect, 1_000);
        let (mut expected, mut at, mut n) = (vec![100], 100.0, 1.0_f64);
        loop {
            at += 100.0 / n.sqrt();
            n += 1.0;
            if at > 999.0 {
                break;
            }
            // Packets leave at whole milliseconds.
            expected.push((at - 1e-6).ceil() as u64);
        }
        assert_eq!((drops, marks.len()), (expected, 0));
    }

    #[test]
    fn ecn_capable_packets_are_marked_at_the_times_of_drops() {
        let dropped =
            steady(CoDel { response: EcnResponse::Drop, ..CoDel::RFC }, Span::from_ms(6), Transport::Ect, 1_000);
        let marked = steady(CoDel::RFC, Span::from_ms(6), Transport::Ect, 1_000);
        assert_eq!([&dropped[0], &dropped[1]], [&marked[1], &marked[0]]);
        assert_eq!(steady(CoDel::RFC, Span::from_ms(6), Transport::NotEct, 1_000), dropped);
    }

    #[test]
    fn packets_within_the_target_pass() {
        assert_eq!(steady(CoDel::RFC, Span::from_us(4_999), Transport::NotEct, 1_000), [vec![], vec![]]);
    }

    /// RFC 8289, §5.3: less than an MTU in the queue is no standing queue, whatever its sojourn time.
    #[test]
    fn a_queue_of_one_packet_is_never_dropped() {
        let mut queue = CoDelQueue::new();
        for ms in 0..1_000 {
            let now = Time::from_ms(1_000 + ms);
            push(&mut queue, packet(now.saturating_sub(Span::from_ms(50)), 1_500, Transport::NotEct));
            assert!(queue.pop(&port(CoDel::RFC), now, &mut |_| panic!("dropped at {now}")).is_some());
        }
    }

    #[test]
    fn settings_out_of_range_are_rejected() {
        let refusal = |codel, ecn| {
            let discipline = Discipline::CoDel(codel);
            PortParams::new(&PortConfig { ecn, discipline, ..PortConfig::new(Rate::from_gbps(1), Span::from_us(1)) })
                .err()
        };
        assert_eq!(refusal(CoDel::RFC, None), None);
        assert_eq!(refusal(CoDel { target: Span::ZERO, ..CoDel::RFC }, None), Some(PortError::Discipline));
        assert_eq!(refusal(CoDel { interval: Span::from_ms(4), ..CoDel::RFC }, None), Some(PortError::Discipline));
        let ecn = Ecn { min: Bytes::ZERO, max: Bytes::new(10), max_probability: Frac::ONE };
        assert_eq!(refusal(CoDel::RFC, Some(ecn)), Some(PortError::DisciplineBeside));
    }

    proptest! {
        /// Every packet leaves once, and the port's counts match its queue, whatever comes.
        #[test]
        fn packets_are_conserved(gaps in proptest::collection::vec((0..30_000_000u64, 64..1_500u32, any::<bool>()), 1..300)) {
            let codel = CoDel { target: Span::from_us(20), interval: Span::from_us(100), response: EcnResponse::Mark };
            let config = PortConfig {
                discipline: Discipline::CoDel(codel),
                buffer: Bytes::new(100_000),
                ..PortConfig::new(Rate::from_gbps(1), Span::from_us(1))
            };
            let params = PortParams::new(&config).unwrap();
            let mut port = QueuedPort::new(&config);
            let (mut now, mut left, mut refused, mut idle_at) = (Time::ZERO, 0, 0, Time::ZERO);
            let mut out = |_, exit| {
                left += 1;
                if let Exit::Served(passage) = exit {
                    assert!(passage.arrives > idle_at, "service overlaps");
                    idle_at = passage.arrives;
                }
            };
            for &(gap, size, ecn_capable) in &gaps {
                now += Span::from_unsigned_ps(gap);
                let transport = if ecn_capable { Transport::Ect } else { Transport::NotEct };
                let packet = packet(now, size, transport);
                refused += usize::from(port.enqueue(&params, 7, &packet.0, packet, &mut out).is_some());
                prop_assert!(port.check().is_ok());
            }
            port.advance(&params, 7, Time::NEVER, &mut out);
            prop_assert_eq!((left + refused, port.has_waiting()), (gaps.len(), false));
        }
    }
}
