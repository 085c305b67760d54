//! Errors of scenarios, shown at their location: file, line, column, the line itself, a caret, and accepted values.

use std::borrow::Cow;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use thiserror::Error;

use crate::index::index32;
use crate::kind::FileKind;

/// Colour of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// By ANSI escape sequences.
    Ansi,
    /// None.
    Plain,
}

/// Error of a scenario that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// An error in a file or an argument.
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
    /// A file cannot be read.
    #[error("error: {0}")]
    Unreadable(
        /// The file, the error in it, and the file that was probably meant.
        String,
    ),
}

impl Error {
    /// The message for a terminal.
    pub fn render(&self, colour: Colour) -> String {
        match self {
            Self::Invalid(diagnostic) => diagnostic.render(colour),
            Self::Unreadable(_) => escape_controls(&self.to_string()).into_owned(),
        }
    }
}

/// An error and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The error, in a sentence.
    pub message: String,
    /// Text under the caret.
    pub label: String,
    /// Accepted values, or a remedy.
    pub help: Vec<String>,
    /// Its location, if it has one.
    pub location: Option<SourceLocation>,
}

/// A location in a file or an argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLocation {
    /// The file, or `--set`.
    pub file: String,
    /// Its whole text.
    pub text: Arc<str>,
    /// The bytes in question.
    pub range: std::ops::Range<usize>,
}

impl SourceLocation {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.text[..self.range.start].matches('\n').count() + 1
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        let line_start = self.text[..self.range.start].rfind('\n').map_or(0, |at| at + 1);
        self.text[line_start..self.range.start].chars().count() + 1
    }
}

impl Diagnostic {
    /// The message with the location under it.
    pub fn render(&self, colour: Colour) -> String {
        let renderer = match colour {
            Colour::Ansi => Renderer::styled(),
            Colour::Plain => Renderer::plain(),
        };
        // Each part may quote a file. The escape sequences of the result are thus the renderer's own.
        let (message, label) = (escape_controls(&self.message), escape_controls(&self.label));
        let title = Level::ERROR.primary_title(message);
        let mut group = match &self.location {
            Some(location) => {
                // The renderer shows pictures of the control characters in a source's line, except of C1. The replacement
                // of those is as long, so that the range holds.
                let text = location.text.replace(|c| ('\u{80}'..='\u{9f}').contains(&c), "\u{b7}");
                let caret = AnnotationKind::Primary.span(location.range.clone()).label(label);
                title.element(Snippet::source(text).path(escape_controls(&location.file)).annotation(caret))
            }
            None => Group::with_title(title),
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(escape_controls(help)));
        }
        renderer.render(&[group]).clone()
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(Colour::Plain))
    }
}

/// Replaces control characters by their pictures, except line ends and tabs: a terminal would execute them, and texts may
/// quote files. Characters without a picture become U+FFFD.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    // Unicode has pictures of the first 32 and of DEL.
    let picture = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(|c| if is_escaped(c) { picture(c) } else { c }).collect())
}

/// A range of bytes in one of the texts read; the location of a default is [`SourceSpan::NOWHERE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceSpan {
    /// Number of the text; none for a value that is not from a text.
    source: Option<u32>,
    start: u32,
    end: u32,
}

impl SourceSpan {
    /// Not in any text.
    pub const NOWHERE: Self = Self { source: None, start: 0, end: 0 };

    pub(crate) fn new(source: impl Into<Option<u32>>, range: std::ops::Range<usize>) -> Self {
        Self { source: source.into(), start: offset(range.start), end: offset(range.end) }
    }

    /// The same, `by` bytes later in the text.
    pub(crate) fn shifted(self, by: usize) -> Self {
        Self { start: self.start.saturating_add(offset(by)), end: self.end.saturating_add(offset(by)), ..self }
    }
}

/// Returns an offset in a text; the end of a text over 4 GiB, which is cut off for display only.
fn offset(byte: usize) -> u32 {
    u32::try_from(byte).unwrap_or(u32::MAX)
}

/// An error without the text of its file, which [`Sources::explain`] adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SpannedError {
    message: String,
    label: String,
    help: Vec<String>,
    origin: SourceSpan,
}

impl SpannedError {
    pub(crate) fn new(origin: SourceSpan, message: impl Into<String>) -> Self {
        Self { message: message.into(), label: String::new(), help: Vec::new(), origin }
    }

    /// Sets the text under the caret.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// A `did you mean`, if one of `names` is near `name`; else all names, if they are few.
    pub(crate) fn suggest<'a>(self, name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        match nearest(name, &names) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None if names.is_empty() => self,
            None if names.len() > 24 => self
                .help(format!("the reference of scenario files lists the {} names that are known here", names.len())),
            None => self.help(format!("known: {}", listed(&names))),
        }
    }

    /// Adds the column of a table to the message.
    #[cfg(feature = "import")]
    pub(crate) fn in_column(mut self, name: &str) -> Self {
        self.message = format!("column `{name}`: {}", self.message);
        self
    }

    /// The same error, `by` bytes later in its text.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        if self.origin != SourceSpan::NOWHERE {
            self.origin = self.origin.shifted(by);
        }
        self
    }

    /// The same error, at `origin` if it had no location of its own.
    pub(crate) fn at_least(mut self, origin: SourceSpan) -> Self {
        if self.origin == SourceSpan::NOWHERE {
            self.origin = origin;
        }
        self
    }
}

/// The name most like `name`, if one is like it at all.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    // Of two equally near names the one that begins with `name`: `scheme` means `schemes`, not `schema`.
    let near =
        names.iter().copied().min_by_key(|other| (distance(other), !other.to_lowercase().starts_with(&lower)))?;
    (distance(near) <= name.chars().count().max(3) / 3).then_some(near)
}

/// Names in backticks, with commas.
pub(crate) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The texts that a scenario was read from.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sources(Vec<SourceText>);

#[derive(Clone, Debug)]
struct SourceText {
    name: String,
    text: Arc<str>,
    /// The kind of file that was expected, if the text is not of that kind.
    is_not: Option<FileKind>,
}

impl Sources {
    /// Adds a text; a text over 4 GiB is cut off for display only.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: &str) -> u32 {
        debug_assert!(self.0.len() < u32::MAX as usize, "texts have numbers of 32 bits");
        self.0.push(SourceText { name: name.into(), text: Arc::from(text), is_not: None });
        index32(self.0.len()) - 1
    }

    /// Adds a file that should be of a kind. If the text is not of that kind, errors show no part of it.
    pub(crate) fn add_file(&mut self, name: impl Into<String>, text: &str, kind: FileKind) -> u32 {
        let source = self.add(name, text);
        self.expect(source, kind);
        source
    }

    /// Expects a kind of a text.
    pub(crate) fn expect(&mut self, source: u32, kind: FileKind) {
        if let Some(source) = self.0.get_mut(source as usize) {
            source.is_not = (!kind.matches(&source.name, &source.text)).then_some(kind);
        }
    }

    /// Explains an error in a string, at `bytes` of its text, or at the whole string if it is written with escapes.
    pub(crate) fn explain_within(&self, mut error: SpannedError, text: &str, bytes: &std::ops::Range<usize>) -> Error {
        let origin = error.origin;
        let source = self.source(origin);
        let written = source.and_then(|source| source.text.get(origin.start as usize..origin.end as usize));
        if let Some(at) = written.and_then(|written| written.find(text)) {
            let location = |byte: usize| origin.start.saturating_add(offset(at + byte));
            error.origin = SourceSpan { start: location(bytes.start), end: location(bytes.end), ..origin };
        }
        self.explain(error)
    }

    fn source(&self, origin: SourceSpan) -> Option<&SourceText> {
        self.0.get(origin.source? as usize)
    }

    pub(crate) fn explain(&self, error: SpannedError) -> Error {
        let SpannedError { message, label, help, origin } = error;
        let source = self.source(origin);
        if let Some(SourceText { name, is_not: Some(kind), .. }) = source {
            let message = format!("`{name}` is not {}", kind.name);
            let help = vec![kind.expected.to_owned()];
            return Error::Invalid(Box::new(Diagnostic { message, label: String::new(), help, location: None }));
        }
        let location = source.map(|SourceText { name, text, .. }| SourceLocation {
            file: name.clone(),
            text: Arc::clone(text),
            range: first_line(text, origin),
        });
        Error::Invalid(Box::new(Diagnostic { message, label, help, location }))
    }
}

/// The first line of the origin's range, on character boundaries and not empty if possible.
fn first_line(text: &str, origin: SourceSpan) -> std::ops::Range<usize> {
    let on_boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (on_boundary(origin.start as usize), on_boundary(origin.end as usize));
    let end = end.max(start);
    let line_end = text[start..end].find(['\n', '\r']).map_or(end, |at| start + at);
    start..line_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_their_line_and_a_caret() {
        let mut sources = Sources::default();
        let source = sources.add("a.toml", "one = 1\ntwo = 3\n");
        let error =
            SpannedError::new(SourceSpan::new(source, 14..15), "not 2").label("here").suggest("tow", ["one", "two"]);
        let error = sources.explain(error);
        let text = error.to_string();
        assert!(text.contains("error: not 2") && text.contains("--> a.toml:2:7"), "{text}");
        assert!(text.contains("two = 3") && text.contains("^ here"), "{text}");
        assert!(text.contains("did you mean `two`?"), "{text}");
        assert!(!text.contains('\u{1b}') && error.render(Colour::Ansi).contains('\u{1b}'));
        let Error::Invalid(diagnostic) = error else { unreachable!() };
        let location = diagnostic.location.unwrap();
        assert_eq!((location.line(), location.column()), (2, 7));
    }

    #[test]
    fn control_characters_are_escaped() {
        let plain = "a\tb\nc, \u{e9}";
        assert!(matches!(escape_controls(plain), Cow::Borrowed(same) if same == plain));
        let escaped = escape_controls("\x1b[1;31mred\x1b[2J\x1b]0;title\x07y\x7f\u{9b}z\r\0");
        assert_eq!(escaped, "\u{241b}[1;31mred\u{241b}[2J\u{241b}]0;title\u{2407}y\u{2421}\u{fffd}z\u{240d}\u{2400}");
    }

    /// No part of an error, whatever a file contains, reaches a terminal as an escape sequence.
    #[test]
    fn quoted_control_characters_are_escaped_in_errors() {
        let hostile = "\x1b[35mx\x1b]0;t\x07\u{9b}35m\x08";
        let location =
            SourceLocation { file: hostile.to_owned(), text: format!("a {hostile} b").into(), range: 2..hostile.len() };
        let [message, label, help] = [(); 3].map(|()| hostile.to_owned());
        let quoting = |location| Diagnostic {
            message: message.clone(),
            label: label.clone(),
            help: vec![help.clone()],
            location,
        };
        let errors = [Some(location), None].map(|location| Error::Invalid(Box::new(quoting(location))));
        for error in errors.into_iter().chain([Error::Unreadable(hostile.to_owned())]) {
            let plain = error.render(Colour::Plain);
            assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "{plain:?}");
            let coloured = error.render(Colour::Ansi);
            assert!(!coloured.contains("\x1b[35m") && !coloured.contains("\x1b]"), "{coloured:?}");
            assert!(coloured.chars().all(|c| matches!(c, '\n' | '\x1b') || !c.is_control()), "{coloured:?}");
        }
    }

    #[test]
    fn far_names_are_not_suggested() {
        assert_eq!(nearest("zzz", &["rate", "delay"]), None);
        assert_eq!(nearest("dleay", &["rate", "delay"]), Some("delay"));
    }
}
