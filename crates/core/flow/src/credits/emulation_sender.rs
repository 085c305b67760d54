//! Emulation packets of the sender: their send times, over-provisioning, and the credits that their echoes return.
//! `FlashPass` §III-B, §III-C.

use alloc::collections::VecDeque;

use laws::credits::OverProvisioning;
use units::{Rate, Span, Time};

use super::{CreditConfig, Echo, Spacing};

/// A round of emulation packets that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EmulationRound {
    /// Emulation packets of the round.
    pub(super) sent: u64,
    /// Emulation packets among them that were echoed.
    pub(super) returned: u64,
    /// Duration of the round.
    pub(super) elapsed: Span,
}

/// Outcome of an emulation packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Echoed,
    Lost,
}

/// Use of a round's counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RoundUse {
    /// The law is notified of them: credits could arrive from the round's beginning on.
    Report,
    /// They are dropped: it is the first round, or the first after a pause.
    Drop,
}

/// An emulation packet without a known outcome.
#[derive(Debug)]
struct Out {
    left: Time,
    expendable: bool,
}

#[derive(Debug)]
pub(super) struct EmulationSender {
    /// `T_wait`; none: data is sent when its credit arrives.
    wait: Option<Span>,
    /// Time after which an emulation packet counts as lost.
    max_age: Span,
    spacing: Spacing,
    over_provisioning: Option<OverProvisioning>,
    next: Time,
    /// The next one's number.
    number: u32,
    /// Emulation packets without a known outcome, the first one number `first`.
    out: VecDeque<Out>,
    first: u32,
    /// Number of these that are ordinary.
    ordinary: u64,
    /// The round is over when the outcome of all packets below this number is known: a packet sent after the round began.
    round_end: u32,
    round_began: Time,
    /// Emulation packets of the round with a known outcome, and the number of them that were echoed.
    sent: u64,
    returned: u64,
    round_use: RoundUse,
}

impl EmulationSender {
    pub(super) fn new(
        config: &CreditConfig,
        over_provisioning: Option<OverProvisioning>,
        spacing: Spacing,
        now: Time,
    ) -> Self {
        let (wait, longest) = (config.wait(), config.longest);
        Self {
            wait,
            max_age: wait.unwrap_or(longest).max(longest),
            spacing,
            over_provisioning,
            next: now,
            number: 0,
            out: VecDeque::new(),
            first: 0,
            ordinary: 0,
            round_end: 1,
            round_began: now,
            sent: 0,
            returned: 0,
            round_use: RoundUse::Drop,
        }
    }

    /// Returns the send time of the next emulation packet; `Time::NEVER` while credits in hand cover the demand.
    pub(super) fn next(&self, uncovered: u32) -> Time {
        if uncovered > 0 { self.next } else { Time::NEVER }
    }

    /// Sends one at `now`. Returns its number and whether it is over-provisioned: those in flight cover the rest of the
    /// demand.
    pub(super) fn send(&mut self, now: Time, rate: Rate, uncovered: u32) -> (u32, bool) {
        while self.out.front().is_some_and(|out| out.left + self.max_age < now) {
            self.settle(Outcome::Lost);
        }
        if self.out.is_empty() {
            self.begin_round(now, RoundUse::Drop);
        }
        let expendable = self.over_provisioning.is_some_and(|rule| {
            let out = if rule.counts_spared { self.out.len() as u64 } else { self.ordinary };
            // C_expected >= E_out * (1 - max_target_loss)                                         (eq. 2)
            rule.loss.complement().of(out) >= uncovered.into()
        });
        let number = self.number;
        self.number += 1;
        self.out.push_back(Out { left: now, expendable });
        self.ordinary += u64::from(!expendable);
        self.next = now + self.spacing.gap(rate, number);
        (number, expendable)
    }

    /// Records that an emulation packet has passed the host's own queue.
    pub(super) fn on_left(&mut self, number: u32, now: Time) {
        if let Some(out) = number.checked_sub(self.first).and_then(|index| self.out.get_mut(index as usize)) {
            out.left = now;
        }
    }

    /// Removes the oldest one, now that its outcome is known. Returns its send time.
    fn settle(&mut self, outcome: Outcome) -> Option<Time> {
        debug_assert_eq!(self.number - self.first, self.out.len() as u32, "one entry per unresolved packet");
        let out = self.out.pop_front()?;
        self.ordinary -= u64::from(!out.expendable);
        self.first += 1;
        self.sent += 1;
        self.returned += u64::from(outcome == Outcome::Echoed);
        Some(out.left)
    }

    /// Begins a round with the next emulation packet.
    fn begin_round(&mut self, now: Time, round_use: RoundUse) {
        (self.sent, self.returned, self.round_use) = (0, 0, round_use);
        (self.round_began, self.round_end) = (now, self.number + 1);
    }

    /// Processes an echo: `credit` is called with each credit's number and the time for which it is meant. Emulation
    /// packets and echoes keep their order, so older ones that are not echoed are lost. Returns the round if it is over
    /// and judged.
    pub(super) fn on_echo(
        &mut self,
        now: Time,
        echo: Echo,
        mut credit: impl FnMut(u32, Time),
    ) -> Option<EmulationRound> {
        // An emulation packet arrived after it was given up: its send time is no longer known.
        for back in (0..32u32).rev().filter(|back| echo.map >> back & 1 != 0) {
            let number = echo.newest.wrapping_sub(back);
            if number < self.first {
                credit(number, Time::ZERO);
            }
        }
        while self.first <= echo.newest {
            let (number, back) = (self.first, echo.newest - self.first);
            let returned = back < 32 && echo.map >> back & 1 != 0;
            let outcome = if returned { Outcome::Echoed } else { Outcome::Lost };
            let Some(left) = self.settle(outcome) else { break };
            if returned {
                credit(number, self.wait.map_or(now, |wait| left + wait));
            }
        }
        if self.first < self.round_end {
            return None;
        }
        let round = EmulationRound { sent: self.sent, returned: self.returned, elapsed: now.since(self.round_began) };
        let round_use = self.round_use;
        self.begin_round(now, RoundUse::Report);
        (round_use == RoundUse::Report).then_some(round)
    }
}
