//! The flows of a [`experiment::Setup`] between the hosts' namespaces: as the kernel's TCP, or over whatever a
//! [`carried::Carrier`] is.
//!
//! All connections are made before time zero: a simulated flow knows its path from the start, and its completion time
//! has no handshake in it. A flow starts when it writes its first byte and is complete when the kernel says that its
//! last byte was acknowledged, by the time stamp of that acknowledgement. A flow without end is closed at the stop.
//!
//! Every flow has a port of its own at its source, [`port`], which is how samples and captures know it.

mod agenda;
pub mod carried;
mod connect;
mod run;
mod socket;

use std::net::IpAddr;

use experiment::Setup;
use fabric::HostId;
use inet_diag::TcpInfo;
use units::{Bytes, Span, Time};

use crate::error::Error;

pub use connect::Connected;
pub use socket::check_congestion;

/// The source port of flow 0; flow `n` has the n-th after it.
const FIRST_PORT: u16 = 10_000;

/// Listeners: one a host and congestion control, from this port on.
const LISTEN_PORT: u16 = 5_001;

/// Flows are numbered by ports below those that the kernel gives to other connections.
pub const MOST_FLOWS: usize = 20_000;

/// The least time between samples: a dump of a few sockets takes some 20 us a host.
pub const LEAST_INTERVAL: Span = Span::from_ms(1);

/// How often the caller is told how far it is.
const TELL: Span = Span::from_ms(50);

/// More samples are not kept: about a gigabyte.
pub(crate) const MOST_SAMPLES: usize = 4_000_000;

/// The source port of a flow.
pub fn port(flow: usize) -> u16 {
    FIRST_PORT + flow.min(MOST_FLOWS) as u16
}

/// The flow of a source port.
pub fn flow_of(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_PORT).map(usize::from).filter(|&flow| flow < MOST_FLOWS)
}

/// Where the hosts are.
pub trait Ground: Sync {
    /// A host's address.
    fn address(&self, host: HostId, ipv6: bool) -> IpAddr;

    /// Does something where the host's network is.
    ///
    /// # Errors
    /// When that place cannot be entered, or what is done there fails.
    fn within(&self, host: HostId, work: &mut (dyn FnMut() -> Result<(), Error> + Send)) -> Result<(), Error>;
}

/// What is sent, and how.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// The flows, and when the run stops.
    pub setup: &'a Setup,
    /// The kernel's names of congestion controls, by [`experiment::FlowSpec::kind`].
    pub congestion: &'a [String],
    /// Over IPv6 instead of IPv4.
    pub ipv6: bool,
}

/// How far the flows have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The run's time.
    pub now: Time,
    /// Flows that have ended.
    pub completed: usize,
}

/// What became of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowEnd {
    /// When it wrote its first byte; [`Time::NEVER`] if it never did.
    pub started: Time,
    /// When its last byte was acknowledged; [`Time::NEVER`] if that did not happen.
    pub completed: Time,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// The kernel's last word on it.
    pub info: TcpInfo,
    /// Why its connection broke, if it did.
    pub failure: Option<String>,
}

/// What became of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficEnd {
    /// By flow.
    pub flows: Vec<FlowEnd>,
    /// The last completion, or the stop.
    pub ended: Time,
    /// Whether the caller ended it before its time.
    pub interrupted: bool,
}
