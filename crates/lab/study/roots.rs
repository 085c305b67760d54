//! Entry points of the code that decides results: the build script derives from them which modules a run's key covers.

use code_version::{Gate, Roots};

use super::features::{BORDER_CONTROLLERS, CODING, CREDITS, GO_BACK_N, ON_RAMP, SWITCH_REPLAY};

/// A run is done by `engine::event_loop` with the laws that `scenario::law_plan` makes. The input of a run is data by then,
/// and part of the key as such.
pub(crate) const ROOTS: Roots<'static> = Roots {
    engine: &["engine::event_loop", "scenario::law_plan"],
    record: &["results::summary::make", "results::tables"],
    gates: GATES,
    // Error messages, and the parameters of an external law, which are data.
    ignored_crates: &["thiserror", "serde_json"],
};

/// Optional code. The function `features_of` in `src/key.rs` determines which of it a run uses.
///
/// A module belongs here if no run without the feature enters one of its functions or uses one of its constants:
/// `tests/keys/prove trace` checks the former.
pub(crate) const GATES: &[Gate] = &[
    Gate { feature: CODING, entries: &["flow::sender::coded", "flow::sender::sender_blocks", "flow::receiver_blocks"] },
    Gate { feature: CREDITS, entries: &["flow::credits"] },
    Gate { feature: BORDER_CONTROLLERS, entries: &["laws::lscc"] },
    Gate { feature: ON_RAMP, entries: &["flow::on_ramp_hold", "laws::on_ramp"] },
    Gate { feature: SWITCH_REPLAY, entries: &["fabric::shared::switch", "engine::shared_buffer"] },
    Gate { feature: GO_BACK_N, entries: &["flow::sender::go_back_n"] },
];
