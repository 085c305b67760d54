//! Errors of connections and streams.

use std::io;

use proto::closed::Closed;
use proto::endpoint::EndpointError;
use proto::streams::{ReadError, WriteError};
use thiserror::Error;

/// An error of an endpoint, a connection or a stream.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is over.
    #[error("{0}")]
    Closed(Closed),
    /// The endpoint was closed.
    #[error("this endpoint was closed")]
    Endpoint,
    /// A listener with several threads cannot connect from its own address: [`crate::Endpoint::connect_from`] can.
    #[error("a listener with several threads cannot connect from its own address")]
    Threads,
    /// The connection cannot begin.
    #[error("{0}")]
    Call(#[from] EndpointError),
    /// Writing failed.
    #[error("{0}")]
    Write(#[from] WriteError),
    /// Reading failed.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The peer sent more than the limit.
    #[error("the peer sent more than {max_len} bytes")]
    TooLong {
        /// The limit in bytes.
        max_len: usize,
    },
    /// A socket fails.
    #[error("{0}")]
    Socket(#[from] io::Error),
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Closed(Closed::TimedOut) => io::ErrorKind::TimedOut,
            Error::Closed(Closed::Reset) | Error::Read(_) => io::ErrorKind::ConnectionReset,
            Error::Closed(_) => io::ErrorKind::ConnectionAborted,
            Error::Endpoint => io::ErrorKind::NotConnected,
            Error::Write(_) => io::ErrorKind::BrokenPipe,
            Error::TooLong { .. } => io::ErrorKind::InvalidData,
            Error::Threads => io::ErrorKind::Unsupported,
            Error::Call(_) | Error::Socket(_) => io::ErrorKind::Other,
        };
        match error {
            Error::Socket(error) => error,
            error => Self::new(kind, error),
        }
    }
}
