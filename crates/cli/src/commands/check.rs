//! `narrows check`: everything that can be known of a scenario without simulating it.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use experiment::SwitchController;
use fabric::{Limit, LinkClass};
use flow::LoadBalancing;
use laws::SendLimits;
use results::conditions::NO_LIMIT;
use results::warning_groups::{RunWarnings, group_warnings};
use scenario::{
    CableLine, CheckedRun, ClassLine, ClassLoad, CodingLine, FlowClass, LinkLoad, Overrides, RunReport, SwitchLine,
};
use serde_json::Value;
use study::{check_tables, count, known_schemes, tables};
use units::{Bytes, Rate};

use crate::args::CheckArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::sheet::{Datum, Sheet, SheetCell, SheetRow, print_csv};
use crate::table::bytes;

pub(crate) fn check(args: &CheckArgs) -> Result<(), CommandFailure> {
    let overrides = Overrides { set: args.set.clone(), scale: args.scale.clone(), ..Overrides::default() };
    let (mut failures, mut sheets) = (Vec::new(), Vec::new());
    let shown = |run: &&CheckedRun| args.schemes.is_empty() || args.schemes.contains(&run.scheme);
    for path in &args.scenarios {
        let checked = || {
            let scenario = scenario::load(path, &overrides)?;
            known_schemes(&scenario, &args.schemes)?;
            // A mistake in the tables is reported alone, before mistakes in the runs.
            tables(&scenario)?;
            let report = scenario::check(&scenario)?;
            check_tables(&scenario)?;
            Ok::<_, CommandFailure>((report, scenario))
        };
        match checked() {
            Ok((report, scenario)) if args.resolved => {
                drop(report);
                print(&scenario.resolved_toml())?;
            }
            Ok((report, _)) if args.csv => {
                let path = path.display().to_string();
                for run in report.runs.iter().filter(shown) {
                    sheets.push(links(run, &path));
                    run.warnings.iter().for_each(|warning| print_stderr(&format!("warning: {}: {warning}", run.id)));
                }
            }
            Ok((report, _)) if !args.quiet => {
                print(&describe(&path.display().to_string(), &report.runs, &args.schemes))?;
            }
            Ok(_) => {}
            Err(failure) => failures.push(failure),
        }
    }
    if args.csv && !sheets.is_empty() {
        print_csv(&sheets, None)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(CommandFailure::Files(failures)) }
}

/// The maximum number of lines of differences between runs, and of warnings. With one run in full that is about a
/// screen.
const MAX_DIFFERENT: usize = 14;
const MAX_WARNINGS: usize = 6;

/// The runs of some schemes, or of all if none is named: the first run in full, then the differences between runs.
fn describe(path: &str, runs: &[CheckedRun], schemes: &[String]) -> String {
    let mut text = String::new();
    let shown: Vec<&CheckedRun> =
        runs.iter().filter(|run| schemes.is_empty() || schemes.contains(&run.scheme)).collect();
    let of = if schemes.is_empty() { String::new() } else { format!(", {} of these schemes", shown.len()) };
    let _ = writeln!(text, "{path}: {}{of}", count(runs.len(), "run"));
    let Some(first) = shown.first() else { return text };
    let points: Vec<Vec<(String, Value)>> = shown.iter().map(|run| point(run)).collect();
    if shown.len() > 1 {
        text.push_str(&describe_grid(&points));
    }
    let _ = write!(text, "\n{} ({})\n", first.id, first.label);
    for line in facts(first).iter().flat_map(|fact| fact.text.lines()).chain(render(&links(first, path)).lines()) {
        let _ = writeln!(text, "  {line}");
    }
    if shown.len() == 1 {
        for warning in &first.warnings {
            let _ = writeln!(text, "  warning: {warning}");
        }
        for note in &first.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        return text;
    }
    let all: Vec<Vec<Fact>> = shown.iter().map(|run| facts(run).into_iter().chain([loads(run)]).collect()).collect();
    let different: Vec<String> = by_topic(&all)
        .iter()
        .filter(|groups| groups.len() > 1 || groups[0].1.len() < shown.len())
        .flat_map(|groups| different(groups, &shown, &points))
        .collect();
    if different.is_empty() {
        text.push_str("\nthe others: as above\n");
    }
    push_limited(&mut text, "\nwhat differs\n", &different, MAX_DIFFERENT);
    let grouped_lines = |word: &str, texts: fn(&CheckedRun) -> &Vec<String>| {
        let of = shown.iter().zip(&points).map(|(run, point)| RunWarnings { run: &run.id, point, texts: texts(run) });
        let causes = group_warnings(&of.collect::<Vec<_>>()).into_iter();
        causes.map(|cause| format!("{word}: {cause}")).collect::<Vec<String>>()
    };
    push_limited(&mut text, "\n", &grouped_lines("warning", |run| &run.warnings), MAX_WARNINGS);
    push_limited(&mut text, "\n", &grouped_lines("note", |run| &run.notes), MAX_WARNINGS);
    text
}

/// A line about one topic of a run.
struct Fact {
    topic: String,
    text: String,
}

/// The texts about one topic, each with the runs that it is about.
type TopicTexts = Vec<(String, Vec<usize>)>;

/// Groups the facts of all runs by topic. The first run's topics are first, in its order.
fn by_topic(all: &[Vec<Fact>]) -> Vec<TopicTexts> {
    let mut topics: Vec<(&str, TopicTexts)> = Vec::new();
    for (run, fact) in all.iter().enumerate().flat_map(|(run, facts)| facts.iter().map(move |fact| (run, fact))) {
        let index = topics.iter().position(|(topic, _)| *topic == fact.topic).unwrap_or_else(|| {
            topics.push((&fact.topic, TopicTexts::new()));
            topics.len() - 1
        });
        let groups = &mut topics[index].1;
        match groups.iter_mut().find(|(text, _)| *text == fact.text) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((fact.text.clone(), vec![run])),
        }
    }
    topics.into_iter().map(|(_, groups)| groups).collect()
}

/// Returns the differences in a topic: the keys of the grid that it depends on, and an example from another run than
/// the first.
fn different(groups: &TopicTexts, shown: &[&CheckedRun], points: &[Vec<(String, Value)>]) -> [String; 2] {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in points.iter().flatten() {
        if !keys.contains(&key.as_str()) && depends(groups, points, key) {
            keys.push(key);
        }
    }
    let (text, runs) = groups.iter().rfind(|(_, runs)| !runs.contains(&0)).unwrap_or(&groups[0]);
    let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(", ")) };
    let values = if groups.len() > 1 { count(groups.len(), "value") } else { "in some runs only".to_owned() };
    let first_line = text.lines().next().unwrap_or_default();
    [format!("{values}{by}; {}:", shown[runs[0]].id), format!("  {first_line}")]
}

/// Returns whether any two runs that differ in this key alone have different texts.
fn depends(groups: &TopicTexts, points: &[Vec<(String, Value)>], key: &str) -> bool {
    let text_index_of = |run: usize| groups.iter().position(|(_, runs)| runs.contains(&run));
    let mut seen = Vec::new();
    (0..points.len()).any(|run| {
        let others: Vec<_> = points[run].iter().filter(|(known, _)| known != key).collect();
        let text_index = text_index_of(run);
        let other_index = seen.iter().find(|(known, _)| *known == others).map(|(_, text_index)| *text_index);
        seen.push((others, text_index));
        other_index.is_some_and(|other| other != text_index)
    })
}

/// Adds lines under a heading, at most `max_lines`, and then how many more there are.
fn push_limited(text: &mut String, heading: &str, lines: &[String], max_lines: usize) {
    if lines.is_empty() {
        return;
    }
    text.push_str(heading);
    for line in lines.iter().take(max_lines) {
        let _ = writeln!(text, "  {line}");
    }
    if lines.len() > max_lines {
        let more = count(lines.len() - max_lines, "line");
        let _ = writeln!(text, "  ... {more} more; --scheme NAME shows one scheme alone");
    }
}

/// The scheme of a run and its point in the grid.
fn point(run: &CheckedRun) -> Vec<(String, Value)> {
    let point = run.point.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
    std::iter::once(("scheme".to_owned(), Value::from(run.scheme.as_str()))).chain(point).collect()
}

/// The schemes and the grid's keys with their values, a line each.
fn describe_grid(points: &[Vec<(String, Value)>]) -> String {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in points.iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        match keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        }
    }
    let mut text = String::new();
    for (key, values) in keys {
        let _ = writeln!(text, "  {key}: {}", values.join(", "));
    }
    text
}

/// The facts of a run, without its links' loads.
fn facts(run: &CheckedRun) -> Vec<Fact> {
    let report = &run.report;
    let mut facts = Vec::new();
    let mut add_fact = |topic: &str, text: String| facts.push(Fact { topic: topic.to_owned(), text });
    let network = format!(
        "{} and {} in {}, {}",
        count(report.hosts, "host"),
        count(report.switches, "switch"),
        count(report.datacenters.into(), "datacenter"),
        count(report.links, "directed link"),
    );
    add_fact("network", network);
    let rtts = [("inside", report.intra_rtt, FlowClass::Intra), ("between", report.inter_rtt, FlowClass::Inter)];
    for (name, rtt, class) in rtts {
        if let Some(rtt) = rtt {
            let line = report
                .classes
                .iter()
                .find(|line| line.class == class)
                .map_or_else(String::new, describe_initial_window);
            add_fact(name, format!("base round trip {name} datacenters: {} to {}{line}", rtt.min, rtt.max));
        }
    }
    add_fact("flows", format!("{}, {} of payload", count(report.flows, "flow"), bytes(report.payload.get())));
    if report.failing > 0 {
        let (links, times) = (count(report.failing, "directed link"), count(report.outages, "time"));
        add_fact("failures", format!("{links} fail, {times} in all"));
    }
    if let Some(paths) = paths(report.path) {
        add_fact("paths", paths);
    }
    if let Some(line) = &report.coding {
        add_fact("coding", coding(line));
    }
    if let Some(wait) = report.data_wait {
        let text = format!("FlashPass: data leaves {wait} after the emulation packet of the returned credit (T_wait)");
        add_fact("flashpass", text);
    }
    for line in &report.shared {
        let limits = line.cables.iter().map(|cables| format!("\n  {}", limit_line(cables, line)));
        add_fact(&format!("switches {}", line.tier.name()), std::iter::once(sharing(line)).chain(limits).collect());
    }
    if let Some(on_ramp) = &report.on_ramp {
        let over = if on_ramp.on_queueing_delay { " more than its empty path's" } else { "" };
        let threshold = on_ramp.params.threshold;
        add_fact("on-ramp", format!("On-Ramp: a flow is held while its one-way delay is over {threshold}{over}"));
    }
    for (module, ports) in &report.modules {
        let topic = match module {
            SwitchController::RateCalculation(_) => "far end",
            SwitchController::RateLimiting(_) => "near end",
        };
        add_fact(topic, controller(module, *ports));
    }
    for arrivals in &report.arrivals {
        let text = format!(
            "traffic {}: {}.{:03} {} flows a second of {} on average, {} offered",
            arrivals.traffic,
            arrivals.per_1000_s / 1000,
            arrivals.per_1000_s % 1000,
            arrivals.class.name(),
            bytes(arrivals.mean_size.get()),
            arrivals.offered,
        );
        add_fact(&format!("arrivals {} {}", arrivals.traffic, arrivals.class.name()), text);
    }
    for requested in &report.requested {
        let text = format!(
            "traffic {}: {}, {}.{:03} a second, each answered by {} with {} each, {} offered",
            requested.traffic,
            count(requested.count, "request"),
            requested.per_1000_s / 1000,
            requested.per_1000_s % 1000,
            count(requested.fanout as usize, "host"),
            bytes(requested.size.get()),
            requested.offered,
        );
        add_fact(&format!("requests {}", requested.traffic), text);
    }
    for closed in &report.loops {
        let until = closed.reads.map_or("until the stop".to_owned(), |reads| format!("{reads} in all"));
        let text = format!(
            "traffic {}: each of {} keeps {} of {} on average under way, {until}; their links carry {}",
            closed.traffic,
            count(closed.clients, "client"),
            count(closed.outstanding as usize, "read"),
            bytes(closed.mean_size.get()),
            closed.at_most,
        );
        add_fact(&format!("loop {}", closed.traffic), text);
    }
    for job in &report.jobs {
        let parts: Vec<String> =
            job.payload.iter().map(|(kind, size)| format!("{} {}", kind.name(), bytes(size.get()))).collect();
        let text = format!(
            "job {}: {} on {}, {} of {} each: {}; an iteration computes for {}",
            job.name,
            count(job.ranks as usize, "rank"),
            count(job.hosts, "host"),
            count(job.iterations, "iteration"),
            count(job.flows as usize, "flow"),
            parts.join(", "),
            job.compute,
        );
        add_fact(&format!("job {}", job.name), text);
    }
    facts
}

/// Bandwidth-delay product and initial window of a class of flows.
fn describe_initial_window(line: &ClassLine) -> String {
    let range = |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
    let bdp = range(bytes(line.least.bdp.get()), bytes(line.most.bdp.get()));
    let initial = range(describe_limits(line.least.send_limits), describe_limits(line.most.send_limits));
    format!("; bandwidth-delay product {bdp}; initial window {initial}")
}

/// Describes the send limits before the first acknowledgement.
fn describe_limits(limits: Option<SendLimits>) -> String {
    match limits {
        // A window of a terabyte limits nothing.
        Some(SendLimits { window, pacing }) if window != Bytes::MAX && window.get() >= NO_LIMIT => {
            self::describe_limits(Some(SendLimits { window: Bytes::MAX, pacing }))
        }
        None => "by credits, or of an external law".to_owned(),
        Some(SendLimits { window: Bytes::MAX, pacing: Rate::MAX }) => "unlimited".to_owned(),
        Some(SendLimits { window: Bytes::MAX, pacing }) => format!("unlimited at {pacing}"),
        Some(SendLimits { window, pacing: Rate::MAX }) => bytes(window.get()),
        Some(SendLimits { window, pacing }) => format!("{} at {pacing}", bytes(window.get())),
    }
}

/// Load of links by class of a run of the scenario in a file.
fn links(run: &CheckedRun, path: &str) -> Sheet {
    let row = |load: &ClassLoad| {
        let most = most_loaded(&run.report, load.class);
        let greatest = most.iter().max_by_key(|load| load.ppm);
        let (ppm, link) = (greatest.map(|load| load.ppm), greatest.map_or(String::new(), |load| load.link.clone()));
        let most: Vec<String> = most.iter().map(|load| format!("{} {}", load.link, percent(load.ppm))).collect();
        let most = if most.is_empty() { "-".to_owned() } else { most.join("\n") };
        let share = |ppm: u64| Some(ppm as f64 / 1e6);
        let cells = vec![
            SheetCell::count(load.links as u64),
            SheetCell::new(load.capacity.to_string(), "bps", Datum::Whole(load.capacity.bps())),
            SheetCell::new(bytes(load.payload.get()), "bytes", Datum::Whole(load.payload.get())),
            SheetCell::new(by_arrivals(load), "", share(load.arrivals_ppm).filter(|load| *load > 0.0)),
            SheetCell::new(most, "", ppm.and_then(share)).with("link", Datum::Text(link)),
        ];
        let keys = [("scenario", path), ("run", &run.id)];
        let keys = keys.map(|(key, value)| (key.to_owned(), Datum::Text(value.to_owned()))).into();
        SheetRow { name: load.class.name().to_owned(), keys, cells }
    };
    let columns = ["links", "capacity", "payload that crosses", "mean load by arrivals", "most loaded"];
    let rows = run.report.loads.iter().map(row).collect();
    let columns = columns.map(str::to_owned).into();
    Sheet { name: "links", title: String::new(), first: "link class", columns, rows }
}

fn render(sheet: &Sheet) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(std::iter::once(sheet.first).chain(sheet.columns.iter().map(String::as_str)));
    for row in &sheet.rows {
        table.add_row(std::iter::once(&row.name).chain(row.cells.iter().map(|cell| &cell.shown)));
    }
    table.to_string()
}

/// The most loaded links of a class, in each direction between datacenters.
fn most_loaded(report: &RunReport, class: LinkClass) -> Vec<&LinkLoad> {
    report.most_loaded.iter().filter(|load| load.class == class).collect()
}

/// The same in one line, for runs in which it differs.
fn loads(run: &CheckedRun) -> Fact {
    let class = |load: &ClassLoad| match load.arrivals_ppm {
        0 => format!("{} {}", load.class.name(), bytes(load.payload.get())),
        _ => format!("{} {}", load.class.name(), by_arrivals(load)),
    };
    let classes = run.report.loads.iter().map(class).collect::<Vec<_>>().join(", ");
    let worst = run.report.most_loaded.iter().max_by_key(|load| load.ppm);
    let worst = worst.map_or(String::new(), |load| format!("; most loaded: {} {}", load.link, percent(load.ppm)));
    let text = format!("links: {classes}{worst}");
    Fact { topic: "links".to_owned(), text }
}

fn by_arrivals(load: &ClassLoad) -> String {
    if load.arrivals_ppm == 0 { "-".into() } else { percent(load.arrivals_ppm) }
}

fn percent(ppm: u64) -> String {
    format!("{:.1} %", ppm as f64 / 1e4)
}

/// Returns the flows' load balancing, where it does more than keep or spray.
fn paths(path: LoadBalancing) -> Option<String> {
    match path {
        LoadBalancing::PerFlow | LoadBalancing::AfterTimeout | LoadBalancing::PerPacket(_) => None,
        LoadBalancing::UnoLb(uno_lb) => {
            let recent = uno_lb.recent.map_or("a base round trip".to_owned(), |span| span.to_string());
            let rule = if uno_lb.random {
                "silent ones draw another path".to_owned()
            } else {
                format!("a bad one takes the path of one acknowledged within {recent}")
            };
            let laws = if path.laws() > 1 { ", each with a law of its own," } else { "" };
            Some(format!("paths: {}{laws} in turn (UnoLB); {rule}", count(uno_lb.subflows.into(), "subflow")))
        }
        LoadBalancing::Reps(reps) => Some(format!(
            "paths: REPS, of {}; a timeout freezes {} for {}, then {} explore",
            count(reps.entropies.into(), "path"),
            count(reps.buffer.into(), "kept one"),
            reps.freeze,
            count(reps.explore.into(), "packet"),
        )),
        LoadBalancing::Plb(plb) => Some(format!(
            "paths: PLB, another one after {} over {:.0} % marked when idle, after {} at once",
            count(plb.idle_rounds as usize, "round trip"),
            100.0 * plb.threshold.bits() as f64 / (1u64 << 32) as f64,
            plb.rounds,
        )),
    }
}

/// Returns the coding of the flows.
fn coding(line: &CodingLine) -> String {
    let code = line.coding.code;
    let tail = code.tail.map_or(String::new(), |tail| format!(", of the last {} of a flow", bytes(tail.get())));
    let gaps = if line.coding.gaps { " or by gaps" } else { "" };
    format!(
        "{} coded, blocks of {} data and {} parity packets{tail}: {}; a block is asked for after {}{gaps}",
        count(line.flows, "flow"),
        code.data,
        code.parity,
        count(line.parity as usize, "parity packet"),
        line.block_timer,
    )
}

/// Returns the buffer sharing of a kind of switch.
fn sharing(line: &SwitchLine) -> String {
    let pauses = match line.switch.pfc {
        Some(pfc) if pfc.relay => "relays pauses",
        Some(_) => "pauses",
        None => "drops",
    };
    let size = |size: Bytes| if size == Bytes::MAX { "unlimited".to_owned() } else { bytes(size.get()) };
    let int = if line.switch.int { ", reports its ports (INT)" } else { "" };
    format!(
        "{} of tier {}: buffer {} ({} headroom, {} reserve, {} shared by {}); {pauses}{int}",
        count(line.count, "switch"),
        line.tier.name(),
        size(line.switch.buffer),
        bytes(line.headroom.get()),
        bytes(line.reserved.get()),
        size(line.shared),
        count(line.ports, "port"),
    )
}

/// A controller of LSCC's, at `ports` ports.
fn controller(module: &SwitchController, ports: usize) -> String {
    let at = count(ports, "port");
    match module {
        SwitchController::RateCalculation(calculation) => format!(
            "LSCC, far end, {at}: a rate every {}, {} on their way (N); {} to {}, by up to {} each time; queue aimed at {}",
            calculation.period,
            calculation.entries(),
            calculation.lowest,
            calculation.highest,
            calculation.step,
            bytes(calculation.reference.get()),
        ),
        SwitchController::RateLimiting(limiting) if limiting.telemetry => {
            format!(
                "LSCC, near end, {at}: sources get the reports of ports, and the pseudo-queue, for each data packet"
            )
        }
        SwitchController::RateLimiting(limiting) => format!(
            "LSCC, near end, {at}: sources are notified over a pseudo-queue of {}, every {} at most; flows under {} are \
             notified without a mark, too; marks are kept for {}",
            bytes(limiting.reference.get()),
            limiting.interval,
            bytes(limiting.long_flow.get()),
            limiting.reset,
        ),
    }
}

/// Returns the ingress limits of a class of cables at these switches.
fn limit_line(CableLine { class, ingress_limit, may_arrive }: &CableLine, line: &SwitchLine) -> String {
    let class = class.name();
    let off = match ingress_limit.xoff {
        Limit::Bytes(size) => bytes(size.get()),
        Limit::Alpha(alpha) => format!("{} of what is left", alpha.bits() as f64 / (1u64 << 32) as f64),
    };
    let resumes = bytes(ingress_limit.xon_offset.get());
    if line.switch.pfc.is_some() {
        let headroom = bytes(ingress_limit.headroom.get());
        let short = may_arrive.filter(|&most| ingress_limit.headroom < most).map_or(String::new(), |most| {
            let lacks = bytes((most - ingress_limit.headroom).get());
            format!(", {lacks} less than may arrive at worst after a pause: packets may be lost")
        });
        format!("{class}: pauses at {off}, resumes at {resumes} less; headroom {headroom}{short}")
    } else {
        format!("{class}: drops at {off}")
    }
}
