//! What the laws in the kernel know of their flows, for whoever can tell: the emulator knows no law, and is given
//! someone to ask.

use std::net::SocketAddr;

use laws::Acted;

/// What a law knew of one connection at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The sender's address and port.
    pub local: SocketAddr,
    /// The other end's.
    pub peer: SocketAddr,
    /// How often the law has acted.
    pub acted: Acted,
    /// Its own state by name; units are the last word.
    pub trace: Vec<(&'static str, i64)>,
}

/// Someone who knows the laws' state. Asked at every sample, from the sampler's thread.
pub trait Witness: Send {
    /// What the laws know now. A connection that is not told of has a law that nobody can ask.
    fn readings(&mut self) -> Vec<Reading>;
}
