//! `[[traffic]]`: what is sent.

use std::num::NonZeroU32;

use fabric::LinkClass;
use serde_json::{Value as Json, json};
use units::{Bytes, Span};

use crate::decode::{At, Field, kinds, table, unexpected, words};
use crate::error::Fault;
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
    fn decode(node: &Node) -> Result<Self, Fault> {
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

    /// The word for it.
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
    fn decode(node: &Node) -> Result<Self, Fault> {
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
pub struct FlowEvents(pub Vec<At<FlowEvent>>);

impl Field for FlowEvents {
    const EXPECTS: &'static str =
        "a flow's number such as 3, an event such as \"received:3\", or an array such as [1, 3]";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Integer(_) | Value::String(_) => At::decode(node).map(|one| Self(vec![one])),
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
    fn decode(node: &Node) -> Result<Self, Fault> {
        match node.value {
            Value::Integer(class @ 1..=7) => Ok(Self(class as u8)),
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
    /// What flows find at their start.
    Connections, "\"new\" or \"kept\"" {
        /// Each opens a connection and closes it.
        New = "new",
        /// Connections that earlier flows left.
        Kept = "kept",
    }
}

/// Some of the hosts.
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
    Listed(Vec<At<HostRef>>),
}

impl Field for HostSet {
    const EXPECTS: &'static str =
        "\"all\", \"even\", \"odd\", a range of numbers such as \"0..16\", or an array of hosts";
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Array(_) => Vec::decode(node).map(Self::Listed),
            Value::String(word) => match word.as_str() {
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
    /// What is sent.
    Traffic {
        /// Many to one.
        Incast(Incast) = "incast",
        /// Chosen pairs.
        Long(Long) = "long",
        /// Every host to another.
        Permutation(Permutation) = "permutation",
        /// Random arrivals.
        Poisson(Poisson) = "poisson",
        /// Random requests, each answered by several hosts at once.
        Requests(Requests) = "requests",
        /// Clients that ask for the next when they have one.
        ClosedLoop(ClosedLoop) = "closed-loop",
        /// Iterations of allreduce.
        Allreduce(Allreduce) = "allreduce",
        /// Iterations of any collective operation.
        Collective(Collective) = "collective",
        /// Flow by flow.
        List(List) = "list",
        /// Another program's file.
        Import(Import) = "import",
    }
}

table! {
    /// `kind = "incast"`: many hosts send to one. Senders are spread over edge switches and pods.
    Incast {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Who receives.
        receiver: At<HostRef> = At::default_of(HostRef::Index(0));
        /// Senders in the receiver's datacenter.
        intra: At<u32> = At::default_of(0);
        /// Senders in other datacenters.
        inter: At<u32> = At::default_of(0);
        /// Size of each flow.
        size: At<Bytes>;
        /// When the first flow starts.
        start: Span = Span::ZERO;
        /// Time between one flow's start and the next one's.
        stagger: Span = Span::ZERO;
    }
}

table! {
    /// `kind = "long"`: flows between chosen hosts.
    Long {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Pairs of sender and receiver.
        flows: At<Vec<At<Vec<At<HostRef>>>>>;
        /// Size of each flow; by default more than its links carry until the stop.
        size: Option<At<Bytes>> = None;
        /// When the first flow starts.
        start: Span = Span::ZERO;
        /// Time between one flow's start and the next one's.
        stagger: Span = Span::ZERO;
    }
}

words! {
    /// Where a permutation's receivers are.
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
    /// Returns whether the scope contains flows that stay inside their datacenter (`inside`), or those that leave it.
    pub(crate) fn has(self, inside: bool) -> bool {
        match self {
            Self::Intra => inside,
            Self::Inter => !inside,
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
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Where receivers are.
        scope: At<Scope> = At::default_of(Scope::Any);
        /// Size of each flow.
        size: At<Bytes>;
        /// When all flows start.
        start: Span = Span::ZERO;
    }
}

/// A ratio of two whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// For traffic inside datacenters.
    pub intra: u32,
    /// For traffic between them.
    pub inter: u32,
}

impl Field for Ratio {
    const EXPECTS: &'static str = "a ratio of intra to inter such as \"4:1\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
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
    /// What a ratio counts.
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
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Sizes of flows inside a datacenter: the name of a shipped distribution or a file beside the scenario.
        intra: Option<At<String>> = None;
        /// Sizes of flows between datacenters.
        inter: Option<At<String>> = None;
        /// Mean utilisation, in each direction, of the links of class `load_of` by payload that crosses them; up to 1.
        load: At<Decimal>;
        /// The link class that `load` speaks of.
        load_of: At<LinkClass> = At::default_of(LinkClass::Inter);
        /// Intra to inter; needed where both are given.
        ratio: Option<At<Ratio>> = None;
        /// What `ratio` counts.
        ratio_of: RatioOf = RatioOf::Flows;
        /// Who sends; `load` then speaks of the links that these hosts' flows can cross.
        from: At<HostSet> = At::default_of(HostSet::All);
        /// Who receives.
        to: At<HostSet> = At::default_of(HostSet::All);
        /// When arrivals begin.
        start: Span = Span::ZERO;
        /// Flows arrive for this long. Either this or `flows`.
        window: Option<At<Span>> = None;
        /// So many flows arrive.
        flows: Option<At<NonZeroU32>> = None;
    }
}

table! {
    /// `kind = "requests"`: at random times a random host asks others, which all answer at once: incasts as a load. A request is complete with its last flow.
    Requests {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// How many answer a request: other hosts, drawn anew each time.
        fanout: At<NonZeroU32>;
        /// Size of each answer.
        size: At<Bytes>;
        /// Mean utilisation of the hosts' links by these answers, over 0 and up to 1.
        load: At<Decimal>;
        /// Who asks and answers.
        among: At<HostSet> = At::default_of(HostSet::All);
        /// When arrivals begin.
        start: Span = Span::ZERO;
        /// Requests arrive for this long. Either this or `requests`.
        window: Option<At<Span>> = None;
        /// So many requests arrive.
        requests: Option<At<NonZeroU32>> = None;
    }
}

table! {
    /// `kind = "closed-loop"`: clients read from servers. A client keeps some reads under way, and asks for the next one when one has come, so the load follows from how fast reads are. A read is a flow from the server to the client. The next one on its connection starts when the client has every byte and has computed, one one-way delay later, for its request comes that way; on a kept connection also not before the server has everything acknowledged.
    ClosedLoop {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// Who reads.
        clients: At<HostSet>;
        /// From whom: as many clients from each, those next to each other from one.
        servers: At<HostSet>;
        /// So many of the clients read, the first ones; all if not given. With 0 nothing is read.
        active: Option<At<u32>> = None;
        /// How many reads each client keeps under way, each on a connection of its own.
        outstanding: At<NonZeroU32> = At::default_of(NonZeroU32::MIN);
        /// Size of each read. Either this or `sizes`.
        size: Option<At<Bytes>> = None;
        /// Sizes of reads: the name of a shipped distribution or a file beside the scenario.
        sizes: Option<At<String>> = None;
        /// How many reads each client makes in all, its connections in turn; if not given, it reads until the stop.
        reads: Option<At<NonZeroU32>> = None;
        /// How long a client computes on what has come before it asks for the next (its think time).
        compute: Span = Span::ZERO;
        /// When the first read starts.
        start: Span = Span::ZERO;
        /// Time between the first read of one connection and of the next one, those of a client one after the other.
        stagger: Span = Span::ZERO;
    }
}

words! {
    /// Who sends to whom in an allreduce.
    Pattern, "\"ring\" or \"pairs\"" {
        /// Each rank to the next one of its group, in `2(n - 1)` steps of an n-th of the data each.
        Ring = "ring",
        /// Each rank to its counterpart in the other half of its group and back: a half to reduce, then a half that is reduced.
        Pairs = "pairs",
    }
}

table! {
    /// `kind = "allreduce"`: a training job. In each iteration the ranks of a group sum up what each of them has: they reduce and scatter it, then gather all of it. A rank takes its steps in turn: it begins one when the step before has come from its neighbour and has begun here too, and an iteration when it has computed for a while after that; an iteration of a group, from when its last rank begins to its last flow's end, is one collective in results.
    Allreduce {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// The groups: the ranks of each, in order. Either this or `count`.
        groups: Option<At<Vec<At<Vec<At<HostRef>>>>>> = None;
        /// So many groups, of which each has as many ranks from each of the first two datacenters: spread over edge switches and pods.
        count: Option<At<NonZeroU32>> = None;
        /// Ranks of a group from each datacenter, with `count`.
        ranks: At<NonZeroU32> = At::default_of(NonZeroU32::MIN);
        /// Who sends to whom.
        pattern: Pattern = Pattern::Ring;
        /// What each rank has, in bytes.
        size: At<Bytes>;
        /// If given, what each rank has differs from iteration to iteration, evenly from `size` to this, drawn by the seed.
        size_to: Option<At<Bytes>> = None;
        /// How many there are.
        iterations: At<NonZeroU32> = At::default_of(NonZeroU32::MIN);
        /// How long a rank computes between two of them.
        compute: Span = Span::ZERO;
        /// When the first one begins.
        start: Span = Span::ZERO;
    }
}

words! {
    /// What ranks do together.
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
    /// Who sends to whom, and when.
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
    /// `kind = "collective"`: iterations of a collective operation among the ranks of a group. What a rank sends waits for what it needs: data that comes, its own last send, and time to compute. An iteration of a group is one collective in results.
    Collective {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// What the ranks do.
        operation: At<Operation>;
        /// How. `all-reduce`: `ring` by default, `tree` or `halving-doubling`; `all-gather` and `reduce-scatter`: `ring` by default, or `halving-doubling`; `broadcast`: `tree` by default, or `ring`; the others have one way. `halving-doubling` needs a power of two of ranks.
        algorithm: Option<At<Algorithm>> = None;
        /// The groups: the ranks of each, in order. Either this or `count`.
        groups: Option<At<Vec<At<Vec<At<HostRef>>>>>> = None;
        /// So many groups, of which each has as many ranks from each of the first two datacenters: spread over edge switches and pods.
        count: Option<At<NonZeroU32>> = None;
        /// Ranks of a group from each datacenter, with `count`.
        ranks: At<NonZeroU32> = At::default_of(NonZeroU32::MIN);
        /// The data of an iteration: what each rank has to sum up (`all-reduce`, `reduce-scatter`) or to send (`all-to-all`), what all gather (`all-gather`), what the first rank has (`broadcast`), or what a stage hands on in all micro-batches together (`pipeline`).
        size: At<Bytes>;
        /// Into how many parts a `pipeline` cuts an iteration.
        microbatches: Option<At<NonZeroU32>> = None;
        /// How many iterations there are.
        iterations: At<NonZeroU32> = At::default_of(NonZeroU32::MIN);
        /// How long a rank computes between two iterations; a stage of a `pipeline`: on each micro-batch.
        compute: Span = Span::ZERO;
        /// When the first one begins.
        start: Span = Span::ZERO;
    }
}

table! {
    /// `kind = "list"`: flows one by one, from a file or from here.
    List {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// A CSV file beside the scenario: `start,src,dst,bytes[,after][,compute]`. A cell of `bytes` may be empty. Several events of `after` have blanks between them. Either this or `flows`.
        file: Option<At<String>> = None;
        /// The flows.
        flows: Option<At<Vec<Flow>>> = None;
        /// Added to every start.
        start: Span = Span::ZERO;
    }
}

words! {
    /// On which hosts ranks are, or whoever sends and receives.
    Placement, "\"block\", \"cyclic\" or \"packed\"" {
        /// Even parts of them, in order, in each datacenter.
        Block = "block",
        /// Each in the datacenter after the last one's.
        Cyclic = "cyclic",
        /// Rank 0 on host 0, rank 1 on host 1, and so on.
        Packed = "packed",
    }
}

table! {
    /// One flow.
    Flow {
        /// When it starts; zero if neither this nor `after` is given. With `after`: its earliest start.
        start: Option<At<Span>> = None;
        /// Who sends.
        src: At<HostRef>;
        /// Who receives.
        dst: At<HostRef>;
        /// How much; by default more than its links carry until the stop.
        size: Option<At<Bytes>> = None;
        /// Starts after events of other flows of this list, counted from 0: one, or an array of which it waits for all. `3`: flow 3 is complete, its sender has everything acknowledged. `"received:3"`: its receiver has every byte. `"begun:3"`: it has started, and has the same sender. News from another host than the sender takes the path's one-way delay. `"received:3+10us"`: the sender computes for so long on that event alone, beside what else it does.
        after: Option<At<FlowEvents>> = None;
        /// How long the sender computes first: from `start`, or from the last of `after`; no time if not given.
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
    /// `kind = "import"`: traffic of another program, on this scenario's network: the flows that [`narrows import`](import.md) makes of the same file. What is assumed and left out is a note of `check` and of results.
    Import {
        /// Its name in results.
        name: Option<String> = None;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        class: DataClass = DataClass(1);
        /// Whether these flows are held by On-Ramp where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// What the file is.
        format: At<ForeignFormat>;
        /// The file, beside the scenario. Either this or `files`.
        file: Option<At<String>> = None;
        /// The files of `chakra`, one for each rank; in the order of the numbers in their names, if these are 0, 1 and so on.
        files: Option<At<Vec<At<String>>>> = None;
        /// `chakra`: a file of the groups of ranks that collectives name, as JSON.
        groups: Option<At<String>> = None;
        /// On which hosts ranks are, and senders and receivers unless all have hosts' names or numbers. `block`: even parts of them, in order, in each datacenter. `cyclic`: each in the datacenter after the last one's. `packed`: rank 0 on host 0, rank 1 on host 1, and so on.
        placement: Placement = Placement::Block;
        /// `goal`: sends up to this size have ended once they have begun, others once they are acknowledged; LogGOPSim's S, 65535 B if not given.
        eager: Option<At<Bytes>> = None;
        /// `msccl`: what the algorithm works on, in all its chunks together.
        size: Option<At<Bytes>> = None;
        /// `simai`: how many passes there are, one after the other; one if not given.
        passes: Option<At<NonZeroU32>> = None;
        /// `simai`: how many ranks there are, for a workload whose first line does not say it (`all_gpus`).
        ranks: Option<At<NonZeroU32>> = None;
        /// Added to every start.
        start: Span = Span::ZERO;
    }
}

/// Options of the flows of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Treatment {
    /// The class of their packets.
    pub(crate) class: u8,
    /// On-Ramp may hold their packets.
    pub(crate) on_ramp: bool,
    /// Flows reuse the connections that earlier flows left.
    pub(crate) kept: bool,
}

impl Traffic {
    /// Returns the options of its flows.
    pub(crate) fn treatment(&self) -> Treatment {
        let (class, on_ramp, connections) = match self {
            Self::Incast(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Long(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Permutation(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Poisson(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Requests(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::ClosedLoop(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Allreduce(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Collective(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::List(entry) => (entry.class, entry.on_ramp, entry.connections),
            Self::Import(entry) => (entry.class, entry.on_ramp, entry.connections),
        };
        Treatment { class: class.0, on_ramp, kept: connections == Connections::Kept }
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
