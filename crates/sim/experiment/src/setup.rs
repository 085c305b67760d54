//! Input of a run: the network, the flows, the behaviour of hosts, the samples.

use fabric::{CLASSES, HostId, LinkId, Network, NodeId, NodeKind, Routes, base_one_way, base_rtt};
use flow::{Blocks, FlowCoding, LoadBalancing, LossTimer, Recovery, TcpConfig};
use laws::PathInfo;
use units::{Bytes, Rate, Span, Tick, Time};

use crate::jitter::Jitter;
use crate::start::{Dependencies, FlowId, Start};

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowSpec {
    /// Source host.
    pub src: HostId,
    /// Destination host; not `src`.
    pub dst: HostId,
    /// Payload, at least 1 byte.
    pub size: Bytes,
    /// Start of the flow.
    pub start: Start,
    /// A number for the caller that creates the laws: selects this flow's law.
    pub kind: u16,
    /// The class of its packets at switches that share their buffer, 1 to 7. Where a port lets control go first, its
    /// acknowledgements and notifications are of class 0 there.
    pub class: u8,
    /// Set if it is held at the edge, as configured by [`HostConfig::on_ramp`].
    pub on_ramp: bool,
    /// Set if it is coded, as configured by [`HostConfig::coding`].
    pub coded: bool,
    /// Set if it uses an existing idle connection, and leaves it behind: between the same two hosts, of the same class
    /// and kind. Otherwise its connection begins and ends with it. Not for laws that schedule by credits.
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

/// Configuration of holds at the edge on one-way delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OnRampConfig {
    /// The rule.
    pub params: laws::on_ramp::OnRampParams,
    /// Set if the rule's threshold counts from the base one-way delay of a flow's own path, over the routes that hold
    /// when a packet leaves, and not from zero.
    pub on_queueing_delay: bool,
    /// Packets that one OR-ACK answers, at least 1.
    pub ack_every: u32,
    /// Size of an OR-ACK on the wire, in bytes.
    pub ack_size: u32,
    /// Set if a flow starts with the state that the last OR-ACK from its receiver left at its host.
    pub memory: bool,
}

/// Errors of host clocks: a random constant for each synchronisation, and a drift since then.
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
pub struct SwitchControllerSpec {
    /// The switch's port: towards the long haul.
    pub link: LinkId,
    /// Its function.
    pub module: SwitchController,
}

/// Controllers in switches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SwitchController {
    /// LSCC's rate calculation, for traffic that arrives over the long haul.
    RateCalculation(laws::lscc::CalculationParams),
    /// LSCC's rate limiting, for traffic that leaves over the long haul.
    RateLimiting(laws::lscc::LimitingParams),
}

/// Erasure coding (Bonato et al., "Uno", SC 2025, §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coding {
    /// The blocks of a flow.
    pub code: FlowCoding,
    /// The time after a block's first packet at which its receiver requests the block; none: the longest wait in all
    /// queues of the forward path, or the base round trip if a queue has no limit, and the time that a block takes on
    /// the narrowest link of all equal paths.
    pub block_timer: Option<Span>,
    /// Set if gaps in subflows trigger requests, too: if each keeps its order, so not under [`LoadBalancing::PerPacket`].
    pub gaps: bool,
    /// Set if senders retransmit without a request: [`flow::SenderCoding::eager`].
    pub eager: bool,
    /// Set if acknowledgements carry the arrivals before theirs: [`flow::SenderCoding::history`]. Then every packet has
    /// its own acknowledgement.
    pub history: bool,
}

/// Bytes of a flow that go ahead of other flows in its host ([`HostConfig::initial_quantum`], tc-fq(8)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InitialQuantum {
    /// An amount of payload.
    Bytes(Bytes),
    /// The window that its law begins with, at most the flow's own BDP.
    Window,
}

impl InitialQuantum {
    /// No quantum: all flows have turns alike.
    pub const NONE: Self = Self::Bytes(Bytes::ZERO);

    /// Returns the quantum, in payload, of a flow on `path` with a law that begins with `window`.
    pub fn of(self, window: Bytes, path: &PathInfo) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Window => window.min(path.bdp()),
        }
    }
}

/// Behaviour of all hosts.
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
    /// The maximum delay of an acknowledgement if `ack_every` is over 1; none chooses a quarter of the base round trip.
    pub ack_delay: Option<Span>,
    /// Path choice.
    pub path: LoadBalancing,
    /// Erasure coding of flows that ask for it; only with [`Recovery::Selective`].
    pub coding: Option<Coding>,
    /// Reordering tolerance; none chooses a quarter of the base round trip, and, if packets are sprayed or take turns
    /// on subflows, at least the longest wait in all queues of the path. Then, over queues without a limit, packets are
    /// declared lost by timeouts only.
    pub reordering: Option<Span>,
    /// Lower bound of the retransmission timeout. None chooses the round trip over the slowest of the equal paths with every
    /// queue full, or 5/4 of the base round trip if that is more or queues have no limit. To that it adds the longest delay of
    /// `jitter` at both ends. Under go-back-N it is at least 4 ms over the base round trip, because a paused packet is
    /// late and not lost.
    pub rto_min: Option<Span>,
    /// Upper bound of the retransmission timeout; never under the default of `rto_min`, because a timeout that expires
    /// before an ACK can arrive retransmits for ever.
    pub rto_max: Span,
    /// Set if laws are notified of timeouts.
    pub law_sees_timeouts: bool,
    /// The start of a retransmission timeout. With [`LossTimer::Packet`] the timeout is `rto_min`, and never under 5/4
    /// of the base round trip. If `rto_min` is none, the timeout is the base round trip with every queue full; queues
    /// of the reverse path count only if acknowledgements wait in them. Only with [`Recovery::Selective`].
    pub loss_timer: LossTimer,
    /// Detection and repair of losses.
    pub recovery: Recovery,
    /// Bytes of each packet that pacing counts in addition to its payload: 0 if a law's rate is one of payload, the header for
    /// NICs that pace.
    pub pace_header: u32,
    /// Set if pacing makes up for packets that left late: see [`flow::Pacing::catches_up`].
    pub catches_up: bool,
    /// Set if windows may be exceeded by a part of a packet.
    pub overshoots: bool,
    /// The time between two paced packets is a multiple of this, rounded down: none if a packet lasts less. Ports have
    /// their own ([`fabric::PortConfig::tick`]).
    pub tick: Tick,
    /// Units of port reports, as a multiple of the HPCC simulator's: 128 bytes sent, 80 bytes that wait, and whole
    /// nanoseconds; 0 reports exactly.
    pub int_multi: u32,
    /// Notification packets of receivers that receive marks, if they send any.
    pub cnp: Option<Cnp>,
    /// Holding packets at the edge.
    pub on_ramp: Option<OnRampConfig>,
    /// Clocks, where one-way delays are measured.
    pub clocks: Clocks,
    /// Payload that a host hands to its NIC at once and holds as one (GSO), in bytes; a packet if less.
    pub segment: u32,
    /// Payload of one flow that may wait between the law and the NIC (TCP small queues); none: nothing waits there, the
    /// NIC polls flows in turn.
    pub small_queue: Option<Bytes>,
    /// Set if the small queue paces, as Linux's FQ does: round trips then include the time held back by a law's pace.
    /// Only with `tsq_limit`.
    pub fq: bool,
    /// Flows that have sent less payload than this have their turns at the NIC before the others, as new flows have in
    /// Linux's FQ (`initial_quantum`, tc-fq(8)).
    pub initial_quantum: InitialQuantum,
    /// Set if hosts know the size of flows, as from applications that announce the length of their messages. Laws then
    /// receive the remaining bytes ([`laws::Ack::bytes_remaining`]), and `initial_quantum` lets flows go first that have less than
    /// that left to send, even if they have sent more.
    pub size_aware: bool,
    /// Set if hosts send credits for data that they are to receive, at their link's rate, in turn to all flows that ask
    /// (RCCC, the receiver's credits of Ultra Ethernet 1.0). Only with laws that have no credits of their own, and
    /// flows that are not coded.
    pub receiver_credits: bool,
    /// Set if packets request reports from the ports that they pass.
    pub int: bool,
    /// Maximum random addition to each round trip that a law receives ([`flow::Noise`]).
    pub rtt_noise: Span,
    /// Delay of arrived packets in a host before its transport receives them. None is no time. Not under
    /// [`TieBreak::Scheduled`].
    pub jitter: Option<Jitter>,
    /// Functions of Linux's TCP between flows and their laws. Only with [`Recovery::Selective`] and one law a flow.
    pub tcp: TcpConfig,
    /// The longest that an emulation packet and its echo take between any two hosts, waits included, over any routes that
    /// hold at some time; none chooses twice the flow's own base round trip.
    pub max_emulation_rtt: Option<Span>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            mss: 4096,
            header: 64,
            ack_size: 64,
            ack_every: 1,
            ack_delay: None,
            path: LoadBalancing::PerFlow,
            coding: None,
            reordering: None,
            rto_min: None,
            rto_max: Span::from_s(4),
            law_sees_timeouts: true,
            loss_timer: LossTimer::Flow,
            recovery: Recovery::Selective,
            pace_header: 0,
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
            size_aware: false,
            receiver_credits: false,
            int: false,
            rtt_noise: Span::ZERO,
            jitter: None,
            tcp: TcpConfig::default(),
            max_emulation_rtt: None,
        }
    }
}

/// Objects to sample, and the interval.
#[derive(Clone, Hash, Default, Debug)]
pub struct SeriesConfig {
    /// Time between samples; zero samples nothing.
    pub interval: Span,
    /// Ports with sampled queues. Each of their pauses is logged, too.
    pub ports: Vec<LinkId>,
    /// Flows with sampled rate and window.
    pub flows: Vec<FlowId>,
    /// Switches with a sampled shared buffer.
    pub switches: Vec<NodeId>,
    /// Flows for which the packets' delays are compared with the sender's knowledge at their departure: see
    /// [`crate::Predictions`]. No interval applies. Has no effect if packets carry reports of ports.
    pub predictors: Vec<FlowId>,
}

impl SeriesConfig {
    /// Returns whether a port is sampled.
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
    /// Set if packets towards a flow's source (credits, acknowledgements, ...) take the reverse of the path that the
    /// flow's packets to its destination take with the same entropy ([`Routes::back`]), as `ExpressPass` requires of a
    /// network; otherwise switches select their paths by a hash like any other.
    pub symmetric: bool,
    /// The flows by [`FlowId`].
    pub flows: Vec<FlowSpec>,
    /// Dependencies of flows: the sets that their starts name.
    pub dependencies: Dependencies,
    /// The behaviour of hosts.
    pub host: HostConfig,
    /// Controllers in switches.
    pub modules: Vec<SwitchControllerSpec>,
    /// Objects to sample.
    pub series: SeriesConfig,
    /// Seed of all random numbers.
    pub seed: u64,
    /// End of the run, even if flows are left.
    pub stop: Time,
    /// The shortest control loop of the network: the base round trip between two hosts of one datacenter.
    pub intra_rtt: Span,
    /// The order of simultaneous events.
    pub ties: TieBreak,
}

/// The order in which a node handles simultaneous events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum TieBreak {
    /// At a switch: arrivals by input. At a host: arrivals, then the host's own events.
    #[default]
    Input,
    /// The order of one event queue, in which events of the same time run in the order in which they were scheduled:
    /// see `crate::ties`. Only at switches that share their buffer, and hosts.
    Scheduled,
}

/// Properties of the equal paths between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathBounds {
    /// Base round trip of a packet and its acknowledgement, over the first path.
    pub base_rtt: Span,
    /// The additional base round trip of the slowest path.
    pub spread: Span,
    /// The narrowest link there.
    pub line_rate: Rate,
    /// Links there.
    pub hops: u32,
    /// The maximum time beyond `base_rtt` that a packet on the forward path and its acknowledgement on the reverse path
    /// can take over any path, with all queues of switches full; none if a queue has no limit.
    pub longest_wait: Option<Span>,
    /// The same on the forward path alone.
    pub longest_wait_there: Option<Span>,
}

impl PathBounds {
    /// Returns the longest wait on the forward path as used for coded flows: a base round trip if a queue has no limit.
    pub fn forward_wait(&self) -> Span {
        self.longest_wait_there.unwrap_or(self.base_rtt)
    }
}

impl Setup {
    /// Returns whether packets carry reports of ports, or notes of their senders.
    pub fn carries_reports(&self) -> bool {
        self.host.int || !self.series.predictors.is_empty()
    }

    fn first_path(&self, from: HostId, to: HostId) -> Vec<LinkId> {
        self.routes.path(&self.network, from, to, |_, _| 0)
    }

    /// Returns the properties of the equal paths between two hosts for packets of `payload` bytes; of the first path
    /// unless stated otherwise.
    pub fn paths(&self, src: HostId, dst: HostId, payload: u32) -> PathBounds {
        let (there, back) = (self.first_path(src, dst), self.first_path(dst, src));
        let rates = there.iter().map(|&link| self.network.port(link).config().rate);
        let (data, ack) = (payload + self.host.header, self.host.ack_size);
        // Packets do not wait at a host's NIC, the first link: they are handed over one by one.
        let wait = |link: LinkId| if self.starts_at_host(link) { Some(Span::ZERO) } else { self.longest_wait(link) };
        let spread =
            [(&there, data), (&back, ack)].map(|(path, size)| self.more_over(path, size, |_| Some(Span::ZERO)));
        let [longest_wait_there, longest_wait_back] =
            [(&there, data), (&back, ack)].map(|(path, size)| self.more_over(path, size, wait));
        PathBounds {
            base_rtt: base_rtt(&self.network, &there, &back, data, ack),
            spread: spread.into_iter().flatten().sum(),
            line_rate: rates.fold(Rate::MAX, Rate::min),
            hops: there.len() as u32,
            longest_wait: longest_wait_there.zip(longest_wait_back).map(|(there, back)| there + back),
            longest_wait_there,
        }
    }

    /// Returns the maximum time of a packet of `size` bytes on the wire over any path that is equal to this one and has
    /// these waits, beyond its time over this path without queues.
    fn more_over(&self, path: &[LinkId], size: u32, wait: impl Fn(LinkId) -> Option<Span>) -> Option<Span> {
        let max = self
            .routes
            .slowest_path(&self.network, path, |link| Some(wait(link)? + base_one_way(&self.network, &[link], size)));
        Some(max? - base_one_way(&self.network, path, size))
    }

    fn starts_at_host(&self, link: LinkId) -> bool {
        self.network.nodes()[self.network.links()[link.index()].from.index()].kind != NodeKind::Switch
    }

    /// Returns whether acknowledgements of a flow from `src` to `dst` wait in no queue of data on their reverse path.
    pub fn acks_have_priority(&self, src: HostId, dst: HostId) -> bool {
        let back = self.first_path(dst, src);
        back.iter().skip(1).all(|&link| self.network.port(link).config().control_priority)
    }

    /// Returns the path information for a flow's law.
    pub fn law_path(&self, spec: &FlowSpec) -> PathInfo {
        let paths = self.paths(spec.src, spec.dst, self.host.mss);
        PathInfo {
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

    /// Returns the number of subflows with their arrival history in the acknowledgements of coded flows; 0 if they carry
    /// none.
    pub fn history(&self) -> u8 {
        match self.host.path {
            _ if self.host.coding.is_none_or(|coding| !coding.history) => 0,
            LoadBalancing::UnoLb(unolb) => unolb.subflows,
            _ => 1,
        }
    }

    /// Returns the time that a receiver waits for a block of a coded flow: see [`Coding::block_timer`].
    pub fn block_timer(&self, flow: &FlowSpec) -> Option<Span> {
        let coding = self.host.coding.filter(|_| flow.coded)?;
        Some(coding.block_timer.unwrap_or_else(|| {
            let paths = self.paths(flow.src, flow.dst, self.host.mss);
            let packets = u64::from(coding.code.data) + u64::from(coding.code.parity);
            let block = Bytes::new(packets * u64::from(self.host.mss + self.host.header));
            let narrowest = self.routes.narrowest(&self.network, &self.first_path(flow.src, flow.dst));
            paths.forward_wait() + narrowest.unwrap_or(Rate::MAX).tx_time(block)
        }))
    }

    /// Returns the number of packets of a flow, parity included.
    pub fn packets(&self, flow: &FlowSpec) -> u32 {
        let packets = || flow.size.get().div_ceil(self.host.mss.into()) as u32;
        self.blocks(flow).map_or_else(packets, |blocks| blocks.total())
    }

    /// Returns the maximum wait of a packet at a port: the content of its queue, and no more than the whole buffer of
    /// its switch if that is shared. A pause may be longer.
    fn longest_wait(&self, link: LinkId) -> Option<Span> {
        let port = self.network.port(link).config();
        let switch = self.network.nodes()[self.network.links()[link.index()].from.index()].switch;
        let shared = switch.filter(|switch| switch.buffer != Bytes::MAX).map(|switch| port.rate.tx_time(switch.buffer));
        port.longest_wait().into_iter().chain(shared).min()
    }

    /// The time from a packet's first bit sent to its last bit received with empty queues; zero on one host.
    pub fn one_way(&self, src: HostId, dst: HostId) -> Span {
        if src == dst {
            return Span::ZERO;
        }
        base_one_way(&self.network, &self.first_path(src, dst), self.host.ack_size)
    }

    /// Returns the base of On-Ramp's threshold for data that a flow sends at a time: the base one-way delay of a full
    /// packet over the routes that hold then, or zero, depending on [`OnRampConfig::on_queueing_delay`].
    pub fn hold_base(&self, flow: &FlowSpec, at: Time) -> Span {
        if self.host.on_ramp.is_none_or(|on_ramp| !on_ramp.on_queueing_delay) {
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
