//! What a router tells of its work.

use sim::{LinkOutcome, PortSample};
use units::Span;

use crate::lateness::Lateness;

/// Packets that the router did not pass on, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Refused {
    /// Neither IPv4 nor IPv6, or headers that contradict themselves.
    pub malformed: u64,
    /// Shorter than their headers say.
    pub truncated: u64,
    /// Larger on the wire than the MTU.
    pub too_long: u64,
    /// For an address of no host (multicast among them), or for the sender itself.
    pub unroutable: u64,
    /// Found no memory: the queues together held more than the router's limit.
    pub no_memory: u64,
    /// Not taken by the kernel of the host that they were for.
    pub unwritable: u64,
}

/// What a router gives when it is stopped.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct RouterOutcome {
    /// By [`fabric::LinkId`].
    pub links: Vec<LinkOutcome>,
    /// In order of time, then link.
    pub port_samples: Vec<PortSample>,
    /// How late packets were written, against when they were due.
    pub lateness: Lateness,
    /// How long the router was busy before it could read again: how late a packet may have been read.
    pub reading: Lateness,
    /// Processor time of the router's thread.
    pub cpu: Span,
    /// How long it ran.
    pub wall: Span,
    /// Whether it got real-time scheduling.
    pub real_time: bool,
    /// Packets read from hosts.
    pub packets_read: u64,
    /// Packets written to hosts; several segments of one packet may be one.
    pub packets_written: u64,
    /// Packets not passed on.
    pub refused: Refused,
    /// Packets that hosts' devices dropped because the router did not read them in time.
    pub device_drops: u64,
    /// Packets that are missing in captures because the disk was too slow.
    pub capture_missed: u64,
    /// Why the router and not the network was the bottleneck, if it was.
    pub bottleneck: Option<String>,
}
