//! Tables as data: shown in a terminal, or written as CSV (`--csv`).

use results::PointValue;
use serde::Serialize;

use crate::args::CsvArgs;
use crate::exit::{CommandFailure, print};

/// A table of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// Name for `--csv=NAME`. Tables of one name have the same kind of rows, and are written as one.
    pub(crate) name: &'static str,
    /// Heading above it; may be empty.
    pub(crate) title: String,
    /// Heading of the rows' names.
    pub(crate) first: &'static str,
    /// Headings of the other columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<SheetRow>,
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct SheetRow {
    /// Its name, as shown.
    pub(crate) name: String,
    /// Columns of CSV in addition to the name, by their headings: the point, the seed.
    pub(crate) keys: Vec<(String, Datum)>,
    pub(crate) cells: Vec<SheetCell>,
}

/// A cell: as shown, and as values in base units. A value's heading in CSV is that of the column and the value's own word, the
/// unit or a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct SheetCell {
    pub(crate) shown: String,
    values: Vec<(String, Datum)>,
}

/// A value in CSV.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Datum {
    Absent,
    Whole(u64),
    Real(f64),
    Text(String),
}

impl std::fmt::Display for Datum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Whole(number) => number.fmt(f),
            // A time that is `never` is infinite.
            Self::Real(number) if number.is_infinite() => f.write_str(if *number > 0.0 { "inf" } else { "-inf" }),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<Option<f64>> for Datum {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Absent, Self::Real)
    }
}

impl Datum {
    /// A value of a point as tables of results have it.
    pub(crate) fn of_point(value: &PointValue) -> Self {
        match value {
            PointValue::Text(text) => Self::Text(text.clone()),
            PointValue::Whole(number) => number.map_or(Self::Absent, |it| Self::Text(it.to_string())),
            PointValue::Real(number) => (*number).into(),
        }
    }

    /// A value of a point.
    pub(crate) fn of_json(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Absent,
            serde_json::Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => Self::Whole(whole),
                (None, Some(real)) => Self::Real(real),
                (None, None) => Self::Text(number.to_string()),
            },
            serde_json::Value::String(text) => Self::Text(text.clone()),
            other => Self::Text(other.to_string()),
        }
    }
}

impl SheetCell {
    /// A cell with one value and its unit; none for a plain number or a text.
    pub(crate) fn new(shown: impl Into<String>, unit: &str, value: impl Into<Datum>) -> Self {
        Self { shown: shown.into(), values: vec![(unit.to_owned(), value.into())] }
    }

    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let shown = text.into();
        let value = Datum::Text(shown.clone());
        Self { shown, values: vec![(String::new(), value)] }
    }

    /// A number of things.
    pub(crate) fn count(count: u64) -> Self {
        Self::new(count.to_string(), "", Datum::Whole(count))
    }

    /// The same with one more value.
    pub(crate) fn with(mut self, word: &str, value: impl Into<Datum>) -> Self {
        self.values.push((word.to_owned(), value.into()));
        self
    }
}

impl Sheet {
    /// Makes a table of JSON records, with the columns `keys`. Arrays and objects are not meant as columns.
    pub(crate) fn of_records(name: &'static str, keys: &[&'static str], records: &[serde_json::Value]) -> Self {
        let datum = |record: &serde_json::Value, key: &str| record.get(key).map_or(Datum::Absent, Datum::of_json);
        let row = |record: &serde_json::Value| SheetRow {
            name: keys.first().map_or_else(String::new, |key| datum(record, key).to_string()),
            keys: Vec::new(),
            cells: keys.iter().skip(1).map(|key| SheetCell::new("", "", datum(record, key))).collect(),
        };
        // A value that a record does not have is null there.
        debug_assert!(
            records.iter().all(|record| keys.iter().all(|key| record.get(key).is_some())),
            "{name}: a record lacks one of {keys:?}"
        );
        Self {
            name,
            title: String::new(),
            first: keys.first().copied().unwrap_or_default(),
            columns: keys.iter().skip(1).map(|&key| key.to_owned()).collect(),
            rows: records.iter().map(row).collect(),
        }
    }
}

/// Writes the only table of a command as CSV. The records have these columns.
pub(crate) fn print_records(
    csv: &CsvArgs,
    name: &'static str,
    keys: &[&'static str],
    records: &[impl Serialize],
) -> Result<(), CommandFailure> {
    let records: Vec<_> = records.iter().map(|record| serde_json::json!(record)).collect();
    print_csv(&[Sheet::of_records(name, keys, &records)], csv.table())
}

/// Writes one of the tables as CSV: the named one, or the first.
pub(crate) fn print_csv(sheets: &[Sheet], name: Option<&str>) -> Result<(), CommandFailure> {
    let mut names: Vec<&str> = Vec::new();
    for sheet in sheets {
        if !names.contains(&sheet.name) {
            names.push(sheet.name);
        }
    }
    let chosen = name.or(names.first().copied()).unwrap_or_default();
    if !names.contains(&chosen) {
        return Err(no_table(chosen, &names));
    }
    let sheets: Vec<&Sheet> = sheets.iter().filter(|sheet| sheet.name == chosen).collect();
    print(as_csv(&sheets)?.trim_end())
}

/// Refuses a table name that the command never has. Called before the command does anything.
pub(crate) fn check_csv(csv: &CsvArgs, tables: &[&str]) -> Result<(), CommandFailure> {
    match csv.table() {
        Some(name) if !tables.contains(&name) => Err(no_table(name, tables)),
        Some(_) | None => Ok(()),
    }
}

/// The error of a name that no table has.
fn no_table(name: &str, known: &[&str]) -> CommandFailure {
    CommandFailure::unknown(&format!("--csv: there is no table `{name}` here"), name, known)
}

/// Tables of one kind as CSV, one below the other, with all columns of all of them. A title is a
/// column where tables have several.
fn as_csv(sheets: &[&Sheet]) -> Result<String, CommandFailure> {
    let titled = sheets.iter().any(|sheet| sheet.title != sheets[0].title);
    let mut heads: Vec<String> = Vec::new();
    let mut lines: Vec<Vec<(usize, String)>> = Vec::new();
    // A second column of one name in a row is called after its number: NAME_2.
    let mut column_index = |head: String, line: &[(usize, String)]| {
        let mut number = 1;
        loop {
            let name = if number == 1 { head.clone() } else { format!("{head}_{number}") };
            let column_index = heads.iter().position(|known| *known == name).unwrap_or_else(|| {
                heads.push(name);
                heads.len() - 1
            });
            if line.iter().all(|(taken, _)| *taken != column_index) {
                return column_index;
            }
            number += 1;
        }
    };
    for sheet in sheets {
        if sheets.iter().all(|sheet| sheet.rows.is_empty()) {
            let columns = std::iter::once(sheet.first).chain(sheet.columns.iter().map(String::as_str));
            let mut line: Vec<(usize, String)> = Vec::new();
            for column in columns {
                line.push((column_index(column.replace(' ', "_"), &line), String::new()));
            }
        }
        for row in &sheet.rows {
            let mut line: Vec<(usize, String)> = Vec::new();
            let mut put = |head: String, value: String| {
                let column_index = column_index(head, &line);
                line.push((column_index, value));
            };
            if titled {
                put("table".to_owned(), sheet.title.clone());
            }
            let first = if sheet.first.is_empty() { "name".to_owned() } else { sheet.first.replace(' ', "_") };
            put(first, row.name.clone());
            for (key, value) in &row.keys {
                put(key.clone(), value.to_string());
            }
            for (column, cell) in sheet.columns.iter().zip(&row.cells) {
                for (word, value) in &cell.values {
                    put(head(column, word), value.to_string());
                }
            }
            lines.push(line);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |record: Vec<String>| writer.write_record(record).map_err(anyhow::Error::from);
    let width = heads.len();
    write(heads)?;
    for line in lines {
        let mut fields = vec![String::new(); width];
        for (column_index, value) in line {
            fields[column_index] = value;
        }
        write(fields)?;
    }
    let bytes = writer.into_inner().map_err(anyhow::Error::from)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The heading of a value in CSV.
fn head(column: &str, word: &str) -> String {
    let column = column.replace(' ', "_");
    match (column.is_empty(), word.is_empty()) {
        (_, true) => column,
        (true, false) => word.to_owned(),
        (false, false) => format!("{column}_{word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(sheets: &[&Sheet]) -> String {
        as_csv(sheets).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn values_are_in_base_units_under_headings_with_them() {
        let time = SheetCell::new("20.28 ms", "ns", Some(20_280_000.0)).with("of_few", Datum::Text("true".into()));
        let none = SheetCell::new("-", "ns", None);
        let row = |name: &str, seed, cell| SheetRow {
            name: name.into(),
            keys: vec![("seed".into(), Datum::Whole(seed))],
            cells: vec![SheetCell::count(3), cell],
        };
        let sheet = |title: &str, rows| Sheet {
            name: "runs",
            title: title.into(),
            first: "run",
            columns: vec!["drops".into(), "FCT p99".into()],
            rows,
        };
        let one = sheet("", vec![row("a,load=0.4", 1, time), row("a \"b\"", 2, none)]);
        let expected =
            "run,seed,drops,FCT_p99_ns,FCT_p99_of_few\n\"a,load=0.4\",1,3,20280000,true\n\"a \"\"b\"\"\",2,3,,\n";
        assert_eq!(csv(&[&one]), expected);
        let other = Sheet {
            columns: vec!["drops".into(), "marks".into()],
            ..sheet("T", vec![row("c", 3, SheetCell::count(9))])
        };
        let twice = SheetRow {
            cells: vec![SheetCell::count(1), SheetCell::count(2), SheetCell::count(3)],
            ..row("x", 1, SheetCell::count(0))
        };
        let columns = ["p99", "p99", "run"].map(str::to_owned).into();
        let twice = Sheet { columns, ..sheet("", vec![twice]) };
        assert_eq!(csv(&[&twice]), "run,seed,p99,p99_2,run_2\nx,1,1,2,3\n");
        let both = csv(&[&one, &other]);
        assert!(both.starts_with("table,run,seed,drops,FCT_p99_ns,FCT_p99_of_few,marks\n"), "{both}");
        assert!(both.ends_with("T,c,3,3,,,9\n"), "{both}");
    }
}
