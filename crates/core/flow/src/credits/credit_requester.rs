//! Sender of a flow with receiver-driven credits: requests them, and stops them. `ExpressPass` §3 and its simulator: a stop
//! is sent when nothing is left, or when the credits of the last round trip cover the packets left; it is repeated once a
//! round trip while credits still arrive.

use alloc::collections::VecDeque;

use units::{Span, Time};

use super::Signal;

/// Time of the stop message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StopRule {
    /// No packet waits for a credit.
    AtEnd,
    /// The number of credits in the last round trip equals the number of waiting packets.
    Ahead,
}

#[derive(Debug)]
pub(super) struct CreditRequester {
    retry: Span,
    stop_rule: StopRule,
    /// Time of the next request while the receiver is not known to send credits.
    ask_at: Time,
    /// The last message was a stop.
    stopped: bool,
    wants_stop: bool,
    /// Not before this.
    stop_again: Time,
    heard: Time,
    /// Arrival times of the credits of the last round trip.
    recent: VecDeque<Time>,
}

impl CreditRequester {
    pub(super) fn new(retry: Span, stop_rule: StopRule, now: Time) -> Self {
        Self {
            retry,
            stop_rule,
            ask_at: now,
            stopped: false,
            wants_stop: false,
            stop_again: now,
            heard: now,
            recent: VecDeque::new(),
        }
    }

    /// Returns the time of the next message: a stop at once; a request when the last one got no credit in time, or when
    /// no credit has arrived for a round trip after a stop.
    pub(super) fn next(&self, uncovered: u32, rtt: Span) -> Time {
        let ask = match (uncovered, self.stopped) {
            (0, _) => Time::NEVER,
            (_, true) => (self.heard + rtt).max(self.stop_again),
            (_, false) => self.ask_at,
        };
        if self.wants_stop { self.stop_again } else { ask }
    }

    pub(super) fn act(&mut self, now: Time, uncovered: u32, rtt: Span) -> Option<Signal> {
        if self.next(uncovered, rtt) > now {
            return None;
        }
        if self.wants_stop {
            (self.wants_stop, self.stopped, self.stop_again) = (false, true, now + rtt);
            return Some(Signal::Stop);
        }
        (self.stopped, self.ask_at) = (false, now.saturating_add(self.retry));
        Some(Signal::Request { packets: uncovered })
    }

    /// Processes a credit that leaves `left` packets uncovered.
    pub(super) fn on_credit(&mut self, now: Time, left: u32, rtt: Span) {
        debug_assert!(self.heard <= now, "a credit arrives at {now:?}, before one at {:?}", self.heard);
        self.heard = now;
        self.ask_at = now.saturating_add(self.retry);
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|&came| came + rtt < now) {
            self.recent.pop_front();
        }
        let covered = self.stop_rule == StopRule::Ahead && self.recent.len() >= left as usize;
        self.wants_stop = now >= self.stop_again && (left == 0 || covered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handles a round trip longer than the age of the flow: the next request is due a round trip after the last credit.
    #[test]
    fn a_round_trip_may_be_longer_than_time_has_run() {
        let (rtt, longer) = (Span::from_us(10), Span::from_ms(5));
        let mut requests = CreditRequester::new(Span::from_ms(100), StopRule::Ahead, Time::ZERO);
        assert_eq!(requests.act(Time::ZERO, 3, rtt), Some(Signal::Request { packets: 3 }));
        requests.on_credit(Time::from_us(20), 0, rtt);
        assert_eq!(requests.act(Time::from_us(20), 0, rtt), Some(Signal::Stop));
        assert_eq!(requests.next(0, longer), Time::NEVER);
        // The same number was lost.
        assert_eq!(requests.next(2, longer), Time::from_us(20) + longer);
        assert_eq!(requests.next(2, rtt), Time::from_us(30));
        assert_eq!(requests.act(Time::from_us(30), 2, rtt), Some(Signal::Request { packets: 2 }));
    }
}
