//! The points at which schemes are run: every combination of `[grid]`, `[[points]]` and `[random_points]`, and the variants.

use std::sync::Arc;

use crate::config::{Cause, Config, GridValues, RandomPoints, Variant};
use crate::decode::{Field, Located, NamedValues};
use crate::error::{SourceSpan, SpannedError};
use crate::overlay::{KeyPath, set};
use crate::run_keys::{Lost, NO_RUN, Without};
use crate::samples;
use crate::tree::{Entry, Node, Value};
use crate::write::to_toml;

/// Combinations of a grid beyond this are a mistake.
const MAX_POINTS: usize = 10_000;

/// A value for each key that changes.
#[derive(Clone, Debug)]
pub(crate) struct GridPoint {
    pub(crate) values: Vec<(String, String)>,
    /// Only these schemes, if not all.
    pub(crate) schemes: Option<Vec<String>>,
    pub(crate) config: Arc<Config>,
    /// Keys that schemes do without.
    pub(crate) lost: Vec<Lost>,
}

/// Keys that change together, and the values that they take step by step: one key of the grid, or those of all points of
/// a list.
#[derive(Clone)]
struct Axis {
    keys: Vec<KeyPath>,
    /// Each has a value for every key.
    steps: Vec<Vec<Node>>,
    origin: SourceSpan,
    /// Drawn steps are not looked at for being alike.
    drawn: bool,
}

impl Axis {
    /// Returns whether this key is the axis's only one.
    fn is(&self, path: &KeyPath) -> bool {
        matches!(&self.keys[..], [key] if key.full() == path.full())
    }

    fn has(&self, path: &KeyPath) -> bool {
        self.keys.iter().any(|key| key.full() == path.full())
    }

    /// A step in words.
    fn step(&self, number: usize) -> String {
        match &self.steps[number][..] {
            [value] => plain(value),
            values => {
                let parts = self.keys.iter().zip(values).map(|(key, value)| format!("{}={}", key.full(), plain(value)));
                parts.collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// All keys that change over the points.
fn axes(root: &Node) -> Result<Vec<Axis>, SpannedError> {
    let mut axes = of_grid(root.get("grid"))?;
    axes.extend(of_list(root.get("points"))?);
    axes.extend(of_sample(root.get("random_points"))?);
    if let Some(axis) = axes.iter().find(|axis| axis.steps.is_empty()) {
        return Err(SpannedError::new(axis.origin, "a key of a grid takes some values").label("takes none"));
    }
    for (axis, key) in axes.iter().flat_map(|axis| axis.keys.iter().map(move |key| (axis, key))) {
        let table = key.full();
        let table = table.split('.').next().unwrap_or_default();
        if NO_RUN.contains(&table) {
            return Err(SpannedError::new(axis.origin, format!("`{table}` does not change from point to point"))
                .label("expected a key of what is run"));
        }
    }
    let keys: Vec<(SourceSpan, String)> =
        axes.iter().flat_map(|axis| axis.keys.iter().map(|key| (axis.origin, key.full()))).collect();
    match (1..keys.len()).find(|&index| keys[..index].iter().any(|earlier| earlier.1 == keys[index].1)) {
        Some(index) => {
            let (origin, name) = &keys[index];
            Err(SpannedError::new(*origin, format!("`{name}` is given twice")).label("the same key"))
        }
        None => Ok(axes),
    }
}

/// Returns whether a key takes several values in turn: its value elsewhere in the file counts for nothing.
pub(crate) fn varies(root: &Node, key: &KeyPath) -> Result<bool, SpannedError> {
    Ok(axes(root)?.iter().any(|axis| axis.has(key)))
}

/// The keys of a table of a grid.
fn of_grid(grid: Option<&Node>) -> Result<Vec<Axis>, SpannedError> {
    let entries = grid.and_then(Node::entries).unwrap_or_default();
    let axis = |entry: &Entry| {
        let GridValues(values) = GridValues::decode(&entry.node)?;
        Ok(Axis {
            keys: vec![KeyPath::parse(&entry.key, entry.key_origin)?],
            steps: values.into_iter().map(|value| vec![value]).collect(),
            origin: entry.key_origin,
            drawn: false,
        })
    };
    entries.iter().map(axis).collect()
}

/// The points of a list.
fn of_list(list: Option<&Node>) -> Result<Option<Axis>, SpannedError> {
    let Some(list) = list else { return Ok(None) };
    let rows = Vec::<Located<NamedValues<Node>>>::decode(list)?;
    let Some(first) = rows.first() else { return Ok(None) };
    let names: Vec<&str> = first.iter().map(|(key, _)| key).collect();
    if names.is_empty() {
        return Err(SpannedError::new(first.origin, "a point without keys").label("expected a value for a key or more"));
    }
    let mut steps = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some((key, _)) = row.0.iter().find(|(key, _)| !names.contains(&key.value.as_str())) {
            return Err(SpannedError::new(key.origin, format!("the first point has no `{}`", key.value))
                .label("expected the same keys in every point")
                .suggest(key, names.iter().copied()));
        }
        let value = |name: &&str| {
            row.get(name).cloned().ok_or_else(|| {
                SpannedError::new(row.origin, format!("a point without `{name}`"))
                    .label("expected the same keys in every point")
            })
        };
        steps.push(names.iter().map(value).collect::<Result<_, SpannedError>>()?);
    }
    let keys = first.0.iter().map(|(key, _)| KeyPath::parse(key, key.origin)).collect::<Result<_, _>>()?;
    Ok(Some(Axis { keys, steps, origin: first.origin, drawn: false }))
}

/// The points of a sample.
fn of_sample(sample: Option<&Node>) -> Result<Option<Axis>, SpannedError> {
    let Some(node) = sample else { return Ok(None) };
    let sample = RandomPoints::decode(node)?;
    let keys: Vec<KeyPath> =
        sample.keys.0.iter().map(|(key, _)| KeyPath::parse(key, key.origin)).collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err(
            SpannedError::new(node.origin, "a sample without keys").label("expected `keys` with a range or more")
        );
    }
    if sample.points.get() as usize > MAX_POINTS {
        return Err(SpannedError::new(node.origin, format!("a sample of over {MAX_POINTS} points")));
    }
    Ok(Some(Axis { keys, steps: samples::draw(&sample)?, origin: node.origin, drawn: true }))
}

/// Every combination, then those of each variant, up to `most` of each; one point without values if nothing changes.
pub(crate) fn points(root: &Node, without: &Without, most: usize) -> Result<Vec<GridPoint>, SpannedError> {
    let all = axes(root)?;
    let mut points = combinations(&Base { root, all: &all, without }, &all, most)?;
    for variant in root.get("variants").and_then(Node::entries).unwrap_or_default() {
        points.extend(of_variant(&Base { root, all: &all, without }, variant, most)?);
    }
    Ok(points)
}

/// Inputs of points.
#[derive(Clone, Copy)]
struct Base<'a> {
    root: &'a Node,
    /// All axes of the file.
    all: &'a [Axis],
    without: &'a Without,
}

/// The combinations of a variant: with its keys set, and of each key of the grid its own values or else the first one.
fn of_variant(base: &Base<'_>, variant: &Entry, most: usize) -> Result<Vec<GridPoint>, SpannedError> {
    let Base { root, all, .. } = *base;
    let Variant { set: changes, schemes, .. } = Variant::decode(&variant.node)?;
    let mut point_root = root.clone();
    for (key, value) in &changes.0 {
        let path = KeyPath::parse(key, key.origin)?;
        if let Some(axis) = all.iter().find(|axis| axis.has(&path)) {
            let help = if axis.is(&path) {
                "set the key's values in the variant's own `grid`"
            } else {
                "leave it out: a variant has the values of the first point of a list or sample"
            };
            let error = SpannedError::new(key.origin, format!("[grid] sets `{}`, too", key.value));
            return Err(error.label("set twice").help(help));
        }
        set(&mut point_root, &path, value)?;
    }
    let mut own_axes: Vec<Axis> =
        all.iter().map(|axis| Axis { steps: axis.steps[..1].to_vec(), ..axis.clone() }).collect();
    for own in of_grid(variant.node.get("grid"))? {
        let Some(axis) = own_axes.iter_mut().find(|axis| axis.is(&own.keys[0])) else {
            let name = own.keys[0].full();
            let known: Vec<String> =
                all.iter().filter(|axis| axis.keys.len() == 1).map(|axis| axis.keys[0].full()).collect();
            return Err(SpannedError::new(own.origin, format!("`{name}` is no key of [grid]"))
                .label("not in [grid]")
                .suggest(&name, known.iter().map(String::as_str))
                .help("a variant's grid replaces values of keys in [grid]: add this key to [grid], with the value of the base"));
        };
        axis.steps = own.steps;
    }
    own_axes.retain(|axis| !axis.steps.is_empty());
    let mut points = combinations(&Base { root: &point_root, ..*base }, &own_axes, most)?;
    for point in &mut points {
        if let Some(unknown) = schemes.iter().flatten().find(|name| point.config.schemes.get(name).is_none()) {
            let names = point.config.schemes.iter().map(|(name, _)| name);
            return Err(SpannedError::new(unknown.origin, format!("there is no scheme `{}`", unknown.value))
                .label("unknown scheme")
                .suggest(unknown, names));
        }
        point.schemes = schemes.as_ref().map(|names| names.iter().map(|name| name.value.clone()).collect());
        point.values.push((VARIANT.to_owned(), variant.key.clone()));
    }
    Ok(points)
}

impl Cause {
    /// Returns the change as text: `host.ack_every = 44`, several of them with semicolons between.
    pub fn change(&self) -> String {
        let value = |node: &Node| if node.entries().is_some() { node.to_json().to_string() } else { plain(node) };
        let changes = self.set.iter().map(|(key, node)| format!("{key} = {}", value(node)));
        changes.collect::<Vec<_>>().join("; ")
    }
}

/// Key in the names of a variant's runs, in addition to the grid's keys.
const VARIANT: &str = "variant";

/// Every combination of some keys' values, the first axis changing slowest, up to `most`.
fn combinations(base: &Base<'_>, axes: &[Axis], most: usize) -> Result<Vec<GridPoint>, SpannedError> {
    let Base { root, without, .. } = *base;
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.steps.len()));
    let Some(count) = count.filter(|&count| count <= MAX_POINTS) else {
        let origin = axes.first().map_or(SourceSpan::NOWHERE, |axis| axis.origin);
        return Err(SpannedError::new(origin, format!("a grid of over {MAX_POINTS} combinations")));
    };
    let mut points = Vec::with_capacity(count.min(most));
    // The points on the axes, by number: those at which at most one axis has another step than its first.
    let mut on_axes: Vec<(usize, Config)> = Vec::new();
    for number in 0..count.min(most) {
        let mut point_root = root.clone();
        let mut values = Vec::new();
        let mut rest = count;
        // The only axis with another step than its first one, and the distance between the points of its steps.
        let mut only = None;
        for axis in axes {
            rest /= axis.steps.len();
            if number > 0 && number % rest == 0 && number / rest < axis.steps.len() {
                only = Some((axis, rest));
            }
            for (key, value) in axis.keys.iter().zip(&axis.steps[number / rest % axis.steps.len()]) {
                set(&mut point_root, key, value)?;
                values.push((key.full(), plain(value)));
            }
        }
        let lost = without.take_from(&mut point_root)?;
        let mut config = Config::decode(&point_root)?;
        // Two steps with equal values would be one run, counted twice.
        if let Some((axis, step)) = only.filter(|(axis, _)| !axis.drawn) {
            let is_on_axis = |at: usize| at.is_multiple_of(step) && at / step < axis.steps.len();
            if let Some((other, _)) = on_axes.iter().find(|(at, other)| is_on_axis(*at) && *other == config) {
                let [earlier, later] = [other / step, number / step].map(|index| axis.step(index));
                let origin = axis.steps[number / step][0].origin;
                return Err(SpannedError::new(origin, format!("`{earlier}` and `{later}` give the same run"))
                    .label("changes nothing")
                    .help("to repeat a point, give `seed` several different values"));
            }
        }
        if number == 0 || only.is_some_and(|(axis, _)| !axis.drawn) {
            on_axes.push((number, config.clone()));
        }
        config.fill();
        config.check()?;
        points.push(GridPoint { values, schemes: None, config: Arc::new(config), lost });
    }
    Ok(points)
}

/// A value as it appears in a run's name.
fn plain(node: &Node) -> String {
    match &node.value {
        Value::String(text) => text.clone(),
        // TOML would write tables of their own: `[[v]]`.
        Value::Array(items) if items.iter().any(|item| item.entries().is_some()) => node.to_json().to_string(),
        value => to_toml(&Value::table([("v", value.clone())])).trim().trim_start_matches("v = ").to_owned(),
    }
}
