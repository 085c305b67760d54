//! Commands that run scenarios.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::values::{host_command, key_value, port_file, seed, share};
use super::{Common, CsvArgs, FileArgs};

#[derive(Args, Debug)]
pub(crate) struct NewLawArgs {
    /// Its name in files: lower-case letters, digits and hyphens, as in my-law.
    pub(crate) name: String,
    /// The checkout.
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

/// What the command line varies beside the file.
#[derive(Args, Debug)]
pub(crate) struct VaryArgs {
    /// A key of the scenario and the values that it takes in turn, as in traffic.0.load=20%,40%,80%. May be repeated: every
    /// combination is run.
    #[arg(long = "over", value_name = "KEY=VALUES", value_parser = key_value)]
    pub(crate) over: Vec<(String, String)>,
    /// Run every point with so many seeds: the scenario's and those after it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
}

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  narrows sweep study.toml --over traffic.0.load=20%,40%,80% --seeds 5\n  \
    narrows sweep study.toml --shard $SLURM_ARRAY_TASK_ID/8\n  narrows sweep merge study.toml out/study-*-of-8 --out out/study\n  \
    narrows sweep status out/study"
)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    #[command(flatten)]
    pub(crate) file: Option<FileArgs>,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    /// Run one part of the runs, as in 3/8: every eighth from the third on. Each shard needs a directory of its own; by default
    /// it is called after it. `narrows sweep merge` puts them together.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<study::Shard>,
    /// Print the names of the runs, and run nothing; with --json, also their keys.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) list: bool,
    /// Give the runs to a Ray cluster: ray://HOST:PORT, or `local` for one that is begun here. Needs the Python package.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["shard", "list", "anew", "json", "threads"])]
    pub(crate) ray: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SweepCommand {
    /// Put the results of shards together, with the same options that they were given. Nothing is run.
    Merge(Box<MergeArgs>),
    /// Say which runs of a directory are finished, running, waiting and failed, and why.
    Status(StatusArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Every run, over all seeds and all points of the file's own grid, must hold the objectives.\n\nExamples:\n  \
    narrows size net.toml --slo 'p99(intra.slowdown) <= 5' --slo 'p99(inter.fct) <= 60ms'\n  \
    narrows size net.toml --slo 'network.drops == 0' --least switch.buffer=1MB..32MB --as-written\n  \
    narrows size net.toml --slo 'p99(slowdown) <= 8' --try schemes.uno.params.unocc.alpha=0.001,0.002"
)]
pub(crate) struct SizeArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// What must hold, in the words of claims about one run, as in 'p99(intra.slowdown) <= 5'. May be repeated.
    #[arg(long = "slo", value_name = "CHECK", required = true)]
    pub(crate) objectives: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Every run, over all seeds and all points of the file's own grid, must hold the objectives. Of the schemes that do, the \
    first choice is the one with the least score at the settings found for it.\n\nExamples:\n  narrows choose net.toml\n  \
    narrows choose net.toml --slo 'p99(intra.slowdown) <= 5' --cell 'p99(inter.fct)' --seeds 5"
)]
pub(crate) struct ChooseArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Objective: a claim about one run, as in 'p99(intra.slowdown) <= 5'. May be repeated. Default: each
    /// metric of --cell that is a p99 is within --within of the best scheme's as the file is written.
    #[arg(long = "slo", value_name = "CHECK")]
    pub(crate) objectives: Vec<String>,
    /// Allowed excess over the best scheme, for the default objectives.
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = share, conflicts_with = "objectives")]
    pub(crate) within: f64,
    /// A metric of a run that is scored, less being better, as in `p99(inter.slowdown)`; may be repeated. Default: the median and
    /// the p99 of the slowdown of each size bin, or of each class of flows.
    #[arg(long, value_name = "METRIC")]
    pub(crate) cell: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Search range and settings.
#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// The key whose least value is sought, and where, as in port.inter.buffer=50KB..2MB. Default: port.buffer, or switch.buffer
    /// where switches share theirs, from a 32nd of what the file has to four times as much.
    #[arg(long, value_name = "KEY=LOW..HIGH", value_parser = key_value)]
    pub(crate) least: Option<(String, String)>,
    /// How many values of that key there are to a doubling, evenly spread over logarithms.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) steps: u32,
    /// A key and values of it to try beside, as in port.ecn.min=10%,25%. May be repeated: every combination is tried. A key of
    /// schemes.NAME. is tried with that scheme alone. Default: thresholds of marks where ports mark, drain rates of phantom queues.
    #[arg(long = "try", value_name = "KEY=VALUES", value_parser = key_value, conflicts_with = "as_written")]
    pub(crate) choices: Vec<(String, String)>,
    /// Try nothing beside: all other settings stay as the file has them.
    #[arg(long)]
    pub(crate) as_written: bool,
    /// Run every point with so many seeds: the scenario's and those after it.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    /// The shards' directories of results, whole or not.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The directory of results.
    pub(crate) directory: PathBuf,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Needs root, iproute2 and /dev/net/tun. Hosts are network namespaces, named as in the scenario; \
    in them /etc/hosts has all names.\n\nExamples:\n  narrows emulate pair.toml --scheme cubic\n  narrows emulate pair.toml \
    --with 'right.host0=iperf3 -s' -- iperf3 -c right.host0\n  narrows emulate pair.toml --on left.host0 -- bash"
)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Override a key of the scenario, as in topology.k=4 or traffic.0.size=64MiB. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
    /// The seed on which marks, losses and the choice of paths depend.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Run schemes without a key that real packets do not heed, such as host.recovery. The runs' names and manifests say
    /// so. May be repeated.
    #[arg(long, value_name = "KEY")]
    pub(crate) without: Vec<String>,
    /// The directory for results. Default: out/NAME-emulated, by the scenario's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do all runs, also those that an interrupted command has finished, and replace finished runs of other settings.
    #[arg(long)]
    pub(crate) anew: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// No progress and no table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The host where the command runs. Default: the scenario's first.
    #[arg(long, value_name = "HOST", requires = "command")]
    pub(crate) on: Option<String>,
    /// Start a program on a host before the command, such as a server; it is ended after the command. May be repeated.
    #[arg(long, value_name = "HOST=COMMAND", value_parser = host_command, requires = "command")]
    pub(crate) with: Vec<(String, String)>,
    /// Write what leaves a port, such as left>right, to a pcapng file; an earlier capture is replaced, another file is
    /// not. May be repeated.
    #[arg(long, value_name = "PORT=FILE", value_parser = port_file)]
    pub(crate) pcap: Vec<(String, PathBuf)>,
    /// The most that TCP hands a device at a time, or that the transport's pacing makes up for at once, 1500B to 64KiB; a
    /// simulated host hands over packet by packet. Default: 64KiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) burst: Option<String>,
    /// What carries the scenario's flows.
    #[arg(long, value_enum, default_value = "kernel")]
    pub(crate) stack: Stack,
    /// Do not ask for real-time scheduling: the emulator is then late by milliseconds under load.
    #[arg(long)]
    pub(crate) no_real_time: bool,
    /// The scenario's flows over IPv6.
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// A command to run on a host instead of the scenario's traffic, once a scheme.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The scenario files.
    #[arg(required = true)]
    pub(crate) scenarios: Vec<PathBuf>,
    /// Show only these schemes; all are checked, but for what is odd and not wrong.
    #[arg(long = "scheme", value_name = "NAME", conflicts_with = "resolved")]
    pub(crate) schemes: Vec<String>,
    /// Override a key of the scenario.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// One of the scenario's scales, such as quick; of an experiment also paper, which is the file as it stands.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// Print the whole scenario, every default filled in.
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Say nothing where nothing is wrong.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the load of links by class as CSV on standard output, and nothing else there.
    #[arg(long, conflicts_with_all = ["resolved", "quiet"])]
    pub(crate) csv: bool,
}

/// What carries the flows of a scenario on real packets.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    /// The kernel's TCP.
    Kernel,
    /// The transport of `narrows perf` in user space: any law but those that need credits or switches' reports.
    Narrows,
}

/// How large a paper's experiment is run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// The paper's size.
    Paper,
    /// A size that ends within minutes on two cores, most figures in under one; the file says what was scaled.
    Quick,
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// Which: a paper (uno), a figure (uno/fig8-mixed) or its file, a figure's beginning (uno/fig8), or all. Without, the
    /// papers are listed.
    pub(crate) what: Vec<String>,
    /// How large.
    #[arg(long, value_enum, default_value = "quick")]
    pub(crate) scale: Scale,
    /// Over how many seeds a verdict is. Default: 5 at the quick scale, 3 at the paper's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Where the papers' scenario files are.
    #[arg(long, value_name = "DIR", default_value = "papers")]
    pub(crate) papers: PathBuf,
    /// Write this run's verdicts into the files as the recorded ones.
    #[arg(long)]
    pub(crate) record: bool,
    /// Write the claims and verdicts as a Markdown page, too; sections of other figures that it has stay.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Also judge claims again with the change of each suspected cause ([[cause]]) of the files.
    #[arg(long)]
    pub(crate) causes: bool,
    /// Also write each table cell's value for every seed to PAPER/values, for `narrows score --against`.
    #[arg(long)]
    pub(crate) values: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct LawsArgs {
    /// Only this law, with its parameters.
    pub(crate) law: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}
