//! `port_samples.parquet`: one row a sample of a port's queues, in order of time, then link.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use experiment::{Outcome, Setup, SwitchController, SwitchControllerSpec};
use fabric::{LinkClass, LinkId, NodeKind};
use units::Rate;

use super::{Taker, ints, opt_ints};
use crate::Error;
use crate::frame::{Column, DataFrame};

/// A port that was sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampledPort {
    /// Its link's number.
    pub link: u32,
    /// Its link's name.
    pub name: String,
    /// The class of the link.
    pub class: LinkClass,
    /// Set if it leads to a host that receives a flow.
    pub receiver: bool,
    /// Its rate, in bits per second; none in results from before it was written.
    pub rate_bps: Option<u64>,
}

/// A port's queues at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRow {
    /// The time.
    pub time_ns: u64,
    /// The port, an index into [`PortTable::ports`].
    pub port: u32,
    /// Bytes in the real queue.
    pub queue_bytes: u64,
    /// Bytes in the phantom queue, where there is one.
    pub phantom_bytes: Option<u64>,
    /// Bytes that arrived over the port's cable and wait in the switch, if it has a shared buffer.
    pub ingress_bytes: Option<u64>,
    /// Bytes in LSCC's pseudo queue, where there is one.
    pub pseudo_bytes: Option<u64>,
    /// The rate that LSCC's far end last fed back, where there is one.
    pub feedback_bps: Option<u64>,
}

/// All samples of ports.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PortTable {
    /// The ports in order of their first samples.
    pub ports: Vec<SampledPort>,
    /// By time, then link.
    pub rows: Vec<PortRow>,
}

const NAME: &str = "ports";

impl PortTable {
    /// Returns the table of the port samples.
    pub fn new(setup: &Setup, outcome: &Outcome) -> Self {
        let receivers: BTreeSet<u32> = setup.flows.iter().map(|flow| flow.dst.0).collect();
        let limiting = |module: &&SwitchControllerSpec| matches!(module.module, SwitchController::RateLimiting(_));
        let pseudo: BTreeSet<LinkId> = setup.modules.iter().filter(limiting).map(|module| module.link).collect();
        let shares = |link: LinkId| {
            let from = setup.network.links()[link.index()].from;
            setup.network.nodes()[from.index()].switch.is_some()
        };
        let mut table = Self::default();
        let mut indices = BTreeMap::new();
        for sample in &outcome.port_samples {
            let port = *indices.entry(sample.link).or_insert_with(|| {
                let link = &setup.network.links()[sample.link.index()];
                let to = setup.network.nodes()[link.to.index()].kind;
                table.ports.push(SampledPort {
                    link: sample.link.0,
                    name: setup.network.link_name(sample.link),
                    class: link.class,
                    receiver: matches!(to, NodeKind::Host(host) if receivers.contains(&host.0)),
                    rate_bps: Some(setup.network.port(sample.link).config().rate.bps()),
                });
                table.ports.len() as u32 - 1
            });
            let phantom = setup.network.port(sample.link).config().phantom.map(|_| sample.phantom.get());
            table.rows.push(PortRow {
                time_ns: sample.time.ns(),
                port,
                queue_bytes: sample.queue.get(),
                phantom_bytes: phantom,
                ingress_bytes: shares(sample.link).then(|| sample.ingress.get()),
                pseudo_bytes: pseudo.contains(&sample.link).then(|| sample.pseudo.get()),
                feedback_bps: (sample.feedback != Rate::MAX).then(|| sample.feedback.bps()),
            });
        }
        table
    }

    /// The samples of the ports that `choice` names: `receiver` (ports towards hosts that receive), `class:NAME` (all
    /// of a link class), a link's name, or a link's name without its `#n` (all parallel ones).
    pub fn chosen(&self, choice: &str) -> Vec<PortRow> {
        let wanted = |port: &SampledPort| match choice.strip_prefix("class:") {
            Some(class) => port.class.name() == class,
            None if choice == "receiver" => port.receiver,
            None => port.name == choice || port.name.split_once('#').is_some_and(|(cable, _)| cable == choice),
        };
        let wanted: Vec<bool> = self.ports.iter().map(wanted).collect();
        self.rows.iter().filter(|row| wanted[row.port as usize]).copied().collect()
    }

    pub(crate) fn frame(&self) -> DataFrame {
        let rows = || self.rows.iter();
        let port = |row: &PortRow| &self.ports[row.port as usize];
        let columns: [(&str, Column); 11] = [
            ("time_ns", ints(rows().map(|row| row.time_ns))),
            ("link", ints(rows().map(|row| port(row).link.into()))),
            ("name", Column::Text(rows().map(|row| port(row).name.as_str()).collect())),
            ("class", Column::Text(rows().map(|row| port(row).class.name()).collect())),
            ("receiver", Column::Flag(rows().map(|row| port(row).receiver).collect())),
            ("rate_bps", opt_ints(rows().map(|row| port(row).rate_bps))),
            ("queue_bytes", ints(rows().map(|row| row.queue_bytes))),
            ("phantom_bytes", opt_ints(rows().map(|row| row.phantom_bytes))),
            ("ingress_bytes", opt_ints(rows().map(|row| row.ingress_bytes))),
            ("pseudo_bytes", opt_ints(rows().map(|row| row.pseudo_bytes))),
            ("feedback_bps", opt_ints(rows().map(|row| row.feedback_bps))),
        ];
        DataFrame { name: NAME, columns: columns.map(|(name, column)| (name.to_owned(), column)).to_vec() }
    }

    pub(crate) fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let mut take = Taker::open(NAME, "time_ns", bytes, path)?;
        let (time, link) = (take.naturals("time_ns")?, take.numbers("link")?);
        let (name, class) = (take.texts("name")?, take.texts("class")?);
        let receiver = take.flags("receiver")?;
        let rate = if take.has("rate_bps") { take.opt_naturals("rate_bps")? } else { vec![None; time.len()] };
        let (queue, phantom) = (take.naturals("queue_bytes")?, take.opt_naturals("phantom_bytes")?);
        let later = ["ingress_bytes", "pseudo_bytes", "feedback_bps"]
            .map(|name| if take.has(name) { take.opt_naturals(name) } else { Ok(vec![None; time.len()]) });
        let [ingress, pseudo, feedback] = later;
        let (ingress, pseudo, feedback) = (ingress?, pseudo?, feedback?);
        let mut table = Self::default();
        let mut indices = BTreeMap::new();
        for row in 0..time.len() {
            let class = LinkClass::from_name(class.get(row))
                .ok_or_else(|| take.wrong("class", format!("row {row}: no class of links `{}`", class.get(row))))?;
            let port = *indices.entry(link[row]).or_insert_with(|| {
                let name = name.get(row).to_owned();
                table.ports.push(SampledPort {
                    link: link[row],
                    name,
                    class,
                    receiver: receiver[row],
                    rate_bps: rate[row],
                });
                table.ports.len() as u32 - 1
            });
            table.rows.push(PortRow {
                time_ns: time[row],
                port,
                queue_bytes: queue[row],
                phantom_bytes: phantom[row],
                ingress_bytes: ingress[row],
                pseudo_bytes: pseudo[row],
                feedback_bps: feedback[row],
            });
        }
        Ok(table)
    }
}
