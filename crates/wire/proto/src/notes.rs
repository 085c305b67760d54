//! What happened inside of something that knows nobody who watches.

use alloc::vec::Vec;
use core::mem;

/// What happened inside of something that knows no observer, until it is told; nothing if nobody watches.
#[derive(Debug)]
pub(crate) struct Notes<T>(Option<Vec<T>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Notes<T> {
    /// Somebody watches from now on.
    pub(crate) fn begin(&mut self) {
        self.0 = Some(Vec::new());
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, what: impl FnOnce() -> T) {
        if let Some(notes) = &mut self.0 {
            notes.push(what());
        }
    }

    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.as_mut().map_or_else(Vec::new, mem::take)
    }
}
