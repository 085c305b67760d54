//! Parquet files, by the format's own writer and reader: without Arrow they build in a third of the time.
//!
//! The bytes depend on the table alone: a fixed creator, no times, one compression.

use std::cell::Cell;
use std::io::{self, Write};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Once};

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaData};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};

use crate::Error;
use crate::frame::{Column, DataFrame, Texts};
use crate::thrift::{footer_is_sound, pages_are_sound};

/// The version of all tables' columns.
pub(crate) const SCHEMA: u64 = 1;
const CREATED_BY: &str = "narrows";
const SCHEMA_KEY: &str = "narrows.schema";
const TABLE_KEY: &str = "narrows.table";
const ROWS_A_GROUP: usize = 1 << 18;
/// Row count above which a file may have at most `ROWS_A_BYTE` rows per byte. Some column of every table, an identifier or
/// a time, changes from row to row, and Snappy expands 3 bytes to at most 64. A file with more rows per byte was made to
/// exhaust memory.
const ROWS_OF_ANY_FILE: u64 = 1 << 20;
const ROWS_A_BYTE: u64 = 16;

/// Writes a table.
///
/// # Errors
/// The output's own error, without the library's wrapping, which adds `External: ` before the system's words.
pub(crate) fn write(frame: &DataFrame, out: &mut (dyn Write + Send)) -> io::Result<()> {
    write_table(frame, out).map_err(|error| match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(of_output) => *of_output,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_table(frame: &DataFrame, out: &mut (dyn Write + Send)) -> ParquetResult<()> {
    let metadata = [(TABLE_KEY, frame.name.to_owned()), (SCHEMA_KEY, SCHEMA.to_string())];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut file = SerializedFileWriter::new(out, schema(frame)?, Arc::new(properties))?;
    let mut first = 0;
    while first < frame.rows() {
        let rows = first..frame.rows().min(first + ROWS_A_GROUP);
        let mut group = file.next_row_group()?;
        for (_, column) in &frame.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General("fewer columns in the schema than in the table".into()));
            };
            write_part(column, rows.clone(), writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        first = rows.end;
    }
    file.close().map(|_| ())
}

fn schema(frame: &DataFrame) -> ParquetResult<TypePtr> {
    let field = |(name, column): &(String, Column)| {
        let (physical, repetition) = match column {
            Column::Int(_) => (Physical::INT64, Repetition::REQUIRED),
            Column::OptInt(_) => (Physical::INT64, Repetition::OPTIONAL),
            Column::Real(_) => (Physical::DOUBLE, Repetition::REQUIRED),
            Column::OptReal(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
            Column::Flag(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
            Column::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        };
        let logical = matches!(column, Column::Text(_)).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        builder.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = frame.columns.iter().map(field).collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder(frame.name).with_fields(fields).build().map(Arc::new)
}

fn write_part(column: &Column, rows: std::ops::Range<usize>, writer: &mut ColumnWriter<'_>) -> ParquetResult<()> {
    match (column, writer) {
        (Column::Int(values), ColumnWriter::Int64ColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        (Column::Real(values), ColumnWriter::DoubleColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        (Column::Flag(values), ColumnWriter::BoolColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        (Column::OptInt(values), ColumnWriter::Int64ColumnWriter(out)) => {
            let (present, levels) = split(&values[rows]);
            out.write_batch(&present, Some(&levels), None)
        }
        (Column::OptReal(values), ColumnWriter::DoubleColumnWriter(out)) => {
            let (present, levels) = split(&values[rows]);
            out.write_batch(&present, Some(&levels), None)
        }
        (Column::Text(texts), ColumnWriter::ByteArrayColumnWriter(out)) => {
            let names: Vec<ByteArray> = texts.names.iter().map(|name| ByteArray::from(name.as_str())).collect();
            let values: Vec<ByteArray> = texts.rows[rows].iter().map(|&row| names[row as usize].clone()).collect();
            out.write_batch(&values, None, None)
        }
        _ => return Err(ParquetError::General("a column's writer is of another type than the column".into())),
    }
    .map(|_| ())
}

/// The values that are not none, and for each row whether it has one.
fn split<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (
        values.iter().filter_map(|&value| value).collect(),
        values.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}

/// Reads the table `name`. `path` is for messages.
pub(crate) fn read(name: &'static str, bytes: Vec<u8>, path: &Path) -> Result<DataFrame, Error> {
    contained(|| read_table(name, bytes, path)).unwrap_or_else(|| {
        let reason = "not a readable Parquet file: its parts contradict one another".to_owned();
        Err(Error::Parquet { path: path.to_path_buf(), reason })
    })
}

/// Returns the result of a call; nothing if it panics. A panic prints nothing then: the library's reader panics on some
/// damaged files.
fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    thread_local! {
        static SILENT: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !SILENT.get() {
                default_hook(panic);
            }
        }));
    });
    SILENT.set(true);
    // Nothing that the call touched is used after a panic.
    let result = std::panic::catch_unwind(AssertUnwindSafe(call)).ok();
    SILENT.set(false);
    result
}

fn read_table(name: &'static str, bytes: Vec<u8>, path: &Path) -> Result<DataFrame, Error> {
    let wrong = |reason: String| Error::Parquet { path: path.to_path_buf(), reason };
    let unreadable = |error: ParquetError| wrong(format!("not a readable Parquet file: {error}"));
    let untrue =
        || wrong("not a readable Parquet file: a length or a count in its metadata goes beyond the file".into());
    let bytes = ::bytes::Bytes::from(bytes);
    if !footer_is_sound(&bytes) {
        return Err(untrue());
    }
    let file = SerializedFileReader::new(bytes.clone()).map_err(unreadable)?;
    let metadata = file.metadata().file_metadata();
    let entry = |key: &str| {
        let entries = metadata.key_value_metadata()?;
        entries.iter().find(|entry| entry.key == key)?.value.clone()
    };
    match entry(TABLE_KEY) {
        Some(table) if table == name => {}
        Some(table) => return Err(wrong(format!("holds the table `{table}`, not `{name}`"))),
        None => return Err(wrong("was not written by Narrows".into())),
    }
    let found = entry(SCHEMA_KEY).unwrap_or_default();
    if found != SCHEMA.to_string() {
        return Err(Error::Schema { path: path.to_path_buf(), found, known: SCHEMA });
    }
    let ranges: Vec<(u64, u64)> = file
        .metadata()
        .row_groups()
        .iter()
        .flat_map(RowGroupMetaData::columns)
        .map(ColumnChunkMetaData::byte_range)
        .collect();
    // Columns do not overlap: together they are no longer than the file.
    let total = ranges.iter().try_fold(0u64, |total, (_, length)| total.checked_add(*length));
    if total.is_none_or(|total| total > bytes.len() as u64)
        || !ranges.iter().all(|&(start, length)| pages_are_sound(&bytes, start, length))
    {
        return Err(untrue());
    }
    let groups = file.metadata().row_groups().iter();
    let rows: u64 = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).fold(0, u64::saturating_add);
    if rows > ROWS_OF_ANY_FILE.max(ROWS_A_BYTE * bytes.len() as u64) {
        return Err(wrong(format!(
            "claims {rows} rows in {} bytes, which no table that Narrows writes does",
            bytes.len()
        )));
    }
    let descriptor = metadata.schema_descr();
    let mut columns = Vec::new();
    for index in 0..descriptor.num_columns() {
        let column = descriptor.column(index);
        let optional = column.max_def_level() > 0;
        let wrong =
            |reason: String| Error::Column { path: path.to_path_buf(), column: column.name().to_owned(), reason };
        let mut values = match (column.physical_type(), optional) {
            (Physical::INT64, false) => Column::Int(Vec::new()),
            (Physical::INT64, true) => Column::OptInt(Vec::new()),
            (Physical::DOUBLE, false) => Column::Real(Vec::new()),
            (Physical::DOUBLE, true) => Column::OptReal(Vec::new()),
            (Physical::BOOLEAN, false) => Column::Flag(Vec::new()),
            (Physical::BYTE_ARRAY, false) => Column::Text(Texts::default()),
            (other, _) => return Err(wrong(format!("has type {other}, which no column here has"))),
        };
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).map_err(unreadable)?;
            let rows = group.metadata().num_rows().max(0) as usize;
            let reader = group.get_column_reader(index).map_err(|error| wrong(error.to_string()))?;
            read_part(&mut values, reader, rows).map_err(|error| wrong(error.to_string()))?;
        }
        columns.push((column.name().to_owned(), values));
    }
    let rows = file.metadata().file_metadata().num_rows();
    match columns.iter().find(|(_, column)| column.len() as i64 != rows) {
        Some((column, other)) => Err(Error::Column {
            path: path.to_path_buf(),
            column: column.clone(),
            reason: format!("has {} of {rows} rows", other.len()),
        }),
        None => Ok(DataFrame { name, columns }),
    }
}

fn read_part(column: &mut Column, reader: ColumnReader, rows: usize) -> ParquetResult<()> {
    match (column, reader) {
        (Column::Int(values), ColumnReader::Int64ColumnReader(reader)) => values.extend(all(reader, rows)?.values),
        (Column::Real(values), ColumnReader::DoubleColumnReader(reader)) => values.extend(all(reader, rows)?.values),
        (Column::Flag(values), ColumnReader::BoolColumnReader(reader)) => values.extend(all(reader, rows)?.values),
        (Column::OptInt(values), ColumnReader::Int64ColumnReader(reader)) => values.extend(join(all(reader, rows)?)),
        (Column::OptReal(values), ColumnReader::DoubleColumnReader(reader)) => values.extend(join(all(reader, rows)?)),
        (Column::Text(texts), ColumnReader::ByteArrayColumnReader(reader)) => {
            for text in all(reader, rows)?.values {
                texts.push(text.as_utf8()?);
            }
        }
        _ => return Err(ParquetError::General("the type changes within the file".into())),
    }
    Ok(())
}

/// Values of a column chunk.
struct Chunk<T> {
    values: Vec<T>,
    /// Definition level of each row of an optional column: 0 without a value.
    levels: Vec<i16>,
}

/// All values of a column chunk.
fn all<T: DataType>(mut reader: ColumnReaderImpl<T>, rows: usize) -> ParquetResult<Chunk<T::T>> {
    let (mut values, mut levels, mut read) = (Vec::new(), Vec::new(), 0);
    while read < rows {
        let (records, _, _) = reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!("ends after {read} of {rows} rows")));
        }
        read += records;
    }
    Ok(Chunk { values, levels })
}

fn join<T>(chunk: Chunk<T>) -> Vec<Option<T>> {
    let mut values = chunk.values.into_iter();
    chunk.levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(frame: &DataFrame) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(frame, &mut bytes).unwrap();
        bytes
    }

    fn frame() -> impl Strategy<Value = DataFrame> {
        let row = (any::<i64>(), any::<Option<i64>>(), any::<f64>(), any::<Option<f64>>(), any::<bool>(), "[a-d]{0,2}");
        prop::collection::vec(row, 0..60).prop_map(|rows| {
            let columns = vec![
                ("int".to_owned(), Column::Int(rows.iter().map(|row| row.0).collect())),
                ("opt_int".to_owned(), Column::OptInt(rows.iter().map(|row| row.1).collect())),
                ("real".to_owned(), Column::Real(rows.iter().map(|row| row.2).collect())),
                ("opt_real".to_owned(), Column::OptReal(rows.iter().map(|row| row.3).collect())),
                ("flag".to_owned(), Column::Flag(rows.iter().map(|row| row.4).collect())),
                ("text".to_owned(), Column::Text(rows.iter().map(|row| row.5.as_str()).collect())),
            ];
            DataFrame { name: "any", columns }
        })
    }

    proptest! {
        #[test]
        fn written_tables_read_back_and_are_deterministic(frame in frame()) {
            let bytes = bytes_of(&frame);
            prop_assert_eq!(&bytes, &bytes_of(&frame));
            prop_assert_eq!(read("any", bytes, Path::new("x.parquet")).unwrap(), frame);
        }

        #[test]
        fn a_cut_file_is_an_error(frame in frame(), cut in 0.0..1.0f64) {
            let bytes = bytes_of(&frame);
            let keep = (bytes.len() as f64 * cut) as usize;
            let error = read("any", bytes[..keep].to_vec(), Path::new("x.parquet")).unwrap_err();
            prop_assert!(error.to_string().starts_with("`x.parquet`"), "{}", error);
        }
    }

    /// On a full disk the error has the system's words, wherever the library notices.
    #[test]
    fn write_errors_are_returned() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let frame = DataFrame { name: "any", columns: vec![("a".to_owned(), Column::Int((0..99_999).collect()))] };
        let all = bytes_of(&frame).len();
        for room in [0, 10, all / 2, all - 1] {
            let error = write(&frame, &mut Full(room)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}: {error}");
            assert!(!error.to_string().contains("External"), "{error}");
        }
        write(&frame, &mut Full(all)).unwrap();
    }

    #[test]
    fn groups_of_rows_join() {
        let many = (0..ROWS_A_GROUP as i64 + 3).collect::<Vec<_>>();
        let gaps = many.iter().map(|&row| (row % 3 == 0).then_some(row)).collect();
        let columns = vec![("a".to_owned(), Column::Int(many)), ("b".to_owned(), Column::OptInt(gaps))];
        let frame = DataFrame { name: "any", columns };
        assert_eq!(read("any", bytes_of(&frame), Path::new("x")).unwrap(), frame);
    }

    #[test]
    fn more_rows_than_the_bytes_can_hold_are_refused() {
        let frame = DataFrame { name: "any", columns: vec![("a".to_owned(), Column::Flag(vec![true; 3 << 19]))] };
        let error = read("any", bytes_of(&frame), Path::new("x.parquet")).unwrap_err().to_string();
        assert!(error.contains("claims 1572864 rows in"), "{error}");
    }

    #[test]
    fn another_table_is_refused() {
        let frame = DataFrame { name: "flows", columns: vec![("a".to_owned(), Column::Int(vec![1]))] };
        let error = read("ports", bytes_of(&frame), Path::new("port_samples.parquet")).unwrap_err();
        assert_eq!(error.to_string(), "`port_samples.parquet`: holds the table `flows`, not `ports`");
    }

    #[test]
    fn parquet_file_has_creator_and_no_timestamp() {
        let frame = DataFrame { name: "any", columns: vec![("a".to_owned(), Column::Int(vec![1]))] };
        let file = SerializedFileReader::new(::bytes::Bytes::from(bytes_of(&frame))).unwrap();
        assert_eq!(file.metadata().file_metadata().created_by(), Some(CREATED_BY));
    }
}
