//! `[host]`: how all hosts behave.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};

use fabric::PortConfig;
use serde_json::{Value as Json, json};
use sim::{HostConfig, Spray};
use units::Span;

use crate::decode::{At, Field, table, words};
use crate::error::Fault;
use crate::tree::{Node, Value};

/// A value, or what fits the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auto<T> {
    /// What fits the path.
    Auto,
    /// This.
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

impl Field for Auto<Span> {
    const EXPECTS: &'static str = "\"auto\" or a time such as \"20us\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        if node.as_str() == Some("auto") { Ok(Self::Auto) } else { Span::decode(node).map(Self::Set) }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Auto => Value::string("auto"),
            Self::Set(span) => span.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "const": "auto" }, Span::schema()] })
    }
}

words! {
    /// How packets choose among equal paths.
    PathChoice, "\"ecmp\", \"repath\" or \"spray\"" {
        /// One path a flow, by a hash.
        Ecmp = "ecmp",
        /// One path a flow, another one after each timeout.
        Repath = "repath",
        /// Each packet its own.
        Spray = "spray",
    }
}

const PAYLOAD: NonZeroU32 = match NonZeroU32::new(4096) {
    Some(payload) => payload,
    None => NonZeroU32::MIN,
};
const ACK_SIZE: NonZeroU16 = match NonZeroU16::new(64) {
    Some(size) => size,
    None => NonZeroU16::MIN,
};
const ENTROPIES: NonZeroU16 = match NonZeroU16::new(256) {
    Some(entropies) => entropies,
    None => NonZeroU16::MIN,
};

table! {
    /// How all hosts behave.
    Host {
        /// Payload of a full packet, in bytes; with the header at most 65535.
        payload: At<NonZeroU32> = At::default_of(PAYLOAD);
        /// Header of a data packet, in bytes.
        header: At<u32> = At::default_of(64);
        /// Size of an acknowledgement on the wire, in bytes, 1 to 65535.
        ack_size: At<NonZeroU16> = At::default_of(ACK_SIZE);
        /// Packets that one acknowledgement answers.
        ack_every: NonZeroU8 = NonZeroU8::MIN;
        /// How long an acknowledgement may be held back where `ack_every` is over 1. `auto`: a quarter of the base RTT.
        ack_delay: Auto<Span> = Auto::Auto;
        /// `ecmp`: one path a flow. `repath`: one path a flow, another one after each of its timeouts. `spray`: each packet draws its own.
        path: PathChoice = PathChoice::Ecmp;
        /// How many paths `spray` draws from.
        entropies: NonZeroU16 = ENTROPIES;
        /// Reordering tolerance before a packet counts as lost. `auto`: a quarter of the base RTT, and with `spray` at least the longest wait in all queues of the path.
        reordering: Auto<Span> = Auto::Auto;
        /// Least retransmission timeout. `auto`: the base RTT with every queue of the path full, or 5/4 of the base RTT if that is more.
        rto_min: Auto<Span> = Auto::Auto;
        /// Largest retransmission timeout.
        rto_max: Span = Span::from_s(4);
        /// Whether laws are told of timeouts.
        timeouts_cut: bool = true;
    }
}

table! {
    /// What a scheme changes of `[host]`: the same keys, without defaults.
    HostPatch {
        /// As in `[host]`.
        payload: Option<At<NonZeroU32>> = None;
        /// As in `[host]`.
        header: Option<At<u32>> = None;
        /// As in `[host]`.
        ack_size: Option<At<NonZeroU16>> = None;
        /// As in `[host]`.
        ack_every: Option<NonZeroU8> = None;
        /// As in `[host]`.
        ack_delay: Option<Auto<Span>> = None;
        /// As in `[host]`.
        path: Option<PathChoice> = None;
        /// As in `[host]`.
        entropies: Option<NonZeroU16> = None;
        /// As in `[host]`.
        reordering: Option<Auto<Span>> = None;
        /// As in `[host]`.
        rto_min: Option<Auto<Span>> = None;
        /// As in `[host]`.
        rto_max: Option<Span> = None;
        /// As in `[host]`.
        timeouts_cut: Option<bool> = None;
    }
}

impl Host {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let wire = u64::from(self.payload.get()) + u64::from(*self.header);
        if wire > 65_535 {
            return Err(Fault::new(self.payload.origin, format!("a packet of {wire} B on the wire is over 65535 B"))
                .label("payload and header are at most 65535 together")
                .at_least(self.header.origin));
        }
        Ok(())
    }

    /// With a scheme's changes.
    pub(crate) fn with(&self, patch: Option<&HostPatch>) -> Self {
        let mut host = self.clone();
        let Some(patch) = patch else { return host };
        macro_rules! take {
            ($($key:ident),*) => {$(if let Some(value) = patch.$key { host.$key = value; })*};
        }
        take!(
            payload,
            header,
            ack_size,
            ack_every,
            ack_delay,
            path,
            entropies,
            reordering,
            rto_min,
            rto_max,
            timeouts_cut
        );
        host
    }

    /// As the simulator takes it.
    pub(crate) fn config(&self) -> HostConfig {
        HostConfig {
            mss: self.payload.get(),
            header: *self.header,
            ack_size: u32::from(self.ack_size.get()),
            ack_every: self.ack_every.get(),
            ack_delay: self.ack_delay.value(),
            spray: match self.path {
                PathChoice::Ecmp => Spray::PerFlow,
                PathChoice::Repath => Spray::AfterTimeout,
                PathChoice::Spray => Spray::PerPacket(self.entropies.get()),
            },
            reordering: self.reordering.value(),
            rto_min: self.rto_min.value(),
            rto_max: self.rto_max,
            timeouts_cut: self.timeouts_cut,
            ..HostConfig::default()
        }
    }

    /// A host's own port: no limit, no marks.
    pub(crate) fn nic(rate: units::Rate, delay: Span) -> PortConfig {
        PortConfig::new(rate, delay)
    }
}
