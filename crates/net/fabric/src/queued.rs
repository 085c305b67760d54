//! A port with service order or marking that is unknown at enqueue: control before data, CoDel, marks at dequeue, a backlog
//! that counts whole packets, a queue of credits. It is served lazily: it remembers when it falls idle and replays its
//! service decisions when it is next touched, so a hop is still one event.

use std::sync::Arc;

use units::{Bytes, Span, Time};

use crate::PortTransit;
use crate::arrival::{Arrival, draw};
use crate::credit::{CreditParams, CreditShaper};
use crate::discipline::{Order, Queues};
use crate::item::{QueueItem, QueuedItem};
use crate::port::{InService, MarkAt, PhantomQueue, PortConfig, PortParams};
use crate::rate_schedule::{RateSchedule, ScheduledService};

/// Exit of a packet from the queues of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Its service began.
    Served(PortTransit),
    /// The discipline dropped it.
    Dropped,
    /// Dropped because the buffer was full.
    Evicted,
}

/// Packets that wait, with their bytes and marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Admitted {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Marked ones.
    pub marks: u64,
}

/// A port with real queues of `P`.
#[derive(Debug)]
pub struct QueuedPort<P> {
    queues: Queues<P>,
    /// Service time of all that waits.
    queued: Span,
    /// Service time of the control packets among them: kept where the port trims.
    queued_control: Span,
    idle_at: Time,
    /// Service time of the packet in service.
    serving: Span,
    /// The packet in service is a credit.
    serves_credit: bool,
    /// The packet in service is control: kept where the port trims.
    serves_control: bool,
    phantom: PhantomQueue,
    /// Credits that wait, outside of the buffer: a credit with tokens goes before all else, and without them it waits
    /// though the port is idle.
    credits: CreditShaper<P>,
    /// Service by a schedule of rates, in place of the constant rate.
    scheduled: Option<Box<ScheduledService>>,
}

impl<P: QueueItem> QueuedPort<P> {
    /// Returns an idle port with the queues of a configuration.
    pub fn new(config: &PortConfig) -> Self {
        let order = if config.control_priority { Order::ControlFirst } else { Order::Arrival };
        Self {
            queues: Queues::new(config.discipline, order),
            queued: Span::ZERO,
            queued_control: Span::ZERO,
            idle_at: Time::ZERO,
            serving: Span::ZERO,
            serves_credit: false,
            serves_control: false,
            phantom: PhantomQueue::default(),
            credits: CreditShaper::default(),
            scheduled: None,
        }
    }

    /// Serves packets by a schedule of rates, which begins at a time to be set.
    pub(crate) fn with_schedule(self, schedule: Arc<RateSchedule>) -> Self {
        Self { scheduled: Some(Box::new(ScheduledService::new(schedule))), ..self }
    }

    /// Begins the schedule of rates, if there is one.
    pub(crate) fn begin_schedule(&mut self, start: Time) {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.begin(start);
        }
    }

    /// Replays service up to the packet's arrival, then queues the packet. Packets that leave the queues go to `out` in
    /// order. Returns the item if the buffer has no room for it; data refused by a port that trims may be offered again
    /// as a control packet.
    #[inline]
    pub fn enqueue(
        &mut self,
        params: &PortParams,
        salt: u64,
        packet: &Arrival,
        item: P,
        mut out: impl FnMut(P, Exit),
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
        if self.queues.evicts() {
            return self.enqueue_evicting(params, salt, packet, item, out);
        }
        // The buffer is physical: the remainder of the packet in service still occupies it.
        let (held, limit) = match params.control {
            None => (self.held(packet.now), params.buffer),
            Some(control) if packet.control => (self.held_control(packet.now), control),
            Some(_) => (self.held_data(packet.now), params.buffer),
        };
        if held + service > limit {
            return Some(item);
        }
        let mut marked = params.phantom.as_ref().is_some_and(|phantom| self.phantom.add(phantom, salt, packet));
        if params.config.mark_at == MarkAt::Enqueue {
            let backlog = self.backlog(params, packet.now);
            marked |= params.ecn.marks(backlog, || draw(salt, packet));
            marked &= packet.ecn_capable;
        }
        let waiting = QueuedItem { item, service, marked };
        // A port that falls idle at this very time decides only when all that comes at this time is in.
        if self.idle_at < packet.now {
            if self.queues.may_bypass() {
                self.idle_at = packet.now;
                self.serves_control = packet.control;
                self.serve(waiting, params, salt, &mut out);
            } else {
                self.wake(packet.now);
                self.queued += service;
                self.queues.push(waiting, packet, salt);
                self.serve_next(params, salt, &mut out);
            }
            return None;
        }
        self.queued += service;
        if params.control.is_some() && packet.control {
            self.queued_control += service;
        }
        self.queues.push(waiting, packet, salt);
        None
    }

    /// Queues a packet at a port, served up to now, that drops waiting packets from a full buffer: this one or others.
    fn enqueue_evicting(
        &mut self,
        params: &PortParams,
        salt: u64,
        packet: &Arrival,
        item: P,
        mut out: impl FnMut(P, Exit),
    ) -> Option<P> {
        let service = params.exact_service(packet.size);
        // No eviction makes room for it.
        if self.remainder(packet.now) + service > params.buffer {
            return Some(item);
        }
        let is_idle = self.idle_at < packet.now;
        if is_idle {
            self.wake(packet.now);
        }
        self.queued += service;
        self.queues.push(QueuedItem { item, service, marked: false }, packet, salt);
        while self.held(packet.now) > params.buffer {
            let Some(evicted) = self.queues.evict() else { break };
            self.queued -= evicted.service;
            out(evicted.item, Exit::Evicted);
        }
        if is_idle {
            self.serve_next(params, salt, &mut out);
        }
        None
    }

    /// Ends a time without packets: the queues become inactive, as at a dequeue that finds none.
    fn wake(&mut self, now: Time) {
        debug_assert!(self.queued == Span::ZERO && self.idle_at < now, "packets wait at an idle port");
        let none = self.queues.pop(self.idle_at, &mut |_| {});
        debug_assert!(none.is_none(), "a packet waits at an idle port");
        self.idle_at = now;
    }

    /// Takes the next packet into service, if the discipline leaves one.
    fn serve_next(&mut self, params: &PortParams, salt: u64, out: &mut impl FnMut(P, Exit)) {
        if let Some(next) = self.take_next(params, out) {
            self.serve(next, params, salt, out);
        }
    }

    /// A credit arrives at a port with a queue for it, served up to now.
    fn enqueue_credit(
        &mut self,
        credits: &CreditParams,
        params: &PortParams,
        packet: &Arrival,
        item: P,
        mut out: impl FnMut(P, Exit),
    ) -> Option<P> {
        if self.idle_at < packet.now && self.credits.passes(credits, packet.size, packet.now) {
            self.idle_at = packet.now;
            self.credits.spend(credits, packet.size, packet.now);
            self.serve_credit(item, packet.size, params, &mut out);
            return None;
        }
        self.credits.push(credits, item, packet)
    }

    /// Replays every service decision taken before `until`.
    #[inline]
    pub fn advance(&mut self, params: &PortParams, salt: u64, until: Time, mut out: impl FnMut(P, Exit)) {
        if !self.credits.is_empty() {
            self.advance_with_credits(params, salt, until, &mut out);
        }
        while self.idle_at < until && self.queued > Span::ZERO {
            self.serve_next(params, salt, &mut out);
        }
    }

    /// Takes the next packet to serve off the queues, at the time the port falls idle. Packets that the discipline drops
    /// go to `out`.
    #[inline(always)]
    fn take_next(&mut self, params: &PortParams, out: &mut impl FnMut(P, Exit)) -> Option<QueuedItem<P>> {
        let mut dropped = Span::ZERO;
        let next = self.queues.pop(self.idle_at, &mut |waiting| {
            dropped += waiting.service;
            out(waiting.item, Exit::Dropped);
        });
        self.queued -= dropped;
        debug_assert!(next.is_some() || self.queued == Span::ZERO, "packets wait and none is next");
        let next = next?;
        self.serves_control = next.from_control;
        self.queued -= next.waiting.service;
        if params.control.is_some() && self.serves_control {
            self.queued_control -= next.waiting.service;
        }
        Some(next.waiting)
    }

    /// Works as [`QueuedPort::advance`], until no credit waits.
    #[inline(never)]
    fn advance_with_credits(&mut self, params: &PortParams, salt: u64, until: Time, out: &mut impl FnMut(P, Exit)) {
        let Some(credits) = &params.credits else { return };
        while let Some(eligible_at) = self.credits.eligible_at(credits) {
            let eligible_at = eligible_at.max(self.idle_at);
            let waits_for_data = self.queued > Span::ZERO && eligible_at > self.idle_at;
            let begins = if waits_for_data { self.idle_at } else { eligible_at };
            if begins >= until {
                return;
            }
            if waits_for_data {
                let Some(next) = self.take_next(params, out) else { return };
                self.serve(next, params, salt, out);
            } else if let Some((item, size)) = self.credits.pop(credits, begins) {
                self.idle_at = begins;
                self.serve_credit(item, size, params, out);
            }
        }
    }

    /// Takes a credit into service at the time the port falls idle. Credits are neither marked nor in a phantom queue.
    fn serve_credit(&mut self, item: P, size: u32, params: &PortParams, out: &mut impl FnMut(P, Exit)) {
        self.serving = params.exact_service(size);
        self.serves_credit = true;
        self.idle_at += params.service(size);
        out(item, Exit::Served(PortTransit { arrives: self.idle_at + params.delay, marked: false }));
    }

    /// Takes a packet into service at the time the port falls idle.
    #[inline(always)]
    fn serve(&mut self, mut next: QueuedItem<P>, params: &PortParams, salt: u64, out: &mut impl FnMut(P, Exit)) {
        let begins = self.idle_at;
        let service =
            if params.config.tick.is_none() { next.service } else { params.service(next.item.arrival().size) };
        self.serving = next.service;
        self.serves_credit = false;
        let scheduled = self.scheduled.as_mut().and_then(|it| it.serve(begins, next.item.arrival().size));
        self.idle_at = scheduled.unwrap_or(begins + service);
        if params.config.mark_at == MarkAt::Dequeue {
            let at = Arrival { now: begins, ..next.item.arrival() };
            // Where the port does not trim, nothing is counted as control.
            next.marked = params.ecn.marks(self.queued - self.queued_control, || draw(salt, &at));
            next.marked |=
                params.phantom.as_ref().is_some_and(|phantom| self.phantom.requires_mark(phantom, salt, &at));
            next.marked &= at.ecn_capable;
        }
        out(next.item, Exit::Served(PortTransit { arrives: self.idle_at + params.delay, marked: next.marked }));
    }

    /// Returns the contribution of the packet in service to the backlog: its remaining service time and, by a schedule of
    /// rates, at most its service time at the constant rate.
    #[inline]
    fn remainder(&self, now: Time) -> Span {
        let remainder = self.idle_at.saturating_since(now);
        if self.scheduled.is_some() { remainder.min(self.serving) } else { remainder }
    }

    fn backlog(&self, params: &PortParams, now: Time) -> Span {
        let remainder = self.remainder(now);
        if params.control.is_some() && (self.serves_control || self.serves_credit) {
            return self.queued - self.queued_control;
        }
        self.queued - self.queued_control
            + match params.config.in_service {
                InService::Remaining => remainder,
                InService::All if remainder > Span::ZERO => self.serving,
                InService::All | InService::None => Span::ZERO,
            }
    }

    /// Returns the service time of the control packets in the buffer of a port that trims.
    fn held_control(&self, now: Time) -> Span {
        let waits = self.queued_control;
        let is_served = !self.serves_credit && self.serves_control;
        if is_served { waits + self.remainder(now) } else { waits }
    }

    /// Returns the service time of the data in the buffer of a port that trims.
    fn held_data(&self, now: Time) -> Span {
        let waits = self.queued - self.queued_control;
        let is_served = !self.serves_credit && !self.serves_control;
        if is_served { waits + self.remainder(now) } else { waits }
    }

    /// Returns the service time of the buffer's content at a time, the packet in service by its remainder.
    #[inline]
    pub fn held(&self, now: Time) -> Span {
        self.queued + self.remainder(now)
    }

    /// Returns what waits, marks decided at enqueue included, without the credits in their own queue.
    pub(crate) fn admitted(&self) -> Admitted {
        let waiting = self.queues.waiting().into_iter().flatten();
        waiting.fold(Admitted::default(), |sum, it| Admitted {
            packets: sum.packets + 1,
            bytes: sum.bytes + u64::from(it.item.arrival().size),
            marks: sum.marks + u64::from(it.marked),
        })
    }

    /// Returns all packets that wait, without the credits in their own queue.
    pub fn waiting(&self) -> impl Iterator<Item = &P> {
        self.queues.waiting().into_iter().flatten().map(|waiting| &waiting.item)
    }

    /// Checks that the counts match the queues. Returns the number of entries examined.
    ///
    /// # Errors
    /// A description of the mismatch.
    pub fn check(&self) -> Result<usize, String> {
        let [control, data] = self.queues.waiting().map(|queue| queue.map(|it| it.service).sum::<Span>());
        if control + data != self.queued {
            return Err(format!(
                "a port's queue takes {:?} to serve, but the counter has {:?}",
                control + data,
                self.queued
            ));
        }
        // Kept only where the port trims.
        if self.queued_control != control && self.queued_control != Span::ZERO {
            return Err(format!(
                "a port's control queue takes {control:?} to serve, but the counter has {:?}",
                self.queued_control
            ));
        }
        Ok(1 + self.waiting().count())
    }

    /// Returns whether any packet waits for the start of its service.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.queued > Span::ZERO || !self.credits.is_empty()
    }

    /// Returns the time of the next service if no packet follows; [`Time::NEVER`] if none waits.
    pub fn next_service(&self, params: &PortParams) -> Time {
        let data = if self.queued > Span::ZERO { self.idle_at } else { Time::NEVER };
        let credit = params.credits.as_ref().and_then(|credits| self.credits.eligible_at(credits));
        credit.map_or(data, |eligible_at| eligible_at.max(self.idle_at).min(data))
    }

    /// Returns the number of credits that wait.
    pub fn credits_waiting(&self) -> usize {
        self.credits.len()
    }

    /// Returns the time at which the port becomes idle, apart from packets that wait.
    pub fn idle_at(&self) -> Time {
        self.idle_at
    }

    /// Returns the content of the buffer at a time, the remainder of the packet in service included, but for a credit,
    /// which has a queue of its own. Exact only once service has been replayed to that time.
    pub fn queue(&self, params: &PortParams, now: Time) -> Bytes {
        params.bytes_in(if self.serves_credit { self.queued } else { self.held(now) })
    }

    /// Returns the phantom queue.
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

    /// The passage of a packet that is served.
    fn served(exit: Exit) -> PortTransit {
        let Exit::Served(passage) = exit else { panic!("dropped") };
        passage
    }

    impl QueueItem for Arrival {
        fn arrival(&self) -> Arrival {
            *self
        }
    }

    proptest! {
        /// Without priorities the queued port is the plain port: same drops, marks and times.
        #[test]
        fn agrees_with_the_plain_port(packets in proptest::collection::vec((0..400_000u64, 64..4160u32), 1..300)) {
            let params = PortParams::new(&config()).unwrap();
            let (mut plain, mut queued) = (PlainPort::default(), QueuedPort::new(params.config()));
            let (mut expected, mut got) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            for (id, &(gap, size)) in packets.iter().enumerate() {
                now += Span::from_unsigned_ps(gap);
                let packet = arrival(now, size, false, id as u64);
                expected.extend(plain.enqueue(&params, 7, &packet).map(|passage| (id, passage)));
                queued.enqueue(&params, 7, &packet, packet, |it, exit| got.push((it.identity as usize, served(exit))));
                let difference = plain.queue(&params, now).get().abs_diff(queued.queue(&params, now).get());
                prop_assert!(difference == 0 && plain.queue(&params, now).get() <= 40_000);
            }
            queued.advance(&params, 7, Time::NEVER, |it, exit| got.push((it.identity as usize, served(exit))));
            prop_assert_eq!(expected, got);
        }

        /// A control packet waits for the packet in service and for control packets before it, for no data more.
        #[test]
        fn control_goes_first(packets in proptest::collection::vec((0..100_000u64, any::<bool>()), 1..300)) {
            let params = PortParams::new(&PortConfig { control_priority: true, buffer: Bytes::MAX, ..config() }).unwrap();
            let mut queued = QueuedPort::new(params.config());
            let mut departures = Vec::new();
            let mut now = Time::ZERO;
            for &(gap, control) in &packets {
                now += Span::from_unsigned_ps(gap);
                let packet = arrival(now, if control { 64 } else { 4160 }, control, now.ps());
                queued.enqueue(&params, 7, &packet, packet, |it, exit| departures.push(((it.now, it.control), served(exit))));
            }
            queued.advance(&params, 7, Time::NEVER, |it, exit| departures.push(((it.now, it.control), served(exit))));
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
    fn check_finds_a_wrong_queue_length() {
        let params = PortParams::new(&config()).unwrap();
        let mut port = QueuedPort::new(params.config());
        for at in 0..3 {
            let packet = arrival(Time::from_ps(at), 1_000, false, at);
            port.enqueue(&params, 7, &packet, packet, |_, _| {});
        }
        assert_eq!((port.waiting().count(), port.check()), (2, Ok(3)));
        port.queued -= Span::from_ps(1);
        assert!(port.check().unwrap_err().contains("a port's queue takes"));
    }

    /// A port of 10 Gb/s with a bucket of one credit: 84 bytes last 67.2 ns, 1538 bytes 1230.4 ns, both 1297.6 ns.
    #[test]
    fn credits_with_tokens_go_first_and_without_them_wait_at_an_idle_port() {
        let queue = crate::CreditQueue { burst: Bytes::new(84), ..crate::CreditQueue::flashpass() };
        let port = PortConfig { credits: Some(queue), ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1)) };
        let params = PortParams::new(&port).unwrap();
        let mut queued = QueuedPort::new(params.config());
        let credit = |ps, identity| Arrival { credit: true, ..arrival(Time::from_ps(ps), 84, true, identity) };
        let data = |ps, identity| arrival(Time::from_ps(ps), 1_538, false, identity);
        let mut began = Vec::new();
        let sizes = [67_200, 1_230_400].map(Span::from_ps);
        let packets = [credit(1, 0), credit(2, 1), data(3, 2), data(4, 3), credit(5, 4), data(6_000_000, 5)];
        for packet in packets {
            let refused = queued.enqueue(&params, 7, &packet, packet, |item, exit| {
                let lasts = sizes[usize::from(!item.credit)];
                began.push((item.identity, (served(exit).arrives - params.delay - lasts).ps()));
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
        let queue = crate::CreditQueue { unscheduled: Some(Bytes::new(3_000)), ..crate::CreditQueue::flashpass() };
        let port = PortConfig {
            credits: Some(queue),
            buffer: Bytes::new(6_000),
            ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
        };
        let params = PortParams::new(&port).unwrap();
        let mut queued = QueuedPort::new(params.config());
        let mut takes = |expendable| {
            let packet = Arrival { expendable, ..arrival(Time::from_ps(10), 1_500, false, 0) };
            queued.enqueue(&params, 7, &packet, packet, |_, _| {}).is_none()
        };
        assert_eq!(
            [true, true, true, false, true, false, false].map(&mut takes),
            [true, true, false, true, false, true, false]
        );
    }

    /// 10 Gb/s: 1500 bytes last 1.2 us, 64 bytes 51.2 ns.
    #[test]
    fn a_port_that_trims_keeps_data_and_control_apart() {
        let at = Bytes::new(1_000);
        let port = PortConfig {
            buffer: Bytes::new(3_000),
            control_priority: true,
            ecn: Some(Ecn { min: at, max: at, max_probability: Frac::ONE }),
            trim: Some(crate::Trim { header: 64, control: Bytes::new(192) }),
            ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
        };
        assert!(!port.is_plain() && !port.is_plain_but_for_order());
        assert_eq!(port.longest_wait(), Some(Rate::from_gbps(10).tx_time(Bytes::new(3_192))));
        let params = PortParams::new(&port).unwrap();
        let mut queued = QueuedPort::new(params.config());
        let mut left = Vec::new();
        let mut offer = |ps, size, control, id| {
            let packet = arrival(Time::from_ps(ps), size, control, id);
            let refused = queued.enqueue(&params, 7, &packet, packet, |it, exit| {
                left.push((it.identity, (served(exit).arrives - params.delay).ps(), served(exit).marked));
            });
            queued.check().unwrap();
            refused.is_none()
        };
        // The buffer of data is full with two, that of control with three.
        assert_eq!([0, 1, 2].map(|id| offer(10, 1_500, false, id)), [true, true, false]);
        assert_eq!([3, 4, 5, 6].map(|id| offer(10, 64, true, id)), [true, true, true, false]);
        // Once the first packet is gone and control is being served, there is room again.
        let served_at = 1_200_000 + 11;
        assert_eq!([7, 8].map(|id| offer(served_at, 1_500, false, id)), [true, false]);
        // One of control has left and counts no more.
        assert!(!offer(served_at, 64, true, 9));
        assert!(offer(served_at + 51_200, 64, true, 10));
        queued.advance(&params, 7, Time::NEVER, |it, exit| {
            left.push((it.identity, (served(exit).arrives - params.delay).ps(), served(exit).marked));
        });
        // Packet 1 finds 1500 B of data, packet 7 the same amount; waiting control packets do not cause marks.
        let control = 10 + 1_200_000;
        let data = control + 4 * 51_200;
        let expected = [
            (0, control, false),
            (3, control + 51_200, false),
            (4, control + 2 * 51_200, false),
            (5, control + 3 * 51_200, false),
            (10, data, false),
            (1, data + 1_200_000, true),
            (7, data + 2_400_000, true),
        ];
        assert_eq!(left, expected);
        assert!(queued.check().is_ok());
    }

    #[test]
    fn control_alone_marks_no_data_where_a_port_trims() {
        let at = Bytes::new(1_000);
        for mark_at in [MarkAt::Enqueue, MarkAt::Dequeue] {
            let port = PortConfig {
                control_priority: true,
                mark_at,
                ecn: Some(Ecn { min: at, max: at, max_probability: Frac::ONE }),
                trim: Some(crate::Trim { header: 64, control: Bytes::MAX }),
                ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
            };
            let marks = |port: &PortConfig| {
                let params = PortParams::new(port).unwrap();
                let mut queued = QueuedPort::new(params.config());
                let mut marks = Vec::new();
                let mut out = |it: Arrival, exit: Exit| marks.extend((!it.control).then_some(served(exit).marked));
                // 40 control packets are 2560 bytes; the data that leaves first leaves them behind, too.
                let control = (0..40).map(|id| arrival(Time::from_ps(10), 64, true, id));
                let data = arrival(Time::from_ps(10), 500, false, 99);
                for packet in [data].into_iter().chain(control).chain([data]) {
                    queued.enqueue(&params, 7, &packet, packet, &mut out);
                }
                queued.advance(&params, 7, Time::NEVER, &mut out);
                marks
            };
            assert_eq!(marks(&port), [false, false], "{mark_at:?}");
            let found = marks(&PortConfig { trim: None, ..port });
            // A packet that finds a queue is marked at enqueue; at dequeue no packet waits after the last one.
            assert_eq!(found, [false, mark_at == MarkAt::Enqueue], "{mark_at:?}");
        }
    }
}
