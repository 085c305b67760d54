//! Selection of a grid's runs by the values of its keys.

use serde_json::Value;
use thiserror::Error;

use crate::point_keys::{Lookup, find};
use crate::store::RunResults;

/// The name of a run's value where its point lacks the key.
const NONE: &str = "none";

/// Reason for an empty selection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotFound {
    /// No point has the key.
    #[error("runs have no key `{key}`; there are {known}")]
    Key {
        /// Requested key.
        key: String,
        /// The keys.
        known: String,
    },
    /// The end of more than one key.
    #[error("`{key}` is the end of several keys: {known}; name one of them in full")]
    Several {
        /// Requested key.
        key: String,
        /// The keys.
        known: String,
    },
    /// No run has the value.
    #[error("no run has {key}={requested}; there are {known}")]
    Value {
        /// The key.
        key: String,
        /// Requested value.
        requested: String,
        /// The key's values.
        known: String,
    },
}

/// Returns the runs with these values, such as `traffic.0.load` and `0.4` or `40%`. Values of a key given twice are alternatives.
/// A key may be shortened to its last parts if no other key ends with them. `none` selects runs without the key, such as those
/// without a variant.
///
/// # Errors
/// When no run has a key or a value, or a key is the end of several.
pub fn chosen(mut runs: Vec<RunResults>, wanted: &[(String, String)]) -> Result<Vec<RunResults>, NotFound> {
    let wanted: Vec<(String, String)> = wanted
        .iter()
        .map(|(key, requested)| Ok((in_full(&runs, key)?, requested.clone())))
        .collect::<Result<_, NotFound>>()?;
    let found = |key: &str, requested: &str| runs.iter().any(|run| is(run, key, requested));
    if let Some((key, requested)) = wanted.iter().find(|(key, requested)| !found(key, requested)) {
        return Err(not_found(&runs, key, requested));
    }
    runs.retain(|run| {
        wanted.iter().all(|(key, _)| wanted.iter().any(|(other, requested)| other == key && is(run, key, requested)))
    });
    Ok(runs)
}

/// Returns the full name of a key; the name itself if no point has such a key.
fn in_full(runs: &[RunResults], name: &str) -> Result<String, NotFound> {
    match find(runs.iter().flat_map(|run| run.manifest.point.iter()).map(|(key, _)| key), name) {
        Lookup::One(key) => Ok(key.to_owned()),
        Lookup::None => Ok(name.to_owned()),
        Lookup::Several(keys) => Err(NotFound::Several { key: name.to_owned(), known: keys.join(", ") }),
    }
}

/// Returns whether a run has this value of a key that at least one run has.
fn is(run: &RunResults, key: &str, requested: &str) -> bool {
    match value_of(run, key) {
        None => requested == NONE,
        Some(value) => {
            let text = shown(&value);
            text == requested || number(&text).is_some_and(|value| number(requested) == Some(value))
        }
    }
}

/// A run's value of a key. Outside of a grid runs have no point, but a scheme each.
fn value_of(run: &RunResults, key: &str) -> Option<Value> {
    run.manifest.point.get(key).cloned().or_else(|| (key == SCHEME).then(|| scheme_of(run)).flatten())
}

const SCHEME: &str = "scheme";

/// The scheme of a run outside of a grid: the only one that its manifest has.
fn scheme_of(run: &RunResults) -> Option<Value> {
    let schemes = run.manifest.resolved.get("schemes")?.as_object()?;
    schemes.keys().next().filter(|_| schemes.len() == 1).map(|name| Value::from(name.as_str()))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `40%` is 0.4.
fn number(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        // In decimal: 0.7 over 100 is another number than 0.007.
        Some(hundredths) => format!("{hundredths}e-2").parse().ok(),
        None => text.parse().ok(),
    }
}

fn not_found(runs: &[RunResults], key: &str, requested: &str) -> NotFound {
    let key = key.to_owned();
    if runs.iter().all(|run| value_of(run, &key).is_none()) {
        let scheme = runs.iter().any(|run| value_of(run, SCHEME).is_some()).then(|| SCHEME.to_owned());
        let keys = runs.iter().flat_map(|run| run.manifest.point.iter()).map(|(key, _)| key.to_owned());
        return NotFound::Key { key, known: listed(scheme.into_iter().chain(keys)) };
    }
    let values = runs.iter().map(|run| value_of(run, &key).as_ref().map_or_else(|| NONE.to_owned(), shown));
    NotFound::Value { known: listed(values), requested: requested.to_owned(), key }
}

/// Lists each once, in the order of first appearance.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use serde_json::json;

    fn runs() -> Vec<RunResults> {
        let run = |point: Value| {
            let mut run = testbed::results();
            run.manifest.point.0 = point.as_object().unwrap().clone().into_iter().collect();
            run
        };
        vec![
            run(json!({ "scheme": "uno", "traffic.0.load": 0.4, "traffic.0.size": "1MB", "port.size": 1 })),
            run(json!({ "scheme": "uno", "traffic.0.load": "80%" })),
            run(json!({ "scheme": "bbr", "traffic.0.load": 0.4, "variant": "far" })),
        ]
    }

    /// A run outside of a grid has no point. Its manifest has one scheme.
    #[test]
    fn runs_outside_of_a_grid_have_a_scheme() {
        let run = |scheme: &str| {
            let mut run = testbed::results();
            run.manifest.point = crate::Ordered::default();
            run.manifest.resolved = json!({ "schemes": { scheme: {} } });
            run
        };
        let count = |key: &str, value: &str| {
            let runs = vec![run("uno"), run("bbr")];
            chosen(runs, &[(key.to_owned(), value.to_owned())])
                .map(|runs| runs.len())
                .map_err(|error| error.to_string())
        };
        assert_eq!(count("scheme", "bbr"), Ok(1));
        assert_eq!(count("scheme", "bbq"), Err("no run has scheme=bbq; there are uno, bbr".into()));
        assert_eq!(count("load", "0.4"), Err("runs have no key `load`; there are scheme".into()));
    }

    #[test]
    fn key_filters_are_or_within_a_key_and_and_across_keys() {
        let count = |wanted: &[(&str, &str)]| {
            let wanted: Vec<_> = wanted.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            chosen(runs(), &wanted).map(|runs| runs.len()).map_err(|error| error.to_string())
        };
        assert_eq!(count(&[]), Ok(3));
        assert_eq!(count(&[("load", "40%")]), Ok(2));
        assert_eq!(count(&[("load", "0.40"), ("scheme", "uno")]), Ok(1));
        assert_eq!([number("0.7%"), number("1.1%"), number("x%")], [Some(0.007), Some(0.011), None]);
        assert_eq!(count(&[("load", "0.4"), ("load", "0.8")]), Ok(3));
        assert_eq!(
            [count(&[("load", "0.8")]), count(&[("load", "80%")]), count(&[("load", "80.0%")])],
            [Ok(1), Ok(1), Ok(1)]
        );
        assert_eq!(count(&[("variant", "none")]), Ok(2));
        assert_eq!(count(&[("variant", "far"), ("scheme", "uno")]), Ok(0));
        assert_eq!(count(&[("variant", "near")]), Err("no run has variant=near; there are none, far".into()));
        assert_eq!(count(&[("traffic.0.load", "0.4"), ("load", "0.8")]), Ok(3));
        let keys = "scheme, traffic.0.load, traffic.0.size, port.size, variant";
        assert_eq!(count(&[("lode", "0.4")]), Err(format!("runs have no key `lode`; there are {keys}")));
        let several = "`size` is the end of several keys: traffic.0.size, port.size; name one of them in full";
        assert_eq!(count(&[("size", "1")]), Err(several.into()));
        assert_eq!(count(&[("port.size", "1")]), Ok(1));
    }
}
