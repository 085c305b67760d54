//! The points at which schemes are run: every combination of `[grid]`, and the variants.

use std::sync::Arc;

use crate::config::{Config, GridValues, Variant};
use crate::decode::Field;
use crate::error::{Fault, Origin};
use crate::overrides::{Path, set};
use crate::tree::{Entry, Node, Value};
use crate::write::to_toml;

/// Combinations of a grid beyond this are a mistake.
const MOST_POINTS: usize = 10_000;

/// One combination of the grid's values.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) values: Vec<(String, String)>,
    /// Only these schemes, if not all.
    pub(crate) schemes: Option<Vec<String>>,
    pub(crate) config: Arc<Config>,
}

/// A key of the grid, and the values that it takes.
#[derive(Clone)]
struct Axis {
    path: Path,
    values: Vec<Node>,
    origin: Origin,
}

impl Axis {
    fn is(&self, path: &Path) -> bool {
        self.path.full() == path.full()
    }
}

/// The keys of a table of a grid.
fn axes(grid: Option<&Node>) -> Result<Vec<Axis>, Fault> {
    let entries = grid.and_then(Node::entries).unwrap_or_default();
    let axis = |entry: &Entry| {
        let GridValues(values) = GridValues::decode(&entry.node)?;
        Ok(Axis { path: Path::parse(&entry.key, entry.key_origin)?, values, origin: entry.key_origin })
    };
    let axes: Vec<Axis> = entries.iter().map(axis).collect::<Result<_, _>>()?;
    let doubled = |index: &usize| axes[..*index].iter().any(|earlier| earlier.is(&axes[*index].path));
    match (1..axes.len()).find(doubled) {
        Some(index) => {
            let axis = &axes[index];
            Err(Fault::new(axis.origin, format!("`{}` is given twice", axis.path.full())).label("the same key"))
        }
        None => Ok(axes),
    }
}

/// Every combination of the grid, then those of each variant, up to `most` of each; one point without values if there
/// is no grid.
pub(crate) fn points(root: &Node, most: usize) -> Result<Vec<Point>, Fault> {
    let all = axes(root.get("grid"))?;
    if let Some(axis) = all.iter().find(|axis| axis.values.is_empty()) {
        return Err(Fault::new(axis.origin, "a key of a grid takes some values").label("takes none"));
    }
    let mut points = combinations(root, &all, most)?;
    for variant in root.get("variants").and_then(Node::entries).unwrap_or_default() {
        points.extend(of_variant(root, variant, &all, most)?);
    }
    Ok(points)
}

/// The combinations of a variant: with its keys set, and of each key of the grid its own values or else the first one.
fn of_variant(root: &Node, variant: &Entry, all: &[Axis], most: usize) -> Result<Vec<Point>, Fault> {
    let Variant { set: changes, schemes, .. } = Variant::decode(&variant.node)?;
    let mut laid = root.clone();
    for (key, value) in &changes.0 {
        let path = Path::parse(key, key.origin)?;
        if all.iter().any(|axis| axis.is(&path)) {
            return Err(Fault::new(key.origin, format!("[grid] sets `{}`, too", key.value))
                .label("set twice")
                .help("say in the variant's own `grid` which values the key takes in it"));
        }
        set(&mut laid, &path, value)?;
    }
    let mut here: Vec<Axis> =
        all.iter().map(|axis| Axis { values: axis.values[..1].to_vec(), ..axis.clone() }).collect();
    for own in axes(variant.node.get("grid"))? {
        let Some(axis) = here.iter_mut().find(|axis| axis.is(&own.path)) else {
            let name = own.path.full();
            let known: Vec<String> = all.iter().map(|axis| axis.path.full()).collect();
            return Err(Fault::new(own.origin, format!("`{name}` is no key of [grid]"))
                .label("unknown key")
                .suggest(&name, known.iter().map(String::as_str)));
        };
        axis.values = own.values;
    }
    here.retain(|axis| !axis.values.is_empty());
    let mut points = combinations(&laid, &here, most)?;
    for point in &mut points {
        if let Some(unknown) = schemes.iter().flatten().find(|name| point.config.schemes.get(name).is_none()) {
            let names = point.config.schemes.iter().map(|(name, _)| name);
            return Err(Fault::new(unknown.origin, format!("there is no scheme `{}`", unknown.value))
                .label("unknown scheme")
                .suggest(unknown, names));
        }
        point.schemes = schemes.as_ref().map(|names| names.iter().map(|name| name.value.clone()).collect());
        point.values.push((VARIANT.to_owned(), variant.key.clone()));
    }
    Ok(points)
}

/// What a variant's runs have in their names beside the grid's keys.
const VARIANT: &str = "variant";

/// Every combination of some keys' values, the first key changing slowest, up to `most`.
fn combinations(root: &Node, axes: &[Axis], most: usize) -> Result<Vec<Point>, Fault> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|&count| count <= MOST_POINTS) else {
        let origin = axes.first().map_or(Origin::NOWHERE, |axis| axis.origin);
        return Err(Fault::new(origin, format!("a grid of over {MOST_POINTS} combinations")));
    };
    let mut points = Vec::with_capacity(count.min(most));
    // The points on the axes, by number: those at which at most one key has another value than its first.
    let mut on_axes: Vec<(usize, Config)> = Vec::new();
    for number in 0..count.min(most) {
        let mut laid = root.clone();
        let mut values = Vec::new();
        let mut rest = count;
        // The only key that has another value than its first, and how far apart its values' points lie.
        let mut only = None;
        for (place, axis) in axes.iter().enumerate() {
            rest /= axis.values.len();
            let value = &axis.values[number / rest % axis.values.len()];
            if number > 0 && number % rest == 0 && number / rest < axis.values.len() {
                only = Some((axis, rest));
            }
            set(&mut laid, &axis.path, value)?;
            let alike = |(other, it): (usize, &Axis)| other != place && it.path.last() == axis.path.last();
            let name = if axes.iter().enumerate().any(alike) { axis.path.full() } else { axis.path.last().to_owned() };
            values.push((name, plain(value)));
        }
        let mut config = Config::decode(&laid)?;
        // Two values that say the same would be one run, counted twice.
        if let Some((axis, step)) = only {
            let is_on_axis = |at: usize| at.is_multiple_of(step) && at / step < axis.values.len();
            if let Some((other, _)) = on_axes.iter().find(|(at, other)| is_on_axis(*at) && *other == config) {
                let [earlier, later] = [other / step, number / step].map(|place| &axis.values[place]);
                let message = format!("`{}` and `{}` give the same run", plain(earlier), plain(later));
                return Err(Fault::new(later.origin, message)
                    .label("changes nothing")
                    .help("to repeat a point, give `seed` several different values"));
            }
        }
        if number == 0 || only.is_some() {
            on_axes.push((number, config.clone()));
        }
        config.fill();
        config.check()?;
        points.push(Point { values, schemes: None, config: Arc::new(config) });
    }
    Ok(points)
}

/// A value as it appears in a run's name.
fn plain(node: &Node) -> String {
    match &node.value {
        Value::String(text) => text.clone(),
        value => to_toml(&Value::table([("v", value.clone())])).trim().trim_start_matches("v = ").to_owned(),
    }
}
