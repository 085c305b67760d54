//! A packet as ports see it, and the random decisions that depend on it.

use units::{Time, mix64};

/// A packet as a port sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Arrival time of its last bit.
    pub now: Time,
    /// Bytes on the wire.
    pub size: u32,
    /// The packet may be marked.
    pub ecn_capable: bool,
    /// The packet belongs to the control class (acknowledgements).
    pub control: bool,
    /// The packet is a credit, for which ports may have a queue of their own.
    pub credit: bool,
    /// The packet is dropped before others: an over-provisioned credit, or data sent without a credit.
    pub expendable: bool,
    /// Identity that differs from that of every other packet: the seed of its random decisions.
    pub identity: u64,
}

/// 64 random bits for one decision about one packet at one port.
#[inline]
pub(crate) fn draw(salt: u64, packet: &Arrival) -> u64 {
    mix64(packet.identity ^ mix64(salt ^ packet.now.ps()))
}
