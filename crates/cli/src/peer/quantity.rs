//! Durations and amounts, in the notation common in network measurement.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::exit::CommandFailure;

/// Units of time and their nanoseconds. A number alone is in seconds.
const TIMES: [(&str, f64); 6] = [("ms", 1e6), ("min", 60e9), ("s", 1e9), ("h", 3_600e9), ("d", 86_400e9), ("", 1e9)];
/// Units of data and their bytes.
const SIZES: [(&str, f64); 9] = [
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
];
/// The most bytes of a test; below, numbers of 64 bits with a point are whole.
const MAX_BYTES: f64 = 1e15;

/// Splits a text into a number and the rest.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let number = text[..end].parse::<f64>().ok()?;
    Some((number, text[end..].trim_start()))
}

/// A duration in a range.
pub(crate) fn duration(option: &str, text: &str, range: RangeInclusive<Duration>) -> Result<Duration, CommandFailure> {
    let (min, max) = range.into_inner();
    let read = || {
        let (number, unit) = split(text.trim())?;
        let (_, ns) = TIMES.iter().find(|(known, _)| *known == unit)?;
        let ns = number * ns;
        (ns < 1e18).then(|| Duration::from_nanos(ns.round() as u64))
    };
    read().filter(|time| (min..=max).contains(time)).ok_or_else(|| {
        CommandFailure::Input(format!(
            "error: {option} {text}: expected {} to {}: a number of seconds, or one with ms, s, min, h or d",
            in_words(min),
            in_words(max)
        ))
    })
}

/// An amount of data in a range.
pub(crate) fn bytes(option: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, CommandFailure> {
    let (min, max) = range.into_inner();
    let read = || {
        let (number, unit) = split(text.trim())?;
        let unit = unit.strip_suffix('B').unwrap_or(unit);
        let factor = if unit.is_empty() { 1.0 } else { SIZES.iter().find(|(known, _)| *known == unit)?.1 };
        let bytes = number * factor;
        (bytes <= MAX_BYTES).then(|| bytes.round() as u64)
    };
    read().filter(|bytes| (min..=max).contains(bytes)).ok_or_else(|| {
        CommandFailure::Input(format!(
            "error: {option} {text}: expected {min} to {max} bytes: a number, or one with k, M, G, T, KiB, MiB, GiB or TiB"
        ))
    })
}

/// Three digits and the unit of a thousand that fits.
fn scaled(value: f64, units: [&str; 5]) -> String {
    let (mut value, mut at) = (value, 0);
    while value >= 999.5 && at + 1 < units.len() {
        value /= 1e3;
        at += 1;
    }
    let digits = if at == 0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.digits$} {}", units[at])
}

/// Such as `115 MB`.
pub(crate) fn amount(bytes: u64) -> String {
    scaled(bytes as f64, ["B", "kB", "MB", "GB", "TB"])
}

/// Bits a second, such as `965 Mbit/s`.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    scaled(bits_a_second(bytes, time), ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// Bits a second; 0 in no time.
pub(crate) fn bits_a_second(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// A duration in seconds, as short as it is exact to the millisecond; whole hours in hours.
pub(crate) fn in_words(time: Duration) -> String {
    const HOUR: u64 = 3_600;
    if time.as_secs() >= HOUR && time == Duration::from_hours(time.as_secs() / HOUR) {
        return format!("{} h", time.as_secs() / HOUR);
    }
    let text = format!("{:.3}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(48);

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        for (text, ms) in
            [("10", 10_000), ("0.5", 500), ("500ms", 500), ("10s", 10_000), ("2 h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration("--time", text, RANGE).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "-1", "0", "10 years", "3d", "s", "1e3", "nan", "..", "99999999999999999999999999999d"] {
            let message = duration("--time", text, RANGE).unwrap_err().to_string();
            assert!(message.starts_with(&format!("error: --time {text}: expected 0.001 s to 48 h")), "{message}");
        }
    }

    #[test]
    fn amounts_are_bytes_or_have_a_unit() {
        for (text, expected) in [("20M", 20_000_000), ("64KiB", 65_536), ("1.5GB", 1_500_000_000), ("7", 7), ("7B", 7)]
        {
            assert_eq!(bytes("--bytes", text, 1..=u64::MAX).unwrap(), expected, "{text}");
        }
        for text in ["", "0", "20Mbit", "M", "-3", "2e3", "99999999T"] {
            assert!(bytes("--bytes", text, 1..=u64::MAX).is_err(), "{text}");
        }
    }

    #[test]
    fn three_digits_are_shown() {
        let shown = [0, 999, 1_000, 99_949, 115_000_000, 999_499_999, 999_500_000, 3 << 40].map(amount);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "99.9 kB", "115 MB", "999 MB", "1.00 GB", "3.30 TB"]);
        assert_eq!(rate(120_625_000, Duration::from_secs(1)), "965 Mbit/s");
        assert_eq!(rate(1, Duration::ZERO), "0 bit/s");
        assert_eq!(
            [1_500, 60_000, 7_200_000, 7_201_000].map(|ms| in_words(Duration::from_millis(ms))),
            ["1.5 s", "60 s", "2 h", "7201 s"]
        );
    }
}
