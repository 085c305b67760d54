//! Chakra execution traces of MLCommons (`et_def.proto`, version 0.0.4), one file per rank, as GOAL schedules.
//! Sridharan et al., "Chakra", arXiv:2305.14516.
//!
//! A file is a sequence of length-prefixed protobuf messages: the metadata, then nodes. These fields of a node are
//! read: its id, type, dependencies (control and data alike) and duration, and the attributes `comm_type`, `comm_size`,
//! `comm_src`, `comm_dst`, `comm_tag` and `pg_name`. Everything else is omitted.
//!
//! A collective becomes sends and receives of its group (`rings`); a barrier is an all-reduce of n bytes. The first one
//! of a group on each of its ranks is the same collective, so is the second, and so on.
//!
//! `comm_size` is one rank's input: Chakra's converter adds up a node's input tensors (`PyTorchNode.comm_size`). So an
//! all-gather of n ranks gathers n times as much, and a step of its ring carries all of `comm_size` (astra-sim, `Ring.cc`); of the
//! others an input is what a rank reduces, scatters or sends.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use crate::goal::{Goal, OpDependency, OpKind, Rank};
use crate::index::index32;
use crate::rings::{Collective, MAX, Membership, RankBuilder};
use crate::{ByteRange, Error, GZIP};

/// The message before the nodes.
#[derive(Clone, PartialEq, Message)]
struct MetadataProto {
    #[prost(string, tag = "1")]
    version: String,
}

/// The version of the schema that is read.
const VERSION: &str = "0.0.4";

/// Attributes, as far as they are read.
#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "AttrValue", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 29")]
    value: Option<AttrValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AttrValue {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(string, tag = "29")]
    Text(String),
}

/// A node, as far as it is read.
#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    attr: Vec<AttributeProto>,
}

/// The smallest tag of messages of collectives.
const OF_COLLECTIVES: u32 = 1 << 31;

/// Statistics of the traces, in addition to the schedule.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ChakraStats {
    /// Collectives with something to send, each counted once.
    pub collectives: usize,
    /// Collectives of no bytes, each counted once: nothing is sent.
    pub empty: usize,
    /// Versions of the schema that the traces state, other than `VERSION`.
    pub other_versions: BTreeSet<String>,
    /// Computations without a duration, which take no time.
    pub without_duration: usize,
}

/// Groups of ranks by their names (`pg_name`).
pub type ProcessGroups = BTreeMap<String, Vec<u32>>;

/// A collective of a group, as each of its ranks states it.
struct CollectiveRecord {
    tag: u32,
    kind: i64,
    /// Input of each of them.
    bytes: u64,
}

struct TraceReader<'a> {
    groups: &'a ProcessGroups,
    all: Vec<u32>,
    collectives: BTreeMap<(Option<String>, u32), CollectiveRecord>,
    ops: usize,
    found: ChakraStats,
}

/// Reads the traces of all ranks, in their order, and joins them to a schedule.
///
/// # Errors
/// The number of the file and its error: not a trace, a node that waits for a missing one, a collective that is unknown
/// or on which the ranks of its group disagree, a message to a rank without a file.
pub fn read(files: &[impl AsRef<[u8]>], groups: &ProcessGroups) -> Result<(Goal, ChakraStats), (usize, Error)> {
    let all = (0..index32(files.len())).collect();
    let mut reader = TraceReader { groups, all, collectives: BTreeMap::new(), ops: 0, found: ChakraStats::default() };
    let mut ranks = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        ranks.push(reader.rank(file.as_ref(), index32(number)).map_err(|error| (number, error))?);
    }
    reader.found.empty = reader.collectives.values().filter(|record| record.bytes == 0).count();
    reader.found.collectives = reader.collectives.len() - reader.found.empty;
    Ok((Goal { ranks }, reader.found))
}

/// The messages of a file.
struct Messages<'a> {
    /// The version of the schema that the metadata state.
    version: String,
    /// The nodes after the metadata, and their positions.
    nodes: Vec<(&'a [u8], ByteRange)>,
}

fn messages(file: &[u8]) -> Result<Messages<'_>, Error> {
    if file.starts_with(&GZIP) {
        return Err(Error::bytes(ByteRange::new(0..2), "the trace is compressed", "expected the output of `gunzip`"));
    }
    let (mut messages, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let mut rest = &file[at..];
        let length = prost::decode_length_delimiter(&mut rest).ok().filter(|&length| length <= rest.len());
        let Some(length) = length else {
            let problem = "the length of this message exceeds the file";
            return Err(Error::bytes(ByteRange::new(at..file.len()), problem, "expected Chakra's protobuf messages"));
        };
        let begin = file.len() - rest.len();
        messages.push((&file[begin..begin + length], ByteRange::new(begin..begin + length)));
        at = begin + length;
    }
    if messages.is_empty() {
        return Err(Error::bytes(ByteRange::new(0..0), "the trace is empty", "expected metadata and nodes"));
    }
    let (first, at) = messages.remove(0);
    let metadata = MetadataProto::decode(first).map_err(|_| {
        let problem = "the first message is no metadata";
        Error::bytes(at, problem, format!("expected a trace of Chakra's schema {VERSION}: older ones have no metadata"))
    })?;
    Ok(Messages { version: metadata.version, nodes: messages })
}

impl TraceReader<'_> {
    fn rank(&mut self, file: &[u8], rank: u32) -> Result<Rank, Error> {
        let mut schedule = Rank::default();
        // By id: the first operations of a node, and the last one.
        let mut nodes: BTreeMap<u64, (std::ops::Range<u32>, u32)> = BTreeMap::new();
        let mut waits: Vec<(std::ops::Range<u32>, u64, u64, ByteRange)> = Vec::new();
        let mut count: BTreeMap<Option<String>, u32> = BTreeMap::new();
        let Messages { version, nodes: messages } = messages(file)?;
        if version != VERSION {
            self.found.other_versions.insert(version);
        }
        for (message, at) in messages {
            let node = NodeProto::decode(message)
                .map_err(|error| Error::bytes(at, format!("this is no node: {error}"), "expected Chakra's Node"))?;
            let first = index32(schedule.ops.len());
            let mut builder = RankBuilder { schedule: &mut schedule, at };
            // Operations up to here wait for what the node waits for.
            let (ready, last) = match node.kind {
                5 | 6 => {
                    let sends = node.kind == 5;
                    let bytes = node.size(at)?;
                    if bytes == 0 {
                        return Err(node.wrong(at, "a message of no bytes", "expected a `comm_size` over 0"));
                    }
                    let tag =
                        u32::try_from(node.number("comm_tag").unwrap_or(0)).ok().filter(|tag| *tag < OF_COLLECTIVES);
                    let tag =
                        tag.ok_or_else(|| node.wrong(at, "a `comm_tag` out of range", "expected 0 to 2147483647"))?;
                    let name = if sends { "comm_dst" } else { "comm_src" };
                    let other = node.number(name).and_then(|other| u32::try_from(other).ok());
                    let other = other.filter(|other| *other != rank && (*other as usize) < self.all.len());
                    let other = other.ok_or_else(|| {
                        node.wrong(
                            at,
                            &format!("no `{name}` of another rank that has a trace"),
                            &format!("expected one of {} ranks", self.all.len()),
                        )
                    })?;
                    let kind = if sends {
                        OpKind::Send { bytes, to: other, tag }
                    } else {
                        OpKind::Recv { bytes, from: other, tag }
                    };
                    let op = builder.op(kind);
                    (op + 1, op)
                }
                7 => {
                    let group = node.attr.iter().find_map(|attr| match &attr.value {
                        Some(AttrValue::Text(name)) if attr.name == "pg_name" && !name.is_empty() => Some(name.clone()),
                        _ => None,
                    });
                    self.collective(&node, rank, group, &mut count, &mut builder)?
                }
                _ => {
                    self.found.without_duration += usize::from(node.kind == 4 && node.duration_micros == 0);
                    let op = builder.op(OpKind::Calc { ns: node.duration_micros.saturating_mul(1_000) });
                    (op + 1, op)
                }
            };
            self.ops += schedule.ops.len() - first as usize;
            if self.ops > MAX {
                return Err(Error::bytes(
                    at,
                    format!("over {MAX} operations"),
                    "expected fewer or smaller collectives",
                ));
            }
            for on in node.ctrl_deps.iter().chain(&node.data_deps) {
                waits.push((first..ready, *on, node.id, at));
            }
            if nodes.insert(node.id, (first..ready, last)).is_some() {
                return Err(Error::bytes(at, format!("two nodes have the id {}", node.id), "expected another id"));
            }
        }
        for (ops, on, id, at) in waits {
            let Some((_, last)) = nodes.get(&on) else {
                let problem = format!("node {id} waits for node {on}, which is not there");
                return Err(Error::bytes(at, problem, "expected the id of a node of this trace"));
            };
            schedule.edges.extend(ops.map(|op| OpDependency { op, on: *last, begun: false }));
        }
        schedule.edges.sort_unstable();
        schedule.edges.dedup();
        Ok(schedule)
    }

    /// Appends the operations of a collective at a rank. Returns the end of those that wait for the dependencies of the
    /// collective, and the last one, which ends it.
    fn collective(
        &mut self,
        node: &NodeProto,
        rank: u32,
        group: Option<String>,
        count: &mut BTreeMap<Option<String>, u32>,
        builder: &mut RankBuilder<'_>,
    ) -> Result<(u32, u32), Error> {
        let at = builder.at;
        let wrong = |problem: &str, expected: &str| Err(node.wrong(at, problem, expected));
        let members = match &group {
            None => &self.all,
            Some(name) => match self.groups.get(name) {
                Some(members) => members,
                None => {
                    return wrong(
                        &format!("the group `{name}`, which is unknown"),
                        "expected a file of groups that has it (--groups)",
                    );
                }
            },
        };
        let n = members.len() as u64;
        let Some(index) = members.iter().position(|&member| member == rank) else {
            return wrong("a group that its rank is not in", "expected another group");
        };
        let Some(kind) = node.number("comm_type") else {
            return wrong("no `comm_type`", "expected the kind of the collective, such as 0 (all-reduce)");
        };
        let bytes = if kind == 9 { n } else { node.size(at)? };
        let nth = count.entry(group.clone()).or_default();
        let next = OF_COLLECTIVES + (index32(self.collectives.len()) & (OF_COLLECTIVES - 1));
        let known = self.collectives.entry((group, *nth)).or_insert(CollectiveRecord { tag: next, kind, bytes });
        *nth += 1;
        if (known.kind, known.bytes) != (kind, bytes) {
            let problem = format!(
                "a collective of type {kind} and {bytes} bytes, where another rank of its group has type {} and {}",
                known.kind, known.bytes
            );
            return wrong(&problem, "expected the same on all ranks");
        }
        let collective = match kind {
            0 | 9 => Collective::AllReduce,
            2 => Collective::AllGather,
            5 => Collective::Broadcast,
            6 => Collective::AllToAll,
            7 | 8 => Collective::ReduceScatter,
            other => {
                let known = "expected 0 (all-reduce), 2 (all-gather), 5 (broadcast), 6 (all-to-all), 7, 8 (reduce-scatter) or 9 (barrier)";
                return wrong(&format!("a collective of type {other}"), known);
            }
        };
        if bytes == 0 {
            let op = builder.op(OpKind::Calc { ns: 0 });
            return Ok((op + 1, op));
        }
        let total = if collective == Collective::AllGather { bytes.checked_mul(n) } else { Some(bytes) };
        let Some(total) = total else {
            return wrong(&format!("an all-gather of {bytes} bytes a rank"), "expected fewer bytes");
        };
        let ops = builder.collective(collective, total, Membership { members, index }, known.tag);
        Ok((ops.first + 1, ops.last))
    }
}

impl NodeProto {
    fn number(&self, name: &str) -> Option<i64> {
        match &self.attr.iter().find(|attr| attr.name == name)?.value {
            Some(AttrValue::Int32(number) | AttrValue::Sint32(number) | AttrValue::Sfixed32(number)) => {
                Some((*number).into())
            }
            Some(AttrValue::Int64(number) | AttrValue::Sint64(number) | AttrValue::Sfixed64(number)) => Some(*number),
            Some(AttrValue::Uint32(number) | AttrValue::Fixed32(number)) => Some((*number).into()),
            Some(AttrValue::Uint64(number) | AttrValue::Fixed64(number)) => i64::try_from(*number).ok(),
            Some(AttrValue::Text(_)) | None => None,
        }
    }

    fn size(&self, at: ByteRange) -> Result<u64, Error> {
        let size = self.number("comm_size").and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| self.wrong(at, "no `comm_size`", "expected a number of bytes, from 0 up"))
    }

    fn wrong(&self, at: ByteRange, problem: &str, expected: &str) -> Error {
        Error::bytes(at, format!("node {} has {problem}", self.id), expected)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attr(name: &str, value: AttrValue) -> AttributeProto {
        AttributeProto { name: name.into(), value: Some(value) }
    }

    fn node(id: u64, kind: i32, after: &[u64], attr: Vec<AttributeProto>) -> NodeProto {
        NodeProto { id, kind, ctrl_deps: after.to_vec(), attr, ..NodeProto::default() }
    }

    fn file(nodes: &[NodeProto]) -> Vec<u8> {
        // GlobalMetadata { version = "0.0.4" }.
        let mut file = vec![7, 0x0a, 5, b'0', b'.', b'0', b'.', b'4'];
        for node in nodes {
            file.extend(node.encode_length_delimited_to_vec());
        }
        file
    }

    fn collective(id: u64, kind: i64, bytes: i64, group: &str) -> NodeProto {
        let size = attr("comm_size", AttrValue::Int64(bytes));
        node(
            id,
            7,
            &[],
            vec![attr("comm_type", AttrValue::Int64(kind)), size, attr("pg_name", AttrValue::Text(group.into()))],
        )
    }

    #[test]
    fn messages_and_computations_are_read() {
        let calc = NodeProto { duration_micros: 5, ..node(1, 4, &[], vec![]) };
        let comm = |name: &str, other| {
            vec![
                attr("comm_size", AttrValue::Uint64(9)),
                attr(name, AttrValue::Int32(other)),
                attr("comm_tag", AttrValue::Uint32(3)),
            ]
        };
        let files =
            [file(&[calc, node(2, 5, &[1], comm("comm_dst", 1))]), file(&[node(7, 6, &[], comm("comm_src", 0))])];
        let (goal, found) = read(&files, &ProcessGroups::new()).unwrap();
        let kinds = |rank: usize| goal.ranks[rank].ops.iter().map(|op| op.kind).collect::<Vec<_>>();
        assert_eq!(kinds(0), [OpKind::Calc { ns: 5_000 }, OpKind::Send { bytes: 9, to: 1, tag: 3 }]);
        assert_eq!(kinds(1), [OpKind::Recv { bytes: 9, from: 0, tag: 3 }]);
        assert_eq!(goal.ranks[0].edges, [OpDependency { op: 1, on: 0, begun: false }]);
        assert_eq!(found, ChakraStats::default());
    }

    /// Bytes that each of three ranks sends and receives, by kinds of collectives, with an input of 300 bytes each: an all-gather
    /// hands on two others' inputs, the others two thirds of an input, an all-reduce twice that.
    #[test]
    fn collectives_move_their_bytes() {
        let groups = ProcessGroups::from([("g".to_owned(), vec![3, 0, 2])]);
        for (kind, each) in [(0, 4 * 100), (2, 2 * 300), (7, 200), (8, 200), (6, 200), (9, 4)] {
            let member = file(&[collective(1, kind, 300, "g")]);
            let files = [member.clone(), file(&[]), member.clone(), member];
            let (goal, found) = read(&files, &groups).unwrap();
            let sum = |rank: usize, sends: bool| {
                let bytes = goal.ranks[rank].ops.iter().map(|op| match op.kind {
                    OpKind::Send { bytes, .. } if sends => bytes,
                    OpKind::Recv { bytes, .. } if !sends => bytes,
                    _ => 0,
                });
                bytes.sum::<u64>()
            };
            let sums: Vec<_> = (0..4).map(|rank| (sum(rank, true), sum(rank, false))).collect();
            assert_eq!(sums, [(each, each), (0, 0), (each, each), (each, each)], "{kind}");
            assert_eq!((found.collectives, found.empty), (1, 0));
        }
        // A broadcast of the first of the group goes along the ring, whole.
        let member = file(&[collective(1, 5, 300, "g")]);
        let (goal, _) = read(&[member.clone(), file(&[]), member.clone(), member], &groups).unwrap();
        let sent = |rank: &Rank| {
            let bytes = rank.ops.iter().map(|op| if let OpKind::Send { bytes, .. } = op.kind { bytes } else { 0 });
            bytes.sum::<u64>()
        };
        assert_eq!(goal.ranks.iter().map(sent).collect::<Vec<u64>>(), [300, 0, 0, 300]);
    }

    #[test]
    fn a_collective_of_no_bytes_sends_nothing() {
        let member = file(&[collective(1, 2, 0, ""), node(2, 4, &[1], vec![])]);
        let (goal, found) = read(&[member.clone(), member], &ProcessGroups::new()).unwrap();
        assert!(goal.ranks.iter().flat_map(|rank| &rank.ops).all(|op| matches!(op.kind, OpKind::Calc { .. })));
        assert_eq!((found.collectives, found.empty), (0, 1));
    }

    /// Numbers have whatever type of protobuf their writer chose.
    #[test]
    fn numbers_of_all_types_are_read() {
        let values = [
            AttrValue::Int32(300),
            AttrValue::Int64(300),
            AttrValue::Uint32(300),
            AttrValue::Uint64(300),
            AttrValue::Sint32(300),
            AttrValue::Sint64(300),
            AttrValue::Fixed32(300),
            AttrValue::Fixed64(300),
            AttrValue::Sfixed32(300),
            AttrValue::Sfixed64(300),
        ];
        for value in values {
            assert_eq!(node(1, 7, &[], vec![attr("comm_size", value)]).number("comm_size"), Some(300));
        }
    }

    #[test]
    fn other_schema_versions_are_noted() {
        let mut newer = file(&[]);
        newer[7] = b'5';
        let (_, found) = read(&[newer, file(&[])], &ProcessGroups::new()).unwrap();
        assert_eq!(found.other_versions, BTreeSet::from(["0.0.5".to_owned()]));
        // A file of an older schema begins with a node.
        let older = file(&[node(1, 4, &[], vec![])])[8..].to_vec();
        let (_, error) = read(&[older], &ProcessGroups::new()).unwrap_err();
        assert_eq!(error.byte_range(), 1..5);
    }

    #[test]
    fn errors_have_byte_ranges() {
        let error_of = |files: &[Vec<u8>]| read(files, &ProcessGroups::new()).unwrap_err();
        let one = |nodes: &[NodeProto], start, name: &str| {
            let (number, error) = error_of(&[file(nodes), file(&[])]);
            assert_eq!((number, error.byte_range().start), (0, start), "{error}");
            assert!(error.to_string().contains(name), "{error}");
        };
        one(&[node(1, 4, &[9], vec![])], 9, "node 9");
        one(&[node(1, 4, &[], vec![]), node(1, 4, &[], vec![])], 14, "id 1");
        one(&[node(1, 5, &[], vec![])], 9, "`comm_size`");
        one(&[node(1, 5, &[], vec![attr("comm_size", AttrValue::Int64(1))])], 9, "`comm_dst`");
        one(&[collective(1, 0, 8, "x")], 9, "`x`");
        one(&[collective(1, 3, 8, "")], 9, "type 3");
        one(&[node(1, 7, &[], vec![attr("comm_size", AttrValue::Int64(1))])], 9, "`comm_type`");
        one(&[node(1, 5, &[], vec![attr("comm_size", AttrValue::Int64(0))])], 9, "");
        one(&[collective(1, 0, -8, "")], 9, "`comm_size`");
        let (number, error) = error_of(&[file(&[collective(1, 0, 8, "")]), file(&[collective(1, 0, 9, "")])]);
        assert_eq!((number, error.byte_range().start), (1, 9), "{error}");
        for other in [vec![0x1f, 0x8b, 8], vec![], vec![200, 200, 200, 4, 1]] {
            assert_eq!(error_of(&[other]).1.byte_range().start, 0);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..12)) {
            let mut bytes = file(&[collective(1, 0, 300, ""), node(2, 4, &[1], vec![])]);
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let _ = read(&[bytes.clone(), bytes], &ProcessGroups::new());
        }
    }
}
