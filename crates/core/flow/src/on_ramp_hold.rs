//! Shim between a flow and its NIC that holds packets at the edge: On-Ramp, under any law. Liu et al., "Breaking the
//! Transience-Equilibrium Nexus" (NSDI 2021), §3, §4.1. `laws::on_ramp` decides when to hold; this module keeps the
//! sender's state for it: the hand-over time of each transmission, by the sender's clock, until its OR-ACK reports the
//! arrival time, by the receiver's.
//!
//! A lost OR-ACK is harmless: a later one takes its place, and the records of all earlier transmissions are dropped.
//! Where none arrives, the records of acknowledged packets are dropped.

use alloc::collections::VecDeque;

use laws::on_ramp::{LastOwd, OnRamp, PendingOwd};
use units::{Span, Time};

/// State at a hand-over to the NIC: of a packet, or several at once.
#[derive(Clone, Copy, Default, Debug)]
pub struct NicHandoff {
    clock_ns: u32,
    /// Base delay, which counts as no queueing.
    base: Span,
    mark: PendingOwd,
}

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    seq: u32,
    attempt: u8,
    handover: NicHandoff,
}

/// One flow's hold.
#[derive(Debug)]
pub struct OnRampHold {
    on_ramp: OnRamp,
    /// Transmissions without an OR-ACK so far, in sending order.
    sent: VecDeque<SentSegment>,
    delay: Option<Span>,
    base: Span,
}

impl OnRampHold {
    /// Creates the hold of a flow that has sent nothing. The rule receives one-way delays in excess of `base`.
    pub fn new(on_ramp: OnRamp, base: Span) -> Self {
        Self { on_ramp, sent: VecDeque::new(), delay: None, base }
    }

    /// Sets another base for later hand-overs: routes have changed.
    pub fn rebase(&mut self, base: Span) {
        self.base = base;
    }

    /// Returns the time until which nothing of the flow may be sent (`t_NextPkt`).
    #[inline]
    pub fn until(&self) -> Time {
        self.on_ramp.hold_until()
    }

    /// Returns the record of a hand-over to the NIC at `now`; `clock_ns` is the sender's clock, which wraps.
    pub fn hand_over(&self, now: Time, clock_ns: u32) -> NicHandoff {
        NicHandoff { clock_ns, base: self.base, mark: self.on_ramp.mark(now) }
    }

    /// Records a transmission, where all packets below `unsettled` are acknowledged. Records of those are dropped: an OR-ACK
    /// is sent before the acknowledgement, so theirs are lost. This bounds the records by the number of packets in flight.
    pub fn on_sent(&mut self, seq: u32, attempt: u8, handover: NicHandoff, unsettled: u32) {
        while self.sent.front().is_some_and(|sent| sent.seq < unsettled) {
            self.sent.pop_front();
        }
        self.sent.push_back(SentSegment { seq, attempt, handover });
    }

    /// Processes an OR-ACK: this transmission arrived at `clock_ns` by the receiver's clock, which wraps. The one-way
    /// delay is the difference of the two clocks (within 2.1 s, and negative where they are off by more than the
    /// delay). Does nothing where the transmission is no longer known.
    pub fn process_or_ack(&mut self, now: Time, seq: u32, attempt: u8, clock_ns: u32) {
        let Some(index) = self.sent.iter().position(|sent| (sent.seq, sent.attempt) == (seq, attempt)) else { return };
        let handover = self.sent[index].handover;
        self.sent.drain(..=index);
        let delay = Span::from_ns(clock_ns.wrapping_sub(handover.clock_ns).cast_signed().into());
        self.delay = Some(delay);
        self.on_ramp.process_or_ack(now, delay - handover.base, handover.mark);
    }

    /// Returns the one-way delay of the last OR-ACK; none before the first.
    pub fn delay(&self) -> Option<Span> {
        self.delay
    }

    /// Returns the state to pass on to the next flow to the same destination.
    pub fn memory(&self) -> LastOwd {
        self.on_ramp.memory()
    }

    /// Returns the total time that the flow has been held up to `now`, whether it had something to send or not.
    pub fn held(&self, now: Time) -> Span {
        self.on_ramp.paused(now)
    }

    /// Its state by name, for plots.
    pub fn trace(&self, now: Time, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("owd_ns", self.delay.unwrap_or(Span::ZERO).ns());
        emit("on_ramp_hold_ns", self.held(now).ns());
        emit("hold_until_ns", self.until().ns().cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laws::on_ramp::OnRampParams;
    use units::Frac;

    fn hold() -> OnRampHold {
        let params = OnRampParams { threshold: Span::from_us(10), gain: Frac::ratio(1, 16), strawman: true };
        OnRampHold::new(OnRamp::new(params), Span::ZERO)
    }

    /// Sends packets 0 to 4 at 0 to 4 us, the sender's clock about to wrap.
    fn sent() -> OnRampHold {
        let mut hold = hold();
        for seq in 0..5 {
            let now = Time::from_us(seq.into());
            let handover = hold.hand_over(now, (u32::MAX - 1_000).wrapping_add(seq * 1_000));
            hold.on_sent(seq, 1, handover, 0);
        }
        hold
    }

    #[test]
    fn delays_are_differences_of_clocks_that_wrap() {
        let mut hold = sent();
        let mut delay = |us, seq, clock_ns| {
            hold.process_or_ack(Time::from_us(us), seq, 1, clock_ns);
            (hold.delay().map(Span::ns), hold.until())
        };
        assert_eq!(delay(20, 0, u32::MAX - 500), (Some(500), Time::ZERO));
        // The receiver's clock is behind.
        assert_eq!(delay(21, 1, u32::MAX - 500), (Some(-500), Time::ZERO));
        // 15 us: 5 over the threshold.
        assert_eq!(delay(30, 2, 999 + 15_000), (Some(15_000), Time::from_us(35)));
        // Held again, from 34 to 38: time that is held twice counts once.
        assert_eq!(delay(34, 3, 1_999 + 14_000), (Some(14_000), Time::from_us(38)));
        assert_eq!([33, 50].map(|us| hold.held(Time::from_us(us))), [4, 8].map(Span::from_us));
    }

    #[test]
    fn records_are_bounded_by_the_flight_without_or_acks() {
        let mut hold = hold();
        let handover = hold.hand_over(Time::ZERO, 0);
        for seq in 0..1_000u32 {
            hold.on_sent(seq, 1, handover, seq.saturating_sub(10));
            assert!(hold.sent.len() <= 11, "{seq}");
        }
        // Packet 990 is missing, is resent and finally acknowledged.
        for seq in 1_000..1_020 {
            hold.on_sent(seq, 1, handover, 990);
        }
        hold.on_sent(990, 2, handover, 990);
        assert_eq!(hold.sent.len(), 31);
        hold.on_sent(1_020, 1, handover, 1_020);
        assert_eq!(hold.sent.len(), 1);
    }

    #[test]
    fn records_before_an_or_acked_packet_are_dropped() {
        let mut hold = sent();
        for (seq, attempt, left) in [(3, 1, 1), (2, 1, 1), (3, 1, 1), (4, 2, 1), (4, 1, 0)] {
            hold.process_or_ack(Time::from_us(20), seq, attempt, 0);
            assert_eq!(hold.sent.len(), left, "{seq}");
        }
    }
}
