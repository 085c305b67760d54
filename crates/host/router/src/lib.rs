//! A network for IP packets. A packet passes the output ports of its path, which [`fabric`] models, and is then
//! delivered.
//!
//! [`Router`] is sans-IO: the caller passes packets and times, and receives the due deliveries. The emulator drives it
//! with TUN devices in real time, the virtual hosts with an event loop in virtual time.
//!
//! The crate handles addresses and packet headers; it does not depend on clocks, devices, laws or our file formats.

mod addresses;
mod alarm;
mod delivery;
pub mod packet;
mod packet_buffers;
mod port;
mod router;
mod samples;
mod shared_node;
#[cfg(test)]
mod tests;
mod udp_network;

pub use addresses::{Addresses, HostPlan, IpVersion, TooManyHosts, plan};
pub use delivery::Delivery;
pub use packet_buffers::MAX_FRAME;
pub use router::{
    NIC_BACKLOG, NetworkOutcome, Observer, PortDeparture, RefusedPackets, Router, RouterInputs, RouterTime, RunStart,
};
pub use udp_network::{DepartureObserver, UdpNetwork};
