//! Variable-length integers of 1, 2, 4 or 8 bytes; the first two bits encode the length: RFC 9000 §16. Also a reader for
//! bytes from a peer.

use alloc::vec::Vec;

use crate::narrow::{to_u8, to_u16, to_u32};

/// The largest value.
pub const MAX: u64 = (1 << 62) - 1;

/// Returns the encoded length of a value in bytes.
///
/// # Panics
/// In debug builds, if it is over [`MAX`].
pub const fn len(value: u64) -> usize {
    debug_assert!(value <= MAX);
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends a value in its shortest encoding.
///
/// # Panics
/// In debug builds, if it is over [`MAX`].
pub fn put(out: &mut Vec<u8>, value: u64) {
    match len(value) {
        1 => out.push(to_u8(value)),
        2 => out.extend((to_u16(value) | 0x4000).to_be_bytes()),
        4 => out.extend((to_u32(value) | 0x8000_0000).to_be_bytes()),
        _ => out.extend((value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Encodes a value below 2^14 in two bytes, even if one is enough.
pub(crate) const fn in_two(value: u16) -> [u8; 2] {
    debug_assert!(value < 0x4000);
    (value | 0x4000).to_be_bytes()
}

/// Error for input that ends too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncated;

/// Reads bytes from the front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the unread bytes.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether all bytes were read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes all unread bytes.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Reads the next `count` bytes.
    ///
    /// # Errors
    /// If there are fewer. The reader is unchanged then.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads bytes after their length, which is a varint.
    ///
    /// # Errors
    /// If there are fewer bytes.
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let count = self.varint()?;
        self.bytes(usize::try_from(count).map_err(|_| Truncated)?)
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// If there are fewer. The reader is unchanged then.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads the next byte.
    ///
    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, Truncated> {
        self.array().map(|[byte]| byte)
    }

    /// Reads the next varint; at most [`MAX`].
    ///
    /// # Errors
    /// If the varint is truncated.
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let first = *self.rest.first().ok_or(Truncated)?;
        Ok(match first >> 6 {
            0 => self.array().map(|[byte]| byte.into())?,
            1 => u64::from(u16::from_be_bytes(self.array()?)) & 0x3fff,
            2 => u64::from(u32::from_be_bytes(self.array()?)) & 0x3fff_ffff,
            _ => u64::from_be_bytes(self.array()?) & MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 §A.1.
    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes);
        }
        // Longer than it must be.
        assert_eq!(Reader::new(&[0x40, 0x25]).varint(), Ok(37));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(shift in 2u32..64, bits: u64, more in proptest::collection::vec(any::<u8>(), 0..4)) {
            let value = bits >> shift;
            let mut out = Vec::new();
            put(&mut out, value);
            prop_assert_eq!(out.len(), len(value));
            for cut in 0..out.len() {
                prop_assert_eq!(Reader::new(&out[..cut]).varint(), Err(Truncated));
            }
            out.extend(&more);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.rest(), more);
        }
    }
}
