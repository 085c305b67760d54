//! `summary.parquet`: one row a run of a grid, its point, and all numbers of its summary.

use serde_json::Value;

use crate::frame::{Column, Frame};

use super::RunResults;

/// Parts of a summary that are no numbers of the run: they name it, are lists, or differ between repetitions.
const LEFT_OUT: [&str; 10] =
    ["schema", "scenario", "run", "label", "point", "host", "seed", "engine", "warnings", "notes"];

/// The table. Numbers are called as in `summary.json`, with dots: `flows.inter.fct_ns.p99`. A run that lacks one has none.
pub(crate) fn summaries(runs: &[RunResults]) -> Frame {
    let text = |of: fn(&RunResults) -> &str| Column::Text(runs.iter().map(of).collect());
    let mut columns =
        vec![("run".to_owned(), text(|run| &run.manifest.run)), ("label".to_owned(), text(|run| &run.manifest.label))];
    let first = runs.first().map(|run| run.manifest.columns.as_slice()).unwrap_or_default();
    for (place, named) in first.iter().enumerate() {
        let values = runs.iter().map(|run| run.manifest.columns.get(place).map(|column| &column.value));
        let column = Column::of_points(&named.value, values);
        columns.push((named.name.clone(), column));
    }
    let mut numbers: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for (row, run) in runs.iter().enumerate() {
        let summary = serde_json::to_value(&run.summary).unwrap_or_default();
        for (key, value) in summary.as_object().into_iter().flatten() {
            if !LEFT_OUT.contains(&key.as_str()) {
                add(&mut numbers, key, value, row, runs.len());
            }
        }
    }
    let taken = columns.len();
    columns.extend(numbers.into_iter().map(|(name, values)| (name, Column::OptReal(values))));
    debug_assert!(columns[taken..].iter().all(|(name, _)| columns[..taken].iter().all(|(other, _)| other != name)));
    Frame { name: "summary", columns }
}

/// Adds the numbers below a key.
fn add(numbers: &mut Vec<(String, Vec<Option<f64>>)>, name: &str, value: &Value, row: usize, rows: usize) {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        Value::Object(parts) => {
            for (key, value) in parts {
                add(numbers, &format!("{name}.{key}"), value, row, rows);
            }
            return;
        }
        Value::Null | Value::String(_) | Value::Array(_) => return,
    };
    let place = numbers.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        numbers.push((name.to_owned(), vec![None; rows]));
        numbers.len() - 1
    });
    numbers[place].1[row] = number;
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
        let frame = summaries(&[run.clone(), testbed::results()]);
        let column = |name: &str| &frame.columns.iter().find(|(column, _)| column == name).unwrap().1;
        assert_eq!(*column("load"), Column::OptReal(vec![Some(0.4), None]));
        let p99 = run.summary.flows.all.fct_ns.p99;
        assert!(p99.is_some());
        assert_eq!(*column("flows.all.fct_ns.p99"), Column::OptReal(vec![p99; 2]));
        assert!(frame.columns.iter().all(|(name, _)| !name.starts_with("engine")));
    }
}
