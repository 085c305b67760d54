//! The page of recorded claims: all papers, figures and scales in one table that can be searched.

use serde::{Deserialize, Serialize};

use crate::data::VerdictData;
use crate::page::{PageFrame, PlotLibrary, escape_json};

/// The page's script, one file per topic. It shares files with the report of runs.
const SCRIPT: [&str; 6] = [
    include_str!("../assets/script/base.js"),
    include_str!("../assets/script/controls.js"),
    include_str!("../assets/script/view.js"),
    include_str!("../assets/script/table.js"),
    include_str!("../assets/script/verdicts.js"),
    include_str!("../assets/script/recorded.js"),
];

/// Title and heading of the page.
const TITLE: &str = "All claims";

/// All data of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedClaims {
    /// Program and version, for instance `narrows 0.1.0`.
    pub generated_by: String,
    /// The claims, in display order; one entry per claim and scale.
    pub claims: Vec<RecordedClaim>,
}

/// A claim's verdict at one scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedClaim {
    /// The paper, for instance `uno`.
    pub paper: String,
    /// The figure's scenario file without its extension, for instance `fig8-mixed`.
    pub figure: String,
    /// The figure's name in the paper, for instance `Fig. 8`; may be empty.
    pub in_paper: String,
    /// The claim's name in the figure's file.
    pub id: String,
    /// The claim as text.
    pub text: String,
    /// The paper's value or words.
    pub paper_value: String,
    /// Measured value, with its unit; empty if nothing was measured.
    pub measured: String,
    /// Size of the experiment: `quick` or `paper`.
    pub scale: String,
    /// Changes of that scale; may be empty.
    pub scaled: String,
    /// Number of seeds.
    pub seeds: u64,
    /// Version of the code that decides results.
    pub engine: String,
    /// The outcome.
    pub verdict: VerdictData,
    /// Reason for the outcome, if one is needed; may be empty.
    pub note: String,
    /// Suspected causes that were tried.
    pub causes: Vec<RecordedCause>,
}

/// A suspected cause that was tried on a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedCause {
    /// The cause's name in the figure's file.
    pub id: String,
    /// The cause as text.
    pub text: String,
    /// The change of the scenario.
    pub change: String,
    /// Measured value with the change.
    pub measured: String,
    /// The outcome, for instance `shown`.
    pub outcome: String,
    /// Share of the shortfall that the change removes, in per cent; none where it has no measure.
    pub removed_percent: Option<u8>,
}

/// Input of the page's script.
#[derive(Serialize)]
struct ClaimsPageData<'a> {
    title: &'static str,
    report: &'a RecordedClaims,
}

/// Writes the page of recorded claims as one HTML document in UTF-8.
///
/// The document loads nothing from elsewhere. The same data produce the same bytes.
///
/// ```
/// assert!(report::render_claims(&report::RecordedClaims::default()).contains("<title>All claims</title>"));
/// ```
pub fn render_claims(data: &RecordedClaims) -> String {
    // JSON can represent all values of these types, so this does not fail.
    let json =
        serde_json::to_string(&ClaimsPageData { title: TITLE, report: data }).unwrap_or_else(|_| "{}".to_owned());
    let main = "<section id=\"recorded\" data-testid=\"section-recorded\" aria-labelledby=\"recorded-title\">\
                <h2 id=\"recorded-title\">Claims</h2><p class=\"lead\">One row per claim and scale. A row matches if it \
                contains all search words; suspected causes are searched too.</p><div class=\"body\"></div></section>\n";
    let page = PageFrame {
        title: TITLE,
        generated_by: &data.generated_by,
        main,
        json: &escape_json(&json),
        plots: PlotLibrary::Absent,
        script: &SCRIPT,
    };
    page.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> RecordedClaims {
        let cause = RecordedCause { text: text.into(), outcome: "shown".into(), ..RecordedCause::default() };
        let claim = RecordedClaim { text: text.into(), seeds: 5, causes: vec![cause], ..RecordedClaim::default() };
        RecordedClaims { generated_by: text.into(), claims: vec![claim] }
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let data = claims("</script><script>alert(1)</script><!-- \u{2028} & \" '");
        let html = render_claims(&data);
        let start = html.find("id=\"report-data\">").map(|at| at + "id=\"report-data\">".len()).unwrap();
        let json = &html[start..start + html[start..].find("</script>").unwrap()];
        assert!(!json.contains('<') && !json.contains('\u{2028}'));
        let page: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::from_value::<RecordedClaims>(page["report"].clone()).unwrap(), data);
        // The data and the page's own script.
        assert_eq!(html.matches("<script").count(), 2);
        assert_eq!(html.matches("</script>").count(), 2);
    }

    #[test]
    fn the_page_is_one_small_file() {
        let html = render_claims(&RecordedClaims::default());
        assert!(html.len() < 60_000, "{} bytes before any data", html.len());
        assert!(!html.contains("uPlot (https"), "tables alone need no library of plots");
        for tag in ["<script src", "<link rel=\"stylesheet\"", "@import", "<img", "<iframe", "fetch(", "XMLHttp"] {
            assert!(!html.contains(tag), "{tag}");
        }
    }
}
