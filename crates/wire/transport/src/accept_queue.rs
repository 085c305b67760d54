//! Accept queue: clients of any of an endpoint's threads that wait for admission.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use proto::endpoint::ConnectionHandle;
use proto::service::Service;

/// Clients that may wait to be accepted; more are refused.
const MAX_INCOMING: usize = 1_024;
/// Maximum number of recorded clients of other services; further ones are not recorded.
const MAX_ALPN_MISMATCHES: usize = 64;

/// A client that requested another service than the listener's, and was notified. It has proved nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlpnMismatch {
    /// Its address.
    pub remote: SocketAddr,
    /// The requested service; none if it is no service of this protocol.
    pub requested: Option<Service>,
}

/// A connection of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncomingConnection {
    /// The thread that serves it.
    pub(crate) thread: usize,
    pub(crate) handle: ConnectionHandle,
}

/// State shared by all threads of an endpoint. Lock order: a thread's state first, then this.
#[derive(Default, Debug)]
pub(crate) struct AcceptQueue(Mutex<PendingAccepts>);

#[derive(Default, Debug)]
struct PendingAccepts {
    /// Clients that wait for admission.
    incoming: VecDeque<IncomingConnection>,
    /// Clients that requested another service, and were notified.
    alpn_mismatches: VecDeque<AlpnMismatch>,
    acceptors: Vec<Waker>,
    is_closed: bool,
}

impl AcceptQueue {
    fn lock(&self) -> MutexGuard<'_, PendingAccepts> {
        // Nothing here panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a client for admission. Returns the wakers of pending accepts; none if there is no room for it.
    pub(crate) fn enter(&self, client: IncomingConnection) -> Option<Vec<Waker>> {
        let mut waiting = self.lock();
        let has_room = waiting.incoming.len() < MAX_INCOMING && !waiting.is_closed;
        has_room.then(|| {
            waiting.incoming.push_back(client);
            std::mem::take(&mut waiting.acceptors)
        })
    }

    /// Returns the next client that requested admission, and may have closed since; none when the endpoint is closed.
    pub(crate) fn poll_next(&self, context: &Context) -> Poll<Option<IncomingConnection>> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Poll::Ready(None);
        }
        if let Some(client) = waiting.incoming.pop_front() {
            return Poll::Ready(Some(client));
        }
        if !waiting.acceptors.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.acceptors.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Records a client that requested another service.
    pub(crate) fn note(&self, alpn_mismatch: AlpnMismatch) {
        let mut waiting = self.lock();
        if waiting.alpn_mismatches.len() < MAX_ALPN_MISMATCHES {
            waiting.alpn_mismatches.push_back(alpn_mismatch);
        }
    }

    /// Returns the next client of another service.
    pub(crate) fn next_alpn_mismatch(&self) -> Option<AlpnMismatch> {
        self.lock().alpn_mismatches.pop_front()
    }

    /// Closes the accept queue. Returns the wakers of pending accepts.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        std::mem::take(&mut waiting.acceptors)
    }
}
