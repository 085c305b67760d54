//! `narrows compare`: two directories of results side by side.

use std::fmt::Write as _;
use std::path::Path;

use comfy_table::{Cell, CellAlignment, Table, presets};
use results::averages::point_of;
use results::compare::{
    MetricChange, MetricComparison, MetricUnit, RunComparison, RunsComparison, compare as compare_summaries,
};
use results::settings::{Differing, differing, differing_below};
use results::store::{Set, load_set};
use results::{BackendKind, RunResults};
use serde::Serialize;

use crate::args::CompareArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::sheet::{self, Sheet, SheetCell as Drawn, check_csv, print_csv};
use crate::table::{bytes, time};
use study::{count, first_of};

pub(crate) fn compare(args: &CompareArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &["metrics"])?;
    let (before, after) = both(args)?;
    let incomplete = unfinished_sides(args, &before, &after);
    let summaries = |set: &Set| set.runs.iter().map(|run| run.summary.clone()).collect::<Vec<_>>();
    let (before, after) = (summaries(&before), summaries(&after));
    let comparison =
        compare_summaries(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>(), args.tolerance);
    if comparison.pairs.is_empty() && !incomplete.is_empty() {
        return Err(CommandFailure::Regression(incomplete.join("\n")));
    }
    if comparison.pairs.is_empty() {
        return Err(nothing_in_common(args, &comparison.only_before, &comparison.only_after));
    }
    if args.json {
        print(&as_json(&comparison)?)?;
    } else if args.csv.is_requested() {
        print_csv(&[metrics(&comparison)], args.csv.table())?;
    } else {
        print(&describe(&comparison))?;
    }
    let mut worse = incomplete;
    if comparison.regressed() {
        worse.insert(0, describe_regressions(&comparison));
    }
    if worse.is_empty() { Ok(()) } else { Err(CommandFailure::Regression(worse.join("\n"))) }
}

/// Returns a comparison as JSON, after the version of its shape.
pub(super) fn as_json(comparison: &impl Serialize) -> Result<String, CommandFailure> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        schema: u64,
        #[serde(flatten)]
        comparison: &'a T,
    }
    let json = serde_json::to_value(Document { schema: 1, comparison }).map_err(anyhow::Error::from)?;
    Ok(format!("{json:#}"))
}

/// Reads both sets, and prints their defects and the settings in which they differ.
pub(super) fn both(args: &CompareArgs) -> Result<(Set, Set), CommandFailure> {
    let (before, after) = (read_set(&args.before)?, read_set(&args.after)?);
    if let Some(warning) = setting_differences(&before, &after) {
        print_stderr(&warning);
    }
    Ok((before, after))
}

/// Reads a set, and prints its defects.
pub(super) fn read_set(directory: &Path) -> Result<Set, CommandFailure> {
    let set = load_set(directory)?;
    for warning in set_warnings(directory, &set) {
        print_stderr(&warning);
    }
    Ok(set)
}

/// Returns how the networks or flows of runs with the same point and seed differ, over all schemes; empty if they are equal.
pub(super) fn other_flows(ours: &[RunResults], theirs: &[RunResults]) -> Option<String> {
    let seed_and_point = |run: &RunResults| (run.summary.seed, point_of(run));
    let mut differences = Vec::new();
    for run in ours {
        if let Some(other) = theirs.iter().find(|other| seed_and_point(other) == seed_and_point(run)) {
            for key in ["topology", "traffic", "failure", "sizes", "stop"] {
                differences.extend(differing_below(key, &run.manifest.resolved, &other.manifest.resolved));
            }
        }
    }
    let differences = first_of_each_key(differences).into_iter();
    let differences: Vec<String> =
        differences.map(|it| format!("{}: {} and {}", it.key, it.before, it.after)).collect();
    (!differences.is_empty()).then(|| first_of(&differences, "; "))
}

/// Returns the differences between the settings of runs of one name; nothing if they are the same.
fn setting_differences(before: &Set, after: &Set) -> Option<String> {
    let mut differences = Vec::new();
    for run in &before.runs {
        if let Some(other) = after.runs.iter().find(|other| other.manifest.run == run.manifest.run) {
            differences.extend(differing(&run.manifest.resolved, &other.manifest.resolved));
        }
    }
    let differences: Vec<String> = first_of_each_key(differences).iter().map(ToString::to_string).collect();
    (!differences.is_empty())
        .then(|| format!("the results are of different settings: {}", first_of(&differences, "; ")))
}

/// The first of the differences in each key, in the order of the keys.
fn first_of_each_key(mut differences: Vec<Differing>) -> Vec<Differing> {
    differences.sort_by(|one, other| one.key.cmp(&other.key));
    differences.dedup_by(|one, other| one.key == other.key);
    differences
}

/// A line for each side that is unfinished.
pub(super) fn unfinished_sides(args: &CompareArgs, before: &Set, after: &Set) -> Vec<String> {
    let sides = [(&args.before, before), (&args.after, after)];
    let lacks = |(path, set): (&std::path::PathBuf, &Set)| {
        set.unfinished.as_ref().map(|unfinished| format!("`{}` has {unfinished}", path.display()))
    };
    sides.into_iter().filter_map(lacks).collect()
}

/// Returns warnings about a set: it is unfinished, its writer was taken over, or files were edited or cannot be
/// checked.
pub(super) fn set_warnings(directory: &Path, set: &Set) -> Vec<String> {
    let path = directory.display();
    let mut warnings = Vec::new();
    warnings.extend(set.taken_over.as_deref().map(|dead| files::taken_over(directory, dead)));
    warnings.extend(
        set.unfinished.as_ref().map(|unfinished| {
            format!("`{path}` is unfinished: {unfinished}; `{}` goes on with it", unfinished.command)
        }),
    );
    warnings.extend(set.next_set.as_ref().map(|beside| {
        format!(
            "`{path}`: these are the last complete results; there is also an unfinished sweep, {beside}; `{}` goes on with it",
            beside.command
        )
    }));
    warnings.extend(set.differing.iter().map(|differing| format!("{differing}; only the runs' own files are read")));
    if set.unchecked > 0 {
        let (unchecked, runs) = (set.unchecked, count(set.runs.len(), "run"));
        warnings.push(format!(
            "`{path}`: no hash vouches for {unchecked} of {runs}, because their manifests or the grid's are of an earlier \
             version: changes to their files cannot be seen"
        ));
    }
    warnings
}

/// Error for results that have no run in common.
pub(super) fn nothing_in_common(args: &CompareArgs, only_before: &[String], only_after: &[String]) -> CommandFailure {
    CommandFailure::Input(format!(
        "error: `{before}` and `{after}` have no run in common\n  only in `{before}`: {}\n  only in `{after}`: {}\nhelp: runs are \
         matched by name, which is the scheme and the grid point; compare results of the same scenario",
        only_before.join("; "),
        only_after.join("; "),
        before = args.before.display(),
        after = args.after.display(),
    ))
}

/// Returns the regressions, in a line.
fn describe_regressions(comparison: &RunsComparison) -> String {
    let worse = |pair: &RunComparison| pair.rows.iter().filter(|row| row.change == MetricChange::Regressed).count();
    let pairs = || comparison.pairs.iter().filter(|pair| pair.regressed());
    let metrics = pairs().map(worse).sum();
    let mut parts = Vec::new();
    if metrics > 0 {
        let (metrics, runs) = (count(metrics, "metric"), count(pairs().count(), "run"));
        parts.push(format!("{metrics} of {runs} worse by more than {} %", comparison.tolerance * 100.0));
    }
    if !comparison.only_before.is_empty() {
        let missing = &comparison.only_before;
        parts.push(format!("{} missing: {}", count(missing.len(), "run"), missing.join("; ")));
    }
    parts.join(", ")
}

/// All metrics of all pairs of runs.
fn metrics(comparison: &RunsComparison) -> Sheet {
    let rows_of = |pair: &RunComparison| {
        let row = |row: &MetricComparison| {
            let value = |value: Option<f64>| value.map_or("-".into(), |value| shown_as(row.kind, value));
            let cells = vec![
                Drawn::text(&row.metric),
                Drawn::new(value(row.before), "", row.before),
                Drawn::new(value(row.after), "", row.after),
                Drawn::new("", "", row.ratio),
                Drawn::text(word(row.change)),
            ];
            sheet::SheetRow { name: pair.after.clone(), keys: Vec::new(), cells }
        };
        let present = pair.rows.iter().filter(|row| row.before.is_some() || row.after.is_some());
        present.map(row).collect::<Vec<_>>()
    };
    let columns = ["metric", "before", "after", "ratio", "change"].map(str::to_owned).into();
    let rows = comparison.pairs.iter().flat_map(rows_of).collect();
    Sheet { name: "metrics", title: String::new(), first: "run", columns, rows }
}

/// Returns a change as a word; empty if the metric neither improved nor regressed.
const fn word(change: MetricChange) -> &'static str {
    match change {
        MetricChange::Improved => "better",
        MetricChange::Regressed => "worse",
        MetricChange::Same | MetricChange::Different => "",
    }
}

fn describe(comparison: &RunsComparison) -> String {
    let mut text = String::new();
    for pair in &comparison.pairs {
        let shown: Vec<&MetricComparison> =
            pair.rows.iter().filter(|row| row.before.is_some() || row.after.is_some()).collect();
        let same = shown.iter().filter(|row| row.change == MetricChange::Same).count();
        let both = [pair.before_backend, pair.after_backend];
        let name = |run: &str, backend: BackendKind| match both {
            [BackendKind::Simulator, BackendKind::Simulator] => run.to_owned(),
            _ => format!("{run} ({backend})"),
        };
        let (before, after) = (name(&pair.before, both[0]), name(&pair.after, both[1]));
        let _ = writeln!(text, "{after} against {before}: {same} of {} metrics alike", shown.len());
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["metric", "before", "after", "ratio", ""]);
        for row in shown.iter().filter(|row| row.change != MetricChange::Same) {
            let value = |value: Option<f64>| value.map_or("-".into(), |value| shown_as(row.kind, value));
            let word = word(row.change);
            let word = match pair.unsound {
                Some(unsound) if word.is_empty() => unsound.to_string(),
                Some(unsound) => format!("{word}, {unsound}"),
                None => word.to_owned(),
            };
            let ratio = row.ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"));
            let numbers = [value(row.before), value(row.after), ratio];
            let numbers = numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
            table.add_row([Cell::new(&row.metric)].into_iter().chain(numbers).chain([Cell::new(word)]));
        }
        if same < shown.len() {
            let _ = writeln!(text, "{table}");
        }
        text.push('\n');
    }
    for (which, runs) in [("before", &comparison.only_before), ("after", &comparison.only_after)] {
        if !runs.is_empty() {
            let _ = writeln!(text, "only in the results {which}: {}", runs.join("; "));
        }
    }
    text
}

fn shown_as(kind: MetricUnit, value: f64) -> String {
    match kind {
        MetricUnit::Ns => time(value),
        MetricUnit::Bytes => bytes(value as u64),
        MetricUnit::Bps => format!("{:.3} Gb/s", value / 1e9),
        MetricUnit::Count => format!("{value:.0}"),
        MetricUnit::Ratio | MetricUnit::Index => format!("{value:.3}"),
    }
}
