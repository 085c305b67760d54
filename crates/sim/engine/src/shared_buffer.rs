//! Switches that share their buffer among their ports: a window of one of them.
//!
//! All that happens in such a switch depends on all its ports, so it is run as a whole: arrivals, pauses, its controllers'
//! timers and samples in order of time, and before each of them every decision of the ports that comes first.

use std::sync::Arc;

use experiment::{DropCause, PauseSample, PortSample, Setup, SwitchSample, TieBreak};
use fabric::{Departure, LinkId, Losses, NodeId, NodeKind, PfcAction, PortParams, SharedSwitch, Switch, SwitchOutlet};
use laws::Hop;
use units::{Bytes, Rate, Span, Time};

use crate::body::{Body, BodyKind};
use crate::carried::Carried;
use crate::controllers::{ControllerMessage, Controllers};
use crate::links::{Chooser, Links, Salts};
use crate::merge::{DONE, Merge, follow};
use crate::packet::Packet;
use crate::schedule::TimeWindow;
use crate::ticks::Ticks;
use crate::tie_break::SwitchTies;

/// One such switch.
pub(crate) struct SharedBufferNode {
    switch: SharedSwitch<Carried>,
    /// The partition's number of its first link out.
    first_link: usize,
    /// Set if its ports report themselves to data.
    reports: bool,
    /// By input: the port of the same cable.
    port_of: Vec<u16>,
    controllers: Controllers,
    ticks: Ticks,
    sampled: Vec<u16>,
    samples_buffer: bool,
    node: NodeId,
    others: Vec<OtherEnd>,
    /// By port: packets that its link lost by chance.
    losses: Vec<Losses>,
    ties: Option<Box<SwitchTies>>,
}

/// The configuration of a switch that has none but must share its buffer, to report or to control: no limit but its
/// ports'.
pub(crate) const UNLIMITED: Switch =
    Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: true };

/// The message types that the other end of a port's cable supports. Other messages end with the link: a plain switch
/// would forward them as packets.
struct OtherEnd {
    pauses: bool,
    controllers: bool,
}

impl SharedBufferNode {
    /// Checks the books of its buffer. Returns how many entries it examined.
    pub(crate) fn check(&self) -> Result<usize, String> {
        self.switch.check()
    }
}

impl OtherEnd {
    fn of(link: LinkId, setup: &Setup) -> Self {
        let to = setup.network.links()[link.index()].to;
        let is_host = setup.network.nodes()[to.index()].kind != NodeKind::Switch;
        Self { pauses: setup.network.honors_pfc(to), controllers: is_host || setup.shares(to) }
    }

    fn supports(&self, kind: BodyKind) -> bool {
        match kind {
            BodyKind::Pause | BodyKind::Resume => self.pauses,
            BodyKind::Feedback => self.controllers,
            _ => true,
        }
    }
}

/// The output side of a switch: its links.
struct SharedOutlet<'a> {
    links: &'a mut Links,
    controllers: &'a mut Controllers,
    losses: &'a mut [Losses],
    params: &'a [PortParams],
    first_link: usize,
    reports: bool,
    int_multi: u32,
    others: &'a [OtherEnd],
    port_of: &'a [u16],
    salts: Salts,
    ties: Option<&'a mut SwitchTies>,
}

impl SwitchOutlet<Carried> for SharedOutlet<'_> {
    #[inline(always)]
    fn depart(&mut self, item: &Carried, departure: &Departure) {
        let Carried { packet, report } = item;
        let mut report = *report;
        let link = self.first_link + departure.port;
        let port = &mut self.links.egress[link].port;
        port.count(packet.size.into(), departure.passage);
        let params = &self.params[port.params as usize];
        if let Some(ties) = &mut self.ties {
            let departed_at = departure.passage.arrives - params.delay();
            self.links.since = Some(ties.leaves(departure.port, departure.begins, departed_at));
        }
        if let Some(from) = departure.from {
            self.controllers.drained(from, packet.size.into());
        }
        // A real pause runs out and is renewed; here it lasts until the frame that ends it, so none is lost.
        if params.loses_some()
            && !packet.is_frame()
            && self.losses[departure.port].loses(params, self.salts.of(link), &packet.arrival())
        {
            self.links.loss_counters.count(link, packet, DropCause::Chance);
            self.links.forget(report);
            return;
        }
        if packet.is_signal() && !self.others[departure.port].supports(packet.kind()) {
            return;
        }
        if self.reports
            && packet.is_data()
            && let Some(reports) = &mut self.links.reports
        {
            let hop = Hop {
                time: departure.begins,
                sent: departure.sent,
                queue: departure.queue,
                rate: params.config().rate,
            };
            let hop = if self.int_multi == 0 { hop } else { in_units(hop, self.int_multi) };
            reports.add(&mut report, hop);
        }
        self.links.depart_with(link, packet, departure.passage, report);
    }

    fn drop(&mut self, item: &Carried, port: usize) {
        let link = self.first_link + port;
        self.links.egress[link].port.count_drop();
        self.links.loss_counters.count(link, &item.packet, DropCause::Full);
        self.links.forget(item.report);
    }
}

impl SharedOutlet<'_> {
    /// Handles a packet or a frame that arrives by a port.
    #[inline(always)]
    fn on_packet(
        &mut self,
        switch: &mut SharedSwitch<Carried>,
        from: usize,
        carried: &mut Carried,
        chooser: Chooser,
        setup: &Setup,
    ) {
        if carried.packet.is_signal() {
            let packet = &carried.packet;
            match packet.body() {
                Body::Pause => return switch.on_frame(from, packet.class(), PfcAction::Pause, packet.time, self),
                Body::Resume => return switch.on_frame(from, packet.class(), PfcAction::Resume, packet.time, self),
                Body::Feedback(rate) => return self.controllers.on_feedback(from, packet.time, rate),
                _ => {}
            }
        }
        let to = chooser.link(&carried.packet, setup) - self.first_link;
        if self.controllers.any() {
            let messages = self.controllers.on_packet(from, to, carried, setup, self.links.reports.as_mut());
            self.perform(messages, switch, chooser, setup);
        }
        let arrival = carried.packet.arrival();
        switch.arrive(Some(from), to, &arrival, carried, self);
    }

    /// Sends the messages that controllers request.
    fn perform(
        &mut self,
        messages: Vec<ControllerMessage>,
        switch: &mut SharedSwitch<Carried>,
        chooser: Chooser,
        setup: &Setup,
    ) {
        for ControllerMessage { to, carried } in messages {
            let to = to.unwrap_or_else(|| chooser.link(&carried.packet, setup) - self.first_link);
            let arrival = carried.packet.arrival();
            switch.arrive(None, to, &arrival, &carried, self);
        }
    }
}

/// A report as the HPCC simulator's packets have room for it.
#[cold]
fn in_units(hop: Hop, multi: u32) -> Hop {
    let down = |value: u64, unit: u64| value - value % unit;
    Hop {
        time: Time::from_ps(down(hop.time.ps(), 1_000)),
        sent: Bytes::new(down(hop.sent.get(), 128 * u64::from(multi))),
        queue: Bytes::new(down(hop.queue.get(), 80 * u64::from(multi))),
        rate: hop.rate,
    }
}

/// The environment of a switch in a window.
pub(crate) struct SwitchContext<'a> {
    pub(crate) links: &'a mut Links,
    pub(crate) params: &'a [PortParams],
    pub(crate) chooser: Chooser<'a>,
    pub(crate) salts: Salts,
    pub(crate) setup: &'a Setup,
    pub(crate) port_samples: &'a mut Vec<PortSample>,
    pub(crate) switch_samples: &'a mut Vec<SwitchSample>,
}

impl SharedBufferNode {
    /// The switch of a node, in a partition with this first link.
    pub(crate) fn new(
        node: NodeId,
        first_link: u32,
        salts: Salts,
        classes: u64,
        params: Arc<[PortParams]>,
        setup: &Setup,
    ) -> Self {
        let network = &setup.network;
        let config = network.nodes()[node.index()].switch.unwrap_or(UNLIMITED);
        let out = network.links_out(node);
        let ports = out.clone().map(|link| {
            let local = (link - first_link) as usize;
            (network.links()[link as usize].params.into(), salts.of(local))
        });
        let inputs = || (0..).map(LinkId).zip(network.links()).filter(|(_, link)| link.to == node);
        let port_of = inputs().map(|(_, link)| (link.reverse.0 - out.start) as u16).collect();
        let ties = || SwitchTies::new(inputs().map(|(id, _)| id), out.len(), setup);
        let sampling = setup.series.interval;
        let sampled: Vec<u16> = out
            .clone()
            .filter(|&link| setup.series.samples(LinkId(link)))
            .map(|link| (link - out.start) as u16)
            .collect();
        let mut switch = SharedSwitch::new(config, params, ports, classes);
        for &port in &sampled {
            switch.keep_pauses(port.into());
        }
        let samples_buffer = setup.series.switches.contains(&node);
        let samples = !sampled.is_empty() || samples_buffer;
        let interval = if samples { sampling } else { Span::ZERO };
        Self {
            switch,
            first_link: (out.start - first_link) as usize,
            reports: setup.host.int && config.int,
            port_of,
            controllers: Controllers::new(setup, out.clone()),
            ticks: Ticks::new(interval, Time::ZERO),
            sampled,
            samples_buffer,
            node,
            others: out.clone().map(|link| OtherEnd::of(LinkId(link), setup)).collect(),
            losses: vec![Losses::default(); out.len()],
            ties: (setup.ties == TieBreak::Scheduled).then(|| Box::new(ties())),
        }
    }

    /// Returns the time of the switch's own next event.
    pub(crate) fn next_at(&self) -> Time {
        self.switch.next_at().min(self.controllers.next_at())
    }

    /// Handles all arrivals of a window, as merged by a tree. Returns their number.
    pub(crate) fn run(
        &mut self,
        tree: &mut impl Merge,
        mut winner: u64,
        first_input: usize,
        window: TimeWindow,
        context: &mut SwitchContext,
    ) -> u64 {
        if self.ties.is_some() {
            return self.run_by_schedule(tree, winner, first_input, window, context);
        }
        let mut arrived = 0;
        while winner != DONE {
            self.act_until(context.links.fifos.head(tree.input(winner)).just_after(), context);
            let (chooser, setup, next_sample) = (context.chooser, context.setup, self.ticks.next_at());
            let (switch, mut leaving) = self.split(context);
            // Until the switch acts by itself.
            while winner != DONE {
                let input = tree.input(winner);
                if next_sample.min(leaving.controllers.next_at()) <= leaving.links.fifos.head(input) {
                    break;
                }
                let (place, head) = leaving.links.fifos.pop_slot(input);
                let report = leaving.links.fifos.report(place);
                let packet = leaving.links.fifos.at(place);
                if let Some(reports) = &leaving.links.reports {
                    reports.prefetch_next(report);
                }
                winner = tree
                    .replace(winner, if head < window.end { follow(winner, head.since(window.start)) } else { DONE });
                arrived += 1;
                let from = usize::from(leaving.port_of[input - first_input]);
                leaving.on_packet(switch, from, &mut Carried { packet, report }, chooser, setup);
            }
        }
        arrived
    }

    /// Handles simultaneous arrivals in the order in which they were scheduled.
    #[cold]
    fn run_by_schedule(
        &mut self,
        tree: &mut impl Merge,
        mut winner: u64,
        first_input: usize,
        window: TimeWindow,
        context: &mut SwitchContext,
    ) -> u64 {
        let mut arrived = 0;
        while winner != DONE {
            let Some(ties) = &mut self.ties else { return arrived };
            let mut tied = std::mem::take(&mut ties.tied);
            let now = context.links.fifos.head(tree.input(winner));
            while winner != DONE && context.links.fifos.head(tree.input(winner)) == now {
                let input = tree.input(winner);
                let since = context.links.fifos.since(input);
                let (place, head) = context.links.fifos.pop_slot(input);
                let (packet, report) = (context.links.fifos.at(place), context.links.fifos.report(place));
                tied.push(ties.arriving(input - first_input, packet, report, since));
                winner = tree
                    .replace(winner, if head < window.end { follow(winner, head.since(window.start)) } else { DONE });
            }
            tied.sort_by_key(|it| it.order);
            for arriving in tied.drain(..) {
                arrived += 1;
                self.act_until(now.just_after(), context);
                if let Some(ties) = &mut self.ties {
                    ties.take(&arriving);
                }
                let (chooser, setup) = (context.chooser, context.setup);
                let (switch, mut leaving) = self.split(context);
                let (from, mut carried) =
                    (leaving.port_of[arriving.input], Carried { packet: arriving.packet, report: arriving.report });
                leaving.on_packet(switch, from.into(), &mut carried, chooser, setup);
            }
            if let Some(ties) = &mut self.ties {
                ties.tied = tied;
            }
        }
        arrived
    }

    /// Handles all of the switch's own events before `end`.
    pub(crate) fn finish(&mut self, end: Time, context: &mut SwitchContext) {
        self.act_until(end, context);
        let (switch, mut leaving) = self.split(context);
        switch.advance(end, &mut leaving);
    }

    #[inline(always)]
    fn split<'a>(
        &'a mut self,
        context: &'a mut SwitchContext<'_>,
    ) -> (&'a mut SharedSwitch<Carried>, SharedOutlet<'a>) {
        let leaving = SharedOutlet {
            links: context.links,
            controllers: &mut self.controllers,
            losses: &mut self.losses,
            params: context.params,
            first_link: self.first_link,
            reports: self.reports,
            int_multi: context.setup.host.int_multi,
            others: &self.others,
            port_of: &self.port_of,
            salts: context.salts,
            ties: self.ties.as_deref_mut(),
        };
        (&mut self.switch, leaving)
    }

    /// Samples and timers that are due before `until`, in order of time.
    #[inline]
    fn act_until(&mut self, until: Time, context: &mut SwitchContext) {
        if self.ticks.are_due(until) || self.controllers.next_at() < until {
            self.act(until, context);
        }
    }

    #[cold]
    fn act(&mut self, until: Time, context: &mut SwitchContext) {
        loop {
            let timer = self.controllers.next_at();
            if let Some(due) = self.ticks.due(until.min(timer)) {
                self.sample(due, context);
            } else if timer < until {
                {
                    let (switch, mut leaving) = self.split(context);
                    switch.advance(timer, &mut leaving);
                }
                let messages = self.controllers.on_timer(timer, &self.switch, context.setup);
                let (chooser, setup) = (context.chooser, context.setup);
                let (switch, mut leaving) = self.split(context);
                leaving.perform(messages, switch, chooser, setup);
            } else {
                return;
            }
        }
    }

    fn sample(&mut self, due: Time, context: &mut SwitchContext) {
        {
            let (switch, mut leaving) = self.split(context);
            switch.advance(due, &mut leaving);
        }
        let out = context.setup.network.links_out(self.node);
        for &port in &self.sampled {
            let port = usize::from(port);
            let (pseudo, feedback) = self.controllers.pseudo(port, due).unwrap_or((Bytes::ZERO, Rate::MAX));
            context.port_samples.push(PortSample {
                time: due,
                link: LinkId(out.start + port as u32),
                queue: self.switch.queue(port),
                phantom: self.switch.phantom(port, due),
                ingress: self.switch.held_by(port),
                pseudo,
                feedback,
            });
        }
        if self.samples_buffer {
            context.switch_samples.push(SwitchSample { time: due, node: self.node, buffer: self.switch.held() });
        }
    }

    /// The packets that wait in the switch.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.switch.waiting().map(|carried| &carried.packet)
    }

    /// Returns its outcome at the end of the run.
    pub(crate) fn outcome(&self) -> experiment::SwitchOutcome {
        experiment::SwitchOutcome {
            node: self.node,
            max_buffer: self.switch.max_held(),
            headroom_drops: self.switch.headroom_drops(),
            messages: self.controllers.messages(),
            notifications: self.controllers.notifications(),
        }
    }

    /// Returns the counters of an outgoing link (by the partition's number): losses, longest queue, pauses and their
    /// time until `end`.
    pub(crate) fn link(&self, link: usize, end: Time) -> (u64, Bytes, u64, Span) {
        let port = link - self.first_link;
        let (pauses, paused) = self.switch.pauses(port, end);
        (self.losses[port].count(), self.switch.max_queued(port), pauses, paused)
    }

    /// Returns the pauses of sampled ports, up to `end`.
    pub(crate) fn kept_pauses<'a>(&'a self, end: Time, setup: &Setup) -> impl Iterator<Item = PauseSample> + use<'a> {
        let first = setup.network.links_out(self.node).start;
        self.sampled.iter().flat_map(move |&port| {
            let link = LinkId(first + u32::from(port));
            self.switch.kept_pauses(port.into(), end).map(move |(from, until)| PauseSample { link, from, until })
        })
    }

    /// Ports that wait for the other end and make their own senders wait: (link out, link out of the same cable as those
    /// senders, class), by the network's numbers.
    pub(crate) fn held_back(&self, setup: &Setup) -> Vec<(LinkId, LinkId, u8)> {
        let first = setup.network.links_out(self.node).start;
        let link = |port: usize| LinkId(first + port as u32);
        self.switch.held_back().into_iter().map(|(port, from, class)| (link(port), link(from), class)).collect()
    }
}
