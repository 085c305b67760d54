//! The kernel's congestion control for each of our laws: one of its own, or the law itself as BPF.

use emulator::{LawStateReader, check_congestion};
use laws::catalog::{LawKind, ParamValue};
use scenario::{BuiltRun, FlowClass, Run};

use crate::exit::CommandFailure;

/// Returns whether a law can run as BPF.
fn is_bpf_law(law: LawKind) -> bool {
    law.info().linux.is_none() && kernel::KernelLaw::of(law).is_some()
}

/// The kernel's congestion controls for a run; unloaded when dropped.
pub(super) struct LoadedLaws {
    /// By class of flow.
    pub(super) names: Vec<String>,
    /// Decoder of the state of laws of ours.
    pub(super) law_state: Option<Box<dyn LawStateReader>>,
    #[cfg(feature = "bpf")]
    loaded: Vec<kernel::Loaded>,
}

impl LoadedLaws {
    /// Returns names without anything of the kernel: a transport in user space makes the laws itself.
    pub(super) fn for_user_space(built: &BuiltRun) -> Self {
        Self {
            names: [FlowClass::Intra, FlowClass::Inter].map(|class| built.laws.name(class).to_owned()).to_vec(),
            law_state: None,
            #[cfg(feature = "bpf")]
            loaded: Vec::new(),
        }
    }

    /// Returns warnings about the laws in the kernel.
    #[cfg(feature = "bpf")]
    pub(super) fn warnings(&self) -> Vec<String> {
        let refused = |law: &kernel::Loaded| match law.refused() {
            Ok(0) => None,
            Ok(sockets) => {
                Some(format!("{}: {}", law.tcp_name(), crate::commands::kernel::missing_state_warning(sockets)))
            }
            Err(error) => Some(error.to_string()),
        };
        self.loaded.iter().filter_map(refused).collect()
    }

    /// Returns no warnings: the kernel's own laws have none.
    #[cfg(not(feature = "bpf"))]
    #[expect(clippy::unused_self, reason = "as where there are laws of ours")]
    pub(super) fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Refuses laws that do not exist in the kernel, without loading any.
pub(super) fn check(run: &Run, built: &BuiltRun) -> Result<(), CommandFailure> {
    if let Some(law) = built.laws.external_laws().next() {
        return Err(CommandFailure::Input(format!(
            "error: the scheme `{}` runs {}, an external law in {}, which no kernel has\nhelp: `--scheme NAME` chooses one of the \
             scenario's schemes",
            run.scheme, law.name, law.language,
        )));
    }
    for (law, _) in plan(built) {
        check_one(run, law)?;
    }
    Ok(())
}

fn check_one(run: &Run, law: LawKind) -> Result<(), CommandFailure> {
    let title = law.info().title;
    let scheme_help = "`--scheme NAME` chooses one of the scenario's schemes";
    let Some(name) = law.info().linux else {
        if !is_bpf_law(law) {
            let is_available = |&kind: &LawKind| kind.info().linux.is_some() || is_bpf_law(kind);
            let known: Vec<&str> = LawKind::ALL.into_iter().filter(is_available).map(|kind| kind.info().name).collect();
            return Err(CommandFailure::Input(format!(
                "error: the scheme `{}` runs {title}, which no kernel has\nhelp: real packets are sent under {}; {scheme_help}",
                run.scheme,
                known.join(", "),
            )));
        }
        if cfg!(feature = "bpf") {
            return Ok(());
        }
        return Err(CommandFailure::Input(format!(
            "error: the scheme `{}` runs {title}, which this build of narrows cannot load into the kernel\nhelp: \
             `narrows kernel doctor` lists what building it needs; {scheme_help}",
            run.scheme,
        )));
    };
    match check_congestion(name) {
        Ok(()) => Ok(()),
        Err(emulator::Error::UnknownCongestion { available, .. }) => Err(CommandFailure::Input(format!(
            "error: the scheme `{}` runs {title}, and the kernel has no `{name}`; it has {available}\nhelp: load its \
             module; {scheme_help}",
            run.scheme,
        ))),
        Err(other) => Err(other.into()),
    }
}

/// The laws of both classes of flows, those inside a datacenter first: [`check`] has refused external ones.
fn plan(built: &BuiltRun) -> Vec<(LawKind, &[(&'static str, ParamValue)])> {
    [FlowClass::Intra, FlowClass::Inter].into_iter().filter_map(|class| built.laws.law(class)).collect()
}

/// Checks that the kernel has the laws that a run needs.
#[cfg(not(feature = "bpf"))]
pub(super) fn load_laws(run: &Run, built: &BuiltRun) -> Result<LoadedLaws, CommandFailure> {
    check(run, built)?;
    let names = plan(built).iter().filter_map(|&(law, _)| law.info().linux).map(str::to_owned).collect();
    Ok(LoadedLaws { names, law_state: None })
}

/// Ensures that the kernel has the laws that a run needs: laws of ours are loaded under names of this process.
#[cfg(feature = "bpf")]
pub(super) fn load_laws(run: &Run, built: &BuiltRun) -> Result<LoadedLaws, CommandFailure> {
    check(run, built)?;
    let mut kernel_laws = LoadedLaws { names: Vec::new(), law_state: None, loaded: Vec::new() };
    let mut watchers = Vec::new();
    let plan = plan(built);
    for (class, (law, settings)) in plan.iter().enumerate() {
        if let Some(name) = law.info().linux {
            kernel_laws.names.push(name.to_owned());
        } else if class == 1 && plan[0] == plan[1] {
            kernel_laws.names.push(kernel_laws.names[0].clone());
        } else if let Some(row) = kernel::KernelLaw::of(*law) {
            // At most 15 bytes: the longest name of a law, the longest number of a process, and the class.
            let name = format!("{}{}{}", row.name, std::process::id(), ["a", "b"][class]);
            let settings = kernel_settings(built, settings);
            let loaded = kernel::Loaded::load(row, &settings, Some(&name), kernel::Programs::Law)?;
            watchers.push(loaded.watcher()?);
            kernel_laws.names.push(name);
            kernel_laws.loaded.push(loaded);
        }
    }
    if !watchers.is_empty() {
        kernel_laws.law_state = Some(Box::new(LawWatchers(watchers)));
    }
    Ok(kernel_laws)
}

/// Returns the law's settings for its path: the slowest link that a flow crosses. The base round trip is the
/// handshake's, as anywhere in a kernel.
#[cfg(feature = "bpf")]
fn kernel_settings(built: &BuiltRun, settings: &[(&'static str, ParamValue)]) -> kernel::Settings {
    let setup = &built.setup;
    let rates = setup.flows.iter().map(|flow| setup.paths(flow.src, flow.dst, setup.host.mss).line_rate);
    kernel::Settings {
        line_rate: rates.min().unwrap_or(kernel::Settings::default().line_rate),
        base_rtt: None,
        intra_rtt: setup.intra_rtt,
        params: settings.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// Decoders of the laws of both classes.
#[cfg(feature = "bpf")]
struct LawWatchers(Vec<kernel::SocketWatcher>);

#[cfg(feature = "bpf")]
impl LawStateReader for LawWatchers {
    fn maps(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.0.iter().map(kernel::SocketWatcher::map).collect()
    }

    fn decode(&self, socket: &inet_diag::DiagSocket) -> Option<emulator::LawReading> {
        let law = self.0.iter().find_map(|watcher| watcher.law_state(socket))?;
        Some(emulator::LawReading { actions: law.actions, trace: law.trace })
    }
}

/// Returns whether a law with optional ECN is set to use it.
pub(super) fn requests_ecn(built: &BuiltRun) -> bool {
    settings(built).any(|(_, name, value)| name == "ecn" && value == ParamValue::Switch(true))
}

/// Returns the parameters of laws that the scenario sets: law, name, value.
fn settings(built: &BuiltRun) -> impl Iterator<Item = (LawKind, &'static str, ParamValue)> {
    plan(built).into_iter().flat_map(|(law, settings)| settings.iter().map(move |&(name, value)| (law, name, value)))
}
