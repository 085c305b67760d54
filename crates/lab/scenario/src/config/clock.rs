//! `[clock]`: how simulated time is counted.

use experiment::TieBreak;
use units::{Span, Tick};

use super::{OffOr, SwitchBuffers};
use crate::decode::{Located, table, words};
use crate::error::SpannedError;

words! {
    /// Rounding of a time that is a whole number of ticks.
    ExactTicks, "\"keep\" or \"round-down-one\"" {
        /// Unchanged.
        Keep = "keep",
        /// One tick less.
        RoundDownOne = "round-down-one",
    }
}

words! {
    /// Order of simultaneous arrivals at a node.
    TiesWord, "\"input\" or \"scheduled\"" {
        /// By input.
        Input = "input",
        /// By scheduling, earliest first.
        Scheduled = "scheduled",
    }
}

table! {
    /// Resolution of simulated time. Other simulators count it in steps, and these keys reproduce the effects of that.
    Clock {
        /// Unit of the transmission time of a packet at any port, and of the time between two paced packets: both are
        /// rounded down to whole multiples of it. `1ns` for simulators in whole nanoseconds. `off`: exact, in
        /// picoseconds.
        tick: Located<OffOr<Span>> = Located::default_of(OffOr::Off);
        /// Rounding of such a time that is a whole number of ticks. `keep`: it is unchanged. `round-down-one`: it loses a tick,
        /// as in old versions of ns-3, whose conversion from floating point truncates what a double cannot represent.
        exact_ticks: Located<ExactTicks> = Located::default_of(ExactTicks::Keep);
        /// Order of packets that arrive at a switch at the same time. `input`: by input. `scheduled`: by scheduling, as
        /// with one FIFO event queue: the packet that began to leave its sender first, and among packets that began
        /// together the one that follows from the earlier event. `scheduled` is for switches that share their buffer,
        /// and slower.
        tie_break: Located<TiesWord> = Located::default_of(TiesWord::Input);
    }
}

impl Clock {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        if self.tick.value().is_some_and(Span::is_zero) {
            return Err(SpannedError::new(self.tick.origin, "a clock with ticks of zero length")
                .label("expected a time such as \"1ns\", or \"off\""));
        }
        if *self.exact_ticks == ExactTicks::RoundDownOne && self.tick.value().is_none() {
            return Err(SpannedError::new(self.exact_ticks.origin, "whole numbers of ticks without ticks")
                .label("needs tick in [clock]")
                .help("add tick = \"1ns\""));
        }
        Ok(())
    }

    /// Returns the order of ties of a scheme, with or without shared buffers.
    ///
    /// # Errors
    /// If buffers are not shared and the order is `scheduled`: only shared-buffer switches keep the state that this order
    /// depends on.
    pub(crate) fn tie_break(&self, buffers: SwitchBuffers) -> Result<TieBreak, SpannedError> {
        if *self.tie_break == TiesWord::Input {
            return Ok(TieBreak::Input);
        }
        if buffers == SwitchBuffers::PerPort {
            return Err(SpannedError::new(
                self.tie_break.origin,
                "the order of what was scheduled is that of switches that share their buffer",
            )
            .label("needs [switch]")
            .help("add a table [switch], or let ties be in the order of inputs"));
        }
        Ok(TieBreak::Scheduled)
    }

    /// The tick.
    pub(crate) fn tick(&self) -> Tick {
        let tick = match *self.exact_ticks {
            ExactTicks::Keep => Tick::new,
            ExactTicks::RoundDownOne => Tick::short,
        };
        self.tick.value().map_or(Tick::NONE, tick)
    }
}
