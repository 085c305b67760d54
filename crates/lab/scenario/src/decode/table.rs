//! Tables: one definition makes the struct, its reader, its writer and its schema.

use serde_json::{Value as Json, json};

use super::renamed::{foreign, replacement};
use super::{Field, Located};
use crate::error::{SourceSpan, SpannedError, listed};
use crate::tree::{Entry, Node, Value};

/// A table being read: knows its keys, so that others are refused with a suggestion.
pub(crate) struct TableReader<'a> {
    entries: &'a [Entry],
    origin: SourceSpan,
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(node: &'a Node, known: &[&'static str]) -> Result<Self, SpannedError> {
        let Some(entries) = node.entries() else {
            return Err(SpannedError::new(node.origin, format!("expected a table, found {}", node.described()))
                .label("expected a table")
                .help(format!("its keys are {}", listed(known))));
        };
        match entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            None => Ok(Self { entries, origin: node.origin }),
            Some(entry) => {
                let error =
                    SpannedError::new(entry.key_origin, format!("unknown key `{}`", entry.key)).label("unknown key");
                let help = replacement(&entry.key, known).map(|key| format!("renamed to `{key}`"));
                Err(match help.or_else(|| foreign(&entry.key, known).map(str::to_owned)) {
                    Some(help) => error.help(help),
                    None => error.suggest(&entry.key, known.iter().copied()),
                })
            }
        }
    }

    pub(crate) fn get<T: Field>(&self, key: &str) -> Result<Option<T>, SpannedError> {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else { return Ok(None) };
        T::decode(&entry.node).map(Some).map_err(|error| error.at_least(self.origin))
    }

    pub(crate) fn missing<T: Field>(&self, key: &str) -> SpannedError {
        SpannedError::new(self.origin, format!("missing key `{key}`"))
            .label(format!("needs `{key}`"))
            .help(format!("`{key}` is {}", T::EXPECTS))
    }
}

/// Schema of a key.
pub(crate) struct KeySchema<'a> {
    pub(crate) name: &'a str,
    /// Schema of its values.
    pub(crate) schema: Json,
    /// The accepted values, in words.
    pub(crate) expects: &'a str,
    pub(crate) doc: &'a str,
    /// Default, if there is one.
    pub(crate) default: Option<Value>,
    /// Set if the key must be given.
    pub(crate) is_required: bool,
}

/// The schema of a table. `x-table` is the name of its type, by which programs that write classes from the schema call it.
pub(crate) fn object_schema(name: &str, doc: &str, keys: Vec<KeySchema<'_>>) -> Json {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for KeySchema { name: key, mut schema, expects, doc, default, is_required } in keys {
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("title".into(), expects.into());
            schema.insert("description".into(), doc.trim().replace("\n ", "\n").into());
            if let Some(default) = default.filter(|default| *default != Value::Absent) {
                schema.insert("default".into(), default.to_json());
            }
        }
        if is_required {
            required.push(key.to_owned());
        }
        properties.insert(key.to_owned(), schema);
    }
    json!({
        "type": "object",
        "x-table": name,
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

        impl $name {
            /// The keys that the table may have.
            pub(crate) const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];
        }

        impl $crate::decode::Field for $name {
            const EXPECTS: &'static str = "a table";

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::SpannedError> {
                let reader = $crate::decode::TableReader::new(node, Self::KEYS)?;
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
                $crate::decode::object_schema(stringify!($name), concat!($($doc, "\n"),+), vec![
                    $($crate::decode::KeySchema {
                        name: stringify!($key),
                        schema: <$type as $crate::decode::Field>::schema(),
                        expects: <$type as $crate::decode::Field>::EXPECTS,
                        doc: concat!($($key_doc, "\n"),+),
                        default: $crate::decode::schema_default!($type $(, $default)?),
                        is_required: $crate::decode::schema_required!($($default)?),
                    }),*
                ])
            }

            fn changed(&self, changes: &mut $crate::decode::Changes) {
                $({
                    let default = $crate::decode::schema_default!($type $(, $default)?);
                    changes.key(stringify!($name), stringify!($key), &self.$key, default.as_ref());
                })*
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
        None::<$crate::tree::Value>
    };
    ($type:ty, $default:expr) => {{
        // A default may fail to decode only where it is a table with required keys; then it is no default.
        let default = || -> Result<$type, $crate::error::SpannedError> { Ok($default) };
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
    ($(#[doc = $doc:literal])+ $name:ident, $expects:literal { $($(#[doc = $word_doc:literal])+ $variant:ident = $keyword:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $variant,)*
        }

        impl $name {
            /// The keyword in files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $keyword,)*
                }
            }
        }

        impl $crate::decode::Field for $name {
            const EXPECTS: &'static str = $expects;

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::SpannedError> {
                match node.as_str() {
                    $(Some($keyword) => Ok(Self::$variant),)*
                    Some(keyword) => Err($crate::decode::unexpected::<Self>(node).suggest(keyword, [$($keyword),*])),
                    None => Err($crate::decode::unexpected::<Self>(node)),
                }
            }

            fn encode(&self) -> $crate::tree::Value {
                $crate::tree::Value::string(self.name())
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($keyword),*] })
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

            fn decode(node: &$crate::tree::Node) -> Result<Self, $crate::error::SpannedError> {
                let kinds = [$($kind),*];
                let (kind, rest) = $crate::decode::split_kind(node, &kinds)?;
                match kind.value.as_str() {
                    $($kind => <$table as $crate::decode::Field>::decode(&rest).map(Self::$variant),)*
                    keyword => Err($crate::error::SpannedError::new(kind.origin, format!("unknown kind `{keyword}`"))
                        .label("unknown kind")
                        .suggest(keyword, kinds)),
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

            fn changed(&self, changes: &mut $crate::decode::Changes) {
                match self {
                    $(Self::$variant(table) => <$table as $crate::decode::Field>::changed(table, changes),)*
                }
            }
        }
    };
}

pub(crate) use {default_of, kinds, schema_default, schema_required, table, words};

/// The `kind` of a table, and the table without it.
pub(crate) fn split_kind(node: &Node, kinds: &[&str]) -> Result<(Located<String>, Node), SpannedError> {
    let Some(entries) = node.entries() else {
        return Err(SpannedError::new(node.origin, format!("expected a table, found {}", node.described()))
            .label("expected a table")
            .help(format!("its `kind` is one of {}", listed(kinds))));
    };
    let Some(kind) = entries.iter().find(|entry| entry.key == "kind") else {
        return Err(SpannedError::new(node.origin, "missing key `kind`")
            .label("needs `kind`")
            .help(format!("`kind` is one of {}", listed(kinds))));
    };
    let kind = Located::<String>::decode(&kind.node)?;
    let rest = entries.iter().filter(|entry| entry.key != "kind").cloned().collect();
    Ok((kind, Node { value: Value::Table(rest), origin: node.origin }))
}

pub(crate) fn with_kind(kind: &str, table: Value) -> Value {
    let Value::Table(mut entries) = table else { return table };
    let node = Node::generated(Value::string(kind));
    entries.insert(0, Entry { key: "kind".into(), key_origin: SourceSpan::NOWHERE, node });
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
