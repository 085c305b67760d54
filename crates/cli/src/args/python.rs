//! Commands of the Python package: the only definition of their options. Python receives them as JSON.

use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Args, Serialize, Debug)]
#[command(
    after_help = "Examples:\n  narrows plot out/first --y 'p99(intra.slowdown)' --y 'p99(inter.slowdown)' -o first.pdf\n  \
    narrows plot out/first --y goodput --only load=20% --only scheme=dctcp --style screen -o goodput.png\n  \
    narrows plot out/reproduce/quick/uno/fig10 -o fig10.pdf\n  narrows plot out/first --front -o front.svg"
)]
pub(crate) struct PlotArgs {
    /// A directory of results.
    pub(crate) results: String,
    /// A metric, as in 'p99(slowdown)'. May be repeated: each has a panel. Default: what the paper draws, of results of
    /// `narrows reproduce`.
    #[arg(long, value_name = "METRIC")]
    pub(crate) y: Vec<String>,
    /// The key of the points on the x axis, such as load. Default: the one that varies.
    #[arg(long, value_name = "KEY")]
    pub(crate) x: Option<String>,
    /// The key whose values have a line each.
    #[arg(long, value_name = "KEY", default_value = "scheme")]
    pub(crate) by: String,
    /// Draw only runs of this value of a key. May be repeated: of one key, runs of either value. `none` selects runs without the
    /// key.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) only: Vec<String>,
    /// Draw the schemes' scores for flows inside and across, as of `narrows score`, and the schemes that none beats at both.
    #[arg(long)]
    pub(crate) front: bool,
    /// With --front: a reference that `narrows score --write` made.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<String>,
    /// With --front: a scheme that is no part of the reference. May be repeated.
    #[arg(long = "newcomer", value_name = "SCHEME")]
    pub(crate) newcomers: Vec<String>,
    /// The figure's size and letters.
    #[arg(long, value_enum, default_value_t = Style::Paper)]
    pub(crate) style: Style,
    /// Axes that are logarithmic.
    #[arg(long, value_enum)]
    pub(crate) log: Option<LogAxes>,
    /// A title. Default: none.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The name of the x axis. Default: the key.
    #[arg(long, value_name = "TEXT")]
    pub(crate) xlabel: Option<String>,
    /// The name of a y axis, one for each --y. Default: the metric.
    #[arg(long, value_name = "TEXT")]
    pub(crate) ylabel: Vec<String>,
    /// The directory of the papers' files. Default: papers, or those of the package.
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<String>,
    /// A file that ends in .pdf, .svg or .png.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
}

/// Sizes of a figure and its letters.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Style {
    /// A column of a paper: 3.3 inches, 8 points.
    Paper,
    /// A screen: 5.5 inches, 10 points.
    Screen,
}

/// Logarithmic axes.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogAxes {
    /// The x axis.
    X,
    /// The y axis.
    Y,
    /// Both.
    Xy,
}

#[derive(Args, Serialize, Debug)]
#[command(
    after_help = "Examples:\n  narrows tune study.toml --minimize 'p99(slowdown)' --where port.buffer=100KB..2000KB\n  \
    narrows tune study.toml --maximize goodput --subject-to 'p99(intra.fct) <= 2ms' --where 'port.ecn.step=log 20KB..2MB' \
    --parallel 4"
)]
pub(crate) struct TuneArgs {
    /// The scenario file.
    pub(crate) scenario: String,
    /// A metric to minimize, as in 'p99(inter.slowdown)'. May be repeated: several give a Pareto front.
    #[arg(long, value_name = "METRIC")]
    pub(crate) minimize: Vec<String>,
    /// A metric to maximize, as in goodput. May be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) maximize: Vec<String>,
    /// A key and its values: LOW..HIGH, 'log LOW..HIGH', or A,B,C. May be repeated.
    #[arg(long = "where", value_name = "KEY=SPACE")]
    #[serde(rename = "where")]
    pub(crate) space: Vec<String>,
    /// A comparison that must hold in every run, as in 'p99(slowdown) <= 5'. May be repeated.
    #[arg(long, value_name = "CHECK")]
    pub(crate) subject_to: Vec<String>,
    /// Number of trials in all, those of earlier calls included.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trials: u32,
    /// Number of trials that run at the same time. The values that are tried depend on this number, and not on how fast trials
    /// end; with --halve or --race they depend on that, too.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) parallel: u16,
    /// Seeds of each trial: the scenario's and those after it.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Run only these schemes.
    #[arg(long = "scheme", value_name = "NAME")]
    pub(crate) schemes: Vec<String>,
    /// Override a key of the scenario, as in topology.k=4. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// One of the scenario's scales.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// A scenario on which the result is checked. May be repeated.
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) held_out: Vec<String>,
    /// Run a quarter and half of the duration first; only the better half of the trials goes on.
    #[arg(long, conflicts_with = "race")]
    pub(crate) halve: bool,
    /// Run a trial seed by seed, and end it once it is worse than the best on the same seeds.
    #[arg(long)]
    pub(crate) race: bool,
    /// Storage of Optuna for trials. Default: a SQLite file in --out.
    #[arg(long, value_name = "URL")]
    pub(crate) storage: Option<String>,
    /// The directory for results. Default: out/NAME-tuned.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
    /// Threads of each trial. Default: all cores, shared by the trials that run at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
