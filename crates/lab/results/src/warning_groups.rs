//! Warnings grouped by cause. Each cause is listed once, with the number of its runs, their place in the grid, and one
//! example.

use std::fmt;

use serde_json::Value;

/// A run and its warnings.
#[derive(Clone, Copy, Debug)]
pub struct RunWarnings<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The run's point in the grid, key by key; empty without a grid.
    pub point: &'a [(String, Value)],
    /// The run's warnings, or its notes.
    pub texts: &'a [String],
}

/// One cause of warnings, and the runs that have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WarningGroup {
    /// The number of runs that have it, and which runs.
    pub runs: String,
    /// The first run's text. In the others' only numbers and names of ports may differ.
    pub text: String,
}

impl fmt::Display for WarningGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.runs, self.text)
    }
}

/// The causes, in the order in which they first occur.
pub fn group_warnings(all: &[RunWarnings<'_>]) -> Vec<WarningGroup> {
    let mut found: Vec<(String, &str, bool, Vec<usize>)> = Vec::new();
    for (index, entry) in all.iter().enumerate() {
        for text in entry.texts {
            let key = without_numbers(text);
            match found.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, first, is_identical, runs)) => {
                    *is_identical &= first == text;
                    if runs.last() != Some(&index) {
                        runs.push(index);
                    }
                }
                None => found.push((key, text, true, vec![index])),
            }
        }
    }
    let group = |(_, text, is_identical, runs): (String, &str, bool, Vec<usize>)| {
        let example = all[runs[0]].run;
        let runs = match (runs.len(), all.len()) {
            (1, _) => example.to_owned(),
            (_, all_of_them) => {
                let selection = describe_selection(all, &runs);
                let of = if runs.len() == all_of_them {
                    format!("all {all_of_them}")
                } else {
                    format!("{} of {all_of_them}", runs.len())
                };
                let selection = if selection.is_empty() { String::new() } else { format!(" ({selection})") };
                let example = if is_identical { String::new() } else { format!(", for example {example}") };
                format!("{of} runs{selection}{example}")
            }
        };
        WarningGroup { runs, text: text.to_owned() }
    };
    found.into_iter().map(group).collect()
}

/// The maximum number of values named for a key of the grid.
const MAX_NAMED: usize = 6;

/// Returns the values that some runs take, for each key of the grid. Empty if these are all runs.
fn describe_selection(all: &[RunWarnings<'_>], subset: &[usize]) -> String {
    if subset.len() == all.len() {
        return String::new();
    }
    if all.iter().all(|entry| entry.point.is_empty()) {
        return listed(subset.iter().map(|&index| all[index].run.to_owned()).collect());
    }
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in all.iter().flat_map(|entry| entry.point) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    // A run of a variant has a key that others lack.
    let of =
        |run: usize, key: &str| all[run].point.iter().find(|(known, _)| known == key).map(|(_, value)| shown(value));
    let values = |key: &str, runs: &mut dyn Iterator<Item = usize>| {
        let mut values: Vec<Option<String>> = Vec::new();
        for value in runs.map(|run| of(run, key)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let mut parts = Vec::new();
    let mut meant: Vec<usize> = (0..all.len()).collect();
    for key in keys {
        let selected = values(key, &mut subset.iter().copied());
        let all_values = values(key, &mut (0..all.len()));
        meant.retain(|&run| selected.contains(&of(run, key)));
        if selected.len() == all_values.len() {
            if all_values.len() > 1 {
                parts.push(format!("every {key}"));
            }
            continue;
        }
        let without = if selected.contains(&None) { Some(format!("no {key}")) } else { None };
        let named: Vec<String> = selected.into_iter().flatten().collect();
        let named = if named.is_empty() { None } else { Some(format!("{key} {}", listed(named))) };
        parts.push(named.into_iter().chain(without).collect::<Vec<_>>().join(" or "));
    }
    let among = if meant.len() > subset.len() { "among " } else { "" };
    format!("{among}{}", parts.join("; "))
}

fn listed(values: Vec<String>) -> String {
    let more = values.len().saturating_sub(MAX_NAMED);
    let text = values.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // A grid's integers are read as floats.
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Removes the parts of a text that differ between runs: words with digits (numbers, names of ports) and the units after
/// them. Several in a row become one `#`.
fn without_numbers(text: &str) -> String {
    const UNITS: [&str; 15] =
        ["ps", "ns", "us", "ms", "s", "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "Mbps", "Gbps"];
    let mut tokens: Vec<&str> = Vec::new();
    for token in text.split_whitespace() {
        let bare = token.trim_end_matches([',', ';', ':', '.']);
        let last_is_number = tokens.last() == Some(&"#");
        if bare.contains(|c: char| c.is_ascii_digit()) {
            if !last_is_number {
                tokens.push("#");
            }
        } else if !(last_is_number && UNITS.contains(&bare)) {
            tokens.push(token);
        }
    }
    tokens.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point(scheme: &str, load: f64, seed: u64) -> Vec<(String, Value)> {
        vec![("scheme".into(), json!(scheme)), ("load".into(), json!(load)), ("seed".into(), json!(seed as f64))]
    }

    #[test]
    fn warnings_are_grouped_by_cause_with_runs_and_example() {
        let mut runs = Vec::new();
        for scheme in ["uno", "gemini", "bbr"] {
            for load in [0.2, 0.4, 0.6] {
                for seed in 1..=5u64 {
                    let mut texts = Vec::new();
                    if load > 0.3 && scheme != "bbr" {
                        texts.push(format!("{seed} of 500 flows did not end; completion times are of the others"));
                        let at = if seed > 3 { "1.200 s".to_owned() } else { format!("{seed}0.000 ms") };
                        texts.push(format!("the run reached its stop at {at} before all flows had ended"));
                    }
                    if scheme == "bbr" {
                        texts.push("the law bbr never acted".into());
                    }
                    if (scheme, load, seed) == ("uno", 0.6, 5) {
                        texts.push("deadlock: in a cycle: dc0.edge1>dc0.agg2, dc0.agg2>dc0.edge1".into());
                    }
                    runs.push((format!("{scheme},load={load},seed={seed}"), point(scheme, load, seed), texts));
                }
            }
        }
        let entry: Vec<RunWarnings<'_>> =
            runs.iter().map(|(run, point, texts)| RunWarnings { run, point, texts }).collect();
        let lines: Vec<String> = group_warnings(&entry).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "20 of 45 runs (scheme uno, gemini; load 0.4, 0.6; every seed), for example uno,load=0.4,seed=1: 1 of \
                 500 flows did not end; completion times are of the others",
                "20 of 45 runs (scheme uno, gemini; load 0.4, 0.6; every seed), for example uno,load=0.4,seed=1: the \
                 run reached its stop at 10.000 ms before all flows had ended",
                "uno,load=0.6,seed=5: deadlock: in a cycle: dc0.edge1>dc0.agg2, dc0.agg2>dc0.edge1",
                "15 of 45 runs (scheme bbr; every load; every seed): the law bbr never acted",
            ]
        );
        // Not every combination of the named values.
        assert_eq!(describe_selection(&entry, &[0, 16]), "among scheme uno, gemini; load 0.2; seed 1, 2");
        assert_eq!(describe_selection(&entry, &(0..45).collect::<Vec<_>>()), "");
    }

    #[test]
    fn runs_without_a_grid_are_listed_by_name() {
        let texts = ["the law never acted".to_owned()];
        let none: [String; 0] = [];
        let entry = |run, texts| RunWarnings { run, point: &[], texts };
        let all = [entry("uno", &texts[..]), entry("mixed", &none[..]), entry("bbr", &texts[..])];
        assert_eq!(group_warnings(&all)[0].to_string(), "2 of 3 runs (uno, bbr): the law never acted");
        assert_eq!(group_warnings(&all[..1])[0].to_string(), "uno: the law never acted");
        assert_eq!(group_warnings(&[all[0], all[2]])[0].to_string(), "all 2 runs: the law never acted");
        assert_eq!(group_warnings(&all[1..2]), []);
    }

    #[test]
    fn variants_have_a_key_that_others_lack() {
        let point = |load: f64, variant: Option<&str>| {
            let variant = variant.map(|name| ("variant".to_owned(), json!(name)));
            std::iter::once(("load".to_owned(), json!(load))).chain(variant).collect::<Vec<_>>()
        };
        let points = [point(0.4, None), point(0.8, None), point(0.4, Some("deep")), point(0.4, Some("far"))];
        let all: Vec<RunWarnings<'_>> =
            points.iter().map(|point| RunWarnings { run: "r", point, texts: &[] }).collect();
        assert_eq!(describe_selection(&all, &[0, 1]), "every load; no variant");
        assert_eq!(describe_selection(&all, &[0, 2]), "load 0.4; variant deep or no variant");
        assert_eq!(describe_selection(&all, &[2, 3]), "load 0.4; variant deep, far");
        assert_eq!(describe_selection(&all, &[0, 3, 1]), "every load; variant far or no variant");
    }

    #[test]
    fn many_values_are_not_all_named() {
        let points: Vec<_> = (0..20).map(|seed| point("uno", 0.5, seed)).collect();
        let all: Vec<RunWarnings<'_>> =
            points.iter().map(|point| RunWarnings { run: "r", point, texts: &[] }).collect();
        assert_eq!(describe_selection(&all, &(0..9).collect::<Vec<_>>()), "seed 0, 1, 2, 3, 4, 5 and 3 more");
    }
}
