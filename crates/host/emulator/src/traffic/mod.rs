//! The flows of a [`experiment::Setup`] between the hosts' namespaces: as the kernel's TCP, or over any
//! [`experiment::FlowTransport`].
//!
//! All connections are made before time zero: a simulated flow knows its path from the start, and its completion time
//! has no handshake in it. A flow starts when it writes its first byte and is complete when the kernel reports that its
//! last byte was acknowledged, by the time stamp of that acknowledgement. A flow without end is closed at the stop.
//!
//! Every flow has a port of its own at its source, [`port`], by which samples and captures identify it.

mod connect;
mod run;
mod socket;

use std::net::IpAddr;

use experiment::Setup;
use fabric::HostId;
use inet_diag::TcpInfo;
use router::IpVersion;
use units::{Bytes, Span, Time};

use crate::error::Error;

pub use connect::Connected;
pub use socket::check_congestion;

/// The source port of flow 0; flow `n` has the n-th after it.
const FIRST_PORT: u16 = 10_000;

/// Listeners: one a host and congestion control, from this port on.
const LISTEN_PORT: u16 = 5_001;

/// Maximum number of flows: they are numbered by ports below those that the kernel assigns to other connections.
pub const MAX_FLOWS: usize = 20_000;

/// The least time between samples: a dump of a few sockets takes some 20 us a host.
pub const MIN_INTERVAL: Span = Span::from_ms(1);

/// Interval of progress reports to the caller.
pub(crate) const PROGRESS_INTERVAL: Span = Span::from_ms(50);

/// The source port of a flow.
pub fn port(flow: usize) -> u16 {
    FIRST_PORT + flow.min(MAX_FLOWS) as u16
}

/// The flow of a source port.
pub fn flow_of(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_PORT).map(usize::from).filter(|&flow| flow < MAX_FLOWS)
}

/// Access to the hosts' networks.
pub trait HostNetwork: Sync {
    /// A host's address.
    fn address(&self, host: HostId, version: IpVersion) -> IpAddr;

    /// Runs a function in the host's network.
    ///
    /// # Errors
    /// When that network cannot be entered, or the function fails.
    fn within(&self, host: HostId, work: &mut (dyn FnMut() -> Result<(), Error> + Send)) -> Result<(), Error>;
}

/// Flows to send, and their transport.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// The flows, and when the run stops.
    pub setup: &'a Setup,
    /// The kernel's names of congestion controls, by [`experiment::FlowSpec::kind`].
    pub congestion: &'a [String],
    /// Their IP version.
    pub ip_version: IpVersion,
}

/// Outcome of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowEnd {
    /// Time at which it wrote its first byte; [`Time::NEVER`] if it never did.
    pub started: Time,
    /// Time at which its last byte was acknowledged; [`Time::NEVER`] if that did not happen.
    pub completed: Time,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// The kernel's last report on it.
    pub info: TcpInfo,
    /// Reason why its connection broke, if it did.
    pub failure: Option<String>,
}

/// Outcome of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficEnd {
    /// By flow.
    pub flows: Vec<FlowEnd>,
    /// The last completion, or the stop.
    pub ended: Time,
    /// True if the caller ended it before its time.
    pub interrupted: bool,
}
