//! Variations that a caller adds to the file: keys that take several values, and seeds.

use results::claims::SEED;
use scenario::argument::is_toml;
use scenario::{Overrides, Scenario};

use crate::error::Error;

/// Variations in addition to the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SweepOptions {
    /// Keys, and the values that each takes in turn, in the syntax of [`over`].
    pub over: Vec<(String, String)>,
    /// Number of seeds for each point; none for the scenario's own seed.
    pub seeds: Option<u64>,
}

impl SweepOptions {
    /// Returns the scenario that `load` reads, with all variations. Errors refer to it as `name`.
    ///
    /// # Errors
    /// If a key is varied twice or has no value, the seeds exceed the valid range, or the scenario varies seeds itself.
    pub fn scenario<E: From<Error>>(
        &self,
        name: &str,
        mut overrides: Overrides,
        load: impl Fn(&Overrides) -> Result<Scenario, E>,
    ) -> Result<Scenario, E> {
        for (index, (key, values)) in self.over.iter().enumerate() {
            if self.over[..index].iter().any(|(other, _)| written(other) == written(key)) {
                let help = "give all of its values at once, with commas between them";
                return Err(Error::invalid_request(format!("`{key}` is varied twice"), help).into());
            }
            over(&mut overrides, key, values)?;
        }
        let scenario = load(&overrides)?;
        let Some(count) = self.seeds else { return Ok(scenario) };
        if has_seeds(&scenario) {
            let what = format!("`{name}` varies `seed` by itself, so a number of seeds is not for it");
            return Err(Error::invalid_request(what, "leave out one of them").into());
        }
        seeds(&mut overrides, &scenario, count)?;
        load(&overrides)
    }
}

/// Varies a key of the scenario over several values, instead of those of `[grid]`. The values are
/// separated by commas, or are a TOML array.
///
/// # Errors
/// If there is no value.
pub fn over(overrides: &mut Overrides, key: &str, values: &str) -> Result<(), Error> {
    let values = values.trim();
    let array = if values.starts_with('[') {
        values.to_owned()
    } else {
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.iter().any(|value| value.is_empty()) {
            return Err(Error::invalid_request(
                format!("`{key}={}` has an empty value", values.join(",")),
                "expected values with commas between them, as in traffic.0.load=20%,40%,80%",
            ));
        }
        let written: Vec<String> = values.into_iter().map(in_toml).collect();
        format!("[{}]", written.join(", "))
    };
    overrides.over.push((written(key), array));
    Ok(())
}

/// Normalises the syntax of a key.
fn written(key: &str) -> String {
    key.replace('[', ".").replace([']', '"'], "")
}

/// Converts a value to TOML: anything that is not a TOML value becomes a string.
pub(crate) fn in_toml(value: &str) -> String {
    if is_toml(value) { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

/// Returns whether a scenario has its own seeds: in its points or in a variant.
pub fn has_seeds(scenario: &Scenario) -> bool {
    let variants = &scenario.config.variants;
    scenario.runs().iter().any(|run| run.point.iter().any(|(key, _)| key == SEED))
        || variants.iter().any(|(_, variant)| variant.set.get(SEED).is_some())
}

/// Plans all runs over `count` seeds: the scenario's own and those after it. One seed changes nothing.
///
/// # Errors
/// If the last seed is out of range.
pub fn seeds(overrides: &mut Overrides, scenario: &Scenario, count: u64) -> Result<(), Error> {
    if count <= 1 {
        return Ok(());
    }
    let first = scenario.config.seed;
    let last = first.checked_add(count - 1).filter(|last| i64::try_from(*last).is_ok());
    let last = last.ok_or_else(|| {
        Error::invalid_request(format!("there are no {count} seeds from {first} on"), "choose a smaller --seed")
    })?;
    let all: Vec<String> = (first..=last).map(|seed| seed.to_string()).collect();
    let all = format!("[{}]", all.join(", "));
    // A variant would else have the first one alone.
    let variants = scenario.config.variants.iter().map(|(name, _)| format!("variants.\"{name}\".grid.{SEED}"));
    overrides.set.extend(variants.map(|key| (key, all.clone())));
    overrides.over.push((SEED.to_owned(), all));
    overrides.seed = None;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_in_common_notations() {
        let of = |values: &str| {
            let mut overrides = Overrides::default();
            over(&mut overrides, "traffic.0.load", values).unwrap_or_else(|error| panic!("{error}"));
            overrides.over.remove(0)
        };
        let key = "traffic.0.load".to_owned();
        assert_eq!(of("20%, 40%"), (key.clone(), r#"["20%", "40%"]"#.to_owned()));
        assert_eq!(of("0.2,1e-3,4,true,\"x\"").1, r#"[0.2, 1e-3, 4, true, "x"]"#);
        assert_eq!(of("1_000,0x10,1MB").1, r#"[1_000, 0x10, "1MB"]"#);
        assert_eq!(of("-1,+2,1.5e-3,0,0.5,10").1, "[-1, +2, 1.5e-3, 0, 0.5, 10]");
        assert_eq!(of("007,.5,1.,1e,-").1, r#"["007", ".5", "1.", "1e", "-"]"#);
        assert_eq!(of("[\"a\", { x = 1 }]").1, "[\"a\", { x = 1 }]");
        assert!(over(&mut Overrides::default(), "a", "1,,2").is_err());
    }
}
