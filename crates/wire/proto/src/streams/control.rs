//! Frames of the streams besides STREAM, while they wait to be sent.

use super::id::{Direction, StreamId};

/// Maximum length in bytes of a frame that [`Streams::put_control`](super::Streams::put_control) appends.
pub const MAX_CONTROL: usize = 25;

/// A frame to be sent, with the values at the time of writing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Control {
    /// `MAX_STREAMS` of this direction.
    MaxStreams(Direction),
    /// `RESET_STREAM`.
    ResetStream(StreamId),
    /// `STOP_SENDING`.
    StopSending(StreamId),
    /// `MAX_STREAM_DATA`.
    MaxStreamData(StreamId),
    /// `MAX_DATA`. Sent after every `MAX_STREAM_DATA`: a peer must not learn of the connection's limit first.
    MaxData,
    /// BLOCKED for a stream, or for the connection.
    Blocked(Option<StreamId>),
}
