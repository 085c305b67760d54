//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), in which 2 generates all elements but 0.
//!
//! Addition is XOR. Products here are looked up; the naive engine shifts and reduces, and tests hold the two together.

/// Remainder of x^8: the polynomial without its highest term.
pub(crate) const REDUCTION: u8 = 0x1d;

/// Powers of 2, twice over, so that the sum of two logarithms needs no reduction.
const POWERS: [u8; 510] = powers();
const LOGARITHMS: [u8; 256] = logarithms();

/// For each c the 8 x 8 bit matrix of x -> c x, as `GF2P8AFFINEQB` takes it: byte 7 - i computes bit i.
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) static AFFINE: [u64; 256] = affine();
/// For each c the products of 0 to 15, then those of 0, 16, ... 240.
pub(crate) static NIBBLES: [[u8; 32]; 256] = nibbles();

/// Twice `a`.
#[inline]
pub(crate) const fn double(a: u8) -> u8 {
    (a << 1) ^ (if a & 0x80 == 0 { 0 } else { REDUCTION })
}

/// The product.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[LOGARITHMS[a as usize] as usize + LOGARITHMS[b as usize] as usize]
}

/// The inverse; that of 0, which has none, is 0.
pub(crate) const fn inverse(a: u8) -> u8 {
    if a == 0 {
        return 0;
    }
    POWERS[255 - LOGARITHMS[a as usize] as usize]
}

/// 2 to the `exponent`, which is taken modulo 255.
pub(crate) const fn power_of_two(exponent: usize) -> u8 {
    POWERS[exponent % 255]
}

const fn powers() -> [u8; 510] {
    let mut table = [1; 510];
    let mut at = 1;
    while at < table.len() {
        table[at] = double(table[at - 1]);
        at += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

#[cfg(any(target_arch = "x86_64", test))]
const fn affine() -> [u64; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut bit = 0;
        // Column `bit` of the matrix is c 2^bit; its row i is in byte 7 - i.
        while bit < 8 {
            let column = multiply(c as u8, 1 << bit);
            let mut row = 0;
            while row < 8 {
                table[c] |= ((column >> row & 1) as u64) << (8 * (7 - row) + bit);
                row += 1;
            }
            bit += 1;
        }
        c += 1;
    }
    table
}

const fn nibbles() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[c][nibble] = multiply(c as u8, nibble as u8);
            table[c][nibble + 16] = multiply(c as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        c += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::naive;

    #[test]
    fn products_match_the_naive_engine() {
        for a in 0..=255 {
            for b in 0..=255 {
                let product = naive::multiply(a, b);
                assert_eq!(multiply(a, b), product);
                let nibbles = NIBBLES[usize::from(a)];
                assert_eq!(nibbles[usize::from(b & 15)] ^ nibbles[usize::from(16 + (b >> 4))], product);
                let rows = AFFINE[usize::from(a)].to_be_bytes();
                let bits = (0..8).map(|bit| ((rows[bit] & b).count_ones() as u8 & 1) << bit);
                assert_eq!(bits.fold(0, |sum, bit| sum | bit), product);
            }
            assert_eq!(naive::multiply(a, inverse(a)), u8::from(a != 0));
            assert_eq!(double(a), naive::multiply(2, a));
        }
    }

    #[test]
    fn two_generates_the_field() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            seen[usize::from(power_of_two(exponent))] = true;
        }
        assert_eq!(seen.iter().filter(|&&seen| seen).count(), 255);
        assert!(!seen[0]);
        assert_eq!(power_of_two(255), 1);
    }
}
