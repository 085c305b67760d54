//! The emulator as the backend of a study: real packets in real time.

mod checks;
#[cfg_attr(not(feature = "transport"), path = "real_time/no_transport.rs")]
mod flow_transport;
mod laws;
mod programs;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use emulator::{Emulated, RunOptions};
use fabric::{LinkId, Network};
use results::store::{RUNS, run_folder};
use results::{Class, Emulator, RunInfo, RunResults, Validity};
use scenario::{BuiltRun, RealHost, Run};
use study::{Backend, RunSpec, Stopwatch, StudySize, program};

use super::{burst, ip_version, replay};
use crate::args::{Common, EmulateArgs, Stack};
use crate::exit::{CommandFailure, print_stderr};
use crate::interrupt::interrupted;
use crate::named_file::{NamedFile, OutputKind, outside_of, resolved};

/// The option that names captures.
const PCAP: &str = "--pcap";

/// Runs a scenario on real packets in real time.
pub(super) fn emulate(
    args: &EmulateArgs,
    scenario: &scenario::Scenario,
    common: &Common,
) -> Result<(), CommandFailure> {
    let out = common.out.clone().unwrap_or_default();
    let emulation = Emulation { args, out, unnamed: Mutex::default() };
    let result = crate::commands::run::all_of(scenario, &emulation, &args.file.schemes, common, replay(args));
    let unnamed = emulation.unnamed.into_inner().unwrap_or_else(PoisonError::into_inner);
    check_capture_names(result, &unnamed)
}

/// Fails the command if a requested capture could not get its name. The results of the runs are written by then.
fn check_capture_names(result: Result<(), CommandFailure>, unnamed: &[String]) -> Result<(), CommandFailure> {
    match result {
        Ok(()) if !unnamed.is_empty() => Err(CommandFailure::Run(anyhow::anyhow!(unnamed.join("\n")))),
        result => {
            for message in unnamed {
                print_stderr(message);
            }
            result
        }
    }
}

/// The emulator.
struct Emulation<'a> {
    args: &'a EmulateArgs,
    /// The directory of the results.
    out: PathBuf,
    /// Captures that do not have their name.
    unnamed: Mutex<Vec<String>>,
}

impl Backend for Emulation<'_> {
    fn needs_exclusive_use(&self) -> bool {
        true
    }

    /// Every emulated run is a measurement of its own.
    fn repeats(&self) -> bool {
        false
    }

    fn options(&self) -> String {
        replay(self.args).join("\0")
    }

    fn check(&self, run: &Run, built: &BuiltRun, of: StudySize) -> Result<(), study::Error> {
        Ok(self.refuse(run, built, of)?)
    }

    fn run(&self, one: RunSpec<'_>) -> Result<RunResults, study::Error> {
        Ok(self.emulate(one)?)
    }
}

impl Emulation<'_> {
    /// The host of the runs' traffic.
    fn host(&self) -> RealHost {
        match self.args.stack() {
            Stack::Narrows => RealHost::Transport,
            Stack::Kernel if self.args.command.is_empty() => RealHost::Kernel,
            Stack::Kernel => RealHost::Programs,
        }
    }

    /// Refuses runs that cannot be emulated, before the first one begins.
    fn refuse(&self, run: &Run, built: &BuiltRun, of: StudySize) -> Result<(), CommandFailure> {
        checks::refuse(built, self.args)?;
        match self.args.stack() {
            Stack::Kernel => checks::refuse_for_kernel(built, self.args)?,
            Stack::Narrows => flow_transport::refuse(run, built, self.args)?,
        }
        run.check_support(self.host())?;
        burst(self.args)?;
        let network = &built.setup.network;
        let captures = self.ports(network, run, of)?;
        for (number, (_, file)) in captures.iter().enumerate() {
            outside_of(file, &self.out, PCAP)?;
            NamedFile::new(file, OutputKind::Capture, PCAP)?;
            if captures[..number].iter().any(|(_, other)| resolved(file) == resolved(other)) {
                return Err(CommandFailure::Input(format!(
                    "error: {PCAP} names `{}` for two ports; expected a file a port",
                    file.display()
                )));
            }
        }
        let named = self.args.command_host.iter().chain(self.args.background.iter().map(|(host, _)| host));
        named.map(|name| programs::host(network, name)).collect::<Result<Vec<_>, _>>()?;
        for name in emulator::preflight()? {
            print_stderr(&format!("removed {name}, which an earlier run had left"));
        }
        match self.args.stack() {
            Stack::Kernel => laws::check(run, built),
            Stack::Narrows => Ok(()),
        }
    }

    /// Does a run.
    fn emulate(&self, RunSpec { run, built, info, of, board, .. }: RunSpec<'_>) -> Result<RunResults, CommandFailure> {
        let mut kernel_laws = match self.args.stack() {
            Stack::Kernel => laws::load_laws(run, &built)?,
            Stack::Narrows => laws::LoadedLaws::for_user_space(&built),
        };
        let options = RunOptions {
            congestion: kernel_laws.names.clone(),
            ecn: laws::requests_ecn(&built),
            ip_version: ip_version(self.args),
            burst: burst(self.args)?,
            real_time: !self.args.no_real_time,
            pcap: self.ports(&built.setup.network, run, of)?,
            law_state: kernel_laws.law_state.take(),
        };
        let clock = Stopwatch::start();
        let emulated = if self.args.command.is_empty() {
            let line = board.run(&run.id, built.setup.stop, built.setup.flows.len() as u64);
            let mut on_progress = |progress: experiment::TrafficProgress| {
                line.update_real(progress.now, progress.completed);
                !interrupted()
            };
            match self.args.stack() {
                Stack::Kernel => emulator::run_traffic(&built.setup, options, &mut on_progress)?,
                Stack::Narrows => flow_transport::run(&built, options, &mut on_progress)?,
            }
        } else {
            if !self.args.quiet && !self.args.json && !self.args.csv.is_requested() && of == StudySize::ManyRuns {
                print_stderr(&format!("{}:", run.id));
            }
            let network = &built.setup.network;
            emulator::run_programs(&built.setup, options, &programs::RunPrograms { network, args: self.args })?
        };
        let times = clock.times();
        if emulated.outcome.interrupted || interrupted() {
            return Err(CommandFailure::Interrupted(String::new()));
        }
        let unnamed = emulated.router.captures_unnamed.iter().cloned();
        self.unnamed.lock().unwrap_or_else(PoisonError::into_inner).extend(unnamed);
        let mut info = self.info(info, &built, &emulated);
        info.warnings.extend(checks::ignored(&run.check_support(self.host())?));
        info.warnings.extend(kernel_laws.warnings());
        Ok(RunResults::new(&info, &program(), &emulated.setup, &emulated.outcome, times)?)
    }

    /// Returns the description of the run: that of the scenario, and the emulator's measurements.
    fn info(&self, mut info: RunInfo, built: &BuiltRun, emulated: &Emulated) -> RunInfo {
        let router = &emulated.router;
        let ns = |span: units::Span| span.unsigned_ps() / 1_000;
        let pressure = &emulated.pressure;
        let of_wall = |span: units::Span| {
            let share = span.unsigned_ps() as f64 / pressure.wall.unsigned_ps().max(1) as f64;
            (share * 1e4).round() / 1e4
        };
        let share = router.cpu.unsigned_ps() as f64 / router.wall.unsigned_ps().max(1) as f64;
        let mut congestion = emulated.congestion.clone();
        congestion.dedup();
        if !self.args.command.is_empty() {
            let network = &emulated.setup.network;
            let datacenter = |host| network.datacenter_of(host);
            let class = |flow: &experiment::FlowSpec| {
                if datacenter(flow.src) == datacenter(flow.dst) { Class::Intra } else { Class::Inter }
            };
            info.classes = emulated.setup.flows.iter().map(class).collect();
            info.traffic = vec![0; info.classes.len()];
            info.traffic_names = vec!["command".to_owned()];
            info.laws.clone_from(&emulated.congestion);
            info.requests.clear();
            info.collectives.clear();
            info.training.clear();
            info.open_ended.clear();
            // Those of the scenario's traffic, which was not run.
            info.warnings.clear();
        }
        info.warnings.extend(checks::warnings(built, self.args));
        info.warnings.extend(match self.args.stack() {
            Stack::Kernel => checks::kernel_warnings(built, self.args),
            Stack::Narrows => flow_transport::warnings(built, ip_version(self.args)),
        });
        info.warnings.extend(emulated.notes.iter().cloned());
        info.warnings.extend(checks::router_warnings(router, self.args));
        let mut caveats = pressure.caveats();
        if matches!(self.args.stack(), Stack::Kernel) && self.args.command.is_empty() {
            let outcome = &emulated.outcome;
            let received = outcome.flows.iter().fold(units::Bytes::ZERO, |sum, flow| sum + flow.stats.marked);
            let port_marks = outcome.links.iter().map(|link| link.marks).sum();
            caveats.extend(checks::repeated_marks(built, received, port_marks, ip_version(self.args)));
        }
        let measured = Emulator {
            lateness_p50_ns: ns(router.lateness.p50),
            lateness_p99_ns: ns(router.lateness.p99),
            lateness_max_ns: ns(router.lateness.max),
            cpu_share: (share * 1e4).round() / 1e4,
            sched_realtime: router.real_time,
            stack: match self.args.stack() {
                Stack::Kernel => results::Stack::Kernel,
                Stack::Narrows => results::Stack::Narrows,
            },
            congestion,
            command: (!self.args.command.is_empty()).then(|| programs::line(self.args)),
            bottleneck: router.bottleneck.clone(),
            caveats,
            cpu_pressure: pressure.machine.map(of_wall),
            cgroup_cpu_pressure: pressure.group.map(of_wall),
            thread_wait: of_wall(pressure.thread),
            thread_wait_mean_ns: ns(pressure.thread_mean),
            router_wait: of_wall(pressure.router),
            cpu_steal: of_wall(pressure.cpu_steal),
            stalled: of_wall(pressure.stalled),
            validity: Validity::default(),
        };
        info.emulator = Some(measured.judged());
        info
    }

    /// The ports that are captured, and where to. Of several runs, each has files of its own.
    fn ports(&self, network: &Network, run: &Run, of: StudySize) -> Result<Vec<(LinkId, PathBuf)>, CommandFailure> {
        let all = || (0..network.links().len() as u32).map(LinkId);
        let find = |(port, file): &(String, PathBuf)| {
            let link = all().find(|&link| network.link_name(link) == *port).ok_or_else(|| {
                let names: Vec<String> = all().map(|link| network.link_name(link)).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                CommandFailure::unknown(&format!("--pcap: the network has no port `{port}`"), port, &names)
            })?;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Named like the runs' folders, so that each run has a file of its own.
            let id = run_folder(&run.id).split_off(RUNS.len() + 1);
            let name = if of == StudySize::ManyRuns { format!("{id}-{name}") } else { name };
            Ok((link, file.with_file_name(name)))
        };
        self.args.pcap.iter().map(find).collect()
    }
}
