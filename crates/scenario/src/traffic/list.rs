//! Flows one by one, from the scenario or from a CSV file.

use units::{Bytes, Span};

use super::{Draft, DraftStart, Ground, Made, later};
use crate::config::{Flow, List};
use crate::decode::{At, Field};
use crate::error::{Fault, Origin};
use crate::tree::{Node, Value};

pub(crate) fn make(it: &List, ground: &Ground<'_>) -> Result<Made, Fault> {
    let listed;
    let (flows, origin) = match (&it.flows, &it.file) {
        (Some(flows), None) => (&flows.value, flows.origin),
        (None, Some(file)) => {
            let (source, text) = ground.inputs.read(file)?;
            listed = read(&text, source)?;
            (&listed, file.origin)
        }
        (Some(_), Some(file)) => return Err(Fault::new(file.origin, "`file` and `flows` both list flows: give one")),
        (None, None) => {
            return Err(Fault::new(Origin::NOWHERE, "this list has neither `file` nor `flows`")
                .help("give file = \"flows.csv\" with the header start,src,dst,bytes"));
        }
    };
    if flows.is_empty() {
        return Err(Fault::new(origin, "this list has zero flows").label("zero flows"));
    }
    let draft = |(index, flow): (usize, &Flow)| {
        let (src, dst) = ground.two_hosts(&flow.src, &flow.dst)?;
        let start = match (flow.start, flow.after) {
            (Some(_), Some(after)) => {
                return Err(Fault::new(after.origin, "a flow has either `start` or `after`").label("and also `start`"));
            }
            (None, Some(after)) => DraftStart::After(earlier(after, index, flows)?),
            (start, None) => DraftStart::At(later(it.start, start.map_or(Span::ZERO, |start| start.value))),
        };
        Ok(Draft { src, dst, size: ground.size(flow.size)?, start })
    };
    let flows = flows.iter().enumerate().map(draft).collect::<Result<_, _>>()?;
    Ok(Made { flows, ..Made::default() })
}

/// The flow that another one waits for: it exists, and does not wait for that one in turn.
fn earlier(after: At<u32>, index: usize, flows: &[Flow]) -> Result<u32, Fault> {
    if *after as usize >= flows.len() {
        return Err(Fault::new(after.origin, format!("there is no flow {} in a list of {}", *after, flows.len()))
            .label(format!("expected 0 to {}", flows.len() - 1)));
    }
    // Flows that wait for earlier ones only cannot form a circle; only other chains are followed.
    let mut at = *after as usize;
    let mut steps = 0;
    while at >= index {
        if at == index || steps > flows.len() {
            return Err(Fault::new(after.origin, format!("flow {index} waits for itself")).label("a circle"));
        }
        steps += 1;
        match flows[at].after {
            Some(next) => at = (*next as usize).min(flows.len() - 1),
            None => break,
        }
    }
    Ok(*after)
}

const HEADER: &str = "start,src,dst,bytes";

/// Reads `start,src,dst,bytes[,after]`: a header, then a flow a line.
fn read(text: &str, source: u32) -> Result<Vec<Flow>, Fault> {
    let mut flows = Vec::new();
    let mut columns = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let origin = Origin::new(source, start..start + content.len());
        let line_start = start;
        start += line.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if columns == 0 {
            columns = match content.replace(' ', "").as_str() {
                HEADER => 4,
                "start,src,dst,bytes,after" => 5,
                _ => {
                    return Err(Fault::new(origin, "this is not the header of a list of flows")
                        .label(format!("expected {HEADER} or {HEADER},after")));
                }
            };
            continue;
        }
        let mut cells = Vec::with_capacity(5);
        let mut at = line_start;
        for cell in content.split(',') {
            let trimmed = cell.trim();
            let from = at + (cell.len() - cell.trim_start().len());
            cells.push((trimmed, Origin::new(source, from..from + trimmed.len())));
            at += cell.len() + 1;
        }
        if cells.len() != columns {
            return Err(Fault::new(origin, format!("{} columns where the header has {columns}", cells.len()))
                .label("expected one value a column"));
        }
        flows.push(Flow {
            start: optional(cells[0], |cell| Value::string(cell))?,
            src: required(cells[1], number)?,
            dst: required(cells[2], number)?,
            size: required::<At<Bytes>>(cells[3], number)?,
            after: cells.get(4).map_or(Ok(None), |&cell| optional(cell, number))?,
        });
    }
    if columns == 0 {
        return Err(Fault::new(Origin::new(source, 0..0), "an empty list of flows").label(format!("expected {HEADER}")));
    }
    Ok(flows)
}

/// A whole number if it is one, else text.
fn number(cell: &str) -> Value {
    cell.parse().map_or_else(|_| Value::string(cell), Value::Integer)
}

fn required<T: Field>(cell: (&str, Origin), value: impl Fn(&str) -> Value) -> Result<T, Fault> {
    T::decode(&Node { value: value(cell.0), origin: cell.1 })
}

fn optional<T: Field>(cell: (&str, Origin), value: impl Fn(&str) -> Value) -> Result<Option<T>, Fault> {
    if cell.0.is_empty() { Ok(None) } else { required(cell, value).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostRef;

    #[test]
    fn a_list_reads_times_hosts_and_triggers() {
        let flows = read("start,src,dst,bytes,after\n1.5us, 0, dc0.host3, 1MB,\n,1,2,1000,0\n", 0).unwrap();
        assert_eq!(flows.len(), 2);
        assert_eq!(flows[0].start.unwrap().value, Span::from_ns(1_500));
        assert_eq!(flows[0].dst.value, HostRef::Name("dc0.host3".into()));
        assert_eq!((flows[1].after.unwrap().value, flows[1].size.value), (0, Bytes::new(1_000)));
    }

    #[test]
    fn broken_lists_are_refused() {
        for text in [
            "",
            "a,b\n",
            "start,src,dst,bytes\n1,0,1,10\n",
            "start,src,dst,bytes\n1us,0,1\n",
            "start,src,dst,bytes\n1us,0,1,x\n",
        ] {
            assert!(read(text, 0).is_err(), "{text}");
        }
    }
}
