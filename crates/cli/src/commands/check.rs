//! `narrows check`: everything that can be known of a scenario without simulating it.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use fabric::Limit;
use scenario::{CableLine, CheckedRun, CodingLine, Overrides, SwitchLine};
use sim::{Module, PathChoice};
use units::Bytes;

use crate::args::CheckArgs;
use crate::exit::{Failure, print};
use crate::session::{known_schemes, tables};
use crate::table::{bytes, count};

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let overrides = Overrides { set: args.set.clone(), seed: None, scale: args.scale.clone() };
    let mut failures = Vec::new();
    for path in &args.scenarios {
        let checked = || {
            let it = scenario::load(path, &overrides)?;
            known_schemes(&it, &args.schemes)?;
            tables(&it)?;
            Ok::<_, Failure>((scenario::check(&it)?, it))
        };
        match checked() {
            Ok((report, it)) if args.resolved => {
                drop(report);
                print(&it.resolved_toml())?;
            }
            Ok((report, _)) if !args.quiet => {
                print(&describe(&path.display().to_string(), &report.runs, &args.schemes))?;
            }
            Ok(_) => {}
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Input(failures.join("\n\n"))) }
}

/// The runs of some schemes, or of all if none is named. What is the same in all runs is said once.
fn describe(path: &str, runs: &[CheckedRun], schemes: &[String]) -> String {
    let mut text = String::new();
    let shown = || runs.iter().filter(|run| schemes.is_empty() || schemes.contains(&run.scheme));
    let of = if schemes.is_empty() { String::new() } else { format!(", {} of these schemes", shown().count()) };
    let _ = writeln!(text, "{path}: {}{of}", count(runs.len(), "run"));
    let mut last: Option<&CheckedRun> = None;
    for run in shown() {
        if last.is_some_and(|last| last.report == run.report && last.warnings == run.warnings) {
            let _ = writeln!(text, "\n{} ({}): as above", run.id, run.label);
            continue;
        }
        let _ = write!(text, "\n{} ({})\n{}", run.id, run.label, one(run));
        last = Some(run);
    }
    text
}

fn one(run: &CheckedRun) -> String {
    let report = &run.report;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  {} and {} in {}, {}",
        count(report.hosts, "host"),
        count(report.switches, "switch"),
        count(report.datacenters.into(), "datacenter"),
        count(report.links, "directed link"),
    );
    for (name, rtt) in [("inside", report.intra_rtt), ("between", report.inter_rtt)] {
        if let Some(rtt) = rtt {
            let _ = writeln!(text, "  base round trip {name} datacenters: {} to {}", rtt.min, rtt.max);
        }
    }
    let _ = writeln!(text, "  {}, {} of payload", count(report.flows, "flow"), bytes(report.payload.get()));
    if report.failing > 0 {
        let (links, times) = (count(report.failing, "directed link"), count(report.outages, "time"));
        let _ = writeln!(text, "  {links} fail, {times} in all");
    }
    if let Some(paths) = paths(report.path) {
        let _ = writeln!(text, "  {paths}");
    }
    if let Some(it) = &report.coding {
        let _ = writeln!(text, "  {}", coding(it));
    }
    if let Some(wait) = report.data_waits {
        let _ = writeln!(
            text,
            "  FlashPass: data leaves {wait} after the emulation packet whose credit came back (T_wait)"
        );
    }
    for line in &report.shared {
        let _ = writeln!(text, "  {}", sharing(line));
        for cables in &line.gates {
            let _ = writeln!(text, "    {}", gate_line(cables, line.switch.pfc.is_some()));
        }
    }
    if let Some(on_ramp) = &report.on_ramp {
        let over = if on_ramp.over_base { " more than its empty path's" } else { "" };
        let _ = writeln!(
            text,
            "  On-Ramp: a flow is held while its one-way delay is over {}{over}",
            on_ramp.params.threshold
        );
    }
    for (module, ports) in &report.modules {
        let _ = writeln!(text, "  {}", controller(module, *ports));
    }
    for arrivals in &report.arrivals {
        let _ = writeln!(
            text,
            "  traffic {}: {}.{:03} {} flows a second of {} on average, {} offered",
            arrivals.traffic,
            arrivals.per_1000_s / 1000,
            arrivals.per_1000_s % 1000,
            arrivals.class.name(),
            bytes(arrivals.mean_size.get()),
            arrivals.offered,
        );
    }
    for it in &report.requested {
        let _ = writeln!(
            text,
            "  traffic {}: {}, {}.{:03} a second, each answered by {} with {} each, {} offered",
            it.traffic,
            count(it.count, "request"),
            it.per_1000_s / 1000,
            it.per_1000_s % 1000,
            count(it.fanout as usize, "host"),
            bytes(it.size.get()),
            it.offered,
        );
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["link class", "links", "capacity", "payload that crosses", "mean load by arrivals"]);
    for load in &report.loads {
        let percent = format!("{:.1} %", load.arrivals_ppm as f64 / 1e4);
        let percent = if load.arrivals_ppm == 0 { "-".into() } else { percent };
        table.add_row([
            load.class.name().to_owned(),
            load.links.to_string(),
            load.capacity.to_string(),
            bytes(load.payload.get()),
            percent,
        ]);
    }
    for line in table.to_string().lines() {
        let _ = writeln!(text, "  {line}");
    }
    for warning in &run.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}

/// How flows choose paths, where they do more than keep or spray.
fn paths(path: PathChoice) -> Option<String> {
    match path {
        PathChoice::PerFlow | PathChoice::AfterTimeout | PathChoice::PerPacket(_) => None,
        PathChoice::UnoLb(it) => {
            let recent = it.recent.map_or("a base round trip".to_owned(), |span| span.to_string());
            let rule = if it.random {
                "silent ones draw another path".to_owned()
            } else {
                format!("a bad one takes the path of one acknowledged within {recent}")
            };
            let laws = if path.laws() > 1 { ", each with a law of its own," } else { "" };
            Some(format!("paths: {}{laws} in turn (UnoLB); {rule}", count(it.subflows.into(), "subflow")))
        }
        PathChoice::Plb(it) => Some(format!(
            "paths: PLB, another one after {} over {:.0} % marked when idle, after {} at once",
            count(it.idle_rounds as usize, "round trip"),
            100.0 * it.threshold.bits() as f64 / (1u64 << 32) as f64,
            it.rounds,
        )),
    }
}

/// How flows are coded.
fn coding(it: &CodingLine) -> String {
    let code = it.coding.code;
    let tail = code.tail.map_or(String::new(), |tail| format!(", of the last {} of a flow", bytes(tail.get())));
    let gaps = if it.coding.gaps { " or by gaps" } else { "" };
    format!(
        "{} coded, blocks of {} data and {} parity packets{tail}: {}; a block is asked for after {}{gaps}",
        count(it.flows, "flow"),
        code.data,
        code.parity,
        count(it.parity as usize, "parity packet"),
        it.block_timer,
    )
}

/// How a kind of switch shares its buffer.
fn sharing(line: &SwitchLine) -> String {
    let pauses = match line.switch.pfc {
        Some(pfc) if pfc.relay => "relays pauses",
        Some(_) => "pauses",
        None => "drops",
    };
    let size = |size: Bytes| if size == Bytes::MAX { "unlimited".to_owned() } else { bytes(size.get()) };
    let int = if line.switch.int { ", reports its ports (INT)" } else { "" };
    format!(
        "{} of tier {}: buffer {}, of which {} headroom, {} reserve, {} shared by {}; {pauses}{int}",
        count(line.count, "switch"),
        line.tier.name(),
        size(line.switch.buffer),
        bytes(line.headroom.get()),
        bytes(line.reserved.get()),
        size(line.shared),
        count(line.ports, "port"),
    )
}

/// A controller of LSCC's, at so many ports.
fn controller(module: &Module, ports: usize) -> String {
    let at = count(ports, "port");
    match module {
        Module::RateCalculation(it) => format!(
            "LSCC, far end, {at}: a rate every {}, {} on their way (N); {} to {}, by up to {} each time; queue aimed at {}",
            it.period,
            it.entries(),
            it.lowest,
            it.highest,
            it.step,
            bytes(it.reference.get()),
        ),
        Module::RateLimiting(it) if it.telemetry => {
            format!(
                "LSCC, near end, {at}: sources get the reports of ports, and the pseudo-queue, for each data packet"
            )
        }
        Module::RateLimiting(it) => format!(
            "LSCC, near end, {at}: sources are told over a pseudo-queue of {}, every {} at most; flows under {} are told \
             unmarked, too; marks are kept for {}",
            bytes(it.reference.get()),
            it.interval,
            bytes(it.long_flow.get()),
            it.reset,
        ),
    }
}

/// What a cable may hold.
fn gate_line(CableLine { class, gate, may_arrive }: &CableLine, pauses: bool) -> String {
    let class = class.name();
    let off = match gate.off {
        Limit::Bytes(size) => bytes(size.get()),
        Limit::Alpha(alpha) => format!("{} of what is left", alpha.bits() as f64 / (1u64 << 32) as f64),
    };
    let resumes = bytes(gate.hysteresis.get());
    if pauses {
        let headroom = bytes(gate.headroom.get());
        let short = may_arrive.filter(|&it| gate.headroom < it).map_or(String::new(), |it| {
            let lacks = bytes((it - gate.headroom).get());
            format!(", {lacks} less than may arrive at worst after a pause: packets may be lost")
        });
        format!("{class}: pauses at {off}, resumes at {resumes} less; headroom {headroom}{short}")
    } else {
        format!("{class}: drops at {off}")
    }
}
