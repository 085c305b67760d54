//! Modes of BBR and the transitions between them. Each mode owns its own state; a transition consumes a mode and
//! returns the next one.

use units::{Bytes, Frac, Time};

use super::Params;
use super::cycle::Cycle;
use super::startup::FullPipe;
use crate::Ack;

/// Mode of BBR (draft-cardwell-iccrg-bbr-congestion-control-00, §4.3). Not `repr(C)`, in which the tag would take a
/// word of its own: no kernel reads this law's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Grows until the pipe is full.
    Startup,
    /// Drains the queue that startup built.
    Drain,
    /// Follows the gain cycle.
    ProbeBw(Cycle),
    /// Keeps few packets in flight to measure the smallest RTT.
    ProbeRtt(RttProbe),
}

/// A probe of the smallest RTT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct RttProbe {
    /// [`Time::NEVER`] until the pipe is drained.
    ends: Time,
}

/// Inputs of a mode transition, collected when an acknowledgement arrives.
pub(super) struct TransitionInputs<'a> {
    pub(super) ack: &'a Ack<'a>,
    pub(super) params: &'a Params,
    pub(super) pipe: &'a FullPipe,
    /// The window that a probe of the RTT keeps.
    pub(super) probe_window: Bytes,
}

impl Mode {
    /// Begins a probe of the RTT.
    pub(super) const fn probe_rtt() -> Self {
        Self::ProbeRtt(RttProbe { ends: Time::NEVER })
    }

    /// Begins the gain cycle.
    fn probe_bw(params: &Params, now: Time) -> Self {
        Self::ProbeBw(Cycle::begin(params.cycle_seed, now))
    }

    /// Returns whether this is an RTT probe that has lasted its time.
    pub(super) fn is_probe_over(&self, now: Time) -> bool {
        matches!(self, Self::ProbeRtt(probe) if probe.ends <= now)
    }

    /// Returns the mode after an RTT probe: the gain cycle, or startup if that had not filled the pipe.
    pub(super) fn after_rtt_probe(pipe: &FullPipe, params: &Params, now: Time) -> Self {
        if pipe.is_full() { Self::probe_bw(params, now) } else { Self::Startup }
    }

    pub(super) const fn is_probing_rtt(&self) -> bool {
        matches!(self, Self::ProbeRtt(_))
    }

    /// The gain of the pacing rate.
    pub(super) const fn pacing_gain(&self, params: &Params) -> Frac {
        match self {
            Self::Startup => params.startup_gain,
            Self::Drain => params.drain_gain,
            Self::ProbeBw(cycle) => cycle.gain(),
            Self::ProbeRtt(_) => Frac::ONE,
        }
    }

    /// Records that packets were lost.
    pub(super) fn note_loss(&mut self) {
        if let Self::ProbeBw(cycle) = self {
            cycle.note_loss();
        }
    }

    /// Returns the mode after a step of an RTT probe. The probe lasts its fixed time and a round trip, from the moment when
    /// only its window is in flight.
    pub(super) fn after_probe(self, inputs: &TransitionInputs<'_>) -> Self {
        let Self::ProbeRtt(probe) = self else { return self };
        if !probe.ends.is_set() {
            let drained = inputs.ack.in_flight <= inputs.probe_window;
            let ends = inputs.ack.now + inputs.params.probe_rtt_time.max(inputs.ack.rtt);
            return if drained { Self::ProbeRtt(RttProbe { ends }) } else { self };
        }
        if self.is_probe_over(inputs.ack.now) {
            Self::after_rtt_probe(inputs.pipe, inputs.params, inputs.ack.now)
        } else {
            self
        }
    }

    /// Returns the next of startup, drain and the gain cycle. `bdp` is the measured BDP.
    pub(super) fn next(self, inputs: &TransitionInputs<'_>, bdp: Bytes, min_rtt: units::Span) -> Self {
        let drained = inputs.ack.in_flight <= bdp;
        match self {
            Self::Startup if inputs.pipe.is_full() && drained => {
                Self::probe_bw(inputs.params, inputs.ack.now).next(inputs, bdp, min_rtt)
            }
            Self::Startup if inputs.pipe.is_full() => Self::Drain,
            Self::Drain if drained => Self::probe_bw(inputs.params, inputs.ack.now).next(inputs, bdp, min_rtt),
            Self::ProbeBw(cycle) => Self::ProbeBw(cycle.next(inputs.ack, min_rtt, bdp)),
            Self::Startup | Self::Drain | Self::ProbeRtt(_) => self,
        }
    }
}
