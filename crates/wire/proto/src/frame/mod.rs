//! Frames: the contents of a packet's payload. The fields are in `docs/src/transport.md`, "Frames".
//!
//! A frame is read completely or not at all, and then each of its fields is in range. Consistency between frames (a
//! stream's total, numbers that were never sent) is checked by the owner of the connection's state.

use alloc::vec::Vec;

use flow::Range;

use self::ack::{ACK, ACK_TIMES};
use self::fields::Fields;
use crate::narrow::to_usize;
use crate::varint::{self, Reader, Truncated};
use crate::{ConnectionId, TOKEN_LEN};

mod ack;
mod fields;

pub use ack::{Ack, AckContent, MAX_NS};
pub use fields::{FrameError, MAX_PARITY, Shape};

/// The longest reason of a [`Frame::Close`], in bytes.
pub const MAX_REASON: usize = 256;

/// One frame. Numbers are at most [`varint::MAX`] unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Padding bytes, at least 1.
    Padding(usize),
    /// Requests an acknowledgement.
    Ping,
    /// Packets received on a path.
    Ack(Ack<'a>),
    /// Part of the handshake.
    Crypto {
        /// Offset of the data. Offset plus length is at most [`varint::MAX`].
        offset: u64,
        /// Handshake data.
        data: &'a [u8],
    },
    /// The connection ends.
    Close {
        /// Error code.
        code: u64,
        /// The type of the frame that caused it; 0 if none.
        kind: u64,
        /// Reason as text; at most [`MAX_REASON`] bytes.
        reason: &'a str,
    },
    /// The listener admits the client.
    Done,
    /// Requests a response with this value on the same path.
    PathChallenge([u8; 8]),
    /// The value of a challenge.
    PathResponse([u8; 8]),
    /// An ID for a path.
    PathId {
        /// The path's number.
        path: u32,
        /// The ID.
        id: ConnectionId,
        /// Stateless reset token of this ID.
        token: [u8; TOKEN_LEN],
    },
    /// A path is not used any more.
    PathRetire {
        /// The path's number.
        path: u32,
        /// Error code.
        reason: u64,
    },
    /// The client proves that it holds a ticket.
    Auth {
        /// Ticket ID.
        ticket: [u8; 8],
        /// The proof.
        proof: [u8; 32],
    },
    /// Bytes that may be sent on all streams together.
    MaxData(u64),
    /// Bytes that may be sent on a stream.
    MaxStreamData {
        /// The stream.
        stream: u64,
        /// The limit in bytes.
        bytes: u64,
    },
    /// Streams that may be opened.
    MaxStreams {
        /// Set for unidirectional streams, not bidirectional ones.
        one_way: bool,
        /// The limit; at most 2^32.
        count: u64,
    },
    /// Data is blocked by flow control.
    Blocked {
        /// The blocked stream; none if the connection is blocked.
        stream: Option<u64>,
        /// The limit that was reached, in bytes.
        at: u64,
    },
    /// Abrupt end of a stream.
    ResetStream {
        /// The stream.
        stream: u64,
        /// Application error code.
        code: u64,
        /// Bytes that count as sent on the stream.
        total: u64,
    },
    /// Request to stop sending on a stream.
    StopSending {
        /// The stream.
        stream: u64,
        /// Application error code.
        code: u64,
    },
    /// Part of a stream.
    Stream(StreamFrame<'a>),
    /// A datagram.
    Datagram(&'a [u8]),
    /// Start of a block's symbol, which consists of all following frames in the packet.
    Source {
        /// The block.
        block: u64,
        /// The block's packets.
        shape: Shape,
        /// Index among the block's data packets.
        place: u8,
    },
    /// A block's parity.
    Parity {
        /// The block.
        block: u64,
        /// The block's packets.
        shape: Shape,
        /// Index among the block's packets: the first parity packet follows the last data packet.
        place: u8,
        /// The symbol.
        symbol: &'a [u8],
    },
    /// Request for missing packets of a block.
    BlockNack {
        /// The block.
        block: u64,
        /// A bit for each of its packets that is missing.
        missing: u64,
    },
    /// Blocks that are complete.
    BlockWhole {
        /// The first of them.
        first: u64,
        /// Number of blocks, at least 1. The number of the last block is at most [`varint::MAX`].
        count: u64,
    },
}

/// Part of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamFrame<'a> {
    /// The stream.
    pub stream: u64,
    /// Offset of the data.
    pub offset: u64,
    /// Total length of the stream in bytes, if known; at least the end of this part.
    pub total: Option<u64>,
    /// Set if the stream ends with this part.
    pub ends: bool,
    /// Set if the frame has a length field. Without one, it is the last frame of the packet.
    pub counted: bool,
    /// Stream data. It ends at or before [`varint::MAX`].
    pub data: &'a [u8],
}

const STREAM: u64 = 0x20;
const ENDS: u64 = 1;
const COUNTED: u64 = 2;
const TOTAL: u64 = 4;

/// The frames of a payload, in order. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    begun: bool,
}

impl<'a> Frames<'a> {
    /// Reads the frames of this payload.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload), begun: false }
    }

    /// Returns the unread bytes. After a [`Frame::Source`], this is the symbol.
    pub const fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = !core::mem::replace(&mut self.begun, true);
        if self.reader.is_empty() {
            return first.then_some(Err(FrameError::Empty));
        }
        let frame = Frame::read(&mut self.reader);
        if frame.is_err() {
            self.reader.take_rest();
        }
        Some(frame)
    }
}

impl<'a> Frame<'a> {
    /// Returns whether the frame is ack-eliciting. A packet of padding is not, but is in flight.
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::Close { .. })
    }

    /// Returns whether the frame is allowed in packets of the handshake.
    pub const fn is_of_handshake(&self) -> bool {
        matches!(self, Self::Padding(_) | Self::Ping | Self::Ack(_) | Self::Crypto { .. } | Self::Close { .. })
    }

    /// Reads the next frame of a payload that is not empty.
    fn read(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        let before = reader.rest().len();
        let kind = reader.varint().map_err(|Truncated| FrameError::Truncated { frame: "type" })?;
        if before - reader.rest().len() > varint::len(kind) {
            return Err(FrameError::LongType { kind });
        }
        let frame = name(kind).ok_or(FrameError::Unknown { kind })?;
        let mut fields = Fields { reader, frame };
        let fields = &mut fields;
        Ok(match kind {
            0x00 => {
                let more = fields.reader.rest().iter().take_while(|&&byte| byte == 0).count();
                fields.read(|reader| reader.bytes(more))?;
                Self::Padding(1 + more)
            }
            0x01 => Self::Ping,
            ACK | ACK_TIMES => Self::Ack(Ack::read(fields, kind)?),
            0x06 => {
                let offset = fields.varint()?;
                Self::Crypto { offset, data: fields.data_from(offset)? }
            }
            0x08 => {
                let (code, kind) = (fields.varint()?, fields.varint()?);
                let len = fields.within("reason", 0, MAX_REASON as u64)?;
                let reason = fields.read(|reader| reader.bytes(to_usize(len)))?;
                Self::Close { code, kind, reason: str::from_utf8(reason).map_err(|_| FrameError::NoText)? }
            }
            0x09 => Self::Done,
            0x0a => Self::PathChallenge(fields.array()?),
            0x0b => Self::PathResponse(fields.array()?),
            0x0c => Self::PathId { path: fields.path()?, id: fields.array()?, token: fields.array()? },
            0x0d => Self::PathRetire { path: fields.path()?, reason: fields.varint()? },
            0x0e => Self::Auth { ticket: fields.array()?, proof: fields.array()? },
            0x10 => Self::MaxData(fields.varint()?),
            0x11 => Self::MaxStreamData { stream: fields.stream()?, bytes: fields.varint()? },
            0x12 | 0x13 => Self::MaxStreams { one_way: kind == 0x13, count: fields.within("count", 0, 1 << 32)? },
            0x14 => Self::Blocked { stream: fields.varint()?.checked_sub(1), at: fields.varint()? },
            0x15 => Self::ResetStream { stream: fields.stream()?, code: fields.varint()?, total: fields.varint()? },
            0x16 => Self::StopSending { stream: fields.stream()?, code: fields.varint()? },
            0x20..=0x27 => Self::Stream(StreamFrame::read(fields, kind)?),
            0x30 => Self::Datagram(fields.reader.take_rest()),
            0x38 => {
                let (block, shape) = (fields.varint()?, fields.shape()?);
                Self::Source { block, shape, place: fields.place(0..shape.data)? }
            }
            0x39 => {
                let (block, shape) = (fields.varint()?, fields.shape()?);
                let place = fields.place(shape.data..shape.data + shape.parity)?;
                Self::Parity { block, shape, place, symbol: fields.reader.take_rest() }
            }
            0x3a => Self::BlockNack { block: fields.varint()?, missing: u64::from_be_bytes(fields.array()?) },
            _ => {
                let first = fields.varint()?;
                Self::BlockWhole { first, count: fields.within("count", 1, varint::MAX - first + 1)? }
            }
        })
    }

    /// Appends the frame. A frame that extends to the packet's end must be its last one.
    pub fn put(&self, out: &mut Vec<u8>) {
        let numbers = |out: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|&value| varint::put(out, value));
        match *self {
            Self::Padding(count) => out.resize(out.len() + count, 0),
            Self::Ping => out.push(0x01),
            Self::Ack(ack) => {
                let (ranges, times): (Vec<Range>, Vec<_>) = (ack.ranges().collect(), ack.received().collect());
                let Ack { path, delay, ecn, .. } = ack;
                Ack::put(out, &AckContent { path, delay, ranges: &ranges, ecn, times: &times });
            }
            Self::Crypto { offset, data } => {
                numbers(out, &[0x06, offset, data.len() as u64]);
                out.extend(data);
            }
            Self::Close { code, kind, reason } => {
                debug_assert!(reason.len() <= MAX_REASON);
                numbers(out, &[0x08, code, kind, reason.len() as u64]);
                out.extend(reason.as_bytes());
            }
            Self::Done => out.push(0x09),
            Self::PathChallenge(value) => put_bytes(out, 0x0a, &[&value]),
            Self::PathResponse(value) => put_bytes(out, 0x0b, &[&value]),
            Self::PathId { path, id, token } => {
                numbers(out, &[0x0c, path.into()]);
                out.extend(id);
                out.extend(token);
            }
            Self::PathRetire { path, reason } => numbers(out, &[0x0d, path.into(), reason]),
            Self::Auth { ticket, proof } => put_bytes(out, 0x0e, &[&ticket, &proof]),
            Self::MaxData(bytes) => numbers(out, &[0x10, bytes]),
            Self::MaxStreamData { stream, bytes } => numbers(out, &[0x11, stream, bytes]),
            Self::MaxStreams { one_way, count } => numbers(out, &[0x12 + u64::from(one_way), count]),
            Self::Blocked { stream, at } => numbers(out, &[0x14, stream.map_or(0, |stream| stream + 1), at]),
            Self::ResetStream { stream, code, total } => numbers(out, &[0x15, stream, code, total]),
            Self::StopSending { stream, code } => numbers(out, &[0x16, stream, code]),
            Self::Stream(stream) => stream.put(out),
            Self::Datagram(data) => put_bytes(out, 0x30, &[data]),
            Self::Source { block, shape, place } => {
                numbers(out, &[0x38, block]);
                out.extend([shape.data, shape.parity, place]);
            }
            Self::Parity { block, shape, place, symbol } => {
                numbers(out, &[0x39, block]);
                out.extend([shape.data, shape.parity, place]);
                out.extend(symbol);
            }
            Self::BlockNack { block, missing } => {
                numbers(out, &[0x3a, block]);
                out.extend(missing.to_be_bytes());
            }
            Self::BlockWhole { first, count } => numbers(out, &[0x3b, first, count]),
        }
    }
}

impl<'a> StreamFrame<'a> {
    fn read(fields: &mut Fields<'_, 'a>, kind: u64) -> Result<Self, FrameError> {
        let stream = fields.stream()?;
        let offset = fields.varint()?;
        let total = if kind & TOTAL != 0 { Some(fields.varint()?) } else { None };
        let counted = kind & COUNTED != 0;
        let data = if counted { fields.read(Reader::length_prefixed)? } else { fields.reader.take_rest() };
        let end = fields.ends_in_range(offset, data)?;
        match total {
            Some(total) if total < end => Err(fields.out_of("total", total, end, varint::MAX)),
            _ => Ok(Self { stream, offset, total, ends: kind & ENDS != 0, counted, data }),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.put_head(self.data.len(), out);
        out.extend(self.data);
    }

    /// Appends the head of the frame, which precedes `len` bytes of data.
    pub(crate) fn put_head(&self, len: usize, out: &mut Vec<u8>) {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        varint::put(
            out,
            STREAM | flag(self.ends, ENDS) | flag(self.counted, COUNTED) | flag(self.total.is_some(), TOTAL),
        );
        varint::put(out, self.stream);
        varint::put(out, self.offset);
        if let Some(total) = self.total {
            varint::put(out, total);
        }
        if self.counted {
            varint::put(out, len as u64);
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, kind: u64, parts: &[&[u8]]) {
    varint::put(out, kind);
    for part in parts {
        out.extend(*part);
    }
}

/// Returns the name of a frame type; none if the type is unknown.
fn name(kind: u64) -> Option<&'static str> {
    let at = NAMES.partition_point(|&(first, _)| first <= kind);
    let (first, name) = *NAMES[..at].last()?;
    (kind == first || name == "STREAM" && kind <= STREAM | 7).then_some(name)
}

/// Types and names, in order; STREAM has eight types.
const NAMES: &[(u64, &str)] = &[
    (0x00, "PADDING"),
    (0x01, "PING"),
    (ACK, "ACK"),
    (ACK_TIMES, "ACK"),
    (0x06, "CRYPTO"),
    (0x08, "CLOSE"),
    (0x09, "DONE"),
    (0x0a, "PATH_CHALLENGE"),
    (0x0b, "PATH_RESPONSE"),
    (0x0c, "PATH_ID"),
    (0x0d, "PATH_RETIRE"),
    (0x0e, "AUTH"),
    (0x10, "MAX_DATA"),
    (0x11, "MAX_STREAM_DATA"),
    (0x12, "MAX_STREAMS"),
    (0x13, "MAX_STREAMS"),
    (0x14, "BLOCKED"),
    (0x15, "RESET_STREAM"),
    (0x16, "STOP_SENDING"),
    (STREAM, "STREAM"),
    (0x30, "DATAGRAM"),
    (0x38, "SOURCE"),
    (0x39, "PARITY"),
    (0x3a, "BLOCK_NACK"),
    (0x3b, "BLOCK_WHOLE"),
];

#[cfg(test)]
mod tests;
