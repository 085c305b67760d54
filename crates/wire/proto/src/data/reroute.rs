//! Rerouting: a path without further arrivals is replaced, as in `UnoLB` (Bonato et al., "Uno", SC 2025, §4.2, Algorithm 2).
//!
//! Among the paths with expired timers, the one that was silent longest is retired, if another was acknowledged after that
//! timer first expired; the client opens another from another of its ports, and the first path that opens takes over the law
//! of the retired one. The paper re-routes at a `NACK` or the first timeout. Here the timer must have expired twice: on a
//! long path single packets are lost by chance, and a queue that fills delays acknowledgements.

use alloc::vec::Vec;

use flow::MovedLaw;
use laws::Law;
use units::Time;

use super::Data;
use crate::closed::CloseReason;
use crate::frame_queue::ConnectionFrame;
use crate::path::{Path, State};
use crate::side::Side;

/// Consecutive expirations of a path's timer that make it silent: its probe was not acknowledged, either.
const SILENT_PTO_COUNT: u8 = 2;

/// State of replaced paths.
#[derive(Default)]
pub(super) struct Rerouting {
    /// Time at which the last path was replaced; none before the first.
    last: Option<Time>,
    /// Laws of retired paths, for the paths that open in their places.
    laws: Vec<MovedLaw<Law>>,
}

impl Rerouting {
    /// Keeps the law of a retired path.
    pub(super) fn keep(&mut self, law: MovedLaw<Law>, max_paths: u32) {
        if self.laws.len() < max_paths as usize {
            self.laws.push(law);
        }
        debug_assert!(self.laws.len() <= max_paths as usize, "{} laws for {max_paths} paths", self.laws.len());
    }

    /// Takes the law for a path that opens in the place of another.
    pub(super) fn take(&mut self) -> Option<MovedLaw<Law>> {
        self.laws.pop()
    }
}

impl Data {
    /// Replaces the path that was silent longest, after a timer has expired.
    pub(super) fn replace_silent_path(&mut self, now: Time) -> Result<(), CloseReason> {
        if !self.is_confirmed || !self.may_reroute(now) {
            return Ok(());
        }
        let is_silent =
            |path: &&Path| self.settled_pto_count(now, path).is_some_and(|pto_count| pto_count >= SILENT_PTO_COUNT);
        let silent = self.paths.iter().filter(is_silent).min_by_key(|path| (path.acked_at, path.number));
        let Some(Path { number, subflow: Some(subflow), .. }) = silent else { return Ok(()) };
        let (number, since) = (*number, self.channel.first_timeout_at(*subflow).unwrap_or(now));
        if !self.paths.iter().any(|path| path.acked_at >= since && self.stays(now, path, number)) {
            return Ok(());
        }
        if self.side == Side::Client {
            return self.replace_path(now, number);
        }
        self.rerouting.last = Some(now);
        self.frame_queue().push(ConnectionFrame::PathRetire { path: number, reason: 1 });
        Ok(())
    }

    /// Returns whether a path may be replaced now. Within three timeouts, no more paths may be replaced than may be
    /// open: the peer keeps IDs of retired paths for that time.
    fn may_reroute(&self, now: Time) -> bool {
        let wait = self.timeout().times(3).over(self.max_paths).max(self.base_rtt);
        self.rerouting.last.is_none_or(|last| now.saturating_since(last) > wait)
    }

    /// Returns the consecutive timer expirations of a path; none unless it carries data and the peer will not give it
    /// up.
    fn settled_pto_count(&self, now: Time, path: &Path) -> Option<u8> {
        let is_settled =
            path.state == State::Open && path.amplification_limit.is_validated() && path.confirmed_at <= now;
        path.subflow.filter(|_| is_settled).map(|subflow| self.channel.pto_count(subflow))
    }

    /// Returns whether a path still carries data after path `without` is retired: it is another one, and not silent
    /// itself.
    fn stays(&self, now: Time, path: &Path, without: u32) -> bool {
        path.number != without
            && self.settled_pto_count(now, path).is_some_and(|pto_count| pto_count < SILENT_PTO_COUNT)
    }

    /// Replaces a path of the client by one from another port. Does nothing if another was replaced a moment ago, or no
    /// other is sure to stay.
    pub(crate) fn replace_path(&mut self, now: Time, number: u32) -> Result<(), CloseReason> {
        let is_open = |number| self.paths.iter().any(|path| path.number == number && path.state == State::Open);
        let others = self.paths.iter().any(|path| self.stays(now, path, number));
        if self.side == Side::Listener || !is_open(number) || !others || !self.may_reroute(now) {
            return Ok(());
        }
        self.rerouting.last = Some(now);
        self.retire_path(now, number)
    }
}
