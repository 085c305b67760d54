//! Loops in tests are bounded. A loop that waits for an event that never occurs would block `make test` without a message.
//!
//! Looked at are shell scripts (`*.sh`, programs under `tests/` and `.ci/`, the Makefile), shell text in string literals of
//! the `tests` folders of crates, Python tests, and the Rust in the former. A shell loop (`while` or `until`) is bounded if
//!
//! - it reads its input (`while read -r line`) or uses up its arguments (`shift`),
//! - it counts: a variable that it changes in `((...))` is compared there,
//! - it looks at a clock (`SECONDS` or `date +%s`), or
//! - it stands behind `timeout N` on its line.
//!
//! A loop in Rust or Python waits if it sleeps. It is bounded if it names a deadline or looks at a clock, or if it counts.
//! A thread that works until its test sets a flag does not wait. Tests should wait with [`testing::eventually`].

use std::fs;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::support::{repository, sources};

/// A word of shell text.
struct ShellWord {
    span: Range<usize>,
    /// Set if a command may begin here, so that a keyword is one.
    is_command_start: bool,
}

/// Keywords of the shell behind which a command begins.
const OPENERS: [&str; 9] = ["do", "then", "else", "elif", "if", "while", "until", "!", "{"];

/// Cuts shell text into words. The escape `\n` of a string literal ends a command, too.
fn words(text: &str) -> Vec<ShellWord> {
    let mut words: Vec<ShellWord> = Vec::new();
    let (mut is_command_start, mut at) = (true, 0);
    let bytes = text.as_bytes();
    let is_end = |byte: u8| byte.is_ascii_whitespace() || b";&|()\"'`\\".contains(&byte);
    while at < bytes.len() {
        let start = at;
        if !is_end(bytes[at]) {
            at += bytes[at..].iter().take_while(|&&byte| !is_end(byte)).count();
            words.push(ShellWord { span: start..at, is_command_start });
            is_command_start = OPENERS.contains(&&text[start..at]);
            continue;
        }
        let escaped = if bytes[at] == b'\\' { bytes.get(at + 1).copied() } else { None };
        is_command_start |= match escaped {
            Some(byte) => byte == b'n' || byte == b'"',
            None => !matches!(bytes[at], b' ' | b'\t' | b'\\'),
        };
        at += if escaped.is_some_and(|byte| byte.is_ascii()) { 2 } else { 1 };
    }
    words
}

/// Finds the lines, counted from 1, at which shell loops without a bound begin.
fn endless_in_shell(text: &str) -> Vec<usize> {
    let words = words(text);
    let is = |word: &ShellWord, keyword: &str| word.is_command_start && &text[word.span.clone()] == keyword;
    let mut found = Vec::new();
    for (at, first) in words.iter().enumerate() {
        if !is(first, "while") && !is(first, "until") {
            continue;
        }
        let rest = &words[at + 1..];
        // `{` and `:` begin the body of a loop of Rust and of Python.
        let ends = |word: &ShellWord| {
            let word = &text[word.span.clone()];
            word.len() > 1 && (word.ends_with('{') || word.ends_with(':')) || word == "{"
        };
        let Some(body) = rest.iter().position(|word| is(word, "do") || is(word, "done") || ends(word)) else {
            continue;
        };
        if !is(&rest[body], "do") {
            continue;
        }
        let mut depth = 0;
        let last = rest[body..].iter().find(|word| {
            depth += i32::from(is(word, "do")) - i32::from(is(word, "done"));
            depth == 0
        });
        let Some(last) = last else { continue };
        let before = text[..first.span.start].rsplit('\n').next().unwrap_or_default();
        let condition: Vec<&str> = rest[..body].iter().map(|word| &text[word.span.clone()]).collect();
        if !is_bounded(before, &condition, &text[first.span.start..last.span.end]) {
            found.push(line_of(text, first.span.start));
        }
    }
    found
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Returns true if a shell loop always ends. `before` is the text before it on its line.
fn is_bounded(before: &str, condition: &[&str], loop_text: &str) -> bool {
    let reads = condition.iter().find(|word| !word.ends_with('=')).is_some_and(|word| *word == "read");
    let shifts = words(loop_text).iter().any(|word| word.is_command_start && &loop_text[word.span.clone()] == "shift");
    let looks_at_a_clock = loop_text.contains("SECONDS") || loop_text.contains("date +%s");
    let mut before = before.split_whitespace().skip_while(|word| !word.ends_with("timeout")).skip(1);
    let is_limited =
        before.next().is_some_and(|limit| limit.starts_with(|first: char| first.is_ascii_digit() || first == '$'));
    reads || shifts || looks_at_a_clock || is_limited || counts(loop_text)
}

/// Returns true if a variable is changed by arithmetic, and compared.
fn counts(loop_text: &str) -> bool {
    const COMPARED: [&str; 11] = ["-gt", "-lt", "-ge", "-le", "-eq", "-ne", "=", "==", "!=", "<", ">"];
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let counted = loop_text.split("((").skip(1).map(name).filter(|name| !name.is_empty());
    let commands: Vec<&str> = loop_text.split([';', '\n', '&', '|']).collect();
    counted.into_iter().any(|name| {
        let compares = |command: &&str| command.split_whitespace().any(|word| COMPARED.contains(&word));
        let has_it =
            |command: &&&str| command.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name);
        commands.iter().filter(has_it).any(compares)
    })
}

/// Finds the lines of Rust at which shell loops in string literals, and loops that sleep, begin without a bound.
fn endless_in_rust(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    read_rust(text.parse().unwrap(), &mut found);
    found.sort_unstable();
    found
}

fn read_rust(stream: TokenStream, found: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let line = token.span().start().line;
        match token {
            TokenTree::Literal(literal) => {
                found.extend(endless_in_shell(&literal.to_string()).iter().map(|within| line + within - 1));
            }
            TokenTree::Group(group) => read_rust(group.stream(), found),
            TokenTree::Ident(word) if word == "while" || word == "loop" => {
                let is_body =
                    |token: &TokenTree| matches!(token, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace);
                let Some(length) = tokens[at..].iter().position(is_body) else { continue };
                let condition: TokenStream = tokens[at + 1..at + length].iter().cloned().collect();
                let TokenTree::Group(body) = &tokens[at + length] else { continue };
                if waits_for_ever(&condition.to_string(), &body.stream().to_string(), ';') {
                    found.push(line);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Finds the lines of Python at which shell loops in strings, and loops that sleep, begin without a bound.
fn endless_in_python(text: &str) -> Vec<usize> {
    let mut found = endless_in_shell(text);
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (at, line) in lines.iter().enumerate() {
        let Some(condition) = line.trim().strip_prefix("while ").and_then(|rest| rest.strip_suffix(':')) else {
            continue;
        };
        let inside = |other: &&&str| other.trim().is_empty() || indent(other) > indent(line);
        let body: Vec<&str> = lines[at + 1..].iter().take_while(inside).copied().collect();
        if waits_for_ever(condition, &body.join("\n"), '\n') {
            found.push(at + 1);
        }
    }
    found.sort_unstable();
    found
}

/// Returns true if a loop of Rust or Python sleeps, and only the awaited event ends it.
fn waits_for_ever(condition: &str, body: &str, end_of_statement: char) -> bool {
    const SLEEPS: [&str; 4] = ["sleep", "yield_now", "park", "spin_loop"];
    const CLOCKS: [&str; 5] = ["deadline", "elapsed", "timeout", "monotonic", "left"];
    let has = |text: &str, names: &[&str]| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| names.contains(&word))
    };
    let sleeps = |text: &str| has(text, &SLEEPS);
    let counts = ["+= 1", "-= 1"].iter().any(|step| body.contains(step))
        && (condition.contains(['<', '>']) || body.contains("assert") || body.contains("=="));
    // Another thread of the test's, which does something between its looks.
    let flag = condition.replace(' ', "");
    let works =
        body.split(end_of_statement).any(|part| !part.trim().is_empty() && !sleeps(part) && !part.contains("assert"));
    let is_flagged = (flag.contains(".load(") || flag.contains(".is_set()")) && works;
    // A clock that is only shown or kept ends nothing.
    let looks_at_clock = body.lines().map(without_texts).any(|line| {
        // Printed tokens have spaces between them.
        has(&line, &CLOCKS)
            && (["if ", "assert", "break", "return", "raise"].iter().any(|word| line.contains(word))
                || line.replace(' ', "").contains(".check("))
    });
    sleeps(body) && !has(condition, &CLOCKS) && !looks_at_clock && !counts && !is_flagged
}

/// Removes the text between double quotes from a line.
fn without_texts(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// The reader of a file's loops, by its name and place; none for files that are not tests.
fn reader(path: &Path, text: &str) -> Option<fn(&str) -> Vec<usize>> {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match extension {
        "sh" => Some(endless_in_shell),
        "" if path == "Makefile" || matches!(parts[0], "tests" | ".ci") && text.starts_with("#!") => {
            Some(endless_in_shell)
        }
        "rs" if parts[0] == "crates" && parts[..parts.len() - 1].contains(&"tests") => Some(endless_in_rust),
        "py" if path.starts_with("python/tests") || parts.len() == 2 && parts[0] == "docs" => Some(endless_in_python),
        _ => None,
    }
}

#[test]
fn loops_of_tests_have_a_bound() {
    let (mut read, mut unbounded) = (Vec::new(), Vec::new());
    // The samples for these tests themselves are below.
    for path in sources(&repository()).iter().filter(|path| !path.ends_with("cli/tests/cli/tidy.rs")) {
        let name = path.strip_prefix(repository()).unwrap();
        let Ok(text) = fs::read_to_string(path) else { continue };
        let Some(reader) = reader(name, &text) else { continue };
        unbounded.extend(reader(&text).iter().map(|line| format!("{}:{line}", name.display())));
        read.push(name.display().to_string());
    }
    for known in [
        "Makefile",
        "tests/kernels/guest",
        "docs/picture.sh",
        "crates/cli/tests/cli/support.rs",
        "python/tests/test_law.py",
    ] {
        assert!(read.iter().any(|name| name == known), "{known} was not read");
    }
    assert!(
        unbounded.is_empty(),
        "these loops have no bound (the header of tidy.rs says what one is):\n{}",
        unbounded.join("\n")
    );
}

#[test]
fn endless_loops_of_shells_are_found() {
    for bad in [
        "until [ -s held ]; do sleep 0.05; done",
        "seen() { until [ -e /tmp/seen ]; do sleep 0.1; done; }",
        "cat a\nwhile ! listens\ndo\n    sleep 1\ndone",
        "server & until nc -z localhost 80; do :; done && echo up",
        "sh -c 'while :; do :; done'",
        "while true; do for i in 1 2; do echo $i; done; sleep 1; done",
        // The counted variable is not the compared one.
        "until [ $up = 1 ]; do n=$((n + 1)); up=$(look); done",
        "timeout 5 first; \nuntil second; do sleep 1; done",
        "while read_it; do sleep 1; done",
    ] {
        assert_eq!(endless_in_shell(bad).len(), 1, "{bad}");
    }
    let two = "set -e\nuntil a; do\n  until b; do sleep 1; done\ndone\n";
    assert_eq!(endless_in_shell(two), [2, 3]);
}

#[test]
fn loops_of_shells_with_a_bound_are_none() {
    for good in [
        "while read -r line; do echo $line; done <file",
        "ls | while IFS= read -r name; do rm $name; done",
        "while [ \"${1#-}\" != \"$1\" ]; do shift; done",
        "tries=600\nuntil \"$@\"; do\n  tries=$((tries - 1))\n  [ $tries -gt 0 ] || exit 1\n  sleep 0.1\ndone",
        "until boot || [ $((tries -= 1)) = 0 ]; do echo again; done",
        "i=0; while [ $i -lt 10 ]; do i=$((i + 1)); done",
        "until listens || ((tries-- < 1)); do sleep 1; done",
        "until up; do [ $SECONDS -lt 60 ] || exit 1; sleep 1; done",
        "timeout 60 sh -c 'until [ -s held ]; do sleep 0.05; done'",
        "for i in 1 2 3; do sleep 1; done",
        "echo it waits until it does; do_more",
        "# until this is done; while that is done",
    ] {
        assert_eq!(endless_in_shell(good), [0; 0], "{good}");
    }
}

#[test]
fn endless_loops_of_rust_are_found() {
    let shell =
        "fn a() {\n    run(&format!(\n        \"cat {x}\n         until [ -s held ]; do sleep 0.05; done\"\n    ));\n}";
    assert_eq!(endless_in_rust(shell), [4]);
    assert_eq!(endless_in_rust("const A: &str = \"a\\nuntil b; do c; done\\n\";"), [1]);
    for bad in [
        "while !happened() { sleep(MS); }",
        "while !happened() { assert!(child.try_wait().unwrap().is_none(), \"it ended\"); std::thread::sleep(MS); }",
        "while !a.exists() { std::thread::yield_now(); }",
        "loop { if a() { break; } thread::sleep(MS); }",
        "while !ready.load(Ordering::Relaxed) { thread::sleep(MS); }",
        "loop { log(\"no timeout, return\"); sleep(MS); }",
        "loop { let left = 1; sleep(MS); }",
    ] {
        assert_eq!(endless_in_rust(&format!("fn a() {{\n    {bad}\n}}")), [2], "{bad}");
    }
}

#[test]
fn loops_of_rust_with_a_bound_are_none() {
    for good in [
        "while let Some(folder) = open.pop() { read(folder); }",
        "while !holds() { looks += 1; assert!(looks < 1_000, \"not after 20 s\"); sleep(MS); }",
        "while begun.elapsed() < LONG && !holds() { sleep(MS); }",
        "while !holds() { deadline.check(what); sleep(MS); }",
        "while killed < KILLS { sleep(MS); killed += 1; }",
        "while !told.load(Ordering::Relaxed) { to.write_all(&bytes).unwrap(); sleep(MS); }",
        "for _ in 0..10 { sleep(MS); }",
        "// while waiting, until this is done; do nothing",
        "let text = \"while we wait until it is done; do not stop\";",
    ] {
        assert_eq!(endless_in_rust(&format!("fn a() {{\n    {good}\n}}")), [0; 0], "{good}");
    }
}

#[test]
fn endless_loops_of_python_are_found() {
    let bad = "def a():\n    while not path.exists():\n        time.sleep(0.05)\n\n    return 1\n";
    assert_eq!(endless_in_python(bad), [2]);
    assert_eq!(endless_in_python("run('until a; do sleep 1; done')\n"), [1]);
    for good in [
        "while not path.exists():\n    assert time.monotonic() < ends\n    time.sleep(0.05)\n",
        "while not done.is_set():\n    counted += 1\n    time.sleep(0.001)\n",
        "while left:\n    left.pop()\n",
    ] {
        assert_eq!(endless_in_python(good), [0; 0], "{good}");
    }
}
