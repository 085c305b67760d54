//! The law by which an end sends.

use std::sync::Arc;

use laws::catalog::{self, LawKind, ParamValue};
use proto::settings::LawMaker;
use scenario::argument;
use serde_json::{Map, json};
use units::{Bytes, Frac};

use crate::args::EndpointArgs;
use crate::exit::CommandFailure;
use crate::transport_law::{accepted, needs};

/// The law that an end sends by if none is named: random losses do not slow it down.
const DEFAULT_LAW: LawKind = LawKind::Bbr;
/// Its parameters. A first window of about 90 packets carries a short message in one round trip; quinn's BBR starts with 200. A
/// loss does not hold the window. Both were chosen by the times of messages under random losses (`docs/src/perf.md`). A probe
/// of the RTT keeps half of the pipe full, as later versions of BBR do.
const DEFAULT_LAW_PARAMS: [(&str, ParamValue); 3] = [
    ("initial_window", ParamValue::Bytes(Bytes::new(128_000))),
    ("recovery", ParamValue::Switch(false)),
    ("probe_rtt_window", ParamValue::Fraction(Frac::HALF)),
];

/// A law and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct SelectedLaw {
    kind: LawKind,
    params: Vec<(String, ParamValue)>,
}

impl SelectedLaw {
    pub(crate) fn new(args: &EndpointArgs) -> Result<Self, CommandFailure> {
        let Some(name) = args.law.as_deref() else {
            let params = DEFAULT_LAW_PARAMS.map(|(name, value)| (name.to_owned(), value)).to_vec();
            return Ok(Self { kind: DEFAULT_LAW, params });
        };
        let kind = LawKind::from_name(name)
            .ok_or_else(|| CommandFailure::unknown(&format!("--law: no law `{name}`"), name, &accepted()))?;
        if let Some(needs) = needs(kind) {
            return Err(CommandFailure::Input(format!(
                "error: --law: {} needs {needs}, which the transport does not have; there are {}",
                kind.info().title,
                accepted().join(", ")
            )));
        }
        let params = args.params.iter().map(|text| argument::law_param("--param", kind, text));
        let params = params.collect::<Result<Vec<_>, _>>()?;
        let pairs = params.iter().map(|(name, value)| (name.as_str(), *value));
        catalog::check_pairs(kind, pairs).map_err(|error| CommandFailure::Input(format!("error: --param: {error}")))?;
        Ok(Self { kind, params })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.kind.info().name
    }

    /// Makes the law of each path.
    pub(crate) fn maker(&self) -> LawMaker {
        let Self { kind, params } = self.clone();
        Arc::new(move |path| {
            let settings: Vec<(&str, ParamValue)> =
                params.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            match catalog::build(kind, path, &settings) {
                Ok(law) => law,
                Err(error) => unreachable!("checked when the law was chosen: {error}"),
            }
        })
    }

    /// The parameters that were given.
    pub(crate) fn params(&self) -> serde_json::Value {
        let params: Map<_, _> =
            self.params.iter().map(|(name, value)| (name.clone(), json!(value.to_string()))).collect();
        params.into()
    }
}
