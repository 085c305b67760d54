//! What can be wrong with a stream: with what the peer sends on it, and with what the application wants.

use thiserror::Error;

/// The code of a CLOSE frame: a stream contradicts itself.
pub const STREAM: u64 = 5;

/// The code of a CLOSE frame: more bytes or streams than were allowed.
pub const FLOW: u64 = 6;

/// What a peer did wrong. It closes the connection with [`StreamError::code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// It sends on a stream on which it cannot send (RFC 9000 §19.8).
    #[error("the peer sends on stream {stream}, on which only this end sends")]
    NotTheirs {
        /// The stream.
        stream: u64,
    },
    /// It answers on a stream on which it sends alone (RFC 9000 §19.5, §19.10).
    #[error("the peer wants to steer what this end sends on stream {stream}, on which only the peer sends")]
    NotOurs {
        /// The stream.
        stream: u64,
    },
    /// It names a stream that only this end can open, and has not.
    #[error("the peer names stream {stream}, which this end has not opened")]
    NotOpened {
        /// The stream.
        stream: u64,
    },
    /// It opens more streams than were allowed (RFC 9000 §4.6).
    #[error("the peer opens stream {stream}; {allowed} streams of this kind were allowed")]
    TooManyStreams {
        /// The stream.
        stream: u64,
        /// How many of its kind.
        allowed: u64,
    },
    /// It sends more on a stream than was allowed (RFC 9000 §4.1).
    #[error("stream {stream} goes up to byte {end}; {allowed} bytes were allowed on it")]
    TooManyStreamBytes {
        /// The stream.
        stream: u64,
        /// Where what it sent ends.
        end: u64,
        /// Where it had to end.
        allowed: u64,
    },
    /// It sends more on all streams together than was allowed (RFC 9000 §4.1).
    #[error("stream {stream} brings {new} new bytes; {allowed} more were allowed on the connection")]
    TooManyBytes {
        /// The stream.
        stream: u64,
        /// By how many bytes the streams grow.
        new: u64,
        /// By how many they could.
        allowed: u64,
    },
    /// Different bytes came for one place.
    #[error("other bytes of stream {stream} came before for the same place, at {offset} or later")]
    Conflict {
        /// The stream.
        stream: u64,
        /// Where the piece that came last begins.
        offset: u64,
    },
    /// Bytes came beyond the stream's end, or its end lies before bytes that came (RFC 9000 §4.5).
    #[error("stream {stream} goes up to byte {reaches}, and ends at {end}")]
    BeyondEnd {
        /// The stream.
        stream: u64,
        /// Where its bytes end.
        reaches: u64,
        /// Where the stream ends.
        end: u64,
    },
    /// Its end or total has changed, or the two differ (RFC 9000 §4.5).
    #[error("stream {stream} ends at {now}, and before at {before}")]
    EndChanged {
        /// The stream.
        stream: u64,
        /// Where it was to end before.
        before: u64,
        /// Where it is to end now.
        now: u64,
    },
}

impl StreamError {
    /// The code with which the connection closes: [`STREAM`] or [`FLOW`].
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

/// Why an application cannot write to a stream, end it, or reset it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// There is no such stream, or only the peer sends on it, or it is delivered or reset and forgotten.
    #[error("nothing can be sent on this stream: it was never open, or is done")]
    Unknown,
    /// Its end was written.
    #[error("the stream's end was written before")]
    Finished,
    /// The application has reset it.
    #[error("the stream was reset, with code {code}")]
    Reset {
        /// Why.
        code: u64,
    },
    /// The peer wants no more of it.
    #[error("the peer wants no more of this stream, with code {code}")]
    Stopped {
        /// Why, in the peer's words.
        code: u64,
    },
    /// A message would be longer than its total. Nothing was taken.
    #[error("{written} bytes were to be in this message of {total}")]
    TooLong {
        /// How long it would be.
        written: u64,
        /// How long it must be.
        total: u64,
    },
    /// A message was to end before its total.
    #[error("only {written} bytes were written of this message of {total}")]
    TooShort {
        /// How long it is.
        written: u64,
        /// How long it must be.
        total: u64,
    },
}

/// Why an application gets nothing from a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReadError {
    /// More will come.
    #[error("nothing of this stream has come that was not read")]
    Blocked,
    /// The peer has reset it. This is said once.
    #[error("the peer reset the stream, with code {code}")]
    Reset {
        /// Why, in the peer's words.
        code: u64,
    },
    /// There is no such stream, or only this end sends on it, or its end or reset was told, or it was stopped.
    #[error("nothing can be read from this stream: it was never open, or is done")]
    Unknown,
}
