//! The data plane of one partition: its switches, window by window, and the functions that few ports need outside of
//! the hot loop: sampling, loss by chance, lazily served queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use experiment::{
    DropCause, LinkOutcome, PauseSample, PortSample, RecordConfig, Setup, SwitchOutcome, SwitchSample, Ties,
};
use fabric::{LinkId, Losses, NodeId, NodeKind, Passage, PlainPort, PortParams, QueuedPort, switch_salt};
use laws::Hop;
use units::{Bytes, Rate, Span, Time, mix64};

use crate::fifo::Fifos;
use crate::layout::Layout;
use crate::links::{Chooser, Egress, Failing, Links, Mail, Mode, NO_FIFO, Overtaken, Salts, Stopped, Toll};
use crate::merge::{DONE, Entrants, Merge, Tree, follow};
use crate::packet::{Packet, Report};
use crate::recorder::{LossLog, Recorder};
use crate::reports::Reports;
use crate::schedule::Schedule;
use crate::shared::{Around, SharedNode};
use crate::ticks::Ticks;
use crate::ties::Since;

/// State of a port of [`Mode::Special`]; few ports have it.
struct Special {
    link: u32,
    /// Set if the port is served lazily.
    lazy: Option<QueuedPort<Packet>>,
    ticks: Ticks,
    losses: Losses,
    unscheduled_drops: u64,
    credit_drops: u64,
    trims: u64,
}

pub(crate) struct Plane {
    first_node: u32,
    first_link: u32,
    window: Span,
    seed: u64,
    switch_salt: Vec<u64>,
    inputs: Vec<(u32, u32)>,
    /// By node: the special ports that hold packets back.
    backlogged: Vec<Vec<u32>>,
    links: Links,
    /// The network's port settings, at hand.
    params: Arc<[PortParams]>,
    specials: Vec<Special>,
    /// By link: its place in `specials`.
    special_of: Vec<u32>,
    /// Switches that share their buffer.
    shared: Vec<SharedNode>,
    /// By node: its place in `shared`.
    shared_of: Vec<u32>,
    entrants: Entrants,
    samples: Vec<PortSample>,
    switch_samples: Vec<SwitchSample>,
    pub(crate) forwarded: u64,
    /// Recorder, if the run is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Plane {
    pub(crate) fn new(
        index: usize,
        setup: &Setup,
        layout: &Layout,
        window: Span,
        record: Option<&RecordConfig>,
    ) -> Self {
        let network = &setup.network;
        let recorder = record.map(|config| Box::new(Recorder::new(index, setup, layout, config)));
        let (first_node, end_node) = (layout.node_start[index], layout.node_start[index + 1]);
        let (first_link, end_link) = (layout.link_start[index], layout.link_start[index + 1]);
        let (mut egress, mut outboxes, mut specials) = (Vec::new(), Vec::new(), Vec::new());
        let inputs = layout.inputs[first_node as usize..end_node as usize].to_vec();
        let mut fifos = inputs.iter().map(|range| range.1).max().unwrap_or(0);
        let mut overtaken = Vec::new();
        let mut special_of = vec![u32::MAX; (end_link - first_link) as usize];
        for link in first_link..end_link {
            let details = &network.links()[link as usize];
            let to = layout.partition_of(details.to);
            let (fifo, node) = (layout.fifo_of[link as usize], details.to.0 - layout.node_start[to]);
            let away = to != index;
            if away {
                outboxes.push(Mail { to, fifo, node, packets: Vec::new(), records: Vec::new(), since: Vec::new() });
            }
            // A host passes its NIC one packet at a time, so its port is plain in any configuration.
            let from_host = matches!(network.nodes()[details.from.index()].kind, NodeKind::Host(_));
            let config = network.port(LinkId(link)).config();
            let ordered = !from_host && config.is_plain_but_for_order();
            let shared = setup.shares(details.from);
            let ordered = ordered && !shared;
            let lazy = !from_host && !shared && !config.is_plain() && !ordered;
            overtaken.push(Overtaken {
                served_at: Time::ZERO,
                fifo: if ordered { fifos } else { NO_FIFO },
                listed: false,
            });
            fifos += u32::from(ordered);
            let sampled = setup.series.samples(LinkId(link));
            let fails = network.outages(LinkId(link)).is_some();
            let special = !shared && (lazy || sampled || fails || config.loses());
            if special {
                special_of[(link - first_link) as usize] = specials.len() as u32;
                let interval = if sampled { setup.series.interval } else { Span::ZERO };
                specials.push(Special {
                    link: link - first_link,
                    lazy: lazy.then(QueuedPort::default),
                    ticks: Ticks::new(interval, Time::ZERO),
                    losses: Losses::default(),
                    unscheduled_drops: 0,
                    credit_drops: 0,
                    trims: 0,
                });
            }
            egress.push(Egress {
                port: PlainPort::default(),
                bytes: 0,
                packets: 0,
                max_backlog: Span::ZERO,
                marks: 0,
                drops: 0,
                target: if away { outboxes.len() as u32 - 1 } else { fifo },
                node,
                params: details.params,
                away,
                mode: match (special, ordered) {
                    (true, _) => Mode::Special,
                    (false, true) => Mode::Ordered,
                    (false, false) => Mode::Plain,
                },
            });
        }
        let nodes = (end_node - first_node) as usize;
        let salts = Salts { seed: mix64(setup.seed), first_link };
        let (mut shared, mut shared_of) = (Vec::new(), vec![u32::MAX; nodes]);
        let classes = setup.classes_in_use();
        let params: Arc<[PortParams]> = network.params().into();
        let schedule = Schedule::new(nodes, window);
        for node in first_node..end_node {
            if setup.shares(NodeId(node)) {
                let switch = SharedNode::new(NodeId(node), first_link, salts, classes, Arc::clone(&params), setup);
                shared_of[(node - first_node) as usize] = shared.len() as u32;
                shared.push(switch);
            }
        }
        let mut plane = Self {
            first_node,
            first_link,
            window,
            seed: mix64(setup.seed),
            switch_salt: (first_node..end_node).map(|node| switch_salt(setup.seed, NodeId(node))).collect(),
            inputs,
            backlogged: vec![Vec::new(); nodes],
            links: Links {
                egress,
                overtaken,
                fifos: Fifos::new(fifos as usize, setup.carries_reports(), setup.ties == Ties::Scheduled),
                outboxes,
                schedule,
                reports: setup.carries_reports().then(Reports::new),
                since: (setup.ties == Ties::Scheduled).then_some(Since::BEGINNING),
                toll: Toll::new(
                    first_link..end_link,
                    setup.flows.len(),
                    recorder.as_ref().map(|recorder| Box::new(recorder.loss_log())),
                ),
                failing: failing(setup, first_link..end_link),
            },
            params,
            specials,
            special_of,
            entrants: Entrants::default(),
            shared,
            shared_of,
            samples: Vec::new(),
            switch_samples: Vec::new(),
            forwarded: 0,
            recorder,
        };
        plane.wake();
        plane
    }

    /// Schedules switches whose controllers or samples have events of their own: these occur before the first packet,
    /// too. A switch without either is not scheduled: a run in which nothing is scheduled ends.
    fn wake(&mut self) {
        for (node, &shared) in self.shared_of.iter().enumerate().filter(|(_, shared)| **shared != u32::MAX) {
            let next = self.shared[shared as usize].next_at();
            if next.is_set() {
                self.links.schedule.activate_between(node, next);
            }
        }
    }

    pub(crate) fn schedule(&mut self) -> &mut Schedule {
        &mut self.links.schedule
    }

    pub(crate) fn window(&self) -> Span {
        self.window
    }

    /// Says what is known of what the next packet that leaves follows from.
    pub(crate) fn follows(&mut self, since: Since) {
        self.links.since = Some(since);
    }

    /// Returns the service time of a packet at a port.
    pub(crate) fn service(&self, link: usize, packet: &Packet) -> Span {
        self.params[self.links.egress[link].params as usize].service(packet.size.into())
    }

    /// Returns the first packet on a link that is not empty, and the origin of its event.
    pub(crate) fn first(&mut self, fifo: usize) -> (Packet, Since) {
        (*self.links.fifos.parts().first(fifo).1, self.links.fifos.since(fifo))
    }

    /// Returns the NIC of a host's node and the FIFO of its arrivals.
    pub(crate) fn host_ports(&self, node: usize, setup: &Setup) -> (usize, usize) {
        let up = setup.network.links_out(NodeId(self.first_node + node as u32)).start - self.first_link;
        (up as usize, self.inputs[node].0 as usize)
    }

    #[inline]
    pub(crate) fn head(&self, fifo: usize) -> Time {
        self.links.fifos.head(fifo)
    }

    /// Takes the first packet off a link that is not empty, with what it carries.
    #[inline(always)]
    pub(crate) fn pop(&mut self, fifo: usize) -> (Packet, Report) {
        let (place, _) = self.links.fifos.pop_place(fifo);
        (self.links.fifos.at(place), self.links.fifos.report(place))
    }

    /// The number in the network of the first node here.
    pub(crate) fn first_node(&self) -> u32 {
        self.first_node
    }

    /// Checks a node's links and ports once it has run up to `now`. Returns how many entries it examined.
    ///
    /// # Errors
    /// When something is wrong: what.
    pub(crate) fn check(&self, node: usize, now: Time, setup: &Setup) -> Result<usize, String> {
        let (first, past) = self.inputs[node];
        let mut examined = 1;
        for fifo in first..past {
            let checked = self.links.fifos.check(fifo as usize, now);
            examined += checked.map_err(|what| format!("input {}: {what}", fifo - first))?;
        }
        for link in setup.network.links_out(NodeId(self.first_node + node as u32)) {
            let local = (link - self.first_link) as usize;
            if let Some(special) = self.specials.get(self.special_of[local] as usize)
                && let Some(lazy) = &special.lazy
            {
                examined += lazy.check().map_err(|what| format!("link {link}: {what}"))?;
            }
        }
        let shared = self.shared.get(self.shared_of[node] as usize);
        Ok(examined + shared.map_or(Ok(0), SharedNode::check)?)
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
    pub(crate) fn note(&mut self, note: Hop) -> Report {
        let mut report = Report::NONE;
        if let Some(reports) = &mut self.links.reports {
            reports.add(&mut report, note);
        }
        report
    }

    /// Releases a report that was read, or lost.
    #[inline]
    pub(crate) fn forget(&mut self, report: Report) {
        self.links.forget(report);
    }

    #[inline]
    pub(crate) fn hops(&self, report: Report) -> &[Hop] {
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

    /// Merges a switch's inputs in the order (time, input) and forwards what arrives from `start` to `end`.
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
        let shared = self.shared_of[node];
        let (first, past) = (self.inputs[node].0 as usize, self.inputs[node].1 as usize);
        if self.recorder.is_some() {
            self.record_arrivals(first..past, end, setup);
        }
        let mut entrants = std::mem::take(&mut self.entrants);
        entrants.clear();
        let mut next = Time::NEVER;
        for (input, &head) in self.links.fifos.heads(first..past).iter().enumerate() {
            debug_assert!(head >= start, "an arrival at {head} in a window that began at {start}");
            if head < end {
                entrants.add(head.since(start), first + input);
                self.links.fifos.prefetch(first + input);
            } else {
                next = next.min(head);
            }
        }
        if shared != u32::MAX {
            self.run_shared(node, shared as usize, &mut entrants, (first, start, end), setup);
            next = entrants.inputs().map(|input| self.links.fifos.head(input)).fold(next, Time::min);
            next = next.min(self.shared[shared as usize].next_at());
            self.entrants = entrants;
            self.links.schedule.activate(node, next);
            return;
        }
        match entrants.tree() {
            Tree::One(mut tree, winner) => self.forward_all(&mut tree, winner, node, (start, end), setup),
            Tree::Few(mut tree, winner) => self.forward_all(&mut tree, winner, node, (start, end), setup),
            Tree::Some(mut tree, winner) => self.forward_all(&mut tree, winner, node, (start, end), setup),
            Tree::Many(tree, winner) => self.forward_all(tree, winner, node, (start, end), setup),
        }
        // Only the links that had something may have another first packet now.
        next = entrants.inputs().map(|input| self.links.fifos.head(input)).fold(next, Time::min);
        self.entrants = entrants;
        if !self.backlogged[node].is_empty() {
            next = next.min(self.serve_backlog(node, end, setup));
        }
        self.links.schedule.activate(node, next);
    }

    /// Logs what arrives over links before `end`: all of it is in their rings.
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
        self.links.toll.log.take().map(|log| *log)
    }

    /// Runs a window of a switch that shares its buffer.
    fn run_shared(
        &mut self,
        node: usize,
        place: usize,
        entrants: &mut Entrants,
        window: (usize, Time, Time),
        setup: &Setup,
    ) {
        let (switch, mut around) = self.around(node, place, window.1, setup);
        let arrived = match entrants.tree() {
            Tree::One(mut tree, winner) => switch.run(&mut tree, winner, window, &mut around),
            Tree::Few(mut tree, winner) => switch.run(&mut tree, winner, window, &mut around),
            Tree::Some(mut tree, winner) => switch.run(&mut tree, winner, window, &mut around),
            Tree::Many(tree, winner) => switch.run(tree, winner, window, &mut around),
        };
        switch.finish(window.2, &mut around);
        self.forwarded += arrived;
    }

    /// A switch that shares its buffer, and what it works on from a time on.
    fn around<'a>(
        &'a mut self,
        node: usize,
        place: usize,
        from: Time,
        setup: &'a Setup,
    ) -> (&'a mut SharedNode, Around<'a>) {
        let (chooser, salts) = (self.chooser(node, from, setup), self.salts());
        let around = Around {
            chooser,
            salts,
            links: &mut self.links,
            params: &self.params,
            setup,
            port_samples: &mut self.samples,
            switch_samples: &mut self.switch_samples,
        };
        (&mut self.shared[place], around)
    }

    /// Forwards packets in the order of a tree. What the hot loop cannot do it leaves to here.
    #[inline(always)]
    fn forward_all(
        &mut self,
        tree: &mut impl Merge,
        mut winner: u64,
        node: usize,
        (start, end): (Time, Time),
        setup: &Setup,
    ) {
        let (chooser, salts) = (self.chooser(node, start, setup), self.salts());
        if setup.symmetric {
            return self.forward_reversing(tree, winner, node, (start, end), (chooser, setup));
        }
        while winner != DONE {
            let (stopped, forwarded) = self.links.forward_while_plain(
                tree,
                winner,
                (start, end),
                chooser,
                salts,
                &self.params,
                &mut self.backlogged[node],
            );
            self.forwarded += forwarded;
            match stopped {
                Stopped::Done => return,
                Stopped::Full { turn, fifo } if self.links.fifos.grow(fifo) => winner = turn,
                Stopped::Full { turn, .. } | Stopped::Special { turn, .. } => {
                    let link = if let Stopped::Special { link, .. } = stopped { Some(link) } else { None };
                    let head = self.forward_first(node, tree.input(turn), link, chooser, setup);
                    winner = tree.replace(turn, if head < end { follow(turn, head.since(start)) } else { DONE });
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
        (start, end): (Time, Time),
        (chooser, setup): (Chooser, &Setup),
    ) {
        while winner != DONE {
            let input = tree.input(winner);
            let packet = self.links.fifos.pop(input);
            let head = self.links.fifos.head(input);
            winner = tree.replace(winner, if head < end { follow(winner, head.since(start)) } else { DONE });
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

    /// Queues a packet that a host sends at `packet.time`, with its report. A host's NIC is at most sampled, or loses
    /// by chance: it serves in order.
    #[inline(always)]
    pub(crate) fn enqueue_with(&mut self, link: usize, packet: Packet, report: Report, setup: &Setup) {
        let salt = self.salt(link);
        let arrival = packet.arrival();
        if self.links.egress[link].mode == Mode::Special {
            let special = &mut self.specials[self.special_of[link] as usize];
            debug_assert!(special.lazy.is_none(), "a card serves in order");
            if special.ticks.are_due(arrival.now) {
                special.sample(&mut self.links, arrival.now, setup, salt, self.first_link, &mut self.samples);
            }
        }
        let egress = &mut self.links.egress[link];
        let params = &self.params[egress.params as usize];
        let Some(passage) = egress.admit(params, salt, &arrival) else {
            self.links.toll.count(link, &packet, DropCause::Full);
            return self.links.forget(report);
        };
        let loses = |special: &mut Special| special.losses.loses(params, salt, &arrival);
        if egress.mode == Mode::Special && loses(&mut self.specials[self.special_of[link] as usize]) {
            self.links.toll.count(link, &packet, DropCause::Chance);
            self.links.forget(report);
        } else {
            self.links.depart_with(link, &packet, passage, report);
        }
    }

    /// Queues a packet that comes to a port at `packet.time`.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, node: usize, link: usize, packet: Packet, setup: &Setup) {
        let salt = self.salt(link);
        let egress = &mut self.links.egress[link];
        if egress.mode != Mode::Plain {
            self.enqueue_special(node, link, packet, setup);
        } else if let Some(passage) = egress.admit(&self.params[egress.params as usize], salt, &packet.arrival()) {
            let way = egress.way();
            debug_assert!(!self.links.failing.contains_key(&(link as u32)), "link {link} may be down");
            self.links.depart_by(way, &packet, passage, Report::NONE);
        } else {
            self.links.toll.count(link, &packet, DropCause::Full);
        }
    }

    /// Queues a packet at a port that is sampled, loses packets by chance, or is served lazily.
    #[inline(never)]
    fn enqueue_special(&mut self, node: usize, link: usize, packet: Packet, setup: &Setup) {
        let salt = self.salt(link);
        let arrival = &packet.arrival();
        let params = &self.params[self.links.egress[link].params as usize];
        if self.links.egress[link].mode != Mode::Special {
            self.links.enqueue_ordered(link, packet, arrival, params, salt, None, &mut self.backlogged[node]);
            return;
        }
        let special = &mut self.specials[self.special_of[link] as usize];
        if special.ticks.are_due(arrival.now) {
            special.sample(&mut self.links, arrival.now, setup, salt, self.first_link, &mut self.samples);
        }
        let losses = &mut special.losses;
        let Some(lazy) = &mut special.lazy else {
            if self.links.overtaken[link].fifo != NO_FIFO {
                let backlogged = &mut self.backlogged[node];
                self.links.enqueue_ordered(link, packet, arrival, params, salt, Some(losses), backlogged);
                return;
            }
            let egress = &mut self.links.egress[link];
            if let Some(passage) = egress.admit(params, salt, arrival) {
                self.links.depart_or_lose(link, &packet, passage, params, salt, losses);
            } else {
                self.links.toll.count(link, &packet, DropCause::Full);
            }
            return;
        };
        let waited = lazy.has_waiting();
        let links = &mut self.links;
        let mut out = |packet: Packet, passage| {
            links.egress[link].count(packet.size.into(), passage);
            links.depart_or_lose(link, &packet, passage, params, salt, losses);
        };
        let mut refused = lazy.enqueue(params, salt, arrival, packet, &mut out);
        // Expendable packets are dropped completely.
        if let (Some(data), Some(trim)) = (&refused, params.config().trim)
            && data.is_data()
            && !arrival.expendable
        {
            let header = data.trimmed(trim.header);
            refused = lazy.enqueue(params, salt, &header.arrival(), header, &mut out);
            special.trims += 1;
            self.links.toll.count_data(&packet);
        }
        let egress = &mut self.links.egress[link];
        if refused.is_some() && arrival.credit && params.credits().is_some() {
            special.credit_drops += 1;
        } else if let Some(refused) = refused {
            egress.drops = egress.drops.saturating_add(1);
            self.links.toll.count(link, &refused, DropCause::Full);
            special.unscheduled_drops += u64::from(arrival.expendable && params.credits().is_some());
        } else if !(arrival.credit && params.credits().is_some()) {
            egress.max_backlog = egress.max_backlog.max(lazy.held(arrival.now));
        }
        if lazy.has_waiting() && !waited && !self.backlogged[node].contains(&(link as u32)) {
            self.backlogged[node].push(link as u32);
        }
    }

    /// Replays the service of a node's lazy ports to the end of its window, after all that the window enqueued. Returns
    /// the time of the next scheduling decision of a port at which packets still wait.
    fn serve_backlog(&mut self, node: usize, end: Time, setup: &Setup) -> Time {
        let mut next = Time::NEVER;
        let mut backlogged = std::mem::take(&mut self.backlogged[node]);
        backlogged.retain(|&link| {
            let link = link as usize;
            let salt = self.salt(link);
            let params = &self.params[self.links.egress[link].params as usize];
            if self.links.overtaken[link].fifo != NO_FIFO {
                let waits = self.links.serve_ordered(link, params, end);
                if waits {
                    next = next.min(self.links.overtaken[link].served_at);
                }
                return waits;
            }
            let special = &mut self.specials[self.special_of[link] as usize];
            if special.ticks.are_due(end) {
                special.sample(&mut self.links, end, setup, salt, self.first_link, &mut self.samples);
            }
            let (links, losses) = (&mut self.links, &mut special.losses);
            let Some(lazy) = &mut special.lazy else { return false };
            lazy.advance(params, salt, end, |packet, passage| {
                links.egress[link].count(packet.size.into(), passage);
                links.depart_or_lose(link, &packet, passage, params, salt, losses);
            });
            next = next.min(lazy.next_service(params));
            lazy.has_waiting()
        });
        self.backlogged[node] = backlogged;
        debug_assert!(next >= end, "a decision was left out");
        next
    }

    /// Takes what has been sent to other partitions.
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
                _ => Report::NONE,
            };
            let (passed, since) = (Passage { arrives: packet.time, marked: false }, since.next().unwrap_or_default());
            if self.links.fifos.push_passed(mail.fifo as usize, &packet, passed, report, since) {
                self.links.schedule.activate_between(mail.node as usize, packet.time);
            }
        }
    }

    /// The links' outcomes, in order, from the partition's first link on.
    pub(crate) fn outcomes<'a>(&'a self, ended: Time, setup: &'a Setup) -> impl Iterator<Item = LinkOutcome> + 'a {
        self.links.egress.iter().enumerate().map(move |(link, egress)| {
            let from = setup.network.links()[self.first_link as usize + link].from;
            let mut outcome = LinkOutcome {
                packets: egress.packets,
                bytes: Bytes::new(egress.bytes),
                drops: egress.drops.into(),
                marks: egress.marks,
                lost: self.links.toll.links[link],
                max_queue: setup.network.params()[egress.params as usize].bytes_in(egress.max_backlog),
                ..LinkOutcome::default()
            };
            if let Some(special) = self.specials.get(self.special_of[link] as usize) {
                outcome.losses = special.losses.count();
                outcome.unscheduled_drops = special.unscheduled_drops;
                outcome.credit_drops = special.credit_drops;
                outcome.trims = special.trims;
            }
            let place = self.shared_of[(from.0 - self.first_node) as usize];
            if let Some(shared) = self.shared.get(place as usize) {
                (outcome.losses, outcome.max_queue, outcome.pauses, outcome.paused) = shared.link(link, ended);
            }
            outcome.losses += self.links.failing.get(&(link as u32)).map_or(0, |failing| failing.lost);
            outcome
        })
    }

    /// Data packets that were lost, by flow.
    pub(crate) fn lost_of(&self) -> &[u32] {
        &self.links.toll.flows
    }

    /// Data packets on links and in switches, without those that are lost already.
    pub(crate) fn data_in_flight(&self) -> u64 {
        let lazy = self.specials.iter().filter_map(|special| special.lazy.as_ref()).flat_map(QueuedPort::waiting);
        let shared = self.shared.iter().flat_map(SharedNode::waiting);
        let packets = self.links.fifos.packets().chain(lazy).chain(shared);
        packets.filter(|packet| packet.is_data() && !packet.is_lost()).count() as u64
    }

    /// Returns the outcomes of switches that share their buffer.
    pub(crate) fn switches(&self) -> impl Iterator<Item = SwitchOutcome> + '_ {
        self.shared.iter().map(SharedNode::outcome)
    }

    /// Returns the pauses of sampled ports, up to `end`.
    pub(crate) fn kept_pauses<'a>(&'a self, end: Time, setup: &'a Setup) -> impl Iterator<Item = PauseSample> + 'a {
        self.shared.iter().flat_map(move |shared| shared.kept_pauses(end, setup))
    }

    /// Ports that wait for the other end and make senders wait in turn: (port, port of the senders' cable, class).
    pub(crate) fn held_back(&self, setup: &Setup) -> Vec<(LinkId, LinkId, u8)> {
        self.shared.iter().flat_map(|shared| shared.held_back(setup)).collect()
    }

    /// Samples every chosen port and switch up to the end of the run, and returns all samples.
    pub(crate) fn finish(&mut self, end: Time, setup: &Setup) -> (Vec<PortSample>, Vec<SwitchSample>) {
        for special in 0..self.specials.len() {
            let salt = self.salt(self.specials[special].link as usize);
            self.specials[special].sample(&mut self.links, end, setup, salt, self.first_link, &mut self.samples);
        }
        for node in 0..self.shared_of.len() {
            let place = self.shared_of[node] as usize;
            if place < self.shared.len() {
                let (switch, mut around) = self.around(node, place, end, setup);
                switch.finish(end, &mut around);
            }
        }
        (std::mem::take(&mut self.samples), std::mem::take(&mut self.switch_samples))
    }
}

/// The links of a range that are down at times, by their number there.
fn failing(setup: &Setup, range: std::ops::Range<u32>) -> BTreeMap<u32, Failing> {
    let inside = setup.network.failing().filter(|(link, _)| range.contains(&link.0));
    let failing = inside.map(|(link, outages)| {
        let delay = setup.network.port(link).delay();
        (link.0 - range.start, Failing { outages: outages.clone(), delay, lost: 0 })
    });
    failing.collect()
}

impl Special {
    /// Takes the samples that are due before `now`.
    #[cold]
    fn sample(
        &mut self,
        links: &mut Links,
        now: Time,
        setup: &Setup,
        salt: u64,
        first_link: u32,
        samples: &mut Vec<PortSample>,
    ) {
        let link = self.link as usize;
        let params = &setup.network.params()[links.egress[link].params as usize];
        while let Some(due) = self.ticks.due(now) {
            let losses = &mut self.losses;
            let (queue, phantom) = if let Some(lazy) = &mut self.lazy {
                lazy.advance(params, salt, due, |packet, passage| {
                    links.egress[link].count(packet.size.into(), passage);
                    links.depart_or_lose(link, &packet, passage, params, salt, losses);
                });
                (lazy.queue(params, due), lazy.phantom().occupancy(params, due))
            } else {
                let port = &links.egress[link].port;
                (port.queue(params, due), port.phantom().occupancy(params, due))
            };
            samples.push(PortSample {
                time: due,
                link: LinkId(first_link + self.link),
                queue,
                phantom,
                ingress: Bytes::ZERO,
                pseudo: Bytes::ZERO,
                feedback: Rate::MAX,
            });
        }
    }
}
