//! The packet simulator: hosts that run flows over a [`fabric::Network`], partitioned by datacenter.
//!
//! There is no global queue of packets. Time runs in windows as long as the shortest link; in a window each
//! active node merges its input links, each already in order, and runs to the window's end, because what it
//! sends arrives after it. Ties are broken inside a node by (time, input link), so the result does not depend on
//! the order in which nodes run, nor on the number of threads.
//!
//! [`run`] takes a [`Setup`] and a function that makes each flow's law, and gives an [`Outcome`].

mod body;
mod carried;
mod controllers;
mod engine;
mod fifo;
pub mod host;
mod ideals;
mod identities;
mod jitter;
mod layout;
mod links;
mod merge;
mod outcome;
mod packet;
mod partition;
mod plane;
mod predictions;
mod prefetch;
mod recorder;
mod reports;
mod schedule;
mod series;
mod setup;
mod shared;
mod start;
mod ties;
mod waits;

pub use body::{Body, Kind};
pub use engine::{Broken, Progress, Recorded, Threads, run, run_checked, run_on, run_recorded};
pub use fabric::NodeId;
pub use flow::{Code, PathChoice, Plb, Recovery, Reps, UnoLb};
pub use ideals::Ideals;
pub use identities::broken_identities;
pub use jitter::{Jitter, JitterShape};
pub use outcome::{ByKind, EngineStats, FlowOutcome, LinkOutcome, Outcome, SwitchOutcome};
pub use packet::{Header, Packet, Report};
pub use predictions::{Pairs, Predictions};
pub use recorder::{
    DropCause, FlowLog, LinkSpan, LinkUse, PacketArrival, PacketDeparture, PacketId, PacketKind, PacketLoss,
    RecordConfig, Recording, SenderEvent, SenderView, SenderWait,
};
pub use series::{FlowSample, PauseSample, PortSample, SwitchSample};
pub use setup::{
    Clocks, Cnp, Coding, FlowSpec, HostConfig, InitialQuantum, Module, ModuleSpec, OnRampConfig, Paths, SeriesConfig,
    Setup, Ties,
};
pub use start::{Cause, CauseSet, Causes, FlowId, Start};
pub use waits::{Pending, Waits};
