//! Connections: streams, messages and datagrams to one peer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use flow::ChannelStats;
use proto::blocks::CodingStats;
use proto::closed::{CloseCode, Closed};
use proto::connection::{DatagramError, LawStats, Liveness, PathStats, PeerIdentity};
use proto::endpoint::ConnectionHandle;
use proto::identity::Fingerprint;

use proto::secret::Secret;
use proto::streams::{Direction, StreamId, Streams};
use units::Time;

use crate::connection_guard::ConnectionGuard;
use crate::endpoint_core::{ConnectionSlot, Core};
use crate::error::Error;
use crate::stream::{RecvStream, SendStream};

/// A connection. It is closed when its last copy, and the last copy of its streams, is dropped.
#[derive(Clone)]
pub struct Connection {
    guard: Arc<ConnectionGuard>,
}

/// Both directions of a stream. A one-way stream has one of them.
#[derive(Debug)]
pub struct BothStreams {
    /// The sending side; none if only the peer sends.
    pub send: Option<SendStream>,
    /// The receiving side.
    pub receive: RecvStream,
}

/// A client that requests admission. When it is dropped, it is refused.
pub struct Incoming {
    connection: Option<Connection>,
}

impl Incoming {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection: Some(connection) }
    }

    /// Returns the identity that it claims.
    pub fn claim(&self) -> Option<PeerIdentity> {
        let guard = &self.connection.as_ref()?.guard;
        guard.core.lock().entries.get(&guard.handle)?.claim
    }

    /// Returns whether it has proved possession of this secret.
    pub fn proves(&self, secret: &Secret) -> bool {
        self.connection.as_ref().is_some_and(|connection| {
            let guard = &connection.guard;
            guard.core.lock().endpoint.connection(guard.handle).is_some_and(|it| it.proves(secret))
        })
    }

    /// Admits the client.
    ///
    /// # Errors
    /// If it has closed the connection.
    pub fn admit(mut self) -> Result<Connection, Error> {
        let Some(connection) = self.connection.take() else { return Err(Error::Endpoint) };
        let guard = &connection.guard;
        let admitted = guard.core.with(guard.handle, |it, entry, now| {
            it.admit(now);
            entry.is_admitted = true;
            Poll::Ready(Ok(()))
        });
        match admitted {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(connection),
        }
    }

    /// Refuses it, without a reason.
    pub fn refuse(self) {
        drop(self);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            let guard = &connection.guard;
            let _ = guard.core.with(guard.handle, |it, _, now| {
                it.refuse(now);
                Poll::Ready(Ok(()))
            });
        }
    }
}

impl Connection {
    pub(crate) fn new(core: Arc<Core>, handle: ConnectionHandle) -> Self {
        Self { guard: Arc::new(ConnectionGuard { core, handle }) }
    }

    /// Waits until `act` returns a value, or the connection is over.
    async fn until<T>(
        &self,
        mut act: impl FnMut(&mut proto::connection::Connection, &mut ConnectionSlot, Time) -> Option<T>,
    ) -> Result<T, Error> {
        poll_fn(|context: &mut Context| {
            self.guard.core.with(self.guard.handle, |connection, entry, now| {
                if let Some(value) = act(connection, entry, now) {
                    return Poll::Ready(Ok(value));
                }
                if let Some(closed) = &entry.closed {
                    return Poll::Ready(Err(Error::Closed(closed.clone())));
                }
                entry.wait(context);
                Poll::Pending
            })
        })
        .await
    }

    pub(crate) async fn connected(&self) -> Result<(), Error> {
        self.until(|_, entry, _| (entry.is_connected && entry.closed.is_none()).then_some(())).await
    }

    /// Waits until the listener has admitted this client.
    ///
    /// # Errors
    /// If it has refused it, or the connection is over.
    pub async fn admitted(&self) -> Result<(), Error> {
        self.until(|_, entry, _| (entry.is_admitted && entry.closed.is_none()).then_some(())).await
    }

    async fn open_with(&self, open: impl Fn(&mut Streams) -> Option<StreamId>) -> Result<StreamId, Error> {
        self.until(|connection, entry, _| if entry.closed.is_some() { None } else { open(connection.streams()?) }).await
    }

    /// Opens a stream in both directions, as soon as the peer allows one more.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open(&self) -> Result<(SendStream, RecvStream), Error> {
        let stream = self.open_with(|streams| streams.open(Direction::Both)).await?;
        Ok((SendStream::new(self.guard.clone(), stream), RecvStream::new(self.guard.clone(), stream)))
    }

    /// Opens a stream on which this end alone sends.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_one_way(&self) -> Result<SendStream, Error> {
        let stream = self.open_with(|streams| streams.open(Direction::OneWay)).await?;
        Ok(SendStream::new(self.guard.clone(), stream))
    }

    /// Opens a message of `total` bytes, below 2^62. It ends by itself when they are written.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_message(&self, total: u64) -> Result<SendStream, Error> {
        let stream = self.open_with(|streams| streams.open_message(total)).await?;
        Ok(SendStream::new(self.guard.clone(), stream))
    }

    /// The next stream that the peer opens.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn accept_stream(&self) -> Result<BothStreams, Error> {
        let stream = self.until(|connection, _, _| connection.streams()?.accept()).await?;
        let send = (!stream.is_one_way()).then(|| SendStream::new(self.guard.clone(), stream));
        Ok(BothStreams { send, receive: RecvStream::new(self.guard.clone(), stream) })
    }

    /// Sends a datagram, once.
    ///
    /// # Errors
    /// If it is too long, or too many wait.
    pub fn send_datagram(&self, datagram: &[u8]) -> Result<(), DatagramError> {
        let mut outcome = Err(DatagramError::TooLong { len: datagram.len(), max_len: 0 });
        let _ = self.guard.core.with(self.guard.handle, |connection, _, _| {
            outcome = connection.send_datagram(datagram);
            Poll::Ready(Ok(()))
        });
        outcome
    }

    /// The next datagram that the peer sent.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn receive_datagram(&self) -> Result<Vec<u8>, Error> {
        self.until(|_, entry, _| entry.next_datagram()).await
    }

    /// Waits until the connection is over. Returns the reason.
    pub async fn closed(&self) -> Closed {
        match self.until(|_, entry, _| entry.closed.clone()).await {
            Ok(closed) | Err(Error::Closed(closed)) => closed,
            Err(_) => Closed::TimedOut,
        }
    }

    /// Closes it. Undelivered data may never be delivered.
    pub fn close(&self, code: CloseCode, reason: &str) {
        let _ = self.guard.core.with(self.guard.handle, |connection, _, now| {
            connection.close(now, code, reason);
            Poll::Ready(Ok(()))
        });
    }

    /// Checks whether the peer is alive, within two probe timeouts of the slowest path, each at least 200 ms
    /// ([`proto::connection::Connection::probe`]).
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn probe(&self) -> Result<Liveness, Error> {
        let guard = &self.guard;
        let _ = guard.core.with(guard.handle, |connection, entry, now| {
            entry.liveness = None;
            connection.probe(now);
            Poll::Ready(Ok(()))
        });
        self.until(|_, entry, _| entry.liveness.filter(|_| entry.closed.is_none())).await
    }

    /// Derives the secret by which the client of this connection may reconnect when its ticket is used, from that ticket's secret;
    /// both ends derive the same. None if the connection is forgotten.
    pub fn resumption(&self, ticket: &Secret) -> Option<Secret> {
        self.guard.core.lock().endpoint.connection(self.guard.handle)?.resumption(ticket)
    }

    /// Returns the identity that the peer has proved.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.guard.core.lock().endpoint.connection(self.guard.handle)?.peer()
    }

    /// Returns the number of the endpoint's thread that serves it, counted from 0.
    pub fn thread(&self) -> usize {
        self.guard.core.lock().thread
    }

    /// Returns the number of bytes that were written to a stream and wait for acknowledgement.
    pub fn unacked(&self, stream: StreamId) -> u64 {
        let mut state = self.guard.core.lock();
        let streams = state.endpoint.connection(self.guard.handle).and_then(|connection| connection.streams());
        streams.map_or(0, |streams| streams.unacked(stream))
    }

    /// Announces the number of bytes that the application will still write, on all streams together, or, as initially,
    /// that it is unknown. Each write is subtracted. Laws then receive the remaining bytes (`Ack::bytes_remaining`). Before the
    /// connection is admitted ([`Connection::admitted`]) the announcement has no effect.
    pub fn announce(&self, bytes: Option<u64>) {
        self.with_streams(|streams| streams.announce(bytes));
    }

    /// Withdraws bytes announced by [`Connection::announce`] that will not be written.
    pub fn withdraw(&self, bytes: u64) {
        self.with_streams(|streams| streams.withdraw(bytes));
    }

    fn with_streams(&self, change: impl FnOnce(&mut Streams)) {
        let mut state = self.guard.core.lock();
        if let Some(streams) = state.endpoint.connection(self.guard.handle).and_then(|it| it.streams()) {
            change(streams);
        }
    }

    /// Returns the counters of sent and lost packets so far, on all paths.
    pub fn stats(&self) -> ChannelStats {
        let mut state = self.guard.core.lock();
        state.endpoint.connection(self.guard.handle).map_or_else(ChannelStats::default, |it| it.stats())
    }

    /// Returns the statistics of coding.
    pub fn coding(&self) -> CodingStats {
        let mut state = self.guard.core.lock();
        state.endpoint.connection(self.guard.handle).map_or_else(CodingStats::default, |it| it.coding())
    }

    /// Returns the state, limits and actions of its laws.
    pub fn laws(&self) -> LawStats {
        let mut state = self.guard.core.lock();
        state.endpoint.connection(self.guard.handle).map_or_else(LawStats::default, |it| it.laws())
    }

    /// Returns the statistics of each of its paths.
    pub fn paths(&self) -> Vec<PathStats> {
        let mut state = self.guard.core.lock();
        state.endpoint.connection(self.guard.handle).map_or_else(Vec::new, |it| it.paths().collect())
    }
}
