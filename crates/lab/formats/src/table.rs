//! CSV with a header: one row per line, cells by column name.

use csv::{Position, ReaderBuilder, StringRecord, Trim};

use crate::{ByteRange, Error};

/// A table's rows.
pub(crate) struct CsvTable<'a> {
    text: &'a str,
    shift: usize,
    header: Vec<String>,
    /// Position of the header.
    pub(crate) header_at: ByteRange,
    reader: csv::Reader<&'a [u8]>,
}

/// A row and its position in the file.
pub(crate) struct CsvRow {
    cells: StringRecord,
    pub(crate) at: ByteRange,
}

impl CsvRow {
    /// Returns a cell; empty if the row is shorter.
    pub(crate) fn cell(&self, column: usize) -> &str {
        self.cells.get(column).unwrap_or_default()
    }
}

impl<'a> CsvTable<'a> {
    /// Reads the header. Cells are separated by commas, or by semicolons or tabs where the header has no comma.
    pub(crate) fn new(text: &'a str) -> Result<Self, Error> {
        let body = text.trim_start_matches('\u{feff}');
        let first = body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
        let comma = [b',', b';', b'\t'].into_iter().find(|&comma| first.contains(char::from(comma))).unwrap_or(b',');
        let mut reader = ReaderBuilder::new()
            .delimiter(comma)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .flexible(true)
            .has_headers(false)
            .from_reader(body.as_bytes());
        let shift = text.len() - body.len();
        let mut record = StringRecord::new();
        let has_record = reader.read_record(&mut record).map_err(|error| broken(&error))?;
        if !has_record {
            return Err(Error::text(ByteRange::new(0..0), "the table is empty", "expected a header"));
        }
        let header_at = line_of(text, shift, record.position());
        let header = record.iter().map(|cell| cell.trim_start_matches('#').trim().to_owned()).collect();
        Ok(Self { text, shift, header, header_at, reader })
    }

    /// Returns the header's names, as written.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the column with one of these names, in any case.
    pub(crate) fn column(&self, names: &[&str]) -> Option<usize> {
        self.header.iter().position(|heading| names.iter().any(|name| name.eq_ignore_ascii_case(heading)))
    }

    /// Returns the next row; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<CsvRow>, Error> {
        let mut cells = StringRecord::new();
        let has_record = self.reader.read_record(&mut cells).map_err(|error| broken(&error))?;
        let at = line_of(self.text, self.shift, cells.position());
        // A thousands separator makes a field more, and another number.
        if cells.iter().skip(self.header.len()).any(|cell| !cell.is_empty()) {
            let what = format!("this row has {} fields", cells.len());
            return Err(Error::text(at, what, format!("expected {}, as in the header", self.header.len())));
        }
        Ok(has_record.then_some(CsvRow { cells, at }))
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
        if !line.trim().is_empty() && !line.starts_with('#') {
            return ByteRange::new(start..start + line.trim_end().len());
        }
        start += line.len();
    }
    ByteRange::new(from..from)
}
