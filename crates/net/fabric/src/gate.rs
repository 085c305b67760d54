//! How much of a shared buffer packets may hold that came over one cable.

use units::{Bytes, Frac};

/// What packets of one class that came over one cable may hold of the shared buffer of the switch at its end.
///
/// What lies in the switch counts on the cable and class that it came by: first on the reserve, then on the shared part,
/// and what finds no room there on the headroom. What leaves frees headroom first, then the shared part, then the reserve.
/// Whether a sender is to be paused is looked at when one of its packets has come in, whether it may go on when one has
/// left: not when packets of others change what is left of the shared part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gate {
    /// With PFC their sender is paused once they hold this much of the shared part, or some of the headroom. What would
    /// hold more than this (or finds nothing left of the shared part) goes to the headroom; without PFC it is dropped.
    pub off: Limit,
    /// The sender resumes when they hold this much less than `off`, or nothing, of the shared part, and no headroom.
    pub hysteresis: Bytes,
    /// Room beside the shared part for what arrives after a pause was sent, for each data class in use.
    pub headroom: Bytes,
}

/// A threshold of a shared buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// So many bytes, or all that is left where that is less.
    Bytes(Bytes),
    /// So many times what is left of the shared part (a dynamic threshold).
    Alpha(Frac),
}

impl Default for Gate {
    fn default() -> Self {
        Self { off: Limit::Alpha(Frac::ratio(1, 8)), hysteresis: Bytes::new(3_072), headroom: Bytes::ZERO }
    }
}
