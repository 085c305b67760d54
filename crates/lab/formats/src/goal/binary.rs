//! Binary GOAL, little-endian, as written by `txt2bin` of LogGOPSim and ATLAHS.
//!
//! A cookie (u64, 4223), the number of ranks (u32), the highest processor and NIC (u8 each), a table of two u64 per
//! rank (start and end of its part, counted from the end of the cookie), then the parts. A part has the number of
//! operations and of those without dependencies (u32 each), the numbers of the latter, an entry of 39 bytes per
//! operation, and lists of the operations that wait for each. Older writers omit the cookie, or the cookie and the two
//! u8.

use super::{Goal, Op, OpDependency, OpKind, Other, Rank, other_rank, peer};
use crate::{ByteRange, Error};

const COOKIE: u64 = 4223;
/// The bytes of an operation's entry.
const ENTRY: usize = 39;

/// Header before the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Set if there is a cookie.
    cookie: bool,
    /// Set if the highest processor and NIC are present.
    maxima: bool,
}

/// Known layouts, newest first.
pub(super) const LAYOUTS: [Layout; 3] = [
    Layout { cookie: true, maxima: true },
    Layout { cookie: false, maxima: true },
    Layout { cookie: false, maxima: false },
];

impl Layout {
    /// Returns the offset from which positions are counted.
    fn base(self) -> usize {
        if self.cookie { 8 } else { 0 }
    }

    /// Returns the offset of the table.
    fn table(self) -> usize {
        self.base() + if self.maxima { 6 } else { 4 }
    }

    /// Returns the number of ranks, if a file has this layout: its first part begins directly after its table.
    fn ranks_of(self, file: &[u8]) -> Option<u32> {
        let mut reader = NumberReader { file, at: 0, end: file.len() };
        if self.cookie && reader.u64().ok()? != COOKIE {
            return None;
        }
        let ranks = reader.u32().ok()?;
        let behind = self.table() as u64 + 16 * u64::from(ranks);
        reader.at = self.table();
        let first = reader.u64().ok()?;
        (ranks > 0 && behind <= file.len() as u64 && first == behind - self.base() as u64).then_some(ranks)
    }
}

/// Returns whether a file begins like a binary schedule.
pub fn is_binary(file: &[u8]) -> bool {
    file.starts_with(&COOKIE.to_le_bytes()) || LAYOUTS.iter().any(|layout| layout.ranks_of(file).is_some())
}

/// Reader of the numbers in a part of a file.
struct NumberReader<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

impl NumberReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.file.get(..self.end).and_then(|part| part.get(self.at..)?.first_chunk::<N>());
        let Some(&bytes) = bytes else {
            let at = ByteRange::new(self.at..self.end.max(self.at));
            return Err(Error::bytes(at, "the schedule is cut off here", format!("expected {N} bytes more")));
        };
        self.at += N;
        Ok(bytes)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        self.take().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    /// Returns the maximum number of remaining items of `bytes` bytes each.
    fn left(&self, bytes: usize) -> usize {
        self.end.saturating_sub(self.at) / bytes
    }
}

pub(super) fn read(file: &[u8]) -> Result<Goal, Error> {
    let found = LAYOUTS.iter().find_map(|layout| layout.ranks_of(file).map(|ranks| (layout, ranks)));
    let Some((layout, ranks)) = found else {
        let problem = "this is no GOAL schedule, neither text nor bytes";
        return Err(Error::bytes(
            ByteRange::new(0..0),
            problem,
            "expected `num_ranks N`, or the cookie 4223 and a table of parts",
        ));
    };
    let mut table = NumberReader { file, at: layout.table(), end: file.len() };
    let mut goal = Goal { ranks: Vec::with_capacity((ranks as usize).min(table.left(16))) };
    // All parts together are no longer than the file, so that none is read for many ranks.
    let mut left = file.len();
    for rank in 0..ranks {
        let entry = ByteRange::new(table.at..table.at + 16);
        let (begin, end) = (table.u64()?, table.u64()?);
        let inside = |at: u64| usize::try_from(at).ok()?.checked_add(layout.base()).filter(|&at| at <= file.len());
        let part = inside(begin).zip(inside(end)).filter(|(begin, end)| begin <= end && end - begin <= left);
        let Some((begin, end)) = part else {
            let problem = format!("rank {rank} has the bytes {begin} to {end} of {}", file.len() - layout.base());
            return Err(Error::bytes(entry, problem, "expected a part of the file that no other rank has"));
        };
        left -= end - begin;
        goal.ranks.push(part_of(&mut NumberReader { file, at: begin, end }, rank, ranks)?);
    }
    Ok(goal)
}

/// The rank number and the processor tag that match any: -1 as 32 bits.
const ANY: u32 = u32::MAX;

/// Operations that wait for operation `on`, in the lists of its rank.
struct List {
    on: u32,
    /// They wait for its start.
    begun: bool,
    from: u32,
    count: u32,
}

/// An operation as it is written.
struct Entry {
    kind: u8,
    other: u32,
    size: u64,
    tag: u32,
    at: ByteRange,
}

fn part_of(reader: &mut NumberReader<'_>, rank: u32, ranks: u32) -> Result<Rank, Error> {
    let top = reader.at;
    let (count, roots) = (reader.u32()?, reader.u32()?);
    let check_count = |count: u32, bytes: usize, items: &str, reader: &NumberReader<'_>| {
        if count as usize <= reader.left(bytes) {
            return Ok(());
        }
        let problem = format!("rank {rank} has {count} {items}, more than its part holds");
        Err(Error::bytes(ByteRange::new(top..reader.at), problem, format!("expected at most {}", reader.left(bytes))))
    };
    check_count(roots, 4, "operations that wait for nothing", reader)?;
    reader.at += 4 * roots as usize;
    check_count(count, ENTRY, "operations", reader)?;
    let mut schedule = Rank { ops: Vec::with_capacity(count as usize), edges: Vec::new() };
    let mut lists: Vec<List> = Vec::new();
    let mut stated = Vec::with_capacity(count as usize);
    for op in 0..count {
        let at = ByteRange::new(reader.at..reader.at + ENTRY);
        stated.push(reader.u32()?);
        let entry = Entry { kind: reader.u8()?, other: reader.u32()?, size: reader.u64()?, tag: reader.u32()?, at };
        let (cpu, _nic) = (reader.u8()?, reader.u8()?);
        for begun in [false, true] {
            let (count, from) = (reader.u32()?, reader.u32()?);
            if count > 0 {
                lists.push(List { on: op, begun, from, count });
            }
        }
        schedule.ops.push(Op { kind: entry.kind_at(rank, ranks)?, cpu: cpu.into(), at });
    }
    let waits = reader.at;
    let mut left = reader.left(4);
    for List { on, begun, from, count } in lists {
        let at = schedule.ops[on as usize].at;
        let end = (from as usize).checked_add(count as usize).filter(|end| *end <= reader.left(4));
        if end.is_none() || count as usize > left {
            let problem =
                format!("{count} operations wait for operation {on} of rank {rank}, more than its part lists");
            return Err(Error::bytes(at, problem, format!("expected lists of {} in all", reader.left(4))));
        }
        left -= count as usize;
        let mut list = NumberReader { file: reader.file, at: waits + 4 * from as usize, end: reader.end };
        for _ in 0..count {
            let span = ByteRange::new(list.at..list.at + 4);
            let op = list.u32()?;
            let Some(stated) = stated.get_mut(op as usize) else {
                let problem = format!("rank {rank} has no operation {op}");
                return Err(Error::bytes(span, problem, format!("expected a number under {}", schedule.ops.len())));
            };
            *stated = stated.wrapping_sub(1);
            schedule.edges.push(OpDependency { op, on, begun });
        }
    }
    if let Some(op) = stated.iter().position(|&left| left != 0) {
        let problem = format!("operation {op} of rank {rank} waits for another number of operations than are listed");
        return Err(Error::bytes(schedule.ops[op].at, problem, "expected the same number"));
    }
    schedule.edges.sort_unstable();
    schedule.edges.dedup();
    Ok(schedule)
}

impl Entry {
    /// Returns the operation, one of `rank` in a schedule of `ranks`.
    fn kind_at(self, rank: u32, ranks: u32) -> Result<OpKind, Error> {
        let Self { kind, other, size, tag, at } = self;
        if kind == 3 {
            return Ok(OpKind::Calc { ns: size });
        }
        if !matches!(kind, 1 | 2) {
            return Err(Error::bytes(at, format!("operations of type {kind} are unknown"), "expected 1, 2 or 3"));
        }
        let other = if other == ANY { Other::Any } else { Other::Rank(other) };
        let other = peer(other, rank, ranks).map_err(|problem| Error::bytes(at, problem, other_rank(ranks)))?;
        if size == 0 {
            return Err(Error::bytes(at, "a message of no bytes", "expected a size over 0"));
        }
        if kind == 1 {
            return Ok(OpKind::Send { bytes: size, to: other, tag });
        }
        if tag == ANY {
            let problem = "a receive of any tag cannot be read: which send it takes is known only at run time";
            return Err(Error::bytes(at, problem, "expected the tag of a send"));
        }
        Ok(OpKind::Recv { bytes: size, from: other, tag })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::index::index32;

    /// Writes a schedule in binary form, as those programs do.
    pub(crate) fn written(goal: &Goal, layout: Layout) -> Vec<u8> {
        let ranks = goal.ranks.len();
        let mut file = Vec::new();
        if layout.cookie {
            file.extend(COOKIE.to_le_bytes());
        }
        file.extend(index32(ranks).to_le_bytes());
        if layout.maxima {
            file.extend([0, 0]);
        }
        let table = file.len();
        file.resize(table + 16 * ranks, 0);
        for (number, rank) in goal.ranks.iter().enumerate() {
            let begin = file.len() - layout.base();
            let waits = |op: u32| index32(rank.edges.iter().filter(|edge| edge.op == op).count());
            let roots: Vec<u32> = (0..index32(rank.ops.len())).filter(|&op| waits(op) == 0).collect();
            file.extend(index32(rank.ops.len()).to_le_bytes());
            file.extend(index32(roots.len()).to_le_bytes());
            file.extend(roots.iter().flat_map(|root| root.to_le_bytes()));
            let mut lists: Vec<u32> = Vec::new();
            for (op, operation) in (0u32..).zip(&rank.ops) {
                let (kind, other, size, tag) = match operation.kind {
                    OpKind::Send { bytes, to, tag } => (1u8, to, bytes, tag),
                    OpKind::Recv { bytes, from, tag } => (2, from, bytes, tag),
                    OpKind::Calc { ns } => (3, 0, ns, 0),
                };
                file.extend(waits(op).to_le_bytes());
                file.push(kind);
                file.extend(other.to_le_bytes());
                file.extend(size.to_le_bytes());
                file.extend(tag.to_le_bytes());
                file.extend([u8::try_from(operation.cpu).unwrap(), 0]);
                for begun in [false, true] {
                    let dependents: Vec<u32> = rank
                        .edges
                        .iter()
                        .filter(|edge| (edge.on, edge.begun) == (op, begun))
                        .map(|edge| edge.op)
                        .collect();
                    file.extend(index32(dependents.len()).to_le_bytes());
                    file.extend(index32(lists.len()).to_le_bytes());
                    lists.extend(dependents);
                }
            }
            file.extend(lists.iter().flat_map(|op| op.to_le_bytes()));
            let end = file.len() - layout.base();
            file[table + 16 * number..][..8].copy_from_slice(&(begin as u64).to_le_bytes());
            file[table + 16 * number + 8..][..8].copy_from_slice(&(end as u64).to_le_bytes());
        }
        file
    }

    #[test]
    fn counts_are_checked_against_the_file() {
        let calc = Op { kind: OpKind::Calc { ns: 1 }, cpu: 0, at: ByteRange::default() };
        let rank = Rank { ops: vec![calc; 2], edges: vec![OpDependency { op: 1, on: 0, begun: false }] };
        let goal = Goal { ranks: vec![rank.clone(), rank] };
        let valid = written(&goal, LAYOUTS[0]);
        assert!(is_binary(&valid) && read(&valid).is_ok());
        let part = 8 + 6 + 32;
        let wrong = |at: usize, value: &[u8]| {
            let mut bytes = valid.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            read(&bytes).unwrap_err().byte_range()
        };
        let huge = u32::MAX.to_le_bytes();
        // More operations than its part holds.
        for count in [part, part + 4] {
            assert_eq!(wrong(count, &huge).start, part);
        }
        // The place of the first rank's part, then its end.
        assert_eq!(wrong(14, &huge), 0..0);
        assert_eq!(wrong(22, &huge), 14..30);
        let first_op = part + 12;
        let [first, second] = [first_op, first_op + ENTRY].map(|op| op..op + ENTRY);
        // An unknown type, more that wait than its part lists, and another number of operations to wait for.
        assert_eq!(wrong(first_op + 4, &[9]), first);
        assert_eq!(wrong(first_op + 23, &huge), first);
        assert_eq!(wrong(first_op + ENTRY, &[7]), second);
        assert!(read(&valid[..valid.len() - 1]).is_err());
        assert_eq!(read(b"\xff\xfe nothing").unwrap_err().byte_range(), 0..0);
    }
}
