//! What wakes the thread that writes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What happens is on the disk after so long, or sooner.
const LATEST: Duration = Duration::from_millis(100);

/// Wakes the thread that writes.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Default)]
struct BellState {
    /// Whether something is to be written, soon or at once.
    some: bool,
    many: bool,
    is_over: bool,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is to be written: soon, or at once if it is much.
    pub(crate) fn ring(&self, is_many: bool) {
        let mut state = self.lock();
        let was = state.some && (state.many || !is_many);
        state.some = true;
        state.many |= is_many;
        drop(state);
        if !was {
            self.rung.notify_one();
        }
    }

    /// Nothing follows: what there is is to be written at once.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.rung.notify_one();
    }

    /// Waits until something is to be written. Gives whether all is over.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        while !state.some && !state.is_over {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // What follows soon is written with it.
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, LATEST, |state| !state.many && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        (state.some, state.many) = (false, false);
        state.is_over
    }
}
