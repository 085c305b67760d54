//! Scheduling of streams: the highest priority first, and round-robin among streams of one priority.

use alloc::collections::BTreeSet;
use core::cmp::Reverse;

use super::id::StreamId;

/// Kind of data that a stream could put into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Nothing,
    /// Bytes that were lost, or an end without bytes: flow control does not count them.
    Free,
    /// New bytes, at least some of them within the stream's reservation, regardless of other streams.
    Reserved,
    /// New bytes that need credit which all streams share.
    Shared,
}

/// New bytes that the connection's credit allows. A wider credit includes the narrower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Credit {
    /// None.
    Exhausted,
    /// Those of [`Need::Reserved`].
    Reserved,
    /// All.
    Shared,
}

/// A stream's position in the order. Entered in [`StreamScheduler`] unless it needs nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamSlot {
    pub(super) priority: i32,
    turn: u64,
    need: Need,
}

impl StreamSlot {
    pub(super) const fn new() -> Self {
        Self { priority: 0, turn: 0, need: Need::Nothing }
    }
}

/// Lowest first.
type ScheduleOrder = (Reverse<i32>, u64, StreamId);

#[derive(Default, Debug)]
pub(super) struct StreamScheduler {
    free: BTreeSet<ScheduleOrder>,
    reserved: BTreeSet<ScheduleOrder>,
    shared: BTreeSet<ScheduleOrder>,
    /// Later than every assigned turn.
    next: u64,
}

impl StreamScheduler {
    /// Returns the stream that sends next: one that flow control does not block, or else one with new bytes that the credit
    /// allows.
    pub(super) fn first(&self, credit: Credit) -> Option<StreamId> {
        let fresh = || {
            let reserved = self.reserved.first().filter(|_| credit >= Credit::Reserved);
            let shared = self.shared.first().filter(|_| credit >= Credit::Shared);
            reserved.into_iter().chain(shared).min()
        };
        self.free.first().or_else(fresh).map(|&(_, _, stream)| stream)
    }

    /// Returns whether a stream waits to send new bytes that the credit does not allow.
    pub(super) fn is_credit_blocked(&self, credit: Credit) -> bool {
        !self.reserved.is_empty() && credit < Credit::Reserved || !self.shared.is_empty() && credit < Credit::Shared
    }

    /// Sets the present need of a stream. If that changes, the stream goes behind the others of its priority.
    pub(super) fn set(&mut self, stream: StreamId, slot: &mut StreamSlot, need: Need) {
        if slot.need != need {
            self.leave(stream, slot);
            self.enter(stream, slot, need);
        }
    }

    /// Records that a stream has sent, and its present need: the others of its priority go before it.
    pub(super) fn sent(&mut self, stream: StreamId, slot: &mut StreamSlot, need: Need) {
        let alone = |set: &BTreeSet<ScheduleOrder>| {
            let next = set.iter().find(|&&(_, _, other)| other != stream);
            next.is_none_or(|&(priority, _, _)| priority != Reverse(slot.priority))
        };
        let keeps_position = match need {
            Need::Nothing => false,
            _ if need != slot.need => false,
            Need::Free => alone(&self.free),
            Need::Reserved | Need::Shared => alone(&self.reserved) && alone(&self.shared),
        };
        if !keeps_position {
            self.leave(stream, slot);
            self.enter(stream, slot, need);
        }
    }

    pub(super) fn set_priority(&mut self, stream: StreamId, slot: &mut StreamSlot, priority: i32) {
        let need = slot.need;
        self.leave(stream, slot);
        slot.priority = priority;
        self.enter(stream, slot, need);
    }

    fn enter(&mut self, stream: StreamId, slot: &mut StreamSlot, need: Need) {
        (slot.turn, slot.need) = (self.next, need);
        self.next += 1;
        let key = key(stream, slot);
        if let Some(set) = self.of_mut(need) {
            let is_new = set.insert(key);
            debug_assert!(is_new, "a stream has two places");
        }
    }

    fn leave(&mut self, stream: StreamId, slot: &mut StreamSlot) {
        let key = key(stream, slot);
        if let Some(set) = self.of_mut(slot.need) {
            let was_there = set.remove(&key);
            debug_assert!(was_there);
        }
        slot.need = Need::Nothing;
    }

    fn of_mut(&mut self, need: Need) -> Option<&mut BTreeSet<ScheduleOrder>> {
        match need {
            Need::Nothing => None,
            Need::Free => Some(&mut self.free),
            Need::Reserved => Some(&mut self.reserved),
            Need::Shared => Some(&mut self.shared),
        }
    }
}

fn key(stream: StreamId, slot: &StreamSlot) -> ScheduleOrder {
    (Reverse(slot.priority), slot.turn, stream)
}
