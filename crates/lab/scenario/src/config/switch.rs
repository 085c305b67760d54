//! `[switch]`: a buffer that all ports of a switch share, pauses, and reports of ports; by tier and by scheme.

use std::num::NonZeroU16;

use serde_json::{Value as Json, json};
use units::Bytes;

use super::host::PortReports;
use super::layered::layered;
use super::{Auto, OffOr};
use crate::decode::{Field, Located, table};
use crate::error::SpannedError;
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// Buffers of a scheme's switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SwitchBuffers {
    /// Shared by the ports of a switch.
    Shared,
    PerPort,
}

/// Buffer of a whole switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchBuffer {
    /// A number of bytes.
    Bytes(Bytes),
    /// Without limit.
    Unlimited,
}

impl SwitchBuffer {
    /// In bytes; [`Bytes::MAX`] without limit.
    pub fn bytes(self) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Unlimited => Bytes::MAX,
        }
    }
}

impl Field for SwitchBuffer {
    const EXPECTS: &'static str = "a size such as \"32MiB\", or \"unlimited\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        if node.as_str() == Some("unlimited") { Ok(Self::Unlimited) } else { Bytes::decode(node).map(Self::Bytes) }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Bytes(bytes) => bytes.encode(),
            Self::Unlimited => Value::string("unlimited"),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "const": "unlimited" }, Bytes::schema()] })
    }
}

const FRAME: NonZeroU16 = match NonZeroU16::new(64) {
    Some(size) => size,
    None => NonZeroU16::MIN,
};

table! {
    /// Priority flow control (IEEE 802.1Qbb).
    PfcTable {
        /// Size of a pause frame on the wire, in bytes.
        frame: NonZeroU16 = FRAME;
        /// Makes the switches relays: they forward pauses, and request pauses themselves where `alpha` or `xoff`
        /// requires it (SWING's relays only before their buffer would overflow). In a loop of relays a pause circulates
        /// for ever.
        relay: bool = false;
    }
}

impl OffOr<PfcTable> {
    /// Returns the simulator's settings.
    pub(crate) fn config(&self) -> Option<fabric::Pfc> {
        self.as_ref().map(|table| fabric::Pfc { frame: table.frame.get().into(), relay: table.relay })
    }
}

layered! {
    /// Switches whose ports share one buffer. Without this table every port has a queue of its own.
    Switch {
        /// Room for all packets that wait in a switch.
        buffer: Located<SwitchBuffer> = Located::default_of(SwitchBuffer::Bytes(Bytes::new(32 << 20)));
        /// Part of `buffer` that is reserved for each ingress port and data class in use.
        reserved: Located<Bytes> = Located::default_of(Bytes::new(4_096));
        /// Egress limit, as a multiple of the free shared buffer: a packet is dropped where its egress queue holds this
        /// much, or `off`.
        egress_alpha: Located<OffOr<Decimal>> = Located::default_of(OffOr::Off);
        /// Lets ports report themselves to packets that request it (INT). `auto`: if a law of the scheme reads reports.
        int: Auto<bool> = Auto::Auto;
        /// Lets ports of these switches mark; with false none does, whatever `[port]` sets.
        ecn_marking: bool = true;
    }
    open {}
    alone {
        /// Lets switches pause their senders (PFC); otherwise packets that find no room are dropped.
        pfc: OffOr<PfcTable> = OffOr::Off;
    }
    places {
        /// Other settings for switches with hosts attached and without links between datacenters.
        edge, "For switches with hosts attached.";
        /// Other settings for switches between edge and core.
        aggregation, "For switches between edge and core.";
        /// Other settings for all other switches.
        core, "For all other switches.";
        /// Other settings for switches at the links between datacenters.
        border, "For switches at the links between datacenters.";
    }
    as "As in `[switch]`.";
    /// Changes of a scheme to `[switch]`: the same keys, without defaults.
    over SwitchOverrides;
    /// Settings of one tier of switches: keys of `[switch]`, without defaults.
    patch SwitchClassOverrides;
    /// The settings of one switch, nothing left open.
    settings SwitchSettings { pfc: OffOr<PfcTable>, }
}

/// Tier of a switch in a topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// Switch with hosts attached.
    Edge,
    /// Between edge and core.
    Aggregation,
    /// None of the others.
    Core,
    /// At a link between datacenters.
    Border,
    /// A relay in such a link.
    Relay,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 5] = [Self::Edge, Self::Aggregation, Self::Core, Self::Border, Self::Relay];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Aggregation => "aggregation",
            Self::Core => "core",
            Self::Border => "border",
            Self::Relay => "relay",
        }
    }
}

macro_rules! of_tier {
    ($table:expr, $tier:expr) => {
        match $tier {
            Tier::Edge => $table.edge.as_ref(),
            Tier::Aggregation => $table.aggregation.as_ref(),
            Tier::Core => $table.core.as_ref(),
            Tier::Border => $table.border.as_ref(),
            Tier::Relay => None,
        }
    };
}

impl Switch {
    /// With every default.
    pub(crate) fn of_defaults() -> Result<Self, SpannedError> {
        Self::decode(&Node::empty_table())
    }

    /// The settings of a tier under a scheme: the file's, the scheme's, the file's for the tier, the scheme's for the
    /// tier, each over those before.
    pub fn settings(&self, tier: Tier, over: Option<&SwitchOverrides>) -> SwitchSettings {
        let pfc = over.and_then(|over| over.pfc.as_ref()).unwrap_or(&self.pfc);
        let mut settings = SwitchSettings::of(self, pfc.clone());
        if let Some(over) = over {
            settings.take_over(over);
        }
        for patch in [of_tier!(self, tier), over.and_then(|over| of_tier!(over, tier))].into_iter().flatten() {
            settings.take_patch(patch);
        }
        settings
    }
}

impl SwitchSettings {
    /// Refuses settings that let no packet pass.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        if self.egress_alpha.value().is_some_and(Decimal::is_zero) {
            return Err(SpannedError::new(self.egress_alpha.origin, "with `egress_alpha` 0 every packet is dropped")
                .label("expected over 0, or \"off\""));
        }
        Ok(())
    }

    /// Returns the simulator's settings.
    pub(crate) fn config(&self, reports: PortReports) -> fabric::Switch {
        fabric::Switch {
            buffer: self.buffer.bytes(),
            reserve: *self.reserved,
            egress_alpha: self.egress_alpha.value().map(Decimal::frac),
            pfc: self.pfc.config(),
            int: self.int.value().unwrap_or(reports == PortReports::Carried),
        }
    }
}
