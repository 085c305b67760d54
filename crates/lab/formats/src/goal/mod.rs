//! GOAL schedules, as read by LogGOPSim and ATLAHS: the sends, receives and computations of each rank, and their
//! dependencies. Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language", ICPP 2009.
//!
//! Schedules are text or binary. Receives from any rank or with any tag are refused: their senders are only known when
//! a schedule runs.

mod binary;
mod text;

use crate::{ByteRange, Error};

pub use binary::is_binary;

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goal {
    /// Ranks, from 0.
    pub ranks: Vec<Rank>,
}

/// Schedule of a rank.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rank {
    /// Operations in the order of the file.
    pub ops: Vec<Op>,
    /// Dependencies, sorted. Both ends are indices into `ops`.
    pub edges: Vec<OpDependency>,
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Type and parameters.
    pub kind: OpKind,
    /// The rank's processor that executes it.
    pub cpu: u32,
    /// Position in the file.
    pub at: ByteRange,
}

/// Type and parameters of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sends a message.
    Send {
        /// Size in bytes.
        bytes: u64,
        /// Destination rank.
        to: u32,
        /// Tag; it matches receives with the same tag.
        tag: u32,
    },
    /// Receives a message.
    Recv {
        /// Size in bytes.
        bytes: u64,
        /// Source rank.
        from: u32,
        /// Tag; it matches sends with the same tag.
        tag: u32,
    },
    /// Computes.
    Calc {
        /// Duration, in nanoseconds as in LogGOPSim.
        ns: u64,
    },
}

/// Dependency of an operation on another of the same rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpDependency {
    /// The operation that waits.
    pub op: u32,
    /// The operation that it waits for.
    pub on: u32,
    /// Set if it waits for the start of that operation (`irequires`), not its end (`requires`).
    pub begun: bool,
}

/// Reads a schedule, as text or as bytes: a file that is UTF-8 text and does not begin like a binary one is text.
///
/// # Errors
/// If the file is malformed, names ranks or labels that do not exist, or defines a label twice; if a rank has no block.
pub fn read(file: &[u8]) -> Result<Goal, Error> {
    match std::str::from_utf8(file) {
        Ok(text) if !is_binary(file) => text::read(text),
        _ => binary::read(file),
    }
}

/// The other end of a message, as a schedule states it.
#[derive(Clone, Copy)]
enum Other {
    Rank(u32),
    /// Any rank: -1 in the text.
    Any,
}

/// Returns the message's other end if it is another rank of the schedule.
fn peer(other: Other, rank: u32, ranks: u32) -> Result<u32, String> {
    match other {
        Other::Any => Err("a receive from anyone cannot be read: which send it takes is known only at run time".into()),
        Other::Rank(other) if other >= ranks => Err(format!("there is no rank {other}: the schedule has {ranks}")),
        Other::Rank(other) if other == rank => Err(format!("a message of rank {rank} with itself")),
        Other::Rank(other) => Ok(other),
    }
}

/// Returns the description of accepted ranks at a message's other end.
fn other_rank(ranks: u32) -> String {
    format!("expected another rank, 0 to {}", ranks.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::index32;

    fn operations() -> impl Strategy<Value = (OpKind, u32)> {
        let bytes = 1..1_000_000u64;
        let kind = prop_oneof![
            (bytes.clone(), 0..9u32).prop_map(|(bytes, tag)| OpKind::Send { bytes, to: 1, tag }),
            (bytes, 0..9u32).prop_map(|(bytes, tag)| OpKind::Recv { bytes, from: 1, tag }),
            (0..u64::MAX).prop_map(|ns| OpKind::Calc { ns }),
        ];
        (kind, 0..4u32)
    }

    fn schedule() -> impl Strategy<Value = Goal> {
        let edges = proptest::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..20);
        let ops = proptest::collection::vec(operations(), 1..12);
        (ops, edges).prop_map(|(ops, edges)| {
            let count = index32(ops.len());
            let ops = ops.into_iter().map(|(kind, cpu)| Op { kind, cpu, at: ByteRange::default() }).collect();
            let edge = |(op, on, begun): (u32, u32, bool)| OpDependency { op: op % count, on: on % count, begun };
            let mut edges: Vec<OpDependency> = edges.into_iter().map(edge).collect();
            edges.sort_unstable();
            edges.dedup();
            Goal { ranks: vec![Rank { ops, edges }, Rank::default()] }
        })
    }

    fn without_places(mut goal: Goal) -> Goal {
        goal.ranks.iter_mut().flat_map(|rank| &mut rank.ops).for_each(|op| op.at = ByteRange::default());
        goal
    }

    fn written(goal: &Goal) -> String {
        use std::fmt::Write;
        let mut out = format!("num_ranks {}\n", goal.ranks.len());
        for (number, rank) in goal.ranks.iter().enumerate() {
            let _ = writeln!(out, "rank {number} {{");
            for (label, op) in rank.ops.iter().enumerate() {
                let cpu = op.cpu;
                let _ = match op.kind {
                    OpKind::Send { bytes, to, tag } => {
                        writeln!(out, "l{label}: send {bytes}b to {to} tag {tag} cpu {cpu}")
                    }
                    OpKind::Recv { bytes, from, tag } => {
                        writeln!(out, "l{label}: recv {bytes}b from {from} tag {tag} cpu {cpu}")
                    }
                    OpKind::Calc { ns } => writeln!(out, "l{label}: calc {ns} cpu {cpu}"),
                };
            }
            for edge in &rank.edges {
                let word = if edge.begun { "irequires" } else { "requires" };
                let _ = writeln!(out, "l{} {word} l{}", edge.op, edge.on);
            }
            out.push_str("}\n");
        }
        out
    }

    proptest! {
        #[test]
        fn written_lists_read_back(goal in schedule()) {
            prop_assert_eq!(&without_places(read(written(&goal).as_bytes()).unwrap()), &goal);
            for layout in binary::LAYOUTS {
                let bytes = binary::tests::written(&goal, layout);
                prop_assert_eq!(&without_places(read(&bytes).unwrap()), &goal);
            }
        }

        #[test]
        fn any_bytes_are_a_schedule_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        /// A binary file with some bytes changed.
        #[test]
        fn broken_bytes_are_an_error_or_a_schedule(
            goal in schedule(),
            changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = binary::tests::written(&goal, binary::LAYOUTS[0]);
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let _ = read(&bytes);
        }
    }
}
