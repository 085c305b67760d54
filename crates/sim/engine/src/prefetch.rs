//! Prefetches memory some time before it is used. Packets that arrive in a window were written at least a window earlier,
//! and the data accessed in between exceeds a core's own caches. The address of the next packet, or of the next free slot,
//! is known long before its turn.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "`bench engine` shows the gain"))]

/// Prefetch distance in packets: two are in one cache line, so this is the line after the one that is being read.
pub(crate) const AHEAD: u32 = 2;

/// Prefetches an element of a slice. Any index is allowed: one past the end prefetches nothing of use, and changes
/// nothing.
#[inline(always)]
pub(crate) fn element<T>(slice: &[T], index: usize) {
    let place = slice.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE, which is all that the call requires; a prefetch faults at no address.
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
    fn any_index_is_harmless() {
        let slice = [1u64, 2, 3];
        for index in [0, 2, 3, 1 << 20, usize::MAX / 8] {
            element(&slice, index);
            element::<u64>(&[], index);
        }
        assert_eq!(slice, [1, 2, 3]);
    }
}
