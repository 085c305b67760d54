//! The clocks of hosts, with the errors that [`Clocks`](crate::Clocks) configures.

use fabric::HostId;
use units::{Span, Time, mix64};

use crate::setup::Setup;

const OFFSET: u64 = 0x4f46_4653;
const DRIFT: u64 = 0x4452_4946;

impl Setup {
    /// Returns the offset of a host's clock at `now`: a function of the seed, the host and the number of
    /// synchronisations so far, so that it depends on neither the caller nor the order of calls.
    pub fn clock_offset(&self, host: HostId, now: Time) -> Span {
        let clocks = &self.host.clocks;
        if clocks.sigma.is_zero() && clocks.drift_ppb == 0 {
            return Span::ZERO;
        }
        let (synchronisations, since) = match clocks.resync {
            Some(period) if period > Span::ZERO => {
                (now.ps() / period.unsigned_ps(), (now.ps() % period.unsigned_ps()) as i64)
            }
            _ => (0, now.ps() as i64),
        };
        let host = mix64(self.seed ^ mix64(u64::from(host.0)));
        let offset = gaussian(mix64(host ^ OFFSET) ^ synchronisations, clocks.sigma.ps());
        let drift_ppb = gaussian(mix64(host ^ DRIFT), i64::from(clocks.drift_ppb) << 16);
        let drifted = (i128::from(drift_ppb) * i128::from(since) / (1_000_000_000 << 16)) as i64;
        Span::from_ps(offset + drifted)
    }

    /// A host's clock in nanoseconds; it wraps after 4.3 s.
    pub fn clock_ns(&self, host: HostId, now: Time) -> u32 {
        let ps = now.ps().cast_signed() + self.clock_offset(host, now).ps();
        ps.div_euclid(1_000) as u32
    }
}

/// Returns a number of mean 0 and this standard deviation, approximately Gaussian: the sum of 12 uniform numbers less their
/// mean, with a variance of 12 times 1/12. The distribution ends at 6 standard deviations, and has 0.2% instead of 0.27%
/// beyond 3.
fn gaussian(salt: u64, sigma: i64) -> i64 {
    let sum: i64 =
        (0..6).map(|pair| mix64(salt ^ pair << 56)).map(|hash| i64::from(hash as u32) + (hash >> 32) as i64).sum();
    ((i128::from(sum - (6 << 32)) * i128::from(sigma)) >> 32) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gaussian_has_its_moments() {
        let draws: Vec<i64> = (0..40_000).map(|salt| gaussian(mix64(salt), 200_000)).collect();
        let mean = draws.iter().sum::<i64>() / 40_000;
        let variance = draws.iter().map(|draw| draw * draw).sum::<i64>() / 40_000;
        assert!(mean.abs() < 4_000, "{mean}");
        assert!((196_000..204_000).contains(&variance.isqrt()), "{}", variance.isqrt());
        let within = |sigmas: i64| draws.iter().filter(|draw| draw.abs() < sigmas * 200_000).count();
        // 68.3% and 95.4% of a Gaussian.
        assert!((26_700..27_900).contains(&within(1)), "{}", within(1));
        assert!((37_900..38_400).contains(&within(2)), "{}", within(2));
        assert_eq!(within(7), 40_000);
    }
}
