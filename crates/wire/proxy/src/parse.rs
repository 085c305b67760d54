//! Parsing of input in pieces of unknown length: a parser returns the length that it needs, so that nothing beyond it
//! is read.

use std::future::Future;
use std::io;

use tokio::net::TcpStream;
use transport::RecvStream;

/// Result of parsing the available bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed<T> {
    /// The value, and its length in bytes.
    Done(T, usize),
    /// The number of bytes that are needed at least, more than are available.
    Need(usize),
}

impl<T> Parsed<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Parsed<U> {
        match self {
            Self::Done(value, used) => Parsed::Done(f(value), used),
            Self::Need(need) => Parsed::Need(need),
        }
    }

    /// Returns the same result with `before` bytes in front.
    pub(crate) fn behind(self, before: usize) -> Self {
        match self {
            Self::Done(value, used) => Self::Done(value, before + used),
            Self::Need(need) => Self::Need(before + need),
        }
    }
}

/// A source of bytes.
pub(crate) trait ByteSource {
    /// Reads at least a byte; 0 at the end.
    fn take(&mut self, out: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;
}

impl ByteSource for &TcpStream {
    async fn take(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            self.readable().await?;
            match self.try_read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl ByteSource for &mut RecvStream {
    async fn take(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.read(out).await?)
    }
}

/// Reads one thing and not a byte more.
///
/// # Errors
/// If the bytes end too early, cannot be read, or are invalid.
pub(crate) async fn read<T, E>(
    mut source: impl ByteSource,
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, E>,
) -> Result<Result<T, E>, io::Error> {
    let mut bytes = Vec::new();
    loop {
        let need = match parse(&bytes) {
            Err(error) => return Ok(Err(error)),
            Ok(Parsed::Done(value, _)) => return Ok(Ok(value)),
            Ok(Parsed::Need(need)) => need,
        };
        // Parsers request at most the length of their formats, some hundred bytes.
        let mut filled = bytes.len();
        bytes.resize(need, 0);
        while filled < need {
            match source.take(&mut bytes[filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
    }
}
