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
pub(crate) struct Bell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Default)]
struct BellState {
    /// Set if there is data to write, soon or at once.
    some: bool,
    many: bool,
    is_over: bool,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a write.
    pub(crate) fn ring(&self, urgency: Urgency) {
        let is_many = urgency == Urgency::AtOnce;
        let mut state = self.lock();
        let was = state.some && (state.many || !is_many);
        state.some = true;
        state.many |= is_many;
        drop(state);
        if !was {
            self.rung.notify_one();
        }
    }

    /// Ends the log: remaining data must be written at once.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.rung.notify_one();
    }

    /// Waits until there is data to write. Returns whether the log has ended.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        while !state.some && !state.is_over {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Data that follows soon is written with it.
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, LATEST, |state| !state.many && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        debug_assert!(state.some || state.is_over, "the writer wakes without a reason");
        (state.some, state.many) = (false, false);
        state.is_over
    }
}
