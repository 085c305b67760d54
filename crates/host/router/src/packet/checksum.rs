//! The Internet checksum (RFC 1071), and its change when a 16-bit word changes (RFC 1624).

/// The sum of big-endian 16-bit words, an odd last byte padded with zero; not folded. For at most 128 KiB.
pub fn sum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    words + rest.first().map_or(0, |&last| u32::from(last) << 8)
}

/// Folds carries back in, which leaves 16 bits.
pub const fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A header's checksum after one of the words that it covers has changed (RFC 1624, eq. 3). One that was wrong
/// stays wrong.
pub const fn replace(checksum: u16, old: u16, new: u16) -> u16 {
    !replace_in_sum(!checksum, old, new)
}

/// The same for a sum that is not complemented, as a sender leaves it for checksum offload to the NIC.
pub(super) const fn replace_in_sum(sum: u16, old: u16, new: u16) -> u16 {
    fold(sum as u32 + !old as u32 + new as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rfc_1071_example() {
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_one() {
        assert_eq!(sum(&[0xab]), 0xab00);
    }

    #[test]
    fn rfc_1624_example() {
        assert_eq!(replace(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        /// A word changed in a header with a right checksum leaves it right.
        #[test]
        fn a_replaced_word_keeps_the_checksum_right(
            mut header in prop::collection::vec(any::<u8>(), 20..60usize).prop_map(|mut it| { it.truncate(it.len() / 2 * 2); it }),
            word in 0usize..10,
            new in any::<u16>(),
        ) {
            let word = if word == 5 { 4 } else { word };
            header[0] = 0x45;
            header[10..12].fill(0);
            let right = !fold(sum(&header));
            header[10..12].copy_from_slice(&right.to_be_bytes());
            let old = u16::from_be_bytes([header[word * 2], header[word * 2 + 1]]);
            let new = if word == 0 { new | 0x4000 } else { new };
            header[word * 2..word * 2 + 2].copy_from_slice(&new.to_be_bytes());
            header[10..12].copy_from_slice(&replace(right, old, new).to_be_bytes());
            prop_assert_eq!(fold(sum(&header)), 0xffff);
        }
    }
}
