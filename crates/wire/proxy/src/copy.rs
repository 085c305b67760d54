//! A TCP connection and a stream: bytes, ends, resets and backpressure cross from each to the other.
//!
//! | the TCP connection | the stream |
//! |---|---|
//! | the program ends its direction (FIN) | the stream is finished |
//! | it is reset, or fails | the sending direction is reset, and the peer is asked to stop sending |
//! | it takes no more | nothing more is read, so flow control stops the peer |
//!
//! and vice versa. A flow has a buffer of 64 KiB in each direction; all other waiting data is in the kernel's and the
//! stream's buffers.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::time::timeout;
use transport::{RecvStream, SendStream};

use crate::header::{DestinationReply, HeaderError};
use crate::parse;
use crate::reply::SocksReply;
use crate::tcp_side::TcpSide;

/// Bytes that are passed on at once: more than a batch of datagrams, so batches are full.
const PIECE: usize = 64 << 10;

/// The code with which a stream is reset or refused when its TCP connection did not end in order.
pub const RESET: u64 = 1;

/// The reason why a flow did not end in order.
#[derive(Debug, Error)]
pub(crate) enum RelayError {
    #[error("TCP: {0}")]
    Tcp(io::Error),
    #[error("the other end: {0}")]
    Stream(#[from] transport::Error),
    #[error("the other end: {0}")]
    Ended(io::Error),
    #[error("{0}")]
    Header(HeaderError),
    #[error("the proxy server does not answer")]
    NoAnswer,
    #[error("{}", .0.message)]
    Refused(DestinationReply),
}

/// Bytes carried.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Count {
    /// Bytes read from the TCP connection.
    pub(crate) taken: u64,
    /// Bytes written to it.
    pub(crate) given: u64,
}

/// Waits up to `wait` for the proxy server's answer that the connection is established.
pub(crate) async fn answer(receive: &mut RecvStream, wait: Duration) -> Result<(), RelayError> {
    let read = timeout(wait, parse::read(receive, DestinationReply::read)).await.map_err(|_| RelayError::NoAnswer)?;
    match read.map_err(RelayError::Ended)?.map_err(RelayError::Header)? {
        DestinationReply { reply: SocksReply::Succeeded, .. } => Ok(()),
        answer => Err(RelayError::Refused(answer)),
    }
}

/// Carries both directions until both have ended, or one fails. A failure at one end is passed on to the other. If the proxy
/// end has not answered yet, it has `wait` for that, while data of the program is already sent.
pub(crate) async fn copy(
    tcp_side: &mut TcpSide,
    mut send: SendStream,
    mut receive: RecvStream,
    wait: Option<Duration>,
) -> (Count, Result<(), RelayError>) {
    let mut count = Count::default();
    let outcome = tokio::select! {
        biased;
        ended = both(tcp_side, &mut send, &mut receive, &mut count, wait) => ended,
        error = tcp_side.failed() => Err(RelayError::Tcp(error)),
    };
    if outcome.is_ok() {
        tcp_side.end();
    } else {
        send.reset(RESET);
        receive.stop(RESET);
    }
    (count, outcome)
}

async fn both(
    tcp_side: &TcpSide,
    send: &mut SendStream,
    receive: &mut RecvStream,
    count: &mut Count,
    wait: Option<Duration>,
) -> Result<(), RelayError> {
    let Count { taken, given } = count;
    let give = async {
        if let Some(wait) = wait {
            answer(receive, wait).await?;
        }
        give(tcp_side, receive, given).await
    };
    tokio::try_join!(take(tcp_side, send, taken), give).map(drop)
}

/// Copies from the TCP connection to the stream.
async fn take(tcp_side: &TcpSide, send: &mut SendStream, taken: &mut u64) -> Result<(), RelayError> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = tokio::select! {
            biased;
            // The peer may stop the stream while the program sends nothing.
            stopped = send.delivered() => return Ok(stopped?),
            count = tcp_side.read(&mut piece) => count.map_err(RelayError::Tcp)?,
        };
        if count == 0 {
            break;
        }
        send.write_all(&piece[..count]).await?;
        *taken += count as u64;
    }
    send.finish()?;
    // Until then the peer can still report that the connection was reset.
    Ok(send.delivered().await?)
}

/// Copies from the stream to the TCP connection.
async fn give(tcp_side: &TcpSide, receive: &mut RecvStream, given: &mut u64) -> Result<(), RelayError> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = receive.read(&mut piece).await?;
        if count == 0 {
            break;
        }
        let mut rest = &piece[..count];
        while !rest.is_empty() {
            let written = tcp_side.try_write(rest).map_err(RelayError::Tcp)?;
            rest = &rest[written..];
            *given += written as u64;
            if !rest.is_empty() {
                room(tcp_side, receive).await?;
            }
        }
    }
    match tcp_side.shut() {
        // The program has closed both directions at once, and has received everything.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        shut => shut.map_err(RelayError::Tcp),
    }
}

/// Waits until the program takes more, or the peer has reset the stream.
async fn room(tcp_side: &TcpSide, receive: &mut RecvStream) -> Result<(), RelayError> {
    tokio::select! {
        biased;
        room = tcp_side.writable() => return room.map_err(RelayError::Tcp),
        reset = receive.until_reset() => reset?,
    }
    // Only the stream's end has not arrived yet.
    tcp_side.writable().await.map_err(RelayError::Tcp)
}
