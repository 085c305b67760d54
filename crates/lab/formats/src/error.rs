//! Errors in a file, and their positions.

use std::ops::Range;

use thiserror::Error;

/// A range of bytes in a file. Files are shorter than 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ByteRange {
    start: u32,
    end: u32,
}

impl ByteRange {
    /// Creates a range from these bytes of a file.
    pub fn new(range: Range<usize>) -> Self {
        let saturated = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: saturated(range.start), end: saturated(range.end) }
    }

    /// Returns the byte range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the range from its first byte to the last one of another range.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }
}

/// Error of a file that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// An invalid text file.
    #[error("{problem}: {expected}")]
    Text {
        /// Position in the file.
        at: ByteRange,
        /// Description of the error, as a sentence.
        problem: String,
        /// Description of the accepted input.
        expected: String,
    },
    /// An invalid binary file.
    #[error("byte {}: {problem}: {expected}", at.range().start)]
    Bytes {
        /// Position in the file.
        at: ByteRange,
        /// Description of the error, as a sentence.
        problem: String,
        /// Description of the accepted input.
        expected: String,
    },
}

impl Error {
    /// Returns an error in a text file.
    pub(crate) fn text(at: ByteRange, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Text { at, problem: problem.into(), expected: expected.into() }
    }

    /// Returns an error in a binary file.
    pub(crate) fn bytes(at: ByteRange, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Bytes { at, problem: problem.into(), expected: expected.into() }
    }

    /// Returns its position in the file.
    pub fn at(&self) -> ByteRange {
        match self {
            Self::Text { at, .. } | Self::Bytes { at, .. } => *at,
        }
    }
}

#[cfg(test)]
impl Error {
    /// `LINE:COLUMN` of an error in `text`.
    pub(crate) fn line_and_column(&self, text: &str) -> String {
        assert!(matches!(self, Self::Text { .. }), "{self}");
        let before = &text[..self.at().range().start];
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("{}:{column}", before.matches('\n').count() + 1)
    }

    /// The part of an invalid binary file that an error names.
    pub(crate) fn byte_range(&self) -> Range<usize> {
        assert!(matches!(self, Self::Bytes { .. }), "{self}");
        self.at().range()
    }
}
