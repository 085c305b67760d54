//! Parity that a block needs: the tail of the binomial distribution in fixed point.

use units::Frac;

use crate::frame::MAX_PARITY;

/// Returns the fewest parity packets m, at most [`MAX_PARITY`], such that more than m of `data` + m packets are lost
/// with a probability of at most `failing`, if each is lost independently with probability `loss`. None if more are
/// needed.
pub(super) fn parity(data: u8, loss: Frac, failing: Frac) -> Option<u8> {
    let (lost, comes) = (loss.min(Frac::ONE), loss.complement());
    // Probability of exactly this many losses among the packets so far. Products are rounded down, by 2^-32 each, so m
    // is never too small.
    let mut exactly = [Frac::ZERO; MAX_PARITY as usize + 1];
    exactly[0] = Frac::ONE;
    let add = |exactly: &mut [Frac]| {
        for losses in (1..exactly.len()).rev() {
            exactly[losses] = exactly[losses] * comes + exactly[losses - 1] * lost;
        }
        exactly[0] = exactly[0] * comes;
    };
    for _ in 0..data {
        add(&mut exactly);
    }
    for parity in 0..=MAX_PARITY {
        let repaired = exactly[..=usize::from(parity)].iter().fold(Frac::ZERO, |sum, &chance| sum + chance);
        if repaired >= failing.complement() {
            return Some(parity);
        }
        add(&mut exactly);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probability of more than `parity` losses, by the formula.
    fn chance_to_fail(data: u8, parity: u8, loss: f64) -> f64 {
        let packets = i32::from(data + parity);
        let (mut chance, mut sum) = ((1.0 - loss).powi(packets), 0.0);
        for losses in 0..=i32::from(parity) {
            sum += chance;
            chance *= f64::from(packets - losses) / f64::from(losses + 1) * loss / (1.0 - loss);
        }
        1.0 - sum
    }

    const FAILING: Frac = Frac::millionths(10_000);

    #[test]
    fn the_fewest_that_are_enough() {
        for ppm in [1, 100, 1_000, 5_000, 12_000, 30_000, 110_000, 250_000, 500_000] {
            for data in 1..=32 {
                let loss = ppm as f64 / 1e6;
                let by_formula = (0..=MAX_PARITY).find(|&parity| chance_to_fail(data, parity, loss) <= 0.01);
                assert_eq!(parity(data, Frac::millionths(ppm), FAILING), by_formula, "{data} packets, {ppm} ppm");
            }
        }
    }

    #[test]
    fn no_losses_need_no_parity_and_all_need_more_than_there_is() {
        assert_eq!(
            [Frac::ZERO, Frac::ONE, Frac::from_bits(u64::MAX)].map(|loss| parity(32, loss, FAILING)),
            [Some(0), None, None]
        );
        // 2 of 10 lost packets are common at 5 %: P(more than 2) = 1.15 %.
        assert_eq!(parity(8, Frac::millionths(50_000), FAILING), Some(3));
        assert_eq!(parity(8, Frac::millionths(10_000), FAILING), Some(1));
    }
}
