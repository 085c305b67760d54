//! `[port]`: buffers and marking of switch ports, by link class and by scheme.

use fabric::{Discipline, InService, LinkClass, MarkAt, PortConfig};
use serde_json::{Value as Json, json};
use units::{Bytes, Frac, Rate, Span, Tick};

use super::choice::OffOr;
use super::codel::{CoDelTable, FqCoDelTable};
use super::credit::CreditChoice;
use super::failure::LossBursts;
use super::impair::ImpairTable;
use super::ingress_limit::{ALPHA, CablePorts, HYSTERESIS, Headroom, XoffThreshold, XonThreshold, ingress_limit};
use super::layered::layered;
use super::topology::either;
use super::trim::Trimming;
use crate::decode::{Changes, Field, Located, table, unexpected, words};
use crate::error::{SourceSpan, SpannedError};
use crate::quantity::{Decimal, Share};
use crate::tree::{Node, Value};

/// Room for waiting packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortBuffer {
    /// A number of bytes.
    Bytes(Bytes),
    /// A multiple of the bytes that the port sends within the longest base round trip of the network.
    Bdp(Decimal),
    /// Without limit.
    Unlimited,
}

impl PortBuffer {
    /// Returns the size in bytes, from the port's rate and the network's longest base round trip; none without limit.
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
const MAX_BUFFER: Span = Span::from_s(100);

impl Field for PortBuffer {
    const EXPECTS: &'static str = "a size such as \"1MiB\", a multiple such as \"bdp\" or \"0.5bdp\", or \"unlimited\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
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
    /// A share of the queue's size.
    Share(Decimal),
    /// The bytes that the port sends in this time at its line rate.
    Time(Span),
}

impl Threshold {
    fn of(self, size: Bytes, rate: Rate) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes::new(share.of(size.get())),
            Self::Time(span) => rate.bytes_in(span),
        }
    }
}

impl Field for Threshold {
    const EXPECTS: &'static str = "a percentage of the queue's size such as \"25%\", a size such as \"100KB\", or a time of the port's line rate such as \"32us\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        if node.as_str().is_some_and(|text| text.ends_with('%')) {
            return Share::decode(node).map(|share| Self::Share(share.0));
        }
        if node.as_str().is_some_and(|text| text.ends_with('s')) {
            return match Span::decode(node)? {
                span if span > MAX_BUFFER => Err(SpannedError::new(node.origin, format!("a queue that lasts {span}"))
                    .label(format!("expected at most {MAX_BUFFER}"))),
                span => Ok(Self::Time(span)),
            };
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
            Self::Time(span) => span.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] })
    }
}

/// A share as a percentage, exact.
fn percentage(share: Decimal) -> String {
    let text = share.to_string();
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let padded = format!("{fraction:0<2}");
    let (up, down) = padded.split_at(2);
    let number = format!("{integer}{up}");
    let number = number.trim_start_matches('0');
    let number = if number.is_empty() { "0" } else { number };
    if down.is_empty() { format!("{number}%") } else { format!("{number}.{down}%") }
}

const fn percent(parts: u64) -> Threshold {
    Threshold::Share(Decimal::new(parts, 2))
}

table! {
    /// Marking by RED on the queue that a packet finds.
    RedMarking {
        /// No mark below this queue.
        min: Located<Threshold> = Located::default_of(percent(25));
        /// Every packet is marked from this queue on.
        max: Located<Threshold> = Located::default_of(percent(75));
        /// Probability of a mark just under `max`.
        probability: Share = Share(Decimal::ONE);
    }
}

table! {
    /// Marking by a step.
    StepMarking {
        /// Every packet is marked from this queue on, none below.
        step: Located<Threshold>;
    }
}

/// Marking of a queue.
#[derive(Clone, PartialEq, Debug)]
pub enum Ecn {
    /// No marking.
    Off,
    /// Between two thresholds.
    Red(RedMarking),
    /// From a threshold on.
    Step(StepMarking),
}

/// Thresholds of marking, and its probability at the upper one.
struct MarkThresholds {
    min: Located<Threshold>,
    max: Located<Threshold>,
    probability: Share,
}

impl MarkThresholds {
    /// Returns whether the file has one of them; otherwise both are defaults.
    fn are_set(&self) -> bool {
        [self.min, self.max].iter().any(|at| at.origin != SourceSpan::NOWHERE)
    }
}

impl Ecn {
    fn thresholds(&self) -> Option<MarkThresholds> {
        match self {
            Self::Off => None,
            Self::Red(red) => Some(MarkThresholds { min: red.min, max: red.max, probability: red.probability }),
            Self::Step(step) => {
                Some(MarkThresholds { min: step.step, max: step.step, probability: Share(Decimal::ONE) })
            }
        }
    }
}

impl Field for Ecn {
    const EXPECTS: &'static str = "{ min = \"25%\", max = \"75%\" }, { step = \"100KB\" } or \"off\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::String(keyword) if keyword == "off" => Ok(Self::Off),
            Value::Table(_) if node.get("step").is_some() => StepMarking::decode(node).map(Self::Step),
            Value::Table(_) => RedMarking::decode(node).map(Self::Red),
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
        json!({ "oneOf": [{ "const": "off" }, RedMarking::schema(), StepMarking::schema()] })
    }
    fn changed(&self, changes: &mut Changes) {
        match self {
            Self::Off => {}
            Self::Red(red) => red.changed(changes),
            Self::Step(step) => step.changed(changes),
        }
    }
}

table! {
    /// A phantom queue: filled by every packet, drained at a part of the line rate, never holding one.
    PhantomQueue {
        /// Its occupancy never exceeds this.
        size: Bytes;
        /// Its drain rate as a share of the line rate, over 0 and at most 1.
        drain: Located<Share> = Located::default_of(Share(Decimal::new(9, 1)));
        /// No mark below this occupancy.
        min: Located<Threshold> = Located::default_of(percent(2));
        /// Every packet is marked from this occupancy on.
        max: Located<Threshold> = Located::default_of(percent(60));
        /// Probability of a mark just under `max`.
        probability: Share = Share(Decimal::ONE);
    }
}

/// A phantom queue, or none.
#[derive(Clone, PartialEq, Debug)]
pub enum Phantom {
    /// None.
    Off,
    /// A phantom queue with these settings.
    On(PhantomQueue),
}

impl Field for Phantom {
    const EXPECTS: &'static str = "{ size = \"22.4MB\", drain = 0.9, min = \"2%\", max = \"60%\" } or \"off\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::String(keyword) if keyword == "off" => Ok(Self::Off),
            Value::Table(_) => PhantomQueue::decode(node).map(Self::On),
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
        json!({ "oneOf": [{ "const": "off" }, PhantomQueue::schema()] })
    }
    fn changed(&self, changes: &mut Changes) {
        if let Self::On(table) = self {
            table.changed(changes);
        }
    }
}

words! {
    /// Time of the marking decision.
    MarkTime, "\"enqueue\" or \"dequeue\"" {
        /// On the queue that a packet finds.
        Enqueue = "enqueue",
        /// On the queue that it leaves behind.
        Dequeue = "dequeue",
    }
}

words! {
    /// Contribution of the packet in service to the queue.
    ServiceView, "\"remaining\", \"all\" or \"none\"" {
        /// Its remaining bytes.
        Remaining = "remaining",
        /// All of it, as in htsim.
        All = "all",
        /// No part of it, as in ns-3.
        None = "none",
    }
}

layered! {
    /// Every port of every switch. A host's own port queues without limit and never marks.
    Port {
        /// Room for waiting packets, the one in service included. `bdp`: what the port sends within the longest base RTT of the network; `0.5bdp`: half of that.
        buffer: Located<PortBuffer> = Located::default_of(PortBuffer::Bytes(Bytes::new(1 << 20)));
        /// ECN marking by the queue.
        ecn: Ecn = Ecn::decode(&Node::empty_table())?, "Replaces it whole.";
        /// Phantom queue in addition to the real one; a packet is marked if either marks it.
        phantom: Phantom = Phantom::Off, "Replaces it whole.";
        /// Strict priority of acknowledgements over all data.
        control_priority: bool = false;
        /// Packet trimming: data that finds no room loses its payload alone; marks then depend on the data that waits.
        /// Not with `[switch]`, nor where ports report themselves.
        trim: Located<OffOr<Trimming>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// CoDel in place of the FIFO. Not with another marking, `control_priority`, `trim`, `credit_queue` or `[switch]`.
        codel: Located<OffOr<CoDelTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// FQ-CoDel in place of the FIFO; the same limits.
        fq_codel: Located<OffOr<FqCoDelTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// Time of the marking decision: when a packet arrives, on the queue that it finds (`enqueue`), or when it
        /// leaves, on the queue that it leaves behind (`dequeue`).
        mark_at: MarkTime = MarkTime::Enqueue;
        /// Contribution of the packet in service to the queue: its remaining bytes, all of it (as in htsim) or nothing (as in
        /// ns-3).
        in_service_bytes: ServiceView = ServiceView::Remaining;
        /// Share of packets that a link loses by chance, under 1.
        loss_probability: Located<Share> = Located::default_of(Share(Decimal::ZERO));
        /// Burst losses, in addition to `loss`.
        loss_bursts: OffOr<LossBursts> = OffOr::Off, "Replaces it whole.";
        /// Impairments of the link: jitter, reordering, duplication, corruption, MTU, a policer, rates by time, ACK
        /// aggregation.
        impair: Located<OffOr<ImpairTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// With `[switch]` and `pfc`: room for what arrives after a pause was sent, for each data class in use. `auto`: what the cable may bring; `bdp`: what it carries in its own round trip.
        headroom: Headroom = Headroom::Auto;
    }
    open {
        /// With `[switch]`: ingress limit, the buffer that packets of the cable may hold, as a multiple of the free
        /// shared buffer; at the limit its sender is paused, or packets are dropped. Either this or `xoff`.
        alpha: Located<Decimal>, "Takes the place of `xoff`.";
        /// With `[switch]`: the same limit in bytes. By default `alpha = 0.125`.
        xoff: Located<Bytes>, "Takes the place of `alpha`.";
        /// With `[switch]`: decrease of what is held after which the sender resumes. Either this or `xon`.
        xon_offset: Located<Bytes>, "Takes the place of `xon`.";
        /// With `[switch]` and `xoff`: the sender resumes when no more than this is held. By default `xon_offset = 3072`.
        xon: Located<Bytes>, "Takes the place of `xon_offset`.";
    }
    alone {
        /// A credit queue in addition to the data queue, in hosts too. `auto`: where the scheme's laws send credits.
        credit_queue: CreditChoice = CreditChoice::Auto, "Replaces it whole.";
    }
    places {
        /// Other settings for ports towards hosts.
        host, "For ports towards hosts.";
        /// Other settings for ports between edge and aggregation.
        edge, "For ports between edge and aggregation.";
        /// Other settings for ports between aggregation and core.
        core, "For ports between aggregation and core.";
        /// Other settings for ports between core and border.
        border, "For ports between core and border.";
        /// Other settings for ports between datacenters.
        inter, "For ports between datacenters.";
        /// Other settings for all other ports between switches.
        other, "For all other ports between switches.";
    }
    as "As in `[port]`.";
    /// Changes of a scheme to `[port]`: the same keys, without defaults.
    over PortOverrides;
    /// Settings of one link class: the keys of `[port]`, without defaults.
    patch PortClassOverrides;
    /// The settings of one port, nothing left open.
    settings PortSettings { off: XoffThreshold, resume: XonThreshold, }
}

/// Keys that take each other's place.
macro_rules! lay_gate {
    ($settings:expr, $patch:expr) => {
        if let Some(alpha) = $patch.alpha {
            $settings.off = XoffThreshold::Alpha(alpha);
        } else if let Some(bytes) = $patch.xoff {
            $settings.off = XoffThreshold::Bytes(bytes);
        }
        if let Some(bytes) = $patch.xon_offset {
            $settings.resume = XonThreshold::Less(bytes);
        } else if let Some(bytes) = $patch.xon {
            $settings.resume = XonThreshold::At(bytes);
        }
    };
}

/// Refuses two keys of one table for one setting.
macro_rules! check_gate {
    ($table:expr) => {
        either($table.alpha.as_ref(), "alpha", $table.xoff.as_ref(), "xoff")
            .and_then(|()| either($table.xon_offset.as_ref(), "xon_offset", $table.xon.as_ref(), "xon"))
    };
}

macro_rules! check_tables {
    ($table:expr) => {{
        check_gate!($table)?;
        let classes = [&$table.host, &$table.edge, &$table.core, &$table.border, &$table.inter, &$table.other];
        classes.into_iter().flatten().try_for_each(|patch| check_gate!(patch))
    }};
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

impl PortOverrides {
    /// The settings of a class of links.
    pub(crate) fn of_class(&self, class: LinkClass) -> Option<&PortClassOverrides> {
        of_class!(self, class)
    }

    /// Refuses two keys for one setting.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        check_tables!(self)
    }
}

impl PortClassOverrides {
    /// Refuses two keys for one setting.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        check_gate!(self)
    }
}

impl Port {
    /// The settings of a class of links.
    pub(crate) fn of_class(&self, class: LinkClass) -> Option<&PortClassOverrides> {
        of_class!(self, class)
    }

    /// Refuses two keys for one setting.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        check_tables!(self)
    }

    /// Fills in the defaults for switches that share their buffers: ports then have no limit of their own.
    pub(crate) fn share(&mut self) {
        if self.buffer.origin == SourceSpan::NOWHERE {
            self.buffer.value = PortBuffer::Unlimited;
        }
        // The default thresholds are shares of a limit that is not there.
        if self.ecn.thresholds().is_some_and(|thresholds| !thresholds.are_set()) {
            self.ecn = Ecn::Off;
        }
        if self.alpha.is_none() && self.xoff.is_none() {
            self.alpha = Some(Located::default_of(ALPHA));
        }
        if self.xon_offset.is_none() && self.xon.is_none() {
            self.xon_offset = Some(Located::default_of(HYSTERESIS));
        }
    }

    /// Removes the defaults that [`Port::share`] filled in.
    pub(crate) fn unshare(&mut self) {
        self.alpha = self.alpha.filter(|alpha| alpha.origin != SourceSpan::NOWHERE);
        self.xon_offset = self.xon_offset.filter(|hysteresis| hysteresis.origin != SourceSpan::NOWHERE);
    }

    /// Returns whether the file has a key that applies only to switches with a shared buffer.
    pub(crate) fn says_gate(&self) -> bool {
        self.alpha.is_some() || self.xoff.is_some() || self.xon_offset.is_some() || self.xon.is_some()
    }

    /// The queue of credits under a scheme.
    pub(crate) fn credit_queue<'a>(&'a self, over: Option<&'a PortOverrides>) -> &'a CreditChoice {
        over.and_then(|over| over.credit_queue.as_ref()).unwrap_or(&self.credit_queue)
    }

    /// Returns whether some buffer is a multiple of a bandwidth-delay product.
    pub(crate) fn asks_for_bdp(&self, over: Option<&PortOverrides>) -> bool {
        LinkClass::ALL.into_iter().any(|class| matches!(self.settings(class, over).buffer.value, PortBuffer::Bdp(_)))
    }

    /// The settings of a class under a scheme: the file's, the scheme's, the file's for the class, the scheme's
    /// for the class, each over those before.
    pub fn settings(&self, class: LinkClass, over: Option<&PortOverrides>) -> PortSettings {
        let (off, resume) =
            (XoffThreshold::Alpha(Located::default_of(ALPHA)), XonThreshold::Less(Located::default_of(HYSTERESIS)));
        let mut settings = PortSettings::of(self, off, resume);
        lay_gate!(settings, self);
        if let Some(over) = over {
            settings.take_over(over);
            lay_gate!(settings, over);
        }
        let of_class = [of_class!(self, class), over.and_then(|over| of_class!(over, class))];
        of_class.into_iter().fold(settings, PortSettings::with)
    }
}

impl PortSettings {
    /// With the settings of one cable.
    pub(crate) fn with(mut self, patch: Option<&PortClassOverrides>) -> Self {
        if let Some(patch) = patch {
            self.take_patch(patch);
            lay_gate!(self, patch);
        }
        self
    }

    /// The queue at which marking begins, if the port marks on its real queue and that is known: a time is only where
    /// all such ports have one `rate`.
    pub(crate) fn ecn_min(&self, rate: Option<Rate>) -> Option<Bytes> {
        let is_fifo = self.codel.as_ref().is_none() && self.fq_codel.as_ref().is_none();
        let min = self.ecn.thresholds().filter(|thresholds| is_fifo || thresholds.are_set())?.min;
        match (min.value, self.buffer.value) {
            (Threshold::Share(_), PortBuffer::Bdp(_)) => None,
            (Threshold::Time(span), _) => rate.map(|rate| rate.bytes_in(span)),
            (min, PortBuffer::Bytes(size)) => Some(min.of(size, Rate::MAX)),
            (min, PortBuffer::Bdp(_) | PortBuffer::Unlimited) => Some(min.of(Bytes::ZERO, Rate::MAX)),
        }
    }

    /// The error of a threshold in per cent of an unlimited buffer. The default thresholds are in per cent, too.
    fn relative_to_nothing(&self, threshold: Located<Threshold>) -> SpannedError {
        let is_explicit = threshold.origin != SourceSpan::NOWHERE;
        let (message, label) = if is_explicit {
            ("marks in per cent of an unlimited buffer begin nowhere", "expected a size, or a time")
        } else {
            ("marks begin at 25 % of the buffer by default, and an unlimited buffer has no 25 %", "unlimited")
        };
        let error = SpannedError::new(threshold.origin, message).label(label).at_least(self.buffer.origin);
        let error = error.help("give ecn = { min = \"100KB\", max = \"400KB\" } or ecn = \"off\", or limit the buffer");
        // With [switch] only the shared buffer has a limit, and the file has no `unlimited`.
        let is_default_buffer = self.buffer.origin == SourceSpan::NOWHERE;
        if is_default_buffer { error.help("with [switch] ports have no buffer of their own by default") } else { error }
    }

    /// The queue discipline. The default thresholds of `ecn` do not apply to CoDel, which marks by itself.
    fn discipline(&self) -> Result<Discipline, SpannedError> {
        let (codel, fq_codel) = (self.codel.as_ref(), self.fq_codel.as_ref());
        let (name, at, discipline) = match (codel, fq_codel) {
            (None, None) => return Ok(Discipline::Fifo),
            (Some(_), Some(_)) => {
                return Err(SpannedError::new(self.fq_codel.origin, "a port has one queue discipline")
                    .label("expected false next to `codel`")
                    .at_least(self.codel.origin)
                    .help("a scheme or a link class that chooses one sets the other to false"));
            }
            (Some(codel), None) => ("codel", self.codel.origin, codel.discipline()?),
            (None, Some(fq_codel)) => ("fq_codel", self.fq_codel.origin, fq_codel.discipline()?),
        };
        let marks = self.ecn.thresholds().is_some_and(|thresholds| thresholds.are_set());
        let other = [
            (marks, "ecn", "ecn = \"off\""),
            (self.phantom != Phantom::Off, "phantom", "phantom = \"off\""),
            (self.mark_at != MarkTime::Enqueue, "mark_at", "mark_at = \"enqueue\""),
            (self.in_service_bytes != ServiceView::Remaining, "in_service_bytes", "in_service_bytes = \"remaining\""),
            (self.control_priority, "control_priority", "control_priority = false"),
            (self.trim.as_ref().is_some(), "trim", "trim = false"),
        ];
        match other.iter().find(|(is_set, ..)| *is_set) {
            Some((_, key, off)) => Err(SpannedError::new(at, format!("`{name}` does not go with `{key}`"))
                .label(format!("expected false, or {off}"))),
            None => Ok(discipline),
        }
    }

    /// The place in the file of the queue discipline.
    pub(crate) fn discipline_origin(&self) -> SourceSpan {
        if self.codel.as_ref().is_some() { self.codel.origin } else { self.fq_codel.origin }
    }

    /// Returns the simulator's settings.
    pub(crate) fn config(&self, cable: &CablePorts) -> Result<PortConfig, SpannedError> {
        let &CablePorts { rate, delay, rtt, .. } = cable;
        let marks = |thresholds: &MarkThresholds, size: Bytes| {
            let MarkThresholds { min, max, probability } = thresholds;
            let (low, high) = (min.of(size, rate), max.of(size, rate));
            if low > high {
                return Err(SpannedError::new(
                    min.origin,
                    format!("marking would begin at {low} and be certain from {high}"),
                )
                .label(format!("expected at most {high}"))
                .at_least(max.origin));
            }
            Ok(fabric::Ecn { min: low, max: high, max_probability: probability.0.frac() })
        };
        let size = self.buffer.bytes(rate, rtt);
        let buffer = size.unwrap_or(Bytes::MAX);
        if size.is_some_and(|size| rate.tx_time(size) > MAX_BUFFER) {
            return Err(SpannedError::new(
                self.buffer.origin,
                format!("a buffer of {buffer} at {rate} lasts over {MAX_BUFFER}"),
            )
            .label("expected less, or \"unlimited\""));
        }
        let discipline = self.discipline()?;
        let thresholds =
            self.ecn.thresholds().filter(|thresholds| discipline == Discipline::Fifo || thresholds.are_set());
        let ecn = thresholds.map(|thresholds| {
            let relative =
                [thresholds.min, thresholds.max].into_iter().find(|at| matches!(at.value, Threshold::Share(_)));
            match (size, relative) {
                (None, Some(at)) => Err(self.relative_to_nothing(at)),
                (size, _) => marks(&thresholds, size.unwrap_or(Bytes::ZERO)),
            }
        });
        let phantom = match &self.phantom {
            Phantom::Off => None,
            Phantom::On(phantom) => {
                let drain = phantom.drain.0.frac();
                let drained = rate.scaled(drain);
                if drained < fabric::SLOWEST {
                    let message = format!("a phantom queue at {rate} that drains at {drained}");
                    return Err(SpannedError::new(phantom.drain.origin, message)
                        .label(format!("expected a share that leaves at least {}", fabric::SLOWEST)));
                }
                Some(fabric::Phantom {
                    size: phantom.size,
                    drain,
                    ecn: marks(
                        &MarkThresholds { min: phantom.min, max: phantom.max, probability: phantom.probability },
                        phantom.size,
                    )?,
                })
            }
        };
        let loss = self.loss_probability.0.frac();
        if loss >= Frac::ONE {
            return Err(SpannedError::new(self.loss_probability.origin, "a link cannot lose every packet")
                .label("expected a share under 1"));
        }
        let trim = self.trim.as_ref().map(|trim| trim.config(self.trim.origin, buffer, rate)).transpose()?;
        Ok(PortConfig {
            rate,
            delay,
            buffer,
            ecn: ecn.transpose()?,
            phantom,
            control_priority: self.control_priority || trim.is_some(),
            discipline,
            trim,
            mark_at: match self.mark_at {
                MarkTime::Enqueue => MarkAt::Enqueue,
                MarkTime::Dequeue => MarkAt::Dequeue,
            },
            in_service: match self.in_service_bytes {
                ServiceView::Remaining => InService::Remaining,
                ServiceView::All => InService::All,
                ServiceView::None => InService::None,
            },
            loss,
            bursts: self.loss_bursts.as_ref().map(LossBursts::bursts).transpose()?,
            ingress_limit: ingress_limit(self.off, self.resume, self.headroom, cable)?,
            credits: None,
            tick: Tick::NONE,
            impairments: None,
        })
    }
}
