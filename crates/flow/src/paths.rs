//! Which of the equal paths each packet of a flow takes. Switches choose by a hash of a packet's flow and entropy, so an
//! entropy is a path's name.
//!
//! - **ECMP**: one entropy a flow; `AfterTimeout` draws another one after each retransmission timeout.
//! - **RPS**, random packet spraying (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013):
//!   each transmission draws one.
//! - **PLB** (Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022, §3):
//!   one entropy a flow, and another one when the path is congested. A round trip is congested if more than a share `K` of
//!   what was acknowledged in it was marked. After `N` such rounds in a row the path is changed at the next time that nothing
//!   is in flight, where that reorders nothing; after `M` it is changed at once, and so it is after a timeout. The pause of
//!   changes after a timeout is not modelled.
//! - **`UnoLB`** (Bonato et al., "Uno", SC 2025, §4.2, Algorithm 2): packets go round robin over subflows, each with an entropy;
//!   on a request for a block or on a timeout (of a flow that is not coded: when a packet is held for lost, because the
//!   paper's simulator finds every loss by a timeout), at most once a base round trip, a subflow that lost a packet takes the
//!   entropy of a random one that had acknowledgements lately. Of several that did, the one that was silent longest (the paper has
//!   a single packet there). If none had, it draws a new one: the paper is silent, and a path that nobody tried is worth no
//!   less than one that is dead.
//!
//! Under one law the subflow of a transmission is `seq + attempt - 1` modulo their number, so what is sent for the first time
//! goes round robin, what is sent again takes the subflow after the one that lost it, and nothing needs to carry it. Where each
//! subflow has a law, the sender chooses by what they permit.

use alloc::boxed::Box;
use alloc::vec::Vec;

use laws::{Ack, Round};
use units::{Frac, Span, Time, below, mix64};

/// How a flow's packets choose among equal paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChoice {
    /// One entropy a flow: ECMP.
    PerFlow,
    /// One entropy a flow, and another one after each of its retransmission timeouts.
    AfterTimeout,
    /// Each packet draws one of this many entropies: random packet spraying.
    PerPacket(u16),
    /// Round robin over subflows that leave bad paths.
    UnoLb(UnoLb),
    /// One entropy a flow, and another one when its path is congested.
    Plb(Plb),
}

/// Parameters of `UnoLB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnoLb {
    /// Subflows (n), 1 to 64.
    pub subflows: u8,
    /// An acknowledgement within this time is recent; none: one base round trip.
    pub recent: Option<Span>,
    /// As the published simulator does: every subflow that was silent for half a base round trip draws an entropy,
    /// instead of one taking that of another subflow.
    pub random: bool,
    /// Whether each subflow has a law of its own ([`crate::Sender::with_laws`]), instead of one for the flow.
    pub own_laws: bool,
}

/// Parameters of PLB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plb {
    /// A round trip in which more than this share was marked is congested (K).
    pub threshold: Frac,
    /// After so many congested rounds in a row the path is changed when nothing is in flight (N), at least 1.
    pub idle_rounds: u32,
    /// After so many it is changed at once (M), at least 1.
    pub rounds: u32,
}

impl UnoLb {
    /// The most subflows: as many as there are bits in a word.
    pub const MOST_SUBFLOWS: u8 = 64;
}

impl PathChoice {
    /// How many laws decide for a flow.
    pub fn laws(&self) -> u8 {
        match self {
            Self::UnoLb(unolb) if unolb.own_laws => unolb.subflows.clamp(1, UnoLb::MOST_SUBFLOWS),
            _ => 1,
        }
    }
}

const ECMP: u64 = 0x4543_4d50;
const SUBFLOW: u64 = 0x5355_4246;
const CHANGE: u64 = 0x4348_414e;

/// What the choices of a flow depend on.
fn salt(seed: u64, flow: u32) -> u64 {
    mix64(seed ^ mix64(u64::from(flow)))
}

/// The paths of one flow.
#[derive(Debug)]
pub(crate) struct Paths {
    /// What the choices depend on.
    salt: u64,
    /// The flow's, where it has one at a time.
    entropy: u16,
    /// How often that was changed.
    changes: u64,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    PerFlow,
    AfterTimeout,
    PerPacket(u16),
    UnoLb(Box<Subflows>),
    Plb(Box<PlbState>),
}

#[derive(Debug)]
struct Subflows {
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
    /// Since when it has this entropy.
    since: Time,
    /// When the last packet was acknowledged that it sent with this entropy; none yet if there is none.
    heard: Option<Time>,
}

#[derive(Debug)]
struct PlbState {
    plb: Plb,
    round: Round,
    /// Congested rounds in a row.
    congested: u32,
}

impl Paths {
    /// The paths of flow number `flow`, which starts at `now`.
    pub(crate) fn new(choice: PathChoice, seed: u64, flow: u32, base_rtt: Span, now: Time) -> Self {
        let salt = salt(seed, flow);
        let rule = match choice {
            PathChoice::PerFlow => Rule::PerFlow,
            PathChoice::AfterTimeout => Rule::AfterTimeout,
            PathChoice::PerPacket(entropies) => Rule::PerPacket(entropies),
            PathChoice::UnoLb(unolb) => {
                let mut subflows = Subflows {
                    random: unolb.random,
                    recent: unolb.recent.unwrap_or(base_rtt),
                    base_rtt,
                    all: Vec::new(),
                    rerouted: None,
                    draws: 0,
                };
                for _ in 0..unolb.subflows.clamp(1, UnoLb::MOST_SUBFLOWS) {
                    let entropy = subflows.draw(salt);
                    subflows.all.push(Subflow { entropy, since: now, heard: None });
                }
                Rule::UnoLb(Box::new(subflows))
            }
            PathChoice::Plb(plb) => Rule::Plb(Box::new(PlbState { plb, round: Round::new(), congested: 0 })),
        };
        Self { salt, changes: 0, entropy: mix64(seed ^ mix64(u64::from(flow) ^ ECMP)) as u16, rule }
    }

    /// Flow number `flow` begins on them, which may be another one than before: sprayed packets draw for it anew, all else stays.
    pub(crate) fn begin(&mut self, seed: u64, flow: u32) {
        if let Rule::PerPacket(_) = self.rule {
            self.salt = salt(seed, flow);
        }
    }

    /// The entropy of a transmission that leaves now.
    #[inline]
    pub(crate) fn entropy(&self, seq: u32, attempt: u8, subflow: u8) -> u16 {
        match &self.rule {
            Rule::PerFlow | Rule::AfterTimeout | Rule::Plb(_) => self.entropy,
            Rule::PerPacket(entropies) => {
                let packet = u64::from(seq) << 8 | u64::from(attempt);
                below(mix64(self.salt ^ packet), (*entropies).into()) as u16
            }
            Rule::UnoLb(unolb) => unolb.all[usize::from(subflow)].entropy,
        }
    }

    /// Whether acknowledgements matter.
    #[inline(always)]
    pub(crate) fn listens(&self) -> bool {
        matches!(self.rule, Rule::UnoLb(_) | Rule::Plb(_))
    }

    /// The subflow of a transmission under one law; 0 where there are none.
    #[inline]
    pub(crate) fn subflow(&self, seq: u32, attempt: u8) -> u8 {
        if let Rule::UnoLb(unolb) = &self.rule { unolb.of(seq, attempt) } else { 0 }
    }

    /// A transmission on this subflow is acknowledged, as the law is told.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, ack: &Ack, subflow: u8) {
        match &mut self.rule {
            Rule::UnoLb(unolb) => {
                let subflow = &mut unolb.all[usize::from(subflow)];
                if ack.sent_at >= subflow.since {
                    subflow.heard = Some(ack.now);
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
            Rule::PerFlow | Rule::AfterTimeout | Rule::PerPacket(_) => {}
        }
    }

    /// A packet is about to leave while none is in flight.
    pub(crate) fn on_idle(&mut self) {
        if let Rule::Plb(state) = &self.rule
            && state.congested >= state.plb.idle_rounds
        {
            self.change();
        }
    }

    /// A retransmission timeout lost packets of these subflows, one bit each.
    pub(crate) fn on_timeout(&mut self, now: Time, subflows: u64) {
        match self.rule {
            Rule::AfterTimeout | Rule::Plb(_) => self.change(),
            Rule::UnoLb(_) => self.leave_bad(now, subflows),
            Rule::PerFlow | Rule::PerPacket(_) => {}
        }
    }

    /// Packets of these subflows, one bit each, were lost and are to be sent again, or their block cannot be given back.
    pub(crate) fn leave_bad(&mut self, now: Time, subflows: u64) {
        if let Rule::UnoLb(unolb) = &mut self.rule {
            unolb.reroute(now, subflows, self.salt);
        }
    }

    /// Another entropy for the whole flow. It depends on the number of the change, not on the entropy before: a map of 65,536
    /// values onto themselves soon repeats, and its circle may hold dead links only.
    fn change(&mut self) {
        self.changes += 1;
        self.entropy = mix64(self.salt ^ mix64(self.changes ^ CHANGE)) as u16;
        if let Rule::Plb(state) = &mut self.rule {
            state.congested = 0;
        }
    }
}

impl Subflows {
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
        let heard_within = |it: &Subflow, span: Span| it.heard.is_some_and(|heard| now.since(heard) <= span);
        if self.random {
            let silent = self.base_rtt.over(2);
            for subflow in 0..self.all.len() {
                if !heard_within(&self.all[subflow], silent) {
                    let entropy = self.draw(salt);
                    self.all[subflow] = Subflow { entropy, since: now, heard: None };
                    self.rerouted = Some(now);
                }
            }
            return;
        }
        let silence = |&subflow: &usize| self.all[subflow].heard;
        let Some(bad) = (0..self.all.len()).filter(|&subflow| lost >> subflow & 1 != 0).min_by_key(silence) else {
            return;
        };
        let good = |&subflow: &usize| subflow != bad && heard_within(&self.all[subflow], self.recent);
        let alive: Vec<usize> = (0..self.all.len()).filter(good).collect();
        let drawn = self.draw(salt);
        let entropy = match u32::try_from(alive.len()) {
            Ok(0) | Err(_) => drawn,
            Ok(count) => self.all[alive[below(mix64(salt ^ self.draws), count) as usize]].entropy,
        };
        self.all[bad] = Subflow { entropy, since: now, heard: None };
        self.rerouted = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use laws::Cookie;
    use units::Bytes;

    const RTT: Span = Span::from_us(100);

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn paths(choice: PathChoice) -> Paths {
        Paths::new(choice, 1, 7, RTT, Time::ZERO)
    }

    fn unolb(subflows: u8, random: bool) -> Paths {
        paths(PathChoice::UnoLb(UnoLb { subflows, recent: None, random, own_laws: false }))
    }

    /// A packet that left at `sent_us` is acknowledged a round trip later.
    fn ack(sent_us: u64, delivered_at_send: u64, marked: u64) -> Ack<'static> {
        Ack {
            now: us(sent_us) + RTT,
            sent_at: us(sent_us),
            rtt: RTT,
            acked: Bytes::new(100),
            marked: Bytes::new(marked),
            in_flight: Bytes::ZERO,
            delivered: Bytes::new(delivered_at_send + 100),
            delivered_at_send: Bytes::new(delivered_at_send),
            delivered_time_at_send: Time::ZERO,
            send_elapsed: Span::ZERO,
            app_limited: false,
            held_back: false,
            cookie: Cookie::NONE,
            hops: &[],
        }
    }

    /// Under one law.
    fn entropy(paths: &Paths, seq: u32, attempt: u8) -> u16 {
        paths.entropy(seq, attempt, paths.subflow(seq, attempt))
    }

    fn entropies(paths: &Paths, subflows: u32) -> Vec<u16> {
        (0..subflows).map(|seq| entropy(paths, seq, 1)).collect()
    }

    /// Seeds and flows are small numbers: where they were only put together by `^`, flow 2 of seed 1 would draw what flow 1
    /// of seed 2 draws.
    #[test]
    fn no_two_flows_of_any_two_seeds_draw_the_same() {
        let spray = PathChoice::PerPacket(u16::MAX);
        let subflows = PathChoice::UnoLb(UnoLb { subflows: 4, recent: None, random: false, own_laws: false });
        for choice in [spray, subflows, PathChoice::AfterTimeout] {
            let mut seen = BTreeSet::new();
            for (seed, flow) in (1..=8).flat_map(|seed| (0..32).map(move |flow| (seed, flow))) {
                let mut paths = Paths::new(choice, seed, flow, RTT, Time::ZERO);
                let drawn: Vec<Vec<u16>> = (0..4)
                    .map(|_| {
                        paths.on_timeout(Time::ZERO, 1);
                        entropies(&paths, 4)
                    })
                    .collect();
                assert!(seen.insert(drawn), "seed {seed}, flow {flow}: another has drawn this");
            }
        }
    }

    #[test]
    fn packets_go_round_robin_and_again_on_the_next_subflow() {
        let paths = unolb(4, false);
        let own = entropies(&paths, 4);
        assert_eq!((entropy(&paths, 6, 1), entropy(&paths, 6, 2), entropy(&paths, 6, 3)), (own[2], own[3], own[0]));
        assert_eq!((entropy(&paths, 0, 255), entropy(&paths, 0, 0)), (own[2], own[3]));
        assert_eq!(paths.subflow(6, 2), 3);
    }

    #[test]
    fn a_bad_subflow_takes_a_path_that_was_heard_of_once_a_round_trip() {
        let mut paths = unolb(4, false);
        let before = entropies(&paths, 4);
        // Subflow 1 was heard of within a round trip, subflow 3 is older, 0 and 2 never were.
        paths.on_ack(&ack(0, 0, 0), 3);
        paths.on_ack(&ack(150, 0, 0), 1);
        paths.leave_bad(us(320), 0b1100);
        let after = entropies(&paths, 4);
        assert_eq!(after, [before[0], before[1], before[1], before[3]], "the silent one of the two moves");
        paths.on_timeout(us(420), 0b0001);
        assert_eq!(entropies(&paths, 4), after, "one base round trip has not passed");
        // A packet that left on the old path says nothing of the new one.
        paths.on_ack(&ack(319, 0, 0), 2);
        paths.on_timeout(us(421), 0b0001);
        let last = entropies(&paths, 4);
        assert_eq!(last[1..], after[1..]);
        assert!(!after.contains(&last[0]), "nobody was heard of, so it draws");
    }

    #[test]
    fn as_published_all_silent_subflows_draw() {
        let mut paths = unolb(4, true);
        let before = entropies(&paths, 4);
        paths.on_ack(&ack(0, 0, 0), 3);
        paths.on_ack(&ack(55, 0, 0), 1);
        paths.leave_bad(us(160), 0b0010);
        let after = entropies(&paths, 4);
        let changed: Vec<usize> = (0..4).filter(|&subflow| before[subflow] != after[subflow]).collect();
        assert_eq!(changed, [0, 2, 3]);
    }

    #[test]
    fn plb_leaves_a_congested_path_when_idle_or_at_last_at_once() {
        let mut paths = paths(PathChoice::Plb(Plb { threshold: Frac::HALF, idle_rounds: 3, rounds: 5 }));
        let first = entropy(&paths, 0, 1);
        let mut round = 0;
        let mut rounds = |paths: &mut Paths, count: u64, marked: u64| {
            for _ in 0..count {
                paths.on_ack(&ack(round, round * 100, marked), 0);
                round += 1;
            }
        };
        // Half is not more than half.
        rounds(&mut paths, 20, 50);
        rounds(&mut paths, 2, 51);
        paths.on_idle();
        assert_eq!(entropy(&paths, 0, 1), first);
        rounds(&mut paths, 1, 51);
        paths.on_idle();
        let second = entropy(&paths, 0, 1);
        assert_ne!(second, first);
        rounds(&mut paths, 4, 100);
        rounds(&mut paths, 1, 0);
        rounds(&mut paths, 4, 100);
        assert_eq!(entropy(&paths, 0, 1), second, "a round without marks breaks the row");
        rounds(&mut paths, 1, 100);
        assert_ne!(entropy(&paths, 0, 1), second);
        let third = entropy(&paths, 0, 1);
        paths.on_timeout(us(0), 1);
        assert_ne!(entropy(&paths, 0, 1), third);
    }

    /// However often a flow changes its path, it goes on drawing: of 65,536 values, n draws leave out one in e^(n / 65,536).
    #[test]
    fn changes_of_path_never_run_in_a_circle() {
        for flow in 0..64 {
            let mut paths = Paths::new(PathChoice::AfterTimeout, 2, flow, RTT, Time::ZERO);
            let mut seen = BTreeSet::new();
            for _ in 0..2_000 {
                paths.on_timeout(us(0), 1);
                seen.insert(entropy(&paths, 0, 1));
            }
            assert!((1_930..=2_000).contains(&seen.len()), "flow {flow}: {} different ones", seen.len());
        }
    }
}
