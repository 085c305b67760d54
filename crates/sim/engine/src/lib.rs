//! The packet simulator: hosts that run flows over a [`fabric::Network`], partitioned by datacenter.
//!
//! There is no global queue of packets. Time runs in windows as long as the shortest link; in a window each active node
//! merges its input links, each already in order, and runs to the window's end, because its packets arrive after that. Ties
//! are broken inside a node by (time, input link), so the result does not depend on the order in which nodes run, nor on
//! the number of threads.
//!
//! [`run`] takes an [`experiment::Setup`] and a function that makes each flow's law, and returns an [`experiment::Outcome`].

mod body;
mod carried;
mod controllers;
mod event_loop;
mod fifo;
pub mod host;
mod layout;
mod links;
mod merge;
mod optional_index;
mod packet;
mod partition;
mod plane;
mod prefetch;
mod recorder;
mod reports;
mod schedule;
mod shared_buffer;
mod ticks;
mod tie_break;

pub use body::{Body, BodyKind};
pub use event_loop::{InternalError, Recorded, RunProgress, Threads, run, run_checked, run_on, run_recorded};
pub use packet::{ForwardingHeader, Packet, TelemetrySlot};
