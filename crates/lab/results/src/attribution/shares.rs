//! From a critical path to causes: which part of the excess completion time each has.

use std::collections::BTreeMap;

use experiment::{DropCause, FlowId, FlowLog, LinkSpan, LinkUse, PacketDeparture, PacketKind, Recording, Setup};
use fabric::LinkId;
use units::{Bytes, Span, Time};

use super::walk::{CriticalPath, LossFound, StepKind, critical_path};

/// Causes of excess completion time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DelayCause {
    /// The flow's packets wait at a port behind those of others.
    Queueing {
        /// The port's link.
        link: LinkId,
    },
    /// They wait at a port that sends nothing: its class is paused, or its credits are used up.
    Pause {
        /// The port's link.
        link: LinkId,
    },
    /// The sender's NIC is busy with other flows of its host.
    HostQueue {
        /// The NIC's link.
        link: LinkId,
    },
    /// From the departure of a packet that was lost until the sender knew.
    Retransmission {
        /// Means of detection.
        found: LossFound,
        /// Place of the loss; none if no packet was lost.
        lost: Option<LostAt>,
    },
    /// The window or the rate is small while others use the busiest link of the path.
    Starved {
        /// The busiest link.
        link: LinkId,
    },
    /// The window is small while the path is idle.
    Window {
        /// Reason for its size.
        since: LastCut,
    },
    /// The rate is low while the path is idle.
    Rate {
        /// Reason for its value.
        since: LastCut,
    },
    /// The sender waits for credits while the path is idle.
    Credits,
    /// The flow is held at the edge (On-Ramp).
    Hold,
    /// The receiver holds acknowledgements back.
    Receiver,
    /// Packets wait in hosts before the transport receives them.
    HostDelay,
    /// The flow's packets that were sent again fill its path.
    Resent,
    /// The path is full of the flow's own packets, or longer than the ideal one.
    Own,
    /// Not explained.
    Unknown,
}

/// The place and the cause of a loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LostAt {
    /// The link.
    pub link: LinkId,
    /// The cause.
    pub cause: DropCause,
}

/// The last cut of a window or rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LastCut {
    /// None: it has grown since the start.
    Start,
    /// On marks, delay or another sign of congestion.
    Congestion,
    /// On a loss or a timeout.
    Loss {
        /// The last loss before; none where nothing was lost.
        lost: Option<LostAt>,
    },
}

/// The part of a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The cause.
    pub cause: DelayCause,
    /// Its part of the excess.
    pub time: Span,
    /// The flows that used the link then, and for how long, the longest first. Empty where no others are to blame.
    pub others: Vec<FlowTime>,
}

/// A time of a flow on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowTime {
    /// The flow.
    pub flow: FlowId,
    /// Its time.
    pub time: Span,
}

/// The causes of one flow's excess completion time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribution {
    /// The flow.
    pub flow: FlowId,
    /// Completion time.
    pub took: Span,
    /// Ideal completion time.
    pub ideal: Span,
    /// Causes, the greatest part first. Their sum is the excess.
    pub shares: Vec<Share>,
}

/// A root of excess: a cause, or a loss with all that followed from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Root {
    /// Losses at one place: waiting for retransmissions, and a window or rate that they cut.
    Loss {
        /// The place; none where nothing was lost.
        lost: Option<LostAt>,
    },
    /// Another cause.
    Cause(DelayCause),
}

impl DelayCause {
    /// The root that the cause is a part of.
    pub fn root(self) -> Root {
        match self {
            Self::Retransmission { lost, .. }
            | Self::Window { since: LastCut::Loss { lost } }
            | Self::Rate { since: LastCut::Loss { lost } } => Root::Loss { lost },
            cause => Root::Cause(cause),
        }
    }
}

/// A root and its causes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranked<'a> {
    /// The root.
    pub root: Root,
    /// The part of the excess of all of its causes.
    pub time: Span,
    /// Its causes, the greatest part first.
    pub causes: Vec<&'a Share>,
}

impl Attribution {
    /// Completion time beyond the ideal.
    pub fn excess(&self) -> Span {
        self.took - self.ideal
    }

    /// The roots of the excess, the greatest part first.
    pub fn ranked(&self) -> Vec<Ranked<'_>> {
        let mut roots = BTreeMap::<Root, Ranked<'_>>::new();
        for share in &self.shares {
            let root = share.cause.root();
            let ranked = roots.entry(root).or_insert(Ranked { root, time: Span::ZERO, causes: Vec::new() });
            ranked.time += share.time;
            ranked.causes.push(share);
        }
        let mut ranked: Vec<Ranked<'_>> = roots.into_values().collect();
        ranked.sort_by_key(|it| (std::cmp::Reverse(it.time), it.root));
        ranked
    }
}

/// A recorded flow: its log, and when it started and completed.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    /// The log.
    pub log: &'a FlowLog,
    /// Its start.
    pub started: Time,
    /// Its completion.
    pub completed: Time,
    /// Its ideal completion time.
    pub ideal: Span,
}

/// A flow with its critical path and the link of its sender's NIC.
#[derive(Debug)]
struct Walked<'a> {
    logged: Logged<'a>,
    uplink: LinkId,
    path: CriticalPath,
    /// Time of retransmissions on the narrowest link.
    resent: u64,
}

/// Use of the time on a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Purpose {
    Queue,
    Nic,
    /// The last cut before a round or a wait for the pacer.
    Round(LastCut),
    Rate(LastCut),
    Credit,
}

impl Purpose {
    /// The cause where the link is idle.
    fn idle(self) -> DelayCause {
        match self {
            Self::Round(since) => DelayCause::Window { since },
            Self::Rate(since) => DelayCause::Rate { since },
            Self::Credit => DelayCause::Credits,
            Self::Queue | Self::Nic => DelayCause::Unknown,
        }
    }
}

/// A sum of link use: of one flow, purpose and link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct LinkUseSum {
    flow: u32,
    purpose: Purpose,
    link: LinkId,
}

/// Critical paths of flows, and the link use that their attribution needs.
#[derive(Debug)]
pub struct CriticalPaths<'a> {
    flows: Vec<Walked<'a>>,
    /// By tag.
    meters: Vec<LinkUseSum>,
    /// By tag: true if the port may hold packets back while its link is idle.
    pausing: Vec<bool>,
    /// By tag: the length of its spans.
    lengths: Vec<u64>,
    spans: Vec<LinkSpan>,
}

impl<'a> CriticalPaths<'a> {
    /// Walks the critical paths of flows that are complete.
    pub fn new(setup: &Setup, flows: Vec<Logged<'a>>) -> Self {
        let walked = |logged: Logged<'a>| {
            let spec = &setup.flows[logged.log.flow as usize];
            let is_resent = |it: &&PacketDeparture| it.packet.kind == PacketKind::Data && it.packet.attempt > 1;
            let resent = logged.log.departures.iter().filter(is_resent).count() as u64;
            let bytes = Bytes::new(resent * u64::from(setup.host.mss + setup.host.header));
            Walked {
                logged,
                uplink: setup.network.uplink(spec.src),
                path: critical_path(setup, logged.log, logged.started, logged.completed),
                resent: setup.paths(spec.src, spec.dst, setup.host.mss).line_rate.tx_time(bytes).unsigned_ps(),
            }
        };
        let flows = flows.into_iter().map(walked).collect();
        let mut usage = Self { flows, meters: Vec::new(), pausing: Vec::new(), lengths: Vec::new(), spans: Vec::new() };
        usage.measure();
        let pauses = |meter: &LinkUseSum| {
            let from = setup.network.links()[meter.link.index()].from;
            setup.shares(from) || setup.network.port(meter.link).credits().is_some()
        };
        usage.pausing = usage.meters.iter().map(pauses).collect();
        usage
    }

    /// The critical paths, in the order of the flows.
    pub fn paths(&self) -> impl Iterator<Item = &CriticalPath> {
        self.flows.iter().map(|flow| &flow.path)
    }

    /// Link usage intervals that [`CriticalPaths::attribute`] needs.
    pub fn spans(&self) -> &[LinkSpan] {
        &self.spans
    }

    fn measure(&mut self) {
        let mut tags = BTreeMap::<LinkUseSum, u32>::new();
        let (mut meters, mut lengths, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |meter: LinkUseSum, start: Time, end: Time| {
            let tag = *tags.entry(meter).or_insert_with(|| {
                meters.push(meter);
                lengths.push(0);
                meters.len() as u32 - 1
            });
            lengths[tag as usize] += end.since(start).unsigned_ps();
            spans.push(LinkSpan { link: meter.link, start, end, tag });
        };
        for Walked { logged, uplink, path, .. } in &self.flows {
            let (flow, uplink, cuts) = (logged.log.flow, *uplink, Cuts::new(logged));
            for (index, step) in path.steps.iter().enumerate() {
                let over = |purpose, add: &mut dyn FnMut(LinkUseSum, Time, Time)| {
                    for &link in path.sent_over.get(&index).into_iter().flatten() {
                        add(LinkUseSum { flow, purpose, link }, step.start, step.end);
                    }
                };
                match step.kind {
                    StepKind::Queue { link } => {
                        add(LinkUseSum { flow, purpose: Purpose::Queue, link }, step.start, step.end);
                    }
                    StepKind::Nic => {
                        add(LinkUseSum { flow, purpose: Purpose::Nic, link: uplink }, step.start, step.end);
                    }
                    StepKind::Pacer => over(Purpose::Rate(cuts.before(step.end)), &mut add),
                    StepKind::Credit => over(Purpose::Credit, &mut add),
                    _ => {}
                }
            }
            // In the last round nothing is left to send: the ideal flow has that one, too.
            let rounds = &path.rounds[..path.rounds.len().saturating_sub(1)];
            for round in rounds {
                let purpose = Purpose::Round(cuts.before(round.start));
                for &link in &round.links {
                    add(LinkUseSum { flow, purpose, link }, round.start, round.end);
                }
            }
        }
        (self.meters, self.lengths, self.spans) = (meters, lengths, spans);
    }

    /// The causes of each flow's excess, in the order of the flows. `recording` has the use of [`CriticalPaths::spans`].
    pub fn attribute(&self, recording: &Recording) -> Vec<Attribution> {
        let mut uses: Vec<BTreeMap<FlowId, u64>> = vec![BTreeMap::new(); self.meters.len()];
        for (&LinkUse { tag, flow }, &time) in &recording.uses {
            uses[tag as usize].insert(flow, time);
        }
        let mut found = BTreeMap::<u32, Vec<Usage>>::new();
        for ((tag, meter), used) in self.meters.iter().enumerate().zip(uses) {
            let length = self.lengths[tag];
            let own = used.get(&FlowId(meter.flow)).copied().unwrap_or(0);
            let others: Vec<FlowTime> = used
                .iter()
                .filter(|(flow, _)| flow.0 != meter.flow)
                .map(|(&flow, &time)| FlowTime { flow, time: Span::from_unsigned_ps(time) })
                .collect();
            let by_others = others.iter().map(|it| it.time.unsigned_ps()).sum::<u64>().min(length);
            let usage = Usage {
                purpose: meter.purpose,
                link: meter.link,
                length,
                own: own.min(length - by_others),
                pauses: self.pausing[tag],
                by_others,
                others,
            };
            found.entry(meter.flow).or_default().push(usage);
        }
        let one = |flow: &Walked<'a>| attribute(flow, found.get(&flow.logged.log.flow).map_or(&[], Vec::as_slice));
        self.flows.iter().map(one).collect()
    }
}

/// The use of a link in the spans of a meter, in picoseconds.
struct Usage {
    purpose: Purpose,
    link: LinkId,
    length: u64,
    own: u64,
    by_others: u64,
    /// The port may hold packets back.
    pauses: bool,
    others: Vec<FlowTime>,
}

impl Usage {
    fn idle(&self) -> u64 {
        self.length - self.own - self.by_others
    }
}

/// Sums by cause, and the flows to blame.
#[derive(Default)]
struct Sums {
    times: BTreeMap<DelayCause, u64>,
    others: BTreeMap<DelayCause, BTreeMap<FlowId, u64>>,
}

impl Sums {
    fn add(&mut self, cause: DelayCause, time: u64) {
        if time > 0 {
            *self.times.entry(cause).or_default() += time;
        }
    }

    fn attribute_to(&mut self, cause: DelayCause, others: &[FlowTime]) {
        let sums = self.others.entry(cause).or_default();
        for other in others {
            *sums.entry(other.flow).or_default() += other.time.unsigned_ps();
        }
    }
}

/// `part` of `of` of a time, rounded down.
fn part(time: u64, part: u64, of: u64) -> u64 {
    if of == 0 { 0 } else { (u128::from(time) * u128::from(part) / u128::from(of)) as u64 }
}

fn attribute(walked: &Walked<'_>, usages: &[Usage]) -> Attribution {
    let Walked { logged, uplink, path, .. } = walked;
    let took = logged.completed.since(logged.started);
    let mut sums = Sums::default();
    // Time that an ideal flow needs, too: on links, and behind packets of its own.
    let mut own = 0;
    let (mut rate, mut credit) = (0, 0);
    for step in &path.steps {
        let time = step.end.since(step.start).unsigned_ps();
        match step.kind {
            StepKind::Flight { .. } => own += time,
            // Divided below by the bytes that the flows sent over the links.
            StepKind::Queue { .. } | StepKind::Nic => {}
            StepKind::NicPause => sums.add(DelayCause::Pause { link: *uplink }, time),
            StepKind::Pacer => rate += time,
            StepKind::Credit => credit += time,
            StepKind::Hold => sums.add(DelayCause::Hold, time),
            StepKind::Loss { found, loss } => {
                let lost = loss.map(|loss| LostAt { link: loss.link, cause: loss.cause });
                sums.add(DelayCause::Retransmission { found, lost }, time);
            }
            StepKind::Receiver => sums.add(DelayCause::Receiver, time),
            StepKind::HostDelay => sums.add(DelayCause::HostDelay, time),
            StepKind::Unknown => sums.add(DelayCause::Unknown, time),
        }
    }
    for usage in usages {
        let (cause, idle) = match usage.purpose {
            Purpose::Queue if usage.pauses => {
                (DelayCause::Queueing { link: usage.link }, DelayCause::Pause { link: usage.link })
            }
            // The link's usage does not include lost packets.
            Purpose::Queue => (DelayCause::Queueing { link: usage.link }, DelayCause::Queueing { link: usage.link }),
            Purpose::Nic => (DelayCause::HostQueue { link: usage.link }, DelayCause::Unknown),
            Purpose::Round(_) | Purpose::Rate(_) | Purpose::Credit => continue,
        };
        own += usage.own;
        sums.add(cause, usage.by_others);
        sums.attribute_to(cause, &usage.others);
        sums.add(idle, usage.idle());
    }
    // While the pacer or a lack of credits holds the flow, its packets are on the path: an ideal flow's would be, too.
    let (rates, credits, rounds) = (
        busiest(usages, |purpose| matches!(purpose, Purpose::Rate(_))),
        busiest(usages, |purpose| purpose == Purpose::Credit),
        busiest(usages, |purpose| matches!(purpose, Purpose::Round(_))),
    );
    let mut holds = [(rate, &rates), (credit, &credits)];
    for (time, usages) in &mut holds {
        let by_own = usages.iter().map(|usage| usage.own).sum::<u64>().min(*time);
        *time -= by_own;
        own += by_own;
    }
    let ideal = logged.ideal.unsigned_ps();
    let excess = own.saturating_sub(ideal);
    let resent = excess.min(walked.resent);
    sums.add(DelayCause::Resent, resent);
    for (time, usages) in holds.into_iter().chain([(excess - resent, &rounds)]) {
        share_out(&mut sums, time, usages, *uplink);
    }
    // Waits may overlap with the time that an ideal flow needs: then they count for that much less.
    settle(&mut sums, took.unsigned_ps().saturating_sub(ideal));
    let mut shares: Vec<Share> = sums
        .times
        .iter()
        .map(|(&cause, &time)| Share {
            cause,
            time: Span::from_unsigned_ps(time),
            others: most_first(sums.others.get(&cause)),
        })
        .collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.time), share.cause));
    Attribution { flow: FlowId(logged.log.flow), took, ideal: logged.ideal, shares }
}

/// Returns the use of the link that others used most, for each purpose.
fn busiest(usages: &[Usage], wanted: impl Fn(Purpose) -> bool) -> Vec<&Usage> {
    let mut found = BTreeMap::<Purpose, &Usage>::new();
    let rank = |usage: &Usage| (usage.by_others, std::cmp::Reverse(usage.idle()), std::cmp::Reverse(usage.link));
    for usage in usages.iter().filter(|usage| wanted(usage.purpose)) {
        let best = found.entry(usage.purpose).or_insert(usage);
        if rank(usage) > rank(best) {
            *best = usage;
        }
    }
    found.into_values().collect()
}

/// Shares out a time that the law held a flow: the part of the busiest link that others used is starvation, and the unused part
/// is the law's own.
fn share_out(sums: &mut Sums, time: u64, usages: &[&Usage], uplink: LinkId) {
    let all: u64 = usages.iter().map(|usage| usage.by_others + usage.idle()).sum();
    let mut rest = time;
    for usage in usages {
        let starved = part(time, usage.by_others, all);
        if starved > 0 {
            // Others on the sender's own NIC are flows of its host.
            let link = usage.link;
            let cause = if link == uplink { DelayCause::HostQueue { link } } else { DelayCause::Starved { link } };
            sums.add(cause, starved);
            sums.attribute_to(cause, &usage.others);
        }
        let unused = part(time, usage.idle(), all);
        sums.add(usage.purpose.idle(), unused);
        rest -= starved + unused;
    }
    // Rounding; or all of it, where nothing but the flow's own packets was on its path.
    sums.add(DelayCause::Own, rest);
}

/// Makes causes sum up to the excess, each in proportion.
fn settle(sums: &mut Sums, excess: u64) {
    let all: u64 = sums.times.values().sum();
    if all == excess {
        return;
    }
    if all < excess {
        return sums.add(DelayCause::Unknown, excess - all);
    }
    let mut rest = excess;
    for time in sums.times.values_mut() {
        *time = part(*time, excess, all);
        rest -= *time;
    }
    if let Some(greatest) = sums.times.values_mut().max() {
        *greatest += rest;
    }
    sums.times.retain(|_, time| *time > 0);
}

fn most_first(sums: Option<&BTreeMap<FlowId, u64>>) -> Vec<FlowTime> {
    let one = |(&flow, &time): (&FlowId, &u64)| FlowTime { flow, time: Span::from_unsigned_ps(time) };
    let mut all: Vec<FlowTime> = sums.into_iter().flatten().map(one).collect();
    all.sort_by_key(|it| (std::cmp::Reverse(it.time), it.flow));
    all
}

/// Cuts of a flow's window or rate, in order of time.
struct Cuts(Vec<(Time, LastCut)>);

impl Cuts {
    fn new(logged: &Logged<'_>) -> Self {
        let (mut cuts, mut before) = (Vec::new(), laws::LawActions::default());
        let losses = &logged.log.losses;
        let lost_by = |at: Time| {
            let count = losses.partition_point(|loss| loss.time <= at);
            losses[..count].last().map(|loss| LostAt { link: loss.link, cause: loss.cause })
        };
        for event in &logged.log.sender {
            let Some(view) = event.view else { continue };
            let actions = view.actions;
            if actions.loss_cuts > before.loss_cuts {
                cuts.push((event.time, LastCut::Loss { lost: lost_by(event.time) }));
            } else if actions.cuts + actions.quick_adapts + actions.probe_rtts
                > before.cuts + before.quick_adapts + before.probe_rtts
            {
                cuts.push((event.time, LastCut::Congestion));
            }
            before = actions;
        }
        Self(cuts)
    }

    /// The last cut up to a time.
    fn before(&self, at: Time) -> LastCut {
        let count = self.0.partition_point(|(time, _)| *time <= at);
        count.checked_sub(1).map_or(LastCut::Start, |index| self.0[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UPLINK: LinkId = LinkId(0);

    fn usage(purpose: Purpose, link: u32, [length, own, by_others]: [u64; 3]) -> Usage {
        let others = vec![FlowTime { flow: FlowId(9), time: Span::from_unsigned_ps(by_others) }];
        Usage { purpose, link: LinkId(link), length, own, by_others, pauses: false, others }
    }

    fn shared(time: u64, usages: &[Usage]) -> BTreeMap<DelayCause, u64> {
        let mut sums = Sums::default();
        share_out(&mut sums, time, &busiest(usages, |_| true), UPLINK);
        sums.times
    }

    /// The busiest link decides whether the path was busy, each time since a cut by itself.
    #[test]
    fn used_bandwidth_is_starvation_and_unused_is_the_laws() {
        let [start, cut] = [LastCut::Start, LastCut::Congestion].map(Purpose::Round);
        let usages = [
            usage(start, 1, [100, 20, 40]),
            usage(start, 2, [100, 20, 60]),
            usage(cut, 1, [300, 0, 0]),
            usage(cut, 2, [300, 0, 0]),
        ];
        // Of 80 and 300 that the flow itself did not use, others used 60.
        let found = shared(380, &usages);
        let window = |since| DelayCause::Window { since };
        let expected = [
            (DelayCause::Starved { link: LinkId(2) }, 60),
            (window(LastCut::Start), 20),
            (window(LastCut::Congestion), 300),
        ];
        assert_eq!(found, expected.into_iter().collect());
        // On the sender's NIC others are flows of its host.
        let card = [usage(start, 0, [100, 0, 100])];
        assert_eq!(shared(7, &card), [(DelayCause::HostQueue { link: UPLINK }, 7)].into_iter().collect());
        // A path that is full of the flow's own packets.
        assert_eq!(shared(7, &[usage(start, 1, [100, 100, 0])]), [(DelayCause::Own, 7)].into_iter().collect());
    }

    proptest! {
        #[test]
        fn traffic_totals_are_conserved(
            time in 0..u64::MAX >> 8,
            excess in 0..u64::MAX >> 8,
            used in prop::collection::vec((0..3u32, 1..1u64 << 50, 0.0..1.0f64, 0.0..1.0f64), 0..6),
        ) {
            let since = [LastCut::Start, LastCut::Congestion, LastCut::Loss { lost: None }];
            let usages: Vec<Usage> = used
                .iter()
                .map(|&(kind, length, own, others)| {
                    let own = (length as f64 * own) as u64;
                    let by_others = ((length - own) as f64 * others) as u64;
                    usage(Purpose::Round(since[kind as usize]), kind + 1, [length, own, by_others.min(length - own)])
                })
                .collect();
            let times = shared(time, &usages);
            prop_assert_eq!(times.values().sum::<u64>(), time);
            let mut sums = Sums { times, others: BTreeMap::new() };
            settle(&mut sums, excess);
            prop_assert_eq!(sums.times.values().sum::<u64>(), excess);
        }
    }
}
