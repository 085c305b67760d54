//! Real packets through the simulator's own queues: a link emulator.
//!
//! Each host of a network is a namespace with a TUN device ([`HostNamespaces`]). One thread, the router, reads the packets that the
//! hosts' kernels send, passes each one to a `router::Router`, and writes it to the device of its destination host when it
//! is due ([`start`]). Time in the queues is virtual: events there are computed for the time at which they are due, however
//! late the thread processes them.
//!
//! The crate handles namespaces, devices and sockets; it does not depend on laws, schemes or our file formats.

#![cfg(target_os = "linux")]

mod clock;
pub mod diag;
mod error;
mod lateness;
mod law_state;
mod namespace;
mod outcome;
mod pcapng;
mod pressure;
mod processors;
mod router;
mod run;
mod socket_calls;
mod sys;
pub mod traffic;
mod tun;

pub use clock::Clock;
pub use error::Error;
pub use lateness::Lateness;
pub use law_state::{LawReading, LawStateReader};
pub use namespace::{HostNamespaces, HostSelection, NamespaceOptions};
pub use pcapng::is_capture;
pub use pressure::Pressure;
pub use router::{COALESCE, RouterConfig, RouterOutcome, Running, start};
pub use run::{
    Emulated, HostTransport, Programs, RunOptions, preflight, run_over_transport, run_programs, run_traffic,
};
pub use traffic::{MAX_FLOWS, check_congestion};
pub use tun::{DEVICE, Tun};
