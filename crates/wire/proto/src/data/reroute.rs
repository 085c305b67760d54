//! A path on which nothing comes any more goes elsewhere, as `UnoLB` does it (Bonato et al., "Uno", SC 2025, §4.2, Algorithm 2).
//!
//! Of the paths whose timers have struck the one that was silent longest is retired, if another was acknowledged after its timer
//! first struck; the caller opens another from another of its ports, and the first path that opens goes on by the law of the one
//! that was retired. The paper re-routes at a `NACK` or the first timeout. Here the timer must have struck twice: on a long path
//! single packets are lost by chance, and a queue that fills makes an acknowledgement late.

use alloc::vec::Vec;

use laws::Law;
use units::{Bytes, Time};

use super::Data;
use crate::closed::Fault;
use crate::outbox::Own;
use crate::path::{Path, State};
use crate::side::Side;

/// Strikes in a row of a path's timer that make it silent: its probe was not heard of, either.
const STRIKES: u8 = 2;

/// What is known of paths that went elsewhere.
#[derive(Default)]
pub(super) struct Rerouting {
    /// When the last one went; never, if none did.
    last: Option<Time>,
    /// Laws of paths that were retired, for those that open in their places, and what they have heard of as delivered.
    laws: Vec<(Law, Bytes)>,
}

impl Rerouting {
    /// A path is retired.
    pub(super) fn keep(&mut self, law: (Law, Bytes), most: u32) {
        if self.laws.len() < most as usize {
            self.laws.push(law);
        }
    }

    /// The law of a path that opens in the place of another.
    pub(super) fn take(&mut self) -> Option<(Law, Bytes)> {
        self.laws.pop()
    }
}

impl Data {
    /// A timer has struck.
    pub(super) fn leave_silent(&mut self, now: Time) -> Result<(), Fault> {
        if !self.is_confirmed || !self.may_reroute(now) {
            return Ok(());
        }
        let is_silent = |path: &&Path| self.strikes(now, path).is_some_and(|strikes| strikes >= STRIKES);
        let silent = self.paths.iter().filter(is_silent).min_by_key(|path| (path.acked_at, path.number));
        let Some(Path { number, subflow: Some(subflow), .. }) = silent else { return Ok(()) };
        let (number, since) = (*number, self.channel.struck_at(*subflow).unwrap_or(now));
        if !self.paths.iter().any(|path| path.acked_at >= since && self.stays(now, path, number)) {
            return Ok(());
        }
        if self.side == Side::Caller {
            return self.replace_path(now, number);
        }
        self.rerouting.last = Some(now);
        self.outbox().push(Own::PathRetire { path: number, reason: 1 });
        Ok(())
    }

    /// As many paths may go within three timeouts as there may be open: so long the peer keeps IDs of those that went.
    fn may_reroute(&self, now: Time) -> bool {
        let wait = self.timeout().times(3).over(self.most_paths).max(self.base_rtt);
        self.rerouting.last.is_none_or(|last| now.saturating_since(last) > wait)
    }

    /// How often in a row the timer of a path has struck; none unless it carries data, and the peer will not give it up.
    fn strikes(&self, now: Time, path: &Path) -> Option<u8> {
        let is_settled = path.state == State::Open && path.budget.is_proved() && path.settles_at <= now;
        path.subflow.filter(|_| is_settled).map(|subflow| self.channel.strikes(subflow))
    }

    /// Whether a path carries data when that of this number has gone: it is another one, and not silent itself.
    fn stays(&self, now: Time, path: &Path, without: u32) -> bool {
        path.number != without && self.strikes(now, path).is_some_and(|strikes| strikes < STRIKES)
    }

    /// The caller leaves a path for one from another port. Nothing happens if another one went a moment ago, or no other is
    /// sure to stay.
    pub(crate) fn replace_path(&mut self, now: Time, number: u32) -> Result<(), Fault> {
        let is_open = |number| self.paths.iter().any(|path| path.number == number && path.state == State::Open);
        let others = self.paths.iter().any(|path| self.stays(now, path, number));
        if self.side == Side::Listener || !is_open(number) || !others || !self.may_reroute(now) {
            return Ok(());
        }
        self.rerouting.last = Some(now);
        self.retire_path(now, number)
    }
}
