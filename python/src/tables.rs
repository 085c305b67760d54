//! Tables of results as streams of Arrow's record batches (the `PyCapsule` interface), read from Parquet as they are asked for.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Tables of the same columns, one file after the other.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Tables {
    files: Vec<PathBuf>,
    schema: SchemaRef,
}

#[pymethods]
impl Tables {
    /// Opens the first file, whose columns the others must have.
    #[new]
    fn new(files: Vec<PathBuf>) -> PyResult<Self> {
        let first = files.first().ok_or_else(|| PyValueError::new_err("no table"))?;
        let schema = opened(first).map_err(|error| PyOSError::new_err(error.to_string()))?.schema().clone();
        Ok(Self { files, schema })
    }

    /// The columns' names and types.
    fn columns(&self) -> Vec<(String, String)> {
        self.schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// How many rows there are.
    fn rows(&self, py: Python<'_>) -> PyResult<i64> {
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
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Opens a file.
fn opened(file: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, ArrowError> {
    let wrong =
        |error: &dyn std::fmt::Display| ArrowError::ExternalError(format!("`{}`: {error}", file.display()).into());
    let opened = File::open(file).map_err(|error| wrong(&error))?;
    ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|error| wrong(&error))
}

/// The batches of files, one file after the other.
struct Batches {
    files: VecDeque<PathBuf>,
    schema: SchemaRef,
    current: Option<ParquetRecordBatchReader>,
}

impl Batches {
    fn after(&mut self, file: &Path) -> Result<(), ArrowError> {
        let reader = opened(file)?;
        if reader.schema().fields() != self.schema.fields() {
            let said = format!("`{}` has other columns than the first table", file.display());
            return Err(ArrowError::SchemaError(said));
        }
        self.current = Some(reader.build()?);
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                // The files' own notes are not the same in all of them.
                return Some(batch.and_then(|batch| batch.with_schema(self.schema.clone())));
            }
            let file = self.files.pop_front()?;
            if let Err(error) = self.after(&file) {
                self.files.clear();
                return Some(Err(error));
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
