//! Panels of a paper's figure: how a paper plots its measurements, and the values that it states. The keys are documented
//! in `docs/src/reference/claims.md`; the Python package draws them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::claims::{ParseError, expression_of_a_run};

/// The form of a panel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PanelKind {
    /// Means over seeds as bars.
    Bars,
    /// Means over seeds over numbers.
    Lines,
    /// The distribution of flows or samples, all seeds together.
    Cdf,
    /// Samples over time, of the first seed.
    Time,
}

/// One value or several.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several, a place on the x axis each.
    More(Vec<String>),
}

impl OneOrMore {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(more) => more,
        }
    }
}

/// Schemes that a panel shows as one.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The name in the legend.
    pub label: String,
    /// A scheme for each place on the x axis; an empty one leaves the place out.
    pub schemes: Vec<String>,
}

/// A value that the paper states.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The value, as in claims: `6.4Gbps`, `1 - 21%`.
    pub value: String,
    /// The scheme that it is stated of; without it, a line across the panel.
    pub scheme: Option<String>,
    /// The place on the x axis: a value of `x`, or a name of `places`.
    pub at: Option<serde_json::Value>,
    /// The reference scheme: the measured value is a multiple of this scheme's value.
    pub of: Option<String>,
    /// The name in the legend; by default the paper's statement.
    pub label: Option<String>,
}

/// A panel as in a file.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The form of its values.
    pub kind: PanelKind,
    /// The values to draw: an expression of claims about one run; for a CDF and over time, the part before its
    /// statistic.
    pub y: OneOrMore,
    /// The key of the points on the x axis.
    pub x: Option<String>,
    /// The key of the points that has a line, or bars of one colour, for each value; by default each scheme has.
    pub by: Option<String>,
    /// Its schemes in their order; by default all.
    pub schemes: Option<Vec<String>>,
    /// Schemes that make a line, or bars of one colour, together.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Names of the places on the x axis, in their order.
    #[serde(default)]
    pub places: Vec<serde_json::Value>,
    /// A panel for each value of this key, or for each `scheme`.
    pub each: Option<String>,
    /// Runs of these values of keys alone.
    #[serde(default)]
    pub only: BTreeMap<String, serde_json::Value>,
    /// The reference scheme: the values of others are divided by its value.
    pub over: Option<String>,
    /// The end of the whiskers: an expression like `y`.
    pub whiskers: Option<String>,
    /// The rate that makes a time of bytes: a queue becomes a delay.
    pub per: Option<String>,
    /// The span over which samples are averaged, such as `100ms`; by default none are.
    pub window: Option<String>,
    /// The unit of the y axis; by default one that fits.
    pub unit: Option<String>,
    /// Logarithmic axes: `x`, `y` or `xy`.
    pub log: Option<LogScale>,
    /// Its heading.
    pub title: Option<String>,
    /// The label of the x axis.
    pub xlabel: Option<String>,
    /// The label of the y axis, without the unit.
    pub ylabel: Option<String>,
    /// Values that the paper draws or states, by scheme: one for each place on the x axis, from the first on.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
    /// More values that the paper states, one by one.
    #[serde(default)]
    pub paper: Vec<Mark>,
}

/// Logarithmic axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is the axes that it names")]
pub enum LogScale {
    X,
    Y,
    Xy,
}

/// The drawing of a paper's figure.
#[derive(Clone, PartialEq, Debug)]
pub enum Drawing {
    /// With these panels.
    Panels(Vec<Panel>),
    /// The same drawing as another figure of the paper: the name of its file, without its extension.
    As(String),
}

/// An error in a panel of a file.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PanelError {
    /// The entry is not a valid panel.
    #[error("[[paper.plot]] number {number}: {reason}")]
    Form {
        /// The panel's number, from 1 on.
        number: usize,
        /// The error.
        reason: String,
    },
    /// One of its expressions is wrong.
    #[error("[[paper.plot]] number {number}, `{key}`: {error}")]
    Expression {
        /// The panel's number, from 1 on.
        number: usize,
        /// The key.
        key: &'static str,
        /// The error and its location.
        error: ParseError,
    },
    /// The list of panels is empty.
    #[error("`paper.plot` holds panels, [[paper.plot]], or names a figure of the paper: `plot = \"fig10\"`")]
    None,
}

impl PanelError {
    /// The same in a sentence, without the text of an expression.
    pub fn brief(&self) -> String {
        match self {
            Self::Form { .. } | Self::None => self.to_string(),
            Self::Expression { number, key, error } => {
                format!("[[paper.plot]] number {number}, `{key}`: {}", error.message)
            }
        }
    }

    /// The wrong expression, if one is.
    pub fn expression(&self) -> Option<&ParseError> {
        match self {
            Self::Form { .. } | Self::None => None,
            Self::Expression { error, .. } => Some(error),
        }
    }
}

impl Drawing {
    /// The drawing in a file's `paper.plot`, as JSON.
    ///
    /// # Errors
    /// When a key is missing, unknown or of the wrong type, an expression is wrong, or keys do not go together.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, PanelError> {
        match json {
            serde_json::Value::String(name) if !name.is_empty() => Ok(Self::As(name.clone())),
            serde_json::Value::Array(panels) if !panels.is_empty() => {
                let panel = |(index, json)| Panel::read(index + 1, json);
                Ok(Self::Panels(panels.iter().enumerate().map(panel).collect::<Result<_, _>>()?))
            }
            _ => Err(PanelError::None),
        }
    }

    /// The schemes that it names.
    pub fn schemes(&self) -> Vec<&str> {
        match self {
            Self::As(_) => Vec::new(),
            Self::Panels(panels) => panels.iter().flat_map(Panel::named).collect(),
        }
    }
}

impl Panel {
    fn read(number: usize, json: &serde_json::Value) -> Result<Self, PanelError> {
        let form = |reason: String| PanelError::Form { number, reason };
        let panel: Self = serde_path_to_error::deserialize(json).map_err(|error| form(error.to_string()))?;
        panel.check_keys().map_err(form)?;
        let parse = |key, text: &str| {
            expression_of_a_run(text).map(drop).map_err(|error| PanelError::Expression { number, key, error })
        };
        for y in panel.y.all() {
            if panel.is_of_means() { parse("y", y) } else { parse("y", &format!("{y}.mean")) }?;
        }
        panel.whiskers.iter().try_for_each(|text| parse("whiskers", text))?;
        panel.per.iter().try_for_each(|text| parse("per", text))?;
        panel.window.iter().try_for_each(|text| parse("window", text))?;
        panel.values.values().flatten().try_for_each(|value| parse("values", value))?;
        panel.paper.iter().try_for_each(|mark| parse("paper.value", &mark.value))?;
        Ok(panel)
    }

    fn is_of_means(&self) -> bool {
        matches!(self.kind, PanelKind::Bars | PanelKind::Lines)
    }

    /// Checks that its keys go together.
    fn check_keys(&self) -> Result<(), String> {
        let only_for = |key: &str, is_set: bool, applies: bool, kinds: &str| {
            if is_set && !applies { Err(format!("`{key}` is for {kinds}")) } else { Ok(()) }
        };
        let means = self.is_of_means();
        only_for("x", self.x.is_some(), means, "bars and lines")?;
        only_for("series", !self.series.is_empty(), means, "bars and lines")?;
        only_for("values", !self.values.is_empty(), means, "bars and lines")?;
        only_for("over", self.over.is_some(), means, "bars and lines")?;
        only_for("whiskers", self.whiskers.is_some(), self.kind == PanelKind::Bars, "bars")?;
        only_for("per", self.per.is_some(), !means, "CDFs and samples over time")?;
        only_for("window", self.window.is_some(), self.kind == PanelKind::Time, "samples over time")?;
        let several = matches!(self.y, OneOrMore::More(_));
        if several && !means {
            return Err("a CDF and samples over time have one `y`".to_owned());
        }
        if [several, self.x.is_some(), !self.series.is_empty()].into_iter().filter(|&it| it).count() > 1 {
            return Err(
                "places on the x axis are those of `x`, of several `y` or of `series`: give one of these".to_owned()
            );
        }
        if self.by.is_some() && !self.series.is_empty() {
            return Err("lines are those of `by` or of `series`: give one of these".to_owned());
        }
        let needed = if several { Some(self.y.all().len()) } else { self.series.first().map(|it| it.schemes.len()) };
        if let Some(needed) = needed
            && (self.places.len() != needed || self.series.iter().any(|it| it.schemes.len() != needed))
        {
            return Err("`places` has a name for each `y`, or for each scheme of every series".to_owned());
        }
        match self.paper.iter().find(|mark| mark.of.is_some() && mark.scheme.is_none()) {
            Some(mark) => Err(format!("the value `{}` is `of` a scheme and has no `scheme` itself", mark.value)),
            None => Ok(()),
        }
    }

    fn named(&self) -> impl Iterator<Item = &str> {
        let marks = self.paper.iter().flat_map(|mark| mark.scheme.iter().chain(&mark.of));
        let series = self.series.iter().flat_map(|series| &series.schemes);
        self.schemes
            .iter()
            .flatten()
            .chain(series)
            .chain(&self.over)
            .chain(self.values.keys())
            .chain(marks)
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drawing_has_panels_or_refers_to_another() {
        let drawing = Drawing::from_json(&json!([
            { "kind": "bars", "y": ["all.fct.mean", "all.fct.p99"], "places": ["mean", "p99"],
              "paper": [{ "scheme": "uno", "at": "p99", "value": "1 - 21%", "of": "bbr" }] },
            { "kind": "time", "y": "queue(\"receiver\")", "per": "100Gbps" },
        ]));
        assert_eq!(drawing.unwrap().schemes(), ["uno", "bbr"]);
        assert_eq!(Drawing::from_json(&json!("fig10")), Ok(Drawing::As("fig10".into())));
        assert_eq!(Drawing::from_json(&json!([])), Err(PanelError::None));
    }

    #[test]
    fn invalid_panels_are_errors() {
        let wrong = |panel: serde_json::Value| Drawing::from_json(&json!([panel])).unwrap_err().to_string();
        let report = wrong(json!({ "kind": "bars", "y": "all.fct.mean", "colour": "red" }));
        assert!(
            report.starts_with("[[paper.plot]] number 1: colour: unknown field `colour`, expected one of `kind`, `y`"),
            "{report}"
        );
        let report = wrong(json!({ "kind": "pie", "y": "all.fct.mean" }));
        assert!(
            report.contains("`pie`")
                && report.contains("`bars`")
                && report.contains("`lines`")
                && report.contains("`cdf`")
                && report.contains("`time`"),
            "{report}"
        );
        let report = wrong(json!({ "kind": "bars", "y": "all.fct.p98" }));
        assert!(report.starts_with("[[paper.plot]] number 1, `y`: column 9: expected a statistic"), "{report}");
        let report = wrong(json!({ "kind": "cdf", "y": "inter.fct", "x": "load" }));
        assert_eq!(report, "[[paper.plot]] number 1: `x` is for bars and lines");
        let report = wrong(json!({ "kind": "bars", "y": ["all.fct.mean", "all.fct.p99"], "places": ["mean"] }));
        assert!(report.contains("`places`") && report.contains("`y`"), "{report}");
        let report = wrong(json!({ "kind": "lines", "y": ["all.fct.mean"], "places": ["mean"], "x": "load" }));
        assert!(report.contains("give one of these"), "{report}");
        let report = wrong(json!({ "kind": "bars", "y": "all.fct.mean", "paper": [{ "value": "2", "of": "uno" }] }));
        assert!(report.contains("`of` a scheme"), "{report}");
    }
}
