//! The command line, defined once: the parser, the help, the completions and the man pages come from here.

mod bench;
mod export;
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
pub(crate) use export::*;
pub(crate) use import::*;
pub(crate) use kernel::*;
pub(crate) use python::*;
pub(crate) use results::*;
pub(crate) use study::*;
pub(crate) use transport::*;
use values::{key_value, seed};

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
    /// Choose a law, a buffer and thresholds: the least buffer with which each scheme holds objectives, and the schemes' scores
    /// there, with what was assumed.
    Choose(Box<ChooseArgs>),
    /// Draw metrics of results over a key of their points, with error bars, or a paper's figure as the paper draws it, as PDF, SVG
    /// or PNG. Needs the Python package.
    Plot(Box<PlotArgs>),
    /// Find the values of a scenario's keys at which metrics are least, by Optuna, over several seeds. Needs the Python package.
    Tune(Box<TuneArgs>),
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
    /// Explain why the slowest flows are slow: their runs are simulated again, and causes are ranked by their share of the time beyond
    /// the ideal.
    Explain(ExplainArgs),
    /// Schemes in one number each: their metrics over the best of some schemes, over all points and seeds.
    Score(ScoreArgs),
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

/// What the commands that simulate share.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Override a key of the scenario, as in topology.k=4 or traffic.0.size=64MiB. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// The seed on which everything random depends.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Threads at most; the results are the same at any number. Several run a simulation where datacenters are far enough
    /// apart that it is worth it. Default: all cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// The directory for results. Default: out/NAME, by the scenario's name; out/reproduce/SCALE for reproduce.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do all runs, also those that were finished before, and replace finished runs of other settings in the directory for
    /// results. Without it they are kept, and a command that would lose some is refused.
    #[arg(long)]
    pub(crate) anew: bool,
    /// Check the engine while it runs: queues, records of packets, buffers' books, calendars, and that counters agree. Results
    /// are the same; it takes up to twice as long. Runs that were finished before are not checked: add --anew.
    #[arg(long)]
    pub(crate) checked: bool,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// No progress and no table: warnings alone, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

impl Common {
    /// Returns true if neither progress nor tables are to be shown.
    pub(crate) fn is_silent(&self) -> bool {
        self.quiet || self.json || self.csv.is_asked()
    }
}

/// Stands for the first table.
const FIRST: &str = "";

/// Tables as CSV.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CsvArgs {
    /// Print one of the tables as CSV on standard output, and nothing else there: the first one, or that of this name; a name that
    /// is not there lists all. Values are in base units (ns, bytes, bps).
    #[arg(long, value_name = "TABLE", num_args = 0..=1, require_equals = true, default_missing_value = FIRST,
          conflicts_with = "json")]
    csv: Option<String>,
}

impl CsvArgs {
    /// Returns true if a table is to be printed as CSV.
    pub(crate) fn is_asked(&self) -> bool {
        self.csv.is_some()
    }

    /// The table's name, if one was given.
    pub(crate) fn table(&self) -> Option<&str> {
        self.csv.as_deref().filter(|name| *name != FIRST)
    }
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
