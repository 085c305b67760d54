//! `[port]`: buffers and marking of switch ports, by link class and by scheme.

use fabric::{InService, LinkClass, MarkAt, PortConfig};
use serde_json::{Value as Json, json};
use units::{Bytes, Frac, Rate, Span};

use crate::decode::{At, Field, table, unexpected, words};
use crate::error::Fault;
use crate::quantity::{Decimal, Share};
use crate::tree::{Node, Value};

/// Room for waiting packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// This much.
    Bytes(Bytes),
    /// So many times what the port sends within the longest base round trip of the network.
    Bdp(Decimal),
    /// Without limit.
    Unlimited,
}

impl Buffer {
    /// In bytes, where that is known: the port's rate and the network's longest base round trip are.
    fn bytes(self, rate: Rate, rtt: Span) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            // Room for one packet at least: a queue of none passes nothing.
            Self::Bdp(times) => Some(Bytes::new(times.of(rate.bytes_in(rtt).get()).max(1))),
            Self::Unlimited => None,
        }
    }
}

/// The longest time that a full buffer takes to drain: a mistake beyond it.
const LONGEST_BUFFER: Span = Span::from_s(100);

impl Field for Buffer {
    const EXPECTS: &'static str = "a size such as \"1MiB\", a multiple such as \"bdp\" or \"0.5bdp\", or \"unlimited\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match node.as_str() {
            Some("unlimited") => Ok(Self::Unlimited),
            Some(text) if text.ends_with("bdp") => {
                let times = text.trim_end_matches("bdp").trim();
                let times = if times.is_empty() { Some(Decimal::ONE) } else { Decimal::parse(times) };
                times.filter(|times| !times.is_zero()).map(Self::Bdp).ok_or_else(|| unexpected::<Self>(node))
            }
            _ => Bytes::decode(node).map(Self::Bytes),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Bytes(bytes) => bytes.encode(),
            Self::Bdp(Decimal::ONE) => Value::string("bdp"),
            Self::Bdp(times) => Value::string(format!("{times}bdp")),
            Self::Unlimited => Value::string("unlimited"),
        }
    }
    fn schema() -> Json {
        let bdp = json!({ "type": "string", "pattern": r"^([0-9.]+ ?)?bdp$" });
        json!({ "oneOf": [{ "const": "unlimited" }, bdp, Bytes::schema()] })
    }
}

/// A queue length at which marking begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// In bytes.
    Bytes(Bytes),
    /// As a share of the queue's size.
    Share(Decimal),
}

impl Threshold {
    fn of(self, size: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes::new(share.of(size.get())),
        }
    }
}

impl Field for Threshold {
    const EXPECTS: &'static str = "a percentage of the queue's size such as \"25%\", or a size such as \"100KB\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        if node.as_str().is_some_and(|text| text.ends_with('%')) {
            return Share::decode(node).map(|share| Self::Share(share.0));
        }
        match node.value {
            Value::String(_) | Value::Integer(_) => Bytes::decode(node).map(Self::Bytes),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Bytes(bytes) => bytes.encode(),
            // A share has at most 16 digits after the point as a percentage.
            Self::Share(share) => Value::string(percentage(*share)),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] })
    }
}

/// A share as a percentage, exact.
fn percentage(share: Decimal) -> String {
    let text = share.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let padded = format!("{part:0<2}");
    let (up, down) = padded.split_at(2);
    let number = format!("{whole}{up}");
    let number = number.trim_start_matches('0');
    let number = if number.is_empty() { "0" } else { number };
    if down.is_empty() { format!("{number}%") } else { format!("{number}.{down}%") }
}

const fn percent(parts: u64) -> Threshold {
    Threshold::Share(Decimal::new(parts, 2))
}

table! {
    /// Marking by RED on the queue that a packet finds.
    Red {
        /// No mark below this queue.
        min: At<Threshold> = At::default_of(percent(25));
        /// Every packet is marked from this queue on.
        max: At<Threshold> = At::default_of(percent(75));
        /// Probability of a mark just under `max`.
        probability: Share = Share(Decimal::ONE);
    }
}

table! {
    /// Marking by a step.
    Step {
        /// Every packet is marked from this queue on, none below.
        step: At<Threshold>;
    }
}

/// When a queue marks.
#[derive(Clone, PartialEq, Debug)]
pub enum Ecn {
    /// Never.
    Off,
    /// Between two thresholds.
    Red(Red),
    /// From a threshold on.
    Step(Step),
}

impl Ecn {
    fn thresholds(&self) -> Option<(At<Threshold>, At<Threshold>, Share)> {
        match self {
            Self::Off => None,
            Self::Red(red) => Some((red.min, red.max, red.probability)),
            Self::Step(step) => Some((step.step, step.step, Share(Decimal::ONE))),
        }
    }
}

impl Field for Ecn {
    const EXPECTS: &'static str = "{ min = \"25%\", max = \"75%\" }, { step = \"100KB\" } or \"off\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::String(word) if word == "off" => Ok(Self::Off),
            Value::Table(_) if node.get("step").is_some() => Step::decode(node).map(Self::Step),
            Value::Table(_) => Red::decode(node).map(Self::Red),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Off => Value::string("off"),
            Self::Red(red) => red.encode(),
            Self::Step(step) => step.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "const": "off" }, Red::schema(), Step::schema()] })
    }
}

table! {
    /// A phantom queue: filled by every packet, drained at a part of the line rate, never holding one.
    PhantomTable {
        /// Its occupancy never exceeds this.
        size: Bytes;
        /// Its drain rate as a share of the line rate, over 0 and at most 1.
        drain: At<Share> = At::default_of(Share(Decimal::new(9, 1)));
        /// No mark below this occupancy.
        min: At<Threshold> = At::default_of(percent(2));
        /// Every packet is marked from this occupancy on.
        max: At<Threshold> = At::default_of(percent(60));
        /// Probability of a mark just under `max`.
        probability: Share = Share(Decimal::ONE);
    }
}

/// A phantom queue, or none.
#[derive(Clone, PartialEq, Debug)]
pub enum Phantom {
    /// None.
    Off,
    /// This one.
    On(PhantomTable),
}

impl Field for Phantom {
    const EXPECTS: &'static str = "{ size = \"22.4MB\", drain = 0.9, min = \"2%\", max = \"60%\" } or \"off\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::String(word) if word == "off" => Ok(Self::Off),
            Value::Table(_) => PhantomTable::decode(node).map(Self::On),
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
        json!({ "oneOf": [{ "const": "off" }, PhantomTable::schema()] })
    }
}

words! {
    /// When marking is decided.
    MarkTime, "\"enqueue\" or \"dequeue\"" {
        /// On the queue that a packet finds.
        Enqueue = "enqueue",
        /// On the queue that it leaves behind.
        Dequeue = "dequeue",
    }
}

words! {
    /// How the packet in service counts.
    ServiceView, "\"remainder\", \"whole\" or \"excluded\"" {
        /// By what is left of it.
        Remainder = "remainder",
        /// Whole, as in htsim.
        Whole = "whole",
        /// Not at all, as in ns-3.
        Excluded = "excluded",
    }
}

table! {
    /// Every port of every switch. A host's own port queues without limit and never marks.
    Port {
        /// Room for waiting packets, the one in service included. `bdp`: what the port sends within the longest base RTT of the network; `0.5bdp`: half of that.
        buffer: At<Buffer> = At::default_of(Buffer::Bytes(Bytes::new(1 << 20)));
        /// When the queue marks.
        ecn: Ecn = Ecn::decode(&Node::empty_table())?;
        /// A phantom queue beside the real one; a packet is marked if either asks.
        phantom: Phantom = Phantom::Off;
        /// Whether acknowledgements go before all data.
        control_priority: bool = false;
        /// When marking is decided.
        mark_at: MarkTime = MarkTime::Enqueue;
        /// How the packet in service counts in the queue.
        in_service: ServiceView = ServiceView::Remainder;
        /// Share of packets that a link loses by chance, under 1.
        loss: At<Share> = At::default_of(Share(Decimal::ZERO));
        /// Other settings for ports towards hosts.
        host: Option<PortPatch> = None;
        /// Other settings for ports between edge and aggregation.
        edge: Option<PortPatch> = None;
        /// Other settings for ports between aggregation and core.
        core: Option<PortPatch> = None;
        /// Other settings for ports between core and border.
        border: Option<PortPatch> = None;
        /// Other settings for ports between datacenters.
        inter: Option<PortPatch> = None;
        /// Other settings for all other ports between switches.
        other: Option<PortPatch> = None;
    }
}

table! {
    /// What a scheme changes of `[port]`: the same keys, without defaults.
    PortOver {
        /// As in `[port]`.
        buffer: Option<At<Buffer>> = None;
        /// As in `[port]`; replaces it whole.
        ecn: Option<Ecn> = None;
        /// As in `[port]`; replaces it whole.
        phantom: Option<Phantom> = None;
        /// As in `[port]`.
        control_priority: Option<bool> = None;
        /// As in `[port]`.
        mark_at: Option<MarkTime> = None;
        /// As in `[port]`.
        in_service: Option<ServiceView> = None;
        /// As in `[port]`.
        loss: Option<At<Share>> = None;
        /// For ports towards hosts.
        host: Option<PortPatch> = None;
        /// For ports between edge and aggregation.
        edge: Option<PortPatch> = None;
        /// For ports between aggregation and core.
        core: Option<PortPatch> = None;
        /// For ports between core and border.
        border: Option<PortPatch> = None;
        /// For ports between datacenters.
        inter: Option<PortPatch> = None;
        /// For all other ports between switches.
        other: Option<PortPatch> = None;
    }
}

table! {
    /// Settings of one link class: the keys of `[port]`, without defaults.
    PortPatch {
        /// As in `[port]`.
        buffer: Option<At<Buffer>> = None;
        /// As in `[port]`; replaces it whole.
        ecn: Option<Ecn> = None;
        /// As in `[port]`; replaces it whole.
        phantom: Option<Phantom> = None;
        /// As in `[port]`.
        control_priority: Option<bool> = None;
        /// As in `[port]`.
        mark_at: Option<MarkTime> = None;
        /// As in `[port]`.
        in_service: Option<ServiceView> = None;
        /// As in `[port]`.
        loss: Option<At<Share>> = None;
    }
}

/// The settings of one port, nothing left open.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct PortSettings {
    pub buffer: At<Buffer>,
    pub ecn: Ecn,
    pub phantom: Phantom,
    pub control_priority: bool,
    pub mark_at: MarkTime,
    pub in_service: ServiceView,
    pub loss: At<Share>,
}

macro_rules! lay_over {
    ($settings:expr, $patch:expr) => {
        lay_over!($settings, $patch, buffer ecn phantom control_priority mark_at in_service loss)
    };
    ($settings:expr, $patch:expr, $($key:ident)*) => {
        $(if let Some(value) = &$patch.$key { $settings.$key = value.clone(); })*
    };
}

macro_rules! of_class {
    ($table:expr, $class:expr) => {
        match $class {
            LinkClass::Nic => None,
            LinkClass::Host => $table.host.as_ref(),
            LinkClass::Edge => $table.edge.as_ref(),
            LinkClass::Core => $table.core.as_ref(),
            LinkClass::Border => $table.border.as_ref(),
            LinkClass::Inter => $table.inter.as_ref(),
            LinkClass::Other => $table.other.as_ref(),
        }
    };
}

impl Port {
    /// Whether some buffer is a multiple of a bandwidth-delay product.
    pub(crate) fn asks_for_bdp(&self, over: Option<&PortOver>) -> bool {
        LinkClass::ALL.into_iter().any(|class| matches!(self.settings(class, over).buffer.value, Buffer::Bdp(_)))
    }

    /// The settings of a class under a scheme: the file's, the scheme's, the file's for the class, the scheme's
    /// for the class, each over those before.
    pub fn settings(&self, class: LinkClass, over: Option<&PortOver>) -> PortSettings {
        let mut settings = PortSettings {
            buffer: self.buffer,
            ecn: self.ecn.clone(),
            phantom: self.phantom.clone(),
            control_priority: self.control_priority,
            mark_at: self.mark_at,
            in_service: self.in_service,
            loss: self.loss,
        };
        if let Some(over) = over {
            lay_over!(settings, over);
        }
        if let Some(patch) = of_class!(self, class) {
            lay_over!(settings, patch);
        }
        if let Some(patch) = over.and_then(|over| of_class!(over, class)) {
            lay_over!(settings, patch);
        }
        settings
    }
}

impl PortSettings {
    /// The queue at which marking begins, if the port marks on its real queue and that is known without its rate.
    pub(crate) fn ecn_min(&self) -> Option<Bytes> {
        let (min, ..) = self.ecn.thresholds()?;
        match (min.value, self.buffer.value) {
            (Threshold::Share(_), Buffer::Bdp(_)) => None,
            (min, Buffer::Bytes(size)) => Some(min.of(size)),
            (min, Buffer::Bdp(_) | Buffer::Unlimited) => Some(min.of(Bytes::ZERO)),
        }
    }

    /// As the simulator takes it, in a network whose longest base round trip is `rtt`.
    pub(crate) fn config(&self, rate: Rate, delay: Span, rtt: Span) -> Result<PortConfig, Fault> {
        let marks = |(min, max, probability): (At<Threshold>, At<Threshold>, Share), size: Bytes| {
            let (low, high) = (min.of(size), max.of(size));
            if low > high {
                return Err(Fault::new(min.origin, format!("marking would begin at {low} and be certain from {high}"))
                    .label(format!("expected at most {high}"))
                    .at_least(max.origin));
            }
            Ok(fabric::Ecn { min: low, max: high, max_probability: probability.0.frac() })
        };
        let size = self.buffer.bytes(rate, rtt);
        let buffer = size.unwrap_or(Bytes::MAX);
        if size.is_some_and(|size| rate.time_for(size) > LONGEST_BUFFER) {
            return Err(Fault::new(
                self.buffer.origin,
                format!("a buffer of {buffer} at {rate} lasts over {LONGEST_BUFFER}"),
            )
            .label("expected less, or \"unlimited\""));
        }
        let ecn = self.ecn.thresholds().map(|thresholds| {
            let relative = [thresholds.0, thresholds.1].into_iter().find(|at| matches!(at.value, Threshold::Share(_)));
            match (size, relative) {
                (None, Some(at)) => Err(Fault::new(at.origin, "a percentage of an unlimited buffer is no threshold")
                    .label("expected a size")
                    .at_least(self.buffer.origin)),
                (size, _) => marks(thresholds, size.unwrap_or(Bytes::ZERO)),
            }
        });
        let phantom = match &self.phantom {
            Phantom::Off => None,
            Phantom::On(it) => {
                let drain = it.drain.0.frac();
                let drained = rate.scaled(drain);
                if drained < fabric::SLOWEST {
                    let what = format!("a phantom queue at {rate} that drains at {drained}");
                    return Err(Fault::new(it.drain.origin, what)
                        .label(format!("expected a share that leaves at least {}", fabric::SLOWEST)));
                }
                Some(fabric::Phantom { size: it.size, drain, ecn: marks((it.min, it.max, it.probability), it.size)? })
            }
        };
        let loss = self.loss.0.frac();
        if loss >= Frac::ONE {
            return Err(
                Fault::new(self.loss.origin, "a link cannot lose every packet").label("expected a share under 1")
            );
        }
        Ok(PortConfig {
            rate,
            delay,
            buffer,
            ecn: ecn.transpose()?,
            phantom,
            control_priority: self.control_priority,
            mark_at: match self.mark_at {
                MarkTime::Enqueue => MarkAt::Enqueue,
                MarkTime::Dequeue => MarkAt::Dequeue,
            },
            in_service: match self.in_service {
                ServiceView::Remainder => InService::Remainder,
                ServiceView::Whole => InService::Whole,
                ServiceView::Excluded => InService::Excluded,
            },
            loss,
            gate: fabric::Gate::default(),
        })
    }
}
