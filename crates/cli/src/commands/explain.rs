//! `narrows explain`: the waits of the slowest flows of a scheme.

mod causes;
mod traits;

use results::RunResults;
use study::unrepeatable;

use super::compare::read_set;
use super::show::{chosen, not_a_file};
use crate::args::ExplainArgs;
use crate::exit::{CommandFailure, print_stderr};
use crate::sheet::check_csv;

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, if args.traits { &traits::TABLES } else { &causes::TABLES })?;
    not_a_file(&args.directory)?;
    let runs = runs(args)?;
    if args.traits {
        return traits::explain(args, &runs);
    }
    if let Some(reason) = runs.iter().find_map(unrepeatable) {
        let replays = [(args.flow.is_some(), "--flow"), (args.bins, "--bins"), (args.all, "--all")];
        if let Some((_, option)) = replays.into_iter().find(|(given, _)| *given) {
            let help = format!("leave out {option}, or choose other runs with --only");
            return Err(CommandFailure::Input(format!("error: {reason}, which {option} needs\nhelp: {help}")));
        }
        print_stderr(&format!("note: {reason}: counters are compared instead, as with --traits"));
        return traits::explain(args, &runs);
    }
    causes::explain(args, &runs)
}

/// The runs that are meant.
fn runs(args: &ExplainArgs) -> Result<Vec<RunResults>, CommandFailure> {
    if let Some(name) = &args.run {
        return Ok(vec![chosen(&args.directory, Some(name))?]);
    }
    let set = read_set(&args.directory)?;
    results::chosen(set.runs, &args.only).map_err(|error| CommandFailure::Input(format!("error: {error}")))
}
