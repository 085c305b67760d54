//! Values laid over a tree: `set` replaces one value by its path (a scale, a cause, an argument, a point of the grid),
//! `merge` merges a whole tree (`extends`). Both drop the keys for the same setting as a new one.

use crate::decode::{foreign, replacements};
use crate::error::{SourceSpan, SpannedError};
use crate::tree::{Entry, Node, Value};

/// Keys of one table for one setting: setting the first removes the others.
const RIVALS: &[(&str, &[&str])] = &[
    ("link_delay", &["intra_rtt"]),
    ("intra_rtt", &["link_delay"]),
    ("inter_delay", &["inter_rtt"]),
    ("inter_rtt", &["inter_delay"]),
    ("edge_rate", &["oversubscription"]),
    ("oversubscription", &["edge_rate"]),
    ("delay", &["rtt"]),
    ("rtt", &["delay"]),
    ("duration", &["flows", "requests"]),
    ("requests", &["duration"]),
    ("flows", &["duration", "file"]),
    ("file", &["flows"]),
    ("size", &["sizes"]),
    ("sizes", &["size"]),
    ("law", &["intra", "inter"]),
    ("intra", &["law"]),
    ("inter", &["law"]),
    ("start", &["after"]),
    ("after", &["start"]),
    ("alpha", &["xoff"]),
    ("xoff", &["alpha"]),
    ("xon_offset", &["xon"]),
    ("xon", &["xon_offset"]),
];

/// A dotted path and its place.
#[derive(Clone, Debug)]
pub(crate) struct KeyPath {
    keys: Vec<(String, SourceSpan)>,
}

impl KeyPath {
    /// Splits at dots; a part in double quotes may hold dots. `traffic[0].size` is `traffic.0.size`.
    pub(crate) fn parse(text: &str, origin: SourceSpan) -> Result<Self, SpannedError> {
        let mut keys = vec![(String::new(), origin)];
        let no_key =
            || SpannedError::new(origin, format!("`{text}` is no key")).label("expected a key such as traffic.0.size");
        let (mut quoted, mut in_index, mut closed) = (false, false, false);
        for c in text.trim().chars() {
            match c {
                '.' | '[' if !quoted && !in_index => {
                    (in_index, closed) = (c == '[', false);
                    keys.push((String::new(), origin));
                }
                // An index ends its part.
                _ if closed => return Err(no_key()),
                ']' if in_index => (in_index, closed) = (false, true),
                '"' if !in_index => quoted = !quoted,
                c => {
                    if let Some((key, _)) = keys.last_mut() {
                        key.push(c);
                    }
                }
            }
        }
        if quoted || in_index || keys.iter().any(|(key, _)| key.is_empty()) {
            return Err(no_key());
        }
        Ok(Self { keys })
    }

    /// All keys with dots.
    pub(crate) fn full(&self) -> String {
        self.keys.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(".")
    }

    /// A key of `[grid]`.
    pub(crate) fn of_grid(key: &str, origin: SourceSpan) -> Self {
        Self { keys: vec![("grid".into(), origin), (key.to_owned(), origin)] }
    }

    /// Refuses a key alone that is none of `keys`, where tables below have it: `load` for `traffic.0.load`.
    pub(crate) fn known(&self, root: &Node, keys: &[&str]) -> Result<(), SpannedError> {
        let [(key, origin)] = &self.keys[..] else { return Ok(()) };
        if keys.contains(&key.as_str()) {
            return Ok(());
        }
        let mut paths = Vec::new();
        find(root, key, "", &mut paths);
        let is_former = paths.is_empty();
        if is_former {
            for new in replacements(key) {
                find(root, new, "", &mut paths);
            }
        }
        if paths.is_empty() {
            let unknown =
                |help| SpannedError::new(*origin, format!("unknown key `{key}`")).label("unknown key").help(help);
            return foreign(key, keys).map_or(Ok(()), |help| Err(unknown(help)));
        }
        let paths: Vec<String> = paths.iter().take(3).map(|path| format!("`{path}`")).collect();
        let paths = paths.join(" or ");
        let help = if is_former { format!("renamed to {paths}") } else { format!("did you mean {paths}?") };
        Err(SpannedError::new(*origin, format!("unknown key `{key}`")).label("unknown key").help(help))
    }

    /// All keys but the last.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().take(self.keys.len().saturating_sub(1)).map(|(key, _)| key.as_str())
    }

    /// The last key.
    pub(crate) fn last(&self) -> &str {
        self.keys.last().map_or("", |(key, _)| key)
    }
}

/// Removes the other keys for the setting of a key that is set now.
fn drop_rivals(entries: &mut Vec<Entry>, key: &str) {
    let rivals = RIVALS.iter().find(|(first, _)| *first == key).map_or(&[][..], |(_, rivals)| rivals);
    entries.retain(|entry| !rivals.contains(&entry.key.as_str()));
}

/// Finds the paths of a key in the tables below a node. `at` is the path of the node.
fn find(node: &Node, key: &str, at: &str, paths: &mut Vec<String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                let path = below(&entry.key);
                if entry.key == key {
                    paths.push(path.clone());
                }
                find(&entry.node, key, &path, paths);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                find(item, key, &below(&number.to_string()), paths);
            }
        }
        _ => {}
    }
}

/// Replaces the value of a key. Missing parent tables are created.
pub(crate) fn set(root: &mut Node, path: &KeyPath, value: &Node) -> Result<(), SpannedError> {
    let Some(((last, last_origin), parents)) = path.keys.split_last() else { return Ok(()) };
    let mut at = root;
    for (key, origin) in parents {
        at = child(at, key, *origin)?;
    }
    if !matches!(at.value, Value::Table(_) | Value::Array(_)) {
        return Err(not_a_table(at, last, *last_origin));
    }
    if let Value::Table(entries) = &mut at.value {
        drop_rivals(entries, last);
    }
    *child(at, last, *last_origin)? = value.clone();
    Ok(())
}

/// Merges a value into another: tables key by key. Everything else is replaced, and so is a table of another `kind`.
pub(crate) fn merge(under: &mut Node, over: Node) {
    let other_kind = |under: &Node| over.get("kind").is_some_and(|kind| under.get("kind") != Some(kind));
    if other_kind(under) || !matches!((&under.value, &over.value), (Value::Table(_), Value::Table(_))) {
        *under = over;
        return;
    }
    let Value::Table(entries) = over.value else { return };
    for Entry { key, key_origin, node } in entries {
        let Value::Table(entries) = &mut under.value else { return };
        drop_rivals(entries, &key);
        match entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => {
                entry.key_origin = key_origin;
                merge(&mut entry.node, node);
            }
            None => entries.push(Entry { key, key_origin, node }),
        }
    }
}

/// The value of a key or index; a key that is not there becomes an empty table.
fn child<'a>(node: &'a mut Node, key: &str, origin: SourceSpan) -> Result<&'a mut Node, SpannedError> {
    if !matches!(node.value, Value::Table(_) | Value::Array(_)) {
        return Err(not_a_table(node, key, origin));
    }
    match &mut node.value {
        Value::Array(items) => {
            let len = items.len();
            // Written in one way only: `0`, and not `00` or `+0`.
            let number = key.parse::<usize>().ok().filter(|index| index.to_string() == key);
            let item = number.and_then(|index| items.get_mut(index));
            item.ok_or_else(|| {
                let error = SpannedError::new(origin, format!("there is no entry `{key}` in an array of {len}"));
                let is_name = key.starts_with(|first: char| first.is_ascii_alphabetic());
                let example = if is_name { format!(", as in 0.{key}") } else { String::new() };
                let range = |last| format!("expected 0 to {last}{example}");
                error.label(len.checked_sub(1).map_or_else(|| "the array is empty".into(), range))
            })
        }
        Value::Table(entries) => {
            let index = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
                let node = Node { value: Value::Table(Vec::new()), origin };
                entries.push(Entry { key: key.to_owned(), key_origin: origin, node });
                entries.len() - 1
            });
            Ok(&mut entries[index].node)
        }
        _ => Err(SpannedError::new(origin, "not a table")),
    }
}

fn not_a_table(node: &Node, key: &str, origin: SourceSpan) -> SpannedError {
    SpannedError::new(origin, format!("`{key}` cannot be set inside {}", node.described()))
        .label("its parent is no table")
}
