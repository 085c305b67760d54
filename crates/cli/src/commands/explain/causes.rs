//! `narrows explain`: the causes of the slowest flows' excess completion time, from a replay of their runs.

use std::collections::BTreeMap;

use experiment::FlowId;
use results::RunResults;
use results::attribution::{Attribution, GroupCause, NamedTime, OfRun, RootKind, group_causes, root_words};
use results::slowest::{GroupBy, SlowGroup, SlowestFlow, slowest};
use serde_json::{Value, json};
use study::{Replay, SweepObserver, bins_of, count};
use units::Span;

use crate::args::ExplainArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::progress::Terminal;
use crate::sheet::{Sheet, print_csv};
use crate::table::{bytes, time};

/// Size of the usual terminal: default output fits it.
const COLUMNS: usize = 100;
const LINES: usize = 24;
/// Groups that are explained by default.
const GROUPS: usize = 2;
/// Flows of a group that are explained by default.
const FLOWS: usize = 10;

pub(super) fn explain(args: &ExplainArgs, runs: &[RunResults]) -> Result<(), CommandFailure> {
    let groups = groups(args, runs)?;
    let plan = ReplayPlan::new(args, groups);
    if plan.groups.is_empty() {
        if args.csv.is_requested() {
            return print_csv(&sheets(&[]), args.csv.table());
        }
        return print(if args.json { "[]" } else { "no flow ended" });
    }
    let explained = plan.replay(args, runs)?;
    let shown: Vec<ShownGroup<'_>> = plan.groups.iter().map(|group| explained.of(group, runs)).collect();
    if args.json || args.csv.is_requested() {
        let all: Vec<Value> = shown.iter().map(|group| group.json(runs)).collect();
        if args.csv.is_requested() {
            if plan.left_out > 0 {
                print_stderr(&format!("note: {} not included: --all includes them", count(plan.left_out, "group")));
            }
            return print_csv(&sheets(&all), args.csv.table());
        }
        return print(&format!("{:#}", Value::from(all)));
    }
    let limits = match shown.len() {
        _ if args.all => TextLimits { lines: usize::MAX, flows: 5 },
        1 => TextLimits { lines: LINES - 1, flows: 5 },
        groups => TextLimits { lines: (LINES - 1) / groups, flows: 2 },
    };
    let texts: Vec<String> = shown.iter().map(|group| group.text(runs, &limits)).collect();
    let mut text = texts.concat();
    if plan.left_out > 0 {
        let more = format!(
            "{} not shown: choose with --only, --class, --bins, or take --all\n",
            count(plan.left_out, "group")
        );
        text.push_str(&more);
    }
    print(text.trim_end())
}

/// Names of the tables for `--csv`.
pub(super) const TABLES: [&str; 2] = ["causes", "flows"];

/// Causes of each group, and of each of its slowest flows, from the groups as JSON.
fn sheets(groups: &[Value]) -> [Sheet; 2] {
    // One record per cause, with the keys of its group or flow.
    let of_causes = |of: &Value, keys: serde_json::Map<String, Value>| -> Vec<Value> {
        let record = |cause: &Value| {
            let mut record = cause.as_object().cloned().unwrap_or_default();
            record.extend(keys.clone());
            Value::from(record)
        };
        of["causes"].as_array().into_iter().flatten().map(record).collect()
    };
    let pick_keys = |of: &Value, keys: &[&str]| -> serde_json::Map<String, Value> {
        keys.iter().map(|&key| (key.to_owned(), of[key].clone())).collect()
    };
    let causes = groups.iter().flat_map(|group| {
        let mut keys = pick_keys(group, &["part", "excess_ns"]);
        keys.insert("group".to_owned(), group["name"].clone());
        of_causes(group, keys)
    });
    let flows = groups.iter().flat_map(|group| {
        let slowest = group["slowest"].as_array().into_iter().flatten();
        slowest.flat_map(move |flow| {
            let own = ["run", "seed", "flow", "src", "dst", "size_bytes", "fct_ns", "ideal_ns", "slowdown"];
            let mut keys = pick_keys(flow, &own);
            keys.insert("part".to_owned(), group["part"].clone());
            of_causes(flow, keys)
        })
    });
    let of_group =
        ["group", "part", "cause", "text", "share", "time_ns", "excess_ns", "flows", "other_flows", "other_hosts"];
    let of_flow = [
        "run",
        "part",
        "seed",
        "flow",
        "src",
        "dst",
        "size_bytes",
        "fct_ns",
        "ideal_ns",
        "slowdown",
        "cause",
        "text",
        "share",
        "time_ns",
        "other_flows",
    ];
    [
        Sheet::of_records(TABLES[0], &of_group, &causes.collect::<Vec<_>>()),
        Sheet::of_records(TABLES[1], &of_flow, &flows.collect::<Vec<_>>()),
    ]
}

/// All groups of the runs, those with the slowest flows first.
fn groups(args: &ExplainArgs, runs: &[RunResults]) -> Result<Vec<SlowGroup>, CommandFailure> {
    if let Some(flow) = args.flow {
        return group_of_flow(flow, runs).map(|group| vec![group]);
    }
    let by = if args.bins {
        let bins = runs.first().map(|run| bins_of(run, &args.inputs)).transpose()?.unwrap_or_default();
        if bins.is_empty() {
            let message = "error: the scenario has no size bins\nhelp: `[sizes]` in the scenario names them; without --bins flows are \
                        grouped by class";
            return Err(CommandFailure::Input(message.to_owned()));
        }
        GroupBy::Bins(bins)
    } else {
        GroupBy::Class
    };
    Ok(slowest(runs, &by, args.class.map(Into::into), args.slowest))
}

fn group_of_flow(flow: u32, runs: &[RunResults]) -> Result<SlowGroup, CommandFailure> {
    let [run] = runs else {
        let names: Vec<String> = runs.iter().map(|run| run.summary.run.clone()).collect();
        return Err(CommandFailure::Input(format!(
            "error: --flow {flow} is one of each of {}\nhelp: choose a run with --run: {}",
            count(runs.len(), "run"),
            study::first_of(&names, "; ")
        )));
    };
    let name = &run.summary.run;
    let Some(row) = run.flows.row(flow) else {
        let last = run.flows.rows.last().map_or(0, |row| row.flow);
        return Err(CommandFailure::Input(format!(
            "error: `{name}` has no flow {flow}\nhelp: expected a number from 0 to {last}"
        )));
    };
    let Some(slowdown) = row.slowdown() else {
        return Err(CommandFailure::Input(format!(
            "error: flow {flow} of `{name}` did not end, so it has no completion time to explain\nhelp: a later `stop` in the \
             scenario lets it end"
        )));
    };
    let slowest = vec![SlowestFlow { run: 0, row: *row, slowdown }];
    Ok(SlowGroup { name: name.clone(), part: format!("flow {flow}"), flows: 1, unfinished: 0, slowest })
}

/// Groups to replay.
struct ReplayPlan {
    groups: Vec<SlowGroup>,
    /// Groups that are not explained.
    left_out: usize,
}

impl ReplayPlan {
    fn new(args: &ExplainArgs, mut groups: Vec<SlowGroup>) -> Self {
        if args.all {
            return Self { groups, left_out: 0 };
        }
        let left_out = groups.len().saturating_sub(GROUPS);
        groups.truncate(GROUPS);
        // One run of each group: that of its slowest flow.
        for group in &mut groups {
            let run = group.slowest.first().map_or(0, |flow| flow.run);
            group.slowest.retain(|flow| flow.run == run);
            group.slowest.truncate(FLOWS);
        }
        Self { groups, left_out }
    }

    /// The flows of each run, those of groups with slower flows first.
    fn flows(&self) -> BTreeMap<usize, Vec<FlowId>> {
        let mut flows = BTreeMap::<usize, Vec<FlowId>>::new();
        for flow in self.groups.iter().flat_map(|group| &group.slowest) {
            let of_run = flows.entry(flow.run).or_default();
            if !of_run.contains(&FlowId(flow.row.flow)) {
                of_run.push(FlowId(flow.row.flow));
            }
        }
        flows
    }

    fn replay<'a>(&self, args: &ExplainArgs, runs: &'a [RunResults]) -> Result<ReplayedRuns<'a>, CommandFailure> {
        let terminal = Terminal { quiet: args.quiet };
        terminal.listen();
        let flows = self.flows();
        let names: Vec<String> =
            flows.keys().flat_map(|&run| [(); 2].map(|()| runs[run].summary.run.clone())).collect();
        if !args.quiet {
            print_stderr(&format!("{} to simulate again, twice each", count(flows.len(), "run")));
        }
        let threads =
            args.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
        let board = terminal.board(&names, 0);
        let mut explained = ReplayedRuns { replays: BTreeMap::new() };
        for (run, mut of_run) in flows {
            let replay = Replay::new(&runs[run], &args.inputs).map_err(|error| with_inputs_help(error, args))?;
            let affordable = replay.affordable(&of_run);
            if affordable < of_run.len() {
                let left_out = count(of_run.len() - affordable, "flow");
                print_stderr(&format!(
                    "note: {left_out} of `{}` left out, because logs would not fit into memory",
                    runs[run].summary.run
                ));
                of_run.truncate(affordable);
            }
            let replayed = replay.run(&of_run, threads, &terminal, &*board).map_err(|error| match error {
                study::Error::Interrupted => {
                    CommandFailure::Interrupted("nothing is explained; the results are untouched".to_owned())
                }
                other => other.into(),
            })?;
            let flows = replayed.flows.into_iter().map(|flow| (flow.flow.0, flow)).collect();
            explained.replays.insert(run, (replay, flows));
        }
        Ok(explained)
    }
}

/// A failure to build a run again, with where its files are looked for.
fn with_inputs_help(error: study::Error, args: &ExplainArgs) -> CommandFailure {
    let is_scenario = matches!(error, study::Error::Scenario(_));
    let failure = CommandFailure::from(error);
    if !is_scenario {
        return failure;
    }
    failure.with_help(format!(
        "files that the scenario names are looked for in `{}`; --inputs names another directory. --traits needs no files",
        args.inputs.display()
    ))
}

/// Runs that were replayed, with their flows.
struct ReplayedRuns<'a> {
    replays: BTreeMap<usize, (Replay<'a>, BTreeMap<u32, Attribution>)>,
}

impl ReplayedRuns<'_> {
    fn of<'b>(&'b self, group: &'b SlowGroup, runs: &'b [RunResults]) -> ShownGroup<'b> {
        let mut flows = Vec::new();
        for flow in &group.slowest {
            if let Some((replay, attributions)) = self.replays.get(&flow.run)
                && let Some(attribution) = attributions.get(&flow.row.flow)
            {
                let of = OfRun { run: flow.run, setup: &replay.built.setup, flows: &runs[flow.run].flows, attribution };
                flows.push(ShownFlow { slow: flow, of });
            }
        }
        let causes = group_causes(flows.iter().map(|flow| flow.of));
        let excess = flows.iter().map(|flow| flow.of.attribution.excess()).sum();
        ShownGroup { group, flows, causes, excess }
    }
}

/// A group with its explanation.
struct ShownGroup<'a> {
    group: &'a SlowGroup,
    flows: Vec<ShownFlow<'a>>,
    causes: Vec<GroupCause>,
    excess: Span,
}

/// A slow flow and its attribution.
struct ShownFlow<'a> {
    slow: &'a SlowestFlow,
    of: OfRun<'a>,
}

/// Limits of a group's text.
struct TextLimits {
    /// Lines at most.
    lines: usize,
    /// Flows at most.
    flows: usize,
}

/// A part of a time in percent.
fn percent(part: Span, of: Span) -> f64 {
    100.0 * part.ps() as f64 / of.ps().max(1) as f64
}

fn duration(span: Span) -> String {
    time(span.ps() as f64 / 1e3)
}

/// A line that fits the usual terminal.
fn line(text: &str) -> String {
    if text.chars().count() <= COLUMNS {
        return format!("{text}\n");
    }
    let kept: String = text.chars().take(COLUMNS - 1).collect();
    format!("{kept}…\n")
}

/// Up to three names with their parts.
fn parts(all: &[NamedTime]) -> String {
    let sum = all.iter().map(|it| it.time).sum();
    if let [one] = all {
        return one.name.clone();
    }
    let parts = all.iter().map(|it| (it, percent(it.time, sum))).take(3).filter(|(_, part)| *part >= 0.5);
    parts.map(|(it, part)| format!("{} {part:.0} %", it.name)).collect::<Vec<_>>().join(", ")
}

/// Returns the other flows, or the effects; nothing where the title is complete.
fn details(cause: &GroupCause) -> Option<String> {
    if let RootKind::Loss(_) = cause.kind {
        return (!cause.effects.is_empty()).then(|| parts(&cause.effects));
    }
    if cause.others.is_empty() {
        return None;
    }
    let relation = if cause.kind == RootKind::Queueing { "behind" } else { "by" };
    let (flows, hosts) = (count(cause.other_flows, "other flow"), count(cause.other_hosts, "host"));
    Some(format!("{relation} {flows} of {hosts}: {}", parts(&cause.others)))
}

impl ShownFlow<'_> {
    fn text(&self) -> String {
        let Self { slow: flow, of } = self;
        let row = &flow.row;
        let took = row.fct().map_or_else(String::new, duration);
        let first = of.attribution.ranked().into_iter().next().map_or_else(String::new, |first| {
            let share = percent(first.time, of.attribution.excess());
            format!(": {share:.0} % {}", root_words(first.root, of.setup))
        });
        format!(
            "  flow {}: {} to {}, {}, {took}, {:.2} times{first}",
            row.flow,
            row.src,
            row.dst,
            bytes(row.size.get()),
            flow.slowdown
        )
    }
}

impl ShownGroup<'_> {
    fn text(&self, runs: &[RunResults], limits: &TextLimits) -> String {
        let group = self.group;
        let mut seeds: Vec<u64> = self.flows.iter().map(|flow| runs[flow.slow.run].summary.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let of_seed = match seeds[..] {
            [seed] if !group.name.contains("seed=") && runs.len() > 1 => format!(" (seed {seed})"),
            _ => String::new(),
        };
        let ideal: Span = self.flows.iter().map(|flow| flow.of.attribution.ideal).sum();
        let slowdown = (ideal + self.excess).ps() as f64 / ideal.ps().max(1) as f64;
        let numbers = format!("{slowdown:.2} times ideal, {} beyond it", duration(self.excess));
        let of_flows = if group.flows == 1 {
            format!("{}: {numbers}", group.part)
        } else {
            let slowest = slowest_in_words(self.flows.len());
            format!("{}: the {slowest} of {} flows{of_seed}: {numbers}", group.part, group.flows)
        };
        let (mut text, mut first) = (format!("{}, {of_flows}\n", group.name), 1);
        // A long name has a line of its own, in full, because it distinguishes the group from others.
        if text.trim_end().chars().count() > COLUMNS {
            (text, first) =
                (format!("{}\n  {of_flows}\n", group.name), group.name.chars().count().div_ceil(COLUMNS) + 1);
        }
        let flows = if group.flows > 1 { limits.flows.min(self.flows.len()) } else { 0 };
        // The first lines, other causes, flows, and those that did not end.
        let mut left = limits.lines.saturating_sub(first + 1 + flows + usize::from(group.unfinished > 0));
        let mut rest = 100.0;
        for cause in &self.causes {
            let (share, details) = (percent(cause.time, self.excess), details(cause).filter(|_| left > 1));
            if share < 1.0 || left == 0 {
                break;
            }
            left -= 1 + usize::from(details.is_some());
            rest -= share;
            text.push_str(&line(&format!("{share:6.1} %  {}", cause.title())));
            if let Some(details) = details {
                text.push_str(&line(&format!("          {details}")));
            }
        }
        if rest >= 0.05 {
            text.push_str(&line(&format!("{rest:6.1} %  other causes")));
        }
        for flow in self.flows.iter().take(flows) {
            text.push_str(&line(&flow.text()));
        }
        if group.unfinished > 0 {
            text.push_str(&line(&format!(
                "  not included, because they did not end: {}",
                count(group.unfinished, "flow")
            )));
        }
        text
    }

    fn json(&self, runs: &[RunResults]) -> Value {
        let named = |all: &[NamedTime]| -> Value {
            all.iter().map(|it| json!({ "name": it.name, "time_ns": ns(it.time) })).collect::<Vec<_>>().into()
        };
        let share = |time: Span, of: Span| if of > Span::ZERO { percent(time, of) / 100.0 } else { 0.0 };
        let cause = |it: &GroupCause| {
            json!({
                "cause": it.kind.name(),
                "text": it.title(),
                "share": share(it.time, self.excess),
                "time_ns": ns(it.time),
                "flows": it.flows,
                "links": named(&it.links),
                "effects": named(&it.effects),
                "others": named(&it.others),
                "other_flows": it.other_flows,
                "other_hosts": it.other_hosts,
            })
        };
        let flow = |ShownFlow { slow: flow, of }: &ShownFlow<'_>| {
            let found = of.attribution;
            let causes = found.ranked().into_iter().map(|it| {
                let others: usize = it.causes.iter().map(|share| share.others.len()).sum();
                json!({
                    "cause": RootKind::of(it.root).name(),
                    "text": root_words(it.root, of.setup),
                    "share": share(it.time, found.excess()),
                    "time_ns": ns(it.time),
                    "other_flows": others,
                })
            });
            json!({
                "run": runs[flow.run].summary.run,
                "seed": runs[flow.run].summary.seed,
                "flow": flow.row.flow,
                "src": flow.row.src,
                "dst": flow.row.dst,
                "size_bytes": flow.row.size.get(),
                "fct_ns": ns(found.took),
                "ideal_ns": ns(found.ideal),
                "slowdown": flow.slowdown,
                "causes": causes.collect::<Vec<_>>(),
            })
        };
        json!({
            "name": self.group.name,
            "part": self.group.part,
            "flows": self.group.flows,
            "unfinished": self.group.unfinished,
            "excess_ns": ns(self.excess),
            "causes": self.causes.iter().map(cause).collect::<Vec<_>>(),
            "slowest": self.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    }
}

fn slowest_in_words(flows: usize) -> String {
    if flows == 1 { "slowest".to_owned() } else { format!("{flows} slowest") }
}

fn ns(span: Span) -> f64 {
    span.ps() as f64 / 1e3
}
