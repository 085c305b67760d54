//! The book's pages of verdicts agree with the papers' files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

/// One claim's recorded verdict by scale; none is pending or was never recorded.
type Recorded = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/src/papers").join(name)).unwrap()
}

/// A paper's figures and the recorded verdicts of their claims; those of its published artifact are separate.
fn figures(paper: &str, published: bool) -> BTreeMap<String, Vec<Recorded>> {
    let files = fs::read_dir(root().join("papers").join(paper)).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let named = scenarios.map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), file));
    named
        .filter(|(name, _)| name.contains("as-published") == published)
        .map(|(name, file)| (name, claims(&file)))
        .collect()
}

fn claims(file: &Path) -> Vec<Recorded> {
    let text: DocumentMut = fs::read_to_string(file).unwrap().parse().unwrap();
    let claims = text.get("claim").and_then(|claims| claims.as_array_of_tables());
    let recorded = |claim: &toml_edit::Table| {
        let verdicts = claim.get("recorded").and_then(|recorded| recorded.as_table_like());
        let pairs = verdicts.into_iter().flat_map(|verdicts| verdicts.iter());
        pairs.map(|(scale, verdict)| (scale.to_owned(), verdict.as_str().unwrap().to_owned())).collect()
    };
    claims.into_iter().flatten().map(recorded).collect()
}

/// Returns the number of claims with each verdict at a scale.
fn counts(figures: &BTreeMap<String, Vec<Recorded>>, scale: &str) -> [usize; 4] {
    ["reproduced", "direction only", "undecided", "not reproduced"].map(|verdict| {
        let claims = figures.values().flatten();
        claims.filter(|claim| claim.get(scale).is_some_and(|recorded| recorded == verdict)).count()
    })
}

/// Returns the sentence of the pages' summaries.
fn sentence([reproduced, direction, undecided, not]: [usize; 4]) -> String {
    format!(
        "{reproduced} are reproduced, {direction} in direction only, {undecided} are undecided, {not} are not reproduced"
    )
}

#[test]
fn a_papers_page_counts_what_its_files_have_recorded() {
    for paper in ["gemini", "on-ramp", "uno", "lscc", "flashpass"] {
        let figures = figures(paper, false);
        let counted = counts(&figures, "quick");
        let claims: usize = figures.values().map(Vec::len).sum();
        // The words between these state the subject of the claims.
        let (summary, counts) = (page(&format!("{paper}.md")), sentence(counted));
        let line = summary.lines().find(|line| line.starts_with("- **Counts**, quick scale, five seeds")).unwrap();
        let (before, _) = line.split_once(&format!(" {counts}")).unwrap_or_else(|| panic!("{paper}.md: {counts}"));
        assert!(before.contains(&format!(": of {claims} claims")), "{paper}.md: of {claims} claims");
    }
}

/// A paper's page agrees with its page of results on the counts of suspected causes, once outcomes are recorded.
#[test]
fn a_papers_page_counts_its_causes() {
    let mut counted = 0;
    for paper in ["gemini", "on-ramp", "uno", "lscc", "flashpass"] {
        let results = page(&format!("{paper}-results.md"));
        let files = fs::read_dir(root().join("papers").join(paper)).unwrap().map(|entry| entry.unwrap().path());
        let mut scenarios = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
        let has_outcomes = scenarios.any(|file| {
            let text: DocumentMut = fs::read_to_string(file).unwrap().parse().unwrap();
            let causes = text.get("cause").and_then(|causes| causes.as_array_of_tables());
            causes.into_iter().flatten().any(|cause| cause.contains_key("recorded"))
        });
        let sentence =
            results.split_once(". Of the ").map(|(_, rest)| format!("Of the {}", rest.lines().next().unwrap()));
        assert_eq!(sentence.is_some(), has_outcomes, "{paper}-results.md counts causes, or its files have outcomes");
        if let Some(sentence) = sentence {
            counted += 1;
            assert!(page(&format!("{paper}.md")).contains(&sentence), "{paper}.md: {sentence}");
        }
    }
    assert!(counted > 0, "no paper has outcomes");
}

#[test]
fn unos_page_counts_the_papers_size_too() {
    let summary = page("uno.md");
    for (published, before) in [(false, "over three seeds"), (true, "about the published artifact")] {
        let counted = sentence(counts(&figures("uno", published), "paper"));
        assert!(summary.contains(&format!("{before} {counted}")), "uno.md, published: {published}: {counted}");
    }
}

/// The verdicts of a page that the program wrote, by figure, as its tables of claims list them.
fn listed(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut figures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut figure, mut in_claims) = (String::new(), false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.split(',').next().unwrap().clone_into(&mut figure);
        }
        let Some(row) = line.strip_prefix("| ") else {
            in_claims &= line.starts_with('|');
            continue;
        };
        if in_claims {
            // A verdict may have its reason behind it.
            let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            let verdict = cell.split(" (").next().unwrap().to_owned();
            figures.entry(figure.clone()).or_default().push(verdict);
        }
        in_claims |= row == "claim | paper | measured | verdict |";
    }
    figures
}

#[test]
fn every_listed_verdict_is_the_recorded_one() {
    let papers = ["gemini", "on-ramp", "uno", "lscc", "flashpass"];
    let quick = papers.map(|paper| (format!("{paper}-results.md"), "quick", Some(paper)));
    let larger = ["uno-paper-size.md", "paper-size.md"].map(|name| (name.to_owned(), "paper", None));
    for (name, scale, whole) in quick.into_iter().chain(larger) {
        let page = page(&name);
        let listed = listed(&page);
        for (figure, verdicts) in &listed {
            let claims = claims(&root().join("papers").join(format!("{figure}.toml")));
            let recorded: Vec<&str> =
                claims.iter().map(|claim| claim.get(scale).map_or("none", String::as_str)).collect();
            assert_eq!(verdicts, &recorded, "{name}: {figure}");
        }
        let count = |word: &str| listed.values().flatten().filter(|verdict| *verdict == word).count();
        let line = format!(
            "{} reproduced, {} direction only, {} undecided, {} not reproduced",
            count("reproduced"),
            count("direction only"),
            count("undecided"),
            count("not reproduced")
        );
        assert!(page.contains(&line), "{name}: {line}");
        // A paper's own page has all of its figures that claim something.
        let figures = whole.map(|paper| (paper, figures(paper, false))).into_iter();
        let named = figures.flat_map(|(paper, figures)| figures.into_iter().map(move |named| (paper, named)));
        for (paper, (stem, _)) in named.filter(|(_, (_, claims))| !claims.is_empty()) {
            assert!(listed.contains_key(&format!("{paper}/{stem}")), "{name}: {stem}");
        }
    }
}
