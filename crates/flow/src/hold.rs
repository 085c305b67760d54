//! The shim between a flow and its card that holds packets at the edge: On-Ramp, under any law.
//! Liu et al., "Breaking the Transience-Equilibrium Nexus" (NSDI 2021), §3, §4.1. When to hold is `laws::on_ramp`'s; here
//! is what a sender must remember for it: of each transmission the time at which it was handed over, by its own clock,
//! until its OR-ACK brings the time at which it came, by the receiver's.
//!
//! A lost OR-ACK is harmless: a later one takes its place, and what is remembered of all before it is dropped.

use alloc::collections::VecDeque;

use laws::on_ramp::{Mark, OnRamp};
use units::{Span, Time};

/// The state of things when something was handed to the card: a packet, or several at once.
#[derive(Clone, Copy, Default, Debug)]
pub struct Handover {
    clock_ns: u32,
    mark: Mark,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u32,
    attempt: u8,
    handover: Handover,
}

/// One flow's hold.
#[derive(Debug)]
pub struct Hold {
    on_ramp: OnRamp,
    /// Transmissions of which nothing was heard, in the order they left.
    sent: VecDeque<Sent>,
    /// How long it has been held, up to `counted_to`.
    held: Span,
    counted_to: Time,
    delay: Span,
}

impl Hold {
    /// The hold of a flow that starts at `now`.
    pub fn new(on_ramp: OnRamp, now: Time) -> Self {
        Self { on_ramp, sent: VecDeque::new(), held: Span::ZERO, counted_to: now, delay: Span::ZERO }
    }

    /// Until when nothing of the flow may leave (`t_NextPkt`).
    #[inline]
    pub fn until(&self) -> Time {
        self.on_ramp.hold_until()
    }

    /// What is to be remembered of all that is handed to the card at `now`, `clock_ns` by the sender's clock, which wraps.
    pub fn hand_over(&self, now: Time, clock_ns: u32) -> Handover {
        Handover { clock_ns, mark: self.on_ramp.mark(now) }
    }

    /// A packet leaves.
    pub fn on_sent(&mut self, seq: u32, attempt: u8, handover: Handover) {
        self.sent.push_back(Sent { seq, attempt, handover });
    }

    /// An OR-ACK arrives: this transmission came at `clock_ns` by the receiver's clock, which wraps. Gives the one-way
    /// delay as the two clocks have it (within 2.1 s, and negative where they are off by more than it); none where the
    /// transmission is not known any more.
    pub fn on_or_ack(&mut self, now: Time, seq: u32, attempt: u8, clock_ns: u32) -> Option<Span> {
        let place = self.sent.iter().position(|sent| (sent.seq, sent.attempt) == (seq, attempt))?;
        let handover = self.sent[place].handover;
        self.sent.drain(..=place);
        let delay = Span::from_ns(clock_ns.wrapping_sub(handover.clock_ns).cast_signed().into());
        self.held = self.held(now);
        self.counted_to = now;
        self.on_ramp.on_or_ack(now, delay, handover.mark);
        self.delay = delay;
        Some(delay)
    }

    /// For how long the flow has been held up to `now`, whether it had something to send or not.
    pub fn held(&self, now: Time) -> Span {
        let since = now.min(self.until()).since(self.counted_to);
        if since > Span::ZERO { self.held + since } else { self.held }
    }

    /// Its state by name, for plots.
    pub fn trace(&self, now: Time, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("owd_ns", self.delay.ns());
        emit("held_ns", self.held(now).ns());
        emit("hold_until_ns", self.until().ns().cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laws::on_ramp::Params;
    use units::Frac;

    fn hold() -> Hold {
        let params = Params { threshold: Span::from_us(10), gain: Frac::ratio(1, 16), strawman: true };
        Hold::new(OnRamp::new(params), Time::ZERO)
    }

    /// Sends packets 0 to 4 at 0 to 4 us, the sender's clock about to wrap.
    fn sent() -> Hold {
        let mut hold = hold();
        for seq in 0..5 {
            let now = Time::from_us(seq.into());
            let handover = hold.hand_over(now, (u32::MAX - 1_000).wrapping_add(seq * 1_000));
            hold.on_sent(seq, 1, handover);
        }
        hold
    }

    #[test]
    fn delays_are_differences_of_clocks_that_wrap() {
        let mut hold = sent();
        assert_eq!(hold.on_or_ack(Time::from_us(20), 0, 1, u32::MAX - 500), Some(Span::from_ns(500)));
        assert_eq!(hold.until(), Time::ZERO);
        // The receiver's clock is behind.
        assert_eq!(hold.on_or_ack(Time::from_us(21), 1, 1, u32::MAX - 500), Some(Span::from_ns(-500)));
        // 15 us: 5 over the threshold.
        assert_eq!(hold.on_or_ack(Time::from_us(30), 2, 1, 999 + 15_000), Some(Span::from_us(15)));
        assert_eq!(hold.until(), Time::from_us(35));
        assert_eq!(hold.held(Time::from_us(33)), Span::from_us(3));
        assert_eq!(hold.held(Time::from_us(50)), Span::from_us(5));
        // Held again, from 34 to 38: time that is held twice counts once.
        assert_eq!(hold.on_or_ack(Time::from_us(34), 3, 1, 1_999 + 14_000), Some(Span::from_us(14)));
        assert_eq!(hold.held(Time::from_us(50)), Span::from_us(8));
    }

    #[test]
    fn what_left_before_an_answered_packet_is_forgotten() {
        let mut hold = sent();
        assert!(hold.on_or_ack(Time::from_us(20), 3, 1, 0).is_some());
        assert!(hold.on_or_ack(Time::from_us(21), 2, 1, 0).is_none(), "late");
        assert!(hold.on_or_ack(Time::from_us(21), 3, 1, 0).is_none(), "twice");
        assert!(hold.on_or_ack(Time::from_us(22), 4, 2, 0).is_none(), "never sent");
        assert!(hold.on_or_ack(Time::from_us(23), 4, 1, 0).is_some());
    }
}
