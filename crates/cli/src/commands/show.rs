//! `narrows show`: what a directory of results says, in the terminal. `narrows export perfetto`: a run of it as a timeline.

use std::path::Path;

use results::RunResults;
use results::averages::TableSpec;
use results::store::load_set;
use study::summaries;

use crate::args::{ExportPerfettoArgs, ShowResultsArgs};
use crate::exit::{Failure, print, tell};
use crate::named_file::{Kind, NamedFile};

pub(crate) fn show(args: &ShowResultsArgs) -> Result<(), Failure> {
    not_a_file(&args.directory)?;
    let set = load_set(&args.directory)?;
    for said in super::compare::what_it_lacks(&args.directory, &set) {
        tell(&said);
    }
    let runs = set.runs;
    if args.json {
        return print(&match &runs[..] {
            [run] => run.summary.to_json(),
            runs => summaries(runs),
        });
    }
    let has_seeds = runs.iter().any(|run| run.summary.seed != runs[0].summary.seed);
    let tables: Vec<_> = has_seeds.then(|| TableSpec::of_completion_times().of(&runs)).into_iter().collect();
    print(super::run::text(&runs, &tables, args.wide).trim_end())
}

/// Refuses a file where a directory of results is meant.
fn not_a_file(path: &Path) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "error: `{}` is a file and no directory of results\nhelp: `narrows run` makes one of a scenario, and says at its end where",
        path.display()
    )))
}

pub(crate) fn perfetto(args: &ExportPerfettoArgs) -> Result<(), Failure> {
    not_a_file(&args.directory)?;
    let file = NamedFile::new(&args.out, Kind::Timeline, "--out")?;
    let runs = load_set(&args.directory)?.runs;
    let names: Vec<&str> = runs.iter().map(|run| run.summary.run.as_str()).collect();
    let run: &RunResults = match (&args.run, &runs[..]) {
        (None, [alone]) => alone,
        (None, _) => {
            let names: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
            return Err(Failure::Input(format!(
                "error: `{}` has {}\nhelp: choose one with --run: {}",
                args.directory.display(),
                study::count(runs.len(), "run"),
                study::first_of(&names, "; ")
            )));
        }
        (Some(name), runs) => match runs.iter().find(|run| run.summary.run == *name) {
            Some(run) => run,
            None => return Err(Failure::unknown(&format!("the results have no run `{name}`"), name, &names)),
        },
    };
    let out = file.put(&results::timeline::perfetto(run))?;
    print(&format!("wrote {}: open it in https://ui.perfetto.dev", out.display()))
}
