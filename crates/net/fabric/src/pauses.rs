//! Pauses of a port: their count, their total time, and, if requested, each one.

use units::{Span, Time};

/// The pauses of a port. The port itself records which of its classes are paused, a bit each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pauses {
    /// Each class counts.
    count: u64,
    /// The time in which at least one class was paused, until all ran last.
    total: Span,
    /// Time since which at least one is paused.
    since: Option<Time>,
    /// Periods in which at least one class was paused; kept if requested.
    spans: Option<Vec<(Time, Time)>>,
}

impl Pauses {
    /// None so far. The time of each one is kept: 16 bytes a pause.
    pub fn with_spans() -> Self {
        Self { spans: Some(Vec::new()), ..Self::default() }
    }

    /// At `now` the classes `after` are paused, and before it were `before`.
    pub fn change(&mut self, before: u8, after: u8, now: Time) {
        debug_assert_eq!(before != 0, self.since.is_some(), "the port and its pause counters agree");
        self.count += u64::from((after & !before).count_ones());
        match self.since {
            None if after != 0 => self.since = Some(now),
            Some(since) if after == 0 => {
                debug_assert!(now >= since, "a pause ends before its start");
                self.since = None;
                self.total += now.since(since);
                if let Some(spans) = &mut self.spans {
                    spans.push((since, now));
                }
            }
            _ => {}
        }
    }

    /// Returns the number of class pauses, and the time until `now` in which at least one class was paused.
    pub fn until(&self, now: Time) -> (u64, Span) {
        let ongoing = self.since.map_or(Span::ZERO, |since| now.saturating_since(since));
        (self.count, self.total + ongoing)
    }

    /// Returns the periods in which at least one class was paused, in order, if they were kept. One that lasts ends at
    /// `now`.
    pub fn spans(&self, now: Time) -> impl Iterator<Item = (Time, Time)> + '_ {
        let last = self.since.filter(|&since| self.spans.is_some() && now > since).map(|since| (since, now));
        self.spans.iter().flatten().copied().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_classes_are_one_span() {
        let us = Time::from_us;
        for (mut pauses, each) in [(Pauses::default(), false), (Pauses::with_spans(), true)] {
            // Class 1 from 1 to 4, class 2 from 3 to 6, class 1 again from 8 on.
            for (before, after, at) in [(0, 2, 1), (2, 6, 3), (6, 4, 4), (4, 0, 6), (0, 2, 8)] {
                pauses.change(before, after, us(at));
            }
            assert_eq!(pauses.until(us(9)), (3, Span::from_us(6)));
            let spans: Vec<(Time, Time)> = pauses.spans(us(9)).collect();
            assert_eq!(spans, if each { vec![(us(1), us(6)), (us(8), us(9))] } else { vec![] });
        }
    }
}
