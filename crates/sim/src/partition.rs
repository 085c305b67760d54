//! One partition: the switches and hosts of one datacenter, run window by window.

use fabric::{HostId, NodeKind};
use laws::{ControlLaw, Hop, Path};
use units::Time;

use crate::host::{Context, Hosts, Trigger, Wire};
use crate::layout::Layout;
use crate::outcome::LinkOutcome;
use crate::packet::{Packet, Report};
use crate::plane::Plane;
use crate::prefetch::AHEAD;
use crate::setup::{FlowSpec, Setup, Ties};
use crate::ties::HostTies;

const NO_HOST: u32 = u32::MAX;

pub(crate) struct Partition<L> {
    pub(crate) plane: Plane,
    pub(crate) hosts: Hosts<L>,
    /// Of each node: its host's number here, or `NO_HOST`.
    host_of: Vec<u32>,
    /// Of each host here: its node.
    node_of: Vec<u32>,
    /// Of every host of the network: its number here, or `NO_HOST`.
    local_of: Vec<u32>,
    /// Arrivals, starts, sends and timers of hosts.
    pub(crate) host_events: u64,
    /// The arrivals among them.
    pub(crate) received: u64,
    /// Of each host here; empty where ties need none.
    ties: Vec<HostTies>,
}

/// A host's card: its port in the plane.
struct Card<'a> {
    plane: &'a mut Plane,
    node: usize,
    link: usize,
    setup: &'a Setup,
    ties: Option<&'a mut HostTies>,
}

impl Card<'_> {
    /// Takes note of a packet that is about to be put on the card.
    #[cold]
    fn note_tie(&mut self, packet: &Packet) {
        let Some(ties) = &mut self.ties else { return };
        let begins_ps = self.plane.idle_at_ps(self.link).max(packet.time_ps);
        let since = ties.leaves(begins_ps, begins_ps + self.plane.service_ps(self.link, packet));
        if packet.is_data() {
            ties.sent = Some(packet.flow);
        }
        self.plane.follows(since);
    }
}

impl Wire for Card<'_> {
    #[inline]
    fn idle_at_ps(&self) -> u64 {
        self.plane.idle_at_ps(self.link)
    }

    #[inline]
    fn transmit(&mut self, packet: Packet) {
        if self.ties.is_some() {
            self.note_tie(&packet);
        }
        self.plane.enqueue(self.node, self.link, packet, self.setup);
    }

    #[inline]
    fn transmit_with(&mut self, packet: Packet, report: Report) {
        if self.ties.is_some() {
            self.note_tie(&packet);
        }
        self.plane.enqueue_with(self.link, packet, report, self.setup);
    }

    #[inline]
    fn note(&mut self, note: Hop) -> Report {
        self.plane.note(note)
    }
    #[inline]
    fn hops(&self, report: Report) -> &[Hop] {
        self.plane.hops(report)
    }

    #[inline]
    fn forget(&mut self, report: Report) {
        self.plane.forget(report);
    }
}

impl<L: ControlLaw> Partition<L> {
    pub(crate) fn new(index: usize, setup: &Setup, layout: &Layout, window_ps: u64) -> Self {
        let nodes = layout.node_start[index] as usize..layout.node_start[index + 1] as usize;
        let (mut ids, mut node_of, mut host_of) = (Vec::<HostId>::new(), Vec::new(), Vec::new());
        let mut local_of = vec![NO_HOST; setup.network.hosts().len()];
        for (local, node) in setup.network.nodes()[nodes].iter().enumerate() {
            if let NodeKind::Host(id) = node.kind {
                host_of.push(ids.len() as u32);
                local_of[id.index()] = ids.len() as u32;
                ids.push(id);
                node_of.push(local as u32);
            } else {
                host_of.push(NO_HOST);
            }
        }
        let mut partition = Self {
            plane: Plane::new(index, setup, layout, window_ps),
            hosts: Hosts::new(&ids, setup),
            host_of,
            node_of,
            local_of,
            host_events: 0,
            received: 0,
            ties: Vec::new(),
        };
        if setup.ties == Ties::Scheduled {
            let input = |id: &HostId| setup.network.links()[setup.network.uplink(*id).index()].reverse;
            partition.ties = ids.iter().map(|id| HostTies::new(input(id), setup)).collect();
        }
        for host in 0..ids.len() {
            partition.wake(host);
        }
        partition
    }

    /// Makes a host active when it next acts by itself; between epochs only.
    fn wake(&mut self, host: usize) {
        let next = self.hosts.next_ps(host, 0);
        if next != u64::MAX {
            self.plane.schedule().activate_between(self.node_of[host] as usize, next);
        }
    }

    /// Lets a flow of this partition start; between epochs only.
    pub(crate) fn deliver_trigger(&mut self, trigger: Trigger, setup: &Setup) {
        let host = self.local_of[setup.flows[trigger.flow.0 as usize].src.index()] as usize;
        self.hosts.add_start(host, trigger);
        self.wake(host);
    }

    /// Runs every window that begins before `until_ps`; what arrives from `until_ps` on stays.
    pub(crate) fn run<F: Fn(&FlowSpec, &Path) -> L>(&mut self, until_ps: u64, context: &Context<F>) {
        while let Some(start) = self.plane.schedule().next_window(until_ps) {
            let end = (start + self.plane.window_ps()).min(until_ps);
            for word in 0..self.plane.schedule().words() {
                let mut bits = self.plane.schedule().take_word(word);
                while bits != 0 {
                    let node = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    if self.host_of[node] == NO_HOST {
                        self.plane.run_switch(node, start, end, context.setup);
                    } else {
                        self.run_host(node, end, context);
                    }
                }
            }
            self.plane.schedule().finish_window();
        }
    }

    /// The links' outcomes, in order, with the pauses of hosts' cards.
    pub(crate) fn links(&self, ended: Time, setup: &Setup) -> Vec<LinkOutcome> {
        let mut links: Vec<LinkOutcome> = self.plane.outcomes(ended.ps(), setup).collect();
        for (host, &node) in self.node_of.iter().enumerate() {
            let (card, _) = self.plane.host_ports(node as usize, setup);
            (links[card].pauses, links[card].paused) = self.hosts.pauses(host, ended);
            links[card].credit_drops = self.hosts.credit_drops(host);
        }
        links
    }

    /// When the next packet arrives at a host and when the host acts by itself, if either is before `end`; else its node rests
    /// until then.
    #[inline(always)]
    fn due(&mut self, node: usize, host: usize, (link, fifo): (usize, usize), end: u64) -> Option<(u64, u64)> {
        let arrival = self.plane.head(fifo);
        let local = self.hosts.next_ps(host, self.plane.idle_at_ps(link));
        let now = arrival.min(local);
        if now >= end {
            self.plane.schedule().activate(node, now);
            return None;
        }
        self.host_events += 1;
        Some((arrival, local))
    }

    /// Runs a host to `end`: an arrival goes before the host's own starts, timers and sends of the same time.
    fn run_host<F: Fn(&FlowSpec, &Path) -> L>(&mut self, node: usize, end: u64, context: &Context<F>) {
        let host = self.host_of[node] as usize;
        let (link, fifo) = self.plane.host_ports(node, context.setup);
        if !self.ties.is_empty() {
            return self.run_host_by_schedule(node, (link, fifo), end, context);
        }
        (0..AHEAD).for_each(|behind| self.plane.prefetch_report(fifo, behind));
        while let Some((arrival, local)) = self.due(node, host, (link, fifo), end) {
            if arrival <= local {
                let (packet, report) = self.plane.pop(fifo);
                self.plane.prefetch_report(fifo, AHEAD - 1);
                self.received += 1;
                let mut card = Card { plane: &mut self.plane, node, link, setup: context.setup, ties: None };
                self.hosts.on_packet(host, &packet, report, context, &mut card);
            } else {
                let mut card = Card { plane: &mut self.plane, node, link, setup: context.setup, ties: None };
                self.hosts.on_local(host, local, context, &mut card);
            }
            if !self.hosts.triggers.is_empty() {
                self.keep_own_triggers(host, context.setup);
            }
        }
    }

    /// The same where what happens at one time does so in the order in which it was scheduled.
    #[cold]
    fn run_host_by_schedule<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        node: usize,
        (link, fifo): (usize, usize),
        end: u64,
        context: &Context<F>,
    ) {
        let host = self.host_of[node] as usize;
        while let Some((arrival, local)) = self.due(node, host, (link, fifo), end) {
            let now = arrival.min(local);
            let ties = &mut self.ties[host];
            ties.advance(now);
            let first = (arrival == now).then(|| self.plane.first(fifo));
            let first = first.filter(|(packet, since)| {
                arrival < local || !ties.goes_first(packet, *since, self.hosts.alarm_ps(host) == now)
            });
            if let Some((_, since)) = first {
                let (packet, report) = self.plane.pop(fifo);
                self.received += 1;
                ties.arrives(&packet, since);
                let mut card = Card { plane: &mut self.plane, node, link, setup: context.setup, ties: Some(ties) };
                self.hosts.on_packet(host, &packet, report, context, &mut card);
                if packet.is_ack() {
                    self.ties[host].repace(packet.flow, self.hosts.paced_ps(packet.flow), now);
                }
            } else {
                ties.acts(now);
                let mut card = Card { plane: &mut self.plane, node, link, setup: context.setup, ties: Some(ties) };
                self.hosts.on_local(host, local, context, &mut card);
            }
            let ties = &mut self.ties[host];
            if let Some(flow) = ties.sent.take() {
                ties.pace(flow, self.hosts.paced_ps(flow));
            }
            let idle_at_ps = self.plane.idle_at_ps(link);
            ties.ends(now, idle_at_ps <= now && self.hosts.next_ps(host, idle_at_ps) > now);
            if !self.hosts.triggers.is_empty() {
                self.keep_own_triggers(host, context.setup);
            }
        }
    }

    /// Hands triggers for this partition's hosts over; the others wait for the end of the epoch. A host other
    /// than the one that runs is at least two links away, so its start lies in a later window.
    fn keep_own_triggers(&mut self, running: usize, setup: &Setup) {
        let mut away = Vec::new();
        for trigger in std::mem::take(&mut self.hosts.triggers) {
            let host = self.local_of[setup.flows[trigger.flow.0 as usize].src.index()];
            if host == NO_HOST {
                away.push(trigger);
                continue;
            }
            self.hosts.add_start(host as usize, trigger);
            if host as usize != running {
                self.plane.schedule().activate(self.node_of[host as usize] as usize, trigger.time.ps());
            }
        }
        self.hosts.triggers = away;
    }
}
