//! Collective operations as sends and receives of their ranks.
//!
//! Rings: an all-reduce takes 2(n - 1) steps, each of 1/n of the bytes; an all-gather or a reduce-scatter takes n - 1
//! of them. A rank sends a step once it has sent the step before and has received the neighbour's. An all-to-all is n -
//! 1 concurrent sends of 1/n. A broadcast passes along the ring once, undivided.
//!
//! Formats count a collective's bytes differently. Here `total` is the buffer that is divided among the ranks: the data
//! that a rank reduces or sends, and for an all-gather the data that all ranks have in the end, n inputs.

use crate::ByteRange;
use crate::goal::{Op, OpDependency, OpKind, Rank};
use crate::index::index32;

/// Maximum number of operations. More are a mistake: collectives of many ranks have many.
pub(crate) const MAX: usize = 20_000_000;

/// Type of a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
}

/// A rank among the members of a collective.
#[derive(Clone, Copy)]
pub(crate) struct Membership<'a> {
    pub(crate) members: &'a [u32],
    /// Position of the rank in `members`.
    pub(crate) index: usize,
}

impl Membership<'_> {
    /// Returns the member that is `by` positions further along the ring.
    fn neighbour(self, by: usize) -> u32 {
        self.members[(self.index + by) % self.members.len()]
    }
}

/// First and last operation of a collective at a rank.
#[derive(Clone, Copy)]
pub(crate) struct CollectiveOps {
    /// All others wait for it.
    pub(crate) first: u32,
    /// Step that waits for all others.
    pub(crate) last: u32,
}

/// A rank that is being built, and the position in the file of its next operations.
pub(crate) struct RankBuilder<'a> {
    pub(crate) schedule: &'a mut Rank,
    pub(crate) at: ByteRange,
}

impl RankBuilder<'_> {
    pub(crate) fn op(&mut self, kind: OpKind) -> u32 {
        self.schedule.ops.push(Op { kind, cpu: 0, at: self.at });
        index32(self.schedule.ops.len()) - 1
    }

    pub(crate) fn edge(&mut self, op: u32, on: u32) {
        // The operations after a send of a collective do not wait for its acknowledgement.
        let begun = matches!(self.schedule.ops[on as usize].kind, OpKind::Send { .. });
        self.schedule.edges.push(OpDependency { op, on, begun });
    }

    /// Appends the operations of a rank in a collective of `total` bytes. `tag` is the collective's own.
    pub(crate) fn collective(
        &mut self,
        collective: Collective,
        total: u64,
        of: Membership<'_>,
        tag: u32,
    ) -> CollectiveOps {
        let first = self.op(OpKind::Calc { ns: 0 });
        let neighbour = |by: usize| of.neighbour(by);
        let (count, index) = (of.members.len(), of.index);
        let part = total.div_ceil(count.max(1) as u64);
        let ends = match collective {
            _ if count < 2 => vec![first],
            Collective::AllReduce => self.ring(2 * (count - 1), part, of, first, tag),
            Collective::AllGather | Collective::ReduceScatter => self.ring(count - 1, part, of, first, tag),
            Collective::AllToAll => {
                let mut receives = vec![first];
                for by in 1..count {
                    let send = self.op(OpKind::Send { bytes: part, to: neighbour(by), tag });
                    self.edge(send, first);
                    receives.push(self.op(OpKind::Recv { bytes: part, from: neighbour(count - by), tag }));
                }
                receives
            }
            Collective::Broadcast => {
                let mut last = first;
                if index > 0 {
                    last = self.op(OpKind::Recv { bytes: total, from: neighbour(count - 1), tag });
                    self.edge(last, first);
                }
                if index + 1 < count {
                    let send = self.op(OpKind::Send { bytes: total, to: neighbour(1), tag });
                    self.edge(send, last);
                    last = send;
                }
                vec![last]
            }
        };
        let end = self.op(OpKind::Calc { ns: 0 });
        for on in ends {
            self.edge(end, on);
        }
        CollectiveOps { first, last: end }
    }

    /// Appends the steps along a ring. Returns the last send and the last receive.
    fn ring(&mut self, steps: usize, part: u64, of: Membership<'_>, first: u32, tag: u32) -> Vec<u32> {
        let (to, from) = (of.neighbour(1), of.neighbour(of.members.len() - 1));
        let (mut send_after, mut recv_after) = (first, first);
        for _ in 0..steps {
            let send = self.op(OpKind::Send { bytes: part, to, tag });
            self.edge(send, recv_after);
            self.edge(send, send_after);
            let recv = self.op(OpKind::Recv { bytes: part, from, tag });
            // The send has waited for the receives before, which need not be listed again.
            self.edge(recv, send);
            (send_after, recv_after) = (send, recv);
        }
        vec![send_after, recv_after]
    }
}
