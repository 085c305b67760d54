//! Frame fields and their errors.

use flow::MAX_PACKETS;
use thiserror::Error;

use crate::narrow::to_u32;
use crate::varint::{self, Reader, Truncated};

/// The maximum number of parity packets of a block.
pub const MAX_PARITY: u8 = 16;

/// A block's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Data packets (k), at least 1.
    pub data: u8,
    /// Parity packets (m), 1 to [`MAX_PARITY`]; with `data` at most [`MAX_PACKETS`].
    pub parity: u8,
}

/// Error of a payload that cannot be read. It closes the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// The payload contains no frame.
    #[error("a packet without a frame")]
    Empty,
    /// The payload ends within a frame.
    #[error("the packet ends within a frame {frame}")]
    Truncated {
        /// The frame's name.
        frame: &'static str,
    },
    /// The frame type is unknown.
    #[error("there is no frame of type {kind:#x}")]
    Unknown {
        /// The frame type.
        kind: u64,
    },
    /// The frame type is not minimally encoded.
    #[error("the frame type {kind:#x} is not minimally encoded")]
    LongType {
        /// The frame type.
        kind: u64,
    },
    /// A field is out of range.
    #[error("`{field}` of a frame {frame} is {value}; expected {min} to {max}")]
    Range {
        /// The frame.
        frame: &'static str,
        /// Its field.
        field: &'static str,
        /// The field's value.
        value: u64,
        /// The smallest valid value.
        min: u64,
        /// The largest valid value.
        max: u64,
    },
    /// The reason is not UTF-8.
    #[error("the reason of a frame CLOSE is not UTF-8")]
    NoText,
}

/// Reads the fields of one frame.
pub(super) struct Fields<'r, 'a> {
    pub(super) reader: &'r mut Reader<'a>,
    pub(super) frame: &'static str,
}

impl<'a> Fields<'_, 'a> {
    pub(super) fn read<T>(
        &mut self,
        parse: impl FnOnce(&mut Reader<'a>) -> Result<T, Truncated>,
    ) -> Result<T, FrameError> {
        parse(self.reader).map_err(|Truncated| FrameError::Truncated { frame: self.frame })
    }

    pub(super) fn varint(&mut self) -> Result<u64, FrameError> {
        self.read(Reader::varint)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        self.read(Reader::array)
    }

    pub(super) fn within(&mut self, field: &'static str, min: u64, max: u64) -> Result<u64, FrameError> {
        let value = self.varint()?;
        if (min..=max).contains(&value) { Ok(value) } else { Err(self.out_of(field, value, min, max)) }
    }

    pub(super) fn out_of(&self, field: &'static str, value: u64, min: u64, max: u64) -> FrameError {
        FrameError::Range { frame: self.frame, field, value, min, max }
    }

    pub(super) fn path(&mut self) -> Result<u32, FrameError> {
        self.within("path", 0, u32::MAX.into()).map(to_u32)
    }

    /// Reads a stream number. The limit is one below that of varints, because BLOCKED counts streams from 1.
    pub(super) fn stream(&mut self) -> Result<u64, FrameError> {
        self.within("stream", 0, varint::MAX - 1)
    }

    /// Reads length-prefixed data that begins at `offset`.
    pub(super) fn data_from(&mut self, offset: u64) -> Result<&'a [u8], FrameError> {
        let data = self.read(Reader::length_prefixed)?;
        self.ends_in_range(offset, data)?;
        Ok(data)
    }

    pub(super) fn ends_in_range(&self, offset: u64, data: &[u8]) -> Result<u64, FrameError> {
        let end = offset + data.len() as u64;
        if end > varint::MAX {
            return Err(self.out_of("offset", offset, 0, varint::MAX - data.len() as u64));
        }
        Ok(end)
    }

    pub(super) fn shape(&mut self) -> Result<Shape, FrameError> {
        let [data, parity] = self.array()?;
        let max = MAX_PACKETS - 1;
        if !(1..=max).contains(&data) {
            return Err(self.out_of("k", data.into(), 1, max.into()));
        }
        let max = MAX_PARITY.min(MAX_PACKETS - data);
        if !(1..=max).contains(&parity) {
            return Err(self.out_of("m", parity.into(), 1, max.into()));
        }
        Ok(Shape { data, parity })
    }

    pub(super) fn place(&mut self, among: core::ops::Range<u8>) -> Result<u8, FrameError> {
        let [place] = self.array()?;
        if among.contains(&place) {
            return Ok(place);
        }
        Err(self.out_of("place", place.into(), among.start.into(), u64::from(among.end) - 1))
    }
}
