//! Columns shared by the tables of all runs of a sweep: scheme, point, seed, and traced values of the laws of any
//! scheme.

use std::collections::BTreeSet;

use results::claims::SEED;
use results::tables::is_column;
use results::{PointColumn, PointValue, SweepColumns};
use scenario::{Run, amount};

/// A key of the points and the type of its column.
struct PointKey<'a> {
    /// Name in the points.
    key: &'a str,
    /// Name of the column.
    name: String,
    /// Type of its values: numbers only if all values are numbers with one unit, integers if all are.
    kind: ColumnType,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Text,
    Whole,
    Real,
}

/// Returns the columns of each of a scenario's runs. The only run of a scenario has its scheme and seed.
pub(crate) fn columns(runs: &[Run]) -> Vec<SweepColumns> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|run| &run.point) {
        if key != SEED && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let keys: Vec<PointKey<'_>> = keys.into_iter().map(|key| PointKey::of(key, runs)).collect();
    let (mut traces, mut laws) = (BTreeSet::new(), BTreeSet::new());
    for run in runs {
        let of_run = run.law_columns();
        traces.extend(of_run.traces);
        laws.extend(of_run.laws);
    }
    let of = |run: &Run| SweepColumns {
        points: of_run(run, &keys),
        traces: traces.iter().cloned().collect(),
        laws: laws.iter().cloned().collect(),
    };
    runs.iter().map(of).collect()
}

fn of_run(run: &Run, keys: &[PointKey<'_>]) -> Vec<PointColumn> {
    let column = |name: &str, value| PointColumn { name: name.to_owned(), value };
    let scheme = column("scheme", PointValue::Text(run.scheme.clone()));
    let seed = column(SEED, PointValue::Whole(i64::try_from(run.config.seed).ok()));
    let of_key = |key: &PointKey<'_>| {
        let text = value_of(run, key.key);
        let number = text.and_then(amount).map(|(number, _)| number);
        let value = match key.kind {
            ColumnType::Text => PointValue::Text(text.unwrap_or_default().to_owned()),
            ColumnType::Whole => PointValue::Whole(number.map(|number| number as i64)),
            ColumnType::Real => PointValue::Real(number),
        };
        column(&key.name, value)
    };
    std::iter::once(scheme).chain(keys.iter().map(of_key)).chain([seed]).collect()
}

fn value_of<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.point.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

impl<'a> PointKey<'a> {
    fn of(key: &'a str, runs: &[Run]) -> Self {
        let values: Vec<&str> = runs.iter().filter_map(|run| value_of(run, key)).collect();
        let amounts: Option<Vec<(f64, &str)>> = values.iter().map(|value| amount(value)).collect();
        // A variant's name is a name, also where it looks like a number.
        let amounts = amounts.filter(|all| key != "variant" && all.iter().all(|(_, unit)| *unit == all[0].1));
        let unit = amounts.as_ref().and_then(|all| all.first()).map_or("", |(_, unit)| unit);
        let kind = match &amounts {
            None => ColumnType::Text,
            // Exact as an integer and in its written form.
            Some(_) if values.iter().all(|value| value.parse::<i64>().is_ok_and(|it| it.abs() < 1 << 53)) => {
                ColumnType::Whole
            }
            Some(_) => ColumnType::Real,
        };
        let name = if unit.is_empty() { key.to_owned() } else { format!("{key}_{unit}") };
        // A column of a table keeps its name.
        let is_taken = is_column(&name) || name == "scheme";
        Self { key, name: if is_taken { format!("point_{name}") } else { name }, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Overrides, parse};

    #[test]
    fn columns_have_one_type_and_the_units_name_at_their_end() {
        let text = r#"
            name = "t"
            topology = { kind = "single-switch", hosts = 4 }
            schemes.dctcp = { law = "dctcp" }
            traffic = [{ kind = "incast", intra = 3, size = "16KiB" }]
            grid.stop = ["1ms", "2ms"]
            grid."traffic.0.intra" = [2, 3]
            [[points]]
            "port.loss_probability" = 0
            "port.buffer" = "1MB"
            "traffic.0.size" = "4KiB"
            [[points]]
            "port.loss_probability" = "10%"
            "port.buffer" = "bdp"
            "traffic.0.size" = "16KiB"
            [variants.v]
            set = { "topology.rate" = "10Gbps" }
        "#;
        let scenario = parse(text, "t.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let runs = scenario.runs();
        let all = columns(&runs);
        assert!(all.iter().all(|it| it.traces == ["alpha_ppm"] && it.laws == ["dctcp"]), "{:?}", all[0]);
        let all: Vec<_> = all.into_iter().map(|it| it.points).collect();
        let names = |columns: &[PointColumn]| columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        let expected = [
            "scheme",
            "stop_ns",
            "traffic.0.intra",
            "port.loss_probability",
            "port.buffer",
            "traffic.0.size_bytes",
            "variant",
            "seed",
        ];
        assert!(all.iter().all(|columns| names(columns) == expected), "{:?}", names(&all[0]));
        let values: Vec<PointValue> = all[7].iter().map(|column| column.value.clone()).collect();
        let text = |text: &str| PointValue::Text(text.into());
        assert_eq!(
            values,
            [
                text("dctcp"),
                PointValue::Real(Some(2e6)),
                PointValue::Whole(Some(3)),
                PointValue::Real(Some(0.1)),
                text("bdp"),
                PointValue::Real(Some(16_384.0)),
                text(""),
                PointValue::Whole(Some(1)),
            ]
        );
        assert_eq!(all.last().unwrap()[6].value, text("v"));
    }

    #[test]
    fn only_run_has_the_columns_of_a_sweep_without_points() {
        let text = r#"
            name = "t"
            seed = 7
            topology = { kind = "single-switch", hosts = 4 }
            schemes.dctcp = { law = "dctcp" }
            traffic = [{ kind = "incast", intra = 3, size = "16KiB" }]
        "#;
        let scenario = parse(text, "t.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let [alone] = <[SweepColumns; 1]>::try_from(columns(&scenario.runs())).unwrap();
        let expected = [("scheme", PointValue::Text("dctcp".into())), ("seed", PointValue::Whole(Some(7)))];
        let found: Vec<(&str, PointValue)> =
            alone.points.iter().map(|it| (it.name.as_str(), it.value.clone())).collect();
        assert_eq!(found, expected);
        assert_eq!((alone.traces, alone.laws), (vec!["alpha_ppm".to_owned()], vec!["dctcp".to_owned()]));
    }
}
