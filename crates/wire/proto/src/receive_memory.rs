//! Memory of receive buffers, counted over all streams of an endpoint.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Total capacity of an endpoint's receive buffers, unread bytes included, above which reads release capacity, in
/// bytes: half of the default `max_stream_data`.
const MAX_KEPT_CAPACITY: usize = 64 << 20;

/// Capacity of all receive buffers of an endpoint, and of the endpoints that listen together with it, in bytes.
#[derive(Clone, Default, Debug)]
pub(crate) struct ReceiveMemory(Arc<AtomicUsize>);

impl ReceiveMemory {
    /// Returns the capacity of all receive buffers, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// Capacity of one receive buffer, counted in a [`ReceiveMemory`] until this is dropped.
#[derive(Debug)]
pub(crate) struct BufferShare {
    memory: ReceiveMemory,
    bytes: usize,
}

impl BufferShare {
    /// Creates a share that counts no bytes.
    pub(crate) const fn new(memory: ReceiveMemory) -> Self {
        Self { memory, bytes: 0 }
    }

    /// Updates the counted capacity of the buffer, in bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.memory.0.fetch_add(bytes - self.bytes, Relaxed);
        } else if bytes < self.bytes {
            let before = self.memory.0.fetch_sub(self.bytes - bytes, Relaxed);
            debug_assert!(before >= self.bytes - bytes, "{before} bytes are counted");
        }
        self.bytes = bytes;
    }

    /// Returns whether the endpoint's receive buffers have more capacity than they may keep.
    pub(crate) fn is_crowded(&self) -> bool {
        self.memory.0.load(Relaxed) > MAX_KEPT_CAPACITY
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.set(0);
    }
}
