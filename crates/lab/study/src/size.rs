//! Sizing: the smallest value of a key for which objectives hold, with settings of other keys tried in addition.
//!
//! For each scheme and setting the largest value is run first. If it fails, one half of it, one quarter and so on down
//! to the smallest value are run, because a larger buffer is not always better: thresholds in per cent grow with it.
//! Then the search bisects between the smallest of these that holds and the next lower one, which fails. A setting is
//! dropped as soon as it cannot beat another setting of its scheme.

use std::collections::{BTreeMap, BTreeSet};

use results::RunResults;
use results::claims::ast::Order;
use results::claims::{Check, Comparison, DimensionedValue, Runs, SEED, is_of_few, value};
use scenario::{NumberRange, Overrides, Scenario};

use crate::error::Error;
use crate::vary::in_toml;

/// Condition that must hold in every run.
#[derive(Clone, Debug)]
pub struct Objective {
    /// The text as written.
    pub text: String,
    /// The parsed text.
    pub check: Check,
}

/// A key of the scenario and values to try, in the form of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The key, as in `port.ecn.min`. A key that begins with `schemes.NAME.` belongs to that scheme alone.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

/// Specification of a search.
#[derive(Clone, Debug)]
pub struct Sizing {
    /// The schemes, each sized separately; at least one.
    pub schemes: Vec<String>,
    /// Conditions that must hold.
    pub objectives: Vec<Objective>,
    /// The key to be minimised, as in `port.buffer`.
    pub key: String,
    /// Its values, in increasing order.
    pub ladder: Vec<String>,
    /// Number of values per doubling, at least 1.
    pub steps_per_doubling: usize,
    /// Other keys to vary. Every combination is a setting.
    pub choices: Vec<Choice>,
}

/// Maximum number of combinations of choices.
const MAX_SETTINGS: usize = 256;
/// Maximum number of values of the key.
const MAX_LADDER: usize = 400;

/// Returns values from one end of a range to the other, `steps_per_doubling` per doubling, both ends included.
///
/// # Errors
/// If the range begins with 0, or has over 400 values.
pub fn ladder(ends: &NumberRange, steps_per_doubling: u32) -> Result<Vec<String>, Error> {
    if ends.low() <= 0.0 {
        return Err(Error::invalid_request("a range to search begins above 0", "expected LOW..HIGH, as in 50KB..2MB"));
    }
    let steps = (f64::from(steps_per_doubling) * (ends.high() / ends.low()).log2()).ceil().max(1.0);
    if steps >= MAX_LADDER as f64 {
        return Err(Error::invalid_request(
            format!("a range of over {MAX_LADDER} values"),
            "choose a narrower one, or fewer values to a doubling with --steps-per-doubling",
        ));
    }
    let at = |step: u32| ends.low() * (ends.high() / ends.low()).powf(f64::from(step) / steps);
    let text = |value: serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut values: Vec<String> = (0..=steps as u32).map(|step| text(ends.value(at(step)))).collect();
    values.dedup();
    Ok(values)
}

/// Result of a trial: one value with one setting.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The setting: keys of the choices and their values.
    pub setting: Vec<(String, String)>,
    /// The key's value.
    pub value: String,
    /// Set if all objectives hold.
    pub holds: bool,
    /// Measurements by objective.
    pub measured: Vec<ObjectiveMeasurement>,
    /// Names of the runs: one for each point of the scenario's own grid and each seed.
    pub runs: Vec<String>,
    value_index: usize,
    setting_index: usize,
}

/// An objective in the run that is worst by it.
#[derive(Clone, Debug)]
pub struct ObjectiveMeasurement {
    /// Set if it holds in all runs.
    pub holds: bool,
    /// The left side of the comparison that is closest to failing, in the worst run; none if it has no value.
    pub worst: Option<DimensionedValue>,
    /// Distance of that value to the bound, as a fraction of the bound; negative if the objective fails. None if the
    /// bound is 0, and for equality.
    pub margin: Option<f64>,
    /// Rank of runs and settings: the margin, or without one the distance to the bound.
    rank: f64,
    /// Set if it is a 99th percentile of so few flows that one of the slowest determines it.
    pub is_of_few: bool,
    /// Reason for a missing value; may be empty.
    pub reason: String,
    /// Name of the worst run.
    pub run: String,
}

/// Result of a search for one scheme.
#[derive(Clone, Debug)]
pub struct SizingResult {
    /// The scheme.
    pub scheme: String,
    /// The smallest value that holds, and its setting.
    pub least: Option<TrialResult>,
    /// The next lower value at that setting, which fails; none if the smallest value of the range holds. If no value holds:
    /// the value and setting closest to the objectives.
    pub fails: Option<TrialResult>,
    /// The smallest larger value known to fail at that setting. If there is one, the objectives do not hold for all
    /// values above `least`.
    pub fails_above: Option<String>,
    /// Number of settings of the scheme.
    pub settings: usize,
    /// All trials.
    pub tried: Vec<TrialResult>,
}

impl SizingResult {
    /// Returns the indices of the objectives that fail just below.
    pub fn binds(&self) -> Vec<usize> {
        let failing = |tried: &TrialResult| {
            tried.measured.iter().enumerate().filter(|(_, it)| !it.holds).map(|(index, _)| index).collect()
        };
        self.fails.as_ref().map(failing).unwrap_or_default()
    }
}

/// Results of a search.
#[derive(Debug)]
pub struct SearchResults {
    /// Results by scheme.
    pub sized: Vec<SizingResult>,
    /// The scenario with all trials as its points.
    pub scenario: Scenario,
    /// Names of the runs that were executed.
    pub runs: Vec<String>,
}

/// Search for a scheme with one setting.
#[derive(Clone, Debug)]
struct SizingSearch {
    scheme: usize,
    setting: usize,
    /// Values that were run, and whether the objectives hold for them.
    known: BTreeMap<usize, bool>,
}

/// A setting and a value: one entry of the list of points.
type SettingIndex = (usize, usize);

/// Names of runs, by scheme and row.
type RunNames = Vec<((usize, SettingIndex), String)>;

/// Returns the scheme to which a key belongs.
pub fn scheme_of(key: &str) -> Option<&str> {
    key.strip_prefix("schemes.").and_then(|rest| rest.split('.').next())
}

impl Sizing {
    /// Refuses keys and values that cannot be tried together.
    ///
    /// # Errors
    /// If a key or a value occurs twice, a key is varied by the scenario itself, or belongs to a scheme that is not
    /// sized.
    pub fn check(&self, scenario: &Scenario) -> Result<(), Error> {
        let grid = first_resolved(scenario).get("grid").cloned().unwrap_or_default();
        let keys = std::iter::once(("--minimize", &self.key)).chain(self.choices.iter().map(|it| ("--vary", &it.key)));
        let mut known = BTreeSet::new();
        for (option, key) in keys {
            if !known.insert(key) {
                return Err(Error::invalid_request(
                    format!("`{key}` is given twice"),
                    "give a key once: to --minimize, or with all of its values to one --vary",
                ));
            }
            if key == SEED {
                return Err(Error::invalid_request(
                    format!("{option} `{key}`: seeds are no setting"),
                    "choose their number with --seeds",
                ));
            }
            if grid.get(key).is_some() {
                let what = format!("{option} `{key}`: the scenario's [grid] varies it by itself");
                return Err(Error::invalid_request(what, "leave it out of [grid] in a copy of the file"));
            }
            if let Some(scheme) = scheme_of(key).filter(|scheme| !self.schemes.iter().any(|it| it == scheme)) {
                let known: Vec<&str> = self.schemes.iter().map(String::as_str).collect();
                return Err(Error::unknown(
                    &format!("{option} `{key}`: no scheme `{scheme}` is sized"),
                    scheme,
                    &known,
                ));
            }
        }
        let has_duplicates =
            |choice: &&Choice| (1..choice.values.len()).any(|at| choice.values[..at].contains(&choice.values[at]));
        match self.choices.iter().find(has_duplicates) {
            None => Ok(()),
            Some(choice) => {
                let what = format!("--vary `{}={}` has a value twice", choice.key, choice.values.join(","));
                Err(Error::invalid_request(what, "give each value once"))
            }
        }
    }

    /// Returns the combinations of all choices, each as indices of values.
    fn settings(&self) -> Result<Vec<Vec<usize>>, Error> {
        let mut all = vec![Vec::new()];
        for choice in &self.choices {
            all = all
                .iter()
                .flat_map(|before: &Vec<usize>| {
                    (0..choice.values.len()).map(|value| [before.clone(), vec![value]].concat())
                })
                .collect();
            if all.len() > MAX_SETTINGS {
                return Err(Error::invalid_request(
                    format!("over {MAX_SETTINGS} settings to try"),
                    "give fewer values with --vary, or --no-vary to try the file's own settings alone",
                ));
            }
        }
        Ok(all)
    }

    /// Returns whether a setting belongs to a scheme: keys of other schemes keep their first value in it.
    fn is_of(&self, scheme: &str, setting: &[usize]) -> bool {
        let foreign = |key: &str| scheme_of(key).is_some_and(|of| of != scheme);
        self.choices.iter().zip(setting).all(|(choice, &value)| value == 0 || !foreign(&choice.key))
    }

    fn named(&self, setting: &[usize], scheme: &str) -> Vec<(String, String)> {
        let choices = self.choices.iter().zip(setting);
        choices
            .filter(|(choice, _)| scheme_of(&choice.key).is_none_or(|of| of == scheme))
            .map(|(choice, &value)| (choice.key.clone(), choice.values[value].clone()))
            .collect()
    }

    /// Runs the search. `load` reads the scenario with overrides; `run` executes the named runs and returns their
    /// results.
    ///
    /// # Errors
    /// If a key or value is wrong, or a run fails.
    pub fn search(
        &self,
        load: impl Fn(&Overrides) -> Result<Scenario, Error>,
        overrides: &Overrides,
        mut run: impl FnMut(&Scenario, &[String]) -> Result<Vec<RunResults>, Error>,
    ) -> Result<SearchResults, Error> {
        let settings = self.settings()?;
        let mut searches: Vec<SizingSearch> = Vec::new();
        for (scheme, name) in self.schemes.iter().enumerate() {
            let of = settings.iter().enumerate().filter(|(_, setting)| self.is_of(name, setting));
            searches.extend(of.map(|(setting, _)| SizingSearch { scheme, setting, known: BTreeMap::new() }));
        }
        let top = self.ladder.len() - 1;
        let mut rows: Vec<SettingIndex> = Vec::new();
        let mut wanted: BTreeSet<(usize, SettingIndex)> =
            searches.iter().map(|it| (it.scheme, (it.setting, top))).collect();
        let mut done: BTreeMap<String, RunResults> = BTreeMap::new();
        let mut is_last = false;
        loop {
            for &(_, row) in &wanted {
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
            let (scenario, names) = self.scenario(&load, overrides, &settings, &rows, &wanted)?;
            let missing: Vec<String> =
                names.iter().filter(|(_, name)| !done.contains_key(name)).map(|(_, name)| name.clone()).collect();
            if !missing.is_empty() {
                done.extend(run(&scenario, &missing)?.into_iter().map(|run| (run.summary.run.clone(), run)));
            }
            let tried = |scheme: usize, row: SettingIndex| {
                let here = names.iter().filter(|(at, _)| *at == (scheme, row));
                let runs: Vec<&RunResults> = here.filter_map(|(_, name)| done.get(name)).collect();
                self.tried(&runs, scheme, row, &settings)
            };
            for search in &mut searches {
                for &(_, (_, value_index)) in
                    wanted.iter().filter(|(of, row)| (*of, row.0) == (search.scheme, search.setting))
                {
                    search
                        .known
                        .entry(value_index)
                        .or_insert_with(|| tried(search.scheme, (search.setting, value_index)).holds);
                }
            }
            let mut next: BTreeSet<(usize, SettingIndex)> = BTreeSet::new();
            for search in &searches {
                let probes = search.probes(top, self.steps_per_doubling, best_of_others(&searches, search));
                next.extend(probes.into_iter().map(|value_index| (search.scheme, (search.setting, value_index))));
            }
            // Last of all, whether the objectives that the least value meets are also met by the next value.
            if next.is_empty() && !is_last {
                is_last = true;
                let best = (0..self.schemes.len()).filter_map(|scheme| best(&searches, scheme));
                let above = best.filter(|(_, holds)| *holds < top);
                next.extend(above.map(|(search, holds)| (search.scheme, (search.setting, holds + 1))));
            }
            let before = wanted.len();
            wanted.extend(next);
            if wanted.len() == before {
                let sized =
                    (0..self.schemes.len()).map(|scheme| self.sized(&searches, scheme, &wanted, tried)).collect();
                let runs = names.into_iter().map(|(_, name)| name).collect();
                return Ok(SearchResults { sized, scenario, runs });
            }
        }
    }

    /// Returns the scenario with all rows as a list of points, and the names of the runs needed from it.
    fn scenario(
        &self,
        load: impl Fn(&Overrides) -> Result<Scenario, Error>,
        overrides: &Overrides,
        settings: &[Vec<usize>],
        rows: &[SettingIndex],
        wanted: &BTreeSet<(usize, SettingIndex)>,
    ) -> Result<(Scenario, RunNames), Error> {
        let quoted = |key: &str| serde_json::Value::from(key).to_string();
        let pair = |key: &str, value: &str| format!("{} = {}", quoted(key), in_toml(value));
        let point = |&(setting, value): &SettingIndex| {
            let choices = self.choices.iter().zip(&settings[setting]);
            let others = choices.map(|(choice, &value)| pair(&choice.key, &choice.values[value]));
            let all: Vec<String> = std::iter::once(pair(&self.key, &self.ladder[value])).chain(others).collect();
            format!("{{ {} }}", all.join(", "))
        };
        let list: Vec<String> = rows.iter().map(point).collect();
        let mut overrides = overrides.clone();
        overrides.set.push(("points".to_owned(), format!("[{}]", list.join(", "))));
        let scenario = load(&overrides)?;
        // Rows vary fastest; the only other dimension of the scenario may be a grid.
        let mut names = Vec::new();
        let (mut index, mut before) = (0, None);
        for run in scenario.runs() {
            if let Some(before) = before.replace(run.point.clone())
                && before != run.point
            {
                index += 1;
            }
            let row = rows[index % rows.len()];
            if let Some(scheme) = self.schemes.iter().position(|name| *name == run.scheme)
                && wanted.contains(&(scheme, row))
            {
                names.push(((scheme, row), run.id));
            }
        }
        Ok((scenario, names))
    }

    /// Returns the measurements of a row under a scheme.
    fn tried(&self, runs: &[&RunResults], scheme: usize, row: SettingIndex, settings: &[Vec<usize>]) -> TrialResult {
        let measured: Vec<ObjectiveMeasurement> = self.objectives.iter().map(|it| worst(it, runs)).collect();
        TrialResult {
            setting: self.named(&settings[row.0], &self.schemes[scheme]),
            value: self.ladder[row.1].clone(),
            holds: measured.iter().all(|it| it.holds),
            measured,
            runs: runs.iter().map(|run| run.summary.run.clone()).collect(),
            value_index: row.1,
            setting_index: row.0,
        }
    }

    fn sized(
        &self,
        searches: &[SizingSearch],
        scheme: usize,
        wanted: &BTreeSet<(usize, SettingIndex)>,
        tried: impl Fn(usize, SettingIndex) -> TrialResult,
    ) -> SizingResult {
        let all: Vec<TrialResult> =
            wanted.iter().filter(|(of, _)| *of == scheme).map(|&(of, row)| tried(of, row)).collect();
        let at = |setting: usize, value_index: usize| {
            all.iter().find(|it| it.setting_index == setting && it.value_index == value_index).cloned()
        };
        let settings = searches.iter().filter(|it| it.scheme == scheme).count();
        let best = best(searches, scheme).map(|(search, holds)| (search.setting, holds));
        let (least, fails, fails_above) = if let Some((setting, holds)) = best {
            let above = all.iter().filter(|it| it.setting_index == setting && it.value_index > holds && !it.holds);
            let below = holds.checked_sub(1).and_then(|below| at(setting, below));
            (at(setting, holds), below, above.min_by_key(|it| it.value_index).map(|it| it.value.clone()))
        } else {
            let least = |it: &TrialResult| it.measured.iter().map(|it| it.rank).fold(f64::INFINITY, f64::min);
            (None, all.iter().max_by(|a, b| least(a).total_cmp(&least(b))).cloned(), None)
        };
        SizingResult { scheme: self.schemes[scheme].clone(), least, fails, fails_above, settings, tried: all }
    }
}

impl SizingSearch {
    /// Returns the smallest value known to hold.
    fn holds(&self) -> Option<usize> {
        self.known.iter().find(|(_, holds)| **holds).map(|(&value_index, _)| value_index)
    }

    /// Returns the values to run next, if the best of the other settings holds at `others`.
    fn probes(&self, top: usize, steps_per_doubling: usize, others: Option<usize>) -> Vec<usize> {
        if self.known.is_empty() {
            return vec![top];
        }
        let can_win = |value_index: usize| others.is_none_or(|others| value_index < others);
        let Some(holds) = self.holds() else {
            let halves = (0..=top).rev().step_by(steps_per_doubling).chain([0]);
            return halves
                .filter(|value_index| can_win(*value_index) && !self.known.contains_key(value_index))
                .collect();
        };
        // No value below this one can be the answer.
        let least = self.known.range(..holds).next_back().map_or(0, |(&fails, _)| fails + 1);
        if least < holds && can_win(least) { vec![least.midpoint(holds)] } else { Vec::new() }
    }
}

/// Returns the search of a scheme that holds at the smallest value, the first of several, and that value.
fn best(searches: &[SizingSearch], scheme: usize) -> Option<(&SizingSearch, usize)> {
    let of = searches.iter().filter(|it| it.scheme == scheme);
    of.filter_map(|it| it.holds().map(|holds| (it, holds))).min_by_key(|(_, holds)| *holds)
}

/// Returns the smallest value at which another setting of the same scheme is known to hold.
fn best_of_others(searches: &[SizingSearch], search: &SizingSearch) -> Option<usize> {
    let others = searches.iter().filter(|it| it.scheme == search.scheme && it.setting != search.setting);
    others.filter_map(SizingSearch::holds).min()
}

impl ObjectiveMeasurement {
    /// Returns an objective without a value in a run: the worst possible result.
    fn without_value(reason: String, run: String) -> Self {
        Self { holds: false, worst: None, margin: None, rank: f64::NEG_INFINITY, is_of_few: false, reason, run }
    }
}

/// Returns an objective in the run that is worst by it.
fn worst(objective: &Objective, runs: &[&RunResults]) -> ObjectiveMeasurement {
    let mut worst: Option<ObjectiveMeasurement> = None;
    for run in runs {
        for comparison in &objective.check.all {
            let here = compared(comparison, run);
            let is_worse = worst.as_ref().is_none_or(|worst| (here.holds, here.rank) < (worst.holds, worst.rank));
            if is_worse {
                worst = Some(here);
            }
        }
    }
    worst.unwrap_or_else(|| ObjectiveMeasurement::without_value("no run".to_owned(), String::new()))
}

#[allow(clippy::float_cmp)] // `==` is exact, as in claims.
fn compared(comparison: &Comparison, run: &RunResults) -> ObjectiveMeasurement {
    let Comparison { left, order, right } = comparison;
    let runs = Runs::named("", run);
    let check = Check { all: vec![comparison.clone()] };
    let name = run.summary.run.clone();
    let sides = value(left, &runs).and_then(|a| value(right, &runs).map(|b| (a, b)));
    match sides.and_then(|sides| results::claims::holds(&check, &runs).map(|holds| (sides, holds))) {
        Ok(((a, b), holds)) => {
            let distance = match order {
                Order::AtMost | Order::Below => b.amount - a.amount,
                Order::AtLeast | Order::Above => a.amount - b.amount,
                Order::Equal => -(a.amount - b.amount).abs(),
                Order::Unequal => (a.amount - b.amount).abs(),
            };
            let is_bound = b.amount != 0.0 && !matches!(order, Order::Equal | Order::Unequal);
            let margin = is_bound.then(|| distance / b.amount.abs());
            let rank = margin.unwrap_or(distance);
            let is_of_few = is_of_few(left, &run.summary);
            ObjectiveMeasurement { holds, worst: Some(a), margin, rank, is_of_few, reason: String::new(), run: name }
        }
        Err(error) => ObjectiveMeasurement::without_value(error.to_string(), name),
    }
}

/// Returns the default key and range: the buffer that the scenario has, as a key, and a range from 1/32 of its size to
/// four times its size.
///
/// # Errors
/// If the scenario does not specify it in bytes.
pub fn default_range(scenario: &Scenario) -> Result<(String, String), Error> {
    let resolved = first_resolved(scenario);
    let key = if resolved.pointer("/switch/buffer").is_some() { "switch.buffer" } else { "port.buffer" };
    let written = resolved.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default();
    let text = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    let bytes = scenario::argument::bytes(key, &text).map_err(|_| {
        Error::invalid_request(
            format!("`{key}` is {text}, so it is not known where to search"),
            format!("set the range with --minimize, as in --minimize {key}=50KB..2MB"),
        )
    })?;
    let kb = |bytes: u64| format!("{}KB", bytes.div_ceil(1_000).max(1));
    Ok((key.to_owned(), format!("{}..{}", kb(bytes.get() / 32), kb(bytes.get().saturating_mul(4)))))
}

/// Returns the default choices: marking thresholds if ports mark, and drain rates of phantom queues.
pub fn default_choices(scenario: &Scenario, schemes: &[String]) -> Vec<Choice> {
    let resolved = first_resolved(scenario);
    let of = |key: String, values: &[&str]| Choice { key, values: values.iter().map(|&it| it.to_owned()).collect() };
    let mut choices = Vec::new();
    match resolved.pointer("/port/ecn") {
        Some(ecn) if ecn.get("step").is_some() => choices.push(of("port.ecn.step".into(), &["15%", "30%", "60%"])),
        Some(ecn) if ecn.is_object() => {
            choices.push(of("port.ecn.min".into(), &["10%", "25%"]));
            choices.push(of("port.ecn.max".into(), &["50%", "90%"]));
        }
        _ => {}
    }
    for run in scenario.runs() {
        let drain = run.config.to_json().pointer(&format!("/schemes/{}/port/phantom/drain", run.scheme)).is_some();
        let key = format!("schemes.{}.port.phantom.drain", run.scheme);
        if drain && schemes.contains(&run.scheme) && choices.iter().all(|it| it.key != key) {
            choices.push(of(key, &["0.85", "0.9", "0.95"]));
        }
    }
    choices
}

/// Returns keys that set the property of `key` for some ports or one scheme only, and that therefore stay unchanged.
pub fn separately_set_keys(scenario: &Scenario, key: &str, schemes: &[String]) -> Vec<String> {
    let Some((table, name)) = key.split_once('.').filter(|(_, name)| !name.contains('.')) else { return Vec::new() };
    let resolved = first_resolved(scenario);
    let mut kept = Vec::new();
    let of_schemes = schemes.iter().map(|scheme| format!("schemes.{scheme}.{table}"));
    for table in std::iter::once(table.to_owned()).chain(of_schemes) {
        let found = resolved.pointer(&format!("/{}", table.replace('.', "/"))).and_then(|it| it.as_object());
        for (entry, value) in found.into_iter().flatten() {
            // A table inside is one of some ports, as in `port.inter`.
            if entry == name {
                kept.push(format!("{table}.{name}"));
            } else if value.get(name).is_some() {
                kept.push(format!("{table}.{entry}.{name}"));
            }
        }
    }
    kept.retain(|it| it != key);
    kept
}

/// Returns the scenario as resolved for its first run.
fn first_resolved(scenario: &Scenario) -> serde_json::Value {
    scenario.runs().first().map(|run| run.config.to_json()).unwrap_or_default()
}

/// Refuses a scenario with points that cannot be distinguished from trials.
///
/// # Errors
/// If it has a list of points, a sample or variants.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    let config = &scenario.config;
    let has = |key: &str| first_resolved(scenario).get(key).is_some_and(|it| !is_empty(it));
    let found = ["points", "random_points"].into_iter().find(|key| has(key));
    let found = found.or_else(|| config.variants.iter().next().map(|_| "variants"));
    match found {
        None => Ok(()),
        Some(key) => Err(Error::invalid_request(
            format!("scenario `{}` has [{key}], and a search makes points of its own", config.name.as_str()),
            "leave them out in a copy of the file; a [grid] may stay",
        )),
    }
}

fn is_empty(value: &serde_json::Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}
