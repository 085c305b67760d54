//! Outages of a link.

use units::Time;

/// Times at which a link is down: packets that would arrive over it then, or were on their way, are lost. The port in front
/// of it does not detect this and continues to serve.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Outages {
    /// From one time up to, but without, another; in order and apart.
    spans: Vec<(Time, Time)>,
}

impl Outages {
    /// Down from the first time of each pair up to, but without, the second one. Pairs may be in any order, and overlap.
    pub fn new(spans: impl IntoIterator<Item = (Time, Time)>) -> Self {
        let mut sorted: Vec<(Time, Time)> = spans.into_iter().filter(|(from, until)| from < until).collect();
        sorted.sort_unstable();
        let mut spans: Vec<(Time, Time)> = Vec::new();
        for (from, until) in sorted {
            match spans.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => spans.push((from, until)),
            }
        }
        Self { spans }
    }

    /// Returns whether the link is down at any time from `from` to `until`, both included.
    #[inline]
    pub fn cut(&self, from: Time, until: Time) -> bool {
        let next = self.spans.partition_point(|&(_, up)| up <= from);
        self.spans.get(next).is_some_and(|&(down, _)| down <= until)
    }

    /// Returns the times at which the link fails and recovers, in order.
    pub fn spans(&self) -> impl Iterator<Item = (Time, Time)> + '_ {
        self.spans.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any spans, in any order: the same as looking at each alone.
        #[test]
        fn outages_match_a_linear_search(spans in proptest::collection::vec((0..50u64, 0..20u64), 0..8), from in 0..60u64, long in 0..30u64) {
            let times = |(from, long)| (Time::from_ps(from), Time::from_ps(from + long));
            let spans: Vec<(Time, Time)> = spans.into_iter().map(times).collect();
            let outages = Outages::new(spans.iter().copied());
            let down = |time: Time| spans.iter().any(|&(from, until)| from <= time && time < until);
            let (first, last) = times((from, long));
            prop_assert_eq!(outages.cut(first, last), (from..=from + long).map(Time::from_ps).any(down));
            let mut last = None;
            for (from, until) in outages.spans() {
                prop_assert!(from < until && last.is_none_or(|last| last < from));
                last = Some(until);
            }
        }
    }
}
