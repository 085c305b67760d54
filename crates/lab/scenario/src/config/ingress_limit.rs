//! Ingress limits: bytes that the packets of one cable may hold of the shared buffer of the switch at its end. Keys of
//! `[port]` that need `[switch]`.

use fabric::{IngressLimit, Limit};
use serde_json::{Value as Json, json};
use units::{Bytes, Rate, Span};

use super::PortBuffer;
use crate::decode::{Field, Located, unexpected};
use crate::error::SpannedError;
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// Default multiple of the free shared buffer that a cable's packets may hold.
pub(super) const ALPHA: Decimal = Decimal::new(125, 3);
/// Default number of bytes by which the held bytes must fall before a sender resumes.
pub(super) const HYSTERESIS: Bytes = Bytes::new(3_072);
/// The largest `alpha`.
const MAX_ALPHA: u64 = 1_024;

/// Room for packets that arrive after a pause was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Headroom {
    /// Bytes that may still arrive over the cable, if its switch pauses at all.
    Auto,
    /// A number of bytes.
    Bytes(Bytes),
    /// A multiple of the bytes that the cable carries in its round trip.
    Bdp(Decimal),
}

impl Headroom {
    /// Returns the headroom of a cable in bytes.
    pub(crate) fn bytes(self, cable: &CablePorts) -> Bytes {
        match self {
            Self::Auto => cable.pfc.map_or(Bytes::ZERO, |pfc| {
                fabric::headroom(cable.rate, cable.rate, cable.delay, cable.packet, pfc.frame, cable.classes)
            }),
            Self::Bytes(bytes) => bytes,
            Self::Bdp(times) => Bytes::new(times.of(cable.rate.bytes_in(cable.delay.times(2)).get())),
        }
    }
}

impl Field for Headroom {
    const EXPECTS: &'static str = "\"auto\", a size such as \"100KB\", or a multiple such as \"bdp\" or \"1.5bdp\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        if node.as_str() == Some("auto") {
            return Ok(Self::Auto);
        }
        match PortBuffer::decode(node) {
            Ok(PortBuffer::Bdp(times)) => Ok(Self::Bdp(times)),
            Ok(PortBuffer::Bytes(bytes)) => Ok(Self::Bytes(bytes)),
            Ok(PortBuffer::Unlimited) | Err(_) => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Auto => Value::string("auto"),
            Self::Bytes(bytes) => bytes.encode(),
            Self::Bdp(times) => PortBuffer::Bdp(*times).encode(),
        }
    }
    fn schema() -> Json {
        let bdp = json!({ "type": "string", "pattern": r"^([0-9.]+ ?)?bdp$" });
        json!({ "oneOf": [{ "const": "auto" }, bdp, Bytes::schema()] })
    }
}

/// Threshold at which a cable's packets hold too much of a shared buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum XoffThreshold {
    /// A multiple of the free shared buffer.
    Alpha(Located<Decimal>),
    /// A number of bytes.
    Bytes(Located<Bytes>),
}

/// Threshold at which the sender of a cable resumes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum XonThreshold {
    /// A number of bytes below the pause threshold.
    Less(Located<Bytes>),
    /// A number of held bytes, or fewer.
    At(Located<Bytes>),
}

/// A cable's two ports, as far as one depends on the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CablePorts {
    /// The rate in both directions.
    pub(crate) rate: Rate,
    /// The propagation delay.
    pub(crate) delay: Span,
    /// The longest base round trip of the network.
    pub(crate) rtt: Span,
    /// The largest packet on the wire.
    pub(crate) packet: u32,
    /// Pauses, where switches send them.
    pub(crate) pfc: Option<fabric::Pfc>,
    /// Number of data classes.
    pub(crate) classes: u64,
}

/// Returns the limits of a cable's packets in a shared buffer.
pub(super) fn ingress_limit(
    off: XoffThreshold,
    resume: XonThreshold,
    headroom: Headroom,
    cable: &CablePorts,
) -> Result<IngressLimit, SpannedError> {
    let limit = match off {
        XoffThreshold::Alpha(alpha) if alpha.is_zero() || alpha.of(1_000_000) > MAX_ALPHA * 1_000_000 => {
            return Err(SpannedError::new(alpha.origin, format!("packets may hold {} times what is left", *alpha))
                .label(format!("expected over 0, up to {MAX_ALPHA}")));
        }
        XoffThreshold::Alpha(alpha) => Limit::Alpha(alpha.frac()),
        XoffThreshold::Bytes(bytes) => Limit::Bytes(*bytes),
    };
    let hysteresis = match (resume, off) {
        (XonThreshold::Less(bytes), _) => *bytes,
        (XonThreshold::At(xon), XoffThreshold::Bytes(xoff)) if *xon > *xoff => {
            return Err(SpannedError::new(
                xon.origin,
                format!("senders would resume at {} but pause at {}", *xon, *xoff),
            )
            .label(format!("expected at most `xoff`, {}", *xoff)));
        }
        (XonThreshold::At(xon), XoffThreshold::Bytes(xoff)) => *xoff - *xon,
        (XonThreshold::At(xon), XoffThreshold::Alpha(_)) => {
            return Err(SpannedError::new(xon.origin, "`xon` needs `xoff`: a multiple of what is left is no size")
                .label("without `xoff`")
                .help("with `alpha`, give the decrease instead: xon_offset = \"3KiB\""));
        }
    };
    Ok(IngressLimit { xoff: limit, xon_offset: hysteresis, headroom: headroom.bytes(cable) })
}
