//! Packages for registries are complete: each crate states its metadata and contains the licences, or states why it is not
//! published; READMEs have no links that lead outside their package. `make crates` builds the packages themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item};

use crate::support::repository;

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// A crate of the workspace.
struct Manifest {
    folder: PathBuf,
    text: String,
    document: DocumentMut,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document(path: &Path) -> DocumentMut {
    read(path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Manifest {
    /// Returns the crates below `crates/` by name.
    fn all() -> BTreeMap<String, Self> {
        let (mut found, mut open) = (BTreeMap::new(), vec![repository().join("crates")]);
        while let Some(folder) = open.pop() {
            let path = folder.join("Cargo.toml");
            if path.is_file() {
                let document = document(&path);
                let name = document["package"]["name"].as_str().unwrap().to_owned();
                found.insert(name, Self { text: read(&path), folder, document });
            } else {
                open.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|it| it.is_dir()));
            }
        }
        found
    }

    fn is_published(&self) -> bool {
        self.document["package"].get("publish").is_none()
    }

    /// Returns a key of the package, also of the workspace if the package inherits it.
    fn key<'a>(&'a self, key: &str, workspace: &'a DocumentMut) -> Option<&'a Item> {
        let own = self.document["package"].get(key)?;
        let inherits = own.get("workspace").is_some();
        Some(if inherits { &workspace["workspace"]["package"][key] } else { own })
    }

    /// Returns the README's path.
    fn readme(&self, workspace: &DocumentMut) -> Option<PathBuf> {
        let inherits = self.document["package"].get("readme")?.get("workspace").is_some();
        let folder = if inherits { repository() } else { self.folder.clone() };
        Some(folder.join(self.key("readme", workspace)?.as_str()?))
    }
}

/// Finds targets of a page's links that are neither addresses nor headings of the page.
fn relative_links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#')).collect()
}

#[test]
fn relative_links_are_found() {
    let page = "[a](b.md) and ![c](d/e.png); [f](https://example.org/g.md), [h](#i)";
    assert_eq!(relative_links(page), ["b.md", "d/e.png"]);
}

#[test]
fn published_crates_have_metadata_and_licences() {
    let workspace = document(&repository().join("Cargo.toml"));
    let mut errors = Vec::new();
    for (name, manifest) in Manifest::all() {
        let mut add_error = |problem: &str| errors.push(format!("{name}: {problem}"));
        if !manifest.is_published() {
            if !manifest.text.contains("\n# Not published: ") {
                add_error("`publish = false` without a comment `# Not published: REASON`");
            }
            continue;
        }
        for key in ["version", "edition", "rust-version", "license", "authors"] {
            if manifest.key(key, &workspace).is_none() {
                add_error(&format!("no `{key}`"));
            }
        }
        // Registries refuse more than five keywords, and long ones.
        for (key, longest) in [("keywords", 20), ("categories", 50)] {
            let words = manifest.key(key, &workspace).and_then(Item::as_array);
            let words: Vec<&str> = words.into_iter().flatten().filter_map(|word| word.as_str()).collect();
            if words.is_empty() || words.len() > 5 || words.iter().any(|word| word.len() > longest) {
                add_error(&format!("`{key}` are {words:?}, not 1 to 5 of at most {longest} bytes"));
            }
        }
        for licence in LICENCES {
            if fs::read(manifest.folder.join(licence)).ok() != fs::read(repository().join(licence)).ok() {
                add_error(&format!("`{licence}` differs from the repository's"));
            }
        }
        match manifest.readme(&workspace) {
            Some(path) => {
                let text = read(&path);
                let links = relative_links(&text);
                if !links.is_empty() {
                    add_error(&format!("{} has links that a registry cannot follow: {links:?}", path.display()));
                }
            }
            None => add_error("no `readme`"),
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// A package refers to other crates of the workspace by version, and only to published ones.
#[test]
fn dependencies_between_crates_have_the_version() {
    let workspace = document(&repository().join("Cargo.toml"));
    let version = workspace["workspace"]["package"]["version"].as_str();
    let crates = Manifest::all();
    let shared = workspace["workspace"]["dependencies"].as_table().unwrap();
    let mut errors = Vec::new();
    for (key, dependency) in shared {
        let Some(package) = dependency.get("package").and_then(Item::as_str) else { continue };
        let stated = dependency.get("version").and_then(Item::as_str);
        let expected = if crates[package].is_published() { version } else { None };
        if stated != expected {
            errors.push(format!("Cargo.toml: `{key}` has the version {stated:?}, expected {expected:?}"));
        }
    }
    for (name, manifest) in crates.iter().filter(|(_, manifest)| manifest.is_published()) {
        for kind in ["dependencies", "build-dependencies"] {
            let table = manifest.document.get(kind).and_then(Item::as_table);
            for (key, _) in table.into_iter().flatten() {
                let package = shared.get(key).and_then(|it| it.get("package")).and_then(Item::as_str);
                if package.is_some_and(|package| !crates[package].is_published()) {
                    errors.push(format!("{name} is published, and `{key}`, which it needs, is not"));
                }
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn the_readme_of_the_crates_lists_them() {
    let mut rows: Vec<String> = read(&repository().join("crates/README.md"))
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect();
    rows.sort();
    let crates = Manifest::all();
    let published = crates.iter().filter(|(_, manifest)| manifest.is_published());
    let mut expected: Vec<String> = published
        .map(|(name, manifest)| {
            format!("| `{name}` | {} |", manifest.document["package"]["description"].as_str().unwrap())
        })
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
}

#[test]
fn the_python_package_has_metadata_licences_and_types() {
    let root = repository();
    let project = document(&root.join("pyproject.toml"));
    let texts = |item: &Item| -> Vec<String> {
        item.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&project["project"]["license-files"]), LICENCES);
    assert!(project["project"].get("authors").is_some() && !texts(&project["project"]["keywords"]).is_empty());
    assert!(texts(&project["project"]["classifiers"]).contains(&"Typing :: Typed".to_owned()));
    assert!(root.join("python/narrows/py.typed").is_file());
    let readme = read(&root.join(project["project"]["readme"].as_str().unwrap()));
    assert_eq!(relative_links(&readme), [""; 0]);
    // The papers' files are in the sources, too: a wheel that pip builds from these has them.
    let included = project["tool"]["maturin"]["include"].to_string();
    assert!(included.contains(r#"{ path = "python/narrows/papers/*/*", format = ["sdist", "wheel"] }"#), "{included}");
}
