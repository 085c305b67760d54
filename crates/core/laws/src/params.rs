//! Parameters of laws: each is defined once, and the definition generates its field, default, range and row in the catalog.

use core::fmt;

use units::{Bytes, Frac, Rate, Span};

use crate::PathInfo;

/// Kind of quantity of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// A number without unit: a gain, a share, a multiple.
    Fraction,
    /// A span of time.
    Span,
    /// An amount of data.
    Bytes,
    /// A rate.
    Rate,
    /// A whole number.
    Count,
    /// On or off.
    Switch,
}

/// A value of one of those kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParamValue {
    /// A number without unit.
    Fraction(Frac),
    /// A span of time.
    Span(Span),
    /// An amount of data.
    Bytes(Bytes),
    /// A rate.
    Rate(Rate),
    /// A whole number.
    Count(u64),
    /// On or off.
    Switch(bool),
}

/// One parameter of a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParamInfo {
    /// Its name, as in scenario files.
    pub name: &'static str,
    /// Its kind.
    pub quantity: Quantity,
    /// Its default in words, because many depend on the flow's path.
    pub default: &'static str,
    /// Its effect, with the paper's symbol.
    pub doc: &'static str,
    /// The smallest value allowed.
    pub lowest: ParamValue,
    /// The largest value allowed.
    pub highest: ParamValue,
}

impl ParamInfo {
    /// Returns whether `value` is of this parameter's kind and within its range.
    pub fn allows(&self, value: ParamValue) -> bool {
        value.quantity() == self.quantity && !self.lowest.is_over(value) && !value.is_over(self.highest)
    }
}

impl ParamValue {
    /// Its kind.
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Fraction(_) => Quantity::Fraction,
            Self::Span(_) => Quantity::Span,
            Self::Bytes(_) => Quantity::Bytes,
            Self::Rate(_) => Quantity::Rate,
            Self::Count(_) => Quantity::Count,
            Self::Switch(_) => Quantity::Switch,
        }
    }

    /// Returns whether this value is larger than another of its kind; values of two kinds, and switches, are not
    /// ordered.
    pub fn is_over(self, other: Self) -> bool {
        match (self, other) {
            (Self::Fraction(one), Self::Fraction(two)) => one > two,
            (Self::Span(one), Self::Span(two)) => one > two,
            (Self::Bytes(one), Self::Bytes(two)) => one > two,
            (Self::Rate(one), Self::Rate(two)) => one > two,
            (Self::Count(one), Self::Count(two)) => one > two,
            _ => false,
        }
    }

    /// A value of this one's kind from its 64 bits ([`Parameters::words`]).
    pub fn of_word(self, word: u64) -> Self {
        match self {
            Self::Fraction(_) => Self::Fraction(ParamWord::of_word(word)),
            Self::Span(_) => Self::Span(ParamWord::of_word(word)),
            Self::Bytes(_) => Self::Bytes(ParamWord::of_word(word)),
            Self::Rate(_) => Self::Rate(ParamWord::of_word(word)),
            Self::Count(_) => Self::Count(ParamWord::of_word(word)),
            Self::Switch(_) => Self::Switch(ParamWord::of_word(word)),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fraction => "a number",
            Self::Span => "a span of time",
            Self::Bytes => "an amount of data",
            Self::Rate => "a rate",
            Self::Count => "a whole number",
            Self::Switch => "true or false",
        })
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(v) => write_fraction(*v, f),
            Self::Span(v) => v.fmt(f),
            Self::Bytes(v) => v.fmt(f),
            Self::Rate(v) => v.fmt(f),
            Self::Count(v) => v.fmt(f),
            Self::Switch(v) => v.fmt(f),
        }
    }
}

/// To the nearest millionth, without trailing zeros.
fn write_fraction(value: Frac, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Half a millionth is 2147.5 of its units.
    let millionths = (value + Frac::from_bits(2_147)).ppm();
    let (whole, mut part, mut digits) = (millionths / 1_000_000, millionths % 1_000_000, 6);
    if part == 0 {
        return write!(f, "{whole}");
    }
    while part % 10 == 0 {
        part /= 10;
        digits -= 1;
    }
    write!(f, "{whole}.{part:0digits$}")
}

/// The most parameters that a law may have.
pub const MAX: usize = 64;

/// A law's parameters, for hosts that select the law by its type. Implemented by each law's `Params`.
pub trait Parameters: Copy {
    /// The law's parameters.
    const TABLE: &'static [ParamInfo];

    /// The defaults for a flow on `path`.
    fn for_path(path: &PathInfo) -> Self;

    /// Sets a parameter by name. A name or kind that is not in the table changes nothing: the catalog has already rejected
    /// it.
    fn set(&mut self, name: &str, value: ParamValue);

    /// Returns each parameter as 64 bits, in the order of [`Parameters::TABLE`].
    fn words(&self) -> [u64; MAX];

    /// Returns these parameters, with those at the set bits of `which` taken from `by`, in the form that
    /// [`Parameters::words`] returned. For hosts that know the flow's path, and so the defaults, only when the flow begins.
    fn overridden(self, by: &[u64; MAX], which: u64) -> Self;
}

/// A quantity as 64 bits and back.
pub(crate) trait ParamWord {
    fn word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

macro_rules! word {
    ($($type:ty, $self:ident => $to:expr, $word:ident => $from:expr;)*) => {
        $(impl ParamWord for $type {
            #[inline(always)]
            fn word($self) -> u64 {
                $to
            }

            #[inline(always)]
            fn of_word($word: u64) -> Self {
                $from
            }
        })*
    };
}

word! {
    Frac, self => self.bits(), word => Frac::from_bits(word);
    Span, self => self.ps() as u64, word => Span::from_ps(word as i64);
    Bytes, self => self.get(), word => Bytes::new(word);
    Rate, self => self.bps(), word => Rate::from_bps(word);
    u64, self => self, word => word;
    bool, self => u64::from(self), word => word != 0;
}

/// The type that holds a quantity.
macro_rules! quantity_type {
    (Fraction) => {
        units::Frac
    };
    (Span) => {
        units::Span
    };
    (Bytes) => {
        units::Bytes
    };
    (Rate) => {
        units::Rate
    };
    (Count) => {
        u64
    };
    (Switch) => {
        bool
    };
}

/// Makes `Params`: the fields, `Params::for_path` with the defaults, `Params::TABLE` for the catalog and
/// `Params::set` by name. A row reads `name: Quantity = default, "default in words", lowest, highest;`.
macro_rules! parameters {
    ($path:ident; $(#[doc = $doc:literal] $name:ident: $quantity:ident = $default:expr, $text:literal, $low:expr, $high:expr;)*) => {
        /// Parameters of the law. The ranges are in the catalog.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(C)]
        pub struct Params {
            $(#[doc = $doc] pub $name: $crate::params::quantity_type!($quantity),)*
        }

        impl Params {
            /// Their table for the catalog.
            pub(crate) const TABLE: &'static [$crate::params::ParamInfo] = &[$($crate::params::ParamInfo {
                name: stringify!($name),
                quantity: $crate::params::Quantity::$quantity,
                default: $text,
                doc: $doc.trim_ascii(),
                lowest: $crate::params::ParamValue::$quantity($low),
                highest: $crate::params::ParamValue::$quantity($high),
            }),*];

            /// The defaults for a flow on `path`.
            pub const fn for_path($path: &$crate::PathInfo) -> Self {
                let _ = $path;
                Self { $($name: $default),* }
            }

        }

        impl $crate::params::Parameters for Params {
            const TABLE: &'static [$crate::params::ParamInfo] = Self::TABLE;

            fn for_path(path: &$crate::PathInfo) -> Self {
                Self::for_path(path)
            }

            fn set(&mut self, name: &str, value: $crate::params::ParamValue) {
                match (name, value) {
                    $((stringify!($name), $crate::params::ParamValue::$quantity(value)) => self.$name = value,)*
                    _ => {}
                }
            }

            #[allow(unused_assignments, reason = "the last row's place is not counted on to another")]
            fn words(&self) -> [u64; $crate::params::MAX] {
                let mut words = [0; $crate::params::MAX];
                let mut place = 0;
                $(
                    words[place] = $crate::params::ParamWord::word(self.$name);
                    place += 1;
                )*
                words
            }

            #[inline(always)]
            #[allow(unused_assignments, reason = "the last row's place is not counted on to another")]
            fn overridden(mut self, by: &[u64; $crate::params::MAX], which: u64) -> Self {
                let mut place = 0;
                $(
                    if which & (1 << place) != 0 {
                        self.$name = $crate::params::ParamWord::of_word(by[place]);
                    }
                    place += 1;
                )*
                self
            }
        }
    };
}

pub(crate) use {parameters, quantity_type};

/// Ranges that several laws share.
pub(crate) mod range {
    use units::{Bytes, Frac, Rate, Span};

    use crate::{PathInfo, Window};

    /// A multiple of the BDP that no window reaches: no limit.
    pub(crate) const UNLIMITED: Frac = Frac::from_bits(1 << 52);
    /// The smallest share of a BDP that a window may be limited to.
    pub(crate) const TINY: Frac = Frac::millionths(1_000);
    /// The smallest window in bytes.
    pub(crate) const BYTE: Bytes = Bytes::new(1);
    /// The largest.
    pub(crate) const WINDOW: Bytes = Window::LIMIT;
    /// The shortest period.
    pub(crate) const SHORT: Span = Span::from_ns(1);
    /// The longest.
    pub(crate) const LONG: Span = Span::from_s(1_000);
    /// No rate.
    pub(crate) const ZERO_RATE: Rate = Rate::ZERO;
    /// The lowest rate that a flow may be limited to.
    pub(crate) const SLOW: Rate = Rate::from_bps(1_000);
    /// The highest.
    pub(crate) const FAST: Rate = Rate::from_gbps(100_000);
    /// The initial window of RFC 6928, in packets.
    pub(crate) const fn ten_packets(path: &PathInfo) -> Bytes {
        path.mss.times(10)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn fractions_print_shortly() {
        for (millionths, text) in
            [(0, "0"), (1_000, "0.001"), (300_000, "0.3"), (2_885_390, "2.88539"), (4_000_000, "4")]
        {
            assert_eq!(ParamValue::Fraction(Frac::millionths(millionths)).to_string(), text);
        }
    }

    #[test]
    fn a_range_holds_its_ends_and_its_kind_only() {
        let info = ParamInfo {
            name: "gain",
            quantity: Quantity::Fraction,
            default: "1/16",
            doc: "",
            lowest: ParamValue::Fraction(Frac::ZERO),
            highest: ParamValue::Fraction(Frac::ONE),
        };
        assert!(info.allows(ParamValue::Fraction(Frac::ZERO)) && info.allows(ParamValue::Fraction(Frac::ONE)));
        assert!(!info.allows(ParamValue::Fraction(Frac::ONE + Frac::from_bits(1))));
        assert!(!info.allows(ParamValue::Count(0)));
    }
}
