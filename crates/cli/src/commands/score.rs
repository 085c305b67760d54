//! `narrows score`: schemes in one number each, against the best of others.

use std::path::Path;

use files::SizeLimit;
use results::score::{Reference, Score, ScoreError, of_few, usual_cells};
use results::store::Set;
use results::values::TableValues;
use results::{RunResults, chosen, initial_window_lines};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::compare::{other_flows, read_set};
use super::show::not_a_file;
use crate::args::{Columns, ScoreArgs};
use crate::exit::{CommandFailure, print, print_stderr};
use crate::named_file::{NamedFile, OutputKind};
use crate::sheet::{Datum, Sheet, SheetCell, SheetRow, check_csv, print_csv};
use crate::table;

/// A file of `--save-baseline`: a point of a thousand metrics and seeds is under a megabyte.
const REFERENCE: SizeLimit = SizeLimit { kind: "a reference", mib: 64 };

pub(crate) fn score(args: &ScoreArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &["scores", "ratios"])?;
    not_a_file(&args.directory)?;
    let write = args
        .save_baseline
        .as_deref()
        .map(|path| NamedFile::new(path, OutputKind::Reference, "--save-baseline"))
        .transpose()?;
    let chosen =
        |set: Set| chosen(set.runs, &args.filter).map_err(|error| CommandFailure::Input(format!("error: {error}")));
    let set = read_set(&args.directory)?;
    if args.baseline.is_none() && write.is_some() {
        require_complete(&args.directory, &set)?;
    }
    let runs = chosen(set)?;
    let reference = match &args.baseline {
        Some(path) if path.is_file() && is_values(path)? => {
            of_values(path, &cells(&args.metric, &runs)?, &args.not_in_baseline)?
        }
        Some(path) if path.is_file() && args.not_in_baseline.is_empty() => of_file(path, &args.metric)?,
        Some(path) if path.is_file() => {
            let reason = "the schemes of this file are what they are; --not-in-baseline goes with results";
            return Err(CommandFailure::Input(format!("error: `{}`: {reason}", path.display())));
        }
        Some(path) => {
            let others = read_set(path)?;
            if write.is_some() {
                require_complete(path, &others)?;
            }
            let others = chosen(others)?;
            if let Some(difference) = other_flows(&runs, &others) {
                let (ours, path) = (args.directory.display(), path.display());
                print_stderr(&format!("warning: `{ours}` and `{path}` differ in networks or flows: {difference}"));
            }
            best(&cells(&args.metric, &runs)?, &others, &args.not_in_baseline)?
        }
        None => best(&cells(&args.metric, &runs)?, &runs, &args.not_in_baseline)?,
    };
    let scores = reference.scores(&runs).map_err(|it| wrong(&it))?;
    for few in of_few(&reference.cells, &runs) {
        print_stderr(&format!("warning: {few}"));
    }
    if let Some(file) = write {
        let text = toml_edit::ser::to_string_pretty(&reference)
            .map_err(|error| CommandFailure::Input(format!("error: this reference is no TOML: {error}")))?;
        file.write(text)?;
    }
    if args.json {
        return print(&format!("{:#}", json!({ "schema": 1, "reference": reference, "scores": scores })));
    }
    let sheets: Vec<Sheet> = std::iter::once(totals(&scores)).chain(details(&reference, &scores)).collect();
    if args.csv.is_requested() {
        return print_csv(&sheets, args.csv.table());
    }
    let columns = if args.wide { Columns::All } else { Columns::Fitted };
    let tables: Vec<String> = sheets.iter().map(|sheet| table::shown(sheet, columns)).collect();
    let text = format!("{}{}", tables.join("\n"), initial_window_lines(&runs).join("\n"));
    print(text.trim_end())
}

/// Refuses incomplete results for a new reference.
fn require_complete(directory: &Path, set: &Set) -> Result<(), CommandFailure> {
    let Some(unfinished) = &set.unfinished else { return Ok(()) };
    Err(CommandFailure::Input(format!(
        "error: no reference is kept of results that are not whole: `{}` has {unfinished}\nhelp: `{}` goes on with it",
        directory.display(),
        unfinished.command
    )))
}

fn best(cells: &[String], runs: &[RunResults], newcomers: &[String]) -> Result<Reference, CommandFailure> {
    Reference::of(cells, runs, newcomers).map_err(|error| wrong(&error))
}

/// Returns the given metrics, or the usual ones. Prints a warning for each class that has no cells.
fn cells(given: &[String], runs: &[RunResults]) -> Result<Vec<String>, CommandFailure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let (metrics, without) = usual_cells(runs);
    if metrics.is_empty() {
        let help = "--metric selects the metrics to score, as in --metric 'p50(all.slowdown)', \
            and --filter the runs, as in --filter variant=none";
        return Err(CommandFailure::Input(format!("error: {}\nhelp: {help}", without.join("\nerror: "))));
    }
    for reason in without {
        print_stderr(&format!("warning: {reason}"));
    }
    Ok(metrics)
}

/// Returns true if a file has table values instead of a reference.
fn is_values(path: &Path) -> Result<bool, CommandFailure> {
    let text = files::text(path, REFERENCE)?;
    Ok(text.lines().any(|line| line == "[[table]]"))
}

/// Returns the best of the schemes in a file that `reproduce --values` left next to a figure.
fn of_values(path: &Path, cells: &[String], newcomers: &[String]) -> Result<Reference, CommandFailure> {
    let values: TableValues = read_written(path, OutputKind::Values, "narrows reproduce FIGURE --values")?;
    values.reference(cells, newcomers).map_err(|error| wrong(&error))
}

/// Returns the reference that `--save-baseline` left.
fn of_file(path: &Path, given: &[String]) -> Result<Reference, CommandFailure> {
    let reference: Reference = read_written(path, OutputKind::Reference, "narrows score RESULTS --save-baseline FILE")?;
    if !given.is_empty() && given != reference.cells {
        return Err(CommandFailure::Input(format!(
            "error: `{}` has other metrics: {}\nhelp: leave out --metric",
            path.display(),
            reference.cells.join(", ")
        )));
    }
    Ok(reference)
}

/// Reads a file that `command` writes. Warns if it was edited since.
fn read_written<T: DeserializeOwned>(path: &Path, kind: OutputKind, command: &str) -> Result<T, CommandFailure> {
    let text = files::text(path, REFERENCE)?;
    let value = toml_edit::de::from_str(&text).map_err(|error| {
        let path = path.display();
        CommandFailure::Input(format!(
            "error: `{path}` is not {}: {error}\nhelp: `{command}` makes one",
            kind.description()
        ))
    })?;
    if let Some(reason) = kind.refusal(path)? {
        print_stderr(&format!("warning: `{}`: {reason}", path.display()));
    }
    Ok(value)
}

fn wrong(error: &ScoreError) -> CommandFailure {
    CommandFailure::Input(format!("error: {error}"))
}

/// One row per scheme.
fn totals(scores: &[Score]) -> Sheet {
    let row = |score: &Score| {
        let interval = score.interval.map_or_else(String::new, |[low, high]| format!("{low:.3} to {high:.3}"));
        let [low, high] = score.interval.map_or([None; 2], |ends| ends.map(Some));
        let (point, cell) = &score.worst;
        let at = if point.is_empty() { cell.clone() } else { format!("{cell}, {point}") };
        let cells = vec![
            SheetCell::new(format!("{:.3}", score.g), "", Some(score.g)),
            SheetCell::new(interval, "low", low).with("high", high),
            SheetCell::new(format!("{:.3}", score.w), "", Some(score.w)),
            SheetCell::text(at),
        ];
        SheetRow { name: score.label.clone(), keys: Vec::new(), cells }
    };
    let columns = ["G", "95 % interval", "W", "where"].map(str::to_owned).into();
    Sheet { name: "scores", title: String::new(), first: "", columns, rows: scores.iter().map(row).collect() }
}

/// Every ratio, and the best that it is over.
fn details(reference: &Reference, scores: &[Score]) -> Vec<Sheet> {
    let point = |(index, best): (usize, &results::score::Best)| {
        let columns = reference.cells.iter().zip(&best.cells).map(|(cell, best)| format!("{cell} / {}", best.scheme));
        let row = |score: &Score| {
            let ratio = |ratio: &f64| SheetCell::new(format!("{ratio:.2}"), "", Some(*ratio));
            let keys = vec![("point".to_owned(), Datum::Text(best.point.clone()))];
            SheetRow { name: score.label.clone(), keys, cells: score.ratios[index].1.iter().map(ratio).collect() }
        };
        let point = if best.point.is_empty() { String::new() } else { format!(", {}", best.point) };
        let (title, rows) = (format!("Over the best{point}"), scores.iter().map(row).collect());
        Sheet { name: "ratios", title, first: "", columns: columns.collect(), rows }
    };
    reference.points.iter().enumerate().map(point).collect()
}
