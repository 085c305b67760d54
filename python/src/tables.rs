//! Tables of results as streams of Arrow's record batches (the `PyCapsule` interface), read from Parquet on demand.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{available_parallelism, spawn};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchIterator, RecordBatchReader, UInt64Array, new_null_array,
};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The column with the names of runs in a table of summaries.
const RUN: &str = "run";
/// The column with the classes of flows.
const CLASS: &str = "class";
/// Rows of a batch. The last one of a table may have fewer, and none has twice as many.
const BATCH_ROWS: usize = 1 << 16;
/// Batches that a thread decodes ahead of the reader.
const QUEUE_BATCHES: usize = 2;
/// The most threads that decode a table.
const MAX_THREADS: usize = 8;

/// Tables, one after the other. They have the columns of all of them: where one lacks a column, it is null.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Tables {
    source: Source,
    /// Columns of all tables.
    all: SchemaRef,
    /// Set if each table has all of them.
    alike: bool,
    /// Columns that are read, in the requested order.
    selected: SchemaRef,
    /// Names of the runs with rows to read, in their order; none for all rows as they are.
    runs: Option<Vec<String>>,
    /// The class of the flows that are read; none for all.
    class: Option<String>,
}

/// The location of the rows.
#[derive(Clone)]
enum Source {
    /// Parquet files.
    Files(Arc<[PathBuf]>),
    /// Memory.
    Memory(RecordBatch),
}

#[pymethods]
impl Tables {
    /// Opens the files. `runs` selects the rows of a table of summaries.
    #[new]
    #[pyo3(signature = (files, runs = None))]
    fn new(py: Python<'_>, files: Vec<PathBuf>, runs: Option<Vec<String>>) -> PyResult<Self> {
        if files.is_empty() {
            return Err(PyValueError::new_err("no table"));
        }
        let (schema, alike) = py.detach(|| merged_schema(&files)).map_err(|error| read_error(&error))?;
        let source = Source::Files(files.into());
        Ok(Self { source, all: schema.clone(), alike, selected: schema, runs, class: None })
    }

    /// The names and types of the columns that are read.
    fn columns(&self) -> Vec<(String, String)> {
        self.selected.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// Returns true if each table has all columns.
    fn are_alike(&self) -> bool {
        self.alike
    }

    /// The same rows with some of the columns, in this order. All of them exist.
    fn select(&self, columns: Vec<String>) -> PyResult<Self> {
        let fields = columns.iter().map(|name| self.selected.field_with_name(name).cloned());
        let fields: Vec<Field> = fields.collect::<Result<_, _>>().map_err(|error| read_error(&error))?;
        Ok(Self { selected: Arc::new(Schema::new(fields)), ..self.copy() })
    }

    /// The same columns with the rows of one class of flows.
    fn of_class(&self, class: String) -> Self {
        Self { class: Some(class), ..self.copy() }
    }

    /// The number of rows.
    fn rows(&self, py: Python<'_>) -> PyResult<usize> {
        let count = || match (&self.runs, &self.class, &self.source) {
            (Some(runs), ..) => Ok(runs.len()),
            (None, None, Source::Memory(batch)) => Ok(batch.num_rows()),
            (None, None, Source::Files(files)) => {
                let rows = |file: &PathBuf| Ok(rows_of(open_reader(file)?.metadata()));
                files.iter().map(rows).sum()
            }
            (None, Some(_), _) => {
                let class = Arc::new(Schema::new(vec![self.all.field_with_name(CLASS)?.clone()]));
                let narrow = Self { selected: class, ..self.copy() };
                narrow.batches()?.map(|batch| batch.map(|batch| batch.num_rows())).sum()
            }
        };
        py.detach(count).map_err(|error| read_error(&error))
    }

    /// All record batches as an Arrow stream: a capsule called `arrow_array_stream`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may return the schema that it has instead of the requested one.
        drop(requested_schema);
        let reader = py.detach(|| self.batches()).map_err(|error| read_error(&error))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

impl Tables {
    /// A table in memory.
    pub(crate) fn in_memory(batch: RecordBatch) -> Self {
        let schema = batch.schema();
        let source = Source::Memory(batch);
        Self { source, all: schema.clone(), alike: true, selected: schema, runs: None, class: None }
    }

    /// A table in the bytes of a Parquet file.
    pub(crate) fn of_bytes(bytes: bytes::Bytes) -> Result<Self, ArrowError> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)?.build()?;
        let schema = reader.schema();
        Ok(Self::in_memory(concat_batches(&schema, &reader.collect::<Result<Vec<_>, _>>()?)?))
    }

    fn copy(&self) -> Self {
        let Self { source, all, alike, selected, runs, class } = self;
        let (source, runs, class) = (source.clone(), runs.clone(), class.clone());
        Self { source, all: all.clone(), alike: *alike, selected: selected.clone(), runs, class }
    }

    /// The requested rows and columns.
    fn batches(&self) -> Result<Box<dyn RecordBatchReader + Send>, ArrowError> {
        // Columns that select rows are read, too.
        let by = [self.runs.as_ref().map(|_| RUN), self.class.as_ref().map(|_| CLASS)];
        let mut fields: Vec<FieldRef> = self.selected.fields().iter().cloned().collect();
        for name in by.into_iter().flatten() {
            if self.selected.field_with_name(name).is_err() {
                fields.push(Arc::new(self.all.field_with_name(name)?.clone()));
            }
        }
        let read = Arc::new(Schema::new(fields));
        let batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send> = match &self.source {
            Source::Memory(batch) => Box::new(std::iter::once(with_columns(batch, &read))),
            Source::Files(files) => Box::new(Decoding::new(files, &read)?),
        };
        let selected = self.selected.clone();
        let batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send> = match (&self.runs, &self.class)
        {
            (Some(runs), _) => Box::new(std::iter::once(of_runs(batches, &read, runs))),
            (None, Some(class)) => {
                let class = class.clone();
                Box::new(Coalesced::new(batches.map(move |batch| of_class(&batch?, &class))))
            }
            (None, None) => Box::new(Coalesced::new(batches)),
        };
        let batches = batches.map(move |batch| with_columns(&batch?, &selected));
        Ok(Box::new(RecordBatchIterator::new(batches, self.selected.clone())))
    }
}

fn read_error(error: &ArrowError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// Opens a file.
fn open_reader(file: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, ArrowError> {
    let wrong =
        |error: &dyn std::fmt::Display| ArrowError::ExternalError(format!("`{}`: {error}", file.display()).into());
    let opened = File::open(file).map_err(|error| wrong(&error))?;
    // By Parquet's types alone: writers differ in the Arrow types that they note in addition.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(opened, options).map_err(|error| wrong(&error))
}

fn rows_of(metadata: &ParquetMetaData) -> usize {
    usize::try_from(metadata.file_metadata().num_rows()).unwrap_or_default()
}

/// The columns of all files, in the order in which they first appear, and whether each file has all of them. Those that some
/// file lacks may be null.
fn merged_schema(files: &[PathBuf]) -> Result<(SchemaRef, bool), ArrowError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for file in files {
        for field in open_reader(file)?.schema().fields() {
            let Some(index) = fields.iter().position(|known| known.name() == field.name()) else {
                fields.push(field.as_ref().clone());
                counts.push(1);
                continue;
            };
            let known = &mut fields[index];
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
            counts[index] += 1;
        }
    }
    let alike = counts.iter().all(|&count| count == files.len());
    let fields = fields.into_iter().zip(counts);
    let fields = fields.map(|(field, count)| if count < files.len() { field.with_nullable(true) } else { field });
    Ok((Arc::new(Schema::new(fields.collect::<Vec<_>>())), alike))
}

/// A batch with these columns. A column that it lacks is null.
fn with_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &FieldRef| {
        let found = batch.column_by_name(field.name()).cloned();
        found.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
    };
    RecordBatch::try_new(schema.clone(), schema.fields().iter().map(column).collect())
}

/// The rows of some runs, in the order of their names.
fn of_runs(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    schema: &SchemaRef,
    runs: &[String],
) -> Result<RecordBatch, ArrowError> {
    let all = concat_batches(schema, &batches.collect::<Result<Vec<_>, _>>()?)?;
    let names = all.column_by_name(RUN).and_then(|column| column.as_string_opt::<i32>());
    let names = names.ok_or_else(|| ArrowError::SchemaError(format!("the table has no column `{RUN}` of text")))?;
    let rows: BTreeMap<&str, u64> = names.iter().flatten().zip(0..).collect();
    let row = |run: &String| {
        let row = rows.get(run.as_str()).copied();
        row.ok_or_else(|| ArrowError::ExternalError(format!("the table of summaries has no run `{run}`").into()))
    };
    take_record_batch(&all, &UInt64Array::from(runs.iter().map(row).collect::<Result<Vec<_>, _>>()?))
}

/// The rows of one class of flows.
fn of_class(batch: &RecordBatch, class: &str) -> Result<RecordBatch, ArrowError> {
    let classes = batch.column_by_name(CLASS).and_then(|column| column.as_string_opt::<i32>());
    let classes =
        classes.ok_or_else(|| ArrowError::SchemaError(format!("the table has no column `{CLASS}` of text")))?;
    let is: BooleanArray = classes.iter().map(|found| Some(found == Some(class))).collect();
    filter_record_batch(batch, &is)
}

/// Batches of at least [`BATCH_ROWS`] rows, but for the last: smaller ones are joined.
struct Coalesced<I> {
    batches: I,
    pending: Vec<RecordBatch>,
}

impl<I> Coalesced<I> {
    fn new(batches: I) -> Self {
        Self { batches, pending: Vec::new() }
    }

    fn coalesce(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let pending = std::mem::take(&mut self.pending);
        match &pending[..] {
            [] => None,
            [alone] => Some(Ok(alone.clone())),
            [first, ..] => Some(concat_batches(&first.schema(), &pending)),
        }
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Coalesced<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = 0;
        for batch in self.batches.by_ref() {
            match batch {
                Err(error) => return Some(Err(error)),
                Ok(batch) => {
                    rows += batch.num_rows();
                    if batch.num_rows() > 0 {
                        self.pending.push(batch);
                    }
                }
            }
            if rows >= BATCH_ROWS {
                break;
            }
        }
        self.coalesce()
    }
}

/// A message of a thread that decodes.
enum Decoded {
    Batch(RecordBatch),
    /// The file has no more rows.
    End,
    Failed(ArrowError),
}

/// Columns of a file that one thread decodes.
struct Task {
    file: PathBuf,
    /// Names of the columns that it reads.
    columns: Vec<String>,
}

impl Task {
    fn reader(&self) -> Result<ParquetRecordBatchReader, ArrowError> {
        let builder = open_reader(&self.file)?;
        // By their indices: `ProjectionMask::columns` takes a dot in a name for the boundary of a nested one.
        let leaves = builder.parquet_schema().columns().iter().zip(0..);
        let leaves: Vec<usize> = leaves
            .filter(|(leaf, _)| self.columns.iter().any(|name| name == leaf.name()))
            .map(|(_, index)| index)
            .collect();
        let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves);
        Ok(builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()?)
    }

    /// Sends all batches. Returns whether a receiver still exists.
    fn send(&self, sender: &SyncSender<Decoded>) -> bool {
        let reader = match self.reader() {
            Ok(reader) => reader,
            Err(error) => return sender.send(Decoded::Failed(error)).is_ok(),
        };
        for batch in reader {
            let message = batch.map_or_else(Decoded::Failed, Decoded::Batch);
            if sender.send(message).is_err() {
                return false;
            }
        }
        sender.send(Decoded::End).is_ok()
    }
}

/// The batches of files, one file after the other, decoded by several threads: each takes one file in every round, or, with few
/// files, a part of the columns of each.
struct Decoding {
    schema: SchemaRef,
    /// Receivers by thread.
    receivers: Vec<Receiver<Decoded>>,
    /// Threads that decode each file, by file that is not read to its end.
    files: VecDeque<Vec<usize>>,
}

impl Decoding {
    fn new(files: &[PathBuf], schema: &SchemaRef) -> Result<Self, ArrowError> {
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut tasks: Vec<Vec<Task>> = (0..threads).map(|_| Vec::new()).collect();
        let mut threads_by_file = VecDeque::new();
        for (number, file) in files.iter().enumerate() {
            let all = || schema.fields().iter().map(|field| field.name().clone()).collect();
            let groups = if files.len() < threads { column_groups(file, schema, threads)? } else { vec![all()] };
            // A file in one part is of one thread; one in several parts has a part for each of the first threads.
            let first = if files.len() < threads { 0 } else { number % threads };
            threads_by_file.push_back((first..first + groups.len()).collect());
            for (columns, tasks) in groups.into_iter().zip(&mut tasks[first..]) {
                tasks.push(Task { file: file.clone(), columns });
            }
        }
        let used = tasks.iter().rposition(|tasks| !tasks.is_empty()).map_or(0, |last| last + 1);
        tasks.truncate(used);
        let start = |tasks: Vec<Task>| {
            let (sender, receiver) = sync_channel(QUEUE_BATCHES);
            spawn(move || tasks.iter().all(|task| task.send(&sender)));
            receiver
        };
        Ok(Self { schema: schema.clone(), receivers: tasks.into_iter().map(start).collect(), files: threads_by_file })
    }

    /// The next batch of a file from all threads that decode it; none at its end.
    fn batch(&self, threads: &[usize]) -> Result<Option<RecordBatch>, ArrowError> {
        let mut columns: Vec<(FieldRef, ArrayRef)> = Vec::new();
        let (mut rows, mut ended) = (0, 0);
        for &thread in threads {
            // A thread that ends without a message has met a bug.
            let message = self.receivers[thread].recv();
            match message.map_err(|_| ArrowError::ParquetError("damaged: it cannot be decoded".into()))? {
                Decoded::End => ended += 1,
                Decoded::Failed(error) => return Err(error),
                Decoded::Batch(batch) => {
                    rows = batch.num_rows();
                    columns.extend(batch.schema().fields().iter().cloned().zip(batch.columns().iter().cloned()));
                }
            }
        }
        if ended == threads.len() {
            return Ok(None);
        }
        if ended > 0 {
            return Err(ArrowError::ParquetError("damaged: columns differ in their lengths".into()));
        }
        let column = |field: &FieldRef| {
            let found = columns.iter().find(|(found, _)| found.name() == field.name());
            found.map_or_else(|| new_null_array(field.data_type(), rows), |(_, column)| column.clone())
        };
        RecordBatch::try_new(self.schema.clone(), self.schema.fields().iter().map(column).collect()).map(Some)
    }
}

impl Iterator for Decoding {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.batch(self.files.front()?) {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => {
                    self.files.pop_front();
                }
                Err(error) => {
                    self.files.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Divides the columns of a file into as many parts of about equal work, or fewer. A small file is one part.
fn column_groups(file: &Path, schema: &SchemaRef, count: usize) -> Result<Vec<Vec<String>>, ArrowError> {
    let builder = open_reader(file)?;
    let metadata = builder.metadata();
    let rows = rows_of(metadata) as u64;
    let mut work: BTreeMap<&str, u64> = BTreeMap::new();
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let bytes = u64::try_from(column.uncompressed_size()).unwrap_or_default();
        *work.entry(column.column_descr().name()).or_default() += bytes;
    }
    for column in metadata.file_metadata().schema_descr().columns() {
        // A text of a dictionary takes few bytes in the file and many in memory.
        let bytes = if column.physical_type() == Type::BYTE_ARRAY { 24 } else { 8 };
        *work.entry(column.name()).or_default() += bytes * rows;
    }
    let mut columns: Vec<(&str, u64)> = schema
        .fields()
        .iter()
        .filter_map(|field| work.get_key_value(field.name().as_str()).map(|(name, work)| (*name, *work)))
        .collect();
    let count = if rows < BATCH_ROWS as u64 { 1 } else { count.min(columns.len()).max(1) };
    columns.sort_by_key(|&(_, work)| std::cmp::Reverse(work));
    let mut parts = vec![(0, Vec::new()); count];
    for (name, work) in columns {
        let smallest = parts.iter_mut().min_by_key(|(sum, _)| *sum);
        if let Some((sum, part)) = smallest {
            *sum += work;
            part.push(name.to_owned());
        }
    }
    Ok(parts.into_iter().map(|(_, part)| part).collect())
}
