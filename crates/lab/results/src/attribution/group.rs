//! Causes of several slow flows together, in words.

use std::collections::{BTreeMap, BTreeSet};

use experiment::{DropCause, Setup};
use fabric::{LinkClass, LinkId};
use units::Span;

use super::shares::{Attribution, DelayCause, FlowTime, LastCut, Root};
use super::walk::LossFound;
use crate::tables::FlowTable;

/// A flow's attribution, and the run that it is of.
#[derive(Clone, Copy, Debug)]
pub struct OfRun<'a> {
    /// The number of the run.
    pub run: usize,
    /// Its set-up.
    pub setup: &'a Setup,
    /// Its flows.
    pub flows: &'a FlowTable,
    /// The attribution.
    pub attribution: &'a Attribution,
}

/// Kinds of roots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RootKind {
    /// Losses and their consequences; without a cause if no packet was lost.
    Loss(Option<DropCause>),
    /// Queues behind others.
    Queueing,
    /// Pauses.
    Pause,
    /// Other flows at the sender's NIC.
    HostQueue,
    /// Others use the path.
    Starved,
    /// A small window on an idle path.
    Window(WindowSince),
    /// A low rate on an idle path.
    Rate(WindowSince),
    /// Credits.
    Credits,
    /// On-Ramp.
    Hold,
    /// Acknowledgements held back.
    Receiver,
    /// Processing delays.
    HostDelay,
    /// Packets sent again.
    Resent,
    /// Own packets, or a longer path.
    Own,
    /// Not explained.
    Unknown,
}

/// Reason for a small window or rate, other than a loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WindowSince {
    /// Growth since the start.
    Start,
    /// A cut on congestion.
    Congestion,
}

impl WindowSince {
    fn of(cut: LastCut) -> Self {
        match cut {
            LastCut::Congestion => Self::Congestion,
            LastCut::Start | LastCut::Loss { .. } => Self::Start,
        }
    }
}

impl RootKind {
    /// The kind of a root.
    pub fn of(root: Root) -> Self {
        match root {
            Root::Loss { lost } => Self::Loss(lost.map(|lost| lost.cause)),
            Root::Cause(cause) => match cause {
                DelayCause::Queueing { .. } => Self::Queueing,
                DelayCause::Pause { .. } => Self::Pause,
                DelayCause::HostQueue { .. } => Self::HostQueue,
                DelayCause::Starved { .. } => Self::Starved,
                DelayCause::Window { since } => Self::Window(WindowSince::of(since)),
                DelayCause::Rate { since } => Self::Rate(WindowSince::of(since)),
                DelayCause::Credits => Self::Credits,
                DelayCause::Hold => Self::Hold,
                DelayCause::Receiver => Self::Receiver,
                DelayCause::HostDelay => Self::HostDelay,
                DelayCause::Resent => Self::Resent,
                DelayCause::Own => Self::Own,
                DelayCause::Retransmission { .. } => Self::Loss(None),
                DelayCause::Unknown => Self::Unknown,
            },
        }
    }

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss(Some(DropCause::Full)) => "loss_full_queue",
            Self::Loss(Some(DropCause::Down)) => "loss_link_down",
            Self::Loss(Some(DropCause::Chance)) => "loss_by_chance",
            Self::Loss(Some(DropCause::Discipline)) => "loss_queue_discipline",
            Self::Loss(Some(DropCause::Policed)) => "loss_policer",
            Self::Loss(Some(DropCause::Oversized)) => "loss_mtu",
            Self::Loss(Some(DropCause::Corrupted)) => "loss_corruption",
            Self::Loss(None) => "spurious_retransmission",
            Self::Queueing => "queueing",
            Self::Pause => "pause",
            Self::HostQueue => "host_queue",
            Self::Starved => "starved",
            Self::Window(WindowSince::Start) => "window_growing",
            Self::Window(WindowSince::Congestion) => "window_cut_on_congestion",
            Self::Rate(WindowSince::Start) => "rate_growing",
            Self::Rate(WindowSince::Congestion) => "rate_cut_on_congestion",
            Self::Credits => "credits",
            Self::Hold => "hold",
            Self::Receiver => "receiver",
            Self::HostDelay => "host_delay",
            Self::Resent => "resent",
            Self::Own => "own",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the kind in words. `location` is its location, for kinds that have one.
    fn describe(self, location: Option<&str>) -> String {
        let (event, reason) = match self {
            Self::Loss(None) => return "retransmissions of packets that were not lost".to_owned(),
            Self::Loss(Some(DropCause::Full)) => ("losses at", " (full queue)"),
            Self::Loss(Some(DropCause::Down)) => ("losses at", " (link down)"),
            Self::Loss(Some(DropCause::Chance)) => ("losses at", " (by chance)"),
            Self::Loss(Some(DropCause::Discipline)) => ("losses at", " (queue discipline)"),
            Self::Loss(Some(DropCause::Policed)) => ("losses at", " (policer)"),
            Self::Loss(Some(DropCause::Oversized)) => ("losses at", " (larger than the MTU)"),
            Self::Loss(Some(DropCause::Corrupted)) => ("losses at", " (corrupted)"),
            Self::Queueing => ("queueing at", ""),
            Self::Pause => ("paused at", ""),
            Self::HostQueue => ("host queue: NIC shared at", ""),
            Self::Starved => ("starved at", ""),
            Self::Window(WindowSince::Start) => return "window still growing, path idle".to_owned(),
            Self::Window(WindowSince::Congestion) => return "window cut on congestion, path idle since".to_owned(),
            Self::Rate(WindowSince::Start) => return "paced by a rate still growing, path idle".to_owned(),
            Self::Rate(WindowSince::Congestion) => {
                return "paced by a rate cut on congestion, path idle since".to_owned();
            }
            Self::Credits => return "waiting for credits, path idle".to_owned(),
            Self::Hold => return "held at the edge (On-Ramp)".to_owned(),
            Self::Receiver => return "acknowledgements held back by the receiver".to_owned(),
            Self::HostDelay => return "processing delay of hosts".to_owned(),
            Self::Resent => return "packets sent again".to_owned(),
            Self::Own => return "own packets, or a longer path".to_owned(),
            Self::Unknown => return "not explained".to_owned(),
        };
        format!("{event} {}{reason}", location.unwrap_or("an unknown location"))
    }
}

/// A time with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTime {
    /// The name.
    pub name: String,
    /// The time.
    pub time: Span,
}

/// A root of several flows together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupCause {
    /// Its kind.
    pub kind: RootKind,
    /// Its part of the excess of all flows.
    pub time: Span,
    /// Number of flows with this cause.
    pub flows: usize,
    /// The links, and the part of each, the greatest first. Empty of kinds that have no place.
    pub links: Vec<NamedTime>,
    /// The class of the links.
    pub class: Option<LinkClass>,
    /// Effects of losses, the largest first.
    pub effects: Vec<NamedTime>,
    /// Kinds of flows that used the links, the largest share first.
    pub others: Vec<NamedTime>,
    /// Number of flows of these kinds.
    pub other_flows: usize,
    /// Number of hosts that send them.
    pub other_hosts: usize,
}

impl GroupCause {
    /// The cause and its location, in words.
    pub fn title(&self) -> String {
        let location = self.links.first().map(|first| {
            let all: i64 = self.links.iter().map(|link| link.time.ps()).sum();
            let percent = (100 * i128::from(first.time.ps()) / i128::from(all.max(1))) as i64;
            if self.links.len() == 1 || percent >= 95 {
                return first.name.clone();
            }
            let class = self.class.map_or("", LinkClass::name);
            format!("{} {class} links, most at {} ({percent} %)", self.links.len(), first.name)
        });
        self.kind.describe(location.as_deref())
    }
}

/// The location of a root.
fn link_of(root: Root) -> Option<LinkId> {
    match root {
        Root::Loss { lost } => lost.map(|lost| lost.link),
        Root::Cause(
            DelayCause::Queueing { link }
            | DelayCause::Pause { link }
            | DelayCause::HostQueue { link }
            | DelayCause::Starved { link },
        ) => Some(link),
        Root::Cause(_) => None,
    }
}

/// The effect of a loss.
fn effect_of(cause: DelayCause) -> Option<&'static str> {
    match cause {
        DelayCause::Retransmission { found: LossFound::Timeout, .. } => Some("waiting for timeouts"),
        DelayCause::Retransmission { found: LossFound::Fast, .. } => Some("until the loss was known"),
        DelayCause::Retransmission { found: LossFound::Credit, .. } => Some("until the next credit"),
        DelayCause::Window { since: LastCut::Loss { .. } } => Some("small window since"),
        DelayCause::Rate { since: LastCut::Loss { .. } } => Some("low rate since"),
        _ => None,
    }
}

/// The short name of a root of one flow.
pub fn root_words(root: Root, setup: &Setup) -> String {
    let location = link_of(root).map(|link| setup.network.link_name(link));
    RootKind::of(root).describe(location.as_deref())
}

#[derive(Default)]
struct Sum {
    time: Span,
    flows: usize,
    links: BTreeMap<String, Span>,
    effects: BTreeMap<String, Span>,
    others: BTreeMap<String, Span>,
    other_flows: BTreeSet<(usize, u32)>,
    other_hosts: BTreeSet<u32>,
}

/// The causes of flows together, the greatest part first. Causes of one kind at links of one class are one.
pub fn group_causes<'a>(flows: impl IntoIterator<Item = OfRun<'a>>) -> Vec<GroupCause> {
    let mut sums = BTreeMap::<(RootKind, Option<LinkClass>), Sum>::new();
    for of in flows {
        let network = &of.setup.network;
        let mut seen = BTreeSet::new();
        for ranked in of.attribution.ranked() {
            let link = link_of(ranked.root);
            let class = link.map(|link| network.links()[link.index()].class);
            let key = (RootKind::of(ranked.root), class);
            let sum = sums.entry(key).or_default();
            sum.time += ranked.time;
            sum.flows += usize::from(seen.insert(key));
            if let Some(link) = link {
                *sum.links.entry(network.link_name(link)).or_default() += ranked.time;
            }
            for share in ranked.causes {
                if let Some(effect) = effect_of(share.cause) {
                    *sum.effects.entry(effect.to_owned()).or_default() += share.time;
                }
                for &FlowTime { flow, time } in &share.others {
                    *sum.others.entry(kind_of_flow(of.flows, flow.0)).or_default() += time;
                    sum.other_flows.insert((of.run, flow.0));
                    sum.other_hosts.insert(of.setup.flows[flow.0 as usize].src.0);
                }
            }
        }
    }
    let mut causes: Vec<GroupCause> = sums
        .into_iter()
        .map(|((kind, class), sum)| GroupCause {
            kind,
            class,
            time: sum.time,
            flows: sum.flows,
            links: most_first(sum.links),
            effects: most_first(sum.effects),
            others: most_first(sum.others),
            other_flows: sum.other_flows.len(),
            other_hosts: sum.other_hosts.len(),
        })
        .collect();
    causes.sort_by_key(|cause| (std::cmp::Reverse(cause.time), cause.kind, cause.class));
    causes
}

/// A flow's class and traffic, and its law where there are several.
fn kind_of_flow(flows: &FlowTable, flow: u32) -> String {
    let Some(row) = flows.row(flow) else { return "flows that never ended".to_owned() };
    let traffic = flows.traffic_of(row);
    let law = if flows.laws.len() > 1 { format!(" ({})", flows.law_of(row)) } else { String::new() };
    format!("{} {traffic}{law}", row.class)
}

fn most_first(sums: BTreeMap<String, Span>) -> Vec<NamedTime> {
    let mut all: Vec<NamedTime> = sums.into_iter().map(|(name, time)| NamedTime { name, time }).collect();
    all.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    all
}
