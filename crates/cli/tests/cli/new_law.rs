//! `narrows new-law`, in a copy of the files that it changes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testing::Bounded;

use crate::support::{Scratch, skipped};

/// Deadline of a call of Cargo, which may build all that the laws use.
const BUILD: Duration = Duration::from_mins(20);

/// The files that the command reads and that `cargo test -p narrows-laws` needs.
const COPIED: [&str; 7] =
    ["Cargo.toml", "Cargo.lock", "rustfmt.toml", "clippy.toml", "crates/core", "docs/src/laws", "docs/src/SUMMARY.md"];

fn checkout(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in COPIED {
        let to = scratch.path(part);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = Command::new("cp").arg("-r").arg(root.join(part)).arg(&to).finish();
        assert!(copied.status.success(), "{part}");
    }
    // The copy has only the laws and their dependencies.
    let workspace = scratch.read("Cargo.toml");
    let absent = |line: &&str| {
        let member = line.trim();
        member == "\"python\"," || (member.starts_with("\"crates/") && member != "\"crates/core/*\",")
    };
    assert_eq!(workspace.lines().filter(absent).count(), 15, "{workspace}");
    let left: Vec<&str> = workspace.lines().filter(|line| !absent(line)).collect();
    scratch.write("Cargo.toml", &(left.join("\n") + "\n"));
    scratch
}

/// The law is where all laws are, it is formatted, and all tests of laws hold it. Cargo needs some seconds for that, so
/// only `make test` asks it.
#[test]
fn a_new_law_builds_and_passes() {
    let scratch = checkout("new-law");
    let ran = scratch.narrows("new-law swift-two").ok();
    assert!(ran.out.starts_with("new: crates/core/laws/src/swift_two.rs, docs/src/laws/swift-two.md\n"), "{}", ran.out);
    assert!(scratch.read("crates/core/laws/src/law.rs").contains("            SwiftTwo in swift_two;\n"));
    assert!(scratch.read("docs/src/laws/README.md").contains("[`swift-two`](swift-two.md)"));
    assert!(scratch.read("docs/src/SUMMARY.md").contains("  - [SwiftTwo](laws/swift-two.md)\n"));
    let again = scratch.narrows("new-law swift-two");
    again.fails(2, &["`swift_two`"]);
    if std::env::var_os("NARROWS_ALL_CASES").is_none() {
        return skipped("a_new_law_builds_and_passes", "compiling it takes a while: set NARROWS_ALL_CASES");
    }
    // One directory for all runs: the dependencies of the laws are compiled once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-law-target");
    let cargo = |args: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(args).current_dir(scratch.path(".")).env("CARGO_TARGET_DIR", &target);
        let output = cargo.piped().output_within(BUILD);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        text
    };
    cargo(&["fmt", "--check", "-p", "narrows-laws"]);
    cargo(&["clippy", "--offline", "-p", "narrows-laws", "--lib", "--", "-D", "warnings"]);
    let tested = cargo(&["test", "--offline", "-p", "narrows-laws", "--lib"]);
    assert!(tested.contains("swift_two::tests::timeout_resets_the_window ... ok"), "{tested}");
}

#[test]
fn invalid_law_names_change_nothing() {
    let scratch = checkout("no-law");
    let before = scratch.read("crates/core/laws/src/law.rs");
    for (args, parts) in [
        ("My-Law", &["lower-case letters"][..]),
        ("9law", &["a letter first"]),
        ("my--law", &["single hyphens"]),
        ("a-law-with-a-name-without-end", &["at most 24"]),
        ("../law", &["lower-case letters"]),
        ("type", &["Rust keeps that word for itself"]),
        ("window", &["has a module `window` already"]),
        ("bbr", &["has a module `bbr` already"]),
        ("ack", &["has a type `Ack` already"]),
        ("mine --source crates", &["`crates` is no checkout of Narrows"]),
    ] {
        scratch.narrows(&format!("new-law {args}")).fails(2, parts);
    }
    // A page that the user wrote stays, and no other file is made.
    scratch.write("docs/src/laws/mine.md", "my notes");
    scratch.narrows("new-law mine").fails(2, &["cannot make", "docs/src/laws/mine.md"]);
    assert_eq!(scratch.read("docs/src/laws/mine.md"), "my notes");
    assert_eq!(scratch.read("crates/core/laws/src/law.rs"), before);
    std::fs::remove_file(scratch.path("docs/src/laws/mine.md")).unwrap();
    // A table that looks otherwise: nothing is made.
    scratch.write("docs/src/SUMMARY.md", "# Summary\n");
    scratch.narrows("new-law mine").fails(2, &["SUMMARY.md`"]);
    assert!(!scratch.path("crates/core/laws/src/mine.rs").exists() && !scratch.path("docs/src/laws/mine.md").exists());
    assert_eq!(scratch.read("crates/core/laws/src/law.rs"), before);
}
