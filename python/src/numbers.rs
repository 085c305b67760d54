//! Tables of the content of manifests and summaries: summaries of runs, and iterations of training jobs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use results::store::{Manifest, SummaryRow, summary_table};
use results::summary::Training;
use results::{PointColumn, PointValue, Summary};

use crate::tables::Tables;

/// Runs, from the texts of their manifests and summaries.
fn read(manifests: &[String], summaries: &[String]) -> PyResult<Vec<(Manifest, Summary)>> {
    let value_error = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let run = |(manifest, summary): (&String, &String)| {
        Ok((serde_json::from_str(manifest).map_err(value_error)?, serde_json::from_str(summary).map_err(value_error)?))
    };
    manifests.iter().zip(summaries).map(run).collect()
}

/// The table of summaries of some runs, where no file has it.
#[pyfunction]
pub(crate) fn summaries(manifests: Vec<String>, summaries: Vec<String>) -> PyResult<Tables> {
    let runs = read(&manifests, &summaries)?;
    let rows: Vec<SummaryRow<'_>> = runs.iter().map(|(manifest, summary)| SummaryRow { manifest, summary }).collect();
    let bytes = summary_table(&rows)?;
    Tables::of_bytes(bytes.into()).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The table of the iterations of training jobs: a row for each run, job and iteration.
#[pyfunction]
pub(crate) fn jobs(manifests: Vec<String>, summaries: Vec<String>) -> PyResult<Tables> {
    let runs = read(&manifests, &summaries)?;
    let runs: Vec<(Vec<PointColumn>, Summary)> =
        runs.into_iter().map(|(manifest, summary)| (first_columns(&manifest), summary)).collect();
    // Each row's run, job and iteration.
    let mut rows = Vec::new();
    for (run, (_, summary)) in runs.iter().enumerate() {
        for (job, training) in summary.training() {
            rows.extend((0..training.iteration_ns.len()).map(|iteration| (run, job, training, iteration)));
        }
    }
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (points, _) in &runs {
        for PointColumn { name, value: like } in points {
            if columns.iter().all(|(known, _)| known != name) {
                let values = rows.iter().map(|(run, ..)| runs[*run].0.iter().find(|it| it.name == *name));
                columns.push((name.clone(), array(like, values.map(|it| it.map(|it| &it.value)))));
            }
        }
    }
    let text: StringArray = rows.iter().map(|(_, job, ..)| Some(*job)).collect();
    let number: Int64Array = rows.iter().map(|(.., iteration)| Some(*iteration as i64)).collect();
    let durations: Float64Array =
        rows.iter().map(|(.., training, iteration)| Some(training.iteration_ns[*iteration])).collect();
    let job_column = |of: fn(&Training) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|(.., training, _)| of(training)).collect::<Float64Array>())
    };
    columns.extend([
        ("job".to_owned(), Arc::new(text) as ArrayRef),
        ("iteration".to_owned(), Arc::new(number)),
        ("took_ns".to_owned(), Arc::new(durations)),
        ("took_mean_ns".to_owned(), job_column(|it| it.iteration_mean_ns)),
        ("compute_mean_ns".to_owned(), job_column(|it| it.compute_ns)),
        ("exposed_mean_ns".to_owned(), job_column(|it| it.exposed_ns)),
    ]);
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    batch.map(Tables::in_memory).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The first columns of a run's tables. Runs of earlier versions that are alone have none.
fn first_columns(manifest: &Manifest) -> Vec<PointColumn> {
    if !manifest.columns.is_empty() {
        return manifest.columns.clone();
    }
    let column = |name: &str, value| PointColumn { name: name.to_owned(), value };
    let seed = PointValue::Whole(i64::try_from(manifest.seed).ok());
    vec![column("scheme", PointValue::Text(manifest.run.clone())), column("seed", seed)]
}

/// A column of points' values, of the type of `like`. A value of another type is null.
fn array<'a>(like: &PointValue, values: impl Iterator<Item = Option<&'a PointValue>>) -> ArrayRef {
    match like {
        PointValue::Text(_) => Arc::new(
            values
                .map(|value| if let Some(PointValue::Text(text)) = value { Some(text.as_str()) } else { None })
                .collect::<StringArray>(),
        ),
        PointValue::Whole(_) => Arc::new(
            values
                .map(|value| if let Some(PointValue::Whole(number)) = value { *number } else { None })
                .collect::<Int64Array>(),
        ),
        PointValue::Real(_) => Arc::new(
            values
                .map(|value| if let Some(PointValue::Real(number)) = value { *number } else { None })
                .collect::<Float64Array>(),
        ),
    }
}
