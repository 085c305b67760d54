//! Traffic of other programs as flows: plain CSV, flow records of nfdump, captures.
//!
//! Senders and receivers have a name or an address. If all of them are hosts of the network, those hosts are used. If
//! some are hosts by their names, the others are mistakes. Otherwise they are placed on hosts in the order of their
//! first appearance.

use std::collections::BTreeMap;

use formats::counted;
use formats::flows::{FlowColumns, FlowList, QuotedFlow};
use formats::graph::Quoted;
use formats::transfers::{Transfer, Transfers};
use units::{Bytes, Span};

use super::{Foreign, ForeignFlow, ForeignTraffic, HostNames, NetworkSource, Unplaced, flow_size};
use crate::config::{HostRef, PAYLOAD, Placement};
use crate::decode::Field;
use crate::error::{SourceSpan, SpannedError};
use crate::kind::FileKind;
use crate::quantity::MAX_SPAN;
use crate::tree::{Node, Value, printable};

/// Flows as plain CSV.
pub(crate) const PLAIN: FileKind = FileKind {
    name: "a list of flows",
    expected: "expected the header start,src,dst,bytes",
    matches: |file| {
        names_columns(file.first(), &["start", "time", "from", "source", "src", "to", "target", "dst", "bytes"])
    },
};

/// Flow records as CSV.
pub(crate) const RECORDS: FileKind = FileKind {
    name: "nfdump's CSV",
    expected: "expected a header such as ts,te,td,sa,da,... or firstSeen,duration,proto,srcAddr,...",
    matches: |file| {
        names_columns(file.first(), &["ts", "sa", "da", "ibyt", "firstseen", "srcaddr", "dstaddr", "bytes"])
    },
};

/// Returns whether a header names at least two of these columns.
fn names_columns(first: &str, known: &[&str]) -> bool {
    let cells = first.split([',', ';', '\t']).map(|cell| cell.trim().trim_matches('"').to_ascii_lowercase());
    cells.filter(|cell| known.contains(&cell.split('_').next().unwrap_or_default())).count() >= 2
}

/// Format of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrafficFormat {
    /// CSV: `start,src,dst,bytes`.
    Flows,
    /// nfdump's CSV.
    Netflow,
    /// A capture, pcap or pcapng.
    Capture,
}

impl TrafficFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Flows => "a list of flows",
            Self::Netflow => "flow records",
            Self::Capture => "a capture",
        }
    }

    /// Returns the kind of its text; none for bytes.
    pub(crate) fn kind(self) -> Option<FileKind> {
        match self {
            Self::Flows => Some(PLAIN),
            Self::Netflow => Some(RECORDS),
            Self::Capture => None,
        }
    }
}

/// A transfer with its values read.
pub(super) struct ParsedTransfer {
    pub(super) start: Span,
    from: TransferEnd,
    to: TransferEnd,
    bytes: u64,
    /// Position of its size.
    bytes_at: SourceSpan,
}

/// Sender or receiver of a transfer.
struct TransferEnd {
    name: String,
    /// Its position.
    origin: SourceSpan,
}

/// Transfers of a file.
pub(super) struct ParsedTransfers {
    pub(super) list: Vec<ParsedTransfer>,
    /// Columns of the file, where errors name them.
    columns: Option<FlowColumns>,
}

impl ParsedTransfers {
    /// Adds the column of the sizes to an error.
    fn in_bytes(&self, error: SpannedError) -> SpannedError {
        match &self.columns {
            Some(columns) => error.in_column(&columns.bytes),
            None => error,
        }
    }
}

/// Reads traffic.
pub(crate) fn transfers(file: Foreign<'_>, format: TrafficFormat) -> Result<ForeignTraffic, SpannedError> {
    let mut notes = Vec::new();
    let error = |error| file.error(error);
    let sent = match format {
        TrafficFormat::Flows => plain(formats::flows::read(file.text()?).map_err(error)?, file.source)?,
        TrafficFormat::Netflow => dated(formats::netflow::read(file.text()?).map_err(error)?, file.source, &mut notes),
        TrafficFormat::Capture => dated(formats::capture::read(file.bytes).map_err(error)?, None, &mut notes),
    };
    if sent.list.is_empty() {
        let message = format!("`{}` has no transfer", file.name);
        return Err(SpannedError::new(SourceSpan::NOWHERE, message).help("expected at least one with some bytes"));
    }
    if format != TrafficFormat::Flows {
        notes.push("each flow sends all its bytes as fast as its law lets it, from its first byte on: its own pauses and its duration are left out".into());
    }
    Ok(ForeignTraffic { from: format.name(), contents: Unplaced::Transfers(sent), notes })
}

/// The flows on hosts of a network.
pub(super) fn on(
    sent: &ParsedTransfers,
    host_names: &HostNames,
    network: NetworkSource,
    placement: Placement,
    notes: &mut Vec<String>,
) -> Result<Vec<ForeignFlow>, SpannedError> {
    let hosts = hosts(sent, host_names, network, placement, notes)?;
    let listed = |transfer: &ParsedTransfer| {
        let [src, dst] = [&transfer.from, &transfer.to].map(|end| hosts[end.name.as_str()].clone());
        let bytes = flow_size(transfer.bytes, PAYLOAD.get().into(), transfer.bytes_at);
        let bytes = bytes.map_err(|error| sent.in_bytes(error))?;
        Ok(ForeignFlow { start: Some(transfer.start), src, dst, bytes: Some(bytes), after: Vec::new() })
    };
    sent.list.iter().map(listed).collect()
}

/// Reads the values of plain CSV flows, which have units.
fn plain(file: FlowList, source: Option<u32>) -> Result<ParsedTransfers, SpannedError> {
    let FlowList { columns, flows } = file;
    let origin = |cell: &Quoted| SourceSpan::new(source, cell.at.range());
    let node = |cell: &Quoted| Node { value: Value::string(&cell.text), origin: origin(cell) };
    let end = |cell: Quoted, column: &str| {
        let origin = origin(&cell);
        let name = printable(cell.text, origin).map_err(|error| error.in_column(column))?;
        Ok(TransferEnd { name, origin })
    };
    let read = |flow: QuotedFlow| {
        let QuotedFlow { start, from, to, bytes } = flow;
        if from.text == to.text {
            return Err(SpannedError::new(origin(&to), format!("`{}` sends to itself", from.text))
                .label(format!("expected another host than in column `{}`", columns.from))
                .in_column(&columns.to));
        }
        let bare = start.text.parse::<f64>().is_ok();
        let start = Span::decode(&node(&start)).map_err(|error| {
            let help = "give a unit, as in 100us, or name the column start_us, start_s, ...";
            if bare { error.help(help) } else { error }.in_column(&columns.start)
        })?;
        let size = Bytes::decode(&node(&bytes)).map_err(|error| error.in_column(&columns.bytes))?;
        let (from, to) = (end(from, &columns.from)?, end(to, &columns.to)?);
        Ok(ParsedTransfer { start, from, to, bytes: size.get(), bytes_at: origin(&bytes) })
    };
    let list = flows.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(ParsedTransfers { list, columns: Some(columns) })
}

/// Transfers that have a date, counted from the first.
fn dated(transfers: Transfers, source: Option<u32>, notes: &mut Vec<String>) -> ParsedTransfers {
    for item in &transfers.left_out {
        notes.push(format!("left out: {item}"));
    }
    let longest = MAX_SPAN.unsigned_ps() / 1_000;
    let all = transfers.list.len();
    let parsed = |transfer: Transfer| {
        let origin = SourceSpan::new(source, transfer.at.range());
        ParsedTransfer {
            start: Span::from_ns(i64::try_from(transfer.start_ns).unwrap_or(i64::MAX)),
            from: TransferEnd { name: transfer.from, origin },
            to: TransferEnd { name: transfer.to, origin },
            bytes: transfer.bytes,
            bytes_at: origin,
        }
    };
    let kept: Vec<ParsedTransfer> =
        transfers.list.into_iter().filter(|transfer| transfer.start_ns < longest).map(parsed).collect();
    if kept.len() < all {
        notes.push(format!("left out: {}", counted(all - kept.len(), "transfer over 10^6 s after the first")));
    }
    ParsedTransfers { list: kept, columns: None }
}

/// Returns the senders and receivers in the order of their first appearance.
pub(super) fn ends(sent: &[ParsedTransfer]) -> Vec<&str> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ends = Vec::new();
    for end in sent.iter().flat_map(|sent| [sent.from.name.as_str(), sent.to.name.as_str()]) {
        known.entry(end).or_insert_with(|| {
            ends.push(end);
            ends.len()
        });
    }
    ends
}

/// The host of each of them.
fn hosts<'a>(
    sent: &'a ParsedTransfers,
    host_names: &HostNames,
    network: NetworkSource,
    placement: Placement,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<&'a str, HostRef>, SpannedError> {
    let ends = ends(&sent.list);
    // Names and numbers of hosts mean those hosts, if the network is the user's.
    let names: BTreeMap<&str, u32> =
        (0..).zip(&host_names.hosts).map(|(number, name)| (name.as_str(), number)).collect();
    let number = |end: &str| end.parse::<u32>().ok().filter(|&number| (number as usize) < host_names.hosts.len());
    let host =
        |end: &&'a str| names.get(*end).copied().or_else(|| number(end)).map(|number| (*end, HostRef::Index(number)));
    let is_given = network == NetworkSource::Given;
    if is_given && let Some(found) = ends.iter().map(host).collect::<Option<BTreeMap<&str, HostRef>>>() {
        return Ok(found);
    }
    if is_given
        && let Some(named) = ends.iter().find(|end| names.contains_key(*end))
        && let Some(unknown) = ends.iter().find(|end| host(end).is_none())
        && let Some(transfer) = sent.list.iter().find(|it| it.from.name == *unknown || it.to.name == *unknown)
    {
        let message = format!("`{unknown}` is no host of {}, and `{named}` is one", host_names.network_name);
        let is_sender = transfer.from.name == *unknown;
        let end = if is_sender { &transfer.from } else { &transfer.to };
        let error = SpannedError::new(end.origin, message)
            .label("expected names of its hosts everywhere, or nowhere")
            .suggest(unknown, names.keys().copied());
        let column = sent.columns.as_ref().map(|columns| if is_sender { &columns.from } else { &columns.to });
        return Err(match column {
            Some(column) => error.in_column(column),
            None => error,
        });
    }
    let assigned = host_names.assign(ends.len(), "senders and receivers", placement)?;
    let shown = |(end, host): (&&str, &HostRef)| match host {
        HostRef::Index(number) => format!("{end} on {}", host_names.hosts[*number as usize]),
        HostRef::Name(name) => format!("{end} on {name}"),
    };
    let examples: Vec<String> = ends.iter().zip(&assigned).take(8).map(shown).collect();
    let more = if ends.len() > 8 { format!(" and {} more", ends.len() - 8) } else { String::new() };
    notes.push(format!(
        "hosts in the order of appearance, placement {}: {}{more}",
        placement.name(),
        examples.join(", ")
    ));
    Ok(ends.iter().copied().zip(assigned).collect())
}
