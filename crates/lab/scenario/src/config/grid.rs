//! `[grid]`, `[[points]]`, `[random_points]`, `[variants.*]`, `[scale.*]` and `[[cause]]`: values that replace others.

use std::num::NonZeroU32;

use serde_json::{Value as Json, json};

use crate::decode::{Field, Located, NamedValues, table, unexpected, words};
use crate::error::SpannedError;
use crate::tree::{Node, Value};

/// The values that a key takes in turn.
#[derive(Clone, PartialEq, Debug)]
pub struct GridValues(pub Vec<Node>);

impl Field for GridValues {
    const EXPECTS: &'static str = "an array of values such as [0.4, 0.6]";

    fn decode(node: &Node) -> Result<Self, SpannedError> {
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

words! {
    /// Sampling method.
    DrawWord, "\"sobol\" or \"random\"" {
        /// Quasi-random: Sobol's sequence, scrambled as by Owen, which fills the space evenly. Best of 2, 4, 8, ... points.
        Sobol = "sobol",
        /// Each by chance.
        Random = "random",
    }
}

words! {
    /// Scale on which a range is sampled uniformly.
    SpreadWord, "\"linear\" or \"log\"" {
        /// Linear.
        Linear = "linear",
        /// Logarithmic: as many values from 1 to 10 as from 10 to 100.
        Log = "log",
    }
}

table! {
    /// Values of a key of a sample: all from one number to another, both included. They have the kind of the ends (a whole number, one with a point, one with a unit) and four digits, more where the range is narrow; whole numbers have all.
    Range {
        /// Smallest value.
        from: Node;
        /// Largest value.
        to: Node;
        /// Scale on which it is sampled uniformly. `log`: as many values from 1 to 10 as from 10 to 100.
        spread: SpreadWord = SpreadWord::Linear;
    }
}

/// The values that a key of a sample may take.
#[derive(Clone, PartialEq, Debug)]
pub enum SampleValues {
    /// All in a range.
    Range(Range),
    /// One of these, all alike likely.
    Choice(Vec<Node>),
}

impl Field for SampleValues {
    const EXPECTS: &'static str = "a range such as { from = 1, to = 8 }, or an array of values such as [0.4, 0.6]";

    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Table(_) => Range::decode(node).map(Self::Range),
            Value::Array(values) => Ok(Self::Choice(values.clone())),
            _ => Err(unexpected::<Self>(node)),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Range(range) => range.encode(),
            Self::Choice(values) => Value::Array(values.clone()),
        }
    }

    fn schema() -> Json {
        json!({ "oneOf": [Range::schema(), { "type": "array" }] })
    }
}

table! {
    /// `[random_points]`: points that are drawn. Every one is a run of every scheme, at each point of `[grid]`.
    RandomPoints {
        /// Number of points. Identical points are run once.
        points: NonZeroU32;
        /// Sampling method. `sobol`: quasi-random, by Sobol's sequence with Owen's scrambling, which fills the space
        /// evenly, best with 2, 4, 8, ... points. `random`: each by chance.
        method: DrawWord = DrawWord::Sobol;
        /// Seed of the points: another one gives other points.
        seed: u32 = 1;
        /// Keys as in `[grid]`, and a range or a list of values for each.
        keys: NamedValues<Located<SampleValues>>;
    }
}

table! {
    /// One set of overrides.
    Scale {
        /// Description of what was scaled.
        note: String = String::new();
        /// Keys, with dots and array indices as for `--set`, and their values.
        set: NamedValues<Node> = NamedValues::default();
    }
}

table! {
    /// Runs in addition to the grid's: the same with some keys changed.
    Variant {
        /// Description of the difference.
        label: String = String::new();
        /// Keys, with dots and array indices as for `--set`, and their values.
        set: NamedValues<Node> = NamedValues::default();
        /// Values of keys of `[grid]` in these runs: by default the first one of each, and with `[]` the key is left
        /// unchanged.
        grid: NamedValues<GridValues> = NamedValues::default();
        /// Schemes to run; all by default.
        schemes: Option<Vec<Located<String>>> = None;
    }
}

table! {
    /// A suspected cause of claims that are not reproduced, and the change of the set-up that removes it.
    Cause {
        /// Its name, unique in the file.
        id: String;
        /// The claims that are judged again with the change.
        claims: Located<Vec<Located<String>>>;
        /// The suspicion, in words.
        text: String;
        /// Keys, with dots and array indices as for `--set`, and their values.
        set: Located<NamedValues<Node>>;
        /// The outcomes of earlier runs: of each scale, by claim.
        recorded: NamedValues<NamedValues<String>> = NamedValues::default();
    }
}
