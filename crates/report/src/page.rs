//! The page around the data: head, the sections that have something to show, and the inlined assets.

use crate::data::{ReportData, Run};
use serde::Serialize;
use serde_json::Value;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const UPLOT_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// Nothing is fetched, whatever the data says: the browser enforces it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'";

/// Writes the report as one HTML document in UTF-8.
///
/// The document loads nothing from elsewhere. The same data gives the same bytes.
pub fn render(data: &ReportData) -> String {
    let json = data_json(data);
    let mut html = String::with_capacity(json.len() + SCRIPT.len() + UPLOT_SCRIPT.len() + STYLE.len() + 16_384);
    let mut put = |parts: &[&str]| parts.iter().for_each(|part| html.push_str(part));

    put(&["<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n"]);
    put(&["<meta http-equiv=\"Content-Security-Policy\" content=\"", POLICY, "\">\n"]);
    put(&["<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"]);
    put(&["<meta name=\"generator\" content=\"", &escape_html(&data.generated_by), "\">\n"]);
    put(&["<link rel=\"icon\" href=\"data:,\">\n<title>", &escape_html(page_title(data)), "</title>\n"]);
    put(&["<style>\n", UPLOT_STYLE, "\n", STYLE, "</style>\n</head>\n<body>\n"]);
    put(&["<noscript>This report draws its tables and plots with JavaScript, which is switched off.</noscript>\n"]);
    put(&["<header id=\"top\"></header>\n<nav id=\"bar\" aria-label=\"Sections\"></nav>\n<main>\n"]);
    for section in Section::ALL.into_iter().filter(|section| section.has_data(data)) {
        let id = section.id();
        put(&["<section id=\"", id, "\" data-testid=\"section-", id, "\" aria-labelledby=\"", id, "-title\">"]);
        put(&["<h2 id=\"", id, "-title\">", section.title(), "</h2>"]);
        put(&["<p class=\"lead\">", section.lead(), "</p><div class=\"body\"></div></section>\n"]);
    }
    put(&["</main>\n<footer id=\"provenance\" data-testid=\"provenance\"></footer>\n"]);
    put(&["<script type=\"application/json\" id=\"report-data\">", &json, "</script>\n"]);
    put(&["<script>\n/*! uPlot (https://github.com/leeoniya/uPlot)\n", UPLOT_LICENCE, "*/\n", UPLOT_SCRIPT]);
    put(&["\n</script>\n<script>\n", SCRIPT, "</script>\n</body>\n</html>\n"]);
    html
}

fn page_title(data: &ReportData) -> &str {
    if data.title.is_empty() { "Narrows report" } else { &data.title }
}

/// A part of the page. It is written only if [`Section::has_data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Warnings,
    Results,
    Claims,
    Sweep,
    Distributions,
    Rates,
    Queues,
    Traces,
    Links,
    Scenario,
    Replay,
}

impl Section {
    const ALL: [Section; 11] = [
        Section::Warnings,
        Section::Results,
        Section::Claims,
        Section::Sweep,
        Section::Distributions,
        Section::Rates,
        Section::Queues,
        Section::Traces,
        Section::Links,
        Section::Scenario,
        Section::Replay,
    ];

    fn has_data(self, data: &ReportData) -> bool {
        let any = |test: fn(&Run) -> bool| data.runs.iter().any(test);
        match self {
            Section::Warnings => !data.warnings.is_empty() || any(|run| !run.warnings.is_empty()),
            Section::Results => any(|run| run.summary.is_object()),
            Section::Claims => !data.claims.is_empty(),
            Section::Sweep => any(|run| run.summary.is_object()) && !axes(data).is_empty(),
            Section::Distributions => {
                any(|run| run.distributions.iter().any(|d| !d.fct_ns.is_empty() || !d.slowdown.is_empty()))
            }
            Section::Rates => {
                any(|run| run.rates.as_ref().is_some_and(|r| !r.time_ns.is_empty() && !r.flows.is_empty()))
            }
            Section::Queues => {
                any(|run| run.queues.as_ref().is_some_and(|q| !q.time_ns.is_empty() && !q.ports.is_empty()))
            }
            Section::Traces => any(|run| run.traces.iter().any(|trace| !trace.time_ns.is_empty())),
            Section::Links => any(|run| !run.links.is_empty()),
            Section::Scenario => !data.scenario_toml.is_empty(),
            Section::Replay => !data.replay.is_empty(),
        }
    }

    fn id(self) -> &'static str {
        match self {
            Section::Warnings => "warnings",
            Section::Results => "results",
            Section::Claims => "claims",
            Section::Sweep => "sweep",
            Section::Distributions => "distributions",
            Section::Rates => "rates",
            Section::Queues => "queues",
            Section::Traces => "traces",
            Section::Links => "links",
            Section::Scenario => "scenario",
            Section::Replay => "replay",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Section::Warnings => "Read this first",
            Section::Results => "Results",
            Section::Claims => "The paper’s claims",
            Section::Sweep => "Across the grid",
            Section::Distributions => "How long flows took",
            Section::Rates => "Who gets the bandwidth",
            Section::Queues => "Queues over time",
            Section::Traces => "Inside the control laws",
            Section::Links => "Links",
            Section::Scenario => "Resolved scenario",
            Section::Replay => "Replay",
        }
    }

    fn lead(self) -> &'static str {
        match self {
            Section::Warnings => "These runs need care before a number below is believed.",
            Section::Results => "One row a run. A dot and bold type mark the best of a column.",
            Section::Claims => "What the paper states beside what was measured here.",
            Section::Sweep => "One metric of each run against its place in the grid, one line a scheme.",
            Section::Distributions => "Share of flows that finished within a time. Further left and steeper is better.",
            Section::Rates => {
                "Sending rate of each flow, one panel a run, with Jain’s fairness index below (1 is an equal split)."
            }
            Section::Queues => "Bytes waiting at the sampled ports: solid is the real queue, dashed the phantom queue.",
            Section::Traces => "What the laws told about their own state, one panel a run.",
            Section::Links => "Totals of each link in each direction.",
            Section::Scenario => "Every default spelled out: this is what was simulated.",
            Section::Replay => "The same version, scenario and seed give the same results, bit for bit.",
        }
    }
}

/// What the script is given: the data, and how its runs form a grid.
#[derive(Serialize)]
struct PageData<'a> {
    report: &'a ReportData,
    /// The coordinate that tells schemes apart.
    scheme_key: Option<&'a str>,
    /// The coordinates that take several values and tell no schemes and no seeds apart.
    axes: Vec<&'a str>,
}

fn data_json(data: &ReportData) -> String {
    let page = PageData { report: data, scheme_key: scheme_key(data), axes: axes(data) };
    // The types hold nothing that JSON cannot (floats that are not finite become null), so this does not fail;
    // should a later field change that, the page says so instead of being blank.
    let json = serde_json::to_string(&page).unwrap_or_else(|error| {
        serde_json::json!({ "report": { "title": data.title, "warnings": [error.to_string()] } }).to_string()
    });
    escape_json(&json)
}

fn is_scheme_key(key: &str) -> bool {
    matches!(key.rsplit('.').next(), Some("scheme" | "schemes" | "law" | "variant"))
}

fn is_seed_key(key: &str) -> bool {
    key.rsplit('.').next() == Some("seed")
}

fn scheme_key(data: &ReportData) -> Option<&str> {
    data.runs.iter().flat_map(|run| &run.point).map(|(key, _)| key.as_str()).find(|key| is_scheme_key(key))
}

/// Coordinates in order of first appearance.
fn axes(data: &ReportData) -> Vec<&str> {
    let scheme = scheme_key(data);
    let mut seen: Vec<(&str, &Value)> = Vec::new();
    let mut axes: Vec<&str> = Vec::new();
    for (key, value) in data.runs.iter().flat_map(|run| &run.point) {
        let key = key.as_str();
        if Some(key) == scheme || is_seed_key(key) || axes.contains(&key) {
            continue;
        }
        match seen.iter().find(|(name, _)| *name == key) {
            Some((_, first)) if *first != value => axes.push(key),
            Some(_) => {}
            None => seen.push((key, value)),
        }
    }
    axes
}

/// JSON that can stand in a `script` element: no `<` is left, so neither `</script` nor `<!--` can be, and the two
/// line separators that old scripts choke on are written as escapes.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Text that can stand in an element or in a quoted attribute.
fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
}
