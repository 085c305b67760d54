//! Other programs' files become scenarios that run.

use testing::Bounded;

use crate::support::Scratch;

const CM: &str = "\
Nodes 16
Connections 3
Triggers 1
0->1 id 1 start 0 size 100000 send_done_trigger 1
2->9 id 2 start 1500000 size 2000
9->12 id 3 trigger 1 size 4096
trigger id 1 oneshot
";

const TOPO: &str = "\
Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 1000
";

#[test]
fn a_matrix_is_imported_checked_and_run() {
    let scratch = Scratch::new("import");
    scratch.write("a.cm", CM);
    scratch.write("a.topo", TOPO);
    for topology in ["", "a.topo "] {
        let ran = scratch.narrows(&format!("import htsim a.cm {topology}--start-unit ps -o made.toml")).ok();
        assert_eq!(ran.out, "wrote made.toml\n");
        ran.reports(&["note: ", "one-way delay"]);
        scratch.narrows("check made.toml --quiet").ok();
        let summary = scratch.narrows("run made.toml --json").ok().json();
        assert_eq!(summary["flows"]["all"]["completed"], 3);
        assert_eq!(scratch.files("out/made").len(), 6);
    }
}

#[test]
fn a_name_that_no_scenario_can_have() {
    let scratch = Scratch::new("import");
    scratch.write("a.cm", CM);
    let output =
        scratch.command(["import", "htsim", "a.cm", "--start-unit", "ps", "-o", "my matrix (2).toml"]).finish();
    assert!(output.status.success());
    assert!(scratch.read("my matrix (2).toml").contains("name = \"my-matrix--2-\""));
    assert!(scratch.command(["check", "my matrix (2).toml", "-q"]).finish().status.success());
}

#[test]
fn long_matrices_write_flows_to_a_csv_file() {
    let scratch = Scratch::new("import");
    let flow = |i: u32| format!("{}->{} start {i} size 100\n", i % 16, (i + 1) % 16);
    let flows = (0..1200).map(flow).collect::<Vec<_>>().concat();
    scratch.write("a.cm", &format!("Nodes 16\nConnections 1200\n{flows}"));
    let ran = scratch.narrows("import htsim a.cm --start-unit us -o sub.toml").ok();
    assert_eq!(ran.out, "wrote sub.flows.csv\nwrote sub.toml\n");
    let summary = scratch.narrows("run sub.toml --json").ok().json();
    assert_eq!(summary["flows"]["all"]["completed"], 1200);
}

#[test]
fn mistakes() {
    let scratch = Scratch::new("import");
    scratch.write("a.cm", &CM.replace("size 2000", "size two"));
    std::fs::write(scratch.path("binary.cm"), [0xff, 0xfe, 0]).unwrap();
    let before = scratch.tree();
    scratch.narrows("import htsim a.cm --start-unit ps -o made.toml").fails(2, &["a.cm:5:", "`two`", "^^^"]);
    scratch.write("a.cm", CM);
    scratch.narrows("import htsim a.cm -o no.toml").fails(2, &["a.cm:5:17", "--start-unit ps", "--start-unit us"]);
    scratch.narrows("import htsim a.cm --start-unit ns -o no.toml").fails(2, &["--start-unit", "ns"]);
    scratch
        .narrows("import htsim a.cm --start-unit ps -o no/made.toml")
        .fails(2, &["cannot write `no/made.toml`", "No such file"]);
    scratch.narrows("import htsim a.cm").fails(2, &["--out"]);
    scratch.narrows("import htsim missing.cm -o x.toml").fails(2, &["cannot read `missing.cm`: No such file"]);
    scratch.narrows("import htsim binary.cm -o x.toml").fails(2, &["cannot read `binary.cm`", "UTF-8", "UTF-16"]);
    assert_eq!(scratch.tree(), before);
}

const HPCC_TOPOLOGY: &str = "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";

#[test]
fn files_of_hpccs_simulator_are_imported_and_checked() {
    let scratch = Scratch::new("import-hpcc");
    scratch.write("topology.txt", HPCC_TOPOLOGY);
    scratch.write("flow.txt", "2\n0 3 3 100 1000000 0.001\n1 3 3 100 1000000 0.001\n");
    scratch.write("config.txt", "CC_MODE 8\nRATE_AI 50Mb/s\nKMIN_MAP 1 100000000000 300\nKMAX_MAP 1 100000000000 300\nPMAX_MAP 1 100000000000 1.0\nBUFFER_SIZE 32\nENABLE_TRACE 1\n");
    let ran = scratch.narrows("import hpcc topology.txt flow.txt config.txt -o made.toml").ok();
    assert_eq!(ran.out, "wrote made.toml\n");
    ran.reports(&["note: ", "ENABLE_TRACE", "retransmission timer"]);
    let checked = scratch.narrows("check made.toml").ok();
    for part in ["1 switch of tier edge", "pauses at 0.125 of what is left", "headroom 38 kB", "buffer 33.6 MB"] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    scratch.narrows("import hpcc topology.txt flow.txt -o bare.toml").ok();
    scratch.narrows("check bare.toml --quiet").ok();
    scratch.write("bad.txt", "1\n0 4 3 100 5 0\n");
    scratch.narrows("import hpcc topology.txt bad.txt -o bad.toml").fails(2, &["bad.txt:2:3"]);
}

const SCHEDULE: &str = "\
num_ranks 4
rank 0 {
l1: calc 2000
l2: send 100000b to 3 tag 1
l3: recv 4096b from 3 tag 2
l2 requires l1
}
rank 1 {
send 5000b to 2
}
rank 2 {
recv 5000b from 1
}
rank 3 {
l1: recv 100000b from 0 tag 1
l2: send 4096b to 0 tag 2 cpu 1
l2 requires l1
}
";

#[test]
fn a_schedule_is_imported_checked_and_run() {
    let scratch = Scratch::new("import-goal");
    scratch.write("a.goal", SCHEDULE);
    scratch.narrows("import goal a.goal --eager 65536 -o made.toml").ok().reports(&["64KiB"]);
    let ran = scratch.narrows("import goal a.goal -o made.toml").ok();
    assert_eq!(ran.out, "wrote made.toml\n");
    ran.reports(&["note: 4 ranks, placement block", "two datacenters", "acknowledged"]);
    scratch.narrows("check made.toml --quiet").ok();
    let imported = scratch.read("made.toml");
    assert!(imported.contains("{ src = 3, dst = 0, size = 4096, after = \"received:0\" }"), "{imported}");
    let summary = scratch.narrows("run made.toml --json").ok().json();
    assert_eq!(summary["flows"]["all"]["completed"], 3);

    // On the network of another scenario, which keeps its schemes.
    scratch.write("net.toml", "name = \"net\"\nstop = \"20s\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n[schemes.u]\nlaw = \"unocc\"\n[[traffic]]\nkind = \"permutation\"\nsize = 5\n[grid]\nseed = [1, 2]\n");
    let ran = scratch.narrows("import goal a.goal --scenario net.toml --placement packed -o on.toml").ok();
    ran.reports(&["placement packed", "net.toml", "`grid`"]);
    let imported = scratch.read("on.toml");
    assert!(
        imported.contains("unocc") && imported.contains("stop = \"20s\"") && !imported.contains("permutation"),
        "{imported}"
    );
    scratch.narrows("check on.toml --quiet").ok();
    scratch.write("small.toml", &scratch.read("net.toml").replace("hosts = 4", "hosts = 3"));
    let before = scratch.tree();
    scratch.narrows("import goal a.goal --scenario small.toml -o no.toml").fails(2, &["small.toml"]);
    scratch.write("a.goal", &SCHEDULE.replace("from 1", "from 3"));
    scratch.narrows("import goal a.goal -o no.toml").fails(2, &["a.goal:12:1"]);
    assert_eq!(scratch.tree(), before);
}

const ZOO: &str = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d38" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">52.5</data><data key="d32">13.4</data><data key="d33">Berlin</data></node>
    <node id="1"><data key="d29">48.9</data><data key="d32">2.35</data><data key="d33">Paris</data></node>
    <node id="2"><data key="d33">Praha</data></node>
    <edge source="0" target="1"><data key="d38">10000000000.0</data></edge>
    <edge source="0" target="2" />
  </graph>
</graphml>
"#;

/// Rates and delays without units in the file.
const UNITS: &str = r#"<graphml><key id="r" for="edge" attr.name="bandwidth"/><key id="d" for="edge" attr.name="delay"/>
  <graph edgedefault="undirected"><node id="a"/><node id="b"/>
  <edge source="a" target="b"><data key="r">2.5</data><data key="d">4</data></edge></graph></graphml>"#;

const LAB: &str = "name: lab\ntopology:\n  nodes:\n    leaf: {kind: nokia_srlinux}\n    c1: {kind: linux}\n    c2: {kind: linux}\n  links:\n    - endpoints: [\"leaf:e1-1\", \"c1:eth1\"]\n    - endpoints: [\"leaf:e1-2\", \"c2:eth1\"]\n";

const SNDLIB: &str = "?SNDlib native format; type: network; version: 1.0\nNODES (\n  Bonn ( 7.10 50.74 )\n  Ulm ( 9.99 48.40 )\n)\nLINKS (\n  L1 ( Bonn Ulm ) 40.00 1.0 0.0 0.0 ( 155.00 1.00 )\n)\nDEMANDS (\n)\n";

#[test]
fn networks_are_imported_checked_and_run() {
    let scratch = Scratch::new("import-graph");
    scratch.write("zoo.graphml", ZOO);
    scratch.write("units.graphml", UNITS);
    scratch.write("links.csv", "from,to,rate_Gbps,delay\nh1,s,10,1us\nh2,s,10,1us\n");
    scratch.write("lab.clab.yml", LAB);
    scratch.write("small.txt", SNDLIB);
    for (line, notes, hosts) in [
        (
            "graphml units.graphml --hosts 2 --unit 10Gbps --delay-unit 500us",
            ["each of 2 switches has 2 hosts, at 25Gbps", "separate 2 datacenters"],
            4,
        ),
        (
            "graphml zoo.graphml --hosts 2 --rate 40Gbps",
            ["1 link with the delay of light", "separate 3 datacenters"],
            6,
        ),
        ("links links.csv", ["2 nodes with one link are hosts", "DCTCP"], 2),
        ("containerlab lab.clab.yml --rate 1Gbps", ["2 links without a rate: 1Gbps", "(--delay)"], 2),
        ("sndlib small.txt --unit 1Gbps", ["left out: DEMANDS", "each of 2 switches has a host, at 40Gbps"], 2),
    ] {
        let ran = scratch.narrows(&format!("import {line} -o net.toml")).ok();
        ran.reports(&notes);
        scratch.narrows("check net.toml --quiet").ok();
        let summary = scratch.narrows("run net.toml --json --force").ok().json();
        assert_eq!(summary["flows"]["all"]["completed"], hosts, "{line}");
    }
    // Traffic on an imported network.
    scratch.write("a.goal", "num_ranks 2\nrank 0 {\nsend 10b to 1\n}\nrank 1 {\nrecv 10b from 0\n}\n");
    scratch.narrows("import goal a.goal --scenario net.toml -o both.toml").ok();
    assert!(scratch.read("both.toml").contains("name = \"Bonn\""));
    scratch.write("links.csv", "from,to,delay\na,b,soon\n");
    let before = scratch.tree();
    scratch.narrows("import links links.csv -o no.toml").fails(2, &["links.csv:2:5", "soon"]);
    scratch.narrows("import graphml zoo.graphml --rate 10 -o no.toml").fails(2, &["--rate:1:1", "no unit"]);
    scratch.narrows("import graphml units.graphml -o no.toml").fails(2, &["units.graphml:3:3", "2.5", "--unit"]);
    scratch
        .narrows("import graphml units.graphml --unit 1Gbps -o no.toml")
        .fails(2, &["units.graphml:3:3", "--delay-unit"]);
    scratch.narrows("import sndlib small.txt -o no.toml").fails(2, &["small.txt:7:3", "40", "--unit"]);
    assert_eq!(scratch.tree(), before);
}

/// A capture of pcap: raw IPv4 packets of UDP, each with its time in microseconds, the last byte of both addresses, and the bytes
/// of its payload.
fn capture(packets: &[(u32, u8, u8, u16)]) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101].iter().flat_map(|it| it.to_le_bytes()).collect();
    for &(us, from, to, payload) in packets {
        let mut packet = vec![0x45, 0];
        packet.extend((28 + payload).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to, 0, 9, 0, 10]);
        packet.extend((8 + payload).to_be_bytes());
        packet.extend([0, 0]);
        packet.resize(packet.len() + usize::from(payload), 7);
        let length = packet.len() as u32;
        file.extend([us / 1_000_000, us % 1_000_000, length, length].iter().flat_map(|it| it.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn traffic_is_imported_checked_and_run() {
    let scratch = Scratch::new("import-traffic");
    scratch.write("flows.csv", "start_ms,src,dst,bytes\n0,web,db,10000\n2.5,db,web,1MB\n");
    scratch.write("nf.csv", "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n2024-02-29 23:59:59,2024-03-01 00:00:02,3.000,10.0.0.1,10.0.0.2,443,5000,TCP,.AP.SF,0,0,10,1500,3,120\nSummary\nflows\n1\n");
    std::fs::write(scratch.path("a.pcap"), capture(&[(5, 1, 2, 900), (9, 1, 2, 900), (12, 3, 2, 100)])).unwrap();
    for (line, notes, flows) in [
        ("flows flows.csv", "web on dc0.", 2),
        ("netflow nf.csv", "as fast as its law lets it", 2),
        ("pcap a.pcap --placement packed", "10.0.0.3 on dc1.host0", 2),
    ] {
        let ran = scratch.narrows(&format!("import {line} -o made.toml")).ok();
        ran.reports(&[notes, "two datacenters"]);
        scratch.narrows("check made.toml --quiet").ok();
        let summary = scratch.narrows("run made.toml --json --force").ok().json();
        assert_eq!(summary["flows"]["all"]["completed"], flows, "{line}");
    }
    assert!(scratch.read("made.toml").contains("{ start = \"0s\", src = 0, dst = 1, size = 1800 }"));
    // On a network that has hosts of these names.
    scratch.write("links.csv", "from,to\nweb,s\ndb,s\nother,s\n");
    scratch.narrows("import links links.csv -o net.toml").ok();
    let ran = scratch.narrows("import flows flows.csv --scenario net.toml -o both.toml").ok();
    assert!(!ran.err.contains("order of appearance"), "{}", ran.err);
    assert!(scratch.read("both.toml").contains("src = 1, dst = 0, size = 1000000"), "{}", scratch.read("both.toml"));
    let before = scratch.tree();
    scratch.write("flows.csv", "start_ms,src,dst,bytes\n0,web,web,10000\n");
    scratch.narrows("import flows flows.csv -o no.toml").fails(2, &["flows.csv:2:7", "column `dst`: `web`"]);
    scratch.narrows("import pcap flows.csv -o no.toml").fails(2, &["`flows.csv`, byte 0"]);
    assert_eq!(scratch.tree(), before);
}

#[test]
fn control_characters_of_a_list_of_flows_are_escaped() {
    let scratch = Scratch::new("import-control");
    let hostile = "\u{1b}[31mx\u{1b}]0;t\u{7}\u{9b}2J\u{8}\u{7f}";
    let before = scratch.tree();
    for (row, location) in [
        (format!("0s,{hostile},{hostile},5"), ":2:"),
        (format!("{hostile},a,b,5"), ":2:1"),
        (format!("0s,a,b,{hostile}"), ":2:8"),
        (format!("0s,a,b,5,{hostile}"), ":2:10"),
        (format!("0s,,{hostile},5"), ":2:4"),
        (format!("0s,a,{hostile},5"), ":2:6"),
    ] {
        scratch.write("flows.csv", &format!("start,src,dst,bytes\n{row}\n"));
        let ran = scratch.narrows("import flows flows.csv -o no.toml").fails(2, &[&format!("flows.csv{location}")]);
        assert!(ran.err.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", ran.err);
        assert!(ran.err.contains("\u{241b}[31mx"), "{:?}", ran.err);
    }
    scratch.write("flows.csv", &format!("start,src,dst,bytes,{hostile}\n"));
    let ran = scratch.narrows("import flows flows.csv -o no.toml").fails(2, &["flows.csv:1:21", "\u{241b}[31mx"]);
    assert!(ran.err.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", ran.err);
    std::fs::remove_file(scratch.path("flows.csv")).unwrap();
    assert_eq!(scratch.tree(), before);
}

/// The lines of a scenario that are flows.
fn flows_of(toml: &str) -> Vec<&str> {
    toml.lines().filter(|line| line.contains("src = ")).collect()
}

#[test]
fn an_algorithm_of_msccl_is_imported_checked_and_run() {
    let scratch = Scratch::new("import-msccl");
    let gpu = |id: u32| {
        let other = 1 - id;
        format!(
            "<gpu id=\"{id}\"><tb id=\"0\" send=\"{other}\" recv=\"{other}\" chan=\"0\"><step s=\"0\" type=\"s\" cnt=\"1\" depid=\"-1\" deps=\"-1\"/><step s=\"1\" type=\"rrcs\" cnt=\"1\"/><step s=\"2\" type=\"r\" cnt=\"1\"/></tb></gpu>"
        )
    };
    let text = format!(
        "<algo name=\"ring\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allreduce\">\n{}\n{}\n</algo>\n",
        gpu(0),
        gpu(1)
    );
    scratch.write("ring.xml", &text);
    let ran = scratch.narrows("import msccl ring.xml --size 1MB -o made.toml").ok();
    ran.reports(&["2 ranks", "1MB"]);
    let imported = scratch.read("made.toml");
    // A whole number is bytes.
    scratch.narrows("import msccl ring.xml --size 1000000 -o bytes.toml").ok();
    assert_eq!(flows_of(&scratch.read("bytes.toml")), flows_of(&imported));
    assert!(
        imported.contains("size = 500000, after = \"received:2\"") || imported.contains("\"begun:0\", \"received:2\""),
        "{imported}"
    );
    scratch.narrows("check made.toml --quiet").ok();
    assert_eq!(scratch.narrows("run made.toml --json").ok().json()["flows"]["all"]["completed"], 4);
    scratch.write("ring.xml", &text.replacen("rrcs", "rrc", 1));
    let before = scratch.tree();
    scratch.narrows("import msccl ring.xml --size 1MB -o no.toml").fails(2, &["ring.xml:3"]);
    scratch.narrows("import msccl ring.xml --size much -o no.toml").fails(2, &["--size:1:1"]);
    assert_eq!(scratch.tree(), before);
}

/// A Chakra trace of one all-reduce of 1000 bytes, of the group `g`, after a computation of 5 us.
fn trace() -> Vec<u8> {
    let mut file = b"\x07\x0a\x050.0.4".to_vec();
    let attribute = |name: &str, value: &[u8]| {
        let name = [&[0x0a, name.len() as u8], name.as_bytes(), value].concat();
        [&[0x52, name.len() as u8], name.as_slice()].concat()
    };
    let calc = b"\x08\x01\x18\x04\x38\x05".to_vec();
    let size = attribute("comm_size", b"\x48\xe8\x07");
    let group = attribute("pg_name", b"\xea\x01\x01g");
    let all_reduce =
        [b"\x08\x02\x18\x07\x22\x01\x01".to_vec(), attribute("comm_type", b"\x48\x00"), size, group].concat();
    for node in [calc, all_reduce] {
        file.push(node.len() as u8);
        file.extend(node);
    }
    file
}

#[test]
fn chakra_traces_are_imported_checked_and_run() {
    let scratch = Scratch::new("import-chakra");
    for rank in 0..4 {
        std::fs::write(scratch.path(&format!("t.{rank}.et")), trace()).unwrap();
    }
    scratch.write("groups.json", "{\"g\": [0, 1, 2, 3]}");
    let ran = scratch.narrows("import chakra t.3.et t.0.et t.2.et t.1.et --groups groups.json -o made.toml").ok();
    ran.reports(&["4 ranks"]);
    let imported = scratch.read("made.toml");
    assert!(imported.contains("{ start = \"5us\", src = 0, dst = 1, size = 250 }"), "{imported}");
    scratch.narrows("check made.toml --quiet").ok();
    assert_eq!(scratch.narrows("run made.toml --json").ok().json()["flows"]["all"]["completed"], 4 * 6);
    let before = scratch.tree();
    scratch.narrows("import chakra t.0.et t.1.et -o no.toml").fails(2, &["`t.0.et`, byte ", "the group `g`"]);
    scratch.narrows("import chakra -o no.toml").fails(2, &["TRACES"]);
    assert_eq!(scratch.tree(), before);
}

const WORKLOAD: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n\
    1\nattention\t-1\t1000\tALLREDUCE\t4000\t2000\tNONE\t0\t3000\tREDUCESCATTER\t6000\t50\n";

#[test]
fn a_workload_of_simai_is_imported_checked_and_run() {
    let scratch = Scratch::new("import-simai");
    scratch.write("a.txt", WORKLOAD);
    let ran = scratch.narrows("import simai a.txt --passes 2 -o made.toml").ok();
    ran.reports(&["4 ranks, placement block"]);
    scratch.narrows("check made.toml --quiet").ok();
    assert_eq!(scratch.narrows("run made.toml --json").ok().json()["flows"]["all"]["completed"], 2 * 4 * 3);
    // A workload of an older AICB does not state the number of ranks.
    scratch.write("old.txt", &WORKLOAD.replace("all_gpus: 4 ", ""));
    scratch.narrows("import simai old.txt --passes 2 --ranks 4 -o old.toml").ok();
    assert_eq!(flows_of(&scratch.read("old.toml")), flows_of(&scratch.read("made.toml")));
    scratch.write("a.txt", &WORKLOAD.replace("pp: 1", "pp: 8"));
    let before = scratch.tree();
    scratch.narrows("import simai old.txt -o no.toml").fails(2, &["old.txt:1:1", "no `all_gpus:`", "--ranks"]);
    scratch.narrows("import simai old.txt --ranks 3 -o no.toml").fails(2, &["old.txt:1:"]);
    scratch.narrows("import simai old.txt --ranks 0 -o no.toml").fails(2, &["--ranks"]);
    scratch.narrows("import simai a.txt -o no.toml").fails(2, &["a.txt:1:71", "[[job]]"]);
    scratch.narrows("import simai a.txt --passes 0 -o no.toml").fails(2, &["--passes"]);
    assert_eq!(scratch.tree(), before);
}

/// A scenario that names another program's file: its notes are printed once, and a run is identified by the contents of
/// the file.
#[test]
fn a_scenario_names_another_programs_file() {
    let scratch = Scratch::new("import-kind");
    scratch.write("a.goal", SCHEDULE);
    scratch.write("net.toml", "name = \"net\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n[schemes.u]\nlaw = \"unocc\"\n[schemes.d]\nlaw = \"dctcp\"\n[[traffic]]\nkind = \"import\"\nformat = \"goal\"\nfile = \"a.goal\"\n");
    let checked = scratch.narrows("check net.toml").ok();
    let note = "a.goal: 4 ranks, placement block: 3 messages as flows";
    assert_eq!(checked.out.matches(note).count(), 1, "{}", checked.out);
    let ran = scratch.narrows("run net.toml").ok();
    assert_eq!(ran.out.matches(note).count() + ran.err.matches(note).count(), 1, "{ran}");
    let completed = |force: &str| {
        let ran = scratch.narrows(&format!("run net.toml --json {force}")).ok();
        ran.json()["runs"][0]["flows"]["all"]["completed"].clone()
    };
    assert_eq!(completed(""), 3);
    scratch.write(
        "a.goal",
        &SCHEDULE
            .replace("send 5000b to 2", "send 5000b to 2\nsend 7b to 2 tag 9")
            .replace("recv 5000b from 1", "recv 5000b from 1\nrecv 7b from 1 tag 9"),
    );
    scratch.narrows("run net.toml").fails(2, &["(input a.goal)"]);
    assert_eq!(completed("--force"), 4);
    scratch.write("a.goal", &SCHEDULE.replace("from 1", "from 3"));
    let before = scratch.tree();
    scratch.narrows("run net.toml").fails(2, &["a.goal:12:1"]);
    assert_eq!(scratch.tree(), before);
}
