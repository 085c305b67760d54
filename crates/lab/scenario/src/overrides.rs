//! `--set a.b=value`, `--vary a.b=1,2`, `--seed`, and the choice of a scale and a cause: values that replace those of a
//! file before it is decoded, so that the same code checks them and errors point at the option that set them.

use crate::error::{SourceSpan, Sources, SpannedError};
use crate::overlay::{KeyPath, set};
use crate::tree::{Node, Value, parse_argument};

/// Name in place of a file's in errors of [`Overrides::set`].
pub const SET: &str = "--set";

/// Values that replace those of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Overrides {
    /// Keys with dots and array indices (`traffic.0.size` or `traffic[0].size`), and their values as in TOML; a value that
    /// is not valid TOML is a string.
    pub set: Vec<(String, String)>,
    /// Keys that take several values in turn, in place of their values in `[grid]`; the values are an array in TOML.
    pub over: Vec<(String, String)>,
    /// Replaces `seed`.
    pub seed: Option<u64>,
    /// Chooses a `[scale.*]`.
    pub scale: Option<String>,
    /// Chooses a `[[cause]]`; its change is applied to the file and its scale.
    pub cause: Option<String>,
    /// Keys that runs do without, such as `host.jitter`: taken out of the file and of all schemes.
    pub without: Vec<String>,
}

/// Parses the key and value of an argument. The argument's text is `source`.
fn argument(key: &str, text: &str, source: u32) -> Result<(KeyPath, Node), SpannedError> {
    let path = KeyPath::parse(key, SourceSpan::new(source, 0..key.len()))?;
    let value_at = key.len() + 1;
    let value = parse_argument(text, source).map_err(|error| error.shifted(value_at))?;
    Ok((path, shifted(value, value_at)))
}

/// Applies the arguments to a file with the keys `keys`.
pub(crate) fn apply_arguments(
    root: &mut Node,
    overrides: &Overrides,
    keys: &[&str],
    sources: &mut Sources,
) -> Result<(), SpannedError> {
    for (key, text) in &overrides.set {
        let source = sources.add(SET, &format!("{key}={text}"));
        let (path, value) = argument(key, text, source)?;
        path.known(root, keys)?;
        set(root, &path, &value)?;
    }
    for (key, values) in &overrides.over {
        let source = sources.add("--vary", &format!("{key}={values}"));
        let (path, values) = argument(key, values, source)?;
        path.known(root, keys)?;
        let origin = SourceSpan::new(source, 0..key.len());
        set(root, &KeyPath::of_grid(key, origin), &values)?;
    }
    if let Some(seed) = overrides.seed {
        let source = sources.add("--seed", &seed.to_string());
        let origin = SourceSpan::new(source, 0..seed.to_string().len());
        let seed = i64::try_from(seed).map_err(|_| {
            SpannedError::new(origin, "a seed has at most 63 bits").label("expected at most 9223372036854775807")
        })?;
        set(root, &KeyPath::parse("seed", origin)?, &Node { value: Value::Integer(seed), origin })?;
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
