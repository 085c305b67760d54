//! Clock synchronisation in a mesh of hosts, sans-IO, with a bound of the error.
//!
//! Members of a mesh send coded pairs of probes to their neighbours and compare transmit and receive timestamps, as in
//! Huygens (NSDI 2018; On-Ramp, NSDI 2021, §3.3 and §4.1). From these each member computes *mesh time*: a common time that
//! advances with the clock of one member, the reference. No clock is set.
//!
//! | step | module |
//! |---|---|
//! | pairs of neighbours: random rings, degree O(log N) | `mesh` |
//! | offset and skew of a pair: lines on the convex hulls of both directions | `pair`, `prober` |
//! | offsets of all members: least squares over the loops, bounds along paths, suspects | `network`, `least_squares` |
//! | messages, and what members report to each other | `wire`, `reports` |
//! | mesh time, changes of the reference, steps of clocks | `node` |
//!
//! The bound holds while the stated [`Limits`] of clocks and paths do. It cannot hold against what no measurement shows: an
//! asymmetry of paths beyond the stated one, and members with the key of the mesh that forge the reports of others.
//!
//! Integers, except for the least squares, on which no bound depends.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod least_squares;
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
pub use node::{Departure, Event, MemberConfig, MeshConfig, MeshMap, NeighbourState, Node, Outgoing};
pub use pair::{NoEstimate, PairEstimate, PairSamples, SkewRange, estimate};
pub use samples::{CodedPair, Sample, SampleWindow};
pub use wire::{
    Agreement, Body, Departures, Era, Header, MAX_LENGTH, MAX_PAIRS, MeshLine, Message, PROBE_LENGTH, PairIndex, Probe,
    REPORTS_OVERHEAD, Reply, Report, ReportedPair, Session, report_length,
};
