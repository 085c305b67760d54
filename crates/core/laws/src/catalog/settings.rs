//! Validation of a law's settings.

use core::error::Error;
use core::fmt;

use super::{LawInfo, LawKind, words};
use crate::PathInfo;
use crate::params::{ParamInfo, ParamValue};

/// A setting that a law cannot take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingError<'a> {
    /// The law has no parameter of that name.
    UnknownParam {
        /// The law.
        law: &'static LawInfo,
        /// The name given.
        name: &'a str,
    },
    /// The parameter is of another kind.
    WrongQuantity {
        /// The law.
        law: &'static LawInfo,
        /// The parameter.
        param: &'static ParamInfo,
        /// The given value.
        got: ParamValue,
    },
    /// The value is outside the parameter's range.
    OutOfRange {
        /// The law.
        law: &'static LawInfo,
        /// The parameter.
        param: &'static ParamInfo,
        /// The given value.
        got: ParamValue,
    },
    /// A parameter that is over the one that bounds it.
    OutOfOrder {
        /// The law.
        law: &'static LawInfo,
        /// The parameter that should be the smaller, and its value.
        low: (&'static ParamInfo, ParamValue),
        /// The parameter that should be the larger, and its value.
        high: (&'static ParamInfo, ParamValue),
    },
}

impl fmt::Display for SettingError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownParam { law, name } => {
                write!(f, "{} has no parameter `{name}`; it has", law.title)?;
                for (index, param) in law.params.iter().enumerate() {
                    write!(f, "{} `{}`", if index == 0 { "" } else { "," }, param.name)?;
                }
                Ok(())
            }
            Self::WrongQuantity { law, param, got } => write!(
                f,
                "{}'s `{}` is {}, but was given {} ({got})",
                law.title,
                param.name,
                param.quantity,
                got.quantity()
            ),
            Self::OutOfRange { law, param, got } => {
                write!(f, "{}'s `{}` is {got}; it must be {} to {}", law.title, param.name, param.lowest, param.highest)
            }
            Self::OutOfOrder { law, low, high } => write!(
                f,
                "{}'s `{}` is {}; it must not be over `{}`, which is {}",
                law.title, low.0.name, low.1, high.0.name, high.1
            ),
        }
    }
}

impl Error for SettingError<'_> {}

/// Checks that a law accepts a setting, as [`build`](super::build) does; for callers that check files before they run.
///
/// # Errors
/// As [`build`](super::build).
pub fn check<'a>(law: &'static LawInfo, name: &'a str, value: ParamValue) -> Result<(), SettingError<'a>> {
    let Some(param) = law.param(name) else {
        return Err(SettingError::UnknownParam { law, name });
    };
    if value.quantity() != param.quantity {
        return Err(SettingError::WrongQuantity { law, param, got: value });
    }
    if !param.allows(value) {
        return Err(SettingError::OutOfRange { law, param, got: value });
    }
    Ok(())
}

/// Checks that a law's settings, which [`check`] has passed, fit together ([`LawInfo::pairs`]), with defaults for
/// settings that are not given. [`build`](super::build) does not check this: it is for callers that check files.
///
/// # Errors
/// If the first parameter of a pair is over the second.
pub fn check_pairs<'a>(
    kind: LawKind,
    settings: impl Iterator<Item = (&'a str, ParamValue)>,
) -> Result<(), SettingError<'a>> {
    let law = kind.info();
    let words = words(kind, &PathInfo::NONE, settings);
    let given = |name: &str| {
        let index = law.params.iter().position(|param| param.name == name)?;
        Some((&law.params[index], law.params[index].lowest.of_word(words[index])))
    };
    for (low, high) in law.pairs {
        if let (Some(low), Some(high)) = (given(low), given(high))
            && low.1.is_over(high.1)
        {
            return Err(SettingError::OutOfOrder { law, low, high });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::catalog::build;
    use crate::testbed::{LONG_PATH, PATH};
    use std::string::ToString;
    use units::Frac;

    #[test]
    fn errors_name_accepted_settings() {
        let error = build(LawKind::Fixed, &PATH, &[("windw", ParamValue::Count(3))]).unwrap_err();
        assert_eq!(error.to_string(), "Fixed window has no parameter `windw`; it has `window`, `paced`");
        let error = build(LawKind::UnoCc, &PATH, &[("beta", ParamValue::Switch(true))]).unwrap_err();
        assert_eq!(error.to_string(), "UnoCC's `beta` is a number, but was given true or false (true)");
        let two = ParamValue::Fraction(Frac::from_bits(2 << 32));
        let error =
            build(LawKind::UnoCc, &PATH, &[("alpha", ParamValue::Fraction(Frac::HALF)), ("beta", two)]).unwrap_err();
        assert_eq!(error.to_string(), "UnoCC's `beta` is 2; it must be 0 to 1");
    }

    #[test]
    fn crossed_parameter_pairs_are_rejected() {
        for kind in LawKind::ALL {
            assert_eq!(check_pairs(kind, [].into_iter()), Ok(()));
            let info = kind.info();
            let defaults = [&PATH, &LONG_PATH].map(|path| words(kind, path, [].into_iter()));
            for (low, high) in info.pairs {
                let [low, high] = [low, high].map(|name| {
                    let index = info.params.iter().position(|param| param.name == *name).unwrap();
                    assert_eq!(defaults[0][index], defaults[1][index], "{name} depends on the path");
                    &info.params[index]
                });
                let crossed = [(low.name, low.highest), (high.name, high.lowest)];
                let error = check_pairs(kind, crossed.into_iter()).unwrap_err();
                assert!(matches!(error, SettingError::OutOfOrder { low: (found, _), .. } if found == low));
                assert_eq!(check_pairs(kind, [(low.name, low.lowest)].into_iter()), Ok(()));
                let equal = [(low.name, low.highest), (high.name, low.highest)];
                assert_eq!(check_pairs(kind, equal.into_iter()), Ok(()));
            }
        }
        let error = check_pairs(LawKind::Vegas, [("alpha", ParamValue::Count(5))].into_iter()).unwrap_err();
        assert_eq!(error.to_string(), "Vegas's `alpha` is 5; it must not be over `beta`, which is 4");
    }
}
