//! The command line, defined once: the parser, the help, the completions and the man pages come from here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// Congestion control for traffic that crosses datacenters: simulate, compare, reproduce.
#[derive(Parser, Debug)]
#[command(name = "narrows", version, propagate_version = true, max_term_width = 110, subcommand_required = true)]
#[command(after_help = "Exit codes: 0 fine, 1 the run failed, 2 usage or input, 3 a regression, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Four flows of 14 us and four of 2 ms share a port under three schemes: the first thing to run.
    Demo(DemoArgs),
    /// Run a scenario file: every scheme at every point of its grid.
    Run(RunArgs),
    /// Run a scenario file at many points: its grid, list and sample, keys and seeds that the command line varies; in shards if
    /// need be. A second call does what is missing.
    Sweep(Box<SweepArgs>),
    /// Find the least buffer at which objectives hold, with thresholds of marks and other settings that are tried beside it.
    Size(Box<SizeArgs>),
    /// Draw metrics of results over a key of their points, with error bars, or a paper's figure as the paper draws it, as PDF, SVG
    /// or PNG. Needs the Python package.
    #[command(disable_help_flag = true)]
    Plot {
        /// What `narrows plot --help` lists.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        words: Vec<OsString>,
    },
    /// Find the values of a scenario's keys at which metrics are least, by Optuna, over several seeds. Needs the Python package.
    #[command(disable_help_flag = true)]
    Tune {
        /// What `narrows tune --help` lists.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        words: Vec<OsString>,
    },
    /// Run a scenario with real packets: its flows as real TCP, or a program, through the scenario's network.
    Emulate(EmulateArgs),
    /// Build a scenario without running it: sizes, round trips, loads, warnings.
    Check(CheckArgs),
    /// Run a paper's experiments and judge its claims.
    Reproduce(ReproduceArgs),
    /// List the control laws and their parameters.
    Laws(LawsArgs),
    /// Begin a control law in a checkout of Narrows: its source, its page, its entries. The workspace builds and passes.
    NewLaw(NewLawArgs),
    /// Measure the engine, the erasure codes, or the transport.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Write the report of a results directory again, from its results alone: without claims, averages and replay command.
    Report(ReportArgs),
    /// Print what a results directory says: the table that its command printed, and means over seeds.
    Show(ShowResultsArgs),
    /// Why the slowest flows of runs are slow: what was counted of them, beside the same of typical flows of their size.
    Explain(ExplainArgs),
    /// Compare two results directories; exit code 3 if the second is worse or lacks a run. With --flows: flow by flow.
    Compare(CompareArgs),
    /// Bring in other programs' files: schedules, topologies, traffic.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Settings of a scenario in a switch's own format.
    #[command(subcommand)]
    Export(ExportCommand),
    /// Run control laws in this machine's own TCP, through BPF.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Measure a transfer over the transport to another machine, under any law.
    Perf(Box<PerfArgs>),
    /// Send files and directories to another machine, where `narrows recv` runs. Goes on where an earlier try was cut off.
    Send(Box<SendArgs>),
    /// Receive files and directories from another machine: prints the ticket that `narrows send` needs.
    Recv(Box<RecvArgs>),
    /// Carry programs' TCP connections over a long link as streams of the transport.
    #[command(subcommand)]
    Proxy(ProxyCommand),
    /// Print the JSON Schema of scenario files.
    Schema,
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory.
    Man {
        /// Where they go; it is made if need be. Earlier pages that nobody edited are replaced, other files are not.
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct NewLawArgs {
    /// Its name in files: lower-case letters, digits and hyphens, as in my-law.
    pub(crate) name: String,
    /// The checkout.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) source: PathBuf,
}

/// What the commands that simulate share.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Override a key of the scenario, as in topology.k=4 or traffic.0.size=64MiB. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// The seed on which everything random depends.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Threads; the results are the same at any number. Default: all cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// The directory for results. Default: out/NAME, by the scenario's name; out/reproduce/SCALE for reproduce.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do all runs, also those that were finished before and are kept in the directory for results.
    #[arg(long)]
    pub(crate) anew: bool,
    /// Check the engine while it runs: queues, records of packets, buffers' books, calendars. Results are the same; it takes
    /// longer. Runs that were finished before are not checked: add --anew.
    #[arg(long)]
    pub(crate) checked: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no table: warnings alone, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A scenario file, and what of it is run.
#[derive(Args, Debug)]
pub(crate) struct FileArgs {
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// One of the scenario's scales, such as quick; of an experiment also paper, which is the file as it stands.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// Run only these schemes.
    #[arg(long = "scheme", value_name = "NAME")]
    pub(crate) schemes: Vec<String>,
}

impl FileArgs {
    /// The words that say the same again.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![self.scenario.display().to_string()];
        let mut say = |option: &str, value: &String| words.extend([option.to_owned(), value.clone()]);
        self.scale.iter().for_each(|scale| say("--scale", scale));
        self.schemes.iter().for_each(|scheme| say("--scheme", scheme));
        words
    }
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
    /// Print the names of the runs, and run nothing.
    #[arg(long)]
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
    #[command(flatten)]
    pub(crate) common: Common,
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
    /// The directory for results. Default: out/NAME-emulated, by the scenario's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do all runs, also those that an interrupted command has finished.
    #[arg(long)]
    pub(crate) anew: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
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
}

#[derive(Subcommand, Debug)]
pub(crate) enum BenchCommand {
    /// Packet-hops per second on three fixed workloads, each also with acknowledgements first, with one thread and two.
    Engine(BenchEngineArgs),
    /// Bytes of data per second that erasure codes protect and repair, on one core, with every kind of vector
    /// instructions that it has: from caches, and from 256 MiB of memory.
    Codes(BenchCodesArgs),
    /// Bits of payload per second of processor time, both ends together, over this machine's loopback: over the transport,
    /// encrypted, in packets of 1,400 and 4,096 bytes, coded and not, and over the kernel's TCP in clear.
    Transport(BenchTransportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BenchTransportArgs {
    /// Only workloads whose name contains this, as in 1400-coded or tcp.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Bytes of each transfer, 64KiB to 64GiB.
    #[arg(long, short = 'n', value_name = "BYTES", default_value = "256MiB")]
    pub(crate) bytes: String,
    /// Rounds, in each of which all workloads take their turn; of each its best round is given.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BenchCodesArgs {
    /// Only workloads whose name contains this, as in 8+2-4096-avx2-hot.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Only this engine: naive, portable, neon, avx2, gfni-256 or gfni-512. Default: all that run here but naive.
    #[arg(long)]
    pub(crate) engine: Option<codes::Engine>,
    /// Runs of each workload, 2 ms each; the best is given.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BenchEngineArgs {
    /// Only workloads whose name contains this.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Runs of each workload; the best is given.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) runs: u16,
    /// Fat trees of 4, 8 and 16 ports a switch too: what doubling the hosts costs.
    #[arg(long)]
    pub(crate) scaling: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure one workload in this process and print its figures: how the command measures memory.
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) measure: Option<String>,
    /// With how many threads.
    #[arg(long, hide = true, default_value_t = 1)]
    pub(crate) threads: usize,
}

#[derive(Args, Debug)]
pub(crate) struct ShowResultsArgs {
    /// A directory that run, demo, sweep, emulate or reproduce wrote, whole or not.
    pub(crate) directory: PathBuf,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// A directory of results, whole or not.
    pub(crate) directory: PathBuf,
    /// One of its runs alone, as in `uno,load=0.4`.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// How many of a class of flows are the slowest, as in 5%. At least one is.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = part)]
    pub(crate) share: f64,
    /// Print it as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// A directory that run, demo or reproduce wrote.
    pub(crate) directory: PathBuf,
    /// Where to write the page; an earlier report is replaced, another file is not. Default: report.html in the directory;
    /// of an unfinished set, in its .next.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(
    after_help = "With --flows this is a view and not a gate: the last column says where the target holds, and the exit code \
    is 0 whatever the differences. Flows of one law, class and base round trip (within 5 %) are interchangeable, so their mean \
    is a row, too.\n\nExamples:\n  narrows compare out/last-week out/today\n  narrows compare out/simulated out/emulated \
    --flows --from 20s"
)]
pub(crate) struct CompareArgs {
    /// The results to hold the others against.
    pub(crate) before: PathBuf,
    /// The other results.
    pub(crate) after: PathBuf,
    /// The largest relative difference that counts as none.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, allow_negative_numbers = true,
          conflicts_with = "flows")]
    pub(crate) tolerance: f64,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Flow by flow over a window of time instead: rates, round trips, mean queues. Never fails on a difference.
    #[arg(long)]
    pub(crate) flows: bool,
    #[command(flatten)]
    pub(crate) sides: SidesArgs,
}

/// What `compare --flows` takes.
#[derive(Args, Debug)]
pub(crate) struct SidesArgs {
    /// Where the window of time begins. Default: after a third of the shorter run.
    #[arg(long, value_name = "TIME", requires = "flows")]
    pub(crate) from: Option<String>,
    /// Where it ends. Default: where the shorter run does.
    #[arg(long, value_name = "TIME", requires = "flows")]
    pub(crate) to: Option<String>,
    /// Write the tables to a file as Markdown, too; an earlier page of them is replaced, another file is not.
    #[arg(long, value_name = "FILE", requires = "flows")]
    pub(crate) page: Option<PathBuf>,
    /// The target for rates: the largest relative difference.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share, requires = "flows",
          allow_negative_numbers = true)]
    pub(crate) rate_tolerance: f64,
    /// The target for mean queueing delays: the largest relative difference.
    #[arg(long, value_name = "SHARE", default_value = "15%", value_parser = share, requires = "flows",
          allow_negative_numbers = true)]
    pub(crate) delay_tolerance: f64,
    /// A difference of mean queueing delays that is within the target whatever its share.
    #[arg(long, value_name = "TIME", default_value = "500us", requires = "flows")]
    pub(crate) delay_floor: String,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// A connection matrix (.cm), and a topology (.topo) if there is one, of htsim.
    Htsim(ImportHtsimArgs),
    /// A topology, flows and, if there is one, a configuration of HPCC's ns-3 simulator.
    Hpcc(ImportHpccArgs),
    /// A GOAL schedule of LogGOPSim or ATLAHS, text or binary.
    Goal(ImportGoalArgs),
    /// Chakra execution traces, a file a rank.
    Chakra(ImportChakraArgs),
    /// A collective algorithm of MSCCL, in XML.
    Msccl(ImportMscclArgs),
    /// A training workload of SimAI, as AICB writes it.
    Simai(ImportSimaiArgs),
    /// Flows as CSV: start,from,to,bytes.
    Flows(ImportTrafficArgs),
    /// Flow records as CSV, as nfdump writes them.
    Netflow(ImportTrafficArgs),
    /// A capture, pcap or pcapng: a flow for each direction of each TCP and UDP flow in it.
    Pcap(ImportTrafficArgs),
    /// A network in GraphML, as the Internet Topology Zoo and networkx write it.
    Graphml(ImportGraphArgs),
    /// A network as CSV: from,to,rate,delay.
    Links(ImportGraphArgs),
    /// A lab of containerlab.
    Containerlab(ImportGraphArgs),
    /// A network in SNDlib's native format.
    Sndlib(ImportSndlibArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ImportSndlibArgs {
    /// What one unit of a capacity is, such as 1Mbps; the format gives it none.
    #[arg(long, value_name = "RATE")]
    pub(crate) unit: Option<String>,
    #[command(flatten)]
    pub(crate) graph: ImportGraphArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGraphArgs {
    /// The network.
    pub(crate) graph: PathBuf,
    /// The rate of links of which the file says none, such as 10Gbps.
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// The delay of links of which the file says none, such as 2ms.
    #[arg(long)]
    pub(crate) delay: Option<String>,
    /// How many hosts each switch gets. A place of a wide-area network has one, switches of a lab with hosts none.
    #[arg(long, value_name = "N")]
    pub(crate) hosts: Option<std::num::NonZeroU16>,
    /// The rate of their links; that of the fastest link if not given.
    #[arg(long, value_name = "RATE")]
    pub(crate) host_rate: Option<String>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Where imported traffic goes, and what is written.
#[derive(Args, Debug)]
pub(crate) struct ImportOnto {
    /// The scenario whose network, ports, hosts and schemes are used; its traffic is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ImportTrafficArgs {
    /// The traffic.
    pub(crate) traffic: PathBuf,
    /// How to place senders and receivers whose names are not names of hosts, in order of appearance.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

/// On which hosts ranks are, or whoever sends and receives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// Even parts of them, in order, in each datacenter.
    Block,
    /// Each in the datacenter after the last one's.
    Cyclic,
    /// Rank 0 on host 0, rank 1 on host 1, and so on.
    Packed,
}

#[derive(Args, Debug)]
pub(crate) struct ImportChakraArgs {
    /// The traces, one for each rank; in the order of the numbers in their names, if these are 0, 1 and so on.
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Groups of ranks that collectives name, as JSON: {"0": [0, 1], "1": [2, 3]}.
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportMscclArgs {
    /// The algorithm.
    pub(crate) algorithm: PathBuf,
    /// What the algorithm works on, in all its chunks together, such as 64MiB.
    #[arg(long)]
    pub(crate) size: String,
    /// On which hosts GPUs are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportSimaiArgs {
    /// The workload.
    pub(crate) workload: PathBuf,
    /// How many passes there are, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) passes: u32,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGoalArgs {
    /// The schedule.
    pub(crate) schedule: PathBuf,
    /// Sends up to this size have ended once they have begun, others once they are acknowledged; LogGOPSim's S.
    #[arg(long, value_name = "SIZE", default_value = "65535B")]
    pub(crate) eager: String,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ExportCommand {
    /// Tables of a SONiC switch: marking, buffers, pauses, and headroom by SONiC's formula, tried in simulation.
    Sonic(ExportSonicArgs),
    /// A run as a timeline for ui.perfetto.dev: flows, collective operations, failures, queues, windows, rates.
    Perfetto(ExportPerfettoArgs),
    /// A sampled flow of a run as a log in qlog's format: its window, round trips, bytes and its law's own numbers.
    Qlog(ExportQlogArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ExportQlogArgs {
    /// A directory of results.
    pub(crate) directory: PathBuf,
    /// Which of its runs, as in `uno,load=0.4`. Needed where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The flow's number. Needed where several were sampled.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) flow: Option<u32>,
    /// The file; an earlier log is replaced, another file is not.
    #[arg(long, short, value_name = "FILE", default_value = "flow.sqlog")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportPerfettoArgs {
    /// A directory of results.
    pub(crate) directory: PathBuf,
    /// Which of its runs, as in `uno,load=0.4`. Needed where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The file; an earlier trace is replaced, another file is not.
    #[arg(long, short, value_name = "FILE", default_value = "trace.pftrace")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  narrows export sonic scenarios/lossless.toml --scheme dcqcn --switch dc0.pod0.edge0 >edge.json\n  \
    sonic-cfggen -j edge.json --write-to-db"
)]
pub(crate) struct ExportSonicArgs {
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// The scheme whose ports and switches are meant; by default the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// The switch; by default the first at a link between datacenters, else the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) switch: Option<String>,
    /// The switch chip, which the formula asks for.
    #[arg(long, value_name = "NAME", default_value = "spectrum-3",
        value_parser = PossibleValuesParser::new(sonic::ASICS.map(|asic| asic.name)))]
    pub(crate) asic: String,
    /// Bytes of a cell of the chip, if not as SONiC states them.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) cell: Option<u64>,
    /// The priorities of the traffic, with commas between them.
    #[arg(long, value_name = "LIST", default_value = "3", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) priorities: Vec<u8>,
    /// The MTU of ports, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9_100, value_parser = clap::value_parser!(u64).range(64..=65535))]
    pub(crate) mtu: u64,
    /// The share of packets of 64 bytes among lossless ones, in per cent, which the formula asks for.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(crate) small_packets: u64,
    /// Ports of this speed or more, in Gb/s, have eight lanes, which the formula asks for.
    #[arg(long, value_name = "GBPS", default_value_t = 400)]
    pub(crate) eight_lanes_from: u64,
    /// What a gearbox delays, in the formula's own unit (speed times delay over 8 KiB).
    #[arg(long, value_name = "DELAY", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=65535))]
    pub(crate) gearbox: u64,
    /// Marks have thresholds of their own, as in SONiC's model from 2026-06-23 on.
    #[arg(long)]
    pub(crate) marks_apart: bool,
    /// Override a key of the scenario. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHpccArgs {
    /// The topology.
    pub(crate) topology: PathBuf,
    /// The flows.
    pub(crate) flows: PathBuf,
    /// The configuration.
    pub(crate) config: Option<PathBuf>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHtsimArgs {
    /// The connection matrix.
    pub(crate) matrix: PathBuf,
    /// The topology.
    pub(crate) topology: Option<PathBuf>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Subcommand, Debug)]
pub(crate) enum KernelCommand {
    /// Load a law into the kernel; it stays until it is unloaded or the machine restarts.
    Load(KernelLoadArgs),
    /// What is loaded, who uses it, and the state of every socket that runs it.
    Status(KernelStatusArgs),
    /// Take laws out of the kernel again, and put back what was there before.
    Unload(KernelUnloadArgs),
    /// Look whether this machine can run laws in its kernel, and say what is missing.
    Doctor(KernelDoctorArgs),
    /// Write the BPF objects of this build into a directory, for machines without clang.
    Export {
        /// Where they go; it is made if need be. Earlier objects are replaced, other files are not.
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct KernelLoadArgs {
    /// Which law.
    pub(crate) law: String,
    /// Make it the default of this network namespace.
    #[arg(long)]
    pub(crate) default: bool,
    /// Make it the default of another network namespace, by its name or path. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Vec<String>,
    /// Use it for connections over one route that is there, of IPv4 or IPv6, as in 10.0.0.0/8. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) route: Vec<String>,
    /// Use it for sockets of a cgroup (version 2), by its directory. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// A parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
    /// Rate of the narrowest link that flows will cross: laws scale with it.
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    pub(crate) line_rate: String,
    /// Base round trip of all flows. Default: what a flow's handshake takes, then the least that it sees.
    #[arg(long, value_name = "TIME")]
    pub(crate) base_rtt: Option<String>,
    /// Base round trip inside a datacenter.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub(crate) intra_rtt: String,
    /// Its name in the kernel, at most 15 bytes. Default: `narrows_LAW`.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Keep it only while this command runs: until Ctrl-C.
    #[arg(long)]
    pub(crate) hold: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelStatusArgs {
    /// Only this law.
    pub(crate) law: Option<String>,
    /// Show it anew every second, until Ctrl-C.
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelUnloadArgs {
    /// Which laws.
    #[arg(required_unless_present = "all")]
    pub(crate) laws: Vec<String>,
    /// All that are loaded.
    #[arg(long, conflicts_with = "laws")]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelDoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "A duration is a number of seconds, or has a unit: 500ms, 10s, 5min, 2h, 1d. Bytes may have k, M, G or T (of \
    1000) or KiB, MiB, GiB or TiB.\n\nExamples:\n  narrows perf --listen 0.0.0.0        # prints a ticket\n  narrows perf \
    @ticket --time 30 --law bbr\n  narrows perf - --bytes 4G --reverse --streams 4 < ticket",
    mut_arg("keep", needs_listen),
    mut_arg("valid", needs_listen),
    mut_arg("addresses", needs_listen),
    mut_arg("allow", needs_listen),
    mut_arg("threads", needs_listen),
    mut_arg("fingerprint", |arg| arg.conflicts_with("listen"))
)]
pub(crate) struct PerfArgs {
    /// Whom to call: a ticket, @FILE that has one, - for standard input, or an address with --fingerprint or --insecure. Other
    /// users of this machine see its command lines, so keep tickets in files.
    #[arg(value_name = "TICKET|ADDR", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) peer: Option<String>,
    /// Wait for a caller at this address, and print a ticket that lets one in. Without a port: 4700.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Send for so long. Default: 10.
    #[arg(long, short = 't', value_name = "DURATION", conflicts_with_all = ["listen", "bytes"])]
    pub(crate) time: Option<String>,
    /// Send so many bytes, over all streams; with --messages: in each.
    #[arg(long, short = 'n', value_name = "BYTES", conflicts_with = "listen")]
    pub(crate) bytes: Option<String>,
    /// Send so many messages instead, one at a time on the idle connection, each of --bytes (100k if nothing is said), and say
    /// how long they took until this end knew that they were delivered.
    #[arg(long, value_name = "N", conflicts_with_all = ["listen", "time", "reverse", "streams"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) messages: Option<u32>,
    /// The listener sends, by the law that it was started with.
    #[arg(long, short = 'R', conflicts_with_all = ["listen", "law", "params", "line_rate"])]
    pub(crate) reverse: bool,
    /// Streams at a time.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) streams: u16,
    /// Paths at a time, each from a port of its own.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// How often a line says how it goes.
    #[arg(long, short = 'i', value_name = "DURATION", default_value = "1", conflicts_with = "listen")]
    pub(crate) interval: String,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long, short = 'J', conflicts_with = "listen")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) desk: DeskArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "narrows send [OPTIONS] PATH... TICKET|ADDR",
    after_help = "Exit codes: 0 all is on the receiver's disk, 1 something is not, 2 usage or input, 130 interrupted.\n\nExamples:\n  \
    narrows send photos notes.txt @ticket\n  ssh there narrows recv inbox | narrows send photos -",
    mut_arg("insecure", |arg| arg.help("Take any listener for the right one"))
)]
pub(crate) struct SendArgs {
    /// Files and directories, each known by its last name at the receiver; and last, whom to send to: a ticket, @FILE that has
    /// one, - for a line on standard input, or an address with --fingerprint or --insecure. Other users of this machine see
    /// its command lines, so keep tickets in files.
    #[arg(value_name = "PATH... TICKET|ADDR", required = true)]
    pub(crate) words: Vec<PathBuf>,
    /// Compare files of equal size by their hashes, and not by their times.
    #[arg(long, short = 'c')]
    pub(crate) checksum: bool,
    /// Paths at a time, each from a port of its own.
    #[arg(long = "paths", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all is on the disk, 1 something is not, 2 usage or input, 130 interrupted.\n\nExamples:\n  narrows \
    recv inbox > ticket\n  narrows recv inbox --listen 192.0.2.1:4800 --keep",
    mut_arg("law", |arg| arg.hide(true)),
    mut_arg("params", |arg| arg.hide(true)),
    mut_arg("one_law", |arg| arg.hide(true)),
    mut_arg("on_ramp", |arg| arg.hide(true)),
    mut_arg("line_rate", |arg| arg.hide(true)),
    mut_arg("coding", |arg| arg.hide(true)),
)]
pub(crate) struct RecvArgs {
    /// Where files go; it is made if need be. Nothing is written outside of it.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Wait for the sender at this address. Without a port: 4700.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0")]
    pub(crate) listen: String,
    /// Replace files that are there and differ. Without, they stay, and those of the sender are refused.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) desk: DeskArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

/// How a transfer of files is shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShowArgs {
    /// No progress and no summary: what failed alone, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print what came of it as JSON on standard output; a receiver's ticket comes first.
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ProxyCommand {
    /// The end where destinations are: listens, and connects to what its rules allow.
    Far(Box<FarArgs>),
    /// The end where programs are: takes their connections by SOCKS, at forwarded ports, or redirected by the kernel.
    Near(Box<NearArgs>),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Rules are HOST:PORTS: a name, an address, a network or *; a port, a range or *. A name leads to no loopback or \
    link-local address, and * has none: name these by address.\n\nExamples:\n  narrows proxy far --listen 0.0.0.0 --allow \
    '*:443' --allow 10.1.0.0/16:5201-5210 > ticket\n  narrows proxy far --listen 0.0.0.0 --ticket \
    /var/lib/narrows/ticket --allow files.example.org:873",
    mut_arg("window", |arg| arg.default_value("64MiB"))
)]
pub(crate) struct FarArgs {
    /// Wait for near ends at this address, and print a ticket that lets them in. Without a port: 4700.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: String,
    /// Connect to where this rule says. Without rules no connection is made. May be repeated.
    #[arg(long, value_name = "HOST:PORTS")]
    pub(crate) allow: Vec<String>,
    /// Let in the near end that has this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow_caller: Vec<String>,
    /// Let in anyone who reaches this address.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Keep the ticket in this file, so that near ends come in again after a restart. It is made if need be, for its owner
    /// alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket: Option<PathBuf>,
    /// How long a new ticket is valid. Default: it does not end.
    #[arg(long, value_name = "DURATION")]
    pub(crate) valid: Option<String>,
    /// An address for the ticket. Without, those that the listener has are found. May be repeated.
    #[arg(long = "address", value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
    /// Threads over which connections are spread, each on one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
    /// Say what becomes of each connection.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Without a host, an address is at 127.0.0.1: 1080 is 127.0.0.1:1080.\n\nExamples:\n  narrows proxy near @ticket \
    --socks 1080\n  narrows proxy near @ticket --forward 5201=server.example:5201\n  narrows proxy near @ticket \
    --transparent 1081    # as root; see the book for the redirection",
    group(ArgGroup::new("entrances").args(["socks", "forward", "transparent"]).required(true).multiple(true)),
    mut_arg("window", |arg| arg.default_value("64MiB")),
    mut_arg("insecure", |arg| arg.help("Take any listener for the right one"))
)]
pub(crate) struct NearArgs {
    /// The far end: a ticket, @FILE that has one, - for standard input, or an address with --fingerprint or --insecure. Other
    /// users of this machine see its command lines, so keep tickets in files.
    #[arg(value_name = "TICKET|ADDR")]
    pub(crate) peer: String,
    /// Take connections by SOCKS 5 at this address. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) socks: Vec<String>,
    /// Take connections at this address, all for one destination. May be repeated.
    #[arg(long, value_name = "ADDR=HOST:PORT")]
    pub(crate) forward: Vec<String>,
    /// Take connections that the kernel redirects to this address, for where they were to go. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) transparent: Vec<String>,
    /// Paths at a time, each from a port of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// Say what becomes of each connection.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

/// Whether a caller knows its listener.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// The key that the listener must have.
    #[arg(long, value_name = "SHA256:...", conflicts_with = "insecure")]
    pub(crate) fingerprint: Option<String>,
    /// Take any listener for the right one; with --listen: let anyone in.
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Whom a listener lets in.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeskArgs {
    /// The ticket lets its holder in more than once, and the listener goes on after the first one.
    #[arg(long)]
    pub(crate) keep: bool,
    /// How long the ticket is valid.
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    pub(crate) valid: String,
    /// An address for the ticket. Without, those that the listener has are found. May be repeated.
    #[arg(long = "address", value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
    /// Let in the caller that has this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow: Vec<String>,
    /// Threads over which connections are spread, each on one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
}

/// How an end sends, and who it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct EndArgs {
    /// The law by which this end sends; each path has one. `narrows laws` lists them. Default: bbr
    /// with an initial window of 128 kB, which losses do not hold.
    #[arg(long, value_name = "NAME")]
    pub(crate) law: Option<String>,
    /// One law for all paths of a connection, which takes them for one path, instead of one for each.
    #[arg(long)]
    pub(crate) one_law: bool,
    /// A parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "law")]
    pub(crate) params: Vec<String>,
    /// Hold packets while the one-way delay is over the least of late by more than this, as in 2ms: On-Ramp, under any law.
    #[arg(long, value_name = "THRESHOLD", allow_hyphen_values = true)]
    pub(crate) on_ramp: Option<String>,
    /// Rate of the narrowest link that the transfer will cross: laws scale with it. Default: 10Gbps.
    #[arg(long, value_name = "RATE")]
    pub(crate) line_rate: Option<String>,
    /// Which packets this end codes, so that the other one can rebuild lost ones: off, all in blocks of k data and m
    /// parity packets (8,2), tail (the last round trip of what ends), or auto (as tail, as losses and a budget of 10 %
    /// have it; auto=5%).
    #[arg(long, value_name = "CODING", default_value = "auto")]
    pub(crate) coding: String,
    /// The longest UDP payload that is tried, in bytes. Default: 1472; with --listen: the caller's.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1_200..=65_527))]
    pub(crate) packet: Option<u16>,
    /// Bytes of each stream that may be under way: at least the rate times the round trip.
    #[arg(long, short = 'w', value_name = "BYTES", default_value = "64MiB")]
    pub(crate) window: String,
    /// Give up after so long without a sign of the peer, 1 to 600 s; the shorter of both ends' counts.
    #[arg(long, value_name = "DURATION", default_value = "30")]
    pub(crate) idle: String,
    /// The file with this machine's key; it is made if need be. Default: `narrows/identity` in
    /// `$XDG_STATE_HOME` or `~/.local/state`.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Write what happens in each connection to a file of its own in this directory, in qlog's format: packets, losses, what the
    /// law does. The directory is made if need be.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// An option of a command that also calls: only a listener has it.
fn needs_listen(option: clap::Arg) -> clap::Arg {
    // What is required is not asked for where something else rules it out, as whom to call does with --listen.
    option.requires("listen").conflicts_with("peer")
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("`{text}` is not KEY=VALUE, as in topology.k=4")),
    }
}

/// A number, or a percentage as one.
fn hundredths(text: &str) -> Option<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    number.trim().parse::<f64>().ok().map(|number| number / unit)
}

/// A part of all, as a number or in percent.
fn part(text: &str) -> Result<f64, String> {
    let said = || format!("{text} is not a part of all, over 0 and at most 1, such as 0.05 or 5%");
    hundredths(text).filter(|part| *part > 0.0 && *part <= 1.0).ok_or_else(said)
}

/// A relative difference, as a number or in percent.
fn share(text: &str) -> Result<f64, String> {
    let said = || format!("{text} is not a relative difference from 0 to 10, such as 0.05 or 5%");
    hundredths(text).filter(|share| (0.0..=10.0).contains(share)).ok_or_else(said)
}

/// A seed from 0 to 2^63 - 1, the largest whole number that a scenario file can hold.
fn seed(text: &str) -> Result<u64, String> {
    let most = i64::MAX as u64;
    text.parse().ok().filter(|&seed| seed <= most).ok_or_else(|| format!("a seed is a whole number from 0 to {most}"))
}

fn host_command(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((host, command)) if !host.is_empty() && !command.trim().is_empty() => {
            Ok((host.to_owned(), command.to_owned()))
        }
        _ => Err(format!("`{text}` is not HOST=COMMAND, as in 'right.host0=iperf3 -s'")),
    }
}

fn port_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((port, file)) if !port.is_empty() && !file.is_empty() => Ok((port.to_owned(), file.into())),
        _ => Err(format!("`{text}` is not PORT=FILE, as in 'left>right=long-haul.pcapng'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_override_needs_a_key() {
        assert_eq!(key_value("a.b = 3"), Ok(("a.b".into(), "3".into())));
        assert!(key_value("=3").is_err() && key_value("ab").is_err());
    }
}
