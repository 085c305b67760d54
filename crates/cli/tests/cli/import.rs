//! Another simulator's files become scenarios that run.

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
        let ran = scratch.narrows(&format!("import htsim a.cm {topology}-o made.toml")).ok();
        assert_eq!(ran.out, "wrote made.toml\n");
        ran.says(&["note: ", "one-way delay"]);
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
    let output = scratch.command(["import", "htsim", "a.cm", "-o", "my matrix (2).toml"]).output().unwrap();
    assert!(output.status.success());
    assert!(scratch.read("my matrix (2).toml").contains("name = \"my-matrix--2-\""));
    assert!(scratch.command(["check", "my matrix (2).toml", "-q"]).status().unwrap().success());
}

#[test]
fn a_long_matrix_has_its_flows_beside_it() {
    let scratch = Scratch::new("import");
    let flow = |i: u32| format!("{}->{} start {i} size 100\n", i % 16, (i + 1) % 16);
    let flows = (0..1200).map(flow).collect::<Vec<_>>().concat();
    scratch.write("a.cm", &format!("Nodes 16\nConnections 1200\n{flows}"));
    let ran = scratch.narrows("import htsim a.cm -o sub.toml").ok();
    assert_eq!(ran.out, "wrote sub.flows.csv\nwrote sub.toml\n");
    let summary = scratch.narrows("run sub.toml --json").ok().json();
    assert_eq!(summary["flows"]["all"]["completed"], 1200);
}

#[test]
fn mistakes() {
    let scratch = Scratch::new("import");
    scratch.write("a.cm", &CM.replace("size 2000", "size two"));
    let before = scratch.tree();
    scratch.narrows("import htsim a.cm -o made.toml").fails(2, &["a.cm:5:", "`two`", "^^^"]);
    scratch.write("a.cm", CM);
    scratch.narrows("import htsim a.cm -o no/made.toml").fails(2, &["cannot write `no/made.toml`", "No such file"]);
    scratch.narrows("import htsim a.cm").fails(2, &["--output"]);
    assert_eq!(scratch.tree(), before);
}
