//! Writes a value as TOML that a person would write: short values first, one header a table.

use std::fmt::Write;

use crate::tree::{Entry, Node, Value};

/// Returns the text of the scenario file for a JSON object, as [`crate::as_written`] returns one. Keys with the value null
/// are left out.
pub fn toml_of(root: &serde_json::Value) -> String {
    to_toml(&from_json(root))
}

fn from_json(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Absent,
        Json::Bool(switch) => Value::Boolean(*switch),
        Json::Number(number) => number.as_i64().map_or_else(|| Value::Float(number.to_string()), Value::Integer),
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::Array(items.iter().map(|item| Node::generated(from_json(item))).collect()),
        Json::Object(entries) => Value::table(entries.iter().map(|(key, value)| (key.as_str(), from_json(value)))),
    }
}

/// The text of a file.
pub(crate) fn to_toml(root: &Value) -> String {
    let mut out = String::new();
    if let Value::Table(entries) = root {
        table(&mut out, &[], entries);
    }
    out.trim_start().to_owned()
}

/// Values of a table, then its tables under their own headers.
fn table(out: &mut String, path: &[&str], entries: &[Entry]) {
    for entry in entries.iter().filter(|entry| !has_header(path, &entry.node)) {
        let _ = writeln!(out, "{} = {}", quoted_key(&entry.key), inline(&entry.node.value));
    }
    for entry in entries.iter().filter(|entry| has_header(path, &entry.node)) {
        let mut path = path.to_vec();
        path.push(&entry.key);
        let name = path.iter().map(|key| quoted_key(key)).collect::<Vec<_>>().join(".");
        match &entry.node.value {
            Value::Table(inner) => {
                // A table of tables only needs no header of its own, unless it is empty.
                if inner.is_empty() || inner.iter().any(|entry| !has_header(&path, &entry.node)) {
                    let _ = writeln!(out, "\n[{name}]");
                }
                table(out, &path, inner);
            }
            Value::Array(nodes) => {
                for node in nodes {
                    let _ = writeln!(out, "\n[[{name}]]");
                    table(out, &path, node.entries().unwrap_or_default());
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a value gets a header: tables down to the third level and arrays of tables at the first.
fn has_header(path: &[&str], node: &Node) -> bool {
    match &node.value {
        Value::Table(_) => path.is_empty() || (path.len() == 1 && path[0] != "traffic"),
        Value::Array(nodes) => {
            path.is_empty() && !nodes.is_empty() && nodes.iter().all(|node| node.entries().is_some())
        }
        _ => false,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Absent => "\"\"".into(),
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(text) | Value::Datetime(text) => text.clone(),
        Value::Boolean(switch) => switch.to_string(),
        Value::Array(nodes) => {
            let items: Vec<String> = nodes.iter().map(|node| inline(&node.value)).collect();
            let length: usize = items.iter().map(String::len).sum();
            if length > 96 { format!("[\n  {},\n]", items.join(",\n  ")) } else { format!("[{}]", items.join(", ")) }
        }
        Value::Table(entries) if entries.is_empty() => "{}".into(),
        Value::Table(entries) => {
            let item = |entry: &Entry| format!("{} = {}", quoted_key(&entry.key), inline(&entry.node.value));
            format!("{{ {} }}", entries.iter().map(item).collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    #[test]
    fn written_lists_read_back() {
        let text = "a = \"q\\\"\\t\"\nb = [1, 2]\n[t]\nx = 1.5\n[t.u]\ny = true\nz = { k = [{ a = 1 }] }\n\
                    [[r]]\nm = {}\n[[r]]\n[\"odd key\"]\n";
        let node = parse(text, 0).unwrap();
        let written = to_toml(&node.value);
        assert_eq!(parse(&written, 0).unwrap(), node, "{written}");
    }

    #[test]
    fn json_becomes_the_same_file() {
        let text = "name = \"x\"\nseed = 3\nb = [0.5, \"20%\", true]\n\n[topology]\nkind = \"dumbbell\"\n";
        let json = crate::as_written(text, "x.toml").unwrap();
        assert_eq!(toml_of(&json), text);
        let with_null = serde_json::json!({ "seed": null, "name": "y" });
        assert_eq!(toml_of(&with_null), "name = \"y\"\n");
        let error = crate::as_written("name = \n", "x.toml").unwrap_err();
        assert!(error.to_string().contains("x.toml:1:8"), "{error}");
    }
}
