//! GOAL schedules of LogGOPSim and ATLAHS: every send is a flow, and waits for what its operation requires.
//!
//! What an operation waits for is a set of events of flows at its own rank, each with the time to compute after it: the
//! latest of them counts. Computations only add time, a receive adds that its flow has come, and a send begins an event of its
//! own. So the operations between sends vanish, and a schedule becomes a list of flows without anything lost but its processors:
//! here computations of a rank overlap unless they require each other.

use std::collections::{BTreeMap, VecDeque};

use formats::goal::{Goal, OpKind, Rank, read};
use units::{Bytes, Span};

use super::{Base, Imported, Listed, Placement, fault, flow_size, list};
use crate::Error;
use crate::config::{FlowEvent, FlowState, PAYLOAD};
use crate::decode::Field;
use crate::error::{Fault, Origin, Sources};
use crate::import::stage::Stage;
use crate::kind::Kind;
use crate::quantity::{LONGEST, write_bytes, write_span};
use crate::traffic::circle;
use crate::tree::{Node, Value};

/// A GOAL schedule as text.
pub(crate) const GOAL: Kind = Kind {
    name: "a GOAL schedule",
    expected: "expected `num_ranks N`, then blocks such as `rank 0 { l1: send 100b to 1 }`, or a binary schedule",
    fits: |file| file.lines().any(|line| line.contains("num_ranks")),
};

/// An algorithm of MSCCL.
pub(crate) const MSCCL: Kind = Kind {
    name: "an algorithm of MSCCL",
    expected: "expected XML with <algo>",
    fits: |file| file.lines().any(|line| line.contains("<algo")),
};

/// What a schedule does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GoalOptions<'a> {
    /// On which hosts ranks are.
    pub placement: Placement,
    /// Sends up to this size, with its unit, have ended once they have begun: the S of LogGOPSim.
    pub eager: &'a str,
}

/// Names that an import of a schedule needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GoalNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The schedule's file, for messages.
    pub schedule: &'a str,
}

/// Events of all flows together that a scenario may wait for, and the work to find them.
const MOST_EVENTS: usize = 40_000_000;

/// Makes a scenario from a GOAL schedule, as text or as bytes.
///
/// Formats as LogGOPSim's and ATLAHS's `txt2bin` read and write them. Ranks are on hosts of `base`, or of two datacenters that
/// are large enough.
///
/// # Errors
/// When the schedule is malformed; when an operation waits for itself, a send has no receive or the other way round; when
/// there are more ranks than hosts.
pub fn import_goal(
    schedule: &[u8],
    options: &GoalOptions<'_>,
    base: Option<&Base<'_>>,
    names: &GoalNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let eager = size(options.eager, "--eager", &mut sources).map_err(|fault| sources.explain(fault))?;
    let text = std::str::from_utf8(schedule).ok().filter(|_| !formats::goal::is_binary(schedule));
    let source = text.map_or(u32::MAX, |text| sources.add_file(names.schedule, text, GOAL));
    let read = read(schedule).map_err(|error| fault(error, source, names.schedule));
    let goal = read.map_err(|fault| sources.explain(fault))?;
    let mut notes = Vec::new();
    if eager > 0 {
        notes.push(format!(
            "sends of up to {} have ended once they have begun (--eager)",
            write_bytes(Bytes::new(eager))
        ));
    }
    let named = Named { source, names: &[names.schedule] };
    schedule_of((&goal, eager), (&sources, &named), (base, options.placement), names, ("GOAL", notes))
}

/// Makes a scenario from Chakra execution traces: of each rank its file's name and bytes. Ranks are by the numbers in the names
/// (`trace.0.et`), if they are 0, 1 and so on, else in the order given. `groups` is JSON, `{"name": [0, 1], ...}`, and its
/// file's name.
///
/// # Errors
/// As [`import_goal`]; also when a trace is malformed, or a group or a collective is not known.
pub fn import_chakra(
    traces: &[(&str, Vec<u8>)],
    groups: Option<(&str, &str)>,
    base: Option<&Base<'_>>,
    placement: Placement,
    scenario: &str,
) -> Result<Imported, Error> {
    let sources = Sources::default();
    let mut order: Vec<usize> = (0..traces.len()).collect();
    let numbers: Vec<Option<usize>> = traces.iter().map(|(name, _)| number_in(name)).collect();
    order.sort_by_key(|&place| numbers[place]);
    if !order.iter().enumerate().all(|(rank, &place)| numbers[place] == Some(rank)) {
        order.sort_unstable();
    }
    let (names, files): (Vec<&str>, Vec<Vec<u8>>) =
        order.iter().map(|&place| (traces[place].0, traces[place].1.clone())).unzip();
    let groups = groups.map_or(Ok(formats::chakra::Groups::new()), |(text, name)| groups_of(text, name, traces.len()));
    let groups = groups.map_err(|fault| sources.explain(fault))?;
    let read = formats::chakra::read(&files, &groups);
    let read = read.map_err(|(file, error)| fault(error, u32::MAX, names.get(file).copied().unwrap_or_default()));
    let (goal, found) = read.map_err(|fault| sources.explain(fault))?;
    let mut notes = vec![format!(
        "{} collectives are sends and receives in rings, all-to-all is direct; nodes wait for control and data dependencies alike",
        found.collectives
    )];
    if found.without_duration > 0 {
        notes.push(format!("{} computations have no duration and take no time", found.without_duration));
    }
    let named = Named { source: u32::MAX, names: &names };
    let first = GoalNames { scenario, schedule: names.first().copied().unwrap_or_default() };
    schedule_of((&goal, 0), (&sources, &named), (base, placement), &first, ("Chakra", notes))
}

/// The number at the end of a file's name, before its extension.
fn number_in(name: &str) -> Option<usize> {
    let stem = std::path::Path::new(name).file_stem()?.to_str()?;
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem[stem.len() - digits..].parse().ok()
}

/// Groups of ranks from JSON. Errors show nothing of the file, which may be any.
fn groups_of(text: &str, name: &str, ranks: usize) -> Result<formats::chakra::Groups, Fault> {
    const HELP: &str = "expected groups of ranks such as {\"0\": [0, 1]}";
    let read: Result<formats::chakra::Groups, _> = serde_json::from_str(text);
    let groups = read.map_err(|error| {
        let message = format!("`{name}`, line {}, column {}: this is no group of ranks", error.line(), error.column());
        Fault::new(Origin::NOWHERE, message).help(HELP)
    })?;
    for (group, members) in &groups {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if members.is_empty() || sorted.len() < members.len() || sorted.iter().any(|&rank| rank as usize >= ranks) {
            let message = format!("`{name}`: the group `{group}` is not one of different ranks under {ranks}");
            return Err(Fault::new(Origin::NOWHERE, message).help(HELP));
        }
    }
    Ok(groups)
}

/// The size that an option gives.
fn size(text: &str, option: &str, sources: &mut Sources) -> Result<u64, Fault> {
    let origin = Origin::new(sources.add(option, text), 0..text.len());
    Bytes::decode(&Node { value: Value::string(text), origin }).map(Bytes::get)
}

/// Makes a scenario from an algorithm of MSCCL in XML, which works on `size` bytes, one loop of it: a size with its unit.
///
/// # Errors
/// As [`import_goal`].
pub fn import_msccl(
    text: &str,
    size: &str,
    base: Option<&Base<'_>>,
    placement: Placement,
    names: &GoalNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let source = sources.add_file(names.schedule, text, MSCCL);
    let goal = self::size(size, "--size", &mut sources)
        .and_then(|size| formats::msccl::read(text, size).map_err(|error| fault(error, source, names.schedule)));
    let goal = goal.map_err(|fault| sources.explain(fault))?;
    let note = format!(
        "one loop of the algorithm, on {size}: copies and reductions take no time, and a block's next step does not wait until what it sends is acknowledged"
    );
    let named = Named { source, names: &[names.schedule] };
    schedule_of((&goal, 0), (&sources, &named), (base, placement), names, ("MSCCL", vec![note]))
}

/// The scenario of a schedule, which came from a format, and of which sends up to a size end once they have begun.
fn schedule_of(
    (goal, eager): (&Goal, u64),
    (sources, named): (&Sources, &Named<'_>),
    (base, placement): (Option<&Base<'_>>, Placement),
    names: &GoalNames<'_>,
    (format, mut notes): (&str, Vec<String>),
) -> Result<Imported, Error> {
    let explain = |fault| sources.explain(fault);
    let made = flows(goal, eager, named).map_err(explain)?;
    let stage = Stage::new(base, goal.ranks.len(), &mut notes)?;
    let hosts = stage.place(goal.ranks.len(), "ranks", placement).map_err(explain)?;
    note(goal, &made, placement, &mut notes);
    let listed: Vec<Listed> = made
        .flows
        .into_iter()
        .map(|flow| Listed {
            start: Some(flow.begin.earliest).filter(|start| flow.begin.events.is_empty() || !start.is_zero()),
            src: hosts[flow.src as usize].clone(),
            dst: hosts[flow.dst as usize].clone(),
            bytes: flow.bytes,
            after: flow.begin.events,
        })
        .collect();
    let title = format!("imported from {format}: {}", names.schedule);
    stage.with_traffic((names.scenario, &title), list(&listed, names.scenario), made.computes, notes).map_err(explain)
}

/// The schedule's file, or one for each rank.
struct Named<'a> {
    source: u32,
    names: &'a [&'a str],
}

impl Named<'_> {
    /// Something wrong with an operation of a rank.
    fn fault(&self, rank: u32, at: formats::Place, what: impl Into<String>, expected: &str) -> Fault {
        let (what, range) = (what.into(), at.range());
        if self.source == u32::MAX {
            let name = self.names.get(rank as usize).or(self.names.first()).copied().unwrap_or_default();
            return Fault::new(Origin::NOWHERE, format!("`{name}`, byte {}: {what}", range.start)).help(expected);
        }
        Fault::new(Origin::new(self.source, range), what).label(expected)
    }
}

/// When something happens: not before a time, and after events.
#[derive(Clone, Default)]
struct When {
    earliest: Span,
    /// By flow and state, each once.
    events: Vec<FlowEvent>,
}

struct Flow {
    src: u32,
    dst: u32,
    bytes: u64,
    begin: When,
}

struct Made {
    /// Sends up to this size have ended once they have begun.
    eager: u64,
    flows: Vec<Flow>,
    /// How long all ranks compute together, as far as that can be told.
    computes: Span,
    /// Receives whose size is not their send's.
    other_sizes: usize,
    /// Computations for which no send waits.
    idle: usize,
}

/// Of each rank and operation, the flow that it sends or receives.
type FlowOf = Vec<Vec<Option<u32>>>;

/// A send without a receive so far: its flow, its size, where it stands.
type Unmatched = (u32, u64, formats::Place);

/// Matches receives with sends of the same ranks and tag, in order; sends are flows by rank, in order.
fn matched(goal: &Goal, named: &Named<'_>, made: &mut Made) -> Result<FlowOf, Fault> {
    let mut of: FlowOf = goal.ranks.iter().map(|rank| vec![None; rank.ops.len()]).collect();
    let mut sent: BTreeMap<(u32, u32, u32), VecDeque<Unmatched>> = BTreeMap::new();
    for (number, rank) in (0u32..).zip(&goal.ranks) {
        for (op, what) in rank.ops.iter().enumerate() {
            let OpKind::Send { bytes, to, tag } = what.kind else { continue };
            let origin = Origin::new(named.source, what.at.range());
            let flow = made.flows.len() as u32;
            let size = flow_size(bytes, PAYLOAD.get().into(), origin)?;
            made.flows.push(Flow { src: number, dst: to, bytes: size, begin: When::default() });
            of[number as usize][op] = Some(flow);
            sent.entry((number, to, tag)).or_default().push_back((flow, bytes, what.at));
        }
    }
    for (number, rank) in (0u32..).zip(&goal.ranks) {
        for (op, what) in rank.ops.iter().enumerate() {
            let OpKind::Recv { bytes, from, tag } = what.kind else { continue };
            let next = sent.get_mut(&(from, number, tag)).and_then(VecDeque::pop_front);
            let Some((flow, size, _)) = next else {
                let message = format!("no send of rank {from} is left for this receive of rank {number}, tag {tag}");
                return Err(named.fault(number, what.at, message, "expected as many sends as receives of each tag"));
            };
            made.other_sizes += usize::from(size != bytes);
            of[number as usize][op] = Some(flow);
        }
    }
    let lost = sent.iter().filter_map(|(key, left)| left.front().map(|&(.., at)| (at, key)));
    if let Some((at, &(from, to, tag))) = lost.min() {
        let message = format!("rank {to} has no receive left for this send of rank {from}, tag {tag}");
        return Err(named.fault(from, at, message, "expected as many receives as sends of each tag"));
    }
    Ok(of)
}

fn flows(goal: &Goal, eager: u64, named: &Named<'_>) -> Result<Made, Fault> {
    let mut made = Made { eager, flows: Vec::new(), computes: Span::ZERO, other_sizes: 0, idle: 0 };
    let flow_of = matched(goal, named, &mut made)?;
    if made.flows.is_empty() {
        return Err(Fault::new(Origin::NOWHERE, format!("`{}` sends nothing", named.names.join("`, `")))
            .help("expected a send"));
    }
    let mut places = vec![formats::Place::default(); made.flows.len()];
    let mut work = 0;
    for (number, rank) in goal.ranks.iter().enumerate() {
        for (op, flow) in flow_of[number].iter().enumerate() {
            if let (Some(flow), OpKind::Send { .. }) = (flow, rank.ops[op].kind) {
                places[*flow as usize] = rank.ops[op].at;
            }
        }
        of_rank((rank, number as u32), &flow_of[number], named, &mut made, &mut work)?;
    }
    let after = |flow: usize| made.flows[flow].begin.events.iter().map(|event| event.flow as usize).collect::<Vec<_>>();
    if let Some(circle) = circle(made.flows.len(), after) {
        let message = format!("this send waits for itself, through {} others: it would never start", circle.len() - 1);
        return Err(named.fault(made.flows[circle[0]].src, places[circle[0]], message, "a circle of messages"));
    }
    Ok(made)
}

/// When each send of a rank begins.
fn of_rank(
    (rank, number): (&Rank, u32),
    flow_of: &[Option<u32>],
    named: &Named<'_>,
    made: &mut Made,
    work: &mut usize,
) -> Result<(), Fault> {
    let count = rank.ops.len();
    let first = |op: usize| rank.edges.partition_point(|edge| (edge.op as usize) < op);
    let on = |op: usize| rank.edges[first(op)..].iter().take_while(move |edge| edge.op as usize == op);
    let order = order(rank).map_err(|op| {
        named.fault(number, rank.ops[op].at, "this operation waits for itself: it would never start", "a circle")
    })?;
    // How many still need to know when an operation begins and ends; then its times are forgotten.
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
        begin.settle(&made.flows);
        if *work > MOST_EVENTS {
            let message = format!("this schedule waits for over {MOST_EVENTS} events");
            return Err(named.fault(
                number,
                rank.ops[op].at,
                message,
                "expected fewer receives in a row without a send",
            ));
        }
        let ended = match (rank.ops[op].kind, flow_of[op]) {
            (OpKind::Calc { ns }, _) => {
                let compute = i64::try_from(ns).ok().filter(|ns| *ns <= LONGEST.ps() / 1_000).map(Span::from_ns);
                let Some(compute) = compute else {
                    let expected = format!("expected up to {}", write_span(LONGEST));
                    return Err(named.fault(number, rank.ops[op].at, format!("a computation of {ns} ns"), &expected));
                };
                made.computes = sum(made.computes, compute);
                made.idle += usize::from(users[op] == 0 && ns > 0);
                begin.later(compute)
            }
            (OpKind::Send { .. }, Some(flow)) => {
                made.flows[flow as usize].begin = begin;
                begin = When::of(flow, FlowState::Begun);
                let eager = made.flows[flow as usize].bytes <= made.eager;
                When::of(flow, if eager { FlowState::Begun } else { FlowState::Complete })
            }
            (OpKind::Recv { .. }, Some(flow)) => {
                let mut ended = begin.clone();
                ended.events.extend(When::of(flow, FlowState::Received).events);
                ended.settle(&made.flows);
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
    let mut followers: Vec<(u32, u32)> = rank.edges.iter().map(|edge| (edge.on, edge.op)).collect();
    followers.sort_unstable();
    rank.edges.iter().for_each(|edge| waits[edge.op as usize] += 1);
    let mut order: Vec<usize> = (0..count).filter(|&op| waits[op] == 0).collect();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        let first = followers.partition_point(|&(on, _)| (on as usize) < op);
        for &(_, follower) in followers[first..].iter().take_while(|&&(on, _)| on as usize == op) {
            waits[follower as usize] -= 1;
            if waits[follower as usize] == 0 {
                order.push(follower as usize);
            }
        }
    }
    if order.len() == count {
        return Ok(order);
    }
    // Those that are left wait for a circle or are in one. Back along what they wait for, one comes twice.
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

/// The sum, at most what a file holds.
fn sum(a: Span, b: Span) -> Span {
    Span::from_ps(a.ps().saturating_add(b.ps()).min(LONGEST.ps()))
}

impl When {
    /// With a state of a flow.
    fn of(flow: u32, state: FlowState) -> Self {
        Self { earliest: Span::ZERO, events: vec![FlowEvent { flow, state, compute: Span::ZERO }] }
    }

    /// So much later.
    fn later(&self, compute: Span) -> Self {
        let later = |event: &FlowEvent| FlowEvent { compute: sum(event.compute, compute), ..*event };
        Self { earliest: sum(self.earliest, compute), events: self.events.iter().map(later).collect() }
    }

    /// Sorts events and keeps the latest of each, and none that another one is never before.
    fn settle(&mut self, flows: &[Flow]) {
        self.events.sort_unstable();
        // Of one flow and state the longest computation is the last.
        self.events.reverse();
        self.events.dedup_by_key(|event| (event.flow, event.state));
        self.events.reverse();
        // A flow begins, and is complete, after all that it waits for. Its times are known: it stands before this one.
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

fn note(goal: &Goal, made: &Made, placement: Placement, notes: &mut Vec<String>) {
    let (ranks, messages) = (goal.ranks.len(), made.flows.len());
    notes.push(format!(
        "{ranks} ranks, placement {}: {messages} messages are flows, by rank, then in the order of the file",
        placement.name()
    ));
    notes.push(
        "a message leaves when its send is due, whether its receive is posted or not; what requires a receive waits until the \
         message has come and the receive is due; what requires any other send waits until all of it is acknowledged"
            .into(),
    );
    let computing = goal
        .ranks
        .iter()
        .filter(|rank| rank.ops.iter().filter(|op| matches!(op.kind, OpKind::Calc { ns: 1.. })).nth(1).is_some());
    if computing.count() > 0 {
        notes.push("computations of a rank overlap unless they require each other: processors (`cpu`) and cards (`nic`) are left out, and so are LogGOPS's overheads".into());
    }
    if made.idle > 0 {
        notes.push(format!("{} computations are left out: nothing waits for them", made.idle));
    }
    if made.other_sizes > 0 {
        notes.push(format!("{} receives have another size than their sends, whose sizes count", made.other_sizes));
    }
}

#[cfg(test)]
mod tests {
    use formats::Place;
    use formats::goal::{Edge, Op};
    use proptest::prelude::*;

    use super::*;

    /// A message of some ranks, or a computation of one, with what its operations require; and how long a message takes until
    /// it has come and until it is acknowledged.
    #[derive(Clone, Debug)]
    struct Item {
        message: bool,
        ranks: (u8, u8),
        requires: Vec<(u8, bool)>,
        ns: [u64; 2],
    }

    fn item() -> impl Strategy<Value = Item> {
        let requires = proptest::collection::vec((any::<u8>(), any::<bool>()), 0..6);
        (any::<bool>(), (0..3u8, 1..3u8), requires, [0..1_000u64, 0..1_000u64])
            .prop_map(|(message, ranks, requires, ns)| Item { message, ranks, requires, ns })
    }

    proptest! {
        /// The flows of any schedule begin when its operations, taken one by one, are due.
        #[test]
        fn flows_begin_when_their_operations_are_due(
            items in proptest::collection::vec(item(), 1..30),
            eager in any::<bool>(),
        ) {
            let mut ranks = vec![Rank::default(); 3];
            // By rank and operation: begin and end.
            let mut due: Vec<Vec<[u64; 2]>> = vec![Vec::new(); 3];
            // By rank: begin, receipt and end of what it sends.
            let mut sent: Vec<Vec<[u64; 3]>> = vec![Vec::new(); 3];
            for item in items {
                let rank = usize::from(item.ranks.0);
                let other = (rank + usize::from(item.ranks.1)) % 3;
                let begin = |rank: usize, made: &mut Rank, due: &[Vec<[u64; 2]>]| {
                    let op = made.ops.len() as u32;
                    let mut begin = 0;
                    for (on, begun) in item.requires.iter().filter(|_| op > 0) {
                        let on = u32::from(*on) % op;
                        made.edges.push(Edge { op, on, begun: *begun });
                        begin = begin.max(due[rank][on as usize][usize::from(!begun)]);
                    }
                    begin
                };
                let at = begin(rank, &mut ranks[rank], &due);
                let mut op = |rank: usize, kind, when| {
                    ranks[rank].ops.push(Op { kind, cpu: 0, at: Place::default() });
                    due[rank].push(when);
                };
                if item.message {
                    let [come, more] = item.ns;
                    let (tag, bytes) = (0, 1);
                    op(rank, OpKind::Send { bytes, to: other as u32, tag }, [at, if eager { at } else { at + come + more }]);
                    sent[rank].push([at, at + come, at + come + more]);
                    let posted = begin(other, &mut ranks[other], &due);
                    let kind = OpKind::Recv { bytes, from: rank as u32, tag };
                    ranks[other].ops.push(Op { kind, cpu: 0, at: Place::default() });
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
            let made = flows(&Goal { ranks }, u64::from(eager), &Named { source: 0, names: &["x"] }).unwrap();
            prop_assert_eq!(made.flows.len(), known.len());
            for (flow, known_at) in made.flows.iter().zip(&known) {
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

    fn made(schedule: &str) -> Vec<(u32, u32, Span, Vec<String>)> {
        let goal = read(schedule.as_bytes()).unwrap();
        let made = flows(&goal, 0, &Named { source: 0, names: &["x"] }).unwrap();
        let flow = |flow: Flow| {
            let events = flow.begin.events.iter().map(FlowEvent::to_string).collect();
            (flow.src, flow.dst, flow.begin.earliest, events)
        };
        made.flows.into_iter().map(flow).collect()
    }

    fn refused(schedule: &str) -> String {
        let names = GoalNames { scenario: "s", schedule: "a.goal" };
        import_goal(schedule.as_bytes(), &GoalOptions { placement: Placement::Block, eager: "0B" }, None, &names)
            .unwrap_err()
            .to_string()
    }

    /// A computation beside a receive: the later of both counts, not their sum.
    #[test]
    fn computations_overlap_with_messages() {
        let schedule = "num_ranks 2 rank 0 { c: calc 5000 s: send 10b to 1 s requires c }
            rank 1 { c: calc 7000 r: recv 10b from 0 d: calc 100 s: send 20b to 0 tag 1 t: send 30b to 0 tag 2
                d requires r s requires d s requires c t irequires s t requires r }";
        let both = schedule.replace("s requires c }", "s requires c recv 20b from 1 tag 1 recv 30b from 1 tag 2 }");
        let flows = made(&both);
        assert_eq!(flows[0], (0, 1, Span::from_us(5), vec![]));
        assert_eq!(flows[1], (1, 0, Span::from_us(7), vec!["received:0+100ns".to_owned()]));
        // What flow 1 waits for is before its begin.
        assert_eq!(flows[2], (1, 0, Span::ZERO, vec!["begun:1".to_owned()]));
    }

    #[test]
    fn ranks_are_by_the_numbers_of_their_files() {
        assert_eq!(
            ["a/x.12.et", "trace7.et", "7", "x.et", "a.3/x.et"].map(number_in),
            [Some(12), Some(7), Some(7), None, None]
        );
        let none: &[(&str, Vec<u8>)] = &[];
        assert!(import_chakra(none, None, None, Placement::Block, "s").is_err());
        for (groups, part) in [
            ("{\"g\": [0, 0]}", "the group `g`"),
            ("{\"g\": [4]}", "under 1"),
            ("{\"k\": \"secret\"}", "line 1, column"),
        ] {
            let files = [("x.0.et", vec![0])];
            let error =
                import_chakra(&files, Some((groups, "g.json")), None, Placement::Block, "s").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("`g.json`") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_send_stands_for_what_it_waited_for() {
        let flows = made(
            "num_ranks 2 rank 0 { r1: recv 1b from 1 r2: recv 2b from 1 s: send 3b to 1 r2 requires r1 s requires r2
                t: send 4b to 1 t requires s t requires r1 }
             rank 1 { send 1b to 0 send 2b to 0 recv 3b from 0 recv 4b from 0 }",
        );
        assert_eq!(flows[0].3, ["received:2", "received:3"]);
        assert_eq!(flows[1].3, ["0"]);
    }

    #[test]
    fn what_cannot_run_is_refused_with_its_line() {
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
                ["a.goal:4:4", "a circle of messages"],
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
