//! The layout of a directory of results, and the files in it that belong to Narrows.
//!
//! ```text
//! OUT/manifest.json, summary.json, report.html      the last complete set: of one run, with its tables,
//! OUT/runs/RUN/                                     or of a grid, with a folder a run
//! OUT/ledger.sqlite                                 of several runs: attempts with their times, and failures
//! OUT/.narrows.lock                                 during a write
//! OUT/.next/plan.json, .next/runs/RUN/              the unfinished set, and its finished runs
//! OUT/.next/building/, whole/, moving/, old/        the last step, see `settle`
//! ```
//!
//! Files are ours by their names and by the manifest next to them. Only such files are ever removed. Files that have
//! our names alone, because the manifest is missing or damaged, are refused like others, and the refusal has the
//! reason.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::SizeLimit;

use super::manifest::{self, MANIFEST, PROGRAM};
use super::{FLOWS, PAUSES, PORTS, RATES, REPORT, RUNS, SUMMARIES, SUMMARY, SWITCHES};
use crate::Error;

/// A manifest or a summary.
pub(super) const JSON: SizeLimit = SizeLimit { kind: "a summary or manifest", mib: 1 << 10 };
/// The set in the making.
pub const NEXT: &str = ".next";
/// The list of the runs that the new set will have.
pub(super) const PLAN: &str = "plan.json";
/// The new set during its assembly.
pub(super) const BUILDING: &str = "building";
/// The new set, whole, while the old one is in its place or on its way out.
pub(super) const COMPLETE: &str = "whole";
/// The new set on its way in, after the old one is out.
pub(super) const MOVING: &str = "moving";
/// The old set, to be removed.
pub(super) const OLD: &str = "old";

/// The record of attempts, next to the set: an SQLite database. Other code writes it; this module knows its name and
/// mark.
pub const LEDGER: &str = "ledger.sqlite";
/// SQLite's journal, next to the ledger while it is changed.
pub const LEDGER_JOURNAL: &str = "ledger.sqlite-journal";
/// The application's number in a ledger's head.
pub const LEDGER_MARK: [u8; 4] = *b"Narw";

/// The files of a set, or of a run in it.
pub(super) const FILES: [&str; 9] = [MANIFEST, SUMMARY, SUMMARIES, FLOWS, PORTS, RATES, SWITCHES, PAUSES, REPORT];

/// The files in a directory of results that Narrows did not write. In a directory without results these are all files.
///
/// # Errors
/// When it cannot be listed.
pub(super) fn foreign(out: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    // While sets are exchanged, the old one's manifest is out first.
    let ours = is_ours(out) || next_is_ours(out) && is_ours(&out.join(NEXT).join(OLD));
    for entry in entries(out)? {
        match entry.name.as_str() {
            files::LOCK if !entry.is_directory => {}
            LEDGER if !entry.is_directory && is_ledger(&entry.path) => {}
            LEDGER_JOURNAL if !entry.is_directory && (!out.join(LEDGER).exists() || is_ledger(&out.join(LEDGER))) => {}
            NEXT if entry.is_directory && next_is_ours(out) => of_next(&entry.path, &mut found)?,
            NEXT if entry.is_directory && holds_nothing(&entry.path)? => {}
            RUNS if entry.is_directory => of_runs(&entry.path, listed(out).as_ref(), &mut found)?,
            name if ours && !entry.is_directory && is_file(name) => {}
            _ => found.push(entry.path),
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns whether a file is a ledger of ours or holds nothing: a ledger is empty until its first commit, and a power
/// failure may leave zeros.
pub fn is_ledger(path: &Path) -> bool {
    /// The offset of the application's number in a database's head.
    const MARK: usize = 68;
    files::head(path, 100).is_ok_and(|head| {
        head.iter().all(|&byte| byte == 0)
            || head.starts_with(b"SQLite format 3\0") && head.get(MARK..MARK + 4) == Some(&LEDGER_MARK)
    })
}

fn of_next(next: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in entries(next)? {
        match entry.name.as_str() {
            name if !entry.is_directory
                && [PLAN, REPORT].iter().any(|file| name == *file || is_partial(name, file)) => {}
            RUNS if entry.is_directory => of_runs(&entry.path, None, found)?,
            BUILDING | COMPLETE | MOVING | OLD if entry.is_directory => of_set(&entry.path, found)?,
            _ => found.push(entry.path),
        }
    }
    Ok(())
}

/// A set that Narrows wrote, complete or not.
fn of_set(set: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in entries(set)? {
        match entry.name.as_str() {
            name if !entry.is_directory && is_file(name) => {}
            // Runs that were moved aside one by one are here, too.
            _ if entry.is_directory => of_set(&entry.path, found)?,
            _ => found.push(entry.path),
        }
    }
    Ok(())
}

/// The folders in `runs` that the manifest of a set lists: a lone run's lists none. Nothing without such a manifest. A
/// list that was edited is still the list: it may only add more folders that count as foreign.
fn listed(out: &Path) -> Option<BTreeSet<String>> {
    let mut manifest = ours_in(&out.join(MANIFEST))?;
    let is_as_written = manifest::take_hash(&mut manifest).is_ok_and(|had_hash| had_hash);
    let runs = manifest["runs"].as_array().into_iter().flatten();
    let folders = runs.filter_map(|run| Path::new(run["folder"].as_str()?).strip_prefix(RUNS).ok());
    let folders: BTreeSet<String> = folders.map(|folder| folder.to_string_lossy().into_owned()).collect();
    (is_as_written || !folders.is_empty()).then_some(folders)
}

/// Returns whether the manifest in a folder belongs to a run of another folder.
fn is_of_another_run(folder: &Path) -> bool {
    let manifest = ours_in(&folder.join(MANIFEST));
    let run = manifest.as_ref().and_then(|manifest| manifest["run"].as_str());
    run.is_some_and(|run| Path::new(&super::run_folder(run)).file_name() != folder.file_name())
}

/// Adds foreign files below `runs`. `listed` are the folders of the set, if that is known; another run that was put
/// next to them is foreign.
fn of_runs(runs: &Path, listed: Option<&BTreeSet<String>>, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in entries(runs)? {
        let partial = is_partial_run(&entry.name);
        let known =
            partial || listed.map_or_else(|| !is_of_another_run(&entry.path), |listed| listed.contains(&entry.name));
        if !entry.is_directory || !known {
            found.push(entry.path);
            continue;
        }
        let ours = partial || is_ours(&entry.path);
        for inside in entries(&entry.path)? {
            if !(ours && !inside.is_directory && is_file(&inside.name)) {
                found.push(inside.path);
            }
        }
    }
    Ok(())
}

/// Refuses a directory that holds files that Narrows did not write.
///
/// # Errors
/// When it does, or cannot be listed.
pub(super) fn refuse_foreign(out: &Path) -> Result<(), Error> {
    let theirs = foreign(out).map_err(Error::io("read", out))?;
    if theirs.is_empty() {
        return Ok(());
    }
    Err(unmarked(out, &theirs).unwrap_or_else(|| Error::occupied(out, &theirs)))
}

/// The error for files that all have our names, where a manifest or a plan is missing or damaged.
pub(super) fn unmarked(out: &Path, theirs: &[PathBuf]) -> Option<Error> {
    let mark = |path: &PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        match name.as_str() {
            NEXT if *path == out.join(NEXT) => Some(path.join(PLAN)),
            name if is_file(name) && !path.is_dir() => Some(files::parent_of(path).join(MANIFEST)),
            _ => None,
        }
    };
    let marks = theirs.iter().map(mark).collect::<Option<Vec<PathBuf>>>()?;
    let (file, defect) = marks.iter().find_map(|mark| Some((mark, lack(mark)?)))?;
    Some(Error::unmarked(out, file, defect, theirs))
}

/// Returns the defect that keeps a manifest or a plan from stating its owner; nothing if there is none.
fn lack(file: &Path) -> Option<&'static str> {
    match files::read(file, JSON) {
        Err(error) if error.is_missing() => Some("is missing"),
        Ok(bytes) if bytes.is_empty() => Some("is empty"),
        Ok(bytes) if serde_json::from_slice::<serde_json::Value>(&bytes).is_err() => Some("is not JSON"),
        _ => None,
    }
}

/// Half-written files of ours next to a set that no process writes any more.
pub(super) fn leftovers(out: &Path) -> Vec<PathBuf> {
    FILES.iter().flat_map(|file| files::leftovers(&out.join(file))).collect()
}

/// Removes our files below a directory, and the directories that are empty then. Other files stay.
///
/// # Errors
/// When something cannot be removed.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    let mut found = entries(directory)?;
    // The manifest and the plan are removed last: if this is interrupted, the remaining files are still known as ours.
    found.sort_by_key(|entry| entry.name == MANIFEST || entry.name == PLAN);
    for entry in found {
        if entry.is_directory {
            remove(&entry.path)?;
        } else if is_file(&entry.name) || entry.name == PLAN || is_partial(&entry.name, PLAN) {
            fs::remove_file(&entry.path)?;
        }
    }
    remove_empty(directory)
}

/// Removes a directory if nothing is in it.
pub(super) fn remove_empty(directory: &Path) -> io::Result<()> {
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        result => result,
    }
}

/// Returns the results directory that contains a path at any depth, if any: the outermost one. For a path that does not
/// exist, its directory counts.
pub fn results_around(path: &Path) -> Option<PathBuf> {
    let resolved = fs::canonicalize(path).or_else(|_| fs::canonicalize(files::parent_of(path))).ok()?;
    let inside = if resolved.is_dir() { Some(resolved.as_path()) } else { resolved.parent() };
    // The outermost: that of a grid, and not of a run in it.
    inside?.ancestors().filter(|directory| is_ours(directory) || next_is_ours(directory)).last().map(Path::to_path_buf)
}

/// Returns the results directory that would contain a directory of results, existing or not; its own results do not count.
pub(super) fn results_above(out: &Path) -> Option<PathBuf> {
    // Links are resolved, as far as the path exists.
    let path = std::path::absolute(out).ok()?;
    let existing = |(missing, path): (usize, &Path)| Some((missing, fs::canonicalize(path).ok()?));
    let (missing, existing_path) = path.ancestors().enumerate().find_map(existing)?;
    let parents = existing_path.ancestors().skip(usize::from(missing == 0));
    parents.filter(|directory| is_ours(directory) || next_is_ours(directory)).last().map(Path::to_path_buf)
}

/// Returns whether Narrows wrote the staged set, by its plan.
pub(super) fn next_is_ours(out: &Path) -> bool {
    says_ours(&out.join(NEXT).join(PLAN))
}

/// Returns whether a directory holds nothing but directories and half-written plans.
fn holds_nothing(directory: &Path) -> io::Result<bool> {
    for entry in entries(directory)? {
        let nothing = if entry.is_directory { holds_nothing(&entry.path)? } else { is_partial(&entry.name, PLAN) };
        if !nothing {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the manifest in a directory is ours.
fn is_ours(directory: &Path) -> bool {
    says_ours(&directory.join(MANIFEST))
}

fn says_ours(file: &Path) -> bool {
    ours_in(file).is_some()
}

/// Returns the contents of a manifest or a plan, if it is ours.
fn ours_in(file: &Path) -> Option<serde_json::Value> {
    let bytes = files::read(file, JSON).ok()?;
    let contents: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    (contents["program"] == PROGRAM).then_some(contents)
}

/// A file of a set by its name, whole or half-written.
fn is_file(name: &str) -> bool {
    FILES.iter().any(|file| name == *file || is_partial(name, file))
}

/// Returns the name of a partial run: `.partial-PID-RUN`. The folder of a finished run does not begin with a dot.
pub(super) fn partial_run(folder: &str) -> String {
    format!("{PARTIAL}{}-{folder}", std::process::id())
}

/// Returns whether this is the name of a run in the making: `.partial-PID-RUN`.
pub(super) fn is_partial_run(name: &str) -> bool {
    let pid = name.strip_prefix(PARTIAL).and_then(|rest| rest.split_once('-'));
    pid.is_some_and(|(pid, _)| is_number(pid))
}

/// Infix in the name of a partial run or file, before a process ID.
const PARTIAL: &str = ".partial-";

/// Returns whether this is the name of a half-written `file`: `FILE.partial-NUMBER`, as [`files::AtomicFile`] names it.
fn is_partial(name: &str, file: &str) -> bool {
    name.strip_prefix(file).and_then(|rest| rest.strip_prefix(PARTIAL)).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A directory entry.
pub(super) struct ListedFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// False for a link to a directory: its target is not ours.
    pub(super) is_directory: bool,
}

/// Returns the entries of a directory, in order of names.
pub(super) fn entries(directory: &Path) -> io::Result<Vec<ListedFile>> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok(ListedFile { name, path: entry.path(), is_directory: entry.file_type()?.is_dir() })
    };
    let mut found = fs::read_dir(directory)?.map(entry).collect::<io::Result<Vec<_>>>()?;
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::TestbedDir;

    const OURS: &str = r#"{ "program": "narrows" }"#;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn user_files_are_detected_and_kept() {
        let scratch = TestbedDir::new("foreign");
        let out = scratch.path().join("out");
        for ours in [
            "manifest.json",
            "summary.json",
            "report.html.partial-12",
            "runs/uno/manifest.json",
            "runs/uno/flows.parquet",
            "runs/.partial-3-x/flows.parquet",
            ".next/plan.json",
            ".next/runs/uno/manifest.json",
            ".next/building/runs/uno/flows.parquet",
            ".next/old/manifest.json",
        ] {
            write(&out.join(ours), OURS);
        }
        assert_eq!(foreign(&out).unwrap(), [""; 0].map(PathBuf::from));
        let theirs = [
            ".next/mine",
            ".next/old/notes.txt",
            ".next/runs/uno/mine",
            "plot.pdf",
            "report.html.partial-mine",
            "runs/foo.partial-mine/flows.parquet",
            "runs/mine",
            "runs/uno/deep/flows.parquet",
            "runs/uno/notes.txt",
            "thesis/chapter.txt",
        ];
        for theirs in theirs {
            write(&out.join(theirs), "mine");
        }
        // Errors name directories, not their contents.
        let named = |name: &str| match name {
            "runs/uno/deep/flows.parquet" | "thesis/chapter.txt" => out.join(name).parent().unwrap().to_path_buf(),
            name => out.join(name),
        };
        let paths: Vec<PathBuf> = theirs.map(named).into();
        assert_eq!(foreign(&out).unwrap(), paths);
        remove(&out).unwrap();
        for theirs in theirs.into_iter().filter(|name| !name.ends_with("flows.parquet")) {
            assert_eq!(fs::read_to_string(out.join(theirs)).unwrap(), "mine", "{theirs}");
        }
        assert!(!out.join("runs/uno/flows.parquet").exists() && !out.join(".next/building").exists());
    }

    #[test]
    fn runs_outside_the_set_are_ignored() {
        let scratch = TestbedDir::new("unlisted");
        let out = scratch.path().join("out");
        let sealed = |runs: &str| {
            let manifest = format!(r#"{{ "program": "narrows", "runs": [{runs}] }}"#);
            manifest::text_of(&serde_json::from_str::<serde_json::Value>(&manifest).unwrap())
        };
        write(&out.join("manifest.json"), &sealed(r#"{ "run": "a", "folder": "runs/a" }"#));
        write(&out.join("runs/a/manifest.json"), OURS);
        write(&out.join("runs/.partial-7-b/summary.json"), "half");
        assert_eq!(foreign(&out).unwrap(), [""; 0].map(PathBuf::from));
        write(&out.join("runs/kept/manifest.json"), OURS);
        assert_eq!(foreign(&out).unwrap(), [out.join("runs/kept")]);
        write(&out.join("manifest.json"), &sealed(""));
        assert_eq!(foreign(&out).unwrap(), ["a", "kept"].map(|run| out.join("runs").join(run)));
        // A user's edits do not matter.
        write(&out.join("manifest.json"), OURS);
        assert_eq!(foreign(&out).unwrap(), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn next_set_without_a_plan_is_foreign() {
        let scratch = TestbedDir::new("planless");
        let out = scratch.path().join("out");
        write(&out.join(".next/plan.json.partial-12"), "half");
        fs::create_dir_all(out.join(".next/runs")).unwrap();
        assert_eq!(foreign(&out).unwrap(), [""; 0].map(PathBuf::from));
        write(&out.join(".next/old/summary.json"), "my data");
        assert_eq!(foreign(&out).unwrap(), [out.join(".next")]);
    }

    #[test]
    fn files_without_a_manifest_are_foreign() {
        let scratch = TestbedDir::new("nameless");
        let out = scratch.path().join("out");
        for (file, text) in [("summary.json", ""), ("manifest.json", "{}"), ("runs/a/flows.parquet", "")] {
            let _ = fs::remove_dir_all(&out);
            write(&out.join(file), text);
            assert_eq!(foreign(&out).unwrap(), [out.join(file)], "{file}");
        }
    }

    /// Files with our names without a manifest that states their owner: the error names the defect.
    #[test]
    fn a_manifest_that_is_gone_or_damaged_is_named() {
        let scratch = TestbedDir::new("unmarked");
        let out = scratch.path().join("out");
        let error = || refuse_foreign(&out).unwrap_err().to_string();
        for name in ["manifest.json", "summary.json", "runs/a/manifest.json", "runs/a/flows.parquet"] {
            write(&out.join(name), OURS);
        }
        refuse_foreign(&out).unwrap();
        for (manifest, text, lacks) in [
            ("manifest.json", Some(""), "is empty"),
            ("manifest.json", Some("{"), "is not JSON"),
            ("manifest.json", None, "is missing"),
            ("runs/a/manifest.json", Some(""), "is empty"),
            ("runs/a/manifest.json", None, "is missing"),
        ] {
            let path = out.join(manifest);
            text.map_or_else(|| fs::remove_file(&path).unwrap(), |text| write(&path, text));
            let expected = format!("`{}` {lacks}, so Narrows cannot determine whether ", path.display());
            assert!(error().starts_with(&expected), "{}", error());
            let beside = if manifest.starts_with("runs") { "`runs/a/flows.parquet`" } else { "`summary.json`" };
            assert!(error().contains(beside) && error().contains("--force"), "{}", error());
            // Next to a user's file, the error names that file.
            write(&out.join("mine"), "mine");
            assert!(error().contains("that Narrows did not write"), "{}", error());
            fs::remove_file(out.join("mine")).unwrap();
            write(&path, OURS);
        }
        // A manifest of another program shows that the files are not ours.
        write(&out.join("manifest.json"), "{}");
        assert!(error().contains("that Narrows did not write"), "{}", error());
        write(&out.join("manifest.json"), OURS);
        write(&out.join(".next/runs/a/manifest.json"), OURS);
        assert!(error().contains(".next/plan.json` is missing, so Narrows"), "{}", error());
        // Leftovers of a stopped command next to them may be deleted.
        write(&out.join(".next/plan.json"), OURS);
        write(&out.join("page.html.partial-7"), "half");
        assert!(
            error().contains("`page.html.partial-7` (left by a stopped command; you may delete it)"),
            "{}",
            error()
        );
        fs::remove_file(out.join("page.html.partial-7")).unwrap();
        assert_eq!(leftovers(&out), [""; 0].map(PathBuf::from));
        write(&out.join("report.html.partial-7"), "half");
        assert_eq!(leftovers(&out), [out.join("report.html.partial-7")]);
        refuse_foreign(&out).unwrap();
    }
}
