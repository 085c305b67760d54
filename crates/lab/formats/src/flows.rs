//! Flows as plain CSV: `start,src,dst,bytes`. Units are in the values or in the header: `start_s`, `size_KB`.

use crate::Error;
use crate::graph::Quoted;
use crate::table::{CsvTable, Heading, with_unit};

/// A flow, with values as written in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotedFlow {
    /// Start time, with the unit.
    pub start: Quoted,
    /// Sender.
    pub from: Quoted,
    /// Receiver.
    pub to: Quoted,
    /// Amount, with the unit.
    pub bytes: Quoted,
}

/// Names of the columns, as written in the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowColumns {
    /// Start times.
    pub start: String,
    /// Senders.
    pub from: String,
    /// Receivers.
    pub to: String,
    /// Amounts.
    pub bytes: String,
}

/// The flows of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowList {
    /// The file's columns.
    pub columns: FlowColumns,
    /// Flows in the order of the file.
    pub flows: Vec<QuotedFlow>,
}

/// A column and the unit in its heading.
struct UnitColumn {
    index: usize,
    unit: String,
}

/// Reads flows.
///
/// # Errors
/// If a column is missing or unknown, or a cell is empty.
pub fn read(text: &str) -> Result<FlowList, Error> {
    const EXPECTED: &str = "expected start,src,dst,bytes; a unit may follow the name, as in start_s and size_KB";
    let mut table = CsvTable::new(text)?;
    let header = table.header();
    let [mut start, mut from, mut to, mut bytes] = [const { None }; 4];
    for (index, heading) in table.columns().enumerate() {
        let Heading { name, unit } = Heading::of(heading, &["B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"]);
        let target = match name.as_str() {
            "start" | "time" => &mut start,
            "from" | "source" | "src" => &mut from,
            "to" | "target" | "destination" | "dst" => &mut to,
            "bytes" | "size" => &mut bytes,
            _ => return Err(Error::text(header.cell_at(index), format!("unknown column `{heading}`"), EXPECTED)),
        };
        if target.replace(UnitColumn { index, unit }).is_some() {
            let problem = format!("column `{heading}` has the meaning of another column");
            return Err(Error::text(header.cell_at(index), problem, EXPECTED));
        }
    }
    let missing = [(&start, "start"), (&from, "src"), (&to, "dst"), (&bytes, "bytes")];
    let missing = missing.into_iter().find_map(|(found, name)| found.is_none().then_some(name)).unwrap_or_default();
    let (Some(start), Some(from), Some(to), Some(bytes)) = (start, from, to, bytes) else {
        return Err(Error::text(header.at, format!("column `{missing}` is missing"), EXPECTED));
    };
    let name = |column: &UnitColumn| header.cell(column.index).to_owned();
    let columns = FlowColumns { start: name(&start), from: name(&from), to: name(&to), bytes: name(&bytes) };
    let mut flows = Vec::new();
    while let Some(row) = table.next()? {
        let quoted = |column: &UnitColumn, unit: &str, quantity: &str| match row.cell(column.index) {
            "" => {
                let problem = format!("this flow has no {quantity}");
                Err(table.cell_error(&row, column.index, &problem, "expected a value in every column"))
            }
            cell => Ok(Quoted { text: with_unit(cell, unit), at: row.cell_at(column.index) }),
        };
        flows.push(QuotedFlow {
            start: quoted(&start, &start.unit, "start")?,
            from: quoted(&from, "", "sender")?,
            to: quoted(&to, "", "receiver")?,
            // A size without a unit is in bytes.
            bytes: quoted(&bytes, if matches!(bytes.unit.as_str(), "" | "bytes") { "B" } else { &bytes.unit }, "size")?,
        });
    }
    Ok(FlowList { columns, flows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_in_other_csv_dialects_are_read() {
        let text = "time_s;source;destination;size_KB\n0.5;\"a;b\";c;3\n1e-3;c;x;2MB\n";
        let FlowList { columns, flows } = read(text).unwrap();
        let cells = |flow: &QuotedFlow| [&flow.start, &flow.from, &flow.to, &flow.bytes].map(Quoted::clone);
        let shown: Vec<_> = flows.iter().map(|flow| cells(flow).map(|cell| cell.text)).collect();
        assert_eq!(shown, [["0.5s", "a;b", "c", "3KB"], ["1e-3s", "c", "x", "2MB"]]);
        assert_eq!(cells(&flows[0]).map(|cell| &text[cell.at.range()]), ["0.5", "\"a;b\"", "c", "3"]);
        let FlowColumns { start, from, to, bytes } = columns;
        assert_eq!([start, from, to, bytes], ["time_s", "source", "destination", "size_KB"]);
        for (heading, cell, text) in [
            ("bytes", "100", "100B"),
            ("bytes", "1.5e3", "1.5e3B"),
            ("size", "100.0", "100.0B"),
            ("size_bytes", "7", "7B"),
            ("size_mb", "7", "7MB"),
            ("size_Mb", "7", "7Mb"),
            ("size_KiB", "7", "7KiB"),
        ] {
            let FlowList { flows, .. } = read(&format!("start,from,to,{heading}\n1us,0,1,{cell}\n")).unwrap();
            assert_eq!(flows[0].bytes.text, text, "{heading}");
        }
    }

    #[test]
    fn errors_have_lines_and_columns() {
        for (text, location, problem) in [
            ("", "1:1", "the table is empty"),
            ("start,from,to\n", "1:1", "column `bytes` is missing"),
            ("start,src,dst,bytes,cost\n", "1:21", "unknown column `cost`"),
            ("start,time,to,bytes\n", "1:7", "column `time` has"),
            ("start,src,dst,bytes\n ,a,b,5\n", "2:2", "column `start`: this flow has no start"),
            ("start,src,dst,bytes\n0s,,b,5\n", "2:4", "column `src`: this flow has no sender"),
            ("start,source,to,size_KB\n0s,a, ,5\n", "2:7", "column `to`: this flow has no receiver"),
            ("start,src,dst,size_KB\n0s,a,b,\n", "2:8", "column `size_KB`: this flow has no size"),
            ("start,src,dst,bytes\n0s,a,b,1,000\n", "2:10", "column 5: this row has 5 fields"),
            ("start,src,dst,bytes\n0s,a,b,1\n0s,a\n", "3:5", "column `dst`: this flow has no receiver"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line_and_column(text), location, "{error}");
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
