//! Which law each flow runs, with its parameters.

use std::sync::Arc;

use fabric::{LinkClass, LinkId, Network};
use laws::catalog::{Kind, Value, build};
use laws::{Law, Path};
use sim::FlowSpec;
use units::Frac;

use crate::class::FlowClass;
use crate::config::{Config, LawName, Scheme, Setting};
use crate::decode::At;
use crate::error::{Fault, Origin};

/// The parameters that `tcp` of `[host]` switches on, of laws that have them.
const LINUX_HYSTART: [&str; 2] = ["hystart_train", "hystart_delay"];

/// The parameter of NSCC that depends on whether ports trim.
const NSCC_TARGET: &str = "target";

/// Makes each flow's law. Everything was checked when it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LawPlan {
    laws: [Planned; 2],
}

/// The law of a class of flows.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Planned {
    /// One of the catalog, and the parameters that the scenario sets.
    Known(Kind, Vec<(&'static str, Value)>),
    /// One that the calling program supplies.
    Brought(Brought),
}

/// A law that the calling program supplies (Python).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Brought {
    /// Its name.
    pub name: Arc<str>,
    /// What it is written in.
    pub language: String,
    /// The SHA-256 of its source in hexadecimal.
    pub sha256: String,
    /// All its parameters, a JSON object.
    pub params: serde_json::Value,
}

impl LawPlan {
    pub(crate) fn new(config: &Config, scheme: &Scheme, network: &Network) -> Result<Self, Fault> {
        let of_hosts = || network.links().iter().enumerate().filter(|(_, link)| link.class == LinkClass::Host);
        let rate = |index: usize| network.port(LinkId(index as u32)).config().rate;
        let common = of_hosts().next().map(|(first, _)| rate(first));
        let common = common.filter(|&common| of_hosts().all(|(index, _)| rate(index) == common));
        let [intra, inter] = scheme.by_class()?;
        let host = config.host.with(scheme.host.as_ref());
        let settings = |class: FlowClass, law: Kind| -> Result<_, Fault> {
            let mut settings = Vec::new();
            for (name, setting, at) in scheme.settings(class, law)? {
                let Some(param) = law.info().param(&name) else { continue };
                let value = match setting {
                    Setting::Value(value) => value,
                    Setting::Port => {
                        let port = config.port.settings(LinkClass::Host, scheme.port.as_ref());
                        let fault =
                            || Fault::new(at.origin, "the scheme's ports towards hosts do not mark on their queue");
                        let min =
                            port.ecn_min(common).ok_or_else(|| fault().label("there is no threshold to follow"))?;
                        let value = Value::Bytes(min);
                        if !param.allows(value) {
                            return Err(fault().label(format!("a threshold of {min} is out of range")));
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
                        settings.push((param.name, Value::Switch(true)));
                    }
                }
            }
            // NSCC's target is three quarters of a base round trip where ports trim, else a whole one.
            let trims = network.params().iter().any(|port| port.config().trim.is_some());
            if law == Kind::Nscc && !trims && settings.iter().all(|&(set, _)| set != NSCC_TARGET) {
                settings.push((NSCC_TARGET, Value::Fraction(Frac::ONE)));
            }
            Ok(settings)
        };
        let planned = |(class, law): (FlowClass, &At<LawName>)| match &law.value {
            LawName::Known(kind) => Ok(Planned::Known(*kind, settings(class, *kind)?)),
            LawName::Brought(name) => {
                let law = config.laws.brought(name, Origin::NOWHERE)?;
                let params = law.with(name, &scheme.written(class, name))?;
                let (language, sha256) = (law.language.value.clone(), law.sha256.value.clone());
                Ok(Planned::Brought(Brought { name: Arc::clone(name), language, sha256, params }))
            }
        };
        Ok(Self { laws: [planned(intra)?, planned(inter)?] })
    }

    /// The law of a class of flows, and the parameters that the scenario sets; none where that is not of the catalog.
    pub fn law(&self, class: FlowClass) -> Option<(Kind, &[(&'static str, Value)])> {
        match &self.laws[class as usize] {
            Planned::Known(kind, settings) => Some((*kind, settings)),
            Planned::Brought(_) => None,
        }
    }

    /// The name of the law of a class of flows.
    pub fn name(&self, class: FlowClass) -> &str {
        match &self.laws[class as usize] {
            Planned::Known(kind, _) => kind.info().name,
            Planned::Brought(law) => &law.name,
        }
    }

    /// The laws that the calling program must supply, each once.
    pub fn brought(&self) -> impl Iterator<Item = &Brought> {
        let other = if self.laws[0] == self.laws[1] { &[][..] } else { &self.laws[1..] };
        self.laws[..1].iter().chain(other).filter_map(|law| match law {
            Planned::Known(..) => None,
            Planned::Brought(law) => Some(law),
        })
    }

    /// The external law of a flow; none for one of the catalog.
    pub fn brought_for(&self, flow: &FlowSpec) -> Option<&Brought> {
        match self.of(flow) {
            Planned::Known(..) => None,
            Planned::Brought(law) => Some(law),
        }
    }

    fn of(&self, flow: &FlowSpec) -> &Planned {
        &self.laws[usize::from(flow.kind != FlowClass::Intra as u16)]
    }

    /// What results must say of external laws.
    pub(super) fn warnings(&self) -> Vec<String> {
        let said = |law: &Brought| {
            let Brought { name, language, sha256, .. } = law;
            format!("{name} is an external law in {language} (SHA-256 {}...), not part of Narrows", &sha256[..12])
        };
        self.brought().map(said).collect()
    }

    /// The law of a flow on `path`.
    ///
    /// # Panics
    /// If it is not of the catalog ([`LawPlan::brought_for`]): hosts without external laws refuse such runs.
    pub fn make(&self, flow: &FlowSpec, path: &Path) -> Law {
        match self.of(flow) {
            Planned::Known(kind, settings) => match build(*kind, path, settings) {
                Ok(law) => law,
                Err(error) => unreachable!("checked when the plan was made: {error}"),
            },
            Planned::Brought(law) => panic!("the external law {} is missing", law.name),
        }
    }
}
