//! `narrows emulate`: arguments that it refuses on any machine, and, as root, real packets.

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use testing::{Bounded, DEFAULT_TIMEOUT, Process, eventually, skipped_here, skipped_without};

use crate::json::is_summary;
use crate::support::{ProgramRun, Scratch, wait_for};

pub(crate) const PAIR: &str = r#"
name = "pair"
stop = "4s"
[topology]
kind = "dumbbell"
left = 1
right = 1
rate = "200Mbps"
delay = "5ms"
host_rate = "1Gbps"
host_delay = "100us"
two_datacenters = true
[port]
ecn = "off"
buffer = "bdp"
[host]
mss = 1448
header = 52
ack_size = 52
ack_every = 2
[schemes.cubic]
law = "cubic"
[schemes.reno]
law = "newreno"
[schemes.rare]
law = "mprdma"
[[traffic]]
kind = "list"
flows = [
  { src = 0, dst = 1, size = "10MB" },
  { src = 1, dst = 0, size = "20kB", start = "100ms" },
]
[monitor]
interval = "10ms"
ports = ["left>right"]
flows = "all"
"#;

/// Emulated hosts share names of devices and addresses: one test at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pair(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("pair.toml", PAIR);
    scratch
}

/// Returns whether this machine allows emulation: as root, with TUN devices.
fn can_emulate() -> bool {
    let tried = emulator::preflight();
    if let Err(error) = &tried {
        skipped_here(&error.to_string());
    }
    tried.is_ok()
}

/// The namespaces of emulated hosts that exist.
fn namespaces() -> Vec<String> {
    let listed = Command::new("ip").args(["netns", "list"]).stdin(Stdio::null()).finish();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| name.starts_with("narrows-")).map(str::to_owned).collect()
}

/// Namespaces of processes that have ended. Others may emulate at the same time as these tests.
fn left_behind() -> Vec<String> {
    let dead = |name: &String| {
        let process = name.split('-').nth(1).unwrap_or_default();
        !std::path::Path::new("/proc").join(process).exists()
    };
    namespaces().into_iter().filter(dead).collect()
}

#[test]
fn unsupported_scenarios_fail_without_leftovers() {
    let scratch = pair("refused");
    let before = scratch.tree();
    for (line, parts) in [
        (
            "--set host.load_balancing=spray",
            &[
                "does not support `host.load_balancing`, here \"spray\", of the scheme `cubic`",
                "--without host.load_balancing runs",
            ][..],
        ),
        (
            r#"--set host.recovery="go-back-n" --set host.on_ramp={threshold="1ms"}"#,
            &["does not support `host.recovery`", "nor does it support `host.on_ramp`"],
        ),
        ("--set schemes.cubic.params.cubic.beta=0.5", &["does not support `params.cubic.beta`"]),
        ("--without host.jitter", &["--without:1:1", "no scheme sets `host.jitter`"]),
        ("--set host.recovery=go-back-n -- true", &["does not support `host.recovery`"]),
        ("--set topology.left=80 -- true", &["81 hosts, and at most 64"]),
        (
            "--set topology.left=80 --set traffic=[{kind=\"incast\",receiver=\"left.host0\",inter=0,intra=70,size=\"1MB\"}]",
            &["71 hosts send or receive, and at most 64"],
        ),
        ("--set host.mss=500", &["552 B together, and 1280 to 65535"]),
        ("--pcap left>rihgt=x.pcapng", &["no port `left>rihgt`", "did you mean `left>right`?"]),
        ("--command-host letf.host0 -- true", &["no host `letf.host0`", "did you mean `left.host0`?"]),
        ("--command-host left.host0", &["--command-host", "COMMAND"]),
        ("--background left.host0 -- true", &["HOST=COMMAND"]),
        ("--pcap left>right", &["PORT=FILE"]),
        ("--pcap left>right=pair.toml", &["will not replace `pair.toml`: it is not a capture", "give --pcap another"]),
        ("--pcap left>right=out/pair-emulated/x.pcapng", &["results directory `out/pair-emulated`"]),
        ("--out real --pcap left>right=real/deep/x.pcapng", &["results directory `real`"]),
        ("--pcap left>right=x --pcap right>left=./x", &["names `./x` for two ports"]),
        ("--scheme cubci", &["no scheme `cubci`", "did you mean `cubic`?"]),
    ] {
        let line = format!("emulate pair.toml --scheme cubic {line}");
        scratch.narrows(&line).fails(2, parts);
        assert_eq!(scratch.tree(), before, "{line}");
    }
}

#[test]
fn the_long_haul_builds_without_a_warning() {
    let scratch = Scratch::new("long-haul");
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/long-haul.toml");
    let ran = scratch.narrows(&format!("check {}", shipped.display())).ok();
    assert!(ran.out.contains("2 runs") && !ran.out.contains("warning"), "{ran}");
}

#[test]
fn missing_root_is_a_one_line_error() {
    let scratch = pair("nobody");
    let _guard = exclusive();
    if can_emulate() {
        // As root, run as another user that may read the necessary files: it must be refused.
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", env!("CARGO_BIN_EXE_narrows"), "emulate"]);
        let path = scratch.path("pair.toml");
        let ran = command.arg(path).args(["--scheme", "cubic", "--out", "/nowhere/out"]).try_finish();
        let Ok(ran) = ran else { return skipped_without("missing_root_is_a_one_line_error", "setpriv") };
        let printed = String::from_utf8(ran.stderr).unwrap();
        if printed.contains("Permission denied") {
            return skipped_here("nobody may not read the test's directory");
        }
        assert_eq!((ran.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
        assert!(printed.contains("need root"), "{printed}");
    } else {
        let ran = scratch.narrows("emulate pair.toml --scheme cubic");
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{ran}");
    }
}

/// A busy machine starves the hosts, and the run, its table and a comparison with it report that.
#[test]
fn starved_hosts_make_a_run_questionable() {
    let scratch = pair("starved");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Takes minutes unless it is killed.
    let busy = "i=0; while [ $i -lt 1000000000 ]; do i=$((i + 1)); done";
    let hogs: Vec<Process> = (0..cores * 4).map(|_| Command::new("sh").args(["-c", busy]).start()).collect();
    let ran = scratch.narrows("emulate pair.toml --scheme cubic --out real").ok();
    drop(hogs);
    let summary: serde_json::Value = serde_json::from_str(&scratch.read("real/summary.json")).unwrap();
    let emulator = &summary["emulator"];
    assert!(emulator["validity"] != "sound", "{emulator:#}");
    assert!(!emulator["caveats"].as_array().unwrap().is_empty(), "{emulator:#}");
    assert!(ran.out.contains("waited for a processor in"), "{ran}");
    scratch.narrows("run pair.toml --scheme cubic --out simulated --quiet").ok();
    for flows in ["", " --flows"] {
        let compared = scratch.narrows(&format!("compare simulated real{flows}"));
        let head = |line: &&str| line.contains("ratio") || line.contains("base RTT");
        let rows: Vec<&str> = compared.out.lines().filter(|line| line.starts_with('│') && !head(line)).collect();
        let validity = emulator["validity"].as_str().unwrap();
        // By chance most metrics may be alike, and are not listed then.
        assert!(!rows.is_empty() && rows.iter().all(|row| row.contains(validity)), "{compared}");
    }
}

#[cfg(not(feature = "bpf"))]
#[test]
fn a_law_that_this_build_cannot_load_is_refused() {
    let scratch = pair("lawless");
    let _guard = exclusive();
    if can_emulate() {
        let before = scratch.tree();
        let parts = ["`rare` runs MPRDMA, which this build of narrows cannot load", "narrows kernel doctor"];
        scratch.narrows("emulate pair.toml").fails(2, &parts);
        assert_eq!(scratch.tree(), before);
    }
}

/// Laws of ours run in the kernel for the duration of the run, and their actions are in the results.
#[cfg(feature = "bpf")]
#[test]
fn bpf_laws_are_loaded_for_a_run() {
    let scratch = pair("ours");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    if let Err(reason) = kernel::doctor::may_load() {
        return skipped_here(&reason);
    }
    let available = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let before = available();
    let ran = scratch.narrows("emulate pair.toml --scheme rare --out real --json").ok();
    let run = ran.json();
    is_summary(&run);
    assert_eq!(run["flows"]["all"]["completed"], 2, "{run:#}");
    assert_eq!(available(), before);
    let warned = run["warnings"].to_string();
    match &kernel::probe::KernelProbe::get().sockets {
        Ok(()) => {
            assert!(run["law"]["actions"]["increases"].as_u64().unwrap() > 0, "{run:#}");
            assert!(!warned.contains("BPF storage"), "{warned}");
        }
        Err(_) => assert!(warned.contains("BPF storage"), "{warned}"),
    }
}

#[test]
fn simulated_and_emulated_results_compare() {
    let scratch = pair("both");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let line = "emulate pair.toml --scheme cubic --scheme reno --out real --json --pcap left>right=haul.pcapng";
    let ran = scratch.narrows(line).ok();
    let json = ran.json();
    for (run, law) in json["runs"].as_array().unwrap().iter().zip(["cubic", "reno"]) {
        is_summary(run);
        assert_eq!((&run["backend"], &run["emulator"]["congestion"][0]), (&"emulator".into(), &law.into()), "{run:#}");
        assert_eq!(run["flows"]["all"]["completed"], 2, "{run:#}");
        // 10 MB at 200 Mb/s are 400 ms; slow start takes a few round trips of 10 ms.
        let fct_ns = run["flows"]["all"]["fct_ns"]["max"].as_f64().unwrap();
        assert!((400e6..2_000e6).contains(&fct_ns), "{fct_ns}");
        // A round trip and a half, or two.
        assert!(run["flows"]["all"]["slowdown"]["p50"].as_f64().unwrap() >= 1.0, "{run:#}");
        let haul = &run["network"]["links"].as_array().unwrap().iter().find(|link| link["name"] == "left>right");
        let bytes = haul.unwrap()["bytes"].as_u64().unwrap();
        assert!((10_300_000..13_000_000).contains(&bytes), "{bytes}");
    }
    // Captures of the same command, given again, replace these; a person's captures stay.
    scratch.narrows(&format!("{line} --force")).ok();
    scratch.write("cubic-other.pcapng", "mine");
    let refused = ["will not replace `cubic-other.pcapng`"];
    scratch.narrows(&line.replace("haul.pcapng", "other.pcapng")).fails(2, &refused);
    assert!(!scratch.tree().iter().any(|name| name.contains(".partial")), "{:?}", scratch.tree());
    for file in ["cubic-haul.pcapng", "reno-haul.pcapng"] {
        // Ten megabytes crossed it, and a capture holds them whole.
        assert!(std::fs::metadata(scratch.path(file)).unwrap().len() > 10_000_000, "{file}");
    }
    let rates = std::fs::metadata(scratch.path("real/runs/cubic/flow_samples.parquet")).unwrap().len();
    assert!(rates > 1_000, "{rates}");
    assert_eq!(left_behind(), [""; 0]);

    scratch.narrows("run pair.toml --scheme cubic --scheme reno --out simulated --quiet").ok();
    // One is not worse than the other.
    let compared = scratch.narrows("compare simulated real").ok();
    assert!(compared.out.contains("cubic (emulator) against cubic (simulator)"), "{compared}");
}

/// The results stay. A capture without its name is reported also under `--quiet`, and the command fails.
#[test]
fn capture_in_a_removed_directory_fails_the_command() {
    let scratch = pair("unnamed");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let line = "emulate pair.toml --scheme cubic --out real --quiet --pcap left>right=captures/haul.pcapng";
    let captures = scratch.path("captures");
    std::fs::create_dir(&captures).unwrap();
    let mut child = scratch.command(line.split(' ')).piped();
    // The first one is made to find out whether it can be, before anything runs.
    let is_begun =
        || std::fs::read_dir(&captures).unwrap().any(|file| file.unwrap().metadata().is_ok_and(|it| it.len() > 0));
    wait_for(&mut child, "the capture is begun", is_begun);
    std::fs::remove_dir_all(&captures).unwrap();
    let ran = ProgramRun::new(line, &child.output());
    let expected =
        ["error: the capture captures/haul.pcapng could not be put in place: No such file", "which was removed"];
    ran.fails(1, &expected);
    scratch.narrows("report real --out page.html").ok();
    assert_eq!(left_behind(), [""; 0]);
}

#[test]
fn simulated_and_real_packets_flow_by_flow() {
    let scratch = pair("sides");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    // One flow for the whole time on an idle link of 200 Mb/s: 193 Mb/s of payload.
    let same = "pair.toml --scheme cubic --quiet --set stop=3s --set traffic.0.flows.0.size=1GB";
    scratch.narrows(&format!("emulate {same} --out real")).ok();
    scratch.narrows(&format!("run {same} --out simulated")).ok();
    let json = scratch.narrows("compare simulated real --flows --json --markdown page.md").ok().json();
    let run = &json["runs"][0];
    assert_eq!((&run["a_backend"], &run["b_backend"]), (&"simulator".into(), &"emulator".into()));
    let flow = &run["flows"][0];
    for side in ["a", "b"] {
        let rate = flow["rate_bps"][side].as_f64().unwrap();
        assert!((120e6..194e6).contains(&rate), "{side}: {flow:#}");
        // 10.2 ms and a queue of at most as much.
        let rtt = flow["rtt_ns"][side].as_f64().unwrap();
        assert!((10e6..25e6).contains(&rtt), "{side}: {flow:#}");
        assert!(run["ports"][0]["delay_ns"][side].as_f64().unwrap() <= 11e6, "{run:#}");
    }
    assert!(scratch.read("page.md").contains("| simulator | emulator |"));
}

/// A scheme without a part that its host does not have states this in its name and its manifest, and the mechanisms
/// that real hosts have by themselves are named.
#[test]
fn dropped_keys_are_in_the_run_label() {
    let scratch = pair("without");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let set = r#"--set host.on_ramp={threshold="1ms"} --set host.jitter={mean="1us"} --without host.on_ramp"#;
    let json = scratch.narrows(&format!("emulate pair.toml --scheme cubic --out real --json {set}")).ok().json();
    assert_eq!(json["label"], "Cubic (without host.on_ramp)", "{json:#}");
    let warned = json["warnings"].to_string();
    assert!(warned.contains("`host.jitter`"), "{warned}");
    let manifest: serde_json::Value = serde_json::from_str(&scratch.read("real/manifest.json")).unwrap();
    assert_eq!(manifest["without"], serde_json::json!(["host.on_ramp"]), "{manifest:#}");
}

/// A failure from time zero of the run cuts the flows, which then take until the link is back, and not the handshakes before.
#[test]
fn failures_count_from_the_start_of_the_flows() {
    let scratch = pair("failure");
    scratch.write("down.toml", &format!("{PAIR}[[failure]]\nports = [\"left>right\"]\nuntil = \"500ms\"\n"));
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let stacks = if cfg!(feature = "transport") { &["kernel", "narrows"][..] } else { &["kernel"] };
    for stack in stacks {
        let line = format!("emulate down.toml --stack {stack} --scheme cubic --out {stack} --json");
        let json = scratch.narrows(&line).ok().json();
        assert_eq!(json["flows"]["all"]["completed"], 2, "{stack}: {json:#}");
        // Both flows wait for the link, and 10 MB then take 400 ms.
        let fct_ns = &json["flows"]["all"]["fct_ns"];
        assert!(fct_ns["max"].as_f64().unwrap() > 900e6, "{stack}: {fct_ns}");
    }
}

/// One stop of the whole emulator shows in its verdict, although nearly all packets were on time.
#[test]
fn stopped_emulator_makes_a_run_questionable() {
    use nix::sys::signal::{Signal, kill};

    let scratch = pair("stalled");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let line = "emulate pair.toml --scheme cubic --out real --quiet --set traffic.0.flows.0.size=1GB";
    let mut child = scratch.command(line.split(' ')).piped();
    let name = format!("narrows-{}-", child.id());
    wait_for(&mut child, "its hosts are made", || namespaces().contains(&format!("{name}right.host0")));
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    // In the middle of the four seconds, wherever in the second before the run begins.
    std::thread::sleep(std::time::Duration::from_secs(2));
    kill(process, Signal::SIGSTOP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    kill(process, Signal::SIGCONT).unwrap();
    ProgramRun::new(line, &child.output()).ok();
    let summary: serde_json::Value = serde_json::from_str(&scratch.read("real/summary.json")).unwrap();
    let emulator = &summary["emulator"];
    assert!(emulator["stalled"].as_f64().unwrap() > 0.1, "{emulator:#}");
    assert!(emulator["caveats"].to_string().contains("the emulator stood still for"), "{emulator:#}");
    assert_ne!(emulator["validity"], "sound");
}

/// Three senders of the kernel's TCP overflow their share of a switch's buffer, unless the switch pauses them.
#[test]
fn pfc_prevents_drops_of_kernel_tcp() {
    let scratch = Scratch::new("emulate-pfc");
    scratch.write(
        "pfc.toml",
        "name = \"pfc\"\nstop = \"5s\"\nhost = { mss = 1448, header = 52, ack_size = 52, ack_every = 2 }\n\
         topology = { kind = \"single-switch\", hosts = 4, rate = \"100Mbps\", delay = \"100us\" }\n\
         switch = { buffer = \"2MB\", pfc = true }\nport = { xoff = \"30KB\" }\nschemes.cubic.law = \"cubic\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"host0\"\nintra = 3\nsize = \"1MB\"\n",
    );
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let count = |pfc: bool| {
        let line = format!("emulate pfc.toml --json --set switch.pfc={pfc} --out {pfc}");
        let json = scratch.narrows(&line).ok().json();
        assert_eq!(json["flows"]["all"]["completed"], 3, "{json:#}");
        ["drops", "pfc_pauses", "max_buffer_bytes"].map(|key| json["network"][key].as_u64().unwrap())
    };
    let ([drops, pauses, buffered], [lossy, none, _]) = (count(true), count(false));
    assert!(drops == 0 && pauses > 20 && buffered > 60_000, "{drops} drops, {pauses} pauses, {buffered} bytes");
    assert!(lossy > 0 && none == 0, "{lossy} drops, {none} pauses without PFC");
    assert_eq!(left_behind(), [""; 0]);
}

#[test]
fn over_ipv6() {
    let scratch = pair("ipv6");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let sizes = "--set host.mss=1428 --set host.header=72 --set host.ack_size=72";
    let ran = scratch.narrows(&format!("emulate pair.toml --ipv6 --scheme cubic --out out --json {sizes}")).ok();
    let json = ran.json();
    assert_eq!(json["flows"]["all"]["completed"], 2, "{json:#}");
    // A machine with other work may be late, and reports that; no other warning is expected.
    let warnings = json["warnings"].as_array().unwrap();
    let bottleneck = &json["emulator"]["bottleneck"];
    // A test's machine may be busy.
    let questionable = |it: &serde_json::Value| it.as_str().is_some_and(|it| it.starts_with("questionable: "));
    assert!(warnings.iter().all(|it| it == bottleneck || questionable(it)), "{warnings:?}");
}

#[test]
fn a_program_runs_between_the_hosts() {
    let scratch = pair("program");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    // The names of hosts are known to the program, and its output is passed through unchanged.
    let mut command = scratch.command([
        "emulate",
        "pair.toml",
        "--scheme",
        "cubic",
        "--out",
        "out",
        "--quiet",
        "--command-host",
        "left.host0",
        "--",
        "sh",
        "-c",
    ]);
    let ran = command.arg("getent hosts right.host0; ping -c 3 -i 0.2 -q right.host0 | tail -1").finish();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed} {}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.contains("right.host0"), "{printed}");
    if Command::new("ping").arg("-V").try_finish().is_ok() {
        // Two links of 5 ms and four of 100 us.
        let times = printed.split("= ").nth(1).unwrap_or_else(|| panic!("{printed}"));
        let mean: f64 = times.split('/').nth(1).unwrap().parse().unwrap();
        assert!((10.4..14.0).contains(&mean), "{printed}");
    } else {
        skipped_without("a_program_runs_between_the_hosts", "ping");
    }
    assert!(scratch.read("out/summary.json").contains("\"command\": \"sh -c getent hosts"));
    assert_eq!(left_behind(), [""; 0]);

    // A failing command reports that and leaves no results.
    let line = "emulate pair.toml --scheme cubic --out failed --background right.host0=cat -- false";
    scratch.narrows(line).fails(1, &["the command `false` failed: exit status: 1"]);
    assert!(!scratch.path("failed").exists());
    assert_eq!(left_behind(), [""; 0]);
}

#[test]
fn iperf3_has_its_flows_in_the_results() {
    let scratch = pair("iperf3");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    if Command::new("iperf3").arg("--version").try_finish().is_err() {
        return skipped_without("iperf3_has_its_flows_in_the_results", "iperf3");
    }
    let args = ["emulate", "pair.toml", "--scheme", "reno", "--json", "--out", "out", "--background"];
    let client = ["right.host0=iperf3 -s -1", "--", "iperf3", "-c", "right.host0", "-t", "2", "-P", "2"];
    let ran = scratch.command(args.into_iter().chain(client)).finish();
    let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{printed}");
    let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    is_summary(&summary);
    assert_eq!((&summary["flows"]["inter"]["count"], &summary["flows"]["all"]["count"]), (&2.into(), &2.into()));
    assert_eq!(
        (&summary["flows"]["all"]["completed"], &summary["law"]["name"]),
        (&2.into(), &"reno".into()),
        "{summary:#}"
    );
    // Of 200 Mb/s, without headers; slow start and the ends of two seconds cost some.
    let goodput = summary["flows"]["all"]["goodput_bps"].as_u64().unwrap();
    assert!((100_000_000..193_100_000).contains(&goodput), "{goodput}");
}

#[test]
fn interrupt_cleans_up() {
    let _guard = exclusive();
    if can_emulate() {
        interrupted("emulate pair.toml --scheme cubic --out out --background right.host0=cat -- sleep 100");
        interrupted("emulate endless.toml --scheme cubic --out out");
    }
}

/// Returns whether a program with this argument runs.
fn runs(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| line.split(|&byte| byte == 0).any(|word| word == argument.as_bytes()))
}

/// Starts an emulation with a server and a command that have arguments of their own, and waits until both run.
fn started(scratch: &Scratch, server: &str, command: &str) -> Process {
    let with = format!("right.host0=sleep {server}");
    let line =
        ["emulate", "pair.toml", "--scheme", "cubic", "--out", "out", "--background", &with, "--", "sleep", command];
    let child = scratch.command(line).piped();
    eventually(DEFAULT_TIMEOUT, "both programs run", || runs(server) && runs(command));
    child
}

#[test]
fn second_interrupt_stops_immediately_and_cleans_up() {
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let scratch = pair("twice");
    let [server, command] = [1, 2].map(|it| format!("{}.{it}", 1_000_000 + std::process::id()));
    let mut child = started(&scratch, &server, &command);
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    // The command does not receive the signal, and is waited for. Pending signals of the same kind merge into one.
    let mut ended = None;
    eventually(DEFAULT_TIMEOUT, "it ends", || {
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
        ended = child.try_status();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(130));
    assert_eq!(left_behind(), [""; 0]);
    eventually(DEFAULT_TIMEOUT, "its programs are gone", || !runs(&server) && !runs(&command));
}

#[test]
fn programs_do_not_outlive_a_killed_emulation() {
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let scratch = pair("killed");
    let [server, command] = [3, 4].map(|it| format!("{}.{it}", 1_000_000 + std::process::id()));
    let mut child = started(&scratch, &server, &command);
    child.kill();
    eventually(DEFAULT_TIMEOUT, "its programs are gone", || !runs(&server) && !runs(&command));
    // The next command removes leftovers that this one could not remove.
    assert!(!left_behind().is_empty());
    emulator::preflight().unwrap();
    assert_eq!(left_behind(), [""; 0]);
}

fn interrupted(line: &str) {
    let scratch = pair("stopped");
    scratch.write("endless.toml", &PAIR.replace("10MB", "5TB").replace("4s", "100s"));
    let mut child = scratch.command(line.split(' ')).piped();
    let name = format!("narrows-{}-", child.id());
    wait_for(&mut child, "its hosts are made", || namespaces().contains(&format!("{name}right.host0")));
    std::thread::sleep(std::time::Duration::from_millis(300));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), nix::sys::signal::Signal::SIGINT)
        .unwrap();
    let ran = crate::support::ProgramRun::new(line, &child.output());
    assert_eq!(ran.code, 130, "{ran}");
    assert!(ran.err.contains("interrupted: no run was finished"), "{ran}");
    assert_eq!(left_behind(), [""; 0]);
    assert!(!scratch.path("out").exists());
}

/// Unsupported settings of the transport are reported before anything starts, root or not.
#[cfg(feature = "transport")]
#[test]
fn unsupported_transport_settings_fail_without_leftovers() {
    let scratch = pair("refused-narrows");
    let before = scratch.tree();
    for (line, parts) in [
        (
            r#"--set schemes.cubic.law=hpcc --set switch={buffer="32MiB",pfc=true}"#,
            &["needs reports of switches (INT)", "accepted are", "unocc"][..],
        ),
        ("--set schemes.cubic.law=flashpass", &["needs credits from the receiver"]),
        (
            "--set host.load_balancing=spray",
            &["does not support `host.load_balancing`", "accepted: \"ecmp\" or \"unolb\""],
        ),
        ("--set host.load_balancing=repath", &["does not support `host.load_balancing`, here \"repath\""]),
        ("--set host.tcp=linux", &["the transport does not support `host.tcp`"]),
        (
            r#"--set host.on_ramp={threshold="1ms"}"#,
            &["a threshold of the whole one-way delay", "on_queueing_delay = true"],
        ),
        (r#"--set host.coding={tail="1MB"}"#, &["does not support `host.coding.tail`"]),
        ("--set host.coding={data=10,parity=20}", &["20 parity packets a block, and 1 to 16"]),
        ("--set traffic.0.flows.0.size=1kB -- true", &["--stack narrows is for [[traffic]]"]),
        ("--stack nerrows", &["invalid value 'nerrows'", "kernel, narrows"]),
    ] {
        let line = format!("emulate pair.toml --stack narrows --scheme cubic {line}")
            .replace("--stack narrows --scheme cubic --stack", "--scheme cubic --stack");
        scratch.narrows(&line).fails(2, parts);
        assert_eq!(scratch.tree(), before, "{line}");
    }
}

#[cfg(not(feature = "transport"))]
#[test]
fn build_without_transport_is_an_error() {
    let scratch = pair("no-transport");
    let ran = scratch.narrows("emulate pair.toml --stack narrows --scheme cubic");
    assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{ran}");
    assert!(ran.err.contains("this build has no transport"), "{ran}");
}

/// The transport's flows have results of the same form, also under a law that no kernel of this machine has.
#[cfg(feature = "transport")]
#[test]
fn the_transport_carries_the_flows() {
    let scratch = pair("narrows");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let sizes = "--set host.mss=1438 --set host.header=62 --set host.ack_size=76";
    let line = format!("emulate pair.toml --stack narrows --out real --json {sizes}");
    let json = scratch.narrows(&line).ok().json();
    for (run, law) in json["runs"].as_array().unwrap().iter().zip(["cubic", "newreno", "mprdma"]) {
        is_summary(run);
        let emulator = &run["emulator"];
        assert_eq!((&emulator["stack"], &emulator["congestion"]), (&"narrows".into(), &serde_json::json!([law])));
        assert_eq!(run["flows"]["all"]["completed"], 2, "{run:#}");
        // 10 MB at 200 Mb/s are 400 ms; slow start takes a few round trips of 10 ms.
        let fct_ns = run["flows"]["all"]["fct_ns"]["max"].as_f64().unwrap();
        assert!((400e6..2_000e6).contains(&fct_ns), "{fct_ns}");
        assert!(run["flows"]["all"]["slowdown"]["p50"].as_f64().unwrap() >= 1.0, "{run:#}");
        assert!(run["law"]["actions"]["increases"].as_u64().unwrap() > 0, "{run:#}");
        // Its own sizes are the scenario's.
        let warnings = run["warnings"].as_array().unwrap();
        assert!(!warnings.iter().any(|it| it.as_str().unwrap().contains("simulated host differs")), "{warnings:?}");
        let links = run["network"]["links"].as_array().unwrap();
        let bytes = links.iter().find(|link| link["name"] == "left>right").unwrap()["bytes"].as_u64().unwrap();
        // Payload and headers of 10 MB, at least; in addition handshakes, probes and retransmissions.
        assert!((10_430_000..13_500_000).contains(&bytes), "{bytes}");
    }
    assert_eq!(left_behind(), [""; 0]);
    scratch.narrows(&format!("run pair.toml --out simulated --quiet {sizes}")).ok();
    let compared = scratch.narrows("compare simulated real").ok();
    assert!(compared.out.contains("cubic (emulator) against cubic (simulator)"), "{compared}");
}

/// A queue that marks holds a law that listens near its threshold, and a phantom queue holds it below the link's rate: marks come
/// from the ports through the transport to the law.
#[cfg(feature = "transport")]
#[test]
fn marks_reach_laws_over_the_transport() {
    let scratch = pair("marks");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let long = "--stack narrows --quiet --set traffic.0.flows.0.size=1GB --set stop=4s --set host.ack_every=1";
    let measured = |out: &str, set: &[&str]| {
        let mut words: Vec<&str> = ["emulate", "pair.toml", "--scheme", "cubic", "--out", out].to_vec();
        words.extend(long.split(' '));
        words.extend(set.iter().flat_map(|set| ["--set", *set]));
        // On a busy machine a run may be unsound, and then its numbers are the machine's.
        let is_sound = (0..3).any(|_| {
            let ran = scratch.command(&words).finish();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            let summary: serde_json::Value =
                serde_json::from_str(&scratch.read(&format!("{out}/summary.json"))).unwrap();
            summary["emulator"]["validity"] == "sound"
        });
        let json = scratch.narrows(&format!("compare {out} {out} --flows --json")).ok().json();
        let run = &json["runs"][0];
        let number = |value: &serde_json::Value| value["b"].as_f64().unwrap();
        let numbers = (
            number(&run["ports"][0]["queue_bytes"]),
            number(&run["flows"][0]["rate_bps"]),
            number(&run["marks_per_s"]),
        );
        if !is_sound {
            skipped_here(&format!(
                "three runs of `{out}` were unsound, this machine is too busy; the last had {numbers:?}"
            ));
        }
        is_sound.then_some(numbers)
    };
    // DCTCP needs a seventh of the bandwidth-delay product of 255 kB for the full rate.
    let step = ["schemes.cubic.law=\"dctcp\"", "port.ecn={step=\"40kB\"}", "port.buffer=\"1MB\""];
    let Some((queue, rate, marks)) = measured("step", &step) else { return };
    assert!((4e3..60e3).contains(&queue) && marks > 1.0, "{queue} B, {marks} marks a second");
    assert!((120e6..194e6).contains(&rate), "{rate}");
    // Without marks the same law fills the same buffer.
    let Some((full, ..)) = measured("full", &[step[0], "port.ecn=\"off\"", step[2]]) else { return };
    assert!(full > 200e3, "{full} B");
    // 90 % of the link, less headers. The phantom queue marks before the real one has anything.
    let phantom = "port.phantom={size=\"250kB\",drain=0.9,min=\"2%\",max=\"60%\"}";
    let unocc = ["schemes.cubic.law=\"unocc\"", phantom, step[2]];
    let Some((queue, rate, marks)) = measured("phantom", &unocc) else { return };
    assert!(queue < 20e3 && marks > 0.0, "{queue} B, {marks} marks a second");
    assert!((60e6..176e6).contains(&rate), "{rate}");
}

/// Blocks are mended by their parity, and every subflow is a path with ports and a law of its own.
#[cfg(feature = "transport")]
#[test]
fn coded_flows_on_several_paths_arrive_over_a_lossy_link() {
    let scratch = pair("coded");
    let _guard = exclusive();
    if !can_emulate() {
        return;
    }
    let lossy =
        r#"--set port.inter={loss_probability="1%"} --set host.coding={data=8,parity=2} --set host.ack_every=1"#;
    for laws in ["flow", "subflow"] {
        let paths = format!(r#"--set host.load_balancing={{kind="unolb",subflows=3,law_per="{laws}"}}"#);
        let line = format!(
            "emulate pair.toml --stack narrows --scheme reno --json --set stop=20s {lossy} {paths} --out {laws}"
        );
        let json = scratch.narrows(&line).ok().json();
        assert_eq!(json["flows"]["all"]["completed"], 2, "{json:#}");
        let link = json["network"]["links"].as_array().unwrap().iter().find(|link| link["name"] == "left>right");
        let (losses, bytes) = (link.unwrap()["losses"].as_u64().unwrap(), link.unwrap()["bytes"].as_u64().unwrap());
        // 10 MB in blocks of 8 and 2 are 12.5 MB and headers.
        assert!(losses > 30 && bytes > 12_500_000, "{losses} lost of {bytes} bytes");
        let count = |key: &str| json["network"][key].as_u64().unwrap();
        // Two of ten packets, and a few that were sent again. Four of five losses are of data, few of them in one block.
        let (parity, recovered) = (count("parity_packets"), count("recovered_blocks"));
        assert!((1_700..2_500).contains(&parity), "{parity}");
        assert!((losses / 3..2 * losses).contains(&recovered), "{recovered} blocks, {losses} losses");
        let printed = json["warnings"].to_string();
        assert!(printed.contains("re-routes a path only after two timeouts"), "{printed}");
    }
    assert_eq!(left_behind(), [""; 0]);
}
