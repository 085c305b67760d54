//! Lateness of events relative to their due times.

use hdrhistogram::Histogram;
use units::Span;

/// A distribution of lateness.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lateness {
    /// Half were no later.
    pub p50: Span,
    /// 99 % were no later.
    pub p99: Span,
    /// The latest.
    pub max: Span,
    /// Number of events counted.
    pub count: u64,
}

/// Collects lateness in nanoseconds: two significant digits, up to a minute; higher values count as a minute.
#[derive(Debug)]
pub(crate) struct Recorder(Option<Histogram<u64>>);

const MAX_NS: u64 = 60_000_000_000;

impl Recorder {
    pub(crate) fn new() -> Self {
        // The bounds are constants that the histogram accepts (tested below).
        Self(Histogram::new_with_max(MAX_NS, 2).ok())
    }

    pub(crate) fn record(&mut self, late_ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(late_ns);
        }
    }

    pub(crate) fn lateness(&self) -> Lateness {
        let Some(histogram) = self.0.as_ref().filter(|it| !it.is_empty()) else { return Lateness::default() };
        let span = |ns: u64| Span::from_ns(ns as i64);
        Lateness {
            p50: span(histogram.value_at_quantile(0.5)),
            p99: span(histogram.value_at_quantile(0.99)),
            max: span(histogram.max()),
            count: histogram.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_percent() {
        let mut recorder = Recorder::new();
        (1..=1000).for_each(|us| recorder.record(us * 1000));
        let lateness = recorder.lateness();
        let close = |span: Span, us: i64| (span.ns() - us * 1000).abs() <= us * 10;
        assert!(
            lateness.count == 1000 && close(lateness.p50, 500) && close(lateness.p99, 990) && close(lateness.max, 1000),
            "{lateness:?}"
        );
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Recorder::new().lateness(), Lateness::default());
    }

    #[test]
    fn an_hour_counts_as_a_minute() {
        let mut recorder = Recorder::new();
        recorder.record(3600 * 1_000_000_000);
        assert!(recorder.lateness().count == 1 && recorder.lateness().max.ns() >= MAX_NS as i64);
    }
}
