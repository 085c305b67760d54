//! Commands about the program itself: help, completions, man pages, the schema.

use testing::Bounded;

use crate::support::{ONE, Scratch, keys};

const COMMANDS: [&str; 18] = [
    "demo",
    "run",
    "check",
    "reproduce",
    "laws",
    "new-law",
    "bench engine",
    "bench codes",
    "bench transport",
    "report",
    "compare",
    "import htsim",
    "perf",
    "send",
    "recv",
    "schema",
    "completions",
    "man",
];

#[test]
fn help_fits_a_narrow_terminal_and_names_everything() {
    let scratch = Scratch::new("help");
    let top = scratch.narrows("--help").ok();
    for part in ["Exit codes: 0 fine", "130 interrupted"] {
        assert!(top.out.contains(part), "{top}");
    }
    let mut texts = vec![top.out.clone()];
    for command in COMMANDS {
        let name = command.split(' ').next().unwrap();
        assert!(top.out.contains(&format!("\n  {name} ")), "{name} in {top}");
        for flag in ["--help", "-h"] {
            let ran = scratch.narrows(&format!("{command} {flag}")).ok();
            assert!(ran.out.contains(&format!("Usage: narrows {command}")), "{ran}");
            texts.push(ran.out);
        }
    }
    for text in &texts {
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 110).collect();
        assert!(wide.is_empty(), "{wide:?}");
    }
    for name in ["run", "demo", "reproduce"] {
        let help = scratch.narrows(&format!("{name} --help")).out;
        for option in ["--json", "--set <KEY=VALUE>", "--seed", "--threads", "--out <DIR>", "--quiet"] {
            assert!(help.contains(option), "{name}: {option}");
        }
    }
    // Without a command, the help is an error's.
    scratch.narrows("").fails(2, &["Usage: narrows <COMMAND>", "demo"]);
    let version = concat!("narrows ", env!("CARGO_PKG_VERSION"));
    let missing = if cfg!(feature = "bpf") { "" } else { " (without the kernel part)" };
    assert_eq!(scratch.narrows("--version").ok().out, format!("{version}{missing}\n"));
    assert_eq!(scratch.narrows("-V").ok().out, format!("{version}\n"));
}

#[test]
fn prose_in_tables_fits_where_there_is_no_terminal() {
    let scratch = Scratch::new("laws");
    for line in ["laws", "laws unocc", "laws bbr"] {
        let ran = scratch.narrows(line).ok();
        let wide: Vec<_> = ran.out.lines().filter(|line| line.chars().count() > 110).collect();
        assert!(wide.is_empty(), "{line}: {wide:?}");
    }
}

#[test]
fn completions() {
    let scratch = Scratch::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = scratch.narrows(&format!("completions {shell}")).ok();
        for part in ["reproduce", "import", "threads"] {
            assert!(ran.out.contains(part), "{shell}: {part}");
        }
    }
    let bash = scratch.narrows("completions bash").out;
    // As a file: an argument may be 128 KiB long.
    scratch.write("completions.bash", &bash);
    let parsed = std::process::Command::new("bash").arg("-n").arg(scratch.path("completions.bash")).try_finish();
    assert!(parsed.is_ok_and(|parsed| parsed.status.success()));
    scratch.narrows("completions tcsh").fails(2, &["'tcsh'", "bash"]);
}

#[test]
fn man_pages() {
    let scratch = Scratch::new("man");
    scratch.narrows("man pages/man1").ok();
    for command in COMMANDS {
        let name = format!("pages/man1/narrows-{}.1", command.replace(' ', "-"));
        let page = scratch.read(&name);
        assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{name}");
    }
    assert!(scratch.read("pages/man1/narrows.1").contains("Exit codes"));
    scratch.write("file", "");
    scratch.narrows("man file").fails(2, &["`file`"]);
}

#[test]
fn the_schema_and_the_resolved_scenario() {
    let scratch = Scratch::new("schema");
    let schema = scratch.narrows("schema").ok().json();
    assert!(keys(&schema).contains(&"$schema"));
    for key in ["name", "topology", "schemes", "traffic", "grid"] {
        assert!(keys(&schema["properties"]).contains(&key), "{key}");
    }
    scratch.write("one.toml", ONE);
    let resolved = scratch.narrows("check one.toml --resolved").ok().out;
    assert!(resolved.contains("ack_every = 1"), "{resolved}");
    // It reads back as the same scenario.
    scratch.write("again.toml", &resolved);
    assert_eq!(scratch.narrows("check again.toml --resolved").ok().out, resolved);
}
