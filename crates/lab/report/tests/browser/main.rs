//! Opens reports in headless Chromium with the network off, uses them as a reader would, and looks at what is drawn.
//!
//! Not libtest's harness: where there is no Chromium, its tests must show as ignored, never as passed. The output
//! is libtest's all the same. With `NARROWS_REPORT_SHOTS=DIR`, pictures of the samples are written there as well.

mod chromium;
mod recorded;
mod results;
#[path = "../sample/mod.rs"]
mod sample;
mod tails;

use chromium::{Browser, Page};
use report::{FailureData, ReportData, RunData, render};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type TestOutcome = Result<(), String>;
type Test = fn(&mut Browser) -> TestOutcome;
type DataFn = fn() -> ReportData;

const LAPTOP: (u32, u32) = (1366, 768);

const TESTS: [(&str, Test); 40] = [
    ("every_section_is_drawn", every_section_is_drawn),
    ("shared_buffers_and_pauses_are_drawn", shared_buffers_and_pauses_are_drawn),
    ("what_few_runs_have_gets_columns", what_few_runs_have_gets_columns),
    ("the_host_is_named", the_host_is_named),
    ("absent_data_leaves_no_section", absent_data_leaves_no_section),
    ("class_tabs_change_the_distribution", class_tabs_change_the_distribution),
    ("legend_hides_a_series", legend_hides_a_series),
    ("class_toggle_hides_flows_in_every_panel", class_toggle_hides_flows_in_every_panel),
    ("cursors_and_keys_read_values", cursors_and_keys_read_values),
    ("dragging_zooms_every_panel", dragging_zooms_every_panel),
    ("theme_toggle_repaints", theme_toggle_repaints),
    ("dark_scheme_is_followed", dark_scheme_is_followed),
    ("links_sort_and_filter", links_sort_and_filter),
    ("results_mark_the_best", results_mark_the_best),
    ("copy_buttons_copy", copy_buttons_copy),
    ("hostile_text_stays_text", hostile_text_stays_text),
    ("grid_plots_follow_their_controls", grid_plots_follow_their_controls),
    ("forty_runs_and_two_hundred_flows", forty_runs_and_two_hundred_flows),
    ("two_hundred_runs_are_drawn", two_hundred_runs_are_drawn),
    ("seeds_tell_runs_apart", seeds_tell_runs_apart),
    ("plots_are_saved_as_svg_png_and_csv", plots_are_saved_as_svg_png_and_csv),
    ("failures_are_in_every_time_plot", failures_are_in_every_time_plot),
    ("the_address_keeps_the_view", the_address_keeps_the_view),
    ("percentiles_by_size_follow_their_controls", percentiles_by_size_follow_their_controls),
    ("few_queues_are_lines_and_the_rest_a_band", few_queues_are_lines_and_the_rest_a_band),
    ("heat_maps_show_ports_over_time", heat_maps_show_ports_over_time),
    ("the_network_is_drawn_with_what_failed", the_network_is_drawn_with_what_failed),
    ("collectives_are_drawn_step_by_step", collectives_are_drawn_step_by_step),
    ("grids_show_means_over_seeds", grids_show_means_over_seeds),
    ("slowdowns_over_all_seeds_stand_with_their_intervals", tails::slowdowns_over_all_seeds_stand_with_their_intervals),
    ("slowest_flows_are_shown_with_typical_ones", tails::slowest_flows_are_shown_with_typical_ones),
    ("heading_is_the_scenario_name", results::heading_is_the_scenario_name),
    ("training_jobs_have_iterations", results::training_jobs_have_iterations),
    ("every_column_can_be_reached", results::every_column_can_be_reached),
    ("seeds_share_a_line", results::seeds_share_a_line),
    ("means_and_intervals_are_rounded_together", results::means_and_intervals_are_rounded_together),
    ("claims_are_found_by_search_and_filters", recorded::claims_are_found_by_search_and_filters),
    ("a_section_that_fails_leaves_the_others", a_section_that_fails_leaves_the_others),
    ("nothing_sticks_out", nothing_sticks_out),
    ("prints", prints),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let wanted: Vec<(&str, Test)> = TESTS
        .into_iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str())))
        .collect();
    if arguments.iter().any(|a| a == "--list") {
        for (name, _) in &wanted {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }

    let filtered = TESTS.len() - wanted.len();
    println!("\nrunning {} tests", wanted.len());
    let Some(program) = chromium::find() else {
        for (name, _) in &wanted {
            println!("test {name} ... ignored, no chromium");
            testing::skipped_without(name, "chromium");
        }
        println!(
            "\ntest result: ok. 0 passed; 0 failed; {} ignored; 0 measured; {filtered} filtered out\n",
            wanted.len()
        );
        return ExitCode::SUCCESS;
    };

    let mut failures = Vec::new();
    if !wanted.is_empty() {
        match Browser::start(&program, &scratch()) {
            Ok(mut browser) => {
                for (name, test) in &wanted {
                    let outcome = catch_unwind(AssertUnwindSafe(|| test(&mut browser)))
                        .unwrap_or_else(|_| Err("panicked, see above".into()));
                    println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
                    failures.extend(outcome.err().map(|error| (*name, error)));
                }
                if std::env::var_os("NARROWS_REPORT_SHOTS").is_some()
                    && filtered == 0
                    && let Err(error) = pictures(&mut browser)
                {
                    failures.push(("pictures", error));
                }
            }
            Err(error) => failures.push(("start", error)),
        }
    }
    if !failures.is_empty() {
        println!("\nfailures:\n");
        for (name, error) in &failures {
            println!("---- {name} ----\n{error}\n");
        }
    }
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    let passed = wanted.len().saturating_sub(failures.len());
    let failed = failures.len();
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {filtered} filtered out\n"
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Writes the report and opens it on a laptop's screen.
fn open<'a>(browser: &'a mut Browser, name: &str, data: &ReportData, scheme: &str) -> Result<Page<'a>, String> {
    open_html(browser, name, &render(data), scheme)
}

fn open_html<'a>(browser: &'a mut Browser, name: &str, html: &str, scheme: &str) -> Result<Page<'a>, String> {
    let file = scratch().join(format!("report-{name}-{}.html", std::process::id()));
    std::fs::write(&file, html).map_err(|error| format!("{}: {error}", file.display()))?;
    let page = browser.open(&file, LAPTOP, scheme);
    // The page is loaded whole; the file is not needed any more.
    let _ = std::fs::remove_file(&file);
    page
}

/// The plots of a section, as reported by the page's hook.
fn plots(section: &str) -> String {
    format!("narrowsReport.plots.filter((p) => p.section === {section:?})")
}

/// Reads the pixels of each canvas of a section into `d` and returns the results of `body`. A copy is read, because
/// reading a canvas itself makes the browser complain and draw it differently.
fn pixels(section: &str, body: &str) -> String {
    format!(
        "[...document.querySelectorAll('#{section} canvas')].map((c) => {{ \
         const copy = Object.assign(document.createElement('canvas'), {{ width: c.width, height: c.height }}); \
         const context = copy.getContext('2d', {{ willReadFrequently: true }}); context.drawImage(c, 0, 0); \
         const d = context.getImageData(0, 0, c.width, c.height).data; {body} }})"
    )
}

/// A number for each canvas of a section that changes when its picture does.
fn picture_sum(section: &str) -> String {
    let body = "let s = 0; for (let i = 0; i < d.length; i += 4) \
                s = (s * 31 + d[i] + 3 * d[i + 1] + 7 * d[i + 2] + 11 * d[i + 3]) % 1e9; return s;";
    pixels(section, body)
}

/// Number of painted pixels in each canvas of a section.
fn painted(section: &str) -> String {
    pixels(section, "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0 ? 1 : 0; return n;")
}

/// Two schemes of [`sample::mixed`] on switches that share their buffers and pause.
fn lossless() -> ReportData {
    let mut data = sample::mixed();
    data.runs.truncate(2);
    for run in &mut data.runs {
        let mut queues = run.queues.clone().unwrap_or_default();
        for (port, name) in queues.ports.iter_mut().zip(["dc0.border", "dc1.border"]) {
            port.name = name.into();
            port.phantom_bytes.clear();
        }
        queues.ports.truncate(2);
        run.buffers = Some(queues);
        run.summary["requests"] = run.summary["flows"]["all"].clone();
        let network = &mut run.summary["network"];
        network["pfc_pauses"] = serde_json::json!(12);
        network["pfc_pause_ns"] = serde_json::json!(34_000);
        network["pfc_pauses_by_tier"] = serde_json::json!({ "nic": 8, "host": 0, "inter": 4 });
        network["pfc_pause_ns_by_tier"] = serde_json::json!({ "nic": 30_000, "host": 0, "inter": 4_000 });
        network["host_pause_ns"] = serde_json::json!(1_875.5);
        network["max_buffer_bytes"] = serde_json::json!(9_000_000);
        run.links[0].pauses = 4;
        run.links[0].pause_ns = 4_000;
    }
    data
}

fn shared_buffers_and_pauses_are_drawn(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "lossless", &lossless(), "light")?;
    page.check("a plot a run", &format!("{}.length === 2", plots("buffers")))?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("buffers")))?;
    page.check("queues are drawn, too", &format!("{}.length === 3", plots("queues")))?;
    page.check("two classes a run", "document.querySelectorAll('[data-testid=pauses-table] tbody tr').length === 4")?;
    let table = "document.querySelector('[data-testid=results-table]').textContent";
    for words in ["Requests", "Pauses", "Buffers"] {
        page.check(words, &format!("{table}.includes('{words}')"))?;
    }
    page.check("of a link", "document.querySelector('[data-testid=links-table]').textContent.includes('pauses')")
}

/// Credits, coding and collectives have columns, and only where a run has them.
fn what_few_runs_have_gets_columns(browser: &mut Browser) -> TestOutcome {
    let table = "document.querySelector('[data-testid=results-table]').textContent";
    let words = [
        "Collective",
        "over ideal",
        "Coding",
        "recovered",
        "Credits",
        "wasted",
        "57",
        "301",
        "constructor",
        "mixtral",
        "parity",
        "asked",
        "used",
        "dropped",
    ];
    let mut data = sample::mixed();
    let mut page = open(browser, "without", &data, "light")?;
    for word in words {
        page.check(word, &format!("!{table}.includes('{word}')"))?;
    }
    page.close()?;

    let summary = &mut data.runs[0].summary;
    summary["collectives"] = summary["flows"]["all"].clone();
    summary["jobs"] = json!({ "constructor": summary["flows"]["all"], "mixtral": summary["flows"]["intra"] });
    summary["network"]["parity_packets"] = json!(2_113);
    summary["network"]["recovered_blocks"] = json!(57);
    summary["network"]["nacks"] = json!(12);
    summary["credits"] = json!({ "sent": 9_000, "used": 8_641, "wasted": 301, "dropped": 58 });
    let mut page = open(browser, "with", &data, "light")?;
    for word in words {
        page.check(word, &format!("{table}.includes('{word}')"))?;
    }
    page.close()
}

fn every_section_is_drawn(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    page.check(
        "sections, in order",
        "[...document.querySelectorAll('main > section')].map((s) => s.dataset.testid).join() === \
         'section-warnings,section-results,section-claims,section-averages,section-distributions,section-sizes,section-rates,section-queues,section-heat,\
section-traces,section-links,section-scenario,section-replay'",
    )?;
    for (section, count) in [("distributions", 1), ("rates", 6), ("queues", 4), ("traces", 3)] {
        page.check("plots", &format!("{}.length === {count}", plots(section)))?;
        page.check("points", &format!("{}.every((p) => p.series > 0 && p.points > 100)", plots(section)))?;
        page.check("canvases", &format!("{}.length === {count}", painted(section)))?;
        page.check("painted", &format!("{}.every((n) => n > 1000)", painted(section)))?;
    }
    page.check("warnings", "document.querySelectorAll('#warnings li').length === 2")?;
    page.check("a run with warnings is flagged", "document.querySelectorAll('#results tbody th .flag').length === 1")?;
    page.check("a p99 of few flows is questioned", "document.querySelectorAll('#results td .hung').length > 0")?;
    let signs = "document.querySelector('[data-testid=results-signs]').textContent";
    page.check("and that is explained", &format!("{signs}.includes('fewer than 100 values')"))?;
    page.check("runs", "document.querySelectorAll('#results [data-testid=results-table] tbody tr').length === 3")?;
    page.check("claims", "document.querySelectorAll('#claims tbody tr').length === 5")?;
    page.check("verdicts", "document.querySelectorAll('#claims tbody .chip.reproduced').length === 2")?;
    page.check("averages", "document.querySelectorAll('#averages tbody tr').length === 4")?;
    page.check("the best averages", "document.querySelectorAll('#averages .best').length === 2")?;
    let first = "document.querySelector('#averages tbody th').textContent";
    page.check("in the schemes' order", &format!("{first} === {}", json!(sample::SCHEMES[0])))?;
    page.click("#averages [data-key=c0]")?;
    page.click("#averages [data-key=c0]")?;
    page.check("by their size", &format!("{first} === {}", json!(sample::SCHEMES[1])))?;
    page.check("scenario", "document.querySelector('#scenario pre').textContent.startsWith('name = \"uno/fig8\"')")?;
    page.check("provenance", "document.querySelector('footer').textContent.includes('narrows 0.1.0')")?;
    page.close()
}

/// The backend of the runs is shown at the top, and next to each of them at the bottom.
fn the_host_is_named(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::mixed();
    data.runs.truncate(2);
    data.runs.iter_mut().for_each(|run| run.summary["backend"] = json!("simulator"));
    let mut page = open(browser, "simulated", &data, "light")?;
    page.check("one host", "document.querySelector('.facts').textContent.includes('run by the simulator')")?;
    page.check("no other", "!document.querySelector('.facts').textContent.includes('emulator')")?;
    page.close()?;

    data.runs[1].summary["backend"] = json!("emulator");
    let mut page = open(browser, "both", &data, "light")?;
    let both = "the simulator and the emulator, with real packets";
    page.check("both", &format!("document.querySelector('.facts').textContent.includes('{both}')"))?;
    page.check(
        "each run's",
        "['simulator', 'emulator'].every((host, at) => \
         document.querySelectorAll('footer tbody tr')[at].textContent.includes(host))",
    )?;
    page.close()
}

fn absent_data_leaves_no_section(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "empty", &ReportData::default(), "light")?;
    page.check("no section", "document.querySelectorAll('main > section, canvas').length === 0")?;
    page.check("a title all the same", "document.title === 'Narrows report'")?;
    page.close()?;

    // A run that has only a summary, as a run without sampling has, with null for missing values.
    let bare = RunData {
        label: "bare".into(),
        summary: json!({ "schema": 1, "flows": { "all": { "count": 0, "completed": 0, "fct_ns": null } }, "fairness": null }),
        ..RunData::default()
    };
    let data = ReportData { runs: vec![bare], ..ReportData::default() };
    let mut page = open(browser, "bare", &data, "light")?;
    page.check(
        "one section",
        "[...document.querySelectorAll('main > section')].map((s) => s.id).join() === 'results'",
    )?;
    page.close()
}

fn class_tabs_change_the_distribution(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let all = page.eval(&picture_sum("distributions"))?;
    page.click("[data-testid=class-tabs] [data-value=inter]")?;
    page.check(
        "pressed",
        "document.querySelector('[data-testid=class-tabs] [data-value=inter]').ariaPressed === 'true'",
    )?;
    page.check("title", &format!("{}[0].title.startsWith('Inter-DC')", plots("distributions")))?;
    page.check("keeps the focus", "document.activeElement.dataset.value === 'inter'")?;
    let inter = page.eval(&picture_sum("distributions"))?;
    page.click("[data-testid=measure-tabs] [data-value=slowdown]")?;
    page.check("title", &format!("{}[0].title.includes('slowdown')", plots("distributions")))?;
    let slowdown = page.eval(&picture_sum("distributions"))?;
    page.click("[data-testid=view-tabs] [data-value=tail]")?;
    let tail = page.eval(&picture_sum("distributions"))?;
    if all == inter || inter == slowdown || slowdown == tail {
        return Err(format!("a tab changed nothing: {all} {inter} {slowdown} {tail}"));
    }
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("distributions")))?;
    page.check("one plot", &format!("{}.length === 1", plots("distributions")))?;
    page.close()
}

fn legend_hides_a_series(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let item = "#distributions .legend button:nth-of-type(2)";
    page.check("three series", &format!("{}[0].series === 3", plots("distributions")))?;
    let before = page.eval(&picture_sum("distributions"))?;
    page.click(item)?;
    page.check("two series", &format!("{}[0].series === 2", plots("distributions")))?;
    page.check("not pressed", &format!("document.querySelector({item:?}).ariaPressed === 'false'"))?;
    if before == page.eval(&picture_sum("distributions"))? {
        return Err("the picture is the same without the series".into());
    }
    page.click("[data-testid=class-tabs] [data-value=intra]")?;
    page.check("hidden on the next tab too", &format!("{}[0].series === 2", plots("distributions")))?;
    page.eval(&format!("document.querySelector({item:?}).focus()"))?;
    page.key(" ")?;
    page.check("back, by the keyboard", &format!("{}[0].series === 3", plots("distributions")))?;
    page.close()
}

fn class_toggle_hides_flows_in_every_panel(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let rates = format!("{}.filter((p) => p.title.includes('rates'))", plots("rates"));
    page.check("eight flows a panel", &format!("{rates}.length === 3 && {rates}.every((p) => p.series === 8)"))?;
    page.click("#rates .legend button:nth-of-type(1)")?;
    page.check("four left", &format!("{rates}.every((p) => p.series === 4)"))?;
    page.check("phantom queues have a plot", &format!("{}[1].title.endsWith('phantom queues')", plots("queues")))?;
    page.click("#queues .legend button:nth-of-type(2)")?;
    page.check("a port hidden in both", &format!("{}.every((p) => p.series === 1)", plots("queues")))?;
    page.click("[data-testid=trace-tabs] [data-value=alpha_ppm]")?;
    page.wait_for(&format!("{}.length === 3", plots("traces")))?;
    page.check("the other trace", &format!("{}.every((p) => p.title.endsWith('alpha'))", plots("traces")))?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("traces")))?;
    page.close()
}

fn cursors_and_keys_read_values(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    page.hover("#rates .panel:nth-child(1) .u-over")?;
    page.check("a tip", "getComputedStyle(document.querySelector('#rates .tip')).display === 'block'")?;
    page.check("with units", "/at [\\d.]+.ms/.test(document.querySelector('#rates .tip').textContent) && /Gbps/.test(document.querySelector('#rates .tip').textContent)")?;
    page.check(
        "the other panels' cursors follow",
        "[...document.querySelectorAll('#rates .u-cursor-x')].every((c) => !c.classList.contains('u-off') && c.style.transform !== 'translate(-10px, 0px)')",
    )?;
    page.eval("document.querySelector('#distributions .plot').focus({ preventScroll: true })")?;
    page.key("ArrowRight")?;
    page.key("ArrowRight")?;
    page.check("keys read", "getComputedStyle(document.querySelector('#distributions .tip')).display === 'block'")?;
    page.check("described", "document.querySelector('#distributions .plot').ariaLabel.includes('arrow keys')")?;
    page.close()
}

fn dragging_zooms_every_panel(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let rates = plots("rates");
    page.check("one time axis", &format!("new Set({rates}.map((p) => p.range.join())).size === 1"))?;
    let full = page.eval(&format!("{rates}[0].range"))?;
    page.drag("#rates .panel:nth-child(1) .u-over", 60.0)?;
    page.check("closer", &format!("{rates}[0].range[1] - {rates}[0].range[0] < 300"))?;
    page.check("all of them", &format!("{rates}.every((p) => Math.abs(p.range[0] - {rates}[0].range[0]) < 5 && Math.abs(p.range[1] - {rates}[0].range[1]) < 5)"))?;
    page.check("queues stay", &format!("{}.every((p) => p.range[1] > 500)", plots("queues")))?;
    page.double_click("#rates .panel:nth-child(1) .u-over")?;
    page.check("all of it again", &format!("{rates}.every((p) => p.range.join() === '{},{}')", full[0], full[1]))?;
    page.close()
}

const GROUND: &str = "getComputedStyle(document.body).backgroundColor";

fn theme_toggle_repaints(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let light = (page.eval(GROUND)?, page.eval(&picture_sum("rates"))?);
    page.click("[data-testid=theme] [data-value=dark]")?;
    let dark = (page.eval(GROUND)?, page.eval(&picture_sum("rates"))?);
    if light.0 == dark.0 || light.1 == dark.1 {
        return Err(format!("nothing changed: {light:?} {dark:?}"));
    }
    page.click("[data-testid=theme] [data-value=light]")?;
    if light != (page.eval(GROUND)?, page.eval(&picture_sum("rates"))?) {
        return Err("light again is not what light was".into());
    }
    page.eval("localStorage.clear()")?;
    page.close()
}

fn dark_scheme_is_followed(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "dark")?;
    page.check("dark", &format!("{GROUND}.match(/\\d+/g).every((v) => v < 60)"))?;
    for section in ["distributions", "rates", "queues", "traces"] {
        page.check("painted", &format!("{}.every((n) => n > 1000)", painted(section)))?;
    }
    // Every text and its ground differ enough to be read (WCAG's contrast of 4.5), in both themes.
    for choice in ["dark", "light"] {
        page.click(&format!("[data-testid=theme] [data-value={choice}]"))?;
        page.check("contrast", CONTRAST)?;
    }
    page.eval("localStorage.clear()")?;
    page.close()
}

/// True, or the first text that is hard to read.
const CONTRAST: &str = r"(() => {
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const rgba = (css) => { context.clearRect(0, 0, 1, 1); context.fillStyle = css; context.fillRect(0, 0, 1, 1); return context.getImageData(0, 0, 1, 1).data; };
  const light = (c) => { const [r, g, b] = [0, 1, 2].map((i) => { const v = c[i] / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (let n = e; n; n = n.parentElement) { const c = rgba(getComputedStyle(n).backgroundColor); if (c[3] > 200) return c; } return rgba('white'); };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t = walker.nextNode(); t; t = walker.nextNode()) {
    const e = t.parentElement;
    if (!t.textContent.trim() || !e.checkVisibility() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(e.tagName)) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) return `${ratio.toFixed(2)} for ${t.textContent.slice(0, 40)}`;
  }
  return true;
})()";

fn links_sort_and_filter(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    let table = "[data-testid=links-table]";
    let column = |n: u32| {
        format!(
            "[...document.querySelectorAll('{table} tbody tr')].map((r) => parseFloat(r.children[{n}].textContent.replace(/\\s/g, '')))"
        )
    };
    let falling = |n| format!("((v) => v.length > 5 && v.every((x, i) => i === 0 || x <= v[i - 1]))({})", column(n));
    page.check("the busiest first", &falling(2))?;
    page.check("25 of 41", &format!("document.querySelectorAll('{table} tbody tr').length === 25"))?;
    page.click("#links .plain")?;
    page.check("all", &format!("document.querySelectorAll('{table} tbody tr').length === 41"))?;
    for (key, n) in [("marks", 6), ("drops", 4)] {
        page.click(&format!("{table} [data-key={key}]"))?;
        page.check(key, &falling(n))?;
        page.check(
            "said",
            &format!("document.querySelector('{table} [data-key={key}]').parentElement.ariaSort === 'descending'"),
        )?;
    }
    page.click(&format!("{table} [data-key=drops]"))?;
    page.check("the other way", &format!("((v) => v[0] === 0)({})", column(4)))?;
    page.type_text("[data-testid=links-filter]", "inter-DC #3")?;
    page.check("one link", &format!("document.querySelectorAll('{table} tbody tr').length === 1"))?;
    page.check("the right one", &format!("document.querySelector('{table} tbody th').textContent.endsWith('#3')"))?;
    page.close()
}

fn results_mark_the_best(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::mixed();
    // Flows that never ended make a mean look good: such a run is not the best of anything.
    data.runs[2].summary["flows"]["all"]["completed"] = json!(5);
    data.runs[2].summary["flows"]["all"]["fct_ns"]["mean"] = json!(1.0);
    let mut page = open(browser, "best", &data, "light")?;
    let cell =
        |row: u32, n: u32| format!("document.querySelector('#results tbody tr:nth-child({row}) > :nth-child({n})')");
    page.check("unfinished is said", &format!("{}.textContent === '5 of 8'", cell(3, 2)))?;
    page.check("and not best", &format!("!{}.classList.contains('best')", cell(3, 3)))?;
    page.check("the best", &format!("{}.classList.contains('best')", cell(1, 3)))?;
    page.check("with its unit", &format!("{}.textContent.replace(/\\s/g, ' ') === '642 ms'", cell(1, 3)))?;
    page.check("marks are neither good nor bad", &format!("!{}.classList.contains('best')", cell(1, 17)))?;
    page.click("#results [data-key=drops]")?;
    page.click("#results [data-key=drops]")?;
    page.check("sorted by drops", &format!("{}.textContent.includes('MPRDMA')", cell(1, 1)))?;
    page.close()
}

fn copy_buttons_copy(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    page.eval("window.copied = null; document.addEventListener('copy', () => { window.copied = String(getSelection()) || document.activeElement.value; }); \
               navigator.clipboard.writeText = async (t) => { window.copied = t; }")?;
    page.click("#replay [data-testid=copy]")?;
    page.check("commands", "window.copied.startsWith('narrows run papers/uno/fig8.toml')")?;
    page.check("said", "document.querySelector('#replay [data-testid=copy]').textContent === 'Copied'")?;
    page.click("#scenario [data-testid=copy]")?;
    page.check("scenario", "window.copied.startsWith('name = \"uno/fig8\"')")?;
    page.check("closed", "!document.querySelector('#scenario details').open")?;
    page.click("#scenario summary")?;
    page.check("open", "document.querySelector('#scenario details').open")?;
    // Without the clipboard's interface the old way is taken.
    page.eval("navigator.clipboard.writeText = async () => { throw new Error('refused'); }; window.copied = null")?;
    page.click("#replay [data-testid=copy]")?;
    page.check("the old way", "(window.copied || '').startsWith('narrows run')")?;
    page.close()
}

fn hostile_text_stays_text(browser: &mut Browser) -> TestOutcome {
    let data = sample::hostile();
    let mut page = open(browser, "hostile", &data, "light")?;
    for selector in [
        "[data-testid=class-tabs] button:last-child",
        "[data-testid=class-tabs] [data-value=constructor]",
        "[data-testid=trace-tabs] [data-value=constructor]",
        "#links select",
        "#results summary",
        "[data-testid=pooled-class] [data-value=constructor]",
        "#slowest summary",
    ] {
        page.click(selector)?;
    }
    page.hover("#rates .panel:nth-child(1) .u-over")?;
    page.eval(CATCH_SAVED)?;
    for section in ["#distributions", "#collectives", "#network"] {
        let svg = saved(&mut page, section, "svg")?;
        page.check(
            section,
            &format!(
                "((svg) => !svg.querySelector('parsererror, script, img') && svg.documentElement.localName === 'svg') \
                 (new DOMParser().parseFromString({}, 'image/svg+xml'))",
                json!(svg)
            ),
        )?;
    }
    page.check("nothing ran", "window.pwned === undefined")?;
    page.check(
        "no element came from data",
        "document.querySelectorAll('img, svg, main b:not(.tip b):not(li b)').length === 0",
    )?;
    page.check("the title", &format!("document.querySelector('h1').textContent === {}", json!(data.title)))?;
    page.check("the tab's title", &format!("document.title === {}.trim()", json!(data.title)))?;
    page.check(
        "a claim",
        &format!("document.querySelector('#claims').textContent.includes({})", json!(data.claims[0].text)),
    )?;
    page.check(
        "the scenario",
        &format!("document.querySelector('#scenario pre').textContent === {}", json!(data.scenario_toml)),
    )?;
    page.check("no wider than the window", FITS)?;
    page.close()
}

/// Takes an option of a `select`.
fn choose(id: &str, value: &str) -> String {
    format!(
        "(() => {{ const s = document.querySelector('[data-testid={id}]'); s.value = {value:?}; s.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    )
}

fn grid_plots_follow_their_controls(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "grid", &sample::grid(), "light")?;
    page.check(
        "one line a scheme",
        &format!("{0}.length === 1 && {0}[0].series === 3 && {0}[0].points === 21", plots("sweep")),
    )?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("sweep")))?;
    page.check(
        "a slice's runs only",
        &format!("{}.length === 6 && {}[0].total === 3", plots("rates"), plots("distributions")),
    )?;
    let before = page.eval(&picture_sum("sweep"))?;
    page.eval(&choose("sweep-metric", "slowdown_p99_inter"))?;
    page.settle()?;
    page.check("the metric", &format!("{}[0].title.startsWith('Slowdown 99th percentile')", plots("sweep")))?;
    if before == page.eval(&picture_sum("sweep"))? {
        return Err("the metric changed nothing".into());
    }
    page.eval(&choose("slice-load", ""))?;
    page.settle()?;
    page.check("two loads", &format!("{0}[0].series === 6 && {0}[0].points === 42", plots("sweep")))?;
    page.eval(&choose("sweep-axis", "load"))?;
    page.settle()?;
    page.check("against the load", &format!("{0}[0].series === 3 && {0}[0].points === 6", plots("sweep")))?;
    page.close()
}

fn forty_runs_and_two_hundred_flows(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "large", &sample::large(), "light")?;
    page.check("panels", "document.querySelectorAll('[data-testid=rate-panel]').length === 40")?;
    page.check("all drawn", &format!("{}.length === 80", plots("rates")))?;
    page.check("every sample", &format!("{0}[0].total === 200 && {0}[0].points > 550000", plots("rates")))?;
    page.check("opens at once", "performance.now() < 20000")?;
    page.check("forty lines", &format!("{}[0].series === 40", plots("distributions")))?;
    page.check("no wider than the window", FITS)?;
    page.close()
}

/// A grid as large as a paper's: all sections are drawn of one of its points, and of all of them at once.
fn two_hundred_runs_are_drawn(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "wide-grid", &sample::wide_grid(), "light")?;
    for (load, runs) in [("10%", 20), ("", 200)] {
        page.eval(&choose("slice-load", load))?;
        page.wait_for(&format!("{}.length === {runs}", plots("traces")))?;
        // Ten seeds a scheme and point.
        let lines = format!("((p) => 10 * p.series === {runs} && p.thin === {runs})({}[0])", plots("distributions"));
        page.check("lines", &lines)?;
        page.check("values", &format!("{}[0].points > {runs} * {runs} * 100", plots("distributions")))?;
        page.check("rates", &format!("{}.length === 2 * {runs}", plots("rates")))?;
        page.check("queues", &format!("2 * {}.length === 3 * {runs}", plots("queues")))?;
        page.check("painted", &format!("{}.every((n) => n > 1000)", painted("distributions")))?;
    }
    page.check("the grid", &format!("{0}[0].series === 2 && {0}[0].points === 20", plots("sweep")))?;
    page.check("means", "document.querySelectorAll('[data-testid=means-table] tbody tr').length === 20")?;
    page.eval("document.querySelector('#results details .lead .plain').click()")?;
    page.check("results", "document.querySelectorAll('[data-testid=results-table] tbody tr').length === 200")?;
    // Of every run all links: more rows than fit on a stack as arguments.
    page.eval(&choose("links-run", "all"))?;
    page.eval("document.querySelector('#links .lead .plain').click()")?;
    page.check("links", "document.querySelectorAll('[data-testid=links-table] tbody tr').length === 200 * 41")?;
    page.check("nothing failed", "document.querySelector('.failed') === null")?;
    page.close()
}

/// Runs that differ in their seeds alone have a column for that, and names of their own wherever one is chosen.
fn seeds_tell_runs_apart(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::mixed();
    for (seed, run) in (1_u64..).zip(&mut data.runs) {
        run.label = "Uno".into();
        run.summary["seed"] = seed.into();
    }
    let runs = data.runs.len();
    let mut page = open(browser, "seeds", &data, "light")?;
    let heads = "[...document.querySelectorAll('[data-testid=results-table] th')]";
    page.check("a column", &format!("{heads}.some((head) => head.textContent.startsWith('seed'))"))?;
    let names = "[...document.querySelectorAll('[data-testid=links-run] option')].map((name) => name.textContent)";
    page.check("names", &format!("new Set({names}).size === {runs} + 1 && {names}.includes('Uno, seed 2')"))?;
    page.close()
}

/// Window sizes for visual checks: each section's plots at two widths, in light and dark.
const WIDTHS: [(u32, u32); 2] = [(1400, 900), (500, 900)];

/// True if no two texts of the page overlap, or else the first two that do.
const NO_OVERLAP: &str = r"(() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let t = walker.nextNode(); t; t = walker.nextNode()) {
    const e = t.parentElement;
    if (!t.textContent.trim() || !e.checkVisibility() || e.closest('option, .visually-hidden, .scroll, pre, .tip')) continue;
    const range = document.createRange();
    range.selectNodeContents(t);
    for (const r of range.getClientRects()) if (r.width > 1 && r.height > 1) boxes.push([r, t.textContent]);
  }
  boxes.sort((a, b) => a[0].top - b[0].top);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j][0].top < boxes[i][0].bottom - 4; j++) {
      const [a, b] = [boxes[i][0], boxes[j][0]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) {
        return `${boxes[i][1].slice(0, 30)} | ${boxes[j][1].slice(0, 30)}`;
      }
    }
  }
  return true;
})()";

/// No part of the page sticks out or overlaps another at 1400 and 500 pixels, in light and dark. A picture of a section
/// is saved for each.
fn fits_everywhere(page: &mut Page, name: &str, section: &str) -> TestOutcome {
    for theme in ["light", "dark"] {
        page.click(&format!("[data-testid=theme] [data-value={theme}]"))?;
        for size in WIDTHS {
            page.resize(size)?;
            page.settle()?;
            page.settle()?;
            let what = format!("{name} at {} in {theme}", size.0);
            page.check(&what, FITS)?;
            page.check(&what, NO_OVERLAP)?;
            page.check(&what, CONTRAST)?;
            save(Path::new(&format!("{name}-{theme}-{}.png", size.0)), &page.shoot(Some(&format!("#{section}")))?)?;
        }
    }
    page.resize(LAPTOP)?;
    page.eval("localStorage.clear()")?;
    page.settle()
}

/// Rows are schemes at points with means over seeds; single runs are folded; the plot has error bars.
fn grids_show_means_over_seeds(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "seeds-grid", &sample::seeds(), "light")?;
    let rows = "document.querySelectorAll('[data-testid=means-table] tbody tr')";
    page.check("a row a scheme and point", &format!("{rows}.length === 21"))?;
    // 0.9, 1.0 and 1.1 times a value: the margin is t(2) * 0.1 / sqrt(3) = 24.8 % of the mean.
    let cell = "document.querySelector('[data-testid=means-table] [data-key=fct_p99_all]').closest('th').cellIndex";
    page.check(
        "the mean and its interval",
        &format!(
            "((c) => {{ const [m, s] = [parseFloat(c.firstChild.textContent), parseFloat(c.querySelector('.margin').textContent.slice(2))]; \
             return Math.abs(s / m - 0.2484) < 0.004; }})({rows}[0].children[{cell}])"
        ),
    )?;
    page.check(
        "single runs are folded away",
        "!document.querySelector('[data-testid=results-table]').checkVisibility()",
    )?;
    page.click("[data-testid=single-runs] > summary")?;
    page.check("and come out", "document.querySelector('[data-testid=results-table]').checkVisibility()")?;
    page.click("[data-testid=single-runs] > summary")?;
    page.check("means alone are drawn", &format!("{0}[0].series === 3 && {0}[0].points === 21", plots("sweep")))?;
    page.check("with their bars", &format!("{}[0].bars === 21", plots("sweep")))?;
    page.hover("#sweep .u-over")?;
    page.check("a tip with the margin", "document.querySelector('#sweep .tip').textContent.includes('±')")?;
    let logs = page.eval(&picture_sum("sweep"))?;
    page.click("[data-testid=sweep-scale-x] [data-value=lin]")?;
    let linear_x = page.eval(&picture_sum("sweep"))?;
    page.check("the label says so", &format!("!{}[0].x.includes('log')", plots("sweep")))?;
    page.click("[data-testid=sweep-scale] [data-value=lin]")?;
    let linear = page.eval(&picture_sum("sweep"))?;
    if logs == linear_x || linear_x == linear {
        return Err(format!("an axis did not change: {logs} {linear_x} {linear}"));
    }
    page.click("[data-testid=sweep-scale-x] [data-value=log]")?;
    fits_everywhere(&mut page, "grid-means", "results")?;
    fits_everywhere(&mut page, "grid-bars", "sweep")?;
    page.close()
}

/// Failures are marked in each plot over time, listed above each panel, and shown with the values.
fn failures_are_in_every_time_plot(browser: &mut Browser) -> TestOutcome {
    let mut whole = sample::failing();
    whole.runs.iter_mut().for_each(|run| run.failures.clear());
    let mut page = open(browser, "whole", &whole, "light")?;
    let sums = ["rates", "queues", "traces"].map(|section| page.eval(&picture_sum(section)));
    page.check("none is marked", "narrowsReport.plots.every((p) => p.failures === 0)")?;
    page.close()?;
    let mut page = open(browser, "failing", &sample::failing(), "light")?;
    page.eval(CATCH_SAVED)?;
    for (section, whole) in ["rates", "queues", "traces"].into_iter().zip(sums) {
        page.check(section, &format!("{}.every((p) => p.failures === 42)", plots(section)))?;
        if page.eval(&picture_sum(section))? == whole? {
            return Err(format!("{section}: the picture does not show them"));
        }
        page.check(
            "said",
            &format!("document.querySelector('#{section} .panel p').textContent.includes('#0 down from 120')"),
        )?;
        let svg = saved(&mut page, &format!("#{section} .panel"), "svg")?;
        for words in ["flap", "2\u{a0}links down"] {
            if !svg.contains(words) {
                return Err(format!("{section}: {words} is not in its SVG"));
            }
        }
        fits_everywhere(&mut page, &format!("failures-{section}"), section)?;
    }
    // 690 ms are drawn: the middle is in no failure, behind it is one.
    page.hover("#queues .panel:nth-child(1) .u-over")?;
    page.check("up", "document.querySelector('#queues .tip .down') === null")?;
    page.eval("document.querySelector('#queues .plot').focus({ preventScroll: true })")?;
    for _ in 0..18 {
        page.key("PageDown")?;
    }
    page.check("down", "document.querySelector('#queues .tip .down').textContent.includes('#1')")?;
    page.close()
}

fn percentiles_by_size_follow_their_controls(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "sizes", &sample::seeds(), "light")?;
    page.check("two lines a scheme", &format!("{0}[0].series === 6 && {0}[0].points === 24", plots("sizes")))?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("sizes")))?;
    fits_everywhere(&mut page, "sizes", "sizes")?;
    let mut sums = vec![page.eval(&picture_sum("sizes"))?];
    page.click("[data-testid=sizes-stat] [data-value=p95]")?;
    page.check("one line a scheme", &format!("{0}[0].series === 3 && {0}[0].points === 12", plots("sizes")))?;
    sums.push(page.eval(&picture_sum("sizes"))?);
    page.click("[data-testid=sizes-measure] [data-value=fct_ns]")?;
    page.check("times", &format!("{}[0].title.startsWith('completion time')", plots("sizes")))?;
    sums.push(page.eval(&picture_sum("sizes"))?);
    page.click("[data-testid=sizes-scale] [data-value=lin]")?;
    sums.push(page.eval(&picture_sum("sizes"))?);
    page.click("#sizes .legend button:nth-of-type(2)")?;
    page.check("a scheme less", &format!("{}[0].series === 2", plots("sizes")))?;
    sums.push(page.eval(&picture_sum("sizes"))?);
    if sums.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(format!("a control changed nothing: {sums:?}"));
    }
    page.eval(CATCH_SAVED)?;
    let csv = saved(&mut page, "#sizes", "csv")?;
    if csv.lines().count() != 5 || !csv.contains("\nsmall (< 64 KiB),") {
        return Err(csv);
    }
    page.close()
}

/// The fullest of twenty ports are lines, the others are one band, and a click shows all of them.
fn few_queues_are_lines_and_the_rest_a_band(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "ports", &sample::ports(), "light")?;
    page.check("eight lines, and two edges of the rest", &format!("{}[0].series === 10", plots("queues")))?;
    page.check("phantom queues likewise", &format!("{}[1].series === 10", plots("queues")))?;
    page.check("the fullest", "[...document.querySelectorAll('#queues .legend button')].map((b) => b.textContent).includes('dc0.edge19>dc0.host')")?;
    fits_everywhere(&mut page, "ports", "queues")?;
    page.eval(CATCH_SAVED)?;
    let svg = saved(&mut page, "#queues", "svg")?;
    if !svg.contains("the most of the other 12") || svg.matches("Z\"").count() != 1 {
        return Err("the band is not in the SVG".into());
    }
    let before = page.eval(&picture_sum("queues"))?;
    page.click("#queues .legend button:last-of-type")?;
    page.check("without the rest", &format!("{}[0].series === 8", plots("queues")))?;
    if before == page.eval(&picture_sum("queues"))? {
        return Err("the band did not go".into());
    }
    page.click("[data-testid=queues-shown] [data-value=all]")?;
    page.check("all", &format!("{}[0].series === 20", plots("queues")))?;
    page.close()
}

/// The pictures of a section, as reported by the page's hook.
fn charts(section: &str) -> String {
    format!("narrowsReport.charts.filter((c) => c.section === {section:?})")
}

/// Moves the mouse onto a section's first picture: a fraction of its width from the left, and a number of pixels from
/// the top.
fn point(section: &str, across: f64, down: f64) -> String {
    format!(
        "(({{ left, top, width }}) => document.querySelector('#{section} .picture').dispatchEvent(new MouseEvent('mousemove', \
         {{ bubbles: true, clientX: left + {across} * width, clientY: top + {down} }}))) \
         (document.querySelector('#{section} canvas').getBoundingClientRect())"
    )
}

fn heat_maps_show_ports_over_time(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::ports();
    let name = data.runs[0].queues.as_ref().map(|queues| queues.ports[3].name.clone()).unwrap_or_default();
    data.runs[0].failures =
        vec![FailureData { links: vec![name.clone()], count: 1, down_ns: vec![(200_000_000, Some(400_000_000))] }];
    let mut page = open(browser, "heat", &data, "light")?;
    page.check("cells", &format!("{0}.length === 1 && {0}[0].count > 20 * 300", charts("heat")))?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("heat")))?;
    fits_everywhere(&mut page, "heat", "heat")?;
    let before = page.eval(&picture_sum("heat"))?;
    page.click("[data-testid=heat-scale] [data-value=log]")?;
    if before == page.eval(&picture_sum("heat"))? {
        return Err("the scale changed nothing".into());
    }
    page.check("kept", "location.hash.includes('heat.log=true')")?;
    page.hover("#heat .picture canvas")?;
    page.eval("document.querySelector('#heat .picture').focus({ preventScroll: true })")?;
    page.eval("document.querySelector('#heat .tip').style.display = 'none'")?;
    page.key("ArrowLeft")?;
    page.check("keys read", "getComputedStyle(document.querySelector('#heat .tip')).display === 'block'")?;
    page.check("a tip", "/dc0.edge\\d+>dc0.host.*B at .*ms/.test(document.querySelector('#heat .tip').textContent)")?;
    page.eval(CATCH_SAVED)?;
    let svg = saved(&mut page, "#heat", "svg")?;
    if svg.matches("<rect").count() < 6_000
        || !svg.contains("time (ms)")
        || saved(&mut page, "#heat", "png")?.len() < 5_000
    {
        return Err("the heat map is not in its files".into());
    }
    let csv = saved(&mut page, "#heat", "csv")?;
    if csv.lines().count() != 901 || !csv.contains(&format!("{name} (bytes)")) {
        return Err(format!("{} rows", csv.lines().count()));
    }
    page.close()
}

fn the_network_is_drawn_with_what_failed(browser: &mut Browser) -> TestOutcome {
    let data = sample::training();
    let mut page = open(browser, "network", &data, "light")?;
    // Twelve cables of hosts and pods, four to the cores, both ways each; two up to the border; one bundle between.
    page.check(
        "a line a direction",
        &format!("{0}.length === 1 && {0}[0].count === 2 * (24 + 8 + 2) + 2", charts("network")),
    )?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("network")))?;
    page.check("what failed, and when", "document.querySelector('[data-testid=outages]').textContent.includes('dc0.pod1.agg0>dc0.core0 down from 20.0')")?;
    fits_everywhere(&mut page, "network", "network")?;
    let before = page.eval(&picture_sum("network"))?;
    page.eval(&choose("network-run", "1"))?;
    page.settle()?;
    if before == page.eval(&picture_sum("network"))? {
        return Err("the other run's network looks the same".into());
    }
    page.check("kept", "location.hash.includes('network.run=1')")?;
    // The bundle between the datacenters lies in the middle, at the height of the borders.
    page.eval(&point("network", 0.5, 62.0))?;
    page.check("a tip", "/border>dc\\d.border, 4 links.*busy.*#2 down from 9/.test(document.querySelector('#network .tip').textContent)")?;
    page.eval(CATCH_SAVED)?;
    let csv = saved(&mut page, "#network", "csv")?;
    if csv.lines().count() != data.runs[1].links.len() + 1 || !csv.contains(",9000000,14000000") {
        return Err(csv);
    }
    if !saved(&mut page, "#network", "svg")?.contains(">border</text>") {
        return Err("the SVG does not name the borders".into());
    }
    page.close()
}

fn collectives_are_drawn_step_by_step(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "collectives", &sample::training(), "light")?;
    page.check(
        "all flows of both",
        &format!("{0}.length === 2 && {0}.every((c) => c.count === 2 * 8 * 14)", charts("collectives")),
    )?;
    page.check("painted", &format!("{}.every((n) => n > 1000)", painted("collectives")))?;
    page.check(
        "not all are listed",
        "document.querySelector('#collectives .body').textContent.includes('The first 2 of 5')",
    )?;
    fits_everywhere(&mut page, "collectives", "collectives")?;
    page.eval(&choose("collectives-number", "1"))?;
    page.settle()?;
    page.check("one of them", &format!("{}.every((c) => c.count === 8 * 14)", charts("collectives")))?;
    page.eval(&point("collectives", 0.5, 36.0 + 3.5 * 20.0))?; // a slow rank, which the others wait for
    page.check(
        "a tip",
        "/gpt 2, host \\d.*step \\d+ to host \\d/.test(document.querySelector('#collectives .tip').textContent)",
    )?;
    page.eval(&choose("collectives-run", "1"))?;
    page.settle()?;
    page.check("one run", &format!("{}.length === 1", charts("collectives")))?;
    page.eval(CATCH_SAVED)?;
    let csv = saved(&mut page, "#collectives", "csv")?;
    // The last one did not end.
    if csv.lines().count() != 113 || csv.lines().filter(|line| line.ends_with(',')).count() != 1 {
        return Err(csv);
    }
    page.close()
}

/// Keeps the reader's choices in the address: a page opened with it shows the same view, and so does an open page when its
/// address changes.
fn the_address_keeps_the_view(browser: &mut Browser) -> TestOutcome {
    const SHOWN: &str = "JSON.stringify([narrowsReport.plots.map((p) => [p.title, p.series, p.x].join()).sort(), \
        [...document.querySelectorAll('[aria-pressed]:not([data-testid=theme] *)')].map((b) => b.ariaPressed), \
        [...document.querySelectorAll('select, input:not([type=checkbox])')].map((s) => s.value), \
        document.querySelectorAll('#links tbody tr').length])";
    let html = render(&sample::grid());
    let mut page = open_html(browser, "view", &html, "light")?;
    let first = page.eval(SHOWN)?;
    page.check("none at first", "location.hash === ''")?;
    page.eval(&choose("slice-load", "60%"))?;
    page.eval(&choose("sweep-metric", "slowdown_p99_inter"))?;
    page.click("[data-testid=sweep-scale-x] [data-value=lin]")?;
    page.click("#sweep .legend button:nth-of-type(2)")?;
    page.click("[data-testid=class-tabs] [data-value=inter]")?;
    page.click("[data-testid=view-tabs] [data-value=tail]")?;
    page.click("#rates .legend button:nth-of-type(1)")?;
    page.click("[data-testid=trace-tabs] [data-value=alpha_ppm]")?;
    page.type_text("[data-testid=links-filter]", "inter-DC #3")?;
    page.click("#bar a[href='#queues']")?;
    page.wait_for("narrowsReport.ready && location.hash.startsWith('#queues&load=60%25')")?;
    page.settle()?;
    let hash = page.eval("location.hash")?.as_str().unwrap_or_default().to_owned();
    let chosen = page.eval(SHOWN)?;
    if chosen == first || hash.len() > 400 {
        return Err(format!("{hash}: {chosen}"));
    }
    page.close()?;

    let file = scratch().join(format!("report-view-{}.html", std::process::id()));
    std::fs::write(&file, &html).map_err(|error| error.to_string())?;
    let mut page = browser.open(Path::new(&format!("{}{hash}", file.display())), LAPTOP, "light")?;
    let _ = std::fs::remove_file(&file);
    page.settle()?;
    if page.eval(SHOWN)? != chosen {
        return Err(format!("{hash} gave {} and not {chosen}", page.eval(SHOWN)?));
    }
    page.check("at its section", "Math.abs(document.querySelector('#queues').getBoundingClientRect().top) < 120")?;
    page.eval("location.hash = ''")?;
    page.wait_for(&format!("{SHOWN} === {first}"))?;
    // Addresses that no page wrote change nothing, and cause no failure.
    page.eval("location.hash = '#x&load=7&grid.axis=no&grid.metric=__proto__&times.cls=no&times.hidden=%5B&laws.name=1&links.run=99&%&=&queues.hidden=null'")?;
    page.settle()?;
    page.check("nothing failed", "document.querySelector('.failed') === null")?;
    page.check("the grid's plot", &format!("{}[0].series === 3", plots("sweep")))?;
    page.close()
}

/// Keeps the files that the page would save in `saved`: each with its name and its blob.
const CATCH_SAVED: &str = "(() => { window.saved = []; const blobs = new Map(); \
    URL.createObjectURL = (blob) => { const url = `blob:${blobs.size}`; blobs.set(url, blob); return url; }; \
    HTMLAnchorElement.prototype.click = function () { window.saved.push({ name: this.download, blob: blobs.get(this.href) }); }; })()";

/// Saves the first plot found by `place` as `kind` and returns the file as text (a PNG's as a data URL).
fn saved(page: &mut Page, place: &str, kind: &str) -> Result<String, String> {
    page.eval("window.saved.length = 0")?;
    page.click(&format!("{place} [data-testid=save] [data-value={kind}]"))?;
    page.wait_for("window.saved.length === 1")?;
    page.check("its name", &format!("/^[\\w.+-]+\\.{kind}$/.test(saved[0].name)"))?;
    let read = match kind {
        "png" => {
            "new Promise((done) => { const r = new FileReader(); r.onload = () => done(r.result); r.readAsDataURL(saved[0].blob); })"
        }
        _ => "saved[0].blob.text()",
    };
    page.eval(read)?.as_str().map(str::to_owned).ok_or_else(|| "nothing was saved".into())
}

/// The saved files are an SVG of lines and text that a parser accepts and that shows the plot, a PNG of its size, and
/// the values.
fn plots_are_saved_as_svg_png_and_csv(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "saved", &sample::seeds(), "light")?;
    page.eval(CATCH_SAVED)?;
    page.click("#sweep .legend button:nth-of-type(2)")?;
    for (place, series, words) in
        [("#sweep", 2, "rtt_ratio"), ("#rates .panel", 8, "rate (Gbps)"), ("#distributions", 9, "Uno")]
    {
        let svg = saved(&mut page, place, "svg")?;
        page.eval(&format!("window.svg = new DOMParser().parseFromString({}, 'image/svg+xml')", json!(svg)))?;
        page.check(
            "well-formed",
            "svg.querySelector('parsererror') === null && svg.documentElement.localName === 'svg'",
        )?;
        page.check("no picture of a picture", "svg.querySelector('image, script, foreignObject') === null")?;
        page.check("its lines", &format!("svg.querySelectorAll('g path[stroke-linejoin]').length >= {series}"))?;
        page.check("its words", &format!("svg.documentElement.textContent.includes({})", json!(words)))?;
        page.check("inside", "[...svg.querySelectorAll('text')].every((t) => +t.getAttribute('x') >= 0 && +t.getAttribute('y') <= svg.documentElement.height.baseVal.value)")?;
        let name = place.trim_start_matches('#').replace(' ', "").replace('.', "-");
        if let Some(dir) = std::env::var_os("NARROWS_REPORT_SHOTS") {
            std::fs::write(Path::new(&dir).join(format!("saved-{name}.svg")), &svg)
                .map_err(|error| error.to_string())?;
        }
        let png = saved(&mut page, place, "png")?;
        let png = png.strip_prefix("data:image/png;base64,").ok_or("no PNG")?;
        if png.len() < 5_000 {
            return Err(format!("a PNG of {} characters", png.len()));
        }
        save(Path::new(&format!("saved-{name}.png")), png)?;
        let csv = saved(&mut page, place, "csv")?;
        // A comma within quotes separates nothing.
        let width = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>() + 1;
        let mut lines = csv.lines();
        let columns = lines.next().map_or(0, width);
        let rows = lines.clone().count();
        if rows < 7 || columns < series + 1 || lines.any(|line| width(line) != columns) {
            return Err(format!("{place}: {rows} rows of {columns} columns:\n{csv}"));
        }
    }
    // With the ends of error bars, without series hidden in the legend.
    let csv = saved(&mut page, "#sweep", "csv")?;
    let head = csv.lines().next().unwrap_or_default().to_owned();
    if !head.contains("Uno: low,Uno: high") || head.contains("GEMINI") || csv.lines().count() != 8 {
        return Err(format!("the grid's table: {csv}"));
    }
    page.close()
}

/// A section fails where it stands: at once (a trace without a name) or when its plot's turn comes (a queue without
/// values), as does the heat map of it. All others are drawn.
fn a_section_that_fails_leaves_the_others(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::mixed();
    data.runs[0].traces[0].name = "to be null".into();
    data.runs[1].queues.as_mut().ok_or("no queues")?.ports[0].queue_bytes = vec![987_654_321];
    let page = render(&data);
    let damaged = page.replace("\"to be null\"", "null").replace("[987654321]", "null");
    if damaged.len() != page.len() - "\"to be null\"".len() - "[987654321]".len() + 8 {
        return Err("the data is written in another way".into());
    }
    let mut page = open_html(browser, "damaged", &damaged, "light")?;
    page.check(
        "sections that failed",
        "[...document.querySelectorAll('section:has(.failed)')].map((s) => s.id).join() === 'queues,heat,traces'",
    )?;
    page.check("why", "document.querySelector('#traces .failed').textContent.includes('TypeError')")?;
    page.check("one panel of three", "document.querySelectorAll('#queues .failed').length === 1")?;
    page.check("the others of its section", &format!("{}.length === 3", plots("queues")))?;
    page.check("before", &format!("{}.length === 6", plots("rates")))?;
    page.check("behind", "document.querySelectorAll('[data-testid=links-table] tbody tr').length > 0")?;
    page.check("at the end", "document.querySelector('#replay pre') !== null")
}

const FITS: &str = "document.documentElement.scrollWidth <= innerWidth";

fn nothing_sticks_out(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    page.check(
        "on a laptop the results need no scrolling",
        "((e) => e.scrollWidth <= e.clientWidth + 1)(document.querySelector('#results .scroll'))",
    )?;
    page.resize((1351, 768))?; // with a scroll bar
    page.settle()?;
    page.check(
        "nor beside a scroll bar",
        "((e) => e.scrollWidth <= e.clientWidth + 1)(document.querySelector('#results .scroll'))",
    )?;
    for size in [(1366, 768), (1024, 700), (700, 900), (390, 800), (1920, 1080)] {
        page.resize(size)?;
        page.settle()?;
        page.settle()?;
        page.check(&format!("{size:?}"), FITS)?;
        page.check(
            "plots fill their boxes",
            "[...document.querySelectorAll('.plot')].every((b) => Math.abs(b.querySelector('.uplot').offsetWidth - b.clientWidth) <= 1)",
        )?;
    }
    page.close()
}

fn prints(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "mixed", &sample::mixed(), "dark")?;
    let pdf = page.call("Page.printToPDF", &json!({ "printBackground": true }))?;
    let length = pdf["data"].as_str().unwrap_or_default().len();
    if length < 50_000 {
        return Err(format!("a PDF of {length} characters"));
    }
    save(Path::new("report.pdf"), pdf["data"].as_str().unwrap_or_default())?;
    page.check("dark again", &format!("{GROUND}.match(/\\d+/g).every((v) => v < 60)"))?;
    page.close()
}

/// Pictures for a person to look at.
fn pictures(browser: &mut Browser) -> TestOutcome {
    let samples: [(&str, DataFn); 3] = [("mixed", sample::mixed), ("grid", sample::grid), ("large", sample::large)];
    for scheme in ["light", "dark"] {
        for (name, data) in samples {
            let mut page = open(browser, name, &data(), scheme)?;
            save(Path::new(&format!("{name}-{scheme}.png")), &page.shoot(None)?)?;
            if name == "large" {
                for (part, selector) in [("flows", "#rates .panel"), ("cdf", "#distributions")] {
                    save(Path::new(&format!("{name}-{scheme}-{part}.png")), &page.shoot(Some(selector))?)?;
                }
            } else {
                let sections = page.eval("[...document.querySelectorAll('main > section')].map((s) => s.id)")?;
                for id in sections.as_array().into_iter().flatten().filter_map(|id| id.as_str()) {
                    let shot = page.shoot(Some(&format!("#{id}")))?;
                    save(Path::new(&format!("{name}-{scheme}-{id}.png")), &shot)?;
                }
                page.click("[data-testid=view-tabs] [data-value=tail]")?;
                save(Path::new(&format!("{name}-{scheme}-tail.png")), &page.shoot(Some("#distributions"))?)?;
                page.hover("#rates .panel:nth-child(2) .u-over")?;
                save(Path::new(&format!("{name}-{scheme}-hover.png")), &page.shoot(None)?)?;
            }
            page.close()?;
        }
    }
    let mut page = open(browser, "mixed", &sample::mixed(), "light")?;
    page.resize((390, 800))?;
    page.settle()?;
    save(Path::new("narrow.png"), &page.shoot(Some("body"))?)?;
    page.resize((960, 1000))?;
    page.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }))?;
    page.eval("dispatchEvent(new Event('beforeprint'))")?;
    page.settle()?;
    save(Path::new("print.png"), &page.shoot(Some("body"))?)?;
    page.close()
}

/// Writes base64 text as a file among the pictures, if they are asked for.
fn save(name: &Path, base64: &str) -> TestOutcome {
    let Some(dir) = std::env::var_os("NARROWS_REPORT_SHOTS") else { return Ok(()) };
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(u32::from(c - b'A')),
        b'a'..=b'z' => Some(u32::from(c - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(c - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = base64.bytes().filter_map(digit).collect();
    let mut bytes = Vec::with_capacity(digits.len());
    for group in digits.chunks(4) {
        let word = group.iter().enumerate().fold(0, |word, (i, d)| word | d << (18 - 6 * i));
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let file = Path::new(&dir).join(name);
    std::fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))
}
