//! `[[job]]`: models that are trained.

use std::num::{NonZeroU8, NonZeroU32};

use serde_json::{Value as Json, json};
use units::{Rate, Span};

use super::traffic::{Algorithm, Connections, DataClass, FlowOptions, HostRef};
use crate::decode::{Field, Located, table, unexpected, words};
use crate::error::SpannedError;
use crate::quantity::Flops;
use crate::tree::{Node, Value};

/// Hosts in an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placed {
    /// Every one.
    All,
    /// Those with even numbers.
    Even,
    /// Those with odd numbers.
    Odd,
    /// From one number up to, but without, another: of all hosts, or of those of a datacenter.
    Range {
        /// The datacenter in which hosts are counted; all are counted if there is none.
        datacenter: Option<u16>,
        /// The first.
        low: u32,
        /// The first that is not meant.
        high: u32,
    },
    /// One.
    Host(HostRef),
}

impl Placed {
    /// `0..16`, or `dc0.0..16`.
    fn range(text: &str) -> Option<Self> {
        let (datacenter, range) = match text.strip_prefix("dc") {
            Some(rest) => {
                let (datacenter, range) = rest.split_once('.')?;
                (Some(datacenter.parse().ok()?), range)
            }
            None => (None, text),
        };
        let (low, high) = range.split_once("..")?;
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low < high).then_some(Self::Range { datacenter, low, high })
    }
}

impl Field for Placed {
    const EXPECTS: &'static str = "\"all\", \"even\", \"odd\", a range of all hosts such as \"0..16\", a range of a datacenter's such as \
                                   \"dc0.0..8\", or a host's number or name";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Integer(_) => HostRef::decode(node).map(Self::Host),
            Value::String(keyword) => match keyword.as_str() {
                "all" => Ok(Self::All),
                "even" => Ok(Self::Even),
                "odd" => Ok(Self::Odd),
                range if range.contains("..") => Self::range(range).ok_or_else(|| unexpected::<Self>(node)),
                name => Ok(Self::Host(HostRef::Name(name.to_owned()))),
            },
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::All => Value::string("all"),
            Self::Even => Value::string("even"),
            Self::Odd => Value::string("odd"),
            Self::Range { datacenter: None, low, high } => Value::string(format!("{low}..{high}")),
            Self::Range { datacenter: Some(datacenter), low, high } => {
                Value::string(format!("dc{datacenter}.{low}..{high}"))
            }
            Self::Host(host) => host.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "string" }, u32::schema()] })
    }
}

/// Hosts of a job in an order, one part after the other.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementOrder(pub Vec<Located<Placed>>);

impl Field for PlacementOrder {
    const EXPECTS: &'static str = "hosts such as \"all\", \"0..16\" or \"dc0.0..8\", or an array of such parts";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match &node.value {
            Value::Array(_) => Vec::decode(node).map(Self),
            Value::String(_) | Value::Integer(_) => Located::decode(node).map(|one| Self(vec![one])),
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
        json!({ "oneOf": [{ "type": "string" }, u32::schema(), Vec::<Placed>::schema()] })
    }
}

words! {
    /// Order in which the stages of a pipeline take micro-batches.
    PipelineWord, "\"1f1b\" or \"gpipe\"" {
        /// A stage goes backward as soon as it can, and forward and backward in turn from then on.
        OneForwardOneBackward = "1f1b",
        /// All forward, then all backward.
        Gpipe = "gpipe",
    }
}

words! {
    /// The groups whose ranks lie farthest from each other.
    Outermost, "\"pipeline\" or \"data\"" {
        /// Neighbouring hosts are in one stage; the stages of a pipeline are far apart.
        Pipeline = "pipeline",
        /// Neighbouring hosts are in one pipeline; the copies of the model are far apart.
        Data = "data",
    }
}

table! {
    /// `model` of a job: the transformer that is trained.
    Model {
        /// Its parameters, all experts included.
        params: Located<u64>;
        /// Its layers: a multiple of `pipeline`.
        layers: Located<NonZeroU32>;
        /// Hidden size, the activations of a token between layers: a multiple of `tensor`.
        hidden: Located<NonZeroU32>;
        /// Tokens of a sequence.
        sequence: Located<NonZeroU32>;
        /// Vocabulary size in tokens. If given, `vocabulary` x `hidden` of the parameters are the embedding, which the
        /// first and the last stage both hold and keep alike.
        vocabulary: Option<Located<NonZeroU32>> = None;
        /// Experts of each layer, a multiple of `expert`. If given, every layer is a mixture of experts.
        experts: Option<Located<NonZeroU32>> = None;
        /// Number of experts to which a token goes.
        top_k: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Parameters of all experts of all layers together; if not given, 8 x `hidden`^2 x `experts` x `layers`.
        expert_params: Option<Located<u64>> = None;
        /// Bytes of a parameter, of a gradient and of an activation.
        bytes_per_param: NonZeroU8 = NonZeroU8::MIN.saturating_add(1);
    }
}

table! {
    /// `parallel` of a job: the degrees of parallelism. `tensor` x `pipeline` x `data` are its ranks.
    Parallel {
        /// Ranks that share each layer.
        tensor: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Stages of the pipeline.
        pipeline: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Copies of the model.
        data: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Copies that share the experts: a divisor of `data`.
        expert: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
    }
}

table! {
    /// `compute` of a job: compute time of a stage for a micro-batch, all its layers together.
    ComputeTimes {
        /// Forward.
        forward: Span;
        /// Backward.
        backward: Span;
    }
}

table! {
    /// `collectives` of a job: the algorithms of its all-reduces. Experts exchange tokens as `all-to-all` does in `[[traffic]]`, which has one algorithm.
    Collectives {
        /// Activations, in groups of `tensor` ranks.
        tensor: Located<Algorithm> = Located::default_of(Algorithm::Ring);
        /// Gradients, in groups of `data` ranks.
        data: Located<Algorithm> = Located::default_of(Algorithm::Ring);
    }
}

table! {
    /// `[[job]]`: a training job. Its flows wait for each other and for computing, iteration after iteration.
    Job {
        /// Its name in results, different from those of other jobs and of traffic.
        name: Located<String>;
        /// The class of its packets at switches that share their buffer, 1 to 7.
        traffic_class: DataClass = DataClass(1);
        /// Lets On-Ramp hold its flows, where `[host]` has it.
        on_ramp: bool = true;
        /// `new`: each flow opens a connection and closes it. `kept`: a flow reuses a connection that an earlier one of
        /// the same two hosts, class and law left and that has nothing to send; if there is none, it opens one. Laws
        /// that send by credits open one for each flow.
        connections: Connections = Connections::New;
        /// The model that is trained.
        model: Model;
        /// Degrees of parallelism.
        parallel: Parallel = Field::decode(&Node::empty_table())?;
        /// Hosts: as many as there are ranks, or tensor groups with `ranks_per_host`. Ranks fill hosts in this order,
        /// the ranks of a tensor group next to each other.
        placement: Located<PlacementOrder>;
        /// Shuffles the hosts of `placement` by `seed`.
        shuffle: bool = false;
        /// Seed of what the job draws; if not given, it follows from the scenario's `seed` and the job's number.
        seed: Option<u64> = None;
        /// Groups that are farthest apart in the order of hosts. `pipeline`: the stages of a pipeline; neighbouring
        /// hosts are in one stage. `data`: the copies of the model; neighbouring hosts are in one pipeline.
        outermost: Outermost = Outermost::Pipeline;
        /// 1, or `tensor`: then a tensor group is one host, and its all-reduces are no flows.
        ranks_per_host: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// The rate between two ranks of a host, in each direction, with `ranks_per_host` over 1.
        intra_host_rate: Rate = Rate::from_bps(2_400_000_000_000);
        /// Micro-batches that each copy of the model takes in an iteration.
        micro_batches: Located<NonZeroU32>;
        /// Sequences of a micro-batch.
        batch: NonZeroU32 = NonZeroU32::MIN;
        /// Compute times of ranks. Either this or `flops`.
        compute: Option<Located<ComputeTimes>> = None;
        /// Floating-point operations per second of each rank.
        flops: Option<Located<Flops>> = None;
        /// Algorithms of all-reduces.
        collectives: Collectives = Field::decode(&Node::empty_table())?;
        /// The order of micro-batches in a stage.
        schedule: PipelineWord = PipelineWord::OneForwardOneBackward;
        /// Number of iterations.
        iterations: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN);
        /// Time at which it begins to compute.
        start: Span = Span::ZERO;
    }
}

impl Job {
    /// Returns the options of its flows.
    pub(crate) fn treatment(&self) -> FlowOptions {
        FlowOptions {
            traffic_class: self.traffic_class.0,
            on_ramp: self.on_ramp,
            kept: self.connections == Connections::Persistent,
        }
    }
}
