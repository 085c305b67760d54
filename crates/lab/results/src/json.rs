//! The form of JSON files.

use serde::Serialize;

/// Indented, with a final newline. The types here hold nothing that JSON cannot.
pub(crate) fn text(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
