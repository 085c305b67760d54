//! The last step: a new set of results replaces the old one.
//!
//! Files are renamed one by one, and the directory itself is not: it may be mounted, or be a shell's working directory. The
//! directory shows the progress at any time, so that the next process can finish it:
//!
//! 1. `.next/whole` exists: Narrows' files in the directory are the old set. They move to `.next/old`.
//! 2. `whole` is renamed to `.next/moving`. From now on Narrows' files in the directory are the new set.
//! 3. The new set moves in, its manifest last. Then the empty `moving` and `old` are removed.
//!
//! A directory without a manifest is not a set, and there is no manifest from the first rename to the last.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::layout::{self, COMPLETE, FILES, MOVING, NEXT, OLD, entries};
use super::{MANIFEST, RUNS};
use crate::Error;

/// Returns whether a new set is taking the old one's place.
pub(super) fn is_unsettled(out: &Path) -> bool {
    let next = out.join(NEXT);
    (next.join(COMPLETE).is_dir() || next.join(MOVING).is_dir()) && layout::next_is_ours(out)
}

/// Completes an interrupted replacement, if there is one. The caller holds the lock of `out`.
///
/// # Errors
/// When other files are in the place of ours, or the system refuses.
pub(super) fn settle(out: &Path) -> Result<(), Error> {
    if !layout::next_is_ours(out) {
        return Ok(());
    }
    let theirs = in_the_way(out).map_err(Error::io("read", out))?;
    if !theirs.is_empty() {
        return Err(Error::occupied(out, &theirs));
    }
    steps(out).map_err(Error::io("put the results in place in", out))
}

/// The files that would be lost. While the old set moves out these are all files that are not ours; while the new set
/// moves in, those that have one of its names.
fn in_the_way(out: &Path) -> io::Result<Vec<PathBuf>> {
    let moving = out.join(NEXT).join(MOVING);
    if out.join(NEXT).join(COMPLETE).is_dir() {
        return layout::foreign(out);
    }
    if !moving.is_dir() {
        return Ok(Vec::new());
    }
    let moved = entries(&moving)?.into_iter().map(|entry| out.join(entry.name));
    Ok(moved.filter(|path| fs::symlink_metadata(path).is_ok()).collect())
}

fn steps(out: &Path) -> io::Result<()> {
    let next = out.join(NEXT);
    let (complete, moving, old) = (next.join(COMPLETE), next.join(MOVING), next.join(OLD));
    if complete.is_dir() {
        put_aside(out, &old)?;
        // The removal of the old set must be on disk before any file records it.
        files::sync_directory(out)?;
        files::sync_directory(&old)?;
        fs::rename(&complete, &moving)?;
        files::sync_directory(&next)?;
    }
    if moving.is_dir() {
        let mut names: Vec<String> = entries(&moving)?.into_iter().map(|entry| entry.name).collect();
        names.sort_unstable_by_key(|name| name == MANIFEST);
        for name in names {
            fs::rename(moving.join(&name), out.join(&name))?;
        }
        files::sync_directory(out)?;
        fs::remove_dir(&moving)?;
    }
    if old.is_dir() {
        layout::remove(&old)?;
    }
    Ok(())
}

/// Moves the current set of the directory to `old`, its manifest first.
fn put_aside(out: &Path, old: &Path) -> io::Result<()> {
    fs::create_dir_all(old)?;
    // The manifest is the first of the names.
    for name in FILES.into_iter().chain([RUNS]) {
        let (from, to) = (out.join(name), old.join(name));
        if fs::symlink_metadata(&from).is_ok() {
            if to.is_dir() {
                layout::remove(&to)?;
            }
            fs::rename(from, to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::TestbedDir;

    const OURS: &str = r#"{ "program": "narrows" }"#;

    /// A directory with an old set and a new one that is whole.
    fn prepared(name: &str) -> (TestbedDir, std::path::PathBuf) {
        let scratch = TestbedDir::new(name);
        let out = scratch.path().join("out");
        let write = |name: &str, text: &str| {
            let path = out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".next/plan.json", OURS);
        for name in ["manifest.json", "summary.json", "runs/a/manifest.json", "runs/b/manifest.json"] {
            write(name, OURS);
        }
        for name in ["manifest.json", "summary.json", "report.html", "runs/b/manifest.json"] {
            write(&format!(".next/whole/{name}"), "new");
        }
        (scratch, out)
    }

    fn is_new(out: &Path) {
        for name in ["manifest.json", "summary.json", "report.html", "runs/b/manifest.json"] {
            assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "new", "{name}");
        }
        assert!(!out.join("runs/a").exists() && !is_unsettled(out) && !out.join(".next/old").exists());
    }

    #[test]
    fn new_results_replace_the_old_ones() {
        let (_scratch, out) = prepared("settle");
        assert!(is_unsettled(&out));
        settle(&out).unwrap();
        is_new(&out);
        settle(&out).unwrap();
        is_new(&out);
    }

    /// Every prefix of the renames, as a kill leaves it.
    #[test]
    fn settling_can_be_interrupted_anywhere() {
        for stopped_after in 0..9 {
            let (_scratch, out) = prepared("stopped");
            let next = out.join(NEXT);
            let rename = |from: &str, to: &str| {
                fs::create_dir_all(next.join(OLD)).unwrap();
                fs::rename(out.join(from), out.join(to)).unwrap();
            };
            let renames = [
                ("manifest.json", ".next/old/manifest.json"),
                ("summary.json", ".next/old/summary.json"),
                ("runs", ".next/old/runs"),
                (".next/whole", ".next/moving"),
                (".next/moving/report.html", "report.html"),
                (".next/moving/runs", "runs"),
                (".next/moving/summary.json", "summary.json"),
                (".next/moving/manifest.json", "manifest.json"),
            ];
            renames.into_iter().take(stopped_after).for_each(|(from, to)| rename(from, to));
            assert!(is_unsettled(&out), "{stopped_after}");
            settle(&out).unwrap();
            is_new(&out);
        }
    }

    #[test]
    fn conflicting_user_files_stop_the_move() {
        // While the old set moves out, and while the new one moves in.
        for (name, from, to) in [("note.txt", "", ""), ("summary.json", ".next/whole", ".next/moving")] {
            let (_scratch, out) = prepared("in-the-way");
            if !from.is_empty() {
                for name in ["manifest.json", "summary.json", "runs"] {
                    fs::create_dir_all(out.join(".next/old")).unwrap();
                    fs::rename(out.join(name), out.join(".next/old").join(name)).unwrap();
                }
                fs::rename(out.join(from), out.join(to)).unwrap();
            }
            fs::write(out.join(name), "mine").unwrap();
            let message = settle(&out).unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
            assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine");
            fs::remove_file(out.join(name)).unwrap();
            settle(&out).unwrap();
            is_new(&out);
        }
        // A set that looks like ours but has no plan of ours is not touched either.
        let (_scratch, out) = prepared("no-plan");
        fs::write(out.join(".next/plan.json"), "{}").unwrap();
        assert!(!is_unsettled(&out));
        settle(&out).unwrap();
        assert_eq!(fs::read_to_string(out.join("summary.json")).unwrap(), OURS);
    }
}
