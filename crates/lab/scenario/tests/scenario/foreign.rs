//! Other programs' traffic: a workload of SimAI flow by flow, and `kind = "import"` against `narrows import` of the same files.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use experiment::Outcome;
use scenario::import::{
    Base, GoalOptions, Imported, Placement, SimaiOptions, TrafficFormat, TrafficNames, import_chakra, import_goal,
    import_msccl, import_simai, import_traffic,
};
use scenario::{BuiltRun, Error, Overrides, load, parse};
use units::Time;

use crate::location::points_at;

/// Two datacenters of two hosts each, named `left.host0` to `right.host1`.
const NET: &str = "name = \"net\"\n[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\ntwo_datacenters = true\n\
                   [schemes.d]\nlaw = \"dctcp\"\n";
const OTHER: &str = "[[traffic]]\nkind = \"permutation\"\nsize = 1\n";

const HEADER: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 3 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0";

fn workload() -> String {
    format!(
        "{HEADER}\n2\nattention -1 1000 ALLREDUCE 4000 2000 NONE 0 3000 NONE 0 0\n\
         mlp\t-1\t500\tNONE\t0\t700\tALLGATHER 0\t900\tREDUCESCATTER\t6000\t50\n"
    )
}

fn passes(passes: u32, placement: Placement) -> SimaiOptions {
    SimaiOptions { placement, passes, ranks: None }
}

const NAMES: TrafficNames<'_> = TrafficNames { scenario: "made", traffic: "a.txt" };

/// By hand. Ranks 0 and 1 are tensor-parallel, and 2 and 3; 0 and 2 are data-parallel, and 1 and 3. A rank's flows: 1 us of
/// forward computing, then two steps of half of 4,000 bytes to its tensor-parallel neighbour, the second when the first has
/// come and begun. Back begins 500 ns after the second has come: 700 ns and 900 ns later, 2.1 us in all, half of 6,000 bytes go to
/// the data-parallel neighbour. Nothing waits for that: attention's gradients, 2 us and 3 us, send nothing.
#[test]
fn simai_workload_flows() {
    let base = Base { text: &format!("{NET}{OTHER}"), name: "net.toml" };
    let made = import_simai(&workload(), &passes(1, Placement::Packed), Some(&base), &NAMES)
        .unwrap_or_else(|it| panic!("{it}"));
    let flows: Vec<&str> = made.toml.lines().filter(|line| line.contains("src = ")).map(str::trim).collect();
    let expected: Vec<String> = (0..4u32)
        .flat_map(|rank| {
            // Flow 3 r + i is the i-th of rank r. Events stand by their flows' numbers.
            let (tensor, data) = (rank ^ 1, rank ^ 2);
            let after = |step: u32, later: &str| {
                let mut events = [
                    (3 * rank + step, format!("\"begun:{}{later}\"", 3 * rank + step)),
                    (3 * tensor + step, format!("\"received:{}{later}\"", 3 * tensor + step)),
                ];
                events.sort();
                events.map(|(_, event)| event).join(", ")
            };
            [
                format!("{{ start = \"1us\", src = {rank}, dst = {tensor}, size = 2000 }},"),
                format!("{{ src = {rank}, dst = {tensor}, size = 2000, after = [{}] }},", after(0, "")),
                format!("{{ src = {rank}, dst = {data}, size = 3000, after = [{}] }},", after(1, "+2.1us")),
            ]
        })
        .collect();
    let flows: Vec<String> = flows.iter().map(|flow| format!("{},", flow.trim_end_matches(','))).collect();
    assert_eq!(flows, expected, "{}", made.toml);
    let notes = made.notes.join("\n");
    for part in [
        "2 layers forward and back, 1 pass: groups of 2 tensor-parallel, 1 expert-parallel and 2 data-parallel ranks",
        "2 collectives: sends",
        "`ga: 3` repeats nothing",
        "left out: 1 collective of no bytes",
        "left out, since nothing waits for it: ",
    ] {
        assert!(notes.contains(part), "{part}\n{notes}");
    }
    assert!(!notes.contains("overlap"), "{notes}");
    // A second pass begins when the first is over, and a layer when its update is.
    let twice = import_simai(&workload(), &passes(2, Placement::Packed), Some(&base), &NAMES).unwrap();
    assert_eq!(twice.toml.lines().filter(|line| line.contains("src = ")).count(), 24);
}

#[test]
fn invalid_workloads_are_errors_at_their_line() {
    for (from, to, location, name) in [
        ("pp: 1", "pp: 2", "a.txt:1:71", ""),
        ("ALLREDUCE 4000", "BROADCAST 4000", "a.txt:3:19", "`BROADCAST`"),
        ("\t700\t", "\t7e2\t", "a.txt:4:19", "`7e2`"),
        ("\n2\n", "\n3\n", "a.txt:2:1", ""),
        ("all_gpus: 4", "all_gpus: 6 later: 9", "nowhere", ""),
    ] {
        let text = workload().replacen(from, to, 1);
        let base = Base { text: &format!("{NET}{OTHER}"), name: "net.toml" };
        let error = import_simai(&text, &passes(1, Placement::Packed), Some(&base), &NAMES).unwrap_err();
        points_at(&error, location, &[name]);
    }
    let foreign = import_simai("root:x:0:0\n", &passes(1, Placement::Block), None, &NAMES);
    points_at(&foreign.unwrap_err(), "nowhere", &[]);
}

/// A folder of its own for a test.
struct ForeignDir(PathBuf);

impl ForeignDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-foreign-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    fn built(&self, name: &str) -> Result<BuiltRun, Error> {
        load(self.0.join(name), &Overrides::default())?.runs()[0].build()
    }

    /// The run of a network with an entry of traffic.
    fn with(&self, entry: &str) -> Result<BuiltRun, Error> {
        self.write("kind.toml", format!("{NET}[[traffic]]\nkind = \"import\"\n{entry}"));
        self.built("kind.toml")
    }
}

impl Drop for ForeignDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(built: &BuiltRun) -> Outcome {
    engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true)
}

const GOAL: &str = "num_ranks 3\nrank 0 {\na: calc 2000\ns: send 100000b to 1 tag 1\ns requires a\nt: send 50b to 2\nt requires s\n}\n\
                    rank 1 {\nr: recv 100000b from 0 tag 1\nc: calc 700\nc requires r\ns: send 9000b to 2\ns requires c\n}\n\
                    rank 2 {\nrecv 9000b from 1\nrecv 50b from 0\n}\n";

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

/// A capture of pcap with three packets of UDP over IPv4: milliseconds, last bytes of both addresses, bytes of payload.
fn capture() -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101].iter().flat_map(|it| it.to_le_bytes()).collect();
    for (ms, from, to, payload) in [(5u32, 1u8, 2u8, 900u16), (9, 2, 1, 400), (12, 3, 2, 100)] {
        let mut packet = vec![0x45, 0];
        packet.extend((28 + payload).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to, 0, 9, 0, 10]);
        packet.extend((8 + payload).to_be_bytes());
        packet.extend([0, 0]);
        packet.resize(packet.len() + usize::from(payload), 7);
        let length = packet.len() as u32;
        file.extend([0, ms * 1_000, length, length].iter().flat_map(|it| it.to_le_bytes()));
        file.extend(packet);
    }
    file
}

/// The flows of an entry are those of the imported scenario, and begin and end at the same picoseconds.
#[test]
fn an_entry_is_the_imported_scenario() {
    let folder = ForeignDir::new("same");
    let gpu = |id: u32| {
        let other = 1 - id;
        format!(
            "<gpu id=\"{id}\"><tb id=\"0\" send=\"{other}\" recv=\"{other}\" chan=\"0\"><step s=\"0\" type=\"s\" cnt=\"1\"/><step s=\"1\" type=\"rrcs\" cnt=\"1\"/><step s=\"2\" type=\"r\" cnt=\"1\"/></tb></gpu>"
        )
    };
    let msccl = format!("<algo name=\"ring\" nchunksperloop=\"2\" ngpus=\"2\">\n{}\n{}\n</algo>\n", gpu(0), gpu(1));
    // As few as are listed inside a scenario, and more than that.
    let row = |flow: u32| format!("{flow},{},{},{}\n", flow % 4, (flow + 1) % 4, 1_000 + flow);
    let flows = format!("start_ns,src,dst,bytes\n{}", (0..1_200).map(row).collect::<String>());
    let records = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n2024-02-29 23:59:59,2024-03-01 00:00:02,3.000,10.0.0.1,10.0.0.2,443,5000,TCP,.AP.SF,0,0,10,1500,3,120\n";
    // Without the number of ranks.
    let older = workload().replace("all_gpus: 4 ", "");
    folder.write("old.txt", &older);
    let traces = [("t.1.et", trace()), ("t.0.et", trace()), ("t.2.et", trace())];
    for (name, bytes) in &traces {
        folder.write(name, bytes);
    }
    let groups = "{\"g\": [2, 0, 1]}";
    for (name, bytes) in [
        ("a.goal", GOAL.as_bytes()),
        ("a.xml", msccl.as_bytes()),
        ("a.txt", workload().as_bytes()),
        ("a.csv", flows.as_bytes()),
        ("nf.csv", records.as_bytes()),
        ("a.pcap", &capture()),
        ("g.json", groups.as_bytes()),
    ] {
        folder.write(name, bytes);
    }
    let base = format!("{NET}{OTHER}");
    let base = Some(&Base { text: &base, name: "net.toml" });
    let names = |traffic| TrafficNames { scenario: "made", traffic };
    let goal =
        |placement, eager| import_goal(GOAL.as_bytes(), &GoalOptions { placement, eager }, base, &names("a.goal"));
    let (block, cyclic, packed) = (Placement::Block, Placement::Cyclic, Placement::Packed);
    let cases: Vec<(&str, Result<Imported, Error>, usize)> = vec![
        ("format = \"goal\"\nfile = \"a.goal\"", goal(block, "65535B"), 3),
        ("format = \"goal\"\nfile = \"a.goal\"\neager = \"1B\"\nplacement = \"cyclic\"", goal(cyclic, "1B"), 3),
        (
            "format = \"chakra\"\nfiles = [\"t.1.et\", \"t.0.et\", \"t.2.et\"]\ngroups = \"g.json\"",
            import_chakra(&traces, Some((groups, "g.json")), base, block, "made"),
            12,
        ),
        (
            "format = \"msccl\"\nfile = \"a.xml\"\nsize = \"1MB\"\nplacement = \"packed\"",
            import_msccl(&msccl, "1MB", base, packed, &names("a.xml")),
            4,
        ),
        (
            "format = \"simai\"\nfile = \"a.txt\"",
            import_simai(&workload(), &passes(1, block), base, &names("a.txt")),
            12,
        ),
        (
            "format = \"simai\"\nfile = \"a.txt\"\npasses = 3\nplacement = \"cyclic\"",
            import_simai(&workload(), &passes(3, cyclic), base, &names("a.txt")),
            36,
        ),
        (
            "format = \"simai\"\nfile = \"old.txt\"\nranks = 4",
            import_simai(&older, &SimaiOptions { ranks: Some(4), ..passes(1, block) }, base, &names("old.txt")),
            12,
        ),
        (
            "format = \"flows\"\nfile = \"a.csv\"",
            import_traffic(flows.as_bytes(), TrafficFormat::Flows, base, block, &names("a.csv")),
            1_200,
        ),
        (
            "format = \"netflow\"\nfile = \"nf.csv\"\nplacement = \"packed\"",
            import_traffic(records.as_bytes(), TrafficFormat::Netflow, base, packed, &names("nf.csv")),
            2,
        ),
        (
            "format = \"pcap\"\nfile = \"a.pcap\"",
            import_traffic(&capture(), TrafficFormat::Capture, base, block, &names("a.pcap")),
            3,
        ),
    ];
    for (entry, imported, count) in cases {
        let imported = imported.unwrap_or_else(|error| panic!("{entry}\n{error}"));
        if let Some((name, text)) = &imported.flows {
            folder.write(name, text);
        }
        folder.write("made.toml", &imported.toml);
        let made = folder.built("made.toml").unwrap_or_else(|error| panic!("{entry}\n{error}"));
        let kind = folder.with(entry).unwrap_or_else(|error| panic!("{entry}\n{error}"));
        assert_eq!(kind.setup.flows.len(), count, "{entry}");
        assert_eq!(kind.setup.flows, made.setup.flows, "{entry}");
        assert_eq!(kind.setup.dependencies, made.setup.dependencies, "{entry}");
        let (one, other) = (run(&kind), run(&made));
        assert_eq!(one.flows, other.flows, "{entry}");
        assert!(one.flows.iter().all(|flow| flow.completed != Time::NEVER), "{entry}");
        // The same notes, after the file's name.
        let said: Vec<&str> = kind.notes.iter().map(|note| note.split_once(": ").unwrap().1).collect();
        assert_eq!(said, imported.notes, "{entry}");
        // All files are inputs of the run.
        let files = if entry.contains("files") { 4 } else { 1 };
        assert_eq!(kind.inputs.len(), files, "{entry}");
    }
}

/// Another file of the same name is another input.
#[test]
fn records_cover_all_pages() {
    let folder = ForeignDir::new("content");
    let entry = "format = \"pcap\"\nfile = \"a.pcap\"";
    folder.write("a.pcap", capture());
    let before = folder.with(entry).unwrap().inputs;
    assert_eq!(before[0].content.bytes(), capture());
    let mut other = capture();
    *other.last_mut().unwrap() ^= 1;
    folder.write("a.pcap", other);
    assert_ne!(folder.with(entry).unwrap().inputs, before);
}

#[test]
fn later_start_shifts_the_schedule() {
    let folder = ForeignDir::new("start");
    folder.write("a.goal", GOAL);
    let entry = "format = \"goal\"\nfile = \"a.goal\"\n";
    let started = |entry: &str| {
        let built = folder.with(entry).unwrap();
        run(&built).flows.iter().map(|flow| flow.started).collect::<Vec<Time>>()
    };
    let (early, late) = (started(entry), started(&format!("{entry}start = \"3ms\"")));
    assert!(
        early.iter().zip(&late).all(|(early, late)| late.since(*early) == units::Span::from_ms(3)),
        "{early:?} {late:?}"
    );
}

#[test]
fn errors_have_byte_ranges() {
    let folder = ForeignDir::new("mistakes");
    folder.write("a.goal", GOAL.replace("from 1", "from 0"));
    folder.write("good.goal", GOAL);
    folder.write("a.csv", "start,src,dst,bytes\n0us,a,a,5\n");
    folder.write("few.csv", "start,src,dst,bytes\n0us,a,b,5\n0us,c,d,5\n0us,e,f,5\n");
    folder.write("typo.csv", "start,src,dst,bytes\n0us,left.host0,right.host1,5\n0us,left.host0,left.hots1,5\n");
    folder.write("a.txt", workload().replace("pp: 1", "pp: 2"));
    folder.write("secret", "root:$y$j9T$abc:20000:0:99999:7:::\n");
    folder.write("latin.csv", b"start,src,dst,bytes\n0us,\xe4,b,5\n");
    folder.write("a.et", [200, 200, 200, 4, 1]);
    for (entry, location, name) in [
        ("format = \"goal\"\nfile = \"a.goal\"", "a.goal:18:1", ""),
        ("format = \"flows\"\nfile = \"a.csv\"", "a.csv:2:7", "column `dst`: `a`"),
        ("format = \"flows\"\nfile = \"few.csv\"", "kind.toml:12:8", ""),
        ("format = \"flows\"\nfile = \"typo.csv\"", "typo.csv:3:16", "`left.host1`"),
        ("format = \"simai\"\nfile = \"a.txt\"", "a.txt:1:71", ""),
        ("format = \"simai\"\nfile = \"secret\"", "nowhere", "secret"),
        ("format = \"goal\"\nfile = \"secret\"", "nowhere", "secret"),
        ("format = \"chakra\"\nfiles = [\"a.et\"]", "kind.toml:12:9", "a.et"),
        ("format = \"chakra\"\nfile = \"a.et\"\ngroups = \"secret\"", "kind.toml:13:10", ""),
        ("format = \"pcap\"\nfile = \"secret\"", "kind.toml:12:8", "secret"),
        ("format = \"flows\"\nfile = \"latin.csv\"", "kind.toml:12:8", "latin.csv"),
        ("format = \"goal\"\nfile = \"none.goal\"", "kind.toml:12:8", ""),
        ("format = \"goal\"", "kind.toml:9:1", ""),
        ("format = \"goal\"\nfile = \"good.goal\"\nfiles = [\"x\"]", "kind.toml:13:9", "`files`"),
        ("format = \"chakra\"\nfile = \"a.et\"\nfiles = [\"a.et\"]", "kind.toml:13:9", ""),
        ("format = \"chakra\"\nfiles = []", "kind.toml:12:9", ""),
        ("format = \"goal\"\nfile = \"good.goal\"\npasses = 2", "kind.toml:13:10", "`passes`"),
        ("format = \"goal\"\nfile = \"good.goal\"\nranks = 2", "kind.toml:13:9", "`ranks`"),
        ("format = \"msccl\"\nfile = \"a.xml\"\neager = 3", "kind.toml:13:9", "`eager`"),
        ("format = \"msccl\"\nfile = \"good.goal\"", "kind.toml:11:10", "size = \"64MiB\""),
        ("format = \"gaol\"\nfile = \"good.goal\"", "kind.toml:11:10", "`goal`"),
    ] {
        let error = folder.with(entry).map(drop).unwrap_err();
        points_at(&error, location, &[name]);
        let error = error.to_string();
        assert!(!error.contains("j9T") && !error.contains('\u{e4}'), "{error}");
    }
}

/// Two entries may name one file.
#[test]
fn one_file_is_read_as_two_kinds() {
    let folder = ForeignDir::new("two");
    folder.write("a.csv", "start,src,dst,bytes\n1us,0,1,5\n");
    let more = "format = \"flows\"\nfile = \"a.csv\"\n[[traffic]]\nkind = \"list\"\nfile = \"a.csv\"\n";
    let error = folder.with(more).map(drop);
    assert!(error.is_ok(), "{error:?}");
    let reads = parse(&format!("{NET}{OTHER}"), "net.toml", &Overrides::default());
    assert!(reads.is_ok());
}

/// A ring's step waits for two events, however many steps there are: rings of 256 ranks are read.
#[test]
fn a_ring_of_many_ranks_waits_for_two_events_a_step() {
    let hosts = 256;
    let net = NET.replace("left = 2\nright = 2", "left = 128\nright = 128");
    let base = Base { text: &format!("{net}{OTHER}"), name: "net.toml" };
    let header = HEADER.replace("group: 2", "group: 256").replace("all_gpus: 4", "all_gpus: 256");
    let text = format!("{header}\n1\nlayer -1 1 ALLREDUCE 256000 1 NONE 0 1 NONE 0 0\n");
    let made =
        import_simai(&text, &passes(1, Placement::Block), Some(&base), &NAMES).unwrap_or_else(|it| panic!("{it}"));
    let (_, csv) = made.flows.unwrap();
    let flows: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(flows.len(), hosts * 2 * (hosts - 1));
    let events = |flow: &str| flow.matches("begun:").count() + flow.matches("received:").count();
    let waiting = flows.iter().filter(|flow| events(flow) == 2).count();
    assert_eq!(waiting, flows.len() - hosts, "{}", flows[1]);
    assert!(flows.iter().all(|flow| events(flow) % 2 == 0));
}
