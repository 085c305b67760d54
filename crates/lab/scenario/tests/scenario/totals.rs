//! Imports of each format against a small parser of its own: nodes, links, capacity, flows, bytes and the longest chain of flows.
//!
//! The parsers here read a format's words by its specification, and nothing of `formats`. They know as much of it as the samples
//! have.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use fabric::LinkId;
use scenario::import::{
    GoalOptions, GraphFormat, GraphNames, GraphOptions, HpccNames, ImportNames, Imported, Placement, SimaiOptions,
    StartUnit, TrafficFormat, TrafficNames, import_chakra, import_goal, import_graph, import_hpcc, import_htsim,
    import_msccl, import_simai, import_traffic,
};
use scenario::{BuiltRun, Overrides, parse};

const NAMES: TrafficNames<'_> = TrafficNames { scenario: "made", traffic: "file" };

/// Totals of a network.
#[derive(PartialEq, Eq, Debug)]
struct Net {
    hosts: usize,
    switches: usize,
    /// Cables, each with two directions.
    cables: usize,
    /// Capacity of all cables, one way.
    mbps: u64,
}

/// Totals of traffic.
#[derive(PartialEq, Eq, Debug)]
struct Load {
    flows: usize,
    bytes: u64,
    /// Flows in the longest chain of flows that wait for each other.
    depth: usize,
}

fn built(imported: Result<Imported, scenario::Error>) -> BuiltRun {
    let imported = imported.unwrap_or_else(|error| panic!("{error}"));
    let scenario = parse(&imported.toml, "made.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}\n{}", imported.toml))
}

fn net(run: &BuiltRun) -> Net {
    let network = &run.setup.network;
    let hosts = network.hosts().len();
    let bps = (0..network.links().len() as u32).map(|link| network.port(LinkId(link)).config().rate.bps());
    let both_ways: u64 = bps.sum();
    Net {
        hosts,
        switches: network.nodes().len() - hosts,
        cables: network.links().len() / 2,
        mbps: both_ways / 2 / 1_000_000,
    }
}

fn load(run: &BuiltRun) -> Load {
    let flows = &run.setup.flows;
    let waits =
        |flow: usize| run.setup.dependencies_of(&flows[flow]).iter().map(|cause| cause.flow().0 as usize).collect();
    Load {
        flows: flows.len(),
        bytes: flows.iter().map(|flow| flow.size.get()).sum(),
        depth: longest(flows.len(), waits),
    }
}

/// Returns the length of the longest dependency chain.
fn longest(count: usize, waits: impl Fn(usize) -> Vec<usize>) -> usize {
    let mut depth = vec![1; count];
    // After as many rounds as there are things none gets deeper.
    for _ in 0..count {
        for item in 0..count {
            depth[item] = waits(item).into_iter().map(|other| depth[other] + 1).max().unwrap_or(1);
        }
    }
    depth.into_iter().max().unwrap_or(0)
}

/// The number behind a word of a line.
fn after(line: &str, keyword: &str) -> Option<u64> {
    line.split_whitespace().skip_while(|it| *it != keyword).nth(1)?.parse().ok()
}

/// The number in a line that begins with a word.
fn of_line(text: &str, keyword: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_prefix(keyword)?.strip_prefix(' ')?.trim().parse().ok()).collect()
}

#[test]
fn htsim() {
    let matrix = "Nodes 32\nConnections 4\nTriggers 2\n0->9 id 1 start 0 size 2000000 send_done_trigger 1\n9->17 id 2 trigger 1 size 500 recv_done_trigger 2\n\
                  17->0 id 3 trigger 2 size 70000\n5->6 id 4 start 12 size 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let topology = "Nodes 32\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
                    Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 4\nRadix_Up 2\nBundle 2\nDownlink_Latency_ns 1000\n\
                    Tier 2\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1000\n";
    let names = ImportNames { scenario: "made", matrix: "a.cm", topology: "a.topo" };
    let run = built(import_htsim(matrix, Some(topology), Some(StartUnit::Microseconds), &names));
    // A tier's links downwards: as many as the tier below has upwards.
    let (gbps, down, up) =
        (of_line(topology, "Downlink_speed_Gbps"), of_line(topology, "Radix_Down"), of_line(topology, "Radix_Up"));
    let mut links = vec![of_line(topology, "Nodes")[0]];
    let mut switches = Vec::new();
    for tier in 0..3 {
        switches.push(links[tier] / down[tier]);
        links.extend(up.get(tier).map(|up| switches[tier] * up));
    }
    let expected = Net {
        hosts: links[0] as usize,
        switches: switches.iter().sum::<u64>() as usize,
        cables: links.iter().sum::<u64>() as usize,
        mbps: links.iter().zip(&gbps).map(|(links, gbps)| links * gbps * 1_000).sum(),
    };
    assert_eq!(net(&run), expected);
    let lines: Vec<&str> = matrix.lines().filter(|line| line.contains("->")).collect();
    let fires = |line: &str| after(line, "send_done_trigger").or(after(line, "recv_done_trigger"));
    let waits = |line: usize| {
        let on = after(lines[line], "trigger");
        (0..lines.len()).filter(|&other| on.is_some() && fires(lines[other]) == on).collect()
    };
    let bytes = lines.iter().filter_map(|line| after(line, "size")).sum();
    assert_eq!(load(&run), Load { flows: lines.len(), bytes, depth: longest(lines.len(), waits) });
}

#[test]
fn hpccs_simulator() {
    let topology =
        "6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 25Gbps 1us 0\n3 5 25Gbps 1us 0\n4 5 400Gbps 1us 0\n";
    let flows = "3\n0 2 3 100 1000000 0.001\n1 3 3 101 7 0.002\n2 0 3 102 4096 1\n";
    let names = HpccNames { scenario: "made", topology: "t.txt", flows: "f.txt", config: "" };
    let run = built(import_hpcc(topology, flows, None, &names));
    let head: Vec<usize> = topology.lines().next().unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let gbps = topology.lines().skip(2).map(|line| line.split("Gbps").next().unwrap().rsplit(' ').next().unwrap());
    let mbps = gbps.map(|gbps| gbps.parse::<u64>().unwrap() * 1_000).sum();
    assert_eq!(net(&run), Net { hosts: head[0] - head[1], switches: head[1], cables: head[2], mbps });
    let sizes = flows.lines().skip(1).map(|line| line.split(' ').nth(4).unwrap().parse::<u64>().unwrap());
    assert_eq!(load(&run), Load { flows: sizes.clone().count(), bytes: sizes.sum(), depth: 1 });
}

const GOAL: &str = "num_ranks 3\nrank 0 {\na: calc 2000\ns: send 100000b to 1 tag 1\nt: send 50b to 2 tag 2\ns requires a\nt irequires s\n}\n\
                    rank 1 {\nr: recv 100000b from 0 tag 1\nc: calc 700\ns: send 9000b to 2 tag 3\nc requires r\ns requires c\n}\n\
                    rank 2 {\nr: recv 9000b from 1 tag 3\nq: recv 50b from 0 tag 2\ns: send 123b to 0 tag 4\ns requires r\ns requires q\n}\n";

/// An operation: its rank and label, the tag and bytes if it is a send, the tag if it is a receive.
type GoalOp = (String, Option<(u64, u64)>, Option<u64>);

#[test]
fn goal() {
    let text = GOAL.replace("t irequires s\n}", "t irequires s\nz: recv 123b from 2 tag 4\n}");
    let run =
        built(import_goal(text.as_bytes(), &GoalOptions { placement: Placement::Block, eager: "65535" }, None, &NAMES));
    // And which operations require which.
    let mut ops: Vec<GoalOp> = Vec::new();
    let mut requires: Vec<(String, String)> = Vec::new();
    let mut rank = 0;
    for line in text.lines() {
        rank = after(line, "rank").unwrap_or(rank);
        let words: Vec<&str> = line.split_whitespace().collect();
        let own = |label: &str| format!("{rank}.{}", label.trim_end_matches(':'));
        match words.as_slice() {
            [label, "send", bytes, "to", _, "tag", tag] => {
                let bytes = bytes.trim_end_matches('b').parse().unwrap();
                ops.push((own(label), Some((tag.parse().unwrap(), bytes)), None));
            }
            [label, "recv", .., "tag", tag] => ops.push((own(label), None, Some(tag.parse().unwrap()))),
            [label, "calc", _] => ops.push((own(label), None, None)),
            [label, "requires" | "irequires", other] => requires.push((own(label), own(other))),
            _ => {}
        }
    }
    // How many sends an operation is behind, itself included.
    let mut depth: BTreeMap<&str, usize> = ops.iter().map(|(label, ..)| (label.as_str(), 0)).collect();
    for _ in 0..ops.len() {
        for (label, send, recv) in &ops {
            let required = requires.iter().filter(|(op, _)| op == label).map(|(_, on)| depth[on.as_str()]);
            let sent = ops.iter().filter(|(_, send, _)| recv.is_some() && send.map(|(tag, _)| tag) == *recv);
            let before = required.chain(sent.map(|(other, ..)| depth[other.as_str()])).max().unwrap_or(0);
            depth.insert(label, before + usize::from(send.is_some()));
        }
    }
    let sends: Vec<u64> = ops.iter().filter_map(|(_, send, _)| send.map(|(_, bytes)| bytes)).collect();
    let expected = Load { flows: sends.len(), bytes: sends.iter().sum(), depth: *depth.values().max().unwrap() };
    assert_eq!(load(&run), expected);
}

fn varint(number: u64) -> Vec<u8> {
    if number < 128 { vec![number as u8] } else { [vec![number as u8 & 127 | 128], varint(number >> 7)].concat() }
}

/// A field of protobuf: of a number.
fn number(key: u64, value: u64) -> Vec<u8> {
    [varint(key << 3), varint(value)].concat()
}

/// A field of protobuf: of bytes.
fn bytes(key: u64, value: &[u8]) -> Vec<u8> {
    [varint(key << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A trace of collectives, one after the other.
fn trace(collectives: &[(u64, u64)]) -> Vec<u8> {
    let message = |body: Vec<u8>| [varint(body.len() as u64), body].concat();
    let mut file = message(bytes(1, b"0.0.4"));
    for (id, &(kind, size)) in (1u64..).zip(collectives) {
        let attribute = |name: &str, value| bytes(10, &[bytes(1, name.as_bytes()), number(9, value)].concat());
        let after = if id > 1 { number(5, id - 1) } else { Vec::new() };
        let node = [number(1, id), number(3, 7), after, attribute("comm_type", kind), attribute("comm_size", size)];
        file.extend(message(node.concat()));
    }
    file
}

/// By the formulas of Chakra and astra-sim, where `comm_size` is one rank's input: the total bytes sent by n ranks, and the
/// number of consecutive steps.
fn chakra_formula(kind: u64, size: u64, n: u64) -> Load {
    let (messages, each, depth) = match kind {
        0 => (2 * n * (n - 1), size / n, 2 * (n - 1)),
        2 => (n * (n - 1), size, n - 1),
        5 => (n - 1, size, n - 1),
        6 => (n * (n - 1), size / n, 1),
        7 | 8 => (n * (n - 1), size / n, n - 1),
        9 => (2 * n * (n - 1), 1, 2 * (n - 1)),
        other => panic!("{other}"),
    };
    Load { flows: messages as usize, bytes: messages * each, depth: depth as usize }
}

#[test]
fn chakra() {
    let import = |collectives: &[(u64, u64)], n: u64| {
        let files: Vec<(String, Vec<u8>)> = (0..n).map(|rank| (format!("t.{rank}.et"), trace(collectives))).collect();
        let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, file)| (name.as_str(), file.clone())).collect();
        built(import_chakra(&files, None, None, Placement::Block, "made"))
    };
    for n in [2, 4, 5] {
        for kind in [0, 2, 5, 6, 7, 8, 9] {
            let run = import(&[(kind, 1_000_000)], n);
            assert_eq!(load(&run), chakra_formula(kind, 1_000_000, n), "type {kind} of {n} ranks");
        }
    }
    // Four ranks; each contributes 1,000,000 B: 12 flows of that size.
    let run = import(&[(2, 1_000_000)], 4);
    assert!(run.setup.flows.iter().all(|flow| flow.size.get() == 1_000_000));
    assert_eq!(load(&run), Load { flows: 12, bytes: 12_000_000, depth: 3 });
    // One after the other.
    let all = [(7, 800_000), (0, 40_000), (2, 100_000)];
    let sum = all.iter().map(|&(kind, size)| chakra_formula(kind, size, 4)).fold(
        Load { flows: 0, bytes: 0, depth: 0 },
        |sum, one| Load { flows: sum.flows + one.flows, bytes: sum.bytes + one.bytes, depth: sum.depth + one.depth },
    );
    assert_eq!(load(&import(&all, 4)), sum);
}

/// An algorithm of MSCCL in which each of n GPUs runs these steps along a ring: type and chunks.
fn algorithm(n: usize, chunks: usize, steps: &[(&str, usize)]) -> String {
    let step =
        |(s, (kind, count)): (usize, &(&str, usize))| format!("<step s=\"{s}\" type=\"{kind}\" cnt=\"{count}\"/>\n");
    let steps: String = steps.iter().enumerate().map(step).collect();
    let gpu = |id: usize| {
        let (send, recv) = ((id + 1) % n, (id + n - 1) % n);
        format!("<gpu id=\"{id}\"><tb id=\"0\" send=\"{send}\" recv=\"{recv}\" chan=\"0\">\n{steps}</tb></gpu>\n")
    };
    let gpus: String = (0..n).map(gpu).collect();
    format!("<algo name=\"a\" nchunksperloop=\"{chunks}\" ngpus=\"{n}\">\n{gpus}</algo>\n")
}

/// `sizePerMscclChunk` of the runtime is the size of all chunks of a loop divided by their number.
#[test]
fn msccl() {
    for (what, text, depth) in [
        ("all-gather", algorithm(3, 3, &[("s", 1), ("rcs", 1), ("r", 1)]), 2),
        ("reduce-scatter", algorithm(3, 3, &[("s", 1), ("rrs", 1), ("rrc", 1)]), 2),
        ("all-reduce", algorithm(3, 3, &[("s", 1), ("rrs", 1), ("rrcs", 1), ("rcs", 1), ("r", 1)]), 4),
        ("neighbours, in two chunks", algorithm(2, 4, &[("s", 2), ("r", 2)]), 1),
    ] {
        let size = 48_000_000;
        let run = built(import_msccl(&text, &size.to_string(), None, Placement::Block, &NAMES));
        let quoted = |line: &str, name: &str| -> Option<String> {
            Some(line.split_once(&format!("{name}=\""))?.1.split('"').next()?.to_owned())
        };
        let chunks: u64 = quoted(&text, "nchunksperloop").unwrap().parse().unwrap();
        let sends = text.lines().filter(|line| quoted(line, "type").is_some_and(|kind| kind.contains('s')));
        let counts: Vec<u64> = sends.map(|line| quoted(line, "cnt").unwrap().parse().unwrap()).collect();
        let bytes = counts.iter().sum::<u64>() * size / chunks;
        assert_eq!(load(&run), Load { flows: counts.len(), bytes, depth }, "{what}");
    }
}

/// By the formulas of SimAI's `MockNcclGroup`, where the bytes of a layer are those of the buffer that a group divides.
#[test]
fn simai() {
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n3\n";
    let layers = "a -1 10 ALLGATHER 4000 10 REDUCESCATTER 8000 10 NONE 0 0\nb -1 10 ALLREDUCE 400 10 NONE 0 10 ALLGATHER 6000 20\n\
                  c -1 10 ALLTOALL 1200 10 ALLTOALL 1600 10 REDUCESCATTER 2000 5\n";
    let ranks = after(head, "all_gpus:").unwrap();
    let older = head.replace(" all_gpus: 8", "");
    for (head, asked) in [(head, None), (older.as_str(), Some(ranks as u32))] {
        let options = SimaiOptions { placement: Placement::Block, passes: 1, ranks: asked };
        let run = built(import_simai(&format!("{head}{layers}"), &options, None, &NAMES));
        let (tensor, mut flows, mut bytes) = (after(head, "model_parallel_NPU_group:").unwrap(), 0, 0);
        let mut steps = |keyword: &str, size: &str, group: u64| {
            let size: u64 = size.parse().unwrap();
            // Messages of a rank, each of an nth, and how many follow each other.
            let (each, depth) = match keyword {
                "NONE" => (0, 0),
                "ALLREDUCE" => (2 * (group - 1), 2 * (group - 1)),
                "ALLTOALL" => (group - 1, 1),
                _ => (group - 1, group - 1),
            };
            flows += ranks * each;
            bytes += ranks * each * size / group;
            depth
        };
        let rows: Vec<Vec<&str>> = layers.lines().map(|line| line.split(' ').collect()).collect();
        let mut chain: u64 = rows.iter().map(|row| steps(row[3], row[4], tensor)).sum();
        let mut deepest = 0;
        let mut expert_depth = 0;
        for row in rows.iter().rev() {
            chain += steps(row[6], row[7], tensor);
            // The collectives of weight gradients follow each other, concurrent with the rest.
            let own = steps(row[9], row[10], ranks / tensor);
            if own > 0 {
                expert_depth = chain.max(expert_depth) + own;
            }
            deepest = chain.max(expert_depth).max(deepest);
        }
        assert_eq!(load(&run), Load { flows: flows as usize, bytes, depth: deepest as usize });
    }
}

#[test]
fn flows_as_csv() {
    let text = "start_us,from,to,size_KB\n0,a,b,20\n1.5e1,b,c,3\n250,c,a,0.5\n";
    let run = built(import_traffic(text.as_bytes(), TrafficFormat::Flows, None, Placement::Block, &NAMES));
    let sizes = text.lines().skip(1).map(|row| row.rsplit(',').next().unwrap().parse::<f64>().unwrap());
    let bytes = sizes.map(|kilobytes| (kilobytes * 1e3) as u64).sum();
    assert_eq!(load(&run), Load { flows: text.lines().count() - 1, bytes, depth: 1 });
}

#[test]
fn flow_records() {
    let text = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n\
                2024-02-29 23:59:59,2024-03-01 00:00:02,3.000,10.0.0.1,10.0.0.2,443,5000,TCP,.AP.SF,0,0,10,1500,3,120\n\
                2024-02-29 23:59:58,2024-03-01 00:00:02,3.000,10.0.0.3,10.0.0.1,1,2,UDP,,0,0,1,77,0,0\nSummary\nflows\n1\n";
    let run = built(import_traffic(text.as_bytes(), TrafficFormat::Netflow, None, Placement::Block, &NAMES));
    let rows = text.lines().skip(1).take_while(|line| *line != "Summary");
    let cells = rows.flat_map(|row| [12, 14].map(|column| row.split(',').nth(column).unwrap().parse::<u64>().unwrap()));
    let sizes: Vec<u64> = cells.filter(|bytes| *bytes > 0).collect();
    assert_eq!(load(&run), Load { flows: sizes.len(), bytes: sizes.iter().sum(), depth: 1 });
}

/// Packets of UDP over Ethernet and IPv4, in a pcap of a magic number and a byte order: microseconds, last bytes of both addresses,
/// bytes of payload.
fn capture(packets: &[(u32, u8, u8, u16)], magic: u32, word: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let fine = if magic == 0xa1b2_3c4d { 1_000 } else { 1 };
    let mut file: Vec<u8> = [magic, 0, 0, 0, 65_535, 1].into_iter().flat_map(word).collect();
    for &(us, from, to, payload) in packets {
        let mut packet = vec![2; 12];
        packet.extend([8, 0, 0x45, 0]);
        packet.extend((28 + payload).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to, 0, 9, 0, 10]);
        packet.extend((8 + payload).to_be_bytes());
        packet.extend([0, 0]);
        packet.resize(packet.len() + usize::from(payload), 7);
        let length = packet.len() as u32;
        file.extend([us / 1_000_000, us % 1_000_000 * fine, length, length].into_iter().flat_map(word));
        file.extend(packet);
    }
    file
}

#[test]
fn captures() {
    let packets = [(5, 1, 2, 900), (9, 1, 2, 400), (1_000_012, 3, 2, 100), (1_000_013, 2, 3, 7)];
    for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
        for word in [u32::to_le_bytes, u32::to_be_bytes] {
            let file = capture(&packets, magic, word);
            let run = built(import_traffic(&file, TrafficFormat::Capture, None, Placement::Block, &NAMES));
            let pairs: BTreeSet<(u8, u8)> = packets.iter().map(|&(_, from, to, _)| (from, to)).collect();
            let bytes = packets.iter().map(|packet| u64::from(packet.3)).sum();
            assert_eq!(load(&run), Load { flows: pairs.len(), bytes, depth: 1 }, "{magic:x}");
            let mut starts: Vec<experiment::Start> = run.setup.flows.iter().map(|flow| flow.start).collect();
            starts.dedup();
            let at = |us: u64| experiment::Start::At(units::Time::from_ps(us * 1_000_000));
            assert_eq!(starts, [at(0), at(1_000_007), at(1_000_008)], "{magic:x}");
        }
    }
}

fn graph(text: &str, format: GraphFormat, options: &GraphOptions<'_>) -> Net {
    net(&built(import_graph(text, format, options, &GraphNames { scenario: "made", graph: "file" })))
}

/// The hosts of places and their links, besides the graph's own nodes and links.
fn with_hosts(nodes: usize, mbps: &[u64], hosts: usize) -> Net {
    let fastest = mbps.iter().max().unwrap();
    Net {
        hosts: nodes * hosts,
        switches: nodes,
        cables: mbps.len() + nodes * hosts,
        mbps: mbps.iter().sum::<u64>() + fastest * (nodes * hosts) as u64,
    }
}

#[test]
fn graphml() {
    let text = "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n<key id=\"r\" for=\"edge\" attr.name=\"bandwidth\"><default>2500</default></key>\n\
        <graph edgedefault=\"directed\">\n<node id=\"a\"/>\n<node id=\"b\"/>\n<node id=\"c\"/>\n\
        <edge source=\"a\" target=\"b\"><data key=\"r\">10000</data></edge>\n<edge source=\"b\" target=\"a\"><data key=\"r\">10000</data></edge>\n\
        <edge source=\"b\" target=\"c\"/>\n<edge source=\"c\" target=\"b\"/>\n<edge directed=\"false\" source=\"c\" target=\"a\"><data key=\"r\">40000</data></edge>\n\
        </graph></graphml>\n";
    let options = GraphOptions {
        unit: Some("1Mbps"),
        delay: Some("1ms"),
        hosts: std::num::NonZeroU16::new(2),
        ..GraphOptions::default()
    };
    let nodes = text.lines().filter(|line| line.starts_with("<node")).count();
    let default: u64 = text.split("<default>").nth(1).unwrap().split('<').next().unwrap().parse().unwrap();
    let edges = text.lines().filter(|line| line.starts_with("<edge"));
    // Two edges without a direction are one link.
    let halves: Vec<(u64, u64)> = edges
        .map(|edge| {
            let rate = edge
                .split("<data key=\"r\">")
                .nth(1)
                .map_or(default, |rest| rest.split('<').next().unwrap().parse().unwrap());
            (rate, if edge.contains("directed=\"false\"") { 2 } else { 1 })
        })
        .collect();
    let mut cables: BTreeMap<u64, u64> = BTreeMap::new();
    for (rate, ways) in &halves {
        *cables.entry(*rate).or_default() += ways;
    }
    let mbps: Vec<u64> = cables.iter().flat_map(|(rate, ways)| vec![*rate; (*ways / 2) as usize]).collect();
    assert_eq!(graph(text, GraphFormat::GraphMl, &options), with_hosts(nodes, &mbps, 2));
}

#[test]
fn links() {
    let text = "from,to,rate_gbps,delay_ms\nh1,s1,10,1e-3\nh2,s1,1e1,0.001\nh3,s2,25,0.001\ns1,s2,400,5\ns1,s2,400,5\n";
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let ends: Vec<&str> = rows.iter().flat_map(|row| [row[0], row[1]]).collect();
    let nodes: BTreeSet<&str> = ends.iter().copied().collect();
    let leaves = nodes.iter().filter(|node| ends.iter().filter(|end| end == node).count() == 1).count();
    let mbps = rows.iter().map(|row| (row[2].parse::<f64>().unwrap() * 1e3) as u64).sum();
    let expected = Net { hosts: leaves, switches: nodes.len() - leaves, cables: rows.len(), mbps };
    assert_eq!(graph(text, GraphFormat::Links, &GraphOptions::default()), expected);
}

#[test]
fn containerlab() {
    let text = "name: lab\ntopology:\n  nodes:\n    leaf: {kind: nokia_srlinux}\n    spine: {kind: nokia_srlinux}\n    c1: {kind: linux}\n    c2: {kind: linux}\n  links:\n\
                \x20   - endpoints: [\"leaf:e1-1\", \"c1:eth1\"]\n    - endpoints: [\"leaf:e1-2\", \"c2:eth1\"]\n    - endpoints: [\"leaf:e1-3\", \"spine:e1-1\"]\n    - endpoints: [\"leaf:e1-4\", \"spine:e1-2\"]\n";
    let ends: Vec<&str> = text.split('"').skip(1).step_by(2).map(|end| end.split(':').next().unwrap()).collect();
    let nodes: BTreeSet<&str> = ends.iter().copied().collect();
    let leaves = nodes.iter().filter(|node| ends.iter().filter(|end| end == node).count() == 1).count();
    let cables = ends.len() / 2;
    let options = GraphOptions { rate: Some("25Gbps"), ..GraphOptions::default() };
    let expected = Net { hosts: leaves, switches: nodes.len() - leaves, cables, mbps: cables as u64 * 25_000 };
    assert_eq!(graph(text, GraphFormat::Containerlab, &options), expected);
}

#[test]
fn sndlib() {
    let text = "?SNDlib native format; type: network; version: 1.0\nNODES (\n  Bonn ( 7.10 50.74 )\n  Ulm ( 9.99 48.40 )\n  Kiel ( 10.13 54.32 )\n)\nLINKS (\n\
                \x20 L1 ( Bonn Ulm ) 40.00 1.0 0.0 0.0 ( 155.00 1.00 )\n  L2 ( Ulm Kiel ) 0.00 0.0 0.0 0.0 ( 155.00 1.00 622.00 2.00 )\n)\n";
    let options = GraphOptions { unit: Some("1Gbps"), ..GraphOptions::default() };
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let nodes = rows.iter().filter(|row| row.len() == 5 && row[1] == "(").count();
    let capacities =
        rows.iter().filter(|row| row.len() > 9).map(|row| [row[5], row[10]].map(|it| it.parse::<f64>().unwrap()));
    // The installed module, else the first one.
    let mbps: Vec<u64> = capacities
        .map(|[installed, module]| if installed > 0.0 { installed } else { module })
        .map(|gbps| (gbps * 1e3) as u64)
        .collect();
    assert_eq!(graph(text, GraphFormat::SndLib, &options), with_hosts(nodes, &mbps, 1));
}
