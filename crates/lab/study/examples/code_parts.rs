//! Shows and tests which code a run's key covers. A tool for developers; `tests/keys/prove` drives it.
//!
//!     code_parts list                        modules of each part, as JSON
//!     code_parts trace DIR                   rewrites the sources in DIR, a copy of the workspace, so that each run
//!                                            records the modules with functions that it calls
//!     code_parts mutate DIR SEED MODULE TRY  changes a constant or a comparison in a module of the copy

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use code_version::{CodeParts, ModuleGraph};
use proc_macro2::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};
use serde_json::json;

#[path = "../src/features.rs"]
mod features;
#[path = "../roots.rs"]
mod roots;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["list"] => list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")),
        ["list", workspace] => list(Path::new(workspace)),
        ["trace", copy] => trace(Path::new(copy)),
        ["mutate", copy, seed, module, attempt] => match (seed.parse(), attempt.parse()) {
            (Ok(seed), Ok(attempt)) => mutate(Path::new(copy), module, EditSeed { seed, attempt }),
            _ => Err(format!("`{seed}` and `{attempt}`: expected whole numbers")),
        },
        _ => Err("usage: code_parts list [DIR] | trace DIR | mutate DIR SEED MODULE TRY".to_owned()),
    };
    if let Err(error) = done {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}

fn list(workspace: &Path) -> Result<(), String> {
    let (parts, _) = CodeParts::read(workspace, &roots::ROOTS).map_err(|error| error.to_string())?;
    let graph = graph(workspace)?;
    let of = |part: &code_version::CodePart| json!({ "version": format!("{:016x}", part.version), "modules": part.modules, "externals": part.externals });
    let all = |parts: &BTreeMap<String, code_version::CodePart>| {
        parts.iter().map(|(name, part)| (name.clone(), of(part))).collect::<serde_json::Map<_, _>>()
    };
    let text = json!({
        "engine": of(&parts.engine), "laws": all(&parts.laws), "features": all(&parts.features), "record": of(&parts.record),
        "all": graph.modules.iter().map(|module| module.path.as_str()).collect::<Vec<_>>(),
    });
    println!("{text:#}");
    Ok(())
}

fn graph(workspace: &Path) -> Result<ModuleGraph, String> {
    ModuleGraph::read(workspace, &roots::ROOTS.libraries()).map_err(|error| error.to_string())
}

/// Counters of entered modules, in `units`: the crate that all others use.
const TRACE: &str = r"
#[doc(hidden)]
pub mod entered {
    use core::sync::atomic::{AtomicBool, Ordering};
    pub static MODULES: [AtomicBool; 512] = [const { AtomicBool::new(false) }; 512];
    #[inline]
    pub fn note(module: usize) {
        if !MODULES[module].load(Ordering::Relaxed) {
            MODULES[module].store(true, Ordering::Relaxed);
        }
    }
}
";

fn trace(copy: &Path) -> Result<(), String> {
    let graph = graph(copy)?;
    let traced = ["units", "laws", "codes", "flow", "fabric", "experiment", "engine", "scenario"];
    let mut names = Vec::new();
    for (id, module) in graph.modules.iter().enumerate() {
        names.push(module.path.clone());
        let library = module.path.split("::").next().unwrap_or_default();
        if !traced.contains(&library) {
            continue;
        }
        let root = if library == "units" { "crate" } else { "::units" };
        let note = format!("{root}::entered::note({id});");
        let note = TokenStream::from_str(&note).map_err(|error| error.to_string())?;
        let mut text = with_notes(read(&module.file)?, &note).to_string();
        if module.path == "units" {
            text.push_str(TRACE);
        }
        write(&module.file, &text)?;
    }
    // The simulator's backend records the modules that each run entered.
    let host = copy.join("crates/lab/study/src/backend.rs");
    let text = fs::read_to_string(&host).map_err(|error| error.to_string())?;
    let begin = "let outcome = if self.checked {";
    let end = "let times = clock.times();";
    if !text.contains(begin) || !text.contains(end) {
        return Err(format!("{}: the run is not where this tool expects it", host.display()));
    }
    let text = text
        .replace(begin, &format!("units::entered::MODULES.iter().for_each(|it| it.store(false, std::sync::atomic::Ordering::Relaxed));\n{begin}"))
        .replace(end, &format!(
            "{{ use std::io::Write as _; let entered: Vec<usize> = (0..512).filter(|&it| units::entered::MODULES[it].load(std::sync::atomic::Ordering::Relaxed)).collect();\n\
             let path = std::env::var(\"NARROWS_ENTERED\").expect(\"a file\");\n\
             let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect(\"a file\");\n\
             writeln!(file, \"{{}}\", serde_json::json!({{ \"run\": run.id, \"code\": info.code, \"entered\": entered }})).expect(\"written\"); }}\n{end}"
        ));
    write(&host, &text)?;
    println!("{}", json!(names));
    Ok(())
}

/// Tokens with a statement at the beginning of each function's body.
fn with_notes(tokens: TokenStream, note: &TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut made = Vec::with_capacity(tokens.len());
    // The place of the last `fn`, until its body or a `;` follows.
    let mut function: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "fn" && matches!(tokens.get(at + 1), Some(TokenTree::Ident(_))) => {
                let is_const = tokens[at.saturating_sub(3)..at]
                    .iter()
                    .rev()
                    .take_while(|it| matches!(it, TokenTree::Ident(word) if word != "pub"))
                    .any(|it| matches!(it, TokenTree::Ident(word) if word == "const"));
                function = (!is_const).then_some(at);
                made.push(token.clone());
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                function = None;
                made.push(token.clone());
            }
            TokenTree::Group(group) => {
                let inner = with_notes(group.stream(), note);
                let inner = if group.delimiter() == Delimiter::Brace && function.take().is_some() {
                    note.clone().into_iter().chain(inner).collect()
                } else {
                    inner
                };
                made.push(TokenTree::Group(Group::new(group.delimiter(), inner)));
            }
            _ => made.push(token.clone()),
        }
    }
    made.into_iter().collect()
}

/// Seed and attempt of a change.
#[derive(Clone, Copy)]
struct EditSeed {
    seed: u64,
    /// Changes that do not compile are drawn again.
    attempt: u64,
}

fn mutate(copy: &Path, module: &str, draw: EditSeed) -> Result<(), String> {
    let graph = graph(copy)?;
    let id = graph.module(module).map_err(|error| error.to_string())?;
    let file: PathBuf = graph.modules[id].file.clone();
    let tokens = read(&file)?;
    let mut sites = 0;
    let _ = changed(tokens.clone(), &mut sites, None, &mut String::new());
    if sites == 0 {
        println!("{}", json!({ "module": module, "sites": 0 }));
        return Ok(());
    }
    let name = module.bytes().fold(draw.seed, |hash, byte| units::mix64(hash ^ u64::from(byte)));
    let chosen = (units::mix64(name ^ draw.attempt) % sites as u64) as usize;
    let (mut at, mut change) = (0, String::new());
    let text = changed(tokens, &mut at, Some(chosen), &mut change).to_string();
    write(&file, &text)?;
    println!("{}", json!({ "module": module, "sites": sites, "site": chosen, "change": change }));
    Ok(())
}

/// Tokens in which the constant or comparison `chosen` is another one. Counts the places where that is possible.
fn changed(tokens: TokenStream, at: &mut usize, chosen: Option<usize>, change: &mut String) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut made: Vec<TokenTree> = Vec::with_capacity(tokens.len());
    let mut skip = 0;
    for (place, token) in tokens.iter().enumerate() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if matches!(token, TokenTree::Punct(mark) if mark.as_char() == '#')
            && let Some(attribute @ TokenTree::Group(group)) = tokens.get(place + 1)
            && group.delimiter() == Delimiter::Bracket
        {
            // Of tests nothing counts, and an attribute is no arithmetic.
            made.extend([token.clone(), attribute.clone()]);
            skip = 1;
            let is_test = group.stream().to_string().replace(' ', "") == "cfg(test)";
            if is_test {
                let end = tokens[place + 2..].iter().position(|it| {
                    matches!(it, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
                        || matches!(it, TokenTree::Punct(mark) if mark.as_char() == ';')
                });
                let end = end.map_or(tokens.len(), |end| place + 3 + end);
                made.extend(tokens[place + 2..end].iter().cloned());
                skip = end - place - 1;
            }
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                let inner = changed(group.stream(), at, chosen, change);
                made.push(TokenTree::Group(Group::new(group.delimiter(), inner)));
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let other = other_number(&text);
                if other.is_some() {
                    *at += 1;
                }
                match other.filter(|_| chosen == Some(*at - 1)) {
                    Some(other) => {
                        *change = format!("{text} -> {other}");
                        made.push(TokenTree::Literal(other));
                    }
                    None => made.push(token.clone()),
                }
            }
            TokenTree::Punct(first) if first.spacing() == Spacing::Joint => {
                let pair = match tokens.get(place + 1) {
                    Some(TokenTree::Punct(second)) => Some((first.as_char(), second.as_char())),
                    _ => None,
                };
                let other = match pair {
                    Some(('=', '=')) => Some(('!', '=')),
                    Some(('!', '=')) => Some(('=', '=')),
                    Some(('<', '=')) => Some(('>', '=')),
                    Some(('>', '=')) => Some(('<', '=')),
                    _ => None,
                };
                // `<<=` and `>>=` are assignments.
                let shifts = place > 0
                    && matches!(&tokens[place - 1], TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint);
                if other.is_some() && !shifts {
                    *at += 1;
                    if let (Some(other), true) = (other, chosen == Some(*at - 1)) {
                        *change = format!(
                            "{}{} -> {}{}",
                            pair.unwrap_or_default().0,
                            pair.unwrap_or_default().1,
                            other.0,
                            other.1
                        );
                        made.push(TokenTree::Punct(Punct::new(other.0, Spacing::Joint)));
                        made.push(TokenTree::Punct(Punct::new(other.1, Spacing::Alone)));
                        skip = 1;
                        continue;
                    }
                }
                made.push(token.clone());
            }
            _ => made.push(token.clone()),
        }
    }
    made.into_iter().collect()
}

/// Returns an integer literal of another value; none for other literals.
fn other_number(text: &str) -> Option<Literal> {
    let digits: String = text.chars().take_while(|it| it.is_ascii_digit() || *it == '_').collect();
    let suffix = &text[digits.len()..];
    let is_whole =
        suffix.is_empty() || ["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "i128"].contains(&suffix);
    let number: u64 = digits.replace('_', "").parse().ok().filter(|_| is_whole)?;
    let other = if number == 1 {
        2
    } else if number.is_multiple_of(2) {
        number + 1
    } else {
        number - 1
    };
    Literal::from_str(&format!("{other}{suffix}")).ok()
}

fn read(file: &Path) -> Result<TokenStream, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
