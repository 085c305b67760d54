//! Systematic MDS erasure codes for small blocks of packets: k data packets, m parity packets, any k of the k + m
//! determine the data.
//!
//! A block's data is sent as it is, and its parity after it. [`Code::encode`] makes all parity of a block at once,
//! [`Encoder`] as its packets arrive. [`Decoder`] repairs a block if at least k packets arrived; it keeps the plan that
//! it computed for a pattern of losses, so that a repair costs as much as an encoding. [`DecodePlan`] is such a plan, for
//! callers that keep it themselves.
//!
//! Packets of a block have one length; a sender of packets of several lengths pads them with zeros to the longest and
//! states their lengths inside them. A last block with fewer data packets has the [shortened](Code::shortened) code.
//!
//! ```
//! use codes::{Code, Decoder};
//!
//! # fn main() -> Result<(), codes::Error> {
//! let code = Code::new(3, 2)?;
//! let data: [&[u8]; 3] = [b"first", b"other", b"third"];
//! let (mut p, mut q) = ([0; 5], [0; 5]);
//! code.encode(&data, &mut [&mut p, &mut q])?;
//!
//! // The first packet and a parity packet are lost.
//! let arrived = [None, Some(data[1]), Some(data[2]), None, Some(&q[..])];
//! let mut first = [0; 5];
//! Decoder::new(code).repair(&arrived, &mut [&mut first])?;
//! assert_eq!(&first, b"first");
//! # Ok(())
//! # }
//! ```
//!
//! The arithmetic is GF(2^8)'s. Its [`Engine`] is chosen at run time, by the processor's features, if the feature `std`
//! (on by default) is enabled; otherwise at compile time. The crate needs an allocator and nothing else. Nothing here
//! panics on its input, and every error states the invalid argument. There are no checksums: a packet that was changed
//! on its way is taken as sent.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod buffer;
mod code;
mod decoder;
mod encoder;
mod engine;
mod error;
mod field;
mod generator;
mod kind;
mod plan;

pub use code::Code;
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::{Error, Role};
pub use generator::MAX_PACKETS;
pub use kind::Engine;
pub use plan::DecodePlan;
