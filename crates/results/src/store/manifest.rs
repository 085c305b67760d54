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
    /// Everything random hung on this.
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

    /// Whether this is of the run that the program would do by this description and seed: then it would leave the same.
    pub fn is_of(&self, info: &RunInfo, program: &Program, seed: u64) -> bool {
        Self { files: self.files.clone(), ..Self::new(info, program, seed) } == *self
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
    /// The manifest of a grid of runs, each in its [`run_folder`](super::run_folder).
    pub fn new<'a>(program: &Program, scenario: &str, runs: impl IntoIterator<Item = &'a str>) -> Self {
        let entry = |run: &str| RunEntry { run: run.to_owned(), folder: super::run_folder(run) };
        Self {
            schema: SCHEMA,
            kind: GRID.to_owned(),
            program: PROGRAM.to_owned(),
            version: program.version.clone(),
            commit: program.commit.clone(),
            scenario: scenario.to_owned(),
            runs: runs.into_iter().map(entry).collect(),
        }
    }

    /// As JSON, for [`Staging::text`](super::Staging::text) under the name [`MANIFEST`].
    pub fn to_json(&self) -> String {
        super::json_text(self)
    }
}
