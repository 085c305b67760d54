//! Minimum or maximum of recent samples, over a window in four parts.

use units::{Span, Time};

const PARTS: usize = 4;

/// An extreme over a window that slides by quarters: over the last three quarters of the window at least, over all of
/// it at most. The window's length may change as it goes. `LARGEST` selects the extreme.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Recent<const LARGEST: bool> {
    parts: [Span; PARTS], // the newest first
    began: Time,          // the newest
}

impl<const LARGEST: bool> Recent<LARGEST> {
    const NONE: Span = if LARGEST { Span::ZERO } else { Span::MAX };

    pub(crate) const fn new() -> Self {
        Self { parts: [Self::NONE; PARTS], began: Time::ZERO }
    }

    fn better(one: Span, other: Span) -> Span {
        if LARGEST { one.max(other) } else { one.min(other) }
    }

    /// Takes a sample at `now`, which never decreases, under a window of this length.
    pub(crate) fn observe(&mut self, now: Time, sample: Span, window: Span) {
        let part = window.over(PARTS as u32).max(Span::from_ps(1));
        let passed = now.since(self.began).unsigned_ps() / part.unsigned_ps();
        if passed > 0 {
            // Parts older than the window are dropped as a whole.
            for _ in 0..passed.min(PARTS as u64) {
                self.parts = [Self::NONE, self.parts[0], self.parts[1], self.parts[2]];
            }
            // At most the time since zero.
            self.began += Span::from_ps((passed * part.unsigned_ps()) as i64);
        }
        self.parts[0] = Self::better(self.parts[0], sample);
    }

    /// The extreme; [`Span::MAX`] or zero before the first sample.
    pub(crate) fn get(&self) -> Span {
        let [a, b, c, d] = self.parts;
        Self::better(Self::better(a, b), Self::better(c, d))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn samples_older_than_the_window_expire() {
        let mut recent = Recent::<false>::new();
        let window = Span::from_us(8);
        recent.observe(Time::from_us(100), Span::from_us(3), window);
        recent.observe(Time::from_us(101), Span::from_us(5), window);
        assert_eq!(recent.get(), Span::from_us(3));
        recent.observe(Time::from_us(110), Span::from_us(6), window);
        assert_eq!(recent.get(), Span::from_us(6));
    }

    proptest! {
        /// Against the whole history: at least as extreme as over three quarters of the window, at most as over all of
        /// it.
        #[test]
        fn is_between_two_plain_windows(
            steps in proptest::collection::vec((0..3_000u64, 1..1_000i64), 1..200), largest: bool,
        ) {
            let (mut smallest, mut greatest) = (Recent::<false>::new(), Recent::<true>::new());
            let window = Span::from_ns(8_000);
            let mut seen: Vec<(Time, Span)> = Vec::new();
            let mut now = Time::from_us(50);
            for (gap, sample) in steps {
                now += Span::from_ns(gap as i64);
                let sample = Span::from_ns(sample);
                seen.push((now, sample));
                smallest.observe(now, sample, window);
                greatest.observe(now, sample, window);
                let extreme = |ns| {
                    let within = seen.iter().filter(|s| now.since(s.0) <= Span::from_ns(ns)).map(|s| s.1);
                    if largest { within.max() } else { within.min() }
                };
                let got = if largest { greatest.get() } else { smallest.get() };
                let (short, long) = (extreme(5_999).unwrap(), extreme(8_000).unwrap());
                if largest {
                    prop_assert!(short <= got && got <= long, "{got} for {short} to {long}");
                } else {
                    prop_assert!(long <= got && got <= short, "{got} for {long} to {short}");
                }
            }
        }
    }
}
