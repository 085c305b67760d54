//! Use of the window by a sender, for the law: idle periods, and the validation of a window that was not full for long.
//!
//! - **Restart** (RFC 2861 §3.1, RFC 5681 §4.1; Linux's `tcp_slow_start_after_idle_check`). Nothing was in flight, and
//!   nothing was sent for longer than a retransmission timeout: the law is notified of the idle period, before the next
//!   packet is sent.
//! - **Validation** ([`Validation`]): packets were in flight, but less than the window allows. The rules are in
//!   [`laws::validation`]; when they apply is decided here.
//!
//! Readings of RFC 7661: pipeACK is the maximum delivered in the round trip of an acknowledged packet, over [`SAMPLING`] or
//! three round trips, in five measuring periods, as §4.2 suggests. Packets of the first round trip measure a part of it, so
//! pipeACK is undefined until a packet is acknowledged that was sent after the first acknowledgement. In slow start a window
//! is twice what was acknowledged in the round trip before it (§4.2): so pipeACK is compared with the window at the beginning
//! of a round trip, not with what has grown in it since. A window without room for another packet is full, so it may be one
//! packet more. A sender may restart from the initial window at any time (RFC 5681 §4.1), so that window counts as used:
//! otherwise the few bytes of a handshake would slow down slow start. An episode of losses or marks begins with the first of
//! them that was sent after the last episode began (as laws have it), and its recovery ends with the first acknowledgement of
//! a packet that left after that. "R" is what was sent again in between.

use alloc::boxed::Box;

use laws::{Notification, validation};
use units::{Bytes, Span, Time};

use crate::law_state::LawState;

/// Rules for a window that the sender does not use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Validation {
    /// No rule: an unused window stops growing and keeps its size.
    #[default]
    Off,
    /// Linux's rule (RFC 2861 §3.2; `tcp_cwnd_validate`): after a retransmission timeout in which the window was never full,
    /// it falls half of the way to the used amount.
    Linux,
    /// RFC 7661: a loss or mark cuts the used amount, and five minutes without use halve the window. A window does not grow
    /// either by the acknowledgement of a packet since which neither it nor the pacer has limited the sender (RFC 9002 §7.8):
    /// the NIC was slower.
    Rfc7661,
}

/// Rules that are enabled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CwndValidationConfig {
    /// The window shrinks when the sender was idle.
    pub restart: bool,
    /// Rule for a window that is not used.
    pub validation: Validation,
}

/// Minimum time over which pipeACK is the maximum of its samples (RFC 7661 §4.2: one second, or three round trips).
const SAMPLING: Span = Span::from_s(1);

/// The measuring periods in that time (RFC 7661 §4.2 suggests a small number).
const PERIODS: usize = 5;

/// Maximum time for which an unused window may be kept (RFC 7661 §4.4.3).
const NON_VALIDATED_PERIOD: Span = Span::from_s(300);

/// Use of the window by a subflow.
#[derive(Debug)]
pub(crate) struct CwndUsage {
    restart: bool,
    /// Last time at which a packet was sent.
    last_sent: Option<Time>,
    /// Last time at which the window was full.
    full_at: Option<Time>,
    /// Last time at which the pacer delayed packets, unless data ran out since then with the window not full: with so
    /// little data the window would not have been full without pacing, either (RFC 9002 §7.8).
    paced_at: Option<Time>,
    validation: Option<Box<Unused>>,
}

/// The state of either validation.
#[derive(Debug)]
struct Unused {
    rule: Validation,
    /// Initial window of the law.
    initial: Bytes,
    /// Linux: last time at which the window was full or was lowered.
    full_at: Time,
    /// Linux: maximum in flight since then.
    used: Bytes,
    pipe: PipeAck,
    /// Time of the first acknowledgement.
    acked_since: Option<Time>,
    /// Beginning of the present round trip, which ends with the acknowledgement of a packet sent later, and the window then.
    round_since: Time,
    round_window: Bytes,
    /// Time since which the window has not been used; none while it is.
    since: Option<Time>,
    episode: Option<UsagePeriod>,
    /// Start of the last episode.
    episode_at: Option<Time>,
}

/// Losses or marks, and the recovery from them, in a window that was not used.
#[derive(Clone, Copy, Debug)]
struct UsagePeriod {
    pipe: Bytes,
    flight: Bytes,
    resent: Bytes,
}

/// An acknowledged packet, for the measurement of pipeACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PipeSample {
    pub(crate) now: Time,
    pub(crate) sent_at: Time,
    /// Payload delivered in its round trip.
    pub(crate) delivered: Bytes,
    /// The smoothed round trip.
    pub(crate) rtt: Span,
    /// The law's window.
    pub(crate) window: Bytes,
    /// Payload of a full packet.
    pub(crate) mss: u32,
}

impl Unused {
    /// Returns whether a window may grow: half of it is in use, by RFC 7661, or it is the initial one. A window may be a packet
    /// larger than what fills it.
    fn is_valid(&self, window: Bytes, mss: u32) -> bool {
        let window = window.min(self.round_window);
        if window <= self.initial {
            return true;
        }
        let pipe = self.pipe.max().map(|pipe| pipe.saturating_add(Bytes::new(mss.into())));
        validation::is_valid(window, pipe)
    }
}

impl CwndUsage {
    pub(crate) fn new(rules: CwndValidationConfig, initial: Bytes, now: Time) -> Self {
        let validation = (rules.validation != Validation::Off).then(|| {
            Box::new(Unused {
                rule: rules.validation,
                initial,
                full_at: now,
                used: Bytes::ZERO,
                pipe: PipeAck::new(now),
                acked_since: None,
                round_since: now,
                round_window: initial,
                since: None,
                episode: None,
                episode_at: None,
            })
        });
        Self { restart: rules.restart, last_sent: None, full_at: None, paced_at: None, validation }
    }

    /// Returns the notification for the law before a packet is sent, if everything sent before is acknowledged;
    /// `timeout` is the retransmission timeout.
    pub(crate) fn before_sending(&self, now: Time, timeout: Span) -> Option<Notification<'static>> {
        let idle = now.since(self.last_sent.filter(|_| self.restart)?);
        timeouts_in(idle, timeout).map(|timeouts| Notification::Idle { now, idle, timeouts })
    }

    /// Records that a packet was sent, with `retransmitted` bytes of retransmission.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, retransmitted: Bytes) {
        self.last_sent = Some(now);
        if let Some(episode) = self.validation.as_mut().and_then(|unused| unused.episode.as_mut()) {
            episode.resent += retransmitted;
        }
    }

    /// Records a limit that is in effect after a packet was sent: the window has no room for a packet of `mss` bytes, or the
    /// pacer delays the next one.
    #[inline]
    pub(crate) fn note_limits<L>(&mut self, now: Time, law_state: &LawState<L>, mss: u32) {
        if law_state.is_full(mss) {
            self.full_at = Some(now);
        }
        if law_state.pacer.next() > now {
            self.paced_at = Some(now);
        }
    }

    /// Records that nothing is left to send while the window has room.
    pub(crate) fn note_lack(&mut self) {
        self.paced_at = None;
    }

    /// Returns whether neither window nor pacer has limited the sender since a packet was sent at `sent_at`.
    pub(crate) fn is_unlimited_since(&self, sent_at: Time) -> bool {
        self.full_at.max(self.paced_at).is_none_or(|at| at < sent_at)
    }

    /// Returns whether the rules are those of RFC 7661.
    pub(crate) fn follows_rfc7661(&self) -> bool {
        self.validation.as_ref().is_some_and(|unused| unused.rule == Validation::Rfc7661)
    }

    /// Records that no more packets are sent for now, because the window has no room for a packet of `mss` bytes or for
    /// another reason; `timeout` is the path's. Returns the notification for the law.
    pub(crate) fn after_burst<L>(
        &mut self,
        now: Time,
        law_state: &LawState<L>,
        mss: u32,
        timeout: Span,
    ) -> Option<Notification<'static>> {
        let unused = self.validation.as_mut().filter(|unused| unused.rule == Validation::Linux)?;
        if law_state.is_full(mss) {
            (unused.full_at, unused.used) = (now, Bytes::ZERO);
            return None;
        }
        unused.used = unused.used.max(law_state.in_flight);
        if now.since(unused.full_at) < timeout {
            return None;
        }
        let used = core::mem::replace(&mut unused.used, Bytes::ZERO);
        unused.full_at = now;
        validation::after_timeout(law_state.send_limits.window, used, unused.initial)
    }

    /// Prepares for the acknowledgement of a packet sent at `sent_at`, which is about to be passed to the law. Returns whether
    /// the window is in use, so that it may grow. `mss` is the payload of a full packet.
    pub(crate) fn before_ack(&mut self, now: Time, sent_at: Time, window: Bytes, mss: u32) -> bool {
        let unused = self.validation.as_mut().filter(|unused| unused.rule == Validation::Rfc7661);
        unused.is_none_or(|unused| {
            if sent_at >= unused.round_since {
                (unused.round_since, unused.round_window) = (now, window);
            }
            unused.is_valid(window, mss)
        })
    }

    /// Records the acknowledgement of a packet. Returns the notification for the law after that.
    pub(crate) fn acked(&mut self, sample: &PipeSample) -> Option<Notification<'static>> {
        let &PipeSample { now, sent_at, delivered, rtt, window, mss } = sample;
        let unused = self.validation.as_mut().filter(|unused| unused.rule == Validation::Rfc7661)?;
        if sent_at >= *unused.acked_since.get_or_insert(now) {
            unused.pipe.sample(now, delivered, SAMPLING.max(rtt.times(3)));
        }
        if unused.episode_at.is_some_and(|began| sent_at >= began)
            && let Some(UsagePeriod { pipe, flight, resent }) = unused.episode.take()
        {
            return validation::after_recovery(window, pipe, flight, resent);
        }
        if unused.is_valid(window, mss) {
            unused.since = None;
            return None;
        }
        let since = *unused.since.get_or_insert(now);
        if now.since(since) < NON_VALIDATED_PERIOD {
            return None;
        }
        unused.since = Some(now);
        validation::after_period(window, unused.initial)
    }

    /// Records losses or marks, before they are reported to the law: the newest of these packets was sent at `sent_at`,
    /// with `flight` in flight, they included. Returns a notification for the law to be sent first.
    pub(crate) fn before_reduction(
        &mut self,
        now: Time,
        sent_at: Time,
        flight: Bytes,
        window: Bytes,
        mss: u32,
    ) -> Option<Notification<'static>> {
        let unused = self.validation.as_mut().filter(|unused| unused.rule == Validation::Rfc7661)?;
        let pipe = unused.pipe.max().filter(|_| unused.episode_at.is_none_or(|began| sent_at >= began))?;
        if unused.is_valid(window, mss) {
            return None;
        }
        unused.episode_at = Some(now);
        unused.episode = Some(UsagePeriod { pipe, flight, resent: Bytes::ZERO });
        validation::before_loss(window, pipe, flight)
    }
}

/// Returns the number of timeouts that shrink the window of a flow idle for `idle`; none if that is at most one
/// timeout. The quotient is rounded up, less one, because `tcp_cwnd_restart` subtracts one timeout before it looks.
fn timeouts_in(idle: Span, timeout: Span) -> Option<u32> {
    let timeouts = || (idle.unsigned_ps() - 1) / timeout.unsigned_ps().max(1);
    (idle > timeout).then(|| u32::try_from(timeouts()).unwrap_or(u32::MAX))
}

/// Maximum payload acknowledged in a round trip, over the recent past.
#[derive(Debug)]
struct PipeAck {
    /// The most in each measuring period, the current one first; none where there was no sample.
    periods: [Option<Bytes>; PERIODS],
    began: Time,
}

impl PipeAck {
    fn new(now: Time) -> Self {
        Self { periods: [None; PERIODS], began: now }
    }

    fn sample(&mut self, now: Time, delivered: Bytes, window: Span) {
        let period = window.over(PERIODS as u32);
        let mut passed = 0;
        while now.since(self.began) >= period && passed < PERIODS {
            self.periods.rotate_right(1);
            self.periods[0] = None;
            self.began += period;
            passed += 1;
        }
        if passed == PERIODS {
            self.began = now;
        }
        self.periods[0] = self.periods[0].max(Some(delivered));
    }

    fn max(&self) -> Option<Bytes> {
        self.periods.iter().copied().max().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_timeouts_match_linux() {
        let expected = [(1_000, None), (1_001, Some(1)), (2_000, Some(1)), (2_001, Some(2)), (10_000, Some(9))];
        for (idle_us, timeouts) in expected {
            assert_eq!(timeouts_in(Span::from_us(idle_us), Span::from_us(1_000)), timeouts, "{idle_us}");
        }
    }

    #[test]
    fn pipe_ack_is_the_recent_maximum() {
        let mut pipe = PipeAck::new(Time::ZERO);
        assert_eq!(pipe.max(), None);
        let mut at = |ms, delivered| {
            pipe.sample(Time::from_ms(ms), Bytes::new(delivered), Span::from_s(1));
            pipe.max().map(Bytes::get)
        };
        assert_eq!([at(10, 500), at(100, 400), at(210, 300)], [Some(500); 3]);
        // Five periods of 200 ms: the first ends at 200 ms and is forgotten from 1 s on.
        assert_eq!([at(999, 100), at(1_000, 100), at(1_200, 100)], [Some(500), Some(300), Some(100)]);
        // After a long silence only new samples count.
        assert_eq!(at(60_000, 7), Some(7));
        assert_eq!(at(60_100, 3), Some(7));
    }
}
