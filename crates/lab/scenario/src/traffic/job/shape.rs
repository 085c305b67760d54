//! Dimensions of a job: its ranks, the bytes that they send, the time that they compute.
//!
//! For B sequences a micro-batch of s tokens, h numbers a token, b bytes a number, P parameters, and t, p, d, e ranks that
//! share a layer, stages, copies and copies that share experts:
//!
//! | what | bytes |
//! |---|---|
//! | activations: what a tensor group sums up, what a stage hands on, what a rank has for the experts (`top_k` times) | A = B s h b |
//! | gradients of a rank: what the copies sum up | b P / (p t) |
//! | gradients of the experts that a rank has | b X / (p t e), of X parameters in all experts |
//! | gradients of the embedding, at the first and at the last stage | b V h / t, of V tokens that there are |
//!
//! P is without experts and, if V is given, without the embedding, which both ends of the pipeline hold in addition.
//!
//! Operations: 2 a parameter and token forward, twice that backward (Narayanan et al., SC 2021, "Efficient Large-Scale
//! Language Model Training on GPU Clusters Using Megatron-LM", §5.1 and appendix: a matrix product of m x k by k x n takes
//! 2 m k n, and the backward pass has two of them for each). Only experts that a token is sent to count. Left out:
//! attention's products of activations (4 B s² h a layer, forward) and activations that are computed again.

use fabric::HostId;
use units::{Bytes, Span};

use super::schedule::PassDirection;
use crate::config::{Job, Outermost};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::random::Draws;
use crate::traffic::collective::CollectivePlan;
use crate::traffic::{TrafficContext, placement};

/// A rank by its places in its groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RankCoord {
    pub(super) tensor: u32,
    pub(super) copy: u32,
    pub(super) stage: u32,
}

/// A job, checked.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) tensor: u32,
    pub(super) stages: u32,
    pub(super) copies: u32,
    pub(super) expert: u32,
    /// Layers of a stage.
    pub(super) layers: u32,
    pub(super) micro_batches: u32,
    outermost: Outermost,
    ranks_per_host: u32,
    pub(super) hosts: Vec<HostId>,
    pub(super) tensor_plan: CollectivePlan,
    pub(super) data_plan: CollectivePlan,
    /// Layers are mixtures of experts that send tokens to other ranks.
    pub(super) exchanges: bool,
    pub(super) activations: Bytes,
    /// Bytes of a rank for all ranks of its expert group.
    pub(super) tokens: Bytes,
    /// By stage.
    gradients: Vec<Bytes>,
    pub(super) expert_gradients: Option<Bytes>,
    pub(super) embedding: Option<Bytes>,
    /// By stage: how long it computes forward and backward on a micro-batch.
    compute: Vec<[Span; 2]>,
    /// Duration of an all-reduce of a tensor group in one host.
    pub(super) local: Span,
}

/// More flows than this are a mistake.
const MAX_FLOWS: u64 = 10_000_000;
/// Likewise, how often ranks take a micro-batch.
const MAX_TURNS: u128 = 100_000_000;

impl Shape {
    pub(super) fn new(job: &Job, draws: Draws, context: &TrafficContext<'_>) -> Result<Self, SpannedError> {
        let (model, parallel) = (&job.model, &job.parallel);
        let [tensor, stages, copies, expert] =
            [parallel.tensor, parallel.pipeline, parallel.data, parallel.expert].map(|count| count.get());
        divides("layers", u64::from(model.layers.get()), model.layers.origin, "pipeline", stages)?;
        divides("hidden", u64::from(model.hidden.get()), model.hidden.origin, "tensor", tensor)?;
        divides("data", u64::from(copies), parallel.data.origin, "expert", expert)?;
        let experts = experts(job)?;
        if expert > 1 && experts == 0 {
            return Err(SpannedError::new(
                parallel.expert.origin,
                format!("expert = {expert}, and the model has no experts"),
            )
            .label("expected 1")
            .help("give the model `experts`"));
        }
        let tensor_plan = CollectivePlan::all_reduce(*job.collectives.tensor);
        let data_plan = CollectivePlan::all_reduce(*job.collectives.data);
        let expert_copies = copies / expert;
        for (plan, ranks, origin, group) in [
            (tensor_plan, tensor, job.collectives.tensor.origin, "tensor"),
            (data_plan, copies, job.collectives.data.origin, "data"),
            (data_plan, expert_copies, job.collectives.data.origin, "data / expert"),
        ] {
            if plan.by_halves() && !ranks.is_power_of_two() && (group != "data / expert" || experts > 0) {
                return Err(SpannedError::new(origin, format!("halving-doubling among {ranks} ranks ({group})"))
                    .label("expected \"ring\" or \"tree\", or a power of two of ranks"));
            }
        }
        let hosts = hosts(job, draws, context)?;
        let sizes = ModelSizes::new(job, experts)?;
        let size = |bytes: u128, origin| {
            let bytes = Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX));
            context.size(Located { value: bytes, origin })
        };
        let (of_params, of_hidden) = (model.params.origin, model.hidden.origin);
        let activations = size(sizes.activations, of_hidden)?;
        let gradients = (0..stages).map(|stage| size(sizes.gradients(stage), of_params));
        let local = match job.ranks_per_host.get() {
            1 => Span::ZERO,
            ranks => {
                let part = activations.get().div_ceil(ranks.into());
                job.intra_host_rate.tx_time(Bytes::new(2 * u64::from(ranks - 1) * part))
            }
        };
        let shape = Self {
            tensor,
            stages,
            copies,
            expert,
            layers: model.layers.get() / stages,
            micro_batches: job.micro_batches.get(),
            outermost: job.outermost,
            ranks_per_host: job.ranks_per_host.get(),
            hosts,
            tensor_plan,
            data_plan,
            exchanges: expert > 1,
            activations,
            tokens: size(sizes.activations.saturating_mul(model.top_k.get().into()), of_hidden)?,
            gradients: gradients.collect::<Result<_, SpannedError>>()?,
            expert_gradients: (experts > 0).then(|| size(sizes.expert_gradients(), of_params)).transpose()?,
            embedding: sizes.embedding_gradients().map(|bytes| size(bytes, of_hidden)).transpose()?,
            compute: sizes.compute(job)?,
            local,
        };
        shape.check_flows(job)?;
        Ok(shape)
    }

    /// Returns the number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.tensor * self.stages * self.copies
    }

    /// Returns whether the ranks of a tensor group are on different hosts.
    pub(super) fn sums_over_network(&self) -> bool {
        self.tensor > 1 && self.ranks_per_host == 1
    }

    /// The number of a rank, in the order in which ranks fill hosts.
    pub(super) fn rank(&self, RankCoord { tensor, copy, stage }: RankCoord) -> usize {
        let group = match self.outermost {
            Outermost::Pipeline => copy + self.copies * stage,
            Outermost::Data => stage + self.stages * copy,
        };
        (tensor + self.tensor * group) as usize
    }

    /// The host of a rank.
    pub(super) fn host(&self, rank: usize) -> HostId {
        self.hosts[rank / self.ranks_per_host as usize]
    }

    /// Returns the bytes that a rank of a stage sums up with its copies, except for experts.
    pub(super) fn gradients(&self, stage: u32) -> Bytes {
        self.gradients[stage as usize]
    }

    /// Returns the time for which a stage computes on a micro-batch.
    pub(super) fn compute(&self, stage: u32, direction: PassDirection) -> Span {
        self.compute[stage as usize][usize::from(direction == PassDirection::Backward)]
    }

    /// The flows of an iteration.
    pub(super) fn flows(&self) -> u128 {
        let [t, p, d, e] = [self.tensor, self.stages, self.copies, self.expert].map(u128::from);
        let micro_batches = u128::from(self.micro_batches);
        // In every layer of every copy, two all-reduces and two exchanges each way.
        let in_layers = 4 * p * u128::from(self.layers) * d * micro_batches;
        let all_reduce =
            |plan: CollectivePlan, ranks: u32| if ranks > 1 { u128::from(plan.flows(ranks.into())) } else { 0 };
        let tensor = if self.sums_over_network() { in_layers * all_reduce(self.tensor_plan, self.tensor) } else { 0 };
        let expert = if self.exchanges { in_layers * t * (e - 1) } else { 0 };
        let pipeline = 2 * (p - 1) * t * d * micro_batches;
        let of_experts = self.expert_gradients.map_or(0, |_| all_reduce(self.data_plan, self.copies / self.expert));
        let data = p * t * (all_reduce(self.data_plan, self.copies) + e * of_experts);
        let embedding = self.embedding.map_or(0, |_| t * d * u128::from(CollectivePlan::RingAllReduce.flows(2)));
        tensor + expert + pipeline + data + embedding
    }

    /// Refuses more flows than anybody means, and jobs without any.
    fn check_flows(&self, job: &Job) -> Result<(), SpannedError> {
        let each = self.flows();
        if each == 0 {
            let message = format!("job `{}` sends nothing: all of its ranks are on one host", job.name.value);
            return Err(SpannedError::new(job.placement.origin, message)
                .label("one host")
                .help("set `tensor`, `pipeline` or `data` of `parallel` to 2 or more"));
        }
        let max_flows = u128::from(MAX_FLOWS);
        let iterations = u128::from(job.iterations.get());
        // Steps that ranks take without a flow cost time and memory here, too.
        let turns = 2 * u128::from(self.tensor) * u128::from(self.stages) * u128::from(self.copies) * iterations;
        if turns.saturating_mul(self.micro_batches.into()) > MAX_TURNS {
            let message = format!("{} micro-batches in {} iterations of all ranks", self.micro_batches, turns / 2);
            return Err(SpannedError::new(job.micro_batches.origin, message)
                .label(format!("expected at most {}", MAX_TURNS / turns)));
        }
        if each.saturating_mul(iterations) <= max_flows {
            return Ok(());
        }
        let message = format!("{} iterations of {each} flows", job.iterations.get());
        if each <= max_flows {
            return Err(SpannedError::new(job.iterations.origin, message)
                .label(format!("expected at most {}, of {MAX_FLOWS} flows", max_flows / each)));
        }
        Err(SpannedError::new(job.micro_batches.origin, message)
            .label(format!("expected an iteration of at most {MAX_FLOWS} flows"))
            .help("fewer `micro_batches`, `layers` or ranks make fewer flows; with `ranks_per_host` tensor groups make none"))
    }
}

/// Refuses a number that cannot be divided into `parts` equal parts.
fn divides(key: &str, number: u64, origin: SourceSpan, by: &str, parts: u32) -> Result<(), SpannedError> {
    if number.is_multiple_of(parts.into()) {
        return Ok(());
    }
    Err(SpannedError::new(origin, format!("`{key}` is {number}, and `{by}` is {parts}"))
        .label(format!("expected a multiple of {parts}")))
}

/// Returns the number of experts of a layer, zero without experts.
fn experts(job: &Job) -> Result<u64, SpannedError> {
    let model = &job.model;
    let Some(experts) = model.experts else {
        let origin = model.expert_params.map(|at| at.origin);
        return match origin.or((model.top_k.get() > 1).then_some(model.top_k.origin)) {
            Some(origin) => Err(SpannedError::new(origin, "this model has no experts").label("only with `experts`")),
            None => Ok(0),
        };
    };
    divides("experts", u64::from(experts.get()), experts.origin, "expert", job.parallel.expert.get())?;
    if model.top_k.get() > experts.get() {
        let message = format!("a token goes to {} of {} experts", model.top_k.get(), experts.get());
        return Err(SpannedError::new(model.top_k.origin, message).label(format!("expected 1 to {}", experts.get())));
    }
    Ok(u64::from(experts.get()))
}

/// The hosts of a job, in the order in which ranks fill them.
fn hosts(job: &Job, draws: Draws, context: &TrafficContext<'_>) -> Result<Vec<HostId>, SpannedError> {
    let parallel = &job.parallel;
    let [tensor, pipeline, data] = [parallel.tensor, parallel.pipeline, parallel.data].map(|count| count.get());
    let per_host = job.ranks_per_host.get();
    if per_host != 1 && per_host != tensor {
        let expected = if tensor == 1 { "1".to_owned() } else { format!("1 or {tensor}, as `tensor`") };
        let message = format!("ranks_per_host = {per_host}, and `tensor` is {tensor}");
        return Err(SpannedError::new(job.ranks_per_host.origin, message).label(format!("expected {expected}")));
    }
    let mut hosts = placement::hosts(&job.placement, context)?;
    let ranks = u128::from(tensor) * u128::from(pipeline) * u128::from(data);
    let wanted = ranks / u128::from(per_host);
    if hosts.len() as u128 != wanted {
        let of = if per_host == 1 { String::new() } else { format!(", {per_host} a host") };
        let message = format!(
            "tensor {tensor} x pipeline {pipeline} x data {data} are {ranks} ranks{of}, and `placement` has {} hosts",
            hosts.len()
        );
        return Err(SpannedError::new(job.placement.origin, message).label(format!("expected {wanted} hosts")));
    }
    if job.shuffle {
        // Fisher and Yates.
        for last in (1..hosts.len()).rev() {
            hosts.swap(last, draws.below(last as u64, last + 1));
        }
    }
    Ok(hosts)
}

/// Parameters and bytes, as integers that do not overflow: at most 2^63 parameters, of 2^8 bytes.
struct ModelSizes {
    /// Parameters of a stage, without the embedding and experts.
    stage: u128,
    stages: u32,
    tensor: u128,
    /// Parameters of all experts of a stage.
    experts: u128,
    /// Parameters of the experts that a token is sent to.
    active_experts: u128,
    expert_groups: u128,
    embedding: Option<u128>,
    bytes: u128,
    /// Tokens of a micro-batch.
    tokens: u128,
    activations: u128,
}

impl ModelSizes {
    fn new(job: &Job, experts: u64) -> Result<Self, SpannedError> {
        let model = &job.model;
        let [layers, hidden, sequence] = [model.layers, model.hidden, model.sequence].map(|at| u128::from(at.get()));
        let [tensor, stages, expert] =
            [job.parallel.tensor, job.parallel.pipeline, job.parallel.expert].map(|at| u128::from(at.get()));
        let default_params = || 8u128.saturating_mul(hidden * hidden).saturating_mul(u128::from(experts) * layers);
        let of_experts = match model.expert_params {
            _ if experts == 0 => 0,
            Some(explicit) => u128::from(explicit.value),
            None => default_params(),
        };
        let embedding = model.vocabulary.map(|vocabulary| u128::from(vocabulary.get()) * hidden);
        let separate_params = of_experts.saturating_add(embedding.unwrap_or(0));
        let params = u128::from(model.params.value);
        if params <= separate_params {
            let mut parts = Vec::new();
            parts.extend(embedding.map(|params| format!("{params} of the embedding")));
            parts.extend((experts > 0).then(|| format!("{of_experts} of experts")));
            let (message, expected) = if separate_params == 0 {
                ("a model without parameters".to_owned(), "at least 1".to_owned())
            } else {
                (
                    format!("{params} parameters, {} among them", parts.join(" and ")),
                    format!("more than {separate_params}"),
                )
            };
            return Err(SpannedError::new(model.params.origin, message).label(format!("expected {expected}")));
        }
        let bytes = u128::from(model.bytes_per_param.get());
        let tokens = u128::from(job.batch.get()) * sequence;
        Ok(Self {
            stage: (params - separate_params).div_ceil(stages),
            stages: job.parallel.pipeline.get(),
            tensor,
            experts: of_experts.div_ceil(stages),
            active_experts: match u128::from(experts) {
                0 => 0,
                experts => of_experts.div_ceil(stages) * u128::from(model.top_k.get()) / experts,
            },
            expert_groups: expert,
            embedding,
            bytes,
            tokens,
            activations: tokens.saturating_mul(hidden).saturating_mul(bytes),
        })
    }

    fn gradients(&self, stage: u32) -> u128 {
        let ends = stage == 0 || stage + 1 == self.stages;
        let embedding = self.embedding.filter(|_| ends).unwrap_or(0);
        (self.stage + embedding).div_ceil(self.tensor) * self.bytes
    }

    fn expert_gradients(&self) -> u128 {
        self.experts.div_ceil(self.tensor * self.expert_groups) * self.bytes
    }

    /// The first stage's and the last one's, if they are not the same.
    fn embedding_gradients(&self) -> Option<u128> {
        let embedding = self.embedding.filter(|_| self.stages > 1)?;
        Some(embedding.div_ceil(self.tensor) * self.bytes)
    }

    /// By stage: how long it computes on a micro-batch.
    fn compute(&self, job: &Job) -> Result<Vec<[Span; 2]>, SpannedError> {
        let flops = match (&job.compute, &job.flops) {
            (Some(times), None) => return Ok(vec![[times.forward, times.backward]; self.stages as usize]),
            (None, Some(flops)) => u128::from(flops.value.0),
            (Some(_), Some(flops)) => {
                return Err(SpannedError::new(
                    flops.origin,
                    "`compute` and `flops` both set how long ranks compute: give one",
                ));
            }
            (None, None) => {
                return Err(SpannedError::new(SourceSpan::NOWHERE, "this job has neither `compute` nor `flops`")
                    .help("give compute = { forward = \"2ms\", backward = \"4ms\" }, or flops = \"400TFLOPS\""));
            }
        };
        let times = |stage: u32| {
            // The first stage looks tokens up; the last one compares with all of them.
            let last = self.embedding.filter(|_| stage + 1 == self.stages).unwrap_or(0);
            let params = self.stage + self.active_experts + last;
            let operations = params.saturating_mul(2).saturating_mul(self.tokens);
            let ps = operations.saturating_mul(1_000_000_000_000) / (flops * self.tensor);
            let span = |ps: u128| Span::from_ps(i64::try_from(ps).unwrap_or(i64::MAX));
            [span(ps), span(ps.saturating_mul(2))]
        };
        Ok((0..self.stages).map(times).collect())
    }
}
