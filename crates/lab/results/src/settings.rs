//! Differences between the settings of two runs, as their manifests have them.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A setting in which two runs differ.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Differing {
    /// Its key, with dots: `traffic.0.size`.
    pub key: String,
    /// Its value in the first run, in a word; `none` where it has none.
    pub before: String,
    /// Its value in the second run.
    pub after: String,
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.key, self.before, self.after)
    }
}

/// Returns the settings in which two runs differ, in the order of their keys. Titles and descriptions change no number and are
/// left out.
pub fn differing(before: &Value, after: &Value) -> Vec<Differing> {
    let mut found = Vec::new();
    compare(String::new(), before, after, &mut found);
    found.retain(|it| it.key != "title" && it.key != "description");
    found
}

/// Returns the settings in which two runs differ below one key.
pub fn differing_below(key: &str, before: &Value, after: &Value) -> Vec<Differing> {
    let mut found = Vec::new();
    compare(key.to_owned(), &before[key], &after[key], &mut found);
    found
}

fn compare(key: String, before: &Value, after: &Value, found: &mut Vec<Differing>) {
    let inside = |part: &str| if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
    match (before, after) {
        (Value::Object(left), Value::Object(right)) => {
            let parts: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for part in parts {
                compare(inside(part), &before[part.as_str()], &after[part.as_str()], found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                compare(inside(&index.to_string()), one, other, found);
            }
        }
        _ if before == after => {}
        _ => found.push(Differing { key, before: short(before), after: short(after) }),
    }
}

/// A value in a word.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "a table".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn leaves_are_compared_and_prose_is_not() {
        let before =
            json!({ "title": "T", "stop": "5ms", "traffic": [{ "size": 1 }], "port": { "ecn": null }, "list": [1] });
        let after =
            json!({ "title": "U", "stop": "5ms", "traffic": [{ "size": 2 }], "port": { "ecn": {} }, "list": [1, 2] });
        let lines: Vec<String> = differing(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["list: a list of 1 -> a list of 2", "port.ecn: none -> a table", "traffic.0.size: 1 -> 2"]);
        assert_eq!(differing_below("traffic", &before, &after).len(), 1);
        assert!(differing(&before, &before).is_empty());
    }
}
