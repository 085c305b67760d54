//! A table of columns, as written to and read from a Parquet file.

use std::collections::BTreeMap;

use crate::input::{PointColumn, PointValue};

/// The values of one column. `Opt` columns may have gaps.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Column {
    Int(Vec<i64>),
    OptInt(Vec<Option<i64>>),
    Real(Vec<f64>),
    OptReal(Vec<Option<f64>>),
    Flag(Vec<bool>),
    Text(Texts),
}

impl Column {
    /// Points' values, of the type of `template`. One that is missing or of another type is a gap, or an empty text.
    pub(crate) fn of_points<'a>(template: &PointValue, values: impl Iterator<Item = Option<&'a PointValue>>) -> Self {
        match template {
            PointValue::Text(_) => Self::Text(
                values.map(|value| if let Some(PointValue::Text(text)) = value { text } else { "" }).collect(),
            ),
            PointValue::Whole(_) => Self::OptInt(
                values.map(|value| if let Some(PointValue::Whole(number)) = value { *number } else { None }).collect(),
            ),
            PointValue::Real(_) => Self::OptReal(
                values.map(|value| if let Some(PointValue::Real(number)) = value { *number } else { None }).collect(),
            ),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::OptInt(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::OptReal(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(values) => values.rows.len(),
        }
    }
}

/// Texts with few distinct values.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Texts {
    /// The distinct ones in order of first appearance.
    pub(crate) names: Vec<String>,
    /// By row, an index into `names`.
    pub(crate) rows: Vec<u32>,
    known: BTreeMap<String, u32>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        let index = self.known.get(text).copied().unwrap_or_else(|| {
            let index = self.names.len() as u32;
            self.names.push(text.to_owned());
            self.known.insert(text.to_owned(), index);
            index
        });
        self.rows.push(index);
    }

    pub(crate) fn get(&self, row: usize) -> &str {
        &self.names[self.rows[row] as usize]
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut column = Self::default();
        texts.into_iter().for_each(|text| column.push(text));
        column
    }
}

/// Named columns of equal length.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct DataFrame {
    /// The table's name, as in its file's metadata.
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<(String, Column)>,
}

impl DataFrame {
    /// The same after columns that have one value.
    pub(crate) fn with_point_columns(mut self, columns: &[PointColumn]) -> Self {
        let rows = self.rows();
        let column = |PointColumn { name, value }: &PointColumn| {
            (name.clone(), Column::of_points(value, std::iter::repeat_n(Some(value), rows)))
        };
        self.columns.splice(0..0, columns.iter().map(column));
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }
}
