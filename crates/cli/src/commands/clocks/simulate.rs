//! `narrows clocks simulate`: errors and bounds of a mesh in virtual time.

use std::io::IsTerminal;

use clock_simulation::{Distribution, Outcome, Simulation, StepConfig};
use scenario::argument;
use serde_json::json;
use units::{Span, Time};

use crate::args::ClocksSimulateArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::interrupt::{interrupted, listen};

/// Version of the JSON of `clocks simulate`.
const SCHEMA: u32 = 1;

/// Smallest and largest step of clocks.
const STEP_NS: [i64; 2] = [20_000, 1_000_000_000];

/// Longest simulated time.
const MAX_TIME: Span = Span::from_s(100_000);

pub(super) fn simulate(args: &ClocksSimulateArgs) -> Result<(), CommandFailure> {
    let simulation = simulation(args)?;
    listen();
    let is_silent = args.quiet || args.json || !std::io::stderr().is_terminal();
    let end = Time::ZERO + simulation.warm_up + simulation.duration;
    let progress = |now: Time| {
        if !is_silent && now.ps().is_multiple_of(Span::from_s(10).unsigned_ps()) {
            print_stderr(&format!("{} s of {} s", seconds(now), seconds(end)));
        }
        !interrupted()
    };
    let Some(outcome) = simulation.run(progress) else { return Err(interruption()) };
    if args.json {
        print(&format!("{:#}", to_json(args, &outcome)))?;
    } else if !args.quiet {
        print(&text(args, &outcome))?;
    }
    if outcome.outside == 0 {
        return Ok(());
    }
    let (outside, readings) = (outcome.outside, outcome.readings);
    Err(CommandFailure::Run(anyhow::anyhow!("{outside} of {readings} readings were outside their bounds")))
}

/// Returns the simulation that the options ask for.
fn simulation(args: &ClocksSimulateArgs) -> Result<Simulation, CommandFailure> {
    let mut simulation = Simulation::new(args.hosts, args.load, args.seed);
    if 2 * args.liars >= args.hosts {
        return Err(CommandFailure::Input(format!(
            "error: --liars {} of --hosts {}: expected fewer than half of the members",
            args.liars, args.hosts
        )));
    }
    let time = |option: &str, text: &str, least: Span| {
        let span = argument::span(option, text)?;
        if (least..=MAX_TIME).contains(&span) {
            return Ok(span);
        }
        let text = format!("error: {option} {text}: expected a time from {least} to {MAX_TIME}");
        Err(CommandFailure::Input(text))
    };
    simulation.duration = time("--duration", &args.duration, Span::from_s(1))?;
    simulation.warm_up = time("--warm-up", &args.warm_up, Span::from_s(15))?;
    simulation.network.asymmetry = time("--asymmetry", &args.asymmetry, Span::ZERO)?;
    simulation.network.load.burst = args.burst;
    simulation.liars = args.liars;
    let [min_ns, max_ns] = STEP_NS;
    simulation.steps = match &args.steps_every {
        Some(text) => Some(StepConfig { every: time("--steps-every", text, Span::from_ms(100))?, min_ns, max_ns }),
        None => None,
    };
    Ok(simulation)
}

fn seconds(time: Time) -> u64 {
    time.ns() / 1_000_000_000
}

fn to_json(args: &ClocksSimulateArgs, outcome: &Outcome) -> serde_json::Value {
    let distribution = |it: &Distribution| json!({ "p50": it.p50, "p99": it.p99, "max": it.max });
    json!({
        "schema": SCHEMA,
        "hosts": args.hosts,
        "load": args.load,
        "burst": args.burst,
        "seed": args.seed,
        "liars": args.liars,
        "error_ns": distribution(&outcome.error),
        "bound_ns": distribution(&outcome.bound),
        "bound_held": outcome.outside == 0,
        "readings": outcome.readings,
        "readings_outside": outcome.outside,
        "readings_void": outcome.void,
        "steps": outcome.steps,
        "steps_noticed": outcome.steps_noticed,
        "messages_per_host_s": outcome.messages_per_host_s,
    })
}

fn text(args: &ClocksSimulateArgs, outcome: &Outcome) -> String {
    let ClocksSimulateArgs { hosts, load, burst, duration, warm_up, seed, .. } = args;
    let mut lines = vec![
        format!("{hosts} members, {load} % load in bursts of {burst}, {duration} after {warm_up}, seed {seed}"),
        format!("{:<8}{:>12}{:>12}{:>12}", "", "p50", "p99", "max"),
    ];
    for (name, it) in [("error", &outcome.error), ("bound", &outcome.bound)] {
        let [p50, p99, max] = [it.p50, it.p99, it.max].map(|ns| Span::from_ns(ns).to_string());
        lines.push(format!("{name:<8}{p50:>12}{p99:>12}{max:>12}"));
    }
    let Outcome { readings, outside, void, steps, steps_noticed, messages_per_host_s, .. } = outcome;
    let held = if *outside == 0 { "none".to_owned() } else { outside.to_string() };
    lines.push(format!("{readings} readings, {held} outside their bounds; {void} of members without mesh time"));
    if *steps > 0 {
        lines.push(format!("{steps} steps of clocks, {steps_noticed} noticed within 2 s"));
    }
    lines.push(format!("{messages_per_host_s} messages a member and second"));
    lines.join("\n")
}

fn interruption() -> CommandFailure {
    CommandFailure::Interrupted("no result".to_owned())
}
