//! `[[traffic]]`: the flows of a scenario.

use std::num::NonZeroU32;

use fabric::LinkClass;
use serde_json::{Value as Json, json};
use units::{Bytes, Span};

use crate::class::FlowClass;
use crate::decode::{Field, Located, kinds, table, unexpected, words};
use crate::error::SpannedError;
use crate::quantity::{Decimal, write_span};
use crate::tree::{Node, Value};

/// A host by number or by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostRef {
    /// By number, from 0.
    Index(u32),
    /// By name, such as `dc0.host3`.
    Name(String),
}

impl Field for HostRef {
    const EXPECTS: &'static str = "a host's number such as 0, or its name such as \"dc0.host0\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Integer(_) => u32::decode(node).map(Self::Index),
            Value::String(name) => Ok(Self::Name(name.clone())),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Index(index) => index.encode(),
            Self::Name(name) => Value::string(name),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [u32::schema(), String::schema()] })
    }
}

/// State of a flow for which another flow of a list can wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowState {
    /// Its sender has everything acknowledged.
    Complete,
    /// Its receiver has every byte.
    Received,
    /// The flow has started; only its own sender knows.
    Begun,
}

impl FlowState {
    const ALL: [(&'static str, Self); 3] =
        [("complete", Self::Complete), ("received", Self::Received), ("begun", Self::Begun)];

    /// The keyword for it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, state)| *state == self).map_or("", |(name, _)| name)
    }
}

/// A state of another flow that a flow waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowEvent {
    /// The other flow, by its number from 0.
    pub flow: u32,
    /// The awaited state of that flow.
    pub state: FlowState,
    /// Time for which the sender computes on this event alone, in parallel with other work.
    pub compute: Span,
}

impl FlowEvent {
    /// Returns the completion of a flow as an event.
    pub fn complete(flow: u32) -> Self {
        Self { flow, state: FlowState::Complete, compute: Span::ZERO }
    }
}

impl Field for FlowEvent {
    const EXPECTS: &'static str = "a flow's number such as 3, or \"received:3\", \"begun:3\", \"received:3+10us\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let text = match &node.value {
            Value::Integer(_) => return u32::decode(node).map(Self::complete),
            Value::String(text) => text,
            _ => return Err(unexpected::<Self>(node)),
        };
        let (event, compute) = match text.split_once('+') {
            None => (text.as_str(), Span::ZERO),
            Some((event, time)) => {
                let time = Node { value: Value::string(time.trim()), origin: node.origin };
                (event, Span::decode(&time)?)
            }
        };
        let (state, flow) = event.split_once(':').unwrap_or(("complete", event));
        let state = FlowState::ALL.iter().find(|(name, _)| *name == state.trim());
        match (state, flow.trim().parse()) {
            (Some(&(_, state)), Ok(flow)) => Ok(Self { flow, state, compute }),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        if *self == Self::complete(self.flow) { self.flow.encode() } else { Value::String(self.to_string()) }
    }
    fn schema() -> Json {
        let pattern = r"^ *((complete|received|begun) *: *)?[0-9]+ *(\+.+)?$";
        json!({ "oneOf": [u32::schema(), { "type": "string", "pattern": pattern }] })
    }
}

impl std::fmt::Display for FlowEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.state != FlowState::Complete {
            write!(f, "{}:", self.state.name())?;
        }
        write!(f, "{}", self.flow)?;
        if self.compute.is_zero() { Ok(()) } else { write!(f, "+{}", write_span(self.compute)) }
    }
}

/// Events for which a flow of a list waits; at least one.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowEvents(pub Vec<Located<FlowEvent>>);

impl Field for FlowEvents {
    const EXPECTS: &'static str =
        "a flow's number such as 3, an event such as \"received:3\", or an array such as [1, 3]";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Integer(_) | Value::String(_) => Located::decode(node).map(|one| Self(vec![one])),
            Value::Array(nodes) if !nodes.is_empty() => Vec::decode(node).map(Self),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self.0.as_slice() {
            [one] => one.encode(),
            _ => self.0.encode(),
        }
    }
    fn schema() -> Json {
        let mut several = Vec::<FlowEvent>::schema();
        several["minItems"] = 1.into();
        json!({ "oneOf": [FlowEvent::schema(), several] })
    }
}

/// The class of a flow's packets at switches: 1 to 7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataClass(pub u8);

impl Field for DataClass {
    const EXPECTS: &'static str = "a whole number from 1 to 7";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let Value::Integer(class) = node.value else { return Err(unexpected::<Self>(node)) };
        match u8::try_from(class) {
            Ok(class @ 1..=7) => Ok(Self(class)),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        Value::Integer(self.0.into())
    }
    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 1, "maximum": 7 })
    }
}

words! {
    /// Connections on which flows start.
    Connections, "\"new\" or \"persistent\"" {
        /// Each opens a connection and closes it.
        New = "new",
        /// Connections that earlier flows left.
        Persistent = "persistent",
    }
}

/// A subset of the hosts.
#[derive(Clone, PartialEq, Debug)]
pub enum HostSet {
    /// Every one.
    All,
    /// Those with even numbers.
    Even,
    /// Those with odd numbers.
    Odd,
    /// From one number up to, but without, another.
    Range(u32, u32),
    /// These.
    Listed(Vec<Located<HostRef>>),
}

impl Field for HostSet {
    const EXPECTS: &'static str =
        "\"all\", \"even\", \"odd\", a range of numbers such as \"0..16\", or an array of hosts";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Array(_) => Vec::decode(node).map(Self::Listed),
            Value::String(keyword) => match keyword.as_str() {
                "all" => Ok(Self::All),
                "even" => Ok(Self::Even),
                "odd" => Ok(Self::Odd),
                range => range
                    .split_once("..")
                    .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)))
                    .filter(|(low, high)| low < high)
                    .map(|(low, high)| Self::Range(low, high))
                    .ok_or_else(|| unexpected::<Self>(node)),
            },
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::All => Value::string("all"),
            Self::Even => Value::string("even"),
            Self::Odd => Value::string("odd"),
            Self::Range(low, high) => Value::string(format!("{low}..{high}")),
            Self::Listed(hosts) => hosts.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "string" }, Vec::<HostRef>::schema()] })
    }
}

kinds! {
    /// Traffic of one kind.
    Traffic {
        /// Many to one.
        Incast(Incast) = "incast",
        /// Chosen pairs.
        Long(LongFlows) = "long",
        /// Every host to another.
        Permutation(Permutation) = "permutation",
        /// Random arrivals.
        Poisson(Poisson) = "poisson",
        /// Random requests, each answered by several hosts at once.
        Requests(Requests) = "requests",
        /// Clients that request the next read when one is complete.
        ClosedLoop(ClosedLoop) = "closed-loop",
        /// Iterations of allreduce.
        Allreduce(Allreduce) = "allreduce",
        /// Iterations of any collective operation.
        Collective(Collective) = "collective",
        /// Flow by flow.
        List(FlowList) = "list",
        /// Another program's file.
        Import(ImportedTraffic) = "import",
    }
}

table! {
    /// `kind = "incast"`: many hosts send to one. Senders are spread over edge switches and pods.
    Incast {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Receiver.
        receiver: Located<HostRef> = Located::default_of(HostRef::Index(0));
        /// Senders in the receiver's datacenter.
        intra: Located<u32> = Located::default_of(0);
        /// Senders in other datacenters.
        inter: Located<u32> = Located::default_of(0);
        /// Size of each flow.
        size: Located<Bytes>;
        /// Start of the first flow.
        start: Span = Span::ZERO;
        /// Time between one flow's start and the next one's.
        stagger: Span = Span::ZERO;
    }
}

table! {
    /// `kind = "long"`: flows between chosen hosts.
    LongFlows {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Pairs of sender and receiver.
        flows: Located<Vec<Located<Vec<Located<HostRef>>>>>;
        /// Size of each flow; by default more than its links carry until the stop.
        size: Option<Located<Bytes>> = None;
        /// Start of the first flow.
        start: Span = Span::ZERO;
        /// Time between one flow's start and the next one's.
        stagger: Span = Span::ZERO;
    }
}

words! {
    /// Location of a flow's receiver.
    Scope, "\"intra\", \"inter\" or \"any\"" {
        /// In the sender's datacenter.
        Intra = "intra",
        /// In another datacenter.
        Inter = "inter",
        /// Anywhere.
        Any = "any",
    }
}

impl Scope {
    /// Returns whether the scope contains flows of a class.
    pub(crate) fn has(self, class: FlowClass) -> bool {
        match self {
            Self::Intra => class == FlowClass::Intra,
            Self::Inter => class == FlowClass::Inter,
            Self::Any => true,
        }
    }
}

table! {
    /// `kind = "permutation"`: every host sends to one other and receives from one other, drawn by the seed.
    Permutation {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Location of the receivers: in the sender's datacenter (`intra`), in another one (`inter`), or anywhere
        /// (`any`).
        scope: Located<Scope> = Located::default_of(Scope::Any);
        /// Size of each flow.
        size: Located<Bytes>;
        /// Start of all flows.
        start: Span = Span::ZERO;
    }
}

/// A ratio of two whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntraInterRatio {
    /// For traffic inside datacenters.
    pub intra: u32,
    /// For traffic between them.
    pub inter: u32,
}

impl Field for IntraInterRatio {
    const EXPECTS: &'static str = "a ratio of intra to inter such as \"4:1\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let parsed = node.as_str().and_then(|text| {
            let (intra, inter) = text.split_once(':')?;
            Some(Self { intra: intra.trim().parse().ok()?, inter: inter.trim().parse().ok()? })
        });
        match parsed {
            Some(ratio) if (1..=1_000_000).contains(&ratio.intra) && (1..=1_000_000).contains(&ratio.inter) => {
                Ok(ratio)
            }
            _ => Err(unexpected::<Self>(node).help("both are whole numbers from 1 to 1000000")),
        }
    }
    fn encode(&self) -> Value {
        Value::string(format!("{}:{}", self.intra, self.inter))
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[0-9]+ ?: ?[0-9]+$" })
    }
}

words! {
    /// Unit of a ratio.
    RatioOf, "\"flows\" or \"bytes\"" {
        /// Flows.
        Flows = "flows",
        /// Payload.
        Bytes = "bytes",
    }
}

table! {
    /// `kind = "poisson"`: flows at random times between random hosts, sizes from a distribution.
    Poisson {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Sizes of flows inside a datacenter: the name of a shipped distribution or a file beside the scenario.
        intra: Option<Located<String>> = None;
        /// Sizes of flows between datacenters.
        inter: Option<Located<String>> = None;
        /// Mean utilisation, in each direction, of the links of class `load_of` by payload that crosses them; up to 1.
        load: Located<Decimal>;
        /// Link class to which `load` refers.
        load_of: Located<LinkClass> = Located::default_of(LinkClass::Inter);
        /// Ratio of intra to inter; needed where both are given.
        ratio: Option<Located<IntraInterRatio>> = None;
        /// Unit of `ratio`: flows, or bytes of payload.
        ratio_of: RatioOf = RatioOf::Flows;
        /// Senders; `load` then refers to the links that these hosts' flows can cross.
        from: Located<HostSet> = Located::default_of(HostSet::All);
        /// Receivers.
        to: Located<HostSet> = Located::default_of(HostSet::All);
        /// Start of arrivals.
        start: Span = Span::ZERO;
        /// Duration of arrivals. Either this or `flows`.
        duration: Option<Located<Span>> = None;
        /// Number of flows that arrive.
        flows: Option<Located<NonZeroU32>> = None;
    }
}

table! {
    /// `kind = "requests"`: at random times a random host requests data from others, which all answer at once: incasts as a load. A request is complete with its last flow.
    Requests {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Number of hosts that answer a request: other hosts, drawn for each request.
        fanout: Located<NonZeroU32>;
        /// Size of each answer.
        size: Located<Bytes>;
        /// Mean utilisation of the hosts' links by these answers, over 0 and up to 1.
        load: Located<Decimal>;
        /// Hosts that request and answer.
        among: Located<HostSet> = Located::default_of(HostSet::All);
        /// Start of arrivals.
        start: Span = Span::ZERO;
        /// Duration of arrivals. Either this or `requests`.
        duration: Option<Located<Span>> = None;
        /// Number of requests that arrive.
        requests: Option<Located<NonZeroU32>> = None;
    }
}

table! {
    /// `kind = "closed-loop"`: clients read from servers. A client keeps a number of reads outstanding and requests the next one when one is complete, so the load follows from how fast reads are. A read is a flow from the server to the client. The next one on its connection starts when the client has every byte and has computed, one one-way delay later, which its request takes; on a persistent connection also not before the server has everything acknowledged.
    ClosedLoop {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Hosts that read.
        clients: Located<HostSet>;
        /// Hosts that clients read from: as many clients per server, neighbouring clients from the same one.
        servers: Located<HostSet>;
        /// Number of clients that read, the first ones; all if not given. With 0 nothing is read.
        active: Option<Located<u32>> = None;
        /// Number of reads that each client keeps outstanding, each on a connection of its own.
        outstanding: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Size of each read. Either this or `sizes`.
        size: Option<Located<Bytes>> = None;
        /// Sizes of reads: the name of a shipped distribution or a file beside the scenario.
        sizes: Option<Located<String>> = None;
        /// Total number of reads of each client, its connections in turn; if not given, it reads until the stop.
        reads: Option<Located<NonZeroU32>> = None;
        /// Think time: the time for which a client computes on a complete read before it requests the next.
        compute: Span = Span::ZERO;
        /// Start of the first read.
        start: Span = Span::ZERO;
        /// Time between the first read of one connection and of the next one, those of a client one after the other.
        stagger: Span = Span::ZERO;
    }
}

words! {
    /// Communication pattern of an allreduce.
    Pattern, "\"ring\" or \"pairs\"" {
        /// Each rank to the next one of its group, in `2(n - 1)` steps of an n-th of the data each.
        Ring = "ring",
        /// Each rank to its counterpart in the other half of its group and back: a half to reduce, then a half that is reduced.
        Pairs = "pairs",
    }
}

table! {
    /// `kind = "allreduce"`: a training job. In each iteration the ranks of a group sum up their data: a reduce-scatter, then an all-gather. A rank takes its steps in turn: it begins a step when the previous one has arrived from its neighbour and has begun at the rank itself, too, and an iteration when it has computed for `compute` after that; an iteration of a group, from the time at which its last rank begins to its last flow's end, is one collective in results.
    Allreduce {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// The groups: the ranks of each, in order. Either this or `count`.
        groups: Option<Located<Vec<Located<Vec<Located<HostRef>>>>>> = None;
        /// Number of groups, each with `ranks` ranks from each of the first two datacenters, spread over edge switches
        /// and pods.
        count: Option<Located<NonZeroU32>> = None;
        /// Ranks of a group from each datacenter, with `count`.
        ranks: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Communication pattern: each rank sends to the next one of its group (`ring`), or to its counterpart in the
        /// other half and back (`pairs`).
        pattern: Pattern = Pattern::Ring;
        /// Bytes of each rank in an iteration.
        size: Located<Bytes>;
        /// Largest size, if it differs from iteration to iteration: evenly distributed from `size` to this, drawn by
        /// the seed.
        size_to: Option<Located<Bytes>> = None;
        /// Number of iterations.
        iterations: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Time for which a rank computes between two iterations.
        compute: Span = Span::ZERO;
        /// Start of the first iteration.
        start: Span = Span::ZERO;
    }
}

words! {
    /// Collective operation.
    Operation, "\"all-reduce\", \"all-gather\", \"reduce-scatter\", \"all-to-all\", \"broadcast\" or \"pipeline\"" {
        /// Each ends with the sum of what all have.
        AllReduce = "all-reduce",
        /// Each begins with a part, and ends with all parts.
        AllGather = "all-gather",
        /// Each ends with a part of the sum.
        ReduceScatter = "reduce-scatter",
        /// Each has a part for every other one.
        AllToAll = "all-to-all",
        /// The first rank's data goes to all.
        Broadcast = "broadcast",
        /// Each computes on what came from the one before it and sends to the next.
        Pipeline = "pipeline",
    }
}

words! {
    /// Algorithm of a collective operation.
    Algorithm, "\"ring\", \"tree\" or \"halving-doubling\"" {
        /// Each rank to the next one.
        Ring = "ring",
        /// Along a binomial tree.
        Tree = "tree",
        /// Between ranks that are half of the group apart, a quarter, and so on, or the other way round.
        HalvingDoubling = "halving-doubling",
    }
}

table! {
    /// `kind = "collective"`: iterations of a collective operation among the ranks of a group. A send of a rank waits for what it needs: arriving data, the rank's previous send, and time to compute. An iteration of a group is one collective in results.
    Collective {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Collective operation.
        operation: Located<Operation>;
        /// Algorithm. `all-reduce`: `ring` by default, `tree` or `halving-doubling`; `all-gather` and `reduce-scatter`:
        /// `ring` by default, or `halving-doubling`; `broadcast`: `tree` by default, or `ring`; the others have one
        /// algorithm. `halving-doubling` needs a power of two of ranks.
        algorithm: Option<Located<Algorithm>> = None;
        /// The groups: the ranks of each, in order. Either this or `count`.
        groups: Option<Located<Vec<Located<Vec<Located<HostRef>>>>>> = None;
        /// Number of groups, each with `ranks` ranks from each of the first two datacenters, spread over edge switches
        /// and pods.
        count: Option<Located<NonZeroU32>> = None;
        /// Ranks of a group from each datacenter, with `count`.
        ranks: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Data of an iteration: what each rank has to sum up (`all-reduce`, `reduce-scatter`) or to send
        /// (`all-to-all`), what all gather (`all-gather`), what the first rank has (`broadcast`), or what a stage hands
        /// on in all micro-batches together (`pipeline`).
        size: Located<Bytes>;
        /// Number of micro-batches into which a `pipeline` divides an iteration.
        microbatches: Option<Located<NonZeroU32>> = None;
        /// Number of iterations.
        iterations: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Time for which a rank computes between two iterations; for a stage of a `pipeline`: on each micro-batch.
        compute: Span = Span::ZERO;
        /// Start of the first iteration.
        start: Span = Span::ZERO;
    }
}

table! {
    /// `kind = "list"`: flows one by one, from a file or from here.
    FlowList {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// A CSV file beside the scenario: `start,src,dst,bytes[,after][,compute]`. A cell of `bytes` may be empty.
        /// Several events of `after` are separated by blanks. Either this or `flows`.
        file: Option<Located<String>> = None;
        /// The flows.
        flows: Option<Located<Vec<Flow>>> = None;
        /// Added to every start.
        start: Span = Span::ZERO;
    }
}

words! {
    /// Placement of ranks, or of senders and receivers, on hosts.
    Placement, "\"block\", \"cyclic\" or \"packed\"" {
        /// Equal parts in each datacenter, in order.
        Block = "block",
        /// Round robin over the datacenters.
        Cyclic = "cyclic",
        /// Rank 0 on host 0, rank 1 on host 1, and so on.
        Packed = "packed",
    }
}

table! {
    /// One flow.
    Flow {
        /// Start; zero if neither this nor `after` is given. With `after`: its earliest start.
        start: Option<Located<Span>> = None;
        /// Sender.
        src: Located<HostRef>;
        /// Receiver.
        dst: Located<HostRef>;
        /// Size; by default more than its links carry until the stop.
        size: Option<Located<Bytes>> = None;
        /// Events of other flows of this list, counted from 0, after which it starts: one, or an array of which it
        /// waits for all. `3`: flow 3 is complete, its sender has everything acknowledged. `"received:3"`: its receiver
        /// has every byte. `"begun:3"`: it has started, and has the same sender. An event at another host than the
        /// sender counts one one-way delay of the path later. `"received:3+10us"`: the sender computes for that time on
        /// that event alone, in parallel with other work.
        after: Option<Located<FlowEvents>> = None;
        /// Time for which the sender computes first: from `start`, or from the last of `after`; no time if not given.
        compute: Option<Span> = None;
    }
}

words! {
    /// The format of another program's file of traffic.
    ForeignFormat, "\"goal\", \"chakra\", \"msccl\", \"simai\", \"flows\", \"netflow\" or \"pcap\"" {
        /// A GOAL schedule of LogGOPSim or ATLAHS, text or binary.
        Goal = "goal",
        /// Chakra execution traces, a file a rank.
        Chakra = "chakra",
        /// A collective algorithm of MSCCL.
        Msccl = "msccl",
        /// A workload of SimAI.
        Simai = "simai",
        /// Flows as CSV.
        Flows = "flows",
        /// Flow records of nfdump as CSV.
        Netflow = "netflow",
        /// A capture.
        Pcap = "pcap",
    }
}

table! {
    /// `kind = "import"`: traffic of another program, on this scenario's network: the flows that [`narrows import`](import.md) makes of the same file. Assumptions and omissions are notes of `check` and of results.
    ImportedTraffic {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold these flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send, with its window and its state of RTTs
        /// and paths; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Format of the file.
        format: Located<ForeignFormat>;
        /// The file, beside the scenario. Either this or `files`.
        file: Option<Located<String>> = None;
        /// The files of `chakra`, one for each rank; in the order of the numbers in their names, if these are 0, 1 and so on.
        files: Option<Located<Vec<Located<String>>>> = None;
        /// `chakra`: a file of the groups of ranks that collectives name, as JSON.
        groups: Option<Located<String>> = None;
        /// Placement on hosts of ranks, and of senders and receivers unless all have hosts' names or numbers. `block`:
        /// equal parts in each datacenter, in order. `cyclic`: round robin over the datacenters. `packed`: rank 0 on
        /// host 0, rank 1 on host 1, and so on.
        placement: Placement = Placement::Block;
        /// `goal`: size up to which a send is complete once it has begun; larger ones are once they are acknowledged.
        /// LogGOPSim's S, 65535 B if not given.
        eager: Option<Located<Bytes>> = None;
        /// `msccl`: size of the data over all chunks of the algorithm.
        size: Option<Located<Bytes>> = None;
        /// `simai`: number of passes, one after the other; one if not given.
        passes: Option<Located<NonZeroU32>> = None;
        /// `simai`: number of ranks, for a workload whose first line does not state it (`all_gpus`).
        ranks: Option<Located<NonZeroU32>> = None;
        /// Added to every start.
        start: Span = Span::ZERO;
    }
}

/// Options of the flows of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowOptions {
    /// The class of their packets.
    pub(crate) traffic_class: u8,
    /// On-Ramp may hold their packets.
    pub(crate) on_ramp: bool,
    /// Flows reuse the connections that earlier flows left.
    pub(crate) kept: bool,
}

impl Traffic {
    /// Returns the options of its flows.
    pub(crate) fn treatment(&self) -> FlowOptions {
        let (class, on_ramp, connections) = match self {
            Self::Incast(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Long(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Permutation(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Poisson(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Requests(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::ClosedLoop(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Allreduce(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Collective(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::List(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
            Self::Import(entry) => (entry.traffic_class, entry.on_ramp, entry.connections),
        };
        FlowOptions { traffic_class: class.0, on_ramp, kept: connections == Connections::Persistent }
    }

    /// Its name in results: its own, or its kind.
    pub fn name(&self) -> &str {
        let (name, kind) = match self {
            Self::Incast(incast) => (&incast.name, "incast"),
            Self::Long(long) => (&long.name, "long"),
            Self::Permutation(permutation) => (&permutation.name, "permutation"),
            Self::Poisson(poisson) => (&poisson.name, "poisson"),
            Self::Requests(requests) => (&requests.name, "requests"),
            Self::ClosedLoop(closed) => (&closed.name, "closed-loop"),
            Self::Allreduce(allreduce) => (&allreduce.name, "allreduce"),
            Self::Collective(collective) => (&collective.name, "collective"),
            Self::List(list) => (&list.name, "list"),
            Self::Import(import) => (&import.name, import.format.name()),
        };
        name.as_deref().unwrap_or(kind)
    }
}
