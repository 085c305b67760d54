//! Flows as plain CSV: `start,src,dst,bytes`. Units are in the values or in the header: `start_s`, `size_KB`.

use crate::graph::Quoted;
use crate::table::{CsvTable, Heading, with_unit};
use crate::{ByteRange, Error};

/// A flow, with values as written in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotedFlow {
    /// Start time, with the unit.
    pub start: Quoted,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Amount, with the unit.
    pub bytes: Quoted,
    /// Position in the file.
    pub at: ByteRange,
}

/// Reads flows.
///
/// # Errors
/// If a column is missing or unknown, or a cell is empty.
pub fn read(text: &str) -> Result<Vec<QuotedFlow>, Error> {
    const EXPECTED: &str = "expected start,src,dst,bytes; a unit may follow the name, as in start_s and size_KB";
    let mut table = CsvTable::new(text)?;
    let header = |problem: String| Error::text(table.header_at, problem, EXPECTED);
    let [mut start, mut from, mut to, mut bytes] = [const { None }; 4];
    for (column, heading) in table.header().iter().enumerate() {
        let Heading { name, unit } = Heading::of(heading, &["B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"]);
        let target = match name.as_str() {
            "start" | "time" => &mut start,
            "from" | "source" | "src" => &mut from,
            "to" | "target" | "destination" | "dst" => &mut to,
            "bytes" | "size" => &mut bytes,
            _ => return Err(header(format!("unknown column `{heading}`"))),
        };
        if target.replace((column, unit)).is_some() {
            return Err(header(format!("`{heading}` has the meaning of another column")));
        }
    }
    let (Some(start), Some((from, _)), Some((to, _)), Some(bytes)) = (start, from, to, bytes) else {
        return Err(header("this is not the header of a list of flows".into()));
    };
    let mut flows = Vec::new();
    while let Some(row) = table.next()? {
        let cell = |column: usize, quantity: &str| match row.cell(column) {
            "" => Err(Error::text(row.at, format!("this flow has no {quantity}"), "expected a value in every column")),
            cell => Ok(cell.to_owned()),
        };
        let quoted = |column: usize, unit: &str, quantity: &str| {
            cell(column, quantity).map(|text| Quoted { text: with_unit(&text, unit), at: row.at })
        };
        flows.push(QuotedFlow {
            start: quoted(start.0, &start.1, "start")?,
            from: cell(from, "sender")?,
            to: cell(to, "receiver")?,
            // A size without a unit is in bytes.
            bytes: quoted(bytes.0, if matches!(bytes.1.as_str(), "" | "bytes") { "B" } else { &bytes.1 }, "size")?,
            at: row.at,
        });
    }
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_in_other_csv_dialects_are_read() {
        let text = "time_s;source;destination;size_KB\n0.5;\"a;b\";c;3\n1e-3;c;x;2MB\n";
        let flows = read(text).unwrap();
        let shown: Vec<_> =
            flows.iter().map(|flow| [&flow.start.text, &flow.from, &flow.to, &flow.bytes.text]).collect();
        assert_eq!(shown, [["0.5s", "a;b", "c", "3KB"], ["1e-3s", "c", "x", "2MB"]]);
        assert_eq!(&text[flows[1].at.range()], "1e-3;c;x;2MB");
        for (heading, cell, text) in [
            ("bytes", "100", "100B"),
            ("bytes", "1.5e3", "1.5e3B"),
            ("size", "100.0", "100.0B"),
            ("size_bytes", "7", "7B"),
            ("size_mb", "7", "7MB"),
            ("size_Mb", "7", "7Mb"),
            ("size_KiB", "7", "7KiB"),
        ] {
            let flows = read(&format!("start,from,to,{heading}\n1us,0,1,{cell}\n")).unwrap();
            assert_eq!(flows[0].bytes.text, text, "{heading}");
        }
    }

    #[test]
    fn errors_have_lines() {
        for (text, location, name) in [
            ("", "1:1", ""),
            ("start,from,to\n", "1:1", ""),
            ("start,src,dst,bytes,cost\n", "1:1", "`cost`"),
            ("start,time,to,bytes\n", "1:1", "`time`"),
            ("start,src,dst,bytes\n0s,a,,5\n", "2:1", ""),
            ("start,src,dst,bytes\n0s,a,b,1,000\n", "2:1", "5 fields"),
            ("start,src,dst,bytes\n0s,a\n", "2:1", ""),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line_and_column(text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
