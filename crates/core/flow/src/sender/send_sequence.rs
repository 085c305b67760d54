//! Packets of a flow, numbered from 0: the next one to send, the last transmission of each, and those that wait to be
//! sent again.
//!
//! While no packet is sent again, and on one subflow, a packet's number in the flow and that of its transmission differ
//! by the same for all packets that are not settled. Otherwise the last transmission of each is kept.

use alloc::collections::VecDeque;
use core::ops::Range;

use laws::ControlLaw;

use super::Subflows;
use crate::ring::SeqRing;
use crate::sent_packets::{SentPacket, State};

/// Last transmission of a packet of the flow, from the lowest bit: whether the packet is settled (1), the subflow where
/// there are several (6), and as many of the lowest bits of its packet number as fit. So there may be 2^25
/// transmissions on a subflow since an unsettled packet was sent, and 2^31 where there is only one.
type PackedIndex = u32;

const SETTLED: PackedIndex = 1;
const SUBFLOW_BITS: u32 = 6;

/// Last transmissions of packets that are not settled.
#[derive(Debug)]
enum LastTransmissions {
    /// Packets were sent in order: the number of a transmission is its packet's plus this.
    InOrder(u64),
    /// By packet, from the first one that is not settled to the last one that was sent.
    Kept(SeqRing<PackedIndex>),
}

/// The last transmission of a packet of the flow.
#[derive(Clone, Copy)]
pub(super) struct LastTransmission<'a> {
    /// Its subflow.
    pub(super) subflow: u8,
    /// Its packet number there.
    pub(super) number: u64,
    pub(super) record: &'a SentPacket<u32>,
}

/// The packets of one flow.
#[derive(Debug)]
pub(super) struct SendSequence {
    /// Number of packets.
    total: u32,
    /// Payload of a full packet.
    mss: u32,
    /// Packets that are not full: the first, and how many, each of `last_bytes`.
    short: u32,
    short_count: u32,
    last_bytes: u32,
    /// Bits of a packed index for the subflow.
    subflow_bits: u32,
    /// The first packet that is not settled, or has not been sent.
    first: u32,
    /// The first packet that has not been sent.
    end: u32,
    transmissions: LastTransmissions,
    /// First packet from which on all were sent in order; none with several subflows, where they never are.
    ordered_from: Option<u32>,
    /// Lost packets that wait to be sent again; some are settled by now.
    lost: VecDeque<u32>,
}

impl SendSequence {
    /// `total` packets of `mss` bytes, but for those in `short`, which have `last_bytes`.
    pub(super) fn new(total: u32, mss: u32, short: Range<u32>, last_bytes: u32) -> Self {
        Self {
            total,
            mss,
            short: short.start,
            short_count: short.end - short.start,
            last_bytes,
            subflow_bits: 0,
            first: 0,
            end: 0,
            transmissions: LastTransmissions::InOrder(0),
            ordered_from: Some(0),
            lost: VecDeque::new(),
        }
    }

    /// Prepares for packets on several subflows.
    pub(super) fn spread(&mut self) {
        self.subflow_bits = SUBFLOW_BITS;
        self.transmissions = LastTransmissions::Kept(SeqRing::starting_at(0));
        self.ordered_from = None;
    }

    /// Sets the number of the first transmission.
    pub(super) fn begin_at(&mut self, number: u64) {
        self.transmissions = LastTransmissions::InOrder(number);
    }

    /// Returns the number of packets of the flow.
    #[inline(always)]
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// The first packet that is not settled, or has not been sent.
    #[inline(always)]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The first packet that has not been sent.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    #[inline(always)]
    pub(super) fn bytes_of(&self, seq: u32) -> u32 {
        if seq.wrapping_sub(self.short) < self.short_count { self.last_bytes } else { self.mss }
    }

    /// Returns the subflow and the number of a packet's last transmission, if the packet is not settled. If packets were sent
    /// in order it may be settled: then the record of that transmission is done.
    #[inline(always)]
    pub(super) fn last<L: ControlLaw>(&self, seq: u32, subflows: &Subflows<L>) -> Option<(u8, u64)> {
        if seq.wrapping_sub(self.first) >= self.end - self.first {
            return None;
        }
        match &self.transmissions {
            LastTransmissions::InOrder(offset) => Some((0, u64::from(seq) + offset)),
            LastTransmissions::Kept(transmissions) => self.unpack(*transmissions.get(seq.into()), subflows),
        }
    }

    #[inline(never)]
    fn unpack<L: ControlLaw>(&self, packed: PackedIndex, subflows: &Subflows<L>) -> Option<(u8, u64)> {
        if packed & SETTLED != 0 {
            return None;
        }
        let subflow = (packed >> 1 & ((1 << self.subflow_bits) - 1)) as u8;
        // The last number that has these lowest bits.
        let last = subflows.get(subflow).out.sent_packets.end() - 1;
        let shift = 1 + self.subflow_bits;
        let back = (last as u32).wrapping_sub(packed >> shift) & (u32::MAX >> shift);
        Some((subflow, last - u64::from(back)))
    }

    /// A packet's last transmission, if the packet is not settled.
    #[inline(always)]
    pub(super) fn last_transmission<'a, L: ControlLaw>(
        &self,
        seq: u32,
        subflows: &'a Subflows<L>,
    ) -> Option<LastTransmission<'a>> {
        let (subflow, number) = self.last(seq, subflows)?;
        let record = subflows.get(subflow).out.sent_packets.get(number);
        (record.state() != State::Done).then_some(LastTransmission { subflow, number, record })
    }

    /// The record of a packet's last departure, if it is not settled.
    #[inline(always)]
    pub(super) fn record<'a, L: ControlLaw>(&self, seq: u32, subflows: &'a Subflows<L>) -> Option<&'a SentPacket<u32>> {
        self.last_transmission(seq, subflows).map(|last| last.record)
    }

    /// Prepares to resend a lost packet: from now on the last transmission of each packet is kept.
    pub(super) fn keep_transmissions<L: ControlLaw>(&mut self, subflows: &Subflows<L>) {
        if let LastTransmissions::InOrder(offset) = self.transmissions {
            let mut transmissions = SeqRing::starting_at(self.first.into());
            for seq in self.first..self.end {
                let number = u64::from(seq) + offset;
                let is_over = subflows.get(0).out.sent_packets.get(number).state() == State::Done;
                transmissions.push(if is_over { SETTLED } else { (number as u32) << 1 });
            }
            self.transmissions = LastTransmissions::Kept(transmissions);
        }
        self.ordered_from = self.ordered_from.map(|from| from.max(self.end));
    }

    /// Records a transmission of a packet, the first one or a later one.
    #[inline(always)]
    pub(super) fn sent(&mut self, seq: u32, subflow: u8, number: u64) {
        debug_assert!(self.first <= seq && seq <= self.end && seq < self.total, "packet {seq} of {}", self.total);
        if let LastTransmissions::Kept(transmissions) = &mut self.transmissions {
            let packed = ((number as u32) << self.subflow_bits | u32::from(subflow)) << 1;
            if seq == self.end {
                transmissions.push(packed);
            } else {
                *transmissions.get_mut(seq.into()) = packed;
            }
        }
        self.end = self.end.max(seq + 1);
    }

    /// Settles a packet: the record of its last transmission is done.
    #[inline(always)]
    pub(super) fn settle(&mut self, seq: u32) {
        debug_assert!((self.first..self.end).contains(&seq), "{seq} is not in {}..{}", self.first, self.end);
        if let LastTransmissions::Kept(transmissions) = &mut self.transmissions {
            *transmissions.get_mut(seq.into()) = SETTLED;
        }
    }

    /// Forgets settled packets at the front, like the records of the subflow where there is one.
    #[inline(always)]
    pub(super) fn trim<L: ControlLaw>(&mut self, subflows: &Subflows<L>) {
        match &self.transmissions {
            LastTransmissions::InOrder(offset) => {
                self.first = (subflows.get(0).out.sent_packets.first() - offset) as u32;
            }
            LastTransmissions::Kept(_) => self.trim_kept(subflows),
        }
    }

    #[inline(never)]
    fn trim_kept<L: ControlLaw>(&mut self, subflows: &Subflows<L>) {
        if let LastTransmissions::Kept(transmissions) = &mut self.transmissions {
            transmissions.forget_while(|&packed| packed == SETTLED);
            self.first = transmissions.first() as u32;
        }
        if self.ordered_from.is_some_and(|from| self.first >= from) {
            let records = &subflows.get(0).out.sent_packets;
            debug_assert_eq!(records.end() - records.first(), u64::from(self.end - self.first));
            self.transmissions = LastTransmissions::InOrder(records.end() - u64::from(self.end));
        }
    }

    /// Queues a lost packet to be sent again.
    pub(super) fn wait(&mut self, seq: u32) {
        debug_assert!(seq < self.end, "packet {seq} waits for retransmission, but was never sent");
        self.lost.push_back(seq);
    }

    /// Discards the queue of lost packets.
    pub(super) fn clear_lost(&mut self) {
        self.lost.clear();
    }

    /// Returns the first lost packet in the queue; it may be settled by now.
    #[inline(always)]
    pub(super) fn first_lost(&self) -> Option<u32> {
        self.lost.front().copied()
    }

    /// Lost packets that wait; some may be settled.
    pub(super) fn lost_count(&self) -> u32 {
        self.lost.len() as u32
    }

    /// The packet that would go next, a lost one first; none if there is nothing to send.
    #[inline(always)]
    pub(super) fn next<L: ControlLaw>(&mut self, subflows: &Subflows<L>) -> Option<u32> {
        if !self.lost.is_empty()
            && let Some(seq) = self.next_lost(subflows)
        {
            return Some(seq);
        }
        (self.end < self.total).then_some(self.end)
    }

    /// The lost packet that would go next.
    #[inline(never)]
    fn next_lost<L: ControlLaw>(&mut self, subflows: &Subflows<L>) -> Option<u32> {
        while let Some(&seq) = self.lost.front() {
            if self.record(seq, subflows).is_some_and(|record| record.state() == State::Lost) {
                return Some(seq);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Takes the packet that [`SendSequence::next`] returned, if it was a lost one.
    #[inline(always)]
    pub(super) fn take_lost(&mut self) -> Option<u32> {
        if self.lost.is_empty() { None } else { self.lost.pop_front() }
    }
}
