//! Path selection among equal paths. Switches choose by a hash of a packet's flow and entropy, so an entropy identifies
//! a path.
//!
//! - **ECMP**: one entropy a flow; `AfterTimeout` draws another one after each retransmission timeout.
//! - **RPS**, random packet spraying (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013):
//!   each transmission draws one.
//! - **PLB** (Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022, §3):
//!   one entropy a flow, and another one when the path is congested. A round trip is congested if more than a share `K` of
//!   what was acknowledged in it was marked. After `N` such rounds in a row the path is changed at the next time that nothing
//!   is in flight, where that reorders nothing; after `M` it is changed at once, and so it is after a timeout. The pause of
//!   changes after a timeout is not modelled.
//! - **`UnoLB`** (Bonato et al., "Uno", SC 2025, §4.2, Algorithm 2): packets go round robin over subflows, each with an
//!   entropy; on a request for a block or on a timeout (of a flow that is not coded: when a packet is declared lost,
//!   because the paper's simulator finds every loss by a timeout), at most once a base round trip, a subflow that lost
//!   a packet takes the entropy of a random one that had acknowledgements recently. Of several subflows that lost
//!   packets, the one that was silent longest does so (the paper has a single packet there). If none had
//!   acknowledgements, it draws a new one: the paper is silent, and a path that was never tried is worth no less than
//!   one that is dead.
//! - **REPS**, recycled entropy packet spraying (Bonato et al., arXiv 2407.21625; Le et al., arXiv 2508.08906): the
//!   entropy of each unmarked acknowledgement goes into a small ring. A packet takes the oldest one there that was not
//!   taken yet, and draws one if there is none; so a marked packet's entropy is not taken again. A timeout freezes the
//!   ring for a while: when all are taken, the ring is traversed again, because the paths that worked may be the only
//!   ones that work. With the first acknowledgement after that time some packets draw, to find paths again.
//!   Acknowledgements carry the entropy of the newest packet that they acknowledge.
//!
//! Under one law the subflow of a transmission is `seq + attempt - 1` modulo their number, so first transmissions go
//! round robin, a retransmission takes the subflow after the one that lost it, and no packet needs to carry the
//! subflow. Where each subflow has a law, the sender chooses by what they permit.

use alloc::boxed::Box;
use alloc::vec::Vec;

use laws::{Ack, Round};
use units::{Frac, Span, Time, below, mix64};

/// Path selection algorithm of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoadBalancing {
    /// One entropy a flow: ECMP.
    PerFlow,
    /// One entropy a flow, and another one after each of its retransmission timeouts.
    AfterTimeout,
    /// Each packet draws one of this many entropies: random packet spraying.
    PerPacket(u16),
    /// Round robin over subflows, which move away from bad paths.
    UnoLb(UnoLb),
    /// One entropy a flow, and another one when its path is congested.
    Plb(Plb),
    /// Each packet takes the entropy of one that was acknowledged without a mark, or draws one.
    Reps(Reps),
}

/// Parameters of REPS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reps {
    /// Number of entropies to draw from, at least 1.
    pub entropies: u16,
    /// Entropies that the ring holds, at least 1.
    pub buffer: u8,
    /// Time for which a timeout freezes the ring.
    pub freeze: Span,
    /// Packets that draw after that.
    pub explore: u16,
}

/// Parameters of `UnoLB`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnoLb {
    /// Subflows (n), 1 to 64.
    pub subflows: u8,
    /// An acknowledgement within this time is recent; none: one base round trip.
    pub recent: Option<Span>,
    /// Behaves as the published simulator does: every subflow that was silent for half a base round trip draws an
    /// entropy, instead of one taking that of another subflow.
    pub random: bool,
    /// Each subflow has a law of its own ([`crate::Sender::with_laws`]), instead of one for the flow.
    pub own_laws: bool,
}

/// Parameters of PLB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Plb {
    /// A round trip in which more than this share was marked is congested (K).
    pub threshold: Frac,
    /// Consecutive congested rounds after which the path is changed when nothing is in flight (N), at least 1.
    pub idle_rounds: u32,
    /// Consecutive congested rounds after which it is changed at once (M), at least 1.
    pub rounds: u32,
}

impl UnoLb {
    /// Maximum number of subflows: the number of bits in a word.
    pub const MAX_SUBFLOWS: u8 = 64;
}

impl LoadBalancing {
    /// Returns the number of laws of a flow.
    pub fn laws(&self) -> u8 {
        match self {
            Self::UnoLb(unolb) if unolb.own_laws => unolb.subflows.clamp(1, UnoLb::MAX_SUBFLOWS),
            _ => 1,
        }
    }
}

const ECMP: u64 = 0x4543_4d50;
const SUBFLOW: u64 = 0x5355_4246;
const CHANGE: u64 = 0x4348_414e;
const REPS: u64 = 0x5245_5053;

/// Returns the seed of a flow's path choices.
fn salt(seed: u64, flow: u32) -> u64 {
    mix64(seed ^ mix64(u64::from(flow)))
}

/// Entropy of a packet, as its acknowledgement returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntropyEcho {
    /// The entropy that the packet was sent with.
    pub entropy: u16,
    /// The packet was marked.
    pub marked: bool,
}

/// The paths of one flow.
#[derive(Debug)]
pub(crate) struct PathSelector {
    /// Seed of the path choices.
    salt: u64,
    /// The flow's, where it has one at a time.
    entropy: u16,
    /// Number of changes of `entropy`.
    changes: u64,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    PerFlow,
    AfterTimeout,
    PerPacket(u16),
    UnoLb(Box<SubflowLoad>),
    Plb(Box<PlbState>),
    Reps(Box<RepsBuffer>),
}

/// REPS's ring.
#[derive(Debug)]
struct RepsBuffer {
    reps: Reps,
    /// Entropies of the last unmarked acknowledgements, as a ring.
    entropies: Vec<u16>,
    /// Slot of the next entropy.
    head: usize,
    /// Number of the most recent entropies that are not taken yet.
    valid: usize,
    /// Position while a frozen ring is traversed again.
    round: usize,
    /// End of the freeze, which lasts until the first acknowledgement after it.
    frozen: Option<Time>,
    /// Packets that still draw.
    exploring: u16,
    /// Draws so far.
    draws: u64,
}

#[derive(Debug)]
struct SubflowLoad {
    random: bool,
    recent: Span,
    base_rtt: Span,
    all: Vec<Subflow>,
    rerouted: Option<Time>,
    /// Draws so far.
    draws: u64,
}

#[derive(Clone, Copy, Debug)]
struct Subflow {
    entropy: u16,
    /// Time since which it has this entropy.
    since: Time,
    /// Last acknowledgement of a packet that was sent on this subflow with this entropy; none if there was none yet.
    last_ack_at: Option<Time>,
}

#[derive(Debug)]
struct PlbState {
    plb: Plb,
    round: Round,
    /// Congested rounds in a row.
    congested: u32,
}

impl PathSelector {
    /// The paths of flow number `flow`, which starts at `now`.
    pub(crate) fn new(choice: LoadBalancing, seed: u64, flow: u32, base_rtt: Span, now: Time) -> Self {
        let salt = salt(seed, flow);
        let rule = match choice {
            LoadBalancing::PerFlow => Rule::PerFlow,
            LoadBalancing::AfterTimeout => Rule::AfterTimeout,
            LoadBalancing::PerPacket(entropies) => Rule::PerPacket(entropies),
            LoadBalancing::UnoLb(unolb) => {
                let mut subflows = SubflowLoad {
                    random: unolb.random,
                    recent: unolb.recent.unwrap_or(base_rtt),
                    base_rtt,
                    all: Vec::new(),
                    rerouted: None,
                    draws: 0,
                };
                for _ in 0..unolb.subflows.clamp(1, UnoLb::MAX_SUBFLOWS) {
                    let entropy = subflows.draw(salt);
                    subflows.all.push(Subflow { entropy, since: now, last_ack_at: None });
                }
                Rule::UnoLb(Box::new(subflows))
            }
            LoadBalancing::Plb(plb) => Rule::Plb(Box::new(PlbState { plb, round: Round::new(), congested: 0 })),
            LoadBalancing::Reps(reps) => Rule::Reps(Box::new(RepsBuffer::new(reps))),
        };
        Self { salt, changes: 0, entropy: mix64(seed ^ mix64(u64::from(flow) ^ ECMP)) as u16, rule }
    }

    /// Begins flow number `flow`, which may be another one than before: sprayed packets draw for it again, all else
    /// stays.
    pub(crate) fn begin(&mut self, seed: u64, flow: u32) {
        if let Rule::PerPacket(_) = self.rule {
            self.salt = salt(seed, flow);
        }
    }

    /// Returns the entropy of a transmission that is sent now. Call it once for each.
    #[inline]
    pub(crate) fn entropy(&mut self, seq: u32, attempt: u8, subflow: u8) -> u16 {
        match &mut self.rule {
            Rule::Reps(ring) => ring.take(self.salt),
            _ => self.peek_entropy(seq, attempt, subflow),
        }
    }

    /// Returns the same without taking an entropy from the ring; under REPS the flow's own.
    #[inline]
    fn peek_entropy(&self, seq: u32, attempt: u8, subflow: u8) -> u16 {
        match &self.rule {
            Rule::PerFlow | Rule::AfterTimeout | Rule::Plb(_) | Rule::Reps(_) => self.entropy,
            Rule::PerPacket(entropies) => {
                let packet = u64::from(seq) << 8 | u64::from(attempt);
                below(mix64(self.salt ^ packet), (*entropies).into()) as u16
            }
            Rule::UnoLb(unolb) => unolb.all[usize::from(subflow)].entropy,
        }
    }

    /// Returns the entropy of a packet other than data: under REPS one for the flow, otherwise that of its first packet if it
    /// were sent now.
    pub(crate) fn signal_entropy(&self) -> u16 {
        self.peek_entropy(0, 1, 0)
    }

    /// Returns whether entropies of acknowledgements are used.
    #[inline(always)]
    pub(crate) fn recycles(&self) -> bool {
        matches!(self.rule, Rule::Reps(_))
    }

    /// Records the entropy of the packet that an acknowledgement acknowledges.
    pub(crate) fn recycle(&mut self, now: Time, echo: EntropyEcho) {
        if let Rule::Reps(ring) = &mut self.rule {
            ring.receive(now, echo);
        }
    }

    /// Returns whether acknowledgements are used.
    #[inline(always)]
    pub(crate) fn uses_acks(&self) -> bool {
        matches!(self.rule, Rule::UnoLb(_) | Rule::Plb(_))
    }

    /// The subflow of a transmission under one law; 0 where there are none.
    #[inline]
    pub(crate) fn subflow(&self, seq: u32, attempt: u8) -> u8 {
        if let Rule::UnoLb(unolb) = &self.rule { unolb.of(seq, attempt) } else { 0 }
    }

    /// Records the acknowledgement of a transmission on this subflow, as passed to the law.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, ack: &Ack, subflow: u8) {
        match &mut self.rule {
            Rule::UnoLb(unolb) => {
                let subflow = &mut unolb.all[usize::from(subflow)];
                if ack.sent_at >= subflow.since {
                    subflow.last_ack_at = Some(ack.now);
                }
            }
            Rule::Plb(state) => {
                state.round.count(ack);
                if !state.round.is_over(ack) {
                    return;
                }
                let congested = state.round.marked_fraction() > state.plb.threshold;
                state.congested = if congested { state.congested + 1 } else { 0 };
                state.round.restart(ack);
                if state.congested >= state.plb.rounds {
                    self.change();
                }
            }
            Rule::PerFlow | Rule::AfterTimeout | Rule::PerPacket(_) | Rule::Reps(_) => {}
        }
    }

    /// Prepares for a packet that is sent while none is in flight.
    pub(crate) fn on_idle(&mut self) {
        if let Rule::Plb(state) = &self.rule
            && state.congested >= state.plb.idle_rounds
        {
            self.change();
        }
    }

    /// Handles a retransmission timeout that lost packets of these subflows, one bit each.
    pub(crate) fn on_timeout(&mut self, now: Time, subflows: u64) {
        match &mut self.rule {
            Rule::AfterTimeout | Rule::Plb(_) => self.change(),
            Rule::Reps(ring) => ring.freeze(now),
            Rule::UnoLb(_) => self.leave_lossy(now, subflows),
            Rule::PerFlow | Rule::PerPacket(_) => {}
        }
    }

    /// Records losses on these subflows, one bit each: packets must be sent again, or their block cannot be recovered.
    pub(crate) fn leave_lossy(&mut self, now: Time, subflows: u64) {
        if let Rule::UnoLb(unolb) = &mut self.rule {
            unolb.reroute(now, subflows, self.salt);
        }
    }

    /// Draws another entropy for the whole flow. It depends on the number of the change, not on the previous entropy:
    /// iterating a map of 65,536 values soon repeats, and all values in its cycle may lead to failed links.
    fn change(&mut self) {
        self.changes += 1;
        self.entropy = mix64(self.salt ^ mix64(self.changes ^ CHANGE)) as u16;
        if let Rule::Plb(state) = &mut self.rule {
            state.congested = 0;
        }
    }
}

impl RepsBuffer {
    fn new(reps: Reps) -> Self {
        Self { reps, entropies: Vec::new(), head: 0, valid: 0, round: 0, frozen: None, exploring: 0, draws: 0 }
    }

    fn size(&self) -> usize {
        self.reps.buffer.max(1).into()
    }

    fn draw(&mut self, salt: u64) -> u16 {
        self.draws += 1;
        below(mix64(salt ^ mix64(self.draws ^ REPS)), self.reps.entropies.max(1).into()) as u16
    }

    fn take(&mut self, salt: u64) -> u16 {
        debug_assert!(self.valid <= self.entropies.len(), "{} of {}", self.valid, self.entropies.len());
        if self.exploring > 0 {
            self.exploring -= 1;
            return self.draw(salt);
        }
        if self.valid > 0 {
            let oldest = (self.head + self.size() - self.valid) % self.size();
            self.valid -= 1;
            return self.entropies[oldest];
        }
        if self.frozen.is_none() || self.entropies.is_empty() {
            return self.draw(salt);
        }
        self.round = (self.round + 1) % self.entropies.len();
        self.entropies[self.round]
    }

    fn receive(&mut self, now: Time, echo: EntropyEcho) {
        let EntropyEcho { entropy, marked } = echo;
        debug_assert!(self.head < self.size() && self.valid <= self.entropies.len(), "{} {}", self.head, self.valid);
        if self.frozen.is_some_and(|until| now >= until) {
            self.frozen = None;
            self.exploring = self.reps.explore;
        }
        if marked {
            return;
        }
        if self.head < self.entropies.len() {
            self.entropies[self.head] = entropy;
        } else {
            self.entropies.push(entropy);
        }
        self.head = (self.head + 1) % self.size();
        self.valid = (self.valid + 1).min(self.size());
    }

    fn freeze(&mut self, now: Time) {
        if self.frozen.is_none() && self.exploring == 0 {
            self.frozen = Some(now + self.reps.freeze);
        }
    }
}

impl SubflowLoad {
    fn of(&self, seq: u32, attempt: u8) -> u8 {
        ((seq as usize + usize::from(attempt.wrapping_sub(1))) % self.all.len()) as u8
    }

    fn draw(&mut self, salt: u64) -> u16 {
        self.draws += 1;
        mix64(salt ^ mix64(self.draws ^ SUBFLOW)) as u16
    }

    fn reroute(&mut self, now: Time, lost: u64, salt: u64) {
        if self.rerouted.is_some_and(|last| now.since(last) <= self.base_rtt) {
            return;
        }
        let acked_within =
            |it: &Subflow, span: Span| it.last_ack_at.is_some_and(|last_ack_at| now.since(last_ack_at) <= span);
        if self.random {
            let silent = self.base_rtt.over(2);
            for subflow in 0..self.all.len() {
                if !acked_within(&self.all[subflow], silent) {
                    let entropy = self.draw(salt);
                    self.all[subflow] = Subflow { entropy, since: now, last_ack_at: None };
                    self.rerouted = Some(now);
                }
            }
            return;
        }
        let last_ack = |&subflow: &usize| self.all[subflow].last_ack_at;
        let Some(bad) = (0..self.all.len()).filter(|&subflow| lost >> subflow & 1 != 0).min_by_key(last_ack) else {
            return;
        };
        let good = |&subflow: &usize| subflow != bad && acked_within(&self.all[subflow], self.recent);
        let alive: Vec<usize> = (0..self.all.len()).filter(good).collect();
        let drawn = self.draw(salt);
        let entropy = match u32::try_from(alive.len()) {
            Ok(0) | Err(_) => drawn,
            Ok(count) => self.all[alive[below(mix64(salt ^ self.draws), count) as usize]].entropy,
        };
        self.all[bad] = Subflow { entropy, since: now, last_ack_at: None };
        self.rerouted = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use laws::Cookie;
    use units::Bytes;

    const RTT: Span = Span::from_us(100);
    const RING: Reps = Reps { entropies: 1_000, buffer: 4, freeze: Span::from_ms(10), explore: 3 };

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn paths(choice: LoadBalancing) -> PathSelector {
        PathSelector::new(choice, 1, 7, RTT, Time::ZERO)
    }

    fn unolb(subflows: u8, random: bool) -> PathSelector {
        paths(LoadBalancing::UnoLb(UnoLb { subflows, recent: None, random, own_laws: false }))
    }

    /// Returns the acknowledgement, a round trip later, of a packet sent at `sent_us`.
    fn ack(sent_us: u64, delivered_at_send: u64, marked: u64) -> Ack<'static> {
        Ack {
            now: us(sent_us) + RTT,
            sent_at: us(sent_us),
            rtt: RTT,
            acked: Bytes::new(100),
            marked: Bytes::new(marked),
            in_flight: Bytes::ZERO,
            delivered: Bytes::new(delivered_at_send + 100),
            bytes_remaining: Bytes::MAX,
            delivered_at_send: Bytes::new(delivered_at_send),
            delivered_time_at_send: Time::ZERO,
            send_elapsed: Span::ZERO,
            app_limited: false,
            sample_limited: false,
            cookie: Cookie::NONE,
            hops: &[],
        }
    }

    /// Under one law.
    fn entropy(paths: &mut PathSelector, seq: u32, attempt: u8) -> u16 {
        paths.entropy(seq, attempt, paths.subflow(seq, attempt))
    }

    fn entropies(paths: &mut PathSelector, subflows: u32) -> Vec<u16> {
        (0..subflows).map(|seq| entropy(paths, seq, 1)).collect()
    }

    /// Independence of draws: seeds and flows are small numbers. If they were only combined by `^`, flow 2 of seed 1 would
    /// draw the same as flow 1 of seed 2.
    #[test]
    fn draws_differ_by_flow_and_seed() {
        let spray = LoadBalancing::PerPacket(u16::MAX);
        let subflows = LoadBalancing::UnoLb(UnoLb { subflows: 4, recent: None, random: false, own_laws: false });
        for choice in
            [spray, subflows, LoadBalancing::AfterTimeout, LoadBalancing::Reps(Reps { entropies: u16::MAX, ..RING })]
        {
            let mut seen = BTreeSet::new();
            for (seed, flow) in (1..=8).flat_map(|seed| (0..32).map(move |flow| (seed, flow))) {
                let mut paths = PathSelector::new(choice, seed, flow, RTT, Time::ZERO);
                let drawn: Vec<Vec<u16>> = (0..4)
                    .map(|_| {
                        paths.on_timeout(Time::ZERO, 1);
                        entropies(&mut paths, 4)
                    })
                    .collect();
                assert!(seen.insert(drawn), "seed {seed}, flow {flow}: another has drawn this");
            }
        }
    }

    #[test]
    fn retransmissions_use_the_next_subflow() {
        let mut paths = unolb(4, false);
        let own = entropies(&mut paths, 4);
        assert_eq!(
            (entropy(&mut paths, 6, 1), entropy(&mut paths, 6, 2), entropy(&mut paths, 6, 3)),
            (own[2], own[3], own[0])
        );
        assert_eq!((entropy(&mut paths, 0, 255), entropy(&mut paths, 0, 0)), (own[2], own[3]));
        assert_eq!(paths.subflow(6, 2), 3);
    }

    #[test]
    fn a_bad_subflow_takes_a_recently_acked_path_once_a_round_trip() {
        let mut paths = unolb(4, false);
        let before = entropies(&mut paths, 4);
        // Subflow 1 had an acknowledgement within a round trip, subflow 3 an older one, 0 and 2 none.
        paths.on_ack(&ack(0, 0, 0), 3);
        paths.on_ack(&ack(150, 0, 0), 1);
        paths.leave_lossy(us(320), 0b1100);
        let after = entropies(&mut paths, 4);
        assert_eq!(after, [before[0], before[1], before[1], before[3]], "the silent one of the two moves");
        paths.on_timeout(us(420), 0b0001);
        assert_eq!(entropies(&mut paths, 4), after, "one base round trip has not passed");
        // A packet sent on the old path does not count for the new one.
        paths.on_ack(&ack(319, 0, 0), 2);
        paths.on_timeout(us(421), 0b0001);
        let last = entropies(&mut paths, 4);
        assert_eq!(last[1..], after[1..]);
        assert!(!after.contains(&last[0]), "no path has feedback, so it draws");
    }

    #[test]
    fn random_mode_redraws_all_silent_subflows() {
        let mut paths = unolb(4, true);
        let before = entropies(&mut paths, 4);
        paths.on_ack(&ack(0, 0, 0), 3);
        paths.on_ack(&ack(55, 0, 0), 1);
        paths.leave_lossy(us(160), 0b0010);
        let after = entropies(&mut paths, 4);
        let changed: Vec<usize> = (0..4).filter(|&subflow| before[subflow] != after[subflow]).collect();
        assert_eq!(changed, [0, 2, 3]);
    }

    #[test]
    fn plb_leaves_a_congested_path_when_idle_or_at_last_at_once() {
        let mut paths = paths(LoadBalancing::Plb(Plb { threshold: Frac::HALF, idle_rounds: 3, rounds: 5 }));
        let first = entropy(&mut paths, 0, 1);
        let mut round = 0;
        let mut rounds = |paths: &mut PathSelector, count: u64, marked: u64| {
            for _ in 0..count {
                paths.on_ack(&ack(round, round * 100, marked), 0);
                round += 1;
            }
        };
        // Half is not more than half.
        rounds(&mut paths, 20, 50);
        rounds(&mut paths, 2, 51);
        paths.on_idle();
        assert_eq!(entropy(&mut paths, 0, 1), first);
        rounds(&mut paths, 1, 51);
        paths.on_idle();
        let second = entropy(&mut paths, 0, 1);
        assert_ne!(second, first);
        rounds(&mut paths, 4, 100);
        rounds(&mut paths, 1, 0);
        rounds(&mut paths, 4, 100);
        assert_eq!(entropy(&mut paths, 0, 1), second, "a round without marks breaks the row");
        rounds(&mut paths, 1, 100);
        assert_ne!(entropy(&mut paths, 0, 1), second);
        let third = entropy(&mut paths, 0, 1);
        paths.on_timeout(us(0), 1);
        assert_ne!(entropy(&mut paths, 0, 1), third);
    }

    fn ring() -> PathSelector {
        paths(LoadBalancing::Reps(RING))
    }

    fn take(paths: &mut PathSelector, count: u32) -> Vec<u16> {
        (0..count).map(|seq| paths.entropy(seq, 1, 0)).collect()
    }

    /// Returns the entropies that a ring draws without acknowledgements.
    fn drawn(count: u32) -> Vec<u16> {
        take(&mut ring(), count)
    }

    #[test]
    fn the_oldest_unmarked_entropy_is_taken_first_and_once() {
        let mut paths = ring();
        for (entropy, marked) in [(2_001, false), (2_002, true), (2_003, false), (2_004, false)] {
            paths.recycle(us(1), EntropyEcho { entropy, marked });
        }
        assert!(paths.recycles());
        // Then none is left: the rest is drawn, and the marked one never appears again.
        assert_eq!(take(&mut paths, 5), [&[2_001, 2_003, 2_004][..], &drawn(2)].concat());
        assert!(drawn(2).iter().all(|&entropy| entropy < 1_000));
    }

    #[test]
    fn a_full_ring_evicts_its_oldest() {
        let mut paths = ring();
        for entropy in 2_000..2_006 {
            paths.recycle(us(1), EntropyEcho { entropy, marked: false });
        }
        assert_eq!(take(&mut paths, 4), [2_002, 2_003, 2_004, 2_005]);
        paths.recycle(us(2), EntropyEcho { entropy: 2_006, marked: false });
        assert_eq!(take(&mut paths, 2), [&[2_006][..], &drawn(1)].concat());
    }

    #[test]
    fn a_timeout_freezes_the_ring_and_then_explores() {
        let mut paths = ring();
        for entropy in [2_001, 2_002, 2_003] {
            paths.recycle(us(1), EntropyEcho { entropy, marked: false });
        }
        paths.on_timeout(us(100), 1);
        // First the entropies that are not taken yet, then the ring again and again; nothing is drawn.
        assert_eq!(take(&mut paths, 3), [2_001, 2_002, 2_003]);
        let again = take(&mut paths, 6);
        assert_eq!(again[..3], again[3..]);
        assert_eq!(again.iter().copied().collect::<BTreeSet<u16>>(), BTreeSet::from([2_001, 2_002, 2_003]));
        // Entropies acknowledged meanwhile are added. A further timeout prolongs nothing.
        paths.recycle(us(5_000), EntropyEcho { entropy: 2_004, marked: false });
        paths.on_timeout(us(9_000), 1);
        assert_eq!(take(&mut paths, 1), [2_004]);
        // The first acknowledgement after 10 ms ends it; three packets draw before its entropy is taken.
        paths.recycle(us(10_099), EntropyEcho { entropy: 2_005, marked: true });
        assert!(take(&mut paths, 1)[0] > 2_000);
        paths.recycle(us(10_100), EntropyEcho { entropy: 2_005, marked: false });
        paths.on_timeout(us(10_200), 1);
        assert_eq!(take(&mut paths, 4), [&drawn(3)[..], &[2_005]].concat());
        // While it explored no timeout froze it.
        assert!(take(&mut paths, 1)[0] < 1_000);
    }

    #[test]
    fn an_empty_frozen_ring_draws() {
        let mut paths = ring();
        paths.on_timeout(us(1), 1);
        assert_eq!(take(&mut paths, 3), drawn(3));
        let signal = paths.signal_entropy();
        paths.recycle(us(2), EntropyEcho { entropy: 2_001, marked: false });
        assert_eq!((paths.signal_entropy(), take(&mut paths, 1)), (signal, vec![2_001]));
    }

    /// Checks that a flow that changes its path again and again keeps drawing: of 65,536 values, n draws leave out one in
    /// e^(n / 65,536).
    #[test]
    fn path_changes_do_not_cycle() {
        for flow in 0..64 {
            let mut paths = PathSelector::new(LoadBalancing::AfterTimeout, 2, flow, RTT, Time::ZERO);
            let mut seen = BTreeSet::new();
            for _ in 0..2_000 {
                paths.on_timeout(us(0), 1);
                seen.insert(entropy(&mut paths, 0, 1));
            }
            assert!((1_930..=2_000).contains(&seen.len()), "flow {flow}: {} different ones", seen.len());
        }
    }
}
