//! `[random_points]`: points that are drawn, by chance or by a sequence that fills the space evenly.

use std::collections::BTreeSet;

use units::mix64;

use crate::config::{DrawWord, RandomPoints, Range, SampleValues, SpreadWord};
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::quantity::NumberRange;
use crate::tree::Node;

/// The most keys: the sequence has no more dimensions.
const MAX_KEYS: usize = sobol_burley::NUM_DIMENSIONS as usize;

/// A key's values: maps a number from 0 to 1 to one of them.
enum Between {
    Range { ends: NumberRange, spread: SpreadWord },
    Choice(Vec<Node>),
}

/// The points, each with a value for every key, in the order of the keys. Points that are alike are there once.
pub(crate) fn draw(sample: &RandomPoints) -> Result<Vec<Vec<Node>>, SpannedError> {
    let keys: Vec<Between> = sample
        .keys
        .iter()
        .map(|(_, values)| between(&values.value, values.origin))
        .collect::<Result<_, SpannedError>>()?;
    if let Some((_, extra)) = sample.keys.iter().nth(MAX_KEYS) {
        return Err(SpannedError::new(extra.origin, format!("a sample of over {MAX_KEYS} keys")));
    }
    let mut points: Vec<Vec<Node>> = Vec::new();
    let mut known: BTreeSet<Vec<String>> = BTreeSet::new();
    for point in 0..sample.points.get() {
        let value = |(dimension, key): (usize, &Between)| {
            let at = match sample.method {
                DrawWord::Sobol => f64::from(sobol_burley::sample(point, index32(dimension), sample.seed)),
                DrawWord::Random => by_chance(point, index32(dimension), sample.seed),
            };
            key.value(at)
        };
        let drawn: Vec<Node> = keys.iter().enumerate().map(value).collect();
        if known.insert(drawn.iter().map(|value| value.to_json().to_string()).collect()) {
            points.push(drawn);
        }
    }
    Ok(points)
}

/// A number of [0, 1) with 53 random bits.
fn by_chance(point: u32, dimension: u32, seed: u32) -> f64 {
    // The hash of 0 is 0, which no point is to begin with.
    let stream = mix64((u64::from(seed) << 32 | u64::from(dimension)).wrapping_add(0x9e37_79b9_7f4a_7c15));
    let bits = mix64(stream.wrapping_add(point.into()));
    #[expect(clippy::cast_precision_loss, reason = "53 bits, which are exact")]
    let number = (bits >> 11) as f64 / (1u64 << 53) as f64;
    number
}

fn between(values: &SampleValues, origin: SourceSpan) -> Result<Between, SpannedError> {
    let Range { from, to, spread } = match values {
        SampleValues::Choice(values) if values.is_empty() => {
            return Err(SpannedError::new(origin, "a key of a sample takes some values").label("takes none"));
        }
        SampleValues::Choice(values) => return Ok(Between::Choice(values.clone())),
        SampleValues::Range(range) => range,
    };
    let ends = NumberRange::new(from, to)?;
    if *spread == SpreadWord::Log && ends.low() <= 0.0 {
        return Err(SpannedError::new(from.origin, "a logarithm has no 0")
            .label("expected more than 0")
            .help("or `spread = \"linear\"`"));
    }
    Ok(Between::Range { ends, spread: *spread })
}

impl Between {
    /// The value at a number of [0, 1).
    fn value(&self, at: f64) -> Node {
        let (ends, spread) = match self {
            Self::Choice(values) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "an index among the few values of a file"
                )]
                let index = (at * values.len() as f64) as usize;
                return values[index.min(values.len() - 1)].clone();
            }
            Self::Range { ends, spread } => (ends, spread),
        };
        let (low, high) = (ends.low(), ends.high());
        // Of whole numbers, each has the same share.
        let edge = if ends.is_whole() { 0.5 } else { 0.0 };
        let value = match spread {
            SpreadWord::Linear => (low - edge) + at * (high - low + 2.0 * edge),
            // A library's `log`, not the machine's: every machine computes the same bits.
            SpreadWord::Log => {
                let [low, high] = [low - edge.min(low / 2.0), high + edge].map(libm::log);
                libm::exp(low + at * (high - low))
            }
        };
        Node::generated(ends.written(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Field;
    use crate::quantity::Number;
    use crate::tree::{Value, parse};

    fn drawn(text: &str) -> Result<Vec<Vec<Node>>, SpannedError> {
        draw(&RandomPoints::decode(&parse(text, 0)?)?)
    }

    fn column(points: &[Vec<Node>], dimension: usize) -> Vec<String> {
        points.iter().map(|point| point[dimension].written()).collect()
    }

    #[test]
    fn values_are_of_the_kind_of_their_ends_and_between_them() {
        let text = r#"
            points = 200
            keys.gain = { from = 0.001, to = 0.1, spread = "log" }
            keys.buffer = { from = "100kB", to = "10MB" }
            keys.delay = { from = "10us", to = "20ms", spread = "log" }
            keys.load = { from = "20%", to = "80%" }
            keys.every = { from = 1, to = 4 }
            keys.path = ["ecmp", "spray"]
        "#;
        for method in ["sobol", "random"] {
            let points = drawn(&format!("method = \"{method}\"\n{text}")).unwrap();
            assert_eq!(points.len(), 200);
            let of = |dimension: usize| points.iter().map(move |point| Number::of(&point[dimension]).unwrap().value());
            let range = |dimension: usize, low: f64, high: f64| of(dimension).all(|it| (low..=high).contains(&it));
            assert!(range(0, 0.001, 0.1) && range(1, 1e5, 1e7) && range(2, 1e7, 2e10), "{method}");
            assert!(range(3, 20.0, 80.0) && range(4, 1.0, 4.0), "{method}: {:?}", column(&points, 3));
            // Half of a logarithmic range is below its geometric mean.
            let below = of(0).filter(|&it| it < 0.01).count();
            assert!((85..=115).contains(&below), "{method}: {below}");
            for every in ["1", "2", "3", "4"] {
                let count = column(&points, 4).iter().filter(|it| *it == every).count();
                assert!((30..=70).contains(&count), "{method}: {count} of {every}");
            }
            assert!(
                points
                    .iter()
                    .all(|point| matches!(&point[5].value, Value::String(it) if it == "ecmp" || it == "spray"))
            );
        }
    }

    #[test]
    fn a_quasi_random_sample_fills_its_range_evenly_and_a_seed_gives_another_one() {
        let text = |seed: u32| format!("points = 64\nseed = {seed}\nkeys.a = {{ from = 0.0, to = 1.0 }}");
        let values = |seed| {
            let points = drawn(&text(seed)).unwrap();
            points.iter().map(|point| Number::of(&point[0]).unwrap().value()).collect::<Vec<_>>()
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of 64 cells")]
        let mut cells: Vec<usize> = values(1).iter().map(|value| (value * 64.0) as usize).collect();
        assert_ne!(values(1), values(2));
        cells.sort_unstable();
        // Rounding to four digits may move a value into the next cell.
        cells.dedup();
        assert!(cells.len() >= 60, "{}", cells.len());
    }

    #[test]
    fn a_narrow_range_has_values_between_its_ends() {
        let points = drawn("points = 64\nkeys.a = { from = 1.0001, to = 1.0009 }").unwrap();
        assert!(points.len() > 60, "{:?}", column(&points, 0));
    }

    #[test]
    fn equal_points_are_deduplicated() {
        assert_eq!(drawn("points = 100\nkeys.a = [1, 2]\nkeys.b = [true, false]").unwrap().len(), 4);
        // Tables and arrays are alike if their contents are.
        assert_eq!(drawn("points = 100\nkeys.a = [{ x = 1 }, { x = 2 }, [1], [2]]").unwrap().len(), 4);
    }

    #[test]
    fn invalid_ranges_are_errors() {
        for (keys, expected) in [
            ("{ from = 2, to = 1 }", "1 is not above 2"),
            (r#"{ from = "1ms", to = "1MB" }"#, "is of another kind than"),
            (r#"{ from = 0.0, to = 1.0, spread = "log" }"#, "a logarithm has no 0"),
            (r#"{ from = "low", to = "high" }"#, "expected a number or a quantity"),
            ("{ from = 1e-15, to = 1.0 }", "too small to be drawn"),
            ("[]", "a key of a sample takes some values"),
            ("3", "found the number 3"),
        ] {
            let actual = drawn(&format!("points = 2\nkeys.a = {keys}")).unwrap_err();
            let actual = format!("{actual:?}");
            assert!(actual.contains(expected), "{actual}");
        }
    }
}
