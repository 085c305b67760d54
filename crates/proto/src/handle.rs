//! The name of a connection at its endpoint.

/// Which connection of an endpoint. It is never given to another one, and later connections have greater ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub(crate) u64);
