//! The command line, defined once: the parser, the help, the completions and the man pages come from here.

mod bench;
mod clocks;
mod export;
mod groups;
mod import;
mod kernel;
mod python;
mod results;
mod study;
mod transport;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use bench::*;
pub(crate) use clocks::*;
pub(crate) use export::*;
pub(crate) use import::*;
pub(crate) use kernel::*;
pub(crate) use python::*;
pub(crate) use results::*;
pub(crate) use study::*;
pub(crate) use transport::*;
use values::{key_value, seed};

/// Version that `--version` prints. A build without the feature `bpf` has no objects to load into the kernel.
const LONG_VERSION: &str = if cfg!(feature = "bpf") {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (without the kernel part)")
};

/// Simulate, emulate and run congestion control across datacenters.
#[derive(Parser, Debug)]
#[command(name = "narrows", version, long_version = LONG_VERSION, propagate_version = true)]
#[command(max_term_width = 110, subcommand_required = true)]
#[command(
    after_help = "Start with `narrows demo`, then `narrows run FILE`. `narrows help COMMAND` describes a command.\n\n\
    Exit codes: 0 fine, 1 the run failed, 2 usage or input, 3 a regression, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a built-in example in seconds: the first command to try.
    ///
    /// Four flows with an RTT of 14 us and four with an RTT of 2 ms, 1 GiB each, share a 100 Gb/s port to one receiver,
    /// under three schemes: Uno, GEMINI, and MPRDMA with BBR. Prints a table and writes an HTML report.
    Demo(DemoArgs),
    /// Run a scenario file and print its results.
    ///
    /// Simulates every scheme at every point of the file's grid, prints a table, and writes all results and an HTML
    /// report to a directory. Finished runs are kept: the same command again runs only what is missing.
    Run(RunArgs),
    /// Run a scenario over many points and seeds, also on many machines.
    ///
    /// Like `narrows run`; can also split the runs into shards for several machines, list them, or submit them to a Ray
    /// cluster. The points are those of the file (`[grid]`, `[[points]]`, `[random_points]`) or of --vary and --seeds. The
    /// same command again runs only what is missing.
    Sweep(Box<SweepArgs>),
    /// Find the smallest buffer that meets the objectives.
    ///
    /// Searches for the smallest value of a key, by default the buffer of ports or switches, at which all objectives
    /// (--slo) hold. Tries other settings with it, such as ECN marking thresholds (--vary). Exit code 1 if no value
    /// meets the objectives.
    Size(Box<SizeArgs>),
    /// Recommend a control law, buffer size and marking thresholds.
    ///
    /// Runs and scores all schemes as the file is written, finds the smallest buffer and the settings with which each
    /// scheme meets the objectives, and scores each scheme again at its settings. Prints the recommendation and all
    /// assumptions. Exit code 1 if no scheme meets the objectives.
    Choose(Box<ChooseArgs>),
    /// Plot metrics of results as PDF, SVG or PNG.
    ///
    /// Plots metrics over a key of the runs, with 95 % confidence intervals over seeds, or a paper's figure the way the
    /// paper shows it. Needs the Python package.
    Plot(Box<PlotArgs>),
    /// Optimize keys of a scenario, such as law parameters, with Optuna.
    ///
    /// Finds the values of keys at which metrics are lowest or highest, each averaged over runs and seeds. The same
    /// command again continues the search. Needs the Python package.
    Tune(Box<TuneArgs>),
    /// Run a scenario with real packets, on this machine.
    ///
    /// Each host is a network namespace; packets cross the scenario's ports, buffers and links in real time. Flows are
    /// TCP connections of the kernel, or connections of the Narrows transport (--stack). A program such as iperf3 can
    /// replace them.
    Emulate(EmulateArgs),
    /// Validate a scenario without running it.
    ///
    /// Prints what the file amounts to: sizes, base RTTs, link loads and warnings. Exit code 2 if the file has errors.
    Check(CheckArgs),
    /// Run a paper's experiments and judge its claims.
    ///
    /// Scenario files of published experiments list the papers' claims. Each claim is judged over several seeds. Exit
    /// code 3 if a verdict is worse than the one recorded in the file.
    Reproduce(ReproduceArgs),
    /// List the control laws and their parameters.
    Laws(LawsArgs),
    /// Create the source files of a new control law.
    ///
    /// Adds a skeleton and a documentation page to a checkout of Narrows and registers them. The workspace then builds
    /// and passes its tests.
    NewLaw(NewLawArgs),
    /// Measure the speed of the simulator, erasure codes or transport.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Rebuild the HTML report from stored results.
    ///
    /// The new page lacks what only the original command has: claims, tables of averages and the replay command.
    Report(ReportArgs),
    /// Print the tables of a results directory.
    ///
    /// Prints the table that `narrows run` or another command printed at its end, and means over seeds. Simulates
    /// nothing.
    Show(ShowResultsArgs),
    /// Explain why the slowest flows are slow.
    ///
    /// Simulates their runs again and ranks the causes by their share of the excess, the completion time beyond the
    /// ideal one.
    Explain(ExplainArgs),
    /// Rank schemes by one score each, relative to the best ones.
    ///
    /// Each ratio is a scheme's mean of a metric at a point, over the lowest mean among the baseline's schemes. G is
    /// the geometric mean of all ratios, W the largest one; lower is better. Default baseline: the schemes of the
    /// directory.
    Score(ScoreArgs),
    /// Compare two results directories and report regressions.
    ///
    /// Exit code 3 if a metric of the second one is worse by more than --tolerance, if it lacks a run of the first one,
    /// or if either one is unfinished. With --flows: compare flow by flow instead.
    Compare(CompareArgs),
    /// Convert topologies and traffic of other tools into scenario files.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Export switch settings, timelines of runs, or flow logs.
    #[command(subcommand)]
    Export(ExportCommand),
    /// Run control laws in this machine's TCP, through BPF.
    ///
    /// Loading a law needs root and Linux 6.10 or later; `narrows kernel doctor` reports what is missing.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Measure throughput to another machine over the Narrows transport.
    ///
    /// Like iperf3, but for the Narrows transport (UDP, encrypted) under a control law of your choice. Start it with
    /// --listen on one machine; it prints a ticket, which the other machine needs to connect.
    Perf(Box<PerfArgs>),
    /// Send files and directories to a machine that runs `narrows recv`.
    ///
    /// An interrupted transfer resumes: the same command again sends only what is missing.
    Send(Box<SendArgs>),
    /// Receive files and directories from `narrows send`.
    ///
    /// Prints a ticket, which the sender needs to connect.
    Recv(Box<RecvArgs>),
    /// Carry TCP connections of programs over a long link.
    ///
    /// Each connection crosses the link as a stream of the Narrows transport. Run `narrows proxy server` where the servers
    /// are, and `narrows proxy client` where the programs are.
    #[command(subcommand)]
    Proxy(ProxyCommand),
    /// Synchronise the clocks of hosts, with a bound of the error.
    #[command(subcommand)]
    Clocks(ClocksCommand),
    /// Print the JSON Schema of scenario files.
    Schema,
    /// Print a shell completion script.
    Completions {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory.
    Man {
        /// Output directory; created if missing.
        ///
        /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
        directory: PathBuf,
    },
}

/// Options of all commands that simulate.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Override a key of the scenario, as in topology.k=4 or traffic.0.size=64MiB.
    ///
    /// Array elements are selected by index. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of all random choices.
    ///
    /// A whole number from 0 to 2^63 - 1. Default: the scenario's `seed`.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Maximum number of threads, 1 to 1024; results do not depend on it.
    ///
    /// Each run has a thread of its own. If there are fewer runs than threads, one run at a time uses all of them,
    /// provided that its datacenters are far enough apart. Default: all cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Results directory.
    ///
    /// Default: out/NAME, from the scenario's name; out/NAME-I-of-N for a shard; out/NAME-size for size and choose;
    /// out/reproduce/SCALE for reproduce.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run everything again, and replace finished runs.
    ///
    /// Also replaces finished runs of other settings in the results directory. Without this option, finished runs are
    /// kept, and a command that would discard some is refused.
    #[arg(long)]
    pub(crate) force: bool,
    /// Check the simulator's invariants while it runs.
    ///
    /// Covers queues, packet records, buffer accounting, event calendars and counters. Results are the same; a run
    /// takes up to twice as long. Runs that are already finished are not checked: add --force.
    #[arg(long)]
    pub(crate) check_invariants: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Print only warnings and errors, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Show all columns of tables, even if they are wider than the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

/// Columns of a table that are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Columns {
    /// The columns that fit the terminal.
    Fitted,
    /// All.
    All,
}

impl Common {
    /// Returns the columns of tables that are shown.
    pub(crate) fn columns(&self) -> Columns {
        if self.wide { Columns::All } else { Columns::Fitted }
    }

    /// Returns true if neither progress nor tables are to be shown.
    pub(crate) fn is_silent(&self) -> bool {
        self.quiet || self.json || self.csv.is_requested()
    }
}

/// Stands for the first table.
const FIRST: &str = "";

/// Tables as CSV.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CsvArgs {
    /// Print a table as CSV on standard output, and nothing else there.
    ///
    /// Without TABLE, the first table. An unknown name lists the tables. Values are in base units (ns, bytes, bps).
    #[arg(long, value_name = "TABLE", num_args = 0..=1, require_equals = true, default_missing_value = FIRST,
          conflicts_with = "json")]
    csv: Option<String>,
}

impl CsvArgs {
    /// Returns true if a table is to be printed as CSV.
    pub(crate) fn is_requested(&self) -> bool {
        self.csv.is_some()
    }

    /// The table's name, if one was given.
    pub(crate) fn table(&self) -> Option<&str> {
        self.csv.as_deref().filter(|name| *name != FIRST)
    }
}

/// A scenario file, and the selection of its runs.
#[derive(Args, Debug)]
pub(crate) struct FileArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    /// Apply a scale of the file (`[scale.NAME]`), such as quick.
    ///
    /// For files of papers' experiments, `paper` is the file as written. Default: the file as written.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// Run only this scheme. May be repeated.
    #[arg(long = "scheme", value_name = "NAME")]
    pub(crate) schemes: Vec<String>,
}

impl FileArgs {
    /// Returns the command-line arguments that select the same runs.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![self.scenario.display().to_string()];
        let mut push_option = |option: &str, value: &String| words.extend([option.to_owned(), value.clone()]);
        self.scale.iter().for_each(|scale| push_option("--scale", scale));
        self.schemes.iter().for_each(|scheme| push_option("--scheme", scheme));
        words
    }
}
