//! A packet as ports see it, and the chances that depend on it.

use units::{Time, mix64};

/// A packet as a port sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When its last bit is in.
    pub now: Time,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it may be marked.
    pub ecn_capable: bool,
    /// Whether it belongs to the control class (acknowledgements).
    pub control: bool,
    /// Whether it is a credit, for which ports may have a queue of their own.
    pub credit: bool,
    /// Whether it is dropped before others: an over-provisioned credit, or data sent without a credit.
    pub expendable: bool,
    /// What makes it differ from every other packet: the source of its chances.
    pub identity: u64,
}

/// 64 random bits for one decision about one packet at one port.
#[inline]
pub(crate) fn draw(salt: u64, packet: &Arrival) -> u64 {
    mix64(packet.identity ^ mix64(salt ^ packet.now.ps()))
}
