//! SimAI workloads, as written by its generator AICB and read by its simulator, a fork of astra-sim, as GOAL schedules.
//! Wang et al., "SimAI", NSDI 2025; implemented from `Workload::initialize_workload` and
//! `iterate_hybrid_parallel_Transformer_fwd_in_bckwd` of aliyun/SimAI.
//!
//! The first line has the parallelism and pairs such as `ep: 2`, the second the number of layers, then each layer has a
//! line of 12 columns: name, dependency (which the simulator does not use either), then time, collective and bytes of the
//! forward pass, of the input's gradient and of the weights' gradient, and the time of the update. Times are in
//! nanoseconds. Bytes are those of the buffer that a group divides, also for an all-gather: its output
//! (`MockNcclGroup::genAllGatherFlowModels`).
//!
//! Every rank does the same: forward from the first layer to the last, then back. A layer computes, then executes its
//! collective, and the following operations wait for it; in the backward pass it first executes that of the input's
//! gradient, then that of the weights'. Only the collective of a weight gradient runs concurrently with the following
//! operations. The collectives of one group run one after the other, as on a NCCL communicator. A further pass of a layer
//! begins when its update is complete.
//!
//! Rank r is place `r % tp` of its tensor-parallel group of consecutive ranks; with d = r / tp, an expert-parallel group is
//! the ep ranks of one place from a multiple of ep on, the data-parallel group all ranks of one place, and the groups
//! `_DP_EP` those of one place with the same d % ep.

use std::collections::{BTreeMap, BTreeSet};

use crate::goal::{Goal, OpKind, Rank};
use crate::rings::{Collective, CollectiveOps, MAX, Membership, RankBuilder};
use crate::{ByteRange, Error};

/// The parallelisms that are read, as the first word of a workload. They differ in recomputation alone.
pub const POLICIES: [&str; 2] = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER"];
/// Maximum number of ranks. More are a mistake.
const MAX_RANKS: u64 = 1 << 16;
/// Columns of a layer.
const COLUMNS: usize = 12;
const COLLECTIVES: &str =
    "expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, also with _EP, _DP or _DP_EP behind it";

/// Statistics of the workload, in addition to the schedule.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SimAiStats {
    /// Division of the ranks into groups.
    pub parallel: Parallel,
    /// Layers, each once.
    pub layers: usize,
    /// Micro-batches (`ga`); the file has the layers of each.
    pub micro_batches: u64,
    /// Collectives of the file, except omitted ones.
    pub collectives: usize,
    /// Omitted collectives: those of no bytes.
    pub empty: usize,
    /// Omitted collectives: those of groups of one rank.
    pub alone: usize,
    /// Unknown keys of the first line.
    pub unknown: Vec<String>,
    /// Keys missing from the first line, as in older workloads: each is 1.
    pub assumed: Vec<&'static str>,
}

/// Type of a group of ranks that communicate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RankGroupKind {
    Tensor,
    Expert,
    Data,
    DataOfExpert,
}

/// Work of a layer in one of its three parts.
#[derive(Clone, Copy, Debug)]
struct LayerPart {
    compute_ns: u64,
    shared: Option<(Collective, RankGroupKind, u64)>,
}

/// A layer.
struct Layer {
    forward: LayerPart,
    input: LayerPart,
    weights: LayerPart,
    update_ns: u64,
    at: ByteRange,
}

/// The parallelism: the number of ranks in a group of each type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parallel {
    /// Ranks that share a layer.
    pub tensor: u32,
    /// Ranks that share the experts.
    pub expert: u32,
    /// Ranks that have the same part of the model.
    pub data: u32,
}

/// Values that a workload does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkloadOptions {
    /// Passes of the workload, one after the other.
    pub passes: u32,
    /// The number of ranks, for workloads without `all_gpus`: AICB's older ones, for which SimAI takes it from its topology.
    pub ranks: Option<u32>,
}

/// A token and its position in the file.
type SimAiToken<'a> = (&'a str, ByteRange);

/// Reads a workload.
///
/// # Errors
/// If the text is not such a workload: an unknown parallelism, collective or number, a number of layers other than
/// stated, groups that do not divide the ranks. If it has several pipeline stages, or recomputes layers. If neither it
/// nor `options` states the number of ranks, or both do and differ.
pub fn read(text: &str, options: WorkloadOptions) -> Result<(Goal, SimAiStats), Error> {
    let mut lines = lines(text);
    let nothing =
        || Error::text(ByteRange::new(0..0), "the workload is empty", format!("expected {} ...", POLICIES[0]));
    let header = lines.next().ok_or_else(nothing)?;
    let mut found = SimAiStats::default();
    let parallel = parallel(&header, options.ranks, &mut found)?;
    let after = header[header.len() - 1].1;
    let counted =
        lines.next().ok_or_else(|| Error::text(after, "the workload ends here", "expected a number of layers"))?;
    let count = number(counted[0], "a number of layers")?;
    if let Some(more) = counted.get(1) {
        return Err(Error::text(more.1, "a line with the number of layers has more", "expected one number"));
    }
    let layers = lines.map(|tokens| layer(&tokens)).collect::<Result<Vec<Layer>, Error>>()?;
    if count != layers.len() as u64 || count == 0 {
        let problem = format!("{count} layers, and {} lines of layers follow", layers.len());
        return Err(Error::text(counted[0].1, problem, "expected a line for each layer, and one at least"));
    }
    found.layers = layers.len();
    parallel.count(&layers, &mut found);
    Ok((parallel.schedule(&layers, options.passes)?, found))
}

/// Returns the tokens of lines that are not empty.
fn lines(text: &str) -> impl Iterator<Item = Vec<SimAiToken<'_>>> {
    let mut start = 0;
    let all = text.split_inclusive('\n').map(move |line| {
        let begin = start;
        start += line.len();
        let span = move |token: &str| {
            // A token is a part of its line, so the difference of their addresses is its place.
            let at = begin + (token.as_ptr() as usize - line.as_ptr() as usize);
            ByteRange::new(at..at + token.len())
        };
        line.trim_start_matches('\u{feff}').split_whitespace().map(|token| (token, span(token))).collect::<Vec<_>>()
    });
    all.filter(|tokens| !tokens.is_empty())
}

fn number((token, at): SimAiToken<'_>, expected: &str) -> Result<u64, Error> {
    let bad = |_| Error::text(at, format!("`{token}` is not {expected}"), "expected a whole number from 0 up");
    token.parse().map_err(bad)
}

/// Reads the parallelism from the first line; `ranks` applies if it does not state the number of ranks.
fn parallel(header: &[SimAiToken<'_>], ranks: Option<u32>, found: &mut SimAiStats) -> Result<Parallel, Error> {
    let (policy, at) = header[0];
    if !POLICIES.contains(&policy) {
        let problem = format!("the parallelism `{policy}`");
        return Err(Error::text(at, problem, format!("expected {}", POLICIES.join(" or "))));
    }
    let mut header_values: BTreeMap<&str, (u64, ByteRange)> = BTreeMap::new();
    let mut tokens = header[1..].iter().copied().peekable();
    while let Some((key, at)) = tokens.next() {
        // AICB writes `pp_comm` without a colon, too.
        let Some(name) = key.strip_suffix(':').or((key == "pp_comm").then_some(key)) else {
            return Err(Error::text(at, format!("`{key}` where a key should stand"), "expected a key such as `ep:`"));
        };
        let mut values = Vec::new();
        while let Some(value) = tokens.next_if(|(token, _)| !token.ends_with(':') && *token != "pp_comm") {
            values.push(value);
        }
        let Some(&first) = values.first() else {
            return Err(Error::text(at, format!("`{key}` has no value"), "expected a number behind it"));
        };
        // Older revisions of AICB spell `ep` out.
        let name = if name == "expert_parallel_npu_group" { "ep" } else { name };
        match name {
            "model_parallel_NPU_group"
            | "ep"
            | "pp"
            | "vpp"
            | "ga"
            | "all_gpus"
            | "checkpoints"
            | "checkpoint_initiates" => {
                if header_values.insert(name, (number(first, "a number")?, first.1)).is_some() {
                    return Err(Error::text(at, format!("`{key}` occurs twice"), "expected it once"));
                }
                let lists = name.starts_with("checkpoint");
                if let Some(&(more, at)) = values.get(1).filter(|_| !lists) {
                    return Err(Error::text(
                        at,
                        format!("`{more}` where a key should stand"),
                        "expected a key such as `ep:`",
                    ));
                }
            }
            // Transfers between pipeline stages: there is only one stage.
            "pp_comm" => {}
            _ => found.unknown.push(name.to_owned()),
        }
    }
    let of = |key: &str, otherwise: Option<u64>| match (header_values.get(key), otherwise) {
        (Some(&(0, at)), _) => Err(Error::text(at, format!("`{key}: 0`"), "expected a number over 0")),
        (Some(&value), _) => Ok(value),
        (None, Some(otherwise)) => Ok((otherwise, at)),
        (None, None) => Err(Error::text(at, format!("the first line has no `{key}:`"), "expected it with a number")),
    };
    for key in ["checkpoints", "checkpoint_initiates"] {
        if let Some(&(count @ 1.., at)) = header_values.get(key) {
            let problem = format!("`{key}: {count}`: recomputation of layers in the backward pass is not read");
            return Err(Error::text(at, problem, "expected 0, as AICB writes; it adds recomputation to layers' times"));
        }
    }
    let (stages, at) = of("pp", Some(1))?;
    if stages > 1 {
        let problem = format!("a pipeline of {stages} stages: the file does not assign layers to stages");
        return Err(Error::text(at, problem, "expected `pp: 1`; [[job]] of a scenario has pipelines"));
    }
    found.micro_batches = of("ga", Some(1))?.0;
    found.assumed = ["ep", "pp", "ga"].into_iter().filter(|key| !header_values.contains_key(key)).collect();
    let ((tensor, tensor_at), (expert, expert_at)) = (of("model_parallel_NPU_group", None)?, of("ep", Some(1))?);
    let (all, all_at) = match (header_values.contains_key("all_gpus"), ranks.map(u64::from)) {
        (true, ranks) => {
            let (all, at) = of("all_gpus", None)?;
            if let Some(ranks) = ranks.filter(|&ranks| ranks != all) {
                let problem = format!("`all_gpus: {all}`, where {ranks} ranks are asked for");
                return Err(Error::text(at, problem, "expected the same number, or none by an option"));
            }
            (all, at)
        }
        (false, Some(ranks)) => (ranks, header[0].1),
        (false, None) => {
            let problem = "the first line has no `all_gpus:`: it does not state the number of ranks";
            return Err(Error::text(
                header[0].1,
                problem,
                "expected it, or the number by an option: --ranks N, or the key `ranks`",
            ));
        }
    };
    if all > MAX_RANKS {
        return Err(Error::text(all_at, format!("{all} ranks"), format!("expected up to {MAX_RANKS}")));
    }
    if all % tensor != 0 {
        let problem = format!("tensor-parallel groups of {tensor} do not divide {all} ranks");
        return Err(Error::text(tensor_at, problem, "expected a divisor of the number of ranks"));
    }
    let data = all / tensor;
    if data % expert != 0 {
        let problem = format!("expert-parallel groups of {expert} do not divide data-parallel groups of {data}");
        return Err(Error::text(
            expert_at,
            problem,
            "expected a divisor of the number of ranks / `model_parallel_NPU_group`",
        ));
    }
    // Each is a divisor of the number of ranks, which is limited.
    let [tensor, expert, data] = [tensor, expert, data].map(|ranks| u32::try_from(ranks).unwrap_or(u32::MAX));
    found.parallel = Parallel { tensor, expert, data };
    Ok(found.parallel)
}

fn layer(tokens: &[SimAiToken<'_>]) -> Result<Layer, Error> {
    let at = tokens[0].1.to(tokens[tokens.len() - 1].1);
    if tokens.len() != COLUMNS {
        let problem = format!("a layer of {} columns", tokens.len());
        let columns = "expected 12: name, -1, (time, collective, bytes) three times, time of the update";
        return Err(Error::text(at, problem, columns));
    }
    let time = |column: usize| number(tokens[column], "a time in ns");
    let part = |first: usize, own: RankGroupKind| {
        let (shared, bytes) = (shared(tokens[first + 1], own)?, number(tokens[first + 2], "a number of bytes")?);
        let shared = shared.map(|(collective, group)| (collective, group, bytes));
        Ok(LayerPart { compute_ns: time(first)?, shared })
    };
    Ok(Layer {
        forward: part(2, RankGroupKind::Tensor)?,
        input: part(5, RankGroupKind::Tensor)?,
        weights: part(8, RankGroupKind::Data)?,
        update_ns: time(11)?,
        at,
    })
}

/// Returns the collective that a token names, with the group that it names, or else with `own`.
fn shared((token, at): SimAiToken<'_>, own: RankGroupKind) -> Result<Option<(Collective, RankGroupKind)>, Error> {
    if token == "NONE" {
        return Ok(None);
    }
    let suffixes =
        [("_DP_EP", RankGroupKind::DataOfExpert), ("_EP", RankGroupKind::Expert), ("_DP", RankGroupKind::Data)];
    let suffixed = suffixes.iter().find_map(|&(suffix, group)| Some((token.strip_suffix(suffix)?, group)));
    let (name, group) = suffixed.unwrap_or((token, own));
    let collective = match name {
        "ALLREDUCE" => Collective::AllReduce,
        "ALLGATHER" => Collective::AllGather,
        "REDUCESCATTER" => Collective::ReduceScatter,
        "ALLTOALL" => Collective::AllToAll,
        _ => return Err(Error::text(at, format!("the collective `{token}`"), COLLECTIVES)),
    };
    Ok(Some((collective, group)))
}

impl LayerPart {
    /// Returns the group of its collective, if that transfers any bytes.
    fn group(self) -> Option<RankGroupKind> {
        self.shared.filter(|(.., bytes)| *bytes > 0).map(|(_, group, _)| group)
    }
}

impl Layer {
    fn parts(&self) -> [LayerPart; 3] {
        [self.forward, self.input, self.weights]
    }
}

impl Parallel {
    /// Returns the number of ranks in a group.
    fn ranks(self, group: RankGroupKind) -> u32 {
        match group {
            RankGroupKind::Tensor => self.tensor,
            RankGroupKind::Expert => self.expert,
            RankGroupKind::Data => self.data,
            RankGroupKind::DataOfExpert => self.data / self.expert,
        }
    }

    /// Returns the ranks of a rank's group, and its place among them.
    fn members(self, group: RankGroupKind, rank: u32) -> (Vec<u32>, usize) {
        let (tensor_rank, d) = (rank % self.tensor, rank / self.tensor);
        let at = |d: u32| tensor_rank + self.tensor * d;
        let expert = d % self.expert;
        match group {
            RankGroupKind::Tensor => {
                ((0..self.tensor).map(|place| place + self.tensor * d).collect(), tensor_rank as usize)
            }
            RankGroupKind::Expert => ((d - expert..d - expert + self.expert).map(at).collect(), expert as usize),
            RankGroupKind::Data => ((0..self.data).map(at).collect(), d as usize),
            RankGroupKind::DataOfExpert => {
                ((expert..self.data).step_by(self.expert as usize).map(at).collect(), (d / self.expert) as usize)
            }
        }
    }

    /// Counts collectives.
    fn count(self, layers: &[Layer], found: &mut SimAiStats) {
        for (_, group, bytes) in layers.iter().flat_map(Layer::parts).filter_map(|part| part.shared) {
            match (bytes, self.ranks(group)) {
                (0, _) => found.empty += 1,
                (_, 1) => found.alone += 1,
                _ => found.collectives += 1,
            }
        }
    }

    /// Returns the schedule of all ranks. The operations of a rank are counted before they are created: groups of many
    /// ranks have many.
    fn schedule(self, layers: &[Layer], passes: u32) -> Result<Goal, Error> {
        let ranks = self.tensor * self.data;
        let parts = || layers.iter().flat_map(Layer::parts);
        let each: usize = parts().map(|part| self.ops(part)).fold(layers.len(), usize::saturating_add);
        if each.saturating_mul(passes as usize).saturating_mul(ranks as usize) > MAX {
            let problem = format!("over {MAX} operations of {ranks} ranks");
            return Err(Error::text(layers[0].at, problem, "expected fewer ranks, layers or passes"));
        }
        let used: BTreeSet<RankGroupKind> = parts().filter_map(LayerPart::group).collect();
        let rank = |number: u32| {
            let groups = used.iter().map(|&group| (group, self.members(group, number))).collect();
            let mut walk = RankWalk { groups, now: None, last: BTreeMap::new(), tag: 0 };
            let (mut schedule, mut updated) = (Rank::default(), vec![None; layers.len()]);
            for _ in 0..passes {
                walk.pass(layers, &mut updated, &mut schedule);
            }
            schedule.edges.sort_unstable();
            schedule.edges.dedup();
            schedule
        };
        Ok(Goal { ranks: (0..ranks).map(rank).collect() })
    }

    /// Returns the maximum number of operations of a part: its computation, and those of a collective with the two that
    /// wait for it and for the previous one.
    fn ops(self, part: LayerPart) -> usize {
        let steps = |(collective, group, _): (Collective, RankGroupKind, u64)| {
            let rounds = if collective == Collective::AllReduce { 2 } else { 1 };
            2 * rounds * (self.ranks(group) as usize - 1) + 3
        };
        1 + part.shared.filter(|(.., bytes)| *bytes > 0).map_or(0, steps)
    }
}

/// State of a rank while its schedule is built.
struct RankWalk {
    /// The rank's own group of each type: its members, and the rank's place among them.
    groups: BTreeMap<RankGroupKind, (Vec<u32>, usize)>,
    /// Operation that the next computation waits for.
    now: Option<u32>,
    /// The last operation of the last weight gradient collective of each group.
    last: BTreeMap<RankGroupKind, u32>,
    /// Tag of the next collective.
    tag: u32,
}

impl RankWalk {
    /// Appends one pass through all layers and back. `updated` contains the operation that ends the last update of each
    /// layer.
    fn pass(&mut self, layers: &[Layer], updated: &mut [Option<u32>], schedule: &mut Rank) {
        for (layer, updated) in layers.iter().zip(updated.iter()) {
            let mut builder = RankBuilder { schedule, at: layer.at };
            let computed = self.compute(layer.forward.compute_ns, *updated, &mut builder);
            self.now = Some(self.add_collective(layer.forward.shared, computed, &mut builder));
        }
        for (layer, updated) in layers.iter().zip(updated).rev() {
            let mut builder = RankBuilder { schedule, at: layer.at };
            let computed = self.compute(layer.input.compute_ns, None, &mut builder);
            self.now = Some(self.add_collective(layer.input.shared, computed, &mut builder));
            let computed = self.compute(layer.weights.compute_ns, None, &mut builder);
            self.now = Some(computed);
            let group = layer.weights.group();
            let before = group.and_then(|group| self.last.get(&group)).copied();
            let ready = before.map_or(computed, |before| {
                let ready = builder.op(OpKind::Calc { ns: 0 });
                builder.edge(ready, computed);
                builder.edge(ready, before);
                ready
            });
            let end = self.add_collective(layer.weights.shared, ready, &mut builder);
            self.last.extend(group.map(|group| (group, end)));
            let update = builder.op(OpKind::Calc { ns: layer.update_ns });
            builder.edge(update, end);
            *updated = Some(update);
        }
    }

    /// Appends a computation after the present operation and another one. Returns it.
    fn compute(&self, ns: u64, after: Option<u32>, builder: &mut RankBuilder<'_>) -> u32 {
        let op = builder.op(OpKind::Calc { ns });
        self.now.into_iter().chain(after).for_each(|on| builder.edge(op, on));
        op
    }

    /// Appends a collective after an operation. Returns the operation that ends it.
    fn add_collective(
        &mut self,
        shared: Option<(Collective, RankGroupKind, u64)>,
        after: u32,
        builder: &mut RankBuilder<'_>,
    ) -> u32 {
        // All ranks count alike, so a number is the same collective on each of them.
        self.tag += 1;
        let Some((collective, group, bytes @ 1..)) = shared else { return after };
        let Some((members, index)) = self.groups.get(&group) else { return after };
        let CollectiveOps { first, last: end } =
            builder.collective(collective, bytes, Membership { members, index: *index }, self.tag);
        builder.edge(first, after);
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Options for `passes` passes of a workload that states its number of ranks.
    fn passes(passes: u32) -> WorkloadOptions {
        WorkloadOptions { passes, ranks: None }
    }

    const HEADER: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0";

    fn workload(layers: &[&str]) -> String {
        format!("{HEADER}\n{}\n{}\n", layers.len(), layers.join("\n"))
    }

    /// The groups of Megatron's order for two tensor-parallel ranks, two experts and eight ranks, written down by hand.
    #[test]
    fn groups_are_those_of_the_simulator() {
        let parallel = Parallel { tensor: 2, expert: 2, data: 4 };
        let of = |group| {
            let mut groups: Vec<Vec<u32>> = (0..8).map(|rank| parallel.members(group, rank).0).collect();
            groups.sort();
            groups.dedup();
            groups
        };
        assert_eq!(of(RankGroupKind::Tensor), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(of(RankGroupKind::Data), [[0, 2, 4, 6], [1, 3, 5, 7]]);
        assert_eq!(of(RankGroupKind::Expert), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(of(RankGroupKind::DataOfExpert), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        for group in [RankGroupKind::Tensor, RankGroupKind::Data, RankGroupKind::Expert, RankGroupKind::DataOfExpert] {
            for rank in 0..8 {
                let (members, place) = parallel.members(group, rank);
                assert_eq!((members[place], members.len()), (rank, parallel.ranks(group) as usize));
            }
        }
    }

    /// Total bytes sent by each rank, by group and collective.
    #[test]
    fn collectives_move_their_bytes() {
        for (token, bytes, each) in [
            ("ALLREDUCE", "800", [800, 800, 2 * 3 * 200]),
            ("ALLGATHER", "800", [400, 400, 600]),
            ("REDUCESCATTER", "800", [400, 400, 600]),
            ("ALLTOALL", "800", [400, 400, 600]),
            ("ALLGATHER_EP", "800", [400, 400, 400]),
            ("REDUCESCATTER_DP_EP", "800", [400, 400, 400]),
            ("ALLTOALL_DP", "800", [600, 600, 600]),
            ("ALLREDUCE", "0", [0, 0, 0]),
            ("NONE", "800", [0, 0, 0]),
        ] {
            for (column, each) in each.into_iter().enumerate() {
                let part = |at| if at == column { format!("5 {token} {bytes}") } else { "5 NONE 0".into() };
                let text = workload(&[&format!("x -1 {} {} {} 7", part(0), part(1), part(2))]);
                let (goal, found) = read(&text, passes(1)).unwrap();
                for rank in &goal.ranks {
                    let sent =
                        rank.ops.iter().map(|op| if let OpKind::Send { bytes, .. } = op.kind { bytes } else { 0 });
                    assert_eq!(sent.sum::<u64>(), each, "{token} in part {column}");
                }
                assert_eq!((found.collectives, found.empty), (usize::from(each > 0), usize::from(bytes == "0")));
            }
        }
    }

    /// Send times of two ranks with two layers and two passes, if a message takes `2` ns and nothing waits for a
    /// receiver.
    #[test]
    fn weight_gradient_collective_runs_concurrently() {
        let text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 all_gpus: 2\n2\n\
            a -1 10 NONE 0 20 NONE 0 40 ALLGATHER 2 1000\nb -1 100 NONE 0 200 NONE 0 400 ALLGATHER 2 5\n";
        let (goal, found) = read(text, passes(2)).unwrap();
        assert_eq!((found.collectives, found.parallel), (2, Parallel { tensor: 1, expert: 1, data: 2 }));
        let rank = &goal.ranks[0];
        let mut ends = vec![0u64; rank.ops.len()];
        let mut begun = Vec::new();
        for (op, operation) in rank.ops.iter().enumerate() {
            let begin =
                rank.edges.iter().filter(|edge| edge.op as usize == op).map(|edge| ends[edge.on as usize]).max();
            let begin = begin.unwrap_or(0);
            ends[op] = match operation.kind {
                OpKind::Calc { ns } => begin + ns,
                OpKind::Recv { .. } => begin + 2,
                OpKind::Send { .. } => {
                    begun.push(begin);
                    begin
                }
            };
        }
        // Forward 110; b back 310 and 710; a back 730 and 770. Then a waits for its update, which ends at 772 + 1000.
        assert_eq!(begun, [710, 770, 1_772 + 710, 1_772 + 770]);
    }

    #[test]
    fn header_line_is_parsed() {
        let text = workload(&["x -1 1 ALLREDUCE_EP 8 1 NONE 0 1 NONE 0 1"]);
        let other = text.replace("ga: 1", "ga: 4 later: 1 2 pp_comm 0.5").replace("ep: 2", "ep: 1");
        let (goal, found) = read(&other, passes(1)).unwrap();
        assert_eq!(
            (goal.ranks.len(), found.parallel, found.micro_batches),
            (8, Parallel { tensor: 2, expert: 1, data: 4 }, 4)
        );
        assert_eq!((found.unknown, found.alone), (vec!["later".to_owned()], 1));
    }

    /// Workloads of older revisions of AICB do not state the number of ranks.
    #[test]
    fn rank_count_may_be_an_option() {
        let line = "layer -1 1000 ALLREDUCE 8000000 1000 NONE 0 1000 NONE 0 100";
        let older = format!(
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 8 checkpoints: 0 checkpoint_initiates: 0\n1\n{line}\n"
        );
        let with = |text: &str, ranks| read(text, WorkloadOptions { passes: 1, ranks });
        let refused = |text: &str, ranks| with(text, ranks).unwrap_err().line_and_column(text);
        assert_eq!(refused(&older, None), "1:1");
        let (goal, found) = with(&older, Some(16)).unwrap();
        assert_eq!((goal.ranks.len(), found.parallel), (16, Parallel { tensor: 8, expert: 1, data: 2 }));
        assert_eq!(found.assumed, ["ep", "pp", "ga"]);
        // The groups do not divide 12 ranks.
        assert_eq!(refused(&older, Some(12)), "1:59");
        assert_eq!(refused(&older, Some(1 << 20)), "1:1");
        let spelt = older.replace("checkpoints", "expert_parallel_npu_group: 2 checkpoints");
        assert_eq!(with(&spelt, Some(16)).unwrap().1.parallel.expert, 2);
        let newer = workload(&[line]);
        assert!(with(&newer, Some(8)).is_ok());
        assert_eq!(refused(&newer, Some(16)), "1:96");
    }

    #[test]
    fn errors_have_byte_ranges() {
        let good = workload(&["x -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1"]);
        assert!(read(&good, passes(1)).is_ok());
        for (from, to, at) in [
            ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "MICRO", "MICRO"),
            ("pp: 1", "pp: 4", "4 vpp"),
            ("ep: 2", "ep: 3", "3 pp"),
            ("group: 2", "group: 3", "3 ep"),
            ("all_gpus: 8", "all_gpus: 0", "0 check"),
            ("all_gpus: 8", "all_gpus: 9999999", "9999999"),
            ("all_gpus: 8 ", "", "HYBRID"),
            ("ep: 2", "ep: two", "two"),
            ("ep: 2", "ep: 2 ep: 2", "ep: 2 pp"),
            ("ep: 2", "ep: 2 2", "2 pp"),
            ("ep: 2", "ep:", "ep: pp"),
            ("checkpoints: 0", "checkpoints: 1 0", "1 0"),
            ("\n1\n", "\n2\n", "2\nx"),
            ("\n1\n", "\n1 1\n", "1\nx"),
            ("ALLREDUCE", "BROADCAST", "BROADCAST"),
            ("ALLREDUCE", "ALLREDUCEALLTOALL", "ALLREDUCEALLTOALL"),
            ("ALLREDUCE 8", "ALLREDUCE 8.5", "8.5"),
            ("x -1", "x", "x 1"),
        ] {
            assert!(good.contains(from), "{from}");
            let text = good.replacen(from, to, 1);
            let error = read(&text, passes(1)).unwrap_err();
            assert!(matches!(error, Error::Text { .. }), "{error}");
            assert!(text[error.at().range().start..].starts_with(at), "{error} at {:?}", error.at());
        }
        let large = good
            .replace("group: 2", "group: 65536")
            .replace("ep: 2", "ep: 1")
            .replace("all_gpus: 8", "all_gpus: 65536");
        assert_eq!(read(&large, passes(1)).unwrap_err().line_and_column(&large), "3:1");
        for cut in ["", "\n\n", HEADER] {
            assert!(read(cut, passes(1)).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_workload_or_an_error(changes in proptest::collection::vec((any::<usize>(), any::<char>()), 0..8)) {
            let mut text: Vec<char> = workload(&["x -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1"]).chars().collect();
            for (at, letter) in changes {
                let at = at % text.len();
                text[at] = letter;
            }
            let _ = read(&text.into_iter().collect::<String>(), passes(2));
        }
    }
}
