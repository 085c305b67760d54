//! Where callers wait that want to be let in, whichever of an endpoint's threads they came to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use proto::endpoint::Handle;
use proto::service::Service;

/// Callers that may wait to be accepted; more are refused.
const MOST_INCOMING: usize = 1_024;
/// Callers of other services that are remembered until somebody asks; more are not.
const MOST_STRAYS: usize = 64;

/// A caller that asked a listener for another service than the one that it offers, and was told so. It has proved nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray {
    /// Where it called from.
    pub remote: SocketAddr,
    /// What it asked for; none if it is no service of this protocol.
    pub asked: Option<Service>,
}

/// A connection of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// Which of its threads has it.
    pub(crate) thread: usize,
    pub(crate) handle: Handle,
}

/// What all threads of an endpoint have in common. Whoever has the lock of a thread's state may lock this, and not the other way.
#[derive(Default, Debug)]
pub(crate) struct Lobby(Mutex<Waiting>);

#[derive(Default, Debug)]
struct Waiting {
    /// Callers that want to be let in.
    incoming: VecDeque<Caller>,
    /// Callers that asked for another service, and were told.
    strays: VecDeque<Stray>,
    acceptors: Vec<Waker>,
    is_closed: bool,
}

impl Lobby {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing here panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller wants to be let in. Gives who is to be woken for it; none if there is no room for it.
    pub(crate) fn enter(&self, caller: Caller) -> Option<Vec<Waker>> {
        let mut waiting = self.lock();
        let has_room = waiting.incoming.len() < MOST_INCOMING && !waiting.is_closed;
        has_room.then(|| {
            waiting.incoming.push_back(caller);
            std::mem::take(&mut waiting.acceptors)
        })
    }

    /// The next caller that wanted to be let in, and may have gone since; none when the endpoint is closed.
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

    /// A caller asked for another service.
    pub(crate) fn note(&self, stray: Stray) {
        let mut waiting = self.lock();
        if waiting.strays.len() < MOST_STRAYS {
            waiting.strays.push_back(stray);
        }
    }

    /// The next one of these.
    pub(crate) fn next_stray(&self) -> Option<Stray> {
        self.lock().strays.pop_front()
    }

    /// Nobody is let in any more. Gives who is to be woken.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        std::mem::take(&mut waiting.acceptors)
    }
}
