//! Nodes with a shared buffer, as in the simulator (`fabric`): switches, and the NICs of hosts that their pauses reach
//! (priority flow control, IEEE 802.1Qbb).

use std::sync::Arc;

use experiment::SwitchOutcome;
use fabric::{
    Arrival, Departure, LinkId, Losses, Network, NodeId, NodeKind, Occupancy, PfcAction, PortConfig, PortParams,
    QueueItem, SharedSwitch, Switch, SwitchItem, SwitchOutlet,
};
use units::{Bytes, Span, Time};

use crate::port::{OutputPort, PortSegment, SegmentOutcome};

/// Data class of all segments: the keys `traffic_class` are the simulator's.
const DATA_CLASS: u8 = 1;

/// Buffer of a host's NIC: the host keeps its packets until the NIC accepts them.
const NIC_BUFFER: Switch =
    Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };

/// A PFC frame for one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PfcFrame {
    class: u8,
    action: PfcAction,
    size: u32,
    /// Arrival time at the current node.
    pub(super) arrived: Time,
}

/// Item on a link, or in a node with a shared buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkItem {
    Segment(PortSegment),
    Pfc(PfcFrame),
}

impl LinkItem {
    /// Returns the arrival time at the current node.
    pub(super) fn arrived(&self) -> Time {
        match self {
            Self::Segment(segment) => segment.arrived,
            Self::Pfc(frame) => frame.arrived,
        }
    }
}

impl QueueItem for LinkItem {
    fn arrival(&self) -> Arrival {
        match self {
            Self::Segment(segment) => segment.arrival(),
            Self::Pfc(frame) => Arrival {
                now: frame.arrived,
                size: frame.size,
                ecn_capable: false,
                control: true,
                credit: false,
                expendable: false,
                identity: 0,
            },
        }
    }
}

impl SwitchItem for LinkItem {
    fn class(&self, port: &PortConfig) -> u8 {
        match self {
            Self::Segment(segment) if !(port.control_priority && segment.control) => DATA_CLASS,
            Self::Segment(_) | Self::Pfc(_) => 0,
        }
    }

    fn frame(action: PfcAction, class: u8, size: u32, now: Time) -> Self {
        Self::Pfc(PfcFrame { class, action, size, arrived: now })
    }
}

/// An item that leaves a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeDeparture {
    Segment { link: usize, outcome: SegmentOutcome },
    Pfc { link: usize, frame: PfcFrame },
}

/// Collects the items that leave a node.
struct NodeOutlet<'a> {
    departures: &'a mut Vec<NodeDeparture>,
    ports: &'a mut [OutputPort],
    losses: &'a mut [Losses],
    network: &'a Network,
    first_link: usize,
    honors_pfc: &'a [bool],
}

impl SwitchOutlet<LinkItem> for NodeOutlet<'_> {
    fn depart(&mut self, item: &LinkItem, departure: &Departure) {
        let (link, passage) = (self.first_link + departure.port, departure.passage);
        let port = &mut self.ports[link];
        port.count(item.arrival().size, passage);
        match *item {
            LinkItem::Pfc(frame) => {
                if self.honors_pfc[departure.port] {
                    self.departures
                        .push(NodeDeparture::Pfc { link, frame: PfcFrame { arrived: passage.arrives, ..frame } });
                }
            }
            LinkItem::Segment(mut segment) => {
                segment.marked |= passage.marked;
                let params = self.network.port(LinkId(link as u32));
                let is_lost =
                    params.loses_some() && self.losses[departure.port].loses(params, port.salt(), &segment.arrival());
                let outcome = if is_lost {
                    port.count_lost(&segment);
                    SegmentOutcome::Lost { segment, passage }
                } else {
                    SegmentOutcome::Sent { segment, passage }
                };
                self.departures.push(NodeDeparture::Segment { link, outcome });
            }
        }
    }

    fn drop(&mut self, item: &LinkItem, port: usize) {
        let link = self.first_link + port;
        self.ports[link].count_drop();
        if let LinkItem::Segment(segment) = *item {
            self.ports[link].count_lost(&segment);
            self.departures.push(NodeDeparture::Segment { link, outcome: SegmentOutcome::Dropped { segment } });
        }
    }
}

/// A node with a shared buffer.
#[derive(Debug)]
pub(super) struct SharedNode {
    switch: SharedSwitch<LinkItem>,
    node: NodeId,
    is_switch: bool,
    first_link: usize,
    /// By port: true if the node at the other end honours PFC.
    honors_pfc: Vec<bool>,
    /// By port: segments lost by chance on its link.
    losses: Vec<Losses>,
    /// Time of the scheduled event for its next decision.
    pub(super) next_event: Option<Time>,
}

/// Ports of all links, and the network.
pub(super) struct NodeContext<'a> {
    pub(super) ports: &'a mut [OutputPort],
    pub(super) network: &'a Network,
}

impl SharedNode {
    /// Returns the node with this number if it shares a buffer: a switch that is configured so, or a host next to a
    /// switch that pauses.
    pub(super) fn of(
        node: NodeId,
        params: &Arc<[PortParams]>,
        ports: &[OutputPort],
        network: &Network,
    ) -> Option<Self> {
        let is_switch = network.nodes()[node.index()].kind == NodeKind::Switch;
        let out = network.links_out(node);
        let config = if is_switch {
            network.nodes()[node.index()].switch?
        } else {
            out.clone().any(|link| network.sends_pfc(network.links()[link as usize].to)).then_some(NIC_BUFFER)?
        };
        let of_port = |link: u32| (network.links()[link as usize].params.into(), ports[link as usize].salt());
        let honors = |link: u32| network.honors_pfc(network.links()[link as usize].to);
        Some(Self {
            switch: SharedSwitch::new(config, Arc::clone(params), out.clone().map(of_port), 1),
            node,
            is_switch,
            first_link: out.start as usize,
            honors_pfc: out.clone().map(honors).collect(),
            losses: vec![Losses::default(); out.len()],
            next_event: None,
        })
    }

    /// Handles an item that arrives by the link `from`, or is new, and leaves by the link `to`.
    pub(super) fn arrive(
        &mut self,
        from: Option<LinkId>,
        to: usize,
        segment: PortSegment,
        context: NodeContext,
        departures: &mut Vec<NodeDeparture>,
    ) {
        let from = from.map(|link| self.port_of(link, context.network));
        let item = LinkItem::Segment(segment);
        let (switch, mut outlet, first) = self.split(context, departures);
        switch.arrive(from, to - first, &item.arrival(), &item, &mut outlet);
    }

    /// Handles a PFC frame that arrives by the link `from`.
    pub(super) fn on_frame(
        &mut self,
        from: LinkId,
        frame: PfcFrame,
        context: NodeContext,
        departures: &mut Vec<NodeDeparture>,
    ) {
        let port = self.port_of(from, context.network);
        let (switch, mut outlet, _) = self.split(context, departures);
        switch.on_frame(port, frame.class, frame.action, frame.arrived, &mut outlet);
    }

    /// Replays all decisions before `until`.
    pub(super) fn advance(&mut self, until: Time, context: NodeContext, departures: &mut Vec<NodeDeparture>) {
        let (switch, mut outlet, _) = self.split(context, departures);
        switch.advance(until, &mut outlet);
    }

    fn split<'a>(
        &'a mut self,
        context: NodeContext<'a>,
        departures: &'a mut Vec<NodeDeparture>,
    ) -> (&'a mut SharedSwitch<LinkItem>, NodeOutlet<'a>, usize) {
        let NodeContext { ports, network } = context;
        let first_link = self.first_link;
        let outlet = NodeOutlet {
            departures,
            ports,
            losses: &mut self.losses,
            network,
            first_link,
            honors_pfc: &self.honors_pfc,
        };
        (&mut self.switch, outlet, first_link)
    }

    /// Returns the port of the cable with this incoming link.
    fn port_of(&self, link: LinkId, network: &Network) -> usize {
        network.links()[link.index()].reverse.index() - self.first_link
    }

    /// Returns the time just after the next decision, when all arrivals of that time are in. None if nothing may leave.
    pub(super) fn decides_at(&self) -> Option<Time> {
        let at = self.switch.next_at();
        (at != Time::NEVER).then(|| at.just_after())
    }

    /// Returns the time from which a NIC accepts packets: its backlog is `slack` then. [`Time::NEVER`] while the switch
    /// pauses it and as much waits.
    pub(super) fn accepts_at(&self, params: &PortParams, slack: Span) -> Time {
        let backlog = params.config().rate.tx_time(self.switch.queue(0));
        if self.switch.is_paused(0, DATA_CLASS) {
            return if backlog < slack { Time::ZERO } else { Time::NEVER };
        }
        // After a pause the next service begins when the NIC was resumed, not when it fell idle.
        let next = self.switch.next_at();
        let begins = if next == Time::NEVER { self.switch.idle_at(0) } else { next };
        (begins + backlog).saturating_sub(slack)
    }

    /// Returns the queues of a link's port; decisions have been replayed to `now`.
    pub(super) fn occupancy(&self, link: usize, now: Time) -> Occupancy {
        let port = link - self.first_link;
        Occupancy { queue: self.switch.queue(port), phantom: self.switch.phantom(port, now) }
    }

    /// Returns the bytes that arrived over a link's cable and wait.
    pub(super) fn ingress_bytes(&self, link: usize) -> Bytes {
        self.switch.held_by(link - self.first_link)
    }

    /// Adds the counters of its ports to those of the links, up to `now`.
    pub(super) fn report(&self, links: &mut [experiment::LinkOutcome], now: Time) {
        for (port, losses) in self.losses.iter().enumerate() {
            let link = &mut links[self.first_link + port];
            link.losses += losses.count();
            link.max_queue = self.switch.max_queued(port);
            (link.pauses, link.paused) = self.switch.pauses(port, now);
        }
    }

    /// Returns the outcome of a switch; none of a NIC.
    pub(super) fn outcome(&self) -> Option<SwitchOutcome> {
        self.is_switch.then(|| SwitchOutcome {
            node: self.node,
            max_buffer: self.switch.max_held(),
            headroom_drops: self.switch.headroom_drops(),
            messages: 0,
            notifications: 0,
        })
    }
}
