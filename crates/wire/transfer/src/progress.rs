//! Progress of a transfer.

use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a transfer, as seen by one end.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TransferProgress {
    /// Bytes of all files that the sender found at first. The number may change.
    pub total_bytes: u64,
    /// Entries that it found at first.
    pub total_entries: u64,
    /// Bytes that were sent or received.
    pub moved_bytes: u64,
    /// Bytes that were at the receiver already, in files that are the same or in verified parts.
    pub had_bytes: u64,
    /// Entries that are complete: created, unchanged, or failed.
    pub entries: u64,
    /// Entries that failed.
    pub failed: u64,
}

/// Observer of a transfer.
pub trait ProgressObserver: Sync {
    /// Called several times a second, on the thread that began the transfer. Returns whether to continue.
    fn on_progress(&self, progress: &TransferProgress) -> bool;

    /// Reports an event for people: a file that failed and the reason. Called from any thread; characters that a
    /// terminal could take for commands are escaped.
    fn note(&self, text: &str);
}

/// The counts behind [`TransferProgress`].
#[derive(Default, Debug)]
pub(crate) struct ProgressCounters {
    pub(crate) total_bytes: AtomicU64,
    pub(crate) total_entries: AtomicU64,
    pub(crate) moved_bytes: AtomicU64,
    pub(crate) had_bytes: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) made: AtomicU64,
    pub(crate) same: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Returns the value of a count.
pub(crate) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

impl ProgressCounters {
    pub(crate) fn progress(&self) -> TransferProgress {
        TransferProgress {
            total_bytes: get(&self.total_bytes),
            total_entries: get(&self.total_entries),
            moved_bytes: get(&self.moved_bytes),
            had_bytes: get(&self.had_bytes),
            entries: get(&self.entries),
            failed: get(&self.failed),
        }
    }
}
