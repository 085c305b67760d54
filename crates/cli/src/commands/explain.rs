//! `narrows explain`: why the slowest flows of a run are slow.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment};
use results::Class;
use results::explain::{Explained, FEW, Trait, What, explain as slowest};
use results::store::load_set;
use serde_json::{Value, json};

use super::show::{chosen, not_a_file};
use crate::args::ExplainArgs;
use crate::exit::{Failure, print};
use crate::table::{bytes, fitted, time};

/// So many of the slowest are listed one by one.
const LISTED: usize = 5;

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    not_a_file(&args.directory)?;
    let runs = match &args.run {
        Some(name) => vec![chosen(&args.directory, Some(name))?],
        None => load_set(&args.directory)?.runs,
    };
    let explained: Vec<_> = runs.iter().map(|run| (run.summary.run.as_str(), slowest(run, args.share))).collect();
    if args.json {
        let all: Vec<Value> = explained.iter().map(|(run, classes)| in_json(run, classes)).collect();
        return print(&format!("{:#}", Value::from(all)));
    }
    let texts: Vec<String> = explained.iter().map(|(run, classes)| in_words(run, classes)).collect();
    print(texts.join("\n\n").trim_end())
}

fn in_json(run: &str, classes: &[Explained]) -> Value {
    let one = |it: &Explained| {
        let traits: serde_json::Map<String, Value> = it
            .traits
            .iter()
            .map(|of| {
                let values = json!({ "slowest": of.slowest, "typical": of.typical, "stands_out": of.stands_out() });
                (of.what.name().to_owned(), values)
            })
            .collect();
        let slowest: Vec<u32> = it.slowest.iter().map(|slow| slow.row.flow).collect();
        json!({
            "class": it.class.name(),
            "flows": it.flows,
            "unfinished": it.unfinished,
            "slowest": slowest,
            "traits": traits,
        })
    };
    json!({ "run": run, "classes": classes.iter().map(one).collect::<Vec<_>>() })
}

fn in_words(run: &str, classes: &[Explained]) -> String {
    if classes.is_empty() {
        return format!("{run}: no flow ended");
    }
    let of_class = |it: &Explained| {
        let mut text = format!(
            "{run}, {}: the slowest {} of {} flows, beside typical ones of their size\n",
            it.class,
            it.slowest.len(),
            it.flows
        );
        let _ = writeln!(text, "{}", traits(it));
        let _ = writeln!(text, "{}", flows(it));
        if it.unfinished > 0 {
            let _ = writeln!(text, "{} did not end and is in none of this", study::count(it.unfinished, "flow"));
        }
        if it.flows < FEW {
            let _ = writeln!(text, "fewer than {FEW} flows: the slowest may be slow by chance");
        }
        text
    };
    classes.iter().map(of_class).collect::<Vec<_>>().join("\n")
}

/// What was counted, where there was any of it.
fn traits(of: &Explained) -> String {
    let mut table = fitted();
    table.set_header(["mean of a flow", "slowest", "typical", "", ""]);
    for it in of.traits.iter().filter(|it| it.slowest != 0.0 || it.typical.is_some_and(|typical| typical != 0.0)) {
        let typical = it.typical.map_or_else(|| "-".to_owned(), |typical| value(it.what, typical));
        let cells = [value(it.what, it.slowest), typical, times(it), if it.stands_out() { "*" } else { "" }.to_owned()];
        let numbers = cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(label(it.what))).chain(numbers));
    }
    table.to_string()
}

fn times(of: &Trait) -> String {
    match of.typical {
        Some(typical) if typical > 0.0 => format!("{:.2} times", of.slowest / typical),
        _ => String::new(),
    }
}

/// The slowest one by one.
fn flows(of: &Explained) -> String {
    let mut table = fitted();
    table
        .set_header(["flow", "hosts", "size", "started", "took", "slowdown", "marked", "resent", "timeouts", "struck"]);
    for slow in of.slowest.iter().take(LISTED) {
        let row = &slow.row;
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        let ns = |ps: u64| time(ps as f64 / 1e3);
        let cells = [
            row.flow.to_string(),
            format!("{} to {}", row.src, row.dst),
            bytes(row.size.get()),
            ns(row.started.ps()),
            ns(row.fct().map_or(0, units::Span::unsigned_ps)),
            format!("{:.2}", slow.slowdown),
            format!("{:.1} %", share(row.stats.marked.get(), row.delivered.get())),
            format!("{:.1} %", share(row.stats.retransmits, row.stats.packets_sent)),
            row.stats.timeouts.to_string(),
            row.acted.emergencies.to_string(),
        ];
        table.add_row(cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right)));
    }
    table.to_string()
}

fn label(what: What) -> &'static str {
    match what {
        What::Slowdown => "slowdown",
        What::Size => "size",
        What::RoundTrips => "completion time, base round trips",
        What::Marked => "payload that was marked",
        What::Resent => "packets that were sent again",
        What::Timeouts => "retransmission timeouts",
        What::Nacks => "requests to send again",
        What::Notifications => "notifications of congestion",
        What::Increases => "times that the law grew",
        What::Cuts => "times that it was cut on congestion",
        What::LossCuts => "times that it was cut on a loss",
        What::Strikes => "times that its emergency rule struck",
        What::Held => "time held at the edge",
        What::FromHost(Class::Intra) => "intra flows beside it from its sender",
        What::FromHost(Class::Inter) => "inter flows beside it from its sender",
        What::ToHost(Class::Intra) => "intra flows beside it to its receiver",
        What::ToHost(Class::Inter) => "inter flows beside it to its receiver",
    }
}

fn value(what: What, of: f64) -> String {
    match what {
        What::Size => bytes(of.round() as u64),
        What::Marked | What::Resent | What::Held => format!("{:.1} %", 100.0 * of),
        _ => format!("{of:.2}"),
    }
}
