//! Control laws: algorithms that decide the sending window and rate of a flow. Each is a pure integer state machine without
//! access to packets, clocks, sockets or an allocator. So the same code runs in the simulator, in the kernel's TCP and in
//! the transport.
//!
//! A host reports events to a law ([`Ack`], [`Loss`], [`Sent`], a timer) and reads the limits that it sets
//! ([`SendLimits`]). [`Law`] is the closed set of laws that hosts run by default.

#![no_std]
#![forbid(unsafe_code)]

mod params;

pub mod bbr;
pub mod catalog;
pub mod cnp;
pub mod copa;
pub mod credits;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
pub mod dctcp_rate;
mod epoch;
pub mod expresspass;
pub mod fixed;
pub mod flashpass;
pub mod gemini;
pub mod hpcc;
mod hystart;
mod info;
mod law;
mod limits;
pub mod line_rate;
mod linux_hystart;
pub mod lscc;
mod marks;
pub mod mprdma;
pub mod newreno;
pub mod nscc;
pub mod on_ramp;
mod quick_adapt;
mod recent;
mod recovery_period;
mod round;
mod signal;
mod slow_start;
pub mod strait;
#[cfg(test)]
mod testbed;
pub mod timely;
pub mod unocc;
pub mod validation;
pub mod vegas;
mod window;

pub use law::*;
pub use marks::marked_share;
pub use on_ramp::OnRamp;
pub use recovery_period::{LossResponse, RecoveryPeriod};
pub use round::Round;
pub use signal::{Ack, Cookie, Hop, Loss, LossCause, MAX_HOPS, Notification, PathInfo, SendLimits, Sent};
pub use slow_start::SlowStart;
pub use window::Window;

use units::{Bytes, Rate, Time};

use credits::Credits;

/// A congestion control algorithm: window and rate from sender events.
///
/// A law cannot fail. It never sees the host's fields, and a host never sees the law's.
pub trait ControlLaw {
    /// Processes the departure of a packet. The returned cookie is passed back with its acknowledgement ([`Ack::cookie`]).
    /// This call must not change the send limits: a host reads [`ControlLaw::send_limits`] after the other calls only.
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        let _ = sent;
        Cookie::NONE
    }

    /// Processes an acknowledgement.
    fn on_ack(&mut self, ack: &Ack);

    /// Processes losses. Called once for all losses detected at one time.
    fn on_loss(&mut self, loss: &Loss);

    /// Processes another signal.
    fn on_notification(&mut self, notification: &Notification) {
        let _ = notification;
    }

    /// Handles the expiry of [`ControlLaw::next_timer`].
    fn on_timer(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns the time of the next timer; [`Time::NEVER`] for most.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// Returns the current limits.
    fn send_limits(&self) -> SendLimits;

    /// Returns whether a new rate applies at once, also to a packet that already waits for its departure (HPCC in
    /// ns-3); otherwise it applies from the next packet on. Must not change while the flow lasts.
    fn rate_change_is_immediate(&self) -> bool {
        false
    }

    /// Returns whether the law reacts to [`Notification::DirectCnp`]; otherwise it receives the same information as
    /// marks. Must not change while the flow lasts.
    fn reads_direct_cnps(&self) -> bool {
        false
    }

    /// Returns the slow start threshold (ssthresh); none for a law without slow start, and during the first slow start.
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }

    /// Returns the credit scheduling of the flow; none for most laws. Must not change while the flow lasts.
    fn credits(&self) -> Option<Credits> {
        None
    }

    /// Returns the rate of credits, or of emulation packets, on the wire; zero without them.
    fn credit_rate(&self) -> Rate {
        Rate::ZERO
    }

    /// Returns the counts of the law's actions.
    fn actions(&self) -> LawActions;

    /// Emits the law's internal state variables, for plots: `alpha_ppm`, `min_rtt_ns`, ... A name ends in its unit.
    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        let _ = emit;
    }
}

/// Counts of a law's actions since its flow began. A law that never acts on long flows causes a warning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct LawActions {
    /// Times the window or rate grew.
    pub increases: u64,
    /// Times it was cut on congestion.
    pub cuts: u64,
    /// Times it was cut on loss or timeout.
    pub loss_cuts: u64,
    /// Quick Adapt invocations (Uno, Algorithm 1; NSCC; Strait).
    pub quick_adapts: u64,
    /// `ProbeRTT` periods begun (BBR).
    pub probe_rtts: u64,
}

impl LawActions {
    /// Returns the actions after `before` was counted.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            increases: self.increases - before.increases,
            cuts: self.cuts - before.cuts,
            loss_cuts: self.loss_cuts - before.loss_cuts,
            quick_adapts: self.quick_adapts - before.quick_adapts,
            probe_rtts: self.probe_rtts - before.probe_rtts,
        }
    }

    /// Adds the actions of another law for the same flow.
    pub fn add(&mut self, other: &Self) {
        let Self { increases, cuts, loss_cuts, quick_adapts, probe_rtts } = other;
        self.increases += increases;
        self.cuts += cuts;
        self.loss_cuts += loss_cuts;
        self.quick_adapts += quick_adapts;
        self.probe_rtts += probe_rtts;
    }
}
