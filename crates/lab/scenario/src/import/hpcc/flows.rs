//! The simulator's flows: how many, then a flow a line.

use units::Span;

use super::topology::Topology;
use super::{HpccTokens, Number};
use crate::error::{SourceSpan, SpannedError};
use crate::import::flow_size;
use crate::index::index32;
use crate::quantity::Decimal;

/// A flow as the file has it.
pub(super) struct HpccFlow {
    pub(super) src: u32,
    pub(super) dst: u32,
    /// Its priority group.
    pub(super) group: u32,
    pub(super) bytes: u64,
    pub(super) start: Span,
}

/// The six words of a line.
type Line<'a> = [(&'a str, SourceSpan); 6];

pub(super) fn read(
    text: &str,
    source: u32,
    topology: &Topology,
    payload: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<HpccFlow>, SpannedError> {
    let mut tokens = HpccTokens::new(text, source);
    let count: u32 = tokens.at_most(50_000_000, "the number of flows")?;
    let nodes = index32(topology.switch.len());
    let mut lines: Vec<(u32, u32, Line<'_>)> = Vec::new();
    for _ in 0..count {
        let (src, dst) = (tokens.node(nodes)?, tokens.node(nodes)?);
        for end in [src, dst] {
            if topology.switch[end.0 as usize] {
                return Err(SpannedError::new(end.1, format!("node {} is a switch", end.0)).label("expected a host"));
            }
        }
        if src.0 == dst.0 {
            return Err(SpannedError::new(dst.1, "sender and receiver of this flow are the same host")
                .label("expected another host"));
        }
        let mut line = [("", src.1); 6];
        for (index, expected) in (2..6).zip(["a priority group", "a port", "a size", "a start in seconds"]) {
            line[index] = tokens.needed(expected)?;
        }
        lines.push((src.0, dst.0, line));
    }
    if lines.is_empty() {
        return Err(SpannedError::new(SourceSpan::new(source, 0..0), "the file has zero flows"));
    }
    // The older simulator's lines: group, packets, start, stop. Ports are small and whole, starts have a point.
    let older = lines.iter().any(|(_, _, line)| {
        line[4].0.contains('.') || line[3].0.parse::<u64>().is_ok_and(|number| number > u64::from(u16::MAX))
    });
    let [size_at, start_at] = if older { [3, 4] } else { [4, 5] };
    if older {
        notes.push(format!(
            "lines are of the older form: priority group, packets of {payload} B, start, stop; stops are left out"
        ));
    } else {
        notes.push("flows' ports are left out: paths are chosen by another hash than the simulator's".into());
    }
    let mut flows = Vec::with_capacity(lines.len());
    let mut early = 0u64;
    for (src, dst, line) in lines {
        let group = parsed::<u32>(line[2].0, line[2].1, "a priority group")?;
        let size = parsed::<u64>(line[size_at].0, line[size_at].1, "a size")?;
        let bytes = size.saturating_mul(if older { payload.into() } else { 1 });
        let bytes = flow_size(bytes, payload, line[size_at].1)?;
        let exact = parsed::<Decimal>(line[start_at].0, line[start_at].1, "a start in seconds")?;
        if exact.of(1) > 1_000_000 {
            return Err(SpannedError::new(line[start_at].1, "a start beyond 10^6 s").label("too late"));
        }
        let start = as_read(parsed(line[start_at].0, line[start_at].1, "a start in seconds")?);
        early += u64::from(Decimal::new(start.unsigned_ps(), 12) != exact);
        flows.push(HpccFlow { src, dst, group, bytes, start });
    }
    if early > 0 {
        notes.push(format!(
            "{early} of {} flows start up to a nanosecond earlier than in the file, as in HPCC's simulator: starts are truncated to whole \
             nanoseconds, after a double is truncated to 64 binary places",
            flows.len()
        ));
    }
    Ok(flows)
}

/// A time in seconds, at most 10^6, as the simulator has it: the part after the point in 64 binary places, as far as a
/// double has them, and then whole nanoseconds, both cut off.
fn as_read(seconds: f64) -> Span {
    let whole = seconds.floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 1, in units of 2^-64")]
    let part = ((seconds - whole) * 2f64.powi(64)) as u64;
    let ns = i64::try_from((u128::from(part) * 1_000_000_000) >> 64).unwrap_or(i64::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "at most 10^6 s")]
    let whole = whole as i64;
    Span::from_ns(whole * 1_000_000_000 + ns)
}

fn parsed<T: Number>(token: &str, origin: SourceSpan, expected: &str) -> Result<T, SpannedError> {
    super::parsed(token, origin, || {
        SpannedError::new(origin, format!("expected {expected}, found `{token}`")).label(format!("expected {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_are_read_as_written() {
        let starts = [0.0, 0.0002, 0.5, 2.0, 2.000_000_001, 2.5, 0.000_000_1];
        assert_eq!(
            starts.map(|start| as_read(start).ns()),
            [0, 199_999, 500_000_000, 2_000_000_000, 2_000_000_001, 2_500_000_000, 99]
        );
    }
}
