//! Event buffer for components without an observer.

use alloc::vec::Vec;
use core::mem;

/// Events of a component without an observer, until they are reported; none if the connection is not observed.
#[derive(Debug)]
pub(crate) struct EventBuffer<T>(Option<Vec<T>>);

impl<T> Default for EventBuffer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> EventBuffer<T> {
    /// Starts recording events.
    pub(crate) fn enable(&mut self) {
        self.0 = Some(Vec::new());
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, event: impl FnOnce() -> T) {
        if let Some(events) = &mut self.0 {
            events.push(event());
        }
    }

    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.as_mut().map_or_else(Vec::new, mem::take)
    }
}
