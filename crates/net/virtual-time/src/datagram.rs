//! UDP datagrams.

use std::net::SocketAddr;

/// A UDP datagram with its addresses and the two bits of ECN.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Datagram {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// The ECN field of the IP header (RFC 3168): 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// UDP payload.
    pub payload: Vec<u8>,
}
