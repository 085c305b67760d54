//! Which law each flow runs, with its parameters.

use fabric::{LinkClass, LinkId, Network};
use laws::catalog::{Kind, Value, build};
use laws::{Law, Path};
use sim::FlowSpec;

use crate::class::FlowClass;
use crate::config::{Config, Scheme, Setting};
use crate::error::Fault;

/// The parameters that `tcp` of `[host]` switches on, of laws that have them.
const LINUX_HYSTART: [&str; 2] = ["hystart_train", "hystart_delay"];

/// Makes each flow's law. Everything was checked when it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LawPlan {
    laws: [(Kind, Vec<(&'static str, Value)>); 2],
}

impl LawPlan {
    pub(crate) fn new(config: &Config, scheme: &Scheme, network: &Network) -> Result<Self, Fault> {
        let of_hosts = || network.links().iter().enumerate().filter(|(_, link)| link.class == LinkClass::Host);
        let rate = |index: usize| network.port(LinkId(index as u32)).config().rate;
        let common = of_hosts().next().map(|(first, _)| rate(first));
        let common = common.filter(|&common| of_hosts().all(|(index, _)| rate(index) == common));
        let (intra, inter) = scheme.laws()?;
        let host = config.host.with(scheme.host.as_ref());
        let settings = |law: Kind| -> Result<_, Fault> {
            let mut settings = Vec::new();
            for (name, setting, at) in scheme.settings(law)? {
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
            Ok(settings)
        };
        Ok(Self { laws: [(intra, settings(intra)?), (inter, settings(inter)?)] })
    }

    /// The law of a class of flows, and the parameters that the scenario sets.
    pub fn law(&self, class: FlowClass) -> (Kind, &[(&'static str, Value)]) {
        let (kind, settings) = &self.laws[class as usize];
        (*kind, settings)
    }

    /// The law of a flow on `path`.
    pub fn make(&self, flow: &FlowSpec, path: &Path) -> Law {
        let (kind, settings) = &self.laws[usize::from(flow.kind != FlowClass::Intra as u16)];
        match build(*kind, path, settings) {
            Ok(law) => law,
            Err(error) => unreachable!("checked when the plan was made: {error}"),
        }
    }
}
