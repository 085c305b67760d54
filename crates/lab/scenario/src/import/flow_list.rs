//! Flows one by one as `[[traffic]]` with `kind = "list"`: inside the scenario, or in a CSV file next to it.

use std::fmt::Write;

use crate::config::{FlowEvents, HostRef};
use crate::decode::{Field, Located};
use crate::foreign::ForeignFlow;
use crate::quantity::write_span;
use crate::tree::{Node, Value};

/// Flows beyond this many go to a file of their own.
pub(super) const MAX_INLINE: usize = 1_000;

/// Returns the entry of `[[traffic]]`, and the file next to the scenario if the list is long: its name and its text.
pub(super) fn list(flows: &[ForeignFlow], scenario: &str) -> (Value, Option<(String, String)>) {
    let kind = ("kind", Value::string("list"));
    if flows.len() <= MAX_INLINE {
        let flows = flows.iter().map(|flow| Node::generated(inline(flow)));
        return (Value::table([kind, ("flows", Value::Array(flows.collect()))]), None);
    }
    let waits = flows.iter().any(|flow| !flow.after.is_empty());
    let mut text = String::from(if waits { "start,src,dst,bytes,after\n" } else { "start,src,dst,bytes\n" });
    for flow in flows {
        let start = flow.start.map_or(String::new(), write_span);
        let bytes = flow.bytes.map_or(String::new(), |bytes| bytes.to_string());
        let _ = write!(text, "{start},{},{},{bytes}", cell(&flow.src), cell(&flow.dst));
        for (index, event) in flow.after.iter().enumerate() {
            let _ = write!(text, "{}{event}", if index == 0 { ',' } else { ' ' });
        }
        text.push_str(if waits && flow.after.is_empty() { ",\n" } else { "\n" });
    }
    let file = format!("{scenario}.flows.csv");
    (Value::table([kind, ("file", Value::string(&file))]), Some((file, text)))
}

fn inline(flow: &ForeignFlow) -> Value {
    let after = || FlowEvents(flow.after.iter().map(|&event| Located::default_of(event)).collect()).encode();
    Value::table([
        ("start", flow.start.encode()),
        ("src", flow.src.encode()),
        ("dst", flow.dst.encode()),
        ("size", flow.bytes.map_or(Value::Absent, |bytes| Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)))),
        ("after", if flow.after.is_empty() { Value::Absent } else { after() }),
    ])
}

/// A host in a cell of a CSV file.
fn cell(host: &HostRef) -> String {
    match host {
        HostRef::Index(index) => index.to_string(),
        HostRef::Name(name) => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;
    use crate::config::FlowEvent;
    use crate::traffic::read_list;

    #[test]
    fn a_long_list_reads_back() {
        let flow = |number: u32| ForeignFlow {
            start: number.is_multiple_of(3).then(|| Span::from_ns(i64::from(number))),
            src: HostRef::Index(number % 7),
            dst: HostRef::Name(format!("a \"{}\", b", number % 5)),
            bytes: (number % 5 != 4).then_some(u64::from(number) + 1),
            after: (number.saturating_sub(number % 4)..number).map(FlowEvent::complete).collect(),
        };
        let flows: Vec<ForeignFlow> = (0..1_500).map(flow).collect();
        let (_, separate_file) = list(&flows, "x");
        let (name, text) = separate_file.unwrap();
        let read = read_list(&text, 0).unwrap();
        assert_eq!((name.as_str(), read.len()), ("x.flows.csv", 1_500));
        for (written, read) in flows.iter().zip(&read) {
            assert_eq!(
                (written.start, &written.src, &written.dst),
                (read.start.map(|at| at.value), &read.src.value, &read.dst.value)
            );
            let events: Vec<FlowEvent> =
                read.after.iter().flat_map(|after| &after.value.0).map(|at| at.value).collect();
            assert_eq!((written.bytes, &written.after), (read.size.map(|size| size.get()), &events));
        }
    }
}
