//! A member of the mesh: what it sends, and mesh time by its clock.
//!
//! **Mesh time** is that of the reference: the first member, in the order of the configuration, that knows mesh time. If no
//! member does, the first one that reaches another starts it from its own clock. A member that becomes the reference goes
//! on with its own map, so mesh time steps by at most the error that it had; it publishes this error until all members have
//! noticed the change. So at any time one time is within the bounds of all members that know mesh time. A reference needs
//! the connection of most members, or of half of them with the first one: of the parts of a divided mesh at most one knows
//! mesh time.
//!
//! The node takes packets, timestamps and times, and returns packets and the time of its next work. Times are of a monotonic
//! clock; readings are of the clock that is synchronised, and which may step.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use units::{Span, Time, mix64};

use crate::limits::Limits;
use crate::line::{OffsetLine, Reading, Skew};
use crate::mesh::{Member, Neighbours, neighbours, successors};
use crate::network::{MemberOffset, PairInterval, Solution, solve};
use crate::pair::PairEstimate;
use crate::prober::{Prober, ProberConfig};
use crate::reports::Reports;
use crate::wire::{
    Agreement, Body, Departures, Era, Header, MAX_PAIRS, MeshLine, Message, PairIndex, Probe, Reply, Report,
    ReportedPair, Session,
};

/// Time between two estimates.
const EPOCH: Span = Span::from_s(1);

/// Minimum time between the ends of two epochs.
const EPOCH_GAP: Span = Span::from_ms(500);

/// Epochs after the start in which a member looks for a mesh time before it starts one.
const EPOCHS_BEFORE_START: u32 = 6;

/// Epochs for which a member knows mesh time before others may follow it.
const EPOCHS_BEFORE_REPORT: u32 = 5;

/// Time for which a new reference publishes the error that it had. All members follow it by then, or know no mesh time.
const TAKEOVER: Span = Span::from_s(10);

/// Time from the last solution to the end of the map's validity.
const VALIDITY: Span = Span::from_s(5);

/// Delay of reports to forward, so that several share a message.
const FORWARDING_DELAY: Span = Span::from_ms(40);

/// Maximum number of probes a second that are answered to one member.
const REPLY_BURST: u32 = 400;

/// A member's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberConfig {
    /// Identity, unique in the mesh.
    pub id: u64,
    /// Site: paths between sites may be asymmetric.
    pub site: u16,
}

/// Configuration of a mesh, which all members share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshConfig {
    /// The members, in the order in which they are preferred as the reference.
    pub members: Vec<MemberConfig>,
    /// Selects the pairs.
    pub seed: u64,
    /// Mean time between two coded pairs to a neighbour.
    pub probe_interval: Span,
    /// Time between the two packets of a coded pair. Queues change in this time, so a pair that keeps its spacing has
    /// probably found them empty; and the packets are samples of their own.
    pub pair_spacing: Span,
    /// Time that the samples of an estimate cover, at least.
    pub window: Span,
    /// Stated limits of clocks and paths.
    pub limits: Limits,
}

impl MeshConfig {
    /// Returns a configuration with a coded pair every 66 ms, a window of 4 s and default limits.
    pub fn new(members: Vec<MemberConfig>) -> Self {
        Self {
            members,
            seed: 0,
            probe_interval: Span::from_ms(66),
            pair_spacing: Span::from_us(200),
            window: Span::from_s(4),
            limits: Limits::default(),
        }
    }
}

/// Packet that needs a transmit timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Departure {
    /// The member that it is for.
    pub to: Member,
    nonce: u64,
    index: PairIndex,
    is_probe: bool,
}

/// A message to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The receiver.
    pub to: Member,
    /// The message, without seal.
    pub message: Vec<u8>,
    /// Set if the transmit timestamp is needed.
    pub departure: Option<Departure>,
}

/// A change that operators may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The host's clock contradicts most of its pairs: it has stepped, and the map is void.
    OwnStep,
    /// The clock of this neighbour has stepped, or the pair with it.
    NeighbourStep(Member),
    /// A neighbour has restarted.
    Restart(Member),
    /// Contradictions between this member's pairs and the others.
    Suspect(Member),
    /// Change of the reference to this member.
    Reference(Member),
    /// Mesh time stepped: the new reference's and the former map are apart by more than their errors.
    Disruption,
    /// Mesh time is no longer known.
    Lost,
}

/// Mesh time by the host's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeshMap {
    /// Mesh time less the host's clock, with its error.
    pub mesh: MeshLine,
    /// The reference.
    pub reference: Member,
    /// Monotonic time until which the map holds.
    pub valid_until: Time,
}

impl MeshMap {
    /// Returns mesh time at a reading of the host's clock.
    pub fn time(&self, at: Reading) -> Reading {
        self.mesh.line.remote(at)
    }

    /// Returns the largest error of [`MeshMap::time`] at a reading, in nanoseconds.
    pub fn error(&self, at: Reading) -> i64 {
        let age = at.since(self.mesh.line.at).saturating_abs();
        self.mesh.error.saturating_add(self.mesh.skew_error.over(age)).saturating_add(1)
    }
}

/// State of a neighbour that a member probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourState {
    /// The neighbour.
    pub member: Member,
    /// Offset of its clock, with the largest error; none while there are too few samples.
    pub interval: Option<PairInterval>,
    /// The estimate that the interval is of.
    pub estimate: Option<PairEstimate>,
    /// Time of its last reply.
    pub last_reply: Option<Time>,
}

/// State of the end of a pair that answers.
#[derive(Clone, Copy, Debug, Default)]
struct Responder {
    /// Nonce and transmit timestamps of the last pair of replies.
    nonce: u64,
    sent: [Option<Reading>; 2],
    /// The pair of replies before, with all timestamps.
    previous: Option<Departures>,
    /// Replies that may still be sent in this epoch.
    allowance: u32,
    /// Time of the last probe, and of the last one that did not agree with its prober's estimate.
    probed: Option<Time>,
    disagreed: Option<Time>,
}

/// A neighbour, or another member that exchanges reports with the host.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    session: Option<Session>,
    era: Era,
    responder: Responder,
}

/// Source of the map.
#[derive(Clone, Copy, Debug)]
struct Following {
    map: MeshMap,
    /// Epochs since mesh time is known.
    epochs: u32,
    /// Set if the host is the reference, to the time since when.
    reigns_since: Option<Time>,
}

/// A member of the mesh.
#[derive(Debug)]
pub struct Node {
    config: MeshConfig,
    own: Member,
    session: Session,
    era: Era,
    draws: u64,
    /// By member.
    peers: Vec<Peer>,
    probers: Vec<Prober>,
    successors: Vec<Member>,
    reports: Reports,
    number: u32,
    outgoing: VecDeque<Outgoing>,
    events: VecDeque<Event>,
    next_epoch: Time,
    forward_at: Time,
    /// Epochs since the start, or since mesh time was lost.
    epochs: u32,
    following: Option<Following>,
    solution: Option<Solution>,
    suspects: Vec<Member>,
    /// Pairs that showed a step in this epoch.
    steps: Vec<Member>,
    /// Time of the last step of the host's own clock.
    stepped_at: Option<Time>,
}

impl Node {
    /// Creates a member. `session` is greater than those of its former runs, such as the time in nanoseconds; `draws` seeds
    /// random numbers, and is secret and different for each run.
    ///
    /// # Panics
    /// If `own` is not a member.
    pub fn new(config: MeshConfig, own: Member, session: Session, draws: u64, now: Time) -> Self {
        assert!(own.index() < config.members.len(), "member {} of {}", own.0, config.members.len());
        let ids: Vec<u64> = config.members.iter().map(|member| member.id).collect();
        let window = (config.window.ps() / 1_000).max(1);
        let pairs = neighbours(&ids, config.seed).into_iter().filter(|pair| pair.prober == own);
        let site = |member: Member| config.members[member.index()].site;
        let prober = |pair: Neighbours| {
            let is_local = site(pair.prober) == site(pair.responder);
            let Limits { asymmetry, asymmetry_between_sites, .. } = config.limits;
            let asymmetry = if is_local { Some(asymmetry) } else { asymmetry_between_sites };
            let first = mix64(draws ^ u64::from(pair.responder.0)) % config.probe_interval.unsigned_ps().max(1);
            let limits = config.limits;
            Prober::new(ProberConfig { pair, asymmetry, limits, window }, now + Span::from_unsigned_ps(first))
        };
        let probers: Vec<Prober> = pairs.take(MAX_PAIRS).map(prober).collect();
        let phase = Span::from_unsigned_ps(mix64(!draws) % EPOCH.unsigned_ps());
        Self {
            probers,
            successors: successors(&ids, config.seed, own),
            peers: alloc::vec![Peer::default(); config.members.len()],
            reports: Reports::new(config.members.len()),
            config,
            own,
            session,
            era: Era(0),
            draws,
            number: 0,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            next_epoch: now + phase,
            forward_at: Time::NEVER,
            epochs: 0,
            following: None,
            solution: None,
            suspects: Vec::new(),
            steps: Vec::new(),
            stepped_at: None,
        }
    }

    /// Returns the map; none if mesh time is not known. It holds until [`MeshMap::valid_until`].
    pub fn map(&self) -> Option<MeshMap> {
        self.following.map(|following| following.map)
    }

    /// Returns the offsets of all members of the last epoch.
    pub fn solution(&self) -> Option<&Solution> {
        self.solution.as_ref()
    }

    /// Returns the neighbours that the member probes, in order.
    pub fn neighbours(&self) -> impl Iterator<Item = NeighbourState> {
        self.probers.iter().map(|prober| NeighbourState {
            member: prober.config.pair.responder,
            interval: prober.interval().copied(),
            estimate: prober.estimate().copied(),
            last_reply: prober.last_reply,
        })
    }

    /// Returns the members that contradict the others, in order.
    pub fn suspects(&self) -> &[Member] {
        &self.suspects
    }

    /// Returns the next message to send.
    pub fn poll_outgoing(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`Node::wake`].
    pub fn next_wake(&self) -> Time {
        let probe = self.probers.iter().map(|it| it.next_probe.min(it.second_at)).min().unwrap_or(Time::NEVER);
        probe.min(self.next_epoch).min(self.forward_at)
    }

    /// Does the work that is due at `now`, when the host's clock reads `clock`.
    pub fn wake(&mut self, now: Time, clock: Reading) {
        for index in 0..self.probers.len() {
            if self.probers[index].second_at <= now {
                self.probers[index].second_at = Time::NEVER;
                self.send_probe(index, PairIndex::Second);
            }
            if self.probers[index].next_probe <= now {
                self.probe(now, index);
            }
        }
        self.judge_steps(now);
        if self.next_epoch <= now {
            self.end_epoch(now, clock);
            // A late call does not cause several epochs at once.
            self.next_epoch = (self.next_epoch + EPOCH).max(now + EPOCH_GAP);
        }
        if self.forward_at <= now {
            self.forward();
        }
    }

    /// Takes the transmit timestamp of a packet.
    pub fn on_sent(&mut self, departure: Departure, at: Reading) {
        let Departure { to, nonce, index, is_probe } = departure;
        if is_probe {
            if let Some(prober) = self.probers.iter_mut().find(|prober| prober.config.pair.responder == to) {
                prober.on_sent(nonce, index, at);
            }
            return;
        }
        let responder = &mut self.peers[to.index()].responder;
        if responder.nonce == nonce {
            responder.sent[index.index()].get_or_insert(at);
            if let [Some(first), Some(second)] = responder.sent {
                responder.previous = Some(Departures { nonce, sent: [first, second] });
            }
        }
    }

    /// Takes a message that arrived at `received` by the host's clock, and has been authenticated. Returns whether it was
    /// for this run of the member.
    pub fn receive(&mut self, now: Time, received: Reading, message: &[u8]) -> bool {
        let Some(Message { header, body }) = Message::decode(message) else { return false };
        let Header { sender, receiver, sender_session, receiver_session, era } = header;
        let is_known = sender.index() < self.peers.len() && sender != self.own;
        if receiver != self.own || !is_known {
            return false;
        }
        // Only messages that name this session are fresh; others may have been recorded before.
        let is_fresh = receiver_session == Some(self.session);
        if is_fresh && self.peers[sender.index()].session != Some(sender_session) {
            let is_restart = self.peers[sender.index()].session.replace(sender_session).is_some();
            if is_restart {
                self.events.push_back(Event::Restart(sender));
                self.reset_pair(sender);
            }
        }
        if is_fresh && self.peers[sender.index()].era != era {
            self.peers[sender.index()].era = era;
            self.reset_pair(sender);
        }
        match body {
            Body::Probe(probe) => {
                if is_fresh {
                    self.note_agreement(now, sender, probe.agreement);
                }
                self.answer(sender, sender_session, probe, received);
            }
            _ if !is_fresh => return false,
            Body::Reply(reply) => {
                if let Some(prober) = self.probers.iter_mut().find(|it| it.config.pair.responder == sender) {
                    prober.on_reply(now, &reply, received);
                }
            }
            Body::Reports(reports) => {
                for report in reports.into_iter().filter(|report| report.origin != self.own) {
                    self.reports.take(now, report);
                }
                self.schedule_forwarding(now);
            }
        }
        true
    }

    fn schedule_forwarding(&mut self, now: Time) {
        if self.reports.has_pending() {
            self.forward_at = self.forward_at.min(now + FORWARDING_DELAY);
        }
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.draws)
    }

    fn send(&mut self, to: Member, receiver_session: Option<Session>, body: Body, departure: Option<Departure>) {
        let sender_session = self.session;
        let header = Header { sender: self.own, receiver: to, sender_session, receiver_session, era: self.era };
        let message = Message { header, body }.encode();
        self.outgoing.push_back(Outgoing { to, message, departure });
    }

    /// Begins a coded pair.
    fn probe(&mut self, now: Time, index: usize) {
        let nonce = self.draw().max(1);
        let interval = self.config.probe_interval.unsigned_ps();
        // Uniform around the mean, so that probes do not keep step with each other or with traffic.
        let gap = interval / 2 + self.draw() % interval.max(1);
        let prober = &mut self.probers[index];
        let to = prober.config.pair.responder;
        let agreement = prober.begin(nonce);
        prober.next_probe = (prober.next_probe + Span::from_unsigned_ps(gap)).max(now);
        prober.agreement = agreement;
        if agreement == Agreement::Steps && !self.steps.contains(&to) {
            self.steps.push(to);
        }
        self.probers[index].second_at = now + self.config.pair_spacing;
        self.send_probe(index, PairIndex::First);
    }

    /// Sends a packet of the newest coded pair.
    fn send_probe(&mut self, prober: usize, index: PairIndex) {
        let to = self.probers[prober].config.pair.responder;
        let Some(nonce) = self.probers[prober].newest() else { return };
        let session = self.peers[to.index()].session;
        let departure = Departure { to, nonce, index, is_probe: true };
        let agreement = self.probers[prober].agreement;
        self.send(to, session, Body::Probe(Probe { nonce, index, agreement }), Some(departure));
    }

    /// Notes the agreement of a prober's estimate with its last coded pair.
    fn note_agreement(&mut self, now: Time, sender: Member, agreement: Agreement) {
        let responder = &mut self.peers[sender.index()].responder;
        responder.probed = Some(now);
        // Just after a step, probers compare with estimates from before it.
        let is_settled = self.stepped_at.is_none_or(|at| now.saturating_since(at) >= EPOCH);
        if agreement == Agreement::Steps && is_settled {
            responder.disagreed = Some(now);
        }
    }

    /// Answers a packet of a probe.
    fn answer(&mut self, sender: Member, session: Session, probe: Probe, received: Reading) {
        let responder = &mut self.peers[sender.index()].responder;
        if responder.allowance == 0 {
            return;
        }
        responder.allowance -= 1;
        if responder.nonce != probe.nonce {
            (responder.nonce, responder.sent) = (probe.nonce, [None; 2]);
        }
        let previous = responder.previous.filter(|previous| previous.nonce != probe.nonce);
        let departure = Departure { to: sender, nonce: probe.nonce, index: probe.index, is_probe: false };
        let reply = Reply { probe, received, previous };
        self.send(sender, Some(session), Body::Reply(reply), Some(departure));
    }

    /// Sends the reports that wait.
    fn forward(&mut self) {
        self.forward_at = Time::NEVER;
        for group in self.reports.take_pending() {
            for index in 0..self.successors.len() {
                let to = self.successors[index];
                // Without its session the member would take the message for a recorded one.
                if let Some(session) = self.peers[to.index()].session {
                    let reports: Vec<Report> = group.iter().filter(|report| report.origin != to).cloned().collect();
                    if !reports.is_empty() {
                        self.send(to, Some(session), Body::Reports(reports), None);
                    }
                }
            }
        }
    }

    fn reset_pair(&mut self, member: Member) {
        if let Some(prober) = self.probers.iter_mut().find(|prober| prober.config.pair.responder == member) {
            prober.reset();
        }
        self.peers[member.index()].responder.previous = None;
    }

    /// Decides at once that the host's own clock has stepped, if most pairs in both roles show a step. The rest waits for the
    /// end of the epoch: until then more pairs may show it.
    fn judge_steps(&mut self, now: Time) {
        let is_recent = |time: &Option<Time>| time.is_some_and(|time| now.saturating_since(time) <= EPOCH);
        let responders = || self.peers.iter().map(|peer| &peer.responder);
        let probing = self.probers.iter().filter(|prober| prober.interval().is_some()).count();
        let active = probing + responders().filter(|it| is_recent(&it.probed)).count();
        let steps = self.steps.len() + responders().filter(|it| is_recent(&it.disagreed)).count();
        // With one or two pairs it cannot be decided which clock it was: the map is void at both.
        if steps > 0 && 2 * steps > active {
            self.on_own_step(now);
        }
    }

    /// Discards all that depends on the host's clock.
    fn on_own_step(&mut self, now: Time) {
        self.steps.clear();
        self.stepped_at = Some(now);
        self.era = Era(self.era.0.wrapping_add(1));
        self.events.push_back(Event::OwnStep);
        self.probers.iter_mut().for_each(Prober::reset);
        for peer in &mut self.peers {
            (peer.responder.previous, peer.responder.disagreed) = (None, None);
        }
        self.set_following(None);
        // The others discard what they know of this clock.
        self.report(now, None);
    }

    /// Reports the pairs, and mesh time if others may use it.
    fn report(&mut self, now: Time, mesh: Option<MeshLine>) {
        self.number = self.number.wrapping_add(1);
        let pair = |prober: &Prober| {
            let interval = *prober.interval()?;
            Some(ReportedPair { interval, era: self.peers[interval.pair.responder.index()].era })
        };
        let pairs = self.probers.iter().filter_map(pair).collect();
        let (origin, session, number, era) = (self.own, self.session, self.number, self.era);
        self.reports.take(now, Report { origin, session, number, era, mesh, pairs });
        self.schedule_forwarding(now);
    }

    fn set_following(&mut self, following: Option<Following>) {
        if self.following.is_some() && following.is_none() {
            self.events.push_back(Event::Lost);
            self.epochs = 0;
        }
        let reference = |following: &Option<Following>| following.map(|it| it.map.reference);
        if let Some(new) = reference(&following)
            && reference(&self.following) != Some(new)
        {
            self.events.push_back(Event::Reference(new));
        }
        self.following = following;
    }

    /// Renews estimates, the solution and the map, and reports.
    fn end_epoch(&mut self, now: Time, clock: Reading) {
        self.epochs = self.epochs.saturating_add(1);
        self.peers.iter_mut().for_each(|peer| peer.responder.allowance = REPLY_BURST);
        for prober in &mut self.probers {
            let member = prober.config.pair.responder;
            if prober.renew(now, clock) == Agreement::Steps && !self.steps.contains(&member) {
                self.steps.push(member);
            }
        }
        self.judge_steps(now);
        for member in core::mem::take(&mut self.steps) {
            self.events.push_back(Event::NeighbourStep(member));
            self.reset_pair(member);
        }
        let known = self.following.filter(|it| it.epochs >= EPOCHS_BEFORE_REPORT || it.reigns_since.is_some());
        let mesh = known.map(|it| Self::published(now, clock, &it));
        self.report(now, mesh);
        self.update(now, clock);
    }

    /// Returns the map as others use it: a reference's has no error, once all know that it is the reference.
    fn published(now: Time, clock: Reading, following: &Following) -> MeshLine {
        let mesh = following.map.mesh;
        let line = mesh.line.anchored(clock);
        match following.reigns_since {
            Some(since) if now.saturating_since(since) >= TAKEOVER => {
                MeshLine { line, error: 0, skew_error: Skew::ZERO }
            }
            _ => MeshLine { line, error: following.map.error(clock), skew_error: mesh.skew_error },
        }
    }

    /// Renews the map from the reports.
    fn update(&mut self, now: Time, clock: Reading) {
        let pairs = self.reports.pairs(now);
        let solution = solve(self.peers.len(), self.own, clock, &pairs);
        if solution.suspects.contains(&self.own) {
            self.solution = Some(solution);
            return self.on_own_step(now);
        }
        for &suspect in solution.suspects.iter().filter(|suspect| !self.suspects.contains(suspect)) {
            self.events.push_back(Event::Suspect(suspect));
        }
        self.suspects.clone_from(&solution.suspects);
        self.follow(now, clock, &solution, &pairs);
        self.solution = Some(solution);
    }

    /// Selects the reference, and computes the map from it.
    fn follow(&mut self, now: Time, clock: Reading, solution: &Solution, pairs: &[PairInterval]) {
        let source = self.reports.recent(now).find_map(|report| {
            let mesh = report.mesh?;
            solution.members[report.origin.index()]?;
            (!solution.suspects.contains(&report.origin)).then_some((report.origin, mesh))
        });
        let valid_until = now + VALIDITY;
        match source {
            Some((reference, _)) if reference == self.own => {
                // The map goes on as it is, as long as most members can follow it.
                if let Some(mut following) = self.following.filter(|_| self.has_quorum(now, solution)) {
                    let since = *following.reigns_since.get_or_insert(now);
                    if now.saturating_since(since) >= TAKEOVER {
                        (following.map.mesh.error, following.map.mesh.skew_error) = (0, Skew::ZERO);
                    }
                    (following.map.reference, following.map.valid_until) = (self.own, valid_until);
                    following.epochs = following.epochs.saturating_add(1);
                    self.set_following(Some(following));
                } else {
                    self.expire(now);
                }
            }
            Some((reference, mesh)) => {
                let Some(offset) = solution.robust_offset(pairs, reference) else { return };
                let map = MeshMap { mesh: compose(&offset, &mesh, clock), reference, valid_until };
                let epochs = self.following.map_or(0, |it| it.epochs);
                if let Some(former) = self.following {
                    let step = map.time(clock).since(former.map.time(clock)).saturating_abs();
                    if step > map.error(clock).saturating_add(former.map.error(clock)) {
                        self.events.push_back(Event::Disruption);
                    }
                }
                self.set_following(Some(Following { map, epochs: epochs.saturating_add(1), reigns_since: None }));
            }
            None => self.start(now, clock, solution),
        }
    }

    /// Returns whether most members of the mesh are connected with the host, or half of them with the first one.
    fn has_quorum(&self, now: Time, solution: &Solution) -> bool {
        let is_connected = |report: &&Report| solution.members[report.origin.index()].is_some();
        let connected: Vec<Member> =
            self.reports.recent(now).filter(is_connected).map(|report| report.origin).collect();
        let all = self.peers.len();
        2 * connected.len() > all || 2 * connected.len() == all && connected.contains(&Member(0))
    }

    /// Ends the map if it is no longer valid.
    fn expire(&mut self, now: Time) {
        if self.following.is_some_and(|following| now > following.map.valid_until) {
            self.set_following(None);
        }
    }

    /// Goes on without a reference: starts mesh time, or waits.
    fn start(&mut self, now: Time, clock: Reading, solution: &Solution) {
        if self.following.is_some() {
            return self.expire(now);
        }
        let reaches = |report: &&Report| solution.members[report.origin.index()].is_some();
        let reached: Vec<Member> = self.reports.recent(now).filter(reaches).map(|report| report.origin).collect();
        let is_first = reached.first() == Some(&self.own);
        // Others know mesh time, although no pair of this host leads to them yet.
        let is_known = self.reports.recent(now).any(|report| report.mesh.is_some());
        let may_start = is_first && reached.len() >= 2 && self.has_quorum(now, solution);
        if is_known || self.epochs < EPOCHS_BEFORE_START || !may_start {
            return;
        }
        let line = OffsetLine { at: clock, offset: 0, skew: Skew::ZERO };
        let mesh = MeshLine { line, error: 0, skew_error: Skew::ZERO };
        let map = MeshMap { mesh, reference: self.own, valid_until: now + VALIDITY };
        self.set_following(Some(Following { map, epochs: 1, reigns_since: Some(now) }));
    }
}

/// Returns mesh time by the host's clock, from that of another member.
fn compose(offset: &MemberOffset, mesh: &MeshLine, clock: Reading) -> MeshLine {
    let there = offset.line.remote(clock);
    let at_source = mesh.line.offset_at(there);
    let age = there.since(mesh.line.at).saturating_abs();
    let error = [offset.error, mesh.error, mesh.skew_error.over(age), 1].into_iter().fold(0i64, i64::saturating_add);
    MeshLine {
        line: OffsetLine {
            at: clock,
            offset: offset.line.offset_at(clock).wrapping_add(at_source),
            skew: offset.line.skew + mesh.line.skew + Skew(mesh.line.skew.over(offset.line.skew.0)),
        },
        error,
        skew_error: offset.skew_error + mesh.skew_error,
    }
}
