//! Where packets come from and go to.

use core::net::SocketAddr;

/// A pair of addresses and ports, as far as an endpoint sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Via {
    /// Which of the endpoint's own ports, by a number that it gave.
    pub socket: u16,
    /// The peer's address and port.
    pub remote: SocketAddr,
}
