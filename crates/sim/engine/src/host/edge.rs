//! A flow's edge ([`flow::Edge`]) at a host: what few flows have between their law and the card, and what the host itself
//! remembers of such a flow. The host reads clocks and routes for it, and makes packets of what it lets go.

use experiment::{FlowSpec, HostConfig, Setup};
use flow::credits::{Scheduled, Scheduling};
use flow::{Edge, EdgeConfig, Hold, Reading, SendState, Sender};
use laws::ControlLaw;
use laws::credits::Driver;
use units::{Span, Time};

use super::Active;

/// What few flows have.
pub(super) struct AtEdge {
    /// None where a flow is here because its law retimes packets, or for its notes.
    pub(super) edge: Option<Edge>,
    /// Up to when changes of routes are in the hold's base.
    based_at: Time,
    /// When the flow's sending end acts on its credits, as far as that is in the host's calendar; [`Time::NEVER`] if it is
    /// not.
    pub(super) called_at: Time,
    /// Whether what is known goes beside its packets.
    pub(super) notes: bool,
    /// The last round trip that an acknowledgement measured, where that is.
    pub(super) last_rtt: Option<Span>,
    /// The time at which the flow waits to be asked; older entries for it mean nothing.
    pub(super) paced_at: Time,
}

impl AtEdge {
    /// What a flow has between its law and the card; none for most.
    pub(super) fn new<L: ControlLaw>(
        hold: Option<Hold>,
        scheduled: Option<Scheduled>,
        host: &HostConfig,
        sender: &Sender<L>,
        notes: bool,
    ) -> Option<Box<Self>> {
        let config = EdgeConfig { segment: host.segment, small_queue: host.small_queue, fq: host.fq };
        let is_there = hold.is_some() || scheduled.is_some() || !config.is_plain(host.mss);
        (is_there || notes || sender.retimes()).then(|| {
            Box::new(Self {
                edge: is_there.then(|| Edge::new(&config, host.mss, hold, scheduled)),
                based_at: Time::ZERO,
                called_at: Time::NEVER,
                notes,
                last_rtt: None,
                paced_at: Time::ZERO,
            })
        })
    }

    /// Remembers the round trip that an acknowledgement is about to tell the sender.
    pub(super) fn measure<L: ControlLaw>(&mut self, sender: &Sender<L>, now: Time, seq: u32, attempt: u8) {
        if self.notes {
            self.last_rtt = sender.round_trip(now, seq, attempt).or(self.last_rtt);
        }
    }

    /// Takes the packet that was allowed.
    #[inline(never)]
    fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, flow: u32, setup: &Setup) -> Scheduling {
        let reads = self.edge.as_ref().is_some_and(Edge::reads_clock);
        let reading = reads.then(|| self.read(now, &setup.flows[flow as usize], setup));
        match &mut self.edge {
            None => Scheduling { segment: sender.send(now), credit: None },
            Some(edge) => edge.take(sender, now, reading),
        }
    }

    fn read(&mut self, now: Time, spec: &FlowSpec, setup: &Setup) -> Reading {
        let changed = setup.routes.change_between(self.based_at, now.just_after()).is_some();
        let base = changed.then(|| {
            self.based_at = now;
            setup.hold_base(spec, now)
        });
        Reading { clock_ns: setup.clock_ns(spec.src, now), base }
    }

    pub(super) fn scheduled(&self) -> Option<&Scheduled> {
        self.edge.as_ref()?.scheduled()
    }

    pub(super) fn scheduled_mut(&mut self) -> Option<&mut Scheduled> {
        self.edge.as_mut()?.scheduled_mut()
    }

    pub(super) fn hold_mut(&mut self) -> Option<&mut Hold> {
        self.edge.as_mut()?.hold_mut()
    }

    /// Of the credit of a packet that was taken: what the packet says of it, and whether it may be spared, since it goes
    /// without one.
    pub(super) fn told(&self, credit: Option<u32>) -> (Option<u32>, bool) {
        let Some(scheduled) = self.scheduled() else { return (None, false) };
        let by_receiver = matches!(scheduled.driver(), Driver::Receiver { .. });
        (credit.filter(|_| by_receiver), credit.is_none() && scheduled.driver() != Driver::Host)
    }
}

impl<L: ControlLaw> Active<L> {
    /// Whether a packet may go to the card at `now`.
    #[inline(always)]
    pub(super) fn poll(&mut self, now: Time) -> SendState {
        match self.edge.as_mut().and_then(|at| at.edge.as_mut()) {
            None => self.sender.poll(now),
            Some(edge) => edge.poll(&mut self.sender, now),
        }
    }

    /// Takes the packet that [`Active::poll`] allowed.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Time, setup: &Setup) -> Scheduling {
        match &mut self.edge {
            None => Scheduling { segment: self.sender.send(now), credit: None },
            Some(at) => at.take(&mut self.sender, now, self.flow, setup),
        }
    }

    /// Whether the flow keeps its turn after a packet of `size` bytes on the wire.
    #[inline(always)]
    pub(super) fn keeps_turn(&mut self, size: u16, setup: &Setup) -> bool {
        match self.edge.as_mut().and_then(|at| at.edge.as_mut()) {
            None => false,
            Some(edge) => edge.keeps_turn(&mut self.sender, u32::from(size) - setup.host.header),
        }
    }

    /// Lets the law release packets, where they wait under it.
    pub(super) fn release(&mut self, now: Time) {
        if let Some(edge) = self.edge.as_mut().and_then(|at| at.edge.as_mut()) {
            edge.release(&mut self.sender, now);
        }
    }

    pub(super) fn hold(&self) -> Option<&Hold> {
        self.edge.as_ref()?.edge.as_ref()?.hold()
    }

    pub(super) fn scheduled(&self) -> Option<&Scheduled> {
        self.edge.as_ref()?.scheduled()
    }
}
