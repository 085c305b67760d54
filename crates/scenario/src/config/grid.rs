//! `[grid]`, `[variants.*]` and `[scale.*]`: values that replace others.

use serde_json::{Value as Json, json};

use crate::decode::{At, Field, Named, table, unexpected};
use crate::error::Fault;
use crate::tree::{Node, Value};

/// The values that a key takes in turn.
#[derive(Clone, PartialEq, Debug)]
pub struct GridValues(pub Vec<Node>);

impl Field for GridValues {
    const EXPECTS: &'static str = "an array of values such as [0.4, 0.6]";

    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Array(values) => Ok(Self(values.clone())),
            _ => Err(unexpected::<Self>(node)),
        }
    }

    fn encode(&self) -> Value {
        Value::Array(self.0.clone())
    }

    fn schema() -> Json {
        json!({ "type": "array" })
    }
}

table! {
    /// One set of overrides.
    Scale {
        /// What was scaled, in words.
        note: String = String::new();
        /// Keys, with dots and array indices as for `--set`, and their values.
        set: Named<Node> = Named::default();
    }
}

table! {
    /// More runs beside the grid's: the same with some keys changed.
    Variant {
        /// What is other, in words.
        label: String = String::new();
        /// Keys, with dots and array indices as for `--set`, and their values.
        set: Named<Node> = Named::default();
        /// The values that keys of `[grid]` take in it: by default each takes its first one, and with `[]` it is left alone.
        grid: Named<GridValues> = Named::default();
        /// Only these schemes. By default all.
        schemes: Option<Vec<At<String>>> = None;
    }
}
