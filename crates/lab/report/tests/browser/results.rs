//! The heading, and the table of results: training jobs, means over seeds, columns that need scrolling.

use crate::chromium::{Browser, Page, Scrollbars};
use crate::{CATCH_SAVED, FITS, TestOutcome, WIDTHS, fits_everywhere, open, picture_sum, plots, sample, saved};
use report::ReportData;
use serde_json::{Value, json};

/// The scenario's name is the heading of the page and the title of the browser's tab, with its description and its paper,
/// if it has them.
pub(crate) fn heading_is_the_scenario_name(browser: &mut Browser) -> TestOutcome {
    let paper = "Uno: A One-Stop Solution (SC 2025), Fig. 8";
    let full = ReportData { name: "uno-fig8".into(), title: "Incast".into(), paper: paper.into(), ..sample::mixed() };
    let conditions = vec!["initial window of Uno: intra 175 KB (1 BDP)".to_owned(), "most loaded: a>b 50 %".to_owned()];
    let bare = ReportData { title: String::new(), paper: String::new(), conditions, ..full.clone() };
    for (data, heading, paper) in [(full, "uno-fig8: Incast", Some(paper)), (bare, "uno-fig8", None)] {
        let mut page = open(browser, "heading", &data, "light")?;
        page.check("the heading", &format!("document.querySelector('h1').textContent === {}", json!(heading)))?;
        page.check("the tab", &format!("document.title === {}", json!(heading)))?;
        let shown = "document.querySelector('[data-testid=paper] cite')?.textContent ?? null";
        page.check("the paper", &format!("({shown}) === {}", json!(paper)))?;
        // The conditions of comparisons are below the table of results.
        let lines = "[...document.querySelectorAll('[data-testid=condition]')].map((line) => line.textContent)";
        page.check(
            "the conditions",
            &format!("JSON.stringify({lines}) === {}", json!(json!(data.conditions).to_string())),
        )?;
        page.close()?;
    }
    Ok(())
}

/// Returns the texts of a row's cell, the largest first: the value, and the text below it.
fn cell(table: &str, row: u32, key: &str) -> String {
    format!(
        "((t) => ((c) => [c.querySelector('.waits')?.firstChild.textContent ?? c.firstChild.textContent, \
         c.querySelector('.margin')?.textContent ?? ''].map((x) => x.replace(/\\s/g, ' ')).join(' | ')) \
         (t.tBodies[0].rows[{row}].cells[t.querySelector('[data-key={key}]').closest('th').cellIndex])) \
         (document.querySelector('[data-testid={table}]'))"
    )
}

/// A training job has its iterations, any other job its mean; over seeds they are means.
pub(crate) fn training_jobs_have_iterations(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "jobs", &sample::jobs(), "light")?;
    // Two seeds, 10 ms apart: t(1) * 7.07 / sqrt(2) = 63.5.
    for (table, row, key, text) in [
        ("means-table", 0, "iteration_mean_gpt", "155 ms | ± 64 ms"),
        ("means-table", 0, "iteration_exposed_gpt", "89 ms | ± 64 ms"),
        (
            "means-table",
            0,
            "iteration_waits_gpt",
            "compute 39 % | tensor 28 %, pipeline 21 %, data 12 %; between datacenters 11 %",
        ),
        (
            "means-table",
            1,
            "iteration_waits_gpt",
            "pipeline 51 % | tensor 28 %, data 12 %, compute 9 %; between datacenters 26 %",
        ),
        ("results-table", 1, "iteration_mean_gpt", "160 ms | "),
        ("results-table", 1, "iteration_exposed_gpt", "94.0 ms | "),
        (
            "results-table",
            2,
            "iteration_waits_gpt",
            "pipeline 50 % | tensor 28 %, data 12 %, compute 10 %; between datacenters 25 %",
        ),
        ("results-table", 0, "job_fct_mean_experts", "662 ms | "),
        ("results-table", 0, "end_to_end_trace", "155 ms | "),
        ("means-table", 0, "end_to_end_trace", "160 ms | ± 64 ms"),
    ] {
        page.check(key, &format!("{} === {}", cell(table, row, key), json!(text)))?;
    }
    page.check(
        "a training job has no mean of its flows",
        "document.querySelector('[data-key=job_fct_mean_gpt]') === null",
    )?;
    page.check(
        "the best iteration is marked",
        "document.querySelectorAll('[data-testid=means-table] tbody tr:first-child .best').length > 1",
    )?;
    page.click("[data-testid=means-table] [data-key=iteration_waits_gpt]")?;
    page.check(
        "most waiting first",
        "document.querySelector('[data-testid=means-table] tbody th').textContent.startsWith('GEMINI')",
    )?;
    page.check(
        "which hosts",
        "document.querySelector('[data-testid=means-table] .waits').title.includes('pipeline, dc0.host1 to dc1.host4: 25')",
    )?;
    fits_everywhere(&mut page, "jobs", "results")?;
    page.close()
}

/// Every column of every table comes into the window when its box is scrolled to the end by a wheel. The first column stays,
/// the page itself does not scroll, and the box shows a bar and takes keys.
pub(crate) fn every_column_can_be_reached(browser: &mut Browser) -> TestOutcome {
    for (name, data) in [("jobs", sample::jobs()), ("seeds", sample::seeds()), ("tails", sample::tails())] {
        let mut page = open(browser, &format!("reach-{name}"), &data, "light")?;
        page.scrollbars(Scrollbars::Shown)?;
        page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true; })")?;
        for size in WIDTHS {
            page.resize(size)?;
            page.settle()?;
            page.settle()?;
            page.check(&format!("{name} at {}", size.0), FITS)?;
            let boxes = page.eval("document.querySelectorAll('table').length")?.as_u64().unwrap_or(0);
            for at in 0..boxes {
                reach(&mut page, at).map_err(|error| format!("{name} at {}, table {at}: {error}", size.0))?;
            }
        }
        page.check("wide ones were among them", "window.wide > 0")?;
        page.close()?;
    }
    Ok(())
}

fn reach(page: &mut Page, at: u64) -> TestOutcome {
    page.eval(&format!(
        "window.it = document.querySelectorAll('table')[{at}]; window.box = it.closest('.scroll'); \
         it.scrollIntoView({{ block: 'start', behavior: 'instant' }}); scrollBy(0, -120)"
    ))?;
    page.check("in a box", "box !== null && box.tabIndex === 0 && box.ariaLabel !== ''")?;
    if page.eval("box.scrollWidth <= box.clientWidth + 1")? == json!(true) {
        return page.check("fits", "it.getBoundingClientRect().right <= box.getBoundingClientRect().right + 1");
    }
    page.eval("window.wide = (window.wide || 0) + 1")?;
    page.check("a bar", "box.offsetHeight - box.clientHeight >= 8")?;
    let middle =
        page.eval("((r) => [r.x + r.width / 2, r.y + Math.min(40, r.height / 2)])(box.getBoundingClientRect())")?;
    page.call(
        "Input.dispatchMouseEvent",
        &json!({ "type": "mouseWheel", "x": middle[0], "y": middle[1], "deltaX": 10_000, "deltaY": 0 }),
    )?;
    page.wait_for("box.scrollLeft + box.clientWidth >= box.scrollWidth - 1")?;
    page.check("the page stays", "scrollX === 0")?;
    page.check(
        "the last column",
        "[...it.querySelectorAll('tr > :last-child')].every((cell) => ((c, b) => c.left >= b.left && c.right <= b.right + 1 \
         && c.right <= innerWidth)(cell.getBoundingClientRect(), box.getBoundingClientRect()))",
    )?;
    page.check(
        "names stay, and their head",
        "[...it.tBodies[0].rows, it.tHead.rows[it.tHead.rows.length - 1]].every((row) => \
         it.tBodies[0].rows[0]?.cells[0].tagName !== 'TH' || \
         Math.abs(row.cells[0].getBoundingClientRect().left - box.getBoundingClientRect().left) <= 1)",
    )?;
    page.eval("box.scrollLeft = 0").map(drop)
}

/// Seeds of a scheme have one entry in the legend, one colour, and a line of all their flows; single seeds are thin lines.
pub(crate) fn seeds_share_a_line(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "seeds-cdf", &sample::seeds(), "light")?;
    let legend = "[...document.querySelectorAll('#distributions .legend button')]";
    let names = |page: &mut Page| page.eval(&format!("{legend}.map((it) => it.textContent)"));
    let lines = |series: u32, thin: u32| {
        format!("((p) => p.series === {series} && p.thin === {thin})({}[0])", plots("distributions"))
    };
    if names(&mut page)? != json!(sample::SCHEMES) {
        return Err(format!("{}", names(&mut page)?));
    }
    page.check("a line a scheme, a thin one a seed", &lines(3, 9))?;
    let before = page.eval(&picture_sum("distributions"))?;
    page.click("#distributions .legend button:nth-of-type(1)")?;
    page.check("all seeds of a scheme are hidden", &lines(2, 6))?;
    if before == page.eval(&picture_sum("distributions"))? {
        return Err("the picture is the same without the scheme".into());
    }
    page.hover("#distributions .u-over")?;
    page.check("a tip reads schemes", "document.querySelectorAll('#distributions .tip > div').length === 2")?;
    page.check("kept", "location.hash.includes('times.hidden')")?;
    page.click("#distributions .legend button:nth-of-type(1)")?;
    page.check("and shown again", &lines(3, 9))?;
    page.eval(CATCH_SAVED)?;
    let svg = saved(&mut page, "#distributions", "svg")?;
    if svg.contains("seed") || svg.matches(">Uno<").count() != 1 {
        return Err("the saved legend has seeds".into());
    }
    let colours = page.eval(&format!(
        "[...new DOMParser().parseFromString({}, 'image/svg+xml').querySelectorAll('g path')].map((it) => it.getAttribute('stroke'))",
        json!(svg)
    ))?;
    let colours: std::collections::BTreeSet<_> =
        colours.as_array().into_iter().flatten().map(Value::to_string).collect();
    if colours.len() != sample::SCHEMES.len() {
        return Err(format!("colours: {colours:?}"));
    }
    // Each seed has as many flows: the share of all is the mean of theirs.
    let csv = saved(&mut page, "#distributions", "csv")?;
    let rows: Vec<Vec<f64>> =
        csv.lines().skip(1).map(|row| row.split(',').map(|v| v.parse().unwrap_or(f64::NAN)).collect()).collect();
    let is_mean = |row: &Vec<f64>| row.len() == 13 && ((row[1] + row[2] + row[3]) / 3.0 - row[4]).abs() < 1e-9;
    if rows.len() < 100 || !rows.iter().all(is_mean) || rows.iter().all(|row| row[1].to_bits() == row[3].to_bits()) {
        return Err(csv.chars().take(600).collect());
    }
    fits_everywhere(&mut page, "seeds-cdf", "distributions")?;
    // Of all points, a line a scheme and point.
    page.eval(&crate::choose("slice-rtt_ratio", ""))?;
    page.settle()?;
    page.wait_for(&lines(21, 63))?;
    page.check("points tell lines apart", &format!("{legend}[3].textContent === 'Uno, rtt_ratio 16'"))?;
    page.close()?;

    // A seed without completed flows, with a third of all flows.
    let mut data = sample::seeds();
    data.runs[2].distributions.clear();
    data.runs[2].summary["flows"]["all"]["completed"] = json!(0);
    let mut page = open(browser, "seeds-open", &data, "light")?;
    page.eval(CATCH_SAVED)?;
    let csv = saved(&mut page, "#distributions", "csv")?;
    let last: Vec<f64> = csv.lines().last().unwrap_or_default().split(',').filter_map(|v| v.parse().ok()).collect();
    if last.len() != 13 || (last[4] - 200.0 / 3.0).abs() > 1e-9 {
        return Err(format!("{last:?}"));
    }
    page.close()
}

/// Means and intervals are rounded as by `results` in the terminal: both numbers to the interval's second digit, in one
/// unit.
pub(crate) fn means_and_intervals_are_rounded_together(browser: &mut Browser) -> TestOutcome {
    let mut data = sample::mixed();
    data.runs.truncate(1);
    data.runs.push(data.runs[0].clone());
    for (seed, run) in (1_u64..).zip(&mut data.runs) {
        run.summary["seed"] = json!(seed);
        // t(1) * sqrt(2) / sqrt(2) = 12.706 of half the difference.
        run.summary["network"]["max_queue_bytes"] = json!(1_050_000 + 2 * seed);
        run.summary["network"]["drops"] = json!(100_000 + 2_000 * seed);
        run.summary["network"]["retransmits"] = json!(5);
        run.summary["flows"]["all"]["fct_ns"]["mean"] = json!(1_500_000 + 600 * seed);
    }
    let mut page = open(browser, "rounded", &data, "light")?;
    for (key, text) in [
        ("max_queue", "1.05 MB | ± 13 B"),
        ("drops", "103 000 | ± 13 000"),
        ("retransmits", "5 | "),
        ("fct_mean_all", "1.5009 ms | ± 0.0038 ms"),
    ] {
        page.check(key, &format!("{} === {}", cell("means-table", 0, key), json!(text)))?;
    }
    // The cases of `results::quantity`, and many more, in the page's units.
    let cases = json!([
        ["ns", 1_500_333.3, 3_800.0, "1.5003 ms ± 0.0038 ms"],
        ["number", 158_637.0, 21_165.0, "159 000 ± 21 000"],
        ["number", 19_625.0, 402.0, "19 630 ± 400"],
        ["bytes", 1_050_000.0, 12.0, "1.05 MB ± 12 B"],
        ["ns", 697_941_880.0, 720.0, "698 ms ± 720 ns"],
        ["jain", 0.998_2, 1.23e-6, "0.998 ± 1.2e-6"],
        ["number", 4.0, 12.7, "4 ± 13"],
        ["number", -0.01, 12.7, "0 ± 13"],
        ["ns", 200_000.0, 3_000_000.0, "0.2 ms ± 3.0 ms"],
        ["ratio", 5.0, 0.099_6, "5.00× ± 0.10×"],
        ["share", 0.5, 0.01, "50.0 % ± 1.0 %"]
    ]);
    page.check(
        "cases",
        &format!(
            "(() => {{ for (const [kind, value, margin, text] of {cases}) {{ \
             const made = narrowsReport.withMargin(kind, value, margin).join(' ').replace(/\\s/g, ' '); \
             if (made !== text) return `${{made}}, not ${{text}}`; }} return true; }})()"
        ),
    )?;
    page.check("no digit is spurious", SPURIOUS)?;
    page.eval("document.querySelector('footer details').open = true")?;
    for (column, text) in [("threads", "1"), ("speed", "38.1 M")] {
        let cell = cell("cost-table", 0, column);
        page.check(column, &format!("{cell} === {}", json!(format!("{text} | "))))?;
    }
    page.close()
}

/// Returns true, or the first of several values that is wrong or has more digits than its interval justifies.
const SPURIOUS: &str = r"(() => {
  let seed = 1;
  const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
  const units = { '': 1, ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, bps: 1, kbps: 1e3, Mbps: 1e6, Gbps: 1e9, Tbps: 1e12, '×': 1 };
  const read = (text) => {
    const [, number, unit] = /^([\d\u202f.]+(?:e-\d+)?)\s?(\D*)$/.exec(text);
    const plain = number.replace(/\u202f/g, '');
    return { value: Number(plain) * units[unit], unit, places: (plain.split('.')[1] || '').length, plain };
  };
  for (let i = 0; i < 20000; i++) {
    const kind = ['ns', 'bytes', 'bps', 'number', 'ratio', 'count'][i % 6];
    const value = 10 ** (random() * (kind === 'ns' ? 11 : kind === 'count' ? 6.9 : kind === 'number' ? 5 : kind === 'ratio' ? 4 : 14));
    const margin = value * 10 ** (random() * 5 - 4);
    const [left, right] = narrowsReport.withMargin(kind, value, margin);
    const [mean, half] = [read(left), read(right.replace('±\u00a0', ''))];
    const words = `${kind} ${value} ${margin}: ${left} ${right}`;
    if (mean.unit !== half.unit || mean.places !== half.places) return words;
    if (half.plain.replace('.', '').replace(/^0+|0+$/g, '').length > 2) return words;
    if (Math.abs(half.value - margin) > margin * 0.0501 || Math.abs(mean.value - value) > margin * 0.0501) return words;
  }
  return true;
})()";
