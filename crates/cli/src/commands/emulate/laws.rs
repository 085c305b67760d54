//! Which congestion control of the kernel stands for a law of ours.

use emulator::check_congestion;
use laws::catalog::{Kind, Value};
use scenario::{BuiltRun, FlowClass, Run};

use crate::exit::Failure;

/// The kernel's name of a law. Those that begin with `narrows_` are our own, loaded as BPF.
pub(crate) fn kernel_name(law: Kind) -> Option<&'static str> {
    match law {
        Kind::Cubic => Some("cubic"),
        Kind::Bbr => Some("bbr"),
        Kind::NewReno => Some("reno"),
        Kind::Gemini => Some("narrows_gemini"),
        Kind::UnoCc => Some("narrows_unocc"),
        Kind::Dctcp => Some("narrows_dctcp"),
        Kind::MpRdma | Kind::Fixed => None,
    }
}

/// The kernel's congestion controls for a run, by class of flow; each is there, or was made to be.
pub(super) fn congestion(run: &Run, built: &BuiltRun) -> Result<Vec<String>, Failure> {
    let of_class = |class| provide(run, built.laws.law(class).0);
    [FlowClass::Intra, FlowClass::Inter].into_iter().map(of_class).collect()
}

/// Sees to it that the kernel has a law. A law of our own must have been loaded.
fn provide(run: &Run, law: Kind) -> Result<String, Failure> {
    let info = law.info();
    let Some(name) = kernel_name(law) else {
        let known: Vec<&str> =
            Kind::ALL.into_iter().filter(|&kind| kernel_name(kind).is_some()).map(|kind| kind.info().name).collect();
        return Err(Failure::Input(format!(
            "error: the scheme `{}` runs {}, which no kernel has\nhelp: real packets are sent under {}; `--scheme NAME` \
             chooses one of the scenario's schemes",
            run.scheme,
            info.title,
            known.join(", "),
        )));
    };
    match check_congestion(name) {
        Ok(()) => Ok(name.to_owned()),
        Err(emulator::Error::UnknownCongestion { available, .. }) => Err(Failure::Input(format!(
            "error: the scheme `{}` runs {}, and the kernel has no `{name}`; it has {available}\nhelp: {}; `--scheme \
             NAME` chooses one of the scenario's schemes",
            run.scheme,
            info.title,
            if name.starts_with("narrows_") {
                "it is a BPF program of this project that must be loaded first, which this version cannot do"
            } else {
                "load its module"
            },
        ))),
        Err(other) => Err(other.into()),
    }
}

/// Whether a law that can do without ECN is told to use it.
pub(super) fn asks_for_ecn(built: &BuiltRun) -> bool {
    settings(built).any(|(_, name, value)| name == "ecn" && value == Value::Switch(true))
}

/// What the scenario sets of laws' parameters: law, name, value.
fn settings(built: &BuiltRun) -> impl Iterator<Item = (Kind, &'static str, Value)> {
    [FlowClass::Intra, FlowClass::Inter].into_iter().flat_map(|class| {
        let (law, settings) = built.laws.law(class);
        settings.iter().map(move |&(name, value)| (law, name, value))
    })
}

/// Parameters that the kernel's own laws cannot be told.
pub(super) fn unheard(built: &BuiltRun) -> Option<String> {
    let own = |law: Kind| kernel_name(law).is_some_and(|name| !name.starts_with("narrows_"));
    let mut names: Vec<String> = settings(built)
        .filter(|&(law, name, _)| own(law) && name != "ecn")
        .map(|(law, name, _)| format!("{}.{name}", law.info().name))
        .collect();
    names.sort();
    names.dedup();
    let they = names.join(", ");
    (!names.is_empty()).then(|| format!("the kernel's own laws have their own parameters: {they} made no difference"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_of_our_own_is_named_after_it() {
        for law in Kind::ALL {
            let Some(own) = kernel_name(law).and_then(|name| name.strip_prefix("narrows_")) else { continue };
            assert_eq!(own, law.info().name);
        }
    }
}
