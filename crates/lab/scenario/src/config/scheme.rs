//! `[schemes.*]`: the laws of a scheme, their parameters, and the scheme's changes to ports and hosts.

use laws::catalog::{LawKind, ParamValue as LawValue, Quantity, SettingError, check, check_pairs};
use serde_json::{Value as Json, json};
use units::{Bytes, Rate, Span};

use crate::class::FlowClass;
use crate::decode::{Changes, Field, Located, NamedValues, table};
use crate::error::{SourceSpan, SpannedError};
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

use super::{
    ExternalLaw, HostOverrides, LawName, Lscc, OffOr, PortOverrides, PortReports, SwingTable, SwitchOverrides,
};

/// A law's parameter as the file sets it.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    /// To this value.
    Value(LawValue),
    /// To the queue at which the scheme's ports towards hosts begin to mark.
    Port,
}

/// Table of laws' parameters in lists of keys. Its keys are those of the law, not of the schema.
pub(crate) const LAW_PARAMS: &str = "LawParams";

/// Parameters of one law, with the text that each was read from.
#[derive(Clone, PartialEq, Debug)]
pub struct LawParams(NamedValues<Node>);

impl Field for LawParams {
    const EXPECTS: &'static str = "a table of a law's parameters";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        NamedValues::decode(node).map(Self)
    }
    fn encode(&self) -> Value {
        self.0.encode()
    }
    fn schema() -> Json {
        json!({ "type": "object" })
    }
    fn changed(&self, changes: &mut Changes) {
        for (name, node) in self.0.iter() {
            changes.key(LAW_PARAMS, name, node, None);
        }
    }
}

table! {
    /// A scheme: a law for all flows, or one for those inside a datacenter and one for those between two.
    Scheme {
        /// Its name in tables and plots; by default the law's.
        label: Option<String> = None;
        /// The law of all flows. Either this or both `intra` and `inter`.
        law: Option<Located<LawName>> = None;
        /// The law of flows inside a datacenter.
        intra: Option<Located<LawName>> = None;
        /// The law of flows between datacenters.
        inter: Option<Located<LawName>> = None;
        /// Changes to `[port]`.
        port: Option<PortOverrides> = None;
        /// Changes to `[host]`.
        host: Option<HostOverrides> = None;
        /// Changes to `[switch]`; `off`: every port has a queue of its own.
        switch: Option<OffOr<SwitchOverrides>> = None;
        /// LSCC's controllers at long-haul links, around any law that receives notifications or marks.
        lscc: Option<Lscc> = None;
        /// SWING's relays in long-haul links, under any law.
        swing: Located<OffOr<SwingTable>> = Located::default_of(OffOr::Off);
        /// Parameters by law: `[schemes.uno.params.unocc]`. `narrows laws` lists them.
        params: Located<NamedValues<LawParams>> = Located::default_of(NamedValues::default());
        /// Parameters of flows inside a datacenter alone, over those of their law in `params`.
        intra_params: Option<LawParams> = None;
        /// Parameters of flows between datacenters alone, over those of their law in `params`.
        inter_params: Option<LawParams> = None;
    }
}

impl Scheme {
    /// The laws of flows inside a datacenter and between two.
    pub(crate) fn laws(&self) -> Result<(&LawName, &LawName), SpannedError> {
        let [(_, intra), (_, inter)] = self.by_class()?;
        Ok((&intra.value, &inter.value))
    }

    /// Returns the law of each class of flows, with its place in the file.
    pub(crate) fn by_class(&self) -> Result<[(FlowClass, &Located<LawName>); 2], SpannedError> {
        match (&self.law, &self.intra, &self.inter) {
            (Some(law), None, None) => Ok([(FlowClass::Intra, law), (FlowClass::Inter, law)]),
            (None, Some(intra), Some(inter)) => Ok([(FlowClass::Intra, intra), (FlowClass::Inter, inter)]),
            (Some(_), Some(other), _) | (Some(_), _, Some(other)) => {
                Err(SpannedError::new(other.origin, "a scheme has either `law` or `intra` and `inter`")
                    .label("and also `law`"))
            }
            (None, Some(one), None) | (None, None, Some(one)) => {
                Err(SpannedError::new(one.origin, "`intra` and `inter` come together")
                    .label("the other one is missing"))
            }
            (None, None, None) => Err(SpannedError::new(SourceSpan::NOWHERE, "a scheme has no law")
                .help("give it law = \"unocc\", or intra = \"mprdma\" and inter = \"bbr\"")),
        }
    }

    /// Its name in tables and plots.
    pub fn label(&self) -> String {
        if let Some(label) = &self.label {
            return label.clone();
        }
        match self.laws() {
            Ok((intra, inter)) if intra == inter => intra.title().to_owned(),
            Ok((intra, inter)) => format!("{} + {}", intra.title(), inter.title()),
            Err(_) => String::new(),
        }
    }

    /// Returns the parameters of a class's law that the file sets, as written there.
    pub(crate) fn written(&self, class: FlowClass, law: &str) -> NamedValues<Node> {
        let own = match class {
            FlowClass::Intra => &self.intra_params,
            FlowClass::Inter => &self.inter_params,
        };
        let mut params = self.params.get(law).map(|params| params.0.clone()).unwrap_or_default();
        for (name, value) in own.iter().flat_map(|own| &own.0.0) {
            params.0.retain(|(other, _)| other.value != name.value);
            params.0.push((name.clone(), value.clone()));
        }
        params
    }

    /// The key of a scheme that sets a parameter of a class's law.
    pub(crate) fn key_of(&self, class: FlowClass, law: &str, name: &str) -> String {
        let (own, table) = match class {
            FlowClass::Intra => (&self.intra_params, "intra_params"),
            FlowClass::Inter => (&self.inter_params, "inter_params"),
        };
        let is_own = own.iter().flat_map(|own| &own.0.0).any(|(other, _)| other.value == name);
        if is_own { format!("{table}.{name}") } else { format!("params.{law}.{name}") }
    }

    /// The parameters that the file sets of a class's law.
    pub(crate) fn settings(
        &self,
        class: FlowClass,
        law: LawKind,
    ) -> Result<Vec<(String, Setting, Located<()>)>, SpannedError> {
        let params = self.written(class, law.info().name);
        let read = |(name, node): &(Located<String>, Node)| {
            let setting = law_setting(law, name, node)?;
            Ok((name.value.clone(), setting, Located { value: (), origin: node.origin }))
        };
        let settings = params.0.iter().map(read).collect::<Result<Vec<_>, SpannedError>>()?;
        let values = settings.iter().filter_map(|(name, setting, _)| match setting {
            Setting::Value(value) => Some((name.as_str(), *value)),
            Setting::Port => None,
        });
        if let Err(error @ SettingError::OutOfOrder { low: (low, _), high: (high, _), .. }) = check_pairs(law, values) {
            // One of the two at least is the file's, the defaults being in order; of two, the first is named.
            let setting = settings.iter().find(|(name, ..)| [low.name, high.name].contains(&name.as_str()));
            let at = setting.map_or(SourceSpan::NOWHERE, |(.., at)| at.origin);
            return Err(
                SpannedError::new(at, error.to_string()).label(format!("`{}` is over `{}`", low.name, high.name))
            );
        }
        Ok(settings)
    }

    /// Refuses laws and parameters that do not exist. `external_laws` are the laws that the catalog does not have.
    pub(crate) fn check(&self, external_laws: &NamedValues<ExternalLaw>) -> Result<(), SpannedError> {
        let (intra, inter) = self.laws()?;
        let own = if intra == inter { vec![intra] } else { vec![intra, inter] };
        for (name, _) in &self.params.value.0 {
            if !own.iter().any(|law| law.name() == name.value) {
                let names = own.iter().map(|law| law.name());
                return Err(SpannedError::new(name.origin, format!("this scheme does not run a law `{}`", name.value))
                    .label("not a law of this scheme")
                    .suggest(name, names));
            }
        }
        if let Some(port) = &self.port {
            port.check()?;
        }
        if let Some(lscc) = &self.lscc {
            lscc.check()?;
            if self.swing.as_ref().is_some() {
                return Err(SpannedError::new(lscc.period.origin, "a scheme has either `lscc` or `swing`")
                    .label("and also `swing`"));
            }
        }
        let silent = !self.lscc.as_ref().is_some_and(|lscc| lscc.telemetry);
        let mut has_near_loop = false;
        for (class, law) in self.by_class()? {
            let kind = match &law.value {
                LawName::Known(kind) => *kind,
                LawName::External(name) => {
                    external_laws.find_law(name, law.origin)?.with(name, &self.written(class, name))?;
                    continue;
                }
            };
            let settings = self.settings(class, kind)?;
            let near = settings
                .iter()
                .find(|(name, setting, _)| name == "near_loop" && *setting == Setting::Value(LawValue::Switch(true)));
            has_near_loop |= near.is_some();
            if let (Some((_, _, at)), true) = (near, silent) {
                return Err(SpannedError::new(
                    at.origin,
                    "`near_loop` uses LSCC's near end, and nothing here reports it",
                )
                .label("needs `lscc` with telemetry = true"));
            }
        }
        if let (Some(lscc), false, false) = (&self.lscc, silent, has_near_loop) {
            return Err(SpannedError::new(
                lscc.period.origin,
                "LSCC's near end sends reports of ports, and no law here reads them",
            )
            .label("has telemetry = true")
            .help("give it law = \"hpcc\" and params.hpcc.near_loop = true (HPCC*), or telemetry = false"));
        }
        Ok(())
    }

    /// Returns whether packets carry reports of ports: a law or LSCC's HPCC* reads them.
    pub(crate) fn reads_reports(&self) -> bool {
        let reads = |law: &LawName| law.info().is_some_and(|info| info.reads_reports);
        let laws = self.laws().is_ok_and(|(intra, inter)| reads(intra) || reads(inter));
        laws || self.lscc.as_ref().is_some_and(|lscc| lscc.telemetry)
    }

    /// Returns whether packets carry reports of ports.
    pub(crate) fn reports(&self) -> PortReports {
        if self.reads_reports() { PortReports::Carried } else { PortReports::Absent }
    }
}

/// Reads one parameter of a law.
pub(crate) fn law_setting(law: LawKind, name: &Located<String>, node: &Node) -> Result<Setting, SpannedError> {
    let info = law.info();
    let Some(param) = info.param(name) else {
        return Err(SpannedError::new(name.origin, format!("{} has no parameter `{}`", info.title, name.value))
            .label("unknown parameter")
            .suggest(name, info.params.iter().map(|param| param.name)));
    };
    if param.name == "k" && param.quantity == Quantity::Bytes && node.as_str() == Some("port") {
        return Ok(Setting::Port);
    }
    let range = if param.quantity == Quantity::Switch {
        bool::EXPECTS.to_owned()
    } else {
        format!("{} to {}", param.lowest, param.highest)
    };
    let described = |within: &str| format!("{}'s `{}`{within}: {}", info.title, param.name, param.doc);
    let outside = |message: String| {
        SpannedError::new(node.origin, message).label(format!("expected {range}")).help(described(""))
    };
    if let (Quantity::Count, &Value::Integer(number @ ..0)) = (param.quantity, &node.value) {
        return Err(outside(format!("{}'s `{}` is {number}; it must be {range}", info.title, param.name)));
    }
    let value = match param.quantity {
        Quantity::Fraction => Decimal::decode(node).map(|number| LawValue::Fraction(number.frac())),
        Quantity::Span => Span::decode(node).map(LawValue::Span),
        Quantity::Bytes => Bytes::decode(node).map(LawValue::Bytes),
        Quantity::Rate => Rate::decode(node).map(LawValue::Rate),
        Quantity::Count => u64::decode(node).map(LawValue::Count),
        Quantity::Switch => bool::decode(node).map(LawValue::Switch),
    };
    let value = value.map_err(|error| error.help(described(&format!(", {range}"))))?;
    check(info, param.name, value).map(|()| Setting::Value(value)).map_err(|error| outside(error.to_string()))
}
