//! `manifest.json`: what a directory holds and what replays it. Of a simulated run it is the same on every machine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::input::{Host, Program, RunInfo};
use crate::ordered::Ordered;

/// The name of the file.
pub const MANIFEST: &str = "manifest.json";
/// The version of both manifests.
pub(crate) const SCHEMA: u64 = 1;
/// What both say they were written by.
pub(crate) const PROGRAM: &str = "narrows";
pub(crate) const RUN: &str = "run";
pub(crate) const GRID: &str = "grid";
pub(crate) const UNFINISHED: &str = "unfinished";

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
    /// The version of all that results depend on; manifests of earlier versions do not say.
    #[serde(default)]
    pub engine: String,
    /// What knows the run again: [`Manifest::key_of`]. Simulated runs of one key leave the same tables. Empty in
    /// manifests of earlier versions.
    #[serde(default)]
    pub key: String,
    /// The scenario's name.
    pub scenario: String,
    /// What tells the run from the scenario's others.
    pub run: String,
    /// What readers call it.
    pub label: String,
    /// What ran it; results from before there was a choice do not say.
    #[serde(default)]
    pub host: Host,
    /// Where it lies in a grid.
    pub point: Ordered<Value>,
    /// Everything random depends on this.
    pub seed: u64,
    /// The files that it was made from.
    pub inputs: Vec<FileHash>,
    /// The tables beside the manifest as they were written; empty until then.
    pub files: Vec<FileHash>,
    /// Every setting, defaults included.
    pub resolved: Value,
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
            engine: program.engine.clone(),
            key: info.key.clone(),
            scenario: info.scenario.clone(),
            run: info.run.clone(),
            label: info.label.clone(),
            host: info.host(),
            point: Ordered(info.point.clone()),
            seed,
            inputs: info.inputs.iter().map(hash).collect(),
            files: Vec::new(),
            resolved: info.resolved.clone(),
        }
    }

    /// The key of a run of this description, program and seed: a SHA-256 of all that its results depend on. `asked`
    /// is what was asked of the host beside the scenario.
    pub fn key_of(info: &RunInfo, program: &Program, seed: u64, asked: &str) -> String {
        // Prose moves no number.
        let mut resolved = info.resolved.clone();
        if let Some(resolved) = resolved.as_object_mut() {
            resolved.remove("title");
            resolved.remove("description");
        }
        let RunInfo { scenario, run, label, point, inputs, .. } = info;
        let all = serde_json::json!([program.engine, asked, scenario, run, label, point, seed, inputs, resolved]);
        super::sha256(all.to_string().as_bytes())
    }
}

/// The runs that a set will have, in its order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this shape: 1.
    pub schema: u64,
    /// `unfinished`.
    pub kind: String,
    /// `narrows`.
    pub program: String,
    /// The scenario's name.
    pub scenario: String,
    /// The command that makes the set, and goes on with it.
    pub command: String,
    /// The runs.
    pub runs: Vec<PlannedRun>,
}

/// One run of a [`Plan`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedRun {
    /// What tells it from the others.
    pub run: String,
    /// Its directory inside the set's.
    pub folder: String,
    /// [`Manifest::key`].
    pub key: String,
}

impl Plan {
    /// A plan of runs, each with its name and [`Manifest::key_of`].
    pub fn new(scenario: &str, command: &str, runs: impl IntoIterator<Item = (String, String)>) -> Self {
        let planned = |(run, key): (String, String)| PlannedRun { folder: super::run_folder(&run), run, key };
        Self {
            schema: SCHEMA,
            kind: UNFINISHED.to_owned(),
            program: PROGRAM.to_owned(),
            scenario: scenario.to_owned(),
            command: command.to_owned(),
            runs: runs.into_iter().map(planned).collect(),
        }
    }

    /// Whether the set is one run, whose files lie in the directory itself.
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
}

/// One run of a grid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunEntry {
    /// What tells it from the others.
    pub run: String,
    /// Its directory inside the grid's.
    pub folder: String,
}

impl GridManifest {
    /// The manifest of the set that a plan asked for.
    pub fn new(program: &Program, plan: &Plan) -> Self {
        let entry = |it: &PlannedRun| RunEntry { run: it.run.clone(), folder: it.folder.clone() };
        Self {
            schema: SCHEMA,
            kind: GRID.to_owned(),
            program: PROGRAM.to_owned(),
            version: program.version.clone(),
            commit: program.commit.clone(),
            scenario: plan.scenario.clone(),
            runs: plan.runs.iter().map(entry).collect(),
        }
    }

    pub(crate) fn to_json(&self) -> String {
        super::json_text(self)
    }
}
