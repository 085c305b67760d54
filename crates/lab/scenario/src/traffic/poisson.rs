//! Poisson arrivals at a stated load of a stated link class.

use fabric::{HostId, LinkClass, LinkId, Network};
use units::{Bytes, EXPONENTIAL_BITS, Rate, Span, exponential};

use super::{Demand, DraftFlow, DraftStart, TrafficContext, TrafficFlows, later};
use crate::class::FlowClass;
use crate::config::{HostSet, IntraInterRatio, Poisson, RatioOf};
use crate::decode::Located;
use crate::distribution::Distribution;
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

/// More flows than this are a mistake.
const MAX_FLOWS: u128 = 50_000_000;

/// Arrival rate of the flows of one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrivals {
    /// The traffic entry, from 0.
    pub traffic: usize,
    /// Inside datacenters or between them.
    pub class: FlowClass,
    /// Flows per 1000 seconds, in the whole network.
    pub per_1000_s: u64,
    /// Mean size of the distribution.
    pub mean_size: Bytes,
    /// Payload per second, in the whole network.
    pub offered: Rate,
    /// Mean utilisation of each link class by this payload, in parts per million.
    pub load_ppm: Vec<(LinkClass, u64)>,
}

/// One class of flows.
struct PoissonClass {
    class: FlowClass,
    sizes: Distribution,
    /// Share of all flows, in units of 2^-32.
    share: u64,
    /// Hosts by datacenter that may send, each with a destination.
    sources: Vec<HostId>,
}

/// Hosts that may send and hosts that may receive, by host.
struct HostRoles {
    from: Vec<bool>,
    to: Vec<bool>,
    /// Set if both are all hosts.
    all: bool,
}

pub(crate) fn make(
    poisson: &Poisson,
    index: usize,
    draws: Draws,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let all = poisson.from.value == HostSet::All && poisson.to.value == HostSet::All;
    let ends = HostRoles { from: context.members(&poisson.from)?, to: context.members(&poisson.to)?, all };
    let receivers = ReceiverHosts::new(context.network, &ends.to);
    let parts = parts(poisson, &ends, &receivers, context)?;
    let gap = mean_gap(poisson, &parts, &ends, context)?;
    let mut output = TrafficFlows { arrivals: arrivals(index, &parts, gap, &ends, context), ..TrafficFlows::default() };
    let of_flows = |flows: u64| Span::from_ps(i64::try_from((gap * u128::from(flows)) >> 20).unwrap_or(i64::MAX));
    let lasts = poisson.duration.map_or_else(|| of_flows(poisson.flows.map_or(0, |it| it.get().into())), |it| it.value);
    let demand = |part: &Arrivals| Demand {
        traffic: index,
        senders: ends.from.clone(),
        receivers: ends.to.clone(),
        class: Some(part.class),
        offered: part.offered,
        from_time: poisson.start,
        to_time: later(poisson.start, lasts),
    };
    output.demands = output.arrivals.iter().map(demand).collect();
    output.flows = flows(poisson, &parts, gap, draws, &receivers, context)?;
    Ok(output)
}

fn parts(
    poisson: &Poisson,
    ends: &HostRoles,
    receivers: &ReceiverHosts,
    context: &TrafficContext<'_>,
) -> Result<Vec<PoissonClass>, SpannedError> {
    let mut parts = Vec::new();
    for (class, name) in [(FlowClass::Intra, &poisson.intra), (FlowClass::Inter, &poisson.inter)] {
        let Some(name) = name else { continue };
        let sizes = Distribution::named(name, context.inputs)?;
        let sources: Vec<HostId> = (0..index32(context.network.hosts().len()))
            .map(HostId)
            .filter(|&host| ends.from[host.index()] && receivers.count(host, class) > 0)
            .collect();
        if sources.is_empty() {
            return Err(SpannedError::new(
                name.origin,
                format!("no host has a partner for {} flows here", class.name()),
            )
            .label("no pair of hosts"));
        }
        parts.push(PoissonClass { class, sizes, share: 1 << 32, sources });
    }
    match (parts.as_mut_slice(), poisson.ratio) {
        ([], _) => {
            let error = SpannedError::new(poisson.load.origin, "this traffic has no flow sizes");
            Err(error.help("give intra = \"websearch\", inter = \"alibaba-wan\", or both"))
        }
        ([_], None) => Ok(parts),
        ([_], Some(ratio)) => {
            Err(SpannedError::new(ratio.origin, "a ratio needs both `intra` and `inter`").label("only one is given"))
        }
        ([intra, inter], Some(ratio)) => {
            [intra.share, inter.share] = shares(*ratio, poisson.ratio_of, [&intra.sizes, &inter.sizes]);
            Ok(parts)
        }
        _ => Err(SpannedError::new(poisson.load.origin, "both `intra` and `inter` are given, but no `ratio`")
            .help("set the number of intra flows for each inter flow: ratio = \"4:1\", ratio_of = \"flows\"")),
    }
}

/// The shares of flows, in units of 2^-32, that a ratio of flows or bytes asks for.
fn shares(ratio: IntraInterRatio, of: RatioOf, sizes: [&Distribution; 2]) -> [u64; 2] {
    let [intra, inter] = [u128::from(ratio.intra), u128::from(ratio.inter)];
    let (intra, inter) = match of {
        RatioOf::Flows => (intra, inter),
        // Flows are bytes over the mean size: i / m_i : x / m_x is i m_x : x m_i.
        RatioOf::Bytes => (intra * u128::from(sizes[1].mean_bits()), inter * u128::from(sizes[0].mean_bits())),
    };
    // Under 2^20 * 2^60 each, so the shift fits.
    let first = u64::try_from((intra << 32) / (intra + inter).max(1)).unwrap_or(u64::MAX);
    [first, (1 << 32) - first]
}

/// Mean time between arrivals, in units of 2^-20 ps.
fn mean_gap(
    poisson: &Poisson,
    parts: &[PoissonClass],
    ends: &HostRoles,
    context: &TrafficContext<'_>,
) -> Result<u128, SpannedError> {
    let class = *poisson.load_of;
    let capacity = if ends.all {
        capacity(context.network, class)
    } else {
        ends.capacity(context.network, class).ok_or_else(|| {
            SpannedError::new(
                poisson.load_of.origin,
                format!("which links of class `{}` these hosts load is not known", class.name()),
            )
            .label("expected \"nic\", \"host\" or \"inter\"")
            .help("with `from` or `to`, load_of = \"nic\" counts the senders' links, \"host\" the receivers'")
        })?
    };
    // Payload on links of the class for one arrival, in units of 2^-16 bytes, each link counted.
    let crossing: u128 = parts.iter().map(|part| part.crossing(class, ends, context)).sum();
    if capacity == 0 || crossing == 0 {
        let message = match class.name() {
            // Others of the class may join other datacenters.
            class if capacity == 0 && !ends.all => {
                format!("no link of class `{class}` joins these hosts' datacenters directly")
            }
            class if capacity == 0 => format!("there is no link of class `{class}`"),
            class => format!("no flow of this traffic crosses a link of class `{class}`"),
        };
        return Err(SpannedError::new(poisson.load_of.origin, message)
            .label("load of these links")
            .help("load_of = \"host\" counts the links towards hosts"));
    }
    let load_ppm = u128::from(poisson.load.of(1_000_000));
    let offered_bps = u64::try_from(u128::from(capacity) * load_ppm / 1_000_000).unwrap_or(u64::MAX);
    let arithmetic = format!(
        "{} of the `{}` links' {} is {}",
        poisson.load.value,
        class.name(),
        Rate::from_bps(capacity),
        Rate::from_bps(offered_bps)
    );
    if poisson.load.exceeds_one() {
        return Err(SpannedError::new(
            poisson.load.origin,
            format!("a load over 100 %: {arithmetic}, more than they carry"),
        )
        .label("expected at most 1 (100 %)"));
    }
    if load_ppm == 0 {
        return Err(SpannedError::new(poisson.load.origin, "a load under a millionth generates no flows")
            .label("expected over 0"));
    }
    // gap = crossing * 8 bits / (load * capacity). Crossing is under 2^64, so the numerator is under
    // 2^(64 + 43 + 4 + 20) = 2^131 at worst and under 2^120 for sizes up to 64 GB; beyond, it saturates.
    let bits_ps = crossing.saturating_mul(8_000_000_000_000 << 4);
    Ok(bits_ps.saturating_mul(1_000_000) / (load_ppm * u128::from(capacity)))
}

/// The summed rate of all links of a class, in bits per second.
fn capacity(network: &Network, class: LinkClass) -> u64 {
    (0..network.datacenters()).map(|dc| network.capacity(class, dc).bps()).sum()
}

impl PoissonClass {
    /// Payload on links of a class for one arrival of any part, in units of 2^-16 bytes, each link counted.
    fn crossing(&self, class: LinkClass, ends: &HostRoles, context: &TrafficContext<'_>) -> u128 {
        let links = context.survey.mean_links(self.class, class, &ends.from, &ends.to);
        let per_flow = (u128::from(self.sizes.mean_bits()) * u128::from(links)) >> 32;
        (per_flow * u128::from(self.share)) >> 32
    }
}

fn arrivals(
    traffic: usize,
    parts: &[PoissonClass],
    gap: u128,
    ends: &HostRoles,
    context: &TrafficContext<'_>,
) -> Vec<Arrivals> {
    let gap = gap.max(1);
    let of_part = |part: &PoissonClass| {
        // 10^15 ps in 1000 s, times 2^20 for the gap's unit, times a share in 2^-32.
        let per_1000_s = ((1_000_000_000_000_000u128 << 20) * u128::from(part.share) / gap) >> 32;
        let bytes_per_1000_s = per_1000_s.saturating_mul(u128::from(part.sizes.mean_bits())) >> 16;
        let load_ppm = LinkClass::ALL.into_iter().filter_map(|class| {
            let capacity = capacity(context.network, class);
            (capacity > 0).then(|| {
                // Bytes a gap, 2^-16, to bits per second, times 10^6.
                let bps_ppm =
                    part.crossing(class, ends, context).saturating_mul(8_000_000_000_000 << 4) / gap * 1_000_000;
                (class, u64::try_from(bps_ppm / u128::from(capacity)).unwrap_or(u64::MAX))
            })
        });
        Arrivals {
            traffic,
            class: part.class,
            per_1000_s: u64::try_from(per_1000_s).unwrap_or(u64::MAX),
            mean_size: Bytes::new(part.sizes.mean_bits() >> 16),
            offered: Rate::from_bps(u64::try_from(bytes_per_1000_s * 8 / 1_000).unwrap_or(u64::MAX)),
            load_ppm: load_ppm.collect(),
        }
    };
    parts.iter().map(of_part).collect()
}

/// Draws of one arrival: time, class, source, destination, size.
const DRAWS: u64 = 5;

fn flows(
    poisson: &Poisson,
    parts: &[PoissonClass],
    gap: u128,
    draws: Draws,
    receivers: &ReceiverHosts,
    context: &TrafficContext<'_>,
) -> Result<Vec<DraftFlow>, SpannedError> {
    let (max_flows, end_ps) = match (poisson.flows, poisson.duration) {
        (Some(flows), None) if u128::from(flows.get()) > MAX_FLOWS => {
            return Err(SpannedError::new(flows.origin, format!("{} flows in one entry", flows.get()))
                .label(format!("expected at most {MAX_FLOWS} flows")));
        }
        (Some(flows), None) => (u64::from(flows.get()), u128::MAX),
        (None, Some(window)) => {
            let expected = (u128::from(window.unsigned_ps()) << 20) / gap.max(1);
            if expected > MAX_FLOWS {
                return Err(SpannedError::new(
                    window.origin,
                    format!("about {expected} flows would arrive in this time"),
                )
                .label(format!("expected a shorter window: at most {MAX_FLOWS} flows")));
            }
            (u64::MAX, u128::from(window.unsigned_ps()))
        }
        (Some(_), Some(window)) => {
            return Err(SpannedError::new(window.origin, "`window` and `flows` both set when arrivals end: give one"));
        }
        (None, None) => {
            return Err(SpannedError::new(poisson.load.origin, "this traffic never ends")
                .help("give window = \"20ms\" or flows = 5000"));
        }
    };
    let mut flows = Vec::new();
    let mut at = 0u128; // in units of 2^-(20 + 40) ps: 2^68 ps fit
    for arrival in 0..max_flows {
        let draw = |index: u64| arrival * DRAWS + index;
        at = at.saturating_add(gap.saturating_mul(u128::from(exponential(draws.at(draw(0))))));
        let ps = at >> (20 + EXPONENTIAL_BITS);
        if ps >= end_ps {
            break;
        }
        let start = i64::try_from(ps + u128::from(poisson.start.unsigned_ps())).unwrap_or(i64::MAX);
        let chance = draws.at(draw(1)) >> 32;
        let part = match parts {
            [first, second] => {
                if chance < first.share {
                    first
                } else {
                    second
                }
            }
            parts => &parts[0],
        };
        let src = part.sources[draws.below(draw(2), part.sources.len())];
        let dst = receivers.destination(src, part.class, draws.below(draw(3), receivers.count(src, part.class)));
        let size = Located::default_of(Bytes::new(part.sizes.sample(draws.at(draw(4)))));
        let size = context.size(size)?;
        flows.push(DraftFlow { src, dst, size, start: DraftStart::At(Span::from_ps(start)) });
    }
    if flows.is_empty()
        && let Some(window) = poisson.duration
    {
        let gap = Span::from_ps(i64::try_from(gap >> 20).unwrap_or(i64::MAX));
        return Err(SpannedError::new(
            window.origin,
            format!("no flow arrives in {}: one comes every {gap} on average", *window),
        )
        .label("zero flows"));
    }
    Ok(flows)
}

impl HostRoles {
    /// The summed rate of the links of a class that these flows can cross, where that is plain: senders' links,
    /// receivers' links, and links from a datacenter of senders to one of receivers.
    fn capacity(&self, network: &Network, class: LinkClass) -> Option<u64> {
        let rate = |link: LinkId| network.port(link).config().rate.bps();
        let hosts = |members: &[bool]| {
            let ids = (0..index32(members.len())).map(HostId);
            ids.filter(|host| members[host.index()]).collect::<Vec<_>>()
        };
        let up = |host: HostId| network.uplink(host);
        match class {
            LinkClass::Nic => Some(hosts(&self.from).into_iter().map(|host| rate(up(host))).sum()),
            LinkClass::Host => {
                let down = |host| network.links()[up(host).index()].reverse;
                Some(hosts(&self.to).into_iter().map(|host| rate(down(host))).sum())
            }
            LinkClass::Inter => {
                let datacenters = |members| {
                    let of = hosts(members).into_iter().map(|host| network.datacenter_of(host));
                    of.collect::<std::collections::BTreeSet<_>>()
                };
                let (from, to) = (datacenters(&self.from), datacenters(&self.to));
                let datacenter = |node: fabric::NodeId| network.nodes()[node.index()].datacenter;
                let links = network.links().iter().enumerate().filter(|(_, link)| {
                    link.class == class && from.contains(&datacenter(link.from)) && to.contains(&datacenter(link.to))
                });
                Some(links.map(|(index, _)| rate(LinkId(index32(index)))).sum())
            }
            LinkClass::Edge | LinkClass::Core | LinkClass::Border | LinkClass::Other => None,
        }
    }
}

/// The hosts that may receive, by datacenter: where destinations are drawn from.
struct ReceiverHosts {
    order: Vec<HostId>,
    /// Index of each host in `order`, if it is there.
    position: Vec<Option<usize>>,
    /// First index of its datacenter in `order`, and the number of hosts of the datacenter there.
    home: Vec<(usize, usize)>,
}

impl ReceiverHosts {
    fn new(network: &Network, to: &[bool]) -> Self {
        let hosts = network.hosts().len();
        let mut order: Vec<HostId> = (0..index32(hosts)).map(HostId).filter(|host| to[host.index()]).collect();
        order.sort_by_key(|&host| network.datacenter_of(host));
        let mut position = vec![None; hosts];
        let mut parts = vec![(0, 0); usize::from(network.datacenters())];
        let mut start = 0;
        for part in order.chunk_by(|&a, &b| network.datacenter_of(a) == network.datacenter_of(b)) {
            for (offset, host) in part.iter().enumerate() {
                position[host.index()] = Some(start + offset);
            }
            parts[usize::from(network.datacenter_of(part[0]))] = (start, part.len());
            start += part.len();
        }
        let home = |host| parts[usize::from(network.datacenter_of(HostId(host)))];
        Self { order, position, home: (0..index32(hosts)).map(home).collect() }
    }

    /// Returns the number of destinations of a host.
    fn count(&self, src: HostId, class: FlowClass) -> usize {
        let (_, own) = self.home[src.index()];
        match class {
            FlowClass::Intra => own - usize::from(self.position[src.index()].is_some()),
            FlowClass::Inter => self.order.len() - own,
        }
    }

    /// One of them.
    fn destination(&self, src: HostId, class: FlowClass, choice: usize) -> HostId {
        let (start, own) = self.home[src.index()];
        let (first, skipped, past) = match (class, self.position[src.index()]) {
            (FlowClass::Intra, Some(position)) => (start, position, 1),
            (FlowClass::Intra, None) => (start, 0, 0),
            (FlowClass::Inter, _) => (0, start, own),
        };
        let at = first + choice;
        self.order[if at >= skipped { at + past } else { at }]
    }
}
