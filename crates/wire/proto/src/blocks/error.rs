//! Contradictions in a peer's frames.

use thiserror::Error;

use crate::frame::Shape;

/// Contradiction in the frames of a block. It closes the connection with [`BlockError::code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BlockError {
    /// No block has such a packet. [`Frames`](crate::frame::Frames) returns no such frame.
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
        /// Shape in the earlier frames.
        before: Shape,
        /// Shape in this frame.
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
        /// The data symbol's length in bytes; 0 if none has arrived.
        len: usize,
        /// The parity's length in bytes, or the maximum.
        parity: usize,
    },
    /// Two different symbols arrived for one place.
    #[error("packet {place} of block {block} was received twice with different bytes")]
    Twice {
        /// The block.
        block: u64,
        /// Place of the packet.
        place: u8,
    },
    /// A rebuilt symbol states an impossible length.
    #[error("packet {place} of block {block} was rebuilt with {len} bytes, {max_len} at most are possible")]
    RebuiltLength {
        /// The block.
        block: u64,
        /// Place of the packet.
        place: u8,
        /// Stated length, in bytes.
        len: usize,
        /// Maximum length that the parity leaves room for, in bytes.
        max_len: usize,
    },
    /// A rebuilt symbol does not end in zeros.
    #[error("packet {place} of block {block} was rebuilt and does not end in zeros")]
    RebuiltEnd {
        /// The block.
        block: u64,
        /// Place of the packet.
        place: u8,
    },
    /// A frame refers to a block that was not sent, or reports a block as complete although too few of its packets were
    /// sent.
    #[error("a frame refers to block {block}, but only blocks below {sent} were sent")]
    Unsent {
        /// The block.
        block: u64,
        /// Number of blocks that were begun or, if a block is reported as complete, sent.
        sent: u64,
    },
}

impl BlockError {
    /// Returns the code of the CLOSE frame: 3 (`frame`) or 4 (`ack`).
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
