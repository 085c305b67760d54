//! Coded blocks: packets with parity, from which a receiver rebuilds lost packets without a round trip. Bonato et al.,
//! "Uno" (SC 2025), §4.2 (UnoRC); the frames and rules are in `docs/src/transport.md`, "Blocks".
//!
//! A sender has a [`Coder`], a receiver a [`Rebuilding`], one each for a direction of a connection. Neither sends
//! anything: a connection asks them what goes next and tells them what came. [`Coding`] says which packets are coded.
//!
//! A sender that may send a packet asks [`Coder::next_resend`], then [`Coder::put_parity`], then [`Coder::offer`] for
//! new data. It tells [`Coder::acked`] and [`Coder::lost`] of each packet with a [`Tag`], and gets the symbols'
//! contents back from [`Coder::next_delivered`] and as [`Resend::Plain`]. A receiver reads the frames of data packets
//! itself, and those that [`Rebuilding::next_rebuilt`] gives. Both have a timer.
//!
//! ```
//! use proto::blocks::{Coder, Coding, Conditions, Pending, Rebuilding};
//! use proto::frame::{Frame, Frames};
//! use units::{Frac, Time};
//!
//! let (now, window) = (Time::ZERO, 1 << 20);
//! let mut coder = Coder::new("8,2".parse::<Coding>().unwrap(), window);
//! let mut rebuilding = Rebuilding::new(window);
//!
//! // Three packets are left to send: a block of three, and its parity.
//! let conditions = Conditions { loss: Frac::ZERO, bdp: 0 };
//! for (left, symbol) in [(3, "one"), (2, "second"), (1, "third")] {
//!     let pending = Pending { bytes: left * 1200, ends: true };
//!     let offer = coder.offer(pending, 1200, conditions).unwrap();
//!     coder.push(now, offer, symbol.as_bytes(), left);
//!     if symbol != "second" {
//!         let tag = offer.tag;
//!         rebuilding.on_source(now, tag.block, tag.shape, tag.place, symbol.as_bytes()).unwrap();
//!     }
//! }
//! let mut packet = Vec::new();
//! let tag = coder.put_parity(now, &mut packet).unwrap();
//! let Some(Ok(Frame::Parity { symbol, .. })) = Frames::new(&packet).next() else { panic!("parity") };
//! rebuilding.on_parity(now, tag.block, tag.shape, tag.place, symbol).unwrap();
//!
//! assert_eq!(rebuilding.next_rebuilt(), Some(&b"second"[..]));
//! assert_eq!(rebuilding.next_whole(), Some((0, 1)));
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
pub use policy::{Coding, CodingError, Conditions, Pending};
pub use receiving::Rebuilding;
pub use sending::{Coder, Offer, Resend};

/// What coding has done on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CodingStats {
    /// Parity packets that this end has sent, those included that were sent again.
    pub parity: u64,
    /// Blocks of the peer's that parity completed here.
    pub recovered: u64,
}

/// What a block counts in memory, in bytes, beside its symbols.
pub const BLOCK_BYTES: u64 = 512;

/// What a symbol counts in memory, in bytes, beside its length.
pub const SYMBOL_BYTES: u64 = 64;

/// Bytes of parity that a symbol takes beyond its own: its length goes before it.
pub const LENGTH_BYTES: usize = 2;

/// Something that happened to a block, at the end that sends it or at the one that receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEvent {
    /// The first packet of a block leaves.
    Begun {
        /// The block.
        block: u64,
        /// Its packets.
        shape: Shape,
    },
    /// `BLOCK_NACK` asks for packets.
    Requested {
        /// The block.
        block: u64,
        /// A bit for each place that is missing.
        missing: u64,
    },
    /// A packet of a block leaves once more.
    Repair(Tag),
    /// The sender gives a block up: what is not acknowledged goes as plain frames.
    GivenUp {
        /// The block.
        block: u64,
    },
    /// The first packet of a block came.
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
        /// How many data packets.
        packets: u8,
    },
    /// A `BLOCK_NACK` is to be sent.
    Missing {
        /// The block.
        block: u64,
        /// A bit for each place that is missing.
        missing: u64,
    },
    /// The receiver forgets a block that is not whole.
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
    /// Which of them: first data, then parity.
    pub place: u8,
}

impl Tag {
    /// Whether the packet is parity.
    pub const fn is_parity(self) -> bool {
        self.place >= self.shape.data
    }
}

/// Data and parity packets of a block. More than a shape may have count as 255.
const fn packets(shape: Shape) -> u8 {
    shape.data.saturating_add(shape.parity)
}

/// The bit of a place, as `BLOCK_NACK` has it; no bit if there is no such place.
const fn bit(place: u8) -> u64 {
    if place < 64 { 1 << place } else { 0 }
}

/// The bits of the first `count` places; `count` is under 64.
const fn first(count: u8) -> u64 {
    (1 << count) - 1
}

/// Of `bits`, the lowest `count`.
fn lowest(bits: u64, count: u32) -> u64 {
    let mut rest = bits;
    for _ in 0..count {
        rest &= rest.wrapping_sub(1);
    }
    bits & !rest
}

#[cfg(test)]
mod tests;
