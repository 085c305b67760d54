//! Conversion of results to the report's data.

use report::{AverageRow, Averages, ClaimData, FlowRate, LinkData, PortQueue, ReportData, VerdictData};
use results::claims::{Judgement, Verdict};
use results::series::{CDF_POINTS, buffers, collectives, distributions, queues, rates, traces};
use results::warning_groups::{RunWarnings, group_warnings};
use results::{RunResults, SizeBin, initial_window_lines, load_lines};

use crate::tails::{TailReport, counted, tails};

/// Maximum number of samples of a curve, shared by the runs.
const SAMPLES: usize = 1_500;
/// Number of points of distributions, shared by the runs: a page of hundreds of runs must open, too.
const POINTS: usize = 20_000;

/// Number of flows of collective operations, shared by the runs.
const STEPS: usize = 20_000;

/// Contents of a report in addition to its runs.
pub struct Page {
    /// The scenario's name, which begins the heading.
    pub name: String,
    /// One-line summary of the scenario.
    pub title: String,
    /// Paper and figure; may be empty.
    pub paper: String,
    /// Text below the heading; may be empty.
    pub subtitle: String,
    /// Description of the scaling, if anything was scaled.
    pub scale: Option<String>,
    /// Resolved scenario, with all defaults.
    pub scenario_toml: String,
    /// Command lines that reproduce it.
    pub replay: Vec<String>,
    /// Judged claims.
    pub claims: Vec<ClaimData>,
    /// Tables of averages over seeds.
    pub averages: Vec<Averages>,
    /// Slowdowns over all seeds together, and the slowest flows.
    pub tails: TailReport,
    /// Conditions of the comparison, one line each.
    pub conditions: Vec<String>,
    /// Warnings about the set as a whole, shown first.
    pub warnings: Vec<String>,
}

/// Renders the complete page.
pub fn render(page: &Page, runs: Vec<report::RunData>) -> String {
    let run_warnings: Vec<RunWarnings<'_>> =
        runs.iter().map(|run| RunWarnings { run: &run.id, point: &run.point, texts: &run.warnings }).collect();
    let causes = group_warnings(&run_warnings)
        .into_iter()
        .map(|it| report::WarningGroupData { runs: it.runs, text: it.text })
        .collect();
    report::render(&ReportData {
        name: page.name.clone(),
        title: page.title.clone(),
        paper: page.paper.clone(),
        subtitle: page.subtitle.clone(),
        generated_by: format!("narrows {}", env!("CARGO_PKG_VERSION")),
        scale: page.scale.clone(),
        scenario_toml: page.scenario_toml.clone(),
        replay: page.replay.clone(),
        conditions: page.conditions.clone(),
        warnings: page.warnings.clone(),
        causes,
        claims: page.claims.clone(),
        averages: page.averages.clone(),
        pooled: page.tails.pooled.clone(),
        counted: if page.tails.slowest.is_empty() { Vec::new() } else { counted() },
        slowest: page.tails.slowest.clone(),
        points_left_out: page.tails.left_out,
        runs,
    })
}

/// Renders the page of runs that were read from a directory, with warnings about the set.
pub fn of_results(runs: &[RunResults], warnings: Vec<String>) -> String {
    let first = runs.first().map(|run| &run.manifest);
    let text = |key: &str| {
        let resolved = first.and_then(|manifest| manifest.resolved.get(key));
        resolved.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let page = Page {
        name: text("name"),
        title: text("title"),
        // The claims of a paper are not part of a run.
        paper: String::new(),
        subtitle: text("description"),
        scale: None,
        scenario_toml: first.map(|manifest| format!("{:#}", manifest.resolved)).unwrap_or_default(),
        replay: Vec::new(),
        claims: Vec::new(),
        averages: Vec::new(),
        tails: tails(runs),
        conditions: conditions(runs),
        warnings,
    };
    render(&page, runs.iter().map(|run| run_data(run, &[], runs.len())).collect())
}

/// Returns the conditions of a comparison of these runs, one line each.
pub(crate) fn conditions(runs: &[RunResults]) -> Vec<String> {
    initial_window_lines(runs).into_iter().chain(load_lines(runs)).collect()
}

/// Returns the paper and figure that a scenario's table `paper` names; empty without a title.
pub(crate) fn paper(table: &serde_json::Value) -> String {
    let text = |key: &str| table.get(key).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    let Some(title) = text("title") else { return String::new() };
    text("figure").map_or_else(|| title.to_owned(), |figure| format!("{title}, {}", figure_name(figure)))
}

/// Returns a figure's name as used in papers: `Fig. 8`, `Table II`.
pub(crate) fn figure_name(figure: &str) -> String {
    if figure.starts_with("Table") { figure.to_owned() } else { format!("Fig. {figure}") }
}

/// Converts a verdict and its note. Pages have no verdict of their own for a claim that cannot be judged: its note states it.
pub fn verdict(verdict: Verdict, note: &str) -> (VerdictData, String) {
    let shown = match verdict {
        Verdict::Reproduced => VerdictData::Reproduced,
        Verdict::DirectionOnly => VerdictData::DirectionOnly,
        Verdict::Undecided => VerdictData::Undecided,
        Verdict::NotReproduced => VerdictData::NotReproduced,
        Verdict::Pending => VerdictData::Pending,
        Verdict::CannotJudge => return (VerdictData::NotReproduced, format!("cannot be judged: {note}")),
    };
    (shown, note.to_owned())
}

/// Converts a judged claim.
pub fn claim(figure: &str, judgement: &Judgement) -> ClaimData {
    let (verdict, note) = verdict(judgement.verdict, &judgement.note);
    ClaimData {
        figure: figure.to_owned(),
        id: judgement.id.clone(),
        text: judgement.text.clone(),
        paper: judgement.paper.clone(),
        measured: judgement.measured.clone(),
        verdict,
        note,
    }
}

/// Converts a table of averages.
pub fn averages(table: &results::averages::AveragesTable) -> Averages {
    let part = |part: &results::averages::PointAverages| {
        let row = |(index, row): (usize, &results::averages::SchemeAverages)| AverageRow {
            label: row.name(),
            cells: row.cells.iter().map(|cell| cell.map(|cell| (cell.of.mean.amount, cell.to_string()))).collect(),
            best: part.best.iter().map(|best| *best == Some(index)).collect(),
        };
        (part.point.clone(), part.rows.iter().enumerate().map(row).collect())
    };
    Averages {
        title: table.title.clone(),
        columns: table.columns.clone(),
        parts: table.parts.iter().map(part).collect(),
    }
}

/// Converts a run for a page with `of` runs.
pub fn run_data(run: &RunResults, bins: &[SizeBin], of: usize) -> report::RunData {
    let samples = SAMPLES / of.min(5);
    let curves = distributions(&run.flows, bins, (POINTS / of).clamp(50, CDF_POINTS))
        .into_iter()
        .map(|curve| report::DistributionData { class: curve.class, fct_ns: curve.fct_ns, slowdown: curve.slowdown });
    let rate_series = rates(&run.rates, &run.flows, samples);
    let queue_series = queues(&run.ports, samples);
    let flow = |flow: results::series::FlowRate| {
        let class = flow.class.map_or("flow", results::Class::name);
        FlowRate {
            id: flow.flow.into(),
            label: format!("{class} {}", flow.flow),
            class: class.to_owned(),
            rate_bps: flow.rate_bps,
        }
    };
    let buffer_series = buffers(&run.switches, samples);
    let port = |port: results::series::PortQueue| PortQueue {
        name: port.name,
        queue_bytes: port.queue_bytes,
        phantom_bytes: port.phantom_bytes,
    };
    let trace = |trace: results::series::LawTrace| report::TraceData {
        flow: trace.flow.into(),
        name: trace.name,
        time_ns: trace.time_ns,
        values: trace.values,
    };
    let link = |link: &results::summary::LinkTotals| LinkData {
        name: link.name.clone(),
        class: link.class.clone(),
        utilisation: link.utilisation,
        packets: link.packets,
        drops: link.drops,
        losses: link.losses,
        lost_data: link.lost_data,
        lost_acks: link.lost_acks,
        lost_credits: link.lost_credits,
        marks: link.marks,
        max_queue_bytes: link.max_queue_bytes,
        pauses: link.pauses,
        pause_ns: link.pause_ns,
    };
    let failure = |failure: &results::summary::LinkFailure| report::FailureData {
        links: failure.links.clone(),
        count: failure.count,
        down_ns: failure.down_ns.clone(),
    };
    let (collective_steps, collective_count) = collectives(&run.flows, (STEPS / of).clamp(200, 5_000));
    let collective = |steps: results::series::Steps| report::Collective {
        job: steps.job,
        number: steps.number.into(),
        src: steps.src.into_iter().map(u64::from).collect(),
        dst: steps.dst.into_iter().map(u64::from).collect(),
        start_ns: steps.start_ns,
        end_ns: steps.end_ns,
    };
    report::RunData {
        id: run.manifest.run.clone(),
        label: run.manifest.label.clone(),
        point: run.manifest.point.0.clone(),
        summary: serde_json::to_value(&run.summary).unwrap_or_default(),
        warnings: run.summary.warnings.clone(),
        distributions: curves.collect(),
        rates: (!rate_series.time_ns.is_empty()).then(|| report::RatesData {
            time_ns: rate_series.time_ns,
            flows: rate_series.flows.into_iter().map(flow).collect(),
            jain: rate_series.jain,
        }),
        queues: (!queue_series.time_ns.is_empty()).then(|| report::QueuesData {
            time_ns: queue_series.time_ns,
            ports: queue_series.ports.into_iter().map(port).collect(),
        }),
        buffers: (!buffer_series.time_ns.is_empty()).then(|| report::QueuesData {
            time_ns: buffer_series.time_ns,
            ports: buffer_series.ports.into_iter().map(port).collect(),
        }),
        traces: traces(&run.rates, samples).into_iter().map(trace).collect(),
        links: run.summary.network.links.iter().map(link).collect(),
        failures: run.summary.network.failures.iter().map(failure).collect(),
        collectives: collective_steps.into_iter().map(collective).collect(),
        collective_count: collective_count as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_paper_has_its_title_and_figure() {
        let cases = [
            (json!({ "title": "Uno (SC 2025)", "figure": "8" }), "Uno (SC 2025), Fig. 8"),
            (json!({ "title": "GEMINI", "figure": "Table II" }), "GEMINI, Table II"),
            (json!({ "title": "GEMINI" }), "GEMINI"),
            (json!({ "figure": "8" }), ""),
            (json!(null), ""),
        ];
        for (table, text) in cases {
            assert_eq!(paper(&table), text);
        }
    }
}
