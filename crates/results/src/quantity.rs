//! Numbers with units: what a claim's expressions are made of and what they come to.

use std::fmt;

/// Powers of a bit and of a nanosecond: what a value measures.
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
    /// How many base units it is: `times / over`.
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

    /// So many of it.
    pub(crate) fn of(self, amount: f64) -> Value {
        Value { amount: amount * self.times as f64 / self.over as f64, dimension: self.dimension }
    }
}

/// What an expression comes to: in bits, nanoseconds, and bits per nanosecond. An endless time is `never`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// In base units.
    pub amount: f64,
    /// What it measures.
    pub dimension: Dimension,
}

impl Value {
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

impl Value {
    /// In the unit that columns of tables have, and how its name ends there: nanoseconds (`ns`), `bytes`, `bps`; nothing for a
    /// plain number, and what the value measures for everything else.
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

/// Prints in the largest unit that leaves a whole part, with four digits.
impl Value {
    /// The largest unit that is not over the amount, with how many of the value's own units it is; none for plain numbers and
    /// what no unit measures.
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

    /// With half of its confidence interval: two digits of that, and as many of the value as those tell of.
    pub(crate) fn within(&self, margin: f64) -> String {
        let (scale, unit) = self.unit().unwrap_or((1.0, ""));
        let (amount, margin) = (self.amount / scale, margin / scale);
        let decimals = if margin > 0.0 { (1.0 - margin.log10().floor()).clamp(0.0, 9.0) as usize } else { 3 };
        let space = if unit.is_empty() { "" } else { " " };
        format!("{amount:.decimals$} ± {margin:.decimals$}{space}{unit}")
    }
}

impl fmt::Display for Value {
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

    #[test]
    fn values_print_with_four_digits() {
        let cases = [
            (Value::ns(20_278_022.928), "20.28 ms"),
            (Value::ns(14.0), "14 ns"),
            (Value::ns(0.5), "0.5 ns"),
            (Value::ns(f64::INFINITY), "never"),
            (Value::bytes(175_344.0), "175.3 KB"),
            (Value::bytes(0.0), "0 B"),
            (Value::bps(95_238_095_238.0), "95.24 Gbps"),
            (Value::number(0.958_2), "0.9582"),
            (Value::number(0.095_82), "0.09582"),
            (Value::number(12_345.6), "12346"),
            (Value::number(3.0), "3"),
            (Value::number(0.000_001_234), "1.234e-6"),
            (Value::number(-2.5), "-2.5"),
            (Value { amount: 2.0, dimension: Dimension { bits: 2, ns: 0 } }, "2 (something in bit^2 ns^0)"),
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
                Unit::from_name(&text[end..]).map_or(Value::number(amount), |unit| unit.of(amount))
            };
            assert_eq!(read(one), read(other), "{one} {other}");
        }
        assert_eq!(Unit::from_name("µs"), Unit::from_name("us"));
        assert_eq!(Unit::from_name("m"), None);
    }
}
