//! The page of all recorded claims: its search, filters, address and keys.

use report::{RecordedCause, RecordedClaim, RecordedClaims, VerdictData, render_claims};

use crate::chromium::Browser;
use crate::{TestOutcome, choose, fits_everywhere, open_html};

/// 240 verdicts of two papers at two scales.
fn claims() -> RecordedClaims {
    const VERDICTS: [VerdictData; 5] = [
        VerdictData::Reproduced,
        VerdictData::DirectionOnly,
        VerdictData::Undecided,
        VerdictData::NotReproduced,
        VerdictData::Pending,
    ];
    let claim = |at: usize| {
        let cause = RecordedCause {
            id: "one-way".into(),
            text: "Flows may all go one way".into(),
            change: "traffic.0.from = 0..8".into(),
            measured: "1.22 ± 0.18".into(),
            outcome: "in part".into(),
            removed_percent: Some(48),
        };
        RecordedClaim {
            paper: ["gemini", "uno"][at / 120].into(),
            figure: format!("fig{}", at / 20 + 1),
            in_paper: format!("Fig. {}", at / 20 + 1),
            id: format!("claim-{at}"),
            text: format!("Scheme {at} has shorter completion times than <b>the others</b>"),
            paper_value: "0.5".into(),
            measured: format!("{at}.4 ± 0.1 ms"),
            scale: ["quick", "paper"][at % 2].into(),
            scaled: if at.is_multiple_of(2) { "1500 flows instead of 10000".into() } else { String::new() },
            seeds: 5,
            verdict: VERDICTS[at % 5],
            causes: if at == 3 { vec![cause] } else { Vec::new() },
            ..RecordedClaim::default()
        }
    };
    RecordedClaims { generated_by: "narrows 0.1.0".into(), claims: (0..240).map(claim).collect() }
}

/// A search, filters and the address select rows; causes unfold; all of it by keys.
pub(crate) fn claims_are_found_by_search_and_filters(browser: &mut Browser) -> TestOutcome {
    let mut page = open_html(browser, "recorded", &render_claims(&claims()), "light")?;
    let rows = "[...document.querySelectorAll('[data-testid=recorded-table] tbody tr')]";
    let counts = "document.querySelector('[data-testid=counts]').textContent";
    page.check("the first hundred", &format!("{rows}.length === 100"))?;
    page.check("text stays text", &format!("{rows}[0].textContent.includes('<b>the others</b>')"))?;
    page.click("#recorded .lead .plain")?;
    page.check("all of them", &format!("{rows}.length === 240"))?;

    page.type_text("[data-testid=search]", "COMPLETION claim-17")?;
    page.check("all words", &format!("{rows}.length === 11 && {rows}[0].textContent.includes('claim-17')"))?;
    page.eval(&choose("filter-verdict", "not reproduced"))?;
    page.settle()?;
    page.check("and a verdict", &format!("{rows}.length === 2 && {counts}.includes('2 not reproduced')"))?;
    page.eval(&choose("filter-scale", "quick"))?;
    page.settle()?;
    page.check("and a scale", &format!("{rows}.length === 1"))?;
    page.check("in the address", "location.hash.includes('claims.verdict=not%20reproduced')")?;
    page.eval(&choose("filter-paper", "gemini"))?;
    page.settle()?;
    page.check("nothing is left", &format!("{rows}.length === 0 && {counts}.startsWith('No claim')"))?;

    page.eval("location.hash = '#&claims.paper=uno&claims.text=fig9'")?;
    page.wait_for(&format!("{rows}.length === 20"))?;
    page.check("controls follow", "document.querySelector('[data-testid=filter-paper]').value === 'uno'")?;
    page.check("the search, too", "document.querySelector('[data-testid=search]').value === 'fig9'")?;
    page.eval("location.hash = '#&claims.text=one%20way'")?;
    page.wait_for(&format!("{rows}.length === 1"))?;
    let details = "document.querySelector('#recorded td details')";
    page.check("a cause is folded", &format!("!{details}.open && {details}.textContent.includes('48')"))?;
    page.eval("document.querySelector('#recorded td summary').focus()")?;
    page.eval("document.activeElement.click()")?;
    page.check("and opens", &format!("{details}.open"))?;
    fits_everywhere(&mut page, "recorded", "recorded")?;

    page.eval("location.hash = '#&claims.paper=uno'")?;
    page.wait_for(&format!("{rows}.length === 120 || {rows}.length === 100"))?;
    page.click("#recorded [data-key=measured]")?;
    page.check("sorted", &format!("{rows}[0].textContent.includes('claim-120')"))?;
    page.eval("document.querySelector('[data-testid=search]').focus()")?;
    for reached in ["filter-paper", "filter-scale", "filter-verdict"] {
        page.key("Tab")?;
        page.check(reached, &format!("document.activeElement.dataset.testid === '{reached}'"))?;
    }
    page.close()
}
