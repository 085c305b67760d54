//! The page around the data: head, sections with data, and the inlined assets.

use std::fmt::Write as _;

use crate::data::{QueuesData, ReportData, RunData};
use serde::Serialize;
use serde_json::Value;

const STYLE: &str = include_str!("../assets/report.css");
/// The page's script, one file per topic. Together they are the body of one function.
const SCRIPT: [&str; 23] = [
    include_str!("../assets/script/base.js"),
    include_str!("../assets/script/picture.js"),
    include_str!("../assets/script/failures.js"),
    include_str!("../assets/script/plot.js"),
    include_str!("../assets/script/chart.js"),
    include_str!("../assets/script/controls.js"),
    include_str!("../assets/script/view.js"),
    include_str!("../assets/script/seeds.js"),
    include_str!("../assets/script/table.js"),
    include_str!("../assets/script/metrics.js"),
    include_str!("../assets/script/head.js"),
    include_str!("../assets/script/verdicts.js"),
    include_str!("../assets/script/results.js"),
    include_str!("../assets/script/tails.js"),
    include_str!("../assets/script/grid.js"),
    include_str!("../assets/script/flows.js"),
    include_str!("../assets/script/sizes.js"),
    include_str!("../assets/script/series.js"),
    include_str!("../assets/script/heat.js"),
    include_str!("../assets/script/collectives.js"),
    include_str!("../assets/script/network.js"),
    include_str!("../assets/script/links.js"),
    include_str!("../assets/script/main.js"),
];
const UPLOT_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// Returns true for a line of a script that consists of a comment: it is omitted from pages.
fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"))
}

/// Content security policy. The page loads nothing, whatever the data contain: the browser enforces it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'";

/// Writes the report as one HTML document in UTF-8.
///
/// The document loads nothing from elsewhere. The same data produce the same bytes.
///
/// ```
/// let data = report::ReportData { title: "Mixed incast".into(), ..Default::default() };
/// assert!(report::render(&data).contains("<title>Mixed incast</title>"));
/// ```
pub fn render(data: &ReportData) -> String {
    let mut main = String::new();
    for section in Section::ALL.into_iter().filter(|section| section.has_data(data)) {
        let (id, title, lead) = (section.id(), section.title(), section.lead(data));
        let _ = writeln!(
            main,
            "<section id=\"{id}\" data-testid=\"section-{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2>\
             <p class=\"lead\">{lead}</p><div class=\"body\"></div></section>"
        );
    }
    let page = PageFrame {
        title: &page_title(data),
        generated_by: &data.generated_by,
        main: &main,
        json: &data_json(data),
        plots: PlotLibrary::UPlot,
        script: &SCRIPT,
    };
    page.html()
}

/// A page with everything inlined. Text is escaped here, except `main`, `json` and the assets.
pub(crate) struct PageFrame<'a> {
    pub(crate) title: &'a str,
    pub(crate) generated_by: &'a str,
    /// Contents of the `main` element, as HTML.
    pub(crate) main: &'a str,
    /// The data, as [`escape_json`] returns them.
    pub(crate) json: &'a str,
    /// The library of plots that is part of the page.
    pub(crate) plots: PlotLibrary,
    /// The page's own script, one file per topic.
    pub(crate) script: &'a [&'a str],
}

/// The library that draws plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlotLibrary {
    /// The page draws plots.
    UPlot,
    /// The page has tables alone.
    Absent,
}

impl PageFrame<'_> {
    /// Returns the document.
    pub(crate) fn html(&self) -> String {
        let script = self.script.iter().map(|file| file.len()).sum::<usize>();
        let assets = script + UPLOT_SCRIPT.len() + STYLE.len();
        let mut html = String::with_capacity(self.json.len() + self.main.len() + assets + 16_384);
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| html.push_str(part));
        let (style, library) = match self.plots {
            PlotLibrary::UPlot => (UPLOT_STYLE, UPLOT_SCRIPT),
            PlotLibrary::Absent => ("", ""),
        };

        put(&["<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n"]);
        put(&["<meta http-equiv=\"Content-Security-Policy\" content=\"", POLICY, "\">\n"]);
        put(&["<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"]);
        put(&["<meta name=\"generator\" content=\"", &escape_html(self.generated_by), "\">\n"]);
        put(&["<link rel=\"icon\" href=\"data:,\">\n<title>", &escape_html(self.title), "</title>\n"]);
        put(&["<style>\n", style, "\n", STYLE, "</style>\n</head>\n<body>\n"]);
        put(&["<noscript>This report draws its tables and plots with JavaScript, which is switched off.</noscript>\n"]);
        put(&["<header id=\"top\"></header>\n<nav id=\"bar\" aria-label=\"Sections\"></nav>\n<main>\n"]);
        put(&[self.main]);
        put(&["</main>\n<footer id=\"provenance\" data-testid=\"provenance\"></footer>\n"]);
        put(&["<script type=\"application/json\" id=\"report-data\">", self.json, "</script>\n"]);
        if !library.is_empty() {
            put(&[
                "<script>\n/*! uPlot (https://github.com/leeoniya/uPlot)\n",
                UPLOT_LICENCE,
                "*/\n",
                library,
                "\n</script>\n",
            ]);
        }
        // No framework, no build step: the files are concatenated unchanged.
        put(&["<script>\n(() => {\n'use strict';\n"]);
        for line in self.script.iter().flat_map(|file| file.lines()).filter(|line| !is_comment(line)) {
            put(&[line, "\n"]);
        }
        put(&["})();\n</script>\n</body>\n</html>\n"]);
        html
    }
}

/// Returns whether there is something to draw.
fn holds(queues: &QueuesData) -> bool {
    !queues.time_ns.is_empty() && !queues.ports.is_empty()
}

/// Returns the page's title and heading: the scenario's name and summary.
fn page_title(data: &ReportData) -> String {
    match (data.name.as_str(), data.title.as_str()) {
        ("", "") => "Narrows report".into(),
        (name, "") => name.into(),
        ("", title) => title.into(),
        (name, title) => format!("{name}: {title}"),
    }
}

/// A part of the page. It is written only if [`Section::has_data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Warnings,
    Results,
    Claims,
    Averages,
    Pooled,
    Slowest,
    Sweep,
    Distributions,
    Sizes,
    Rates,
    Queues,
    Heat,
    Buffers,
    Pauses,
    Traces,
    Collectives,
    Network,
    Links,
    Scenario,
    Replay,
}

impl Section {
    const ALL: [Section; 20] = [
        Section::Warnings,
        Section::Results,
        Section::Claims,
        Section::Averages,
        Section::Pooled,
        Section::Slowest,
        Section::Sweep,
        Section::Distributions,
        Section::Sizes,
        Section::Rates,
        Section::Queues,
        Section::Heat,
        Section::Buffers,
        Section::Pauses,
        Section::Traces,
        Section::Collectives,
        Section::Network,
        Section::Links,
        Section::Scenario,
        Section::Replay,
    ];

    fn has_data(self, data: &ReportData) -> bool {
        let any = |test: fn(&RunData) -> bool| data.runs.iter().any(test);
        match self {
            Section::Warnings => !data.warnings.is_empty() || !data.causes.is_empty(),
            Section::Results => any(|run| run.summary.is_object()),
            Section::Claims => !data.claims.is_empty(),
            Section::Averages => !data.averages.is_empty(),
            Section::Pooled => !data.pooled.is_empty(),
            Section::Slowest => data.slowest.iter().any(|it| !it.classes.is_empty()),
            Section::Sweep => any(|run| run.summary.is_object()) && !axes(data).is_empty(),
            Section::Distributions => {
                any(|run| run.distributions.iter().any(|d| !d.fct_ns.is_empty() || !d.slowdown.is_empty()))
            }
            Section::Sizes => any(|run| run.summary["flows"]["sizes"].as_object().is_some_and(|bins| bins.len() > 1)),
            Section::Rates => {
                any(|run| run.rates.as_ref().is_some_and(|r| !r.time_ns.is_empty() && !r.flows.is_empty()))
            }
            Section::Queues => any(|run| run.queues.as_ref().is_some_and(holds)),
            Section::Heat => any(|run| run.queues.as_ref().is_some_and(|it| holds(it) && it.ports.len() > 1)),
            Section::Buffers => any(|run| run.buffers.as_ref().is_some_and(holds)),
            Section::Pauses => any(|run| run.summary["network"]["pfc_pauses"].as_u64().is_some_and(|count| count > 0)),
            Section::Traces => any(|run| run.traces.iter().any(|trace| !trace.time_ns.is_empty())),
            Section::Collectives => any(|run| !run.collectives.is_empty()),
            // Links of networks are named after their ends; those of the emulator may have names of their own.
            Section::Network => any(|run| run.links.iter().any(|link| link.name.contains('>'))),
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
            Section::Averages => "averages",
            Section::Pooled => "pooled",
            Section::Slowest => "slowest",
            Section::Sweep => "sweep",
            Section::Distributions => "distributions",
            Section::Sizes => "sizes",
            Section::Rates => "rates",
            Section::Queues => "queues",
            Section::Heat => "heat",
            Section::Buffers => "buffers",
            Section::Pauses => "pauses",
            Section::Traces => "traces",
            Section::Collectives => "collectives",
            Section::Network => "network",
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
            Section::Averages => "Averages over seeds",
            Section::Pooled => "Slowdown, all seeds together",
            Section::Slowest => "Why the slowest flows are slow",
            Section::Sweep => "Across the grid",
            Section::Distributions => "How long flows took",
            Section::Sizes => "Times by size of flow",
            Section::Rates => "Bandwidth shares",
            Section::Queues => "Queues over time",
            Section::Heat => "Queues of all ports",
            Section::Buffers => "Shared buffers over time",
            Section::Pauses => "Pauses",
            Section::Traces => "Inside the control laws",
            Section::Collectives => "Collective operations",
            Section::Network => "The network",
            Section::Links => "Links",
            Section::Scenario => "Resolved scenario",
            Section::Replay => "Replay",
        }
    }

    fn lead(self, data: &ReportData) -> &'static str {
        match self {
            Section::Warnings => "Read these warnings before using the numbers.",
            Section::Results => "One row per run. A dot and bold type mark the best of a column.",
            Section::Claims => "The paper's statements and the measurements here.",
            Section::Averages => {
                "The mean over all seeds ± half of its 95 % confidence interval (Student’s t). A dot and bold type mark \
                 the best mean of a column."
            }
            Section::Pooled => {
                "Completion time over the ideal one: quantiles of all flows of all seeds as one set, and their ratios to \
                 the first scheme’s, of the same flows. Below each, its 95 % interval by bootstrap over seeds and flows."
            }
            Section::Slowest => {
                "The slowest hundredth of each class of flows, compared with typical flows of their size. A star marks counters \
                 that are at least twice as high in the slowest flows. A difference is not yet a cause: switch it off and run again."
            }
            Section::Sweep if !data.pooled.is_empty() => {
                "One metric against the place in the grid, one line a scheme. Of several seeds a point is the mean, and its \
                 bar the 95 % confidence interval; of slowdowns of all seeds together, that by bootstrap."
            }
            Section::Sweep => {
                "One metric against the place in the grid, one line a scheme. Of several seeds a point is the mean, and its \
                 bar the 95 % confidence interval."
            }
            Section::Distributions => {
                "Share of all flows that finished within a time. Further left and steeper is better; a curve that ends below 1 is of a run in which flows did not finish."
            }
            Section::Sizes => {
                "Percentiles of the flows of each size bin that finished: solid is the 99th, dashed the median. Of several \
                 seeds a point is the mean, and its bar the 95 % confidence interval."
            }
            Section::Rates => {
                "Sending rate of each flow, one panel a run, with Jain’s fairness index below (1 is an equal split)."
            }
            Section::Queues => {
                "Bytes waiting at the sampled ports; phantom queues, which count bytes that are not there, have an axis of their own."
            }
            Section::Heat => "One row per sampled port; colour: maximum queue. A red frame marks a link that was down.",
            Section::Buffers => "Bytes waiting in each sampled switch, all its ports together.",
            Section::Pauses => "How often and for how long ports were paused by flow control, by where they lie.",
            Section::Traces => "Internal state of the laws, one panel a run.",
            Section::Collectives => {
                "What each rank sent, a row a rank and a bar a flow, from its start to its last acknowledgement. A rank's \
                 flows are its steps, in the order of their starts."
            }
            Section::Network => {
                "The links of the table below, and those that failed. Each direction has a line; of parallel links the \
                 busiest counts. A red cross marks what was down."
            }
            Section::Links => "Totals of each link in each direction.",
            Section::Scenario => "Every default spelled out: this is what was run.",
            Section::Replay if data.runs.iter().any(|run| run.summary["backend"] == "emulator") => {
                "The same version, scenario and seed send the same flows. Real packets are a measurement: numbers differ \
                 from one to the next."
            }
            Section::Replay => "The same version, scenario and seed give the same results, bit for bit.",
        }
    }
}

/// Input of the script: the data, and the structure of the grid that its runs form.
#[derive(Serialize)]
struct PageData<'a> {
    /// The heading.
    title: String,
    report: &'a ReportData,
    /// The coordinate that distinguishes schemes.
    scheme_key: Option<&'a str>,
    /// The coordinates that take several values and distinguish neither schemes nor seeds.
    axes: Vec<&'a str>,
}

fn data_json(data: &ReportData) -> String {
    let page = PageData { title: page_title(data), report: data, scheme_key: scheme_key(data), axes: axes(data) };
    // JSON can represent all values of these types (non-finite floats become null), so this does not fail. If a later field
    // changes that, the page shows the error.
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

/// Returns the coordinates in order of first appearance.
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

/// Returns JSON that can be embedded in a `script` element: no `<` is left, so neither `</script` nor `<!--` can occur,
/// and the two line separators that old scripts do not accept are escaped.
pub(crate) fn escape_json(json: &str) -> String {
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

/// Returns text that can be embedded in an element or a quoted attribute.
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
    use crate::data::{
        Averages, ClaimData, Collective, DistributionData, FlowRate, LinkData, Pooled, PortQueue, RatesData, Slowest,
        SlowestOfClass, TraceData, VerdictData, WarningGroupData,
    };
    use serde_json::json;

    fn run_with_everything() -> RunData {
        RunData {
            id: "a".into(),
            label: "A".into(),
            point: vec![("scheme".into(), json!("uno")), ("load".into(), json!(0.4))],
            summary: json!({ "seed": 1, "network": { "pfc_pauses": 2 }, "flows": { "sizes": { "small": {}, "large": {} } } }),
            warnings: vec!["never acted".into()],
            distributions: vec![DistributionData {
                class: "all".into(),
                fct_ns: vec![(1e6, 1.0)],
                slowdown: vec![(1.0, 1.0)],
            }],
            rates: Some(RatesData {
                time_ns: vec![0, 1],
                flows: vec![FlowRate { rate_bps: vec![None, Some(1e9)], ..FlowRate::default() }],
                jain: vec![None, Some(1.0)],
            }),
            queues: Some(QueuesData {
                time_ns: vec![0, 1],
                ports: ["p", "q"]
                    .map(|name| PortQueue { name: name.into(), queue_bytes: vec![0, 9], phantom_bytes: vec![] })
                    .to_vec(),
            }),
            buffers: Some(QueuesData {
                time_ns: vec![0],
                ports: vec![PortQueue { name: "s".into(), queue_bytes: vec![9], phantom_bytes: vec![] }],
            }),
            traces: vec![TraceData { flow: 3, name: "cwnd_bytes".into(), time_ns: vec![0], values: vec![4096.0] }],
            collectives: vec![Collective { job: "j".into(), ..Collective::default() }],
            links: vec![LinkData { name: "a>b".into(), utilisation: 0.5, ..LinkData::default() }],
            ..RunData::default()
        }
    }

    fn everything() -> ReportData {
        let mut other = run_with_everything();
        other.point[1].1 = json!(0.6);
        ReportData {
            title: "T".into(),
            subtitle: "S".into(),
            generated_by: "narrows 0.1.0".into(),
            scale: Some("quick".into()),
            scenario_toml: "seed = 1\n".into(),
            replay: vec!["narrows run x.toml".into()],
            warnings: vec!["w".into()],
            causes: vec![WarningGroupData { runs: "A".into(), text: "never acted".into() }],
            averages: vec![Averages { title: "A".into(), ..Averages::default() }],
            pooled: vec![Pooled::default()],
            slowest: vec![Slowest { classes: vec![SlowestOfClass::default()], ..Slowest::default() }],
            claims: vec![ClaimData { id: "c".into(), verdict: VerdictData::DirectionOnly, ..ClaimData::default() }],
            runs: vec![run_with_everything(), other],
            ..ReportData::default()
        }
    }

    fn sections(data: &ReportData) -> Vec<Section> {
        let html = render(data);
        Section::ALL.into_iter().filter(|s| html.contains(&format!("data-testid=\"section-{}\"", s.id()))).collect()
    }

    /// Returns the contents of the data element.
    fn embedded(html: &str) -> &str {
        let start = html.find("id=\"report-data\">").map(|at| at + "id=\"report-data\">".len()).unwrap();
        &html[start..start + html[start..].find("</script>").unwrap()]
    }

    #[test]
    fn sections_follow_from_the_data() {
        assert_eq!(sections(&everything()), Section::ALL);
        assert_eq!(sections(&ReportData::default()), []);
    }

    #[test]
    fn only_simulations_promise_the_same_bits() {
        let mut data = everything();
        assert!(render(&data).contains("bit for bit"));
        data.runs[1].summary["backend"] = json!("emulator");
        let page = render(&data);
        assert!(!page.contains("bit for bit") && page.contains("Real packets are a measurement"));
    }

    #[test]
    fn sections_without_data_are_absent() {
        type Remove = fn(&mut ReportData);
        let cases: [(Section, Remove); 17] = [
            (Section::Warnings, |d| {
                d.warnings.clear();
                d.causes.clear();
            }),
            (Section::Claims, |d| d.claims.clear()),
            (Section::Averages, |d| d.averages.clear()),
            (Section::Pooled, |d| d.pooled.clear()),
            (Section::Slowest, |d| d.slowest[0].classes.clear()),
            (Section::Sweep, |d| d.runs[1].point[1].1 = json!(0.4)),
            (Section::Distributions, |d| {
                for distribution in d.runs.iter_mut().flat_map(|r| &mut r.distributions) {
                    distribution.fct_ns.clear();
                    distribution.slowdown.clear();
                }
            }),
            (Section::Sizes, |d| d.runs.iter_mut().for_each(|r| r.summary["flows"]["sizes"] = json!({ "all": {} }))),
            (Section::Rates, |d| d.runs.iter_mut().for_each(|r| r.rates = Some(RatesData::default()))),
            (Section::Heat, |d| d.runs.iter_mut().flat_map(|r| &mut r.queues).for_each(|q| q.ports.truncate(1))),
            (Section::Buffers, |d| d.runs.iter_mut().for_each(|r| r.buffers = None)),
            (Section::Pauses, |d| d.runs.iter_mut().for_each(|r| r.summary["network"]["pfc_pauses"] = json!(0))),
            (Section::Traces, |d| d.runs.iter_mut().for_each(|r| r.traces[0].time_ns.clear())),
            (Section::Collectives, |d| d.runs.iter_mut().for_each(|r| r.collectives.clear())),
            (Section::Network, |d| d.runs.iter_mut().for_each(|r| r.links[0].name = "l".into())),
            (Section::Scenario, |d| d.scenario_toml.clear()),
            (Section::Replay, |d| d.replay.clear()),
        ];
        for (section, remove) in cases {
            let mut data = everything();
            remove(&mut data);
            let left: Vec<Section> = Section::ALL.into_iter().filter(|s| *s != section).collect();
            assert_eq!(sections(&data), left, "without {section:?}");
        }
    }

    #[test]
    fn single_warning_is_shown() {
        let mut data = everything();
        data.warnings.clear();
        assert!(sections(&data).contains(&Section::Warnings));
    }

    #[test]
    fn axes_exclude_schemes_seeds_and_constants() {
        let at = |scheme: &str, seed: u32, load: f64| RunData {
            point: vec![
                ("traffic.seed".into(), json!(seed)),
                ("schemes.law".into(), json!(scheme)),
                ("load".into(), json!(load)),
                ("k".into(), json!(8)),
            ],
            ..RunData::default()
        };
        let runs = vec![at("uno", 1, 0.4), at("gemini", 2, 0.4), at("uno", 3, 0.6), at("uno", 3, 0.8)];
        let data = ReportData { runs, ..ReportData::default() };
        assert_eq!(axes(&data), ["load"]);
        assert_eq!(scheme_key(&data), Some("schemes.law"));
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let evil = "</script><script>alert(1)</script><!-- ]]> \u{2028}\u{2029} \\u003c & \" '";
        let mut data = everything();
        data.title = evil.into();
        data.scenario_toml = evil.into();
        data.runs[0].label = evil.into();
        data.runs[0].summary = json!({ evil: evil });
        data.runs[0].point[0].0 = evil.into();
        let html = render(&data);
        let json = embedded(&html);
        assert!(!json.contains('<') && !json.contains('\u{2028}') && !json.contains('\u{2029}'));
        let back: Value = serde_json::from_str(json).unwrap();
        let back: ReportData = serde_json::from_value(back["report"].clone()).unwrap();
        assert_eq!(back, data);
        // Exactly the page's own scripts: data, uPlot, report.
        assert_eq!(html.matches("<script").count(), 3);
        assert_eq!(html.matches("</script>").count(), 3);
    }

    #[test]
    fn head_is_escaped() {
        let data = ReportData {
            title: "a</title><script>\"'&".into(),
            generated_by: "\"><svg onload=x>".into(),
            ..ReportData::default()
        };
        let html = render(&data);
        assert!(html.contains("<title>a&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;</title>"));
        assert!(html.contains("content=\"&quot;&gt;&lt;svg onload=x&gt;\""));
        assert!(render(&ReportData::default()).contains("<title>Narrows report</title>"));
    }

    #[test]
    fn floats_that_json_cannot_hold_become_null() {
        let mut data = everything();
        data.runs[0].traces[0].values = vec![f64::NAN];
        data.runs[0].distributions[0].fct_ns = vec![(f64::INFINITY, 1.0)];
        let html = render(&data);
        let back: Value = serde_json::from_str(embedded(&html)).unwrap();
        assert!(back["report"]["runs"][0]["traces"][0]["values"][0].is_null());
        assert!(back["report"]["runs"][0]["distributions"][0]["fct_ns"][0][0].is_null());
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        // A saved SVG's clip paths name parts of itself.
        let html = render(&everything()).replace("url(#", "");
        for tag in
            ["<script src", "<link rel=\"stylesheet\"", "@import", "url(", "<img", "<iframe", "fetch(", "XMLHttp"]
        {
            assert!(!html.contains(tag), "{tag}");
        }
        assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none';"));
        assert!(html.contains("The MIT License (MIT)"), "uPlot's licence goes with it");
    }

    #[test]
    fn the_page_is_small_and_the_same_each_time() {
        let empty = render(&ReportData::default());
        assert!(!empty.contains("\n// "), "comments of scripts stay out");
        assert!(empty.len() < 230_000, "{} bytes before any data", empty.len());
        assert_eq!(render(&everything()), render(&everything()));
        let mut data = everything();
        data.runs[0].traces[0].values = vec![12_345.0; 10_000];
        let grown = render(&data).len() - render(&everything()).len();
        assert!(grown <= 80_000, "{grown} bytes for 10 000 values of 7 characters");
    }

    #[test]
    fn data_round_trips_and_may_be_partial() {
        let data = everything();
        let back: ReportData = serde_json::from_str(&serde_json::to_string(&data).unwrap()).unwrap();
        assert_eq!(back, data);
        let partial: ReportData =
            serde_json::from_value(json!({ "title": "x", "claims": [{ "verdict": "not reproduced" }] })).unwrap();
        assert_eq!(partial.claims[0].verdict, VerdictData::NotReproduced);
        assert!(serde_json::from_value::<VerdictData>(json!("maybe")).is_err());
    }
}
