//! How a peer's frames can contradict each other.

use thiserror::Error;

use crate::frame::Shape;

/// Why frames of a block cannot be true. It closes the connection with [`BlockError::code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BlockError {
    /// No block has such a packet. [`Frames`](crate::frame::Frames) gives no such frame.
    #[error("a block of {} data and {} parity packets has no such packet as {place}", .shape.data, .shape.parity)]
    Place {
        /// The block's packets.
        shape: Shape,
        /// The packet's place.
        place: u8,
    },
    /// Two frames of a block disagree on its packets.
    #[error(
        "block {block} had {} data and {} parity packets and has {} and {} now",
        .before.data, .before.parity, .now.data, .now.parity
    )]
    Shape {
        /// The block.
        block: u64,
        /// What the frames before said.
        before: Shape,
        /// What this one says.
        now: Shape,
    },
    /// Two parity symbols of a block have different lengths.
    #[error("parity of block {block} had {before} bytes and has {now} now")]
    Parity {
        /// The block.
        block: u64,
        /// The length before, in bytes.
        before: usize,
        /// The length of this one, in bytes.
        now: usize,
    },
    /// A data symbol and its length do not fit into the block's parity, or no symbol could.
    #[error("a symbol of {len} bytes and its length do not fit into the {parity} bytes of parity of block {block}")]
    Long {
        /// The block.
        block: u64,
        /// The data symbol's length in bytes; 0 where none has come.
        len: usize,
        /// The parity's length in bytes, or the longest that can be.
        parity: usize,
    },
    /// A place came twice, and not with the same bytes.
    #[error("packet {place} of block {block} came twice with different bytes")]
    Twice {
        /// The block.
        block: u64,
        /// Which packet.
        place: u8,
    },
    /// What was rebuilt says that it is longer than it can be.
    #[error("packet {place} of block {block} was rebuilt with {len} bytes, {most} at most are possible")]
    RebuiltLength {
        /// The block.
        block: u64,
        /// Which packet.
        place: u8,
        /// The length that it states, in bytes.
        len: usize,
        /// The most that parity leaves room for, in bytes.
        most: usize,
    },
    /// What was rebuilt does not end in zeros.
    #[error("packet {place} of block {block} was rebuilt and does not end in zeros")]
    RebuiltEnd {
        /// The block.
        block: u64,
        /// Which packet.
        place: u8,
    },
    /// A frame speaks of a block that was not sent, or says that one is whole of which too few packets were sent.
    #[error("a frame speaks of block {block}, but only those below {sent} were sent")]
    Unsent {
        /// The block.
        block: u64,
        /// Blocks that were begun, or, where one is said to be whole, sent.
        sent: u64,
    },
}

impl BlockError {
    /// The code of the CLOSE frame: 3 (`frame`) or 4 (`ack`).
    pub const fn code(&self) -> u64 {
        match self {
            Self::Place { .. }
            | Self::Shape { .. }
            | Self::Parity { .. }
            | Self::Long { .. }
            | Self::Twice { .. }
            | Self::RebuiltLength { .. }
            | Self::RebuiltEnd { .. } => 3,
            Self::Unsent { .. } => 4,
        }
    }
}
