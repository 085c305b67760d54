//! `narrows report`: the page of existing results.
//!
//! Reading takes no lock: a set is complete, or the command reports that it is unfinished. The directory is locked while
//! the page is written into a complete set. The page of an unfinished set is written next to its runs without a lock,
//! because the set's writer may be running.
//!
//! `--claims` writes the page of all recorded claims.

use std::path::Path;

use report::{RecordedCause, RecordedClaim, RecordedClaims};
use results::claims::Verdict;
use results::store::{self, MANIFEST, NEXT, REPORT, REPORT_SEAL, load_set, may_replace_report};
use study::page;

use crate::args::{ReportArgs, Scale};
use crate::exit::{CommandFailure, print, print_lock_notes, print_stderr};
use crate::named_file::{NamedFile, OutputKind, print_leftovers};
use crate::record::{RecordFolder, RecordKind, RecordRow, field, recorded_papers};

pub(crate) fn report(args: &ReportArgs) -> Result<(), CommandFailure> {
    if let (Some(papers), Some(out)) = (&args.claims, &args.out) {
        return claims(papers, out);
    }
    let Some(directory) = &args.directory else { return Ok(()) };
    let inside = directory.join(REPORT);
    // The report's own place is no other file, however it is called.
    let other = args.out.as_ref().filter(|out| !is_same(out, &inside));
    let other = other.map(|out| NamedFile::new(out, OutputKind::Report, "--out")).transpose()?;
    if other.is_none() {
        print_leftovers(&inside);
        print_leftovers(&directory.join(NEXT).join(REPORT));
    }
    let has_manifest = || directory.join(MANIFEST).exists();
    let lock = if other.is_none() && has_manifest() { Some(store::lock(directory, "narrows report")?) } else { None };
    if let Some(lock) = &lock {
        print_lock_notes(directory, lock);
    }
    let set = load_set(directory)?;
    let warnings = super::compare::set_warnings(directory, &set);
    for warning in &warnings {
        print_stderr(warning);
    }
    let complete = set.unfinished.is_none();
    if complete && other.is_none() && lock.is_none() {
        // The set became complete in between, and this process has not locked it.
        return report(args);
    }
    let html = page::of_results(&set.runs, warnings.into_iter().filter(|_| !complete).collect());
    let out = if let Some(other) = other {
        other.write(html)?
    } else {
        // The report of an unfinished set is in `.next`, so that the complete set's can later take its place.
        let out = if complete { inside } else { directory.join(NEXT).join(REPORT) };
        lock.as_ref().map_or(Ok(()), files::Lock::check)?;
        may_replace_report(&out)?;
        files::replace(&out, &REPORT_SEAL.seal(html))?;
        out
    };
    print(&format!("wrote {}", out.display()))
}

/// Writes the page of all claims that a directory of papers has a record of.
fn claims(papers: &Path, out: &Path) -> Result<(), CommandFailure> {
    let out = NamedFile::new(out, OutputKind::Report, "--out")?;
    let mut claims = Vec::new();
    for paper in recorded_papers(papers)? {
        for scale in [Scale::Quick, Scale::Paper] {
            claims.extend(recorded_claims(papers, &paper, scale)?);
        }
    }
    if claims.is_empty() {
        return Err(CommandFailure::Input(format!(
            "error: no claims are recorded in `{0}`; expected files such as `{0}/PAPER/results/quick/claims.csv`
help: `narrows \
             reproduce --results {0}` writes them",
            papers.display()
        )));
    }
    let program = study::program();
    let data = RecordedClaims { generated_by: format!("narrows {}", program.version), claims };
    let out = out.write(report::render_claims(&data))?;
    print(&format!("wrote {}", out.display()))
}

/// Reads the recorded claims of a paper at a scale, with their figures and causes.
fn recorded_claims(papers: &Path, paper: &str, scale: Scale) -> Result<Vec<RecordedClaim>, CommandFailure> {
    let folder = RecordFolder::new(papers, paper, scale.name());
    let [figures, claims, causes] = RecordKind::SHARED.map(|kind| folder.rows(kind));
    let (figures, claims, causes) = (figures?, claims?, causes?);
    let claim = |row: &RecordRow| {
        let of = |column: &str| field(RecordKind::Claims, row, column).to_owned();
        let (figure, id) = (of("figure"), of("id"));
        let info = figures.iter().find(|row| field(RecordKind::Figures, row, "figure") == figure);
        let info = |column: &str| info.map_or("", |row| field(RecordKind::Figures, row, column)).to_owned();
        let is_of_claim = |row: &&RecordRow| {
            field(RecordKind::Causes, row, "figure") == figure && field(RecordKind::Causes, row, "claim") == id
        };
        // The file was read: its verdicts are known, its seeds numbers.
        let verdict = Verdict::from_name(&of("verdict")).unwrap_or(Verdict::Pending);
        let (verdict, note) = study::page::verdict(verdict, &of("note"));
        RecordedClaim {
            paper: paper.to_owned(),
            in_paper: info("in_paper"),
            text: of("claim"),
            paper_value: of("paper"),
            measured: of("measured"),
            scale: scale.name().to_owned(),
            scaled: info("scaled"),
            seeds: of("seeds").parse().unwrap_or(0),
            engine: info("engine"),
            verdict,
            note,
            causes: causes.iter().filter(is_of_claim).map(cause).collect(),
            figure,
            id,
        }
    };
    Ok(claims.iter().map(claim).collect())
}

fn cause(row: &RecordRow) -> RecordedCause {
    let of = |column: &str| field(RecordKind::Causes, row, column).to_owned();
    RecordedCause {
        id: of("cause"),
        text: of("text"),
        change: of("change"),
        measured: of("with_change"),
        outcome: of("outcome"),
        removed_percent: of("removed_percent").parse().ok(),
    }
}

/// Returns whether two paths name one file, which need not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    let directory = |path: &Path| std::fs::canonicalize(files::parent_of(path)).ok();
    one.file_name() == other.file_name() && directory(one).is_some_and(|one| Some(one) == directory(other))
}
