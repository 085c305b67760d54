//! MSCCL algorithms in XML, as GOAL schedules. Cowan et al., "MSCCLang", ASPLOS 2023.
//!
//! A GPU is a rank. The steps of a thread block run in order, and after the step of another block that they name
//! (`depid`, `deps`). A receive step ends when its data has arrived. A send step lets the next one run once it has
//! begun: a block's messages are queued to its peer. Copies and reductions take no time. Messages of one channel
//! between two GPUs match in order.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use crate::goal::{Goal, Op, OpDependency, OpKind, Rank};
use crate::index::index32;
use crate::lines::Lines;
use crate::{ByteRange, Error};

/// Reads an algorithm that works on `size` bytes: its `nchunksperloop` chunks, one loop. As in the runtime
/// (`count * sizeMultiplier / nChunksPerLoop`), that is the larger buffer of a rank: the output of an all-gather, the
/// input of a reduce-scatter, either one of an all-to-all.
///
/// # Errors
/// If the text is not such an algorithm, a step needs a peer that its block lacks, or names a missing step.
pub fn read(text: &str, size: u64) -> Result<Goal, Error> {
    let document = Document::parse(text).map_err(|error| {
        let pos = error.pos();
        let at = Lines::new(text).from(pos.row.saturating_sub(1) as usize, pos.col.saturating_sub(1) as usize);
        Error::text(at, format!("this is not XML: {error}"), "expected <algo>")
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "algo" {
        return Err(Error::text(byte_range(root), "this is no algorithm of MSCCL", "expected <algo>"));
    }
    let chunks: u64 = number(root, "nchunksperloop", "a number of chunks over 0", |&chunks| chunks > 0)?;
    let chunk = size.div_ceil(chunks);
    let gpus: Vec<_> = root.children().filter(|child| child.has_tag_name("gpu")).collect();
    let mut by_id: BTreeMap<u32, Node<'_, '_>> = BTreeMap::new();
    for gpu in &gpus {
        let expected = format!("a number under {}", gpus.len());
        let id: u32 = number(*gpu, "id", &expected, |&id| (id as usize) < gpus.len())?;
        if by_id.insert(id, *gpu).is_some() {
            return Err(Error::text(byte_range(*gpu), format!("two GPUs have the id {id}"), "expected another id"));
        }
    }
    if root.has_attribute("ngpus") {
        number(root, "ngpus", &format!("{}, the number of <gpu>", gpus.len()), |&count: &usize| count == gpus.len())?;
    }
    let ranks = by_id.iter().map(|(&id, &gpu)| rank(gpu, id, index32(gpus.len()), chunk));
    Ok(Goal { ranks: ranks.collect::<Result<_, _>>()? })
}

/// First and last operation of a step.
type StepOps = (u32, u32);

fn rank(gpu: Node<'_, '_>, id: u32, gpus: u32, chunk: u64) -> Result<Rank, Error> {
    let mut schedule = Rank::default();
    // By block and step.
    let mut steps: BTreeMap<(u32, u32), StepOps> = BTreeMap::new();
    // First operations that wait for a step of another block, and the places of these references in the file.
    let mut waits: Vec<(u32, (u32, u32), ByteRange)> = Vec::new();
    for block in gpu.children().filter(|child| child.has_tag_name("tb")) {
        let number_of_block: u32 = number(block, "id", "the block's number", |_| true)?;
        let channel: u32 = number(block, "chan", "a channel", |_| true)?;
        let peer = |attribute: &str, at: ByteRange| {
            let peer = block.attribute(attribute).unwrap_or("-1");
            let found = peer.parse().ok().filter(|&peer: &u32| peer < gpus && peer != id);
            let problem = || format!("block {number_of_block} of GPU {id} has {attribute}=\"{peer}\"");
            found.ok_or_else(|| Error::text(at, problem(), format!("expected another GPU, 0 to {}", gpus - 1)))
        };
        let mut before: Option<StepOps> = None;
        for (step_index, step) in (0u32..).zip(block.children().filter(|child| child.has_tag_name("step"))) {
            let at = byte_range(step);
            number(step, "s", &format!("{step_index}, for steps are in order"), |&s: &u32| s == step_index)?;
            let count: u64 =
                if step.has_attribute("cnt") { number(step, "cnt", "a number of chunks", |_| true)? } else { 1 };
            let bytes = count.checked_mul(chunk).filter(|&bytes| bytes > 0 && i64::try_from(bytes).is_ok());
            let message =
                || bytes.ok_or_else(|| Error::text(at, format!("a message of {count} chunks"), "expected 1 or more"));
            let kind = step.attribute("type").unwrap_or_default();
            let (receives, sends) = match kind {
                "s" => (false, true),
                "r" | "rrc" => (true, false),
                "rcs" | "rrs" | "rrcs" => (true, true),
                "cpy" | "re" | "nop" => (false, false),
                _ => {
                    let problem = format!("steps of type `{kind}` are unknown");
                    return Err(Error::text(at, problem, "expected s, r, rcs, rrs, rrc, rrcs, cpy, re or nop"));
                }
            };
            let first = index32(schedule.ops.len());
            if receives {
                let kind = OpKind::Recv { bytes: message()?, from: peer("recv", at)?, tag: channel };
                schedule.ops.push(Op { kind, cpu: number_of_block, at });
            }
            if sends {
                if receives {
                    schedule.edges.push(OpDependency { op: first + 1, on: first, begun: false });
                }
                let kind = OpKind::Send { bytes: message()?, to: peer("send", at)?, tag: channel };
                schedule.ops.push(Op { kind, cpu: number_of_block, at });
            }
            if !receives && !sends {
                schedule.ops.push(Op { kind: OpKind::Calc { ns: 0 }, cpu: number_of_block, at });
            }
            let ends = (first, index32(schedule.ops.len()) - 1);
            if let Some((_, last)) = before.replace(ends) {
                schedule.edges.push(after(first, last, &schedule));
            }
            if steps.insert((number_of_block, step_index), ends).is_some() {
                return Err(Error::text(
                    at,
                    format!("two blocks have the id {number_of_block}"),
                    "expected another id",
                ));
            }
            if step.attribute("depid").is_some_and(|depid| depid.trim() != "-1") {
                let on = (number(step, "depid", "a block", |_| true)?, number(step, "deps", "a step", |_| true)?);
                waits.push((first, on, at));
            }
        }
    }
    for (op, (block, step), at) in waits {
        let Some(&(_, last)) = steps.get(&(block, step)) else {
            let problem = format!("GPU {id} has no step {step} of block {block}");
            return Err(Error::text(at, problem, "expected depid and deps of a step of this GPU"));
        };
        schedule.edges.push(after(op, last, &schedule));
    }
    schedule.edges.sort_unstable();
    schedule.edges.dedup();
    Ok(schedule)
}

/// Returns the dependency of an operation on a step's last one.
fn after(op: u32, last: u32, rank: &Rank) -> OpDependency {
    OpDependency { op, on: last, begun: matches!(rank.ops[last as usize].kind, OpKind::Send { .. }) }
}

fn byte_range(element: Node<'_, '_>) -> ByteRange {
    ByteRange::new(element.range())
}

/// Reads an integer attribute of an element.
fn number<T: std::str::FromStr>(
    element: Node<'_, '_>,
    name: &str,
    expected: &str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<T, Error> {
    let text = element.attribute(name).unwrap_or_default();
    let number = text.trim().parse().ok().filter(is_valid);
    let problem = || format!("<{}> has {name}=\"{text}\"", element.tag_name().name());
    number.ok_or_else(|| Error::text(byte_range(element), problem(), format!("expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: &str = r#"<algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0"><step s="0" type="nop" depid="0" deps="1" hasdep="0"/></tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>"#;

    #[test]
    fn an_algorithm_is_a_schedule() {
        let goal = read(RING, 1_001).unwrap();
        let [first, second] = goal.ranks.as_slice() else { panic!() };
        let (bytes, tag) = (501, 0);
        let [send, recv] = [OpKind::Send { bytes, to: 1, tag }, OpKind::Recv { bytes, from: 1, tag }];
        let kinds: Vec<OpKind> = first.ops.iter().map(|op| op.kind).collect();
        assert_eq!(kinds, [send, recv, send, recv, OpKind::Calc { ns: 0 }]);
        let edge = |op, on, begun| OpDependency { op, on, begun };
        assert_eq!(
            first.edges,
            [edge(1, 0, true), edge(2, 1, false), edge(3, 2, true), edge(3, 4, false), edge(4, 2, true)]
        );
        assert_eq!(second.ops.len(), 4);
    }

    #[test]
    fn errors_have_byte_ranges() {
        for (from, to, location, name) in [
            ("</algo>", "", "1:1", ""),
            ("algo", "alga", "17:1", ""),
            ("nchunksperloop=\"2\"", "nchunksperloop=\"0\"", "1:1", "nchunksperloop=\"0\""),
            ("ngpus=\"2\"", "ngpus=\"3\"", "1:1", "ngpus=\"3\""),
            ("<gpu id=\"1\"", "<gpu id=\"0\"", "10:3", ""),
            ("send=\"1\" recv", "send=\"-1\" recv", "4:7", "send=\"-1\""),
            ("send=\"1\" recv", "send=\"0\" recv", "4:7", ""),
            ("type=\"rrcs\"", "type=\"x\"", "5:7", "`x`"),
            ("depid=\"1\" deps=\"0\"", "depid=\"1\" deps=\"9\"", "6:7", ""),
            ("step s=\"1\"", "step s=\"7\"", "5:7", ""),
            ("tb id=\"1\"", "tb id=\"0\"", "8:45", ""),
            ("cnt=\"1\"", "cnt=\"0\"", "4:7", ""),
        ] {
            let text = RING.replacen(from, to, 1);
            let error = read(&text, 100).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(read("<a/>", 1).unwrap_err().line_and_column("<a/>"), "1:1");
    }
}
