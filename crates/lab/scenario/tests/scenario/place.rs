//! Assertions on an error's place and on the values it names, not on its sentences.

use scenario::{Diagnostic, Error};

/// `FILE:LINE:COLUMN` of an error, with the last part of the file's path; `nowhere` without a place.
pub(crate) fn place(error: &Error) -> String {
    let Error::Invalid(diagnostic) = error else { return "nowhere".to_owned() };
    diagnostic.place.as_ref().map_or_else(
        || "nowhere".to_owned(),
        |place| {
            let file = place.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}:{}", place.line(), place.column())
        },
    )
}

/// Message, label and help of an error, without the excerpt of the file.
pub(crate) fn words(error: &Error) -> String {
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
    assert_eq!(place(error), expected, "{error}");
    let words = words(error);
    for name in names {
        assert!(words.contains(name), "no `{name}` in\n{error}");
    }
    assert!(!error.to_string().contains('\u{1b}'));
}
