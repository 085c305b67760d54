//! Records the origin of the build, for manifests and run keys: the commit (empty outside a checkout), and the versions of
//! the code that decides results, derived from the workspace's sources.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use code_version::{CodePart, CodeParts};

#[path = "src/features.rs"]
mod features;
mod roots;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // `-dirty` is appended where sources were edited since.
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).unwrap_or_default();
    println!("cargo::rustc-env=NARROWS_COMMIT={commit}");
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }

    let workspace = Path::new("../../..");
    match CodeParts::read(workspace, &roots::ROOTS) {
        Ok((parts, files)) => {
            for file in files {
                println!("cargo::rerun-if-changed={}", file.display());
            }
            println!("cargo::rerun-if-changed={}", workspace.join("Cargo.lock").display());
            let out = env::var_os("OUT_DIR").unwrap_or_default();
            let out = Path::new(&out).join("versions.rs");
            if let Err(error) = fs::write(&out, constants(&parts)) {
                println!("cargo::error={}: {error}", out.display());
            }
        }
        Err(error) => println!("cargo::error={error}"),
    }
}

/// Returns the versions as constants: `ENGINE`, `LAWS`, `FEATURES` and `RECORD`.
fn constants(parts: &CodeParts) -> String {
    let mut text = String::new();
    let one = |part: &CodePart| format!("{:016x}", part.version);
    for (name, what, part) in [("ENGINE", "every run uses", &parts.engine), ("RECORD", "records runs", &parts.record)] {
        let _ =
            writeln!(text, "/// Version of the code that {what}.\npub(crate) const {name}: &str = {:?};", one(part));
    }
    for (name, what, all) in [("LAWS", "laws, by module", &parts.laws), ("FEATURES", "features", &parts.features)] {
        let rows: Vec<String> = all.iter().map(|(name, part)| format!("({name:?}, {:?})", one(part))).collect();
        let _ = writeln!(
            text,
            "/// Versions of {what}.\npub(crate) const {name}: &[(&str, &str)] = &[{}];",
            rows.join(", ")
        );
    }
    text
}
