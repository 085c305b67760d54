//! One partition: the switches and hosts of one datacenter, run window by window.

use experiment::{FlowSpec, LinkOutcome, RecordConfig, Recording, SenderEvent, Setup, TieBreak};
use fabric::{HostId, NodeId, NodeKind};
use laws::{ControlLaw, Hop, PathInfo};
use units::{Span, Time};

use crate::host::{Context, DependencyNotice, Nic, PartitionHosts};
use crate::layout::Layout;
use crate::optional_index::OptionalIndex;
use crate::packet::{Packet, TelemetrySlot};
use crate::plane::{HostPorts, Plane};
use crate::prefetch::AHEAD;
use crate::recorder::identify;
use crate::tie_break::HostTies;

pub(crate) struct Partition<L> {
    pub(crate) plane: Plane,
    pub(crate) hosts: PartitionHosts<L>,
    /// By node: its host's number here; none for a switch.
    host_of: Vec<OptionalIndex>,
    /// By host here: its node.
    node_of: Vec<u32>,
    /// By host of the network: its number here; none if it is in another partition.
    local_of: Vec<OptionalIndex>,
    /// Number of arrivals at hosts.
    pub(crate) received: u64,
    /// Number of events that hosts scheduled for themselves.
    pub(crate) host_events: u64,
    /// Dependency notices for hosts of other partitions.
    pub(crate) notices: Vec<DependencyNotice>,
    /// By host here: state for tie-breaking; empty if ties need none.
    ties: Vec<HostTies>,
    /// By host here: its recorded flows; empty if the run is not recorded.
    recorded: Vec<Vec<u32>>,
    checks: Checks,
}

/// The pace of a partition's checks. The time of a check depends on the amount of state, not on the number of events
/// since the last one, and epochs may be as short as a link. So a check waits until nodes have processed as many events
/// as it examines entries: all checks together take at most a constant factor of the run's own time.
#[derive(Clone, Copy, Default)]
struct Checks {
    /// The number of events from which on the next check is due.
    due: u64,
    /// Entries that all checks have examined.
    examined: u64,
}

/// A host's NIC: its port in the plane.
struct NicPort<'a> {
    plane: &'a mut Plane,
    node: usize,
    link: usize,
    setup: &'a Setup,
    /// Notes of packets that are handed over, for ties or the log; none where neither is kept.
    noting: Option<Noting<'a>>,
}

/// Notes of packets that a host hands to its NIC.
struct Noting<'a> {
    ties: Option<&'a mut HostTies>,
}

impl NicPort<'_> {
    /// Records a packet that is about to be handed to the NIC.
    #[cold]
    fn note_packet(&mut self, packet: &Packet) {
        self.plane.record_departure(self.link, packet);
        let Some(Noting { ties: Some(ties) }) = &mut self.noting else { return };
        let begins = self.plane.idle_at(self.link).max(packet.time);
        let since = ties.leaves(begins, begins + self.plane.service(self.link, packet));
        if packet.is_data() {
            ties.sent = Some(packet.flow);
        }
        self.plane.follows(since);
    }
}

impl Nic for NicPort<'_> {
    #[inline]
    fn idle_at(&self) -> Time {
        self.plane.idle_at(self.link)
    }

    #[inline]
    fn transmit(&mut self, packet: Packet) {
        if self.noting.is_some() {
            self.note_packet(&packet);
        }
        self.plane.enqueue(self.node, self.link, packet, self.setup);
    }

    #[inline]
    fn transmit_with(&mut self, packet: Packet, report: TelemetrySlot) {
        if self.noting.is_some() {
            self.note_packet(&packet);
        }
        self.plane.enqueue_with(self.link, packet, report, self.setup);
    }

    fn received_late(&mut self, packet: &Packet) {
        if let Some(recorder) = &mut self.plane.recorder {
            recorder.receives_late(packet);
        }
    }

    #[inline]
    fn note(&mut self, note: Hop) -> TelemetrySlot {
        self.plane.note(note)
    }
    #[inline]
    fn hops(&self, report: TelemetrySlot) -> &[Hop] {
        self.plane.hops(report)
    }

    #[inline]
    fn forget(&mut self, report: TelemetrySlot) {
        self.plane.forget(report);
    }
}

impl<L: ControlLaw> Partition<L> {
    pub(crate) fn new(
        index: usize,
        setup: &Setup,
        layout: &Layout,
        window: Span,
        record: Option<&RecordConfig>,
    ) -> Self {
        let nodes = layout.node_start[index] as usize..layout.node_start[index + 1] as usize;
        let (mut ids, mut node_of, mut host_of) = (Vec::<HostId>::new(), Vec::new(), Vec::new());
        let mut local_of = vec![OptionalIndex::NONE; setup.network.hosts().len()];
        for (local, node) in setup.network.nodes()[nodes].iter().enumerate() {
            if let NodeKind::Host(id) = node.kind {
                let here = OptionalIndex::some(ids.len() as u32);
                host_of.push(here);
                local_of[id.index()] = here;
                ids.push(id);
                node_of.push(local as u32);
            } else {
                host_of.push(OptionalIndex::NONE);
            }
        }
        let mut partition = Self {
            plane: Plane::new(index, setup, layout, window, record),
            hosts: PartitionHosts::new(&ids, setup),
            host_of,
            node_of,
            local_of,
            received: 0,
            host_events: 0,
            notices: Vec::new(),
            ties: Vec::new(),
            recorded: Vec::new(),
            checks: Checks::default(),
        };
        if setup.ties == TieBreak::Scheduled {
            let input = |id: &HostId| setup.network.links()[setup.network.uplink(*id).index()].reverse;
            partition.ties = ids.iter().map(|id| HostTies::new(input(id), setup)).collect();
        }
        if let Some(record) = record {
            partition.recorded = vec![Vec::new(); ids.len()];
            for flow in &record.flows {
                let host = partition.local_of[setup.flows[flow.0 as usize].src.index()];
                if let Some(flows) = partition.recorded.get_mut(host.position()) {
                    flows.push(flow.0);
                }
            }
        }
        for host in 0..ids.len() {
            partition.wake(host);
        }
        partition
    }

    /// Makes a host active when it next acts by itself; between epochs only.
    fn wake(&mut self, host: usize) {
        let next = self.hosts.next_at(host, Time::ZERO);
        if next.is_set() {
            self.plane.schedule().activate_between(self.node_of[host] as usize, next);
        }
    }

    /// Delivers a notice to a host of this partition; between epochs only.
    pub(crate) fn deliver_notice(&mut self, notice: DependencyNotice, setup: &Setup) {
        let host = self.local_of[setup.flows[notice.flow.0 as usize].src.index()].position();
        debug_assert!(host < self.node_of.len(), "a notice for a host of another partition");
        if self.hosts.on_dependency_met(host, notice, setup).is_some() {
            self.wake(host);
        }
    }

    /// Runs every window that begins before `until`; packets that arrive at `until` or later stay.
    pub(crate) fn run<F: Fn(&FlowSpec, &PathInfo) -> L>(&mut self, until: Time, context: &Context<F>) {
        while let Some(start) = self.plane.schedule().next_window(until) {
            debug_assert!(start < until, "a window at {start:?} of a run to {until:?}");
            let end = (start + self.plane.window()).min(until);
            for word in 0..self.plane.schedule().words() {
                let mut bits = self.plane.schedule().take_word(word);
                while bits != 0 {
                    let node = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    if self.host_of[node] == OptionalIndex::NONE {
                        self.plane.run_switch(node, start, end, context.setup);
                    } else {
                        self.run_host(node, end, context);
                    }
                }
            }
            self.plane.schedule().finish_window();
        }
    }

    /// Returns how many entries its checks have examined.
    #[cfg(test)]
    pub(crate) fn examined(&self) -> u64 {
        self.checks.examined
    }

    /// Returns how many events nodes have processed.
    pub(crate) fn events(&self) -> u64 {
        self.plane.forwarded + self.received + self.host_events
    }

    /// Checks the contents of the nodes here, once they have run up to `now`, if there were enough events since the last
    /// check.
    ///
    /// # Errors
    /// The node with an inconsistency, and its description.
    pub(crate) fn check_if_due(&mut self, now: Time, setup: &Setup) -> Result<(), (NodeId, String)> {
        let events = self.events();
        if events < self.checks.due {
            return Ok(());
        }
        let examined = self.check(now, setup)? as u64;
        self.checks = Checks { due: events + examined, examined: self.checks.examined + examined };
        Ok(())
    }

    /// Checks all that the nodes here hold, at the end of the run, and where the ends of all flows are.
    ///
    /// # Errors
    /// As [`Partition::check_if_due`].
    pub(crate) fn check_at_end(&mut self, now: Time, setup: &Setup) -> Result<(), (NodeId, String)> {
        self.check(now, setup)?;
        let local = |host: HostId| self.local_of[host.index()].position();
        self.hosts.check_ends(local, setup).map_err(|(host, error)| (self.name_of(host), error))
    }

    /// Returns the network node of a host here.
    fn name_of(&self, host: usize) -> NodeId {
        NodeId(self.plane.first_node() + self.node_of[host])
    }

    /// Returns how many entries it examined.
    fn check(&mut self, now: Time, setup: &Setup) -> Result<usize, (NodeId, String)> {
        let first = self.plane.first_node();
        let name = |node: usize| NodeId(first + node as u32);
        let (mut examined, mut scheduled) = (0, Vec::new());
        for node in 0..self.host_of.len() {
            examined += self.plane.check(node, now, setup).map_err(|error| (name(node), error))?;
            let Some(host) = self.host_of[node].get() else { continue };
            let HostPorts { nic: link, .. } = self.plane.host_ports(node, setup);
            let next = self.hosts.next_at(host as usize, self.plane.idle_at(link));
            if next.is_set() {
                scheduled.push((node, next));
            }
        }
        let runs = self.plane.schedule().next_runs();
        examined += runs.examined();
        if let Some((node, next)) = scheduled.into_iter().find(|&(node, next)| !runs.runs_by(node, next)) {
            return Err((name(node), format!("it has an event at {next:?}, but is not scheduled then")));
        }
        let local = |host: HostId| self.local_of[host.index()].position();
        let checked = self.hosts.check(now, local, setup);
        Ok(examined + checked.map_err(|(host, error)| (self.name_of(host), error))?)
    }

    /// Returns the links' outcomes, in order, with the pauses of hosts' NICs.
    pub(crate) fn links(&self, ended: Time, setup: &Setup) -> Vec<LinkOutcome> {
        let mut links: Vec<LinkOutcome> = self.plane.outcomes(ended, setup).collect();
        for (host, &node) in self.node_of.iter().enumerate() {
            let HostPorts { nic, .. } = self.plane.host_ports(node as usize, setup);
            (links[nic].pauses, links[nic].paused) = self.hosts.pauses(host, ended);
            links[nic].credit_drops = self.hosts.credit_drops(host);
        }
        links
    }

    /// Runs a host to `end`: an arrival goes before the host's own starts, timers and sends of the same time.
    fn run_host<F: Fn(&FlowSpec, &PathInfo) -> L>(&mut self, node: usize, end: Time, context: &Context<F>) {
        let host = self.host_of[node].position();
        let ports = self.plane.host_ports(node, context.setup);
        let HostPorts { nic: link, arrivals: fifo } = ports;
        if !self.ties.is_empty() {
            return self.run_host_by_schedule(node, ports, end, context);
        }
        if !self.recorded.is_empty() {
            return self.run_host_recorded(node, ports, end, context);
        }
        (0..AHEAD).for_each(|behind| self.plane.prefetch_report(fifo, behind));
        loop {
            let mut nic = NicPort { plane: &mut self.plane, node, link, setup: context.setup, noting: None };
            while self.hosts.notices.is_empty() {
                let Some((arrival, local)) = due(nic.plane, &self.hosts, node, host, ports, end) else {
                    return;
                };
                if arrival <= local {
                    let (packet, report) = nic.plane.pop(fifo);
                    nic.plane.prefetch_report(fifo, AHEAD - 1);
                    self.received += 1;
                    self.hosts.on_packet(host, &packet, report, context, &mut nic);
                } else {
                    self.host_events += 1;
                    self.hosts.on_local(host, local, context, &mut nic);
                }
            }
            self.deliver_own_notices(host, context.setup);
        }
    }

    /// Runs a host in a recorded run.
    #[cold]
    fn run_host_recorded<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        node: usize,
        ports: HostPorts,
        end: Time,
        context: &Context<F>,
    ) {
        let HostPorts { nic: link, arrivals: fifo } = ports;
        let (host, setup) = (self.host_of[node].position(), context.setup);
        while let Some((arrival, local)) = due(&mut self.plane, &self.hosts, node, host, ports, end) {
            let noting = Some(Noting { ties: None });
            if arrival <= local {
                let (packet, report) = self.plane.pop(fifo);
                self.plane.record_arrival(fifo, &packet, setup);
                self.received += 1;
                let mut nic = NicPort { plane: &mut self.plane, node, link, setup, noting };
                self.hosts.on_packet(host, &packet, report, context, &mut nic);
                self.record_senders(host, arrival, Some(&packet), setup);
            } else {
                self.host_events += 1;
                let mut nic = NicPort { plane: &mut self.plane, node, link, setup, noting };
                self.hosts.on_local(host, local, context, &mut nic);
                self.record_senders(host, local, None, setup);
            }
            if !self.hosts.notices.is_empty() {
                self.deliver_own_notices(host, setup);
            }
        }
    }

    /// Logs a host's senders after a packet, or after the host acted by itself. Nothing where the run is not recorded.
    fn record_senders(&mut self, host: usize, now: Time, packet: Option<&Packet>, setup: &Setup) {
        let Some(flows) = self.recorded.get(host).filter(|flows| !flows.is_empty()) else { return };
        let Some(recorder) = &mut self.plane.recorder else { return };
        // A packet that is delayed in the host is logged once its transport receives it.
        let received = packet.filter(|_| setup.host.jitter.is_none());
        for &flow in flows {
            let of_packet = received.filter(|packet| packet.flow == flow).and_then(identify);
            let event = SenderEvent {
                time: now,
                trigger: of_packet.or_else(|| recorder.take_received_late(flow)),
                sent: recorder.take_sent(flow),
                view: self.hosts.view(flow, now),
            };
            recorder.sender(flow, event);
        }
    }

    /// Takes the log of the packets recorded here.
    pub(crate) fn take_recording(&mut self) -> Option<Recording> {
        let recorder = self.plane.recorder.take()?;
        Some(recorder.finish(self.plane.take_loss_log()))
    }

    /// Runs a host with simultaneous events in the order in which they were scheduled.
    #[cold]
    fn run_host_by_schedule<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        node: usize,
        ports: HostPorts,
        end: Time,
        context: &Context<F>,
    ) {
        let HostPorts { nic: link, arrivals: fifo } = ports;
        let host = self.host_of[node].position();
        while let Some((arrival, local)) = due(&mut self.plane, &self.hosts, node, host, ports, end) {
            let now = arrival.min(local);
            let ties = &mut self.ties[host];
            ties.advance(now);
            let first = (arrival == now).then(|| self.plane.first(fifo));
            let first = first.filter(|(packet, since)| {
                arrival < local || self.hosts.alarm(host) != now && !ties.goes_first(packet, *since)
            });
            if let Some((_, since)) = first {
                let (packet, report) = self.plane.pop(fifo);
                self.received += 1;
                ties.arrives(&packet, since);
                let noting = Some(Noting { ties: Some(ties) });
                self.plane.record_arrival(fifo, &packet, context.setup);
                let mut nic = NicPort { plane: &mut self.plane, node, link, setup: context.setup, noting };
                self.hosts.on_packet(host, &packet, report, context, &mut nic);
                self.record_senders(host, now, Some(&packet), context.setup);
                if packet.is_ack() {
                    self.ties[host].repace(packet.flow, self.hosts.paced_at(packet.flow), now);
                }
            } else {
                self.host_events += 1;
                ties.acts(now);
                let noting = Some(Noting { ties: Some(ties) });
                let mut nic = NicPort { plane: &mut self.plane, node, link, setup: context.setup, noting };
                self.hosts.on_local(host, local, context, &mut nic);
                self.record_senders(host, now, None, context.setup);
            }
            let ties = &mut self.ties[host];
            if let Some(flow) = ties.sent.take() {
                ties.pace(flow, self.hosts.paced_at(flow));
            }
            let idle_at = self.plane.idle_at(link);
            if idle_at <= now && self.hosts.next_at(host, idle_at) > now {
                ties.falls_idle(now);
            }
            if !self.hosts.notices.is_empty() {
                self.deliver_own_notices(host, context.setup);
            }
        }
    }

    /// Delivers notices to this partition's hosts; the others wait for the end of the epoch. A host other than the running one is
    /// at least two links away, so flows that it starts begin in a later window.
    fn deliver_own_notices(&mut self, running: usize, setup: &Setup) {
        for notice in std::mem::take(&mut self.hosts.notices) {
            let Some(host) = self.local_of[setup.flows[notice.flow.0 as usize].src.index()].get() else {
                self.notices.push(notice);
                continue;
            };
            let start = self.hosts.on_dependency_met(host as usize, notice, setup);
            if let Some(time) = start.filter(|_| host as usize != running) {
                self.plane.schedule().activate(self.node_of[host as usize] as usize, time);
            }
        }
    }
}

/// Returns the arrival time of the next packet at a host and the time of the host's own next event, if either is before
/// `end`; otherwise its node is idle until then.
#[inline(always)]
fn due<L: ControlLaw>(
    plane: &mut Plane,
    hosts: &PartitionHosts<L>,
    node: usize,
    host: usize,
    ports: HostPorts,
    end: Time,
) -> Option<(Time, Time)> {
    let arrival = plane.head(ports.arrivals);
    let local = hosts.next_at(host, plane.idle_at(ports.nic));
    let now = arrival.min(local);
    if now >= end {
        plane.schedule().activate(node, now);
        return None;
    }
    Some((arrival, local))
}
