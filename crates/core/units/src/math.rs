//! Integer arithmetic that 64-bit machines without `u128` lack, such as the kernel's BPF. There a product with an overflow
//! check would need the compiler's 128-bit helper, so it is computed from 32-bit halves; elsewhere native multiplication is
//! faster. Both return the same numbers.

const LOW: u64 = 0xffff_ffff;

/// `a * b / c`, rounded down and exact; a result over `u64::MAX` saturates, and so does a division by 0.
///
/// ```
/// assert_eq!(units::mul_div(5_000_000_000, 8_000_000_000_000, 100_000_000_000), 400_000_000_000);
/// assert_eq!(units::mul_div(1, 1, 0), u64::MAX);
/// ```
#[inline]
pub const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return u64::MAX;
    }
    if cfg!(target_arch = "bpf") {
        return mul_div_by_halves(a, b, c);
    }
    if let Some(product) = a.checked_mul(b) {
        return product / c;
    }
    let wide = a as u128 * b as u128 / c as u128;
    if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
}

/// `a * b`, or `None` over `u64::MAX`.
#[inline]
pub const fn mul_checked(a: u64, b: u64) -> Option<u64> {
    if cfg!(target_arch = "bpf") {
        let (high, low) = wide_mul(a, b);
        return if high == 0 { Some(low) } else { None };
    }
    a.checked_mul(b)
}

/// `a * b`, at most `u64::MAX`.
#[inline]
pub const fn mul_saturating(a: u64, b: u64) -> u64 {
    match mul_checked(a, b) {
        Some(product) => product,
        None => u64::MAX,
    }
}

const fn mul_div_by_halves(a: u64, b: u64, c: u64) -> u64 {
    let (high, low) = wide_mul(a, b);
    if high == 0 && c != 0 {
        low / c
    } else if high >= c {
        u64::MAX
    } else {
        div_wide(high, low, c)
    }
}

/// The 128 bits of `a * b`, high and low.
const fn wide_mul(a: u64, b: u64) -> (u64, u64) {
    let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
    // Each partial product is under 2^64 - 2^33 + 2, so one carry of 32 bits can be added.
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 32);
    let cross = a0 * b1 + (middle & LOW);
    let high = a1 * b1 + (middle >> 32) + (cross >> 32);
    (high, (cross << 32) | (low & LOW))
}

/// `(high * 2^64 + low) / c` for `high < c`: long division with two digits of 32 bits (Knuth, The Art of Computer
/// Programming 2, 4.3.1, algorithm D).
const fn div_wide(high: u64, low: u64, c: u64) -> u64 {
    // The divisor's highest bit is set, so that a digit's estimate is at most 2 too large.
    let shift = c.leading_zeros();
    let c = c << (shift & 63);
    let high = (high << (shift & 63)) | ((low >> 1) >> (63 - (shift & 63)));
    let low = low << (shift & 63);
    let upper = digit(high, low >> 32, c);
    // The remainder is under `c`; overflow of 64 bits in between cancels.
    let rest = (high << 32).wrapping_add(low >> 32).wrapping_sub(upper.wrapping_mul(c));
    (upper << 32).wrapping_add(digit(rest, low & LOW, c))
}

/// The 32-bit quotient of `(rest * 2^32 + next) / c` for `rest < c` and `c` with its highest bit set.
const fn digit(rest: u64, next: u64, c: u64) -> u64 {
    let (c1, c0) = (c >> 32, c & LOW);
    if c1 == 0 {
        return LOW;
    }
    let (mut estimate, mut left) = (rest / c1, rest % c1);
    let mut corrections = 0;
    while corrections < 2 && (estimate > LOW || estimate * c0 > ((left << 32) | next)) {
        estimate -= 1;
        left += c1;
        if left > LOW {
            break;
        }
        corrections += 1;
    }
    estimate
}

/// The largest `r` with `r * r <= n`.
pub const fn sqrt(n: u64) -> u64 {
    n.isqrt()
}

/// The largest `r` with `r * r * r <= n`, by binary digits (21 steps, no division, no branch: the kernel's verifier
/// follows both sides of each).
pub const fn cube_root(n: u64) -> u64 {
    // No cube of 21 bits is larger.
    let n = if n >> 63 != 0 { u64::MAX >> 1 } else { n };
    let mut root: u64 = 0;
    let mut bit = 21;
    while bit > 0 {
        bit -= 1;
        let candidate = root | (1 << bit);
        // Both are under 2^63: the difference's sign shows whether the cube is too large.
        let too_large = n.wrapping_sub(candidate * candidate * candidate) >> 63;
        root |= (too_large ^ 1) << bit;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers a little off a power of two, or off a sum of two.
    fn edge() -> impl Strategy<Value = u64> {
        (0..64u32, 0..64u32, 0..5u64, any::<bool>()).prop_map(|(a, b, off, both)| {
            let sum = (1u64 << a).wrapping_add(if both { 1 << b } else { 0 });
            sum.wrapping_add(off).wrapping_sub(2)
        })
    }

    proptest! {
        #[test]
        fn mul_div_is_exact_or_saturates(a: u64, b: u64, c in 1..u64::MAX) {
            let exact = u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX);
            prop_assert_eq!(mul_div(a, b, c), exact);
            prop_assert_eq!(mul_div_by_halves(a, b, c), exact);
        }

        /// Tests numbers near the edges: among random numbers, digits with estimates that must be corrected are rare.
        #[test]
        fn halves_are_exact_near_their_edges(
            a in edge(), b in edge(), c in edge().prop_filter("a divisor", |&c| c != 0),
        ) {
            let exact = u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX);
            prop_assert_eq!(mul_div_by_halves(a, b, c), exact);
            let (high, low) = wide_mul(a, b);
            prop_assert_eq!(u128::from(high) << 64 | u128::from(low), u128::from(a) * u128::from(b));
            prop_assert_eq!(mul_checked(a, b), a.checked_mul(b));
        }

        #[test]
        fn cube_root_is_the_largest(n in 0..1u64 << 62) {
            let r = u128::from(cube_root(n));
            prop_assert!(r * r * r <= u128::from(n) && (r + 1) * (r + 1) * (r + 1) > u128::from(n));
        }
    }

    #[test]
    fn cube_root_of_the_largest_input() {
        assert_eq!(cube_root(u64::MAX >> 1), 2_097_151);
    }
}
