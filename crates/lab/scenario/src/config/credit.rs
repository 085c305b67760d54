//! `credit_queue` of `[port]`: the queue of credits that ports have.

use std::num::NonZeroU32;

use fabric::CreditQueue;
use laws::credits::CREDIT_SIZE;
use serde_json::{Value as Json, json};
use units::Bytes;

use super::OffOr;
use crate::decode::{Changes, Field, Located, table, unexpected};
use crate::error::SpannedError;
use crate::tree::{Node, Value};

const PACKETS: NonZeroU32 = match NonZeroU32::new(8) {
    Some(packets) => packets,
    None => NonZeroU32::MIN,
};

table! {
    /// A queue of credits: let out at the rate at which full data packets could follow, 84/(84+1538) of the link for packets of 1538 bytes on the wire.
    CreditQueueTable {
        /// Number of credits that may wait.
        limit: NonZeroU32 = PACKETS;
        /// Number of waiting credits from which on credits that may be dropped (over-provisioned ones) are dropped.
        threshold: u32 = 2;
        /// Bytes of credits that may leave at once after a silence, at least one credit of 84 bytes.
        burst: Located<Bytes> = Located::default_of(Bytes::new(168));
        /// Length of the data queue, in full packets, from which on data sent without a credit is dropped; `off`: it is
        /// treated like other data.
        unscheduled: OffOr<u32> = OffOr::On(2);
    }
}

/// A queue of credits, none, or one where a law sends credits.
#[derive(Clone, PartialEq, Debug)]
pub enum CreditChoice {
    /// The usual one where the scheme's laws send credits, none else.
    Auto,
    /// None.
    Off,
    /// A queue with these settings.
    On(CreditQueueTable),
}

impl Field for CreditChoice {
    const EXPECTS: &'static str =
        "\"auto\", \"off\" or { limit = 8, threshold = 2, burst = \"168B\", unscheduled = 2 }";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::String(keyword) if keyword == "auto" => Ok(Self::Auto),
            Value::String(keyword) if keyword == "off" => Ok(Self::Off),
            Value::Table(_) => CreditQueueTable::decode(node).map(Self::On),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Auto => Value::string("auto"),
            Self::Off => Value::string("off"),
            Self::On(table) => table.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "const": "auto" }, { "const": "off" }, CreditQueueTable::schema()] })
    }
    fn changed(&self, changes: &mut Changes) {
        if let Self::On(table) = self {
            table.changed(changes);
        }
    }
}

/// A law of the scheme that sends credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CreditLaw {
    Present,
    Absent,
}

impl CreditChoice {
    /// The queue as the simulator takes it, where a full data packet has `data` bytes on the wire.
    pub(crate) fn config(&self, data: u32, law: CreditLaw) -> Result<Option<CreditQueue>, SpannedError> {
        let table = match self {
            Self::Auto if law == CreditLaw::Present => CreditQueueTable::decode(&Node::empty_table())?,
            Self::Auto | Self::Off => return Ok(None),
            Self::On(table) => table.clone(),
        };
        let (credit, burst) = (CREDIT_SIZE, table.burst);
        if burst.get() < u64::from(credit) {
            return Err(SpannedError::new(
                burst.origin,
                format!("a bucket of {} never lets a credit of {credit} B out", *burst),
            )
            .label(format!("expected at least {credit} B")));
        }
        if burst.get() > 1 << 16 {
            return Err(
                SpannedError::new(burst.origin, format!("a bucket of {}", *burst)).label("expected at most 65536 B")
            );
        }
        let unscheduled = table.unscheduled.value().map(|packets| Bytes::new(u64::from(packets) * u64::from(data)));
        Ok(Some(CreditQueue {
            limit: table.limit.get(),
            threshold: table.threshold,
            credit,
            data,
            burst: *burst,
            unscheduled,
        }))
    }
}
