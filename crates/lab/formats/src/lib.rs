//! Parsers of other programs' files: text or bytes in, typed structures out.
//!
//! A parsed structure contains only what its file states, in the file's own terms and units. This crate does not depend on
//! scenarios, networks or the simulator. Each problem is an [`Error`] with its bytes and the accepted input. No input makes
//! a parser panic, and none takes much more memory than a multiple of its length: counts are checked against the input's
//! size.

#![forbid(unsafe_code)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

pub mod capture;
pub mod chakra;
pub mod containerlab;
mod error;
pub mod flows;
pub mod goal;
pub mod graph;
pub mod graphml;
mod index;
mod lines;
pub mod links;
pub mod mahimahi;
pub mod msccl;
pub mod netflow;
mod rings;
pub mod simai;
pub mod sndlib;
mod table;
pub mod transfers;

pub use error::{ByteRange, Error};

/// Magic number of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns a count with a singular or plural noun, the first word of `one`: "1 link of a kind", "2 links of a kind".
#[must_use]
pub fn counted(count: usize, one: &str) -> String {
    let (word, rest) = one.split_once(' ').map_or((one, String::new()), |(word, rest)| (word, format!(" {rest}")));
    format!("{count} {word}{}{rest}", if count == 1 { "" } else { "s" })
}
