//! Clock synchronisation in a mesh of hosts, sans-IO.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod limits;
mod line;
mod mesh;
mod network;
mod node;
mod pair;
mod prober;
mod reports;
mod samples;
mod wire;

pub use limits::Limits;
pub use line::{OffsetLine, Reading, Skew};
pub use mesh::{Member, Neighbours, neighbours, successors};
pub use network::{MemberOffset, PairInterval, Solution, solve};
pub use node::{Departure, Event, MemberConfig, MeshConfig, MeshMap, Node, Outgoing};
pub use pair::{NoEstimate, PairEstimate, PairSamples, SkewRange, estimate};
pub use samples::{CodedPair, Sample, SampleWindow};
pub use wire::{
    Body, Departures, Era, Header, MAX_LENGTH, MAX_PAIRS, MeshLine, Message, PROBE_LENGTH, PairIndex, Probe, REPORTS_OVERHEAD,
    Reply, Report, ReportedPair, Session, report_length,
};
