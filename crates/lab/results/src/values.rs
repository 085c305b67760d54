//! Values of a published table by cell and seed. They let a new scheme, or a repaired law, be scored without running the
//! others again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::averages::{TableSpec, by_point};
use crate::claims::{Expr, expression_of_a_run};
use crate::score::{Best, BestCell, Reference, ScoreError};
use crate::store::RunResults;

/// The tables of a figure at one scale.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableValues {
    /// The scenario's name.
    pub scenario: String,
    /// The scale at which it was run.
    pub scale: String,
    /// Versions of the code that produced the values, by part: `engine`, `law NAME`, `feature NAME`. More than one if runs of
    /// several builds are among them.
    pub code: BTreeMap<String, Vec<String>>,
    /// The tables.
    pub table: Vec<TableCells>,
}

/// A table's values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableCells {
    /// Its heading.
    pub title: String,
    /// A metric of a run for each column, in the unit of tables: ns, bytes, bit/s, or none.
    pub metrics: Vec<String>,
    /// Points of the grid.
    pub point: Vec<PointCells>,
}

/// A table's values at a point of the grid.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointCells {
    /// The point, such as `load = 0.4`; empty without a grid.
    pub point: String,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// By scheme, then by metric, then by seed. A run without a value has NaN.
    pub schemes: BTreeMap<String, Vec<Vec<f64>>>,
}

impl TableValues {
    /// The values of these tables in these runs.
    pub fn of(scale: &str, specs: &[TableSpec], runs: &[RunResults]) -> Self {
        let scenario = runs.first().map_or_else(String::new, |run| run.manifest.scenario.clone());
        let mut code: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for versions in runs.iter().map(|run| &run.manifest.code) {
            let laws = versions.laws.iter().map(|(name, version)| (format!("law {name}"), version));
            let features = versions.features.iter().map(|(name, version)| (format!("feature {name}"), version));
            for (part, version) in laws.chain(features).chain([("engine".to_owned(), &versions.engine)]) {
                let known = code.entry(part).or_default();
                if !known.contains(version) {
                    known.push(version.clone());
                }
            }
        }
        Self { scenario, scale: scale.to_owned(), code, table: specs.iter().map(|spec| of_table(spec, runs)).collect() }
    }

    /// The best value of each of these metrics at each point, except for newcomers, as a reference for scores. Metrics are
    /// from the first table that has all of them.
    ///
    /// # Errors
    /// If no table has all of the metrics, one cannot be read, a newcomer is unknown, or no scheme is left to compare with.
    pub fn reference(&self, cells: &[String], newcomers: &[String]) -> Result<Reference, ScoreError> {
        let parsed = |metric: &String| {
            expression_of_a_run(metric).map_err(|error| ScoreError::Metric { metric: metric.clone(), error })
        };
        let wanted: Vec<Expr> = cells.iter().map(parsed).collect::<Result<_, _>>()?;
        let mut found = None;
        for table in &self.table {
            let known: Vec<Expr> = table.metrics.iter().map(parsed).collect::<Result<_, _>>()?;
            let indices: Option<Vec<usize>> =
                wanted.iter().map(|expr| known.iter().position(|other| other == expr)).collect();
            found = found.or(indices.map(|indices| (table, indices)));
        }
        let Some((table, indices)) = found else {
            let known = self.table.iter().flat_map(|table| table.metrics.clone()).collect::<Vec<_>>().join(", ");
            return Err(ScoreError::NoTable { known });
        };
        let best = |point: &PointCells| {
            let names: Vec<&str> = point.schemes.keys().map(String::as_str).collect();
            let known = || names.join(", ");
            if let Some(name) = newcomers.iter().find(|name| !point.schemes.contains_key(*name)) {
                return Err(ScoreError::Newcomer { name: name.clone(), known: known() });
            }
            let cell = |&index: &usize| {
                let mut best: Option<(&String, &Vec<f64>)> = None;
                for (scheme, cells) in point.schemes.iter().filter(|(name, _)| !newcomers.contains(name)) {
                    let by_seed = cells.get(index).filter(|it| it.iter().all(|it| it.is_finite() && *it > 0.0));
                    let Some(by_seed) = by_seed else {
                        return Err(ScoreError::Value {
                            run: if point.point.is_empty() {
                                format!("`{scheme}`")
                            } else {
                                format!("`{scheme}` at `{}`", point.point)
                            },
                            metric: table.metrics[index].clone(),
                            reason: "a seed has no value, or none over zero".to_owned(),
                        });
                    };
                    if best.is_none_or(|(_, best)| sum(by_seed) < sum(best)) {
                        best = Some((scheme, by_seed));
                    }
                }
                let (scheme, by_seed) = best.ok_or_else(|| ScoreError::Newcomers { known: known() })?;
                Ok(BestCell { scheme: scheme.clone(), by_seed: by_seed.clone() })
            };
            let cells: Vec<BestCell> = indices.iter().map(cell).collect::<Result<_, _>>()?;
            Ok(Best { point: point.point.clone(), seeds: point.seeds.clone(), cells })
        };
        let points = table.point.iter().map(best).collect::<Result<_, _>>()?;
        let reference = Reference { scenario: self.scenario.clone(), cells: cells.to_vec(), points };
        reference.check(&self.scenario)?;
        Ok(reference)
    }

    /// Returns the file: TOML with one line per scheme.
    pub fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("scenario = {}\nscale = {}\n", quoted(&self.scenario), quoted(&self.scale));
        text.push_str("\n[code]\n");
        for (part, versions) in &self.code {
            let versions: Vec<String> = versions.iter().map(|version| quoted(version)).collect();
            let _ = writeln!(text, "{} = [{}]", quoted(part), versions.join(", "));
        }
        for table in &self.table {
            let _ = writeln!(text, "\n[[table]]\ntitle = {}\nmetrics = [", quoted(&table.title));
            for metric in &table.metrics {
                let _ = writeln!(text, "  {},", quoted(metric));
            }
            text.push_str("]\n");
            for point in &table.point {
                let _ =
                    writeln!(text, "\n[[table.point]]\npoint = {}\nseeds = {:?}", quoted(&point.point), point.seeds);
                text.push_str("[table.point.schemes]\n");
                for (scheme, cells) in &point.schemes {
                    let cells: Vec<String> = cells.iter().map(|it| list(it)).collect();
                    let _ = writeln!(text, "{} = [{}]", quoted(scheme), cells.join(", "));
                }
            }
        }
        text
    }
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A list of numbers that are read back as they are.
fn list(values: &[f64]) -> String {
    let number = |value: &f64| if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") };
    format!("[{}]", values.iter().map(number).collect::<Vec<_>>().join(", "))
}

fn of_table(spec: &TableSpec, runs: &[RunResults]) -> TableCells {
    let of_point = |(point, schemes): (String, crate::averages::Schemes<'_>)| {
        let mut seeds: Vec<u64> =
            schemes.iter().flat_map(|(_, runs)| runs.iter().map(|run| run.summary.seed)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let of_scheme = |(scheme, runs): (String, Vec<&RunResults>)| {
            let of_seed = |column: usize, seed: u64| {
                let run = runs.iter().find(|run| run.summary.seed == seed);
                run.and_then(|run| spec.value_of(column, run)).unwrap_or(f64::NAN)
            };
            let of_column = |column| seeds.iter().map(|&seed| of_seed(column, seed)).collect();
            (scheme, (0..spec.metrics().len()).map(of_column).collect())
        };
        PointCells { point, seeds: seeds.clone(), schemes: schemes.into_iter().map(of_scheme).collect() }
    };
    let shown = runs.iter().filter(|run| spec.shows(run));
    TableCells {
        title: spec.title.clone(),
        metrics: spec.metrics(),
        point: by_point(shown).into_iter().map(of_point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use serde_json::json;

    fn run(scheme: &str, load: f64, seed: u64, drops: u64) -> RunResults {
        let mut run = testbed::results();
        run.manifest.point.0 =
            vec![("scheme".into(), json!(scheme)), ("load".into(), json!(load)), ("seed".into(), json!(seed))];
        run.summary.seed = seed;
        run.summary.network.drops = drops;
        run
    }

    fn values() -> TableValues {
        let columns = json!([
            { "label": "lost", "value": "it.network.drops" },
            { "label": "share", "value": "it.network.drops / it.network.data_packets" },
        ]);
        let spec = TableSpec::from_json(&json!({ "title": "Losses", "columns": columns })).unwrap();
        let runs =
            [run("a", 0.4, 1, 8), run("a", 0.4, 2, 4), run("b", 0.4, 1, 2), run("b", 0.4, 2, 6), run("c", 0.4, 2, 1)];
        TableValues::of("quick", &[spec], &runs)
    }

    #[test]
    fn values_are_by_point_scheme_and_seed() {
        let values = values();
        let point = &values.table[0].point[0];
        assert_eq!((point.point.as_str(), &point.seeds[..]), ("load = 0.4", &[1, 2][..]));
        assert_eq!(point.schemes["a"][0], [8.0, 4.0]);
        assert!(point.schemes["c"][0][0].is_nan(), "no run of this seed");
        assert_eq!(values.table[0].metrics, ["network.drops", "network.drops / network.data_packets"]);
    }

    #[test]
    fn the_file_is_read_back() {
        let values = values();
        let read: TableValues = toml_of(&values.text());
        assert_eq!(read.text(), values.text());
        assert_eq!(read.table[0].point[0].schemes["b"], values.table[0].point[0].schemes["b"]);
    }

    /// Reads with `toml_edit`, as `narrows score` does.
    fn toml_of(text: &str) -> TableValues {
        toml_edit::de::from_str(text).unwrap()
    }

    #[test]
    fn reference_is_the_best_cell_of_known_schemes() {
        let values = values();
        let cells = ["network.drops".to_owned()];
        let best = |newcomers: &[String]| {
            let reference = values.reference(&cells, newcomers).unwrap();
            let cell = reference.points[0].cells[0].clone();
            (cell.scheme, cell.by_seed)
        };
        // `c` has no run of the first seed, so it cannot be compared.
        let incomplete = values.reference(&cells, &[]);
        assert!(matches!(&incomplete, Err(ScoreError::Value { run, .. }) if run.contains("`c`")), "{incomplete:?}");
        let (b, c) = ("b".to_owned(), "c".to_owned());
        assert_eq!(best(std::slice::from_ref(&c)), ("b".to_owned(), vec![2.0, 6.0]));
        assert_eq!(best(&[b, c.clone()]), ("a".to_owned(), vec![8.0, 4.0]));
        assert!(matches!(values.reference(&cells, &["x".to_owned()]), Err(ScoreError::Newcomer { .. })));
        let unknown = values.reference(&["network.timeouts".to_owned()], &[]);
        assert!(matches!(unknown, Err(ScoreError::NoTable { .. })));
        // The same metric, written otherwise.
        assert!(values.reference(&["network.drops/network.data_packets".to_owned()], &[c]).is_ok());
    }

    #[test]
    fn the_published_values_are_read() {
        let papers = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../papers");
        let files = |folder: &std::path::Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
            entries.collect::<Vec<_>>()
        };
        let mut read = 0;
        for path in files(&papers).iter().flat_map(|paper| files(&paper.join("values"))) {
            let text = std::fs::read_to_string(&path).unwrap();
            let values = toml_of(&text);
            assert!(text.starts_with(&values.text()), "{}", path.display());
            for cells in values.table.iter().flat_map(|table| table.point.iter().map(move |point| (table, point))) {
                let (table, point) = cells;
                for by_metric in point.schemes.values() {
                    assert_eq!(by_metric.len(), table.metrics.len(), "{}", path.display());
                    assert!(by_metric.iter().all(|by_seed| by_seed.len() == point.seeds.len()), "{}", path.display());
                }
            }
            read += 1;
        }
        assert!(read > 0, "no values in {}", papers.display());
    }
}
