//! Keys that a run sets, under one name each wherever the file sets them, and runs without some of them.

use crate::config::{Config, OffOr, Port};
use crate::decode::{ChangedKey, Changes, Field, Located};
use crate::error::{SourceSpan, Sources, SpannedError};
use crate::tree::{Node, Value};

/// Tables that choose or judge runs. None of their keys is one of a run.
pub(crate) const NO_RUN: [&str; 10] =
    ["schema", "grid", "points", "random_points", "variants", "scale", "paper", "claim", "cause", "table"];

/// Tables of `[port]` and `[switch]` for some places.
const PORT_TABLES: [&str; 7] = ["host", "edge", "core", "border", "inter", "other", "aggregation"];

/// The name of a key whatever scheme, place or array entry sets it: `host.jitter` for `schemes.uno.host.jitter`,
/// `port.trim` for `port.inter.trim`, `traffic.traffic_class` for `traffic.0.traffic_class`.
pub(crate) fn name_of(path: &[String]) -> String {
    let below_scheme = path.len() > 2 && path[0] == "schemes";
    let path = if below_scheme { &path[2..] } else { path };
    let has_port_table = path.len() > 2 && ["port", "switch"].contains(&&*path[0]) && PORT_TABLES.contains(&&*path[1]);
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_left_out = |at: usize, part: &str| is_number(part) || has_port_table && at == 1;
    let parts = path.iter().enumerate().filter(|(at, part)| !is_left_out(*at, part));
    let parts: Vec<&str> = parts.map(|(_, part)| part.as_str()).collect();
    parts.join(".")
}

/// The keys with other values than their defaults in the runs of a scheme: its own, and those of the file that it leaves.
pub(crate) fn set_keys(config: &Config, scheme: &str) -> Vec<ChangedKey> {
    let mut config = config.clone();
    config.schemes.value.0.retain(|(name, _)| name.value == scheme);
    for (_, scheme) in &mut config.schemes.value.0 {
        config.host = config.host.with(scheme.host.take().as_ref());
        if matches!(scheme.switch, Some(OffOr::Off)) {
            config.switch = None;
            scheme.switch = None;
        }
    }
    config.port.unshare();
    let defaults = Port::decode(&Node::empty_table()).map_or(Value::Absent, |port| port.encode());
    let defaults = Node::generated(defaults);
    // A table over `[port]` has no defaults of its own, and may set a key back to that of `[port]`.
    let is_default = |key: &ChangedKey| {
        let last = key.path.last().map_or("", String::as_str);
        ["PortOverrides", "PortClassOverrides"].contains(&key.table)
            && defaults.get(last).is_some_and(|default| default.value == key.value)
    };
    let mut keys = Changes::of(&config);
    keys.retain(|key| !NO_RUN.contains(&&*key.path[0]) && !is_default(key));
    keys
}

/// The place of a key in a file, for errors: where the scheme sets it, or else the file.
pub(crate) fn key_span(root: &Node, scheme: &str, path: &[String]) -> SourceSpan {
    let own: Vec<String> = ["schemes", scheme].into_iter().map(str::to_owned).chain(path.iter().cloned()).collect();
    [&own[..], path].into_iter().find_map(|path| find(root, path)).unwrap_or(SourceSpan::NOWHERE)
}

fn find(root: &Node, path: &[String]) -> Option<SourceSpan> {
    let mut at = root;
    let mut span = None;
    for part in path {
        at = match &at.value {
            Value::Table(entries) => {
                let entry = entries.iter().find(|entry| entry.key == *part)?;
                span = Some(entry.key_origin);
                &entry.node
            }
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    span
}

/// Keys that runs do without, as they are named on a command line.
#[derive(Default, Debug)]
pub(crate) struct Without(Vec<Located<String>>);

/// The keys that a scheme set and does without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    pub(crate) scheme: String,
    pub(crate) keys: Vec<String>,
}

impl Without {
    pub(crate) fn new(keys: &[String], sources: &mut Sources) -> Self {
        let argument = |key: &String| {
            let source = sources.add("--without", key);
            Located { value: key.clone(), origin: SourceSpan::new(source, 0..key.len()) }
        };
        Self(keys.iter().map(argument).collect())
    }

    /// Removes the keys from a file, from all schemes and places. Returns the keys that each scheme lost.
    pub(crate) fn take_from(&self, root: &mut Node) -> Result<Vec<Lost>, SpannedError> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let before = Config::decode(root)?;
        take(root, &mut Vec::new(), &|name| self.0.iter().any(|key| key.value == name));
        let lost = |scheme: &str| {
            let set: Vec<String> = set_keys(&before, scheme).iter().map(|key| name_of(&key.path)).collect();
            let keys = self.0.iter().map(|key| key.value.clone()).filter(|key| set.contains(key)).collect();
            Lost { scheme: scheme.to_owned(), keys }
        };
        Ok(before.schemes.iter().map(|(name, _)| lost(name)).collect())
    }

    /// Refuses a key that no scheme sets. `root` is the file with all its keys.
    pub(crate) fn check<'a>(&self, root: &Node, lost: impl Iterator<Item = &'a Lost>) -> Result<(), SpannedError> {
        let lost: Vec<&String> = lost.flat_map(|lost| &lost.keys).collect();
        let is_lost = |key: &Located<String>| lost.contains(&&key.value);
        let Some(key) = self.0.iter().find(|key| !is_lost(key)) else { return Ok(()) };
        let config = Config::decode(root)?;
        let keys = config.schemes.iter().flat_map(|(name, _)| set_keys(&config, name));
        let mut names: Vec<String> = keys.map(|key| name_of(&key.path)).collect();
        names.sort_unstable();
        names.dedup();
        Err(SpannedError::new(key.origin, format!("no scheme sets `{}` to another value than its default", key.value))
            .label("expected a key that is set, such as host.jitter")
            .suggest(key, names.iter().map(String::as_str)))
    }
}

fn take(node: &mut Node, path: &mut Vec<String>, is_taken: &dyn Fn(&str) -> bool) {
    match &mut node.value {
        Value::Table(entries) => {
            let is_root = path.is_empty();
            entries.retain_mut(|entry| {
                path.push(entry.key.clone());
                let stays = (is_root && NO_RUN.contains(&&*entry.key)) || !is_taken(&name_of(path));
                if stays && !(is_root && NO_RUN.contains(&&*entry.key)) {
                    take(&mut entry.node, path, is_taken);
                }
                path.pop();
                stays
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push(index.to_string());
                take(item, path, is_taken);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_name_is_independent_of_its_table() {
        for (path, name) in [
            ("host.jitter", "host.jitter"),
            ("schemes.uno.host.jitter", "host.jitter"),
            ("schemes.uno.port.inter.trim", "port.trim"),
            ("port.host.trim", "port.trim"),
            ("port.host", "port.host"),
            ("schemes.uno.lscc", "lscc"),
            ("traffic.0.traffic_class", "traffic.traffic_class"),
            ("schemes.0.params.cubic.beta", "params.cubic.beta"),
        ] {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(name_of(&path), name);
        }
    }
}
