//! `manifest.json`: the contents of a directory and the data to replay them. For a simulated run it is the same on every
//! machine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Difference;
use crate::input::{BackendKind, CodeVersions, PointColumn, Program, RunInfo, SweepColumns};
use crate::ordered::Ordered;

/// The name of the file.
pub const MANIFEST: &str = "manifest.json";
/// The version of both manifests.
pub(crate) const SCHEMA: u64 = 1;
/// The value of `program` in both manifests.
pub(crate) const PROGRAM: &str = "narrows";
pub(crate) const RUN: &str = "run";
pub(crate) const GRID: &str = "grid";
/// The key of a manifest's own hash.
const OWN_HASH: &str = "sha256";

/// A run's manifest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this shape: 1.
    pub schema: u64,
    /// `run`.
    pub kind: String,
    /// `narrows`.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The commit that the program was built from; may be empty.
    pub commit: String,
    /// Versions of the code that decided the results. Empty in manifests of earlier versions.
    #[serde(default)]
    pub code: CodeVersions,
    /// Version of the code that recorded the results. Empty in manifests of earlier versions.
    #[serde(default)]
    pub record: String,
    /// A hash of all that the results depend on, by which a finished run is recognised. Simulated runs of one key leave
    /// the same tables. Empty in manifests of earlier versions.
    #[serde(default)]
    pub key: String,
    /// Evidence that later builds give the same results, where the key was changed without doing the run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rekeyed: Vec<Rekeyed>,
    /// The scenario's name.
    pub scenario: String,
    /// The run's identifier within the scenario.
    pub run: String,
    /// The display name.
    pub label: String,
    /// Keys of its scheme that it did without, because its host does not heed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The backend that ran it; absent in results of versions with one backend.
    #[serde(default)]
    pub backend: BackendKind,
    /// The point in a grid.
    pub point: Ordered<Value>,
    /// First columns of its tables. Empty in manifests of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<PointColumn>,
    /// Names of state that laws of the sweep trace: columns of `flow_samples.parquet`. Empty in manifests of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<String>,
    /// Names of laws of the sweep: columns of `summary.parquet`. Empty in manifests of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub laws: Vec<String>,
    /// The seed, on which everything random depends.
    pub seed: u64,
    /// The files that it was made from.
    pub inputs: Vec<FileHash>,
    /// The files next to the manifest as they were written, but for the report; empty until then. A summary's hash is
    /// without its `engine`. Manifests of earlier versions have the tables alone, or nothing.
    #[serde(default)]
    pub files: Vec<FileHash>,
    /// Every setting, defaults included.
    pub resolved: Value,
}

/// Evidence that two builds give the same results, and that a run's key was changed for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rekeyed {
    /// The key before.
    pub from_key: String,
    /// The code versions before.
    pub from_code: CodeVersions,
    /// The commit of the build that the results are from.
    pub old_commit: String,
    /// The commit of the build that the key is from.
    pub new_commit: String,
    /// Runs that both builds did again, in the order in which they were drawn.
    pub sample: Vec<String>,
    /// The seed of the draw.
    pub sample_seed: u64,
    /// Columns that were compared, value by value, over all runs of the sample.
    pub columns: u64,
    /// Values that were compared.
    pub values: u64,
    /// Columns that have other names in the new build: `TABLE.OLD=NEW`.
    pub renamed: Vec<String>,
}

/// A file that a run was made from, or that it left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileHash {
    /// Its name.
    pub name: String,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Manifest {
    pub(crate) fn new(info: &RunInfo, program: &Program, seed: u64) -> Self {
        let hash = |(name, sha256): &(String, String)| FileHash { name: name.clone(), sha256: sha256.clone() };
        Self {
            schema: SCHEMA,
            kind: RUN.to_owned(),
            program: PROGRAM.to_owned(),
            version: program.version.clone(),
            commit: program.commit.clone(),
            code: info.code.clone(),
            record: program.record.clone(),
            key: info.key.clone(),
            rekeyed: Vec::new(),
            scenario: info.scenario.clone(),
            run: info.run.clone(),
            label: info.label.clone(),
            without: info.without.clone(),
            backend: info.backend(),
            point: Ordered(info.point.clone()),
            columns: info.columns.points.clone(),
            traces: info.columns.traces.clone(),
            laws: info.columns.laws.clone(),
            seed,
            inputs: info.inputs.iter().map(hash).collect(),
            files: Vec::new(),
            resolved: info.resolved.clone(),
        }
    }

    /// Sets the columns of a kept run to those of its sweep now. Returns whether it had others.
    pub(crate) fn share(&mut self, columns: &SweepColumns) -> bool {
        let SweepColumns { points, traces, laws } = columns;
        let differs = (&self.columns, &self.traces, &self.laws) != (points, traces, laws);
        if differs {
            (self.columns, self.traces, self.laws) = (points.clone(), traces.clone(), laws.clone());
        }
        differs
    }

    /// Sets the settings of a kept run to those of its scenario now. The keys are equal, so only prose can differ.
    /// Returns whether it did.
    pub(crate) fn update_description(&mut self, resolved: &Value) -> bool {
        let differs = self.resolved != *resolved;
        if differs {
            self.resolved = resolved.clone();
        }
        differs
    }
}

/// The runs that a set will have, in its order. Plans of earlier versions have more keys, which are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The version of this shape: 1.
    pub schema: u64,
    /// `narrows`. Marks the set in the making as ours, to continue or to remove.
    pub program: String,
    /// The scenario's name.
    pub scenario: String,
    /// The command that makes the set, and continues it.
    pub command: String,
    /// The runs.
    pub runs: Vec<PlannedRun>,
}

/// One run of a [`SweepPlan`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedRun {
    /// The run's id.
    pub run: String,
    /// The run's [`Manifest::key`].
    pub key: String,
}

impl PlannedRun {
    /// The run's directory inside the set's.
    pub fn folder(&self) -> String {
        super::run_folder(&self.run)
    }
}

impl SweepPlan {
    /// A plan of runs, each with its name and [`Manifest::key`].
    pub fn new(scenario: &str, command: &str, runs: impl IntoIterator<Item = (String, String)>) -> Self {
        let planned = |(run, key): (String, String)| PlannedRun { run, key };
        Self {
            schema: SCHEMA,
            program: PROGRAM.to_owned(),
            scenario: scenario.to_owned(),
            command: command.to_owned(),
            runs: runs.into_iter().map(planned).collect(),
        }
    }

    /// Returns whether the set is one run, with its files in the directory itself.
    pub fn is_alone(&self) -> bool {
        self.runs.len() == 1
    }
}

/// The manifest of a directory with several runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GridManifest {
    /// The version of this shape: 1.
    pub schema: u64,
    /// `grid`.
    pub kind: String,
    /// `narrows`.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The commit that the program was built from; may be empty.
    pub commit: String,
    /// The scenario's name.
    pub scenario: String,
    /// The runs in the scenario's order.
    pub runs: Vec<RunEntry>,
    /// The summaries of all runs as they were written, in JSON without their `engine` and as a table; manifests of earlier
    /// versions do not have them.
    #[serde(default)]
    pub files: Vec<FileHash>,
}

/// One run of a grid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunEntry {
    /// The run's identifier within the grid.
    pub run: String,
    /// Its directory inside the grid's.
    pub folder: String,
    /// The SHA-256 of its manifest's file, in hexadecimal. Empty in manifests of earlier versions.
    #[serde(default)]
    pub sha256: String,
}

impl GridManifest {
    /// The manifest of the set of a plan, with these runs and the files next to them.
    pub(crate) fn new(program: &Program, plan: &SweepPlan, runs: Vec<RunEntry>, files: Vec<FileHash>) -> Self {
        Self {
            schema: SCHEMA,
            kind: GRID.to_owned(),
            program: PROGRAM.to_owned(),
            version: program.version.clone(),
            commit: program.commit.clone(),
            scenario: plan.scenario.clone(),
            runs,
            files,
        }
    }
}

/// The text of a manifest's file: its contents, and their hash.
pub(super) fn text_of(manifest: &impl Serialize) -> String {
    let mut value = serde_json::to_value(manifest).unwrap_or_default();
    let hash = files::sha256(value.to_string().as_bytes());
    value[OWN_HASH] = hash.into();
    crate::json::text(&value)
}

/// Removes a manifest's own hash from it, and returns whether it had one. Manifests of earlier versions have none.
///
/// # Errors
/// When the rest does not have that hash.
pub(super) fn take_hash(manifest: &mut Value) -> Result<bool, Difference> {
    let Some(hash) = manifest.as_object_mut().and_then(|manifest| manifest.shift_remove(OWN_HASH)) else {
        return Ok(false);
    };
    let is_as_written = hash == files::sha256(manifest.to_string().as_bytes());
    if is_as_written { Ok(true) } else { Err(Difference::Changed { known: "it" }) }
}

/// The hash of a summary, or of the summaries of a grid, without the part that differs between repetitions: `engine`.
///
/// # Errors
/// If it is not JSON.
pub(super) fn hash_of_summary(text: &[u8]) -> Result<FileHash, serde_json::Error> {
    let mut value: Value = serde_json::from_slice(text)?;
    let runs = value.get("runs").and_then(Value::as_array).map_or(0, Vec::len);
    let all = (0..runs).map(|run| format!("/runs/{run}")).chain([String::new()]);
    for pointer in all {
        if let Some(summary) = value.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            summary.shift_remove("engine");
        }
    }
    Ok(FileHash { name: super::SUMMARY.to_owned(), sha256: files::sha256(value.to_string().as_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{PointColumn, PointValue};
    use crate::testbed;

    const BOOK: &str = include_str!("../../../../../docs/src/reference/results.md");

    /// The table of a run's manifest names its keys, all of them, in their order.
    #[test]
    fn the_book_lists_every_key() {
        let (_, section) = BOOK.split_once("\n## `manifest.json`\n").unwrap();
        let rows = section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
        let documented: Vec<&str> =
            rows.flat_map(|row| row.split(" | ").next().unwrap_or_default().split('`').skip(1).step_by(2)).collect();
        // Keys that are missing where their list is empty.
        let mut run = testbed::results();
        let rekeyed = Rekeyed {
            from_key: String::new(),
            from_code: CodeVersions::default(),
            old_commit: String::new(),
            new_commit: String::new(),
            sample: Vec::new(),
            sample_seed: 0,
            columns: 0,
            values: 0,
            renamed: Vec::new(),
        };
        let scheme = PointColumn { name: "scheme".into(), value: PointValue::Text("uno".into()) };
        run.manifest.rekeyed = vec![rekeyed];
        run.manifest.columns = vec![scheme];
        let list = || vec!["it".to_owned()];
        (run.manifest.without, run.manifest.traces, run.manifest.laws) = (list(), list(), list());
        let folder = testbed::TestbedDir::new("manifest-keys");
        testbed::write_run(folder.path(), &run);
        let written = std::fs::read(folder.path().join(MANIFEST)).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(documented, keys);
    }
}
