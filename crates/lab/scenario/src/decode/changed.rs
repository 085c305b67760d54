//! Keys of a scenario that have other values than their defaults.

use super::Field;
use crate::tree::Value;

/// A key with another value than its default. A key without a default is one whatever its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ChangedKey {
    /// The type of its table.
    pub(crate) table: &'static str,
    /// Its place in the file: keys, names and array indices.
    pub(crate) path: Vec<String>,
    /// Its value, defaults filled in.
    pub(crate) value: Value,
}

/// Collects changed keys, each before those inside its value.
#[derive(Default, Debug)]
pub(crate) struct Changes {
    path: Vec<String>,
    found: Vec<ChangedKey>,
}

impl Changes {
    /// The changed keys of a value and of all tables in it.
    pub(crate) fn of(value: &impl Field) -> Vec<ChangedKey> {
        let mut changes = Self::default();
        value.changed(&mut changes);
        changes.found
    }

    /// Looks at a key of a table.
    pub(crate) fn key(&mut self, table: &'static str, key: &str, value: &impl Field, default: Option<&Value>) {
        let encoded = value.encode();
        if default == Some(&encoded) {
            return;
        }
        self.within(key, |changes| {
            changes.found.push(ChangedKey { table, path: changes.path.clone(), value: encoded });
            value.changed(changes);
        });
    }

    /// Runs `look` inside a name or an array index.
    pub(crate) fn within(&mut self, part: &str, look: impl FnOnce(&mut Self)) {
        self.path.push(part.to_owned());
        look(self);
        self.path.pop();
    }
}
