//! Numbers with units: the operands and results of a claim's expressions.

use std::fmt;

/// Powers of a bit and of a nanosecond: the dimension of a value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dimension {
    bits: i8,
    ns: i8,
}

impl Dimension {
    /// A plain number.
    pub const NUMBER: Self = Self { bits: 0, ns: 0 };
    /// A time.
    pub const TIME: Self = Self { bits: 0, ns: 1 };
    /// An amount of data.
    pub const DATA: Self = Self { bits: 1, ns: 0 };
    /// A rate.
    pub const RATE: Self = Self { bits: 1, ns: -1 };

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bits: self.bits.saturating_add(other.bits), ns: self.ns.saturating_add(other.ns) }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self { bits: self.bits.saturating_sub(other.bits), ns: self.ns.saturating_sub(other.ns) }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NUMBER => f.write_str("a number"),
            Self::TIME => f.write_str("a time"),
            Self::DATA => f.write_str("an amount of data"),
            Self::RATE => f.write_str("a rate"),
            Self { bits, ns } => write!(f, "something in bit^{bits} ns^{ns}"),
        }
    }
}

/// A unit that may follow a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    pub(crate) name: &'static str,
    dimension: Dimension,
    /// The number of base units in it: `times / over`.
    times: u64,
    over: u64,
}

const fn unit(name: &'static str, dimension: Dimension, times: u64, over: u64) -> Unit {
    Unit { name, dimension, times, over }
}

impl Unit {
    /// All of them, the smallest of each kind first.
    pub const ALL: [Self; 19] = [
        unit("%", Dimension::NUMBER, 1, 100),
        unit("ps", Dimension::TIME, 1, 1_000),
        unit("ns", Dimension::TIME, 1, 1),
        unit("us", Dimension::TIME, 1_000, 1),
        unit("ms", Dimension::TIME, 1_000_000, 1),
        unit("s", Dimension::TIME, 1_000_000_000, 1),
        unit("B", Dimension::DATA, 8, 1),
        unit("KB", Dimension::DATA, 8_000, 1),
        unit("MB", Dimension::DATA, 8_000_000, 1),
        unit("GB", Dimension::DATA, 8_000_000_000, 1),
        unit("TB", Dimension::DATA, 8_000_000_000_000, 1),
        unit("KiB", Dimension::DATA, 8 << 10, 1),
        unit("MiB", Dimension::DATA, 8 << 20, 1),
        unit("GiB", Dimension::DATA, 8 << 30, 1),
        unit("bps", Dimension::RATE, 1, 1_000_000_000),
        unit("kbps", Dimension::RATE, 1, 1_000_000),
        unit("Mbps", Dimension::RATE, 1, 1_000),
        unit("Gbps", Dimension::RATE, 1, 1),
        unit("Tbps", Dimension::RATE, 1_000, 1),
    ];

    /// The unit of that name; `µs` and `Kbps` are other spellings.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = match name {
            "µs" | "μs" => "us",
            "Kbps" => "kbps",
            "kB" => "KB",
            other => other,
        };
        Self::ALL.into_iter().find(|unit| unit.name == name)
    }

    /// Returns `amount` of this unit as a value.
    pub(crate) fn of(self, amount: f64) -> DimensionedValue {
        DimensionedValue { amount: amount * self.times as f64 / self.over as f64, dimension: self.dimension }
    }
}

/// The value of an expression: in bits, nanoseconds, and bits per nanosecond. An endless time is `never`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DimensionedValue {
    /// In base units.
    pub amount: f64,
    /// The physical dimension.
    pub dimension: Dimension,
}

impl DimensionedValue {
    /// A plain number.
    pub const fn number(amount: f64) -> Self {
        Self { amount, dimension: Dimension::NUMBER }
    }

    /// A number of things.
    pub fn count(count: u64) -> Self {
        Self::number(count as f64)
    }

    /// A time.
    pub const fn ns(amount: f64) -> Self {
        Self { amount, dimension: Dimension::TIME }
    }

    /// An amount of data.
    pub fn bytes(amount: f64) -> Self {
        Self { amount: amount * 8.0, dimension: Dimension::DATA }
    }

    /// A rate.
    pub fn bps(amount: f64) -> Self {
        Self { amount: amount / 1e9, dimension: Dimension::RATE }
    }
}

impl DimensionedValue {
    /// In the unit that columns of tables have, and the suffix of its name there: nanoseconds (`ns`), `bytes`, `bps`; no
    /// suffix for a plain number, and the dimension for everything else.
    pub fn as_in_tables(&self) -> (f64, String) {
        match self.dimension {
            Dimension::NUMBER => (self.amount, String::new()),
            Dimension::TIME => (self.amount, "ns".into()),
            Dimension::DATA => (self.amount / 8.0, "bytes".into()),
            Dimension::RATE => (self.amount * 1e9, "bps".into()),
            Dimension { bits, ns } => (self.amount, format!("bit^{bits} ns^{ns}")),
        }
    }
}

impl DimensionedValue {
    /// The largest unit that does not exceed the amount, with its length in the value's own units; none for plain numbers
    /// and dimensions without units.
    fn unit(&self) -> Option<(f64, &'static str)> {
        let scale = |unit: &Unit| unit.times as f64 / unit.over as f64;
        // Powers of ten only, and no time under a nanosecond: picoseconds are for literals.
        let fits = |unit: &&Unit| {
            unit.dimension == self.dimension && !unit.name.contains('i') && !["%", "ps"].contains(&unit.name)
        };
        let units = || Unit::ALL.iter().filter(fits);
        let fitting = units().rev().find(|unit| self.amount.abs() >= scale(unit)).or_else(|| units().next());
        fitting.map(|unit| (scale(unit), unit.name))
    }

    /// The value and half of its confidence interval, in one unit, both rounded to the second significant digit of the
    /// interval: `159000 ± 21000`, `1.5003 ± 0.0038 ms`.
    ///
    /// An interval that is too narrow for that, because the value would have more than [`MAX_DIGITS`] digits, has a unit of its
    /// own behind the value's four digits: `697.9 ms ± 720 ns`. One of no width is `± 0`.
    pub(crate) fn within(&self, margin: f64) -> String {
        let rounded = self.rounded(margin);
        let behind = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match rounded.own_unit {
            Some(unit) => format!("{self} ± {}{}", rounded.half, behind(unit)),
            None => format!("{} ± {}{}", rounded.amount, rounded.half, behind(rounded.unit)),
        }
    }

    /// The value, its unit and half of its confidence interval as [`Self::within`] rounds them, each by itself and in the
    /// value's unit.
    pub(crate) fn written(&self, margin: Option<f64>) -> WrittenValue {
        let formatted = |value: &Self| {
            let unit = value.unit().map_or("", |(_, unit)| unit);
            let text = value.to_string();
            (text.strip_suffix(unit).unwrap_or(&text).trim_end().to_owned(), unit)
        };
        let Some(margin) = margin.filter(|margin| margin.is_finite()) else {
            let (amount, unit) = if self.amount.is_finite() { formatted(self) } else { (self.to_string(), "") };
            return WrittenValue { amount, half: None, unit };
        };
        let rounded = self.rounded(margin);
        let Some(own_unit) = rounded.own_unit else {
            return WrittenValue { amount: rounded.amount, half: Some(rounded.half), unit: rounded.unit };
        };
        let (amount, unit) = formatted(self);
        let half = if own_unit == unit {
            rounded.half
        } else {
            let half = margin / self.unit().map_or(1.0, |(scale, _)| scale);
            to_decimal_place(half, last_place(half))
        };
        WrittenValue { amount, half: Some(half), unit }
    }

    /// Rounds both for [`Self::within`].
    fn rounded(&self, margin: f64) -> RoundedInterval {
        let of = |amount| Self { amount, ..*self };
        let (scale, unit) = of(self.amount.abs().max(margin)).unit().unwrap_or((1.0, ""));
        let (amount, half) = (self.amount / scale, margin / scale);
        if margin <= 0.0 {
            return RoundedInterval { amount: digits(amount), unit, half: "0".to_owned(), own_unit: None };
        }
        let last = last_place(half);
        let is_long = magnitude(amount) - last >= MAX_DIGITS;
        // Whole numbers that no larger unit shortens are in full.
        let is_whole = amount.abs() >= 1_000.0 && half >= 1.0;
        if is_long && !is_whole {
            let (scale, own_unit) = of(margin).unit().unwrap_or((1.0, ""));
            let half = margin / scale;
            if !own_unit.is_empty() && half < MIN_HALF {
                return self.rounded(0.0);
            }
            return RoundedInterval { amount: String::new(), unit, half: two_digits(half), own_unit: Some(own_unit) };
        }
        let last = if is_long { last.max(0) } else { last };
        RoundedInterval {
            amount: to_decimal_place(amount, last),
            unit,
            half: to_decimal_place(half, last),
            own_unit: None,
        }
    }
}

/// A rounded value and half of its interval.
struct RoundedInterval {
    /// In `unit`; empty if the interval has a unit of its own.
    amount: String,
    unit: &'static str,
    /// In `own_unit`, or else in `unit`.
    half: String,
    own_unit: Option<&'static str>,
}

/// A value as tables write it, in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenValue {
    /// The rounded value; `never` for an endless time.
    pub amount: String,
    /// Half of its 95 % confidence interval, in the same unit; none of a single value.
    pub half: Option<String>,
    /// The unit of both; empty for plain numbers.
    pub unit: &'static str,
}

/// Most significant digits of a mean with its confidence interval.
const MAX_DIGITS: i32 = 6;

/// An interval counts as zero below this share of its smallest unit: a nanosecond, a byte, a bit per second.
const MIN_HALF: f64 = 0.01;

/// The power of ten of a number's first digit.
fn magnitude(amount: f64) -> i32 {
    if amount == 0.0 { i32::MIN / 2 } else { amount.abs().log10().floor() as i32 }
}

/// The power of ten of a positive number's second significant digit, when it is rounded to that digit.
fn last_place(amount: f64) -> i32 {
    let last = magnitude(amount) - 1;
    // 0.0996 is 0.10.
    if amount / 10.0_f64.powi(last) >= 99.5 { last + 1 } else { last }
}

/// A number rounded to a power of ten.
fn to_decimal_place(amount: f64, exponent: i32) -> String {
    let text = if exponent < 0 {
        let decimals = usize::try_from(-exponent).unwrap_or(0);
        format!("{amount:.decimals$}")
    } else {
        let step = 10.0_f64.powi(exponent);
        format!("{:.0}", (amount / step).round() * step)
    };
    let is_zero = text.bytes().all(|digit| !matches!(digit, b'1'..=b'9'));
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// A positive number's first two significant digits.
fn two_digits(amount: f64) -> String {
    if amount < 1e-4 { format!("{amount:.1e}") } else { to_decimal_place(amount, last_place(amount)) }
}

/// Prints in the largest unit that leaves a whole part, with four digits.
impl fmt::Display for DimensionedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dimension == Dimension::TIME && self.amount.is_infinite() {
            return f.write_str("never");
        }
        match self.unit() {
            Some((scale, unit)) => write!(f, "{} {unit}", digits(self.amount / scale)),
            None if self.dimension == Dimension::NUMBER => f.write_str(&digits(self.amount)),
            None => write!(f, "{} ({})", digits(self.amount), self.dimension),
        }
    }
}

/// Four significant digits, whole numbers in full.
fn digits(amount: f64) -> String {
    let size = amount.abs();
    if size >= 1_000.0 || size.fract() <= 0.0 {
        return format!("{amount:.0}");
    }
    if size < 1e-4 {
        return format!("{amount:.3e}");
    }
    let mut decimals = 3;
    let mut limit = 1.0;
    while size < limit && decimals < 7 {
        limit /= 10.0;
        decimals += 1;
    }
    if size >= 10.0 {
        decimals -= 1;
    }
    if size >= 100.0 {
        decimals -= 1;
    }
    let text = format!("{amount:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_print_with_four_digits() {
        let cases = [
            (DimensionedValue::ns(20_278_022.928), "20.28 ms"),
            (DimensionedValue::ns(14.0), "14 ns"),
            (DimensionedValue::ns(0.5), "0.5 ns"),
            (DimensionedValue::ns(f64::INFINITY), "never"),
            (DimensionedValue::bytes(175_344.0), "175.3 KB"),
            (DimensionedValue::bytes(0.0), "0 B"),
            (DimensionedValue::bps(95_238_095_238.0), "95.24 Gbps"),
            (DimensionedValue::number(0.958_2), "0.9582"),
            (DimensionedValue::number(0.095_82), "0.09582"),
            (DimensionedValue::number(12_345.6), "12346"),
            (DimensionedValue::number(3.0), "3"),
            (DimensionedValue::number(0.000_001_234), "1.234e-6"),
            (DimensionedValue::number(-2.5), "-2.5"),
            (DimensionedValue { amount: 2.0, dimension: Dimension { bits: 2, ns: 0 } }, "2 (something in bit^2 ns^0)"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn units_have_their_sizes() {
        let same = [("1000us", "1ms"), ("1KiB", "1024B"), ("100%", "1"), ("1000Mbps", "1Gbps"), ("1000ps", "1ns")];
        for (one, other) in same {
            let read = |text: &str| {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                let amount = text[..end].parse().unwrap();
                Unit::from_name(&text[end..]).map_or(DimensionedValue::number(amount), |unit| unit.of(amount))
            };
            assert_eq!(read(one), read(other), "{one} {other}");
        }
        assert_eq!(Unit::from_name("µs"), Unit::from_name("us"));
        assert_eq!(Unit::from_name("m"), None);
    }

    #[test]
    fn a_value_is_written_in_parts() {
        let written = |value: DimensionedValue, margin: Option<f64>| {
            let WrittenValue { amount, half, unit } = value.written(margin);
            format!("{amount}|{}|{unit}", half.unwrap_or_else(|| "-".to_owned()))
        };
        let cases = [
            (DimensionedValue::ns(1_500_333.3), Some(3_800.0), "1.5003|0.0038|ms"),
            (DimensionedValue::number(158_637.0), Some(21_165.0), "159000|21000|"),
            (DimensionedValue::bytes(1_050_000.0), Some(96.0), "1.05|0.000012|MB"),
            (DimensionedValue::ns(697_941_880.0), Some(720.0), "697.9|0.00072|ms"),
            (DimensionedValue::number(0.998_2), Some(1.23e-6), "0.9982|1.2e-6|"),
            (DimensionedValue::ns(1_050.0), Some(0.000_1), "1.05|0|us"),
            (DimensionedValue::ns(999_960.0), Some(12_000.0), "1000|12|us"),
            (DimensionedValue::bps(95_238_095_238.0), None, "95.24|-|Gbps"),
            (DimensionedValue::ns(f64::INFINITY), None, "never|-|"),
            (DimensionedValue::ns(f64::INFINITY), Some(f64::NAN), "never|-|"),
            (DimensionedValue::number(3.0), None, "3|-|"),
        ];
        for (value, margin, parts) in cases {
            assert_eq!(written(value, margin), parts);
        }
    }

    #[test]
    fn a_value_and_its_interval_are_rounded_together() {
        let cases = [
            (DimensionedValue::ns(1_500_333.3), 3_800.0, "1.5003 ± 0.0038 ms"),
            (DimensionedValue::number(158_637.0), 21_165.0, "159000 ± 21000"),
            (DimensionedValue::number(19_625.0), 402.0, "19630 ± 400"),
            (DimensionedValue::number(134.71), 6.93, "134.7 ± 6.9"),
            (DimensionedValue::bytes(1_050_000.0), 12.0, "1.05 MB ± 12 B"),
            (DimensionedValue::ns(697_941_880.0), 720.0, "697.9 ms ± 720 ns"),
            (DimensionedValue::number(0.998_2), 1.23e-6, "0.9982 ± 1.2e-6"),
            (DimensionedValue::bytes(1_050_000.0), 0.0, "1.05 ± 0 MB"),
            (DimensionedValue::ns(1_050.0), 0.000_1, "1.05 ± 0 us"),
            (DimensionedValue::number(7.0), 0.0, "7 ± 0"),
            (DimensionedValue::number(0.0), 0.0, "0 ± 0"),
            (DimensionedValue::number(4.0), 12.7, "4 ± 13"),
            (DimensionedValue::number(-0.01), 12.7, "0 ± 13"),
            // The wider of both has the unit, and its rounding may carry.
            (DimensionedValue::ns(200_000.0), 3_000_000.0, "0.2 ± 3.0 ms"),
            (DimensionedValue::number(5.0), 0.099_6, "5.00 ± 0.10"),
            (DimensionedValue::ns(999_960.0), 12_000.0, "1000 ± 12 us"),
        ];
        for (value, margin, text) in cases {
            let margin = if value.dimension == Dimension::DATA { margin * 8.0 } else { margin };
            assert_eq!(value.within(margin), text);
        }
    }

    /// A number and its unit as they are printed, in the value's own units, and its last digit's place.
    fn read(text: &str, unit: &str) -> (f64, f64) {
        let amount: f64 = text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"));
        let scale = Unit::from_name(unit).map_or(1.0, |unit| unit.of(1.0).amount);
        let places = text.split_once('.').map_or(0, |(_, places)| places.len());
        (amount * scale, scale * 10.0_f64.powi(-i32::try_from(places).unwrap_or(0)))
    }

    proptest! {
        /// A value and its interval are printed in one unit and to the same place, with no more digits than the
        /// interval's second; an interval below the value's last digit has a unit of its own.
        #[test]
        fn no_digit_is_spurious(kind in 0..4_usize, digits in 1.0..10.0_f64, tens in -6..14_i32, wide in -9.0..2.0_f64) {
            let amount = digits * 10.0_f64.powi(tens);
            let dimension = [Dimension::NUMBER, Dimension::TIME, Dimension::DATA, Dimension::RATE][kind];
            let margin = amount * 10.0_f64.powf(wide);
            let text = DimensionedValue { amount, dimension }.within(margin);
            if dimension != Dimension::NUMBER && text.contains("± 0 ") {
                let smallest = Unit::ALL.iter().find(|unit| unit.dimension == dimension && unit.name != "ps").unwrap();
                prop_assert!(margin < smallest.of(0.01).amount, "{}", text);
                return Ok(());
            }
            let (left, right) = text.split_once(" ± ").unwrap();
            let (half, unit) = right.split_once(' ').unwrap_or((right, ""));
            let own = left.split_once(' ');
            let (mean, last) = own.map_or_else(|| read(left, unit), |(mean, unit)| read(mean, unit));
            let (shown, place) = read(half, unit);
            let nonzero = half.split('e').next().unwrap().trim_start_matches(['0', '.']).trim_end_matches('0').trim_end_matches('.');
            prop_assert!(nonzero.bytes().filter(u8::is_ascii_digit).count() <= 2, "{}", text);
            // An interval of a long whole number is whole, too.
            let half_a_unit = if left.contains('.') || left.len() < 6 { 0.0 } else { last / 2.0 };
            prop_assert!((shown - margin).abs() <= (margin * 0.0501).max(half_a_unit), "{}", text);
            let is_apart = own.is_some() || half.contains('e') || last > place * 5.0;
            prop_assert!(!is_apart || wide < -4.0, "{}", text);
            if is_apart {
                prop_assert!(margin < last * 10.0 && (mean - amount).abs() <= amount * 0.0006, "{}", text);
            } else {
                prop_assert!(last < place * 5.0, "{}", text);
                prop_assert!((mean - amount).abs() <= (margin * 0.051).max(half_a_unit * 1.001), "{}", text);
            }
            prop_assert!(unit.is_empty() || !text.contains('e'), "{}", text);
            let figures = left.split(' ').next().unwrap().trim_start_matches(['0', '.']);
            let figures = figures.bytes().filter(u8::is_ascii_digit).count();
            prop_assert!(figures <= 6 || !left.contains('.'), "{}", text);
        }
    }
}
