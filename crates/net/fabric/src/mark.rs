//! The decision to mark a packet, on a backlog expressed as time at the line rate.

use units::{Frac, Span};

/// RED's marking curve without a division: thresholds and backlog are times of service.
///
/// Under `min` never, over `min + range` always, in between with a probability that grows linearly to
/// `max_probability`. A range of 0 is a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Marker {
    min: Span,
    /// Below zero for one that never marks.
    range: Span,
    max_probability: Frac,
}

impl Marker {
    /// Never marks.
    pub const NEVER: Self = Self { min: Span::MAX, range: Span::from_ps(-1), max_probability: Frac::ZERO };

    /// Marks from `min` on, always from `max` on, which is no less; both at most 2^40 ps (1.1 s of service).
    pub const fn new(min: Span, max: Span, max_probability: Frac) -> Self {
        debug_assert!(min.ps() <= max.ps(), "thresholds are crossed");
        Self { min, range: Span::from_ps(max.ps() - min.ps()), max_probability }
    }

    /// Returns whether a packet that finds `backlog` is marked. `draw` returns 64 random bits and is called only where
    /// chance decides.
    #[inline]
    pub fn marks(&self, backlog: Span, draw: impl FnOnce() -> u64) -> bool {
        if backlog < self.min {
            return false;
        }
        let over = backlog - self.min;
        if over >= self.range {
            return self.range >= Span::ZERO;
        }
        // chance < p_max * over / range, with 24 random bits: range < 2^40, so the product is under 2^64.
        let chance = draw() >> 40;
        (chance * self.range.ps() as u64) >> 24 < self.max_probability.of(over.ps() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::mix64;

    #[test]
    fn the_curve_is_linear_between_its_ends() {
        let marker = Marker::new(Span::from_ps(100), Span::from_ps(300), Frac::ONE);
        let share = |ps| (0..20_000).filter(|&i| marker.marks(Span::from_ps(ps), || mix64(i))).count();
        assert_eq!(share(99), 0);
        assert!((9_600..10_400).contains(&share(200)), "{}", share(200));
        assert_eq!(share(300), 20_000);
    }

    #[test]
    fn a_step_needs_no_random_bits() {
        let at = Span::from_ps(100);
        let step = Marker::new(at, at, Frac::ONE);
        assert!(!step.marks(Span::from_ps(99), || unreachable!()));
        assert!(step.marks(at, || unreachable!()));
        assert!(!Marker::NEVER.marks(Span::MAX, || unreachable!()));
    }
}
