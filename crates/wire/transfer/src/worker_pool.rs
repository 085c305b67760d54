//! The threads of a transfer: the first that fails ends all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use transport::Connection;

use crate::error::Error;

/// The interval at which waits check for the end.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of checks, over a second, whether a peer that closed the connection did so because all was complete.
const GOODBYE_LOOKS: u32 = 200;

/// Takes a lock, also after a panic elsewhere: the guarded data are consistent between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a change, [`POLL_INTERVAL`] at most.
pub(crate) fn wait_for_change<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait_timeout(guard, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0
}

/// The threads of a transfer.
pub(crate) struct WorkerPool<'a> {
    connection: &'a Connection,
    first_error: Mutex<Option<Error>>,
    is_over: AtomicBool,
    is_done: AtomicBool,
    running: Mutex<usize>,
    changed: Condvar,
}

impl<'a> WorkerPool<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            first_error: Mutex::new(None),
            is_over: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
            running: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// The connection that the transfer runs over.
    pub(crate) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// Returns whether a part failed: then nothing more is done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Records that all is on the receiver's disk, and that the peer is notified or is about to be. A close by the peer
    /// is no error from then on: its CLOSE may overtake the last acknowledgements.
    pub(crate) fn done(&self) {
        self.is_done.store(true, Ordering::Release);
    }

    /// Returns whether all is complete, or will be within a moment: messages before the close may still wait to be read
    /// by another thread.
    fn is_done_soon(&self) -> bool {
        (0..GOODBYE_LOOKS).any(|_| {
            let is_done = self.is_done.load(Ordering::Acquire);
            if !is_done {
                std::thread::sleep(POLL_INTERVAL / 10);
            }
            is_done
        })
    }

    /// Ends all parts, with the first error that was found. The connection is closed, so no part waits for the peer any
    /// more.
    pub(crate) fn fail(&self, error: Error) {
        if error.is_clean_close() && self.is_done_soon() {
            return;
        }
        let mut first_error = lock(&self.first_error);
        if first_error.is_none() {
            self.connection.close(error.code(), &error.to_peer());
            *first_error = Some(error);
            self.is_over.store(true, Ordering::Release);
        }
    }

    /// Does a part of the work on a thread of its own.
    pub(crate) fn spawn<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        part: impl FnOnce() -> Result<(), Error> + Send + 'scope,
    ) {
        self.spawn_with(scope, (), |()| part());
    }

    /// Works like [`WorkerPool::spawn`], with a value that other parts wait to see dropped: if the part fails, the end of the
    /// transfer is visible to them before the drop.
    pub(crate) fn spawn_with<'scope, 'env, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        guard: T,
        part: impl FnOnce(&T) -> Result<(), Error> + Send + 'scope,
    ) {
        *lock(&self.running) += 1;
        let work = move || {
            // Counted also if it panics.
            let _done = Done(self);
            if let Err(error) = part(&guard) {
                self.fail(error);
            }
        };
        if let Err(error) = Builder::new().name("narrows files".into()).spawn_scoped(scope, work) {
            self.on_thread_end();
            self.fail(Error::local("make", "a thread")(error));
        }
    }

    fn on_thread_end(&self) {
        *lock(&self.running) -= 1;
        self.changed.notify_all();
    }

    /// Waits until all parts are complete. `look` returns whether to continue.
    pub(crate) fn wait(&self, mut should_continue: impl FnMut() -> bool) {
        let mut running = lock(&self.running);
        while *running > 0 {
            running = wait_for_change(&self.changed, running);
            drop(running);
            if !should_continue() {
                self.fail(Error::Interrupted);
            }
            running = lock(&self.running);
        }
    }

    /// Returns the first error, if there was any.
    pub(crate) fn end(self) -> Result<(), Error> {
        self.first_error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A thread that ends.
struct Done<'a, 'b>(&'a WorkerPool<'b>);

impl Drop for Done<'_, '_> {
    fn drop(&mut self) {
        self.0.on_thread_end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};

    use laws::{Fixed, Law, PathInfo, fixed};
    use proto::identity::Trust;
    use proto::service::Service;
    use proto::settings::Settings;
    use testing::{DEFAULT_TIMEOUT, block_on};
    use transport::{Config, Endpoint};

    use super::*;

    /// A part that fails drops its end of a queue. A part that sees the queue end must also see that the transfer is over.
    #[test]
    fn guards_are_dropped_after_the_failure_is_recorded() {
        let law = |path: &PathInfo| Law::Fixed(Fixed::new(path, fixed::Params::for_path(path)));
        let config = Config::new(Settings::new(Service::named("files"), Arc::new(law))).unwrap();
        let listener = Endpoint::listen("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        std::thread::scope(|scope| {
            let accept = || block_on(DEFAULT_TIMEOUT, "a client comes", listener.accept()).unwrap().admit().unwrap();
            let admitted = scope.spawn(accept);
            let connect = client.connect(address, trust, None);
            let connection = block_on(DEFAULT_TIMEOUT, "the listener answers", connect).unwrap();
            // The first failure closes the connection: a listener that has not yet admitted the client would never receive
            // it.
            let _admitted = admitted.join().unwrap();
            for _ in 0..1_000 {
                let workers = WorkerPool::new(&connection);
                let (guard, queue) = sync_channel::<()>(1);
                std::thread::scope(|scope| {
                    workers.spawn_with(scope, guard, |_| Err(Error::Peer("fails".to_owned())));
                    assert_eq!(queue.recv_timeout(DEFAULT_TIMEOUT), Err(RecvTimeoutError::Disconnected));
                    assert!(workers.is_over());
                });
            }
        });
    }
}
