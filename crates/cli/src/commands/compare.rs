//! `narrows compare`: two directories of results side by side.

use comfy_table::{Cell, CellAlignment, Table, presets};
use results::RunResults;
use results::compare::{Change, Comparison, Kind, Row, compare as compare_summaries};
use results::store::load_all;

use crate::args::CompareArgs;
use crate::exit::{Failure, print};
use crate::table::{bytes, time};

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    if !(0.0..=10.0).contains(&args.tolerance) {
        return Err(Failure::Input(format!(
            "error: --tolerance {} is not a relative difference from 0 to 10, such as 0.05 for 5 %",
            args.tolerance
        )));
    }
    let before = load_all(&args.before)?;
    let after = load_all(&args.after)?;
    let summaries = |runs: &'_ [RunResults]| runs.iter().map(|run| run.summary.clone()).collect::<Vec<_>>();
    let (before, after) = (summaries(&before), summaries(&after));
    let comparison =
        compare_summaries(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>(), args.tolerance);
    if args.json {
        let json = serde_json::to_value(&comparison).map_err(anyhow::Error::from)?;
        print(&format!("{json:#}"))?;
    } else {
        print(&describe(&comparison))?;
    }
    if comparison.regressed() {
        return Err(Failure::Regression(format!("worse by more than {} %", args.tolerance * 100.0)));
    }
    Ok(())
}

fn describe(comparison: &Comparison) -> String {
    let mut text = String::new();
    for pair in &comparison.pairs {
        let shown: Vec<&Row> = pair.rows.iter().filter(|row| row.before.is_some() || row.after.is_some()).collect();
        let same = shown.iter().filter(|row| row.change == Change::Same).count();
        text.push_str(&format!("{} against {}: {same} of {} metrics alike\n", pair.after, pair.before, shown.len()));
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["metric", "before", "after", "ratio", ""]);
        for row in shown.iter().filter(|row| row.change != Change::Same) {
            let value = |value: Option<f64>| value.map_or("-".into(), |value| shown_as(row.kind, value));
            let word = match row.change {
                Change::Improved => "better",
                Change::Regressed => "worse",
                Change::Same | Change::Different => "",
            };
            let ratio = row.ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"));
            let numbers = [value(row.before), value(row.after), ratio];
            let numbers = numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
            table.add_row([Cell::new(&row.metric)].into_iter().chain(numbers).chain([Cell::new(word)]));
        }
        if same < shown.len() {
            text.push_str(&format!("{table}\n"));
        }
        text.push('\n');
    }
    for (which, runs) in [("before", &comparison.only_before), ("after", &comparison.only_after)] {
        if !runs.is_empty() {
            text.push_str(&format!("only in the results {which}: {}\n", runs.join(", ")));
        }
    }
    text
}

fn shown_as(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Ns => time(value),
        Kind::Bytes => bytes(value as u64),
        Kind::Bps => format!("{:.3} Gb/s", value / 1e9),
        Kind::Count => format!("{value:.0}"),
        Kind::Ratio | Kind::Index => format!("{value:.3}"),
    }
}
