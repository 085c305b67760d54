//! Tables of measured values: a row per scheme, a part per point of the grid, and in each cell the mean over seeds with its
//! 95 % confidence interval.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::claims::possible::{MetricNames, dimension};
use crate::claims::{EvalError, Expr, ParseError, Runs, class_text, expression_of_a_run, is_of_few, value};
use crate::mean::Mean;
use crate::quantity::WrittenValue;
use crate::stats::FEW;
use crate::store::RunResults;
use crate::summary::is_deterministic;

/// A table that a scenario requests.
#[derive(Clone, PartialEq, Debug)]
pub struct TableSpec {
    /// Its heading.
    pub title: String,
    /// The only variants to show, without the grid's points; all runs if none.
    pub only: Option<Vec<String>>,
    /// Without these variants.
    pub without: Vec<String>,
    columns: Vec<AverageColumn>,
}

#[derive(Clone, PartialEq, Debug)]
struct AverageColumn {
    label: String,
    /// Expression as written.
    text: String,
    value: Expr,
    better: Option<Better>,
}

/// A column that no run can have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImpossibleColumn<'a> {
    /// Its expression, as written.
    pub text: &'a str,
    /// The reason.
    pub error: EvalError,
}

/// The better values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Small ones.
    Less,
    /// Large ones.
    More,
}

/// An error in a table of a file.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// The entry is not a valid table.
    #[error("table `{title}`: {reason}")]
    Form {
        /// Its title, or `?`.
        title: String,
        /// The error.
        reason: String,
    },
    /// The expression of a column is wrong.
    #[error("table `{title}`, column `{column}`: {error}")]
    Expression {
        /// Its title.
        title: String,
        /// The column's label.
        column: String,
        /// The error and its location.
        error: ParseError,
    },
}

impl TableError {
    /// The same in a sentence, without the text of an expression.
    pub fn brief(&self) -> String {
        match self {
            Self::Form { .. } => self.to_string(),
            Self::Expression { title, column, error } => {
                format!("table `{title}`, column `{column}`: {}", error.message)
            }
        }
    }

    /// The wrong expression, if one is.
    pub fn expression(&self) -> Option<&ParseError> {
        match self {
            Self::Form { .. } => None,
            Self::Expression { error, .. } => Some(error),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    title: String,
    only: Option<Vec<String>>,
    #[serde(default)]
    without: Vec<String>,
    columns: Vec<RawColumn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    label: String,
    value: String,
    better: Option<Better>,
}

impl TableSpec {
    /// A table from a file, as JSON.
    ///
    /// # Errors
    /// When a key is missing, unknown or of the wrong type, or an expression is wrong.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, TableError> {
        let title = json.get("title").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
        let form = |reason: String| TableError::Form { title: title.clone(), reason };
        let raw: RawTable = serde_path_to_error::deserialize(json).map_err(|error| form(error.to_string()))?;
        let column = |raw: RawColumn| {
            let value = expression_of_a_run(&raw.value).map_err(|error| TableError::Expression {
                title: title.clone(),
                column: raw.label.clone(),
                error,
            })?;
            Ok(AverageColumn { label: raw.label, value, text: raw.value, better: raw.better })
        };
        let columns = raw.columns.into_iter().map(column).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Err(form("no columns".into()));
        }
        Ok(Self { title: raw.title, only: raw.only, without: raw.without, columns })
    }

    /// The table of an experiment that requests none: completion times and losses.
    pub fn of_completion_times() -> Self {
        let columns = [
            ("ended", "all.completed / all.count"),
            ("FCT mean", "all.fct.mean"),
            ("FCT p99", "all.fct.p99"),
            ("intra mean", "intra.fct.mean"),
            ("intra p99", "intra.fct.p99"),
            ("inter mean", "inter.fct.mean"),
            ("inter p99", "inter.fct.p99"),
            ("drops", "network.drops"),
            ("timeouts", "network.timeouts"),
        ];
        Self::of_columns("Completion times", columns.map(|(label, value)| (label.to_owned(), value.to_owned())))
    }

    /// The tables that show results of these runs: completion times over several seeds, size bins, and iterations and end-to-end
    /// times of jobs and schedules.
    pub fn defaults(runs: &[RunResults]) -> Vec<Self> {
        let names = |of: &dyn Fn(&RunResults) -> Vec<String>| {
            let mut known: Vec<String> = Vec::new();
            for name in runs.iter().flat_map(of) {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            known
        };
        let bins = names(&|run| run.summary.flows.sizes.iter().map(|(bin, _)| bin.to_owned()).collect());
        let jobs = names(&|run| run.summary.training().map(|(job, _)| job.to_owned()).collect());
        let schedules = names(&|run| run.summary.schedules.iter().map(|(name, _)| name.to_owned()).collect());
        let has_seeds = runs.iter().any(|run| run.summary.seed != runs[0].summary.seed);
        let mut specs = Vec::new();
        specs.extend(has_seeds.then(Self::of_completion_times));
        let of_bin = |bin: &String| {
            let stat = |stat: &str| (format!("{bin}: {stat}"), format!("{stat}({}.slowdown)", class_text(bin)));
            [stat("p50"), stat("p99")]
        };
        if !bins.is_empty() {
            specs.push(Self::of_columns("Slowdown by size bin", bins.iter().flat_map(of_bin)));
        }
        let of_job = |job: &String| {
            let column = |label: &str, key: &str| (format!("{job} {label}"), format!("{}.{key}", class_text(job)));
            let iterations = [column("iteration", "iteration.mean"), column("p99", "iteration.p99")];
            iterations.into_iter().chain([column("compute", "compute"), column("exposed", "exposed")])
        };
        let of_schedule = |name: &String| (format!("{name} end to end"), format!("{}.end_to_end", class_text(name)));
        if !jobs.is_empty() || !schedules.is_empty() {
            let columns = jobs.iter().flat_map(of_job).chain(schedules.iter().map(of_schedule));
            specs.push(Self::of_columns("Iterations and schedules", columns));
        }
        specs
    }

    fn of_columns(title: &str, columns: impl IntoIterator<Item = (String, String)>) -> Self {
        let column = |(label, text): (String, String)| {
            let value = expression_of_a_run(&text);
            debug_assert!(value.is_ok(), "{value:?}");
            Some(AverageColumn { label, value: value.ok()?, text, better: None })
        };
        let columns = columns.into_iter().filter_map(column).collect();
        Self { title: title.to_owned(), only: None, without: Vec::new(), columns }
    }

    /// Refuses a column that no run can have.
    ///
    /// # Errors
    /// As [`dimension`].
    pub fn check_possible(&self, names: &MetricNames) -> Result<(), ImpossibleColumn<'_>> {
        self.columns.iter().try_for_each(|column| {
            let wrong = |error| ImpossibleColumn { text: &column.text, error };
            dimension(&column.value, names).map(drop).map_err(wrong)
        })
    }

    /// The metric of each column.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.value.to_string()).collect()
    }

    /// A run's value in a column, as tables show it.
    pub(crate) fn value_of(&self, column: usize, run: &RunResults) -> Option<f64> {
        let found = value(&self.columns[column].value, &Runs::named("", run)).ok()?;
        Some(found.as_in_tables().0)
    }

    /// Returns whether the table shows a run.
    pub(crate) fn shows(&self, run: &RunResults) -> bool {
        let variant = run.manifest.point.get("variant").and_then(serde_json::Value::as_str);
        let named = |names: &[String]| variant.is_some_and(|variant| names.iter().any(|name| name == variant));
        self.only.as_ref().is_none_or(|only| named(only)) && !named(&self.without)
    }

    /// Returns the table of these runs: parts in the order of the points' first appearance, rows in that of the schemes.
    pub fn of(&self, runs: &[RunResults]) -> AveragesTable {
        let parts = by_point(runs.iter().filter(|run| self.shows(run)));
        let cell = |column: &AverageColumn, runs: &[&RunResults]| {
            let values = runs.iter().map(|run| value(&column.value, &Runs::named("", run)).ok());
            let is_of_few = runs.iter().any(|run| is_of_few(&column.value, &run.summary));
            Mean::of(&values.collect::<Vec<_>>()).map(|of| MeanCell { of, is_of_few })
        };
        let row = |(_, runs): (String, Vec<&RunResults>)| {
            let deterministic = is_deterministic(runs.iter().map(|run| &run.summary));
            // Seeds that change nothing are no sample, and have no interval.
            let certain = |cell: MeanCell| {
                let of = Mean { margin: cell.of.margin.filter(|_| !deterministic), ..cell.of };
                MeanCell { of, ..cell }
            };
            SchemeAverages {
                label: runs.first().map_or_else(String::new, |run| run.manifest.label.clone()),
                deterministic,
                cells: self.columns.iter().map(|column| cell(column, &runs).map(certain)).collect(),
            }
        };
        let part = |(point, rows): (String, Schemes<'_>)| {
            let rows: Vec<SchemeAverages> = rows.into_iter().map(row).collect();
            let best = (0..self.columns.len()).map(|column| self.columns[column].best(&rows, column)).collect();
            PointAverages { point, rows, best }
        };
        AveragesTable {
            title: self.title.clone(),
            columns: self.columns.iter().map(|column| column.label.clone()).collect(),
            parts: parts.into_iter().map(part).collect(),
        }
    }
}

impl AverageColumn {
    /// Returns the row with the best mean, if the column has a better direction, no other row is as good and another
    /// row has a value.
    fn best(&self, rows: &[SchemeAverages], column: usize) -> Option<usize> {
        let better = self.better?;
        let amounts =
            rows.iter().enumerate().filter_map(|(row, it)| Some((row, it.cells[column].as_ref()?.of.mean.amount)));
        let known: Vec<(usize, f64)> = amounts.collect();
        let (&(first, amount), rest) = known.split_first()?;
        let best = rest.iter().fold((first, amount), |best, &(row, amount)| {
            let wins = if better == Better::Less { amount < best.1 } else { amount > best.1 };
            if wins { (row, amount) } else { best }
        });
        let is_unique = known.iter().filter(|(_, amount)| amount.total_cmp(&best.1).is_eq()).count() == 1;
        (is_unique && known.len() > 1).then_some(best.0)
    }
}

/// The runs of one point of the grid, by their schemes' names.
pub(crate) type Schemes<'a> = Vec<(String, Vec<&'a RunResults>)>;

/// Groups runs by point and then by scheme, both in the order of their first appearance.
pub(crate) fn by_point<'a>(runs: impl IntoIterator<Item = &'a RunResults>) -> Vec<(String, Schemes<'a>)> {
    let mut points: Vec<(String, Schemes<'a>)> = Vec::new();
    for run in runs {
        let scheme = run.manifest.point.get("scheme").and_then(serde_json::Value::as_str);
        let point = entry_mut(&mut points, &point_of(run));
        entry_mut(point, scheme.unwrap_or(&run.manifest.run)).push(run);
    }
    points
}

/// The indices in `runs` for each point of the grid, points in the order of their first appearance.
pub fn points(runs: &[RunResults]) -> Vec<Vec<usize>> {
    let mut points: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        entry_mut(&mut points, &point_of(run)).push(number);
    }
    points.into_iter().map(|(_, indices)| indices).collect()
}

/// A run's place in the grid but for its scheme and seed: `load = 0.4`, or nothing.
pub fn point_of(run: &RunResults) -> String {
    let is_excluded = |key: &str| key == "scheme" || key.rsplit('.').next() == Some("seed");
    let shown = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parts = run.manifest.point.iter().filter(|(key, _)| !is_excluded(key));
    parts.map(|(key, value)| format!("{key} = {}", shown(value))).collect::<Vec<_>>().join(", ")
}

/// The entry of that name, made at the end if there is none.
pub(crate) fn entry_mut<'a, T: Default>(entries: &'a mut Vec<(String, T)>, name: &str) -> &'a mut T {
    let index = entries.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        entries.push((name.to_owned(), T::default()));
        entries.len() - 1
    });
    &mut entries[index].1
}

/// A table of averages.
#[derive(Clone, PartialEq, Debug)]
pub struct AveragesTable {
    /// Its heading.
    pub title: String,
    /// The columns' labels.
    pub columns: Vec<String>,
    /// One part a point of the grid.
    pub parts: Vec<PointAverages>,
}

/// The schemes at one point of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct PointAverages {
    /// The point, such as `load = 0.4`; empty without a grid.
    pub point: String,
    /// One row a scheme.
    pub rows: Vec<SchemeAverages>,
    /// For each column, the row with the best mean, if the column has a better direction and a single best row.
    pub best: Vec<Option<usize>>,
}

/// A scheme's averages.
#[derive(Clone, PartialEq, Debug)]
pub struct SchemeAverages {
    /// The scheme's display name.
    pub label: String,
    /// Set if its runs have several seeds, and no seed changes them.
    pub deterministic: bool,
    /// The mean of each column; none where no run has a value.
    pub cells: Vec<Option<MeanCell>>,
}

/// A mean in a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanCell {
    /// Over seeds.
    pub of: Mean,
    /// Set if it is a 99th percentile of fewer than [`FEW`] flows in some run.
    pub is_of_few: bool,
}

impl std::fmt::Display for MeanCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.of, if self.is_of_few { FEW_SIGN } else { "" })
    }
}

/// Follows a 99th percentile that one of the slowest flows decides.
pub const FEW_SIGN: &str = " ?";

/// Explains [`FEW_SIGN`].
pub fn explain_few() -> String {
    format!("?: fewer than {FEW} values, so p99 is the maximum")
}

impl SchemeAverages {
    /// The scheme's label, and that seeds do not change its runs where that is so.
    pub fn name(&self) -> String {
        if self.deterministic { format!("{} (deterministic)", self.label) } else { self.label.clone() }
    }
}

/// A cell of a table, as a record of results has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCell<'a> {
    /// The point of the grid; empty without a grid.
    pub point: &'a str,
    /// The scheme's display name.
    pub scheme: &'a str,
    /// The column's label.
    pub metric: &'a str,
    /// The mean over seeds with its interval.
    pub value: WrittenValue,
    /// Remarks: `deterministic`, `best`, `p99 of few`, `2 of 5 seeds`.
    pub notes: Vec<String>,
}

impl AveragesTable {
    /// Returns the cells that have a value: points, their schemes, and the columns of each in order.
    pub fn cells(&self) -> Vec<RecordedCell<'_>> {
        let mut cells = Vec::new();
        for part in &self.parts {
            for (index, row) in part.rows.iter().enumerate() {
                for (metric, (cell, &best)) in self.columns.iter().zip(row.cells.iter().zip(&part.best)) {
                    let Some(cell) = cell else { continue };
                    let Mean { count, missing, .. } = cell.of;
                    let notes = [
                        row.deterministic.then(|| "deterministic".to_owned()),
                        (best == Some(index)).then(|| "best".to_owned()),
                        cell.is_of_few.then(|| "p99 of few".to_owned()),
                        (missing > 0).then(|| format!("{count} of {} seeds", count + missing)),
                    ];
                    let notes = notes.into_iter().flatten().collect();
                    let value = cell.of.written();
                    cells.push(RecordedCell { point: &part.point, scheme: &row.label, metric, value, notes });
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use serde_json::json;

    /// The cells of a table, one per line.
    fn shown(table: &AveragesTable) -> String {
        let line = |it: RecordedCell<'_>| {
            let half = it.value.half.map_or_else(String::new, |half| format!(" ± {half}"));
            format!("{}|{}|{}|{}{half}|{}\n", it.point, it.scheme, it.metric, it.value.amount, it.notes.join("; "))
        };
        table.cells().into_iter().map(line).collect()
    }

    fn table(columns: &serde_json::Value) -> Result<TableSpec, TableError> {
        TableSpec::from_json(&json!({ "title": "T", "columns": columns }))
    }

    #[test]
    fn completion_time_table_parses() {
        let table = TableSpec::of_completion_times();
        assert!(table.columns.iter().all(|column| !column.value.is_constant()));
    }

    #[test]
    fn rows_are_schemes_and_parts_are_points() {
        let at = |scheme: &str, load: f64, seed: u64, drops: u64| {
            let mut run = testbed::results();
            run.manifest.label = scheme.to_uppercase();
            run.manifest.point.0 =
                vec![("scheme".into(), json!(scheme)), ("load".into(), json!(load)), ("seed".into(), json!(seed))];
            run.summary.network.drops = drops;
            run.summary.seed = seed;
            // B is not the same run with each seed, though it loses as many packets.
            run.summary.network.timeouts = seed;
            run
        };
        let runs = [at("a", 0.4, 1, 3), at("b", 0.4, 1, 1), at("a", 0.8, 1, 1), at("a", 0.4, 2, 5), at("b", 0.4, 2, 1)];
        let averages =
            table(&json!([{ "label": "lost|", "value": "network.drops", "better": "less" }])).unwrap().of(&runs);
        let points: Vec<_> = averages.parts.iter().map(|part| (part.point.as_str(), part.rows.len())).collect();
        assert_eq!(points, [("load = 0.4", 2), ("load = 0.8", 1)]);
        let first: Vec<_> = averages.parts[0]
            .rows
            .iter()
            .map(|row| (row.label.as_str(), row.cells[0].unwrap().of.mean.amount))
            .collect();
        assert_eq!(
            (first, averages.parts[0].best[0], averages.parts[1].best[0]),
            (vec![("A", 4.0), ("B", 1.0)], Some(1), None)
        );
        let expected = "load = 0.4|A|lost||4 ± 13|\nload = 0.4|B|lost||1 ± 0|best\nload = 0.8|A|lost||1|\n";
        assert_eq!(shown(&averages), expected);
        // Where seeds change nothing, there is no interval.
        let mut same = [at("a", 0.4, 1, 3), at("a", 0.4, 2, 3), at("a", 0.4, 3, 3)];
        for run in &mut same {
            run.summary.network.timeouts = 0;
        }
        let averages = table(&json!([{ "label": "lost", "value": "network.drops" }])).unwrap();
        assert_eq!(shown(&averages.of(&same)), "load = 0.4|A|lost|3|deterministic\n");
        assert_eq!(shown(&averages.of(&same[..1])), "load = 0.4|A|lost|3|\n");
        let column = json!([{ "label": "lost", "value": "network.drops" }]);
        let points = |more: serde_json::Value| {
            let mut spec = json!({ "title": "T", "columns": column });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut runs = vec![at("a", 0.4, 1, 3), at("a", 0.4, 1, 3), at("a", 0.4, 1, 3)];
            for (run, name) in runs[1..].iter_mut().zip(["far", "near"]) {
                run.manifest.point.0.push(("variant".into(), json!(name)));
            }
            let parts = TableSpec::from_json(&spec).unwrap().of(&runs).parts;
            parts.into_iter().map(|part| part.point.replace("load = 0.4", "")).collect::<Vec<_>>()
        };
        assert_eq!(points(json!({})), ["", ", variant = far", ", variant = near"]);
        assert_eq!(points(json!({ "only": ["near"] })), [", variant = near"]);
        assert_eq!(points(json!({ "without": ["near"] })), ["", ", variant = far"]);
    }

    /// The three ways to write a metric have the same column, which marks a 99th percentile of few flows.
    #[test]
    fn columns_accept_every_metric() {
        let run = testbed::results();
        let cell = |metric: &str| {
            let averages = table(&json!([{ "label": "x", "value": metric }])).unwrap().of(std::slice::from_ref(&run));
            (averages.parts[0].rows[0].cells[0].unwrap().to_string(), shown(&averages).contains("p99 of few"))
        };
        let (p99, legend) = cell("it.small.slowdown.p99");
        assert!(p99.ends_with(FEW_SIGN) && legend, "{p99}");
        for written in ["small.slowdown.p99", "p99(small.slowdown)", "p99(it.small.slowdown)"] {
            assert_eq!(cell(written), (p99.clone(), true), "{written}");
        }
        let (mean, legend) = cell("mean(small.slowdown)");
        assert!(!mean.contains('?') && !legend, "{mean}");
        let mut many = run.clone();
        many.summary.flows.sizes.0[0].1.completed = 100;
        let averages = table(&json!([{ "label": "x", "value": "p99(small.slowdown)" }])).unwrap();
        assert!(!shown(&averages.of(&[many.clone()])).contains("few"));
        // One run of few is enough.
        assert!(shown(&averages.of(&[many, run.clone()])).contains("few"));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |columns: serde_json::Value| table(&columns).unwrap_err().to_string();
        assert_eq!(wrong(json!([])), "table `T`: no columns");
        let other = wrong(json!([{ "label": "x", "value": "uno.network.drops" }]));
        assert!(other.starts_with("table `T`, column `x`: column 5: expected a metric of flows"), "{other}");
        let bad = wrong(json!([{ "label": "x", "value": "inter.fct.p9" }]));
        assert!(bad.starts_with("table `T`, column `x`: column 11: expected a statistic"), "{bad}");
        assert!(wrong(json!([{ "label": "x", "value": "1", "best": "less" }])).contains("unknown field `best`"));
    }
}
