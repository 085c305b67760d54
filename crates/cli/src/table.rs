//! The table that a person reads after a run.

use std::io::IsTerminal;

use comfy_table::{Cell as Drawn, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use results::RunResults;
use results::averages::{FEW_SIGN, explain_few};
use results::claims::ast::Subject;
use results::claims::keywords::{SpreadKey, Stat};
use results::claims::{DimensionedValue, Expr, Metric, Runs, value};
use results::explain::FEW;
use results::pooled::{ConfidenceInterval, Pooled, PooledPoint};
use results::summary;
use results::summary::ImpairedPackets;
use study::count;

use crate::args::Columns;
use crate::sheet::{Datum, Sheet, SheetCell, SheetRow};

/// The last column that all collectives have in common.
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

/// A serial console has no known width and reports 0.
fn no_columns(table: &Table) -> bool {
    table.width() == Some(0)
}

/// One row per run.
pub(crate) fn runs(runs: &[RunResults]) -> Sheet {
    let columns = columns(runs);
    let jobs = job_columns(runs);
    // Columns of jobs follow the common columns.
    let index = columns.iter().position(|(title, _)| *title == OVER_IDEAL).map_or(columns.len(), |index| index + 1);
    let (columns, rest) = columns.split_at(index);
    let titles = |columns: &[TableColumn]| columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>();
    let of_jobs = jobs.iter().map(JobColumn::title);
    let titles: Vec<String> = titles(columns).into_iter().chain(of_jobs).chain(titles(rest)).collect();
    let row = |run: &RunResults| {
        let name = if run.summary.run == run.manifest.label { run.summary.run.clone() } else { name(run) };
        let of_jobs = jobs.iter().map(|column| fct(column.ns(&run.summary)));
        let cells = columns.iter().map(|(_, cell)| cell(run)).chain(of_jobs);
        SheetRow { name, keys: keys_of(run), cells: cells.chain(rest.iter().map(|(_, cell)| cell(run))).collect() }
    };
    Sheet { name: "runs", title: String::new(), first: "run", columns: titles, rows: runs.iter().map(row).collect() }
}

/// A run's scheme, its point and its seed.
fn keys_of(run: &RunResults) -> Vec<(String, Datum)> {
    // Columns of the run's tables, in base units; results of earlier versions lack them.
    let columns = run.manifest.columns.iter().map(|it| (it.name.clone(), Datum::of_point(&it.value)));
    let mut keys: Vec<(String, Datum)> = columns.collect();
    if keys.is_empty() {
        let point = run.manifest.point.iter();
        keys = point.map(|(key, value)| (key.to_owned(), Datum::of_json(value))).collect();
    }
    if keys.iter().all(|(key, _)| key != "scheme") {
        keys.insert(0, ("scheme".to_owned(), Datum::Text(run.summary.run.clone())));
    }
    if keys.iter().all(|(key, _)| key != "seed") {
        keys.push(("seed".to_owned(), Datum::Whole(run.summary.seed)));
    }
    keys
}

/// A table as it is shown.
pub(crate) fn shown(sheet: &Sheet, columns: Columns) -> String {
    let width = match columns {
        Columns::Fitted => fitted().width().filter(|&width| width > 0),
        Columns::All => None,
    };
    let table = numbers(sheet, width);
    let title = if sheet.title.is_empty() { String::new() } else { format!("{}\n", sheet.title) };
    format!("{title}{table}\n")
}

/// A table of sentences, wrapped to the terminal.
pub(crate) fn wrapped(sheet: &Sheet) -> String {
    let mut table = prose();
    table.set_header(std::iter::once(sheet.first).chain(sheet.columns.iter().map(String::as_str)));
    for row in &sheet.rows {
        table.add_row(std::iter::once(&row.name).chain(row.cells.iter().map(|cell| &cell.shown)));
    }
    table.to_string()
}

/// Explains the signs in these tables.
pub(crate) fn signs<'a>(sheets: impl IntoIterator<Item = &'a Sheet>) -> String {
    let mut cells = sheets.into_iter().flat_map(|sheet| &sheet.rows).flat_map(|row| &row.cells);
    if cells.any(|cell| cell.shown.ends_with(FEW_SIGN)) { format!("{}\n", explain_few()) } else { String::new() }
}

/// Explains the columns of the table of runs.
pub(crate) fn note(runs: &[RunResults]) -> &'static str {
    let fair = runs.iter().any(|run| run.summary.fairness.jain_mean.is_some());
    if fair { "Jain: of what flows got in the last interval in which all were active.\n" } else { "" }
}

/// The columns that a narrow terminal keeps, the most important first. All others follow in their order.
const ESSENTIAL: [&str; 8] =
    ["done", "FCT p99", "FCT mean", "goodput", "collective mean", "request p99", "slowdown p99", "drops"];

/// A table of numbers with a name for each row, at most `width` characters wide. Headings are not broken inside words: first they go
/// over several lines, a word each; then columns are left out, and a line states their number.
fn numbers(sheet: &Sheet, width: Option<u16>) -> String {
    let Sheet { first, columns: titles, rows, .. } = sheet;
    let all: Vec<usize> = (0..titles.len()).collect();
    let stacked: Vec<String> = titles.iter().map(|title| title.replace(' ', "\n")).collect();
    let of_text = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let names = rows.iter().map(|row| of_text(&row.name)).chain([of_text(first)]).max().unwrap_or(0);
    let is_fit = |names: usize, shown: &[usize], titles: &[String]| {
        let of_column = |&column: &usize| {
            let cells = rows.iter().map(|row| of_text(&row.cells[column].shown)).max().unwrap_or(0);
            // A blank at either side, and a line.
            cells.max(of_text(&titles[column])) + 3
        };
        width.is_none_or(|width| names + 4 + shown.iter().map(of_column).sum::<usize>() <= width.into())
    };
    if is_fit(names, &all, titles) {
        return render(first, titles, rows, &all, None);
    }
    let rank = |column: &usize| {
        let essential = ESSENTIAL.iter().position(|title| *title == titles[*column]);
        (essential.unwrap_or(ESSENTIAL.len()), *column)
    };
    let mut shown = all.clone();
    shown.sort_by_key(rank);
    let max_columns = |names: usize| (1..=shown.len()).rev().find(|&many| is_fit(names, &shown[..many], &stacked));
    // If not even one column fits next to the names, the names are broken, not the numbers.
    let unbroken = max_columns(names);
    let many = unbroken.or_else(|| max_columns(MIN_NAME.into())).unwrap_or(1);
    shown.truncate(many);
    shown.sort_unstable();
    let table = render(first, &stacked, rows, &shown, width.filter(|_| unbroken.is_none()));
    match titles.len().saturating_sub(shown.len()) {
        0 => table,
        left => format!("{table}\n{} hidden, as the terminal is too narrow: --wide shows all", count(left, "column")),
    }
}

/// Names are not broken into pieces shorter than this.
const MIN_NAME: u16 = 12;

/// The table of some columns; with a width, names are broken to fit it.
fn render(first: &str, titles: &[String], rows: &[SheetRow], shown: &[usize], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    let heads = shown.iter().map(|&column| titles[column].as_str());
    table.set_header(std::iter::once(first).chain(heads).map(Drawn::new));
    for row in rows {
        let cells =
            shown.iter().map(|&column| Drawn::new(&row.cells[column].shown).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Drawn::new(&row.name)).chain(cells));
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        for (index, column) in table.column_iter_mut().enumerate() {
            // A name broken into single letters is unreadable, so below this width the table is wider than the terminal.
            column.set_constraint(if index == 0 {
                ColumnConstraint::LowerBoundary(Width::Fixed(MIN_NAME + 2))
            } else {
                ColumnConstraint::ContentWidth
            });
        }
    }
    table.to_string()
}

/// Tables of averages over seeds, a part after the other.
pub(crate) fn averages(name: &'static str, tables: &[results::averages::AveragesTable]) -> Vec<Sheet> {
    let cell = |unit: &str, cell: &Option<results::averages::MeanCell>| match cell {
        None => SheetCell::new("-", unit, None),
        Some(cell) => {
            let (mean, unit) = cell.of.mean.as_in_tables();
            let margin =
                cell.of.margin.map(|margin| DimensionedValue { amount: margin, ..cell.of.mean }.as_in_tables().0);
            let sheet_cell = SheetCell::new(cell.to_string(), &unit, Some(mean)).with(&joined(&unit, "margin"), margin);
            if cell.is_of_few { sheet_cell.with("of_few", Datum::Whole(1)) } else { sheet_cell }
        }
    };
    let part = |of: &results::averages::AveragesTable, part: &results::averages::PointAverages| {
        let row = |row: &results::averages::SchemeAverages| SheetRow {
            name: row.name(),
            keys: vec![("point".to_owned(), Datum::Text(part.point.clone()))],
            cells: row.cells.iter().enumerate().map(|(column, it)| cell(&unit_of(of, column), it)).collect(),
        };
        let title = if part.point.is_empty() { of.title.clone() } else { format!("{}, {}", of.title, part.point) };
        let rows = part.rows.iter().map(row).collect();
        Sheet { name, title, first: "", columns: of.columns.clone(), rows }
    };
    tables.iter().flat_map(|table| table.parts.iter().map(move |it| part(table, it))).collect()
}

/// The unit of a column's values.
fn unit_of(table: &results::averages::AveragesTable, column: usize) -> String {
    let cells = table.parts.iter().flat_map(|part| &part.rows).map(|row| row.cells[column].as_ref());
    cells.flatten().next().map_or_else(String::new, |cell| cell.of.mean.as_in_tables().1)
}

fn joined(unit: &str, word: &str) -> String {
    if unit.is_empty() { word.to_owned() } else { format!("{word}_{unit}") }
}

/// Slowdowns of all seeds together.
pub(crate) fn pooled(parts: &[PooledPoint]) -> Vec<Sheet> {
    let part = |part: &PooledPoint| {
        let over = |quantile: &str| format!("{quantile} / {}", part.first);
        let columns = ["class", "seeds", "flows", "p50", "p99", &over("p50"), &over("p99")].map(str::to_owned).into();
        let row = |row: &Pooled| {
            let few = if row.is_of_few() { FEW_SIGN } else { "" };
            let ratio = |index: usize| match &row.ratios {
                Some(ratios) if ratios[index].excludes(1.0) => interval(&ratios[index], " *"),
                Some(ratios) => interval(&ratios[index], ""),
                None => SheetCell::new("", "", None),
            };
            let [seeds, flows] = [row.seeds, row.flows].map(|count| SheetCell::count(count as u64));
            let class = SheetCell::text(row.class.name());
            let cells = vec![class, seeds, flows, interval(&row.p50, ""), interval(&row.p99, few), ratio(0), ratio(1)];
            let keys = vec![("point".to_owned(), Datum::Text(part.point.clone()))];
            SheetRow { name: row.label.clone(), keys, cells }
        };
        let point = if part.point.is_empty() { String::new() } else { format!(", {}", part.point) };
        let title = format!("Slowdown, all seeds together{point}");
        Sheet { name: "pooled", title, first: "", columns, rows: part.rows.iter().map(row).collect() }
    };
    parts.iter().map(part).collect()
}

/// Explains the intervals of [`pooled`].
pub(crate) const POOLED: &str =
    "95 % intervals by bootstrap over seeds and flows; ratios are of the same flows; *: the interval is without 1\n";

fn interval(of: &ConfidenceInterval, sign: &str) -> SheetCell {
    let shown = format!("{:.2} ({:.2} to {:.2}){sign}", of.value, of.low, of.high);
    SheetCell::new(shown, "", Some(of.value)).with("low", Some(of.low)).with("high", Some(of.high))
}

/// A column about one job or imported schedule.
enum JobColumn<'a> {
    /// The mean of its collective operations.
    Mean(&'a str),
    /// The mean of a training job's iterations.
    Iteration(&'a str),
    /// The part of that mean that no computing of the training job hides.
    Exposed(&'a str),
    /// Time of an imported schedule from its start to its last completion.
    EndToEnd(&'a str),
}

impl JobColumn<'_> {
    fn title(&self) -> String {
        match self {
            Self::Mean(job) => format!("job {job} mean"),
            Self::Iteration(job) => format!("{job} iteration"),
            Self::Exposed(job) => format!("{job} exposed"),
            Self::EndToEnd(schedule) => format!("{schedule} end to end"),
        }
    }

    /// In nanoseconds.
    fn ns(&self, summary: &summary::Summary) -> Option<f64> {
        let training = |job: &str| summary.jobs.get(job)?.training.as_ref();
        match self {
            Self::Mean(job) => summary.jobs.get(job)?.cell.fct_ns.mean,
            Self::Iteration(job) => training(job)?.iteration_mean_ns,
            Self::Exposed(job) => training(job)?.exposed_ns,
            Self::EndToEnd(schedule) => summary.schedules.get(schedule)?.end_to_end_ns,
        }
    }
}

/// The columns of jobs, where a run has several, of training jobs, and of imported schedules.
fn job_columns(runs: &[RunResults]) -> Vec<JobColumn<'_>> {
    let all = || runs.iter().map(|run| &run.summary);
    let several = once(all().flat_map(|it| it.several_jobs().map(|(job, _)| job)));
    let training = once(all().flat_map(|it| it.training().map(|(job, _)| job)));
    let schedules = once(all().flat_map(|it| it.schedules.iter().map(|(schedule, _)| schedule)));
    let training = training.into_iter().flat_map(|job| [JobColumn::Iteration(job), JobColumn::Exposed(job)]);
    let several = several.into_iter().map(JobColumn::Mean);
    several.chain(training).chain(schedules.into_iter().map(JobColumn::EndToEnd)).collect()
}

/// Each name once, in the order of first appearance.
fn once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// Table of iterations of training jobs: one row per run and job.
pub(crate) fn iterations(runs: &[RunResults]) -> Option<Sheet> {
    let jobs = || runs.iter().flat_map(|run| run.summary.training().map(move |(job, it)| (run, job, it)));
    let steps = once(jobs().flat_map(|(.., it)| it.critical.iter().map(|(step, _)| step)));
    if steps.is_empty() {
        return None;
    }
    let share =
        |share: Option<f64>| SheetCell::new(share.map_or("-".into(), |it| format!("{:.0} %", 100.0 * it)), "", share);
    let row = |(run, job, it): (&RunResults, &str, &summary::Training)| {
        let of_job = Subject::Spread { class: job.to_owned(), key: SpreadKey::Iteration, stat: Stat::P99 };
        let p99 = Expr::Metric(Metric { run: String::new(), subject: of_job });
        let p99 = value(&p99, &Runs::of_summary(&run.summary)).ok().map(|it| it.amount);
        let count = it.iteration_ns.len() as u64;
        let p99 = of_many(fct(p99), count);
        let [mean, compute, exposed] = [it.iteration_mean_ns, it.compute_ns, it.exposed_ns].map(fct);
        let times = [mean, p99, compute, exposed];
        let known = |of: f64| (count > 0).then_some(of);
        let shares = steps.iter().map(|step| share(it.critical.get(step).copied().and_then(known)));
        let cells = [SheetCell::text(job), SheetCell::count(count)].into_iter().chain(times).chain(shares);
        SheetRow { name: name(run), keys: keys_of(run), cells: cells.chain([share(known(it.inter))]).collect() }
    };
    let heads = ["job", "iterations", "mean", "p99", "compute", "exposed"].map(str::to_owned).into_iter();
    let columns = heads.chain(steps.iter().map(|&step| step.to_owned())).chain(["between datacenters".to_owned()]);
    let title = "Iterations, and shares of what their critical path waits for".to_owned();
    Some(Sheet { name: "iterations", title, first: "run", columns: columns.collect(), rows: jobs().map(row).collect() })
}

/// A title, and its value for a run.
type TableColumn = (&'static str, fn(&RunResults) -> SheetCell);

/// Returns the columns of these runs: a column that none of them has is left out.
fn columns(runs: &[RunResults]) -> Vec<TableColumn> {
    let any = |has: fn(&summary::Summary) -> bool| runs.iter().any(|run| has(&run.summary));
    let mut columns: Vec<TableColumn> = vec![
        ("done", |run| {
            let all = &run.summary.flows.all;
            let shown = format!("{}/{}", all.completed, all.count);
            SheetCell::new(shown, "", Datum::Whole(all.completed)).with("of", Datum::Whole(all.count))
        }),
        ("FCT mean", |run| fct(run.summary.flows.all.fct_ns.mean)),
        ("FCT p99", |run| fct_p99(&run.summary.flows.all)),
    ];
    let mut add = |is_present: bool, more: &[TableColumn]| columns.extend(more.iter().filter(|_| is_present));
    // A single request has no distribution: its time is when its last flow ended.
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
    // Programs on real packets send for any length of time: their rate and round-trip time distinguish them.
    add(
        any(|it| it.emulator.is_some()),
        &[
            ("goodput", |run| {
                let bps = run.summary.flows.all.goodput_bps;
                SheetCell::new(format!("{:.0} Mb/s", bps as f64 / 1e6), "bps", Datum::Whole(bps))
            }),
            ("RTT mean", |run| fct(mean_rtt(run))),
        ],
    );
    add(
        true,
        &[
            ("slowdown p99", |run| {
                let all = &run.summary.flows.all;
                of_many(ratio(all.slowdown.p99), all.completed)
            }),
            ("drops", |run| SheetCell::count(run.summary.network.drops)),
            ("retransmits", |run| SheetCell::count(run.summary.network.retransmits)),
            ("timeouts", |run| SheetCell::count(run.summary.network.timeouts)),
            ("marks", |run| SheetCell::count(run.summary.network.ecn_marks)),
            ("max queue", |run| size(run.summary.network.max_queue_bytes)),
        ],
    );
    add(
        any(|it| data_drops(it).is_some_and(|data| data != it.network.drops)),
        &[("of data", |run| data_drops(&run.summary).map_or_else(|| SheetCell::new("-", "", None), SheetCell::count))],
    );
    add(
        any(|it| it.network.impaired_packets() != ImpairedPackets::default()),
        &[
            ("policed", |run| SheetCell::count(run.summary.network.impaired_packets().policed)),
            ("over MTU", |run| SheetCell::count(run.summary.network.impaired_packets().oversized)),
            ("corrupted", |run| SheetCell::count(run.summary.network.impaired_packets().corrupted)),
            ("duplicates", |run| SheetCell::count(run.summary.network.impaired_packets().duplicates)),
            ("reordered", |run| SheetCell::count(run.summary.network.impaired_packets().reordered)),
        ],
    );
    add(any(|it| it.network.trims > 0), &[("trimmed", |run| SheetCell::count(run.summary.network.trims))]);
    add(
        any(|it| it.network.parity_packets > 0),
        &[
            ("parity", |run| SheetCell::count(run.summary.network.parity_packets)),
            ("recovered", |run| SheetCell::count(run.summary.network.recovered_blocks)),
            ("asked", |run| SheetCell::count(run.summary.network.nacks)),
        ],
    );
    add(any(|it| !it.network.switches.is_empty()), &[("max buffer", |run| size(run.summary.network.max_buffer_bytes))]);
    add(
        any(|it| it.network.pfc_pauses > 0),
        &[
            ("pauses", |run| SheetCell::count(run.summary.network.pfc_pauses)),
            ("host paused", |run| fct(Some(run.summary.network.host_pause_ns))),
        ],
    );
    add(
        any(|it| it.credits.sent > 0),
        &[
            ("credits used", |run| SheetCell::count(run.summary.credits.used)),
            ("wasted", |run| SheetCell::count(run.summary.credits.wasted)),
            ("dropped", |run| SheetCell::count(run.summary.credits.dropped)),
        ],
    );
    add(
        any(|it| it.fairness.jain_mean.is_some()),
        &[
            ("Jain", |run| {
                let jain = run.summary.fairness.jain_final;
                SheetCell::new(jain.map_or("-".into(), |jain| format!("{jain:.3}")), "", jain)
            }),
            ("fair from", |run| {
                let at = run.summary.fairness.converged_at_ns;
                SheetCell::new(
                    at.map_or("never".into(), |ns| time(ns as f64)),
                    "ns",
                    at.map_or(Datum::Absent, Datum::Whole),
                )
            }),
        ],
    );
    columns
}

/// The lost data packets; none in results of earlier versions, which do not distinguish kinds of packets.
fn data_drops(summary: &summary::Summary) -> Option<u64> {
    summary.network.drops_by_kind.get("data").copied()
}

fn fct_p99(cell: &summary::FlowGroupStats) -> SheetCell {
    of_many(fct(cell.fct_ns.p99), cell.completed)
}

/// A 99th percentile, with a sign where it is of too few values.
fn of_many(mut p99: SheetCell, count: u64) -> SheetCell {
    if p99.shown != "-" && count < FEW as u64 {
        p99.shown.push_str(FEW_SIGN);
        return p99.with("of_few", Datum::Whole(1));
    }
    p99
}

/// A time in nanoseconds, as a statistic of completion times.
fn fct(ns: Option<f64>) -> SheetCell {
    SheetCell::new(ns.map_or("-".into(), time), "ns", ns)
}

fn ratio(value: Option<f64>) -> SheetCell {
    SheetCell::new(value.map_or("-".into(), |value| format!("{value:.2}")), "", value)
}

fn size(of: u64) -> SheetCell {
    SheetCell::new(bytes(of), "bytes", Datum::Whole(of))
}

/// The mean over all samples of flows of the smoothed round trip, in nanoseconds.
fn mean_rtt(run: &RunResults) -> Option<f64> {
    let rows = &run.rates.rows;
    let sum: u64 = rows.iter().map(|row| row.srtt_ns).sum();
    (!rows.is_empty()).then(|| sum as f64 / rows.len() as f64)
}

/// Returns the emulator's measurements of itself, a line a run; nothing for simulated runs.
pub(crate) fn emulators(runs: &[RunResults]) -> String {
    let line = |run: &RunResults| {
        let emulator = run.summary.emulator.as_ref()?;
        Some(format!(
            "{}: {}: real packets under {}{}; the emulator was late by {} (p50) and {} (p99), {:.0} % of a core{}\n",
            run.manifest.run,
            emulator.validity,
            if emulator.congestion.is_empty() { "no TCP".to_owned() } else { emulator.congestion.join(", ") },
            if emulator.stack == results::Stack::Narrows { " over the transport" } else { "" },
            time(emulator.lateness_p50_ns as f64),
            time(emulator.lateness_p99_ns as f64),
            emulator.cpu_share * 100.0,
            if emulator.sched_realtime { "" } else { ", without real-time scheduling" },
        ))
    };
    runs.iter().filter_map(line).collect()
}

/// Returns a line about each run in virtual time; nothing for others.
pub(crate) fn virtual_hosts(runs: &[RunResults]) -> String {
    let line = |run: &RunResults| {
        let hosts = run.summary.virtual_time.as_ref()?;
        Some(format!(
            "{}: the transport in virtual time, {} datagrams, packets protected by {}{}\n",
            run.manifest.run,
            hosts.datagrams,
            hosts.crypto,
            hosts.costs.as_ref().map_or_else(String::new, |costs| format!("; hosts take {costs}")),
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
        let shown = |p99, completed| of_many(ratio(p99), completed).shown;
        assert_eq!([shown(Some(1.0), 99), shown(Some(1.0), 100)], ["1.00 ?", "1.00"]);
        assert_eq!(shown(None, 0), "-");
    }

    /// The table is at most as wide as the terminal, headings have whole words, and a line states the columns that are
    /// left out.
    #[test]
    fn narrow_terminals_show_essential_columns() {
        let titles = ["done", "FCT mean", "FCT p99", "intra mean", "slowdown p99", "drops", "max queue"];
        let titles: Vec<String> = titles.map(str::to_owned).into();
        let cells = ["500/500", "12.34 ms", "123.4 ms", "12.34 ms", "12.00", "1234", "1.0 MB"].map(str::to_owned);
        let cells = || cells.iter().map(SheetCell::text).collect::<Vec<_>>();
        let named = |name: &str| SheetRow { name: name.to_owned(), cells: cells(), ..SheetRow::default() };
        let rows = vec![named("Uno, load=0.4, seed=1"), named("MPRDMA+BBR, load=0.4, seed=1")];
        let sheet = Sheet { first: "run", columns: titles.clone(), rows, ..Sheet::default() };
        let all = numbers(&sheet, None);
        assert!(titles.iter().all(|title| all.contains(title)) && !all.contains("--wide"), "{all}");
        let words: Vec<&str> = titles.iter().flat_map(|title| title.split(' ')).collect();
        for width in [20, 40, 60, 80, 100, 120] {
            let text = numbers(&sheet, Some(width));
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
        let sixty = numbers(&sheet, Some(60));
        assert!(!sixty.contains("queue") && sixty.contains("columns hidden, as the terminal is too narrow"), "{sixty}");
    }

    #[test]
    fn times_keep_three_digits_or_four() {
        assert_eq!(time(14_027.5), "14.03 us");
        assert_eq!(time(687_200_000.0), "687.2 ms");
        assert_eq!(bytes(1_048_576), "1.0 MB");
    }
}
