//! `narrows reproduce`: papers' experiments, and their claims judged.

mod causes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use comfy_table::{Cell, Color};
use results::averages::{AveragesTable, TableSpec};
use results::claims::suspects::SuspectTrial;
use results::claims::{Claim, Judgement, SEED, Verdict, name_in_claims, regressed};
use results::panels::Drawing;
use results::store::REPORT;
use results::values::TableValues;
use results::{InitialWindows, Lookup, RunResults, Summary, find_run, initial_windows};
use scenario::{Overrides, Scenario, escape_controls};
use serde_json::{Value, json};
use study::{Finished, Simulator, Study, program, vary};
use toml_edit::{DocumentMut, InlineTable, Item};

use crate::args::{Columns, ReproduceArgs, Scale};
use crate::exit::{CommandFailure, print, print_coloured, print_lock_notes, print_stderr};
use crate::named_file::{NamedFile, OutputKind, outside_of, outside_of_results};
use crate::progress::Terminal;
use crate::record::{FigureRecord, RecordFolder, RecordRow, natural};
use crate::sheet::{self, Datum, Sheet, SheetRow, check_csv, print_csv};
use causes::Suspect;

/// One of a paper's files.
struct Figure {
    /// `uno/fig8-mixed`.
    name: String,
    path: PathBuf,
    /// The file as it was read.
    text: String,
    scenario: Scenario,
    claims: Vec<Claim>,
    /// Suspected causes, if they are asked for.
    suspects: Vec<Suspect>,
}

impl Figure {
    /// The names of its paper and of its file.
    fn names(&self) -> (&str, &str) {
        self.name.split_once('/').unwrap_or(("", &self.name))
    }
}

/// A figure that was run.
struct Reproduced {
    figure: Figure,
    judgements: Vec<Judgement>,
    /// Claims judged again with the changes of suspected causes.
    trials: Vec<SuspectTrial>,
    tables: Vec<AveragesTable>,
    /// The values of the tables by seed.
    values: TableValues,
    /// Initial windows of the schemes.
    windows: Vec<InitialWindows>,
    runs: Vec<Summary>,
    out: PathBuf,
}

impl Scale {
    /// Returns the default number of seeds of a verdict.
    const fn seeds(self) -> u64 {
        match self {
            Self::Paper => 3,
            Self::Quick => 5,
        }
    }

    /// Returns the minimum number of seeds of a verdict that is kept. At the paper's size one seed may take hours, so
    /// one is enough; the record has the number of seeds.
    const fn min_seeds(self) -> u64 {
        match self {
            Self::Paper => 1,
            Self::Quick => self.seeds(),
        }
    }
}

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), CommandFailure> {
    check_csv(&args.common.csv, &["claims", "causes", "tables"])?;
    let changed = !args.common.set.is_empty() || args.common.seed.is_some();
    if let Some(option) = recording_option(args).filter(|_| changed) {
        return Err(CommandFailure::Input(format!(
            "error: {option} keeps the verdicts of the files as they are\nhelp: leave out --set and --seed"
        )));
    }
    let seeds = args.seeds.unwrap_or(args.scale.seeds());
    if let Some(option) = recording_option(args).filter(|_| seeds < args.scale.min_seeds()) {
        let (scale, needed) = (args.scale.name(), args.scale.min_seeds());
        return Err(CommandFailure::Input(format!(
            "error: {option} keeps verdicts, which are of {needed} seeds or more at the scale `{scale}`; --seeds {seeds} is too few"
        )));
    }
    let paths = chosen(&args.papers, &args.what)?;
    // All files are read before the first one runs.
    let figures = paths.into_iter().map(|(name, path)| read(name, path, args, seeds)).collect::<Result<Vec<_>, _>>()?;
    // Found out now, not after all runs.
    let recorded = figures.iter().filter(|_| args.update_verdicts).map(|figure| &figure.path);
    recorded.into_iter().try_for_each(|path| files::writable(path))?;
    args.results.iter().try_for_each(|papers| outside_of_results(papers, "--results"))?;
    for (papers, figure) in args.results.iter().flat_map(|papers| figures.iter().map(move |figure| (papers, figure))) {
        outside_of(papers, &results_dir(figure, None, args), "--results")?;
        let (paper, stem) = figure.names();
        RecordFolder::new(papers, paper, args.scale.name()).check(stem)?;
    }
    for figure in figures.iter().filter(|_| args.values) {
        values_target(&figure.path, args.scale)?;
    }
    let root = root(args);
    std::fs::create_dir_all(&root).map_err(|error| CommandFailure::file("create", &root, &error))?;
    let lock = files::Lock::take(&root, &format!("narrows reproduce {}", args.what.join(" ")))?;
    print_lock_notes(&root, &lock);
    // That finished runs would be lost is found out before the first figure, too.
    for figure in &figures {
        for suspect in std::iter::once(None).chain(figure.suspects.iter().map(Some)) {
            if results_dir(figure, suspect, args).is_dir() {
                check_overwrite(figure, suspect, args)?;
            }
        }
    }
    let mut done = Vec::new();
    let count = figures.len();
    for (number, figure) in figures.into_iter().enumerate() {
        if !args.common.is_silent() {
            print_stderr(&format!("[{}/{count}] {}: {}", number + 1, figure.name, figure.scenario.config.title));
        }
        let reproduced = run(figure, args)?;
        if !args.common.is_silent() {
            print_coloured(&describe(&reproduced, args.scale, args.common.columns()))?;
        }
        if args.update_verdicts {
            record(&reproduced, args.scale)?;
        }
        if args.values {
            write_values(&reproduced, args.scale)?;
        }
        if let Some(papers) = &args.results {
            let (paper, stem) = reproduced.figure.names();
            RecordFolder::new(papers, paper, args.scale.name()).put(stem, recorded_rows(&reproduced, args))?;
        }
        done.push(reproduced);
    }
    if args.common.json {
        print(&format!("{:#}", as_json(&done, args.scale)))?;
    } else if args.common.csv.is_requested() {
        let tables = done.iter().flat_map(|it| crate::table::averages("tables", &it.tables));
        let trials = causes::sheet(done.iter().map(|it| (&it.figure, &it.trials[..])));
        let sheets: Vec<Sheet> = [verdicts(&done), trials].into_iter().chain(tables).collect();
        print_csv(&sheets, args.common.csv.table())?;
    } else if !args.common.quiet {
        print(&tally(&done))?;
    }
    crate::exit::check_identities(done.iter().flat_map(|it| &it.runs))?;
    let worse = regressions(&done, args.scale);
    if worse.is_empty() || args.update_verdicts { Ok(()) } else { Err(CommandFailure::Regression(worse.join("\n"))) }
}

/// Returns the files that the arguments select, in order of their names.
fn chosen(papers: &Path, selection: &[String]) -> Result<Vec<(String, PathBuf)>, CommandFailure> {
    let mut all = Vec::new();
    let entries = |path: &Path| {
        let list = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        list.map_err(|error| {
            let help =
                "help: `--papers DIR` is the directory of the papers' scenario files, such as a checkout's `papers`";
            CommandFailure::Input(format!("error: cannot list the papers in `{}`: {error}\n{help}", path.display()))
        })
    };
    for paper in entries(papers)?.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        for file in entries(&paper)?.into_iter().map(|entry| entry.path()) {
            if file.extension().is_some_and(|extension| extension == "toml") {
                let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                all.push((format!("{}/{}", stem(&paper), stem(&file)), file));
            }
        }
    }
    all.sort_by_key(|(name, _)| natural(name));
    if selection.is_empty() {
        return Err(CommandFailure::Input(listed(papers, &all)));
    }
    let mut picked: Vec<(String, PathBuf)> = Vec::new();
    for word in selection {
        // A figure's file selects its figure.
        let file = std::fs::canonicalize(word).ok().filter(|file| file.is_file());
        let of_file = |path: &PathBuf| file.is_some() && std::fs::canonicalize(path).ok() == file;
        let word = all.iter().find(|(_, path)| of_file(path)).map_or(word, |(name, _)| name);
        let exact = all.iter().any(|(name, _)| name == word);
        let matches = |name: &str| {
            let paper = word == "all" || name.split('/').next() == Some(word);
            let figure = if exact { name == word } else { matches_prefix(name, word) };
            // The published variants are run when they are named.
            (paper && !name.ends_with(PUBLISHED)) || figure
        };
        let before = picked.len();
        for (name, path) in all.iter().filter(|(name, _)| matches(name)) {
            if !picked.iter().any(|(known, _)| known == name) {
                picked.push((name.clone(), path.clone()));
            }
        }
        if picked.len() == before && !all.iter().any(|(name, _)| matches(name)) {
            if file.is_some() {
                return Err(CommandFailure::Input(format!(
                    "error: `{word}` is not a figure's file in `{}`\nhelp: `--papers DIR` is the directory of the papers, with a folder \
                     for each; `narrows run {word}` runs a scenario by itself",
                    papers.display()
                )));
            }
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            let near =
                scenario::nearest(word, &names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(CommandFailure::Input(format!(
                "error: nothing in `{}` is called `{word}`{near}\nhelp: there are: {}",
                papers.display(),
                names.join(", ")
            )));
        }
    }
    Ok(picked)
}

/// The papers with their numbers of figures: the output if no paper is named.
fn listed(papers: &Path, all: &[(String, PathBuf)]) -> String {
    let mut counts: Vec<(&str, usize, usize)> = Vec::new();
    for (name, _) in all {
        let paper = name.split('/').next().unwrap_or(name);
        if counts.last().is_none_or(|(last, ..)| *last != paper) {
            counts.push((paper, 0, 0));
        }
        if let Some((_, figures, published)) = counts.last_mut() {
            *(if name.ends_with(PUBLISHED) { published } else { figures }) += 1;
        }
    }
    let mut text = format!("error: which figures? `{}` has these papers:\n", papers.display());
    for (paper, figures, published) in &counts {
        let variants = match published {
            0 => String::new(),
            more => format!(", and {more} as published, which run where they are named"),
        };
        let _ = writeln!(text, "  {paper}: {}{variants}", study::count(*figures, "figure"));
    }
    let example = counts.first().map_or("PAPER", |(paper, ..)| paper);
    let sum = study::count(counts.iter().map(|(_, figures, _)| figures).sum(), "figure");
    let _ = write!(
        text,
        "help: name papers or figures, as in `narrows reproduce {example}`, or `all`: {sum}, which may take hours"
    );
    text
}

/// Returns whether a figure's name begins with a word, where numbers match as a whole: `uno/fig1` is no beginning of
/// `uno/fig10`.
fn matches_prefix(name: &str, word: &str) -> bool {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let rest = name.strip_prefix(word).filter(|_| word.contains('/'));
    rest.is_some_and(|rest| !(digit(word.chars().last()) && digit(rest.chars().next())))
}

const PUBLISHED: &str = "-as-published";

/// Reads a file and plans its runs over `seeds` seeds: the file's seed and those after it. Seeds in the file's grid take
/// precedence.
fn read(name: String, path: PathBuf, args: &ReproduceArgs, seeds: u64) -> Result<Figure, CommandFailure> {
    let scale = (args.scale == Scale::Quick).then(|| "quick".to_owned());
    let mut overrides = super::run::overrides(&args.common, scale);
    let mut scenario = scenario::load(&path, &overrides)
        .map_err(|error| missing_quick_scale(&path, &overrides).unwrap_or_else(|| CommandFailure::from(error)))?;
    let text = files::text(&path, scenario::SCENARIO)?;
    let has_seeds = vary::has_seeds(&scenario);
    if has_seeds && args.seeds.is_some() {
        print_stderr(&format!(
            "`{}` has seeds of its own ([grid] or a variant): --seeds is not for it",
            path.display()
        ));
    }
    if seeds > 1 && !has_seeds {
        vary::seeds(&mut overrides, &scenario, seeds)?;
        scenario = scenario::load(&path, &overrides)?;
    }
    let mut claims = Vec::new();
    for node in &scenario.config.claim {
        let claim = Claim::from_json(&node.to_json())
            .map_err(|error| study::error_at(&scenario, node, error.expression(), error.brief()))?;
        let seeds = seeds_of(&scenario);
        let known: Vec<&str> = seeds.keys().map(String::as_str).collect();
        for run in claim.runs() {
            super::show::run_named(
                &known,
                run,
                &format!("{}: claim `{}` speaks of a run `{run}`", path.display(), claim.id),
            )?;
        }
        claims.push(claim);
    }
    check_drawing(&path, &scenario)?;
    let suspects = if args.causes { causes::read(&path, &scenario, &claims, &overrides)? } else { Vec::new() };
    let option = recording_option(args);
    if let Some(option) = option {
        enough_seeds(&path, &scenario, &claims, option, args.scale)?;
    }
    Ok(Figure { name, path, text, scenario, claims, suspects })
}

/// Refuses a drawing that is wrong, before hours of runs.
fn check_drawing(path: &Path, scenario: &Scenario) -> Result<(), CommandFailure> {
    let Some(node) = scenario.config.paper.as_ref().and_then(|paper| paper.get("plot")) else { return Ok(()) };
    let drawing = Drawing::from_json(&node.to_json())
        .map_err(|error| study::error_at(scenario, node, error.expression(), error.brief()))?;
    let known: Vec<&str> = scenario.config.schemes.value.iter().map(|(name, _)| name).collect();
    match drawing.schemes().into_iter().find(|scheme| !known.contains(scheme)) {
        None => Ok(()),
        Some(scheme) => {
            let message = format!("{}: [[paper.plot]] speaks of a scheme `{scheme}`", path.display());
            Err(CommandFailure::unknown(&message, scheme, &known))
        }
    }
}

/// Returns an error if a file has no quick scale, and this is the only error: the scale may be the default.
fn missing_quick_scale(path: &Path, overrides: &Overrides) -> Option<CommandFailure> {
    let quick = overrides.scale.as_deref()?;
    let unscaled = scenario::load(path, &Overrides { scale: None, ..overrides.clone() }).ok()?;
    unscaled.config.scale.get(quick).is_none().then(|| {
        CommandFailure::Input(format!(
            "error: `{}` has no quick scale ([scale.{quick}]), which `reproduce` runs by default\nhelp: `--scale paper` runs the \
             file as it stands",
            path.display()
        ))
    })
}

/// Refuses to keep the verdicts of a file if it has too few seeds, or if its seeds differ between the runs of its claims.
fn enough_seeds(
    path: &Path,
    scenario: &Scenario,
    claims: &[Claim],
    option: &str,
    scale: Scale,
) -> Result<(), CommandFailure> {
    let seeds = seeds_of(scenario);
    let all: BTreeSet<u64> = seeds.values().flatten().copied().collect();
    let known: Vec<&str> = seeds.keys().map(String::as_str).collect();
    for claim in claims {
        for run in claim.runs() {
            let Lookup::One(found) = find_run(known.iter().copied(), run) else { continue };
            let Some(own) = seeds.get(found) else { continue };
            let missing: Vec<String> = all.difference(own).map(u64::to_string).collect();
            let problem = if own.len() < scale.min_seeds() as usize {
                let own = study::count(own.len(), "seed");
                format!(
                    "has {own} of its own, and {} or more are needed at the scale `{}`",
                    scale.min_seeds(),
                    scale.name()
                )
            } else if missing.is_empty() {
                continue;
            } else {
                format!("lacks the seeds {} that other runs have", missing.join(", "))
            };
            return Err(CommandFailure::Input(format!(
                "error: {option} keeps verdicts, and in `{}` the run `{run}` of claim `{}` {problem}\nhelp: change `seed` of \
                 [grid], or leave it out: then every run has the seeds that are needed",
                path.display(),
                claim.id
            )));
        }
    }
    Ok(())
}

/// The seeds of each run, by the name that claims use.
fn seeds_of(scenario: &Scenario) -> BTreeMap<String, BTreeSet<u64>> {
    let mut seeds: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for run in scenario.runs() {
        let name = own_seed(&run).map_or(run.id.clone(), |seed| name_in_claims(&run.id, seed));
        seeds.entry(name).or_default().insert(run.config.seed);
    }
    seeds
}

/// The seed that a run has from its point in the grid.
fn own_seed(run: &scenario::Run) -> Option<u64> {
    run.point.iter().find(|(key, _)| key == SEED)?.1.parse().ok()
}

/// The option that keeps this command's verdicts, if one was given.
fn recording_option(args: &ReproduceArgs) -> Option<&'static str> {
    [(args.update_verdicts, "--update-verdicts"), (args.results.is_some(), "--results"), (args.values, "--values")]
        .into_iter()
        .find(|&(asked, _)| asked)
        .map(|found| found.1)
}

/// Returns the directory of the figures' results.
fn root(args: &ReproduceArgs) -> PathBuf {
    args.common.out.clone().unwrap_or_else(|| Path::new("out").join("reproduce").join(args.scale.name()))
}

/// The directory of a figure's results, or of those with the change of a suspected cause.
fn results_dir(figure: &Figure, suspect: Option<&Suspect>, args: &ReproduceArgs) -> PathBuf {
    match suspect {
        None => root(args).join(&figure.name),
        Some(suspect) => root(args).join("causes").join(&figure.name).join(&suspect.cause.id),
    }
}

/// Runs a figure's study, or the study with the change of a suspected cause.
fn with_study<T>(
    figure: &Figure,
    suspect: Option<&Suspect>,
    args: &ReproduceArgs,
    action: impl FnOnce(&Study<'_>) -> Result<T, study::Error>,
) -> Result<T, study::Error> {
    let words = ["narrows", "reproduce", figure.name.as_str(), "--scale", args.scale.name()];
    let mut words = words.map(str::to_owned).to_vec();
    if let Some(seeds) = args.seeds {
        words.extend(["--seeds".to_owned(), seeds.to_string()]);
    }
    words.extend(suspect.map(|_| "--causes".to_owned()));
    let watch = Terminal { quiet: args.common.is_silent() };
    let (simulator, notes) = (Simulator { checked: args.common.check_invariants }, super::run::notes());
    let scenario = suspect.map_or(&figure.scenario, Suspect::scenario);
    action(&Study {
        out: results_dir(figure, suspect, args),
        claims: suspect.map_or(&figure.claims, Suspect::claims),
        schemes: suspect.map_or(&[], Suspect::schemes),
        ..super::run::of(scenario, &simulator, &watch, &notes, &args.common, words)
    })
}

/// Refuses a figure if that would lose its finished runs.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of one lifetime, the closure of any")]
fn check_overwrite(figure: &Figure, suspect: Option<&Suspect>, args: &ReproduceArgs) -> Result<(), study::Error> {
    with_study(figure, suspect, args, |study| study.check())
}

/// Does the runs of a figure, or those with the change of a suspected cause.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of one lifetime, the closure of any")]
fn run_study(figure: &Figure, suspect: Option<&Suspect>, args: &ReproduceArgs) -> Result<Finished, study::Error> {
    with_study(figure, suspect, args, |study| study.run())
}

fn run(figure: Figure, args: &ReproduceArgs) -> Result<Reproduced, CommandFailure> {
    let finished = run_study(&figure, None, args)?;
    let trials = causes::try_suspects(&figure, &finished.runs, args)?;
    let mut specs = study::tables(&figure.scenario)?;
    if specs.is_empty() && !figure.claims.is_empty() {
        specs.push(TableSpec::of_completion_times());
    }
    let values = TableValues::of(args.scale.name(), &specs, &finished.runs);
    let windows = initial_windows(&finished.runs);
    let runs = finished.runs.into_iter().map(|run: RunResults| run.summary).collect();
    let Finished { judgements, tables, out, .. } = finished;
    Ok(Reproduced { figure, judgements, trials, tables, values, windows, runs, out })
}

/// One row per claim.
fn verdicts(done: &[Reproduced]) -> Sheet {
    let rows = done.iter().flat_map(|it| {
        it.judgements.iter().map(|judged| SheetRow {
            name: it.figure.name.clone(),
            keys: vec![("claim".to_owned(), Datum::Text(judged.id.clone()))],
            cells: [&judged.text, &judged.paper, &judged.measured, judged.verdict.name(), &judged.note]
                .map(sheet::SheetCell::text)
                .into_iter()
                .chain([sheet::SheetCell::count(judged.seeds as u64)])
                .collect(),
        })
    });
    let columns = ["text", "paper", "measured", "verdict", "note", "seeds"].map(str::to_owned).into();
    Sheet { name: "claims", title: String::new(), first: "figure", columns, rows: rows.collect() }
}

/// Describes a figure, in colour where that is wanted. Control characters are escaped.
fn describe(reproduced: &Reproduced, scale: Scale, columns: Columns) -> String {
    let mut table = crate::table::prose();
    table.set_header(["claim", "paper", "measured", "verdict"]);
    let colour = crate::exit::colour();
    for (claim, judged) in reproduced.figure.claims.iter().zip(&reproduced.judgements) {
        let mut verdict = Cell::new(with_recorded(claim, judged, scale));
        if colour {
            verdict = verdict.fg(match judged.verdict {
                Verdict::Reproduced => Color::Green,
                Verdict::DirectionOnly => Color::Yellow,
                Verdict::NotReproduced | Verdict::CannotJudge => Color::Red,
                Verdict::Undecided | Verdict::Pending => Color::Grey,
            });
        }
        let text = format!("{}: {}", judged.id, judged.text);
        let [text, paper, measured] = [&text, &judged.paper, &judged.measured].map(|it| Cell::new(escape_controls(it)));
        table.add_row([text, paper, measured, verdict]);
    }
    let report = reproduced.out.join(REPORT);
    let mut reasons = String::new();
    for judged in reproduced.judgements.iter().filter(|judged| judged.verdict == Verdict::CannotJudge) {
        let _ = writeln!(reasons, "cannot judge {}: {}", judged.id, judged.note);
    }
    let sheets = crate::table::averages("tables", &reproduced.tables);
    let averages: String = sheets.iter().map(|sheet| crate::table::shown(sheet, columns)).collect();
    let mut averages = averages + &crate::table::signs(&sheets);
    for windows in &reproduced.windows {
        let _ = writeln!(averages, "{windows}");
    }
    let claims = if reproduced.judgements.is_empty() { "no claims".to_owned() } else { table.to_string() };
    let trials = causes::described(&reproduced.figure, &reproduced.trials, scale);
    let rest = format!("{reasons}{trials}{averages}report: {}\n", report.display());
    format!("{claims}\n{}", escape_controls(&rest))
}

fn with_recorded(claim: &Claim, judged: &Judgement, scale: Scale) -> String {
    match claim.recorded.get(scale.name()) {
        Some(&recorded) if regressed(recorded, judged.verdict) => format!("{} (was {recorded})", judged.verdict),
        _ => judged.verdict.to_string(),
    }
}

fn regressions(done: &[Reproduced], scale: Scale) -> Vec<String> {
    let mut worse = Vec::new();
    for reproduced in done {
        for (claim, judged) in reproduced.figure.claims.iter().zip(&reproduced.judgements) {
            if let Some(&recorded) = claim.recorded.get(scale.name())
                && regressed(recorded, judged.verdict)
            {
                worse.push(format!(
                    "{} {}: {recorded} before, {} now",
                    reproduced.figure.name, claim.id, judged.verdict
                ));
            }
        }
    }
    worse
}

fn tally(done: &[Reproduced]) -> String {
    let verdicts: Vec<Verdict> = done.iter().flat_map(|it| &it.judgements).map(|it| it.verdict).collect();
    let number = |verdict: Verdict| verdicts.iter().filter(|&&it| it == verdict).count();
    let parts = Verdict::ALL.map(|verdict| (number(verdict), verdict)).into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts.map(|(number, verdict)| format!("{number} {verdict}")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{}, {}{parts}", study::count(done.len(), "figure"), study::count(verdicts.len(), "claim"))
}

fn as_json(done: &[Reproduced], scale: Scale) -> Value {
    let figure = |reproduced: &Reproduced| {
        let (paper, figure) = reproduced.figure.names();
        json!({
            "paper": paper, "figure": figure, "claims": reproduced.judgements, "causes": reproduced.trials, "runs": reproduced.runs
        })
    };
    json!({ "schema": 1, "scale": scale.name(), "figures": done.iter().map(figure).collect::<Vec<_>>() })
}

/// Writes verdicts into the file of the claims, and changes nothing else there.
fn record(reproduced: &Reproduced, scale: Scale) -> Result<(), CommandFailure> {
    let path = &reproduced.figure.path;
    let text = files::text(path, scenario::SCENARIO)?;
    if text != reproduced.figure.text {
        return Err(CommandFailure::Input(format!(
            "error: {} was changed during its runs: no verdict is recorded, since its claims were not judged\n  = help: \
             give the command again; finished runs are kept",
            path.display()
        )));
    }
    let mut document: DocumentMut =
        text.parse().map_err(|error| CommandFailure::Input(format!("error: {}: {error}", path.display())))?;
    if reproduced.judgements.is_empty() {
        return Ok(());
    }
    let Some(claims) = document.get_mut("claim").and_then(Item::as_array_of_tables_mut) else {
        return Err(CommandFailure::Input(format!(
            "error: {}: --update-verdicts writes into [[claim]] tables, and the claims here are an array of inline tables",
            path.display()
        )));
    };
    for (table, judged) in claims.iter_mut().zip(&reproduced.judgements) {
        let recorded = table.entry("recorded").or_insert_with(|| Item::Value(InlineTable::new().into()));
        let Some(recorded) = recorded.as_table_like_mut() else { continue };
        if let Some(value) = recorded.get_mut(scale.name()).and_then(Item::as_value_mut) {
            // Surrounding text, such as a comment, stays.
            let decor = value.decor().clone();
            *value = judged.verdict.name().into();
            *value.decor_mut() = decor;
            continue;
        }
        recorded.insert(scale.name(), toml_edit::value(judged.verdict.name()));
        if let Some(inline) = table.get_mut("recorded").and_then(Item::as_inline_table_mut) {
            inline.fmt();
        }
    }
    causes::record(&mut document, &reproduced.trials, scale)
        .map_err(|reason| CommandFailure::Input(format!("error: {}: {reason}", path.display())))?;
    let mut recorded = document.to_string();
    if text.contains("\r\n") {
        recorded = recorded.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    Ok(files::replace(path, &recorded)?)
}

/// The file of a figure's values: `values/FIGURE-SCALE.toml` next to its own.
fn values_file(figure: &Path, scale: Scale) -> PathBuf {
    let stem = figure.file_stem().unwrap_or_default().to_string_lossy();
    figure.with_file_name("values").join(format!("{stem}-{}.toml", scale.name()))
}

/// Returns that file, if it may be written. Its folder is made.
fn values_target(figure: &Path, scale: Scale) -> Result<NamedFile, CommandFailure> {
    let path = values_file(figure, scale);
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(|error| CommandFailure::file("create", folder, &error))?;
    NamedFile::new(&path, OutputKind::Values, "--values")
}

/// Writes the values of a figure's tables next to the figure, so that a new scheme is scored without running the
/// others.
fn write_values(reproduced: &Reproduced, scale: Scale) -> Result<(), CommandFailure> {
    if !reproduced.values.table.is_empty() {
        values_target(&reproduced.figure.path, scale)?.write(reproduced.values.text())?;
    }
    Ok(())
}

/// The number of seeds of a figure's runs, or their range: `5`, `2 to 5`.
fn seed_counts(scenario: &Scenario) -> String {
    let counts: BTreeSet<usize> = seeds_of(scenario).values().map(BTreeSet::len).collect();
    match (counts.first(), counts.last()) {
        (Some(min), Some(max)) if min < max => format!("{min} to {max}"),
        (_, max) => max.copied().unwrap_or_default().to_string(),
    }
}

/// Rows of a figure in the record.
fn recorded_rows(reproduced: &Reproduced, args: &ReproduceArgs) -> FigureRecord {
    let Reproduced { figure, judgements, trials, .. } = reproduced;
    let (scenario, program, stem) = (&figure.scenario, program(), figure.names().1);
    let seeds = seed_counts(scenario);
    let scaled = scenario.scale.as_ref().map_or_else(String::new, |scale| scale.note.clone());
    let in_paper = study::figure(scenario).unwrap_or_default();
    let title = scenario.config.title.as_str();
    let of_figure = [stem, &in_paper, title, &scaled, &seeds, &program.version, &program.engine].map(str::to_owned);
    let claim = |it: &Judgement| {
        let (verdict, seeds) = (it.verdict.name(), it.seeds.to_string());
        [stem, &it.id, &it.text, &it.paper, &it.measured, verdict, &it.note, &seeds].map(str::to_owned).to_vec()
    };
    FigureRecord {
        figure: of_figure.to_vec(),
        claims: judgements.iter().map(claim).collect(),
        causes: args.causes.then(|| causes::recorded_rows(figure, trials, &seeds)),
        tables: recorded_tables(reproduced),
    }
}

/// Rows of a figure's tables: one per cell with a value, then the initial windows.
fn recorded_tables(reproduced: &Reproduced) -> Vec<RecordRow> {
    let mut rows = Vec::new();
    for table in &reproduced.tables {
        for cell in table.cells() {
            let (value, note) = (&cell.value, cell.notes.join("; "));
            let half = value.half.as_deref().unwrap_or_default();
            let texts = [&table.title, cell.point, cell.scheme, cell.metric, &value.amount, half, value.unit, &note];
            rows.push(texts.map(str::to_owned).to_vec());
        }
    }
    for (windows, scheme) in reproduced.windows.iter().flat_map(|it| it.schemes.iter().map(move |scheme| (it, scheme)))
    {
        rows.push([INITIAL_WINDOW, "", scheme, "", "", "", "", &windows.windows].map(str::to_owned).to_vec());
    }
    rows
}

/// The table of initial windows in a figure's record: their words are notes.
const INITIAL_WINDOW: &str = "initial window";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_selected_by_name_prefix() {
        assert!(
            matches_prefix("uno/fig8-mixed", "uno/fig8")
                && matches_prefix("uno/fig1b", "uno/fig1")
                && matches_prefix("uno/fig8", "uno/")
        );
        assert!(!matches_prefix("uno/fig10", "uno/fig1") && !matches_prefix("uno/fig8", "un"));
    }
}
