//! Values on a command line, read as in scenario files and refused with the same care.

use laws::catalog::{LawKind, ParamValue as LawValue};
use units::{Bytes, Rate, Span};

use crate::config::Setting;
use crate::decode::{Field, Located};
use crate::error::{Error, SourceSpan, Sources, SpannedError};
use crate::overrides::shifted;
use crate::quantity::NumberRange;
use crate::tree::parse_argument;

/// A law's parameter from `NAME=VALUE`, as in a scheme's `params`.
///
/// # Errors
/// When the law has no such parameter, or the value is of another kind or out of range; `option` is named there.
pub fn law_param(option: &str, law: LawKind, text: &str) -> Result<(String, LawValue), Error> {
    read(option, text, |source| {
        let Some((name, value)) = text.split_once('=') else {
            return Err(SpannedError::new(
                SourceSpan::new(source, 0..text.len()),
                "a parameter is given as NAME=VALUE",
            )
            .label("no `=` here"));
        };
        let at = Located { value: name.trim().to_owned(), origin: SourceSpan::new(source, 0..name.len()) };
        let by = name.len() + 1;
        let node = shifted(parse_argument(value, source).map_err(|error| error.shifted(by))?, by);
        match crate::config::law_setting(law, &at, &node)? {
            Setting::Value(value) => Ok((at.value, value)),
            Setting::Port => Err(SpannedError::new(node.origin, "only a scenario has ports to follow")
                .label("expected an amount of data")),
        }
    })
}

/// Returns whether a text is a TOML value as given, not a string without its quotes.
pub fn is_toml(text: &str) -> bool {
    toml::de::DeValue::parse(text).is_ok()
}

/// A rate such as `10Gbps`.
///
/// # Errors
/// When it is none.
pub fn rate(option: &str, text: &str) -> Result<Rate, Error> {
    read(option, text, |source| Rate::decode(&parse_argument(text, source)?))
}

/// An amount of data such as `64KiB`.
///
/// # Errors
/// When it is none.
pub fn bytes(option: &str, text: &str) -> Result<Bytes, Error> {
    read(option, text, |source| Bytes::decode(&parse_argument(text, source)?))
}

/// A span of time such as `20ms`.
///
/// # Errors
/// When it is none.
pub fn span(option: &str, text: &str) -> Result<Span, Error> {
    read(option, text, |source| Span::decode(&parse_argument(text, source)?))
}

/// A range such as `100KB..2MB`, both ends of one kind.
///
/// # Errors
/// When it is none.
pub fn range(option: &str, text: &str) -> Result<NumberRange, Error> {
    read(option, text, |source| {
        let none = || {
            SpannedError::new(SourceSpan::new(source, 0..text.len()), format!("`{text}` is no range"))
                .label("expected LOW..HIGH, as in 100KB..2MB or 0.1..0.5")
        };
        let (low, high) = text.split_once("..").ok_or_else(none)?;
        let end = |text: &str, by: usize| {
            let by = by + text.len() - text.trim_start().len();
            let node = parse_argument(text.trim(), source).map_err(|error| error.shifted(by))?;
            Ok::<_, SpannedError>(shifted(node, by))
        };
        NumberRange::new(&end(low, 0)?, &end(high, low.len() + 2)?)
    })
}

fn read<T>(option: &str, text: &str, decode: impl FnOnce(u32) -> Result<T, SpannedError>) -> Result<T, Error> {
    let mut sources = Sources::default();
    let source = sources.add(option, text);
    decode(source).map_err(|error| sources.explain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Frac;

    #[test]
    fn parameters_are_read_as_in_files() {
        let read = |text| law_param("--param", LawKind::Gemini, text).unwrap();
        assert_eq!(read("k=75KB"), ("k".to_owned(), LawValue::Bytes(Bytes::new(75_000))));
        assert_eq!(read("beta=0.5"), ("beta".to_owned(), LawValue::Fraction(Frac::HALF)));
        assert_eq!(read("paced=false"), ("paced".to_owned(), LawValue::Switch(false)));
        assert_eq!(rate("--line-rate", "10Gbps").unwrap(), Rate::from_gbps(10));
        assert_eq!(span("--base-rtt", "20ms").unwrap(), Span::from_ms(20));
    }

    #[test]
    fn ranges_write_values_of_their_kind() {
        let ends = range("--where", "100KB.. 2MB").unwrap();
        assert!((ends.low() - 1e5).abs() < 0.1 && (ends.high() - 2e6).abs() < 0.1 && !ends.is_whole());
        assert_eq!(ends.value(401_234.5), "401.2KB");
        assert_eq!(ends.value(9e9), "2MB");
        assert_eq!(range("--where", "1..8").unwrap().value(3.6), 4);
        assert_eq!(range("--where", "10%..20%").unwrap().value(12.5), "12.5%");
        for (text, expected) in [
            ("5", "`5` is no range"),
            ("2ms..1ms", "\"1ms\" is not above \"2ms\""),
            ("2ms..1MB", "of another kind"),
            ("1..x", "--where:1:4"),
        ] {
            let error = range("--where", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn parse_errors_point_at_their_span() {
        for (text, expected) in [
            ("K=75KB", "did you mean `k`?"),
            ("beta=2", "it must be 0 to 1"),
            ("k=fast", "--param"),
            ("k=port", "only a scenario has ports"),
            ("k=0", "it must be 1 B to"),
            ("k=99999999999999999999", "99999999999999999999 is beyond a file's whole numbers"),
            ("k", "NAME=VALUE"),
        ] {
            let error = law_param("--param", LawKind::Gemini, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(rate("--line-rate", "10").is_err() && span("--base-rtt", "soon").is_err());
    }
}
