//! A flow's shim ([`flow::HostShim`]) at a host: the stages that a few flows have between their law and the NIC, and the
//! host's own state of such a flow. The host reads clocks and routes for it, and builds the packets that it releases.

use experiment::{FlowSpec, HostConfig, Setup};
use flow::credits::{CreditSender, ScheduledPacket};
use flow::{HoldInputs, HostShim, HostShimConfig, OnRampHold, SendState, Sender};
use laws::ControlLaw;
use laws::credits::Driver;
use units::{Span, Time};

use super::Active;

/// Sender state attached to a flow's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketNotes {
    Omitted,
    Attached,
}

/// Shim of a flow and its state at the host, present for few.
pub(super) struct ShimState {
    /// None if a flow is here only because its law changes packet times, or for its notes.
    pub(super) host_shim: Option<HostShim>,
    /// The time up to which route changes are in the hold's base.
    based_at: Time,
    /// The time at which the flow's sending end acts on its credits, if it is in the host's calendar; otherwise
    /// [`Time::NEVER`].
    pub(super) scheduled_at: Time,
    pub(super) notes: PacketNotes,
    /// The last round trip measured by an acknowledgement, where that is needed.
    pub(super) last_rtt: Option<Span>,
    /// The time of the flow's next poll; older entries for it are ignored.
    pub(super) paced_at: Time,
}

impl ShimState {
    /// Returns the stages of a flow between its law and the NIC; none for most.
    pub(super) fn new<L: ControlLaw>(
        hold: Option<OnRampHold>,
        credit_sender: Option<CreditSender>,
        host: &HostConfig,
        sender: &Sender<L>,
        notes: PacketNotes,
    ) -> Option<Box<Self>> {
        let config = HostShimConfig { segment: host.segment, small_queue: host.small_queue, fq: host.fq };
        let is_there = hold.is_some() || credit_sender.is_some() || !config.is_plain(host.mss);
        (is_there || notes == PacketNotes::Attached || sender.may_reschedule()).then(|| {
            Box::new(Self {
                host_shim: is_there.then(|| HostShim::new(&config, host.mss, hold, credit_sender)),
                based_at: Time::ZERO,
                scheduled_at: Time::NEVER,
                notes,
                last_rtt: None,
                paced_at: Time::ZERO,
            })
        })
    }

    /// Records the round trip of an acknowledgement that the sender is about to receive.
    pub(super) fn measure<L: ControlLaw>(&mut self, sender: &Sender<L>, now: Time, seq: u32, attempt: u8) {
        if self.notes == PacketNotes::Attached {
            self.last_rtt = sender.round_trip(now, seq, attempt).or(self.last_rtt);
        }
    }

    /// Takes the packet that was allowed.
    #[inline(never)]
    fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, flow: u32, setup: &Setup) -> ScheduledPacket {
        let reads = self.host_shim.as_ref().is_some_and(HostShim::reads_clock);
        let reading = reads.then(|| self.read(now, &setup.flows[flow as usize], setup));
        match &mut self.host_shim {
            None => ScheduledPacket { segment: sender.send(now), credit: None },
            Some(shim) => shim.take(sender, now, reading),
        }
    }

    fn read(&mut self, now: Time, spec: &FlowSpec, setup: &Setup) -> HoldInputs {
        let changed = setup.routes.change_between(self.based_at, now.just_after()).is_some();
        let base = changed.then(|| {
            self.based_at = now;
            setup.hold_base(spec, now)
        });
        HoldInputs { clock_ns: setup.clock_ns(spec.src, now), base }
    }

    pub(super) fn credit_sender(&self) -> Option<&CreditSender> {
        self.host_shim.as_ref()?.credit_sender()
    }

    pub(super) fn credit_sender_mut(&mut self) -> Option<&mut CreditSender> {
        self.host_shim.as_mut()?.credit_sender_mut()
    }

    pub(super) fn hold_mut(&mut self) -> Option<&mut OnRampHold> {
        self.host_shim.as_mut()?.hold_mut()
    }

    /// Returns the credit number that a taken packet carries, and whether the packet may be dropped first, since it is sent
    /// without a credit.
    pub(super) fn credit_fields(&self, credit: Option<u32>) -> (Option<u32>, bool) {
        let Some(credit_sender) = self.credit_sender() else { return (None, false) };
        let by_receiver = matches!(credit_sender.driver(), Driver::Receiver { .. });
        (credit.filter(|_| by_receiver), credit.is_none() && credit_sender.driver() != Driver::Host)
    }
}

impl<L: ControlLaw> Active<L> {
    /// Returns whether a packet may go to the NIC at `now`.
    #[inline(always)]
    pub(super) fn poll(&mut self, now: Time) -> SendState {
        match self.shim.as_mut().and_then(|at| at.host_shim.as_mut()) {
            None => self.sender.poll(now),
            Some(shim) => shim.poll(&mut self.sender, now),
        }
    }

    /// Takes the packet that [`Active::poll`] allowed.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Time, setup: &Setup) -> ScheduledPacket {
        match &mut self.shim {
            None => ScheduledPacket { segment: self.sender.send(now), credit: None },
            Some(at) => at.take(&mut self.sender, now, self.flow, setup),
        }
    }

    /// Returns whether the flow keeps its turn after a packet of `size` bytes on the wire.
    #[inline(always)]
    pub(super) fn keeps_turn(&mut self, size: u16, setup: &Setup) -> bool {
        match self.shim.as_mut().and_then(|at| at.host_shim.as_mut()) {
            None => false,
            Some(shim) => shim.keeps_turn(&mut self.sender, u32::from(size) - setup.host.header),
        }
    }

    /// Lets the law release packets, where they wait under it.
    pub(super) fn release(&mut self, now: Time) {
        if let Some(shim) = self.shim.as_mut().and_then(|at| at.host_shim.as_mut()) {
            shim.release(&mut self.sender, now);
        }
    }

    pub(super) fn hold(&self) -> Option<&OnRampHold> {
        self.shim.as_ref()?.host_shim.as_ref()?.hold()
    }

    pub(super) fn credit_sender(&self) -> Option<&CreditSender> {
        self.shim.as_ref()?.credit_sender()
    }
}
