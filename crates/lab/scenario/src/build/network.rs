//! Conversion of `[topology]` and `[port]` to a network, with delays solved from the requested round trips.

mod custom;

use fabric::{
    Builder, CreditQueue, Discipline, ImpairmentId, IngressLimit, Limit, LinkClass, Network, NetworkError, PortConfig,
    Relay, topology,
};
use units::{Bytes, Frac, PrecomputedRate, Rate, Span};

use super::impairments::{ImpairmentList, impairments};
use super::switches::Sharing;
use crate::config::{
    Auto, CablePorts, Clos, Config, Dumbbell, EachHost, FatTrees, FlowChoice, Headroom, Host, ImpairTable, InterPair,
    OffOr, PortClassOverrides, Scheme, SingleSwitch, SwingTable, SwitchBuffers, Topology,
};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::inputs::Inputs;

/// More hosts or links than this are a mistake in a file, not a network.
const MAX_HOSTS: u64 = 200_000;
const MAX_LINKS: u64 = 2_000_000;

/// Inputs from which a network is built.
pub(crate) struct NetworkInputs<'a> {
    pub(crate) config: &'a Config,
    pub(crate) scheme: &'a Scheme,
    /// The switches that share their buffers, if any do.
    pub(crate) sharing: Option<&'a Sharing<'a>>,
    /// Files that the scenario names.
    pub(crate) inputs: &'a Inputs,
    /// Impairments of the ports so far.
    pub(crate) impairments: ImpairmentList,
    /// The largest packet on the wire.
    pub(crate) packet: u32,
    /// The longest base round trip, which buffers may be multiples of.
    pub(crate) rtt: Span,
    /// The queue of credits that all ports have.
    pub(crate) credits: Option<CreditQueue>,
}

/// Conditions under which the ports of a switch decide alone.
pub(super) const INDEPENDENT_PORTS_HELP: &str =
    "give the scheme switch = \"off\", no `lscc` and no law that reads reports, and [monitor] no predictors";

/// Returns whether the ports of a switch decide together, because it shares a buffer, reports its queues or has
/// controllers.
pub(super) fn ports_decide_together(config: &Config, scheme: &Scheme, buffers: SwitchBuffers) -> bool {
    buffers == SwitchBuffers::Shared
        || scheme.reads_reports()
        || scheme.lscc.is_some()
        || *config.monitor.predictors != FlowChoice::None
}

impl NetworkInputs<'_> {
    /// Builds a scheme's network.
    pub(crate) fn network(&self) -> Result<Network, SpannedError> {
        let mut builder = match &self.config.topology.value {
            Topology::FatTrees(fat_trees) => self.fat_trees(fat_trees),
            Topology::Clos(clos) => self.clos(clos),
            Topology::Dumbbell(dumbbell) => self.dumbbell(dumbbell),
            Topology::SingleSwitch(single) => return self.single_switch(single),
            Topology::Custom(custom) => self.custom(custom),
        }?;
        if let Some(swing) = self.scheme.swing.as_ref() {
            self.relays(swing, &mut builder)?;
        }
        self.checked_network(builder.finish().and_then(|network| network.with_impairments(self.impairments.all())))
    }

    fn cable(&self, rate: Rate, delay: Span) -> CablePorts {
        let pfc = self.sharing.and_then(Sharing::pfc);
        CablePorts { rate, delay, rtt: self.rtt, packet: self.packet, pfc, classes: self.config.data_classes() }
    }

    fn port(&self, class: LinkClass, rate: Rate, delay: Span) -> Result<PortConfig, SpannedError> {
        self.port_with(class, None, rate, delay)
    }

    fn port_with(
        &self,
        class: LinkClass,
        patch: Option<&PortClassOverrides>,
        rate: Rate,
        delay: Span,
    ) -> Result<PortConfig, SpannedError> {
        let settings = self.config.port.settings(class, self.scheme.port.as_ref()).with(patch);
        self.check_headroom(settings.headroom)?;
        let port = settings.config(&self.cable(rate, delay))?;
        let buffers = if self.sharing.is_some() { SwitchBuffers::Shared } else { SwitchBuffers::PerPort };
        if port.discipline != Discipline::Fifo && ports_decide_together(self.config, self.scheme, buffers) {
            return Err(SpannedError::new(
                settings.discipline_origin(),
                "the ports of a switch that decide together have FIFOs",
            )
            .label("expected false")
            .help(INDEPENDENT_PORTS_HELP));
        }
        if port.discipline != Discipline::Fifo && self.credits.is_some() {
            return Err(SpannedError::new(
                settings.discipline_origin(),
                "a port with a credit queue has a FIFO for its data",
            )
            .label("expected false")
            .help("or credit_queue = \"off\" in [port], if the scheme's laws send no credits"));
        }
        let impairments = self.impaired(&settings.impair, rate, buffers)?;
        Ok(PortConfig { credits: self.credits, tick: self.config.clock.tick(), impairments, ..port })
    }

    /// Returns the index of a port's impairments, if it has any.
    fn impaired(
        &self,
        impair: &Located<OffOr<ImpairTable>>,
        rate: Rate,
        buffers: SwitchBuffers,
    ) -> Result<Option<ImpairmentId>, SpannedError> {
        let Some(table) = impair.as_ref() else { return Ok(None) };
        let refuse = |message: &str, help: &str| {
            Err(SpannedError::new(impair.origin, message).label("expected \"off\"").help(help.to_owned()))
        };
        if ports_decide_together(self.config, self.scheme, buffers) {
            return refuse(
                "the link behind a port that decides alone may be impaired, and here the ports of a switch decide together",
                INDEPENDENT_PORTS_HELP,
            );
        }
        if self.credits.is_some() || self.scheme.credit_law().is_some() {
            return refuse(
                "impaired links carry no credits: a copy of a credit would be one more",
                "choose laws that send no credits, and credit_queue = \"off\" or \"auto\"",
            );
        }
        let impairments = impairments(table, rate, self.inputs).map_err(|error| error.at_least(impair.origin))?;
        if impairments.rate_schedule.is_some() && !self.config.clock.tick().is_none() {
            return refuse(
                "a schedule of rates has exact times, and [clock] rounds those of services",
                "tick = \"off\"",
            );
        }
        self.impairments.add(impairments, impair.origin)
    }

    /// Refuses to reckon a headroom by exact times where links are faster than that.
    fn check_headroom(&self, headroom: Headroom) -> Result<(), SpannedError> {
        let tick = &self.config.clock.tick;
        let pauses = self.sharing.and_then(Sharing::pfc).is_some();
        if tick.value().is_none() || headroom != Headroom::Auto || !pauses {
            return Ok(());
        }
        let message = "headroom = \"auto\" counts with exact times, and with ticks packets follow each other faster";
        Err(SpannedError::new(tick.origin, message)
            .label("cuts the time that packets take")
            .help("give [port] headroom in bytes, or as a multiple such as \"1.5bdp\"; or tick = \"off\""))
    }

    /// A host's own port.
    fn nic(&self, rate: Rate, delay: Span) -> PortConfig {
        PortConfig { credits: self.credits, tick: self.config.clock.tick(), ..Host::nic(rate, delay) }
    }

    /// Puts SWING's relays into the long hauls.
    fn relays(&self, swing: &SwingTable, builder: &mut Builder) -> Result<(), SpannedError> {
        let delay = over_zero(swing.delay)?;
        self.check_headroom(Headroom::Auto)?;
        let Some(pfc) = self.sharing.and_then(Sharing::pfc) else {
            return Err(SpannedError::new(
                self.scheme.swing.origin,
                "SWING's relays pass pauses on, and nothing pauses here",
            )
            .label("needs [switch] with pfc = true")
            .help("add a table [switch] with pfc = true"));
        };
        builder.relays(|port| {
            let (near, far) = (self.cable(port.rate, delay), self.cable(port.rate, port.delay));
            let limit = |headroom| IngressLimit { xoff: Limit::Alpha(Frac::ONE), xon_offset: Bytes::ZERO, headroom };
            // A relay neither marks nor drops before its buffer is full.
            let bare = PortConfig { buffer: Bytes::MAX, ecn: None, phantom: None, ..*port };
            let toward_border = limit(Headroom::Auto.bytes(&near));
            let toward_far = limit(swing.headroom.bytes(&far));
            let own = toward_border.headroom.saturating_add(toward_far.headroom);
            let long = Headroom::Bdp(crate::quantity::Decimal::ONE).bytes(&far);
            let buffer = match swing.buffer {
                Auto::Auto => own.times(self.config.data_classes()).saturating_add(long),
                Auto::Set(bytes) => bytes,
            };
            let near_limit = IngressLimit { headroom: Headroom::Auto.bytes(&near), ..port.ingress_limit };
            Relay {
                switch: fabric::Switch {
                    buffer,
                    reserve: Bytes::ZERO,
                    egress_alpha: None,
                    pfc: Some(fabric::Pfc { relay: true, ..pfc }),
                    int: false,
                },
                short: [
                    PortConfig { delay, loss: Frac::ZERO, ingress_limit: near_limit, ..*port },
                    PortConfig { delay, loss: Frac::ZERO, ingress_limit: toward_border, ..bare },
                ],
                long: PortConfig { ingress_limit: toward_far, ..bare },
            }
        });
        Ok(())
    }

    fn checked_network(&self, built: Result<Network, NetworkError>) -> Result<Network, SpannedError> {
        built.map_err(|error| SpannedError::new(self.config.topology.origin, error.to_string()))
    }

    fn checked_builder(&self, built: Result<Builder, NetworkError>) -> Result<Builder, SpannedError> {
        built.map_err(|error| SpannedError::new(self.config.topology.origin, error.to_string()))
    }

    fn limit(&self, hosts: u64, links: u64) -> Result<(), SpannedError> {
        if hosts > MAX_HOSTS || links > MAX_LINKS {
            let message = format!("{hosts} hosts and {links} links; at most {MAX_HOSTS} and {MAX_LINKS} are simulated");
            return Err(SpannedError::new(self.config.topology.origin, message));
        }
        Ok(())
    }

    /// Returns the serialisation time over these links of a full packet in one direction and its acknowledgement in the
    /// other, in picoseconds.
    fn sending(&self, rates: &[Rate]) -> u64 {
        let host = &self.config.host;
        let data = u32::from(host.mss.get()) + u32::from(*host.header);
        let ack = u32::from(host.ack_size.get());
        let tick = self.config.clock.tick();
        let one = |rate, size| tick.service_ps(rate, PrecomputedRate::new(rate), size);
        rates.iter().map(|&rate| one(rate, data) + one(rate, ack)).sum()
    }

    fn fat_trees(&self, fat_trees: &FatTrees) -> Result<Builder, SpannedError> {
        let rates = FatTreeRates::of(fat_trees)?;
        let half = u64::from(fat_trees.k.get() / 2);
        let per_edge = fat_trees.hosts_per_edge.map_or(fat_trees.k.get() / 2, std::num::NonZeroU16::get);
        let trees = u64::from(fat_trees.datacenters.get());
        let hosts = trees * 2 * half * half * u64::from(per_edge);
        let border = half * half * u64::from(fat_trees.border_links_per_core.get());
        self.limit(
            hosts,
            hosts + trees * (4 * half * half * half + border + trees * u64::from(fat_trees.inter_links.get())),
        )?;

        let link_delay = self.link_delay(fat_trees, &rates)?;
        let mut inter = Vec::new();
        for low in 0..fat_trees.datacenters.get() {
            for high in low + 1..fat_trees.datacenters.get() {
                let pair = fat_trees
                    .inter
                    .iter()
                    .find(|pair| pair.between.as_slice() == [low, high] || pair.between.as_slice() == [high, low]);
                let rate = pair.and_then(|pair| pair.rate).unwrap_or(rates.inter);
                let delay = self.inter_delay(fat_trees, pair, &rates, rate, link_delay)?;
                inter.push(topology::InterLinks {
                    between: (low, high),
                    count: pair.and_then(|pair| pair.links).unwrap_or(fat_trees.inter_links).get(),
                    port: self.port(LinkClass::Inter, rate, delay)?,
                });
            }
        }
        let built = topology::FatTrees {
            datacenters: fat_trees.datacenters.get(),
            k: fat_trees.k.get(),
            hosts_per_edge: per_edge,
            nic: self.nic(rates.host, link_delay),
            host: self.port(LinkClass::Host, rates.host, link_delay)?,
            edge: self.port(LinkClass::Edge, rates.edge, link_delay)?,
            core: self.port(LinkClass::Core, rates.core, link_delay)?,
            border: self.port(LinkClass::Border, rates.border, link_delay)?,
            border_links_per_core: fat_trees.border_links_per_core.get(),
            inter,
        };
        self.checked_builder(built.lay())
    }

    fn clos(&self, clos: &Clos) -> Result<Builder, SpannedError> {
        let counts = clos.hosts();
        let trees = u64::from(clos.datacenters.get());
        let hosts: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let [pods, tors] = [clos.pods, clos.tors].map(|count| u64::from(count.get()));
        let (aggs, cores) = (u64::from(*clos.aggs), u64::from(*clos.cores));
        let up = pods * (aggs * tors * u64::from(clos.edge_links.get()) + cores);
        let tops = [cores, aggs, tors].into_iter().find(|&count| count > 0).unwrap_or(0);
        let between = trees * u64::from(clos.inter_links.get());
        self.limit(trees * hosts, trees * (hosts + up + tops * u64::from(clos.border_links.get()) + between))?;

        let delay = over_zero(clos.link_delay)?;
        let rates = clos.host_rate.as_ref().map_or(EachHost::Same(clos.rate), |rates| rates.value.clone());
        let mut racks = Vec::with_capacity(counts.len());
        let mut first = 0;
        for count in counts {
            let mut rack: Vec<topology::RackHosts> = Vec::new();
            for host in first..first + usize::from(count) {
                let rate = rates.of(host).unwrap_or(clos.rate);
                match rack.last_mut() {
                    Some(last) if last.nic.rate == rate => last.count += 1,
                    _ => rack.push(topology::RackHosts {
                        count: 1,
                        nic: self.nic(rate, delay),
                        port: self.port(LinkClass::Host, rate, delay)?,
                    }),
                }
            }
            first += usize::from(count);
            racks.push(rack);
        }
        let mut inter = Vec::new();
        for low in 0..clos.datacenters.get() {
            for high in low + 1..clos.datacenters.get() {
                let rate = clos.inter_rate.unwrap_or(clos.rate);
                let port = self.port(LinkClass::Inter, rate, over_zero(clos.inter_delay)?)?;
                inter.push(topology::InterLinks { between: (low, high), count: clos.inter_links.get(), port });
            }
        }
        let port = |class, rate: Option<Rate>| self.port(class, rate.unwrap_or(clos.rate), delay);
        let built = topology::Clos {
            datacenters: clos.datacenters.get(),
            pods: clos.pods.get(),
            edges: clos.tors.get(),
            aggregations: *clos.aggs,
            cores: *clos.cores,
            racks,
            edge: port(LinkClass::Edge, clos.edge_rate)?,
            edge_links: clos.edge_links.get(),
            core: port(LinkClass::Core, clos.core_rate)?,
            border: port(LinkClass::Border, clos.border_rate)?,
            border_links: clos.border_links.get(),
            inter,
        };
        self.checked_builder(built.lay())
    }

    /// The delay of links inside: as given, or solved from the requested round trip between pods.
    fn link_delay(&self, fat_trees: &FatTrees, rates: &FatTreeRates) -> Result<Span, SpannedError> {
        let Some(rtt) = fat_trees.intra_rtt else {
            return fat_trees.link_delay.map_or(Ok(Span::from_us(1)), over_zero);
        };
        let sending = self.sending(&rates.inside());
        // Six links there and six back.
        solve(rtt, sending, 12)
    }

    fn inter_delay(
        &self,
        fat_trees: &FatTrees,
        pair: Option<&InterPair>,
        rates: &FatTreeRates,
        rate: Rate,
        link_delay: Span,
    ) -> Result<Span, SpannedError> {
        let (pair_delay, pair_rtt) = pair.map_or((None, None), |pair| (pair.delay, pair.rtt));
        let default = Located::default_of(Span::from_ms(2));
        let common = if pair_rtt.is_some() { None } else { fat_trees.inter_delay };
        if let Some(delay) = pair_delay.or(common) {
            return over_zero(delay);
        }
        let rtt = pair_rtt.or(fat_trees.inter_rtt).unwrap_or(default);
        let up = [rates.host, rates.edge, rates.core, rates.border];
        let sending = 2 * self.sending(&up) + self.sending(&[rate]);
        // Four links up and four down, there and back, at the delay of links inside.
        solve(rtt, sending + 16 * link_delay.unsigned_ps(), 2)
    }

    fn dumbbell(&self, dumbbell: &Dumbbell) -> Result<Builder, SpannedError> {
        let left = usize::from(dumbbell.left.get());
        let all = left + usize::from(dumbbell.right.get());
        self.limit(all as u64, all as u64)?;
        let rates = dumbbell.host_rate.as_ref().map_or(EachHost::Same(*dumbbell.rate), |rates| rates.value.clone());
        let mut hosts = self.hosts(all, &rates, &dumbbell.host_delay)?;
        let right = hosts.split_off(left);
        let class = if dumbbell.two_datacenters { LinkClass::Inter } else { LinkClass::Other };
        Ok(topology::lay_dumbbell(&topology::Dumbbell {
            left: hosts,
            right,
            bottleneck: self.port(class, *dumbbell.rate, over_zero(dumbbell.delay)?)?,
            two_datacenters: dumbbell.two_datacenters,
        }))
    }

    fn single_switch(&self, single: &SingleSwitch) -> Result<Network, SpannedError> {
        let hosts = self.hosts(usize::from(single.hosts.get()), &single.rate, &single.delay)?;
        let network = topology::single_switch(&topology::SingleSwitch { hosts });
        self.checked_network(network.and_then(|network| network.with_impairments(self.impairments.all())))
    }

    /// The two ports of each host's cable.
    fn hosts(
        &self,
        count: usize,
        rates: &EachHost<Rate>,
        delays: &Located<EachHost<Span>>,
    ) -> Result<Vec<(PortConfig, PortConfig)>, SpannedError> {
        let ports = |host| {
            let rate = rates.of(host).unwrap_or(Rate::from_gbps(100));
            let delay = over_zero(Located { value: delays.of(host).unwrap_or(Span::ZERO), origin: delays.origin })?;
            Ok((self.nic(rate, delay), self.port(LinkClass::Host, rate, delay)?))
        };
        (0..count).map(ports).collect()
    }
}

/// The rates of a fat tree's links.
struct FatTreeRates {
    host: Rate,
    edge: Rate,
    core: Rate,
    border: Rate,
    inter: Rate,
}

impl FatTreeRates {
    fn of(fat_trees: &FatTrees) -> Result<Self, SpannedError> {
        let host = fat_trees.host_rate.unwrap_or(*fat_trees.rate);
        let mut edge = fat_trees.edge_rate.map_or(*fat_trees.rate, |rate| rate.value);
        if let Some(over) = fat_trees.oversubscription {
            // Uplinks of an edge switch: k/2, each of its hosts' rate over the oversubscription and k/2.
            let per_edge = fat_trees.hosts_per_edge.map_or(fat_trees.k.get() / 2, std::num::NonZeroU16::get);
            let hosts = host.bps().saturating_mul(u64::from(per_edge));
            edge = Rate::from_bps(over.divides(hosts) / u64::from(fat_trees.k.get() / 2));
            if edge < Rate::from_mbps(1) || edge.bps() > 1 << 43 {
                return Err(SpannedError::new(over.origin, format!("uplinks of {edge} are out of range"))
                    .label("expected uplinks of 1 Mbps to 8.7 Tbps"));
            }
        }
        Ok(Self {
            host,
            edge,
            core: fat_trees.core_rate.unwrap_or(*fat_trees.rate),
            border: fat_trees.border_rate.unwrap_or(*fat_trees.rate),
            inter: fat_trees.inter_rate.unwrap_or(*fat_trees.rate),
        })
    }

    /// Returns the rates of the links from one pod to another.
    fn inside(&self) -> [Rate; 6] {
        [self.host, self.edge, self.core, self.core, self.edge, self.host]
    }
}

/// Returns the delay of each of `links` links, if the other parts of the round trip take `other` picoseconds.
fn solve(rtt: Located<Span>, other: u64, links: u64) -> Result<Span, SpannedError> {
    let left = rtt.unsigned_ps().saturating_sub(other) / links;
    if left == 0 {
        let other = Span::from_ps(i64::try_from(other).unwrap_or(i64::MAX));
        return Err(SpannedError::new(
            rtt.origin,
            format!("a round trip of {} leaves no time for the links: the rest takes {other}", *rtt),
        )
        .label(format!("expected over {other}")));
    }
    over_zero(Located { value: Span::from_unsigned_ps(left), origin: rtt.origin })
}

/// The longest delay of a link: a path of ten, there and back, stays far inside a [`Span`].
const MAX_DELAY: Span = Span::from_s(100);

/// Refuses a link without delay, and one that takes forever.
fn over_zero(delay: Located<Span>) -> Result<Span, SpannedError> {
    if delay.is_zero() {
        return Err(SpannedError::new(
            delay.origin,
            "a link has a delay over zero: it is what lets its ends be simulated apart",
        )
        .label("expected a time such as \"1us\""));
    }
    if *delay > MAX_DELAY {
        return Err(SpannedError::new(delay.origin, format!("a link with a delay of {}", *delay))
            .label("expected at most \"100s\""));
    }
    Ok(*delay)
}
