//! Checks that real packets can run a scenario, and warnings about scenarios that they can.

use std::collections::BTreeSet;

use emulator::RouterOutcome;
use experiment::Setup;
use fabric::{HostId, LinkId};
use laws::catalog::EcnSupport;
use router::IpVersion;
use scenario::{BuiltRun, FlowClass};
use units::{Bytes, Rate, Span};

use super::super::ip_version;
use crate::args::{EmulateArgs, Stack};
use crate::exit::CommandFailure;

/// Each host is a namespace with a kernel's TCP of its own.
const MAX_HOSTS: usize = 64;

/// More than one thread passes on.
const MAX_RATE: Rate = Rate::from_gbps(10);

/// Base round trips under this are of the order of the emulator's own lateness.
const MIN_RTT: Span = Span::from_us(200);

/// TCP's header with time stamps.
const TCP: u32 = 32;

/// Refuses runs that cannot be emulated.
pub(super) fn refuse(built: &BuiltRun, args: &EmulateArgs) -> Result<(), CommandFailure> {
    let setup = &built.setup;
    let refused = |reason: String| Err(CommandFailure::Input(format!("error: real packets cannot do this: {reason}")));
    // Any host may be named by a command.
    let flows = if args.command.is_empty() { &setup.flows[..] } else { &[] };
    let used: BTreeSet<HostId> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    let hosts = if args.command.is_empty() { used.len() } else { setup.network.hosts().len() };
    if hosts > MAX_HOSTS {
        return refused(if args.command.is_empty() {
            format!("{hosts} hosts send or receive, and at most {MAX_HOSTS} are emulated")
        } else {
            format!("[topology] has {hosts} hosts, and at most {MAX_HOSTS} are emulated")
        });
    }
    let (wire, least) = (setup.host.mss + setup.host.header, min_packet(args.stack()));
    if !(least..=65_535).contains(&wire) {
        return refused(format!(
            "`host.mss` and `host.header` are {wire} B together, and {least} to 65535 are accepted"
        ));
    }
    Ok(())
}

/// Returns the shortest full packet of a stack on the wire, in bytes.
const fn min_packet(stack: Stack) -> u32 {
    match stack {
        Stack::Kernel => 1_280,
        Stack::Narrows => 512,
    }
}

/// Refuses settings that the kernel's TCP does not support.
pub(super) fn refuse_for_kernel(built: &BuiltRun, args: &EmulateArgs) -> Result<(), CommandFailure> {
    let setup = &built.setup;
    let refused = |reason: String| Err(CommandFailure::Input(format!("error: real packets cannot do this: {reason}")));
    let flows = setup.flows.len();
    if args.command.is_empty() && flows > emulator::MAX_FLOWS {
        return refused(format!("[[traffic]] makes {flows} flows, and at most {} are run", emulator::MAX_FLOWS));
    }
    Ok(())
}

/// Returns warnings about the scenario as one for real packets.
pub(super) fn warnings(built: &BuiltRun, args: &EmulateArgs) -> Vec<String> {
    let setup = &built.setup;
    let own_traffic = args.command.is_empty();
    let mut messages = Vec::new();
    let rate = max_total_rate(setup);
    if own_traffic && rate > MAX_RATE {
        messages.push(format!(
            "the flows' narrowest links carry {rate} together, and one thread passes on up to some {MAX_RATE}: the \
             emulator may be the bottleneck"
        ));
    }
    let rtt = built.report.intra_rtt.into_iter().chain(built.report.inter_rtt).map(|range| range.min).min();
    if let Some(rtt) = rtt.filter(|&rtt| rtt < MIN_RTT) {
        messages.push(format!("base round trips of {rtt} are of the order of the emulator's own lateness"));
    }
    messages
}

/// Returns warnings about the scenario as one for the kernel's TCP.
pub(super) fn kernel_warnings(built: &BuiltRun, args: &EmulateArgs) -> Vec<String> {
    let setup = &built.setup;
    let own_traffic = args.command.is_empty();
    let mut messages = Vec::new();
    let header = TCP + ip_version(args).header_bytes();
    let wire = setup.host.mss + setup.host.header;
    let host = &setup.host;
    let simulated = (host.mss, host.header, host.ack_size, host.ack_every);
    // Every packet or every second one: both can be had.
    let real = (wire - header, header, header, host.ack_every.min(2));
    if own_traffic && simulated != real {
        let list = |(payload, header, ack_size, ack_every): (u32, u32, u32, u8)| {
            format!("payload {payload}, header {header}, ack_size {ack_size}, ack_every {ack_every}")
        };
        messages.push(format!(
            "[host] has {}, and the kernel's TCP has {}: the simulated host differs",
            list(simulated),
            list(real)
        ));
    }
    messages
}

/// Returns a note on keys that are ignored because they model properties that real hosts have by themselves.
pub(super) fn ignored(keys: &[String]) -> Option<String> {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    (!keys.is_empty()).then(|| format!("ignored, because real hosts have their own: {}", keys.join(", ")))
}

/// The rates of the narrowest links of all flows' paths, each link once: more than the flows can get together.
fn max_total_rate(setup: &Setup) -> Rate {
    let rate = |link: &LinkId| setup.network.port(*link).config().rate;
    let narrowest = setup.flows.iter().filter_map(|flow| {
        let path = setup.routes.path(&setup.network, flow.src, flow.dst, |_, _| 0);
        path.into_iter().min_by_key(rate)
    });
    let links: BTreeSet<LinkId> = narrowest.collect();
    Rate::from_bps(links.iter().map(|link| rate(link).bps()).fold(0, u64::saturating_add))
}

/// Returns a warning if senders counted more marks than ports made, which makes a run questionable: for a law that counts
/// marks, a receiver must report each mark once (RFC 8257 §3.2). `received` is the number of marked bytes that the kernel's
/// TCP counted for the scenario's flows.
pub(super) fn repeated_marks(built: &BuiltRun, received: Bytes, port_marks: u64, version: IpVersion) -> Option<String> {
    let setup = &built.setup;
    let counts_marks =
        |class| built.laws.law(class).is_some_and(|(law, _)| matches!(law.info().marks, EcnSupport::Used));
    if ![FlowClass::Intra, FlowClass::Inter].into_iter().all(counts_marks) {
        return None;
    }
    let header = TCP + version.header_bytes();
    let segment = u64::from(setup.host.mss + setup.host.header - header);
    let received = received.get() / segment;
    // An acknowledgement that covers several packets counts all of them.
    (received > port_marks + port_marks / 10 + 100).then(|| {
        format!(
            "senders received {received} marks, and ports set {port_marks}: a receiver's kernel echoed marks repeatedly"
        )
    })
}

/// Returns the router's warnings.
pub(super) fn router_warnings(router: &RouterOutcome, args: &EmulateArgs) -> Vec<String> {
    let mut messages = Vec::new();
    if !args.no_real_time && !router.real_time {
        messages.push("the emulator got no real-time scheduling: under load it is late by milliseconds".to_owned());
    }
    let refused = &router.refused;
    for (count, reason) in [
        (refused.malformed, "were malformed"),
        (refused.truncated, "were shorter than the length in their headers"),
        (refused.too_long, "were longer than the MTU"),
        (refused.no_memory, "found no memory in the emulator"),
        (refused.unwritable, "were not taken by the receiving host's kernel"),
        (router.device_drops, "were dropped by a host's device, because the emulator did not read it in time"),
        (router.capture_missed, "are missing in captures, because the disk was too slow or full"),
    ] {
        if count > 0 {
            messages.push(format!("{count} packets {reason}"));
        }
    }
    messages.extend(router.captures_ended.iter().chain(&router.captures_unnamed).cloned());
    messages
}

#[cfg(test)]
mod tests {
    use scenario::{Overrides, parse};

    use super::*;

    #[test]
    fn repeatedly_echoed_marks_are_reported() {
        let built = |law: &str| {
            let text = include_str!("../../../../../../scenarios/sim-to-real/transport.toml");
            let scenario = parse(text, "transport.toml", &Overrides::default()).unwrap();
            scenario.runs().into_iter().find(|run| run.scheme == law).unwrap().build().unwrap()
        };
        let segments = |count: u64| Bytes::new(count * 1_448);
        let dctcp = built("dctcp");
        assert_eq!(repeated_marks(&dctcp, segments(5_800), 5_240, IpVersion::V4), None);
        let message = repeated_marks(&dctcp, segments(12_359), 5_240, IpVersion::V4).unwrap();
        assert!(message.starts_with("senders received 12359 marks, and ports set 5240"), "{message}");
        // A law that is deaf to marks does not count them.
        assert_eq!(repeated_marks(&built("cubic"), segments(12_359), 5_240, IpVersion::V4), None);
    }
}
