//! Flows one by one, from the scenario or from a CSV file.

use std::borrow::Cow;

use experiment::{Dependency, FlowId};
use files::BYTE_ORDER_MARK;
use units::{Bytes, Span, Time};

use super::{DraftFlow, DraftStart, TrafficContext, TrafficFlows, later};
use crate::config::{Flow, FlowEvent, FlowList, FlowState};
use crate::decode::{Field, Located};
use crate::dependency_cycle::find_dependency_cycle;
use crate::error::{SourceSpan, SpannedError};
use crate::kind::{FileHead, FileKind};
use crate::quantity::{SIZES, TIMES, Units};
use crate::tree::{Node, Value};

/// A list of flows in a file.
pub(crate) const FLOWS: FileKind = FileKind {
    name: "a list of flows",
    expected: "expected the header start,src,dst,bytes or start,src,dst,bytes,after,compute",
    matches: is_list,
};

fn is_list(file: &FileHead<'_>) -> bool {
    let known = ["start", "src", "dst", "bytes", "size", "after", "compute", "source", "destination"];
    let column = |heading: &str| {
        let heading = heading.trim().trim_matches('"').to_ascii_lowercase();
        known.iter().any(|known| heading.starts_with(known))
    };
    file.first().split([',', ';', '\t', ' ']).filter(|heading| column(heading)).count() >= 2
}

pub(crate) fn make(list: &FlowList, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let listed;
    let (flows, origin) = match (&list.flows, &list.file) {
        (Some(flows), None) => (&flows.value, flows.origin),
        (None, Some(file)) => {
            let (source, text) = context.inputs.read(file, FLOWS)?;
            listed = read(&text, source)?;
            (&listed, file.origin)
        }
        (Some(_), Some(file)) => {
            return Err(SpannedError::new(file.origin, "`file` and `flows` both list flows: give one"));
        }
        (None, None) => {
            return Err(SpannedError::new(SourceSpan::NOWHERE, "this list has neither `file` nor `flows`")
                .help("give file = \"flows.csv\" with the header start,src,dst,bytes"));
        }
    };
    let mut output = drafts(flows, origin, list.start, context)?;
    // As `narrows import` writes schedules of other programs.
    output.schedule = flows.iter().any(|flow| flow.after.is_some()).then_some(list.start);
    Ok(output)
}

/// Makes the flows of a list at `origin`, all of them later by `start`.
pub(super) fn drafts(
    flows: &[Flow],
    origin: SourceSpan,
    start: Span,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    if flows.is_empty() {
        return Err(SpannedError::new(origin, "this list has zero flows").label("zero flows"));
    }
    let waits_for = |index: usize| {
        let after = flows[index].after.iter().flat_map(|after| &after.0);
        after.map(|event| event.flow as usize).collect::<Vec<usize>>()
    };
    if let Some(cycle) = find_dependency_cycle(flows.len(), waits_for) {
        let origin = flows[cycle[0]].after.as_ref().map_or(origin, |after| after.origin);
        return Err(SpannedError::new(origin, cycle_message(&cycle)).label("a cycle"));
    }
    let mut output = TrafficFlows::default();
    let mut begun = Vec::new();
    for flow in flows {
        let (src, dst) = context.two_hosts(&flow.src, &flow.dst)?;
        let compute = flow.compute.unwrap_or(Span::ZERO);
        let earliest = flow.start.map(|at| later(start, at.value));
        let begin = match &flow.after {
            Some(after) => {
                let events = checked(&after.0, flows)?;
                let dependencies =
                    output.dependencies.add_each(events.iter().map(|event| (cause(event), event.compute)));
                output.dependencies.not_before(dependencies, Time::ZERO + earliest.unwrap_or(Span::ZERO));
                begun.extend(after.0.iter().filter(|event| event.state == FlowState::Begun).map(|event| (src, *event)));
                DraftStart::Waits { dependencies, after: compute }
            }
            None => DraftStart::At(later(earliest.unwrap_or(start), compute)),
        };
        let size = match flow.size {
            Some(size) => context.size(size)?,
            None => context.unlimited_size(src, dst, earliest.unwrap_or(start)),
        };
        output.flows.push(DraftFlow { src, dst, size, start: begin });
    }
    // Only its own sender knows that a flow has begun.
    for (src, event) in begun {
        if output.flows[event.flow as usize].src != src {
            let message = format!("flow {} has another sender, and only its own knows when it begins", event.flow);
            return Err(SpannedError::new(event.origin, message).label("expected a flow of the same sender"));
        }
    }
    Ok(output)
}

fn cause(event: &FlowEvent) -> Dependency {
    let flow = FlowId(event.flow);
    match event.state {
        FlowState::Complete => Dependency::Complete(flow),
        FlowState::Received => Dependency::Received(flow),
        FlowState::Begun => Dependency::Begun(flow),
    }
}

/// Returns the events for which a flow waits. Refuses events of missing flows, and events that occur twice.
fn checked(after: &[Located<FlowEvent>], flows: &[Flow]) -> Result<Vec<FlowEvent>, SpannedError> {
    for event in after {
        if event.flow as usize >= flows.len() {
            return Err(SpannedError::new(
                event.origin,
                format!("there is no flow {} in a list of {}", event.flow, flows.len()),
            )
            .label(format!("expected 0 to {}", flows.len() - 1)));
        }
        if event.state != FlowState::Begun && flows[event.flow as usize].size.is_none() {
            let message =
                format!("flow {} has no size: it lasts to the stop, and this flow would never start", event.flow);
            return Err(SpannedError::new(event.origin, message).label("expected a flow with a size"));
        }
    }
    let known: Vec<FlowEvent> = after.iter().map(|event| event.value).collect();
    let mut sorted: Vec<(u32, FlowState)> = known.iter().map(|event| (event.flow, event.state)).collect();
    sorted.sort_unstable();
    if let Some(duplicate) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let last = after.iter().rfind(|event| (event.flow, event.state) == duplicate[0]);
        let origin = last.map_or(SourceSpan::NOWHERE, |event| event.origin);
        return Err(
            SpannedError::new(origin, format!("flow {} is listed twice", duplicate[0].0)).label("once is enough")
        );
    }
    Ok(known)
}

/// Names the flows that wait for each other, at most the first eight.
fn cycle_message(cycle: &[usize]) -> String {
    let names: Vec<String> = cycle[1..].iter().take(7).map(usize::to_string).collect();
    let more = if cycle.len() > 8 { format!(" and {} more", cycle.len() - 8) } else { String::new() };
    match names.as_slice() {
        [] => format!("flow {} waits for itself", cycle[0]),
        names => format!("flow {} waits for itself, through {}{more}", cycle[0], names.join(", ")),
    }
}

const HEADER: &str = "start,src,dst,bytes";

/// Contents of a column of a list. A column of times or sizes with its unit in the header has bare numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListColumn {
    Start(Option<&'static str>),
    Src,
    Dst,
    Size(Option<&'static str>),
    After,
    Compute(Option<&'static str>),
}

impl ListColumn {
    /// The column of that heading: `start`, `start_us`, `bytes`, `size_bytes`, `size_KB`, ...
    fn named(heading: &str) -> Option<Self> {
        let unit = |units: Units, name: &str| units.iter().find(|(known, _)| *known == name).map(|(known, _)| *known);
        match heading {
            "start" => Some(Self::Start(None)),
            "src" => Some(Self::Src),
            "dst" => Some(Self::Dst),
            "bytes" | "size" => Some(Self::Size(None)),
            "size_bytes" => Some(Self::Size(Some("B"))),
            "after" => Some(Self::After),
            "compute" => Some(Self::Compute(None)),
            _ => match heading.split_once('_')? {
                ("start", name) => unit(TIMES, name).map(|unit| Self::Start(Some(unit))),
                ("compute", name) => unit(TIMES, name).map(|unit| Self::Compute(Some(unit))),
                ("size", name) => unit(SIZES, name).map(|unit| Self::Size(Some(unit))),
                _ => None,
            },
        }
    }

    /// Returns whether both columns have the same contents, whatever their units.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The columns that the header names, in any order. All but `after` and `compute` are needed.
fn columns(cells: &[(Cow<'_, str>, SourceSpan)], line: SourceSpan) -> Result<Vec<ListColumn>, SpannedError> {
    let mut columns: Vec<ListColumn> = Vec::with_capacity(cells.len());
    let help = "a unit may follow the name: start_us, start_s, size_bytes, size_KB";
    for (heading, origin) in cells {
        let refused = |message: &str| {
            SpannedError::new(*origin, message).label(format!("expected {HEADER} or {HEADER},after,compute"))
        };
        let column = ListColumn::named(heading)
            .ok_or_else(|| refused("this is not the header of a list of flows").help(help))?;
        if columns.iter().any(|known| known.is_like(column)) {
            return Err(refused("two columns have the same meaning"));
        }
        columns.push(column);
    }
    let needed = [ListColumn::Start(None), ListColumn::Src, ListColumn::Dst, ListColumn::Size(None)];
    if needed.iter().all(|needed| columns.iter().any(|column| column.is_like(*needed))) {
        return Ok(columns);
    }
    Err(SpannedError::new(line, "this is not the header of a list of flows")
        .label(format!("expected {HEADER} or {HEADER},after,compute"))
        .help(help))
}

/// Reads `start,src,dst,bytes[,after][,compute]`: a header, then a flow a line. Several events in a cell of `after` have
/// blanks between them.
pub(crate) fn read(text: &str, source: impl Into<Option<u32>>) -> Result<Vec<Flow>, SpannedError> {
    let source = source.into();
    let mut flows = Vec::new();
    let mut header: Option<Vec<ListColumn>> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let marked = line.len() - line.trim_start_matches(BYTE_ORDER_MARK).len();
        let (content, line_start) = (line[marked..].trim_end(), start + marked);
        let origin = SourceSpan::new(source, line_start..line_start + content.len());
        start += line.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let cells = cells(content, source, line_start)?;
        let Some(columns) = &header else {
            header = Some(columns(&cells, origin)?);
            continue;
        };
        if cells.len() != columns.len() {
            return Err(SpannedError::new(
                origin,
                format!("{} columns where the header has {}", cells.len(), columns.len()),
            )
            .label("expected one value a column"));
        }
        flows.push(flow(columns, &cells)?);
    }
    if header.is_none() {
        return Err(SpannedError::new(SourceSpan::new(source, 0..0), "an empty list of flows")
            .label(format!("expected {HEADER}")));
    }
    Ok(flows)
}

/// The cells of a line, without the blanks and quotes around them. Two quotes in a quoted cell are one.
fn cells(line: &str, source: Option<u32>, line_start: usize) -> Result<Vec<(Cow<'_, str>, SourceSpan)>, SpannedError> {
    let mut cells = Vec::with_capacity(5);
    let mut at = 0;
    loop {
        at += line[at..].len() - line[at..].trim_start().len();
        let rest = &line[at..];
        let span = |end: usize| SourceSpan::new(source, line_start + at..line_start + end);
        let (cell, end) = match rest.strip_prefix('"') {
            None => {
                let end = at + rest.find(',').unwrap_or(rest.len());
                (Cow::from(line[at..end].trim_end()), end)
            }
            Some(quoted) => {
                // A pair of quotes is skipped; a single quote closes the cell.
                let mut quotes = quoted.match_indices('"').map(|(offset, _)| offset).peekable();
                let mut closing = None;
                while let Some(offset) = quotes.next() {
                    if quotes.peek() != Some(&(offset + 1)) {
                        closing = Some(offset);
                        break;
                    }
                    quotes.next();
                }
                let Some(closing) = closing else {
                    return Err(
                        SpannedError::new(span(line.len()), "this quote is not closed").label("expected another `\"`")
                    );
                };
                let after = at + 1 + closing + 1;
                let end = after + line[after..].find(',').unwrap_or(line[after..].len());
                if !line[after..end].trim().is_empty() {
                    return Err(SpannedError::new(span(end), "a quoted cell goes on behind its quotes")
                        .label("expected `,` after the second quote"));
                }
                (Cow::from(quoted[..closing].trim().replace("\"\"", "\"")), end)
            }
        };
        let shown = if rest.starts_with('"') { end } else { at + cell.len() };
        cells.push((cell, span(shown)));
        if end == line.len() {
            return Ok(cells);
        }
        at = end + 1;
    }
}

/// Returns the flow of a line.
fn flow(columns: &[ListColumn], cells: &[(Cow<'_, str>, SourceSpan)]) -> Result<Flow, SpannedError> {
    let cell = |wanted: ListColumn| {
        let index = columns.iter().position(|column| column.is_like(wanted))?;
        Some((columns[index], Located { value: cells[index].0.as_ref(), origin: cells[index].1 }))
    };
    let needed =
        |wanted: ListColumn| cell(wanted).ok_or_else(|| SpannedError::new(SourceSpan::NOWHERE, "a column is missing"));
    let (column, text) = needed(ListColumn::Start(None))?;
    let start = time(column, text, "start")?;
    let compute = cell(ListColumn::Compute(None)).map_or(Ok(None), |(column, text)| time(column, text, "compute"))?;
    let size = match needed(ListColumn::Size(None))? {
        (ListColumn::Size(Some(unit)), text) => optional(text, |text| in_unit(text, unit))?,
        (_, text) => optional::<Located<Bytes>>(text, number)?,
    };
    Ok(Flow {
        start,
        src: required(needed(ListColumn::Src)?.1, number)?,
        dst: required(needed(ListColumn::Dst)?.1, number)?,
        size,
        after: cell(ListColumn::After).map_or(Ok(None), |(_, text)| optional(text, events))?,
        compute: compute.map(|compute| compute.value),
    })
}

/// The time in a cell of a column called `heading`, if there is one.
fn time(column: ListColumn, text: Located<&str>, heading: &str) -> Result<Option<Located<Span>>, SpannedError> {
    match column {
        ListColumn::Start(Some(unit)) | ListColumn::Compute(Some(unit)) => optional(text, |text| in_unit(text, unit)),
        _ => optional(text, |text| Value::string(text)).map_err(|error| match text.value.parse::<f64>() {
            Ok(_) => error.help(format!("give a unit, as in 100us, or name the column {heading}_us, {heading}_s, ...")),
            Err(_) => error,
        }),
    }
}

/// A bare number gets the header's unit. Any other cell, such as a number with its own unit, stays as it is, and is
/// read or refused as that.
fn in_unit(cell: &str, unit: &str) -> Value {
    let bare = !cell.contains(char::is_alphabetic) || cell.parse::<f64>().is_ok();
    Value::string(if bare { format!("{cell}{unit}") } else { cell.to_owned() })
}

/// A whole number if it is one, else text.
fn number(cell: &str) -> Value {
    cell.parse().map_or_else(|_| Value::string(cell), Value::Integer)
}

/// Numbers of flows and events, with blanks between them if there are several.
fn events(cell: &str) -> Value {
    let mut tokens = cell.split_whitespace();
    match (tokens.next(), tokens.next()) {
        (Some(_), Some(_)) => {
            Value::Array(cell.split_whitespace().map(|token| Node::generated(number(token))).collect())
        }
        _ => number(cell),
    }
}

fn required<T: Field>(cell: Located<&str>, value: impl Fn(&str) -> Value) -> Result<T, SpannedError> {
    T::decode(&Node { value: value(cell.value), origin: cell.origin })
}

fn optional<T: Field>(cell: Located<&str>, value: impl Fn(&str) -> Value) -> Result<Option<T>, SpannedError> {
    if cell.value.is_empty() { Ok(None) } else { required(cell, value).map(Some) }
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
        let after =
            |flow: &Flow| flow.after.clone().unwrap().value.0.iter().map(|event| event.flow).collect::<Vec<u32>>();
        assert_eq!((after(&flows[1]), flows[1].size.unwrap().value), (vec![0], Bytes::new(1_000)));
        let text =
            "start,src,dst,bytes,after,compute_us\n0s,0,1,10,,\n0s,0,1,10,,7\n,1,2,10, 0  1 ,2.5\n,1,2,10,2,3ms\n";
        let flows = read(text, 0).unwrap();
        assert_eq!((after(&flows[2]), after(&flows[3])), (vec![0, 1], vec![2]));
        let computes: Vec<Option<Span>> = flows.iter().map(|flow| flow.compute).collect();
        assert_eq!(computes, [None, Some(Span::from_us(7)), Some(Span::from_ns(2_500)), Some(Span::from_ms(3))]);
    }

    #[test]
    fn a_flow_without_a_size_has_an_empty_cell() {
        for text in ["start,src,dst,bytes\n0s,0,1,\n", "start,src,dst,size_KB,after\n0s,0,1, ,\n"] {
            assert_eq!(read(text, 0).unwrap()[0].size, None, "{text}");
        }
    }

    #[test]
    fn cycle_message_shows_the_first_flows() {
        let long: Vec<usize> = (0..12).collect();
        assert_eq!(cycle_message(&[4]), "flow 4 waits for itself");
        assert_eq!(cycle_message(&long[..3]), "flow 0 waits for itself, through 1, 2");
        assert!(cycle_message(&long).ends_with("1, 2, 3, 4, 5, 6, 7 and 4 more"));
    }

    #[test]
    fn lists_in_other_csv_dialects_are_read() {
        let plain = "start,src,dst,bytes,after\n1.5us,0,dc0.host3,1000,\n,1,2,2000,0\n";
        let same = [
            format!("\u{feff}{plain}"),
            plain.replace('\n', "\r\n"),
            "\"start\",\"src\",\"dst\",\"bytes\",\"after\"\n\"1.5us\", \"0\" ,\"dc0.host3\",\"1000\",\"\"\n\"\",1,2,2000,0\n".into(),
            "start_us,src,dst,size_bytes,after\n1.5,0,dc0.host3,1000,\n,1,2,2e3,0\n".into(),
            "start_s,src,dst,size_KB,after\n1.5e-6,0,dc0.host3,1,\n,1,2,2,0\n".into(),
            "after,size,dst,src,start_\u{3bc}s\n,1000,dc0.host3,0,1.5\n0,2KB,2,1,\n".into(),
            "start_ms,src,dst,bytes,after\n1500ns,0,dc0.host3,1000,\n,1,2,2000,0\n".into(),
        ];
        let expected = read(plain, 0).unwrap();
        for text in same {
            assert_eq!(read(&text, 0).unwrap_or_else(|error| panic!("{text}: {error:?}")), expected, "{text}");
        }
        let quoted = cells("\"a, \"\"b\"\"\" ,c", Some(0), 0).unwrap();
        assert_eq!((quoted[0].0.as_ref(), quoted[1].0.as_ref(), quoted.len()), ("a, \"b\"", "c", 2));
    }

    #[test]
    fn broken_lists_are_refused() {
        for text in [
            "",
            "a,b\n",
            "start,src,dst,bytes\n1,0,1,10\n",
            "start,src,dst,bytes\n1us,0,1\n",
            "start,src,dst,bytes\n1us,0,1,x\n",
            "start,src,dst,bytes\n\"1us,0,1,10\n",
            "start,src,dst,bytes\n\"1us\"x,0,1,10\n",
            "start_h,src,dst,bytes\n1,0,1,10\n",
            "start,src,dst,after\n1us,0,1,10\n",
            "start,start_us,src,dst,bytes\n1us,1,0,1,10\n",
            "start_us,src,dst,bytes\n0..1,0,1,10\n",
            "start,src,dst,bytes,after\n,0,1,10,1 x\n",
            "start,src,dst,bytes,compute\n0s,0,1,10,5\n",
        ] {
            assert!(read(text, 0).is_err(), "{text}");
        }
    }
}
