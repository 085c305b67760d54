//! What a run is told: the network, the flows, how hosts behave, what to sample.

use fabric::{CLASSES, HostId, LinkId, Network, NodeId, NodeKind, Routes, base_one_way, base_rtt};
use flow::{Blocks, Code, LossTimer, PathChoice, Recovery, TcpConfig};
use laws::Path;
use units::{Bytes, Rate, Span, Tick, Time};

use crate::jitter::Jitter;
use crate::start::{Causes, FlowId, Start};

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowSpec {
    /// Where it is sent from.
    pub src: HostId,
    /// Where it goes; not `src`.
    pub dst: HostId,
    /// Payload, at least 1 byte.
    pub size: Bytes,
    /// When it starts.
    pub start: Start,
    /// A number for whoever makes the laws: which law this flow runs.
    pub kind: u16,
    /// The class of its packets at switches that share their buffer, 1 to 7. Where a port lets control go first, its
    /// acknowledgements and notifications are of class 0 there.
    pub class: u8,
    /// Whether it is held at the edge, as [`HostConfig::on_ramp`] says.
    pub on_ramp: bool,
    /// Whether it is coded, as [`HostConfig::coding`] says.
    pub coded: bool,
    /// Whether it goes on a connection that is there already and has nothing to send, and leaves it behind: between the
    /// same two hosts, of the same class and kind. Else its connection begins and ends with it. Not for laws that schedule
    /// by credits.
    pub kept: bool,
}

/// Notification packets of receivers that meet marks (DCQCN's notification point).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cnp {
    /// At most one in this time for each flow.
    pub interval: Span,
    /// Bytes on the wire.
    pub size: u32,
}

/// How flows are held at the edge on one-way delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OnRampConfig {
    /// The rule.
    pub params: laws::on_ramp::Params,
    /// Whether the rule's threshold counts from the base one-way delay of a flow's own path, over the routes that hold when
    /// a packet leaves, and not from zero.
    pub over_base: bool,
    /// Packets that one OR-ACK answers, at least 1.
    pub ack_every: u32,
    /// Size of an OR-ACK on the wire, in bytes.
    pub ack_size: u32,
    /// Whether a flow starts with what the last OR-ACK from its receiver said to its host.
    pub memory: bool,
}

/// How the clocks of hosts are off: each by a constant drawn anew at every synchronisation, and by a drift since.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Clocks {
    /// Standard deviation of the offset right after a synchronisation (Gaussian).
    pub sigma: Span,
    /// Standard deviation of a clock's drift, in parts per billion.
    pub drift_ppb: u32,
    /// Time between synchronisations; none: never after the first, at time zero.
    pub resync: Option<Span>,
}

/// A controller in a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleSpec {
    /// The switch's port: towards the long haul.
    pub link: LinkId,
    /// What it does.
    pub module: Module,
}

/// What controllers in switches there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Module {
    /// LSCC's rate calculation, for what comes in over the long haul.
    RateCalculation(laws::lscc::CalculationParams),
    /// LSCC's rate limiting, for what leaves over the long haul.
    RateLimiting(laws::lscc::LimitingParams),
}

/// Erasure coding (Bonato et al., "Uno", SC 2025, §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coding {
    /// The blocks of a flow.
    pub code: Code,
    /// How long after a block's first packet its receiver asks for it; none: the longest wait in all queues of the way
    /// there, or the base round trip where a queue has no limit, and the time that a block takes on the narrowest link of
    /// all equal paths.
    pub block_timer: Option<Span>,
    /// Whether gaps in subflows ask, too: where each keeps its order, so not under [`PathChoice::PerPacket`].
    pub gaps: bool,
    /// Whether senders send again without being asked: [`flow::SenderCoding::eager`].
    pub eager: bool,
    /// Whether acknowledgements say which packets came before theirs: [`flow::SenderCoding::history`]. Then every packet has
    /// its own.
    pub history: bool,
}

/// What of a flow goes before what other flows have to send in its host ([`HostConfig::initial_quantum`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InitialQuantum {
    /// So much payload.
    Bytes(Bytes),
    /// The window that its law begins with, at most the flow's own BDP.
    Window,
}

impl InitialQuantum {
    /// Nothing: all flows have turns alike.
    pub const NONE: Self = Self::Bytes(Bytes::ZERO);

    /// The same of a flow on `path` whose law begins with `window`, in payload.
    pub fn of(self, window: Bytes, path: &Path) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Window => window.min(path.bdp()),
        }
    }
}

/// How all hosts behave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostConfig {
    /// Payload of a full packet.
    pub mss: u32,
    /// Header of every data packet; payload and header together are at most 65,535 bytes.
    pub header: u32,
    /// Size of an acknowledgement on the wire.
    pub ack_size: u32,
    /// Packets an acknowledgement answers, at least 1.
    pub ack_every: u8,
    /// How long an acknowledgement may be held back where `ack_every` is over 1; none chooses a quarter of the
    /// base round trip.
    pub ack_delay: Option<Span>,
    /// Path choice.
    pub path: PathChoice,
    /// Erasure coding of flows that ask for it; only with [`Recovery::Selective`].
    pub coding: Option<Coding>,
    /// Reordering tolerance; none chooses a quarter of the base round trip, and, where packets are sprayed or take turns on
    /// subflows, at least the longest wait in all queues of the path. Then, over queues without a limit, packets are held
    /// for lost by timeouts only.
    pub reordering: Option<Span>,
    /// Lower bound of the retransmission timeout. None chooses the round trip over the slowest of the equal paths with every
    /// queue full, or 5/4 of the base round trip if that is more or queues have no limit. To that it adds the longest delay of
    /// `jitter` at both ends. Under go-back-N it is at least 4 ms over the base round trip, because a paused packet is
    /// late and not lost.
    pub rto_min: Option<Span>,
    /// Upper bound of the retransmission timeout; never under what `rto_min` would be if none were given, because a
    /// timeout that strikes before an answer can come resends for ever.
    pub rto_max: Span,
    /// Whether laws are told of timeouts.
    pub timeouts_cut: bool,
    /// What a retransmission timeout counts from. With [`LossTimer::Packet`] the timeout is `rto_min`, and never under
    /// 5/4 of the base round trip. If `rto_min` is none, the timeout is the base round trip with every queue full;
    /// queues of the way back count only where acknowledgements wait in them. Only with [`Recovery::Selective`].
    pub loss_timer: LossTimer,
    /// How losses are found and mended.
    pub recovery: Recovery,
    /// Whether pacing counts headers, as network cards that pace do; else a law's rate is one of payload.
    pub pace_headers: bool,
    /// Whether pacing makes up for packets that left late: see [`flow::Pacing::catches_up`].
    pub catches_up: bool,
    /// Whether windows may be overshot by a part of a packet.
    pub overshoots: bool,
    /// The time between two paced packets is a whole multiple of this, rounded down: none where a packet lasts less. Ports
    /// have their own ([`fabric::PortConfig::tick`]).
    pub tick: Tick,
    /// In which units reports of ports come, as a multiple of the HPCC simulator's: 128 bytes sent, 80 bytes that wait,
    /// and whole nanoseconds; 0 reports exactly.
    pub int_multi: u32,
    /// Whether receivers answer marks by packets of their own.
    pub cnp: Option<Cnp>,
    /// Holding packets at the edge.
    pub on_ramp: Option<OnRampConfig>,
    /// Clocks, where one-way delays are measured.
    pub clocks: Clocks,
    /// Payload that a host hands to its card at once and holds as one (GSO), in bytes; a packet if less.
    pub segment: u32,
    /// Payload of one flow that may lie between the law and the card (TCP small queues); none: nothing waits there,
    /// the card asks flows in turn.
    pub small_queue: Option<Bytes>,
    /// Whether the small queue paces, as Linux's FQ does: round trips then count what a law's pace holds back. Only
    /// with `small_queue`.
    pub fq: bool,
    /// Flows that have sent less payload than this have their turns at the card before the others, as new flows have in Linux's FQ
    /// (`initial_quantum`, tc-fq(8)).
    pub initial_quantum: InitialQuantum,
    /// Whether hosts know how long flows are, as where applications say how long their messages are. Laws then hear how much is
    /// left ([`laws::Ack::left`]), and `initial_quantum` lets flows go first that have less than that left to send, however much
    /// they have sent.
    pub known_sizes: bool,
    /// Whether hosts give credits for what they are to receive, at their link's rate, in turn to all flows that ask (RCCC, the
    /// receiver's credits of Ultra Ethernet 1.0). Only with laws that have no credits of their own, and flows that are not coded.
    pub receiver_credits: bool,
    /// Whether packets ask the ports that they pass to report themselves.
    pub int: bool,
    /// Up to so much is added, by chance, to each round trip that a law hears of ([`flow::Noise`]).
    pub rtt_noise: Span,
    /// How long packets that came lie in a host before its transport hears of them. None is no time. Not under
    /// [`Ties::Scheduled`].
    pub jitter: Option<Jitter>,
    /// What Linux's TCP does between flows and their laws. Only with [`Recovery::Selective`] and one law a flow.
    pub tcp: TcpConfig,
    /// The longest that an emulation packet and its echo take between any two hosts, waits included, over any routes that
    /// hold at some time; none chooses twice the flow's own base round trip.
    pub longest_echo: Option<Span>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            mss: 4096,
            header: 64,
            ack_size: 64,
            ack_every: 1,
            ack_delay: None,
            path: PathChoice::PerFlow,
            coding: None,
            reordering: None,
            rto_min: None,
            rto_max: Span::from_s(4),
            timeouts_cut: true,
            loss_timer: LossTimer::Flow,
            recovery: Recovery::Selective,
            pace_headers: false,
            catches_up: true,
            overshoots: false,
            tick: Tick::NONE,
            int_multi: 0,
            cnp: None,
            on_ramp: None,
            clocks: Clocks::default(),
            segment: 0,
            small_queue: None,
            fq: false,
            initial_quantum: InitialQuantum::NONE,
            known_sizes: false,
            receiver_credits: false,
            int: false,
            rtt_noise: Span::ZERO,
            jitter: None,
            tcp: TcpConfig::default(),
            longest_echo: None,
        }
    }
}

/// What to sample, and how often.
#[derive(Clone, Hash, Default, Debug)]
pub struct SeriesConfig {
    /// Time between samples; zero samples nothing.
    pub interval: Span,
    /// Ports whose queues are sampled. Each of their pauses is noted, too.
    pub ports: Vec<LinkId>,
    /// Flows whose rate and window are sampled.
    pub flows: Vec<FlowId>,
    /// Switches whose shared buffer is sampled.
    pub switches: Vec<NodeId>,
    /// Flows whose packets' delays are compared with what was known when they left: see [`crate::Predictions`]. Has no
    /// interval. Takes no effect where packets carry reports of ports.
    pub predictors: Vec<FlowId>,
}

impl SeriesConfig {
    /// Whether a port is sampled.
    pub fn samples(&self, port: LinkId) -> bool {
        self.interval > Span::ZERO && self.ports.contains(&port)
    }
}

/// A whole run.
#[derive(Clone, Hash, Debug)]
pub struct Setup {
    /// The network.
    pub network: Network,
    /// Its routes.
    pub routes: Routes,
    /// Whether packets towards a flow's source (credits, acknowledgements, ...) take the reverse of the path that the flow's
    /// packets to its destination take with the same entropy ([`Routes::back`]), as `ExpressPass` asks of a network; else
    /// switches choose for them by a hash like any other.
    pub symmetric: bool,
    /// The flows by [`FlowId`].
    pub flows: Vec<FlowSpec>,
    /// What flows wait for: the sets that their starts name.
    pub causes: Causes,
    /// How hosts behave.
    pub host: HostConfig,
    /// Controllers in switches.
    pub modules: Vec<ModuleSpec>,
    /// What to sample.
    pub series: SeriesConfig,
    /// Everything random depends on this.
    pub seed: u64,
    /// When the run ends even if flows are left.
    pub stop: Time,
    /// The shortest control loop of the network: the base round trip between two hosts of one datacenter.
    pub intra_rtt: Span,
    /// The order of what happens at one time.
    pub ties: Ties,
}

/// In which order a node takes what happens at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Ties {
    /// A switch: arrivals by input. A host: arrivals, then what it does by itself.
    #[default]
    Input,
    /// As where all events lie in one queue and those of one time run in the order in which they were scheduled: see
    /// `crate::ties`. Only at switches that share their buffer, and hosts.
    Scheduled,
}

/// What the equal paths between two hosts give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paths {
    /// Base round trip of a packet and its acknowledgement, over the first path.
    pub base_rtt: Span,
    /// How much longer that is over the slowest path.
    pub spread: Span,
    /// The narrowest link there.
    pub line_rate: Rate,
    /// Links there.
    pub hops: u32,
    /// How much longer than `base_rtt` a packet there and its acknowledgement back can take over any path, with all queues of
    /// switches full; none where a queue has no limit.
    pub longest_wait: Option<Span>,
    /// The same on the way there alone.
    pub longest_wait_there: Option<Span>,
}

impl Paths {
    /// The longest wait on the way there as coded flows reckon with it: a base round trip where a queue has no limit.
    pub fn wait_there(&self) -> Span {
        self.longest_wait_there.unwrap_or(self.base_rtt)
    }
}

impl Setup {
    /// Whether something goes beside packets: reports of ports, or what their senders knew.
    pub fn carries_reports(&self) -> bool {
        self.host.int || !self.series.predictors.is_empty()
    }

    fn first_path(&self, from: HostId, to: HostId) -> Vec<LinkId> {
        self.routes.path(&self.network, from, to, |_, _| 0)
    }

    /// What the equal paths between two hosts give for packets of `payload` bytes, the first of them where nothing else is
    /// said.
    pub fn paths(&self, src: HostId, dst: HostId, payload: u32) -> Paths {
        let (there, back) = (self.first_path(src, dst), self.first_path(dst, src));
        let rates = there.iter().map(|&link| self.network.port(link).config().rate);
        let (data, ack) = (payload + self.host.header, self.host.ack_size);
        // Packets do not wait at a host's card, the first link: they are handed over one by one.
        let wait = |link: LinkId| if self.starts_at_host(link) { Some(Span::ZERO) } else { self.longest_wait(link) };
        let spread =
            [(&there, data), (&back, ack)].map(|(path, size)| self.more_over(path, size, |_| Some(Span::ZERO)));
        let [longest_wait_there, longest_wait_back] =
            [(&there, data), (&back, ack)].map(|(path, size)| self.more_over(path, size, wait));
        Paths {
            base_rtt: base_rtt(&self.network, &there, &back, data, ack),
            spread: spread.into_iter().flatten().sum(),
            line_rate: rates.fold(Rate::MAX, Rate::min),
            hops: there.len() as u32,
            longest_wait: longest_wait_there.zip(longest_wait_back).map(|(there, back)| there + back),
            longest_wait_there,
        }
    }

    /// How much longer a packet of `size` bytes on the wire can take than over this path without queues, over any that is equal
    /// to it and with these waits.
    fn more_over(&self, path: &[LinkId], size: u32, wait: impl Fn(LinkId) -> Option<Span>) -> Option<Span> {
        let most = self
            .routes
            .dearest(&self.network, path, |link| Some(wait(link)? + base_one_way(&self.network, &[link], size)));
        Some(most? - base_one_way(&self.network, path, size))
    }

    fn starts_at_host(&self, link: LinkId) -> bool {
        self.network.nodes()[self.network.links()[link.index()].from.index()].kind != NodeKind::Switch
    }

    /// Whether acknowledgements of a flow from `src` to `dst` wait in no queue of data on their way back.
    pub fn answers_go_first(&self, src: HostId, dst: HostId) -> bool {
        let back = self.first_path(dst, src);
        back.iter().skip(1).all(|&link| self.network.port(link).config().control_priority)
    }

    /// What a flow's law may know of its path.
    pub fn law_path(&self, spec: &FlowSpec) -> Path {
        let paths = self.paths(spec.src, spec.dst, self.host.mss);
        Path {
            base_rtt: paths.base_rtt,
            intra_rtt: self.intra_rtt,
            line_rate: paths.line_rate,
            mss: Bytes::new(self.host.mss.into()),
        }
    }

    /// The blocks of a flow that is coded.
    pub fn blocks(&self, flow: &FlowSpec) -> Option<Blocks> {
        let coding = self.host.coding.filter(|_| flow.coded)?;
        Some(Blocks::new(flow.size, self.host.mss, &coding.code))
    }

    /// The subflows of which acknowledgements of coded flows say what came before; 0 if they do not.
    pub fn history(&self) -> u8 {
        match self.host.path {
            _ if self.host.coding.is_none_or(|coding| !coding.history) => 0,
            PathChoice::UnoLb(unolb) => unolb.subflows,
            _ => 1,
        }
    }

    /// How long a receiver waits for a block of a flow that is coded: see [`Coding::block_timer`].
    pub fn block_timer(&self, flow: &FlowSpec) -> Option<Span> {
        let coding = self.host.coding.filter(|_| flow.coded)?;
        Some(coding.block_timer.unwrap_or_else(|| {
            let paths = self.paths(flow.src, flow.dst, self.host.mss);
            let packets = u64::from(coding.code.data) + u64::from(coding.code.parity);
            let block = Bytes::new(packets * u64::from(self.host.mss + self.host.header));
            let narrowest = self.routes.narrowest(&self.network, &self.first_path(flow.src, flow.dst));
            paths.wait_there() + narrowest.unwrap_or(Rate::MAX).time_for(block)
        }))
    }

    /// How many packets a flow has, parity included.
    pub fn packets(&self, flow: &FlowSpec) -> u32 {
        let packets = || flow.size.get().div_ceil(self.host.mss.into()) as u32;
        self.blocks(flow).map_or_else(packets, |blocks| blocks.total())
    }

    /// The longest that a packet can wait at a port: what its queue holds, and no more than the whole buffer of its
    /// switch where that is shared. A pause may be longer.
    fn longest_wait(&self, link: LinkId) -> Option<Span> {
        let port = self.network.port(link).config();
        let switch = self.network.nodes()[self.network.links()[link.index()].from.index()].switch;
        let shared =
            switch.filter(|switch| switch.buffer != Bytes::MAX).map(|switch| port.rate.time_for(switch.buffer));
        port.longest_wait().into_iter().chain(shared).min()
    }

    /// The time from a packet's first bit sent to its last bit received with empty queues; zero on one host.
    pub fn one_way(&self, src: HostId, dst: HostId) -> Span {
        if src == dst {
            return Span::ZERO;
        }
        base_one_way(&self.network, &self.first_path(src, dst), self.host.ack_size)
    }

    /// What On-Ramp's threshold counts from for what a flow sends at a time: the base one-way delay of a full packet over
    /// the routes that hold then, or zero, as [`OnRampConfig::over_base`] says.
    pub fn hold_base(&self, flow: &FlowSpec, at: Time) -> Span {
        if self.host.on_ramp.is_none_or(|on_ramp| !on_ramp.over_base) {
            return Span::ZERO;
        }
        let path = self.routes.at(at).path(&self.network, flow.src, flow.dst, |_, _| 0);
        base_one_way(&self.network, &path, self.host.mss + self.host.header)
    }

    /// The number of data classes that flows use, at least one.
    pub fn classes_in_use(&self) -> u64 {
        let mut used = [false; CLASSES];
        for flow in &self.flows {
            used[usize::from(flow.class) % CLASSES] = true;
        }
        (used.iter().filter(|&&used| used).count() as u64).max(1)
    }

    /// Returns true if a node's ports share one buffer or act so; such a switch is replayed as a whole.
    pub fn shares(&self, node: NodeId) -> bool {
        let details = &self.network.nodes()[node.index()];
        let controlled = || {
            let out = self.network.links_out(node);
            self.modules.iter().any(|module| out.contains(&module.link.0))
        };
        details.kind == NodeKind::Switch && (details.switch.is_some() || self.carries_reports() || controlled())
    }
}
