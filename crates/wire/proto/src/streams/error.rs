//! Errors of a stream: of the peer's frames, and of the application's calls.

use thiserror::Error;

/// The code of a CLOSE frame: a stream contradicts itself.
pub const STREAM: u64 = 5;

/// The code of a CLOSE frame: more bytes or streams than were allowed.
pub const FLOW: u64 = 6;

/// Protocol violation by the peer. It closes the connection with [`StreamError::code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// The peer sends on a stream on which it cannot send (RFC 9000 §19.8).
    #[error("the peer sends on stream {stream}, on which only this end sends")]
    NotTheirs {
        /// The stream.
        stream: u64,
    },
    /// The peer sends `MAX_STREAM_DATA` or `STOP_SENDING` for a stream on which only the peer sends (RFC 9000 §19.5,
    /// §19.10).
    #[error("MAX_STREAM_DATA or STOP_SENDING for stream {stream}, on which only the peer sends")]
    NotOurs {
        /// The stream.
        stream: u64,
    },
    /// The peer refers to a stream that only this end can open, and has not.
    #[error("the peer refers to stream {stream}, which this end has not opened")]
    NotOpened {
        /// The stream.
        stream: u64,
    },
    /// The peer opens more streams than were allowed (RFC 9000 §4.6).
    #[error("the peer opens stream {stream}; {allowed} streams of this kind were allowed")]
    TooManyStreams {
        /// The stream.
        stream: u64,
        /// Limit of the number of streams of its kind.
        allowed: u64,
    },
    /// The peer sends more on a stream than was allowed (RFC 9000 §4.1).
    #[error("stream {stream} goes up to byte {end}; {allowed} bytes were allowed on it")]
    TooManyStreamBytes {
        /// The stream.
        stream: u64,
        /// End offset of the sent bytes.
        end: u64,
        /// Limit of that offset.
        allowed: u64,
    },
    /// The peer sends more on all streams together than was allowed (RFC 9000 §4.1).
    #[error("stream {stream} adds {new} new bytes; {allowed} more were allowed on the connection")]
    TooManyBytes {
        /// The stream.
        stream: u64,
        /// Number of bytes by which the streams grow.
        new: u64,
        /// Number of bytes by which they may grow.
        allowed: u64,
    },
    /// Data differs from data received earlier at the same offset.
    #[error("data of stream {stream} differs from data received earlier, at offset {offset} or later")]
    Conflict {
        /// The stream.
        stream: u64,
        /// Offset of the frame that arrived last.
        offset: u64,
    },
    /// Data was received beyond the stream's end, or its end is below received data (RFC 9000 §4.5).
    #[error("stream {stream} goes up to byte {reaches}, and ends at {end}")]
    BeyondEnd {
        /// The stream.
        stream: u64,
        /// End offset of its data.
        reaches: u64,
        /// End offset of the stream.
        end: u64,
    },
    /// The stream's end or total has changed, or the two differ (RFC 9000 §4.5).
    #[error("stream {stream} ends at {now}, and before at {before}")]
    EndChanged {
        /// The stream.
        stream: u64,
        /// Earlier end offset.
        before: u64,
        /// Present end offset.
        now: u64,
    },
}

impl StreamError {
    /// Returns the code with which the connection closes: [`STREAM`] or [`FLOW`].
    pub const fn code(&self) -> u64 {
        match self {
            Self::NotTheirs { .. }
            | Self::NotOurs { .. }
            | Self::NotOpened { .. }
            | Self::Conflict { .. }
            | Self::BeyondEnd { .. }
            | Self::EndChanged { .. } => STREAM,
            Self::TooManyStreams { .. } | Self::TooManyStreamBytes { .. } | Self::TooManyBytes { .. } => FLOW,
        }
    }
}

/// Reason why an application cannot write to a stream, end it, or reset it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// The stream was never open, or only the peer sends on it, or it is delivered or reset and forgotten.
    #[error("nothing can be sent on this stream: it was never open, or is done")]
    Unknown,
    /// The stream's end was written.
    #[error("the stream's end was written before")]
    Finished,
    /// The application has reset it.
    #[error("the stream was reset, with code {code}")]
    Reset {
        /// Code of the reset.
        code: u64,
    },
    /// The peer has requested to stop it.
    #[error("the peer wants no more of this stream, with code {code}")]
    Stopped {
        /// The peer's code.
        code: u64,
    },
    /// A message would be longer than its total. Nothing was taken.
    #[error("a write of {written} bytes in total exceeds this message of {total}")]
    TooLong {
        /// Length that the message would have, in bytes.
        written: u64,
        /// Required length, in bytes.
        total: u64,
    },
    /// A message was to end before its total.
    #[error("only {written} bytes were written of this message of {total}")]
    TooShort {
        /// Present length, in bytes.
        written: u64,
        /// Required length, in bytes.
        total: u64,
    },
}

/// Reason why an application can read nothing from a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReadError {
    /// No data is available yet.
    #[error("no unread data is available on this stream")]
    Blocked,
    /// The peer has reset it. Reported once.
    #[error("the peer reset the stream, with code {code}")]
    Reset {
        /// The peer's code.
        code: u64,
    },
    /// The stream was never open, or only this end sends on it, or its end or reset was reported, or it was stopped.
    #[error("nothing can be read from this stream: it was never open, or is done")]
    Unknown,
}
