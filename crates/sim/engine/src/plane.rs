//! The data plane of one partition: its switches, window by window, and the ports that need more than the hot loop does.

mod build;
mod outcome;

use std::sync::Arc;

use experiment::{DropCause, PortSample, Setup, SwitchSample};
use fabric::{LinkId, NodeId, PortExtras, PortMode, PortParams, PortTransit};
use laws::Hop;
use units::{Bytes, Rate, Span, Time};

use crate::links::{Chooser, Egress, LinkOutlet, Links, Mail, Salts, Stopped};
use crate::merge::{DONE, Entrants, Merge, MergeTree, follow};
use crate::packet::{Packet, TelemetrySlot};
use crate::recorder::{LossLog, Recorder};
use crate::schedule::{Schedule, TimeWindow};
use crate::shared_buffer::{SharedBufferNode, SwitchContext};
use crate::ticks::Ticks;
use crate::tie_break::ScheduleKey;

/// A port in [`PortMode::Extended`]; few ports are.
struct Extended {
    link: u32,
    ticks: Ticks,
    extras: PortExtras<Packet>,
    /// Set if its node has it among its backlogged ports.
    listed: bool,
}

/// Ports of a host's node, by their numbers in the partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPorts {
    /// Link by which the host sends.
    pub(crate) nic: usize,
    /// FIFO of the packets that arrive at it.
    pub(crate) arrivals: usize,
}

pub(crate) struct Plane {
    first_node: u32,
    first_link: u32,
    window: Span,
    seed: u64,
    switch_salt: Vec<u64>,
    inputs: Vec<(u32, u32)>,
    /// By node: the ports at which packets wait for a service decision.
    backlogged: Vec<Vec<u32>>,
    links: Links,
    /// The network's port settings, at hand.
    params: Arc<[PortParams]>,
    extended: Vec<Extended>,
    /// By link: its index in `extended`.
    extended_of: Vec<Option<u32>>,
    /// Switches that share their buffer.
    shared: Vec<SharedBufferNode>,
    /// By node: its index in `shared`.
    shared_of: Vec<Option<u32>>,
    entrants: Entrants,
    samples: Vec<PortSample>,
    switch_samples: Vec<SwitchSample>,
    pub(crate) forwarded: u64,
    /// Recorder, if the run is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Plane {
    pub(crate) fn schedule(&mut self) -> &mut Schedule {
        &mut self.links.schedule
    }

    pub(crate) fn window(&self) -> Span {
        self.window
    }

    /// Sets the tie-break key of the event that the next packet to leave follows from.
    pub(crate) fn follows(&mut self, since: ScheduleKey) {
        self.links.since = Some(since);
    }

    /// Returns the service time of a packet at a port.
    pub(crate) fn service(&self, link: usize, packet: &Packet) -> Span {
        self.params[self.links.egress[link].port.params as usize].service(packet.size.into())
    }

    /// Returns the first packet on a link that is not empty, and the origin of its event.
    pub(crate) fn first(&mut self, fifo: usize) -> (Packet, ScheduleKey) {
        (*self.links.fifos.parts().first(fifo).1, self.links.fifos.since(fifo))
    }

    /// Returns the ports of a host's node.
    pub(crate) fn host_ports(&self, node: usize, setup: &Setup) -> HostPorts {
        let up = setup.network.links_out(NodeId(self.first_node + node as u32)).start - self.first_link;
        HostPorts { nic: up as usize, arrivals: self.inputs[node].0 as usize }
    }

    #[inline]
    pub(crate) fn head(&self, fifo: usize) -> Time {
        self.links.fifos.head(fifo)
    }

    /// Removes the first packet of a link that is not empty, with the data that it carries.
    #[inline(always)]
    pub(crate) fn pop(&mut self, fifo: usize) -> (Packet, TelemetrySlot) {
        let (place, _) = self.links.fifos.pop_slot(fifo);
        (self.links.fifos.at(place), self.links.fifos.report(place))
    }

    /// The number in the network of the first node here.
    pub(crate) fn first_node(&self) -> u32 {
        self.first_node
    }

    /// Prefetches the report of the packet at position `behind` after the first of a host's link, if it is an
    /// acknowledgement.
    #[inline]
    pub(crate) fn prefetch_report(&self, fifo: usize, behind: u32) {
        if let Some(reports) = &self.links.reports
            && let Some(report) = self.links.fifos.acknowledged(fifo, behind)
        {
            reports.prefetch(report);
        }
    }

    /// Stores a note that is attached to a packet from its sender on.
    pub(crate) fn note(&mut self, note: Hop) -> TelemetrySlot {
        let mut report = TelemetrySlot::NONE;
        if let Some(reports) = &mut self.links.reports {
            reports.add(&mut report, note);
        }
        report
    }

    /// Releases a report that was read, or lost.
    #[inline]
    pub(crate) fn forget(&mut self, report: TelemetrySlot) {
        self.links.forget(report);
    }

    #[inline]
    pub(crate) fn hops(&self, report: TelemetrySlot) -> &[Hop] {
        self.links.reports.as_ref().map_or(&[], |reports| reports.hops(report))
    }

    #[inline]
    pub(crate) fn idle_at(&self, link: usize) -> Time {
        self.links.egress[link].port.idle_at()
    }

    #[inline(always)]
    fn salts(&self) -> Salts {
        Salts { seed: self.seed, first_link: self.first_link }
    }

    #[inline(always)]
    fn salt(&self, link: usize) -> u64 {
        self.salts().of(link)
    }

    /// Merges a switch's inputs in the order (time, input) and forwards the packets that arrive from `start` to `end`.
    #[inline]
    pub(crate) fn run_switch(&mut self, node: usize, mut start: Time, end: Time, setup: &Setup) {
        while let Some(change) = setup.routes.change_between(start, end) {
            self.run_refilled(node, start, change, setup);
            start = change;
        }
        self.run_refilled(node, start, end, setup);
    }

    /// Runs a node over a time in which routes do not change.
    #[inline]
    fn run_refilled(&mut self, node: usize, mut start: Time, end: Time, setup: &Setup) {
        let (first, past) = self.inputs[node];
        while let Some(runs_out) = self.links.fifos.refill(first as usize..past as usize, end) {
            self.run_on_routes(node, start, runs_out, setup);
            start = runs_out;
        }
        self.run_on_routes(node, start, end, setup);
    }

    /// Runs a node while all arrivals are in the rings.
    fn run_on_routes(&mut self, node: usize, start: Time, end: Time, setup: &Setup) {
        let (first, past) = (self.inputs[node].0 as usize, self.inputs[node].1 as usize);
        if self.recorder.is_some() {
            self.record_arrivals(first..past, end, setup);
        }
        let mut entrants = std::mem::take(&mut self.entrants);
        entrants.clear();
        let mut next = Time::NEVER;
        for (input, &head) in self.links.fifos.heads(first..past).iter().enumerate() {
            debug_assert!(head >= start, "an arrival at {head} before the start of its window at {start}");
            if head < end {
                entrants.add(head.since(start), first + input);
                self.links.fifos.prefetch(first + input);
            } else {
                next = next.min(head);
            }
        }
        let window = TimeWindow { start, end };
        if let Some(shared) = self.shared_of[node] {
            self.run_shared(node, shared as usize, &mut entrants, first, window, setup);
            next = entrants.inputs().map(|input| self.links.fifos.head(input)).fold(next, Time::min);
            next = next.min(self.shared[shared as usize].next_at());
            self.entrants = entrants;
            self.links.schedule.activate(node, next);
            return;
        }
        match entrants.tree() {
            MergeTree::One(mut tree, winner) => self.forward_all(&mut tree, winner, node, window, setup),
            MergeTree::Few(mut tree, winner) => self.forward_all(&mut tree, winner, node, window, setup),
            MergeTree::Some(mut tree, winner) => self.forward_all(&mut tree, winner, node, window, setup),
            MergeTree::Many(tree, winner) => self.forward_all(tree, winner, node, window, setup),
        }
        // Only the links that had something may have another first packet now.
        next = entrants.inputs().map(|input| self.links.fifos.head(input)).fold(next, Time::min);
        self.entrants = entrants;
        if !self.backlogged[node].is_empty() {
            next = next.min(self.serve_backlog(node, end, setup));
        }
        self.links.schedule.activate(node, next);
    }

    /// Logs the packets that arrive over links before `end`: all of them are in the links' rings.
    #[cold]
    fn record_arrivals(&mut self, fifos: std::ops::Range<usize>, end: Time, setup: &Setup) {
        let Some(recorder) = &mut self.recorder else { return };
        for fifo in fifos {
            for packet in self.links.fifos.in_ring(fifo).take_while(|packet| packet.time < end) {
                recorder.arrives(fifo, packet, setup);
            }
        }
    }

    /// Logs a packet that arrives at a host.
    pub(crate) fn record_arrival(&mut self, fifo: usize, packet: &Packet, setup: &Setup) {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrives(fifo, packet, setup);
        }
    }

    /// Logs a packet that a host hands to its NIC.
    pub(crate) fn record_departure(&mut self, link: usize, packet: &Packet) {
        if let Some(recorder) = &mut self.recorder {
            recorder.departs(self.first_link + link as u32, packet);
        }
    }

    /// The losses of recorded flows.
    pub(crate) fn take_loss_log(&mut self) -> Option<LossLog> {
        self.links.loss_counters.log.take().map(|log| *log)
    }

    /// Runs a window of a switch that shares its buffer.
    fn run_shared(
        &mut self,
        node: usize,
        place: usize,
        entrants: &mut Entrants,
        first_input: usize,
        window: TimeWindow,
        setup: &Setup,
    ) {
        let (switch, mut context) = self.around(node, place, window.start, setup);
        let arrived = match entrants.tree() {
            MergeTree::One(mut tree, winner) => switch.run(&mut tree, winner, first_input, window, &mut context),
            MergeTree::Few(mut tree, winner) => switch.run(&mut tree, winner, first_input, window, &mut context),
            MergeTree::Some(mut tree, winner) => switch.run(&mut tree, winner, first_input, window, &mut context),
            MergeTree::Many(tree, winner) => switch.run(tree, winner, first_input, window, &mut context),
        };
        switch.finish(window.end, &mut context);
        self.forwarded += arrived;
    }

    /// Returns a shared-buffer switch, and the context in which it works from a time on.
    fn around<'a>(
        &'a mut self,
        node: usize,
        place: usize,
        from: Time,
        setup: &'a Setup,
    ) -> (&'a mut SharedBufferNode, SwitchContext<'a>) {
        let (chooser, salts) = (self.chooser(node, from, setup), self.salts());
        let context = SwitchContext {
            chooser,
            salts,
            links: &mut self.links,
            params: &self.params,
            setup,
            port_samples: &mut self.samples,
            switch_samples: &mut self.switch_samples,
        };
        (&mut self.shared[place], context)
    }

    /// Forwards packets in the order of a tree. Handles the cases that the hot loop leaves to it.
    #[inline(always)]
    fn forward_all(&mut self, tree: &mut impl Merge, mut winner: u64, node: usize, window: TimeWindow, setup: &Setup) {
        let (chooser, salts) = (self.chooser(node, window.start, setup), self.salts());
        if setup.symmetric {
            return self.forward_reversing(tree, winner, node, window, setup);
        }
        while winner != DONE {
            let (stopped, forwarded) = self.links.forward_while_plain(
                tree,
                winner,
                window,
                chooser,
                salts,
                &self.params,
                &mut self.backlogged[node],
            );
            self.forwarded += forwarded;
            match stopped {
                Stopped::Done => return,
                Stopped::Full { turn, fifo } if self.links.fifos.grow(fifo) => winner = turn,
                Stopped::Full { turn, .. } | Stopped::Extended { turn, .. } => {
                    let link = if let Stopped::Extended { link, .. } = stopped { Some(link) } else { None };
                    let head = self.forward_first(node, tree.input(turn), link, chooser, setup);
                    let key = if head < window.end { follow(turn, head.since(window.start)) } else { DONE };
                    winner = tree.replace(turn, key);
                }
            }
        }
    }

    /// Forwards the first packet on a link, by another link if that is known already. Returns the arrival time of the
    /// next one.
    #[inline(never)]
    fn forward_first(
        &mut self,
        node: usize,
        input: usize,
        link: Option<usize>,
        chooser: Chooser<'_>,
        setup: &Setup,
    ) -> Time {
        let packet = self.links.fifos.pop(input);
        let link = link.unwrap_or_else(|| chooser.by_hash(&packet));
        self.forwarded += 1;
        self.enqueue(node, link, packet, setup);
        self.links.fifos.head(input)
    }

    /// Forwards the first packet if packets on their way back take the reverse of the forward path.
    #[inline(never)]
    fn forward_reversing(
        &mut self,
        tree: &mut impl Merge,
        mut winner: u64,
        node: usize,
        window: TimeWindow,
        setup: &Setup,
    ) {
        let chooser = self.chooser(node, window.start, setup);
        while winner != DONE {
            let input = tree.input(winner);
            let packet = self.links.fifos.pop(input);
            let head = self.links.fifos.head(input);
            let key = if head < window.end { follow(winner, head.since(window.start)) } else { DONE };
            winner = tree.replace(winner, key);
            self.forwarded += 1;
            self.enqueue(node, chooser.link(&packet, setup), packet, setup);
        }
    }

    /// Returns the selector of a switch's output ports from a time on, until routes change.
    #[inline(always)]
    fn chooser<'a>(&self, node: usize, from: Time, setup: &'a Setup) -> Chooser<'a> {
        let switch = NodeId(self.first_node + node as u32);
        let routes = setup.routes.at(from).from(switch);
        Chooser { routes, switch_salt: self.switch_salt[node], first_link: self.first_link, switch }
    }

    /// Queues a packet that a host sends at `packet.time`, with its report.
    #[inline(always)]
    pub(crate) fn enqueue_with(&mut self, link: usize, packet: Packet, report: TelemetrySlot, setup: &Setup) {
        let port = &mut self.links.egress[link].port;
        if port.mode != PortMode::Fifo {
            return self.enqueue_extended(link, packet, report, setup);
        }
        let params = &self.params[port.params as usize];
        let salt = Salts { seed: self.seed, first_link: self.first_link }.of(link);
        if let Some(passage) = port.enqueue(params, salt, &packet.arrival()) {
            self.links.depart_with(link, &packet, passage, report);
        } else {
            self.links.loss_counters.count(link, &packet, DropCause::Full);
            self.links.forget(report);
        }
    }

    /// Queues a packet that arrives at a switch's port at `packet.time`.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, node: usize, link: usize, packet: Packet, setup: &Setup) {
        let salt = self.salt(link);
        let Egress { port, way } = &mut self.links.egress[link];
        if port.mode != PortMode::Fifo {
            self.enqueue_held(node, link, packet, setup);
        } else if let Some(passage) = port.enqueue(&self.params[port.params as usize], salt, &packet.arrival()) {
            let way = *way;
            debug_assert!(!self.links.failing.contains_key(&(link as u32)), "link {link} may be down");
            self.links.depart_by(way, &packet, passage, TelemetrySlot::NONE);
        } else {
            self.links.loss_counters.count(link, &packet, DropCause::Full);
        }
    }

    /// Queues a packet at a switch's port that may keep it for a later service decision.
    #[inline(never)]
    fn enqueue_held(&mut self, node: usize, link: usize, packet: Packet, setup: &Setup) {
        if self.links.egress[link].port.mode != PortMode::Extended {
            let params = &self.params[self.links.egress[link].port.params as usize];
            let (salt, backlogged) = (self.salt(link), &mut self.backlogged[node]);
            return self.links.enqueue_by_priority(link, packet, params, salt, backlogged);
        }
        self.enqueue_extended(link, packet, TelemetrySlot::NONE, setup);
        let Some(place) = self.extended_of[link] else { return };
        let port = &mut self.extended[place as usize];
        if !port.listed && port.extras.has_waiting() {
            port.listed = true;
            self.backlogged[node].push(link as u32);
        }
    }

    /// Queues a packet, with its report, at a port in [`PortMode::Extended`].
    fn enqueue_extended(&mut self, link: usize, packet: Packet, report: TelemetrySlot, setup: &Setup) {
        self.sample_until(link, packet.time, setup);
        let salt = self.salt(link);
        let Some(place) = self.extended_of[link] else { return debug_assert!(false, "link {link} has no extras") };
        let mut port = self.links.egress[link].port;
        let mut outlet = LinkOutlet { links: &mut self.links, link, report };
        let params = &self.params[port.params as usize];
        self.extended[place as usize].extras.enqueue(&mut port, params, salt, packet, &mut outlet);
        self.links.egress[link].port = port;
    }

    /// Replays the service of a node's ports to the end of its window, after all that the window enqueued. Returns the time
    /// of the next service decision of a port at which packets still wait.
    fn serve_backlog(&mut self, node: usize, end: Time, setup: &Setup) -> Time {
        let mut next = Time::NEVER;
        let mut backlogged = std::mem::take(&mut self.backlogged[node]);
        backlogged.retain(|&link| {
            let link = link as usize;
            let port = &self.links.egress[link].port;
            let (params, mode) = (port.params as usize, port.mode);
            if mode != PortMode::Extended {
                let waits = self.links.serve_by_priority(link, &self.params[params], end);
                if waits {
                    next = next.min(self.links.overtaken[link].served_at);
                }
                return waits;
            }
            self.sample_until(link, end, setup);
            self.advance(link, end);
            let Some(place) = self.extended_of[link] else { return false };
            let port = &mut self.extended[place as usize];
            next = next.min(port.extras.next_service(&self.params[params]));
            port.listed = port.extras.has_waiting();
            port.listed
        });
        self.backlogged[node] = backlogged;
        debug_assert!(next >= end, "a decision was left out");
        next
    }

    /// Replays the service of a port in [`PortMode::Extended`] that begins before `until`.
    fn advance(&mut self, link: usize, until: Time) {
        let Some(place) = self.extended_of[link] else { return };
        let salt = self.salt(link);
        let mut port = self.links.egress[link].port;
        let params = &self.params[port.params as usize];
        let mut outlet = LinkOutlet { links: &mut self.links, link, report: TelemetrySlot::NONE };
        self.extended[place as usize].extras.advance(&mut port, params, salt, until, &mut outlet);
        self.links.egress[link].port = port;
    }

    /// Takes the samples of a port in [`PortMode::Extended`] that are due before `now`.
    #[inline]
    fn sample_until(&mut self, link: usize, now: Time, setup: &Setup) {
        if self.extended_of[link].is_some_and(|place| self.extended[place as usize].ticks.are_due(now)) {
            self.sample(link, now, setup);
        }
    }

    #[cold]
    fn sample(&mut self, link: usize, now: Time, setup: &Setup) {
        let Some(place) = self.extended_of[link] else { return };
        while let Some(due) = self.extended[place as usize].ticks.due(now) {
            self.advance(link, due);
            let port = &self.links.egress[link].port;
            let params = &setup.network.params()[port.params as usize];
            let occupancy = self.extended[place as usize].extras.occupancy(port, params, due);
            self.samples.push(PortSample {
                time: due,
                link: LinkId(self.first_link + link as u32),
                queue: occupancy.queue,
                phantom: occupancy.phantom,
                ingress: Bytes::ZERO,
                pseudo: Bytes::ZERO,
                feedback: Rate::MAX,
            });
        }
    }

    /// Takes the packets that were sent to other partitions.
    pub(crate) fn take_mail(&mut self) -> impl Iterator<Item = Mail> + '_ {
        self.links.outboxes.iter_mut().filter(|mail| !mail.packets.is_empty()).map(|mail| Mail {
            packets: std::mem::take(&mut mail.packets),
            records: std::mem::take(&mut mail.records),
            since: std::mem::take(&mut mail.since),
            ..*mail
        })
    }

    /// Puts packets from another partition on their link here.
    pub(crate) fn deliver(&mut self, mail: Mail) {
        let (mut records, mut since) = (mail.records.into_iter(), mail.since.into_iter());
        for packet in mail.packets {
            let report = match (&mut self.links.reports, records.next().flatten()) {
                (Some(reports), Some(record)) => reports.insert(&record),
                _ => TelemetrySlot::NONE,
            };
            let (passed, since) =
                (PortTransit { arrives: packet.time, marked: false }, since.next().unwrap_or_default());
            if self.links.fifos.push_passed(mail.fifo as usize, &packet, passed, report, since) {
                self.links.schedule.activate_between(mail.node as usize, packet.time);
            }
        }
    }
}
