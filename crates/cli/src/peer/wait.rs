//! Waits on the calling thread that poll for Ctrl-C, deadlines and progress.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use transport::{Connection, Error};

use super::session_error::SessionError;
use study::Stopwatch;

/// The maximum interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum time between the end of a connection's streams and its own end.
const CLOSE_REASON_TIMEOUT: Duration = Duration::from_secs(1);

struct ParkedThread(Thread);

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread until it ends, or until `poll`, which is called after each step and every 20 ms, finds trouble.
pub(crate) fn wait_for<T>(
    future: impl Future<Output = T>,
    mut poll: impl FnMut() -> Result<(), SessionError>,
) -> Result<T, SessionError> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ParkedThread(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Ok(value);
        }
        poll()?;
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// Replaces the error of a stream by the reason with which the peer closes the connection, if that arrives soon.
pub(crate) fn with_close_reason(connection: &Connection, error: SessionError) -> SessionError {
    if !matches!(error, SessionError::Transport(Error::Read(_) | Error::Write(_))) {
        return error;
    }
    let clock = Stopwatch::start();
    let poll = || if clock.elapsed() < CLOSE_REASON_TIMEOUT { Ok(()) } else { Err(SessionError::Interrupted) };
    wait_for(connection.closed(), poll).map_or(error, |closed| SessionError::Transport(Error::Closed(closed)))
}

/// A future among others of its kind.
pub(crate) type JoinedFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SessionError>> + 'a>>;

/// All of these at a time, until the last one is done or one fails.
pub(crate) async fn all(mut parts: Vec<JoinedFuture<'_>>) -> Result<(), SessionError> {
    poll_fn(|context| {
        let mut at = 0;
        while at < parts.len() {
            match parts[at].as_mut().poll(context) {
                Poll::Ready(Ok(())) => drop(parts.swap_remove(at)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => at += 1,
            }
        }
        if parts.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// Returns a future's result; none once `is_over`, which is called at each poll, returns true.
pub(crate) async fn unless<T>(is_over: impl Fn() -> bool, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| if is_over() { Poll::Ready(None) } else { future.as_mut().poll(context).map(Some) }).await
}

/// Lets others have their turn.
pub(crate) async fn pause() {
    let mut has_paused = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn futures_alternate_and_the_first_failure_ends_all() {
        let log = Cell::new(0u64);
        let part = |name: u64, rounds: u64| -> JoinedFuture<'_> {
            let log = &log;
            Box::pin(async move {
                for _ in 0..rounds {
                    log.set(log.get() * 10 + name);
                    pause().await;
                }
                if rounds == 3 { Err(SessionError::Interrupted) } else { Ok(()) }
            })
        };
        assert!(matches!(wait_for(all(vec![part(1, 1), part(2, 2)]), || Ok(())), Ok(Ok(()))));
        assert_eq!(log.replace(0), 122);
        let ended = wait_for(all(vec![part(3, 3), part(5, 5)]), || Ok(()));
        assert!(matches!(ended, Ok(Err(SessionError::Interrupted))));
        assert_eq!(log.get(), 353_535);
    }

    #[test]
    fn endless_futures_are_abandoned() {
        let polls = Cell::new(0);
        let poll = || {
            polls.set(polls.get() + 1);
            if polls.get() == 3 { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        assert!(matches!(wait_for(std::future::pending::<()>(), poll), Err(SessionError::Interrupted)));
        let ended = wait_for(unless(|| true, std::future::pending::<()>()), || Ok(()));
        assert!(matches!(ended, Ok(None)));
    }
}
