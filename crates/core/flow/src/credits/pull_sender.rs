//! Sender of a flow with credits from its receiver's host, which divides its link among flows. The sender requests a number
//! of credits, counted from the flow's start, and more of them for lost packets. Credits are counted, too, so the next credit
//! reveals a lost one. If none arrives for a while, the sender repeats the request, and the host repeats its last credit.

use units::{Span, Time};

use super::Signal;

#[derive(Debug)]
pub(super) struct PullSender {
    retry: Span,
    /// Number of packets that may be sent without a credit.
    free: u32,
    requested: u32,
    /// Number of credits that arrived, including lost ones before them.
    received: u32,
    request_at: Time,
}

impl PullSender {
    pub(super) fn new(retry: Span, free: u32) -> Self {
        Self { retry, free, requested: 0, received: 0, request_at: Time::ZERO }
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Records a packet that is sent without a credit.
    pub(super) fn spend_free(&mut self) {
        self.free = self.free.saturating_sub(1);
    }

    /// Returns the number of credits that are requested and have not arrived.
    fn open(&self) -> u32 {
        self.requested.saturating_sub(self.received)
    }

    /// Returns the time of the next request, where no credit in hand covers `uncovered` packets.
    pub(super) fn next(&self, uncovered: u32) -> Time {
        match uncovered.saturating_sub(self.free) {
            0 => Time::NEVER,
            wanted if wanted > self.open() => Time::ZERO,
            _ => self.request_at,
        }
    }

    pub(super) fn act(&mut self, now: Time, uncovered: u32) -> Option<Signal> {
        if self.next(uncovered) > now {
            return None;
        }
        self.requested = self.requested.max(self.received.saturating_add(uncovered.saturating_sub(self.free)));
        self.request_at = now + self.retry;
        Some(Signal::Request { packets: self.requested })
    }

    /// Records a credit. Returns whether it is valid: late credits, overtaken by others, are not.
    pub(super) fn on_credit(&mut self, now: Time, number: u32) -> bool {
        self.request_at = now + self.retry;
        let is_valid = number >= self.received;
        if is_valid {
            self.received = number.saturating_add(1);
        }
        is_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cumulative() {
        let (retry, us) = (Span::from_us(100), Time::from_us);
        let mut pulls = PullSender::new(retry, 2);
        // Ten packets, two of them free.
        assert_eq!(pulls.next(2), Time::NEVER);
        assert_eq!(pulls.act(us(0), 10), Some(Signal::Request { packets: 8 }));
        assert_eq!((pulls.next(10), pulls.act(us(1), 10)), (us(100), None));
        pulls.spend_free();
        pulls.spend_free();
        // The first credit is lost, as the second one shows: seven are open and six on their way.
        assert!(pulls.on_credit(us(20), 1));
        assert_eq!(pulls.act(us(20), 7), Some(Signal::Request { packets: 9 }));
        // A late credit is not valid, and a repeated one is not, either.
        assert!(!pulls.on_credit(us(21), 0) && !pulls.on_credit(us(22), 1));
        // Silence: the request is repeated.
        assert_eq!(pulls.next(7), us(122));
        assert_eq!(pulls.act(us(122), 7), Some(Signal::Request { packets: 9 }));
        // All credits have arrived, and no more are needed until three packets are lost.
        assert!((2..9).all(|number| pulls.on_credit(us(130), number)));
        assert_eq!(pulls.next(0), Time::NEVER);
        assert_eq!(pulls.act(us(140), 3), Some(Signal::Request { packets: 12 }));
    }
}
