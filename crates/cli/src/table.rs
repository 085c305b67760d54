//! The table that a person reads after a run.

use std::fmt::Write as _;
use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use results::RunResults;
use results::explain::FEW;
use results::pooled::{Interval, Part, Pooled};
use results::summary;
use study::count;

/// The last column of what all collectives have together.
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

/// One row a run, with all columns, or with the most important ones that the terminal has room for.
pub(crate) fn headline(runs: &[RunResults], wide: bool) -> String {
    let columns = columns(runs);
    let jobs: Vec<JobColumn> = jobs(runs).into_iter().map(JobColumn::Mean).chain(training(runs)).collect();
    // Jobs stand behind what all of them have.
    let place = columns.iter().position(|(title, _)| *title == OVER_IDEAL).map_or(columns.len(), |place| place + 1);
    let (columns, rest) = columns.split_at(place);
    let titles = |columns: &[Column]| columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>();
    let of_jobs = jobs.iter().map(JobColumn::title);
    let titles: Vec<String> = titles(columns).into_iter().chain(of_jobs).chain(titles(rest)).collect();
    let row = |run: &RunResults| {
        let name = if run.summary.run == run.manifest.label { run.summary.run.clone() } else { name(run) };
        let of_jobs = jobs.iter().map(|column| fct(column.ns(&run.summary)));
        let cells = columns.iter().map(|(_, cell)| cell(run)).chain(of_jobs);
        (name, cells.chain(rest.iter().map(|(_, cell)| cell(run))).collect())
    };
    let rows: Vec<(String, Vec<String>)> = runs.iter().map(row).collect();
    let table = numbers("run", &titles, &rows, if wide { None } else { fitted().width().filter(|&width| width > 0) });
    let few = rows.iter().any(|(_, cells)| cells.iter().any(|cell| cell.ends_with(FEW_SIGN)));
    let few = if few { format!("\n{}", of_few()) } else { String::new() };
    let fair = runs.iter().any(|run| run.summary.fairness.jain_mean.is_some());
    let note = if fair { "\nJain: of what flows got in the last interval in which all were active.\n" } else { "\n" };
    format!("{table}{few}{note}")
}

/// Behind a p99 that one of the slowest flows decides.
const FEW_SIGN: &str = " ?";

fn of_few() -> String {
    format!("?: of fewer than {FEW} flows, so one of the slowest decides")
}

/// The columns that a narrow terminal keeps, the most important first. All others follow in their order.
const ESSENTIAL: [&str; 8] =
    ["done", "FCT p99", "FCT mean", "goodput", "collective mean", "request p99", "slowdown p99", "drops"];

/// A table of numbers with a name for each row, at most `width` characters wide. Headings stay whole: first they go
/// over several lines, a word each; then columns are left out, and a line says so.
fn numbers(first: &str, titles: &[String], rows: &[(String, Vec<String>)], width: Option<u16>) -> String {
    let all: Vec<usize> = (0..titles.len()).collect();
    let stacked: Vec<String> = titles.iter().map(|title| title.replace(' ', "\n")).collect();
    let of_text = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let names = rows.iter().map(|(name, _)| of_text(name)).chain([of_text(first)]).max().unwrap_or(0);
    let is_fit = |names: usize, shown: &[usize], titles: &[String]| {
        let of_column = |&column: &usize| {
            let cells = rows.iter().map(|(_, cells)| of_text(&cells[column])).max().unwrap_or(0);
            // A blank at either side, and a line.
            cells.max(of_text(&titles[column])) + 3
        };
        width.is_none_or(|width| names + 4 + shown.iter().map(of_column).sum::<usize>() <= width.into())
    };
    if is_fit(names, &all, titles) {
        return drawn(first, titles, rows, &all, None);
    }
    let rank = |column: &usize| {
        let essential = ESSENTIAL.iter().position(|title| *title == titles[*column]);
        (essential.unwrap_or(ESSENTIAL.len()), *column)
    };
    let mut shown = all.clone();
    shown.sort_by_key(rank);
    let most = |names: usize| (1..=shown.len()).rev().find(|&many| is_fit(names, &shown[..many], &stacked));
    // Where not even one column has room beside the names, the names are broken, not the numbers.
    let whole = most(names);
    let many = whole.or_else(|| most(LEAST_NAME.into())).unwrap_or(1);
    shown.truncate(many);
    shown.sort_unstable();
    let table = drawn(first, &stacked, rows, &shown, width.filter(|_| whole.is_none()));
    match titles.len().saturating_sub(shown.len()) {
        0 => table,
        left => format!("{table}\n{} not shown for want of room: --wide shows all", count(left, "column")),
    }
}

/// Names are not broken into pieces shorter than this.
const LEAST_NAME: u16 = 12;

/// The table of some columns; with a width, names are broken to fit it.
fn drawn(
    first: &str,
    titles: &[String],
    rows: &[(String, Vec<String>)],
    shown: &[usize],
    width: Option<u16>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    let heads = shown.iter().map(|&column| titles[column].as_str());
    table.set_header(std::iter::once(first).chain(heads).map(Cell::new));
    for (name, cells) in rows {
        let cells = shown.iter().map(|&column| Cell::new(&cells[column]).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        for (place, column) in table.column_iter_mut().enumerate() {
            // A name in pieces of a letter says nothing, so below this width the table is wider than the terminal.
            column.set_constraint(if place == 0 {
                ColumnConstraint::LowerBoundary(Width::Fixed(LEAST_NAME + 2))
            } else {
                ColumnConstraint::ContentWidth
            });
        }
    }
    table.to_string()
}

/// Tables of averages over seeds, a part after the other.
pub(crate) fn averages(tables: &[results::averages::Table], wide: bool) -> String {
    let mut text = String::new();
    for averages in tables {
        for part in &averages.parts {
            let row = |row: &results::averages::Row| {
                let shown = row.cells.iter().map(|cell| cell.map_or_else(|| "-".to_owned(), |cell| cell.to_string()));
                (row.name(), shown.collect())
            };
            let rows: Vec<(String, Vec<String>)> = part.rows.iter().map(row).collect();
            let table = named_rows(&averages.columns, &rows, wide);
            let point = if part.point.is_empty() { String::new() } else { format!(", {}", part.point) };
            let _ = write!(text, "{}{point}\n{table}", averages.title);
        }
    }
    text
}

/// A table with a name for each row; without `wide`, as many columns as the terminal has room for.
pub(crate) fn named_rows(titles: &[String], rows: &[(String, Vec<String>)], wide: bool) -> String {
    let width = if wide { None } else { fitted().width().filter(|&width| width > 0) };
    format!("{}\n", numbers("", titles, rows, width))
}

/// What all seeds together say of slowdowns.
pub(crate) fn pooled(parts: &[Part], wide: bool) -> String {
    let mut text = String::new();
    let mut few = false;
    for part in parts {
        let over = |quantile: &str| format!("{quantile} / {}", part.first);
        let titles: Vec<String> =
            ["class", "seeds", "flows", "p50", "p99", &over("p50"), &over("p99")].map(str::to_owned).into();
        let row = |row: &Pooled| {
            let p99 = if row.is_of_few() { FEW_SIGN } else { "" };
            few |= row.is_of_few();
            let [p50_ratio, p99_ratio] = match &row.ratios {
                Some(ratios) => {
                    ratios.map(|ratio| format!("{}{}", interval(&ratio), if ratio.excludes(1.0) { " *" } else { "" }))
                }
                None => ["", ""].map(str::to_owned),
            };
            let cells = vec![
                row.class.name().to_owned(),
                row.seeds.to_string(),
                row.flows.to_string(),
                interval(&row.p50),
                format!("{}{p99}", interval(&row.p99)),
                p50_ratio,
                p99_ratio,
            ];
            (row.label.clone(), cells)
        };
        let rows: Vec<(String, Vec<String>)> = part.rows.iter().map(row).collect();
        let point = if part.point.is_empty() { String::new() } else { format!(", {}", part.point) };
        let _ = write!(text, "Slowdown, all seeds together{point}\n{}", named_rows(&titles, &rows, wide));
    }
    if !parts.is_empty() {
        text.push_str("95 % intervals by bootstrap over seeds and flows; ratios are of the same flows; *: the interval is without 1\n");
    }
    if few {
        let _ = writeln!(text, "{}", of_few());
    }
    text
}

fn interval(of: &Interval) -> String {
    format!("{:.2} ({:.2} to {:.2})", of.value, of.low, of.high)
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

/// A column about one job.
enum JobColumn<'a> {
    /// The mean of its collective operations.
    Mean(&'a str),
    /// Of a training job, the mean of its iterations.
    Iteration(&'a str),
    /// Of a training job, how much of that no computing hides.
    Exposed(&'a str),
}

impl JobColumn<'_> {
    fn title(&self) -> String {
        match self {
            Self::Mean(job) => format!("job {job} mean"),
            Self::Iteration(job) => format!("{job} iteration"),
            Self::Exposed(job) => format!("{job} exposed"),
        }
    }

    /// In nanoseconds.
    fn ns(&self, summary: &summary::Summary) -> Option<f64> {
        let training = |job: &str| summary.jobs.get(job)?.training.as_ref();
        match self {
            Self::Mean(job) => summary.jobs.get(job)?.cell.fct_ns.mean,
            Self::Iteration(job) => training(job)?.iteration_mean_ns,
            Self::Exposed(job) => training(job)?.exposed_ns,
        }
    }
}

/// The columns of training jobs.
fn training(runs: &[RunResults]) -> Vec<JobColumn<'_>> {
    let mut jobs = Vec::new();
    for (job, _) in runs.iter().flat_map(|run| run.summary.training()) {
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    jobs.into_iter().flat_map(|job| [JobColumn::Iteration(job), JobColumn::Exposed(job)]).collect()
}

/// A title, and what it says of a run.
type Column = (&'static str, fn(&RunResults) -> String);

/// What there is to say of these runs: what none of them has is left out.
fn columns(runs: &[RunResults]) -> Vec<Column> {
    let any = |has: fn(&summary::Summary) -> bool| runs.iter().any(|run| has(&run.summary));
    let mut columns: Vec<Column> = vec![
        ("done", |run| format!("{}/{}", run.summary.flows.all.completed, run.summary.flows.all.count)),
        ("FCT mean", |run| fct(run.summary.flows.all.fct_ns.mean)),
        ("FCT p99", |run| fct_p99(&run.summary.flows.all)),
    ];
    let mut add = |is_there: bool, more: &[Column]| columns.extend(more.iter().filter(|_| is_there));
    // Of one request, all that there is to say is when its last flow ended.
    add(
        any(|it| it.requests.count > 1),
        &[
            ("request mean", |run| fct(run.summary.requests.fct_ns.mean)),
            ("request p99", |run| fct_p99(&run.summary.requests)),
        ],
    );
    add(
        any(|it| it.collectives.count > 0),
        &[
            ("collective mean", |run| fct(run.summary.collectives.fct_ns.mean)),
            ("collective p99", |run| fct_p99(&run.summary.collectives)),
            (OVER_IDEAL, |run| ratio(run.summary.collectives.slowdown.mean)),
        ],
    );
    add(
        any(|it| it.flows.intra.count > 0 && it.flows.inter.count > 0),
        &[
            ("intra mean", |run| fct(run.summary.flows.intra.fct_ns.mean)),
            ("intra p99", |run| fct_p99(&run.summary.flows.intra)),
            ("inter mean", |run| fct(run.summary.flows.inter.fct_ns.mean)),
            ("inter p99", |run| fct_p99(&run.summary.flows.inter)),
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
            ("slowdown p99", |run| {
                let all = &run.summary.flows.all;
                of_many(ratio(all.slowdown.p99), all)
            }),
            ("drops", |run| run.summary.network.drops.to_string()),
            ("resent", |run| run.summary.network.retransmits.to_string()),
            ("timeouts", |run| run.summary.network.timeouts.to_string()),
            ("marks", |run| run.summary.network.ecn_marks.to_string()),
            ("longest queue", |run| bytes(run.summary.network.max_queue_bytes)),
        ],
    );
    add(
        any(|it| data_drops(it).is_some_and(|data| data != it.network.drops)),
        &[("of data", |run| data_drops(&run.summary).map_or("-".into(), |data| data.to_string()))],
    );
    add(any(|it| it.network.trims > 0), &[("trimmed", |run| run.summary.network.trims.to_string())]);
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

/// The lost data packets; none in results of earlier versions, which do not tell kinds of packets apart.
fn data_drops(summary: &summary::Summary) -> Option<u64> {
    summary.network.drops_by_kind.get("data").copied()
}

fn fct_p99(cell: &summary::Cell) -> String {
    of_many(fct(cell.fct_ns.p99), cell)
}

/// A 99th percentile, with a sign where too few flows ended.
fn of_many(p99: String, cell: &summary::Cell) -> String {
    if p99 != "-" && cell.completed < FEW as u64 { p99 + FEW_SIGN } else { p99 }
}

/// A statistic of completion times.
fn fct(ns: Option<f64>) -> String {
    ns.map_or("-".into(), time)
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
        let emulator = run.summary.emulator.as_ref()?;
        Some(format!(
            "{}: {}: real packets under {}{}; the emulator was late by {} (p50) and {} (p99), {:.0} % of a core{}\n",
            run.manifest.run,
            emulator.soundness,
            if emulator.congestion.is_empty() { "no TCP".to_owned() } else { emulator.congestion.join(", ") },
            if emulator.stack == results::Stack::Narrows { " over the transport" } else { "" },
            time(emulator.lateness_p50_ns as f64),
            time(emulator.lateness_p99_ns as f64),
            emulator.cpu_share * 100.0,
            if emulator.real_time { "" } else { ", without real-time scheduling" },
        ))
    };
    runs.iter().filter_map(line).collect()
}

/// The scheme's label and the point of the grid.
fn name(run: &RunResults) -> String {
    let point = run.manifest.run.split_once(',').map_or("", |(_, point)| point);
    if point.is_empty() { run.manifest.label.clone() } else { format!("{}, {point}", run.manifest.label) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p99_of_few_flows_is_questioned() {
        let of = |completed| of_many("1.00".into(), &summary::Cell { completed, ..summary::Cell::default() });
        assert_eq!((of(99).as_str(), of(100).as_str()), ("1.00 ?", "1.00"));
        assert_eq!(of_many("-".into(), &summary::Cell::default()), "-");
    }

    /// The table is at most as wide as the terminal, headings have whole words, and a line says what is left out.
    #[test]
    fn narrow_terminals_get_the_essentials() {
        let titles = ["done", "FCT mean", "FCT p99", "intra mean", "slowdown p99", "drops", "longest queue"];
        let titles: Vec<String> = titles.map(str::to_owned).into();
        let cells = ["500/500", "12.34 ms", "123.4 ms", "12.34 ms", "12.00", "1234", "1.0 MB"].map(str::to_owned);
        let named = |name: &str| (name.to_owned(), cells.to_vec());
        let rows = [named("Uno, load=0.4, seed=1"), named("MPRDMA+BBR, load=0.4, seed=1")];
        let all = numbers("run", &titles, &rows, None);
        assert!(titles.iter().all(|title| all.contains(title)) && !all.contains("--wide"), "{all}");
        let words: Vec<&str> = titles.iter().flat_map(|title| title.split(' ')).collect();
        for width in [20, 40, 60, 80, 100, 120] {
            let text = numbers("run", &titles, &rows, Some(width));
            let drawn = text.lines().filter(|line| !line.contains("--wide")).map(|line| line.chars().count());
            let widest = drawn.max().unwrap_or(0);
            assert!(widest <= width.into() || width < 40, "{width}: {widest}\n{text}");
            let body = text.split('╞').next().unwrap_or_default();
            let heads = body.split(|c: char| c.is_whitespace() || "┌┬─┐│┆".contains(c)).filter(|word| !word.is_empty());
            assert!(heads.clone().all(|word| word == "run" || words.contains(&word)), "{width}\n{text}");
            assert!(
                heads.clone().any(|word| word == "done") && (text.contains("p99") || width < 40),
                "{width}\n{text}"
            );
        }
        let sixty = numbers("run", &titles, &rows, Some(60));
        assert!(!sixty.contains("queue") && sixty.contains("columns not shown for want of room"), "{sixty}");
    }

    #[test]
    fn times_keep_three_digits_or_four() {
        assert_eq!(time(14_027.5), "14.03 us");
        assert_eq!(time(687_200_000.0), "687.2 ms");
        assert_eq!(bytes(1_048_576), "1.0 MB");
    }
}
