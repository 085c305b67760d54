//! Clock synchronisation in a mesh of hosts, sans-IO.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod line;
mod mesh;
mod network;
mod pair;
mod samples;

pub use line::{OffsetLine, Reading, Skew};
pub use mesh::{Member, Neighbours, neighbours};
pub use network::{MemberOffset, PairInterval, Solution, solve};
pub use pair::{NoEstimate, PairEstimate, PairSamples, SkewRange, estimate};
pub use samples::{CodedPair, Sample, SampleWindow};
