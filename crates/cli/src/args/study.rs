//! Commands that run scenarios.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::values::{host_command, key_value, port_file, relative_difference, seed};
use super::{Common, CsvArgs, FileArgs};

#[derive(Args, Debug)]
pub(crate) struct NewLawArgs {
    /// Name of the law: lower-case letters, digits and hyphens, as in my-law.
    pub(crate) name: String,
    /// Checkout of Narrows to change.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) source: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Keys and seeds that the command line varies, in addition to the file's grid.
#[derive(Args, Debug)]
pub(crate) struct VaryArgs {
    /// Vary a key over several values, as in traffic.0.load=20%,40%,80%.
    ///
    /// May be repeated: every combination is run. Replaces the values that the key has in `[grid]`. Values that contain
    /// commas need a TOML array: `'host.load_balancing=["ecmp", "spray"]'`.
    #[arg(long = "vary", value_name = "KEY=VALUES", value_parser = key_value)]
    pub(crate) vary: Vec<(String, String)>,
    /// Number of seeds for each point: the scenario's and the following ones.
    ///
    /// 1 to 10000. With several seeds, averages have confidence intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
}

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  narrows sweep study.toml --vary traffic.0.load=20%,40%,80% --seeds 5\n  \
    narrows sweep study.toml --shard $SLURM_ARRAY_TASK_ID/8\n  \
    narrows sweep merge study.toml out/study-*-of-8 --out out/study\n  narrows sweep status out/study"
)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    #[command(flatten)]
    pub(crate) file: Option<FileArgs>,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    /// Run one shard, as in 3/8: every eighth run, starting with the third.
    ///
    /// Each shard needs a results directory of its own; default: out/NAME-3-of-8. `narrows sweep merge` combines them.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<study::Shard>,
    /// List the names of the runs and exit; with --json, also their keys.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) list: bool,
    /// Run on a Ray cluster: ray://HOST:PORT, or `local` to start one here.
    ///
    /// Needs the Python package.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["shard", "list", "force", "json", "threads"])]
    pub(crate) ray: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SweepCommand {
    /// Combine the results of shards into one directory.
    ///
    /// Needs the options that the shards were given. Runs nothing. Exit code 1 if runs are missing; those found are
    /// kept.
    Merge(Box<MergeArgs>),
    /// Show which runs are finished, running, waiting or failed, and why.
    ///
    /// Also works while the sweep is running.
    Status(StatusArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "The objectives must hold in every run: at all seeds and all points of the file's grid.\n\n\
    Examples:\n  narrows size net.toml --slo 'p99(intra.slowdown) <= 5' --slo 'p99(inter.fct) <= 60ms'\n  \
    narrows size net.toml --slo 'network.drops == 0' --minimize switch.buffer=1MB..32MB --no-vary\n  \
    narrows size net.toml --slo 'p99(slowdown) <= 8' --vary schemes.uno.params.unocc.alpha=0.001,0.002")]
pub(crate) struct SizeArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Objective: a comparison about one run, as in 'p99(intra.slowdown) <= 5'.
    ///
    /// Metrics are those of papers' claims (`docs/src/reference/claims.md`). May be repeated: all objectives must hold.
    #[arg(long = "slo", value_name = "CHECK", required = true)]
    pub(crate) objectives: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The objectives must hold in every run: at all seeds and all points of the file's grid. Of the \
    schemes that meet them, the recommended one has the lowest score at the settings found for it.\n\nExamples:\n  \
    narrows choose net.toml\n  \
    narrows choose net.toml --slo 'p99(intra.slowdown) <= 5' --metric 'p99(inter.fct)' --seeds 5"
)]
pub(crate) struct ChooseArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Objective: a comparison about one run, as in 'p99(intra.slowdown) <= 5'.
    ///
    /// May be repeated: all objectives must hold. Default: each p99 among the scored metrics is within --within of the
    /// best scheme's value as the file is written.
    #[arg(long = "slo", value_name = "CHECK")]
    pub(crate) objectives: Vec<String>,
    /// Allowed excess over the best scheme, for the default objectives.
    ///
    /// A number or a percentage, as in 0.25 or 25%.
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = relative_difference, conflicts_with = "objectives")]
    pub(crate) within: f64,
    /// Metric to score, lower is better, as in 'p99(inter.slowdown)'.
    ///
    /// May be repeated. Default: the median and the p99 of the slowdown for each size bin, or for each class of flows.
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Search range and settings.
#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// Key to minimize and its range, as in port.inter.buffer=50KB..2MB.
    ///
    /// Its value can be a size, a rate, a time or a number. A key of schemes.NAME. sizes that scheme alone. Default:
    /// port.buffer, or switch.buffer where switches share it, from 1/32 to 4 times the file's value.
    #[arg(long, value_name = "KEY=LOW..HIGH", value_parser = key_value)]
    pub(crate) minimize: Option<(String, String)>,
    /// Number of values to try per doubling of that key, 1 to 32.
    ///
    /// Values are evenly spaced on a logarithmic scale. With 4, each is 19 % above the one before.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) steps_per_doubling: u32,
    /// Try values of another key, too, as in port.ecn.min=10%,25%.
    ///
    /// May be repeated: every combination is tried. A key of schemes.NAME. is tried with that scheme alone. Default:
    /// ECN marking thresholds where ports mark, and drain rates of phantom queues.
    #[arg(long = "vary", value_name = "KEY=VALUES", value_parser = key_value, conflicts_with = "no_vary")]
    pub(crate) choices: Vec<(String, String)>,
    /// Try no other keys: all other settings stay as in the file.
    #[arg(long)]
    pub(crate) no_vary: bool,
    /// Number of seeds for each point: the scenario's and the following ones.
    ///
    /// Not used if the file's `[grid]` varies `seed`.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    /// Results directories of the shards, complete or not.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Results directory of the sweep.
    pub(crate) directory: PathBuf,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Needs root, iproute2 and /dev/net/tun; --virtual needs none of them. Without --virtual, hosts are \
    network namespaces, named as in the scenario; in them, /etc/hosts lists all hosts.\n\nExamples:\n  \
    narrows emulate pair.toml --scheme cubic\n  narrows emulate pair.toml --scheme cubic --virtual\n  \
    narrows emulate pair.toml --background 'right.host0=iperf3 -s' -- iperf3 -c right.host0\n  \
    narrows emulate pair.toml --command-host left.host0 -- bash"
)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Override a key of the scenario, as in topology.k=4 or traffic.0.size=64MiB.
    ///
    /// Array elements are selected by index. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Show all columns of tables, even if they are wider than the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
    /// Seed of ECN marks, losses and path choice. Default: the scenario's `seed`.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Drop a key that has no effect on real packets, such as host.recovery.
    ///
    /// A scheme that has such keys is refused otherwise. The results record the dropped keys. May be repeated.
    #[arg(long, value_name = "KEY")]
    pub(crate) without: Vec<String>,
    /// Results directory. Default: out/NAME-emulated, with --virtual out/NAME-virtual, from the scenario's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run everything again, and replace finished runs.
    ///
    /// Also repeats runs that an interrupted command finished, and replaces finished runs of other settings.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Print only warnings and errors, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Host that runs the command. Default: the scenario's first host.
    #[arg(long, value_name = "HOST", requires = "command")]
    pub(crate) command_host: Option<String>,
    /// Run a program on a host in the background, such as a server.
    ///
    /// It starts before the command, which waits until the program listens on a TCP port, or for one second. It ends
    /// after the command. May be repeated.
    #[arg(long, value_name = "HOST=COMMAND", value_parser = host_command, requires = "command")]
    pub(crate) background: Vec<(String, String)>,
    /// Capture the packets that leave a port, such as left>right, as pcapng.
    ///
    /// With several runs, each has its own file, named after the run. Only an earlier capture of Narrows is
    /// overwritten. May be repeated.
    #[arg(long, value_name = "PORT=FILE", value_parser = port_file)]
    pub(crate) pcap: Vec<(String, PathBuf)>,
    /// Maximum burst size, 1500B to 64KiB.
    ///
    /// For kernel TCP, the most that it hands to the device at once (GSO size); for --stack narrows and --virtual, the
    /// most that leaves at once to catch up with pacing. A simulated host sends packet by packet. Default: 64KiB, with
    /// --virtual one packet.
    #[arg(long, value_name = "SIZE")]
    pub(crate) gso_max_size: Option<String>,
    /// Transport that carries the scenario's flows. Default: kernel, or with --virtual narrows.
    #[arg(long, value_enum)]
    pub(crate) stack: Option<Stack>,
    /// Run the transport in virtual time: deterministic, without root, on any machine.
    ///
    /// Hosts run the transport's own protocol code, with real packets and cryptography, over the emulator's network. The
    /// result does not depend on the machine.
    #[arg(long = "virtual", conflicts_with_all = ["command", "background", "command_host", "pcap", "no_real_time"])]
    pub(crate) virtual_time: bool,
    /// Processing times of virtual hosts, such as `packet=2us,wake_up=50us`. Default: none.
    ///
    /// `wake_up`: from an event to the first work of a sleeping host. `packet`: for each packet received or sent. `batch`:
    /// for each batch of packets. `batch_packets`: packets in a batch. `timer_slack`: lateness of timers. They imitate a
    /// machine, which separates its effect from that of the protocol.
    #[arg(long, value_name = "KEY=VALUE,...", requires = "virtual_time")]
    pub(crate) host_costs: Option<String>,
    /// Send packets without encryption, with --virtual: for measurements of its cost.
    #[cfg(feature = "null-crypto")]
    #[arg(long, requires = "virtual_time")]
    pub(crate) null_crypto: bool,
    /// Maximum number of concurrent runs, with --virtual; results do not depend on it. Default: one per core.
    #[arg(long, value_name = "N", requires = "virtual_time", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Do not request real-time scheduling.
    ///
    /// The emulator may then be late by milliseconds under load.
    #[arg(long)]
    pub(crate) no_real_time: bool,
    /// Carry the scenario's flows over IPv6.
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Command to run on a host instead of the scenario's traffic, once per scheme.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl EmulateArgs {
    /// Returns the transport that carries the scenario's flows in real time.
    pub(crate) fn stack(&self) -> Stack {
        self.stack.unwrap_or(Stack::Kernel)
    }
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Scenario files (TOML).
    #[arg(required = true)]
    pub(crate) scenarios: Vec<PathBuf>,
    /// Show only this scheme; errors in the others are still reported. May be repeated.
    #[arg(long = "scheme", value_name = "NAME", conflicts_with = "resolved")]
    pub(crate) schemes: Vec<String>,
    /// Override a key of the scenario, as in topology.k=4. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Apply a scale of the file (`[scale.NAME]`), such as quick.
    ///
    /// For files of papers' experiments, `paper` is the file as written.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// Print the complete scenario with all defaults filled in.
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Print only errors.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print link loads by class as CSV on standard output, and nothing else there.
    #[arg(long, conflicts_with_all = ["resolved", "quiet"])]
    pub(crate) csv: bool,
}

/// Transport of a scenario's flows on real packets.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    /// Kernel TCP.
    Kernel,
    /// Narrows transport in user space (UDP), under any law that needs neither credits nor INT.
    Narrows,
}

/// Size of a paper's experiment.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// Size of the paper's experiment; one seed may take hours.
    Paper,
    /// Smaller size, within minutes on two cores; the file states what was scaled down.
    Quick,
}

impl Scale {
    /// Its name in files and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Quick => "quick",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// Papers or figures: a paper (uno), a figure (uno/fig8-mixed) or its file, or all.
    ///
    /// The beginning of a figure's name (uno/fig8) selects all figures that begin so. Without a name, the command lists
    /// the papers.
    pub(crate) what: Vec<String>,
    /// Size of the experiments.
    #[arg(long, value_enum, default_value = "quick")]
    pub(crate) scale: Scale,
    /// Number of seeds for each verdict, 1 to 100.
    ///
    /// Default: 5 at the quick scale, 3 at the paper scale.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Directory of the papers' scenario files, with a folder for each paper.
    #[arg(long, value_name = "DIR", default_value = "papers")]
    pub(crate) papers: PathBuf,
    /// Save the verdicts in the scenario files, as the recorded ones.
    ///
    /// Later runs are compared with them. Not with --set or --seed.
    #[arg(long)]
    pub(crate) update_verdicts: bool,
    /// Also record tables, verdicts and outcomes of causes as CSV, in DIR/PAPER/results/SCALE.
    ///
    /// Replaces the rows of the figures that are run; other rows stay. In a checkout, DIR is papers.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Also judge claims again with each suspected cause removed.
    ///
    /// The files list suspected causes as `[[cause]]`.
    #[arg(long)]
    pub(crate) causes: bool,
    /// Also write table values for each seed to PAPER/values, for `narrows score --baseline`.
    #[arg(long)]
    pub(crate) values: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct LawsArgs {
    /// Show only this law, with its parameters.
    pub(crate) law: Option<String>,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}
