//! `pauses.parquet`: one row a time in which a sampled port was paused, in order of its beginning, then link.

use std::collections::BTreeMap;
use std::path::Path;

use experiment::{Outcome, Setup};

use super::{Taker, ints};
use crate::Error;
use crate::frame::{Column, DataFrame};

/// A time in which the other end of a port paused at least one of its classes (priority flow control).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseRow {
    /// Its beginning.
    pub start_ns: u64,
    /// Time at which all classes ran again, or the run ended.
    pub end_ns: u64,
    /// The port, an index into [`PauseTable::names`].
    pub port: u32,
}

/// All pauses of sampled ports.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PauseTable {
    /// The ports in order of their first pauses.
    pub names: Vec<String>,
    /// By beginning, then link.
    pub rows: Vec<PauseRow>,
}

const NAME: &str = "pauses";

impl PauseTable {
    /// Returns the table of the recorded pauses.
    pub fn new(setup: &Setup, outcome: &Outcome) -> Self {
        let mut table = Self::default();
        let mut indices = BTreeMap::new();
        for pause in &outcome.pauses {
            let port = *indices.entry(pause.link).or_insert_with(|| {
                table.names.push(setup.network.link_name(pause.link));
                table.names.len() as u32 - 1
            });
            table.rows.push(PauseRow { start_ns: pause.from.ns(), end_ns: pause.until.ns(), port });
        }
        table
    }

    pub(crate) fn frame(&self) -> DataFrame {
        let rows = || self.rows.iter();
        let columns: [(&str, Column); 3] = [
            ("start_ns", ints(rows().map(|row| row.start_ns))),
            ("end_ns", ints(rows().map(|row| row.end_ns))),
            ("port", Column::Text(rows().map(|row| self.names[row.port as usize].as_str()).collect())),
        ];
        DataFrame { name: NAME, columns: columns.map(|(name, column)| (name.to_owned(), column)).to_vec() }
    }

    pub(crate) fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let mut take = Taker::open(NAME, "start_ns", bytes, path)?;
        let (from, until, names) = (take.naturals("start_ns")?, take.naturals("end_ns")?, take.texts("port")?);
        let row = |row: usize| PauseRow { start_ns: from[row], end_ns: until[row], port: names.rows[row] };
        Ok(Self { rows: (0..from.len()).map(row).collect(), names: names.names.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_scenarios_read_back() {
        let row = |port| PauseRow { start_ns: 3, end_ns: 5 + u64::from(port), port };
        let table = PauseTable { names: vec!["a>b".into(), "b>a".into()], rows: vec![row(0), row(1), row(0)] };
        let mut bytes = Vec::new();
        crate::parquet::write(&table.frame(), &mut bytes).unwrap();
        assert_eq!(PauseTable::read(bytes, Path::new("pauses.parquet")).unwrap(), table);
    }
}
