//! What can be wrong with a file, and where.

use std::ops::Range;

use thiserror::Error;

/// A range of bytes in a file. Files are shorter than 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Place {
    start: u32,
    end: u32,
}

impl Place {
    /// These bytes of a file.
    pub fn new(range: Range<usize>) -> Self {
        let saturated = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: saturated(range.start), end: saturated(range.end) }
    }

    /// The bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From its first byte to the last one of another place.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }
}

/// Why a file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// A text says something wrong.
    #[error("{what}: {expected}")]
    Text {
        /// Where.
        at: Place,
        /// What is wrong, in a sentence.
        what: String,
        /// What would be accepted.
        expected: String,
    },
    /// A file of bytes says something wrong.
    #[error("byte {}: {what}: {expected}", at.range().start)]
    Bytes {
        /// Where.
        at: Place,
        /// What is wrong, in a sentence.
        what: String,
        /// What would be accepted.
        expected: String,
    },
}

impl Error {
    /// A text says something wrong.
    pub(crate) fn text(at: Place, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Text { at, what: what.into(), expected: expected.into() }
    }

    /// A file of bytes says something wrong.
    pub(crate) fn bytes(at: Place, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Bytes { at, what: what.into(), expected: expected.into() }
    }

    /// Where.
    pub fn at(&self) -> Place {
        match self {
            Self::Text { at, .. } | Self::Bytes { at, .. } => *at,
        }
    }
}
