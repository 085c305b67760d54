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
    request_at: Time,
    /// The last message was a stop.
    stopped: bool,
    wants_stop: bool,
    /// Not before this.
    next_stop_at: Time,
    last_credit_at: Time,
    /// Arrival times of the credits of the last round trip.
    recent: VecDeque<Time>,
}

impl CreditRequester {
    pub(super) fn new(retry: Span, stop_rule: StopRule, now: Time) -> Self {
        Self {
            retry,
            stop_rule,
            request_at: now,
            stopped: false,
            wants_stop: false,
            next_stop_at: now,
            last_credit_at: now,
            recent: VecDeque::new(),
        }
    }

    /// Returns the time of the next message: a stop at once; a request when the last one got no credit in time, or when
    /// no credit has arrived for a round trip after a stop.
    pub(super) fn next(&self, uncovered: u32, rtt: Span) -> Time {
        let request_at = match (uncovered, self.stopped) {
            (0, _) => Time::NEVER,
            (_, true) => (self.last_credit_at + rtt).max(self.next_stop_at),
            (_, false) => self.request_at,
        };
        if self.wants_stop { self.next_stop_at } else { request_at }
    }

    pub(super) fn act(&mut self, now: Time, uncovered: u32, rtt: Span) -> Option<Signal> {
        if self.next(uncovered, rtt) > now {
            return None;
        }
        if self.wants_stop {
            (self.wants_stop, self.stopped, self.next_stop_at) = (false, true, now + rtt);
            return Some(Signal::Stop);
        }
        (self.stopped, self.request_at) = (false, now.saturating_add(self.retry));
        Some(Signal::Request { packets: uncovered })
    }

    /// Processes a credit that leaves `left` packets uncovered.
    pub(super) fn on_credit(&mut self, now: Time, left: u32, rtt: Span) {
        debug_assert!(
            self.last_credit_at <= now,
            "a credit arrives at {now:?}, before one at {:?}",
            self.last_credit_at
        );
        self.last_credit_at = now;
        self.request_at = now.saturating_add(self.retry);
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|&arrival| arrival + rtt < now) {
            self.recent.pop_front();
        }
        let covered = self.stop_rule == StopRule::Ahead && self.recent.len() >= left as usize;
        self.wants_stop = now >= self.next_stop_at && (left == 0 || covered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handles a round trip longer than the age of the flow: the next request is due a round trip after the last credit.
    #[test]
    fn rtt_may_exceed_the_flow_age() {
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
