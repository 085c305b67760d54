//! Loss recovery of BBR: duration of the window reduction, and restoration of the window.
//!
//! Linux's `tcp_bbr.c` follows the state of TCP's own recovery (`bbr_set_cwnd_to_recover_or_restore`). A law does not
//! receive that state and derives it:
//!
//! - A loss begins it. More losses prolong it.
//! - Its first round trip conserves packets: what is acknowledged may be sent, no more. That round trip begins with the
//!   acknowledgement after the loss, and so does the law's own round. A timeout has none.
//! - It ends when a packet sent after the last detected loss is acknowledged, and as much has been acknowledged
//!   after the first round trip as was lost. A host sends what is lost before anything new, so all of it has come then.
//!   Linux waits until everything sent before is acknowledged, which is the same for a host that resends all.

use units::{Bytes, Time};

use super::packets;
use crate::Ack;

/// Progress of a flow through loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Recovery {
    phase: RecoveryPhase,
    missing: u32, // packets lost, less those acknowledged since
    found: Time,  // when the last loss was
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum RecoveryPhase {
    /// No packet is missing.
    Open,
    /// A loss was found, and nothing was acknowledged since.
    Begun,
    /// The first round trip.
    Conserving,
    /// Later ones: the window grows by the acknowledged bytes.
    Growing,
    /// The same, after a timeout.
    Restarting,
}

impl Recovery {
    /// No packet is missing.
    pub(super) const OPEN: Self = Self { phase: RecoveryPhase::Open, missing: 0, found: Time::ZERO };

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, RecoveryPhase::Open)
    }

    /// Returns whether the bytes in flight stay constant (packet conservation).
    pub(super) const fn conserves(&self) -> bool {
        matches!(self.phase, RecoveryPhase::Begun | RecoveryPhase::Conserving)
    }

    /// Returns whether a timeout has emptied the pipe, so that rate samples reflect the restart.
    pub(super) const fn restarts(&self) -> bool {
        matches!(self.phase, RecoveryPhase::Restarting)
    }

    /// Records `lost` bytes as lost while others stay in flight.
    pub(super) fn lose(self, lost: Bytes, now: Time, mss: Bytes) -> Self {
        let phase = match self.phase {
            RecoveryPhase::Open => RecoveryPhase::Begun,
            going => going,
        };
        self.entered(phase, lost, now, mss)
    }

    /// Records `lost` bytes as lost by a timeout that emptied the pipe.
    pub(super) fn time_out(self, lost: Bytes, now: Time, mss: Bytes) -> Self {
        self.entered(RecoveryPhase::Restarting, lost, now, mss)
    }

    fn entered(self, phase: RecoveryPhase, lost: Bytes, now: Time, mss: Bytes) -> Self {
        Self { phase, missing: self.missing.saturating_add(packets(lost, mss)), found: now }
    }

    /// Starts packet conservation if a loss was just found. Returns the next state, and whether a round begins at the loss.
    pub(super) fn begin_round(self) -> (Self, bool) {
        match self.phase {
            RecoveryPhase::Begun => (Self { phase: RecoveryPhase::Conserving, ..self }, true),
            _ => (self, false),
        }
    }

    /// The same with packets of another size.
    pub(super) fn counted_in(self, before: Bytes, mss: Bytes) -> Self {
        Self { missing: packets(before.times(self.missing.into()), mss), ..self }
    }

    /// Ends packet conservation at the end of a round.
    pub(super) fn end_round(self) -> Self {
        match self.phase {
            RecoveryPhase::Conserving => Self { phase: RecoveryPhase::Growing, ..self },
            _ => self,
        }
    }

    /// Returns the recovery after `ack`. If `ack` ended a round, [`Recovery::end_round`] comes first.
    pub(super) fn next(self, ack: &Ack, mss: Bytes) -> Self {
        if !matches!(self.phase, RecoveryPhase::Growing | RecoveryPhase::Restarting) {
            return self;
        }
        let missing = self.missing.saturating_sub(packets(ack.acked, mss));
        if missing == 0 && ack.sent_at >= self.found { Self::OPEN } else { Self { missing, ..self } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};
    use units::Span;

    const MSS: Bytes = PATH.mss;

    fn at(us: u64) -> Time {
        Time::from_us(1_000_000 + us)
    }

    #[test]
    fn recovery_ends_when_the_lost_packet_is_acked() {
        let mut recovery = Recovery::OPEN.lose(MSS, at(100), MSS);
        assert!(recovery.conserves() && !recovery.is_open());
        // The acknowledgement after the loss restarts the round, once.
        let (begun, restarts) = recovery.begin_round();
        assert!(restarts && begun.conserves());
        assert!(!begun.begin_round().1);
        // Acknowledgements of packets sent before it change nothing.
        recovery = begun.next(&ack(&PATH, 105), MSS);
        assert_eq!(recovery, begun);
        // The packet was resent at 100 us; a base RTT of 14 us later it ends both.
        recovery = recovery.end_round().next(&ack(&PATH, 114), MSS);
        assert_eq!(recovery, Recovery::OPEN);
    }

    #[test]
    fn more_losses_prolong_recovery() {
        let mut recovery = Recovery::OPEN.lose(MSS, at(100), MSS).begin_round().0;
        recovery = recovery.lose(MSS.times(2), at(106), MSS);
        // Three packets are missing. The first round ends at 114 us, the last of the three was sent at 106 us.
        recovery = recovery.end_round().next(&ack(&PATH, 114), MSS);
        assert!(!recovery.conserves() && !recovery.is_open());
        recovery = recovery.next(&ack(&PATH, 117), MSS);
        // No packet is missing, but this one was sent at 105 us.
        recovery = recovery.next(&ack(&PATH, 119), MSS);
        assert_eq!((recovery.missing, recovery.is_open()), (0, false));
        assert!(recovery.next(&ack(&PATH, 120), MSS).is_open());
    }

    #[test]
    fn after_a_timeout_recovery_waits_for_all_lost_bytes() {
        let mut recovery = Recovery::OPEN.time_out(MSS.times(20), at(100), MSS);
        assert!(recovery.restarts() && !recovery.begin_round().1);
        for us in 114..133 {
            recovery = recovery.end_round().next(&ack(&PATH, us), MSS);
            assert!(recovery.restarts());
        }
        assert!(recovery.end_round().next(&ack(&PATH, 133), MSS).is_open());
        // A timeout in the first round trip ends it.
        let conserving = Recovery::OPEN.lose(MSS, at(100), MSS).begin_round().0;
        assert!(!conserving.time_out(MSS, at(110), MSS).conserves());
    }

    #[test]
    fn missing_packets_follow_the_mss() {
        let recovery = Recovery::OPEN.lose(Bytes::new(6 * 1_500), at(100), Bytes::new(1_500));
        let jumbo = recovery.counted_in(Bytes::new(1_500), Bytes::new(9_000));
        assert_eq!((recovery.missing, jumbo.missing), (6, 1));
        assert_eq!(jumbo.counted_in(Bytes::new(9_000), Bytes::new(1_400)).missing, 7);
    }

    #[test]
    fn short_packets_count_as_full() {
        let small = Bytes::new(100);
        let recovery = Recovery::OPEN.time_out(small, at(100), MSS);
        assert!(recovery.end_round().next(&Ack { acked: small, ..ack(&PATH, 114) }, MSS).is_open());
        let late = Ack { sent_at: at(100) - Span::from_ps(1), ..ack(&PATH, 114) };
        assert!(!recovery.end_round().next(&late, MSS).is_open());
    }
}
