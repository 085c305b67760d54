//! Stream IDs. The number of a stream encodes the end that opened it and its directions.

use crate::side::Side;

const OF_LISTENER: u64 = 1;
const ONE_WAY: u64 = 2;

/// Directions of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Both ends send.
    Both,
    /// Only the end that opened it sends.
    OneWay,
}

impl Direction {
    /// Returns the direction's index in arrays.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// The number of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(u64);

impl StreamId {
    /// Returns the stream that `side` opens as number `nth` of those with this direction; the first is 0. `nth` is
    /// below 2^60.
    pub const fn new(side: Side, direction: Direction, nth: u64) -> Self {
        let of_listener = if matches!(side, Side::Listener) { OF_LISTENER } else { 0 };
        let one_way = if matches!(direction, Direction::OneWay) { ONE_WAY } else { 0 };
        Self(nth << 2 | one_way | of_listener)
    }

    /// Returns the number in frames.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the end that opened it.
    pub const fn opened_by(self) -> Side {
        if self.0 & OF_LISTENER == 0 { Side::Client } else { Side::Listener }
    }

    /// Returns its directions.
    pub const fn direction(self) -> Direction {
        if self.is_one_way() { Direction::OneWay } else { Direction::Both }
    }

    /// Returns whether only the end that opened it sends.
    pub const fn is_one_way(self) -> bool {
        self.0 & ONE_WAY != 0
    }

    /// Returns the number of streams that its end opened with this direction before.
    pub const fn nth(self) -> u64 {
        self.0 >> 2
    }

    /// Returns whether this end sends on it.
    pub(super) fn is_sent_by(self, side: Side) -> bool {
        !self.is_one_way() || self.opened_by() == side
    }
}

/// The stream with this number, which is below 2^62 - 1 as in every frame that was read.
impl From<u64> for StreamId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}
