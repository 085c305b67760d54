//! The two ends of a connection.

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint that accepted it.
    Listener,
}

impl Side {
    /// Returns the other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Listener,
            Self::Listener => Self::Client,
        }
    }
}
