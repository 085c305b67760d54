//! Positions by line and column, as reported by other parsers.

use crate::ByteRange;

/// Index of the line starts of a text.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Returns the byte offset of a line, from 0, and a column in characters, from 0.
    pub(crate) fn byte(&self, line: usize, column: usize) -> usize {
        let Some(&start) = self.starts.get(line) else { return self.text.len() };
        let rest = &self.text[start..];
        start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
    }

    /// Returns the range from a position to the end of its line.
    pub(crate) fn from(&self, line: usize, column: usize) -> ByteRange {
        let start = self.byte(line, column);
        let rest = &self.text[start..];
        ByteRange::new(start..start + rest.find(['\n', '\r']).unwrap_or(rest.len()))
    }
}
