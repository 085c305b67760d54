//! Transfers between two ends that have names, as lists, flow records and captures have them.

use crate::Place;

/// One transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// When it starts, in nanoseconds since the first one of the file.
    pub start_ns: u64,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// How much.
    pub bytes: u64,
    /// Where it stands in the file.
    pub at: Place,
}

/// The transfers of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Transfers {
    /// By their start.
    pub list: Vec<Transfer>,
    /// What the file has and this does not, in words.
    pub left_out: Vec<String>,
}

impl Transfers {
    /// Sorts transfers by their start and counts from the first one. `started` has the same length.
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
