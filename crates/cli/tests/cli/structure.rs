//! The structure that ARCHITECTURE.md and `structure.md` state is that of the sources: the dependencies of groups and
//! crates, and the order of the modules of a crate, which has no cycles. Two ways to name a module are not detected:
//! through a name that the root exports by a glob, and by a path that a macro puts together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module by its names from the crate's root on; the root itself has none.
type ModulePath = Vec<String>;

/// The modules of a crate and the modules that each of them names.
struct Sources {
    files: BTreeMap<ModulePath, PathBuf>,
    /// Names that the root exports from its modules.
    exported: BTreeMap<String, ModulePath>,
    /// Modules for tests alone.
    test_only: BTreeSet<ModulePath>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the folders of all crates by their names. A crate is in the folder of its group, and `cli` in no group.
fn folders() -> BTreeMap<String, PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let crates = inside(&root().join("crates"))
        .into_iter()
        .flat_map(|folder| if folder.join("Cargo.toml").is_file() { vec![folder] } else { inside(&folder) });
    crates.map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)).collect()
}

fn crates() -> Vec<String> {
    folders().into_keys().collect()
}

/// Groups and crates, for readers; and modules, which only this test and authors of moves between modules need.
const PAGES: [&str; 2] = ["ARCHITECTURE.md", "crates/cli/tests/cli/structure.md"];

/// Returns the rows of the table with this heading, on either of the pages.
fn table(heading: &str) -> Vec<[String; 2]> {
    let pages = PAGES.map(|page| fs::read_to_string(root().join(page)).unwrap());
    let rows = pages.iter().flat_map(|text| {
        text.lines().skip_while(|line| *line != heading).skip(2).take_while(|line| line.starts_with('|'))
    });
    let cells = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        [0, 1].map(|cell| cells[cell].to_owned())
    };
    let rows: Vec<_> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "{PAGES:?} have no table {heading}");
    rows
}

/// Returns the texts in backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

impl Sources {
    fn of(name: &str) -> Self {
        let source = folders()[name].join("src");
        let (mut files, mut todo) = (BTreeMap::new(), vec![source.clone()]);
        while let Some(folder) = todo.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    todo.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let relative = path.strip_prefix(&source).unwrap().with_extension("");
                    let mut module: ModulePath =
                        relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                    module.pop_if(|last| *last == "mod" || module_is_root(last, &relative));
                    // A program next to a library uses only the library.
                    if relative != Path::new("main") || !source.join("lib.rs").is_file() {
                        files.insert(module, path);
                    }
                }
            }
        }
        let mut sources = Self { files, exported: BTreeMap::new(), test_only: BTreeSet::new() };
        for (module, path) in sources.files.clone() {
            let mut found = FileNames::default();
            found.read(tokens(&path));
            for child in found.test_modules {
                sources.test_only.insert(module.iter().cloned().chain([child]).collect());
            }
            if module.is_empty() {
                for mut path in found.paths {
                    if matches!(path[0].as_str(), "crate" | "self") {
                        path.remove(0);
                    }
                    if path.len() > 1 && sources.files.contains_key(&path[..1]) {
                        let name = path.pop().unwrap();
                        sources.exported.insert(name, path);
                    }
                }
            }
        }
        sources
    }

    fn is_test_only(&self, module: &[String]) -> bool {
        (1..=module.len()).any(|end| self.test_only.contains(&module[..end]))
    }

    /// The module that a path leads to, named in this module.
    fn leads_to(&self, from: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (mut module, mut rest) = match path[0].as_str() {
            "crate" => (ModulePath::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from.clone(), path),
            child if self.files.contains_key(&[from.as_slice(), &[child.to_owned()]].concat()) => (from.clone(), path),
            _ => return None,
        };
        while rest.first().is_some_and(|part| part == "super") {
            module.pop();
            rest = &rest[1..];
        }
        while let Some(part) = rest.first() {
            module.push(part.clone());
            if !self.files.contains_key(&module) {
                module.pop();
                break;
            }
            rest = &rest[1..];
        }
        match rest.first() {
            Some(name) if module.is_empty() => self.exported.get(name).cloned().or(Some(module)),
            _ => Some(module),
        }
    }

    /// Returns the other modules that each module names, without modules of tests.
    fn uses(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let modules = self.files.iter().filter(|(module, _)| !self.is_test_only(module));
        let named = |(module, path): (&ModulePath, &PathBuf)| {
            let mut found = FileNames::default();
            found.read(tokens(path));
            let uses = found.paths.iter().filter_map(|path| self.leads_to(module, path)).collect();
            (module.clone(), uses)
        };
        modules.map(named).collect()
    }

    /// Returns the uses among the parts of a module, the parts named by their last names.
    fn among(
        uses: &BTreeMap<ModulePath, BTreeSet<ModulePath>>,
        parent: &[String],
    ) -> BTreeMap<String, BTreeSet<String>> {
        let part = |module: &ModulePath| {
            let inside = module.starts_with(parent) && module.len() > parent.len();
            inside.then(|| module[parent.len()].clone())
        };
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, used) in uses {
            if let Some(from) = part(module) {
                let used = used.iter().filter_map(part).filter(|to| *to != from).collect::<Vec<_>>();
                graph.entry(from).or_default().extend(used);
            }
        }
        graph
    }
}

/// `lib.rs` and `main.rs` are the root, where they lie in it.
fn module_is_root(last: &str, relative: &Path) -> bool {
    relative.components().count() == 1 && (last == "lib" || last == "main")
}

fn tokens(path: &Path) -> TokenStream {
    let text = fs::read_to_string(path).unwrap();
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in a file, outside of its tests.
#[derive(Default)]
struct FileNames {
    /// Paths by their names; those that begin with neither `crate`, `self` nor `super` come from `use` alone.
    paths: Vec<Vec<String>>,
    /// Modules that it declares for tests.
    test_modules: Vec<String>,
}

impl FileNames {
    fn read(&mut self, stream: TokenStream) {
        let mut tokens = stream.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(sign) if sign.as_char() == '#' => {
                    let test_only = |token: &TokenTree| {
                        let text = token.to_string().replace(' ', "");
                        text.starts_with("[cfg(") && text.contains("test") && !text.contains("not(test)")
                    };
                    if tokens.peek().is_some_and(test_only) {
                        tokens.next();
                        self.skip_item(&mut tokens);
                    }
                }
                TokenTree::Ident(word) if word == "use" => self.read_use(&Vec::new(), &mut tokens),
                TokenTree::Ident(word) if word == "crate" || word == "super" || word == "self" => {
                    self.read_path(word.to_string(), &mut tokens);
                }
                TokenTree::Group(group) => self.read(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn skip_item(&mut self, tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) {
        let mut last = String::new();
        for token in tokens {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
                TokenTree::Punct(sign) if sign.as_char() == ';' => {
                    if let Some(name) = last.strip_prefix("mod ") {
                        self.test_modules.push(name.to_owned());
                    }
                    return;
                }
                TokenTree::Ident(word) if last == "mod" => last = format!("mod {word}"),
                other => last = other.to_string(),
            }
        }
    }

    /// The tree of a `use`, behind `prefix`.
    fn read_use(&mut self, prefix: &[String], tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) {
        let mut path = prefix.to_vec();
        for token in tokens.by_ref() {
            match token {
                TokenTree::Ident(word) if word == "as" => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    self.read_use(&path, &mut group.stream().into_iter().peekable());
                    path.clear();
                }
                TokenTree::Punct(sign) if sign.as_char() == ',' => {
                    self.note(std::mem::replace(&mut path, prefix.to_vec()), prefix);
                }
                TokenTree::Punct(sign) if sign.as_char() == ';' => break,
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.note(path, prefix);
    }

    fn note(&mut self, path: Vec<String>, prefix: &[String]) {
        if path.len() > prefix.len() {
            self.paths.push(path);
        }
    }

    /// The rest of a path in the midst of code.
    fn read_path(&mut self, first: String, tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) {
        let mut path = vec![first];
        loop {
            for _ in 0..2 {
                if !matches!(tokens.peek(), Some(TokenTree::Punct(sign)) if sign.as_char() == ':') {
                    if path.len() > 1 {
                        self.paths.push(path);
                    }
                    return;
                }
                tokens.next();
            }
            if let Some(TokenTree::Ident(word)) = tokens.peek() {
                path.push(word.to_string());
                tokens.next();
            }
        }
    }
}

/// Every module stands in the list of its crate, and uses only modules that stand before it there.
#[test]
fn modules_use_only_earlier_modules() {
    let stated: BTreeMap<String, Vec<String>> =
        table("| crate | its modules, each of which uses only those before it |")
            .into_iter()
            .map(|[name, modules]| (quoted(&name)[0].clone(), quoted(&modules)))
            .collect();
    let mut violations = Vec::new();
    for name in crates() {
        let stated = stated.get(&name).cloned().unwrap_or_default();
        let graph = Sources::among(&Sources::of(&name).uses(), &[]);
        let listed: BTreeSet<&String> = graph.keys().collect();
        if listed != stated.iter().collect() {
            violations.push(format!("{name}: its modules are {}", order(&graph).join(", ")));
            continue;
        }
        let index = |module: &String| stated.iter().position(|other| other == module);
        for (module, used) in &graph {
            for other in used.iter().filter(|other| index(other) > index(module)) {
                violations.push(format!("{name}: `{module}` uses `{other}`, which stands behind it"));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Modules, each after those that it uses, as far as they go in no circles.
fn order(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let (mut left, mut ordered): (Vec<&String>, Vec<String>) = (graph.keys().collect(), Vec::new());
    while !left.is_empty() {
        let ready = left.iter().position(|module| graph[*module].iter().all(|used| ordered.contains(used)));
        ordered.push(format!(
            "{}{}",
            left.remove(ready.unwrap_or(0)),
            if ready.is_some() { "" } else { " (in a circle)" }
        ));
    }
    ordered
}

/// Inside of a module, too, its parts do not use each other in circles.
#[test]
fn submodules_have_no_cycles() {
    let mut violations = Vec::new();
    for name in crates() {
        let uses = Sources::of(&name).uses();
        for parent in uses.keys() {
            for part in order(&Sources::among(&uses, parent)).iter().filter(|part| part.ends_with(')')) {
                violations.push(format!("{name}::{}: {part}", parent.join("::")));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Returns the name of the folder that a crate's folder lies in.
fn group(folder: &Path) -> String {
    folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// Crates, those for tests and builds left out, use crates of their own group and of those that it may use.
#[test]
fn group_dependencies_match_architecture() {
    let stated: BTreeMap<String, Vec<String>> = table("| group | uses groups |")
        .into_iter()
        .map(|[name, used]| (quoted(&name)[0].clone(), quoted(&used)))
        .collect();
    let groups: BTreeMap<String, String> = folders()
        .iter()
        .map(|(name, folder)| (name.clone(), group(folder)))
        .filter(|(name, _)| name != "cli")
        .collect();
    assert_eq!(groups.values().collect::<BTreeSet<_>>(), stated.keys().collect());
    for [name, used] in table("| crate | uses |") {
        let Some(own) = groups.get(&quoted(&name)[0]) else { continue };
        for other in quoted(&used) {
            let of_other = &groups[&other];
            assert!(
                of_other == own || stated[own].contains(of_other),
                "{name} of `{own}` uses `{other}` of `{of_other}`"
            );
        }
    }
}

#[test]
fn crate_dependencies_match_architecture() {
    let stated = table("| crate | uses |");
    let names: Vec<String> = stated.iter().map(|[name, _]| quoted(name)[0].clone()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), crates().iter().collect());
    for (index, [name, used]) in stated.iter().enumerate() {
        let manifest = folders()[&quoted(name)[0]].join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let mut counts = false;
        let uses = text.lines().filter(|line| {
            if line.starts_with('[') {
                // Those of one system count, those of tests and builds do not.
                counts = *line == "[dependencies]" || line.ends_with("'.dependencies]");
            }
            counts
        });
        let uses: BTreeSet<String> = uses
            .filter_map(|line| line.split(['.', ' ', '=']).next().map(str::to_owned))
            .filter(|used| names.contains(used))
            .collect();
        assert_eq!(uses, quoted(used).into_iter().collect(), "{name}");
        assert!(uses.iter().all(|used| names[..index].contains(used)), "{name} uses what stands behind it");
    }
}

/// Each file that ARCHITECTURE.md or a page of decisions names in backquotes exists: from the root, or below the folder of a crate.
#[test]
fn named_files_exist() {
    let folders = folders();
    let mut pages = vec![root().join("ARCHITECTURE.md")];
    pages.extend(fs::read_dir(root().join("docs/decisions")).unwrap().map(|entry| entry.unwrap().path()));
    let (mut named, mut missing) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for name in text.lines().flat_map(quoted) {
            let is_file = [".rs", ".md", ".toml", ".py"].iter().any(|extension| name.ends_with(extension));
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if !is_file || !plain || !name.contains('/') {
                continue;
            }
            named += 1;
            let (first, rest) = name.split_once('/').unwrap();
            let in_crate = folders.get(first).map(|folder| [folder.join(rest), folder.join("src").join(rest)]);
            let places = in_crate.into_iter().flatten().chain([root().join(&name)]);
            if !places.into_iter().any(|path| path.exists()) {
                missing.push(format!("{}: `{name}`", page.display()));
            }
        }
    }
    assert!(named >= 20 && missing.is_empty(), "{named} files are named; these are not there:\n{}", missing.join("\n"));
}
