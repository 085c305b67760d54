//! Commands that look at results.

use std::path::PathBuf;

use clap::Args;

use super::CsvArgs;
use super::values::{fraction, key_value, relative_difference};

#[derive(Args, Debug)]
pub(crate) struct ShowResultsArgs {
    /// Results directory of run, demo, sweep, emulate or reproduce, complete or not.
    pub(crate) directory: PathBuf,
    /// Print the summary as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Show all columns of tables, even if they are wider than the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Runs are simulated again, twice each, to record what the flows wait for. A group is the flows of one \
    scheme, point and class. By default, one run of each of the two groups with the slowest flows is explained.\n\n\
    Examples:\n  narrows explain out/mine --only scheme=gemini --class inter\n  \
    narrows explain out/mine --run uno,load=0.4,seed=1 --flow 812"
)]
pub(crate) struct ExplainArgs {
    /// Results directory, complete or not.
    pub(crate) directory: PathBuf,
    /// Explain one run only, as in uno,load=0.4,seed=1.
    ///
    /// Keys may be shortened to their last parts. Default: each scheme at each point, all seeds together.
    #[arg(long, value_name = "NAME", conflicts_with = "only")]
    pub(crate) run: Option<String>,
    /// Explain only runs with this value of a key, as in scheme=gemini or load=40%.
    ///
    /// May be repeated; a key given twice selects runs with either value. The value `none` selects runs without the
    /// key.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) only: Vec<(String, String)>,
    /// Explain only flows of this class.
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<ClassArg>,
    /// Group flows by the scenario's size bins (`[sizes]`) instead of by class.
    #[arg(long, conflicts_with = "traits")]
    pub(crate) bins: bool,
    /// Explain one flow only, by its number.
    #[arg(long, value_name = "N", conflicts_with_all = ["traits", "bins", "class"])]
    pub(crate) flow: Option<u32>,
    /// Explain all groups and all of their slowest flows, however long it takes.
    #[arg(long, conflicts_with_all = ["traits", "flow"])]
    pub(crate) all: bool,
    /// Fraction of a group's flows that counts as the slowest, as in 5%; at least one flow.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = fraction)]
    pub(crate) slowest: f64,
    /// Compare counters of the slowest flows with typical flows of their size.
    ///
    /// Simulates nothing, so it is fast.
    #[arg(long)]
    pub(crate) traits: bool,
    /// Directory of the files that the scenario names.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) inputs: PathBuf,
    /// Number of threads, 1 to 1024. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print the result as JSON on standard output, and nothing else there.
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
    /// Results directory.
    pub(crate) directory: PathBuf,
    /// Metric to score, lower is better, as in 'p99(inter.slowdown)'.
    ///
    /// May be repeated. Default: the median and the p99 of the slowdown for each size bin, or for each class of flows.
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
    /// Score only runs with this value of a key, as in load=40% or variant=far.
    ///
    /// May be repeated; a key given twice selects runs with either value. The value `none` selects runs without the
    /// key.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) filter: Vec<(String, String)>,
    /// Baseline: results, a file of --save-baseline, or table values (papers/PAPER/values).
    ///
    /// Default: the schemes of the directory.
    #[arg(long, value_name = "RESULTS")]
    pub(crate) baseline: Option<PathBuf>,
    /// Scheme to leave out of the baseline, such as a law of your own.
    ///
    /// It is scored against the best of the others, and they are scored as if it were absent. May be repeated.
    #[arg(long, value_name = "SCHEME")]
    pub(crate) not_in_baseline: Vec<String>,
    /// Save the best value of each metric, point and seed, for --baseline and for tuning.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(long, value_name = "FILE")]
    pub(crate) save_baseline: Option<PathBuf>,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Show all columns of tables, even if they are wider than the terminal.
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Results directory of run, demo or reproduce.
    #[arg(required_unless_present = "claims")]
    pub(crate) directory: Option<PathBuf>,
    /// Write the page of all recorded claims instead, with a search.
    ///
    /// DIR has a folder per paper, as `reproduce --results` leaves it; in a checkout, it is papers.
    #[arg(long, value_name = "DIR", conflicts_with = "directory", requires = "out")]
    pub(crate) claims: Option<PathBuf>,
    /// Output file. Default: report.html in the directory; for unfinished results, in its .next.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(
    after_help = "With --flows, the last column shows where the target holds, and no difference changes the exit code. \
    Flows of the same law, class and base RTT (within 5 %) are interchangeable, so their mean has a row, too.\n\n\
    Examples:\n  narrows compare out/last-week out/today\n  \
    narrows compare out/simulated out/emulated --flows --from 20s"
)]
pub(crate) struct CompareArgs {
    /// Results directory to compare with, such as the older one.
    pub(crate) before: PathBuf,
    /// Results directory to judge, such as the newer one.
    pub(crate) after: PathBuf,
    /// Largest relative difference that counts as equal, as in 0.05 or 5%.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = relative_difference, allow_negative_numbers = true,
          conflicts_with = "flows")]
    pub(crate) tolerance: f64,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Compare flow by flow: rates, RTTs and mean queues over a time window.
    ///
    /// Use it to compare simulated with emulated runs. Differences never cause a failure.
    #[arg(long)]
    pub(crate) flows: bool,
    #[command(flatten)]
    pub(crate) flow_comparison: FlowComparisonArgs,
}

/// Options of `compare --flows`.
#[derive(Args, Debug)]
pub(crate) struct FlowComparisonArgs {
    /// With --flows: start of the time window. Default: a third into the shorter run.
    #[arg(long, value_name = "TIME", requires = "flows")]
    pub(crate) from: Option<String>,
    /// With --flows: end of the time window. Default: the end of the shorter run.
    #[arg(long, value_name = "TIME", requires = "flows")]
    pub(crate) to: Option<String>,
    /// With --flows: also write the tables to a Markdown file.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(long, value_name = "FILE", requires = "flows")]
    pub(crate) markdown: Option<PathBuf>,
    /// With --flows: target for rates, as the largest relative difference.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = relative_difference, requires = "flows",
          allow_negative_numbers = true)]
    pub(crate) rate_tolerance: f64,
    /// With --flows: target for completion times, as the largest relative difference.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = relative_difference, requires = "flows",
          allow_negative_numbers = true)]
    pub(crate) fct_tolerance: f64,
    /// With --flows: target for mean queueing delays, as the largest relative difference.
    #[arg(long, value_name = "SHARE", default_value = "15%", value_parser = relative_difference, requires = "flows",
          allow_negative_numbers = true)]
    pub(crate) delay_tolerance: f64,
    /// With --flows: difference of mean queueing delays that always meets the target.
    #[arg(long, value_name = "TIME", default_value = "500us", requires = "flows")]
    pub(crate) delay_floor: String,
}
