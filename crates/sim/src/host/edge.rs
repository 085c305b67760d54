//! What few flows have between their law and the card: a hold on one-way delay, a small queue, segments, and packets
//! that are timed anew when the rate changes.
//!
//! - **Hold** ([`Hold`], On-Ramp): nothing leaves before it ends. Where the law paces, the next packet leaves at
//!   `max(t_NextTx, t_NextPkt)` (Liu et al., §4.1, "Behavior after a pause ends", (2)).
//! - **Small queue** (TCP small queues; the same place, (1)): a law that only has a window releases packets up to a limit
//!   into a queue of the flow, as soon as the window lets it; they are in flight for the law from then on, and its round
//!   trips count the wait. Holds and turns act on what waits. A law that paces has its pacer under the queue, so for it
//!   nothing waits: its packets are released as they leave. What waits and is held for lost meanwhile is not sent.
//! - **Segment** (GSO): a flow whose turn has come keeps it for several packets, as many as its window, or what waits,
//!   lets go at its beginning; neither its pacing nor a hold cuts in. On-Ramp's time stamp is the segment's. The card
//!   still gets packet by packet, so a paused class stops in mid-segment, and acknowledgements go in between.

use std::collections::VecDeque;

use flow::{Handover, Hold, Segment, SendState, Sender};
use laws::ControlLaw;
use units::{Rate, Time};

use super::Active;

/// What few flows have.
pub(super) struct Edge {
    pub(super) hold: Option<Hold>,
    /// Of the segment on its way to the card.
    handover: Handover,
    /// The limit of what may wait; 0 if nothing does.
    limit: u64,
    /// Packets that the law has released.
    waiting: VecDeque<Segment>,
    waiting_bytes: u64,
    /// The time at which the flow waits to be asked; older entries for it mean nothing.
    pub(super) paced_ps: u64,
}

impl Edge {
    pub(super) fn new(hold: Option<Hold>, small_queue: u64) -> Self {
        Self {
            hold,
            handover: Handover::default(),
            limit: small_queue,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            paced_ps: 0,
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
        if self.limit == 0 || sender.permit().pacing != Rate::MAX {
            return;
        }
        while let Some(next) = sender.next_bytes() {
            let bytes = u64::from(next);
            let has_room = self.waiting_bytes + bytes <= self.limit || self.waiting.is_empty();
            if !has_room || sender.poll(now) != SendState::Now {
                break;
            }
            self.waiting.push_back(sender.send(now));
            self.waiting_bytes += bytes;
        }
    }

    fn poll<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> SendState {
        self.release(sender, now);
        let own = if self.waiting.is_empty() { sender.poll(now) } else { SendState::Now };
        let until = self.hold.as_ref().map_or(Time::ZERO, Hold::until);
        match own {
            SendState::Now if until > now => SendState::At(until),
            SendState::At(time) => SendState::At(time.max(until)),
            own => own,
        }
    }
}

impl<L: ControlLaw> Active<L> {
    /// Whether a packet may go to the card at `now`.
    #[inline(always)]
    pub(super) fn poll(&mut self, now: Time) -> SendState {
        if self.segment_left > 0 && self.goes_on() {
            return SendState::Now;
        }
        match &mut self.edge {
            None => self.sender.poll(now),
            Some(edge) => edge.poll(&mut self.sender, now),
        }
    }

    /// Lets the law release packets, where they wait under it.
    pub(super) fn release(&mut self, now: Time) {
        if let Some(edge) = &mut self.edge {
            edge.release(&mut self.sender, now);
        }
    }

    /// Takes the packet that [`Active::poll`] allowed. `clock_ns` is the host's clock.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Time, clock_ns: impl FnOnce() -> u32) -> Segment {
        match &mut self.edge {
            None => self.sender.send(now),
            Some(_) => self.take_from_edge(now, clock_ns),
        }
    }

    fn take_from_edge(&mut self, now: Time, clock_ns: impl FnOnce() -> u32) -> Segment {
        let Some(edge) = &mut self.edge else { return self.sender.send(now) };
        let segment = edge.waiting.pop_front().unwrap_or_else(|| self.sender.send(now));
        edge.waiting_bytes = edge.waiting_bytes.saturating_sub(segment.bytes.into());
        if let Some(hold) = &mut edge.hold {
            if self.segment_left == 0 {
                edge.handover = hold.hand_over(now, clock_ns());
            }
            hold.on_sent(segment.seq, segment.attempt, edge.handover);
        }
        segment
    }

    /// Counts a packet of `bytes` that has gone to the card, where segments have up to `most`. Gives whether the flow
    /// keeps its turn.
    #[inline(never)]
    pub(super) fn keeps_turn(&mut self, bytes: u32, most: u32) -> bool {
        self.segment_left = if self.segment_left == 0 {
            let released = match &self.edge {
                Some(edge) if !edge.waiting.is_empty() => edge.waiting_bytes,
                _ => self.sender.permit().window.saturating_sub(self.sender.in_flight()).get(),
            };
            u64::from(most.saturating_sub(bytes)).min(released) as u32
        } else {
            self.segment_left.saturating_sub(bytes)
        };
        self.goes_on()
    }

    /// Whether there is a next packet for the segment; if not, it ends.
    fn goes_on(&mut self) -> bool {
        let waits = self.edge.as_ref().and_then(|edge| edge.waiting.front());
        let next = waits.map(|segment| segment.bytes).or_else(|| self.sender.next_bytes());
        if next.is_none_or(|bytes| bytes > self.segment_left) {
            self.segment_left = 0;
        }
        self.segment_left > 0
    }
}
