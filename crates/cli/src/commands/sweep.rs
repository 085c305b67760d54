//! `narrows sweep`: a scenario at many points, in one command or in shards that are merged.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use results::store::results_around;
use scenario::Scenario;
use study::{Shard, Simulator, Study};

use crate::args::{Common, FileArgs, MergeArgs, StatusArgs, SweepArgs, SweepCommand};
use crate::exit::{CommandFailure, print};
use crate::progress::Terminal;

pub(crate) fn sweep(args: &SweepArgs) -> Result<(), CommandFailure> {
    match (&args.command, &args.file) {
        (Some(SweepCommand::Merge(args)), _) => merge(args),
        (Some(SweepCommand::Status(args)), _) => status(args),
        (None, Some(file)) => all(args, file),
        // The parser asks for the file where there is no other command.
        (None, None) => Err(CommandFailure::Input("error: which scenario?".into())),
    }
}

/// Returns the default directory of results.
fn default_out(scenario: &Scenario, shard: Option<Shard>) -> PathBuf {
    let name = scenario.config.name.as_str();
    let name = shard.map_or_else(|| name.to_owned(), |shard| format!("{name}-{}-of-{}", shard.number(), shard.of()));
    Path::new("out").join(name)
}

/// The same sweep, by a Ray cluster.
fn on_ray(args: &SweepArgs, file: &FileArgs, address: &str) -> Result<(), CommandFailure> {
    let mut words: Vec<OsString> =
        super::run::words("sweep", file, &args.vary).into_iter().skip(1).map(OsString::from).collect();
    let Common { set, seed, out, check_invariants: checked, .. } = &args.common;
    let mut given: Vec<(&str, OsString)> = vec![("--ray", address.into())];
    given.extend(set.iter().map(|(key, value)| ("--set", format!("{key}={value}").into())));
    given.extend(seed.map(|seed| ("--seed", seed.to_string().into())));
    given.extend(out.iter().map(|out| ("--out", out.into())));
    words.extend(given.into_iter().flat_map(|(option, value)| [option.into(), value]));
    words.extend(checked.then(|| "--check-invariants".into()));
    Err(super::python::exec(&words))
}

fn all(args: &SweepArgs, file: &FileArgs) -> Result<(), CommandFailure> {
    if let Some(address) = &args.ray {
        return on_ray(args, file, address);
    }
    let scenario = super::run::varied(file, &args.vary, &args.common)?;
    let mut replay = super::run::words("sweep", file, &args.vary);
    if let Some(shard) = args.shard {
        replay.extend(["--shard".to_owned(), shard.to_string()]);
    }
    let out = args.common.out.clone().unwrap_or_else(|| default_out(&scenario, args.shard));
    let (watch, notes) = (Terminal { quiet: args.common.is_silent() }, super::run::notes());
    let simulator = Simulator { checked: args.common.check_invariants };
    let study = Study {
        schemes: &file.schemes,
        shard: args.shard,
        out,
        ..super::run::of(&scenario, &simulator, &watch, &notes, &args.common, replay)
    };
    if args.list && args.common.json {
        let run = |it: study::RunKey| serde_json::json!({ "run": it.run, "key": it.key, "code": it.code });
        let runs: Vec<_> = study.keys()?.into_iter().map(run).collect();
        return print(&format!("{:#}", serde_json::json!({ "schema": 1, "runs": runs })));
    }
    if args.list {
        return print(&study.names()?.join("\n"));
    }
    super::run::shown(&study.run()?, &args.common)
}

fn merge(args: &MergeArgs) -> Result<(), CommandFailure> {
    let scenario = super::run::varied(&args.file, &args.vary, &args.common)?;
    if args.common.force {
        return Err(CommandFailure::Input("error: a merge runs nothing, so --force is not for it".into()));
    }
    // A path that is not a directory of results is a mistake in the name.
    if let Some(other) = args.from.iter().find(|directory| !directory.is_dir() || results_around(directory).is_none()) {
        return Err(CommandFailure::Input(format!(
            "error: `{}` is no directory of results\nhelp: name those that `narrows sweep --shard` wrote",
            other.display()
        )));
    }
    let replay = super::run::words("sweep", &args.file, &args.vary);
    let (watch, notes) = (Terminal { quiet: args.common.is_silent() }, super::run::notes());
    let simulator = Simulator::default();
    let study = Study {
        schemes: &args.file.schemes,
        from: &args.from,
        runs_missing: false,
        ..super::run::of(&scenario, &simulator, &watch, &notes, &args.common, replay)
    };
    match study.run() {
        Ok(finished) => super::run::shown(&finished, &args.common),
        Err(error @ study::Error::Missing { .. }) => Err(CommandFailure::Run(anyhow::anyhow!(
            "{error}\nhelp: what was found is kept. Merge more shards, with the options that they were given; or run what is \
             missing: {}",
            study.replay.join(" ")
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Prints the contents of a directory's ledger.
#[cfg(feature = "ledger")]
fn status(args: &StatusArgs) -> Result<(), CommandFailure> {
    use std::fmt::Write as _;

    use study::ledger::{State, read};

    let directory = &args.directory;
    let Some(entries) = read(directory)? else {
        return Err(CommandFailure::Input(format!(
            "error: `{}` has no ledger\nhelp: a ledger is written with the results of several runs",
            directory.display()
        )));
    };
    if args.json {
        let run = |entry: &study::ledger::LedgerEntry| {
            serde_json::json!({
                "run": entry.run, "state": entry.state.name(), "tries": entry.tries, "began_unix_s": entry.began,
                "wall_s": entry.wall_s, "error": entry.error,
            })
        };
        let runs: Vec<_> = entries.iter().map(run).collect();
        return print(&format!("{:#}", serde_json::json!({ "schema": 1, "runs": runs })));
    }
    let of = |state: State| entries.iter().filter(move |entry| entry.state == state);
    let counts =
        [State::Finished, State::Running, State::Failed, State::Waiting].map(|state| (of(state).count(), state));
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {}", state.name()))
        .collect();
    let mut text = format!("{}: {}\n", study::count(entries.len(), "run"), counts.join(", "));
    let times: Vec<f64> = of(State::Finished).filter_map(|entry| entry.wall_s).collect();
    if !times.is_empty() {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let _ = writeln!(
            text,
            "a run took {mean:.1} s in the mean, {:.1} s at most",
            times.iter().fold(0.0, |max, it| it.max(max))
        );
    }
    for entry in of(State::Running) {
        let _ = writeln!(text, "running, or cut off by a kill: {}", entry.run);
    }
    for entry in of(State::Failed) {
        let times = study::count(entry.tries as usize, "time");
        let _ = writeln!(text, "failed, tried {times}: {}: {}", entry.run, entry.error.as_deref().unwrap_or("-"));
    }
    print(&text)
}

#[cfg(not(feature = "ledger"))]
fn status(args: &StatusArgs) -> Result<(), CommandFailure> {
    Err(CommandFailure::Input(format!(
        "error: cannot read the ledger of `{}`: this build has none; it needs the feature `ledger`, which is on by default",
        args.directory.display()
    )))
}
