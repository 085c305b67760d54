//! Traffic in other programs' files: from the structures of `formats` to flows between hosts.
//!
//! Two users share this code: `import` makes a scenario of such files, and `[[traffic]]` with `kind = "import"` makes a
//! run's flows of them. A file is read first, which determines the number of hosts that its ranks need; then these are
//! placed on a network.

mod host_names;
mod schedule;
mod transfers;

use units::{Bytes, Span};

use crate::config::{FlowEvent, HostRef, Placement};
use crate::error::{SourceSpan, SpannedError};
use crate::kind::FileKind;
use crate::quantity::{LARGEST, write_bytes};
pub(crate) use host_names::HostNames;
pub(crate) use schedule::{GOAL, MSCCL, SIMAI, chakra, goal, groups, msccl, simai};
pub use transfers::TrafficFormat;
pub(crate) use transfers::transfers;
#[cfg(test)]
pub(crate) use transfers::{PLAIN, RECORDS};

/// A trace of a link's rate in Mahimahi's format.
pub(crate) const TRACE: FileKind = FileKind {
    name: "a trace in Mahimahi's format",
    expected: "expected lines of whole numbers, times in milliseconds",
    matches: |file| !file.first().is_empty() && file.first().bytes().all(|byte| byte.is_ascii_digit()),
};

/// A file of another program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign<'a> {
    /// Its name, for messages.
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    /// Its number among the sources, where errors can show a line of it.
    pub(crate) source: Option<u32>,
}

impl<'a> Foreign<'a> {
    /// The file as text.
    fn text(&self) -> Result<&'a str, SpannedError> {
        std::str::from_utf8(self.bytes).map_err(|_| {
            let reason = files::utf8(self.bytes.to_vec()).err().unwrap_or_default();
            SpannedError::new(SourceSpan::NOWHERE, format!("cannot read `{}`: {reason}", self.name))
        })
    }

    /// Converts a parser's error.
    pub(crate) fn error(&self, error: formats::Error) -> SpannedError {
        match error {
            formats::Error::Text { at, problem, expected } => {
                SpannedError::new(SourceSpan::new(self.source, at.range()), problem).label(expected)
            }
            formats::Error::Bytes { at, problem, expected } => {
                SpannedError::new(SourceSpan::NOWHERE, format!("`{}`, byte {}: {problem}", self.name, at.range().start))
                    .help(expected)
            }
        }
    }
}

/// A flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForeignFlow {
    /// Start time; with `after`, the earliest start time.
    pub(crate) start: Option<Span>,
    pub(crate) src: HostRef,
    pub(crate) dst: HostRef,
    /// Size; none: more than its links carry until the stop.
    pub(crate) bytes: Option<u64>,
    /// Events for which it waits.
    pub(crate) after: Vec<FlowEvent>,
}

/// Origin of the network that traffic is placed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NetworkSource {
    /// The user's.
    Given,
    /// Made for the traffic.
    Made,
}

/// Traffic that was read and is on no hosts yet.
pub(crate) struct ForeignTraffic {
    /// Source of the traffic, in words.
    pub(crate) from: &'static str,
    contents: Unplaced,
    /// Assumptions, and parts that were left out.
    pub(crate) notes: Vec<String>,
}

enum Unplaced {
    Messages(schedule::BuiltSchedule),
    Transfers(transfers::ParsedTransfers),
}

impl ForeignTraffic {
    /// Returns the number of hosts that it needs.
    pub(crate) fn hosts(&self) -> usize {
        match &self.contents {
            Unplaced::Messages(built) => built.ranks,
            Unplaced::Transfers(sent) => transfers::ends(&sent.list).len(),
        }
    }

    /// Returns the latest time at which the last flow begins, as far as it is known.
    pub(crate) fn last(&self) -> Span {
        match &self.contents {
            Unplaced::Messages(built) => built.computes,
            Unplaced::Transfers(sent) => sent.list.iter().map(|sent| sent.start).max().unwrap_or(Span::ZERO),
        }
    }

    /// Returns the flows on hosts of a network, and all notes. Names in the file are looked up in a given network.
    pub(crate) fn on(
        self,
        host_names: &HostNames,
        network: NetworkSource,
        placement: Placement,
    ) -> Result<(Vec<ForeignFlow>, Vec<String>), SpannedError> {
        let mut notes = self.notes;
        let listed = match self.contents {
            Unplaced::Messages(built) => built.on(host_names, placement, &mut notes)?,
            Unplaced::Transfers(sent) => transfers::on(&sent, host_names, network, placement, &mut notes)?,
        };
        Ok((listed, notes))
    }
}

/// A flow's size: as much as files hold, and as many packets as are counted.
pub(crate) fn flow_size(bytes: u64, payload: u32, origin: SourceSpan) -> Result<u64, SpannedError> {
    let max = LARGEST.min(u64::from(payload) * u64::from(u32::MAX));
    if (1..=max).contains(&bytes) {
        return Ok(bytes);
    }
    let max = write_bytes(Bytes::new(max));
    Err(SpannedError::new(origin, format!("a flow of {bytes} B")).label(format!("expected 1 B to {max}")))
}
