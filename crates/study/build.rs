//! Notes what the program is built from, for manifests: the commit (empty outside a checkout) and the engine's version.
//! That version is a hash of the sources that results depend on, so nobody has to remember to count it up.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// What decides what a run leaves: sources, and the distributions that ship with the program.
const ENGINE: [&str; 12] = [
    "units/src",
    "laws/src",
    "codes/src",
    "flow/src",
    "fabric/src",
    "sim/src",
    "scenario/src",
    "scenario/data",
    "results/src",
    "emulator/src",
    "kernel/src",
    "kernel/bpf",
];

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // `-dirty` stands behind it where sources were edited since.
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).unwrap_or_default();
    println!("cargo::rustc-env=NARROWS_COMMIT={commit}");
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }

    let mut hash = Sha256::new();
    for folder in ENGINE {
        let sources = Path::new("..").join(folder);
        println!("cargo::rerun-if-changed={}", sources.display());
        for path in files(&sources) {
            add(&mut hash, &path);
        }
    }
    // Cargo.lock has the versions of the libraries.
    let libraries = Path::new("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", libraries.display());
    add(&mut hash, libraries);
    let engine = hash.finalize().iter().take(8).fold(0, |number: u64, &byte| number << 8 | u64::from(byte));
    println!("cargo::rustc-env=NARROWS_ENGINE={engine:016x}");
}

/// Adds a file's name and text, each with its length.
fn add(hash: &mut Sha256, path: &Path) {
    let name = path.to_string_lossy();
    let text = std::fs::read(path).expect("a source file can be read");
    for part in [name.as_bytes(), &text] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
}

/// All files below a directory, in order.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the workspace's crates lie side by side");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_unstable();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
