//! Traffic of other programs as scenarios: schedules, flow records, captures.

use super::{Imported, list};
use crate::Error;
use crate::config::Placement;
use crate::decode::Field;
use crate::error::{Sources, SpannedError};
use crate::foreign::{self, Foreign, ForeignTraffic, GOAL, MSCCL, NetworkSource, SIMAI, TrafficFormat};
use crate::import::stage::{Base, ListedTraffic, Stage};
use crate::kind::FileKind;
use crate::tree::parse_argument;
use formats::simai::WorkloadOptions;
use units::Bytes;

/// Values that a schedule does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GoalOptions<'a> {
    /// Placement of ranks on hosts.
    pub placement: Placement,
    /// Sends up to this size, bytes or with its unit, have ended once they have begun: the S of LogGOPSim.
    pub eager: &'a str,
}

/// Values that a workload does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimaiOptions {
    /// Placement of ranks on hosts.
    pub placement: Placement,
    /// Passes of the workload, one after the other.
    pub passes: u32,
    /// The number of ranks, for a workload without `all_gpus`.
    pub ranks: Option<u32>,
}

/// Names that an import of traffic needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrafficNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The traffic's file, for messages.
    pub traffic: &'a str,
}

/// Makes a scenario from a GOAL schedule, as text or as bytes.
///
/// Formats as LogGOPSim's and ATLAHS's `txt2bin` read and write them. Ranks are on hosts of `base`, or of two datacenters that
/// are large enough.
///
/// # Errors
/// When the schedule is malformed; when an operation waits for itself, a send has no receive or the other way round; when
/// there are more ranks than hosts.
pub fn import_goal(
    schedule: &[u8],
    options: &GoalOptions<'_>,
    base: Option<&Base<'_>>,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let read = size(options.eager, "--eager", &mut sources)
        .and_then(|eager| foreign::goal(file(names.traffic, schedule, Some(GOAL), &mut sources), eager));
    scenario_of(read, &sources, base, options.placement, names)
}

/// Makes a scenario from Chakra execution traces: of each rank its file's name and bytes. Ranks are by the numbers in the names
/// (`trace.0.et`), if they are 0, 1 and so on, else in the order given. `groups` is JSON, `{"name": [0, 1], ...}`, and its
/// file's name.
///
/// # Errors
/// As [`import_goal`]; also when a trace is malformed, or a group or a collective is not known.
pub fn import_chakra(
    traces: &[(&str, Vec<u8>)],
    groups: Option<(&str, &str)>,
    base: Option<&Base<'_>>,
    placement: Placement,
    scenario: &str,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let files: Vec<Foreign<'_>> = traces.iter().map(|(name, bytes)| file(name, bytes, None, &mut sources)).collect();
    let groups = groups.map(|(text, name)| file(name, text.as_bytes(), None, &mut sources));
    let names = TrafficNames { scenario, traffic: files.first().map_or("", |file| file.name) };
    let read = foreign::groups(groups, files.len()).and_then(|groups| foreign::chakra(&files, &groups));
    scenario_of(read, &sources, base, placement, &names)
}

/// Makes a scenario from an algorithm of MSCCL in XML, which works on `size` bytes, one loop of it: a number of bytes, or a size with its unit.
///
/// # Errors
/// As [`import_goal`].
pub fn import_msccl(
    text: &str,
    size: &str,
    base: Option<&Base<'_>>,
    placement: Placement,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let read = self::size(size, "--size", &mut sources)
        .and_then(|size| foreign::msccl(file(names.traffic, text.as_bytes(), Some(MSCCL), &mut sources), size));
    scenario_of(read, &sources, base, placement, names)
}

/// Makes a scenario from a workload of SimAI.
///
/// # Errors
/// As [`import_goal`]; also when the workload has several stages of a pipeline, or recomputes layers; when neither it
/// nor `options` contains the number of ranks, or both do and differ.
pub fn import_simai(
    text: &str,
    options: &SimaiOptions,
    base: Option<&Base<'_>>,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let SimaiOptions { placement, passes, ranks } = *options;
    let file = file(names.traffic, text.as_bytes(), Some(SIMAI), &mut sources);
    let read = foreign::simai(file, WorkloadOptions { passes, ranks });
    scenario_of(read, &sources, base, placement, names)
}

/// Makes a scenario from traffic: on the network of `base`, or on two datacenters that are large enough.
///
/// # Errors
/// When the file is malformed, has no transfer, or has more senders and receivers than the network has hosts.
pub fn import_traffic(
    bytes: &[u8],
    format: TrafficFormat,
    base: Option<&Base<'_>>,
    placement: Placement,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let read = foreign::transfers(file(names.traffic, bytes, format.kind(), &mut sources), format);
    scenario_of(read, &sources, base, placement, names)
}

/// Returns the size in an option.
fn size(text: &str, option: &str, sources: &mut Sources) -> Result<Bytes, SpannedError> {
    let source = sources.add(option, text);
    parse_argument(text, source).and_then(|node| Bytes::decode(&node))
}

/// Adds a file to the sources. Errors may show its lines if it is text of the kind.
fn file<'a>(name: &'a str, bytes: &'a [u8], kind: Option<FileKind>, sources: &mut Sources) -> Foreign<'a> {
    let text = kind.and_then(|kind| Some((std::str::from_utf8(bytes).ok()?, kind)));
    Foreign { name, bytes, source: text.map(|(text, kind)| sources.add_file(name, text, kind)) }
}

/// The scenario of traffic that was read.
fn scenario_of(
    read: Result<ForeignTraffic, SpannedError>,
    sources: &Sources,
    base: Option<&Base<'_>>,
    placement: Placement,
    names: &TrafficNames<'_>,
) -> Result<Imported, Error> {
    let explain = |error| sources.explain(error);
    let mut traffic = read.map_err(explain)?;
    let stage = Stage::new(base, traffic.hosts(), &mut traffic.notes)?;
    let (title, last) = (format!("imported from {}: {}", traffic.from, names.traffic), traffic.last());
    let network = if base.is_some() { NetworkSource::Given } else { NetworkSource::Made };
    let (listed, notes) = traffic.on(&stage.host_names, network, placement).map_err(explain)?;
    let (traffic, flows) = list(&listed, names.scenario);
    let traffic = ListedTraffic { traffic, flows };
    stage.with_traffic(names.scenario, &title, traffic, last, notes).map_err(explain)
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
    fn sizes_of_options_are_bytes_or_have_a_unit() {
        let read = |text| size(text, "--size", &mut Sources::default());
        for (text, bytes) in
            [("65536", 65_536), ("48_000_000", 48_000_000), ("64MiB", 64 << 20), ("1.5 KB", 1_500), ("0", 0)]
        {
            assert_eq!(read(text), Ok(Bytes::new(bytes)), "{text}");
        }
        for text in ["", "much", "-1", "1.5", "10Mb", "[1]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn host_names_select_hosts() {
        let flows = "start_s,src,dst,bytes\n0,right.host1,left.host0,5\n25,3,0,1MB\n";
        let imported = import(flows, TrafficFormat::Flows, Some(NET)).unwrap();
        assert!(imported.toml.contains("{ start = \"0s\", src = 3, dst = 0, size = 5 }"), "{}", imported.toml);
        assert!(imported.toml.contains("stop = \"36s\"") && imported.notes.is_empty(), "{:?}", imported.notes);
    }

    #[test]
    fn unknown_names_are_placed_in_order() {
        let flows = "start,src,dst,bytes\n0us,10.0.0.9,10.0.0.1,5\n1us,10.0.0.7,10.0.0.1,6\n";
        let imported = import(flows, TrafficFormat::Flows, Some(NET)).unwrap();
        let notes = imported.notes.join("\n");
        assert!(notes.contains("10.0.0.9 on left.host0, 10.0.0.1 on left.host1, 10.0.0.7 on right.host0"), "{notes}");
        assert!(imported.toml.contains("src = 2, dst = 1, size = 6"), "{}", imported.toml);
        // On a network of its own numbers are names.
        let imported = import("start,src,dst,bytes\n0us,7,9,5\n", TrafficFormat::Flows, None).unwrap();
        assert!(imported.notes.join("\n").contains("7 on dc0."), "{:?}", imported.notes);
    }

    #[test]
    fn errors_have_lines_and_columns() {
        for (text, base, parts) in [
            ("start,src,dst,bytes\n0us,a,a,5\n", None, ["t.csv:2:7", "column `dst`: `a` sends to itself"]),
            ("start,from,to,bytes\n0us,a,b,0\n", None, ["t.csv:2:9", "column `bytes`: a flow of 0 B"]),
            ("start,src,dst,bytes\n7,a,b,1\n", None, ["t.csv:2:1", "start_us, start_s"]),
            ("start,src,dst,bytes\n-7s,a,b,1\n", None, ["t.csv:2:1", "column `start`: "]),
            ("start,src,dst,size\n7s,a,b,much\n", None, ["t.csv:2:8", "column `size`: expected a size"]),
            (
                "start,src,dst,bytes\n7s,a\x1b,b,1\n",
                None,
                ["t.csv:2:4", "column `src`: a text with the control character"],
            ),
            ("start,src,dst,bytes\n7s,a,,1\n", None, ["t.csv:2:6", "column `dst`: this flow has no receiver"]),
            ("start,src,dst,bytes\n7s,a,b,1,5\n", None, ["t.csv:2:10", "column 5: this row has 5 fields"]),
            ("start,src,dst,bytes,cost\n", None, ["t.csv:1:21", "unknown column `cost`"]),
            ("start,src,dst\n", None, ["t.csv:1:1", "column `bytes` is missing"]),
            ("start,src,dst,bytes\n", None, ["`t.csv` has no transfer", "at least one"]),
            (
                "start,src,dst,bytes\n0s,left.host0,left.host1,1\n0s,left.host1,b,1\n",
                Some(NET),
                ["t.csv:3:15", "column `dst`: `b` is no host of "],
            ),
            (
                "start,source,dst,bytes\n0s,left.host0,left.host1,1\n0s,b,left.host1,1\n",
                Some(NET),
                ["t.csv:3:4", "column `source`: `b` is no host of "],
            ),
            (
                "start,src,dst,bytes\n0s,a,b,1\n0s,c,d,1\n0s,e,f,1\n",
                Some(NET),
                ["6 senders and receivers do not fit", "which has 4 hosts"],
            ),
            ("root:x:0:0\n", None, ["is not a list of flows", "start,src,dst,bytes"]),
        ] {
            let error = import(text, TrafficFormat::Flows, base).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}\n{error}");
        }
        let records = "ts,sa,da,ibyt\n2024-01-01 00:00:00,a,b,x\n";
        let error = import(records, TrafficFormat::Netflow, None).unwrap_err();
        assert!(error.contains("t.csv:2:25") && error.contains("column `ibyt`: `x`"), "{error}");
        let empty = import("ts,sa,da,ibyt\nSummary\n", TrafficFormat::Netflow, None).unwrap_err();
        assert!(empty.contains("has no transfer"), "{empty}");
        assert!(
            import("nothing", TrafficFormat::Capture, None)
                .unwrap_err()
                .contains("`t.csv`, byte 0: this is no capture")
        );
    }
}
