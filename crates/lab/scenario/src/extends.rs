//! `extends`: a scenario that is another one with changes.
//!
//! Tables are merged key by key. Any other value replaces the inherited one, and so does a table of another `kind`. Keys in
//! `without` are removed first.

use std::path::{Component, Path as FilePath};

use crate::decode::{Field, Located};
use crate::error::{Sources, SpannedError};
use crate::inputs::SCENARIO;
use crate::kind::FileKind;
use crate::overlay::{KeyPath, merge};
use crate::tree::{Node, Value, parse};

/// A file may extend one that extends another, so often.
const MAX: usize = 8;

/// A file that extends another, and the keys that it removes from the chain that it extends.
struct Layer {
    over: Node,
    extends: String,
    without: Vec<Located<String>>,
}

/// Merges a file with the files that it extends, from `directory`; returns the file itself if it extends none.
pub(crate) fn merge_extends(
    root: Node,
    directory: &FilePath,
    kind: FileKind,
    sources: &mut Sources,
) -> Result<Node, SpannedError> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut merged = root;
    loop {
        let name = take_key::<Located<String>>(&mut merged, "extends")?;
        let without = take_key::<Vec<Located<String>>>(&mut merged, "without")?;
        let Some(name) = name else {
            if let Some(first) = without.iter().flatten().next() {
                return Err(SpannedError::new(first.origin, "`without` takes away what an extended file has")
                    .label("needs `extends`"));
            }
            break;
        };
        let plain = FilePath::new(&name.value).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || FilePath::new(&name.value).components().count() != 1 {
            return Err(SpannedError::new(
                name.origin,
                format!("`extends` names a file in the same directory, not `{}`", name.value),
            )
            .label("expected a name such as \"base.toml\""));
        }
        if layers.iter().any(|layer| layer.extends == name.value) || layers.len() == MAX {
            let error =
                SpannedError::new(name.origin, format!("`{}` is extended through {} others", name.value, layers.len()));
            return Err(error.label(format!("expected a chain of at most {MAX} files, and no cycle")));
        }
        if merged.get("name").is_none() {
            return Err(SpannedError::new(name.origin, "a scenario that extends another has a name of its own")
                .label("needs `name` too"));
        }
        let path = directory.join(&name.value);
        let text = files::text(&path, SCENARIO)
            .map_err(|error| SpannedError::new(name.origin, error.to_string()).label("this file"))?;
        let source = sources.add_file(path.display().to_string(), &text, kind);
        let over = std::mem::replace(&mut merged, parse(&text, source)?);
        layers.push(Layer { over, extends: name.value, without: without.unwrap_or_default() });
    }
    while let Some(Layer { over, extends, without }) = layers.pop() {
        for key in &without {
            remove_key(&mut merged, key, &extends)?;
        }
        merge(&mut merged, over);
    }
    Ok(merged)
}

/// The value of a key, which is no longer there.
fn take_key<T: Field>(root: &mut Node, key: &str) -> Result<Option<T>, SpannedError> {
    let Value::Table(entries) = &mut root.value else { return Ok(None) };
    let Some(at) = entries.iter().position(|entry| entry.key == key) else { return Ok(None) };
    T::decode(&entries.remove(at).node).map(Some)
}

/// Removes a key of a file and of the files that it extends.
fn remove_key(root: &mut Node, key: &Located<String>, file: &str) -> Result<(), SpannedError> {
    let path = KeyPath::parse(key, key.origin)?;
    let missing = || {
        SpannedError::new(key.origin, format!("`{}` is not in `{file}`, nor in what that extends", key.value))
            .label("expected a key of tables in it")
    };
    let mut at = root;
    for parent in path.parents() {
        let Value::Table(entries) = &mut at.value else { return Err(missing()) };
        at = &mut entries.iter_mut().find(|entry| entry.key == parent).ok_or_else(missing)?.node;
    }
    let Value::Table(entries) = &mut at.value else { return Err(missing()) };
    let index = entries.iter().position(|entry| entry.key == path.last()).ok_or_else(missing)?;
    entries.remove(index);
    Ok(())
}
