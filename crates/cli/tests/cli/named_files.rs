//! Output files that a command line names. They never replace files of other programs, and never lie in a results
//! directory.

use std::fs;

use crate::support::{ONE, Scratch};

const CM: &str = "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 100000\n";

/// Results in `out`, a connection matrix, and a file of a person's.
fn prepared(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("one.toml", ONE);
    scratch.write("a.cm", CM);
    scratch.write("notes.txt", "mine\n");
    scratch.narrows("run one.toml --quiet --out out").ok();
    scratch
}

/// Each file with its contents.
fn contents(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let files = scratch.tree().into_iter().filter(|name| !scratch.path(name).is_dir());
    files.map(|name| (name.clone(), fs::read(scratch.path(&name)).unwrap())).collect()
}

/// Commands that write a file. The option that names the file is last.
const WRITERS: [&str; 3] = ["report out --out", "compare out out --flows --markdown", "import htsim a.cm -o"];

#[test]
fn user_files_are_not_overwritten() {
    let scratch = prepared("theirs");
    let before = contents(&scratch);
    for writer in WRITERS {
        let option = writer.split(' ').next_back().unwrap();
        for theirs in ["notes.txt", "a.cm", "one.toml"] {
            let refused =
                [&format!("error: will not replace `{theirs}`: it is not a"), "that `narrows ", option, "remove"];
            scratch.narrows(&format!("{writer} {theirs}")).fails(2, &refused);
        }
        scratch.narrows(&format!("{writer} out")).fails(2, &["`out`", "results directory"]);
        assert_eq!(contents(&scratch), before);
    }
    // Nor through a link, nor a link that leads nowhere.
    std::os::unix::fs::symlink("notes.txt", scratch.path("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("dangling")).unwrap();
    for writer in WRITERS {
        scratch.narrows(&format!("{writer} link")).fails(2, &["`link`"]);
        let refused = "cannot write `dangling`: it is a link to a file that is not there";
        scratch.narrows(&format!("{writer} dangling")).fails(2, &[refused]);
        assert!(scratch.path("dangling").is_symlink() && !scratch.path("nowhere").exists());
        assert_eq!(scratch.read("notes.txt"), "mine\n");
    }
    scratch.narrows("run one.toml --out dangling").fails(2, &["`dangling`"]);
    assert!(!scratch.tree().iter().any(|name| name.contains("partial")), "{:?}", scratch.tree());
}

#[test]
fn writes_into_results_directories_are_refused() {
    let scratch = prepared("inside");
    fs::create_dir(scratch.path("out/runs")).unwrap();
    let before = contents(&scratch);
    for writer in WRITERS {
        for inside in ["out/manifest.json", "out/summary.json", "out/flows.parquet", "out/new.html", "out/runs/x.toml"]
        {
            let refused = [&format!("error: will not write `{inside}`: it lies in the results directory `"), "outside"];
            scratch.narrows(&format!("{writer} {inside}")).fails(2, &refused);
        }
        assert_eq!(contents(&scratch), before);
    }
    for writer in &WRITERS[1..] {
        scratch.narrows(&format!("{writer} out/report.html")).fails(2, &["results directory"]);
    }
    scratch.write("papers/tiny/fig1.toml", &format!("{ONE}[scale.quick]\n"));
    scratch.narrows("reproduce tiny --results out/papers").fails(2, &["`out/papers`", "results directory"]);
    // The report is recognised under every path to it.
    let ran = scratch.narrows("report out --out ./out/report.html").ok();
    assert_eq!(ran.out, "wrote out/report.html\n");
}

#[test]
fn own_files_are_replaced_until_edited() {
    let scratch = prepared("ours");
    for (number, writer) in WRITERS.iter().enumerate() {
        let file = format!("file{number}");
        let line = format!("{writer} {file}");
        scratch.narrows(&line).ok();
        let first = scratch.read(&file);
        scratch.narrows(&line).ok();
        assert_eq!(scratch.read(&file), first);
        for edited in [first.replacen('e', "a", 1), format!("{first}more\n"), first[..first.len() / 2].to_owned()] {
            scratch.write(&file, &edited);
            let is_marked = edited.contains("SHA-256 of all above");
            let reason = if is_marked { "it was edited after" } else { "or its last line was removed since" };
            scratch.narrows(&line).fails(2, &["will not replace", &file, reason, "remove that file first"]);
            assert_eq!(scratch.read(&file), edited);
        }
        // A file of another kind counts as the user's, too. An empty file, such as mktemp's, may be replaced.
        scratch.write(&file, &first);
        let other = WRITERS[(number + 1) % WRITERS.len()];
        scratch.narrows(&format!("{other} {file}")).fails(2, &["it is not a"]);
        scratch.write(&file, "");
        scratch.narrows(&line).ok();
        assert_eq!(scratch.read(&file), first);
        // An output that is not a file receives the text.
        assert!(scratch.narrows(&format!("{writer} /dev/stdout")).ok().out.contains("SHA-256"), "{line}");
    }
    let left: Vec<String> = scratch.tree().into_iter().filter(|name| name.contains("partial")).collect();
    assert_eq!(left, [""; 0]);
    scratch.narrows("check file2 --quiet").ok();
}

/// Pages in a directory have the same rule, each, and none is written unless all may be.
#[test]
fn manual_pages_do_not_replace_user_files() {
    let scratch = Scratch::new("pages");
    let (line, theirs) = ("man pages", "pages/narrows-run.1");
    scratch.write(theirs, ".TH mine 1\n");
    let refused = ["will not replace `pages/narrows-run.1`: it is not a page that `narrows man` wrote", "DIRECTORY"];
    scratch.narrows(line).fails(2, &refused);
    assert_eq!((scratch.files("pages"), scratch.read(theirs).as_str()), (vec!["narrows-run.1".into()], ".TH mine 1\n"));
    fs::remove_file(scratch.path(theirs)).unwrap();
    scratch.narrows(line).ok();
    let first = contents(&scratch);
    assert!(first.len() > 20, "{}", first.len());
    scratch.narrows(line).ok();
    assert_eq!(contents(&scratch), first);
    scratch.write(theirs, &scratch.read(theirs).replace("SYNOPSIS", "USAGE"));
    scratch.narrows(line).fails(2, &["narrows-run.1`"]);
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out out").ok();
    let before = scratch.tree();
    for inside in ["man out", "man out/pages"] {
        scratch.narrows(inside).fails(2, &["results directory", "DIRECTORY"]);
    }
    assert_eq!(scratch.tree(), before);
}

/// A long matrix has its flows in a second file. Neither file is written unless both may be.
#[test]
fn an_import_of_two_files_writes_both_or_none() {
    let scratch = Scratch::new("two-files");
    let flow = |i: u32| format!("{}->{} start {i} size 100\n", i % 16, (i + 1) % 16);
    let flows = (0..1200).map(flow).collect::<Vec<_>>().concat();
    scratch.write("a.cm", &format!("Nodes 16\nConnections 1200\n{flows}"));
    let line = "import htsim a.cm --start-unit ps -o made.toml";
    scratch.write("made.flows.csv", "start,src,dst,bytes\n");
    scratch.narrows(line).fails(2, &["`made.flows.csv`"]);
    assert!(!scratch.path("made.toml").exists());
    fs::remove_file(scratch.path("made.flows.csv")).unwrap();
    scratch.write("made.toml", "mine");
    scratch.narrows(line).fails(2, &["`made.toml`"]);
    assert!(!scratch.path("made.flows.csv").exists());
    fs::remove_file(scratch.path("made.toml")).unwrap();
    scratch.narrows(line).ok();
    scratch.narrows(line).ok();
    scratch.narrows("check made.toml --quiet").ok();
    scratch.write("made.flows.csv", &scratch.read("made.flows.csv").replace("100", "200"));
    scratch.narrows(line).fails(2, &["`made.flows.csv`"]);
}

/// An option that takes a file.
#[cfg(all(target_os = "linux", feature = "import", feature = "transport"))]
#[derive(Clone, Copy)]
enum Use {
    /// The file is written. The command, to which the file is added.
    Output(&'static str),
    /// The file is written by the Python package, which tests it (`test_figures_are_regular_files`).
    Python,
    /// The file is read.
    Input,
    /// The file is read, or made for its owner alone if nothing has its name.
    Kept,
}

/// Options of all commands, by the names of their manual pages: a new one is added here, with its use.
#[cfg(all(target_os = "linux", feature = "import", feature = "transport"))]
fn options_of_files() -> std::collections::BTreeMap<(&'static str, &'static str), Use> {
    let mut all = std::collections::BTreeMap::from([
        (("narrows-clocks-run", "--peers"), Use::Input),
        (("narrows-compare", "--markdown"), Use::Output("compare out out --flows --markdown ")),
        (("narrows-emulate", "--pcap"), Use::Output("emulate pair.toml --scheme cubic --pcap left>right=")),
        (("narrows-export-perfetto", "--out"), Use::Output("export perfetto out --out ")),
        (("narrows-export-qlog", "--out"), Use::Output("export qlog out --flow 0 --out ")),
        (("narrows-import-chakra", "--groups"), Use::Input),
        (("narrows-import-chakra", "--out"), Use::Output("import chakra input -o ")),
        (("narrows-import-containerlab", "--out"), Use::Output("import containerlab input -o ")),
        (("narrows-import-flows", "--out"), Use::Output("import flows input -o ")),
        (("narrows-import-goal", "--out"), Use::Output("import goal input -o ")),
        (("narrows-import-graphml", "--out"), Use::Output("import graphml input -o ")),
        (("narrows-import-hpcc", "--out"), Use::Output("import hpcc input input -o ")),
        (("narrows-import-htsim", "--out"), Use::Output("import htsim a.cm -o ")),
        (("narrows-import-links", "--out"), Use::Output("import links input -o ")),
        (("narrows-import-msccl", "--out"), Use::Output("import msccl input --size 1MB -o ")),
        (("narrows-import-netflow", "--out"), Use::Output("import netflow input -o ")),
        (("narrows-import-pcap", "--out"), Use::Output("import pcap input -o ")),
        (("narrows-import-simai", "--out"), Use::Output("import simai input -o ")),
        (("narrows-import-sndlib", "--out"), Use::Output("import sndlib input -o ")),
        (("narrows-plot", "--baseline"), Use::Input),
        (("narrows-plot", "--out"), Use::Python),
        (("narrows-proxy-server", "--ticket"), Use::Kept),
        (("narrows-report", "--out"), Use::Output("report out --out ")),
        (("narrows-score", "--save-baseline"), Use::Output("score out --save-baseline ")),
    ]);
    for traffic in ["chakra", "flows", "goal", "msccl", "netflow", "pcap", "simai"] {
        let page: &str = format!("narrows-import-{traffic}").leak();
        all.insert((page, "--scenario"), Use::Input);
    }
    for page in ["narrows-perf", "narrows-proxy-server", "narrows-proxy-client", "narrows-recv", "narrows-send"] {
        all.insert((page, "--identity"), Use::Kept);
    }
    all
}

/// No command writes to a device that keeps what it gets: a report over a disk would be the end of its file system. The options
/// are those of the manual, so that a command which is new is in the test.
#[cfg(all(target_os = "linux", feature = "import", feature = "transport"))]
#[test]
fn no_output_is_a_device() {
    let scratch = prepared("devices");
    scratch.write("pair.toml", crate::emulate::PAIR);
    scratch.write("papers/tiny/fig1.toml", &format!("{ONE}[scale.quick]\n"));
    scratch.narrows("man pages").ok();
    let mut found = Vec::new();
    for page in scratch.files("pages") {
        for line in scratch.read(&format!("pages/{page}")).replace("\\-", "-").lines() {
            let is_of_file = line.starts_with("\\fB-") && ["<FILE>", "=FILE>"].iter().any(|it| line.contains(it));
            let long = line.split("\\fB").find_map(|part| part.split("\\fR").next().filter(|it| it.starts_with("--")));
            if let Some(long) = long.filter(|_| is_of_file) {
                found.push((page.trim_end_matches(".1").to_owned(), long.to_owned()));
            }
        }
    }
    found.sort();
    let known = options_of_files();
    let names: Vec<_> = known.keys().map(|&(page, option)| (page.to_owned(), option.to_owned())).collect();
    assert_eq!(found, names, "add what is new to `options_of_files`");

    // A device that takes anything and keeps nothing, so that nothing is lost if this fails.
    let refused = "`/dev/zero`: it is a character device; expected a regular file, a pipe, a terminal or /dev/null";
    let before = contents(&scratch);
    std::os::unix::fs::symlink("/dev/zero", scratch.path("link")).unwrap();
    for option in known.values() {
        let Use::Output(line) = option else { continue };
        scratch.narrows(&format!("{line}/dev/zero")).fails(2, &["error:", refused]);
        let through_link = refused.replace("/dev/zero`", "link`");
        scratch.narrows(&format!("{line}link")).fails(2, &["error:", &through_link]);
    }
    fs::remove_file(scratch.path("link")).unwrap();
    assert_eq!(contents(&scratch), before);
    // A device that stores no data by design is an output.
    scratch.narrows("report out --out /dev/null").ok();
}
