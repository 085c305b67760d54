//! The papers' pages and the record of their figures agree with the papers' files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use crate::support::Scratch;

/// The papers with claims.
const PAPERS: [&str; 5] = ["gemini", "on-ramp", "uno", "lscc", "flashpass"];

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
fn paper_pages_match_recorded_verdict_counts() {
    for paper in PAPERS {
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

/// A paper's page agrees with the record on the counts of suspected causes, once outcomes are recorded.
#[test]
fn paper_pages_match_recorded_cause_counts() {
    let mut counted = 0;
    for paper in PAPERS {
        let (claims, causes) = (rows(paper, "quick", "claims"), rows(paper, "quick", "causes"));
        let files = fs::read_dir(root().join("papers").join(paper)).unwrap().map(|entry| entry.unwrap().path());
        let mut scenarios = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
        let has_outcomes = scenarios.any(|file| {
            let text: DocumentMut = fs::read_to_string(file).unwrap().parse().unwrap();
            let causes = text.get("cause").and_then(|causes| causes.as_array_of_tables());
            causes.into_iter().flatten().any(|cause| cause.contains_key("recorded"))
        });
        assert_eq!(!causes.is_empty(), has_outcomes, "{paper}: outcomes are recorded in both or in none");
        if !has_outcomes {
            continue;
        }
        counted += 1;
        let differs = |claim: &&Row| ["direction only", "not reproduced"].contains(&claim["verdict"].as_str());
        let differing: Vec<&Row> = claims.iter().filter(differs).collect();
        let [mut shown, mut in_part, mut unexplained] = [0; 3];
        for claim in &differing {
            let tried = causes.iter().filter(|it| (&it["figure"], &it["claim"]) == (&claim["figure"], &claim["id"]));
            let outcomes: Vec<&str> = tried.map(|it| it["outcome"].as_str()).collect();
            let has = |outcome| outcomes.contains(&outcome);
            let count = match () {
                () if has("shown") => &mut shown,
                () if has("in part") => &mut in_part,
                () if has("undecided") || has("refuted") => &mut unexplained,
                () => continue,
            };
            *count += 1;
        }
        let untried = differing.len() - shown - in_part - unexplained;
        let sentence = format!(
            "Of the {} claims in direction only or not reproduced, {shown} have a cause that is shown, {in_part} one that is \
             shown in part, {unexplained} were tried and are unexplained, and {untried} were not tried.",
            differing.len()
        );
        assert!(page(&format!("{paper}.md")).contains(&sentence), "{paper}.md: {sentence}");
        assert!(page(&format!("{paper}-results.md")).contains(&sentence), "{paper}-results.md: {sentence}");
    }
    assert!(counted > 0, "no paper has outcomes");
}

#[test]
fn uno_page_matches_paper_scale_counts() {
    let summary = page("uno.md");
    for (published, before) in [(false, "over three seeds"), (true, "about the published artifact")] {
        let counted = sentence(counts(&figures("uno", published), "paper"));
        assert!(summary.contains(&format!("{before} {counted}")), "uno.md, published: {published}: {counted}");
    }
}

/// A row of a file, by column.
type Row = BTreeMap<String, String>;

/// The rows of a file of a paper's record; none if it does not exist.
fn rows(paper: &str, scale: &str, file: &str) -> Vec<Row> {
    let path = root().join(format!("papers/{paper}/results/{scale}/{file}.csv"));
    if !path.exists() {
        return Vec::new();
    }
    let mut reader = csv::Reader::from_path(&path).unwrap();
    reader.deserialize().map(|row| row.unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

#[test]
fn recorded_verdicts_match_scenario_files() {
    for (paper, scale) in PAPERS.iter().flat_map(|paper| ["quick", "paper"].map(|scale| (paper, scale))) {
        let recorded = rows(paper, scale, "claims");
        let named: Vec<&str> = recorded.iter().map(|row| row["figure"].as_str()).collect();
        let all: BTreeMap<_, _> = figures(paper, false).into_iter().chain(figures(paper, true)).collect();
        for (figure, verdicts) in &all {
            let of_figure = recorded.iter().filter(|row| row["figure"] == *figure);
            let listed: Vec<&str> = of_figure.map(|row| row["verdict"].as_str()).collect();
            let in_file: Vec<&str> = verdicts.iter().map(|it| it.get(scale).map_or("none", String::as_str)).collect();
            assert!(listed.is_empty() || listed == in_file, "{paper}/{figure}, {scale}: {listed:?}, {in_file:?}");
            // The quick scale is recorded of all figures that claim something.
            let is_needed = scale == "quick" && !figure.contains("as-published") && !verdicts.is_empty();
            assert!(!is_needed || !listed.is_empty(), "{paper}/{figure} is not recorded at the scale {scale}");
        }
        assert!(named.iter().all(|name| all.contains_key(*name)), "{paper}, {scale}: {named:?}");
        let of_figures = rows(paper, scale, "figures");
        for row in &recorded {
            assert!(of_figures.iter().any(|it| it["figure"] == row["figure"]), "{paper}/{}, {scale}", row["figure"]);
        }
    }
}

/// The program accepts the record and writes its page of all claims.
#[test]
fn claims_page_is_built_from_the_record() {
    let scratch = Scratch::new("all-claims");
    let papers = root().join("papers");
    let line = format!("report --claims {} --out claims.html", papers.display());
    assert_eq!(scratch.narrows(&line).ok().out, "wrote claims.html\n");
    let (page, claims) = (scratch.read("claims.html"), |scale| PAPERS.map(|paper| rows(paper, scale, "claims").len()));
    let count: usize = claims("quick").iter().chain(&claims("paper")).sum();
    assert_eq!(page.matches("\"paper_value\":").count(), count);
    scratch.narrows(&line).ok();
    scratch.narrows("report --claims papers --out new.html").fails(2, &["cannot read `papers`"]);
    fs::create_dir_all(scratch.path("papers/tiny/results/quick")).unwrap();
    let none = ["no claims are recorded in `papers`", "papers/PAPER/results/quick/claims.csv", "--results papers"];
    scratch.narrows("report --claims papers --out new.html").fails(2, &none);
    scratch.write("papers/tiny/results/quick/claims.csv", "figure,id\n");
    let wrong = ["papers/tiny/results/quick/claims.csv:1: found the columns `figure,id`; expected `figure,id,claim,"];
    scratch.narrows("report --claims papers --out new.html").fails(2, &wrong);
    scratch.narrows("report --claims papers").fails(2, &["--out"]);
    scratch.narrows("report --claims papers out --out new.html").fails(2, &["cannot be used with"]);
    assert!(!scratch.path("new.html").exists());
}
