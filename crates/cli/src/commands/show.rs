//! `narrows show`: the contents of a directory of results, in the terminal. `narrows export perfetto` and `qlog`: a run
//! of it as a timeline, a flow as a log.

use std::path::Path;

use results::averages::TableSpec;
use results::store::load_set;
use results::{Lookup, RunResults, find_run};
use study::summaries;

use crate::args::{Columns, ExportPerfettoArgs, ExportQlogArgs, ShowResultsArgs};
use crate::exit::{CommandFailure, print};
use crate::flow_log;
use crate::named_file::{NamedFile, OutputKind};
use crate::sheet::{check_csv, print_csv};

pub(crate) fn show(args: &ShowResultsArgs) -> Result<(), CommandFailure> {
    // `[[table]]` of the scenario is no part of results.
    check_csv(&args.csv, &["runs", "iterations", "means", "pooled"])?;
    not_a_file(&args.directory)?;
    let runs = super::compare::read_set(&args.directory)?.runs;
    if args.json {
        return print(&match &runs[..] {
            [run] => run.summary.to_json(),
            runs => summaries(runs),
        });
    }
    if args.csv.is_requested() {
        return print_csv(&super::run::sheets(&runs, &[]), args.csv.table());
    }
    let specs = TableSpec::defaults(&runs);
    let tables: Vec<_> = specs.iter().map(|spec| spec.of(&runs)).collect();
    let columns = if args.wide { Columns::All } else { Columns::Fitted };
    print(super::run::text(&runs, &tables, columns).trim_end())
}

/// Refuses a file where a directory of results is meant.
pub(super) fn not_a_file(path: &Path) -> Result<(), CommandFailure> {
    if !path.is_file() {
        return Ok(());
    }
    Err(CommandFailure::Input(format!(
        "error: `{}` is a file, not a directory of results\nhelp: `narrows run` writes one for a scenario, and prints its path at the end",
        path.display()
    )))
}

pub(crate) fn perfetto(args: &ExportPerfettoArgs) -> Result<(), CommandFailure> {
    not_a_file(&args.directory)?;
    let file = NamedFile::new(&args.out, OutputKind::Timeline, "--out")?;
    let run = chosen(&args.directory, args.run.as_deref())?;
    let out = file.put(&results::timeline::perfetto(&run))?;
    print(&format!("wrote {}: open it in https://ui.perfetto.dev", out.display()))
}

pub(crate) fn qlog(args: &ExportQlogArgs) -> Result<(), CommandFailure> {
    not_a_file(&args.directory)?;
    let file = NamedFile::new(&args.out, OutputKind::Log, "--out")?;
    let run = chosen(&args.directory, args.run.as_deref())?;
    let sampled = flow_log::sampled(&run);
    let names: Vec<String> = sampled.iter().map(u32::to_string).collect();
    let there_are = || format!("there are {}", study::first_of(&names, ", "));
    let flow = match (args.flow, &sampled[..]) {
        (_, []) => {
            return Err(CommandFailure::Input(format!(
                "error: no flow of `{}` was sampled\nhelp: `monitor = {{ interval = \"20us\", flows = 4 }}` in the scenario samples \
                 the first four",
                run.summary.run
            )));
        }
        (None, &[alone]) => alone,
        (None, _) => {
            let message =
                format!("error: {} of `{}` were sampled", study::count(sampled.len(), "flow"), run.summary.run);
            return Err(CommandFailure::Input(format!("{message}\nhelp: choose one with --flow: {}", there_are())));
        }
        (Some(flow), _) => flow,
    };
    let Some(log) = flow_log::of_flow(&run, flow) else {
        return Err(CommandFailure::Input(format!(
            "error: flow {flow} of `{}` was not sampled\nhelp: {}",
            run.summary.run,
            there_are()
        )));
    };
    let out = file.put(&log)?;
    print(&format!("wrote {}", out.display()))
}

/// Returns the run with a name. `unknown` is the error's text if there is none.
pub(super) fn run_named<'a>(runs: &[&'a str], name: &str, unknown: &str) -> Result<&'a str, CommandFailure> {
    match find_run(runs.iter().copied(), name) {
        Lookup::One(run) => Ok(run),
        Lookup::None => Err(CommandFailure::unknown(unknown, name, runs)),
        Lookup::Several(found) => Err(CommandFailure::Input(format!(
            "error: `{name}` stands for several runs: {}\nhelp: write its keys in full",
            study::first_of(&found.iter().map(ToString::to_string).collect::<Vec<_>>(), "; ")
        ))),
    }
}

/// The run that is meant.
pub(super) fn chosen(directory: &Path, name: Option<&str>) -> Result<RunResults, CommandFailure> {
    let mut runs = load_set(directory)?.runs;
    let names: Vec<String> = runs.iter().map(|run| run.summary.run.clone()).collect();
    let index = match (name, &names[..]) {
        (None, [_]) => 0,
        (None, _) => {
            return Err(CommandFailure::Input(format!(
                "error: `{}` has {}\nhelp: choose one with --run: {}",
                directory.display(),
                study::count(runs.len(), "run"),
                study::first_of(&names, "; ")
            )));
        }
        (Some(name), names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = run_named(&names, name, &format!("the results have no run `{name}`"))?;
            names.iter().position(|it| *it == found).unwrap_or_default()
        }
    };
    Ok(runs.swap_remove(index))
}
