//! `narrows show`: what a directory of results says, in the terminal.

use results::averages::TableSpec;
use results::store::load_set;
use study::summaries;

use crate::args::ShowResultsArgs;
use crate::exit::{Failure, print, tell};

pub(crate) fn show(args: &ShowResultsArgs) -> Result<(), Failure> {
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
