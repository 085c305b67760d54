//! Tables of results as streams of Arrow's record batches (the `PyCapsule` interface), read from Parquet as they are asked for.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, UInt64Array, new_null_array};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The column with the names of runs in a table of summaries.
const RUN: &str = "run";

/// Tables, one file after the other. They have the columns of all files: where a file lacks one, it is null.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Tables {
    files: Vec<PathBuf>,
    schema: SchemaRef,
    /// The runs whose rows are wanted, in their order; none for all rows as they are.
    runs: Option<Vec<String>>,
}

#[pymethods]
impl Tables {
    /// Opens the files. `runs` chooses the rows of a table of summaries.
    #[new]
    #[pyo3(signature = (files, runs = None))]
    fn new(py: Python<'_>, files: Vec<PathBuf>, runs: Option<Vec<String>>) -> PyResult<Self> {
        if files.is_empty() {
            return Err(PyValueError::new_err("no table"));
        }
        let schema = py.detach(|| united(&files)).map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self { files, schema, runs })
    }

    /// The columns' names and types.
    fn columns(&self) -> Vec<(String, String)> {
        self.schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// How many rows there are.
    fn rows(&self, py: Python<'_>) -> PyResult<i64> {
        if let Some(runs) = &self.runs {
            return Ok(runs.len() as i64);
        }
        let rows = |file: &PathBuf| Ok::<_, ArrowError>(opened(file)?.metadata().file_metadata().num_rows());
        py.detach(|| self.files.iter().map(rows).sum::<Result<i64, _>>())
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// All record batches as an Arrow stream: a capsule called `arrow_array_stream`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may give what it has instead of what was asked for.
        drop(requested_schema);
        let batches =
            Batches { files: self.files.iter().cloned().collect(), schema: self.schema.clone(), current: None };
        let reader: Box<dyn RecordBatchReader + Send> = match &self.runs {
            None => Box::new(batches),
            Some(runs) => {
                let chosen = py.detach(|| of_runs(batches, runs));
                let chosen = chosen.map_err(|error| PyOSError::new_err(error.to_string()))?;
                Box::new(RecordBatchIterator::new([Ok::<_, ArrowError>(chosen)], self.schema.clone()))
            }
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

/// Opens a file.
fn opened(file: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, ArrowError> {
    let wrong =
        |error: &dyn std::fmt::Display| ArrowError::ExternalError(format!("`{}`: {error}", file.display()).into());
    let opened = File::open(file).map_err(|error| wrong(&error))?;
    // By Parquet's types alone: writers differ in the Arrow types that they note beside them.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(opened, options).map_err(|error| wrong(&error))
}

/// The columns of all files, in the order in which they first appear. Those that some file lacks may be null.
fn united(files: &[PathBuf]) -> Result<SchemaRef, ArrowError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for file in files {
        for field in opened(file)?.schema().fields() {
            let Some(place) = fields.iter().position(|known| known.name() == field.name()) else {
                fields.push(field.as_ref().clone());
                counts.push(1);
                continue;
            };
            let known = &mut fields[place];
            if known.data_type() != field.data_type() {
                return Err(ArrowError::SchemaError(format!(
                    "`{}`, column `{}`: is of type {}, and of type {} in other tables",
                    file.display(),
                    field.name(),
                    field.data_type(),
                    known.data_type()
                )));
            }
            if field.is_nullable() {
                *known = known.clone().with_nullable(true);
            }
            counts[place] += 1;
        }
    }
    let fields = fields.into_iter().zip(counts);
    let fields = fields.map(|(field, count)| if count < files.len() { field.with_nullable(true) } else { field });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// The rows of some runs, in the order of their names.
fn of_runs(batches: Batches, runs: &[String]) -> Result<RecordBatch, ArrowError> {
    let schema = batches.schema();
    let all = concat_batches(&schema, &batches.collect::<Result<Vec<_>, _>>()?)?;
    let names = all.column_by_name(RUN).and_then(|column| column.as_string_opt::<i32>());
    let names = names.ok_or_else(|| ArrowError::SchemaError(format!("the table has no column `{RUN}` of text")))?;
    let rows: BTreeMap<&str, u64> = names.iter().flatten().zip(0..).collect();
    let row = |run: &String| {
        let row = rows.get(run.as_str()).copied();
        row.ok_or_else(|| ArrowError::ExternalError(format!("the table of summaries has no run `{run}`").into()))
    };
    take_record_batch(&all, &UInt64Array::from(runs.iter().map(row).collect::<Result<Vec<_>, _>>()?))
}

/// The batches of files, one file after the other.
struct Batches {
    files: VecDeque<PathBuf>,
    schema: SchemaRef,
    current: Option<ParquetRecordBatchReader>,
}

impl Batches {
    /// A batch with all columns. What its file lacks is null.
    fn whole(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let column = |field: &FieldRef| {
            let found = batch.column_by_name(field.name()).cloned();
            found.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
        };
        RecordBatch::try_new(self.schema.clone(), self.schema.fields().iter().map(column).collect())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                return Some(batch.and_then(|batch| self.whole(&batch)));
            }
            let file = self.files.pop_front()?;
            match opened(&file).and_then(|opened| Ok(opened.build()?)) {
                Ok(reader) => self.current = Some(reader),
                Err(error) => {
                    self.files.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
