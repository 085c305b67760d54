//! The tables of a run: one row a flow, one a sample of a port's queue, one a sample of a flow.

mod flows;
mod ports;
mod rates;

use std::path::{Path, PathBuf};

pub use flows::{FlowRow, FlowTable};
pub use ports::{Port, PortRow, PortTable};
pub use rates::{RateRow, RateTable};

use crate::Error;
use crate::frame::{Column, Frame, Texts};

/// Takes columns out of a frame by name and says what is wrong with them.
struct Taker<'a> {
    frame: Frame,
    path: &'a Path,
}

impl Taker<'_> {
    fn wrong(&self, column: &str, reason: impl Into<String>) -> Error {
        Error::Column { path: PathBuf::from(self.path), column: column.to_owned(), reason: reason.into() }
    }

    fn take(&mut self, name: &str) -> Result<Column, Error> {
        match self.frame.columns.iter().position(|(column, _)| column == name) {
            Some(place) => Ok(self.frame.columns.remove(place).1),
            None => Err(self.wrong(name, "is missing")),
        }
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
