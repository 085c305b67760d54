//! Asks the processor for memory some time before it is needed. What arrives in a window was written at least a window
//! before, and between the two lies more than a core's own caches hold; where the next packet, or the next free place, will
//! be is known long before it is its turn.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "`bench engine` shows the gain"))]

/// Prefetch distance in packets: two are in one cache line, so this is the line after the one that is being read.
pub(crate) const AHEAD: u32 = 2;

/// Prefetches an element of a slice. Any index is allowed: one past the end prefetches nothing of use, and changes
/// nothing.
#[inline(always)]
pub(crate) fn element<T>(slice: &[T], index: usize) {
    let place = slice.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE, which is all that the call asks for; a prefetch faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_wherever_it_points() {
        let slice = [1u64, 2, 3];
        for index in [0, 2, 3, 1 << 20, usize::MAX / 8] {
            element(&slice, index);
            element::<u64>(&[], index);
        }
        assert_eq!(slice, [1, 2, 3]);
    }
}
