//! Commands that look at results.

use std::path::PathBuf;

use clap::Args;

use super::CsvArgs;
use super::values::{key_value, part, share};

#[derive(Args, Debug)]
pub(crate) struct ShowResultsArgs {
    /// A directory that run, demo, sweep, emulate or reproduce wrote, whole or not.
    pub(crate) directory: PathBuf,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The runs are simulated again to see what the flows waited for, twice each. By default that is done of one run \
    of each of the two groups whose slowest flows are slowest.\n\nExamples:\n  narrows explain out/mine --only scheme=gemini \
    --class inter\n  narrows explain out/mine --run uno,load=0.4,seed=1 --flow 812"
)]
pub(crate) struct ExplainArgs {
    /// A directory of results, whole or not.
    pub(crate) directory: PathBuf,
    /// One of its runs alone, as in `uno,load=0.4,seed=1`; keys may be shortened to their last parts. Default: each scheme at each
    /// point, all seeds together.
    #[arg(long, value_name = "NAME", conflicts_with = "only")]
    pub(crate) run: Option<String>,
    /// Explain runs of this value of a key alone, as in `scheme=gemini` or `load=40%`; of a key given twice, of either value.
    /// `none` is of runs without the key.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) only: Vec<(String, String)>,
    /// Explain flows of this class alone.
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<ClassArg>,
    /// Group flows by the scenario's size bins (`[sizes]`), not by class.
    #[arg(long, conflicts_with = "traits")]
    pub(crate) bins: bool,
    /// Explain the flow of this number alone.
    #[arg(long, value_name = "N", conflicts_with_all = ["traits", "bins", "class"])]
    pub(crate) flow: Option<u32>,
    /// Explain all groups and all of their slowest flows, however long that takes.
    #[arg(long, conflicts_with_all = ["traits", "flow"])]
    pub(crate) all: bool,
    /// Share of a group's flows that counts as the slowest, as in 5%; at least one flow.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = part)]
    pub(crate) share: f64,
    /// Compare what was counted of the slowest flows with typical ones of their size. Nothing is simulated again.
    #[arg(long)]
    pub(crate) traits: bool,
    /// The directory that has the files which the scenario names.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) inputs: PathBuf,
    /// Number of threads. Default: one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print it as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// A class of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum ClassArg {
    /// Inside a datacenter.
    Intra,
    /// Between datacenters.
    Inter,
}

impl From<ClassArg> for results::Class {
    fn from(class: ClassArg) -> Self {
        match class {
            ClassArg::Intra => Self::Intra,
            ClassArg::Inter => Self::Inter,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ScoreArgs {
    /// A directory of results.
    pub(crate) directory: PathBuf,
    /// A metric of a run, less being better, as in `p99(inter.slowdown)`; may be repeated. Default: the median and the
    /// p99 of the slowdown of each size bin, or of each class of flows.
    #[arg(long, value_name = "METRIC")]
    pub(crate) cell: Vec<String>,
    /// Score runs of this value of a key alone, as in `load=40%` or `variant=far`; of a key given twice, of either value. `none`
    /// is of runs without the key.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) only: Vec<(String, String)>,
    /// Baseline: results, a file of --write, or the values of a figure's tables (papers/PAPER/values). Default: the
    /// schemes of the directory.
    #[arg(long, value_name = "RESULTS")]
    pub(crate) against: Option<PathBuf>,
    /// A scheme that is no part of the reference, as a law of your own: it is scored by the best of the others, and they as if
    /// it were not there. May be repeated.
    #[arg(long, value_name = "SCHEME")]
    pub(crate) newcomer: Vec<String>,
    /// Keep the best of each metric, point and seed in this file, for --against and for tuning.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print it as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// All columns of the table, however narrow the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
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
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
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
