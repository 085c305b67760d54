//! Thresholds without effect: marks above a port's maximum backlog, and targets for round trips below the base RTT.

use std::collections::BTreeMap;

use ::laws::PathInfo;
use ::laws::catalog::{LawKind, ParamValue};
use fabric::{Limit, LinkClass, LinkId, Network, NodeKind, PortConfig};
use units::{Bytes, Rate, Span};

use crate::class::FlowClass;
use crate::config::{Config, Ecn, PortClassOverrides, PortOverrides, Scheme};
use crate::law_plan::LawPlan;
use crate::run::Run;
use crate::survey::Survey;

/// Parameter of a law that is compared with whole round-trip times.
struct RttTarget {
    name: &'static str,
    /// None where that is the flow's own base round trip.
    default: Option<Span>,
}

fn rtt_targets(law: LawKind) -> Vec<RttTarget> {
    match law {
        LawKind::Timely => {
            let any = PathInfo { base_rtt: Span::ZERO, intra_rtt: Span::ZERO, line_rate: Rate::MAX, mss: Bytes::ZERO };
            let defaults = ::laws::timely::Params::for_path(&any);
            vec![
                RttTarget { name: "t_low", default: Some(defaults.t_low) },
                RttTarget { name: "t_high", default: Some(defaults.t_high) },
            ]
        }
        LawKind::Hpcc => vec![RttTarget { name: "base_rtt", default: None }],
        _ => Vec::new(),
    }
}

/// Maximum backlog of a port, and the setting that limits it.
struct MaxBacklog {
    bytes: Bytes,
    limit: &'static str,
}

/// Returns a warning for each key of ports with marking thresholds above their maximum backlog.
pub(super) fn marks(config: &Config, run: &Run, scheme: &Scheme, network: &Network, packet: Bytes) -> Vec<String> {
    let scheme_name = run.scheme.as_str();
    let mut found: BTreeMap<(String, &str), (String, usize)> = BTreeMap::new();
    for (number, link) in (0u32..).zip(network.links()) {
        let port = network.port(LinkId(number)).config();
        let is_switch = network.nodes()[link.from.index()].kind == NodeKind::Switch;
        if !is_switch {
            continue;
        }
        if let Some(phantom) = port.phantom.filter(|phantom| phantom.ecn.min > phantom.size) {
            let key = format!("{}.min", key(config, scheme_name, scheme, link.class, "phantom"));
            let message = || {
                let (min, size, port) = (phantom.ecn.min, phantom.size, network.link_name(LinkId(number)));
                (format!("is {min}, and the phantom queue of port {port} holds {size}: it marks nothing"), 0)
            };
            found.entry((key, "phantom")).or_insert_with(message).1 += 1;
        }
        let Some(ecn) = port.ecn else { continue };
        let Some(room) = room(network, LinkId(number), port) else { continue };
        // The queue that an accepted packet finds is shorter by that packet.
        // Of a buffer of a packet or two another warning speaks.
        let is_deep = room.bytes >= packet.times(2);
        let (name, threshold, effect) = if is_deep && ecn.min.saturating_add(packet) > room.bytes {
            ("min", ecn.min, "nothing is marked")
        // A shared buffer limits queues dynamically, and marks by chance begin below `max`.
        } else if ecn.max > port.buffer {
            ("max", ecn.max, "no queue is long enough to mark every packet")
        } else {
            continue;
        };
        let settings = config.port.settings(link.class, scheme.port.as_ref());
        let name = if matches!(settings.ecn, Ecn::Step(_)) { "step" } else { name };
        let key = format!("{}.{name}", key(config, scheme_name, scheme, link.class, "ecn"));
        let MaxBacklog { bytes, limit } = room;
        let message = || {
            let port = network.link_name(LinkId(number));
            (format!("is {threshold}, and port {port} can queue {bytes} ({limit}): {effect}"), 0)
        };
        found.entry((key, limit)).or_insert_with(message).1 += 1;
    }
    let line = |((key, _), (message, ports)): ((String, &str), (String, usize))| match ports {
        1 => format!("{key} {message}"),
        _ => format!("{key} {message}; the same at {ports} ports"),
    };
    found.into_iter().map(line).collect()
}

/// Returns none where a port queues without limit.
fn room(network: &Network, link: LinkId, port: &PortConfig) -> Option<MaxBacklog> {
    let own = (port.buffer != Bytes::MAX).then_some(MaxBacklog { bytes: port.buffer, limit: "its buffer" });
    let from = network.links()[link.index()].from;
    let Some(switch) = network.nodes()[from.index()].switch else { return own };
    let limits: Vec<fabric::IngressLimit> =
        network.links_out(from).map(|link| network.port(LinkId(link)).config().ingress_limit).collect();
    let shared = switch.buffer.saturating_sub(fabric::reserved_bytes(&switch, &limits, 1));
    if switch.buffer == Bytes::MAX {
        return own;
    }
    let mut rooms: Vec<MaxBacklog> = own.into_iter().collect();
    rooms.push(MaxBacklog { bytes: shared, limit: "the shared part of its switch's buffer" });
    if let Some(alpha) = switch.egress_alpha {
        rooms.push(MaxBacklog { bytes: dynamic(shared, alpha.bits()), limit: "egress_alpha of its switch" });
    }
    // The backlog of a port arrived over the other cables, each up to its limit.
    let others = (network.links_out(from).map(LinkId)).filter(|&other| other != link);
    let mut fixed = Bytes::ZERO;
    let mut shares = 0u64;
    for other in others {
        let limit = &network.port(other).config().ingress_limit;
        let after_pause = if switch.pfc.is_some() { limit.headroom } else { Bytes::ZERO };
        fixed = fixed.saturating_add(switch.reserve).saturating_add(after_pause);
        match limit.xoff {
            Limit::Bytes(bytes) => fixed = fixed.saturating_add(bytes),
            Limit::Alpha(alpha) => shares = shares.saturating_add(alpha.bits()),
        }
    }
    let bytes = fixed.saturating_add(dynamic(shared, shares));
    rooms.push(MaxBacklog { bytes, limit: "alpha or xoff of the cables into its switch" });
    rooms.into_iter().min_by_key(|room| room.bytes)
}

/// The equilibrium of a dynamic threshold: `alpha / (1 + alpha)` of the shared part; `alpha` in units of 2^-32.
fn dynamic(shared: Bytes, alpha: u64) -> Bytes {
    let (alpha, one) = (u128::from(alpha), 1u128 << 32);
    let part = u128::from(shared.get()) * alpha / (one + alpha);
    Bytes::new(u64::try_from(part).unwrap_or(u64::MAX))
}

/// The key that sets `ecn` or `phantom` of ports of a class.
fn key(config: &Config, scheme_name: &str, scheme: &Scheme, class: LinkClass, name: &str) -> String {
    let over = scheme.port.as_ref();
    let of_scheme = format!("schemes.{scheme_name}.port");
    let is_set = |patch: &PortClassOverrides| if name == "ecn" { patch.ecn.is_some() } else { patch.phantom.is_some() };
    let is_over = |over: &PortOverrides| if name == "ecn" { over.ecn.is_some() } else { over.phantom.is_some() };
    if over.and_then(|over| over.of_class(class)).is_some_and(is_set) {
        format!("{of_scheme}.{}.{name}", class.name())
    } else if config.port.of_class(class).is_some_and(is_set) {
        format!("port.{}.{name}", class.name())
    } else if over.is_some_and(is_over) {
        format!("{of_scheme}.{name}")
    } else {
        format!("port.{name}")
    }
}

/// Targets for round trips below the base RTT of a class of flows, a warning for each parameter.
pub(super) fn targets(scheme_name: &str, scheme: &Scheme, plan: &LawPlan, survey: &Survey) -> Vec<String> {
    let mut messages = Vec::new();
    for class in [FlowClass::Intra, FlowClass::Inter] {
        let Some((law, set)) = plan.law(class) else { continue };
        let Some(rtt) = survey.base_rtt(class) else { continue };
        for RttTarget { name, default } in rtt_targets(law) {
            let found = set.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
            let Some(ParamValue::Span(target)) = found.or(default.map(ParamValue::Span)) else { continue };
            if target > Span::ZERO && target < rtt.max {
                let key = scheme.key_of(class, law.info().name, name);
                messages.push(format!(
                    "schemes.{scheme_name}.{key}, {target}, is below the base round trip of {} flows, up to {}: an \
                     empty path counts as congested",
                    class.name(),
                    rtt.max
                ));
            }
        }
    }
    messages
}
