//! Streams as tokio's `AsyncWrite` and `AsyncRead`. They need no runtime of tokio.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::{RecvStream, SendStream};

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        SendStream::poll_write(self.get_mut(), context, data).map_err(io::Error::from)
    }

    /// Returns at once: written data is sent as soon as the window allows it. [`SendStream::delivered`] waits for the peer.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the stream, as [`SendStream::finish`] does.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(io::Error::from))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = RecvStream::poll_read(self.get_mut(), context, buffer.initialize_unfilled());
        read.map_ok(|count| buffer.advance(count)).map_err(io::Error::from)
    }
}
