//! The work of a flow whose packets are numbered from 0: which goes next, which number carried it last, and which wait to be
//! sent again.

use alloc::collections::VecDeque;
use core::ops::Range;

use laws::ControlLaw;

use super::subflows::Subflows;
use crate::records::{Record, State};
use crate::ring::Ring;

/// Where a packet of the flow went last, from the lowest bit: whether nothing is to be known of it any more (1), the subflow
/// where there are several (6), and as many of the lowest bits of its packet number as have room. So there may be 2^25
/// departures on a subflow since a packet left of which something is to be known, and 2^31 where there is only one.
type Place = u32;

const SETTLED: Place = 1;
const SUBFLOW_BITS: u32 = 6;

/// The packets of one flow.
#[derive(Debug)]
pub(super) struct Numbers {
    /// How many there are.
    total: u32,
    /// Payload of a full packet.
    mss: u32,
    /// Packets that are not full: the first, and how many, each of `last_bytes`.
    short: u32,
    short_count: u32,
    last_bytes: u32,
    /// Bits of a place for the subflow.
    subflow_bits: u32,
    /// By packet, from the first one that is not settled to the last one that was sent.
    places: Ring<Place, 64>,
    /// Lost packets that wait to be sent again; some are settled by now.
    lost: VecDeque<u32>,
}

impl Numbers {
    /// `total` packets of `mss` bytes, but for those in `short`, which have `last_bytes`.
    pub(super) fn new(total: u32, mss: u32, short: Range<u32>, last_bytes: u32) -> Self {
        Self {
            total,
            mss,
            short: short.start,
            short_count: short.end - short.start,
            last_bytes,
            subflow_bits: 0,
            places: Ring::starting_at(0),
            lost: VecDeque::new(),
        }
    }

    /// Its packets go on several subflows.
    pub(super) fn spread(&mut self) {
        self.subflow_bits = SUBFLOW_BITS;
    }

    /// How many packets the flow has.
    #[inline(always)]
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// The first packet that is not settled, or has not been sent.
    #[inline(always)]
    pub(super) fn first(&self) -> u32 {
        self.places.first() as u32
    }

    /// The first packet that has not been sent.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.places.end() as u32
    }

    #[inline(always)]
    pub(super) fn bytes_of(&self, seq: u32) -> u32 {
        if seq.wrapping_sub(self.short) < self.short_count { self.last_bytes } else { self.mss }
    }

    /// The subflow and the number of a packet's last departure, if it is not settled.
    #[inline(always)]
    pub(super) fn place<L: ControlLaw>(&self, seq: u32, subflows: &Subflows<L>) -> Option<(u8, u64)> {
        if seq.wrapping_sub(self.first()) >= self.end() - self.first() {
            return None;
        }
        let place = *self.places.get(seq.into());
        if place & SETTLED != 0 {
            return None;
        }
        let subflow = (place >> 1 & ((1 << self.subflow_bits) - 1)) as u8;
        // The last number that has these lowest bits.
        let last = subflows.get(subflow).out.records.end() - 1;
        let shift = 1 + self.subflow_bits;
        let back = (last as u32).wrapping_sub(place >> shift) & (u32::MAX >> shift);
        Some((subflow, last - u64::from(back)))
    }

    /// The record of a packet's last departure, if it is not settled.
    #[inline(always)]
    pub(super) fn record<'a, L: ControlLaw>(&self, seq: u32, subflows: &'a Subflows<L>) -> Option<&'a Record<u32>> {
        self.place(seq, subflows).map(|(subflow, number)| subflows.get(subflow).out.records.get(number))
    }

    /// A packet leaves, for the first time or again.
    #[inline(always)]
    pub(super) fn sent(&mut self, seq: u32, subflow: u8, number: u64) {
        let place = ((number as u32) << self.subflow_bits | u32::from(subflow)) << 1;
        if seq == self.end() {
            self.places.push(place);
        } else {
            *self.places.get_mut(seq.into()) = place;
        }
    }

    /// Nothing is to be known of a packet any more.
    #[inline(always)]
    pub(super) fn settle(&mut self, seq: u32) {
        *self.places.get_mut(seq.into()) = SETTLED;
    }

    /// Forgets settled packets at the front.
    #[inline(always)]
    pub(super) fn trim(&mut self) {
        self.places.forget_while(|&place| place == SETTLED);
    }

    /// A lost packet waits to be sent again.
    pub(super) fn wait(&mut self, seq: u32) {
        self.lost.push_back(seq);
    }

    /// No lost packet waits.
    pub(super) fn wait_no_more(&mut self) {
        self.lost.clear();
    }

    /// The lost packet that waits first, or did before it was settled.
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
        while let Some(&seq) = self.lost.front() {
            if self.record(seq, subflows).is_some_and(|record| record.state() == State::Lost) {
                return Some(seq);
            }
            self.lost.pop_front();
        }
        (self.end() < self.total).then(|| self.end())
    }

    /// The packet that [`Numbers::next`] gave is about to leave; whether it was lost.
    #[inline(always)]
    pub(super) fn take_lost(&mut self) -> Option<u32> {
        self.lost.pop_front()
    }
}
