//! Shared-buffer switches: their settings, the controllers at long hauls, and a check that the buffer suffices.

use experiment::{SwitchController, SwitchControllerSpec};
use fabric::{IngressLimit, Link, LinkClass, LinkId, Network, NetworkError, NodeId, NodeKind};
use laws::lscc::{CalculationParams, LimitingParams};
use units::{Bytes, Rate, Span};

use crate::config::{Auto, Config, Lscc, OffOr, PortReports, Scheme, Switch, SwitchOverrides, SwitchSettings, Tier};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;

/// The switches of a scheme that share their buffers.
pub(crate) struct Sharing<'a> {
    table: std::borrow::Cow<'a, Switch>,
    over: Option<&'a SwitchOverrides>,
    /// Set if packets request reports.
    reports: PortReports,
}

impl<'a> Sharing<'a> {
    /// None where no switch shares.
    pub(crate) fn new(config: &'a Config, scheme: &'a Scheme) -> Result<Option<Self>, SpannedError> {
        let sharing = Self::requested(config, scheme)?;
        if let Some(sharing) = &sharing {
            Tier::ALL.into_iter().try_for_each(|tier| sharing.settings(tier).check())?;
        }
        if sharing.is_none() && scheme.reads_reports() {
            let law = [&scheme.law, &scheme.intra, &scheme.inter].into_iter().flatten().next();
            let origin = law.map_or(SourceSpan::NOWHERE, |law| law.origin);
            return Err(SpannedError::new(
                origin,
                "this scheme reads what ports report (INT), and only ports of switches that share a buffer do",
            )
            .label("needs [switch]")
            .help("add a table [switch], for instance with buffer = \"32MiB\" and pfc = true"));
        }
        if let Some(sharing) = &sharing
            && scheme.reads_reports()
            && Tier::ALL.into_iter().all(|tier| !sharing.settings(tier).config(PortReports::Carried).int)
        {
            return Err(SpannedError::new(
                SourceSpan::NOWHERE,
                "this scheme reads what ports report (INT), and no switch reports: [switch] has int = false",
            )
            .help("leave `int` out: it is \"auto\" then"));
        }
        Ok(sharing)
    }

    fn requested(config: &'a Config, scheme: &'a Scheme) -> Result<Option<Self>, SpannedError> {
        let reports = scheme.reports();
        let over = match &scheme.switch {
            Some(OffOr::Off) => return Ok(None),
            Some(OffOr::On(over)) => Some(over),
            None => None,
        };
        let table = match &config.switch {
            Some(table) => std::borrow::Cow::Borrowed(table),
            None if over.is_some() => std::borrow::Cow::Owned(Switch::of_defaults()?),
            None => return Ok(None),
        };
        Ok(Some(Self { table, over, reports }))
    }

    /// Pauses; all tiers pause alike.
    pub(crate) fn pfc(&self) -> Option<fabric::Pfc> {
        self.settings(Tier::Core).pfc.config()
    }

    fn settings(&self, tier: Tier) -> SwitchSettings {
        self.table.settings(tier, self.over)
    }

    /// Lets the switches of a network share their buffers; relays do already, in their own way. Takes the marks from
    /// those that are not to set any.
    pub(crate) fn apply(&self, network: Network) -> Result<Network, NetworkError> {
        let network = network.without_marks(|network, node| !self.settings(tier(network, node)).ecn_marking)?;
        Ok(network.sharing(|network, node| {
            let settings = || self.settings(tier(network, node)).config(self.reports);
            Some(network.nodes()[node.index()].switch.unwrap_or_else(settings))
        }))
    }
}

/// Returns the tier of a switch, from the classes of its links.
pub(crate) fn tier(network: &Network, node: NodeId) -> Tier {
    let has = |class| network.links_out(node).any(|link| network.links()[link as usize].class == class);
    if network.nodes()[node.index()].relay {
        Tier::Relay
    } else if has(LinkClass::Inter) || behind_relay(network, node) {
        Tier::Border
    } else if has(LinkClass::Host) {
        Tier::Edge
    } else if has(LinkClass::Edge) && has(LinkClass::Core) {
        Tier::Aggregation
    } else {
        Tier::Core
    }
}

/// Returns whether a link leads to a relay.
fn behind_relay(network: &Network, node: NodeId) -> bool {
    network.links_out(node).any(|link| {
        let to = network.links()[link as usize].to;
        network.nodes()[to.index()].relay
    })
}

/// Returns a warning if relays form a loop, in which each passes on the pauses of the one before it.
pub(crate) fn looped_relays(network: &Network) -> Option<String> {
    let relays = |node: NodeId| network.nodes()[node.index()].switch.and_then(|it| it.pfc).is_some_and(|pfc| pfc.relay);
    // Relays that cables have joined so far have one root.
    let mut parents: Vec<NodeId> = (0..index32(network.nodes().len())).map(NodeId).collect();
    let root = |parents: &[NodeId], mut node: NodeId| {
        while parents[node.index()] != node {
            node = parents[node.index()];
        }
        node
    };
    let cables = network.links().iter().filter(|it| it.from < it.to && relays(it.from) && relays(it.to));
    for cable in cables {
        let [from, to] = [cable.from, cable.to].map(|node| root(&parents, node));
        if from == to {
            let names = [cable.from, cable.to].map(|node| &network.nodes()[node.index()].name);
            return Some(format!(
                "pfc.relay: the cable between `{}` and `{}` closes a loop of relays; a pause goes round it for ever",
                names[0], names[1]
            ));
        }
        parents[from.index()] = to;
    }
    None
}

/// LSCC's controllers: at each long-haul link one for outgoing and one for incoming traffic.
pub(crate) fn modules(
    lscc: &Lscc,
    network: &Network,
    longest_rtt: Option<Span>,
) -> Result<Vec<SwitchControllerSpec>, SpannedError> {
    let fastest = (0..index32(network.hosts().len())).map(|host| {
        let uplink = network.uplink(fabric::HostId(host));
        network.port(uplink).config().rate
    });
    let fastest = fastest.fold(Rate::ZERO, Rate::max);
    let long_flow = match lscc.long_flow {
        Auto::Set(bytes) => bytes,
        Auto::Auto => fastest.bytes_in(longest_rtt.unwrap_or(Span::ZERO)),
    };
    let mut modules = Vec::new();
    for (index, link) in network.links().iter().enumerate() {
        if link.class != LinkClass::Inter {
            continue;
        }
        if network.nodes()[link.from.index()].switch.is_none() {
            return Err(SpannedError::new(
                lscc.period.origin,
                "LSCC reads how much of a switch's buffer came in over a link, which only a shared buffer knows",
            )
            .label("needs [switch]")
            .help("add a table [switch], for instance with buffer = \"32MiB\" and pfc = true"));
        }
        let port = network.port(LinkId(index32(index))).config();
        let highest = lscc.r_max.map_or(port.rate, |rate| *rate);
        if *lscc.r_min > highest {
            return Err(SpannedError::new(
                lscc.r_min.origin,
                format!("the lowest rate, {}, is over {highest}", *lscc.r_min),
            )
            .label("expected at most the rate of the links between datacenters"));
        }
        let link = LinkId(index32(index));
        let limiting = LimitingParams {
            reference: lscc.near_q_ref.unwrap_or(*lscc.q_ref),
            interval: *lscc.notify_interval,
            long_flow,
            reset: lscc.mark_timeout.map_or(*lscc.period, |at: Located<Span>| *at),
            size: lscc.notification_size.get().into(),
            telemetry: lscc.telemetry,
        };
        let calculation = CalculationParams {
            period: *lscc.period,
            reference: *lscc.q_ref,
            step: lscc.delta_r,
            lowest: *lscc.r_min,
            highest,
            lag: port.delay.times(2),
        };
        modules.push(SwitchControllerSpec { link, module: SwitchController::RateLimiting(limiting) });
        modules.push(SwitchControllerSpec { link, module: SwitchController::RateCalculation(calculation) });
    }
    if modules.is_empty() {
        return Err(SpannedError::new(
            lscc.period.origin,
            "LSCC stands at links between datacenters, and there is none",
        )
        .label("needs a topology with two datacenters"));
    }
    Ok(modules)
}

/// Buffer sharing of one kind of switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchLine {
    /// Tier of these switches.
    pub tier: Tier,
    /// Number of these switches.
    pub count: usize,
    /// Their settings.
    pub switch: fabric::Switch,
    /// Its ports.
    pub ports: usize,
    /// Buffer kept for packets that arrive after pauses, of all ports and classes in use.
    pub headroom: Bytes,
    /// Kept for each port and class, of all.
    pub reserved: Bytes,
    /// Remaining buffer, shared by all ports; [`Bytes::MAX`] without limit.
    pub shared: Bytes,
    /// Limits of cables, by their class, without repetitions.
    pub cables: Vec<CableLine>,
}

/// Limits of the cables of one class at a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CableLine {
    /// Their class.
    pub class: LinkClass,
    /// Their ingress limit.
    pub ingress_limit: IngressLimit,
    /// Maximum bytes of a class of packets that may still arrive after the switch has decided to pause it. None if
    /// nothing pauses, at relays, which pass pauses on before their own buffers ask for them, and with ticks, which
    /// rule out the calculation.
    pub may_arrive: Option<Bytes>,
}

/// Returns the switches that share buffers, equal ones together. Refuses a switch with a buffer that is smaller than its
/// reservations.
pub(crate) fn lines(
    config: &Config,
    scheme: &Scheme,
    network: &Network,
    packet: u32,
) -> Result<Vec<SwitchLine>, SpannedError> {
    let used = config.data_classes();
    let mut lines: Vec<SwitchLine> = Vec::new();
    for (index, node) in network.nodes().iter().enumerate() {
        let (NodeKind::Switch, Some(switch)) = (node.kind, node.switch) else { continue };
        let id = NodeId(index32(index));
        let mut cables: Vec<CableLine> = Vec::new();
        let (mut headroom, mut ports) = (Bytes::ZERO, 0);
        for link in network.links_out(id) {
            let Link { class, reverse, .. } = network.links()[link as usize];
            let (back, toward) = (network.port(LinkId(link)).config(), network.port(reverse).config());
            let pfc = switch.pfc.filter(|pfc| !pfc.relay && switch.buffer != Bytes::MAX && toward.tick.is_none());
            let may_arrive =
                pfc.map(|pfc| fabric::headroom(toward.rate, back.rate, toward.delay, packet, pfc.frame, used));
            let cable = CableLine { class, ingress_limit: back.ingress_limit, may_arrive };
            headroom = headroom.saturating_add(cable.ingress_limit.headroom.times(used));
            ports += 1;
            if !cables.contains(&cable) {
                cables.push(cable);
            }
        }
        let reserved = switch.reserve.times(used.saturating_mul(ports as u64));
        let kept = headroom.saturating_add(reserved);
        if switch.buffer != Bytes::MAX && kept >= switch.buffer {
            return Err(too_small(config, scheme, tier(network, id), &node.name, [headroom, reserved, switch.buffer]));
        }
        let shared = if switch.buffer == Bytes::MAX { Bytes::MAX } else { switch.buffer - kept };
        cables.sort_by_key(|cable| cable.class);
        let line = SwitchLine { tier: tier(network, id), count: 1, switch, ports, headroom, reserved, shared, cables };
        match lines.iter_mut().find(|other| SwitchLine { count: 1, ..(*other).clone() } == line) {
            Some(known) => known.count += 1,
            None => lines.push(line),
        }
    }
    lines.sort_by_key(|line| line.tier);
    Ok(lines)
}

fn too_small(
    config: &Config,
    scheme: &Scheme,
    tier: Tier,
    name: &str,
    [headroom, reserved, buffer]: [Bytes; 3],
) -> SpannedError {
    let over = scheme.switch.as_ref().and_then(OffOr::as_ref);
    let of_file = config.switch.as_ref().map(|table| table.settings(tier, over).buffer.origin);
    let of_scheme = over.and_then(|over| over.buffer).map(|at| at.origin);
    let origin = of_file.or(of_scheme).unwrap_or(SourceSpan::NOWHERE);
    let message = format!(
        "switch {name} keeps {headroom} of headroom and {reserved} of reserve, which leaves nothing to share of its buffer of {buffer}"
    );
    let error =
        SpannedError::new(origin, message).label(format!("expected over {}", headroom.saturating_add(reserved)));
    if tier == Tier::Relay {
        return error.help("the relay's `swing.buffer` must exceed its `swing.headroom`");
    }
    error
        .at_least(config.topology.origin)
        .help("raise [switch] buffer, or lower `headroom` of [port] or of a link class such as [port.inter], or `reserved`")
        .help("the headroom of a cable grows with its rate and its delay: twice their product at least")
}
