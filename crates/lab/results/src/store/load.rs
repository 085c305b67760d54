//! Runs read back.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::{Lock, SizeLimit};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::layout::{self, BUILDING, JSON, NEXT, PLAN};
use super::manifest::{self, GRID, GridManifest, MANIFEST, Manifest, PROGRAM, RUN, RunEntry, SweepPlan};
use super::settle::{is_unsettled, settle};
use super::{FLOWS, FileHash, PAUSES, PORTS, RATES, RunResults, SUMMARIES, SUMMARY, SWITCHES, run_folder};
use crate::summary::{self, Summary};
use crate::tables::{FlowTable, PauseTable, PortTable, RateTable, SwitchTable};
use crate::{Difference, Differing, Error};

/// Reads the directory of one run.
///
/// # Errors
/// When it is no such directory, or a file is missing, damaged or of another version.
pub fn load(directory: &Path) -> Result<RunResults, Error> {
    load_known(directory).map(|known| known.0)
}

/// Reads the directory of one run. Returns also whether hashes vouch for all of it.
///
/// # Errors
/// As [`load`].
pub(super) fn load_known(directory: &Path) -> Result<(RunResults, bool), Error> {
    let opened = open_manifest(directory)?;
    match opened.value["kind"].as_str() {
        Some(RUN) => load_run(directory, opened),
        _ => Err(not_results(directory, "its manifest is not that of a single run")),
    }
}

/// Reads the manifest of one run.
///
/// # Errors
/// When it is no directory of a run, or the manifest is damaged or of another version.
pub fn manifest_of(directory: &Path) -> Result<Manifest, Error> {
    decode(open_manifest(directory)?.value, &directory.join(MANIFEST))
}

/// The runs of a directory: those of the last complete set or, without one, the finished runs of the staged set.
#[derive(Clone, PartialEq, Debug)]
pub struct Set {
    /// The runs, in the set's order.
    pub runs: Vec<RunResults>,
    /// The set in the making that these runs are of; none if the set is complete.
    pub unfinished: Option<Unfinished>,
    /// The unfinished set next to these runs, if they are a complete set.
    pub next_set: Option<Unfinished>,
    /// Files that were edited or are gone, and that these runs were not read from.
    pub differing: Vec<Differing>,
    /// The number of runs without a hash: their own manifests or the grid's are of earlier versions.
    pub unchecked: usize,
    /// The process that ended while it moved the set into place, if one did. This process finished its work.
    pub taken_over: Option<String>,
}

/// A staged set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The number of runs that it will have.
    pub of: usize,
    /// The runs that are not finished, in the set's order.
    pub missing: Vec<String>,
    /// The command that continues it.
    pub command: String,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMED: usize = 3;
        let Self { of, missing, .. } = self;
        if missing.is_empty() {
            return write!(f, "all {of} runs, not yet put together");
        }
        let named = missing[..missing.len().min(NAMED)].join("; ");
        let more = if missing.len() > NAMED { format!(" and {} more", missing.len() - NAMED) } else { String::new() };
        write!(f, "{} of {of} runs; missing: {named}{more}", of - missing.len())
    }
}

/// Reads a directory of results. If a writer ended while it moved a set into place, that is finished first.
///
/// # Errors
/// If it has no results, or a file is missing, damaged or of another version.
pub fn load_set(directory: &Path) -> Result<Set, Error> {
    const TRIES: u32 = 20;
    let manifest = || files::read(&directory.join(MANIFEST), JSON).ok();
    let mut taken_over = None;
    for _ in 0..TRIES {
        taken_over = taken_over.or(wait_until_settled(directory)?);
        let before = manifest();
        let set = load_settled(directory);
        // Another set may have taken this one's place meanwhile.
        if !is_unsettled(directory) && manifest() == before {
            return Ok(Set { taken_over, ..set? });
        }
    }
    let reason = "other results keep taking the place of those that are read".to_owned();
    Err(Error::Unsettled { path: directory.to_path_buf(), reason })
}

fn load_settled(directory: &Path) -> Result<Set, Error> {
    let plan = plan_of(directory)?;
    let opened = match open_manifest(directory) {
        Ok(opened) => opened,
        Err(error) => {
            // A manifest that exists and is invalid is reported to the user.
            let is_missing = !directory.join(MANIFEST).exists();
            let Some(plan) = plan.filter(|_| is_missing) else { return Err(error) };
            let known = finished(directory, &plan).map(|(_, folder)| load_known(&folder));
            let (runs, unchecked) = counted(known.collect::<Result<_, _>>()?);
            let unfinished = Some(progress(directory, plan));
            return Ok(Set { runs, unfinished, next_set: None, differing: Vec::new(), unchecked, taken_over: None });
        }
    };
    let (known, differing) = match opened.value["kind"].as_str() {
        Some(RUN) => (vec![load_run(directory, opened)?], Vec::new()),
        Some(GRID) => {
            let path = directory.join(MANIFEST);
            let has_hash = opened.has_hash;
            let grid: GridManifest = decode(opened.value, &path)?;
            if grid.runs.is_empty() {
                return Err(Error::differs(&path, Difference::NoRuns));
            }
            let doubled =
                |index: &usize| grid.runs[..*index].iter().any(|earlier| earlier.run == grid.runs[*index].run);
            if let Some(index) = (1..grid.runs.len()).find(doubled) {
                let reason = format!("the run `{}` is listed before", grid.runs[index].run);
                return Err(Error::Json { path, key: format!("runs[{index}].run"), reason });
            }
            let known = grid.runs.iter().enumerate().map(|(index, entry)| {
                let (run, is_checked) = load_entry(directory, &grid, index, entry)?;
                // Without a hash of the list, nothing vouches for the choice of runs.
                Ok((run, is_checked && has_hash))
            });
            (known.collect::<Result<_, Error>>()?, differing_of(directory, &grid))
        }
        _ => return Err(not_results(directory, "its manifest is neither that of a run nor of a grid")),
    };
    let (runs, unchecked) = counted(known);
    let next_set = plan.map(|plan| progress(directory, plan));
    Ok(Set { runs, unfinished: None, next_set, differing, unchecked, taken_over: None })
}

/// The runs, and for how many of them no hashes vouch.
fn counted(known: Vec<(RunResults, bool)>) -> (Vec<RunResults>, usize) {
    let unchecked = known.iter().filter(|(_, checked)| !checked).count();
    (known.into_iter().map(|(run, _)| run).collect(), unchecked)
}

/// Reads a grid's run, which must be the run that its folder is named for. `index` is its place in the manifest.
fn load_entry(
    directory: &Path,
    grid: &GridManifest,
    index: usize,
    entry: &RunEntry,
) -> Result<(RunResults, bool), Error> {
    let known = run_folder(&entry.run);
    if entry.folder != known {
        return Err(Error::Json {
            path: directory.join(MANIFEST),
            key: format!("runs[{index}].folder"),
            reason: format!("`{}`; the folder of the run `{}` is `{known}`", entry.folder, entry.run),
        });
    }
    let folder = directory.join(&entry.folder);
    if !folder.exists() {
        return Err(Error::differs(&folder, Difference::Missing));
    }
    let opened = open_manifest(&folder)?;
    let (scenario, run) = (opened.value["scenario"].as_str(), opened.value["run"].as_str());
    if (scenario, run) == (Some(&grid.scenario), Some(&entry.run)) {
        let is_known = !entry.sha256.is_empty();
        // A run of the same name may be of other results of the same scenario.
        if is_known && entry.sha256 != opened.sha256 {
            return Err(Error::differs(
                &folder.join(MANIFEST),
                Difference::Changed { known: "the grid's manifest.json" },
            ));
        }
        let (run, is_checked) = load_run(&folder, opened)?;
        return Ok((run, is_checked && is_known));
    }
    let mut found = format!("`{}`", run.unwrap_or_default());
    // A run of another scenario may have the same name.
    if let Some(other) = scenario.filter(|scenario| **scenario != grid.scenario) {
        let _ = write!(found, " of the scenario `{other}`");
    }
    let expected = entry.run.clone();
    Err(Error::differs(&folder.join(MANIFEST), Difference::OtherRun { found, expected }))
}

/// The files of a grid, without those of its runs, that are not as they were written.
fn differing_of(directory: &Path, grid: &GridManifest) -> Vec<Differing> {
    let differs = |known: &FileHash| {
        let path = directory.join(&known.name);
        let now = match files::read(&path, PARQUET) {
            Ok(text) if known.name == SUMMARY => manifest::hash_of_summary(&text).ok().map(|now| now.sha256),
            Ok(bytes) => Some(files::sha256(&bytes)),
            Err(error) if error.is_missing() => return Some(Differing { path, how: Difference::Missing }),
            Err(_) => None,
        };
        let same = now.is_some_and(|now| now == known.sha256);
        (!same).then_some(Differing { path, how: Difference::Changed { known: MANIFEST } })
    };
    let ours = |file: &&FileHash| [SUMMARY, SUMMARIES].contains(&file.name.as_str());
    grid.files.iter().filter(ours).filter_map(differs).collect()
}

/// The files of a directory, without those of its runs, that are not as they were written; none where there is no grid.
pub(super) fn differing(directory: &Path) -> Vec<Differing> {
    let grid = open_manifest(directory).and_then(|opened| decode(opened.value, &directory.join(MANIFEST)));
    grid.map(|grid| differing_of(directory, &grid)).unwrap_or_default()
}

/// Takes a directory of results. If a writer ended while it moved a set into place, that is finished first.
///
/// # Errors
/// When the directory has no results, when another process holds it, or when the set cannot be put in place.
pub fn lock(directory: &Path, command: &str) -> Result<Lock, Error> {
    if !is_unsettled(directory) && plan_of(directory)?.is_none() {
        open_manifest(directory)?;
    }
    let lock = Lock::take(directory, command)?;
    settle(directory)?;
    Ok(lock)
}

/// The finished runs of a plan, with the directory of each. During the assembly of the set, some are already in it.
fn finished<'a>(directory: &Path, plan: &'a SweepPlan) -> impl Iterator<Item = (&'a manifest::PlannedRun, PathBuf)> {
    let next = directory.join(NEXT);
    plan.runs.iter().filter_map(move |run| {
        let folder = run.folder();
        let candidates = [next.join(&folder), next.join(BUILDING).join(&folder)];
        let is_run = |folder: &PathBuf| manifest_of(folder).is_ok_and(|manifest| manifest.key == run.key);
        Some((run, candidates.into_iter().find(is_run)?))
    })
}

fn progress(directory: &Path, plan: SweepPlan) -> Unfinished {
    let done: Vec<&str> = finished(directory, &plan).map(|(run, _)| run.run.as_str()).collect();
    let missing = plan.runs.iter().filter(|run| !done.contains(&run.run.as_str()));
    Unfinished { of: plan.runs.len(), missing: missing.map(|run| run.run.clone()).collect(), command: plan.command }
}

/// Returns the plan of the staged set, if there is one.
pub(super) fn plan_of(directory: &Path) -> Result<Option<SweepPlan>, Error> {
    let path = directory.join(NEXT).join(PLAN);
    let bytes = match files::read(&path, JSON) {
        Err(error) if error.is_missing() => return Ok(None),
        bytes => bytes?,
    };
    let value = json(&bytes, &path)?;
    check_schema(&value, manifest::SCHEMA, &path)?;
    decode(value, &path).map(Some)
}

/// Waits while another process moves a set into place, which takes milliseconds. If that process has died, finishes its
/// work and returns its name.
fn wait_until_settled(directory: &Path) -> Result<Option<String>, Error> {
    const TRIES: u32 = 500;
    let mut former_holder = None;
    for attempt in 0.. {
        if !is_unsettled(directory) {
            break;
        }
        match Lock::take(directory, "narrows, reading results") {
            Ok(lock) => {
                settle(directory)?;
                former_holder = lock.stale().map(str::to_owned);
            }
            Err(files::Error::Locked { .. }) if attempt < TRIES => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => {
                return Err(Error::Unsettled { path: directory.to_path_buf(), reason: error.to_string() });
            }
        }
    }
    Ok(former_holder)
}

/// A table.
pub(super) const PARQUET: SizeLimit = SizeLimit { kind: "a table of results", mib: 64 << 10 };

fn not_results(directory: &Path, reason: &str) -> Error {
    Error::NotResults { path: directory.to_path_buf(), reason: reason.to_owned() }
}

/// A manifest of either kind, without its own hash.
struct ParsedManifest {
    value: Value,
    /// Set if it had its own hash.
    has_hash: bool,
    /// The hash of the file.
    sha256: String,
}

fn open_manifest(directory: &Path) -> Result<ParsedManifest, Error> {
    let path = directory.join(MANIFEST);
    let unmarked = || layout::foreign(directory).ok().and_then(|theirs| layout::unmarked(directory, &theirs));
    let text = match files::read(&path, JSON) {
        Err(error) if error.is_missing() => {
            let reason = if directory.exists() { "it has no manifest.json" } else { "it does not exist" };
            return Err(unmarked().unwrap_or_else(|| not_results(directory, reason)));
        }
        Ok(text) if text.is_empty() => {
            return Err(unmarked().unwrap_or_else(|| not_results(directory, "its manifest.json is empty")));
        }
        text => text?,
    };
    let mut value = json(&text, &path)?;
    if value["program"] != PROGRAM {
        return Err(not_results(directory, "its manifest.json is another program's"));
    }
    check_schema(&value, manifest::SCHEMA, &path)?;
    let has_hash = manifest::take_hash(&mut value).map_err(|how| Error::differs(&path, how))?;
    Ok(ParsedManifest { value, has_hash, sha256: files::sha256(&text) })
}

/// Reads a run. Returns also whether hashes vouch for all of it.
fn load_run(
    directory: &Path,
    ParsedManifest { value, has_hash, .. }: ParsedManifest,
) -> Result<(RunResults, bool), Error> {
    let manifest_path = directory.join(MANIFEST);
    let manifest: Manifest = decode(value, &manifest_path)?;
    let has_hashes = !manifest.files.is_empty();
    let read_table = |name: &str| read_table(directory, &manifest, name);
    let (text, path) = read_file(directory, SUMMARY, JSON)?;
    let value = json(&text, &path)?;
    check_schema(&value, summary::SCHEMA, &path)?;
    let summary: Summary = decode(value, &path)?;
    let now = manifest::hash_of_summary(&text).map_err(Error::not_json(&path))?;
    let known = manifest.files.iter().find(|known| known.name == SUMMARY);
    if known.is_some_and(|known| *known != now) {
        return Err(Error::differs(&path, Difference::Changed { known: MANIFEST }));
    }
    if summary.run != manifest.run {
        let (found, expected) = (format!("`{}`", summary.run), manifest.run);
        return Err(Error::differs(&path, Difference::OtherRun { found, expected }));
    }
    let is_checked = has_hash && known.is_some();
    let (flows, flows_path) = read_table(FLOWS)?;
    let (ports, ports_path) = read_table(PORTS)?;
    let (rates, rates_path) = read_table(RATES)?;
    let has = |name: &str| {
        manifest.files.iter().any(|file| file.name == name) || !has_hashes && directory.join(name).exists()
    };
    let switches = if has(SWITCHES) {
        let (bytes, path) = read_table(SWITCHES)?;
        SwitchTable::read(bytes, &path)?
    } else {
        SwitchTable::default()
    };
    let pauses = if has(PAUSES) {
        let (bytes, path) = read_table(PAUSES)?;
        PauseTable::read(bytes, &path)?
    } else {
        PauseTable::default()
    };
    let run = RunResults {
        summary,
        flows: FlowTable::read(flows, &flows_path)?,
        ports: PortTable::read(ports, &ports_path)?,
        rates: RateTable::read(rates, &rates_path)?,
        switches,
        pauses,
        manifest,
    };
    Ok((run, is_checked))
}

/// Reads the flows of one run.
///
/// # Errors
/// As [`load`].
pub(super) fn flows_of(directory: &Path) -> Result<FlowTable, Error> {
    let (flows, path) = read_table(directory, &manifest_of(directory)?, FLOWS)?;
    FlowTable::read(flows, &path)
}

fn read_file(directory: &Path, name: &str, limit: SizeLimit) -> Result<(Vec<u8>, PathBuf), Error> {
    let path = directory.join(name);
    match files::read(&path, limit) {
        Err(error) if error.is_missing() => Err(Error::differs(&path, Difference::Missing)),
        bytes => Ok((bytes?, path)),
    }
}

/// Reads a table's file. Parquet's reader trusts its input, so a table must be the one that was written. A table
/// without a known hash is read unchecked, and a damaged one is an error if the reader notices.
fn read_table(directory: &Path, manifest: &Manifest, name: &str) -> Result<(Vec<u8>, PathBuf), Error> {
    let (bytes, path) = read_file(directory, name, PARQUET)?;
    if manifest.files.is_empty() {
        return Ok((bytes, path));
    }
    let known = manifest.files.iter().find(|file| file.name == name);
    let known = known.ok_or_else(|| Error::Json {
        path: directory.join(MANIFEST),
        key: "files".into(),
        reason: format!("has no `{name}`"),
    })?;
    if known.sha256 == files::sha256(&bytes) {
        return Ok((bytes, path));
    }
    Err(Error::differs(&path, Difference::Changed { known: MANIFEST }))
}

fn json(text: &[u8], path: &Path) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(Error::not_json(path))
}

fn check_schema(value: &Value, known: u64, path: &Path) -> Result<(), Error> {
    match value.get("schema") {
        Some(found) if *found == known => Ok(()),
        found => {
            let found = found.map_or_else(|| "none".to_owned(), Value::to_string);
            Err(Error::Schema { path: path.to_path_buf(), found, known })
        }
    }
}

fn decode<T: DeserializeOwned>(value: Value, path: &Path) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| Error::Json {
        path: path.to_path_buf(),
        key: error.path().to_string(),
        reason: error.inner().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use crate::input::Program;
    use crate::store::ResultsWriter;
    use crate::testbed::{self, TestbedDir, write_run};

    /// Returns a run as before it was written: without the hashes of its files.
    fn forgetful(mut run: RunResults) -> RunResults {
        let names: Vec<&str> = run.manifest.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, [SUMMARY, FLOWS, PORTS, RATES]);
        run.manifest.files.clear();
        run
    }

    #[test]
    fn written_tables_read_back_and_are_deterministic() {
        let scratch = TestbedDir::new("roundtrip");
        let run = testbed::results();
        assert!(!run.ports.rows.is_empty() && !run.rates.rows.is_empty() && !run.rates.traces.is_empty());
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        write_run(&one, &run);
        write_run(&two, &run);
        assert_eq!(
            scratch.names("one"),
            [
                "flow_samples.parquet",
                "flows.parquet",
                "manifest.json",
                "port_samples.parquet",
                "report.html",
                "summary.json"
            ]
        );
        for name in scratch.names("one") {
            assert_eq!(fs::read(one.join(&name)).unwrap(), fs::read(two.join(&name)).unwrap(), "{name}");
        }
        assert_eq!(forgetful(load(&one).unwrap()), run);
        assert_eq!(load_set(&one).unwrap().runs.into_iter().map(forgetful).collect::<Vec<_>>(), [run]);
    }

    #[test]
    fn tables_are_the_same_files_at_any_number_of_threads_and_twice_in_a_row() {
        let scratch = TestbedDir::new("threads");
        let (info, setup, _) = testbed::mesh();
        let tables = |at: usize, threads| {
            let folder = scratch.path().join(at.to_string());
            let outcome = testbed::run(&setup, threads);
            assert_eq!(outcome.engine.threads, threads as u32);
            write_run(&folder, &testbed::results_of(&info, &setup, &outcome));
            [FLOWS, PORTS, RATES].map(|name| fs::read(folder.join(name)).unwrap())
        };
        let first = tables(0, 1);
        for (at, threads) in (1..).zip([1, 2, 3, 8]) {
            assert!(tables(at, threads) == first, "{threads} threads");
        }
    }

    #[test]
    fn samples_of_switches_have_their_own_file() {
        let scratch = TestbedDir::new("switches");
        let mut run = testbed::results();
        run.switches.names.push("dc0.border".into());
        let row = |time_ns| crate::tables::SwitchRow { time_ns, switch: 0, buffer_bytes: 7 };
        run.switches.rows.extend([row(1), row(2)]);
        let target = scratch.path().join("run");
        write_run(&target, &run);
        assert!(scratch.names("run").iter().any(|name| name == SWITCHES));
        assert_eq!(load(&target).unwrap().switches, run.switches);
    }

    #[test]
    fn pauses_have_their_own_file() {
        let scratch = TestbedDir::new("pauses");
        let mut run = testbed::results();
        run.pauses.names.push("a>b".into());
        run.pauses.rows.push(crate::tables::PauseRow { start_ns: 1, end_ns: 7, port: 0 });
        let target = scratch.path().join("run");
        write_run(&target, &run);
        assert!(scratch.names("run").iter().any(|name| name == PAUSES));
        assert_eq!(load(&target).unwrap().pauses, run.pauses);
    }

    #[test]
    fn a_run_without_samples_is_read_back() {
        let scratch = TestbedDir::new("bare");
        let (info, setup, outcome) = testbed::one_flow();
        let run = testbed::results_of(&info, &setup, &outcome);
        let target = scratch.path().join("run");
        write_run(&target, &run);
        assert_eq!(forgetful(load(&target).unwrap()), run);
    }

    #[test]
    fn incomplete_grids_are_read_in_order() {
        let scratch = TestbedDir::new("grid");
        let target = scratch.path().join("grid");
        let mut runs = vec![testbed::results(), testbed::results()];
        for (run, id) in runs.iter_mut().zip(["z,load=0.4", "a,load=0.4"]) {
            run.manifest.run = id.into();
            run.summary.run = id.into();
            run.manifest.key = format!("key of {id}");
        }
        let keys = runs.iter().map(|run| (run.manifest.run.clone(), run.manifest.key.clone()));
        let writer =
            ResultsWriter::new(&target, SweepPlan::new("test", "narrows run x", keys), "narrows run x").unwrap();
        writer.keep(&runs[1]).unwrap();
        let set = load_set(&target).unwrap();
        assert_eq!(set.runs.into_iter().map(forgetful).collect::<Vec<_>>(), runs[1..]);
        let unfinished = set.unfinished.unwrap();
        assert_eq!(unfinished.to_string(), "1 of 2 runs; missing: z,load=0.4");
        assert_eq!(unfinished.command, "narrows run x");
        writer.keep(&runs[0]).unwrap();
        writer.finish(&Program::default(), &runs, "{}", "page".into()).unwrap();
        let set = load_set(&target).unwrap();
        assert_eq!(set.runs.into_iter().map(forgetful).collect::<Vec<_>>(), runs);
        assert_eq!((set.unfinished, set.next_set, set.differing), (None, None, vec![]));
        let differing = |how| {
            assert_eq!(load_set(&target).unwrap().differing, [Differing { path: target.join(SUMMARY), how }]);
        };
        fs::write(target.join(SUMMARY), "{ \"schema\": 1 }").unwrap();
        differing(Difference::Changed { known: MANIFEST });
        fs::remove_file(target.join(SUMMARY)).unwrap();
        differing(Difference::Missing);
        let error = load(&target).unwrap_err().to_string();
        assert!(error.contains("not that of a single run"), "{error}");
        drop(writer);
        assert_eq!(scratch.names("grid"), [MANIFEST, "report.html", "runs", SUMMARIES]);
    }

    /// Results as version 0.1 wrote them can be read: without hashes of manifests and summaries, with more in a plan.
    #[test]
    fn results_of_earlier_versions_are_read() {
        let scratch = TestbedDir::new("earlier");
        let (target, next) = (scratch.path().join("run"), scratch.path().join("run/.next"));
        let run = testbed::results();
        write_run(&target, &run);
        let path = target.join(MANIFEST);
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(manifest.as_object_mut().unwrap().shift_remove("sha256").is_some());
        assert_eq!(manifest["files"].as_array_mut().unwrap().remove(0)["name"], SUMMARY);
        fs::write(&path, manifest.to_string()).unwrap();
        let known = load(&target).unwrap();
        assert_eq!(known.manifest.files.len(), 3);
        assert_eq!(known.summary, run.summary);
        assert_eq!(load_set(&target).unwrap().unchecked, 1);
        // Before that, without any hash. A table that is damaged then is an error.
        for key in ["files", "inputs"] {
            manifest[key] = serde_json::json!([]);
        }
        fs::write(&path, manifest.to_string()).unwrap();
        let set = load_set(&target).unwrap();
        assert_eq!((set.unchecked, &set.runs[0].flows), (1, &run.flows));
        manifest.as_object_mut().unwrap().shift_remove("files");
        fs::write(&path, manifest.to_string()).unwrap();
        assert_eq!(load_set(&target).unwrap().unchecked, 1);
        let flows = fs::read(target.join(FLOWS)).unwrap();
        fs::write(target.join(FLOWS), &flows[..flows.len() / 2]).unwrap();
        let output = load(&target).unwrap_err().to_string();
        assert!(output.contains("flows.parquet`: not a readable Parquet file"), "{output}");
        fs::write(target.join(FLOWS), flows).unwrap();
        fs::create_dir(&next).unwrap();
        fs::write(
            next.join(PLAN),
            r#"{ "schema": 1, "kind": "unfinished", "program": "narrows", "scenario": "s", "command": "again",
                 "runs": [{ "run": "a b", "folder": "runs/a%20b", "key": "k" }] }"#,
        )
        .unwrap();
        let plan = plan_of(&target).unwrap().unwrap();
        assert_eq!(plan, SweepPlan::new("s", "again", [("a b".to_owned(), "k".to_owned())]));
        assert_eq!(plan.runs[0].folder(), "runs/a%20b");
        // One of another shape is refused by name.
        fs::write(next.join(PLAN), r#"{ "schema": 2, "program": "narrows" }"#).unwrap();
        let output = load_set(&target).unwrap_err().to_string();
        assert!(output.contains("plan.json` has schema 2; this version reads schema 1"), "{output}");
    }

    #[test]
    fn errors_name_file_and_key() {
        let scratch = TestbedDir::new("errors");
        let target = scratch.path().join("run");
        let message = |result: Result<RunResults, Error>| {
            result.map_or_else(|error| error.to_string(), |_| "no error".to_owned())
        };
        assert!(message(load(&target)).ends_with("it does not exist"));
        fs::create_dir(&target).unwrap();
        assert!(message(load(&target)).ends_with("it has no manifest.json"));
        fs::remove_dir(&target).unwrap();
        write_run(&target, &testbed::results());

        let edit = |name: &str, from: &str, to: &str| {
            let path = target.join(name);
            let before = fs::read_to_string(&path).unwrap();
            assert!(before.contains(from), "{from}");
            fs::write(&path, before.replacen(from, to, 1)).unwrap();
            let output = message(load(&target));
            fs::write(&path, before).unwrap();
            output
        };
        let output = edit("summary.json", "\"ecn_marks\": ", "\"ecn_marks\": \"x\", \"old\": ");
        assert!(output.contains("run/summary.json`, key `network.ecn_marks`: invalid type: string"), "{output}");
        let output = edit("summary.json", "\"jain_final\"", "\"jain_last\"");
        assert!(output.contains("key `fairness`: missing field `jain_final`"), "{output}");
        let output = edit("summary.json", "\"count\"", "\"number\"");
        assert!(output.contains("summary.json`, key `flows.all`: missing field `count`"), "{output}");
        let output = edit("summary.json", "\"schema\": 1", "\"schema\": 2");
        assert!(output.contains("summary.json` has schema 2; this version reads schema 1"), "{output}");
        let output = edit("manifest.json", "{", "{{");
        assert!(output.contains("manifest.json` is not JSON: "), "{output}");
        // Still a valid manifest or summary, with different contents.
        let output = edit("manifest.json", "\"seed\": 1", "\"seed\": 7");
        assert!(
            output.ends_with("manifest.json` is not as it was written: its SHA-256 is not the one in it"),
            "{output}"
        );
        let output = edit("summary.json", "\"ecn_marks\": ", "\"ecn_marks\": 1");
        assert!(output.contains("summary.json` is not as it was written"), "{output}");
        // The engine's times differ between repetitions, and are not held to anything.
        assert_eq!(edit("summary.json", "\"threads\": ", "\"threads\": 1"), "no error");
        // Without a hash of its own, a manifest is read as far as it can be.
        let unsealed = |from: &str, to: &str| {
            let path = target.join(MANIFEST);
            let before = fs::read_to_string(&path).unwrap();
            let mut value: Value = serde_json::from_str(&before).unwrap();
            value.as_object_mut().unwrap().shift_remove("sha256");
            let text = value.to_string();
            assert!(text.contains(from), "{from}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let output = message(load(&target));
            fs::write(&path, before).unwrap();
            output
        };
        let output = unsealed("\"seed\":1", "\"seed\":-1");
        assert!(output.contains("manifest.json`, key `seed`"), "{output}");
        let output = unsealed("\"name\":\"port_samples.parquet\"", "\"name\":\"x\"");
        assert!(output.contains("manifest.json`, key `files`: has no `port_samples.parquet`"), "{output}");

        let mut bytes = fs::read(target.join(FLOWS)).unwrap();
        bytes[100] ^= 1;
        fs::write(target.join(FLOWS), bytes).unwrap();
        let output = message(load(&target));
        assert!(
            output.contains("flows.parquet` is not as it was written: its SHA-256 is not the one in manifest.json"),
            "{output}"
        );
        fs::remove_file(target.join(FLOWS)).unwrap();
        assert!(message(load(&target)).ends_with("flows.parquet` is missing"));
        fs::write(target.join(MANIFEST), "").unwrap();
        let output = message(load(&target));
        assert!(output.contains("manifest.json` is empty, so Narrows cannot determine whether 5 files"), "{output}");
    }

    /// A grid of two runs.
    fn grid(target: &Path) {
        let mut runs = vec![testbed::results(), testbed::results()];
        for (run, id) in runs.iter_mut().zip(["a", "b"]) {
            run.manifest.run = id.into();
            run.summary.run = id.into();
        }
        let keys = runs.iter().map(|run| (run.manifest.run.clone(), format!("key of {}", run.manifest.run)));
        let writer =
            ResultsWriter::new(target, SweepPlan::new("test", "narrows run x", keys), "narrows run x").unwrap();
        for run in &runs {
            writer.keep(run).unwrap();
        }
        writer.finish(&Program::default(), &runs, "{}", "page".into()).unwrap();
    }

    #[test]
    fn run_folder_must_hold_its_run() {
        let scratch = TestbedDir::new("other-run");
        let target = scratch.path().join("grid");
        let output = || load_set(&target).map_or_else(|error| error.to_string(), |_| "no error".to_owned());
        grid(&target);
        let edit = |name: &str, edit: &dyn Fn(&mut Value)| {
            let path = target.join(name);
            let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            value.as_object_mut().unwrap().shift_remove("sha256");
            edit(&mut value);
            fs::write(path, value.to_string()).unwrap();
        };
        assert_eq!(output(), "no error");
        assert_eq!(load_set(&target).unwrap().unchecked, 0);
        // Without the hash of a grid's manifest, nothing vouches for its list.
        let before = fs::read(target.join(MANIFEST)).unwrap();
        edit(MANIFEST, &|_| ());
        assert_eq!(load_set(&target).unwrap().unchecked, 2);
        fs::write(target.join(MANIFEST), before).unwrap();
        // The whole folder, its manifest alone, and its summary where no hash vouches for it.
        let output_with = |names: &[&str]| {
            let path = |run: &str, name: &str| target.join("runs").join(run).join(name);
            let before: Vec<Vec<u8>> = names.iter().map(|name| fs::read(path("b", name)).unwrap()).collect();
            for name in names {
                fs::copy(path("a", name), path("b", name)).unwrap();
            }
            let output = output();
            names.iter().zip(before).for_each(|(name, before)| fs::write(path("b", name), before).unwrap());
            output
        };
        let is_of_a = "runs/b/manifest.json` is of the run `a`, and the run `b` belongs there";
        let complete = [MANIFEST, SUMMARY, FLOWS, PORTS, RATES];
        for names in [&complete[..], &complete[..1]] {
            let output = output_with(names);
            assert!(output.ends_with(is_of_a), "{output}");
        }
        // A run of the same name and scenario with other results, for example of another seed.
        let path = target.join("runs/b/manifest.json");
        let before = fs::read(&path).unwrap();
        let mut other: Value = serde_json::from_slice(&before).unwrap();
        other.as_object_mut().unwrap().shift_remove("sha256");
        other["seed"] = 7.into();
        fs::write(&path, manifest::text_of(&other)).unwrap();
        assert!(load(&target.join("runs/b")).is_ok());
        let known =
            "runs/b/manifest.json` is not as it was written: its SHA-256 is not the one in the grid's manifest.json";
        assert!(output().ends_with(known), "{}", output());
        fs::write(&path, before).unwrap();
        // Manifests of earlier versions do not have that hash.
        edit(MANIFEST, &|grid| {
            grid["runs"].as_array_mut().unwrap().iter_mut().for_each(|run| run["sha256"] = "".into());
        });
        edit("runs/b/manifest.json", &|manifest| manifest["files"] = serde_json::json!([]));
        let output = output_with(&[SUMMARY]);
        assert!(output.ends_with("runs/b/summary.json` is of the run `a`, and the run `b` belongs there"), "{output}");
        // A run of the same name may be another scenario's.
        edit("runs/b/manifest.json", &|manifest| manifest["scenario"] = "other".into());
        let output = load_set(&target).unwrap_err().to_string();
        assert!(
            output.ends_with("is of the run `b` of the scenario `other`, and the run `b` belongs there"),
            "{output}"
        );
        fs::remove_dir_all(target.join("runs/b")).unwrap();
        assert!(load_set(&target).unwrap_err().to_string().ends_with("grid/runs/b` is missing"));
        edit(MANIFEST, &|grid| grid["runs"][1]["folder"] = "../b".into());
        let output = load_set(&target).unwrap_err().to_string();
        assert!(output.ends_with("key `runs[1].folder`: `../b`; the folder of the run `b` is `runs/b`"), "{output}");
        edit(MANIFEST, &|grid| grid["runs"] = serde_json::json!([]));
        let output = load_set(&target).unwrap_err().to_string();
        assert!(output.ends_with("manifest.json` lists no runs, and a grid has two or more"), "{output}");
    }
}
