//! How long a sender was idle, for the law's restart (RFC 2861 §3.1, RFC 5681 §4.1; Linux's
//! `tcp_slow_start_after_idle_check`): nothing was in flight, and nothing left for longer than a retransmission timeout.

use laws::Notification;
use units::{Span, Time};

/// When a packet last left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    last_sent: Option<Time>,
}

impl Idle {
    /// None has left.
    pub(crate) const fn new() -> Self {
        Self { last_sent: None }
    }

    /// A packet leaves.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: Time) {
        self.last_sent = Some(now);
    }

    /// What the law is to hear before a packet leaves, if nothing is in flight and the timeout is this long.
    pub(crate) fn restart(&self, now: Time, timeout: Span) -> Option<Notification<'static>> {
        let idle = now.since(self.last_sent?);
        timeouts_in(idle, timeout).map(|timeouts| Notification::Idle { idle, timeouts })
    }
}

/// How many timeouts shrink the window of a flow that was idle for so long; none if that is at most one timeout. The
/// quotient is rounded up, less one, because `tcp_cwnd_restart` takes one timeout off before it looks.
fn timeouts_in(idle: Span, timeout: Span) -> Option<u32> {
    let timeouts = || (idle.unsigned_ps() - 1) / timeout.unsigned_ps().max(1);
    (idle > timeout).then(|| u32::try_from(timeouts()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_counted_as_linux_counts_them() {
        let expected = [(1_000, None), (1_001, Some(1)), (2_000, Some(1)), (2_001, Some(2)), (10_000, Some(9))];
        for (idle_us, timeouts) in expected {
            assert_eq!(timeouts_in(Span::from_us(idle_us), Span::from_us(1_000)), timeouts, "{idle_us}");
        }
    }

    #[test]
    fn who_never_sent_was_not_idle() {
        let mut idle = Idle::new();
        assert!(idle.restart(Time::from_ms(9_000), Span::from_ms(1)).is_none());
        idle.sent(Time::from_ms(9_000));
        assert!(idle.restart(Time::from_ms(9_000), Span::from_ms(1)).is_none());
        let Some(Notification::Idle { idle, timeouts }) = idle.restart(Time::from_ms(9_003), Span::from_ms(1)) else {
            panic!("3 ms are more than a timeout of 1 ms");
        };
        assert_eq!((idle, timeouts), (Span::from_ms(3), 2));
    }
}
