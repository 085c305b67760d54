//! The table that a person reads after a run.

use std::fmt::Write as _;
use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use results::RunResults;
use results::summary;

/// The last column of what all allreduces have together.
const OVER_IDEAL: &str = "over ideal";
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
    let columns = columns(runs);
    let jobs = jobs(runs);
    // Jobs stand behind what all of them have.
    let place = columns.iter().position(|(title, _)| *title == OVER_IDEAL).map_or(columns.len(), |place| place + 1);
    let (columns, rest) = columns.split_at(place);
    let titles = |columns: &[Column]| columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>();
    let of_jobs = jobs.iter().map(|job| format!("job {job} mean"));
    let titles = titles(columns).into_iter().chain(of_jobs).chain(titles(rest));
    table.set_header(std::iter::once("run".to_owned()).chain(titles).map(Cell::new));
    for run in runs {
        let name = if run.summary.run == run.manifest.label { run.summary.run.clone() } else { name(run) };
        let of_job = |job: &&str| run.summary.jobs.get(job).map_or("-".into(), |cell| fct(cell, "mean"));
        let cells = columns.iter().map(|(_, cell)| cell(run)).chain(jobs.iter().map(of_job));
        let cells = cells.chain(rest.iter().map(|(_, cell)| cell(run)));
        let cells = cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    let fair = runs.iter().any(|run| run.summary.fairness.jain_mean.is_some());
    let note = if fair { "\nJain: of what flows got in the last interval in which all were active.\n" } else { "\n" };
    format!("{table}{note}")
}

/// Tables of averages over seeds, a part after the other.
pub(crate) fn averages(tables: &[results::averages::Table]) -> String {
    let mut text = String::new();
    for it in tables {
        for part in &it.parts {
            let mut table = fitted();
            table.set_header(std::iter::once("").chain(it.columns.iter().map(String::as_str)));
            for row in &part.rows {
                let shown = row.cells.iter().map(|cell| cell.map_or_else(|| "-".to_owned(), |cell| cell.to_string()));
                let cells = shown.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
                table.add_row(std::iter::once(Cell::new(&row.label)).chain(cells));
            }
            let point = if part.point.is_empty() { String::new() } else { format!(", {}", part.point) };
            let _ = writeln!(text, "{}{point}\n{table}", it.title);
        }
    }
    text
}

/// The jobs of all runs, where a run has several.
fn jobs(runs: &[RunResults]) -> Vec<&str> {
    let mut jobs = Vec::new();
    for (job, _) in runs.iter().flat_map(|run| run.summary.several_jobs()) {
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    jobs
}

/// A title, and what it says of a run.
type Column = (&'static str, fn(&RunResults) -> String);

/// What there is to say of these runs: what none of them has is left out.
fn columns(runs: &[RunResults]) -> Vec<Column> {
    let any = |has: fn(&summary::Summary) -> bool| runs.iter().any(|run| has(&run.summary));
    let mut columns: Vec<Column> = vec![
        ("done", |run| format!("{}/{}", run.summary.flows.all.completed, run.summary.flows.all.count)),
        ("FCT mean", |run| fct(&run.summary.flows.all, "mean")),
        ("FCT p99", |run| fct(&run.summary.flows.all, "p99")),
    ];
    let mut add = |is_there: bool, more: &[Column]| columns.extend(more.iter().filter(|_| is_there));
    // Of one request, all that there is to say is when its last flow ended.
    add(
        any(|it| it.requests.count > 1),
        &[
            ("request mean", |run| fct(&run.summary.requests, "mean")),
            ("request p99", |run| fct(&run.summary.requests, "p99")),
        ],
    );
    add(
        any(|it| it.collectives.count > 0),
        &[
            ("allreduce mean", |run| fct(&run.summary.collectives, "mean")),
            ("allreduce p99", |run| fct(&run.summary.collectives, "p99")),
            (OVER_IDEAL, |run| ratio(run.summary.collectives.slowdown.mean)),
        ],
    );
    add(
        any(|it| it.flows.intra.count > 0 && it.flows.inter.count > 0),
        &[
            ("intra mean", |run| fct(&run.summary.flows.intra, "mean")),
            ("intra p99", |run| fct(&run.summary.flows.intra, "p99")),
            ("inter mean", |run| fct(&run.summary.flows.inter, "mean")),
            ("inter p99", |run| fct(&run.summary.flows.inter, "p99")),
        ],
    );
    // Programs on real packets send for as long as they like: their rate and their round trip are what tells them apart.
    add(
        any(|it| it.emulator.is_some()),
        &[
            ("goodput", |run| format!("{:.0} Mb/s", run.summary.flows.all.goodput_bps as f64 / 1e6)),
            ("RTT mean", |run| mean_rtt(run).map_or("-".into(), time)),
        ],
    );
    add(
        true,
        &[
            ("slowdown p99", |run| ratio(run.summary.flows.all.slowdown.p99)),
            ("drops", |run| run.summary.network.drops.to_string()),
            ("resent", |run| run.summary.network.retransmits.to_string()),
            ("timeouts", |run| run.summary.network.timeouts.to_string()),
            ("marks", |run| run.summary.network.ecn_marks.to_string()),
            ("longest queue", |run| bytes(run.summary.network.max_queue_bytes)),
        ],
    );
    add(
        any(|it| it.network.parity_packets > 0),
        &[
            ("parity", |run| run.summary.network.parity_packets.to_string()),
            ("recovered", |run| run.summary.network.recovered_blocks.to_string()),
            ("asked", |run| run.summary.network.nacks.to_string()),
        ],
    );
    add(
        any(|it| !it.network.switches.is_empty()),
        &[("fullest buffer", |run| bytes(run.summary.network.max_buffer_bytes))],
    );
    add(
        any(|it| it.network.pfc_pauses > 0),
        &[
            ("pauses", |run| run.summary.network.pfc_pauses.to_string()),
            ("host paused", |run| time(run.summary.network.host_pause_ns)),
        ],
    );
    add(
        any(|it| it.credits.sent > 0),
        &[
            ("credits used", |run| run.summary.credits.used.to_string()),
            ("wasted", |run| run.summary.credits.wasted.to_string()),
            ("dropped", |run| run.summary.credits.dropped.to_string()),
        ],
    );
    add(
        any(|it| it.fairness.jain_mean.is_some()),
        &[
            ("Jain", |run| run.summary.fairness.jain_final.map_or("-".into(), |jain| format!("{jain:.3}"))),
            ("fair from", |run| run.summary.fairness.converged_at_ns.map_or("never".into(), |ns| time(ns as f64))),
        ],
    );
    columns
}

/// A statistic of completion times.
fn fct(cell: &summary::Cell, stat: &str) -> String {
    cell.fct_ns.get(stat).flatten().map_or("-".into(), time)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
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

/// Warnings of all runs, then notes, each said once with the runs that it is about.
pub(crate) fn warnings(runs: &[RunResults]) -> Vec<String> {
    let mut seen: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (word, of) in
        [("warning", (|it| &it.warnings) as fn(&summary::Summary) -> &Vec<String>), ("note", |it| &it.notes)]
    {
        for (run, said) in runs.iter().flat_map(|run| of(&run.summary).iter().map(move |said| (run, said))) {
            match seen.iter_mut().find(|(known, text, _)| (*known, *text) == (word, said)) {
                Some((.., names)) => names.push(&run.manifest.run),
                None => seen.push((word, said, vec![&run.manifest.run])),
            }
        }
    }
    seen.into_iter().map(|(word, text, names)| format!("{word}: {}: {text}", names.join("; "))).collect()
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
