//! Conversions to narrower integers, of values in a range that the caller knows: a length within a packet, an offset into
//! memory, a number that was checked when it was read.
//!
//! A value out of range is a bug of the caller. Debug builds panic at it; others keep its lowest bits.

/// Converts a length of bytes in memory, or an offset among them.
#[expect(clippy::cast_possible_truncation, reason = "the assertion states the range")]
pub(crate) const fn to_usize(value: u64) -> usize {
    debug_assert!(value <= usize::MAX as u64, "out of the range of `usize`");
    value as usize
}

/// Converts a value below 2^8.
#[expect(clippy::cast_possible_truncation, reason = "the assertion states the range")]
pub(crate) const fn to_u8(value: u64) -> u8 {
    debug_assert!(value <= u8::MAX as u64, "out of the range of `u8`");
    value as u8
}

/// Converts a value below 2^16.
#[expect(clippy::cast_possible_truncation, reason = "the assertion states the range")]
pub(crate) const fn to_u16(value: u64) -> u16 {
    debug_assert!(value <= u16::MAX as u64, "out of the range of `u16`");
    value as u16
}

/// Converts a value below 2^32.
#[expect(clippy::cast_possible_truncation, reason = "the assertion states the range")]
pub(crate) const fn to_u32(value: u64) -> u32 {
    debug_assert!(value <= u32::MAX as u64, "out of the range of `u32`");
    value as u32
}

/// Converts a number of time units below 2^63.
pub(crate) const fn to_i64(value: u64) -> i64 {
    debug_assert!(value <= i64::MAX.cast_unsigned(), "out of the range of `i64`");
    value.cast_signed()
}
