//! Construction of a partition's data plane from a set-up.

use std::collections::BTreeMap;
use std::sync::Arc;

use experiment::{RecordConfig, Setup, TieBreak};
use fabric::{LinkId, NodeId, NodeKind, Port, PortExtras, PortMode, PortParams, PortService, switch_salt};
use units::{Span, Time, mix64};

use super::{Extended, Plane};
use crate::fifo::{BesideKinds, Fifos};
use crate::layout::Layout;
use crate::links::{Egress, Failing, LinkDestination, Links, LossCounters, Mail, PriorityBacklog, Salts};
use crate::merge::Entrants;
use crate::optional_index::OptionalIndex;
use crate::recorder::Recorder;
use crate::reports::Reports;
use crate::schedule::Schedule;
use crate::shared_buffer::SharedBufferNode;
use crate::ticks::Ticks;
use crate::tie_break::ScheduleKey;

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
        let (mut egress, mut outboxes, mut extended) = (Vec::new(), Vec::new(), Vec::new());
        let inputs = layout.inputs[first_node as usize..end_node as usize].to_vec();
        let mut fifos = inputs.iter().map(|range| range.1).max().unwrap_or(0);
        let mut overtaken = Vec::new();
        let mut extended_of = vec![None; (end_link - first_link) as usize];
        for link in first_link..end_link {
            let details = &network.links()[link as usize];
            let to = layout.partition_of(details.to);
            let (fifo, node) = (layout.fifo_of[link as usize], details.to.0 - layout.node_start[to]);
            let way = if to == index {
                LinkDestination::to_node(node, fifo)
            } else {
                outboxes.push(Mail { to, fifo, node, packets: Vec::new(), records: Vec::new(), since: Vec::new() });
                LinkDestination::to_outbox(outboxes.len() as u32 - 1)
            };
            let config = network.port(LinkId(link)).config();
            let sampled = setup.series.samples(LinkId(link));
            let fails = network.outages(LinkId(link)).is_some();
            let service = if sampled || fails { PortService::Extended } else { PortService::Configured };
            let from = network.nodes()[details.from.index()].kind;
            let mode = match from {
                NodeKind::Host(_) => PortMode::of_nic(config, service),
                // The switch serves its ports itself.
                NodeKind::Switch if setup.shares(details.from) => PortMode::Fifo,
                NodeKind::Switch => PortMode::of_switch(config, service),
            };
            let keeps_data = mode == PortMode::Priority;
            overtaken.push(PriorityBacklog {
                served_at: Time::ZERO,
                fifo: if keeps_data { OptionalIndex::some(fifos) } else { OptionalIndex::NONE },
                listed: false,
            });
            fifos += u32::from(keeps_data);
            if mode == PortMode::Extended {
                extended_of[(link - first_link) as usize] = Some(extended.len() as u32);
                let interval = if sampled { setup.series.interval } else { Span::ZERO };
                extended.push(Extended {
                    link: link - first_link,
                    ticks: Ticks::new(interval, Time::ZERO),
                    extras: match from {
                        NodeKind::Host(_) => PortExtras::of_nic(),
                        NodeKind::Switch => {
                            let mut extras = PortExtras::of_switch(config, network.impairments(LinkId(link)));
                            extras.begin_schedule(Time::ZERO);
                            extras
                        }
                    },
                    listed: false,
                });
            }
            egress.push(Egress { port: Port::new(details.params, mode), way });
        }
        let nodes = (end_node - first_node) as usize;
        let salts = Salts { seed: mix64(setup.seed), first_link };
        let (mut shared, mut shared_of) = (Vec::new(), vec![None; nodes]);
        let classes = setup.classes_in_use();
        let params: Arc<[PortParams]> = network.params().into();
        let schedule = Schedule::new(nodes, window);
        for node in first_node..end_node {
            if setup.shares(NodeId(node)) {
                let switch =
                    SharedBufferNode::new(NodeId(node), first_link, salts, classes, Arc::clone(&params), setup);
                shared_of[(node - first_node) as usize] = Some(shared.len() as u32);
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
                fifos: Fifos::new(
                    fifos as usize,
                    BesideKinds { reports: setup.carries_reports(), since: setup.ties == TieBreak::Scheduled },
                ),
                outboxes,
                schedule,
                reports: setup.carries_reports().then(Reports::new),
                since: (setup.ties == TieBreak::Scheduled).then_some(ScheduleKey::BEGINNING),
                loss_counters: LossCounters::new(
                    first_link..end_link,
                    setup.flows.len(),
                    recorder.as_ref().map(|recorder| Box::new(recorder.loss_log())),
                ),
                failing: failing(setup, first_link..end_link),
            },
            params,
            extended,
            extended_of,
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

    /// Schedules switches with controllers or samples that have events of their own: these occur before the first packet,
    /// too. A switch without either is not scheduled, because a run without scheduled events ends.
    fn wake(&mut self) {
        for (node, shared) in self.shared_of.iter().enumerate() {
            let next = shared.map_or(Time::NEVER, |shared| self.shared[shared as usize].next_at());
            if next.is_set() {
                self.links.schedule.activate_between(node, next);
            }
        }
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
