//! Values of files as types.

mod changed;
mod renamed;
mod table;

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::ops::Deref;

use serde_json::{Value as Json, json};

use crate::error::{SourceSpan, SpannedError};
use crate::tree::{Entry, Node, Value};
pub(crate) use changed::{ChangedKey, Changes};
pub use renamed::replacement;
pub(crate) use renamed::{foreign, replacements};
pub(crate) use table::*;

/// A type that files can hold.
pub(crate) trait Field: Sized {
    /// Accepted values, with an example: `a rate such as "100Gbps"`.
    const EXPECTS: &'static str;

    /// Reads it.
    fn decode(node: &Node) -> Result<Self, SpannedError>;

    /// Writes it so that it reads back equal.
    fn encode(&self) -> Value;

    /// Its JSON Schema.
    fn schema() -> Json;

    /// Lists the keys below it that have other values than their defaults. Only tables, and what may hold one, have any.
    fn changed(&self, _: &mut Changes) {}
}

/// Returns the error for a value of another kind than `T` expects.
pub(crate) fn unexpected<T: Field>(node: &Node) -> SpannedError {
    SpannedError::new(node.origin, format!("expected {}, found {}", T::EXPECTS, node.described()))
        .label(format!("expected {}", T::EXPECTS))
}

/// A value with its place. Two are equal if their values are.
#[derive(Clone, Copy, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Place of the value in a file.
    pub origin: SourceSpan,
}

impl<T> Located<T> {
    /// Returns a value without a place: a default.
    pub(crate) fn default_of(value: T) -> Self {
        Self { value, origin: SourceSpan::NOWHERE }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Field> Field for Located<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        Ok(Self { value: T::decode(node)?, origin: node.origin })
    }
    fn encode(&self) -> Value {
        self.value.encode()
    }
    fn schema() -> Json {
        T::schema()
    }
    fn changed(&self, changes: &mut Changes) {
        self.value.changed(changes);
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        T::decode(node).map(Some)
    }
    fn encode(&self) -> Value {
        self.as_ref().map_or(Value::Absent, T::encode)
    }
    fn schema() -> Json {
        T::schema()
    }
    fn changed(&self, changes: &mut Changes) {
        if let Some(value) = self {
            value.changed(changes);
        }
    }
}

impl<T: Field> Field for Box<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        T::decode(node).map(Box::new)
    }
    fn encode(&self) -> Value {
        T::encode(self)
    }
    fn schema() -> Json {
        T::schema()
    }
    fn changed(&self, changes: &mut Changes) {
        T::changed(self, changes);
    }
}

impl<T: Field> Field for Vec<T> {
    const EXPECTS: &'static str = "an array";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Array(nodes) => nodes.iter().map(T::decode).collect(),
            _ => Err(unexpected::<Self>(node).help(format!("each element is {}", T::EXPECTS))),
        }
    }
    fn encode(&self) -> Value {
        Value::Array(self.iter().map(|item| Node::generated(item.encode())).collect())
    }
    fn schema() -> Json {
        json!({ "type": "array", "items": T::schema() })
    }
    fn changed(&self, changes: &mut Changes) {
        for (index, item) in self.iter().enumerate() {
            changes.within(&index.to_string(), |changes| item.changed(changes));
        }
    }
}

/// Named values in the order of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedValues<T>(pub Vec<(Located<String>, T)>);

impl<T> Default for NamedValues<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> NamedValues<T> {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.value.as_str(), value))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Field> Field for NamedValues<T> {
    const EXPECTS: &'static str = "a table of named entries";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let Some(entries) = node.entries() else { return Err(unexpected::<Self>(node)) };
        let named = |entry: &Entry| -> Result<_, SpannedError> {
            let value = T::decode(&entry.node)?;
            Ok((Located { value: entry.key.clone(), origin: entry.key_origin }, value))
        };
        entries.iter().map(named).collect::<Result<_, _>>().map(Self)
    }
    fn encode(&self) -> Value {
        Value::table(self.iter().map(|(name, value)| (name, value.encode())))
    }
    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
    fn changed(&self, changes: &mut Changes) {
        for (name, value) in self.iter() {
            changes.within(name, |changes| value.changed(changes));
        }
    }
}

/// Any value, decoded later.
impl Field for Node {
    const EXPECTS: &'static str = "any value";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        Ok(node.clone())
    }
    fn encode(&self) -> Value {
        self.value.clone()
    }
    fn schema() -> Json {
        json!({})
    }
}

impl Field for String {
    const EXPECTS: &'static str = "a string";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        node.as_str().map(str::to_owned).ok_or_else(|| unexpected::<Self>(node))
    }
    fn encode(&self) -> Value {
        Value::string(self)
    }
    fn schema() -> Json {
        json!({ "type": "string" })
    }
}

impl Field for bool {
    const EXPECTS: &'static str = "true or false";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match node.value {
            Value::Boolean(switch) => Ok(switch),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        Value::Boolean(*self)
    }
    fn schema() -> Json {
        json!({ "type": "boolean" })
    }
}

macro_rules! whole_numbers {
    ($($type:ty, $low:literal, $high:expr, $text:literal;)*) => {$(
        impl Field for $type {
            const EXPECTS: &'static str = $text;
            fn decode(node: &Node) -> Result<Self, SpannedError> {
                let Value::Integer(number) = node.value else { return Err(unexpected::<Self>(node)) };
                let range = format!("it must be {} to {}", $low, $high);
                Self::try_from(number)
                    .map_err(|_| SpannedError::new(node.origin, format!("{number} is out of range: {range}")).label(range))
            }
            fn encode(&self) -> Value {
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
            fn schema() -> Json {
                json!({ "type": "integer", "minimum": $low, "maximum": $high })
            }
        }
    )*};
}

whole_numbers! {
    u16, 0, u16::MAX, "a whole number up to 65535";
    u32, 0, u32::MAX, "a whole number";
    u64, 0, i64::MAX, "a whole number";
}

macro_rules! counts {
    ($($type:ty, $of:ty, $text:literal;)*) => {$(
        impl Field for $type {
            const EXPECTS: &'static str = $text;
            fn decode(node: &Node) -> Result<Self, SpannedError> {
                let Value::Integer(number) = node.value else { return Err(unexpected::<Self>(node)) };
                let range = format!("it must be 1 to {}", <$of>::MAX);
                <$of>::try_from(number)
                    .ok()
                    .and_then(Self::new)
                    .ok_or_else(|| SpannedError::new(node.origin, format!("{number} is out of range: {range}")).label(range))
            }
            fn encode(&self) -> Value {
                Value::Integer(i64::from(self.get()))
            }
            fn schema() -> Json {
                json!({ "type": "integer", "minimum": 1, "maximum": <$of>::MAX })
            }
        }
    )*};
}

counts! {
    NonZeroU8, u8, "a whole number from 1 to 255";
    NonZeroU16, u16, "a whole number from 1";
    NonZeroU32, u32, "a whole number from 1";
}
