//! The receiver that sends credits: when one leaves, and what the data that answers them says of their loss. `ExpressPass`
//! §3, as its simulator has it.

use alloc::collections::VecDeque;

use laws::{Acted, ControlLaw, Notification};
use units::{Span, Time};

use super::Spacing;

/// A credit is held for lost when no data has answered it for so many times the longest round trip: the longest of the
/// network, or the smoothed one of credits and data where queues of data make that longer.
const LIFE: u32 = 4;

/// The receiver's part of a flow whose receiver sends credits, under the law `L`.
#[derive(Debug)]
pub struct Crediting<L> {
    law: L,
    spacing: Spacing,
    stops_at_demand: bool,
    active: bool,
    next: Time,
    /// Credits that may still be sent, where there is a limit.
    left: u32,
    /// The next one's number.
    number: u32,
    /// When each left of which no data has come, the first of them number `expected`.
    out: VecDeque<Time>,
    expected: u32,
    /// Since the last update: credits of which it is known what became of them, and those that were lost.
    known: u64,
    lost: u64,
    updated: Time,
    rtt: Span,
    /// The longest that a credit and its data take where no data waits.
    longest: Span,
    sent: u64,
}

impl<L: ControlLaw> Crediting<L> {
    /// A flow of which nothing has come, with the base round trip of its path and the longest of the network, waits of
    /// credits in their queues included.
    pub fn new(law: L, spacing: Spacing, stops_at_demand: bool, base_rtt: Span, longest: Span) -> Self {
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
            known: 0,
            lost: 0,
            updated: Time::ZERO,
            rtt: base_rtt,
            longest,
            sent: 0,
        }
    }

    /// Credits sent, and how often the law acted.
    pub fn stats(&self) -> (u64, Acted) {
        (self.sent, self.law.acted())
    }

    /// Credits of which it is not known what became of them.
    pub fn unanswered(&self) -> usize {
        self.out.len()
    }

    /// The sender asks for credits. A request while credits are sent only renews the demand.
    pub fn on_request(&mut self, now: Time, packets: u32) {
        self.left = packets;
        if self.active {
            return;
        }
        self.law.on_notification(&Notification::Request { packets });
        self.active = true;
        self.next = now;
        (self.known, self.lost, self.updated) = (0, 0, now);
    }

    /// No more credits: the sender asks for none, or all data has come.
    pub fn stop(&mut self) {
        self.active = false;
        self.next = Time::NEVER;
    }

    /// Data comes that answers a credit. Credits and data keep their order, so what is older and not answered is lost.
    pub fn on_data(&mut self, now: Time, number: u32) {
        let Some(gap) = number.checked_sub(self.expected).filter(|&gap| (gap as usize) < self.out.len()) else {
            return;
        };
        self.lost += u64::from(gap);
        self.known += u64::from(gap) + 1;
        self.expected = number + 1;
        if let Some(left) = self.out.drain(..=gap as usize).next_back() {
            // 0.8 of the old and 0.2 of the new.
            self.rtt = Span::from_ps((4 * self.rtt.ps() + now.since(left).ps()) / 5);
        }
    }

    /// Credits too old to be answered are lost. Without this a path that is down would keep the rate up, and credits in
    /// memory, for as long as it is.
    fn give_up(&mut self, now: Time) {
        let life = self.longest.max(self.rtt).times(LIFE);
        while self.out.front().is_some_and(|&left| left + life < now) {
            self.out.pop_front();
            self.expected += 1;
            self.lost += 1;
            self.known += 1;
        }
    }

    /// When [`Crediting::act`] wants to be called.
    pub fn next_action(&self) -> Time {
        self.next
    }

    /// The number of the credit that leaves at `now`, if one does.
    pub fn act(&mut self, now: Time) -> Option<u32> {
        if self.next > now {
            return None;
        }
        self.give_up(now);
        let elapsed = now.since(self.updated);
        if self.known > 0 && elapsed >= self.rtt {
            let (sent, returned) = (self.known, self.known - self.lost);
            self.law.on_notification(&Notification::Credits { sent, returned, elapsed, rtt: self.rtt });
            (self.known, self.lost, self.updated) = (0, 0, now);
        }
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
