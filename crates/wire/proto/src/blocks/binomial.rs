//! Parity that a block needs: the tail of the binomial distribution in fixed point.

use units::Frac;

use crate::frame::MAX_PARITY;

/// Returns the fewest parity packets m, at most [`MAX_PARITY`], such that more than m of `data` + m packets are lost
/// with a probability of at most `max_failure`, if each is lost independently with probability `loss`. None if more are
/// needed.
pub(super) fn parity(data: u8, loss: Frac, max_failure: Frac) -> Option<u8> {
    let (lost, arrives) = (loss.min(Frac::ONE), loss.complement());
    // Probability of exactly this many losses among the packets so far. Products are rounded down, by 2^-32 each, so m
    // is never too small.
    let mut exactly = [Frac::ZERO; MAX_PARITY as usize + 1];
    exactly[0] = Frac::ONE;
    let add = |exactly: &mut [Frac]| {
        for losses in (1..exactly.len()).rev() {
            exactly[losses] = exactly[losses] * arrives + exactly[losses - 1] * lost;
        }
        exactly[0] = exactly[0] * arrives;
    };
    for _ in 0..data {
        add(&mut exactly);
    }
    for parity in 0..=MAX_PARITY {
        let repaired = exactly[..=usize::from(parity)].iter().fold(Frac::ZERO, |sum, &probability| sum + probability);
        if repaired >= max_failure.complement() {
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
    fn failure_probability(data: u8, parity: u8, loss: f64) -> f64 {
        let packets = i32::from(data + parity);
        let (mut probability, mut sum) = ((1.0 - loss).powi(packets), 0.0);
        for losses in 0..=i32::from(parity) {
            sum += probability;
            probability *= f64::from(packets - losses) / f64::from(losses + 1) * loss / (1.0 - loss);
        }
        1.0 - sum
    }

    const MAX_FAILURE: Frac = Frac::millionths(10_000);

    #[test]
    fn minimal_parity_meets_the_failure_limit() {
        for ppm in [1, 100, 1_000, 5_000, 12_000, 30_000, 110_000, 250_000, 500_000] {
            for data in 1..=32 {
                let loss = ppm as f64 / 1e6;
                let by_formula = (0..=MAX_PARITY).find(|&parity| failure_probability(data, parity, loss) <= 0.01);
                assert_eq!(parity(data, Frac::millionths(ppm), MAX_FAILURE), by_formula, "{data} packets, {ppm} ppm");
            }
        }
    }

    #[test]
    fn lossless_links_need_no_parity_and_dead_links_more_than_the_maximum() {
        assert_eq!(
            [Frac::ZERO, Frac::ONE, Frac::from_bits(u64::MAX)].map(|loss| parity(32, loss, MAX_FAILURE)),
            [Some(0), None, None]
        );
        // 2 of 10 lost packets are common at 5 %: P(more than 2) = 1.15 %.
        assert_eq!(parity(8, Frac::millionths(50_000), MAX_FAILURE), Some(3));
        assert_eq!(parity(8, Frac::millionths(10_000), MAX_FAILURE), Some(1));
    }
}
