//! Memory of receive buffers, counted over all streams of an endpoint.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Capacity that the receive buffers of an endpoint keep after their bytes are read, in bytes: half of the largest window of one
/// stream. Beyond, each read gives capacity back.
const MOST_KEPT: usize = 64 << 20;

/// Capacity of all receive buffers of an endpoint, and of the endpoints that listen together with it, in bytes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    /// Returns the capacity of all receive buffers, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// Capacity of one receive buffer, counted in a [`Room`] until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Room,
    bytes: usize,
}

impl Share {
    /// Counts nothing yet.
    pub(crate) const fn new(room: Room) -> Self {
        Self { room, bytes: 0 }
    }

    /// Counts the buffer's present capacity, in bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.room.0.fetch_add(bytes - self.bytes, Relaxed);
        } else if bytes < self.bytes {
            self.room.0.fetch_sub(self.bytes - bytes, Relaxed);
        }
        self.bytes = bytes;
    }

    /// Returns whether the endpoint's receive buffers have more capacity than they may keep.
    pub(crate) fn is_crowded(&self) -> bool {
        self.room.0.load(Relaxed) > MOST_KEPT
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
