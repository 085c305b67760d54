//! From a scheme to the laws of its flows, with their parameters.

use std::sync::Arc;

use fabric::{LinkClass, LinkId, Network};
use laws::catalog::{LawKind, ParamValue};
use units::Frac;

use crate::class::FlowClass;
use crate::config::{Config, LawName, Scheme, Setting};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::law_plan::{ExternalLawPlan, LawPlan, PlannedLaw};

/// The parameters that `tcp` of `[host]` switches on, of laws that have them.
const LINUX_HYSTART: [&str; 2] = ["hystart_train", "hystart_delay"];

/// The parameter of NSCC that depends on whether ports trim.
const NSCC_TARGET: &str = "target";

/// Plans the laws of a scheme on a network.
pub(super) fn plan(config: &Config, scheme: &Scheme, network: &Network) -> Result<LawPlan, SpannedError> {
    let of_hosts = || network.links().iter().enumerate().filter(|(_, link)| link.class == LinkClass::Host);
    let rate = |index: usize| network.port(LinkId(index32(index))).config().rate;
    let common = of_hosts().next().map(|(first, _)| rate(first));
    let common = common.filter(|&common| of_hosts().all(|(index, _)| rate(index) == common));
    let [intra, inter] = scheme.by_class()?;
    let host = config.host.with(scheme.host.as_ref());
    let settings = |class: FlowClass, law: LawKind| -> Result<_, SpannedError> {
        let mut settings = Vec::new();
        for (name, setting, at) in scheme.settings(class, law)? {
            let Some(param) = law.info().param(&name) else { continue };
            let value = match setting {
                Setting::Value(value) => value,
                Setting::Port => {
                    let port = config.port.settings(LinkClass::Host, scheme.port.as_ref());
                    let error =
                        || SpannedError::new(at.origin, "the scheme's ports towards hosts do not mark on their queue");
                    let min = port.ecn_min(common).ok_or_else(|| error().label("there is no threshold to follow"))?;
                    let value = ParamValue::Bytes(min);
                    if !param.allows(value) {
                        return Err(error().label(format!("a threshold of {min} is out of range")));
                    }
                    value
                }
            };
            settings.push((param.name, value));
        }
        if host.tcp.as_ref().is_some_and(|tcp| tcp.hystart) {
            for name in LINUX_HYSTART {
                let Some(param) = law.info().param(name) else { continue };
                if settings.iter().all(|&(set, _)| set != param.name) {
                    settings.push((param.name, ParamValue::Switch(true)));
                }
            }
        }
        // NSCC's target is three quarters of a base round trip where ports trim, else a whole one.
        let trims = network.params().iter().any(|port| port.config().trim.is_some());
        if law == LawKind::Nscc && !trims && settings.iter().all(|&(set, _)| set != NSCC_TARGET) {
            settings.push((NSCC_TARGET, ParamValue::Fraction(Frac::ONE)));
        }
        Ok(settings)
    };
    let planned = |(class, law): (FlowClass, &Located<LawName>)| match &law.value {
        LawName::Known(kind) => Ok(PlannedLaw::Known(*kind, settings(class, *kind)?)),
        LawName::External(name) => {
            let law = config.external_laws.find_law(name, SourceSpan::NOWHERE)?;
            let params = law.with(name, &scheme.written(class, name))?;
            let (language, sha256) = (law.language.value.clone(), law.sha256.value.clone());
            Ok(PlannedLaw::External(ExternalLawPlan { name: Arc::clone(name), language, sha256, params }))
        }
    };
    Ok(LawPlan::new([planned(intra)?, planned(inter)?]))
}

/// Warnings that name the external laws of a run.
pub(super) fn warnings(plan: &LawPlan) -> Vec<String> {
    let note = |law: &ExternalLawPlan| {
        let ExternalLawPlan { name, language, sha256, .. } = law;
        format!("{name} is an external law in {language} (SHA-256 {}...), not part of Narrows", &sha256[..12])
    };
    plan.external_laws().map(note).collect()
}
