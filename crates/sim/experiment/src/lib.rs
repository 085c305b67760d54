//! One run on any backend: its set-up ([`Setup`]: network, hosts, flows, series) and its outcome ([`Outcome`]).
//!
//! The engine simulates a set-up, the emulator runs it over real packets, and both return an outcome. This crate also
//! has the results that follow from a set-up alone: when flows start ([`Waits`]), ideal completion times ([`Ideals`]),
//! and the [identities](broken_identities) that every simulated outcome satisfies.
#![forbid(unsafe_code)]

mod clocks;
mod flow_driver;
mod ideals;
mod identities;
mod jitter;
mod outcome;
mod predictions;
mod recording;
mod series;
mod setup;
mod start;
mod start_queue;
mod waits;

pub use fabric::DropCause;
pub use flow_driver::{
    DrivenFlows, DriverConfig, FlowEvent, FlowEventKind, FlowTransport, MAX_SAMPLES, SenderState, TRUNCATED,
    TrafficProgress, broken_connections, drive, outcome_of_packets,
};
pub use ideals::Ideals;
pub use identities::broken_identities;
pub use jitter::{Jitter, JitterShape};
pub use outcome::{ByKind, EngineStats, FlowOutcome, LinkOutcome, Outcome, SwitchOutcome};
pub use predictions::{Pairs, Predictions};
pub use recording::{
    FlowLog, LinkSpan, LinkUse, PacketArrival, PacketDeparture, PacketId, PacketKind, PacketLoss, RecordConfig,
    Recording, SenderEvent, SenderView, SenderWait,
};
pub use series::{FlowSample, PauseSample, PortSample, SwitchSample};
pub use setup::{
    Clocks, Cnp, Coding, FlowSpec, HostConfig, InitialQuantum, OnRampConfig, PathBounds, SeriesConfig, Setup,
    SwitchController, SwitchControllerSpec, TieBreak,
};
pub use start::{Dependencies, Dependency, DependencySet, FlowId, Start};
pub use start_queue::StartQueue;
pub use waits::{Pending, Waits};
