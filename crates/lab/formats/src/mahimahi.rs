//! Link traces of Mahimahi (Netravali et al., USENIX ATC 2015; `mm-link`): a line per delivery opportunity, the time in
//! milliseconds at which a packet of 1,500 bytes may leave. The file is repeated: its last time is the period.

use crate::{ByteRange, Error};

/// Bytes of a delivery opportunity.
pub const OPPORTUNITY_BYTES: u64 = 1_500;

/// The longest trace, in milliseconds: a day.
pub const MAX_MS: u64 = 24 * 3_600 * 1_000;

/// A trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryTrace {
    /// Times of the opportunities in milliseconds, in order; the last one is over 0.
    pub times_ms: Vec<u64>,
}

/// Opportunities in one millisecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Start of the millisecond, counted from the start of the period.
    pub start_ms: u64,
    /// Number of opportunities at its end.
    pub opportunities: u64,
}

impl DeliveryTrace {
    /// Returns the time after which the trace begins again, in milliseconds.
    pub fn period_ms(&self) -> u64 {
        self.times_ms.last().copied().unwrap_or_default()
    }

    /// Returns the milliseconds with opportunities, in order. An opportunity at a time is of the millisecond that ends then.
    /// Those at time 0 are of the last millisecond of the period: `mm-link` has them once more before the first period.
    pub fn slots(&self) -> Vec<Slot> {
        let period = self.period_ms();
        let at_zero = self.times_ms.iter().take_while(|&&time| time == 0).count();
        let mut slots: Vec<Slot> = Vec::new();
        for group in self.times_ms[at_zero..].chunk_by(|a, b| a == b) {
            slots.push(Slot { start_ms: group[0] - 1, opportunities: group.len() as u64 });
        }
        if let Some(last) = slots.last_mut() {
            debug_assert!(last.start_ms + 1 == period, "the last opportunity ends the period");
            last.opportunities += at_zero as u64;
        }
        slots
    }
}

/// Reads a trace. Empty lines are ignored.
///
/// # Errors
/// If a line is not a whole number, or less than the one before it; if there are none, or only at time 0.
pub fn read(text: &str) -> Result<DeliveryTrace, Error> {
    const EXPECTED: &str =
        "expected a whole number of milliseconds, at most 86400000 and not less than in the line before";
    let mut times_ms: Vec<u64> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let at = start + (line.len() - line.trim_start().len());
        let at = ByteRange::new(at..at + content.len());
        start += line.len();
        if content.is_empty() {
            continue;
        }
        let time = content.parse().ok().filter(|&time| time <= MAX_MS && content.as_bytes()[0].is_ascii_digit());
        let Some(time) = time else {
            return Err(Error::text(at, format!("`{}` is no time of a trace", shortened(content)), EXPECTED));
        };
        if let Some(&before) = times_ms.last().filter(|&&before| before > time) {
            return Err(Error::text(at, format!("{time} ms comes after {before} ms"), EXPECTED));
        }
        times_ms.push(time);
    }
    if times_ms.last().is_none_or(|&last| last == 0) {
        let all = ByteRange::new(0..text.len());
        return Err(Error::text(all, "a trace without a time over 0", EXPECTED));
    }
    Ok(DeliveryTrace { times_ms })
}

/// Returns the beginning of a long text.
fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(20).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn opportunities_are_counted_by_millisecond() {
        let trace = read("0\n3\n3\n\n 4 \r\n7\n").unwrap();
        assert_eq!(trace.period_ms(), 7);
        let slot = |start_ms, opportunities| Slot { start_ms, opportunities };
        assert_eq!(trace.slots(), [slot(2, 2), slot(3, 1), slot(6, 2)]);
    }

    #[test]
    fn errors_name_their_line() {
        let place = |text: &str| read(text).unwrap_err().line_and_column(text);
        assert_eq!(place("1\n2\n x\n"), "3:2");
        assert_eq!(place("1\n5\n4\n"), "3:1");
        assert_eq!(place("1\n-2\n"), "2:1");
        assert_eq!(place("1\n+2\n"), "2:1");
        assert_eq!(place("86400001\n"), "1:1");
        assert_eq!([place(""), place("0\n0\n")], ["1:1", "1:1"]);
    }

    proptest! {
        /// Any text is a trace or an error, and a trace's slots have all of its opportunities, within its period.
        #[test]
        fn slots_have_all_opportunities(text in "[0-9 x\r\n]{0,60}") {
            let Ok(trace) = read(&text) else { return Ok(()) };
            let slots = trace.slots();
            prop_assert_eq!(slots.iter().map(|slot| slot.opportunities).sum::<u64>(), trace.times_ms.len() as u64);
            prop_assert!(slots.iter().all(|slot| slot.start_ms < trace.period_ms() && slot.opportunities > 0));
            prop_assert!(slots.is_sorted_by(|a, b| a.start_ms < b.start_ms));
        }
    }
}
