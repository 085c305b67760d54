//! Transfers between two named ends, as in lists, flow records and captures.

use crate::ByteRange;

/// One transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Start time, in nanoseconds since the first transfer of the file.
    pub start_ns: u64,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Position in the file.
    pub at: ByteRange,
}

/// The transfers of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Transfers {
    /// Transfers in order of their start.
    pub list: Vec<Transfer>,
    /// Descriptions of omitted contents.
    pub left_out: Vec<String>,
}

impl Transfers {
    /// Sorts transfers by their start and converts times relative to the first one.
    pub(crate) fn since_the_first(mut list: Vec<(i128, Transfer)>, left_out: Vec<String>) -> Self {
        // Of the same start in the order of the file.
        list.sort_by_key(|(start, _)| *start);
        let first = list.first().map_or(0, |(start, _)| *start);
        let since = |(start, transfer): (i128, Transfer)| Transfer {
            start_ns: u64::try_from(start - first).unwrap_or(u64::MAX),
            ..transfer
        };
        Self { list: list.into_iter().map(since).collect(), left_out }
    }
}
