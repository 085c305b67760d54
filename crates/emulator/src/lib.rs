//! Real packets through the simulator's own queues: a link emulator.
//!
//! Each host of a network is a namespace with a TUN device ([`Hosts`]). One thread, the router, reads what the
//! hosts' kernels send, passes every packet through the ports of its path as [`fabric`] has them, and writes it to
//! the device of the host that it is for when its time has come ([`start`]). Time in the queues is virtual: what
//! happens there is computed for the time at which it is due, however late the thread comes to it.
//!
//! The crate knows namespaces, devices and packets' headers; it knows no law, no scheme and no file format of ours.

#![cfg(target_os = "linux")]

mod clock;
pub mod diag;
mod error;
#[doc(hidden)]
pub mod fuzzing {
    //! Functions for the fuzz targets; nobody else calls them.

    /// How many messages are in what the socket monitor answered.
    pub fn inet_diag(bytes: &[u8]) -> usize {
        crate::diag::count_messages(bytes)
    }
}
mod lateness;
mod namespace;
mod outcome;
pub mod packet;
mod pcapng;
mod pressure;
mod processors;
mod router;
mod run;
mod socket_calls;
mod sys;
pub mod tcp_info;
pub mod traffic;
mod tun;
mod witness;

pub use clock::Clock;
pub use error::Error;
pub use lateness::Lateness;
pub use namespace::{Addresses, HostPlan, Hosts, NamespaceOptions, plan};
pub use pcapng::is_capture;
pub use pressure::Pressure;
pub use router::{COALESCE, Refused, RouterConfig, RouterOutcome, Running, start};
pub use run::{Emulated, Options, preflight, run_carried, run_programs, run_traffic};
pub use traffic::{MOST_FLOWS, Progress, check_congestion};
pub use tun::{DEVICE, Tun};
pub use witness::{Reading, Witness};
