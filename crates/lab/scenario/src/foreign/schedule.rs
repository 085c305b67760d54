//! Schedules, from GOAL (LogGOPSim, ATLAHS), Chakra, MSCCL and SimAI: every send is a flow, and waits for what its operation
//! requires.
//!
//! What an operation waits for is a set of events of flows at its own rank, each with the time to compute after it: the
//! latest of them counts. Computations only add time, a receive adds the receipt of its flow, and a send begins a new
//! event. So the operations between sends vanish, and a schedule becomes a list of flows without anything lost but its
//! processors: here computations of a rank overlap unless they require each other.

use std::collections::{BTreeMap, VecDeque};

use formats::chakra::ProcessGroups;
use formats::counted;
use formats::goal::{Goal, OpKind, Rank, is_binary, read};
use formats::simai::WorkloadOptions;
use units::{Bytes, Span};

use super::{Foreign, ForeignFlow, ForeignTraffic, HostNames, Unplaced, flow_size};
use crate::config::{FlowEvent, FlowState, PAYLOAD, Placement};
use crate::dependency_cycle::find_dependency_cycle;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::kind::FileKind;
use crate::quantity::{MAX_SPAN, write_bytes, write_span};

/// A GOAL schedule as text.
pub(crate) const GOAL: FileKind = FileKind {
    name: "a GOAL schedule",
    expected: "expected `num_ranks N`, then blocks such as `rank 0 { l1: send 100b to 1 }`, or a binary schedule",
    matches: |file| file.lines().any(|line| line.contains("num_ranks")),
};

/// An algorithm of MSCCL.
pub(crate) const MSCCL: FileKind = FileKind {
    name: "an algorithm of MSCCL",
    expected: "expected XML with <algo>",
    matches: |file| file.lines().any(|line| line.contains("<algo")),
};

/// A workload of SimAI.
pub(crate) const SIMAI: FileKind = FileKind {
    name: "a workload of SimAI",
    expected: "expected a first line such as `HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ... all_gpus: 32`",
    matches: |file| file.first().contains("model_parallel_NPU_group") || file.begins_with(&formats::simai::POLICIES),
};

/// Events of all flows together that a scenario may wait for, and the work to find them.
const MAX_EVENTS: usize = 40_000_000;

/// A GOAL schedule, as text or as bytes: formats as LogGOPSim's and ATLAHS's `txt2bin` read and write them. Sends of up to `eager`
/// bytes have ended once they have begun: the S of LogGOPSim.
pub(crate) fn goal(file: Foreign<'_>, eager: Bytes) -> Result<ForeignTraffic, SpannedError> {
    let shown = if is_binary(file.bytes) { Foreign { source: None, ..file } } else { file };
    let goal = read(file.bytes).map_err(|error| shown.error(error))?;
    let mut notes = Vec::new();
    if eager > Bytes::ZERO {
        notes.push(format!("sends of up to {} have ended once they have begun (eager)", write_bytes(eager)));
    }
    messages("GOAL", &goal, eager, &Files(&[shown]), notes)
}

/// Chakra execution traces, a file a rank. Ranks are by the numbers in the files' names (`trace.0.et`), if they are 0, 1 and so on,
/// else in the order given.
pub(crate) fn chakra(files: &[Foreign<'_>], groups: &ProcessGroups) -> Result<ForeignTraffic, SpannedError> {
    // Traces are bytes: errors show nothing of them.
    let mut files: Vec<Foreign<'_>> = files.iter().map(|file| Foreign { source: None, ..*file }).collect();
    let mut order: Vec<(Option<usize>, Foreign<'_>)> = files.iter().map(|file| (number_in(file.name), *file)).collect();
    order.sort_by_key(|(number, _)| *number);
    if order.iter().enumerate().all(|(rank, (number, _))| *number == Some(rank)) {
        files = order.into_iter().map(|(_, file)| file).collect();
    }
    let bytes: Vec<&[u8]> = files.iter().map(|file| file.bytes).collect();
    let read = formats::chakra::read(&bytes, groups);
    let (goal, found) = read.map_err(|(number, error)| match files.get(number) {
        Some(file) => file.error(error),
        None => SpannedError::new(SourceSpan::NOWHERE, error.to_string()),
    })?;
    let mut notes = vec![format!(
        "{}: sends and receives in rings, all-to-all is direct; nodes wait for control and data dependencies alike",
        counted(found.collectives, "collective")
    )];
    if found.without_duration > 0 {
        notes.push(counted(found.without_duration, "computation without a duration: no time"));
    }
    if found.empty > 0 {
        notes.push(format!("left out: {}", counted(found.empty, "collective of no bytes")));
    }
    for version in found.other_versions {
        notes.push(format!("a trace states version `{version}` of Chakra's schema: it was read as 0.0.4"));
    }
    messages("Chakra", &goal, Bytes::ZERO, &Files(&files), notes)
}

/// An algorithm of MSCCL in XML, which works on `size` bytes: one loop of it.
pub(crate) fn msccl(file: Foreign<'_>, size: Bytes) -> Result<ForeignTraffic, SpannedError> {
    let goal = formats::msccl::read(file.text()?, size.get()).map_err(|error| file.error(error))?;
    let note = format!(
        "one loop of the algorithm, on {}: copies and reductions take no time, and a block's next step does not wait until what it sends is acknowledged",
        write_bytes(size)
    );
    messages("MSCCL", &goal, Bytes::ZERO, &Files(&[file]), vec![note])
}

/// A workload of SimAI.
pub(crate) fn simai(file: Foreign<'_>, options: WorkloadOptions) -> Result<ForeignTraffic, SpannedError> {
    let passes = options.passes;
    let (goal, found) = formats::simai::read(file.text()?, options).map_err(|error| file.error(error))?;
    let formats::simai::Parallel { tensor, expert, data } = found.parallel;
    let mut notes = vec![
        format!(
            "{} forward and back, {passes} {}: groups of {tensor} tensor-parallel, {expert} expert-parallel and {data} data-parallel ranks",
            counted(found.layers, "layer"),
            if passes == 1 { "pass" } else { "passes" }
        ),
        format!(
            "{}: sends and receives in rings, all-to-all is direct; those of weights' gradients run in parallel with what follows, one after the other in each group",
            counted(found.collectives, "collective")
        ),
    ];
    if found.micro_batches > 1 {
        notes.push(format!(
            "`ga: {}` repeats nothing: the layers of all micro-batches stand in the file",
            found.micro_batches
        ));
    }
    for (count, reason) in [(found.empty, "of no bytes"), (found.alone, "of groups of one rank")] {
        if count > 0 {
            notes.push(format!("left out: {}", counted(count, &format!("collective {reason}"))));
        }
    }
    if !found.assumed.is_empty() {
        notes.push(format!("the first line does not have {}: 1 each", found.assumed.join(", ")));
    }
    if !found.unknown.is_empty() {
        notes.push(format!("left out of the first line, not known: {}", found.unknown.join(", ")));
    }
    let mut traffic = messages("SimAI", &goal, Bytes::ZERO, &Files(&[file]), notes)?;
    if let Unplaced::Messages(built) = &mut traffic.contents {
        // A rank's computations follow each other here.
        built.computing = 0;
    }
    Ok(traffic)
}

/// The number at the end of a file's name, before its extension.
fn number_in(name: &str) -> Option<usize> {
    let stem = std::path::Path::new(name).file_stem()?.to_str()?;
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem[stem.len() - digits..].parse().ok()
}

/// Groups of a Chakra trace's ranks, from JSON: `{"name": [0, 1], ...}`. Errors show nothing of the file, which may be any.
pub(crate) fn groups(file: Option<Foreign<'_>>, ranks: usize) -> Result<ProcessGroups, SpannedError> {
    const HELP: &str = "expected groups of ranks such as {\"0\": [0, 1]}";
    let Some(file) = file else { return Ok(ProcessGroups::new()) };
    let name = file.name;
    let read: Result<ProcessGroups, _> = serde_json::from_slice(file.bytes);
    let groups = read.map_err(|error| {
        let message = format!("`{name}`, line {}, column {}: this is no group of ranks", error.line(), error.column());
        SpannedError::new(SourceSpan::NOWHERE, message).help(HELP)
    })?;
    for (group, members) in &groups {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if members.is_empty() || sorted.len() < members.len() || sorted.iter().any(|&rank| rank as usize >= ranks) {
            let message = format!("`{name}`: the group `{group}` is not one of different ranks under {ranks}");
            return Err(SpannedError::new(SourceSpan::NOWHERE, message).help(HELP));
        }
    }
    Ok(groups)
}

/// The messages of a schedule. Sends up to `eager` end once they have begun.
fn messages(
    from: &'static str,
    goal: &Goal,
    eager: Bytes,
    files: &Files<'_>,
    notes: Vec<String>,
) -> Result<ForeignTraffic, SpannedError> {
    Ok(ForeignTraffic { from, contents: Unplaced::Messages(flows(goal, eager.get(), files)?), notes })
}

/// The schedule's file, or one for each rank.
struct Files<'a>(&'a [Foreign<'a>]);

impl Files<'_> {
    /// Returns the error of an operation of a rank.
    fn error(&self, rank: u32, at: formats::ByteRange, message: impl Into<String>, expected: &str) -> SpannedError {
        let (message, range) = (message.into(), at.range());
        let Some(file) = self.0.get(rank as usize).or(self.0.first()) else {
            return SpannedError::new(SourceSpan::NOWHERE, message).help(expected);
        };
        match file.source {
            Some(source) => SpannedError::new(SourceSpan::new(source, range), message).label(expected),
            None => SpannedError::new(SourceSpan::NOWHERE, format!("`{}`, byte {}: {message}", file.name, range.start))
                .help(expected),
        }
    }

    /// The file that has all ranks, for an error without help of its own.
    fn origin(&self, at: formats::ByteRange) -> SourceSpan {
        let source = self.0.first().and_then(|file| file.source);
        source.map_or(SourceSpan::NOWHERE, |source| SourceSpan::new(source, at.range()))
    }

    fn names(&self) -> String {
        self.0.iter().map(|file| format!("`{}`", file.name)).collect::<Vec<_>>().join(", ")
    }
}

/// Time of an event: not before `earliest`, and after `events`.
#[derive(Clone, Default)]
struct When {
    earliest: Span,
    /// By flow and state, each once.
    events: Vec<FlowEvent>,
}

struct ScheduledFlow {
    src: u32,
    dst: u32,
    bytes: u64,
    begin: When,
}

pub(super) struct BuiltSchedule {
    /// Number of ranks.
    pub(super) ranks: usize,
    /// Ranks with several computations.
    computing: usize,
    /// Sends up to this size have ended once they have begun.
    eager: u64,
    flows: Vec<ScheduledFlow>,
    /// Computing time of all ranks together, as far as it is known.
    pub(super) computes: Span,
    /// Number of receives that differ from their send in size.
    other_sizes: usize,
    /// Computations for which no send waits.
    idle: usize,
}

/// Flow that an operation sends or receives, by rank and operation.
type FlowOf = Vec<Vec<Option<u32>>>;

/// A send without a receive so far: its flow, its size, its place.
type Unmatched = (u32, u64, formats::ByteRange);

/// Matches receives with sends of the same ranks and tag, in order; sends are flows by rank, in order.
fn matched(goal: &Goal, files: &Files<'_>, built: &mut BuiltSchedule) -> Result<FlowOf, SpannedError> {
    let mut of: FlowOf = goal.ranks.iter().map(|rank| vec![None; rank.ops.len()]).collect();
    let mut sent: BTreeMap<(u32, u32, u32), VecDeque<Unmatched>> = BTreeMap::new();
    for (number, rank) in (0u32..).zip(&goal.ranks) {
        for (op, operation) in rank.ops.iter().enumerate() {
            let OpKind::Send { bytes, to, tag } = operation.kind else { continue };
            let origin = files.origin(operation.at);
            let flow = index32(built.flows.len());
            let size = flow_size(bytes, PAYLOAD.get().into(), origin)?;
            built.flows.push(ScheduledFlow { src: number, dst: to, bytes: size, begin: When::default() });
            of[number as usize][op] = Some(flow);
            sent.entry((number, to, tag)).or_default().push_back((flow, bytes, operation.at));
        }
    }
    for (number, rank) in (0u32..).zip(&goal.ranks) {
        for (op, operation) in rank.ops.iter().enumerate() {
            let OpKind::Recv { bytes, from, tag } = operation.kind else { continue };
            let next = sent.get_mut(&(from, number, tag)).and_then(VecDeque::pop_front);
            let Some((flow, size, _)) = next else {
                let message = format!("no send of rank {from} is left for this receive of rank {number}, tag {tag}");
                return Err(files.error(
                    number,
                    operation.at,
                    message,
                    "expected as many sends as receives of each tag",
                ));
            };
            built.other_sizes += usize::from(size != bytes);
            of[number as usize][op] = Some(flow);
        }
    }
    let lost = sent.iter().filter_map(|(key, left)| left.front().map(|&(.., at)| (at, key)));
    if let Some((at, &(from, to, tag))) = lost.min() {
        let message = format!("rank {to} has no receive left for this send of rank {from}, tag {tag}");
        return Err(files.error(from, at, message, "expected as many receives as sends of each tag"));
    }
    Ok(of)
}

fn flows(goal: &Goal, eager: u64, files: &Files<'_>) -> Result<BuiltSchedule, SpannedError> {
    let computing = goal
        .ranks
        .iter()
        .filter(|rank| rank.ops.iter().filter(|op| matches!(op.kind, OpKind::Calc { ns: 1.. })).nth(1).is_some());
    let mut built = BuiltSchedule {
        ranks: goal.ranks.len(),
        computing: computing.count(),
        eager,
        flows: Vec::new(),
        computes: Span::ZERO,
        other_sizes: 0,
        idle: 0,
    };
    let flow_of = matched(goal, files, &mut built)?;
    if built.flows.is_empty() {
        return Err(
            SpannedError::new(SourceSpan::NOWHERE, format!("{} sends nothing", files.names())).help("expected a send")
        );
    }
    let mut op_ranges = vec![formats::ByteRange::default(); built.flows.len()];
    let mut work = 0;
    for (number, rank) in goal.ranks.iter().enumerate() {
        for (op, flow) in flow_of[number].iter().enumerate() {
            if let (Some(flow), OpKind::Send { .. }) = (flow, rank.ops[op].kind) {
                op_ranges[*flow as usize] = rank.ops[op].at;
            }
        }
        of_rank(rank, index32(number), &flow_of[number], files, &mut built, &mut work)?;
    }
    let after =
        |flow: usize| built.flows[flow].begin.events.iter().map(|event| event.flow as usize).collect::<Vec<_>>();
    if let Some(cycle) = find_dependency_cycle(built.flows.len(), after) {
        let message = format!("this send waits for itself, through {} others: it would never start", cycle.len() - 1);
        return Err(files.error(built.flows[cycle[0]].src, op_ranges[cycle[0]], message, "a cycle of messages"));
    }
    Ok(built)
}

/// Determines the start of each send of a rank.
fn of_rank(
    rank: &Rank,
    number: u32,
    flow_of: &[Option<u32>],
    files: &Files<'_>,
    built: &mut BuiltSchedule,
    work: &mut usize,
) -> Result<(), SpannedError> {
    let count = rank.ops.len();
    let first = |op: usize| rank.edges.partition_point(|edge| (edge.op as usize) < op);
    let on = |op: usize| rank.edges[first(op)..].iter().take_while(move |edge| edge.op as usize == op);
    let order = order(rank).map_err(|op| {
        files.error(number, rank.ops[op].at, "this operation waits for itself: it would never start", "a cycle")
    })?;
    // Number of users of an operation's begin and end times; the times are freed after the last one.
    let mut users = vec![0u32; count];
    rank.edges.iter().for_each(|edge| users[edge.on as usize] += 1);
    let mut times: Vec<Option<(When, When)>> = vec![None; count];
    for op in order {
        let mut begin = When::default();
        for edge in on(op) {
            let before = &mut times[edge.on as usize];
            if let Some((begun, ended)) = before {
                let when = if edge.begun { begun } else { ended };
                begin.earliest = begin.earliest.max(when.earliest);
                begin.events.extend(&when.events);
                *work += when.events.len();
            }
            users[edge.on as usize] -= 1;
            if users[edge.on as usize] == 0 {
                *before = None;
            }
        }
        begin.settle(&built.flows);
        if *work > MAX_EVENTS {
            let message = format!("this schedule waits for over {MAX_EVENTS} events");
            return Err(files.error(
                number,
                rank.ops[op].at,
                message,
                "expected fewer receives in a row without a send",
            ));
        }
        let ended = match (rank.ops[op].kind, flow_of[op]) {
            (OpKind::Calc { ns }, _) => {
                let compute = i64::try_from(ns).ok().filter(|ns| *ns <= MAX_SPAN.ps() / 1_000).map(Span::from_ns);
                let Some(compute) = compute else {
                    let expected = format!("expected up to {}", write_span(MAX_SPAN));
                    return Err(files.error(number, rank.ops[op].at, format!("a computation of {ns} ns"), &expected));
                };
                built.computes = sum(built.computes, compute);
                built.idle += usize::from(users[op] == 0 && ns > 0);
                begin.later(compute)
            }
            (OpKind::Send { .. }, Some(flow)) => {
                built.flows[flow as usize].begin = begin;
                begin = When::of(flow, FlowState::Begun);
                let eager = built.flows[flow as usize].bytes <= built.eager;
                When::of(flow, if eager { FlowState::Begun } else { FlowState::Complete })
            }
            (OpKind::Recv { .. }, Some(flow)) => {
                let mut ended = begin.clone();
                ended.events.extend(When::of(flow, FlowState::Received).events);
                ended.settle(&built.flows);
                ended
            }
            (OpKind::Send { .. } | OpKind::Recv { .. }, None) => When::default(),
        };
        if users[op] > 0 {
            times[op] = Some((begin, ended));
        }
    }
    Ok(())
}

/// The operations of a rank, each after those that it waits for; or one that waits for itself.
fn order(rank: &Rank) -> Result<Vec<usize>, usize> {
    let count = rank.ops.len();
    let mut waits = vec![0u32; count];
    let mut dependents: Vec<(u32, u32)> = rank.edges.iter().map(|edge| (edge.on, edge.op)).collect();
    dependents.sort_unstable();
    rank.edges.iter().for_each(|edge| waits[edge.op as usize] += 1);
    let mut order: Vec<usize> = (0..count).filter(|&op| waits[op] == 0).collect();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        let first = dependents.partition_point(|&(on, _)| (on as usize) < op);
        for &(_, dependent) in dependents[first..].iter().take_while(|&&(on, _)| on as usize == op) {
            waits[dependent as usize] -= 1;
            if waits[dependent as usize] == 0 {
                order.push(dependent as usize);
            }
        }
    }
    if order.len() == count {
        return Ok(order);
    }
    // The remaining operations are in a cycle or wait for one. Following their dependencies backwards reaches one of them
    // twice.
    let left = |op: &usize| waits[*op] > 0;
    let mut seen = vec![false; count];
    let mut op = (0..count).find(left).unwrap_or(0);
    while !seen[op] {
        seen[op] = true;
        let first = rank.edges.partition_point(|edge| (edge.op as usize) < op);
        op = rank.edges[first..].iter().map(|edge| edge.on as usize).find(left).unwrap_or(op);
    }
    Err(op)
}

/// Returns the sum, at most the longest time of a file.
fn sum(a: Span, b: Span) -> Span {
    Span::from_ps(a.ps().saturating_add(b.ps()).min(MAX_SPAN.ps()))
}

impl When {
    /// With a state of a flow.
    fn of(flow: u32, state: FlowState) -> Self {
        Self { earliest: Span::ZERO, events: vec![FlowEvent { flow, state, compute: Span::ZERO }] }
    }

    /// Returns the same, `compute` later.
    fn later(&self, compute: Span) -> Self {
        let later = |event: &FlowEvent| FlowEvent { compute: sum(event.compute, compute), ..*event };
        Self { earliest: sum(self.earliest, compute), events: self.events.iter().map(later).collect() }
    }

    /// Sorts events and keeps the latest of each, and none that another one is never before.
    fn settle(&mut self, flows: &[ScheduledFlow]) {
        self.events.sort_unstable();
        // Of one flow and state the longest computation is the last.
        self.events.reverse();
        self.events.dedup_by_key(|event| (event.flow, event.state));
        self.events.reverse();
        // A flow begins, and completes, after all its dependencies. Its times are known, because it precedes this one.
        let own = |event: &FlowEvent| event.state != FlowState::Received;
        let (mut earliest, mut early) = (self.earliest, Vec::new());
        for event in self.events.iter().filter(|event| own(event)) {
            let begin = &flows[event.flow as usize].begin;
            if sum(begin.earliest, event.compute) >= earliest {
                earliest = Span::ZERO;
            }
            for before in &begin.events {
                let found =
                    self.events.binary_search_by_key(&(before.flow, before.state), |event| (event.flow, event.state));
                early.extend(found.ok().filter(|&at| self.events[at].compute <= sum(before.compute, event.compute)));
            }
            if event.state == FlowState::Complete {
                let begun = self
                    .events
                    .binary_search_by_key(&(event.flow, FlowState::Begun), |event| (event.flow, event.state));
                early.extend(begun.ok().filter(|&at| self.events[at].compute <= event.compute));
            }
        }
        self.earliest = earliest;
        if !early.is_empty() {
            early.sort_unstable();
            let mut at = 0..;
            self.events.retain(|_| at.next().is_some_and(|at| early.binary_search(&at).is_err()));
        }
    }
}

impl BuiltSchedule {
    /// The flows on hosts.
    pub(super) fn on(
        self,
        host_names: &HostNames,
        placement: Placement,
        notes: &mut Vec<String>,
    ) -> Result<Vec<ForeignFlow>, SpannedError> {
        let hosts = host_names.assign(self.ranks, "ranks", placement)?;
        self.note(placement, notes);
        let listed = |flow: ScheduledFlow| ForeignFlow {
            start: Some(flow.begin.earliest).filter(|start| flow.begin.events.is_empty() || !start.is_zero()),
            src: hosts[flow.src as usize].clone(),
            dst: hosts[flow.dst as usize].clone(),
            bytes: Some(flow.bytes),
            after: flow.begin.events,
        };
        Ok(self.flows.into_iter().map(listed).collect())
    }

    fn note(&self, placement: Placement, notes: &mut Vec<String>) {
        notes.push(format!(
            "{}, placement {}: {} as flows, by rank, then in the order of the file",
            counted(self.ranks, "rank"),
            placement.name(),
            counted(self.flows.len(), "message")
        ));
        notes.push(
            "a message leaves when its send is due, whether its receive is posted or not; what requires a receive waits until the \
             message has come and the receive is due; what requires any other send waits until all of it is acknowledged"
                .into(),
        );
        if self.computing > 0 {
            notes.push("computations of a rank overlap unless they require each other: processors (`cpu`) and NICs (`nic`) are left out, and so are LogGOPS's overheads".into());
        }
        if self.idle > 0 {
            notes.push(format!("left out, since nothing waits for it: {}", counted(self.idle, "computation")));
        }
        if self.other_sizes > 0 {
            notes.push(counted(self.other_sizes, "receive of another size than its send (the send's size counts)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use formats::ByteRange;
    use formats::goal::{Op, OpDependency};
    use proptest::prelude::*;

    use super::*;
    use crate::error::Sources;

    /// A message of some ranks, or a computation of one, with the requirements of its operations; and the times until a
    /// message is received and until it is acknowledged.
    #[derive(Clone, Debug)]
    struct RankItem {
        message: bool,
        ranks: (u8, u8),
        requires: Vec<(u8, bool)>,
        ns: [u64; 2],
    }

    fn item() -> impl Strategy<Value = RankItem> {
        let requires = proptest::collection::vec((any::<u8>(), any::<bool>()), 0..6);
        (any::<bool>(), (0..3u8, 1..3u8), requires, [0..1_000u64, 0..1_000u64])
            .prop_map(|(message, ranks, requires, ns)| RankItem { message, ranks, requires, ns })
    }

    proptest! {
        /// The flows of any schedule begin when its operations, taken one by one, are due.
        #[test]
        fn flows_start_when_their_operations_are_ready(
            items in proptest::collection::vec(item(), 1..30),
            eager in any::<bool>(),
        ) {
            let mut ranks = vec![Rank::default(); 3];
            // By rank and operation: begin and end.
            let mut due: Vec<Vec<[u64; 2]>> = vec![Vec::new(); 3];
            // By rank: begin, receipt and end of the messages that it sends.
            let mut sent: Vec<Vec<[u64; 3]>> = vec![Vec::new(); 3];
            for item in items {
                let rank = usize::from(item.ranks.0);
                let other = (rank + usize::from(item.ranks.1)) % 3;
                let begin = |rank: usize, built: &mut Rank, due: &[Vec<[u64; 2]>]| {
                    let op = index32(built.ops.len());
                    let mut begin = 0;
                    for (on, begun) in item.requires.iter().filter(|_| op > 0) {
                        let on = u32::from(*on) % op;
                        built.edges.push(OpDependency { op, on, begun: *begun });
                        begin = begin.max(due[rank][on as usize][usize::from(!begun)]);
                    }
                    begin
                };
                let at = begin(rank, &mut ranks[rank], &due);
                let mut op = |rank: usize, kind, when| {
                    ranks[rank].ops.push(Op { kind, cpu: 0, at: ByteRange::default() });
                    due[rank].push(when);
                };
                if item.message {
                    let [come, more] = item.ns;
                    let (tag, bytes) = (0, 1);
                    op(rank, OpKind::Send { bytes, to: index32(other), tag }, [at, if eager { at } else { at + come + more }]);
                    sent[rank].push([at, at + come, at + come + more]);
                    let posted = begin(other, &mut ranks[other], &due);
                    let kind = OpKind::Recv { bytes, from: index32(rank), tag };
                    ranks[other].ops.push(Op { kind, cpu: 0, at: ByteRange::default() });
                    due[other].push([posted, posted.max(at + come)]);
                } else {
                    op(rank, OpKind::Calc { ns: item.ns[0] }, [at, at + item.ns[0]]);
                }
            }
            for rank in &mut ranks {
                rank.edges.sort_unstable();
                rank.edges.dedup();
            }
            let known: Vec<[u64; 3]> = sent.concat();
            prop_assume!(!known.is_empty());
            let built = flows(&Goal { ranks }, u64::from(eager), &Files(&[])).unwrap();
            prop_assert_eq!(built.flows.len(), known.len());
            for (flow, known_at) in built.flows.iter().zip(&known) {
                let happens = |event: &FlowEvent| {
                    let state = match event.state {
                        FlowState::Begun => 0,
                        FlowState::Received => 1,
                        FlowState::Complete => 2,
                    };
                    known[event.flow as usize][state] + event.compute.unsigned_ps() / 1_000
                };
                let begin = flow.begin.events.iter().map(happens).max().unwrap_or(0);
                prop_assert_eq!(begin.max(flow.begin.earliest.unsigned_ps() / 1_000), known_at[0]);
            }
        }
    }

    fn built(schedule: &str) -> Vec<(u32, u32, Span, Vec<String>)> {
        let goal = read(schedule.as_bytes()).unwrap();
        let built = flows(&goal, 0, &Files(&[])).unwrap();
        let flow = |flow: ScheduledFlow| {
            let events = flow.begin.events.iter().map(FlowEvent::to_string).collect();
            (flow.src, flow.dst, flow.begin.earliest, events)
        };
        built.flows.into_iter().map(flow).collect()
    }

    fn refused(schedule: &str) -> String {
        let mut sources = Sources::default();
        let source = sources.add_file("a.goal", schedule, GOAL);
        let read = goal(Foreign { name: "a.goal", bytes: schedule.as_bytes(), source: Some(source) }, Bytes::ZERO);
        sources.explain(read.err().unwrap()).to_string()
    }

    /// A computation in parallel with a receive: the later of both counts, not their sum.
    #[test]
    fn computations_overlap_with_messages() {
        let schedule = "num_ranks 2 rank 0 { c: calc 5000 s: send 10b to 1 s requires c }
            rank 1 { c: calc 7000 r: recv 10b from 0 d: calc 100 s: send 20b to 0 tag 1 t: send 30b to 0 tag 2
                d requires r s requires d s requires c t irequires s t requires r }";
        let both = schedule.replace("s requires c }", "s requires c recv 20b from 1 tag 1 recv 30b from 1 tag 2 }");
        let flows = built(&both);
        assert_eq!(flows[0], (0, 1, Span::from_us(5), vec![]));
        assert_eq!(flows[1], (1, 0, Span::from_us(7), vec!["received:0+100ns".to_owned()]));
        // The dependencies of flow 1 precede its begin.
        assert_eq!(flows[2], (1, 0, Span::ZERO, vec!["begun:1".to_owned()]));
    }

    #[test]
    fn ranks_are_by_the_numbers_of_their_files() {
        assert_eq!(
            ["a/x.12.et", "trace7.et", "7", "x.et", "a.3/x.et"].map(number_in),
            [Some(12), Some(7), Some(7), None, None]
        );
        let explained = |error| Sources::default().explain(error).to_string();
        assert!(explained(chakra(&[], &ProcessGroups::new()).err().unwrap()).contains("sends nothing"));
    }

    #[test]
    fn mismatched_groups_are_errors_without_quotes() {
        for (groups, part) in [
            ("{\"g\": [0, 0]}", "the group `g`"),
            ("{\"g\": [4]}", "under 1"),
            ("{\"k\": \"secret\"}", "line 1, column"),
        ] {
            let file = Foreign { name: "g.json", bytes: groups.as_bytes(), source: None };
            let error = Sources::default().explain(super::groups(Some(file), 1).unwrap_err()).to_string();
            assert!(error.contains(part) && error.contains("`g.json`") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn critical_path_attributes_sends_to_their_triggers() {
        let flows = built(
            "num_ranks 2 rank 0 { r1: recv 1b from 1 r2: recv 2b from 1 s: send 3b to 1 r2 requires r1 s requires r2
                t: send 4b to 1 t requires s t requires r1 }
             rank 1 { send 1b to 0 send 2b to 0 recv 3b from 0 recv 4b from 0 }",
        );
        assert_eq!(flows[0].3, ["received:2", "received:3"]);
        assert_eq!(flows[1].3, ["0"]);
    }

    #[test]
    fn unsupported_input_is_an_error_at_its_line() {
        let two = |first: &str, second: &str| format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n");
        for (first, second, parts) in [
            ("send 1b to 1", "calc 1", ["a.goal:3:1", "rank 1 has no receive left"]),
            ("send 1b to 1 tag 4", "recv 1b from 0 tag 5", ["a.goal:6:1", "no send of rank 0 is left"]),
            ("calc 1", "recv 1b from 0", ["a.goal:6:1", "no send of rank 0"]),
            ("calc 1", "calc 2", ["a.goal", "sends nothing"]),
            (
                "a: calc 1\nb: calc 2\na requires b\nb irequires a\nsend 1b to 1",
                "recv 1b from 0",
                ["a.goal:3:4", "waits for itself"],
            ),
            (
                "r: recv 1b from 1\ns: send 1b to 1\ns requires r",
                "r: recv 1b from 0\ns: send 1b to 0\ns requires r",
                ["a.goal:4:4", "a cycle of messages"],
            ),
            ("send 99999999999999999b to 1", "recv 1b from 0", ["a.goal:3:1", "expected 1 B to"]),
            (
                "c: calc 9999999999999999999\ns: send 1b to 1\ns requires c",
                "recv 1b from 0",
                ["a.goal:3:4", "a computation of"],
            ),
        ] {
            let error = refused(&two(first, second));
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}\n{error}");
        }
        assert!(refused("root:x:0:0\n").contains("is not a GOAL schedule"));
    }
}
