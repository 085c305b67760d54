//! Indices of elements as 32 bits.

/// Returns the index of an element as 32 bits. Elements take some bytes of a file shorter than 4 GiB each, or are limited to
/// [`crate::rings::MAX`].
pub(crate) fn index32(index: usize) -> u32 {
    debug_assert!(u32::try_from(index).is_ok(), "element {index} of a file shorter than 4 GiB");
    u32::try_from(index).unwrap_or(u32::MAX)
}
