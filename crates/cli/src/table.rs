//! The table that a person reads after a run.

use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use results::RunResults;
use results::summary;

/// Columns of text without a terminal's width to go by.
const PROSE: u16 = 110;

/// A table that fits the terminal, and is as wide as it needs to be where there is none.
pub(crate) fn fitted() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    if !no_columns(&table) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// A table of sentences, which are wrapped even where there is no terminal.
pub(crate) fn prose() -> Table {
    let mut table = fitted();
    if !std::io::stdout().is_terminal() || no_columns(&table) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(PROSE);
    }
    table
}

/// A serial console knows no width and says 0.
fn no_columns(table: &Table) -> bool {
    table.width() == Some(0)
}

/// One row a run.
pub(crate) fn headline(runs: &[RunResults]) -> String {
    let mut table = fitted();
    let both = runs.iter().any(|run| run.summary.flows.intra.count > 0 && run.summary.flows.inter.count > 0);
    let fair = runs.iter().any(|run| run.summary.fairness.jain_mean.is_some());
    // Programs on real packets send for as long as they like: their rate and their round trip are what tells them apart.
    let real = runs.iter().any(|run| run.summary.emulator.is_some());
    // Of one request, all that there is to say is when its last flow ended.
    let asked = runs.iter().any(|run| run.summary.requests.count > 1);
    let shared = runs.iter().any(|run| !run.summary.network.switches.is_empty());
    let paused = runs.iter().any(|run| run.summary.network.pfc_pauses > 0);
    let mut header = vec!["run", "done", "FCT mean", "FCT p99"];
    if asked {
        header.extend(["request mean", "request p99"]);
    }
    if both {
        header.extend(["intra mean", "intra p99", "inter mean", "inter p99"]);
    }
    if real {
        header.extend(["goodput", "RTT mean"]);
    }
    header.extend(["slowdown p99", "drops", "resent", "timeouts", "marks", "longest queue"]);
    if shared {
        header.push("fullest buffer");
    }
    if paused {
        header.extend(["pauses", "host paused"]);
    }
    let credited = runs.iter().any(|run| run.summary.credits.sent > 0);
    if credited {
        header.extend(["credits used", "wasted", "dropped"]);
    }
    if fair {
        header.extend(["Jain", "fair from"]);
    }
    table.set_header(header.into_iter().map(Cell::new));
    for run in runs {
        let it = &run.summary;
        let flows = &it.flows;
        let fct = |cell: &summary::Cell, stat: &str| cell.fct_ns.get(stat).flatten().map_or("-".into(), time);
        let mut row = vec![
            format!("{}/{}", flows.all.completed, flows.all.count),
            fct(&flows.all, "mean"),
            fct(&flows.all, "p99"),
        ];
        if asked {
            row.extend([fct(&it.requests, "mean"), fct(&it.requests, "p99")]);
        }
        if both {
            for cell in [&flows.intra, &flows.inter] {
                row.extend([fct(cell, "mean"), fct(cell, "p99")]);
            }
        }
        if real {
            row.push(format!("{:.0} Mb/s", flows.all.goodput_bps as f64 / 1e6));
            row.push(mean_rtt(run).map_or("-".into(), time));
        }
        row.extend([
            flows.all.slowdown.p99.map_or("-".into(), |slowdown| format!("{slowdown:.2}")),
            it.network.drops.to_string(),
            it.network.retransmits.to_string(),
            it.network.timeouts.to_string(),
            it.network.ecn_marks.to_string(),
            bytes(it.network.max_queue_bytes),
        ]);
        if shared {
            row.push(bytes(it.network.max_buffer_bytes));
        }
        if paused {
            row.extend([it.network.pfc_pauses.to_string(), time(it.network.host_pause_ns)]);
        }
        if credited {
            row.extend([it.credits.used, it.credits.wasted, it.credits.dropped].map(|count| count.to_string()));
        }
        if fair {
            row.push(it.fairness.jain_final.map_or("-".into(), |jain| format!("{jain:.3}")));
            row.push(it.fairness.converged_at_ns.map_or("never".into(), |ns| time(ns as f64)));
        }
        let name = if it.run == run.manifest.label { it.run.clone() } else { name(run) };
        let cells = row.into_iter().map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    let note = if fair { "\nJain: of what flows got in the last interval in which all were active.\n" } else { "\n" };
    format!("{table}{note}")
}

/// The mean over all samples of flows of the smoothed round trip, in nanoseconds.
fn mean_rtt(run: &RunResults) -> Option<f64> {
    let rows = &run.rates.rows;
    let sum: u64 = rows.iter().map(|row| row.srtt_ns).sum();
    (!rows.is_empty()).then(|| sum as f64 / rows.len() as f64)
}

/// What the emulator measured of itself, a line a run; nothing for runs that were simulated.
pub(crate) fn emulators(runs: &[RunResults]) -> String {
    let line = |run: &RunResults| {
        let it = run.summary.emulator.as_ref()?;
        Some(format!(
            "{}: real packets under {}; the emulator was late by {} (p50) and {} (p99), {:.0} % of a core{}\n",
            run.manifest.run,
            if it.congestion.is_empty() { "no TCP".to_owned() } else { it.congestion.join(", ") },
            time(it.lateness_p50_ns as f64),
            time(it.lateness_p99_ns as f64),
            it.cpu_share * 100.0,
            if it.real_time { "" } else { ", without real-time scheduling" },
        ))
    };
    runs.iter().filter_map(line).collect()
}

/// The scheme's label and the point of the grid.
fn name(run: &RunResults) -> String {
    let point = run.manifest.run.split_once(',').map_or("", |(_, point)| point);
    if point.is_empty() { run.manifest.label.clone() } else { format!("{}, {point}", run.manifest.label) }
}

/// Warnings of all runs, each said once with the runs that it is about.
pub(crate) fn warnings(runs: &[RunResults]) -> Vec<String> {
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in runs {
        for warning in &run.summary.warnings {
            match seen.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(&run.manifest.run),
                None => seen.push((warning, vec![&run.manifest.run])),
            }
        }
    }
    seen.into_iter().map(|(text, names)| format!("warning: {}: {text}", names.join("; "))).collect()
}

/// Nanoseconds in a unit that leaves three or four digits.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => return format!("{ns:.0} ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value >= 100.0 { 1 } else { 2 };
    format!("{value:.digits$} {unit}")
}

/// Bytes in a unit that leaves three digits.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        n if n < 1e3 => format!("{n} B"),
        n if n < 1e6 => format!("{:.0} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n if n < 1e12 => format!("{:.1} GB", n / 1e9),
        n => format!("{:.2} TB", n / 1e12),
    }
}

/// `1 flow`, `2 flows`.
pub(crate) fn count(n: usize, what: &str) -> String {
    let plural = match what {
        _ if n == 1 => "",
        "switch" => "es",
        _ => "s",
    };
    format!("{n} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits_or_four() {
        assert_eq!(time(14_027.5), "14.03 us");
        assert_eq!(time(687_200_000.0), "687.2 ms");
        assert_eq!(bytes(1_048_576), "1.0 MB");
    }
}
