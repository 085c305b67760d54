//! Service times of bytes on a link, and the bounds within which that arithmetic holds.

use units::{Bytes, Rate, Serializer, Span};

/// Minimum rate of a link, and of a phantom queue's drain: a packet of 64 KiB stays under 2^59 in a [`Serializer`].
pub const SLOWEST: Rate = Rate::from_mbps(1);

/// A second of service: thresholds above would overflow the marker's arithmetic.
pub(crate) const LONGEST: Span = Span::from_ps(1 << 40);

/// Returns the service time of a packet, to the picosecond: 64 KiB at [`SLOWEST`] last half a second.
#[inline(always)]
pub(crate) fn service(serializer: Serializer, size: u32) -> Span {
    Span::from_ps(serializer.time_for(size) as i64)
}

/// Returns the service time of many bytes.
pub(crate) fn long_service(serializer: Serializer, bytes: Bytes) -> Span {
    Span::from_unsigned_ps(serializer.long_time_for(bytes))
}
