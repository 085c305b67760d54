//! Messages sent on a stream, all queued ones at a time.

use std::sync::{Condvar, Mutex};

use serde::Serialize;
use transport::{SendStream, wait};

use crate::error::Error;
use crate::message::put;
use crate::worker_pool::{WorkerPool, lock, wait_for_change};

/// Queued bytes from which on further writers wait, too.
const FULL: usize = 1 << 20;

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    ends: bool,
}

/// Messages that wait to be sent.
#[derive(Default)]
pub(crate) struct MessageWriter {
    state: Mutex<State>,
    changed: Condvar,
}

impl MessageWriter {
    /// Adds a message. Blocks while too many are queued.
    pub(crate) fn push(&self, workers: &WorkerPool, message: &impl Serialize) {
        let mut state = lock(&self.state);
        while state.bytes.len() >= FULL && !workers.is_over() {
            state = wait_for_change(&self.changed, state);
        }
        put(&mut state.bytes, message);
        self.changed.notify_all();
    }

    /// Ends the queue: no message follows.
    pub(crate) fn end(&self) {
        lock(&self.state).ends = true;
        self.changed.notify_all();
    }

    /// Sends messages until the queue ends, and waits until the peer has received them.
    pub(crate) fn run(&self, workers: &WorkerPool, mut stream: SendStream) -> Result<(), Error> {
        loop {
            let mut state = lock(&self.state);
            while state.bytes.is_empty() && !state.ends && !workers.is_over() {
                state = wait_for_change(&self.changed, state);
            }
            let bytes = std::mem::take(&mut state.bytes);
            self.changed.notify_all();
            drop(state);
            if workers.is_over() {
                return Ok(());
            }
            if bytes.is_empty() {
                stream.finish()?;
                return Ok(wait(stream.delivered())?);
            }
            wait(stream.write_all(&bytes))?;
        }
    }
}
