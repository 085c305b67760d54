//! The output of commands: quiet, without a terminal, with one, and with a closed reader.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::thread;

use nix::pty::{Winsize, openpty};
use testing::{Bounded, COMMAND, join_thread};

use crate::support::{GRID, ONE, Scratch, code};

#[test]
fn quiet_prints_warnings_alone() {
    let scratch = Scratch::new("quiet");
    scratch.write("one.toml", ONE);
    scratch.write("grid.toml", GRID);
    for line in
        ["run one.toml --quiet", "run grid.toml -q", "demo --quiet --set traffic.0.size=4KiB", "check one.toml -q"]
    {
        let ran = scratch.narrows(line).ok();
        assert_eq!(ran.out, "", "{line}");
        assert!(ran.err.lines().all(|printed| printed.starts_with("warning: ")), "{ran}");
        assert_eq!(ran.err.is_empty(), line != "run grid.toml -q", "{ran}");
    }
    for report in ["out/one/report.html", "out/grid/report.html", "out/demo/report.html"] {
        assert!(scratch.read(report).contains("</html>"), "{report}");
    }
}

#[test]
fn prints_table_warnings_and_report_path() {
    let scratch = Scratch::new("table");
    scratch.write("grid.toml", GRID);
    let ran = scratch.narrows("run grid.toml --set stop=1ms").ok();
    for part in
        ["Uno, traffic.0.load=0.2", "Cubic, traffic.0.load=0.6", "warning: all 6 runs", "report: out/grid/report.html"]
    {
        assert!(ran.out.contains(part), "no `{part}` in {ran}");
    }
    assert_eq!(ran.err, "");
}

/// The conditions of comparisons are printed under the table of schemes: the initial windows, the bandwidth-delay
/// products, the most loaded links. A link that is offered more than it carries is named before and after the run.
#[test]
fn conditions_are_printed_below_the_table() {
    let scratch = Scratch::new("conditions");
    scratch.write("grid.toml", GRID);
    let ran = scratch.narrows("run grid.toml --out r").ok();
    let again = scratch.narrows("show r").ok();
    for printed in [&ran.out, &again.out, &scratch.narrows("score r --metric p50(all.slowdown)").ok().out] {
        for part in ["initial window of Uno: intra ", "initial window of Cubic: intra ", " BDP)"] {
            assert!(printed.contains(part), "no `{part}` in {printed}");
        }
    }
    for part in ["bandwidth-delay product: intra ", "most loaded by arrivals: dc"] {
        assert!(ran.out.contains(part), "no `{part}` in {ran}");
    }
    let checked = scratch.narrows("check grid.toml --scheme uno").ok().out;
    for part in
        ["base round trip inside datacenters: ", "; bandwidth-delay product ", "; initial window ", "most loaded"]
    {
        assert!(checked.contains(part), "no `{part}` in {checked}");
    }
    // Most inter-datacenter traffic goes to hosts, one per datacenter.
    let over =
        "run grid.toml --out over --set traffic.0.ratio=40:1 --set traffic.0.load=100% --set grid={} --scheme cubic";
    let over = scratch.narrows(over).ok();
    assert!(over.out.contains("% of its rate") && over.out.contains("traffic.0.load"), "{over}");
}

/// Returns the output of a command on a terminal.
fn on_a_terminal(scratch: &Scratch, line: &str, no_colour: bool) -> String {
    on_columns(scratch, line, no_colour, None)
}

/// Returns the same, on a terminal of `columns` columns.
fn on_columns(scratch: &Scratch, line: &str, no_colour: bool, columns: Option<u16>) -> String {
    let size = columns.map(|ws_col| Winsize { ws_row: 24, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
    let pty = openpty(&size, None).unwrap();
    let mut command = scratch.command(line.split(' '));
    command.stdin(Stdio::null()).stdout(pty.slave.try_clone().unwrap()).stderr(pty.slave).env("TERM", "xterm-256color");
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    let mut child = command.start();
    drop(command);
    let read = move || {
        let mut text = Vec::new();
        // Linux reports an error, not an end, once no process has the terminal open.
        let _ = File::from(pty.master).read_to_end(&mut text);
        text
    };
    let text = join_thread(COMMAND, &format!("`{line}` closes its terminal"), thread::spawn(read));
    child.status();
    String::from_utf8(text).unwrap()
}

#[test]
fn narrow_terminals_show_essential_columns() {
    let scratch = Scratch::new("narrow");
    scratch.write("grid.toml", GRID);
    // The text after the last line of progress that was cleared.
    let shown = |line: &str| {
        let text = on_columns(&scratch, line, true, Some(60)).replace("\r\n", "\n");
        text.rsplit("\u{1b}[2K").next().unwrap_or_default().to_owned()
    };
    let text = shown("run grid.toml");
    let table: Vec<&str> = text.lines().filter(|line| line.contains(['┆', '─', '╪'])).collect();
    assert!(table.len() >= 9 && table.iter().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.contains("--wide"), "{text}");
    assert!(text.contains("done") && text.contains("Cubic, traffic.0.load=0.6") && !text.contains("longest"), "{text}");
    let wide = shown("run grid.toml --wide");
    assert!(wide.contains("max queue") && !wide.contains("--wide"), "{wide}");
}

#[test]
fn colour_needs_a_terminal_and_no_color_disables_it() {
    let scratch = Scratch::new("colour");
    scratch.write("bad.toml", &ONE.replace("hosts", "hsots"));
    scratch.write(
        "papers/p/f.toml",
        &format!("{ONE}[[claim]]\nid = \"a\"\ntext = \"t\"\npaper = 1\ncheck = \"dctcp.all.count == 4\"\n"),
    );
    for line in ["check bad.toml", "--help", "reproduce p/f --scale paper --out out"] {
        let coloured = on_a_terminal(&scratch, line, false);
        let plain = on_a_terminal(&scratch, line, true);
        // Progress moves the cursor on any terminal; colours are `ESC [ ... m`.
        let colours = |text: &str| {
            let codes = text.split("\u{1b}[").skip(1);
            codes
                .filter(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
                .count()
        };
        assert!(colours(&coloured) > 0, "{line}: {coloured:?}");
        assert_eq!(colours(&plain), 0, "{line}: {plain:?}");
    }
    let printed = scratch.narrows("check bad.toml").fails(2, &["`hosts`"]).err;
    assert_eq!(on_a_terminal(&scratch, "check bad.toml", true).replace("\r\n", "\n"), printed);
}

/// On a terminal, errors are in colour. The escape sequences are this program's, not those of a file that they quote.
#[test]
fn files_send_no_escape_sequences_to_a_terminal() {
    let scratch = Scratch::new("hostile");
    let hostile = "\u{1b}[35mx\u{1b}]0;t\u{7}\u{1b}[2J";
    scratch.write("comment.toml", &format!("hsots = 1 # {hostile}\n{ONE}"));
    scratch.write("value.toml", &ONE.replace("hosts = ", &format!("hosts = {hostile} ")));
    scratch.write("flows.csv", &format!("start,src,dst,bytes\n0s,a,b,{hostile}\n"));
    let mut lines = vec!["check comment.toml", "run value.toml --out out"];
    if cfg!(feature = "import") {
        lines.push("import flows flows.csv -o no.toml");
    }
    for line in lines {
        let shown = on_a_terminal(&scratch, line, false);
        assert!(shown.contains("\u{241b}[35mx") && shown.contains("\u{1b}["), "{line}: {shown:?}");
        for sequence in ["\u{1b}[35m", "\u{1b}]", "\u{7}", "\u{1b}[2J"] {
            assert!(!shown.contains(sequence), "{line}: {shown:?}");
        }
    }
}

#[test]
fn closed_pipe_is_no_error() {
    let scratch = Scratch::new("pipe");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out before").ok();
    scratch.narrows("run one.toml --quiet --out worse --set port.buffer=16KiB").ok();
    let lines = [
        ("laws", 0),
        ("laws unocc", 0),
        ("--help", 0),
        ("schema", 0),
        ("completions bash", 0),
        ("check one.toml", 0),
        ("run one.toml", 0),
        ("run one.toml --json --out json", 0),
        // The verdict does not change.
        ("compare before worse", 3),
    ];
    for (line, expected) in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = scratch.command(line.split(' ')).stdout(writer).stderr(Stdio::piped()).start().output();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(code(output.status), expected, "{line}: {err}");
        assert!(expected != 0 || err.is_empty(), "{line}: {err}");
    }
    for out in ["out/one", "json"] {
        let files = [
            "flow_samples.parquet",
            "flows.parquet",
            "manifest.json",
            "port_samples.parquet",
            "report.html",
            "summary.json",
        ];
        assert_eq!(scratch.files(out), files, "{out}");
    }
    // A standard error without a reader is no reason to panic either.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(code(scratch.command(["run", "missing.toml"]).stderr(writer).start().status()), 2);
}

#[test]
fn check_shows_controllers_holds_and_headrooms() {
    let scratch = Scratch::new("check-lossless");
    let papers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers");
    let check = |line: String| scratch.narrows(&format!("check {papers}/{line}")).ok().out;
    let set = "--set port.inter.headroom=1MB --set host.on_ramp.threshold=30us";
    let text = check(format!("lscc/fig8.toml {set}"));
    for part in [
        "headroom 1.0 MB, 49.0 MB less than may arrive at worst after a pause",
        "On-Ramp: a flow is held while its one-way delay is over 30.000 us\n",
        "LSCC, near end, 2 ports: sources are notified over a pseudo-queue of 2.0 MB",
        "LSCC, far end, 2 ports: a rate every 200.000 us, 10 on their way (N); 100 Mbps to 200 Gbps",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = check("lscc/fig8.toml --set port.inter.headroom=auto".to_owned());
    assert!(!text.contains("less than may arrive") && !text.contains("On-Ramp"), "{text}");
    let of = |scheme: &str| check(format!("bake-off/haul.toml --scheme {scheme}"));
    let hpcc_star = of("hpcc_star");
    assert!(!hpcc_star.contains("\ndcqcn,traffic.0.load") && hpcc_star.contains(" of these schemes\n"), "{hpcc_star}");
    assert!(hpcc_star.contains("near end, 2 ports: sources get the reports of ports"), "{hpcc_star}");
    let swing = of("swing");
    let relay = swing.split_once("of tier relay").expect("relays").1.split("of tier").next().unwrap_or_default();
    assert!(relay.contains("inter: pauses at") && !relay.contains("less than may arrive"), "{swing}");
}

/// One point in full, then the differences. Even a paper's comparison of hundreds of runs is about a screen.
#[test]
fn check_of_a_grid_fits_a_screen() {
    let scratch = Scratch::new("check-grid");
    scratch.write("grid.toml", GRID);
    let text = scratch.narrows("check grid.toml --set stop=1ms").ok().out;
    let network = text.lines().filter(|line| line.contains(" hosts and ")).count();
    assert_eq!(network, 1, "{text}");
    for part in [
        "\n  traffic.0.load: 0.2, 0.6\n",
        "\nwhat differs\n",
        "values by traffic.0.load; uno,traffic.0.load=0.6",
        "warning: ",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let haul = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/bake-off/haul.toml");
    let text = scratch.narrows(&format!("check {haul}")).ok().out;
    assert!(text.lines().count() < 60 && text.contains("values by scheme, variant; "), "{text}");
}

#[test]
fn mechanisms_are_not_laws() {
    let scratch = Scratch::new("no-law");
    scratch.narrows("laws On-Ramp").fails(2, &["`On-Ramp`", "see [host.on_ramp]"]);
}

#[test]
fn results_are_shown_again() {
    let scratch = Scratch::new("output-shown");
    scratch.write("s.toml", ONE);
    let run = scratch.narrows("run s.toml --out r").ok();
    let shown = scratch.narrows("show r").ok();
    assert!(run.out.starts_with(&shown.out[..shown.out.len() - 1]), "{run}\n{shown}");
    let json = scratch.narrows("run s.toml --out r --json").ok();
    assert_eq!(scratch.narrows("show r --json").ok().out, json.out);
    scratch.narrows("sweep s.toml --seeds 2 --out seeds").ok();
    let seeds = scratch.narrows("show seeds").ok();
    assert!(["seed=1", "seed=2", "DCTCP (deterministic)"].iter().all(|part| seeds.out.contains(part)), "{seeds}");
    scratch.narrows("show nowhere").fails(2, &["nowhere"]);
}
