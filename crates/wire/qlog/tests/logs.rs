//! Logs of connections in a deterministic world that loses packets: they can be parsed, and contain the events.

#[allow(unreachable_pub, dead_code)]
#[path = "../../proto/tests/world/mod.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::observe::ObserverMaker;
use qlog::Directory;
use serde_json::Value;
use units::{Rate, Span, Time};
use world::network::NetworkEnd;
use world::{Scene, StreamJob, World};

/// A directory of a test's own.
struct LogsDir(PathBuf);

impl LogsDir {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for LogsDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Lengths of packets, by kind, path and number.
type Lengths = BTreeMap<(String, u64, u64), u64>;

/// The records of a file; the last one may be cut.
fn records(text: &str) -> Vec<Value> {
    let mut pieces = text.split('\u{1e}');
    assert_eq!(pieces.next(), Some(""), "something stands before the first record");
    let read = |piece: &str| serde_json::from_str(piece).unwrap_or_else(|error| panic!("{error}: {piece}"));
    pieces.filter(|piece| piece.ends_with('\n')).map(read).collect()
}

fn lossy() -> Scene {
    let mut scene = Scene::ideal(Rate::from_mbps(100), Span::from_ms(5));
    scene.conditions.loss = 20;
    scene.jobs = [NetworkEnd::Client, NetworkEnd::Listener]
        .map(|from| StreamJob { from, bytes: 2_000_000, message: true, echo: false })
        .into();
    scene.paths = 3;
    scene.updates = 400;
    scene.coding = "8,2";
    scene.law = "cubic";
    scene
}

fn run(scene: Scene, observe: ObserverMaker) -> [flow::ChannelStats; 2] {
    let mut world = World::watched(scene, Some(observe));
    let report = world.run(Time::from_ms(600_000));
    assert!(report.done.is_set(), "{report:?}");
    [NetworkEnd::Client, NetworkEnd::Listener].map(|end| world.stats(end).unwrap())
}

fn quiet(text: &str) {
    panic!("{text}");
}

#[test]
fn a_lossy_transfer_is_logged_completely() {
    let scratch = LogsDir::new("lossy");
    let directory = Directory::open(&scratch.0, quiet).unwrap();
    let stats = run(lossy(), directory.observer());
    drop(directory);
    let files = scratch.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let mut all_names = BTreeSet::new();
    let mut packets: Vec<[Lengths; 2]> = Vec::new();
    for (file, stats) in files.iter().zip(stats) {
        let records = records(&fs::read_to_string(file).unwrap());
        let (header, events) = records.split_first().unwrap();
        assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
        let (fields, end) =
            (&header["trace"]["common_fields"], header["trace"]["vantage_point"]["type"].as_str().unwrap());
        assert_eq!(fields["time_format"], "relative");
        assert!(fields["reference_time"].as_f64().unwrap() > 1.6e12);
        let id = fields["ODCID"].as_str().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with(&format!("Z-{id}-{end}.sqlog")), "{name}");

        let (mut last, mut counted, mut lost, mut seen) = (0.0, 0, 0, [Lengths::new(), Lengths::new()]);
        for event in events {
            let (time, name, data) = (event["time"].as_f64().unwrap(), event["name"].as_str().unwrap(), &event["data"]);
            assert!(time >= last, "{event}");
            last = time;
            all_names.insert(name.to_owned());
            let kind = data["header"]["packet_type"].as_str().unwrap_or_default();
            match name {
                "transport:packet_sent" | "transport:packet_received" => {
                    let sent = name.ends_with("sent");
                    counted += u64::from(data["in_flight"] == true && kind == "1RTT");
                    let number = data["header"]["packet_number"].as_u64().unwrap();
                    let key = (kind.to_owned(), event["path_id"].as_u64().unwrap(), number);
                    let before = seen[usize::from(!sent)].insert(key, data["raw"]["length"].as_u64().unwrap());
                    assert_eq!(before, None, "{event}");
                    assert!(!data["frames"].as_array().unwrap().is_empty(), "{event}");
                }
                "recovery:packet_lost" => lost += u64::from(kind == "1RTT"),
                "recovery:metrics_updated" => assert!(!data.as_object().unwrap().is_empty(), "{event}"),
                "narrows:law_updated" => assert_eq!(data["law"], "cubic", "{event}"),
                _ => {}
            }
        }
        assert_eq!((counted, lost), (stats.packets_sent, stats.lost), "{end}");
        assert_eq!(events.first().unwrap()["name"], "connectivity:connection_started");
        packets.push(seen);
    }
    // Packets received at one end were sent by the other, with the same length.
    for at in 0..2 {
        for (key, len) in &packets[at][1] {
            assert_eq!(packets[1 - at][0].get(key), Some(len), "{key:?}");
        }
    }
    let expected = [
        "connectivity:connection_closed",
        "connectivity:connection_started",
        "connectivity:connection_state_updated",
        "connectivity:mtu_updated",
        "narrows:block_nack_received",
        "narrows:block_nack_sent",
        "narrows:block_opened",
        "narrows:block_recovered",
        "narrows:block_repair_sent",
        "narrows:law_updated",
        "narrows:path_updated",
        "recovery:congestion_state_updated",
        "recovery:metrics_updated",
        "recovery:packet_lost",
        "security:key_updated",
        "transport:packet_received",
        "transport:packet_sent",
        "transport:parameters_set",
    ];
    let missing: Vec<_> = expected.iter().filter(|name| !all_names.contains(**name)).collect();
    assert!(missing.is_empty(), "no {missing:?} in {all_names:?}");
}

/// No data and no proof is in a log, and no secret.
#[test]
fn contents_are_not_logged() {
    let scratch = LogsDir::new("contents");
    let directory = Directory::open(&scratch.0, quiet).unwrap();
    run(lossy(), directory.observer());
    drop(directory);
    for file in scratch.files() {
        let text = fs::read_to_string(file).unwrap();
        let auth = text.matches("narrows:auth\"}").count();
        assert!(auth > 0 && auth == text.matches("narrows:auth").count());
        // Frames with contents have their length and offset.
        let records = records(&text);
        let frames: Vec<&Value> =
            records.iter().filter_map(|event| event["data"]["frames"].as_array()).flatten().collect();
        for (kind, shown) in [
            ("crypto", &["frame_type", "length", "offset"][..]),
            ("stream", &["fin", "frame_type", "length", "offset", "stream_id", "total"]),
            ("narrows:parity", &["block", "data", "frame_type", "length", "parity", "place"]),
        ] {
            let mut of_kind = frames.iter().filter(|frame| frame["frame_type"] == kind).peekable();
            assert!(of_kind.peek().is_some(), "no {kind}");
            let is_odd = |(name, value): (&String, &Value)| {
                !shown.contains(&name.as_str()) || (value.is_string() && name != "frame_type")
            };
            for frame in of_kind {
                assert!(!frame.as_object().unwrap().iter().any(is_odd), "{frame}");
            }
        }
    }
}

/// A full disk ends the log with a line, and does not end the connection.
#[test]
fn write_failures_are_reported_once() {
    let scratch = LogsDir::new("gone");
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let lines = warnings.clone();
    let directory = Directory::open(&scratch.0, move |text| lines.lock().unwrap().push(text.to_owned())).unwrap();
    fs::remove_dir(&scratch.0).unwrap();
    run(lossy(), directory.observer());
    drop(directory);
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for line in warnings.iter() {
        assert!(line.starts_with("the log `") && line.contains("ends here, and its connection goes on"), "{line}");
    }
}

#[test]
fn a_directory_that_cannot_be_one_is_an_error() {
    let scratch = LogsDir::new("file");
    fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("file");
    fs::write(&file, "mine").unwrap();
    assert!(Directory::open(&file, quiet).is_err());
    assert!(Directory::open(&file.join("below"), quiet).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let directory = Directory::open(&scratch.0.join("a/b"), quiet).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
