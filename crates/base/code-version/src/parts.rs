//! Versions of the parts of a program that decide results.
//!
//! The engine is all code that is reached from its roots, except laws and features. A law's version covers all that its
//! module reaches, except other laws and features; so does a feature's, from its entry modules. The caller knows which
//! parts a run uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

use crate::graph::{GraphError, ModuleGraph, ModuleId};

/// Optional code: entered by runs that use the feature, and by no other run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// The feature's name.
    pub feature: &'static str,
    /// Modules through which it is entered, each with all modules below it.
    pub entries: &'static [&'static str],
}

/// Entry points of the code that decides results.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// Modules that execute a run.
    pub engine: &'a [&'a str],
    /// Modules that store a finished run.
    pub record: &'a [&'a str],
    /// Features.
    pub gates: &'a [Gate],
    /// External crates that decide nothing during a run.
    pub ignored_crates: &'a [&'a str],
}

/// A part's version and the code that it covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodePart {
    /// A hash of the code of all its modules and the versions of the external crates that they name.
    pub version: u64,
    /// The paths of its modules.
    pub modules: Vec<String>,
    /// External crates, with their versions.
    pub externals: Vec<String>,
}

/// All parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeParts {
    /// Code that every run uses.
    pub engine: CodePart,
    /// By module of the law.
    pub laws: BTreeMap<String, CodePart>,
    /// By name.
    pub features: BTreeMap<String, CodePart>,
    /// Code that turns a finished run into files; no part of a run's key.
    pub record: CodePart,
}

impl Roots<'_> {
    /// The libraries that contain the roots.
    pub fn libraries(&self) -> BTreeSet<&str> {
        self.engine.iter().chain(self.record).filter_map(|path| path.split("::").next()).collect()
    }
}

impl CodeParts {
    /// Reads a workspace and derives its parts. Returns the source files that were read, too.
    ///
    /// # Errors
    /// If a source cannot be read, or a root or an entry is no module.
    pub fn read(workspace: &Path, roots: &Roots<'_>) -> Result<(Self, Vec<PathBuf>), GraphError> {
        let graph = ModuleGraph::read(workspace, &roots.libraries())?;
        let lock = workspace.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).map_err(|error: io::Error| GraphError::Io { path: lock, error })?;
        let parts = Self::of(&graph, &Locked::parse(&lock), roots)?;
        Ok((parts, graph.files().collect()))
    }

    /// Derives the parts of a graph.
    ///
    /// # Errors
    /// If a root or an entry is no module.
    pub fn of(graph: &ModuleGraph, locked: &Locked, roots: &Roots<'_>) -> Result<Self, GraphError> {
        let ids = |paths: &[&str]| paths.iter().map(|path| graph.module(path)).collect::<Result<Vec<_>, _>>();
        let laws: BTreeSet<ModuleId> = graph.rows.iter().map(|(module, _)| *module).collect();
        let mut gates = Vec::new();
        for gate in roots.gates {
            let entries = ids(gate.entries)?;
            let below = |id: &ModuleId| entries.iter().any(|&entry| graph.is_below(*id, entry));
            gates.push((gate.feature, (0..graph.modules.len()).filter(below).collect::<Vec<_>>()));
        }
        let entries: BTreeSet<ModuleId> = gates.iter().flat_map(|(_, entries)| entries).copied().collect();
        let closed: BTreeSet<ModuleId> = laws.union(&entries).copied().collect();
        let part =
            |modules: &BTreeSet<ModuleId>, extra: &str| part(graph, Some(locked), roots.ignored_crates, modules, extra);
        let engine = reach(graph, &ids(roots.engine)?, &closed);
        let of_law = |(module, row): &(ModuleId, crate::source::MacroRow)| {
            Ok::<_, GraphError>((row.module.clone(), part(&reach(graph, &[*module], &closed), &row.code)?))
        };
        let mut features: BTreeMap<String, BTreeSet<ModuleId>> = BTreeMap::new();
        for (feature, entries) in &gates {
            features.entry((*feature).to_owned()).or_default().extend(reach(graph, entries, &closed));
        }
        // Code that the engine reaches already changes every run.
        let mut known = engine.clone();
        known.extend(&closed);
        let record = reach(graph, &ids(roots.record)?, &known);
        Ok(Self {
            engine: part(&engine, "")?,
            laws: graph.rows.iter().map(of_law).collect::<Result<_, _>>()?,
            features: features
                .iter()
                .map(|(feature, modules)| Ok::<_, GraphError>((feature.clone(), part(modules, "")?)))
                .collect::<Result<_, _>>()?,
            // Libraries write the files; their contents are decided here.
            record: crate::parts::part(graph, None, roots.ignored_crates, &record, "")?,
        })
    }
}

/// Returns the modules reachable from `from`, without entering closed modules; those of `from` count even if closed.
fn reach(graph: &ModuleGraph, from: &[ModuleId], closed: &BTreeSet<ModuleId>) -> BTreeSet<ModuleId> {
    let mut reached: BTreeSet<ModuleId> = from.iter().copied().collect();
    let mut pending: Vec<ModuleId> = from.to_vec();
    while let Some(id) = pending.pop() {
        for &next in graph.uses[id].iter().filter(|next| !closed.contains(next)) {
            if reached.insert(next) {
                pending.push(next);
            }
        }
    }
    reached
}

fn part(
    graph: &ModuleGraph,
    locked: Option<&Locked>,
    ignored_crates: &[&str],
    modules: &BTreeSet<ModuleId>,
    extra: &str,
) -> Result<CodePart, GraphError> {
    let mut hash = Sha256::new();
    let mut add = |text: &[u8]| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    let mut paths: Vec<(&str, ModuleId)> = modules.iter().map(|&id| (graph.modules[id].path.as_str(), id)).collect();
    paths.sort_unstable();
    add(extra.as_bytes());
    for &(path, id) in &paths {
        let module = &graph.modules[id];
        add(path.as_bytes());
        add(module.source.code.as_bytes());
        let folder = module.file.parent().unwrap_or(Path::new(""));
        for name in &module.source.included {
            add(name.as_bytes());
            let path = folder.join(name);
            add(&fs::read(&path).map_err(|error| GraphError::Io { path, error })?);
        }
    }
    let named: BTreeSet<&str> = modules
        .iter()
        .flat_map(|&id| &graph.externals[id])
        .map(String::as_str)
        .filter(|name| !graph.roots.contains_key(*name) && !ignored_crates.contains(name))
        .collect();
    let externals = match locked {
        Some(locked) => locked.closure(&named)?,
        None => Vec::new(),
    };
    for external in &externals {
        add(external.as_bytes());
    }
    let version = hash.finalize().iter().take(8).fold(0, |number: u64, &byte| number << 8 | u64::from(byte));
    Ok(CodePart { version, modules: paths.iter().map(|(path, _)| (*path).to_owned()).collect(), externals })
}

/// The packages of a `Cargo.lock`.
#[derive(Clone, Default, Debug)]
pub struct Locked {
    /// Name, version with checksum, and the names of dependencies.
    packages: Vec<(String, String, Vec<String>)>,
}

impl Locked {
    /// Reads a `Cargo.lock`.
    pub fn parse(text: &str) -> Self {
        let mut packages = Vec::new();
        for block in text.split("[[package]]").skip(1) {
            let value = |key: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
                line.map_or_else(String::new, |value| value.trim().trim_matches('"').to_owned())
            };
            let list =
                block.split_once("dependencies = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
            let dependencies = list.split(',').map(|it| it.trim().trim_matches('"')).filter(|it| !it.is_empty());
            packages.push((
                value("name"),
                format!("{} {}", value("version"), value("checksum")),
                dependencies.map(str::to_owned).collect(),
            ));
        }
        Self { packages }
    }

    /// The packages of these crates and all that they depend on, as `name version checksum`.
    fn closure(&self, names: &BTreeSet<&str>) -> Result<Vec<String>, GraphError> {
        let mut found = BTreeSet::new();
        let mut pending: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut seen = BTreeSet::new();
        while let Some(wanted) = pending.pop() {
            if !seen.insert(wanted.clone()) {
                continue;
            }
            let mut words = wanted.split(' ');
            let (name, version) = (words.next().unwrap_or_default(), words.next());
            let mut is_known = false;
            for (package, release, dependencies) in &self.packages {
                let matches_name = package.replace('-', "_") == name.replace('-', "_")
                    && version.is_none_or(|version| release.split(' ').next() == Some(version));
                if matches_name {
                    is_known = true;
                    found.insert(format!("{package} {release}"));
                    pending.extend(dependencies.iter().cloned());
                }
            }
            if !is_known {
                return Err(GraphError::NoPackage { name: name.to_owned() });
            }
        }
        Ok(found.into_iter().collect())
    }
}
