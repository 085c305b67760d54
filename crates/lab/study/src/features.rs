//! Names of the optional features with code that has a version of its own.

/// Erasure coding.
pub(crate) const CODING: &str = "coding";
/// Flows scheduled by credits, of laws or of receivers.
pub(crate) const CREDITS: &str = "credits";
/// LSCC's controllers in border switches.
pub(crate) const BORDER_CONTROLLERS: &str = "border-controllers";
/// Packets held on one-way delay.
pub(crate) const ON_RAMP: &str = "on-ramp";
/// Switches that are replayed as a whole: shared buffers, PFC, INT, border controllers.
pub(crate) const SWITCH_REPLAY: &str = "switch-replay";
/// Go-back-N loss recovery.
pub(crate) const GO_BACK_N: &str = "go-back-n";
