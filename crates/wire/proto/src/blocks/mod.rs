//! Coded blocks: packets with parity, from which a receiver rebuilds lost packets without a round trip. Bonato et al.,
//! "Uno" (SC 2025), §4.2 (UnoRC); the frames and rules are in `docs/src/transport-data.md`, "Blocks".
//!
//! A sender has a [`BlockSender`], a receiver a [`BlockReceiver`], one each per direction of a connection. Neither sends
//! anything: a connection takes the next frames from them and reports arrivals, acknowledgements and losses to them.
//! [`CodingPolicy`] selects the packets that are coded.
//!
//! To send a packet, a sender calls [`BlockSender::next_resend`], then [`BlockSender::put_parity`], then [`BlockSender::offer`] for new
//! data. It reports each packet with a [`Tag`] to [`BlockSender::acked`] or [`BlockSender::lost`], and gets the symbols' contents
//! back from [`BlockSender::next_delivered`] and as [`Resend::Plain`]. A receiver reads the frames of data packets itself,
//! and those that [`BlockReceiver::next_rebuilt`] returns. Both have a timer.
//!
//! ```
//! use proto::blocks::{BlockSender, CodingPolicy, Conditions, Pending, BlockReceiver};
//! use proto::frame::{Frame, Frames};
//! use units::{Frac, Time};
//!
//! let (now, window) = (Time::ZERO, 1 << 20);
//! let mut block_sender = BlockSender::new("8,2".parse::<CodingPolicy>().unwrap(), window);
//! let mut block_receiver = BlockReceiver::new(window);
//!
//! // Three packets are left to send: a block of three, and its parity.
//! let conditions = Conditions { loss: Frac::ZERO, bdp: 0 };
//! for (left, symbol) in [(3, "one"), (2, "second"), (1, "third")] {
//!     let pending = Pending { bytes: left * 1200, ends: true };
//!     let offer = block_sender.offer(pending, 1200, conditions).unwrap();
//!     block_sender.push(now, offer, symbol.as_bytes(), left);
//!     if symbol != "second" {
//!         let tag = offer.tag;
//!         block_receiver.on_source(now, tag.block, tag.shape, tag.place, symbol.as_bytes()).unwrap();
//!     }
//! }
//! let mut packet = Vec::new();
//! let tag = block_sender.put_parity(now, &mut packet).unwrap();
//! let Some(Ok(Frame::Parity { symbol, .. })) = Frames::new(&packet).next() else { panic!("parity") };
//! block_receiver.on_parity(now, tag.block, tag.shape, tag.place, symbol).unwrap();
//!
//! assert_eq!(block_receiver.next_rebuilt(), Some(&b"second"[..]));
//! assert_eq!(block_receiver.next_block_whole(), Some((0, 1)));
//! ```

use crate::frame::Shape;

mod binomial;
mod encoding;
mod error;
mod policy;
mod pool;
mod receiving;
mod repair;
mod ring;
mod sending;
mod spans;
mod timers;

pub use error::BlockError;
pub use policy::{CodingError, CodingPolicy, Conditions, Pending};
pub use receiving::BlockReceiver;
pub use sending::{BlockSender, Offer, Resend};

/// Coding counters of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CodingStats {
    /// Parity packets that this end has sent, including retransmissions.
    pub parity: u64,
    /// Blocks of the peer that parity completed here.
    pub recovered: u64,
}

/// Accounted memory of a block, in bytes, in addition to its symbols.
pub const BLOCK_BYTES: u64 = 512;

/// Accounted memory of a symbol, in bytes, in addition to its length.
pub const SYMBOL_BYTES: u64 = 64;

/// Bytes of parity in addition to those of a symbol: its length precedes it.
pub const LENGTH_BYTES: usize = 2;

/// Event of a block, at its sender or its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEvent {
    /// The first packet of a block is sent.
    Begun {
        /// The block.
        block: u64,
        /// Its packets.
        shape: Shape,
    },
    /// A `BLOCK_NACK` requests packets.
    Requested {
        /// The block.
        block: u64,
        /// One bit per missing place.
        missing: u64,
    },
    /// A packet of a block is retransmitted.
    Repair(Tag),
    /// The sender abandons a block: its unacknowledged data is sent as plain frames.
    GivenUp {
        /// The block.
        block: u64,
    },
    /// The first packet of a block arrived.
    Opened {
        /// The block.
        block: u64,
        /// Its packets.
        shape: Shape,
    },
    /// The missing data packets of a block are rebuilt.
    Recovered {
        /// The block.
        block: u64,
        /// Number of data packets.
        packets: u8,
    },
    /// A `BLOCK_NACK` is about to be sent.
    Missing {
        /// The block.
        block: u64,
        /// One bit per missing place.
        missing: u64,
    },
    /// The receiver forgets an incomplete block.
    Forgotten {
        /// The block.
        block: u64,
    },
}

/// One packet of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The block.
    pub block: u64,
    /// The block's packets.
    pub shape: Shape,
    /// Place of the packet in the block: data packets first, then parity.
    pub place: u8,
}

impl Tag {
    /// Returns whether the packet is parity.
    pub const fn is_parity(self) -> bool {
        self.place >= self.shape.data
    }
}

/// Returns the number of data and parity packets of a block. Saturates at 255.
const fn packets(shape: Shape) -> u8 {
    shape.data.saturating_add(shape.parity)
}

/// Returns the bit of a place, as in `BLOCK_NACK`; no bit if no block has such a place.
const fn bit(place: u8) -> u64 {
    if place < 64 { 1 << place } else { 0 }
}

/// Returns the bits of the first `count` places; `count` is less than 64.
const fn first(count: u8) -> u64 {
    (1 << count) - 1
}

/// Returns the lowest `count` bits of `bits`.
fn lowest(bits: u64, count: u32) -> u64 {
    let mut rest = bits;
    for _ in 0..count {
        rest &= rest.wrapping_sub(1);
    }
    bits & !rest
}

#[cfg(test)]
mod tests;
