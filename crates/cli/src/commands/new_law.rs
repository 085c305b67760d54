//! `narrows new-law`: the files of a new control law in a checkout of Narrows, ready to build and to be filled in.

mod drafted;

use std::io::Write as _;
use std::path::Path;

use files::{AtomicFile, FileIdentity, SizeLimit};

use crate::args::NewLawArgs;
use crate::exit::{CommandFailure, print};

use drafted::PythonLaw;

const LAW: &str = include_str!("new_law/law.txt");
const PAGE: &str = include_str!("new_law/page.txt");
/// The same for a law that exists in Python.
const DRAFTED_LAW: &str = include_str!("new_law/drafted.txt");
const DRAFTED_PAGE: &str = include_str!("new_law/drafted_page.txt");
/// A file of sources is never longer.
const SOURCE: SizeLimit = SizeLimit { kind: "a source file", mib: 1 };
/// Words that Rust keeps for itself, of those that could be the name of a law.
const KEYWORDS: [&str; 12] =
    ["abstract", "final", "impl", "loop", "match", "mod", "move", "static", "super", "trait", "type", "yield"];

/// A law by the names that it has.
struct LawNames {
    /// In files: `my-law`.
    name: String,
    /// Name of its module: `my_law`.
    module: String,
    /// Name of its type, and its title until the author changes that: `MyLaw`.
    law: String,
}

/// A file that the law is entered in.
struct RegistryFile {
    file: &'static str,
    draft: AtomicFile,
}

pub(crate) fn new_law(args: &NewLawArgs) -> Result<(), CommandFailure> {
    let NewLawResult { new, changed, name } = make(&args.name, &args.source, None)?;
    print(&format!(
        "new: {}\nentered in: {}\nnext: write the law, then cargo test -p narrows-laws\nit runs as law = \"{name}\" once `narrows` is \
         built again",
        new.join(", "),
        changed.join(", "),
    ))
}

/// The files of a law that exists in Python, as the package hands it over (JSON). Answers those that are new.
pub(crate) fn drafted(name: &str, root: &Path, json: &str) -> Result<Vec<String>, CommandFailure> {
    Ok(make(name, root, Some(&PythonLaw::read(json)?))?.new)
}

/// The result of the command.
struct NewLawResult {
    /// Files that are new, the code first.
    new: Vec<String>,
    changed: [&'static str; 4],
    name: String,
}

fn make(name: &str, root: &Path, drafted: Option<&PythonLaw>) -> Result<NewLawResult, CommandFailure> {
    let names = LawNames::of(name, root)?;
    let code = format!("crates/core/laws/src/{}.rs", names.module);
    let page = format!("docs/src/laws/{}.md", names.name);
    let trace = format!("crates/core/laws/src/{}_trace.txt", names.module);
    let entries = [
        entry(root, "crates/core/laws/src/lib.rs", |text| names.declared(text))?,
        entry(root, "crates/core/laws/src/law.rs", |text| names.listed(text))?,
        entry(root, "docs/src/laws/README.md", |text| {
            let LawNames { name, law, .. } = &names;
            let facts = match drafted {
                None => "loss | no | 10 packets | half | one packet, slow start",
                // Its skeleton has a constant window.
                Some(_) => "to be written | to be written | 10 packets | to be written | to be written",
            };
            let row = format!("| [`{name}`]({name}.md) | {law} | none yet | {facts} |");
            after(text, "| [`fixed`](fixed.md) |", &row)
        })?,
        entry(root, "docs/src/SUMMARY.md", |text| {
            after(
                text,
                "  - [A constant window](laws/fixed.md)",
                &format!("  - [{}](laws/{}.md)", names.law, names.name),
            )
        })?,
    ];
    let changed = entries.each_ref().map(|entry| entry.file);
    let fresh = |file: &str, template: &str| {
        let path = root.join(file);
        draft(&path, FileIdentity::of(&path), &names.fill(template)).map(|draft| (draft, path))
    };
    let new = match drafted {
        None => vec![fresh(&page, PAGE)?, fresh(&code, LAW)?],
        Some(drafted) => vec![
            fresh(&page, &drafted.fill(DRAFTED_PAGE)?)?,
            fresh(&trace, &drafted.trace)?,
            fresh(&code, &drafted.fill(DRAFTED_LAW)?)?,
        ],
    };
    // All is written before anything has its name.
    for (draft, path) in new {
        draft.put_if_absent().map_err(|error| CommandFailure::file("make", &path, &error))?;
    }
    for RegistryFile { file, draft } in entries {
        draft.put().map_err(|error| CommandFailure::file("write", &root.join(file), &error))?;
    }
    let new = if drafted.is_some() { vec![code, page, trace] } else { vec![code, page] };
    Ok(NewLawResult { new, changed, name: names.name })
}

impl LawNames {
    /// The names of a law that is not there yet.
    fn of(name: &str, root: &Path) -> Result<Self, CommandFailure> {
        let invalid_name =
            |reason: &str| CommandFailure::Input(format!("error: {name:?} cannot be the name of a law: {reason}"));
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let parts: Vec<&str> = name.split('-').collect();
        if !name.bytes().all(is_plain)
            || !name.starts_with(|first: char| first.is_ascii_lowercase())
            || parts.iter().any(|part| part.is_empty())
            || name.len() > 24
        {
            return Err(invalid_name(
                "expected at most 24 lower-case letters, digits and single hyphens, a letter first, as in `my-law`",
            ));
        }
        let module = parts.join("_");
        let capital = |part: &&str| part[..1].to_ascii_uppercase() + &part[1..];
        let law: String = parts.iter().map(capital).collect();
        if KEYWORDS.contains(&name) {
            return Err(invalid_name("Rust keeps that word for itself"));
        }
        let sources = root.join("crates/core/laws/src");
        if !sources.join("law.rs").is_file() {
            return Err(CommandFailure::Input(format!(
                "error: `{}` is no checkout of Narrows: it has no crates/core/laws/src/law.rs; run this in one, or name one with --source",
                root.display()
            )));
        }
        if sources.join(&module).is_dir() || sources.join(format!("{module}.rs")).exists() {
            return Err(invalid_name(&format!("crates/core/laws/src has a module `{module}` already")));
        }
        // The types of all laws and of their shared modules have one namespace.
        let used = ["lib.rs", "law.rs"].map(|file| read(&sources.join(file)));
        for text in used {
            let is_word = |word: &str| word == law;
            if text?.split(|letter: char| !letter.is_alphanumeric()).any(is_word) {
                return Err(invalid_name(&format!("crates/core/laws has a type `{law}` already")));
            }
        }
        Ok(Self { name: name.to_owned(), module, law })
    }

    fn fill(&self, template: &str) -> String {
        let Self { name, module, law } = self;
        [("@name@", name), ("@module@", module), ("@type@", law), ("@title@", law)]
            .iter()
            .fold(template.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }

    /// Among the modules, which are in order.
    fn declared(&self, text: &str) -> Option<String> {
        let named = |line: &str| {
            let rest = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "))?;
            rest.strip_suffix(';').map(str::to_owned)
        };
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // `mod params` is separate, before them, because of its macros.
        let last = lines.iter().rposition(|line| named(line).is_some())?;
        let later = |line: &String| named(line).is_some_and(|other| other != "params" && other > self.module);
        let index = lines.iter().position(later).unwrap_or(last + 1);
        // Test-only modules are below their attribute.
        let index = if index > 0 && lines[index - 1].starts_with("#[") { index - 1 } else { index };
        lines.insert(index, format!("pub mod {};", self.module));
        Some(lines.join("\n") + "\n")
    }

    /// At the end of the table of laws.
    fn listed(&self, text: &str) -> Option<String> {
        let line = format!("            /// `{}`.\n            {} in {};", self.law, self.law, self.module);
        after(text, "            Fixed in fixed for kernel;", &line)
    }
}

/// A file as it is once the law is entered.
fn entry(
    root: &Path,
    file: &'static str,
    enter: impl FnOnce(&str) -> Option<String>,
) -> Result<RegistryFile, CommandFailure> {
    let path = root.join(file);
    let identity = FileIdentity::of(&path);
    let text = enter(&read(&path)?).ok_or_else(|| {
        CommandFailure::Input(format!(
            "error: `{}` is not as this version of Narrows has it: the place for a law was not found, and nothing was written",
            path.display()
        ))
    })?;
    Ok(RegistryFile { file, draft: draft(&path, identity, &text)? })
}

/// A file that is written and has not its name yet; it replaces only the one that was seen.
fn draft(path: &Path, identity: FileIdentity, text: &str) -> Result<AtomicFile, CommandFailure> {
    let draft = AtomicFile::replacing(path, identity).and_then(|draft| {
        draft.file().write_all(text.as_bytes())?;
        Ok(draft)
    });
    draft.map_err(|error| CommandFailure::file("write", path, &error))
}

/// A text with a line more, after the first that begins like that.
fn after(text: &str, prefix: &str, line: &str) -> Option<String> {
    let found = text.split_inclusive('\n').scan(0, |end, found| {
        *end += found.len();
        Some((found, *end))
    });
    let (_, end) = { found }.find(|(found, _)| found.starts_with(prefix))?;
    Some(format!("{}{line}\n{}", &text[..end], &text[end..]))
}

fn read(path: &Path) -> Result<String, CommandFailure> {
    Ok(files::text(path, SOURCE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_inserted_after_the_first_match() {
        assert_eq!(after("a\nb 1\nb 2\n", "b", "new"), Some("a\nb 1\nnew\nb 2\n".to_owned()));
        assert_eq!(after("a\n", "b", "new"), None);
    }

    #[test]
    fn module_declarations_stay_sorted() {
        let names = |module: &str| LawNames { name: String::new(), module: module.to_owned(), law: String::new() };
        let text = "mod params;\n\npub mod bbr;\nmod round;\n#[cfg(test)]\nmod testbed;\npub mod vegas;\n";
        let declared = |module: &str| names(module).declared(text).unwrap();
        assert!(declared("copa").contains("pub mod bbr;\npub mod copa;\nmod round;"));
        assert!(declared("swift").contains("mod round;\npub mod swift;\n#[cfg(test)]\nmod testbed;"));
        assert!(declared("aimd").contains("mod params;\n\npub mod aimd;\npub mod bbr;"));
        assert!(declared("zeta").ends_with("pub mod vegas;\npub mod zeta;\n"));
        assert!(declared("unit").contains("mod testbed;\npub mod unit;\npub mod vegas;"));
    }
}
