//! Accept queue: clients of any of an endpoint's threads that wait for admission.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use proto::endpoint::Handle;
use proto::service::Service;

/// Callers that may wait to be accepted; more are refused.
const MOST_INCOMING: usize = 1_024;
/// Maximum number of recorded clients of other services; further ones are not recorded.
const MOST_STRAYS: usize = 64;

/// A client that requested another service than the listener's, and was notified. It has proved nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray {
    /// Its address.
    pub remote: SocketAddr,
    /// The requested service; none if it is no service of this protocol.
    pub asked: Option<Service>,
}

/// A connection of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The thread that serves it.
    pub(crate) thread: usize,
    pub(crate) handle: Handle,
}

/// State shared by all threads of an endpoint. Lock order: a thread's state first, then this.
#[derive(Default, Debug)]
pub(crate) struct Lobby(Mutex<Waiting>);

#[derive(Default, Debug)]
struct Waiting {
    /// Clients that wait for admission.
    incoming: VecDeque<Caller>,
    /// Clients that requested another service, and were notified.
    strays: VecDeque<Stray>,
    acceptors: Vec<Waker>,
    is_closed: bool,
}

impl Lobby {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing here panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a client for admission. Returns the wakers of pending accepts; none if there is no room for it.
    pub(crate) fn enter(&self, caller: Caller) -> Option<Vec<Waker>> {
        let mut waiting = self.lock();
        let has_room = waiting.incoming.len() < MOST_INCOMING && !waiting.is_closed;
        has_room.then(|| {
            waiting.incoming.push_back(caller);
            std::mem::take(&mut waiting.acceptors)
        })
    }

    /// Returns the next client that requested admission, and may have closed since; none when the endpoint is closed.
    pub(crate) fn poll_next(&self, context: &Context) -> Poll<Option<Caller>> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Poll::Ready(None);
        }
        if let Some(caller) = waiting.incoming.pop_front() {
            return Poll::Ready(Some(caller));
        }
        if !waiting.acceptors.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.acceptors.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Records a client that requested another service.
    pub(crate) fn note(&self, stray: Stray) {
        let mut waiting = self.lock();
        if waiting.strays.len() < MOST_STRAYS {
            waiting.strays.push_back(stray);
        }
    }

    /// Returns the next client of another service.
    pub(crate) fn next_stray(&self) -> Option<Stray> {
        self.lock().strays.pop_front()
    }

    /// Closes the accept queue. Returns the wakers of pending accepts.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        std::mem::take(&mut waiting.acceptors)
    }
}
