//! The tables of a run: one row a flow, one a sample of a port's queue, of a flow, of a
//! switch's buffer, one a pause of a port.

mod flow_samples;
mod flows;
mod pauses;
mod ports;
mod switches;

use std::path::{Path, PathBuf};

pub use flow_samples::{RateRow, RateTable};
pub use flows::{FlowRow, FlowTable};
pub use pauses::{PauseRow, PauseTable};
pub use ports::{PortRow, PortTable, SampledPort};
pub use switches::{SwitchRow, SwitchTable};

use crate::Error;
use crate::frame::{Column, DataFrame, Texts};

/// Returns whether a column of this name exists in a table of a run, or in the table of summaries in addition to its
/// points.
pub fn is_column(name: &str) -> bool {
    let tables = [
        FlowTable::default().frame(),
        PauseTable::default().frame(),
        PortTable::default().frame(),
        RateTable::default().frame(),
        SwitchTable::default().frame(),
    ];
    ["run", "label", "end_ns"].contains(&name)
        || name.starts_with("trace_")
        || tables.iter().any(|table| table.columns.iter().any(|(column, _)| column == name))
}

/// Takes columns out of a frame by name and reports errors in them.
struct Taker<'a> {
    frame: DataFrame,
    path: &'a Path,
}

impl<'a> Taker<'a> {
    /// A table from a file, without the columns of a grid's point, which precede the table's own columns.
    fn open(name: &'static str, first: &str, bytes: Vec<u8>, path: &'a Path) -> Result<Self, Error> {
        let mut frame = crate::parquet::read(name, bytes, path)?;
        let own = frame.columns.iter().position(|(column, _)| column == first).unwrap_or_default();
        frame.columns.drain(..own);
        Ok(Self { frame, path })
    }

    fn wrong(&self, column: &str, reason: impl Into<String>) -> Error {
        Error::Column { path: PathBuf::from(self.path), column: column.to_owned(), reason: reason.into() }
    }

    fn take(&mut self, name: &str) -> Result<Column, Error> {
        match self.frame.columns.iter().position(|(column, _)| column == name) {
            Some(index) => Ok(self.frame.columns.remove(index).1),
            None => Err(self.wrong(name, "is missing")),
        }
    }

    /// Returns whether the column exists: older results lack columns that were added later.
    fn has(&self, name: &str) -> bool {
        self.frame.columns.iter().any(|(column, _)| column == name)
    }

    /// Whole numbers that are not negative.
    fn naturals(&mut self, name: &str) -> Result<Vec<u64>, Error> {
        let Column::Int(values) = self.take(name)? else { return Err(self.wrong(name, "is not of type INT64")) };
        let one = |(row, &value): (usize, &i64)| {
            u64::try_from(value).map_err(|_| self.wrong(name, format!("row {row}: {value} is below zero")))
        };
        values.iter().enumerate().map(one).collect()
    }

    /// Whole numbers under 2^32.
    fn numbers(&mut self, name: &str) -> Result<Vec<u32>, Error> {
        let values = self.naturals(name)?;
        let one = |(row, &value): (usize, &u64)| {
            u32::try_from(value).map_err(|_| self.wrong(name, format!("row {row}: {value} is too large")))
        };
        values.iter().enumerate().map(one).collect()
    }

    fn opt_naturals(&mut self, name: &str) -> Result<Vec<Option<u64>>, Error> {
        let Column::OptInt(values) = self.take(name)? else {
            return Err(self.wrong(name, "is not of type optional INT64"));
        };
        let one = |(row, &value): (usize, &Option<i64>)| match value {
            None => Ok(None),
            Some(value) => match u64::try_from(value) {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(self.wrong(name, format!("row {row}: {value} is below zero"))),
            },
        };
        values.iter().enumerate().map(one).collect()
    }

    /// Nanoseconds as picoseconds.
    fn opt_ps(&mut self, name: &str) -> Result<Vec<Option<u64>>, Error> {
        let values = match self.take(name)? {
            Column::OptReal(values) => values,
            Column::Real(values) => values.into_iter().map(Some).collect(),
            _ => return Err(self.wrong(name, "is not of type DOUBLE")),
        };
        let one = |(row, value): (usize, Option<f64>)| match value {
            None => Ok(None),
            Some(ns) if (0.0..1e16).contains(&ns) => Ok(Some((ns * 1_000.0).round() as u64)),
            Some(ns) => Err(self.wrong(name, format!("row {row}: {ns} is not a time in nanoseconds"))),
        };
        values.into_iter().enumerate().map(one).collect()
    }

    fn texts(&mut self, name: &str) -> Result<Texts, Error> {
        match self.take(name)? {
            Column::Text(texts) => Ok(texts),
            _ => Err(self.wrong(name, "is not of type text")),
        }
    }

    fn flags(&mut self, name: &str) -> Result<Vec<bool>, Error> {
        match self.take(name)? {
            Column::Flag(flags) => Ok(flags),
            _ => Err(self.wrong(name, "is not of type BOOLEAN")),
        }
    }
}

/// Counts and bytes stay far below 2^63.
fn ints(values: impl Iterator<Item = u64>) -> Column {
    Column::Int(values.map(|value| value as i64).collect())
}

fn opt_ints(values: impl Iterator<Item = Option<u64>>) -> Column {
    Column::OptInt(values.map(|value| value.map(|value| value as i64)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    const BOOK: &str = include_str!("../../../../../docs/src/reference/results.md");

    /// The columns that the book lists for a file, with their types.
    fn documented(file: &str) -> Vec<(String, String)> {
        let (_, section) = BOOK.split_once(&format!("\n## `{file}`\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let mut columns = Vec::new();
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            columns.extend(cells[1].split(", ").map(|name| (name.trim_matches('`').to_owned(), cells[2].to_owned())));
        }
        columns
    }

    fn type_of(column: &Column) -> &'static str {
        match column {
            Column::Int(_) => "INT64",
            Column::OptInt(_) => "INT64, optional",
            Column::Real(_) => "DOUBLE",
            Column::OptReal(_) => "DOUBLE, optional",
            Column::Flag(_) => "BOOLEAN",
            Column::Text(_) => "text",
        }
    }

    /// All files of a grid begin with the same columns, and are read as without them.
    #[test]
    fn grid_tables_start_with_point_columns() {
        use crate::input::{PointColumn, PointValue};
        let mut run = testbed::results();
        let column = |name: &str, value| PointColumn { name: name.into(), value };
        run.manifest.columns = vec![
            column("scheme", PointValue::Text("uno".into())),
            column("load", PointValue::Real(Some(0.4))),
            column("variant", PointValue::Text(String::new())),
            column("delay_ns", PointValue::Real(None)),
            column("seed", PointValue::Whole(Some(7))),
        ];
        run.manifest.traces = vec!["of_another_law_ns".into()];
        let scratch = testbed::TestbedDir::new("placed");
        let place = scratch.path().join("run");
        testbed::write_run(&place, &run);
        let read =
            |file: &str, name| crate::parquet::read(name, std::fs::read(place.join(file)).unwrap(), &place).unwrap();
        for (file, name) in [(crate::store::FLOWS, "flows"), (crate::store::RATES, "rates")] {
            let frame = read(file, name);
            let first: Vec<&str> = frame.columns[..6].iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(first[..5], ["scheme", "load", "variant", "delay_ns", "seed"]);
            assert_eq!(frame.columns[1].1, Column::OptReal(vec![Some(0.4); frame.rows()]));
            assert_eq!(frame.columns[4].1, Column::OptInt(vec![Some(7); frame.rows()]));
        }
        let rates = read(crate::store::RATES, "rates");
        let of_another = rates.columns.iter().find(|(name, _)| name == "trace_of_another_law_ns");
        assert_eq!(of_another.unwrap().1, Column::OptInt(vec![None; rates.rows()]));
        let back = crate::store::load(&place).unwrap();
        assert_eq!((&back.flows, &back.rates), (&run.flows, &run.rates));
    }

    #[test]
    fn names_of_columns_are_known() {
        for name in ["size_bytes", "flow", "time_ns", "trace_alpha", "run", "end_ns"] {
            assert!(is_column(name), "{name}");
        }
        assert!(!is_column("load") && !is_column("scheme"));
    }

    #[test]
    fn the_book_lists_every_column_with_its_type() {
        let run = testbed::results();
        for (file, frame) in [
            (crate::store::FLOWS, run.flows.frame()),
            (crate::store::PORTS, run.ports.frame()),
            (crate::store::RATES, run.rates.frame()),
            (crate::store::SWITCHES, run.switches.frame()),
            (crate::store::PAUSES, run.pauses.frame()),
        ] {
            let mut columns: Vec<(String, String)> = Vec::new();
            for (name, column) in &frame.columns {
                let name = if name.starts_with("trace_") { "trace_NAME" } else { name };
                let entry = (name.to_owned(), type_of(column).to_owned());
                if !columns.contains(&entry) {
                    columns.push(entry);
                }
            }
            assert_eq!(columns, documented(file), "{file}");
        }
    }

    #[test]
    fn ports_from_before_rates_were_written_are_read() {
        let table = testbed::results().ports;
        assert!(table.ports.iter().all(|port| port.rate_bps == Some(10_000_000_000)));
        let (mut frame, mut bytes) = (table.frame(), Vec::new());
        frame.columns.retain(|(name, _)| name != "rate_bps");
        crate::parquet::write(&frame, &mut bytes).unwrap();
        let old = PortTable::read(bytes, Path::new("port_samples.parquet")).unwrap();
        assert_eq!(old.rows, table.rows);
        assert!(old.ports.iter().all(|port| port.rate_bps.is_none()));
    }

    /// Rows as pandas or another reader would spoil them, then read.
    #[test]
    fn a_wrong_column_is_named() {
        let table = testbed::results().flows;
        let error_after = |modify: &dyn Fn(&mut DataFrame)| {
            let (mut frame, mut bytes) = (table.frame(), Vec::new());
            modify(&mut frame);
            crate::parquet::write(&frame, &mut bytes).unwrap();
            FlowTable::read(bytes, Path::new("flows.parquet")).map(|_| ()).unwrap_err().to_string()
        };
        let column =
            |frame: &DataFrame, name: &str| frame.columns.iter().position(|(column, _)| column == name).unwrap();
        let message = error_after(&|frame| {
            frame.columns.remove(column(frame, "fct_ns"));
        });
        assert_eq!(message, "`flows.parquet`, column `fct_ns`: is missing");
        let message = error_after(&|frame| {
            let index = column(frame, "packets");
            frame.columns[index].1 = Column::Int(vec![-3; frame.rows()]);
        });
        assert_eq!(message, "`flows.parquet`, column `packets`: row 0: -3 is below zero");
        let message = error_after(&|frame| {
            let index = column(frame, "class");
            frame.columns[index].1 = Column::Text((0..frame.rows()).map(|_| "local").collect());
        });
        assert_eq!(message, "`flows.parquet`, column `class`: row 0: `local` is neither intra nor inter");
        let message = error_after(&|frame| {
            let index = column(frame, "ideal_ns");
            frame.columns[index].1 = Column::Real(vec![f64::NAN; frame.rows()]);
        });
        assert_eq!(message, "`flows.parquet`, column `ideal_ns`: row 0: NaN is not a time in nanoseconds");
        let message = error_after(&|frame| {
            let index = column(frame, "src");
            frame.columns[index].1 = Column::Real(vec![1.0; frame.rows()]);
        });
        assert_eq!(message, "`flows.parquet`, column `src`: is not of type INT64");
        let message = error_after(&|frame| {
            let index = column(frame, "start_ns");
            frame.columns[index].1 = Column::OptReal(vec![None; frame.rows()]);
        });
        assert!(message.contains("`fct_ns`"), "{message}");
    }
}
