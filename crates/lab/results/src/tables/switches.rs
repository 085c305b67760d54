//! `switches.parquet`: one row a sample of a switch's shared buffer, in order of time, then switch.

use std::collections::BTreeMap;
use std::path::Path;

use experiment::{Outcome, Setup};

use super::{Taker, ints};
use crate::Error;
use crate::frame::{Column, DataFrame};

/// A shared buffer at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchRow {
    /// The time.
    pub time_ns: u64,
    /// The switch, an index into [`SwitchTable::names`].
    pub switch: u32,
    /// Bytes that wait in it.
    pub buffer_bytes: u64,
}

/// All samples of switches.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SwitchTable {
    /// The switches in order of their first samples.
    pub names: Vec<String>,
    /// By time, then switch.
    pub rows: Vec<SwitchRow>,
}

const NAME: &str = "switches";

impl SwitchTable {
    /// Returns the table of the switch samples.
    pub fn new(setup: &Setup, outcome: &Outcome) -> Self {
        let mut table = Self::default();
        let mut indices = BTreeMap::new();
        for sample in &outcome.switch_samples {
            let switch = *indices.entry(sample.node).or_insert_with(|| {
                table.names.push(setup.network.nodes()[sample.node.index()].name.clone());
                table.names.len() as u32 - 1
            });
            table.rows.push(SwitchRow { time_ns: sample.time.ns(), switch, buffer_bytes: sample.buffer.get() });
        }
        table
    }

    /// The samples of the switches that `choice` names: `all`, a name, or the end of names behind a star, as in
    /// `*.border`.
    pub fn chosen(&self, choice: &str) -> Vec<SwitchRow> {
        let wanted = |name: &String| match choice.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => choice == "all" || name == choice,
        };
        let wanted: Vec<bool> = self.names.iter().map(wanted).collect();
        self.rows.iter().filter(|row| wanted[row.switch as usize]).copied().collect()
    }

    pub(crate) fn frame(&self) -> DataFrame {
        let rows = || self.rows.iter();
        let columns: [(&str, Column); 3] = [
            ("time_ns", ints(rows().map(|row| row.time_ns))),
            ("name", Column::Text(rows().map(|row| self.names[row.switch as usize].as_str()).collect())),
            ("buffer_bytes", ints(rows().map(|row| row.buffer_bytes))),
        ];
        DataFrame { name: NAME, columns: columns.map(|(name, column)| (name.to_owned(), column)).to_vec() }
    }

    pub(crate) fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let mut take = Taker::open(NAME, "time_ns", bytes, path)?;
        let (time, names, buffer) = (take.naturals("time_ns")?, take.texts("name")?, take.naturals("buffer_bytes")?);
        let row = |row: usize| SwitchRow { time_ns: time[row], switch: names.rows[row], buffer_bytes: buffer[row] };
        Ok(Self { rows: (0..time.len()).map(row).collect(), names: names.names.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_selected_by_name_or_suffix() {
        let names = ["dc0.border", "dc1.border", "dc1.core0"].map(String::from).to_vec();
        let row = |switch| SwitchRow { time_ns: 1, switch, buffer_bytes: u64::from(switch) };
        let table = SwitchTable { names, rows: (0..3).map(row).collect() };
        let chosen = |choice| table.chosen(choice).iter().map(|row| row.switch).collect::<Vec<_>>();
        assert_eq!(chosen("all"), [0, 1, 2]);
        assert_eq!(chosen("dc1.border"), [1]);
        assert_eq!(chosen("*.border"), [0, 1]);
        assert_eq!(chosen("border"), Vec::<u32>::new());
        let mut bytes = Vec::new();
        crate::parquet::write(&table.frame(), &mut bytes).unwrap();
        assert_eq!(SwitchTable::read(bytes, Path::new("switches.parquet")).unwrap(), table);
    }
}
