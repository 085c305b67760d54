//! Frames in qlog's form, without their contents: no data, no proof, no token.

use proto::closed::CloseCode;
use proto::frame::{Frame, Frames};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::sequence::ms;

/// The frames of a payload.
pub(crate) struct FrameList<'a>(pub(crate) &'a [u8]);

impl Serialize for FrameList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        // A frame that cannot be read ends the list, and the connection.
        for frame in Frames::new(self.0).map_while(Result::ok) {
            list.serialize_element(&QlogFrame::of(&frame))?;
        }
        list.end()
    }
}

/// Lowercase hexadecimal digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One frame. Frames that QUIC does not have get the prefix `narrows:`.
#[derive(serde::Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum QlogFrame<'a> {
    Padding {
        payload_length: usize,
    },
    Ping,
    Ack {
        path_id: u32,
        ack_delay: f64,
        acked_ranges: Ranges<'a>,
        ect0: u64,
        ect1: u64,
        ce: u64,
    },
    Crypto {
        offset: u64,
        length: usize,
    },
    ConnectionClose {
        error_space: &'static str,
        error_code: u64,
        trigger_frame_type: u64,
        reason: String,
    },
    HandshakeDone,
    PathChallenge {
        data: Hex<'a>,
    },
    PathResponse {
        data: Hex<'a>,
    },
    #[serde(rename = "narrows:path_id")]
    PathId {
        path_id: u32,
        connection_id: Hex<'a>,
    },
    #[serde(rename = "narrows:path_retire")]
    PathRetire {
        path_id: u32,
        reason: u64,
    },
    #[serde(rename = "narrows:auth")]
    Auth,
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        stream_id: u64,
        maximum: u64,
    },
    MaxStreams {
        stream_type: &'static str,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        stream_id: u64,
        limit: u64,
    },
    ResetStream {
        stream_id: u64,
        error_code: u64,
        final_size: u64,
    },
    StopSending {
        stream_id: u64,
        error_code: u64,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        length: usize,
        fin: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    Datagram {
        length: usize,
    },
    #[serde(rename = "narrows:source")]
    Source {
        block: u64,
        data: u8,
        parity: u8,
        place: u8,
    },
    #[serde(rename = "narrows:parity")]
    Parity {
        block: u64,
        data: u8,
        parity: u8,
        place: u8,
        length: usize,
    },
    #[serde(rename = "narrows:block_nack")]
    BlockNack {
        block: u64,
        missing: SetBits,
    },
    #[serde(rename = "narrows:block_whole")]
    BlockWhole {
        first: u64,
        count: u64,
    },
}

/// The ranges of an acknowledgement.
struct Ranges<'a>(&'a proto::frame::Ack<'a>);

impl Serialize for Ranges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.ranges().map(|range| [range.first, range.last]))
    }
}

/// The places of a block that have a bit.
pub(crate) struct SetBits(pub(crate) u64);

impl Serialize for SetBits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..64u8).filter(|place| self.0 >> place & 1 == 1))
    }
}

impl<'a> QlogFrame<'a> {
    fn of(frame: &'a Frame<'a>) -> Self {
        match frame {
            Frame::Padding(count) => Self::Padding { payload_length: *count },
            Frame::Ping => Self::Ping,
            Frame::Ack(ack) => Self::Ack {
                path_id: ack.path,
                ack_delay: ms(ack.delay),
                acked_ranges: Ranges(ack),
                ect0: ack.ecn.ect0,
                ect1: ack.ecn.ect1,
                ce: ack.ecn.ce,
            },
            Frame::Crypto { offset, data } => Self::Crypto { offset: *offset, length: data.len() },
            Frame::Close { code, kind, reason } => Self::ConnectionClose {
                error_space: if *code < CloseCode::APPLICATION.0 { "transport" } else { "application" },
                error_code: *code,
                trigger_frame_type: *kind,
                reason: reason.escape_default().to_string(),
            },
            Frame::Done => Self::HandshakeDone,
            Frame::PathChallenge(value) => Self::PathChallenge { data: Hex(value) },
            Frame::PathResponse(value) => Self::PathResponse { data: Hex(value) },
            Frame::PathId { path, id, .. } => Self::PathId { path_id: *path, connection_id: Hex(id) },
            Frame::PathRetire { path, reason } => Self::PathRetire { path_id: *path, reason: *reason },
            Frame::Auth { .. } => Self::Auth,
            Frame::MaxData(bytes) => Self::MaxData { maximum: *bytes },
            Frame::MaxStreamData { stream, bytes } => Self::MaxStreamData { stream_id: *stream, maximum: *bytes },
            Frame::MaxStreams { one_way, count } => Self::MaxStreams {
                stream_type: if *one_way { "unidirectional" } else { "bidirectional" },
                maximum: *count,
            },
            Frame::Blocked { stream: None, at } => Self::DataBlocked { limit: *at },
            Frame::Blocked { stream: Some(stream), at } => Self::StreamDataBlocked { stream_id: *stream, limit: *at },
            Frame::ResetStream { stream, code, total } => {
                Self::ResetStream { stream_id: *stream, error_code: *code, final_size: *total }
            }
            Frame::StopSending { stream, code } => Self::StopSending { stream_id: *stream, error_code: *code },
            Frame::Stream(stream) => Self::Stream {
                stream_id: stream.stream,
                offset: stream.offset,
                length: stream.data.len(),
                fin: stream.ends,
                total: stream.total,
            },
            Frame::Datagram(data) => Self::Datagram { length: data.len() },
            Frame::Source { block, shape, place } => {
                Self::Source { block: *block, data: shape.data, parity: shape.parity, place: *place }
            }
            Frame::Parity { block, shape, place, symbol } => Self::Parity {
                block: *block,
                data: shape.data,
                parity: shape.parity,
                place: *place,
                length: symbol.len(),
            },
            Frame::BlockNack { block, missing } => Self::BlockNack { block: *block, missing: SetBits(*missing) },
            Frame::BlockWhole { first, count } => Self::BlockWhole { first: *first, count: *count },
        }
    }
}
