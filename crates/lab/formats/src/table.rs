//! CSV with a header: one row per line, cells by column name.

use csv::{Position, ReaderBuilder, StringRecord, Trim};

use crate::{ByteRange, Error};

/// A table's rows.
pub(crate) struct CsvTable<'a> {
    text: &'a str,
    shift: usize,
    delimiter: u8,
    header: CsvRow,
    reader: csv::Reader<&'a [u8]>,
}

/// A row and its position in the file.
pub(crate) struct CsvRow {
    cells: Vec<CsvCell>,
    pub(crate) at: ByteRange,
}

/// A cell and its position in the file.
struct CsvCell {
    text: String,
    at: ByteRange,
}

impl CsvRow {
    /// Returns a cell; empty if the row is shorter.
    pub(crate) fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", |cell| cell.text.as_str())
    }

    /// Returns the position of a cell; the end of the row if it is shorter.
    pub(crate) fn cell_at(&self, column: usize) -> ByteRange {
        let end = self.at.range().end;
        self.cells.get(column).map_or(ByteRange::new(end..end), |cell| cell.at)
    }
}

impl<'a> CsvTable<'a> {
    /// Reads the header. Cells are separated by commas, or by semicolons or tabs where the header has no comma.
    pub(crate) fn new(text: &'a str) -> Result<Self, Error> {
        let body = text.trim_start_matches('\u{feff}');
        let first = body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
        let comma = [b',', b';', b'\t'].into_iter().find(|&comma| first.contains(char::from(comma))).unwrap_or(b',');
        let reader = ReaderBuilder::new()
            .delimiter(comma)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .flexible(true)
            .has_headers(false)
            .from_reader(body.as_bytes());
        let header = CsvRow { cells: Vec::new(), at: ByteRange::default() };
        let mut table = Self { text, shift: text.len() - body.len(), delimiter: comma, header, reader };
        let Some(mut header) = table.record()? else {
            return Err(Error::text(ByteRange::new(0..0), "the table is empty", "expected a header"));
        };
        for cell in &mut header.cells {
            cell.text = cell.text.trim_start_matches('#').trim().to_owned();
        }
        table.header = header;
        Ok(table)
    }

    /// Returns the header. Its cells are the columns' names, as written.
    pub(crate) fn header(&self) -> &CsvRow {
        &self.header
    }

    /// Returns the columns' names, as written.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.header.cells.iter().map(|cell| cell.text.as_str())
    }

    /// Returns the column with one of these names, in any case.
    pub(crate) fn column(&self, names: &[&str]) -> Option<usize> {
        self.columns().position(|heading| names.iter().any(|name| name.eq_ignore_ascii_case(heading)))
    }

    /// Returns the next row; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<CsvRow>, Error> {
        let Some(row) = self.record()? else { return Ok(None) };
        // A thousands separator makes a field more, and another number.
        let columns = self.header.cells.len();
        if let Some(extra) = (columns..row.cells.len()).find(|&column| !row.cell(column).is_empty()) {
            let what = format!("this row has {} fields", row.cells.len());
            return Err(self.cell_error(&row, extra, &what, &format!("expected {columns}, as in the header")));
        }
        Ok(Some(row))
    }

    /// Returns an error in a cell, with its column.
    pub(crate) fn cell_error(&self, row: &CsvRow, column: usize, problem: &str, expected: &str) -> Error {
        Error::text(
            row.cell_at(column),
            format!("{}: {problem}", column_name(self.header.cell(column), column)),
            expected,
        )
    }

    fn record(&mut self) -> Result<Option<CsvRow>, Error> {
        let mut record = StringRecord::new();
        if !self.reader.read_record(&mut record).map_err(|error| broken(&error))? {
            return Ok(None);
        }
        let at = line_of(self.text, self.shift, record.position());
        let places = cell_ranges(self.text, at.range().start, self.delimiter);
        let end = ByteRange::new(at.range().end..at.range().end);
        let places = places.into_iter().chain(std::iter::repeat(end));
        let cells = record.iter().zip(places).map(|(text, at)| CsvCell { text: text.to_owned(), at }).collect();
        Ok(Some(CsvRow { cells, at }))
    }
}

/// Returns a column's name for messages: its heading, or its number from 1.
fn column_name(heading: &str, column: usize) -> String {
    if heading.is_empty() { format!("column {}", column + 1) } else { format!("column `{heading}`") }
}

/// Returns the cells of the record that starts at `start`, without the blanks around them.
fn cell_ranges(text: &str, start: usize, delimiter: u8) -> Vec<ByteRange> {
    let bytes = text.as_bytes();
    let is_end = |at: usize| bytes.get(at).is_none_or(|&byte| matches!(byte, b'\n' | b'\r'));
    let mut ranges = Vec::new();
    let mut at = start;
    loop {
        let cell = at;
        // A quoted cell may contain delimiters and line ends; two quotation marks in it are one.
        if bytes.get(at) == Some(&b'"') {
            at += 1;
            while at < bytes.len() && (bytes[at] != b'"' || bytes.get(at + 1) == Some(&b'"')) {
                at += if bytes[at] == b'"' { 2 } else { 1 };
            }
        }
        while !is_end(at) && bytes[at] != delimiter {
            at += 1;
        }
        let written = &text[cell..at];
        let blanks = written.len() - written.trim_start().len();
        ranges.push(ByteRange::new(cell + blanks..cell + blanks + written.trim().len()));
        if is_end(at) {
            return ranges;
        }
        at += 1;
    }
}

/// A column's heading and the unit after its name.
pub(crate) struct Heading {
    /// Name in lower case.
    pub(crate) name: String,
    /// Unit, in the notation of quantities; empty if there is none.
    pub(crate) unit: String,
}

impl Heading {
    /// Splits headings such as `rate_Gbps`. Units of time are recognised in any case. Other units keep their case,
    /// because `MBps` is eight times `Mbps`; if all of the heading is in lower case, its unit is the one of `names`
    /// with the same letters.
    pub(crate) fn of(heading: &str, names: &[&str]) -> Self {
        let (name, unit) = heading.split_once('_').unwrap_or((heading, ""));
        let lower = unit.to_ascii_lowercase();
        let is_time = ["ps", "ns", "us", "ms", "s"].contains(&lower.as_str());
        let known = names.iter().find(|known| unit == lower && known.to_ascii_lowercase() == lower);
        let unit = if is_time { lower } else { known.map_or(unit, |known| *known).to_owned() };
        Self { name: name.to_ascii_lowercase(), unit }
    }
}

/// Returns a cell of a column, with the column's unit if it is a bare number.
pub(crate) fn with_unit(cell: &str, unit: &str) -> String {
    let bare = !cell.contains(char::is_alphabetic) || cell.parse::<f64>().is_ok();
    if bare { format!("{cell}{unit}") } else { cell.to_owned() }
}

fn broken(error: &csv::Error) -> Error {
    let at = error.position().map_or(0, byte_of);
    Error::text(ByteRange::new(at..at), format!("this is not CSV: {error}"), "expected cells with commas between them")
}

/// Returns the offset of a position in a text.
fn byte_of(position: &Position) -> usize {
    usize::try_from(position.byte()).unwrap_or(usize::MAX)
}

/// Returns the line of a record.
fn line_of(text: &str, shift: usize, position: Option<&Position>) -> ByteRange {
    let from = position.map_or(0, byte_of).saturating_add(shift).min(text.len());
    // Lines before a record, such as comments, count as part of it.
    let mut start = from;
    for line in text.get(from..).unwrap_or_default().split_inclusive('\n') {
        if !matches!(line, "\n" | "\r\n") && !line.starts_with('#') {
            return ByteRange::new(start..start + line.trim_end().len());
        }
        start += line.len();
    }
    ByteRange::new(from..from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_have_positions() {
        let text = "# links\n\na; b;\"c; d\"\n  \n1;\"two\n lines\"\"\"; 3 ;;\r\n5\n";
        let mut table = CsvTable::new(text).unwrap();
        let places = |row: &CsvRow| row.cells.iter().map(|cell| &text[cell.at.range()]).collect::<Vec<_>>();
        assert_eq!(places(table.header()), ["a", "b", "\"c; d\""]);
        assert_eq!(table.columns().collect::<Vec<_>>(), ["a", "b", "c; d"]);
        let blank = table.next().unwrap().unwrap();
        assert_eq!((places(&blank), blank.at.range().start), (vec![""], text.find("  \n").unwrap()));
        let row = table.next().unwrap().unwrap();
        assert_eq!(places(&row), ["1", "\"two\n lines\"\"\"", "3", "", ""]);
        assert_eq!(row.cell(1), "two\n lines\"");
        let short = table.next().unwrap().unwrap();
        assert_eq!((short.cell(2), short.cell_at(2).range()), ("", text.len() - 1..text.len() - 1));
        assert!(table.next().unwrap().is_none());
    }

    #[test]
    fn columns_without_a_heading_have_numbers() {
        assert_eq!(column_name("bytes", 3), "column `bytes`");
        assert_eq!(column_name("", 3), "column 4");
    }

    proptest! {
        /// The text at the position of a cell is that cell, quoted or not.
        #[test]
        fn positions_are_those_of_the_cells(
            rows in proptest::collection::vec(proptest::collection::vec("[ab ,;\"#\u{e9}\n]{0,6}", 2..5), 1..6),
        ) {
            let mut writer = csv::WriterBuilder::new().flexible(true).comment(Some(b'#')).from_writer(Vec::new());
            writer.write_record(["x,", "y", "", ""]).unwrap();
            for row in rows {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let mut table = CsvTable::new(&text).unwrap();
            while let Some(row) = table.next().unwrap() {
                for cell in &row.cells {
                    let written = &text[cell.at.range()];
                    let unquoted = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                    let read = unquoted.map_or(written.to_owned(), |inner| inner.replace("\"\"", "\""));
                    prop_assert_eq!(read.trim(), &cell.text);
                }
            }
        }
    }
}
