//! Ideal results of a flow alone in the network: its base round trip and its minimum completion time. Both are exact to
//! the picosecond, because they repeat the ports' own arithmetic.
//!
//! The minimum time is a bound that no run beats. A flow that keeps to one path is bounded by the best path that routes
//! allow ([`Ways::arrival`]). A flow that may use several paths is bounded by all of them together
//! ([`Ways::arrival_over_all`]).

mod cut;

use std::collections::{BTreeMap, VecDeque};

use units::Span;

use crate::{HostId, LinkId, Network, NodeId, PortParams, Routes};

/// Time from a packet's first bit leaving the sender to its last bit reaching the receiver, with empty queues. `size`
/// is in bytes on the wire; a packet is stored and forwarded at each hop.
pub fn base_one_way(network: &Network, path: &[LinkId], size: u32) -> Span {
    let hop = |&link: &LinkId| {
        let params = network.port(link);
        params.service(size) + params.delay
    };
    path.iter().map(hop).sum()
}

/// Round trip of a packet of `data` bytes on the wire there and its acknowledgement of `ack` bytes back.
pub fn base_rtt(network: &Network, there: &[LinkId], back: &[LinkId], data: u32, ack: u32) -> Span {
    base_one_way(network, there, data) + base_one_way(network, back, ack)
}

/// Packets that a flow sends. Sizes are in bytes on the wire, headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// Packets, at least 1.
    pub packets: u32,
    /// The size of all but the last.
    pub full: u32,
    /// The size of the last, at most `full`.
    pub last: u32,
}

/// The paths that routes allow between hosts. Results are cached for the next query.
#[derive(Debug)]
pub struct Ways<'a> {
    network: &'a Network,
    /// All tables that hold at some time.
    tables: Vec<&'a Routes>,
    /// By the switch that the destination is connected to.
    towards: BTreeMap<NodeId, Towards>,
    cuts: BTreeMap<cut::CutKey, Option<Vec<cut::Crossing>>>,
}

/// The ways from switches to one switch. Switches from which all ways are alike are one stage, so a regular tree has as
/// many stages as it has tiers. Where routes change, each switch is a stage of its own, because the ways of all tables
/// together may have loops.
#[derive(Default, Debug)]
struct Towards {
    stage_of: BTreeMap<NodeId, u32>,
    /// The ports of each stage, with the stages behind them.
    stages: Vec<Vec<(u16, u32)>>,
    /// The stage with these ports and these stages behind them.
    known: BTreeMap<Vec<(u16, u32)>, u32>,
}

/// The stage of the destination's switch.
const END: u32 = 0;

/// Best-case progress of a burst since it began: the times at which its first and its last packet are at the next port,
/// and the spacing of the full packets between them.
///
/// Ports store and forward in order. The last packet leaves a port when it has arrived and the one before it has left.
/// The slowest port so far spaces the full packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Front {
    first: Span,
    last: Span,
    spacing: Span,
}

impl Front {
    fn over(self, port: &PortParams, burst: &Burst) -> Self {
        let service = port.service(burst.last);
        if burst.packets == 1 {
            return Self { last: self.last + service + port.delay, ..self };
        }
        let full = port.service(burst.full);
        let spacing = self.spacing.max(full);
        let first = self.first + full;
        let before_leaves = first + spacing.times(burst.packets - 2);
        Self { first: first + port.delay, last: self.last.max(before_leaves) + service + port.delay, spacing }
    }

    /// Returns whether no continuation of `other` can be earlier than the same continuation of this one.
    fn is_as_good_as(&self, other: &Self) -> bool {
        self.first <= other.first && self.last <= other.last && self.spacing <= other.spacing
    }
}

impl<'a> Ways<'a> {
    /// The ways over `routes`, at whatever time they hold.
    pub fn new(network: &'a Network, routes: &'a Routes) -> Self {
        Self { network, tables: routes.tables().collect(), towards: BTreeMap::new(), cuts: BTreeMap::new() }
    }

    /// Returns whether routes change in the run. If they do, the packets of any flow may take several paths.
    pub fn change(&self) -> bool {
        self.tables.len() > 1
    }

    /// Returns the minimum time from a flow's first bit sent to its last bit received, over any one path that routes
    /// ever allow.
    pub fn arrival(&mut self, from: HostId, to: HostId, burst: &Burst) -> Span {
        let (up, down) = self.ends(from, to);
        let sent = Front::default().over(up, burst);
        let best = self.fronts(from, to, sent, burst).into_iter().map(|front| front.over(down, burst).last).min();
        best.unwrap_or_default()
    }

    /// Returns the same where each packet may take another path. The bound follows from necessary steps:
    ///
    /// - the full packets pass the sender's NIC one after the other, and the last packet follows them;
    /// - all packets pass the receiver's port;
    /// - the full packets pass the narrowest cut between, where that is narrower than NIC and port (maximum flow).
    ///
    /// Where there is only one path, the bound is that path's time.
    pub fn arrival_over_all(&mut self, from: HostId, to: HostId, burst: &Burst) -> Span {
        if burst.packets == 1 || self.is_single_path(from, to) {
            return self.arrival(from, to, burst);
        }
        let (up, down) = self.ends(from, to);
        let [full, last] = [burst.full, burst.last].map(|size| (up.service(size), down.service(size)));
        let fulls = burst.packets - 1;
        let [full_way, last_way] = [burst.full, burst.last].map(|size| self.way(from, to, size));
        // The last full packet, and the last of all, starting at the NIC.
        let full_there = full.0.times(fulls) + full_way + full.1;
        let last_there = full.0.times(fulls) + last.0 + last_way + last.1;
        // The receiver's port, from the first that can be there on: all full ones, and all.
        let first_full = full.0 + full_way;
        let first = first_full.min(full.0.times(fulls) + last.0 + last_way);
        let served = (first_full + full.1.times(fulls)).max(first + full.1.times(fulls) + last.1);
        let ends = up.delay + down.delay;
        let mut least = full_there.max(last_there).max(served) + ends;
        let fulls = fulls + u32::from(burst.last == burst.full);
        let around = full.0 + full.1 + ends;
        if let Some(cut) = self.cut(from, to, burst.full) {
            least = least.max(around + cut::time(cut, fulls));
        }
        least
    }

    fn ends(&self, from: HostId, to: HostId) -> (&'a PortParams, &'a PortParams) {
        let network = self.network;
        let down = network.links()[network.uplink(to).index()].reverse;
        (network.port(network.uplink(from)), network.port(down))
    }

    fn switch_of(&self, host: HostId) -> NodeId {
        self.network.links()[self.network.uplink(host).index()].to
    }

    /// The least time of one packet from the first switch to the last.
    fn way(&mut self, from: HostId, to: HostId, size: u32) -> Span {
        let alone = Burst { packets: 1, full: size, last: size };
        let fronts = self.fronts(from, to, Front::default(), &alone);
        fronts.iter().map(|front| front.last).min().unwrap_or_default()
    }

    /// Returns whether every packet must take the same path.
    fn is_single_path(&self, from: HostId, to: HostId) -> bool {
        let mut at = self.switch_of(from);
        while !self.change() {
            if at == self.switch_of(to) {
                return true;
            }
            let &[only] = self.tables[0].from(at).ports(to) else { return false };
            at = self.network.links()[only.index()].to;
        }
        false
    }

    /// Returns the ports by which packets to a host may leave a switch, over all tables.
    fn ports(&self, at: NodeId, to: HostId) -> Vec<LinkId> {
        let all = self.tables.iter().flat_map(|table| table.from(at).ports(to));
        let mut ports: Vec<LinkId> = all.copied().collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns the best fronts at the switch of `to` for a burst that is at the switch of `from` with front `start`.
    /// None of them is as good as another.
    fn fronts(&mut self, from: HostId, to: HostId, start: Front, burst: &Burst) -> Vec<Front> {
        let (begin, end) = (self.switch_of(from), self.switch_of(to));
        let mut towards = self.towards.remove(&end).unwrap_or_else(|| Towards::new(end));
        self.explore(begin, to, &mut towards);
        let mut best: Vec<Vec<Front>> = vec![Vec::new(); towards.stages.len()];
        let first = towards.stage_of[&begin];
        best[first as usize].push(start);
        let mut waiting = VecDeque::from([(first, start)]);
        while let Some((stage, front)) = waiting.pop_front() {
            if !best[stage as usize].contains(&front) {
                continue; // outdone since
            }
            for &(port, next) in &towards.stages[stage as usize] {
                let there = front.over(&self.network.params()[usize::from(port)], burst);
                let known = &mut best[next as usize];
                if known.iter().any(|other| other.is_as_good_as(&there)) {
                    continue;
                }
                known.retain(|other| !there.is_as_good_as(other));
                known.push(there);
                waiting.push_back((next, there));
            }
        }
        self.towards.insert(end, towards);
        std::mem::take(&mut best[END as usize])
    }

    /// Finds the stages of all switches on ways from `begin` to `to`.
    fn explore(&self, begin: NodeId, to: HostId, towards: &mut Towards) {
        if towards.stage_of.contains_key(&begin) {
            return;
        }
        if self.change() {
            return self.explore_loops(begin, to, towards);
        }
        // Depth first: a switch gets its stage when all switches behind it have theirs.
        let mut open = vec![begin];
        while let Some(&at) = open.last() {
            let behind = self.behind(at, to);
            let before = open.len();
            open.extend(behind.iter().map(|&(_, next)| next).filter(|next| !towards.stage_of.contains_key(next)));
            if open.len() == before {
                open.pop();
                towards.add_switch(at, &behind);
            }
        }
    }

    /// The same where ways may have loops.
    fn explore_loops(&self, begin: NodeId, to: HostId, towards: &mut Towards) {
        let mut met = vec![begin];
        towards.add(begin);
        while let Some(at) = met.pop() {
            let behind = self.behind(at, to);
            for &(_, next) in &behind {
                if !towards.stage_of.contains_key(&next) {
                    towards.add(next);
                    met.push(next);
                }
            }
            let out = towards.out(&behind);
            let stage = towards.stage_of[&at];
            towards.stages[stage as usize] = out;
        }
    }

    /// The kinds of ports by which packets to a host may leave a switch, and the switches behind them.
    fn behind(&self, at: NodeId, to: HostId) -> Vec<(u16, NodeId)> {
        let link = |link: LinkId| &self.network.links()[link.index()];
        self.ports(at, to).into_iter().map(|port| (link(port).params, link(port).to)).collect()
    }
}

impl Towards {
    /// The ways to one switch: so far, it alone.
    fn new(end: NodeId) -> Self {
        let mut towards = Self::default();
        towards.add(end);
        towards
    }

    /// A switch that is a stage of its own.
    fn add(&mut self, at: NodeId) {
        self.stage_of.insert(at, self.stages.len() as u32);
        self.stages.push(Vec::new());
    }

    /// A switch from which these ways lead on. It joins the stage of the switches from which the same ways do.
    fn add_switch(&mut self, at: NodeId, behind: &[(u16, NodeId)]) {
        let out = self.out(behind);
        let new = self.stages.len() as u32;
        let stage = *self.known.entry(out.clone()).or_insert(new);
        if stage == new {
            self.stages.push(out);
        }
        self.stage_of.insert(at, stage);
    }

    fn out(&self, behind: &[(u16, NodeId)]) -> Vec<(u16, u32)> {
        let mut out: Vec<(u16, u32)> = behind.iter().map(|(port, next)| (*port, self.stage_of[next])).collect();
        out.sort_unstable();
        out.dedup();
        out
    }
}
