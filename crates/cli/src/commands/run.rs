//! `narrows run`: a scenario file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use results::averages::{AveragesTable, TableSpec};
use results::pooled::pooled;
use results::store::REPORT;
use results::{RunResults, initial_window_lines, load_lines};
use scenario::{Overrides, Scenario};
use study::vary::SweepOptions;
use study::{AttemptRecorder, Backend, Finished, Others, Simulator, Study};

use crate::args::{Columns, Common, FileArgs, RunArgs, VaryArgs};
use crate::exit::{CommandFailure, print, print_stderr};
use crate::progress::Terminal;
use crate::sheet::{Sheet, check_csv, print_csv};
use crate::table;

pub(crate) fn run(args: &RunArgs) -> Result<(), CommandFailure> {
    let scenario = varied(&args.file, &args.vary, &args.common)?;
    let replay = words("run", &args.file, &args.vary);
    let simulator = Simulator { checked: args.common.check_invariants };
    all_of(&scenario, &simulator, &args.file.schemes, &args.common, replay)
}

/// The scenario with all that the command line varies.
pub(crate) fn varied(file: &FileArgs, varied: &VaryArgs, common: &Common) -> Result<Scenario, CommandFailure> {
    check_csv(&common.csv, &TABLES)?;
    let vary = SweepOptions { over: varied.vary.clone(), seeds: varied.seeds };
    let load = |overrides: &Overrides| Ok::<_, CommandFailure>(scenario::load(&file.scenario, overrides)?);
    vary.scenario(&file.scenario.display().to_string(), overrides(common, file.scale.clone()), load)
}

/// The words that run the same points.
pub(crate) fn words(command: &str, file: &FileArgs, varied: &VaryArgs) -> Vec<String> {
    let mut words = vec!["narrows".to_owned(), command.to_owned()];
    words.extend(file.words());
    let mut push_option = |option: &str, value: String| words.extend([option.to_owned(), value]);
    varied.vary.iter().for_each(|(key, values)| push_option("--vary", format!("{key}={values}")));
    varied.seeds.iter().for_each(|seeds| push_option("--seeds", seeds.to_string()));
    words
}

/// Returns the overrides of the common options.
pub(crate) fn overrides(common: &Common, scale: Option<String>) -> Overrides {
    Overrides { set: common.set.clone(), seed: common.seed, scale, ..Overrides::default() }
}

/// Runs all schemes of a scenario, or the chosen ones, and shows the results.
pub(crate) fn all_of(
    scenario: &Scenario,
    backend: &dyn Backend,
    schemes: &[String],
    common: &Common,
    replay: Vec<String>,
) -> Result<(), CommandFailure> {
    let watch = Terminal { quiet: common.is_silent() };
    let notes = notes();
    shown(&Study { schemes, ..of(scenario, backend, &watch, &notes, common, replay) }.run()?, common)
}

/// Shows the results of a study. A run that violates an identity is a failure.
pub(crate) fn shown(finished: &Finished, common: &Common) -> Result<(), CommandFailure> {
    show(finished, common)?;
    crate::exit::check_identities(finished.runs.iter().map(|run| &run.summary))
}

/// Returns a study of all of a scenario's runs, by the common options: those not finished yet are run.
pub(crate) fn of<'a>(
    scenario: &'a Scenario,
    backend: &'a dyn Backend,
    watch: &'a Terminal,
    notes: &'a dyn AttemptRecorder,
    common: &Common,
    replay: Vec<String>,
) -> Study<'a> {
    Study {
        scenario,
        backend,
        watch,
        notes,
        schemes: &[],
        shard: None,
        only: &[],
        from: &[],
        runs_missing: true,
        threads: common.threads,
        out: common.out.clone().unwrap_or_else(|| Path::new("out").join(scenario.config.name.as_str())),
        replay: vec![replay_line(replay, common)],
        claims: &[],
        tables: &[],
        force: common.force,
        others: if common.force { Others::Replace } else { Others::Keep },
    }
}

/// The ledger, where this build has one.
#[cfg(feature = "ledger")]
pub(crate) fn notes() -> study::Ledger {
    study::Ledger::default()
}

/// The ledger, where this build has one.
#[cfg(not(feature = "ledger"))]
pub(crate) fn notes() -> study::NullRecorder {
    study::NullRecorder
}

/// Most rows of the table.
const MAX_ROWS: usize = 60;

/// Prints the summary as JSON, or a table and where the rest is.
fn show(finished: &Finished, common: &Common) -> Result<(), CommandFailure> {
    if common.json {
        return print(&match &finished.runs[..] {
            [run] => run.summary.to_json(),
            runs => study::summaries(runs),
        });
    }
    if common.csv.is_requested() {
        for warning in study::warnings(&finished.runs) {
            print_stderr(&warning);
        }
        return print_csv(&sheets(&finished.runs, &finished.tables), common.csv.table());
    }
    if common.quiet {
        for warning in study::warnings(&finished.runs) {
            print_stderr(&warning);
        }
        return Ok(());
    }
    let text = text(&finished.runs, &finished.tables, common.columns());
    let report: PathBuf = finished.out.join(REPORT);
    let seeds = if has_seeds(&finished.runs) {
        format!("over seeds: narrows show {}\n", finished.out.display())
    } else {
        String::new()
    };
    print(&format!("{text}{seeds}report: {}", report.display()))
}

/// Returns whether runs differ in their seeds.
pub(super) fn has_seeds(runs: &[RunResults]) -> bool {
    runs.iter().any(|run| run.summary.seed != runs[0].summary.seed)
}

/// Names of the tables that a command prints of the runs that it has done. `pooled` needs the flows of all runs, which are on disk
/// by then: `show` has it.
pub(crate) const TABLES: [&str; 4] = ["runs", "iterations", "tables", "means"];

/// All tables of some runs. `tables` are those that the scenario requests.
pub(crate) fn sheets(runs: &[RunResults], tables: &[AveragesTable]) -> Vec<Sheet> {
    let means: Vec<AveragesTable> = TableSpec::defaults(runs).iter().map(|spec| spec.of(runs)).collect();
    let first = std::iter::once(table::runs(runs)).chain(table::iterations(runs));
    let averages = table::averages("tables", tables).into_iter().chain(table::averages("means", &means));
    first.chain(averages).chain(table::pooled(&pooled(runs))).collect()
}

/// The summary of runs and their tables, as a person reads it.
pub(crate) fn text(runs: &[RunResults], tables: &[AveragesTable], columns: Columns) -> String {
    let listed = &runs[..runs.len().min(MAX_ROWS)];
    let first = table::runs(listed);
    let mut text = table::shown(&first, columns);
    if listed.len() < runs.len() {
        let _ = writeln!(text, "{} more in the report", study::count(runs.len() - listed.len(), "run"));
    }
    text.push_str(table::note(listed));
    for line in initial_window_lines(runs).into_iter().chain(load_lines(runs)) {
        let _ = writeln!(text, "{line}");
    }
    text.push_str(&table::emulators(runs));
    text.push_str(&table::virtual_hosts(runs));
    for warning in study::warnings(runs) {
        text.push_str(&warning);
        text.push('\n');
    }
    let (iterations, averages, parts) = (table::iterations(listed), table::averages("tables", tables), pooled(runs));
    let pooled = table::pooled(&parts);
    let rest: Vec<Sheet> = iterations.into_iter().chain(averages).chain(pooled).collect();
    text.extend(rest.iter().map(|sheet| table::shown(sheet, columns)));
    if !parts.is_empty() {
        text.push_str(table::POOLED);
    }
    text.push_str(&table::signs(std::iter::once(&first).chain(&rest)));
    text
}

/// The command line that repeats these results, quoted for a shell where it must be.
pub(crate) fn replay_line(mut words: Vec<String>, common: &Common) -> String {
    // A program and its arguments stay last.
    let program = words.iter().position(|word| word == "--").map_or_else(Vec::new, |at| words.split_off(at));
    for (key, value) in &common.set {
        words.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    if let Some(seed) = common.seed {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    if let Some(out) = &common.out {
        words.extend(["--out".to_owned(), out.display().to_string()]);
    }
    words.extend(program);
    let quote = |word: &String| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c));
        if plain && !word.is_empty() { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
