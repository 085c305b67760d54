//! Quantities with units, read exactly: decimals never pass through floating point.

use serde_json::{Value as Json, json};
use units::{Bytes, Frac, Rate, Span};

use crate::decode::{Field, unexpected};
use crate::error::SpannedError;
use crate::tree::{Node, Value};

/// A non-negative decimal number, exact: `digits / 10^scale`, without trailing zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decimal {
    digits: u64,
    scale: u32,
}

impl Decimal {
    /// 0.
    pub const ZERO: Self = Self { digits: 0, scale: 0 };
    /// 1.
    pub const ONE: Self = Self { digits: 1, scale: 0 };

    /// `digits / 10^scale`. `scale` is at most 18.
    pub(crate) const fn new(digits: u64, scale: u32) -> Self {
        Self { digits, scale }.trimmed()
    }

    const fn trimmed(mut self) -> Self {
        while self.scale > 0 && self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.scale -= 1;
        }
        self
    }

    /// [`Self::read`] without the reason of a failure.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Reads `12`, `0.35`, `1_000`, `1e-7`: up to 18 digits, up to 18 of them after the point.
    fn read(text: &str) -> Result<Self, Unreadable> {
        let text = text.replace('_', "");
        let text = text.strip_prefix('+').unwrap_or(&text);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| Unreadable::NoNumber)?),
            None => (text, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let all: String = [integer, fraction].concat();
        if integer.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Unreadable::NoNumber);
        }
        let significant = all.trim_start_matches('0');
        if significant.is_empty() {
            return Ok(Self::ZERO);
        }
        if significant.len() > 18 {
            return Err(Unreadable::TooLong);
        }
        let digits: u64 = significant.parse().map_err(|_| Unreadable::NoNumber)?;
        let scale = i64::try_from(fraction.len()).map_err(|_| Unreadable::TooLong)? - i64::from(exponent);
        match u32::try_from(scale) {
            Ok(scale) if scale <= 18 => Ok(Self::new(digits, scale)),
            Ok(_) => Err(Unreadable::TooFine),
            Err(_) => {
                let power = u32::try_from(scale.unsigned_abs()).ok().and_then(|up| 10u64.checked_pow(up));
                let digits = power.and_then(|power| digits.checked_mul(power)).ok_or(Unreadable::TooLarge)?;
                Ok(Self { digits, scale: 0 })
            }
        }
    }

    /// A hundredth of this; none if that has over 18 digits after the point.
    pub(crate) fn percent(self) -> Option<Self> {
        (self.scale <= 16).then(|| Self::new(self.digits, self.scale + 2))
    }

    /// `self * whole`, rounded down; saturates.
    pub fn of(self, whole: u64) -> u64 {
        let product = u128::from(self.digits) * u128::from(whole) / u128::from(10u64.pow(self.scale));
        u64::try_from(product).unwrap_or(u64::MAX)
    }

    /// `whole / self`, rounded down; saturates, and is the largest value if this is 0.
    pub fn divides(self, whole: u64) -> u64 {
        match u128::from(self.digits) {
            0 => u64::MAX,
            digits => u64::try_from(u128::from(whole) * u128::from(10u64.pow(self.scale)) / digits).unwrap_or(u64::MAX),
        }
    }

    /// Returns the number as a [`Frac`], rounded down; saturates.
    pub fn frac(self) -> Frac {
        Frac::from_bits(self.of(1 << 32))
    }

    /// `self * unit` if that is a whole number that fits.
    fn exactly(self, unit: u64) -> Option<u64> {
        let product = u128::from(self.digits).checked_mul(u128::from(unit))?;
        let scale = u128::from(10u64.pow(self.scale));
        if product % scale == 0 { u64::try_from(product / scale).ok() } else { None }
    }

    /// Returns whether `self * unit` is a whole number.
    #[cfg(feature = "import")]
    pub(crate) fn is_whole(self, unit: u64) -> bool {
        u128::from(self.digits) * u128::from(unit) % u128::from(10u64.pow(self.scale)) == 0
    }

    /// About this, the same bits on every machine.
    #[expect(clippy::cast_precision_loss, reason = "the nearest of 53 bits is meant")]
    fn approximate(self) -> f64 {
        // The library's powers may differ between machines; this one is exact.
        self.digits as f64 / 10u64.pow(self.scale) as f64
    }

    /// Returns whether this is greater than 1.
    pub fn exceeds_one(self) -> bool {
        self.digits > 10u64.pow(self.scale)
    }

    /// Returns whether this is 0.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }
}

/// Reason why a text is no [`Decimal`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unreadable {
    NoNumber,
    TooLong,
    TooFine,
    TooLarge,
}

impl Unreadable {
    /// Returns the error of a text that is a number; none for other texts.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::NoNumber => None,
            Self::TooLong => Some("has over 18 digits"),
            Self::TooFine => Some("has over 18 digits after the point"),
            Self::TooLarge => Some("is over the largest number, 1.8e19"),
        }
    }

    /// The error of a value that cannot be read for this reason.
    fn error<T: Field>(self, node: &Node) -> SpannedError {
        match self.reason() {
            Some(reason) => SpannedError::new(node.origin, format!("{} {reason}", node.written()))
                .label(format!("expected {}", T::EXPECTS)),
            None => unexpected::<T>(node),
        }
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.digits);
        }
        let power = 10u64.pow(self.scale);
        write!(f, "{}.{:0width$}", self.digits / power, self.digits % power, width = self.scale as usize)
    }
}

impl Field for Decimal {
    const EXPECTS: &'static str = "a number such as 0.5, or \"50%\"";

    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let parsed = match &node.value {
            Value::Integer(number) => {
                u64::try_from(*number).map(|digits| Self::new(digits, 0)).map_err(|_| Unreadable::NoNumber)
            }
            Value::Float(text) => Self::read(text),
            Value::String(text) => match text.strip_suffix('%') {
                Some(number) => Self::read(number.trim()).and_then(|it| it.percent().ok_or(Unreadable::TooFine)),
                None => Err(Unreadable::NoNumber),
            },
            _ => return Err(unexpected::<Self>(node)),
        };
        parsed.map_err(|reason| refuse_negative::<Self>(node).unwrap_or_else(|| reason.error::<Self>(node)))
    }

    fn encode(&self) -> Value {
        match i64::try_from(self.digits) {
            Ok(digits) if self.scale == 0 => Value::Integer(digits),
            _ => Value::Float(self.to_string()),
        }
    }

    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": r"^[0-9.]+ ?%$" }] })
    }
}

/// A [`Decimal`] from 0 to 1: a share or a probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(pub Decimal);

impl Field for Share {
    const EXPECTS: &'static str = "a number from 0 to 1, or \"0%\" to \"100%\"";

    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let number = Decimal::decode(node)?;
        if number.exceeds_one() {
            let all = if node.as_str().is_some() { "100%" } else { "1" };
            return Err(SpannedError::new(node.origin, format!("{} is over {all}", node.written()))
                .label(format!("expected {}", Self::EXPECTS)));
        }
        Ok(Self(number))
    }

    fn encode(&self) -> Value {
        self.0.encode()
    }

    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, { "type": "string", "pattern": r"^[0-9.]+ ?%$" }] })
    }
}

/// Names of a unit, then its factor in the base unit. The first name of each factor is the one that is written.
pub(crate) type Units = &'static [(&'static str, u64)];

/// Microseconds by the letter u, by the micro sign (U+00B5) and by the Greek letter (U+03BC), which look alike.
pub(crate) const TIMES: Units = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("\u{b5}s", 1_000_000),
    ("\u{3bc}s", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
pub(crate) const SIZES: Units = &[
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];
const RATES: Units = &[
    ("bps", 1),
    ("b/s", 1),
    ("kbps", 1_000),
    ("Kbps", 1_000),
    ("kb/s", 1_000),
    ("Mbps", 1_000_000),
    ("Mb/s", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
    ("Tb/s", 1_000_000_000_000),
];

const DRIFTS: Units = &[("ppb", 1), ("ppm", 1_000)];

const SPEEDS: Units = &[
    ("FLOPS", 1),
    ("MFLOPS", 1_000_000),
    ("GFLOPS", 1_000_000_000),
    ("TFLOPS", 1_000_000_000_000),
    ("PFLOPS", 1_000_000_000_000_000),
];

/// The longest time in files: 10^6 s, a tenth of the range of a [`Span`].
const MAX_PS: u64 = 1_000_000_000_000_000_000;
/// The same as a span.
#[cfg(feature = "import")]
pub(crate) const MAX_SPAN: Span = Span::from_unsigned_ps(MAX_PS);
/// The fastest processor that files hold, in operations a second.
const MAX_FLOPS: u64 = 1_000_000_000_000_000_000;
/// The largest size that files hold: 16 TiB, 2^32 packets of 4 KiB.
pub(crate) const LARGEST: u64 = 1 << 44;
/// The largest drift of a clock: a tenth.
const MAX_DRIFT: u64 = 100_000_000;
/// The lowest rate: a packet of 64 KiB lasts half a second, and the simulator's arithmetic holds it.
const SLOWEST: u64 = 1_000_000;
/// The highest rate: 2^43 b/s, the range that `units` states.
const FASTEST: u64 = 1 << 43;

/// Reads a number with a unit into the base unit.
fn with_unit<T: Field>(node: &Node, units: Units, most: u64) -> Result<u64, SpannedError> {
    let Some(text) = node.as_str() else {
        let error = refuse_negative::<T>(node).unwrap_or_else(|| unexpected::<T>(node));
        let bare = matches!(node.value, Value::Integer(_) | Value::Float(_));
        return Err(if bare { error.help("write the unit, and quotes around both") } else { error });
    };
    let split = number_end(text);
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        if let Some(error) = refuse_negative::<T>(node) {
            return Err(error);
        }
        let mut names: Vec<&str> = Vec::new();
        for &(name, factor) in units {
            if !units.iter().any(|&(other, same)| same == factor && names.contains(&other)) {
                names.push(name);
            }
        }
        let unit_text = if unit.is_empty() { "no unit".to_owned() } else { format!("unit `{unit}`") };
        let error =
            SpannedError::new(node.origin, format!("expected {}, found \"{text}\" with {unit_text}", T::EXPECTS));
        let error = meant(unit, units).map_or(error.clone(), |help| error.help(help));
        return Err(error.label("wrong unit").help(format!("units: {}", names.join(", "))));
    };
    let decimal = Decimal::read(number)
        .map_err(|reason| refuse_negative::<T>(node).unwrap_or_else(|| reason.error::<T>(node)))?;
    let whole = decimal.exactly(factor).filter(|&whole| whole <= most);
    whole.ok_or_else(|| {
        let base = units.first().map_or("", |unit| unit.0);
        let reason = if decimal.of(factor) > most || decimal.of(factor) == u64::MAX {
            format!("\"{text}\" is over the largest value, {}", readable(most, units))
        } else {
            format!("\"{text}\" is finer than 1 {base}")
        };
        SpannedError::new(node.origin, reason).label(format!("expected {}", T::EXPECTS))
    })
}

/// Returns the end of a quantity's number: the first letter that does not begin an exponent.
fn number_end(text: &str) -> usize {
    let exponent = |at: usize| {
        let rest = text[at + 1..].trim_start_matches(['+', '-']);
        text[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.') && rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let letters = text.char_indices().filter(|(_, c)| c.is_alphabetic());
    let mut units = letters.filter(|&(at, c)| !(matches!(c, 'e' | 'E') && exponent(at)));
    units.next().map_or(text.len(), |(at, _)| at)
}

/// Suggests a unit for an unknown one: the same in another case, bits for bytes, or a part of its name.
fn meant(unit: &str, units: Units) -> Option<String> {
    let lower = unit.to_lowercase();
    let (size, rate) = (units == SIZES, units == RATES);
    if !size && !rate {
        let (name, _) = units.iter().find(|(name, _)| name.to_lowercase() == lower)?;
        return Some(format!("did you mean `{name}`?"));
    }
    let base = lower.trim_start_matches(['k', 'm', 'g', 't']);
    let prefix = &lower[..lower.len() - base.len()];
    let (prefix, base) = match base.strip_prefix('i') {
        Some(base) if size && !prefix.is_empty() => (format!("{}i", prefix.to_uppercase()), base),
        _ if prefix == "k" && rate => (prefix.to_owned(), base),
        _ => (prefix.to_uppercase(), base),
    };
    let (base, is_rate) = match base.strip_suffix("/s").or(base.strip_suffix("ps")) {
        Some(base) => (base, true),
        None => (base, false),
    };
    let bytes = match base {
        "" => size,
        "byte" | "bytes" => true,
        "bit" | "bits" => false,
        "b" => unit.contains('B'),
        _ => return None,
    };
    let name = format!("{prefix}{}", if size { "B" } else { "bps" });
    let (name, _) = units.iter().find(|(known, _)| *known == name)?;
    Some(match (size, is_rate, bytes) {
        (true, true, _) => format!("`{unit}` is a rate, and a size is in bytes: did you mean `{name}`?"),
        (true, false, false) => format!("`{unit}` is bits, and a size is in bytes: did you mean `{name}`?"),
        (false, _, true) => {
            format!("`{unit}` is bytes, and a rate is in bits a second, eight times as many: did you mean `{name}`?")
        }
        _ => format!("did you mean `{name}`?"),
    })
}

/// Returns a limit for people: in its largest unit, with at most three decimals, rounded down.
fn readable(value: u64, units: Units) -> String {
    let binary = value.is_power_of_two() && units == SIZES;
    let fits = |&&(_, factor): &&(&str, u64)| factor <= value && (!binary || factor.is_power_of_two());
    let &(name, factor) = units.iter().rev().filter(fits).max_by_key(|unit| unit.1).unwrap_or(&units[0]);
    let thousandths = u64::try_from(u128::from(value) * 1_000 / u128::from(factor)).unwrap_or(u64::MAX);
    format!("{}{name}", Decimal::new(thousandths, 3))
}

fn refuse_negative<T: Field>(node: &Node) -> Option<SpannedError> {
    let negative = match &node.value {
        Value::Integer(number) => *number < 0,
        Value::Float(text) | Value::String(text) => text
            .strip_prefix('-')
            .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.')),
        _ => false,
    };
    let error = || {
        SpannedError::new(node.origin, format!("expected {}, but {} is negative", T::EXPECTS, node.described()))
            .label("negative")
    };
    negative.then(error)
}

/// Writes a number in the largest unit that needs at most three decimals; binary units need none and come first
/// where the number is no multiple of 1000.
fn written(value: u64, units: Units) -> String {
    let binary = |factor: u64| factor > 1 && factor.is_power_of_two();
    let fits = |factor: u64| {
        if binary(factor) {
            !value.is_multiple_of(1_000) && value.is_multiple_of(factor)
        } else {
            (u128::from(value) * 1_000).is_multiple_of(u128::from(factor))
        }
    };
    // Of units of equal factor, the first: the last of the largest from the end.
    let of_factor = |wanted: bool| {
        let all = units.iter().rev().filter(|&&(_, factor)| factor <= value && fits(factor));
        all.filter(|&&(_, factor)| binary(factor) == wanted).max_by_key(|unit| unit.1)
    };
    let &(name, factor) = of_factor(true).or_else(|| of_factor(false)).unwrap_or(&units[0]);
    let thousandths = u64::try_from(u128::from(value) * 1_000 / u128::from(factor)).unwrap_or(u64::MAX);
    if value.is_multiple_of(factor) {
        return format!("{}{name}", value / factor);
    }
    format!("{}{name}", Decimal::new(thousandths, 3))
}

/// The time as files write it.
pub(crate) fn write_span(span: Span) -> String {
    if span.is_zero() { "0s".into() } else { written(span.unsigned_ps(), TIMES) }
}

/// The size as files write it.
pub(crate) fn write_bytes(bytes: Bytes) -> String {
    written(bytes.get(), SIZES)
}

/// The rate as files write it.
pub(crate) fn write_rate(rate: Rate) -> String {
    written(rate.bps(), RATES)
}

impl Field for Span {
    const EXPECTS: &'static str = "a time such as \"2ms\" or \"14us\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        with_unit::<Self>(node, TIMES, MAX_PS).map(Self::from_unsigned_ps)
    }
    fn encode(&self) -> Value {
        Value::string(write_span(*self))
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^[0-9][0-9_.eE]* ?(ps|ns|us|\u{b5}s|\u{3bc}s|ms|s)$" })
    }
}

impl Field for Rate {
    const EXPECTS: &'static str = "a rate such as \"100Gbps\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match with_unit::<Self>(node, RATES, FASTEST)? {
            bps if bps < SLOWEST => {
                Err(SpannedError::new(node.origin, format!("{} is under the lowest rate, 1Mbps", node.written()))
                    .label("expected at least \"1Mbps\""))
            }
            bps => Ok(Self::from_bps(bps)),
        }
    }
    fn encode(&self) -> Value {
        Value::string(write_rate(*self))
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^[0-9][0-9_.eE]* ?([kKMGT]?bps|[kMGT]?b/s)$" })
    }
}

/// Rate error of a clock, in parts per billion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drift(pub u32);

impl Field for Drift {
    const EXPECTS: &'static str = "a drift such as \"20ppm\" or \"100ppb\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        with_unit::<Self>(node, DRIFTS, MAX_DRIFT).map(|ppb| Self(u32::try_from(ppb).unwrap_or(u32::MAX)))
    }
    fn encode(&self) -> Value {
        Value::string(if self.0 == 0 { "0ppb".into() } else { written(self.0.into(), DRIFTS) })
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^[0-9][0-9_.eE]* ?pp[bm]$" })
    }
}

/// Speed of a processor, in floating-point operations a second; at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flops(pub u64);

impl Field for Flops {
    const EXPECTS: &'static str = "a speed such as \"400TFLOPS\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match with_unit::<Self>(node, SPEEDS, MAX_FLOPS)? {
            0 => Err(SpannedError::new(node.origin, "a processor without speed").label("expected at least \"1FLOPS\"")),
            flops => Ok(Self(flops)),
        }
    }
    fn encode(&self) -> Value {
        Value::string(written(self.0, SPEEDS))
    }
    fn schema() -> Json {
        json!({ "type": "string", "pattern": r"^[0-9][0-9_.eE]* ?[MGTP]?FLOPS$" })
    }
}

impl Field for Bytes {
    const EXPECTS: &'static str = "a size such as \"1MiB\" or \"64KB\", or a whole number of bytes";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        if let Value::Integer(number) = node.value
            && let Ok(bytes) = u64::try_from(number)
            && bytes <= LARGEST
        {
            return Ok(Self::new(bytes));
        }
        with_unit::<Self>(node, SIZES, LARGEST).map(Self::new)
    }
    fn encode(&self) -> Value {
        Value::string(write_bytes(*self))
    }
    fn schema() -> Json {
        json!({ "oneOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": r"^[0-9][0-9_.eE]* ?([kKMGT]?B|[KMGT]iB)$" },
        ] })
    }
}

/// Digits of a number that is drawn, but where its range is narrow.
const DRAWN_DIGITS: usize = 4;

/// A number of any kind that files write.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Number {
    kind: NumberKind,
    /// In the base unit; of per cent, the number before the sign.
    value: f64,
    /// The number as it was written.
    written: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NumberKind {
    Whole,
    Decimal,
    Percent,
    Unit(Units),
}

/// A number of a run's name in its base unit, and the word for that unit at the end of names: `2ms` is 2e6 `ns`, `80%` is
/// 0.8 without a unit. None for other text.
pub fn amount(text: &str) -> Option<(f64, &'static str)> {
    let node = match text.parse::<i64>() {
        Ok(number) => Value::Integer(number),
        Err(_) if Decimal::parse(text).is_some() => Value::Float(text.to_owned()),
        Err(_) => Value::string(text),
    };
    let Number { kind, value, .. } = Number::of(&Node::generated(node)).ok()?;
    Some(match kind {
        NumberKind::Whole | NumberKind::Decimal => (value, ""),
        NumberKind::Percent => (value / 100.0, ""),
        NumberKind::Unit(units) if units == TIMES => (value / 1_000.0, "ns"),
        NumberKind::Unit(units) if units == SIZES => (value, "bytes"),
        NumberKind::Unit(units) if units == RATES => (value, "bps"),
        NumberKind::Unit(units) if units == SPEEDS => (value, "flops"),
        NumberKind::Unit(_) => (value, "ppb"),
    })
}

/// The ends of a range of numbers of one kind, both inclusive.
#[derive(Clone, Debug)]
pub struct NumberRange {
    from: Number,
    to: Number,
}

/// The least number but 0 that a range may begin with: numbers have 18 digits after the point at most.
const MIN: f64 = 1e-12;

impl NumberRange {
    pub(crate) fn new(from: &Node, to: &Node) -> Result<Self, SpannedError> {
        let [low, high] = [from, to].map(Number::of);
        let (low, high) = (low?, high?);
        if !low.is_like(&high) {
            return Err(SpannedError::new(
                to.origin,
                format!("{} is of another kind than {}", to.written(), from.written()),
            )
            .label("expected two numbers of one kind"));
        }
        let (low, high) = low.with(high);
        if low.value() >= high.value() {
            return Err(SpannedError::new(to.origin, format!("{} is not above {}", to.written(), from.written()))
                .label(format!("expected more than {}", from.written())));
        }
        if (f64::MIN_POSITIVE..MIN).contains(&high.value()) || (f64::MIN_POSITIVE..MIN).contains(&low.value()) {
            return Err(
                SpannedError::new(from.origin, "a number too small to be drawn").label("expected 0, or 1e-12 or more")
            );
        }
        Ok(Self { from: low, to: high })
    }

    /// The lower end in its base unit (ps, bytes, bits a second, ppb); of per cent, the number before the sign.
    pub fn low(&self) -> f64 {
        self.from.value()
    }

    /// The upper end, likewise.
    pub fn high(&self) -> f64 {
        self.to.value()
    }

    /// Returns whether the range contains only whole numbers.
    pub fn is_whole(&self) -> bool {
        self.from.is_whole()
    }

    /// The value of a file nearest to a number in the base unit, of four digits and within the range.
    pub(crate) fn written(&self, value: f64) -> Value {
        self.from.rounded(value, &self.to)
    }

    /// The same as JSON.
    pub fn value(&self, value: f64) -> Json {
        self.written(value).to_json()
    }
}

impl Number {
    /// Reads a number that is not negative.
    #[expect(clippy::cast_precision_loss, reason = "the nearest of 53 bits is meant")]
    pub(crate) fn of(node: &Node) -> Result<Self, SpannedError> {
        let error = || {
            refuse_negative::<Decimal>(node).unwrap_or_else(|| {
                SpannedError::new(node.origin, format!("expected a number or a quantity, found {}", node.described()))
                    .label("expected such as 0.5, 4, \"80%\", \"2ms\", \"1MB\" or \"100Gbps\"")
            })
        };
        let (kind, value) = match &node.value {
            Value::Integer(number) => (NumberKind::Whole, u64::try_from(*number).map_err(|_| error())? as f64),
            Value::Float(text) => (NumberKind::Decimal, Decimal::parse(text).ok_or_else(error)?.approximate()),
            Value::String(text) => {
                if let Some(number) = text.strip_suffix('%') {
                    (NumberKind::Percent, Decimal::parse(number.trim()).ok_or_else(error)?.approximate())
                } else {
                    let (number, unit) = text.split_at(number_end(text));
                    let factor = |units: Units| {
                        let known = units.iter().find(|(name, _)| *name == unit.trim())?;
                        Some((units, known.1))
                    };
                    let (units, factor) =
                        [TIMES, SIZES, RATES, DRIFTS, SPEEDS].into_iter().find_map(factor).ok_or_else(error)?;
                    let number = Decimal::parse(number.trim()).ok_or_else(error)?;
                    (NumberKind::Unit(units), number.approximate() * factor as f64)
                }
            }
            _ => return Err(error()),
        };
        Ok(Self { kind, value, written: node.value.clone() })
    }

    /// In the base unit; of per cent, the number before the sign.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.kind == NumberKind::Whole
    }

    /// Returns whether both are of one kind. A whole number is like one with a point.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let bare = |kind| matches!(kind, NumberKind::Whole | NumberKind::Decimal);
        self.kind == other.kind || bare(self.kind) && bare(other.kind)
    }

    /// Both as one kind.
    pub(crate) fn with(mut self, mut other: Self) -> (Self, Self) {
        if self.kind != other.kind {
            (self.kind, other.kind) = (NumberKind::Decimal, NumberKind::Decimal);
        }
        (self, other)
    }

    /// A value of this kind, of four digits and within the range; whole numbers have all their digits.
    pub(crate) fn rounded(&self, value: f64, to: &Self) -> Value {
        let whole = matches!(self.kind, NumberKind::Whole | NumberKind::Unit(_));
        let value = if whole { value.round() } else { value };
        // More where the ends differ in their last digits alone.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of digits")]
        let shared_digits = libm::log10(to.value / (to.value - self.value)).max(0.0) as usize;
        let digits = if self.is_whole() { 17 } else { (DRAWN_DIGITS - 1 + shared_digits).min(15) };
        let rounded = Decimal::parse(&format!("{value:.digits$e}")).unwrap_or(Decimal::ZERO);
        match rounded.approximate() {
            rounded if rounded < self.value => return self.written.clone(),
            rounded if rounded > to.value => return to.written.clone(),
            _ => {}
        }
        match self.kind {
            NumberKind::Whole | NumberKind::Decimal => rounded.encode(),
            NumberKind::Percent => Value::string(format!("{rounded}%")),
            NumberKind::Unit(units) => Value::string(written(rounded.of(1), units)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<T: Field>(text: &str) -> Result<T, SpannedError> {
        T::decode(&Node::generated(Value::string(text)))
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(read::<Span>("0.9905ms").unwrap(), Span::from_ps(990_500_000));
        assert_eq!(read::<Span>("14.028 us").unwrap(), Span::from_ps(14_028_000));
        assert_eq!(read::<Bytes>("22.4MB").unwrap(), Bytes::new(22_400_000));
        assert_eq!(read::<Bytes>("1.5GiB").unwrap(), Bytes::new(3 << 29));
        assert_eq!(read::<Rate>("0.1Gb/s").unwrap(), Rate::from_mbps(100));
        assert_eq!(Decimal::parse("1.2e-7").unwrap().to_string(), "0.00000012");
        assert_eq!(read::<Decimal>("2.5%").unwrap(), Decimal::parse("0.025").unwrap());
        assert_eq!(Decimal::parse("0.02").unwrap().of(22_400_000), 448_000);
    }

    #[test]
    fn inexact_values_are_errors() {
        for text in ["0.5ps", "2", "2mss", "ms", "-2ms", "9999999999s", "1.2.3ms", "1e400s", ".5ms"] {
            assert!(read::<Span>(text).is_err(), "{text}");
        }
        for text in ["0Gbps", "-10Gbps", "100", "100GB"] {
            assert!(read::<Rate>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn all_microseconds_are_read_and_exponents_too() {
        for text in ["14us", "14\u{b5}s", "14\u{3bc}s", "1.4e1 us", "1.4e-5s", "14E3ns"] {
            assert_eq!(read::<Span>(text).unwrap(), Span::from_us(14), "{text}");
        }
        assert_eq!(read::<Bytes>("1e3B").unwrap(), Bytes::new(1_000));
    }

    /// The message with which a value is refused.
    fn refusal<T: Field + std::fmt::Debug>(value: Value) -> String {
        let error = T::decode(&Node::generated(value)).unwrap_err();
        crate::error::Sources::default().explain(error).to_string()
    }

    #[test]
    fn error_messages_show_limits_in_readable_units() {
        let assert_contains = |message: String, part: &str| assert!(message.contains(part), "no `{part}` in {message}");
        let text = |text: &str| Value::string(text);
        assert_contains(refusal::<Span>(text("2000000s")), "\"2000000s\" is over the largest value, 1000000s");
        assert_contains(refusal::<Bytes>(text("99TiB")), "over the largest value, 16TiB");
        assert_contains(refusal::<Rate>(text("100Tbps")), "over the largest value, 8.796Tbps");
        assert_contains(refusal::<Drift>(text("200000ppm")), "over the largest value, 100000ppm");
        assert_contains(refusal::<Rate>(text("1bps")), "\"1bps\" is under the lowest rate, 1Mbps");
        assert_contains(refusal::<Share>(text("200%")), "\"200%\" is over 100%");
        assert_contains(refusal::<Share>(Value::Float("1.5".into())), "1.5 is over 1");
        for (number, part) in [
            ("1e-300", "1e-300 has over 18 digits after the point"),
            ("1.0000000000000000001", "has over 18 digits"),
            ("1e300", "is over the largest number"),
            ("nan", "expected a number such as 0.5, or \"50%\", found the number nan"),
        ] {
            assert_contains(refusal::<Decimal>(Value::Float(number.into())), part);
        }
        assert_contains(refusal::<Span>(text("1e-30s")), "\"1e-30s\" has over 18 digits after the point");
    }

    #[test]
    fn similar_units_are_suggested() {
        let size = |unit| meant(unit, SIZES).unwrap_or_default();
        assert_eq!(size("Mb"), "`Mb` is bits, and a size is in bytes: did you mean `MB`?");
        assert_eq!(size("Kibit"), "`Kibit` is bits, and a size is in bytes: did you mean `KiB`?");
        assert_eq!(size("Gbps"), "`Gbps` is a rate, and a size is in bytes: did you mean `GB`?");
        assert_eq!((size("mB"), size("M"), size("kbytes")), (size("MB"), size("MB"), "did you mean `KB`?".into()));
        let rate = |unit| meant(unit, RATES).unwrap_or_default();
        assert!(rate("GB/s").ends_with("eight times as many: did you mean `Gbps`?") && rate("GB/s") != rate("Gb"));
        assert_eq!(
            (rate("gbps"), rate("Gbit/s"), rate("GBPS")),
            (rate("Gb"), rate("Gb"), rate("GB/s").replace("GB/s", "GBPS"))
        );
        assert_eq!((rate("Gb"), rate("k")), ("did you mean `Gbps`?".into(), "did you mean `kbps`?".into()));
        assert_eq!((meant("MS", TIMES), meant("parsec", TIMES)), (Some("did you mean `ms`?".into()), None));
        assert_eq!((meant("tub", SIZES), meant("", RATES)), (None, Some("did you mean `bps`?".into())));
    }

    #[test]
    fn values_are_written_in_their_largest_unit() {
        assert_eq!(write_bytes(Bytes::new(1 << 20)), "1MiB");
        assert_eq!(write_bytes(Bytes::new(22_400_000)), "22.4MB");
        assert_eq!(write_span(Span::from_ms(2)), "2ms");
        assert_eq!(write_span(Span::ZERO), "0s");
        assert_eq!(write_rate(Rate::from_gbps(100)), "100Gbps");
    }

    proptest! {
        #[test]
        fn quantities_read_back(ps in 0..1i64 << 59, bytes in 0..1u64 << 44, bps in 1..1u64 << 43, d in 0..1u64 << 50, s in 0..12u32) {
            let span = Span::from_ps(ps);
            prop_assert_eq!(Span::decode(&Node::generated(span.encode())).unwrap(), span);
            let size = Bytes::new(bytes);
            prop_assert_eq!(Bytes::decode(&Node::generated(size.encode())).unwrap(), size);
            let rate = Rate::from_bps(bps);
            prop_assert_eq!(Rate::decode(&Node::generated(rate.encode())).unwrap(), rate);
            let decimal = Decimal::new(d, s);
            prop_assert_eq!(Decimal::decode(&Node::generated(decimal.encode())).unwrap(), decimal);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = (read::<Span>(&text), read::<Bytes>(&text), read::<Rate>(&text), read::<Decimal>(&text));
        }
    }
}
