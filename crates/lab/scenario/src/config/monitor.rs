//! `[monitor]` and `[sizes]`: the sampling of ports and flows, and the groups of flows by size.

use serde_json::{Value as Json, json};
use units::{Bytes, Span};

use crate::class::FlowClass;
use crate::decode::{Field, Located, table, unexpected};
use crate::error::SpannedError;
use crate::quantity::write_bytes;
use crate::tree::{Node, Value};

/// Sampled flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowChoice {
    /// Every one.
    All,
    /// None.
    None,
    /// The first flows, up to this number.
    First(u32),
    /// These, by number.
    Listed(Vec<u32>),
}

impl Field for FlowChoice {
    const EXPECTS: &'static str = "\"all\", \"none\", how many of the first, or an array of flow numbers";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::String(keyword) if keyword == "all" => Ok(Self::All),
            Value::String(keyword) if keyword == "none" => Ok(Self::None),
            Value::Integer(_) => u32::decode(node).map(Self::First),
            Value::Array(_) => Vec::decode(node).map(Self::Listed),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::All => Value::string("all"),
            Self::None => Value::string("none"),
            Self::First(count) => count.encode(),
            Self::Listed(flows) => flows.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "enum": ["all", "none"] }, u32::schema(), Vec::<u32>::schema()] })
    }
}

table! {
    /// Sampling over time.
    Monitor {
        /// Time between samples; zero samples nothing.
        interval: Span = Span::ZERO;
        /// Ports whose queues are sampled and whose pauses are recorded: a link such as `dc0.border>dc1.border#0`
        /// (without `#`: all parallel ones), `class:inter` for all of a class, `receiver` for the switch ports towards
        /// the receivers of incasts.
        ports: Vec<Located<String>> = Vec::new();
        /// Switches whose shared buffer is sampled: a name such as `dc1.border`, `tier:border` for all of a tier (`edge`, `aggregation`, `core`, `border`, `relay`), or `all`.
        switches: Vec<Located<String>> = Vec::new();
        /// Flows whose rate and window are sampled.
        flows: Located<FlowChoice> = Located::default_of(FlowChoice::None);
        /// Flows whose packets' one-way delays are compared with what their senders knew when they left: the last
        /// one-way delay that On-Ramp measured, and the last RTT. Needs `[switch]` and no interval; not where ports
        /// report themselves (INT).
        predictors: Located<FlowChoice> = Located::default_of(FlowChoice::None);
        /// Time over which Jain's index compares the data delivered by sampled flows: a whole number of intervals, at
        /// least one. If not given, the longest base RTT.
        fairness_window: Option<Span> = None;
    }
}

/// Flow sizes from `low` up to, but without, `high`: of all flows, of some traffic, of one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeRange {
    /// Only flows of the entries of `[[traffic]]` of this name.
    pub traffic: Option<String>,
    /// Only flows of this class.
    pub class: Option<FlowClass>,
    /// The smallest size in the bin.
    pub low: Bytes,
    /// The smallest size above it, if there is an end.
    pub high: Option<Bytes>,
}

impl Field for SizeRange {
    const EXPECTS: &'static str =
        "a range of sizes such as \"0..100KB\", \"1MB..\", \"inter 1MB..\" or \"NAME: ..100KB\" with a traffic's name";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let Some(text) = node.as_str() else { return Err(unexpected::<Self>(node)) };
        let (traffic, text) = text.rsplit_once(':').map_or((None, text), |(name, rest)| (Some(name.trim()), rest));
        let class =
            [FlowClass::Intra, FlowClass::Inter].into_iter().find(|class| text.trim().starts_with(class.name()));
        let range = class.map_or(text, |class| text.trim().trim_start_matches(class.name()));
        let Some((low, high)) = range.split_once("..") else { return Err(unexpected::<Self>(node)) };
        let read = |text: &str| {
            let value = match text.trim().parse::<i64>() {
                Ok(bytes) => Value::Integer(bytes),
                Err(_) => Value::string(text.trim()),
            };
            Bytes::decode(&Node { value, origin: node.origin })
        };
        let low = if low.trim().is_empty() { Bytes::ZERO } else { read(low)? };
        let high = if high.trim().is_empty() { None } else { Some(read(high)?) };
        if high.is_some_and(|high| high <= low) {
            return Err(
                SpannedError::new(node.origin, "this range holds no size").label(format!("expected {}", Self::EXPECTS))
            );
        }
        Ok(Self { traffic: traffic.map(str::to_owned), class, low, high })
    }
    fn encode(&self) -> Value {
        let traffic = self.traffic.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let class = self.class.map_or_else(String::new, |class| format!("{} ", class.name()));
        let (low, high) = (write_bytes(self.low), self.high.map(write_bytes).unwrap_or_default());
        Value::string(format!("{traffic}{class}{low}..{high}"))
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^(.*:)? *(intra|inter)?.*\.\..*$" })
    }
}
