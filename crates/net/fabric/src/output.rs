//! Output port and its counters, shared by simulator and emulator: admission, marking, service, losses on the link.
//!
//! The configuration selects the code path once, as the port's [`PortMode`]. Where departures are known at enqueue the
//! queue is one number, in [`Port`]. All other state, which few ports need, is in [`PortExtras`].

use std::sync::Arc;

use units::{Bytes, Span, Time};

use crate::arrival::Arrival;
use crate::impairment_stage::{EntryDrop, Impaired, ImpairmentStage, Released};
use crate::impairments::{ImpairmentCounters, Impairments};
use crate::item::QueueItem;
use crate::losses::Losses;
use crate::plain::{PlainPort, PortTransit};
use crate::port::{PortConfig, PortParams};
use crate::queued::{Admitted, Exit, QueuedPort};

/// Causes of losses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// The queue or the buffer was full.
    Full,
    /// The link was down.
    Down,
    /// The link lost it by chance.
    Chance,
    /// The queue discipline dropped it.
    Discipline,
    /// The policer in front of the port had too few tokens.
    Policed,
    /// The packet was larger than the link's MTU.
    Oversized,
    /// The link corrupted it: it goes on, and its destination discards it.
    Corrupted,
}

/// Code path of packets through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortMode {
    /// A FIFO: the departure is known at enqueue.
    Fifo,
    /// Control first, and no data waits: a FIFO for now. Data that finds the port busy must wait, because control may
    /// still overtake it.
    Priority,
    /// Control first, and data waits: more data waits behind it.
    PriorityBacklogged,
    /// Served with [`PortExtras`].
    Extended,
}

/// Service that a port needs for another reason than its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortService {
    /// None.
    Configured,
    /// Service by [`PortExtras`]: the port is sampled, or its link fails.
    Extended,
}

impl PortMode {
    /// Returns the mode of a switch's port that shares no buffer.
    pub fn of_switch(config: &PortConfig, service: PortService) -> Self {
        if service == PortService::Extended || config.loses() || config.impairments.is_some() {
            Self::Extended
        } else if config.is_plain() {
            Self::Fifo
        } else if config.is_plain_but_for_order() {
            Self::Priority
        } else {
            Self::Extended
        }
    }

    /// Returns the mode of a host's NIC. A host passes its NIC one packet at a time, so it is a FIFO in any
    /// configuration.
    pub fn of_nic(config: &PortConfig, service: PortService) -> Self {
        if service == PortService::Extended || config.loses() { Self::Extended } else { Self::Fifo }
    }
}

/// A FIFO port and its counters: 56 bytes, so that a link's fields next to it fit in one cache line.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    fifo: PlainPort,
    packets: u64,
    bytes: u64,
    marks: u64,
    /// Longest backlog, as time of service.
    max_backlog: Span,
    drops: u32,
    /// Index of its settings among the network's.
    pub params: u16,
    /// Code path of its packets.
    pub mode: PortMode,
}

const _: () = assert!(size_of::<Port>() == 56);

impl Port {
    /// Returns an idle port.
    pub fn new(params: u16, mode: PortMode) -> Self {
        let fifo = PlainPort::default();
        Self { fifo, packets: 0, bytes: 0, marks: 0, max_backlog: Span::ZERO, drops: 0, params, mode }
    }

    /// Queues a packet in the FIFO and counts it. Returns `None` if the buffer has no room for it.
    #[inline(always)]
    pub fn enqueue(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<PortTransit> {
        let passage = self.fifo.enqueue(params, salt, packet);
        self.counted(packet, passage)
    }

    /// Works as [`Port::enqueue`], at a port that does not round services, as no FIFO of a switch does.
    #[inline(always)]
    pub fn enqueue_exact(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> Option<PortTransit> {
        let passage = self.fifo.enqueue_exact(params, salt, packet);
        self.counted(packet, passage)
    }

    #[inline(always)]
    fn counted(&mut self, packet: &Arrival, passage: Option<PortTransit>) -> Option<PortTransit> {
        let Some(passage) = passage else {
            self.count_drop();
            return None;
        };
        self.max_backlog = self.max_backlog.max(self.fifo.idle_at().since(packet.now));
        self.count(packet.size, passage);
        Some(passage)
    }

    /// Counts a packet at the start of its service.
    #[inline(always)]
    pub fn count(&mut self, size: u32, passage: PortTransit) {
        self.bytes += u64::from(size);
        self.packets += 1;
        self.marks += u64::from(passage.marked);
    }

    /// Counts a packet that the port drops.
    #[inline]
    pub fn count_drop(&mut self) {
        self.drops = self.drops.saturating_add(1);
    }

    /// Returns the time at which the FIFO becomes idle if no packet follows.
    #[inline]
    pub fn idle_at(&self) -> Time {
        self.fifo.idle_at()
    }

    /// Packets served.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of those packets.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Packets marked here.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// Packets dropped here, credits in their own queue excepted.
    pub fn drops(&self) -> u64 {
        self.drops.into()
    }

    /// Returns the longest queue, the packet in service by its remainder.
    pub fn max_queue(&self, params: &PortParams) -> Bytes {
        params.bytes_in(self.max_backlog)
    }
}

/// Receiver of the packets that leave a port.
pub trait PortOutlet<P> {
    /// Sends a packet on its way over the link.
    fn send(&mut self, item: P, passage: PortTransit);

    /// Discards a packet that the port dropped.
    fn discard(&mut self, item: P, cause: DropCause);

    /// Discards a packet that the link loses by chance once it has left the port.
    fn lose(&mut self, item: P, passage: PortTransit);

    /// Discards a credit that found no room in the credit queue; these are counted apart from drops.
    fn discard_credit(&mut self, item: P) {
        let _ = item;
    }

    /// Notes that a packet's payload is dropped; the rest of it goes on.
    fn trim(&mut self, item: &P) {
        let _ = item;
    }

    /// Notes that the link corrupts a packet; it goes on.
    fn corrupt(&mut self, item: &P) {
        let _ = item;
    }

    /// Notes that the link adds a copy of a packet, which is sent or held apart from it.
    fn duplicate(&mut self, item: &P) {
        let _ = item;
    }
}

/// State of a port in [`PortMode::Extended`], in addition to its [`Port`].
#[derive(Debug)]
pub struct PortExtras<P> {
    /// The queues, if departures are not known at enqueue.
    queues: Option<QueuedPort<P>>,
    losses: Losses,
    /// Impairments, if the link has any.
    stage: Option<Box<ImpairmentStage<P>>>,
    /// Data dropped because it was sent without a credit.
    pub unscheduled_drops: u64,
    /// Credits dropped at their own queue.
    pub credit_drops: u64,
    /// Packets trimmed.
    pub trims: u64,
}

impl<P: QueueItem + Copy> PortExtras<P> {
    /// Returns the state of an idle port of a switch, with the impairments of its link ([`crate::Network::impairments`]).
    pub fn of_switch(config: &PortConfig, impairments: Option<&Arc<Impairments>>) -> Self {
        let schedule = impairments.and_then(|impairments| impairments.rate_schedule.as_ref());
        let queues = (!config.is_plain() || schedule.is_some()).then(|| QueuedPort::new(config));
        let queues = match schedule {
            Some(schedule) => queues.map(|queues| queues.with_schedule(Arc::clone(schedule))),
            None => queues,
        };
        let stage = impairments.map(|impairments| Box::new(ImpairmentStage::new(Arc::clone(impairments))));
        Self { queues, stage, ..Self::of_nic() }
    }

    /// Returns the state of an idle NIC.
    pub fn of_nic() -> Self {
        Self { queues: None, losses: Losses::default(), stage: None, unscheduled_drops: 0, credit_drops: 0, trims: 0 }
    }

    /// Begins the schedule of rates, if the port has one; before, it serves at its constant rate.
    pub fn begin_schedule(&mut self, start: Time) {
        if let Some(queues) = &mut self.queues {
            queues.begin_schedule(start);
        }
    }

    /// Replays service up to the packet's arrival, then queues the packet. Packets that leave the port go to `outlet`: this
    /// packet, or others.
    pub fn enqueue(
        &mut self,
        port: &mut Port,
        params: &PortParams,
        salt: u64,
        item: P,
        outlet: &mut impl PortOutlet<P>,
    ) {
        let arrival = item.arrival();
        if let Some(stage) = &mut self.stage
            && let Some(reason) = stage.admit(&arrival)
        {
            port.count_drop();
            let cause = match reason {
                EntryDrop::Policed => DropCause::Policed,
                EntryDrop::Oversized => DropCause::Oversized,
            };
            return outlet.discard(item, cause);
        }
        let Some(queues) = &mut self.queues else {
            let Some(passage) = port.enqueue(params, salt, &arrival) else {
                return outlet.discard(item, DropCause::Full);
            };
            let mut link = LinkStage { losses: &mut self.losses, stage: self.stage.as_deref_mut(), params, salt };
            link.send(item, passage, &arrival, outlet);
            return link.release(arrival.now, outlet);
        };
        let link = LinkStage { losses: &mut self.losses, stage: self.stage.as_deref_mut(), params, salt };
        let mut leaving = Leaving { port, link, outlet };
        let mut refused = queues.enqueue(params, salt, &arrival, item, |item, exit| leaving.leave(item, exit));
        // Expendable packets are dropped completely.
        if let (Some(item), Some(trim)) = (&refused, params.config().trim)
            && !arrival.expendable
            && let Some(header) = item.trimmed(trim.header)
        {
            leaving.outlet.trim(item);
            self.trims += 1;
            refused = queues.enqueue(params, salt, &header.arrival(), header, |item, exit| leaving.leave(item, exit));
        }
        let Leaving { port, mut link, outlet } = leaving;
        link.release(arrival.now, outlet);
        let is_credit = arrival.credit && params.credits().is_some();
        match refused {
            Some(item) if is_credit => {
                self.credit_drops += 1;
                outlet.discard_credit(item);
            }
            Some(item) => {
                port.count_drop();
                self.unscheduled_drops += u64::from(arrival.expendable && params.credits().is_some());
                outlet.discard(item, DropCause::Full);
            }
            None if is_credit => {}
            None => port.max_backlog = port.max_backlog.max(queues.held(arrival.now)),
        }
    }

    /// Replays the service that begins before `until`. Packets that leave the port go to `outlet`.
    pub fn advance(
        &mut self,
        port: &mut Port,
        params: &PortParams,
        salt: u64,
        until: Time,
        outlet: &mut impl PortOutlet<P>,
    ) {
        let link = LinkStage { losses: &mut self.losses, stage: self.stage.as_deref_mut(), params, salt };
        let mut leaving = Leaving { port, link, outlet };
        if let Some(queues) = &mut self.queues {
            queues.advance(params, salt, until, |item, exit| leaving.leave(item, exit));
        }
        let Leaving { mut link, outlet, .. } = leaving;
        link.release(until, outlet);
    }

    /// Returns whether any packet waits for the start of its service, or is held by an impairment.
    pub fn has_waiting(&self) -> bool {
        self.queues.as_ref().is_some_and(QueuedPort::has_waiting)
            || self.stage.as_ref().is_some_and(|stage| stage.is_holding())
    }

    /// Returns what waits and counts already: a port that decides at enqueue counts packets then.
    pub fn admitted(&self, params: &PortParams) -> Admitted {
        let queues = self.queues.as_ref().filter(|_| params.config().is_plain_but_for_order());
        queues.map_or(Admitted::default(), QueuedPort::admitted)
    }

    /// Returns the packets that wait or are held, without the credits in their own queue.
    pub fn waiting(&self) -> impl Iterator<Item = &P> {
        let held = self.stage.iter().flat_map(|stage| stage.held());
        self.queues.iter().flat_map(QueuedPort::waiting).chain(held)
    }

    /// Returns the time of the next service or release if no packet follows; [`Time::NEVER`] if no packet waits or is held.
    pub fn next_service(&self, params: &PortParams) -> Time {
        let service = self.queues.as_ref().map_or(Time::NEVER, |queues| queues.next_service(params));
        self.stage.as_ref().map_or(service, |stage| service.min(stage.next()))
    }

    /// Returns the time at which the port becomes idle, apart from packets that wait in queues.
    pub fn idle_at(&self, port: &Port) -> Time {
        self.queues.as_ref().map_or(port.idle_at(), QueuedPort::idle_at)
    }

    /// Returns the bytes in the port's queue and in its phantom queue at a time. Exact only once service has been replayed
    /// to that time.
    pub fn occupancy(&self, port: &Port, params: &PortParams, now: Time) -> Occupancy {
        let (queue, phantom) = match &self.queues {
            Some(queues) => (queues.queue(params, now), queues.phantom()),
            None => (port.fifo.queue(params, now), port.fifo.phantom()),
        };
        Occupancy { queue, phantom: phantom.occupancy(params, now) }
    }

    /// Packets that the link lost by chance.
    pub fn losses(&self) -> u64 {
        self.losses.count()
    }

    /// Packets that impairments affected.
    pub fn impaired_packets(&self) -> ImpairmentCounters {
        self.stage.as_ref().map_or(ImpairmentCounters::default(), |stage| stage.counters())
    }

    /// Checks that the counts match the queues. Returns the number of entries examined.
    ///
    /// # Errors
    /// When one does not: the difference.
    pub fn check(&self) -> Result<usize, String> {
        let queued = self.queues.as_ref().map_or(Ok(0), QueuedPort::check)?;
        Ok(queued + self.stage.as_ref().map_or(Ok(0), |stage| stage.check())?)
    }
}

/// Bytes in the queues of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// The queue, the remainder of the packet in service included.
    pub queue: Bytes,
    /// The phantom queue.
    pub phantom: Bytes,
}

/// The way from a port to its link: random losses, then impairments.
struct LinkStage<'a, P> {
    losses: &'a mut Losses,
    stage: Option<&'a mut ImpairmentStage<P>>,
    params: &'a PortParams,
    salt: u64,
}

impl<P: QueueItem + Copy> LinkStage<'_, P> {
    /// Sends a packet that leaves the port, unless the link loses it or an impairment holds it.
    #[inline]
    fn send(&mut self, item: P, passage: PortTransit, arrival: &Arrival, outlet: &mut impl PortOutlet<P>) {
        if self.losses.loses(self.params, self.salt, arrival) {
            return outlet.lose(item, passage);
        }
        match &mut self.stage {
            None => outlet.send(item, passage),
            Some(stage) => stage.enter(item, passage, self.params, self.salt, |event| note(&event, outlet)),
        }
    }

    /// Sends the packets that impairments release before `until`.
    #[inline]
    fn release(&mut self, until: Time, outlet: &mut impl PortOutlet<P>) {
        let Some(stage) = &mut self.stage else { return };
        stage.close_due_group(until, self.params, self.salt, |event| note(&event, outlet));
        while let Some(Released { item, passage }) = stage.release(until, self.params) {
            outlet.send(item, passage);
        }
    }
}

fn note<P>(event: &Impaired<P>, outlet: &mut impl PortOutlet<P>) {
    match event {
        Impaired::Corrupted(item) => outlet.corrupt(item),
        Impaired::Duplicated(item) => outlet.duplicate(item),
    }
}

/// The way from the queues to the link.
struct Leaving<'a, P, O> {
    port: &'a mut Port,
    link: LinkStage<'a, P>,
    outlet: &'a mut O,
}

impl<P: QueueItem + Copy, O: PortOutlet<P>> Leaving<'_, P, O> {
    #[inline]
    fn leave(&mut self, item: P, exit: Exit) {
        let cause = match exit {
            Exit::Served(passage) => {
                let arrival = item.arrival();
                self.port.count(arrival.size, passage);
                return self.link.send(item, passage, &arrival, self.outlet);
            }
            Exit::Dropped => DropCause::Discipline,
            Exit::Evicted => DropCause::Full,
        };
        self.port.count_drop();
        self.outlet.discard(item, cause);
    }
}
