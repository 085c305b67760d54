//! Names of laws and of the state that they trace, which are known before a run is built.

use flow::OnRampHold;
use laws::catalog::build;
use laws::on_ramp::{OnRamp, OnRampParams};
use laws::{ControlLaw, PathInfo};
use units::{Bytes, Frac, Rate, Span, Time};

use crate::config::{LawName, Setting};
use crate::error::SpannedError;
use crate::run::Run;

/// Any path: which state a law traces depends on its parameters alone.
const PATH: PathInfo = PathInfo {
    base_rtt: Span::from_us(10),
    intra_rtt: Span::from_us(10),
    line_rate: Rate::from_gbps(100),
    mss: Bytes::new(4096),
};

/// Names that a run's laws have in its tables.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LawColumns {
    /// Its laws.
    pub laws: Vec<String>,
    /// The state that its laws and On-Ramp trace.
    pub traces: Vec<String>,
}

impl Run {
    /// Returns the names of the run's laws and of the state that they trace. Nothing is built. An invalid scheme, which
    /// [`Run::build`] refuses, may have none.
    pub fn law_columns(&self) -> LawColumns {
        let mut columns = LawColumns::default();
        // Invalid laws are an error of the run itself, and its other columns do not depend on them.
        let _ = self.add_laws(&mut columns);
        columns
    }

    fn add_laws(&self, columns: &mut LawColumns) -> Result<(), SpannedError> {
        let Some(scheme) = self.config.schemes.get(&self.scheme) else { return Ok(()) };
        let traces = &mut columns.traces;
        let mut trace = |name: &'static str, _: i64| traces.push(name.to_owned());
        if self.config.host.with(scheme.host.as_ref()).on_ramp.as_ref().is_some() {
            let params = OnRampParams { threshold: Span::ZERO, gain: Frac::ZERO, strawman: false };
            OnRampHold::new(OnRamp::new(params), Span::ZERO).trace(Time::ZERO, &mut trace);
        }
        for (class, law) in scheme.by_class()? {
            let kind = match &law.value {
                LawName::Known(kind) => *kind,
                // A law in another language traces nothing.
                LawName::External(name) => {
                    columns.laws.push(name.to_string());
                    continue;
                }
            };
            columns.laws.push(kind.info().name.to_owned());
            let settings = scheme.settings(class, kind)?;
            let values = settings.iter().filter_map(|(name, setting, _)| match setting {
                Setting::Value(value) => Some((name.as_str(), *value)),
                Setting::Port => None,
            });
            if let Ok(law) = build(kind, &PATH, &values.collect::<Vec<_>>()) {
                law.trace(&mut trace);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Overrides, parse};

    #[test]
    fn names_follow_from_the_scheme() {
        let text = r#"
            name = "t"
            topology = { kind = "single-switch", hosts = 4 }
            traffic = [{ kind = "incast", intra = 3, size = "16KiB" }]
            [schemes]
            dctcp = { law = "dctcp" }
            mixed = { intra = "gemini", inter = "cubic", host.on_ramp = { threshold = "auto" } }
            hpcc = { law = "hpcc" }
        "#;
        let scenario = parse(text, "t.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<_> = scenario.runs().iter().map(super::Run::law_columns).collect();
        // A law of both classes of flows is one of each.
        assert_eq!(found[0].laws, ["dctcp"; 2]);
        assert_eq!(found[0].traces, ["alpha_ppm"; 2]);
        assert_eq!(found[1].laws, ["gemini", "cubic"]);
        for name in ["owd_ns", "on_ramp_hold_ns", "factor_ppm", "w_max_bytes"] {
            assert!(found[1].traces.iter().any(|it| it == name), "{name}");
        }
        // Values that it traces only with the near loop are left out.
        assert_eq!(found[2].traces, ["in_flight_ppm", "rate_bps", "in_flight_ppm", "rate_bps"]);
    }
}
