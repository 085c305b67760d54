//! Service times of bytes on a link, and the bounds within which that arithmetic holds.

use units::{Bytes, PrecomputedRate, Rate, Span};

/// Minimum rate of a link, and of a phantom queue's drain: a packet of 64 KiB stays under 2^59 in a [`PrecomputedRate`].
pub const SLOWEST: Rate = Rate::from_mbps(1);

/// A second of service: thresholds above would overflow the marker's arithmetic.
pub(crate) const MAX: Span = Span::from_ps(1 << 40);

/// Returns the service time of a packet, to the picosecond: 64 KiB at [`SLOWEST`] last half a second.
#[inline(always)]
pub(crate) fn service(serializer: PrecomputedRate, size: u32) -> Span {
    Span::from_ps(serializer.tx_time(size) as i64)
}

/// Returns the service time of many bytes.
pub(crate) fn long_service(serializer: PrecomputedRate, bytes: Bytes) -> Span {
    Span::from_unsigned_ps(serializer.long_tx_time(bytes))
}
