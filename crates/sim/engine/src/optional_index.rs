//! Indices that may be absent, in four bytes.

use std::fmt;

/// An index below 2^32 - 1, or none. An `Option<u32>` takes twice the memory; there is one of these per flow, host and node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalIndex(u32);

impl OptionalIndex {
    /// No index.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// The index `index`.
    #[inline(always)]
    pub(crate) const fn some(index: u32) -> Self {
        debug_assert!(index != Self::NONE.0);
        Self(index)
    }

    /// Returns the index, if there is one.
    #[inline(always)]
    pub(crate) const fn get(self) -> Option<u32> {
        if self.0 == Self::NONE.0 { None } else { Some(self.0) }
    }

    /// Returns the position in a slice; none is beyond the end of every slice.
    #[inline(always)]
    pub(crate) const fn position(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for OptionalIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_back_and_none_is_beyond_every_slice() {
        for index in [0, 1, u32::MAX - 1] {
            let stored = OptionalIndex::some(index);
            assert_eq!((stored.get(), stored.position()), (Some(index), index as usize));
        }
        assert_eq!(OptionalIndex::NONE.get(), None);
        assert_eq!([7].get(OptionalIndex::NONE.position()), None);
        assert_eq!(size_of::<OptionalIndex>(), 4);
    }
}
