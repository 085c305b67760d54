//! Parsers of other programs' files: text or bytes in, typed structures out.
//!
//! What is read says only what its file says, in the file's own words and units. It knows no scenario, no network and no
//! simulator. Whatever is wrong is an [`Error`] with the bytes that it is about and what would be accepted. No input makes a
//! parser panic, and none takes much more memory than a multiple of the input's length: counts are checked against what is there.

#![forbid(unsafe_code)]

pub mod capture;
pub mod chakra;
pub mod containerlab;
mod error;
pub mod flows;
pub mod goal;
pub mod graph;
pub mod graphml;
mod lines;
pub mod links;
pub mod msccl;
pub mod netflow;
mod rings;
pub mod simai;
pub mod sndlib;
mod table;
pub mod transfers;

pub use error::{Error, Place};

/// How a file that gzip compressed begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// So many of things, of which the first word is one: "1 link of a kind", "2 links of a kind".
#[must_use]
pub fn counted(count: usize, one: &str) -> String {
    let (word, rest) = one.split_once(' ').map_or((one, String::new()), |(word, rest)| (word, format!(" {rest}")));
    format!("{count} {word}{}{rest}", if count == 1 { "" } else { "s" })
}
