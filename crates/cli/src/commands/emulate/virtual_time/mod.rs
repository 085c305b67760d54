//! The transport in virtual time as the backend of a study: real packets between event-driven hosts, without sockets.

mod application;
mod costs;
mod hosts;

use experiment::TrafficProgress;
use fabric::LinkId;
use results::{RunResults, VirtualTime};
use scenario::{BuiltRun, RealHost, Run};
use study::{Backend, RunSpec, Stopwatch, StudySize, program};
use virtual_endpoint::provider::PacketProtection;

use super::{burst, ip_version, replay, transport_plan};
use crate::args::{Common, EmulateArgs, Stack};
use crate::exit::CommandFailure;
use crate::interrupt::interrupted;

/// Maximum number of hosts that send or receive.
const MAX_HOSTS: usize = 4_096;
/// Maximum number of flows, each with a connection and a port of its own.
const MAX_FLOWS: usize = 20_000;

/// Returns the protection of packets.
#[cfg(feature = "null-crypto")]
fn protection(args: &EmulateArgs) -> PacketProtection {
    if args.null_crypto { PacketProtection::Null } else { PacketProtection::Real }
}

/// Returns the protection of packets.
#[cfg(not(feature = "null-crypto"))]
fn protection(_: &EmulateArgs) -> PacketProtection {
    PacketProtection::Real
}

/// Returns the name of a protection of packets in results.
fn crypto_name(protection: PacketProtection) -> &'static str {
    match protection {
        PacketProtection::Real => "AES-128-GCM",
        #[cfg(feature = "null-crypto")]
        PacketProtection::Null => "none",
    }
}

/// Returns whether packets are authenticated, so that corrupted ones are rejected.
fn authenticates(protection: PacketProtection) -> bool {
    match protection {
        PacketProtection::Real => true,
        #[cfg(feature = "null-crypto")]
        PacketProtection::Null => false,
    }
}

/// Runs a scenario over the transport in virtual time.
pub(super) fn emulate(
    args: &EmulateArgs,
    scenario: &scenario::Scenario,
    common: &Common,
) -> Result<(), CommandFailure> {
    if args.stack == Some(Stack::Kernel) {
        return Err(CommandFailure::Input(
            "error: --stack kernel: the kernel's TCP needs real time; with --virtual only narrows is accepted".into(),
        ));
    }
    crate::commands::run::all_of(scenario, &VirtualEmulation { args }, &args.file.schemes, common, replay(args))
}

/// The backend that runs the transport in virtual time.
struct VirtualEmulation<'a> {
    args: &'a EmulateArgs,
}

impl Backend for VirtualEmulation<'_> {
    fn needs_exclusive_use(&self) -> bool {
        false
    }

    /// Returns false although runs are deterministic: a run's key does not cover the transport's code, so earlier
    /// results may be from other code.
    fn repeats(&self) -> bool {
        false
    }

    fn options(&self) -> String {
        replay(self.args).join("\0")
    }

    fn check(&self, run: &Run, built: &BuiltRun, _: StudySize) -> Result<(), study::Error> {
        Ok(self.refuse(run, built)?)
    }

    fn run(&self, one: RunSpec<'_>) -> Result<RunResults, study::Error> {
        Ok(self.emulate(one)?)
    }
}

impl VirtualEmulation<'_> {
    fn refuse(&self, run: &Run, built: &BuiltRun) -> Result<(), CommandFailure> {
        let refused =
            |reason: String| Err(CommandFailure::Input(format!("error: the virtual hosts cannot do this: {reason}")));
        let hosts = hosts::used(&built.setup).len();
        if hosts > MAX_HOSTS {
            return refused(format!("{hosts} hosts send or receive, and at most {MAX_HOSTS} are run"));
        }
        let wire = built.setup.host.mss + built.setup.host.header;
        let least = transport_plan::min_packet(ip_version(self.args));
        if !(least..=65_535).contains(&wire) {
            return refused(format!(
                "`host.mss` and `host.header` are {wire} B together, and {least} to 65535 are accepted"
            ));
        }
        let corrupts = |link| built.setup.network.impairments(link).is_some_and(|it| !it.corruption.is_zero());
        let mut links = (0..built.setup.network.links().len() as u32).map(LinkId);
        if !authenticates(protection(self.args)) && links.any(corrupts) {
            return refused(
                "`impair.corrupt` changes bits of packets, and without encryption nothing would detect it".to_owned(),
            );
        }
        transport_plan::refuse(run, built, MAX_FLOWS, self.args)?;
        run.check_support(RealHost::Virtual)?;
        costs::host_costs(self.args.host_costs.as_deref())?;
        burst(self.args)?;
        Ok(())
    }

    fn emulate(&self, RunSpec { run, built, mut info, board, .. }: RunSpec<'_>) -> Result<RunResults, CommandFailure> {
        let clock = Stopwatch::start();
        let line = board.run(&run.id, built.setup.stop, built.setup.flows.len() as u64);
        let mut on_progress = |progress: TrafficProgress| {
            line.update_real(progress.now, progress.completed);
            !interrupted()
        };
        let options = hosts::VirtualOptions {
            ip_version: ip_version(self.args),
            burst: burst(self.args)?,
            costs: costs::host_costs(self.args.host_costs.as_deref())?,
            protection: protection(self.args),
        };
        let emulated = hosts::run(&built, options, &mut on_progress)?;
        let times = clock.times();
        if emulated.outcome.interrupted || interrupted() {
            return Err(CommandFailure::Interrupted(String::new()));
        }
        info.warnings.extend(transport_plan::warnings(&built, options.ip_version));
        info.warnings.extend(emulated.notes);
        info.virtual_time = Some(VirtualTime {
            crypto: crypto_name(options.protection).to_owned(),
            costs: self.args.host_costs.clone(),
            connect_ns: emulated.connect_time.unsigned_ps() / 1_000,
            datagrams: emulated.datagrams,
            steps: emulated.steps,
        });
        Ok(RunResults::new(&info, &program(), &built.setup, &emulated.outcome, times)?)
    }
}
