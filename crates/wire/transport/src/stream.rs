//! Streams, one direction each.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use proto::streams::{ReadError, ReadResult, StreamId, Streams, WriteError};

use crate::connection_guard::ConnectionGuard;
use crate::endpoint_core::{ConnectionSlot, StreamInterest};
use crate::error::Error;
use crate::wait::wait;

/// Does something with a stream, or waits for it.
fn poll_stream<T>(
    guard: &ConnectionGuard,
    stream: StreamId,
    interest: StreamInterest,
    context: &Context,
    act: impl FnOnce(&mut Streams) -> Poll<Result<T, Error>>,
) -> Poll<Result<T, Error>> {
    // Reading causes a packet only occasionally: an update of flow control.
    let needs_send = |connection: &mut proto::connection::Connection| {
        interest != StreamInterest::Read || connection.streams().is_none_or(|streams| streams.has_control())
    };
    let act = |connection: &mut proto::connection::Connection, entry: &mut ConnectionSlot, _| {
        // Data received before the end can still be read, and nothing can be written.
        let may = entry.closed.is_none() || interest == StreamInterest::Read;
        let outcome = connection.streams().filter(|_| may).map_or(Poll::Pending, act);
        match (&outcome, &entry.closed) {
            (Poll::Pending, Some(closed)) => Poll::Ready(Err(Error::Closed(closed.clone()))),
            (Poll::Pending, None) => {
                entry.register_stream_waker(stream, interest, context);
                outcome
            }
            (Poll::Ready(_), _) => outcome,
        }
    };
    guard.core.with_and(guard.handle, act, needs_send)
}

/// The sending end of a stream. When it is dropped before it is finished, the stream is reset.
pub struct SendStream {
    guard: Arc<ConnectionGuard>,
    stream: StreamId,
    is_finished: bool,
    /// The code with which it was reset here.
    was_reset: Option<u64>,
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendStream").field(&self.stream).finish()
    }
}

impl SendStream {
    pub(crate) fn new(guard: Arc<ConnectionGuard>, stream: StreamId) -> Self {
        Self { guard, stream, is_finished: false, was_reset: None }
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Writes as much as there is room for, at least a byte unless there is none to write. Returns the number of bytes.
    ///
    /// # Errors
    /// If the stream has ended, the peer has stopped it, or the connection is over.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_write(context, data)).await
    }

    pub(crate) fn poll_write(&mut self, context: &Context, data: &[u8]) -> Poll<Result<usize, Error>> {
        poll_stream(&self.guard, self.stream, StreamInterest::Write, context, |streams| {
            match streams.write(self.stream, data) {
                Ok(0) if !data.is_empty() => Poll::Pending,
                written => {
                    debug_assert!(written.as_ref().is_ok_and(|&count| count <= data.len()) || written.is_err());
                    Poll::Ready(written.map_err(Error::from))
                }
            }
        })
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// As for [`SendStream::write`].
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let count = self.write(data).await?;
            data = &data[count..];
        }
        Ok(())
    }

    /// Ends the stream after the written data. A message has ended already.
    ///
    /// # Errors
    /// If a message is not completely written, or the connection is over.
    pub fn finish(&mut self) -> Result<(), Error> {
        let outcome = self.guard.core.with(self.guard.handle, |connection, _, _| {
            let finished = connection.streams().map_or(Err(WriteError::Unknown), |streams| streams.finish(self.stream));
            Poll::Ready(finished.map_err(Error::from))
        });
        let outcome = match outcome {
            Poll::Ready(Err(Error::Write(WriteError::Finished))) | Poll::Pending => Ok(()),
            Poll::Ready(outcome) => outcome,
        };
        self.is_finished |= outcome.is_ok();
        outcome
    }

    /// Waits until the peer has everything that was written, and the end.
    ///
    /// # Errors
    /// If the peer stopped the stream, or the connection ended before.
    pub async fn delivered(&mut self) -> Result<(), Error> {
        if let Some(code) = self.was_reset {
            return Err(WriteError::Reset { code }.into());
        }
        let is_finished = &mut self.is_finished;
        poll_fn(|context| {
            self.guard.core.with(self.guard.handle, |connection, entry, _| {
                if let Some(&code) = entry.stopped.get(&self.stream) {
                    return Poll::Ready(Err(WriteError::Stopped { code }.into()));
                }
                if connection.is_delivered(self.stream) {
                    return Poll::Ready(Ok(()));
                }
                if let Some(closed) = &entry.closed {
                    return Poll::Ready(Err(Error::Closed(closed.clone())));
                }
                match connection.streams().map_or(Ok(0), |streams| streams.write(self.stream, &[])) {
                    Err(error @ (WriteError::Stopped { .. } | WriteError::Reset { .. })) => {
                        return Poll::Ready(Err(error.into()));
                    }
                    // It ends, so the peer needs no notice that it was reset.
                    Err(WriteError::Finished) => *is_finished = true,
                    _ => {}
                }
                entry.register_stream_waker(self.stream, StreamInterest::Delivery, context);
                Poll::Pending
            })
        })
        .await
    }

    /// Resets the stream. The peer receives the code, below 2^62.
    pub fn reset(&mut self, code: u64) {
        self.is_finished = true;
        self.was_reset.get_or_insert(code);
        let _ = self.guard.core.with(self.guard.handle, |connection, _, _| {
            if let Some(streams) = connection.streams() {
                // A stream that is forgotten needs no reset.
                let _ = streams.reset(self.stream, code);
            }
            Poll::Ready(Ok(()))
        });
    }

    /// Sets the priority, initially 0. Streams of higher priority send first.
    pub fn set_priority(&mut self, priority: i32) {
        let _ = self.guard.core.with(self.guard.handle, |connection, _, _| {
            if let Some(streams) = connection.streams() {
                let _ = streams.set_priority(self.stream, priority);
            }
            Poll::Ready(Ok(()))
        });
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if let Some(entry) = self.guard.core.lock().entries.get_mut(&self.guard.handle) {
            entry.stopped.remove(&self.stream);
        }
        if !self.is_finished {
            self.reset(0);
        }
    }
}

impl io::Write for SendStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(wait(SendStream::write(self, data))?)
    }

    /// Does nothing: written data is sent as soon as it is permitted.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The receiving end of a stream. When it is dropped before its end was read, the peer is asked to stop sending.
pub struct RecvStream {
    guard: Arc<ConnectionGuard>,
    stream: StreamId,
    has_ended: bool,
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.stream).finish()
    }
}

impl RecvStream {
    pub(crate) fn new(guard: Arc<ConnectionGuard>, stream: StreamId) -> Self {
        Self { guard, stream, has_ended: false }
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Returns the total length in bytes, if it is known.
    pub fn total(&self) -> Option<u64> {
        let mut state = self.guard.core.lock();
        state.endpoint.connection(self.guard.handle)?.streams()?.total(self.stream)
    }

    /// Reads received data, at least a byte; 0 at the stream's end.
    ///
    /// # Errors
    /// If the peer has reset the stream, or the connection is over.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_read(context, out)).await
    }

    pub(crate) fn poll_read(&mut self, context: &Context, out: &mut [u8]) -> Poll<Result<usize, Error>> {
        if self.has_ended || out.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let stream = self.stream;
        let read = poll_stream(&self.guard, stream, StreamInterest::Read, context, |streams| {
            match streams.read(stream, out) {
                Err(ReadError::Blocked) | Ok(ReadResult { bytes: 0, ends: false }) => Poll::Pending,
                read => Poll::Ready(read.map_err(Error::from)),
            }
        });
        read.map_ok(|read| {
            self.has_ended = read.ends;
            read.bytes
        })
    }

    /// Reads all until the stream's end, at most `max_len` bytes.
    ///
    /// # Errors
    /// As for [`RecvStream::read`], and if there are more.
    pub async fn read_to_end(&mut self, max_len: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            let count = self.read(&mut part).await?;
            if count == 0 {
                return Ok(all);
            }
            if count > max_len - all.len() {
                return Err(Error::TooLong { max_len });
            }
            all.extend_from_slice(&part[..count]);
        }
    }

    /// Waits until the peer has reset the stream, or until nothing but its end is left. Takes nothing that waits to be read.
    ///
    /// # Errors
    /// If the peer has reset the stream, or the connection is over and nothing waits to be read.
    pub async fn until_reset(&mut self) -> Result<(), Error> {
        if self.has_ended {
            return Ok(());
        }
        let stream = self.stream;
        let ended = poll_fn(|context| {
            poll_stream(&self.guard, stream, StreamInterest::Read, context, |streams| {
                match streams.read(stream, &mut []) {
                    Ok(ReadResult { ends: true, .. }) => Poll::Ready(Ok(())),
                    Err(ReadError::Blocked) | Ok(_) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error.into())),
                }
            })
        })
        .await;
        self.has_ended |= ended.is_ok();
        ended
    }

    /// Stops receiving. The peer receives the code, below 2^62.
    pub fn stop(&mut self, code: u64) {
        self.has_ended = true;
        let _ = self.guard.core.with(self.guard.handle, |connection, _, _| {
            if let Some(streams) = connection.streams() {
                // A stream with a known end needs no such frame.
                let _ = streams.stop_sending(self.stream, code);
            }
            Poll::Ready(Ok(()))
        });
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.has_ended {
            self.stop(0);
        }
    }
}

impl io::Read for RecvStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(wait(RecvStream::read(self, out))?)
    }
}
