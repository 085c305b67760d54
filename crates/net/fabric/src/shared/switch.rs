//! A switch with one buffer shared by all ports. Every decision of the switch depends on all its ports, so it is replayed
//! as a whole, in the order (time, port), before any of its state is read: a hop is one arrival and one decision.
//!
//! A port sends frames first (pauses and resumes, one per class: the latest), then control, then data classes in turn,
//! one packet each.
//!
//! A packet that arrives needs room even if it leaves at once. It leaves the buffer when its service begins. Packets of
//! class 0 (control) are in a separate, unlimited buffer: they are few, and are never paused.
//!
//! Events at one time have this order: arrivals, by input link; then decisions of ports, by port. A port that becomes idle,
//! or is resumed, when packets arrive therefore also chooses among these.
//!
//! Marking depends on the queue of the packet's own class and the control packets before it.

use std::sync::Arc;

use units::{Bytes, Span, Time};

use super::earliest::Earliest;
use super::pool::{BufferAdmission, BufferPool};
use super::port::{Departure, NOWHERE, PacketMeta, ServiceStart, SharedPort, WaitingPacket};
use super::{CLASSES, PfcAction, Switch};
use crate::QueueItem;
use crate::arrival::{Arrival, draw};
use crate::pauses::Pauses;
use crate::port::{MarkAt, PortConfig, PortParams};

/// Item carried by a switch with a shared buffer.
pub trait SwitchItem: QueueItem + Copy {
    /// Returns the packet's class at a port with this configuration: 0 is control.
    fn class(&self, port: &PortConfig) -> u8;
    /// Returns a PFC frame for a class.
    fn frame(action: PfcAction, class: u8, size: u32, now: Time) -> Self;
}

/// Receiver of departures and drops.
pub trait SwitchOutlet<P> {
    /// Reports that a packet's service begins.
    fn depart(&mut self, item: &P, departure: &Departure);
    /// Reports that a packet found no room on its way to `port`.
    fn drop(&mut self, item: &P, port: usize);
}

/// The switch.
#[derive(Debug)]
pub struct SharedSwitch<P> {
    config: Switch,
    pool: BufferPool,
    /// Settings of ports, each once for all ports that have them.
    params: Arc<[PortParams]>,
    ports: Vec<SharedPort<P>>,
    /// Time of the next decision of each port that may serve something.
    next: Earliest,
    headroom_drops: u64,
}

impl<P: SwitchItem> SharedSwitch<P> {
    /// A switch with these ports: of each the place of its settings and the salt of its chances. `classes` is how many
    /// data classes are in use: each has its reserve and headroom.
    ///
    /// # Panics
    /// If there are no settings at some port's place.
    pub fn new(
        config: Switch,
        params: Arc<[PortParams]>,
        ports: impl Iterator<Item = (u32, u64)>,
        classes: u64,
    ) -> Self {
        let ports: Vec<SharedPort<P>> = ports.map(|(params, salt)| SharedPort::new(params, salt)).collect();
        let ingress_limits =
            ports.iter().map(|port| params[port.service.params as usize].config.ingress_limit).collect();
        Self {
            config,
            pool: BufferPool::new(&config, ingress_limits, classes),
            next: Earliest::new(ports.len()),
            params,
            ports,
            headroom_drops: 0,
        }
    }

    /// Queues at `to` a packet that arrived by `from` (or was made here) at `packet.now`. Every earlier decision is
    /// replayed first.
    #[inline(always)]
    pub fn arrive(
        &mut self,
        from: Option<usize>,
        to: usize,
        packet: &Arrival,
        item: &P,
        out: &mut impl SwitchOutlet<P>,
    ) {
        let now = packet.now;
        self.advance(now, out);
        let port = &self.ports[to];
        let params = &self.params[port.service.params as usize];
        let class = usize::from(item.class(&params.config)) % CLASSES;
        let size = u64::from(packet.size);
        let charged = match from {
            Some(from) if class != 0 => {
                let over = port.is_full(params, packet) || self.is_over(to, class, size);
                if over || self.pool.arrive(from, class, size) == BufferAdmission::Rejected {
                    self.headroom_drops += u64::from(self.config.pfc.is_some() && !over);
                    out.drop(item, to);
                    return;
                }
                if self.pool.try_pause(from, class) && !self.relays(from, class) {
                    self.send_frame(from, class, PfcAction::Pause, now, out);
                }
                true
            }
            _ => false,
        };
        let from = from.map_or(NOWHERE, |from| from as u16);
        self.enqueue(to, class, packet, item, PacketMeta { size: packet.size, from, charged, marked: false }, out);
    }

    /// Returns whether a packet would make an egress queue longer than the free space of the shared part permits.
    #[inline]
    fn is_over(&self, to: usize, class: usize, size: u64) -> bool {
        let limit = self.config.egress_alpha.map(|alpha| alpha.of(self.pool.free()));
        limit.is_some_and(|limit| self.ports[to].queues[class].bytes + size > limit)
    }

    #[inline(always)]
    fn enqueue(
        &mut self,
        to: usize,
        class: usize,
        packet: &Arrival,
        item: &P,
        mut meta: PacketMeta,
        out: &mut impl SwitchOutlet<P>,
    ) {
        let now = packet.now;
        let port = &mut self.ports[to];
        let params = &self.params[port.service.params as usize];
        let salt = port.service.salt;
        meta.marked = params.phantom.as_ref().is_some_and(|phantom| port.phantom.add(phantom, salt, packet));
        if params.config.mark_at == MarkAt::Enqueue {
            let backlog = port.before(class) + port.service.in_service(params, now);
            meta.marked |= params.ecn.marks(backlog, || draw(salt, packet));
        }
        meta.marked &= packet.ecn_capable;
        let held_back = port.service.paused >> class & 1 == 1;
        if !held_back && port.service.idle_at < now && port.service.eligible() == 0 {
            // Nothing that may leave waits before it.
            self.serve(to, class, item, meta, now, out);
            return;
        }
        port.push(params, class, item, meta);
        if !held_back && !self.next.time_of(to).is_set() {
            self.next.set(to, self.ports[to].service.idle_at);
        }
    }

    /// The other end of a port pauses a class, or lets it go on, at `now`.
    pub fn on_frame(&mut self, port: usize, class: u8, action: PfcAction, now: Time, out: &mut impl SwitchOutlet<P>) {
        self.advance(now, out);
        let bit = 1 << (class % CLASSES as u8);
        let target = &mut self.ports[port];
        let before = target.service.paused;
        let paused = match action {
            PfcAction::Pause => before | bit,
            PfcAction::Resume => before & !bit,
        };
        target.service.paused = paused;
        target.pauses.change(before, paused, now);
        let at = if target.service.eligible() == 0 { Time::NEVER } else { target.service.idle_at.max(now) };
        self.next.set(port, at);
        if self.config.pfc.is_some_and(|pfc| pfc.relay) && before != paused {
            self.pass_on(port, usize::from(class) % CLASSES, action, now, out);
        }
    }

    /// A relay passes a pause or a resume on to those other ends that are not at rest for another reason: its own buffer
    /// asks for it, or a third port is paused, too.
    #[cold]
    fn pass_on(&mut self, port: usize, class: usize, action: PfcAction, now: Time, out: &mut impl SwitchOutlet<P>) {
        let paused = |index: usize, it: &SharedPort<P>| index != port && it.service.paused >> class & 1 == 1;
        for other in (0..self.ports.len()).filter(|&other| other != port) {
            let third = self.ports.iter().enumerate().any(|(index, it)| index != other && paused(index, it));
            if !third && !self.pool.is_paused(other, class) {
                self.send_frame(other, class, action, now, out);
            }
        }
    }

    /// Returns whether a relay has passed a pause of a class on to the other end of a port.
    fn relays(&self, port: usize, class: usize) -> bool {
        let relay = self.config.pfc.is_some_and(|pfc| pfc.relay);
        relay && self.ports.iter().enumerate().any(|(other, it)| other != port && it.service.paused >> class & 1 == 1)
    }

    /// Replays every decision taken before `until`.
    #[inline(always)]
    pub fn advance(&mut self, until: Time, out: &mut impl SwitchOutlet<P>) {
        if self.next.time() < until {
            self.replay(until, out);
        }
    }

    #[inline(never)]
    fn replay(&mut self, until: Time, out: &mut impl SwitchOutlet<P>) {
        while self.next.time() < until {
            let (index, now) = (self.next.port(), self.next.time());
            let port = &mut self.ports[index];
            let params = &self.params[port.service.params as usize];
            let Some((class, meta)) = port.dequeue(params) else { return };
            let before = port.before(class);
            let SharedPort { service, queues, phantom, .. } = port;
            let Some(WaitingPacket { item, .. }) = queues[class].ring.front() else { return };
            let departure =
                service.begin(params, *phantom, before, item, meta, ServiceStart { port: index, class, now });
            self.next.set(index, service.next_at());
            out.depart(item, &departure);
            queues[class].ring.drop_front();
            self.free(class, meta, now, out);
        }
    }

    /// Checks that the accounts match the content of the queues. Returns the number of entries examined.
    ///
    /// # Errors
    /// A description of the mismatch.
    pub fn check(&self) -> Result<usize, String> {
        let mut examined = 0;
        let mut charged = vec![[0; CLASSES]; self.ports.len()];
        for (index, port) in self.ports.iter().enumerate() {
            port.check(&self.params[port.service.params as usize]).map_err(|error| format!("port {index}: {error}"))?;
            for (class, queue) in port.queues.iter().enumerate() {
                examined += 1 + queue.ring.len();
                for meta in queue.ring.iter().map(|waiting| waiting.meta).filter(|meta| meta.charged) {
                    charged[usize::from(meta.from)][class] += u64::from(meta.size);
                }
            }
        }
        self.pool.check(&charged)?;
        Ok(examined)
    }

    /// Returns the time of the switch's next decision; [`Time::NEVER`] if nothing waits that may be sent.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.next.time()
    }

    /// Takes a packet that has not waited into service at a port that is idle at `now`.
    #[inline(always)]
    fn serve(
        &mut self,
        index: usize,
        class: usize,
        item: &P,
        meta: PacketMeta,
        now: Time,
        out: &mut impl SwitchOutlet<P>,
    ) {
        let port = &mut self.ports[index];
        let params = &self.params[port.service.params as usize];
        let before = port.before(class);
        let departure =
            port.service.begin(params, port.phantom, before, item, meta, ServiceStart { port: index, class, now });
        let next = port.service.next_at();
        if next != self.next.time_of(index) {
            self.next.set(index, next);
        }
        out.depart(item, &departure);
        self.free(class, meta, now, out);
    }

    /// Frees the buffer of a packet that has left.
    #[inline(always)]
    fn free(&mut self, class: usize, meta: PacketMeta, now: Time, out: &mut impl SwitchOutlet<P>) {
        if meta.charged {
            let from = usize::from(meta.from);
            self.pool.depart(from, class, meta.size.into());
            if self.pool.try_resume(from, class) && !self.relays(from, class) {
                self.send_frame(from, class, PfcAction::Resume, now, out);
            }
        }
    }

    /// Sends a pause frame, or the one that ends the pause, to the other end of a port: before all that waits there. A
    /// frame of the class that still waits is replaced.
    #[cold]
    fn send_frame(&mut self, port: usize, class: usize, action: PfcAction, now: Time, out: &mut impl SwitchOutlet<P>) {
        let Some(pfc) = self.config.pfc else { return };
        let item = P::frame(action, class as u8, pfc.frame, now);
        let target = &mut self.ports[port];
        if let Some(frame) = target.waiting_frame(class) {
            frame.item = item;
            return;
        }
        let arrival = Arrival { now, ..item.arrival() };
        let meta = PacketMeta { size: pfc.frame, from: NOWHERE, charged: false, marked: false };
        let waited = target.queues[0].ring.len();
        self.enqueue(port, 0, &arrival, &item, meta, out);
        self.ports[port].put_first(waited, class);
    }

    /// Returns the bytes that the buffer holds.
    pub fn held(&self) -> Bytes {
        self.pool.held()
    }

    /// Returns the maximum that it has held.
    pub fn max_held(&self) -> Bytes {
        self.pool.max_held()
    }

    /// Returns the bytes that arrived by a port and wait.
    pub fn held_by(&self, port: usize) -> Bytes {
        self.pool.held_by(port)
    }

    /// Returns the bytes that wait in a port.
    pub fn queue(&self, port: usize) -> Bytes {
        Bytes::new(self.ports[port].service.waiting_bytes)
    }

    /// Returns the maximum that has waited in a port.
    pub fn max_queued(&self, port: usize) -> Bytes {
        Bytes::new(self.ports[port].service.max_waiting)
    }

    /// Returns all packets that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &P> {
        let queues = self.ports.iter().flat_map(|port| &port.queues);
        queues.flat_map(|queue| queue.ring.iter().map(|waiting| &waiting.item))
    }

    /// Returns whether the other end of a port pauses a class.
    pub fn is_paused(&self, port: usize, class: u8) -> bool {
        self.ports[port].service.paused >> (class % CLASSES as u8) & 1 == 1
    }

    /// Returns the end of a port's last service.
    pub fn idle_at(&self, port: usize) -> Time {
        self.ports[port].service.idle_at
    }

    /// The phantom queue of a port.
    pub fn phantom(&self, port: usize, now: Time) -> Bytes {
        let port = &self.ports[port];
        port.phantom.occupancy(&self.params[port.service.params as usize], now)
    }

    /// Bytes that a port has sent.
    pub fn sent(&self, port: usize) -> Bytes {
        Bytes::new(self.ports[port].service.sent_bytes)
    }

    /// Returns the number of pauses of a port's classes by the other end, and the time until `now` in which at least
    /// one class was paused.
    pub fn pauses(&self, port: usize, now: Time) -> (u64, Span) {
        let port = &self.ports[port];
        port.pauses.until(now)
    }

    /// Keeps each pause of a port from now on.
    pub fn keep_pauses(&mut self, port: usize) {
        self.ports[port].pauses = Pauses::with_spans();
    }

    /// Returns the periods in which at least one class of a port was paused, where they are kept, up to `now`.
    pub fn kept_pauses(&self, port: usize, now: Time) -> impl Iterator<Item = (Time, Time)> + '_ {
        let port = &self.ports[port];
        port.pauses.spans(now)
    }

    /// Packets dropped though their senders could be paused: their headroom was too small.
    pub fn headroom_drops(&self) -> u64 {
        self.headroom_drops
    }

    /// Ports that the other end pauses, with the cables that this pauses in turn: (port, cable, class), each once. A
    /// cable's sender is paused if packets from it are held back here and caused a pause; at a relay, in any case.
    pub fn held_back(&self) -> Vec<(usize, usize, u8)> {
        let relays = self.config.pfc.is_some_and(|pfc| pfc.relay);
        let mut held = Vec::new();
        for (index, port) in self.ports.iter().enumerate() {
            for class in (0..CLASSES).filter(|&class| port.service.paused >> class & 1 == 1) {
                let waiting_from = port.queues[class].ring.iter().filter(|it| it.meta.charged);
                let waiting_from = waiting_from.map(|it| usize::from(it.meta.from));
                let waiting = waiting_from.filter(|&from| self.pool.is_paused(from, class));
                let others = (0..self.ports.len()).filter(|&other| relays && other != index);
                for from in waiting.chain(others) {
                    let entry = (index, from, class as u8);
                    if !held.contains(&entry) {
                        held.push(entry);
                    }
                }
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pfc, PortConfig};
    use units::Rate;

    /// A packet of a class, or a pause or resume frame for it.
    #[derive(Clone, Copy, Debug)]
    struct TestItem {
        class: u8,
        pause: Option<PfcAction>,
        at: Arrival,
    }

    impl QueueItem for TestItem {
        fn arrival(&self) -> Arrival {
            self.at
        }
    }

    impl SwitchItem for TestItem {
        fn class(&self, _: &PortConfig) -> u8 {
            if self.pause.is_some() { 0 } else { self.class }
        }

        fn frame(action: PfcAction, class: u8, size: u32, now: Time) -> Self {
            Self { pause: Some(action), ..item(class, size, now) }
        }
    }

    fn item(class: u8, size: u32, now: Time) -> TestItem {
        let at =
            Arrival { now, size, ecn_capable: true, control: false, credit: false, expendable: false, identity: 0 };
        TestItem { class, pause: None, at }
    }

    /// Departures: (start of service, port, item); and drops: ports.
    #[derive(Default)]
    struct DepartureLog {
        left: Vec<(Time, usize, TestItem)>,
        dropped: Vec<usize>,
    }

    impl SwitchOutlet<TestItem> for DepartureLog {
        fn depart(&mut self, item: &TestItem, departure: &Departure) {
            self.left.push((departure.begins, departure.port, *item));
        }
        fn drop(&mut self, _: &TestItem, port: usize) {
            self.dropped.push(port);
        }
    }

    impl DepartureLog {
        /// The frames that left: (when, port, whether pause).
        fn frames(&self) -> Vec<(Time, usize, PfcAction)> {
            self.left.iter().filter_map(|(at, port, it)| it.pause.map(|pause| (*at, *port, pause))).collect()
        }
    }

    const OPEN: Switch = Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };

    /// A switch with ports of 8 Gb/s: a byte a nanosecond.
    fn switch(config: Switch, ports: usize, port: impl Fn(&mut PortConfig)) -> SharedSwitch<TestItem> {
        let mut settings = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
        port(&mut settings);
        let params = PortParams::new(&settings).unwrap();
        SharedSwitch::new(config, [params].into(), (0..ports as u64).map(|port| (0, port)), 2)
    }

    fn arrive(switch: &mut SharedSwitch<TestItem>, from: usize, to: usize, item: TestItem, log: &mut DepartureLog) {
        switch.arrive(Some(from), to, &item.at, &item, log);
    }

    /// A packet that leaves at once has had its class's turn, like one that waited.
    #[test]
    fn classes_take_turns_from_the_first_packet_on() {
        let (mut switch, mut log) = (switch(OPEN, 2, |_| {}), DepartureLog::default());
        for (ps, class) in [(1, 1), (2, 1), (3, 2), (4, 1), (5, 2)] {
            arrive(&mut switch, 0, 1, item(class, 1_000, Time::from_ps(ps)), &mut log);
        }
        switch.advance(Time::NEVER, &mut log);
        let classes: Vec<u8> = log.left.iter().map(|(.., it)| it.class).collect();
        assert_eq!(classes, [1, 2, 1, 2, 1]);
    }

    /// A relay of three cables: packets that arrive over the third may be for either of the others, so it is paused while
    /// one of them is.
    #[test]
    fn a_relay_passes_a_resume_on_when_no_other_port_is_paused() {
        let pfc = Pfc { frame: 64, relay: true };
        let (mut switch, mut log) = (switch(Switch { pfc: Some(pfc), ..OPEN }, 3, |_| {}), DepartureLog::default());
        let (pause, resume) = (PfcAction::Pause, PfcAction::Resume);
        let steps = [(0, pause), (1, pause), (0, resume), (0, resume), (1, resume)];
        for (step, (port, action)) in (1..).zip(steps) {
            switch.on_frame(port, 1, action, Time::from_us(step), &mut log);
            switch.advance(Time::from_us(step + 1), &mut log);
        }
        // 2 receives only the first pause and the last resume; 0 and 1 receive each other's.
        let us = Time::from_us;
        let expected = [
            (us(1), 1, pause),
            (us(1), 2, pause),
            (us(2), 0, pause),
            (us(3), 1, resume),
            (us(5), 0, resume),
            (us(5), 2, resume),
        ];
        assert_eq!(log.frames(), expected);
        assert_eq!((switch.pauses(0, us(9)), switch.pauses(1, us(9))), ((1, Span::from_us(2)), (1, Span::from_us(3))));
    }

    /// Frames go before all that waits, control included: one per class, the latest.
    #[test]
    fn frames_go_first() {
        let config = Switch { pfc: Some(Pfc { frame: 64, relay: true }), ..OPEN };
        let (mut switch, mut log) = (switch(config, 2, |_| {}), DepartureLog::default());
        for (ps, class) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
            let packet = item(class, 1_000, Time::from_ps(ps));
            switch.arrive(Some(0), 1, &packet.at, &packet, &mut log);
        }
        switch.on_frame(0, 3, PfcAction::Pause, Time::from_ps(5), &mut log);
        switch.on_frame(0, 4, PfcAction::Pause, Time::from_ps(6), &mut log);
        switch.on_frame(0, 3, PfcAction::Resume, Time::from_ps(7), &mut log);
        switch.advance(Time::NEVER, &mut log);
        let order: Vec<(u8, Option<PfcAction>)> = log.left.iter().map(|(.., it)| (it.class, it.pause)).collect();
        assert_eq!(
            order,
            [(1, None), (3, Some(PfcAction::Resume)), (4, Some(PfcAction::Pause)), (0, None), (0, None), (1, None)]
        );
    }

    /// A port's own limit holds in a switch that shares its buffer, and pauses do not help against it.
    #[test]
    fn a_port_keeps_its_own_limit() {
        let config = Switch { pfc: Some(Pfc { frame: 64, relay: false }), ..OPEN };
        let mut switch = switch(config, 2, |port| port.buffer = Bytes::new(2_500));
        let mut log = DepartureLog::default();
        // At 500 ns half of the first packet is left: 500 + 1,000 wait, and 1,001 more are too many.
        for (ps, size) in [(1, 1_000), (2, 1_000), (500_001, 1_001), (500_001, 1_000)] {
            arrive(&mut switch, 0, 1, item(1, size, Time::from_ps(ps)), &mut log);
        }
        assert_eq!((log.dropped, switch.headroom_drops(), switch.queue(1)), (vec![1], 0, Bytes::new(2_000)));
    }
}
