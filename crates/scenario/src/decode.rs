//! Values of files as types: one definition of a table gives its struct, its reader, its writer and its schema.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::ops::Deref;

use serde_json::{Value as Json, json};

use crate::error::{Fault, Origin, listed};
use crate::tree::{Entry, Node, Value};

/// A type that files can hold.
pub(crate) trait Field: Sized {
    /// What is accepted, with an example: `a rate such as "100Gbps"`.
    const EXPECTS: &'static str;

    /// Reads it.
    fn decode(node: &Node) -> Result<Self, Fault>;

    /// Writes it so that it reads back equal.
    fn encode(&self) -> Value;

    /// Its JSON Schema.
    fn schema() -> Json;
}

/// The fault of a value that is not what `T` expects.
pub(crate) fn unexpected<T: Field>(node: &Node) -> Fault {
    Fault::new(node.origin, format!("expected {}, found {}", T::EXPECTS, node.described()))
        .label(format!("expected {}", T::EXPECTS))
}

/// A value with its place. Two are equal if their values are.
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub origin: Origin,
}

impl<T> At<T> {
    /// A value that stands nowhere: a default.
    pub(crate) fn default_of(value: T) -> Self {
        Self { value, origin: Origin::NOWHERE }
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Field> Field for At<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, Fault> {
        Ok(Self { value: T::decode(node)?, origin: node.origin })
    }
    fn encode(&self) -> Value {
        self.value.encode()
    }
    fn schema() -> Json {
        T::schema()
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, Fault> {
        T::decode(node).map(Some)
    }
    fn encode(&self) -> Value {
        self.as_ref().map_or(Value::Absent, T::encode)
    }
    fn schema() -> Json {
        T::schema()
    }
}

impl<T: Field> Field for Box<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, Fault> {
        T::decode(node).map(Box::new)
    }
    fn encode(&self) -> Value {
        T::encode(self)
    }
    fn schema() -> Json {
        T::schema()
    }
}

impl<T: Field> Field for Vec<T> {
    const EXPECTS: &'static str = "an array";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Array(nodes) => nodes.iter().map(T::decode).collect(),
            _ => Err(unexpected::<Self>(node).help(format!("each element is {}", T::EXPECTS))),
        }
    }
    fn encode(&self) -> Value {
        Value::Array(self.iter().map(|item| Node::made(item.encode())).collect())
    }
    fn schema() -> Json {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// Named values in the order of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Named<T>(pub Vec<(At<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.value.as_str(), value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Field> Field for Named<T> {
    const EXPECTS: &'static str = "a table of named entries";
    fn decode(node: &Node) -> Result<Self, Fault> {
        let Some(entries) = node.entries() else { return Err(unexpected::<Self>(node)) };
        let named = |entry: &Entry| -> Result<_, Fault> {
            let value = T::decode(&entry.node)?;
            Ok((At { value: entry.key.clone(), origin: entry.key_origin }, value))
        };
        entries.iter().map(named).collect::<Result<_, _>>().map(Self)
    }
    fn encode(&self) -> Value {
        Value::table(self.iter().map(|(name, value)| (name, value.encode())))
    }
    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

/// Anything: read later by whoever knows it.
impl Field for Node {
    const EXPECTS: &'static str = "any value";
    fn decode(node: &Node) -> Result<Self, Fault> {
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
    fn decode(node: &Node) -> Result<Self, Fault> {
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
    fn decode(node: &Node) -> Result<Self, Fault> {
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
            fn decode(node: &Node) -> Result<Self, Fault> {
                let Value::Integer(number) = node.value else { return Err(unexpected::<Self>(node)) };
                let range = format!("it must be {} to {}", $low, $high);
                Self::try_from(number)
                    .map_err(|_| Fault::new(node.origin, format!("{number} is out of range: {range}")).label(range))
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
            fn decode(node: &Node) -> Result<Self, Fault> {
                let Value::Integer(number) = node.value else { return Err(unexpected::<Self>(node)) };
                let range = format!("it must be 1 to {}", <$of>::MAX);
                <$of>::try_from(number)
                    .ok()
                    .and_then(Self::new)
                    .ok_or_else(|| Fault::new(node.origin, format!("{number} is out of range: {range}")).label(range))
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

/// A table being read: knows its keys, so that others are refused with a suggestion.
pub(crate) struct Reader<'a> {
    entries: &'a [Entry],
    origin: Origin,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(node: &'a Node, known: &[&'static str]) -> Result<Self, Fault> {
        let Some(entries) = node.entries() else {
            return Err(Fault::new(node.origin, format!("expected a table, found {}", node.described()))
                .label("expected a table")
                .help(format!("its keys are {}", listed(known))));
        };
        match entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            None => Ok(Self { entries, origin: node.origin }),
            Some(entry) => Err(Fault::new(entry.key_origin, format!("unknown key `{}`", entry.key))
                .label("unknown key")
                .suggest(&entry.key, known.iter().copied())),
        }
    }

    pub(crate) fn get<T: Field>(&self, key: &str) -> Result<Option<T>, Fault> {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else { return Ok(None) };
        T::decode(&entry.node).map(Some).map_err(|fault| fault.at_least(self.origin))
    }

    pub(crate) fn missing<T: Field>(&self, key: &str) -> Fault {
        Fault::new(self.origin, format!("missing key `{key}`"))
            .label(format!("needs `{key}`"))
            .help(format!("`{key}` is {}", T::EXPECTS))
    }
}

/// The schema of a table: `(key, schema, what it expects, doc, default, required)` for each key.
pub(crate) fn object_schema(doc: &str, keys: Vec<(&str, Json, &str, &str, Option<Value>, bool)>) -> Json {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (key, mut schema, expects, doc, default, must) in keys {
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("title".into(), expects.into());
            schema.insert("description".into(), doc.trim().replace("\n ", "\n").into());
            if let Some(default) = default.filter(|default| *default != Value::Absent) {
                schema.insert("default".into(), default.to_json());
            }
        }
        if must {
            required.push(key.to_owned());
        }
        properties.insert(key.to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": doc.trim(),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Defines a table: `key: Type = default;` or, where it must be given, `key: Type;`. A default may use `?`.
macro_rules! table {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $key_doc:literal])+ $key:ident: $type:ty $(= $default:expr)?;)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $($(#[doc = $key_doc])+ pub $key: $type,)*
        }

        impl $crate::decode::Field for $name {
            const EXPECTS: &'static str = "a table";

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::Fault> {
                let reader = $crate::decode::Reader::new(node, &[$(stringify!($key)),*])?;
                Ok(Self {
                    $($key: match reader.get::<$type>(stringify!($key))? {
                        Some(value) => value,
                        None => $crate::decode::default_of!(reader, $key, $type $(, $default)?),
                    },)*
                })
            }

            fn encode(&self) -> $crate::tree::Value {
                $crate::tree::Value::table([$((stringify!($key), self.$key.encode())),*])
            }

            fn schema() -> serde_json::Value {
                $crate::decode::object_schema(concat!($($doc, "\n"),+), vec![
                    $((
                        stringify!($key),
                        <$type as $crate::decode::Field>::schema(),
                        <$type as $crate::decode::Field>::EXPECTS,
                        concat!($($key_doc, "\n"),+),
                        $crate::decode::schema_default!($type $(, $default)?),
                        $crate::decode::schema_required!($($default)?),
                    )),*
                ])
            }
        }
    };
}

macro_rules! default_of {
    ($reader:ident, $key:ident, $type:ty) => {
        return Err($reader.missing::<$type>(stringify!($key)))
    };
    ($reader:ident, $key:ident, $type:ty, $default:expr) => {
        $default
    };
}

macro_rules! schema_default {
    ($type:ty) => {
        None
    };
    ($type:ty, $default:expr) => {{
        // A default may fail to decode only where it is a table with required keys; then it is no default.
        let default = || -> Result<$type, $crate::error::Fault> { Ok($default) };
        default().ok().map(|value| $crate::decode::Field::encode(&value))
    }};
}

macro_rules! schema_required {
    () => {
        true
    };
    ($default:expr) => {
        false
    };
}

/// Defines a choice among words.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident, $expects:literal { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $variant,)*
        }

        impl $name {
            /// The word in files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::decode::Field for $name {
            const EXPECTS: &'static str = $expects;

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::Fault> {
                match node.as_str() {
                    $(Some($word) => Ok(Self::$variant),)*
                    Some(word) => Err($crate::decode::unexpected::<Self>(node).suggest(word, [$($word),*])),
                    None => Err($crate::decode::unexpected::<Self>(node)),
                }
            }

            fn encode(&self) -> $crate::tree::Value {
                $crate::tree::Value::string(self.name())
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($word),*] })
            }
        }
    };
}

/// Defines a choice among tables by their key `kind`.
macro_rules! kinds {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $kind_doc:literal])+ $variant:ident($table:ty) = $kind:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Debug)]
        pub enum $name {
            $($(#[doc = $kind_doc])+ $variant($table),)*
        }

        impl $crate::decode::Field for $name {
            const EXPECTS: &'static str = "a table with a `kind`";

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::Fault> {
                let kinds = [$($kind),*];
                let (kind, rest) = $crate::decode::split_kind(node, &kinds)?;
                match kind.value.as_str() {
                    $($kind => <$table as $crate::decode::Field>::decode(&rest).map(Self::$variant),)*
                    word => Err($crate::error::Fault::new(kind.origin, format!("unknown kind `{word}`"))
                        .label("unknown kind")
                        .suggest(word, kinds)),
                }
            }

            fn encode(&self) -> $crate::tree::Value {
                match self {
                    $(Self::$variant(table) => {
                        let inner = <$table as $crate::decode::Field>::encode(table);
                        $crate::decode::with_kind($kind, inner)
                    })*
                }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "oneOf": [
                    $($crate::decode::schema_with_kind($kind, <$table as $crate::decode::Field>::schema())),*
                ] })
            }
        }
    };
}

pub(crate) use {default_of, kinds, schema_default, schema_required, table, words};

/// The `kind` of a table, and the table without it.
pub(crate) fn split_kind(node: &Node, kinds: &[&str]) -> Result<(At<String>, Node), Fault> {
    let Some(entries) = node.entries() else {
        return Err(Fault::new(node.origin, format!("expected a table, found {}", node.described()))
            .label("expected a table")
            .help(format!("its `kind` is one of {}", listed(kinds))));
    };
    let Some(kind) = entries.iter().find(|entry| entry.key == "kind") else {
        return Err(Fault::new(node.origin, "missing key `kind`")
            .label("needs `kind`")
            .help(format!("`kind` is one of {}", listed(kinds))));
    };
    let kind = At::<String>::decode(&kind.node)?;
    let rest = entries.iter().filter(|entry| entry.key != "kind").cloned().collect();
    Ok((kind, Node { value: Value::Table(rest), origin: node.origin }))
}

pub(crate) fn with_kind(kind: &str, table: Value) -> Value {
    let Value::Table(mut entries) = table else { return table };
    let node = Node::made(Value::string(kind));
    entries.insert(0, Entry { key: "kind".into(), key_origin: Origin::NOWHERE, node });
    Value::Table(entries)
}

pub(crate) fn schema_with_kind(kind: &str, mut schema: Json) -> Json {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert("kind".into(), json!({ "const": kind }));
    }
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.push("kind".into());
    }
    schema
}
