//! Wake-up signal of the writer thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum delay until an event is on the disk.
const LATEST: Duration = Duration::from_millis(100);

/// Urgency of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// After [`LATEST`] at most.
    Soon,
    /// At once, because there is much data.
    AtOnce,
}

/// A signal that wakes the writer thread.
#[derive(Default)]
pub(crate) struct WriterWakeup {
    state: Mutex<BellState>,
    condvar: Condvar,
}

#[derive(Default)]
struct BellState {
    /// Set if there is data to write, soon or at once.
    has_data: bool,
    is_urgent: bool,
    is_over: bool,
}

impl WriterWakeup {
    fn lock(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a write.
    pub(crate) fn notify(&self, urgency: Urgency) {
        let is_many = urgency == Urgency::AtOnce;
        let mut state = self.lock();
        let was = state.has_data && (state.is_urgent || !is_many);
        state.has_data = true;
        state.is_urgent |= is_many;
        drop(state);
        if !was {
            self.condvar.notify_one();
        }
    }

    /// Ends the log: remaining data must be written at once.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.condvar.notify_one();
    }

    /// Waits until there is data to write. Returns whether the log has ended.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        while !state.has_data && !state.is_over {
            state = self.condvar.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Data that follows soon is written with it.
        let (mut state, _) = self
            .condvar
            .wait_timeout_while(state, LATEST, |state| !state.is_urgent && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        debug_assert!(state.has_data || state.is_over, "the writer wakes without a reason");
        (state.has_data, state.is_urgent) = (false, false);
        state.is_over
    }
}
