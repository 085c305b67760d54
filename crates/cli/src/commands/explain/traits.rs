//! `narrows explain --traits`: attributes of the slowest flows, compared with typical ones.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment};
use results::explain::{ExplainedScheme, FEW, FlowAttribute, SlowestFlows, Trait, ValueKind, by_scheme};
use serde_json::{Value, json};

use results::RunResults;

use crate::args::ExplainArgs;
use crate::exit::{CommandFailure, print};
use crate::sheet::{Sheet, print_csv};
use crate::table::{bytes, fitted, time};

/// Number of the slowest flows that are listed one by one.
const LISTED: usize = 5;

pub(super) fn explain(args: &ExplainArgs, runs: &[RunResults]) -> Result<(), CommandFailure> {
    let mut explained = by_scheme(runs, args.slowest);
    if let Some(class) = args.class {
        for scheme in &mut explained {
            scheme.classes.retain(|it| it.class == class.into());
        }
    }
    if args.csv.is_requested() {
        return print_csv(&sheets(&explained), args.csv.table());
    }
    if args.json {
        let all: Vec<Value> = explained.iter().map(in_json).collect();
        return print(&format!("{:#}", Value::from(all)));
    }
    let texts: Vec<String> = explained.iter().map(in_words).collect();
    print(texts.join("\n\n").trim_end())
}

/// Names of the tables for `--csv`.
pub(super) const TABLES: [&str; 2] = ["traits", "flows"];

/// Counters of all groups, and of their slowest flows.
fn sheets(explained: &[ExplainedScheme]) -> [Sheet; 2] {
    let of_class = |explained: &ExplainedScheme, of: &SlowestFlows| -> Vec<Value> {
        let record = |it: &Trait| {
            json!({
                "group": explained.name,
                "part": of.class.name(),
                "trait": it.attribute.name(),
                "slowest": it.slowest,
                "typical": it.typical,
                "stands_out": it.stands_out(),
            })
        };
        of.traits.iter().map(record).collect()
    };
    let records: Vec<Value> = explained
        .iter()
        .flat_map(|explained| explained.classes.iter().flat_map(move |of| of_class(explained, of)))
        .collect();
    let of_flows = |explained: &ExplainedScheme, of: &SlowestFlows| -> Vec<Value> {
        let record = |slow: &results::explain::SlowFlowEntry| {
            let row = &slow.row;
            json!({
                "group": explained.name,
                "part": of.class.name(),
                "seed": slow.seed,
                "flow": row.flow,
                "src": row.src,
                "dst": row.dst,
                "size_bytes": row.size.get(),
                "start_ns": row.started.ps() as f64 / 1e3,
                "fct_ns": row.fct().map(|fct| fct.ps() as f64 / 1e3),
                "slowdown": slow.slowdown,
                "marked_share": row.marked_share(),
                "retransmitted_share": row.retransmitted_share(),
                "timeouts": row.stats.timeouts,
                "quick_adapts": row.actions.quick_adapts,
            })
        };
        of.slowest.iter().map(record).collect()
    };
    let flows: Vec<Value> = explained
        .iter()
        .flat_map(|explained| explained.classes.iter().flat_map(move |of| of_flows(explained, of)))
        .collect();
    let of_flow = [
        "group",
        "part",
        "seed",
        "flow",
        "src",
        "dst",
        "size_bytes",
        "start_ns",
        "fct_ns",
        "slowdown",
        "marked_share",
        "retransmitted_share",
        "timeouts",
        "quick_adapts",
    ];
    [
        Sheet::of_records(TABLES[0], &["group", "part", "trait", "slowest", "typical", "stands_out"], &records),
        Sheet::of_records(TABLES[1], &of_flow, &flows),
    ]
}

fn in_json(explained: &ExplainedScheme) -> Value {
    let one = |it: &SlowestFlows| {
        let traits: serde_json::Map<String, Value> = it
            .traits
            .iter()
            .map(|of| {
                let values = json!({ "slowest": of.slowest, "typical": of.typical, "stands_out": of.stands_out() });
                (of.attribute.name().to_owned(), values)
            })
            .collect();
        let slowest: Vec<Value> =
            it.slowest.iter().map(|slow| json!({ "seed": slow.seed, "flow": slow.row.flow })).collect();
        json!({
            "class": it.class.name(),
            "flows": it.flows,
            "unfinished": it.unfinished,
            "slowest": slowest,
            "traits": traits,
        })
    };
    json!({ "name": explained.name, "runs": explained.runs, "classes": explained.classes.iter().map(one).collect::<Vec<_>>() })
}

fn in_words(explained: &ExplainedScheme) -> String {
    let seeds = explained.runs.len();
    let name = if seeds > 1 { format!("{}, {seeds} seeds together", explained.name) } else { explained.name.clone() };
    if explained.classes.is_empty() {
        return format!("{name}: no flow ended");
    }
    let of_class = |it: &SlowestFlows| {
        let mut text = format!(
            "{name}, {}: the slowest {} of {} flows, compared with typical ones of their size\n",
            it.class,
            it.slowest.len(),
            it.flows
        );
        let _ = writeln!(text, "{}", traits(it));
        let _ = writeln!(text, "{}", flows(explained, it));
        if it.unfinished > 0 {
            let _ = writeln!(text, "{} did not end and is in none of this", study::count(it.unfinished, "flow"));
        }
        if it.is_of_few() {
            let _ = writeln!(text, "fewer than {FEW} flows: the slowest may be slow by chance");
        }
        text
    };
    explained.classes.iter().map(of_class).collect::<Vec<_>>().join("\n")
}

/// Counters, where there was any count.
fn traits(of: &SlowestFlows) -> String {
    let mut table = fitted();
    table.set_header(["mean of a flow", "slowest", "typical", "", ""]);
    for it in of.present() {
        let typical = it.typical.map_or_else(|| "-".to_owned(), |typical| value(it.attribute, typical));
        let cells =
            [value(it.attribute, it.slowest), typical, times(it), if it.stands_out() { "*" } else { "" }.to_owned()];
        let numbers = cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(it.attribute.label())).chain(numbers));
    }
    table.to_string()
}

fn times(of: &Trait) -> String {
    match of.typical {
        Some(typical) if typical > 0.0 => format!("{:.2} times", of.slowest / typical),
        _ => String::new(),
    }
}

/// The slowest one by one, with their seeds where there are several.
fn flows(explained: &ExplainedScheme, of: &SlowestFlows) -> String {
    let with_seeds = explained.runs.len() > 1;
    let heads =
        ["flow", "hosts", "size", "started", "took", "slowdown", "marked", "retransmits", "timeouts", "quick adapts"];
    let mut table = fitted();
    table.set_header(with_seeds.then_some("seed").into_iter().chain(heads));
    for slow in of.slowest.iter().take(LISTED) {
        let row = &slow.row;
        let share = |share: f64| format!("{:.1} %", 100.0 * share);
        let ns = |ps: u64| time(ps as f64 / 1e3);
        let cells = [
            row.flow.to_string(),
            format!("{} to {}", row.src, row.dst),
            bytes(row.size.get()),
            ns(row.started.ps()),
            ns(row.fct().map_or(0, units::Span::unsigned_ps)),
            format!("{:.2}", slow.slowdown),
            share(row.marked_share()),
            share(row.retransmitted_share()),
            row.stats.timeouts.to_string(),
            row.actions.quick_adapts.to_string(),
        ];
        let cells = with_seeds.then(|| slow.seed.to_string()).into_iter().chain(cells);
        table.add_row(cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right)));
    }
    table.to_string()
}

fn value(attribute: FlowAttribute, of: f64) -> String {
    match attribute.kind() {
        ValueKind::Bytes => bytes(of.round() as u64),
        ValueKind::Share => format!("{:.1} %", 100.0 * of),
        ValueKind::Number => format!("{of:.2}"),
    }
}
