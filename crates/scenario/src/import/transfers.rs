//! Traffic of other programs as flows: plain CSV, flow records of nfdump, captures.
//!
//! Who sends and who receives has a name or an address. Where all of them are hosts of the network, they are those. Else
//! they are on hosts in the order in which they first come.

use std::collections::BTreeMap;

use formats::Place;
use formats::flows::Flow;
use formats::transfers::Transfers;
use units::{Bytes, Span};

use super::stage::Stage;
use super::{Base, Imported, Listed, Placement, fault, flow_size, list};
use crate::Error;
use crate::config::{HostRef, PAYLOAD};
use crate::decode::Field;
use crate::error::{Fault, Origin, Sources};
use crate::kind::Kind;
use crate::quantity::LONGEST;
use crate::tree::{Node, Value};

/// Flows as plain CSV.
pub(crate) const PLAIN: Kind = Kind {
    name: "a list of flows",
    expected: "expected the header start,from,to,bytes",
    fits: |file| {
        names_columns(file.first(), &["start", "time", "from", "source", "src", "to", "target", "dst", "bytes"])
    },
};

/// Flow records as CSV.
pub(crate) const RECORDS: Kind = Kind {
    name: "nfdump's CSV",
    expected: "expected a header such as ts,te,td,sa,da,... or firstSeen,duration,proto,srcAddr,...",
    fits: |file| names_columns(file.first(), &["ts", "sa", "da", "ibyt", "firstseen", "srcaddr", "dstaddr", "bytes"]),
};

/// Whether a header names at least two of these columns.
fn names_columns(first: &str, known: &[&str]) -> bool {
    let cells = first.split([',', ';', '\t']).map(|cell| cell.trim().trim_matches('"').to_ascii_lowercase());
    cells.filter(|cell| known.contains(&cell.split('_').next().unwrap_or_default())).count() >= 2
}

/// What format traffic is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrafficFormat {
    /// CSV: `start,from,to,bytes`.
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
}

/// Names that an import of traffic needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrafficNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The traffic's file, for messages.
    pub traffic: &'a str,
}

/// A transfer with its values read.
struct Sent {
    start: Span,
    from: String,
    to: String,
    bytes: u64,
    origin: Origin,
}

/// Makes a scenario from traffic: on the network of `base`, or on two datacenters that are large enough.
///
/// # Errors
/// When the file is malformed, has no transfer, or has more senders and receivers than the network has hosts.
pub fn import_traffic(
    file: &[u8],
    format: TrafficFormat,
    base: Option<&Base<'_>>,
    placement: Placement,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let mut notes = Vec::new();
    let sent = match format {
        TrafficFormat::Flows | TrafficFormat::Netflow => {
            let text = std::str::from_utf8(file);
            let text =
                text.map_err(|_| Error::Unreadable(format!("cannot read `{}`: it is not UTF-8 text", names.traffic)))?;
            let kind = if format == TrafficFormat::Flows { PLAIN } else { RECORDS };
            let source = sources.add_file(names.traffic, text, kind);
            let read = if format == TrafficFormat::Flows {
                formats::flows::read(text)
                    .map_err(|error| fault(error, source, names.traffic))
                    .and_then(|flows| plain(flows, source))
            } else {
                let read = formats::netflow::read(text).map_err(|error| fault(error, source, names.traffic));
                read.map(|read| dated(read, source, &mut notes))
            };
            read.map_err(|fault| sources.explain(fault))?
        }
        TrafficFormat::Capture => {
            let read = formats::capture::read(file).map_err(|error| fault(error, u32::MAX, names.traffic));
            dated(read.map_err(|fault| sources.explain(fault))?, u32::MAX, &mut notes)
        }
    };
    let explain = |fault| sources.explain(fault);
    if sent.is_empty() {
        let message = format!("`{}` has no transfer", names.traffic);
        return Err(explain(Fault::new(Origin::NOWHERE, message).help("expected at least one with some bytes")));
    }
    let ends = ends(&sent);
    let stage = Stage::new(base, ends.len(), &mut notes)?;
    let hosts = hosts(&ends, &stage, base.is_some(), placement, &mut notes).map_err(explain)?;
    if format != TrafficFormat::Flows {
        notes.push("each flow sends all its bytes as fast as its law lets it, from its first byte on: its own pauses and its duration are left out".into());
    }
    let last = sent.iter().map(|sent| sent.start).max().unwrap_or(Span::ZERO);
    let listed = sent.iter().map(|sent| {
        let [src, dst] = [&sent.from, &sent.to].map(|end| hosts[end.as_str()].clone());
        let bytes = flow_size(sent.bytes, PAYLOAD.get().into(), sent.origin)?;
        Ok(Listed { start: Some(sent.start), src, dst, bytes, after: Vec::new() })
    });
    let listed = listed.collect::<Result<Vec<Listed>, Fault>>().map_err(explain)?;
    let title = format!("imported from {}: {}", format.name(), names.traffic);
    stage.with_traffic((names.scenario, &title), list(&listed, names.scenario), last, notes).map_err(explain)
}

/// The flows of plain CSV, whose values have units.
fn plain(flows: Vec<Flow>, source: u32) -> Result<Vec<Sent>, Fault> {
    let read = |flow: Flow| {
        let node = |text: &str, at: Place| Node { value: Value::string(text), origin: Origin::new(source, at.range()) };
        let origin = Origin::new(source, flow.at.range());
        if flow.from == flow.to {
            return Err(
                Fault::new(origin, format!("`{}` sends to itself", flow.from)).label("expected two different hosts")
            );
        }
        let start = Span::decode(&node(&flow.start.text, flow.start.at)).map_err(|fault| {
            let bare = flow.start.text.parse::<f64>().is_ok();
            if bare { fault.help("give a unit, as in 100us, or name the column start_us, start_s, ...") } else { fault }
        })?;
        let bytes = match flow.bytes.text.parse::<u64>() {
            Ok(bytes) => bytes,
            Err(_) => Bytes::decode(&node(&flow.bytes.text, flow.bytes.at))?.get(),
        };
        Ok(Sent { start, from: flow.from, to: flow.to, bytes, origin })
    };
    flows.into_iter().map(read).collect()
}

/// Transfers that have a date, counted from the first.
fn dated(transfers: Transfers, source: u32, notes: &mut Vec<String>) -> Vec<Sent> {
    for what in &transfers.left_out {
        notes.push(format!("left out: {what}"));
    }
    let longest = LONGEST.unsigned_ps() / 1_000;
    let all = transfers.list.len();
    let kept: Vec<Sent> = transfers
        .list
        .into_iter()
        .filter(|transfer| transfer.start_ns < longest)
        .map(|transfer| Sent {
            start: Span::from_ns(transfer.start_ns as i64),
            from: transfer.from,
            to: transfer.to,
            bytes: transfer.bytes,
            origin: Origin::new(source, transfer.at.range()),
        })
        .collect();
    if kept.len() < all {
        notes.push(format!("left out: {} transfers over 10^6 s after the first", all - kept.len()));
    }
    kept
}

/// Who sends and receives, in the order in which they come.
fn ends(sent: &[Sent]) -> Vec<&str> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ends = Vec::new();
    for end in sent.iter().flat_map(|sent| [sent.from.as_str(), sent.to.as_str()]) {
        known.entry(end).or_insert_with(|| {
            ends.push(end);
            ends.len()
        });
    }
    ends
}

/// The host of each of them.
fn hosts<'a>(
    ends: &[&'a str],
    stage: &Stage,
    given: bool,
    placement: Placement,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<&'a str, HostRef>, Fault> {
    // Names and numbers of hosts mean those hosts, if the network is the user's.
    let names: BTreeMap<&str, u32> = (0..).zip(&stage.hosts).map(|(number, name)| (name.as_str(), number)).collect();
    let number = |end: &str| end.parse::<u32>().ok().filter(|&number| (number as usize) < stage.hosts.len());
    let host =
        |end: &&'a str| names.get(*end).copied().or_else(|| number(end)).map(|number| (*end, HostRef::Index(number)));
    if given && let Some(found) = ends.iter().map(host).collect::<Option<BTreeMap<&str, HostRef>>>() {
        return Ok(found);
    }
    let placed = stage.place(ends.len(), "senders and receivers", placement)?;
    let shown = |(end, host): (&&str, &HostRef)| match host {
        HostRef::Index(number) => format!("{end} on {}", stage.hosts[*number as usize]),
        HostRef::Name(name) => format!("{end} on {name}"),
    };
    let some: Vec<String> = ends.iter().zip(&placed).take(8).map(shown).collect();
    let more = if ends.len() > 8 { format!(" and {} more", ends.len() - 8) } else { String::new() };
    notes.push(format!("hosts in the order of appearance, placement {}: {}{more}", placement.name(), some.join(", ")));
    Ok(ends.iter().copied().zip(placed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: TrafficNames<'_> = TrafficNames { scenario: "t", traffic: "t.csv" };
    const NET: &str = "name = \"net\"\n[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\ntwo_datacenters = true\n[schemes.d]\nlaw = \"dctcp\"\n[[traffic]]\nkind = \"permutation\"\nsize = 1\n";

    fn import(text: &str, format: TrafficFormat, base: Option<&str>) -> Result<Imported, String> {
        let base = base.map(|text| Base { text, name: "net.toml" });
        import_traffic(text.as_bytes(), format, base.as_ref(), Placement::Block, &NAMES)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_of_hosts_are_those_hosts() {
        let flows = "start_s,from,to,bytes\n0,right.host1,left.host0,5\n25,3,0,1MB\n";
        let made = import(flows, TrafficFormat::Flows, Some(NET)).unwrap();
        assert!(made.toml.contains("{ start = \"0s\", src = 3, dst = 0, size = 5 }"), "{}", made.toml);
        assert!(made.toml.contains("stop = \"36s\"") && made.notes.is_empty(), "{:?}", made.notes);
    }

    #[test]
    fn others_are_placed_as_they_come() {
        let flows = "start,from,to,bytes\n0us,10.0.0.9,10.0.0.1,5\n1us,10.0.0.7,10.0.0.1,6\n";
        let made = import(flows, TrafficFormat::Flows, Some(NET)).unwrap();
        let notes = made.notes.join("\n");
        assert!(notes.contains("10.0.0.9 on left.host0, 10.0.0.1 on left.host1, 10.0.0.7 on right.host0"), "{notes}");
        assert!(made.toml.contains("src = 2, dst = 1, size = 6"), "{}", made.toml);
        // On a network of its own numbers are names.
        let made = import("start,from,to,bytes\n0us,7,9,5\n", TrafficFormat::Flows, None).unwrap();
        assert!(made.notes.join("\n").contains("7 on dc0."), "{:?}", made.notes);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, base, parts) in [
            ("start,from,to,bytes\n0us,a,a,5\n", None, ["t.csv:2:1", "`a` sends to itself"]),
            ("start,from,to,bytes\n0us,a,b,0\n", None, ["t.csv:2:1", "a flow of 0 B"]),
            ("start,from,to,bytes\n7,a,b,1\n", None, ["t.csv:2:1", "start_us, start_s"]),
            ("start,from,to,bytes\n7s,a,b,much\n", None, ["t.csv:2:1", "much"]),
            ("start,from,to,bytes\n", None, ["`t.csv` has no transfer", "at least one"]),
            (
                "start,from,to,bytes\n0s,a,b,1\n0s,c,d,1\n0s,e,f,1\n",
                Some(NET),
                ["6 senders and receivers do not fit", "which has 4 hosts"],
            ),
            ("root:x:0:0\n", None, ["is not a list of flows", "start,from,to,bytes"]),
        ] {
            let error = import(text, TrafficFormat::Flows, base).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}\n{error}");
        }
        let records = "ts,sa,da,ibyt\n2024-01-01 00:00:00,a,b,x\n";
        assert!(import(records, TrafficFormat::Netflow, None).unwrap_err().contains("t.csv:2:1"));
        let empty = import("ts,sa,da,ibyt\nSummary\n", TrafficFormat::Netflow, None).unwrap_err();
        assert!(empty.contains("has no transfer"), "{empty}");
        assert!(
            import("nothing", TrafficFormat::Capture, None)
                .unwrap_err()
                .contains("`t.csv`, byte 0: this is no capture")
        );
    }
}
