//! The decision to mark a packet, on a backlog expressed as time at the line rate.

use units::Frac;

/// RED's marking curve without a division: thresholds and backlog are picoseconds of service.
///
/// Under `min` never, over `min + span` always, in between with a probability that grows linearly to
/// `max_probability`. A span of 0 is a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    min_ps: u64,
    span_ps: u64,
    max_probability: Frac,
}

impl Marker {
    /// Never marks.
    pub const NEVER: Self = Self { min_ps: u64::MAX, span_ps: 0, max_probability: Frac::ZERO };

    /// Marks from `min_ps` on, always from `max_ps` on; both at most 2^40 ps (1.1 s of service).
    pub const fn new(min_ps: u64, max_ps: u64, max_probability: Frac) -> Self {
        Self { min_ps, span_ps: max_ps.saturating_sub(min_ps), max_probability }
    }

    /// Whether a packet that finds `backlog_ps` is marked. `draw` gives 64 random bits and is called only
    /// where chance decides.
    #[inline]
    pub fn marks(&self, backlog_ps: u64, draw: impl FnOnce() -> u64) -> bool {
        if backlog_ps < self.min_ps {
            return false;
        }
        let over = backlog_ps - self.min_ps;
        if over >= self.span_ps {
            return self.min_ps != u64::MAX;
        }
        // chance < p_max * over / span, with 24 random bits: span < 2^40, so the product is under 2^64.
        let chance = draw() >> 40;
        (chance * self.span_ps) >> 24 < self.max_probability.of(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::mix64;

    #[test]
    fn the_curve_is_linear_between_its_ends() {
        let marker = Marker::new(100, 300, Frac::ONE);
        let share = |backlog| (0..20_000).filter(|&i| marker.marks(backlog, || mix64(i))).count();
        assert_eq!(share(99), 0);
        assert!((9_600..10_400).contains(&share(200)), "{}", share(200));
        assert_eq!(share(300), 20_000);
    }

    #[test]
    fn a_step_needs_no_chance() {
        let step = Marker::new(100, 100, Frac::ONE);
        assert!(!step.marks(99, || unreachable!()));
        assert!(step.marks(100, || unreachable!()));
        assert!(!Marker::NEVER.marks(u64::MAX, || unreachable!()));
    }
}
