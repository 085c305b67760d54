//! A value or a keyword in its place.

use serde_json::{Value as Json, json};
use units::{Bytes, Rate, Span};

use super::codel::{CoDelTable, FqCoDelTable};
use super::coding::CodingTable;
use super::failure::LossBursts;
use super::host::{JitterTable, OnRampTable, TcpTable};
use super::impair::ImpairTable;
use super::lscc::SwingTable;
use super::switch::{PfcTable, SwitchOverrides};
use super::trim::Trimming;
use crate::decode::{Changes, Field, unexpected};
use crate::error::SpannedError;
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// A value, or the value that fits the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auto<T> {
    /// A value that fits the path.
    Auto,
    /// A given value.
    Set(T),
}

impl<T: Copy> Auto<T> {
    /// The value, if one is set.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// A value, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffOr<T> {
    /// No value.
    Off,
    /// A given value.
    On(T),
}

impl<T> OffOr<T> {
    /// The value, if there is one.
    pub fn as_ref(&self) -> Option<&T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

impl<T: Copy> OffOr<T> {
    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

/// A value, or the initial value of a flow's law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowOr<T> {
    /// The window that the law begins with.
    Window,
    /// A given value.
    Set(T),
}

macro_rules! or_word {
    ($($choice:ident<$type:ty> as $none:ident or $some:ident, $keyword:literal, $expects:literal;)*) => {$(
        impl Field for $choice<$type> {
            const EXPECTS: &'static str = $expects;
            fn decode(node: &Node) -> Result<Self, SpannedError> {
                if node.as_str() == Some($keyword) {
                    return Ok(Self::$none);
                }
                // A text without a digit is a keyword.
                if let Some(keyword) = node.as_str().filter(|text| !text.contains(|c: char| c.is_ascii_digit())) {
                    return Err(unexpected::<Self>(node).suggest(keyword, [$keyword]));
                }
                let read = <$type>::decode(node).map(Self::$some);
                // The error of a table is more precise; otherwise the keyword is accepted, too.
                read.map_err(|error| match node.value {
                    Value::Table(_) => error,
                    _ => error.label(concat!("expected ", $expects)),
                })
            }
            fn encode(&self) -> Value {
                match self {
                    Self::$none => Value::string($keyword),
                    Self::$some(value) => value.encode(),
                }
            }
            fn schema() -> Json {
                json!({ "oneOf": [{ "const": $keyword }, <$type>::schema()] })
            }
            fn changed(&self, changes: &mut Changes) {
                if let Self::$some(value) = self {
                    value.changed(changes);
                }
            }
        }
    )*};
}

or_word! {
    Auto<Span> as Auto or Set, "auto", "\"auto\" or a time such as \"20us\"";
    Auto<Bytes> as Auto or Set, "auto", "\"auto\" or a size such as \"1MB\"";
    WindowOr<Bytes> as Window or Set, "window", "\"window\" or a size such as \"64KB\"";
    Auto<bool> as Auto or Set, "auto", "\"auto\", true or false";
    OffOr<Span> as Off or On, "off", "\"off\" or a time such as \"50us\"";
    OffOr<Bytes> as Off or On, "off", "\"off\" or a size such as \"64KB\"";
    OffOr<u32> as Off or On, "off", "\"off\" or a whole number";
    OffOr<Decimal> as Off or On, "off", "\"off\" or a number such as 0.5";
    OffOr<OnRampTable> as Off or On, "off", "\"off\" or a table such as { threshold = \"30us\" }";
    OffOr<JitterTable> as Off or On, "off", "\"off\" or a table such as { mean = \"1us\" }";
    OffOr<LossBursts> as Off or On, "off", "\"off\" or a table such as { rates = [0.0003, 0.00007] }";
    OffOr<ImpairTable> as Off or On, "off", "\"off\" or a table such as { jitter = { max = \"1ms\" } }";
    OffOr<Rate> as Off or On, "off", "\"off\" or a rate such as \"1Gbps\"";
    OffOr<SwitchOverrides> as Off or On, "off", "\"off\" or a table with keys of [switch]";
}

impl Field for OffOr<TcpTable> {
    const EXPECTS: &'static str = "\"off\", \"linux\" or a table such as { hystart = false }";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match (node.as_str(), &node.value) {
            (Some("off"), _) => Ok(Self::Off),
            (Some("linux"), _) => TcpTable::decode(&Node::empty_table()).map(Self::On),
            (_, Value::Table(_)) => TcpTable::decode(node).map(Self::On),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Off => Value::string("off"),
            Self::On(table) => table.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "enum": ["off", "linux"] }, TcpTable::schema()] })
    }
    fn changed(&self, changes: &mut Changes) {
        if let Some(table) = self.as_ref() {
            table.changed(changes);
        }
    }
}

/// `true` is a table of defaults, `false` is off.
macro_rules! or_table {
    ($($table:ty, $expects:literal;)*) => {$(
        impl Field for OffOr<$table> {
            const EXPECTS: &'static str = $expects;
            fn decode(node: &Node) -> Result<Self, SpannedError> {
                match node.value {
                    Value::Boolean(false) => Ok(Self::Off),
                    Value::Boolean(true) => <$table>::decode(&Node::empty_table()).map(Self::On),
                    Value::Table(_) => <$table>::decode(node).map(Self::On),
                    _ => Err(unexpected::<Self>(node)),
                }
            }
            fn encode(&self) -> Value {
                match self {
                    Self::Off => Value::Boolean(false),
                    Self::On(table) => table.encode(),
                }
            }
            fn schema() -> Json {
                json!({ "oneOf": [{ "type": "boolean" }, <$table>::schema()] })
            }
            fn changed(&self, changes: &mut Changes) {
                if let Some(table) = self.as_ref() {
                    table.changed(changes);
                }
            }
        }
    )*};
}

or_table! {
    CodingTable, "true, false or { data = 8, parity = 2 }";
    SwingTable, "true, false or { delay = \"1us\", headroom = \"bdp\" }";
    CoDelTable, "true, false or { target = \"50us\", interval = \"1ms\" }";
    FqCoDelTable, "true, false or { target = \"50us\", interval = \"1ms\", quantum = 4160 }";
    Trimming, "true, false or { header = 64, control_buffer = \"1MB\" }";
    PfcTable, "true, false or { frame = 64, relay = false }";
}
