//! Identifiers of connections.

/// Identifies a connection of an endpoint. Never reused; later connections have greater handles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionHandle(pub(crate) u64);
