//! Generator of the code: parity packets as combinations of the data, and lost data as combinations of the packets that
//! arrived.
//!
//! Parity packet i is the sum over j of a(i, j) times data packet j, with
//!
//! ```text
//! a(i, j) = r(i) c(j) / (x(i) + y(j))
//! ```
//!
//! for distinct points x(0), x(1), ..., y(0), y(1), ... of GF(2^8): a Cauchy matrix with scaled rows and columns. The
//! determinant of a Cauchy matrix is the product of all differences of its x and of its y, over the product of all its x + y.
//! None of these is zero where all points are distinct, scaling multiplies by nonzero factors, and a square submatrix of a
//! Cauchy matrix is one. So every square submatrix is regular, which makes a systematic code MDS: for any e lost data
//! packets, any e parity packets determine them. (MacWilliams and Sloane, The Theory of Error-Correcting Codes, chapter 11,
//! theorem 8.)
//!
//! The points are chosen so that the first two rows are cheap. With t(j) = 2^(j + 1),
//!
//! ```text
//! x(0) = 0, x(1) = 1, y(j) = t(j) / (1 + t(j)), x(i) = y(255 - i) for i >= 2
//! ```
//!
//! and scales that make row 0 and column 0 all ones, a(0, j) = 1 and a(1, j) = y(j) / (1 + y(j)) / t(0) = 2^j. The
//! first parity packet is the XOR of the data, and the second is made by Horner's rule with doublings alone.
//!
//! a(i, j) depends on neither the number of data packets nor that of parity packets. So a code with fewer of either is
//! the same code with zeros in place of data, or with parity packets left out.

use alloc::vec::Vec;

use crate::field::{inverse, multiply, power_of_two};

/// Maximum number of packets of a block, data and parity together. The field has 256 points, and 2^255 = 1 adds none.
pub const MAX_PACKETS: usize = 255;

/// a(`parity`, `data`): packets of some block, so that `parity + data` is at most [`MAX_PACKETS`] - 2.
pub(crate) fn coefficient(parity: usize, data: usize) -> u8 {
    debug_assert!(parity + data + 2 <= MAX_PACKETS);
    let x = match parity {
        0 | 1 => parity as u8,
        _ => point(255 - parity),
    };
    let (first, y) = (point(0), point(data));
    multiply(multiply(y, x ^ first), inverse(multiply(first, x ^ y)))
}

/// y(`index`), for an index under 254.
fn point(index: usize) -> u8 {
    let t = power_of_two(index + 1);
    multiply(t, inverse(1 ^ t))
}

/// The combinations of `present` data packets, then of the parity packets `used`, that give the `lost` data packets.
///
/// Row by row, a lost packet a row; `used` are as many as `lost`.
pub(crate) fn solve(present: &[usize], lost: &[usize], used: &[usize]) -> Vec<u8> {
    // Parity `i` minus the contribution of present packets is the sum over lost `j` of a(i, j) times data `j`. So data is the
    // inverse of that part of the matrix, times [the present part | 1].
    let width = lost.len() + present.len() + used.len();
    let mut rows: Vec<Vec<u8>> = Vec::with_capacity(used.len());
    for (at, &parity) in used.iter().enumerate() {
        let mut row = Vec::with_capacity(width);
        row.extend(lost.iter().chain(present).map(|&data| coefficient(parity, data)));
        row.extend((0..used.len()).map(|other| u8::from(other == at)));
        rows.push(row);
    }
    // Gauss and Jordan. Every leading minor is regular, so the next pivot is never zero and no rows are exchanged.
    for pivot in 0..rows.len() {
        let mut row = core::mem::take(&mut rows[pivot]);
        debug_assert_ne!(row[pivot], 0);
        let scale = inverse(row[pivot]);
        for a in &mut row {
            *a = multiply(*a, scale);
        }
        for other in rows.iter_mut().filter(|other| !other.is_empty()) {
            let factor = other[pivot];
            other.iter_mut().zip(&row).for_each(|(a, &b)| *a ^= multiply(factor, b));
        }
        rows[pivot] = row;
    }
    rows.iter().flat_map(|row| &row[lost.len()..]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_rows_and_the_first_column() {
        for data in 0..MAX_PACKETS - 1 {
            assert_eq!(coefficient(0, data), 1);
        }
        for data in 0..MAX_PACKETS - 2 {
            assert_eq!(coefficient(1, data), power_of_two(data));
        }
        for parity in 0..MAX_PACKETS - 1 {
            assert_eq!(coefficient(parity, 0), 1);
        }
    }

    /// Points are distinct for every shape: every entry is defined and not zero, and every 2 x 2 minor is regular.
    #[test]
    fn small_minors_are_regular_for_every_shape() {
        for data in 0..MAX_PACKETS - 1 {
            for parity in 0..MAX_PACKETS - 1 - data {
                assert_ne!(coefficient(parity, data), 0, "a({parity}, {data})");
            }
        }
        let matrix: Vec<Vec<u8>> =
            (0..64).map(|parity| (0..MAX_PACKETS - 64).map(|data| coefficient(parity, data)).collect()).collect();
        for (i, above) in matrix.iter().enumerate() {
            for below in &matrix[i + 1..] {
                for left in 0..above.len() {
                    for right in left + 1..above.len() {
                        let one = multiply(above[left], below[right]);
                        let other = multiply(above[right], below[left]);
                        assert_ne!(one, other);
                    }
                }
            }
        }
    }
}
