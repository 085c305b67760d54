//! A parsed file in which every value knows its place, so that an error found late still points at its line.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::error::{SourceSpan, SpannedError};

/// A value and its place. Two nodes are equal if their values are.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Place of the value in a file.
    pub origin: SourceSpan,
}

/// A value of a file.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value: left out when written.
    Absent,
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent, as it was written: decimals stay exact.
    Float(String),
    /// True or false.
    Boolean(bool),
    /// A date or time, as it was written.
    Datetime(String),
    /// Several values.
    Array(Vec<Node>),
    /// Keys and values in the order of the file.
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Place of the key in a file.
    pub key_origin: SourceSpan,
    /// The value.
    pub node: Node,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

/// Keys of texts that tables show in one line.
const ONE_LINE: [&str; 5] = ["label", "name", "title", "xlabel", "ylabel"];

/// Keys of names and descriptions in tables of claims, columns and panels.
const PROSE: [&str; 7] = ["id", "label", "paper", "text", "title", "xlabel", "ylabel"];

impl Node {
    /// Returns a node without a place.
    pub(crate) fn generated(value: Value) -> Self {
        Self { value, origin: SourceSpan::NOWHERE }
    }

    /// A table without keys.
    pub(crate) fn empty_table() -> Self {
        Self::generated(Value::Table(Vec::new()))
    }

    /// The entries, if this is a table.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the first string in it equal to `text`, except names and descriptions ([`PROSE`]).
    pub(crate) fn string(&self, text: &str) -> Option<&Self> {
        match &self.value {
            Value::String(found) => (found == text).then_some(self),
            Value::Array(items) => items.iter().find_map(|item| item.string(text)),
            Value::Table(entries) => {
                let is_prose = |entry: &&Entry| {
                    matches!(entry.node.value, Value::String(_)) && PROSE.contains(&entry.key.as_str())
                };
                entries.iter().filter(|entry| !is_prose(entry)).find_map(|entry| entry.node.string(text))
            }
            Value::Absent | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
        }
    }

    /// The same value as JSON. A number keeps its value, not its spelling.
    pub fn to_json(&self) -> serde_json::Value {
        self.value.to_json()
    }

    /// Returns the value as a file writes it, for messages: `"200%"`, `1e-300`.
    pub(crate) fn written(&self) -> String {
        match &self.value {
            Value::String(text) => format!("\"{text}\""),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.clone(),
            Value::Absent | Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
                self.described()
            }
        }
    }

    /// Returns a description of the value, for messages: `the string "12 ms"`.
    pub(crate) fn described(&self) -> String {
        match &self.value {
            Value::Absent => "nothing".into(),
            Value::String(text) => format!("the string \"{text}\""),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Boolean(switch) => format!("{switch}"),
            Value::Datetime(date) => format!("the date {date}"),
            Value::Array(_) => "an array".into(),
            Value::Table(_) => "a table".into(),
        }
    }
}

impl Value {
    /// A table of these, without those that are absent.
    pub(crate) fn table<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let present = entries.into_iter().filter(|(_, value)| *value != Self::Absent);
        let entry = |(key, value): (&str, Value)| Entry {
            key: key.to_owned(),
            key_origin: SourceSpan::NOWHERE,
            node: Node::generated(value),
        };
        Self::Table(present.map(entry).collect())
    }

    pub(crate) fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Absent => Json::Null,
            Self::String(text) | Self::Datetime(text) => Json::from(text.as_str()),
            Self::Integer(number) => Json::from(*number),
            Self::Float(number) => number.parse::<f64>().map_or(Json::Null, Json::from),
            Self::Boolean(switch) => Json::from(*switch),
            Self::Array(nodes) => nodes.iter().map(Node::to_json).collect(),
            Self::Table(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
            }
        }
    }
}

/// Parses a file.
pub(crate) fn parse(text: &str, source: u32) -> Result<Node, SpannedError> {
    let table = DeTable::parse(text).map_err(|error| syntax(&error, source))?;
    let range = table.span();
    Ok(Node { value: from_table(table.into_inner(), source)?, origin: SourceSpan::new(source, range) })
}

/// Parses one value of a command line, as on the right of `=`. Text that is not a TOML value is a string.
pub(crate) fn parse_argument(text: &str, source: u32) -> Result<Node, SpannedError> {
    if let Ok(value) = DeValue::parse(text) {
        return from_value(value, source);
    }
    let origin = SourceSpan::new(source, 0..text.len());
    Ok(Node { value: Value::String(printable(text.to_owned(), origin)?), origin })
}

fn syntax(error: &toml::de::Error, source: u32) -> SpannedError {
    let origin = error.span().map_or(SourceSpan::NOWHERE, |span| SourceSpan::new(source, span));
    SpannedError::new(origin, format!("this is not TOML: {}", error.message().trim_end().replace('\n', ", ")))
}

fn from_table(table: DeTable<'_>, source: u32) -> Result<Value, SpannedError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_origin = SourceSpan::new(source, key.span());
        let at = (key.span().start, value.span().start);
        let key = printable(key.into_inner().into_owned(), key_origin)?;
        let (is_short, value_origin) = (ONE_LINE.contains(&key.as_str()), SourceSpan::new(source, value.span()));
        if is_short && matches!(value.get_ref(), DeValue::String(text) if text.contains(['\n', '\r', '\t'])) {
            return Err(
                SpannedError::new(value_origin, format!("`{key}` over several lines")).label("expected one line")
            );
        }
        entries.push((at, Entry { key, key_origin, node: from_value(value, source)? }));
    }
    // The parser's table is sorted by key; the file's order reads better.
    entries.sort_by_key(|(at, _)| *at);
    Ok(Value::Table(entries.into_iter().map(|(_, entry)| entry).collect()))
}

fn from_value(value: Spanned<DeValue<'_>>, source: u32) -> Result<Node, SpannedError> {
    let origin = SourceSpan::new(source, value.span());
    let value =
        match value.into_inner() {
            DeValue::String(text) => Value::String(printable(text.into_owned(), origin)?),
            DeValue::Integer(number) => Value::Integer(integer(&number).ok_or_else(|| {
                SpannedError::new(origin, format!("the number {number} is beyond a file's whole numbers"))
                    .label(format!("expected {} to {}", i64::MIN, i64::MAX))
            })?),
            DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
            DeValue::Boolean(switch) => Value::Boolean(switch),
            DeValue::Datetime(date) => Value::Datetime(date.to_string()),
            DeValue::Array(nodes) => {
                Value::Array(nodes.into_iter().map(|node| from_value(node, source)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => from_table(table, source)?,
        };
    Ok(Node { value, origin })
}

/// Refuses control characters, those of Unicode's bidirectional algorithm too: names and labels are written to terminals.
pub(crate) fn printable(text: String, origin: SourceSpan) -> Result<String, SpannedError> {
    let is_wrong = |c: &char| match c {
        '\n' | '\r' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    match text.chars().find(is_wrong) {
        Some(control) => {
            let message = format!("a text with the control character U+{:04X}", u32::from(control));
            Err(SpannedError::new(origin, message).label("expected letters, digits, signs and blanks"))
        }
        None => Ok(text),
    }
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_keeps_the_order_of_the_file() {
        let node = parse("b = 1\na = \"x\"\n[z]\nq = 1.50\n[c]\n", 0).unwrap();
        let keys: Vec<&str> = node.entries().unwrap().iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "z", "c"]);
        assert_eq!(node.get("z").unwrap().get("q").unwrap().value, Value::Float("1.50".into()));
    }

    #[test]
    fn invalid_toml_is_an_error() {
        assert!(parse("a = \n", 0).is_err());
        assert!(parse("a = 99999999999999999999\n", 0).is_err());
    }
}
