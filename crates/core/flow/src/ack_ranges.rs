//! Acknowledgements from a peer, and their validation. RFC 9000 §13 and §19.3.
//!
//! A peer may be broken or hostile. Its acknowledgement is checked completely before any state changes. A false one costs no
//! more work than a true one: numbers are compared, and ranges are limited to outstanding packets before they are traversed.

use core::fmt;

use units::{Span, Time};

use crate::ranges::Range;

/// Packet numbers are below 2^62 (RFC 9000 §12.3).
pub const MAX_PACKET_NUMBERS: u64 = 1 << 62;

/// Maximum number of ranges in one acknowledgement. A sender looks at each once; a receiver on an honest path has few.
/// With a twentieth of the packets lost, 64 ranges cover more than a thousand packets.
pub const MAX_RANGES: usize = 64;

/// Maximum number of time stamps in one acknowledgement.
pub const MAX_TIMES: usize = 16;

/// Number of packets received with each ECN codepoint, since the beginning (RFC 9000 §19.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EcnCounts {
    /// ECT(0).
    pub ect0: u64,
    /// ECT(1).
    pub ect1: u64,
    /// CE: a queue marked them.
    pub ce: u64,
}

impl EcnCounts {
    /// Returns the sum of all counts; `None` if it overflows.
    fn total(&self) -> Option<u64> {
        self.ect0.checked_add(self.ect1)?.checked_add(self.ce)
    }

    fn decreases_from(&self, before: &Self) -> bool {
        self.ect0 < before.ect0 || self.ect1 < before.ect1 || self.ce < before.ce
    }
}

/// An acknowledgement of packets of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct AckRanges<'a> {
    /// The packets, the newest range first; at least one and at most [`MAX_RANGES`], with a number missing between two.
    pub ranges: &'a [Range],
    /// Codepoints of all packets so far, where the receiver can see them.
    pub ecn: Option<EcnCounts>,
    /// Time between the receiver's arrival of the newest packet and its acknowledgement; not negative.
    pub delay: Span,
    /// Receive times by the receiver's clock, where they were requested: number and time, at most [`MAX_TIMES`].
    pub received: &'a [(u64, Time)],
}

/// Reasons to reject an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AckError {
    /// The acknowledgement is for a subflow that was never opened.
    NoSubflow {
        /// The subflow.
        subflow: u8,
        /// Number of subflows.
        subflows: u8,
    },
    /// No packet is acknowledged.
    Empty,
    /// The acknowledgement has more ranges than [`MAX_RANGES`].
    TooManyRanges {
        /// Number of ranges.
        ranges: usize,
    },
    /// The acknowledgement has more time stamps than [`MAX_TIMES`].
    TooManyTimes {
        /// Number of time stamps.
        times: usize,
    },
    /// A range ends before it begins.
    InvertedRange(Range),
    /// A range touches the one before it, or is newer.
    OutOfOrder(Range),
    /// A packet is acknowledged that was never sent.
    NeverSent {
        /// Its number.
        number: u64,
        /// The number that the next packet gets.
        next: u64,
    },
    /// A deliberately skipped number is acknowledged: the peer acknowledges a packet that did not arrive.
    Skipped {
        /// The skipped number.
        number: u64,
    },
    /// The counts of codepoints are lower than they were.
    EcnDecreased {
        /// Counts in this acknowledgement.
        counts: EcnCounts,
        /// Counts in an earlier acknowledgement.
        before: EcnCounts,
    },
    /// More packets are counted with a codepoint than were sent.
    EcnExceedsSent {
        /// Counts in the acknowledgement.
        counts: EcnCounts,
        /// Number of packets sent.
        sent: u64,
    },
    /// The acknowledgement delay is negative: the receiver acknowledged the packet before it arrived.
    NegativeDelay(Span),
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSubflow { subflow, subflows } => {
                write!(f, "an acknowledgement is for subflow {subflow}; the flow has {subflows}, numbered from 0")
            }
            Self::Empty => write!(f, "an acknowledgement contains no packet number"),
            Self::TooManyRanges { ranges } => {
                write!(f, "an acknowledgement has {ranges} ranges; at most {MAX_RANGES} are allowed")
            }
            Self::TooManyTimes { times } => {
                write!(f, "an acknowledgement has {times} time stamps; at most {MAX_TIMES} are allowed")
            }
            Self::InvertedRange(Range { first, last }) => {
                write!(f, "an acknowledgement range is inverted: first {first}, last {last}")
            }
            Self::OutOfOrder(Range { first, last }) => {
                write!(f, "acknowledgement range {first} to {last} is not below the previous range")
            }
            Self::NeverSent { number, next } => {
                write!(f, "packet {number} is acknowledged, but was not sent: the next packet number is {next}")
            }
            Self::Skipped { number } => {
                write!(f, "packet {number} is acknowledged, but that packet number was skipped")
            }
            Self::EcnDecreased { counts, before } => {
                write!(f, "ECN counts decreased from {before:?} to {counts:?}")
            }
            Self::EcnExceedsSent { counts, sent } => {
                write!(f, "the ECN counts {counts:?} exceed the {sent} packets sent")
            }
            Self::NegativeDelay(delay) => write!(f, "an acknowledgement reports a negative delay of {delay}"),
        }
    }
}

impl core::error::Error for AckError {}

/// Validator of the acknowledgements from one peer for one subflow.
#[derive(Debug)]
pub(crate) struct AckValidator {
    /// The highest number that was acknowledged.
    highest: Option<u64>,
    /// Packets with content that were acknowledged.
    packets: u64,
    ecn: EcnCounts,
    /// The path clears codepoints: the peer counts fewer packets with one than it acknowledges (RFC 9000 §13.4.2.1).
    ecn_fails: bool,
    /// Marks without a newly acknowledged packet to count them for.
    marks: u64,
    /// The last number that was left out on purpose.
    skipped: Option<u64>,
    /// The shortest round trip so far, the receiver's delay included.
    min_rtt: Option<Span>,
}

impl AckValidator {
    /// Resets the minimum RTT and the pending marks, because the peer is now reached over another path.
    pub(crate) fn reset(&mut self) {
        (self.marks, self.min_rtt) = (0, None);
    }

    pub(crate) const fn new() -> Self {
        Self {
            highest: None,
            packets: 0,
            ecn: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
            ecn_fails: false,
            marks: 0,
            skipped: None,
            min_rtt: None,
        }
    }

    /// Marks a number as skipped on purpose.
    pub(crate) fn skip(&mut self, number: u64) {
        self.skipped = Some(number);
    }

    /// Returns whether the ECN counts can be trusted.
    pub(crate) fn ecn_works(&self) -> bool {
        !self.ecn_fails
    }

    /// Checks an acknowledgement; `next` is the number of the next packet to be sent. Changes nothing.
    pub(crate) fn check(&self, acks: &AckRanges, next: u64) -> Result<(), AckError> {
        let Some(&newest) = acks.ranges.first() else { return Err(AckError::Empty) };
        if acks.ranges.len() > MAX_RANGES {
            return Err(AckError::TooManyRanges { ranges: acks.ranges.len() });
        }
        if acks.received.len() > MAX_TIMES {
            return Err(AckError::TooManyTimes { times: acks.received.len() });
        }
        if newest.last >= next {
            return Err(AckError::NeverSent { number: newest.last, next });
        }
        let mut above = None;
        for &range in acks.ranges {
            if range.first > range.last {
                return Err(AckError::InvertedRange(range));
            }
            // A number is missing between two ranges, or they were one. No overflow: `above` is not 0, as one is below it.
            if above.is_some_and(|above: Range| range.last >= above.first || range.last == above.first - 1) {
                return Err(AckError::OutOfOrder(range));
            }
            if let Some(number) = self.skipped.filter(|&number| range.contains(number)) {
                return Err(AckError::Skipped { number });
            }
            above = Some(range);
        }
        if acks.delay < Span::ZERO {
            return Err(AckError::NegativeDelay(acks.delay));
        }
        self.check_ecn(acks, newest.last, next)
    }

    /// Checks the ECN counts. An acknowledgement that arrives out of order has lower counts, and is not checked.
    fn check_ecn(&self, acks: &AckRanges, newest: u64, next: u64) -> Result<(), AckError> {
        let Some(counts) = acks.ecn.filter(|_| self.is_newer(newest)) else { return Ok(()) };
        if counts.decreases_from(&self.ecn) {
            return Err(AckError::EcnDecreased { counts, before: self.ecn });
        }
        if counts.total().is_none_or(|total| total > next) {
            return Err(AckError::EcnExceedsSent { counts, sent: next });
        }
        Ok(())
    }

    /// Returns whether this number is higher than all acknowledged numbers.
    fn is_newer(&self, number: u64) -> bool {
        self.highest.is_none_or(|highest| highest < number)
    }

    /// Applies a checked acknowledgement that newly acknowledges `packets` packets. Returns the number of marks for
    /// them.
    pub(crate) fn take(&mut self, acks: &AckRanges, packets: u64) -> u64 {
        self.packets += packets;
        if let Some(newest) = acks.ranges.first().map(|range| range.last).filter(|&newest| self.is_newer(newest)) {
            self.highest = Some(newest);
            if let Some(counts) = acks.ecn {
                self.count(counts);
            }
        }
        if packets == 0 { 0 } else { core::mem::take(&mut self.marks) }
    }

    /// Takes over counts that are newer.
    fn count(&mut self, counts: EcnCounts) {
        let before = core::mem::replace(&mut self.ecn, counts);
        // All packets with content were sent as ECN-capable, so each received packet has a codepoint. An acknowledgement may
        // omit older packets, so the sums are compared.
        self.ecn_fails |= counts.total().is_none_or(|total| total < self.packets);
        self.marks = if self.ecn_fails { 0 } else { self.marks + (counts.ce - before.ce) };
    }

    /// Returns the amount by which the RTT reported to the law is below the measured one: the receiver's delay, unless
    /// that would make the RTT lower than the minimum (RFC 9002 §5.3).
    pub(crate) fn ack_delay_correction(&mut self, rtt: Span, delay: Span) -> Span {
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        if rtt - min_rtt >= delay { delay } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    fn ranges(numbers: &[(u64, u64)]) -> Vec<Range> {
        numbers.iter().map(|&(first, last)| Range { first, last }).collect()
    }

    fn acks(ranges: &[Range]) -> AckRanges<'_> {
        AckRanges { ranges, ecn: None, delay: Span::ZERO, received: &[] }
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> EcnCounts {
        EcnCounts { ect0, ect1, ce }
    }

    #[test]
    fn invalid_acks_are_errors() {
        let mut validator = AckValidator::new();
        validator.skip(50);
        let check = |numbers: &[(u64, u64)]| validator.check(&acks(&ranges(numbers)), 100);
        assert_eq!(check(&[(90, 99), (51, 80), (0, 49)]), Ok(()));
        assert_eq!(check(&[]), Err(AckError::Empty));
        assert_eq!(check(&[(90, 100)]), Err(AckError::NeverSent { number: 100, next: 100 }));
        assert_eq!(check(&[(0, u64::MAX)]), Err(AckError::NeverSent { number: u64::MAX, next: 100 }));
        assert_eq!(check(&[(8, 7)]), Err(AckError::InvertedRange(Range { first: 8, last: 7 })));
        assert_eq!(check(&[(10, 20), (8, 9)]), Err(AckError::OutOfOrder(Range { first: 8, last: 9 })));
        assert_eq!(check(&[(10, 20), (30, 40)]), Err(AckError::OutOfOrder(Range { first: 30, last: 40 })));
        assert_eq!(check(&[(0, 3), (0, 0)]), Err(AckError::OutOfOrder(Range { first: 0, last: 0 })));
        assert_eq!(check(&[(60, 70), (45, 55)]), Err(AckError::Skipped { number: 50 }));
        let many: Vec<Range> = (0..65).map(|step| Range::of(2 * (64 - step))).collect();
        assert_eq!(validator.check(&acks(&many), 200), Err(AckError::TooManyRanges { ranges: 65 }));
        let late = AckRanges { delay: Span::from_ps(-1), ..acks(&many[..1]) };
        assert_eq!(validator.check(&late, 200), Err(AckError::NegativeDelay(Span::from_ps(-1))));
    }

    #[test]
    fn ecn_counts_never_decrease_or_exceed_packets_sent() {
        let mut validator = AckValidator::new();
        let mut answer = |last: u64, ecn: EcnCounts, packets: u64| {
            let ranges = [Range { first: 0, last }];
            let acks = AckRanges { ecn: Some(ecn), ..acks(&ranges) };
            validator.check(&acks, 20).map(|()| validator.take(&acks, packets))
        };
        assert_eq!(answer(3, counts(3, 0, 1), 4), Ok(1));
        assert_eq!(answer(9, counts(7, 0, 3), 6), Ok(2));
        // Overtaken by a later acknowledgement: its counts are older, and its marks are known.
        assert_eq!(answer(5, counts(4, 0, 2), 0), Ok(0));
        let before = counts(7, 0, 3);
        assert_eq!(answer(10, counts(8, 0, 2), 1), Err(AckError::EcnDecreased { counts: counts(8, 0, 2), before }));
        for too_many in [counts(17, 0, 4), counts(u64::MAX, 1, 3), counts(u64::MAX, u64::MAX, u64::MAX)] {
            assert_eq!(answer(10, too_many, 1), Err(AckError::EcnExceedsSent { counts: too_many, sent: 20 }));
        }
        assert_eq!(answer(10, counts(7, 0, 4), 1), Ok(1));
    }

    /// A path that clears codepoints is detected, and its counts are ignored from then on.
    #[test]
    fn ecn_bleaching_is_detected() {
        let mut validator = AckValidator::new();
        for (last, packets, ce, works) in [(0, 1, 1, true), (5, 5, 2, false), (9, 4, 10, false)] {
            let ranges = [Range { first: 0, last }];
            let acks = AckRanges { ecn: Some(counts(0, 0, ce)), ..acks(&ranges) };
            assert_eq!(validator.check(&acks, 20), Ok(()));
            assert_eq!((validator.take(&acks, packets) > 0, validator.ecn_works()), (works, works));
        }
    }

    /// An acknowledgement counts packet 3 without covering it, and a mark arrives in one that acknowledges nothing new.
    #[test]
    fn marks_are_deferred_to_the_next_acked_packet() {
        let mut validator = AckValidator::new();
        let mut take = |last, packets, ect0, ce| {
            let ranges = [Range { first: 0, last }];
            let acks = AckRanges { ecn: Some(counts(ect0, 0, ce)), ..acks(&ranges) };
            assert_eq!(validator.check(&acks, 20), Ok(()));
            let marks = validator.take(&acks, packets);
            assert!(validator.ecn_works());
            marks
        };
        assert_eq!([take(7, 7, 8, 0), take(8, 0, 8, 1), take(9, 2, 9, 1), take(10, 1, 10, 1)], [0, 0, 1, 0]);
    }

    #[test]
    fn ack_delay_never_lowers_rtt_below_the_minimum() {
        let mut validator = AckValidator::new();
        let mut part =
            |rtt, delay| validator.ack_delay_correction(Span::from_us(rtt), Span::from_us(delay)).ns() / 1_000;
        assert_eq!([part(100, 0), part(130, 25), part(130, 40), part(90, 10), part(100, 10)], [0, 25, 0, 0, 10]);
    }

    #[test]
    fn error_messages_name_the_packet() {
        let error = AckError::NeverSent { number: 9, next: 7 };
        assert_eq!(format!("{error}"), "packet 9 is acknowledged, but was not sent: the next packet number is 7");
    }
}
