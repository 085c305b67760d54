//! The receiving side of one subflow: packet numbers received, and the schedule of acknowledgements. RFC 9000 §13.2.

use alloc::vec::Vec;

use units::{Span, Time};

use crate::ack_ranges::{AckRanges, EcnCounts, MAX_RANGES, MAX_TIMES};
use crate::ranges::Ranges;

/// Property of a packet to elicit an acknowledgement (RFC 9000 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckEliciting {
    /// The packet elicits an acknowledgement.
    Yes,
    /// The packet is only acknowledged with others.
    No,
}

/// The ECN codepoint of a packet's IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codepoint {
    /// Not ECN-capable.
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// A queue marked it.
    Ce,
}

/// Acknowledgement policy of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckPolicy {
    /// Number of ack-eliciting packets per acknowledgement, at least 1.
    pub every: u32,
    /// Maximum delay after the first unacknowledged ack-eliciting packet.
    pub delay: Span,
    /// An acknowledgement with a gap is repeated after this time, unless another is sent before: the network loses
    /// packets, and if the last acknowledgement of a burst is lost, its sender waits for a timeout. Zero for never.
    pub echo: Span,
    /// Acknowledgements carry receive times.
    pub timestamps: bool,
}

/// Packets received on one subflow, in bounded memory for any packets of the peer.
#[derive(Debug)]
pub struct ReceivedPackets {
    policy: AckPolicy,
    numbers: Ranges,
    ecn: EcnCounts,
    /// The packet with the highest number, and its arrival time.
    newest: Option<(u64, Time)>,
    /// The packet with the highest number was marked.
    marked: bool,
    /// Ack-eliciting packets that are not acknowledged yet.
    unacked: u32,
    /// Time at which an acknowledgement is due.
    ack_due_at: Time,
    /// Numbers and times of the newest packets since the last acknowledgement, at most [`MAX_TIMES`].
    times: Vec<(u64, Time)>,
}

/// Maximum number of ranges kept: those of four acknowledgements. Each takes 16 bytes.
const MAX_KEPT: usize = 4 * MAX_RANGES;

impl ReceivedPackets {
    /// Creates the state of a subflow on which no packet has arrived.
    pub fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            numbers: Ranges::new(MAX_KEPT),
            ecn: EcnCounts::default(),
            newest: None,
            marked: false,
            unacked: 0,
            ack_due_at: Time::NEVER,
            times: Vec::new(),
        }
    }

    /// Returns whether [`ReceivedPackets::on_packet`] would accept this number.
    pub fn is_new(&self, number: u64) -> bool {
        !self.numbers.contains(number)
    }

    /// Returns the highest number received.
    pub fn newest(&self) -> Option<u64> {
        self.newest.map(|(number, _)| number)
    }

    /// Records the arrival of authentic packet `number`. Returns whether it must be processed: not if it is a duplicate, or so old that this is unknown; then its sender has
    /// declared it lost and sends its content under another number.
    ///
    /// An acknowledgement is due at once where a number is missing, where a late packet arrives, and where marking
    /// changes (RFC 9000 §13.2.1; RFC 8257 §3.2).
    pub fn on_packet(&mut self, now: Time, number: u64, codepoint: Codepoint, eliciting: AckEliciting) -> bool {
        debug_assert!(
            self.newest.is_none_or(|(_, received_at)| received_at <= now),
            "a packet arrives before the newest one"
        );
        debug_assert!(self.times.len() <= MAX_TIMES, "{} receive times", self.times.len());
        let highest = self.numbers.highest();
        if !self.numbers.insert(number) {
            return false;
        }
        match codepoint {
            Codepoint::NotEct => {}
            Codepoint::Ect0 => self.ecn.ect0 += 1,
            Codepoint::Ect1 => self.ecn.ect1 += 1,
            Codepoint::Ce => self.ecn.ce += 1,
        }
        let marked = codepoint == Codepoint::Ce;
        let in_order = number == highest.map_or(0, |highest| highest + 1);
        let changed = core::mem::replace(&mut self.marked, marked) != marked;
        if self.newest.is_none_or(|(newest, _)| newest < number) {
            self.newest = Some((number, now));
        }
        if self.policy.timestamps {
            if self.times.len() == MAX_TIMES {
                self.times.remove(0);
            }
            self.times.push((number, now));
        }
        if eliciting == AckEliciting::Yes {
            self.unacked += 1;
            let at_once = !in_order || changed || self.unacked >= self.policy.every;
            let due = if at_once { now } else { now.saturating_add(self.policy.delay) };
            self.ack_due_at = self.ack_due_at.min(due);
        }
        true
    }

    /// Returns the time at which an acknowledgement is due; [`Time::NEVER`] if none is.
    pub fn ack_due_at(&self) -> Time {
        self.ack_due_at
    }

    /// Returns whether the acknowledgement that is due repeats the last one.
    pub fn is_echo(&self) -> bool {
        self.unacked == 0
    }

    /// Returns the acknowledgement as of now; none if nothing arrived. It may be called at any time: packets that are
    /// sent anyway may carry an acknowledgement.
    pub fn ack(&mut self, now: Time) -> Option<AckRanges<'_>> {
        let (_, received_at) = self.newest?;
        debug_assert!(received_at <= now, "an acknowledgement leaves before its newest packet arrived");
        let is_echo = self.unacked == 0;
        (self.unacked, self.ack_due_at) = (0, Time::NEVER);
        let kept = self.numbers.newest_first();
        let ranges = &kept[..kept.len().min(MAX_RANGES)];
        if ranges.is_empty() {
            return None;
        }
        if ranges.len() > 1 && !is_echo && self.policy.echo > Span::ZERO {
            self.ack_due_at = now.saturating_add(self.policy.echo);
        }
        Some(AckRanges { ranges, ecn: Some(self.ecn), delay: now.since(received_at), received: &self.times })
    }

    /// Records that the acknowledgement was read. Its time stamps are not repeated.
    pub fn on_ack_sent(&mut self) {
        self.times.clear();
    }

    /// Forgets numbers below `number`: the peer has received an acknowledgement of them, which need not be repeated
    /// (RFC 9000 §13.2.4).
    pub fn forget_below(&mut self, number: u64) {
        let keep = self.newest.map_or(0, |(newest, _)| newest);
        self.numbers.forget_below(number.min(keep));
        debug_assert_eq!(self.numbers.highest(), self.newest(), "the newest packet stays known");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Range;

    fn arrivals(every: u32) -> ReceivedPackets {
        ReceivedPackets::new(AckPolicy { every, delay: Span::from_us(25), echo: Span::ZERO, timestamps: true })
    }

    #[test]
    fn acks_are_delayed_unless_order_or_marks_change() {
        use Codepoint::{Ce, Ect0};

        let mut arrivals = arrivals(4);
        let mut receive = |us: u64, number, codepoint, elicits| {
            let now = Time::from_us(us);
            let eliciting = if elicits { AckEliciting::Yes } else { AckEliciting::No };
            let is_new = arrivals.on_packet(now, number, codepoint, eliciting);
            let due = arrivals.ack_due_at();
            if due <= now {
                let acks = arrivals.ack(now).unwrap();
                assert_eq!(acks.delay, now.since(arrivals.newest.unwrap().1));
                arrivals.on_ack_sent();
            }
            (is_new, due.is_set().then(|| due.ps() / 1_000_000))
        };
        assert_eq!([receive(0, 0, Ect0, true), receive(1, 1, Ect0, true)], [(true, Some(25)); 2]);
        assert_eq!([receive(2, 2, Ect0, true), receive(3, 3, Ect0, true)], [(true, Some(25)), (true, Some(3))]);
        // A packet that does not elicit an acknowledgement gets none.
        assert_eq!(receive(4, 4, Ect0, false), (true, None));
        // A gap, and the packet that fills it.
        assert_eq!([receive(5, 6, Ect0, true), receive(6, 5, Ect0, true)], [(true, Some(5)), (true, Some(6))]);
        // Marks begin and end.
        assert_eq!([receive(7, 7, Ce, true), receive(8, 8, Ce, true)], [(true, Some(7)), (true, Some(33))]);
        assert_eq!([receive(9, 9, Ect0, true), receive(9, 9, Ect0, true)], [(true, Some(9)), (false, None)]);
        let acks = arrivals.ack(Time::from_us(10)).unwrap();
        assert_eq!(
            (acks.ranges, acks.ecn),
            (&[Range { first: 0, last: 9 }][..], Some(EcnCounts { ect0: 8, ect1: 0, ce: 2 }))
        );
        assert_eq!((acks.delay, acks.received), (Span::from_us(1), &[][..]));
    }

    #[test]
    fn an_ack_with_a_gap_is_repeated_once() {
        let policy = AckPolicy { every: 1, delay: Span::ZERO, echo: Span::from_us(100), timestamps: false };
        let mut arrivals = ReceivedPackets::new(policy);
        let mut ack = |us, number: Option<u64>| {
            let now = Time::from_us(us);
            if let Some(number) = number {
                arrivals.on_packet(now, number, Codepoint::NotEct, AckEliciting::Yes);
            }
            let is_echo = arrivals.is_echo();
            let ranges = arrivals.ack(now).unwrap().ranges.len();
            arrivals.on_ack_sent();
            (is_echo, ranges, arrivals.ack_due_at())
        };
        assert_eq!(ack(0, Some(0)), (false, 1, Time::NEVER));
        assert_eq!(ack(1, Some(2)), (false, 2, Time::from_us(101)));
        // A new acknowledgement sent earlier postpones the echo, and no other echo follows it.
        assert_eq!(ack(50, Some(3)), (false, 2, Time::from_us(150)));
        assert_eq!(ack(150, None), (true, 2, Time::NEVER));
        assert_eq!(ack(160, Some(1)), (false, 1, Time::NEVER));
    }

    /// Memory is bounded and no number is accepted twice, for any sequence of numbers.
    #[test]
    fn memory_is_bounded() {
        let mut arrivals = arrivals(2);
        let mut read = alloc::collections::BTreeSet::new();
        for step in 0..100_000u64 {
            let number = if step % 3 == 0 { step * 1_000 } else { units::mix64(step) >> 3 };
            if arrivals.on_packet(Time::from_ns(step), number, Codepoint::Ect1, AckEliciting::Yes) {
                assert!(read.insert(number), "{number} is read twice");
            }
        }
        assert!(arrivals.numbers.newest_first().len() <= MAX_KEPT && arrivals.times.capacity() <= 2 * MAX_TIMES);
        let acks = arrivals.ack(Time::from_ms(1_000)).unwrap();
        assert_eq!((acks.ranges.len(), acks.received.len()), (MAX_RANGES, MAX_TIMES));
    }

    #[test]
    fn acknowledged_acks_are_not_repeated() {
        let mut arrivals = arrivals(1);
        for number in [0, 1, 2, 5, 6, 9] {
            arrivals.on_packet(Time::ZERO, number, Codepoint::NotEct, AckEliciting::Yes);
        }
        arrivals.forget_below(6);
        let ranges = [Range::of(9), Range::of(6)];
        assert_eq!(arrivals.ack(Time::ZERO).unwrap().ranges, ranges);
        // The newest number is kept, regardless of the peer's acknowledgements.
        arrivals.forget_below(1_000);
        assert_eq!(arrivals.ack(Time::ZERO).unwrap().ranges, [Range::of(9)]);
        assert!(!arrivals.on_packet(Time::ZERO, 3, Codepoint::NotEct, AckEliciting::Yes));
    }
}
