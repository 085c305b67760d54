//! A path on which nothing comes any more goes elsewhere, as `UnoLB` does it (Bonato et al., "Uno", SC 2025, §4.2, Algorithm 2).
//!
//! Of the paths whose timers have struck the one that was silent longest is retired, if others were heard meanwhile; the caller
//! opens another from another of its ports, and the first path that opens goes on by the law of the one that was retired.
//! The paper re-routes at a `NACK` or the first timeout. Here the timer must have struck twice: on a long path single packets are
//! lost by chance, and a queue that fills makes an acknowledgement late.

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
        let (mut silent, mut is_heard) = (None, false);
        for path in self.paths.iter().filter(|path| path.state == State::Open && path.budget.is_proved()) {
            let Some(subflow) = path.subflow else { continue };
            is_heard |= now.saturating_since(path.acked_at) <= self.channel.timeout(subflow);
            let this = (path.acked_at, path.number);
            if path.settles_at <= now
                && self.channel.strikes(subflow) >= STRIKES
                && silent.is_none_or(|other| this < other)
            {
                silent = Some(this);
            }
        }
        let Some((_, number)) = silent.filter(|_| is_heard) else { return Ok(()) };
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

    /// The caller leaves a path for one from another port. Nothing happens if another one went a moment ago, or no other is
    /// sure to stay.
    pub(crate) fn replace_path(&mut self, now: Time, number: u32) -> Result<(), Fault> {
        let is_open = |number| self.paths.iter().any(|path| path.number == number && path.state == State::Open);
        let stays = |path: &Path| path.state == State::Open && path.settles_at <= now;
        let others = self.paths.iter().any(|path| path.number != number && stays(path));
        if self.side == Side::Listener || !is_open(number) || !others || !self.may_reroute(now) {
            return Ok(());
        }
        self.rerouting.last = Some(now);
        self.retire_path(now, number)
    }
}
