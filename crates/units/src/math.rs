//! Integer arithmetic that 64-bit machines without `u128` lack.

/// `a * b / c`, rounded down and exact; a result over `u64::MAX` saturates.
///
/// # Panics
/// If `c` is 0.
///
/// ```
/// assert_eq!(units::mul_div(5_000_000_000, 8_000_000_000_000, 100_000_000_000), 400_000_000_000);
/// ```
#[inline]
pub const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None if cfg!(target_arch = "bpf") => mul_div_by_digits(a, b, c),
        None => {
            let wide = a as u128 * b as u128 / c as u128;
            if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
        }
    }
}

/// The same where there is no `u128`: a product of 32-bit halves, then long division, 64 steps.
const fn mul_div_by_digits(a: u64, b: u64, c: u64) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
    // Each partial product is under 2^64 - 2^33 + 2, so one carry of 32 bits fits beside it.
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 32);
    let cross = a0 * b1 + (middle & LOW);
    let mut high = a1 * b1 + (middle >> 32) + (cross >> 32);
    let mut rest = (cross << 32) | (low & LOW);
    if high >= c {
        return u64::MAX;
    }
    let mut quotient = 0;
    let mut step = 0;
    while step < 64 {
        let carry = high >> 63;
        high = (high << 1) | (rest >> 63);
        rest <<= 1;
        quotient <<= 1;
        if carry == 1 || high >= c {
            high = high.wrapping_sub(c);
            quotient |= 1;
        }
        step += 1;
    }
    quotient
}

/// The largest `r` with `r * r <= n`.
pub const fn sqrt(n: u64) -> u64 {
    n.isqrt()
}

/// The largest `r` with `r * r * r <= n`, by binary digits (21 steps, no division).
pub const fn cube_root(n: u64) -> u64 {
    let mut root: u64 = 0;
    let mut bit = 21;
    while bit > 0 {
        bit -= 1;
        let candidate = root | (1 << bit);
        // candidate < 2^21, so its cube is under 2^63.
        if candidate * candidate * candidate <= n {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn mul_div_is_exact_or_saturates(a: u64, b: u64, c in 1..u64::MAX) {
            let exact = u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX);
            prop_assert_eq!(mul_div(a, b, c), exact);
            prop_assert_eq!(mul_div_by_digits(a, b, c), exact);
        }

        #[test]
        fn cube_root_is_the_largest(n in 0..1u64 << 62) {
            let r = u128::from(cube_root(n));
            prop_assert!(r * r * r <= u128::from(n) && (r + 1) * (r + 1) * (r + 1) > u128::from(n));
        }
    }

    #[test]
    fn cube_root_at_its_end() {
        assert_eq!(cube_root(u64::MAX >> 1), 2_097_151);
    }
}
