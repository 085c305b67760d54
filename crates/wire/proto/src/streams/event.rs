//! What the application should hear.

use super::id::{Direction, StreamId};

/// Something happened. Each kind waits at most once for each stream, and a stream is remembered until its events are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// [`Streams::accept`](super::Streams::accept) gives streams, until it gives none.
    Opened,
    /// A call of [`Streams::open`](super::Streams::open) for this direction was refused and will not be now.
    MoreStreams(Direction),
    /// There are bytes to read, or the end is.
    Readable(StreamId),
    /// A write was cut short, and an eighth of the buffer is free now.
    Writable(StreamId),
    /// The peer has acknowledged everything that was written, and the end.
    Delivered(StreamId),
    /// The peer has reset the stream. Reading says it, too, and then forgets the stream.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why, in the peer's words.
        code: u64,
    },
    /// The peer wants no more of the stream. It was reset with the same code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// Why, in the peer's words.
        code: u64,
    },
}
