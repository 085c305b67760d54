//! `[clock]`: how simulated time is counted.

use experiment::Ties;
use units::{Span, Tick};

use super::OffOr;
use crate::decode::{At, table, words};
use crate::error::Fault;

words! {
    /// What becomes of a time that is a whole number of ticks.
    WholeWord, "\"kept\" or \"short\"" {
        /// It stays.
        Kept = "kept",
        /// It loses a tick.
        Short = "short",
    }
}

words! {
    /// In which order a node takes what comes to it at the same time.
    TiesWord, "\"input\" or \"scheduled\"" {
        /// By input.
        Input = "input",
        /// What was scheduled first.
        Scheduled = "scheduled",
    }
}

table! {
    /// How simulated time is counted. Other simulators count it in steps, and this reproduces what follows from that.
    Clock {
        /// How long a packet's service lasts at any port, and the time between two paced packets, are whole multiples of this,
        /// rounded down: `1ns` for simulators in whole nanoseconds. `off`: exact, in picoseconds.
        tick: At<OffOr<Span>> = At::default_of(OffOr::Off);
        /// What becomes of such a time that is a whole number of ticks: `kept`; or `short`: it loses one, as in old versions of
        /// ns-3, whose conversion from floating point cuts off what a double cannot hold.
        whole: At<WholeWord> = At::default_of(WholeWord::Kept);
        /// What comes to a switch at the same time is taken in the order of its inputs (`input`), or of what was scheduled first
        /// (`scheduled`): what began to leave its sender first, and of that, what follows from the earlier event, as where all
        /// events lie in one queue. The latter is for switches that share their buffer, and slower.
        ties: At<TiesWord> = At::default_of(TiesWord::Input);
    }
}

impl Clock {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.tick.value().is_some_and(Span::is_zero) {
            return Err(Fault::new(self.tick.origin, "a clock whose ticks take no time at all")
                .label("expected a time such as \"1ns\", or \"off\""));
        }
        if *self.whole == WholeWord::Short && self.tick.value().is_none() {
            return Err(Fault::new(self.whole.origin, "whole numbers of ticks without ticks")
                .label("needs tick in [clock]")
                .help("add tick = \"1ns\""));
        }
        Ok(())
    }

    /// The order of ties. `shares` is whether a scheme's switches share their buffers.
    ///
    /// # Errors
    /// When they do not, and the order is that of what was scheduled: only they keep what that order depends on.
    pub(crate) fn ties(&self, shares: bool) -> Result<Ties, Fault> {
        if *self.ties == TiesWord::Input {
            return Ok(Ties::Input);
        }
        if !shares {
            return Err(Fault::new(
                self.ties.origin,
                "the order of what was scheduled is that of switches that share their buffer",
            )
            .label("needs [switch]")
            .help("add a table [switch], or let ties be in the order of inputs"));
        }
        Ok(Ties::Scheduled)
    }

    /// The tick.
    pub(crate) fn tick(&self) -> Tick {
        let short = *self.whole == WholeWord::Short;
        self.tick.value().map_or(Tick::NONE, |span| Tick::new(span, short))
    }
}
