//! `narrows compare --flows`: the same runs by two hosts, flow by flow.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, Table, presets};
use results::flow_comparison::{FlowComparison, FlowSides, Paired, RunSides, TimeWindow, Tolerance, side_by_side};
use results::{BackendKind, Validity};
use scenario::argument;

use super::compare::nothing_in_common;
use crate::args::{CompareArgs, FlowComparisonArgs};
use crate::exit::{CommandFailure, print};
use crate::named_file::{NamedFile, OutputKind};
use crate::sheet::{self, Datum, Sheet, check_csv, print_csv};
use crate::table::{bytes, time};

pub(crate) fn compare(args: &CompareArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &["flows"])?;
    let file = args
        .flow_comparison
        .markdown
        .as_ref()
        .map(|path| NamedFile::new(path, OutputKind::Tables, "--markdown"))
        .transpose()?;
    let (time_window, target) = (time_window(&args.flow_comparison)?, target(&args.flow_comparison)?);
    let (a, b) = super::compare::both(args)?;
    let incomplete = super::compare::unfinished_sides(args, &a, &b);
    let (a, b) = (a.runs, b.runs);
    if let (Some(one), Some(other)) = (a.first(), b.first()) {
        let (one, other) = (&one.manifest.scenario, &other.manifest.scenario);
        if one != other {
            return Err(CommandFailure::Input(format!(
                "error: these are results of different scenarios, `{one}` and `{other}`; flows are compared by number"
            )));
        }
    }
    let sides = side_by_side(&a, &b, time_window, target)?;
    if sides.runs.is_empty() {
        return Err(nothing_in_common(args, &sides.only_a, &sides.only_b));
    }
    if let Some(file) = file {
        file.write(page(&sides))?;
    }
    if args.json {
        print(&super::compare::as_json(&sides)?)?;
    } else if args.csv.is_requested() {
        print_csv(&[flows(&sides)], args.csv.table())?;
    } else {
        print(&describe(&sides))?;
    }
    if incomplete.is_empty() { Ok(()) } else { Err(CommandFailure::Regression(incomplete.join("\n"))) }
}

fn time_window(args: &FlowComparisonArgs) -> Result<TimeWindow, CommandFailure> {
    let read = |option: &str, text: &Option<String>| text.as_ref().map(|text| argument::span(option, text)).transpose();
    Ok(TimeWindow { from: read("--from", &args.from)?, to: read("--to", &args.to)? })
}

fn target(args: &FlowComparisonArgs) -> Result<Tolerance, CommandFailure> {
    let floor = argument::span("--delay-floor", &args.delay_floor)?;
    Ok(Tolerance {
        rate: args.rate_tolerance,
        fct: args.fct_tolerance,
        delay: args.delay_tolerance,
        delay_floor_ns: floor.unsigned_ps() as f64 / 1e3,
    })
}

/// The unit of a row.
#[derive(Clone, Copy)]
enum RowUnit {
    Rate,
    Time,
    Bytes,
    Index,
    PerSecond,
}

impl RowUnit {
    /// Its name in headings of CSV.
    const fn name(self) -> &'static str {
        match self {
            Self::Rate => "bps",
            Self::Time => "ns",
            Self::Bytes => "bytes",
            Self::Index => "",
            Self::PerSecond => "per_s",
        }
    }
}

/// One row of a table, as text.
struct ComparisonRow {
    name: String,
    base_rtt: String,
    measure: &'static str,
    a: String,
    b: String,
    difference: String,
    holds: &'static str,
    unit: RowUnit,
    sides: Paired,
}

impl ComparisonRow {
    fn new(name: &str, measure: &'static str, unit: RowUnit, sides: &Paired, holds: Option<bool>) -> Self {
        let value = |value: Option<f64>| value.map_or("-".into(), |value| shown(unit, value));
        let holds = holds.map_or("", |holds| if holds { "holds" } else { "no" });
        let (a, b) = (value(sides.a), value(sides.b));
        Self {
            name: name.to_owned(),
            base_rtt: String::new(),
            measure,
            a,
            b,
            difference: difference(unit, sides),
            holds,
            unit,
            sides: *sides,
        }
    }

    fn texts<'a>(&'a self, target: &'a str) -> [&'a str; 7] {
        [&self.name, &self.base_rtt, self.measure, &self.a, &self.b, &self.difference, target]
    }

    /// Returns whether the target holds, and the verdict on the run if it is not sound.
    fn target(&self, unsound: Option<Validity>) -> String {
        let words = [self.holds.to_owned(), unsound.map_or_else(String::new, |unsound| unsound.to_string())];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// All rows of a run: flows, groups of them, and the run's own.
fn rows(run: &RunSides) -> Vec<ComparisonRow> {
    let mut rows = Vec::new();
    let mut flow = |name: &str, sides: &FlowSides| {
        let base_rtt = time(sides.base_rtt_ns);
        let rate = ComparisonRow::new(name, "rate", RowUnit::Rate, &sides.rate_bps, sides.rate_holds);
        rows.push(ComparisonRow { base_rtt, ..rate });
        rows.push(ComparisonRow::new("", "round trip", RowUnit::Time, &sides.rtt_ns, None));
        rows.push(ComparisonRow::new("", "completion time", RowUnit::Time, &sides.fct_ns, sides.fct_holds));
    };
    for sides in &run.flows {
        flow(&format!("flow {}", numbers(&sides.flows)), sides);
    }
    for sides in &run.groups {
        flow(&format!("mean of flows {}", numbers(&sides.flows)), sides);
    }
    for port in &run.ports {
        rows.push(ComparisonRow::new(&port.name, "queue", RowUnit::Bytes, &port.queue_bytes, None));
        rows.push(ComparisonRow::new("", "queueing delay", RowUnit::Time, &port.delay_ns, port.delay_holds));
    }
    rows.push(ComparisonRow::new("all", "drops a second", RowUnit::PerSecond, &run.drops_per_s, None));
    rows.push(ComparisonRow::new("", "marks a second", RowUnit::PerSecond, &run.marks_per_s, None));
    rows.push(ComparisonRow::new("", "Jain's index", RowUnit::Index, &run.jain, None));
    rows.retain(|row| row.a != "-" || row.b != "-");
    rows
}

/// `0 to 3, 7`.
fn numbers(flows: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = flows;
    while let [first, ..] = rest {
        let run = rest.iter().zip(*first..).take_while(|&(&flow, next)| flow == next).count();
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = match run {
            1 => write!(text, "{comma}{first}"),
            2 => write!(text, "{comma}{first}, {}", rest[1]),
            _ => write!(text, "{comma}{first} to {}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    text
}

fn shown(unit: RowUnit, value: f64) -> String {
    match unit {
        RowUnit::Rate => match value {
            value if value < 1e6 => format!("{:.1} kb/s", value / 1e3),
            value if value < 1e9 => format!("{:.1} Mb/s", value / 1e6),
            value => format!("{:.3} Gb/s", value / 1e9),
        },
        RowUnit::Time => time(value),
        RowUnit::Bytes => bytes(value.round() as u64),
        RowUnit::Index => format!("{value:.3}"),
        RowUnit::PerSecond => format!("{value:.1}"),
    }
}

/// A difference in percent; for times also in milliseconds, or in a unit that is fine enough to show it.
fn difference(unit: RowUnit, sides: &Paired) -> String {
    // Rounded before, so that next to nothing is +0.0 and not -0.0.
    let percent = sides.relative.map(|relative| format!("{:+.1} %", (relative * 1e3).round() / 10.0 + 0.0));
    let ms = sides.difference.map(|ns| match ns.abs() {
        small if small < 10_000.0 => format!("{}{}", if ns < 0.0 { '-' } else { '+' }, time(small)),
        _ => format!("{:+.2} ms", ns / 1e6),
    });
    match (unit, ms, percent) {
        (RowUnit::Time, Some(ms), Some(percent)) => format!("{ms}, {percent}"),
        (RowUnit::Time, Some(ms), None) => ms,
        (RowUnit::Index, ..) => sides.difference.map_or(String::new(), |difference| format!("{difference:+.3}")),
        (_, _, percent) => percent.unwrap_or_default(),
    }
}

/// The run and the window: `GEMINI, 20.00 s to 60.00 s`.
fn title(run: &RunSides) -> String {
    format!("{}, {} to {}", run.label, time(run.from_ns), time(run.to_ns))
}

/// Returns the names of the columns: the backends, with letters if both are the same.
fn hosts(run: &RunSides) -> [String; 2] {
    let (a, b): (BackendKind, BackendKind) = (run.a_backend, run.b_backend);
    if a == b { [format!("A ({a})"), format!("B ({b})")] } else { [a.to_string(), b.to_string()] }
}

/// All rows of all runs.
fn flows(sides: &FlowComparison) -> Sheet {
    let rows_of = |run: &RunSides| {
        let unsound = run.unsound;
        let row = move |row: ComparisonRow| sheet::SheetRow {
            name: row.name.clone(),
            keys: vec![("run".to_owned(), Datum::Text(run.b.clone()))],
            cells: vec![
                sheet::SheetCell::text(row.measure),
                sheet::SheetCell::new("", row.unit.name(), row.sides.a),
                sheet::SheetCell::new("", row.unit.name(), row.sides.b),
                sheet::SheetCell::new("", row.unit.name(), row.sides.difference),
                sheet::SheetCell::new("", "", row.sides.relative),
                sheet::SheetCell::text(row.target(unsound)),
            ],
        };
        named(rows(run)).into_iter().map(row).collect::<Vec<_>>()
    };
    let columns = ["measure", "A", "B", "difference", "relative", "target"].map(str::to_owned).into();
    let rows = sides.runs.iter().flat_map(rows_of).collect();
    Sheet { name: "flows", title: String::new(), first: "of", columns, rows }
}

/// Repeats the name of the group in each of its rows, not only in the first.
fn named(mut rows: Vec<ComparisonRow>) -> Vec<ComparisonRow> {
    let mut name = String::new();
    for row in &mut rows {
        if row.name.is_empty() {
            row.name.clone_from(&name);
        }
        name.clone_from(&row.name);
    }
    rows
}

fn describe(sides: &FlowComparison) -> String {
    let mut text = String::new();
    for run in &sides.runs {
        let [a, b] = hosts(run);
        let name = if run.a == run.b { run.a.clone() } else { format!("{} against {}", run.b, run.a) };
        let _ = writeln!(text, "{name}: {}", title(run));
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["", "base RTT", "mean", &a, &b, "difference", "target"]);
        for row in rows(run) {
            let target = row.target(run.unsound);
            table.add_row(row.texts(&target).into_iter().enumerate().map(|(column, text)| {
                let right = matches!(column, 1 | 3..=5);
                Cell::new(text).set_alignment(if right { CellAlignment::Right } else { CellAlignment::Left })
            }));
        }
        let _ = writeln!(text, "{table}\n");
    }
    let Tolerance { rate, fct, delay, delay_floor_ns } = sides.target;
    let _ = writeln!(
        text,
        "Target: rates within {} %, completion times within {} %, mean queueing delays within {} % or {}. Drops and marks \
         are of the whole run.",
        rate * 100.0,
        fct * 100.0,
        delay * 100.0,
        time(delay_floor_ns),
    );
    for (which, runs) in [("A", &sides.only_a), ("B", &sides.only_b)] {
        if !runs.is_empty() {
            let _ = writeln!(text, "only in {which}: {}", runs.join("; "));
        }
    }
    text
}

/// The tables as Markdown: the corner of each names the run.
fn page(sides: &FlowComparison) -> String {
    let mut text = String::new();
    for run in &sides.runs {
        let [a, b] = hosts(run);
        let _ = writeln!(text, "| {} | base RTT | mean | {a} | {b} | difference | target |", escaped(&title(run)));
        text.push_str("|---|--:|---|--:|--:|--:|---|\n");
        for row in rows(run) {
            let cells = row.texts(&row.target(run.unsound)).map(escaped);
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// Text that stays text in a cell of a Markdown table.
fn escaped(text: &str) -> String {
    let mut output = String::new();
    for letter in text.chars() {
        if matches!(letter, '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>') {
            output.push('\\');
        }
        output.push(letter);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_flows_are_joined() {
        assert_eq!(numbers(&[0, 1, 2, 3, 7, 9, 10]), "0 to 3, 7, 9, 10");
        assert_eq!((numbers(&[4]), numbers(&[])), ("4".into(), String::new()));
    }

    #[test]
    fn differences_are_in_percent_and_in_milliseconds() {
        let sides = Paired { a: Some(4e6), b: Some(5e6), difference: Some(1e6), relative: Some(0.25) };
        assert_eq!(difference(RowUnit::Time, &sides), "+1.00 ms, +25.0 %");
        assert_eq!(difference(RowUnit::Rate, &sides), "+25.0 %");
        assert_eq!(difference(RowUnit::Rate, &Paired { relative: Some(-1e-6), ..sides }), "+0.0 %");
        let small = Paired { difference: Some(-1_500.0), ..sides };
        assert_eq!(difference(RowUnit::Time, &small), "-1.50 us, +25.0 %");
        let from_nothing = Paired { a: Some(0.0), b: Some(5e6), difference: Some(5e6), relative: None };
        assert_eq!(
            (difference(RowUnit::Time, &from_nothing), difference(RowUnit::Bytes, &from_nothing)),
            ("+5.00 ms".into(), String::new())
        );
        assert_eq!(difference(RowUnit::Time, &Paired::default()), "");
        assert_eq!(
            [9.9e5, 1.162e8, 1e9].map(|rate| shown(RowUnit::Rate, rate)),
            ["990.0 kb/s", "116.2 Mb/s", "1.000 Gb/s"]
        );
    }

    #[test]
    fn cell_separators_in_names_are_escaped() {
        assert_eq!(escaped("a|b>c_d"), "a\\|b\\>c\\_d");
    }
}
