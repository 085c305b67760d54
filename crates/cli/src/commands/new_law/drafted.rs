//! The files generated for a law that exists in Python already: its parameters, its methods as comments, and a test
//! that replays the behaviour of the Python law.

use laws::catalog::ParamValue;
use serde::Deserialize;
use units::{Bytes, Frac, Rate, Span};

use crate::exit::CommandFailure;

/// A law written in Python, as the `narrows` package exports it (JSON).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PythonLaw {
    /// Its class.
    class: String,
    /// Its purpose, in a line; may be empty.
    about: String,
    params: Vec<Param>,
    /// Source text of its methods by name; the rest of the class is under the empty name.
    methods: std::collections::BTreeMap<String, String>,
    /// The events that it received in a run, and the limits that it set.
    pub(super) trace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Param {
    name: String,
    kind: DraftParamKind,
    default: DefaultValue,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DraftParamKind {
    Fraction,
    Count,
    Switch,
    Span,
    Bytes,
    Rate,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DefaultValue {
    Switch(bool),
    Integer(u64),
    Number(f64),
}

/// A parameter's row in the macro `parameters!`, and in the table of the documentation page.
struct ParameterRow {
    code: String,
    page: String,
    /// The type of the crate `units` that `code` uses.
    unit: Option<&'static str>,
    uses_range: bool,
}

impl PythonLaw {
    pub(super) fn read(json: &str) -> Result<Self, CommandFailure> {
        serde_json::from_str(json)
            .map_err(|error| CommandFailure::Input(format!("error: this is not a law exported from Python: {error}")))
    }

    /// Fills a template with the law's own parts.
    pub(super) fn fill(&self, template: &str) -> Result<String, CommandFailure> {
        let mut rows = self.params.iter().map(Param::row).collect::<Result<Vec<_>, _>>()?;
        let window = if rows.is_empty() {
            rows.push(ParameterRow::initial_window());
            "params.initial_window"
        } else {
            "path.mss.times(10)"
        };
        let mut units: Vec<&str> = rows.iter().filter_map(|row| row.unit).collect();
        units.sort_unstable();
        units.dedup();
        let units = match units[..] {
            [] => String::new(),
            [one] => format!("use units::{one};\n\n"),
            _ => format!("use units::{{{}}};\n\n", units.join(", ")),
        };
        let params = if rows.iter().any(|row| row.uses_range) { "parameters, range" } else { "parameters" };
        let params = if params == "parameters" { "parameters".to_owned() } else { format!("{{{params}}}") };
        let joined = |of: fn(&ParameterRow) -> &str| rows.iter().map(of).collect::<Vec<_>>().join("\n");
        let about = self.about.trim_end_matches('.');
        let about = if about.is_empty() { "a law begun in Python" } else { about };
        let rest = match self.commented("", "// ") {
            none if none.is_empty() => none,
            some => format!("// What else the class has:\n{some}\n\n"),
        };
        let filled = [
            ("@class@", self.class.clone()),
            ("@about@", about.replace(['\\', '"'], "'")),
            ("@units@", units),
            ("@imported@", params),
            ("@params@", joined(|row| &row.code)),
            ("@rows@", joined(|row| &row.page)),
            ("@window@", window.to_owned()),
            ("@rest@", rest),
            ("@init@", self.commented("__init__", "    // ")),
            ("@on_ack@", self.commented("on_ack", "    // ")),
            ("@on_loss@", self.commented("on_loss", "    // ")),
            ("@on_timeout@", self.commented("on_timeout", "    // ")),
        ];
        Ok(filled.iter().fold(template.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value)))
    }

    /// Returns the source of a method, with each line prefixed by `prefix`.
    fn commented(&self, method: &str, prefix: &str) -> String {
        let text = self.methods.get(method).map_or("", String::as_str);
        let line = |line: &str| format!("{prefix}    {line}").trim_end().to_owned();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Param {
    fn row(&self) -> Result<ParameterRow, CommandFailure> {
        let name = &self.name;
        let out_of_range = |expected: &str| {
            CommandFailure::Input(format!(
                "error: the default of the parameter `{name}` is out of range: expected {expected}"
            ))
        };
        let plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !plain(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(CommandFailure::Input(format!(
                "error: `{name}` cannot be a parameter in Rust: expected lowercase letters, digits and _, beginning with a letter"
            )));
        }
        let integer = |max: u64, unit: &str| match self.default {
            DefaultValue::Integer(value) if value <= max => Ok(value),
            _ => Err(out_of_range(&format!("a whole number, 0 to {max}{unit}"))),
        };
        // The ranges are as wide as the catalog allows; the law's author narrows them.
        let (value, code, low, high, ends) = match self.kind {
            DraftParamKind::Switch => {
                let DefaultValue::Switch(on) = self.default else { return Err(out_of_range("true or false")) };
                (
                    ParamValue::Switch(on),
                    on.to_string(),
                    ParamValue::Switch(false),
                    ParamValue::Switch(true),
                    "false, true",
                )
            }
            DraftParamKind::Fraction => {
                let number = match self.default {
                    DefaultValue::Number(number) => number,
                    DefaultValue::Integer(integer) => integer as f64,
                    DefaultValue::Switch(_) => f64::NAN,
                };
                if !(0.0..=1_048_576.0).contains(&number) {
                    return Err(out_of_range("a number, 0 to 1048576"));
                }
                // At most 2^20, so at most 2^52 of its units.
                let frac = Frac::from_bits((number * 4_294_967_296.0) as u64);
                let (low, high) = (ParamValue::Fraction(Frac::ZERO), ParamValue::Fraction(Frac::from_bits(1 << 52)));
                let millionths = number * 1_000_000.0;
                let code = if millionths.fract() == 0.0 {
                    format!("Frac::millionths({})", grouped(millionths as u64))
                } else {
                    format!("Frac::from_bits({})", grouped(frac.bits()))
                };
                (ParamValue::Fraction(frac), code, low, high, "Frac::ZERO, range::UNLIMITED")
            }
            DraftParamKind::Count => {
                let value = integer(u64::MAX, "")?;
                (
                    ParamValue::Count(value),
                    grouped(value),
                    ParamValue::Count(0),
                    ParamValue::Count(u64::MAX),
                    "0, u64::MAX",
                )
            }
            DraftParamKind::Span => {
                let value = integer(1_000_000_000_000, " ns")?;
                // The range includes 0 only if the default is 0.
                let (low, ends) = match value {
                    0 => (Span::ZERO, "Span::ZERO, range::LONG"),
                    _ => (Span::from_ns(1), "range::SHORT, range::LONG"),
                };
                let (low, high) = (ParamValue::Span(low), ParamValue::Span(Span::from_s(1_000)));
                let code = format!("Span::from_ns({})", grouped(value));
                (ParamValue::Span(Span::from_ns(value as i64)), code, low, high, ends)
            }
            DraftParamKind::Bytes => {
                let value = integer(1 << 40, " bytes")?;
                let (low, ends) = match value {
                    0 => (Bytes::ZERO, "Bytes::ZERO, range::WINDOW"),
                    _ => (Bytes::new(1), "range::BYTE, range::WINDOW"),
                };
                let (low, high) = (ParamValue::Bytes(low), ParamValue::Bytes(Bytes::new(1 << 40)));
                let code = format!("Bytes::new({})", grouped(value));
                (ParamValue::Bytes(Bytes::new(value)), code, low, high, ends)
            }
            DraftParamKind::Rate => {
                let value = integer(100_000_000_000_000, " bits a second")?;
                let (low, high) = (ParamValue::Rate(Rate::ZERO), ParamValue::Rate(Rate::from_gbps(100_000)));
                let code = format!("Rate::from_bps({})", grouped(value));
                (ParamValue::Rate(Rate::from_bps(value)), code, low, high, "range::ZERO_RATE, range::FAST")
            }
        };
        let (kind, unit) = match self.kind {
            DraftParamKind::Switch => ("Switch", None),
            DraftParamKind::Count => ("Count", None),
            DraftParamKind::Fraction => ("Fraction", Some("Frac")),
            DraftParamKind::Span => ("Span", Some("Span")),
            DraftParamKind::Bytes => ("Bytes", Some("Bytes")),
            DraftParamKind::Rate => ("Rate", Some("Rate")),
        };
        let doc = format!("`{name}` of the law in Python.");
        let range =
            if self.kind == DraftParamKind::Switch { "true or false".to_owned() } else { format!("{low} to {high}") };
        let quantity = kind.to_lowercase();
        Ok(ParameterRow {
            code: format!("    /// {doc}\n    {name}: {kind} = {code}, \"{value}\", {ends};"),
            page: format!("| `{name}` | {quantity} | {value} | {range} | {doc} |"),
            unit,
            uses_range: ends.contains("range::"),
        })
    }
}

impl ParameterRow {
    /// Parameter of a law that has none of its own: the catalog requires at least one.
    fn initial_window() -> Self {
        let doc = "Initial window.";
        Self {
            code: format!(
                "    /// {doc}\n    initial_window: Bytes = range::ten_packets(path), \"10 packets\", range::BYTE, range::WINDOW;"
            ),
            page: format!("| `initial_window` | bytes | 10 packets | 1 B to 1099511627776 B | {doc} |"),
            unit: None,
            uses_range: true,
        }
    }
}

/// Formats a number with its digits grouped in threes, as Clippy requires.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let first = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    if first > 0 {
        parts.push(&digits[..first]);
    }
    let mut at = first;
    while at < digits.len() {
        parts.push(&digits[at..at + 3]);
        at += 3;
    }
    parts.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_in_threes() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1_000"), (1_234_567, "1_234_567")] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn defaults_are_checked_against_their_kind() {
        let draft = |param: &str| {
            let json = format!(r#"{{"class":"A","about":"","params":[{param}],"methods":{{}},"trace":""}}"#);
            PythonLaw::read(&json).and_then(|draft| draft.fill("@params@|@rows@"))
        };
        let filled = draft(r#"{"name":"gain","kind":"fraction","default":0.25}"#).unwrap();
        assert!(
            filled.contains("gain: Fraction = Frac::millionths(250_000), \"0.25\", Frac::ZERO, range::UNLIMITED;"),
            "{filled}"
        );
        assert!(filled.contains("| `gain` | fraction | 0.25 | 0 to 1048576 |"), "{filled}");
        assert!(draft(r#"{"name":"Gain","kind":"count","default":1}"#).is_err());
        let of = |kind: &str, default: &str| draft(&format!(r#"{{"name":"it","kind":"{kind}","default":{default}}}"#));
        // A default of 0 extends the range to 0.
        let span = of("span", "0").unwrap();
        assert!(span.contains("it: Span = Span::from_ns(0), \"0 ps\", Span::ZERO, range::LONG;"), "{span}");
        assert!(span.contains("| `it` | span | 0 ps | 0 ps to "), "{span}");
        let bytes = of("bytes", "0").unwrap();
        assert!(bytes.contains("it: Bytes = Bytes::new(0), \"0 B\", Bytes::ZERO, range::WINDOW;"), "{bytes}");
        assert!(of("bytes", "1").unwrap().contains("Bytes::new(1), \"1 B\", range::BYTE, range::WINDOW;"));
        for (kind, default, expected) in [
            ("count", "0.25", "a whole number, 0 to 18446744073709551615"),
            ("span", "1000000000001", "a whole number, 0 to 1000000000000 ns"),
            ("bytes", "true", "a whole number, 0 to 1099511627776 bytes"),
            ("rate", "100000000000001", "a whole number, 0 to 100000000000000 bits a second"),
            ("fraction", "1048577", "a number, 0 to 1048576"),
            ("switch", "1", "true or false"),
        ] {
            let Err(CommandFailure::Input(message)) = of(kind, default) else { panic!("{kind} = {default}") };
            let expected_message =
                format!("error: the default of the parameter `it` is out of range: expected {expected}");
            assert_eq!(message, expected_message);
        }
        assert!(draft("").unwrap().contains("initial_window"));
    }
}
