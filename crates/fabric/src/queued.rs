//! A port whose service order or marking is not known at enqueue: control before data, marks at dequeue, a
//! backlog that counts whole packets, a queue of credits. It is served lazily: it remembers when it falls idle and replays its
//! service decisions when it is next touched, so a hop is still one event.

use std::collections::VecDeque;

use units::{Bytes, Span, Time};

use crate::Passage;
use crate::arrival::{Arrival, draw};
use crate::credit::{CreditGate, CreditParams};
use crate::port::{InService, MarkAt, PhantomQueue, PortParams};

/// What a port with real queues carries: something that can say how a port sees it.
pub trait Item {
    /// The packet as a port sees it, with the time at which it came.
    fn arrival(&self) -> Arrival;
}

#[derive(Debug)]
struct Waiting<P> {
    item: P,
    service: Span,
    marked: bool,
}

/// A port with real queues of `P`.
#[derive(Debug)]
pub struct QueuedPort<P> {
    control: VecDeque<Waiting<P>>,
    data: VecDeque<Waiting<P>>,
    /// Service time of all that waits.
    queued: Span,
    idle_at: Time,
    /// Service time of the packet in service.
    serving: Span,
    /// Whether that is a credit.
    serves_credit: bool,
    phantom: PhantomQueue,
    /// Credits that wait, beside the buffer: a credit with tokens goes before all else, and without them it waits though
    /// the port is idle.
    credits: CreditGate<P>,
}

impl<P> Default for QueuedPort<P> {
    fn default() -> Self {
        Self {
            control: VecDeque::new(),
            data: VecDeque::new(),
            queued: Span::ZERO,
            idle_at: Time::ZERO,
            serving: Span::ZERO,
            serves_credit: false,
            phantom: PhantomQueue::default(),
            credits: CreditGate::default(),
        }
    }
}

impl<P: Item> QueuedPort<P> {
    /// A packet arrives: service is replayed up to now, then the packet is queued. Packets whose service began
    /// go to `out` in order. Returns the item if the buffer has no room for it.
    #[inline]
    pub fn enqueue(
        &mut self,
        params: &PortParams,
        salt: u64,
        packet: &Arrival,
        item: P,
        mut out: impl FnMut(P, Passage),
    ) -> Option<P> {
        self.advance(params, salt, packet.now, &mut out);
        if let Some(credits) = &params.credits {
            if packet.credit {
                return self.enqueue_credit(credits, params, packet, item, out);
            }
            if packet.expendable && self.held(packet.now) >= credits.unscheduled {
                return Some(item);
            }
        }
        let service = params.exact_service(packet.size);
        // The buffer is physical: what is left of the packet in service still lies in it.
        if self.held(packet.now) + service > params.buffer {
            return Some(item);
        }
        let mut marked = params.phantom.as_ref().is_some_and(|phantom| self.phantom.add(phantom, salt, packet));
        if params.config.mark_at == MarkAt::Enqueue {
            let backlog = self.backlog(params, packet.now);
            marked |= params.ecn.marks(backlog, || draw(salt, packet));
            marked &= packet.ecn_capable;
        }
        let waiting = Waiting { item, service, marked };
        // A port that falls idle at this very time decides only when all that comes at this time is in.
        if self.idle_at < packet.now {
            self.idle_at = packet.now;
            self.serve(waiting, params, salt, &mut out);
            return None;
        }
        self.queued += service;
        if params.config.control_priority && packet.control {
            self.control.push_back(waiting);
        } else {
            self.data.push_back(waiting);
        }
        None
    }

    /// A credit arrives at a port with a queue for it, served up to now.
    fn enqueue_credit(
        &mut self,
        credits: &CreditParams,
        params: &PortParams,
        packet: &Arrival,
        item: P,
        mut out: impl FnMut(P, Passage),
    ) -> Option<P> {
        if self.idle_at < packet.now && self.credits.passes(credits, packet.size, packet.now) {
            self.idle_at = packet.now;
            self.credits.spend(credits, packet.size, packet.now);
            self.serve_credit(item, packet.size, params, &mut out);
            return None;
        }
        self.credits.push(credits, item, packet.size, packet.expendable)
    }

    /// Replays every service decision taken before `until`.
    #[inline]
    pub fn advance(&mut self, params: &PortParams, salt: u64, until: Time, mut out: impl FnMut(P, Passage)) {
        if !self.credits.is_empty() {
            self.advance_with_credits(params, salt, until, &mut out);
        }
        while self.idle_at < until && self.queued > Span::ZERO {
            let Some(next) = self.control.pop_front().or_else(|| self.data.pop_front()) else { return };
            self.queued -= next.service;
            self.serve(next, params, salt, &mut out);
        }
    }

    /// The same, until no credit waits any more.
    #[inline(never)]
    fn advance_with_credits(&mut self, params: &PortParams, salt: u64, until: Time, out: &mut impl FnMut(P, Passage)) {
        let Some(credits) = &params.credits else { return };
        while let Some(eligible_at) = self.credits.eligible_at(credits) {
            let eligible_at = eligible_at.max(self.idle_at);
            let waits_for_data = self.queued > Span::ZERO && eligible_at > self.idle_at;
            let begins = if waits_for_data { self.idle_at } else { eligible_at };
            if begins >= until {
                return;
            }
            if waits_for_data {
                let Some(next) = self.control.pop_front().or_else(|| self.data.pop_front()) else { return };
                self.queued -= next.service;
                self.serve(next, params, salt, out);
            } else if let Some((item, size)) = self.credits.pop(credits, begins) {
                self.idle_at = begins;
                self.serve_credit(item, size, params, out);
            }
        }
    }

    /// Takes a credit into service at the time the port falls idle. Credits are neither marked nor in a phantom queue.
    fn serve_credit(&mut self, item: P, size: u32, params: &PortParams, out: &mut impl FnMut(P, Passage)) {
        self.serving = params.exact_service(size);
        self.serves_credit = true;
        self.idle_at += params.service(size);
        out(item, Passage { arrives: self.idle_at + params.delay, marked: false });
    }

    /// Takes a packet into service at the time the port falls idle.
    #[inline(always)]
    fn serve(&mut self, mut next: Waiting<P>, params: &PortParams, salt: u64, out: &mut impl FnMut(P, Passage)) {
        let begins = self.idle_at;
        let lasts = if params.config.tick.is_none() { next.service } else { params.service(next.item.arrival().size) };
        self.serving = next.service;
        self.serves_credit = false;
        self.idle_at = begins + lasts;
        if params.config.mark_at == MarkAt::Dequeue {
            let at = Arrival { now: begins, ..next.item.arrival() };
            next.marked = params.ecn.marks(self.queued, || draw(salt, &at));
            next.marked |= params.phantom.as_ref().is_some_and(|phantom| self.phantom.asks(phantom, salt, &at));
            next.marked &= at.ecn_capable;
        }
        out(next.item, Passage { arrives: self.idle_at + params.delay, marked: next.marked });
    }

    fn backlog(&self, params: &PortParams, now: Time) -> Span {
        let remainder = self.idle_at.saturating_since(now);
        self.queued
            + match params.config.in_service {
                InService::Remainder => remainder,
                InService::Whole if remainder > Span::ZERO => self.serving,
                InService::Whole | InService::Excluded => Span::ZERO,
            }
    }

    /// What the buffer holds at a time, as time of service, the packet in service by its remainder.
    #[inline]
    pub fn held(&self, now: Time) -> Span {
        self.queued + self.idle_at.saturating_since(now)
    }

    /// All packets that wait, without the credits in their own queue.
    pub fn waiting(&self) -> impl Iterator<Item = &P> {
        self.control.iter().chain(&self.data).map(|waiting| &waiting.item)
    }

    /// Checks that what it says of its queues is what lies in them.
    ///
    /// # Errors
    /// When it is not: what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let waits: Span = self.control.iter().chain(&self.data).map(|waiting| waiting.service).sum();
        if waits == self.queued {
            return Ok(());
        }
        Err(format!("a port's queue lasts {waits:?} and is taken for {:?}", self.queued))
    }

    /// Whether packets wait whose service has not begun.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.queued > Span::ZERO || !self.credits.is_empty()
    }

    /// When the port takes the next packet into service if nothing more comes; [`Time::NEVER`] if none waits.
    pub fn next_service(&self, params: &PortParams) -> Time {
        let data = if self.queued > Span::ZERO { self.idle_at } else { Time::NEVER };
        let credit = params.credits.as_ref().and_then(|credits| self.credits.eligible_at(credits));
        credit.map_or(data, |eligible_at| eligible_at.max(self.idle_at).min(data))
    }

    /// Credits that wait.
    pub fn credits_waiting(&self) -> usize {
        self.credits.len()
    }

    /// When the port falls idle but for what waits.
    pub fn idle_at(&self) -> Time {
        self.idle_at
    }

    /// What the buffer holds at a time, the remainder of the packet in service included, but for a credit, which has a queue
    /// of its own. Exact only once service has been replayed to that time.
    pub fn queue(&self, params: &PortParams, now: Time) -> Bytes {
        params.bytes_in(if self.serves_credit { self.queued } else { self.held(now) })
    }

    /// The phantom queue.
    pub fn phantom(&self) -> &PhantomQueue {
        &self.phantom
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Phantom, PlainPort, PortConfig};
    use proptest::prelude::*;
    use units::{Frac, Rate};

    fn config() -> PortConfig {
        PortConfig {
            buffer: Bytes::new(40_000),
            ecn: Some(Ecn { min: Bytes::new(8_000), max: Bytes::new(24_000), max_probability: Frac::ONE }),
            phantom: Some(Phantom {
                size: Bytes::new(60_000),
                drain: Frac::millionths(900_000),
                ecn: Ecn { min: Bytes::new(20_000), max: Bytes::new(40_000), max_probability: Frac::HALF },
            }),
            ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
        }
    }

    fn arrival(now: Time, size: u32, control: bool, identity: u64) -> Arrival {
        Arrival { now, size, ecn_capable: !control, control, credit: false, expendable: false, identity }
    }

    impl Item for Arrival {
        fn arrival(&self) -> Arrival {
            *self
        }
    }

    proptest! {
        /// Without priorities the queued port is the plain port: same drops, marks and times.
        #[test]
        fn agrees_with_the_plain_port(packets in proptest::collection::vec((0..400_000u64, 64..4160u32), 1..300)) {
            let params = PortParams::new(&config()).unwrap();
            let (mut plain, mut queued) = (PlainPort::default(), QueuedPort::default());
            let (mut expected, mut got) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            for (id, &(gap, size)) in packets.iter().enumerate() {
                now += Span::from_unsigned_ps(gap);
                let packet = arrival(now, size, false, id as u64);
                expected.extend(plain.enqueue(&params, 7, &packet).map(|passage| (id, passage)));
                queued.enqueue(&params, 7, &packet, packet, |it, passage| got.push((it.identity as usize, passage)));
                let off = plain.queue(&params, now).get().abs_diff(queued.queue(&params, now).get());
                prop_assert!(off == 0 && plain.queue(&params, now).get() <= 40_000);
            }
            queued.advance(&params, 7, Time::NEVER, |it, passage| got.push((it.identity as usize, passage)));
            prop_assert_eq!(expected, got);
        }

        /// A control packet waits for the packet in service and for control packets before it, for no data more.
        #[test]
        fn control_goes_first(packets in proptest::collection::vec((0..100_000u64, any::<bool>()), 1..300)) {
            let params = PortParams::new(&PortConfig { control_priority: true, buffer: Bytes::MAX, ..config() }).unwrap();
            let mut queued = QueuedPort::default();
            let mut departures = Vec::new();
            let mut now = Time::ZERO;
            for &(gap, control) in &packets {
                now += Span::from_unsigned_ps(gap);
                let packet = arrival(now, if control { 64 } else { 4160 }, control, now.ps());
                queued.enqueue(&params, 7, &packet, packet, |it, passage| departures.push(((it.now, it.control), passage)));
            }
            queued.advance(&params, 7, Time::NEVER, |it, passage| departures.push(((it.now, it.control), passage)));
            prop_assert_eq!(departures.len(), packets.len());
            for &((_, control), passage) in &departures {
                let start = passage.arrives.saturating_sub(Span::from_ps(1_000_000 + 332_800));
                // No control packet that had come before a data packet's service began leaves after it.
                let overtaken = departures.iter().any(|&((other, is_control), later)| {
                    is_control && other < start && later.arrives > passage.arrives
                });
                prop_assert!(control || !overtaken);
            }
        }
    }

    #[test]
    fn a_queue_that_is_taken_for_another_length_is_found() {
        let params = PortParams::new(&config()).unwrap();
        let mut port = QueuedPort::default();
        for at in 0..3 {
            let packet = arrival(Time::from_ps(at), 1_000, false, at);
            port.enqueue(&params, 7, &packet, packet, |_, _| {});
        }
        assert_eq!((port.waiting().count(), port.check()), (2, Ok(())));
        port.queued -= Span::from_ps(1);
        assert!(port.check().unwrap_err().contains("a port's queue lasts"));
    }

    /// A port of 10 Gb/s with a bucket of one credit: 84 bytes last 67.2 ns, 1538 bytes 1230.4 ns, both 1297.6 ns.
    #[test]
    fn credits_with_tokens_go_first_and_without_them_wait_at_an_idle_port() {
        let queue = crate::CreditQueue { burst: Bytes::new(84), ..crate::CreditQueue::usual() };
        let port = PortConfig { credits: Some(queue), ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1)) };
        let params = PortParams::new(&port).unwrap();
        let mut queued = QueuedPort::default();
        let credit = |ps, identity| Arrival { credit: true, ..arrival(Time::from_ps(ps), 84, true, identity) };
        let data = |ps, identity| arrival(Time::from_ps(ps), 1_538, false, identity);
        let mut began = Vec::new();
        let sizes = [67_200, 1_230_400].map(Span::from_ps);
        let packets = [credit(1, 0), credit(2, 1), data(3, 2), data(4, 3), credit(5, 4), data(6_000_000, 5)];
        for packet in packets {
            let refused = queued.enqueue(&params, 7, &packet, packet, |item, passage| {
                let lasts = sizes[usize::from(!item.credit)];
                began.push((item.identity, (passage.arrives - params.delay - lasts).ps()));
            });
            assert!(refused.is_none());
        }
        // The first credit goes at once and the data behind it; the second when its token is there, while the port is
        // busy: right after, before the data that waits.
        let second = 1 + 67_200 + 1_230_400;
        // The bucket of the last credit is full again a token after the second left; the port is idle before.
        let expected =
            [(0, 1), (2, 1 + 67_200), (1, second), (3, second + 67_200), (4, second + 1_297_600), (5, 6_000_000)];
        assert_eq!(began, expected);
        assert_eq!(queued.credits_waiting(), 0);
    }

    #[test]
    fn data_without_a_credit_is_dropped_before_other_data() {
        let queue = crate::CreditQueue { unscheduled: Some(Bytes::new(3_000)), ..crate::CreditQueue::usual() };
        let port = PortConfig {
            credits: Some(queue),
            buffer: Bytes::new(6_000),
            ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
        };
        let params = PortParams::new(&port).unwrap();
        let mut queued = QueuedPort::default();
        let mut takes = |expendable| {
            let packet = Arrival { expendable, ..arrival(Time::from_ps(10), 1_500, false, 0) };
            queued.enqueue(&params, 7, &packet, packet, |_, _| {}).is_none()
        };
        assert_eq!(
            [true, true, true, false, true, false, false].map(&mut takes),
            [true, true, false, true, false, true, false]
        );
    }
}
