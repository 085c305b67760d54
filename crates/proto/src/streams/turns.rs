//! Which stream sends next: the highest priority first, and streams of one priority in turn.

use alloc::collections::BTreeSet;
use core::cmp::Reverse;

use super::id::StreamId;

/// What a stream could put into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Nothing,
    /// Bytes that were lost, or an end without bytes: flow control does not count them.
    Free,
    /// New bytes.
    Fresh,
}

/// A stream's place in the order. Entered in [`Turns`] unless it needs nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) priority: i32,
    turn: u64,
    need: Need,
}

impl Place {
    pub(super) const fn new() -> Self {
        Self { priority: 0, turn: 0, need: Need::Nothing }
    }
}

/// Lowest first.
type Key = (Reverse<i32>, u64, StreamId);

#[derive(Default, Debug)]
pub(super) struct Turns {
    free: BTreeSet<Key>,
    fresh: BTreeSet<Key>,
    /// Later than every turn that was given.
    next: u64,
}

impl Turns {
    /// The stream that is to send: one that flow control does not hold up, or else, with credit, one with new bytes.
    pub(super) fn first(&self, credit: bool) -> Option<StreamId> {
        let fresh = || if credit { self.fresh.first() } else { None };
        self.free.first().or_else(fresh).map(|&(_, _, stream)| stream)
    }

    /// Whether a stream waits to send new bytes.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Says what a stream needs now. If that is new to it, it stands behind the others of its priority.
    pub(super) fn set(&mut self, stream: StreamId, place: &mut Place, need: Need) {
        if place.need != need {
            self.leave(stream, place);
            self.enter(stream, place, need);
        }
    }

    /// The stream has sent, and needs this now: the others of its priority go before it.
    pub(super) fn sent(&mut self, stream: StreamId, place: &mut Place, need: Need) {
        let alone = |set: &BTreeSet<Key>| {
            let next = set.iter().find(|&&(_, _, other)| other != stream);
            next.is_none_or(|&(priority, _, _)| priority != Reverse(place.priority))
        };
        let stays = need == place.need && self.of(need).is_some_and(alone);
        if !stays {
            self.leave(stream, place);
            self.enter(stream, place, need);
        }
    }

    pub(super) fn set_priority(&mut self, stream: StreamId, place: &mut Place, priority: i32) {
        let need = place.need;
        self.leave(stream, place);
        place.priority = priority;
        self.enter(stream, place, need);
    }

    fn enter(&mut self, stream: StreamId, place: &mut Place, need: Need) {
        (place.turn, place.need) = (self.next, need);
        self.next += 1;
        let key = key(stream, place);
        if let Some(set) = self.of_mut(need) {
            set.insert(key);
        }
    }

    fn leave(&mut self, stream: StreamId, place: &mut Place) {
        let key = key(stream, place);
        if let Some(set) = self.of_mut(place.need) {
            let was_there = set.remove(&key);
            debug_assert!(was_there);
        }
        place.need = Need::Nothing;
    }

    fn of(&self, need: Need) -> Option<&BTreeSet<Key>> {
        match need {
            Need::Nothing => None,
            Need::Free => Some(&self.free),
            Need::Fresh => Some(&self.fresh),
        }
    }

    fn of_mut(&mut self, need: Need) -> Option<&mut BTreeSet<Key>> {
        match need {
            Need::Nothing => None,
            Need::Free => Some(&mut self.free),
            Need::Fresh => Some(&mut self.fresh),
        }
    }
}

fn key(stream: StreamId, place: &Place) -> Key {
    (Reverse(place.priority), place.turn, stream)
}
