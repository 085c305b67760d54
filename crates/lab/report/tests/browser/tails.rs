//! Slowdowns over all seeds together, and the slowest flows.

use crate::chromium::Browser;
use crate::{TestOutcome, choose, fits_everywhere, open, plots, sample};

/// One row per scheme, class and point, for the selected point; a p99 of few flows has a question mark.
pub(crate) fn slowdowns_over_all_seeds_stand_with_their_intervals(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "pooled", &sample::tails(), "light")?;
    let rows = "[...document.querySelectorAll('[data-testid=pooled-table] tbody tr')]";
    page.check("three schemes, two classes", &format!("{rows}.length === 6"))?;
    page.check("intervals", &format!("{rows}.every((r) => /[\\d.]+ to [\\d.]+/.test(r.textContent))"))?;
    page.check(
        "few flows are marked",
        &format!("{rows}.every((r) => (r.children[1].textContent === 'inter') === r.textContent.includes('?'))"),
    )?;
    page.check("differences are marked", &format!("{rows}.filter((r) => r.textContent.includes('*')).length === 4"))?;
    page.check("none over itself", &format!("{rows}[0].lastElementChild.textContent === '–'"))?;
    let signs = "document.querySelector('[data-testid=pooled-signs]').textContent";
    page.check("signs are explained", &format!("{signs}.includes('fewer than 100') && {signs}.includes('without 1')"))?;
    page.check(
        "what is the ratio over",
        "document.querySelector('[data-testid=pooled-table]').textContent.includes('over Uno’s')",
    )?;
    fits_everywhere(&mut page, "pooled", "pooled")?;
    page.eval(&choose("slice-rtt_ratio", ""))?;
    page.settle()?;
    page.check(
        "all points, with a column for them",
        &format!("{rows}.length === 24 && {rows}[0].children[1].textContent === '8'"),
    )?;
    page.click("#pooled .lead .plain")?;
    page.check("all of them", &format!("{rows}.length === 42"))?;
    page.click("#pooled [data-key=p99]")?;
    page.check("by p99", &format!("{rows}[0].textContent.startsWith('GEMINI512')"))?;
    page.click("[data-testid=pooled-class] [data-value=inter]")?;
    page.check(
        "one class",
        &format!("{rows}.length === 21 && {rows}.every((r) => r.children[2].textContent === 'inter')"),
    )?;
    page.check("kept", "location.hash.includes('slowdowns.cls=inter')")?;
    page.check("no object", "!document.querySelector('main').textContent.includes('[object')")?;
    fits_everywhere(&mut page, "pooled-grid", "pooled")?;
    // The grid's plot has them, each with its own interval.
    for (metric, lines) in [("pooled_p99_inter", 3), ("pooled_ratio_p99_intra", 2)] {
        page.eval(&choose("sweep-metric", metric))?;
        page.settle()?;
        page.check(metric, &format!("{0}[0].points === 7 * {lines} && {0}[0].bars === 7 * {lines}", plots("sweep")))?;
    }
    page.hover("#sweep .u-over")?;
    page.check("a tip", "/1.30×.*[\\d.]+× to [\\d.]+×/.test(document.querySelector('#sweep .tip').textContent)")?;
    fits_everywhere(&mut page, "pooled-plot", "sweep")?;
    page.close()?;

    // The page states what was left out, even if it shows none of it.
    let mut data = sample::tails();
    data.points_left_out = 990;
    data.pooled.retain(|row| row.run < 9);
    data.slowest.retain(|it| it.run < 9);
    let mut page = open(browser, "left-out", &data, "light")?;
    page.eval(&choose("slice-rtt_ratio", "512"))?;
    page.settle()?;
    page.check("said in both", "[...document.querySelectorAll('[data-testid=left-out]')].filter((p) => p.textContent.includes('990')).length === 2")?;
    page.check(
        "no row",
        &format!("{rows}.length === 0 && document.querySelectorAll('#pooled .none, #slowest .none').length === 2"),
    )?;
    page.close()
}

/// Entries are listed below each other when folded; two tables per class are shown when opened, with stars where the
/// slowest have at least twice as much.
pub(crate) fn slowest_flows_are_shown_with_typical_ones(browser: &mut Browser) -> TestOutcome {
    let mut page = open(browser, "slowest", &sample::tails(), "light")?;
    let groups = "[...document.querySelectorAll('[data-testid=slowest-group]')]";
    page.check("a scheme each, folded", &format!("{groups}.length === 3 && {groups}.every((g) => !g.open)"))?;
    page.check("what it comes to", &format!("/Uno3.seeds · slowdown [\\d.]+ against [\\d.]+ .intra., [\\d.]+ .inter./.test({groups}[0].querySelector('summary').textContent)"))?;
    page.check("no table yet", "document.querySelectorAll('#slowest table').length === 0")?;
    fits_everywhere(&mut page, "slowest-folded", "slowest")?;
    page.click("[data-testid=slowest-group]:nth-child(1) > summary")?;
    page.wait_for("document.querySelectorAll('#slowest table').length === 4")?;
    let row = |words: &str| {
        format!(
            "[...document.querySelectorAll('[data-testid=traits-table] tr')].find((r) => r.textContent.includes('{words}')).textContent"
        )
    };
    page.check(
        "stars",
        &format!("{}.endsWith('5.83×*') && !{}.includes('*')", row("cuts on congestion"), row("size")),
    )?;
    page.check(
        "units",
        &format!("{}.includes('551\u{a0}kB') && {}.includes('22.4\u{a0}%')", row("size"), row("marked")),
    )?;
    page.check(
        "without a typical one",
        "[...document.querySelectorAll('[data-testid=traits-table]')][1].rows[1].textContent.includes('–')",
    )?;
    page.check("the slowest", "document.querySelectorAll('[data-testid=slowest-flows]')[0].rows.length === 6")?;
    page.check(
        "few",
        "[...document.querySelectorAll('#slowest h3')].map((h) => h.textContent.includes('?')).join() === 'false,true'",
    )?;
    page.check("unfinished", "document.querySelector('#slowest .of-class:nth-child(2) .lead').textContent.startsWith('4\u{a0}flows did not end and are in none of this')")?;
    page.check("no object", "!document.querySelector('main').textContent.includes('[object')")?;
    fits_everywhere(&mut page, "slowest", "slowest")?;
    page.eval(&choose("slice-rtt_ratio", ""))?;
    page.settle()?;
    page.check(
        "all points",
        &format!("{groups}.length === 21 && {groups}[3].textContent.startsWith('Uno, rtt_ratio 16')"),
    )?;
    page.close()?;

    let mut data = sample::tails();
    data.slowest = data.slowest.iter().flat_map(|it| [it.clone(), it.clone()]).collect();
    let mut page = open(browser, "slowest-many", &data, "light")?;
    page.eval(&choose("slice-rtt_ratio", ""))?;
    page.settle()?;
    page.check("not all at once", &format!("{groups}.length === 24"))?;
    page.click("[data-testid=slowest-more]")?;
    page.check("all", &format!("{groups}.length === 42"))?;
    page.close()
}
