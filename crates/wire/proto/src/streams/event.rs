//! Stream events for the application.

use super::id::{Direction, StreamId};

/// Event of the streams. At most one of each kind waits for each stream, and a stream is not forgotten until its events
/// are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// [`Streams::accept`](super::Streams::accept) returns streams, until it returns none.
    Opened,
    /// A call of [`Streams::open`](super::Streams::open) for this direction was refused, and would now succeed.
    MoreStreams(Direction),
    /// Data can be read, or the end of the stream.
    Readable(StreamId),
    /// A write was cut short, and an eighth of the buffer is free now.
    Writable(StreamId),
    /// The peer has acknowledged everything that was written, and the end.
    Delivered(StreamId),
    /// The peer has reset the stream. Reading reports it, too, and then forgets the stream.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// The peer has requested to stop the stream. It was reset with the same code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
}
