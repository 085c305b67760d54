//! Guard that keeps a connection open, held by its handles and those of its streams.

use std::sync::Arc;

use proto::closed::Code;
use proto::endpoint::Handle;

use crate::shared::Core;

/// A reference that keeps a connection open. Dropping it closes the connection.
pub(crate) struct Held {
    pub(crate) core: Arc<Core>,
    pub(crate) handle: Handle,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        if let Some(connection) = state.endpoint.connection(self.handle) {
            connection.close(now, Code::NONE, "");
        }
        if let Some(entry) = state.entries.get_mut(&self.handle) {
            entry.is_held = false;
        }
        state.tidy(self.handle);
        state.touch(self.handle);
        drop(state);
        self.core.ring();
    }
}
