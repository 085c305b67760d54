//! `summary.parquet`: one row a run of a grid, its point, and all numbers of its summary.

use serde_json::Value;

use super::{Manifest, RunResults};
use crate::frame::{Column, DataFrame};
use crate::parquet;
use crate::summary::{Actions, Summary};

/// A run of a table of summaries.
#[derive(Clone, Copy, Debug)]
pub struct SummaryRow<'a> {
    /// Its manifest: name, label and point.
    pub manifest: &'a Manifest,
    /// Its numbers.
    pub summary: &'a Summary,
}

impl<'a> From<&'a RunResults> for SummaryRow<'a> {
    fn from(run: &'a RunResults) -> Self {
        Self { manifest: &run.manifest, summary: &run.summary }
    }
}

/// The table of summaries of some runs as the bytes of a Parquet file, as `summary.parquet` of a grid has it.
///
/// # Errors
/// When the table cannot be encoded.
pub fn summary_table(runs: &[SummaryRow<'_>]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    parquet::write(&summaries(runs), &mut bytes)?;
    Ok(bytes)
}

/// Parts of a summary that are no numbers of the run: they name it, are lists, or differ between repetitions.
const LEFT_OUT: [&str; 10] =
    ["schema", "scenario", "run", "label", "point", "backend", "seed", "engine", "warnings", "notes"];

/// The table. Numbers are called as in `summary.json`, with dots: `flows.inter.fct_ns.p99`. A run that lacks one has none.
pub(crate) fn summaries(runs: &[SummaryRow<'_>]) -> DataFrame {
    let text = |of: fn(&Manifest) -> &str| Column::Text(runs.iter().map(|run| of(run.manifest)).collect());
    let mut columns = vec![
        ("run".to_owned(), text(|manifest| &manifest.run)),
        ("label".to_owned(), text(|manifest| &manifest.label)),
    ];
    let first = runs.first().map(|run| run.manifest.columns.as_slice()).unwrap_or_default();
    for (index, named) in first.iter().enumerate() {
        let values = runs.iter().map(|run| run.manifest.columns.get(index).map(|column| &column.value));
        let column = Column::of_points(&named.value, values);
        columns.push((named.name.clone(), column));
    }
    let mut numbers = Numbers { columns: Vec::new(), rows: runs.len() };
    if let Some(first) = runs.first() {
        each_part(&with_all_columns(first), |key, value| numbers.name(key, value));
    }
    for (row, run) in runs.iter().enumerate() {
        each_part(run.summary, |key, value| numbers.add(key, value, row));
    }
    let reserved = columns.len();
    columns.extend(numbers.columns.into_iter().map(|(name, values)| (name, Column::OptReal(values))));
    debug_assert!(
        columns[reserved..].iter().all(|(name, _)| columns[..reserved].iter().all(|(other, _)| other != name))
    );
    DataFrame { name: "summary", columns }
}

/// A run's summary with all that a run of its sweep may have: the actions of each law, and counts that are left out of a summary
/// where they are zero. So the columns do not depend on which of the sweep's runs are in the table.
fn with_all_columns(run: &SummaryRow<'_>) -> Summary {
    let mut summary = run.summary.clone();
    let by_law = &mut summary.law.by_law.0;
    by_law.extend(run.manifest.laws.iter().map(|law| (law.clone(), Actions::default())));
    by_law.sort_by(|(one, _), (other, _)| one.cmp(other));
    by_law.dedup_by(|(one, _), (other, _)| one == other);
    summary.network.trims = summary.network.trims.max(1);
    summary.network.impaired.get_or_insert_default();
    summary
}

/// Calls for each part of a summary that has numbers.
fn each_part(summary: &Summary, mut call: impl FnMut(&str, &Value)) {
    let summary = serde_json::to_value(summary).unwrap_or_default();
    let parts = summary.as_object().into_iter().flatten();
    // A part that is null as a whole has no columns.
    let parts = parts.filter(|(key, value)| !LEFT_OUT.contains(&key.as_str()) && !value.is_null());
    parts.for_each(|(key, value)| call(key, value));
}

/// Columns of numbers by name.
struct Numbers {
    columns: Vec<(String, Vec<Option<f64>>)>,
    rows: usize,
}

impl Numbers {
    /// Makes the columns of all numbers below a key, also of those that were not measured.
    fn name(&mut self, key: &str, value: &Value) {
        match value {
            Value::Object(parts) => parts.iter().for_each(|(part, value)| self.name(&format!("{key}.{part}"), value)),
            Value::Null | Value::Number(_) | Value::Bool(_) => {
                self.column_index(key);
            }
            Value::String(_) | Value::Array(_) => {}
        }
    }

    /// Adds the numbers below a key to a row.
    fn add(&mut self, key: &str, value: &Value, row: usize) {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::Bool(is) => Some(f64::from(u8::from(*is))),
            Value::Object(parts) => {
                return parts.iter().for_each(|(part, value)| self.add(&format!("{key}.{part}"), value, row));
            }
            Value::Null | Value::String(_) | Value::Array(_) => return,
        };
        let index = self.column_index(key);
        self.columns[index].1[row] = number;
    }

    fn column_index(&mut self, name: &str) -> usize {
        self.columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.columns.push((name.to_owned(), vec![None; self.rows]));
            self.columns.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{PointColumn, PointValue};
    use crate::testbed;

    #[test]
    fn every_run_is_a_row_with_its_point_and_its_numbers() {
        let mut run = testbed::results();
        run.manifest.columns = vec![PointColumn { name: "load".into(), value: PointValue::Real(Some(0.4)) }];
        let frame = summaries(&[(&run).into(), (&testbed::results()).into()]);
        let column = |name: &str| &frame.columns.iter().find(|(column, _)| column == name).unwrap().1;
        assert_eq!(*column("load"), Column::OptReal(vec![Some(0.4), None]));
        let p99 = run.summary.flows.all.fct_ns.p99;
        assert!(p99.is_some());
        assert_eq!(*column("flows.all.fct_ns.p99"), Column::OptReal(vec![p99; 2]));
        assert!(frame.columns.iter().all(|(name, _)| !name.starts_with("engine")));
    }

    /// Shards of a sweep have tables of the same columns, though each has the runs and measurements of one scheme.
    #[test]
    fn columns_do_not_depend_on_the_runs() {
        let run = |law: &str, trims: u64| {
            let mut run = testbed::results();
            run.manifest.laws = vec!["cubic".into(), "dctcp".into()];
            run.summary.law.by_law = crate::Ordered(vec![(law.to_owned(), Actions::default())]);
            run.summary.network.trims = trims;
            run
        };
        let (one, mut other) = (run("cubic", 0), run("dctcp", 7));
        other.summary.flows.inter = crate::summary::FlowGroupStats::default();
        other.summary.fairness = crate::summary::Fairness::default();
        let names = |runs: &[&RunResults]| {
            let rows: Vec<SummaryRow<'_>> = runs.iter().map(|run| (*run).into()).collect();
            summaries(&rows).columns.into_iter().map(|it| it.0).collect::<Vec<_>>()
        };
        let expected = names(&[&one, &other]);
        assert_eq!((names(&[&one]), names(&[&other])), (expected.clone(), expected.clone()));
        for name in [
            "law.by_law.cubic.cuts",
            "law.by_law.dctcp.cuts",
            "network.trims",
            "network.impaired.reordered",
            "flows.inter.fct_ns.p99",
        ] {
            assert!(expected.iter().any(|it| it == name), "{name}");
        }
    }
}
