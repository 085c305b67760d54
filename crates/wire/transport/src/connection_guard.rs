//! Guard that keeps a connection open, held by its handles and those of its streams.

use std::sync::Arc;

use proto::closed::CloseCode;
use proto::endpoint::ConnectionHandle;

use crate::endpoint_core::Core;

/// A reference that keeps a connection open. Dropping it closes the connection.
pub(crate) struct ConnectionGuard {
    pub(crate) core: Arc<Core>,
    pub(crate) handle: ConnectionHandle,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        if let Some(connection) = state.endpoint.connection(self.handle) {
            connection.close(now, CloseCode::NONE, "");
        }
        if let Some(entry) = state.entries.get_mut(&self.handle) {
            entry.has_handle = false;
        }
        state.forget_if_over(self.handle);
        state.schedule(self.handle);
        drop(state);
        self.core.wake_thread();
    }
}
