//! `narrows reproduce --causes`: claims judged again with one thing of the set-up changed.

use std::collections::BTreeMap;

use results::claims::suspects::{SuspectTrial, TrialOutcome, tried};
use results::claims::{Claim, Runs, name_in_claims};
use results::{Lookup, RunResults, find_run};
use scenario::{Cause, Overrides, Scenario};
use toml_edit::{DocumentMut, InlineTable, Item};

use super::{Figure, run_study, seeds_of};
use crate::args::{ReproduceArgs, Scale};
use crate::exit::{CommandFailure, print_stderr};
use crate::record::RecordRow;
use crate::sheet::{self, Datum, Sheet, SheetRow};

/// A suspected cause of a figure's file.
pub(super) struct Suspect {
    pub(super) cause: Cause,
    /// The claims that it may explain.
    claims: Vec<Claim>,
    /// The scenario with the change.
    scenario: Scenario,
    /// The schemes that the claims are about.
    schemes: Vec<String>,
}

/// Reads the suspected causes of a figure. `overrides` are those of the figure itself.
pub(super) fn read(
    path: &std::path::Path,
    scenario: &Scenario,
    claims: &[Claim],
    overrides: &Overrides,
) -> Result<Vec<Suspect>, CommandFailure> {
    let mut suspects = Vec::new();
    for cause in &scenario.config.cause {
        for (scale, outcome) in cause.recorded.iter().flat_map(|(scale, of)| of.iter().map(move |(_, it)| (scale, it)))
        {
            if TrialOutcome::from_name(outcome).is_none() {
                return Err(CommandFailure::Input(format!(
                    "error: {}: cause `{}`, `recorded.{scale}`: no outcome `{outcome}`; there are: {}",
                    path.display(),
                    cause.id,
                    TrialOutcome::ALL.map(TrialOutcome::name).join(", ")
                )));
            }
        }
        let named = |claim: &&Claim| cause.claims.iter().any(|id| id.value == claim.id);
        let claims: Vec<Claim> = claims.iter().filter(named).cloned().collect();
        let overrides = Overrides { cause: Some(cause.id.clone()), ..overrides.clone() };
        let changed = scenario::load(path, &overrides)?;
        let (seeds, own) = (seeds_of(&changed), seeds_of(scenario));
        let mut schemes: Vec<String> = Vec::new();
        for run in claims.iter().flat_map(Claim::runs) {
            let known: Vec<&str> = seeds.keys().map(String::as_str).collect();
            let context = format!("{}: with the change of the cause `{}` a run `{run}`", path.display(), cause.id);
            super::super::show::run_named(&known, run, &context)?;
            let Lookup::One(found) = find_run(known.iter().copied(), run) else { continue };
            // Runs are compared seed by seed.
            if find_run(own.keys().map(String::as_str), run) != Lookup::One(found) || own.get(found) != seeds.get(found)
            {
                return Err(CommandFailure::Input(format!(
                    "error: {}: the change of the cause `{}` changes the name or the seeds of the run `{run}`\nhelp: leave seeds \
                     and points of the grid as they are",
                    path.display(),
                    cause.id
                )));
            }
            let scheme = found.split(',').next().unwrap_or(found).to_owned();
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
        suspects.push(Suspect { cause: cause.value.clone(), claims, scenario: changed, schemes });
    }
    Ok(suspects)
}

/// Runs the schemes of each cause's claims with its change, and judges the claims by these runs and by those of the figure.
pub(super) fn try_suspects(
    figure: &Figure,
    runs: &[RunResults],
    args: &ReproduceArgs,
) -> Result<Vec<SuspectTrial>, CommandFailure> {
    let mut trials = Vec::new();
    let in_claims = names(runs);
    let before = Runs::by_seed(runs, &in_claims);
    for (number, suspect) in figure.suspects.iter().enumerate() {
        let id = &suspect.cause.id;
        if !args.common.is_silent() {
            print_stderr(&format!(
                "    cause {}/{}, {id}: {}",
                number + 1,
                figure.suspects.len(),
                suspect.cause.change()
            ));
        }
        let rerun = run_study(figure, Some(suspect), args)?;
        let in_claims = names(&rerun.runs);
        let after = Runs::by_seed(&rerun.runs, &in_claims);
        trials.extend(suspect.claims.iter().map(|claim| tried(id, claim, &before, &after)));
    }
    Ok(trials)
}

impl Suspect {
    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(super) fn schemes(&self) -> &[String] {
        &self.schemes
    }

    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }
}

/// The names of runs in claims.
fn names(runs: &[RunResults]) -> Vec<String> {
    runs.iter().map(|run| name_in_claims(&run.summary.run, run.summary.seed)).collect()
}

/// Returns the removed share of the shortfall where that adds information.
fn removed(trial: &SuspectTrial) -> Option<f64> {
    let adds = matches!(trial.outcome, TrialOutcome::InPart | TrialOutcome::Undecided | TrialOutcome::Refuted);
    trial.removed.filter(|&share| adds && share > 0.0)
}

/// Returns the outcome, with the removed share of the shortfall where that adds information.
fn describe_outcome(trial: &SuspectTrial) -> String {
    match removed(trial) {
        Some(share) => format!("{}, {:.0} % of the shortfall removed", trial.outcome, share * 100.0),
        None => trial.outcome.to_string(),
    }
}

/// A table of trials, a row for a claim and a cause.
pub(super) fn sheet<'a>(trials: impl IntoIterator<Item = (&'a Figure, &'a [SuspectTrial])>) -> Sheet {
    let row = |figure: &Figure, trial: &SuspectTrial| {
        let suspect = figure.suspects.iter().find(|suspect| suspect.cause.id == trial.cause);
        let change = suspect.map_or_else(String::new, |suspect| suspect.cause.change());
        let (before, after) = (&trial.before, &trial.after);
        SheetRow {
            name: figure.name.clone(),
            keys: vec![("claim".to_owned(), Datum::Text(before.id.clone()))],
            cells: vec![
                sheet::SheetCell::text(&trial.cause),
                sheet::SheetCell::text(change),
                sheet::SheetCell::text(&before.measured),
                sheet::SheetCell::text(before.verdict.name()),
                sheet::SheetCell::text(&after.measured),
                sheet::SheetCell::text(after.verdict.name()),
                sheet::SheetCell::text(trial.outcome.name()),
                sheet::SheetCell::new("", "share", trial.removed),
            ],
        }
    };
    let rows = trials.into_iter().flat_map(|(figure, trials)| trials.iter().map(move |trial| row(figure, trial)));
    let columns =
        ["cause", "change", "measured", "verdict", "measured with it", "verdict with it", "outcome", "removed"];
    Sheet {
        name: "causes",
        title: String::new(),
        first: "figure",
        columns: columns.map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

/// The table of a figure's trials in the terminal; nothing where there are none.
pub(super) fn described(figure: &Figure, trials: &[SuspectTrial], scale: Scale) -> String {
    if trials.is_empty() {
        return String::new();
    }
    let mut table = crate::table::prose();
    table.set_header(["claim", "suspected cause", "measured", "with the change", "outcome"]);
    for trial in trials {
        let Some(suspect) = figure.suspects.iter().find(|suspect| suspect.cause.id == trial.cause) else { continue };
        let recorded = suspect.cause.recorded.get(scale.name()).and_then(|recorded| recorded.get(&trial.before.id));
        let was = recorded.filter(|was| *was != trial.outcome.name());
        let was = was.map_or_else(String::new, |was| format!(" (was {was})"));
        let cause = format!("{}: {}", trial.cause, suspect.cause.change());
        let (before, after) = (&trial.before.measured, &trial.after.measured);
        table.add_row([&trial.before.id, &cause, before, after, &format!("{}{was}", describe_outcome(trial))]);
    }
    format!("{table}\n")
}

/// Rows of the trials in a figure's record, all with the same seeds.
pub(super) fn recorded_rows(figure: &Figure, trials: &[SuspectTrial], seeds: &str) -> Vec<RecordRow> {
    let engine = study::program().engine;
    let row = |trial: &SuspectTrial| {
        let cause = &figure.suspects.iter().find(|suspect| suspect.cause.id == trial.cause)?.cause;
        let removed = removed(trial).map_or_else(String::new, |share| format!("{:.0}", share * 100.0));
        let (before, after) = (&trial.before, &trial.after);
        let texts = [
            figure.names().1,
            &before.id,
            &trial.cause,
            &cause.text,
            &cause.change(),
            &before.measured,
            &after.measured,
            trial.outcome.name(),
            &removed,
            seeds,
            &engine,
        ];
        Some(texts.map(str::to_owned).to_vec())
    };
    trials.iter().filter_map(row).collect()
}

/// Writes the outcomes into the `[[cause]]` tables of a file, as the recorded ones of a scale.
///
/// # Errors
/// When the causes are an array of inline tables.
pub(super) fn record(document: &mut DocumentMut, trials: &[SuspectTrial], scale: Scale) -> Result<(), &'static str> {
    if trials.is_empty() {
        return Ok(());
    }
    let Some(causes) = document.get_mut("cause").and_then(Item::as_array_of_tables_mut) else {
        return Err(
            "--update-verdicts writes into [[cause]] tables, and the causes here are an array of inline tables",
        );
    };
    let mut of_cause: BTreeMap<&str, InlineTable> = BTreeMap::new();
    for trial in trials {
        of_cause.entry(&trial.cause).or_default().insert(&trial.before.id, trial.outcome.name().into());
    }
    for table in causes.iter_mut() {
        let id = table.get("id").and_then(Item::as_str).unwrap_or_default().to_owned();
        let Some(outcomes) = of_cause.remove(id.as_str()) else { continue };
        let recorded = table.entry("recorded").or_insert_with(|| Item::Value(InlineTable::new().into()));
        let Some(recorded) = recorded.as_table_like_mut() else { continue };
        recorded.insert(scale.name(), toml_edit::value(outcomes));
        if let Some(inline) = table.get_mut("recorded").and_then(Item::as_inline_table_mut) {
            inline.fmt();
        }
    }
    Ok(())
}
