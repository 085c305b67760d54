//! English of comments, messages and pages, held by counts that may only fall.
//!
//! Counted are doc comments that open with a question word or a pronoun instead of a noun phrase or a verb, and words of a
//! dialect that readers could not understand. `prose-budget.toml` has the count of each pattern in comments, in string literals
//! and in Markdown. A count above its budget fails; `BLESS=1` writes today's counts into the file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use toml_edit::DocumentMut;

use crate::support::{repository, sources};

/// Openings of doc comments that are neither a noun phrase nor a verb.
const OPENING: &str = "^(What|Whether|How|Of|Where|Which|Why|When|Who|Whom|Whose|Whoever|Whatever|So|It|There|That|This|Nobody|\
                       Nothing|Somebody|Something|Everybody|If|As)\\b";

/// Patterns of the dialect, with the names that the budget has for them.
const PATTERNS: [(&str, &str); 14] = [
    ("hold for lost", r"\b([Hh]old|held)s? [^.;:]{0,40}for lost\b"),
    ("strike", r"\b([Ss]trikes?|struck)\b"),
    ("hear", r"\b([Hh]ears?|heard)\b"),
    ("tell", r"\b([Tt]ells?|told)\b"),
    ("say", r"\b([Ss]ays?|said)\b"),
    ("who", r"\b([Ww]ho|[Ww]hom|[Ww]hose|[Ww]hoever|[Nn]obody|[Ss]omebody)\b"),
    ("so many", r"\b[Ss]o (many|much|long)\b"),
    ("give", r"\b[Gg]ives\b"),
    ("beside", r"\b[Bb]eside\b"),
    ("card", r"\b[Cc]ards?\b"),
    ("of which", r"\b[Oo]f which\b"),
    ("is to be", r"\b(is|are) to be\b"),
    ("in a circle", r"\bin a circle\b|\bfor want of\b|\bof late\b|\bhangs? from\b"),
    ("anew", r"\b[Aa]new\b"),
];

/// Name of the budget for openings of doc comments.
const OPENINGS: &str = "doc comment opens badly";

/// Places where a pattern occurs, by kind of text.
#[derive(Default)]
struct Occurrences {
    comments: Vec<String>,
    strings: Vec<String>,
    pages: Vec<String>,
}

impl Occurrences {
    fn kinds(&self) -> [(&'static str, &Vec<String>); 3] {
        [("comments", &self.comments), ("strings", &self.strings), ("pages", &self.pages)]
    }
}

/// A part of a Rust source, with the line that it begins at.
#[derive(PartialEq, Debug)]
enum ProsePart {
    Comment(usize, String),
    Literal(usize, String),
}

/// Splits a Rust source into its comments and string literals.
fn parts(text: &str) -> Vec<ProsePart> {
    let chars: Vec<char> = text.chars().collect();
    let (mut parts, mut at, mut line) = (Vec::new(), 0, 1);
    let starts = |at: usize, prefix: &str| prefix.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    while at < chars.len() {
        let begun = (at, line);
        let is_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
        if starts(at, "//") {
            at = (at..chars.len()).find(|&it| chars[it] == '\n').unwrap_or(chars.len());
            parts.push(ProsePart::Comment(begun.1, chars[begun.0..at].iter().collect()));
            continue;
        }
        let raw = if is_word { 0 } else { raw_hashes(&chars, at) };
        if raw > 0 {
            let open = (at..chars.len()).find(|&it| chars[it] == '"').unwrap_or(chars.len());
            let end = format!("\"{}", "#".repeat(raw - 1));
            at = (open + 1..chars.len()).find(|&it| starts(it, &end)).map_or(chars.len(), |it| it + end.len());
        } else if chars[at] == '"' {
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            at = (at + 1).min(chars.len());
        } else {
            // A quote is a character, such as '"', or begins a lifetime.
            let is_quoted = chars[at] == '\'' && (starts(at, "'\"'") || starts(at, "'\\"));
            at += if is_quoted { 3 } else { 1 };
            line += usize::from(chars[begun.0] == '\n');
            continue;
        }
        let literal: String = chars[begun.0..at].iter().collect();
        line += literal.matches('\n').count();
        parts.push(ProsePart::Literal(begun.1, literal));
    }
    parts
}

/// Returns one more than the number of hashes of a raw string that begins here, or 0 if none does.
fn raw_hashes(chars: &[char], at: usize) -> usize {
    let r = if chars[at] == 'b' { at + 1 } else { at };
    if chars.get(r) != Some(&'r') {
        return 0;
    }
    let hashes = chars[r + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(r + 1 + hashes) == Some(&'"') { hashes + 1 } else { 0 }
}

/// Pages that people write; scripts write the others.
fn is_written(page: &Path) -> bool {
    let name = page.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let generated = name.ends_with("-results.md") || name == "scenario-file.md";
    !generated && page.extension().is_some_and(|extension| extension == "md")
}

/// Adds the places of the patterns in a file.
fn count(name: &str, path: &Path, patterns: &[(&str, Regex)], found: &mut BTreeMap<String, Occurrences>) {
    let text = fs::read_to_string(path).unwrap();
    let opening = Regex::new(OPENING).unwrap();
    let mut note = |line: usize, text: &str, list: fn(&mut Occurrences) -> &mut Vec<String>| {
        for (pattern, regex) in patterns {
            for _ in regex.find_iter(text) {
                list(found.entry((*pattern).to_owned()).or_default()).push(format!("{name}:{line}: {}", text.trim()));
            }
        }
    };
    if path.extension().is_some_and(|extension| extension == "md") {
        for (line, text) in (1..).zip(text.lines()) {
            note(line, text, |places| &mut places.pages);
        }
        return;
    }
    let mut last = (0, "");
    let mut openings = Vec::new();
    for part in parts(&text) {
        match part {
            ProsePart::Comment(line, comment) => {
                note(line, &comment, |places| &mut places.comments);
                let marker = ["///", "//!"].into_iter().find(|it| comment.starts_with(it)).unwrap_or("");
                let opens = !marker.is_empty() && last != (line - 1, marker);
                if opens && opening.is_match(comment[marker.len()..].trim_start()) {
                    openings.push(format!("{name}:{line}: {comment}"));
                }
                last = (line, marker);
            }
            ProsePart::Literal(line, literal) => {
                // Tests' texts are the texts of what they test.
                if name.contains("/src/") {
                    note(line, &literal, |places| &mut places.strings);
                }
            }
        }
    }
    found.entry(OPENINGS.to_owned()).or_default().comments.extend(openings);
}

fn budget_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/prose-budget.toml")
}

#[test]
fn pattern_counts_do_not_rise() {
    let compiled = PATTERNS.map(|(name, pattern)| (name, Regex::new(pattern).unwrap()));
    let mut found = BTreeMap::from([(OPENINGS.to_owned(), Occurrences::default())]);
    found.extend(PATTERNS.map(|(name, _)| (name.to_owned(), Occurrences::default())));
    let mut read = 0;
    for path in sources(&repository()) {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        // This file and its budget quote the patterns.
        if name.ends_with("cli/prose.rs") || !(is_written(&path) || path.extension().is_some_and(|it| it == "rs")) {
            continue;
        }
        count(&name, &path, &compiled, &mut found);
        read += 1;
    }
    assert!(read > 800, "{read} files");
    if std::env::var_os("BLESS").is_some() {
        let mut text =
            "# Counts of patterns that `prose.rs` names, in comments, string literals and pages. They may only fall.\n"
                .to_owned();
        for (pattern, places) in &found {
            let counts = places.kinds().map(|(kind, places)| format!("{kind} = {}", places.len())).join(", ");
            let _ = writeln!(text, "\"{pattern}\" = {{ {counts} }}");
        }
        fs::write(budget_file(), text).unwrap();
    }
    let budget: DocumentMut = fs::read_to_string(budget_file()).unwrap().parse().unwrap();
    let mut exceeded = Vec::new();
    for (pattern, places) in &found {
        for (kind, places) in places.kinds() {
            let limit = budget.get(pattern).and_then(|it| it.get(kind)).and_then(toml_edit::Item::as_integer);
            let limit = usize::try_from(limit.unwrap_or_else(|| panic!("no budget of `{pattern}` in {kind}"))).unwrap();
            if places.len() > limit {
                let shown: Vec<&str> = places.iter().rev().take(12).map(String::as_str).collect();
                let shown = shown.join("\n    ");
                exceeded.push(format!(
                    "`{pattern}`: {} in {kind}, and the budget is {limit}; some:\n    {shown}",
                    places.len()
                ));
            }
        }
    }
    assert!(
        exceeded.is_empty(),
        "\n{}\nwrite it otherwise; the header of prose.rs explains the counts",
        exceeded.join("\n")
    );
}

#[test]
fn sources_are_split_into_comments_and_literals() {
    let text =
        "/// What.\nlet a = \"b // c\"; // d\nlet e = '\"';\nlet f = r#\"g\n\"h\"#; let c: &'a str = \"\\\"i\"; // j\n";
    let comment = |line, text: &str| ProsePart::Comment(line, text.to_owned());
    let literal = |line, text: &str| ProsePart::Literal(line, text.to_owned());
    assert_eq!(
        parts(text),
        [
            comment(1, "/// What."),
            literal(2, "\"b // c\""),
            comment(2, "// d"),
            literal(4, "r#\"g\n\"h\"#"),
            literal(5, "\"\\\"i\""),
            comment(5, "// j"),
        ]
    );
}
