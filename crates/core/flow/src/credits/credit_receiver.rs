//! Credit receiver: sends credits, and detects their loss from the data that they trigger. `ExpressPass` §3, as in its
//! simulator.

use alloc::collections::VecDeque;

use laws::{ControlLaw, LawActions, Notification};
use units::{Span, Time};

use super::Spacing;

/// A credit is declared lost when no data has arrived for it within this multiple of the maximum round trip: the
/// maximum of the network, or the smoothed RTT of credits and data where data queues make that longer.
const LIFE: u32 = 4;

/// Receiver state of a flow with receiver-driven credits, under the law `L`.
#[derive(Debug)]
pub struct CreditReceiver<L> {
    law: L,
    spacing: Spacing,
    stops_at_demand: bool,
    active: bool,
    next: Time,
    /// Credits that may still be sent, where there is a limit.
    left: u32,
    /// The next one's number.
    number: u32,
    /// Send times of credits without data so far; the first one is number `expected`.
    out: VecDeque<Time>,
    expected: u32,
    /// Credits since the last update with a known outcome, and those that were lost.
    resolved: u64,
    lost: u64,
    updated: Time,
    rtt: Span,
    /// Maximum time that a credit and its data take if no data waits.
    longest: Span,
    sent: u64,
}

/// Parameters of a receiver that sends credits.
#[derive(Clone, Copy, Debug)]
pub struct CreditingConfig {
    /// Distance of credits.
    pub spacing: Spacing,
    /// Credits stop once the requested number has been sent.
    pub stops_at_demand: bool,
    /// Base round trip of the flow's path.
    pub base_rtt: Span,
    /// Maximum base round trip of the network, waits of credits in their queues included.
    pub longest: Span,
}

impl<L: ControlLaw> CreditReceiver<L> {
    /// Creates the state of a flow before its first packet.
    pub fn new(law: L, config: CreditingConfig) -> Self {
        let CreditingConfig { spacing, stops_at_demand, base_rtt, longest } = config;
        Self {
            law,
            spacing,
            stops_at_demand,
            active: false,
            next: Time::NEVER,
            left: 0,
            number: 0,
            out: VecDeque::new(),
            expected: 0,
            resolved: 0,
            lost: 0,
            updated: Time::ZERO,
            rtt: base_rtt,
            longest,
            sent: 0,
        }
    }

    /// Credits sent, and how often the law acted.
    pub fn stats(&self) -> (u64, LawActions) {
        (self.sent, self.law.actions())
    }

    /// Returns the number of credits with an unknown outcome.
    pub fn unresolved(&self) -> usize {
        self.out.len()
    }

    /// Processes a sender's request for credits. A request while credits are sent only renews the demand.
    pub fn on_request(&mut self, now: Time, packets: u32) {
        self.left = packets;
        if self.active {
            return;
        }
        self.law.on_notification(&Notification::Request { packets });
        self.active = true;
        self.next = now;
        (self.resolved, self.lost, self.updated) = (0, 0, now);
    }

    /// Stops sending credits: the sender has stopped them, or all data has arrived.
    pub fn stop(&mut self) {
        self.active = false;
        self.next = Time::NEVER;
    }

    /// Records data that was sent for a credit. Credits and data keep their order, so older credits without data are
    /// lost.
    pub fn on_data(&mut self, now: Time, number: u32) {
        let Some(gap) = number.checked_sub(self.expected).filter(|&gap| (gap as usize) < self.out.len()) else {
            return;
        };
        debug_assert_eq!(self.number - self.expected, self.out.len() as u32, "one entry per unresolved credit");
        self.lost += u64::from(gap);
        self.resolved += u64::from(gap) + 1;
        self.expected = number + 1;
        if let Some(left) = self.out.drain(..=gap as usize).next_back() {
            // 0.8 of the old and 0.2 of the new.
            self.rtt = Span::from_ps((4 * self.rtt.ps() + now.since(left).ps()) / 5);
        }
    }

    /// Declares credits that are too old to trigger data lost. Otherwise a failed path would keep up the rate, and keep
    /// credits in memory, until it recovers.
    fn expire_credits(&mut self, now: Time) {
        let life = self.longest.max(self.rtt).times(LIFE);
        while self.out.front().is_some_and(|&left| left + life < now) {
            self.out.pop_front();
            self.expected += 1;
            self.lost += 1;
            self.resolved += 1;
        }
    }

    /// Returns the next time at which [`CreditReceiver::act`] must be called.
    pub fn next_action(&self) -> Time {
        self.next
    }

    /// Returns the number of the credit to send at `now`, if any.
    pub fn act(&mut self, now: Time) -> Option<u32> {
        if self.next > now {
            return None;
        }
        self.expire_credits(now);
        let elapsed = now.since(self.updated);
        if self.resolved > 0 && elapsed >= self.rtt {
            let (sent, returned) = (self.resolved, self.resolved - self.lost);
            self.law.on_notification(&Notification::Credits { sent, returned, elapsed, rtt: self.rtt });
            (self.resolved, self.lost, self.updated) = (0, 0, now);
        }
        debug_assert!(self.active && self.lost <= self.resolved, "{} of {} credits are lost", self.lost, self.resolved);
        let number = self.number;
        self.number += 1;
        self.sent += 1;
        self.out.push_back(now);
        self.left = self.left.saturating_sub(1);
        if self.stops_at_demand && self.left == 0 {
            self.stop();
        } else {
            self.next = now + self.spacing.gap(self.law.credit_rate(), number);
        }
        Some(number)
    }
}
