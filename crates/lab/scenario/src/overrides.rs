//! `--set a.b=value`, `--over a.b=1,2`, `[scale.*]` and `[grid]`: values laid over a file before it is read, so that the same reader
//! checks them and errors point at what set them.

use crate::error::{Fault, Origin, Sources};
use crate::tree::{Entry, Node, Value, parse_argument};

/// Stands for a file's name in errors of [`Overrides::set`].
pub const SET: &str = "--set";

/// What replaces values of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Overrides {
    /// Keys with dots and array indices (`traffic.0.size` or `traffic[0].size`), and their values as in TOML; what is no
    /// TOML value is a string.
    pub set: Vec<(String, String)>,
    /// Keys that take several values in turn, in place of what `[grid]` has for them; the values are an array in TOML.
    pub over: Vec<(String, String)>,
    /// Replaces `seed`.
    pub seed: Option<u64>,
    /// Chooses a `[scale.*]`.
    pub scale: Option<String>,
    /// Chooses a `[[cause]]`, whose change is laid over the file and its scale.
    pub cause: Option<String>,
    /// Keys that runs do without, such as `host.jitter`: taken out of the file and of all schemes.
    pub without: Vec<String>,
}

/// Keys of one table that say the same thing: setting the first takes the others away.
const RIVALS: &[(&str, &[&str])] = &[
    ("link_delay", &["intra_rtt"]),
    ("intra_rtt", &["link_delay"]),
    ("inter_delay", &["inter_rtt"]),
    ("inter_rtt", &["inter_delay"]),
    ("edge_rate", &["oversubscription"]),
    ("oversubscription", &["edge_rate"]),
    ("delay", &["rtt"]),
    ("rtt", &["delay"]),
    ("window", &["flows", "requests"]),
    ("requests", &["window"]),
    ("flows", &["window", "file"]),
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
    ("hysteresis", &["xon"]),
    ("xon", &["hysteresis"]),
];

/// A dotted path and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    keys: Vec<(String, Origin)>,
}

impl Path {
    /// Splits at dots; a part in double quotes may hold dots. `traffic[0].size` is `traffic.0.size`.
    pub(crate) fn parse(text: &str, origin: Origin) -> Result<Self, Fault> {
        let mut keys = vec![(String::new(), origin)];
        let no_key =
            || Fault::new(origin, format!("`{text}` is no key")).label("expected a key such as traffic.0.size");
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

    /// Refuses a key alone that is none of `keys`, where tables below have it: `load` for `traffic.0.load`.
    fn known(&self, root: &Node, keys: &[&str]) -> Result<(), Fault> {
        let [(key, origin)] = &self.keys[..] else { return Ok(()) };
        if keys.contains(&key.as_str()) {
            return Ok(());
        }
        let mut places = Vec::new();
        find(root, key, "", &mut places);
        if places.is_empty() {
            return Ok(());
        }
        let places: Vec<String> = places.iter().take(3).map(|place| format!("`{place}`")).collect();
        Err(Fault::new(*origin, format!("unknown key `{key}`"))
            .label("unknown key")
            .help(format!("did you mean {}?", places.join(" or "))))
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

/// Takes away what says the same as a key that is set now.
pub(crate) fn drop_rivals(entries: &mut Vec<Entry>, key: &str) {
    let rivals = RIVALS.iter().find(|(first, _)| *first == key).map_or(&[][..], |(_, rivals)| rivals);
    entries.retain(|entry| !rivals.contains(&entry.key.as_str()));
}

/// Where tables below a node have a key, `at` being the node's own place.
fn find(node: &Node, key: &str, at: &str, places: &mut Vec<String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                let place = below(&entry.key);
                if entry.key == key {
                    places.push(place.clone());
                }
                find(&entry.node, key, &place, places);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                find(item, key, &below(&number.to_string()), places);
            }
        }
        _ => {}
    }
}

/// Lays one value over a file.
pub(crate) fn set(root: &mut Node, path: &Path, value: &Node) -> Result<(), Fault> {
    let Some(((last, last_origin), parents)) = path.keys.split_last() else { return Ok(()) };
    let mut at = root;
    for (key, origin) in parents {
        at = child(at, key, *origin)?;
    }
    match &mut at.value {
        Value::Table(entries) => {
            drop_rivals(entries, last);
            match entries.iter_mut().find(|entry| entry.key == *last) {
                Some(entry) => entry.node = value.clone(),
                None => entries.push(Entry { key: last.clone(), key_origin: *last_origin, node: value.clone() }),
            }
        }
        Value::Array(_) => *child(at, last, *last_origin)? = value.clone(),
        _ => return Err(not_a_table(at, last, *last_origin)),
    }
    Ok(())
}

/// The value of a key or index; a key that is not there becomes an empty table.
fn child<'a>(node: &'a mut Node, key: &str, origin: Origin) -> Result<&'a mut Node, Fault> {
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
                let fault = Fault::new(origin, format!("there is no entry `{key}` in an array of {len}"));
                let is_name = key.starts_with(|first: char| first.is_ascii_alphabetic());
                let example = if is_name { format!(", as in 0.{key}") } else { String::new() };
                let range = |last| format!("expected 0 to {last}{example}");
                fault.label(len.checked_sub(1).map_or_else(|| "the array is empty".into(), range))
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
        _ => Err(Fault::new(origin, "not a table")),
    }
}

fn not_a_table(node: &Node, key: &str, origin: Origin) -> Fault {
    Fault::new(origin, format!("`{key}` cannot be set inside {}", node.described())).label("its parent is no table")
}

/// A key and its value of an argument, which stands in `source`.
fn argument((key, text): (&str, &str), source: u32) -> Result<(Path, Node), Fault> {
    let path = Path::parse(key, Origin::new(source, 0..key.len()))?;
    let value_at = key.len() + 1;
    let value = parse_argument(text, source).map_err(|fault| fault.shifted(value_at))?;
    Ok((path, shifted(value, value_at)))
}

/// Lays the arguments over a file, whose own keys are `keys`.
pub(crate) fn apply_arguments(
    root: &mut Node,
    overrides: &Overrides,
    keys: &[&str],
    sources: &mut Sources,
) -> Result<(), Fault> {
    for (key, text) in &overrides.set {
        let source = sources.add(SET, &format!("{key}={text}"));
        let (path, value) = argument((key, text), source)?;
        path.known(root, keys)?;
        set(root, &path, &value)?;
    }
    for (key, values) in &overrides.over {
        let source = sources.add("--over", &format!("{key}={values}"));
        let (path, values) = argument((key, values), source)?;
        path.known(root, keys)?;
        let origin = Origin::new(source, 0..key.len());
        set(root, &Path { keys: vec![("grid".into(), origin), (key.clone(), origin)] }, &values)?;
    }
    if let Some(seed) = overrides.seed {
        let source = sources.add("--seed", &seed.to_string());
        let origin = Origin::new(source, 0..seed.to_string().len());
        let seed = i64::try_from(seed).map_err(|_| {
            Fault::new(origin, "a seed has at most 63 bits").label("expected at most 9223372036854775807")
        })?;
        set(root, &Path::parse("seed", origin)?, &Node { value: Value::Integer(seed), origin })?;
    }
    Ok(())
}

/// A value parsed from the middle of a text, its places moved there.
pub(crate) fn shifted(mut node: Node, by: usize) -> Node {
    node.origin = node.origin.shifted(by);
    match &mut node.value {
        Value::Array(items) => {
            for item in items {
                *item = shifted(std::mem::replace(item, Node::empty_table()), by);
            }
        }
        Value::Table(entries) => {
            for entry in entries {
                entry.key_origin = entry.key_origin.shifted(by);
                entry.node = shifted(std::mem::replace(&mut entry.node, Node::empty_table()), by);
            }
        }
        _ => {}
    }
    node
}
