//! What few flows have between their law and the card: a hold on one-way delay, a small queue, segments, packets that are
//! timed anew when the rate changes, and credits (`credits`).
//!
//! - **Hold** ([`Hold`], On-Ramp): nothing leaves before it ends. Where the law paces, the next packet leaves at
//!   `max(t_NextTx, t_NextPkt)` (Liu et al., §4.1, "Behavior after a pause ends", (2)).
//! - **Small queue** (TCP small queues; the same place, (1)): a law that only has a window releases packets up to a limit
//!   into a queue of the flow, as soon as the window lets it; they are in flight for the law from then on, and its round
//!   trips count the wait. Holds and turns act on what waits. A law that paces has its pacer under the queue, so for it
//!   nothing waits: its packets are released as they leave. What waits and is held for lost meanwhile is not sent.
//!   With FQ (`fq`) the pacer is in the queue for a law that paces, too. The window releases packets, at most a
//!   millisecond's worth at the law's pace (at least two segments; `tcp_small_queue_check`). The queue lets them go at
//!   that pace. So the law's round trips count that wait and On-Ramp's hold. A late packet makes up for at most half of
//!   its own time (`fq_dequeue`). Linux's first burst of ten packets without a pace, FQ's credit, is left out.
//! - **Segment** (GSO): a flow whose turn has come keeps it for several packets, as many as its window, or what waits,
//!   lets go at its beginning; neither its pacing nor a hold cuts in. On-Ramp's time stamp is the segment's. The card
//!   still gets packet by packet, so a paused class stops in mid-segment, and acknowledgements go in between.

use std::collections::VecDeque;

use flow::credits::Scheduled;
use flow::{Handover, Hold, Segment, SendState, Sender};
use laws::ControlLaw;
use units::{Bytes, Rate, Span, Time};

use super::Active;
use super::credited::Credited;
use crate::packet::Packet;
use crate::setup::{HostConfig, Setup};

/// What few flows have.
pub(super) struct Edge {
    pub(super) hold: Option<Hold>,
    /// Up to when changes of routes are in the hold's base.
    based_at: Time,
    /// What credits let go, where they do; then nothing else does.
    pub(super) credited: Option<Credited>,
    /// Payload of a segment; 0 where packets go alone.
    segment: u32,
    /// Payload that may still follow in the segment on its way to the card.
    segment_left: u32,
    /// Of that segment.
    handover: Handover,
    /// The limit of what may wait; 0 if nothing does.
    limit: u64,
    /// When the queue lets the next packet go; none where the queue does not pace.
    fq: Option<Time>,
    /// Packets that the law has released.
    waiting: VecDeque<Segment>,
    waiting_bytes: u64,
    /// Whether what is known goes beside its packets.
    pub(super) notes: bool,
    /// The last round trip that an acknowledgement measured, where that is.
    pub(super) last_rtt: Option<Span>,
    /// The time at which the flow waits to be asked; older entries for it mean nothing.
    pub(super) paced_at: Time,
}

impl Edge {
    /// What a flow has between its law and the card; none for most.
    pub(super) fn new<L: ControlLaw>(
        hold: Option<Hold>,
        scheduled: Option<Scheduled>,
        host: &HostConfig,
        sender: &Sender<L>,
        notes: bool,
    ) -> Option<Box<Self>> {
        let credited = scheduled.map(Credited::new);
        let segment = if host.segment > host.mss { host.segment } else { 0 };
        let limit = host.small_queue.map_or(0, Bytes::get);
        (hold.is_some() || credited.is_some() || segment > 0 || limit > 0 || notes || sender.retimes()).then(|| {
            Box::new(Self {
                hold,
                based_at: Time::ZERO,
                credited,
                segment,
                segment_left: 0,
                handover: Handover::default(),
                limit,
                fq: host.fq.then_some(Time::ZERO),
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                notes,
                last_rtt: None,
                paced_at: Time::ZERO,
            })
        })
    }

    /// Remembers the round trip that an acknowledgement is about to tell the sender.
    pub(super) fn measure<L: ControlLaw>(&mut self, sender: &Sender<L>, now: Time, packet: &Packet) {
        if self.notes {
            self.last_rtt = sender.round_trip(now, packet.seq, packet.attempt).or(self.last_rtt);
        }
    }

    /// Lets the law release what there is room for.
    fn release<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) {
        while let Some(waits) = self.waiting.front() {
            if sender.is_outstanding(waits.seq, waits.attempt) {
                break;
            }
            self.waiting_bytes -= u64::from(waits.bytes);
            self.waiting.pop_front();
        }
        let pacing = sender.permit().pacing;
        if self.limit == 0 || self.credited.is_some() || (pacing != Rate::MAX && self.fq.is_none()) {
            return;
        }
        let limit = if pacing == Rate::MAX { self.limit } else { self.limit.min(self.paced_limit(pacing, sender)) };
        while let Some(next) = sender.next_bytes() {
            let bytes = u64::from(next);
            let has_room = self.waiting_bytes + bytes <= limit || self.waiting.is_empty();
            if !has_room || sender.poll(now) != SendState::Now {
                break;
            }
            self.waiting.push_back(send(sender, now));
            self.waiting_bytes += bytes;
        }
    }

    /// How many bytes of a paced flow may wait: what leaves in 2^-10 s, and at least two segments.
    fn paced_limit<L: ControlLaw>(&self, pacing: Rate, sender: &Sender<L>) -> u64 {
        (pacing.bps() >> 13).max(2 * u64::from(self.segment.max(sender.mss())))
    }

    /// FQ lets a packet of `bytes` payload go now. Sets when the next one may go.
    fn pace_next<L: ControlLaw>(&mut self, sender: &Sender<L>, now: Time, bytes: u32) {
        let Some(next) = &mut self.fq else { return };
        let gap = sender.gap_after(bytes);
        *next = if *next > now {
            // In mid-segment.
            *next + gap
        } else {
            let late = if *next == Time::ZERO { Span::ZERO } else { now.since(*next).min(gap.over(2)) };
            now + gap - late
        };
    }

    #[inline(never)]
    fn poll<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> SendState {
        if self.segment_left > 0 && self.goes_on(sender) {
            return SendState::Now;
        }
        self.release(sender, now);
        let own = if let Some(credited) = &mut self.credited {
            credited.scheduled.poll(sender, now)
        } else if self.waiting.is_empty() {
            sender.poll(now)
        } else {
            SendState::Now
        };
        let until = self.hold.as_ref().map_or(Time::ZERO, Hold::until).max(self.fq.unwrap_or(Time::ZERO));
        match own {
            SendState::Now if until > now => SendState::At(until),
            SendState::At(time) => SendState::At(time.max(until)),
            own => own,
        }
    }

    /// Takes the packet that [`Edge::poll`] allowed.
    #[inline(never)]
    fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, flow: u32, setup: &Setup) -> Segment {
        let segment = match &mut self.credited {
            Some(credited) => credited.take(sender, now),
            None => self.waiting.pop_front().unwrap_or_else(|| send(sender, now)),
        };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(segment.bytes.into());
        self.pace_next(sender, now, segment.bytes);
        if let Some(hold) = &mut self.hold {
            if self.segment_left == 0 {
                let spec = &setup.flows[flow as usize];
                if setup.routes.change_between(self.based_at, now.just_after()).is_some() {
                    self.based_at = now;
                    hold.rebase(setup.hold_base(spec, now));
                }
                self.handover = hold.hand_over(now, setup.clock_ns(spec.src, now));
            }
            hold.on_sent(segment.seq, segment.attempt, self.handover, sender.first_unsettled());
        }
        segment
    }

    /// Whether the flow keeps its turn after a packet of `bytes`, for more of the same segment.
    #[inline(never)]
    fn keeps_turn<L: ControlLaw>(&mut self, sender: &mut Sender<L>, bytes: u32) -> bool {
        if self.credited.is_some() {
            return false;
        }
        if self.segment_left == 0 {
            let window = || sender.permit().window.saturating_sub(sender.in_flight()).get();
            let released = if self.waiting.is_empty() { window() } else { self.waiting_bytes };
            self.segment_left = u64::from(self.segment.saturating_sub(bytes)).min(released) as u32;
        } else {
            self.segment_left = self.segment_left.saturating_sub(bytes);
        }
        self.goes_on(sender)
    }

    /// Whether there is a next packet for the segment; if not, it ends.
    fn goes_on<L: ControlLaw>(&mut self, sender: &mut Sender<L>) -> bool {
        let next = self.waiting.front().map(|segment| segment.bytes).or_else(|| sender.next_bytes());
        if next.is_none_or(|bytes| bytes > self.segment_left) {
            self.segment_left = 0;
        }
        self.segment_left > 0
    }
}

/// Apart, so that the plain way alone has it inline.
#[inline(never)]
fn send<L: ControlLaw>(sender: &mut Sender<L>, now: Time) -> Segment {
    sender.send(now)
}

impl<L: ControlLaw> Active<L> {
    /// Whether a packet may go to the card at `now`.
    #[inline(always)]
    pub(super) fn poll(&mut self, now: Time) -> SendState {
        match &mut self.edge {
            None => self.sender.poll(now),
            Some(edge) => edge.poll(&mut self.sender, now),
        }
    }

    /// Takes the packet that [`Active::poll`] allowed.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Time, setup: &Setup) -> Segment {
        match &mut self.edge {
            None => self.sender.send(now),
            Some(edge) => edge.take(&mut self.sender, now, self.flow, setup),
        }
    }

    /// Whether the flow keeps its turn after a packet of `size` bytes on the wire.
    #[inline(always)]
    pub(super) fn keeps_turn(&mut self, size: u16, setup: &Setup) -> bool {
        match &mut self.edge {
            None => false,
            Some(edge) => edge.keeps_turn(&mut self.sender, u32::from(size) - setup.host.header),
        }
    }

    /// Lets the law release packets, where they wait under it.
    pub(super) fn release(&mut self, now: Time) {
        if let Some(edge) = &mut self.edge {
            edge.release(&mut self.sender, now);
        }
    }
}
