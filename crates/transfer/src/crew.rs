//! The threads of a transfer: the first that fails ends all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use transport::Connection;

use crate::error::Error;

/// Who waits looks up at least this often.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A lock that a panic elsewhere does not break: what it guards is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a change, [`LOOK`] at most.
pub(crate) fn nap<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait_timeout(guard, LOOK).unwrap_or_else(PoisonError::into_inner).0
}

/// The threads of a transfer.
pub(crate) struct Crew<'a> {
    connection: &'a Connection,
    trouble: Mutex<Option<Error>>,
    is_over: AtomicBool,
    running: Mutex<usize>,
    changed: Condvar,
}

impl<'a> Crew<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            trouble: Mutex::new(None),
            is_over: AtomicBool::new(false),
            running: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// Whether somebody failed: then nothing more is done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends all, with the first trouble that was found. The connection is closed, so nobody waits for the peer any more.
    pub(crate) fn fail(&self, error: Error) {
        let mut trouble = lock(&self.trouble);
        if trouble.is_none() {
            self.connection.close(error.code(), &error.to_peer());
            *trouble = Some(error);
            self.is_over.store(true, Ordering::Release);
        }
    }

    /// Does a part of the work on a thread of its own.
    pub(crate) fn spawn<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        part: impl FnOnce() -> Result<(), Error> + Send + 'scope,
    ) {
        *lock(&self.running) += 1;
        let work = move || {
            // Counted also if it panics.
            let _done = Done(self);
            if let Err(error) = part() {
                self.fail(error);
            }
        };
        if let Err(error) = Builder::new().name("narrows files".into()).spawn_scoped(scope, work) {
            self.left();
            self.fail(Error::local("make", "a thread")(error));
        }
    }

    fn left(&self) {
        *lock(&self.running) -= 1;
        self.changed.notify_all();
    }

    /// Waits until all parts are done. `look` says whether to go on.
    pub(crate) fn wait(&self, mut look: impl FnMut() -> bool) {
        let mut running = lock(&self.running);
        while *running > 0 {
            running = nap(&self.changed, running);
            drop(running);
            if !look() {
                self.fail(Error::Interrupted);
            }
            running = lock(&self.running);
        }
    }

    /// The first trouble, if there was any.
    pub(crate) fn end(self) -> Result<(), Error> {
        self.trouble.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A thread that ends.
struct Done<'a, 'b>(&'a Crew<'b>);

impl Drop for Done<'_, '_> {
    fn drop(&mut self) {
        self.0.left();
    }
}
