//! Conditions that the scenario and the scheme set for a class of flows, and that comparisons of schemes depend on: the
//! bandwidth-delay product of its paths, the initial window, and the most loaded links.

use serde::{Deserialize, Serialize};
use units::{Bytes, Rate};

use crate::ordered::Ordered;
use crate::quantity::DimensionedValue;

/// Conditions of a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// By class of flows; empty in results of earlier versions.
    pub classes: Ordered<ClassConditions>,
    /// The most loaded links by random arrivals: of each class of links, and in each direction between datacenters.
    pub most_loaded: Vec<LinkLoad>,
}

/// Conditions of a class of flows, over all pairs of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ClassConditions {
    /// Bandwidth-delay product.
    pub bdp_bytes: Range,
    /// Payload that the law permits before the first acknowledgement; null without a limit, where credits schedule packets, and
    /// of external laws.
    #[serde(deserialize_with = "Option::deserialize")]
    pub initial_window_bytes: Option<Range>,
    /// Pacing rate before the first acknowledgement; null without pacing.
    #[serde(deserialize_with = "Option::deserialize")]
    pub initial_rate_bps: Option<Range>,
}

/// The smallest and the largest value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    /// Both ends, in either order.
    pub fn of(one: u64, other: u64) -> Self {
        Self { min: one.min(other), max: one.max(other) }
    }

    fn join(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn shown(self, value: fn(f64) -> DimensionedValue) -> String {
        let [min, max] = [self.min, self.max].map(|end| value(end as f64).to_string());
        if min == max { min } else { format!("{min} to {max}") }
    }
}

/// Offered load of a link.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LinkLoad {
    /// Class of the link.
    pub class: String,
    /// Name of the link: `from>to`.
    pub link: String,
    /// Offered payload over the link's rate.
    pub load: f64,
}

/// Windows of at least this many bytes count as unlimited.
pub const NO_LIMIT: u64 = 1 << 40;

/// A permit before the first acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beginning {
    /// Bandwidth-delay product of the path.
    pub bdp: Bytes,
    /// Window; [`Bytes::MAX`] without one.
    pub window: Bytes,
    /// Pacing rate; [`Rate::MAX`] without one.
    pub pacing: Rate,
}

impl ClassConditions {
    /// Conditions of a class with these extremes.
    pub fn of(min: Beginning, max: Beginning) -> Self {
        let both = [min, max];
        let window = both.iter().all(|it| it.window.get() < NO_LIMIT);
        let pacing = both.iter().all(|it| it.pacing != Rate::MAX);
        Self {
            bdp_bytes: Range::of(min.bdp.get(), max.bdp.get()),
            initial_window_bytes: window.then(|| Range::of(min.window.get(), max.window.get())),
            initial_rate_bps: pacing.then(|| Range::of(min.pacing.bps(), max.pacing.bps())),
        }
    }

    /// Conditions of both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let both = |one: Option<Range>, other: Option<Range>| Some(one?.join(other?));
        Self {
            bdp_bytes: self.bdp_bytes.join(other.bdp_bytes),
            initial_window_bytes: both(self.initial_window_bytes, other.initial_window_bytes),
            initial_rate_bps: both(self.initial_rate_bps, other.initial_rate_bps),
        }
    }

    /// Returns true if flows begin with a window below this share of the largest bandwidth-delay product.
    pub fn begins_below(&self, share: f64) -> bool {
        self.initial_window_bytes.is_some_and(|window| (window.max as f64) < share * self.bdp_bytes.max as f64)
    }

    /// The bandwidth-delay product in words.
    pub fn bdp(&self) -> String {
        self.bdp_bytes.shown(DimensionedValue::bytes)
    }

    /// The initial window in words, with its share of the bandwidth-delay product.
    pub fn initial_window(&self) -> String {
        let rate = self.initial_rate_bps.map(|rate| rate.shown(DimensionedValue::bps));
        match (self.initial_window_bytes, rate) {
            (Some(window), rate) => {
                let share = |window: u64, bdp: u64| window as f64 / bdp.max(1) as f64;
                let max_share = share(window.max, self.bdp_bytes.max);
                let pacing = rate.map_or_else(String::new, |rate| format!(" at {rate}"));
                format!(
                    "{}{pacing} ({} BDP)",
                    window.shown(DimensionedValue::bytes),
                    DimensionedValue::number(max_share)
                )
            }
            (None, Some(rate)) => format!("no window, {rate}"),
            (None, None) => "by credits, or of an external law".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(bdp: u64, window: u64) -> Beginning {
        Beginning { bdp: Bytes::new(bdp), window: Bytes::new(window), pacing: Rate::MAX }
    }

    #[test]
    fn windows_are_shown_as_bdp_fractions() {
        let ten = ClassConditions::of(beginning(100_000, 15_000), beginning(50_000_000, 15_000));
        assert_eq!(ten.initial_window(), "15 KB (0.0003 BDP)");
        let one = ClassConditions::of(beginning(100_000, 100_000), beginning(200_000, 200_000));
        assert_eq!(one.initial_window(), "100 KB to 200 KB (1 BDP)");
        let paced = Beginning { pacing: Rate::from_gbps(10), ..beginning(1_000, 1 << 40) };
        assert_eq!(ClassConditions::of(paced, paced).initial_window(), "no window, 10 Gbps");
    }
}
