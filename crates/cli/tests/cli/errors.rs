//! Errors are shown at their place, with the accepted values, before anything is written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use testing::Bounded;

use crate::support::{GRID, ONE, ProgramRun, Scratch, skipped};

const GOOD: &str = r#"name = "t"
stop = "10ms"
[topology]
kind = "fat-trees"
k = 4
rate = "100Gbps"
[schemes.uno]
law = "unocc"
[[traffic]]
kind = "incast"
receiver = 3
intra = 2
size = "4KiB"
"#;

/// The good file with a line replaced: `check` and `run` print the same, and nothing is written.
#[track_caller]
fn refused(line: &str, replacement: &str, parts: &[&str]) {
    assert!(GOOD.contains(line), "{line}");
    refused_text(&GOOD.replace(line, replacement), parts);
}

#[track_caller]
fn refused_text(text: &str, parts: &[&str]) {
    let scratch = Scratch::new("refused");
    scratch.write("bad.toml", text);
    scratch.write("short.txt", "0 0\n1000 50\n2000 99\n");
    let before = scratch.tree();
    let message = scratch.narrows("run bad.toml --out out").fails(2, parts).err;
    assert_eq!(message, scratch.narrows("check bad.toml").fails(2, parts).err);
    assert_eq!(message, scratch.narrows("run bad.toml --out out --json").fails(2, parts).err);
    assert_eq!(message, scratch.narrows("run bad.toml --out out --quiet").fails(2, parts).err);
    assert_eq!(scratch.tree(), before);
}

#[test]
fn the_good_file_is_good() {
    let scratch = Scratch::new("good");
    scratch.write("good.toml", GOOD);
    scratch.narrows("run good.toml --out out").ok();
}

#[test]
fn an_unknown_key() {
    refused(
        "rate = ",
        "raet = ",
        &["error: unknown key `raet`", "bad.toml:6:1", "raet = \"100Gbps\"", "^^^^", "`rate`"],
    );
}

#[test]
fn a_wrong_unit() {
    refused("\"100Gbps\"", "\"100ms\"", &["with unit `ms`", "bad.toml:6:8", "^^^^^^^", "units: bps, kbps, Mbps, Gbps"]);
}

#[test]
fn a_negative_rate() {
    refused("\"100Gbps\"", "\"-100Gbps\"", &["is negative", "bad.toml:6:8", "^^^^^^^^^^", "\"100Gbps\""]);
}

#[test]
fn an_odd_k() {
    refused("k = 4", "k = 7", &["even, 2 to 128, not 7", "bad.toml:5:5"]);
}

#[test]
fn a_host_out_of_range() {
    refused("receiver = 3", "receiver = 99", &["no host 99", "bad.toml:11:12", "^^ expected 0 to 31"]);
}

#[test]
fn zero_flows() {
    refused("intra = 2", "intra = 0", &["zero flows", "bad.toml:9", "^^", "set `intra`, `inter` or both"]);
}

fn poisson(rest: &str) -> String {
    let start = GOOD.find("[[traffic]]").unwrap();
    format!("{}[[traffic]]\nkind = \"poisson\"\nduration = \"1ms\"\n{rest}\n", &GOOD[..start])
}

#[test]
fn a_distribution_that_does_not_reach_all() {
    refused_text(
        &poisson("inter = \"short.txt\"\nload = 0.5"),
        &["does not reach 100 %", "short.txt:3:1", "2000 99", "^^^^^^^"],
    );
}

#[test]
fn a_distribution_that_is_missing() {
    refused_text(
        &poisson("inter = \"websaerch\"\nload = 0.5"),
        &["neither a distribution", "bad.toml:12:9", "^^^^^^^^^^^", "did you mean `websearch`?", "`google-rpc`"],
    );
}

#[test]
fn a_load_over_all() {
    refused_text(
        &poisson("inter = \"websearch\"\nload = 1.2"),
        &["a load over 100 %", "bad.toml:13:8", "^^^ expected at most 1"],
    );
}

/// An external law: the file can be checked, and nothing here runs it.
#[test]
fn an_external_law() {
    let declared = format!(
        "[external_laws.Halve]\nlanguage = \"Python\"\nsha256 = \"{}\"\nparams = {{ gain = 4 }}\n",
        "0".repeat(64)
    );
    let scratch = Scratch::new("brought");
    let text = GOOD.replace("law = \"unocc\"", "law = \"Halve\"");
    assert_ne!(text, GOOD);
    scratch.write("bad.toml", &text);
    scratch.narrows("run bad.toml").fails(2, &["unknown law `Halve`", "laws=[Halve]"]);
    scratch.write("halve.toml", &format!("{text}{declared}"));
    let checked = scratch.narrows("check halve.toml").ok();
    assert!(
        checked
            .out
            .contains("warning: Halve is an external law in Python (SHA-256 000000000000...), not part of Narrows"),
        "{}",
        checked.out
    );
    let message = ["runs Halve, a law in Python; only narrows.run(..., laws=[Halve]) can run it"];
    scratch.narrows("run halve.toml --out out").fails(2, &message);
    assert!(!scratch.path("out").exists());
    scratch
        .narrows("emulate halve.toml --out out")
        .fails(2, &["runs Halve, an external law in Python, which no kernel has"]);
}

#[test]
fn an_unknown_law() {
    refused("\"unocc\"", "\"unoc\"", &["unknown law", "bad.toml:8:7", "^^^^^^", "`unocc`"]);
    let scratch = Scratch::new("law");
    scratch.narrows("laws gemmini").fails(2, &["error: no law `gemmini`", "unocc, ", "`gemini`"]);
}

#[test]
fn arguments() {
    let scratch = Scratch::new("arguments");
    scratch.write("good.toml", GOOD);
    scratch.write("grid.toml", GRID);
    let before = scratch.tree();
    scratch
        .narrows("run good.toml --out out --set topology.kk=4")
        .fails(2, &["unknown key `kk`", "--set:1:1", "topology.kk=4", "^^^", "`k`"]);
    scratch.narrows("run good.toml --out out --set topology.k").fails(2, &["KEY=VALUE"]);
    scratch.narrows("demo --out out --set traffic.7.size=1MiB").fails(2, &["no entry `7`", "expected 0 to 0"]);
    scratch
        .narrows("run grid.toml --out out --scheme unno")
        .fails(2, &["no scheme `unno`", "`uno`", "uno", "mixed", "cubic"]);
    scratch.narrows("check grid.toml --scheme unno").fails(2, &["no scheme `unno`", "`uno`"]);
    scratch.narrows("run good.toml --out out --scale quick").fails(2, &["no scale `quick`", "--scale:1:1", "^^^^^"]);
    scratch.narrows("run good.toml --out out --threads 0").fails(2, &["--threads", "1..=1024"]);
    for seed in ["99999999999999999999", "9223372036854775808", "-1", "one"] {
        let line = format!("run good.toml --out out --seed={seed}");
        scratch.narrows(&line).fails(2, &[&format!("'{seed}'"), "a whole number from 0 to 9223372036854775807"]);
    }
    scratch.narrows("runn good.toml").fails(2, &["unrecognized subcommand 'runn'", "'run'"]);
    scratch.narrows("bench engine --only nothing").fails(2, &["no workload", "`nothing`", "permutation", "mixed"]);
    scratch.narrows("bench codes --only nothing").fails(2, &["no workload", "`nothing`", "8+2-1400-"]);
    scratch.narrows("bench codes --engine sse").fails(2, &["'sse'", "portable, neon, avx2"]);
    let foreign = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    let line = format!("bench codes --engine {foreign}");
    scratch.narrows(&line).fails(2, &[&format!("the engine {foreign} does not run on this processor")]);
    assert_eq!(scratch.tree(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn arguments_of_the_benchmark_of_the_transport() {
    let scratch = Scratch::new("arguments");
    let message = |options: &str, parts: &[&str]| {
        scratch.narrows(&format!("bench transport {options}")).fails(2, parts);
    };
    message("--only nothing", &["no workload", "`nothing`", "1400, 1400-coded, 4096, 4096-coded, tcp"]);
    for bytes in ["0", "65535", "65GiB", "1Mbit", "lots"] {
        let option = format!("error: --bytes {bytes}: expected 65536 to 68719476736 bytes");
        message(&format!("--bytes {bytes}"), &[&option, "KiB"]);
    }
    message("--rounds 0", &["--rounds", "1..=100"]);
    message("--rounds 101", &["--rounds", "1..=100"]);
    message("1400-coded", &["unexpected argument '1400-coded'"]);
    assert!(scratch.tree().is_empty());
}

#[test]
fn files_that_cannot_be_read() {
    let scratch = Scratch::new("unreadable");
    scratch.write("good.toml", GOOD);
    scratch.write("mine/note.txt", "");
    scratch.write("mine.toml", GOOD);
    fs::create_dir(scratch.path("directory.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("dangling.toml")).unwrap();
    fs::write(scratch.path("binary.toml"), [0xff, 0xfe, 0]).unwrap();
    let before = scratch.tree();
    for command in ["run", "check"] {
        let line = |file: &str| scratch.narrows(&format!("{command} {file}"));
        line("god.toml").fails(2, &["cannot read `god.toml`: No such file", "`good.toml`"]);
        line("good").fails(2, &["cannot read `good`: No such file", "`good.toml`"]);
        line("mine").fails(2, &["`mine`", "`mine.toml`"]);
        line("directory.toml").fails(2, &["cannot read `directory.toml`", "directory"]);
        line("dangling.toml").fails(2, &["cannot read `dangling.toml`: No such file"]);
        line("binary.toml").fails(2, &["cannot read `binary.toml`", "UTF-8", "line 1, byte 1", "UTF-16"]);
    }
    scratch.narrows("report missing").fails(2, &["`missing`"]);
    scratch.narrows("compare good.toml missing").fails(2, &["good.toml"]);
    scratch.narrows("reproduce --papers missing").fails(2, &["`missing`", "--papers"]);
    assert_eq!(scratch.tree(), before);
}

#[test]
fn unwritable_paths_are_errors() {
    let scratch = Scratch::new("unwritable");
    scratch.write("one.toml", ONE);
    scratch.write("grid.toml", GRID);
    scratch.write("file", "mine");
    let before = scratch.tree();
    for scenario in ["one", "grid"] {
        let run = |out: &str| scratch.narrows(&format!("run {scenario}.toml --out {out}"));
        run("file/out").fails(2, &["file/out", "Not a directory"]);
        run("file").fails(2, &["choose another"]);
        if Path::new("/proc/self").exists() {
            run("/proc/self/out").fails(2, &["cannot create `/proc/self/out", "No such file"]);
        }
    }
    assert_eq!(scratch.tree(), before);
    assert_eq!(scratch.read("file"), "mine");
}

#[test]
fn foreign_directories_are_not_replaced() {
    let scratch = Scratch::new("mine");
    scratch.write("one.toml", ONE);
    scratch.write("grid.toml", GRID);
    scratch.write("photos/a.jpg", "a picture");
    scratch.write("other/manifest.json", "{ \"program\": \"another\" }");
    scratch.write("folder/runs/mine.txt", "notes");
    scratch.write("nested/runs/uno/mine.txt", "notes");
    let before = scratch.tree();
    for scenario in ["one", "grid"] {
        for out in ["photos", "other", "folder", "nested", "."] {
            let line = format!("run {scenario}.toml --out {out}");
            scratch
                .narrows(&line)
                .fails(2, &[&format!("error: `{out}` holds "), "that Narrows did not write", "choose another"]);
        }
    }
    assert_eq!(scratch.tree(), before);
}

/// A small file system in a mount namespace of its own; there, `script` runs in it with the program as `$0`.
fn in_small_disk(scratch: &Scratch, size: &str, script: &str) -> Option<ProgramRun> {
    fs::create_dir(scratch.path("disk")).unwrap();
    let small = format!("mount -t tmpfs -o size={size} none disk && cd disk && {script}");
    for rights in ["-m", "-rm"] {
        let possible = Command::new("unshare").args([rights, "sh", "-c", "mount -t tmpfs none /mnt"]).try_finish();
        if possible.is_ok_and(|output| output.status.success()) {
            let mut command = Command::new("unshare");
            command.args([rights, "sh", "-c", &small, env!("CARGO_BIN_EXE_narrows")]).current_dir(scratch.path(""));
            return Some(ProgramRun::new(script, &command.finish()));
        }
    }
    None
}

#[test]
fn a_full_disk() {
    for (name, size, script) in [
        ("one", "16k", "\"$0\" run ../one.toml --out out; echo $?; find . -mindepth 1"),
        ("grid", "16k", "\"$0\" run ../grid.toml --out out; echo $?; find . -mindepth 1"),
    ] {
        let scratch = Scratch::new("full");
        scratch.write("one.toml", ONE);
        scratch.write("grid.toml", &format!("{ONE}[grid]\nseed = [1, 2, 3]\n"));
        let Some(ran) = in_small_disk(&scratch, size, script) else {
            return skipped("a_full_disk", "no file system can be mounted here");
        };
        let ran = ran.reports(&["error: cannot write `", "out/"]);
        assert_eq!(ran.out, "2\n", "{name}: {ran}");
    }
    // Where only the page does not fit, the results are in place.
    let scratch = Scratch::new("full");
    scratch.write("one.toml", ONE);
    let script = "\"$0\" run ../one.toml --out out --quiet; echo $?; ls out; \"$0\" report out --out ../page.html";
    let Some(ran) = in_small_disk(&scratch, "120k", script) else { return };
    let ran = ran.ok().reports(&["cannot write `out/report.html`: No space left", "`narrows report out`"]);
    assert!(
        ran.out.starts_with("2\nflow_samples.parquet\nflows.parquet\nmanifest.json\n")
            && ran.out.ends_with("wrote ../page.html\n"),
        "{ran}"
    );
    // Earlier results stay as they were.
    let scratch = Scratch::new("full");
    scratch.write("one.toml", ONE);
    let script = "set -e; \"$0\" run ../one.toml --out out --quiet; cp -r out ../kept; \
                  dd if=/dev/zero of=filler bs=4k 2>/dev/null || true; \
                  \"$0\" run ../one.toml --out out --seed 2 || echo $?; diff -r out ../kept && ls";
    let Some(ran) = in_small_disk(&scratch, "2m", script) else { return };
    let ran = ran.ok().reports(&["No space left on device"]);
    assert_eq!(ran.out, "2\nfiller\nout\n", "{ran}");
}

#[test]
fn a_full_standard_output() {
    if !Path::new("/dev/full").exists() {
        return skipped("a_full_standard_output", "no /dev/full here");
    }
    let scratch = Scratch::new("stdout");
    scratch.write("one.toml", ONE);
    for line in ["laws", "run one.toml --json --out out", "help run", "--version"] {
        let full = || fs::File::options().write(true).open("/dev/full").unwrap();
        let output = scratch.command(line.split(' ')).stdout(full()).stderr(Stdio::piped()).start().output();
        ProgramRun::new(line, &output).fails(1, &["No space left"]);
        // Nor is a full standard error a reason to panic.
        let status = scratch.command(line.split(' ')).stdout(full()).stderr(full()).start().status();
        assert_eq!(crate::support::code(status), 1, "{line}");
    }
}

#[test]
#[cfg(unix)]
fn a_limit_on_the_size_of_files() {
    let scratch = Scratch::new("xfsz");
    scratch.write("one.toml", ONE);
    let script = format!("ulimit -f 1; {} run one.toml --out out", env!("CARGO_BIN_EXE_narrows"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(scratch.path(".")).finish();
    ProgramRun::new(&script, &output).fails(2, &["File too large", "out"]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let is_printable = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
    for text in ["name = \"a\\u001b[31m\"", "title = \"\\u009b1m\"", "title = \"\u{9b}1m\"", "\"k\\u0007\" = 1"] {
        let scratch = Scratch::new("control");
        scratch.write("bad.toml", &format!("{text}\n{}", GOOD.replacen("name = ", "description = ", 1)));
        let message = scratch.narrows("run bad.toml --out out");
        let message = message.fails(2, &["control character U+00", "bad.toml:1:", "expected letters"]);
        assert!(is_printable(&message.err), "{:?}", message.err);
    }
    for (text, message) in
        [("title = \"a\u{202e}b\"", "control character U+202E"), ("title = \"a\\nb\"", "`title` over several lines")]
    {
        let scratch = Scratch::new("control");
        scratch.write("bad.toml", &format!("{text}\n{GOOD}"));
        scratch.narrows("run bad.toml --out out").fails(2, &[message, "bad.toml:1:9"]);
    }
    let scratch = Scratch::new("control-set");
    scratch.write("good.toml", GOOD);
    let message = scratch.command(["run", "good.toml", "--set", "title=\u{1b}[31mx"]).finish();
    let message = ProgramRun::new("run", &message).fails(2, &["control character U+001B"]);
    assert!(is_printable(&message.err), "{:?}", message.err);
}

/// An invalid expression in a table, which is evaluated on results only, is reported with its location in the file.
#[test]
fn a_wrong_metric_in_a_table() {
    let table = "\n[[table]]\ntitle = \"T\"\ncolumns = [{ label = \"x\", value = \"p98(inter.fct)\" }]\n";
    refused_text(
        &format!("{GOOD}{table}"),
        &["error: table `T`, column `x`: no such function", "bad.toml:17:36", "value = \"p98(inter.fct)\"", "^^^"],
    );
    let table =
        "\n[[table]]\ntitle = \"T\"\nonly = [\"shallow\"]\ncolumns = [{ label = \"x\", value = \"p99(inter.fct)\" }]\n";
    refused_text(&format!("{GOOD}{table}"), &["there is no variant `shallow`", "bad.toml:17:10"]);
    // A label that reads like the value, and a value over several lines.
    let column = |label: &str, value: &str| {
        format!("{GOOD}\n[[table]]\ntitle = \"T\"\ncolumns = [{{ label = \"{label}\", value = {value} }}]\n")
    };
    refused_text(&column("p98(fct)", "\"p98(fct)\""), &["no such function", "bad.toml:17:43", "^^^"]);
    refused_text(&column("x", "\"\"\"\n  p98(fct)\"\"\""), &["no such function", "bad.toml:18:3", "^^^"]);
    // An expression among a paper's marks.
    let plot = "\n[[paper.plot]]\nkind = \"bars\"\ny = \"all.fct.mean\"\npaper = [{ value = \"9.5Gbsp\" }]\n";
    let scratch = Scratch::new("marks");
    std::fs::create_dir_all(scratch.path("papers/tiny")).unwrap();
    scratch.write(
        "papers/tiny/fig.toml",
        &format!("{}{plot}[scale.quick]\n", GOOD.replace("name = \"t\"", "name = \"tiny-fig\"")),
    );
    scratch.narrows("reproduce tiny").fails(2, &["fig.toml:18:24", "^^^^"]);
    // Values that no run can have.
    let message =
        ["table `T`: `nope.fct.p99`", "no class of flows `nope`; it has: all, intra", "bad.toml:17:36", "^^^^^^^^^^^^"];
    refused_text(&column("x", "\"p99(nope.fct)\""), &message);
    refused_text(
        &column("x", "\"p99(fct) + drops\"").replace("drops", "network.drops"),
        &["cannot be added", "bad.toml:17:36"],
    );
}
