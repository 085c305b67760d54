//! The module graph of a workspace: which source file refers to which, by the names in its tokens.
//!
//! The graph may have edges that the compiler would not see (two items of one name, both ways of reading `a::b`). It lacks
//! a reference that only a re-export inside the module makes, such as a trait re-exported for its methods alone;
//! `tests/keys/prove trace` looks for such holes. Method calls name no path, so a module with an `impl` block is reached from the module of the block's type. A
//! module that nothing refers to is reached from the module that declares it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use crate::source::{IdentPath, MacroRow, SourceFile, Visibility};

/// Index of a module in [`ModuleGraph::modules`].
pub type ModuleId = usize;

/// A module with a file of its own.
#[derive(Debug)]
pub struct SourceModule {
    /// Its path, beginning with the crate's name: `laws::window`.
    pub path: String,
    /// Its source file.
    pub file: PathBuf,
    /// Tokens and references of the file.
    pub source: SourceFile,
    /// The module that declares it; none for a crate's root.
    pub parent: Option<ModuleId>,
    /// The crate's root.
    pub root: ModuleId,
    /// Names of the crate's dependencies.
    dependencies: Rc<BTreeSet<String>>,
    /// Modules that it declares.
    children: BTreeMap<String, ModuleId>,
}

/// The modules of a workspace's libraries and their references.
#[derive(Debug)]
pub struct ModuleGraph {
    /// The modules, those of one crate together.
    pub modules: Vec<SourceModule>,
    /// Crate roots by library name.
    pub roots: BTreeMap<String, ModuleId>,
    /// By module: the modules that it refers to.
    pub uses: Vec<BTreeSet<ModuleId>>,
    /// By module: external crates that it names, of those in its crate's manifest.
    pub externals: Vec<BTreeSet<String>>,
    /// The table of laws: the module of each row.
    pub rows: Vec<(ModuleId, MacroRow)>,
    /// Macros by name.
    macros: BTreeMap<String, Vec<ModuleId>>,
}

/// Error that prevents building a module graph.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe them")]
pub enum GraphError {
    #[error("cannot read `{}`: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("`{}`: {error}", path.display())]
    NotRust { path: PathBuf, error: crate::source::NotRust },
    #[error("`{}` declares `mod {child};`, and there is no file of it", path.display())]
    NoFile { path: PathBuf, child: String },
    #[error("there is no module `{path}` in the workspace: was it renamed or moved?")]
    NoModule { path: String },
    #[error("Cargo.lock has no package `{name}`, which the code that decides results uses")]
    NoPackage { name: String },
}

/// The macro with one row per law.
const LAW_TABLE: &str = "laws";

/// The longest path that is followed through imports.
const MAX_SEGMENTS: usize = 10;

/// A library of the workspace.
struct Library {
    name: String,
    folder: PathBuf,
    dependencies: Rc<BTreeSet<String>>,
}

impl ModuleGraph {
    /// Reads these libraries of a workspace and all that they depend on there.
    ///
    /// # Errors
    /// If a file cannot be read or is not Rust.
    pub fn read(workspace: &FilePath, wanted: &BTreeSet<&str>) -> Result<Self, GraphError> {
        let mut libraries = Vec::new();
        find_libraries(workspace, &mut libraries)?;
        let mut needed: BTreeSet<String> = BTreeSet::new();
        let mut pending: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        while let Some(name) = pending.pop() {
            let library = libraries.iter().find(|it| it.name == name).ok_or(GraphError::NoModule { path: name })?;
            if needed.insert(library.name.clone()) {
                pending.extend(
                    library.dependencies.iter().filter(|name| libraries.iter().any(|it| it.name == **name)).cloned(),
                );
            }
        }
        libraries.retain(|library| needed.contains(&library.name));
        libraries.sort_by(|one, other| one.name.cmp(&other.name));
        let mut graph = Self {
            modules: Vec::new(),
            roots: BTreeMap::new(),
            uses: Vec::new(),
            externals: Vec::new(),
            rows: Vec::new(),
            macros: BTreeMap::new(),
        };
        for library in &libraries {
            let root = graph.add(&library.name, library.folder.join("src/lib.rs"), None, &library.dependencies)?;
            graph.roots.insert(library.name.clone(), root);
        }
        for (id, module) in graph.modules.iter().enumerate() {
            for name in &module.source.macros {
                graph.macros.entry(name.clone()).or_default().push(id);
            }
        }
        graph.list_rows();
        graph.link();
        graph.externals = graph.modules.iter().map(|it| externals(&it.source, &it.dependencies)).collect();
        Ok(graph)
    }

    fn add(
        &mut self,
        path: &str,
        file: PathBuf,
        parent: Option<ModuleId>,
        dependencies: &Rc<BTreeSet<String>>,
    ) -> Result<ModuleId, GraphError> {
        let text = fs::read_to_string(&file).map_err(|error| GraphError::Io { path: file.clone(), error })?;
        let source = SourceFile::parse(&text, Some(LAW_TABLE))
            .map_err(|error| GraphError::NotRust { path: file.clone(), error })?;
        let declared = source.children.clone();
        let id = self.modules.len();
        let root = parent.map_or(id, |parent| self.modules[parent].root);
        self.modules.push(SourceModule {
            path: path.to_owned(),
            file: file.clone(),
            source,
            parent,
            root,
            dependencies: Rc::clone(dependencies),
            children: BTreeMap::new(),
        });
        let stem = file.file_stem().unwrap_or_default();
        let own = file.parent().unwrap_or(FilePath::new("")).to_path_buf();
        let folder = if stem == "lib" || stem == "mod" { own } else { own.join(stem) };
        for child in declared {
            let candidates = [folder.join(format!("{child}.rs")), folder.join(&child).join("mod.rs")];
            let Some(found) = candidates.into_iter().find(|candidate| candidate.is_file()) else {
                // Only a build script's output may be in another place.
                return Err(GraphError::NoFile { path: file, child });
            };
            let added = self.add(&format!("{path}::{child}"), found, Some(id), dependencies)?;
            self.modules[id].children.insert(child, added);
        }
        Ok(id)
    }

    /// The source files, and those that they include.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.modules.iter().flat_map(|module| {
            let folder = module.file.parent().unwrap_or(FilePath::new("")).to_path_buf();
            let included = module.source.included.iter().map(move |name| folder.join(name));
            std::iter::once(module.file.clone()).chain(included)
        })
    }

    /// The module of that path.
    ///
    /// # Errors
    /// If there is none.
    pub fn module(&self, path: &str) -> Result<ModuleId, GraphError> {
        let found = self.modules.iter().position(|module| module.path == path);
        found.ok_or_else(|| GraphError::NoModule { path: path.to_owned() })
    }

    /// Returns true if a module is `other` or below it.
    pub fn is_below(&self, id: ModuleId, other: ModuleId) -> bool {
        std::iter::successors(Some(id), |&id| self.modules[id].parent).any(|id| id == other)
    }

    /// Records the modules named in the table of laws.
    fn list_rows(&mut self) {
        for id in 0..self.modules.len() {
            let root = self.modules[id].root;
            for row in self.modules[id].source.rows.clone() {
                if let Some(&module) = self.modules[root].children.get(&row.module) {
                    self.rows.push((module, row));
                }
            }
        }
    }

    fn link(&mut self) {
        self.uses = vec![BTreeSet::new(); self.modules.len()];
        for id in 0..self.modules.len() {
            let source = &self.modules[id].source;
            let mut found = BTreeSet::new();
            for path in &source.paths {
                self.resolve(id, path, &mut found);
            }
            for import in source.imports.iter().filter(|import| import.visibility == Visibility::Private) {
                self.resolve(id, &import.path, &mut found);
            }
            for name in &source.names {
                // Without `::` a module's name is a variable.
                if source.imports.iter().any(|import| import.name == *name || import.name == "*") {
                    self.resolve(id, std::slice::from_ref(name), &mut found);
                }
            }
            for name in &source.invoked {
                self.resolve(id, std::slice::from_ref(name), &mut found);
                found.extend(self.macros_of(id, name));
            }
            for implemented in &source.impls {
                // The type or the trait is of this crate. Code that uses a foreign type through it names the trait.
                let own = |path: &IdentPath| {
                    let mut owners = BTreeSet::new();
                    self.resolve(id, path, &mut owners);
                    owners.retain(|&owner| self.modules[owner].root == self.modules[id].root);
                    owners
                };
                let mut owners = own(&implemented.subject);
                if let (true, Some(of_trait)) = (owners.is_empty(), &implemented.of_trait) {
                    owners = own(of_trait);
                }
                for owner in owners {
                    self.uses[owner].insert(id);
                }
            }
            self.uses[id].extend(found);
            self.uses[id].remove(&id);
        }
        let of_table: BTreeSet<ModuleId> = self.rows.iter().map(|(module, _)| *module).collect();
        for id in 0..self.modules.len() {
            let is_used = self.uses.iter().any(|uses| uses.contains(&id)) || of_table.contains(&id);
            if let (false, Some(parent)) = (is_used, self.modules[id].parent) {
                self.uses[parent].insert(id);
            }
        }
    }

    /// Adds the modules that a path may mean, as seen from a module.
    fn resolve(&self, from: ModuleId, path: &[String], found: &mut BTreeSet<ModuleId>) {
        self.resolve_seen(from, path, found, &mut BTreeSet::new());
    }

    fn resolve_seen(
        &self,
        from: ModuleId,
        path: &[String],
        found: &mut BTreeSet<ModuleId>,
        seen: &mut BTreeSet<(ModuleId, IdentPath)>,
    ) {
        let Some((first, rest)) = path.split_first() else { return };
        // `use bytes::bytes;` of an external crate would otherwise extend its own path without end.
        if path.len() > MAX_SEGMENTS || !seen.insert((from, path.to_vec())) {
            return;
        }
        let module = &self.modules[from];
        match first.as_str() {
            "crate" => return self.descend(module.root, rest, found, seen),
            "self" => return self.descend(from, rest, found, seen),
            "super" => {
                // In an inline module `super` is the file itself.
                self.descend(from, rest, found, seen);
                if let Some(parent) = module.parent {
                    match rest.first().map(String::as_str) {
                        Some("super") => self.resolve_seen(parent, rest, found, seen),
                        _ => self.descend(parent, rest, found, seen),
                    }
                }
                return;
            }
            _ => {}
        }
        let is_crate = !rest.is_empty() && module.dependencies.contains(first);
        if let Some(&root) = self.roots.get(first).filter(|_| is_crate) {
            self.descend(root, rest, found, seen);
        }
        if self.has_name(from, first) {
            self.descend(from, path, found, seen);
        }
    }

    /// The modules of a crate that define a macro.
    fn macros_of(&self, id: ModuleId, name: &str) -> Vec<ModuleId> {
        let owners = self.macros.get(name).into_iter().flatten();
        owners.copied().filter(|&owner| self.modules[owner].root == self.modules[id].root).collect()
    }

    /// The modules that a glob imports from: paths of modules only, or none for an enum's variants.
    fn glob(&self, from: ModuleId, path: &[String]) -> Vec<ModuleId> {
        let module = &self.modules[from];
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let start = match first.as_str() {
            "crate" => vec![module.root],
            "self" => vec![from],
            "super" => [Some(from), module.parent].into_iter().flatten().collect(),
            name => {
                let child = module.children.get(name);
                let imported =
                    module.source.imports.iter().filter(|import| import.name == *name && import.path != path);
                let imported = imported.flat_map(|import| self.glob(from, &import.path));
                let root = self.roots.get(name).filter(|_| module.dependencies.contains(name));
                root.copied().into_iter().chain(child.copied()).chain(imported).collect()
            }
        };
        let step = |id: ModuleId| {
            let end = rest.iter().try_fold(id, |id, name| match name.as_str() {
                "super" => self.modules[id].parent,
                name => self.modules[id].children.get(name).copied(),
            });
            end.into_iter()
        };
        start.into_iter().flat_map(step).collect()
    }

    /// Returns true if the module declares or imports the name.
    fn has_name(&self, id: ModuleId, name: &String) -> bool {
        let module = &self.modules[id];
        module.children.contains_key(name)
            || module.source.imports.iter().any(|import| import.name == *name || import.name == "*")
    }

    /// Adds the modules that a path may mean, inside a module.
    fn descend(
        &self,
        id: ModuleId,
        path: &[String],
        found: &mut BTreeSet<ModuleId>,
        seen: &mut BTreeSet<(ModuleId, IdentPath)>,
    ) {
        let Some((first, rest)) = path.split_first() else {
            found.insert(id);
            return;
        };
        let module = &self.modules[id];
        let mut known = false;
        if let Some(&child) = module.children.get(first) {
            known = true;
            self.descend(child, rest, found, seen);
        }
        let owners = self.macros_of(id, first);
        if id == module.root && rest.is_empty() && !owners.is_empty() {
            known = true;
            found.extend(owners);
        }
        if module.source.items.contains(first) {
            known = true;
            found.insert(id);
        }
        for import in module.source.imports.iter().filter(|import| import.name == *first) {
            known = true;
            let path: IdentPath = import.path.iter().chain(rest).cloned().collect();
            self.resolve_seen(id, &path, found, seen);
        }
        if known {
            return;
        }
        for import in module.source.imports.iter().filter(|import| import.name == "*") {
            // Modules that the glob imports; a glob cannot supply its own first name.
            let before = found.len();
            for module in self.glob(id, &import.path) {
                if seen.insert((module, path.to_vec())) {
                    self.descend(module, path, found, seen);
                }
            }
            known |= found.len() > before;
        }
        // The type of a row; a macro re-exports it.
        for (law, row) in self.rows.iter().filter(|(_, row)| row.item == *first) {
            if self.modules[*law].root == module.root {
                known |= !row.item.is_empty();
                found.insert(*law);
            }
        }
        if !known {
            // A name that a macro defines.
            found.insert(id);
        }
    }
}

/// External crates that a source names.
fn externals(source: &SourceFile, dependencies: &BTreeSet<String>) -> BTreeSet<String> {
    let paths = source.paths.iter().chain(source.imports.iter().map(|import| &import.path));
    let first = paths.filter_map(|path| path.first()).filter(|first| dependencies.contains(*first));
    first.cloned().collect()
}

/// Finds the libraries below a directory, but for build outputs, fuzz targets and hidden directories.
fn find_libraries(folder: &FilePath, found: &mut Vec<Library>) -> Result<(), GraphError> {
    let failed = |error| GraphError::Io { path: folder.to_path_buf(), error };
    let manifest = folder.join("Cargo.toml");
    if folder.join("src/lib.rs").is_file() && manifest.is_file() {
        let text = fs::read_to_string(&manifest).map_err(|error| GraphError::Io { path: manifest, error })?;
        found.extend(library(&text).map(|(name, dependencies)| Library {
            name,
            folder: folder.to_path_buf(),
            dependencies: Rc::new(dependencies),
        }));
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for entry in entries.into_iter().filter(|entry| entry.is_dir() && !entry.is_symlink()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && !["target", "fuzz", "node_modules"].contains(&name.as_str()) {
            find_libraries(&entry, found)?;
        }
    }
    Ok(())
}

/// The library's name in a manifest, and the names of its dependencies as its code has them.
fn library(manifest: &str) -> Option<(String, BTreeSet<String>)> {
    let (mut section, mut package, mut lib) = (String::new(), None, None);
    let mut dependencies = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        match (section.as_str(), key) {
            ("package", "name") => package = Some(value.replace('-', "_")),
            ("lib", "name") => lib = Some(value.to_owned()),
            (section, key) if section == "dependencies" || section.ends_with(".dependencies") => {
                let name = key.split('.').next().unwrap_or(key);
                dependencies.insert(name.replace('-', "_"));
            }
            _ => {}
        }
    }
    Some((lib.or(package)?, dependencies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read() {
        let text = "[package]\nname = \"narrows-flow\"\n\n[lib]\nname = \"flow\"\n[dependencies]\nunits.workspace = true\n\
            toml-edit = { version = \"1\" }\n[dev-dependencies]\nproptest = \"1\"\n";
        let (name, dependencies) = library(text).expect("a library");
        assert_eq!(name, "flow");
        assert_eq!(dependencies.iter().map(String::as_str).collect::<Vec<_>>(), ["toml_edit", "units"]);
    }
}
