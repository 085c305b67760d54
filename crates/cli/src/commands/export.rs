//! `narrows export`: settings of a scenario in a switch's own format.

use std::collections::BTreeMap;

use crate::sonic::{
    Asic, Device, Headroom, HeadroomCable, LosslessTraffic, Marks, Revision, SonicPort, SwitchMemory, Threshold,
};
use fabric::{Limit, Network, NodeId, NodeKind};
use scenario::Overrides;
use study::headroom::PfcCable;
use units::{Bytes, Frac};

use crate::args::ExportSonicArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::table::bytes;

/// The maximum size of a trial: cables that hold more are not tried.
const MAX_TRIAL_HEADROOM: Bytes = Bytes::new(512 << 20);

pub(crate) fn sonic(args: &ExportSonicArgs) -> Result<(), CommandFailure> {
    let overrides = Overrides { set: args.set.clone(), ..Overrides::default() };
    let scenario = scenario::load(&args.scenario, &overrides)?;
    study::known_schemes(&scenario, args.scheme.as_slice())?;
    let wanted = |run: &scenario::Run| args.scheme.as_ref().is_none_or(|scheme| run.scheme == *scheme);
    let Some(run) = scenario.runs().into_iter().find(wanted) else {
        return Err(CommandFailure::Input("error: the scenario has no run".into()));
    };
    let setup = run.build()?.setup;
    let switch = chosen(&setup.network, args.switch.as_deref())?;
    let exported = Exported::new(args, &setup.network, switch, setup.host.mss, &run.id)?;
    for note in &exported.notes {
        print_stderr(note);
    }
    print(&format!("{:#}", exported.device.tables()))
}

/// The switch of that name, or the first at a link between datacenters, or the first.
fn chosen(network: &Network, name: Option<&str>) -> Result<NodeId, CommandFailure> {
    let switches = || {
        let nodes = network.nodes().iter().enumerate();
        nodes.filter(|(_, node)| node.kind == NodeKind::Switch).map(|(index, node)| (NodeId(index as u32), node))
    };
    let Some(name) = name else {
        let is_border = |id: NodeId| {
            network.links_out(id).any(|link| network.links()[link as usize].class == fabric::LinkClass::Inter)
        };
        let border = switches().find(|(id, _)| is_border(*id));
        let first = border.or_else(|| switches().next()).map(|(id, _)| id);
        return first.ok_or_else(|| CommandFailure::Input("error: the network has no switch".into()));
    };
    if let Some((id, _)) = switches().find(|(_, node)| node.name == name) {
        return Ok(id);
    }
    let known: Vec<&str> = switches().map(|(_, node)| node.name.as_str()).collect();
    let help = scenario::nearest(name, &known).map_or_else(
        || format!("there are {}", study::first_of(&known.iter().map(|&it| it.to_owned()).collect::<Vec<_>>(), ", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Err(CommandFailure::Input(format!("error: the network has no switch `{name}`\nhelp: {help}")))
}

/// A switch's tables, and notes about them.
struct Exported {
    device: Device,
    notes: Vec<String>,
}

/// A kind of cable and the notes about its headroom.
struct CableKind {
    trial: PfcCable,
    cable: HeadroomCable,
    headroom: Headroom,
    own: Bytes,
    count: u64,
}

impl Exported {
    fn new(
        args: &ExportSonicArgs,
        network: &Network,
        switch: NodeId,
        payload: u32,
        run: &str,
    ) -> Result<Self, CommandFailure> {
        let node = &network.nodes()[switch.0 as usize];
        let mut asic = Asic::from_name(&args.asic).unwrap_or(crate::sonic::ASICS[0]);
        asic.cell_bytes = args.cell.unwrap_or(asic.cell_bytes);
        let traffic =
            LosslessTraffic { mtu_bytes: u64::from(payload).clamp(64, 65_535), small_percent: args.small_packets };
        let mut notes = vec![format!("switch {} under {run}, ports in the order of its links:", node.name)];
        let mut has_phantoms = false;
        let (mut ports, mut kinds) = (Vec::new(), BTreeMap::<(u64, u64), CableKind>::new());
        for (number, link) in network.links_out(switch).enumerate() {
            let out = network.port(fabric::LinkId(link)).config();
            let link = &network.links()[link as usize];
            let speed_mbps = out.rate.bps() / 1_000_000;
            let cable_m = crate::sonic::metres(out.delay.unsigned_ps());
            let name = format!("Ethernet{}", 4 * number);
            let to = &network.nodes()[link.to.0 as usize].name;
            notes.push(format!("  {name}: {} to {to}, {cable_m} m", out.rate));
            let cable = HeadroomCable {
                speed_mbps,
                length_m: cable_m,
                mtu_bytes: args.mtu,
                gearbox_delay: args.gearbox,
                has_eight_lanes: speed_mbps >= args.eight_lane_min.saturating_mul(1_000),
            };
            let pauses = node.switch.is_some_and(|switch| switch.pfc.is_some_and(|pfc| !pfc.relay));
            let lossless = if pauses {
                let Some(headroom) = crate::sonic::headroom(&asic, &cable, &traffic) else {
                    return Err(CommandFailure::Input(format!(
                        "error: the port of {} to {to} has {}, and SONiC's formula has no response time for this speed\n\
                         help: it has 100M, 1G, 10G, 25G, 40G, 50G, 100G, 200G, 400G and 800G",
                        node.name, out.rate
                    )));
                };
                let trial = PfcCable { rate: out.rate, delay: out.delay, payload: payload.min(65_000) as u16 };
                let own = out.ingress_limit.headroom;
                let kind = CableKind { trial, cable, headroom, own, count: 0 };
                kinds.entry((speed_mbps, cable_m)).or_insert(kind).count += 1;
                Some((headroom, threshold(out.ingress_limit.xoff, &name, &mut notes)))
            } else {
                None
            };
            let marks = out.ecn.map(|ecn| Marks {
                min_bytes: ecn.min.get(),
                max_bytes: ecn.max.get(),
                percent: ecn.max_probability.ppm().div_ceil(10_000),
            });
            has_phantoms |= out.phantom.is_some();
            ports.push(SonicPort { name, speed_mbps, cable_m, marks, lossless });
        }
        if has_phantoms {
            notes.push("note: SONiC has no phantom queues; they are left out".into());
        }
        let classes = args.priorities.len() as u64;
        let headroom: u64 = kinds.values().map(|kind| kind.headroom.size * kind.count * classes).sum();
        let buffer = node.switch.filter(|switch| switch.buffer != Bytes::MAX).map(|switch| switch.buffer.get());
        if let Some(total) = buffer.filter(|&total| headroom >= total) {
            return Err(headroom_too_large(&node.name, &asic, &traffic, total, headroom, &kinds, classes));
        }
        for kind in kinds.values() {
            notes.push(kind.describe()?);
        }
        let revision = if args.separate_wred { Revision::Separate } else { Revision::Shared };
        let buffer = buffer.map(|total| SwitchMemory { total, shared: total - headroom });
        let priorities = args.priorities.clone();
        Ok(Self { device: Device { ports, buffer, priorities, traffic, revision }, notes })
    }
}

/// A limit of the shared part in SONiC's form: a power of two of the free buffer, or bytes.
fn threshold(limit: Limit, port: &str, notes: &mut Vec<String>) -> Threshold {
    match limit {
        Limit::Bytes(bytes) => Threshold::Static(bytes.get()),
        Limit::Alpha(alpha) => {
            let power = (-8..=8i32).min_by_key(|&power| of_power(power).abs_diff(alpha.bits())).unwrap_or(0);
            if of_power(power) != alpha.bits() {
                notes.push(format!("note: {port}: alpha is no power of two; dynamic_th {power} is the nearest"));
            }
            Threshold::Dynamic(power)
        }
    }
}

/// The bits of 2^power as a fraction.
fn of_power(power: i32) -> u64 {
    let one = Frac::ONE.bits();
    if power < 0 { one >> -power } else { one << power }
}

impl CableKind {
    /// Returns the result of the formula, and of its trial in simulation.
    fn describe(&self) -> Result<String, CommandFailure> {
        let HeadroomCable { speed_mbps, length_m, .. } = self.cable;
        let xoff = self.headroom.xoff;
        let formula = format!(
            "headroom of {speed_mbps} Mb/s over {length_m} m: xoff {} by SONiC's formula; the scenario has {}",
            bytes(xoff),
            bytes(self.own.get())
        );
        if Bytes::new(xoff) > MAX_TRIAL_HEADROOM {
            return Ok(format!("{formula}; too long to be tried in simulation"));
        }
        let drops = self.trial.drops(Bytes::new(xoff))?;
        if drops > 0 {
            return Ok(format!("{formula}; warning: in simulation {drops} packets find no room with it"));
        }
        let min_xoff = self.trial.minimum(Bytes::new(xoff))?;
        Ok(format!(
            "{formula}. In simulation nothing is dropped with it. {} ({:.2} of it) would do there; 1 KiB less would not",
            bytes(min_xoff.get()),
            min_xoff.get() as f64 / xoff as f64
        ))
    }
}

/// Returns the error for headroom that does not fit: the maximum length of the cables, and the alternatives.
fn headroom_too_large(
    name: &str,
    asic: &Asic,
    traffic: &LosslessTraffic,
    total: u64,
    headroom: u64,
    kinds: &BTreeMap<(u64, u64), CableKind>,
    classes: u64,
) -> CommandFailure {
    let Some(longest) = kinds.values().max_by_key(|kind| kind.headroom.size * kind.count) else {
        return CommandFailure::Input(format!("error: switch {name} has no room"));
    };
    let of = |kind: &CableKind| kind.headroom.size * kind.count * classes;
    let available = total.saturating_sub(headroom - of(longest));
    let each = available / (longest.count * classes).max(1);
    let advice = crate::sonic::longest(asic, &longest.cable, traffic, each).map_or_else(
        || "no cable is short enough".to_owned(),
        |length_m| format!("such cables may be up to {length_m} m long"),
    );
    CommandFailure::Input(format!(
        "error: headroom does not fit switch {name}: {} for {} of {} Mb/s over {} m each, {} for all, of a buffer of {}\n\
         help: {advice} in this buffer; or give the switch more ([switch] buffer), fewer lossless priorities, or let what \
         crosses the long link be lossy: GEMINI, Uno and On-Ramp need no pauses there, LSCC keeps its queue short",
        bytes(longest.headroom.size * classes),
        study::count(longest.count as usize, "cable"),
        longest.cable.speed_mbps,
        longest.cable.length_m,
        bytes(headroom),
        bytes(total),
    ))
}
