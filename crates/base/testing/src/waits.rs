//! Waits with a timeout, which fail the test when it expires.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Default timeout of a wait: many times as long as needed on a busy machine.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// Polling interval of conditions.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A point in time by which a wait must end.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    started_at: Instant,
    within: Duration,
}

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "a test's timeout is wall-clock time")]
    pub(crate) fn new(within: Duration) -> Self {
        Self { started_at: Instant::now(), within }
    }

    /// Returns the time left, zero once the deadline has passed.
    pub(crate) fn left(self) -> Duration {
        self.within.saturating_sub(self.started_at.elapsed())
    }

    /// Fails the test if the deadline has passed.
    #[track_caller]
    pub(crate) fn check(self, event: &str) {
        assert!(!self.left().is_zero(), "not within {:?}: {event}", self.within);
    }
}

/// Polls until `condition` returns true.
///
/// # Panics
/// If that takes longer than `within`; the message names `event`, such as "the listener prints its ticket".
#[track_caller]
pub fn eventually(within: Duration, event: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::new(within);
    while !condition() {
        deadline.check(event);
        thread::sleep(POLL_INTERVAL);
    }
}

/// Joins a thread, and propagates its panic if it panicked.
///
/// # Panics
/// If the thread runs longer than `within` from now on.
#[track_caller]
pub fn join_thread<T>(within: Duration, event: &str, thread: JoinHandle<T>) -> T {
    eventually(within, event, || thread.is_finished());
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Wakes a thread that sleeps in [`block_on`].
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
///
/// # Panics
/// If that takes longer than `within`.
#[track_caller]
pub fn block_on<T>(within: Duration, event: &str, future: impl Future<Output = T>) -> T {
    let deadline = Deadline::new(within);
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        deadline.check(event);
        thread::park_timeout(deadline.left());
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn message(act: impl FnOnce()) -> String {
        *catch_unwind(AssertUnwindSafe(act)).unwrap_err().downcast::<String>().unwrap()
    }

    #[test]
    fn met_condition_ends_the_wait() {
        let mut polls = 0;
        eventually(DEFAULT_TIMEOUT, "three polls", || {
            polls += 1;
            polls == 3
        });
        assert_eq!(join_thread(DEFAULT_TIMEOUT, "a thread", thread::spawn(|| 7)), 7);
        assert_eq!(block_on(DEFAULT_TIMEOUT, "a value", ready(7)), 7);
        // Woken by another thread.
        let (sender, receiver) = channel::<Waker>();
        let other = thread::spawn(move || receiver.recv_timeout(DEFAULT_TIMEOUT).unwrap().wake());
        let mut sender = Some(sender);
        let woken = poll_fn(|context| match sender.take() {
            Some(sender) => {
                sender.send(context.waker().clone()).unwrap();
                Poll::Pending
            }
            None => Poll::Ready(()),
        });
        block_on(DEFAULT_TIMEOUT, "a wake", woken);
        join_thread(DEFAULT_TIMEOUT, "the waker", other);
    }

    #[test]
    fn timeout_message_names_the_condition() {
        assert_eq!(message(|| eventually(SHORT, "never", || false)), "not within 20ms: never");
        assert_eq!(message(|| block_on(SHORT, "no value", pending())), "not within 20ms: no value");
        let (sender, receiver) = channel::<()>();
        let stuck = thread::spawn(move || {
            let _ = receiver.recv_timeout(DEFAULT_TIMEOUT);
        });
        assert_eq!(message(|| join_thread(SHORT, "a stuck thread", stuck)), "not within 20ms: a stuck thread");
        drop(sender);
    }
}
