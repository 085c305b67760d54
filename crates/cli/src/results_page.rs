//! The Markdown page of reproduced figures: one section per figure, kept until that figure is run again.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use files::{AtomicFile, FileIdentity, SizeLimit};
use results::claims::suspects::TrialOutcome;
use results::claims::{Judgement, Verdict};

use crate::exit::CommandFailure;
use study::count as count_of;

const TITLE: &str = "# What was reproduced\n";
const SECTION: &str = "\n## ";
/// The head of a section's claims.
const CLAIMS: &str = "| claim | paper | measured | verdict |\n|---|---|---|---|\n";

/// The heading of the table of trials in a section of the page.
pub(crate) const HEADING: &str = "### Suspected causes\n";
/// The head of that table.
pub(crate) const TRIALS: &str =
    "| claim | suspected cause | change | measured | with the change | outcome |\n|---|---|---|---|---|---|\n";

/// The page of one scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResultsPage {
    scale: &'static str,
    /// Set if the page is written to a file. A pipe or a terminal is not read, and receives the page once.
    pub(crate) is_file: bool,
    /// Figures' names and their sections' text, in order.
    sections: Vec<(String, String)>,
    /// The file that these are of: no other one is replaced.
    of: FileIdentity,
}

/// A page of results.
const PAGE: SizeLimit = SizeLimit { what: "a page of results", mib: 64 };

/// A section's figure: its first line, without which figure of the paper that is.
fn name_of(section: &str) -> &str {
    let line = section.lines().next().unwrap_or_default();
    let end = [", Fig. ", ", Table"].iter().filter_map(|what| line.find(what)).min();
    &line[..end.unwrap_or(line.len())]
}

impl ResultsPage {
    /// Reads the contents of a file, if it exists.
    ///
    /// # Errors
    /// When the file is something else, or of another scale.
    pub(crate) fn read(path: &Path, scale: &'static str) -> Result<Self, CommandFailure> {
        let of = FileIdentity::of(path);
        if path.metadata().is_ok_and(|it| !it.is_file()) {
            return Ok(Self { scale, is_file: false, sections: Vec::new(), of });
        }
        let text = match files::text(path, PAGE) {
            Err(error) if error.is_missing() => String::new(),
            text => text?,
        };
        let refused = |why: &str| {
            let path = path.display();
            CommandFailure::Input(format!(
                "error: `{path}` {why}\nhelp: give --markdown another file, or remove this one"
            ))
        };
        let (head, rest) = text.split_once(SECTION).unwrap_or((&text, ""));
        if !text.is_empty() && !head.starts_with(TITLE) {
            return Err(refused("is not a page that `narrows reproduce` wrote"));
        }
        if !text.is_empty() && !head.contains(&format!("--scale {scale} ")) {
            return Err(refused(&format!("has figures of another scale than `{scale}`")));
        }
        let section = |text: &str| (name_of(text).to_owned(), text.to_owned());
        let sections = rest.split(SECTION).filter(|text| !text.is_empty()).map(section).collect();
        Ok(Self { scale, is_file: true, sections, of })
    }

    /// Inserts a figure's section: `title` is the text after its name, `order` compares names.
    pub(crate) fn put<K: Ord>(&mut self, figure: &str, title: &str, body: &str, order: impl Fn(&str) -> K) {
        self.sections.retain(|(name, _)| name != figure);
        self.sections.push((figure.to_owned(), format!("{figure}{title}\n\n{}\n", body.trim_end())));
        self.sections.sort_by_key(|(name, _)| order(name));
    }

    /// The table of suspected causes in a figure's section, as it is; empty where there is none.
    pub(crate) fn trials(&self, figure: &str) -> String {
        let section = self.sections.iter().find(|(name, _)| name == figure);
        let place = section.and_then(|(_, text)| Some(&text[text.find(HEADING)?..]));
        place.map_or_else(String::new, |trials| format!("\n{trials}"))
    }

    /// Writes it in the place of the file that it was read from or last written to.
    ///
    /// # Errors
    /// When the file was made or changed by others meanwhile. The new contents are then in a file next to it.
    pub(crate) fn write(&mut self, path: &Path) -> Result<(), CommandFailure> {
        let text = self.text();
        let write = || {
            let mut draft = AtomicFile::replacing(path, self.of)?;
            draft.write_all(text.as_bytes())?;
            if !self.is_file {
                return draft.put().map(|()| self.of);
            }
            let now = draft.seen()?;
            draft.put().map(|()| now)
        };
        self.of = write().map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => CommandFailure::Input(format!(
                "error: cannot write `{}`: {error}\nhelp: give the command again: it adds its sections to the page that is there \
                 now, and keeps finished runs",
                path.display()
            )),
            _ => CommandFailure::file("write", path, &error),
        })?;
        Ok(())
    }

    fn text(&self) -> String {
        let verdicts: Vec<Verdict> =
            self.sections.iter().flat_map(|(_, text)| claims_of(text)).map(|(_, verdict)| verdict).collect();
        let explained = self.sections.iter().map(|(_, text)| SuspectCounts::of(&claims_of(text), &trials_of(text)));
        let explained = explained.fold(SuspectCounts::default(), SuspectCounts::plus);
        let has_causes = self.sections.iter().any(|(_, text)| text.contains(HEADING));
        let explained = if has_causes { format!(". {}", explained.sentence()) } else { String::new() };
        let mut page = format!(
            "{TITLE}\nWritten by `narrows reproduce FIGURE --scale {} --markdown FILE`: a figure's section stays until that figure is run \
             again. Verdicts are defined in [claims](../reference/claims.md).\n\n{}{explained}.\n",
            self.scale,
            tally(self.sections.len(), &verdicts)
        );
        for (_, text) in &self.sections {
            let _ = writeln!(page, "{SECTION}{}", text.trim_end());
        }
        page
    }
}

/// Escapes a text for a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The claims of a section, as [`claims_of`] reads them; nothing where there are none.
pub(crate) fn claims(judgements: &[Judgement]) -> String {
    let mut text = if judgements.is_empty() { String::new() } else { CLAIMS.to_owned() };
    for judgement in judgements {
        let note = if judgement.note.is_empty() { String::new() } else { format!(" ({})", cell(&judgement.note)) };
        let (said, paper, measured) = (cell(&judgement.text), cell(&judgement.paper), cell(&judgement.measured));
        let _ = writeln!(text, "| {said} | {paper} | {measured} | {}{note} |", judgement.verdict);
    }
    text
}

/// The claims of a section with their verdicts.
fn claims_of(section: &str) -> Vec<(&str, Verdict)> {
    rows(section, CLAIMS)
        .filter_map(|(claim, last)| {
            Some((claim, Verdict::ALL.into_iter().find(|verdict| last.starts_with(verdict.name()))?))
        })
        .collect()
}

/// The trials of a section: claims, with the outcome of one of their suspected causes.
fn trials_of(section: &str) -> Vec<(&str, TrialOutcome)> {
    rows(section, TRIALS)
        .filter_map(|(claim, last)| {
            Some((claim, TrialOutcome::ALL.into_iter().find(|outcome| last.starts_with(outcome.name()))?))
        })
        .collect()
}

/// The first and the last cell of each row of the table with this head.
fn rows<'a>(section: &'a str, head: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let rows = section.split_once(head).map_or("", |(_, rows)| rows);
    rows.lines().take_while(|row| row.starts_with("| ")).filter_map(|row| {
        let row = row.trim_start_matches("| ").trim_end_matches(" |");
        Some((row.split(" | ").next()?, row.rsplit(" | ").next()?))
    })
}

/// Returns the number of figures, and of claims by verdict, in words.
pub(crate) fn tally(figures: usize, verdicts: &[Verdict]) -> String {
    let count = |verdict: Verdict| verdicts.iter().filter(|&&it| it == verdict).count();
    let parts = Verdict::ALL.map(|verdict| (count(verdict), verdict)).into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, verdict)| format!("{count} {verdict}")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{}, {}{parts}", count_of(figures, "figure"), count_of(verdicts.len(), "claim"))
}

/// Counts of claims by the outcomes of their suspected causes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SuspectCounts {
    /// Claims that are reproduced in direction only or not at all.
    pub(crate) differing: usize,
    /// Those with a cause that is shown.
    pub(crate) shown: usize,
    /// Those with a cause that is shown in part, and none that is shown.
    pub(crate) in_part: usize,
    /// Those with judged causes that are all refuted or undecided.
    pub(crate) unexplained: usize,
}

impl SuspectCounts {
    /// Returns the counts of one section: its claims with their verdicts, and its trials with their outcomes, by claim.
    pub(crate) fn of(claims: &[(&str, Verdict)], trials: &[(&str, TrialOutcome)]) -> Self {
        let mut counts = Self::default();
        for (claim, _) in claims.iter().filter(|(_, it)| matches!(it, Verdict::DirectionOnly | Verdict::NotReproduced))
        {
            counts.differing += 1;
            let all: Vec<TrialOutcome> =
                trials.iter().filter(|(of, _)| of == claim).map(|(_, outcome)| *outcome).collect();
            if all.contains(&TrialOutcome::Shown) {
                counts.shown += 1;
            } else if all.contains(&TrialOutcome::InPart) {
                counts.in_part += 1;
            } else if all.contains(&TrialOutcome::Undecided) || all.contains(&TrialOutcome::Refuted) {
                counts.unexplained += 1;
            }
        }
        counts
    }

    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            differing: self.differing + other.differing,
            shown: self.shown + other.shown,
            in_part: self.in_part + other.in_part,
            unexplained: self.unexplained + other.unexplained,
        }
    }

    /// The counts in a sentence.
    pub(crate) fn sentence(self) -> String {
        let untried = self.differing - self.shown - self.in_part - self.unexplained;
        format!(
            "Of the {} claims in direction only or not reproduced, {} have a cause that is shown, {} one that is shown in part, {} \
             were tried and are unexplained, and {untried} were not tried",
            self.differing, self.shown, self.in_part, self.unexplained
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sections: &[(&str, &str)]) -> ResultsPage {
        let of = FileIdentity::of(Path::new("none"));
        let mut page = ResultsPage { scale: "paper", is_file: true, sections: Vec::new(), of };
        for (name, verdict) in sections {
            let body = format!(
                "A title\n\n{CLAIMS}| it \\| holds | 2 | 1 | {verdict} |\n\n| run | drops |\n|---|---|\n| a | 0 |\n"
            );
            page.put(name, ", Fig. 1", &body, str::to_owned);
        }
        page
    }

    #[test]
    fn a_section_is_a_figures_whatever_is_in_its_name() {
        for name in ["p/a", "p/a,left", "p/a, b"] {
            for rest in ["", ", Fig. 8, 9", ", Table II", "\n\nA title, Fig. 1"] {
                assert_eq!(name_of(&format!("{name}{rest}")), name);
            }
        }
    }

    #[test]
    fn a_section_stays_until_its_figure_is_run_again() {
        let folder = std::env::temp_dir().join(format!("narrows-page-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("page.md");
        let mut first = page(&[("p/b", "not reproduced (a note \\| of two)"), ("p/a", "reproduced")]);
        assert!(first.text().contains("2 figures, 2 claims: 1 reproduced, 1 not reproduced.\n"), "{}", first.text());
        first.write(&path).unwrap();
        let mut again = ResultsPage::read(&path, "paper").unwrap();
        assert_eq!(again.text(), first.text());
        again.put("p/b", "", &format!("New\n\n{CLAIMS}| x | y | z | direction only |\n"), str::to_owned);
        let text = again.text();
        assert!(text.contains("2 figures, 2 claims: 1 reproduced, 1 direction only.\n"), "{text}");
        assert!(text.find("## p/a, Fig. 1").unwrap() < text.find("## p/b\n\nNew").unwrap() && !text.contains("a note"));
        assert!(ResultsPage::read(&path, "quick").is_err());
        // The page replaces only a page that this program wrote, not another program's or a person's.
        again.write(&path).unwrap();
        again.write(&path).unwrap();
        let said = first.write(&path).unwrap_err().to_string();
        assert!(said.contains("it was created or changed meanwhile; what was written is in `"), "{said}");
        assert!(said.contains("help: give the command again"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let left = said.split('`').nth(3).unwrap();
        assert_eq!(std::fs::read_to_string(left).unwrap(), first.text());
        std::fs::write(&path, "# Something else\n").unwrap();
        assert!(ResultsPage::read(&path, "paper").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
