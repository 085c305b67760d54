//! Local socket and remote address of packets.

use core::net::SocketAddr;

/// Addresses and ports of a packet, as an endpoint sees them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FourTuple {
    /// Local socket, by the number that the endpoint's user assigned.
    pub socket: u16,
    /// The peer's address and port.
    pub remote: SocketAddr,
}
