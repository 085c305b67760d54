//! Distributions of flow sizes: points `bytes cumulative_percent`, linear between them.

use crate::error::{SourceSpan, Sources, SpannedError, listed, nearest};
use crate::quantity::Decimal;
use crate::{Error, decode::Located, inputs::Inputs, kind::FileKind};
use files::BYTE_ORDER_MARK;

/// The distributions included in this crate; `data/flow-sizes/README.md` has their sources.
const SHIPPED: [(&str, &str); 5] = [
    ("websearch", include_str!("../data/flow-sizes/websearch.txt")),
    ("facebook-hadoop", include_str!("../data/flow-sizes/facebook-hadoop.txt")),
    ("google-rpc", include_str!("../data/flow-sizes/google-rpc.txt")),
    ("alibaba-storage", include_str!("../data/flow-sizes/alibaba-storage.txt")),
    ("alibaba-wan", include_str!("../data/flow-sizes/alibaba-wan.txt")),
];

pub(crate) const DISTRIBUTION: FileKind = FileKind {
    name: "a distribution of flow sizes",
    expected: "expected lines of `bytes cumulative_percent`, the first at 0, the last at 100",
    matches: |file| file.first().starts_with(|letter: char| letter.is_ascii_digit()),
};

/// 100 %, in the unit of [`Distribution`]'s cumulative shares.
const FULL: u64 = 1_000_000_000_000;
/// The largest size: 16 TiB.
const LARGEST: u64 = 1 << 44;

/// A distribution of flow sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    /// Size in bytes and cumulative share in units of 10^-12; the first share is 0, the last is 10^12.
    points: Vec<(u64, u64)>,
}

impl Distribution {
    /// The names of the included distributions.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Reads one from text; `name` is the file that errors name.
    ///
    /// # Errors
    /// When a line is not two numbers, sizes or shares fall, the first share is not 0 % or the last not 100 %.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let mut sources = Sources::default();
        let source = sources.add(name, text);
        Self::read(text, source).map_err(|error| sources.explain(error))
    }

    /// The shipped one of that name, or else the one in that file.
    pub(crate) fn named(name: &Located<String>, inputs: &Inputs) -> Result<Self, SpannedError> {
        if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name.value) {
            return Self::read(text, None);
        }
        if !name.contains(['.', '/']) && !inputs.is_there(name) {
            let message =
                format!("`{}` is neither a distribution of flow sizes nor a file in the scenario's directory", **name);
            let known: Vec<&str> = Self::shipped().collect();
            let error = SpannedError::new(name.origin, message).label("not found");
            let near = nearest(name, &known).map(|near| format!("did you mean `{near}`?"));
            let error = near.map_or(error.clone(), |near| error.help(near));
            return Err(error.help(format!("distributions that come with the program: {}", listed(&known))));
        }
        let (source, text) = inputs.read(name, DISTRIBUTION)?;
        Self::read(&text, source)
    }

    fn read(text: &str, source: impl Into<Option<u32>>) -> Result<Self, SpannedError> {
        let mut points: Vec<(u64, u64)> = Vec::new();
        let source = source.into();
        let mut last = SourceSpan::new(source, 0..0);
        let mut start = 0;
        let blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
        for line in text.split_inclusive('\n') {
            let content = line.split('#').next().unwrap_or_default().trim_matches(blank);
            let at = start + (line.len() - line.trim_start_matches(blank).len());
            start += line.len();
            if content.is_empty() {
                continue;
            }
            last = SourceSpan::new(source, at..at + content.len());
            let mut fields = content.split_whitespace();
            let (Some(size), Some(share), None) = (fields.next(), fields.next(), fields.next()) else {
                return Err(bad(last, "a point is two numbers: bytes and cumulative percent"));
            };
            let size = size.parse().ok().filter(|&size| size <= LARGEST);
            let size = size.ok_or_else(|| bad(last, "the size is not a whole number of bytes up to 16 TiB"))?;
            let share = Decimal::parse(share).and_then(Decimal::percent).filter(|share| !share.exceeds_one());
            let share = share.ok_or_else(|| bad(last, "the share is not a number from 0 to 100"))?.of(FULL);
            match points.last() {
                None if share != 0 => return Err(bad(last, "the first point is not at 0 %")),
                Some(&(before, _)) if size <= before => return Err(bad(last, "sizes do not increase here")),
                Some(&(_, before)) if share < before => return Err(bad(last, "shares fall here")),
                _ => points.push((size, share)),
            }
        }
        match points.last() {
            Some(&(_, FULL)) => Ok(Self { points }),
            Some(&(_, share)) => {
                let percent = Decimal::new(share / 100, 8);
                Err(bad(last, &format!("the distribution does not reach 100 %: it ends at {percent} %")))
            }
            None => Err(bad(last, "the distribution has no points")),
        }
    }

    /// The size at 64 random bits, at least 1 byte.
    pub(crate) fn sample(&self, bits: u64) -> u64 {
        let share = u64::try_from((u128::from(bits) * u128::from(FULL)) >> 64).unwrap_or(FULL);
        // The first point above the share, and the one before it: the first point's share is 0.
        let upper = self.points.partition_point(|&(_, known)| known <= share).clamp(1, self.points.len() - 1);
        let ((low, from), (high, to)) = (self.points[upper - 1], self.points[upper]);
        let part = u128::from(high - low) * u128::from(share - from) / u128::from((to - from).max(1));
        (low + u64::try_from(part).unwrap_or(high - low)).max(1)
    }

    /// The mean size in units of 2^-16 bytes.
    pub(crate) fn mean_bits(&self) -> u64 {
        let area = |pair: &[(u64, u64)]| u128::from(pair[1].1 - pair[0].1) * u128::from(pair[0].0 + pair[1].0);
        let sum: u128 = self.points.windows(2).map(area).sum();
        u64::try_from(sum * (1 << 15) / u128::from(FULL)).unwrap_or(u64::MAX)
    }
}

fn bad(origin: SourceSpan, message: &str) -> SpannedError {
    SpannedError::new(origin, message).help("each line is `bytes cumulative_percent`, the first at 0, the last at 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_ones_have_their_published_means() {
        let means = [
            ("websearch", 1_710_000),
            ("facebook-hadoop", 120_000),
            ("google-rpc", 2_900),
            ("alibaba-storage", 41_000),
            ("alibaba-wan", 64_000_000),
        ];
        for (name, published) in means {
            let text = SHIPPED.iter().find(|(known, _)| *known == name).unwrap().1;
            let mean = Distribution::parse(text, name).unwrap().mean_bits() >> 16;
            assert!(mean.abs_diff(published) * 25 < published, "{name}: {mean}");
        }
    }

    #[test]
    fn samples_follow_the_curve() {
        let distribution = Distribution::parse("0 0\n100 50\n1000 100\n", "x").unwrap();
        let sizes: Vec<u64> = (0..10_000u64).map(|i| distribution.sample(units::mix64(i))).collect();
        let small = sizes.iter().filter(|&&size| size < 100).count();
        assert!((4_800..5_200).contains(&small), "{small}");
        let mean = sizes.iter().sum::<u64>() / 10_000;
        assert!((290..310).contains(&mean) && distribution.mean_bits() >> 16 == 300, "{mean}");
        assert_eq!(distribution.sample(0), 1);
        assert!(distribution.sample(u64::MAX) <= 1000);
    }

    #[test]
    fn broken_files_name_their_line() {
        let message = |text| Distribution::parse(text, "d.txt").unwrap_err().to_string();
        let short = message("0 0\n10 50\n20 99.5\n");
        assert!(short.contains("does not reach 100 %: it ends at 99.5 %") && short.contains("d.txt:3:1"), "{short}");
        assert!(message("0 0\n10 x\n").contains("d.txt:2:1"));
        assert!(message("0 0\n10 50\n5 100\n").contains("sizes do not increase"));
        assert!(message("0 0\n10 50\n20 40\n30 100").contains("shares fall"));
        assert!(message("5 10\n10 100\n").contains("not at 0 %"));
        assert!(message("# nothing\n").contains("no points"));
        assert!(message("1 2 3\n").contains("two numbers"));
        assert!(message("\u{feff}0 0\n10 x\n").contains("d.txt:2:1"));
        assert!(Distribution::parse("\u{feff}0 0\n10 100\n", "d.txt").is_ok());
    }
}
