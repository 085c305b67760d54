//! Ingress limits: the part of a shared buffer available to packets that arrived over one cable.

use units::{Bytes, Frac};

/// Ingress limit of a shared buffer for packets of one class that arrived over one cable.
///
/// A packet in the switch counts against the cable and class by which it arrived: first on the reserve, then on the shared
/// part, and packets without room there on the headroom. A departing packet frees headroom first, then the shared part,
/// then the reserve. Whether to pause a sender is decided when one of its packets has arrived, and whether to resume it
/// when one has departed: not when packets of others change the free space of the shared part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IngressLimit {
    /// With PFC their sender is paused once they hold this much of the shared part, or some of the headroom. A packet
    /// beyond this (or beyond the free space of the shared part) goes to the headroom; without PFC it is dropped.
    pub xoff: Limit,
    /// The sender resumes when they hold this much less than `xoff`, or nothing, of the shared part, and no headroom.
    pub xon_offset: Bytes,
    /// Room in addition to the shared part for packets that arrive after a pause was sent, for each data class in use.
    pub headroom: Bytes,
}

/// A threshold of a shared buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Bytes, at most the free space of the shared part.
    Bytes(Bytes),
    /// Multiple of the free space of the shared part (a dynamic threshold).
    Alpha(Frac),
}

impl Default for IngressLimit {
    fn default() -> Self {
        Self { xoff: Limit::Alpha(Frac::ratio(1, 8)), xon_offset: Bytes::new(3_072), headroom: Bytes::ZERO }
    }
}
