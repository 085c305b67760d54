//! Assertions on an error's place and on the values it names, not on its sentences.

use scenario::{Diagnostic, Error};

/// `FILE:LINE:COLUMN` of an error, with the last part of the file's path; `nowhere` without a place.
pub(crate) fn location(error: &Error) -> String {
    let Error::Invalid(diagnostic) = error else { return "nowhere".to_owned() };
    diagnostic.location.as_ref().map_or_else(
        || "nowhere".to_owned(),
        |location| {
            let file = location.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}:{}", location.line(), location.column())
        },
    )
}

/// Message, label and help of an error, without the excerpt of the file.
pub(crate) fn quoted_text(error: &Error) -> String {
    match error {
        Error::Invalid(diagnostic) => {
            let Diagnostic { message, label, help, .. } = &**diagnostic;
            [message, label].into_iter().chain(help).map(String::as_str).collect::<Vec<_>>().join("\n")
        }
        Error::Unreadable(text) => text.clone(),
    }
}

/// Asserts where an error is, and that it names all of `names`: keys, values and limits.
#[track_caller]
pub(crate) fn points_at(error: &Error, expected: &str, names: &[&str]) {
    assert_eq!(location(error), expected, "{error}");
    let text = quoted_text(error);
    for name in names {
        assert!(text.contains(name), "no `{name}` in\n{error}");
    }
    assert!(!error.to_string().contains('\u{1b}'));
}
