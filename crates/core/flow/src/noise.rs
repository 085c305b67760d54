//! Measurement error of round trips, added on purpose as in an experiment (GEMINI, Table V: Zeng et al., §IV-B).

use units::{Span, mix64, mul_div};

/// A measurement error: up to `max` is added to each round trip that the law receives, evenly distributed. Loss
/// detection and timeouts use the true round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noise {
    /// Maximum noise; zero for none.
    pub max: Span,
    /// Seed of this flow's noise.
    pub seed: u64,
}

impl Noise {
    /// No noise.
    pub const NONE: Self = Self { max: Span::ZERO, seed: 0 };

    /// Returns the noise added to the RTT of a transmission.
    pub(crate) fn of(self, seq: u32, attempt: u8) -> Span {
        let hash = mix64(self.seed ^ mix64(u64::from(seq) << 8 | u64::from(attempt)));
        Span::from_ps(mul_div(hash, self.max.unsigned_ps(), u64::MAX) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_uniform_and_depends_on_flow_and_packet() {
        let noise = Noise { max: Span::from_ms(2), seed: 7 };
        let of = |noise: Noise| (0..10_000).map(move |seq| noise.of(seq, 1));
        assert!(of(noise).all(|span| Span::ZERO <= span && span <= Span::from_ms(2)));
        let mean = of(noise).sum::<Span>().over(10_000);
        assert!(Span::from_us(980) < mean && mean < Span::from_us(1_020), "{mean}");
        let under = of(noise).filter(|&span| span < Span::from_us(200)).count();
        assert!((900..1_100).contains(&under), "{under} of 10,000 in the lowest tenth");
        assert!(noise.of(3, 1) != noise.of(3, 2) && noise.of(3, 1) != Noise { seed: 8, ..noise }.of(3, 1));
        assert_eq!(Noise::NONE.of(3, 1), Span::ZERO);
    }
}
