//! When a port was paused: how often, for how long, and each time where that is asked for.

use units::{Span, Time};

/// The pauses of a port. Its classes that are paused are the port's own to know, a bit each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pauses {
    /// Each class counts.
    count: u64,
    /// The time in which at least one class was paused, until all ran last.
    total: Span,
    /// Since when one is, where one is.
    since: Time,
    /// When at least one class was paused; kept where that is asked for.
    spans: Option<Vec<(Time, Time)>>,
}

impl Pauses {
    /// None so far. With `each`, the time of each one is kept: 16 bytes a pause.
    pub fn new(each: bool) -> Self {
        Self { spans: each.then(Vec::new), ..Self::default() }
    }

    /// At `now` the classes `after` are paused, and before it were `before`.
    pub fn change(&mut self, before: u8, after: u8, now: Time) {
        self.count += u64::from((after & !before).count_ones());
        if before == 0 && after != 0 {
            self.since = now;
        } else if before != 0 && after == 0 {
            debug_assert!(now >= self.since, "a pause that ended before it began");
            self.total += now.since(self.since);
            if let Some(spans) = &mut self.spans {
                spans.push((self.since, now));
            }
        }
    }

    /// How often a class was paused, and for how long until `now` at least one class was. `paused` are those that are.
    pub fn until(&self, now: Time, paused: u8) -> (u64, Span) {
        let lasting = if paused == 0 { Span::ZERO } else { now.saturating_since(self.since) };
        (self.count, self.total + lasting)
    }

    /// From when until when at least one class was paused, in order, as far as that was asked for. One that lasts ends at
    /// `now`.
    pub fn spans(&self, now: Time, paused: u8) -> impl Iterator<Item = (Time, Time)> + '_ {
        let last = (self.spans.is_some() && paused != 0 && now > self.since).then_some((self.since, now));
        self.spans.iter().flatten().copied().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_classes_are_one_span() {
        let us = Time::from_us;
        for each in [false, true] {
            let mut pauses = Pauses::new(each);
            // Class 1 from 1 to 4, class 2 from 3 to 6, class 1 again from 8 on.
            for (before, after, at) in [(0, 2, 1), (2, 6, 3), (6, 4, 4), (4, 0, 6), (0, 2, 8)] {
                pauses.change(before, after, us(at));
            }
            assert_eq!(pauses.until(us(9), 2), (3, Span::from_us(6)));
            let spans: Vec<(Time, Time)> = pauses.spans(us(9), 2).collect();
            assert_eq!(spans, if each { vec![(us(1), us(6)), (us(8), us(9))] } else { vec![] });
        }
    }
}
